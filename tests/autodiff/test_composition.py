"""Transforms of transforms, over functions with control flow, against jax and torch."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import mycelia as ms
from mycelia import nn, ops

X = np.array([0.5, -1.25, 0.75])
T = np.array([1.0, 0.5, -2.0])
ROWS = np.stack([X, -X, X * X])


def smooth(x):
    return ops.sin(x) * ops.exp(x * 0.5) / (1 + x * x)


def smooth_jax(x):
    return jnp.sin(x) * jnp.exp(x * 0.5) / (1 + x * x)


def branching(x):
    if x.sum() > 0:
        y = ops.sin(x) * x
    elif x[0] < -10:
        y = x
    else:
        y = ops.exp(x)
    return y * x.sum()


def branching_jax(x):
    return lax.cond(x.sum() > 0, lambda x: jnp.sin(x) * x, jnp.exp, x) * x.sum()


def counting(x):
    y = x * 1.0
    for _ in ms.ops.arange(3):
        y = y * 0.5 + ops.sin(y) * x
    return y


def counting_jax(x):
    y = x
    for _ in range(3):
        y = y * 0.5 + jnp.sin(y) * x
    return y


def looping(x):
    y, i = x * 1.0, 0
    while (y * y).sum() < 30.0:
        y = y * 1.5 + ops.cos(x)
        i = i + 1
    return y * i


def looping_jax(x):
    y, i = lax.while_loop(
        lambda s: (s[0] * s[0]).sum() < 30.0, lambda s: (s[0] * 1.5 + jnp.cos(x), s[1] + 1), (x * 1.0, 0)
    )
    return y * i


class Cubed(nn.Cell):
    """x ** 3, whose own gradient is written by hand."""

    def construct(self, x):
        return x * x * x

    def bprop(self, x, out, dout):
        return (dout * 3 * x * x,)


FUNCTIONS = {
    "smooth": (smooth, smooth_jax),
    "branching": (branching, branching_jax),
    "counting": (counting, counting_jax),
    "looping": (looping, looping_jax),
    "cubed": (Cubed(), lambda x: x**3),
}
#: while_loop has a reverse rule in jax only if its length is known, so these compare forward mode there.
FORWARD_ONLY = {"looping"}

COMPOSITIONS = {
    "jvp of jvp": (
        lambda f, x, t: ms.jvp(lambda x: ms.jvp(f, x, t)[1], x, t)[1],
        lambda f, x, t: jax.jvp(lambda x: jax.jvp(f, (x,), (t,))[1], (x,), (t,))[1],
    ),
    "jvp of vjp": (
        lambda f, x, t: ms.jvp(lambda x: ms.vjp(f, x)[1](t)[0], x, t)[1],
        lambda f, x, t: jax.jvp(lambda x: jax.jacfwd(f)(x).T @ t, (x,), (t,))[1],
    ),
    "vjp of jvp": (
        lambda f, x, t: ms.vjp(lambda x: ms.jvp(f, x, t)[1], x)[1](t)[0],
        lambda f, x, t: jax.jacfwd(lambda x: jax.jvp(f, (x,), (t,))[1])(x).T @ t,
    ),
    "grad of grad": (
        lambda f, x, t: ms.grad(lambda x: (ms.grad(lambda x: (f(x) * t).sum())(x) * t).sum())(x),
        lambda f, x, t: jax.jacfwd(lambda x: jax.jacfwd(lambda x: (f(x) * t).sum())(x) @ t)(x),
    ),
    "jacfwd of jacrev": (
        lambda f, x, t: ms.jacfwd(ms.jacrev(f))(x),
        lambda f, x, t: jax.jacfwd(jax.jacfwd(f))(x),
    ),
    "jacrev of jacfwd": (
        lambda f, x, t: ms.jacrev(ms.jacfwd(f))(x),
        lambda f, x, t: jax.jacfwd(jax.jacfwd(f))(x),
    ),
    "vmap of jacrev": (
        lambda f, x, t: ms.vmap(ms.jacrev(f))(ms.Tensor(ROWS)),
        lambda f, x, t: jnp.stack([jax.jacfwd(f)(r) for r in ROWS]),
    ),
    "vmap of jvp": (
        lambda f, x, t: ms.vmap(lambda r: ms.jvp(f, r, t)[1])(ms.Tensor(ROWS)),
        lambda f, x, t: jnp.stack([jax.jvp(f, (r,), (t,))[1] for r in ROWS]),
    ),
    "jvp of vmap": (
        lambda f, x, t: ms.jvp(ms.vmap(f), ms.Tensor(ROWS), ms.Tensor(ROWS * 2))[1],
        lambda f, x, t: jnp.stack([jax.jvp(f, (r,), (r * 2,))[1] for r in ROWS]),
    ),
    "jacrev of vmap": (
        lambda f, x, t: ms.jacrev(lambda x: ms.vmap(lambda a: f(x * a).sum())(ms.Tensor(T)))(x),
        lambda f, x, t: jax.jacfwd(lambda x: jnp.stack([f(x * a).sum() for a in T]))(x),
    ),
    "grad of vmap of grad": (
        lambda f, x, t: ms.grad(
            lambda x: ms.vmap(lambda a: (ms.grad(lambda x: f(x * a).sum())(x) * t).sum())(ms.Tensor(T)).sum()
        )(x),
        lambda f, x, t: jax.jacfwd(
            lambda x: sum((jax.jacfwd(lambda x, a=a: f(x * a).sum())(x) * t).sum() for a in T)
        )(x),
    ),
    "vmap of vmap of grad": (
        lambda f, x, t: ms.vmap(
            ms.vmap(lambda r, a: ms.grad(lambda r: f(r * a).sum())(r), (None, 0)), (0, None), 1
        )(ms.Tensor(ROWS), ms.Tensor(T)),
        lambda f, x, t: jnp.stack(
            [jnp.stack([jax.jacfwd(lambda r, a=a: f(r * a).sum())(r) for r in ROWS]) for a in T]
        ),
    ),
}  # fmt: skip


#: What the fast suite runs; every composition, and every function, in one way or another.
QUICK = {
    ("jvp of jvp", "branching", "eager"), ("jvp of vjp", "looping", "eager"), ("vjp of jvp", "counting", "eager"),
    ("grad of grad", "branching", "inside jit"), ("jacfwd of jacrev", "looping", "inside jit"),
    ("jacrev of jacfwd", "cubed", "graph"), ("vmap of jacrev", "branching", "graph"),
    ("vmap of jvp", "looping", "inside jit"), ("jvp of vmap", "counting", "graph"),
    ("jacrev of vmap", "smooth", "eager"), ("grad of vmap of grad", "smooth", "graph"),
    ("vmap of vmap of grad", "branching", "inside jit"),
}  # fmt: skip
ALL = [
    pytest.param(*key, id="-".join(key), marks=() if key in QUICK else pytest.mark.slow)
    for key in [(c, f, w) for c in COMPOSITIONS for f in FUNCTIONS for w in ("eager", "graph", "inside jit")]
]


@pytest.mark.parametrize(("composition", "function", "way"), ALL)
def test_against_jax(composition, function, way):
    ours, theirs = COMPOSITIONS[composition]
    fn, fn_jax = FUNCTIONS[function]
    x, t = ms.Tensor(X), ms.Tensor(T)
    if way == "graph":
        ms.set_context(mode=ms.GRAPH_MODE)
    if way == "inside jit":
        got = ms.jit(lambda x, t: ours(fn, x, t))(x, t)
    else:
        got = ours(fn, x, t)
    np.testing.assert_allclose(got.asnumpy(), theirs(fn_jax, X, T), rtol=1e-9, atol=1e-11)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # torch calls it itself
def test_against_torch_func():
    torch = pytest.importorskip("torch")
    functions = torch.func
    layer = nn.Dense(3, 4, dtype=ms.float64)
    weight, bias = (torch.tensor(p.asnumpy()) for p in (layer.weight, layer.bias))

    def ours(x):
        return ops.softmax(ops.tanh(layer(x)), -1)

    def theirs(x):
        return torch.softmax(torch.tanh(x @ weight.T + bias), -1)

    x, t, rows = torch.tensor(X), torch.tensor(T), torch.tensor(ROWS)
    cases = [
        (ms.jvp(ours, ms.Tensor(X), ms.Tensor(T))[1], functions.jvp(theirs, (x,), (t,))[1]),
        (ms.jacrev(ours)(ms.Tensor(X)), functions.jacrev(theirs)(x)),
        (ms.jacfwd(ours)(ms.Tensor(X)), functions.jacfwd(theirs)(x)),
        (
            ms.hessian(lambda x: ours(x)[0])(ms.Tensor(X)),
            functions.hessian(lambda x: theirs(x)[0])(x),
        ),
        (ms.vmap(ms.jacrev(ours))(ms.Tensor(ROWS)), functions.vmap(functions.jacrev(theirs))(rows)),
        (
            ms.vmap(ms.grad(lambda x: (ours(x) ** 2).sum()), 1, 1)(ms.Tensor(ROWS)),
            functions.vmap(functions.grad(lambda x: (theirs(x) ** 2).sum()), 1, 1)(rows),
        ),
    ]
    for got, want in cases:
        np.testing.assert_allclose(got.asnumpy(), want.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.torch
def test_per_example_gradients_against_torch_func():
    torch = pytest.importorskip("torch")
    layer = nn.Dense(3, 2, dtype=ms.float64)
    weights = layer.trainable_params()
    weight, bias = (torch.tensor(p.asnumpy()) for p in weights)

    def loss(r):
        return (ops.tanh(layer(r)) ** 2).sum()

    def theirs(weight, bias, r):
        return (torch.tanh(r @ weight.T + bias) ** 2).sum()

    got = ms.vmap(ms.grad(loss, None, weights))(ms.Tensor(ROWS))
    want = torch.func.vmap(torch.func.grad(theirs, (0, 1)), (None, None, 0))(weight, bias, torch.tensor(ROWS))
    for g, w in zip(got, want, strict=True):
        assert g.shape == tuple(w.shape)
        np.testing.assert_allclose(g.asnumpy(), w.numpy(), rtol=1e-11)
