"""What losses share: reduction to one number, and checks of their two inputs."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg
from mycelia.ops.operands import broadcast_shapes
from mycelia.tensor import Tensor


class LossBase(Cell):
    """Base of losses; a subclass defines ``construct`` and ends it with :meth:`get_loss`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``: what becomes of the loss of each element.

    Raises:
        ArgumentValueError: another reduction.

    >>> import mycelia as ms
    >>> class Absolute(ms.nn.LossBase):
    ...     def construct(self, logits, labels):
    ...         return self.get_loss(ms.ops.abs(logits - labels))
    >>> print(Absolute()(ms.Tensor([1.0, 2.0]), ms.Tensor([2.0, 5.0])))
    2.0
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self._set_reduction(reduction)

    def _set_reduction(self, reduction: Any, allowed: tuple[str, ...] = ("mean", "sum", "none")) -> None:
        where = type(self).__name__
        if reduction is None:
            raise arg.value_error(where, "reduction", "None", ", ".join(map(repr, allowed)))
        self.reduction = arg.choice(where, "reduction", reduction, allowed)
        self.average = reduction != "sum"
        self.reduce = reduction != "none"

    def get_axis(self, x: Any) -> tuple[int, ...]:
        """All axes of ``x``."""
        return tuple(range(arg.tensor(type(self).__name__, "x", x).ndim))

    def get_loss(self, x: Any, weights: Any = 1.0) -> Any:
        """The loss of each element, weighted and reduced.

        Args:
            x: the loss of each element.
            weights: a number, or a tensor that broadcasts with ``x``.

        Raises:
            ShapeError: ``weights`` does not broadcast.
        """
        where = type(self).__name__
        t = arg.tensor(where, "x", x)
        if isinstance(weights, Tensor) or not isinstance(weights, (int, float)) or weights != 1:
            w = arg.tensor(where, "weights", weights)
            broadcast_shapes(where, (t.shape, w.shape), ("x", "weights"))
            wide = dt.float32 if t.dtype.itemsize == 2 else t.dtype
            weighted = ops.cast(t, wide) * ops.cast(w, wide)
            return ops.cast(self._reduced(weighted), t.dtype)
        return self._reduced(t)

    def _reduced(self, x: Any) -> Any:
        if not self.reduce:
            return x
        return ops.mean(x) if self.average else ops.sum(x)

    def _pair(self, a: Any, b: Any, names: tuple[str, str] = ("logits", "labels")) -> tuple[Tensor, Tensor]:
        """Both as tensors, if their shapes broadcast."""
        where = type(self).__name__
        x, y = (self._tensor(n, t) for n, t in zip(names, (a, b), strict=True))
        if x.shape != y.shape:
            broadcast_shapes(where, (x.shape, y.shape), names)
        return x, y

    def _tensor(self, name: str, value: Any) -> Tensor:
        where = type(self).__name__
        if value is None or isinstance(value, (str, bytes, type)):
            raise ArgumentTypeError(where, name, got=f"{value!r}", takes="a Tensor")
        return arg.tensor(where, name, value)

    def _same_shape(self, a: Any, b: Any, names: tuple[str, str] = ("logits", "labels")) -> tuple[Tensor, Tensor]:
        """Both as tensors, if their shapes are equal."""
        x, y = self._tensor(names[0], a), self._tensor(names[1], b)
        if x.shape != y.shape:
            raise ShapeError(
                type(self).__name__, names[1], got=f"shape {y.shape}", takes=f"the shape of '{names[0]}', {x.shape}"
            )
        return x, y
