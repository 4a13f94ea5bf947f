"""Compiled graphs.

A graph is optimized, lowered by evaluating it under ``jax.jit`` and compiled by XLA at its first run.
A ``donated`` parameter gives its memory to the output that replaces it: a training step writes its parameters in
place. JAX pairs donated inputs with outputs of their type in the order of both, so those outputs are returned first,
in the order of the inputs; a wrong pair would cost a copy of each.
"""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.compiler.passes import opaque, updates
from mycelia.compiler.phases import Phases, listening
from mycelia.compiler.pipeline import optimize
from mycelia.compiler.report import CompileReport, operator_counts, value_bytes
from mycelia.core import cluster, heap, layout, memory_is_kept
from mycelia.core.errors import StateError
from mycelia.ir.evaluate import evaluate
from mycelia.ir.graph import Graph, Value
from mycelia.ir.primitive import COLLECTIVE
from mycelia.ir.rewriter import graph_has_effects, has_collectives, structure
from mycelia.ir.types import TensorType


class TypesChanged(StateError):
    """An input has another type than the graph was made for."""


class Executable:
    """A graph compiled for its parameter types.

    Attributes:
        source: the graph as it was staged.
        graph: the graph after the passes.
        program: the graph that is lowered; parts of the XLA program are named by its operators and their places.
        phases: where the time of compiling went.
        compile_seconds: how long the first run took to optimize, lower and compile (seconds), None before it.
    """

    def __init__(self, graph: Graph, donated: Sequence[tuple[int, int]] = ()) -> None:
        start = time.perf_counter()
        self.source = graph
        self.graph = optimize(graph)
        self.donated = tuple(sorted(donated))
        order = [k for _, k in self.donated]
        order += sorted(set(range(len(graph.outputs))).difference(order))
        #: Where each output stands in what the compiled function returns; None if they are in order.
        self._places = None if order == sorted(order) else sorted(range(len(order)), key=order.__getitem__)
        optimized, numbers = opaque.run(updates.run(self.graph, self.donated)[0])
        if cluster.place().size > 1 and _unread_collectives(optimized):
            optimized = _with_unread_collectives(optimized)
            self._places = self._places or list(range(len(order)))
            order += range(len(order), len(optimized.outputs))
        self.program = optimized
        #: Numbers that the program takes behind its inputs, always the same.
        self.given = [_held(n.dtype.str, int(n)) for n in numbers]

        def run(*arrays: Any) -> list[Any]:
            for array, type_ in zip(
                arrays, self.graph.input_types, strict=False
            ):  # seen at the first run of a type only
                if array.shape != type_.shape or array.dtype != type_.dtype.np:
                    got = f"{array.dtype}{list(array.shape)}"
                    raise TypesChanged(graph.name, message=f"an input of type {type_} has become {got}")
            results = evaluate(optimized, arrays)
            return results if self._places is None else [results[k] for k in order]

        run.__name__ = graph.name if graph.name.isidentifier() else "graph"
        places = [i for i, _ in self.donated]
        together = cluster.place().size > 1 and has_collectives(optimized)
        self._fn: Any = (
            cluster.Together(run, places) if together else jax.jit(run, donate_argnums=places, keep_unused=True)
        )
        self._run = run
        self._spread: layout.Spread | None = None
        self.phases = Phases(passes=time.perf_counter() - start)
        self.compile_seconds: float | None = None
        self._room = 0  # bytes of temporaries if they are large

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Run on one array for each parameter; donated ones are used up."""
        if self.compile_seconds is None:
            start = time.perf_counter()
            with listening(self.phases):
                fn = self._fn if not layout.in_use() else self._chosen(arrays)
                out = fn(*arrays, *self.given)
            self.compile_seconds = self.phases.passes + time.perf_counter() - start
            self._room = self._temporaries(arrays)
        else:
            if self._room:
                heap.make_room(self._room)
            fn = self._fn if not layout.in_use() else self._chosen(arrays)
            out = fn(*arrays, *self.given)
        return out if self._places is None else [out[i] for i in self._places]

    def _chosen(self, arrays: Sequence[Any]) -> Any:
        """What runs on these arrays: if some are given away that are spread, what takes their memory lies alike."""
        held = next((a for a in arrays if layout.is_spread(a)), None)
        if held is None:
            return self._fn
        if self._spread is None:
            pairs = [(i, k) for k, (i, _) in enumerate(self.donated)]  # outputs are in the order of what they replace
            self._spread = layout.Spread(self._run, pairs)
        return self._spread

    def _temporaries(self, arrays: Sequence[Any]) -> int:
        """The bytes that XLA allocates for values within a run; 0 if that is little or not on the heap.

        ``arrays`` are those of the first run: for them, used up or not, jax has the program already.
        """
        if not memory_is_kept or jax.default_backend() != "cpu" or jax.device_count() > 1:
            return 0
        if value_bytes(self.program) < heap.LARGE:
            return 0
        memory = self._fn.lower(*arrays, *self.given).compile().memory_analysis()
        size = 0 if memory is None else int(memory.temp_size_in_bytes)
        return size if size >= heap.LARGE else 0

    def lowered(self) -> Any:
        """The ``jax.stages.Lowered`` of the graph, for inspection (StableHLO text, cost, memory)."""
        return self._fn.lower(*[_abstract(t) for t in self.graph.input_types], *self.given)

    def report(self) -> CompileReport:
        """What the passes do to the graph, what a run costs, and where the time of compiling went.

        Compiles the graph if that has not happened. The passes run once more, to be watched.
        """
        report = CompileReport(self.source.name)
        optimize(self.source, report)
        report.operators = operator_counts(self.source, self.graph)
        report.value_bytes = value_bytes(self.graph)
        memory = self.lowered().compile().memory_analysis()
        if memory is not None:
            report.peak_bytes = (
                memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
                - memory.alias_size_in_bytes
            )  # fmt: skip
        report.phases = self.phases
        return report


def _unread_collectives(graph: Graph) -> list[Value]:
    """A result of each collective of which none is read: XLA would drop it, and other ranks wait for this one."""
    read = {v for node in graph.nodes for v in node.inputs} | set(graph.outputs)
    return [
        node.outputs[0]
        for node in graph.nodes
        if COLLECTIVE in node.op.effects and node.outputs and read.isdisjoint(node.outputs)
    ]


def _with_unread_collectives(graph: Graph) -> Graph:
    extended = Graph(graph.name)
    extended.params, extended.nodes = list(graph.params), graph.nodes
    extended.outputs = [*graph.outputs, *_unread_collectives(graph)]
    return extended


def _abstract(type_: TensorType) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(type_.shape, type_.dtype.np)


@functools.cache
def _held(dtype: str, number: int) -> Any:
    """An array of a number that executables are always given; one for all of them."""
    return jnp.asarray(np.asarray(number, dtype))


#: Executables in use by what they compute. Weak: they live as long as some graph keeps them.
_by_structure: weakref.WeakValueDictionary[Any, Executable] = weakref.WeakValueDictionary()


def executable(graph: Graph, donated: tuple[tuple[int, int], ...] = ()) -> Executable:
    """The executable of a graph; ``donated`` pairs inputs with outputs.

    It is kept with the graph, and shared by all graphs that compute the same: a network made again, or equal layers
    that are called one by one, compile once. Graphs with effects keep their own, which tell the user's lines.
    """
    key = ("executable", donated)
    found: Executable | None = graph.derived.get(key)
    if found is None:
        shared = None if graph_has_effects(graph) else (structure(graph), donated)
        found = None if shared is None else _by_structure.get(shared)
        if found is None:
            found = Executable(graph, donated)
            if shared is not None:
                _by_structure[shared] = found
        graph.derived[key] = found
    return found
