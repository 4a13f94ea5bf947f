"""Families of operators: what a kind of operator has in common, so that a declaration says the rest.

``elementwise`` makes a primitive that works element by element with broadcasting; ``reduction`` one that
folds axes; ``structural`` one that only moves elements. Each derives ``infer`` (types, shapes and their
error messages) and what it can of the other rules. :class:`Sample` and :class:`Bad` describe inputs for
the generated tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType
from mycelia.core.errors import DTypeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType, Types
from mycelia.ops.operands import broadcast_shapes
from mycelia.tensor import Tensor


@dataclass(frozen=True)
class Sample:
    """One good input of a primitive.

    Args:
        inputs: NumPy arrays, float64 where floating; tests convert them to each dtype the primitive takes.
        attrs: canonical attributes.
        grad: whether gradients are checked here (off at points where it is not differentiable).
        dtypes: whether to try every dtype of the family, or only the arrays' own.
    """

    inputs: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    grad: bool = True
    dtypes: bool = True


@dataclass(frozen=True)
class Bad:
    """One input a primitive must refuse: input arrays, attributes, the error, and words of its message."""

    inputs: tuple[Any, ...]
    attrs: dict[str, Any]
    error: type[Exception]
    match: str


def check_dtypes(where: str, types: Sequence[TensorType], allowed: Sequence[DType], names: Sequence[str] = ()) -> None:
    """Refuse inputs of a dtype outside ``allowed`` or of different dtypes.

    Raises:
        DTypeError: naming the input, its dtype and what is taken.
    """
    for i, t in enumerate(types):
        if t.dtype not in allowed:
            name = names[i] if i < len(names) else ("input" if i == 0 else f"input {i}")
            raise DTypeError(where, name, got=f"dtype {t.dtype}", takes=_names(allowed))
    for i, t in enumerate(types[1:], 1):
        if t.dtype is not types[0].dtype:
            name = names[i] if i < len(names) else f"input {i}"
            raise DTypeError(
                where, name, got=f"dtype {t.dtype}", takes=f"the dtype of the first input, {types[0].dtype}"
            )


def _names(allowed: Sequence[DType]) -> str:
    return ", ".join(str(d) for d in allowed)


def sum_to(ct: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Fold a cotangent of a broadcast result back to the shape of the operand."""
    if ct.shape == shape:
        return ct
    from mycelia.ops.reduction import reduce_sum
    from mycelia.ops.shape import reshape

    extra = len(ct.shape) - len(shape)
    axes = tuple(range(extra)) + tuple(
        i + extra for i, d in enumerate(shape) if d == 1 and ct.shape[i + extra] != 1
    )  # fmt: skip
    folded = reduce_sum(ct, axes) if axes else ct
    return folded if folded.shape == shape else reshape(folded, shape)


def _thunk(make: Callable[[], Any], shape: tuple[int, ...]) -> Callable[[], Tensor]:
    return lambda: sum_to(make(), shape)


def elementwise(
    name: str,
    lower: Callable[..., Any],
    *,
    vjp: Callable[..., Any] | None = None,
    arity: int = 1,
    dtypes: Sequence[DType] = dt.FLOATS + dt.COMPLEX,
    result: DType | Callable[[DType], DType] | None = None,
    same: bool = True,
    differentiable: bool = True,
    names: Sequence[str] = ("input", "other"),
    onnx: Any = None,
    samples: Any = (),
) -> Primitive:
    """A primitive that computes each element of the result from the elements at the same place.

    Args:
        name: its name.
        lower: from arrays of one shape to an array of that shape.
        vjp: ``(ct, *inputs, out, **attrs)`` to one cotangent per input (a single one if ``arity`` is 1);
            folding back broadcast axes is done for it.
        arity: number of inputs.
        dtypes: the dtypes it takes.
        result: the output dtype, or a function of the input dtype; by default the input's.
        same: whether all inputs must have one dtype (else only the first is checked).
        differentiable: False if the output is constant almost everywhere or not a real number.
        names: argument names for messages.
    """
    allowed = tuple(dtypes)

    def infer(*types: TensorType, **attrs: Any) -> Types:
        check_dtypes(name, types if same else types[:1], allowed, names)
        shape = types[0].shape if len(types) == 1 else broadcast_shapes(name, [t.shape for t in types], names)
        first = types[0].dtype
        made = first if result is None else result if isinstance(result, DType) else result(first)
        return TensorType(made, shape)

    def broadcast_lower(*arrays: Any, **attrs: Any) -> Any:
        if len(arrays) > 1:
            shape = np.broadcast_shapes(*[a.shape for a in arrays])
            arrays = tuple([a if a.shape == shape else jnp.broadcast_to(a, shape) for a in arrays])
        return lower(*arrays, **attrs)

    rule: Callable[..., Any] | None = None
    if vjp is not None:
        given = vjp

        def rule(ct: Tensor, *inputs: Tensor, out: Tensor, **attrs: Any) -> list[Any]:
            cts = given(ct, *inputs, out=out, **attrs)
            if len(inputs) == 1:
                return [cts[0] if isinstance(cts, tuple) else cts]
            return [
                c if c is None
                else _thunk(c, x.shape) if callable(c) and not isinstance(c, Tensor)
                else sum_to(c, x.shape)
                for c, x in zip(cts, inputs, strict=True)
            ]  # fmt: skip

    return Primitive(
        name, infer=infer, lower=broadcast_lower if arity > 1 else lower, vjp=rule, differentiable=differentiable,
        shard=",".join(["..."] * arity) + "->...", onnx=onnx, samples=samples,
    )  # fmt: skip


def conj(x: Tensor) -> Tensor:
    """The complex conjugate where there is one: gradients follow the conjugate convention."""
    if not x.dtype.is_complex:
        return x
    from mycelia.ops.elementary import conj as conjugate

    return conjugate(x)
