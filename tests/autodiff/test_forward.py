"""Forward mode: pushed graphs against jax.jvp and central differences, and jvp's and vjp's public face."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from tests.autodiff.staging import run_staged, staged, types_of

import mycelia as ms
from mycelia import nn, ops
from mycelia.autodiff import grad
from mycelia.autodiff.forward import pushforward
from mycelia.autodiff.transform import linearize
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError, StateError
from mycelia.ir.control import barrier_p, call_p, cond_p, custom_vjp_call_p, scan_p, while_p
from mycelia.ir.types import TensorType
from mycelia.ir.verifier import verify
from mycelia.tensor.dispatch import apply

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])

F = TensorType(dt.float64, ())
V = TensorType(dt.float64, (3,))
I = TensorType(dt.int64, ())  # noqa: E741

X, W = np.array([0.5, -1.25, 2.0]), np.array([1.5, 0.25, -0.75])
DX, DW = np.array([1.0, 0.5, -2.0]), np.array([-0.5, 2.0, 1.0])


def push(fn, *points, moving=None):
    """``fn``'s outputs and tangents along DX, DW at the points, by graph transformation."""

    def both(*given):
        n = len(points)
        args, tangents = given[:n], given[n:]
        graph = staged(fn, *[TensorType(a.dtype, a.shape) for a in args])
        outs, moved = pushforward(
            graph, args, [t if moving is None or moving[i] else None for i, t in enumerate(tangents)]
        )
        return (*outs, *[ops.zeros_like(o) if t is None else t for o, t in zip(outs, moved, strict=True)])

    directions = [DX, DW][: len(points)]
    verify(staged(both, *types_of(*points, *directions)))
    return run_staged(both, *points, *directions)


