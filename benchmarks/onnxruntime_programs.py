"""ONNX Runtime's programs: inference in float32 with all its graph optimizations."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime

from benchmarks.onnx_networks import model
from benchmarks.program import Last, NotMeasuredError, Program
from benchmarks.workloads import Workload


def program(work: Workload, mode: str, job: str, precision: str, threads: int) -> Program:
    """The program of a workload; the only ``mode`` is ``session``."""
    if job != "infer" or precision != "f32":
        raise NotMeasuredError("ONNX Runtime is measured in float32 inference only")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    made, parameters = model(work)
    waiting, sessions = [made.SerializeToString()], []
    del made
    given = {"x": work.x()}
    last = Last()

    def session() -> Any:
        """The session, made in the first step: that is where it optimizes the graph."""
        if waiting:
            sessions.append(onnxruntime.InferenceSession(waiting.pop(), options, providers=["CPUExecutionProvider"]))
        return sessions[0]

    def step() -> None:
        (last.result,) = session().run(["logits"], given)

    def value() -> float:
        return float(np.square(last.result).mean())

    return Program(step, value, parameters, onnxruntime.__version__)
