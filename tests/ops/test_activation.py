"""Activation functions: against torch with gradients at kinks, arguments, in place, numbers far out."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError

X = np.array([-30.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.5, 30.0])
CASES = {
    "relu": (ops.relu, lambda f, x: f.relu(x)),
    "leaky_relu": (lambda x: ops.leaky_relu(x, 0.1), lambda f, x: f.leaky_relu(x, 0.1)),
    "leaky_relu_ext": (ops.leaky_relu_ext, lambda f, x: f.leaky_relu(x)),
    "elu": (lambda x: ops.elu(x, 0.7), lambda f, x: f.elu(x, 0.7)),
    "celu": (lambda x: ops.celu(x, 2.0), lambda f, x: f.celu(x, 2.0)),
    "selu": (ops.selu, lambda f, x: f.selu(x)),
    "gelu": (ops.gelu, lambda f, x: f.gelu(x)),
    "gelu_tanh": (lambda x: ops.gelu(x, "tanh"), lambda f, x: f.gelu(x, approximate="tanh")),
    "silu": (ops.silu, lambda f, x: f.silu(x)),
    "mish": (ops.mish, lambda f, x: f.mish(x)),
    "sigmoid": (ops.sigmoid, lambda f, x: x.sigmoid()),
    "tanh": (ops.tanh, lambda f, x: x.tanh()),
    "logsigmoid": (ops.logsigmoid, lambda f, x: f.logsigmoid(x)),
    "softplus": (ops.softplus, lambda f, x: f.softplus(x)),
    "softplus_beta": (lambda x: ops.softplus(x, 2, 5), lambda f, x: f.softplus(x, 2, 5)),
    "softsign": (ops.softsign, lambda f, x: f.softsign(x)),
    "tanhshrink": (ops.tanhshrink, lambda f, x: f.tanhshrink(x)),
    "hardsigmoid": (ops.hardsigmoid, lambda f, x: f.hardsigmoid(x)),
    "hardtanh": (ops.hardtanh, lambda f, x: f.hardtanh(x)),
    "hardshrink": (ops.hardshrink, lambda f, x: f.hardshrink(x)),
    "softshrink": (ops.softshrink, lambda f, x: f.softshrink(x)),
    "threshold": (lambda x: ops.threshold(x, 0.5, 7.0), lambda f, x: f.threshold(x, 0.5, 7.0)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.torch
def test_values_and_gradients_against_torch(name):
    torch = pytest.importorskip("torch")
    ours, theirs = CASES[name]
    t = torch.tensor(X, requires_grad=True)
    want = theirs(torch.nn.functional, t)
    want.sum().backward()
    np.testing.assert_allclose(ours(Tensor(X)).asnumpy(), want.detach().numpy(), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(
        ms.grad(lambda x: ours(x).sum())(Tensor(X)).asnumpy(), t.grad.numpy(), rtol=1e-7, atol=1e-12
    )


def test_gradients_at_the_kinks_that_are_mindspores():
    def slopes(fn, points):
        return ms.grad(lambda x: fn(x).sum())(Tensor(points)).tolist()

    assert slopes(ops.relu, [0.0]) == [0.0]
    assert slopes(ops.relu6, [0.0, 6.0, 7.0]) == [0.0, 1.0, 0.0]
    assert slopes(ops.hardswish, [-3.0, 3.0, 0.0]) == [-0.5, 1.5, 0.5]


@pytest.mark.parametrize(
    "name", [n for n in CASES if n not in ("relu", "threshold", "hardtanh", "hardshrink", "softshrink", "tanhshrink")]
)
def test_far_values_are_limits_not_nan(name):
    fn = CASES[name][0]
    far = np.array([-1e30, 1e30, -np.inf, np.inf])
    value = fn(Tensor(far)).asnumpy()
    slope = ms.grad(lambda x: fn(x).sum())(Tensor(far)).asnumpy()
    assert not np.isnan(value).any()
    assert not np.isnan(slope).any()


def test_nan_stays_nan():
    for fn, _ in CASES.values():
        assert np.isnan(fn(Tensor([np.nan])).asnumpy()).all()


def test_integers():
    assert ops.relu(Tensor([-1, 2])).tolist() == [0, 2]
    assert ops.hardtanh(Tensor([-3, 2]), -1, 1).tolist() == [-1, 1]
    assert ops.hardtanh(Tensor([-3, 2])).dtype is ms.float32
    for fn in (ops.sigmoid, ops.gelu, ops.elu, ops.hardsigmoid, ops.leaky_relu):
        assert fn(Tensor([-1, 2])).dtype is ms.float32


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    x = Tensor(np.linspace(-6, 6, 41), dtype)
    wide = x.astype(ms.float64)
    for fn in (ops.gelu, ops.silu, ops.mish, ops.softplus, ops.elu):
        made = fn(x)
        assert made.dtype is dtype
        np.testing.assert_array_equal(made.asnumpy(), fn(wide.astype(ms.float32)).astype(dtype).asnumpy())


@pytest.mark.torch
def test_prelu_against_torch():
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    for w in (np.array([0.25]), np.array([0.1, 0.5, -2.0])):
        tx, tw = torch.tensor(x, requires_grad=True), torch.tensor(w, requires_grad=True)
        want = torch.nn.functional.prelu(tx, tw)
        want.sum().backward()
        np.testing.assert_allclose(ops.prelu(Tensor(x), Tensor(w)).asnumpy(), want.detach().numpy())
        gx, gw = ms.grad(lambda a, b: ops.prelu(a, b).sum(), (0, 1))(Tensor(x), Tensor(w))
        np.testing.assert_allclose(gx.asnumpy(), tx.grad.numpy())
        np.testing.assert_allclose(gw.asnumpy(), tw.grad.numpy())


def test_prelu_arguments():
    assert ops.prelu(Tensor([-2.0, 1.0]), Tensor([0.5])).tolist() == [-1.0, 1.0]
    with pytest.raises(
        ShapeError, match=r"prelu: argument 'weight' got shape \(2,\); it takes length 1 or 3, that of axis 1"
    ):
        ops.prelu(Tensor(np.ones((4, 3))), Tensor([0.1, 0.2]))


def test_rrelu_draws_slopes_from_its_range():
    ms.set_seed(3)
    x = Tensor(np.full(2000, -1.0, np.float32))
    slopes = -ops.rrelu(x, 0.2, 0.6).asnumpy()
    assert (slopes >= 0.2).all()
    assert (slopes <= 0.6).all()
    assert abs(slopes.mean() - 0.4) < 0.01
    assert slopes.std() == pytest.approx(0.4 / np.sqrt(12), rel=0.05)
    assert ops.rrelu(Tensor([1.0, 3.0])).tolist() == [1.0, 3.0]
    with pytest.raises(ArgumentValueError, match=r"'lower' got 0.5; it takes at most upper, 0.25"):
        ops.rrelu(x, 0.5, 0.25)


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.torch
def test_gated_units_against_torch(dim):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(1).normal(size=(4, 6))
    t = torch.tensor(x, requires_grad=True)
    want = torch.nn.functional.glu(t, dim)
    want.sum().backward()
    np.testing.assert_allclose(ops.glu(Tensor(x), dim).asnumpy(), want.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(
        ms.grad(lambda v: ops.glu(v, dim).sum())(Tensor(x)).asnumpy(), t.grad.numpy(), rtol=1e-10
    )
    a, b = torch.chunk(torch.tensor(x), 2, dim)
    np.testing.assert_allclose(
        ops.swiglu(Tensor(x), dim).asnumpy(), (torch.nn.functional.silu(a) * b).numpy(), rtol=1e-12
    )


def test_fast_gelu():
    x = np.linspace(-3, 3, 7)
    want = x / (1 + np.exp(-1.702 * np.abs(x))) * np.exp(0.851 * (x - np.abs(x)))
    np.testing.assert_allclose(ops.fast_gelu(Tensor(x)).asnumpy(), want, rtol=1e-12)


def test_keywords_of_both_vocabularies():
    x = Tensor([0.5, 2.0])
    for fn, own in ((ops.mish, "x"), (ops.logsigmoid, "x"), (ops.relu6, "x"), (ops.selu, "input_x"), (ops.glu, "x")):
        assert fn(input=x).tolist() == fn(**{own: x}).tolist() == fn(x).tolist()
    assert ops.glu(x, dim=0).tolist() == ops.glu(x, axis=-1).tolist()
    with pytest.raises(ArgumentTypeError, match="only one of the two"):
        ops.mish(x, x=x, input=x)


def test_errors():
    x = Tensor([1.0])
    with pytest.raises(ArgumentValueError, match="argument 'approximate' got 'foo'; it takes \"none\" or \"tanh\""):
        ops.gelu(x, approximate="foo")
    with pytest.raises(ShapeError, match="even length of axis 0"):
        ops.glu(Tensor([1.0, 2.0, 3.0]))
    with pytest.raises(ArgumentValueError, match="'min_val' got 1; it takes less than max_val, -1"):
        ops.hardtanh(x, 1, -1)
    with pytest.raises(ArgumentValueError, match="'lambd' got -1"):
        ops.softshrink(x, -1)
    with pytest.raises(ArgumentValueError, match="'alpha' got 0"):
        ops.celu(x, 0)
    with pytest.raises(ArgumentValueError, match="'beta' got 0"):
        ops.softplus(x, 0)
    with pytest.raises(ArgumentTypeError, match="'alpha' got 'x'"):
        ops.leaky_relu(x, "x")
    with pytest.raises(DTypeError, match="relu: argument 'input' got dtype Complex128"):
        ops.relu(Tensor([1j]))


def test_in_place():
    for fn, want in (
        (lambda x: ops.relu(x, True), [0.0, 2.0]), (lambda x: ops.relu6(x, inplace=True), [0.0, 2.0]),
        (ops.relu_, [0.0, 2.0]),
        (ops.hardtanh_, [-1.0, 1.0]), (lambda x: ops.threshold_(x, 0, 5), [5.0, 2.0]),
        (lambda x: ops.clamp_(x, -1, 1), [-1.0, 1.0]), (ops.zero_, [0.0, 0.0]),
    ):  # fmt: skip
        x = Tensor([-2.0, 2.0])
        assert fn(x) is x
        assert x.tolist() == want
    for name, formula in (
        ("sigmoid_", ops.sigmoid),
        ("elu_", ops.elu),
        ("silu_", ops.silu),
        ("tanh_", ops.tanh),
        ("erfinv_", ops.erfinv),
    ):
        x = Tensor([-0.5, 0.5])
        assert getattr(ops, name)(x) is x
        np.testing.assert_array_equal(x.asnumpy(), formula(Tensor([-0.5, 0.5])).asnumpy())
    with pytest.raises(ArgumentTypeError, match="'inplace' got True"):
        ops.relu(np.array([1.0]), True)
    with pytest.raises(ArgumentTypeError, match="relu_: argument 'input' got list"):
        ops.relu_([1.0])
