"""Python values between ranks, without pickle: bytes that come over a network must not be able to run code.

A value becomes one line of JSON and the arrays and bytes that it holds, behind each other. None, bools, numbers, str,
bytes, lists, tuples, dicts, sets, ranges, slices, dtypes, NumPy arrays and tensors come back as they were; anything
else is refused. The first eight bytes tell the length of the JSON (little-endian).
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import cluster
from mycelia.core.dtypes import DType, dtype_named
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, FileFormatError, UnsupportedError
from mycelia.ops import collectives
from mycelia.ops.communicating import values
from mycelia.ops.communicating.groups import members, place_of
from mycelia.ops.communicating.messages import peer, received, send_to
from mycelia.tensor import Tensor
from mycelia.tensor.mode import is_staging

_DEEPEST = 200

# bytes ------------------------------------------------------------------------------------------------------------


def encode(value: Any, where: str = "encode", argument: str = "obj") -> bytes:
    """A value as bytes.

    Raises:
        ArgumentTypeError: it is, or holds, something that has no form.
        ArgumentValueError: it holds itself, or is nested too deeply.

    >>> from mycelia.ops.communicating.objects import decode, encode
    >>> decode(encode({"epoch": 3, "losses": (0.5, float("inf"))}))
    {'epoch': 3, 'losses': (0.5, inf)}
    """
    blobs: list[bytes] = []

    def pack(x: Any, path: str, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ArgumentValueError(where, path[:60], got=f"more than {_DEEPEST} levels", takes="a value that ends")
        if x is None or type(x) in (bool, int, str) or (type(x) is float and math.isfinite(x)):
            return x
        if type(x) is list:
            return [pack(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(x)]
        if type(x) is float:
            return {"float": repr(x)}
        if type(x) is complex:
            return {"complex": [pack(x.real, path, depth), pack(x.imag, path, depth)]}
        if type(x) in (bytes, bytearray):
            blobs.append(bytes(x))
            return {type(x).__name__: len(x)}
        if type(x) in (tuple, set, frozenset):
            return {type(x).__name__: [pack(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(x)]}
        if type(x) is dict:
            return {"dict": [[pack(k, f"{path} key", depth + 1), pack(v, f"{path}[{k!r}]", depth + 1)]
                             for k, v in x.items()]}  # fmt: skip
        if type(x) in (range, slice):
            return {type(x).__name__: [pack(v, path, depth + 1) for v in (x.start, x.stop, x.step)]}
        if isinstance(x, DType):
            return {"dtype": x.name}
        if isinstance(x, Tensor):
            array = x.asnumpy()
            blobs.append(np.ascontiguousarray(array).tobytes())
            return {"tensor": [x.dtype.name, list(array.shape)]}
        if isinstance(x, (np.ndarray, np.generic)) and _plain(x.dtype):
            blobs.append(np.ascontiguousarray(x).tobytes())
            kind = "array" if isinstance(x, np.ndarray) else "number"
            return {kind: [_dtype_name(x.dtype), list(x.shape)]}
        raise ArgumentTypeError(
            where, path, got=type(x).__name__,
            takes="None, bool, int, float, complex, str, bytes, list, tuple, dict, set, NumPy array or Tensor",
            hint="send what it is made of; objects of classes are not sent, since reading them could run any code",
        )  # fmt: skip

    head = json.dumps(pack(value, argument, 0), separators=(",", ":")).encode()
    return struct.pack("<Q", len(head)) + head + b"".join(blobs)


def _plain(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biufcUSmM" or (dtype.kind == "V" and dtype.fields is None and dtype.name in _EXTRA)


_EXTRA = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4")


def _dtype_name(dtype: np.dtype[Any]) -> str:
    return dtype.name if dtype.kind == "V" else dtype.str


def decode(data: bytes) -> Any:
    """The value of bytes that :func:`encode` has made.

    Raises:
        FileFormatError: they are of something else.
    """
    try:
        (length,) = struct.unpack("<Q", data[:8])
        return _Reader(data, 8 + length).unpack(json.loads(data[8 : 8 + length]))
    except (struct.error, ValueError, TypeError, KeyError, IndexError) as error:
        raise FileFormatError("decode", message=f"these bytes do not hold a value: {error}") from None


class _Reader:
    """Puts a value together again."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise ValueError("they end too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def array(self, dtype: np.dtype[Any], shape: list[int]) -> np.ndarray[Any, Any]:
        count = math.prod(shape) * dtype.itemsize
        return np.frombuffer(self.take(count), dtype).reshape(shape).copy()

    def unpack(self, x: Any) -> Any:
        if isinstance(x, list):
            return [self.unpack(v) for v in x]
        if not isinstance(x, dict):
            return x
        ((kind, held),) = x.items()
        if kind == "float":
            return float(held)
        if kind == "complex":
            return complex(*[self.unpack(v) for v in held])
        if kind == "bytes":
            return self.take(held)
        if kind == "bytearray":
            return bytearray(self.take(held))
        if kind == "dict":
            return {self.unpack(k): self.unpack(v) for k, v in held}
        if kind == "dtype":
            return dtype_named(held)
        if kind == "tensor":
            dtype = dtype_named(held[0])
            return Tensor(self.array(dtype.np, held[1]), dtype)
        if kind in ("array", "number"):
            name = held[0]
            found = self.array(jnp.dtype(name) if name in _EXTRA else np.dtype(name), held[1])
            return found if kind == "array" else found[()]
        made: Any = {"tuple": tuple, "set": set, "frozenset": frozenset}.get(kind)
        if made is not None:
            return made([self.unpack(v) for v in held])
        made = {"range": range, "slice": slice}[kind]
        return made(*[self.unpack(v) for v in held])


