"""The one mechanism that changes graphs: copy node by node, asking a callback about each.

Graphs are never edited. ``rewrite`` walks a graph in order and copies it into a new one; for each node the
callback sees the node and its inputs *in the new graph*, and keeps it, replaces its outputs by other
values, or emits other nodes. Because inputs are already rewritten, a rule that looks at what made an input
looks at simplified code, so chains collapse in one pass. Sub-graphs are rewritten before the node that
holds them, each once however often it is used. Every node keeps the location of the node it came from.

A graph is first only read: the callback is asked about the nodes as they stand, and at the first change the
graph is copied from its beginning. So a graph in which nothing changes costs no memory and is returned as it
is, and what is cached with it stays valid. For this, a callback must not act on the world.

Beside it stand the questions a rewrite asks: how often a value or a sub-graph is used, whether running a
graph has effects, and whether two graphs are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from mycelia.core.dtypes import DType
from mycelia.core.errors import GraphError, SourceLocation
from mycelia.ir.builder import constant_p
from mycelia.ir.graph import ArrayConstant, Graph, Node, Value
from mycelia.ir.primitive import COLLECTIVE, Primitive

#: What ``rewrite`` asks about a node: ``(node, new inputs, new attributes, emitter)``. None keeps it.
Visit = Callable[[Node, tuple[Value, ...], dict[str, Any], "Emitter"], Sequence[Value] | None]


def copy_node(graph: Graph, node: Node, inputs: tuple[Value, ...], attrs: dict[str, Any] | None = None) -> Node:
    """Append a copy of ``node`` on other inputs to ``graph``; its location stays.

    The output types are taken over when the input types and attributes are those of ``node``, and inferred
    otherwise.
    """
    if attrs is None or attrs is node.attrs:
        for new, old in zip(inputs, node.inputs, strict=True):
            if new.type is not old.type and new.type != old.type:
                break
        else:
            made = Node(node.op, inputs, node.attrs, node.location)
            made.outputs = tuple([Value(v.type, graph, made, v.index) for v in node.outputs])
            graph.nodes.append(made)
            return made
    return graph.add_node(node.op, inputs, node.attrs if attrs is None else attrs, node.location)


class _ChangeError(Exception):
    """While a graph is only read: the callback wants to change it."""


class Emitter:
    """The graph that a rewrite is writing.

    Attributes:
        graph: the new graph.
        table: a place for the callback to remember things about this graph.
        location: the location given to new nodes, that of the node at hand.
    """

    __slots__ = ("_attrs", "_inputs", "_kept", "_node", "_reading", "graph", "location", "table")

    def __init__(self, graph: Graph, reading: bool = False) -> None:
        self.graph = graph
        self._reading = reading
        self.table: dict[Any, Any] = {}
        self.location: SourceLocation | None = None
        self._node: Node | None = None
        self._inputs: tuple[Value, ...] = ()
        self._attrs: dict[str, Any] = {}
        self._kept: tuple[Value, ...] | None = None

    def add(self, op: Primitive, inputs: Sequence[Value], attrs: Mapping[str, Any] | None = None) -> tuple[Value, ...]:
        """Append a node, typed by its primitive, and return its outputs."""
        if self._reading:
            raise _ChangeError
        return self.graph.add_node(op, tuple(inputs), dict(attrs or {}), self.location).outputs

    def constant(self, array: np.ndarray[Any, Any]) -> Value:
        """Append a constant."""
        return self.add(constant_p, (), {"value": ArrayConstant(array)})[0]

    def inline(self, graph: Graph, args: Sequence[Value]) -> list[Value]:
        """Append copies of all nodes of ``graph``, parameters bound to ``args``; the values of its outputs.

        The copies keep their own locations.
        """
        if self._reading:
            raise _ChangeError
        env: dict[Value, Value] = dict(zip(graph.params, args, strict=True))
        for node in graph.nodes:
            made = copy_node(self.graph, node, tuple([env[v] for v in node.inputs]))
            env.update(zip(node.outputs, made.outputs, strict=True))
        return [env[v] for v in graph.outputs]

    def keep(self) -> tuple[Value, ...]:
        """Copy the node at hand now; returning the result from the callback counts as keeping it."""
        if self._kept is None:
            assert self._node is not None
            if self._reading:
                self._kept = self._node.outputs
            else:
                self._kept = copy_node(self.graph, self._node, self._inputs, self._attrs).outputs
        return self._kept

    def _turn_to(self, node: Node, inputs: tuple[Value, ...], attrs: dict[str, Any]) -> None:
        self.location = node.location
        self._node, self._inputs, self._attrs, self._kept = node, inputs, attrs, None


class _Rewrite:
    """One run of ``rewrite``: what the sub-graphs became, and how often the callback changed something."""

    def __init__(self, visit: Visit, only: Container[str] | None, recurse: bool) -> None:
        self.visit = visit
        self.only = only
        self.recurse = recurse
        self.changes = 0
        self.done: dict[Graph, Graph] = {}

    def graph(self, graph: Graph) -> Graph:
        found = self.done.get(graph)
        if found is None:
            found = self.done[graph] = self.copy(graph) if self.changes_in(graph) else graph
        return found

    def changes_in(self, graph: Graph) -> bool:
        """Whether the callback changes anything in a graph."""
        emitter = Emitter(graph, reading=True)
        only, visit = self.only, self.visit
        for node in graph.nodes:
            attrs = node.attrs
            if attrs and self.attributes(node) is not attrs:
                return True
            if only is not None and node.op.name not in only:
                continue
            emitter._turn_to(node, node.inputs, attrs)
            try:
                made = visit(node, node.inputs, attrs, emitter)
            except _ChangeError:
                return True
            if made is not None and made is not emitter._kept:
                return True
        return False

    def copy(self, graph: Graph) -> Graph:
        new = Graph(graph.name)
        emitter = Emitter(new)
        only, visit = self.only, self.visit
        env: dict[Value, Value] = {p: new.add_param(p.type) for p in graph.params}
        for node in graph.nodes:
            inputs = tuple([env[v] for v in node.inputs])
            attrs = self.attributes(node) if node.attrs else node.attrs
            made: Sequence[Value] | None
            if only is not None and node.op.name not in only:
                made = copy_node(new, node, inputs, attrs).outputs
            else:
                emitter._turn_to(node, inputs, attrs)
                made = visit(node, inputs, attrs, emitter)
                if made is None:
                    made = emitter.keep()
                elif made is not emitter._kept:
                    self.changes += 1
                    _check_replacement(graph, node, made, new)
            for old, value in zip(node.outputs, made, strict=True):
                env[old] = value
        new.outputs = [env[v] for v in graph.outputs]
        return new

    def attributes(self, node: Node) -> dict[str, Any]:
        attrs = node.attrs
        if self.recurse:
            for name, value in node.attrs.items():
                if type(value) is Graph:
                    new = self.graph(value)
                    if new is not value:
                        attrs = {**attrs, name: new}
        return attrs


def _check_replacement(graph: Graph, node: Node, made: Sequence[Value], new: Graph) -> None:
    types = tuple([v.type for v in made])
    wanted = tuple([v.type for v in node.outputs])
    if types != wanted or any(v.graph is not new for v in made):
        shown = ", ".join(map(str, types)), ", ".join(map(str, wanted))
        raise GraphError(
            "rewrite", message=f"graph '{graph.name}', node {graph.nodes.index(node)} ({node.op.name}): "
            f"a rule replaced ({shown[1]}) by ({shown[0]}), or by values of another graph",
            location=node.location,
        )  # fmt: skip


def rewrite(
    graph: Graph, visit: Visit, *, only: Container[str] | None = None, recurse: bool = True
) -> tuple[Graph, int]:
    """Copy ``graph`` with ``visit`` deciding about each node.

    Args:
        graph: the graph; it is not changed.
        visit: called with a node, its inputs in the new graph, its attributes (sub-graphs already
            rewritten) and the :class:`Emitter`. None keeps the node; a sequence of values of the new graph,
            one for each output and of the same types, takes its place.
        only: names of the operators to ask about; the nodes of others are kept.
        recurse: whether sub-graphs are rewritten too.

    Returns:
        The new graph and the number of nodes that were replaced; the same graph if that is 0.

    Raises:
        GraphError: ``visit`` gave values of other types, or of another graph.
    """
    run = _Rewrite(visit, only, recurse)
    return run.graph(graph), run.changes


def all_graphs(graph: Graph) -> list[Graph]:
    """``graph`` and every sub-graph, each once, holders before what they hold first."""
    found: dict[Graph, None] = {graph: None}
    stack = [graph]
    while stack:
        for node in stack.pop().nodes:
            for _, held in node.subgraphs:
                if held not in found:
                    found[held] = None
                    stack.append(held)
    return list(found)


def count_nodes(graph: Graph) -> int:
    """Number of nodes, each sub-graph counted once however often it is used."""
    return sum(len(g.nodes) for g in all_graphs(graph))


def use_counts(graph: Graph) -> dict[Value, int]:
    """How often each parameter and node output of ``graph`` is an operand or an output (sub-graphs apart)."""
    counts: dict[Value, int] = dict.fromkeys(graph.params, 0)
    for node in graph.nodes:
        for value in node.inputs:
            counts[value] += 1
        for value in node.outputs:
            counts[value] = 0
    for value in graph.outputs:
        counts[value] += 1
    return counts


def graph_uses(graph: Graph) -> dict[Graph, int]:
    """How many node attributes below ``graph`` hold each sub-graph."""
    counts: dict[Graph, int] = {}
    for g in all_graphs(graph):
        for node in g.nodes:
            for _, held in node.subgraphs:
                counts[held] = counts.get(held, 0) + 1
    return counts


def has_effects(node: Node) -> bool:
    """Whether running ``node`` does more than give values; true of a node that holds such a node.

    The backward graph of a ``custom_vjp_call`` does not run with it and does not count.
    """
    if node.op.effects:
        return True
    return any(graph_has_effects(g) for name, g in node.subgraphs if name != "backward")


def graph_has_effects(graph: Graph) -> bool:
    """Whether any node of ``graph`` has effects; kept with the graph."""
    found = graph.derived.get("effects")
    if found is None:
        found = any(has_effects(node) for node in graph.nodes)
        graph.derived["effects"] = found
    return bool(found)


def has_collectives(graph: Graph) -> bool:
    """Whether ranks communicate in ``graph``, or in a graph inside it."""
    return any(COLLECTIVE in node.op.effects for held in all_graphs(graph) for node in held.nodes)


def known_array(value: Value) -> np.ndarray[Any, Any] | None:
    """The array of a value made by a constant node, else None."""
    node = value.node
    if node is None or node.op is not constant_p:
        return None
    array: np.ndarray[Any, Any] = node.attrs["value"].array
    return array


def select_signature(
    graph: Graph,
    params: Sequence[int],
    outputs: Sequence[int],
    constants: Mapping[int, np.ndarray[Any, Any]] | None = None,
) -> Graph:
    """A copy of ``graph`` whose parameters and outputs are those listed, in that order.

    Args:
        graph: the graph.
        params: indices of the parameters that stay; the others must be unused or among ``constants``.
        outputs: indices of the outputs to return.
        constants: arrays to put in the place of parameters that go.

    Raises:
        GraphError: a parameter that goes is used.
    """
    new = Graph(graph.name)
    emitter = Emitter(new)
    env: dict[Value, Value] = {}
    for i in params:
        env[graph.params[i]] = new.add_param(graph.params[i].type)
    for i, array in (constants or {}).items():
        env[graph.params[i]] = emitter.constant(array)
    try:
        for node in graph.nodes:
            made = copy_node(new, node, tuple([env[v] for v in node.inputs]))
            env.update(zip(node.outputs, made.outputs, strict=True))
        new.outputs = [env[graph.outputs[k]] for k in outputs]
    except KeyError:
        raise GraphError("rewrite", message=f"a parameter of graph '{graph.name}' that is used was left out") from None
    return new


def bind_params(graph: Graph, constants: Mapping[int, np.ndarray[Any, Any]]) -> Graph:
    """A copy of ``graph`` in which the parameters listed by index are constants.

    Raises:
        GraphError: there is no such parameter, or the array has another type.
    """
    for i, array in constants.items():
        fits = 0 <= i < len(graph.params) and (array.dtype, array.shape) == (
            graph.params[i].dtype,
            graph.params[i].shape,
        )
        if not fits:
            held = ", ".join(str(t) for t in graph.input_types)
            raise GraphError(
                "bind_params", f"constants[{i}]", got=f"an array {array.dtype}{list(array.shape)}",
                takes=f"one of the parameters ({held})",
            )  # fmt: skip
    rest = [i for i in range(len(graph.params)) if i not in constants]
    return select_signature(graph, rest, range(len(graph.outputs)), constants)


class Structure:
    """What a graph computes, names and locations aside; equal structures compute the same."""

    __slots__ = ("_hash", "key")

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key
        self._hash = hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Structure) and self._hash == other._hash and self.key == other.key


def structure(graph: Graph) -> Structure:
    """The structure of a graph: a hashable key, kept with the graph.

    Values are numbered in order; attributes compare by type and exact value, so 1, 1.0 and True differ, and
    so do 0.0 and -0.0.
    """
    found: Structure | None = graph.derived.get("structure")
    if found is None:
        number: dict[Value, int] = {p: i for i, p in enumerate(graph.params)}
        nodes = []
        for node in graph.nodes:
            nodes.append((node.op, tuple([number[v] for v in node.inputs]), attributes_key(node.attrs)))
            for value in node.outputs:
                number[value] = len(number)
        key = (graph.input_types, tuple(nodes), tuple([number[v] for v in graph.outputs]))
        found = graph.derived["structure"] = Structure(key)
    return found


def attributes_key(attrs: Mapping[str, Any]) -> Hashable:
    """A key under which attributes are equal if and only if no rule can tell them apart."""
    if not attrs:
        return ()
    return tuple(sorted([(name, _attribute_key(value)) for name, value in attrs.items()], key=_first))


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]


def _attribute_key(value: Any) -> Hashable:
    kind = type(value)
    if kind in (int, bool, str, DType, ArrayConstant) or value is None:
        return (kind, value)
    if kind is tuple:
        return (kind, tuple([_attribute_key(v) for v in value]))
    if kind is float:
        return (kind, value.hex())
    if kind is complex:
        return (kind, value.real.hex(), value.imag.hex())
    if kind is Graph:
        return structure(value)
    if kind is slice:
        return (kind, _attribute_key(value.start), _attribute_key(value.stop), _attribute_key(value.step))
    try:
        hash(value)
    except TypeError:
        return (kind, id(value))
    return (kind, value)
