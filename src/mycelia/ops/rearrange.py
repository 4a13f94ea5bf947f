"""Elements reversed, rotated or repeated along axes: flip, roll, rot90, tile, repeat."""

from __future__ import annotations

from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ops.declare import Sample
from mycelia.ops.keywords import as_keyword, renaming
from mycelia.ops.operands import as_axes, as_axis, as_int, as_shape, as_tensor, varargs
from mycelia.ops.outputs import one
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import broadcast_to_p, permuted, reshaped
from mycelia.tensor import Tensor

_CUBE = np.arange(24.0).reshape(2, 3, 4)

flip_p: Primitive = Primitive(
    "flip", infer=lambda x, *, axes: x, lower=lambda x, *, axes: lax.rev(x, axes),
    vjp=lambda ct, x, out, *, axes: [flipped(ct, axes)],
    samples=lambda: [
        Sample((_CUBE,), {"axes": (0, 2)}), Sample((np.zeros((0, 2)),), {"axes": (0,)}),
        Sample((np.array(1.0),), {"axes": ()}),
    ],
)  # fmt: skip


def flipped(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """``x`` with the order along canonical ``axes`` reversed."""
    return one(flip_p, x, axes=axes) if axes else x


def _no_axes(axes: Any) -> bool:
    return isinstance(axes, (tuple, list)) and not axes


@operator()
def flip(input: Any, dims: Any) -> Tensor:
    """Reverse the order along axes.

    Args:
        input: a tensor.
        dims: the axis or axes.

    Raises:
        OutOfRangeError: there is no such axis.

    >>> import mycelia as ms
    >>> print(ms.ops.flip(ms.Tensor([[1, 2], [3, 4]]), (0,)))
    [[3 4]
     [1 2]]
    """
    x = as_tensor(input, "flip")
    return x if _no_axes(dims) else flipped(x, as_axes(dims, x.ndim, "flip", "dims"))


def _flip_method(self: Tensor, *dims: Any) -> Tensor:
    """Reverse the order along axes, given as ints or one tuple."""
    return flip(self, varargs(dims))


attach("flip", as_keyword(_flip_method, "dims"))


@operator(methods=True)
def reverse(x: Any, axis: Any) -> Tensor:
    """Reverse the order along axes; like :func:`flip`.

    >>> import mycelia as ms
    >>> print(ms.ops.reverse(ms.Tensor([1, 2, 3]), [0]))
    [3 2 1]
    """
    t = as_tensor(x, "reverse", "x")
    return t if _no_axes(axis) else flipped(t, as_axes(axis, t.ndim, "reverse"))


@operator(methods=True)
def fliplr(input: Any) -> Tensor:
    """Reverse the order along the second axis.

    Raises:
        ShapeError: fewer than two axes.

    >>> import mycelia as ms
    >>> print(ms.ops.fliplr(ms.Tensor([[1, 2], [3, 4]])))
    [[2 1]
     [4 3]]
    """
    x = as_tensor(input, "fliplr")
    if x.ndim < 2:
        raise ShapeError("fliplr", "input", got=f"shape {x.shape}", takes="at least two axes")
    return flipped(x, (1,))


@operator(methods=True)
def flipud(input: Any) -> Tensor:
    """Reverse the order along the first axis.

    Raises:
        ShapeError: a zero-dimensional tensor.

    >>> import mycelia as ms
    >>> print(ms.ops.flipud(ms.Tensor([[1, 2], [3, 4]])))
    [[3 4]
     [1 2]]
    """
    x = as_tensor(input, "flipud")
    if x.ndim < 1:
        raise ShapeError("flipud", "input", got="a zero-dimensional tensor", takes="at least one axis")
    return flipped(x, (0,))


# roll and rotate


roll_p: Primitive = Primitive(
    "roll", infer=lambda x, *, shifts, axes: x, lower=lambda x, *, shifts, axes: jnp.roll(x, shifts, axes),
    vjp=lambda ct, x, out, *, shifts, axes: [one(roll_p, ct, shifts=tuple(-s for s in shifts), axes=axes)],
    samples=lambda: [
        Sample((_CUBE,), {"shifts": (1, -2), "axes": (0, 2)}), Sample((_CUBE,), {"shifts": (1, 1), "axes": (1, 1)}),
        Sample((_CUBE,), {"shifts": (7,), "axes": (1,)}), Sample((np.zeros((0, 2)),), {"shifts": (1,), "axes": (0,)}),
    ],
)  # fmt: skip


@operator(methods=True)
def roll(input: Any, shifts: Any, dims: Any = None) -> Tensor:
    """Move elements along axes; what leaves at one end comes in at the other.

    Args:
        input: a tensor.
        shifts: by how many places, for each axis of ``dims``.
        dims: the axis or axes; without them the tensor is rolled in row-major order.

    Raises:
        ArgumentValueError: not one shift for each axis.

    >>> import mycelia as ms
    >>> print(ms.ops.roll(ms.Tensor([1, 2, 3]), 1))
    [3 1 2]
    """
    x = as_tensor(input, "roll")
    moves = as_shape(shifts, "roll", "shifts", minimum=-(2**62))
    if dims is None or _no_axes(dims):
        if len(moves) != 1:
            raise ArgumentValueError("roll", "shifts", got=str(moves), takes="one int when 'dims' is not given")
        flat = reshaped(x, (x.size,))
        return reshaped(one(roll_p, flat, shifts=moves, axes=(0,)), x.shape)
    given = as_shape(dims, "roll", "dims", minimum=-max(x.ndim, 1))
    axes = tuple([as_axis(a, x.ndim, "roll", "dims") for a in given])
    if len(axes) != len(moves):
        raise ArgumentValueError(
            "roll", "shifts", got=str(moves), takes=f"one int for each of the {len(axes)} axes in 'dims'"
        )
    return one(roll_p, x, shifts=moves, axes=axes) if x.ndim else x


@operator(methods=True)
def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Rotate by 90 degrees in the plane of two axes, from the first towards the second.

    Args:
        input: a tensor of at least two axes.
        k: how many times.
        dims: the two axes.

    Raises:
        ArgumentValueError: not two different axes.

    >>> import mycelia as ms
    >>> print(ms.ops.rot90(ms.Tensor([[1, 2], [3, 4]]), 1, (0, 1)))
    [[2 4]
     [1 3]]
    """
    x = as_tensor(input, "rot90")
    given = as_shape(dims, "rot90", "dims", minimum=-max(x.ndim, 1))
    axes = [as_axis(a, x.ndim, "rot90", "dims") for a in given]
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ArgumentValueError("rot90", "dims", got=str(given), takes="two different axes")
    first, second = axes
    turns = as_int(k, "rot90", "k") % 4
    if turns == 2:
        return flipped(x, tuple(sorted(axes)))
    swap = list(range(x.ndim))
    swap[first], swap[second] = second, first
    if turns == 1:
        return permuted(flipped(x, (second,)), tuple(swap))
    return flipped(permuted(x, tuple(swap)), (second,)) if turns else x


# repeat


def _tiled(x: Tensor, repeats: tuple[int, ...]) -> Tensor:
    """A new axis of each repetition before each axis, merged with it."""
    rank = max(len(repeats), x.ndim)
    lengths = (1,) * (rank - x.ndim) + x.shape
    times = (1,) * (rank - len(repeats)) + repeats
    result = tuple([d * r for d, r in zip(lengths, times, strict=True)])
    if result == x.shape:
        return x
    split = tuple([n for d in lengths for n in (1, d)])
    grown = tuple([n for d, r in zip(lengths, times, strict=True) for n in (r, d)])
    return reshaped(one(broadcast_to_p, reshaped(x, split), shape=grown), result)


@operator()
def tile(input: Any, dims: Any) -> Tensor:
    """Lay copies of a tensor side by side.

    Args:
        input: a tensor.
        dims: how many copies along each axis, the last number for the last axis; missing numbers are 1,
            further ones make new leading axes.

    Raises:
        ArgumentValueError: a negative number.

    >>> import mycelia as ms
    >>> print(ms.ops.tile(ms.Tensor([1, 2]), (2, 2)))
    [[1 2 1 2]
     [1 2 1 2]]
    """
    return _tiled(as_tensor(input, "tile"), as_shape(dims, "tile", "dims"))


def _tile_method(self: Tensor, *dims: Any) -> Tensor:
    """Copies side by side: how many along each axis, as ints or one tuple."""
    return tile(self, varargs(dims))


attach("tile", renaming(as_keyword(_tile_method, "dims"), reps="dims", multiples="dims"))


def _repeat_method(self: Tensor, *repeats: Any, axis: Any = None) -> Tensor:
    """Copies side by side, with a number for every axis; with ``axis``, each element ``repeats`` times.

    Raises:
        ArgumentValueError: fewer numbers than axes.
    """
    if axis is not None:
        return _repeat_interleave(self, varargs(repeats), axis)
    times = as_shape(varargs(repeats), "Tensor.repeat", "repeats")
    if len(times) < self.ndim:
        raise ArgumentValueError(
            "Tensor.repeat", "repeats", got=str(times), takes=f"a number for each axis of shape {self.shape}",
            hint="use x.repeat_interleave(n) to repeat each element",
        )  # fmt: skip
    return _tiled(self, times)


attach("repeat", as_keyword(_repeat_method, "repeats"))


def _repeated(x: Tensor, times: int, axis: int) -> Tensor:
    """Each element ``times`` times: a new axis after ``axis``, merged with it."""
    if times == 1:
        return x
    before, d, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    spread = one(broadcast_to_p, reshaped(x, (*before, d, 1, *after)), shape=(*before, d, times, *after))
    return reshaped(spread, (*before, d * times, *after))


def _repeat_interleave(input: Any, repeats: Any, axis: Any = None, *, output_size: int | None = None) -> Tensor:
    """Repeat each element along an axis.

    Args:
        input: a tensor.
        repeats: how often: one int, or one for each element along the axis.
        axis: the axis; without it the tensor is taken in row-major order. Also called ``dim``.
        output_size: the length of the result along the axis; only checked.

    Raises:
        ArgumentValueError: negative numbers, or not one for each element.
        GraphError: the numbers are a tensor whose value is not known while a graph is built.

    >>> import mycelia as ms
    >>> print(ms.ops.repeat_interleave(ms.Tensor([1, 2]), 2))
    [1 1 2 2]
    """
    x = as_tensor(input, "repeat_interleave")
    if axis is None or x.ndim == 0:
        x, place = reshaped(x, (x.size,)), 0
    else:
        place = as_axis(axis, x.ndim, "repeat_interleave")
    times = as_shape(repeats, "repeat_interleave", "repeats")
    if len(times) == 1:
        made = _repeated(x, times[0], place)
    elif len(times) != x.shape[place]:
        raise ArgumentValueError(
            "repeat_interleave",
            "repeats",
            got=f"{len(times)} numbers",
            takes=f"one, or one for each of the {x.shape[place]} elements",
        )
    else:
        from mycelia.ops.indexing import taken

        made = taken(x, np.repeat(np.arange(len(times)), times), place)
    if output_size is not None and made.shape[place] != output_size:
        raise ArgumentValueError(
            "repeat_interleave",
            "output_size",
            got=str(output_size),
            takes=f"the sum of the repeats, {made.shape[place]}",
        )
    return made


_repeat_interleave.__name__ = _repeat_interleave.__qualname__ = "repeat_interleave"
repeat_interleave = operator(methods=True)(renaming(_repeat_interleave, dim="axis"))


@operator()
def repeat_elements(x: Any, rep: int, axis: int = 0) -> Tensor:
    """Repeat each element along an axis ``rep`` times.

    Args:
        x: a tensor of at least one axis.
        rep: how often, at least once.
        axis: the axis.

    Raises:
        ArgumentTypeError: ``rep`` is not an int.
        ArgumentValueError: it is less than 1.

    >>> import mycelia as ms
    >>> print(ms.ops.repeat_elements(ms.Tensor([1, 2]), 2))
    [1 1 2 2]
    """
    if not isinstance(rep, int) or isinstance(rep, bool):
        raise ArgumentTypeError("repeat_elements", "rep", got=type(rep).__name__, takes="an int")
    if rep < 1:
        raise ArgumentValueError("repeat_elements", "rep", got=str(rep), takes="an int of at least 1")
    t = as_tensor(x, "repeat_elements", "x")
    if t.ndim == 0:
        raise ShapeError("repeat_elements", "x", got="a zero-dimensional tensor", takes="at least one axis")
    return _repeated(t, rep, as_axis(axis, t.ndim, "repeat_elements"))


def _resize(self: Tensor, *new_shape: Any) -> Tensor:
    """The first elements in row-major order under a new shape, zeros where there are too few."""
    from mycelia.ops.padding import pad_zeros

    shape = as_shape(varargs(new_shape), "Tensor.resize", "new_shape")
    missing = prod(shape) - self.size
    return reshaped(pad_zeros(reshaped(self, (self.size,)), ((0, missing),)), shape)


attach("resize", _resize)
