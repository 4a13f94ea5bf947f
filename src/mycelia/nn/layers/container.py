"""Cells that hold Cells: in a row, as a list, as a dictionary.

Children are named by position (or key), and so are their parameters. When a child is added, taken out or
moved, the parameters below are renamed after the container's own place in the network.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, MissingKeyError, OutOfRangeError, StateError
from mycelia.nn.cell import Cell
from mycelia.tensor.tensor import bump_epoch

C = TypeVar("C", bound="_Container")


class _Container(Cell):
    """Children in ``_cells``, set all at once."""

    def __init__(self, auto_prefix: bool = True) -> None:
        super().__init__(auto_prefix)
        self.__dict__["_own_prefix"] = ""

    def _prefix(self) -> str:
        """What stands before the children's names in the names of parameters, e.g. ``"net.layers."``."""
        for path, param in self.parameters_and_names():
            if param.name.endswith(path):
                return param.name[: len(param.name) - len(path)]
        return str(self.__dict__["_own_prefix"])

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        super().update_parameters_name(prefix, recurse)
        self.__dict__["_own_prefix"] = prefix

    def _set_children(self, children: OrderedDict[str, Cell], prefix: str) -> None:
        own = self.__dict__
        old = dict(self._cells)
        for name in old:
            own.pop(name, None)
        own["_cells"] = children
        own.update(children)
        if self._auto_prefix:
            for name, cell in children.items():
                if old.get(name) is not cell:
                    cell.update_parameters_name(f"{prefix}{name}.")
        self._children_changed()
        bump_epoch()

    def _children_changed(self) -> None:
        """Called after every change."""

    def _checked(self, cell: Any) -> Cell:
        if not isinstance(cell, Cell):
            hint = f"make one: {cell.__name__}(...)" if isinstance(cell, type) and issubclass(cell, Cell) else None
            raise ArgumentTypeError(type(self).__name__, "cell", got=f"{cell!r}"[:80], takes="a Cell", hint=hint)
        return cell

    def __len__(self) -> int:
        return len(self._cells)

    def __bool__(self) -> bool:
        return len(self._cells) != 0

    def set_grad(self: C, flag: bool = True) -> C:
        """Mark that gradients are taken of this Cell and of all it holds; returns the Cell."""
        super().set_grad(flag)
        for cell in self.cells():
            cell.set_grad(flag)
        return self

    def __repr__(self) -> str:
        return super().__repr__() if self._cells else f"{type(self).__name__}()"


class _Sequence(_Container):
    """Children by position."""

    def _position(self, index: Any, *, inserting: bool = False) -> int:
        where, count = type(self).__name__, len(self)
        if isinstance(index, bool) or not isinstance(index, int):
            raise ArgumentTypeError(where, "index", got=f"{index!r} ({type(index).__name__})", takes="an int")
        last = count if inserting else count - 1
        if not -count <= index <= last:
            raise OutOfRangeError(
                where, "index", got=str(index), takes=f"{-count} to {last}" if count else "nothing yet"
            )
        return index + count if index < 0 else index

    def _put(self, items: list[tuple[str | None, Cell]]) -> None:
        """Make these the children; those without a name of their own are named by position."""
        self._set_children(
            OrderedDict((str(i) if name is None else name, cell) for i, (name, cell) in enumerate(items)),
            self._prefix(),
        )

    def _items(self) -> list[tuple[str | None, Cell]]:
        return [(None if name.isdigit() else name, cell) for name, cell in self._cells.items() if cell is not None]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(list(self._cells.items())[index])
        return self.cells()[self._position(index)]  # type: ignore[index]

    def _part(self, items: list[tuple[str, Any]]) -> Any:
        raise NotImplementedError

    def __setitem__(self, index: int, cell: Cell) -> None:
        items = self._items()
        position = self._position(index)
        items[position] = (items[position][0], self._checked(cell))
        self._put(items)

    def __delitem__(self, index: int | slice) -> None:
        items = self._items()
        if isinstance(index, slice):
            del items[index]
        else:
            del items[self._position(index)]
        self._put(items)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells())

    def append(self: C, cell: Cell) -> C:
        """Add a Cell at the end; returns the container.

        Raises:
            ArgumentTypeError: it is not a Cell.
        """
        self._put([*self._items(), (None, self._checked(cell))])
        return self

    def insert(self, index: int, cell: Cell) -> None:
        """Put a Cell before position ``index``.

        Raises:
            ArgumentTypeError: it is not a Cell, or ``index`` not an int.
            OutOfRangeError: there is no such position.
        """
        items = self._items()
        items.insert(self._position(index, inserting=True), (None, self._checked(cell)))
        self._put(items)


