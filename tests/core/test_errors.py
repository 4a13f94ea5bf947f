"""What an error says and where it points."""

from __future__ import annotations

import threading

import pytest

import mycelia as ms
from mycelia.core.errors import (
    ArgumentValueError,
    MissingKeyError,
    MyceliaError,
    ShapeError,
    SourceLocation,
    shown_traceback,
    user_location,
)


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


def test_the_expression_is_underlined():
    def refuse(value):
        raise ArgumentValueError("f", "value", got=str(value), takes="4", location=user_location())

    with pytest.raises(ArgumentValueError) as caught:
        print("größe", refuse(3))
    *_, text, carets = str(caught.value).splitlines()
    assert text.strip().startswith("raise ArgumentValueError(")
    assert carets.strip("^ ") == ""

    location = SourceLocation(__file__, _line_of('print("größe", '), "f", 8 + len('print("größe", '.encode()), None)
    text, carets = location.render().splitlines()[1:]
    assert text[len(carets) - carets.count("^") :] == "refuse(3))"
    assert SourceLocation(__file__, location.line, "f") == location
    assert SourceLocation(__file__, location.line, "f").carets == ""
    assert SourceLocation("<nowhere>", 1, "f", 0, 4).render() == "  at <nowhere>:1, in f"


def _line_of(text):
    with open(__file__, encoding="utf-8") as file:
        return next(i for i, line in enumerate(file, 1) if text in line)


def test_an_explained_error_has_operands_and_another_hint():
    error = ArgumentValueError("f", "x", got="3", takes="4", hint="write 4")
    error.explain("x is the int 3", "write 5")
    lines = str(error).splitlines()
    assert lines[-2:] == ["  where x is the int 3", "  hint: write 5"]
    error.relocate(None)
    assert str(error) == "f: argument 'x' got 3; it takes 4\n  where x is the int 3\n  hint: write 5"


def test_internal_frames_leave_a_traceback(monkeypatch):
    def frames(error):
        entry, files = shown_traceback(error), []
        while entry is not None:
            files.append(entry.tb_frame.f_code.co_filename)
            entry = entry.tb_next
        return files

    with pytest.raises(ShapeError) as caught:
        mycelia_reshape((2, 2))
    assert set(frames(caught.value)) == {__file__}
    monkeypatch.setenv("MYCELIA_TRACEBACK", "full")
    assert len(set(frames(caught.value))) > 1


def mycelia_reshape(shape):
    return ms.ops.reshape(ms.Tensor([1.0]), shape)
