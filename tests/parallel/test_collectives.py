"""The operators in which ranks meet: values of every dtype, groups, gradients, both modes.

Each rank makes the tensors of all of them with NumPy, so that each knows what all should get.
"""

from __future__ import annotations

from tests.parallel.ranks import run_ranks

VALUES = """
from mycelia.ops import collectives as C
comm.init()
T = ms.Tensor
EVERY = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16",
         "float32", "float64", "complex64", "complex128"]

def of(dtype, shape, seed):
    g = np.random.default_rng(seed)
    if dtype == "bool":
        return g.integers(0, 2, shape) > 0
    if "int" in dtype:
        return g.integers(0, 4, shape).astype(dtype)
    x = g.integers(-8, 9, shape) / 4
    if "complex" in dtype:
        return (x + 1j * g.integers(-8, 9, shape) / 4).astype(dtype)
    return x.astype("float32" if dtype == "bfloat16" else dtype)

def tensor(x, dtype):
    return T(x, getattr(ms, dtype + "_" if dtype == "bool" else dtype))

def same(got, want, dtype=None):
    got = got.astype(ms.float32).asnumpy() if got.dtype is ms.bfloat16 else got.asnumpy()
    assert got.shape == np.shape(want), (got.shape, np.shape(want))
    np.testing.assert_array_equal(got, want)

ALL = tuple(range(SIZE))
"""

