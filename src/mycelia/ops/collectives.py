"""Operators in which ranks communicate. Every rank of a group calls the same ones in the same order.

``ranks`` is the group in its order; a rank's number in it is its position there. The rules of differentiation take
the sum of what the ranks' losses are as the one that is differentiated: the transpose of giving a value to many is
the sum of their cotangents.

What goes from one rank to many, or from many to one, goes along a binomial tree: each rank but the root gets (or sends)
the tensor once, in as many rounds as the number of ranks has bits. What goes to each rank alone goes in shifts: in
round k a rank sends to the one k places on and gets from the one k places back, sizes being any. Sends wait for their
receivers, so all ranks take their steps in one order, by round and sender: the first step that is not done can always
be done, and nobody waits for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import cluster
from mycelia.core.cluster import AXIS
from mycelia.core.dtypes import DType, as_dtype
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.evaluate import after
from mycelia.ir.primitive import COLLECTIVE, OWN_PART, Primitive
from mycelia.ir.types import TensorType, Types
from mycelia.ops.communicating import agreement
from mycelia.ops.creation import zeros
from mycelia.ops.joining import concat
from mycelia.ops.reduction import prod
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, scalar, type_of
from mycelia.tensor.mode import is_staging

Ranks = tuple[int, ...]
#: One tensor on its way: sender, receiver, shape, dtype.
Step = tuple[int, int, tuple[int, ...], DType]


def is_me(rank: int) -> bool:
    """Whether a rank is this process."""
    return rank == cluster.place().rank


def _groups(ranks: Ranks) -> list[list[int]]:
    """All ranks in groups, of one size if they can be."""
    size = cluster.place().size
    whole = cluster.partition(ranks)
    return whole if whole is not None else [list(ranks), *[[r] for r in range(size) if r not in ranks]]


def _even(ranks: Ranks) -> bool:
    return cluster.partition(ranks) is not None


def _position(ranks: Ranks) -> Any:
    """This rank's place in the group, as the program computes it."""
    table = np.zeros(cluster.place().size, np.int32)
    table[list(ranks)] = np.arange(len(ranks))
    return jnp.asarray(table)[lax.axis_index(AXIS)]


def _sum(x: Any, ranks: Ranks) -> Any:
    if x.dtype == jnp.bool_:
        return lax.psum(x.astype(jnp.uint8), AXIS, axis_index_groups=_groups(ranks)) > 0
    return lax.psum(x, AXIS, axis_index_groups=_groups(ranks))


def _bits(x: Any) -> Any:
    """The array as whole numbers of its width."""
    if x.dtype == jnp.bool_:
        return x.astype(jnp.uint8)
    if jnp.issubdtype(x.dtype, jnp.integer):
        return x
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return jnp.stack([_bits(x.real), _bits(x.imag)])
    return lax.bitcast_convert_type(x, jnp.dtype(f"uint{8 * x.dtype.itemsize}"))


def _from_bits(bits: Any, dtype: Any) -> Any:
    if dtype == jnp.bool_:
        return bits > 0
    if jnp.issubdtype(dtype, jnp.integer):
        return bits
    if jnp.issubdtype(dtype, jnp.complexfloating):
        part = jnp.dtype(f"float{4 * dtype.itemsize}")
        return lax.complex(_from_bits(bits[0], part), _from_bits(bits[1], part))
    return lax.bitcast_convert_type(bits, dtype)


def _tree(ranks: Ranks, root: int) -> list[list[tuple[int, int]]]:
    """The rounds in which what the rank at place ``root`` has comes to all: pairs of sender and receiver."""
    n = len(ranks)
    at = [ranks[(root + i) % n] for i in range(n)]
    spans = [1 << k for k in range((n - 1).bit_length())]
    return [[(at[i], at[i + span]) for i in range(min(span, n - span))] for span in spans]


def _among(ranks: Sequence[int]) -> Any:
    """Whether this rank is one of some, as the program computes it."""
    table = np.zeros(cluster.place().size, np.bool_)
    table[list(ranks)] = True
    return jnp.asarray(table)[lax.axis_index(AXIS)]


