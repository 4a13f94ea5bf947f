"""Small corners of the language, one program each: own types, state in loops, numbers, functions."""

from __future__ import annotations

import contextlib
import functools
import itertools
from typing import Any

import numpy as np
import pytest
from tests.frontend.battery import COUNTS, Battery, Function
from tests.frontend.staging import check

from mycelia import Tensor, nn, ops

program = Battery()


@program()
def nested_while_return(x: Tensor) -> Any:
    def f(v):
        while True:
            while v.sum() < 5:
                v = v + 3
                if v[0] > 100:
                    return v
            if v[0] > 2:
                return -v
            v = v * 2

    return f(x)


@program()
def match_seq(x: Tensor) -> Any:
    out = []
    for item in [("a", 1), ("b", x), [x, 2, 3], {"op": "add", "v": x}, 5, None, "s"]:
        match item:
            case (str(n), int(k)):
                out.append(k)
            case (str(n), t) if t.sum() > 0:
                out.append(t * 2)
            case (str(), t):
                out.append(t * 3)
            case [first, *rest]:
                out.append(first + sum(rest))
            case {"op": op, **kw}:
                out.append(kw["v"] if kw["v"][0] > 0 else -kw["v"])
            case int() | None as z:
                out.append(z)
            case _:
                out.append("other")
    return out


@program()
def match_tensor_number(x: Tensor) -> Any:
    def f(v):
        match v:
            case 1 | 2:
                return 10
            case 3.0:
                return 20
            case _ if v > 100:
                return 30
            case y:
                return 40

    return f(x[0]), f(x[1]), f(2), f(x.sum())


@program()
def match_nested_values(x: Tensor) -> Any:
    match (x[0], {"k": x[1]}):
        case (1.0, {"k": 2.0}):
            r = 1
        case (a, {"k": -2.0}) if a < 0:
            r = 2
        case (0 | 20.0, {"k": k}):
            r = 3
        case _:
            r = 4
    return r


@program()
def dunder_call_chain(x: Tensor) -> Any:
    class Seq:
        def __init__(s, *f):
            s.f = f

        def __call__(s, v):
            for g in s.f:
                v = g(v)
            return v

        def __getitem__(s, i):
            return s.f[i]

        def __len__(s):
            return len(s.f)

        def __matmul__(s, o):
            return Seq(*s.f, *o.f)

        def __or__(s, o):
            return Seq(*s.f, o)

    act = lambda v: v if v.sum() > 0 else v * 0.5
    s = Seq(act) @ Seq(lambda v: v - 1) | act
    return s(x), len(s), s[0](x), [g(x) for g in s]


@program()
def eq_user(x: Tensor) -> Any:
    class P:
        def __init__(s, v):
            s.v = v

        def __eq__(s, o):
            return (s.v == o.v).all()

        def __ne__(s, o):
            return not (s == o)

        __hash__ = None

    a, b = P(x), P(abs(x))
    return a == b, a != b, (1 if a == b else 2), b in [a], a not in (b, P(x))


@program()
def bool_user(x: Tensor) -> Any:
    class F:
        def __init__(s, v):
            s.v = v

        def __bool__(s):
            return s.v is not None

        def __len__(s):
            return 0

    return 1 if F(x) else 2, 3 if F(None) else 4, not F(x), F(x) and 5


@program()
def iter_user_class(x: Tensor) -> Any:
    class It:
        def __init__(s, n):
            s.n = n
            s.i = 0

        def __iter__(s):
            return s

        def __next__(s):
            if s.i >= s.n:
                raise StopIteration
            s.i += 1
            return x * s.i if x.sum() > 0 else x - s.i

    return [v for v in It(2)], sum(It(3)), next(It(1)), list(zip(It(2), "ab")), dict(enumerate(It(1)))


@program()
def format_user(x: Tensor) -> Any:
    class F:
        def __format__(s, spec):
            return f"F<{spec}>"

        def __repr__(s):
            return "F()"

        def __str__(s):
            return "f"

    return f"{F():x} {F()!r} {F()}", "{:a}".format(F()), str(F()), "%s" % F()


@program(*COUNTS)
def state_machine(n: Tensor) -> Any:
    state = "start"
    out = 0
    for k in range(4):
        if state == "start":
            state = "mid"
            out += 1
        elif state == "mid":
            if n > k:
                out += 10
            state = "end"
        else:
            out += 100
    return state, out


@program(*COUNTS)
def dyn_loop_obj(n: Tensor) -> Any:
    class Acc:
        def __init__(s):
            s.t = 0
            s.best = -1

        def add(s, v):
            s.t += v
            if v > s.best:
                s.best = v
            return s

    a = Acc()
    for i in range(n):
        b = Acc()
        b.add(i * 2).add(1)
        a.add(b.t)
    return a.t, a.best


