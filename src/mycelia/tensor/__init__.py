"""Tensor, Parameter, and the dispatch of operators.

``mycelia.tensor`` is this package and, called, makes a tensor: ``ms.tensor([1, 2])``, as in MindSpore.
"""

import sys
from types import ModuleType
from typing import Any

from mycelia.tensor.tensor import Parameter, Tensor

__all__ = ["Parameter", "Tensor"]


class _Callable(ModuleType):
    def __call__(self, input_data: Any = None, dtype: Any = None, shape: Any = None, init: Any = None) -> Tensor:
        """A tensor; see :class:`Tensor`."""
        return Tensor(input_data, dtype, shape, init)


sys.modules[__name__].__class__ = _Callable
