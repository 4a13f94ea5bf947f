"""Class forms of what is done besides computing: assignment, order, printing, dumps, summaries, hooks, host code."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError, UnsupportedError
from mycelia.ir.primitive import IO, Primitive
from mycelia.ops.declare import Sample
from mycelia.ops.legacy.form import form
from mycelia.ops.legacy.primitive import Primitive as Operator
from mycelia.ops.logical import isfinite
from mycelia.ops.operands import as_tensor
from mycelia.ops.outputs import one
from mycelia.ops.reduction import all as all_
from mycelia.ops.selection import where
from mycelia.ops.shape import reshape
from mycelia.ops.state import assign, assign_add, assign_sub, depend, print_, stop_gradient
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, stageable, tracked
from mycelia.tensor.mode import RECORD, is_staging, state
from mycelia.tensor.tape import TapeNode

__all__ = [
    "Assign", "AssignAdd", "AssignSub", "Depend", "FloatStatus", "HistogramSummary", "HookBackward", "ImageSummary",
    "InsertGradientOf", "NPUAllocFloatStatus", "NPUClearFloatStatus", "NPUGetFloatStatus", "Partial", "Print",
    "ScalarSummary", "StopGradient", "TensorDump", "TensorSummary", "UpdateState", "partial",
]  # fmt: skip

partial = functools.partial

Assign = form("Assign()(variable, value)", assign)
AssignAdd = form("AssignAdd()(variable, value)", assign_add)
AssignSub = form("AssignSub()(variable, value)", assign_sub)
Depend = form("Depend()(value, expr)", depend)
Partial = form("Partial()(*args)", functools.partial)
Print = form("Print()(*args)", print_)
StopGradient = form("StopGradient()(value)", stop_gradient)
UpdateState = form("UpdateState()(*args)", lambda *args: args[0] if args else None)

# hooks on gradients

#: Its input; the gradient passes through the function ``hook``.
gradient_hook_p: Primitive = Primitive(
    "gradient_hook", infer=lambda x, *, hook: x, lower=lambda x, *, hook: x,
    vjp=lambda ct, x, out, *, hook: [lambda: _hooked(hook, ct)], shard="...->...",
    samples=lambda: [Sample((np.array([1.5, -2.0]),), {"hook": _unchanged})],
)  # fmt: skip


def _unchanged(gradient: Any) -> Any:
    return gradient


def _hooked(hook: Callable[..., Any], ct: Tensor) -> Tensor:
    made = stageable(hook)(ct)
    made = made[0] if isinstance(made, (tuple, list)) else made
    if made is None:
        return ct
    if not isinstance(made, Tensor) or made.shape != ct.shape:
        got = f"shape {made.shape}" if isinstance(made, Tensor) else type(made).__name__
        raise ArgumentTypeError("hook", "return value", got=got, takes=f"a Tensor of shape {ct.shape}, or None")
    return made


def _with_gradient(x: Tensor, hook: Callable[..., Any]) -> Tensor:
    """The tensor, whose gradient passes through ``hook``; at once, without a program for each hook."""
    if is_staging():
        return one(gradient_hook_p, x, hook=hook)
    if state.phase != RECORD or x._node is None:
        return x._snapshot()
    return tracked(x._value, TapeNode(gradient_hook_p, (x._snapshot(),), {"hook": hook}, (x._value,)), 0)


class _Tuples:
    """A hook that is given its gradient in a tuple; equal if the hooks are."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Tuples) and self.hook == other.hook

    def __hash__(self) -> int:
        return hash(self.hook)

    def __call__(self, gradient: Tensor) -> Any:
        return stageable(self.hook)((gradient,))


def _check_function(where_: str, argument: str) -> Any:
    def check(**given: Any) -> None:
        if not callable(given[argument]):
            raise ArgumentTypeError(where_, argument, got=type(given[argument]).__name__, takes="a function")

    return check


def _with_hook(input: Any, hook_fn: Any, cell_id: str) -> Any:
    if isinstance(input, tuple):
        return tuple([_with_hook(x, hook_fn, cell_id) for x in input])
    return _with_gradient(as_tensor(input, "HookBackward"), _Tuples(hook_fn))


HookBackward = form("HookBackward(hook_fn, cell_id='')(input)", _with_hook, _check_function("HookBackward", "hook_fn"))
InsertGradientOf = form(
    "InsertGradientOf(f)(input_x)",
    lambda input_x, f: _with_gradient(as_tensor(input_x, "InsertGradientOf", "input_x"), f),
    _check_function("InsertGradientOf", "f"),
)

# told to the host


def _lower_told(*arrays: Any, tell: Callable[..., None]) -> tuple[Any, ...]:
    jax.debug.callback(lambda *held: tell(*map(np.asarray, held)), *arrays, ordered=True)
    return ()


