"""Sums over the rows of a mapped graph, without the rows where they would be large.

The cotangent of an unmapped argument of ``vmap`` (a weight, say) is the sum over the rows of what each row
gives: made row by row it takes the memory of as many weights as there are rows. But most of these end in a
product over few elements, and the sum of products of rows is one product of all rows. So the sum is moved
from the outputs of the graph towards its inputs, through what is linear:

- sums, differences, and rearrangements of elements: the sum of each operand;
- a product with something that is the same for all rows: the sum of the other factor;
- ``matmul`` of two matrices: one ``matmul`` whose inner axis runs over rows and elements;
- the weight gradient of a convolution: one over the rows of all batches;
- scattered additions along the first axis: one of all rows.

What is met elsewhere is mapped and then summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mycelia.autodiff.transform import restage
from mycelia.ir.builder import Builder, constant_p
from mycelia.ir.control import vmap_p
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ops.reduction import reduce_sum
from mycelia.ops.shape import permuted, reshaped
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, scalar, value_in_graph
from mycelia.tensor.mode import staging
from mycelia.tensor.tensor import wrap

#: Operators of one input that commute with sums of inputs.
_COMMUTING = frozenset({"cast", "conj", "neg", "reduce_sum", "reshape", "transpose"})
#: How many operators a sum is moved through at most.
_DEPTH = 200

_Make = Callable[[], Tensor]


class _Sums:
    """The plan for one graph: which values are mapped, and how the sums are made of them."""

    def __init__(self, graph: Graph, args: Sequence[Tensor], batched: set[Value], size: int) -> None:
        self.args = dict(zip(graph.params, args, strict=True))
        self.batched, self.size = batched, size
        self.needed: dict[Value, None] = {}
        self.rows: dict[Value, Tensor] = {}
        self._made: dict[Value, _Make] = {}

    def plan(self, value: Value, depth: int = 0) -> _Make:
        """How to make the sum of a value over the rows."""
        found = self._made.get(value)
        if found is None:
            found = self._made[value] = _once(self._plan(value, depth))
        return found

    def _plan(self, value: Value, depth: int) -> _Make:
        node = value.node
        if self.size == 0:
            node = None
        elif value not in self.batched:
            shared = self.shared(value)
            return lambda: shared() * scalar(self.size, value.type.dtype)
        if node is not None and depth < _DEPTH:
            name = node.op.name
            if name in ("add", "sub") and all(v.type == value.type for v in node.inputs):
                parts = [self.plan(v, depth + 1) for v in node.inputs]
                return lambda: restage(node, [p() for p in parts])[0]
            if name in _COMMUTING and node.inputs[0].type.dtype.is_inexact and value.type.dtype.is_inexact:
                inner = self.plan(node.inputs[0], depth + 1)
                return lambda: restage(node, [inner()])[0]
            if name in ("mul", "matmul"):
                held = [v not in self.batched for v in node.inputs]
                if any(held) and (name == "matmul" or node.inputs[held.index(False)].type == value.type):
                    factors = [
                        self.shared(v) if h else self.plan(v, depth + 1) for v, h in zip(node.inputs, held, strict=True)
                    ]
                    return lambda: restage(node, [f() for f in factors])[0]
            if all(v in self.batched for v in node.inputs):
                if name == "matmul" and all(len(v.type.shape) == 2 for v in node.inputs):
                    return self._matmul(node)
                if name == "conv_weight_grad":
                    return self._merged(node)
                if name == "add_at" and node.attrs["axis"] == 0 and node.attrs["batch_dims"] == 0:
                    every = [self.mapped(v) for v in node.inputs]
                    return lambda: apply(node.op, *[e() for e in every], **node.attrs)
        rows = self.mapped(value)
        return lambda: reduce_sum(rows(), (0,))

    def mapped(self, value: Value) -> _Make:
        """A mapped value, with its rows along axis 0."""
        if value in self.args:
            return lambda: self.args[value]
        self.needed[value] = None
        return lambda: self.rows[value]

    def shared(self, value: Value) -> _Make:
        """A value that is the same for all rows."""
        node = value.node
        if value in self.args:
            return lambda: self.args[value]
        if node is not None and node.op is constant_p:
            return lambda: restage(node, [])[0]
        self.needed[value] = None
        return lambda: self.rows[value][0]

    def _matmul(self, node: Node) -> _Make:
        first, second = [self.mapped(v) for v in node.inputs]

        def make() -> Tensor:
            a = _inner_first(first(), node.attrs["transpose_a"])
            b = _inner_first(second(), not node.attrs["transpose_b"])
            attrs = {**node.attrs, "transpose_a": True, "transpose_b": False}
            made: Tensor = apply(node.op, a, b, **attrs)
            return made

        return make

    def _merged(self, node: Node) -> _Make:
        every = [self.mapped(v) for v in node.inputs]
        return lambda: apply(node.op, *[_flat(e()) for e in every], **node.attrs)


def _flat(x: Tensor) -> Tensor:
    """The rows and the axis after them as one axis."""
    return reshaped(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def _inner_first(x: Tensor, is_first: bool) -> Tensor:
    """Rows of matrices as one matrix: rows and inner axis, other axis; the inner axis is the first one or the last."""
    return _flat(x if is_first else permuted(x, (0, 2, 1)))


def _once(make: _Make) -> _Make:
    made: list[Tensor] = []

    def again() -> Tensor:
        if not made:
            made.append(make())
        return made[0]

    return again


def _exposed(graph: Graph, values: tuple[Value, ...]) -> Graph:
    """The graph with other values as its outputs, and only what they need; kept with the graph."""
    key = ("exposed", values)
    if key not in graph.derived:
        wanted, nodes = set(values), []
        for node in reversed(graph.nodes):
            if not wanted.isdisjoint(node.outputs):
                nodes.append(node)
                wanted.update(node.inputs)
        builder = Builder(graph.name)
        env = {p: wrap(builder.param(p.type)) for p in graph.params}
        with staging(builder):
            for node in reversed(nodes):
                env.update(zip(node.outputs, restage(node, [env[v] for v in node.inputs]), strict=True))
            graph.derived[key] = builder.finish([value_in_graph(env[v]) for v in values])
    found: Graph = graph.derived[key]
    return found


def mapped_and_summed(
    graph: Graph,
    args: Sequence[Tensor],
    mapped: tuple[bool, ...],
    size: int,
    summed: Sequence[bool],
    batched: set[Value],
) -> list[Tensor]:
    """Stage ``graph`` on every row of the mapped arguments; ``summed`` outputs as their sum over the rows.

    Args:
        graph: takes one row of each mapped argument, and the others whole.
        args: a tensor for each parameter.
        mapped: which have their rows along axis 0.
        size: the number of rows.
        summed: which outputs are summed; the others have their rows along axis 0.
        batched: the values of ``graph`` that differ from row to row.
    """
    sums = _Sums(graph, args, batched, size)
    plans = [sums.plan(v) if s else None for v, s in zip(graph.outputs, summed, strict=True)]
    values = tuple(dict.fromkeys([*[v for v, s in zip(graph.outputs, summed, strict=True) if not s], *sums.needed]))
    if values:
        found = apply(vmap_p, *args, graph=_exposed(graph, values), mapped=mapped, size=size)
        sums.rows.update(zip(values, found, strict=True))
    return [sums.rows[v] if p is None else p() for v, p in zip(graph.outputs, plans, strict=True)]
