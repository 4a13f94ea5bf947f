"""Choices by a condition: promotion, methods, bounds, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError

C = np.array([True, False, True])


def test_where():
    a, b = np.array([1, 2, 3]), np.array([[10], [20]])
    np.testing.assert_array_equal(ops.where(Tensor(C), Tensor(a), Tensor(b)).asnumpy(), np.where(C, a, b))
    assert ops.where(Tensor(C), 1, 2).tolist() == [1, 2, 1]
    made = ops.select(Tensor(C), Tensor(a), 0.5)
    assert made.dtype is ms.float32
    assert made.tolist() == [1.0, 0.5, 3.0]
    assert ops.where(Tensor([2, 0, 1]), 1, 0).tolist() == [1, 0, 1], "anything but zero is true"
    assert [t.tolist() for t in ops.where(Tensor([[0, 3], [4, 0]]))] == [[0, 1], [1, 0]]
    with pytest.raises(ArgumentTypeError, match="where: argument 'other' got None"):
        ops.where(Tensor(C), 1)
    with pytest.raises(ShapeError, match="broadcasts"):
        ops.where(Tensor(C), Tensor([1, 2]), 0)


def test_methods_of_a_tensor():
    x = Tensor([[1, 2], [3, 4]])
    assert x.where(x > 2, 0).tolist() == [[0, 0], [3, 4]]
    assert x.select(x > 2, Tensor([[9, 9], [9, 9]])).tolist() == [[9, 9], [3, 4]]
    assert x.select(0, 1).tolist() == [3, 4]
    assert x.select(dim=1, index=0).tolist() == [1, 3]
    assert x.select(condition=x > 2, y=0).tolist() == [[0, 0], [3, 4]]
    with pytest.raises(ArgumentTypeError, match=r"Tensor.select.*\(condition, y\) or \(dim, index\)"):
        x.select(0)


def test_masked_fill():
    x, m = Tensor([1.0, 2.0]), Tensor([True, False])
    assert ops.masked_fill(x, m, 9).tolist() == [9.0, 2.0]
    assert x.masked_fill(m, Tensor([7.0])).tolist() == [7.0, 2.0]
    assert ops.masked_fill(x, Tensor([[True], [False]]), -np.inf).shape == (2, 2)
    assert ops.masked_fill(Tensor([1.0], ms.float16), Tensor([True]), 3.0).dtype is ms.float16
    y = Tensor([1, 2])
    assert y.masked_fill_(m, 5) is y
    assert y.tolist() == [5, 2]
    with pytest.raises(DTypeError, match="argument 'mask' got dtype Int64; it takes Bool"):
        ops.masked_fill(x, Tensor([1, 0]), 0)
    with pytest.raises(
        DTypeError, match=r"argument 'value' got 5.5; it takes a value that fits the tensor's dtype Int64"
    ):
        ops.masked_fill(y, m, 5.5)
    with pytest.raises(ShapeError, match=r"argument 'value' got shape \(2,\); it takes one element"):
        ops.masked_fill(x, m, x)


def test_gradient_of_masked_fill_and_where():
    m = Tensor([True, False])
    x, v = ms.grad(lambda x, v: ops.masked_fill(x, m, v).sum(), (0, 1))(Tensor([1.0, 2.0]), Tensor(3.0))
    assert (x.tolist(), v.tolist()) == ([0.0, 1.0], 1.0)
    broken = ms.grad(lambda x: ops.where(x > 0, ops.log(ops.where(x > 0, x, 1.0)), 0.0).sum())(Tensor([-1.0, 2.0]))
    assert broken.tolist() == [0.0, 0.5]


@pytest.mark.parametrize(("low", "high"), [(2, 3), (None, 3), (2, None), (2.5, 3), (6, 3)])
@pytest.mark.torch
def test_clamp_against_torch(low, high):
    torch = pytest.importorskip("torch")
    x = np.array([1.0, 2.0, 2.75, 3.0, 9.0])
    t = torch.tensor(x, requires_grad=True)
    want = torch.clamp(t, low, high)
    want.sum().backward()
    np.testing.assert_array_equal(ops.clamp(Tensor(x), low, high).asnumpy(), want.detach().numpy())
    np.testing.assert_array_equal(ms.grad(lambda v: ops.clamp(v, low, high).sum())(Tensor(x)).asnumpy(), t.grad.numpy())


def test_clamp():
    assert ops.clamp(Tensor([1, 5]), 2, 3).tolist() == [2, 3]
    assert ops.clamp(Tensor([1, 5]), 2.5, 3).dtype is ms.float32
    assert Tensor([1, 5]).clip(max=3).tolist() == [1, 3]
    assert ops.clamp(Tensor([1, 5]), Tensor([2, 6])).tolist() == [2, 6]
    assert np.isnan(ops.clamp(Tensor([np.nan]), 0, 1).asnumpy()[0])
    x = Tensor([1.0, 5.0])
    assert x.clamp_(2, 3) is x
    with pytest.raises(ArgumentValueError, match="clamp: argument 'min' got None, as 'max' did"):
        ops.clamp(x)
    low, high = ms.grad(lambda a, b: ops.clamp(Tensor([0.0, 2.0, 9.0]), a, b).sum(), (0, 1))(Tensor(1.0), Tensor(3.0))
    assert (low.item(), high.item()) == (1.0, 1.0)


def test_clip_by_value():
    made = ops.clip_by_value(Tensor([1, 5]), 2.5, 3.5)
    assert (made.tolist(), made.dtype) == ([2, 3], ms.int64)
    many = ops.clip_by_value([Tensor([1.0]), Tensor([9.0])], clip_value_max=5)
    assert [t.tolist() for t in many] == [[1.0], [5.0]]
    with pytest.raises(ArgumentValueError, match="'clip_value_min' got None"):
        ops.clip_by_value(Tensor([1.0]))


def test_isin():
    assert ops.isin(Tensor([[1, 2], [3, 4]]), [2, 4]).tolist() == [[False, True], [False, True]]
    assert Tensor([1.0, 2.0]).isin(Tensor([2]), invert=True).tolist() == [True, False]
