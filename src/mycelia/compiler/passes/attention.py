"""Attention that is written out becomes one operator: ``softmax(q @ k.T * scale + mask) @ v`` by ``attention``.

Recognised before differentiation, so that the gradient is the operator's too, and neither pass keeps the weights in
memory. It has to be sure that nothing else uses the scores or the weights. The factor may stand at the scores or at
either operand, as a product or a quotient; the mask may be added, or choose by ``where`` with a constant; weights may
be converted. Rows that may attend to nothing stay what the softmax makes of them (NaN).

Transposes that only put the heads before the rows, or back, go: the operator reads both layouts. Query, key and value
that are the thirds of one array are passed as that array, so that their gradients are one array as well.

Nothing happens until somebody who has a kernel enables it (``native``): in XLA the pattern is as good as the operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mycelia.compiler.passes.algebraic import uniform
from mycelia.core import dtypes as dt
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.primitive import primitive_named
from mycelia.ir.rewriter import Emitter, all_graphs, rewrite, use_counts
from mycelia.ops.attention import attention_attrs, attention_p

#: Fewer scores of one head than this are not worth it.
LEAST_SCORES = 256

_HEADS_LAST = (0, 2, 1, 3)


def _never() -> bool:
    return False


_enabled: Callable[[], bool] = _never


def enable(when: Callable[[], bool]) -> None:
    """Let the pass run when ``when()`` is true."""
    global _enabled
    _enabled = when


@dataclass(frozen=True)
class _Found:
    """Operands of an attention: the mask is added, or chooses where ``fill`` is not put."""

    q: Value
    k: Value
    v: Value
    scale: float
    mask: Value | None = None
    chooses: bool = False
    inverted: bool = False
    fill: float = -math.inf


def _made_by(value: Value, *names: str) -> Node | None:
    node = value.node
    return node if node is not None and node.op.name in names else None


def _number(value: Value) -> float | None:
    """The one number that all elements of a floating value are, if it is known."""
    if value.type.dtype not in dt.FLOATS:
        return None
    found = uniform(value, {})
    return None if found is None else float(found)


def _unscaled(value: Value) -> tuple[Value, float]:
    """A value without the constant factors it was multiplied with last, and their product."""
    scale = 1.0
    while (node := _made_by(value, "mul", "div")) is not None:
        for i in (0, 1) if node.op.name == "mul" else (1,):
            number = _number(node.inputs[i])
            other = node.inputs[1 - i]
            if number is not None and math.isfinite(number) and number and other.type == value.type:
                scale = scale * number if node.op.name == "mul" else scale / number
                value = other
                break
        else:
            break
    return value, scale


class _Matcher:
    """Looks for the pattern; with ``counts``, only where nothing else uses what goes."""

    def __init__(self, counts: dict[Value, int] | None) -> None:
        self.counts = counts

    def inner(self, value: Value, *names: str) -> Node | None:
        """The node of one of these operators that makes a value which nothing else uses."""
        if self.counts is not None and self.counts.get(value) != 1:
            return None
        return _made_by(value, *names)

    def find(self, weights: Value, v: Value, turned: bool) -> _Found | None:
        node = self.inner(weights, "cast", "softmax")
        if node is not None and node.op.name == "cast":
            node = self.inner(node.inputs[0], "softmax")
        if node is None or node.attrs["axes"] != (weights.type.rank - 1,):
            return None
        if turned:
            v_node = _made_by(v, "transpose")
            if v_node is None or not _swaps_last(v_node):
                return None
            v = v_node.inputs[0]
        return self.scores(node.inputs[0], v)

    def scores(self, value: Value, v: Value) -> _Found | None:
        """The pattern from the scores on that a softmax takes."""
        node = self.inner(value, "add", "where", "mul", "div", "cast", "matmul")
        if node is not None and node.op.name == "cast" and _widens(node):
            value = node.inputs[0]
            node = self.inner(value, "add", "where", "mul", "div", "matmul")
        if node is None:
            return None
        if node.op.name == "add":
            for i in (0, 1):
                found = self.product(node.inputs[i], value, v)
                if found is not None and node.inputs[1 - i].type.dtype in dt.FLOATS:
                    return _Found(*found, mask=node.inputs[1 - i])
            return None
        if node.op.name == "where":
            for i in (1, 2):
                fill = _number(node.inputs[3 - i])
                found = None if fill is None or fill != fill else self.product(node.inputs[i], value, v)
                if found is not None and fill is not None and node.inputs[0].type.dtype is dt.bool_:
                    return _Found(
                        *found, mask=node.inputs[0], chooses=True, inverted=i == 2, fill=float(fill)
                    )  # fmt: skip
            return None
        found = self.product(value, value, v)
        return None if found is None else _Found(*found)

    def product(self, value: Value, whole: Value, v: Value) -> tuple[Value, Value, Value, float] | None:
        """Query, key, value and factor of plain scores of the shape of ``whole``."""
        if value.shape != whole.shape:
            return None
        scale = 1.0
        while (node := self.inner(value, "mul", "div", "cast", "matmul")) is not None and node.op.name != "matmul":
            if node.op.name == "cast":
                if not _widens(node):
                    return None
                value = node.inputs[0]
                continue
            inner, factor = _unscaled_once(value)
            if inner is value:
                return None
            value, scale = inner, scale * factor
        if node is None or node.attrs["transpose_a"]:
            return None
        q, k = node.inputs
        k, k_scale = _unscaled(k)
        if not node.attrs["transpose_b"]:
            turned = _made_by(k, "transpose")
            if turned is None or not _swaps_last(turned):
                return None
            k = turned.inputs[0]
            k, more = _unscaled(k)
            k_scale *= more
        q, q_scale = _unscaled(q)
        if not (q.type.rank == k.type.rank == v.type.rank in (3, 4)) or q.dtype != k.dtype or q.dtype != v.dtype:
            return None
        if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2] or k.shape[-2] != v.shape[-2]:
            return None
        return q, k, v, scale * q_scale * k_scale


def _unscaled_once(value: Value) -> tuple[Value, float]:
    node = value.node
    assert node is not None
    for i in (0, 1) if node.op.name == "mul" else (1,):
        number, other = _number(node.inputs[i]), node.inputs[1 - i]
        if number is not None and math.isfinite(number) and number and other.shape == value.shape:
            return other, number if node.op.name == "mul" else 1 / number
    return value, 1.0


def _widens(node: Node) -> bool:
    return node.inputs[0].type.dtype in dt.FLOATS and node.outputs[0].type.dtype is dt.float32


def _swaps_last(node: Node) -> bool:
    perm = node.attrs["perm"]
    n = len(perm)
    return bool(n >= 2 and perm == (*range(n - 2), n - 1, n - 2))


# Layouts ------------------------------------------------------------------------------------------------


def _part(value: Value, axis: int) -> tuple[Value, int] | None:
    """What a value is one place of an axis of, which it does not have any more, and the place."""
    node = _made_by(value, "reshape")
    cut = None if node is None else _made_by(node.inputs[0], "slice")
    if cut is None:
        return None
    whole = cut.inputs[0]
    shape, begin = whole.shape, cut.attrs["starts"]
    if len(shape) != 5 or shape[axis] != 3 or (*shape[:axis], *shape[axis + 1 :]) != value.shape:
        return None
    place = begin[axis]
    wanted = tuple([place + 1 if i == axis else n for i, n in enumerate(shape)])
    if cut.attrs["stops"] != wanted or any(s != 1 for s in cut.attrs["steps"]) or sum(begin) != place:
        return None
    return whole, place


def _packed(values: Sequence[Value]) -> Value | None:
    """The array (batch, rows, 3, heads, features) that query, key and value are the thirds of."""
    found = [_part(x, 0) for x in values]
    if all(p is not None and p[0] is found[0][0] and p[1] == i for i, p in enumerate(found)):  # type: ignore[index]
        node = _made_by(found[0][0], "transpose")  # type: ignore[index]
        if node is not None and node.attrs["perm"] == (2, 0, 3, 1, 4):
            return node.inputs[0]
    tokens = [_tokens(x) for x in values]
    parts = [None if x is None else _part(x, 2) for x in tokens]
    if all(p is not None and p[0] is parts[0][0] and p[1] == i for i, p in enumerate(parts)):  # type: ignore[index]
        return parts[0][0]  # type: ignore[index]
    return None


def _tokens(value: Value) -> Value | None:
    """A value (batch, heads, rows, features) with its heads after its rows, if it was made from that."""
    node = _made_by(value, "transpose")
    return node.inputs[0] if node is not None and node.attrs["perm"] == _HEADS_LAST else None


def _operands(found: _Found) -> tuple[tuple[Value, ...], str]:
    """What the operator takes, and its layout."""
    heads = found.q, found.k, found.v
    packed = _packed(heads)
    if packed is not None:
        return (packed,), "packed"
    tokens = [_tokens(x) for x in heads]
    if all(x is not None for x in tokens):
        return tuple([x for x in tokens if x is not None]), "tokens"
    return heads, "heads"


# ---------------------------------------------------------------------------------------------------------


def _worth(found: _Found, result: Value) -> bool:
    q, k = found.q, found.k
    return (
        q.type.dtype in (dt.float32, dt.bfloat16) and result.type.dtype is q.type.dtype and 0 not in result.shape
        and q.shape[-2] * k.shape[-2] >= LEAST_SCORES and q.shape[-1] > 0
        and (found.mask is None or found.mask.type.rank <= q.type.rank)
    )  # fmt: skip


def run(graph: Graph) -> tuple[Graph, int]:
    """Put the operator in the place of the pattern, wherever it stands."""
    if not _enabled():
        return graph, 0
    counts: dict[Value, int] = {}
    for g in all_graphs(graph):
        if any(n.op.name == "softmax" for n in g.nodes):
            counts.update(use_counts(g))
    if not counts:
        return graph, 0

    def visit(node: Node, inputs: tuple[Value, ...], attrs: dict[str, Any], emitter: Emitter) -> Sequence[Value] | None:
        if attrs["transpose_a"]:
            return None
        if _Matcher(counts).find(node.inputs[0], node.inputs[1], attrs["transpose_b"]) is None:
            return None
        found = _Matcher(None).find(inputs[0], inputs[1], attrs["transpose_b"])
        if found is None or not _worth(found, node.outputs[0]):
            return None
        return (_emitted(found, node.outputs[0], emitter),)

    return rewrite(graph, visit, only=("matmul",))


def _emitted(found: _Found, result: Value, emitter: Emitter) -> Value:
    def one(name: str, *inputs: Value, **attrs: Any) -> Value:
        return emitter.add(primitive_named(name), inputs, attrs)[0]

    arrays, layout = _operands(found) if found.q.type.rank == 4 else ((found.q, found.k, found.v), "heads")
    mask = found.mask
    if mask is not None and found.inverted:
        mask = one("logical_not", mask)
    if found.q.type.rank == 3:
        arrays = tuple([one("reshape", x, shape=(x.shape[0], 1, *x.shape[1:])) for x in arrays])
        if mask is not None and mask.type.rank == 3:
            mask = one("reshape", mask, shape=(mask.shape[0], 1, *mask.shape[1:]))
    given = arrays if mask is None else (*arrays, mask)
    attrs = attention_attrs(found.scale, fill=found.fill, layout=layout, closed="nan")
    made = emitter.add(attention_p, given, attrs)[0]
    if layout != "heads":
        made = one("transpose", made, perm=_HEADS_LAST)
    return made if made.shape == result.shape else one("reshape", made, shape=result.shape)