#: Calls ``tell`` with NumPy arrays whenever it runs; nothing comes back.
host_effect_p = Primitive(
    "host_effect", infer=lambda *types, tell: (), lower=_lower_told, multi=True, differentiable=False, effects=(IO,),
    samples=lambda: [Sample((np.array([1.5, -2.0]),), {"tell": _ignored}, grad=False, dtypes=False)],
)  # fmt: skip


def _ignored(*arrays: Any) -> None:
    """Take arrays and do nothing."""


def _tell(tell: Callable[..., None], *tensors: Tensor) -> None:
    if is_staging():
        apply(host_effect_p, *tensors, tell=tell)
    else:
        tell(*[t.asnumpy() for t in tensors])


#: Called as ``recorder(kind, name, array)`` for each summary; who records summaries puts itself here.
recorders: list[Callable[[str, str, Any], None]] = []


def _summary(kind: str) -> Any:
    where_ = f"{kind.capitalize()}Summary"
    axes = {"scalar": "one element", "image": "four axes (N, C, H, W)"}

    def compute(name: Any, value: Any) -> None:
        if not isinstance(name, str) or not name:
            raise ArgumentTypeError(where_, "name", got=repr(name), takes="a string that is not empty")
        t = as_tensor(value, where_, "value")
        if (kind == "scalar" and t.size != 1) or (kind == "image" and t.ndim != 4):
            raise ShapeError(where_, "value", got=f"shape {t.shape}", takes=axes[kind])

        def tell(array: Any) -> None:
            for recorder in recorders:
                recorder(kind, name, array)

        if recorders or is_staging():
            _tell(tell, t)

    return form(f"{where_}()(name, value)", compute)


HistogramSummary = _summary("histogram")
ImageSummary = _summary("image")
ScalarSummary = _summary("scalar")
TensorSummary = _summary("tensor")


class TensorDump(Operator):
    """Write tensors to ``.npy`` files, numbered in the order in which they are written.

    Args:
        input_output: ``"out"``, ``"in"`` or ``"all"``: which side of a redistribution; here there is one.

    Inputs:
        file: the path; the number of the dump is put before its last part, and ``.npy`` added if it is missing.
        input_x: the tensor.

    >>> import os, tempfile
    >>> import mycelia as ms
    >>> dump = ms.ops.TensorDump()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump(os.path.join(folder, "x"), ms.Tensor([1, 2]))
    ...     print(os.listdir(folder)[0].endswith("x.npy"))
    True
    """

    _count = 0

    def __init__(self, input_output: str = "out") -> None:
        super().__init__("TensorDump")
        if input_output not in ("out", "in", "all"):
            raise ArgumentValueError("TensorDump", "input_output", got=repr(input_output), takes='"out", "in" or "all"')
        self.add_prim_attr("input_output", input_output)

    def __call__(self, file: Any, input_x: Any) -> None:
        if not isinstance(file, str) or not file:
            raise ArgumentTypeError("TensorDump", "file", got=repr(file), takes="a path")
        t = as_tensor(input_x, "TensorDump", "input_x")
        dtype = "bfloat16" if t.dtype is dt.bfloat16 else t.dtype.name
        folder, name = os.path.split(file)

        def tell(array: Any) -> None:
            number = TensorDump._count
            TensorDump._count = number + 1
            stem = name[:-4] if name.endswith(".npy") else name
            path = os.path.join(folder, f"{number}_{dtype}_{stem}.npy")
            with open(path + ".part", "wb") as out:
                np.save(out, array.astype(np.float32) if dtype == "bfloat16" else array)
            os.replace(path + ".part", path)

        _tell(tell, t)


# numbers that overflowed


def _overflowed(x: Any) -> Any:
    """A float32 vector of one element: 1 if there is NaN or an infinity, else 0."""
    return reshape(where(all_(isfinite(as_tensor(x, "FloatStatus", "x"))), _number(0.0), _number(1.0)), (1,))


def _number(value: float) -> Tensor:
    return Tensor(value, dt.float32)


def _only_npu(where_: str) -> Any:
    def compute(*args: Any) -> Any:
        raise UnsupportedError(
            where_, message="this device has no register of overflows",
            hint="use ops.FloatStatus()(x), ops.isfinite(x).all() or amp.all_finite(tensors) on the gradients",
        )  # fmt: skip

    return compute


FloatStatus = form("FloatStatus()(x)", _overflowed)
NPUAllocFloatStatus = form("NPUAllocFloatStatus()()", _only_npu("NPUAllocFloatStatus"))
NPUClearFloatStatus = form("NPUClearFloatStatus()(x)", _only_npu("NPUClearFloatStatus"))
NPUGetFloatStatus = form("NPUGetFloatStatus()(x)", _only_npu("NPUGetFloatStatus"))
