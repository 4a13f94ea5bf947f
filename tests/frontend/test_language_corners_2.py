"""Small corners of the language, one program each: builtins, contexts, errors, patterns."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import pytest
from tests.frontend.battery import COUNTS, Battery, Function
from tests.frontend.staging import check

import mycelia as ms
from mycelia import Tensor, ops

program = Battery()


@program()
def iter_next_sentinel(x: Tensor) -> Any:
    it = iter([x, x * 2])
    out = []
    while (v := next(it, None)) is not None:
        out.append(v if v.sum() > 2 else v - 1)
    return out


@program()
def zip_strict_star(x: Tensor) -> Any:
    rows = [(1, x), (2, x * 2)]
    a, b = zip(*rows)
    return (
        a,
        b,
        list(itertools.zip_longest([1], [2, 3])),
        list(itertools.starmap(lambda p, q: p * q if q.sum() > 0 else q, rows)),
    )


@program()
def generator_pipeline(x: Tensor) -> Any:
    def src():
        for v in x:
            yield v

    def f(g):
        for v in g:
            if v > 0:
                v = v * 2
            else:
                v = v - 1
            yield v

    return list(f(f(src()))), sum(f(src()))


@program(*COUNTS)
def range_neg(n: Tensor) -> Any:
    t = 0
    for i in range(n, 0, -1):
        t = t * 10 + i
    for i in range(5):
        if i >= n:
            break
        t += i
    return t


@program(*COUNTS)
def while_list_pop(n: Tensor) -> Any:
    stack = [n, n + 1, n + 2]
    t = 0
    while stack:
        v = stack.pop()
        if v > 2:
            t = t + v
        else:
            t = t - 1
    return t


@program(*COUNTS)
def loop_tuple_state(n: Tensor) -> Any:
    st = (0, (1.0, True))
    for i in range(n):
        a, (b, c) = st
        st = (a + i, (b * 2, not c))
    return st


@program(*COUNTS)
def loop_none_state(n: Tensor) -> Any:
    best = None
    last = n
    for i in range(4):
        if best is None:
            best = last * i
        elif last * i > best:
            best = last * i
    return best


@program(*COUNTS)
def fib_dyn(n: Tensor) -> Any:
    a, b = 0, 1
    while n > 0:
        a, b = b, a + b
        n = n - 1
    return a, b


@program(*COUNTS)
def collatz(n: Tensor) -> Any:
    n = n + 1
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@program(*COUNTS)
def gcd(n: Tensor) -> Any:
    a, b = n * 6 + 12, n * 4 + 8
    while b:
        a, b = b, a % b
    return a


@program(*COUNTS)
def is_prime(n: Tensor) -> Any:
    n = n + 2
    for d in range(2, n):
        if d * d > n:
            break
        if n % d == 0:
            return False
    return True


@program(*COUNTS)
def inner_func_with_loop(n: Tensor) -> Any:
    def count(m):
        c = 0
        for i in range(m):
            if i % 2:
                continue
            c += 1
        return c

    t = 0
    for i in range(n):
        t += count(i)
    return t


@program(*COUNTS)
def try_except_in_for_tensor(n: Tensor) -> Any:
    t = 0
    for i in range(n):
        try:
            if i == 1:
                raise_ = 0
            t += [1, 2][0]
        except IndexError:
            t = -1
        finally:
            t += 10
    return t


@program()
def set_of_python_in_loop(x: Tensor) -> Any:
    seen = set()
    out = []
    for k in [1, 2, 1]:
        if k in seen:
            continue
        seen.add(k)
        out.append(x * k if x.sum() > k else x)
    return out, sorted(seen)


@program()
def closure_over_loopvar_tensor(x: Tensor) -> Any:
    fs = []
    for i in range(3):
        v = x * i
        fs.append(lambda: v if v.sum() > 0 else -v)
    return [f() for f in fs]


@program()
def conditional_method(x: Tensor) -> Any:
    class A:
        def f(self, v):
            return v * 2

        def g(self, v):
            return v if v.sum() > 0 else -v

    a = A()
    m = a.f if x.ndim == 2 else a.g
    return m(x), getattr(a, "g")(x), A.g(a, x), a.__class__().g(x)


@program()
def call_class_static(x: Tensor) -> Any:
    class A:
        @staticmethod
        def s(v):
            return v if v.sum() > 0 else -v

        @classmethod
        def c(cls, v):
            return cls.s(v)

        def __init_subclass__(cls):
            cls.tag = 1

    class B(A):
        @classmethod
        def c(cls, v):
            return super().c(v) if v[0] > 0 else super().c(v * 2)

    return B.c(x), A.s(x), B.tag, B().c(x)


@program()
def getattr_hook(x: Tensor) -> Any:
    class A:
        def __getattr__(s, n):
            if n.startswith("_"):
                raise AttributeError(n)
            return (lambda v: v if v.sum() > 0 else -v) if n == "act" else x

        def __getattribute__(s, n):
            return object.__getattribute__(s, n)

    return A().act(x), A().w


@program()
def walrus_list(x: Tensor) -> Any:
    if (n := len(x)) > 1 and (m := x.max()) > 0:
        return m * n
    return x.min() * n


@program()
def cond_in_args(x: Tensor) -> Any:
    return ops.concat((x if x.sum() > 0 else -x, x), axis=0 if x.ndim == 1 else 1), x.sum(axis=0 if x.ndim else None)


@program()
def star_call_cond(x: Tensor) -> Any:
    def f(*a, **k):
        return a, k

    return f(*(x if i else -x for i in range(2)), **({"a": x} if x.ndim else {}))


@program()
def in_str_list(x: Tensor) -> Any:
    mode = "max"
    return (
        x.max() if mode in ("max", "min") else x,
        "a" in "abc",
        x.dtype in (ms.float32,),
        x.dtype == ms.float32,
        x.shape == (2,),
    )


@program()
def list_methods_eq(x: Tensor) -> Any:
    a, b = x[0], x[1]
    l = [a, b, a]
    return l.index(b), l.count(a), (a, b).index(a), [1, 2].index(2), l.index(a, 1)


@program()
def list_remove_identity(x: Tensor) -> Any:
    a, b = x[0], x[1]
    l = [a, b]
    l.remove(a)
    return l


@program()
def key_funcs(x: Tensor) -> Any:
    return (
        sorted("bAc", key=str.lower),
        max(["aa", "b"], key=len),
        sorted([x[1], x[0]], key=abs),
        min(x, key=lambda v: (v - 1) * (v - 1)),
    )


@program()
def map_many(x: Tensor) -> Any:
    return (
        list(map(lambda a, b: a if a > b else b, x, x[::-1])),
        list(map(max, x, [0.0, 5.0])),
        list(map(Tensor.sum, [x, x])),
    )


@program()
def filter_py(x: Tensor) -> Any:
    return list(filter(lambda p: p[0] > 1, [(1, x), (2, x)])), [v for v in (x, None) if v is not None]


@program(*COUNTS)
def zip_range_sym(n: Tensor) -> Any:
    t = 0
    for i in range(n):
        for a, b in zip([1, 2], [3, 4]):
            if i > a:
                t += b
    return t


@program()
def ctx_suppress_in_tensor(x: Tensor) -> Any:
    with contextlib.suppress(KeyError):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x
        {}["k"]
    return y


@program()
def ctx_return_value(x: Tensor) -> Any:
    class C:
        def __init__(s):
            s.n = 0

        def __enter__(s):
            s.n += 1
            return s

        def __exit__(s, *a):
            s.n += 10
            return False

    c = C()

    def f():
        with c as d:
            if x.sum() > 0:
                return x * d.n
        return x * c.n

    return f(), c.n


@program()
def ctx_in_while(x: Tensor) -> Any:
    class C:
        def __init__(s):
            s.n = 0

        def __enter__(s):
            s.n += 1
            return s

        def __exit__(s, *a):
            s.n += 10

    c = C()
    s = x.sum()
    while s > 1:
        with c:
            s = s / 3
            if s < 2:
                break
            s = s - 0.5
    return s, c.n


@program()
def exc_handler_with_tensor_if(x: Tensor) -> Any:
    try:
        int("a")
    except ValueError as e:
        y = x * 2 if x.sum() > 0 else x
        m = str(e)
    return y, m


@program()
def nested_try(x: Tensor) -> Any:
    y = x
    for k in range(3):
        try:
            try:
                if k == 1:
                    raise KeyError
                y = y + 1 if y.sum() > 0 else y - 1
            except KeyError:
                if y.sum() > 2:
                    y = y * 2
                raise ValueError
        except ValueError:
            y = y + 100
        finally:
            if y[0] > 50:
                y = y - 1
    return y


@program()
def default_arg_expr(x: Tensor) -> Any:
    def f(a, b=x * 2 if x.sum() > 0 else x):
        return a + b

    return f(x), f(x, 1)


@program()
def decorator_with_cond(x: Tensor) -> Any:
    def deco(f):
        def g(v):
            r = f(v)
            return r if r.sum() > 0 else -r

        return g

    @deco
    @deco
    def h(v):
        return v - 1

    return h(x)


@program()
def gen_in_region(x: Tensor) -> Any:
    def g(k):
        yield x * k
        yield x + k

    if x.sum() > 0:
        a, b = g(2)
        l = list(g(1))
    else:
        b, a = g(3)
        l = [*g(2)]
    return a, b, l


@program()
def gen_outer_in_region(x: Tensor) -> Any:
    g = (v * 2 for v in x)
    if x.sum() > 0:
        y = sum(g)
    else:
        y = x[0]
    return y


@program()
def reuse_loopvar(x: Tensor) -> Any:
    t = 0
    for v in x:
        t = t + v
    for v in range(3):
        if t > v:
            t = t + v
    return t, v


@program()
def global_fn_redefine(x: Tensor) -> Any:
    def f(v):
        return v

    if x.sum() > 0:

        def f2(v):
            return v * 2

        y = f2(x)
    else:
        y = f(x)
    return y


@program()
def int_float_mix(x: Tensor) -> Any:
    a = 1
    if x.sum() > 0:
        a = 2.5
    b = True
    if x[0] > 5:
        b = False
    c = a + 1 if b else a
    return a, c, b


@program()
def str_mult(x: Tensor) -> Any:
    return "ab" * len(x), [0] * x.shape[0], (x,) * 2


@program()
def while_container_cond(x: Tensor) -> Any:
    q = [x, x * 2, x * 3]
    acc = []
    while len(q) > 0 and len(acc) < 2:
        v = q.pop(0)
        acc.append(v if v.sum() > 3 else v * 0)
    return acc, len(q)


@program()
def early_exit_deep(x: Tensor) -> Any:
    def a(v):
        for k in range(3):
            if v.sum() > k * 5:
                for j in range(2):
                    if v[j] < k:
                        return v * 100
                    v = v + 1
            else:
                v = v - 1
                continue
            if v[0] > 15:
                break
        else:
            return v * 7
        return v

    return a(x)


@pytest.mark.parametrize(("fn", "cases"), program.rows)
def test_corners(fn: Function, cases: tuple[Any, ...]) -> None:
    check(fn, *cases)
