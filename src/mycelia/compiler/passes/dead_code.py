"""Dead code: drop what no output depends on, across the borders of sub-graphs.

Liveness is marked backwards from the outputs and from nodes with effects. A node that holds graphs is not
one unit: each of its *slots* lives or dies by itself. A slot is what must stay or go together, for instance
of a ``while_loop`` one carried value: its operand, the parameter of the condition, the parameter and the
output of the body, and the result of the node. Marking any member marks the slot, which marks the others;
a carried value that only feeds itself is never reached and goes. Every slot is marked at most once and
there is no iteration to a fixed point, so the pass is linear in the size of the graph. A graph held by
several nodes keeps what any of them needs.

Operators that are not listed in ``SLOTS`` keep the parameters and outputs of the graphs they hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.rewriter import copy_node, has_effects


@dataclass(eq=False)
class _Slot:
    """Members that stay or go together. ``results`` are output indices of the node itself."""

    operands: list[int] = field(default_factory=list)
    params: list[tuple[Graph, int]] = field(default_factory=list)
    outputs: list[tuple[Graph, int]] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    live: bool = False


def _cond(node: Node) -> list[_Slot]:
    graphs: list[Graph] = [node.attrs["true_graph"], node.attrs["false_graph"]]
    slots = [_Slot([i], [(g, i - 1) for g in graphs]) for i in range(1, len(node.inputs))]
    return slots + [_Slot(outputs=[(g, k) for g in graphs], results=[k]) for k in range(len(node.outputs))]


def _while(node: Node) -> list[_Slot]:
    cond, body, n_const = node.attrs["cond_graph"], node.attrs["body_graph"], node.attrs["n_const"]
    slots = []
    for i in range(len(node.inputs)):
        slot = _Slot([i], [(cond, i), (body, i)])
        if i >= n_const:
            slot.outputs, slot.results = [(body, i - n_const)], [i - n_const]
        slots.append(slot)
    return slots


def _scan(node: Node) -> list[_Slot]:
    body, n_const, n_carry = node.attrs["body_graph"], node.attrs["n_const"], node.attrs["n_carry"]
    slots = []
    for i in range(len(node.inputs)):
        slot = _Slot([i], [(body, i)])
        if n_const <= i < n_const + n_carry:
            slot.outputs, slot.results = [(body, i - n_const)], [i - n_const]
        slots.append(slot)
    return slots + [_Slot(outputs=[(body, k)], results=[k]) for k in range(n_carry, len(node.outputs))]


def _call(node: Node) -> list[_Slot]:
    graph: Graph = node.attrs["graph"]
    slots = [_Slot([i], [(graph, i)]) for i in range(len(node.inputs))]
    return slots + [_Slot(outputs=[(graph, k)], results=[k]) for k in range(len(node.outputs))]


#: How the operands, results and graphs of an operator hang together.
SLOTS: dict[str, Callable[[Node], list[_Slot]]] = {
    "cond": _cond, "while_loop": _while, "scan": _scan, "call": _call, "vmap": _call,
}  # fmt: skip


class _Holder:
    """A live node that holds graphs, with its slots."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.slots = SLOTS[node.op.name](node)
        self.by_result = {k: slot for slot in self.slots for k in slot.results}


class _Liveness:
    """What is needed of a graph and of all graphs below it."""

    def __init__(self, top: Graph) -> None:
        self.values: set[Value] = set()
        self.outputs: set[tuple[Graph, int]] = set()
        self.nodes: set[Node] = set()
        self.holders: dict[Node, _Holder] = {}
        self.entered: set[Graph] = set()
        self._by_param: dict[Value, list[tuple[_Holder, _Slot]]] = {}
        self._by_output: dict[tuple[Graph, int], list[tuple[_Holder, _Slot]]] = {}
        self._next_values: list[Value] = []
        self._next_outputs: list[tuple[Graph, int]] = []
        self._next_slots: list[tuple[_Holder, _Slot]] = []
        self._enter(top)
        self._require_all_outputs(top)
        while self._next_values or self._next_outputs or self._next_slots:
            if self._next_values:
                self._value(self._next_values.pop())
            elif self._next_outputs:
                self._output(*self._next_outputs.pop())
            else:
                self._slot(*self._next_slots.pop())

    def _require_all_outputs(self, graph: Graph) -> None:
        self._next_outputs += [(graph, k) for k in range(len(graph.outputs))]

    def _enter(self, graph: Graph) -> None:
        """The graph runs: what has effects in it is live."""
        if graph in self.entered:
            return
        self.entered.add(graph)
        for node in graph.nodes:
            if has_effects(node):
                self._node(node)

    def _value(self, value: Value) -> None:
        if value in self.values:
            return
        self.values.add(value)
        node = value.node
        if node is None:
            self._next_slots += self._by_param.get(value, ())
            return
        self._node(node)
        holder = self.holders.get(node)
        if holder is not None:
            self._next_slots.append((holder, holder.by_result[value.index]))

    def _output(self, graph: Graph, k: int) -> None:
        if (graph, k) in self.outputs:
            return
        self.outputs.add((graph, k))
        self._next_values.append(graph.outputs[k])
        self._next_slots += self._by_output.get((graph, k), ())

    def _slot(self, holder: _Holder, slot: _Slot) -> None:
        if slot.live:
            return
        slot.live = True
        node = holder.node
        self._next_values += [node.inputs[i] for i in slot.operands]
        self._next_values += [graph.params[i] for graph, i in slot.params]
        self._next_outputs += slot.outputs

    def _node(self, node: Node) -> None:
        if node in self.nodes:
            return
        self.nodes.add(node)
        if node.op.name not in SLOTS:
            self._next_values += node.inputs
            for _, held in node.subgraphs:
                self._enter(held)
                self._next_values += held.params
                self._require_all_outputs(held)
            return
        holder = self.holders[node] = _Holder(node)
        for _, held in node.subgraphs:
            self._enter(held)
        if node.op.name == "cond":
            self._next_values.append(node.inputs[0])
        elif node.op.name == "while_loop":
            self._next_outputs.append((node.attrs["cond_graph"], 0))
        for slot in holder.slots:
            for graph, i in slot.params:
                self._by_param.setdefault(graph.params[i], []).append((holder, slot))
                if graph.params[i] in self.values:
                    self._next_slots.append((holder, slot))
            for member in slot.outputs:
                self._by_output.setdefault(member, []).append((holder, slot))
                if member in self.outputs:
                    self._next_slots.append((holder, slot))


