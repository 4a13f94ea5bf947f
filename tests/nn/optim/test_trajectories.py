"""Every optimizer against trajectories of the real MindSpore (tests/oracles/optim_trajectories.py), in both modes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.oracles import optim_cases as cases

import mycelia as ms
from mycelia.nn import dynamic_lr, learning_rate_schedule, optim
from mycelia.nn.cell import Cell

RECORDED = np.load(Path(__file__).parents[2] / "oracles" / "optim_trajectories.npz")
REFUSED = set(RECORDED["refused"].tolist())
#: MindSpore's CPU kernel does something else than its documentation says; tests/nn/optim/test_formulas.py has these.
WRONG = {"adagrad_no_slots", "momentum_nesterov", "rmsprop_momentum", "ftrl_options", "half/adamweightdecay"}
NN = SimpleNamespace(**{**vars(learning_rate_schedule), **vars(dynamic_lr), **vars(optim), "Cell": Cell})
MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])


def names_recorded() -> list[str]:
    return [n for n in [*cases.CASES, *[f"half/{c}" for c in cases.HALF]] if n not in REFUSED | WRONG]


def joined(parameters: Any) -> np.ndarray[Any, Any]:
    return np.concatenate([p.asnumpy().astype(np.float32).reshape(-1) for p in parameters])


@MODES
@pytest.mark.parametrize("name", names_recorded())
def test_follows_mindspore(name: str, mode: int) -> None:
    ms.set_context(mode=mode)
    dtype = np.float16 if name.startswith("half/") else np.float32
    parameters = {n: ms.Parameter(ms.Tensor(v), name=n) for n, v in cases.start(dtype).items()}
    optimizer = cases.CASES[name.removeprefix("half/")](NN, parameters)
    order = {id(p): i for i, p in enumerate(parameters.values())}
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"rtol": 2e-3, "atol": 1e-3}
    for row, expected in zip(cases.gradients(dtype), RECORDED[f"{name}/steps"], strict=True):
        optimizer(tuple([ms.Tensor(row[order[id(p)]]) for p in optimizer.parameters]))
        np.testing.assert_allclose(joined(parameters.values()), expected, **tolerance)
    everything = list(optimizer.get_parameters())
    assert [p.name for p in everything] == RECORDED[f"{name}/state"].tolist()
    np.testing.assert_allclose(joined(everything), RECORDED[f"{name}/last"], **tolerance)
    assert len(compiled(optimizer)) == 1


def compiled(cell: Cell) -> list[Any]:
    """The staged graphs of a Cell."""
    calls = cell.__dict__.get("_compiled_calls") or {}
    return [entry for jit in calls.values() for entries in jit.entries.values() for entry in entries]


@pytest.mark.parametrize("name", list(cases.RATES))
def test_rates(name: str) -> None:
    made: Any = cases.RATES[name](NN)
    if not isinstance(made, list):
        made = [float(made(ms.Tensor(i, ms.int32))) for i in range(cases.LAST_STEP)]
    np.testing.assert_allclose(made, RECORDED[f"rates/{name}"], rtol=1e-6, atol=1e-9)
