"""Layouts and strategies, as data."""

from __future__ import annotations

import pytest

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.core.layout import Layout
from mycelia.core.strategy import axis_names, check_strategy, layouts_of


def test_names_say_what_cuts_an_axis():
    layout = Layout((2, 4, 3), ("dp", "mp", "sp"))
    made = layout("dp", "None", ("sp", "mp"))
    assert made.cuts == (("dp",), (), ("sp", "mp"))
    assert [made.parts(i) for i in range(4)] == [2, 1, 12, 1]
    assert layout("dp") == layout(("dp",)) != layout("mp")
    assert hash(layout("dp")) == hash(layout("dp"))
    assert repr(made) == "Layout(dp=2, mp=4, sp=3)(dp, None, sp+mp)"


def test_all_axes_that_cannot_be_shared_are_told():
    layout = Layout((2, 4), ("dp", "mp"))("dp", "mp")
    layout.check((4, 8), "f", "x")
    with pytest.raises(ShapeError, match=r"axis 0 of x has 3 .* 2 devices along 'dp'.*axis 1 of x has 6 .* 4 devices"):
        layout.check((3, 6), "f", "x")
    with pytest.raises(ShapeError, match="x has 1 axes, its layout 2"):
        layout.check((4,), "f", "x")


@pytest.mark.parametrize(
    ("matrix", "names", "ranks", "error", "words"),
    [
        ((2, 2.0), ("a", "b"), None, ArgumentTypeError, "tuple of int"),
        ((2, 0), ("a", "b"), None, ArgumentValueError, "positive numbers"),
        ((2, 2), ("a",), None, ArgumentValueError, "2 different names"),
        ((2, 2), ("a", "a"), None, ArgumentValueError, "2 different names"),
        ((2, 2), ("a", "None"), None, ArgumentValueError, "none of them 'None'"),
        ((2, 2), ("a", "b"), (0, 1, 2), ArgumentValueError, "4 different ranks"),
        ((2, 2), ("a", "b"), (0, 1, 2, 2), ArgumentValueError, "4 different ranks"),
    ],
)
def test_wrong_devices(matrix, names, ranks, error, words):
    with pytest.raises(error, match=words):
        Layout(matrix, names, ranks)


def test_wrong_names():
    layout = Layout((2, 2), ("a", "b"))
    with pytest.raises(ArgumentValueError, match=r"tensor_map\[1\].*'c'.*'a', 'b' or 'None'"):
        layout("a", "c")
    with pytest.raises(ArgumentValueError, match="each name once"):
        layout("a", ("b", "a"))


def test_strategies_of_a_product_share_the_axis_they_sum_over():
    names = axis_names("MatMul", {"transpose_b": True}, (2, 2))
    first, second = layouts_of("MatMul", "in_strategy", ((2, 2), (1, 2)), 8, names)
    assert first.device_matrix == second.device_matrix == (2, 2, 2)
    assert first.cuts == (("i",), ("k",))
    assert second.cuts == ((), ("k",))


def test_strategies_without_names_stand_alone():
    (one,) = layouts_of("shard", "in_strategy", ((1, 4),), 8)
    assert one.device_matrix == (4, 2)
    assert one.cuts == ((), ("a1",))
    assert layouts_of("shard", "in_strategy", (None, (1,)), 2)[0] is None


@pytest.mark.parametrize(
    ("strategies", "words"),
    [
        (((2, 2), (4, 1)), r"axis 0 of in_strategy\[1\] is cut into 4 parts, .* into 2"),
        (((3, 1), (1, 1)), "makes 3 parts, which 8 devices"),
        (((4, 2), (2, 4)), "makes 32 parts, which 8 devices"),
    ],
)
def test_strategies_that_cannot_be(strategies, words):
    with pytest.raises(ArgumentValueError, match=words):
        layouts_of("MatMul", "in_strategy", strategies, 8, axis_names("MatMul", {}, (2, 2)))


@pytest.mark.parametrize(("given", "words"), [(3, "a tuple"), (("ab",), r"in_strategy\[0\]"), (((True,),), "numbers")])
def test_what_is_no_strategy(given, words):
    with pytest.raises(ArgumentTypeError, match=words):
        check_strategy("shard", "in_strategy", given)
