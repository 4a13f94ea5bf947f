"""Tensor, Parameter, and the dispatch of operators."""

from mycelia.tensor.tensor import Parameter, Tensor

__all__ = ["Parameter", "Tensor"]
