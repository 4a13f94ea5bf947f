"""What the compiler did to a graph and what running it costs, as data and as text.

Costs are estimates from the types alone. Floating-point operations: a product of matrices or a convolution
counts a multiplication and an addition for each term of its sums, moving elements counts nothing, and
anything else one for each element of its largest operand or result. Bytes: operands read and results
written by each node, before XLA fuses. A ``cond`` counts as its dearer branch, a ``scan`` its body times the
length; of a ``while_loop``, whose rounds are not known, one round is counted and the report says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

from mycelia.compiler.phases import Phases
from mycelia.ir.graph import Graph, Node
from mycelia.ir.rewriter import all_graphs
from mycelia.ir.types import TensorType


@dataclass(frozen=True)
class PassReport:
    """One run of one pass: its name, the round, nodes before and after, what it counts as changes, seconds."""

    name: str
    round: int
    nodes_before: int
    nodes_after: int
    changes: int
    seconds: float


@dataclass(frozen=True)
class OpCost:
    """How often an operator runs, its floating-point operations, and the bytes it reads and writes."""

    count: int = 0
    flops: int = 0
    bytes: int = 0

    def __add__(self, other: OpCost) -> OpCost:
        return OpCost(self.count + other.count, self.flops + other.flops, self.bytes + other.bytes)

    def times(self, n: int) -> OpCost:
        """The cost of ``n`` runs."""
        return OpCost(self.count * n, self.flops * n, self.bytes * n)


@dataclass(frozen=True)
class GraphCost:
    """The cost of one run of a graph, by operator; ``open_loops`` loops of unknown length counted once."""

    by_operator: dict[str, OpCost] = field(default_factory=dict)
    open_loops: int = 0

    @property
    def flops(self) -> int:
        """Floating-point operations of all operators."""
        return sum(c.flops for c in self.by_operator.values())

    @property
    def bytes(self) -> int:
        """Bytes read and written by all operators."""
        return sum(c.bytes for c in self.by_operator.values())

    def __add__(self, other: GraphCost) -> GraphCost:
        merged = dict(self.by_operator)
        for name, cost in other.by_operator.items():
            merged[name] = merged.get(name, OpCost()) + cost
        return GraphCost(merged, self.open_loops + other.open_loops)

    def times(self, n: int) -> GraphCost:
        """The cost of ``n`` runs."""
        return GraphCost({name: c.times(n) for name, c in self.by_operator.items()}, self.open_loops)


@dataclass
class CompileReport:
    """What was done to a graph on its way to an executable.

    Attributes:
        name: the name of the graph.
        passes: the runs of the passes, in order.
        cost: the estimated cost of the optimized graph.
        operators: how often each operator stands in the graph before and after the passes.
        peak_bytes: the most memory a run uses at once (inputs, outputs and what is in between), if it is known.
        value_bytes: the memory of all values together if none were reused, in bytes.
        phases: where the time of compiling went, if it is known.
    """

    name: str = "main"
    passes: list[PassReport] = field(default_factory=list)
    cost: GraphCost | None = None
    operators: dict[str, tuple[int, int]] = field(default_factory=dict)
    peak_bytes: int | None = None
    value_bytes: int | None = None
    phases: Phases | None = None

    @property
    def pass_seconds(self) -> float:
        """Seconds spent in the passes."""
        return sum(p.seconds for p in self.passes)

    def render(self) -> str:
        """The report as plain text of aligned columns."""
        lines = [f"graph {self.name}"]
        if self.passes:
            first, last = self.passes[0], self.passes[-1]
            lines += [f"nodes: {first.nodes_before:,} -> {last.nodes_after:,}", ""]
            shown = [p for p in self.passes if p.changes or p.round == 1]
            rows = [
                [
                    p.name,
                    f"{p.round}",
                    f"{p.nodes_before:,}",
                    f"{p.nodes_after:,}",
                    f"{p.changes:,}",
                    _seconds(p.seconds),
                ]
                for p in shown
            ]
            lines += _table(["pass", "round", "before", "after", "changes", "time"], rows)
            lines.append(f"passes in all: {_seconds(self.pass_seconds)}")
        if self.cost is not None:
            lines += ["", *self._cost_lines(self.cost)]
        if self.peak_bytes is not None:
            lines.append(f"peak memory: {_bytes(self.peak_bytes)}")
            if self.value_bytes:
                lines[-1] += f", {self.peak_bytes / self.value_bytes:.1%} of all values ({_bytes(self.value_bytes)})"
        if self.phases is not None:
            lines.append(_phase_line(self.phases))
        return "\n".join(lines)

    def _cost_lines(self, cost: GraphCost) -> list[str]:
        names = {**cost.by_operator, **dict.fromkeys(set(self.operators) - set(cost.by_operator), OpCost())}
        ranked = sorted(names.items(), key=lambda item: (-item[1].flops, -item[1].bytes, item[0]))
        rows = [
            [
                name,
                *(f"{n:,}" for n in self.operators.get(name, (0, 0))),
                f"{c.count:,}",
                _scaled(c.flops),
                _bytes(c.bytes),
            ]
            for name, c in ranked
        ]
        head = ["operator", "before", "after", "runs", "flops", "bytes"]
        if not self.operators:
            head, rows = [head[0], *head[3:]], [[row[0], *row[3:]] for row in rows]
        lines = _table(head, rows)
        lines.append(f"one run: {_scaled(cost.flops)} flops, {_bytes(cost.bytes)} read and written")
        if cost.open_loops:
            lines.append(f"{cost.open_loops} loop(s) of unknown length are counted as one round")
        return lines

    def __str__(self) -> str:
        return self.render()


def _phase_line(phases: Phases) -> str:
    parts = [("stage", phases.stage), ("passes", phases.passes), ("trace", phases.trace), ("lower", phases.lower)]
    parts.append(("read from disk" if phases.from_disk else "XLA", phases.compile))
    return f"compiled in {_seconds(phases.total)}: " + ", ".join(f"{name} {_seconds(t)}" for name, t in parts)


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    made = []
    for row in [head, *rows]:
        cells = [row[0].ljust(widths[0]), *[cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True)]]
        made.append("  ".join(cells))
    return made


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.1f} ms"


def _scaled(value: int) -> str:
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if value >= size:
            return f"{value / size:.2f} {unit}"
    return str(value)


def _bytes(value: int) -> str:
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= size:
            return f"{value / size:.2f} {unit}"
    return f"{value} B"


def _matmul(node: Node) -> int:
    a = node.inputs[0].type
    inner = a.shape[-2] if node.attrs["transpose_a"] and a.rank > 1 else a.shape[-1]
    return 2 * node.outputs[0].type.size * inner


def _dense(node: Node) -> int:
    size = node.outputs[0].type.size
    return 2 * size * node.inputs[1].type.shape[-1] + (size if len(node.inputs) > 2 else 0)


def _einsum(node: Node) -> int:
    sizes = {
        name: size
        for term, value in zip(node.attrs["equation"].partition("->")[0].split(","), node.inputs, strict=True)
        for name, size in zip(term, value.type.shape, strict=True)
    }  # fmt: skip
    return len(node.inputs) * prod(sizes.values())


def _terms(weight_shape: tuple[int, ...]) -> int:
    """Products summed for one element of a convolution's result: input channels of a group times the kernel."""
    return prod(weight_shape[1:])


