"""What collectives compute, as values: the functions users call check what they are given and say where it goes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NoReturn

import jax

from mycelia.core import cluster
from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError, UnsupportedError
from mycelia.ops import collectives
from mycelia.ops.arithmetic import add, mul
from mycelia.ops.creation import zeros
from mycelia.ops.extremum import maximum, minimum
from mycelia.ops.joining import concat
from mycelia.ops.logical import logical_and, logical_or
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import set_value
from mycelia.tensor.mode import is_staging

Ranks = tuple[int, ...]
Shape = tuple[int, ...]

#: How tensors are put together.
REDUCTIONS = ("sum", "prod", "max", "min", "avg")


class CommHandle:
    """What a call with ``async_op=True`` gives: :meth:`wait` returns when its results are there.

    Results may be used before that; whoever reads their values waits.
    """

    def __init__(self, results: Sequence[Tensor] = ()) -> None:
        self._results = tuple(results)

    def wait(self) -> None:
        """Wait for the results; inside a compiled function there is nothing to wait for."""
        if not is_staging():
            jax.block_until_ready([t._value for t in self._results if isinstance(t._value, jax.Array)])

    def __repr__(self) -> str:
        return f"CommHandle({len(self._results)} results)"


# checks -----------------------------------------------------------------------------------------------------------


def tensor(where: str, argument: str, value: Any) -> Tensor:
    """A tensor, and nothing else.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not isinstance(value, Tensor):
        raise ArgumentTypeError(where, argument, got=type(value).__name__, takes="a Tensor")
    return value


def tensors(where: str, argument: str, values: Any, count: int | None = None) -> list[Tensor]:
    """A list or tuple of tensors of one dtype.

    Raises:
        ArgumentTypeError: it is none.
        ArgumentValueError: there are not ``count`` of them.
        DTypeError: they differ in dtype.
    """
    if not isinstance(values, (list, tuple)):
        raise ArgumentTypeError(where, argument, got=type(values).__name__, takes="a list of Tensors")
    found = [tensor(where, f"{argument}[{i}]", v) for i, v in enumerate(values)]
    if count is not None and len(found) != count:
        raise ArgumentValueError(where, argument, got=f"{len(found)} tensors", takes=f"{count}, one for each rank")
    for i, t in enumerate(found):
        if t.dtype is not found[0].dtype:
            raise DTypeError(where, f"{argument}[{i}]", got=f"{t.dtype}", takes=f"{found[0].dtype}, as the first one")
    return found


def reduction(where: str, op: Any, dtype: DType, allowed: Sequence[str] = REDUCTIONS) -> str:
    """The name of a reduction that a dtype has.

    Raises:
        ArgumentTypeError: it is no str.
        ArgumentValueError: there is none of that name.
        DTypeError: the mean of whole numbers.
    """
    takes = ", ".join(f'"{name}"' for name in allowed)
    if not isinstance(op, str):
        raise ArgumentTypeError(where, "op", got=f"{op!r} ({type(op).__name__})", takes=f"one of {takes}")
    if op not in allowed:
        raise ArgumentValueError(where, "op", got=repr(op), takes=f"one of {takes}")
    if op == "avg" and not dtype.is_inexact:
        raise DTypeError(where, "op", got=f'"avg" of {dtype}', takes='"avg" of floats', hint='use "sum", and divide')
    if op in ("max", "min") and dtype.kind == "c":
        raise DTypeError(where, "op", got=f'"{op}" of {dtype}', takes='"sum", "prod" or "avg" of complex numbers')
    return op


def flag(where: str, async_op: Any) -> bool:
    """True or False, and nothing else."""
    if not isinstance(async_op, bool):
        raise ArgumentTypeError(where, "async_op", got=f"{async_op!r}", takes="True or False")
    return async_op


