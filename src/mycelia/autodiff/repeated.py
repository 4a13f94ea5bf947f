"""Backward passes that repeat: one compiled program instead of rules run one by one.

A training loop records the same steps each time. A tape's *structure* is which operators with which attributes stand
in which order, how they are wired, the types of what comes from outside, and which gradients are asked for. When a
structure is met for the third time, the rules are staged into one graph, whose inputs are the recorded arrays that the
rules read, and compiled; from then on a backward pass is one call. A *cold* tape, many of whose operators had to be
compiled just before, is compiled at once: its rules would have to be as well, one by one, which takes longer. Programs
whose structure changes from step to step keep the way through the rules, and are looked at ever more rarely.

Whatever is not plain operators stays with the rules: hooks, steps that are not one primitive (a Cell with its own
``bprop``, a compiled function), operators with effects, and gradients that are themselves differentiated.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from mycelia.core.dtypes import _BY_NP
from mycelia.core.errors import MyceliaError, SourceLocation
from mycelia.ir.builder import Builder
from mycelia.ir.graph import Graph
from mycelia.ir.types import TensorType
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import value_in_graph
from mycelia.tensor.mode import staging, state
from mycelia.tensor.tape import TapeNode
from mycelia.tensor.tensor import linked, wrap

#: Where an input of the compiled program comes from: the cotangent of output ``i`` (None), value ``j`` of step ``i``
#: (``j >= 0``), or the array that step ``i`` took as its input ``-1 - j``.
Source = tuple[int, int | None]
#: A compiled program: arrays to arrays.
Program = Callable[[Sequence[Any]], list[Any]]
#: Compiles a graph: the places of the parameters it reads, and the program that takes them.
Compiler = Callable[[Graph], tuple[list[int], Program]]
#: The "file" of locations in a compiled backward pass, whose "line" is the place of the step that is differentiated.
STEP = "<step of a tape>"
#: The walk through the rules: nodes, leaves, cotangents of nodes' outputs, operands of a node -> gradients of leaves.
Walk = Callable[..., dict[TapeNode, Tensor | None]]

_compile: Compiler | None = None


def set_compiler(compiler: Compiler) -> None:
    """Install what compiles a graph (the compiler does, on import)."""
    global _compile
    _compile = compiler


#: A structure is compiled when it is met for this time.
COMPILED_AT = 3
#: A tape is cold if one of so many of its steps, or more, had to be compiled.
COLD = 4
#: Tapes of fewer steps are left alone: a program saves nothing there.
FEWEST_STEPS = 3
#: So many structures are remembered.
_REMEMBERED = 128
#: After so many new structures one after another, tapes are looked at more rarely.
_PATIENCE = 8
#: But at least one in so many.
_RAREST = 64


class _Compiled:
    """The backward pass of one structure."""

    __slots__ = ("leaves", "program", "sources")

    def __init__(self, program: Program, sources: list[Source], leaves: list[bool]) -> None:
        self.program, self.sources, self.leaves = program, sources, leaves

    def run(self, nodes: list[TapeNode], cts: Sequence[Tensor]) -> list[Tensor | None]:
        arrays = []
        for i, j in self.sources:
            if j is None:
                arrays.append(cts[i]._value)
            elif j >= 0:
                arrays.append(nodes[i].values[j])
            else:
                arrays.append(nodes[i].links[-1 - j][0])
        made = iter(self.program(arrays))
        return [wrap(next(made)) if found else None for found in self.leaves]


class Repeated(threading.local):
    """What a thread knows of the structures it met: how often it met them, or their program.

    Attributes:
        enabled: whether anything is compiled; whoever watches may want the rules to run one by one.
    """

    enabled = True

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Any, ...], int | _Compiled | None] = OrderedDict()
        self._new = 0  # structures that were new, one after another
        self._skip = 0  # tapes that are not looked at from here on

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()
        self._new = self._skip = 0

    def gradients(
        self, walk: Walk, nodes: list[TapeNode], leaves: Sequence[TapeNode], pairs: list[tuple[Tensor, Tensor]]
    ) -> list[Tensor | None] | None:
        """The gradients of ``leaves`` by a compiled program, or None if the rules have to be run one by one.

        Args:
            walk: runs the rules one by one.
            nodes: the steps from the leaves to the outputs, in order.
            leaves: what is differentiated against.
            pairs: outputs with their cotangents.
        """
        steps = len(nodes) - len(leaves)
        if _compile is None or not self.enabled or steps < FEWEST_STEPS:
            return None
        cold = (state.programs - state.programs_before) * COLD >= steps
        if self._skip and not cold:
            self._skip -= 1
            return None
        key = _structure(nodes, leaves, pairs)
        if key is None:
            return None
        known = self._known.get(key, 0)
        if type(known) is int:
            self._count(key, known)
            if known + 1 < COMPILED_AT and not cold:
                return None
            known = self._known[key] = _compiled(walk, nodes, leaves, pairs)
        else:
            self._known.move_to_end(key)
            self._new = 0
        if not isinstance(known, _Compiled):
            return None
        try:
            return known.run(nodes, [ct for _, ct in pairs])
        except (RuntimeError, ValueError):  # a recorded array was given away, say: the rules tell which, in our words
            return None

    def _count(self, key: tuple[Any, ...], times: int) -> None:
        self._known[key] = times + 1
        self._known.move_to_end(key)
        if times:
            self._new = 0
            return
        self._new += 1
        if self._new >= _PATIENCE:
            self._skip = min(_RAREST, 1 << (self._new - _PATIENCE))
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def _structure(
    nodes: list[TapeNode], leaves: Sequence[TapeNode], pairs: list[tuple[Tensor, Tensor]]
) -> tuple[Any, ...] | None:
    """What tells tapes apart; None for one that is not plain operators."""
    wanted = {node: i for i, node in enumerate(leaves)}
    place: dict[TapeNode | None, int] = {}
    parts: list[Any] = []
    add = parts.append
    for i, node in enumerate(nodes):
        if node.hooks:
            return None
        place[node] = i
        if node in wanted:
            value = node.values[0]
            parts += (wanted[node], value.shape, value.dtype.num)
            continue
        op = node.op
        if op is None:
            if node.pullback is not None:
                return None
            add(None)  # where a gradient inside this one began: passed on
        elif node.key is None or op.effects:
            return None
        else:
            add(op)
            add(node.key)
        for array, parent, slot in node.links:
            at = place.get(parent, -1)
            if at < 0:
                parts += (-1, array.shape, array.dtype.num)
            elif nodes[at].values[slot] is array:
                parts += (at, slot)
            else:  # the tensor was given another value behind the tape's back
                parts += (-2, at, slot, array.shape, array.dtype.num)
    for output, _ in pairs:
        parts += (place.get(output._node, -1), output._slot)
    add(len(leaves))
    return tuple(parts)


def _compiled(
    walk: Walk, nodes: list[TapeNode], leaves: Sequence[TapeNode], pairs: list[tuple[Tensor, Tensor]]
) -> _Compiled | None:
    """The backward pass as one program; None if the rules cannot be staged."""
    assert _compile is not None
    builder = Builder("backward")
    sources: list[Source] = []

    def input_of(array: Any, source: Source) -> Tensor:
        sources.append(source)
        return wrap(builder.param(TensorType(_BY_NP[array.dtype], array.shape)))

    made: dict[TapeNode, tuple[Tensor, ...]] = {}
    operands: dict[TapeNode, tuple[Tensor, ...]] = {}
    for i, node in enumerate(nodes):
        taken = []
        for j, (array, parent, slot) in enumerate(node.links):
            if parent is not None and parent in made and parent.values[slot] is array:
                value = made[parent][slot]._value
            else:
                value = input_of(array, (i, -1 - j))._value
            taken.append(linked(value, parent, slot))
        operands[node] = tuple(taken)
        made[node] = tuple([input_of(v, (i, j)) for j, v in enumerate(node.values)])
    cts = [(output, input_of(ct._value, (i, None))) for i, (output, ct) in enumerate(pairs)]
    place = {node: i for i, node in enumerate(nodes)}

    def operands_of(node: TapeNode) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        builder.location = SourceLocation(STEP, place[node], "backward")
        return operands[node], made[node]

    try:
        with staging(builder):
            found = walk(nodes, set(leaves), cts, operands_of)
            grads = [found.get(node) for node in leaves]
            graph = builder.finish([value_in_graph(g) for g in grads if g is not None])
    except MyceliaError:  # a rule that asks for a value, or has none: the rules themselves will say so
        return None
    if builder.captured or builder.written or not graph.outputs:
        return None
    read, program = _compile(graph)
    return _Compiled(program, [sources[i] for i in read], [g is not None for g in grads])


#: The structures met so far.
repeated = Repeated()
