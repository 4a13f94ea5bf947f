"""Forward-mode differentiation of graphs: ``pushforward`` stages a graph together with its tangents.

Node by node, in the order of the graph. The rule of an operator comes from its reverse rule by transposing
twice (Radul et al., "You only linearize once", 2022, read backwards): the cotangents of the inputs are a linear
function of those of the outputs, so that function is staged on fresh cotangents and transposed with respect
to them; what is left maps input tangents to output tangents. The values it is staged on (zeros) feed nothing
that is kept, and dead code removal takes them away. Operators that are linear in their inputs, or in each of
two, are simply applied to the tangents. Operators whose reverse rule is derived from the lowering get theirs
from ``jax.jvp``.

Control flow becomes control flow of pushed graphs: a loop carries the tangents of what it carries, found
active by a fixpoint. Tangents that are zero are None and take no node. All that is staged consists of
operators, so it can be differentiated again, either way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from mycelia.autodiff.rules import pull_back, zeros, zeros_like
from mycelia.autodiff.transform import linearize, restage, stage_inline
from mycelia.ir.builder import Builder
from mycelia.ir.control import barrier_p, cond_p, scan_p, while_p
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.primitive import PRIMITIVES, Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.shape import broadcast_to
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, value_in_graph
from mycelia.tensor.mode import current_builder, staging
from mycelia.tensor.tensor import wrap

Tangents = list[Tensor | None]
#: A forward rule: node, inputs, their tangents -> outputs, their tangents (None is zero).
ForwardRule = Callable[[Node, list[Tensor], Tangents], tuple[list[Tensor], Tangents]]

FORWARD_RULES: dict[str, ForwardRule] = {}

#: Operators that are linear in all their inexact inputs together: their tangent is themselves of the tangents.
LINEAR = frozenset({
    "add_n", "broadcast_to", "cast", "complex", "concat", "conj", "cumsum", "diag_embed", "diagonal",
    "dynamic_slice", "dynamic_update", "flip", "gather", "gather_elements", "gather_nd", "identity", "imag",
    "index_get", "index_put", "matrix_of_diagonals", "neg", "real", "reduce_mean", "reduce_sum", "reshape", "roll",
    "slice", "split", "stack", "transpose", "tril", "triu", "unstack", "where",
})  # fmt: skip

#: Operators that are linear in each inexact input while the others are held (a convolution: without a bias).
MULTILINEAR = frozenset({"conv", "conv_input_grad", "conv_weight_grad", "cross", "einsum", "matmul", "mul"})


def pushforward(
    graph: Graph, args: Sequence[Tensor], tangents: Sequence[Tensor | None], wanted: Sequence[bool] | None = None
) -> tuple[list[Tensor], Tangents]:
    """Stage ``graph`` on ``args`` and the tangents it gives for theirs.

    Args:
        graph: the graph to differentiate.
        args: a tensor for each parameter.
        tangents: a tensor of the same type for each, or None for zero.
        wanted: which outputs' tangents are asked for (all by default); what leads to no other is not made.

    Returns:
        The outputs, and a tangent for each (None for zero).

    Raises:
        UnsupportedError: an operator on the way has no derivative.
    """
    env: dict[Value, Tensor] = dict(zip(graph.params, args, strict=True))
    moving: dict[Value, Tensor] = {
        p: t for p, t in zip(graph.params, tangents, strict=True) if t is not None and p.type.dtype.is_inexact
    }
    useful = _leading_to(graph, wanted)
    for node in graph.nodes:
        inputs = [env[v] for v in node.inputs]
        pushed_ = [moving.get(v) for v in node.inputs]
        found: Tangents = []
        if not node.op.differentiable or node not in useful or all(t is None for t in pushed_):
            outs = restage(node, inputs)
        else:
            outs, found = _located(node, inputs, pushed_)
        env.update(zip(node.outputs, outs, strict=True))
        for value, tangent in zip(node.outputs, found, strict=False):
            if tangent is not None and value.type.dtype.is_inexact:
                moving[value] = tangent
    return [env[v] for v in graph.outputs], [moving.get(v) for v in graph.outputs]


def _leading_to(graph: Graph, wanted: Sequence[bool] | None) -> set[Node]:
    """The nodes on which the wanted outputs depend."""
    needed = {v for i, v in enumerate(graph.outputs) if wanted is None or wanted[i]}
    useful: set[Node] = set()
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            useful.add(node)
            needed.update(node.inputs)
    return useful


def _located(node: Node, inputs: list[Tensor], tangents: Tangents) -> tuple[list[Tensor], Tangents]:
    """Apply the rule of a node; what it adds to the graph gets the node's line."""
    builder = current_builder()
    before, builder.location = builder.location, node.location
    try:
        rule = FORWARD_RULES.get(node.op.name, _operator)
        return rule(node, inputs, tangents)
    finally:
        builder.location = before