def fits(where: str, argument: str, out: Any, shape: Shape, dtype: DType) -> Tensor:
    """A tensor that a result can be written into.

    Raises:
        ArgumentTypeError: no tensor.
        ShapeError: of another shape.
        DTypeError: of another dtype.
    """
    found = tensor(where, argument, out)
    if found.shape != shape:
        raise ShapeError(where, argument, got=f"shape {found.shape}", takes=f"shape {shape}, that of the result")
    if found.dtype is not dtype:
        raise DTypeError(where, argument, got=f"{found.dtype}", takes=f"{dtype}, the dtype of what is sent")
    return found


def sizes(where: str, argument: str, given: Any, count: int) -> tuple[int, ...]:
    """Lengths, one for each rank.

    Raises:
        ArgumentTypeError: no ints.
        ArgumentValueError: not one for each rank, or a negative one.
    """
    if isinstance(given, Tensor):
        if given.is_symbolic:
            raise UnsupportedError(
                where, argument, got="a tensor that is computed in the graph", takes="Python ints",
                hint="shapes depend on the lengths, so they have to be known when the function is compiled",
            )  # fmt: skip
        given = given.asnumpy().reshape(-1).tolist()
    if not isinstance(given, (list, tuple)) or not all(type(n) is int for n in given):
        raise ArgumentTypeError(where, argument, got=repr(given), takes="a list of ints")
    if len(given) != count:
        raise ArgumentValueError(where, argument, got=f"{len(given)} lengths", takes=f"{count}, one for each rank")
    if any(n < 0 for n in given):
        raise ArgumentValueError(where, argument, got=str(list(given)), takes="lengths of 0 or more")
    return tuple(given)


