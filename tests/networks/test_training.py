"""The measured networks train: both modes alike, and like torch from the same weights and data.

Losses of 20 steps; small versions of the convolutional and transformer networks keep the test quick. Adam
adds its epsilon before the bias correction here and after it in torch, which is told the equivalent value
at each step; LayerNorm's default epsilon is 1e-7 here and is given to torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.networks import GPT, MLP, LeNet, ResNet, Work

import mycelia as ms
from mycelia import nn

STEPS = 20
EPSILON = 1e-8
NETWORKS = ["mlp", "lenet", "resnet", "gpt"]


def work(name: str) -> Work:
    """A network from a fixed seed, with 20 fixed batches' worth of data in its first batch's shape."""
    ms.set_seed(3)
    rng = np.random.default_rng(3)
    if name == "gpt":
        network: Any = GPT(vocabulary=64, width=32, layers=2, heads=4, context=16)
        x, y = rng.integers(0, 64, (STEPS, 4, 16)).astype(np.int32), rng.integers(0, 64, (STEPS, 64)).astype(np.int32)
    else:
        network, shape = {
            "mlp": (MLP, (16, 784)), "lenet": (LeNet, (8, 1, 28, 28)),
            "resnet": (lambda: ResNet(widths=(8, 16), blocks=1), (8, 3, 16, 16)),
        }[name]  # fmt: skip
        network = network()
        x = rng.standard_normal((STEPS, *shape)).astype(np.float32)
        y = rng.integers(0, 10, (STEPS, shape[0])).astype(np.int32)
    network.set_train()
    params = network.trainable_params()
    optimizer = nn.Adam(params, 1e-3, eps=EPSILON) if name in ("mlp", "gpt") else nn.Momentum(params, 0.01, 0.9)
    return Work(network, x, y, optimizer)


def losses(name: str, mode: int) -> tuple[list[float], dict[str, np.ndarray[Any, Any]]]:
    """The losses of training and the first weights."""
    ms.set_context(mode=mode)
    made = work(name)
    weights = {p.name: p.asnumpy() for p in made.network.get_parameters()}
    step = made.step()
    if mode == ms.GRAPH_MODE:
        step = ms.jit(step)
    return [float(step(ms.Tensor(made.x[i]), ms.Tensor(made.y[i]))) for i in range(STEPS)], weights


@pytest.mark.parametrize("name", NETWORKS)
def test_both_modes_train_alike(name):
    eager, _ = losses(name, ms.PYNATIVE_MODE)
    graph, _ = losses(name, ms.GRAPH_MODE)
    assert np.isfinite(eager).all()
    np.testing.assert_allclose(graph, eager, rtol=2e-5)


def torch_network(name: str) -> Any:
    """The same network in torch."""
    pytest.importorskip("torch")
    from benchmarks import torch_networks as nets

    small = {"vocabulary": 64, "width": 32, "layers": 2, "heads": 4, "context": 16, "epsilon": 1e-7}
    return {
        "mlp": nets.MLP, "lenet": nets.LeNet, "resnet": lambda: nets.ResNet(widths=(8, 16), blocks=1),
        "gpt": lambda: nets.GPT(**small),
    }[name]()  # fmt: skip


RENAMED = {
    "gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var",
    "embedding_table": "weight",
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
@pytest.mark.parametrize("name", NETWORKS)
def test_losses_equal_torchs(name, mode):
    torch = pytest.importorskip("torch")
    ours, weights = losses(name, mode)
    network = torch_network(name)
    state = network.state_dict()
    for key, value in weights.items():
        path, _, last = key.rpartition(".")
        target = f"{path}.{RENAMED.get(last, last)}"
        assert state[target].shape == value.shape, key
        state[target] = torch.tensor(value)
    network.load_state_dict(state)
    network.train()
    made = work(name)
    if name in ("mlp", "gpt"):
        optimizer = torch.optim.Adam(network.parameters(), 1e-3, eps=EPSILON)
    else:
        optimizer = torch.optim.SGD(network.parameters(), 0.01, momentum=0.9)
    theirs = []
    for i in range(STEPS):
        x, y = torch.tensor(made.x[i]), torch.tensor(made.y[i]).long()
        if name in ("mlp", "gpt"):
            optimizer.param_groups[0]["eps"] = EPSILON / (1 - 0.999 ** (i + 1)) ** 0.5
        optimizer.zero_grad()
        logits = network(x.long() if name == "gpt" else x)
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y)
        loss.backward()
        optimizer.step()
        theirs.append(loss.item())
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
