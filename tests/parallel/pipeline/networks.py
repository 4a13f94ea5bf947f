"""Networks that are trained as pipelines and on one process, and the ten steps that are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import nn, ops

WIDTH, ROWS, STEPS, MICRO_BATCHES = 8, 16, 10, 8


class Block(nn.Cell):
    """A residual block."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.norm = nn.LayerNorm((width,))
        self.up, self.down = nn.Dense(width, 2 * width), nn.Dense(2 * width, width)

    def construct(self, x: Any) -> Any:
        return x + self.down(ops.gelu(self.up(self.norm(x))))


class Stack(nn.Cell):
    """Equal layers, cut by work."""

    def __init__(self, stages: int) -> None:
        super().__init__()
        self.blocks = nn.CellList([Block() for _ in range(7)])
        self.head = nn.Dense(WIDTH, 3)

    def construct(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Irregular(nn.Cell):
    """Two inputs, branches over several stages, and operators between Cells.

    With four stages, the first gives something to the second, the third and the last.
    """

    def __init__(self, stages: int) -> None:
        super().__init__()
        self.first, self.side = nn.Dense(WIDTH, WIDTH, activation="tanh"), nn.Dense(4, WIDTH)
        self.second = nn.Dense(WIDTH, 6, activation="relu")
        self.third = nn.Dense(6 + WIDTH, WIDTH)
        self.last = nn.Dense(WIDTH, 3)
        self.scale = ms.Parameter(ms.Tensor([0.5], ms.float32), name="scale")
        if stages <= 4:
            for k, cell in enumerate((self.first, self.second, self.third, self.last)):
                cell.pipeline_stage = k * stages // 4
            self.side.pipeline_stage = 0

    def construct(self, x: Any, z: Any) -> Any:
        a = self.first(x)
        side = ops.sigmoid(self.side(z))
        b = self.second(a * side)
        c = self.third(ops.concat((b, a), 1)) + side * self.scale
        return self.last(c + a) * (1.0 + z.mean())


class Tied(nn.Cell):
    """A language model whose output layer is its embedding."""

    def __init__(self, stages: int) -> None:
        super().__init__()
        self.table = ms.Parameter(ms.Tensor(_numbers(11, WIDTH), ms.float32), name="table")
        self.blocks = nn.CellList([Block() for _ in range(7)])

    def construct(self, ids: Any) -> Any:
        x = ops.gather(self.table, ids, 0)
        for block in self.blocks:
            x = block(x)
        return ops.matmul(x, self.table.T)


def _numbers(*shape: int) -> Any:
    return np.random.default_rng(5).standard_normal(shape) * 0.3


def batch(kind: str, step: int) -> tuple[Any, ...]:
    """The inputs of a step."""
    rng = np.random.default_rng(step)
    if kind == "tied":
        ids = rng.integers(0, 11, ROWS).astype(np.int32)
        return ms.Tensor(ids), ms.Tensor((ids * 3 + 1) % 11)
    x = ms.Tensor(rng.standard_normal((ROWS, WIDTH)).astype(np.float32))
    label = ms.Tensor(rng.integers(0, 3, ROWS).astype(np.int32))
    if kind == "irregular":
        # the mean over a micro-batch is that of the batch
        z = np.repeat(rng.standard_normal((ROWS // MICRO_BATCHES, 4)), MICRO_BATCHES, 0).astype(np.float32)
        return x, ms.Tensor(np.tile(z[::MICRO_BATCHES], (MICRO_BATCHES, 1))), label
    return x, label


NETWORKS: dict[str, tuple[type[nn.Cell], Callable[[Any], Any]]] = {
    "stack": (Stack, lambda p: nn.AdamWeightDecay(p, 1e-2, weight_decay=0.01)),
    "irregular": (Irregular, lambda p: nn.Momentum(p, nn.ExponentialDecayLR(0.1, 0.9, 4), 0.9)),
    "tied": (Tied, lambda p: nn.Adam(p, 1e-2)),
}


def made(kind: str, stages: int) -> tuple[nn.Cell, Any]:
    """A network and its optimizer, always from the same numbers."""
    ms.set_seed(7)
    network, optimizer = NETWORKS[kind]
    net = network(stages)
    rng = np.random.default_rng(3)
    for p in net.get_parameters():
        p.set_data(ms.Tensor(rng.standard_normal(p.shape) * 0.3, p.dtype))
    return net, optimizer(net.trainable_params())


def plain(kind: str) -> tuple[list[float], list[Any], Any]:
    """Losses and parameters of one process, and its optimizer."""
    net, optimizer = made(kind, 1)
    loss = nn.CrossEntropyLoss()
    weights = optimizer.parameters
    gradients = ms.value_and_grad(lambda *inputs: loss(net(*inputs[:-1]), inputs[-1]), None, weights)
    losses = []
    for step in range(STEPS):
        value, grads = gradients(*batch(kind, step))
        optimizer(grads)
        losses.append(float(value))
    return losses, [p.asnumpy() for p in net.get_parameters()], optimizer
