"""Initializers: distributions against SciPy, formulas, determinism, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import mycelia.core.dtypes as dt
from mycelia.core.random import set_seed
from mycelia.nn import initializer as I
from mycelia.nn.initializer import initializer
from mycelia.nn.truncated_normal import standard_truncated
from mycelia.tensor import Parameter, Tensor

SHAPE = (300, 50)
KERNEL = (40, 30, 3, 5)


def values(init, shape=SHAPE, dtype=dt.float32):
    return initializer(init, shape, dtype).asnumpy()


def follows(sample, distribution):
    """Kolmogorov-Smirnov: the sample would be this far from the distribution once in 1,000 tries."""
    return stats.kstest(np.asarray(sample, np.float64).ravel(), distribution.cdf).pvalue > 1e-3


def uniform(bound):
    return stats.uniform(-bound, 2 * bound)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
@pytest.mark.parametrize(
    ("init", "shape", "distribution"),
    [
        (I.Uniform(), SHAPE, uniform(0.07)),
        (I.Uniform(3), SHAPE, uniform(3)),
        (I.Normal(), SHAPE, stats.norm(0, 0.01)),
        (I.Normal(2.0, -1.0), SHAPE, stats.norm(-1, 2)),
        (I.TruncatedNormal(), SHAPE, stats.norm(0, 0.01)),
        (I.TruncatedNormal(1.0), SHAPE, stats.truncnorm(-2, 2)),
        (I.TruncatedNormal(0.5, 3, -1, 2), SHAPE, stats.truncnorm(-8, -2, 3, 0.5)),
        (I.TruncatedNormal(2.0, 0, 5, 6), SHAPE, stats.truncnorm(2.5, 3, 0, 2)),
        (I.XavierUniform(2), SHAPE, uniform(2 * math.sqrt(6 / 350))),
        (I.XavierUniform(), KERNEL, uniform(math.sqrt(6 / (70 * 15)))),
        (I.XavierNormal(2), SHAPE, stats.norm(0, 2 * math.sqrt(2 / 350))),
        (I.XavierNormal(), KERNEL, stats.norm(0, math.sqrt(2 / (70 * 15)))),
        (I.HeUniform(), SHAPE, uniform(math.sqrt(6 / 50))),
        (I.HeUniform(math.sqrt(5)), KERNEL, uniform(1 / math.sqrt(30 * 15))),
        (I.HeUniform(0, "fan_out", "relu"), KERNEL, uniform(math.sqrt(6 / (40 * 15)))),
        (I.HeNormal(), SHAPE, stats.norm(0, math.sqrt(2 / 50))),
        (I.HeNormal(0.5, "fan_out"), SHAPE, stats.norm(0, math.sqrt(2 / 1.25 / 300))),
        (I.HeNormal(nonlinearity="tanh"), SHAPE, stats.norm(0, 5 / 3 / math.sqrt(50))),
        (I.HeNormal(nonlinearity="sigmoid"), SHAPE, stats.norm(0, 1 / math.sqrt(50))),
        (I.VarianceScaling(2, "fan_avg", "untruncated_normal"), SHAPE, stats.norm(0, math.sqrt(2 / 175))),
        (I.VarianceScaling(2, "fan_out", "uniform"), SHAPE, uniform(math.sqrt(6 / 300))),
    ],
    ids=lambda value: type(value.dist).__name__ if hasattr(value, "dist") else repr(value),
)
def test_distribution(init, shape, distribution, dtype):
    sample = values(init, shape, dtype)
    assert sample.shape == shape
    assert sample.dtype == dtype.np
    assert follows(sample, distribution)


def test_the_check_of_distributions_can_fail():
    assert not follows(values(I.Normal(0.011)), stats.norm(0, 0.01))


def test_variance_scaling_truncates_at_two_deviations_and_keeps_the_variance():
    sample = values(I.VarianceScaling(), (400, 100))
    scale = 0.1 / stats.truncnorm(-2, 2).std()
    assert follows(sample, stats.truncnorm(-2, 2, 0, scale))
    assert np.std(sample) == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize(
    ("low", "high"), [(-2, 2), (-0.1, 0.2), (0.5, 0.9), (3, 9), (8, 8.5), (-40, -12), (-9, -5), (-1, 30), (20, 21)]
)
def test_truncated_sampling_anywhere(low, high):
    sample = standard_truncated(4000, low, high, np.random.default_rng(0))
    assert sample.min() >= low
    assert sample.max() <= high
    assert follows(sample, stats.truncnorm(low, high))


def test_constants():
    assert (values("zeros") == 0).all()
    assert (values("One") == 1).all()
    assert (values(3.5) == 3.5).all()
    assert values(I.Constant(np.arange(3)), (2, 3)).tolist() == [[0, 1, 2], [0, 1, 2]]
    assert values("ones", ()) == 1
    assert values("normal", (0, 3)).shape == (0, 3)
    assert initializer(7, 2, dt.int32).dtype is dt.int32
    assert initializer("normal", [2], dt.bfloat16).dtype is dt.bfloat16


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (3, 2, 5)])
def test_orthogonal(shape):
    matrix = values(I.Orthogonal(2.0), shape, dt.float64).reshape(shape[0], -1)
    if matrix.shape[0] > matrix.shape[1]:
        matrix = matrix.T
    np.testing.assert_allclose(matrix @ matrix.T, 4 * np.eye(len(matrix)), atol=1e-12)


def test_orthogonal_is_uniform_over_rotations():
    angles = [math.atan2(*values(I.Orthogonal(), (2, 2))[0]) for _ in range(300)]
    assert follows(angles, stats.uniform(-math.pi, 2 * math.pi))


def test_identity_dirac_sparse():
    np.testing.assert_array_equal(values("identity", (2, 3)), np.eye(2, 3))
    kernel = values(I.Dirac(2), (4, 2, 3, 4))
    expected = np.zeros((4, 2, 3, 4))
    for out, channel in ((0, 0), (1, 1), (2, 0), (3, 1)):
        expected[out, channel, 1, 2] = 1
    np.testing.assert_array_equal(kernel, expected)
    sparse = values(I.Sparse(0.3, 2.0), (10, 400))
    assert ((sparse == 0).sum(0) == 3).all()
    assert follows(sparse[sparse != 0], stats.norm(0, 2))
    assert len({tuple(c) for c in (sparse == 0).T}) > 60  # each column has places of its own


@pytest.mark.torch
def test_dirac_and_fans_are_those_of_torch():
    torch = pytest.importorskip("torch")
    for shape, groups in (((4, 2, 3), 2), ((6, 4, 3, 3), 2), ((2, 3, 3, 5, 4), 1)):
        theirs = torch.nn.init.dirac_(torch.empty(shape), groups).numpy()
        np.testing.assert_array_equal(values(I.Dirac(groups), shape), theirs)
        fans = torch.nn.init._calculate_fan_in_and_fan_out(torch.empty(shape))
        assert I.fans(shape) == fans
    for name, slope in (("relu", 0), ("leaky_relu", 0.2), ("tanh", 0), ("sigmoid", 0), ("conv2d", 0), ("linear", 0)):
        assert I.gain_of(name, slope) == pytest.approx(torch.nn.init.calculate_gain(name, slope))


def test_seed_and_order():
    set_seed(3)
    first, second = values("normal"), values("normal")
    set_seed(3)
    assert (values("normal") == first).all()
    assert (values("normal") == second).all()
    assert (first != second).any()
    set_seed(4)
    assert (values("normal") != first).any()


def test_a_seed_of_its_own():
    init = I.Normal()
    init.seed = 5
    assert (values(init) == values(init)).all()


@pytest.mark.parametrize(
    "name",
    ["zeros", "Zero", "ones", "one", "xavier_uniform", "XavierUniform", "xavier_normal", "he_uniform", "HE_NORMAL",
     "identity", "orthogonal", "uniform", "normal", "truncatedNormal", "varianceScaling"],
)  # fmt: skip
def test_names(name):
    assert initializer(name, (3, 2)).shape == (3, 2)


def test_a_tensor_is_given_back():
    data = Tensor([1.0, 2.0])
    assert initializer(data, (2,)) is data
    assert initializer(data) is data


def test_initializers_fill_arrays_in_place():
    array = np.zeros((3, 2))
    assert I.One()(array) is None
    assert (array == 1).all()


def test_a_subclass_of_the_user():
    class Ramp(I.Initializer):
        def _initialize(self, arr):
            arr[:] = np.arange(arr.size).reshape(arr.shape)

    parameter = Parameter(initializer(Ramp(), (2, 2)), name="w")
    assert parameter.asnumpy().tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: initializer("norml", (2,)), ValueError, ["'norml'", "did you mean 'normal'", "test_initializer.py"]),
        (lambda: initializer("normal"), TypeError, ["'shape'", "None"]),
        (lambda: initializer("normal", (2, -1)), ValueError, ["'shape'", "(2, -1)"]),
        (lambda: initializer("normal", (2.5,)), TypeError, ["'shape'", "2.5"]),
        (lambda: initializer(Tensor([1.0, 2.0]), (3,)), ValueError, ["'init'", "(2,)", "(3,)"]),
        (lambda: initializer(np.ones(3), (3,)), TypeError, ["'init'", "a number or a Tensor"]),
        (lambda: initializer(I.Normal, (3,)), TypeError, ["make one: Normal()"]),
        (lambda: initializer("xavier_uniform", (3,)), ValueError, ["(3,)", "two axes"]),
        (lambda: initializer("he_normal", ()), ValueError, ["two axes"]),
        (lambda: initializer("identity", (2, 2, 2)), ValueError, ["(2, 2, 2)", "two axes"]),
        (lambda: initializer("dirac", (2, 2)), ValueError, ["3, 4 or 5 axes"]),
        (lambda: initializer(I.Dirac(2), (3, 2, 1)), ValueError, ["multiple of 2"]),
        (lambda: initializer("orthogonal", (3,)), ValueError, ["at least two axes"]),
        (lambda: initializer(I.Sparse(0.1), (3,)), ValueError, ["two axes"]),
        (lambda: initializer(I.Constant(np.ones(3)), (2,)), ValueError, ["broadcasts to (2,)"]),
        (lambda: initializer("sparse", (3, 3)), ValueError, ["'sparse'"]),
        (lambda: I.Sparse(1.5), ValueError, ["'sparsity'", "1.5"]),
        (lambda: I.Constant("a"), TypeError, ["'value'"]),
        (lambda: I.Uniform("a"), TypeError, ["'scale'", "a number"]),
        (lambda: I.TruncatedNormal(0), ValueError, ["'sigma'", "positive"]),
        (lambda: I.TruncatedNormal(1, 0, 2, 1), ValueError, ["'b'", "above a"]),
        (lambda: I.HeUniform(mode="x"), ValueError, ["'mode'", "'fan_in', 'fan_out'"]),
        (lambda: I.HeUniform(nonlinearity="x"), ValueError, ["'nonlinearity'", "leaky_relu"]),
        (lambda: I.HeUniform(True), TypeError, ["'negative_slope'"]),
        (lambda: I.VarianceScaling(-1), ValueError, ["'scale'", "positive"]),
        (lambda: I.VarianceScaling(1, "x"), ValueError, ["'mode'", "'fan_avg'"]),
        (lambda: I.VarianceScaling(1, "fan_in", "x"), ValueError, ["'distribution'"]),
        (lambda: I.Dirac(0), ValueError, ["'groups'"]),
        (lambda: I.Initializer()(np.zeros(2)), TypeError, ["_initialize"]),
    ],
)
def test_errors(make, kind, words):
    with pytest.raises(kind) as caught:
        make()
    for word in words:
        assert word in str(caught.value)
