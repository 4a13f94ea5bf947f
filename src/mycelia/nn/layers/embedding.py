"""Tables of vectors that are looked up by number."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.initializer import Normal
from mycelia.nn.layers import arguments as arg
from mycelia.tensor import Parameter, Tensor


def _numbers(where: str, argument: str, value: Any) -> Tensor:
    t = value if isinstance(value, Tensor) else arg.tensor(where, argument, value)
    if not t.dtype.is_integer:
        raise DTypeError(where, argument, got=f"dtype {t.dtype}", takes="integers, the numbers of rows of the table")
    return t


class Embedding(Cell):
    """Vectors of a table by their row numbers.

    Args:
        vocab_size: number of rows.
        embedding_size: length of each.
        use_one_hot: look up by a product with one-hot vectors, which suits some devices better.
        embedding_table: initial table: a name, an Initializer, a number or a Tensor of shape
            (vocab_size, embedding_size).
        dtype: dtype of the table.
        padding_idx: a row that starts as zeros.

    Inputs:
        ids: integers of any shape.

    Outputs:
        A tensor of shape ``ids.shape + (embedding_size,)``.

    Raises:
        DTypeError: ``ids`` are not integers.
        OutOfRangeError: a number outside the table.

    >>> import mycelia as ms
    >>> ms.nn.Embedding(10, 4)(ms.Tensor([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        use_one_hot: bool = False,
        embedding_table: Any = "normal",
        dtype: Any = dt.float32,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = arg.positive("Embedding", "vocab_size", vocab_size)
        self.embedding_size = arg.positive("Embedding", "embedding_size", embedding_size)
        arg.flag("Embedding", "use_one_hot", use_one_hot)
        self.use_one_hot = use_one_hot
        self.dtype = arg.floating_dtype("Embedding", dtype)
        self.padding_idx = padding_idx
        shape = (vocab_size, embedding_size)
        table = arg.made("Embedding", "embedding_table", embedding_table, shape, self.dtype)
        if padding_idx is not None:
            _row("Embedding", padding_idx, vocab_size)
            rows = table.asnumpy()
            rows[padding_idx] = 0
            table = Tensor(rows)
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, ids: Any) -> Any:
        rows = _numbers("Embedding", "ids", ids)
        if not self.use_one_hot:
            return ops.gather(self.embedding_table, rows, 0)
        places = ops.cast(ops.one_hot(rows, self.vocab_size, 1.0, 0.0), self.dtype)
        return ops.matmul(places, self.embedding_table)

    def extend_repr(self) -> str:
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}, "
            f"embedding_table={self.embedding_table}, dtype={self.dtype}, padding_idx={self.padding_idx}"
        )


def _row(where: str, value: Any, count: int, lowest: int = 0) -> int:
    arg.positive(where, "padding_idx", value, lowest)
    if value >= count:
        raise ArgumentValueError(where, "padding_idx", got=str(value), takes=f"a row from {lowest} to {count - 1}")
    return int(value)


