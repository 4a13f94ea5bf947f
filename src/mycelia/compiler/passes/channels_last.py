"""Convolutions with their channels on the last axis, and everything between them likewise.

XLA's CPU compiler convolves channels-last images only, and transposes others before and after each convolution. So
images are kept channels-last from one convolution to the next, through operators that are as fast in either layout
once their axes are renumbered (``PLACEMENTS``; anything that works element by element), and transposed where they
come from or go to anything else: inputs, outputs, operators without a rule, sub-graphs, which are treated one by one.

Which nodes are to be channels-last is a minimum cut. A node is on the side of the source if it is channels-last. A
value costs its bytes, once, if the one who makes it and one who takes it are on different sides; a convolution on the
channels-first side costs the bytes of the images that XLA would transpose. Moving an axis of length 1, or past axes of
length 1, costs nothing. Of equally cheap cuts it is the one that changes least, so a lone convolution stays as it is.

The weight gradient is as fast in either layout: XLA transposes for it whatever it is given, so it follows the others.
Kernels keep their layout, output channels first: others were no faster. Sums are made in another order, so results
differ by rounding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mycelia.compiler.minimum_cut import NEVER, SINK, SOURCE, Network
from mycelia.compiler.passes.per_graph import Attributes, PerGraph
from mycelia.core.context import get_context
from mycelia.ir.graph import ArrayConstant, Graph, Node, Value
from mycelia.ir.primitive import primitive_named
from mycelia.ir.rewriter import Emitter, copy_node
from mycelia.ir.types import TensorType

#: Whether the pass does anything; switched off to compare.
ENABLED = True

#: How a node takes or gives a value: as it is, as an image (channels-last on that side of the cut), or, for operands
#: of lower rank that are broadcast, with leading axes of length 1 added and then as an image.
GIVEN, IMAGE, OPERAND = range(3)

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Placement:
    """How a node is made channels-last: the kinds of its operands and results, and its attributes there."""

    inputs: Ints
    outputs: Ints
    attrs: dict[str, Any]


Rule = Callable[[Node], "Placement | None"]

#: Operators that compute every element from those at the same place, by what they declare for sharding.
_ELEMENTWISE = re.compile(r"\.\.\.(,\.\.\.)*->\.\.\.")

_TRANSPOSED = ("conv", "conv_input_grad")
_CONVOLUTIONS = (*_TRANSPOSED, "conv_weight_grad")


def to_last(rank: int) -> Ints:
    """The permutation that moves the channels to the last axis."""
    return (0, *range(2, rank), 1)


def to_first(rank: int) -> Ints:
    """Its inverse."""
    return (0, rank - 1, *range(1, rank - 1))


def _moved(values: Sequence[Any], rank: int) -> tuple[Any, ...]:
    return tuple([values[i] for i in to_last(rank)])


def _axis(axis: int, rank: int) -> int:
    return to_first(rank)[axis]


def _is_image(type_: TensorType) -> bool:
    return 3 <= type_.rank <= 5


def _is_free(shape: Ints) -> bool:
    """Whether moving the channels leaves all elements where they are in memory."""
    return shape[1] == 1 or prod(shape[2:]) == 1


def _price(type_: TensorType) -> int:
    """What transposing an image costs."""
    return 0 if _is_free(type_.shape) else int(type_.nbytes)


# How each operator is placed -----------------------------------------------------------------------------------


def _broadcast(node: Node, **attrs: Any) -> Placement | None:
    """Operands broadcast to the shape of the result."""
    rank = node.outputs[0].type.rank
    kinds = tuple([IMAGE if v.type.rank == rank else OPERAND if v.type.rank else GIVEN for v in node.inputs])
    return Placement(kinds, (IMAGE,), {**node.attrs, **attrs})


def _broadcast_to(node: Node) -> Placement | None:
    return _broadcast(node, shape=_moved(node.attrs["shape"], node.outputs[0].type.rank))


def _full(node: Node) -> Placement | None:
    return Placement((), (IMAGE,), {**node.attrs, "shape": _moved(node.attrs["shape"], node.outputs[0].type.rank)})


def _constant(node: Node) -> Placement | None:
    array: np.ndarray[Any, Any] = node.attrs["value"].array
    return Placement((), (IMAGE,), {"value": ArrayConstant(array.transpose(to_last(array.ndim)))})


def _images(count: int) -> Rule:
    """The first ``count`` operands and the results are images, with channels where ``channels_last`` says."""

    def rule(node: Node) -> Placement | None:
        rank = node.inputs[0].type.rank
        if node.attrs["channels_last"]:
            return None
        attrs = {**node.attrs, "channels_last": True}
        if "input_shape" in attrs:
            attrs["input_shape"] = _moved(attrs["input_shape"], rank)
        rest = (GIVEN,) * (len(node.inputs) - count)
        results = (GIVEN if node.op.name == "conv_weight_grad" else IMAGE,) * len(node.outputs)
        return Placement((IMAGE,) * count + rest, results, attrs)

    return rule


def _normalized(count: int) -> Rule:
    """Batch normalization: the first ``count`` operands and the first result are images."""

    def rule(node: Node) -> Placement | None:
        if node.attrs["axis"] != 1:
            return None
        rest = len(node.inputs) - count, len(node.outputs) - 1
        attrs = {**node.attrs, "axis": node.inputs[0].type.rank - 1}
        return Placement((IMAGE,) * count + (GIVEN,) * rest[0], (IMAGE,) + (GIVEN,) * rest[1], attrs)

    return rule


def _reduced(node: Node) -> Placement | None:
    """Axes are folded; if they go, what is left has to be in the same order."""
    rank, axes = node.inputs[0].type.rank, node.attrs["axes"]
    attrs = {**node.attrs, "axes": tuple(sorted([_axis(i, rank) for i in axes]))}
    if node.attrs["keepdims"]:
        return Placement((IMAGE,), (IMAGE,), attrs)
    in_order = 1 in axes or all(i in axes for i in range(2, rank))
    return Placement((IMAGE,), (GIVEN,), attrs) if in_order else None


def _along_axes(node: Node) -> Placement | None:
    """All operands and results are images; something is done along ``axes``."""
    rank = node.inputs[0].type.rank
    attrs = {**node.attrs, "axes": tuple(sorted([_axis(i, rank) for i in node.attrs["axes"]]))}
    return Placement((IMAGE,) * len(node.inputs), (IMAGE,) * len(node.outputs), attrs)


def _along_axis(node: Node) -> Placement | None:
    attrs = {**node.attrs, "axis": _axis(node.attrs["axis"], node.inputs[0].type.rank)}
    return Placement((IMAGE,) * len(node.inputs), (IMAGE,) * len(node.outputs), attrs)


def _for_each_axis(*names: str) -> Rule:
    """Attributes hold a value for each axis; operands behind the first are numbers."""

    def rule(node: Node) -> Placement | None:
        attrs = {**node.attrs, **{n: _moved(node.attrs[n], node.inputs[0].type.rank) for n in names}}
        return Placement((IMAGE,) + (GIVEN,) * (len(node.inputs) - 1), (IMAGE,), attrs)

    return rule


def _barrier(node: Node) -> Placement | None:
    """Each result is the operand of its place."""
    kinds = tuple([IMAGE if _is_image(v.type) else GIVEN for v in node.inputs])
    return Placement(kinds, kinds, node.attrs)


def _adaptive(node: Node) -> Placement | None:
    """``sizes`` are of the last axes; channels are among them then, as many as before."""
    rank, sizes = node.inputs[0].type.rank, node.attrs["sizes"]
    if len(sizes) != rank - 2:
        return None
    attrs = {**node.attrs, "sizes": (*sizes, node.inputs[0].shape[1])}
    if "steps" in attrs:
        attrs["steps"] = (*attrs["steps"], 0.0)
    if "input_shape" in attrs:
        attrs["input_shape"] = _moved(attrs["input_shape"], rank)
    return Placement((IMAGE,), (IMAGE,), attrs)


def _transpose(node: Node) -> Placement | None:
    """One that moves the channels to the last axis, or back from it, only renames what is channels-last."""
    rank, perm = node.outputs[0].type.rank, node.attrs["perm"]
    if perm == to_last(rank):
        return Placement((IMAGE,), (GIVEN,), {})
    return Placement((GIVEN,), (IMAGE,), {}) if perm == to_first(rank) else None


#: The rule of each operator that has one, beside those that work element by element.
PLACEMENTS: dict[str, Rule] = {
    "conv": _images(1), "conv_input_grad": _images(1), "conv_weight_grad": _images(2),
    "max_pool": _images(1), "max_pool_with_index": _images(1), "max_pool_grad": _images(3), "max_pool_pick": _images(3),
    "avg_pool": _images(1), "avg_pool_grad": _images(1), "adaptive_avg_pool": _adaptive,
    "adaptive_avg_pool_grad": _adaptive, "resample": _adaptive, "resample_grad": _adaptive,
    "batch_norm": _normalized(1), "batch_norm_grad": _normalized(2),
    "batch_norm_inference": _normalized(1), "reduce_sum": _reduced, "reduce_mean": _reduced, "reduce_max": _reduced,
    "reduce_min": _reduced, "reduce_prod": _reduced, "reduce_all": _reduced, "reduce_any": _reduced,
    "softmax": _along_axes, "softmax_grad": _along_axes, "log_softmax": _along_axes, "log_softmax_grad": _along_axes,
    "flip": _along_axes, "concat": _along_axis, "split": _along_axis, "pad_constant": _for_each_axis("config"),
    "pad_border": _for_each_axis("pairs"), "slice": _for_each_axis("starts", "stops", "steps"),
    "broadcast_to": _broadcast_to, "full": _full, "constant": _constant, "transpose": _transpose, "barrier": _barrier,
    "clip": _broadcast, "inside": _broadcast, "dropped": _broadcast, "add_n": _broadcast,
}  # fmt: skip


def placement(node: Node) -> Placement | None:
    """How a node is made channels-last; None if it is not."""
    if node.op.effects or not any(_is_image(v.type) for v in (*node.inputs, *node.outputs)):
        return None
    rule = PLACEMENTS.get(node.op.name)
    if rule is None:
        shard = node.op.shard
        known = isinstance(shard, str) and _ELEMENTWISE.fullmatch(shard) and node.op.name != "gradient_hook"
        rule = _broadcast if known and not any(True for _ in node.subgraphs) else None
    made = None if rule is None else rule(node)
    if made is None:
        return None
    images = [
        v.type
        for kinds, of in ((made.inputs, node.inputs), (made.outputs, node.outputs))
        for kind, v in zip(kinds, of, strict=True)
        if kind == IMAGE
    ]
    return made if images and all(_is_image(t) for t in images) else None


# Which nodes are channels-last --------------------------------------------------------------------------------


class _Uses:
    """Who takes each value of a graph: nodes, with how they take it, and whether it is an output of the graph."""

    def __init__(self, graph: Graph, placements: Mapping[Node, Placement]) -> None:
        self.images: dict[Value, dict[Node, None]] = {}
        self.elsewhere: set[Value] = set(graph.outputs)
        for node in graph.nodes:
            found = placements.get(node)
            for i, value in enumerate(node.inputs):
                if found is not None and found.inputs[i] == IMAGE:
                    self.images.setdefault(value, {})[node] = None
                else:
                    self.elsewhere.add(value)


def _maker(value: Value, placements: Mapping[Node, Placement]) -> Node | None:
    """The node that makes a value as an image, if there is one."""
    node = value.node
    if node is None or node not in placements or placements[node].outputs[value.index] != IMAGE:
        return None
    return node


def _around_convolutions(graph: Graph) -> tuple[dict[Node, Placement], _Uses]:
    """The nodes that have a placement and are tied to a convolution by images."""
    placements = {node: found for node in graph.nodes if (found := placement(node)) is not None}
    uses = _Uses(graph, placements)
    reached = {node: None for node in placements if node.op.name in _CONVOLUTIONS}
    stack = list(reached)
    while stack:
        node = stack.pop()
        beside: list[Node] = []
        for kind, value in zip(placements[node].inputs, node.inputs, strict=True):
            maker = _maker(value, placements)
            if kind == IMAGE and maker is not None:
                beside.append(maker)
        for kind, value in zip(placements[node].outputs, node.outputs, strict=True):
            if kind == IMAGE:
                beside += uses.images.get(value, ())
        for other in beside:
            if other not in reached:
                reached[other] = None
                stack.append(other)
    return {node: found for node, found in placements.items() if node in reached}, uses


def _chosen(placements: Mapping[Node, Placement], uses: _Uses) -> set[Node]:
    """The nodes that are channels-last in the cheapest cut."""
    network = Network()
    vertices = {node: network.vertex() for node in placements}
    values: dict[Value, None] = {}
    for node, vertex in vertices.items():
        place = placements[node]
        images = [v for kind, v in zip(place.inputs, node.inputs, strict=True) if kind == IMAGE]
        made = [v for kind, v in zip(place.outputs, node.outputs, strict=True) if kind == IMAGE]
        values.update(dict.fromkeys([*images, *made]))
        if node.op.name in _TRANSPOSED:
            network.edge(SOURCE, vertex, sum(_price(v.type) for v in [*images, *made]))
        elif node.op.name == "transpose":
            network.edge(SOURCE, vertex, NEVER)
        for kind, v in zip(place.inputs, node.inputs, strict=True):
            if kind == OPERAND:
                network.edge(vertex, SINK, _price(_widened(v.type, node.outputs[0].type.rank)))
    for value in values:
        price, made_by = _price(value.type), _maker(value, placements)
        maker = SINK if made_by is None else vertices[made_by]
        takers = [vertices[node] for node in uses.images.get(value, ()) if node in vertices]
        first = value in uses.elsewhere
        if price and takers:  # made channels-first and taken channels-last
            _pay_once(network, takers, maker, price)
        if price and maker != SINK and (takers or first):  # the other way round
            if first:
                network.edge(maker, SINK, price)
            else:
                _pay_once(network, takers, maker, price, backwards=True)
    side = network.source_side()
    return {node for node, vertex in vertices.items() if vertex in side}


def _pay_once(network: Network, takers: Sequence[int], maker: int, price: int, backwards: bool = False) -> None:
    """A price for any number of takers on the other side than the maker of a value."""
    if len(takers) == 1:
        meeting = takers[0]
    else:
        meeting = network.vertex()
        for taker in takers:
            network.edge(*((meeting, taker) if backwards else (taker, meeting)), NEVER)
    network.edge(*((maker, meeting) if backwards else (meeting, maker)), price)


def _widened(type_: TensorType, rank: int) -> TensorType:
    """The type with leading axes of length 1."""
    return TensorType(type_.dtype, (1,) * (rank - type_.rank) + type_.shape)


# Writing the graph --------------------------------------------------------------------------------------------


class _Writer:
    """Copies a graph; each value is known as it was, channels-last, or both."""

    def __init__(self, graph: Graph) -> None:
        self.graph = Graph(graph.name)
        self.emitter = Emitter(self.graph)
        self.first: dict[Value, Value] = {p: self.graph.add_param(p.type) for p in graph.params}
        self.last: dict[Value, Value] = {}
        self.operands: dict[tuple[Value, int], Value] = {}

    def given(self, value: Value) -> Value:
        """A value as it was."""
        if value not in self.first:
            self.first[value] = self.turned(self.last[value], value.type.shape, to_first(value.type.rank))
        return self.first[value]

    def image(self, value: Value) -> Value:
        """A value channels-last."""
        if value not in self.last:
            rank = value.type.rank
            self.last[value] = self.turned(self.given(value), _moved(value.shape, rank), to_last(rank))
        return self.last[value]

    def operand(self, value: Value, rank: int) -> Value:
        """A value of lower rank that broadcasts against images."""
        key = value, rank
        if key not in self.operands:
            wide = _widened(value.type, rank).shape
            held = self.given(value)
            if not _is_free(wide):
                held = self.emitter.add(primitive_named("reshape"), (held,), {"shape": wide})[0]
            self.operands[key] = self.turned(held, _moved(wide, rank), to_last(rank), free=_is_free(wide))
        return self.operands[key]

    def turned(self, value: Value, shape: Ints, perm: Ints, free: bool | None = None) -> Value:
        """A value with its axes in another order."""
        channels = 1 if perm == to_last(len(perm)) else len(perm) - 1
        if free is None:
            free = value.shape[channels] == 1 or value.type.size == value.shape[0] * value.shape[channels]
        name, attrs = ("reshape", {"shape": shape}) if free else ("transpose", {"perm": perm})
        return value if free and value.shape == shape else self.emitter.add(primitive_named(name), (value,), attrs)[0]

    def copy(self, node: Node, attrs: dict[str, Any]) -> None:
        """A node as it was."""
        made = copy_node(self.graph, node, tuple([self.given(v) for v in node.inputs]), attrs)
        self.first.update(zip(node.outputs, made.outputs, strict=True))

    def place(self, node: Node, how: Placement) -> None:
        """A node channels-last."""
        inputs = []
        for kind, v in zip(how.inputs, node.inputs, strict=True):
            if kind == OPERAND:
                inputs.append(self.operand(v, node.outputs[0].type.rank))
            else:
                inputs.append(self.image(v) if kind == IMAGE else self.given(v))
        made: Iterable[Value] = inputs
        if node.op.name != "transpose":
            made = self.graph.add_node(node.op, tuple(inputs), how.attrs, node.location).outputs
        for kind, old, new in zip(how.outputs, node.outputs, made, strict=True):
            (self.last if kind == IMAGE else self.first)[old] = new


class _Run(PerGraph):
    """One run of the pass; the number of changes is that of the nodes that were made channels-last."""

    def remade(self, graph: Graph, attrs: Attributes) -> Graph | None:
        if not any(node.op.name in _CONVOLUTIONS and not node.attrs["channels_last"] for node in graph.nodes):
            return None
        placements, uses = _around_convolutions(graph)
        chosen = _chosen(placements, uses)
        if not any(node.op.name in _CONVOLUTIONS for node in chosen):
            return None
        writer = _Writer(graph)
        for node in graph.nodes:
            writer.emitter.location = node.location
            if node in chosen:
                writer.place(node, placements[node])
                self.changes += 1
            else:
                writer.copy(node, attrs.get(node, node.attrs))
        writer.graph.outputs = [writer.given(v) for v in graph.outputs]
        return writer.graph


def run(graph: Graph) -> tuple[Graph, int]:
    """Make convolutions channels-last; the number of changes is that of the nodes that are now.

    >>> from mycelia.ir.parser import parse_graph
    >>> graph = parse_graph('''graph main(%x: float32[2,3,8,8], %w: float32[4,3,3,3], %v: float32[4,4,3,3]) {
    ...   %1 = conv(%x, %w, strides=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1,
    ...             channels_last=False) : float32[2,4,6,6]
    ...   %2 = conv(%1, %v, strides=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1,
    ...             channels_last=False) : float32[2,4,4,4]
    ...   return %2
    ... }''')
    >>> new, changes = run(graph)
    >>> changes, [node.op.name for node in new.nodes]
    (2, ['transpose', 'conv', 'conv', 'transpose'])
    """
    if not ENABLED or get_context("device_target") != "CPU":  # elsewhere XLA chooses layouts
        return graph, 0
    here = _Run()
    made = here.graph(graph)
    return made, here.changes