def _operator(node: Node, inputs: list[Tensor], tangents: Tangents) -> tuple[list[Tensor], Tangents]:
    outs = restage(node, inputs)
    name = node.op.name
    if name in LINEAR and node.attrs.get("mode") not in ("mul", "max", "min"):
        return outs, _applied(node, [_linear_input(x, t) for x, t in zip(inputs, tangents, strict=True)])
    if name in MULTILINEAR and not (name == "conv" and len(inputs) > 2):
        total: Tangents = [None]
        for i, t in enumerate(tangents):
            if t is not None:
                total = [
                    _sum(s, a) for s, a in zip(total, _applied(node, [*inputs[:i], t, *inputs[i + 1 :]]), strict=True)
                ]
        return outs, total
    if node.op.derived_vjp:
        return outs, _derived(node, inputs, outs, tangents)
    return outs, _transposed_twice(node, inputs, outs, tangents)


def _sum_of_two(node: Node, inputs: list[Tensor], tangents: Tangents) -> tuple[list[Tensor], Tangents]:
    """``add`` and ``sub``."""
    outs = restage(node, inputs)
    first, second = tangents
    if first is not None and second is not None:
        return outs, _applied(node, [first, second])
    if second is not None and node.op.name == "sub":
        second = -second
    moved = second if first is None else first
    return outs, [broadcast_to(moved, outs[0].shape)]


def _linear_input(x: Tensor, tangent: Tensor | None) -> Tensor:
    if not x.dtype.is_inexact:
        return x
    return zeros_like(x) if tangent is None else tangent


def _applied(node: Node, inputs: list[Tensor]) -> Tangents:
    made = apply(node.op, *inputs, **node.attrs)
    return list(made) if node.op.multi else [made]


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a + b


def _transposed_twice(node: Node, inputs: list[Tensor], outs: list[Tensor], tangents: Tangents) -> Tangents:
    needs = [t is not None for t in tangents]
    inner = Builder(f"{node.op.name}_transpose", parent=current_builder())
    slots = [i for i, o in enumerate(outs) if o.dtype.is_inexact]
    cts: Tangents = [None] * len(outs)
    for i in slots:
        cts[i] = wrap(inner.param(TensorType(outs[i].dtype, outs[i].shape)))
    inner.location = node.location
    with staging(inner):
        grads = pull_back(node.op, node.attrs, inputs, outs, cts, needs)
        given = [i for i, g in enumerate(grads) if g is not None and needs[i]]
        transpose = inner.finish([value_in_graph(g) for i in given if (g := grads[i]) is not None])
    operands = [zeros_like(outs[i]) for i in slots] + [wrap(outer) for outer, _ in inner.lifted]
    active = [True] * len(slots) + [False] * len(inner.lifted)
    _, _, back = linearize(transpose, operands, active)
    found = back([tangents[i] for i in given])
    result: Tangents = [None] * len(outs)
    for i, t in zip(slots, found, strict=False):
        result[i] = t
    return result


def _derived(node: Node, inputs: list[Tensor], outs: list[Tensor], tangents: Tangents) -> Tangents:
    wanted = tuple([i for i, t in enumerate(tangents) if t is not None])
    given = [t for t in tangents if t is not None]
    made = apply(_jvp_primitive(node.op), *inputs, *given, wanted=wanted, attrs=tuple(node.attrs.items()))
    found = iter(made)
    return [next(found) if o.dtype.is_inexact else None for o in outs]


def _jvp_primitive(op: Primitive) -> Primitive:
    """The primitive that ``jax.jvp`` of the lowering makes: inputs and tangents to output tangents."""
    name = f"{op.name}_jvp"
    if name in PRIMITIVES:
        return PRIMITIVES[name]

    def infer(*types: TensorType, wanted: tuple[int, ...], attrs: Any) -> tuple[TensorType, ...]:
        made = op.infer(*types[: len(types) - len(wanted)], **dict(attrs))
        return tuple([t for t in ((made,) if isinstance(made, TensorType) else made) if t.dtype.is_inexact])

    def lower(*arrays: Any, wanted: tuple[int, ...], attrs: Any) -> tuple[Any, ...]:
        n = len(arrays) - len(wanted)
        given = dict(zip(wanted, arrays[n:], strict=True))
        tangents = [given[i] if i in given else _zero_tangent(x) for i, x in enumerate(arrays[:n])]
        _, made = jax.jvp(lambda *a: op.lower(*a, **dict(attrs)), arrays[:n], tuple(tangents))
        return tuple([t for t in (made if op.multi else (made,)) if t.dtype != jax.dtypes.float0])

    return Primitive(name, infer=infer, lower=lower, multi=True, derived_vjp=True)


