"""How a value lies on a mesh of devices, and what it takes to lay it another way.

A mesh has named axes. A *layout* says for each axis which dimension of the value is divided along it, or ``WHOLE``
where every device along the axis holds the same; several axes may divide one dimension, the first of them coarsest.
All axes are looked at together: from one layout to another, parts are cut out first (that moves nothing), then parts
are exchanged (all-to-all), and what has to be whole is collected last, over the slowest links while it is smallest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, NamedTuple

from mycelia.core.errors import ArgumentValueError
from mycelia.parallel.planner.machine import Machine

#: Not divided along an axis.
WHOLE: Final = -1
#: For each axis of a mesh the dimension that is divided along it, or ``WHOLE``.
Layout = tuple[int, ...]
#: As ``PartitionSpec`` has it: for each dimension None, an axis, or several.
Spec = tuple[str | tuple[str, ...] | None, ...]


@dataclass(frozen=True)
class MeshShape:
    """Names and lengths of a mesh's axes; neighbours along the last axis are nearest to each other.

    >>> MeshShape(("data", "model"), (2, 4)).devices
    8
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.sizes) or len(set(self.names)) != len(self.names):
            raise ArgumentValueError(
                "MeshShape", "names", got=f"{self.names} for lengths {self.sizes}", takes="one name for each axis"
            )
        if any(n < 1 for n in self.sizes):
            raise ArgumentValueError("MeshShape", "sizes", got=str(self.sizes), takes="lengths of 1 or more")

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return prod(self.sizes)

    @property
    def whole(self) -> Layout:
        """The layout in which every device holds everything."""
        return (WHOLE,) * len(self.sizes)

    def __str__(self) -> str:
        return " x ".join(f"{name} {size}" for name, size in zip(self.names, self.sizes, strict=True)) or "one device"


class Step(NamedTuple):
    """One collective: its kind, the place of the mesh axis, and the bytes of the whole that it is about.

    ``nbytes`` is the size of what each rank has before (``all_reduce``, ``reduce_scatter``, ``all_to_all``,
    ``permute``) or after it (``all_gather``).
    """

    kind: str
    axis: int
    nbytes: float


def parts(layout: Layout, mesh: MeshShape) -> int:
    """Into how many parts a value is divided."""
    return prod([n for d, n in zip(layout, mesh.sizes, strict=True) if d >= 0])


def spec_of(layout: Layout, rank: int, mesh: MeshShape) -> Spec:
    """The layout as a ``PartitionSpec`` has it.

    >>> spec_of((1, 1), 3, MeshShape(("data", "model"), (2, 2)))
    (None, ('data', 'model'), None)
    """
    found: list[str | tuple[str, ...] | None] = []
    for d in range(rank):
        axes = tuple([name for name, at in zip(mesh.names, layout, strict=True) if at == d])
        found.append(None if not axes else axes[0] if len(axes) == 1 else axes)
    return tuple(found)


def layout_of(spec: Sequence[object], mesh: MeshShape, where: str = "layout") -> Layout:
    """The layout that a ``PartitionSpec``-like sequence describes.

    Raises:
        ArgumentValueError: an axis that the mesh does not have, or one that is used twice.

    >>> layout_of((None, "data"), MeshShape(("data",), (2,)))
    (1,)
    """
    layout = list(mesh.whole)
    for d, entry in enumerate(spec):
        for name in () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry):  # type: ignore[arg-type]
            if name not in mesh.names:
                raise ArgumentValueError(
                    where, "spec", got=f"the axis {name!r} for dimension {d}", takes=f"an axis of {mesh.names}"
                )
            at = mesh.names.index(name)
            if layout[at] != WHOLE:
                raise ArgumentValueError(where, "spec", got=f"the axis {name!r} twice", takes="each axis once at most")
            layout[at] = d
    return tuple(layout)


def steps_between(before: Layout, after: Layout, nbytes: float, mesh: MeshShape, machine: Machine) -> list[Step]:
    """The collectives that bring a value of ``nbytes`` (all devices' parts together) from one layout to another.

    Two ways are looked at: cutting first and collecting last, and collecting all that changes before cutting. Where an
    axis comes to or goes from a dimension that a finer axis divides, too, parts have to change places besides.
    """
    if before == after:
        return []
    cut, exchanged, collected = _changes(before, after, mesh)
    small = nbytes / parts(before, mesh)
    for a in cut:
        small /= mesh.sizes[a]
    steps = []
    permuted = _reordered(before, after, mesh, [*cut, *exchanged], [*exchanged, *collected])
    if permuted is not None:
        steps.append(Step("permute", permuted, small))
    steps += [Step("all_to_all", a, small) for a in exchanged]
    steps += _collecting(small, collected, mesh, machine)
    if not (exchanged or permuted is not None) or not (cut or exchanged):
        return steps
    kept = tuple([p if p == q else WHOLE for p, q in zip(before, after, strict=True)])
    large = nbytes / parts(before, mesh)
    other = []
    moved = _reordered(before, kept, mesh, [], [*exchanged, *collected])
    moved = moved if moved is not None else _reordered(kept, after, mesh, [*cut, *exchanged], [])
    if moved is not None:
        other.append(Step("permute", moved, large))
    other += _collecting(large, [*exchanged, *collected], mesh, machine)
    return min(steps, other, key=lambda way: _seconds(way, mesh, machine))


def _changes(before: Layout, after: Layout, mesh: MeshShape) -> tuple[list[int], list[int], list[int]]:
    """Axes along which a value is cut, exchanged, and collected."""
    cut: list[int] = []
    exchanged: list[int] = []
    collected: list[int] = []
    for a, (p, q) in enumerate(zip(before, after, strict=True)):
        if p != q and mesh.sizes[a] > 1:
            (cut if p == WHOLE else collected if q == WHOLE else exchanged).append(a)
    return cut, exchanged, collected


def _collecting(local: float, axes: Sequence[int], mesh: MeshShape, machine: Machine) -> list[Step]:
    """All-gathers along these axes, the slowest links first."""
    steps = []
    for a in sorted(axes, key=lambda a: (-machine.link(mesh.sizes, a)[1], -a)):
        local *= mesh.sizes[a]
        steps.append(Step("all_gather", a, local))
    return steps


def _seconds(steps: Sequence[Step], mesh: MeshShape, machine: Machine) -> float:
    return sum(machine.seconds(s.kind, mesh.sizes[s.axis], s.nbytes, mesh.sizes, s.axis) for s in steps)


def _reordered(
    before: Layout, after: Layout, mesh: MeshShape, coming: Sequence[int], going: Sequence[int]
) -> int | None:
    """An axis along which parts change places: one that comes or goes where a finer one divides the dimension."""
    for a in coming:
        if any(at == after[a] and f > a and mesh.sizes[f] > 1 for f, at in enumerate(before)):
            return a
    for a in going:
        if any(at == before[a] and f > a and mesh.sizes[f] > 1 for f, at in enumerate(after)):
            return a
    return None
