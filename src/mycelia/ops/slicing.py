"""Parts of a tensor along axes: slices with fixed and with computed starts, read and replaced.

``slice`` has its bounds as attributes. ``dynamic_slice`` takes the starts as tensors, so that a loop over
``x[i]`` compiles once; only the sizes and steps are attributes. A negative start counts from the end, and a
start that reaches out is moved in until the slice fits, as XLA does. ``dynamic_update`` is its counterpart:
the tensor with that part replaced. Each is the other's gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, OutOfRangeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import as_axis, as_int, as_tensor, cast
from mycelia.ops.outputs import one
from mycelia.ops.registry import operator
from mycelia.ops.shape import filled, reshaped
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import scalar
from mycelia.tensor.mode import STAGE, state

_TABLE = np.arange(12.0).reshape(3, 4)
_CUBE = np.arange(24.0).reshape(2, 3, 4)

Ints = tuple[int, ...]


# fixed bounds


def _infer_slice(x: TensorType, *, starts: Ints, stops: Ints, steps: Ints) -> TensorType:
    lengths = []
    for d, start, stop, step in zip(x.shape, starts, stops, steps, strict=True):
        if not 0 <= start <= stop <= d or step < 1:
            raise OutOfRangeError(
                "slice", "starts", got=f"{start}:{stop}:{step}", takes=f"bounds within an axis of length {d}"
            )
        lengths.append(-(-(stop - start) // step))
    return TensorType(x.dtype, tuple(lengths))


def _vjp_slice(ct: Tensor, x: Tensor, out: Tensor, *, starts: Ints, stops: Ints, steps: Ints) -> list[Any]:
    from mycelia.ops.padding import pad_constant_p

    config = tuple([
        (start, d - start - ((n - 1) * step + 1), step - 1) if n else (0, d, 0)
        for d, n, start, step in zip(x.shape, ct.shape, starts, steps, strict=True)
    ])  # fmt: skip
    return [one(pad_constant_p, ct, scalar(0, ct.dtype), config=config)]


slice_p: Primitive = Primitive(
    "slice", infer=_infer_slice, vjp=_vjp_slice, onnx="Slice",
    lower=lambda x, *, starts, stops, steps: lax.slice(x, starts, stops, steps),
    samples=lambda: [
        Sample((_TABLE,), {"starts": (1, 0), "stops": (3, 4), "steps": (1, 2)}),
        Sample((_TABLE,), {"starts": (0, 3), "stops": (3, 3), "steps": (2, 1)}),
        Sample((_CUBE,), {"starts": (0, 1, 0), "stops": (2, 2, 4), "steps": (1, 1, 3)}),
        Sample((np.array(1.0),), {"starts": (), "stops": (), "steps": ()}),
        Bad((_TABLE,), {"starts": (0, 0), "stops": (4, 4), "steps": (1, 1)}, OutOfRangeError, "length 3"),
    ],
)  # fmt: skip


def static_slice(x: Tensor, starts: Ints, stops: Ints, steps: Ints) -> Tensor:
    """``x[starts:stops:steps]`` with canonical bounds for every axis and positive steps."""
    return one(slice_p, x, starts=starts, stops=stops, steps=steps)


def narrowed(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    """``length`` elements along ``axis`` from ``start`` on."""
    if start == 0 and length == x.shape[axis]:
        return x
    starts, stops = [0] * x.ndim, list(x.shape)
    starts[axis], stops[axis] = start, start + length
    return one(slice_p, x, starts=tuple(starts), stops=tuple(stops), steps=(1,) * x.ndim)


# computed starts


def extent(size: int, step: int) -> int:
    """How many elements of the axis ``size`` elements at distance ``step`` stand over."""
    return (size - 1) * abs(step) + 1 if size else 0


def _check_starts(
    where: str, x: TensorType, starts: Sequence[TensorType], axes: Ints, sizes: Ints, steps: Ints
) -> None:
    for start, axis in zip(starts, axes, strict=True):
        if start.shape or not start.dtype.is_integer:
            raise ArgumentTypeError(where, f"start of axis {axis}", got=str(start), takes="one integer")
    for axis, size, step in zip(axes, sizes, steps, strict=True):
        if extent(size, step) > x.shape[axis]:
            raise ShapeError(
                where,
                "size",
                got=f"{size} elements at step {step}",
                takes=f"at most the {x.shape[axis]} elements of axis {axis}",
            )


def _sliced_shape(shape: Ints, axes: Ints, sizes: Ints, drop: Ints) -> Ints:
    lengths = list(shape)
    for axis, size in zip(axes, sizes, strict=True):
        lengths[axis] = size
    return tuple([d for i, d in enumerate(lengths) if i not in drop])


def _infer_dynamic(x: TensorType, *starts: TensorType, axes: Ints, sizes: Ints, steps: Ints, drop: Ints) -> TensorType:
    _check_starts("dynamic_slice", x, starts, axes, sizes, steps)
    return TensorType(x.dtype, _sliced_shape(x.shape, axes, sizes, drop))


def _block(shape: Ints, starts: Any, axes: Ints, sizes: Ints, steps: Ints) -> tuple[list[Any], list[int]]:
    """First element and lengths of the smallest box that holds the slice."""
    kind = np.int32 if all(d < 2**31 for d in shape) else np.int64
    begin: list[Any] = [np.zeros((), kind)] * len(shape)
    lengths = list(shape)
    for start, axis, size, step in zip(starts, axes, sizes, steps, strict=True):
        length = extent(size, step)
        first = jnp.where(start < 0, start + shape[axis], start) if start.dtype.kind == "i" else start
        begin[axis] = jnp.asarray(first - (length - 1) if step < 0 else first, kind)
        lengths[axis] = length
    return begin, lengths


def _backward_axes(axes: Ints, steps: Ints) -> Ints:
    return tuple([axis for axis, step in zip(axes, steps, strict=True) if step < 0])


def _lower_dynamic(x: Any, *starts: Any, axes: Ints, sizes: Ints, steps: Ints, drop: Ints) -> Any:
    begin, lengths = _block(x.shape, starts, axes, sizes, steps)
    out = lax.dynamic_slice(x, begin, lengths)
    if any(step != 1 for step in steps):
        strides = [1] * x.ndim
        for axis, step in zip(axes, steps, strict=True):
            strides[axis] = abs(step)
        out = lax.rev(lax.slice(out, [0] * x.ndim, lengths, strides), _backward_axes(axes, steps))
    return out.reshape(_sliced_shape(x.shape, axes, sizes, drop)) if drop else out


def _vjp_dynamic(ct: Tensor, x: Tensor, *starts: Tensor, out: Tensor, **attrs: Any) -> list[Any]:
    zeros = filled(0, x.dtype, x.shape)
    return [one(dynamic_update_p, zeros, ct, *starts, **attrs), *[None] * len(starts)]


def _infer_update(
    x: TensorType, update: TensorType, *starts: TensorType, axes: Ints, sizes: Ints, steps: Ints, drop: Ints
) -> TensorType:
    _check_starts("dynamic_update", x, starts, axes, sizes, steps)
    wanted = _sliced_shape(x.shape, axes, sizes, drop)
    if update.shape != wanted:
        raise ShapeError(
            "dynamic_update", "update", got=f"shape {update.shape}", takes=f"the shape of the slice, {wanted}"
        )
    if update.dtype is not x.dtype:
        raise DTypeError(
            "dynamic_update", "update", got=f"dtype {update.dtype}", takes=f"the dtype of 'input', {x.dtype}"
        )
    return x


def _lower_update(x: Any, update: Any, *starts: Any, axes: Ints, sizes: Ints, steps: Ints, drop: Ints) -> Any:
    if not update.size:
        return x
    begin, lengths = _block(x.shape, starts, axes, sizes, steps)
    update = update.reshape(_sliced_shape(x.shape, axes, sizes, ()))
    if any(step != 1 for step in steps):
        update = lax.rev(update, _backward_axes(axes, steps))
        between = [0] * x.ndim
        for axis, step in zip(axes, steps, strict=True):
            between[axis] = abs(step) - 1
        if any(between):
            config = [(0, 0, b) for b in between]
            spaced = lax.pad(update, np.zeros((), x.dtype), config)
            written = np.zeros(lengths, bool)
            written[tuple([np.s_[:: b + 1] for b in between])] = True
            update = jnp.where(written, spaced, lax.dynamic_slice(x, begin, lengths))
    return lax.dynamic_update_slice(x, update, begin)


def _vjp_update(ct: Tensor, x: Tensor, update: Tensor, *starts: Tensor, out: Tensor, **attrs: Any) -> list[Any]:
    return [
        lambda: one(dynamic_update_p, ct, filled(0, ct.dtype, update.shape), *starts, **attrs),
        lambda: one(dynamic_slice_p, ct, *starts, **attrs), *[None] * len(starts),
    ]  # fmt: skip


def _where(axes: Ints, sizes: Ints, steps: Ints | None = None, drop: Ints = ()) -> dict[str, Any]:
    return {"axes": axes, "sizes": sizes, "steps": steps or (1,) * len(axes), "drop": drop}


def _dynamic_samples() -> list[Any]:
    return [
        Sample((_TABLE, np.array(1)), _where((0,), (1,), drop=(0,))),
        Sample((_TABLE, np.array(-2)), _where((1,), (2,))),
        Sample((_CUBE, np.array(0), np.array(3)), _where((1, 2), (2, 2), (2, -3))),
        Sample((_TABLE, np.array(99)), _where((1,), (3,))), Sample((_TABLE, np.array(1)), _where((0,), (0,))),
        Sample((np.array(1.0),), _where((), ())),
        Bad((_TABLE, np.array(0)), _where((0,), (4,)), ShapeError, "at most the 3 elements"),
        Bad((_TABLE, np.array(0.5)), _where((0,), (1,)), TypeError, "one integer"),
    ]  # fmt: skip


def _update_samples() -> list[Any]:
    return [
        Sample((_TABLE, np.ones(4), np.array(1)), _where((0,), (1,), drop=(0,))),
        Sample((_TABLE, np.ones((3, 2)), np.array(-2)), _where((1,), (2,))),
        Sample((_CUBE, -np.arange(8.0).reshape(2, 2, 2), np.array(0), np.array(3)), _where((1, 2), (2, 2), (2, -3))),
        Sample((_TABLE, np.ones((0, 4)), np.array(1)), _where((0,), (0,))),
        Bad((_TABLE, np.ones(3), np.array(0)), _where((0,), (1,), drop=(0,)), ShapeError, r"\(4,\)"),
        Bad((_TABLE, np.ones(4, np.float32), np.array(0)), _where((0,), (1,), drop=(0,)), TypeError, "Float64"),
    ]  # fmt: skip


dynamic_slice_p: Primitive = Primitive(
    "dynamic_slice", infer=_infer_dynamic, lower=_lower_dynamic, vjp=_vjp_dynamic, samples=_dynamic_samples
)
dynamic_update_p: Primitive = Primitive(
    "dynamic_update", infer=_infer_update, lower=_lower_update, vjp=_vjp_update, samples=_update_samples
)


class Pick(NamedTuple):
    """What is taken of one axis: ``size`` elements from ``start`` on, ``step`` apart; ``drop`` removes the axis."""

    axis: int
    start: Any
    size: int
    step: int = 1
    drop: bool = False


def _attributes(picks: Sequence[Pick]) -> dict[str, Any]:
    return {
        "axes": tuple([p.axis for p in picks]), "sizes": tuple([p.size for p in picks]),
        "steps": tuple([p.step for p in picks]), "drop": tuple([p.axis for p in picks if p.drop]),
    }  # fmt: skip


def _starts(picks: Sequence[Pick]) -> list[Tensor]:
    return [p.start if isinstance(p.start, Tensor) else scalar(p.start, dt.int64) for p in picks]


def pick(x: Tensor, picks: Sequence[Pick]) -> Tensor:
    """The part of ``x`` that ``picks`` (by ascending axis; all of any other axis) describe.

    When it runs at once, the starts are inputs of the compiled operator; in a graph known starts are
    attributes.
    """
    if not picks:
        return x
    if state.phase != STAGE or any(isinstance(p.start, Tensor) for p in picks):
        return one(dynamic_slice_p, x, *_starts(picks), **_attributes(picks))
    starts, stops, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    for p in picks:
        length = extent(p.size, p.step)
        starts[p.axis] = p.start - (length - 1) if p.step < 0 else min(p.start, x.shape[p.axis] - length)
        stops[p.axis], steps[p.axis] = starts[p.axis] + length, abs(p.step)
    out = static_slice(x, tuple(starts), tuple(stops), tuple(steps))
    backward = tuple([p.axis for p in picks if p.step < 0])
    if backward:
        from mycelia.ops.rearrange import flipped

        out = flipped(out, backward)
    dropped = [p.axis for p in picks if p.drop]
    return reshaped(out, tuple([d for i, d in enumerate(out.shape) if i not in dropped])) if dropped else out


def put(x: Tensor, update: Tensor, picks: Sequence[Pick]) -> Tensor:
    """``x`` with the part that ``picks`` describe replaced by ``update`` of its shape."""
    return one(dynamic_update_p, x, update, *_starts(picks), **_attributes(picks))


def picked_shape(x: Tensor, picks: Sequence[Pick]) -> Ints:
    """The shape of what :func:`pick` gives."""
    attrs = _attributes(picks)
    return _sliced_shape(x.shape, attrs["axes"], attrs["sizes"], attrs["drop"])


# public functions


def _numbers(values: Any, where: str, argument: str, count: int) -> list[Any]:
    """Ints or zero-dimensional tensors, one for each axis."""
    if isinstance(values, Tensor):
        if values.ndim == 0:
            values = (values,)
        elif values.is_symbolic:
            values = tuple([pick(values, [Pick(0, i, 1, drop=True)]) for i in range(values.shape[0])])
        else:
            values = values.tolist()
    if not isinstance(values, (tuple, list)):
        values = (values,)
    if len(values) != count:
        raise ArgumentValueError(where, argument, got=f"{len(values)} values", takes=f"{count}, one for each axis")
    return [v if isinstance(v, Tensor) and v.is_symbolic else as_int(v, where, argument) for v in values]


@operator(aliases=("tensor_slice",))
def slice(input_x: Any, begin: Any, size: Any) -> Tensor:
    """A box of a tensor.

    Args:
        input_x: a tensor.
        begin: its first element along each axis.
        size: its lengths; -1 means all that is left.

    Raises:
        OutOfRangeError: the box does not lie within the tensor.

    >>> import mycelia as ms
    >>> print(ms.ops.slice(ms.Tensor([[1, 2, 3], [4, 5, 6]]), (0, 1), (2, 2)))
    [[2 3]
     [5 6]]
    """
    x = as_tensor(input_x, "slice", "input_x")
    starts = _numbers(begin, "slice", "begin", x.ndim)
    sizes = _numbers(size, "slice", "size", x.ndim)
    picks = []
    for axis, (start, length) in enumerate(zip(starts, sizes, strict=True)):
        d = x.shape[axis]
        if isinstance(length, Tensor):
            length = as_int(length, "slice", "size")
        if length == -1 and not isinstance(start, Tensor):
            length = d - start
        low = 0 if isinstance(start, Tensor) else start
        if low < 0 or length < 0 or low + length > d:
            raise OutOfRangeError(
                "slice", "begin", got=f"{low} with size {length} on axis {axis}", takes=f"a box within its length, {d}"
            )
        if isinstance(start, Tensor) or length != d:
            picks.append(Pick(axis, start, length))
    return pick(x, picks)


def _narrow(input: Any, axis: int, start: Any, length: int) -> Tensor:
    """Some neighbouring elements along an axis.

    Args:
        input: a tensor.
        axis: the axis; also called ``dim``.
        start: the first one, from the end if negative; an int or, in a graph, a zero-dimensional tensor.
        length: how many.

    Raises:
        OutOfRangeError: they do not lie within the axis.

    >>> import mycelia as ms
    >>> print(ms.ops.narrow(ms.Tensor([1, 2, 3, 4]), 0, 1, 2))
    [2 3]
    """
    x = as_tensor(input, "narrow")
    place = as_axis(axis, x.ndim, "narrow")
    if x.ndim == 0:
        raise ShapeError("narrow", "input", got="a zero-dimensional tensor", takes="at least one axis")
    d = x.shape[place]
    count = as_int(length, "narrow", "length")
    symbolic = isinstance(start, Tensor) and start.is_symbolic
    first = start if symbolic else as_int(start, "narrow", "start")
    if not symbolic and first < 0:
        first += d
    if count < 0 or count > d or (not symbolic and not 0 <= first <= d - count):
        raise OutOfRangeError(
            "narrow",
            "start",
            got=f"{start} with length {length}",
            takes=f"a range within the length {d} of axis {place}",
        )
    return pick(x, [Pick(place, first, count)]) if symbolic or count != d else x


_narrow.__name__ = _narrow.__qualname__ = "narrow"
narrow = operator(methods=True)(renaming(_narrow, dim="axis"))


@operator()
def dynamic_slice(x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Tensor:
    """A box of known lengths whose first element is computed.

    Args:
        x: a tensor.
        starts: for each axis an int or a zero-dimensional integer tensor; negative from the end. A box that
            would reach out is moved in.
        sizes: its lengths.

    Raises:
        ShapeError: the box is larger than the tensor.

    >>> import mycelia as ms
    >>> print(ms.ops.dynamic_slice(ms.Tensor([1, 2, 3, 4]), [ms.Tensor(1)], [2]))
    [2 3]
    """
    t = as_tensor(x, "dynamic_slice", "x")
    places = [s if isinstance(s, Tensor) else as_int(s, "dynamic_slice", "starts") for s in starts]
    return pick(t, [Pick(i, _inside(s, t.shape[i], n), n) for i, (s, n) in enumerate(zip(places, sizes, strict=True))])


@operator()
def dynamic_update_slice(x: Any, update: Any, starts: Sequence[Any]) -> Tensor:
    """The tensor with a box, whose first element is computed, replaced by ``update``.

    Args:
        x: a tensor.
        update: the box, of as many axes; converted to the dtype of ``x``.
        starts: as in :func:`dynamic_slice`.

    >>> import mycelia as ms
    >>> print(ms.ops.dynamic_update_slice(ms.Tensor([1, 2, 3, 4]), ms.Tensor([8, 9]), [ms.Tensor(1)]))
    [1 8 9 4]
    """
    t, u = as_tensor(x, "dynamic_update_slice", "x"), as_tensor(update, "dynamic_update_slice", "update")
    places = [s if isinstance(s, Tensor) else as_int(s, "dynamic_update_slice", "starts") for s in starts]
    return put(t, cast(u, t.dtype), [Pick(i, s, n) for i, (s, n) in enumerate(zip(places, u.shape, strict=True))])


def _inside(start: Any, length: int, size: int) -> Any:
    """A known start counted from the front and moved in; a tensor as it is."""
    if isinstance(start, Tensor):
        return start
    return max(0, min(start + length if start < 0 else start, length - size))
