"""The sixty programs that are compared with MindSpore, and the edits: all right here, and the table is current."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.oracles.graph_programs import table
from tests.oracles.graph_programs.program import Edit, Program, difference, run_edit, run_program
from tests.oracles.graph_programs.run_one import KINDS, PROGRAMS

import mycelia as ms
from mycelia.core import errors

DATA_DEPENDENT = [name for name in PROGRAMS if name.startswith("data/")]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in DATA_DEPENDENT])
def test_right(name: str) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    one = PROGRAMS[name]
    outcome = run_edit(one) if isinstance(one, Edit) else run_program(one)
    assert outcome.result == "ok", outcome.message


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_what_depends_on_data_is_never_wrong(name: str) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    one = PROGRAMS[name]
    assert isinstance(one, Program)
    outcome = run_program(one)
    assert outcome.result == table.recorded("mycelia")[name]["result"]
    if outcome.result != "ok":
        kind = outcome.message.partition(":")[0]
        assert issubclass(getattr(errors, kind), errors.MyceliaError)
        assert 3 <= outcome.lines <= 10


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_what_depends_on_data_works_at_once(name: str) -> None:
    one = PROGRAMS[name]
    assert isinstance(one, Program)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ms, "jit", lambda fn: fn)
        assert run_program(one).result == "ok"


def test_sixty() -> None:
    assert Counter({kind: len(programs) for kind, programs in KINDS.items()}) == {
        "syntax": 30,
        "control flow": 15,
        "gradients": 15,
    }
    for framework in ("mindspore", "mycelia"):
        assert list(table.recorded(framework)) == list(PROGRAMS)


def test_the_table_is_current() -> None:
    text = table.DOCUMENT.read_text(encoding="utf-8")
    assert table.section() in text
    assert table.with_section(text) == text


@pytest.mark.parametrize(
    ("got", "expected", "words"),
    [
        (np.float32([1, 2]), np.float32([1, 2.1]), "result is [1.0, 2.0], not [1.0, 2."),
        (np.int32([1, 2]), np.float32([1, 2]), "int32, not float32"),
        (np.float32([1, 2]), np.float32([[1, 2]]), "shape (2,), not (1, 2)"),
        ((1, np.float32(2)), [1, np.float32(2)], "a tuple, not a list"),
        ([1.0], [np.float32(1)], "result[0] is a float, not a tensor"),
        ({"b": 1, "a": 2}, {"a": 2, "b": 1}, "keys ['b', 'a']"),
        ({"a": (1, "x")}, {"a": (1, "y")}, "result['a'][1] is 'x', not 'y'"),
        ([1, 2], [1], "2 items, not 1"),
        (1, True, "result is 1, not True"),
        (None, 1, "result is None, not 1"),
    ],
)
def test_what_is_not_right(got: Any, expected: Any, words: str) -> None:
    assert words in difference(got, expected)
    assert difference(expected, expected) == ""


def test_printing_in_another_order_is_not_right() -> None:
    from tests.oracles.graph_programs.program import program

    def twice(x):
        print("one", x)
        print("two")
        return x

    x = np.float32([1])
    assert run_program(program("", twice, ((x,), x), printed=("one", "two"))).result == "ok"
    outcome = run_program(program("", twice, ((x,), x), printed=("two", "one")))
    assert (outcome.result, outcome.message) == ("wrong", "printed one two, not two one")
