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

    Attributes:
        op: the operator, None for a leaf and for a step that is not one primitive.
        attrs: its attributes; ``key`` is what they are in the key of its program.
        links: for each input its array, and the node and the slot that made it. They are taken when the operator
            runs, so a later in-place change does not reach them.
        values: the output arrays.
        pullback: ``pullback(cts) -> cotangents`` replaces the operator's rule for steps that are not one primitive (a
            compiled graph, a Cell with its own ``bprop``).
        hooks: what is called with the gradient of output 0 and may replace it.
        order: grows from node to node.
    """

    __slots__ = ("attrs", "hooks", "key", "links", "op", "order", "pullback", "values")

    def __init__(
        self,
        op: Primitive | None,
        inputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
        values: tuple[Any, ...],
        pullback: Callable[[list[Tensor | None]], list[Tensor | None]] | None = None,
        key: tuple[Any, ...] | None = None,
    ) -> None:
        self.op = op
        self.attrs = attrs
        self.key = key
        self.values = values
        self.pullback = pullback
        self.order = next(_order)
        self.hooks: list[Callable[[Tensor], Tensor | None]] | None = None
        self.links: tuple[tuple[Any, TapeNode | None, int], ...]
        if len(inputs) == 2:
            a, b = inputs
            self.links = ((a._value, a._node, a._slot), (b._value, b._node, b._slot))
        elif len(inputs) == 1:
            a = inputs[0]
            self.links = ((a._value, a._node, a._slot),)
        else:
            self.links = tuple([(x._value, x._node, x._slot) for x in inputs])

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs as tensors, made anew at each call."""
        from mycelia.tensor.tensor import linked

        return tuple([linked(*link) for link in self.links])
