"""Special functions: dtypes, arguments, and gradients of incomplete gamma functions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError

NAMES = ("erf", "erfc", "erfinv", "lgamma", "digamma", "i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "sinc", "logit")
BESSEL = ("j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e")


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_is_rounded_once(name):
    x = np.array([0.1, 0.3, 0.7], np.float16)
    made = getattr(ops, name)(Tensor(x))
    assert made.dtype is ms.float16
    wide = getattr(ops, name)(Tensor(x.astype(np.float64))).asnumpy()
    np.testing.assert_allclose(made.asnumpy().astype(np.float64), wide, rtol=2**-10)
    assert getattr(ops, name)(Tensor([0])).dtype is ms.float32


@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions_over_their_range(name):
    x = np.concatenate([np.logspace(-8, 3, 300), np.linspace(2.9, 3.1, 21), np.linspace(24.5, 25.5, 21)])
    np.testing.assert_allclose(
        getattr(ops, f"bessel_{name}")(Tensor(x)).asnumpy(), getattr(special, name)(x), rtol=1e-12, atol=5e-15
    )


def test_bessel_functions_vanish_at_infinity():
    for name in BESSEL:
        if name not in ("k0e", "k1e"):
            assert getattr(ops, f"bessel_{name}")(Tensor([np.inf])).tolist() == [0.0]


def test_poles():
    assert ops.lgamma(Tensor([0.0, -1.0])).tolist() == [np.inf, np.inf]
    poles = ops.digamma(Tensor([0.0, -0.0, -1.0])).asnumpy()
    assert poles[:2].tolist() == [-np.inf, np.inf]
    assert np.isnan(poles[2])


def test_polygamma_and_mvlgamma():
    x = np.array([0.5, 2.0, 3.5])
    for n in (0, 1, 2):
        np.testing.assert_allclose(ops.polygamma(n, Tensor(x)).asnumpy(), special.polygamma(n, x), rtol=1e-10)
    assert ops.polygamma(Tensor(1), Tensor(x)).dtype is ms.float64
    with pytest.raises(ArgumentValueError, match="polygamma: argument 'n' got -1"):
        ops.polygamma(-1, Tensor(x))
    for p in (1, 2, 3):
        np.testing.assert_allclose(
            Tensor(x + 1).mvlgamma(p).asnumpy(),
            special.multigammaln(x + 1, p) if p == 1 else [special.multigammaln(v, p) for v in x + 1],
            rtol=1e-10,
        )
    with pytest.raises(ArgumentValueError, match="argument 'p' got 0"):
        ops.mvlgamma(Tensor(x), 0)
    with pytest.raises(ArgumentTypeError, match="argument 'p'"):
        ops.mvlgamma(Tensor(x), 1.5)


def test_logit_with_eps():
    x = Tensor([-0.5, 0.5, 1.5])
    np.testing.assert_allclose(ops.logit(x, 0.1).asnumpy(), special.logit([0.1, 0.5, 0.9]), atol=1e-6)
    assert np.isnan(ops.logit(x).asnumpy()[[0, 2]]).all()


def test_zero_times_a_logarithm():
    x, y = np.array([0.0, 0.0, 2.0]), np.array([0.0, np.nan, 3.0])
    np.testing.assert_array_equal(ops.xlogy(Tensor(x), Tensor(y)).asnumpy(), special.xlogy(x, y))
    assert ops.xlogy(2, Tensor([1])).tolist() == [0.0]
    assert ops.xdivy(Tensor([0, 1]), Tensor([0, 2])).tolist() == [0.0, 0.5]
    g = ms.grad(lambda a, b: ops.xlogy(a, b).sum(), (0, 1))(Tensor([0.0, 0.0]), Tensor([0.0, 2.0]))
    assert g[0].asnumpy()[0] == 0.0


def test_logaddexp_of_infinities():
    a = Tensor([-np.inf, np.inf, 1000.0])
    np.testing.assert_allclose(
        ops.logaddexp(a, a).asnumpy(), np.array([-np.inf, np.inf, 1000.6931], np.float32), rtol=1e-6
    )
    g = ms.grad(lambda x: ops.logaddexp(x, Tensor([-np.inf])).sum())(Tensor([0.5]))
    assert g.tolist() == [1.0]


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_gradients_of_incomplete_gamma_functions(name):
    a, x, h = np.array([0.5, 2.0, 10.0]), np.array([0.7, 3.0, 9.0]), 1e-6
    fn = special.gammainc if name == "igamma" else special.gammaincc
    by_a, by_x = ms.grad(lambda p, q: getattr(ops, name)(p, q).sum(), (0, 1))(Tensor(a), Tensor(x))
    np.testing.assert_allclose(by_a.asnumpy(), (fn(a + h, x) - fn(a - h, x)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(by_x.asnumpy(), (fn(a, x + h) - fn(a, x - h)) / (2 * h), rtol=1e-6)


def test_zeta():
    s, q = np.array([2.0, 3.5]), np.array([1.0, 0.25])
    np.testing.assert_allclose(ops.zeta(Tensor(s), Tensor(q)).asnumpy(), special.zeta(s, q), rtol=1e-12)
    assert ops.zeta(Tensor([2.0]), 1).item() == pytest.approx(np.pi**2 / 6, rel=1e-6)


def test_erfinv_in_place():
    x = Tensor([0.5])
    assert x.erfinv_() is x
    np.testing.assert_allclose(x.asnumpy(), special.erfinv([0.5]), rtol=1e-6)
