"""Transforms of arrays of numbers or strings."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from mycelia.core import dtypes
from mycelia.core.errors import (
    ArgumentTypeError,
    DTypeError,
    OutOfRangeError,
    ShapeError,
)
from mycelia.dataset import arguments
from mycelia.dataset.transforms.base import ArrayTransform, Transform, as_array


def numpy_dtype(where: str, argument: str, value: Any) -> np.dtype[Any]:
    """The NumPy dtype of a tensor dtype, a NumPy dtype or a name."""
    return dtypes.as_dtype(value, where, argument).np


class TypeCast(ArrayTransform):
    """Convert to a dtype, as NumPy's ``astype`` does: floats are cut towards zero, any number becomes text.

    Args:
        data_type: a tensor dtype (``mycelia.float32``), a NumPy dtype or a name.

    Raises:
        ArgumentTypeError: not a dtype.
        DTypeError: when called, text that should become numbers.

    >>> import numpy as np
    >>> import mycelia as ms
    >>> from mycelia.dataset import transforms
    >>> transforms.TypeCast(ms.int32)(np.array([1.7, -2.2]))
    array([ 1, -2], dtype=int32)
    """

    batches = True
    pixelwise = True

    def __init__(self, data_type: Any) -> None:
        self.dtype = numpy_dtype("TypeCast", "data_type", data_type)

    def _on(self, array: np.ndarray) -> np.ndarray:
        if array.dtype.kind in "US" and self.dtype.kind not in "US":
            raise DTypeError("TypeCast", "input", got=f"text ({array.dtype})", takes=f"numbers, to make {self.dtype}")
        return array.astype(self.dtype)

    def on_batch(self, block: np.ndarray) -> np.ndarray:
        return self._on(block)


class OneHot(ArrayTransform):
    """One-hot code of class numbers along a new last axis; axes of length 1 of the input vanish.

    Args:
        num_classes: how many classes.
        smoothing_rate: what the hot entry gives away, evenly to all entries; then the result is float64,
            else it has the dtype of the input.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        DTypeError: when called, on other than integers.
        OutOfRangeError: when called, on a number that is no class.

    >>> import numpy as np
    >>> from mycelia.dataset import transforms
    >>> transforms.OneHot(3)(np.array([2, 0]))
    array([[0, 0, 1],
           [1, 0, 0]])
    """

    batches = True

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        self.num_classes = arguments.integer("OneHot", "num_classes", num_classes, 1)
        self.smoothing_rate = arguments.real("OneHot", "smoothing_rate", smoothing_rate, 0.0, 1.0)

    def _on(self, array: np.ndarray) -> np.ndarray:
        return self._code(array, array.shape)

    def on_batch(self, block: np.ndarray) -> np.ndarray:
        return self._code(block, block.shape[1:], block.shape[:1])

    def _code(self, array: np.ndarray, shape: tuple[int, ...], lead: tuple[int, ...] = ()) -> np.ndarray:
        if array.dtype.kind not in "iu":
            raise DTypeError("OneHot", "input", got=str(array.dtype), takes="integers")
        bad = (array < 0) | (array >= self.num_classes)
        if bad.any():
            raise OutOfRangeError(
                "OneHot", "input", got=f"class {array[bad].flat[0]}", takes=f"classes from 0 to {self.num_classes - 1}"
            )
        squeezed = array.reshape(lead + tuple(n for n in shape if n != 1))
        hot = squeezed[..., None] == np.arange(self.num_classes)
        if not self.smoothing_rate:
            return hot.astype(array.dtype)
        share = self.smoothing_rate / self.num_classes
        return np.where(hot, 1 - self.smoothing_rate + share, share)


class PadEnd(ArrayTransform):
    """Pad each axis at its end, or cut it, to a length.

    Args:
        pad_shape: a length for each axis; None leaves the axis.
        pad_value: the value to pad with; 0 or the empty string by default.

    Raises:
        ArgumentTypeError, ArgumentValueError: lengths that are no positive ints.
        ShapeError: when called, on another number of axes.
        DTypeError: when called, if numbers would be padded with text or the reverse.

    >>> import numpy as np
    >>> from mycelia.dataset import transforms
    >>> transforms.PadEnd([4], -1)(np.array([1, 2]))
    array([ 1,  2, -1, -1])
    """

    def __init__(self, pad_shape: list[int | None], pad_value: Any = None) -> None:
        if not isinstance(pad_shape, (list, tuple)):
            raise ArgumentTypeError("PadEnd", "pad_shape", got=repr(pad_shape), takes="a list of lengths")
        self.pad_shape = [n if n is None else arguments.integer("PadEnd", "pad_shape", n, 1) for n in pad_shape]
        if pad_value is not None and not isinstance(pad_value, (bool, int, float, str, bytes, np.generic)):
            raise ArgumentTypeError("PadEnd", "pad_value", got=repr(pad_value), takes="a number or a string")
        self.pad_value = pad_value

    def _on(self, array: np.ndarray) -> np.ndarray:
        if array.ndim != len(self.pad_shape):
            raise ShapeError(
                "PadEnd",
                "input",
                got=f"shape {array.shape}",
                takes=f"{len(self.pad_shape)} axes, for pad_shape {self.pad_shape}",
            )
        fill: Any = self.pad_value
        dtype = array.dtype
        if dtype.kind in "US":
            fill = ("" if dtype.kind == "U" else b"") if fill is None else fill
            _same_kind("PadEnd", "pad_value", fill, array)
            fill = np.array(fill, dtype.kind)
            dtype = np.result_type(fill, array)
        else:
            fill = 0 if fill is None else fill
            _same_kind("PadEnd", "pad_value", fill, array)
        shape = tuple(have if want is None else want for have, want in zip(array.shape, self.pad_shape, strict=True))
        padded = np.empty(shape, dtype)
        padded[...] = np.asarray(fill).astype(dtype)
        part = tuple(slice(0, min(a, b)) for a, b in zip(array.shape, shape, strict=True))
        padded[part] = array[part]
        return padded


def _same_kind(where: str, argument: str, value: Any, array: np.ndarray) -> None:
    if isinstance(value, (str, bytes)) != (array.dtype.kind in "US"):
        raise DTypeError(
            where,
            argument,
            got=f"{value!r} for an array of {array.dtype}",
            takes="a number with numbers, text with text",
        )


class Concatenate(Transform):
    """Join columns along an axis, between two fixed arrays.

    Args:
        axis: the axis.
        prepend: an array that comes first.
        append: an array that comes last.

    Raises:
        ArgumentTypeError: wrong types.
        ShapeError: when called, shapes that differ on another axis.
        DTypeError: when called, dtypes that differ.

    >>> import numpy as np
    >>> from mycelia.dataset import transforms
    >>> transforms.Concatenate(append=np.array([9]))(np.array([1, 2]), np.array([3]))
    array([1, 2, 3, 9])
    """

    def __init__(self, axis: int = 0, prepend: Any = None, append: Any = None) -> None:
        self.axis = arguments.integer("Concatenate", "axis", axis, None)
        self.prepend = None if prepend is None else as_array(prepend, "Concatenate")
        self.append = None if append is None else as_array(append, "Concatenate")

    def __call__(self, *values: Any) -> np.ndarray:
        parts = [self.prepend, *(as_array(v, "Concatenate") for v in values), self.append]
        arrays = [part for part in parts if part is not None]
        if not values:
            raise ArgumentTypeError("Concatenate", "input", got="no columns", takes="at least one")
        first = arrays[0]
        for other in arrays[1:]:
            if other.dtype != first.dtype and not other.dtype.kind == first.dtype.kind in "US":
                raise DTypeError(
                    "Concatenate", "input", got=f"{first.dtype} and {other.dtype}", takes="arrays of one dtype"
                )
        try:
            return np.concatenate(arrays, self.axis)
        except ValueError:
            raise ShapeError(
                "Concatenate", "input", got=f"shapes {', '.join(str(a.shape) for a in arrays)}",
                takes=f"shapes that differ on axis {self.axis} only",
            ) from None  # fmt: skip


class Duplicate(ArrayTransform):
    """Give a column twice.

    >>> from mycelia.dataset import transforms
    >>> transforms.Duplicate()([1, 2])
    (array([1, 2]), array([1, 2]))
    """

    def _on(self, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return array, array.copy()


class Fill(ArrayTransform):
    """Replace every entry by one value, in the array's dtype.

    Args:
        fill_value: the value.

    Raises:
        ArgumentTypeError: not a number, bool, string or bytes.
        DTypeError: when called, text for numbers or the reverse.

    >>> from mycelia.dataset import transforms
    >>> transforms.Fill(7)([1, 2])
    array([7, 7])
    """

    batches = True

    def __init__(self, fill_value: Any) -> None:
        if not isinstance(fill_value, (bool, int, float, str, bytes, np.generic)):
            raise ArgumentTypeError("Fill", "fill_value", got=repr(fill_value), takes="a number or a string")
        self.fill_value = fill_value

    def _on(self, array: np.ndarray) -> np.ndarray:
        _same_kind("Fill", "fill_value", self.fill_value, array)
        if array.dtype.kind in "US":
            return np.full(array.shape, np.array(self.fill_value, array.dtype.kind))
        return np.full(array.shape, np.asarray(self.fill_value).astype(array.dtype))

    def on_batch(self, block: np.ndarray) -> np.ndarray:
        return self._on(block)


class Relational(enum.IntEnum):
    """Comparisons of :class:`Mask`."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


