"""bfloat16 from one product to the next.

Mixed precision casts to bfloat16 before products and convolutions and back behind them, so that what stands between
them is computed in float32, and reads and writes twice the bytes. Where a value comes from bfloat16 and goes to
bfloat16 again, the operators in between (``THROUGH``) take and give bfloat16: they compute in float32 all the same, and
keep statistics and parameters in it, but what they pass on is rounded. That is what other frameworks' mixed precision
does with these operators. Sums with a float32 operand, such as the residual stream of a transformer, stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from mycelia.compiler.passes.per_graph import Attributes, PerGraph
from mycelia.core import dtypes as dt
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.primitive import primitive_named
from mycelia.ir.rewriter import copy_node


@dataclass(frozen=True)
class Through:
    """An operator that may be given bfloat16.

    Attributes:
        data: the operands that are data; the others are parameters or statistics.
        results: how many results are data, the first ones.
        any_is_enough: whether one operand from bfloat16 is enough to round the others.
    """

    data: tuple[int, ...]
    results: int = 1
    any_is_enough: bool = False


#: The operators, by name.
THROUGH = {
    "batch_norm": Through((0,)), "batch_norm_grad": Through((0, 1), any_is_enough=True),
    "batch_norm_inference": Through((0,)), "relu": Through((0,)), "relu_grad": Through((0, 1), any_is_enough=True),
    "add": Through((0, 1)), "max_pool": Through((0,)), "max_pool_grad": Through((0, 1, 2), any_is_enough=True),
    "reshape": Through((0,)), "transpose": Through((0,)), "layer_norm": Through((0,)),
    "layer_norm_grad": Through((0, 1)), "gelu": Through((0,)),
}  # fmt: skip


def _is_cast(node: Node, source: dt.DType, to: dt.DType) -> bool:
    return node.op.name == "cast" and node.inputs[0].type.dtype is source and node.outputs[0].type.dtype is to


def _data(node: Node) -> tuple[Value, ...]:
    """The data operands of an operator that is in float32 and may be in bfloat16; nothing of any other node."""
    through = THROUGH.get(node.op.name)
    if through is None:
        return ()
    found = tuple([node.inputs[i] for i in through.data])
    return found if all(v.type.dtype is dt.float32 for v in found) else ()


def _passed_on(node: Node) -> tuple[Value, ...]:
    """The results of such an operator that are data."""
    return node.outputs[: THROUGH[node.op.name].results]


def _narrowed(graph: Graph) -> set[Node]:
    """The operators that are given bfloat16."""
    wanted: set[Value] = set()
    for node in reversed(graph.nodes):
        if _is_cast(node, dt.float32, dt.bfloat16):
            wanted.add(node.inputs[0])
            continue
        data = _data(node)
        if data and any(v in wanted for v in _passed_on(node)):
            wanted.update(data)
    half: set[Value] = set()
    found: set[Node] = set()
    for node in graph.nodes:
        if _is_cast(node, dt.bfloat16, dt.float32):
            half.update(node.outputs)
            continue
        data = _data(node)
        if not data or not any(v in wanted for v in _passed_on(node)):
            continue
        enough = any if THROUGH[node.op.name].any_is_enough else all
        if enough(v in half for v in data):
            found.add(node)
            half.update(_passed_on(node))
    return found


class _Writer:
    """Copies a graph; each value is known as it was, in bfloat16, or both."""

    def __init__(self, graph: Graph) -> None:
        self.graph = Graph(graph.name)
        self.given: dict[Value, Value] = {p: self.graph.add_param(p.type) for p in graph.params}
        self.half: dict[Value, Value] = {}

    def _cast(self, value: Value, to: dt.DType, node: Node) -> Value:
        return self.graph.add_node(primitive_named("cast"), (value,), {"dtype": to}, node.location).outputs[0]

    def as_it_was(self, value: Value, node: Node) -> Value:
        """A value in its own dtype."""
        if value not in self.given:
            self.given[value] = self._cast(self.half[value], value.type.dtype, node)
        return self.given[value]

    def in_half(self, value: Value, node: Node) -> Value:
        """A value in bfloat16."""
        if value not in self.half:
            self.half[value] = self._cast(self.given[value], dt.bfloat16, node)
        return self.half[value]

    def copy(self, node: Node, attrs: Attributes) -> None:
        """A node as it was; casts to and from bfloat16 only say what is known."""
        if _is_cast(node, dt.float32, dt.bfloat16):
            self.given[node.outputs[0]] = self.in_half(node.inputs[0], node)
            return
        if _is_cast(node, dt.bfloat16, dt.float32):
            self.half[node.outputs[0]] = self.as_it_was(node.inputs[0], node)
            return
        inputs = tuple([self.as_it_was(v, node) for v in node.inputs])
        made = copy_node(self.graph, node, inputs, attrs.get(node, node.attrs))
        self.given.update(zip(node.outputs, made.outputs, strict=True))

    def narrow(self, node: Node) -> None:
        """A node on bfloat16."""
        through = THROUGH[node.op.name]
        inputs = tuple(
            [self.in_half(v, node) if i in through.data else self.as_it_was(v, node) for i, v in enumerate(node.inputs)]
        )
        made = self.graph.add_node(node.op, inputs, node.attrs, node.location)
        for i, (old, new) in enumerate(zip(node.outputs, made.outputs, strict=True)):
            (self.half if i < through.results else self.given)[old] = new


class _Run(PerGraph):
    def remade(self, graph: Graph, attrs: Attributes) -> Graph | None:
        if not any(_is_cast(node, dt.float32, dt.bfloat16) for node in graph.nodes):
            return None
        narrowed = _narrowed(graph)
        if not narrowed:
            return None
        writer = _Writer(graph)
        for node in graph.nodes:
            if node in narrowed:
                writer.narrow(node)
                self.changes += 1
            else:
                writer.copy(node, attrs)
        end = graph.nodes[-1]
        writer.graph.outputs = [writer.as_it_was(v, end) for v in graph.outputs]
        return writer.graph


def run(graph: Graph) -> tuple[Graph, int]:
    """Keep bfloat16 between products; the number of changes is that of the operators that are given it.

    >>> from mycelia.ir.parser import parse_graph
    >>> graph = parse_graph('''graph main(%0: bfloat16[4]) {
    ...   %1 = cast(%0, dtype=float32) : float32[4]
    ...   %2 = relu(%1) : float32[4]
    ...   %3 = cast(%2, dtype=bfloat16) : bfloat16[4]
    ...   return %3
    ... }''')
    >>> new, changes = run(graph)
    >>> changes, [node.op.name for node in new.nodes]
    (1, ['relu'])
    """
    here = _Run()
    made = here.graph(graph)
    return made, here.changes
