"""What Python calls by itself where tensors decide: operators, properties, iteration, contexts, builtins."""

from __future__ import annotations

from typing import Any

import pytest
from tests.frontend.battery import COUNTS, Battery, Function, total
from tests.frontend.staging import check

import mycelia as ms
from mycelia import Tensor

program = Battery()


# -- own types -------------------------------------------------------------------------------------------------


class Signed:
    """A class every protocol of which asks for a tensor's value, or changes the object."""

    def __init__(self, v: Tensor) -> None:
        self._v = v
        self.log: dict[str, Any] = {"n": 0}

    @property
    def magnitude(self) -> Tensor:
        if self._v.sum() > 0:
            return self._v
        return -self._v

    @property
    def v(self) -> Tensor:
        return self._v

    @v.setter
    def v(self, value: Tensor) -> None:
        self.log["n"] += 1
        self._v = value if value[0] > 0 else value * 0.5

    def __add__(self, other: Any) -> Signed:
        return Signed(self._v + other if self._v[0] > 0 else self._v - other)

    def __radd__(self, other: Any) -> Signed:
        return self + other

    def __neg__(self) -> Signed:
        return Signed(-self._v if self._v[1] > 0 else self._v)

    def __iadd__(self, other: Any) -> Signed:
        self.log["n"] = self.log["n"] + 10
        self._v = self._v + other
        return self

    def __getitem__(self, i: int) -> Tensor:
        return self._v[i] if self._v[i] > 0 else self._v[i] * 0

    def __setitem__(self, i: int, value: Any) -> None:
        self.log["n"] += 100
        self._v = self._v * value if self._v[i] > 0 else self._v

    def __lt__(self, other: Signed) -> Any:
        return self._v.sum() < other._v.sum() if self._v[0] > 0 else other._v[0] > 0

    def __iter__(self) -> Any:
        for k in range(2):
            if self._v.sum() > 0:
                row = self._v * k
            else:
                row = self._v - k
            yield row

    def __len__(self) -> int:
        self.log["n"] += 1000
        return 2

    def __enter__(self) -> Tensor:
        self.log["n"] = self.log["n"] + 1
        return self._v if self._v.sum() > 0 else -self._v

    def __exit__(self, *_: Any) -> None:
        if self._v.sum() > 0:
            self._v = self._v + 1

    def __contains__(self, item: Any) -> Any:
        self.log["n"] += 5
        return True

    def __bool__(self) -> bool:
        self.log["n"] += 7
        return True

    def __call__(self, x: Tensor) -> Tensor:
        return x if x.sum() > 0 else self._v * x


@program(grad=True)
def properties_that_branch(x: Tensor) -> Any:
    s = Signed(x)
    s.v = s.magnitude - 1
    return s.v, s.magnitude, s.log["n"]


@program(grad=True)
def operators_that_branch(x: Tensor) -> Any:
    s = Signed(x)
    t = -(s + 1)
    s += 2
    return t.v, s.v, (3 + s).v, s[0], s[1], (1 if s < t else 2), s.log["n"]


@program(grad=True)
def iteration_that_branches(x: Tensor) -> Any:
    s = Signed(x)
    a, b = s
    return a, b, [v + 1 for v in s], sum(s), list(s), [v for v in map(s, s)], max(v.sum() for v in s), len(s)


@program(grad=True)
def contexts_that_branch(x: Tensor) -> Any:
    s = Signed(x)
    with s as y:
        if y.sum() > 3:
            y = y * 2
    with s, Signed(x * 2) as z:
        pass
    return y, z, s.v, s.log["n"]


@program(grad=True)
def protocols_that_change_objects_in_a_branch(x: Tensor) -> Any:
    s, t, u = Signed(x), Signed(x * 2), Signed(x)
    if x.sum() > 0:
        s.v = x * 3
        t[0] = 2.0
        u += 1
    else:
        t += 5
        s[1] = 3.0
        n = len(u)
        with t:
            if u and 3 in u:
                u.v = u.v * n
    return s.v, s.log["n"], t.v, t.log["n"], u.v, u.log["n"]


@program(*COUNTS)
def protocols_that_change_objects_in_a_loop(n: Tensor) -> Any:
    s = Signed(Tensor([1.0, 2.0]))
    for i in range(n):
        s.v = s.v + i
        s += 1
        if i > 2:
            s[0] = 2.0
    return s.v, s.log["n"]


