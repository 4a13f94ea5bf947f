"""What branches and loops change outside: tensors in place, attributes, containers, outer variables."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, deque
from typing import Any

import pytest
from tests.frontend.staging import Staged, check

import mycelia as ms
from mycelia import Parameter, Tensor, ops
from mycelia.core.errors import GraphError, GraphTypeError

_VECTORS = ((Tensor([1.0, 2.0]),), (Tensor([-1.0, -2.0]),), (Tensor([20.0, 3.0]),))


def test_subscript_assignment_to_an_argument() -> None:
    def f(x: Tensor) -> Any:
        y = x * 1
        if x.sum() > 0:
            x[0] = 7.0
            y[1] += x[0]
        else:
            y[0] *= 3
        for i in range(2):
            if y[i] > 5:
                y[i] = x[0]
                break
        return y

    check(f, *_VECTORS)


def test_parameters_written_in_branches_and_loops() -> None:
    w, count = Parameter(Tensor([1.0, 1.0]), name="w"), Parameter(Tensor(0), name="count")

    def f(x: Tensor) -> Any:
        if x.sum() > 0:
            w.set_data(w * x)
            ops.assign_add(count, 1)
        k = 0
        while k < x[0]:
            w[1] = w[1] + 1
            ops.assign_add(count, 10)
            k += 1
        return w * 1, k

    staged = Staged(f, _VECTORS[0][0])
    assert w.tolist() == [1.0, 1.0]  # staging leaves no trace
    assert {t.name for t in staged.written} == {"w", "count"}
    for (x,) in _VECTORS:
        w.set_data(Tensor([1.0, 1.0]))
        count.set_data(Tensor(0))
        expected = f(x)
        after = w.tolist(), count.item()
        w.set_data(Tensor([1.0, 1.0]))
        count.set_data(Tensor(0))
        got = staged(x)
        assert got[0].tolist() == expected[0].tolist()
        assert int(got[1]) == expected[1]
        assert (w.tolist(), count.item()) == after


class _Box:
    def __init__(self, value: Any) -> None:
        self.value = value
        self.n = 0

    def add(self, x: Any) -> None:
        self.value = self.value + x
        self.n += 1


def test_attributes() -> None:
    def f(x: Tensor) -> Any:
        box, other = _Box(x), _Box([x])
        if x.sum() > 0:
            box.value = x * 2
            box.add(x)
            other.value[0] = x + 1
            fresh = _Box(x)
            fresh.new = 3  # type: ignore[attr-defined]
            box.n += fresh.new  # type: ignore[attr-defined]
        while box.n < x[0]:
            box.add(1)
        return box.value, box.n, other.value

    check(f, *_VECTORS)


def test_objects_made_inside_a_branch_are_free() -> None:
    class Point:
        def __init__(self, x: Any) -> None:
            self.x = x if x[0] > 5 else x + 1
            self.items = [x]
            self.items.append(2)

        def moved(self, by: Any) -> Any:
            made = Point(self.x + by)
            made.tag = by  # type: ignore[attr-defined]
            return made

    def f(x: Tensor) -> Any:
        y = x
        if x.sum() > 0:
            p = Point(x).moved(1)
            p.items[0] = p.x
            y = p.items[0] * p.tag
        for i in range(2):
            if x[0] > i:
                y = y + Point(y).x
        return y

    check(f, *_VECTORS)


def test_attributes_of_objects_from_outside_are_put_back() -> None:
    box = _Box(5)

    def f(x: Tensor) -> Any:
        before = box.n
        if x.sum() > 0:
            box.n = before + 1
        else:
            box.n = before + 1
        return x * box.n

    f(_VECTORS[0][0])
    assert box.n == 1
    Staged(f, _VECTORS[0][0])
    assert box.n == 2  # both branches do the same: it is done once


@pytest.mark.parametrize("kind", [list, deque])
def test_sequences_change_alike_in_both_branches(kind: Any) -> None:
    def f(x: Tensor) -> Any:
        outs, plain = kind([x]), []
        if x.sum() > 0:
            outs.append(x + 1)
            outs[0] = x * 5
            plain.append(1)
        else:
            outs.append(x + 2)
            plain.append(1)
        if x[0] > 10:
            outs.append(x)
            outs.pop()
        return list(outs), plain

    check(f, *_VECTORS)


def test_dicts_sets_and_nested_containers() -> None:
    def f(x: Tensor) -> Any:
        table: Any = {"a": x, "b": [x, {"c": 1}]}
        names = {"n"}
        order = OrderedDict(z=x)
        if x.sum() > 0:
            table["a"] = x + 1
            table["b"][0] = x * 2
            table["b"][1]["c"] += 1
            names.add("m")
            order.update(z=x - 1)
        else:
            names |= {"m"}
        for i in range(2):
            if x[0] > i:
                table["b"] += []
                table["a"] = table["a"] - i
        return table["a"], table["b"], sorted(names), order["z"]

    check(f, *_VECTORS)


def test_containers_made_inside_a_branch_are_free() -> None:
    def helper(xs: list[Any], x: Tensor) -> list[Any]:
        xs.append(x)
        return xs

    def f(x: Tensor) -> Any:
        if x.sum() > 0:
            parts: list[Any] = []
            seen, table = set(), {}
            for k in range(3):
                parts.append(x * k)
                helper(parts, x - k)
                seen.add(k)
                table[k] = [k]
                table[k].append(x)
            made = [v + 1 for v in parts]
            made.extend(x.reshape((2, 1)).tolist() if False else [])
            listed = list(parts)
            listed.pop()
            y = made[0] + parts[2] + table[2][1] + listed[-1]
        else:
            y = x
        return y

    check(f, *_VECTORS)


def test_lists_in_loops_keep_their_length() -> None:
    def f(n: Tensor, x: Tensor) -> Any:
        state = [x, 0]
        hist = {"sum": x.sum()}
        i = 0
        while i < n:
            state[0] = state[0] * 2
            state[1] += 1
            hist["sum"] = hist["sum"] + state[0].sum()
            i += 1
        return state, hist

    check(f, *[(Tensor(k), x) for k in (0, 1, 3) for (x,) in _VECTORS])


def test_nonlocal_and_global_variables() -> None:
    def f(x: Tensor) -> Any:
        total, calls = x.sum(), 0

        def bump(by: Any) -> None:
            nonlocal total, calls
            total = total + by
            calls += 1

        if x[0] > 0:
            bump(1)
            total = total * 2
        else:
            bump(5)
            bump(6)
        for i in range(3):
            if x[1] > i:
                bump(i)
        k = 0
        while k < x[0]:
            bump(k)
            k += 1
        return total, calls, k

    check(f, *_VECTORS)


_setting: Any = 1


def test_global_variables_join() -> None:
    def change(x: Tensor) -> None:
        global _setting
        if x.sum() > 0:
            _setting = 2
        else:
            _setting = 3

    def f(x: Tensor) -> Any:
        global _setting
        _setting = 1
        change(x)
        result = x * _setting
        _setting = 1
        return result

    check(f, *_VECTORS)
    assert _setting == 1


@dataclasses.dataclass
class _State:
    x: Any
    steps: Any = 0

    def forward(self, by: Any) -> _State:
        if self.x.sum() > 0:
            return _State(self.x + by, self.steps + 1)
        self.steps += 2
        return _State(self.x, self.steps)


def test_dataclasses_and_named_tuples_join() -> None:
    from typing import NamedTuple

    class Pair(NamedTuple):
        a: Any
        b: Any

    def f(x: Tensor) -> Any:
        state = _State(x)
        pair = Pair(x, 1)
        if x.sum() > 0:
            state = state.forward(1)
            pair = Pair(x * 2, 2)
        else:
            state.steps = 5
        while state.steps < x[0]:
            state = _State(state.x * 1.5, state.steps + 1)
        return state.x, state.steps, pair

    check(f, *_VECTORS)


def test_the_same_tensor_stays_the_same_object() -> None:
    def f(x: Tensor) -> Any:
        y = x
        if x.sum() > 0:
            y = x
        x[0] = 3.0
        return y, y is x

    check(f, *_VECTORS)


def test_running_statistics_of_a_cell() -> None:
    class Counter(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.mean = Parameter(Tensor([0.0, 0.0]), name="mean", requires_grad=False)

        def construct(self, x: Tensor) -> Tensor:
            if x.sum() > 0:
                self.mean = self.mean * 0.5 + x * 0.5
            return x - self.mean

    cell, plain = Counter(), Counter()
    staged = Staged(lambda x: cell(x), _VECTORS[0][0])
    for (x,) in _VECTORS:
        assert staged(x).tolist() == plain(x).tolist()
        assert cell.mean.tolist() == plain.mean.tolist()


# -- what cannot be joined -----------------------------------------------------------------------------------


def _refused(fn: Any, kind: type[Exception] = GraphTypeError) -> str:
    with pytest.raises(kind) as caught:
        Staged(fn, Tensor([1.0, 2.0]))
    return str(caught.value)


def test_a_list_longer_on_one_path() -> None:
    def f(x: Tensor) -> Any:
        outs: list[Any] = []
        if x.sum() > 0:
            outs.append(x)
        return outs

    text = _refused(f)
    assert "the list 'outs' is a list of length 1 if the condition is true" in text
    assert "a list of length 0 if it is false" in text
    assert "if x.sum() > 0:" in text


def test_a_list_that_grows_in_a_loop() -> None:
    def f(x: Tensor) -> Any:
        outs: list[Any] = []
        while x.sum() < 10:
            outs.append(x)
            x = x * 2
        return outs

    text = _refused(f)
    assert "the list 'outs'" in text
    assert "a list of length 1 after one round" in text


def test_an_attribute_set_on_one_path() -> None:
    def f(x: Tensor) -> Any:
        box = _Box(x)
        if x.sum() > 0:
            box.extra = x  # type: ignore[attr-defined]
        return box.extra  # type: ignore[attr-defined]

    assert "attribute 'extra' of a _Box is set only if the condition is true" in _refused(f)


def test_other_objects_cannot_depend_on_a_tensor() -> None:
    def f(x: Tensor) -> Any:
        act = ops.neg
        if x.sum() > 0:
            act = ops.abs
        return act(x)

    text = _refused(f)
    assert "'act' is the function 'abs' if the condition is true and the function 'neg' if it is false" in text


def test_state_is_put_back_after_an_error() -> None:
    w, box, items = Parameter(Tensor([1.0, 2.0]), name="w"), _Box(1), [1]

    def f(x: Tensor) -> Any:
        if x.sum() > 0:
            w[0] = 9.0
            box.value = 2
            items.append(2)
            for _ in range(x.sum().astype(ms.int64)):
                w[0] = 10.0
                box.value = 3
                raise GraphError("test", message="stop")
        return x

    def g(x: Tensor) -> Any:
        if x.sum() > 0:
            w[0] = 9.0
            box.value = 2
            items.append(2)
            return x.nothing
        return x

    for fn in (f, g):
        with pytest.raises((GraphError, AttributeError)):
            Staged(fn, Tensor([1.0, 2.0]))
    assert w.tolist() == [1.0, 2.0]
    assert box.value == 1
    assert items == [1]
