"""Data of every kind in a staged program, and code that belongs to others."""

from __future__ import annotations

import collections
import dataclasses
import math
import re
import string
import typing
from typing import Any

import numpy as np
import pytest
from tests.frontend.battery import Battery, Checked, Color, Config, Feature, Function, Level, Pair, Point, State
from tests.frontend.staging import check

from mycelia import Tensor

program = Battery()


# -- data types ------------------------------------------------------------------------------------------------


@program()
def dataclasses_of_every_kind(x: Tensor) -> Any:
    config, state = Config(width=3), State(x)
    wider = dataclasses.replace(config, rate=0.25)
    for _ in range(config.width):
        state = state.advanced(x * wider.rate)
    checked = Checked(x)
    try:
        config.width = 5  # type: ignore[misc]
    except dataclasses.FrozenInstanceError:
        frozen = True
    return state, wider, config == Config(3), checked, frozen, [f.name for f in dataclasses.fields(Checked)]


@program()
def named_tuples(x: Tensor) -> Any:
    p, q = Point(x), Pair(left=x, right=2)
    a, b = p
    return p, q, a, b, p._replace(y=3), q.total, q._asdict(), p == Point(x, 0), Pair._fields, q[1]


@program()
def enums(x: Tensor) -> Any:
    chosen = Color["RED"] if Level.HIGH > Level.LOW else Color(2)
    flags = Feature.A | Feature.C
    return (
        chosen, x * chosen.weight, [c.name for c in Color], Level(3) + 1, Feature.B in flags, bool(flags & Feature.C),
        {Color.RED: x}[chosen], chosen is Color.RED,
    )  # fmt: skip


@program()
def strings(x: Tensor) -> Any:
    name, n = "layer", 3
    text = f"{name!r:>10}|{n:03d}|{n / 7:.3f}|{x.shape}|{x.dtype}|{n=}|{'a' if n > 2 else 'b'}|{n:{n}}"
    parts = "a, b;c".replace(";", ",").split(",")
    return (
        text, "%s-%d" % (name, n), "{0}{k}".format(name, k=n), [p.strip().title() for p in parts], name[::-1][1:3],
        "-".join(map(str, range(3))), name.encode(), re.sub(r"[aeiou]", "_", name), "ay" in name, name < "m",
        string.Template("$x!").substitute(x=1), name.partition("y"), "x" * 3, b"ab"[0], ord("a"), chr(98),
    )  # fmt: skip


@program()
def dictionaries(x: Tensor) -> Any:
    d = {"a": x, "b": 2}
    d.update(c=3)
    d.setdefault("e", []).append(5)
    d |= {"f": 6}
    popped = d.pop("b"), d.pop("none", None)
    by_name = collections.defaultdict(list)
    for k, v in d.items():
        by_name[type(v).__name__].append(k)
    counter = collections.Counter("abca")
    counter.update("a")
    ordered = collections.OrderedDict(z=1, a=x)
    ordered.move_to_end("z")
    chained = collections.ChainMap({"k": 1}, {"k": 2, "m": x})
    return (
        d, popped, sorted(by_name["int"]), counter["a"], list(ordered), chained["m"], "a" in d, d.get("zz", -1),
        dict(zip("ab", [1, x])), {v: k for k, v in {"p": 1}.items()}, list(reversed(d)), len(d), d.keys() & {"a"},
    )  # fmt: skip


@program()
def sets(x: Tensor) -> Any:
    s = {1, 2, 3}
    s.add(4)
    s -= {1}
    s |= {9}
    f = frozenset("ab")
    return sorted(s), 2 in s, s & {2, 9}, s ^ {2}, s >= {9}, f | {"c"}, x * len(s), s.isdisjoint({7}), {*s} - {2}


@program()
def lists_and_slices(x: Tensor) -> Any:
    a = list(range(8))
    a[2:4] = [x]
    a[::3] = [-1, -2, -3]
    a.insert(0, "s")
    a.extend((1, 2))
    a.remove(1)
    b = a[1:]
    b[-1:] = []
    a += [7]
    last = a.pop()
    c = [[0] * 2 for _ in range(2)]
    c[1][0] = x
    a[1] += 1
    return a, b, last, c, a[slice(1, None, 2)], x[::1][0], [1, 2] * 2, [3, 1, 2].index(1), sorted([3, 1], reverse=True)


@program()
def deques_arrays_and_bytes(x: Tensor) -> Any:
    d = collections.deque([1, x], maxlen=3)
    d.append(3)
    d.appendleft(0)
    d.rotate(1)
    data = bytearray(b"abc")
    data[0] = 122
    data += b"d"
    return list(d), bytes(data), memoryview(b"xyz")[1], int.from_bytes(b"\x01\x00", "big"), (5).bit_length()


