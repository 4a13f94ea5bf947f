"""Errors say the user's line, the variable, the two types, and what to write instead."""

from __future__ import annotations

from typing import Any

import pytest
from tests.frontend.staging import Staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import GraphError, GraphTypeError

_X = Tensor([1.0, 2.0])


def _refused(fn: Any, *args: Any, kind: type[Exception] = GraphTypeError) -> str:
    with pytest.raises(kind) as caught:
        Staged(fn, *(args or (_X,)))
    text = str(caught.value)
    assert len(text.splitlines()) < 12
    assert "mycelia/frontend" not in text
    return text


def test_shapes_differ() -> None:
    def f(x: Tensor) -> Any:
        if x.sum() > 0:
            y = x
        else:
            y = ops.concat([x, x])
        return y

    text = _refused(f)
    assert "'y' is a Tensor float32[2] if the condition is true and a Tensor float32[4] if it is false" in text
    assert "in f" in text
    assert "if x.sum() > 0:" in text
    assert "hint:" in text


def test_dtypes_differ() -> None:
    def f(x: Tensor) -> Any:
        y = x
        if x.sum() > 0:
            y = x.astype(ms.int32)
        return y

    text = _refused(f)
    assert "'y' is a Tensor int32[2]" in text
    assert "float32[2]" in text
    assert ".astype(ms.int32)" in text


def test_a_number_against_a_vector() -> None:
    def f(x: Tensor) -> Any:
        y = 0.0
        if x.sum() > 0:
            y = x
        return y

    text = _refused(f)
    assert "the float 0.0 if it is false" in text
    assert "ops.full((2,), 0.0, dtype=ms.float32)" in text


def test_a_tensor_against_none() -> None:
    def f(x: Tensor) -> Any:
        if x.sum() > 0:
            return x
        return None

    text = _refused(f)
    assert "the returned value is a Tensor float32[2]" in text
    assert "None" in text


def test_a_function_that_may_end_without_a_value() -> None:
    def f(x: Tensor) -> Any:
        for i in range(3):
            if x.sum() > i:
                return x

    text = _refused(f)
    assert "the returned value is None" in text
    assert "a Tensor float32[2]" in text


def test_strings_differ() -> None:
    def f(x: Tensor) -> Any:
        mode = "train"
        if x.sum() > 0:
            mode = "eval"
        return x if mode == "train" else -x

    assert "'mode' is the str 'eval' if the condition is true and the str 'train' if it is false" in _refused(f)


def test_structures_differ() -> None:
    def f(x: Tensor) -> Any:
        y: Any = (x, x)
        if x.sum() > 0:
            y = (x,)
        return y

    assert "'y' is a tuple of length 1 if the condition is true and a tuple of length 2 if it is false" in _refused(f)


def test_a_variable_of_one_branch() -> None:
    def f(x: Tensor) -> Any:
        if x.sum() > 0:
            y = x * 2
        z = x + 1
        return y + z

    text = _refused(f, kind=GraphError)
    line = f.__code__.co_firstlineno + 1
    assert f"'y' is defined only if the condition at line {line} is true" in text
    assert "return y + z" in text
    with pytest.raises(UnboundLocalError):
        Staged(f, _X)


def test_a_variable_of_the_other_branch_in_a_closure() -> None:
    def f(x: Tensor) -> Any:
        if x.sum() > 0:
            pass
        else:
            y = x * 2
        return [y + v for v in x]

    assert "is defined only if the condition" in _refused(f, kind=GraphError)


def test_a_variable_that_a_loop_may_never_bind() -> None:
    def f(x: Tensor) -> Any:
        while x.sum() < 10:
            x = x + 1
            y = x
        return y

    text = _refused(f, kind=GraphError)
    assert "'y' has no value if the loop ends before binding it" in text
    assert "before the loop" in text


def test_a_dtype_that_changes_in_a_loop() -> None:
    def f(x: Tensor) -> Any:
        while x.sum() < 10:
            x = x.astype(ms.float64) * 2
        return x

    text = _refused(f)
    assert "'x' is a Tensor float32[2] before the loop and a Tensor float64[2] after one round" in text
    assert "while x.sum() < 10:" in text


def test_a_shape_that_changes_in_a_loop() -> None:
    def f(n: Tensor) -> Any:
        x = ops.ones((1,), ms.float32)
        for _ in range(n):
            x = ops.concat([x, x])
        return x

    text = _refused(f, Tensor(3))
    assert "'x' is a Tensor float32[1] before the loop and a Tensor float32[2] after one round" in text
    assert "for _ in range(n):" in text


def test_a_conditional_expression() -> None:
    def f(x: Tensor) -> Any:
        return x if x.sum() > 0 else "nothing"

    text = _refused(f)
    assert "conditional expression: the value is a Tensor float32[2]" in text
    assert "the str 'nothing'" in text


def test_an_integer_that_does_not_fit() -> None:
    def f(x: Tensor) -> Any:
        y = x.sum().astype(ms.int8)
        if x.sum() > 0:
            y = 300
        return y

    assert "300 does not fit int8" in _refused(f)


def test_comprehensions_of_unknown_length() -> None:
    def f(x: Tensor) -> Any:
        return [v for v in x if v > 1]

    text = _refused(f, kind=GraphError)
    assert "which elements are kept depends on a tensor" in text
    assert "return [v for v in x if v > 1]" in text


def test_yield_under_a_tensor() -> None:
    def f(x: Tensor) -> Any:
        def rows() -> Any:
            for i in range(2):
                if x.sum() > i:
                    yield x

        return list(rows())

    assert "'yield' under a condition" in _refused(f, kind=GraphError)


def test_a_range_of_unknown_length_as_a_value() -> None:
    def f(n: Tensor) -> Any:
        return list(range(n))

    assert "the length of this range is only known when the graph runs" in _refused(f, Tensor(3), kind=GraphError)

    def g(n: Tensor) -> Any:
        for i in range(n * 0.5):
            n = n + i
        return n

    with pytest.raises(TypeError, match="one integer"):
        Staged(g, Tensor(3))


def test_a_value_that_python_needs() -> None:
    def f(x: Tensor) -> Any:
        return float(x.sum())

    assert "only known when the graph runs" in _refused(f, kind=GraphError)


def test_raise_that_cannot_be_caught() -> None:
    def f(x: Tensor) -> Any:
        try:
            if x.sum() > 0:
                raise ValueError("too large")
        except ValueError:
            return x
        return -x

    assert "cannot be caught inside the graph" in _refused(f, kind=GraphError)
