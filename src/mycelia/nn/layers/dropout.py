"""Dropout of elements and of whole channels; nothing happens outside training."""

from __future__ import annotations

from typing import Any

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg
from mycelia.ops.dropout import dropout, dropout1d, dropout2d, dropout3d


class Dropout(Cell):
    """In training, each element is zeroed with probability ``p`` and the others divided by ``1 - p``.

    Args:
        keep_prob: the old way to say it: the probability to keep an element, above 0.
        p: the probability to drop an element, below 1; goes before ``keep_prob``.
        dtype: kept.

    Inputs:
        x: a floating tensor of any shape.

    Raises:
        ArgumentValueError: ``p`` is not from 0 to below 1.

    >>> import mycelia as ms
    >>> net = ms.nn.Dropout(p=0.5)
    >>> print(net(ms.Tensor([1.0, 2.0])))
    [1. 2.]
    >>> sorted(set(net.set_train()(ms.ops.ones(64)).tolist()))
    [0.0, 2.0]
    """

    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype: Any = dt.float32) -> None:
        super().__init__()
        if p is None:
            kept = arg.fraction("Dropout", "keep_prob", keep_prob)
            if kept == 0:
                raise ArgumentValueError("Dropout", "keep_prob", got=str(keep_prob), takes="a number above 0, up to 1")
            self._rate = 1.0 - kept
        else:
            self._rate = arg.fraction("Dropout", "p", p, one=False)
        self.keep_prob, self.p, self.dtype = keep_prob, p, dtype

    def construct(self, x: Any) -> Any:
        if not self.training or self._rate == 0:
            return x
        return dropout(arg.floating_input("Dropout", "x", x), self._rate)

    def extend_repr(self) -> str:
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"


class _ChannelDropout(Cell):
    """In training, whole channels are zeroed."""

    ranks: tuple[int, int]
    layout: str

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = arg.fraction(type(self).__name__, "p", p)

    def construct(self, x: Any) -> Any:
        where = type(self).__name__
        t = arg.axes_of_input(where, "x", x, self.ranks, self.layout)
        if not self.training or self.p == 0:
            return t
        run = {3: dropout1d, 4: dropout2d, 5: dropout3d}[self.ranks[1]]
        return run(arg.floating_input(where, "x", t), self.p)

    def extend_repr(self) -> str:
        return f"p={self.p}"


class Dropout1d(_ChannelDropout):
    """In training, each channel is zeroed with probability ``p`` and the others divided by ``1 - p``.

    Args:
        p: the probability to drop a channel, from 0 to 1.

    Inputs:
        x: a floating tensor of shape (batch, channels, length), or (channels, length).

    Raises:
        ShapeError: the input has another number of axes.

    >>> import mycelia as ms
    >>> ms.nn.Dropout1d(1.0).set_train()(ms.ops.ones((1, 2, 2))).tolist()
    [[[0.0, 0.0], [0.0, 0.0]]]
    """

    ranks = (2, 3)
    layout = "(batch,) channels, length"


class Dropout2d(_ChannelDropout):
    """Dropout of the channels of images of shape (batch, channels, height, width); see :class:`Dropout1d`.

    >>> import mycelia as ms
    >>> ms.nn.Dropout2d(0.5).set_train()(ms.ops.ones((1, 2, 3, 3))).shape
    (1, 2, 3, 3)
    """

    ranks = (3, 4)
    layout = "(batch,) channels, height, width"


class Dropout3d(_ChannelDropout):
    """Dropout of the channels of volumes of shape (batch, channels, depth, height, width); see :class:`Dropout1d`.

    >>> import mycelia as ms
    >>> ms.nn.Dropout3d(0.5).set_train()(ms.ops.ones((1, 2, 3, 3, 3))).shape
    (1, 2, 3, 3, 3)
    """

    ranks = (4, 5)
    layout = "(batch,) channels, depth, height, width"


class DropoutExt(Cell):
    """:class:`Dropout` of probability ``p``, in place if asked.

    Args:
        p: the probability to drop an element, from 0 to 1.
        inplace: overwrite the input.

    >>> import mycelia as ms
    >>> ms.nn.DropoutExt(1.0).set_train()(ms.ops.ones(2)).tolist()
    [0.0, 0.0]
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p = arg.fraction("DropoutExt", "p", p)
        arg.flag("DropoutExt", "inplace", inplace)
        self.inplace = inplace

    def construct(self, input: Any) -> Any:
        return _placed(input, self._dropped(arg.floating_input(type(self).__name__, "input", input)), self.inplace)

    def _dropped(self, t: Any) -> Any:
        return dropout(t, self.p, self.training)

    def extend_repr(self) -> str:
        return f"p={self.p}"


class Dropout2dExt(DropoutExt):
    """:class:`Dropout2d`, in place if asked.

    >>> import mycelia as ms
    >>> ms.nn.Dropout2dExt(0.5).set_train()(ms.ops.ones((1, 2, 3, 3))).shape
    (1, 2, 3, 3)
    """

    def _dropped(self, t: Any) -> Any:
        return dropout2d(t, self.p, self.training)


def _placed(input: Any, made: Any, inplace: bool) -> Any:
    if not inplace:
        return made
    from mycelia.ops.calls import overwrite

    return overwrite(input, made, "Dropout")
