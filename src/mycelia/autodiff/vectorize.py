"""``vmap``: a function of single examples as a function of batches.

The function is staged once on one row of each mapped argument, and its graph is mapped
(:mod:`mycelia.autodiff.batching`). The mapped axes are brought to the front before and to their places after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycelia.autodiff.batching import stage_vmap
from mycelia.autodiff.capturing import Captured, StagedTransform, capture
from mycelia.core import tree
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    OutOfRangeError,
    ShapeError,
    UnsupportedError,
)
from mycelia.ir.types import TensorType
from mycelia.ops.joining import stack
from mycelia.ops.operands import as_tensor
from mycelia.ops.shape import broadcast_to, moveaxis
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import set_value

_Axes = Any


class Vmapped(StagedTransform):
    """A function together with the axes it is mapped over; made by :func:`vmap`.

    Attributes:
        fn: the function, Cell, or list of Cells.
        in_axes: an int, None, or a nest of them.
        out_axes: an int, None, or a nest of them.
    """

    def __init__(self, fn: Any, in_axes: _Axes, out_axes: _Axes) -> None:
        self.fn, self.in_axes, self.out_axes = fn, in_axes, out_axes
        self.__name__ = f"vmap_of_{getattr(fn, '__name__', type(fn).__name__)}"

    @property
    def compile_key(self) -> tuple[Any, ...]:
        """What tells compiled maps of one function apart."""
        return ("vmap", self.in_axes, self.out_axes)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Stage the map into the graph being built."""
        cells = list(self.fn) if _is_cell_list(self.fn) else []
        leaves = tree.leaves(args)
        axes = _input_axes(self.in_axes, args)
        size = _size(leaves, axes, _labels(args), [len(cells)] if cells else [])
        weights = _stacked_parameters(cells)
        moved = [x if a is None else _to_front(x, a) for x, a in zip(leaves, axes, strict=True)]
        types = [None if a is None else _row_type(x) for x, a in zip(moved, axes, strict=True)]
        found = capture(
            cells[0] if cells else self.fn, args, kwargs, types, [(p, _row_type(s)) for p, s in weights]
        )  # fmt: skip
        inputs = [x for x, a in zip(moved, axes, strict=True) if a is not None] + [s for _, s in weights]
        mapped = [True] * len(inputs) + [False] * len(found.operands)
        outs, batched = stage_vmap(found.graph, [*inputs, *found.operands], mapped, size)
        _store(found, outs, batched, cells)
        return _placed(found, outs, batched, self.out_axes, size)


def _is_cell_list(fn: Any) -> bool:
    """Whether ``fn`` is an ``nn.CellList``, which stands above this layer."""
    return any(k.__name__ == "CellList" for k in type(fn).__mro__)


def _row_type(x: Tensor) -> TensorType:
    return TensorType(x.dtype, x.shape[1:])


def _to_front(x: Tensor, axis: int) -> Tensor:
    return x if axis == 0 else moveaxis(x, axis, 0)


def _labels(args: tuple[Any, ...]) -> list[int]:
    """The position of the argument each leaf belongs to."""
    return [i for i, a in enumerate(args) for _ in tree.leaves(a)]


