"""Operators on shapes, indices and random numbers with the later keywords, as ``mint`` has them."""

from __future__ import annotations

from typing import Any

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.ops.adaptive_pooling import max_unpool2d
from mycelia.ops.calls import overwrite
from mycelia.ops.creation import zeros
from mycelia.ops.cumulative import cumsum
from mycelia.ops.decompositions import qr
from mycelia.ops.distance import cdist
from mycelia.ops.distributions import multinomial, randperm
from mycelia.ops.indexing import index_select
from mycelia.ops.keywords import renaming
from mycelia.ops.linear import addr, mv
from mycelia.ops.lookup import one_hot
from mycelia.ops.operands import as_tensor, cast
from mycelia.ops.padding import pad
from mycelia.ops.random import Generator, rand, rand_like, randint, randint_like, randn, randn_like
from mycelia.ops.reduction_extrema import amax
from mycelia.ops.shape import flatten
from mycelia.ops.sorting import topk
from mycelia.ops.state import identity
from mycelia.ops.tensor_updates import by_axis, scatter
from mycelia.tensor import Tensor

#: :func:`mycelia.ops.index_select`, :func:`mycelia.ops.scatter`, ... under both names of their arguments.
index_select_ext = renaming(index_select, dim="axis")
scatter_ext = renaming(scatter, dim="axis")
mv_ext = renaming(mv, input="mat")
linalg_qr = renaming(qr, A="input")
cumsum_ext = renaming(cumsum, input="x")
max_unpool2d_ext = renaming(max_unpool2d, input="x")

_MATMUL = "use_mm_for_euclid_dist_if_necessary"


