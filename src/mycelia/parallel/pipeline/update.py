"""The part of an optimizer's update that a rank runs.

The update is staged for all parameters, whatever optimizer it is. A new value depends on the gradients that it is
computed from: those that need gradients of this rank's parameters are its own, those that need none (a count of steps,
a learning rate) are everybody's, and the others are computed elsewhere. A value that needs gradients of several ranks
(a norm over all of them) cannot be computed so, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from mycelia.core import tree
from mycelia.core.errors import UnsupportedError
from mycelia.frontend.entry import Entry
from mycelia.frontend.guards import Guards
from mycelia.frontend.program import RANDOM, Program, random_stream, stage_program
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.rewriter import copy_node, has_effects
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.tensor import wrap


@dataclass
class Update:
    """An optimizer's update, staged for all of its parameters.

    Attributes:
        program: takes a gradient for each parameter.
        parameters: of the optimizer.
        needs: for each new value of state the gradients that it is computed from, as bits.
    """

    program: Program
    parameters: tuple[Parameter, ...]
    needs: list[int] = field(default_factory=list)

    def tensor(self, index: int) -> Tensor:
        """The tensor of one of the program's state."""
        spec = self.program.state[index]
        return random_stream(spec.stream) if spec.value is None else spec.value

    def owned(self, held: Sequence[int]) -> list[int]:
        """Which state of the program changes by gradients of some parameters."""
        bits = sum(1 << i for i in held)
        return [s for s, need in zip(self.program.state_writes, self.needs, strict=True) if need & bits]

    def check(self, held: Sequence[Sequence[int]]) -> None:
        """Refuse an update that mixes gradients of several ranks' parameters.

        Args:
            held: for each rank the parameters that it holds, by their places.

        Raises:
            UnsupportedError: a new value needs gradients that no rank has all of.
        """
        bits = [sum(1 << i for i in places) for places in held]
        for index, need in zip(self.program.state_writes, self.needs, strict=True):
            if need and not any(need & b == need for b in bits):
                raise UnsupportedError(
                    "pipeline", "optimizer", got=f"an update of '{self.program.state[index].name}' that needs the "
                    "gradients of parameters of several stages", takes="an optimizer that treats parameters one by one",
                )  # fmt: skip

    def entry(self, held: Sequence[int], mine: Callable[[Tensor], Tensor]) -> Entry:
        """What a rank runs: it takes the gradients of the parameters that it holds, and writes their state.

        Args:
            held: the places of those parameters.
            mine: gives this rank's copy of a tensor.
        """
        program, bits = self.program, sum(1 << i for i in held)
        kept = [k for k, need in enumerate(self.needs) if need & ~bits == 0]
        outputs = [program.graph.outputs[program.n_outputs + k] for k in kept]
        written = [program.state_writes[k] for k in kept]
        count = len(self.parameters)
        grads = [program.graph.params[i] for i in held]
        graph, state = _sliced(program.graph, grads, program.graph.params[count:], outputs, written)
        captured = [mine(self.tensor(i)) for i in state]
        return Entry(
            graph, captured, [mine(self.tensor(i)) for i in written], [], tree.flatten(())[1], [], Guards(), (), 0.0,
            len(grads),
        )  # fmt: skip


def staged_update(optimizer: Any) -> Update:
    """Stage an optimizer's update of all its parameters."""
    parameters = tuple(optimizer.parameters)
    gradients = tuple([wrap(jax.ShapeDtypeStruct(p.shape, np.dtype(p.dtype.np))) for p in parameters])
    program = stage_program(optimizer, (gradients,), "pipeline")
    if any(spec.kind == RANDOM for spec in program.state):
        raise UnsupportedError("pipeline", "optimizer", got="one that draws random numbers", takes="one that does not")
    graph = program.graph
    known: dict[Value, int] = {v: 1 << i for i, v in enumerate(graph.params[: len(parameters)])}
    for node in graph.nodes:
        bits = 0
        for v in node.inputs:
            bits |= known.get(v, 0)
        known.update(dict.fromkeys(node.outputs, bits))
    first = program.n_outputs
    needs = [known.get(graph.outputs[first + k], 0) for k in range(len(program.state_writes))]
    return Update(program, parameters, needs)


def _sliced(
    graph: Graph, grads: Sequence[Value], state: Sequence[Value], outputs: Sequence[Value], written: Sequence[int]
) -> tuple[Graph, list[int]]:
    """The part of a graph that outputs need, and which state it takes: what it reads and what it writes."""
    wanted: set[Node] = {v.node for v in outputs if v.node is not None}
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if node in wanted or (has_effects(node) and not node.outputs):
            nodes.append(node)
            wanted.update(v.node for v in node.inputs if v.node is not None)
    used = {v for n in nodes for v in n.inputs} | set(outputs)
    kept = [i for i, v in enumerate(state) if v in used or i in written]
    made = Graph("update")
    env = {v: made.add_param(v.type) for v in grads}
    env.update((state[i], made.add_param(state[i].type)) for i in kept)
    for node in reversed(nodes):
        new = copy_node(made, node, tuple([env[v] for v in node.inputs]))
        env.update(zip(node.outputs, new.outputs, strict=True))
    made.outputs = [env[v] for v in outputs]
    return made, kept
