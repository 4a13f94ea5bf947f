"""Differentiation: an eager tape and a transformation of graphs, with one set of operator rules."""

from mycelia.autodiff import batching as batching, control as control
from mycelia.autodiff.api import GradOperation, grad, value_and_grad
from mycelia.autodiff.functional import get_grad, jvp, linearize, vjp
from mycelia.autodiff.jacobians import derivative, hessian, jacfwd, jacrev, jet
from mycelia.autodiff.vectorize import vmap

__all__ = [
    "GradOperation", "derivative", "get_grad", "grad", "hessian", "jacfwd", "jacrev", "jet", "jvp", "linearize",
    "value_and_grad", "vjp", "vmap",
]  # fmt: skip
