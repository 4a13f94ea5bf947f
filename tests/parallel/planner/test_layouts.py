"""Bringing a value from one layout to another: on real shards, and counted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mycelia.core.errors import ArgumentValueError
from mycelia.parallel.planner import Level, Machine, MeshShape
from mycelia.parallel.planner.layouts import WHOLE, Layout, layout_of, parts, spec_of, steps_between

MESH = MeshShape(("a", "b"), (2, 4))
MACHINE = Machine("eight", (Level("link", 8, 1e-6, 1e-9),), {"default": 1e12}, 1e11, 2**30)


def _held(layout: Layout, mesh: MeshShape, device: tuple[int, ...], shape: tuple[int, int]) -> set[int]:
    """The elements of an array that a device holds, by their numbers."""
    array = np.arange(np.prod(shape)).reshape(shape)
    for d in range(2):
        axes = [a for a, at in enumerate(layout) if at == d]
        count = int(np.prod([mesh.sizes[a] for a in axes]))
        place = 0
        for a in axes:
            place = place * mesh.sizes[a] + device[a]
        array = np.split(array, count, d)[place]
    return set(array.ravel().tolist())


@pytest.mark.parametrize(
    ("before", "after"), list(itertools.product(itertools.product((WHOLE, 0, 1), repeat=2), repeat=2))
)
def test_the_steps_move_what_devices_lack(before: Layout, after: Layout) -> None:
    shape = (16, 16)
    devices = list(itertools.product(*map(range, MESH.sizes)))
    lacking = max(len(_held(after, MESH, dev, shape) - _held(before, MESH, dev, shape)) for dev in devices)
    steps = steps_between(before, after, 256.0, MESH, MACHINE)
    assert bool(steps) == (lacking > 0)
    received = sum(step.nbytes * (1 if step.kind == "permute" else 1 - 1 / MESH.sizes[step.axis]) for step in steps)
    assert received >= lacking
    if steps and all(q in (p, WHOLE) for p, q in zip(before, after, strict=True)) and len(steps) == 1:
        assert received == lacking  # nothing is sent twice


def test_cutting_is_free_and_comes_first() -> None:
    assert steps_between((WHOLE, WHOLE), (0, 1), 1e6, MESH, MACHINE) == []
    cut_and_gather = steps_between((0, WHOLE), (WHOLE, 1), 1e6, MESH, MACHINE)
    assert [(s.kind, s.axis, s.nbytes) for s in cut_and_gather] == [("all_gather", 0, 1e6 / 4)]
    exchanged = steps_between((0, WHOLE), (1, WHOLE), 1e6, MESH, MACHINE)
    assert [(s.kind, s.nbytes) for s in exchanged] == [("all_to_all", 5e5)]


def test_a_coarser_axis_that_goes_costs_a_change_of_places() -> None:
    kinds = [s.kind for s in steps_between((0, 0), (WHOLE, 0), 1e6, MESH, MACHINE)]
    assert kinds == ["permute", "all_gather"]
    assert [s.kind for s in steps_between((0, 0), (0, WHOLE), 1e6, MESH, MACHINE)] == ["all_gather"]


def test_specs_and_layouts_are_two_forms_of_one_thing() -> None:
    for layout in itertools.product((WHOLE, 0, 1, 2), repeat=2):
        assert layout_of(spec_of(layout, 3, MESH), MESH) == layout
    assert spec_of((1, WHOLE), 2, MESH) == (None, "a")
    assert parts((1, 1), MESH) == 8
    with pytest.raises(ArgumentValueError, match="the axis 'c' for dimension 0"):
        layout_of(("c",), MESH)
    with pytest.raises(ArgumentValueError, match="the axis 'a' twice"):
        layout_of(("a", "a"), MESH)
    with pytest.raises(ArgumentValueError, match="one name for each axis"):
        MeshShape(("a", "a"), (2, 2))
