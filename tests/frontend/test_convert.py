"""Converted functions on Python values do what Python does, in every corner of the language."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import inspect
import linecache
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import mycelia as ms
from mycelia.frontend.convert import convert, unconverted_reason
from mycelia.frontend.source import locate


def same(fn: Callable[..., Any], *cases: tuple[Any, ...]) -> None:
    """The converted function is another one and gives the same results."""
    made = convert(fn)
    assert made is not fn
    for case in cases:
        assert made(*case) == fn(*case)


# -- what kind of function ---------------------------------------------------------------------------------


class Account:
    rate = 3

    def __init__(self) -> None:
        self.__secret = 5
        self.calls = 0

    def method(this, x: int, /, y: int = 2, *args: int, z: int = 4, **kw: int) -> Any:
        """A method whose first argument is not called self."""
        this.calls += 1
        if x > this.__secret and (q := x - 1) > 0:
            return q + this.__secret
        elif not x:
            return super().__repr__()[:3]
        return y, args, z, kw

    def __private(self, x: int) -> int:
        return x if x else self.__secret

    def through(self, x: int) -> int:
        return self.__private(x) + self.__secret

    @classmethod
    def of_class(cls, x: int) -> int:
        return cls.rate if x else -1

    @staticmethod
    def static(x: int) -> list[int]:
        return [i for i in range(x) if i % 2 or i > 3]


class Savings(Account):
    def method(self, x: int, /, *args: Any, **kw: Any) -> Any:
        return ("savings", super().method(x, *args, **kw)) if x else "none"


def test_methods_keep_signature_private_names_and_super() -> None:
    a, b = Account(), Account()
    for args, kw in (((9,), {}), ((0,), {}), ((1, 2, 3), {"z": 1, "r": 2})):
        assert convert(a.method)(*args, **kw) == b.method(*args, **kw)
    assert a.calls == 3
    made = convert(Account.method)
    assert made.__doc__ == "A method whose first argument is not called self."
    assert made.__qualname__ == made.__code__.co_qualname == "Account.method"
    assert inspect.signature(made) == inspect.signature(Account.method)
    assert made.__module__ == __name__
    assert convert(a.through)(0) == 10
    assert convert(Account.of_class)(1) == 3
    assert convert(Account.static)(8) == [1, 3, 4, 5, 6, 7]
    assert convert(Savings().method)(9) == ("savings", 13)


def test_nested_classes_mangle_with_their_own_name() -> None:
    def f(x: int) -> Any:
        class __Inner:
            def __init__(self) -> None:
                self.__v = x

            def get(self) -> int:
                return self.__v if self.__v > 1 else -self.__v

        made = __Inner()
        return made.get(), vars(made), __Inner.__qualname__.rpartition(".")[2]

    same(f, (1,), (3,))


def test_lambdas_on_one_line_are_told_apart() -> None:
    f, g, h = (lambda a: a if a else 1), (lambda a: not a), (lambda a: a if a else 2)
    assert [convert(k)(0) for k in (f, g, h)] == [1, True, 2]
    assert [convert(k)(5) for k in (f, g, h)] == [5, False, 5]
    pair = [lambda v: [w for w in v if w > 1], lambda v: [w for w in v if w > 2]]
    assert [convert(k)([1, 2, 3]) for k in pair] == [[2, 3], [3]]


def test_partials_and_callable_objects() -> None:
    def f(a: int, b: int, c: int = 0) -> Any:
        return (a, b, c) if a else None

    made = convert(functools.partial(f, 1, c=3))
    assert made(2) == (1, 2, 3)
    assert isinstance(made, functools.partial)


def test_decorated_functions_are_not_decorated_again() -> None:
    applied = []

    def noting(fn: Any) -> Any:
        applied.append(fn)

        @functools.wraps(fn)
        def wrapper(*args: Any) -> Any:
            return ("wrapped", fn(*args)) if args else None

        return wrapper

    @noting
    @noting
    def f(x: int) -> int:
        return x + 1 if x else 0

    assert len(applied) == 2
    assert convert(f)(1) == ("wrapped", ("wrapped", 2)) == f(1)
    assert len(applied) == 2


def test_defaults_are_shared_with_the_original() -> None:
    def f(x: int, seen: list[int] = [], *, more: dict[str, int] = {}) -> int:
        seen.append(x)
        more["n"] = len(seen) if seen else 0
        return more["n"]

    assert convert(f)(1) == 1
    assert f(1) == 2
    f.__defaults__ = ([5, 5, 5],)
    assert convert(f)(1) == 4


def test_closures_share_their_cells() -> None:
    def make() -> Any:
        count = 0

        def up(k: int) -> int:
            nonlocal count
            count += k if k else 1
            return count

        return up, lambda: count

    up, read = make()
    assert convert(up)(3) == 3
    assert up(0) == 4
    assert convert(read)() == 4


_total = 0


def _bump(k: int) -> int:
    global _total
    if k:
        _total += k
    return _total


def test_globals_are_the_modules_own() -> None:
    before = _total
    assert convert(_bump)(2) == before + 2
    assert _bump(1) == before + 3 == _total


def _down(n: int) -> Any:
    return [n, *_down(n - 1)] if n else []


@dataclasses.dataclass
class Tree:
    left: Any
    right: Any

    @classmethod
    def of(cls, n: int) -> Any:
        return Tree(Tree.of(n - 1), cls.of(n - 2)) if n > 1 else n

    def size(self) -> int:
        return sum(t.size() if isinstance(t, Tree) else 1 for t in (self.left, self.right) if t is not None)


def test_functions_and_classes_that_name_themselves() -> None:
    same(_down, (0,), (4,))
    assert convert(Tree.of).__func__ is not Tree.of.__func__
    assert convert(Tree.of)(5) == Tree.of(5)
    assert convert(Tree.of(4).size)() == 5


def test_recursion_and_mutual_recursion() -> None:
    def even(n: int) -> bool:
        return True if n == 0 else odd(n - 1)

    def odd(n: int) -> bool:
        if n == 0:
            return False
        return even(n - 1)

    same(even, (0,), (7,), (10,))


def test_coroutines_stay_as_they_are() -> None:
    async def f(x: int) -> int:
        await asyncio.sleep(0)
        return x if x else 1

    assert convert(f) is f
    assert asyncio.run(convert(f)(3)) == 3

    def g(x: int) -> Any:
        async def inner() -> int:
            async with contextlib.AsyncExitStack():
                return x if x else 1

        return asyncio.run(inner())

    same(g, (0,), (2,))


def test_what_is_not_the_users_is_left_alone() -> None:
    import json

    for fn in (len, int, json.dumps, ms.ops.add, dict.get, Account, 3, None, ms.Tensor):
        assert convert(fn) is fn


def test_a_function_with_nothing_to_rewrite_is_itself() -> None:
    def f(x: Any) -> Any:
        return x

    assert convert(f) is f
    assert unconverted_reason(f) is None


def test_conversion_is_kept() -> None:
    def f(x: int) -> int:
        return x if x else 1

    assert convert(f) is convert(f)
    assert convert(convert(f)) is convert(f)


def test_functions_without_source() -> None:
    scope: dict[str, Any] = {"__name__": "nowhere"}
    exec("def f(x):\n    return x if x else 1", scope)
    f = scope["f"]
    assert convert(f) is f
    assert "source" in str(unconverted_reason(f))
    assert convert(dataclasses.make_dataclass("D", ["a"]).__init__)


def _cell(source: str, name: str) -> Any:
    """Run source as a notebook does: its lines are known to linecache only."""
    filename = f"<cell {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, filename, "exec"), scope)
    return scope[name]


def test_functions_of_a_notebook() -> None:
    f = _cell("import math\n\ndef f(x):\n    if x: return math.floor(x)\n    return -1\n", "f")
    same(f, (2.5,), (0,))


def test_a_changed_source_is_noticed() -> None:
    f = _cell("def f(x):\n    return abs(x) if x else 1\n", "f")
    lines = ["def f(x):\n", "    return round(x) if x else 1\n"]
    linecache.cache["<cell f>"] = (1, None, lines, "<cell f>")
    assert locate(f.__code__, f.__globals__) is None
    assert convert(f) is f
    assert f(-2) == 2


def test_future_imports_are_kept() -> None:
    f = _cell(
        "from __future__ import annotations\n\ndef f(x):\n    def g(y: undefined_name) -> nowhere: return y\n"
        "    return g(x) if x else g.__annotations__\n",
        "f",
    )
    same(f, (1,), (0,))


# -- statements --------------------------------------------------------------------------------------------


def test_loops_with_every_jump() -> None:
    def f(p: int) -> Any:
        out = []
        while True:
            out.append(p)
            if p > 3:
                break
            p += 1
        else:
            out.append(-1)
        for i in range(5):
            if i == p - 2:
                continue
            if i == p:
                return "in the loop", out
            out.append(i)
        else:  # noqa: PLW0120
            out.append(-2)
        while p > 0:
            p -= 3
            if p == 1:
                continue
            for j in (1, 2, 3):
                if j == p:
                    break
                out.append(j)
            else:
                continue
            out.append(-3)
        else:  # noqa: PLW0120
            out.append(-4)
        return out, i, j

    same(f, *[(k,) for k in range(-1, 8)])


def test_try_with_everything() -> None:
    def f(k: int) -> Any:
        log: list[Any] = []
        try:
            with contextlib.suppress(ZeroDivisionError), contextlib.nullcontext(4) as n:
                log.append(n)
                if k == 1:
                    log.append(1 / 0)
                if k == 2:
                    raise KeyError("two")
                if k == 3:
                    return "three", log
                log.append("end")
            for i in range(k):
                try:
                    if i == 5:
                        break
                    if i == 4:
                        continue
                    if i == 6:
                        raise ValueError(i)
                finally:
                    log.append(i)
        except KeyError as error:
            log.append(repr(error))
            if k:
                return log
        else:
            log.append("else")
        finally:
            log.append("finally")
        return log

    same(f, *[(k,) for k in range(9)])


def test_exception_groups() -> None:
    def f(k: int) -> Any:
        found = []
        try:
            if k:
                raise ExceptionGroup("two", [ValueError(1), TypeError(2)])
        except* ValueError as group:
            found.append(len(group.exceptions))
        except* TypeError:
            found.append("type")
        return found

    same(f, (0,), (1,))


def test_raise_from_and_reraise() -> None:
    def f(k: int) -> None:
        try:
            if k:
                raise KeyError("a") from ValueError("cause")
        except KeyError:
            if k > 1:
                raise RuntimeError("b") from None
            raise

    made = convert(f)
    with pytest.raises(KeyError) as caught:
        made(1)
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(RuntimeError) as other:
        made(2)
    assert other.value.__suppress_context__
    made(0)


def test_match() -> None:
    @dataclasses.dataclass
    class Point:
        x: int
        y: int

    def f(v: Any) -> Any:
        match v:
            case 1 | 2:
                found: Any = "low"
            case [a, *rest] if a > 0:
                found = (a, rest)
            case {"k": z, **more}:
                found = (z, more)
            case Point(x=0) | Point(y=0):
                found = "axis"
            case Point(x, y) as p:
                if x == y:
                    return p
                found = x - y
            case str():
                found = v
            case _:
                return "other"
        return found

    same(f, (1,), ([1, 2, 3],), ([0, 1],), ({"k": 7, "m": 1},), ("s",), (None,))
    same(f, (Point(0, 3),), (Point(2, 2),), (Point(3, 2),))


def test_generators() -> None:
    def numbers(n: int) -> Any:
        total = 0
        for i in range(n):
            if i == 2:
                continue
            got = yield i
            if got:
                total += got
        else:  # noqa: PLW0120
            yield "else"
        try:
            yield "before"
        except ValueError as error:
            yield str(error)
        finally:
            total += 100
        inner = yield from (j for j in range(3) if j != 1)
        return total, inner

    def drive(gen: Any) -> list[Any]:
        out = [next(gen), gen.send(5), gen.send(6), next(gen), next(gen), gen.throw(ValueError("thrown"))]
        out += [next(gen), next(gen)]
        with pytest.raises(StopIteration) as stop:
            next(gen)
        return [*out, stop.value.value]

    assert drive(convert(numbers)(4)) == drive(numbers(4))
    closed = convert(numbers)(3)
    next(closed)
    closed.close()


def test_comprehensions_and_lambdas() -> None:
    def f(n: int) -> Any:
        k = 10
        nested = [[i * j + k for j in range(i) if j % 2 == 0 or i > 3] for i in range(n) if i != 1 if i < 5]
        table = {a: b for a, b in zip("abc", range(n), strict=False) if b and not b == 2}
        fns = [lambda v, w=w: v if v > w else -w for w in range(3)]
        total = sum(x if x > 1 else 0 for x in range(n))
        flags = {x for x in (1, 2, 3) if 0 < x < 3}
        return nested, table, [g(1) for g in fns], total, flags, (lambda *a, **kw: (a, kw) if a else kw)(1, z=2)

    same(f, (0,), (3,), (6,))


def test_walrus_everywhere() -> None:
    def f(xs: list[int]) -> Any:
        while (n := len(xs)) > 1 and (last := xs[-1]) > 0:
            xs = xs[:-1]
        kept = [y for x in xs if (y := x + 1)]
        a = (b := 3) if not xs else (c := 4)
        d = (xs and (e := xs[0])) or (e := -1)
        if (m := n) > 5 or (m := 7) > 6:
            pass
        return n, last, kept, y, a, d, e, m

    same(f, ([1, 2, 3],), ([1, 0],), ([1, -1],))

    def g(xs: list[int]) -> Any:
        first = (b := 3) if not xs else (c := 4)
        return first, "b" in locals(), "c" in locals()

    same(g, ([],), ([1],))


def test_boolean_values_not_only_truth() -> None:
    def f(a: Any, b: Any) -> Any:
        return a and b, a or b, not a, (a and b) or "none", (a or b) and [a], 0 < len(b) <= 3 != 4, a in b, a not in b

    same(f, (0, []), (1, [1]), ("", "abc"), ([], [[]]))


def test_unbound_variables_raise_as_python_does() -> None:
    def f(c: int) -> Any:
        if c > 0:
            y = 1
        for k in range(c):
            z = k
        try:
            return y + z
        except UnboundLocalError as error:
            return type(error).__name__, str(error)

    same(f, (0,), (2,))

    def g(c: int) -> Any:
        x = 1
        if c:
            del x
        return x

    assert convert(g)(0) == 1
    with pytest.raises(UnboundLocalError):
        convert(g)(1)


def test_names_bound_in_dead_code_are_local() -> None:
    def f(c: int) -> Any:
        if c:
            return locals()
        return len
        len = 3

    made = convert(f)
    assert made(1) == {"c": 1}
    with pytest.raises(UnboundLocalError):
        made(0)

    def g(c: int) -> Any:
        if c:
            return
        return
        yield c

    assert list(convert(g)(1)) == []


def test_locals_show_only_the_users_names() -> None:
    def f(a: int) -> Any:
        b = 2
        for _ in range(a):
            c = 3
        if a:
            return sorted(locals()), sorted(vars())
        return eval("a + b"), sorted(locals())

    same(f, (0,), (1,))


def test_assignments_of_every_kind() -> None:
    def f(k: int) -> Any:
        a, (b, *c) = 1, [2, 3, 4]
        d = e = [0] * 3
        d[0], e[1:] = k, [5, 6]
        d[k % 3] += 10
        x: int = 4 if k else 5
        y: int
        for d[2], z in ((7, 8), (9, k)):
            pass
        with contextlib.nullcontext((1, 2)) as (p, q):
            x <<= p
        holder = Account()
        holder.calls, holder.extra = 3, [1]  # type: ignore[attr-defined]
        holder.calls += k
        holder.extra += [k]  # type: ignore[attr-defined]
        del holder.extra[0], e[0]  # type: ignore[attr-defined]
        import os.path as path
        import sys as system
        from math import pi

        y = len(path.sep) if system else 0
        return a, b, c, d, e, x, y, z, p, q, holder.calls, holder.extra, pi, e is d  # type: ignore[attr-defined]

    same(f, (0,), (1,), (5,))


def test_assert_and_messages() -> None:
    def f(x: int) -> int:
        assert x > 0, f"{x} is not positive"
        assert isinstance(x, int)
        return x

    assert convert(f)(1) == 1
    with pytest.raises(AssertionError, match="-1 is not positive"):
        convert(f)(-1)


def test_long_chains_of_conditions() -> None:
    returns = "".join(f"    if n == {k}:\n        return {k} * x\n" for k in range(150))
    f = _cell(f"def f(x, n):\n{returns}    return x\n", "f")
    same(f, (2, 0), (2, 149), (2, 150))
    links = "".join(f"    elif n == {k}:\n        r = {k} * x\n" for k in range(1, 400))
    chain = f"    if n == 0:\n        r = x\n{links}"
    g = _cell(f"def g(x, n):\n{chain}    else:\n        r = None\n    return r\n", "g")
    same(g, (2, 0), (2, 399), (2, 400))


# -- seen from outside -------------------------------------------------------------------------------------


def test_tracebacks_show_the_users_lines() -> None:
    def inner(x: int) -> float:
        if x:
            return 1 / (x - x)
        return 0.0

    def outer(x: int) -> float:
        for _ in range(2):
            if x > 1 or x:
                x = int(inner(x))
        return x

    def shown(fn: Any) -> list[tuple[int | None, str, str | None]]:
        with pytest.raises(ZeroDivisionError) as caught:
            fn(1)
        frames = traceback.extract_tb(caught.value.__traceback__)
        return [(f.lineno, f.name, f.line) for f in frames if f.filename == __file__ and f.name != "shown"]

    assert shown(convert(outer)) == shown(outer)


def test_a_debugger_sees_the_users_lines() -> None:
    def f(x: int) -> int:
        if x > 1:
            x = x + 1
        else:
            x = x - 1
        return x

    def lines(fn: Any) -> list[int]:
        seen: list[int] = []

        def trace(frame: Any, event: str, arg: Any) -> Any:
            if frame.f_code.co_name == "f" and event == "line":
                seen.append(frame.f_lineno)
            return trace

        sys.settrace(trace)
        try:
            fn(3)
        finally:
            sys.settrace(None)
        return list(dict.fromkeys(seen))

    assert set(lines(f)) <= set(lines(convert(f)))
