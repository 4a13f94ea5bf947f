"""Elements put around a tensor, or cut off: a constant, a mirror image, the border, or the other side.

``pad_constant`` is the engine's pad: for each axis a number before, after and between elements; negative
numbers cut. ``pad_border`` takes the new elements from the tensor itself; its gradient cuts the cotangent
into pieces and adds them where they came from.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample
from mycelia.ops.operands import as_shape, as_tensor, cast
from mycelia.ops.outputs import one
from mycelia.ops.reduction import reduce_sum
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import scalar

_TABLE = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])

#: Before, after and between the elements of each axis.
Config = tuple[tuple[int, int, int], ...]
#: Before and after each axis.
Pairs = tuple[tuple[int, int], ...]

MODES = ("constant", "reflect", "symmetric", "replicate", "circular")


def _infer_constant(x: TensorType, value: TensorType, *, config: Config) -> TensorType:
    if value.shape or value.dtype is not x.dtype:
        raise ArgumentTypeError("pad", "value", got=str(value), takes=f"one number of dtype {x.dtype}")
    lengths = []
    for d, (low, high, between) in zip(x.shape, config, strict=True):
        length = low + high + d + max(d - 1, 0) * between
        if length < 0:
            raise ShapeError(
                "pad", "padding", got=f"{low} and {high} on an axis of length {d}", takes="at most its length cut off"
            )
        lengths.append(length)
    return TensorType(x.dtype, tuple(lengths))


def _vjp_constant(ct: Tensor, x: Tensor, value: Tensor, out: Tensor, *, config: Config) -> list[Any]:
    def inside() -> Tensor:
        from mycelia.ops.slicing import static_slice

        cut = pad_zeros(ct, tuple([(-low, -high) for low, high, _ in config]))
        if all(between == 0 for _, _, between in config):
            return cut
        return static_slice(cut, (0,) * cut.ndim, cut.shape, tuple([between + 1 for _, _, between in config]))

    def around() -> Tensor:
        every = tuple(range(ct.ndim))
        whole: Any = reduce_sum(ct, every)
        kept: Any = reduce_sum(inside(), every)
        return whole - kept  # type: ignore[no-any-return]

    return [inside, around]


pad_constant_p: Primitive = Primitive(
    "pad_constant", infer=_infer_constant, vjp=_vjp_constant, onnx="Pad",
    lower=lambda x, value, *, config: lax.pad(x, value, config),
    samples=lambda: [
        Sample((_TABLE, np.array(2.0)), {"config": ((1, 0, 0), (0, 2, 0))}),
        Sample((_TABLE, np.array(0.0)), {"config": ((-1, 1, 0), (2, -2, 0))}),
        Sample((_TABLE, np.array(1.0)), {"config": ((0, 1, 1), (-1, 0, 2))}),
        Sample((np.array(1.0), np.array(0.0)), {"config": ()}),
        Sample((np.zeros((0, 2)), np.array(1.0)), {"config": ((1, 1, 0), (0, 0, 0))}),
        Bad((_TABLE, np.array(0.0)), {"config": ((-3, 0, 0), (0, 0, 0))}, ShapeError, "at most its length"),
        Bad((_TABLE, np.zeros(2)), {"config": ((0, 0, 0), (0, 0, 0))}, TypeError, "one number"),
    ],
)  # fmt: skip


def pad_zeros(x: Tensor, pairs: Pairs) -> Tensor:
    """``x`` with zeros before and after each axis; negative numbers cut."""
    if not any(low or high for low, high in pairs):
        return x
    return one(pad_constant_p, x, scalar(0, x.dtype), config=tuple([(low, high, 0) for low, high in pairs]))


# from the tensor itself


def _infer_border(x: TensorType, *, pairs: Pairs, mode: str) -> TensorType:
    for d, (low, high) in zip(x.shape, pairs, strict=True):
        most = {"reflect": d - 1, "symmetric": d, "circular": d, "replicate": max(low, high) if d else 0}[mode]
        if max(low, high, 0) > max(most, 0):
            raise ShapeError(
                "pad",
                "padding",
                got=f"{(low, high)} on an axis of length {d}",
                takes=f"at most {max(most, 0)} in mode '{mode}'",
            )
    return TensorType(x.dtype, tuple([d + low + high for d, (low, high) in zip(x.shape, pairs, strict=True)]))


_NUMPY_MODES = {"reflect": "reflect", "symmetric": "symmetric", "replicate": "edge", "circular": "wrap"}


def _lower_border(x: Any, *, pairs: Pairs, mode: str) -> Any:
    return jnp.pad(x, pairs, mode=_NUMPY_MODES[mode]) if any(max(p) for p in pairs) else x


def _fold_axis(ct: Tensor, axis: int, low: int, high: int, length: int, mode: str) -> Tensor:
    """The cotangent of one axis: its middle, plus the two borders added where they were taken from."""
    from mycelia.ops.rearrange import flipped
    from mycelia.ops.slicing import narrowed

    def at(piece: Tensor, start: int) -> Any:
        pairs = [(0, 0)] * piece.ndim
        pairs[axis] = (start, length - start - piece.shape[axis])
        return pad_zeros(piece, tuple(pairs))

    total: Any = narrowed(ct, axis, low, length)
    for border, size, first in (
        (narrowed(ct, axis, 0, low), low, True),
        (narrowed(ct, axis, low + length, high), high, False),
    ):
        if not size:
            continue
        if mode == "replicate":
            total = total + at(reduce_sum(border, (axis,), True), 0 if first else length - 1)
        elif mode == "circular":
            total = total + at(border, length - size if first else 0)
        else:
            skip = 1 if mode == "reflect" else 0
            total = total + at(flipped(border, (axis,)), skip if first else length - skip - size)
    return total  # type: ignore[no-any-return]


def _vjp_border(ct: Tensor, x: Tensor, out: Tensor, *, pairs: Pairs, mode: str) -> list[Any]:
    for axis in reversed(range(x.ndim)):
        low, high = pairs[axis]
        if low or high:
            ct = _fold_axis(ct, axis, low, high, x.shape[axis], mode)
    return [ct]


def _border_samples() -> list[Any]:
    made: list[Any] = [
        Sample((_TABLE,), {"pairs": ((1, 0), (1, 2)), "mode": mode})
        for mode in ("reflect", "symmetric", "replicate", "circular")
    ]
    return [
        *made, Sample((_TABLE,), {"pairs": ((3, 1), (0, 5)), "mode": "replicate"}),
        Sample((_TABLE,), {"pairs": ((2, 2), (3, 3)), "mode": "symmetric"}),
        Sample((_TABLE,), {"pairs": ((2, 2), (3, 0)), "mode": "circular"}),
        Sample((np.zeros((0, 2)),), {"pairs": ((0, 0), (1, 1)), "mode": "reflect"}),
        Bad((_TABLE,), {"pairs": ((0, 0), (3, 0)), "mode": "reflect"}, ShapeError, "at most 2"),
        Bad((np.zeros((0, 2)),), {"pairs": ((1, 0), (0, 0)), "mode": "replicate"}, ShapeError, "at most 0"),
    ]  # fmt: skip


pad_border_p: Primitive = Primitive(
    "pad_border", infer=_infer_border, lower=_lower_border, vjp=_vjp_border, samples=_border_samples
)


def padded(x: Tensor, pairs: Pairs, mode: str, value: Any, where: str) -> Tensor:
    """``x`` padded by (canonical) ``pairs``, one for each axis, in one of :data:`MODES`.

    Raises:
        ArgumentValueError: there is no such mode, or a value is given for another mode than ``"constant"``.
    """
    if mode not in MODES:
        raise ArgumentValueError(where, "mode", got=repr(mode), takes=", ".join(repr(m) for m in MODES))
    if mode != "constant":
        if value is not None:
            raise ArgumentValueError(
                where, "value", got=f"{value!r} with mode '{mode}'", takes="None except in mode 'constant'"
            )
        grown = tuple([(max(low, 0), max(high, 0)) for low, high in pairs])
        if any(low or high for low, high in grown):
            x = one(pad_border_p, x, pairs=grown, mode=mode)
        return pad_zeros(x, tuple([(min(low, 0), min(high, 0)) for low, high in pairs]))
    if not any(low or high for low, high in pairs):
        return x
    fill = cast(value, x.dtype) if isinstance(value, Tensor) else scalar(0 if value is None else value, x.dtype)
    if fill.ndim:
        from mycelia.ops.shape import reshape

        fill = reshape(fill, ())
    return one(pad_constant_p, x, fill, config=tuple([(low, high, 0) for low, high in pairs]))


def _old_pairs(paddings: tuple[Any, ...], rank: int) -> Pairs:
    pairs = tuple([as_shape(p, "pad", "paddings") for p in paddings])
    if len(pairs) != rank or any(len(p) != 2 for p in pairs):
        raise ArgumentValueError(
            "pad", "paddings", got=str(paddings), takes=f"{rank} pairs (before, after), one for each axis"
        )
    return tuple([(p[0], p[1]) for p in pairs])


@operator()
def pad(input_x: Any, padding: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """Put elements around a tensor.

    Args:
        input_x: a tensor.
        padding: numbers of elements (before, after) for the last axis, then for the one before it, and so on;
            a negative number cuts. A tuple with one pair for each axis, first axis first, is taken too.
        mode: ``"constant"``; ``"reflect"``, a mirror image without the border itself; ``"symmetric"``, one with
            it; ``"replicate"``, the border; ``"circular"``, the other side.
        value: the number to put in mode ``"constant"``, 0 by default.

    Raises:
        ArgumentValueError: an odd number of paddings or more than two for each axis, or an unknown mode.
        ShapeError: more is taken from an axis than it has.

    >>> import mycelia as ms
    >>> print(ms.ops.pad(ms.Tensor([[1, 2]]), (1, 1)))
    [[0 1 2 0]]
    """
    x = as_tensor(input_x, "pad", "input_x")
    if isinstance(padding, (tuple, list)) and padding and isinstance(padding[0], (tuple, list)):
        return padded(x, _old_pairs(tuple(padding), x.ndim), mode, value, "pad")
    flat = as_shape(padding, "pad", "padding", minimum=-(2**62))
    if len(flat) % 2 or len(flat) > 2 * x.ndim:
        raise ArgumentValueError(
            "pad",
            "padding",
            got=str(flat),
            takes=f"pairs (before, after) for at most the {x.ndim} axes of shape {x.shape}, last axis first",
        )
    pairs = [(0, 0)] * x.ndim
    for i in range(0, len(flat), 2):
        pairs[x.ndim - 1 - i // 2] = (flat[i], flat[i + 1])
    return padded(x, tuple(pairs), mode, value, "pad")


@operator()
def padding(x: Any, pad_dim_size: int = 8) -> Tensor:
    """Extend the last axis, of length 1, to ``pad_dim_size`` with zeros.

    Args:
        x: a tensor of at least two axes, the last of length 1.
        pad_dim_size: the new length.

    Raises:
        ShapeError: the last axis is not of length 1.

    >>> import mycelia as ms
    >>> print(ms.ops.padding(ms.Tensor([[7]]), 3))
    [[7 0 0]]
    """
    t = as_tensor(x, "padding", "x")
    if t.ndim < 2 or t.shape[-1] != 1:
        raise ShapeError("padding", "x", got=f"shape {t.shape}", takes="at least two axes, the last of length 1")
    if not isinstance(pad_dim_size, int) or isinstance(pad_dim_size, bool) or pad_dim_size < 1:
        raise ArgumentValueError("padding", "pad_dim_size", got=repr(pad_dim_size), takes="an int of at least 1")
    return pad_zeros(t, ((0, 0),) * (t.ndim - 1) + ((0, pad_dim_size - 1),))


@operator()
def mirror_pad(input_x: Any, paddings: Any, mode: str) -> Tensor:
    """Put mirror images around a tensor.

    Args:
        input_x: a tensor.
        paddings: one pair (before, after) for each axis, first axis first; a tensor or nested lists.
        mode: ``"REFLECT"`` leaves the border itself out, ``"SYMMETRIC"`` repeats it.

    Raises:
        ArgumentValueError: another mode, or not one pair for each axis.
        ShapeError: more is taken from an axis than it has.

    >>> import mycelia as ms
    >>> print(ms.ops.mirror_pad(ms.Tensor([1, 2, 3]), [[1, 1]], "REFLECT"))
    [2 1 2 3 2]
    """
    x = as_tensor(input_x, "mirror_pad", "input_x")
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ArgumentValueError("mirror_pad", "mode", got=repr(mode), takes='"REFLECT" or "SYMMETRIC"')
    rows = paddings.tolist() if isinstance(paddings, (Tensor, np.ndarray)) else paddings
    return padded(x, _old_pairs(tuple(rows), x.ndim), mode.lower(), None, "mirror_pad")