FOUR = (
    VALUES
    + """
# all dtypes: what moves and what adds; numbers are small, so sums are exact
for dtype in EVERY:
    each = [of(dtype, (4, 3), r) for r in ALL]
    mine = tensor(each[RANK], dtype)
    total = np.any(each, 0) if dtype == "bool" else np.sum(each, 0).astype(each[0].dtype)
    same(C.all_reduce(mine, "sum", ALL), total)
    same(C.broadcast(mine, 2, ALL), each[2])
    if dtype not in ("bool", "bfloat16", "int64", "complex128"):
        continue
    same(C.all_gather(mine, ALL), np.concatenate(each))
    came = np.concatenate([each[s][RANK:RANK + 1] for s in ALL])
    same(C.exchange(mine, (1,) * 4, (1,) * 4, ALL), came)
    same(C.all_to_all(mine, 0, 1, ALL), np.concatenate([each[s][RANK:RANK + 1] for s in ALL], 1))
    same(C.reduce_scatter(mine, "sum", ALL), total[RANK:RANK + 1])
    same(C.reduce_to(mine, "sum", 1, ALL), total if RANK == 1 else np.zeros_like(total))

# other reductions, NaN, numbers
for dtype in ("bool", "float32"):
    each = [of(dtype, (4, 2), 10 + r) for r in ALL]
    mine = tensor(each[RANK], dtype)
    for name, fold in (("max", np.max), ("min", np.min), ("prod", np.prod)):
        whole = np.asarray(fold(each, 0)).astype(each[0].dtype)
        same(C.all_reduce(mine, name, ALL), whole)
        same(C.reduce_scatter(mine, name, ALL), whole[RANK:RANK + 1])
        same(C.reduce_to(mine, name, 3, ALL), whole if RANK == 3 else np.zeros_like(whole))
odd = T(np.float32(np.nan if RANK == 1 else RANK))
assert np.isnan(C.all_reduce(odd, "max", ALL).asnumpy()) and np.isnan(C.all_reduce(odd, "min", ALL).asnumpy())
same(C.all_reduce(T(np.int64(RANK)), "sum", ALL), np.int64(6))
minus = C.broadcast(T(np.float32([-0.0, np.nan, np.inf])), 0, ALL).asnumpy()
assert np.signbit(minus[0]) and np.isnan(minus[1]) and np.isinf(minus[2])

# groups: half of the ranks, three of four, one; in another order
for group in ((0, 1), (3, 1)):
    if RANK in group:
        each = {r: of("float32", (2, 3), 20 + r) for r in group}
        mine = T(each[RANK])
        same(C.all_reduce(mine, "sum", group), sum(each.values()))
        same(C.all_gather(mine, group), np.concatenate([each[r] for r in group]))
        at = group.index(RANK)
        same(C.reduce_scatter(mine, "sum", group), sum(each.values())[at:at + 1])
        same(C.all_to_all(mine, 0, 0, group), np.concatenate([each[r][at:at + 1] for r in group]))
        same(C.broadcast(mine, 1, group), each[group[1]])
three = (3, 0, 2)
if RANK in three:
    each = {r: of("float32", (3, 2), 30 + r) for r in three}
    mine, at = T(each[RANK]), three.index(RANK)
    same(C.all_reduce(mine, "sum", three), sum(each.values()))
    same(C.all_gather(mine, three), np.concatenate([each[r] for r in three]))
    same(C.reduce_scatter(mine, "max", three), np.max(list(each.values()), 0)[at:at + 1])
    same(C.all_to_all(mine, 0, 1, three), np.concatenate([each[r][at:at + 1] for r in three], 1))
    same(C.broadcast(mine, 2, three), each[2])
    same(C.reduce_to(mine, "sum", 0, three), sum(each.values()) if RANK == 3 else np.zeros((3, 2), "float32"))
same(C.all_reduce(T([1.0]), "prod", (RANK,)), np.float32([1]))

# any lengths, some of them zero, in both modes
counts = np.array([[1, 0, 3, 2], [2, 2, 0, 1], [0, 4, 1, 0], [0, 0, 0, 5]])
each = [of("float32", (int(counts[r].sum()), 2), 40 + r) for r in ALL]
starts = np.concatenate([np.zeros((4, 1), int), counts.cumsum(1)], 1)
came = np.concatenate([each[s][starts[s][RANK]:starts[s][RANK + 1]] for s in ALL])
send, recv = tuple(map(int, counts[RANK])), tuple(map(int, counts[:, RANK]))
same(C.exchange(T(each[RANK]), send, recv, ALL), came)
same(ms.jit(lambda x: C.exchange(x, send, recv, ALL))(T(each[RANK])), came)
only = (0, 0, 7, 0)  # rank 2 sends to nobody, and to itself nothing
none = C.exchange(T(np.zeros((7 if RANK == 0 else 0, 1), "float32")), only if RANK == 0 else (0,) * 4,
                  (7, 0, 0, 0) if RANK == 2 else (0,) * 4, ALL)
assert none.shape == ((7, 1) if RANK == 2 else (1, 1))

# big messages, which wait for each other: a ring, pairs, and all at once
big = T(np.full(500_000, RANK, np.float32))
right, left = (RANK + 1) % 4, (RANK - 1) % 4
def around(shape_of):
    steps = [(RANK, right, shape_of(RANK), ms.float32), (left, RANK, shape_of(left), ms.float32)]
    order = C.in_order(steps)
    return C.transfers([T(np.full(shape_of(RANK), RANK, np.float32))], [steps[k] for k in order])[0]
same(around(lambda r: (500_000,)), np.full(500_000, left, np.float32))
same(around(lambda r: (400_000 + r,)), np.full(400_000 + left, left, np.float32))
if RANK < 2:
    steps = [(RANK, 1 - RANK, (600_000 + RANK,), ms.float32), (1 - RANK, RANK, (601_000 - 1000 * RANK,), ms.float32)]
    steps[1] = (1 - RANK, RANK, (600_001 - RANK,), ms.float32)
    got = C.transfers([T(np.full(600_000 + RANK, RANK, np.float32))], [steps[k] for k in C.in_order(steps)])[0]
    same(got, np.full(600_001 - RANK, 1 - RANK, np.float32))
print("DONE")
"""
)


def test_values_of_four_ranks(tmp_path):
    assert all("DONE" in text for text in run_ranks(4, FOUR, tmp_path))