def _input_axes(in_axes: _Axes, args: tuple[Any, ...]) -> list[int | None]:
    """For each leaf of the arguments the axis it is mapped over, non-negative, or None."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ArgumentValueError(
            "vmap", "in_axes", got=f"{len(in_axes)} entries, {in_axes}",
            takes=f"one for each of the {len(args)} positional arguments, or a single int",
        )  # fmt: skip
    given: list[int | None] = []
    for i, arg in enumerate(args):
        axis = in_axes[i] if isinstance(in_axes, tuple) else in_axes
        given += _spread(axis, arg, f"argument {i}")
    checked: list[int | None] = []
    for x, axis, i in zip(tree.leaves(args), given, _labels(args), strict=True):
        if axis is None:
            checked.append(None)
            continue
        if not isinstance(x, Tensor):
            raise ArgumentTypeError(
                "vmap", f"argument {i}", got=type(x).__name__, takes="a Tensor, as it is mapped",
                hint="give it None in in_axes to pass it to every row as it is",
            )  # fmt: skip
        if not -x.ndim <= axis < x.ndim:
            raise OutOfRangeError(
                "vmap", "in_axes", got=f"axis {axis} for argument {i} of shape {x.shape}",
                takes=f"an axis from {-x.ndim} to {x.ndim - 1}" if x.ndim else "None, as it has no axes",
            )  # fmt: skip
        checked.append(axis % x.ndim)
    return checked


def _spread(axis: Any, nest: Any, what: str) -> list[int | None]:
    """The axes of a nest's leaves: one for all of them, or a nest of the same structure."""
    if axis is None or isinstance(axis, int):
        return [axis] * len(tree.leaves(nest))
    items = list(nest) if isinstance(nest, (tuple, list)) else None
    if items is None or len(items) != len(axis):
        got = f"a {type(nest).__name__}" if items is None else f"{len(items)} elements"
        raise ArgumentValueError("vmap", what, got=got, takes=f"{len(axis)} elements, for the axes {axis}")
    return [a for sub, x in zip(axis, items, strict=True) for a in _spread(sub, x, what)]


def _size(leaves: list[Any], axes: list[int | None], labels: list[int], others: list[int]) -> int:
    found = [(i, x.shape[a], a) for x, a, i in zip(leaves, axes, labels, strict=True) if a is not None]
    sizes = {n for _, n, _ in found} | set(others)
    if not sizes:
        raise ArgumentValueError(
            "vmap", "in_axes", got="no axis to map over", takes="an axis of at least one argument",
            hint="call the function itself if nothing is mapped",
        )  # fmt: skip
    if len(sizes) > 1:
        said = ", ".join([f"{n} along axis {a} of argument {i}" for i, n, a in found])
        said += "".join([f"{', ' if said else ''}{n} Cells in the list" for n in others])
        raise ShapeError("vmap", "in_axes", got=f"sizes that differ: {said}", takes="mapped axes of one length")
    return sizes.pop()


def _stacked_parameters(cells: Sequence[Any]) -> list[tuple[Parameter, Tensor]]:
    """The parameters of the first Cell, each with those of all Cells stacked."""
    if not cells:
        return []
    columns = [list(cell.get_parameters()) for cell in cells]
    kinds = [[(p.dtype, p.shape) for p in column] for column in columns]
    for i, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise ArgumentValueError(
                "vmap", "fn", got=f"a CellList whose element {i} has other parameters than element 0",
                takes="Cells of one structure",
            )  # fmt: skip
    return [(column[0], stack(list(column))) for column in zip(*columns, strict=True)]


def _store(found: Captured, outs: list[Tensor], batched: list[bool], cells: Sequence[Any]) -> None:
    """Store what the function wrote; rows of an ensemble's parameters go to the Cell they belong to."""
    own = {id(p): [list(c.get_parameters())[k] for c in cells] for k, p in enumerate(_parameters(cells))}
    n_out = found.n_out
    for k, t in enumerate(found.written):
        if batched[n_out + k] and id(t) not in own:
            node = found.graph.outputs[n_out + k].node
            name = f"parameter '{t.name}'" if isinstance(t, Parameter) else f"a tensor of shape {t.shape}"
            raise UnsupportedError(
                "vmap", message=f"{name} from outside is written with a value that depends on a mapped argument, "
                "so every row has another one",
                hint="return the value, and store what you want of it (its mean, say) outside vmap",
                location=None if node is None else node.location,
            )  # fmt: skip
    for k, t in enumerate(found.written):
        new = outs[n_out + k]
        if id(t) not in own:
            set_value(t, new)
            continue
        for i, p in enumerate(own[id(t)]):
            set_value(p, new[i] if batched[n_out + k] else new)


def _parameters(cells: Sequence[Any]) -> list[Parameter]:
    return list(cells[0].get_parameters()) if cells else []


