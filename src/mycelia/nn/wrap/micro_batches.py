"""Cells that run a network on parts of the batch, one after another, and add up what it gives."""

from __future__ import annotations

from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.tensor import Tensor


def _check(where: str, network: Any, argument: str, count: Any) -> None:
    if not isinstance(network, Cell):
        raise ArgumentTypeError(where, "network", got=type(network).__name__, takes="a Cell")
    if isinstance(count, bool) or not isinstance(count, int):
        raise ArgumentTypeError(where, argument, got=f"{count!r} ({type(count).__name__})", takes="an int")
    if count < 1:
        raise ArgumentValueError(where, argument, got=str(count), takes="an int above 0")


def _summed(where: str, network: Any, parts: int, inputs: tuple[Tensor, ...]) -> Any:
    for i, x in enumerate(inputs):
        if not x.shape or x.shape[0] % parts:
            raise ShapeError(where, f"input {i}", got=f"shape {x.shape}", takes=f"a first axis divisible by {parts}")
    total = None
    for part in range(parts):
        rows = [x[x.shape[0] // parts * part : x.shape[0] // parts * (part + 1)] for x in inputs]
        output = network(*rows)
        total = output if total is None else total + output
    return total


class GradAccumulationCell(Cell):
    """The sum of a network's losses on ``micro_size`` parts of the batch.

    Args:
        network: returns the loss.
        micro_size: number of parts; it divides the first axis of every input.

    >>> import mycelia as ms
    >>> net = ms.nn.WithLossCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())
    >>> ms.nn.GradAccumulationCell(net, 2)(ms.ops.ones((4, 2)), ms.ops.zeros((4, 1))).shape
    ()
    """

    def __init__(self, network: Cell, micro_size: int) -> None:
        super().__init__(auto_prefix=False)
        _check("GradAccumulationCell", network, "micro_size", micro_size)
        self.network, self.micro_size = network, micro_size

    def construct(self, *inputs: Any) -> Any:
        return _summed("GradAccumulationCell", self.network, self.micro_size, inputs)


class MicroBatchInterleaved(Cell):
    """The sum of a network's outputs on ``interleave_num`` parts of the batch.

    Args:
        network: the network.
        interleave_num: number of parts; it divides the first axis of every input.

    >>> import mycelia as ms
    >>> net = ms.nn.WithLossCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())
    >>> ms.nn.MicroBatchInterleaved(net)(ms.ops.ones((4, 2)), ms.ops.zeros((4, 1))).shape
    ()
    """

    def __init__(self, network: Cell, interleave_num: int = 2) -> None:
        super().__init__(auto_prefix=False)
        _check("MicroBatchInterleaved", network, "interleave_num", interleave_num)
        self.network, self.interleave_num = network, interleave_num

    def construct(self, *inputs: Any) -> Any:
        return _summed("MicroBatchInterleaved", self.network, self.interleave_num, inputs)


class VirtualDatasetCellTriple(Cell):
    """Passes three inputs on to a network; kept for compatibility.

    Args:
        backbone: called with three inputs.
    """

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, a: Any, b: Any, c: Any) -> Any:
        return self._backbone(a, b, c)
