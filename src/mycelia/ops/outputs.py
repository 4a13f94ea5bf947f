"""``apply`` with the type of its result: ``one`` for operators of one output, ``several`` for more."""

from __future__ import annotations

from collections.abc import Callable

from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

#: :func:`~mycelia.tensor.dispatch.apply` for a primitive of one output.
one: Callable[..., Tensor] = apply

#: :func:`~mycelia.tensor.dispatch.apply` for a primitive of several outputs.
several: Callable[..., tuple[Tensor, ...]] = apply
