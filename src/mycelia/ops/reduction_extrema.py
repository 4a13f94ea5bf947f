"""The largest and smallest elements along axes, and where they stand: max, min, amax, amin, argmax, argmin.

NaN is the result wherever there is one, and its place that of the first. Of equal elements the first one is
the place; ``max`` and ``min`` along one axis give it the whole gradient, ``amax`` and ``amin`` share the
gradient among all of them.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import NUMBER, as_axes, as_axis, as_tensor
from mycelia.ops.outputs import one, several
from mycelia.ops.reduction import over, reduced_shape, spread
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import reshaped
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import scalar

_TABLE = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])
_TIES = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
_NAN = np.array([[1.0, np.nan, 3.0], [np.nan, -np.inf, np.nan]])
_CUBE = np.sin(np.arange(24.0)).reshape(2, 3, 4)

_ORDERED = (dt.bool_, *dt.REALS)

Ints = tuple[int, ...]


def _refuse_empty(where: str, x: TensorType, axes: Ints) -> None:
    for axis in axes:
        if x.shape[axis] == 0:
            raise ShapeError(where, "input", got=f"shape {x.shape}", takes=f"at least one element along axis {axis}")


# values


def _infer_weights(x: TensorType, extreme: TensorType, *, axes: Ints) -> TensorType:
    check_dtypes("tie_weights", (x, extreme), dt.FLOATS)
    return x


def _lower_weights(x: Any, extreme: Any, *, axes: Ints) -> Any:
    chosen = ((x == extreme) | (jnp.isnan(x) & jnp.isnan(extreme))).astype(np.promote_types(x.dtype, np.float32))
    return (chosen / jnp.sum(chosen, axis=axes, keepdims=True)).astype(x.dtype)


#: For the elements that equal the extreme one, 1 over their number along ``axes``; 0 for the others.
tie_weights_p = Primitive(
    "tie_weights", infer=_infer_weights, lower=_lower_weights, differentiable=False,
    samples=lambda: [
        Sample((_TIES, np.broadcast_to(_TIES.max(1, keepdims=True), (2, 3))), {"axes": (1,)}),
        Sample((_NAN, np.full((2, 3), np.nan)), {"axes": (0, 1)}, dtypes=False),
    ],
)  # fmt: skip


def _infer_extreme(where: str) -> Any:
    def infer(x: TensorType, *, axes: Ints, keepdims: bool) -> TensorType:
        check_dtypes(where, (x,), _ORDERED)
        _refuse_empty(where, x, axes)
        return TensorType(x.dtype, reduced_shape(x.shape, axes, keepdims))

    return infer


def _vjp_extreme(ct: Tensor, x: Tensor, out: Tensor, *, axes: Ints, keepdims: bool) -> list[Any]:
    above: Any = spread(ct, x.shape, axes)
    return [above * one(tie_weights_p, x, spread(out, x.shape, axes), axes=axes)]


def _extreme_samples() -> list[Any]:
    return [
        Sample((_TABLE,), over((0,))), Sample((_TABLE,), over((0, 1), True)), Sample((_CUBE,), over((0, 2))),
        Sample((_TIES,), over((1,)), grad=False), Sample((_NAN,), over((1,)), grad=False, dtypes=False),
        Sample((np.zeros((0, 3)),), over((1,))), Sample((np.array(2.0),), over(())),
        Sample((np.array([[True, False], [False, False]]),), over((1,)), dtypes=False),
        Bad((np.zeros((0, 3)),), over((0,)), ShapeError, "along axis 0"),
        Bad((_TABLE + 0j,), over((0,)), TypeError, "Complex128"),
    ]  # fmt: skip


reduce_max_p = Primitive(
    "reduce_max", infer=_infer_extreme("max"), vjp=_vjp_extreme, onnx="ReduceMax", samples=_extreme_samples,
    lower=lambda x, *, axes, keepdims: jnp.max(x, axis=axes, keepdims=keepdims),
)  # fmt: skip
reduce_min_p = Primitive(
    "reduce_min", infer=_infer_extreme("min"), vjp=_vjp_extreme, onnx="ReduceMin", samples=_extreme_samples,
    lower=lambda x, *, axes, keepdims: jnp.min(x, axis=axes, keepdims=keepdims),
)  # fmt: skip


# places


def _infer_place(where: str) -> Any:
    def infer(x: TensorType, *, axis: int, keepdims: bool, dtype: DType) -> TensorType:
        check_dtypes(where, (x,), _ORDERED)
        axes = (axis,) if x.rank else ()
        _refuse_empty(where, x, axes)
        return TensorType(dtype, reduced_shape(x.shape, axes, keepdims))

    return infer


def _place(x: Any, axis: int, keepdims: bool, larger: bool, dtype: Any) -> Any:
    if x.ndim == 0:
        return jnp.zeros((), dtype)
    return (jnp.argmax if larger else jnp.argmin)(x, axis, keepdims=keepdims).astype(dtype)


def _place_samples() -> list[Any]:
    made: list[Any] = [
        Sample((x,), {"axis": 1, "keepdims": False, "dtype": dt.int64}, dtypes=x is not _NAN)
        for x in (_TABLE, _TIES, _NAN)
    ]
    return [
        *made, Sample((_TABLE,), {"axis": 0, "keepdims": True, "dtype": dt.int32}),
        Sample((np.array(2.0),), {"axis": 0, "keepdims": False, "dtype": dt.int64}),
        Bad((np.zeros((0, 3)),), {"axis": 0, "keepdims": False, "dtype": dt.int64}, ShapeError, "along axis 0"),
        Bad((_TABLE + 0j,), {"axis": 0, "keepdims": False, "dtype": dt.int64}, TypeError, "Complex128"),
    ]  # fmt: skip


argmax_p = Primitive(
    "argmax", infer=_infer_place("argmax"), differentiable=False, onnx="ArgMax", samples=_place_samples,
    lower=lambda x, *, axis, keepdims, dtype: _place(x, axis, keepdims, True, dtype.np),
)  # fmt: skip
argmin_p = Primitive(
    "argmin", infer=_infer_place("argmin"), differentiable=False, onnx="ArgMin", samples=_place_samples,
    lower=lambda x, *, axis, keepdims, dtype: _place(x, axis, keepdims, False, dtype.np),
)  # fmt: skip


def _infer_both(where: str) -> Any:
    def infer(x: TensorType, *, axis: int, keepdims: bool) -> tuple[TensorType, TensorType]:
        check_dtypes(where, (x,), _ORDERED)
        axes = (axis,) if x.rank else ()
        _refuse_empty(where, x, axes)
        shape = reduced_shape(x.shape, axes, keepdims)
        return TensorType(x.dtype, shape), TensorType(dt.int64, shape)

    return infer


def _lower_both(x: Any, axis: int, keepdims: bool, larger: bool) -> Any:
    if x.ndim == 0:
        return x, jnp.zeros((), np.int64)
    places = _place(x, axis, True, larger, np.int64)
    values = jnp.take_along_axis(x, places, axis)
    return (values, places) if keepdims else (jnp.squeeze(values, axis), jnp.squeeze(places, axis))


def _vjp_both(ct: Any, x: Tensor, out: Any, *, axis: int, keepdims: bool) -> list[Any]:
    from mycelia.ops.scatter import scatter_add_elements

    if ct[0] is None or x.ndim == 0:
        return [ct[0]]
    shape = reduced_shape(x.shape, (axis,), True)
    return [scatter_add_elements(x.shape, reshaped(out[1], shape), reshaped(ct[0], shape), axis)]


def _both_samples() -> list[Any]:
    return [
        Sample((_TABLE,), {"axis": 1, "keepdims": False}), Sample((_CUBE,), {"axis": 1, "keepdims": True}),
        Sample((_TIES,), {"axis": 1, "keepdims": False}, grad=False),
        Sample((np.array(2.0),), {"axis": 0, "keepdims": False}),
        Sample((_NAN,), {"axis": 0, "keepdims": False}, grad=False, dtypes=False),
        Bad((np.zeros((0, 3)),), {"axis": 0, "keepdims": False}, ShapeError, "along axis 0"),
    ]  # fmt: skip


max_with_index_p = Primitive(
    "max_with_index", infer=_infer_both("max"), multi=True, vjp=_vjp_both, samples=_both_samples,
    lower=lambda x, *, axis, keepdims: _lower_both(x, axis, keepdims, True),
)  # fmt: skip
min_with_index_p = Primitive(
    "min_with_index", infer=_infer_both("min"), multi=True, vjp=_vjp_both, samples=_both_samples,
    lower=lambda x, *, axis, keepdims: _lower_both(x, axis, keepdims, False),
)  # fmt: skip


# public functions


def _limited(x: Tensor, initial: Any, where: Any, name: str, larger: bool) -> Tensor:
    """NumPy's ``initial`` and ``where``: elements left out count as ``initial``, and so does one more."""
    masked = where is not None and where is not True
    if initial is None and not masked:
        return x
    from mycelia.ops.extremum import maximum, minimum
    from mycelia.ops.selection import where as choose

    if initial is not None and (not isinstance(initial, NUMBER) or isinstance(initial, bool)):
        raise ArgumentTypeError(name, "initial", got=repr(initial), takes="a number")
    least: Any = _lowest(x.dtype, larger) if initial is None else initial
    if masked:
        x = choose(where, x, scalar(least, x.dtype))
    return x if initial is None else (maximum if larger else minimum)(x, scalar(initial, x.dtype))


