"""The functions and classes by which users communicate, with several ranks; alone, in ``test_communication_alone``."""

from __future__ import annotations

from tests.parallel.ranks import run_ranks

FUNCTIONS = """
import warnings
from mycelia.communication import comm_func as cf
from mycelia.mint import distributed as dist
from mycelia.ops import communication as oc
from mycelia.core.errors import ArgumentValueError, DTypeError, ShapeError, StateError, UnsupportedError

assert comm.get_rank() == RANK and comm.get_group_size() == 3 and not comm.GlobalComm.INITED  # the launcher told
dist.init_process_group("gloo", world_size=3)
comm.init()  # again: nothing
assert comm.GlobalComm.INITED and comm.GlobalComm.WORLD_COMM_GROUP == "mccl_world_group"
T = ms.Tensor
rows = lambda r, n: np.arange(n * 2, dtype=np.float32).reshape(n, 2) + 100 * r
def same(got, want):
    np.testing.assert_array_equal(got.asnumpy() if isinstance(got, T) else got, want)
def refused(error, words, fn, *args, **kwargs):
    try:
        fn(*args, **kwargs)
    except error as e:
        missing = [w for w in words if w not in str(e)]
        assert not missing, (missing, str(e))
    else:
        raise AssertionError(f"{fn} {args} was not refused")
zeros = lambda *shape: ops.zeros(shape, ms.float32)

# groups
comm.create_group("ends", [2, 0]) if RANK != 1 else comm.create_group("ends", [2, 0])
comm.create_group("ends", [2, 0])
assert comm.get_process_group_ranks("ends") == [2, 0] and comm.get_group_size("ends") == 2
assert comm.get_world_rank_from_group_rank("ends", 0) == 2 and comm.get_group_rank_from_world_rank(0, "ends") == 1
refused(ArgumentValueError, ["'rank_ids'", "[0, 2]", "[2, 0]"], comm.create_group, "ends", [0, 2])
refused(ArgumentValueError, ["'rank_ids'", "[0, 3]", "0 to 2"], comm.create_group, "far", [0, 3])
refused(ArgumentValueError, ["each once"], comm.create_group, "twice", [0, 0])
refused(ArgumentValueError, ["'nobody'", "'ends'", "create_group"], cf.all_reduce, T([1.0]), "sum", "nobody")
refused(ArgumentValueError, ["'src'", "rank 7", "[0, 1, 2]"], cf.broadcast, T([1.0]), 7)
refused(ArgumentValueError, ["'op'", "'mean'", '"sum"'], cf.all_reduce, T([1.0]), "mean")
refused(DTypeError, ["avg", "int"], cf.all_reduce, T([1]), "avg")
refused(ShapeError, ["'tensor'", "(4,)", "3 ranks"], cf.reduce_scatter_tensor, zeros(4))
refused(ShapeError, ["'output_tensor'", "(5,)", "(3,)"], dist.all_gather_into_tensor, zeros(5), T([1.0]))
if RANK == 1:
    assert dist.get_rank("ends") == -1
    refused(StateError, ["rank 1 is not in", "[2, 0]"], cf.all_reduce, T([1.0]), "sum", "ends")
    refused(StateError, ["rank 1"], comm.get_rank, "ends")
else:
    assert comm.get_rank("ends") == (2 - RANK) // 2 == dist.get_rank("ends")
    same(cf.all_gather_into_tensor(T([float(RANK)]), "ends")[0], [2, 0])
    same(ops.AllReduce(group="ends")(T([float(RANK)])), [2])
pair = dist.new_group([1, 0])
assert dist.get_process_group_ranks(pair) == [0, 1] and pair.startswith("gloo_2_")

# what returns
x = T(rows(RANK, 3))
total = sum(rows(r, 3) for r in range(3))
out, handle = cf.all_reduce(x, async_op=True)
handle.wait()
same(out, total)
same(cf.all_reduce(x, "avg")[0], total / 3)
same(cf.reduce_scatter_tensor(x, "avg")[0], total[RANK:RANK + 1] / 3)
same(cf.all_gather_into_tensor(T(float(RANK)))[0], [0, 1, 2])
same(cf.reduce(x, 1), total if RANK == 1 else [0])
same(cf.scatter_tensor(x, 2), rows(2, 3)[RANK:RANK + 1])
same(cf.gather_into_tensor(x, 0), np.concatenate([rows(r, 3) for r in range(3)]) if RANK == 0 else [0])
same(cf.broadcast(x, 1), rows(1, 3))
cf.barrier()
came, _ = cf.all_to_all_with_output_shape([(RANK + 1, 2)] * 3, [T(rows(RANK, i + 1)) for i in range(3)])
for r in range(3):
    same(came[r], rows(r, RANK + 1))
split = [1, 2, 0]
got = cf.all_to_all_single_with_output_shape((3 * split[RANK], 2), x, [split[RANK]] * 3, split)[0]
at = sum(split[:RANK])
same(got, np.concatenate([rows(r, 3)[at:at + split[RANK]] for r in range(3)]))

# what writes
y = T(rows(RANK, 3)); assert dist.all_reduce(y, "max") is None; same(y, rows(2, 3))
y = T(rows(RANK, 3)); dist.reduce(y, 0, "sum"); same(y, total if RANK == 0 else rows(RANK, 3))
y = T(rows(RANK, 3)); dist.broadcast(y, 2, async_op=True).wait(); same(y, rows(2, 3))
y = zeros(9, 2); dist.all_gather_into_tensor(y, x); same(y, np.concatenate([rows(r, 3) for r in range(3)]))
sizes = [2, 0, 3]
y = zeros(5, 2)
dist.all_gather_into_tensor_uneven(y, T(rows(RANK, sizes[RANK])), sizes)
same(y, np.concatenate([rows(r, sizes[r]) for r in range(3)]))
whole = [rows(r, 5) for r in range(3)]
at = sum(sizes[:RANK])
for op, fold in (("sum", np.sum), ("max", np.max), ("min", np.min), ("prod", np.prod)):
    y = zeros(sizes[RANK], 2)
    dist.reduce_scatter_tensor_uneven(y, T(whole[RANK]), sizes, op)
    same(y, fold(whole, 0)[at:at + sizes[RANK]])
y = zeros(1, 2); dist.reduce_scatter_tensor(y, x); same(y, total[RANK:RANK + 1])
y = zeros(1, 2); dist.scatter_tensor(y, x, 1); same(y, rows(1, 3)[RANK:RANK + 1])
y = zeros(9, 2)
dist.gather_into_tensor(y, x, 2)
same(y, np.concatenate([rows(r, 3) for r in range(3)]) if RANK == 2 else np.zeros((9, 2)))
ys = [zeros(3, 2) for _ in range(3)]; dist.all_gather(ys, x)
for r in range(3): same(ys[r], rows(r, 3))
ys = [zeros(r + 1, 2) for r in range(3)]; dist.all_gather(ys, T(rows(RANK, RANK + 1)))
for r in range(3): same(ys[r], rows(r, r + 1))
y = zeros(3, 2); dist.reduce_scatter(y, [T(rows(RANK + i, 3)) for i in range(3)])
same(y, sum(rows(r + RANK, 3) for r in range(3)))
y = zeros(RANK + 1, 2); dist.reduce_scatter(y, [T(rows(RANK, i + 1)) for i in range(3)])
same(y, sum(rows(r, RANK + 1) for r in range(3)))
y = zeros(2, 2); dist.scatter(y, [T(rows(i, 2)) for i in range(3)] if RANK == 0 else [], 0); same(y, rows(RANK, 2))
ys = [zeros(3, 2) for _ in range(3)]; dist.gather(x, ys if RANK == 1 else None, 1)
for r in range(3): same(ys[r], rows(r, 3) if RANK == 1 else np.zeros((3, 2)))
ys = [zeros(RANK + 1, 2) for _ in range(3)]; dist.all_to_all(ys, [T(rows(RANK, i + 1)) for i in range(3)])
for r in range(3): same(ys[r], rows(r, RANK + 1))
y = zeros(3, 2); dist.all_to_all_single(y, x); same(y, np.concatenate([rows(r, 3)[RANK:RANK + 1] for r in range(3)]))
counts = [0, 1, 2, 3, 0, 0, 1, 1, 1]
y = zeros(sum(counts[RANK::3]), 2)
oc.all_to_all_v_c(y, T(rows(RANK, 3)), counts)
at = [sum(counts[r * 3:r * 3 + RANK]) for r in range(3)]
same(y, np.concatenate([rows(r, 3)[at[r]:at[r] + counts[r * 3 + RANK]] for r in range(3)]))

# in a compiled function, in place, too
@ms.jit
def step(x, y):
    dist.all_reduce(y)
    return cf.all_gather_into_tensor(x)[0] * 2, y + 1
y = T(rows(RANK, 3))
a, b = step(x, y)
same(a, 2 * np.concatenate([rows(r, 3) for r in range(3)])); same(b, total + 1); same(y, total)

# messages
right, left = (RANK + 1) % 3, (RANK - 1) % 3
if RANK == 0:
    dist.send(T(rows(0, 3)), 1); same(cf.recv(zeros(2), 2), [7, 8])
elif RANK == 1:
    y = zeros(3, 2); assert dist.recv(y, 0) == 0; same(y, rows(0, 3)); cf.isend(T(rows(1, 1)), 2).wait()
else:
    cf.send(T([7.0, 8.0]), 0); y = zeros(1, 2); dist.irecv(y, 1).wait(); same(y, rows(1, 1))
refused(ArgumentValueError, ["'dst'", f"rank {RANK}", "another rank"], dist.send, x, RANK)
refused(ArgumentValueError, ["'src'", "rank 5"], dist.recv, x, 5)
mine = [dist.P2POp("isend", T(rows(RANK, RANK + 1)), right), dist.P2POp(dist.isend, T(rows(RANK, 5)), left)]
y, z = zeros(left + 1, 2), zeros(5, 2)
for h in dist.batch_isend_irecv([*mine, dist.P2POp("irecv", y, left), dist.P2POp(dist.irecv, z, right)]):
    h.wait()
same(y, rows(left, left + 1)); same(z, rows(right, 5))
got = cf.batch_isend_irecv([cf.P2POp("irecv", (left + 1, 2), left, recv_dtype=ms.float32), mine[0]])
same(got[0], rows(left, left + 1)); assert got[1].shape == ()

@ms.jit
def shift(x):
    return ops.BatchISendIRecv(["isend", "irecv"], [right, left], [(3, 2)], [ms.float32])(x)[1] + 1
same(shift(x), rows(left, 3) + 1)

# classes
same(ops.AllReduce("min")(x), rows(0, 3))
same(ops.AllGather()(x), np.concatenate([rows(r, 3) for r in range(3)]))
same(ops.ReduceScatter()(x), total[RANK:RANK + 1])
same(ops.Broadcast(1)((x, x))[1], rows(1, 3))
same(ops.AlltoAll(3, 0, 1)(x), np.concatenate([rows(r, 3)[RANK:RANK + 1] for r in range(3)], 1))
same(ops.Reduce(2)(x), total if RANK == 2 else [0])
same(ops.CollectiveScatter(1)(x), rows(1, 3)[RANK:RANK + 1])
same(ops.CollectiveGather(1)(x), np.concatenate([rows(r, 3) for r in range(3)]) if RANK == 1 else [0])
flat = lambda r, n: np.arange(n, dtype=np.float32) + 10 * r
same(ops.AllGatherV()(T(flat(RANK, RANK + 1)), [1, 2, 3]), np.concatenate([flat(r, r + 1) for r in range(3)]))
same(ops.ReduceScatterV()(T(flat(RANK, 6)), [1, 2, 3]), sum(flat(r, 6) for r in range(3))[[slice(0, 1),
     slice(1, 3), slice(3, 6)][RANK]])
same(ops.AlltoAllV(block_size=2)(T(flat(RANK, 12)), [1, 2, 3], [RANK + 1] * 3),
     np.concatenate([flat(r, 12)[[slice(0, 2), slice(2, 6), slice(6, 12)][RANK]] for r in range(3)]))
same(ops.AlltoAllVC()(T(flat(RANK, 3)), counts), np.concatenate([flat(r,
     3)[at[r]:at[r] + counts[r * 3 + RANK]] for r in range(3)]))
none = ops.AlltoAllV()(T(np.zeros(0 if RANK else 2, "float32")), [0, 2, 0] if RANK == 0 else [0] * 3, [2, 0,
     0] if RANK == 1 else [0] * 3)
assert none.shape == ((2,) if RANK == 1 else ())
ops.Barrier()()
if RANK == 0: ops.Send(0, 2)(x)
if RANK == 2: same(ops.Receive(0, 0, [3, 2], ms.float32)(), rows(0, 3))
got = ops.NeighborExchange([right], [left], [[left + 1, 2]], [[RANK + 1, 2]], ms.float32)((T(rows(RANK, RANK + 1)),))
same(got[0], rows(left, left + 1))
image = lambda r: (np.arange(6, dtype=np.float32) + 10 * r).reshape(1, 1, 2, 3)
sides = [-1] * 8
if RANK == 0: args = dict(send_rank_ids=sides[:4] + [1] + sides[5:], send_lens=[0, 1, 0, 0], recv_lens=[0, 1, 0, 0])
elif RANK == 1: args = dict(send_rank_ids=[0, -1, 2] + sides[3:], send_lens=[1, 0, 0, 2], recv_lens=[1, 0, 0, 1])
else: args = dict(send_rank_ids=sides[:6] + [1, -1], send_lens=[0, 0, 1, 0], recv_lens=[0, 0, 2, 0])
got = ops.NeighborExchangeV2(recv_rank_ids=args["send_rank_ids"], data_format="NCHW", **args)(T(image(RANK))).asnumpy()
if RANK == 0: same(got, np.concatenate([image(0), image(1)[:, :, :1]], 2))
if RANK == 1:
    want = np.zeros((1, 1, 3, 4), np.float32)
    want[:, :, 1:, :3], want[:, :, :1, :3], want[:, :, 1:, 3:] = image(1), image(0)[:, :, 1:], image(2)[..., :1]
    same(got, want)
if RANK == 2: same(got, np.concatenate([image(1)[..., 1:], image(2)], 3))

# Python values
value = lambda r: {"rank": r, "text": "x" * (50 * r), "array": np.arange(r), "nest": [(r, 1j), {2.5}, None, b"z"]}
held = [None] * 3; dist.all_gather_object(held, value(RANK))
assert [h["rank"] for h in held] == [0, 1, 2] and held[2]["nest"] == [(2, 1j), {2.5}, None,
     b"z"] and len(held[2]["array"]) == 2
held = [None] * 3; dist.gather_object(value(RANK)["nest"], held, 1); assert (held[2] == value(2)["nest"]) == (RANK == 1)
held = [RANK, "a", None] if RANK == 2 else [None] * 3
dist.broadcast_object_list(held, 2)
assert held == [2, "a", None]
held = [None]
dist.scatter_object_list(held, ["a", "bb" * 99, 3] if RANK == 0 else None, 0)
assert held == [["a", "bb" * 99, 3][RANK]]
if RANK == 1: dist.send_object_list(["hello", {"k": 1}], 0)
if RANK == 0: held = [None, None]; dist.recv_object_list(held, 1); assert held == ["hello", {"k": 1}]
class Own: pass
refused(TypeError, ["obj['k']", "Own"], dist.all_gather_object, [None] * 3, {"k": Own()})
refused(UnsupportedError, ["compiled"], ms.jit(lambda x: (dist.all_gather_object([None] * 3, 1), x)[1]), x)

# functions that a switch makes return
oc.set_comm_ops_inplace(False)
same(oc.all_reduce(x)[0], total); same(oc.all_gather_into_tensor(None, x)[0][:3], rows(0, 3))
same(oc.all_to_all_single(None, x)[0][0], rows(0, 3)[RANK])
refused(UnsupportedError, ["set_comm_ops_inplace"], oc.broadcast, x, 0)
oc.set_comm_ops_inplace(True)

comm.destroy_group("ends")
refused(ArgumentValueError, ["'ends'"], comm.get_group_size, "ends")
comm.release()
assert not dist.is_initialized()
print("DONE")
"""


