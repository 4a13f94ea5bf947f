"""Gradients of loops whose number of rounds is data: graphs built by hand, against jax's own of unrolled loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.autodiff.staging import staged

from mycelia import ops
from mycelia.autodiff import grad, while_loop
from mycelia.autodiff.transform import split
from mycelia.compiler.executable import Executable
from mycelia.core import dtypes as dt
from mycelia.ir.control import call_p, cond_p, scan_p, while_p
from mycelia.ir.graph import Graph
from mycelia.ir.types import TensorType
from mycelia.tensor.dispatch import apply

F = TensorType(dt.float64, ())
V = TensorType(dt.float64, (3,))
I = TensorType(dt.int64, ())  # noqa: E741

W, X = np.array([0.7, -0.4, 1.1]), np.array([0.3, 0.9, -0.5])


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the number of checkpoints, and of places on the stack."""

    def use(count: int, stack: int = 12) -> None:
        monkeypatch.setattr(while_loop, "FEWEST", count)
        monkeypatch.setattr(while_loop, "MOST", count)
        monkeypatch.setattr(while_loop, "STACK", stack)

    return use


def counted(body: Callable[..., Any], *types: TensorType, n_const: int) -> Callable[..., Any]:
    """A loop of n rounds of ``body(constants, carried, count)``, as a function of n, constants and carried values."""
    n_carry = len(types) - n_const
    condition = staged(lambda n, *rest: rest[-1] < n, I, *types, I)
    graph = staged(lambda n, *rest: (*body(*rest), rest[-1] + 1), I, *types, I)

    def loop(n, *args):
        out = apply(while_p, n, *args, n * 0, cond_graph=condition, body_graph=graph, n_const=1 + n_const)
        return out[:n_carry]

    return loop


def orders(f: Callable[..., Any], highest: int) -> Callable[..., Any]:
    """The function of (w, x) that gives derivatives of a scalar function of (w, x) up to an order."""

    def derivatives(d, w, x):
        found = [*d(f, (0, 1))(w, x)]
        if highest >= 2:
            found += d(lambda w, x: (d(f, 0)(w, x) * x).sum(), (0, 1))(w, x)
        if highest >= 3:
            found += d(lambda w, x: (d(lambda w, x: (d(f, 1)(w, x) * w).sum(), 0)(w, x) * x).sum(), (0, 1))(w, x)
        return found

    return derivatives


def program(highest: int) -> Executable:
    """Derivatives of a loop with two carried values, as a function of n, w and x."""
    loop = counted(lambda w, x, y, i: (ops.sin(x * w) + y * 0.5, x * x * 0.3), V, V, V, n_const=1)

    def ours(n, w, x):
        def f(w, x):
            a, b = loop(n, w, x, x * w)
            return (a * b + a).sum()

        return orders(f, highest)(grad, w, x)

    return Executable(staged(ours, I, V, V))


def expected(longest: int, highest: int) -> Callable[..., Any]:
    """The same by jax: rounds from the n-th on leave the values as they are."""

    def f(n):
        def inner(w, x):
            def step(carry, i):
                a, b = carry
                made = jnp.sin(a * w) + b * 0.5, a * a * 0.3
                return [jnp.where(i < n, new, old) for new, old in zip(made, carry, strict=True)], None

            (a, b), _ = jax.lax.scan(step, [x, x * w], jnp.arange(longest))
            return (a * b + a).sum()

        return inner

    return jax.jit(lambda n: orders(f(n), highest)(jax.grad, W, X))


def check(run: Executable, rounds: list[int], highest: int) -> None:
    reference = expected(max(rounds), highest)
    for n in rounds:
        for got, want in zip(run([np.int64(n), W, X]), reference(n), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12, err_msg=f"{n} rounds")


def test_first_order_for_every_number_of_rounds(few):
    few(4)
    check(program(1), [*range(11), 15, 16, 17, 20, 31, 32, 33, 37], 1)