def _placed(found: Captured, outs: list[Tensor], batched: list[bool], out_axes: _Axes, size: int) -> Any:
    """The results with their mapped axes where they belong."""
    nest = tree.unflatten(found.treedef, list(range(len(found.leaves))))
    if isinstance(out_axes, tuple) and not (isinstance(nest, (tuple, list)) and len(nest) == len(out_axes)):
        n = len(nest) if isinstance(nest, (tuple, list)) else 1
        raise ArgumentValueError(
            "vmap", "out_axes", got=f"{len(out_axes)} entries, {out_axes}",
            takes=f"one for each of the {n} outputs, or a single int",
        )  # fmt: skip
    axes = _spread(out_axes, nest, "out_axes")
    given = iter(zip(outs, batched, strict=False))
    made = []
    for i, (leaf, axis) in enumerate(zip(found.leaves, axes, strict=True)):
        x, is_batched = next(given) if isinstance(leaf, Tensor) else (leaf, False)
        made.append(_with_axis(x, is_batched, axis, i, size))
    return tree.unflatten(found.treedef, made)


def _with_axis(x: Any, batched: bool, axis: int | None, index: int, size: int) -> Any:
    if axis is None:
        if batched:
            raise ArgumentValueError(
                "vmap", "out_axes", got=f"None for output {index}, which depends on a mapped argument",
                takes="the axis where its rows are to stand",
            )  # fmt: skip
        return x
    if not isinstance(x, (Tensor, bool, int, float, complex)):
        return x
    if not batched:
        row = as_tensor(x, "vmap", "fn")
        x = broadcast_to(row, (size, *row.shape))
    if not -x.ndim <= axis < x.ndim:
        raise OutOfRangeError(
            "vmap", "out_axes", got=f"axis {axis} for output {index}, of shape {x.shape[1:]} in each row",
            takes=f"an axis from {-x.ndim} to {x.ndim - 1}",
        )  # fmt: skip
    return x if axis in (0, -x.ndim) else moveaxis(x, 0, axis)


def _canonical(axes: Any, argument: str) -> _Axes:
    """Axes as ints, None and tuples of them."""
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        return axes
    if isinstance(axes, (tuple, list)):
        return tuple([_canonical(a, argument) for a in axes])
    raise ArgumentTypeError("vmap", argument, got=repr(axes), takes="ints and Nones, or tuples of them")


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """The function that applies ``fn`` to every row of its arguments at once.

    Args:
        fn: a function or Cell of tensors; it sees one row, without the mapped axis. Or a CellList of Cells of
            one structure: Cell i is applied to row i (or each to the whole argument, with ``in_axes=None``).
        in_axes: the axis to map over: an int for all tensors of all arguments, or a tuple with an int, None
            (the argument is given to every row as it is) or a nest of them for each positional argument.
        out_axes: where the rows stand in the results: an int for all, or a tuple (nested, if the outputs are)
            with one for each output; None for an output that is the same for all rows and is not repeated.

    Returns:
        A function of the same arguments, each mapped one with an additional axis. Keyword arguments are given
        to every row as they are.

    Random operators draw the same numbers for every row; draw outside and map over the draws for others.
    ``print`` prints the whole batch, after the rest has run. A parameter that is written must get the same
    value in every row.

    Raises:
        ArgumentTypeError: an axis is not an int or None; a mapped argument is not a Tensor.
        ArgumentValueError: no argument is mapped; the length of ``in_axes`` or ``out_axes`` is not that of the
            arguments or outputs; None as the out axis of a mapped output.
        OutOfRangeError: an axis is out of range.
        ShapeError: mapped axes differ in length.
        UnsupportedError: a parameter is written with a value that depends on a mapped argument.

    >>> import mycelia as ms
    >>> x, y = ms.Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), ms.Tensor([10.0, 20.0])
    >>> dot = ms.vmap(lambda a, b: (a * b).sum(), in_axes=(0, None))
    >>> print(dot(x, y))
    [ 50. 110. 170.]
    >>> print(ms.vmap(ms.grad(lambda a: (a * a).sum()))(x))
    [[ 2.  4.]
     [ 6.  8.]
     [10. 12.]]
    """
    if not callable(fn):
        raise ArgumentTypeError("vmap", "fn", got=type(fn).__name__, takes="a function, a Cell or a CellList")
    return Vmapped(fn, _canonical(in_axes, "in_axes"), _canonical(out_axes, "out_axes"))
