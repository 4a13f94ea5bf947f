"""What depends on parameters alone is computed once, not at each run.

A network that is only used, not trained, reads the same parameters again and again: casts of weights to bfloat16,
stacks of weights for a loop, gains of normalizations, and the layout that a library wants weights in are the same each
time. When a compiled function has met the same arrays for some runs, its graph is divided: one program makes all that
from the parameters, another one does the rest. A parameter that gets another array is noticed, since it is looked at
before each run; the whole program runs then, until the new arrays have been the same for some runs as well.

Arrays are watched by weak references: nothing is held that a training step would have to copy.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from mycelia.compiler.executable import Executable
from mycelia.core import ranges
from mycelia.ir.evaluate import evaluate
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.primitive import Primitive
from mycelia.ir.rewriter import copy_node, has_effects

#: After so many runs on the same arrays the graph is divided.
PATIENCE = 3
#: What is prepared has at least so many bytes.
FEWEST_BYTES = 64 << 10


@dataclass(frozen=True)
class Packing:
    """How an operand is put into a form that only one operator reads.

    Attributes:
        operand: which operand.
        op: makes the form of it, with ``attrs``.
        attrs: see above.
        taker: takes the place of the operator, with ``taker_attrs``.
        taker_attrs: see above.
    """

    operand: int
    op: Primitive
    attrs: Mapping[str, Any]
    taker: Primitive
    taker_attrs: Mapping[str, Any]


Packer = Callable[[Node], "Packing | None"]

#: What may be packed, by the name of the operator that takes it; whoever has kernels adds to it.
PACKERS: dict[str, Packer] = {}


def add_packer(name: str, packer: Packer) -> None:
    """Ask ``packer`` about nodes of the operator ``name`` with an operand that stays the same."""
    PACKERS[name] = packer


@dataclass(frozen=True)
class Divided:
    """A graph in two.

    Attributes:
        prepare: from the parameters ``taken`` to what the other one takes last.
        main: from the parameters ``given`` and that to the outputs.
        taken: places of parameters.
        given: places of parameters.
    """

    prepare: Graph
    main: Graph
    taken: tuple[int, ...]
    given: tuple[int, ...]


def divided(graph: Graph, steady: Sequence[int]) -> Divided | None:
    """Divide a graph by the parameters that stay the same; None if there is nothing worth it.

    >>> from mycelia.ir.parser import parse_graph
    >>> graph = parse_graph('''graph g(%x: bfloat16[4,256], %w: float32[256,256]) {
    ...   %0 = cast(%w, dtype=bfloat16) : bfloat16[256,256]
    ...   %1 = matmul(%x, %0, transpose_a=False, transpose_b=False) : bfloat16[4,256]
    ...   return %1
    ... }''')
    >>> found = divided(graph, [1])
    >>> [n.op.name for n in found.prepare.nodes], [n.op.name for n in found.main.nodes]
    (['cast'], ['matmul'])
    """
    fixed = {graph.params[i] for i in steady}
    constants: set[Value] = set()
    early: set[Node] = set()
    for node in graph.nodes:
        if node.op.name == "constant":
            constants.update(node.outputs)
        elif _may_be_early(node, fixed, constants):
            early.add(node)
            fixed.update(node.outputs)
    packings = {node: found for node in graph.nodes if node not in early and (found := _packing(node, fixed))}
    late = [node for node in graph.nodes if node not in early]
    needed: dict[Value, None] = {}
    for node in late:
        packed = packings[node].operand if node in packings else -1
        needed.update((v, None) for i, v in enumerate(node.inputs) if i != packed)
    needed.update((v, None) for v in graph.outputs)
    passed = [v for v in needed if v in fixed and v.node is not None]
    size = sum(v.type.nbytes for v in passed)
    size += sum(node.inputs[p.operand].type.nbytes for node, p in packings.items())
    if size < FEWEST_BYTES:
        return None

    wanted = [*passed, *[node.inputs[p.operand] for node, p in packings.items()]]
    taken = [i for i in steady if graph.params[i] in _reached(wanted)]
    prepare = Graph(f"{graph.name}_prepare")
    env = {graph.params[i]: prepare.add_param(graph.params[i].type) for i in taken}
    _copy(prepare, env, [n for n in graph.nodes if n in early or n.op.name == "constant"], wanted)
    prepare.outputs = [env[v] for v in passed]
    for node, p in packings.items():
        made = prepare.add_node(p.op, (env[node.inputs[p.operand]],), dict(p.attrs), node.location)
        prepare.outputs.append(made.outputs[0])

    given = [i for i, p in enumerate(graph.params) if p in needed]
    main = Graph(graph.name)
    env = {graph.params[i]: main.add_param(graph.params[i].type) for i in given}
    env.update((v, main.add_param(v.type)) for v in passed)
    forms = {node: main.add_param(v.type) for node, v in zip(packings, prepare.outputs[len(passed) :], strict=True)}
    for node in late:
        if node in packings:
            p = packings[node]
            inputs = tuple([forms[node] if i == p.operand else env[v] for i, v in enumerate(node.inputs)])
            made = main.add_node(p.taker, inputs, dict(p.taker_attrs), node.location)
        else:
            made = copy_node(main, node, tuple([env[v] for v in node.inputs]))
        env.update(zip(node.outputs, made.outputs, strict=True))
    main.outputs = [env[v] for v in graph.outputs]
    return Divided(prepare, main, tuple(taken), tuple(given))


def _may_be_early(node: Node, fixed: set[Value], constants: set[Value]) -> bool:
    """Whether a node depends on what stays the same alone, and makes no more bytes of it."""
    if not any(v in fixed for v in node.inputs) or has_effects(node):
        return False
    if not all(v in fixed or v in constants for v in node.inputs):
        return False
    return sum(v.type.nbytes for v in node.outputs) <= sum(v.type.nbytes for v in node.inputs)


def _packing(node: Node, fixed: set[Value]) -> Packing | None:
    packer = PACKERS.get(node.op.name)
    found = None if packer is None else packer(node)
    return found if found is not None and node.inputs[found.operand] in fixed else None


def _reached(values: Sequence[Value]) -> set[Value]:
    """Values and all they are made of."""
    found: set[Value] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if value not in found:
            found.add(value)
            waiting.extend(() if value.node is None else value.node.inputs)
    return found


def _copy(graph: Graph, env: dict[Value, Value], nodes: Sequence[Node], wanted: Sequence[Value]) -> None:
    """Copy those of the nodes that what is wanted is made of."""
    reached = _reached(wanted)
    for node in nodes:
        if any(v in reached for v in node.outputs):
            made = copy_node(graph, node, tuple([env[v] for v in node.inputs]))
            env.update(zip(node.outputs, made.outputs, strict=True))


class Prepared:
    """An executable whose inputs ``steady`` are parameters that seldom change; it gives nothing away."""

    def __init__(self, whole: Executable, steady: Sequence[int]) -> None:
        assert not whole.donated, "an executable that gives inputs away changes them at each run"
        self.whole = whole
        self._steady = tuple(steady)
        self._seen: list[weakref.ref[Any]] = []
        self._runs = 0
        self._made: list[Any] | None = None
        self._divided: Divided | None = None
        self._asked = False
        self._prepare: Any = None
        self._main: Any = None

    def __call__(self, arrays: list[Any]) -> list[Any]:
        """Run on one array for each parameter of the graph."""
        if not self._steady or ranges.watched():  # a profiler tells the parts of the whole program
            return self.whole(arrays)
        if not self._same(arrays):
            self._made, self._runs = None, 1
            self._seen = [weakref.ref(arrays[i]) for i in self._steady]
            return self.whole(arrays)
        if self._made is None:
            self._runs += 1
            if self._runs <= PATIENCE or not self._divide():
                return self.whole(arrays)
            assert self._divided is not None
            self._made = list(self._prepare(*[arrays[i] for i in self._divided.taken]))
        assert self._divided is not None
        out: list[Any] = self._main(*[arrays[i] for i in self._divided.given], *self._made)
        return out

    def _same(self, arrays: list[Any]) -> bool:
        if not self._seen:
            return False
        return all([ref() is arrays[i] for ref, i in zip(self._seen, self._steady, strict=True)])

    def _divide(self) -> bool:
        """Divide the graph when that is first asked for; whether that was worth it."""
        if not self._asked:
            self._asked = True
            self._divided = found = divided(self.whole.program, self._steady)
            if found is None:
                self._steady = ()  # nothing is looked at any more
                return False
            numbers = len(self.whole.graph.params)  # behind them stand numbers that the program is always given
            extra = [self.whole.given[i - numbers] for i in found.given if i >= numbers]
            given = tuple([i for i in found.given if i < numbers])
            self._divided = Divided(found.prepare, found.main, found.taken, given)
            self._prepare = jax.jit(lambda *a: evaluate(found.prepare, a))
            n = len(given)
            main = jax.jit(lambda *a: evaluate(found.main, a))
            self._main = (lambda *a: main(*a[:n], *extra, *a[n:])) if extra else main
        return self._divided is not None
