"""Several operators as one call of a kernel: fusion for the libraries of the device in use.

Whoever has kernels (``native``) adds rules here: the operator that a pattern is recognized by, and a function that
looks at such a node and says what is to be put in its place. The kernel's operators carry a ``lower`` in ``jax.lax``
as well, so that a graph means the same wherever it runs.

What is put there computes values that other nodes of the pattern make, earlier or later ones: it takes the place of the
node that was looked at, so whatever it needs has to be there by then, and the nodes that it covers go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mycelia.compiler.passes.per_graph import Attributes, PerGraph
from mycelia.core import dtypes as dt
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.primitive import Primitive
from mycelia.ir.rewriter import copy_node


@dataclass(frozen=True)
class Fusion:
    """What takes the place of a node.

    Attributes:
        op: the operator that computes the values instead.
        inputs: its inputs, values of the graph as it was.
        attrs: its attributes.
        results: for each of its outputs the value of the graph as it was that it stands for, None if for none.
        covers: the nodes that go; what they made is used by each other alone, or is among ``results``.
    """

    op: Primitive
    inputs: tuple[Value, ...]
    attrs: Mapping[str, Any]
    results: tuple[Value | None, ...]
    covers: tuple[Node, ...]


class Uses:
    """Who uses each value of a graph, and in which order nodes come."""

    def __init__(self, graph: Graph) -> None:
        self._users: dict[Value, list[Node]] = {}
        self._outputs = set(graph.outputs)
        self._places = {node: i for i, node in enumerate(graph.nodes)}
        for node in graph.nodes:
            for value in dict.fromkeys(node.inputs):
                self._users.setdefault(value, []).append(node)

    def of(self, value: Value) -> list[Node]:
        """The nodes that take a value."""
        return self._users.get(value, [])

    def sole(self, value: Value) -> Node | None:
        """The node that alone takes a value; None if there are several, or the value is an output of the graph."""
        users = self.of(value)
        return users[0] if len(users) == 1 and value not in self._outputs else None

    def widened(self, value: Value) -> Node | None:
        """The node that alone takes a bfloat16 value, and casts it to float32."""
        user = self.sole(value)
        if user is None or user.op.name != "cast" or value.type.dtype is not dt.bfloat16:
            return None
        return user if user.outputs[0].type.dtype is dt.float32 else None

    def ready(self, value: Value, node: Node) -> bool:
        """Whether a value is there when it is the turn of ``node``."""
        return value.node is None or self._places[value.node] < self._places[node]

    def fits(self, fusion: Fusion, node: Node) -> bool:
        """Whether nothing is missing if ``fusion`` takes the place of ``node``."""
        if not all(self.ready(v, node) for v in fusion.inputs):
            return False
        made = {v for v in fusion.results if v is not None}
        for covered in fusion.covers:
            for value in covered.outputs:
                if value not in made and (
                    value in self._outputs or any(user not in fusion.covers for user in self.of(value))
                ):
                    return False
        # results are made at the place of `node`: nothing before it may use them, unless it goes too
        return all(
            user in fusion.covers or self._places[user] > self._places[node] for v in made for user in self.of(v)
        )

    def put(self, fusion: Fusion, node: Node) -> None:
        """Take note that ``fusion`` takes the place of ``node``: what it covers is made and used there from now on."""
        for covered in fusion.covers:
            self._places[covered] = self._places[node]


Rule = Callable[[Node, Uses], "Fusion | None"]

#: The rules by the name of the operator of the node that is looked at, in the order in which they are asked.
RULES: dict[str, list[Rule]] = {}


def add_rule(name: str, rule: Rule) -> None:
    """Ask ``rule`` about nodes of the operator ``name``."""
    RULES.setdefault(name, []).append(rule)


class _Run(PerGraph):
    """One run of the pass; the number of changes is that of the nodes that went into kernels."""

    def enters(self, node: Node) -> bool:
        """What is mapped has no kernels."""
        return node.op.name != "vmap"

    def remade(self, graph: Graph, attrs: Attributes) -> Graph | None:
        planned = self.planned(graph)
        if not planned:
            return None
        gone = {node for fusion in planned.values() for node in fusion.covers}
        new = Graph(graph.name)
        env: dict[Value, Value] = {p: new.add_param(p.type) for p in graph.params}
        for node in graph.nodes:
            fusion = planned.get(node)
            if fusion is not None:
                made = new.add_node(
                    fusion.op, tuple([env[v] for v in fusion.inputs]), dict(fusion.attrs), node.location
                )
                env.update((old, v) for old, v in zip(fusion.results, made.outputs, strict=True) if old is not None)
                self.changes += len(fusion.covers)
            elif node not in gone:
                made = copy_node(new, node, tuple([env[v] for v in node.inputs]), attrs.get(node, node.attrs))
                env.update(zip(node.outputs, made.outputs, strict=True))
        new.outputs = [env[v] for v in graph.outputs]
        return new

    def planned(self, graph: Graph) -> dict[Node, Fusion]:
        """What is put in the place of which node; no node goes twice."""
        found: dict[Node, Fusion] = {}
        if not any(node.op.name in RULES for node in graph.nodes):
            return found
        uses = Uses(graph)
        taken: set[Node] = set()
        for node in graph.nodes:
            for rule in RULES.get(node.op.name, ()):
                if node in taken:
                    break
                fusion = rule(node, uses)
                if fusion is not None and taken.isdisjoint(fusion.covers) and uses.fits(fusion, node):
                    found[node] = fusion
                    uses.put(fusion, node)
                    taken.update(fusion.covers)
        return found


def run(graph: Graph) -> tuple[Graph, int]:
    """Apply the rules; the number of changes is that of the nodes that went into kernels."""
    if not RULES:
        return graph, 0
    here = _Run()
    made = here.graph(graph)
    return made, here.changes