def _run(op: Primitive, x: Tensor, ranks: Ranks, **attrs: Any) -> Tensor:
    """Apply a primitive of which all ``ranks`` have to give tensors of one type."""
    if agreement.enabled and not is_staging() and len(ranks) > 1:
        agreement.check(op.name, type_of(x), ranks, attrs)
    return apply(op, x, ranks=ranks, **attrs)  # type: ignore[no-any-return]


def _check_length(where: str, x: TensorType, axis: int, parts: int) -> None:
    if x.rank <= axis or x.shape[axis] % parts:
        raise ShapeError(
            where, "tensor", got=f"shape {x.shape}", takes=f"an axis {axis} that {parts} ranks share evenly",
        )  # fmt: skip


# all_reduce ------------------------------------------------------------------------------------------------------


def _infer_same(x: TensorType, **attrs: Any) -> TensorType:
    return x


def _lower_all_reduce(x: Any, *, reduction: str, ranks: Ranks) -> Any:
    if len(ranks) == 1:
        return x
    if reduction == "sum":
        return _sum(x, ranks)
    if reduction == "prod":
        return _gathered(x[None], ranks).prod(0, dtype=x.dtype)
    if x.dtype == jnp.bool_:
        return _lower_all_reduce(x.astype(jnp.uint8), reduction=reduction, ranks=ranks) > 0
    if jnp.issubdtype(x.dtype, jnp.inexact):  # NaN from any rank is kept, which the libraries do not promise
        return (_gathered(x[None], ranks).max if reduction == "max" else _gathered(x[None], ranks).min)(0)
    reduce: Any = lax.pmax if reduction == "max" else lax.pmin
    return reduce(x, AXIS, axis_index_groups=_groups(ranks))


def _vjp_all_reduce(ct: Any, x: Tensor, out: Tensor, *, reduction: str, ranks: Ranks) -> Sequence[Any]:
    if reduction == "sum":
        return (lambda: all_reduce(ct, "sum", ranks),)
    if reduction == "prod":
        return (lambda: all_reduce(ct, "sum", ranks) * _product_of_others(x, ranks),)
    return (lambda: all_reduce(ct, "sum", ranks) * (x == out).astype(ct.dtype),)


def _product_of_others(x: Tensor, ranks: Ranks) -> Tensor:
    """The product of the other ranks' tensors: no quotient, since an element may be zero."""
    place = ranks.index(cluster.place().rank)
    every = all_gather(x[None], ranks)
    others = concat([every[:place], every[place + 1 :]], 0)
    return prod(others, 0)


all_reduce_p = Primitive(
    "all_reduce", infer=_infer_same, lower=_lower_all_reduce, vjp=_vjp_all_reduce, effects=(COLLECTIVE,)
)


def all_reduce(x: Tensor, reduction: str, ranks: Ranks) -> Tensor:
    """The ``sum``, ``max``, ``min`` or ``prod`` of the ranks' tensors, at each of them."""
    return _run(all_reduce_p, x, ranks, reduction=reduction)


# all_gather, reduce_scatter --------------------------------------------------------------------------------------


def _gathered(x: Any, ranks: Ranks) -> Any:
    if _even(ranks):
        return lax.all_gather(x, AXIS, axis_index_groups=_groups(ranks), axis=0, tiled=True)
    bits = _bits(x)
    start = 1 if jnp.issubdtype(x.dtype, jnp.complexfloating) else 0
    length = x.shape[0]
    room = list(bits.shape)
    room[start] = length * len(ranks)
    at = lax.dynamic_update_slice_in_dim(jnp.zeros(room, bits.dtype), bits, _position(ranks) * length, start)
    return _from_bits(_sum(at, ranks), x.dtype)


def _infer_all_gather(x: TensorType, *, ranks: Ranks) -> TensorType:
    if not x.rank:
        raise ShapeError("all_gather", "tensor", got="shape ()", takes="one axis or more")
    return TensorType(x.dtype, (x.shape[0] * len(ranks), *x.shape[1:]))


def _lower_all_gather(x: Any, *, ranks: Ranks) -> Any:
    return x if len(ranks) == 1 else _gathered(x, ranks)


