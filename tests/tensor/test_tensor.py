"""Tensor and Parameter: creation, conversion, printing, what they refuse."""

from __future__ import annotations

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

import mycelia as ms
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (3, ms.int64), (3.0, ms.float32), (True, ms.bool_), (2j, ms.complex128),
        ([1 + 2j], ms.complex128), ([1, 2], ms.int64), ([1.0, 2], ms.float32),
        ([[True], [False]], ms.bool_), ([], ms.float32), (np.array([1.0]), ms.float64), (np.float16(1), ms.float16),
        (np.arange(3, dtype=np.uint8), ms.uint8), (range(3), ms.int64), ([np.float64(1.0)], ms.float64),
        (np.zeros(2, ml_dtypes.bfloat16), ms.bfloat16), (np.array([1, 2], dtype=">i4"), ms.int32),
    ],
)  # fmt: skip
def test_default_dtypes(data, dtype):
    assert ms.Tensor(data).dtype is dtype


@pytest.mark.parametrize("dtype", dt.ALL, ids=str)
def test_explicit_dtypes(dtype):
    x = ms.Tensor([[0, 1], [1, 0]], dtype)
    assert x.dtype is dtype
    assert x.asnumpy().dtype == dtype.np
    assert x.itemsize == dtype.itemsize
    assert (x.shape, x.ndim, x.size, x.nbytes) == ((2, 2), 2, 4, 4 * dtype.itemsize)


def test_data_are_copied_in_and_out():
    array = np.zeros(1024, np.float32)
    x = ms.Tensor(array)
    array[0] = 5
    assert float(x[0]) == 0
    out = x.asnumpy()
    out[0] = 7
    assert float(x[0]) == 0


def test_a_tensor_of_tensors():
    np.testing.assert_array_equal(ms.Tensor([ms.Tensor(1), ms.Tensor(2)]).asnumpy(), [1, 2])
    x = ms.Tensor([1.5, 2.5])
    assert ms.Tensor(x, ms.int32).asnumpy().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([[1, 2], [3]], ArgumentValueError, "ragged"),
        ("text", ArgumentTypeError, "a string"),
        (["a"], ArgumentTypeError, "elements of type"),
        (object(), ArgumentTypeError, "object"),
        (None, ArgumentValueError, "both 'shape' and 'init'"),
        (np.array(["x"]), ArgumentTypeError, "elements of type"),
        (2**70, ArgumentValueError, "fits Int64"),
    ],
)
def test_bad_data(data, error, words):
    with pytest.raises(error, match=words):
        ms.Tensor(data)


def test_bad_dtype():
    with pytest.raises(ArgumentTypeError, match="a dtype such as"):
        ms.Tensor([1], 5)


def test_text():
    assert repr(ms.Tensor([1.0, 2.0])) == "Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])"
    assert repr(ms.Tensor(True)) == "Tensor(shape=[], dtype=Bool, value=  True)" or "Bool" in repr(ms.Tensor(True))
    assert str(ms.Tensor([1.0, 2.0])) == "[1. 2.]"
    assert str(ms.Tensor([[1], [2]])) == "[[1]\n [2]]"
    assert str(ms.Tensor([0.5], ms.bfloat16)) == "[0.5]"
    assert f"{ms.Tensor(1.23456):.2f}" == "1.23"
    assert repr(ms.Tensor(np.zeros((0, 3)))).startswith("Tensor(shape=[0, 3], dtype=Float64")


def test_python_values():
    assert ms.Tensor(3).item() == 3
    assert ms.Tensor([[4.5]]).item() == 4.5
    assert ms.Tensor([[1, 2], [3, 4]]).item(1, 0) == 3
    assert ms.Tensor([[1, 2]]).tolist() == [[1, 2]]
    assert int(ms.Tensor(3.7)) == 3
    assert float(ms.Tensor([2])) == 2.0
    assert bool(ms.Tensor(0)) is False
    assert complex(ms.Tensor(1j)) == 1j
    assert [10, 20, 30][ms.Tensor(1)] == 20
    assert len(ms.Tensor([1, 2, 3])) == 3
    assert [int(x) for x in ms.Tensor([1, 2])] == [1, 2]
    np.testing.assert_array_equal(np.asarray(ms.Tensor([1, 2])), [1, 2])


def test_values_that_need_one_element():
    x = ms.Tensor([1, 2])
    with pytest.raises(ArgumentValueError, match=r"exactly one element[\s\S]*any\(\)"):
        bool(x)
    with pytest.raises(ArgumentValueError, match="exactly one element"):
        x.item()
    with pytest.raises(ArgumentTypeError, match="an integer to be an index"):
        [1, 2][ms.Tensor(1.0)]
    with pytest.raises(ArgumentTypeError, match="zero-dimensional"):
        len(ms.Tensor(1))
    with pytest.raises(ArgumentTypeError, match="zero-dimensional"):
        iter(ms.Tensor(1)).__next__()


@pytest.mark.parametrize("make", [lambda: ms.Tensor([1.0]), lambda: ms.Parameter(ms.Tensor([1.0]))])
def test_pickling_is_refused_with_the_reason(make):
    with pytest.raises(ArgumentTypeError, match=r"unpickling runs code[\s\S]*save_checkpoint"):
        pickle.dumps(make())


def test_copies():
    x = ms.Tensor([1.0, 2.0])
    y, z = copy.copy(x), copy.deepcopy(x)
    x[0] = 9.0
    assert float(y[0]) == float(z[0]) == 1.0


def test_parameter():
    p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    assert repr(p) == "Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=True)"
    assert isinstance(p, ms.Tensor)
    p.set_data(ms.Tensor([3.0, 4.0]))
    np.testing.assert_array_equal(p.asnumpy(), [3, 4])
    p.set_data(np.array([5, 6]))
    assert p.dtype is ms.float32
    with pytest.raises(ShapeError, match=r"got shape \(3,\); it takes shape \(2,\)"):
        p.set_data(ms.Tensor([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(p.asnumpy(), [5, 6])
    q = p.clone("zeros")
    assert (q.shape, q.name) == ((2,), "w")
    assert not q.asnumpy().any()
    with pytest.raises(ArgumentTypeError, match="True or False"):
        p.requires_grad = 1
    with pytest.raises(ArgumentTypeError, match="'name' got int"):
        ms.Parameter(ms.Tensor(1.0), name=3)
    with pytest.raises(ArgumentValueError, match='"same", "zeros" or "ones"'):
        p.clone("other")
    for data in (2.0, [1, 2], np.zeros(3)):
        assert isinstance(ms.Parameter(data), ms.Parameter)


def test_arithmetic_gives_tensors_not_parameters():
    p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    assert type(p + 1) is ms.Tensor
    assert type(p.value()) is ms.Tensor
    assert type(p.data) is ms.Tensor


def test_in_place_operators_rebind():
    x = ms.Tensor([1.0, 2.0])
    y = x
    x += 1
    np.testing.assert_array_equal(y.asnumpy(), [1, 2])
    np.testing.assert_array_equal(x.asnumpy(), [2, 3])