_COMPARE = {
    Relational.EQ: np.equal, Relational.NE: np.not_equal, Relational.GT: np.greater,
    Relational.GE: np.greater_equal, Relational.LT: np.less, Relational.LE: np.less_equal,
}  # fmt: skip


class Mask(ArrayTransform):
    """Compare every entry with a constant.

    Args:
        operator: a :class:`Relational`.
        constant: what to compare with.
        dtype: dtype of the result, bool by default.

    Raises:
        ArgumentTypeError: not a comparison or a constant.
        DTypeError: when called, text compared with numbers.

    >>> from mycelia.dataset.transforms import Mask, Relational
    >>> Mask(Relational.GT, 2)([1, 2, 3])
    array([False, False,  True])
    """

    batches = True

    def __init__(self, operator: Relational, constant: Any, dtype: Any = dtypes.bool_) -> None:
        if not isinstance(operator, Relational):
            raise ArgumentTypeError("Mask", "operator", got=repr(operator), takes="a Relational")
        if not isinstance(constant, (bool, int, float, str, bytes, np.generic)):
            raise ArgumentTypeError("Mask", "constant", got=repr(constant), takes="a number or a string")
        self.operator, self.constant = operator, constant
        self.dtype = numpy_dtype("Mask", "dtype", dtype)

    def _on(self, array: np.ndarray) -> np.ndarray:
        _same_kind("Mask", "constant", self.constant, array)
        made: np.ndarray = np.asarray(_COMPARE[self.operator](array, self.constant)).astype(self.dtype)
        return made

    def on_batch(self, block: np.ndarray) -> np.ndarray:
        return self._on(block)


