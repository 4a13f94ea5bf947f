"""Optimizers against torch's, where the formulas coincide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.oracles import optim_cases as cases

import mycelia as ms
from mycelia.nn import optim

#: Ours of parameters, torch's of a module and parameters. Epsilons are tiny, as they stand at different places.
PAIRS: dict[str, tuple[Callable[[Any], optim.Optimizer], Callable[[Any, Any], Any]]] = {
    "sgd": (lambda p: optim.SGD(p, 0.1), lambda t, p: t.SGD(p, 0.1)),
    "sgd_momentum": (
        lambda p: optim.SGD(p, 0.1, 0.9, 0.2, weight_decay=0.01),
        lambda t, p: t.SGD(p, 0.1, 0.9, 0.2, weight_decay=0.01),
    ),
    "sgd_nesterov": (
        lambda p: optim.SGD(p, 0.1, 0.9, nesterov=True),
        lambda t, p: t.SGD(p, 0.1, 0.9, nesterov=True),
    ),
    "momentum": (
        lambda p: optim.Momentum(p, 0.1, 0.9, weight_decay=0.01),
        lambda t, p: t.SGD(p, 0.1, 0.9, weight_decay=0.01),
    ),
    "momentum_nesterov": (
        lambda p: optim.Momentum(p, 0.1, 0.9, use_nesterov=True),
        lambda t, p: t.SGD(p, 0.1, 0.9, nesterov=True),
    ),
    "adam": (
        lambda p: optim.Adam(p, 0.05, 0.8, 0.99, 1e-12, weight_decay=0.01),
        lambda t, p: t.Adam(p, 0.05, (0.8, 0.99), 1e-12, 0.01),
    ),
    "adamax": (
        lambda p: optim.AdaMax(p, 0.05, 0.8, 0.9, 1e-12),
        lambda t, p: t.Adamax(p, 0.05, (0.8, 0.9), 1e-12),
    ),
    "adagrad": (
        lambda p: optim.Adagrad(p, 0.3, 0.1, weight_decay=0.01),
        lambda t, p: t.Adagrad(p, 0.1, weight_decay=0.01, initial_accumulator_value=0.3),
    ),
    "adadelta": (
        lambda p: optim.Adadelta(p, 0.7, 0.8, 1e-3, weight_decay=0.01),
        lambda t, p: t.Adadelta(p, 0.7, 0.8, 1e-3, 0.01),
    ),
    "rmsprop": (
        lambda p: started_at_zero(optim.RMSProp(p, 0.05, 0.9, 0.5, 1e-14)),
        lambda t, p: t.RMSprop(p, 0.05, 0.9, 1e-12, momentum=0.5),
    ),
    "rmsprop_centered": (
        lambda p: started_at_zero(optim.RMSProp(p, 0.05, 0.5, 0.5, 1e-14, centered=True)),
        lambda t, p: t.RMSprop(p, 0.05, 0.5, 1e-12, momentum=0.5, centered=True),
    ),
    "rprop": (
        lambda p: optim.Rprop(p, 0.1, (0.4, 1.3), (0.05, 0.2)),
        lambda t, p: t.Rprop(p, 0.1, (0.4, 1.3), (0.05, 0.2)),
    ),
}


def started_at_zero(optimizer: optim.RMSProp) -> optim.RMSProp:
    """torch's mean square starts at zero, MindSpore's at one."""
    for state in optimizer.ms:
        state.set_data(ms.ops.zeros_like(state))
    return optimizer


@pytest.mark.torch
@pytest.mark.parametrize("name", list(PAIRS))
def test_follows_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    # no gradient is exactly zero: 0 / (sqrt(0) + eps) depends on where eps stands
    start = {n.replace("gamma", "scale").replace("beta", "shift"): v for n, v in cases.start().items()}
    mine = [ms.Parameter(ms.Tensor(v), name=n) for n, v in start.items()]
    theirs = [torch.nn.Parameter(torch.tensor(v)) for v in start.values()]
    ours, other = PAIRS[name][0](mine), PAIRS[name][1](torch.optim, theirs)
    random = np.random.RandomState(3)
    for _ in range(5):
        row = [
            (random.uniform(0.1, 1, v.shape) * random.choice([-1, 1], v.shape)).astype(np.float32)
            for v in start.values()
        ]
        ours(tuple([ms.Tensor(g) for g in row]))
        for p, g in zip(theirs, row, strict=True):
            p.grad = torch.tensor(g)
        other.step()
        for p, q in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(p.asnumpy(), q.detach().numpy(), rtol=2e-5, atol=2e-5)
