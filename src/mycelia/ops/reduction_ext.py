"""Reductions and orders with the later keywords ``dim`` and ``keepdim``, as ``mint`` has them.

They give what the operators they are made of give, but for ``std`` and ``var``, which divide by ``n - 1`` unless
told otherwise, and for ``max``, ``min`` and ``median``, which without ``dim`` give one element and no place.
"""

from __future__ import annotations

from typing import Any

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import as_dtype
from mycelia.core.errors import ArgumentTypeError
from mycelia.ops.extremum import maximum, minimum
from mycelia.ops.keywords import renaming
from mycelia.ops.matrix_norms import matrix_norm
from mycelia.ops.norms import vector_norm
from mycelia.ops.operands import as_tensor, cast
from mycelia.ops.reduction import (
    all as all_,
    any as any_,
    count_nonzero,
    mean,
    nansum,
    prod,
)
from mycelia.ops.reduction_extrema import amax, amin, argmin, max as max_, min as min_
from mycelia.ops.shape import reshape
from mycelia.ops.sorting import argsort, sort
from mycelia.ops.statistics import median, std, std_mean, var, var_mean
from mycelia.tensor import Tensor

Dim = Any


def all_ext(input: Any, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Whether all elements along axes are true; see :func:`mycelia.ops.all`.

    >>> import mycelia as ms
    >>> print(ms.mint.all(ms.Tensor([[True, False], [True, True]]), dim=1))
    [False  True]
    """
    return all_(input, dim, keepdim)


def any_ext(input: Any, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Whether an element along axes is true; see :func:`mycelia.ops.any`.

    >>> import mycelia as ms
    >>> print(ms.mint.any(ms.Tensor([[True, False], [False, False]]), dim=1))
    [ True False]
    """
    return any_(input, dim, keepdim)


def amax_ext(input: Any, dim: Dim = (), keepdim: bool = False) -> Tensor:
    """The largest element over axes; see :func:`mycelia.ops.amax`.

    >>> import mycelia as ms
    >>> print(ms.mint.amax(ms.Tensor([[1, 3], [4, 2]]), 0))
    [4 3]
    """
    return amax(input, dim, keepdim)


def amin_ext(input: Any, dim: Dim = (), keepdim: bool = False) -> Tensor:
    """The smallest element over axes; see :func:`mycelia.ops.amin`.

    >>> import mycelia as ms
    >>> print(ms.mint.amin(ms.Tensor([[1, 3], [4, 2]]), 0))
    [1 2]
    """
    return amin(input, dim, keepdim)


def argmin_ext(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element stands, as int64; without ``dim``, in row-major order.

    >>> import mycelia as ms
    >>> print(ms.mint.argmin(ms.Tensor([[1, 3], [4, 2]]), dim=1))
    [0 1]
    """
    return cast(argmin(input, dim, keepdim), dt.int64)


def argsort_ext(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The places of the elements along an axis in order, as int64; equal elements always keep their order.

    >>> import mycelia as ms
    >>> print(ms.mint.argsort(ms.Tensor([3, 1, 2])))
    [1 2 0]
    """
    return cast(argsort(input, dim, descending), dt.int64)


def sort_ext(input: Any, *, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Tensor, Tensor]:
    """The elements along an axis in order, and where they came from as int64; equal elements keep their order.

    >>> import mycelia as ms
    >>> print(*ms.mint.sort(ms.Tensor([3, 1, 2]), descending=True))
    [3 2 1] [0 2 1]
    """
    values, places = sort(input, dim, descending)
    return values, cast(places, dt.int64)


def count_nonzero_ext(input: Any, dim: Dim = None) -> Tensor:
    """How many elements along axes are not zero, as int64.

    >>> import mycelia as ms
    >>> print(ms.mint.count_nonzero(ms.Tensor([[0, 2], [3, 4]]), 0))
    [1 2]
    """
    return count_nonzero(input, dim, False, dt.int64)


def _extreme(where: str, fold: Any, place: Any, merge: Any, input: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """Over all; along an axis with places; or of two tensors element by element."""
    given = dict(zip(("dim", "keepdim"), args, strict=False))
    for name, value in kwargs.items():
        if name in given or name not in ("dim", "keepdim", "other"):
            raise ArgumentTypeError(where, name, got=repr(value), takes="'dim' and 'keepdim', or 'other', each once")
        given[name] = value
    other = given.pop("other", None)
    if isinstance(given.get("dim"), Tensor):
        other = given.pop("dim")
    if other is not None:
        return merge(input, other)
    return place(input, given["dim"], given.get("keepdim", False)) if "dim" in given else fold(input)


def max_ext(input: Any, *args: Any, **kwargs: Any) -> Any:
    """``max(input)`` is the largest element; ``max(input, dim, keepdim=False)`` that along an axis, and its place as
    int64; ``max(input, other)`` the larger of each two elements.

    >>> import mycelia as ms
    >>> x = ms.Tensor([[1, 3], [4, 2]])
    >>> print(ms.mint.max(x), *ms.mint.max(x, 1))
    4 [3 4] [1 0]
    """  # noqa: D205
    return _extreme("max", amax, max_, maximum, input, args, kwargs)


def min_ext(input: Any, *args: Any, **kwargs: Any) -> Any:
    """``min(input)`` is the smallest element; see :func:`max_ext` for the other forms.

    >>> import mycelia as ms
    >>> x = ms.Tensor([[1, 3], [4, 2]])
    >>> print(ms.mint.min(x), *ms.mint.min(x, dim=1))
    1 [1 2] [0 1]
    """
    return _extreme("min", amin, min_, minimum, input, args, kwargs)


def mean_ext(input: Any, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Arithmetic mean over axes, of the tensor converted to ``dtype`` first if one is given.

    >>> import mycelia as ms
    >>> print(ms.mint.mean(ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0))
    [2. 3.]
    """
    x = as_tensor(input, "mean")
    return mean(x if dtype is None else cast(x, as_dtype(dtype, "mean")), dim, keepdim)


def median_ext(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, the lower one of two; with ``dim`` that along an axis, and its place.

    >>> import mycelia as ms
    >>> x = ms.Tensor([[4.0, 1.0, 3.0]])
    >>> print(ms.mint.median(x), *ms.mint.median(x, 1))
    3.0 [3.] [2]
    """
    if dim is None:
        return median(reshape(as_tensor(input, "median"), (-1,)))[0]
    return median(input, dim, keepdim)


def nansum_ext(input: Any, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum over axes in which NaN counts as 0.

    >>> import mycelia as ms
    >>> print(ms.mint.nansum(ms.Tensor([1.0, float("nan")])))
    1.0
    """
    return nansum(input, dim, keepdim, dtype=dtype)


def prod_ext(input: Any, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Product over axes; see :func:`mycelia.ops.prod`.

    >>> import mycelia as ms
    >>> print(ms.mint.prod(ms.Tensor([[1, 2], [3, 4]]), dim=1))
    [ 2 12]
    """
    return prod(input, dim, keepdim, dtype)


def std_ext(input: Any, dim: Dim = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """Standard deviation over axes, the squares' sum being divided by ``n - correction``.

    >>> import mycelia as ms
    >>> print(ms.mint.std(ms.Tensor([1.0, 2.0, 3.0])))
    1.0
    """
    return std(input, dim, correction, keepdim)


def var_ext(input: Any, dim: Dim = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """Variance over axes, the squares' sum being divided by ``n - correction``.

    >>> import mycelia as ms
    >>> print(ms.mint.var(ms.Tensor([1.0, 2.0, 3.0])))
    1.0
    """
    return var(input, dim, correction, keepdim)


def std_mean_ext(input: Any, dim: Dim = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean; see :func:`std_ext`.

    >>> import mycelia as ms
    >>> print(*ms.mint.std_mean(ms.Tensor([1.0, 2.0, 3.0])))
    1.0 2.0
    """
    return std_mean(input, dim, correction, keepdim)


def var_mean_ext(input: Any, dim: Dim = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Variance and mean; see :func:`var_ext`.

    >>> import mycelia as ms
    >>> print(*ms.mint.var_mean(ms.Tensor([1.0, 2.0, 3.0])))
    1.0 2.0
    """
    return var_mean(input, dim, correction, keepdim)


#: Norms that also take ``dim`` and ``keepdim``.
matrix_norm_ext = renaming(matrix_norm, dim="axis", keepdim="keepdims")
vector_norm_ext = renaming(vector_norm, dim="axis", keepdim="keepdims")