GRADIENTS = (
    VALUES
    + """
# the gradient that rank r gets is that of the sum of all ranks' losses with respect to its tensor
def of_all(fn, xs, weights):
    'd sum_r <weights[r], fn(r, xs)> / d xs[me], by central differences in float64'
    me, out = xs[RANK], np.zeros_like(xs[RANK])
    for k in np.ndindex(me.shape):
        total = []
        for step in (1e-4, -1e-4):
            moved = [x.copy() for x in xs]
            moved[RANK][k] += step
            total.append(sum((w * fn(r, moved)).sum() for r, w in enumerate(weights)))
        out[k] = (total[0] - total[1]) / 2e-4
    return out

n = SIZE
xs = [np.random.default_rng(r).normal(size=(3 * n, 2)) for r in ALL]
xs[0][0, 0] = 0.0  # a product with a zero
each = lambda xs: np.stack(xs)
part = lambda x, r: x[r * 3:r * 3 + 3]
counts = np.arange(1, n * n + 1).reshape(n, n) % 5
counts = (counts * 3 * n) // counts.sum(1, keepdims=True)
counts[:, -1] += 3 * n - counts.sum(1)
starts = np.concatenate([np.zeros((n, 1), int), counts.cumsum(1)], 1)
send, recv = tuple(map(int, counts[RANK])), tuple(map(int, counts[:, RANK]))
def placed(r, x, at):
    return x if r == at else np.zeros_like(x)
CASES = {
    "sum": (lambda x: C.all_reduce(x, "sum", ALL), lambda r, xs: sum(xs)),
    "prod": (lambda x: C.all_reduce(x, "prod", ALL), lambda r, xs: each(xs).prod(0)),
    "max": (lambda x: C.all_reduce(x, "max", ALL), lambda r, xs: each(xs).max(0)),
    "gather": (lambda x: C.all_gather(x, ALL), lambda r, xs: np.concatenate(xs)),
    "scatter": (lambda x: C.reduce_scatter(x, "sum", ALL), lambda r, xs: part(sum(xs), r)),
    "scatter prod": (lambda x: C.reduce_scatter(x, "prod", ALL), lambda r, xs: part(each(xs).prod(0), r)),
    "scatter min": (lambda x: C.reduce_scatter(x, "min", ALL), lambda r, xs: part(each(xs).min(0), r)),
    "all to all": (lambda x: C.all_to_all(x, 0, 1, ALL), lambda r, xs: np.concatenate([part(x, r) for x in xs], 1)),
    "broadcast": (lambda x: C.broadcast(x, 1, ALL), lambda r, xs: xs[1]),
    "reduce": (lambda x: C.reduce_to(x, "sum", 1, ALL), lambda r, xs: placed(r, sum(xs), 1)),
    "reduce prod": (lambda x: C.reduce_to(x, "prod", 0, ALL), lambda r, xs: placed(r, each(xs).prod(0), 0)),
    "reduce max": (lambda x: C.reduce_to(x, "max", 0, ALL), lambda r, xs: placed(r, each(xs).max(0), 0)),
    "at root": (lambda x: C.at_root(x, 1, ALL), lambda r, xs: placed(r, xs[r], 1)),
    "exchange": (lambda x: C.exchange(x, send, recv, ALL),
                 lambda r, xs: np.concatenate([xs[s][starts[s][r]:starts[s][r + 1]] for s in ALL])),
    "ring": (lambda x: C.permute(x, tuple((r, (r + 1) % n) for r in ALL)), lambda r, xs: xs[(r - 1) % n]),
}
def ring(x):
    steps = [(RANK, (RANK + 1) % n, (3 * n, 2), ms.float64), ((RANK - 1) % n, RANK, (3 * n, 2), ms.float64)]
    return C.transfers([x], [steps[k] for k in C.in_order(steps)])[0]
CASES["transfers"] = (ring, CASES["ring"][1])

for name, (fn, reference) in CASES.items():
    made = [reference(r, xs) for r in ALL]
    weights = [np.random.default_rng(100 + r).normal(size=m.shape) for r, m in enumerate(made)]
    w = T(weights[RANK])
    loss = lambda x: (fn(x) * w).sum()
    want = of_all(reference, xs, weights)
    np.testing.assert_allclose(fn(T(xs[RANK])).asnumpy(), made[RANK], rtol=1e-12, err_msg=name)
    eager = ms.grad(loss)(T(xs[RANK])).asnumpy()
    np.testing.assert_allclose(eager, want, rtol=1e-6, atol=1e-7, err_msg=name)
    staged = ms.jit(ms.grad(loss))(T(xs[RANK])).asnumpy()
    np.testing.assert_allclose(staged, want, rtol=1e-6, atol=1e-7, err_msg=name + " staged")

# to second order
w = T(np.random.default_rng(5).normal(size=(3 * n, 2)))
first = lambda x: (ms.grad(lambda x: (C.all_reduce(x * x, "sum", ALL) * w).sum())(x) * w).sum()
got = ms.grad(first)(T(xs[RANK])).asnumpy()
np.testing.assert_allclose(got, 2 * n * (w * w).asnumpy(), rtol=1e-9)
print("DONE")
"""
)


def test_gradients_are_those_of_the_sum_of_losses(tmp_path):
    assert all("DONE" in text for text in run_ranks(3, GRADIENTS, tmp_path))
