"""Differentiation: an eager tape and a transformation of graphs, with one set of operator rules."""

from mycelia.autodiff import control as control
from mycelia.autodiff.api import GradOperation, grad, value_and_grad

__all__ = ["GradOperation", "grad", "value_and_grad"]
