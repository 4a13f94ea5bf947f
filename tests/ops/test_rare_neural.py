"""Operators of networks that are called rarely: fractional pooling, deformable convolution, samplers, rotary pairs."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor
from mycelia.core.errors import ArgumentValueError, GraphError, ShapeError
from mycelia.ops.candidate_sampling import log_uniform_candidate_sampler, uniform_candidate_sampler
from mycelia.ops.ctc import ctc_greedy_decoder
from mycelia.ops.deformable_convolution import deformable_conv2d
from mycelia.ops.fractional_pooling import fractional_max_pool2d, fractional_max_pool3d
from mycelia.ops.matrix_diagonals import matrix_diag, matrix_diag_part, matrix_set_diag
from mycelia.ops.rotary import rotary_position_embedding

RNG = np.random.default_rng(11)


def test_fractional_pooling_as_in_mindspore():
    x = Tensor(np.arange(49.0, dtype=np.float32).reshape(1, 1, 7, 7))
    y, index = fractional_max_pool2d(x, 2, (3, 4), return_indices=True, _random_samples=Tensor([[[0.1, 0.9]]]))
    want = [[8, 9, 11, 13], [22, 23, 25, 27], [43, 44, 46, 48]]
    assert y.tolist() == index.tolist() == [[want]]
    x = Tensor(np.arange(125.0, dtype=np.float32).reshape(1, 1, 5, 5, 5))
    y = fractional_max_pool3d(x, 2, (2, 3, 3), _random_samples=Tensor([[[0.1, 0.5, 0.9]]]))
    assert y.tolist()[0][0][0] == [[31, 32, 34], [41, 42, 44], [46, 47, 49]]


@pytest.mark.torch
def test_fractional_pooling_against_torch():
    torch = pytest.importorskip("torch")
    x, u = RNG.standard_normal((2, 3, 9, 8)), RNG.uniform(0, 1, (2, 3, 2))
    got = fractional_max_pool2d(Tensor(x), (2, 3), (4, 3), return_indices=True, _random_samples=Tensor(u))
    want = torch.nn.functional.fractional_max_pool2d(
        torch.from_numpy(x), (2, 3), (4, 3), return_indices=True, _random_samples=torch.from_numpy(u)
    )
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g.asnumpy(), w.numpy())


def test_fractional_pooling_draws_and_refuses():
    assert fractional_max_pool2d(ms.ops.ones((2, 3, 8, 8)), 2, output_ratio=0.5).shape == (2, 3, 4, 4)
    assert fractional_max_pool2d(ms.ops.ones((3, 8, 8)), 2, 5).shape == (3, 5, 5)
    with pytest.raises(ArgumentValueError, match="one of the two"):
        fractional_max_pool2d(ms.ops.ones((1, 1, 8, 8)), 2)
    with pytest.raises(ShapeError, match="at most size"):
        fractional_max_pool2d(ms.ops.ones((1, 1, 8, 8)), 2, 8)


def test_deformable_convolution_without_offsets_is_a_convolution():
    x, w, b = RNG.standard_normal((2, 4, 6, 5)), RNG.standard_normal((6, 2, 3, 2)), RNG.standard_normal(6)
    plain = ms.ops.conv2d(Tensor(x), Tensor(w), Tensor(b), (2, 1), "pad", (1, 0, 1, 1), 1, 2)
    offsets = np.zeros((2, 18, *plain.shape[2:]))
    offsets[:, 12:] = 1
    got = deformable_conv2d(
        Tensor(x), Tensor(w), Tensor(offsets), (3, 2), (1, 1, 2, 1), (1, 0, 1, 1), Tensor(b), groups=2
    )
    np.testing.assert_allclose(got.asnumpy(), plain.asnumpy(), rtol=1e-10)
    offsets[:, :6] = 1  # along the width: the image one to the left
    moved = deformable_conv2d(
        Tensor(x), Tensor(w), Tensor(offsets), (3, 2), (1, 1, 2, 1), (1, 0, 1, 1), Tensor(b), groups=2
    )
    np.testing.assert_allclose(moved.asnumpy()[..., :-1], plain.asnumpy()[..., 1:], rtol=1e-10)
    with pytest.raises(ArgumentValueError, match="kernel_size"):
        deformable_conv2d(Tensor(x), Tensor(w), Tensor(offsets), 3, 1, (0, 0, 0, 0))


def test_samplers():
    ms.set_seed(2)
    true = Tensor([[1, 3], [0, 2]])
    drawn, of_true, _ = uniform_candidate_sampler(true, 2, 3, True, 4)
    assert len(set(drawn.tolist())) == 3
    assert of_true.tolist() == [[0.75, 0.75], [0.75, 0.75]]
    many, of_true, _ = log_uniform_candidate_sampler(true, 2, 20000, False, 9)
    shares = np.log((np.arange(9) + 2) / (np.arange(9) + 1)) / np.log(10)
    np.testing.assert_allclose(np.bincount(many.asnumpy(), minlength=9) / 20000, shares, atol=0.015)
    np.testing.assert_allclose(of_true.asnumpy(), shares[true.asnumpy()] * 20000, rtol=1e-5)
    drawn, _, expected = log_uniform_candidate_sampler(true, 2, 5, True, 9)
    assert len(set(drawn.tolist())) == 5
    assert (expected.asnumpy() < 1).all()
    with pytest.raises(ArgumentValueError, match="at most range_max"):
        uniform_candidate_sampler(true, 2, 5, True, 4)
    with pytest.raises(ShapeError, match="num_true"):
        uniform_candidate_sampler(true, 1, 2, True, 4)


def test_greedy_decoding_as_in_mindspore():
    x = np.array([[[0.6, 0.4, 0.2], [0.8, 0.6, 0.3]], [[0.0, 0.6, 0.0], [0.5, 0.4, 0.5]]], np.float32)
    positions, labels, shape, score = ctc_greedy_decoder(Tensor(x), Tensor([2, 2]))
    assert positions.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert labels.tolist() == [0, 1, 0]
    assert shape.tolist() == [2, 2]
    np.testing.assert_allclose(score.asnumpy(), [[-1.2], [-1.3]], rtol=1e-6)
    labels = ctc_greedy_decoder(Tensor(x), Tensor([2, 2]), False)[1]
    assert labels.tolist() == [0, 1, 0, 0]
    with pytest.raises(GraphError, match="as many rows as there are labels"):
        ms.jit(lambda x: ctc_greedy_decoder(x, Tensor([2, 2]))[1])(Tensor(x))


def test_rotary_pairs_keep_their_length():
    x = RNG.standard_normal((2, 3, 5, 8))
    angles = RNG.standard_normal((5, 4))
    for mode, spread in ((0, np.tile(angles, 2)), (1, np.repeat(angles, 2, 1))):
        y = rotary_position_embedding(Tensor(x), Tensor(np.cos(spread)), Tensor(np.sin(spread)), mode)
        np.testing.assert_allclose((y.asnumpy() ** 2).sum(-1), (x**2).sum(-1), rtol=1e-10)
    with pytest.raises(ArgumentValueError, match="0 or 1"):
        rotary_position_embedding(Tensor(x), Tensor(x), Tensor(x), 2)


def test_bands_as_in_mindspore():
    x = Tensor(np.arange(12.0, dtype=np.float32).reshape(3, 4))
    band = matrix_diag_part(x, Tensor([-1, 1]), Tensor(9.0))
    assert band.tolist() == [[1, 6, 11], [0, 5, 10], [4, 9, 9]]
    made = matrix_diag(Tensor([[8.0, 9, 0], [1, 2, 3], [0, 4, 5]]), (-1, 1), 3, 3, 11, "LEFT_RIGHT")
    assert made.tolist() == [[1, 8, 11], [4, 2, 9], [11, 5, 3]]
    assert matrix_set_diag(ms.ops.full((3, 3), 7.0), Tensor([1.0, 2, 3])).tolist() == [[1, 7, 7], [7, 2, 7], [7, 7, 3]]
    assert matrix_diag(Tensor([1, 2]), -1).tolist() == [[0, 0, 0], [1, 0, 0], [0, 2, 0]]
    assert matrix_diag_part(x, 1).tolist() == [1, 6, 11]
    with pytest.raises(ArgumentValueError, match="RIGHT_LEFT"):
        matrix_diag_part(x, 0, align="UP")
    with pytest.raises(ShapeError, match="the batch of 'x'"):
        matrix_set_diag(x, Tensor([[1.0, 2, 3]]))