def _zero_tangent(x: Any) -> Any:
    inexact = jax.numpy.issubdtype(x.dtype, jax.numpy.inexact)
    return jax.numpy.zeros_like(x) if inexact else np.zeros(x.shape, jax.dtypes.float0)


# graphs with their tangents


@dataclass(frozen=True)
class Pushed:
    """A graph with tangents.

    ``graph`` takes what the original takes and then a tangent for each parameter that has one; it gives what
    the original gives and then a tangent for each output in ``out_mask``.
    """

    graph: Graph
    out_mask: tuple[bool, ...]


def pushed(graph: Graph, mask: tuple[bool, ...], forced: tuple[bool, ...] | None = None) -> Pushed:
    """``graph`` with tangents for the parameters in ``mask``; kept with the graph, so made once.

    ``forced`` outputs get a tangent even if it is zero.
    """
    key = ("pushed", mask, forced)
    if key not in graph.derived:
        graph.derived[key] = _push(graph, mask, forced)
    found: Pushed = graph.derived[key]
    return found


def _push(graph: Graph, mask: tuple[bool, ...], forced: tuple[bool, ...] | None) -> Pushed:
    builder = Builder(f"{graph.name}_pushforward")
    params = [wrap(builder.param(v.type)) for v in graph.params]
    given = [wrap(builder.param(v.type)) if m else None for v, m in zip(graph.params, mask, strict=True)]
    with staging(builder):
        outs, tangents = pushforward(graph, params, given)
        out_mask = tuple([t is not None or (forced is not None and forced[i]) for i, t in enumerate(tangents)])
        filled = [
            zeros(v.type) if t is None else t
            for v, t, m in zip(graph.outputs, tangents, out_mask, strict=True) if m
        ]  # fmt: skip
        made = builder.finish([value_in_graph(t) for t in (*outs, *filled)])
    if builder.captured:
        raise AssertionError("a differentiation rule captured a tensor from outside the graph")
    return Pushed(made, out_mask)


def mask_of(tangents: Sequence[Tensor | None]) -> tuple[bool, ...]:
    """Which tangents are not zero."""
    return tuple([t is not None for t in tangents])


def parted(results: Sequence[Tensor], out_mask: tuple[bool, ...]) -> tuple[list[Tensor], Tangents]:
    """The results of a pushed graph as outputs and tangents."""
    n = len(out_mask)
    tangents = iter(results[n:])
    return list(results[:n]), [next(tangents) if m else None for m in out_mask]


def _rearranged(graph: Graph, params: tuple[int, ...], outputs: tuple[int, ...]) -> Graph:
    """The graph with its parameters and outputs in another order."""
    key = ("rearranged", params, outputs)
    if key not in graph.derived:
        builder = Builder(graph.name)
        held: list[Any] = [None] * len(graph.params)
        for i in params:
            held[i] = wrap(builder.param(graph.params[i].type))
        with staging(builder):
            made = stage_inline(graph, held)
            graph.derived[key] = builder.finish([value_in_graph(made[i]) for i in outputs])
    found: Graph = graph.derived[key]
    return found


def _with_idle(graph: Graph, types: Sequence[TensorType], used: Sequence[int]) -> Graph:
    """The graph with parameters of ``types``, of which it reads those at ``used``."""
    builder = Builder(graph.name)
    params = [wrap(builder.param(t)) for t in types]
    with staging(builder):
        return builder.finish([value_in_graph(t) for t in stage_inline(graph, [params[i] for i in used])])


def _filled(values: Sequence[Tensor], tangents: Sequence[Tensor | None], mask: Sequence[bool]) -> list[Tensor]:
    return [zeros_like(x) if t is None else t for x, t, m in zip(values, tangents, mask, strict=True) if m]


# control flow


def _cond(node: Node, inputs: list[Tensor], tangents: Tangents) -> tuple[list[Tensor], Tangents]:
    mask = mask_of(tangents[1:])
    graphs = [node.attrs["true_graph"], node.attrs["false_graph"]]
    union = tuple([any(m) for m in zip(*[pushed(g, mask).out_mask for g in graphs], strict=True)])
    taken = [pushed(g, mask, union).graph for g in graphs]
    given = [t for t in tangents[1:] if t is not None]
    return parted(apply(cond_p, *inputs, *given, true_graph=taken[0], false_graph=taken[1]), union)