def agree(got, values, tangents):
    for g, w in zip(got, (*values, *tangents), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("positive", [True, False])
def test_cond(positive):
    first, second = staged(lambda x, w: (x * x * w, w), V, V), staged(lambda x, w: (x + w, ops.zeros_like(w)), V, V)

    def ours(x, w):
        p = (x.sum() > 0) if positive else (x.sum() < 0)
        return apply(cond_p, p, x, w, true_graph=first, false_graph=second)

    def theirs(x, w):
        return (x * x * w, w) if positive else (x + w, jnp.zeros_like(w))

    agree(push(ours, X, W), *jax.jvp(theirs, (X, W), (DX, DW)))


def test_scan_carries_tangents_and_stacks_them():
    body = staged(lambda c, s, n, x: (s * ops.sin(c) + x, n + 1, s * x, n), F, F, I, F)
    assert body.output_types == (F, I, F, I)
    inner = staged(lambda w, c, n, x: (w * ops.sin(c) + x, n + 1, c * x, n), F, F, I, F)

    def ours(x, w):
        zero = apply_constant(0)
        return apply(scan_p, w[0], x[0], zero, x, body_graph=inner, n_const=1, n_carry=2, length=3, reverse=False)

    def theirs(x, w):
        def step(carry, r):
            c, n = carry
            return (w[0] * jnp.sin(c) + r, n + 1), (c * r, n)

        (c, _), (rows, _) = lax.scan(step, (x[0], 0), x)
        return c, rows

    got = push(ours, X, W)
    values, tangents = jax.jvp(theirs, (X, W), (DX, DW))
    agree([got[0], got[2], got[4], got[6]], values, tangents)
    assert got[1] == 3
    assert got[3].tolist() == [0, 1, 2]


def apply_constant(value):
    from mycelia.tensor.dispatch import scalar

    return scalar(value, dt.int64)


@pytest.mark.parametrize("moving", [(True, True), (True, False), (False, True)])
def test_while_loop_of_unknown_length(moving):
    # carries: c (moves), a copy that starts still and is made to move by the body, and a counter
    test = staged(lambda w, c, d, n: c.sum() < 40.0, V, V, V, I)
    body = staged(lambda w, c, d, n: (c * 1.5 + w * w, d + ops.sin(c), n + 1), V, V, V, I)

    def ours(x, w):
        return apply(
            while_p, w, x, ops.zeros_like(x), apply_constant(0), cond_graph=test, body_graph=body, n_const=1
        )[:2]  # fmt: skip

    def theirs(x, w):
        def step(state):
            c, d = state
            return c * 1.5 + w * w, d + jnp.sin(c)

        return lax.while_loop(lambda s: s[0].sum() < 40.0, step, (x, jnp.zeros_like(x)))

    directions = (DX * moving[0], DW * moving[1])
    agree(push(ours, X, W, moving=moving), *jax.jvp(theirs, (X, W), directions))


def test_call_and_barrier():
    inner = staged(lambda x, w: (ops.exp(x) * w, w), V, V)

    def ours(x, w):
        a, b = apply(call_p, x, w, graph=inner, recompute=True)
        return apply(barrier_p, a * b, x)

    agree(push(ours, X, W), *jax.jvp(lambda x, w: (jnp.exp(x) * w * w, x), (X, W), (DX, DW)))


def test_a_gradient_of_its_own_is_respected():
    ahead = staged(lambda x: ops.sin(x), V)
    behind = staged(lambda x, out, ct: ct * x * 10 + 0 * out, V, V, V)
    got = push(lambda x: apply(custom_vjp_call_p, x, graph=ahead, backward=behind)[0], X)
    agree(got, [np.sin(X)], [X * 10 * DX])


def test_zero_tangents_take_no_nodes():
    graph = staged(lambda x, w: (x * 2, ops.sin(w), ops.stop_gradient(x) * w), V, V)

    def pushed_alone(x, w, t):
        outs, moved = pushforward(graph, [x, w], [t, None])
        assert [m is not None for m in moved] == [True, False, False]
        return (*outs, moved[0])

    made = staged(pushed_alone, V, V, V)
    assert len(made.nodes) <= len(graph.nodes) + 2


def test_what_is_not_asked_for_is_not_pushed():
    graph = staged(lambda x: (x * 2, ops.sin(x)), V)

    def some(x, t):
        outs, moved = pushforward(graph, [x], [t], [True, False])
        assert moved[1] is None
        return (*outs, moved[0])

    assert "cos" not in [n.op.name for n in staged(some, V, V).nodes]


@MODES
def test_jvp_of_jvp_and_of_grad_against_jax(mode):
    ms.set_context(mode=mode)
    x, t = ms.Tensor(X), ms.Tensor(DX)

    def f(x):
        return (ops.sin(x) * ops.exp(x) / (1 + x * x)).sum()

    def g(x):
        return (jnp.sin(x) * jnp.exp(x) / (1 + x * x)).sum()

    value, second = ms.jvp(lambda x: ms.jvp(f, x, t)[1], x, t)
    want = jax.jvp(lambda x: jax.jvp(g, (x,), (DX,))[1], (X,), (DX,))
    np.testing.assert_allclose([value.asnumpy(), second.asnumpy()], want, rtol=1e-12)
    forward = ms.jvp(ms.grad(f), x, t)[1]
    reverse = ms.grad(lambda x: ms.jvp(f, x, t)[1])(x)
    product = jax.jvp(jax.grad(g), (X,), (DX,))[1]
    np.testing.assert_allclose(forward.asnumpy(), product, rtol=1e-11)
    np.testing.assert_allclose(reverse.asnumpy(), product, rtol=1e-11)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layer = nn.Dense(3, 2, dtype=ms.float64)
        self.calls = ms.Parameter(ms.Tensor(0.0, ms.float64), name="calls", requires_grad=False)

    def construct(self, x):
        self.calls = self.calls + 1
        if x.sum() > 0:
            return ops.tanh(self.layer(x))
        return self.layer(x)


@MODES
@pytest.mark.parametrize("sign", [1, -1])
def test_jvp_and_vjp_of_a_cell_with_branches(mode, sign):
    ms.set_context(mode=mode)
    net, x, t = Net(), ms.Tensor(sign * X), ms.Tensor(DX)
    out, tangent = ms.jvp(net, x, t)
    assert float(net.calls) == 1.0
    again, vjp_fn = ms.vjp(net, x, weights=net.layer.weight)
    assert float(net.calls) == 2.0
    np.testing.assert_allclose(out.asnumpy(), again.asnumpy(), rtol=1e-12)
    for ct in (np.array([1.0, 0.0]), np.array([0.5, -2.0])):
        (of_x,), of_weight = vjp_fn(ms.Tensor(ct))
        np.testing.assert_allclose((of_x.asnumpy() * DX).sum(), (ct * tangent.asnumpy()).sum(), rtol=1e-11)
        assert of_weight.shape == (2, 3)
    h = 1e-6
    slope = (net(x + h * t).asnumpy() - net(x - h * t).asnumpy()) / (2 * h)
    np.testing.assert_allclose(tangent.asnumpy(), slope, rtol=1e-7, atol=1e-9)


class Custom(nn.Cell):
    def construct(self, x):
        return ops.sin(x)

    def bprop(self, x, out, dout):
        return (dout * x * 10,)


@MODES
def test_a_cells_own_bprop(mode):
    ms.set_context(mode=mode)
    net, x, t = Custom(), ms.Tensor(X), ms.Tensor(DX)
    np.testing.assert_allclose(ms.jvp(net, x, t)[1].asnumpy(), 10 * X * DX)
    np.testing.assert_allclose(ms.vjp(net, x)[1](t)[0].asnumpy(), 10 * X * DX)
    np.testing.assert_allclose(ms.jacfwd(net)(x).asnumpy(), np.diag(10 * X))
    np.testing.assert_allclose(ms.jacrev(net)(x).asnumpy(), np.diag(10 * X))
    np.testing.assert_allclose(ms.vmap(ms.grad(net))(x).asnumpy(), 10 * X)


def test_a_hook_changes_gradients_but_no_tangents():
    hook = ops.InsertGradientOf(lambda g: g * 100)
    f = lambda x: ops.sin(hook(x))  # noqa: E731
    assert float(ms.grad(f)(ms.Tensor(0.0))) == 100.0
    assert float(ms.jvp(f, ms.Tensor(0.0), ms.Tensor(1.0))[1]) == 1.0


def test_the_function_of_vjp_is_used_again_and_inside_graphs():
    x = ms.Tensor(X)
    _, vjp_fn = ms.vjp(lambda x: ms.jit(lambda y: ops.sin(y) * y)(x) * x, x)
    rows = ms.vmap(lambda ct: vjp_fn(ct)[0])(ms.Tensor(np.eye(3))).asnumpy()
    want = jax.jacrev(lambda x: jnp.sin(x) * x * x)(X)
    np.testing.assert_allclose(rows, want, rtol=1e-12)
    np.testing.assert_allclose(vjp_fn(ms.Tensor(DX))[0].asnumpy(), DX @ want, rtol=1e-12)
    # linear in the cotangent, so its own gradient is the Jacobian times ones
    back = ms.grad(lambda ct: vjp_fn(ct)[0])(ms.Tensor(DX))
    np.testing.assert_allclose(back.asnumpy(), want.sum(1), rtol=1e-12)


def test_vjp_under_an_outer_gradient():
    def f(x):
        out, vjp_fn = ms.vjp(lambda x: x * x * x, x)
        return (vjp_fn(out)[0] * x).sum()  # 3 x^2 * x^3 * x

    np.testing.assert_allclose(ms.grad(f)(ms.Tensor(X)).asnumpy(), 18 * X**5, rtol=1e-12)
    np.testing.assert_allclose(ms.grad(ms.jit(f))(ms.Tensor(X)).asnumpy(), 18 * X**5, rtol=1e-12)
    np.testing.assert_allclose(ms.jvp(f, ms.Tensor(X), ms.Tensor(DX))[1].asnumpy(), (18 * X**5 * DX).sum(), rtol=1e-12)


def test_nests_and_integers():
    def f(pair, n):
        return {"a": pair[0] * pair[1], "n": n + 1}

    x, w, n = ms.Tensor(X), ms.Tensor(W), ms.Tensor([1, 2, 3])
    out, tangent = ms.jvp(f, ((x, w), n), ((ms.Tensor(DX), ms.Tensor(DW)), ms.Tensor([7, 7, 7])))
    np.testing.assert_allclose(tangent["a"].asnumpy(), DX * W + X * DW)
    assert tangent["n"].asnumpy().tolist() == [0, 0, 0]
    assert out["n"].dtype == ms.int64
    out, vjp_fn = ms.vjp(f, (x, w), n)
    (of_x, of_w), of_n = vjp_fn({"a": ms.Tensor(DX), "n": ms.Tensor([1, 1, 1])})
    np.testing.assert_allclose(of_x.asnumpy(), DX * W)
    np.testing.assert_allclose(of_w.asnumpy(), DX * X)
    assert of_n.asnumpy().tolist() == [0, 0, 0]


def test_complex_numbers_against_jax():
    z, t = np.array([1 + 2j, -0.5 + 1j]), np.array([0.5 - 1j, 2 + 0.25j])

    def ours(z):
        return ops.abs(z * z), ops.conj(z) * ops.exp(z), ops.real(z) * ops.imag(z * z)

    def theirs(z):
        return jnp.abs(z * z), jnp.conj(z) * jnp.exp(z), jnp.real(z) * jnp.imag(z * z)

    _, got = ms.jvp(ours, ms.Tensor(z), ms.Tensor(t))
    for g, w in zip(got, jax.jvp(theirs, (z,), (t,))[1], strict=True):
        np.testing.assert_allclose(g.asnumpy(), w, rtol=1e-12)


def test_the_second_jvp_stages_nothing():
    import itertools

    staged_by_now = itertools.count()

    def f(x):
        next(staged_by_now)
        return x * x

    for _ in range(3):
        ms.jvp(f, ms.Tensor(X), ms.Tensor(DX))
    assert next(staged_by_now) == 1


def cube(x):
    return x * x * x


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x: ms.jvp(3, x, x), ArgumentTypeError, "jvp: argument 'fn' got int"),
        (lambda x: ms.jvp(cube, 2.0, x), ArgumentTypeError, "argument 'inputs' got float"),
        (lambda x: ms.jvp(cube, x, 1.0), ArgumentTypeError, "argument 'v' got float"),
        (lambda x: ms.jvp(cube, x, (x, x)), ArgumentValueError, "argument 'v' got 2 tensors; it takes 1"),
        (lambda x: ms.jvp(cube, x, x[:2]), ShapeError, r"argument 'v' got shape \(2,\) at 0.*\(3,\)"),
        (
            lambda x: ms.jvp(cube, x, x.astype(ms.float32)),
            DTypeError,
            "got dtype Float32 at 0.*Float64|float32.*float64",
        ),
        (lambda x: ms.jvp(cube, x, x, has_aux=True), ArgumentValueError, "has_aux.*returned Tensor"),
        (lambda x: ms.jvp(lambda x: 3, x, x), ArgumentTypeError, "a function that returned int"),
        (lambda x: ms.vjp(3, x), ArgumentTypeError, "vjp: argument 'fn' got int"),
        (lambda x: ms.vjp(lambda x: 3, x), ArgumentTypeError, "a function that returned int"),
        (lambda x: ms.vjp(cube, x, weights=[x]), ArgumentTypeError, "weights.*Tensor"),
        (lambda x: ms.vjp(cube, x, has_aux=True), ArgumentValueError, "has_aux.*returned Tensor"),
        (lambda x: ms.vjp(cube, x)[1](x[:2]), ShapeError, r"cotangents.*\(2,\) at 0.*\(3,\)"),
        (lambda x: ms.vjp(cube, x)[1](x, x), ArgumentValueError, "cotangents.*2 tensors"),
        (lambda x: ms.vjp(cube, x)[1](x.astype(ms.float32)), DTypeError, "cotangents"),
        (lambda x: ops.linearize(cube, 3.0), ArgumentTypeError, "inputs.*float"),
        (lambda x: ms.get_grad([x], 0), ArgumentTypeError, "gradients.*list"),
        (lambda x: ms.get_grad((0, x), "w"), ArgumentTypeError, "identifier.*str"),
        (lambda x: ms.get_grad((0, x), 1), StateError, "position 1"),
    ],
)
def test_what_is_refused(call, error, said):
    with pytest.raises(error, match=said):
        call(ms.Tensor(X))


