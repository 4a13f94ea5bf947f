"""The networks that are measured, and that the tests train beside torch's, written against MindSpore's API.

The file imports ``mindspore``: it is the same program for Mycelia, which answers to that name, and for MindSpore in
an environment that has it instead.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np

if importlib.util.find_spec("mindspore") is None:
    from mycelia import alias

    alias.install()

import mindspore as ms
from mindspore import Tensor, nn, ops

from benchmarks.workloads import Workload, initial, workload


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


class Bottleneck(nn.Cell):
    """1x1, 3x3 (which carries the stride) and 1x1 convolutions beside a shortcut (He et al., 2016)."""

    def __init__(self, channels_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels_in, width, 1, pad_mode="valid"), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, pad_mode="pad", padding=1)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, pad_mode="valid"), nn.BatchNorm2d(4 * width)
        self.shortcut: nn.Cell | None = None
        if stride != 1 or channels_in != 4 * width:
            self.shortcut = nn.SequentialCell(
                nn.Conv2d(channels_in, 4 * width, 1, stride, pad_mode="valid"), nn.BatchNorm2d(4 * width)
            )

    def construct(self, x: Tensor) -> Tensor:
        y = ops.relu(self.bn1(self.conv1(x)))
        y = ops.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return ops.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet50(nn.Cell):
    """ResNet of bottlenecks with a 7x7 stem; (N, 3, 224, 224) to (N, classes)."""

    def __init__(self, width: int = 64, blocks: tuple[int, ...] = (3, 4, 6, 3), classes: int = 1000) -> None:
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, width, 7, 2, pad_mode="pad", padding=3), nn.BatchNorm2d(width)
        self.pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        layers, channels = [], width
        for i, count in enumerate(blocks):
            for j in range(count):
                layers.append(Bottleneck(channels, width * 2**i, 2 if i > 0 and j == 0 else 1))
                channels = 4 * width * 2**i
        self.blocks = nn.SequentialCell(*layers)
        self.head = nn.Dense(channels, classes)

    def construct(self, x: Tensor) -> Tensor:
        x = self.blocks(self.pool(ops.relu(self.bn(self.stem(x)))))
        return self.head(x.mean((2, 3)))


class Layer(nn.Cell):
    """A pre-norm transformer layer with causal attention."""

    def __init__(self, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.norm1, self.norm2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.qkv, self.out = nn.Dense(width, 3 * width), nn.Dense(width, width)
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
        self.mask = Tensor(np.triu(np.full((context, context), -1e9, np.float32), 1))

    def construct(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(b, t, 3, self.heads, d // self.heads).transpose(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = ops.matmul(q, k.swapaxes(-1, -2)) * self.scale + self.mask
        y = ops.matmul(ops.softmax(scores, -1).astype(v.dtype), v)
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


class EncoderLayer(nn.Cell):
    """A post-norm transformer layer with attention to all positions (Vaswani et al., 2017; Devlin et al., 2019)."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.query, self.key, self.value = nn.Dense(width, width), nn.Dense(width, width), nn.Dense(width, width)
        self.out, self.norm1 = nn.Dense(width, width), nn.LayerNorm((width,))
        self.up, self.down, self.norm2 = nn.Dense(width, inner), nn.Dense(inner, width), nn.LayerNorm((width,))

    def split(self, x: Tensor) -> Tensor:
        """(N, T, D) to (N, heads, T, D / heads)."""
        b, t, d = x.shape
        return x.reshape(b, t, self.heads, d // self.heads).swapaxes(1, 2)

    def construct(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = ops.matmul(q, k.swapaxes(-1, -2)) * self.scale
        y = ops.matmul(ops.softmax(scores, -1).astype(v.dtype), v)
        x = self.norm1(x + self.out(y.swapaxes(1, 2).reshape(b, t, d)))
        return self.norm2(x + self.down(ops.gelu(self.up(x))))


class BERT(nn.Cell):
    """A masked language model of one segment, its output weights its own; (N, T) tokens to (N, T, vocabulary)."""

    def __init__(
        self, vocabulary: int = 30522, width: int = 768, layers: int = 4, heads: int = 12, inner: int = 3072,
        context: int = 128,
    ) -> None:  # fmt: skip
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.norm = nn.LayerNorm((width,))
        self.layers = nn.SequentialCell(*[EncoderLayer(width, heads, inner) for _ in range(layers)])
        self.transform, self.norm2 = nn.Dense(width, width), nn.LayerNorm((width,))
        self.head = nn.Dense(width, vocabulary)
        self.index = Tensor(np.arange(context), ms.int32)

    def construct(self, ids: Tensor) -> Tensor:
        x = self.layers(self.norm(self.token(ids) + self.position(self.index)))
        return self.head(self.norm2(ops.gelu(self.transform(x))))


class Recurrent(nn.Cell):
    """An LSTM whose last output is classified; (N, T, features) to (N, 10)."""

    def __init__(self, features: int = 128, hidden: int = 256, layers: int = 2) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, layers, batch_first=True)
        self.head = nn.Dense(hidden, 10)

    def construct(self, x: Tensor) -> Tensor:
        y, _ = self.lstm(x)
        return self.head(y[:, -1])


NETWORKS: dict[str, type[nn.Cell]] = {
    "mlp": MLP, "lenet": LeNet, "r18": ResNet, "gpt": GPT, "bert": BERT, "lstm": Recurrent, "resnet50": ResNet50,
}  # fmt: skip


@dataclass
class Work:
    """A network with inputs, labels and an optimizer."""

    network: nn.Cell
    x: Tensor
    y: Tensor
    optimizer: nn.Cell

    def step(self) -> Any:
        """A function of inputs and labels that trains one step and returns the loss."""
        network, optimizer, loss_fn = self.network, self.optimizer, nn.CrossEntropyLoss()

        def forward(x: Tensor, y: Tensor) -> Tensor:
            logits = network(x)
            return loss_fn(logits.reshape(-1, logits.shape[-1]).astype(ms.float32), y)

        gradient = ms.value_and_grad(forward, None, optimizer.parameters)

        def train(x: Tensor, y: Tensor) -> Tensor:
            loss, grads = gradient(x, y)
            optimizer(grads)
            return loss

        return train


def make(name: str, small: bool = False) -> Work:
    """The work of this name with its network, inputs and first weights, all of them fixed."""
    return made(workload(name, small))


def made(work: Workload) -> Work:
    """The network, inputs, labels and optimizer of a workload; the network is in training mode."""
    network = NETWORKS[work.name](**work.options)
    for name, parameter in network.parameters_and_names():
        parameter.set_data(Tensor(initial(name, tuple(parameter.shape))))
    network.set_train()
    params = network.trainable_params()
    optimizer = nn.Adam(params, 1e-3) if work.optimizer == "adam" else nn.Momentum(params, 0.01, 0.9)
    return Work(network, Tensor(work.x()), Tensor(work.y()), optimizer)
