"""Metrics against what the real MindSpore gives (mindspore_values.py), on arrays and on Tensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.train.metrics import mindspore_values as recorded

import mycelia as ms
from mycelia import train

VALUES = json.loads(Path(recorded.__file__).with_suffix(".json").read_text(encoding="utf-8"))["values"]


def as_tensors(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([ms.Tensor(x) if isinstance(x, np.ndarray) else x for x in inputs])


@pytest.mark.parametrize("convert", [lambda inputs: inputs, as_tensors], ids=["arrays", "tensors"])
@pytest.mark.parametrize("name", list(recorded.CASES))
def test_value(name: str, convert: Any) -> None:
    cls, options, eval_options, updates = recorded.CASES[name]
    metric = getattr(train, cls)(**options)
    found = recorded.value_of(metric, eval_options, [convert(inputs) for inputs in updates])
    compare(found, VALUES[name])
    metric.clear()
    compare(recorded.value_of(metric, eval_options, updates), VALUES[name])


def compare(found: Any, wanted: Any) -> None:
    if isinstance(wanted, list) and wanted and isinstance(wanted[0], list):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            compare(a, b)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)