def evenly(where: str, argument: str, shape: Shape, count: int) -> tuple[int, ...]:
    """The lengths of ``count`` equal parts of a first axis.

    Raises:
        ShapeError: there are none.
    """
    if not shape or shape[0] % count:
        raise ShapeError(
            where, argument, got=f"shape {shape}", takes=f"a first axis that {count} ranks share evenly",
            hint="give the sizes, where the function takes some, or pad the tensor",
        )  # fmt: skip
    return (shape[0] // count,) * count


def rows(where: str, argument: str, x: Tensor, count: int) -> None:
    """Refuse a tensor whose first axis is not as long as what is sent of it."""
    if not x.ndim or x.shape[0] != count:
        takes = f"a first axis of {count}, the sum of the sizes"
        raise ShapeError(where, argument, got=f"shape {x.shape}", takes=takes)


def wrong_shape(where: str, argument: str, shape: Shape, wanted: Shape) -> NoReturn:
    """Refuse a shape of a result."""
    raise ShapeError(where, argument, got=f"shape {shape}", takes=f"shape {wanted}, that of what comes")


def done(results: Sequence[Tensor], async_op: bool) -> CommHandle | None:
    """The handle that the user asked for, if any."""
    return CommHandle(results) if async_op else None


def write(out: Tensor, value: Tensor) -> Tensor:
    """Put a result into a tensor that :func:`fits`."""
    set_value(out, value)
    return out


# values -----------------------------------------------------------------------------------------------------------


def reduced(x: Tensor, op: str, ranks: Ranks) -> Tensor:
    """The reduction of the ranks' tensors, at each."""
    if op == "avg":
        return collectives.all_reduce(x, "sum", ranks) / len(ranks)
    return collectives.all_reduce(x, op, ranks)


def reduced_at(x: Tensor, op: str, root: int, ranks: Ranks) -> Tensor:
    """The reduction of the ranks' tensors at the rank at place ``root``, zeros at the others."""
    if op == "avg":
        return collectives.reduce_to(x, "sum", root, ranks) / len(ranks)
    return collectives.reduce_to(x, op, root, ranks)


def gathered(x: Tensor, ranks: Ranks) -> Tensor:
    """The ranks' tensors behind each other; numbers become a vector."""
    return collectives.all_gather(x if x.ndim else reshape(x, (1,)), ranks)


def reduced_parts(x: Tensor, op: str, ranks: Ranks) -> Tensor:
    """The part of the reduction that belongs to this rank."""
    if op == "avg":
        return collectives.reduce_scatter(x, "sum", ranks) / len(ranks)
    return collectives.reduce_scatter(x, op, ranks)


def gathered_uneven(x: Tensor, lengths: tuple[int, ...], ranks: Ranks) -> Tensor:
    """The ranks' tensors of different lengths, behind each other."""
    n = len(ranks)
    place = ranks.index(cluster.place().rank)
    send = (lengths[place],) * n
    sent = concat([x] * n, 0) if n > 1 else x
    made = collectives.exchange(sent, send, lengths, ranks)
    return made if sum(lengths) else made[:0]


def reduced_parts_uneven(x: Tensor, lengths: tuple[int, ...], op: str, ranks: Ranks) -> Tensor:
    """The part of the reduction that belongs to this rank, the parts being of different lengths."""
    n = len(ranks)
    mine = lengths[ranks.index(cluster.place().rank)]
    parts = collectives.exchange(x, lengths, (mine,) * n, ranks)
    if not mine:
        return parts[:0]
    stacked = reshape(parts, (n, mine, *x.shape[1:]))
    total = stacked[0]
    for i in range(1, n):
        total = _fold(total, stacked[i], op)
    return total / n if op == "avg" else total


def _fold(a: Tensor, b: Tensor, op: str) -> Tensor:
    if a.dtype.kind == "b":
        return logical_or(a, b) if op in ("sum", "max") else logical_and(a, b)
    return {"max": maximum, "min": minimum, "prod": mul}.get(op, add)(a, b)


def scattered(x: Tensor, part: Shape, root: int, ranks: Ranks) -> Tensor:
    """The part of shape ``part`` that the rank at place ``root`` has for this one in its tensor."""
    n = len(ranks)
    at_root = ranks[root] == cluster.place().rank
    rows = part[0]
    recv = tuple(rows if i == root else 0 for i in range(n))
    made = collectives.exchange(x if at_root else x[:0], ((rows if at_root else 0),) * n, recv, ranks)
    return made if rows else made[:0]


def gathered_at(x: Tensor, root: int, ranks: Ranks) -> Tensor | None:
    """The ranks' tensors behind each other at the rank at place ``root``; None at the others."""
    n = len(ranks)
    at_root = ranks[root] == cluster.place().rank
    rows = x.shape[0]
    send = tuple(rows if i == root else 0 for i in range(n))
    made = collectives.exchange(x, send, ((rows if at_root else 0),) * n, ranks)
    if not at_root:
        return None
    return made if rows else made[:0]


def exchanged(x: Tensor, send: tuple[int, ...], recv: tuple[int, ...], ranks: Ranks) -> Tensor | None:
    """What came from each rank, behind each other; None if nothing does."""
    made = collectives.exchange(x, send, recv, ranks)
    return made if sum(recv) else None


def pieces(x: Tensor | None, shapes: Sequence[Shape], dtype: DType) -> list[Tensor]:
    """A flat tensor cut into tensors of some shapes."""
    counts = [count(shape) for shape in shapes]
    ends = list(accumulate(counts))
    return [
        zeros(shape, dtype) if x is None or not n else reshape(x[end - n : end], shape)
        for shape, n, end in zip(shapes, counts, ends, strict=True)
    ]


def count(shape: Shape) -> int:
    """The number of elements of a shape."""
    total = 1
    for length in shape:
        total *= length
    return total


def flat(values: Sequence[Tensor]) -> tuple[Tensor, tuple[int, ...]]:
    """Tensors behind each other in one vector, and how many elements each has."""
    vectors = [reshape(t, (-1,)) for t in values]
    return (vectors[0] if len(vectors) == 1 else concat(vectors, 0)), tuple(int(v.shape[0]) for v in vectors)
