"""Small corners of the language, one program each: nested jumps, generators, objects that are made anew."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.frontend.battery import COUNTS, Battery, Function
from tests.frontend.staging import check

import mycelia as ms
from mycelia import Tensor, ops

program = Battery()


@program()
def two_level_break_flag(x: Tensor) -> Any:
    done = False
    for i in range(3):
        for j in range(3):
            if x.sum() + i * j > 6:
                done = True
                break
        if done:
            break
    return i, j, done


@program()
def while_true_try(x: Tensor) -> Any:
    k = 0
    while True:
        try:
            k += 1
            if x.sum() * k > 10 or k > 4:
                return k
        finally:
            x = x + 1


@program()
def lst_of_fn_loop(x: Tensor) -> Any:
    for f in [lambda v: v + 1, lambda v: v if v.sum() > 2 else v * 3, ops.relu]:
        if x.sum() > 15:
            break
        x = f(x)
    else:
        x = x * 10
    return x


@program()
def gen_send_cond(x: Tensor) -> Any:
    def co():
        t = 0
        while True:
            v = yield t
            if v is None:
                return
            t = t + v if v.sum() > 0 else t - v

    g = co()
    next(g)
    g.send(x)
    r = g.send(x * 2)
    try:
        g.send(None)
    except StopIteration:
        pass
    return r


@program()
def obj_from_branch(x: Tensor) -> Any:
    @dataclasses.dataclass
    class R:
        v: Any
        n: int

    if x.sum() > 0:
        r = R(x, 1)
    else:
        r = R(-x, 2)
    r.n += 1
    return r.v, r.n


@program()
def dataclass_slots_frozen_state(x: Tensor) -> Any:
    @dataclasses.dataclass(frozen=True, slots=True)
    class S:
        v: Any
        k: Any = 0

    s = S(x)
    for i in range(3):
        s = dataclasses.replace(s, v=s.v + 1, k=s.k + 1) if s.v.sum() > 2 else dataclasses.replace(s, v=s.v - 1)
    return s.v, s.k


@program(*COUNTS)
def dataclass_frozen_loop(n: Tensor) -> Any:
    @dataclasses.dataclass(frozen=True)
    class S:
        v: Any
        k: Any = 0

        def next(s, i):
            return S(s.v + i, s.k + 1)

    s = S(n)
    i = 0
    while i < n:
        s = s.next(i)
        i += 1
        if s.v > 8:
            break
    return s.v, s.k


@program()
def ifexp_call_effects(x: Tensor) -> Any:
    log = [0]

    def f(v):
        log[0] += 1
        return v

    y = f(x) if x.sum() > 0 else (f(f(x)) if x[0] < 0 else x)
    z = [f(v) if v > 0 else v for v in x]
    return y, z, log


@program()
def chained_methods(x: Tensor) -> Any:
    class B:
        def __init__(s):
            s.ops = []
            s.v = x

        def add(s, k):
            s.v = s.v + k
            s.ops.append("a")
            return s

        def relu(s):
            s.v = s.v if s.v.sum() > 0 else s.v * 0
            s.ops.append("r")
            return s

    b = B().add(1).relu().add(2)
    return b.v, b.ops


@program()
def global_cache_dict(x: Tensor) -> Any:
    cache = {}

    def get(k):
        if k not in cache:
            cache[k] = x * k if x.sum() > 0 else x
        return cache[k]

    return get(1) + get(2) + get(1), sorted(cache)


@program()
def unreach(x: Tensor) -> Any:
    if x.sum() > 0:
        return x
    else:
        return -x
    return x * 100


@program()
def nested_ret_in_with(x: Tensor) -> Any:
    class C:
        def __enter__(s):
            return 1

        def __exit__(s, *a):
            return False

    with C():
        with C() as k:
            if x.sum() > 0:
                with C():
                    return x * k
            x = x + 1
        if x[0] > 0:
            return x * 2
    return x * 3


@program()
def long_elif(x: Tensor) -> Any:
    s = x.sum()
    if s > 100:
        r = 0
    elif s > 20:
        r = 1
    elif s > 10:
        r = 2
    elif s > 2:
        r = 3
    elif s > 0:
        r = 4
    elif s > -1:
        r = 5
    elif s > -2:
        r = 6
    elif s > -5:
        r = 7
    else:
        r = 8
    return r


@program()
def deep_if_nest(x: Tensor) -> Any:
    r = 0
    if x[0] > -100:
        r += 1
        if x[0] > -50:
            r += len([1])
            if x[0] > -10:
                r += abs(1)
                if x[0] > -5:
                    r += 1
                    if x[0] > -1:
                        r += max(1, 0)
                        if x[0] > 0:
                            r += 1
                            if x[0] > 1:
                                r += 1
                                if x[0] > 5:
                                    r += sum([1])
                                else:
                                    r -= 1
    return r


@program()
def str_in_tensor_branch_same(x: Tensor) -> Any:
    name = "a"
    if x.sum() > 0:
        msg = "ok".upper()
        y = x
    else:
        msg = "OK"
        y = -x
    return y, msg, name


@program()
def none_both(x: Tensor) -> Any:
    r = None
    if x.sum() > 0:
        x = x + 1
        r = None
    return r, x


@program()
def args_kwargs_forward(x: Tensor) -> Any:
    def base(a, *args, k=1, **kw):
        return a * k + sum(args) + sum(kw.values())

    def fwd(*args, **kw):
        return base(*args, **{**kw, "m": 2}) if x.sum() > 0 else base(*args[:1])

    return fwd(x, 1, k=3, z=4)


@program()
def map_reduce_dict(x: Tensor) -> Any:
    d = {k: x * i for i, k in enumerate("abc")}
    return (
        {k: (v if v.sum() > 2 else v * 0) for k, v in sorted(d.items(), reverse=True)},
        max(d, key=lambda k: len(k)),
        sum(d.values()),
    )


@program()
def while_with_list_state_py(x: Tensor) -> Any:
    hist = []
    k = 0
    while k < 3:
        hist.append(x.sum() if x[0] > k else x.sum() * 0)
        k += 1
    return hist, hist[-1]


@program()
def complex_slices(x: Tensor) -> Any:
    y = ops.zeros((3, 4), ms.float32)
    y[0, :2] = x
    y[1:, 1] = x
    y[-1] = y[0] * 2
    y[..., 3] += 1
    y[[0, 2], 0] = 7.0
    if x.sum() > 0:
        y[1][0] = 3.0
    return y


@program()
def tensors_as_bool_in_ternary_chain(x: Tensor) -> Any:
    return "pos" if False else (1 if (x > 0).all() else (2 if (x < 0).any() else 3))


@pytest.mark.parametrize(("fn", "cases"), program.rows)
def test_corners(fn: Function, cases: tuple[Any, ...]) -> None:
    check(fn, *cases)
