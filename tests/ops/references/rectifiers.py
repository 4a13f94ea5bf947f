"""References of piecewise linear activation functions, written as cases of single numbers."""

from __future__ import annotations

import math

import numpy as np


def _by_element(rule):
    def run(x, **attrs):
        made = [v if v != v else rule(v, **attrs) for v in x.ravel().tolist()]
        return np.array(made, x.dtype).reshape(x.shape)

    return run


def _slope(rule):
    """Cases of a slope, with a given value for NaN, of which the case says nothing."""

    def run(x, **attrs):
        return np.array([rule(v, **attrs) for v in x.ravel().tolist()], x.dtype).reshape(x.shape)

    return run


def _hardswish(v):
    return 0.0 if v <= -3 else v if v >= 3 else v * (v + 3) / 6


def _hardswish_slope(v):
    return math.nan if v != v else 0.0 if v < -3 else 1.0 if v > 3 else v / 3 + 0.5


def _softshrink(v, *, lambd):
    return v - lambd if v > lambd else v + lambd if v < -lambd else 0.0


REFERENCES = {
    "relu": _by_element(lambda v: max(v, 0)),
    "relu_grad": lambda ct, out: np.where(out <= 0, 0, ct),
    "relu6": _by_element(lambda v: min(max(v, 0.0), 6.0)),
    "relu6_slope": _slope(lambda v: 1.0 if 0 < v <= 6 else 0.0),
    "leaky_relu": _by_element(lambda v, *, alpha: v if v > 0 else alpha * v),
    "leaky_relu_slope": _slope(lambda v, *, alpha: 1.0 if v > 0 else alpha),
    "hardsigmoid": _by_element(lambda v: min(max(v / 6 + 0.5, 0.0), 1.0)),
    "hardsigmoid_slope": _slope(lambda v: 1 / 6 if -3 < v < 3 else 0.0),
    "hardswish": _by_element(_hardswish),
    "hardswish_slope": _slope(_hardswish_slope),
    "hardtanh": _by_element(lambda v, *, low, high: min(max(v, low), high)),
    "hardtanh_slope": _slope(lambda v, *, low, high: 1.0 if low < v < high else 0.0),
    "hardshrink": _by_element(lambda v, *, lambd: 0.0 if abs(v) <= lambd else v),
    "hardshrink_slope": _slope(lambda v, *, lambd: 0.0 if abs(v) <= lambd else 1.0),
    "softshrink": _by_element(_softshrink),
    "softshrink_slope": _slope(lambda v, *, lambd: 0.0 if abs(v) <= lambd else 1.0),
    "threshold": _by_element(lambda v, *, threshold, value: value if v <= threshold else v),
    "threshold_slope": _slope(lambda v, *, threshold, value: 0.0 if v <= threshold else 1.0),
    "prelu": lambda x, weight: np.where(x > 0, x, weight * x),
}
