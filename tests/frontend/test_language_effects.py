"""What programs change on paths that depend on tensors: objects, containers, arrays, outer variables, output."""

from __future__ import annotations

import bisect
import collections
import contextlib
import dataclasses
import functools
import heapq
import operator
from typing import Any

import numpy as np
import pytest
from tests.frontend.battery import COUNTS, NUMBERS, Battery, Function
from tests.frontend.staging import Staged, check

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import GraphError

program = Battery()


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any
    done: bool = False

    def finish(self, value: Any) -> None:
        object.__setattr__(self, "value", value)


@dataclasses.dataclass(slots=True)
class Slotted:
    value: Any
    steps: Any = 0


class Recorded:
    """Sets attributes through ``__setattr__``, with a count."""

    def __init__(self, value: Any) -> None:
        super().__setattr__("sets", 0)
        self.value = value

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__("sets", self.sets + 1)
        super().__setattr__(name, value)


# -- objects ---------------------------------------------------------------------------------------------------


@program()
def builtins_that_change_what_they_are_given(x: Tensor) -> Any:
    heap, ordered, items, d = [3, 5, 4], [1, 4, 9], [x, x], {"k": x}
    heapq.heapify(heap)
    if x.sum() > 0:
        heapq.heappush(heap, 1)
        bisect.insort(ordered, 5)
        list.append(items, x * 2)
        operator.setitem(d, "k", x * 3)
    else:
        heapq.heappush(heap, 9)
        bisect.insort(ordered, 2)
        list.insert(items, 0, x * 4)
        dict.update(d, k=x * 5)
    return sorted(heap), ordered, items, d


@program()
def attributes_through_builtins(x: Tensor) -> Any:
    holder = Slotted(x)
    if x.sum() > 0:
        setattr(holder, "value", x * 2)
        vars_of = {"a": 1}
    else:
        delattr(holder, "steps")
        setattr(holder, "steps", 4)
        vars_of = {"a": 2}
    return holder, getattr(holder, "steps"), vars_of


@program()
def frozen_slotted_and_recorded_objects(x: Tensor) -> Any:
    f, s, r = Frozen(x), Slotted(x), Recorded(x)
    if x.sum() > 0:
        f.finish(x * 2)
        s.value, s.steps = x + 1, s.steps + 1
        r.value = x * 3
    else:
        s.steps += 2
        r.value = r.value + 1
        r.value = r.value - 2
    f = dataclasses.replace(f, done=True)
    return f, s, r.value, r.sets


@program(*COUNTS)
def objects_in_loops(n: Tensor) -> Any:
    f, s, r = Frozen(n), Slotted(n), Recorded(n)
    for i in range(n):
        f.finish(f.value + i)
        s.value = s.value * 2
        s.steps += 1
        r.value = r.value + s.value
        if i == 2:
            r.value = i
    return f, s, r.value, r.sets


@program()
def instance_dictionaries(x: Tensor) -> Any:
    class Bag:
        def __init__(self) -> None:
            self.v = x

    bag = Bag()
    if x.sum() > 0:
        bag.__dict__["v"] = x * 2
        vars(bag).update(w=1)
    else:
        bag.__dict__.update(v=x * 3, w=5)
    return bag.v, bag.w  # type: ignore[attr-defined]


@program()
def class_attributes(x: Tensor) -> Any:
    class Counter:
        total = 0
        last = x

        @classmethod
        def note(cls, v: Any) -> None:
            cls.total += 1
            cls.last = v

    if x.sum() > 0:
        Counter.note(x * 2)
        if x[0] > 10:
            Counter.note(x * 3)
    else:
        Counter.last = -x
    return Counter.total, Counter.last


# -- containers ------------------------------------------------------------------------------------------------


@program()
def nested_containers(x: Tensor) -> Any:
    table = {"rows": [[x, 1], [x, 2]], "best": {"v": x}}
    if x.sum() > 0:
        table["rows"][0][1] += 5
        table["rows"][1][0] = x * 2
        table["best"]["v"] = table["best"]["v"] + 1
    else:
        table["rows"][0], table["rows"][1] = table["rows"][1], table["rows"][0]
        for row in table["rows"]:
            row[1] *= 3
    return table


@program()
def every_method_of_lists(x: Tensor) -> Any:
    a, b = [1, 2, 3], [x, x * 2, x * 3]
    if x.sum() > 0:
        a.append(4)
        a.reverse()
        a.remove(2)
        b.insert(0, b.pop())
        b[1:2] = [x * 5]
        del a[0]
        a.extend([7])
    else:
        a.clear()
        a += [1, 2, 3]
        a.sort(reverse=True)
        b.reverse()
        b[0], b[-1] = b[-1], b[0]
    return a, b


