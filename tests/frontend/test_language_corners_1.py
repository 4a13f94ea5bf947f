"""Small corners of the language, one program each: aliases, scopes, containers, loops."""

from __future__ import annotations

import dataclasses
import enum
import functools
from typing import Any

import pytest
from tests.frontend.battery import COUNTS, Battery, Function
from tests.frontend.staging import check

from mycelia import Tensor

program = Battery()


@program(*COUNTS)
def alias_in_loop2(n: Tensor) -> Any:
    a = [n]
    b = [n * 2]
    cur = a
    for i in range(n):
        cur, other = (a, b)
        cur[0] = cur[0] + other[0]
        a[0] = a[0] - 1
    return a, b, cur is a


@program()
def self_ref_obj(x: Tensor) -> Any:
    class Node:
        pass

    n = Node()
    n.me = n
    n.v = x
    n.children = [n]
    if x.sum() > 0:
        n.me.v = x * 2
    else:
        n.children[0].v = x * 3
    return n.v


@program()
def linked(x: Tensor) -> Any:
    class Node:
        def __init__(self, v, nxt=None):
            self.v, self.nxt = v, nxt

    head = None
    for i in range(3):
        head = Node(x * i, head)
    total = 0
    cur = head
    while cur is not None:
        if cur.v.sum() > 1:
            cur.v = cur.v + 1
        total = total + cur.v
        cur = cur.nxt
    return total


@program()
def global_counter(x: Tensor) -> Any:
    global _g
    _g = 0

    def inc():
        global _g
        _g += 1
        return _g

    if x.sum() > 0:
        inc()
        inc()
    else:
        inc()
    return _g


@program()
def kwonly_and_star(x: Tensor) -> Any:
    def f(a, *rest, k=2, **kw):
        if a.sum() > 0:
            return a * k + sum(rest)
        return a - kw.get("z", 0)

    return f(x, 1, 2, k=3, z=4), f(*[x, 1], **{"z": 5})


@program()
def yields_in_both(x: Tensor) -> Any:
    def gen():
        y = x
        for i in range(3):
            if y.sum() > 2:
                y = y - 1
            else:
                y = y + 2
            yield y
        return y

    def wrap():
        r = yield from gen()
        yield r * 2

    return list(wrap())


@program()
def star_expr(x: Tensor) -> Any:
    a, *b = [v * 2 if v > 0 else v for v in x]
    print_ = [*b, a]
    return print_, (*x,), {**{"a": a}}


@program()
def ternary_chain(x: Tensor) -> Any:
    return (1 if x[0] > 5 else 2 if x[0] > 0 else 3 if x[0] < 0 else 4), ("a" if x.ndim == 1 else "b")


@program()
def lambda_default_tensor(x: Tensor) -> Any:
    fs = [lambda v, k=k: v * k if v > k else v for k in range(3)]
    return [f(x[0]) for f in fs]


@program()
def nested_func_recursion_tensor(x: Tensor) -> Any:
    def f(v, n):
        return v if n == 0 else f(v * 2 if v.sum() > 1 else v - 1, n - 1)

    return f(x, 4)


@program()
def mutable_default(x: Tensor) -> Any:
    def f(v, acc={"n": 0}):
        acc["n"] += 1
        return v * acc["n"]

    if x.sum() > 0:
        y = f(x)
    else:
        y = f(f(x))
    return y


@program()
def bool_cast(x: Tensor) -> Any:
    b = bool(x.sum() > 0)
    return b, int(3.7), float(2), (x if b else -x)


@program()
def not_in_if(x: Tensor) -> Any:
    if not x.sum() > 0 and not (x[0] < -5 or x[1] > 5):
        return x + 1
    return x - 1


@program()
def ret_none(x: Tensor) -> Any:
    def f(v, log):
        log.append(1)
        if v.ndim == 1:
            return
        return v

    log = []
    return f(x, log), log


@program()
def early_none(x: Tensor) -> Any:
    log = [0]

    def f(v):
        if v.sum() > 0:
            log[0] = v[0]
            return
        log[0] = v[1]

    f(x)
    return log


@program()
def exc_in_python_branch(x: Tensor) -> Any:
    out = []
    for k in ("a", "b"):
        try:
            out.append({"a": x}[k])
        except KeyError as e:
            if x.sum() > 0:
                out.append(x * 2)
            else:
                out.append(-x)
        else:
            if x.sum() > 0:
                out[-1] = out[-1] + 1
    return out


@program()
def while_walrus(x: Tensor) -> Any:
    s = x.sum()
    n = 0
    while (t := s - n) > 1 and n < 5:
        n += 1
    return t, n


@program(*COUNTS)
def loop_var_rebind(n: Tensor) -> Any:
    for i in range(n):
        i = i * 2
        k = i
    else:
        k = -1
    return k


@program(*COUNTS)
def tuple_target(n: Tensor) -> Any:
    t = 0
    for i, (a, b) in enumerate([(1, 2), (3, 4)]):
        if n > i:
            t = t + a * b
    return t, i, a, b


@program(*COUNTS)
def list_target(n: Tensor) -> Any:
    slots = [0, 0]
    d = {}
    for slots[0] in range(3):
        if n > slots[0]:
            slots[1] += 1
    for d["k"] in range(2):
        pass
    return slots, d


@program(*COUNTS)
def with_tensor_while_in_try(n: Tensor) -> Any:
    try:
        i = 0
        while i < n:
            i += 1
            if i == 2:
                break
        else:
            i = i + 50
    finally:
        i = i + 1000
    return i


@program()
def dataclass_state(x: Tensor) -> Any:
    @dataclasses.dataclass
    class S:
        v: Any
        hist: list = dataclasses.field(default_factory=list)

        def push(self, k):
            self.hist.append(k)
            if self.v.sum() > 1:
                self.v = self.v - k
            return self

    s = S(x).push(1).push(2)
    if s.v.sum() > 0:
        s.push(3)
    else:
        s.push(4)
    return s.v, s.hist


