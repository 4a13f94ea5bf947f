"""Choosing elements by a condition: where, select, masked_fill, clamp.

What has a shape that depends on values (nonzero, masked_select, unique) is in :mod:`mycelia.ops.searching`.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import attach_in_place
from mycelia.ops.declare import Bad, Sample, check_dtypes, sum_to
from mycelia.ops.operands import NUMBER, as_tensor, broadcast_shapes, cast, same_dtype
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_C = np.array([[True, False, True], [False, False, True]])
_A = np.array([[-2.5, -1.0, 0.5], [1.0, 2.0, 3.5]])
_B = np.array([[-2.0, -1.5, 1.5], [0.5, 2.5, -3.5]])
_CHOICE = ("condition", "input", "other")
_KINDS = "buifc"


def _infer_where(condition: TensorType, a: TensorType, b: TensorType) -> TensorType:
    check_dtypes("where", (condition,), (dt.bool_,), _CHOICE)
    check_dtypes("where", (a, b), dt.ALL, _CHOICE[1:])
    return TensorType(a.dtype, broadcast_shapes("where", (condition.shape, a.shape, b.shape), _CHOICE))


def _lower_where(condition: Any, a: Any, b: Any) -> Any:
    shape = np.broadcast_shapes(condition.shape, a.shape, b.shape)
    return lax.select(*[x if x.shape == shape else jnp.broadcast_to(x, shape) for x in (condition, a, b)])


def _where_gradients(ct: Tensor, condition: Tensor, a: Tensor, b: Tensor) -> list[Any]:
    return [
        None, lambda: sum_to(where(condition, ct, 0), a.shape), lambda: sum_to(where(condition, 0, ct), b.shape),
    ]  # fmt: skip


where_p = Primitive(
    "where", infer=_infer_where, lower=_lower_where, shard="...,...,...->...", onnx="Where",
    vjp=lambda ct, condition, a, b, out: _where_gradients(ct, condition, a, b),
    samples=lambda: [
        Sample((_C, _A, _B)), Sample((_C, _A, _B[0])), Sample((_C[:1], np.array(0.5), _B)),
        Sample((np.array(True), _A, np.array([[1.0]]))), Sample((np.zeros((0, 1), bool), _A[0], _B[0])),
        Bad((_C, _A, np.zeros(2)), {}, ShapeError, "broadcasts"), Bad((_A, _A, _A), {}, DTypeError, "condition"),
    ],
)  # fmt: skip


@operator(aliases=("select",))
def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Elements of ``input`` where a condition holds, of ``other`` elsewhere, with broadcasting.

    Args:
        condition: a bool tensor; of another dtype, anything but zero is true.
        input: a tensor or number.
        other: a tensor or number. Both left out, the result is that of ``nonzero(condition, as_tuple=True)``.

    Returns:
        A tensor of the broadcast shape and of the promoted dtype of ``input`` and ``other``.

    Raises:
        ShapeError: the shapes do not broadcast.
        ArgumentTypeError: only one of ``input`` and ``other`` is given.

    >>> import mycelia as ms
    >>> print(ms.ops.where(ms.Tensor([True, False]), ms.Tensor([1, 2]), 0))
    [1 0]
    """
    if input is None or other is None:
        if input is None and other is None:
            from mycelia.ops.searching import nonzero

            return nonzero(condition, as_tuple=True)
        missing = "input" if input is None else "other"
        raise ArgumentTypeError("where", missing, got="None", takes="a Tensor or number, if the other one is given")
    c = cast(as_tensor(condition, "where", "condition"), dt.bool_)
    return apply(where_p, c, *same_dtype("where", input, other))


def _where_method(self: Tensor, condition: Any, y: Any) -> Tensor:
    """The tensor's own elements where ``condition`` holds, those of ``y`` elsewhere."""
    return where(condition, self, y)  # type: ignore[no-any-return]


@operator()
def select_ext(input: Any, dim: int, index: int) -> Tensor:
    """The slice of a tensor at one index of one axis, without that axis.

    >>> import mycelia as ms
    >>> print(ms.ops.select_ext(ms.Tensor([[1, 2], [3, 4]]), 0, 1))
    [3 4]
    """
    from mycelia.ops.operands import as_axis

    x = as_tensor(input, "select")
    axis = as_axis(dim, x.ndim, "select", "dim")
    return x[(slice(None),) * axis + (index,)]


