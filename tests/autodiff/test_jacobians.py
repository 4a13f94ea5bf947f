"""jacrev, jacfwd, hessian, jet and derivative against jax, torch and central differences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, OutOfRangeError, ShapeError

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
#: Outside a gradient both modes run the same compiled graph; one of them is enough for the fast suite.
GRAPH_FIRST = pytest.mark.parametrize(
    "mode", [pytest.param(ms.PYNATIVE_MODE, marks=pytest.mark.slow), ms.GRAPH_MODE], ids=["pynative", "graph"]
)
BOTH = pytest.mark.parametrize("jacobian", [ms.jacrev, ms.jacfwd], ids=["jacrev", "jacfwd"])

X = np.array([[0.5, -1.25, 2.0], [1.0, 0.25, -0.5]])
W = np.array([1.5, 0.25, -0.75])


def several(x, w):
    return ops.tanh(x) @ w, (x * x).sum() * w


def several_jax(x, w):
    return jnp.tanh(x) @ w, (x * x).sum() * w


@GRAPH_FIRST
@BOTH
def test_two_outputs_and_two_inputs(jacobian, mode):
    ms.set_context(mode=mode)
    got = jacobian(several, (0, 1))(ms.Tensor(X), ms.Tensor(W))
    want = jax.jacrev(several_jax, (0, 1))(X, W)
    for g_row, w_row in zip(got, want, strict=True):
        for g, w in zip(g_row, w_row, strict=True):
            assert g.shape == w.shape
            np.testing.assert_allclose(g.asnumpy(), w, rtol=1e-12)


@BOTH
def test_a_negative_position_and_aux(jacobian):
    found, aux = jacobian(several, -1, has_aux=True)(ms.Tensor(X), ms.Tensor(W))
    np.testing.assert_allclose(found.asnumpy(), np.tanh(X), rtol=1e-12)
    np.testing.assert_allclose(aux.asnumpy(), (X * X).sum() * W)


@BOTH
def test_nests(jacobian):
    def f(pair, scale):
        return {"y": pair["a"] * pair["b"] * scale}

    got = jacobian(f, 0)({"a": ms.Tensor(W), "b": ms.Tensor(W + 1)}, 2.0)
    np.testing.assert_allclose(got["y"]["a"].asnumpy(), np.diag(2 * (W + 1)))
    np.testing.assert_allclose(got["y"]["b"].asnumpy(), np.diag(2 * W))


@BOTH
def test_what_does_not_depend_has_zeros(jacobian):
    def f(x, w):
        return x * 2, w * 1, ops.argmax(x)

    got = jacobian(f, 0)(ms.Tensor(W), ms.Tensor(X))
    np.testing.assert_allclose(got[0].asnumpy(), 2 * np.eye(3))
    assert got[1].shape == (2, 3, 3)
    assert not got[1].asnumpy().any()
    assert got[2].shape == (3,)


@BOTH
def test_complex_numbers(jacobian):
    z = np.array([1 + 2j, -0.5 + 1j])
    got = jacobian(lambda z: ops.exp(z) * z[0])(ms.Tensor(z))
    want = np.diag(np.exp(z) * z[0]) + np.outer(np.exp(z), [1, 0])
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-12)


@BOTH
def test_complex_numbers_of_real_ones(jacobian):
    c = np.array([1 + 2j, -0.5 + 1j, 3j])
    got = jacobian(lambda x: ops.sin(x) * ms.Tensor(c) * x[0])(ms.Tensor(W))
    want = np.diag(np.cos(W) * c * W[0]) + np.outer(np.sin(W) * c, [1, 0, 0])
    assert got.dtype == ms.complex128
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-12)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(3, 4, dtype=ms.float64), nn.Dense(4, 2, dtype=ms.float64)

    def construct(self, x):
        y = ops.tanh(self.first(x))
        steps = 0
        while (y * y).sum() < 2.0:
            y = y * 1.25 + self.first(x) * 0.25
            steps = steps + 1
        if y.sum() > 0:
            y = ops.exp(y)
        return self.second(y)


@GRAPH_FIRST
def test_a_cell_with_a_loop_and_a_branch(mode):
    ms.set_context(mode=mode)
    net, x = Net(), ms.Tensor(W)
    got = ms.jacfwd(net)(x).asnumpy()
    h = 1e-6
    columns = []
    for e in np.eye(3):
        ahead, back = net(ms.Tensor(W + h * e)).asnumpy(), net(ms.Tensor(W - h * e)).asnumpy()
        columns.append((ahead - back) / (2 * h))
    np.testing.assert_allclose(got, np.stack(columns, 1), rtol=1e-6, atol=1e-9)


def bowl(x):
    return (ops.sin(x) * x).sum() ** 2


def bowl_jax(x):
    return (jnp.sin(x) * x).sum() ** 2


@GRAPH_FIRST
def test_hessian_every_way(mode):
    ms.set_context(mode=mode)
    x = ms.Tensor(W)
    want = jax.hessian(bowl_jax)(W)
    pairs = [(ms.jacfwd, ms.jacrev), (ms.jacrev, ms.jacrev), (ms.jacrev, ms.jacfwd), (ms.jacfwd, ms.jacfwd)]
    found = [ms.hessian(bowl)(x)] + [outer(inner(bowl))(x) for outer, inner in pairs[1:]]
    found.append(ms.jacfwd(ms.grad(bowl))(x))
    for got in found:
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-11)


@pytest.mark.slow
def test_hessian_of_two_inputs():
    got = ms.hessian(lambda x, w: (ops.sin(x) @ w).sum(), (0, 1))(ms.Tensor(X), ms.Tensor(W))
    want = jax.hessian(lambda x, w: (jnp.sin(x) @ w).sum(), (0, 1))(X, W)
    for i in range(2):
        for j in range(2):
            assert got[i][j].shape == want[i][j].shape
            np.testing.assert_allclose(got[i][j].asnumpy(), want[i][j], rtol=1e-12)


@MODES
def test_gradient_of_a_jacobian(mode):
    ms.set_context(mode=mode)
    got = ms.grad(lambda x, w: (ms.jacrev(several)(x, w)[0] ** 2).sum(), (0, 1))(ms.Tensor(X), ms.Tensor(W))
    want = jax.grad(lambda x, w: (jax.jacrev(several_jax)(x, w)[0] ** 2).sum(), (0, 1))(X, W)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.asnumpy(), w, rtol=1e-11)


def test_jacobians_of_a_batch():
    rows = np.stack([W, W * 2, W - 1])
    for jacobian in (ms.jacrev, ms.jacfwd):
        got = ms.vmap(jacobian(lambda r: ops.tanh(r) * r.sum()))(ms.Tensor(rows))
        want = jax.vmap(jax.jacrev(lambda r: jnp.tanh(r) * r.sum()))(rows)
        np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-12)


def test_inside_a_compiled_function_with_parameters():
    net, x = nn.Dense(3, 2, dtype=ms.float64), ms.Tensor(W)

    @ms.jit
    def penalty(x):
        return (ms.jacfwd(net)(x) ** 2).sum()

    value, (of_weight, of_bias) = ms.value_and_grad(penalty, None, net.trainable_params())(x)
    weight = net.weight.asnumpy()
    np.testing.assert_allclose(value.asnumpy(), (weight**2).sum())
    np.testing.assert_allclose(of_weight.asnumpy(), 2 * weight)
    assert not of_bias.asnumpy().any()


def test_the_primal_runs_once_for_all_columns():
    from tests.autodiff.staging import staged, types_of

    graph = staged(ms.jacfwd(lambda x: ops.exp(ops.sin(x))), *types_of(W))
    (mapped,) = [n for n in graph.nodes if n.op.name == "vmap"]
    assert {"sin", "exp"}.isdisjoint(n.op.name for n in mapped.attrs["graph"].nodes)


def test_a_jacobian_prints_and_draws_once(capfd):
    def f(x, w):
        print("x is", x)
        return x * w + ops.rand(3, dtype=ms.float64), ops.sin(x)

    x, w = ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor(W)
    for jacobian in (ms.jacfwd, ms.jacrev):
        ms.set_seed(3)
        (of_x, of_w), (sine, nothing) = jacobian(f, (0, 1))(x.astype(ms.float64), w)
        np.testing.assert_allclose(of_x.asnumpy(), np.diag(W))
        np.testing.assert_allclose(of_w.asnumpy(), np.diag([1.0, 2.0, 3.0]))
        np.testing.assert_allclose(sine.asnumpy(), np.diag(np.cos([1.0, 2.0, 3.0])))
        assert not nothing.asnumpy().any()
        jax.effects_barrier()
        assert capfd.readouterr().out == "x is [1. 2. 3.]\n"
        after = ops.rand(2).asnumpy()
        ms.set_seed(3)
        ops.rand(3, dtype=ms.float64)
        np.testing.assert_array_equal(after, ops.rand(2).asnumpy())


@BOTH
def test_inputs_and_outputs_without_elements(jacobian):
    x = ms.Tensor(np.zeros((0, 2)))
    got = jacobian(lambda x, w: ops.exp(x) * w, (0, 1))(x, ms.Tensor(W[:2]))
    assert [g.shape for g in got] == [(0, 2, 0, 2), (0, 2, 2)]
    assert jacobian(lambda x: x.sum() + 1)(x).shape == (0, 2)


@GRAPH_FIRST
def test_jet_against_nested_jax(mode):
    ms.set_context(mode=mode)

    def along(f, order):
        def curve(t):
            return f(W + t + 0.25 * t * t, X + 2 * t)

        def slope(c):
            return lambda t: jax.jvp(c, (t,), (1.0,))[1]

        for _ in range(order):
            curve = slope(curve)
        return curve(0.0)

    series = (np.stack([np.full(3, 1.0), np.full(3, 0.5), np.zeros(3)]), np.zeros((3, 2, 3)))
    series[1][0] = 2.0
    out, found = ops.jet(
        lambda w, x: (ops.exp(ops.sin(w)), x * w), (ms.Tensor(W), ms.Tensor(X)), tuple(map(ms.Tensor, series))
    )
    assert [o.shape for o in out] == [(3,), (2, 3)]
    for k in range(3):
        want = along(lambda w, x: (jnp.exp(jnp.sin(w)), x * w), k + 1)
        for g, w in zip(found, want, strict=True):
            np.testing.assert_allclose(g[k].asnumpy(), w, rtol=1e-11, atol=1e-12)


def test_derivative_of_order_five():
    out, fifth = ops.derivative(lambda x: ops.sin(2 * x), ms.Tensor(W), 5)
    np.testing.assert_allclose(out.asnumpy(), np.sin(2 * W))
    np.testing.assert_allclose(fifth.asnumpy(), 32 * np.cos(2 * W), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x: ms.jacrev(3), ArgumentTypeError, "jacrev: argument 'fn' got int"),
        (lambda x: ms.jacfwd(bowl, "0"), ArgumentTypeError, "grad_position.*'0'"),
        (lambda x: ms.jacfwd(bowl, None), ArgumentTypeError, "grad_position.*None"),
        (lambda x: ms.jacfwd(bowl, ()), ArgumentValueError, "grad_position.*no position"),
        (lambda x: ms.jacfwd(bowl, 0, 1), ArgumentTypeError, "has_aux.*int"),
        (lambda x: ms.jacrev(bowl, 1)(x), OutOfRangeError, "grad_position.*1.*1 positional"),
        (lambda x: ms.jacrev(bowl)(2.0), ArgumentTypeError, "argument 0.*float"),
        (lambda x: ms.jacrev(bowl)(ms.Tensor([1, 2])), ArgumentTypeError, "argument 0.*dtype Int64"),
        (lambda x: ms.jacrev(bowl, has_aux=True)(x), ArgumentValueError, "has_aux"),
        (lambda x: ms.jacfwd(lambda x: 2)(x), ArgumentTypeError, "returned int"),
        (lambda x: ms.hessian(bowl, (0, True)), ArgumentTypeError, "hessian.*grad_position"),
        (lambda x: ops.jet(bowl, 2.0, x), ArgumentTypeError, "primals.*float"),
        (lambda x: ops.jet(bowl, x, (x, x)), ArgumentValueError, "series.*2 tensors"),
        (lambda x: ops.jet(bowl, x, 1.0), ArgumentTypeError, "series.*float"),
        (lambda x: ops.jet(bowl, x, x), ShapeError, r"series.*\(3,\)"),
        (lambda x: ops.derivative(bowl, x, 0), ArgumentValueError, "order.*0"),
        (lambda x: ops.derivative(bowl, x, 1.5), ArgumentTypeError, "order.*float"),
    ],
)
def test_what_is_refused(call, error, said):
    with pytest.raises(error, match=said):
        call(ms.Tensor(W))
