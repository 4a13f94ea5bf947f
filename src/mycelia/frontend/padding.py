"""A graph for padded inputs that gives what the graph for the true lengths gives.

Each value of the graph carries which of its axes have padding. An operator has a rule if the padding stays where
it is, whatever stands in it: elementwise operators, products and normalizations over other axes, lookups, moves of
axes. Where an operator folds a padded axis, its padding is first replaced by what changes nothing (0 for a sum or
product of matrices, the least value for a maximum), by comparing positions with the true length, which is an input
of the graph; a mean divides by it. Results are cut back to the true length by who runs the graph.

Everything else (random numbers, sorting, cumulative sums, batch statistics, control flow, ...) has no rule where it
meets a padded axis: :class:`NotPadded` says so, and the exact shape is compiled instead. Numbers that the program
computed from the length are constants of the graph; graphs of two lengths are then two, and not shared.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from mycelia.compiler.passes import dead_code
from mycelia.core.dtypes import DType, int64
from mycelia.core.errors import MyceliaError
from mycelia.ir.builder import Builder, constant_p
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.types import TensorType
from mycelia.ops import reduction, reduction_extrema
from mycelia.ops.casting import cast_p
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant, value_in_graph
from mycelia.tensor.mode import staging
from mycelia.tensor.tensor import wrap

#: For each axis of a value the true length it has been padded from, or None.
Dims = tuple[int | None, ...]
Made = list[tuple[Any, Dims]]


class NotPadded(Exception):
    """A graph cannot be padded; the text says which operator stands in the way."""


class _Padder:
    def __init__(self, graph: Graph, padded: dict[int, int]) -> None:
        self.graph, self.padded = graph, padded  # the padded by the true length
        self.builder = Builder(graph.name)
        self.env: dict[Value, tuple[Tensor, Dims]] = {}
        self.lengths: dict[int, Tensor] = {}
        self.node: Node

    def refuse(self, why: str) -> NotPadded:
        at = f" at {self.node.location}" if self.node.location is not None else ""
        return NotPadded(f"{self.node.op.name} {why}{at}")

    def shape(self, true: tuple[int, ...], dims: Dims) -> tuple[int, ...]:
        return tuple([self.padded[d] if d is not None else n for n, d in zip(true, dims, strict=True)])

    def masked(self, x: Tensor, dims: Dims, axes: tuple[int, ...], fill: Any) -> Tensor:
        """``x`` with the padding of some axes replaced."""
        from mycelia.ops.selection import where

        for axis in axes:
            length = dims[axis]
            if length is None:
                continue
            places = np.arange(self.padded[length]).reshape([-1 if i == axis else 1 for i in range(len(dims))])
            inside = constant(places) < self.lengths[length]
            x = where(inside, x, constant(np.asarray(fill).astype(x.dtype.np)))
        return x


def pad_graph(graph: Graph, axes: dict[int, Dims], padded: dict[int, int]) -> tuple[Graph, list[Dims], list[int]]:
    """The graph for padded inputs.

    Args:
        graph: the graph for the true lengths.
        axes: for parameters by position, which axes are to be padded: their true length, or None.
        padded: the padded length by the true length.

    Returns:
        A graph with the padded parameters, and after them the true lengths as int64 numbers; the padded axes of each
        output; and the true lengths in the order of the parameters.

    Raises:
        NotPadded: an operator meets a padded axis that has no rule for it.
    """
    padder = _Padder(graph, padded)
    builder = padder.builder
    params: list[Value] = []
    for i, p in enumerate(graph.params):
        dims = axes.get(i, (None,) * len(p.shape))
        params.append(builder.param(TensorType(p.type.dtype, padder.shape(p.shape, dims))))
        padder.env[p] = wrap(params[-1]), dims
    order = sorted(padded)
    for length in order:
        params.append(builder.param(TensorType(int64, ())))
        padder.lengths[length] = wrap(params[-1])
    with staging(builder):
        for node in graph.nodes:
            padder.node = node
            builder.location = node.location
            inputs = [padder.env[v] for v in node.inputs]
            if not any(d is not None for _, dims in inputs for d in dims):
                made = _unchanged(node, inputs)
            else:
                try:
                    made = _padded(padder, node, inputs)
                except MyceliaError:  # the operator refuses the padded shape
                    raise padder.refuse("takes no padded axis there") from None
            for v, (t, dims) in zip(node.outputs, made, strict=True):
                kept = all(d is None or d == n for d, n in zip(dims, v.shape, strict=True))
                if not kept or t.shape != padder.shape(v.shape, dims):
                    raise padder.refuse("made another shape than expected")
                padder.env[v] = t, dims
        outs = [padder.env[v] for v in graph.outputs]
        made_graph = builder.finish([value_in_graph(t) for t, _ in outs])
    return dead_code.run(made_graph)[0], [dims for _, dims in outs], order


def _unchanged(node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    if node.op is constant_p:
        return [(constant(node.attrs["value"].array), (None,) * node.outputs[0].type.rank)]
    out = apply(node.op, *[t for t, _ in inputs], **node.attrs)
    return [(t, (None,) * t.ndim) for t in (out if node.op.multi else (out,))]


def _padded(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    op = node.op
    rule = _RULES.get(op.name)
    if rule is not None:
        return rule(padder, node, inputs)
    shard = op.shard if isinstance(op.shard, str) else ""
    if not op.effects and set(shard.replace("->", ",").split(",")) == {"..."} and op.name not in _NOT_PER_ELEMENT:
        return _elementwise(padder, node, inputs)
    raise padder.refuse("has no rule for a padded axis")


#: Operators declared like elementwise ones whose result depends on other elements, or on the shape.
_NOT_PER_ELEMENT = frozenset({"random_advance", "dropout", "dropped", "sort", "cumsum", "cumprod", "flip", "roll"})


def _elementwise(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    rank = node.outputs[0].type.rank
    wanted: list[int | None] = [None] * rank
    for _, own in inputs:
        for i, d in enumerate(own):
            wanted[rank - len(own) + i] = d if d is not None else wanted[rank - len(own) + i]
    inputs = [
        _spread(padder, v, x, tuple(wanted[rank - v.type.rank :])) for v, x in zip(node.inputs, inputs, strict=True)
    ]
    dims = _joined(padder, [v.shape for v in node.inputs], [d for _, d in inputs])
    out = apply(node.op, *[t for t, _ in inputs], **node.attrs)
    return [(t, dims) for t in (out if node.op.multi else (out,))]


def _spread(padder: _Padder, value: Value, made: tuple[Tensor, Dims], wanted: Dims) -> tuple[Tensor, Dims]:
    """A value that is the same all along an axis, for the padded length of that axis; any other as it is."""
    dims = made[1]
    missing = [i for i, d in enumerate(wanted) if d is not None and dims[i] is None and value.shape[i] == d != 1]
    if not missing or value.node is None:
        return made
    node = value.node
    new = tuple([wanted[i] if i in missing else d for i, d in enumerate(dims)])
    shape = padder.shape(value.shape, new)
    if node.op.name == "broadcast_to":
        inner, own = padder.env[node.inputs[0]]
        offset = len(dims) - len(own)
        if all(i < offset or inner.shape[i - offset] == 1 for i in missing):
            return apply(node.op, inner, shape=shape), new
    elif node.op is constant_p:
        array = node.attrs["value"].array
        first = array[tuple([slice(0, 1) if i in missing else slice(None) for i in range(array.ndim)])]
        if first.size and np.array_equal(np.broadcast_to(first, array.shape), array):
            return constant(np.broadcast_to(first, shape)), new
    elif node.op.name == "full":
        return apply(node.op, *[padder.env[v][0] for v in node.inputs], **{**node.attrs, "shape": shape}), new
    return made


def _joined(padder: _Padder, shapes: list[tuple[int, ...]], dims: list[Dims]) -> Dims:
    """The padded axes of a broadcast result."""
    rank = max(map(len, shapes))
    result: list[int | None] = [None] * rank
    for axis in range(rank):
        found = set()
        for shape, own in zip(shapes, dims, strict=True):
            i = axis - rank + len(shape)
            if i >= 0 and (shape[i] != 1 or own[i] is not None):
                found.add(own[i])
        if len(found) > 1:
            raise padder.refuse("joins a padded axis with one that is not")
        result[axis] = found.pop() if found else None
    return tuple(result)


def _folded(fill: Callable[[DType], Any]) -> Callable[..., Made]:
    def rule(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
        ((x, dims),) = inputs
        axes = node.attrs["axes"]
        x = padder.masked(x, dims, axes, fill(x.dtype))
        return [(apply(node.op, x, **node.attrs), _without(dims, axes, node.attrs["keepdims"]))]

    return rule


def _place(fill: Callable[[DType], Any]) -> Callable[..., Made]:
    def rule(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
        ((x, dims),) = inputs
        axis = node.attrs["axis"]
        out = apply(node.op, padder.masked(x, dims, (axis,), fill(x.dtype)), **node.attrs)
        return [(t, _without(dims, (axis,), node.attrs["keepdims"])) for t in (out if node.op.multi else (out,))]

    return rule


def _without(dims: Dims, axes: tuple[int, ...], keepdims: bool) -> Dims:
    if keepdims:
        return tuple([None if i in axes else d for i, d in enumerate(dims)])
    return tuple([d for i, d in enumerate(dims) if i not in axes])


def _mean(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    ((x, dims),) = inputs
    axes, keepdims = node.attrs["axes"], node.attrs["keepdims"]
    out_dims = _without(dims, axes, keepdims)
    folded = [dims[a] for a in axes if dims[a] is not None]
    if not folded:
        return [(apply(node.op, x, **node.attrs), out_dims)]
    if not x.dtype.is_floating or x.dtype.itemsize < 4:
        raise padder.refuse("of this dtype over a padded axis")
    total = apply(reduction.reduce_sum_p, padder.masked(x, dims, axes, 0), axes=axes, keepdims=keepdims)
    count: Any = prod(node.inputs[0].shape[a] for a in axes if dims[a] is None)
    for length in folded:
        count = padder.lengths[length] * count
    return [(total / apply(cast_p, count, dtype=x.dtype), out_dims)]


def _least(dtype: DType) -> Any:
    if dtype.is_floating:
        return -np.inf
    return np.iinfo(dtype.np).min if dtype.kind in "iu" else False


def _greatest(dtype: DType) -> Any:
    if dtype.is_floating:
        return np.inf
    return np.iinfo(dtype.np).max if dtype.kind in "iu" else True


def _softmax(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    ((x, dims),) = inputs
    return [(apply(node.op, padder.masked(x, dims, node.attrs["axes"], -np.inf), **node.attrs), dims)]


def _rows(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    """Normalization of the last axes of the first input by parameters."""
    begin = node.attrs.get("begin", node.inputs[0].type.rank - node.inputs[-1].type.rank)
    (_, dims), rest = inputs[0], inputs[1:]
    if any(d is not None for d in dims[begin:]) or any(d is not None for _, own in rest for d in own):
        raise padder.refuse("normalizes over a padded axis")
    out = apply(node.op, *[t for t, _ in inputs], **node.attrs)
    return [(t, dims) for t in (out if node.op.multi else (out,))]


def _dense(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    (_, dims), rest = inputs[0], inputs[1:]
    if dims[-1] is not None or any(d is not None for _, own in rest for d in own):
        raise padder.refuse("multiplies over a padded axis")
    return [(apply(node.op, *[t for t, _ in inputs], **node.attrs), (*dims[:-1], None))]


def _matmul(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    (a, da), (b, db) = inputs
    ta, tb = node.attrs.get("transpose_a", False), node.attrs.get("transpose_b", False)
    if len(da) < 2 or len(db) < 2:
        raise padder.refuse("of a vector with a padded axis")
    row, inner_a = (da[-1], -2) if ta else (da[-2], -1)
    column, inner_b = (db[-2], -1) if tb else (db[-1], -2)
    va, vb = node.inputs
    n_a, n_b = da[inner_a], db[inner_b]
    a, da = _spread(padder, va, (a, da), tuple([n_b if i == len(da) + inner_a else d for i, d in enumerate(da)]))
    b, db = _spread(padder, vb, (b, db), tuple([n_a if i == len(db) + inner_b else d for i, d in enumerate(db)]))
    if da[inner_a] != db[inner_b]:
        raise padder.refuse("multiplies a padded axis with one that is not")
    if da[inner_a] is not None:
        a = padder.masked(a, da, (len(da) + inner_a,), 0)
        b = padder.masked(b, db, (len(db) + inner_b,), 0)
    batch = _joined(padder, [v.shape[:-2] for v in node.inputs], [da[:-2], db[:-2]]) if len(da) + len(db) > 4 else ()
    return [(apply(node.op, a, b, **node.attrs), (*batch, row, column))]


def _transpose(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    ((x, dims),) = inputs
    (order,) = node.attrs.values()
    return [(apply(node.op, x, **node.attrs), tuple([dims[i] for i in order]))]


def _reshape(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    ((x, dims),) = inputs
    before, after = node.inputs[0].shape, node.attrs["shape"]
    if 0 in before:
        raise padder.refuse("of an empty tensor")
    out: list[int | None] = [None] * len(after)
    i = j = 0
    while i < len(before) or j < len(after):
        group_i, group_j = [i] if i < len(before) else [], [j] if j < len(after) else []
        a, b = prod(before[k] for k in group_i), prod(after[k] for k in group_j)
        if group_i and a == 1 and dims[i] is None:
            i += 1
            continue
        if group_j and b == 1 and not (group_i and dims[i] is not None and a == 1):
            j += 1
            continue
        while a != b:
            if a < b:
                group_i.append(i + len(group_i))
                a *= before[group_i[-1]]
            else:
                group_j.append(j + len(group_j))
                b *= after[group_j[-1]]
        tracked = [k for k in group_i if dims[k] is not None]
        if tracked:
            if len(group_i) != 1 or len(group_j) != 1:
                raise padder.refuse("joins or splits a padded axis")
            out[j] = dims[i]
        i, j = i + len(group_i), j + len(group_j)
    made = tuple(out)
    return [(apply(node.op, x, shape=padder.shape(after, made)), made)]


def _broadcast(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    ((x, dims),) = inputs
    shape = node.attrs["shape"]
    made = (None,) * (len(shape) - len(dims)) + dims
    return [(apply(node.op, x, shape=padder.shape(shape, made)), made)]


def _gather(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    (data, dd), (index, di) = inputs
    axis = node.attrs["axis"]
    if node.attrs.get("batch_dims", 0) or dd[axis] is not None:
        raise padder.refuse("looks up along a padded axis")
    return [(apply(node.op, data, index, **node.attrs), (*dd[:axis], *di, *dd[axis + 1 :]))]


def _embedding(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    placed = [(t, d) for t, d in inputs if any(x is not None for x in d)]
    if len(placed) != 1 or node.outputs[0].type.rank != len(placed[0][1]) + 1:
        raise padder.refuse("looks up along a padded axis")
    return [(apply(node.op, *[t for t, _ in inputs], **node.attrs), (*placed[0][1], None))]


def _concat(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    axis = node.attrs["axis"]
    all_dims = {d for _, d in inputs}
    if len(all_dims) != 1 or next(iter(all_dims))[axis] is not None:
        raise padder.refuse("joins along a padded axis")
    return [(apply(node.op, *[t for t, _ in inputs], **node.attrs), inputs[0][1])]


def _slice(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    ((x, dims),) = inputs
    attrs = {k: list(v) for k, v in node.attrs.items()}
    for axis, length in enumerate(dims):
        if length is not None:
            if (attrs["starts"][axis], attrs["stops"][axis], attrs["steps"][axis]) != (0, length, 1):
                raise padder.refuse("cuts a padded axis")
            attrs["stops"][axis] = padder.padded[length]
    return [(apply(node.op, x, **{k: tuple(v) for k, v in attrs.items()}), dims)]


def _cross_entropy(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    (_, dims), (_, labels), *rest = inputs
    if len(dims) != 2 or dims[1] is not None or labels != dims[:1] or node.attrs["reduction"] != "none" or rest:
        raise padder.refuse("of this form")
    return [(apply(node.op, *[t for t, _ in inputs], **node.attrs), labels)]


def _convolution(padder: _Padder, node: Node, inputs: list[tuple[Tensor, Dims]]) -> Made:
    (_, dims), rest = inputs[0], inputs[1:]
    if any(d is not None for d in dims[1:]) or any(d is not None for _, own in rest for d in own):
        raise padder.refuse("slides over a padded axis")
    out = apply(node.op, *[t for t, _ in inputs], **node.attrs)
    made = out if node.op.multi else (out,)
    return [(t, (dims[0], *[None] * (t.ndim - 1))) for t in made]


_RULES: dict[str, Callable[..., Made]] = {
    reduction.reduce_sum_p.name: _folded(lambda dtype: 0),
    reduction.reduce_prod_p.name: _folded(lambda dtype: 1),
    reduction.reduce_all_p.name: _folded(lambda dtype: True),
    reduction.reduce_any_p.name: _folded(lambda dtype: False),
    reduction_extrema.reduce_max_p.name: _folded(_least),
    reduction_extrema.reduce_min_p.name: _folded(_greatest),
    "max_with_index": _place(_least),
    "min_with_index": _place(_greatest),
    "argmax": _place(_least),
    "argmin": _place(_greatest),
    reduction.reduce_mean_p.name: _mean,
    "softmax": _softmax,
    "log_softmax": _softmax,
    "layer_norm": _rows,
    "rms_norm": _rows,
    "dense": _dense,
    "matmul": _matmul,
    "transpose": _transpose,
    "reshape": _reshape,
    "broadcast_to": _broadcast,
    "gather": _gather,
    "embedding": _embedding,
    "concat": _concat,
    "slice": _slice,
    "cross_entropy": _cross_entropy,
    "conv": _convolution,
    "max_pool": _convolution,
    "avg_pool": _convolution,
    "batch_norm_inference": _convolution,
}  # fmt: skip
