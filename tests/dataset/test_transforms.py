"""Transforms of arrays: what the recorded cases do not say."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

import mycelia as ms
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    OutOfRangeError,
    ShapeError,
)
from mycelia.dataset import transforms as T


def test_bfloat16():
    made = T.TypeCast(ms.bfloat16)(np.array([1.0, 2.5]))
    assert made.dtype == ml_dtypes.bfloat16
    assert made.astype(np.float32).tolist() == [1.0, 2.5]


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), ms.float32])
def test_names_of_dtypes(dtype):
    assert T.TypeCast(dtype)([1]).dtype == np.float32


def test_tensors_and_images_are_taken():
    from PIL import Image

    assert T.TypeCast(ms.int32)(ms.Tensor([1.5])).tolist() == [1]
    assert T.Fill(3)(Image.new("L", (2, 1))).tolist() == [[3, 3]]


@given(arrays(np.int64, st.integers(1, 30), elements=st.integers(-5, 5)))
def test_unique_is_numpys_in_order_of_appearance(values):
    distinct, places, counts = T.Unique()(values)
    assert distinct[places].tolist() == values.tolist()
    assert sorted(distinct) == np.unique(values).tolist()
    firsts = [values.tolist().index(v) for v in distinct]
    assert firsts == sorted(firsts)
    assert counts.tolist() == [(values == v).sum() for v in distinct]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.floats(0, 1))
def test_one_hot_rows_add_up_to_one(labels, rate):
    made = T.OneHot(7, rate)(np.array(labels))
    np.testing.assert_allclose(made.sum(-1), 1)
    if rate < 0.8:
        assert made.reshape(-1, 7).argmax(-1).tolist() == labels


@pytest.mark.parametrize(
    "index", [0, -1, [0, 2], [-1, 1, 1], slice(1, 3), slice(None, None, 2), slice(-2, None), None, ...]
)
def test_slice_is_numpys(index):
    array = np.arange(12).reshape(3, 4)
    wanted = array[[index] if isinstance(index, int) else slice(None) if index is None else index]
    assert T.Slice(index)(array).tolist() == wanted.tolist()
    assert T.Slice(..., index if index is not ... else None)(array.T).tolist() == wanted.T.tolist()


def test_concatenate_on_other_axes():
    assert T.Concatenate(1)(np.ones((2, 2)), np.zeros((2, 1))).tolist() == [[1, 1, 0]] * 2
    assert T.Concatenate()(np.array(["a"]), np.array(["bcd"])).tolist() == ["a", "bcd"]


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: T.TypeCast("no")(1), ArgumentTypeError, "got 'no'"),
        (lambda: T.TypeCast(3)(1), ArgumentTypeError, "'data_type' got 3"),
        (lambda: T.TypeCast("int32")(None), ArgumentTypeError, "'input' got None"),
        (lambda: T.TypeCast("int32")([[1], [1, 2]]), ArgumentTypeError, "a ragged list"),
        (lambda: T.TypeCast("int32")(object()), ArgumentTypeError, "object of objects"),
        (lambda: T.TypeCast("int32")(1, 2), ArgumentTypeError, "2 columns; it takes one column"),
        (lambda: T.TypeCast("int32")("7"), DTypeError, "text"),
        (lambda: T.OneHot(3)(1.5), DTypeError, "float64; it takes integers"),
        (lambda: T.OneHot(3)(-1), OutOfRangeError, "class -1; it takes classes from 0 to 2"),
        (lambda: T.OneHot(True), ArgumentTypeError, "'num_classes' got True"),
        (lambda: T.PadEnd(3), ArgumentTypeError, "'pad_shape' got 3"),
        (lambda: T.PadEnd([0]), ArgumentValueError, "'pad_shape' got 0"),
        (lambda: T.PadEnd([3], [1]), ArgumentTypeError, "'pad_value'"),
        (lambda: T.PadEnd([3])([[1]]), ShapeError, r"shape \(1, 1\); it takes 1 axes"),
        (lambda: T.PadEnd([3], "x")([1]), DTypeError, "'x' for an array of int64"),
        (lambda: T.Fill([1]), ArgumentTypeError, "'fill_value'"),
        (lambda: T.Fill("x")([1]), DTypeError, "text with text"),
        (lambda: T.Mask(2, 1), ArgumentTypeError, "'operator' got 2"),
        (lambda: T.Mask(T.Relational.EQ, [1]), ArgumentTypeError, "'constant'"),
        (lambda: T.Mask(T.Relational.EQ, "x")([1]), DTypeError, "'constant'"),
        (T.Slice, ArgumentTypeError, "'slices' got nothing"),
        (lambda: T.Slice(..., ...), ArgumentTypeError, r"two of \.\.\."),
        (lambda: T.Slice(1.5), ArgumentTypeError, "'slices' got 1.5"),
        (lambda: T.Slice(1, 1)([1, 2]), ShapeError, "at least 2 axes"),
        (lambda: T.Slice(2)([1, 2]), OutOfRangeError, "2 on axis 0; it takes -2 to 1"),
        (lambda: T.Concatenate(1.5), ArgumentTypeError, "'axis' got 1.5"),
        (lambda: T.Concatenate()([1], [1.5]), DTypeError, "int64 and float64"),
        (lambda: T.Concatenate(1)(np.ones((2, 2)), np.ones((3, 2))), ShapeError, r"\(2, 2\), \(3, 2\); .* axis 1 only"),
        (T.Concatenate(), ArgumentTypeError, "no columns"),
        (lambda: T.Compose([]), ArgumentValueError, "an empty list"),
        (lambda: T.Compose(len), ArgumentTypeError, "a list of functions"),
        (lambda: T.RandomChoice([T.Duplicate]), ArgumentTypeError, "'transforms' got <class"),
        (lambda: T.RandomApply([len], 2), ArgumentValueError, "'prob' got 2; it takes a number from 0 to 1"),
        (lambda: T.RandomApply([len], "x"), ArgumentTypeError, "'prob' got 'x'"),
    ],
)  # fmt: skip
def test_refusals(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_probabilities():
    apply = T.RandomApply([lambda x: x + 1, lambda x: x * 10], 0.3)
    found = [int(apply(np.array(0))) for _ in range(2000)]
    assert set(found) == {0, 10}
    assert abs(found.count(10) / 2000 - 0.3) < 0.05
    choice = T.RandomChoice([lambda x: x + 1, lambda x: x + 2, lambda x: x + 3])
    counts = np.bincount([int(choice(np.array(0))) for _ in range(1500)], minlength=4)
    assert counts[0] == 0
    assert (counts[1:] > 400).all()
    order = T.RandomOrder([lambda x: x + "a", lambda x: x + "b", lambda x: x + "c"])
    assert len({order("") for _ in range(200)}) == 6


def test_random_apply_of_several_columns():
    apply = T.RandomApply([lambda x, y: (y, x)], 0.5)
    assert {tuple(apply(1, 2)) for _ in range(50)} == {(1, 2), (2, 1)}


def test_what_a_combination_is():
    assert T.Compose([T.Fill(1), T.TypeCast("int8")]).batches
    assert not T.Compose([T.Fill(1), T.PadEnd([3])]).batches
    assert not T.Compose([T.Fill(1)]).random
    assert T.Compose([T.RandomApply([T.Fill(1)])]).random
    assert T.Compose([abs]).foreign
    assert not T.Compose([T.Fill(1)]).foreign


def test_old_module_names():
    from mycelia.dataset.transforms import c_transforms, py_transforms, transforms

    assert c_transforms.TypeCast is T.TypeCast
    assert transforms.Compose is py_transforms.Compose is T.Compose
    assert py_transforms.OneHotOp is T.OneHot
    assert set(c_transforms.__all__) <= set(T.__all__)