@program(*COUNTS)
def loop_list_rebuild(n: Tensor) -> Any:
    l = [0, 0, 0]
    for i in range(n):
        l = [v + i for v in l]
        l = l[1:] + l[:1]
        l[0] = l[0] * 2
    return l


@program(*COUNTS)
def loop_dict_rebuild(n: Tensor) -> Any:
    d = {"a": 0, "b": 1.0}
    for i in range(n):
        d = {k: v + i for k, v in d.items()}
        d["a"] += 1
        d = {**d}
    return d


@program(*COUNTS)
def loop_bool_flags(n: Tensor) -> Any:
    found = False
    where = -1
    for i in range(n):
        if not found and i * i > 3:
            found, where = True, i
    return found, where


@program(*COUNTS)
def loop_none_then_tensor(n: Tensor) -> Any:
    y = None
    for k in range(3):
        y = n if y is None else y + k
    return y


@program(*COUNTS)
def prod_tuple_return_in_loop(n: Tensor) -> Any:
    def f():
        for i in range(n):
            if i == 2:
                return {"i": i, "l": [i, (i,)]}
        return {"i": -1, "l": [0, (5,)]}

    return f()


@program(*COUNTS)
def loop_calls_loop_fn(n: Tensor) -> Any:
    def g(k, acc):
        while k > 0:
            if acc > 50:
                return acc
            acc += k
            k -= 1
        return acc

    t = 0
    for i in range(n):
        t = g(i, t) + (1 if t > 3 else 0)
    return t


@program(*COUNTS)
def loop_in_cond_expr(n: Tensor) -> Any:
    def s(m):
        t = 0
        for i in range(m):
            t += i
        return t

    return s(n) if n > 2 else -s(n + 3), [s(k) if n > k else 0 for k in (1, 3)]


@program(*COUNTS)
def lazy_and_or_calls(n: Tensor) -> Any:
    calls = [0]

    def t(v):
        calls[0] += 1
        return v

    r = (n > 1 and t(n > 2) and t(n > 5)) or t(n < 1)
    return r, calls


@program(*COUNTS)
def aug_ops(n: Tensor) -> Any:
    a = n * 1
    a += 1
    a -= 2
    a *= 3
    a //= 2
    a %= 5
    a **= 2
    a &= 7
    a |= 8
    a ^= 3
    a <<= 1
    a >>= 1
    return a


@program(*COUNTS)
def bit_ops(n: Tensor) -> Any:
    return (
        n & 1,
        n | 4,
        n ^ 3,
        ~n,
        n << 2,
        n >> 1,
        -n,
        +n,
        abs(-n),
        divmod(n + 7, 3),
        n**2,
        2**n,
        (n + 1) / 2,
        7 // (n + 1),
    )


@program(*[(Tensor(list(p)),) for p in itertools.product([1.0, 2.0, 3.0], repeat=3)])
def sort_stable(x: Tensor) -> Any:
    items = [(x[0], "a"), (x[1], "b"), (x[2], "c")]
    n = [(x[0], 0), (x[1], 1), (x[2], 2)]
    return (
        [i for _, i in sorted(n, key=lambda p: p[0])],
        [i for _, i in sorted(n, key=lambda p: p[0], reverse=True)],
        sorted(x),
        sorted(x, reverse=True),
        max(n, key=lambda p: p[0])[1],
        min(n, key=lambda p: p[0])[1],
        sorted(n),
        max(n),
        min(n, default=0),
    )


@program()
def raise_in_generator(x: Tensor) -> Any:
    def g():
        for v in x:
            if v > 100:
                raise ValueError("big")
            yield v * 2

    return list(g())


@program()
def raise_in_called_loop(x: Tensor) -> Any:
    def chk(v):
        for k in range(3):
            if v[0] * k > 1000:
                raise RuntimeError
        return v

    return chk(x) if x.sum() > 0 else x


@program()
def helper_raises_python_caught_inside(x: Tensor) -> Any:
    def h(k):
        if k > 1:
            raise KeyError(k)
        return k

    if x.sum() > 0:
        try:
            v = h(2)
        except KeyError:
            v = 7
        y = x * v
    else:
        with contextlib.suppress(KeyError):
            h(5)
        y = x
    return y


@program()
def stopiteration_flow(x: Tensor) -> Any:
    it = iter([1])
    next(it)
    try:
        next(it)
    except StopIteration:
        y = x * 2
    return y