def _carried(body: Graph, tangents: Tangents, n_const: int, n_carry: int) -> tuple[tuple[bool, ...], Pushed]:
    """Which inputs of a loop body have tangents, and the pushed body, which gives those of what is carried."""
    mask = list(mask_of(tangents))
    span = slice(n_const, n_const + n_carry)
    while True:  # a carried value moves if its first value does or the body makes it move
        found = pushed(body, tuple(mask))
        grown = [a or b for a, b in zip(mask[span], found.out_mask[:n_carry], strict=True)]
        if grown == mask[span]:
            break
        mask[span] = grown
    forced = (*mask[span], *[False] * (len(body.outputs) - n_carry))
    return tuple(mask), pushed(body, tuple(mask), forced)


def _while(node: Node, inputs: list[Tensor], tangents: Tangents) -> tuple[list[Tensor], Tangents]:
    body, test, n_const = node.attrs["body_graph"], node.attrs["cond_graph"], node.attrs["n_const"]
    n = len(inputs)
    n_carry = n - n_const
    mask, made = _carried(body, tangents, n_const, n_carry)
    consts = sum(mask[:n_const])
    moving = _filled(inputs, tangents, mask)
    order = (*range(n_const), *range(n, n + consts), *range(n_const, n), *range(n + consts, n + len(moving)))
    together = [*inputs, *moving]
    operands = [together[i] for i in order]
    types = [TensorType(x.dtype, x.shape) for x in operands]
    results = apply(
        while_p, *operands, n_const=n_const + consts,
        body_graph=_rearranged(made.graph, order, tuple(range(len(made.graph.outputs)))),
        cond_graph=_with_idle(test, types, [order.index(i) for i in range(n)]),
    )  # fmt: skip
    return parted(results, made.out_mask)


def _scan(node: Node, inputs: list[Tensor], tangents: Tangents) -> tuple[list[Tensor], Tangents]:
    body, n_const, n_carry = node.attrs["body_graph"], node.attrs["n_const"], node.attrs["n_carry"]
    n, n_out, first_row = len(inputs), len(body.outputs), n_const + n_carry
    mask, made = _carried(body, tangents, n_const, n_carry)
    consts, carries = sum(mask[:n_const]), sum(mask[n_const:first_row])
    moving = _filled(inputs, tangents, mask)
    order = (
        *range(n_const), *range(n, n + consts),
        *range(n_const, first_row), *range(n + consts, n + consts + carries),
        *range(first_row, n), *range(n + consts + carries, n + len(moving)),
    )  # fmt: skip
    n_made = len(made.graph.outputs)
    outputs = (
        *range(n_carry), *range(n_out, n_out + carries), *range(n_carry, n_out), *range(n_out + carries, n_made),
    )  # fmt: skip
    together = [*inputs, *moving]
    results = apply(
        scan_p, *[together[i] for i in order], body_graph=_rearranged(made.graph, order, outputs),
        n_const=n_const + consts, n_carry=n_carry + carries, length=node.attrs["length"],
        reverse=node.attrs["reverse"],
    )  # fmt: skip
    back: list[Any] = [None] * n_made
    for i, result in zip(outputs, results, strict=True):
        back[i] = result
    return parted(back, made.out_mask)


def _call(node: Node, inputs: list[Tensor], tangents: Tangents) -> tuple[list[Tensor], Tangents]:
    made = pushed(node.attrs["graph"], mask_of(tangents))
    given = [t for t in tangents if t is not None]
    return parted(apply(node.op, *inputs, *given, **{**node.attrs, "graph": made.graph}), made.out_mask)


def _custom(node: Node, inputs: list[Tensor], tangents: Tangents) -> tuple[list[Tensor], Tangents]:
    """The user's own gradient is what counts: the transpose of its graph in the cotangents."""
    outs = restage(node, inputs)
    known = [*inputs, *outs]
    active = [False] * len(known) + [o.dtype.is_inexact for o in outs]
    _, _, back = linearize(node.attrs["backward"], [*known, *[zeros_like(o) for o in outs]], active)
    return outs, back(tangents)[len(known) :]


def _barrier(node: Node, inputs: list[Tensor], tangents: Tangents) -> tuple[list[Tensor], Tangents]:
    given = [t for t in tangents if t is not None]
    return parted(apply(barrier_p, *inputs, *given), mask_of(tangents))


def _passed_on(node: Node, inputs: list[Tensor], tangents: Tangents) -> tuple[list[Tensor], Tangents]:
    """For identities that act on cotangents only."""
    return restage(node, inputs), list(tangents)


FORWARD_RULES.update(
    cond=_cond, scan=_scan, while_loop=_while, call=_call, custom_vjp_call=_custom, barrier=_barrier,
    gradient_hook=_passed_on, add=_sum_of_two, sub=_sum_of_two,
)  # fmt: skip