# between ranks ----------------------------------------------------------------------------------------------------


def _room(length: int) -> int:
    """A length that few others differ from, so that programs are compiled for few of them."""
    return max(64, 1 << (length - 1).bit_length())


def _vector(data: bytes, length: int) -> Tensor:
    room = np.zeros(length, np.uint8)
    room[: len(data)] = np.frombuffer(data, np.uint8)
    return Tensor(room)


def _counts(numbers: list[int]) -> Tensor:
    return Tensor(np.asarray(numbers, np.int64))


def _begin(where: str, group: Any) -> tuple[int, ...]:
    if is_staging():
        raise UnsupportedError(
            where, message="Python values cannot be sent from inside a compiled function",
            hint="call it outside, or send tensors",
        )  # fmt: skip
    return members(where, group)


def _list(where: str, argument: str, given: Any, count: int | None = None) -> list[Any]:
    if not isinstance(given, list):
        raise ArgumentTypeError(where, argument, got=type(given).__name__, takes="a list")
    if not given or (count is not None and len(given) != count):
        takes = "one place or more" if count is None else f"{count}, one for each rank"
        raise ArgumentValueError(where, argument, got=f"{len(given)} places", takes=takes)
    return given


def all_gather_object(object_list: list[Any], obj: Any, group: str | None = None) -> None:
    """Put the ranks' values into a list that has a place for each of them.

    Args:
        object_list: overwritten.
        obj: this rank's value: numbers, strings, containers, arrays (see :mod:`mycelia.ops.communicating.objects`).
        group: the ranks that take part; None: all.

    Raises:
        ArgumentTypeError: the value holds something that is not sent.

    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> found = [None]
    >>> dist.all_gather_object(found, {"loss": 0.5})
    >>> found
    [{'loss': 0.5}]
    >>> dist.destroy_process_group()
    """
    where = "all_gather_object"
    ranks = _begin(where, group)
    _list(where, "object_list", object_list, len(ranks))
    data = encode(obj, where)
    lengths = values.gathered(_counts([len(data)]), ranks).tolist()
    length = _room(max(lengths))
    every = values.gathered(_vector(data, length), ranks).asnumpy()
    for i, count in enumerate(lengths):
        object_list[i] = decode(every[i * length : i * length + count].tobytes())


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: str | None = None
) -> None:
    """Put the ranks' values into the list of rank ``dst``; the lists of others do not count.

    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> found = [None]
    >>> dist.gather_object("hello", found)
    >>> found
    ['hello']
    >>> dist.destroy_process_group()
    """
    where = "gather_object"
    ranks = _begin(where, group)
    root = place_of(where, "dst", dst, ranks)
    at_root = collectives.is_me(ranks[root])
    places = _list(where, "object_gather_list", object_gather_list, len(ranks)) if at_root else []
    data = encode(obj, where)
    lengths = values.gathered(_counts([len(data)]), ranks).tolist()
    length = _room(max(lengths))
    every = values.gathered_at(_vector(data, length), root, ranks)
    if every is not None:
        held = every.asnumpy()
        for i, count in enumerate(lengths):
            places[i] = decode(held[i * length : i * length + count].tobytes())