@program()
def sets_deques_and_counters(x: Tensor) -> Any:
    s, d, c = {1, 2}, collections.deque([1, x], maxlen=2), collections.Counter("aab")
    g = collections.defaultdict(list)
    if x.sum() > 0:
        s.discard(1)
        d.append(x * 2)
        c["a"] += 1
        g["k"].append(x)
    else:
        s -= {1}
        d.rotate(1)
        d.appendleft(x * 3)
        d.rotate(1)
        c.update("a")
        g["k"].append(-x)
    return sorted(s), d[1], c["a"], dict(g)


@program()
def numpy_arrays_changed_alike(x: Tensor) -> Any:
    a = np.zeros(2)
    if x.sum() > 0:
        a[0] = 1
        y = x * float(a[0])
    else:
        a += 1
        a[1] -= 1
        y = x * float(a[1])
    return a.tolist(), y


@program(*COUNTS)
def lists_as_loop_state(n: Tensor) -> Any:
    window, pair = [n, n, n], (n, {"a": n})
    for i in range(n):
        window.append(i)
        del window[0]
        window[0], window[1] = window[1], window[0]
        pair = (pair[0] + i, {"a": pair[0]})
    return window, pair


@program()
def containers_kept_in_both_places(x: Tensor) -> Any:
    inner = [x]
    outer = {"inner": inner, "again": inner}
    if x.sum() > 0:
        outer["inner"].append(x * 2)
    else:
        inner.append(x * 3)
    return inner, outer["inner"] is outer["again"], len(outer["again"])


@program()
def containers_that_hold_containers(x: Tensor) -> Any:
    inner: list[Any] = [x, 1]
    outer = {"inner": inner, "n": 0}
    if x.sum() > 0:
        outer["n"] += 1
        inner[1] += 5
    else:
        outer["n"] = 7
    inner[0] = x * 9
    return outer["inner"] is inner, outer, inner


@program(*COUNTS)
def containers_that_hold_containers_in_loops(n: Tensor) -> Any:
    inner = [n, 0]
    outer = {"inner": inner, "n": 0}
    for i in range(n):
        outer["n"] += 1
        outer["inner"][0] = outer["inner"][0] + i
        inner[1] += 2
    inner[0] = inner[0] + 100
    return outer["inner"] is inner, outer, inner


@program()
def lists_that_change_places(x: Tensor) -> Any:
    a, b = [x], [x * 2]
    c = [a, b]
    if x.sum() > 0:
        c[0], c[1] = c[1], c[0]
        a, b = b, a
        a[0] = a[0] + 1
    else:
        a[0] = a[0] - 1
    return a, b, c


@program(*COUNTS)
def lists_that_change_places_in_loops(n: Tensor) -> Any:
    a, b = [n], [n * 2]
    for i in range(n):
        a, b = b, a
        a[0] = a[0] + i
    return a, b


@program()
def a_returned_container_that_changes_later(x: Tensor) -> Any:
    log = [0]

    def f() -> Any:
        try:
            if x.sum() > 0:
                return x, log
            return -x, log
        finally:
            log[0] += 1

    y, same = f()
    return y, log, same is log


# -- variables -------------------------------------------------------------------------------------------------


@program()
def closures_made_in_branches(x: Tensor) -> Any:
    if x.sum() > 0:
        k = x * 2

        def act(v: Any) -> Any:
            return v + k

        y = act(x)
    else:
        act = lambda v: v * 3
        y = act(x)
    return y


@program()
def classes_made_in_branches(x: Tensor) -> Any:
    if x.sum() > 0:

        class Doubler:
            def __call__(self, v: Any) -> Any:
                return v * 2

        y = Doubler()(x)
    else:
        y = x
    return y


@program(*COUNTS)
def nonlocal_in_loops(n: Tensor) -> Any:
    total = 0

    def add(v: Any) -> Any:
        nonlocal total
        total += v
        return total

    for i in range(n):
        if i != 1:
            add(i)
    while total < 4:
        add(2)
    return total


@program()
def partial_and_wrapped_functions_in_branches(x: Tensor) -> Any:
    log = [0]

    def logged(fn: Function) -> Function:
        @functools.wraps(fn)
        def inner(*args: Any) -> Any:
            log[0] += len(fn.__name__)
            return fn(*args)

        return inner

    @logged
    def double(v: Any) -> Any:
        return v * 2 if v[0] > 1 else v

    y = functools.partial(double, x)() if x.sum() > 0 else double(double(x)[::-1])[::-1]
    return y, log


