"""Mycelia: one network class, debugged line by line, compiled, spread over devices and shipped."""

from mycelia import core as core
from mycelia.tensor import Parameter, Tensor
from mycelia.ops import arithmetic, casting, shape, reduction