def broadcast_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> None:
    """Overwrite each rank's list with the values of that of rank ``src``; the lists are of one length.

    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> held = ["hello", 3]
    >>> dist.broadcast_object_list(held)
    >>> held
    ['hello', 3]
    >>> dist.destroy_process_group()
    """
    where = "broadcast_object_list"
    ranks = _begin(where, group)
    root = place_of(where, "src", src, ranks)
    _list(where, "object_list", object_list)
    at_root = collectives.is_me(ranks[root])
    data = [encode(x, where, f"object_list[{i}]") for i, x in enumerate(object_list)] if at_root else []
    sent = [len(d) for d in data] or [0] * len(object_list)
    lengths = collectives.broadcast(_counts(sent), root, ranks).tolist()
    joined = collectives.broadcast(_vector(b"".join(data), _room(sum(lengths))), root, ranks).asnumpy().tobytes()
    if not at_root:
        _fill(object_list, joined, lengths)


def _fill(places: list[Any], joined: bytes, lengths: list[int]) -> None:
    at = 0
    for i, count in enumerate(lengths):
        places[i] = decode(joined[at : at + count])
        at += count


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None, src: int = 0,
    group: str | None = None,
) -> None:  # fmt: skip
    """Put what rank ``src`` has for this one in its list into the first place of another.

    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> found = [None]
    >>> dist.scatter_object_list(found, ["hello"])
    >>> found
    ['hello']
    >>> dist.destroy_process_group()
    """
    where = "scatter_object_list"
    ranks = _begin(where, group)
    root = place_of(where, "src", src, ranks)
    _list(where, "scatter_object_output_list", scatter_object_output_list)
    data: list[bytes] = []
    if collectives.is_me(ranks[root]):
        given = _list(where, "scatter_object_input_list", scatter_object_input_list, len(ranks))
        data = [encode(x, where, f"scatter_object_input_list[{i}]") for i, x in enumerate(given)]
    lengths = collectives.broadcast(_counts([len(d) for d in data] or [0] * len(ranks)), root, ranks).tolist()
    room = _room(max(lengths))
    sent = _vector(b"".join(d.ljust(room, b"\0") for d in data), room * len(ranks) if data else room)
    mine = values.scattered(sent, (room,), root, ranks).asnumpy().tobytes()
    scatter_object_output_list[0] = decode(mine[: lengths[ranks.index(cluster.place().rank)]])


def send_object_list(object_list: list[Any], dst: int, group: str | None = None, device: Any = None) -> None:
    """Send the values of a list to rank ``dst``, which gets them with :func:`recv_object_list`.

    Raises:
        ArgumentValueError: ``dst`` is this rank, or not in the group.
        ArgumentTypeError: a value holds something that is not sent.
    """
    where = "send_object_list"
    peer(where, "dst", dst, _begin(where, group))
    _list(where, "object_list", object_list)
    data = [encode(x, where, f"object_list[{i}]") for i, x in enumerate(object_list)]
    send_to(where, _counts([len(d) for d in data]), dst, group, 0).wait()
    joined = b"".join(data)
    send_to(where, _vector(joined, _room(len(joined))), dst, group, 0).wait()


def recv_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> int:
    """Overwrite a list with as many values that rank ``src`` sends. Returns 0.

    Raises:
        ArgumentValueError: ``src`` is this rank, or not in the group.
    """
    where = "recv_object_list"
    peer(where, "src", src, _begin(where, group))
    _list(where, "object_list", object_list)
    lengths = received(where, _counts([0] * len(object_list)), src, group, 0).tolist()
    joined = received(where, Tensor(np.zeros(_room(sum(lengths)), np.uint8)), src, group, 0).asnumpy().tobytes()
    _fill(object_list, joined, lengths)
    return 0
