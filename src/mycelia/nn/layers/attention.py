"""Multi-head attention: A. Vaswani et al., "Attention is all you need", 2017."""

from __future__ import annotations

import math
from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, DTypeError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.initializer import XavierNormal
from mycelia.nn.layers import arguments as arg
from mycelia.nn.layers.dense import Dense
from mycelia.ops.attention import scaled_dot_product_attention
from mycelia.ops.dropout import dropout
from mycelia.ops.softmax import softmax
from mycelia.tensor import Tensor

_WHERE = "MultiheadAttention"


def additive(argument: str, mask: Any, dtype: dt.DType, where: str = _WHERE) -> Tensor | None:
    """A mask as numbers to add to the scores: minus infinity where a bool mask is True.

    Raises:
        DTypeError: the mask is neither bool nor floating.
    """
    if mask is None:
        return None
    t = arg.tensor(where, argument, mask)
    if t.dtype is dt.bool_:
        zeros = ops.zeros(t.shape, dtype)
        return ops.masked_fill(zeros, t, -math.inf)
    if not t.dtype.is_floating:
        raise DTypeError(where, argument, got=f"dtype {t.dtype}", takes="bools or floats")
    return ops.cast(t, dtype)


class MultiheadAttention(Cell):
    """Attention of queries to keys in several heads.

    Args:
        embed_dim: features of queries and outputs, a multiple of the heads.
        num_heads: number of heads.
        dropout: in training, the probability to drop an attention weight.
        has_bias: whether the projections have biases.
        add_bias_kv: add a learned key and value to the sequences.
        add_zero_attn: add a key and value of zeros to the sequences.
        kdim: features of keys; ``embed_dim`` by default.
        vdim: features of values; ``embed_dim`` by default.
        batch_first: the batch is the first axis of inputs and output.
        dtype: dtype of the parameters.

    Inputs:
        query: a tensor of shape (L, batch, embed_dim), or (L, embed_dim).
        key: a tensor of shape (S, batch, kdim).
        value: a tensor of shape (S, batch, vdim).
        key_padding_mask: which keys to leave out, of shape (batch, S): True, or numbers added to the scores.
        need_weights: also give the attention weights.
        attn_mask: likewise for each query, of shape (L, S) or (batch * num_heads, L, S).
        average_attn_weights: give the weights as means over the heads.

    Outputs:
        A tuple of the output, of the shape of ``query``, and, if asked for, the weights of shape (batch, L, S), or
        (batch, num_heads, L, S).

    Raises:
        ArgumentValueError: ``embed_dim`` is no multiple of ``num_heads``.
        ShapeError: an input or mask has another shape.

    >>> import mycelia as ms
    >>> x = ms.ops.ones((5, 2, 8))
    >>> y, weights = ms.nn.MultiheadAttention(8, 2)(x, x, x)
    >>> y.shape, weights.shape
    ((5, 2, 8), (2, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        has_bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__()
        self.embed_dim = arg.positive(_WHERE, "embed_dim", embed_dim)
        self.num_heads = arg.positive(_WHERE, "num_heads", num_heads)
        if embed_dim % num_heads:
            raise ArgumentValueError(
                _WHERE, "embed_dim", got=f"{embed_dim} with num_heads={num_heads}", takes="a multiple of the heads"
            )
        self.head_dim = embed_dim // num_heads
        self.dropout = arg.fraction(_WHERE, "dropout", dropout)
        self.kdim = embed_dim if kdim is None else arg.positive(_WHERE, "kdim", kdim)
        self.vdim = embed_dim if vdim is None else arg.positive(_WHERE, "vdim", vdim)
        flags = {
            "has_bias": has_bias,
            "add_bias_kv": add_bias_kv,
            "add_zero_attn": add_zero_attn,
            "batch_first": batch_first,
        }
        for name, value in flags.items():
            arg.flag(_WHERE, name, value)
        self.has_bias, self.add_zero_attn, self.batch_first = has_bias, add_zero_attn, batch_first
        self._same_dim = self.kdim == self.vdim == embed_dim
        kind = arg.floating_dtype(_WHERE, dtype)
        widths = {"in_proj_weight": (3 * embed_dim, embed_dim)} if self._same_dim else {
            "q_proj_weight": (embed_dim, embed_dim), "k_proj_weight": (embed_dim, self.kdim),
            "v_proj_weight": (embed_dim, self.vdim),
        }  # fmt: skip
        for name, shape in widths.items():
            setattr(self, name, arg.parameter(_WHERE, name, "xavier_uniform", shape, kind, name))
        self.in_proj_bias = self.bias_k = self.bias_v = None
        if has_bias:
            self.in_proj_bias = arg.parameter(_WHERE, "in_proj_bias", "zeros", (3 * embed_dim,), kind, "in_proj_bias")
        if add_bias_kv:
            self.bias_k = arg.parameter(_WHERE, "bias_k", XavierNormal(), (1, 1, embed_dim), kind, "bias_k")
            self.bias_v = arg.parameter(_WHERE, "bias_v", XavierNormal(), (1, 1, embed_dim), kind, "bias_v")
        self.out_proj = Dense(embed_dim, embed_dim, has_bias=has_bias, dtype=kind)

    def construct(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
    ) -> Any:
        batched = self._check_inputs(query, key, value)
        q, k, v = self._projected(query, key, value)
        if not batched:
            q, k, v = (ops.expand_dims(t, 1) for t in (q, k, v))
        elif self.batch_first:
            q, k, v = (ops.transpose(t, (1, 0, 2)) for t in (q, k, v))
        length, batch = q.shape[:2]
        mask = self._mask(key_padding_mask, attn_mask, length, batch, k.shape[0], q.dtype, batched)
        k, v, mask = self._extended(k, v, mask, batch)
        heads = [
            ops.transpose(ops.reshape(t, (t.shape[0], batch, self.num_heads, self.head_dim)), (1, 2, 0, 3))
            for t in (q, k, v)
        ]
        drops = self.training and self.dropout > 0
        weights: Any = None
        if need_weights or drops:
            scores = ops.matmul(heads[0] * self.head_dim**-0.5, ops.transpose(heads[1], (0, 1, 3, 2)))
            weights = softmax(scores if mask is None else scores + mask, -1)
            if drops:
                weights = dropout(weights, self.dropout)
            mixed: Any = ops.matmul(weights, heads[2])
        else:
            mixed = scaled_dot_product_attention(heads[0], heads[1], heads[2], mask)
        out = ops.reshape(ops.transpose(mixed, (2, 0, 1, 3)), (length, batch, self.embed_dim))
        if not batched:
            out = ops.squeeze(out, 1)
        elif self.batch_first:
            out = ops.transpose(out, (1, 0, 2))
        out = self.out_proj(out)
        if not need_weights:
            return (out,)
        if average_attn_weights:
            weights = ops.mean(weights, 1)
        return out, (weights if batched else ops.squeeze(weights, 0))

    def _check_inputs(self, query: Any, key: Any, value: Any) -> bool:
        """Refuse inputs of other shapes; whether there is a batch axis."""
        tensors = [arg.axes_of_input(_WHERE, n, t, (2, 3), "(length, batch, features)") for n, t in
                   (("query", query), ("key", key), ("value", value))]  # fmt: skip
        q, k, v = tensors
        for name, t, features in (("query", q, self.embed_dim), ("key", k, self.kdim), ("value", v, self.vdim)):
            arg.channels_of(_WHERE, name, t, -1, features, "features")
            if t.ndim != q.ndim:
                raise ShapeError(_WHERE, name, got=f"shape {t.shape}", takes=f"{q.ndim} axes, as 'query' has")
        if k.shape[:-1] != v.shape[:-1]:
            raise ShapeError(_WHERE, "value", got=f"shape {v.shape}", takes=f"the length and batch of 'key' {k.shape}")
        batch = 0 if self.batch_first else 1
        if q.ndim == 3 and q.shape[batch] != k.shape[batch]:
            raise ShapeError(
                _WHERE, "key", got=f"shape {k.shape}", takes=f"a batch of {q.shape[batch]}, as 'query' has"
            )
        return q.ndim == 3

    def _projected(self, query: Any, key: Any, value: Any) -> list[Any]:
        bias = self.in_proj_bias
        if self._same_dim and query is key and key is value:
            return list(ops.chunk(ops.dense(query, self.in_proj_weight, bias), 3, -1))
        if self._same_dim:
            matrices = ops.chunk(self.in_proj_weight, 3, 0)
        else:
            matrices = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None, None, None) if bias is None else ops.chunk(bias, 3, 0)
        return [ops.dense(t, w, b) for t, w, b in zip((query, key, value), matrices, biases, strict=True)]

    def _mask(
        self, padding: Any, mask: Any, length: int, batch: int, keys: int, dtype: dt.DType, batched: bool
    ) -> Tensor | None:
        """Both masks as one that broadcasts to (batch, heads, length, keys)."""
        total: Any = additive("attn_mask", mask, dtype)
        if total is not None:
            wanted = (length, keys) if total.ndim == 2 else (batch * self.num_heads, length, keys)
            if total.shape != wanted:
                raise ShapeError(_WHERE, "attn_mask", got=f"shape {total.shape}", takes=f"shape {wanted}")
            if total.ndim == 3:
                total = ops.reshape(total, (batch, self.num_heads, length, keys))
        left_out: Any = additive("key_padding_mask", padding, dtype)
        if left_out is None:
            return total
        expected = (batch, keys) if batched else (keys,)
        if left_out.shape != expected:
            raise ShapeError(_WHERE, "key_padding_mask", got=f"shape {left_out.shape}", takes=f"shape {expected}")
        left_out = ops.reshape(left_out, (batch, 1, 1, keys))
        return left_out if total is None else total + left_out

    def _extended(self, k: Any, v: Any, mask: Any, batch: int) -> tuple[Any, Any, Any]:
        """Keys and values with the learned and the zero ones, and the mask that lets them through."""
        added: list[tuple[Any, Any]] = []
        if self.bias_k is not None:
            added.append((self.bias_k, self.bias_v))
        if self.add_zero_attn:
            zero = ops.zeros((1, 1, self.embed_dim), k.dtype)
            added.append((zero, zero))
        for more_k, more_v in added:
            shape = (1, batch, self.embed_dim)
            k = ops.concat((k, ops.broadcast_to(more_k, shape)), 0)
            v = ops.concat((v, ops.broadcast_to(more_v, shape)), 0)
            if mask is not None:
                mask = ops.pad(mask, (0, 1))
        return k, v, mask
