"""Gradients through cond, scan and call nodes, to second order, against jax's own."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from tests.autodiff.staging import run_staged, staged

import mycelia as ms
from mycelia import ops
from mycelia.autodiff import grad
from mycelia.autodiff.transform import split
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError
from mycelia.ir.control import barrier_p, call_p, cond_p, custom_vjp_call_p, scan_p
from mycelia.ir.types import TensorType
from mycelia.tensor.dispatch import apply

F = TensorType(dt.float64, ())
V = TensorType(dt.float64, (3,))
B = TensorType(dt.bool_, ())

X = np.array([0.5, -1.25, 2.0])
W = np.array([1.5, 0.25, -0.75])


def branches():
    return staged(lambda x, w: (x * x * w, w), V, V), staged(lambda x, w: (x + w, w * 2.0), V, V)


@pytest.mark.parametrize("taken", [True, False])
def test_cond_first_and_second_order(taken):
    true_graph, false_graph = branches()

    def ours(p, x, w):
        def f(x, w):
            a, b = apply(cond_p, p, x, w, true_graph=true_graph, false_graph=false_graph)
            return (a * b * x).sum()

        first = grad(f, (0, 1))(x, w)
        second = grad(lambda x: (grad(f)(x, w) * w).sum())(x)
        return (*first, second)

    def theirs(x, w):
        a, b = lax.cond(taken, lambda x, w: (x * x * w, w), lambda x, w: (x + w, w * 2.0), x, w)
        return (a * b * x).sum()

    got = run_staged(ours, np.array(taken), X, W)
    want = [*jax.grad(theirs, (0, 1))(X, W), jax.grad(lambda x: (jax.grad(theirs)(x, W) * W).sum())(X)]
    for g, e in zip(got, want, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-12)


def test_cond_with_an_output_active_in_one_branch_only():
    true_graph = staged(lambda x, w: x * w, V, V)
    false_graph = staged(lambda x, w: w, V, V)

    def ours(p, x, w):
        return grad(lambda x: apply(cond_p, p, x, w, true_graph=true_graph, false_graph=false_graph)[0].sum())(x)

    np.testing.assert_allclose(run_staged(ours, np.array(True), X, W)[0], W)
    np.testing.assert_allclose(run_staged(ours, np.array(False), X, W)[0], np.zeros(3))


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_first_and_second_order(reverse):
    def body(c, h, k, x):
        new = h * x + c
        return new, k + 1.0, new * c * x

    graph = staged(body, V, V, F, V)
    xs = np.linspace(-1, 1, 12).reshape(4, 3)

    def ours(c, h, xs):
        def f(c, h, xs):
            zero = (c * 0.0).sum()
            last, k, ys = apply(
                scan_p, c, h, zero, xs, body_graph=graph, n_const=1, n_carry=2, length=4, reverse=reverse
            )
            return (last * last).sum() + (ys * ys).sum() + k

        first = grad(f, (0, 1, 2))(c, h, xs)
        second = grad(lambda c: (grad(f, 2)(c, h, xs) * xs).sum())(c)
        return (*first, second)

    def theirs(c, h, xs):
        def step(carry, x):
            h, k = carry
            new = h * x + c
            return (new, k + 1.0), new * c * x

        (last, k), ys = lax.scan(step, (h, 0.0), xs, reverse=reverse)
        return (last * last).sum() + (ys * ys).sum() + k

    want = [*jax.grad(theirs, (0, 1, 2))(X, W, xs), jax.grad(lambda c: (jax.grad(theirs, 2)(c, W, xs) * xs).sum())(X)]
    for g, e in zip(run_staged(ours, X, W, xs), want, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-10)


def test_scan_of_no_rounds_passes_gradients_through():
    graph = staged(lambda h, x: (h * x, h), V, V)

    def ours(h, xs):
        return grad(
            lambda h: apply(scan_p, h, xs, body_graph=graph, n_const=0, n_carry=1, length=0, reverse=False)[0].sum()
        )(h)

    np.testing.assert_array_equal(run_staged(ours, X, np.zeros((0, 3)))[0], np.ones(3))


@pytest.mark.parametrize("recompute", [False, True])
def test_call_first_and_second_order(recompute):
    graph = staged(lambda x, w: (x * x * w, x), V, V)

    def ours(x, w):
        def f(x, w):
            a, b = apply(call_p, x, w, graph=graph, recompute=recompute)
            return (a * b).sum()

        return (*grad(f, (0, 1))(x, w), grad(lambda x: grad(f)(x, w).sum())(x))

    got = run_staged(ours, X, W)
    for g, e in zip(got, [3 * X**2 * W, X**3, 6 * X * W], strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-12)


def test_forward_of_a_recomputed_call_keeps_no_residuals():
    graph = staged(lambda x: x * x * x, V)
    outer = staged(lambda x: apply(call_p, x, graph=graph, recompute=True)[0], V)
    part = split(outer, (True,))
    assert [kind for kind, _ in part.residuals] == ["param"]


def test_split_is_done_once_per_graph():
    graph = staged(lambda x, w: (x * w).sum(), V, V)
    assert split(graph, (True, False)) is split(graph, (True, False))
    assert split(graph, (True, False)) is not split(graph, (True, True))


def test_jax_is_not_asked_for_derivatives():
    """The transformation stages our own rules: the derivative graph holds named operators only."""
    graph = staged(grad(lambda x: (x * x).sum()), V)
    assert {n.op.name for n in graph.nodes} <= {"mul", "reduce_sum", "constant", "broadcast_to", "reshape", "add"}


def test_third_order_through_a_scan_with_stacked_outputs_and_a_cond():
    """Residuals of a cond inside a scan are stacked; each derivative scans over the stacks of the one before."""
    first = staged(lambda h, x: ops.sin(h * x), F, F)
    second = staged(lambda h, x: h * x * x, F, F)

    def body(c, h, x):
        new = apply(cond_p, x > 0.0, h + c, x, true_graph=first, false_graph=second)[0]
        return new, new * h * x

    graph = staged(body, F, F, F)
    signs = xs = np.array([0.8, -0.9, 1.2])

    def f(c, h, xs):
        last, ys = apply(scan_p, c, h, xs, body_graph=graph, n_const=1, n_carry=1, length=3, reverse=False)
        return last * last + (ys * ys).sum()

    def g(c, h, xs):
        ys = []
        for k in range(3):
            new = jnp.sin((h + c) * xs[k]) if signs[k] > 0 else (h + c) * xs[k] * xs[k]
            ys.append(new * h * xs[k])
            h = new
        return h * h + sum(y * y for y in ys)

    def orders(d, f):
        def third(c, h, xs):
            return d(lambda c: d(lambda h: (d(f, 2)(c, h, xs) * xs).sum())(h))(c)

        return lambda c, h, xs: (*d(f, (0, 1, 2))(c, h, xs), d(d(f))(c, h, xs), third(c, h, xs))

    got = run_staged(orders(grad, f), np.float64(0.3), np.float64(0.7), xs)
    want = orders(jax.grad, g)(0.3, 0.7, jnp.asarray(xs))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_a_barrier_passes_every_order():
    def ours(x):
        def f(x):
            a, b = apply(barrier_p, x * x, x)
            return (a * b).sum()

        def second(x):
            return grad(lambda x: grad(f)(x).sum())(x)

        return grad(f)(x), second(x), grad(lambda x: second(x).sum())(x)

    for got, want in zip(run_staged(ours, X), [3 * X**2, 6 * X, np.full(3, 6.0)], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_second_and_third_order_of_a_custom_gradient_differentiate_its_backward_graph():
    graph = staged(lambda x, w: x * w, V, V)
    backward = staged(lambda x, w, out, ct: (ct * x * x * w, ct * out * 2.0), V, V, V, V)

    def f(x, w):
        return apply(custom_vjp_call_p, x, w, graph=graph, backward=backward)[0].sum()

    def ours(x, w):
        first = grad(f, (0, 1))(x, w)
        second = grad(lambda x, w: grad(f)(x, w).sum(), (0, 1))(x, w)
        of_out = grad(lambda x: grad(f, 1)(x, w).sum())(x)  # through out: the custom rule once more
        third = grad(lambda x: grad(lambda w: grad(f)(x, w).sum())(w).sum())(x)
        return (*first, *second, of_out, third)

    want = [X**2 * W, 2 * X * W, 2 * X * W, X**2, 2 * X**2 * W, 2 * X]
    for got, e in zip(run_staged(ours, X, W), want, strict=True):
        np.testing.assert_allclose(got, e, rtol=1e-12)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def test_recursion_to_a_static_depth(mode):
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1) if n % 2 else power(x * x, n // 2)

    ms.set_context(mode=mode)
    x = ms.Tensor(np.float64(1.3))
    np.testing.assert_allclose(float(ms.grad(lambda x: power(x, 13))(x)), 13 * 1.3**12, rtol=1e-12)
    np.testing.assert_allclose(float(ms.grad(ms.grad(lambda x: power(x, 6)))(x)), 30 * 1.3**4, rtol=1e-12)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def test_integers_on_the_way_stop_the_gradient(mode):
    """What goes through an integer is constant; an integer argument is refused."""
    ms.set_context(mode=mode)
    x = ms.Tensor(np.array([1.5, -2.5]))
    found = ms.grad(lambda x: (x * x.astype(ms.int32)).sum())(x)
    np.testing.assert_array_equal(found.asnumpy(), [1.0, -2.0])
    with pytest.raises(ArgumentTypeError, match=r"dtype Int32.*floating or complex"):
        ms.grad(lambda x: (x * x).sum())(x.astype(ms.int32))