class Slice(ArrayTransform):
    """Take a part along each axis.

    Args:
        slices: for each axis an int or a list of ints (which entries), a slice, or None or True (all);
            ``...`` stands for all of the axes between. Axes are kept, also for one int.

    Raises:
        ArgumentTypeError: another type, or two ``...``.
        ShapeError: when called, on fewer axes.
        OutOfRangeError: when called, an entry that is not there.

    >>> from mycelia.dataset import transforms
    >>> transforms.Slice(slice(0, 2), [0, -1])([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    array([[1, 3],
           [4, 6]])
    """

    def __init__(self, *slices: Any) -> None:
        if not slices:
            raise ArgumentTypeError("Slice", "slices", got="nothing", takes="a slice for each axis")
        if sum(s is Ellipsis for s in slices) > 1:
            raise ArgumentTypeError("Slice", "slices", got="two of ...", takes="one ... at most")
        self.slices = [self._check(s) for s in slices]

    @staticmethod
    def _check(part: Any) -> Any:
        if part is None or part is True or part is Ellipsis:
            return part if part is Ellipsis else None
        if isinstance(part, slice):
            return part
        items = part if isinstance(part, list) else [part]
        return [arguments.integer("Slice", "slices", item, None) for item in items]

    def _on(self, array: np.ndarray) -> np.ndarray:
        parts = list(self.slices)
        if Ellipsis in parts:
            at = parts.index(Ellipsis)
            parts[at : at + 1] = [None] * (array.ndim - len(parts) + 1)
        if len(parts) > array.ndim:
            raise ShapeError("Slice", "input", got=f"shape {array.shape}", takes=f"at least {len(parts)} axes")
        for axis, part in enumerate(parts):
            if part is None:
                continue
            if isinstance(part, slice):
                array = array[(slice(None),) * axis + (part,)]
                continue
            length = array.shape[axis]
            for item in part:
                if not -length <= item < length:
                    raise OutOfRangeError(
                        "Slice", "slices", got=f"{item} on axis {axis}", takes=f"{-length} to {length - 1}"
                    )
            array = np.take(array, part, axis)
        return array


class Unique(ArrayTransform):
    """The distinct entries in order of appearance, the place of each entry among them, and their counts.

    The places and the counts are int32; the places are those of the flattened input.

    >>> from mycelia.dataset import transforms
    >>> transforms.Unique()([3, 1, 3])
    (array([3, 1]), array([0, 1, 0], dtype=int32), array([2, 1], dtype=int32))
    """

    def _on(self, array: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        values, first, places, counts = np.unique(array, return_index=True, return_inverse=True, return_counts=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return values[order], rank[places.reshape(-1)].astype(np.int32), counts[order].astype(np.int32)