class SequentialCell(_Sequence):
    """Cells called one after the other, each with what the one before gave.

    Args:
        args: the Cells; or one list or tuple of them, or an OrderedDict of names and Cells.

    Inputs:
        input_data: what the first Cell takes.

    Outputs:
        What the last Cell gives; of an empty row, the input.

    Attributes:
        cell_list: the Cells.

    Raises:
        ArgumentTypeError: an element is not a Cell.

    >>> import mycelia as ms
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(3, 4), ms.nn.ReLU())
    >>> net.append(ms.nn.Dense(4, 2))(ms.ops.ones((5, 3))).shape
    (5, 2)
    >>> [p.name for p in net[0].get_parameters()]
    ['0.weight', '0.bias']
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        self.cell_list: list[Cell] = []
        if len(args) == 1 and isinstance(args[0], Mapping):
            self._set_children(OrderedDict((name, self._checked(cell)) for name, cell in args[0].items()), "")
        elif len(args) == 1 and isinstance(args[0], (list, tuple)):
            self._put([(None, self._checked(cell)) for cell in args[0]])
        else:
            self._put([(None, self._checked(cell)) for cell in args])

    def _children_changed(self) -> None:
        self.__dict__["cell_list"] = self.cells()

    def _part(self, items: list[tuple[str, Any]]) -> SequentialCell:
        made = SequentialCell()
        made.__dict__["_auto_prefix"] = False  # the Cells keep the names they have where they belong
        made._set_children(OrderedDict(items), "")
        return made

    def construct(self, input_data: Any) -> Any:
        for cell in self.cell_list:
            input_data = cell(input_data)
        return input_data


class CellList(_Sequence):
    """Cells in a list; it is not called, its elements are.

    Args:
        args: one list or tuple of Cells, or nothing.
        auto_prefix: name the parameters of the Cells by their position.

    Raises:
        ArgumentTypeError: an element is not a Cell, or is a CellDict.

    >>> import mycelia as ms
    >>> layers = ms.nn.CellList([ms.nn.Dense(3, 3) for _ in range(2)])
    >>> layers += [ms.nn.ReLU()]
    >>> x = ms.ops.ones((5, 3))
    >>> for layer in layers:
    ...     x = layer(x)
    >>> x.shape, len(layers[:2])
    ((5, 3), 2)
    """

    def __init__(self, *args: Any, auto_prefix: bool = True) -> None:
        super().__init__(auto_prefix)
        if len(args) > 1:
            raise ArgumentTypeError("CellList", "args", got=f"{len(args)} arguments", takes="one list of Cells")
        if args:
            self.extend(args[0])

    def _checked(self, cell: Any) -> Cell:
        if isinstance(cell, CellDict):
            raise ArgumentTypeError("CellList", "cell", got="a CellDict", takes="a Cell that is not a CellDict")
        return super()._checked(cell)

    def _part(self, items: list[tuple[str, Any]]) -> CellList:
        made = CellList(auto_prefix=False)
        made._put([(None, cell) for _, cell in items])
        return made

    def extend(self, cells: Any) -> CellList:
        """Add the Cells of a list at the end; returns the list.

        Raises:
            ArgumentTypeError: it is not a list or tuple of Cells.
        """
        if not isinstance(cells, (list, tuple, CellList)):
            raise ArgumentTypeError("CellList", "cells", got=type(cells).__name__, takes="a list of Cells")
        self._put([*self._items(), *[(None, self._checked(cell)) for cell in cells]])
        return self

    def __iadd__(self, cells: Any) -> CellList:
        return self.extend(cells)

    def construct(self, *inputs: Any) -> Any:
        raise StateError(
            "CellList", message="a CellList is not called; call its elements", hint="for cell in cells: ..."
        )


class CellDict(_Container):
    """Cells in a dictionary; it is not called, its values are.

    Args:
        args: one mapping of names to Cells, or an iterable of pairs, or nothing.
        auto_prefix: name the parameters of the Cells by their keys.

    Raises:
        ArgumentTypeError: a key is not a string or a value not a Cell (containers are refused).
        MissingKeyError: a key is empty, contains a dot, or is the name of a Cell's attribute.

    >>> import mycelia as ms
    >>> cells = ms.nn.CellDict({"fc": ms.nn.Dense(3, 4), "act": ms.nn.ReLU()})
    >>> cells["act"](cells["fc"](ms.ops.ones((5, 3)))).shape
    (5, 4)
    """

    def __init__(self, *args: Any, auto_prefix: bool = True) -> None:
        super().__init__(auto_prefix)
        if len(args) > 1:
            raise ArgumentTypeError("CellDict", "args", got=f"{len(args)} arguments", takes="one mapping")
        if args:
            self.update(args[0])

    def _checked(self, cell: Any) -> Cell:
        if isinstance(cell, _Container):
            raise ArgumentTypeError(
                "CellDict", "cell", got=f"a {type(cell).__name__}", takes="a Cell that holds no others by name"
            )
        return super()._checked(cell)

    def _key(self, key: Any) -> str:
        if not isinstance(key, str):
            raise ArgumentTypeError("CellDict", "key", got=f"{key!r} ({type(key).__name__})", takes="a string")
        if not key or "." in key:
            raise MissingKeyError("CellDict", "key", got=repr(key), takes="a name without dots")
        if key not in self._cells and (key in self.__dict__ or hasattr(type(self), key)):
            raise MissingKeyError("CellDict", "key", got=repr(key), takes="a name that no attribute of a Cell has")
        return key

    def __getitem__(self, key: str) -> Any:
        if key not in self._cells:
            raise MissingKeyError(
                "CellDict", "key", got=repr(key), takes=", ".join(map(repr, self._cells)) or "nothing yet"
            )
        return self._cells[key]

    def __setitem__(self, key: str, cell: Cell) -> None:
        self.update({key: cell})

    def __delitem__(self, key: str) -> None:
        self[key]
        self._set_children(OrderedDict((k, c) for k, c in self.items() if k != key), self._prefix())

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._cells))

    def __contains__(self, key: object) -> bool:
        return key in self._cells

    def clear(self) -> None:
        """Take all Cells out."""
        self._set_children(OrderedDict(), "")

    def pop(self, key: str) -> Cell:
        """Take a Cell out and return it.

        Raises:
            MissingKeyError: there is none of this name.
        """
        cell: Cell = self[key]
        del self[key]
        return cell

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._cells.keys()

    def values(self) -> Iterable[Any]:
        """The Cells."""
        return self._cells.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and Cells."""
        return self._cells.items()

    def update(self, cells: Any) -> None:
        """Add the Cells of a mapping or of an iterable of pairs; all are checked before any is added.

        Raises:
            ArgumentTypeError: it is neither, or a key or value has the wrong type.
            ArgumentValueError: an element of the iterable is not a pair.
        """
        if isinstance(cells, (Mapping, CellDict)):
            pairs = list(cells.items())
        elif isinstance(cells, Iterable):
            pairs = [self._pair(i, item) for i, item in enumerate(cells)]
        else:
            raise ArgumentTypeError(
                "CellDict", "cells", got=type(cells).__name__, takes="a mapping or an iterable of pairs"
            )
        checked = [(self._key(key), self._checked(cell)) for key, cell in pairs]
        merged = OrderedDict(self.items())
        merged.update(checked)
        self._set_children(merged, self._prefix())

    @staticmethod
    def _pair(i: int, item: Any) -> tuple[Any, Any]:
        if not isinstance(item, (tuple, list)):
            raise ArgumentTypeError("CellDict", f"cells[{i}]", got=type(item).__name__, takes="a pair of name and Cell")
        if len(item) != 2:
            raise ArgumentValueError(
                "CellDict", f"cells[{i}]", got=f"{len(item)} elements", takes="a pair of name and Cell"
            )
        return item[0], item[1]

    def construct(self, *inputs: Any) -> Any:
        raise StateError("CellDict", message="a CellDict is not called; call its values")
