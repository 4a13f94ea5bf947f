"""Printing and errors happen when the graph runs, where and as often as eagerly."""

from __future__ import annotations

import io
import sys
from typing import Any

import jax
import pytest
from tests.frontend.staging import Staged, run

from mycelia import Tensor
from mycelia.compiler.executable import Executable
from mycelia.frontend.effects import can_raise, raise_pending


def _printed(capsys: Any, staged: Staged, *args: Tensor) -> str:
    capsys.readouterr()
    run(staged.graph, [a._value for a in args])
    jax.effects_barrier()
    return capsys.readouterr().out


def test_print_follows_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    def f(n: Tensor) -> Any:
        print("start", n, 3, sep="-", end=";\n")
        for i in range(n):
            if i > 1:
                print("big", i)
            print("round", i, "of", [1])
        return n

    staged = Staged(f, Tensor(3))
    assert capsys.readouterr().out == ""  # nothing is printed while staging
    for n in (0, 1, 4):
        ours = _printed(capsys, staged, Tensor(n))
        f(n)
        assert ours == capsys.readouterr().out


def test_print_in_a_compiled_graph_keeps_its_order(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Tensor) -> Any:
        while x < 10:
            print("x", x)
            x = x * 2
            if x > 5:
                print("large")
        print("done", x)
        return x

    program = Executable(Staged(f, Tensor(1.0)).graph)
    for value in (1.0, 7.0, 20.0):
        capsys.readouterr()
        program([Tensor(value)._value])
        jax.effects_barrier()
        ours = capsys.readouterr().out
        f(Tensor(value))
        assert ours == capsys.readouterr().out


def test_print_to_another_file_happens_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    file = io.StringIO()

    def f(x: Tensor) -> Any:
        print("shape", x.shape, file=file)
        print("err", x, file=sys.stderr)
        return x

    staged = Staged(f, Tensor(1.0))
    assert file.getvalue() == "shape ()\n"
    run(staged.graph, [Tensor(2.0)._value])
    jax.effects_barrier()
    assert capsys.readouterr().err == "err 2.0\n"


def _outcome(staged: Staged, *args: Tensor) -> Any:
    result = staged(*args)
    raise_pending()
    return result


def test_assert_on_a_tensor() -> None:
    def f(x: Tensor) -> Any:
        assert x.sum() > 0, f"{'x'} must be positive"
        assert x.shape == (2,)
        return x * 2

    staged = Staged(f, Tensor([1.0, 2.0]))
    assert can_raise(staged.graph)
    assert _outcome(staged, Tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    with pytest.raises(AssertionError, match="x must be positive") as caught:
        _outcome(staged, Tensor([-1.0, -2.0]))
    assert "assert x.sum() > 0" in caught.value.__notes__[0]
    assert _outcome(staged, Tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    raise_pending()  # nothing is left


class _OwnError(Exception):
    pass


def test_raise_under_a_tensor() -> None:
    def f(x: Tensor, n: Tensor) -> Any:
        if x.sum() < 0:
            raise _OwnError("negative", x.shape) from ValueError("cause")
        for i in range(n):
            if x[0] > 10:
                if i is not None:
                    raise OverflowError
                x = None
            elif x[0] > 5:
                return x - i
            x = x * 2
        return x

    def g(x: Tensor) -> Any:
        if x.sum() > 0:
            raise KeyError("up")
        else:
            raise KeyError("down")

    staged = Staged(f, Tensor([1.0, 2.0]), Tensor(2))
    for x in ([1.0, 2.0], [-1.0, -2.0], [20.0, 0.0], [3.0, 0.0]):
        for n in (0, 1, 3, 6):
            try:
                expected: Any = f(Tensor(x), n).tolist()
            except (_OwnError, OverflowError) as error:
                expected = error
            if isinstance(expected, Exception):
                with pytest.raises(type(expected)) as caught:
                    _outcome(staged, Tensor(x), Tensor(n))
                assert caught.value.args == expected.args
                assert repr(caught.value.__cause__) == repr(expected.__cause__)
                assert "raise " in caught.value.__notes__[0]
            else:
                assert _outcome(staged, Tensor(x), Tensor(n)).tolist() == expected
    both = Staged(g, Tensor([1.0, 2.0]))
    with pytest.raises(KeyError, match="up"):
        _outcome(both, Tensor([1.0, 2.0]))
    with pytest.raises(KeyError, match="down"):
        _outcome(both, Tensor([-1.0, 2.0]) * 0)


def test_errors_on_python_conditions_are_raised_while_staging() -> None:
    def f(x: Tensor, flag: bool) -> Any:
        if x.sum() > 0:
            x = x + 1
        if flag:
            raise _OwnError("flag")
        return x

    with pytest.raises(_OwnError, match="flag"):
        Staged(f, Tensor([1.0]), True)
    assert not can_raise(Staged(f, Tensor([1.0]), False).graph)
