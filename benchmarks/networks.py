"""The networks that are measured, and that the tests train beside torch's: MLP, LeNet, ResNet-18, GPT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import nn, ops
from mycelia.tensor import Tensor


class MLP(nn.Cell):
    """784-512-512-10 with ReLU; (N, 784) to (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.SequentialCell(nn.Dense(784, 512), nn.ReLU(), nn.Dense(512, 512), nn.ReLU(), nn.Dense(512, 10))

    def construct(self, x: Tensor) -> Tensor:
        return self.layers(x)


class LeNet(nn.Cell):
    """LeNet-5 with ReLU and max pooling; (N, 1, 28, 28) to (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="pad", padding=2, has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1, self.fc2, self.fc3 = nn.Dense(400, 120), nn.Dense(120, 84), nn.Dense(84, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.pool(ops.relu(self.conv2(x)))
        x = x.reshape(x.shape[0], -1)
        return self.fc3(ops.relu(self.fc2(ops.relu(self.fc1(x)))))


class BasicBlock(nn.Cell):
    """Two 3x3 convolutions beside a shortcut (He et al., 2016)."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, pad_mode="pad", padding=1)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, pad_mode="pad", padding=1)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut: nn.Cell | None = None
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.SequentialCell(
                nn.Conv2d(channels_in, channels, 1, stride, pad_mode="valid"), nn.BatchNorm2d(channels)
            )

    def construct(self, x: Tensor) -> Tensor:
        y = ops.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return ops.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Cell):
    """ResNet for 32x32 images: a 3x3 stem, then one stage per width; (N, 3, 32, 32) to (N, 10)."""

    def __init__(self, widths: tuple[int, ...] = (64, 128, 256, 512), blocks: int = 2) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 3, 1, pad_mode="pad", padding=1)
        self.bn = nn.BatchNorm2d(widths[0])
        layers, channels = [], widths[0]
        for i, width in enumerate(widths):
            for j in range(blocks):
                layers.append(BasicBlock(channels, width, 2 if i > 0 and j == 0 else 1))
                channels = width
        self.blocks = nn.SequentialCell(*layers)
        self.head = nn.Dense(channels, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.blocks(ops.relu(self.bn(self.stem(x))))
        return self.head(x.mean((2, 3)))


class Layer(nn.Cell):
    """A pre-norm transformer layer with causal attention."""

    def __init__(self, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.qkv, self.out = nn.Dense(width, 3 * width), nn.Dense(width, width)
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
        self.mask = Tensor(np.triu(np.full((context, context), -1e9, np.float32), 1))

    def construct(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(b, t, 3, self.heads, d // self.heads).transpose(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = ops.matmul(q, k.swapaxes(-1, -2)) * (d // self.heads) ** -0.5 + self.mask
        y = ops.matmul(ops.softmax(scores, -1), v)
        x = x + self.out(y.swapaxes(1, 2).reshape(b, t, d))
        return x + self.down(ops.gelu(self.up(self.norm2(x))))


class GPT(nn.Cell):
    """A decoder-only transformer with learned positions; (N, T) token numbers to (N, T, vocabulary)."""

    def __init__(
        self, vocabulary: int = 4096, width: int = 384, layers: int = 6, heads: int = 6, context: int = 256
    ) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.layers = nn.SequentialCell(*[Layer(width, heads, context) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm((width,)), nn.Dense(width, vocabulary, has_bias=False)
        self.index = Tensor(np.arange(context), ms.int32)

    def construct(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(self.layers(self.token(ids) + self.position(self.index))))


@dataclass
class Work:
    """A network with inputs, labels and an optimizer."""

    network: nn.Cell
    x: Tensor
    y: Tensor
    optimizer: nn.Cell

    def step(self) -> Any:
        """A function of inputs and labels that trains one step and returns the loss."""
        loss_fn = nn.CrossEntropyLoss()

        def forward(x: Tensor, y: Tensor) -> Tensor:
            logits = self.network(x)
            return loss_fn(logits.reshape(-1, logits.shape[-1]), y)

        gradient = ms.value_and_grad(forward, None, self.optimizer.parameters)

        def train(x: Tensor, y: Tensor) -> Tensor:
            loss, grads = gradient(x, y)
            self.optimizer(grads)
            return loss

        return train


def make(name: str) -> Work:
    """The work called ``mlp``, ``lenet``, ``r18`` or ``gpt``, with random inputs from a fixed seed."""
    ms.set_seed(0)
    rng = np.random.default_rng(0)
    if name == "gpt":
        network: nn.Cell = GPT()
        x = Tensor(rng.integers(0, 4096, (4, 256)), ms.int32)
        y = Tensor(rng.integers(0, 4096, (4 * 256,)), ms.int32)
    else:
        maker, shape = {
            "mlp": (MLP, (64, 784)), "lenet": (LeNet, (64, 1, 28, 28)), "r18": (ResNet, (32, 3, 32, 32)),
        }[name]  # fmt: skip
        network = maker()
        x = Tensor(rng.standard_normal(shape), ms.float32)
        y = Tensor(rng.integers(0, 10, shape[:1]), ms.int32)
    network.set_train()
    params = network.trainable_params()
    optimizer = nn.Adam(params, 1e-3) if name in ("mlp", "gpt") else nn.Momentum(params, 0.01, 0.9)
    return Work(network, x, y, optimizer)