class EmbeddingExt(Cell):
    """:class:`Embedding` whose padding row gets no gradient, and whose rows may be kept short.

    Args:
        num_embeddings: number of rows.
        embedding_dim: length of each.
        padding_idx: a row that starts as zeros and gets no gradient; may count from the end.
        max_norm: rows that are looked up are first scaled to at most this norm.
        norm_type: which p-norm that is.
        scale_grad_by_freq: divide the gradient of a row by how often it was looked up.
        sparse: False: gradients are dense.
        _weight: initial table, a Tensor of shape (num_embeddings, embedding_dim); standard normal by default.
        _freeze: whether the table is not trained.
        dtype: dtype of the table; float32 by default.

    Inputs:
        input: integers of any shape.

    >>> import mycelia as ms
    >>> ms.nn.EmbeddingExt(10, 4, padding_idx=0)(ms.Tensor([0])).tolist()
    [[0.0, 0.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = "EmbeddingExt"
        self.num_embeddings = arg.positive(where, "num_embeddings", num_embeddings)
        self.embedding_dim = arg.positive(where, "embedding_dim", embedding_dim)
        for name, value in (("scale_grad_by_freq", scale_grad_by_freq), ("sparse", sparse), ("_freeze", _freeze)):
            arg.flag(where, name, value)
        if sparse:
            raise ArgumentValueError(where, "sparse", got="True", takes="False: gradients are dense")
        self.max_norm = None if max_norm is None else arg.number(where, "max_norm", max_norm)
        self.norm_type = arg.number(where, "norm_type", norm_type)
        self.scale_grad_by_freq = scale_grad_by_freq
        kind = arg.floating_dtype(where, dtype)
        init = Normal(1.0) if _weight is None else _weight
        table = arg.made(where, "_weight", init, (num_embeddings, embedding_dim), kind)
        self.padding_idx = None
        if padding_idx is not None:
            self.padding_idx = _row(where, padding_idx, num_embeddings, -num_embeddings) % num_embeddings
            if _weight is None:
                rows = table.asnumpy()
                rows[self.padding_idx] = 0
                table = Tensor(rows)
        self.weight = Parameter(table, name="weight", requires_grad=not _freeze)

    def construct(self, input: Any) -> Any:
        rows = _numbers("EmbeddingExt", "input", input)
        return ops.embedding(
            rows, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq
        )  # fmt: skip

    def extend_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, padding_idx={self.padding_idx}"
        )


_SLICES = ("batch_slice", "field_slice", "table_row_slice", "table_column_slice")


class EmbeddingLookup(Cell):
    """Vectors of a table by their row numbers; numbers beyond the table give zeros.

    Args:
        vocab_size: number of rows.
        embedding_size: length of each.
        param_init: initial table: a name, an Initializer, a number or a Tensor.
        target: ``"CPU"`` or ``"DEVICE"``, where the table is meant to be; kept.
        slice_mode: how a parallel plan cuts the table: ``"batch_slice"``, ``"field_slice"``,
            ``"table_row_slice"`` or ``"table_column_slice"``; kept.
        manual_shapes: rows of each field with ``"field_slice"``.
        max_norm: vectors are scaled to at most this norm.
        sparse: kept.
        dtype: dtype of the table.

    Inputs:
        indices: integers of any shape.

    Outputs:
        A tensor of shape ``indices.shape + (embedding_size,)``.

    Raises:
        DTypeError: ``indices`` are not integers.

    >>> import mycelia as ms
    >>> ms.nn.EmbeddingLookup(4, 2, "ones")(ms.Tensor([1, 9])).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        param_init: Any = "normal",
        target: str = "CPU",
        slice_mode: str = "batch_slice",
        manual_shapes: Any = None,
        max_norm: float | None = None,
        sparse: bool = True,
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__()
        where = type(self).__name__
        self.vocab_size = arg.positive(where, "vocab_size", vocab_size)
        self.embedding_size = arg.positive(where, "embedding_size", embedding_size)
        self.target = arg.choice(where, "target", target, ("CPU", "DEVICE"))
        self.slice_mode = arg.choice(where, "slice_mode", slice_mode, _SLICES)
        arg.flag(where, "sparse", sparse)
        if target == "CPU" and not sparse:
            raise ArgumentValueError(where, "sparse", got="False with target='CPU'", takes="True")
        if slice_mode == "field_slice" and not isinstance(manual_shapes, tuple):
            raise ArgumentTypeError(where, "manual_shapes", got=repr(manual_shapes), takes="a tuple with 'field_slice'")
        self.sparse = sparse
        self.manual_shapes = manual_shapes
        self.max_norm = None if max_norm is None else arg.number(where, "max_norm", max_norm)
        kind = arg.floating_dtype(where, dtype)
        shape = (vocab_size, embedding_size)
        self.embedding_table = arg.parameter(where, "param_init", param_init, shape, kind, "embedding_table")

    def construct(self, indices: Any) -> Any:
        return self._rows(_numbers(type(self).__name__, "indices", indices))

    def _rows(self, rows: Tensor) -> Any:
        inside = (rows < self.vocab_size) & (rows >= 0)
        found = ops.gather(self.embedding_table, ops.where(inside, rows, 0), 0)
        found = ops.where(ops.expand_dims(inside, -1), found, 0.0)
        if self.max_norm is None:
            return found
        norm = ops.sqrt(ops.sum(ops.square(found), -1, True))
        longest = ops.maximum(norm, self.max_norm)
        return found * (self.max_norm / longest)