def test_functions_and_classes(tmp_path):
    assert all("DONE" in text for text in run_ranks(3, FUNCTIONS, tmp_path))


CHECKED = """
os.environ["MYCELIA_CHECK_COLLECTIVES"], os.environ["MYCELIA_CHECK_COLLECTIVES_SECONDS"] = "1", "3"
from mycelia.communication import comm_func as cf
from mycelia.core.errors import ShapeError, StateError
from mycelia.mint import distributed as dist
comm.init()
T = ms.Tensor
other = 1 - RANK
def told(error, words, fn, *args):
    try:
        fn(*args)
    except error as e:
        assert all(w in str(e) for w in words), str(e)
    else:
        raise AssertionError(fn)
assert cf.all_reduce(T([1.0]))[0].asnumpy() == 2
told(ShapeError, [f"rank {RANK} calls all_reduce", f"[{RANK + 1}]", f"rank {other}", f"[{other + 1}]"],
     cf.all_reduce, ops.zeros(RANK + 1))
told(ShapeError, ["reduction sum", "reduction max"], cf.all_reduce, T([1.0]), ["sum", "max"][RANK])
told(ShapeError, ["float32", "int32"], cf.all_reduce, T([1], [ms.float32, ms.int32][RANK]))
told(ShapeError, ["all_reduce", "all_gather"], [cf.all_reduce, cf.all_gather_into_tensor][RANK], T([1.0]))
told(ShapeError, ["sends", "gets"],
     cf.all_to_all_single_with_output_shape, (2 + RANK,), ops.zeros(3), [1, 1 + RANK], [1, 2])
told(ShapeError, ["send", "recv"], *[(dist.send, T([1.0]), 1), (dist.recv, T([1.0, 2.0]), 0)][RANK])
y = ops.zeros(1)
dist.send(T([5.0]), 1) if RANK == 0 else dist.recv(y, 0)
assert RANK == 0 or y.asnumpy() == 5
assert cf.all_reduce(T([1.0]))[0].asnumpy() == 2
if RANK == 0:
    told(StateError, ["rank 1 did not come", "3 s", "all_reduce"], cf.all_reduce, T([1.0]))
else:
    import threading
    threading.Event().wait(4)
print("DONE", flush=True)
"""


def test_what_does_not_fit_is_told_instead_of_waited_for(tmp_path):
    assert all("DONE" in text for text in run_ranks(2, CHECKED, tmp_path))
