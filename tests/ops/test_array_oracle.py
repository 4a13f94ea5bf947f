"""The array operators against values recorded from MindSpore: names, keywords, defaults, dtypes and results."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms

ORACLES = Path(__file__).parent.parent / "oracles"
RECORDED = json.loads((ORACLES / "array_operators.json").read_text())


def _recorder():
    spec = importlib.util.spec_from_file_location("array_operators_mindspore", ORACLES / "array_operators_mindspore.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RECORDER = _recorder()


def agree(got, want, text):
    if isinstance(want, list) and isinstance(got, (tuple, list)):
        assert len(got) == len(want), text
        for g, w in zip(got, want, strict=True):
            agree(g, w, text)
    elif isinstance(want, dict):
        assert str(got.dtype) == want["dtype"], text
        assert list(got.shape) == want["shape"], text
        values = np.array(want["values"]).reshape(want["shape"])
        np.testing.assert_allclose(got.asnumpy(), values, rtol=2e-6, atol=1e-6, err_msg=text)
    else:
        assert got == want, text


def test_the_recording_is_whole():
    assert set(RECORDED) == set(RECORDER.expressions())


@pytest.fixture(scope="module")
def names():
    return RECORDER.names(ms)


@pytest.mark.parametrize("text", RECORDER.expressions())
def test_as_recorded(text, names):
    agree(eval(text, dict(names)), RECORDED[text], text)
