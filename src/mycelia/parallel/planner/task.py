"""What is planned: a graph, what its inputs are, and which outputs take the place of which inputs.

The graph of a training step holds forward, backward and update together, so that a plan sees all of them. It is staged
without rolling equal layers into loops: a loop would hide from the planner what each layer costs at its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from mycelia.compiler.passes import algebraic, common_subexpressions, dead_code, inline, roll
from mycelia.frontend.program import PARAMETER, Program, stage_program
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.rewriter import attributes_key
from mycelia.tensor import Tensor
from mycelia.tensor.tensor import wrap

#: What an input of the graph is: rows of data, or state that stays from step to step.
DATA, STATE = "data", "state"


@dataclass
class Task:
    """A graph to plan.

    Attributes:
        graph: one step.
        names: of the graph's inputs.
        kinds: of the graph's inputs, ``DATA`` or ``STATE``.
        pairs: input and output that share a place: an input's new value.
        trained: names of the parameters that are trained.
        rows: the length of the first dimension of the data, which micro-batches divide; 0 if there is none.
    """

    graph: Graph
    names: list[str]
    kinds: list[str]
    pairs: list[tuple[int, int]]
    trained: frozenset[str] = frozenset()
    rows: int = 0

    @cached_property
    def labels(self) -> list[str]:
        """A name for each node that stays the same from run to run: number, operator and the shape of its result."""
        made = []
        for i, node in enumerate(self.graph.nodes):
            shape = ",".join(map(str, node.outputs[0].type.shape)) if node.outputs else ""
            made.append(f"{i} {node.op.name}[{shape}]")
        return made

    @cached_property
    def fingerprint(self) -> str:
        """Tells graphs of other operators, types or edges apart."""
        ids: dict[Value, int] = {v: i for i, v in enumerate(self.graph.params)}
        text = hashlib.sha256()
        text.update("|".join([str(v.type) for v in self.graph.params]).encode())
        for node in self.graph.nodes:
            ids.update({v: len(ids) + i for i, v in enumerate(node.outputs)})
            text.update(f"{node.op.name}{[ids[v] for v in node.inputs]}{[str(v.type) for v in node.outputs]}".encode())
        text.update(str([ids[v] for v in self.graph.outputs]).encode())
        return text.hexdigest()[:16]


def task_of_graph(graph: Graph, kinds: Sequence[str] | None = None, pairs: Sequence[tuple[int, int]] = ()) -> Task:
    """A task from a graph alone: its inputs are state unless ``kinds`` says otherwise."""
    chosen = list(kinds) if kinds is not None else [STATE] * len(graph.params)
    names = [f"input{i}" for i in range(len(graph.params))]
    return Task(graph, names, chosen, list(pairs), frozenset(), _rows(graph, chosen))


def task_of_program(program: Program) -> Task:
    """A task from a staged program: its state stays, its arguments are data."""
    graph = simplified(program.graph)
    leaves = [name for name, t in zip(program.leaf_names(), program.inputs, strict=True) if hasattr(t, "shape")]
    count = len(leaves)
    names = [*leaves, *[s.name for s in program.state]]
    kinds = [DATA] * count + [STATE] * len(program.state)
    first = program.n_outputs
    pairs = [(count + s, first + k) for k, s in enumerate(program.state_writes)]
    trained = frozenset([s.name for s in program.state if s.kind == PARAMETER and s.requires_grad])
    return Task(graph, names, kinds, pairs, trained, _rows(graph, kinds))


def stage_task(fn: Any, *args: Any) -> Task:
    """The task of a function that trains one step (or of a Cell), for arguments like these.

    Args:
        fn: what is staged; its state is left as it is.
        args: Tensors; :func:`shaped` makes one that has a type only.

    >>> import mycelia as ms
    >>> net = ms.nn.Dense(4, 3)
    >>> task = stage_task(net, shaped((8, 4)))
    >>> task.names, task.kinds, task.rows
    (['x', 'weight', 'bias'], ['data', 'state', 'state'], 8)
    """
    kept = roll.LEAST_ROUNDS
    roll.LEAST_ROUNDS = 1 << 60
    try:
        return task_of_program(stage_program(fn, args, "plan"))
    finally:
        roll.LEAST_ROUNDS = kept


def shaped(shape: Sequence[int], dtype: Any = np.float32) -> Tensor:
    """A Tensor without elements, to stage with: batches that no machine here could hold cost nothing.

    >>> shaped((1 << 20, 1 << 20)).shape
    (1048576, 1048576)
    """
    return wrap(jax.ShapeDtypeStruct(tuple(shape), np.dtype(dtype)))


def simplified(graph: Graph) -> Graph:
    """The graph after the passes that keep its layers apart."""
    for run in (dead_code.run, inline.run, algebraic.run, common_subexpressions.run, dead_code.run):
        graph = run(graph)[0]
    return graph


def _rows(graph: Graph, kinds: Sequence[str]) -> int:
    for value, kind in zip(graph.params, kinds, strict=True):
        if kind == DATA and value.type.rank:
            return value.type.shape[0]
    return 0


def node_key(node: Node) -> Any:
    """What an operator does, without where its operands come from."""
    types = tuple([v.type for v in node.inputs]), tuple([v.type for v in node.outputs])
    return (node.op.name, types, attributes_key(node.attrs))
