"""Fifteen programs of gradients, of many orders and ways, through control flow.

The results are derivatives worked out by hand, computed by NumPy.
"""

from __future__ import annotations

import numpy as np
from tests.oracles.graph_programs.given import Parameter, Tensor, ms, nn, ops
from tests.oracles.graph_programs.program import cases, cell, floats, integer, program, scalar

X = floats(0.5, -1.0, 2.0)
V = floats(1.0, 0.5, -0.25)
A = floats([1.0, 2.0, 0.5], [-1.0, 0.5, 3.0])


def f(value):
    return np.array(value, np.float32)


def branches_in_for(x, n):
    y = x
    for i in range(3):
        if y > n:
            y = y * y
        else:
            y = y * (i + 2)
    return y


def grad_if_in_for(x, n):
    return ms.grad(branches_in_for)(x, n)


def grad_if_in_for_numpy(x, n):
    y, dy = x, 1.0
    for i in range(3):
        y, dy = (y * y, 2 * y * dy) if y > n else (y * (i + 2), dy * (i + 2))
    return f(dy)


def doubling(x, limit):
    while x < limit:
        x = x * x + x
    return x


def grad_while(x, limit):
    return ms.grad(doubling)(x, limit)


def grad_while_numpy(x, limit):
    dx = 1.0
    while x < limit:
        x, dx = x * x + x, (2 * x + 1) * dx
    return f(dx)


def second_while(x, limit):
    return ms.grad(ms.grad(doubling))(x, limit)


def second_while_numpy(x, limit):
    d, d2 = 1.0, 0.0
    while x < limit:
        x, d, d2 = x * x + x, (2 * x + 1) * d, 2 * d * d + (2 * x + 1) * d2
    return f(d2)


class Linear(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor(A), name="weight")
        self.bias = Parameter(Tensor(floats(0.5, -0.5)), name="bias")

    def construct(self, x):
        return ops.matmul(self.weight, x) + self.bias


class TrainStep(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net = Linear()
        self.gradient = ms.value_and_grad(self.forward, 0, self.net.trainable_params(), has_aux=True)

    def forward(self, x):
        y = self.net(x)
        return (y * y).sum(), y

    def construct(self, x):
        return self.gradient(x)


def train_step_numpy(x):
    y = A @ x + floats(0.5, -0.5)
    return (f((y * y).sum()), y), (2 * A.T @ y, (2 * np.outer(y, x), 2 * y))


def cube(x):
    return x * x * x


def vjp(x, v):
    y, pull = ms.vjp(cube, x)
    return y, pull(v)


def product(x, y):
    return x * x * y


def jvp(x, y, v):
    return ms.jvp(product, (x, y), (v, v))


def squares(x):
    return ops.matmul(Tensor(A), x * x)


def jacobians(x):
    return ms.jacrev(squares)(x), ms.jacfwd(squares)(x)


def energy(x):
    return (x * x * x).sum() + x[0] * x[1]


def slope(x):
    return ms.jacrev(energy)(x)


def hessian(x):
    return ms.jacfwd(slope)(x)


def hessian_numpy(x):
    h = np.diag(6 * x)
    h[0, 1] += 1
    h[1, 0] += 1
    return h


def sample_loss(w, x):
    return ops.tanh((w * x).sum())


def per_sample_gradients(w, rows):
    return ms.vmap(ms.grad(sample_loss), in_axes=(None, 0))(w, rows)


def per_sample_gradients_numpy(w, rows):
    return (1 - np.tanh(rows @ w) ** 2)[:, None] * rows


def signed_root(x):
    if x > 0:
        y = ops.sqrt(x)
    else:
        y = x * 2
    for i in range(2):
        y = y + x * i
    return y


def vmap_control_flow(x):
    return ms.vmap(signed_root)(x)


class StraightThrough(nn.Cell):
    def construct(self, x):
        return ops.floor(x)

    def bprop(self, x, out, dout):
        return (dout * 3 + x,)


class OwnGradient(nn.Cell):
    def __init__(self):
        super().__init__()
        self.round = StraightThrough()
        self.gradient = ms.grad(self.forward)

    def forward(self, x):
        return (self.round(x * 2) * x).sum()

    def construct(self, x):
        return self.gradient(x)


class Block(nn.Cell):
    def construct(self, x):
        return ops.sin(x) * ops.exp(x)


class Recomputed(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.second = Block()
        self.first.recompute()
        self.gradient = ms.grad(self.forward)

    def forward(self, x):
        return self.second(self.first(x)).sum()

    def construct(self, x):
        return self.gradient(x)


def recomputed_numpy(x):
    inner = np.sin(x) * np.exp(x)

    def slope(z):
        return (np.sin(z) + np.cos(z)) * np.exp(z)

    return slope(inner) * slope(x)


def power(x, n):
    if n == 0:
        return ops.ones_like(x)
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half


def tenth_power(x):
    return power(x, 10)


def grad_recursion(x):
    return ms.grad(tenth_power)(x)


def stopped(x):
    return (x * x * ops.stop_gradient(x)).sum()


def grad_stop_gradient(x):
    return ms.grad(stopped)(x)


def quartic(x):
    return (x * x * x * x).sum()


def gradient_norm(x):
    g = ms.grad(quartic)(x)
    return (g * g).sum()


def grad_of_grad(x):
    return ms.grad(gradient_norm)(x)


PROGRAMS = [
    program("if inside for", grad_if_in_for,
            *cases(grad_if_in_for_numpy, (scalar(1.5), integer(2)), (scalar(1.5), integer(100)),
                   (scalar(1.5), integer(0)))),
    program("while", grad_while,
            *cases(grad_while_numpy, (scalar(0.5), scalar(5.0)), (scalar(0.25), scalar(50.0)),
                   (scalar(2.0), scalar(1.0)))),
    program("while, second order", second_while,
            *cases(second_while_numpy, (scalar(0.5), scalar(5.0)), (scalar(0.25), scalar(50.0)),
                   (scalar(2.0), scalar(1.0)))),
    cell("value_and_grad with weights and has_aux", TrainStep, *cases(train_step_numpy, (X,))),
    program("vjp", vjp, *cases(lambda x, v: (x**3, (3 * x**2 * v,)), (X, V))),
    program("jvp", jvp, *cases(lambda x, y, v: (x * x * y, 2 * x * y * v + x * x * v), (X, X + 1, V))),
    program("jacrev and jacfwd", jacobians, *cases(lambda x: (2 * A * x, 2 * A * x), (X,))),
    program("Hessian as jacfwd of jacrev", hessian, *cases(hessian_numpy, (X,))),
    program("vmap of grad", per_sample_gradients, *cases(per_sample_gradients_numpy, (V, A))),
    program("vmap over control flow", vmap_control_flow,
            *cases(lambda x: np.where(x > 0, np.sqrt(np.abs(x)), x * 2) + x, (X,))),
    cell("bprop of one's own", OwnGradient,
         *cases(lambda x: np.floor(2 * x) + 2 * (3 * x + 2 * x), (X,))),
    cell("recompute", Recomputed, *cases(recomputed_numpy, (X,))),
    program("recursion", grad_recursion, *cases(lambda x: 10 * x**9, (X,))),
    program("stop_gradient", grad_stop_gradient, *cases(lambda x: 2 * x * x, (X,))),
    program("grad of a function of grad", grad_of_grad, *cases(lambda x: 96 * x**5, (X,))),
]  # fmt: skip
