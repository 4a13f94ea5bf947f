"""Softmax, layer norm, RMS norm, cross entropy and GELU over rows, and their gradients, in one pass over each row."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.compiler.passes.library import Fusion, Uses, add_rule
from mycelia.core import dtypes as dt
from mycelia.core.errors import ShapeError
from mycelia.ir.graph import Node
from mycelia.ir.primitive import Primitive, primitive_named
from mycelia.ir.types import TensorType
from mycelia.native.libraries import on_cpu, onednn, register
from mycelia.ops.activation import gelu_p
from mycelia.ops.cross_entropy import cross_entropy_grad_p, cross_entropy_p
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.normalization import layer_norm_grad_p, layer_norm_p, rms_norm_grad_p, rms_norm_p
from mycelia.ops.softmax import log_softmax_grad_p, log_softmax_p, softmax_grad_p, softmax_p

_SERVED = (jnp.float32, jnp.bfloat16)
#: Fewer elements than this are left to XLA: calling the kernel costs more than it saves.
_LEAST = 4096
#: The least length of rows of what could be cut into rows of any length.
_SHORTEST = 32
(
    _SOFTMAX, _LOG_SOFTMAX, _SOFTMAX_GRAD, _LOG_SOFTMAX_GRAD, _LAYER_NORM, _LAYER_NORM_GRAD, _RMS_NORM, _RMS_NORM_GRAD,
    _CROSS_ENTROPY, _CROSS_ENTROPY_GRAD, _GELU, _GELU_GRAD,
) = range(12)  # fmt: skip


def served(*arrays: Any) -> bool:
    """Whether the kernel takes arrays like these, and is worth calling."""
    return on_cpu() and arrays[0].size >= _LEAST and all(a.dtype in _SERVED for a in arrays)


def _call(kind: int, length: int, results: Any, arrays: Any, ignored: int = 0, epsilon: float = 0.0) -> Any:
    call: Any = jax.ffi.ffi_call("mycelia_rows", results)
    return call(
        *arrays, kind=np.int64(kind), length=np.int64(length), ignored=np.int64(ignored), epsilon=np.float32(epsilon)
    )


def _like(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def _floats(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _wide(x: Any) -> Any:
    return x.astype(jnp.float32)


def _along_rows(kind: int, of_result: bool) -> Any:
    """The kernel of an operator that makes a row of each row (and, a gradient, of its cotangent)."""

    def kernel(*arrays: Any, axes: tuple[int, ...]) -> Any:
        x = arrays[0]
        if not served(*arrays) or axes != (x.ndim - 1,):
            return NotImplemented
        return _call(kind, x.shape[-1], _like(x), arrays)

    def gradient(ct: Any, out: Any, *, axes: tuple[int, ...]) -> Any:
        return NotImplemented if ct.dtype != out.dtype else kernel(ct, out, axes=axes)

    return gradient if of_result else kernel


def _layer_norm(x: Any, *params: Any, begin: int, epsilon: float) -> Any:
    shape = x.shape[begin:]
    if not served(x, *params) or any(p.shape != shape for p in params):
        return NotImplemented
    given = [_wide(p) for p in params] or [jnp.ones(shape, jnp.float32)]
    statistics = _floats(*x.shape[:begin], *(1 for _ in shape))
    results = (_like(x), statistics, statistics)
    return tuple(_call(_LAYER_NORM, math.prod(shape), results, (x, *given), epsilon=epsilon))


def _layer_norm_grad(ct: Any, x: Any, mean: Any, rstd: Any, *scale: Any, begin: int) -> Any:
    shape = x.shape[begin:]
    if not served(x, ct, *scale) or ct.dtype != x.dtype or any(s.shape != shape for s in scale):
        return NotImplemented
    given = _wide(scale[0]) if scale else jnp.ones(shape, jnp.float32)
    results = (_like(x), _floats(*shape), _floats(*shape))
    dx, d_scale, d_shift = _call(_LAYER_NORM_GRAD, math.prod(shape), results, (ct, x, _wide(mean), _wide(rstd), given))
    return (dx, *[d.astype(s.dtype) for d in (d_scale, d_shift) for s in scale])


def _rms_norm(x: Any, scale: Any, *, epsilon: float) -> Any:
    if not served(x, scale):
        return NotImplemented
    statistic = _floats(*x.shape[: x.ndim - scale.ndim], *(1 for _ in scale.shape))
    return tuple(_call(_RMS_NORM, scale.size, (_like(x), statistic), (x, _wide(scale)), epsilon=epsilon))


def _rms_norm_grad(ct: Any, x: Any, rstd: Any, scale: Any) -> Any:
    if not served(x, ct, scale) or ct.dtype != x.dtype:
        return NotImplemented
    results = (_like(x), _floats(*scale.shape))
    dx, d_scale = _call(_RMS_NORM_GRAD, scale.size, results, (ct, x, _wide(rstd), _wide(scale)))
    return dx, d_scale.astype(scale.dtype)


def _plain(x: Any, weight: Any, smoothing: float, log_probs: bool) -> bool:
    """Whether a cross entropy is one of rows of logits, without weights."""
    return x.ndim == 2 and not weight and not smoothing and not log_probs and served(x)


def _cross_entropy(
    x: Any, labels: Any, *weight: Any, ignore_index: int, smoothing: float, reduction: str, log_probs: bool
) -> Any:
    if not _plain(x, weight, smoothing, log_probs):
        return NotImplemented
    loss = _call(
        _CROSS_ENTROPY, x.shape[1], _floats(x.shape[0]), (x, labels.astype(jnp.int64)), ignored=ignore_index
    )  # fmt: skip
    if reduction == "mean":
        loss = loss.sum() / (labels != ignore_index).sum(dtype=jnp.float32)
    elif reduction == "sum":
        loss = loss.sum()
    return loss.astype(x.dtype)


def _cross_entropy_grad(
    ct: Any, x: Any, labels: Any, *weight: Any, ignore_index: int, smoothing: float, reduction: str, log_probs: bool
) -> Any:
    if not _plain(x, weight, smoothing, log_probs):
        return NotImplemented
    valid = labels != ignore_index
    factor = _wide(ct)
    if reduction == "mean":
        factor = factor / valid.sum(dtype=jnp.float32)
    arrays = jnp.where(valid, factor, 0), x, labels.astype(jnp.int64)
    return (_call(_CROSS_ENTROPY_GRAD, x.shape[1], _like(x), arrays, ignored=ignore_index),)


def _gelu(x: Any, *, approximate: str) -> Any:
    if approximate != "none" or not x.ndim or x.shape[-1] < _SHORTEST or not served(x):
        return NotImplemented
    return _call(_GELU, x.shape[-1], _like(x), (x,))


_X = np.array([-3.0, -0.5, 0.25, 1.0, 6.0])


def _infer_gelu_grad(ct: TensorType, x: TensorType) -> TensorType:
    check_dtypes("gelu_grad", (ct, x), dt.FLOATS, ("ct", "x"))
    if ct.shape != x.shape:
        raise ShapeError("gelu_grad", "ct", got=f"shape {ct.shape}", takes=f"shape {x.shape} of 'x'")
    return x


def _lower_gelu_grad(ct: Any, x: Any) -> Any:
    return ct * primitive_named("gelu_slope").lower(x, approximate="none")


def _gelu_grad(ct: Any, x: Any) -> Any:
    if not x.ndim or x.shape[-1] < _SHORTEST or not served(ct, x):
        return NotImplemented
    return _call(_GELU_GRAD, x.shape[-1], _like(x), (ct, x))


#: The gradient of GELU: its slope times the cotangent.
gelu_grad_p = Primitive(
    "gelu_grad", infer=_infer_gelu_grad, lower=_lower_gelu_grad, derived_vjp=True,
    samples=lambda: [
        Sample((_X[::-1] * 0.5, _X), {}), Sample((_X[:0], _X[:0]), {}),
        Bad((_X, _X[1:]), {}, ShapeError, "of 'x'"), Bad((_X > 0, _X > 0), {}, TypeError, "Bool"),
    ],
)  # fmt: skip


def _fused_gelu_grad(node: Node, uses: Uses) -> Fusion | None:
    """The slope of GELU that is multiplied with a cotangent of its shape."""
    for ct, slope in (node.inputs, node.inputs[::-1]):
        made = slope.node
        if made is None or made.op.name != "gelu_slope" or made.attrs["approximate"] != "none" or ct.type != slope.type:
            continue
        x = made.inputs[0]
        if uses.sole(slope) is node and x.type == ct.type and x.dtype in _SERVED and x.type.size >= _LEAST:
            return Fusion(gelu_grad_p, (ct, x), {}, node.outputs, (made, node))
    return None


def install() -> None:
    """Let the operators use the kernel."""
    assert onednn is not None
    register(onednn, "mycelia_rows")
    softmax_p.kernel = _along_rows(_SOFTMAX, False)
    log_softmax_p.kernel = _along_rows(_LOG_SOFTMAX, False)
    softmax_grad_p.kernel = _along_rows(_SOFTMAX_GRAD, True)
    log_softmax_grad_p.kernel = _along_rows(_LOG_SOFTMAX_GRAD, True)
    layer_norm_p.kernel = _layer_norm
    layer_norm_grad_p.kernel = _layer_norm_grad
    rms_norm_p.kernel = _rms_norm
    rms_norm_grad_p.kernel = _rms_norm_grad
    cross_entropy_p.kernel = _cross_entropy
    cross_entropy_grad_p.kernel = _cross_entropy_grad
    gelu_p.kernel, gelu_grad_p.kernel = _gelu, _gelu_grad
    add_rule("mul", _fused_gelu_grad)
