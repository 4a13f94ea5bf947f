"""Control flow that can be decided or narrowed now.

- ``cond`` on a known predicate becomes the branch taken.
- A result that both branches take from the same operand, or make as the same constant, needs no ``cond``;
  a result of a called graph that is one of its parameters needs no call.
- ``while_loop`` whose condition is the constant False, and ``scan`` of no rows and only carried values, give
  back what they started from.
- A carried value that the body hands on unchanged is a constant of the loop: it becomes a constant operand,
  and its last value is its first.

What loses its last use this way is left to :mod:`~mycelia.compiler.passes.dead_code`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.ir.graph import ArrayConstant, Graph, Node, Value
from mycelia.ir.primitive import primitive_named
from mycelia.ir.rewriter import Emitter, all_graphs, graph_has_effects, known_array, rewrite, select_signature


def run(graph: Graph) -> tuple[Graph, int]:
    """Decide and narrow control flow; the number of changes is the number of nodes replaced."""
    used = _used(graph)
    reordered: dict[tuple[Any, ...], Graph] = {}

    def visit(node: Node, inputs: tuple[Value, ...], attrs: dict[str, Any], emitter: Emitter) -> Sequence[Value] | None:
        name = node.op.name
        if name == "cond":
            return _cond(node, inputs, attrs, emitter, used)
        if name == "call":
            return _call(node, inputs, attrs, emitter, used)
        if name == "while_loop":
            goes_on = known_array(attrs["cond_graph"].outputs[0])
            if goes_on is not None and not goes_on and not graph_has_effects(attrs["cond_graph"]):
                return inputs[attrs["n_const"] :]
            return _loop(node, inputs, attrs, ("cond_graph", "body_graph"), emitter, reordered)
        if attrs["length"] == 0 and len(node.outputs) == attrs["n_carry"]:
            return inputs[attrs["n_const"] : attrs["n_const"] + attrs["n_carry"]]
        return _loop(node, inputs, attrs, ("body_graph",), emitter, reordered)

    return rewrite(graph, visit, only=("cond", "call", "while_loop", "scan"))


def _used(graph: Graph) -> set[Value]:
    """The results of nodes that hold graphs, wherever below ``graph``, that are an operand or an output."""
    found: set[Value] = set()
    for g in all_graphs(graph):
        holders = {node for node in g.nodes if any(True for _ in node.subgraphs)}
        if holders:
            for node in g.nodes:
                found.update([v for v in node.inputs if v.node in holders])
            found.update(g.outputs)
    return found


def _cond(
    node: Node, inputs: tuple[Value, ...], attrs: dict[str, Any], emitter: Emitter, used: set[Value]
) -> Sequence[Value] | None:
    branches: tuple[Graph, Graph] = (attrs["true_graph"], attrs["false_graph"])
    known = known_array(inputs[0])
    if known is not None:
        return emitter.inline(branches[0] if known else branches[1], inputs[1:])
    positions = [{p: i for i, p in enumerate(g.params)} for g in branches]
    same: dict[int, Value] = {}
    for k, (first, second) in enumerate(zip(branches[0].outputs, branches[1].outputs, strict=True)):
        if node.outputs[k] not in used:
            continue
        i, j = positions[0].get(first), positions[1].get(second)
        if i is not None and j is not None:
            if inputs[i + 1] is inputs[j + 1]:
                same[k] = inputs[i + 1]
        else:
            made = _held(first)
            if made is not None and made == _held(second):
                same[k] = emitter.constant(made.array)
    return _partly(same, emitter)


def _held(value: Value) -> ArrayConstant | None:
    array = known_array(value)
    return None if array is None else ArrayConstant(array)


def _call(
    node: Node, inputs: tuple[Value, ...], attrs: dict[str, Any], emitter: Emitter, used: set[Value]
) -> Sequence[Value] | None:
    called: Graph = attrs["graph"]
    position = {p: i for i, p in enumerate(called.params)}
    passed = {k: position[v] for k, v in enumerate(called.outputs) if v in position and node.outputs[k] in used}
    return _partly({k: inputs[i] for k, i in passed.items()}, emitter)


def _partly(replaced: dict[int, Value], emitter: Emitter) -> list[Value] | None:
    """The results of the node at hand with some of them replaced; None if none is."""
    if not replaced:
        return None
    return [replaced.get(k, value) for k, value in enumerate(emitter.keep())]


def _loop(
    node: Node,
    inputs: tuple[Value, ...],
    attrs: dict[str, Any],
    names: tuple[str, ...],
    emitter: Emitter,
    reordered: dict[tuple[Any, ...], Graph],
) -> Sequence[Value] | None:
    """Make constants of the carried values that the body does not change."""
    body: Graph = attrs["body_graph"]
    n_const = attrs["n_const"]
    n_carry = attrs.get("n_carry", len(inputs) - n_const)
    still = [i for i in range(n_const, n_const + n_carry) if body.outputs[i - n_const] is body.params[i]]
    if not still:
        return None
    moving = [i for i in range(n_const, len(inputs)) if i not in set(still)]
    order = [*range(n_const), *still, *moving]
    outputs = [k for k in range(len(body.outputs)) if n_const + k not in set(still)]
    changed = {**attrs, "n_const": n_const + len(still)}
    if "n_carry" in attrs:
        changed["n_carry"] = n_carry - len(still)
    for name in names:
        graph: Graph = attrs[name]
        key = (graph, tuple(still), n_const)
        if key not in reordered:
            kept = outputs if name == "body_graph" else range(len(graph.outputs))
            reordered[key] = select_signature(graph, order, kept)
        changed[name] = reordered[key]
    made = iter(emitter.add(primitive_named(node.op.name), [inputs[i] for i in order], changed))
    first = {i - n_const: inputs[i] for i in still}
    return [first[k] if k in first else next(made) for k in range(len(node.outputs))]
