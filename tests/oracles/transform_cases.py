"""Calls of vjp, jvp, jacrev, jacfwd, vmap, jet and their kin, for both frameworks.

``cases(ms)`` gives, for the package ``ms``, functions without arguments by name; ``described`` turns what they
return into plain data: the nest, and of each tensor its dtype, shape and numbers.
"""

from __future__ import annotations

import numpy as np


def cube(x):
    return x * x * x


def product(x, y):
    return x * x * y


def pair(x, y):
    return x * y, x.sum()


def triple(x):
    return x * 2, x.sum(), x.mean()


def total(x):
    return (x * x).sum()


def plus(a, b):
    return a + b


def times(a, b):
    return a * b


def sum_and_row(a, b):
    return a + b, a.sum()


def sum_and_other(a, b):
    return a + b, b * 2


def nested_out(a, b):
    return a, (b, a * b)


def of_pair(p, c):
    return p[0] + p[1] + c


def with_number(a):
    return a, 3.0


def first(a, b):
    return a


def described(found):
    """A result as data that JSON can hold."""
    if isinstance(found, (tuple, list)):
        kind = "tuple" if isinstance(found, tuple) else "list"
        return {kind: [described(x) for x in found]}
    if hasattr(found, "asnumpy"):
        return {"dtype": str(found.dtype), "shape": list(found.shape), "data": found.asnumpy().ravel().tolist()}
    return {"other": type(found).__name__}


def cases(ms):
    """The calls, by name."""
    ops, nn = ms.ops, ms.nn

    def tensor(data):
        return ms.Tensor(np.array(data, np.float32))

    x, y = tensor([[1, 2, 3], [3, 4, 5]]), tensor([[1, 2, 1], [3, 1, 4]])
    z, v, s = tensor([1, 2, 3]), tensor(np.full((2, 3), 0.5)), tensor(np.linspace(0.5, 1, 12).reshape(2, 2, 3))
    one = tensor(2.0)
    net = nn.Dense(3, 2, weight_init="ones", bias_init="ones")
    weights = net.trainable_params()
    ct = tensor([[1, 2], [3, 4]])
    table = {
        "vjp of one": lambda: ms.vjp(cube, x)[1](v),
        "vjp of two": lambda: ms.vjp(product, x, y)[1](v),
        "vjp of pair": lambda: ms.vjp(pair, x, y)[1](v, one),
        "vjp of pair, cotangents in a tuple": lambda: ms.vjp(pair, x, y)[1]((v, one)),
        "vjp of pair, output": lambda: ms.vjp(pair, x, y)[0],
        "vjp with aux of two": lambda: ms.vjp(pair, x, y, has_aux=True)[::2],
        "vjp with aux of three": lambda: ms.vjp(triple, x, has_aux=True)[::2],
        "vjp with weights": lambda: ms.vjp(net, x, weights=weights)[1](ct),
        "vjp with one weight": lambda: ms.vjp(net, x, weights=net.weight)[1](ct),
        "vjp with an int input": lambda: ms.vjp(times, x, ms.Tensor([1, 2, 3], ms.int32))[1](v),
        "jvp of one": lambda: ms.jvp(cube, x, v),
        "jvp of two": lambda: ms.jvp(product, (x, y), (v, v)),
        "jvp of a list": lambda: ms.jvp(product, [x, y], [v, v]),
        "jvp of pair": lambda: ms.jvp(pair, (x, y), (v, v)),
        "jvp with aux of two": lambda: ms.jvp(pair, (x, y), (v, v), has_aux=True),
        "jvp with aux of three": lambda: ms.jvp(triple, x, v, has_aux=True),
        "linearize": lambda: ops.linearize(product, (x, y))[1]((v, v)),
        "linearize, output": lambda: ops.linearize(product, (x, y))[0],
        "get_grad": lambda: ms.get_grad(ms.grad(times, (0, 1), return_ids=True)(x, y), 1),
        "vmap": lambda: ms.vmap(plus)(x, y),
        "vmap with None": lambda: ms.vmap(plus, (0, None))(x, z),
        "vmap with a list": lambda: ms.vmap(plus, [0, None])(x, z),
        "vmap with negative axes": lambda: ms.vmap(plus, (-2, 0), -1)(x, y),
        "vmap, two outputs": lambda: ms.vmap(sum_and_row, (0, 0), (1, 0))(x, y),
        "vmap, two outputs, one axis": lambda: ms.vmap(sum_and_row, (0, 0), 0)(x, y),
        "vmap, unmapped output": lambda: ms.vmap(sum_and_other, (0, None), (0, None))(x, z),
        "vmap, repeated output": lambda: ms.vmap(sum_and_other, (0, None), (0, 0))(x, z),
        "vmap of a nest": lambda: ms.vmap(of_pair, ((0, None), 0))((x, z), y),
        "vmap of a nest, one axis": lambda: ms.vmap(of_pair, (0, 0))((x, y), y),
        "vmap to a nest": lambda: ms.vmap(nested_out, 0, 0)(x, y),
        "vmap to a nest of axes": lambda: ms.vmap(nested_out, 0, (0, (1, 0)))(x, y),
        "vmap with a number": lambda: ms.vmap(times, (0, None))(x, 2.0),
        "vmap with nothing": lambda: ms.vmap(first, (0, None))(x, None),
        "vmap to a number": lambda: ms.vmap(with_number)(x),
        "vmap of vmap": lambda: ms.vmap(ms.vmap(times, (None, 0)), (0, None))(z, z),
        "vmap of grad": lambda: ms.vmap(ms.grad(total))(x),
        "vmap of a Cell": lambda: ms.vmap(net)(x),
        "vmap of a method": lambda: ms.vmap(net.construct)(x),
        "vmap of a CellList": lambda: ms.vmap(
            nn.CellList([net, nn.Dense(3, 2, weight_init="zeros", bias_init="zeros")])
        )(x),
        "vmap of a CellList, None": lambda: ms.vmap(
            nn.CellList([net, nn.Dense(3, 2, weight_init="zeros", bias_init="zeros")]), None
        )(x),
        "jacfwd of jacrev": lambda: ms.jacfwd(ms.jacrev(total))(x),
    }

    class Waves(nn.Cell):
        def __init__(self):
            super().__init__()
            self.sin, self.exp = ops.Sin(), ops.Exp()

        def construct(self, x, y):
            return self.exp(self.sin(x)) * y

    class Both(nn.Cell):
        def __init__(self):
            super().__init__()
            self.exp = ops.Exp()

        def construct(self, x, y):
            return self.exp(x), x * y

    table["jet"] = lambda: ops.jet(Waves(), (x, y), (s, s))
    table["jet of two outputs"] = lambda: ops.jet(Both(), (x, y), (s, s))
    table["derivative"] = lambda: ops.derivative(Waves(), (x, y), 3)
    table["derivative of two outputs"] = lambda: ops.derivative(Both(), (x, y), 2)
    for name in ("jacrev", "jacfwd"):
        jacobian = getattr(ms, name)
        for label, position in (("0", 0), ("1", 1), ("(0,)", (0,)), ("(0, 1)", (0, 1))):
            table[f"{name} of two at {label}"] = lambda j=jacobian, p=position: j(product, p)(x, y)
            table[f"{name} of pair at {label}"] = lambda j=jacobian, p=position: j(pair, p)(x, y)
            table[f"{name} of pair at {label} with aux"] = lambda j=jacobian, p=position: j(pair, p, True)(x, y)
        table[f"{name} with aux of three"] = lambda j=jacobian: j(triple, has_aux=True)(x)
    return table
