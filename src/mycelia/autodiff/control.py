"""How control flow is differentiated.

``cond``: each branch returns its outputs and the residuals of both branches (zeros for the other's), and a
second ``cond`` on the same predicate runs the backward graph of the branch taken. ``scan``: residuals are
stacked along the loop, and a scan in the other direction carries the cotangents of the carried values and
sums those of the constants. ``call``: two calls; with ``recompute`` only the arguments are kept and the
forward graph runs again inside the backward call, behind a barrier that keeps XLA from merging the two.
``while_loop`` has a module of its own, :mod:`~mycelia.autodiff.while_loop`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mycelia.autodiff.rules import accumulated, zeros, zeros_like
from mycelia.autodiff.transform import (
    CONTROL_RULES,
    DIFFERENTIATED_AS,
    Pullback,
    Split,
    residual_args,
    restage,
    split,
    stage_inline,
    without_effects,
)
from mycelia.autodiff.while_loop import while_rule
from mycelia.ir.builder import Builder
from mycelia.ir.control import barrier_p, call_p, cond_p, scan_p
from mycelia.ir.graph import Graph, Node
from mycelia.ir.types import TensorType
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, value_in_graph
from mycelia.tensor.mode import staging
from mycelia.tensor.tensor import wrap


def _cond(node: Node, inputs: list[Tensor], needs: list[bool]) -> tuple[list[Tensor], list[bool], Pullback]:
    pred, operands = inputs[0], inputs[1:]
    active = tuple(needs[1:])
    branches: tuple[Graph, Graph] = (node.attrs["true_graph"], node.attrs["false_graph"])
    parts = [split(g, active) for g in branches]
    n_out = len(branches[0].outputs)
    extra_types = [p.forward.output_types[n_out:] for p in parts]
    ahead = [_cond_forward(parts[k], k, n_out, extra_types) for k in (0, 1)]
    results = list(apply(cond_p, pred, *operands, true_graph=ahead[0], false_graph=ahead[1]))
    outs, extras = results[:n_out], results[n_out:]
    live = [i in parts[0].ct_outputs or i in parts[1].ct_outputs for i in range(n_out)]
    ct_params = tuple(sorted({*parts[0].ct_params, *parts[1].ct_params}))

    def pullback(cts: Sequence[Tensor | None]) -> list[Tensor | None]:
        given = [zeros_like(outs[i]) if cts[i] is None else cts[i] for i in range(n_out) if live[i]]
        ct_slots = [i for i in range(n_out) if live[i]]
        known = [*given, *extras, *operands]
        known_types = [(t.dtype, t.shape) for t in known if t is not None]
        back = [
            _cond_backward(parts[k], k, ct_slots, known_types, extra_types, ct_params, len(given), operands)
            for k in (0, 1)
        ]  # fmt: skip
        found = apply(cond_p, pred, *known, true_graph=back[0], false_graph=back[1])
        result: list[Tensor | None] = [None] * len(inputs)
        for i, ct in zip(ct_params, found, strict=True):
            result[i + 1] = ct
        return result

    return outs, live, pullback


def _cond_forward(part: Split, k: int, n_out: int, extra_types: list[tuple[TensorType, ...]]) -> Graph:
    builder = Builder(part.forward.name)
    params = [wrap(builder.param(t)) for t in part.forward.input_types]
    with staging(builder):
        made = stage_inline(part.forward, params)
        outs, own = made[:n_out], made[n_out:]
        other = [zeros(t) for t in extra_types[1 - k]]
        extras = [*own, *other] if k == 0 else [*other, *own]
        return builder.finish([value_in_graph(t) for t in (*outs, *extras)])


def _cond_backward(
    part: Split,
    k: int,
    ct_slots: list[int],
    types: list[tuple[object, tuple[int, ...]]],
    extra_types: list[tuple[TensorType, ...]],
    ct_params: tuple[int, ...],
    n_ct: int,
    operands: list[Tensor],
) -> Graph:
    builder = Builder(part.backward.name)
    params = [wrap(builder.param(TensorType(d, s))) for d, s in types]  # type: ignore[arg-type]
    cts, rest = params[:n_ct], params[n_ct:]
    n_first, n_second = len(extra_types[0]), len(extra_types[1])
    own = rest[:n_first] if k == 0 else rest[n_first : n_first + n_second]
    inner_operands = rest[n_first + n_second :]
    with staging(builder):
        given = [cts[ct_slots.index(i)] for i in part.ct_outputs]
        residuals = [inner_operands[i] if kind == "param" else own[i] for kind, i in part.residuals]
        found = dict(zip(part.ct_params, stage_inline(part.backward, [*given, *residuals]), strict=True))
        outs = [found[i] if i in found else zeros_like(inner_operands[i]) for i in ct_params]
        return builder.finish([value_in_graph(t) for t in outs])


def _scan(node: Node, inputs: list[Tensor], needs: list[bool]) -> tuple[list[Tensor], list[bool], Pullback]:
    body: Graph = node.attrs["body_graph"]
    n_const, n_carry = node.attrs["n_const"], node.attrs["n_carry"]
    length, reverse = node.attrs["length"], node.attrs["reverse"]
    first_x = n_const + n_carry
    active = list(needs)
    while True:  # a carried value is active if its first value is or the body makes it so
        part = split(body, tuple(active))
        grown = [
            active[n_const + i] or (i in part.ct_outputs and body.outputs[i].type.dtype.is_inexact)
            for i in range(n_carry)
        ]
        if grown == active[n_const:first_x]:
            break
        active[n_const:first_x] = grown
    live_carry = [
        active[n_const + i] and body.params[n_const + i].type.dtype.is_inexact for i in range(n_carry)
    ]  # fmt: skip
    n_out = len(body.outputs)
    stacked: list[tuple[str, int]] = []  # residuals kept per step: carried values and extras
    for kind, i in part.residuals:
        if (kind == "extra" or n_const <= i < first_x) and (kind, i) not in stacked:
            stacked.append((kind, i))
    ahead = _scan_forward(part, n_out, stacked)
    results = list(
        apply(
            scan_p, *inputs, body_graph=ahead, n_const=n_const, n_carry=n_carry, length=length, reverse=reverse
        )
    )  # fmt: skip
    outs, kept = results[:n_out], results[n_out:]
    live = [*live_carry, *[i in part.ct_outputs for i in range(n_carry, n_out)]]

    def pullback(cts: Sequence[Tensor | None]) -> list[Tensor | None]:
        carries = [i for i in range(n_carry) if live_carry[i]]
        rows_ct = [i for i in part.ct_outputs if i >= n_carry]
        summed = [i for i in part.ct_params if i < n_const]
        rows_out = [i for i in part.ct_params if i >= first_x]
        consts = [i for kind, i in part.residuals if kind == "param" and i < n_const]
        rows_in = [i for kind, i in part.residuals if kind == "param" and i >= first_x]
        const_args = [inputs[i] for i in consts]
        carry_args = [_or_zeros(cts[i], outs[i]) for i in carries] + [zeros_like(inputs[i]) for i in summed]
        row_args = [_or_zeros(cts[i], outs[i]) for i in rows_ct] + kept + [inputs[i] for i in rows_in]
        builder = Builder(part.backward.name)
        held = [wrap(builder.param(_type(t))) for t in (*const_args, *carry_args)]
        rows = [wrap(builder.param(TensorType(t.dtype, t.shape[1:]))) for t in row_args]
        with staging(builder):
            const_in, carry_in = held[: len(consts)], held[len(consts) :]
            ct_of = dict(zip(carries, carry_in, strict=False))
            ct_of.update(zip(rows_ct, rows, strict=False))
            kept_in = dict(zip(stacked, rows[len(rows_ct) :], strict=False))
            row_in = dict(zip(rows_in, rows[len(rows_ct) + len(stacked) :], strict=True))
            const_of = dict(zip(consts, const_in, strict=True))
            residuals = [
                kept_in[(kind, i)] if (kind, i) in kept_in else const_of[i] if i < n_const else row_in[i]
                for kind, i in part.residuals
            ]  # fmt: skip
            given = [ct_of[i] for i in part.ct_outputs]
            found = dict(zip(part.ct_params, stage_inline(part.backward, [*given, *residuals]), strict=True))
            next_cts = [
                found[n_const + i] if n_const + i in found else zeros(body.params[n_const + i].type) for i in carries
            ]  # fmt: skip
            sums = [accumulated(carry_in[len(carries) + k], found[i]) for k, i in enumerate(summed)]
            made = [*next_cts, *sums, *[found[i] for i in rows_out]]
            graph = builder.finish([value_in_graph(t) for t in made])
        back = apply(
            scan_p, *const_args, *carry_args, *row_args, body_graph=graph, n_const=len(const_args),
            n_carry=len(carry_args), length=length, reverse=not reverse,
        )  # fmt: skip
        result: list[Tensor | None] = [None] * len(inputs)
        targets = [*[n_const + i for i in carries], *summed, *rows_out]
        for i, ct in zip(targets, back, strict=True):
            result[i] = ct
        return result

    return outs, live, pullback


def _scan_forward(part: Split, n_out: int, stacked: list[tuple[str, int]]) -> Graph:
    builder = Builder(part.forward.name)
    params = [wrap(builder.param(t)) for t in part.forward.input_types]
    with staging(builder):
        made = stage_inline(part.forward, params)
        kept = [params[i] if kind == "param" else made[n_out + i] for kind, i in stacked]
        return builder.finish([value_in_graph(t) for t in (*made[:n_out], *kept)])


def _type(x: Tensor) -> TensorType:
    return TensorType(x.dtype, x.shape)


def _or_zeros(ct: Tensor | None, like: Tensor) -> Tensor:
    return zeros_like(like) if ct is None else ct


def _call(node: Node, inputs: list[Tensor], needs: list[bool]) -> tuple[list[Tensor], list[bool], Pullback]:
    graph: Graph = node.attrs["graph"]
    graph = graph.derived.get(DIFFERENTIATED_AS, graph)
    part = split(graph, tuple(needs))
    n_out = len(graph.outputs)
    recompute = bool(node.attrs.get("recompute"))
    results = restage(node, inputs) if recompute else list(apply(call_p, *inputs, graph=part.forward))
    live = [i in part.ct_outputs for i in range(n_out)]

    def pullback(cts: Sequence[Tensor | None]) -> list[Tensor | None]:
        given = [_or_zeros(cts[i], results[i]) for i in part.ct_outputs]
        if recompute:
            found = apply(call_p, *given, *inputs, graph=recomputing(part, n_out, given, inputs), apart=True)
        else:
            found = apply(call_p, *given, *residual_args(part, inputs, results, n_out), graph=part.backward)
        result: list[Tensor | None] = [None] * len(inputs)
        for i, ct in zip(part.ct_params, found, strict=True):
            result[i] = ct
        return result

    return results[:n_out], live, pullback


def recomputing(part: Split, n_out: int, given: list[Tensor], inputs: list[Tensor]) -> Graph:
    """The backward graph of a call that keeps only its arguments: cotangents and arguments to cotangents."""
    key = ("recomputing", part.ct_outputs)
    if key not in part.forward.derived:
        builder = Builder(part.backward.name)
        params = [wrap(builder.param(_type(t))) for t in (*given, *inputs)]
        with staging(builder):
            barred = apply(barrier_p, *params)
            cts, args = barred[: len(given)], barred[len(given) :]
            outs = stage_inline(without_effects(part.forward), args)
            found = stage_inline(part.backward, [*cts, *residual_args(part, args, outs, n_out)])
            part.forward.derived[key] = builder.finish([value_in_graph(t) for t in found])
    graph: Graph = part.forward.derived[key]
    return graph


def _custom(node: Node, inputs: list[Tensor], needs: list[bool]) -> tuple[list[Tensor], list[bool], Pullback]:
    outs = restage(node, inputs)
    live = [o.dtype.is_inexact for o in outs]

    def pullback(cts: Sequence[Tensor | None]) -> list[Tensor | None]:
        given = [_or_zeros(ct, o) for ct, o in zip(cts, outs, strict=True)]
        return list(apply(call_p, *inputs, *outs, *given, graph=node.attrs["backward"]))

    return outs, live, pullback


def _barrier(node: Node, inputs: list[Tensor], needs: list[bool]) -> tuple[list[Tensor], list[bool], Pullback]:
    return restage(node, inputs), list(needs), list


CONTROL_RULES.update(
    cond=_cond, scan=_scan, call=_call, custom_vjp_call=_custom, barrier=_barrier, while_loop=while_rule
)
