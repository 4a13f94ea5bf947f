"""Elements written at places that tensors of integers name: scatter and its many forms.

Three primitives do all of it; they differ in how the places are given, as the reads in
:mod:`mycelia.ops.indexing` do: ``scatter_elements`` one place for each element, ``scatter_nd`` rows of
indices, ``index_put`` an index array for each of some axes. ``mode`` says how an element is combined with
what is there: "update", "add", "mul", "max" or "min". Of several updates of one place in mode "update" one
wins (the last, on the CPU), and only it gets a gradient; places outside the tensor are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes, conj
from mycelia.ops.indexing import (
    accumulator,
    check_integers,
    gather_elements_p,
    gather_nd_p,
    index_get_p,
    infer_indices,
    location,
    places_of,
)
from mycelia.ops.operands import cast
from mycelia.ops.outputs import one
from mycelia.ops.shape import filled
from mycelia.tensor import Tensor

_TABLE = np.arange(12.0).reshape(3, 4) + 0.5
_CUBE = np.arange(24.0).reshape(2, 3, 4)

Ints = tuple[int, ...]

#: How an update is combined with what is there.
MODES = ("update", "add", "mul", "max", "min")


def _allowed(mode: str) -> Sequence[dt.DType]:
    return dt.ALL if mode == "update" else dt.REALS if mode in ("max", "min") else dt.NUMBERS


def _check(where: str, x: TensorType, updates: TensorType, mode: str, wanted: Ints) -> TensorType:
    check_dtypes(where, (x, updates), _allowed(mode), ("input", "updates"))
    if updates.shape != wanted:
        raise ShapeError(
            where,
            "updates",
            got=f"shape {updates.shape}",
            takes=f"shape {wanted}, that of the places in a tensor of shape {x.shape}",
        )
    return x


def _write(x: Any, places: Any, updates: Any, mode: str) -> Any:
    wide = accumulator(x.dtype) if mode in ("add", "mul") else x.dtype
    at = x.astype(wide).at[places]
    write = {"update": at.set, "add": at.add, "mul": at.multiply, "max": at.max, "min": at.min}[mode]
    return write(updates.astype(wide), mode="drop").astype(x.dtype)


def _rule(
    ct: Any,
    x: Any,
    updates: Any,
    out: Any,
    mode: str,
    read: Callable[[Any], Any],
    write: Callable[[Any, Any, str], Any],
) -> list[Any]:
    """Gradients of the tensor and of the updates, the same for all three primitives."""
    from mycelia.ops.selection import where

    if mode == "add":
        return [ct, lambda: read(ct)]
    if mode == "update":

        def winners() -> Tensor:
            order: Any = one(iota_p, shape=updates.shape)
            kept: Any = read(write(filled(-1, dt.int64, x.shape), order, "update"))
            return where(kept == order, read(ct), 0)  # type: ignore[no-any-return]

        return [lambda: write(ct, filled(0, ct.dtype, updates.shape), "update"), winners]
    if mode == "mul":

        def factors() -> Tensor:
            known = updates != 0
            others = read(ct * conj(out)) / where(known, conj(updates), 1)
            return where(known, others, read(ct * conj(x)))  # type: ignore[no-any-return]

        return [lambda: write(ct, conj(updates), "mul"), factors]

    def share() -> tuple[Any, Any, Any]:
        own, given = cast(x == out, ct.dtype), cast(updates == read(out), ct.dtype)
        return own, given, ct / write(own, given, "add")

    def of_tensor() -> Any:
        own, _, part = share()
        return own * part

    def of_updates() -> Any:
        _, given, part = share()
        return given * read(part)

    return [of_tensor, of_updates]


iota_p = Primitive(
    "row_major_numbers", infer=lambda *, shape: TensorType(dt.int64, shape), differentiable=False,
    lower=lambda *, shape: jnp.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape),
    samples=lambda: [Sample((), {"shape": (2, 3)}), Sample((), {"shape": ()}), Sample((), {"shape": (0, 2)})],
)  # fmt: skip


# one place for each element


def _infer_elements(x: TensorType, index: TensorType, updates: TensorType, *, axis: int, mode: str) -> TensorType:
    check_integers("scatter", index, "index")
    if index.rank != x.rank or x.rank == 0:
        raise ShapeError(
            "scatter", "index", got=f"shape {index.shape}", takes=f"as many axes as the tensor of shape {x.shape}"
        )
    if any(i != axis and n > d for i, (n, d) in enumerate(zip(index.shape, x.shape, strict=True))):
        raise ShapeError(
            "scatter",
            "index",
            got=f"shape {index.shape}",
            takes=f"lengths within those of {x.shape} except along axis {axis}",
        )
    return _check("scatter", x, updates, mode, index.shape)


def _lower_elements(x: Any, index: Any, updates: Any, *, axis: int, mode: str) -> Any:
    places = [jnp.arange(n).reshape([-1 if i == a else 1 for i in range(x.ndim)]) for a, n in enumerate(index.shape)]
    places[axis] = index
    return _write(x, tuple(places), updates, mode)


def _vjp_elements(
    ct: Tensor, x: Tensor, index: Tensor, updates: Tensor, out: Tensor, *, axis: int, mode: str
) -> list[Any]:
    def write(a: Tensor, b: Tensor, how: str) -> Tensor:
        return one(scatter_elements_p, a, index, b, axis=axis, mode=how)

    of_x, of_updates = _rule(ct, x, updates, out, mode, lambda a: one(gather_elements_p, a, index, axis=axis), write)
    return [of_x, None, of_updates]


def _elements_samples() -> list[Any]:
    index = np.array([[0, 3], [1, -1]])
    twice = np.array([[0, 0, 1]])
    values = np.array([[7.5, -8.5], [9.5, 2.25]])
    return [
        *[Sample((_TABLE, index, values), {"axis": 1, "mode": mode}) for mode in MODES],
        Sample((_TABLE, twice, np.array([[1.0, 2.0, 30.0]])), {"axis": 0, "mode": "add"}),
        Sample((_TABLE, twice[:, :2].T, np.array([[1.5], [2.0]])), {"axis": 1, "mode": "mul"}),
        Sample((_TABLE, np.array([[9, 0]]), np.array([[1.0, 2.0]])), {"axis": 0, "mode": "update"}),
        Sample((_TABLE, np.zeros((0, 4), int), np.zeros((0, 4))), {"axis": 0, "mode": "update"}),
        Bad((_TABLE, index, values[:1]), {"axis": 1, "mode": "add"}, ShapeError, "updates"),
        Bad((_TABLE, index.astype(float), values), {"axis": 1, "mode": "add"}, TypeError, "integers"),
        Bad((_TABLE, index[0], values[0]), {"axis": 1, "mode": "add"}, ShapeError, "as many axes"),
        Bad((_TABLE, np.zeros((4, 1), int), np.zeros((4, 1))), {"axis": 1, "mode": "add"}, ShapeError, "except along"),
    ]  # fmt: skip


scatter_elements_p: Primitive = Primitive(
    "scatter_elements", infer=_infer_elements, lower=_lower_elements, vjp=_vjp_elements, onnx="ScatterElements",
    samples=_elements_samples,
)  # fmt: skip


def scatter_add_elements(shape: Ints, index: Tensor, updates: Tensor, axis: int) -> Tensor:
    """Zeros of ``shape`` with each update added at its place along ``axis``."""
    return one(scatter_elements_p, filled(0, updates.dtype, shape), index, updates, axis=axis, mode="add")


# rows of indices


def _infer_nd(x: TensorType, index: TensorType, updates: TensorType, *, mode: str) -> TensorType:
    check_integers("scatter_nd", index, "indices")
    if not index.shape or index.shape[-1] > x.rank:
        raise ShapeError(
            "scatter_nd",
            "indices",
            got=f"shape {index.shape}",
            takes=f"a last axis of at most {x.rank} indices, one for each axis of {x.shape}",
        )
    return _check("scatter_nd", x, updates, mode, index.shape[:-1] + x.shape[index.shape[-1] :])


def _lower_nd(x: Any, index: Any, updates: Any, *, mode: str) -> Any:
    if index.shape[-1] == 0:
        flat = jnp.zeros((int(np.prod(index.shape[:-1])),), np.int64)
        return _write(x[None], (flat,), updates.reshape(-1, *x.shape), mode)[0]
    return _write(x, places_of(index), updates, mode)


def _vjp_nd(ct: Tensor, x: Tensor, index: Tensor, updates: Tensor, out: Tensor, *, mode: str) -> list[Any]:
    def write(a: Tensor, b: Tensor, how: str) -> Tensor:
        return one(scatter_nd_p, a, index, b, mode=how)

    of_x, of_updates = _rule(ct, x, updates, out, mode, lambda a: one(gather_nd_p, a, index), write)
    return [of_x, None, of_updates]


def _nd_samples() -> list[Any]:
    index = np.array([[0, 3], [1, -1]])
    values = np.array([7.5, -8.5])
    return [
        *[Sample((_TABLE, index, values), {"mode": mode}) for mode in MODES],
        Sample((_TABLE, np.array([[1], [1]]), _TABLE[:2] * 2), {"mode": "add"}),
        Sample((_TABLE, np.array([[1], [1]]), _TABLE[:2] * 2), {"mode": "max"}),
        Sample((_TABLE, np.array([2, 9]), np.array(1.0)), {"mode": "update"}),
        Sample((_TABLE, np.zeros((0, 2), int), np.zeros(0)), {"mode": "update"}),
        Bad((_TABLE, np.zeros((1, 3), int), values[:1]), {"mode": "add"}, ShapeError, "at most 2"),
        Bad((_TABLE, index, values[:1]), {"mode": "add"}, ShapeError, "updates"),
        Bad((_TABLE, index + 0.5, values), {"mode": "add"}, TypeError, "integers"),
    ]  # fmt: skip


scatter_nd_p: Primitive = Primitive(
    "scatter_nd", infer=_infer_nd, lower=_lower_nd, vjp=_vjp_nd, onnx="ScatterND", samples=_nd_samples
)


def scatter_add_nd(shape: Ints, index: Tensor, updates: Tensor) -> Tensor:
    """Zeros of ``shape`` with updates added at rows of indices."""
    return one(scatter_nd_p, filled(0, updates.dtype, shape), index, updates, mode="add")


# an index array for each of some axes


def _infer_put(x: TensorType, updates: TensorType, *indices: TensorType, axes: Ints, mode: str) -> TensorType:
    return _check("setitem", x, updates, mode, infer_indices("setitem", x, indices, axes))


def _vjp_put(ct: Tensor, x: Tensor, updates: Tensor, *indices: Tensor, out: Tensor, axes: Ints, mode: str) -> list[Any]:
    def write(a: Tensor, b: Tensor, how: str) -> Tensor:
        return one(index_put_p, a, b, *indices, axes=axes, mode=how)

    made = _rule(ct, x, updates, out, mode, lambda a: one(index_get_p, a, *indices, axes=axes), write)
    return [*made, *[None] * len(indices)]


def _put_samples() -> list[Any]:
    two = np.array([[0], [1]]), np.array([3, 0])
    values = np.array([[7.5, -8.5], [9.5, 2.25]])
    return [
        *[Sample((_TABLE, values, *two), {"axes": (0, 1), "mode": mode}) for mode in MODES],
        Sample((_CUBE, np.linspace(-1, 1, 12).reshape(2, 2, 3), *two), {"axes": (0, 2), "mode": "update"}),
        Sample((_TABLE, np.linspace(-1, 1, 6).reshape(3, 2), np.array([1, 1])), {"axes": (1,), "mode": "add"}),
        Sample((_TABLE, np.linspace(-1, 1, 8).reshape(2, 4), np.array([1, 1])), {"axes": (0,), "mode": "update"}),
        Bad((_TABLE, values, np.array([0, 1])), {"axes": (0,), "mode": "add"}, ShapeError, "updates"),
        Bad((_TABLE, _TABLE[:2], np.array([0.5, 1])), {"axes": (0,), "mode": "add"}, TypeError, "integers"),
    ]  # fmt: skip


index_put_p: Primitive = Primitive(
    "index_put", infer=_infer_put, vjp=_vjp_put, samples=_put_samples,
    lower=lambda x, updates, *indices, axes, mode: _write(x, location(axes, indices), updates, mode),
)  # fmt: skip