@program()
def context_managers_in_branches(x: Tensor) -> Any:
    depth = [0]

    @contextlib.contextmanager
    def deeper(by: int) -> Any:
        depth[0] += by
        try:
            yield x * depth[0] if x[0] > 0 else x
        finally:
            depth[0] -= 1

    if x.sum() > 0:
        with deeper(2) as y:
            y = y + 1
    else:
        with deeper(1) as y, deeper(3):
            y = y * depth[0]
    return y, depth


@program(*NUMBERS)
def try_in_tensor_loops(s: Tensor) -> Any:
    failures = 0
    while s > 1:
        try:
            s = s - {"step": 2.5}["step"]
            if s < 3:
                continue
        except KeyError:
            failures = failures + 100
        else:
            failures = failures + 1
        finally:
            s = s - 0.5
    return s, failures


@program(*NUMBERS)
def with_and_return_in_tensor_loops(s: Tensor) -> Any:
    log = [0]

    @contextlib.contextmanager
    def counted() -> Any:
        log[0] += 1
        yield
        log[0] += 10

    while s < 30:
        with counted():
            if s > 12:
                return s, log
            s = s + 6
    return -s, log


@program(*COUNTS)
def deep_nesting(n: Tensor) -> Any:
    total, flag = 0, False
    for i in range(n):
        if i % 2 == 0:
            j = i
            while j > 0:
                for k in range(2):
                    if j == 4:
                        flag = True
                        break
                    elif k and not flag:
                        continue
                    total += j + k
                else:
                    total += 1
                j -= 1
                if total > 30:
                    return total, flag, i
        elif flag:
            break
    return total, flag, -1


@program(*COUNTS)
def iterators_on_one_path(n: Tensor) -> Any:
    it = iter([1, 2, 3])
    first = next(it)
    rows = (v * 2 for v in [n, n + 1])
    if n > 1:
        local = iter([n, 5])
        total = next(local) + next(local)
        for row in rows:
            total = total + row
    else:
        total = n
    return total, first, next(it)


@program(*COUNTS)
def ranges_of_tensors(n: Tensor) -> Any:
    total, last = 0, -1
    for i in reversed(range(n)):
        total = total * 2 + i
    for k, i in enumerate(range(1, n + 1)):
        total = total + k * i
    for k, i in enumerate(range(n), start=5):
        last = k
    return total, last, 2 in range(n), n in range(3), [n in range(5) or 7]


# -- refused ---------------------------------------------------------------------------------------------------


def test_an_iterator_advanced_on_both_paths_is_refused() -> None:
    def f(x: Tensor) -> Any:
        it = iter([x, x * 2])
        if x.sum() > 0:
            y = next(it)
        else:
            y = next(it) + 1
        return y

    with pytest.raises(GraphError, match="iterator is advanced on several paths"):
        Staged(f, Tensor([1.0]))


def test_arrays_that_differ_are_refused() -> None:
    def f(x: Tensor) -> Any:
        a = np.zeros(2)
        if x.sum() > 0:
            a[0] = 1
        return x * Tensor(a)

    with pytest.raises(GraphError, match="'a'"):
        Staged(f, Tensor([1.0]))


@pytest.mark.parametrize(("fn", "cases"), program.rows)
def test_effects(fn: Function, cases: tuple[Any, ...]) -> None:
    check(fn, *cases)


# -- output ----------------------------------------------------------------------------------------------------


def _printing(x: Tensor, n: Tensor) -> Any:
    print("start", 1, x)
    if x.sum() > 0:
        print("positive", x[0])
    else:
        print("not positive")
        print(f"sum {x.sum()}", end="!\n")
    for i in range(n):
        print(i, "of", n, sep="-")
        if i == 1:
            print("one")
            continue
        print("more")
    k = 0
    while k < n:
        k += 2
        print("k", k)
    for j in range(2):
        print("python", j)
    return x


def test_printing_keeps_order_and_count(capsys: pytest.CaptureFixture[str]) -> None:
    compiled = ms.jit(_printing)
    for x, n in ((Tensor([1.0, 2.0]), Tensor(3)), (Tensor([-1.0, 2.0]), Tensor(0)), (Tensor([-3.0, 2.0]), Tensor(2))):
        for _ in range(2):
            _printing(x, n)
            expected = capsys.readouterr().out
            compiled(x, n).asnumpy()
            ops.zeros((1,)).asnumpy()
            assert capsys.readouterr().out == expected


def _raising(x: Tensor, n: Tensor) -> Any:
    assert x.sum() < 100, f"too large: {x.sum()}"
    for i in range(n):
        if x[0] * i > 5:
            raise IndexError("row", i)
        x = x + 1
    if x[0] < 0:
        raise ValueError(f"negative {x[0]}") from KeyError("cause")
    while x.sum() < 3:
        x = x + 1
        assert x[1] > -5
    return x


