"""Programs against MindSpore's API: Mycelia's, and MindSpore's in an environment that has it.

Both are made by the same lines from the same networks. Floating-point operations are counted in Mycelia's graph as it
was staged, without what is dead, so that no rewriting by the compiler changes the count.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import amp

from benchmarks.networks import made
from benchmarks.program import Last, NotMeasuredError, Program
from benchmarks.workloads import Workload

#: Whether ``mindspore`` is Mycelia's second name.
OURS = ms.Tensor.__module__.startswith("mycelia")


def program(work: Workload, mode: str, job: str, precision: str, threads: int) -> Program:
    """The program of a workload.

    Args:
        work: the workload.
        mode: ``pynative`` or ``graph``.
        job: ``train`` or ``infer``.
        precision: ``f32``, or ``bf16`` through mixed precision at level ``auto``.
        threads: how many threads may compute.
    """
    if not OURS:
        ms.set_device("CPU")
        ms.runtime.dispatch_threads_num(threads)
        ms.device_context.cpu.op_tuning.threads_num(threads)
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    done = made(work)
    network: Any = done.network
    if precision == "bf16":
        if not OURS:
            raise NotMeasuredError("MindSpore's CPU operators take no bfloat16")
        network = amp.auto_mixed_precision(network, "auto", ms.bfloat16)

    def infer(x: Any) -> Any:
        return network(x)

    if job == "train":
        call, given = done.step(), (done.x, done.y)
    else:
        network.set_train(False)
        call, given = infer, (done.x,)
    if mode == "graph":
        call = ms.jit(call)
    last = Last()

    def step() -> None:
        result = call(*given)
        last.result = result
        if OURS:
            np.asarray(result)  # shares the memory: it only waits
        else:
            result.asnumpy()

    def value() -> float:
        result = last.result.astype(ms.float32).asnumpy()
        return float(result if job == "train" else np.square(result).mean())

    parameters = sum(p.size for p in done.network.trainable_params())
    version = metadata.version(ms.__name__)
    return Program(step, value, parameters, version, lambda: _flops(call) if OURS and mode == "graph" else None)


def _flops(compiled: Any) -> int:
    """Floating-point operations of the graph of a compiled function that has been called."""
    from mycelia.compiler.passes import dead_code
    from mycelia.compiler.report import graph_cost
    from mycelia.frontend.recompiles import compiled_calls

    entries = [c.entry for kept in compiled_calls(compiled) for c in kept.compilations if c.entry is not None]
    graph, _ = dead_code.run(entries[-1].executable.source)
    return graph_cost(graph).flops
