"""The record an operator leaves when a tensor it touches is being differentiated.

Every tracked Tensor points at the :class:`TapeNode` that made it, every node at the tensors it was made
from, so the record lives exactly as long as something can still ask for a gradient through it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mycelia.ir.primitive import Primitive

if TYPE_CHECKING:
    from mycelia.tensor.tensor import Tensor

_order = itertools.count()


class TapeNode:
    """One recorded step; a leaf (a tensor being differentiated against) has neither operator nor pullback.

    ``inputs`` are snapshots taken when the operator ran, so a later in-place change does not reach them.
    ``values`` are the output arrays. ``pullback(cts) -> cotangents`` replaces the operator's rule for steps
    that are not one primitive (a compiled graph, a Cell with its own ``bprop``). ``hooks`` are called with
    the gradient of output 0 and may replace it.
    """

    __slots__ = ("attrs", "hooks", "inputs", "op", "order", "pullback", "values")

    def __init__(
        self,
        op: Primitive | None,
        inputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
        values: tuple[Any, ...],
        pullback: Callable[[list[Tensor | None]], list[Tensor | None]] | None = None,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.values = values
        self.pullback = pullback
        self.order = next(_order)
        self.hooks: list[Callable[[Tensor], Tensor | None]] = []
