"""A small LeNet and a training step of it; the tests ask for the lines of this file by their texts."""

from pathlib import Path

import numpy as np

import mycelia as ms
from mycelia import nn, ops

FILE = str(Path(__file__).resolve())


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="pad", padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1, self.fc2 = nn.Dense(400, 84), nn.Dense(84, 10)

    def construct(self, x):
        x = self.pool(ops.relu(self.conv1(x)))  # first
        x = self.pool(ops.relu(self.conv2(x)))  # second
        x = x.reshape(x.shape[0], -1)
        x = ops.relu(self.fc1(x))  # hidden
        return self.fc2(x)  # last


def line_of(comment):
    """The number of the line that ends with a comment."""
    lines = Path(FILE).read_text(encoding="utf-8").splitlines()
    (found,) = [i for i, line in enumerate(lines, 1) if line.endswith(f"# {comment}")]
    return found


def training(batch=32):
    """A function that does one training step and gives the loss."""
    net, rng = LeNet(), np.random.default_rng(0)
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    loss_fn = nn.CrossEntropyLoss()
    x = ms.Tensor(rng.standard_normal((batch, 1, 28, 28)).astype(np.float32))
    y = ms.Tensor(rng.integers(0, 10, batch).astype(np.int32))
    gradient = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)

    def step():
        loss, grads = gradient(x, y)
        optimizer(grads)
        return loss

    compiled = ms.jit(step) if ms.get_context("mode") == ms.GRAPH_MODE else step
    return lambda: compiled().asnumpy()
