"""Parameters changed in place at given places: ``scatter_*`` by slices, ``scatter_nd_*`` by rows of indices.

Each returns what the parameter holds afterwards. ``inplace_*`` take a plain list of slices and give a new
tensor, as their results have always been used.
"""

from __future__ import annotations

from typing import Any

from mycelia.core.errors import ArgumentTypeError, ShapeError
from mycelia.ops.indexing import as_index, check_range
from mycelia.ops.operands import as_axis, as_shape, as_tensor
from mycelia.ops.outputs import one
from mycelia.ops.registry import operator
from mycelia.ops.scatter import scatter_nd_p
from mycelia.ops.shape import filled, reshaped
from mycelia.ops.tensor_updates import by_axis, by_rows, divided, updates_for
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import set_value


def _target(x: Any, where: str, argument: str = "input_x") -> Tensor:
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(where, argument, got=type(x).__name__, takes="a Parameter")
    return x


def _written(x: Tensor, new: Tensor) -> Tensor:
    set_value(x, new)
    return x


def _by_slices(x: Tensor, indices: Any, updates: Any, mode: str, where: str) -> Tensor:
    """Combine slices along the first axis at indices of any shape."""
    places = as_index(indices, where, "indices")
    if x.ndim == 0:
        raise ShapeError(where, "input_x", got="a zero-dimensional tensor", takes="at least one axis")
    check_range(places, x.shape[0], where, "indices")
    values = updates_for(updates, x, places.shape + x.shape[1:], where)
    rows = reshaped(places, (*places.shape, 1))
    if mode == "sub":
        negative: Any = -values
        return one(scatter_nd_p, x, rows, negative, mode="add")
    if mode == "div":
        return divided(x, one(scatter_nd_p, filled(1, x.dtype, x.shape), rows, values, mode="mul"))
    return one(scatter_nd_p, x, rows, values, mode=mode)


_VERBS = {
    "update": ("Replace", "[10 20 15]"), "add": ("Add to", "[10 20 45]"), "sub": ("Subtract from", "[10 20 15]"),
    "mul": ("Multiply", "[ 10  20 450]"), "div": ("Divide", "[10 20  2]"),
    "max": ("Keep the larger of updates and", "[10 20 30]"), "min": ("Keep the smaller of updates and", "[10 20 15]"),
}  # fmt: skip


def _slice_operator(mode: str) -> Any:
    name, (verb, result) = f"scatter_{mode}", _VERBS[mode]

    def fn(input_x: Any, indices: Any, updates: Any, use_locking: bool = True) -> Tensor:
        x = _target(input_x, name)
        return _written(x, _by_slices(x, indices, updates, mode, name))

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"""{verb} slices of a parameter along its first axis, in place.

    Args:
        input_x: the parameter.
        indices: integers of any shape: which slices.
        updates: a tensor of shape ``indices.shape + input_x.shape[1:]``, or a number.
        use_locking: accepted and not needed.

    Returns:
        The parameter.

    Raises:
        OutOfRangeError: an index outside the first axis; then nothing is changed.
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> p = ms.Parameter(ms.Tensor([10, 20, 30]))
    >>> print(ms.ops.{name}(p, ms.Tensor([2]), ms.Tensor([15])).asnumpy())
    {result}
    """
    return operator()(fn)


def _row_operator(mode: str) -> Any:
    name, (verb, result) = f"scatter_nd_{mode}", _VERBS[mode]

    def fn(input_x: Any, indices: Any, updates: Any, use_locking: bool = False) -> Tensor:
        x = _target(input_x, name)
        return _written(x, by_rows(x, indices, updates, mode, name))

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"""{verb} elements or slices of a parameter at rows of indices, in place.

    Args:
        input_x: the parameter.
        indices: integers; the last axis holds an index for each leading axis of ``input_x``.
        updates: a tensor of shape ``indices.shape[:-1] + input_x.shape[indices.shape[-1]:]``, or a number.
        use_locking: accepted and not needed.

    Returns:
        The parameter.

    Raises:
        OutOfRangeError: an index outside its axis; then nothing is changed.
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> p = ms.Parameter(ms.Tensor([10, 20, 30]))
    >>> print(ms.ops.{name}(p, ms.Tensor([[2]]), ms.Tensor([15])).asnumpy())
    {result}
    """
    return operator()(fn)


