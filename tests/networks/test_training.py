"""The measured networks train: both modes alike, and like torch from the same weights and data.

Losses of 20 steps; small versions of the convolutional and transformer networks keep the test quick. Adam
adds its epsilon before the bias correction here and after it in torch, which is told the equivalent value
at each step; LayerNorm's default epsilon is 1e-7 here and is given to torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycelia as ms
from benchmarks.networks import GPT, MLP, LeNet, ResNet, Work
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
    torch = pytest.importorskip("torch")
    from torch.nn import functional as F

    class Block(torch.nn.Module):
        def __init__(self, cin, cout, stride):
            super().__init__()
            self.conv1 = torch.nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
            self.bn1 = torch.nn.BatchNorm2d(cout)
            self.conv2 = torch.nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
            self.bn2 = torch.nn.BatchNorm2d(cout)
            self.shortcut = None
            if stride != 1 or cin != cout:
                self.shortcut = torch.nn.Sequential(
                    torch.nn.Conv2d(cin, cout, 1, stride, bias=False), torch.nn.BatchNorm2d(cout)
                )

        def forward(self, x):
            y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
            return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))

    class Resnet(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.bn = torch.nn.Conv2d(3, 8, 3, 1, 1, bias=False), torch.nn.BatchNorm2d(8)
            self.blocks = torch.nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
            self.head = torch.nn.Linear(16, 10)

        def forward(self, x):
            return self.head(self.blocks(F.relu(self.bn(self.stem(x)))).mean((2, 3)))

    class Mlp(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
                torch.nn.Linear(512, 10),
            )  # fmt: skip

        def forward(self, x):
            return self.layers(x)

    class Lenet(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = torch.nn.Conv2d(1, 6, 5, padding=2), torch.nn.Conv2d(6, 16, 5)
            self.fc1, self.fc2, self.fc3 = torch.nn.Linear(400, 120), torch.nn.Linear(120, 84), torch.nn.Linear(84, 10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.conv1(x)), 2)
            x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
            return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))

    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = torch.nn.LayerNorm(32, eps=1e-7), torch.nn.LayerNorm(32, eps=1e-7)
            self.qkv, self.out = torch.nn.Linear(32, 96), torch.nn.Linear(32, 32)
            self.up, self.down = torch.nn.Linear(32, 128), torch.nn.Linear(128, 32)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Gpt(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = torch.nn.Embedding(64, 32), torch.nn.Embedding(16, 32)
            self.layers = torch.nn.Sequential(Attention(), Attention())
            self.norm, self.head = torch.nn.LayerNorm(32, eps=1e-7), torch.nn.Linear(32, 64, bias=False)

        def forward(self, ids):
            return self.head(self.norm(self.layers(self.token(ids) + self.position(torch.arange(16)))))

    return {"mlp": Mlp, "lenet": Lenet, "resnet": Resnet, "gpt": Gpt}[name]()


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
