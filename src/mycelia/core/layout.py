"""Layouts: how a tensor is spread over devices, and programs in which tensors are spread.

Devices stand in a matrix whose axes have names; a layout says for each axis of a tensor along which axes of the matrix
it is cut. A tensor that is spread is one tensor to the program, with its whole shape; each device holds a part. The
engine (XLA's SPMD partitioner) makes of a program over such tensors what each device has to do, and what they send
each other. Semantics of names: ``mindspore.parallel.Layout``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError

#: What a layout says of one axis of a tensor: the axes of the device matrix that cut it, none or several.
Cut = tuple[str, ...]


_in_use = False


def use() -> None:
    """From now on tensors may be spread."""
    global _in_use
    _in_use = True


def in_use() -> bool:
    """Whether tensors may be spread: kernels for one device are not used then, and arrays are looked at."""
    return _in_use


class Layout:
    """Devices in a matrix, and how a tensor lies on them.

    Args:
        device_matrix: how many devices there are along each axis of the matrix.
        alias_name: a name for each axis.
        rank_list: the ranks in the matrix, row by row; all ranks in order by default.

    ``layout("dp", "mp")`` is the layout of a tensor whose first axis is cut along ``dp`` and the second along ``mp``;
    ``"None"`` stands for an axis that is not cut, a tuple of names for one that is cut along several.

    Raises:
        ArgumentTypeError: an argument of another type.
        ArgumentValueError: names that do not fit the matrix, or a name that it lacks.

    >>> import mycelia as ms
    >>> from mycelia.core.layout import Layout
    >>> layout = Layout((2, 4), ("dp", "mp"))
    >>> layout("dp", ("mp",)).cuts
    (('dp',), ('mp',))
    """

    def __init__(
        self, device_matrix: Sequence[int], alias_name: Sequence[str], rank_list: Sequence[int] | None = None
    ) -> None:
        for name, given, kind in (("device_matrix", device_matrix, int), ("alias_name", alias_name, str)):
            if not isinstance(given, (tuple, list)) or not all(
                isinstance(x, kind) and not isinstance(x, bool) for x in given
            ):
                raise ArgumentTypeError("Layout", name, got=repr(given), takes=f"a tuple of {kind.__name__}")
        if not device_matrix or min(device_matrix) < 1:
            raise ArgumentValueError("Layout", "device_matrix", got=repr(device_matrix), takes="positive numbers")
        names = tuple(alias_name)
        if len(names) != len(device_matrix) or len(set(names)) < len(names) or "None" in names or "" in names:
            raise ArgumentValueError(
                "Layout",
                "alias_name",
                got=repr(names),
                takes=f"{len(device_matrix)} different names, none of them 'None'",
            )
        count = prod(device_matrix)
        ranks = tuple(range(count)) if rank_list is None else tuple(rank_list)
        if len(ranks) != count or len(set(ranks)) < count:
            raise ArgumentValueError("Layout", "rank_list", got=repr(rank_list), takes=f"{count} different ranks")
        self.device_matrix, self.alias_name, self.rank_list = tuple(device_matrix), names, ranks
        self.cuts: tuple[Cut, ...] | None = None

    def __call__(self, *tensor_map: str | Sequence[str]) -> Layout:
        """The layout of a tensor, by the names that cut each of its axes."""
        cuts = []
        used: set[str] = set()
        for axis, given in enumerate(tensor_map):
            names = (given,) if isinstance(given, str) else tuple(given)
            names = tuple(n for n in names if n != "None")
            for name in names:
                if name not in self.alias_name:
                    known = ", ".join(repr(n) for n in self.alias_name)
                    raise ArgumentValueError(
                        "Layout", f"tensor_map[{axis}]", got=repr(name), takes=f"{known} or 'None'"
                    )
                if name in used:
                    raise ArgumentValueError("Layout", f"tensor_map[{axis}]", got=repr(name), takes="each name once")
                used.add(name)
            cuts.append(names)
        return self.with_cuts(cuts)

    def with_cuts(self, cuts: Sequence[Cut]) -> Layout:
        """These devices with other cuts."""
        made = Layout.__new__(Layout)
        made.device_matrix, made.alias_name, made.rank_list = self.device_matrix, self.alias_name, self.rank_list
        made.cuts = tuple(cuts)
        return made

    def _key(self) -> tuple[Any, ...]:
        return self.device_matrix, self.alias_name, self.rank_list, self.cuts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        devices = ", ".join(f"{n}={k}" for n, k in zip(self.alias_name, self.device_matrix, strict=True))
        if self.cuts is None:
            return f"Layout({devices})"
        return f"Layout({devices})({', '.join('+'.join(c) or 'None' for c in self.cuts)})"

    def parts(self, axis: int) -> int:
        """Into how many parts an axis is cut."""
        cut = self.cuts[axis] if self.cuts is not None and axis < len(self.cuts) else ()
        return prod(self.device_matrix[self.alias_name.index(name)] for name in cut)

    def problems(self, shape: Sequence[int], where: str) -> list[str]:
        """What keeps a tensor of this shape from lying so: one line for each axis."""
        found = []
        if self.cuts is not None and len(self.cuts) > len(shape):
            found.append(f"{where} has {len(shape)} axes, its layout {len(self.cuts)}: {self!r}")
        for axis, size in enumerate(shape):
            if size % self.parts(axis):
                names = "+".join(self.cuts[axis]) if self.cuts is not None else ""
                found.append(
                    f"axis {axis} of {where} has {size} elements, which {self.parts(axis)} devices along "
                    f"'{names}' cannot share evenly"
                )
        return found

    def check(self, shape: Sequence[int], where: str, argument: str) -> None:
        """Refuse a shape that cannot lie so, with all its problems.

        Raises:
            ShapeError: it cannot.
        """
        found = self.problems(shape, argument)
        if found:
            raise ShapeError(where, argument, message="; ".join(found))

    @functools.cached_property
    def mesh(self) -> Mesh:
        """The devices, as the engine knows them.

        Raises:
            ArgumentValueError: a rank that does not exist.
        """
        devices = jax.devices()
        missing = [r for r in self.rank_list if not 0 <= r < len(devices)]
        if missing:
            raise ArgumentValueError(
                "Layout", "device_matrix", got=f"{self.device_matrix}, {len(self.rank_list)} devices",
                takes=f"devices that exist: there are {len(devices)}",
            )  # fmt: skip
        return Mesh(np.array([devices[r] for r in self.rank_list]).reshape(self.device_matrix), self.alias_name)

    def sharding(self) -> NamedSharding:
        """The layout, as the engine knows it."""
        cuts = self.cuts or ()
        return NamedSharding(self.mesh, PartitionSpec(*[c if len(c) > 1 else c[0] if c else None for c in cuts]))


def device_count() -> int:
    """How many devices tensors can be spread over."""
    return jax.device_count()


def is_spread(array: Any) -> bool:
    """Whether an array lies on several devices."""
    return (
        isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer) and len(array.sharding.device_set) > 1
    )


def spread(array: Any, layout: Layout) -> Any:
    """An array that all ranks hold alike, laid out; of one that is spread already, laid out anew."""
    use()
    target = layout.sharding()
    if is_spread(array):
        return jax.device_put(array, target)
    if len(target.device_set) == 1 or jax.process_count() == 1:
        return jax.device_put(array, target)
    whole = np.asarray(array)
    return jax.make_array_from_callback(whole.shape, target, lambda index: whole[index])


def whole(array: Any) -> Any:
    """An array of which this process can read every element: itself, or all parts fetched from the other ranks."""
    if not isinstance(array, jax.Array) or array.is_fully_addressable or array.is_fully_replicated:
        return array
    sharding: Any = array.sharding
    return jax.device_put(array, NamedSharding(sharding.mesh, PartitionSpec()))


def joined(array: Any, layout: Layout) -> Any:
    """One array of which each process holds the part that ``array`` is."""
    use()
    target = layout.sharding()
    if jax.process_count() == 1:
        return jax.device_put(array, target)
    return jax.make_array_from_process_local_data(target, np.asarray(array))


def _stays_here(array: Any) -> bool:
    """Whether the engine would refuse to take an array of one device to others."""
    return isinstance(array, jax.Array) and array.committed and not is_spread(array)


class Spread:
    """A function of arrays some of which are spread, compiled. An output that takes an input's memory lies as it does.

    Arrays that are not spread are taken to be alike at all ranks.

    Args:
        run: gives a list of arrays.
        pairs: places of inputs whose memory is given away, and of the outputs that take it.
    """

    def __init__(self, run: Callable[..., Any], pairs: Sequence[tuple[int, int]] = ()) -> None:
        self._run, self._pairs = run, tuple(pairs)
        self._compiled: dict[tuple[Any, ...], Any] = {}

    def __call__(self, *arrays: Any) -> Any:
        """Run on arrays; all ranks that hold parts of them have to."""
        mesh = next(a.sharding.mesh for a in arrays if is_spread(a))
        everywhere = NamedSharding(mesh, PartitionSpec())
        given = [jax.device_put(a, everywhere) if _stays_here(a) else a for a in arrays]
        key = tuple([a.sharding if is_spread(a) else None for a in given])
        fn = self._compiled.get(key)
        if fn is None:
            fn = self._compiled[key] = self._made(given)
        return fn(*given)

    def _made(self, given: Sequence[Any]) -> Any:
        outputs = jax.eval_shape(self._run, *[jax.ShapeDtypeStruct(a.shape, a.dtype) for a in given])
        kept: list[Any] = [None] * len(outputs)
        for i, k in self._pairs:
            kept[k] = given[i].sharding if is_spread(given[i]) else None
        donated = [i for i, _ in self._pairs]
        return jax.jit(self._run, donate_argnums=donated, out_shardings=kept, keep_unused=True)