def _select_method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """``select(condition, y)`` chooses between two tensors, ``select(dim, index)`` takes one slice."""
    slicing = bool({"dim", "index"} & kwargs.keys()) or (len(args) > 0 and isinstance(args[0], int))
    names = ("dim", "index") if slicing else ("condition", "y")
    given = dict(zip(names, args, strict=False)) | kwargs
    if set(given) != set(names) or len(args) > 2:
        raise ArgumentTypeError(
            "Tensor.select", names[0], got=f"the arguments {', '.join(given) or 'none'}",
            takes="(condition, y) or (dim, index)",
        )  # fmt: skip
    if names[0] == "dim":
        return select_ext(self, given["dim"], given["index"])
    return where(given["condition"], self, given["y"])  # type: ignore[no-any-return]


@operator(methods=True)
def masked_fill(input_x: Any, mask: Any, value: Any) -> Tensor:
    """A tensor with ``value`` in the places where ``mask`` is True.

    Args:
        input_x: a tensor of any dtype, which the result has.
        mask: a bool tensor that broadcasts with it.
        value: a number or a tensor of one element.

    Raises:
        DTypeError: the mask is not of bools, or the value is of a higher kind than the tensor (a float for integers).
        ShapeError: the shapes do not broadcast, or the value has more than one element.

    >>> import mycelia as ms
    >>> print(ms.ops.masked_fill(ms.Tensor([1.0, 2.0]), ms.Tensor([True, False]), 9))
    [9. 2.]
    """
    x = as_tensor(input_x, "masked_fill", "input_x")
    m = as_tensor(mask, "masked_fill", "mask")
    if m.dtype is not dt.bool_:
        raise DTypeError("masked_fill", "mask", got=f"dtype {m.dtype}", takes="Bool")
    common = same_dtype("masked_fill", x, value, names=("input_x", "value"))
    if common[0].dtype is not x.dtype and _KINDS.index(common[0].dtype.kind) > _KINDS.index(x.dtype.kind):
        raise DTypeError(
            "masked_fill", "value", got=repr(value) if isinstance(value, NUMBER) else f"dtype {common[1].dtype}",
            takes=f"a value that fits the tensor's dtype {x.dtype}",
        )  # fmt: skip
    fill = cast(common[1], x.dtype)
    if fill.ndim:
        if fill.size != 1:
            raise ShapeError("masked_fill", "value", got=f"shape {fill.shape}", takes="one element")
        from mycelia.ops.shape import reshape

        fill = reshape(fill, ())
    return apply(where_p, m, fill, x)  # type: ignore[no-any-return]


def _clip(x: Any, *bounds: Any, sides: str) -> Any:
    for side, bound in zip(sides, bounds, strict=True):
        x = jnp.maximum(x, bound) if side == "l" else jnp.minimum(x, bound)
    return x


def _infer_clip(x: TensorType, *bounds: TensorType, sides: str) -> TensorType:
    names = ("input", *("min" if s == "l" else "max" for s in sides))
    check_dtypes("clamp", (x, *bounds), dt.REALS, names)
    return TensorType(x.dtype, broadcast_shapes("clamp", (x.shape, *[b.shape for b in bounds]), names))


def _inside(x: Any, *bounds: Any, sides: str) -> Any:
    mask = jnp.ones(np.broadcast_shapes(x.shape, *[b.shape for b in bounds]), bool)
    for side, bound in zip(sides, bounds, strict=True):
        mask &= (x >= bound) if side == "l" else (x <= bound)
    return mask


def _clip_gradients(ct: Tensor, x: Tensor, *bounds: Tensor, out: Tensor, sides: str) -> list[Any]:
    """The cotangent goes to ``x`` inside the bounds and on them, else to the bound that was taken."""

    def to_input() -> Tensor:
        return sum_to(where(apply(inside_p, x, *bounds, sides=sides), ct, 0), x.shape)

    def to_bound(side: str, bound: Tensor) -> Tensor:
        other = bounds[1 - sides.index(side)] if len(bounds) == 2 else None
        taken: Any = x < bound if side == "l" else x > bound
        if other is not None:
            taken = taken & (bound <= other) if side == "l" else taken | (bound < other)
        return sum_to(where(taken, ct, 0), bound.shape)

    def later(side: str, bound: Tensor) -> Any:
        return lambda: to_bound(side, bound)

    return [to_input, *[later(s, b) for s, b in zip(sides, bounds, strict=True)]]


def _clip_samples() -> list[Any]:
    low, high = np.array(-1.25), np.array([0.75, 1.5, 3.0])
    return [
        Sample((_A, low, high), {"sides": "lh"}), Sample((_A, low), {"sides": "l"}), Sample((_A, high), {"sides": "h"}),
        Sample((np.array(2.0), low, high), {"sides": "lh"}), Sample((np.zeros((0, 3)), low, high), {"sides": "lh"}),
        Sample((np.array([1.0, np.nan, np.inf]), np.array(3.0), np.array(2.0)), {"sides": "lh"},
               grad=False, dtypes=False),
        Bad((_A, np.zeros(2)), {"sides": "l"}, ShapeError, "min"),
        Bad((_A + 0j, _A + 0j), {"sides": "l"}, DTypeError, "Complex128"),
    ]  # fmt: skip


