"""Programs beside the sixty, in which a shape, a length, a type or a Python value depends on the values of tensors.

A compiled program of fixed shapes cannot hold these; MindSpore runs parts of them in Python or with shapes found at
run time. Recorded so that the comparison shows both sides. The results are computed by NumPy or by plain Python.
"""

from __future__ import annotations

import numpy as np
from tests.oracles.graph_programs.given import Tensor, ms, ops
from tests.oracles.graph_programs.program import cases, floats, integer, program

X = floats(0.5, -1.0, 2.0)


def boolean_subscript(x):
    return x[x > 0]


def open_slice(x, n):
    return x[n:]


def nonzero(x):
    return ops.nonzero(x > 0)


def unique(x):
    return ops.unique(x)[0]


def counted_range(x, n):
    return ops.arange(0, n) * x[0]


def python_int(x):
    n = int(x.sum())
    return x * n


def item(x):
    return x * x.max().item()


def through_numpy(x):
    return Tensor(np.sort(x.asnumpy()))


def shapes_of_branches(x):
    if x.sum() > 0:
        y = x
    else:
        y = ops.concat([x, x])
    return y


def dtypes_of_branches(x):
    if x.sum() > 0:
        y = x
    else:
        y = x.astype(ms.int32)
    return y


def none_in_a_branch(x):
    if x.sum() > 0:
        y = None
    else:
        y = x
    return y


def string_in_a_branch(x):
    if x.sum() > 0:
        name = "positive"
    else:
        name = "negative"
    return name


def append_in_a_branch(x):
    parts = [x]
    if x.sum() > 0:
        parts.append(x * 2)
    return parts


def list_in_while(x, n):
    parts = []
    i = 0
    while i < n:
        parts.append(x * i)
        i = i + 1
    return parts


def list_with_break(x):
    states = [x]
    for _ in range(5):
        states.append(states[-1] * 2)
        if states[-1].sum() > 10:
            break
    return states[-1]


def list_with_break_numpy(x):
    for _ in range(5):
        x = x * 2
        if x.sum() > 10:
            break
    return x


def none_before_while(x, n):
    best = None
    i = 0
    while i < n:
        candidate = x * i
        if best is None or candidate.sum() > best.sum():
            best = candidate
        i = i + 1
    return best


def tensor_that_grows(x, n):
    y = x
    while n > 0:
        y = ops.concat([y, x])
        n = n - 1
    return y


def filtered_comprehension(x):
    return [v for v in x if v > 0]


def counting(x):
    return sum([1 for v in x if v > 0])


def yield_under_condition(x):
    def items():
        for k in range(3):
            if x.sum() > k:
                yield x * k
            else:
                yield x

    return sum(items())


PROGRAMS = [
    program("boolean subscript", boolean_subscript, *cases(lambda x: x[x > 0], (X,), (-X,))),
    program("slice from a tensor on", open_slice, *cases(lambda x, n: x[n:], (X, integer(1)), (X, integer(2)))),
    program("nonzero", nonzero, *cases(lambda x: np.argwhere(x > 0), (X,), (-X,))),
    program("unique", unique, *cases(lambda x: np.array([1.0, 2.0], np.float32), (floats(1, 2, 1),))),
    program("arange to a tensor", counted_range,
            *cases(lambda x, n: np.arange(n) * x[0], (X, integer(3)), (X, integer(5)))),
    program("int() of a tensor", python_int, *cases(lambda x: x * int(x.sum()), (X * 3,), (X * 5,))),
    program("item()", item, *cases(lambda x: x * x.max(), (X,), (X * 2,))),
    program("NumPy in between", through_numpy, *cases(lambda x: np.sort(x), (X,), (-X,))),
    program("branches of two shapes", shapes_of_branches, *cases(lambda x: x, (X,)), ((-X,), np.concatenate([-X, -X]))),
    program("branches of two dtypes", dtypes_of_branches, ((X,), X), ((-X,), (-X).astype(np.int32))),
    program("None from a branch", none_in_a_branch, ((X,), None), ((-X,), -X)),
    program("a string from a branch", string_in_a_branch, ((X,), "positive"), ((-X,), "negative")),
    program("append in a branch", append_in_a_branch, ((X,), [X, X * 2]), ((-X,), [-X])),
    program("append in while", list_in_while,
            *cases(lambda x, n: [x * np.float32(i) for i in range(n)], (X, integer(3)), (X, integer(2)))),
    program("append, with break", list_with_break, *cases(list_with_break_numpy, (X,), (X * 3,), (-X,))),
    program("None before while", none_before_while, *cases(lambda x, n: x * (n - 1), (X, integer(3)), (X, integer(2)))),
    program("a tensor that grows in while", tensor_that_grows,
            *cases(lambda x, n: np.tile(x, n + 1), (X, integer(2)), (X, integer(3)))),
    program("filter in a comprehension", filtered_comprehension,
            *cases(lambda x: [np.asarray(v) for v in x if v > 0], (X,), (-X,))),
    program("counting in a comprehension", counting, *cases(lambda x: int((x > 0).sum()), (X,), (-X,))),
    program("yield under a condition", yield_under_condition,
            *cases(lambda x: sum(x * k if x.sum() > k else x for k in range(3)), (X,), (-X,))),
]  # fmt: skip