def _lowest(dtype: DType, larger: bool) -> Any:
    if dtype is dt.bool_:
        return not larger
    if dtype.is_integer:
        info = np.iinfo(dtype.np)
        return info.min if larger else info.max
    return float("-inf") if larger else float("inf")


def _extreme(input: Any, axis: Any, keepdims: bool, initial: Any, where: Any, larger: bool, name: str) -> Tensor:
    x = _limited(as_tensor(input, name), initial, where, name, larger)
    return one(reduce_max_p if larger else reduce_min_p, x, axes=as_axes(axis, x.ndim, name), keepdims=bool(keepdims))


def _with_place(
    input: Any, axis: Any, keepdims: bool, initial: Any, where: Any, larger: bool, name: str
) -> tuple[Tensor, ...]:
    if axis is None:
        return _extreme(input, None, False, initial, where, larger, name), scalar(0, dt.int64)
    x = _limited(as_tensor(input, name), initial, where, name, larger)
    place = as_axis(axis, x.ndim, name)
    return several(max_with_index_p if larger else min_with_index_p, x, axis=place, keepdims=bool(keepdims))


@operator()
def max(
    input: Any, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> tuple[Tensor, ...]:
    """The largest element along an axis, and where it stands.

    Args:
        input: a real tensor.
        axis: the axis; without it, the largest of all elements, with 0 for its place.
        keepdims: keep the axis with length 1.
        initial: a number that takes part besides the elements.
        where: a bool tensor: which elements take part.

    Returns:
        The values, NaN where there is one, and the places as int64, of the first one among equals.

    Raises:
        ShapeError: the axis is empty.

    >>> import mycelia as ms
    >>> values, places = ms.ops.max(ms.Tensor([[1, 3], [4, 2]]), 1)
    >>> print(values, places)
    [3 4] [1 0]
    """
    return _with_place(input, axis, keepdims, initial, where, True, "max")


@operator()
def min(
    input: Any, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> tuple[Tensor, ...]:
    """The smallest element along an axis, and where it stands; see :func:`max`.

    >>> import mycelia as ms
    >>> values, places = ms.ops.min(ms.Tensor([[1, 3], [4, 2]]), 1)
    >>> print(values, places)
    [1 2] [0 1]
    """
    return _with_place(input, axis, keepdims, initial, where, False, "min")


def _method(larger: bool) -> Any:
    name = "max" if larger else "min"

    def method(
        self: Tensor, *args: Any, axis: Any = None, keepdims: Any = None, dim: Any = None, keepdim: Any = None,
        initial: Any = None, where: Any = None, return_indices: Any = None,
    ) -> Any:  # fmt: skip
        if args and isinstance(args[0], Tensor) and args[0].ndim:
            from mycelia.ops.extremum import maximum, minimum

            return (maximum if larger else minimum)(self, args[0])
        by_keyword = not (keepdims is initial is where is return_indices is None)
        if len(args) > 2:
            raise ArgumentTypeError(
                f"Tensor.{name}", "axis", got=f"{len(args)} positional arguments", takes="at most two"
            )
        kept = args[1] if len(args) == 2 else keepdim if keepdim is not None else keepdims
        if dim is not None or (
            args and args[0] is not None and not isinstance(args[0], (tuple, list)) and not by_keyword
        ):
            return _with_place(self, args[0] if args else dim, bool(kept), None, None, larger, name)
        chosen = args[0] if args else axis
        if return_indices:
            return _with_place(self, chosen, bool(kept), initial, where, larger, name)
        return _extreme(self, chosen, bool(kept) and chosen is not None, initial, where, larger, name)

    method.__name__ = name
    method.__doc__ = (
        f"``{name}()`` gives one value, ``{name}(axis=...)`` values, ``{name}(dim)`` values and places.\n\n"
        f"``return_indices=True`` adds the places to the keyword form; ``{name}(other)`` compares two tensors."
    )
    return method


attach("max", _method(True))
attach("min", _method(False))


@operator()
def amax(input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """The largest element over axes.

    Args:
        input: a real tensor.
        axis: an axis or a tuple of axes; all of them by default.
        keepdims: keep folded axes with length 1.
        initial: a number that takes part besides the elements.
        where: a bool tensor: which elements take part.

    Returns:
        A tensor without the folded axes; NaN where there is one.

    Raises:
        ShapeError: a folded axis is empty.

    >>> import mycelia as ms
    >>> print(ms.ops.amax(ms.Tensor([[1, 3], [4, 2]]), 0))
    [4 3]
    """
    return _extreme(input, axis, keepdims, initial, where, True, "amax")


@operator()
def amin(input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """The smallest element over axes; see :func:`amax`.

    >>> import mycelia as ms
    >>> print(ms.ops.amin(ms.Tensor([[1, 3], [4, 2]]), 0))
    [1 2]
    """
    return _extreme(input, axis, keepdims, initial, where, False, "amin")


attach("amax", renaming(amax, dim="axis", keepdim="keepdims"))
attach("amin", renaming(amin, dim="axis", keepdim="keepdims"))


@operator(methods=True)
def aminmax(input: Any, *, axis: int | None = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest element along an axis.

    Args:
        input: a real tensor.
        axis: the axis; None for all elements.
        keepdims: keep the axis with length 1.

    >>> import mycelia as ms
    >>> print(*ms.ops.aminmax(ms.Tensor([3, 1, 2])))
    1 3
    """
    return amin(input, axis, keepdims), amax(input, axis, keepdims)


def _ptp(self: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest minus the smallest element over axes."""
    most: Any = amax(self, axis, keepdims)
    return most - amin(self, axis, keepdims)  # type: ignore[no-any-return]


attach("ptp", _ptp)


def _argument(input: Any, axis: Any, keepdims: bool, primitive: Primitive, dtype: DType, where: str) -> Tensor:
    x = as_tensor(input, where)
    if axis is None:
        return one(primitive, reshaped(x, (x.size,)), axis=0, keepdims=False, dtype=dtype)
    return one(primitive, x, axis=as_axis(axis, x.ndim, where), keepdims=bool(keepdims), dtype=dtype)


@operator()
def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element along an axis stands.

    Args:
        input: a real tensor.
        dim: the axis; without it the place in row-major order.
        keepdim: keep the axis with length 1.

    Returns:
        An int64 tensor: the first place among equals, that of the first NaN if there is one.

    Raises:
        ShapeError: there is no element.

    >>> import mycelia as ms
    >>> print(ms.ops.argmax(ms.Tensor([[1, 3], [4, 2]]), 1))
    [1 0]
    """
    return _argument(input, dim, keepdim, argmax_p, dt.int64, "argmax")


@operator()
def argmin(input: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element along an axis stands; int32, else as :func:`argmax`.

    >>> import mycelia as ms
    >>> print(ms.ops.argmin(ms.Tensor([[1, 3], [4, 2]]), 1))
    [0 1]
    """
    return _argument(input, axis, keepdims, argmin_p, dt.int32, "argmin")


attach("argmax", renaming(argmax, axis="dim", keepdims="keepdim"))
attach("argmin", renaming(argmin, dim="axis", keepdim="keepdims"))


def _argmax_with_value(self: Tensor, axis: int = 0, keep_dims: bool = False) -> tuple[Tensor, ...]:
    """The largest element along an axis, and where it stands."""
    return _with_place(self, axis, keep_dims, None, None, True, "argmax_with_value")


def _argmin_with_value(self: Tensor, axis: int = 0, keep_dims: bool = False) -> tuple[Tensor, ...]:
    """The smallest element along an axis, and where it stands."""
    return _with_place(self, axis, keep_dims, None, None, False, "argmin_with_value")


attach("argmax_with_value", _argmax_with_value)
attach("argmin_with_value", _argmin_with_value)