def _conv(node: Node) -> int:
    size = node.outputs[0].type.size
    return 2 * size * _terms(node.inputs[1].type.shape) + (size if len(node.inputs) > 2 else 0)


def _conv_input_grad(node: Node) -> int:
    return 2 * node.inputs[0].type.size * _terms(node.inputs[1].type.shape)


def _conv_weight_grad(node: Node) -> int:
    return 2 * node.inputs[0].type.size * _terms(node.attrs["weight_shape"])


def _recurrent(node: Node) -> int:
    """Products of all steps with the weights of inputs and states, which follow x and the states."""
    w_ih, w_hh = _recurrent_weights(node)
    x = node.inputs[0].type
    return 2 * x.shape[0] * x.shape[1] * (w_ih.size + w_hh.size)


def _recurrent_grad(node: Node) -> int:
    """A product for the gradient of each operand of those; that of the inputs only if it is wanted."""
    w_ih, w_hh = _recurrent_weights(node)
    x = node.inputs[0].type
    return 2 * x.shape[0] * x.shape[1] * ((1 + node.attrs["wants_x"]) * w_ih.size + 2 * w_hh.size)


def _recurrent_weights(node: Node) -> tuple[TensorType, TensorType]:
    first = 3 if node.op.name.startswith("lstm") else 2
    return node.inputs[first].type, node.inputs[first + 1].type