def test_get_grad_finds_positions_and_parameters():
    w = ms.Parameter(ms.Tensor(W), name="w")
    found = ms.grad(lambda x: (x * w).sum(), 0, [w], return_ids=True)(ms.Tensor(X))
    np.testing.assert_allclose(ms.get_grad(found, 0).asnumpy(), W)
    np.testing.assert_allclose(ms.get_grad(found, w).asnumpy(), X)


def test_linearize_gives_the_product_for_any_direction():
    out, jvp_fn = ops.linearize(lambda x, w: ops.sin(x) * w, (ms.Tensor(X), ms.Tensor(W)))
    np.testing.assert_allclose(out.asnumpy(), np.sin(X) * W)
    for dx, dw in ((DX, DW), (DW, DX)):
        want = np.cos(X) * W * dx + np.sin(X) * dw
        np.testing.assert_allclose(jvp_fn((ms.Tensor(dx), ms.Tensor(dw))).asnumpy(), want, rtol=1e-12)


def test_reverse_of_a_pushed_loop():
    body = staged(lambda w, c: (c * w + ops.sin(c),), F, F)

    def f(x, w):
        return apply(scan_p, w, x, body_graph=body, n_const=1, n_carry=1, length=4, reverse=False)[0]

    def ours(x, w):
        def tangent(x, w):
            graph = staged(f, F, F)
            return pushforward(graph, [x, w], [ops.ones_like(x), ops.ones_like(w)])[1][0]

        return grad(tangent, (0, 1))(x, w)

    def theirs(x, w):
        def g(x, w):
            for _ in range(4):
                x = x * w + jnp.sin(x)
            return x

        return jax.jvp(g, (x, w), (1.0, 1.0))[1]

    got = run_staged(ours, np.array(0.3), np.array(1.1))
    np.testing.assert_allclose(got, jax.grad(theirs, (0, 1))(0.3, 1.1), rtol=1e-12)


def test_transposing_a_pushed_graph_gives_the_reverse_rule():
    graph = staged(lambda x, w: ops.tanh(x * w) @ w, V, V)

    def f(x, w, t, ct):
        _, (moved,) = pushforward(graph, [x, w], [t, None])
        _, _, pull = linearize(graph, [x, w], [True, False])
        return moved * ct, (pull([ct])[0] * t).sum()

    left, right = run_staged(f, X, W, DX, np.array(1.5))
    np.testing.assert_allclose(left, right, rtol=1e-12)