@program()
def cell_props(x: Tensor) -> Any:
    class Net(nn.Cell):
        def __init__(s):
            super().__init__()
            s.k = 2
            s.d = nn.ReLU()

        @property
        def scale(s):
            return s.k * 2

        def construct(s, x, *a, flag=False, **kw):
            if x.sum() > 0:
                x = x * s.scale
            return s.d(x) + kw.get("z", 0) + (1 if flag else 0) + sum(a)

    n = Net()
    return n(x), n(x, 1, 2, flag=True, z=3)


@program()
def seq_cells(x: Tensor) -> Any:
    cells = nn.SequentialCell(nn.ReLU(), nn.Tanh())
    l = nn.CellList([nn.ReLU(), nn.Sigmoid()])
    y = cells(x)
    for i, c in enumerate(l):
        if y.sum() > i:
            y = c(y)
    return y, len(l), l[-1](x)


@program()
def ops_funcs_passed(x: Tensor) -> Any:
    return (
        list(map(ops.relu, [x, -x])),
        functools.reduce(ops.add, [x, x, x]),
        functools.partial(ops.add, x)(1),
        [f(x) for f in (ops.relu, ops.abs, nn.ReLU())],
    )


@program()
def getitem_none_ellipsis(x: Tensor) -> Any:
    y = x[None, :, None]
    z = x[...]
    w = x[::1]
    if y.ndim == 3 and z[0] > 0:
        w = w * 2
    return y, z, w, x[[0, 1]], x[np.array([1, 0])]


@program()
def subclass_list_dict(x: Tensor) -> Any:
    class L(list):
        def total(s):
            return sum(s)

        def append(s, v):
            super().append(v * 2)

    class D(dict):
        def __missing__(s, k):
            s[k] = x * 0
            return s[k]

    l = L([x])
    d = D()
    if x.sum() > 0:
        l.append(x)
        d["a"] = d["a"] + 1
    else:
        l.append(-x)
        d["a"] = d["a"] - 1
    return l.total(), d["a"], len(l)


@program()
def ctx_class_nested(x: Tensor) -> Any:
    class T:
        stack = []

        def __enter__(s):
            T.stack.append(s)
            return len(T.stack)

        def __exit__(s, *a):
            T.stack.pop()

    with T() as a, T() as b:
        if x.sum() > 0:
            y = x * a
        else:
            y = x * b
    return y, len(T.stack)


@program()
def nested_lambda_cond(x: Tensor) -> Any:
    return (lambda f: lambda v: f(v) if v.sum() > 0 else v)(lambda u: u * 2 if u[0] > 5 else u * 3)(x)


@program()
def cond_default_none(x: Tensor, mask=None, *, bias=None) -> Any:
    y = x if mask is None else x * mask
    if bias is not None and bias.sum() > 0:
        y = y + bias
    return y


@program()
def multi_return_types(x: Tensor) -> Any:
    def f(v):
        if v.sum() > 0:
            return v, {"k": [v, 1]}, None
        return -v, {"k": [v, 2]}, None

    a, d, n = f(x)
    return a, d, n


@program(*COUNTS)
def accumulate_tensorlist_in_loop(n: Tensor) -> Any:
    xs = [n * 0, n * 0]
    for i in range(n):
        for k in range(2):
            xs[k] = xs[k] + i * (k + 1)
            if xs[k] > 6:
                break
    return xs


@program(*COUNTS)
def nested_def_in_loop(n: Tensor) -> Any:
    t = 0
    for i in range(n):

        def g(v):
            return v + i if v < 5 else v

        t = g(t)
    return t


@program(*COUNTS)
def while_else_break_flag(n: Tensor) -> Any:
    k = 0
    while k < 10:
        k += 1
        if k == n:
            r = "x"
            v = 1
            break
    else:
        v = 2
    return k, v


@program(*COUNTS)
def lists_of_lists_loop(n: Tensor) -> Any:
    m = [[n * 0] * 2 for _ in range(2)]
    for i in range(n):
        m[0][1] = m[0][1] + i
        m[1] = [v + 1 for v in m[1]]
        m[0], m[1] = m[1], m[0]
    return m


@program(*COUNTS)
def kwargs_pop_loop(n: Tensor) -> Any:
    def f(v, **kw):
        k = kw.pop("k", 1)
        kw["z"] = v
        return v * k + kw["z"]

    t = n * 0
    for i in range(n):
        t = t + f(i, k=2, q=1)
    return t


@program(*COUNTS)
def star_rest_loop(n: Tensor) -> Any:
    t = [1, 2, 3]
    s = n * 0
    for i in range(n):
        a, *r = t
        r[0] = r[0] + i
        s = s + r[0]
        q = t[1:]
        q.append(i)
        s = s + sum(q)
    return s


@pytest.mark.parametrize(("fn", "cases"), program.rows)
def test_corners(fn: Function, cases: tuple[Any, ...]) -> None:
    check(fn, *cases)
