"""Inputs that the program does not know the value of, so that XLA keeps apart what has to stay apart.

**Places.** XLA's CPU compiler makes one kernel for all equal fusions, but a slice at a fixed place makes every fusion
that reads it different: taking 48 layers' gradients out of one stacked array and updating with them compiles hundreds
of kernels instead of a dozen. So a wide ``unstack`` becomes slices whose starts are inputs of the executable: the
number i is always passed for input i, and the kernels are equal.

**Recomputation.** What is computed again to save memory must not be found to equal the first time. A barrier is not
enough: XLA's CPU compiler drops it before it merges equal operators. So a call marked ``apart`` becomes the branch of
a ``cond`` that is always taken, on a predicate that is an input.

The last thing done to a graph; it adds parameters, so it is not one of the passes that keep the signature. Sub-graphs
are left alone: a loop's body is compiled apart from the rest anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.primitive import Primitive, primitive_named
from mycelia.ir.rewriter import Emitter, rewrite
from mycelia.ir.types import TensorType


def _infer_part(x: TensorType, index: TensorType, *, axis: int) -> TensorType:
    return TensorType(x.dtype, x.shape[:axis] + x.shape[axis + 1 :])


def _lower_part(x: Any, index: Any, *, axis: int) -> Any:
    return lax.dynamic_index_in_dim(x, index, axis, keepdims=False)  # unsigned: nothing is counted from the end


#: The part of a value at an unsigned place along an axis. Never differentiated: it is made when all else is done.
_part_p = Primitive("part", infer=_infer_part, lower=_lower_part)

#: The fewest parts that are worth inputs of their own.
LEAST_PARTS = 16


def run(graph: Graph) -> tuple[Graph, list[np.generic]]:
    """The graph with more parameters at the end, and the numbers that they always are given."""
    parts = max((len(n.outputs) for n in graph.nodes if _is_wide(n)), default=0)
    calls = any(_is_apart(n) for n in graph.nodes)
    if not parts and not calls:
        return graph, []
    extended = Graph(graph.name)
    extended.params, extended.nodes, extended.outputs = list(graph.params), graph.nodes, graph.outputs
    extended.params += [Value(TensorType(dt.uint32, ()), extended) for _ in range(parts)]
    extended.params += [Value(TensorType(dt.bool_, ()), extended)] * calls
    first = len(graph.params)
    cond = primitive_named("cond")

    def visit(node: Node, inputs: tuple[Value, ...], attrs: dict[str, Any], emitter: Emitter) -> Sequence[Value] | None:
        if _is_wide(node):
            indices = emitter.graph.params[first : first + len(node.outputs)]
            return [emitter.add(_part_p, (inputs[0], i), attrs)[0] for i in indices]
        if _is_apart(node):
            branches = {"true_graph": attrs["graph"], "false_graph": _nothing(attrs["graph"])}
            return emitter.add(cond, (emitter.graph.params[-1], *inputs), branches)
        return None

    made, _ = rewrite(extended, visit, only=("unstack", "call"), recurse=False)
    return made, [*map(np.uint32, range(parts)), *[np.bool_(True)] * calls]


def _is_wide(node: Node) -> bool:
    return node.op.name == "unstack" and len(node.outputs) >= LEAST_PARTS


def _is_apart(node: Node) -> bool:
    return node.op.name == "call" and bool(node.attrs.get("apart"))


def _nothing(graph: Graph) -> Graph:
    """A graph of the same signature that gives zeros."""
    made = Graph(graph.name)
    emitter = Emitter(made)
    for type_ in graph.input_types:
        made.add_param(type_)
    made.outputs = [
        emitter.add(primitive_named("full"), (), {"shape": t.shape, "value": 0, "dtype": t.dtype})[0]
        for t in graph.output_types
    ]  # fmt: skip
    return made
