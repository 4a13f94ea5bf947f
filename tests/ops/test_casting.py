"""Conversion between dtypes: forms of a call and values at the edges."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("bool", ms.bool_), ("byte", ms.uint8), ("short", ms.int16), ("int", ms.int32), ("long", ms.int64),
        ("half", ms.float16),
        ("bfloat16", ms.bfloat16), ("float", ms.float32), ("double", ms.float64),
    ],
)  # fmt: skip
def test_methods_named_after_dtypes(name, dtype):
    made = getattr(Tensor([1.7, 0.0]), name)()
    assert made.dtype is dtype


@pytest.mark.parametrize("target", [ms.int32, "int32", np.int32, np.dtype("int32")])
def test_ways_to_name_a_dtype(target):
    x = Tensor([1.7, -1.7])
    for made in (x.astype(target), ops.cast(x, target), x.to(target), x.to(dtype=target), x.type(target)):
        assert made.dtype is ms.int32
        assert made.tolist() == [1, -1]


def test_python_types():
    assert Tensor([1.5]).astype(int).dtype is ms.int64
    assert Tensor([1]).astype(float).dtype is ms.float32
    assert ops.cast(1.5, ms.int32).item() == 1


def test_same_dtype_is_the_same_value():
    x = Tensor([1.0])
    assert ops.cast(x, ms.float32) is x
    assert x.to(ms.float32) is x
    assert x.astype(ms.float32) is not x
    assert x.astype(ms.float32, copy=False) is x
    with pytest.raises(ArgumentTypeError, match="argument 'copy' got 1"):
        x.astype(ms.float32, copy=1)


def test_to():
    x = Tensor([1.5])
    assert x.to("CPU") is x
    assert x.to("CPU", ms.int32).dtype is ms.int32
    assert x.to(Tensor([1])).dtype is ms.int64
    with pytest.raises(ArgumentValueError, match="argument 'device' got 'Quantum'"):
        x.to(device="Quantum")
    with pytest.raises(ArgumentTypeError, match="argument 'dtyp'"):
        x.to(dtyp=ms.int32)


def test_type_and_type_as():
    assert Tensor([1.5]).type() == "Float32"
    assert ops.type_as(Tensor([1.5]), Tensor([1])).dtype is ms.int64
    with pytest.raises(ArgumentTypeError, match="type_as: argument 'other' got int"):
        ops.type_as(Tensor([1.5]), 1)


def test_edges():
    assert Tensor([np.nan, np.inf, -np.inf, 1e30]).astype(ms.int32).tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1]
    assert Tensor([300, -1]).astype(ms.uint8).tolist() == [44, 255]
    assert Tensor([0.0, -0.0, np.nan, 0.5]).astype(ms.bool_).tolist() == [False, False, True, True]
    assert Tensor([1 + 2j]).astype(ms.float32).tolist() == [1.0]
    assert Tensor([0j, 1j]).astype(ms.bool_).tolist() == [False, True]
    with pytest.raises(DTypeError, match="cast: argument 'dtype' got String; it takes a numeric dtype"):
        Tensor([1]).astype(ms.string)
    with pytest.raises(ArgumentTypeError, match="argument 'dtype' got 3"):
        ops.cast(Tensor([1]), 3)


def test_gradients_go_through_floats_and_stop_at_integers():
    g = ms.grad(lambda x: (x.astype(ms.float64) * 2).astype(ms.float16).sum())(Tensor([1.0]))
    assert g.dtype is ms.float32
    assert g.tolist() == [2.0]
    assert ms.grad(lambda x: (x.astype(ms.int32) * 1.5).sum())(Tensor([1.0])).tolist() == [0.0]
