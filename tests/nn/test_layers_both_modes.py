"""Every layer and loss: values against MindSpore, and the same numbers in both modes, gradients included.

The table is ``CASES`` in ``tests/oracles/nn_values.py``.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from tests.oracles.nn_values import CASES, array, flat, prepare

import mycelia as ms
from mycelia import Tensor, nn

RECORDED = json.loads((Path(__file__).parents[1] / "oracles" / "nn_values.json").read_text(encoding="utf-8"))
SCOPE = {**vars(nn), "nn": nn, "Tensor": Tensor, "OrderedDict": OrderedDict}
# What the two engines compute in another order differs by rounding, in these by more than elsewhere.
LOOSE = ("IGamma", "DiGamma", "GELU", "FastGelu", "MultiheadAttention", "Transformer", "LBeta")

# What MindSpore computes wrongly, so that the right values are shown elsewhere.
WRONG_THERE = {
    "Conv2dTranspose(4, 3, 3, 2, 'pad', 1, 1)(f 2 4 5 6)": "output_padding adds zeros in place of values",
    "ClipByNorm(0)(f 3 4, = 2.0)": "a column within the limit is scaled",
    "EmbeddingLookup(5, 3, max_norm=0.5)(i5 2 4)": "max_norm is not applied",
}
COMPARED = [c for c in CASES if c.name in RECORDED["cases"] and c.name not in WRONG_THERE]


def made(case):
    """The layer of a case, its parameters set, and its inputs as tensors."""
    cell = prepare(eval(case.layer, dict(SCOPE)), case.train, Tensor)
    arrays = [array(text, i) for i, text in enumerate(case.inputs)]
    return cell, [None if a is None else Tensor(a) for a in arrays]


def outputs(cell, inputs, case):
    """What the layer gives, then (in training) what its untrained parameters hold."""
    given = [t.asnumpy() for t in flat(cell(*inputs))]
    return given + ([p.asnumpy() for p in cell.untrainable_params()] if case.train else [])


@pytest.mark.parametrize("case", COMPARED, ids=lambda c: c.name)
def test_values_are_those_of_mindspore(case):
    recorded = RECORDED["cases"][case.name]
    found = outputs(*made(case), case)
    assert len(found) == len(recorded)
    tolerance = 2e-4 if case.layer.startswith(LOOSE) else 2e-5
    for ours, (shape, theirs) in zip(found, recorded, strict=True):
        assert list(ours.shape) == shape
        wanted = np.array(theirs, ours.dtype).reshape(shape)
        np.testing.assert_allclose(ours, wanted, rtol=tolerance, atol=tolerance)


def gradients(case):
    """Outputs, untrained parameters and the gradients of inputs and trained parameters of a weighted sum."""
    ms.set_seed(7)
    cell, inputs = made(case)
    positions = tuple(
        i for i, t in enumerate(inputs) if t is not None and t.dtype.is_floating and not case.inputs[i].startswith("s")
    )
    weights = tuple(cell.trainable_params())

    def total(*args):
        result = 0.0
        for k, t in enumerate(flat(cell(*args))):
            if t.dtype.is_floating:
                wave = np.cos(np.arange(t.size) * 0.3 + k).reshape(t.shape)
                result = result + (t * Tensor(wave, t.dtype)).sum()
        return result

    if not (positions or weights):
        return outputs(cell, inputs, case)
    value, grads = ms.value_and_grad(total, positions or None, weights or None)(*inputs)
    kept = [p.asnumpy() for p in cell.untrainable_params()]
    return [value.asnumpy(), *[g.asnumpy() for g in flat(grads)], *kept]


def parametrized():
    """All cases; one of each layer (in training, and not) runs always, the rest where slow tests do."""
    seen, rows = set(), []
    for case in CASES:
        kind = (case.layer.partition("(")[0], case.train)
        rows.append(pytest.param(case, id=case.name, marks=[pytest.mark.slow] if kind in seen else []))
        seen.add(kind)
    return rows


@pytest.mark.parametrize("case", parametrized())
def test_both_modes_give_the_same(case):
    eager = gradients(case)
    ms.set_context(mode=ms.GRAPH_MODE)
    graph = gradients(case)
    assert len(eager) == len(graph)
    for a, b in zip(eager, graph, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(b, a, rtol=2e-4, atol=2e-5)
    assert all(np.isfinite(a).all() for a in eager)