@program()
def enum_state(x: Tensor) -> Any:
    class M(enum.Enum):
        A = 1
        B = 2

    m = M.A
    y = x
    for _ in range(3):
        if m is M.A:
            y = y + 1
            m = M.B
        elif y.sum() > 1:
            y = y * 2
        else:
            y = y - 1
    return y, m is M.B


@program()
def reduce_tensor(x: Tensor) -> Any:
    return functools.reduce(lambda a, b: a if (a > b) else b, x), functools.reduce(lambda a, b: a * 10 + b, [1, 2], x)


@program()
def any_all_gen(x: Tensor) -> Any:
    return (
        any(v > 1 for v in x),
        all(v > 0 for v in x),
        any([]),
        all(v is not None for v in x),
        (1 if any(v > 5 for v in x) else 2),
    )


@program()
def sum_gen_cond(x: Tensor) -> Any:
    return sum(v if v > 0 else -v for v in x), sum([x, x]), max(v for v in x), max(x[0], x[1], key=lambda v: -v)


@program()
def sorted_objs(x: Tensor) -> Any:
    class O:
        def __init__(s, v):
            s.v = v

        def __lt__(s, o):
            return s.v < o.v

    a = sorted([O(3), O(1)])
    return [o.v for o in a], [n for _, n in sorted([(x[0], 10), (x[1], 20)])]


@program()
def min_default(x: Tensor) -> Any:
    return min([], default=5), max(*x), min(x.shape), sorted((x[1], x[0]))[0]


@program()
def assert_multi(x: Tensor) -> Any:
    assert x.ndim == 1, "bad"
    assert (x == x).all()
    assert x.sum() > -1000 and x.sum() < 1000, f"range {x.sum()}"
    return x


@program()
def chained_cmp_in_while(x: Tensor) -> Any:
    i = 0
    while 0 <= i < 3 and x[0] <= 20:
        i += 1
    return i


@program()
def augment_nonlocal(x: Tensor) -> Any:
    n = x

    def f():
        nonlocal n
        n += 1
        if n.sum() > 3:
            n *= 2
        return n

    a = f()
    b = f()
    return a, b, n


@program()
def del_item_in_branch(x: Tensor) -> Any:
    d = {"a": x, "b": x * 2}
    l = [1, 2, 3]
    if x.sum() > 0:
        del d["b"]
        del l[0]
    else:
        d.pop("b")
        l.pop()
    return d, l


@program()
def ann_in_branch(x: Tensor) -> Any:
    if x.sum() > 0:
        y: Tensor = x * 2
    else:
        y: Tensor = x
    z: int
    return y


@program()
def mult_assign(x: Tensor) -> Any:
    a = b = c = x
    if x.sum() > 0:
        a = b = x * 2
    (d, e), [f] = (a, b), [c]
    return a, b, c, d, e, f


@program()
def tensor_methods_inplace(x: Tensor) -> Any:
    y = x * 1
    y[0] += 1
    y[1] *= 2
    if y[0] > 0:
        y[:] = y * 2
    y += 1
    return y


@program()
def format_in_dict(x: Tensor) -> Any:
    return {f"k{i}": x * i for i in range(2)}, "%d" % 3, "{:>4}".format("a")


@program()
def import_inside_branch(x: Tensor) -> Any:
    if x.sum() > 0:
        import math as m

        y = x * m.pi
    else:
        from math import e

        y = x * e
    return y


@program()
def comp_cond_expr_list(x: Tensor) -> Any:
    return (
        [[a if a > b else b for b in x] for a in x],
        {i: (v if v > 0 else -v) for i, v in enumerate(x)},
        {k for k in (1, 2)},
    )


@program()
def try_return_finally(x: Tensor) -> Any:
    log = [0]

    def f():
        try:
            if x.sum() > 0:
                return x
            return -x
        finally:
            log[0] += 1

    return f(), log


@program()
def property_set_in_loop(x: Tensor) -> Any:
    class A:
        def __init__(s):
            s._v = x
            s.n = 0

        @property
        def v(s):
            return s._v

        @v.setter
        def v(s, val):
            s._v = val
            s.n += 1

    a = A()
    i = 0
    while i < a.v.sum() and i < 4:
        a.v = a.v + 1
        i += 1
    return a.v, a.n, i


@program()
def functools_things(x: Tensor) -> Any:
    class A:
        def __init__(s):
            s.k = 3

        @functools.cached_property
        def tbl(s):
            return [s.k * 2 if x.ndim else 0]

        @functools.lru_cache
        def m(s, n):
            return x * n if n > 1 else x

        pm = functools.partialmethod(lambda s, a, b: s.k * a + b, 2)

        @functools.singledispatchmethod
        def d(s, v):
            return "o"

        @d.register
        def _(s, v: int):
            return "i" if v > 0 else "z"

        @d.register
        def _(s, v: Tensor):
            return v if v.sum() > 0 else -v

    a = A()
    return a.tbl, a.m(2), a.m(1), a.pm(5), a.d(1), a.d("s"), a.d(x)


@program()
def total_ordering(x: Tensor) -> Any:
    @functools.total_ordering
    class A:
        def __init__(s, v):
            s.v = v

        def __eq__(s, o):
            return s.v == o.v

        def __lt__(s, o):
            return s.v < o.v

    return A(1) <= A(2), A(3) > A(2), max(A(1), A(5)).v


@pytest.mark.parametrize(("fn", "cases"), program.rows)
def test_corners(fn: Function, cases: tuple[Any, ...]) -> None:
    check(fn, *cases)