def test_second_order(few):
    few(4)
    check(program(2), [0, 1, 2, 3, 4, 5, 9, 20], 2)


@pytest.mark.slow
def test_third_order(few):
    few(2)
    check(program(3), [0, 1, 2, 3, 5, 10], 3)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "stack"), [(2, 12), (8, 12), (2, 1), (4, 2), (16, 0)])
def test_any_number_of_checkpoints_and_of_places_on_the_stack(few, count, stack):
    few(count, stack)
    check(program(1), [0, 1, count - 1, count, count + 1, 2 * count, 2 * count + 1, 5 * count, 40], 1)


def test_rounds_in_the_thousands_are_exact(few):
    few(8, 3)
    loop = counted(lambda w, x, i: [x + w * ops.cos(x)], F, F, n_const=1)
    run = Executable(staged(lambda n, w, x: grad(lambda w, x: loop(n, w, x)[0], (0, 1))(w, x), I, F, F))

    def f(w, x):
        return jax.lax.scan(lambda x, _: (x + w * jnp.cos(x), None), x, None, length=3000)[0]

    want = jax.grad(f, (0, 1))(1e-3, 0.2)
    np.testing.assert_allclose(run([np.int64(3000), np.float64(1e-3), np.float64(0.2)]), want, rtol=1e-12)


def test_every_round_is_run_again_once_if_all_have_checkpoints(few):
    """The backward graph has one loop for that case, which holds the body once."""
    few(8)
    loop = counted(lambda w, x, i: [ops.sin(x * w)], V, V, n_const=1)
    part = split(staged(lambda n, w, x: loop(n, w, x)[0], I, V, V), (False, True, True))
    (call,) = [n for n in part.backward.nodes if n.op is call_p]
    (cond,) = [n for n in call.attrs["graph"].nodes if n.op is cond_p]
    (simple,) = [n for n in cond.attrs["true_graph"].nodes if n.op is while_p]
    body = simple.attrs["body_graph"]
    assert sum(n.op.name == "cos" for n in body.nodes) == 1
    assert not any(n.op in (while_p, cond_p) for n in body.nodes)


def loops_in(graph: Graph) -> list[Any]:
    found = []
    for node in graph.nodes:
        found += [node] if node.op is while_p else []
        for _, held in node.subgraphs:
            found += loops_in(held)
    return found


def test_what_the_gradient_does_not_need_is_not_kept():
    big = TensorType(dt.float64, (1000,))
    # y is only added to; z only counts; the gradient of the loop over x needs x alone
    loop = counted(lambda w, x, y, z, i: (ops.sin(x * w), y + x.sum(), z + 1.0), V, V, big, big, n_const=1)

    def f(n, w, x, y, z):
        a, b, c = loop(n, w, x, y, z)
        return a.sum() + b.sum() + c.sum()

    part = split(staged(f, I, V, V, big, big), (False, True, True, True, False))
    (ahead,) = loops_in(part.forward)
    buffers = [v.type for v in ahead.outputs if v.type.shape[1:] in ((3,), (1000,))]
    assert buffers == [TensorType(dt.float64, (1025, 3))]
    for back in loops_in(part.backward):
        assert sum(v.type == big for v in back.outputs) == 1  # the cotangent of y, none of z


def adds_of(graph: Graph, type_: TensorType) -> int:
    own = sum(n.op.name == "add" and n.outputs[0].type == type_ for n in graph.nodes)
    return own + sum(adds_of(held, type_) for n in graph.nodes for _, held in n.subgraphs)


