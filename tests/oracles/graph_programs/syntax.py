"""Thirty programs of Python's syntax: nothing in them depends on the value of a tensor.

The results are computed by NumPy or by hand.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import namedtuple
from dataclasses import dataclass, replace

import numpy as np
from tests.oracles.graph_programs.given import Tensor, nn, ops
from tests.oracles.graph_programs.program import cases, cell, floats, program

X = floats(1.0, -2.0, 3.0)
M = floats([1.0, 2.0, 3.0], [4.0, 5.0, 6.5])

# ---- comprehensions and generators


def list_comprehension(x):
    return [[x * (a * b) for b in (1, 2)] for a in range(1, 4) if a != 2]


def dict_comprehension(x):
    table = {"double": 2.0, "skip": 0.0, "half": 0.5}
    return {name: x * factor for name, factor in table.items() if factor > 0}


def powers(x, count):
    y = x
    for _ in range(count):
        yield y
        y = y * x


def generator_function(x):
    total = x
    for p in powers(x, 3):
        total = total + p
    return total


def generator_expression(x):
    return sum(x * k for k in range(4) if k % 2)


# ---- statements


def try_except_finally(x):
    table = {"relu": 3.0}
    steps = []
    try:
        scale = table["gelu"]
    except KeyError:
        scale = table["relu"]
        steps.append("except")
    else:
        steps.append("else")
    finally:
        steps.append("finally")
    return x * scale, steps


class Precision:
    def __init__(self, factor):
        self.factor = factor

    def __enter__(self):
        return self.factor

    def __exit__(self, kind, error, trace):
        return kind is ZeroDivisionError


def with_statement(x):
    with Precision(3.0) as factor:
        y = x * factor
    return y + 1


def walrus(x):
    if (n := len(x)) > 2:
        x = x * n
    return x, [m for k in range(4) if (m := k * k) > 1]


def build(spec, x):
    match spec:
        case ("scale", float(k)):
            return x * k
        case {"kind": "shift", "by": by, **rest}:
            return x + by * (1 + len(rest))
        case [first, *others]:
            return build(first, x) + len(others)
        case _:
            return x


def match_statement(x):
    return build(("scale", 2.0), x), build({"kind": "shift", "by": 3.0, "extra": 1}, x), build([None, 1, 2], x)


def long_loop(x):
    for _ in range(1500):
        x = x + 1
    return x


# ---- functions


def nonlocal_counter(x):
    count = 0

    def step(y):
        nonlocal count
        count += 1
        return y * count

    return step(step(step(x))), count


def twice(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(fn(*args, **kwargs))

    return wrapper


def decorated(x):
    @twice
    def scale(y):
        return y * 3

    return scale(x)


def lambdas(x):
    fns = [lambda y, k=k: y * k for k in (2, 3)] + [lambda y: y + 1, lambda y: y - 1]
    for fn in fns:
        x = fn(x)
    return x


def polynomial(*coefficients):
    def evaluate(x):
        y = x * 0
        for c in reversed(coefficients):
            y = y * x + c
        return y

    return evaluate


def closure(x):
    return polynomial(1.0, 0.0, 2.0)(x)


def layer(x, *scales, shift=0.0, **flags):
    for s in scales:
        x = x * s
    return x + shift if flags.get("biased") else x


def args_and_kwargs(x):
    options = {"shift": 1.0, "biased": True}
    return layer(x, 2.0, 3.0, **options), layer(x, *[2.0] * 2, **{**options, "biased": False})


def affine(x, factor=2.0, *, offset, sign=1):
    return (x * factor + offset) * sign


def keyword_only(x):
    return affine(x, offset=1.0), affine(x, 3.0, sign=-1, offset=2.0)


def tree_product(x, depth):
    if depth == 0:
        return x
    return tree_product(x, depth - 1) * 2 + tree_product(x, depth - 1)


def recursion(x):
    return tree_product(x, 4)


def standard_library(x):
    add = functools.partial(ops.add, x)
    pairs = list(itertools.combinations((1.0, 2.0, 4.0), 2))
    return functools.reduce(lambda y, p: y + p[0] * p[1], pairs, add(math.sqrt(16.0)))


# ---- objects


@dataclass
class Config:
    width: float = 2.0
    depth: int = 1
    name: str = "small"


def dataclasses(x):
    config = replace(Config(depth=2), width=3.0)
    for _ in range(config.depth):
        x = x * config.width
    return x, config.name


Moments = namedtuple("Moments", "mean spread")


def namedtuple_result(x):
    m = Moments(spread=x.max() - x.min(), mean=x.mean())
    return m._replace(mean=m.mean * 2)


def class_inside(x):
    class Scale:
        factor = 2.0

        def __init__(self, extra):
            self.extra = extra

        def __call__(self, y):
            return y * self.factor + self.extra

    return Scale(1.0)(x)


class Base(nn.Cell):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    @property
    def doubled(self):
        return self.rate * 2

    @staticmethod
    def shift(x):
        return x + 1

    @classmethod
    def offset(cls):
        return len(cls.__name__)

    def construct(self, x):
        return self.shift(x) * self.doubled


class Derived(Base):
    def construct(self, x):
        return super().construct(x) + self.offset()


class Named(nn.Cell):
    def __init__(this):  # noqa: N805
        super().__init__()
        this.dense = nn.Dense(3, 2, weight_init="ones", bias_init="ones")

    def construct(net, x):  # noqa: N805
        return net.dense(x)


# ---- values


def f_strings(x):
    parts = {}
    for i in range(2):
        parts[f"layer{i}.weight"] = x * (i + 1)
    name = "bias"
    parts[f"last.{name}"] = x - 1
    return parts


def string_methods(x):
    for word in "Scale:2, shift:3".lower().split(","):
        name, _, value = word.strip().partition(":")
        x = x * float(value) if name == "scale" else x + float(value)
    return x


def sets(x):
    kinds = {n % 3 for n in (1, 4, 5, 7)}
    wanted = {"scale", "shift"} & {"shift", "clip", "scale"}
    wanted.discard("shift")
    if "scale" in wanted and wanted <= {"scale", "clip"}:
        x = x * len(kinds)
    return x, 2 in kinds


def dict_methods(x):
    table = {"a": 1.0}
    table.update({"b": 2.0}, c=3.0)
    table.setdefault("d", 4.0)
    x = x * table.pop("c") + table.get("missing", 0.5)
    for key, value in sorted(table.items()):
        x = x + value if key in table else x
    return x


def star_unpacking(x):
    first, *middle, last = [x * k for k in range(1, 6)]
    stacked = ops.stack([first, *middle])
    (a, b), *_ = [(last, first), (first, last)]
    return stacked, a - b


def sorted_with_key(x):
    layers = [("b", 2.0), ("a", 3.0), ("c", 1.0)]
    ordered = sorted(layers, key=lambda item: item[1], reverse=True)
    for _, factor in ordered:
        x = x * factor + 1
    return x, [name for name, _ in ordered]


def numpy_constants(x):
    angles = np.linspace(0.0, np.pi, x.shape[0])
    table = np.stack([np.sin(angles), np.cos(angles)]).astype(np.float32)
    return Tensor(table) * x


def containers_as_results(x):
    return {"parts": [x, (x * 2, None)], "name": "net", "size": x.shape[0], "flags": (True, 1.5)}


PROGRAMS = [
    program("nested list comprehension", list_comprehension,
            *cases(lambda x: [[x, x * 2], [x * 3, x * 6]], (X,))),
    program("dict comprehension", dict_comprehension,
            *cases(lambda x: {"double": x * 2, "half": x / 2}, (X,))),
    program("generator function", generator_function, *cases(lambda x: 2 * x + x**2 + x**3, (X,))),
    program("generator expression", generator_expression, *cases(lambda x: x * 4, (X,))),
    program("try, except, finally", try_except_finally, *cases(lambda x: (x * 3, ["except", "finally"]), (X,))),
    program("with", with_statement, *cases(lambda x: x * 3 + 1, (X,))),
    program("walrus", walrus, *cases(lambda x: (x * 3, [4, 9]), (X,))),
    program("match", match_statement, *cases(lambda x: (x * 2, x + 6, x + 2), (X,))),
    program("a loop of 1,500 rounds", long_loop, *cases(lambda x: x + 1500, (X,))),
    program("nonlocal", nonlocal_counter, *cases(lambda x: (x * 6, 3), (X,))),
    program("decorator", decorated, *cases(lambda x: x * 9, (X,))),
    program("lambdas with defaults, two on a line", lambdas, *cases(lambda x: x * 6, (X,))),
    program("closure over variable arguments", closure, *cases(lambda x: 1 + 2 * x**2, (X,))),
    program("starred and keyword arguments", args_and_kwargs, *cases(lambda x: (x * 6 + 1, x * 4), (X,))),
    program("keyword-only arguments", keyword_only,
            *cases(lambda x: (x * 2 + 1, -(x * 3 + 2)), (X,))),
    program("recursion", recursion, *cases(lambda x: x * 81, (X,))),
    program("functools and itertools", standard_library, *cases(lambda x: x + 4 + 2 + 4 + 8, (X,))),
    program("dataclass", dataclasses, *cases(lambda x: (x * 9, "small"), (X,))),
    program("namedtuple as a result", namedtuple_result,
            *cases(lambda x: Moments(x.mean() * 2, x.max() - x.min()), (X,))),
    program("class defined inside", class_inside, *cases(lambda x: x * 2 + 1, (X,))),
    cell("property, static and class method, super", lambda: Derived(1.5), *cases(lambda x: (x + 1) * 3 + 7, (X,))),
    cell("self under another name", Named, *cases(lambda x: np.stack([x.sum(1) + 1] * 2, 1), (M,))),
    program("f-strings as keys", f_strings,
            *cases(lambda x: {"layer0.weight": x, "layer1.weight": x * 2, "last.bias": x - 1}, (X,))),
    program("string methods", string_methods, *cases(lambda x: x * 2 + 3, (X,))),
    program("set comprehension and methods of sets", sets, *cases(lambda x: (x * 2, True), (X,))),
    program("methods of dicts", dict_methods, *cases(lambda x: x * 3 + 7.5, (X,))),
    program("star unpacking", star_unpacking,
            *cases(lambda x: (np.stack([x, 2 * x, 3 * x, 4 * x]), x * 4), (X,))),
    program("sorted with a key", sorted_with_key,
            *cases(lambda x: (((x * 3 + 1) * 2 + 1) * 1 + 1, ["a", "b", "c"]), (X,))),
    program("NumPy on constants", numpy_constants,
            *cases(lambda x: np.stack([[0, 1, 0] * x, [1, 0, -1] * x]).astype(np.float32), (X,))),
    program("containers as results", containers_as_results,
            *cases(lambda x: {"parts": [x, (x * 2, None)], "name": "net", "size": 3, "flags": (True, 1.5)}, (X,))),
]  # fmt: skip
