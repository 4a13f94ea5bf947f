"""Edits that the next call must see, beside the sixty programs: what changes between calls of a compiled function."""

from __future__ import annotations

from types import SimpleNamespace

from tests.oracles.graph_programs.given import Tensor, ms, nn
from tests.oracles.graph_programs.program import Edit, floats

X = floats(1.0, -2.0, 3.0)

factor = 2.0
table = {"scale": 2.0}


class Scale(nn.Cell):
    limit = 2.0

    def __init__(self):
        super().__init__()
        self.k = 2.0
        self.config = SimpleNamespace(k=2.0)
        self.factors = [1.0, 2.0]

    def construct(self, x):
        return x * self.k


class Nested(Scale):
    def construct(self, x):
        return x * self.config.k


class Listed(Scale):
    def construct(self, x):
        for f in self.factors:
            x = x * f
        return x


class OfClass(Scale):
    def construct(self, x):
        return x * self.limit


def attribute():
    net = Scale()
    first = net(Tensor(X))
    net.k = 3.0
    return [first, net(Tensor(X))]


def nested_attribute():
    net = Nested()
    first = net(Tensor(X))
    net.config.k = 3.0
    return [first, net(Tensor(X))]


def list_content():
    net = Listed()
    first = net(Tensor(X))
    net.factors.append(1.5)
    return [first, net(Tensor(X))]


def class_attribute():
    OfClass.limit = 2.0
    net = OfClass()
    first = net(Tensor(X))
    OfClass.limit = 3.0
    return [first, net(Tensor(X))]


@ms.jit
def by_global(x):
    return x * factor


def global_variable():
    global factor
    factor = 2.0
    first = by_global(Tensor(X))
    factor = 3.0
    return [first, by_global(Tensor(X))]


@ms.jit
def by_table(x):
    return x * table["scale"]


def dict_content():
    table["scale"] = 2.0
    first = by_table(Tensor(X))
    table["scale"] = 3.0
    return [first, by_table(Tensor(X))]


def closure_cell():
    k = 2.0

    @ms.jit
    def scale(x):
        return x * k

    first = scale(Tensor(X))
    k = 3.0
    return [first, scale(Tensor(X))]


def branch_of_attribute():
    class Switch(nn.Cell):
        def __init__(self):
            super().__init__()
            self.tripled = False

        def construct(self, x):
            if self.tripled:
                return x * 3
            return x * 2

    net = Switch()
    first = net(Tensor(X))
    net.tripled = True
    return [first, net(Tensor(X))]


@ms.jit
def descend(x, rate):
    return x - rate * (x * x)


RATES = [0.1 / (1 + k) for k in range(20)]


def learning_rates():
    return [descend(Tensor(X), rate) for rate in RATES]


BOTH = [Tensor(X * 2), Tensor(X * 3)]

EDITS = [
    Edit("an attribute", attribute, BOTH),
    Edit("an attribute that a branch reads", branch_of_attribute, BOTH),
    Edit("an attribute of an attribute", nested_attribute, BOTH),
    Edit("a class attribute", class_attribute, BOTH),
    Edit("a list that grows", list_content, BOTH),
    Edit("an item of a dict", dict_content, BOTH),
    Edit("a global", global_variable, BOTH),
    Edit("a variable of the enclosing function", closure_cell, BOTH),
    Edit("twenty learning rates", learning_rates, [Tensor(X - r * X * X) for r in RATES]),
]
