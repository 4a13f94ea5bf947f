"""Optimizers against formulas in NumPy: those MindSpore cannot run on a CPU, or runs otherwise than documented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.oracles import optim_cases as cases

import mycelia as ms
from mycelia.nn import optim

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
Array = np.ndarray[Any, Any]


def parameters(dtype: Any = np.float32) -> dict[str, ms.Parameter]:
    return {n: ms.Parameter(ms.Tensor(v), name=n) for n, v in cases.start(dtype).items()}


def run(optimizer: optim.Optimizer, mine: dict[str, ms.Parameter], dtype: Any = np.float32) -> list[dict[str, Array]]:
    """The parameters after each step."""
    order = {id(p): i for i, p in enumerate(mine.values())}
    seen = []
    for row in cases.gradients(dtype):
        optimizer(tuple([ms.Tensor(row[order[id(p)]]) for p in optimizer.parameters]))
        seen.append({n: p.asnumpy().astype(np.float64) for n, p in mine.items()})
    return seen


def expected(update: Callable[..., Array], dtype: Any = np.float32) -> list[dict[str, Array]]:
    """The parameters after each step of ``update(name, p, g, state, t)`` in float64."""
    now = {n: v.astype(np.float64) for n, v in cases.start(dtype).items()}
    state: dict[str, dict[str, Any]] = {n: {} for n in now}
    seen = []
    for t, row in enumerate(cases.gradients(dtype), 1):
        now = {n: update(n, p, g.astype(np.float64), state[n], t) for (n, p), g in zip(now.items(), row, strict=True)}
        seen.append(now)
    return seen


def compare(got: list[dict[str, Array]], wanted: list[dict[str, Array]], **tolerance: float) -> None:
    for t, (a, b) in enumerate(zip(got, wanted, strict=True), 1):
        for name, value in b.items():
            np.testing.assert_allclose(
                a[name], value, **(tolerance or {"rtol": 1e-5, "atol": 1e-6}), err_msg=f"{name} {t}"
            )


def decayed(name: str) -> bool:
    return "beta" not in name and "gamma" not in name


def momentum_nesterov(name: str, p: Array, g: Array, s: dict[str, Any], t: int) -> Array:
    s["v"] = 0.9 * s.get("v", 0) + g
    return p - 0.1 * (g + 0.9 * s["v"])


def adagrad_without_slots(name: str, p: Array, g: Array, s: dict[str, Any], t: int) -> Array:
    return p - 0.1 * g / np.sqrt(0.5)


def rmsprop_momentum(name: str, p: Array, g: Array, s: dict[str, Any], t: int) -> Array:
    g = g / 4 + 0.02 * p * decayed(name)
    s["s"] = 0.8 * s.get("s", 1) + 0.2 * g * g
    s["m"] = 0.5 * s.get("m", 0) + 0.05 * g / np.sqrt(s["s"] + 1e-3)
    return p - s["m"]


def ftrl_options(name: str, p: Array, g: Array, s: dict[str, Any], t: int) -> Array:
    g = g / 4 + 0.02 * p
    n = s.get("n", 0.5)
    s["n"] = n + g * g
    s["z"] = s.get("z", 0) + g - (s["n"] ** 0.4 - n**0.4) / 0.1 * p
    z = s["z"]
    return np.where(np.abs(z) > 0.05, (np.sign(z) * 0.05 - z) / (s["n"] ** 0.4 / 0.1 + 2 * 0.02), 0)


def lamb(
    name: str, p: Array, g: Array, s: dict[str, Any], t: int, b1: float, b2: float, eps: float, wd: float
) -> Array:
    s["m"], s["v"] = b1 * s.get("m", 0) + (1 - b1) * g, b2 * s.get("v", 0) + (1 - b2) * g * g
    update = s["m"] / (1 - b1**t) / (np.sqrt(s["v"] / (1 - b2**t)) + eps) + wd * decayed(name) * p
    return p - 0.05 * np.linalg.norm(p) / np.linalg.norm(update) * update


def lars(
    name: str, p: Array, g: Array, s: dict[str, Any], t: int, coefficient: float, eps: float, clip: bool, scale: float
) -> Array:
    g = g / scale
    wd = 0.02 * decayed(name)
    if "bias" not in name:
        ratio = coefficient * np.linalg.norm(p) / (np.linalg.norm(g) + wd * np.linalg.norm(p) + eps)
        g = (g + wd * p) * (min(ratio / 0.1, 1) if clip else ratio)
    s["v"] = 0.9 * s.get("v", 0) + g
    return p - 0.1 * s["v"]


def centralized(name: str, p: Array, g: Array, s: dict[str, Any], t: int) -> Array:
    if name not in ("conv.weight", "fc.weight"):
        return p
    if name == "conv.weight":
        g = g - g.mean((1, 2, 3), keepdims=True)
    s["v"] = 0.9 * s.get("v", 0) + g
    return p - 0.1 * s["v"]


FORMULAS: dict[str, Callable[..., Array]] = {
    "momentum_nesterov": momentum_nesterov,
    "adagrad_no_slots": adagrad_without_slots,
    "rmsprop_momentum": rmsprop_momentum,
    "ftrl_options": ftrl_options,
    "lamb": lambda *a: lamb(*a, 0.9, 0.999, 1e-6, 0.0),
    "lamb_decay": lambda *a: lamb(*a, 0.8, 0.9, 1e-4, 0.1),
    "lars": lambda *a: lars(*a, 1e-3, 1e-5, False, 4.0),
    "lars_clip": lambda *a: lars(*a, 0.5, 1e-4, True, 1.0),
    "momentum_centralized": centralized,
}


@MODES
@pytest.mark.parametrize("name", list(FORMULAS))
def test_formula(name: str, mode: int) -> None:
    ms.set_context(mode=mode)
    mine = parameters()
    if name == "momentum_centralized":  # a group of some of the parameters alone
        optimizer = optim.Momentum(
            [{"params": [mine["conv.weight"]], "grad_centralization": True}, {"params": [mine["fc.weight"]]}], 0.1, 0.9
        )
    else:
        optimizer = cases.CASES[name](optim, mine)
    compare(run(optimizer, mine), expected(FORMULAS[name]))


def test_lars_leaves_out_what_the_filter_says() -> None:
    mine = parameters()
    optimizer = optim.LARS(optim.SGD(mine.values(), 0.1, weight_decay=0.5), lars_filter=lambda p: False)
    compare(run(optimizer, mine), expected(lambda name, p, g, s, t: p - 0.1 * g))


def test_lars_keeps_the_names_of_mindspore() -> None:
    optimizer = optim.LARS(optim.Momentum([ms.Parameter(ms.Tensor([1.0]), name="w")], 0.1, 0.9))
    assert [p.name for p in optimizer.get_parameters()] == [
        "global_step", "fake_lr", "fake_param", "w", "learning_rate", "momentum", "moments.w",
    ]  # fmt: skip


def test_lamb_keeps_the_names_of_mindspore() -> None:
    optimizer = optim.Lamb([ms.Parameter(ms.Tensor([1.0]), name="w")], 0.1)
    assert [p.name for p in optimizer.get_parameters()] == ["global_step", "learning_rate", "w", "lamb_m.w", "lamb_v.w"]


def adamw(name: str, p: Array, g: Array, s: dict[str, Any], t: int) -> Array:
    s["m"], s["v"] = 0.9 * s.get("m", 0) + 0.1 * g, 0.999 * s.get("v", 0) + 0.001 * g * g
    return p - 0.05 * (s["m"] / (np.sqrt(s["v"]) + 1e-6) + 0.1 * decayed(name) * p)


@MODES
def test_half_parameters_are_updated_in_single_precision(mode: int) -> None:
    ms.set_context(mode=mode)
    mine = parameters(np.float16)
    got = run(optim.AdamWeightDecay(mine.values(), 0.05, weight_decay=0.1), mine, np.float16)
    assert all(p.dtype is ms.float16 for p in mine.values())
    compare(got, expected(adamw, np.float16), rtol=2e-3, atol=2e-3)


def test_a_parameter_of_zeros_moves_under_lamb() -> None:
    w = ms.Parameter(ms.Tensor(np.zeros(3, np.float32)), name="w")
    optim.Lamb([w], 0.1)((ms.Tensor([1.0, -2.0, 0.5]),))
    np.testing.assert_allclose(w.asnumpy(), [-0.1, 0.1, -0.1], rtol=1e-4)