#: Floating-point operations of the operators that sum products.
_PRODUCTS: dict[str, Callable[[Node], int]] = {
    "matmul": _matmul, "dense": _dense, "einsum": _einsum, "conv": _conv, "conv_input_grad": _conv_input_grad,
    "conv_weight_grad": _conv_weight_grad, "lstm_layer": _recurrent,
    "lstm_layer_grad": _recurrent_grad, "recurrent_layer": _recurrent, "recurrent_layer_grad": _recurrent_grad,
    "conv_act": _conv, "conv_weight_grad_wide": _conv_weight_grad, "dense_relu": _dense, "matmul_wide": _matmul,
}  # fmt: skip

#: Operators that only make or move elements.
_MOVES = frozenset((
    "arange", "barrier", "broadcast_to", "cast", "complex", "concat", "constant", "diag_embed", "diagonal",
    "dynamic_slice", "dynamic_update", "embedding", "eye", "flip", "full", "gather", "gather_elements", "gather_nd",
    "identity", "im2col", "imag", "index_get", "index_put", "one_hot", "pad_border", "pad_constant", "real",
    "reshape", "roll", "slice", "split", "stack", "stop_gradient", "transpose", "tril", "triu", "unstack",
))  # fmt: skip


def node_cost(node: Node) -> OpCost:
    """The estimated cost of one run of a node that holds no graphs."""
    values = [*node.inputs, *node.outputs]
    moved = sum(v.type.nbytes for v in values)
    name = node.op.name
    if name in _PRODUCTS:
        flops = _PRODUCTS[name](node)
    elif name in _MOVES:
        flops = 0
    else:
        flops = max((v.type.size for v in values), default=0)
    return OpCost(1, flops, moved)


def graph_cost(graph: Graph) -> GraphCost:
    """The estimated cost of one run of a graph.

    >>> from mycelia.ir.parser import parse_graph
    >>> graph_cost(parse_graph("graph f(%0: float32[2,3]) { %1 = neg(%0) : float32[2,3] return %1 }")).flops
    6
    """
    return _graph_cost(graph, {})


def _graph_cost(graph: Graph, known: dict[Graph, GraphCost]) -> GraphCost:
    if graph in known:
        return known[graph]
    plain: dict[str, OpCost] = {}
    total = GraphCost()
    for node in graph.nodes:
        held = {name: _graph_cost(g, known) for name, g in node.subgraphs}
        if not held:
            plain[node.op.name] = plain.get(node.op.name, OpCost()) + node_cost(node)
        elif node.op.name == "cond":
            total += max(held.values(), key=lambda c: (c.flops, c.bytes))
        elif node.op.name == "scan":
            total += held["body_graph"].times(node.attrs["length"])
        elif node.op.name == "custom_vjp_call":
            total += held["graph"]
        elif node.op.name == "vmap":
            total += held["graph"].times(node.attrs["size"])
        else:
            for cost in held.values():
                total += cost
            total += GraphCost(open_loops=int(node.op.name == "while_loop"))
    known[graph] = total + GraphCost(plain)
    return known[graph]


def value_bytes(graph: Graph) -> int:
    """Bytes of all values of one run of a graph, none of them reused; a loop of unknown length counts one round."""
    total = sum(v.type.nbytes for v in graph.params)
    for node in graph.nodes:
        total += sum(v.type.nbytes for v in node.outputs)
        for _, held in node.subgraphs:
            total += value_bytes(held) * int(node.attrs.get("length", node.attrs.get("size", 1)))
    return total


def operator_counts(before: Graph, after: Graph) -> dict[str, tuple[int, int]]:
    """How often each operator stands in two graphs, sub-graphs included, each once."""
    counts = [Counter(n.op.name for g in all_graphs(graph) for n in g.nodes) for graph in (before, after)]
    return {name: (counts[0][name], counts[1][name]) for name in sorted({*counts[0], *counts[1]})}
