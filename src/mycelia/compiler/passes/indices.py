"""Parts of a stacked value taken by an index that the program does not know.

XLA's CPU compiler makes one kernel for all equal fusions, but a slice at a fixed place makes every fusion that
reads it different: taking 48 layers' gradients out of one stacked array and updating with them compiles hundreds of
kernels instead of a dozen. So a wide ``unstack`` becomes slices whose starts are inputs of the executable: the
number i is always passed for input i, and the kernels are equal.

The last thing done to a graph; it adds parameters, so it is not one of the passes that keep the signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.core import dtypes as dt
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.primitive import primitive_named
from mycelia.ir.rewriter import Emitter, rewrite
from mycelia.ir.types import TensorType

#: The fewest parts that are worth inputs of their own.
LEAST_PARTS = 16

_INDEX = TensorType(dt.uint32, ())


def run(graph: Graph) -> tuple[Graph, int]:
    """The graph with ``n`` more parameters, to be given the numbers 0 to n - 1 as uint32, and ``n``."""
    wide = [n for n in graph.nodes if n.op.name == "unstack" and len(n.outputs) >= LEAST_PARTS]
    if not wide:
        return graph, 0
    count = max(len(n.outputs) for n in wide)
    extended = Graph(graph.name)
    extended.params, extended.nodes, extended.outputs = list(graph.params), graph.nodes, graph.outputs
    extended.params += [Value(_INDEX, extended) for _ in range(count)]
    dynamic_slice = primitive_named("dynamic_slice")

    def visit(node: Node, inputs: tuple[Value, ...], attrs: dict[str, Any], emitter: Emitter) -> Sequence[Value] | None:
        if len(node.outputs) < LEAST_PARTS:
            return None
        where = {"axes": (attrs["axis"],), "sizes": (1,), "steps": (1,), "drop": (attrs["axis"],)}
        indices = emitter.graph.params[-count:]
        return [
            emitter.add(dynamic_slice, (inputs[0], indices[i]), where)[0] for i in range(len(node.outputs))
        ]  # fmt: skip

    return rewrite(extended, visit, only=("unstack",), recurse=False)[0], count
