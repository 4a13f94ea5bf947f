"""References of the products of matrices and vectors."""

from __future__ import annotations

import numpy as np


def _swap(x, flag):
    return np.swapaxes(x, -1, -2) if flag and x.ndim > 1 else x


def _matmul(a, b, *, transpose_a, transpose_b):
    return np.matmul(_swap(a, transpose_a), _swap(b, transpose_b))


def _dense(x, weight, bias=0):
    return np.tensordot(x, weight, ([-1], [-1])) + bias


REFERENCES = {"matmul": _matmul, "dense": _dense}
