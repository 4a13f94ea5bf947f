"""What an error says and where it points."""

from __future__ import annotations

import threading

import pytest

import mycelia as ms
from mycelia.core.errors import ArgumentValueError, MissingKeyError, MyceliaError, ShapeError, user_location


def test_an_error_names_argument_got_takes_line_and_hint():
    error = ArgumentValueError("f", "x", got="3", takes="4", hint="write 4")
    lines = str(error).splitlines()
    assert lines[0] == "f: argument 'x' got 3; it takes 4"
    assert lines[1].startswith("  at ")
    assert "test_errors.py" in lines[1]
    assert "ArgumentValueError(" in lines[2]
    assert lines[3] == "            " + "^" * len(lines[2].partition(" = ")[2])
    assert lines[4] == "  hint: write 4"
    assert isinstance(error, ValueError)
    assert isinstance(error, MyceliaError)


def test_a_key_error_reads_like_the_others():
    assert str(MissingKeyError("f", "x", got="'a'", takes="'b'")).startswith("f: argument 'x' got 'a'")


def test_the_location_is_the_callers_line():
    a = ms.Tensor([[1.0, 2.0]])
    with pytest.raises(ShapeError) as caught:
        ms.ops.matmul(a, a)  # the line that is to blame
    assert "# the line that is to blame" in str(caught.value)
    assert caught.value.location.function == "test_the_location_is_the_callers_line"


def test_the_location_inside_a_thread_is_not_the_standard_librarys():
    found = []
    thread = threading.Thread(target=lambda: found.append(user_location()))
    thread.start()
    thread.join()
    assert found[0].file == __file__


def test_a_compiled_function_reports_the_same_line():
    @ms.jit
    def f(x):
        y = x * 2
        return ms.ops.matmul(y, y)  # inside the graph

    with pytest.raises(ShapeError) as caught:
        f(ms.Tensor([[1.0, 2.0]]))
    message = str(caught.value)
    assert "# inside the graph" in message
    assert len(message.splitlines()) < 12
