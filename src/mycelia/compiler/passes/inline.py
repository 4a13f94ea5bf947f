"""Inline: put the body of a called graph in the place of the call.

A call is inlined if the called graph is small or is used nowhere else. Graphs are visited from the inside
out, so what is inlined is already inlined itself, and a graph grows by at most ``SMALL`` nodes for each call
in it. The passes run when a graph is about to be executed, after differentiation; so a ``custom_vjp_call``
becomes a call like any other. A call that is to stay ``apart`` (recomputation) stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.primitive import primitive_named
from mycelia.ir.rewriter import Emitter, graph_uses, rewrite

#: A graph of at most this many nodes (those of sub-graphs included) is inlined wherever it is called.
SMALL = 16


def run(graph: Graph) -> tuple[Graph, int]:
    """Inline calls of small graphs and of graphs that are used once."""
    call_p = primitive_named("call")
    uses = graph_uses(graph)
    sizes: dict[Graph, int] = {}

    def visit(node: Node, inputs: tuple[Value, ...], attrs: dict[str, Any], emitter: Emitter) -> Sequence[Value] | None:
        called: Graph = attrs["graph"]
        if attrs.get("apart"):
            return None
        if uses[node.attrs["graph"]] > 1 and _size(called, sizes) > SMALL:
            return None if node.op is call_p else emitter.add(call_p, inputs, {"graph": called})
        return emitter.inline(called, inputs)

    return rewrite(graph, visit, only=("call", "custom_vjp_call"))


def _size(graph: Graph, sizes: dict[Graph, int]) -> int:
    """Number of nodes below a graph, counted at every place a sub-graph is held."""
    found = sizes.get(graph)
    if found is None:
        found = sum(1 + sum(_size(held, sizes) for _, held in node.subgraphs) for node in graph.nodes)
        sizes[graph] = found
    return found