def test_errors_are_raised_when_the_graph_runs() -> None:
    compiled = ms.jit(_raising)
    cases = [([1.0, 2.0], 2), ([99.0, 9.0], 0), ([4.0, 1.0], 4), ([-5.0, 1.0], 1), ([0.0, -9.0], 0)]
    seen = []
    for values, n in cases:
        args = Tensor(values), Tensor(n)
        try:
            expected: Any = _raising(*args)
        except Exception as error:
            with pytest.raises(type(error)) as caught:
                compiled(*args)
            if caught.value.args:  # the eager message goes on with what the test runner adds
                assert str(error.args[0]).startswith(str(caught.value.args[0]))
            assert type(caught.value.__cause__) is type(error.__cause__)
            assert "test_language_effects.py" in "".join(caught.value.__notes__)
            seen.append(type(error))
        else:
            assert compiled(*args).tolist() == expected.tolist()
    assert seen == [AssertionError, IndexError, ValueError, AssertionError]


def _small(v: Tensor, limit: int) -> Tensor:
    if limit < 5:
        raise ValueError("small", limit)
    return v


def _matrix(v: Tensor) -> Tensor:
    assert v.ndim == 2, f"{v.ndim} axes"
    return v


def _calling(x: Tensor) -> Any:
    if x.sum() > 10:
        y = _small(x, 3)
    else:
        y = x * 2
    z = _matrix(x) if x[0] < -10 else x
    if x[1] > 5:
        assert x.ndim == 3
    if x[1] < -50:
        return _small(x, 1)
    while y.sum() < -6:
        if y[0] < -4:
            _small(y, 2)
        y = y / 2
    return y + z


def test_errors_of_functions_called_under_a_condition() -> None:
    compiled = ms.jit(_calling)
    cases = ([1.0, 2.0], [20.0, 2.0], [-11.0, 2.0], [-20.0, 7.0], [2.0, -60.0], [-3.0, -1.0], [1.0, 6.0])
    outcomes = []
    for values in cases:
        x = Tensor(values)
        try:
            expected = _calling(x).tolist()
        except (ValueError, AssertionError) as error:
            with pytest.raises(type(error)) as caught:
                compiled(x)
            assert str(error).startswith(str(caught.value)) or not caught.value.args
            assert "test_language_effects.py" in "".join(caught.value.__notes__)
            outcomes.append(type(error).__name__)
        else:
            assert compiled(x).tolist() == expected
            outcomes.append("value")
    assert outcomes == [
        "value",
        "ValueError",
        "AssertionError",
        "AssertionError",
        "ValueError",
        "ValueError",
        "AssertionError",
    ]


def test_errors_of_functions_that_would_be_caught_are_refused() -> None:
    def f(x: Tensor) -> Tensor:
        try:
            if x.sum() > 0:
                _small(x, 1)
        except ValueError:
            x = -x
        return x

    with pytest.raises(GraphError, match="cannot be caught inside the graph"):
        Staged(f, Tensor([1.0]))


def _looking_up(x: Tensor) -> Any:
    table, items = {"a": 1}, [1, 2]
    y = x
    if x.sum() > 10:
        y = x * table["b"]
    if x[0] < -5:
        y = y * items[5]
    elif x[1] < -5:
        y = y * (1 // 0)
    return y


def test_errors_of_python_on_a_path_are_raised_on_that_path() -> None:
    compiled = ms.jit(_looking_up)
    assert compiled(Tensor([1.0, 2.0])).tolist() == [1.0, 2.0]
    for values, kind in (([20.0, 2.0], KeyError), ([-9.0, 2.0], IndexError), ([0.0, -9.0], ZeroDivisionError)):
        with pytest.raises(kind) as caught:
            compiled(Tensor(values))
        assert "in _looking_up" in "".join(caught.value.__notes__)


def test_errors_of_python_on_a_path_that_would_be_caught_are_refused() -> None:
    def f(x: Tensor) -> Tensor:
        try:
            if x.sum() > 0:
                x = {"a": x}["b"]
        except KeyError:
            x = -x
        return x

    with pytest.raises(GraphError, match="cannot be caught inside the graph"):
        Staged(f, Tensor([1.0]))


def test_an_error_in_a_loop_that_a_tensor_ends_is_shown_while_staging() -> None:
    def f(n: Tensor) -> Any:
        total, items = 0, [1, 2]
        for i in range(n):
            total = total + items[7] * i
        return total

    with pytest.raises(IndexError):
        Staged(lambda n: f(n) if n > 0 else n, Tensor(3))
