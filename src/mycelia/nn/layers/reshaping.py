"""Layers that move elements and compute none."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, OutOfRangeError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg
from mycelia.nn.layers.plain import PlainCell
from mycelia.ops.convolution import same_pads
from mycelia.tensor import Tensor


class Identity(Cell):
    """The input itself.

    Args:
        args: anything; not used.
        kwargs: anything; not used.

    >>> import mycelia as ms
    >>> print(ms.nn.Identity()(ms.Tensor([1, 2])))
    [1 2]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def construct(self, input: Any) -> Any:
        return input


class Flatten(Cell):
    """Several axes as one.

    Args:
        start_dim: the first of them.
        end_dim: the last of them.

    Raises:
        ArgumentValueError: ``end_dim`` is before ``start_dim``, or an axis the input does not have.

    >>> import mycelia as ms
    >>> ms.nn.Flatten()(ms.ops.ones((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = arg.positive("Flatten", "start_dim", start_dim, -(2**31))
        self.end_dim = arg.positive("Flatten", "end_dim", end_dim, -(2**31))

    def construct(self, x: Any) -> Any:
        t: Tensor = arg.tensor("Flatten", "x", x)
        shape = t.shape
        rank = len(shape)
        first, last = _place("start_dim", self.start_dim, rank), _place("end_dim", self.end_dim, rank)
        if first > last:
            raise ArgumentValueError("Flatten", "end_dim", got=str(self.end_dim), takes=f"an axis from {first} on")
        size = 1
        for n in shape[first : last + 1]:
            size *= n
        return ops.reshape(t, (*shape[:first], size, *shape[last + 1 :]))


class _AxisError(OutOfRangeError, ArgumentValueError):
    """An axis the input does not have; MindSpore raises ValueError here, Python IndexError."""


def _place(argument: str, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        takes = f"an axis of the input, {-rank} to {rank - 1}" if rank else "an input that has axes"
        raise _AxisError("Flatten", argument, got=f"{axis} for {rank} axes", takes=takes)
    return axis % rank


class Unflatten(Cell):
    """One axis as several.

    Args:
        axis: the axis.
        unflattened_size: their lengths, one of which may be -1.

    Raises:
        ShapeError: the lengths do not multiply to that of the axis.

    >>> import mycelia as ms
    >>> ms.nn.Unflatten(1, (2, -1))(ms.ops.ones((5, 6))).shape
    (5, 2, 3)
    """

    def __init__(self, axis: int, unflattened_size: Any) -> None:
        super().__init__()
        self.axis = arg.positive("Unflatten", "axis", axis, -(2**31))
        if not isinstance(unflattened_size, (tuple, list)):
            raise ArgumentTypeError(
                "Unflatten", "unflattened_size", got=type(unflattened_size).__name__, takes="a tuple or list"
            )
        self.unflattened_size = tuple(arg.positive("Unflatten", "unflattened_size", n, -1) for n in unflattened_size)

    def construct(self, input_x: Any) -> Any:
        t = arg.tensor("Unflatten", "input_x", input_x)
        rank = t.ndim
        if not -rank <= self.axis < rank:
            raise OutOfRangeError(
                "Unflatten", "axis", got=str(self.axis), takes=f"an axis of the input, {-rank} to {rank - 1}"
            )
        axis = self.axis % rank
        known = 1
        for n in self.unflattened_size:
            known *= n if n >= 0 else 1
        free = self.unflattened_size.count(-1)
        length = t.shape[axis]
        if free > 1 or (free and (not known or length % known)) or (not free and known != length):
            raise ShapeError(
                "Unflatten",
                "unflattened_size",
                got=str(self.unflattened_size),
                takes=f"lengths that multiply to {length}",
            )
        sizes = [length // known if n < 0 else n for n in self.unflattened_size]
        return ops.reshape(t, (*t.shape[:axis], *sizes, *t.shape[axis + 1 :]))


class Roll(Cell):
    """Elements moved along axes, those that leave at one end coming in at the other.

    Args:
        shift: by how many places, an int or a tuple or list of them.
        axis: along which axes, likewise.

    >>> import mycelia as ms
    >>> print(ms.nn.Roll(1, 0)(ms.Tensor([1, 2, 3])))
    [3 1 2]
    """

    def __init__(self, shift: Any, axis: Any) -> None:
        super().__init__()
        shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,)
        axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
        self.shift = tuple(arg.positive("Roll", "shift", n, -(2**31)) for n in shifts)
        self.axis = tuple(arg.positive("Roll", "axis", n, -(2**31)) for n in axes)
        if len(shifts) != len(axes):
            raise ArgumentValueError("Roll", "axis", got=str(axis), takes=f"as many as there are shifts, {len(shifts)}")

    def construct(self, input_x: Any) -> Any:
        return ops.roll(input_x, self.shift, self.axis)


class Unfold(Cell):
    """Patches of images, each as the channels of one pixel.

    Args:
        ksizes: size of a patch, ``[1, rows, columns, 1]``.
        strides: distance of patches, ``[1, rows, columns, 1]``.
        rates: distance of the pixels of a patch, ``[1, rows, columns, 1]``.
        padding: ``"valid"``, or ``"same"``: as many patches as pixels divided by the stride, zeros around.

    Inputs:
        input_x: a tensor of shape (batch, channels, height, width).

    Outputs:
        A tensor of shape (batch, rows * columns * channels, height', width'); the channels of the input change
        fastest.

    >>> import mycelia as ms
    >>> net = ms.nn.Unfold([1, 2, 2, 1], [1, 2, 2, 1], [1, 2, 2, 1])
    >>> net(ms.ops.ones((2, 3, 6, 6))).shape
    (2, 12, 2, 2)
    """

    def __init__(self, ksizes: Any, strides: Any, rates: Any, padding: str = "valid") -> None:
        super().__init__()
        self.ksizes = _window("ksizes", ksizes)
        self.strides = _window("strides", strides)
        self.rates = _window("rates", rates)
        mode = padding.lower() if isinstance(padding, str) else padding
        self.padding = arg.choice("Unfold", "padding", mode, ("valid", "same"))

    def construct(self, input_x: Any) -> Any:
        t = arg.axes_of_input("Unfold", "input_x", input_x, (4,), "(batch, channels, height, width)")
        if self.padding == "same":
            (top, bottom), (left, right) = same_pads(t.shape[2:], self.ksizes, self.strides, self.rates)
            t = ops.pad(t, (left, right, top, bottom))
        n, c, height, width = t.shape
        rows, columns = (
            (size - ((k - 1) * r + 1)) // s + 1
            for size, k, s, r in zip((height, width), self.ksizes, self.strides, self.rates, strict=True)
        )
        if min(rows, columns) < 1:
            raise ShapeError(
                "Unfold", "input_x", got=f"shape {t.shape}", takes=f"images as large as a patch, {self.ksizes}"
            )
        patch = self.ksizes[0] * self.ksizes[1]
        found = ops.reshape(ops.unfold(t, self.ksizes, self.rates, 0, self.strides), (n, c, patch, rows, columns))
        return ops.reshape(ops.transpose(found, (0, 2, 1, 3, 4)), (n, c * patch, rows, columns))


def _window(argument: str, value: Any) -> tuple[int, int]:
    if not isinstance(value, (tuple, list)):
        raise ArgumentTypeError("Unfold", argument, got=type(value).__name__, takes="[1, rows, columns, 1]")
    if len(value) != 4 or value[0] != 1 or value[3] != 1:
        raise ArgumentValueError("Unfold", argument, got=str(value), takes="[1, rows, columns, 1]")
    return arg.positive("Unfold", argument, value[1]), arg.positive("Unfold", argument, value[2])


class Tril(PlainCell):
    """The lower triangle of matrices, zeros above.

    >>> import mycelia as ms
    >>> print(ms.nn.Tril()(ms.Tensor([[1, 2], [3, 4]])))
    [[1 0]
     [3 4]]
    """

    def construct(self, x: Any, k: int = 0) -> Any:
        return ops.tril(x, k)


class Triu(PlainCell):
    """The upper triangle of matrices, zeros below.

    >>> import mycelia as ms
    >>> print(ms.nn.Triu()(ms.Tensor([[1, 2], [3, 4]])))
    [[1 2]
     [0 4]]
    """

    def construct(self, x: Any, k: int = 0) -> Any:
        return ops.triu(x, k)


class OneHot(Cell):
    """Vectors that are ``on_value`` at a given place and ``off_value`` elsewhere.

    Args:
        axis: the axis they take in the result.
        depth: their length.
        on_value: a number.
        off_value: a number.
        dtype: dtype of the result.

    Inputs:
        indices: integers; those outside of the vector leave it ``off_value``.

    >>> import mycelia as ms
    >>> print(ms.nn.OneHot(depth=3)(ms.Tensor([0, 2])))
    [[1. 0. 0.]
     [0. 0. 1.]]
    """

    def __init__(
        self, axis: int = -1, depth: int = 1, on_value: float = 1.0, off_value: float = 0.0, dtype: Any = dt.float32
    ) -> None:
        super().__init__()
        self.axis = arg.positive("OneHot", "axis", axis, -1)
        self.depth = arg.positive("OneHot", "depth", depth, 0)
        self.dtype = dt.as_dtype(dtype, "OneHot", "dtype")
        self.on_value = Tensor(on_value, self.dtype)
        self.off_value = Tensor(off_value, self.dtype)

    def construct(self, indices: Any) -> Any:
        return ops.one_hot(indices, self.depth, self.on_value, self.off_value, self.axis)


class PixelShuffle(Cell):
    """Channels spread over a finer grid: (..., c * r * r, h, w) to (..., c, h * r, w * r).

    Args:
        upscale_factor: r, a positive int.

    >>> import mycelia as ms
    >>> print(ms.nn.PixelShuffle(2)(ms.ops.arange(4).reshape(1, 4, 1, 1)))
    [[[[0 1]
       [2 3]]]]
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = arg.positive("PixelShuffle", "upscale_factor", upscale_factor)

    def construct(self, input: Any) -> Any:
        return ops.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Cell):
    """The inverse of :class:`PixelShuffle`.

    Args:
        downscale_factor: r, a positive int.

    >>> import mycelia as ms
    >>> ms.nn.PixelUnshuffle(2)(ms.ops.ones((1, 3, 4, 6))).shape
    (1, 12, 2, 3)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = arg.positive("PixelUnshuffle", "downscale_factor", downscale_factor)

    def construct(self, input: Any) -> Any:
        return ops.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Cell):
    """Channels dealt out: those of each group in turn.

    Args:
        groups: number of groups.

    Inputs:
        x: a tensor of shape (batch, channels, ...), the channels a multiple of the groups.

    >>> import mycelia as ms
    >>> print(ms.nn.ChannelShuffle(2)(ms.ops.arange(4).reshape(1, 4, 1)).flatten())
    [0 2 1 3]
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = arg.positive("ChannelShuffle", "groups", groups)

    def construct(self, x: Any) -> Any:
        return ops.channel_shuffle(x, self.groups)


