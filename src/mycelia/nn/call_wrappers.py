"""What can be wrapped around a Cell's ``construct``: hooks, a dtype to compute in, recomputation.

Kept apart from :class:`~mycelia.nn.cell.Cell` so that a Cell without any of them pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mycelia.autodiff.custom import custom_vjp
from mycelia.core import tree
from mycelia.core.dtypes import DType
from mycelia.ir.builder import Builder, restoring
from mycelia.ir.control import call_p
from mycelia.ops.operands import cast
from mycelia.tensor import Parameter, Tensor, dispatch
from mycelia.tensor.dispatch import set_value, type_of, value_in_graph
from mycelia.tensor.mode import RECORD, current_builder, is_staging, staging, state
from mycelia.tensor.tensor import wrap

if TYPE_CHECKING:
    from mycelia.nn.cell import Cell


class Special:
    """The wrappers of one Cell."""

    def __init__(self) -> None:
        self.dtype: DType | None = None
        self.result_dtype: DType | None = None
        self.grad_output: Any = None
        self.recompute = False
        self.hooks: dict[str, list[tuple[Callable[..., Any], bool]]] = {
            "forward_pre": [], "forward": [], "backward_pre": [], "backward": [],
        }  # fmt: skip

    def observed(self) -> Any:
        """A comparable description."""
        return (
            self.dtype,
            self.result_dtype,
            self.recompute,
            tuple((k, tuple(v)) for k, v in self.hooks.items()),
        )


def call(cell: Cell, special: Special | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``construct`` with everything around it that the Cell asks for."""
    if special is None:
        return cell._run_with_bprop(args, kwargs)
    hooks = special.hooks
    for hook, with_kwargs in list(hooks["forward_pre"]):
        replaced = hook(cell, args, kwargs) if with_kwargs else hook(cell, args)
        if replaced is not None:
            if with_kwargs:
                args, kwargs = replaced
            else:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
    inputs = args
    if special.dtype is not None:
        args, kwargs = _converted((args, kwargs), special.dtype)
    if hooks["backward"] or hooks["backward_pre"]:
        args = _mark_inputs(cell, special, args)
    if special.dtype is not None:
        with _parameters_as(cell, special.dtype):
            out = _run(cell, special, args, kwargs)
    else:
        out = _run(cell, special, args, kwargs)
    if special.result_dtype is not None:
        out = _converted(out, special.result_dtype)
    if hooks["backward"] or hooks["backward_pre"]:
        out = _mark_outputs(cell, special, out)
    for hook, with_kwargs in list(hooks["forward"]):
        replaced = hook(cell, inputs, kwargs, out) if with_kwargs else hook(cell, inputs, out)
        if replaced is not None:
            out = replaced
    return out


def _run(cell: Cell, special: Special, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not special.recompute:
        return cell._run_with_bprop(args, kwargs)
    if is_staging():
        return _staged_recompute(cell, args, kwargs)
    if state.phase == RECORD:
        return dispatch.call_compiled(cell, args, kwargs)
    return cell._run_with_bprop(args, kwargs)


def _converted(nest: Any, dtype: DType) -> Any:
    return tree.map_leaves(
        lambda x: (
            cast(x, dtype) if isinstance(x, Tensor) and x.dtype.is_floating and not isinstance(x, Parameter) else x
        ),
        nest,
    )


class _parameters_as:
    """Inside the block the Cell's own floating parameters read as another dtype (the originals are not changed)."""

    def __init__(self, cell: Cell, dtype: DType) -> None:
        self._params = [
            p for p in cell._params.values()
            if p is not None and p.requires_grad and p.dtype.is_floating and p.dtype is not dtype
        ]  # fmt: skip
        self._dtype = dtype
        self._before: list[tuple[Parameter, Any, Any, int]] = []

    def __enter__(self) -> None:
        for p in self._params:
            converted = cast(p, self._dtype)
            self._before.append((p, p._value, p._node, p._slot))
            p._value, p._node, p._slot = converted._value, converted._node, converted._slot

    def __exit__(self, *exc: Any) -> None:
        for p, value, node, slot in self._before:
            p._value, p._node, p._slot = value, node, slot


def _identity(*args: Any) -> Any:
    return args if len(args) != 1 else args[0]


def _mark_inputs(cell: Cell, special: Special, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """An identity on the inputs whose gradient is passed through the backward hooks."""
    special.grad_output = None

    def bprop(*flow: Any) -> Any:
        dout = flow[-1]
        grads = dout if isinstance(dout, tuple) else (dout,)
        for hook, _ in special.hooks["backward"]:
            replaced = hook(cell, grads, special.grad_output)
            if replaced is not None:
                grads = replaced if isinstance(replaced, tuple) else (replaced,)
        return grads

    made = custom_vjp(_identity, bprop, type(cell).__name__, args)
    return made if len(args) != 1 else (made,)


def _mark_outputs(cell: Cell, special: Special, out: Any) -> Any:
    def bprop(*flow: Any) -> Any:
        dout = flow[-1]
        grads = dout if isinstance(dout, tuple) else (dout,)
        for hook, _ in special.hooks["backward_pre"]:
            replaced = hook(cell, grads)
            if replaced is not None:
                grads = replaced if isinstance(replaced, tuple) else (replaced,)
        special.grad_output = grads
        return grads

    args = out if isinstance(out, tuple) else (out,)
    made = custom_vjp(_identity, bprop, type(cell).__name__, args)
    return made


def _staged_recompute(cell: Cell, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The Cell as a ``call`` node marked for recomputation."""
    outer = current_builder()
    inner = Builder(type(cell).__name__, parent=outer)
    tensors = [x for x in tree.leaves((args, kwargs)) if isinstance(x, Tensor) and not isinstance(x, Parameter)]
    params = iter([wrap(inner.param(type_of(t))) for t in tensors])
    changed_args, changed_kwargs = tree.map_leaves(
        lambda x: next(params) if isinstance(x, Tensor) and not isinstance(x, Parameter) else x, (args, kwargs)
    )
    with restoring(inner, _put_back), staging(inner):
        leaves, treedef = tree.flatten(cell._run_with_bprop(changed_args, changed_kwargs))
        outs = [x for x in leaves if isinstance(x, Tensor)]
        written = [t for t, _ in inner.written.values()]
        graph = inner.finish([value_in_graph(t) for t in (*outs, *written)])
    operands = [*tensors, *[wrap(o) for o, _ in inner.lifted]]
    results = dispatch.apply(call_p, *operands, graph=graph, recompute=True)
    for t, new in zip(written, results[len(outs) :], strict=True):
        set_value(t, new)
    made = iter(results)
    return tree.unflatten(treedef, [next(made) if isinstance(x, Tensor) else x for x in leaves])


def _put_back(tensor: Tensor, value: Any) -> None:
    tensor._value = value
