"""torch's programs: eager or compiled, float32 or autocast to bfloat16, images in its faster memory layout."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.nn import functional as F

from benchmarks.program import Last, Program
from benchmarks.torch_networks import NETWORKS, named_values
from benchmarks.workloads import Workload, initial


def network(work: Workload) -> Any:
    """The network of a workload with its first weights, in training mode."""
    made: Any = NETWORKS[work.name](**work.options)
    with torch.no_grad():
        for name, value in named_values(made).items():
            value.copy_(torch.from_numpy(initial(name, tuple(value.shape))))
    return made.train()


def program(work: Workload, mode: str, job: str, precision: str, threads: int) -> Program:
    """The program of a workload; ``mode`` is ``eager`` or ``compile``."""
    torch.set_num_threads(threads)
    net, x, y = network(work), torch.from_numpy(work.x()), torch.from_numpy(work.y()).long()
    if x.ndim == 4:
        net, x = net.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    optimizer: Any = None
    if job == "infer":
        net.eval()
    elif work.optimizer == "adam":
        optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    else:
        optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)

    def computing() -> Any:
        return torch.autocast("cpu", torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()

    def train() -> Any:
        optimizer.zero_grad()
        with computing():
            logits = net(x)
        loss = F.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def infer() -> Any:
        with torch.inference_mode(), computing():
            return net(x)

    call: Any = train if job == "train" else infer
    if mode == "compile":
        call = torch.compile(call)
    last = Last()

    def step() -> None:
        last.result = call()

    def value() -> float:
        return float(last.result if job == "train" else last.result.float().square().mean())

    return Program(step, value, sum(p.numel() for p in net.parameters()), torch.__version__)
