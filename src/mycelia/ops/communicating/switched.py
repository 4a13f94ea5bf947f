"""The functions of ``ops.communication``: those of ``mint.distributed`` that a switch makes return their results.

:func:`set_comm_ops_inplace` turns the switch, for all or for some. The ones that are only there in place refuse to be
called while it is off for them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from mycelia.ops.communicating import messages, objects, returning, values, writing, writing_messages
from mycelia.ops.communicating.groups import ReduceOp, members
from mycelia.tensor import Tensor
from mycelia.tensor.tensor import bump_epoch

F = TypeVar("F", bound=Callable[..., Any])

_in_place: dict[str, bool] = {}


def set_comm_ops_inplace(is_enable: bool, func_list: list[str] | None = None) -> None:
    """Say whether functions of ``ops.communication`` write their results into tensors they are given.

    Args:
        is_enable: True (as it is at first): they do. False: they return them, with a handle, as
            ``communication.comm_func`` does; output arguments are then not looked at but for their shapes.
        func_list: names of functions; None: all.

    Raises:
        ArgumentTypeError: no bool, or no list.
        ArgumentValueError: a name that there is not.

    >>> import mycelia as ms
    >>> from mycelia.ops import communication as comm
    >>> comm.init_process_group("gloo")
    >>> comm.set_comm_ops_inplace(False)
    >>> print(comm.all_reduce(ms.Tensor([1.0, 2.0]))[0])
    [1. 2.]
    >>> comm.set_comm_ops_inplace(True)
    >>> comm.destroy_process_group()
    """
    where = "set_comm_ops_inplace"
    if not isinstance(is_enable, bool):
        raise ArgumentTypeError(where, "is_enable", got=repr(is_enable), takes="True or False")
    if func_list is not None and not isinstance(func_list, (list, tuple)):
        raise ArgumentTypeError(where, "func_list", got=type(func_list).__name__, takes="a list of names, or None")
    for name in func_list or ():
        if name not in _in_place:
            raise ArgumentValueError(where, "func_list", got=repr(name), takes=f"names among {sorted(_in_place)}")
    for name in _in_place if func_list is None else func_list:
        _in_place[name] = is_enable
    bump_epoch()


def _switched(fn: F, otherwise: Callable[..., Any] | None = None) -> F:
    """A function that calls ``otherwise`` while the switch is off for it."""
    name = fn.__name__
    _in_place[name] = True

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _in_place[name]:
            return fn(*args, **kwargs)
        if otherwise is None:
            raise UnsupportedError(
                name, message="it only writes into tensors it is given, and set_comm_ops_inplace(False) forbids that",
                hint=f'call set_comm_ops_inplace(True, ["{name}"]) before',
            )  # fmt: skip
        return otherwise(*args, **kwargs)

    return call  # type: ignore[return-value]


def _all_gather(output_tensor: Any, input_tensor: Tensor, group: str | None = None, async_op: bool = False) -> Any:
    return returning.all_gather_into_tensor(input_tensor, group, async_op)


def _reduce_scatter(
    output: Any, input: Tensor, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False
) -> Any:
    return returning.reduce_scatter_tensor(input, op, group, async_op)


def _all_to_all_single(
    output: Any, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None,
    group: str | None = None, async_op: bool = False,
) -> Any:  # fmt: skip
    where = "all_to_all_single"
    x = values.tensor(where, "input", input)
    ranks = members(where, group)
    shape = x.shape
    if output_split_sizes:
        shape = (sum(values.sizes(where, "output_split_sizes", output_split_sizes, len(ranks))), *shape[1:])
    return returning.all_to_all_single_with_output_shape(
        shape, x, output_split_sizes, input_split_sizes, group, async_op
    )


all_reduce = _switched(writing.all_reduce, returning.all_reduce)
all_gather_into_tensor = _switched(writing.all_gather_into_tensor, _all_gather)
reduce_scatter_tensor = _switched(writing.reduce_scatter_tensor, _reduce_scatter)
all_to_all = _switched(writing.all_to_all, returning.all_to_all_with_output_shape)
all_to_all_single = _switched(writing.all_to_all_single, _all_to_all_single)
send = _switched(messages.send, messages.send)
isend = _switched(messages.isend, messages.isend)
recv = _switched(writing_messages.recv, messages.recv)
irecv = _switched(writing_messages.irecv, messages.irecv)
all_gather = _switched(writing.all_gather)
all_gather_into_tensor_uneven = _switched(writing.all_gather_into_tensor_uneven)
all_to_all_v_c = _switched(writing.all_to_all_v_c)
batch_isend_irecv = _switched(writing_messages.batch_isend_irecv)
broadcast = _switched(writing.broadcast)
gather = _switched(writing.gather)
gather_into_tensor = _switched(writing.gather_into_tensor)
reduce = _switched(writing.reduce)
reduce_scatter = _switched(writing.reduce_scatter)
reduce_scatter_tensor_uneven = _switched(writing.reduce_scatter_tensor_uneven)
scatter = _switched(writing.scatter)
scatter_tensor = _switched(writing.scatter_tensor)
all_gather_object = _switched(objects.all_gather_object)
broadcast_object_list = _switched(objects.broadcast_object_list)
gather_object = _switched(objects.gather_object)
recv_object_list = _switched(objects.recv_object_list)
scatter_object_list = _switched(objects.scatter_object_list)
send_object_list = _switched(objects.send_object_list)
