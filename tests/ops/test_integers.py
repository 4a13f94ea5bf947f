"""Greatest common divisor and least common multiple."""

from __future__ import annotations

import math

import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import DTypeError


def test_pairs():
    a, b = [12, -18, 0, 7], [18, 12, 5, 0]
    assert ops.gcd(Tensor(a), Tensor(b)).tolist() == [math.gcd(x, y) for x, y in zip(a, b, strict=True)]
    assert Tensor(a).lcm(Tensor(b)).tolist() == [math.lcm(x, y) for x, y in zip(a, b, strict=True)]
    assert ops.gcd(Tensor([12], ms.int8), 18).dtype is ms.int8


def test_floats_are_refused():
    with pytest.raises(DTypeError, match="gcd: argument 'input' got dtype Float32"):
        ops.gcd(Tensor([1.5]), 2)
