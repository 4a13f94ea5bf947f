"""Results and signatures recorded from the real MindSpore by ``tests/oracles/elementwise.py``."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops

RECORDED = json.loads((Path(__file__).parent.parent / "oracles" / "elementwise.json").read_text())
NAMES = {"ms": ms, "ops": ops, "T": Tensor, "np": np, "nan": float("nan"), "inf": float("inf")}


def compare(got: Any, want: list[Any]) -> None:
    if want[0] == "tensor":
        assert isinstance(got, Tensor)
        assert str(got.dtype) == want[1]
        assert list(got.shape) == want[2]
        elements = [complex(x) if isinstance(x, str) else x for x in want[3]]
        np.testing.assert_allclose(
            got.asnumpy().ravel(),
            np.array(elements, got.dtype.np),
            rtol=2e-5 if got.dtype.itemsize > 2 else 2e-3,
            atol=1e-6,
        )
    elif want[0] == "seq":
        assert isinstance(got, (tuple, list))
        for g, w in zip(got, want[1], strict=True):
            compare(g, w)
    else:
        assert [type(got).__name__, str(got)] == want[1:]


@pytest.mark.parametrize("expression", RECORDED["values"])
def test_result(expression):
    compare(eval(expression, dict(NAMES)), RECORDED["values"][expression])  # the expressions are our own


#: Defaults that are written otherwise and mean the same.
SAME_DEFAULT = {("Int64", "mycelia.int64"), ("Float32", "mycelia.float32")}


@pytest.mark.parametrize("name", RECORDED["signatures"])
def test_signature_begins_with_mindspores(name):
    ours = list(inspect.signature(getattr(ops, name)).parameters.values())
    for (their_name, their_default), parameter in zip(RECORDED["signatures"][name], ours, strict=False):
        assert parameter.name == their_name
        if their_default is not None:
            assert str(parameter.default) == their_default or (their_default, repr(parameter.default)) in SAME_DEFAULT
    assert len(ours) >= len(RECORDED["signatures"][name])
    further = ours[len(RECORDED["signatures"][name]) :]
    assert all(p.default is not inspect.Parameter.empty or p.kind == p.VAR_POSITIONAL for p in further)
