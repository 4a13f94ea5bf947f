"""Control flow: operators that hold graphs.

======================  ==================================  ==========================================
operator                inputs                              graphs
======================  ==================================  ==========================================
``cond``                predicate, operands                 both take the operands, give the outputs
``while_loop``          constants, carried                  both take constants and carried values;
                                                            ``cond_graph`` gives a bool, ``body_graph``
                                                            the next carried values
``scan``                constants, carried, sequences       takes constants, carried values and one row
                                                            of each sequence, gives carried values and
                                                            rows of the outputs
``call``                arguments                           takes the arguments
``custom_vjp_call``     arguments                           ``graph`` as call; ``backward`` takes
                                                            arguments, outputs and output cotangents and
                                                            gives argument cotangents
``vmap``                arguments                           takes one row of each mapped argument and the
                                                            others whole, gives one row of the outputs
======================  ==================================  ==========================================

All have several outputs. Their differentiation rules transform the graphs they hold and stand in
``autodiff.control`` (reverse), ``autodiff.forward`` and ``autodiff.batching``.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import GraphTypeError
from mycelia.ir.evaluate import evaluate, without_kernels
from mycelia.ir.graph import Graph
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType


def _check_inputs(where: str, graph: Graph, types: tuple[TensorType, ...], what: str) -> None:
    if graph.input_types != types:
        raise GraphTypeError(
            where, message=f"the {what} takes {_names(graph.input_types)} and is given {_names(types)}"
        )


def _names(types: tuple[TensorType, ...]) -> str:
    return "(" + ", ".join(map(str, types)) + ")"


def _infer_cond(
    pred: TensorType, *operands: TensorType, true_graph: Graph, false_graph: Graph
) -> tuple[TensorType, ...]:
    if pred.dtype is not dt.bool_ or pred.shape != ():
        raise GraphTypeError("cond", "predicate", got=str(pred), takes="a zero-dimensional bool")
    _check_inputs("cond", true_graph, operands, "true branch")
    _check_inputs("cond", false_graph, operands, "false branch")
    if true_graph.output_types != false_graph.output_types:
        raise GraphTypeError(
            "cond",
            message=f"the branches give {_names(true_graph.output_types)} and {_names(false_graph.output_types)}",
        )
    return true_graph.output_types


def _lower_cond(pred: Any, *operands: Any, true_graph: Graph, false_graph: Graph) -> tuple[Any, ...]:
    return tuple(
        lax.cond(pred, lambda *a: evaluate(true_graph, a), lambda *a: evaluate(false_graph, a), *operands)
    )  # fmt: skip


cond_p = Primitive("cond", infer=_infer_cond, lower=_lower_cond, multi=True, onnx="If")


def _infer_while(*types: TensorType, cond_graph: Graph, body_graph: Graph, n_const: int) -> tuple[TensorType, ...]:
    _check_inputs("while_loop", cond_graph, types, "condition")
    _check_inputs("while_loop", body_graph, types, "body")
    if cond_graph.output_types != (TensorType(dt.bool_, ()),):
        raise GraphTypeError(
            "while_loop", "condition", got=_names(cond_graph.output_types), takes="one zero-dimensional bool"
        )
    carried = types[n_const:]
    if body_graph.output_types != carried:
        raise GraphTypeError(
            "while_loop", message=f"the body turns {_names(carried)} into {_names(body_graph.output_types)}",
            hint="a value carried round a loop keeps its dtype and shape",
        )  # fmt: skip
    return carried


def _lower_while(*arrays: Any, cond_graph: Graph, body_graph: Graph, n_const: int) -> tuple[Any, ...]:
    consts, carried = arrays[:n_const], list(arrays[n_const:])
    return tuple(
        lax.while_loop(
            lambda c: evaluate(cond_graph, [*consts, *c])[0], lambda c: evaluate(body_graph, [*consts, *c]), carried
        )
    )


while_p = Primitive("while_loop", infer=_infer_while, lower=_lower_while, multi=True, onnx="Loop")


def _infer_scan(
    *types: TensorType, body_graph: Graph, n_const: int, n_carry: int, length: int, reverse: bool
) -> tuple[TensorType, ...]:
    rows = []
    for t in types[n_const + n_carry :]:
        if not t.shape or t.shape[0] != length:
            raise GraphTypeError("scan", "sequence", got=str(t), takes=f"a first axis of length {length}")
        rows.append(TensorType(t.dtype, t.shape[1:]))
    _check_inputs("scan", body_graph, (*types[: n_const + n_carry], *rows), "body")
    carried = types[n_const : n_const + n_carry]
    if body_graph.output_types[:n_carry] != carried:
        raise GraphTypeError(
            "scan", message=f"the body turns {_names(carried)} into {_names(body_graph.output_types[:n_carry])}",
            hint="a value carried round a loop keeps its dtype and shape",
        )  # fmt: skip
    stacked = tuple(TensorType(t.dtype, (length, *t.shape)) for t in body_graph.output_types[n_carry:])
    return (*carried, *stacked)


def _lower_scan(
    *arrays: Any, body_graph: Graph, n_const: int, n_carry: int, length: int, reverse: bool
) -> tuple[Any, ...]:
    consts, carried = arrays[:n_const], list(arrays[n_const : n_const + n_carry])
    rows = list(arrays[n_const + n_carry :])

    def body(carry: list[Any], xs: list[Any]) -> tuple[list[Any], list[Any]]:
        out = evaluate(body_graph, [*consts, *carry, *xs])
        return out[:n_carry], out[n_carry:]

    last, stacked = lax.scan(body, carried, rows, length=length, reverse=reverse)
    return (*last, *stacked)


scan_p = Primitive("scan", infer=_infer_scan, lower=_lower_scan, multi=True, onnx="Loop")


def _infer_call(
    *types: TensorType, graph: Graph, recompute: bool = False, apart: bool = False
) -> tuple[TensorType, ...]:
    _check_inputs("call", graph, types, "called graph")
    return graph.output_types


def _lower_call(*arrays: Any, graph: Graph, recompute: bool = False, apart: bool = False) -> tuple[Any, ...]:
    return tuple(evaluate(graph, arrays))


#: ``recompute``: its residuals are computed again; ``apart``: not to be merged with equal operators around it.
call_p = Primitive("call", infer=_infer_call, lower=_lower_call, multi=True)


def _infer_custom(*types: TensorType, graph: Graph, backward: Graph) -> tuple[TensorType, ...]:
    _check_inputs("custom_vjp_call", graph, types, "called graph")
    wanted = (*types, *graph.output_types, *graph.output_types)
    _check_inputs("custom_vjp_call", backward, wanted, "backward graph")
    return graph.output_types


def _lower_custom(*arrays: Any, graph: Graph, backward: Graph) -> tuple[Any, ...]:
    return tuple(evaluate(graph, arrays))


custom_vjp_call_p = Primitive("custom_vjp_call", infer=_infer_custom, lower=_lower_custom, multi=True)


def _infer_barrier(*types: TensorType) -> tuple[TensorType, ...]:
    return types


#: Identity that XLA does not optimize across; keeps recomputation from being merged with the first run.
barrier_p = Primitive(
    "barrier", infer=_infer_barrier, lower=lambda *arrays: tuple(jax.lax.optimization_barrier(list(arrays))), multi=True
)


def _infer_vmap(*types: TensorType, graph: Graph, mapped: tuple[bool, ...], size: int) -> tuple[TensorType, ...]:
    if len(mapped) != len(types):
        raise GraphTypeError("vmap", "mapped", got=f"{len(mapped)} flags", takes=f"one for each of {len(types)} inputs")
    rows = []
    for t, is_mapped in zip(types, mapped, strict=True):
        if is_mapped and (not t.shape or t.shape[0] != size):
            raise GraphTypeError("vmap", "mapped argument", got=str(t), takes=f"a first axis of length {size}")
        rows.append(TensorType(t.dtype, t.shape[1:]) if is_mapped else t)
    _check_inputs("vmap", graph, tuple(rows), "mapped graph")
    return tuple(TensorType(t.dtype, (size, *t.shape)) for t in graph.output_types)


def _lower_vmap(*arrays: Any, graph: Graph, mapped: tuple[bool, ...], size: int) -> tuple[Any, ...]:
    if not any(mapped):  # then all rows are one
        return tuple([jnp.broadcast_to(row, (size, *row.shape)) for row in evaluate(graph, arrays)])
    axes = tuple(0 if is_mapped else None for is_mapped in mapped)
    with without_kernels():
        return tuple(jax.vmap(lambda *rows: evaluate(graph, rows), axes, 0, axis_size=size)(*arrays))


#: ``graph`` on every row of the ``mapped`` inputs at once; the rows of all outputs stand along axis 0.
vmap_p = Primitive("vmap", infer=_infer_vmap, lower=_lower_vmap, multi=True)
