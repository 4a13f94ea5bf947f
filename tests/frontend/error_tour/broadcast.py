"""Shapes that do not broadcast.

The message says both shapes.
"""

import mycelia as ms
from mycelia import ops


@ms.jit
def add_bias(x, bias):
    return (x * 2) + bias


add_bias(ops.ones((2, 3)), ops.ones((4,)))