scatter_update, scatter_add, scatter_sub = (_slice_operator(m) for m in ("update", "add", "sub"))
scatter_mul, scatter_div, scatter_max, scatter_min = (_slice_operator(m) for m in ("mul", "div", "max", "min"))
scatter_nd_update, scatter_nd_add, scatter_nd_sub = (_row_operator(m) for m in ("update", "add", "sub"))
scatter_nd_mul, scatter_nd_div, scatter_nd_max, scatter_nd_min = (
    _row_operator(m) for m in ("mul", "div", "max", "min")
)


@operator()
def index_add(x: Any, indices: Any, y: Any, axis: int, use_lock: bool = True, check_index_bound: bool = True) -> Tensor:
    """Add slices to a parameter at indices along an axis, in place.

    Args:
        x: the parameter.
        indices: a vector of integers.
        y: a tensor of the shape of ``x`` but with as many slices along ``axis`` as there are indices.
        axis: the axis.
        use_lock: accepted and not needed.
        check_index_bound: accepted; indices are always checked when the operator runs at once.

    Returns:
        The parameter.

    Raises:
        OutOfRangeError: an index outside the axis; then nothing is changed.
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> p = ms.Parameter(ms.Tensor([10, 20, 30]))
    >>> print(ms.ops.index_add(p, ms.Tensor([0, 0]), ms.Tensor([1, 2]), 0).asnumpy())
    [13 20 30]
    """
    target = _target(x, "index_add", "x")
    return _written(target, by_axis(target, axis, indices, y, "add", "index_add", ("axis", "indices", "y")))


@operator()
def inplace_index_add(var: Any, indices: Any, updates: Any, axis: int) -> Tensor:
    """Add slices to a parameter at indices along an axis, in place; see :func:`index_add`.

    >>> import mycelia as ms
    >>> p = ms.Parameter(ms.Tensor([10, 20, 30]))
    >>> print(ms.ops.inplace_index_add(p, ms.Tensor([0, 0]), ms.Tensor([1, 2]), 0).asnumpy())
    [13 20 30]
    """
    where, target = "inplace_index_add", _target(var, "inplace_index_add", "var")
    names = ("axis", "indices", "updates")
    return _written(target, by_axis(target, as_axis(axis, target.ndim, where), indices, updates, "add", where, names))


def _slices(x: Any, v: Any, indices: Any, mode: str, where: str) -> Tensor:
    t = as_tensor(x, where, "x")
    places = as_index(indices if isinstance(indices, Tensor) else as_shape(indices, where, "indices"), where, "indices")
    values: Any = as_tensor(v, where, "v")
    if mode == "sub":
        values, mode = -values, "add"
    return by_axis(t, 0, places, values, mode, where, ("x", "indices", "v"))


@operator()
def inplace_add(x: Any, v: Any, indices: Any) -> Tensor:
    """The tensor with slices ``v`` added along its first axis at ``indices``.

    Args:
        x: a tensor.
        v: as many slices as there are indices.
        indices: an int, a tuple of ints or a vector.

    Raises:
        OutOfRangeError: an index outside the first axis.
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> print(ms.ops.inplace_add(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([[5, 6]]), 1))
    [[ 1  2]
     [ 8 10]]
    """
    return _slices(x, v, indices, "add", "inplace_add")


@operator()
def inplace_sub(x: Any, v: Any, indices: Any) -> Tensor:
    """The tensor with slices ``v`` subtracted along its first axis at ``indices``; see :func:`inplace_add`.

    >>> import mycelia as ms
    >>> print(ms.ops.inplace_sub(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([[1, 1]]), 1))
    [[1 2]
     [2 3]]
    """
    return _slices(x, v, indices, "sub", "inplace_sub")


@operator(methods=True)
def inplace_update(x: Any, v: Any, indices: Any) -> Tensor:
    """The tensor with slices along its first axis replaced by ``v`` at ``indices``; see :func:`inplace_add`.

    >>> import mycelia as ms
    >>> print(ms.ops.inplace_update(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([[8, 9]]), 0))
    [[8 9]
     [3 4]]
    """
    return _slices(x, v, indices, "update", "inplace_update")