class _Sweep:
    """Copies graphs without what is dead."""

    def __init__(self, top: Graph) -> None:
        self.top = top
        self.live = _Liveness(top)
        self.removed = 0
        self.done: dict[Graph, Graph] = {}

    def graph(self, graph: Graph) -> Graph:
        found = self.done.get(graph)
        if found is None:
            found = self.done[graph] = graph if self.all_live(graph) else self.copy(graph)
        return found

    def all_live(self, graph: Graph) -> bool:
        """Whether a graph stays as it is, with all graphs below it."""
        live = self.live
        params = graph is self.top or all([p in live.values for p in graph.params])
        if not params or not all([(graph, k) in live.outputs for k in range(len(graph.outputs))]):
            return False
        return all([node in live.nodes and self.attributes(node) is node.attrs for node in graph.nodes])

    def copy(self, graph: Graph) -> Graph:
        live = self.live
        new = Graph(graph.name)
        env: dict[Value, Value] = {}
        for param in graph.params:
            if graph is self.top or param in live.values:
                env[param] = new.add_param(param.type)
            else:
                self.removed += 1
        for node in graph.nodes:
            if node not in live.nodes:
                self.removed += 1
            elif node in live.holders:
                self.holder(node, new, env)
            else:
                made = copy_node(new, node, tuple([env[v] for v in node.inputs]), self.attributes(node))
                for old, value in zip(node.outputs, made.outputs, strict=True):
                    env[old] = value
        for k, value in enumerate(graph.outputs):
            if (graph, k) in live.outputs:
                new.outputs.append(env[value])
            else:
                self.removed += 1
        return new

    def attributes(self, node: Node) -> dict[str, Any]:
        attrs = node.attrs
        for name, held in node.subgraphs:
            swept = self.graph(held)
            if swept is not held:
                attrs = {**attrs, name: swept}
        return attrs

    def holder(self, node: Node, new: Graph, env: dict[Value, Value]) -> None:
        """Copy a node with slots."""
        attrs = self.attributes(node)
        slots = self.live.holders[node].slots
        operands = sorted([i for s in slots if s.live for i in s.operands])
        results = sorted([k for s in slots if s.live for k in s.results])
        if node.op.name == "cond":
            operands.insert(0, 0)
        if len(operands) < len(node.inputs):
            attrs = {**attrs, **_counts(node, operands)}
        made = copy_node(new, node, tuple([env[node.inputs[i]] for i in operands]), attrs)
        for k, value in zip(results, made.outputs, strict=True):
            env[node.outputs[k]] = value


def _counts(node: Node, operands: list[int]) -> dict[str, Any]:
    """The attributes that count or describe operands, for those that are left."""
    if "mapped" in node.attrs:
        return {"mapped": tuple([node.attrs["mapped"][i] for i in operands])}
    if "n_const" not in node.attrs:
        return {}
    n_const = node.attrs["n_const"]
    counts = {"n_const": sum(i < n_const for i in operands)}
    if "n_carry" in node.attrs:
        counts["n_carry"] = sum(n_const <= i < n_const + node.attrs["n_carry"] for i in operands)
    return counts


def run(graph: Graph) -> tuple[Graph, int]:
    """Drop what no output and no effect of ``graph`` depends on; its own parameters and outputs stay.

    Returns:
        The graph, and the number of nodes, and of parameters and outputs of sub-graphs, that went.
    """
    sweep = _Sweep(graph)
    return sweep.graph(graph), sweep.removed