def _vjp_all_gather(ct: Any, x: Tensor, out: Tensor, *, ranks: Ranks) -> Sequence[Any]:
    return (lambda: reduce_scatter(ct, "sum", ranks),)


all_gather_p = Primitive(
    "all_gather", infer=_infer_all_gather, lower=_lower_all_gather, vjp=_vjp_all_gather, effects=(COLLECTIVE,)
)


def all_gather(x: Tensor, ranks: Ranks) -> Tensor:
    """The ranks' tensors, one behind the other along the first axis, at each of them."""
    return _run(all_gather_p, x, ranks)


def _infer_reduce_scatter(x: TensorType, *, reduction: str, ranks: Ranks) -> TensorType:
    _check_length("reduce_scatter", x, 0, len(ranks))
    return TensorType(x.dtype, (x.shape[0] // len(ranks), *x.shape[1:]))


def _lower_reduce_scatter(x: Any, *, reduction: str, ranks: Ranks) -> Any:
    if len(ranks) == 1:
        return x
    if reduction == "sum" and _even(ranks) and x.dtype != jnp.bool_:
        return lax.psum_scatter(x, AXIS, axis_index_groups=_groups(ranks), scatter_dimension=0, tiled=True)
    part = x.shape[0] // len(ranks)
    whole = _lower_all_reduce(x, reduction=reduction, ranks=ranks)
    return lax.dynamic_slice_in_dim(whole, _position(ranks) * part, part)


def _vjp_reduce_scatter(ct: Any, x: Tensor, out: Tensor, *, reduction: str, ranks: Ranks) -> Sequence[Any]:
    if reduction == "sum":
        return (lambda: all_gather(ct, ranks),)
    if reduction == "prod":
        return (lambda: all_gather(ct, ranks) * _product_of_others(x, ranks),)
    return (lambda: all_gather(ct, ranks) * (x == all_gather(out, ranks)).astype(ct.dtype),)


reduce_scatter_p = Primitive(
    "reduce_scatter", infer=_infer_reduce_scatter, lower=_lower_reduce_scatter, vjp=_vjp_reduce_scatter,
    effects=(COLLECTIVE,),
)  # fmt: skip


def reduce_scatter(x: Tensor, reduction: str, ranks: Ranks) -> Tensor:
    """The part of the reduced tensor along the first axis that belongs to each rank."""
    return _run(reduce_scatter_p, x, ranks, reduction=reduction)


# all_to_all ------------------------------------------------------------------------------------------------------


def _infer_all_to_all(x: TensorType, *, split: int, concat: int, ranks: Ranks) -> TensorType:
    _check_length("all_to_all", x, split, len(ranks))
    shape = list(x.shape)
    shape[split] //= len(ranks)
    shape[concat] *= len(ranks)
    return TensorType(x.dtype, tuple(shape))


def _lower_all_to_all(x: Any, *, split: int, concat: int, ranks: Ranks) -> Any:
    n = len(ranks)
    if n == 1:
        return x
    if _even(ranks):
        return lax.all_to_all(x, AXIS, split, concat, axis_index_groups=_groups(ranks), tiled=True)
    every = _gathered(x[None], ranks)
    part = x.shape[split] // n
    mine = lax.dynamic_slice_in_dim(every, _position(ranks) * part, part, split + 1)
    return jnp.concatenate(list(mine), concat)


def _vjp_all_to_all(ct: Any, x: Tensor, out: Tensor, *, split: int, concat: int, ranks: Ranks) -> Sequence[Any]:
    return (lambda: all_to_all(ct, concat, split, ranks),)


all_to_all_p = Primitive(
    "all_to_all", infer=_infer_all_to_all, lower=_lower_all_to_all, vjp=_vjp_all_to_all, effects=(COLLECTIVE,)
)


def all_to_all(x: Tensor, split: int, concat: int, ranks: Ranks) -> Tensor:
    """Parts along axis ``split``, one for each rank; what came from each, joined along axis ``concat``."""
    return _run(all_to_all_p, x, ranks, split=split, concat=concat)


# broadcast, reduce, scatter --------------------------------------------------------------------------------------


def _lower_broadcast(x: Any, *, root: int, ranks: Ranks) -> Any:
    for pairs in _tree(ranks, root):
        x = jnp.where(_among([b for _, b in pairs]), lax.ppermute(x, AXIS, pairs), x)
    return x


def _vjp_broadcast(ct: Any, x: Tensor, out: Tensor, *, root: int, ranks: Ranks) -> Sequence[Any]:
    return (lambda: reduce_to(ct, "sum", root, ranks),)


broadcast_p = Primitive(
    "broadcast_from", infer=_infer_same, lower=_lower_broadcast, vjp=_vjp_broadcast, effects=(COLLECTIVE,)
)


def broadcast(x: Tensor, root: int, ranks: Ranks) -> Tensor:
    """The tensor of the rank at place ``root`` of the group, at each of them."""
    return _run(broadcast_p, x, ranks, root=root)


_FOLDS: dict[str, Any] = {"sum": jnp.add, "prod": jnp.multiply, "max": jnp.maximum, "min": jnp.minimum}


def _lower_reduce_to(x: Any, *, reduction: str, root: int, ranks: Ranks) -> Any:
    if len(ranks) == 1:
        return x
    fold = _FOLDS[reduction]
    for pairs in reversed(_tree(ranks, root)):
        got = lax.ppermute(x, AXIS, [(b, a) for a, b in pairs])
        x = jnp.where(_among([a for a, _ in pairs]), fold(x, got), x)
    return jnp.where(lax.axis_index(AXIS) == ranks[root], x, jnp.zeros_like(x))


def _vjp_reduce_to(ct: Any, x: Tensor, out: Tensor, *, reduction: str, root: int, ranks: Ranks) -> Sequence[Any]:
    if reduction == "sum":
        return (lambda: broadcast(ct, root, ranks),)
    if reduction == "prod":
        return (lambda: broadcast(ct, root, ranks) * _product_of_others(x, ranks),)
    return (lambda: broadcast(ct, root, ranks) * (x == broadcast(out, root, ranks)).astype(ct.dtype),)


reduce_to_p = Primitive(
    "reduce_to", infer=_infer_same, lower=_lower_reduce_to, vjp=_vjp_reduce_to, effects=(COLLECTIVE,)
)


def reduce_to(x: Tensor, reduction: str, root: int, ranks: Ranks) -> Tensor:
    """The ``sum``, ``max``, ``min`` or ``prod`` of the ranks' tensors at place ``root``, zeros elsewhere."""
    return _run(reduce_to_p, x, ranks, reduction=reduction, root=root)


def _lower_at_root(x: Any, *, root: int, ranks: Ranks) -> Any:
    if len(ranks) == 1:
        return x
    return jnp.where(lax.axis_index(AXIS) == ranks[root], x, jnp.zeros_like(x))


def _vjp_at_root(ct: Any, x: Tensor, out: Tensor, *, root: int, ranks: Ranks) -> Sequence[Any]:
    return (lambda: at_root(ct, root, ranks),)


#: Reads the number of the rank, so that it runs where collectives do.
at_root_p = Primitive("at_root", infer=_infer_same, lower=_lower_at_root, vjp=_vjp_at_root, effects=(COLLECTIVE,))


def at_root(x: Tensor, root: int, ranks: Ranks) -> Tensor:
    """The tensor at the rank at place ``root``, zeros at the others."""
    return apply(at_root_p, x, root=root, ranks=ranks)  # type: ignore[no-any-return]


# send and receive ------------------------------------------------------------------------------------------------


def _lower_permute(x: Any, *, pairs: tuple[tuple[int, int], ...]) -> Any:
    return lax.ppermute(x, AXIS, pairs)


def _vjp_permute(ct: Any, x: Tensor, out: Tensor, *, pairs: tuple[tuple[int, int], ...]) -> Sequence[Any]:
    return (lambda: permute(ct, tuple((b, a) for a, b in pairs)),)


permute_p = Primitive(
    "permute", infer=_infer_same, lower=_lower_permute, vjp=_vjp_permute, effects=(COLLECTIVE, OWN_PART)
)


def permute(x: Tensor, pairs: tuple[tuple[int, int], ...]) -> Tensor:
    """Each pair's second rank gets the first one's tensor; a rank that gets none has zeros.

    Only the ranks named in the pairs take part.

    Raises:
        ArgumentValueError: a rank sends to itself, sends twice or gets twice.
    """
    for number, what in ((0, "sends"), (1, "gets")):
        ends = [pair[number] for pair in pairs]
        twice = next((r for r in ends if ends.count(r) > 1), None)
        if twice is not None:
            raise ArgumentValueError("permute", "pairs", got=f"a rank {twice} that {what} twice", takes="once at most")
    for a, b in pairs:
        if a == b:
            raise ArgumentValueError("permute", "pairs", got=f"rank {a} to itself", takes="two ranks")
    return apply(permute_p, x, pairs=pairs)  # type: ignore[no-any-return]


# any tensors between any two -------------------------------------------------------------------------------------


def in_order(steps: Sequence[Step]) -> list[int]:
    """The places of steps in the order that all ranks take them in: by how far they go, then by sender.

    Steps from one rank to another keep their order.
    """
    size = cluster.place().size
    return sorted(range(len(steps)), key=lambda k: ((steps[k][1] - steps[k][0]) % size, steps[k][0]))


def _move(arrays: Sequence[Any], steps: Sequence[Step], last: Any) -> tuple[list[Any], Any]:
    """Take steps in their order, after ``last``: what came, and the last thing that did, which results wait for."""
    me = cluster.place().rank
    sent = iter(arrays)
    came: list[Any] = []
    k = 0
    while k < len(steps):
        here = [steps[k]]
        follows = steps[k + 1] if k + 1 < len(steps) else None
        if follows is not None and follows[2:] == here[0][2:] and (follows[0] == me) != (here[0][0] == me):
            here.append(follows)  # one to send and one to get, of one type: at the same time
        k += len(here)
        x = next(sent) if any(s[0] == me for s in here) else jnp.zeros(here[0][2], here[0][3].np)
        got = x
        if x.size:
            got = last = lax.ppermute(after(x, last), AXIS, [s[:2] for s in here])
        if any(s[1] == me for s in here):
            came.append(got)
    return came, last


def _infer_transfers(token: TensorType, *sent: TensorType, steps: tuple[Step, ...]) -> Types:
    me = cluster.place().rank
    came = [TensorType(dtype, shape) for _, to, shape, dtype in steps if to == me]
    return tuple(came) or (TensorType(_UINT8, ()),)


def _lower_transfers(token: Any, *sent: Any, steps: tuple[Step, ...]) -> Any:
    came, last = _move(sent, steps, token)
    if not came:
        came = [jnp.zeros((), jnp.uint8)]
    return (after(came[0], last), *came[1:])


def _vjp_transfers(cts: Any, *args: Any, out: Any, steps: tuple[Step, ...]) -> Sequence[Any]:
    me = cluster.place().rank
    came = [k for k, s in enumerate(steps) if s[1] == me]
    back: list[Step] = [(to, sender, shape, dtype) for sender, to, shape, dtype in steps]
    given = {k: ct for k, ct in zip(came, cts, strict=False)}
    order = in_order(back)
    sent = [_or_zeros(given[k], back[k]) for k in order if back[k][0] == me]
    got = iter(transfers(sent, [back[k] for k in order]))
    found = {k: next(got) for k in order if back[k][1] == me}
    return [None, *[found[k] for k, s in enumerate(steps) if s[0] == me]]


def _or_zeros(ct: Tensor | None, step: Step) -> Tensor:
    return ct if ct is not None else zeros(step[2], step[3])


_UINT8 = as_dtype("uint8")


def _token() -> Tensor:
    """What stands for all that was done before, where a graph is ordered; it says nothing."""
    return scalar(0, _UINT8)


transfers_p = Primitive(
    "transfers",
    infer=_infer_transfers,
    lower=_lower_transfers,
    vjp=_vjp_transfers,
    multi=True,
    effects=(COLLECTIVE, OWN_PART),
)


def transfers(sent: Sequence[Tensor], steps: Sequence[Step]) -> tuple[Tensor, ...]:
    """Tensors that this rank sends and gets, one for each step, in the order of :func:`in_order`.

    Only what this rank has a part in is told; the other rank of a step tells the same of it.

    Returns:
        What came, in the order of the steps. If nothing has to come, a number that says nothing.
    """
    if agreement.enabled and not is_staging():
        for sender, to, shape, dtype in steps:
            agreement.check_pair(sender, to, TensorType(dtype, shape))
    return apply(transfers_p, _token(), *sent, steps=tuple(steps))  # type: ignore[no-any-return]


# all to all, of any lengths --------------------------------------------------------------------------------------


def _infer_exchange(
    token: TensorType, x: TensorType, *, send: tuple[int, ...], recv: tuple[int, ...], ranks: Ranks
) -> TensorType:
    place = ranks.index(cluster.place().rank)
    if send[place] != recv[place]:
        raise ShapeError(
            "all_to_all", "input", got=f"{send[place]} rows for this rank itself",
            takes=f"{recv[place]}, as many as it says it gets from itself",
        )  # fmt: skip
    if not x.rank or x.shape[0] != sum(send):
        raise ShapeError(
            "all_to_all", "input", got=f"shape {x.shape}",
            takes=f"a first axis of {sum(send)}, the sum of what is sent {list(send)}",
        )  # fmt: skip
    return TensorType(x.dtype, (max(sum(recv), 1), *x.shape[1:]))


def _lower_exchange(token: Any, x: Any, *, send: tuple[int, ...], recv: tuple[int, ...], ranks: Ranks) -> Any:
    n = len(ranks)
    me = cluster.place().rank
    place = ranks.index(me)
    dtype = _dtype_of(x)
    starts = np.cumsum([0, *send])
    part = [x[starts[i] : starts[i + 1]] for i in range(n)]
    came: list[Any] = [None] * n
    came[place] = part[place]
    steps: list[Step] = []
    sent, origins = [], []
    for k in range(1, n):
        to, source = (place + k) % n, (place - k) % n
        for here in sorted([(place, to), (source, place)]):
            length = send[to] if here[0] == place else recv[source]
            steps.append((ranks[here[0]], ranks[here[1]], (length, *x.shape[1:]), dtype))
            if here[0] == place:
                sent.append(part[to])
            else:
                origins.append(source)
    got, last = _move(sent, steps, token)
    for source, array in zip(origins, got, strict=True):
        came[source] = array
    out = jnp.concatenate(came, 0)
    if not sum(recv):
        out = jnp.zeros((1, *x.shape[1:]), x.dtype)
    return after(out, last) if len(ranks) > 1 else out


def _dtype_of(x: Any) -> DType:
    return as_dtype(x.dtype)


def _vjp_exchange(ct: Any, token: Tensor, x: Tensor, out: Tensor, **attrs: Any) -> Sequence[Any]:
    send, recv, ranks = attrs["send"], attrs["recv"], attrs["ranks"]

    def back() -> Tensor:
        made = exchange(ct if sum(recv) else ct[:0], recv, send, ranks)
        return made if sum(send) else zeros(x.shape, x.dtype)

    return (None, back)


exchange_p = Primitive(
    "exchange", infer=_infer_exchange, lower=_lower_exchange, vjp=_vjp_exchange, effects=(COLLECTIVE, OWN_PART)
)


def exchange(x: Tensor, send: tuple[int, ...], recv: tuple[int, ...], ranks: Ranks) -> Tensor:
    """Parts of the first axis for each rank, of lengths ``send``; what came, ``recv`` from each, one behind the other.

    Each rank tells its own lengths. Where nothing comes at all, the result has one row of zeros that says nothing.
    """
    if agreement.enabled and not is_staging() and len(ranks) > 1:
        agreement.check_exchange(type_of(x), send, recv, ranks)
    return apply(exchange_p, _token(), x, send=send, recv=recv, ranks=ranks)  # type: ignore[no-any-return]
