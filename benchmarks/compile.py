"""What compiling costs: seconds to the first result, how often a function is compiled, and memory with recompute.

Every measurement runs in a process of its own with an empty cache of executables; "warm" is a second process with
the cache of the first. Times are from the call to the finished result, so they hold staging, the passes, XLA and the
first run. Medians of the rounds, which alternate between the measurements.

    python benchmarks/compile.py [--rounds 3] [NAME ...]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import mycelia as ms
from benchmarks.networks import Layer, make
from mycelia import nn, ops
from mycelia.frontend.reports import compile_report
from mycelia.tensor import Tensor

Figures = dict[str, float]


class Loop(nn.Cell):
    """A Python loop over one small Cell."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.rounds, self.cell = rounds, nn.Dense(64, 64)

    def construct(self, x: Tensor) -> Tensor:
        for _ in range(self.rounds):
            x = ops.tanh(self.cell(x))
        return x


class Stack(nn.Cell):
    """Transformer layers with weights of their own, one after the other."""

    def __init__(self, depth: int, width: int, heads: int, context: int, recompute: bool = False) -> None:
        super().__init__()
        self.layers = nn.CellList([Layer(width, heads, context) for _ in range(depth)])
        if recompute:
            for layer in self.layers:
                layer.recompute()

    def construct(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def training_step(net: nn.Cell) -> Callable[[Tensor], Tensor]:
    """Forward, gradients and an Adam update in one compiled function."""
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    gradient = ms.value_and_grad(lambda x: net(x).square().mean(), None, optimizer.parameters)

    @ms.jit
    def step(x: Tensor) -> Tensor:
        loss, grads = gradient(x)
        optimizer(grads)
        return loss

    return step


def first_call(fn: Callable[..., Any], *args: Tensor) -> Figures:
    """Seconds of the first and the third call."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        fn(*args).asnumpy()
        times.append(time.perf_counter() - start)
    return {"first call, s": times[0], "third call, s": times[2]}


def images(*shape: int) -> Tensor:
    """Random numbers from a fixed seed."""
    return Tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def loop(train: bool) -> Figures:
    """1,000 rounds of a Python loop."""
    net = Loop(1000)
    return first_call(training_step(net) if train else ms.jit(net.construct), images(8, 64))


def layers(depth: int, train: bool) -> Figures:
    """A stack of small transformer layers."""
    net = Stack(depth, 64, 4, 32)
    return first_call(training_step(net) if train else ms.jit(net.construct), images(2, 32, 64))


def network(name: str) -> Figures:
    """The first training step of a network of the benchmarks."""
    work = make(name)
    return first_call(ms.jit(work.step()), work.x, work.y)


def rates() -> Figures:
    """Twenty learning rates given as Python numbers, and as an attribute."""
    w = ms.Parameter(Tensor(np.ones(4, np.float32)))

    @ms.jit
    def step(x: Tensor, rate: float) -> Tensor:
        return w - rate * x

    class Scale(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.rate = 0.1

        def construct(self, x: Tensor) -> Tensor:
            return x * self.rate

    scale = Scale()
    scaled = ms.jit(scale.construct)
    for i in range(20):
        step(images(4), 0.1 * (i + 1))
        scale.rate = 0.1 * (i + 1)
        scaled(images(4))
    return {
        "compilations, argument": len(ms.explain_recompiles(step)),
        "compilations, attribute": len(ms.explain_recompiles(scaled)),
    }


def memory(recompute: bool) -> Figures:
    """Peak memory of a training step of 12 GPT layers (width 384, 6 heads, 8 sequences of 256)."""
    step = training_step(Stack(12, 384, 6, 256, recompute))
    figures = first_call(step, images(8, 256, 384))
    with open(os.devnull, "w") as nowhere:
        before, sys.stdout = sys.stdout, nowhere
        try:
            (report,) = compile_report(step)
        finally:
            sys.stdout = before
    assert report.peak_bytes is not None
    assert report.value_bytes is not None
    return {
        **figures, "peak, MiB": report.peak_bytes / 2**20, "all values, MiB": report.value_bytes / 2**20,
    }  # fmt: skip


MEASUREMENTS: dict[str, Callable[[], Figures]] = {
    "loop of 1,000, forward": lambda: loop(False),
    "loop of 1,000, training step": lambda: loop(True),
    "12 layers, forward": lambda: layers(12, False),
    "48 layers, forward": lambda: layers(48, False),
    "12 layers, training step": lambda: layers(12, True),
    "48 layers, training step": lambda: layers(48, True),
    "r18, training step": lambda: network("r18"),
    "20 learning rates": rates,
    "12 GPT layers": lambda: memory(False),
    "12 GPT layers, recompute": lambda: memory(True),
}
#: Measured again with the executables of the first process.
WARM = ("r18, training step",)
#: Too long to repeat, and the same at each run.
ONCE = ("20 learning rates", "12 GPT layers", "12 GPT layers, recompute")


def in_process(name: str, folder: str) -> Figures:
    """Run one measurement in a fresh process whose executables are kept in ``folder``."""
    found = subprocess.run(
        [sys.executable, __file__, "--one", name], capture_output=True, text=True, check=True,
        env={**os.environ, "MYCELIA_CACHE_DIR": folder},
    )  # fmt: skip
    figures: Figures = json.loads(found.stdout.splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="which measurements (all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(MEASUREMENTS[args.one]()))
        return
    names = args.names or list(MEASUREMENTS)
    found: dict[str, list[Figures]] = {}
    for round_ in range(args.rounds):
        for name in names:
            if round_ and name in ONCE:
                continue
            with tempfile.TemporaryDirectory() as folder:
                found.setdefault(name, []).append(in_process(name, folder))
                if name in WARM:
                    found.setdefault(f"{name}, warm", []).append(in_process(name, folder))
    for name, rounds in found.items():
        shown = ", ".join(f"{key} {statistics.median(r[key] for r in rounds):.4g}" for key in rounds[0])
        print(f"{name:32} {shown}")
    for kind in ("forward", "training step"):
        deep, shallow = found.get(f"48 layers, {kind}"), found.get(f"12 layers, {kind}")
        if deep and shallow:
            ratio = statistics.median(
                a["first call, s"] / b["first call, s"] for a, b in zip(deep, shallow, strict=True)
            )
            print(f"48 layers to 12, {kind}: {ratio:.2f} times the first call")
    if "12 GPT layers" in found and "12 GPT layers, recompute" in found:
        full, less = found["12 GPT layers"][0], found["12 GPT layers, recompute"][0]
        print(f"recompute: peak {less['peak, MiB'] / full['peak, MiB']:.2f} of the peak without")


if __name__ == "__main__":
    main()
