"""Common subexpressions: of nodes that compute the same, the first is kept.

Two nodes compute the same if operator, operands and attributes are equal; sub-graphs are compared by
structure. Walking in order, operands are already merged when a node is met, so whole equal expressions
collapse (value numbering). Operators with effects are left alone. Random operators are functions of their
key and merge like others. ``barrier`` never merges: it is there to keep two computations apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.rewriter import Emitter, attributes_key, has_effects, rewrite


def _visit(node: Node, inputs: tuple[Value, ...], attrs: dict[str, Any], emitter: Emitter) -> Sequence[Value] | None:
    if node.op.name == "barrier" or has_effects(node):
        return None
    key = (node.op, inputs, attributes_key(attrs))
    found: Sequence[Value] | None = emitter.table.get(key)
    if found is None:
        emitter.table[key] = found = emitter.keep()
    return found


def run(graph: Graph) -> tuple[Graph, int]:
    """Merge equal nodes within each graph; the number of changes is the number of nodes that went."""
    return rewrite(graph, _visit)
