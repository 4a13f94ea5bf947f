"""Elements put around tensors."""

from __future__ import annotations

from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg
from mycelia.ops.padding import padded
from mycelia.tensor import Tensor


class Pad(Cell):
    """Elements before and after each axis.

    Args:
        paddings: one pair (before, after) for each axis of the input.
        mode: ``"CONSTANT"``: zeros; ``"REFLECT"``: a mirror image without the border itself;
            ``"SYMMETRIC"``: one with it.

    Raises:
        ArgumentValueError: another mode, a negative number, or pairs that are not as many as the axes.

    >>> import mycelia as ms
    >>> print(ms.nn.Pad(((0, 0), (1, 1)))(ms.Tensor([[1, 2]])))
    [[0 1 2 0]]
    """

    def __init__(self, paddings: Any, mode: str = "CONSTANT") -> None:
        super().__init__()
        if not isinstance(paddings, tuple):
            raise ArgumentTypeError("Pad", "paddings", got=type(paddings).__name__, takes="a tuple of pairs")
        for pair in paddings:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ArgumentValueError("Pad", "paddings", got=str(paddings), takes="pairs (before, after)")
            for number in pair:
                arg.positive("Pad", "paddings", number, 0)
        self.paddings = paddings
        self.mode = arg.choice("Pad", "mode", mode, ("CONSTANT", "REFLECT", "SYMMETRIC"))

    def construct(self, x: Any) -> Any:
        t = arg.tensor("Pad", "x", x)
        if t.ndim != len(self.paddings):
            raise ArgumentValueError(
                "Pad", "paddings", got=f"{len(self.paddings)} pairs", takes=f"one for each of the {t.ndim} axes of 'x'"
            )
        return padded(t, tuple((a, b) for a, b in self.paddings), self.mode.lower(), None, "Pad")


