"""Scaled dot-product attention (A. Vaswani et al., "Attention is all you need", 2017) as one operator.

``softmax(query @ key.T * scale + bias) @ value`` for each head, with a mask, a band around the diagonal, and fewer
key heads than query heads (J. Ainslie et al., "GQA", 2023). Scores are formed in float32. The backward step
computes the scores again instead of keeping them, as in T. Dao et al., "FlashAttention" (2022). A row that may
attend to nothing gives zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError, UnsupportedError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import floats
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.dropout import dropout, dropped_p
from mycelia.ops.linear import accumulator, matrix_product
from mycelia.ops.normalization import Shared, statistics_dtype
from mycelia.ops.operands import as_int, as_tensor, cast
from mycelia.ops.registry import operator
from mycelia.ops.shape import broadcast_to, reshape, transpose
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant

_NAMES = ("query", "key", "value", "attn_mask")
#: No limit of a band.
_FAR = 2147483647


#: How the axes stand: (batch, heads, length, features), (batch, length, heads, features), or the latter with query, key
#: and value as one array (batch, length, 3, heads, features).
_LAYOUTS = ("heads", "tokens", "packed")


def operands(given: Sequence[Any], layout: str) -> tuple[list[Any], list[Any]]:
    """Query, key and value, and the biases, in what the operator is given."""
    count = 1 if layout == "packed" else 3
    return list(given[:count]), list(given[count:])


def _split_types(given: Sequence[TensorType], layout: str) -> tuple[list[TensorType], list[TensorType]]:
    """The types of query, key and value in layout "heads", and of the biases."""
    whole, bias = operands(given, layout)
    if layout == "packed":
        if whole[0].rank != 5 or whole[0].shape[2] != 3:
            raise ShapeError(
                "attention", "query", got=f"shape {whole[0].shape}", takes="shape (batch, length, 3, heads, features)"
            )
        b, t, _, h, d = whole[0].shape
        return [TensorType(whole[0].dtype, (b, h, t, d))] * 3, bias
    for t_, name in zip(whole, _NAMES, strict=False):
        if t_.rank != 4:
            raise ShapeError("attention", name, got=f"shape {t_.shape}", takes="shape (batch, heads, length, features)")
    if layout == "tokens":
        whole = [TensorType(t.dtype, (t.shape[0], t.shape[2], t.shape[1], t.shape[3])) for t in whole]
    return whole, bias


def _result(q: TensorType, v: TensorType, layout: str) -> TensorType:
    b, h, t, _ = q.shape
    return TensorType(q.dtype, (b, h, t, v.shape[3]) if layout == "heads" else (b, t, h, v.shape[3]))


def _infer(
    *given: TensorType, scale: float, before: int, after: int, from_end: bool, fill: float, layout: str, closed: str
) -> tuple[TensorType, ...]:
    (q, k, v), bias = _split_types(given, layout)
    check_dtypes("attention", (q, k, v), dt.FLOATS, _NAMES)
    if k.shape[:3] != v.shape[:3]:
        raise ShapeError(
            "attention", "value", got=f"shape {v.shape}", takes=f"batch, heads and length of 'key' {k.shape}"
        )
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3] or not k.shape[1] or q.shape[1] % k.shape[1]:
        raise ShapeError(
            "attention", "key", got=f"shape {k.shape}",
            takes=f"batch {q.shape[0]}, {q.shape[3]} features, a divisor of {q.shape[1]} heads, as query {q.shape} has",
        )  # fmt: skip
    scores = (*q.shape[:3], k.shape[2])
    for b in bias:
        if b.dtype is not dt.bool_ and b.dtype not in dt.FLOATS:
            raise DTypeError("attention", "attn_mask", got=f"dtype {b.dtype}", takes="bool, or floats that are added")
        if b.rank > 4 or any(d not in (1, s) for d, s in zip(b.shape[::-1], scores[::-1], strict=False)):
            raise ShapeError(
                "attention", "attn_mask", got=f"shape {b.shape}", takes=f"a shape that broadcasts to {scores}"
            )
    return _result(q, v, layout), TensorType(statistics_dtype(q.dtype), q.shape[:3])


def _to_head_arrays(given: Sequence[Any], layout: str) -> tuple[list[Any], list[Any]]:
    """Query, key and value as arrays in layout "heads", and the biases."""
    whole, bias = operands(given, layout)
    if layout == "packed":
        whole = [whole[0][:, :, i] for i in range(3)]
    return [_turned(x, layout) for x in whole], bias


def _turned(x: Any, layout: str) -> Any:
    """An array from layout "heads" to the one of the results, or back."""
    return x if layout == "heads" else x.swapaxes(1, 2)


def _scores(
    q: Any, k: Any, bias: Sequence[Any], *, scale: float, before: int, after: int, from_end: bool, fill: float
) -> tuple[Any, Any]:
    """Wide scores of shape (batch, key heads, heads of each, length, reach), and which of them are those of the inputs.

    Where a mask of bools is False the score is ``fill``, outside the band it is ``-inf``.
    """
    batch, heads, length, features = q.shape
    groups, reach = k.shape[1], k.shape[2]
    split = q.reshape(batch, groups, heads // groups, length, features)
    scores = jnp.einsum("bgnsd,bgtd->bgnst", split, k, preferred_element_type=_wide(q)) * scale
    allowed: Any = None
    for b in bias:
        full = b.reshape((1,) * (4 - b.ndim) + b.shape)
        full = jnp.broadcast_to(full, (full.shape[0], heads, *full.shape[2:]))
        full = full.reshape(full.shape[0], groups, heads // groups, *full.shape[2:])
        if b.dtype == bool:
            allowed = full if allowed is None else allowed & full
        else:
            scores = scores + full.astype(scores.dtype)
    if allowed is not None:
        scores = jnp.where(allowed, scores, fill)
    if before != _FAR or after != _FAR:
        row = np.arange(length)[:, None] + (reach - length if from_end else 0)
        column = np.arange(reach)
        band = (column >= row - before) & (column <= row + after)
        scores = jnp.where(band, scores, -np.inf)
        allowed = band if allowed is None else allowed & band
    return scores, allowed


def _wide(x: Any) -> Any:
    return accumulator(x.dtype) or x.dtype


def _lower(*given: Any, layout: str, closed: str, **attrs: Any) -> tuple[Any, Any]:
    (q, k, v), bias = _to_head_arrays(given, layout)
    scores, _ = _scores(q, k, bias, **attrs)
    largest = scores.max(-1, keepdims=True, initial=-np.inf)
    if closed == "zeros":
        weights = jnp.exp(scores - jnp.where(largest == -np.inf, 0, largest))
        total = weights.sum(-1, keepdims=True)
        weights = weights / jnp.where(total == 0, 1, total)
    else:
        weights = jnp.exp(scores - largest)
        total = weights.sum(-1, keepdims=True)
        weights = weights / total
    made = jnp.einsum("bgnst,bgtd->bgnsd", weights.astype(q.dtype), v, preferred_element_type=_wide(q))
    made = made.reshape(*q.shape[:3], v.shape[3]).astype(q.dtype)
    return _turned(made, layout), (largest + jnp.log(total)).reshape(q.shape[:3])


def _wave(*shape: int, phase: float = 0.0) -> np.ndarray[Any, Any]:
    return np.sin(np.arange(float(np.prod(shape))) * 1.3 + phase).reshape(shape)


def attention_attrs(
    scale: float = 0.5, before: int = _FAR, after: int = _FAR, from_end: bool = False, fill: float = -np.inf,
    layout: str = "heads", closed: str = "zeros",
) -> dict[str, Any]:  # fmt: skip
    """The attributes of the operator: all keys and values allowed unless told otherwise."""
    return {
        "scale": scale, "before": before, "after": after, "from_end": from_end, "fill": fill, "layout": layout,
        "closed": closed,
    }  # fmt: skip


_attrs = attention_attrs


def _cases() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    q, k, v = _wave(2, 4, 3, 2), _wave(2, 2, 5, 2, phase=1.0), _wave(2, 2, 5, 3, phase=2.0)
    mask = np.tri(3, 5, 1, bool)
    closed = mask.copy()
    closed[1] = False
    tokens = tuple(np.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, k, v))
    return [
        ((q, k, v), _attrs()), ((q, k, v, mask), _attrs()), ((q, k, v, _wave(2, 1, 3, 5)), _attrs()),
        ((q, k, v), _attrs(after=0, from_end=True)), ((q, k, v), _attrs(before=1, after=0)),
        ((q, k, v, closed), _attrs(1.0)), ((q, k, v, _wave(3, 5), mask), _attrs(closed="nan")),
        ((q, k, v, closed), _attrs(fill=-2.0, after=1)),
        ((*tokens, _wave(1, 5)), _attrs(layout="tokens")), ((_wave(2, 3, 3, 2, 2),), _attrs(after=0, layout="packed")),
    ]  # fmt: skip


def _samples() -> list[Any]:
    made = [Sample(arrays, attrs) for arrays, attrs in _cases()]
    q, k, v = _cases()[0][0]
    return [
        *made, Sample((q[:0], k[:0], v[:0]), _attrs()),
        Bad((q, k[:, :, :, :1], v), _attrs(), ShapeError, "2 features"),
        Bad((q[0], k, v), _attrs(), ShapeError, "length"),
        Bad((q,), _attrs(layout="packed"), ShapeError, "3, heads"),
        Bad((q, k, v[:, :, :4]), _attrs(), ShapeError, "of 'key'"),
        Bad((q, k, v, np.ones((3, 4), bool)), _attrs(), ShapeError, "broadcasts to"),
    ]  # fmt: skip


def _vjp(cts: Any, *given: Tensor, out: Any, **attrs: Any) -> list[Any]:
    ct, d_log = cts
    whole, bias = operands(given, attrs["layout"])
    if ct is None:
        ct = out[0] * 0
    statistic = () if d_log is None else (d_log,)
    arguments = (ct, *out, *statistic, *given)
    given_attrs = {**attrs, "statistic": d_log is not None}
    grads = Shared(lambda: apply(attention_grad_p, *arguments, **given_attrs))

    def of_bias(i: int) -> Any:
        if bias[i].dtype is dt.bool_:
            return None
        return lambda: apply(attention_bias_grad_p, *arguments, **given_attrs, which=i)

    return [*[lambda i=i: grads[i] for i in range(len(whole))], *[of_bias(i) for i in range(len(bias))]]


#: ``before`` and ``after`` bound how far a column may lie from its row; ``from_end`` aligns their last ones. Scores
#: where a mask of bools is False are ``fill``. A row that may attend to nothing gives ``closed``: zeros, or NaN as a
#: softmax of such a row does. The second result is the logarithm of the sum of each row's powers, from which the
#: gradient makes the weights again.
attention_p = Primitive("attention", infer=_infer, lower=_lower, vjp=_vjp, multi=True, samples=_samples)


def split_gradient(given: Sequence[Any], statistic: bool) -> tuple[Any, Any, Any, Any, Sequence[Any]]:
    """Cotangent, result, logarithms, their cotangent (or None), and the rest of what a gradient is given."""
    ct, out, log, *rest = given
    return ct, out, log, rest[0] if statistic else None, rest[1 if statistic else 0 :]


def _infer_grad(*given: TensorType, statistic: bool, layout: str, **attrs: Any) -> tuple[TensorType, ...]:
    *_, rest = split_gradient(given, statistic)
    _infer(*rest, layout=layout, **attrs)
    return tuple(operands(rest, layout)[0])


def _score_gradient(given: Sequence[Any], statistic: bool, layout: str, closed: str, attrs: dict[str, Any]) -> Any:
    """Query, key, value, the cotangent by key heads, the weights, and the gradient of the scores."""
    ct, out, log, d_log, rest = split_gradient(given, statistic)
    (q, k, v), bias = _to_head_arrays(rest, layout)
    scores, allowed = _scores(q, k, bias, **attrs)
    split = (*scores.shape[:4], 1)
    log = log.reshape(split)
    if closed == "zeros":
        weights = jnp.where(log == -np.inf, 0, jnp.exp(scores - jnp.where(log == -np.inf, 0, log)))
    else:
        weights = jnp.exp(scores - log)
    wide = scores.dtype
    ct, out = (_turned(x, layout).astype(wide).reshape(*scores.shape[:4], v.shape[3]) for x in (ct, out))
    shared = (ct * out).sum(-1, keepdims=True)
    if d_log is not None:
        shared = shared - d_log.reshape(split)
    through = jnp.einsum("bgnsd,bgtd->bgnst", ct, v.astype(wide))
    ds = weights * (through - shared)
    return q, k, v, ct, weights, ds if allowed is None else jnp.where(allowed, ds, 0)


def _lower_grad(*given: Any, statistic: bool, layout: str, closed: str, **attrs: Any) -> tuple[Any, ...]:
    q, k, v, ct, weights, ds = _score_gradient(given, statistic, layout, closed, attrs)
    wide, scale = ds.dtype, attrs["scale"]
    split = q.reshape(*ds.shape[:4], q.shape[3]).astype(wide)
    dq = jnp.einsum("bgnst,bgtd->bgnsd", ds, k.astype(wide)).reshape(q.shape) * scale
    dk = jnp.einsum("bgnst,bgnsd->bgtd", ds, split) * scale
    dv = jnp.einsum("bgnst,bgnsd->bgtd", weights, ct)
    made = [_turned(g.astype(x.dtype), layout) for g, x in ((dq, q), (dk, k), (dv, v))]
    return (jnp.stack(made, 2),) if layout == "packed" else tuple(made)


def _grad_samples() -> list[Any]:
    made = []
    for i, (arrays, attrs) in enumerate(_cases()):
        out, log = (np.asarray(x) for x in _lower(*map(jnp.asarray, arrays), **attrs))
        statistic = (_wave(*log.shape, phase=3.0),) if i % 2 else ()
        inputs = (_wave(*out.shape, phase=4.0), out, np.where(np.isfinite(log), log, 0.5), *statistic, *arrays)
        made.append((inputs, {**attrs, "statistic": bool(statistic)}))
    return made


#: Gradients of query, key and value (or of the one array that holds them) from the cotangent, both results and, with
#: ``statistic``, the cotangent of the second result.
attention_grad_p: Primitive = Primitive(
    "attention_grad", infer=_infer_grad, lower=_lower_grad, multi=True, derived_vjp=True,
    samples=lambda: [Sample(arrays, attrs) for arrays, attrs in _grad_samples()],
)  # fmt: skip


def _infer_bias_grad(*given: TensorType, statistic: bool, which: int, layout: str, **attrs: Any) -> TensorType:
    *_, rest = split_gradient(given, statistic)
    _infer(*rest, layout=layout, **attrs)
    return operands(rest, layout)[1][which]  # type: ignore[no-any-return]


def _lower_bias_grad(*given: Any, statistic: bool, which: int, layout: str, closed: str, **attrs: Any) -> Any:
    q, k, *_, ds = _score_gradient(given, statistic, layout, closed, attrs)
    *_, rest = split_gradient(given, statistic)
    bias = operands(rest, layout)[1][which]
    full = ds.reshape(*q.shape[:3], k.shape[2])
    shape = (1,) * (4 - bias.ndim) + bias.shape
    spread = tuple([i for i in range(4) if shape[i] == 1])
    return full.sum(spread, keepdims=True).reshape(bias.shape).astype(bias.dtype)


#: The gradient of the added mask number ``which``.
attention_bias_grad_p: Primitive = Primitive(
    "attention_bias_grad", infer=_infer_bias_grad, lower=_lower_bias_grad, derived_vjp=True,
    samples=lambda: [
        Sample(arrays, {**attrs, "which": 0}) for i, (arrays, attrs) in enumerate(_grad_samples()) if i in (2, 6, 8)
    ],
)  # fmt: skip


def _attended(*given: Tensor, **attrs: Any) -> Tensor:
    """The first result of the operator."""
    made: Tensor = apply(attention_p, *given, **attrs)[0]
    return made


def _scale(value: Any, features: int, where: str) -> float:
    if value is None:
        return float(features) ** -0.5 if features else 1.0
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(where, "scale", got=type(value).__name__, takes="a number, or None")
    return float(value)


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: Any = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """``softmax(query @ key.T * scale + mask) @ value`` for each head.

    Args:
        query: a tensor of shape (..., heads, length, features).
        key: a tensor of shape (..., key heads, reach, features).
        value: a tensor of shape (..., key heads, reach, value features).
        attn_mask: bools that are True where attention is allowed, or floats that are added to the scores; of a
            shape that broadcasts to (..., heads, length, reach).
        dropout_p: probability to drop a weight.
        is_causal: allow only columns up to the row.
        scale: factor of the scores, ``1 / sqrt(features)`` by default.
        enable_gqa: whether there may be fewer key heads than query heads.

    Returns:
        A tensor of shape (..., heads, length, value features).

    Raises:
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> x = ms.ops.ones((1, 2, 3, 4))
    >>> scaled_dot_product_attention(x, x, x).shape
    (1, 2, 3, 4)
    """
    where = "scaled_dot_product_attention"
    q, k, v = floats(where, query, key, value, names=_NAMES)
    for t, name in ((q, "query"), (k, "key"), (v, "value")):
        if t.ndim < 2:
            raise ShapeError(where, name, got=f"shape {t.shape}", takes="shape (..., heads, length, features)")
    if not enable_gqa and q.ndim > 2 and k.ndim > 2 and q.shape[-3] != k.shape[-3]:
        raise ShapeError(where, "key", got=f"{k.shape[-3]} heads", takes=f"{q.shape[-3]} heads, or enable_gqa=True")
    factor = _scale(scale, q.shape[-1], where)
    shape = q.shape
    q, k, v = (_four_axes(t) for t in (q, k, v))
    tensors: tuple[Tensor, ...] = (q, k, v)
    if attn_mask is not None:
        mask = as_tensor(attn_mask, where, "attn_mask")
        if mask.ndim > 4:
            mask = reshape(mask, (-1, *mask.shape[-3:]))
        tensors = (*tensors, mask if mask.dtype is dt.bool_ else cast(mask, q.dtype))
    attrs = attention_attrs(factor, after=0 if is_causal else _FAR)
    made = _dropped(tensors, lambda w: dropout(w, p=dropout_p), attrs) if dropout_p else _attended(*tensors, **attrs)
    return reshape(made, (*shape[:-1], v.shape[-1]))


def _four_axes(x: Tensor) -> Tensor:
    if x.ndim == 4:
        return x
    if x.ndim < 4:
        return reshape(x, (1,) * (4 - x.ndim) + x.shape)
    return reshape(x, (int(np.prod(x.shape[:-3])), *x.shape[-3:]))


def _dropped(tensors: tuple[Tensor, ...], drop: Callable[[Tensor], Tensor], attrs: dict[str, Any]) -> Tensor:
    """Attention with ``drop`` applied to its weights, which the operator gives for unit vectors as values."""
    q, k, v, *bias = tensors
    reach, heads = k.shape[2], q.shape[1]
    units = broadcast_to(constant(np.eye(reach, dtype=q.dtype.np)), (*k.shape[:3], reach))
    weights = drop(_attended(q, k, units, *bias, **attrs))
    if k.shape[1] != heads:
        spread = reshape(v, (v.shape[0], v.shape[1], 1, *v.shape[2:]))
        v = broadcast_to(spread, (v.shape[0], v.shape[1], heads // k.shape[1], *v.shape[2:]))
        v = reshape(v, (v.shape[0], heads, *v.shape[3:]))
    return matrix_product(weights, v)


# Layouts ------------------------------------------------------------------------------------------------

#: For each layout with heads apart: the permutation to (batch, heads, length, features).
_PERMUTATIONS = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3)}


def _to_heads(x: Tensor, heads: int, layout: str, argument: str) -> Tensor:
    where = "flash_attention_score"
    rank = 3 if layout in ("BSH", "SBH") else 4
    if x.ndim != rank:
        raise ShapeError(where, argument, got=f"shape {x.shape}", takes=f"{rank} axes in layout {layout}")
    if layout in _PERMUTATIONS:
        made: Tensor = transpose(x, _PERMUTATIONS[layout])
        return made
    if heads < 1 or x.shape[-1] % heads:
        raise ShapeError(where, argument, got=f"shape {x.shape}", takes=f"features that {heads} heads divide")
    split = reshape(x, (*x.shape[:2], heads, x.shape[2] // heads))
    made = transpose(split, (0, 2, 1, 3) if layout == "BSH" else (1, 2, 0, 3))
    return made


def _from_heads(x: Tensor, layout: str) -> Tensor:
    if layout in _PERMUTATIONS:
        moved: Tensor = transpose(x, _PERMUTATIONS[layout])
        return moved
    batch, heads, length, features = x.shape
    if layout == "BSH":
        return reshape(transpose(x, (0, 2, 1, 3)), (batch, length, heads * features))
    return reshape(transpose(x, (2, 0, 1, 3)), (length, batch, heads * features))


def _key_heads(query: Tensor, key: Tensor, heads: int, layout: str) -> int:
    """How many heads the features of the key hold, at the width of a query head."""
    if layout in _PERMUTATIONS or not query.shape[-1]:
        return heads
    width = query.shape[-1] // max(heads, 1)
    return key.shape[-1] // width if width and key.shape[-1] % width == 0 else heads


@operator()
def flash_attention_score(
    query: Any, key: Any, value: Any, head_num: int, real_shift: Any = None, drop_mask: Any = None,
    padding_mask: Any = None, attn_mask: Any = None, prefix: Any = None, actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None, keep_prob: float = 1.0, scalar_value: float = 1.0, pre_tokens: int = _FAR,
    next_tokens: int = _FAR, inner_precise: int = 0, input_layout: str = "BSH", sparse_mode: int = 0,
) -> Tensor:  # fmt: skip
    """Attention with MindSpore's layouts and masks: ``dropout(softmax(q @ k.T * scalar + shift, mask)) @ v``.

    Args:
        query: a tensor in ``input_layout``; B batch, S length, N heads, D features of a head, H = N * D.
        key: likewise, possibly of fewer heads.
        value: likewise.
        head_num: number of query heads.
        real_shift: added to the scores, of a shape that broadcasts to (B, N, S, T).
        drop_mask: which weights are kept, of shape (B, N, S, T); with ``keep_prob``.
        padding_mask: not supported by the operator this describes; None.
        attn_mask: True (or 1) where attention is NOT allowed, of a shape that broadcasts to (B, N, S, T).
        prefix: lengths that every row may attend to, with ``sparse_mode`` 5 or 6, which are not supported.
        actual_seq_qlen: lengths in layout TND, which is not supported.
        actual_seq_kvlen: see ``actual_seq_qlen``.
        keep_prob: share of weights that dropout keeps.
        scalar_value: factor of the scores.
        pre_tokens: how many columns before the diagonal are allowed (``sparse_mode`` 0 and 4).
        next_tokens: how many after it.
        inner_precise: accepted; scores are always formed in float32.
        input_layout: ``"BSH"``, ``"SBH"``, ``"BNSD"`` or ``"BSND"``.
        sparse_mode: 0: ``attn_mask`` and the band; 1: ``attn_mask`` alone; 2: up to the diagonal from the top
            left; 3: up to the diagonal from the bottom right; 4: the band from the bottom right.

    Returns:
        A tensor in the layout of ``query``.

    Raises:
        ShapeError: the shapes do not fit.
        UnsupportedError: a layout or mode of the accelerator's kernel that is not served here.

    >>> import mycelia as ms
    >>> x = ms.ops.ones((1, 3, 8))
    >>> ms.ops.flash_attention_score(x, x, x, 2).shape
    (1, 3, 8)
    """
    where = "flash_attention_score"
    if input_layout == "TND" or sparse_mode in (5, 6, 7, 8) or prefix is not None or padding_mask is not None:
        raise UnsupportedError(
            where, message=f"layout {input_layout}, sparse_mode {sparse_mode}, prefix or padding_mask is not served",
            hint='use the layouts "BSH", "SBH", "BNSD", "BSND", sparse modes 0 to 4 and attn_mask',
        )  # fmt: skip
    if input_layout not in ("BSH", "SBH", "BNSD", "BSND"):
        raise ArgumentValueError(where, "input_layout", got=repr(input_layout), takes="BSH, SBH, BNSD or BSND")
    if sparse_mode not in (0, 1, 2, 3, 4):
        raise ArgumentValueError(where, "sparse_mode", got=repr(sparse_mode), takes="0, 1, 2, 3 or 4")
    heads = as_int(head_num, where, "head_num")
    q, k, v = floats(where, query, key, value, names=_NAMES)
    few = _key_heads(q, k, heads, input_layout)
    q, k, v = (
        _to_heads(t, n, input_layout, name) for t, n, name in ((q, heads, "query"), (k, few, "key"), (v, few, "value"))
    )
    bias: tuple[Tensor, ...] = ()
    if real_shift is not None:
        bias = (cast(as_tensor(real_shift, where, "real_shift"), q.dtype),)
    if attn_mask is not None and sparse_mode in (0, 1):
        from mycelia.ops.logical import logical_not

        bias = (*bias, logical_not(cast(as_tensor(attn_mask, where, "attn_mask"), dt.bool_)))
    before, after, from_end = _FAR, _FAR, sparse_mode in (3, 4)
    if sparse_mode in (2, 3):
        after = 0
    elif sparse_mode in (0, 4):
        before, after = as_int(pre_tokens, where, "pre_tokens"), as_int(next_tokens, where, "next_tokens")
    attrs = attention_attrs(_scale(scalar_value, 1, where), before, after, from_end)
    if keep_prob == 1.0:
        return _from_heads(_attended(q, k, v, *bias, **attrs), input_layout)
    if not 0 < keep_prob <= 1:
        raise ArgumentValueError(where, "keep_prob", got=str(keep_prob), takes="a number above 0 up to 1")
    if drop_mask is None:
        return _from_heads(_dropped((q, k, v, *bias), lambda w: dropout(w, p=1 - keep_prob), attrs), input_layout)
    kept = cast(as_tensor(drop_mask, where, "drop_mask"), dt.bool_)

    def drop(weights: Tensor) -> Tensor:
        return apply(dropped_p, weights, broadcast_to(kept, weights.shape), p=1 - keep_prob)  # type: ignore[no-any-return]

    return _from_heads(_dropped((q, k, v, *bias), drop, attrs), input_layout)
