"""Tensors that are written, held back or shown: assignment, ``stop_gradient``, ``depend``, ``identity``, printing.

Assignment goes through ``set_value``, so that inside a compiled function it becomes part of the graph's
state, in the order of the program. Printing inside a graph is an effect that stays where it stands
(``jax.debug.callback``, ordered).
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np

from mycelia.core.errors import ArgumentTypeError, DTypeError, ShapeError
from mycelia.ir.primitive import IO, Primitive
from mycelia.ops.arithmetic import add, sub
from mycelia.ops.declare import Sample
from mycelia.ops.operands import as_tensor, cast
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import apply, set_value
from mycelia.tensor.mode import is_staging
from mycelia.tensor.tensor import wrap

_X = np.array([[1.5, -2.0], [0.0, 3.0]])
_KIND_ORDER = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def _passed_on() -> list[Any]:
    return [
        Sample((_X,)),
        Sample((np.array(2.0),)),
        Sample((np.zeros((0, 2)),)),
        Sample((np.array([1, 2]),), grad=False),
    ]


identity_p = Primitive(
    "identity", infer=lambda x: x, lower=lambda x: x, vjp=lambda ct, x, out: [ct], shard="...->...", onnx="Identity",
    samples=_passed_on,
)  # fmt: skip

stop_gradient_p = Primitive(
    "stop_gradient", infer=lambda x: x, lower=lambda x: x, differentiable=False, shard="...->...", onnx="Identity",
    samples=_passed_on,
)  # fmt: skip


def _written(where: str, variable: Any, value: Any) -> tuple[Tensor, Tensor]:
    """The tensor to write and the value as a tensor that fits it, or a located error before anything changes."""
    if not isinstance(variable, Tensor):
        raise ArgumentTypeError(where, "variable", got=type(variable).__name__, takes="a Parameter or Tensor")
    new = as_tensor(value, where, "value", variable.dtype)
    if new.dtype is not variable.dtype:
        if _KIND_ORDER[new.dtype.kind] > _KIND_ORDER[variable.dtype.kind]:
            raise DTypeError(
                where, "value", got=f"dtype {new.dtype}", takes=f"values that fit 'variable' of dtype {variable.dtype}",
                hint="convert the value first, e.g. value.astype(variable.dtype)",
            )  # fmt: skip
        new = cast(new, variable.dtype)
    return variable, new


@operator()
def assign(variable: Any, value: Any) -> Tensor:
    """Overwrite a parameter or tensor.

    Args:
        variable: what is written.
        value: a tensor, array or number of the same shape; a lower dtype is converted.

    Returns:
        ``variable`` itself.

    Raises:
        ShapeError: the shapes differ.
        DTypeError: the value is of a higher kind (a float for an integer variable).

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> print(ms.ops.assign(w, ms.Tensor([3.0, 4.0])).asnumpy())
    [3. 4.]
    """
    target, new = _written("assign", variable, value)
    if new.shape != target.shape:
        raise ShapeError("assign", "value", got=f"shape {new.shape}", takes=f"shape {target.shape}, that of 'variable'")
    set_value(target, new)
    return target


def _assign_changed(where: str, change: Any, variable: Any, value: Any) -> Tensor:
    target, new = _written(where, variable, value)
    made = change(target, new)
    if made.shape != target.shape:
        raise ShapeError(where, "value", got=f"shape {new.shape}", takes=f"a shape that broadcasts to {target.shape}")
    set_value(target, made)
    return target


@operator()
def assign_add(variable: Any, value: Any) -> Tensor:
    """Add to a parameter or tensor in place; see :func:`assign`.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> print(ms.ops.assign_add(w, 1).asnumpy())
    [2. 3.]
    """
    return _assign_changed("assign_add", add, variable, value)


@operator()
def assign_sub(variable: Any, value: Any) -> Tensor:
    """Subtract from a parameter or tensor in place; see :func:`assign`.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> print(ms.ops.assign_sub(w, 1).asnumpy())
    [0. 1.]
    """
    return _assign_changed("assign_sub", sub, variable, value)


def _assign_value(self: Tensor, value: Any) -> Tensor:
    """Overwrite the tensor with ``value`` of the same shape; see :func:`mycelia.ops.assign`."""
    return assign(self, value)


@operator()
def stop_gradient(value: Any) -> Any:
    """The value, through which no gradient flows.

    Args:
        value: a tensor; anything else is given back as it is.

    >>> import mycelia as ms
    >>> ms.grad(lambda x: (x * ms.ops.stop_gradient(x)).sum())(ms.Tensor([3.0]))
    Tensor(shape=[1], dtype=Float32, value= [ 3.00000000e+00])
    """
    return apply(stop_gradient_p, value) if isinstance(value, Tensor) else value


@operator()
def identity(x: Any) -> Tensor:
    """A tensor with the same values.

    >>> import mycelia as ms
    >>> print(ms.ops.identity(ms.Tensor([1, 2])))
    [1 2]
    """
    return apply(identity_p, as_tensor(x, "identity", "x"))  # type: ignore[no-any-return]


@operator()
def deepcopy(input_x: Any) -> Tensor:
    """A copy of a tensor, which later writes to the original do not reach.

    >>> import mycelia as ms
    >>> x = ms.Tensor([1, 2])
    >>> y = ms.ops.deepcopy(x)
    >>> _ = ms.ops.assign(x, ms.Tensor([3, 4]))
    >>> print(y)
    [1 2]
    """
    return identity(input_x)


@operator()
def depend(value: Any, expr: Any) -> Any:
    """The value, after ``expr`` has been computed.

    Order is that of the program in both modes, so nothing needs to be said twice; this is here for
    programs that say it.

    Args:
        value: what is given back.
        expr: what has to come first.

    >>> import mycelia as ms
    >>> print(ms.ops.depend(ms.Tensor([1]), ms.Tensor([2])))
    [1]
    """
    return value


def _text(value: Any) -> str:
    """A tensor with shape and dtype, a matrix starting on a line of its own; anything else as ``str`` has it."""
    if isinstance(value, np.ndarray):
        value = wrap(value)
    if not isinstance(value, Tensor) or isinstance(value, Parameter):
        return str(value)
    head, mark, body = repr(value).partition("value= ")
    if value.ndim < 2 or not mark:
        return head + mark + body
    indent = len(mark)
    lines = [line[indent:] if line[:indent].isspace() else line for line in body.split("\n")]
    return f"{head}value=\n" + "\n".join([line for line in lines if line.strip()])


def show(values: tuple[Any, ...]) -> None:
    """Print values as :func:`print_` does: tensors with shape and dtype, each on a line of its own."""
    print("\n".join([_text(v) for v in values]), file=sys.stdout, flush=True)


def _lower_print(*arrays: Any, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    def now(*held: Any) -> None:
        rest = iter(held)
        show(tuple([np.asarray(next(rest)) if part is None else part for part in parts]))

    jax.debug.callback(now, *arrays, ordered=True)
    return ()


#: Print inside a graph: ``parts`` are texts, None where the next input tensor stands.
print_p = Primitive(
    "print", infer=lambda *types, parts: (), lower=_lower_print, multi=True, differentiable=False, effects=(IO,),
    samples=lambda: [Sample((_X,), {"parts": ("x is", None)}, grad=False, dtypes=False)],
)  # fmt: skip


@operator()
def print_(*input_x: Any) -> None:
    """Print tensors and other values, in a graph whenever it runs, each on a line of its own.

    Args:
        input_x: tensors, strings, numbers.

    >>> import mycelia as ms
    >>> ms.ops.print_("x is", ms.Tensor([1, 2]))
    x is
    Tensor(shape=[2], dtype=Int64, value= [1, 2])
    """
    if not is_staging():
        show(input_x)
        return
    tensors = [x for x in input_x if isinstance(x, Tensor)]
    apply(print_p, *tensors, parts=tuple([None if isinstance(x, Tensor) else str(x) for x in input_x]))


def _copy_from(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Overwrite the tensor with ``src``, which is broadcast to its shape and converted to its dtype."""
    from mycelia.ops.shape import broadcast_to

    new = cast(as_tensor(src, "Tensor.copy_", "src"), self.dtype)
    set_value(self, broadcast_to(new, self.shape))
    return self


attach("assign_value", _assign_value)
attach("copy", identity)
attach("clone", identity)
attach("detach", stop_gradient)
attach("copy_", _copy_from)
attach("value", lambda self: self._snapshot())
attach("contiguous", lambda self: self)
attach("is_contiguous", lambda self: True)
