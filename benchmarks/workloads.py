"""What is measured: sizes, inputs, labels and first weights of the networks, with NumPy alone.

Every framework reads this, in whatever environment it is installed, so that all of them train the same network
from the same weights on the same numbers. Weights are drawn by name: the generator's seed is the CRC-32 of the
parameter's name, so that the order in which a framework lists its parameters does not matter.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Workload:
    """One network at one size.

    Attributes:
        name: what it is called on the command line.
        about: one line for the reader of a result.
        optimizer: ``adam`` (rate 1e-3) or ``momentum`` (rate 0.01, momentum 0.9).
        input_shape: the shape of one batch of inputs.
        classes: labels are below this.
        tokens: inputs are whole numbers below this, if it is not 0; else they are normal.
        options: the arguments of the network's constructor.
    """

    name: str
    about: str
    optimizer: str
    input_shape: tuple[int, ...]
    classes: int = 10
    tokens: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    def x(self) -> Array:
        """One batch of inputs: float32, or int32 tokens."""
        rng = np.random.default_rng(0)
        if self.tokens:
            return rng.integers(0, self.tokens, self.input_shape).astype(np.int32)
        return rng.standard_normal(self.input_shape, np.float32)

    def y(self) -> Array:
        """Its labels, int32: one for each row, or for each token as one flat row."""
        count = math.prod(self.input_shape) if self.classes == self.tokens else self.input_shape[0]
        return np.random.default_rng(1).integers(0, self.classes, count).astype(np.int32)


def initial(name: str, shape: tuple[int, ...]) -> Array:
    """The first value of the parameter of this name, float32; the shape is ``(out, in, ...)`` as in ``nn.Dense``.

    Scales and variances are 1, shifts and means 0, biases small, embeddings of deviation 0.1, and other weights of
    deviation ``1 / sqrt(fan in)``.
    """
    last = name.rpartition(".")[2]
    if last in ("gamma", "moving_variance"):
        return np.ones(shape, np.float32)
    if last in ("beta", "moving_mean"):
        return np.zeros(shape, np.float32)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    deviation = 0.02 if len(shape) == 1 else 0.1 if last == "embedding_table" else math.prod(shape[1:]) ** -0.5
    return rng.standard_normal(shape, np.float32) * np.float32(deviation)


FULL = {
    w.name: w
    for w in (
        Workload("mlp", "784-512-512-10, batch 64, Adam", "adam", (64, 784)),
        Workload("lenet", "LeNet-5, batch 64, momentum", "momentum", (64, 1, 28, 28)),
        Workload("r18", "ResNet-18 at 32x32, batch 32, momentum", "momentum", (32, 3, 32, 32)),
        Workload(
            "gpt", "GPT of 6 layers of 384, 4 x 256 tokens of 4,096, Adam", "adam", (4, 256), 4096, 4096,
            {"vocabulary": 4096, "width": 384, "layers": 6, "heads": 6, "context": 256},
        ),
        Workload(
            "bert", "BERT of 4 layers of 768, 8 x 128 tokens of 30,522, Adam", "adam", (8, 128), 30522, 30522,
            {"vocabulary": 30522, "width": 768, "layers": 4, "heads": 12, "inner": 3072, "context": 128},
        ),
        Workload(
            "lstm", "LSTM of 2 layers of 256, 32 x 64 steps of 128, Adam", "adam", (32, 64, 128),
            options={"features": 128, "hidden": 256, "layers": 2},
        ),
        Workload(
            "resnet50", "ResNet-50 at 224x224, batch 8, momentum", "momentum", (8, 3, 224, 224), 1000,
            options={"width": 64, "blocks": (3, 4, 6, 3), "classes": 1000},
        ),
    )
}  # fmt: skip

SMALL = {
    w.name: w
    for w in (
        Workload("mlp", "784-512-512-10, batch 8, Adam", "adam", (8, 784)),
        Workload("lenet", "LeNet-5, batch 8, momentum", "momentum", (8, 1, 28, 28)),
        Workload(
            "r18", "ResNet of 2 blocks at 16x16, batch 8, momentum", "momentum", (8, 3, 16, 16),
            options={"widths": (8, 16), "blocks": 1},
        ),
        Workload(
            "gpt", "GPT of 2 layers of 32, 4 x 16 tokens of 64, Adam", "adam", (4, 16), 64, 64,
            {"vocabulary": 64, "width": 32, "layers": 2, "heads": 4, "context": 16},
        ),
        Workload(
            "bert", "BERT of 2 layers of 32, 4 x 16 tokens of 64, Adam", "adam", (4, 16), 64, 64,
            {"vocabulary": 64, "width": 32, "layers": 2, "heads": 4, "inner": 64, "context": 16},
        ),
        Workload(
            "lstm", "LSTM of 2 layers of 16, 4 x 8 steps of 12, Adam", "adam", (4, 8, 12),
            options={"features": 12, "hidden": 16, "layers": 2},
        ),
        Workload(
            "resnet50", "ResNet of 4 bottlenecks at 64x64, batch 4, momentum", "momentum", (4, 3, 64, 64), 10,
            options={"width": 8, "blocks": (1, 1, 1, 1), "classes": 10},
        ),
    )
}  # fmt: skip


def workload(name: str, small: bool = False) -> Workload:
    """The workload of this name; the small ones are for tests."""
    return (SMALL if small else FULL)[name]