class MultiFieldEmbeddingLookup(EmbeddingLookup):
    """Weighted vectors of a table, combined within each field of a sample.

    Args:
        vocab_size: number of rows.
        embedding_size: length of each.
        field_size: number of fields.
        param_init: initial table.
        target: ``"CPU"`` or ``"DEVICE"``; kept.
        slice_mode: see :class:`EmbeddingLookup`; kept.
        feature_num_list: kept.
        max_norm: vectors are scaled to at most this norm.
        sparse: kept.
        operator: ``"SUM"``, ``"MEAN"`` or ``"MAX"``.
        dtype: dtype of the table.

    Inputs:
        input_indices: integers of shape (batch, length).
        input_values: weights of shape (batch, length).
        field_ids: the field that each belongs to, integers of shape (batch, length); those outside are left out.

    Outputs:
        A tensor of shape (batch, field_size, embedding_size).

    Raises:
        ShapeError: the three shapes differ.

    >>> import mycelia as ms
    >>> net = ms.nn.MultiFieldEmbeddingLookup(4, 1, 2, "ones")
    >>> rows, fields = ms.Tensor([[0, 1, 2]]), ms.Tensor([[0, 0, 1]])
    >>> net(rows, ms.Tensor([[1.0, 2.0, 4.0]]), fields).flatten().tolist()
    [3.0, 4.0]
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        field_size: int,
        param_init: Any = "normal",
        target: str = "CPU",
        slice_mode: str = "batch_slice",
        feature_num_list: Any = None,
        max_norm: float | None = None,
        sparse: bool = True,
        operator: str = "SUM",
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__(
            vocab_size, embedding_size, param_init, target, slice_mode, feature_num_list, max_norm, sparse, dtype
        )
        self.field_size = arg.positive("MultiFieldEmbeddingLookup", "field_size", field_size)
        self.operator = arg.choice("MultiFieldEmbeddingLookup", "operator", operator, ("SUM", "MEAN", "MAX"))

    def construct(  # type: ignore[override]
        self, input_indices: Any, input_values: Any, field_ids: Any
    ) -> Any:
        where = "MultiFieldEmbeddingLookup"
        rows = arg.axes_of_input(
            where, "input_indices", _numbers(where, "input_indices", input_indices), (2,), "(batch, length)"
        )
        fields = _numbers(where, "field_ids", field_ids)
        values = arg.tensor(where, "input_values", input_values)
        for name, t in (("input_values", values), ("field_ids", fields)):
            if t.shape != rows.shape:
                raise ShapeError(
                    where, name, got=f"shape {t.shape}", takes=f"the shape of 'input_indices', {rows.shape}"
                )
        vectors = ops.expand_dims(self._rows(rows) * ops.expand_dims(values, -1), 1)
        numbers = ops.reshape(ops.arange(self.field_size), (1, self.field_size, 1))
        member = ops.expand_dims(ops.expand_dims(fields, 1) == numbers, -1)
        if self.operator == "MAX":
            lowest = ops.where(member, vectors, -float("inf"))
            largest = ops.max(lowest, 2)[0]
            return ops.where(ops.any(member, 2), largest, 0.0)
        total = ops.sum(ops.where(member, vectors, 0.0), 2)
        if self.operator == "SUM":
            return total
        count = ops.cast(ops.sum(ops.cast(member, dt.int32), 2), total.dtype)
        return total / ops.maximum(count, 1.0)
