"""What passes have in common that look at whole graphs: each graph is treated once, those inside others first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.rewriter import copy_node

Attributes = dict[Node, dict[str, Any]]


class PerGraph(ABC):
    """One run of a pass; a pass says in ``remade`` what becomes of a graph.

    Attributes:
        changes: how much was changed, counted by ``remade``.
    """

    def __init__(self) -> None:
        self.done: dict[Graph, Graph] = {}
        self.changes = 0

    @abstractmethod
    def remade(self, graph: Graph, attrs: Attributes) -> Graph | None:
        """What becomes of a graph, None if there is nothing to do; ``attrs`` are the nodes' attributes by now."""

    def enters(self, node: Node) -> bool:
        """Whether the graphs that a node holds are treated."""
        return True

    def graph(self, graph: Graph) -> Graph:
        """What became of a graph; the same one if nothing in it changed."""
        found = self.done.get(graph)
        if found is None:
            attrs = {node: self._attributes(node) for node in graph.nodes if node.attrs}
            found = self.remade(graph, attrs)
            if found is None:
                same = all(new is node.attrs for node, new in attrs.items())
                found = graph if same else _copied(graph, attrs)
            self.done[graph] = found
        return found

    def _attributes(self, node: Node) -> dict[str, Any]:
        """The attributes of a node, with the graphs among them as they became."""
        if not self.enters(node):
            return node.attrs
        new = {name: self.graph(held) for name, held in node.subgraphs}
        return {**node.attrs, **new} if any(held is not node.attrs[name] for name, held in new.items()) else node.attrs


def _copied(graph: Graph, attrs: Attributes) -> Graph:
    new = Graph(graph.name)
    env: dict[Value, Value] = {p: new.add_param(p.type) for p in graph.params}
    for node in graph.nodes:
        made = copy_node(new, node, tuple([env[v] for v in node.inputs]), attrs.get(node, node.attrs))
        env.update(zip(node.outputs, made.outputs, strict=True))
    new.outputs = [env[v] for v in graph.outputs]
    return new
