"""Training steps of the measured networks: PyNative and Graph mode, and torch eager where it is installed.

Rounds alternate between the contenders, so that what else the machine does hits all alike. A step is
forward, mean cross-entropy, backward and update, timed from call to finished loss.

    python benchmarks/bench_networks.py [mlp lenet r18 gpt]
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mycelia as ms
from benchmarks.networks import make

NETWORKS = ("mlp", "lenet", "r18", "gpt")
ROUNDS = {"mlp": 100, "lenet": 50, "r18": 6, "gpt": 6}


def ours(name: str, mode: int) -> Callable[[], float]:
    """One training step of ours."""
    work = make(name)
    step = work.step()
    if mode == ms.GRAPH_MODE:
        step = ms.jit(step)
    return lambda: float(step(work.x, work.y))


def torchs(name: str) -> Callable[[], float]:
    """One training step of torch's, in its faster memory layout."""
    import torch

    from benchmarks import torch_networks

    torch.set_num_threads(2)
    work = make(name)
    network: Any = {
        "mlp": torch_networks.MLP, "lenet": torch_networks.LeNet, "r18": torch_networks.ResNet,
        "gpt": torch_networks.GPT,
    }[name]()  # fmt: skip
    x, y = torch.tensor(work.x.asnumpy()), torch.tensor(work.y.asnumpy()).long()
    if name == "r18":
        network, x = network.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if name in ("mlp", "gpt"):
        optimizer: Any = torch.optim.Adam(network.parameters(), 1e-3)
    else:
        optimizer = torch.optim.SGD(network.parameters(), 0.01, momentum=0.9)
    network.train()

    def step() -> float:
        optimizer.zero_grad()
        logits = network(x)
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def main() -> None:
    names = sys.argv[1:] or list(NETWORKS)
    print(f"{'network':8} {'contender':10} {'first s':>8} {'median ms':>10} {'least ms':>9} {'x graph':>8}")
    for name in names:
        contenders = {"pynative": ours(name, ms.PYNATIVE_MODE), "graph": ours(name, ms.GRAPH_MODE)}
        if importlib.util.find_spec("torch"):
            contenders["torch"] = torchs(name)
        first, times = {}, {}
        for who, step in contenders.items():
            start = time.perf_counter()
            step()
            first[who] = time.perf_counter() - start
            step()
            times[who] = []
        for _ in range(ROUNDS[name]):
            for who, step in contenders.items():
                start = time.perf_counter()
                step()
                times[who].append((time.perf_counter() - start) * 1e3)
        base = statistics.median(times["graph"])
        for who, found in times.items():
            middle = statistics.median(found)
            row = f"{name:8} {who:10} {first[who]:8.2f} {middle:10.2f} {min(found):9.2f} {middle / base:8.2f}"
            print(row, flush=True)


if __name__ == "__main__":
    main()
