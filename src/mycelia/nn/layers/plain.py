"""The base of layers that are made without arguments."""

from __future__ import annotations

from mycelia.nn.cell import Cell


class PlainCell(Cell):
    """A Cell without options; an argument is refused by Python itself.

    >>> import mycelia as ms
    >>> ms.nn.ReLU(True)
    Traceback (most recent call last):
    TypeError: PlainCell.__init__() takes 1 positional argument but 2 were given
    """

    def __init__(self) -> None:
        super().__init__()