#: Inputs: the tensor, then the bounds that ``sides`` names: "l" a lower, "h" an upper, "lh" both.
clip_p = Primitive(
    "clip", infer=_infer_clip, lower=_clip, vjp=_clip_gradients, onnx="Clip", shard="...", samples=_clip_samples
)
inside_p = Primitive(
    "inside", lower=_inside, differentiable=False, shard="...", samples=_clip_samples,
    infer=lambda x, *bounds, sides: TensorType(dt.bool_, _infer_clip(x, *bounds, sides=sides).shape),
)  # fmt: skip


def _clamp(where: str, input: Any, low: Any, high: Any, names: tuple[str, str]) -> Tensor:
    if low is None and high is None:
        raise ArgumentValueError(
            where, names[0], got=f"None, as '{names[1]}' did", takes="a bound, if the other is None"
        )  # fmt: skip
    sides = ("l" if low is not None else "") + ("h" if high is not None else "")
    bounds = [b for b in (low, high) if b is not None]
    used = ("input", *[n for n, b in zip(names, (low, high), strict=True) if b is not None])
    x = as_tensor(input, where)
    return apply(clip_p, *same_dtype(where, x, *bounds, names=used), sides=sides)  # type: ignore[no-any-return]


@operator(methods=True, aliases=("clip",))
def clamp(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """Each element moved into the range from ``min`` to ``max``.

    Args:
        input: a real tensor.
        min: lower bound, a number or a tensor that broadcasts with it; None for none.
        max: upper bound likewise; it wins where it is below ``min``.

    Returns:
        A tensor of the promoted dtype; NaN stays NaN. The gradient of elements on a bound is passed on.

    Raises:
        ArgumentValueError: both bounds are None.

    >>> import mycelia as ms
    >>> print(ms.ops.clamp(ms.Tensor([1, 5, 9]), 2, 7))
    [2 5 7]
    """
    return _clamp("clamp", input, min, max, ("min", "max"))


attach("clip", clamp)


@operator()
def clip_by_value(x: Any, clip_value_min: Any = None, clip_value_max: Any = None) -> Any:
    """Each element moved into a range, keeping the dtype; a list or tuple of tensors gives a tuple.

    Args:
        x: a real tensor, or a list or tuple of them.
        clip_value_min: lower bound, a number or tensor; None for none.
        clip_value_max: upper bound likewise.

    Raises:
        ArgumentValueError: both bounds are None.

    >>> import mycelia as ms
    >>> print(ms.ops.clip_by_value(ms.Tensor([1.0, 5.0, 9.0]), 2, 7))
    [2. 5. 7.]
    """
    if isinstance(x, (list, tuple)) and any(isinstance(t, Tensor) for t in x):
        return tuple([clip_by_value(t, clip_value_min, clip_value_max) for t in x])
    t = as_tensor(x, "clip_by_value", "x")
    names = ("clip_value_min", "clip_value_max")
    return cast(_clamp("clip_by_value", t, clip_value_min, clip_value_max, names), t.dtype)


def _infer_isin(x: TensorType, among: TensorType) -> TensorType:
    check_dtypes("isin", (x, among), dt.ALL, ("elements", "test_elements"))
    return TensorType(dt.bool_, x.shape)


isin_p = Primitive(
    "isin", infer=_infer_isin, lower=jnp.isin, differentiable=False,
    samples=lambda: [
        Sample((_A, np.array([0.5, 2.0, 7.0]))), Sample((np.array(2.0), _A)), Sample((np.zeros((0, 2)), _A)),
        Sample((_A, np.zeros(0))), Bad((_A, np.array([1])), {}, DTypeError, "Int64"),
    ],
)  # fmt: skip


@operator(methods=True)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Where an element is among ``test_elements``.

    Args:
        elements: a tensor of any shape, which the result has.
        test_elements: a tensor or list of any shape.
        assume_unique: accepted for compatibility; it changes nothing.
        invert: whether to tell where an element is not among them.

    >>> import mycelia as ms
    >>> print(ms.ops.isin(ms.Tensor([1, 2, 3]), ms.Tensor([2, 5])))
    [False  True False]
    """
    found: Tensor = apply(isin_p, *same_dtype("isin", elements, test_elements, names=("elements", "test_elements")))
    if invert:
        from mycelia.ops.logical import logical_not

        return logical_not(found)
    return found


attach("where", _where_method)
attach("select", _select_method)
for _name, _compute in (("clamp_", clamp), ("masked_fill_", masked_fill)):
    attach_in_place(_name, _compute)
