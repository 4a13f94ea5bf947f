"""Record what MindSpore's array operators give: expressions and their values, in array_operators.json.

Run with a Python that has MindSpore (2.10 on the CPU). The same expressions are evaluated by
``tests/ops/test_array_oracle.py`` with this package.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

#: Data of the expressions, as NumPy arrays; each becomes a Tensor of its name.
DATA = {
    "A": np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]], np.float32),
    "B": np.array([[True, False, True], [True, True, True]]),
    "I": np.array([[1, 2, 3], [4, 5, 6]], np.int32),
    "X": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "V": np.arange(5, dtype=np.float32),
    "S": np.array(2.0, np.float32),
    "N": np.array([1.0, np.nan, 3.0], np.float32),
    "M": np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4),
    "ties": np.array([1, 1, 0, 2, 2], np.float32),
    "numbers": np.array([3, 1, 2, 1, 3], np.int64),
    "one_two": np.array([1, 2], np.int32),
    "rows": np.array([1, 0], np.int32),
    "grid": np.array([[0, 1], [1, 0]], np.int32),
    "places": np.array([[0, 0], [1, 2]], np.int64),
    "pairs": np.array([[0, 2], [1, 0]], np.int32),
    "twice": np.array([[0, 2], [0, 2]], np.int32),
    "lone": np.array([[1]], np.int32),
    "values": np.array([7.0, 8.0], np.float32),
    "row": np.array([[7.0, 8.0, 9.0]], np.float32),
    "block": np.ones((2, 2), np.float32),
    "table": np.ones((2, 3), np.float32),
    "zeros": np.zeros(0, np.int32),
    "source": np.arange(10, dtype=np.float32),
    "size": np.array([4, 4], np.int32),
    "small": np.array([1, 2], np.int8),
    "unsigned": np.array([1, 2], np.uint8),
    "sorted_": np.array([1.0, 2.0, 3.0], np.float32),
    "wanted": np.array([0.5, 2.0, 5.0], np.float32),
    "counts": np.array([1, 2, 1], np.int64),
    "weights": np.array([1.0, 2.0, 0.5], np.float32),
    "one": np.array(1.0, np.float32),
}

EXPRESSIONS = """
ops.sum(I); ops.sum(B); ops.sum(small); ops.sum(unsigned); I.sum(0); I.sum(axis=0, keepdims=True)
A.sum(axis=0, initial=5); A.sum(0, ms.float64); A.sum(0, True); A.sum(dim=0, keepdim=True); A.sum([0, 1])
ops.sum(A, ()); ops.sum(A, dim=[0]); ops.reduce_sum(I, 0); ops.reduce_mean(A, 1); ops.reduce_max(A, 1)
ops.reduce_min(A, 1); ops.mean(A, 0); ops.mean(A, ()); A.mean(dim=0); A.mean((0, 1), keep_dims=True); ops.prod(I)
ops.prod(B); ops.prod(A, 0); ops.prod(A, (0, 1)); ops.prod(A, 0, True, ms.float64); I.prod(0); ops.max(A)
ops.max(A, 1); ops.max(I, 1); ops.max(A, axis=0, keepdims=True); ops.max(A, axis=None, keepdims=True)
ops.max(A, 0, initial=2); ops.max(A, 0, initial=2, where=B); ops.max(A, initial=2, where=B); ops.max(A, where=B)
ops.max(S, 0); A.max(); A.max(0); A.max(dim=0); A.max(axis=0); A.max(axis=0, return_indices=True)
A.max(return_indices=True); A.max(axis=(0, 1)); A.max(0, True); A.max(axis=0, initial=2.0, where=B)
A.max(1, keepdim=True); A.max(axis=1, keepdims=True); A.max(None); A.max(axis=None, keepdims=True); ops.min(A, 1)
ops.min(A); A.min(axis=0); A.min(0); ops.amax(A); ops.amax(A, (0, 1), True); ops.amax(A, 0, initial=2)
ops.amax(A, 0, initial=2, where=B); ops.amax(I, 0); ops.amin(A, (0, 1), where=B, initial=9); ops.aminmax(A)
ops.aminmax(A, axis=1, keepdims=True); A.aminmax(axis=None); A.argmax_with_value()
A.argmin_with_value(axis=1, keep_dims=True); ops.all(A); ops.all(B, 0); ops.all(B, (0, 1), True); ops.any(I, 1)
B.any(axis=0); B.all(dim=0, keepdim=True); ops.argmax(A); ops.argmax(A, 1, True); ops.argmax(A, None, True)
ops.argmax(B, 0); ops.argmax(S); ops.argmin(A); ops.argmin(A, 1, True); A.argmax(axis=1)
A.argmax(dim=1, keepdim=True); A.argmin(axis=1, keepdims=True); ops.logsumexp(A, 0); ops.logsumexp(A, (0, 1), True)
ops.logsumexp(A, ()); A.logsumexp(1); ops.count_nonzero(A); ops.count_nonzero(A, 0)
ops.count_nonzero(A, (0, 1), True, ms.int64); A.count_nonzero(axis=0, keep_dims=True); ops.nansum(N)
ops.nansum(N, 0, True); ops.nansum(I); ops.nanmean(N); ops.norm(A); ops.norm(A, 2, 1); ops.norm(A, float("inf"), 0)
ops.norm(A, 0, 1); ops.norm(A, None, (0, 1), True); ops.norm(I); ops.norm(X); A.norm(); ops.vector_norm(A)
ops.vector_norm(A, 3, (0, 1), True); ops.vector_norm(A, -2, 1); ops.var(A); ops.var(A, 0); ops.var(A, 0, 1, True)
ops.var(A, 0, True); ops.var(A, (0, 1)); ops.std(A, 1); ops.std(A, 1, True); ops.var_mean(A, 0)
ops.std_mean(A, 0, 1, True); A.var(0); A.var(axis=0, ddof=1); A.std(axis=None); A.std(0, 1)
A.std(dim=0, correction=0, keepdim=True); ops.var(S); ops.var(S, ddof=1); ops.std(A, None, 1); ops.median(A)
ops.median(A, 0); ops.median(N); ops.median(I, 1, True); A.median(1); A.median(axis=1); ops.nanmedian(N)
ops.nanmedian(A, 0); ops.histc(A, 4); ops.histc(A, 4, -1, 1); ops.histc(I, 4); ops.cov(A); ops.cov(A, correction=0)
ops.cov(A, fweights=counts); ops.cov(A, aweights=weights); ops.cov(A[0]); ops.cov(I); ops.cumsum(A, 1)
ops.cumsum(I, 1); ops.cumsum(small, 0); ops.cumsum(unsigned, 0); ops.cumsum(A, 0, ms.float64); A.cumsum()
A.cumsum(1); A.cumsum(axis=1); A.cumsum(dim=1, dtype=ms.float64); I.cumsum(); ops.cumprod(A, 1); ops.cumprod(I, 1)
ops.cummax(A, 1); ops.cummax(N, 0); ops.cummax(ties, 0); ops.cummin(ties, 0); ops.cummax(I, 0); ops.cummin(N, 0)
ops.logcumsumexp(A, 1); ops.diff(A); ops.diff(A, 1, 0); ops.diff(B); ops.diff(A, prepend=A[:, :1])
ops.diff(A, append=A); ops.sort(A); ops.sort(A, 0, True); ops.sort(ties, descending=True); ops.sort(I, 1, True)
A.sort(axis=0); A.sort(dim=0, descending=True, stable=True); ops.argsort(A); ops.argsort(A, 0, True)
A.argsort(dim=0); ops.topk(A, 2); ops.topk(A, 2, 1, False); ops.topk(A, 1, 0); ops.topk(A, 2, None, True, False)
A.topk(2, dim=0); ops.top_k(A, 2); ops.msort(A); ops.searchsorted(sorted_, wanted)
ops.searchsorted(sorted_, wanted, right=True); ops.searchsorted(sorted_, N); ops.expand_dims(A, 0)
ops.unsqueeze(A, -1); ops.squeeze(one_by_two); ops.squeeze(one_by_two, 0); ops.squeeze(one_by_two, (0, 2))
ops.squeeze(one_by_two, 1); one_by_two.squeeze(1); ops.flatten(X); ops.flatten(X, "F")
ops.flatten(A, "F", start_dim=0); ops.flatten(X, start_dim=0, end_dim=1); ops.flatten(S); ops.flatten(V)
X.flatten(); X.flatten(1); A.flatten("F"); X.flatten(start_dim=1, end_dim=2); ops.swapaxes(X, 0, 2)
ops.movedim(X, (0, 1), (2, 0)); ops.t(A); ops.t(V); ops.t(X); X.T; X.mT; A.H; ops.adjoint(X); X.swapdims(0, 1)
X.transpose(); X.transpose(2, 0, 1); X.transpose((2, 0, 1)); X.transpose(0, 1); A.transpose(0, 1)
X.transpose(dim0=0, dim1=1); X.permute(2, 0, 1); X.permute(); ops.permute(X, (2, 0, 1)); ops.transpose(X, (1, 0, 2))
ops.broadcast_to(V, (2, -1)); V.broadcast_to(2, 5); V.expand(2, 5); V.expand_as(ops.ones((3, 5)))
A.view_as(block_3); A.reshape_as(block_3); ops.tile(A, (2, 1)); ops.tile(A, (2, 1, 2)); ops.tile(X, (2,))
A.tile(2, 2); A.tile(dims=(2, 2)); ops.tile(S, (2,)); ops.repeat_interleave(A, 2); ops.repeat_interleave(A, 2, 0)
ops.repeat_interleave(A, one_two, 0); ops.repeat_interleave(A, [1, 2], 0); A.repeat_interleave(2, dim=1)
ops.repeat_elements(A, 2, 1); ops.flip(A, (0, 1)); ops.flip(A, ()); A.flip((0, 1)); ops.fliplr(A); ops.flipud(V)
ops.reverse(A, [0]); ops.rot90(A, 1, (0, 1)); ops.rot90(A, -1, [1, 0]); ops.rot90(A, 2, (0, 1)); ops.unfold(M, 2)
ops.unfold(M, (2, 2), stride=2); ops.unfold(M, 2, padding=1, dilation=2); ops.unfold(M, 2, padding=(1, 0))
ops.fold(ops.unfold(M, 2, stride=2), size, 2, stride=2); ops.fold(ops.unfold(M, 2), size, 2)
ops.space_to_batch_nd(M, [2, 2], [[0, 0], [0, 0]]); ops.space_to_batch_nd(M, 2, [[0, 2], [1, 1]])
ops.batch_to_space_nd(ops.space_to_batch_nd(M, [2, 2], [[0, 2], [0, 0]]), [2, 2], [[0, 2], [0, 0]]); ops.shape(A)
ops.size(A); ops.rank(A); ops.numel(A); ops.dyn_shape(A); ops.atleast_1d(S); ops.atleast_2d(V); ops.atleast_3d(A)
ops.atleast_3d(V); ops.atleast_2d([V, S]); ops.ravel(A); ops.concat((A, A)); ops.cat([A, A], -1); ops.cat((A,))
ops.stack([A, A], -1); ops.stack([S, S]); ops.stack(A); ops.split(A, 1); ops.split(A, 2, 1); ops.split(A, (1, 2), 1)
ops.split(A, 5, 1); A.split(2, axis=1); A.split(split_size=2, dim=1); ops.chunk(V, 2); ops.chunk(V, 4)
ops.chunk(V, 7); A.chunk(2, 1); ops.tensor_split(V, 3); ops.tensor_split(V, (1, 3)); ops.tensor_split(V, 7)
ops.tensor_split(V, [3, 1, 9]); ops.hsplit(A, 3); ops.vsplit(A, 2); ops.dsplit(X, 2); ops.unstack(A, 1)
ops.unbind(A, 1); ops.hstack((V, V)); ops.hstack((A, A)); ops.hstack((S, S)); ops.vstack((V, V)); ops.dstack((V, V))
ops.dstack((A, A)); ops.column_stack((V, V)); ops.column_stack((A, A)); ops.row_stack((V, V))
ops.block_diag(A, V, S); ops.pad(A, (1, 1)); ops.pad(A, (1, 0, 0, 1), value=2.0); ops.pad(A, (1, 1), mode="reflect")
ops.pad(X, (1, 1), mode="reflect"); ops.pad(M, (1, 1, 1, 1), mode="reflect")
ops.pad(M, (1, 1, 1, 1), mode="replicate"); ops.pad(M, (1, 1, 1, 1), mode="circular"); ops.pad(A, (-1, 0))
ops.pad(A, (-1, 2), value=7); ops.pad(I, (1, 1)); ops.pad(A, [1, 1], "constant", None); ops.pad(A, ())
ops.pad(S, ()); ops.pad(M, (-1, 1, 0, 0), mode="replicate"); ops.pad(M, (-1, 1, 0, 0), mode="reflect")
ops.padding(ops.ones((2, 1)), 4); ops.gather(A, rows, 0); ops.gather(A, rows, 1); ops.gather(A, grid, 1)
ops.gather(A, grid, 1, 1); ops.gather(A, rows, -1); A.gather(rows, 0); A.gather(rows, axis=0)
A.gather(dim=1, index=places); ops.gather_d(A, 1, places); ops.gather_elements(A, 0, grid); ops.gather_nd(A, pairs)
ops.gather_nd(A, lone); ops.gather_nd(A, one_two); ops.index_select(A, 1, rows); A.index_select(dim=1, index=rows)
A.take(rows); A.take(rows, axis=1); A.take(far, axis=1); A.take(far, axis=1, mode="wrap")
ops.slice(A, (0, 1), (2, 2)); ops.slice(A, (0, 1), (2, -1)); ops.slice(A, [1, 0], [1, 3])
ops.strided_slice(X, (0, 0, 0), (2, 3, 4), (1, 2, 2)); ops.strided_slice(X, (0, 0), (1, 1), (1, 1))
ops.strided_slice(X, (1, 2, 3), (0, 0, 0), (-1, -1, -2))
ops.strided_slice(X, (0, 0, 0), (1, 1, 1), (1, 1, 1), begin_mask=2, end_mask=5)
ops.strided_slice(X, (0, 0, 0), (1, 1, 1), (1, 1, 1), shrink_axis_mask=1)
ops.strided_slice(X, (-1, -2, 0), (2, 3, -1), (1, 1, 1))
ops.strided_slice(X, (0, 0, 1), (1, 1, 2), (1, 1, 1), shrink_axis_mask=5)
ops.strided_slice(X, (5, 0, 0), (9, 3, 4), (1, 1, 1)); ops.strided_slice(X, (0, 0), (1, 1), (1, 1), ellipsis_mask=1)
ops.narrow(A, 1, 1, 2); A.narrow(1, 1, 2); A.select(1, 2); ops.one_hot(rows, 3)
ops.one_hot(far_places, 3, 1.0, 0.0); ops.one_hot(rows, 3, one, S, 0); ops.one_hot(grid, 3, axis=1)
ops.one_hot(I, 8); ops.select_scatter(A, ops.zeros((3,)), 0, 1); ops.slice_scatter(A, ops.zeros((2, 2)), 1, 0, 2)
ops.scatter(A, 1, places, block); ops.scatter(A, 1, places, 9.0); A.scatter(1, places, block)
A.scatter_add(twice, values); ops.scatter_nd(lone_column, weights, (4,)); ops.scatter_nd(pairs, values, (2, 3))
ops.tensor_scatter_elements(A, places, block, 1, "add"); ops.tensor_scatter_elements(A, places, block, 1)
ops.tensor_scatter_update(A, pairs, values); ops.tensor_scatter_update(A, lone, row)
ops.tensor_scatter_add(A, twice, values); ops.tensor_scatter_sub(A, twice, values)
ops.tensor_scatter_mul(A, twice, values); ops.tensor_scatter_div(A, twice, values)
ops.tensor_scatter_max(A, twice, values); ops.tensor_scatter_min(A, twice, values); A.scatter_sub(twice, values)
A.scatter_min(twice, values); ops.index_fill(A, 1, rows, 9.0); ops.index_fill(A, 1, rows, one)
A.masked_scatter(B, source); A.masked_scatter(B[0], source); A.index_put((rows, rows), values)
A.index_put((rows * 0, rows * 0), values, True); ops.index_add(ms.Parameter(A), rows * 0, table, 0)
ops.index_add(ms.Parameter(A), rows, block, 1); ops.scatter_update(ms.Parameter(A), rows[:1], row)
ops.scatter_add(ms.Parameter(A), rows * 0, table); ops.scatter_mul(ms.Parameter(A), rows, table * 2)
ops.scatter_div(ms.Parameter(A), rows[:1], row); ops.scatter_max(ms.Parameter(A), rows[:1], row)
ops.scatter_min(ms.Parameter(A), rows[:1], row); ops.scatter_nd_add(ms.Parameter(A), pairs, values)
ops.scatter_nd_sub(ms.Parameter(A), twice, values); ops.scatter_nd_mul(ms.Parameter(A), pairs, values)
ops.scatter_nd_max(ms.Parameter(A), pairs, values); ops.scatter_nd_min(ms.Parameter(A), pairs, values)
ops.scatter_nd_update(ms.Parameter(A), pairs, values); ops.inplace_add(A, row, 1); ops.inplace_sub(A, row, 1)
ops.inplace_update(A, table, (0, 1)); ops.inplace_index_add(ms.Parameter(A), rows, table, 0)
ops.unsorted_segment_sum(A, rows, 2); ops.unsorted_segment_sum(A, rows * 0, 2)
ops.unsorted_segment_sum(A, rows - 1, 2); ops.unsorted_segment_max(A, rows * 0, 2)
ops.unsorted_segment_min(A, rows, 2); ops.unsorted_segment_prod(A, rows * 0 + 1, 2)
ops.mirror_pad(A, mirror, "SYMMETRIC"); ops.mirror_pad(A, mirror, "REFLECT")
ops.reverse_sequence(A, counts[1:] + 1, 1); ops.sequence_mask(counts, 4); ops.sequence_mask(counts); ops.trapz(A)
ops.trapz(A, dx=2.0, dim=0); ops.trapz(A, sorted_); ops.trapz(I); ops.cartesian_prod(one_two, rows)
ops.cartesian_prod(one_two); ops.combinations(one_two_three); ops.combinations(one_two_three, r=3)
ops.combinations(one_two_three, with_replacement=True); ops.tuple_to_array((1, 2, 3))
ops.tuple_to_array((1.0, 2, 3)); ops.sparse_segment_mean(A, rows, one_two - 1)
ops.sparse_segment_mean(A, rows, one_two); A.sum_to_size((1, 3)); A.sum_to_size(2, 1); A.resize(2, 2)
A.resize((2, 4)); rows.choose([[0, 1], [10, 11]]); A.unsorted_segment_max(rows, 2); A.itemset(0, 9.0)
A.itemset((0, 1), 9.0); ops.intopk(A, rows, 1); ops.col2im(ones_4, size, [2, 2], [1, 1], [0, 0], [1, 1]); X[0]
X[None]; X[:, ::-1]; X[rows, :, rows]; X[0, :, rows]; X[[0, 1]]; X[B]; X[X > 20]; X[1:10]; X[..., 0]; A[B[:, 1]]
X[True]
"""

#: More data made of the above.
DERIVED = {
    "one_by_two": "A.reshape(1, 6, 1)",
    "block_3": "A.reshape(3, 2)",
    "far": "rows * 7 - 3",
    "far_places": "one_two * 3 - 4",
    "mirror": "ms.Tensor([[1, 1], [2, 2]])",
    "ones_4": "ops.ones((1, 1, 4, 9))",
    "lone_column": "one_two_three.reshape(3, 1)",
}
DATA["one_two_three"] = np.array([1, 2, 1], np.int32)


def expressions() -> list[str]:
    """The expressions, one by one."""
    found, text = [], EXPRESSIONS.replace("\n", ";")
    for part in text.split(";"):
        if part.strip():
            found.append(part.strip())
    return found


def names(package: object) -> dict[str, object]:
    """What the expressions name, for a package with MindSpore's names."""
    space: dict[str, object] = {"ms": package, "ops": package.ops, "float": float}  # type: ignore[attr-defined]
    space.update({name: package.Tensor(array) for name, array in DATA.items()})  # type: ignore[attr-defined]
    for name, text in DERIVED.items():
        space[name] = eval(text, dict(space))
    return space


def described(value: object) -> object:
    """A result as JSON: dtype, shape and elements of tensors."""
    if isinstance(value, (tuple, list)):
        return [described(v) for v in value]
    if hasattr(value, "asnumpy"):
        array = value.asnumpy()
        return {"dtype": str(value.dtype), "shape": list(array.shape), "values": array.ravel().tolist()}
    return value


def main() -> None:
    import mindspore

    recorded = {}
    for text in expressions():
        try:
            recorded[text] = described(eval(text, names(mindspore)))
        except Exception as error:
            print(f"not recorded: {text}: {type(error).__name__}", file=sys.stderr)
    out = Path(__file__).with_name("array_operators.json")
    out.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in recorded.items()) + "\n}\n")


if __name__ == "__main__":
    main()
