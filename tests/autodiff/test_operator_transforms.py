"""Every operator, driven by its samples: its forward rule is the transpose of its reverse rule, and vmap of it
over a batch is the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.autodiff.staging import run_staged, staged, types_of
from tests.ops.test_generated import OPERATORS, _differentiable, arrays, run, samples_of

from mycelia.autodiff.batching import stage_vmap
from mycelia.autodiff.forward import pushforward
from mycelia.autodiff.transform import linearize
from mycelia.ops.declare import Sample
from mycelia.tensor.dispatch import apply

#: Those that run in the fast suite: one or more of each kind of rule.
QUICK = {
    "add", "argmax", "broadcast_to", "cast", "concat", "conj", "cumsum", "div", "exp", "gather",
    "integer_power", "matmul", "maximum", "mul", "reduce_mean", "reshape", "sigmoid_grad",
    "slice", "softmax", "split", "sub", "tanh", "transpose", "where",
}  # fmt: skip

ROWS = 3


def chosen(keep: Any) -> list[Any]:
    found = []
    for name, op in sorted(OPERATORS.items()):
        samples = [s for s in samples_of(op) if isinstance(s, Sample) and keep(op, s)]
        last = len(samples) - 1
        for i in sorted({0, last // 3, 2 * last // 3, last}) if samples else []:
            marks = () if name in QUICK and i == 0 else (pytest.mark.slow,)
            found.append(pytest.param(name, samples[i], id=f"{name}-{i}", marks=marks))
    return found


def random_like(x: np.ndarray[Any, Any], seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    made = rng.uniform(-1, 1, x.shape)
    return (made + 1j * rng.uniform(-1, 1, x.shape) if x.dtype.kind == "c" else made).astype(x.dtype)


def paired(a: list[Any], b: list[Any]) -> float:
    """The real inner product; a missing tangent or cotangent is zero."""
    return sum(
        float(np.sum(np.real(np.conj(x) * y))) for x, y in zip(a, b, strict=True) if x is not None and y is not None
    )


@pytest.mark.parametrize(("name", "sample"), chosen(_differentiable))
def test_forward_is_the_transpose_of_reverse(name, sample):
    op, inputs = OPERATORS[name], arrays(sample)
    graph = staged(lambda *xs: apply(op, *xs, **sample.attrs), *types_of(*inputs))
    moving = [x.dtype.kind in "fc" for x in inputs]
    directions = [random_like(x, 3) if m else None for x, m in zip(inputs, moving, strict=True)]
    outs = run(op, inputs, sample.attrs)
    cts = [random_like(o, 5) if o.dtype.kind in "fc" else None for o in outs]
    there: dict[str, list[bool]] = {}

    def both(*given):
        it = iter(given)
        xs = [next(it) for _ in inputs]
        tangents = [None if d is None else next(it) for d in directions]
        pulled_from = [None if c is None else next(it) for c in cts]
        _, moved = pushforward(graph, xs, tangents)
        _, _, pull = linearize(graph, xs, moving)
        grads = pull(pulled_from)
        there["moved"], there["grads"] = [t is not None for t in moved], [g is not None for g in grads]
        return tuple([t for t in (*moved, *grads) if t is not None])

    given = [*inputs, *[d for d in directions if d is not None], *[c for c in cts if c is not None]]
    found = iter(run_staged(both, *given))
    moved = [next(found) if here else None for here in there["moved"]]
    grads = [next(found) if here else None for here in there["grads"]]
    left, right = paired(cts, moved), paired(grads, directions)
    np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-10)
    assert any(there["moved"]) or not any(there["grads"])  # a step function has neither


@pytest.mark.parametrize(("name", "sample"), chosen(lambda op, s: len(s.inputs) > 0 and not op.effects))
def test_vmap_is_the_loop(name, sample):
    op, inputs = OPERATORS[name], arrays(sample)
    rows = [[x * (1 - 0.05 * k) if x.dtype.kind in "fc" else x for x in inputs] for k in range(ROWS)]
    rows = [[y.astype(x.dtype) for x, y in zip(inputs, row, strict=True)] for row in rows]
    wanted = [run(op, row, sample.attrs) for row in rows]
    graph = staged(lambda *xs: apply(op, *xs, **sample.attrs), *types_of(*inputs))

    def mapped(*xs):
        outs, batched = stage_vmap(graph, xs, [True] * len(xs), ROWS)
        assert all(batched)
        return tuple(outs)

    got = run_staged(mapped, *[np.stack(column) for column in zip(*rows, strict=True)])
    for i, g in enumerate(got):
        w = np.stack([row[i] for row in wanted])
        assert g.shape == w.shape
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g.astype(np.complex128), w.astype(np.complex128), rtol=1e-9, atol=1e-10)
