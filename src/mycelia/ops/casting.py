"""Conversion between dtypes, and the Tensor methods named after dtypes.

Floats lose their fraction when they become integers; what does not fit takes the nearest value the dtype
holds, and NaN becomes 0. Integers that do not fit wrap around. Anything but zero is True. The imaginary part
of complex numbers is dropped.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType, as_dtype
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample
from mycelia.ops.operands import as_tensor, cast as _cast
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor

_POINTS = np.array([[1.5, -2.5, 0.0], [100.75, -0.5, 3.0]])


def _infer(x: TensorType, *, dtype: DType) -> TensorType:
    if dtype.kind == "O":
        raise DTypeError("cast", "dtype", got=str(dtype), takes="a numeric dtype")
    return TensorType(dtype, x.shape)


def _lower(x: Any, *, dtype: DType) -> Any:
    if dtype.kind == "b":
        return x != 0
    if jnp.iscomplexobj(x) and dtype.kind != "c":
        x = lax.real(x)
    return x.astype(dtype.np)


def _vjp(ct: Tensor, x: Tensor, out: Tensor, *, dtype: DType) -> list[Any]:
    if not x.dtype.is_inexact or not dtype.is_inexact:
        return [None]
    return [_cast(ct, x.dtype)]


cast_p = Primitive(
    "cast", infer=_infer, lower=_lower, vjp=_vjp, shard="...->...", onnx="Cast",
    samples=lambda: [
        *[Sample((_POINTS,), {"dtype": d}) for d in (dt.float64, dt.complex128)],
        *[Sample((_POINTS,), {"dtype": d}, grad=False) for d in (dt.float32, dt.complex64)],
        *[Sample((_POINTS,), {"dtype": d}, grad=False) for d in (dt.int32, dt.int8, dt.bool_)],
        Sample((_POINTS + 2j,), {"dtype": dt.float64}, dtypes=False), Sample((np.zeros((0, 2)),), {"dtype": dt.int64}),
        Sample((np.array([300, -1]),), {"dtype": dt.uint8}, dtypes=False),
        Sample((np.array(1.0),), {"dtype": dt.float16}, grad=False),
        Bad((_POINTS,), {"dtype": dt.string}, DTypeError, "numeric"),
    ],
)  # fmt: skip


@operator()
def cast(input: Any, dtype: Any) -> Tensor:
    """Convert to another dtype.

    Args:
        input: a tensor of any shape, or a number.
        dtype: the target dtype.

    Returns:
        A tensor of the same shape; the same tensor if it has that dtype.

    Raises:
        ArgumentTypeError: ``dtype`` is not a dtype.

    >>> import mycelia as ms
    >>> print(ms.ops.cast(ms.Tensor([1.7, -1.7]), ms.int32))
    [ 1 -1]
    """
    return _cast(as_tensor(input, "cast"), as_dtype(dtype, "cast"))


def _astype(self: Tensor, dtype: Any, copy: bool = True) -> Tensor:
    """The tensor converted to another dtype; with ``copy`` False the tensor itself if it has it."""
    if not isinstance(copy, bool):
        raise ArgumentTypeError("Tensor.astype", "copy", got=f"{copy!r} ({type(copy).__name__})", takes="True or False")
    made = _cast(self, as_dtype(dtype, "Tensor.astype"))
    return made._snapshot() if copy and made is self else made


_DEVICES = ("cpu", "gpu", "ascend", "npu", "cuda")


def _to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor with another dtype: ``to(dtype)``, ``to(other)`` for the dtype of a tensor, or ``to(device, dtype)``.

    All tensors live on the device that ``set_device`` chose, so a device named here is only checked.

    Raises:
        ArgumentValueError: an unknown device.
    """
    given = dict(kwargs)
    unknown = sorted(set(given) - {"dtype", "device", "non_blocking", "copy", "other"})
    if unknown:
        raise ArgumentTypeError(
            "Tensor.to", unknown[0], got="a value", takes="one of the names dtype, device, non_blocking, copy"
        )
    rest = list(args)
    if rest and isinstance(rest[0], str) and rest[0].split(":")[0].lower() in _DEVICES:
        given["device"] = rest.pop(0)
    if rest:
        given["dtype"] = rest.pop(0)
    device, target = given.get("device"), given.get("dtype", given.get("other"))
    if device is not None and str(device).split(":")[0].lower() not in _DEVICES:
        raise ArgumentValueError("Tensor.to", "device", got=repr(device), takes='"CPU", "GPU" or "Ascend"')
    if target is None:
        return self
    return _cast(self, target.dtype if isinstance(target, Tensor) else as_dtype(target, "Tensor.to"))


def _type(self: Tensor, dtype: Any = None) -> Any:
    """The name of the tensor's dtype, or the tensor converted to ``dtype``."""
    return str(self.dtype) if dtype is None else _cast(self, as_dtype(dtype, "Tensor.type"))


@operator(methods=True)
def type_as(input: Any, other: Any) -> Tensor:
    """The tensor converted to the dtype of another.

    >>> import mycelia as ms
    >>> ms.ops.type_as(ms.Tensor([1.5]), ms.Tensor([1])).dtype
    mycelia.int64
    """
    if not isinstance(other, Tensor):
        raise ArgumentTypeError("type_as", "other", got=type(other).__name__, takes="a Tensor")
    return _cast(as_tensor(input, "type_as"), other.dtype)


def _converter(name: str, dtype: DType) -> Any:
    def method(self: Tensor) -> Tensor:
        return _cast(self, dtype)

    method.__name__ = name
    method.__doc__ = f"The tensor converted to {dtype.name}."
    return method


for _name, _dtype in (
    ("bool", dt.bool_), ("byte", dt.uint8), ("short", dt.int16), ("int", dt.int32), ("long", dt.int64),
    ("half", dt.float16), ("bfloat16", dt.bfloat16), ("float", dt.float32), ("double", dt.float64),
):  # fmt: skip
    attach(_name, _converter(_name, _dtype))
for _name, _method in (("astype", _astype), ("to", _to), ("type", _type)):
    attach(_name, _method)
