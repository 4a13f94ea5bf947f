"""References of activation functions and their slopes: the formulas in double precision."""

from __future__ import annotations

import functools

import numpy as np
from scipy import special, stats


def _quiet(fn):
    @functools.wraps(fn)
    def run(*arrays, **attrs):
        with np.errstate(all="ignore"):
            return fn(*arrays, **attrs)

    return run


def _elu(x, *, alpha):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _gelu(x, *, approximate):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x * special.ndtr(x)


def _softplus(x, *, beta, threshold):
    return np.where(beta * x > threshold, x, np.log1p(np.exp(np.minimum(beta * x, threshold))) / beta)


def _elu_slope(x, *, alpha):
    return np.where(x > 0, 1, alpha * np.exp(np.minimum(x, 0)))


def _gelu_slope(x, *, approximate):
    if approximate == "tanh":
        inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
        slope = special.expit(2 * inner) + 0.5 * x / np.cosh(inner) ** 2 * np.sqrt(2 / np.pi) * (1 + 0.134145 * x**2)
    else:
        slope = special.ndtr(x) + x * stats.norm.pdf(x)
    return np.where(np.isposinf(x), 1, slope)


def _swish_slope(x, beta):
    s = special.expit(beta * x)
    return np.where(np.isposinf(x), 1, s + beta * x * s * special.expit(-beta * x))


def _mish_slope(x):
    soft = np.logaddexp(x, 0)
    return np.where(np.isposinf(x), 1, np.tanh(soft) + x * special.expit(x) / np.cosh(soft) ** 2)


def _halves(x, axis):
    half = x.shape[axis] // 2
    return np.take(x, range(half), axis), np.take(x, range(half, 2 * half), axis)


def _glu(x, *, axis):
    a, b = _halves(x, axis)
    return a * special.expit(b)


def _swiglu(x, *, axis):
    a, b = _halves(x, axis)
    return a * special.expit(a) * b


def _sigmoid(x):
    return special.expit(x) if x.dtype.kind != "c" else 1 / (1 + np.exp(-x))


_FORMULAS = {
    "elu": _elu,
    "elu_slope": _elu_slope,
    "celu": lambda x, *, alpha: np.maximum(x, 0) + np.where(x > 0, 0, alpha * np.expm1(np.minimum(x, 0) / alpha)),
    "celu_slope": lambda x, *, alpha: np.where(x > 0, 1, np.exp(np.minimum(x, 0) / alpha)),
    "selu": lambda x: 1.0507009873554804934 * _elu(x, alpha=1.6732632423543772848),
    "selu_slope": lambda x: 1.0507009873554804934 * _elu_slope(x, alpha=1.6732632423543772848),
    "gelu": _gelu,
    "gelu_slope": _gelu_slope,
    "silu": lambda x: x * special.expit(x),
    "silu_slope": lambda x: _swish_slope(x, 1),
    "fast_gelu": lambda x: x * special.expit(1.702 * x),
    "fast_gelu_slope": lambda x: _swish_slope(x, 1.702),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
    "mish_slope": _mish_slope,
    "logsigmoid": special.log_expit,
    "logsigmoid_slope": lambda x: special.expit(-x),
    "softplus": _softplus,
    "softplus_slope": lambda x, *, beta, threshold: np.where(beta * x > threshold, 1, special.expit(beta * x)),
    "tanhshrink": lambda x: x - np.tanh(x),
    "tanhshrink_slope": lambda x: np.tanh(x) ** 2,
    "softsign": lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x))),
    "softsign_slope": lambda x: (1 + np.abs(x)) ** -2.0,
    "sigmoid": _sigmoid,
    "sigmoid_grad": lambda ct, y: ct * np.conj(y * (1 - y)),
    "glu": _glu,
    "swiglu": _swiglu,
}

REFERENCES = {name: _quiet(formula) for name, formula in _FORMULAS.items()}
