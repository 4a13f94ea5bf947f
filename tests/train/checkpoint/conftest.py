from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mycelia.tensor import Parameter

ORACLES = Path(__file__).parents[2] / "oracles"


class Net:
    """The part of a Cell that checkpoints use."""

    def __init__(self, **values: np.ndarray[Any, Any]) -> None:
        self.parameters = [Parameter(value, name=name) for name, value in values.items()]

    def parameters_and_names(self):
        for parameter in self.parameters:
            yield parameter.name, parameter

    def values(self) -> list[list[Any]]:
        return [p.asnumpy().tolist() for p in self.parameters]


@pytest.fixture
def make_net() -> type[Net]:
    return Net


@pytest.fixture(scope="session")
def files() -> Path:
    """The files that MindSpore wrote, ours that it read, and what it said about both."""
    return ORACLES / "checkpoint_files"


@pytest.fixture(scope="session")
def recorded(files):
    return lambda name: json.loads((files / name).read_text("utf-8"))


@pytest.fixture(scope="session")
def oracle() -> Any:
    """The script that recorded them; it says what our files hold."""
    spec = importlib.util.spec_from_file_location("checkpoint_mindspore", ORACLES / "checkpoint_mindspore.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