# -- builtins --------------------------------------------------------------------------------------------------


@program(grad=True)
def builtins_with_tensors(x: Tensor) -> Any:
    a, b = x[0], x[1]
    return (
        max(a, b), min(a, b, 1.5), max([a, b], key=lambda v: -v), max([b, a], default=3), min(x), max(x), sum(x),
        sum([a, b], 5), any(v > 2 for v in x), all([a > 0, b > 0]), abs(a), len(x), round(a), pow(a, 2), divmod(a, 3),
        list(map(lambda v: v if v > 0 else v * 2, x)), [*filter(lambda v: v is not None, [a, None])],
        list(zip(x, [1, 2])), list(enumerate(x)), list(reversed(x)), isinstance(a, Tensor), type(a) is Tensor,
        bool(x.ndim), tuple(x), list(x), {"k": a}, [a, b][::-1], x[-1], x[None], x.shape[0], range(len(x))[1],
    )  # fmt: skip


@program(grad=True)
def sorted_by_tensors(x: Tensor) -> Any:
    a, b = x[0], x[1]
    c = x.sum() / 2
    return (
        sorted([a, b, c]), sorted([a, b, c], reverse=True), sorted(x, key=lambda v: -v),
        sorted([(b, 1), (a, 2), (c, 3)], key=lambda p: p[0]), sorted([3, 1, 2], key=lambda k: -k),
        sorted(["b", "a"]), sorted([b, a, b, a, c], key=lambda v: v * v),
    )  # fmt: skip


@program(grad=True)
def lists_sorted_in_place(x: Tensor) -> Any:
    items = [x[1], x[0], x.sum()]
    items.sort()
    pairs = [(x[1], 1), (x[0], 2)]
    pairs.sort(key=lambda p: p[0], reverse=True)
    names = ["b", "a"]
    names.sort()
    return items, pairs, names


@program(grad=True)
def isinstance_decides_in_python(x: Tensor) -> Any:
    def lift(v: Any) -> Any:
        if isinstance(v, Tensor) and v.ndim > 0 and v.sum() > 0:
            return v * 2
        if isinstance(v, (list, tuple)):
            return [lift(u) for u in v]
        return v

    return lift(x), lift([x, (1, x)]), lift("s")


@program(grad=True)
def higher_order_functions(x: Tensor) -> Any:
    def twice(f: Function) -> Function:
        return lambda v: f(f(v))

    def clip(v: Tensor) -> Tensor:
        return v if v.sum() < 4 else v * 0.5

    return twice(twice(clip))(x), [f(x) for f in (clip, twice(clip), lambda v: v + 1 if v[0] > 0 else v)]


@program(grad=True)
def recursion_with_tensor_branches(x: Tensor) -> Any:
    def descend(v: Tensor, depth: int) -> Tensor:
        if depth == 0:
            return v
        if v.sum() > 2:
            return descend(v / 2, depth - 1)
        return descend(v + 1, depth - 1) * 2

    return descend(x, 3)


@program(grad=True)
def generators_with_tensor_branches(x: Tensor) -> Any:
    def scan(step: Function, v: Tensor, n: int) -> Any:
        for k in range(n):
            v = step(v, k)
            if v.sum() > 5:
                v = v - 5
            yield v

    return list(scan(lambda v, k: v * 2 if k % 2 else v + 1, x, 4)), sum(scan(lambda v, k: v + k, x, 2))


@program(grad=True)
def errors_of_python_inside_branches(x: Tensor) -> Any:
    try:
        if x.sum() > 0:
            y = x * {"a": 2}["a"]
        else:
            y = -x
    except KeyError:
        y = x
    finally:
        y = y + 1
    return y


@pytest.mark.parametrize(("fn", "cases"), program.rows)
def test_protocols(fn: Function, cases: tuple[Any, ...]) -> None:
    check(fn, *cases)


@pytest.mark.parametrize(("fn", "cases"), program.differentiable)
def test_gradients(fn: Function, cases: tuple[Any, ...]) -> None:
    gradient = ms.grad(lambda x: total(fn(x)))
    check(lambda x: gradient(x), *cases)