@program()
def numbers_and_bits(x: Tensor) -> Any:
    n = 0b1011
    flags = n & ~2 | (1 << 4) ^ 3
    a = 7 // 2, -7 // 2, 7 % -3, divmod(17, 5), 2**10, 2**-1, round(2.567, 2), abs(-3), pow(3, 4, 5), int("ff", 16)
    b = math.sqrt(16), math.isclose(0.1 + 0.2, 0.3), 1_000, 1e-3, 3 + 4j, (3 + 4j).real, float("inf") > 5, 10 > 5 > 2
    n <<= 2
    n |= 1
    n **= 2
    n //= 3
    n %= 100
    return flags, a, b, n, x * math.pi, bool(n) is not False, None is None, n in (1, 2), not n


@program()
def builtins_of_python(x: Tensor) -> Any:
    rows = [("b", 2), ("a", 3), ("c", 1)]
    return (
        sorted(rows, key=lambda r: r[1]), max(rows, key=lambda r: r[1]), min(3, 1), sum([[1], [2]], []),
        list(map(lambda a, b: a * b, [1, 2], [x, x])), list(filter(None, [0, 1, ""])), list(enumerate("ab", 1)),
        list(zip([1, 2], "ab", strict=True)), list(reversed([1, x])), all(v for v in [1, 2]), any([]),
        len(x), list(range(len(x))), isinstance(x, (int, Tensor)), callable(len), tuple("ab"), str(5), repr("a"),
        type(x).__name__, issubclass(bool, int), next(iter([4])), id(x) == id(x), hash("a") == hash("a"), bin(5),
        format(3.14159, ".2f"), slice(1, 2), next(iter([]), "none"), getattr(x, "shape"), list(iter([1, 2, 3])),
    )  # fmt: skip


@program()
def is_and_in(x: Tensor) -> Any:
    y = x
    return x is y, x is not None, y is x * 1, None in [None], 2 not in (1,), "a" in {"a": 1}, x is x is y, [] is not []


@program()
def conditional_and_boolean_values(x: Tensor) -> Any:
    empty: list[Any] = []
    name = empty or "default"
    both = name and len(name)
    return name, both, None or 0 or "", 1 and 2 and 3, not empty, x if name else None, (empty and x) or both, 1 < 2 < 3


# -- others' code ----------------------------------------------------------------------------------------------


@program()
def numpy_on_constants(x: Tensor) -> Any:
    grid = np.arange(6, dtype=np.float32).reshape(2, 3)
    mask = np.where(grid > 2, 1.0, 0.0).astype(np.float32)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=2).astype(np.float32)
    weights = np.linalg.norm(grid, axis=0)
    if weights.max() > 1 and mask.any():
        weights = weights / weights.max()
    return Tensor(mask) * 2, x * Tensor(noise), float(weights[0]), int(np.prod(x.shape)), grid[1, 1] > 3


@program()
def local_imports(x: Tensor) -> Any:
    import heapq
    import os.path as path
    from bisect import bisect_left

    heap = [5, 1, 3]
    heapq.heapify(heap)
    heapq.heappush(heap, 0)
    return heapq.heappop(heap), bisect_left([1, 3, 5], 4), path.join("a", "b"), x


@program()
def type_hints_and_generics(x: Tensor) -> Any:
    T = typing.TypeVar("T")

    class Stack(typing.Generic[T]):
        def __init__(self) -> None:
            self.items: list[T] = []

        def push(self, item: T) -> typing.Self:
            self.items.append(item)
            return self

    @typing.overload
    def get(v: int) -> int: ...
    @typing.overload
    def get(v: str) -> str: ...
    def get(v: Any) -> Any:
        return typing.cast("Any", v)

    stack: Stack[Any] = Stack[Any]().push(x).push(2)
    return stack.items, get("a"), get(1)


@program()
def docstrings_and_ellipsis(x: Tensor) -> Any:
    """A docstring."""

    def stub(v: Any) -> Any:
        """Another."""
        ...

    "a string on its own"
    ...
    pass
    return x[..., None], stub(1), stub.__doc__, ... is Ellipsis


@pytest.mark.parametrize(("fn", "cases"), program.rows)
def test_python(fn: Function, cases: tuple[Any, ...]) -> None:
    staged = check(fn, *cases)
    assert staged.count("cond") == staged.count("while_loop") == 0