def test_cotangents_of_rows_that_rounds_read_are_added_in_their_place():
    rows = TensorType(dt.float64, (50, 3))
    loop = counted(lambda xs, x, i: [ops.sin(x * xs[i % 50]) + xs[(i * 7) % 50]], rows, V, n_const=1)
    graph = staged(lambda n, xs, x: grad(lambda xs, x: loop(n, xs, x)[0].sum(), (0, 1))(xs, x), I, rows, V)
    run = Executable(graph)
    assert loops_in(run.graph)
    assert adds_of(run.graph, rows) == 0

    def f(xs, x):
        return jax.lax.scan(lambda x, i: (jnp.sin(x * xs[i % 50]) + xs[(i * 7) % 50], None), x, jnp.arange(60))[0].sum()

    xs = np.linspace(-1, 1, 150).reshape(50, 3)
    for got, want in zip(run([np.int64(60), xs, X]), jax.grad(f, (0, 1))(xs, X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-14)


def test_a_linear_loop_keeps_no_values():
    loop = counted(lambda w, x, i: [x * w], V, V, n_const=1)
    part = split(staged(lambda n, w, x: loop(n, w, x)[0], I, V, V), (False, False, True))
    (ahead,) = loops_in(part.forward)
    assert [v.type for v in ahead.outputs] == [V, I, I]


def test_values_that_never_change_are_constants():
    condition = staged(lambda n, x, w, k, i: i < n, I, V, V, V, I)
    body = staged(lambda n, x, w, k, i: (x * w, w, k, i + 1), I, V, V, V, I)

    def f(n, x, w, k):
        a, b, c, _ = apply(while_p, n, x, w, k, n * 0, cond_graph=condition, body_graph=body, n_const=1)
        return (a * b).sum() + c.sum() * 2.0

    graph = staged(lambda n, x, w, k: grad(lambda *t: f(n, *t), (0, 1, 2))(x, w, k), I, V, V, V)
    found = Executable(graph)([np.int64(5), X, W, W])
    for got, want in zip(found, [W**6, 6 * X * W**5, np.full(3, 2.0)], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    (ahead,) = [n for n in loops_in(graph) if n.inputs[0] is graph.params[0]]
    assert sum(v.type == V for v in ahead.outputs) == 1


def test_a_value_set_anew_each_round_passes_its_gradient_only_without_rounds():
    loop = counted(lambda w, x, i: [w * 2.0], V, V, n_const=1)
    run = Executable(staged(lambda n, w, x: grad(lambda w, x: loop(n, w, x)[0].sum(), (0, 1))(w, x), I, V, V))
    for n, of_w, of_x in ((0, 0.0, 1.0), (1, 2.0, 0.0), (3, 2.0, 0.0)):
        got = run([np.int64(n), W, X])
        np.testing.assert_array_equal(got, [np.full(3, of_w), np.full(3, of_x)])


@pytest.mark.parametrize("order", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_loop_in_loop_in_scan_in_cond(few, order):
    few(2)
    inner = counted(lambda w, x, i: [ops.sin(x * w)], F, F, n_const=1)
    middle = counted(lambda m, w, x, i: inner(m + i, w, x), I, F, F, n_const=2)
    scanned = staged(lambda n, w, x, row: (*middle(n, n, w, x * row), x), I, F, F, F)
    other = staged(lambda n, w, x, rows: x * w, I, F, F, V)

    def scanning(n, w, x, rows):
        last, seen = apply(
            scan_p, n, w, x, rows, body_graph=scanned, n_const=2, n_carry=1, length=3, reverse=False
        )  # fmt: skip
        return last * seen.sum()

    true_graph = staged(scanning, I, F, F, V)

    def ours(p, n, w, x, rows):
        def f(w, x, rows):
            return apply(cond_p, p, n, w, x, rows, true_graph=true_graph, false_graph=other)[0]

        first = grad(f, (0, 1, 2))(w, x, rows)
        return first if order == 1 else (*first, grad(lambda w: grad(f, 1)(w, x, rows))(w))

    def theirs(n):
        def f(w, x, rows):
            seen = 0.0
            for k in range(3):
                seen, x = seen + x, x * rows[k]
                for i in range(n):
                    for _ in range(n + i):
                        x = jnp.sin(x * w)
            return x * seen

        return f

    run = Executable(staged(ours, TensorType(dt.bool_, ()), I, F, F, V))
    w, x, rows = np.float64(1.3), np.float64(0.8), np.array([0.9, 1.1, 0.7])
    for n in (0, 1, 3):
        want = [*jax.grad(theirs(n), (0, 1, 2))(w, x, rows)]
        want += [jax.grad(lambda w: jax.grad(theirs(n), 1)(w, x, rows))(w)] if order == 2 else []  # noqa: B023
        for got, e in zip(run([np.array(True), np.int64(n), w, x, rows]), want, strict=True):
            np.testing.assert_allclose(got, e, rtol=1e-9)
    got = run([np.array(False), np.int64(2), w, x, rows])
    for g, e in zip(got, [x, w, np.zeros(3), 1.0], strict=False):
        np.testing.assert_allclose(g, e)


def test_integers_and_bools_carried_along(few):
    """Which way a round goes depends on a carried integer and a bool, which are kept, too."""
    few(4)
    types = (F, F, I, TensorType(dt.bool_, ()))

    def body(w, x, k, flag, i):
        return ops.where(flag, ops.sin(x * w), x * x * k), k * 3 % 7, ops.logical_xor(flag, k > 2)

    loop = counted(body, *types, n_const=1)

    def ours(n, w, x, k):
        return grad(lambda w, x: loop(n, w, x, k, k > 100)[0], (0, 1))(w, x)

    def theirs(n):
        def f(w, x):
            k, flag = 1, False
            for _ in range(n):
                x = jnp.sin(x * w) if flag else x * x * k
                k, flag = k * 3 % 7, flag != (k > 2)
            return x

        return f

    run = Executable(staged(ours, I, F, F, I))
    w, x = np.float64(1.2), np.float64(0.9)
    for n in (0, 1, 4, 5, 13):
        np.testing.assert_allclose(
            run([np.int64(n), w, x, np.int64(1)]), jax.grad(theirs(n), (0, 1))(w, x), rtol=1e-9, atol=1e-300
        )


def test_the_length_depends_on_the_differentiated_value():
    condition = staged(lambda x: x < 10.0, F)
    body = staged(lambda x: x * x + 0.1, F)

    def f(x):
        return apply(while_p, x, cond_graph=condition, body_graph=body, n_const=0)[0]

    run = Executable(staged(lambda x: (f(x), grad(f)(x), grad(grad(f))(x)), F))
    for x in (0.96, 1.3, 20.0):
        value, first, second = x, 1.0, 0.0
        while value < 10.0:
            value, first, second = value * value + 0.1, 2 * value * first, 2 * first * first + 2 * value * second
        np.testing.assert_allclose(run([np.float64(x)]), [value, first, second], rtol=1e-10)


def test_complex_values(few):
    few(2)
    c = TensorType(dt.complex128, ())
    loop = counted(lambda w, x, i: [x * x * w + w], c, c, n_const=1)

    def theirs(w, x):
        for _ in range(5):
            x = x * x * w + w
        return (x * jnp.conj(x)).real

    def ours(n, w, x):
        def f(w, x):
            z = loop(n, w, x)[0]
            return ops.real(z * ops.conj(z))

        return grad(f, (0, 1))(w, x)

    w, x = np.complex128(0.4 + 0.3j), np.complex128(0.2 - 0.6j)
    got = Executable(staged(ours, I, c, c))([np.int64(5), w, x])
    np.testing.assert_allclose(got, np.conj(jax.grad(theirs, (0, 1))(w, x)), rtol=1e-12)


def test_the_number_of_checkpoints_follows_their_size():
    assert while_loop.checkpoints(0) == while_loop.checkpoints(8) == 1024
    assert while_loop.checkpoints(10**9) == 8
    for size in (1, 1000, 16385, 60_000, 1_000_000, 3_000_000):
        count = while_loop.checkpoints(size)
        assert count & (count - 1) == 0
        assert 8 <= count <= 1024
        assert count == 8 or count * size <= while_loop.BUDGET
        assert count == 1024 or 2 * count * size > while_loop.BUDGET
