"""Masks and reversal of sequences of different lengths."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentValueError, DTypeError, GraphError, OutOfRangeError, ShapeError

X = np.arange(24.0).reshape(2, 3, 4)


def reversed_rows(x, lengths, seq, batch):
    out = np.moveaxis(x, (batch, seq), (0, 1)).copy()
    for row, n in zip(out, lengths, strict=True):
        row[:n] = row[:n][::-1].copy()
    return np.moveaxis(out, (0, 1), (batch, seq))


@pytest.mark.parametrize(
    ("lengths", "seq", "batch"), [([3, 0], 1, 0), ([1, 2, 2], 0, 1), ([2, 1, 0, 3], 1, 2), ([4, 2], -1, 0)]
)
def test_reverse_sequence(lengths, seq, batch):
    want = reversed_rows(X, lengths, seq % 3, batch)
    np.testing.assert_array_equal(ops.reverse_sequence(Tensor(X), Tensor(lengths), seq, batch).asnumpy(), want)
    np.testing.assert_array_equal(Tensor(X).reverse_sequence(Tensor(lengths, ms.int32), seq, batch).asnumpy(), want)
    (got,) = run_staged(lambda x, n: ops.reverse_sequence(x, n, seq, batch), X, np.array(lengths))
    np.testing.assert_array_equal(got, want)


def test_the_gradient_is_reversed_too():
    weights = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    got = ms.grad(lambda x: (ops.reverse_sequence(x, Tensor([2, 3]), 1) * weights).sum())(
        Tensor(np.zeros((2, 3), np.float32))
    )
    assert got.asnumpy().tolist() == [[2.0, 1.0, 3.0], [6.0, 5.0, 4.0]]


def test_sequence_mask():
    assert ops.sequence_mask(Tensor([0, 2]), 2).asnumpy().tolist() == [[False, False], [True, True]]
    assert ops.sequence_mask(Tensor([[1], [3]])).shape == (2, 1, 3)
    assert ops.sequence_mask(Tensor(np.zeros(0, int))).shape == (0, 0)
    (got,) = run_staged(lambda n: ops.sequence_mask(n, 3), np.array([1, 2]))
    assert got.tolist() == [[True, False, False], [True, True, False]]


def test_refusals():
    x = Tensor(X)
    with pytest.raises(ShapeError, match="one length for each of the 2 sequences"):
        ops.reverse_sequence(x, Tensor([1, 2, 3]), 1)
    with pytest.raises(OutOfRangeError, match="lengths of at most 3"):
        ops.reverse_sequence(x, Tensor([1, 4]), 1)
    with pytest.raises(ArgumentValueError, match="other than 'batch_dim'"):
        ops.reverse_sequence(x, Tensor([1, 4]), 0, 0)
    with pytest.raises(DTypeError, match="integers"):
        ops.reverse_sequence(x, Tensor([1.0, 2.0]), 1)
    with pytest.raises(ArgumentValueError, match="maxlen"):
        ops.sequence_mask(Tensor([1]), -1)
    with pytest.raises(GraphError, match="without maxlen"):
        run_staged(ops.sequence_mask, np.array([1]))