class Upsample(Cell):
    """Images of another size by interpolation; see ``ops.interpolate``.

    Args:
        size: the size of the result, an int or one for each spatial axis; or
        scale_factor: how many times larger it is, a number or one for each spatial axis.
        mode: ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"bicubic"``, ``"trilinear"``, ``"area"``, ...
        align_corners: whether the corner pixels stay where they are.
        recompute_scale_factor: take the scale from the sizes.

    >>> import mycelia as ms
    >>> ms.nn.Upsample(size=(4, 6), mode="bilinear")(ms.ops.ones((1, 2, 2, 3))).shape
    (1, 2, 4, 6)
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def construct(self, x: Any) -> Any:
        return ops.interpolate(
            x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )  # fmt: skip


class MatrixDiag(PlainCell):
    """Vectors on the last axis as diagonals of matrices.

    >>> import mycelia as ms
    >>> print(ms.nn.MatrixDiag()(ms.Tensor([1.0, 2.0])))
    [[1. 0.]
     [0. 2.]]
    """

    def construct(self, input_x: Any) -> Any:
        return ops.diag_embed(input_x)


class MatrixDiagPart(PlainCell):
    """The diagonals of matrices.

    >>> import mycelia as ms
    >>> print(ms.nn.MatrixDiagPart()(ms.Tensor([[1.0, 2.0], [3.0, 4.0]])))
    [1. 4.]
    """

    def construct(self, input_x: Any) -> Any:
        t = arg.tensor("MatrixDiagPart", "input_x", input_x)
        return ops.diagonal(t, 0, t.ndim - 2, t.ndim - 1)


class MatrixSetDiag(PlainCell):
    """Matrices with other diagonals.

    Inputs:
        input_x: a tensor of shape (..., rows, columns).
        diagonal: a tensor of shape (..., min(rows, columns)).

    >>> import mycelia as ms
    >>> print(ms.nn.MatrixSetDiag()(ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), ms.Tensor([9.0, 8.0])))
    [[9. 2.]
     [3. 8.]]
    """

    def construct(self, input_x: Any, diagonal: Any) -> Any:
        t, d = arg.tensor("MatrixSetDiag", "input_x", input_x), arg.tensor("MatrixSetDiag", "diagonal", diagonal)
        if t.ndim < 2 or d.shape != (*t.shape[:-2], min(t.shape[-2:])):
            takes = f"shape {(*t.shape[:-2], min(t.shape[-2:]))}" if t.ndim > 1 else "matrices for 'input_x'"
            raise ShapeError("MatrixSetDiag", "diagonal", got=f"shape {d.shape}", takes=takes)
        rows, columns = t.shape[-2:]
        placed = ops.pad(ops.diag_embed(d), (0, columns - d.shape[-1], 0, rows - d.shape[-1]))
        return ops.where(ops.cast(ops.eye(rows, columns, dt.int32), dt.bool_), placed, t)
