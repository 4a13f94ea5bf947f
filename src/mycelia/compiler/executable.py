"""Compiled graphs.

A graph is optimized, lowered by evaluating it under ``jax.jit`` and compiled by XLA at its first run.
``donated`` parameters give their memory to the outputs: a training step writes its parameters in place.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import jax

from mycelia.compiler.pipeline import optimize
from mycelia.ir.evaluate import evaluate
from mycelia.ir.graph import Graph
from mycelia.ir.types import TensorType


class Executable:
    """A graph compiled for its parameter types.

    Attributes:
        source: the graph as it was staged.
        graph: the graph after the passes.
        compile_seconds: how long the first run took to optimize, lower and compile (seconds), None before it.
    """

    def __init__(self, graph: Graph, donated: Sequence[int] = ()) -> None:
        start = time.perf_counter()
        self.source = graph
        self.graph = optimize(graph)
        self.donated = tuple(donated)
        optimized = self.graph

        def run(*arrays: Any) -> list[Any]:
            return evaluate(optimized, arrays)

        run.__name__ = graph.name if graph.name.isidentifier() else "graph"
        self._fn = jax.jit(run, donate_argnums=self.donated, keep_unused=True)
        self._optimize_seconds = time.perf_counter() - start
        self.compile_seconds: float | None = None

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Run on one array for each parameter; donated ones are used up."""
        if self.compile_seconds is None:
            start = time.perf_counter()
            out = self._fn(*arrays)
            self.compile_seconds = self._optimize_seconds + time.perf_counter() - start
            return out
        return self._fn(*arrays)

    def lowered(self) -> Any:
        """The ``jax.stages.Lowered`` of the graph, for inspection (StableHLO text, cost, memory)."""
        return self._fn.lower(*[_abstract(t) for t in self.graph.input_types])


def _abstract(type_: TensorType) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(type_.shape, type_.dtype.np)


def executable(graph: Graph, donated: tuple[int, ...] = ()) -> Executable:
    """The executable of a graph, made once and kept with it."""
    key = ("executable", donated)
    if key not in graph.derived:
        graph.derived[key] = Executable(graph, donated)
    found: Executable = graph.derived[key]
    return found
