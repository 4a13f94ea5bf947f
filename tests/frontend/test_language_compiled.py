"""The programs of the language tests compiled by XLA: as ``ms.jit`` functions, and in the construct of a Cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.frontend import (
    test_language_data,
    test_language_effects,
    test_language_protocols,
    test_language_python,
    test_language_scopes,
    test_language_tensors,
)
from tests.frontend.battery import Function
from tests.frontend.staging import assert_same, copied

import mycelia as ms

_FAST = {
    "generator_functions", "match_everything", "operators_of_ones_own", "dataclasses_of_every_kind",
    "while_with_everything", "for_with_break_continue_else", "sorted_by_tensors", "deep_nesting",
}  # fmt: skip
_MODULES = (
    test_language_data, test_language_effects, test_language_protocols, test_language_python, test_language_scopes,
    test_language_tensors,
)  # fmt: skip
_ROWS = [
    pytest.param(*row.values, id=row.id, marks=() if row.id in _FAST else pytest.mark.slow)
    for module in _MODULES
    for row in module.program.rows
]


class _Net(ms.nn.Cell):
    def __init__(self, fn: Function) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *args: Any) -> Any:
        return self.fn(*args)


@pytest.fixture
def _graph_mode() -> Iterator[None]:
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=before)


def _agrees(run: Function, fn: Function, cases: tuple[Any, ...]) -> None:
    for case in cases:
        ours, eager = copied(case), copied(case)
        got = run(*ours)
        ms.set_context(mode=ms.PYNATIVE_MODE)
        expected = fn(*eager)
        ms.set_context(mode=ms.GRAPH_MODE)
        assert_same((got, ours), (expected, eager))


@pytest.mark.usefixtures("_graph_mode")
@pytest.mark.parametrize(("fn", "cases"), _ROWS)
def test_compiled(fn: Function, cases: tuple[Any, ...]) -> None:
    _agrees(ms.jit(fn), fn, cases)


@pytest.mark.usefixtures("_graph_mode")
@pytest.mark.parametrize(("fn", "cases"), _ROWS[::4])
def test_compiled_in_a_cell(fn: Function, cases: tuple[Any, ...]) -> None:
    _agrees(_Net(fn), fn, cases)
