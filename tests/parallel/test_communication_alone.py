"""Communication of one process with itself: what needs no launcher; the store; Python values as bytes."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import mycelia as ms
from mycelia import communication as comm, ops
from mycelia.communication import comm_func
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    FileFormatError,
    ShapeError,
    StateError,
    UnsupportedError,
)
from mycelia.mint import distributed as dist
from mycelia.ops.communicating.objects import decode, encode
from mycelia.ops.communication import TCPStore

SECOND = datetime.timedelta(seconds=1)


@pytest.fixture
def alone():
    comm.init()
    yield
    comm.release()


def test_before_init():
    assert comm.get_rank() == 0
    assert comm.get_group_size() == 1
    assert not comm.GlobalComm.INITED
    for call in (
        lambda: comm_func.all_reduce(ms.Tensor([1.0])),
        lambda: ops.AllReduce()(ms.Tensor([1.0])),
        lambda: comm.create_group("g", [0]),
        comm.get_process_group_ranks,
        dist.get_backend,
    ):
        with pytest.raises(StateError, match=r"not met yet[\s\S]*init\(\)"):
            call()


def test_backends_that_are_not_here(monkeypatch):
    with pytest.raises(UnsupportedError, match=r"'backend_name' got \"hccl\"[\s\S]*Ascend"):
        comm.init("hccl")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    with pytest.raises(UnsupportedError, match=r"'backend_name' got \"nccl\"[\s\S]*CUDA"):
        comm.init("nccl")
    with pytest.raises(ArgumentValueError, match="'backend_name' got 'smoke'"):
        comm.init("smoke")
    with pytest.raises(ArgumentTypeError, match="'backend_name' got int"):
        comm.init(3)
    assert not dist.is_initialized()


def test_a_scheduler_process_ends_at_once():
    env = {
        **os.environ,
        "MS_ROLE": "MS_SCHED",
        "MS_WORKER_NUM": "2",
        "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": "9",
    }
    for call in ("from mycelia.communication import init; init()", "import mycelia.mint.distributed as d; "
                 "d.init_process_group(init_method='tcp://127.0.0.1:9', world_size=2, rank=0)"):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", call + "; print('on')"], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0
        assert done.stdout == ""
        assert "no scheduler" in done.stderr


def test_importing_and_asking_leave_the_devices_alone():
    code = "import mycelia as ms; from mycelia import communication as c, ops; ms.set_seed(1); c.get_rank()\n"
    code += "from mycelia.mint import distributed; ops.AllReduce(); import jax._src.xla_bridge as x; print(x._backends)"
    env = {k: v for k, v in os.environ.items() if k != "MS_ROLE"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "{}", done.stderr


def test_one_rank_alone(alone):
    x = ms.Tensor([1.0, 2.0])
    comm.create_group("me", [0])
    assert comm.get_group_size("me") == 1
    assert comm.get_local_rank() == 0
    assert comm.get_local_rank_size() == 1
    for out in (
        comm_func.all_reduce(x, "max", "me")[0], ops.AllReduce()(x), ops.AllGather()(x), ops.ReduceScatter()(x),
        ops.Broadcast(0)((x,))[0], ops.AlltoAll(1, 0, 0)(x), ops.Reduce(0)(x), ops.CollectiveScatter()(x),
        ops.CollectiveGather(0)(x), ops.AllGatherV()(x, (2,)), ops.ReduceScatterV()(x, [2]),
        ops.AlltoAllV()(x, [2], [2]), ops.AlltoAllVC()(x, [2]), ms.jit(lambda x: ops.AllReduce()(x))(x),
        comm_func.all_to_all_single_with_output_shape((2,), x)[0],
    ):  # fmt: skip
        np.testing.assert_array_equal(out.asnumpy(), [1, 2])
    np.testing.assert_array_equal(ms.grad(lambda x: (ops.AllReduce()(x) * x).sum())(x).asnumpy(), [2, 4])
    ops.Barrier()()
    held = [None]
    dist.all_gather_object(held, x)
    np.testing.assert_array_equal(held[0].asnumpy(), [1, 2])


def test_wrong_arguments(alone):
    x = ms.Tensor([1.0, 2.0])
    for error, words, call in (
        (ArgumentTypeError, "'tensor' got list", lambda: comm_func.all_reduce([1.0])),
        (ArgumentTypeError, "'op' got 3", lambda: comm_func.all_reduce(x, 3)),
        (ArgumentTypeError, "'group' got 3", lambda: comm_func.all_reduce(x, "sum", 3)),
        (ArgumentTypeError, "'async_op' got 1", lambda: comm_func.all_reduce(x, async_op=1)),
        (ArgumentValueError, "'op' got 'mean'", lambda: ops.AllReduce("mean")),
        (ArgumentValueError, "'group' got 'g'", lambda: ops.AllReduce(group="g")),
        (ArgumentValueError, "'split_count' got 2", lambda: ops.AlltoAll(2, 0, 0)(x)),
        (ArgumentValueError, "'dest_rank' got 1", lambda: ops.Reduce(1)(x)),
        (ArgumentValueError, "'dst' got rank 0, which is this one", lambda: dist.send(x, 0)),
        (ArgumentValueError, "'op' got 'put'", lambda: dist.P2POp("put", x, 1)),
        (ArgumentTypeError, "'recv_dtype' got None", lambda: dist.P2POp("irecv", (2,), 1)),
        (ArgumentTypeError, "not empty", lambda: dist.batch_isend_irecv([])),
        (ShapeError, r"'input_x' got shape \(2, 1\)", lambda: ops.AllGatherV()(x.reshape(2, 1), [2])),
        (ShapeError, "first axis of 3", lambda: ops.AlltoAllV()(x, [3], [3])),
        (ArgumentValueError, "lengths of 0 or more", lambda: ops.AlltoAllV()(x, [-2], [2])),
        (ArgumentValueError, "'data_format'",
         lambda: ops.NeighborExchangeV2([-1] * 8, [0] * 4, [-1] * 8, [0] * 4, "HWC")),
        (ArgumentTypeError, "a list", lambda: dist.all_gather_object(None, 1)),
        (ArgumentValueError, "one for each rank", lambda: dist.all_gather_object([], 1)),
        (ArgumentValueError, "'hccl_world_group'", lambda: comm.destroy_group("hccl_world_group")),
        (ArgumentValueError, "world_size", lambda: dist.init_process_group("gloo", world_size=4)),
        (ArgumentValueError, "one of them",
         lambda: dist.init_process_group("gloo", "tcp://127.0.0.1:1", store=object())),
        (ArgumentValueError, "tcp://HOST:PORT",
         lambda: (comm.release(), dist.init_process_group("gloo", "ftp://x", world_size=1, rank=0))),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            call()


def test_nothing_is_written_where_the_result_does_not_fit(alone):
    for out in (ops.zeros(3), ops.zeros(2, ms.int32)):
        with pytest.raises((ArgumentValueError, ArgumentTypeError), match="'output_tensor'"):
            dist.all_gather_into_tensor(out, ms.Tensor([1.0, 2.0]))
        assert not out.asnumpy().any()


# the store


def test_a_store_is_shared():
    with_server = TCPStore("127.0.0.1", 0, is_master=True, timeout=SECOND)
    client = TCPStore("127.0.0.1", with_server.port, timeout=SECOND)
    try:
        with_server.set("k", "v")
        assert client.get("k") == b"v"
        client.set("k", b"\0\xff" * 1000)
        assert with_server.get("k") == b"\0\xff" * 1000
        assert client.add("n", 5) == 5
        assert with_server.add("n", -7) == -2
        assert client.get("n") == b"-2"
        assert client.delete_key("k")
        assert not client.delete_key("k")
        late = threading.Timer(0.1, with_server.set, ("later", "now"))
        late.start()
        assert client.get("later") == b"now"
        late.join()
        with pytest.raises(StateError, match="nobody has set 'never' within 1 s"):
            client.get("never")
        with pytest.raises(StateError, match="'later' holds b'now'"):
            client.add("later", 1)
        for call in (lambda: client.set(1, "v"), lambda: client.set("k", 1), lambda: client.add("k", 1.5)):
            with pytest.raises(ArgumentTypeError, match=r"TCPStore\.(set|add)"):
                call()
        with pytest.raises(ArgumentValueError, match="less than 4096"):
            client.set("k" * 5000, "v")
        with pytest.raises(StateError, match="cannot listen"):
            TCPStore("127.0.0.1", with_server.port, is_master=True, timeout=SECOND)
    finally:
        client.close()
        with_server.close()
    with pytest.raises(StateError, match="was closed"):
        client.get("k")


def test_a_store_waits_for_its_clients_and_server():
    with pytest.raises(StateError, match="1 of 2 processes came within 1 s"):
        TCPStore("127.0.0.1", 0, 2, True, SECOND)
    held = TCPStore("127.0.0.1", 0, 1, True, SECOND)
    held.close()
    with pytest.raises(StateError, match="nothing answers at 127"):
        TCPStore("127.0.0.1", held.port, timeout=SECOND)
    with pytest.raises(ArgumentValueError, match="'port' got 70000"):
        TCPStore("127.0.0.1", 70000)


def test_a_process_ends_that_serves_a_store():
    code = "from mycelia.ops.communication import TCPStore; s = TCPStore('127.0.0.1', 0, 1, True); s.set('a', 'b')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# Python values


def test_values_come_back_as_they_were():
    value = {
        "none": None, "bools": [True, False], "ints": (0, -(1 << 90)), "floats": [0.1, float("inf"), -0.0],
        "complex": 1 - 2j, "text": "ä\0", "bytes": b"\0\1", "set": {1, "a"}, "frozen": frozenset([2]),
        ("a", 1): range(1, 9, 2), "slice": slice(None, 3), 3: {"deep": [[[]]]}, "dtype": ms.bfloat16,
        "own": bytearray(b"z"),
    }  # fmt: skip
    got = decode(encode(value))
    assert got == value
    assert type(got["ints"]) is tuple
    assert np.signbit(got["floats"][2])
    assert np.isnan(decode(encode(float("nan"))))
    for array in (
        np.arange(6).reshape(2, 3).T,
        np.array("text"),
        np.float16([1.5]),
        np.zeros((0, 2)),
        np.bool_([True]),
    ):
        back = decode(encode(array))
        assert back.dtype == array.dtype
        assert back.shape == array.shape
        np.testing.assert_array_equal(back, array)
    assert decode(encode(np.float32(1.5))) == 1.5
    assert type(decode(encode(np.float32(1.5)))) is np.float32
    for dtype in (ms.bfloat16, ms.float32, ms.int8, ms.bool_, ms.complex64):
        tensor = ms.Tensor([[1, 0]], dtype)
        back = decode(encode([tensor]))[0]
        assert back.dtype is dtype
        assert back.astype(ms.float32).tolist() == [[1, 0]]


def test_values_that_are_refused():
    class Own:
        pass

    itself: list = []
    itself.append(itself)
    with pytest.raises(ArgumentTypeError, match=r"obj\['a'\]\[1\]' got Own[\s\S]*any code"):
        encode({"a": [1, Own()]})
    for value in (print, np.array([Own()], object), np.zeros(1, [("a", int)]), type("Sub", (dict,), {})()):
        with pytest.raises(ArgumentTypeError, match="'obj' got"):
            encode(value)
    with pytest.raises(ArgumentValueError, match="200 levels"):
        encode(itself)
    whole = encode({"a": np.arange(4)})
    for data in (
        b"",
        whole[:9],
        whole[:-1],
        b"\5" + whole[1:],
        encode(1)[:8] + b"x",
        whole.replace(b"array", b"evil_"),
    ):
        with pytest.raises(FileFormatError, match="do not hold a value"):
            decode(data)