class _BorderPad(Cell):
    """Padding of the last ``n`` axes, given from the last axis on."""

    n: int
    mode: str
    value: Any = None
    negative = False

    def __init__(self, padding: Any) -> None:
        super().__init__()
        where, n = type(self).__name__, self.n
        least = -(2**31) if self.negative else 0
        if isinstance(padding, (tuple, list)):
            pads = tuple(arg.positive(where, "padding", p, least) for p in padding)
            if len(pads) % 2 or not 0 < len(pads) <= 2 * n or (len(pads) != 2 * n and not self.negative):
                raise ArgumentValueError(where, "padding", got=str(padding), takes=f"an int or {2 * n} ints")
        else:
            pads = (arg.positive(where, "padding", padding, least),) * (2 * n)
        self.padding = pads

    def construct(self, x: Any) -> Any:
        where = type(self).__name__
        t: Tensor = arg.tensor(where, "x", x)
        if t.ndim < self._least_rank() or (not self.negative and t.ndim > self.n + 2):
            takes = f"{self._least_rank()} to {self.n + 2} axes" if not self.negative else f"at least {self.n} axes"
            raise arg.shape_error(where, "x", t, takes)
        pairs = [(0, 0)] * t.ndim
        for i in range(0, len(self.padding), 2):
            pairs[t.ndim - 1 - i // 2] = (self.padding[i], self.padding[i + 1])
        return padded(t, tuple(pairs), self.mode, self.value, where)

    def _least_rank(self) -> int:
        return self.n if self.negative else self.n + 1


class _ConstantPad(_BorderPad):
    mode = "constant"
    negative = True

    def __init__(self, padding: Any, value: Any) -> None:
        super().__init__(padding)
        if not isinstance(value, (int, float)):
            raise ArgumentTypeError(type(self).__name__, "value", got=repr(value), takes="a number")
        self.value = value


class ConstantPad1d(_ConstantPad):
    """One value before and after the last axis.

    Args:
        padding: an int, or a pair (left, right); a negative number cuts.
        value: a number.

    >>> import mycelia as ms
    >>> print(ms.nn.ConstantPad1d((1, 2), 9)(ms.Tensor([[1, 2]])))
    [[9 1 2 9 9]]
    """

    n = 1


class ConstantPad2d(_ConstantPad):
    """One value around the last two axes.

    Args:
        padding: an int, or four ints (left, right, top, bottom); a negative number cuts.
        value: a number.

    >>> import mycelia as ms
    >>> print(ms.nn.ConstantPad2d((1, 0, 0, 1), 9)(ms.Tensor([[1, 2]])))
    [[9 1 2]
     [9 9 9]]
    """

    n = 2


class ConstantPad3d(_ConstantPad):
    """One value around the last three axes.

    Args:
        padding: an int, or six ints (left, right, top, bottom, front, back); a negative number cuts.
        value: a number.

    >>> import mycelia as ms
    >>> ms.nn.ConstantPad3d(1, 9)(ms.ops.ones((2, 3, 4))).shape
    (4, 5, 6)
    """

    n = 3


class ZeroPad2d(_BorderPad):
    """Zeros around the last two axes.

    Args:
        padding: an int, or four ints (left, right, top, bottom); a negative number cuts.

    >>> import mycelia as ms
    >>> print(ms.nn.ZeroPad2d((1, 0, 0, 1))(ms.Tensor([[1, 2]])))
    [[0 1 2]
     [0 0 0]]
    """

    n = 2
    mode = "constant"
    negative = True


class ReflectionPad1d(_BorderPad):
    """A mirror image, without the border itself, before and after the last axis.

    Args:
        padding: an int, or a pair (left, right), less than the length of the axis.

    Inputs:
        x: a tensor of shape (batch, channels, length), or (channels, length).

    Raises:
        ShapeError: the axis is too short, or the input has other axes.

    >>> import mycelia as ms
    >>> print(ms.nn.ReflectionPad1d((1, 2))(ms.Tensor([[1, 2, 3]])))
    [[2 1 2 3 2 1]]
    """

    n = 1
    mode = "reflect"


class ReflectionPad2d(_BorderPad):
    """A mirror image, without the border itself, around the last two axes.

    Args:
        padding: an int, or four ints (left, right, top, bottom), less than the lengths of the axes.

    Inputs:
        x: a tensor of shape (batch, channels, height, width), or without leading axes.

    Raises:
        ShapeError: an axis is too short, or the input has other axes.

    >>> import mycelia as ms
    >>> ms.nn.ReflectionPad2d(1)(ms.ops.ones((1, 3, 4))).shape
    (1, 5, 6)
    """

    n = 2
    mode = "reflect"

    def _least_rank(self) -> int:
        return 2


class ReflectionPad3d(_BorderPad):
    """A mirror image, without the border itself, around the last three axes.

    Args:
        padding: an int, or six ints (left, right, top, bottom, front, back).

    >>> import mycelia as ms
    >>> ms.nn.ReflectionPad3d(1)(ms.ops.ones((1, 2, 3, 4))).shape
    (1, 4, 5, 6)
    """

    n = 3
    mode = "reflect"


class ReplicationPad1d(_BorderPad):
    """The border repeated before and after the last axis.

    Args:
        padding: an int, or a pair (left, right).

    Inputs:
        x: a tensor of shape (batch, channels, length), or (channels, length).

    >>> import mycelia as ms
    >>> print(ms.nn.ReplicationPad1d((1, 2))(ms.Tensor([[1, 2, 3]])))
    [[1 1 2 3 3 3]]
    """

    n = 1
    mode = "replicate"


class ReplicationPad2d(_BorderPad):
    """The border repeated around the last two axes.

    Args:
        padding: an int, or four ints (left, right, top, bottom).

    >>> import mycelia as ms
    >>> ms.nn.ReplicationPad2d(1)(ms.ops.ones((1, 3, 4))).shape
    (1, 5, 6)
    """

    n = 2
    mode = "replicate"


class ReplicationPad3d(_BorderPad):
    """The border repeated around the last three axes.

    Args:
        padding: an int, or six ints (left, right, top, bottom, front, back).

    >>> import mycelia as ms
    >>> ms.nn.ReplicationPad3d(1)(ms.ops.ones((1, 2, 3, 4))).shape
    (1, 4, 5, 6)
    """

    n = 3
    mode = "replicate"
