"""Flow of control in a staged program: what does not depend on a tensor's value is run as Python runs it."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import pytest
from tests.frontend.battery import Battery, Color, Config, Function, Point
from tests.frontend.staging import check

from mycelia import Tensor, ops

program = Battery()


# -- comprehensions and generators -----------------------------------------------------------------------------


@program()
def nested_comprehensions(x: Tensor) -> Any:
    table = [[i * j for j in range(3) if j != 1] for i in range(4) if i % 2 == 0]
    flat = [v for row in table for v in row if v >= 0]
    return table, {k: x * k for k in flat}, sorted({v % 3 for v in flat}), tuple(x + v for v in flat)


@program()
def comprehension_of_functions_sees_the_last(x: Tensor) -> Any:
    late = [lambda: i for i in range(3)]
    early = [lambda i=i: i for i in range(3)]
    return [f() for f in late], [f() * x for f in early]


@program()
def comprehension_scopes(x: Tensor) -> Any:
    i = 10
    squares = [i * i for i in range(3)]
    gathered = {i: [j for j in range(i)] for i in range(3)}
    return i, squares, gathered, [(a, b) for a, (b, *_) in [(1, (x, 2)), (2, (x, 3, 4))]]


@program()
def walrus_in_comprehensions(x: Tensor) -> Any:
    kept = [y for v in range(6) if (y := v * v) > 3]
    total = 0
    sums = [total := total + v for v in range(4)]
    return kept, y, sums, total, [(z := x * v, z + 1) for v in range(2)], z


@program()
def generator_functions(x: Tensor) -> Any:
    def count(n: int) -> Any:
        for k in range(n):
            yield k, x * k

    def running() -> Any:
        total = 0
        while (sent := (yield total)) is not None:
            total += sent
        return "done"

    def delegating() -> Any:
        ended = yield from running()
        yield ended

    gen = delegating()
    next(gen)
    sent = [gen.send(v) for v in (1, x, 3)]
    return list(count(3)), sent, next(gen, "end"), [v for _, v in count(2)], dict(count(2))


@program()
def generators_closed_and_thrown_into(x: Tensor) -> Any:
    log = []

    def guarded() -> Any:
        try:
            while True:
                try:
                    yield x
                except ValueError as error:
                    log.append(str(error))
        finally:
            log.append("closed")

    gen = guarded()
    first = next(gen)
    second = gen.throw(ValueError("thrown"))
    gen.close()
    return first + second, log


@program()
def generator_expressions_are_lazy(x: Tensor) -> Any:
    seen = []

    def note(v: int) -> Tensor:
        seen.append(v)
        return x * v

    lazy = (note(v) for v in range(10))
    first = next(lazy)
    two = list(itertools.islice(lazy, 2))
    return first, two, seen, any(v > 3 for v in range(5)), sum(x * v for v in range(3))


@program()
def infinite_generators_and_itertools(x: Tensor) -> Any:
    def naturals() -> Any:
        n = 0
        while True:
            yield n
            n += 1

    pairs = list(zip(naturals(), itertools.cycle("ab"), itertools.repeat(x, 3)))
    groups = {k: list(g) for k, g in itertools.groupby([1, 1, 2, 3, 3], key=lambda v: v % 2 == 0)}
    return (
        pairs,
        groups,
        list(itertools.chain([1], (2, 3))),
        list(itertools.product("ab", [0, 1])),
        list(itertools.takewhile(lambda v: v < 4, naturals())),
    )


# -- errors and contexts ---------------------------------------------------------------------------------------


@program()
def try_except_else_finally(x: Tensor) -> Any:
    log = []

    def attempt(key: Any) -> Any:
        try:
            value = {"a": x, "b": x * 2}[key]
        except KeyError as error:
            log.append(f"missing {error.args[0]}")
            return -x
        except (TypeError, ValueError):
            log.append("unhashable")
            return x * 0
        else:
            log.append("found")
            return value
        finally:
            log.append("end")

    return attempt("a"), attempt("c"), attempt([]), log


@program()
def finally_overrides_and_loops(x: Tensor) -> Any:
    def last() -> str:
        for k in range(5):
            try:
                if k == 1:
                    continue
                if k == 3:
                    return f"returned {k}"
            finally:
                order.append(k)
        return "never"

    order: list[int] = []
    return last(), order, x


@program()
def nested_errors_with_causes(x: Tensor) -> Any:
    class Wrong(Exception):
        def __init__(self, code: int) -> None:
            super().__init__(f"code {code}")
            self.code = code

    def inner(v: int) -> int:
        if v > 1:
            raise Wrong(v)
        return v

    def outer(v: int) -> Any:
        try:
            return inner(v)
        except Wrong as wrong:
            raise RuntimeError("outer") from wrong

    try:
        outer(5)
    except RuntimeError as error:
        cause = error.__cause__
        return x * cause.code, str(cause), outer(1)
    return x


@program()
def exception_groups(x: Tensor) -> Any:
    found = []
    try:
        raise ExceptionGroup("several", [ValueError("v"), TypeError("t"), ExceptionGroup("in", [ValueError("w")])])
    except* ValueError as group:
        found.append(sorted(str(e) for e in _flatten(group)))
    except* TypeError as group:
        found.append([str(e) for e in group.exceptions])
    else:
        found.append("none")
    finally:
        found.append("end")
    return found, x


def _flatten(group: Any) -> list[BaseException]:
    return [f for e in group.exceptions for f in (_flatten(e) if isinstance(e, ExceptionGroup) else [e])]


@program()
def context_managers(x: Tensor) -> Any:
    log = []

    class Scope:
        def __init__(self, name: str, swallow: bool = False) -> None:
            self.name, self.swallow = name, swallow

        def __enter__(self) -> tuple[str, Tensor]:
            log.append(f"+{self.name}")
            return self.name, x

        def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
            log.append(f"-{self.name}:{kind.__name__ if kind else None}")
            return self.swallow

    with Scope("a") as (name, y), Scope("b") as second:
        y = y + 1
    with Scope("c", swallow=True):
        log.append("before")
        raise ValueError
    with (
        Scope("d") as one,
        Scope("e"),
    ):
        pass
    return log, name, y, second[0], one[1]


@program()
def contextlib_managers(x: Tensor) -> Any:
    log = []

    @contextlib.contextmanager
    def scope(name: str) -> Any:
        log.append(name)
        try:
            yield x * 2
        except KeyError:
            log.append("stopped")
        finally:
            log.append(f"end {name}")

    with scope("a") as y:
        y = y + 1
    with scope("b"):
        {}["missing"]
    with contextlib.suppress(ZeroDivisionError):
        1 // 0
    with contextlib.ExitStack() as stack:
        z = stack.enter_context(scope("c"))
        stack.callback(log.append, "callback")
    with contextlib.nullcontext(x) as same:
        pass
    return log, y, z, same


@program()
def return_out_of_a_context(x: Tensor) -> Any:
    log = []

    @contextlib.contextmanager
    def scope() -> Any:
        try:
            yield
        finally:
            log.append("left")

    def run() -> Any:
        for k in range(3):
            with scope():
                if k == 1:
                    return x * k
        return None

    return run(), log


@program()
def assertions(x: Tensor) -> Any:
    assert x.shape == (2,), f"shape {x.shape}"
    assert isinstance(x, Tensor) and x.ndim == 1
    try:
        assert x.shape == (3,), ("wrong", x.shape)
    except AssertionError as error:
        return type(error).__name__
    return None


# -- match -----------------------------------------------------------------------------------------------------


def _classify(value: Any) -> Any:
    match value:
        case 0 | 1:
            return "small"
        case int(n) if n > 100:
            return ("large", n)
        case str() as text if text.startswith("a"):
            return text.upper()
        case "exit":
            return "leaving"
        case None | True | False:
            return "single"
        case Color.RED:
            return "red"
        case [first]:
            return ("one", first)
        case [first, *middle, last] if middle:
            return (first, len(middle), last)
        case (a, b):
            return ("two", a, b)
        case {"kind": "circle", "r": r, **rest}:
            return ("circle", r, rest)
        case {}:
            return "mapping"
        case Config(width=w, names=("a", *_)):
            return ("config", w)
        case Point(x, y=y_):
            return ("point", x, y_)
        case float():
            return "float"
        case _:
            return "other"


@program()
def match_everything(x: Tensor) -> Any:
    subjects = [
        0, 1, 7, 500, "abc", "exit", None, Color.RED, Color.BLUE, [x], [1, 2, 3, 4], (x, 5),
        {"kind": "circle", "r": 2.0}, {"a": 1}, Config(), 2.5, {1, 2},
    ]  # fmt: skip
    return [_classify(s) for s in subjects]


@program()
def match_classes_with_match_args(x: Tensor) -> Any:
    class Node:
        __match_args__ = ("op", "left", "right")

        def __init__(self, op: str, left: Any, right: Any = None) -> None:
            self.op, self.left, self.right = op, left, right

    def evaluate(node: Any) -> Any:
        match node:
            case Node("+", left, right):
                return evaluate(left) + evaluate(right)
            case Node("*", left, right):
                return evaluate(left) * evaluate(right)
            case Node(op="-", left=inner, right=None):
                return -evaluate(inner)
            case Tensor() | int() | float():
                return node
            case _:
                raise TypeError(node)

    return evaluate(Node("+", Node("*", x, 3), Node("-", Node("+", x, 1))))


@program()
def match_in_a_loop(x: Tensor) -> Any:
    out = []
    for step in [("mul", 3), ("add", 1), ("skip",), ("relu",), ("stop", "now"), ("add", 100)]:
        match step:
            case ("skip",):
                continue
            case ("stop", *_):
                break
            case (("mul" | "add") as name, k):
                x = x * k if name == "mul" else x + k
            case (name,):
                x = getattr(ops, name)(x)
        out.append(x)
    else:
        out.append("never")
    return out


# -- loops -----------------------------------------------------------------------------------------------------


@program()
def loops_of_python(x: Tensor) -> Any:
    out = []
    for i in range(10):
        if i % 3 == 0:
            continue
        for j in "ab":
            if j == "b" and i > 4:
                break
            out.append((i, j))
        else:
            out.append("else")
        if i > 6:
            break
    else:
        out.append("never")
    n = 5
    while n:
        n -= 1
        if n == 2:
            continue
    else:
        out.append("while else")
    while True:
        n += 1
        if n > 3:
            break
    return out, n, x * i


@program()
def iteration_protocols(x: Tensor) -> Any:
    class Countdown:
        def __init__(self, n: int) -> None:
            self.n = n

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            if self.n == 0:
                raise StopIteration
            self.n -= 1
            return x * self.n

    class Indexed:
        def __getitem__(self, i: int) -> int:
            if i > 2:
                raise IndexError
            return i * i

    stop = iter([1, 2, 0, 3])
    return list(Countdown(3)), [*Indexed()], sum(Countdown(3)), 4 in Indexed(), list(iter(lambda: next(stop), 0))


@program()
def loops_over_changing_containers(x: Tensor) -> Any:
    todo, done = [3], []
    while todo:
        k = todo.pop()
        done.append(x * k)
        if k > 1:
            todo.extend([k - 1, k - 2])
    grown = [1]
    for g in grown:
        if g < 5:
            grown.append(g + 1)
    return done, grown


@pytest.mark.parametrize(("fn", "cases"), program.rows)
def test_python(fn: Function, cases: tuple[Any, ...]) -> None:
    staged = check(fn, *cases)
    assert staged.count("cond") == staged.count("while_loop") == 0
