"""Functions with a gradient of their own.

``custom_vjp(fn, bprop)`` calls ``fn``; its gradient is ``bprop(*inputs, out, dout)``, a tuple with one
gradient for each input. Eager, the call is one step of the tape; in a graph it is one node that holds the
forward and the backward graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycelia.autodiff.rules import zeros_like
from mycelia.core import tree
from mycelia.core.errors import ArgumentValueError
from mycelia.ir.builder import Builder, restoring
from mycelia.ir.control import custom_vjp_call_p
from mycelia.tensor import Tensor, dispatch
from mycelia.tensor.dispatch import set_value, tracked, type_of, value_in_graph
from mycelia.tensor.mode import RECORD, current_builder, is_staging, running, staging, state
from mycelia.tensor.tape import TapeNode
from mycelia.tensor.tensor import wrap


def custom_vjp(fn: Callable[..., Any], bprop: Callable[..., Any], name: str, args: tuple[Any, ...]) -> Any:
    """``fn(*args)`` with ``bprop`` as its gradient; ``name`` is for messages."""
    if is_staging():
        return _staged(fn, bprop, name, args)
    tensors = [x for x in tree.leaves(args) if isinstance(x, Tensor)]
    if state.phase != RECORD or not any(t._node is not None for t in tensors):
        return fn(*args)
    with running():
        plain = tree.map_leaves(lambda x: wrap(x._value) if type(x) is Tensor else x, args)
        outputs = fn(*plain)
    leaves, treedef = tree.flatten(outputs)
    outs = [x for x in leaves if isinstance(x, Tensor)]
    inputs = tuple(t._snapshot() for t in tensors)

    def pullback(cts: list[Tensor | None]) -> list[Tensor | None]:
        made = [tracked(o._value, node, i) for i, o in enumerate(outs)]
        douts = [zeros_like(o) if ct is None else ct for ct, o in zip(cts, outs, strict=True)]
        snapshots = iter(inputs)
        given = tree.map_leaves(lambda x: next(snapshots) if isinstance(x, Tensor) else x, args)
        rule = dispatch.stageable(bprop) if is_staging() else bprop
        return _gradients(rule, name, given, _rebuilt(treedef, leaves, made), _rebuilt(treedef, leaves, douts), tensors)

    node = TapeNode(None, inputs, {}, tuple(o._value for o in outs), pullback)
    return _rebuilt(treedef, leaves, [tracked(o._value, node, i) for i, o in enumerate(outs)])


def _rebuilt(treedef: tree.TreeDef, leaves: list[Any], tensors: Sequence[Tensor]) -> Any:
    it = iter(tensors)
    return tree.unflatten(treedef, [next(it) if isinstance(x, Tensor) else x for x in leaves])


def _gradients(
    bprop: Callable[..., Any], name: str, args: tuple[Any, ...], out: Any, dout: Any, tensors: list[Tensor]
) -> list[Tensor | None]:
    found = bprop(*args, out, dout)
    if not isinstance(found, (tuple, list)):
        found = (found,)
    if len(found) != len(args):
        raise ArgumentValueError(
            f"{name}.bprop", "return value", got=f"{len(found)} gradients",
            takes=f"a tuple with one gradient for each of the {len(args)} inputs",
        )  # fmt: skip
    result: list[Tensor | None] = []
    for arg, grad in zip(args, found, strict=True):
        inner = [x for x in tree.leaves(arg) if isinstance(x, Tensor)]
        given = tree.leaves(grad) if len(inner) != 1 else [grad]
        if len(given) != len(inner):
            given = [None] * len(inner)
        for x, g in zip(inner, given, strict=True):
            if isinstance(g, Tensor) and g.shape != x.shape:
                raise ArgumentValueError(
                    f"{name}.bprop",
                    "return value",
                    got=f"a gradient of shape {g.shape}",
                    takes=f"the input's shape {x.shape}",
                )
            result.append(g if isinstance(g, Tensor) else None)
    return result


def _staged(fn: Callable[..., Any], bprop: Callable[..., Any], name: str, args: tuple[Any, ...]) -> Any:
    outer = current_builder()
    tensors = [x for x in tree.leaves(args) if isinstance(x, Tensor)]
    inner = Builder(name, parent=outer)
    params = [wrap(inner.param(type_of(t))) for t in tensors]
    with restoring(inner, _put_back), staging(inner):
        leaves, treedef = tree.flatten(dispatch.stageable(fn)(*_substituted(args, params)))
        outs = [x for x in leaves if isinstance(x, Tensor)]
        written = [t for t, _ in inner.written.values()]
        values = [value_in_graph(t) for t in (*outs, *written)]
        graph = inner.finish(values)
    back = Builder(f"{name}_bprop", parent=outer)
    types = [v.type for v in graph.outputs]
    held = [wrap(back.param(type_of(t))) for t in tensors]
    extra = [wrap(back.param(v.type)) for _, v in inner.lifted]
    made = [wrap(back.param(t)) for t in types]
    cts = [wrap(back.param(t)) for t in types]
    with restoring(back, _put_back), staging(back):
        n = len(outs)
        found = _gradients(
            dispatch.stageable(bprop), name, _substituted(args, held), _rebuilt(treedef, leaves, made[:n]),
            _rebuilt(treedef, leaves, cts[:n]), tensors,
        )  # fmt: skip
        grads = [zeros_like(t) if g is None else g for g, t in zip(found, held, strict=True)]
        zeros = [zeros_like(t) for t in extra]
        back_graph = back.finish([value_in_graph(g) for g in (*grads, *zeros)])
    # what bprop uses from outside becomes an operand of both graphs
    operands = [*tensors, *[wrap(o) for o, _ in inner.lifted]]
    if back.lifted:
        graph, back_graph = _with_operands(graph, back_graph, back, len(operands))
        operands += [wrap(o) for o, _ in back.lifted]
    results = dispatch.apply(custom_vjp_call_p, *operands, graph=graph, backward=back_graph)
    for t, new in zip(written, results[len(outs) :], strict=True):
        set_value(t, new)
    return _rebuilt(treedef, leaves, list(results[: len(outs)]))


def _with_operands(graph: Any, back_graph: Any, back: Builder, n_args: int) -> tuple[Any, Any]:
    from mycelia.autodiff.transform import stage_inline

    extra_types = [v.type for _, v in back.lifted]
    ahead = Builder(graph.name)
    params = [wrap(ahead.param(t)) for t in (*graph.input_types, *extra_types)]
    with staging(ahead):
        graph2 = ahead.finish([value_in_graph(t) for t in stage_inline(graph, params[:n_args])])
    behind = Builder(back_graph.name)
    args = [wrap(behind.param(t)) for t in graph.input_types]
    extra = [wrap(behind.param(t)) for t in extra_types]
    rest = [wrap(behind.param(t)) for t in (*graph.output_types, *graph.output_types)]
    with staging(behind):
        grads = stage_inline(back_graph, [*args, *rest, *extra])
        grads = [*grads, *[zeros_like(t) for t in extra]]
        return graph2, behind.finish([value_in_graph(t) for t in grads])


def _substituted(args: tuple[Any, ...], tensors: Sequence[Tensor]) -> Any:
    it = iter(tensors)
    return tree.map_leaves(lambda x: next(it) if isinstance(x, Tensor) else x, args)


def _put_back(tensor: Tensor, value: Any) -> None:
    tensor._value = value