def cdist_ext(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = _MATMUL) -> Tensor:
    """Distances of all pairs of rows; see :func:`mycelia.ops.cdist`. ``compute_mode`` changes no value.

    Raises:
        ArgumentValueError: an unknown mode.

    >>> import mycelia as ms
    >>> print(ms.mint.cdist(ms.Tensor([[0.0, 0.0]]), ms.Tensor([[3.0, 4.0]])))
    [[5.]]
    """
    modes = (_MATMUL, "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in modes:
        raise ArgumentValueError("cdist", "compute_mode", got=repr(compute_mode), takes=" or ".join(map(repr, modes)))
    return cdist(x1, x2, p)


def clone(input: Any) -> Tensor:
    """A tensor with the same values.

    >>> import mycelia as ms
    >>> print(ms.mint.clone(ms.Tensor([1, 2])))
    [1 2]
    """
    return identity(as_tensor(input, "clone"))


def flatten_ext(input: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes from ``start_dim`` to ``end_dim`` as one.

    >>> import mycelia as ms
    >>> ms.mint.flatten(ms.mint.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    return flatten(input, start_dim=start_dim, end_dim=end_dim)


def zeros_ext(size: Any, *, dtype: Any = None) -> Tensor:
    """Zeros; see :func:`mycelia.ops.zeros`.

    >>> import mycelia as ms
    >>> print(ms.mint.zeros((2,)))
    [0. 0.]
    """
    return zeros(size, dtype)


def index_add_ext(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """A new tensor with slices ``alpha * source`` added along an axis at indices.

    >>> import mycelia as ms
    >>> print(ms.mint.index_add(ms.Tensor([1, 2]), 0, ms.Tensor([0, 0]), ms.Tensor([3, 4])))
    [8 2]
    """
    x = as_tensor(input, "index_add")
    added: Any = as_tensor(source, "index_add", "source")
    added = added if isinstance(alpha, (int, float)) and alpha == 1 else added * alpha
    return by_axis(x, dim, index, added, "add", "index_add", ("dim", "index", "source"))


def topk_ext(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The ``k`` largest (or smallest) elements along an axis, and their places as int64.

    >>> import mycelia as ms
    >>> print(*ms.mint.topk(ms.Tensor([1, 4, 2]), 2))
    [4 2] [1 2]
    """
    values, places = topk(input, k, dim, largest, sorted)
    return values, cast(places, dt.int64)


def one_hot_ext(tensor: Any, num_classes: int = -1) -> Tensor:
    """A last axis with 1 at each index and 0 elsewhere, as int64.

    Args:
        tensor: integers that are not negative.
        num_classes: the length of the new axis; -1 for one more than the largest index.

    Raises:
        ArgumentValueError: ``num_classes`` is below -1, or an index does not fit it.

    >>> import mycelia as ms
    >>> print(ms.mint.nn.functional.one_hot(ms.Tensor([0, 2])))
    [[1 0 0]
     [0 0 1]]
    """
    x = as_tensor(tensor, "one_hot", "tensor")
    if not x.is_symbolic and x.size:
        least, most = int(-amax(-x).item()), int(amax(x).item())
        if least < 0 or -1 < num_classes <= most:
            limit = "at least 0" + (f" and below {num_classes}" if num_classes > -1 else "")
            raise ArgumentValueError(
                "one_hot", "tensor", got=f"indices from {least} to {most}", takes=f"indices {limit}"
            )
        depth = most + 1 if num_classes == -1 else num_classes
    elif num_classes == -1:
        raise ArgumentValueError("one_hot", "num_classes", got="-1 without indices", takes="the number of classes")
    else:
        depth = num_classes
    return one_hot(x, depth, 1, 0, -1)


def pad_ext(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """Elements put around a tensor; see :func:`mycelia.ops.pad`.

    >>> import mycelia as ms
    >>> print(ms.mint.nn.functional.pad(ms.Tensor([[1, 2]]), (1, 1)))
    [[0 1 2 0]]
    """
    return _pad(input, pad, mode, value)


_pad = pad


def inplace_addr(input: Tensor, vec1: Any, vec2: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Overwrite a matrix with ``beta * input + alpha * outer(vec1, vec2)``.

    >>> import mycelia as ms
    >>> print(ms.mint.addr_(ms.Tensor([[1.0, 1.0]]), ms.Tensor([2.0]), ms.Tensor([1.0, 2.0])))
    [[3. 5.]]
    """
    return overwrite(input, addr(input, vec1, vec2, beta=beta, alpha=alpha), "addr_")


# random numbers; ``device`` is accepted: numbers are drawn where the tensors are


def rand_ext(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Uniform numbers from [0, 1); see :func:`mycelia.ops.rand`.

    >>> import mycelia as ms
    >>> ms.mint.rand(2, 3).shape
    (2, 3)
    """
    return rand(*size, dtype=dtype, generator=generator)


def randn_ext(*size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None) -> Tensor:
    """Standard normal numbers; see :func:`mycelia.ops.randn`.

    >>> import mycelia as ms
    >>> ms.mint.randn((2, 3)).shape
    (2, 3)
    """
    return randn(*size, dtype=dtype, generator=generator)


def rand_like_ext(input: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Uniform numbers from [0, 1) in the shape and dtype of a tensor.

    >>> import mycelia as ms
    >>> ms.mint.rand_like(ms.mint.ones((2, 3))).shape
    (2, 3)
    """
    return rand_like(input, dtype=dtype)


def randn_like_ext(input: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Standard normal numbers in the shape and dtype of a tensor.

    >>> import mycelia as ms
    >>> ms.mint.randn_like(ms.mint.ones((2, 3))).shape
    (2, 3)
    """
    return randn_like(input, dtype=dtype)


def _bounds(where: str, names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments called ``names``, of which the first, ``low``, may be left out: it is 0 then."""
    given = len(args) + len(kwargs)
    order = names if given == len(names) or "low" in kwargs else names[1:]
    bound = {**dict(zip(order, args, strict=False)), **kwargs}
    if given != len(order) or set(bound) != set(order):
        raise ArgumentTypeError(
            where, "high", got=f"{given} values", takes=f"({', '.join(names)}), 'low' being optional"
        )
    return [bound.get(name, 0) for name in names]


def randint_ext(
    *args: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None, **kwargs: Any
) -> Tensor:
    """Integers from [low, high): ``randint(high, size)`` or ``randint(low, high, size)``.

    >>> import mycelia as ms
    >>> int(ms.mint.randint(3, 4, (2,)).sum())
    6
    """
    low, high, size = _bounds("randint", ("low", "high", "size"), args, kwargs)
    return randint(low, high, size, dtype=dtype, generator=generator)


def randint_like_ext(input: Any, *args: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> Tensor:
    """Integers from [low, high) in the shape of a tensor: ``randint_like(x, high)`` or ``randint_like(x, low, high)``.

    >>> import mycelia as ms
    >>> print(ms.mint.randint_like(ms.Tensor([7, 8]), 1))
    [0 0]
    """
    low, high = _bounds("randint_like", ("low", "high"), args, kwargs)
    return randint_like(input, low, high, dtype=dtype)


def randperm_ext(n: int, *, generator: Generator | None = None, dtype: Any = dt.int64) -> Tensor:
    """The integers from 0 to n - 1 in random order.

    >>> import mycelia as ms
    >>> int(ms.mint.randperm(5).sum())
    10
    """
    return randperm(n, dtype=dtype, generator=generator)


def multinomial_ext(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Categories drawn in proportion to weights, as int64; without replacement unless told otherwise.

    >>> import mycelia as ms
    >>> print(ms.mint.multinomial(ms.Tensor([0.0, 1.0]), 1))
    [1]
    """
    return cast(multinomial(input, num_samples, replacement, generator=generator), dt.int64)
