"""Matrix products by oneDNN."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.compiler.passes.library import Fusion, Uses, add_rule
from mycelia.compiler.prepared import Packing, add_packer
from mycelia.core import dtypes as dt
from mycelia.ir.graph import Node
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.native.libraries import PRODUCT_TYPES, on_cpu, onednn, packed_size, register
from mycelia.ops.linear import dense_p, matmul_p
from mycelia.ops.rectifiers import relu_p

_SERVED = PRODUCT_TYPES

#: Products of fewer multiplications are left to XLA: calling a kernel costs some microseconds.
FEWEST = 1 << 20


def _call(
    a: Any,
    b: Any,
    shape: tuple[int, ...],
    out: tuple[int, ...],
    bias: Any = None,
    relu: bool = False,
    dtype: Any = None,
) -> Any:
    call = jax.ffi.ffi_call("mycelia_matmul", jax.ShapeDtypeStruct(out, dtype or a.dtype))
    arrays = (a, b) if bias is None else (a, b, bias.astype(jnp.float32))
    return call(*arrays, shape=np.array((*shape, int(relu), 0), np.int64))


def _worth(m: int, n: int, k: int, batch: int = 1) -> bool:
    """Whether a product of this size pays; vectors do not."""
    return on_cpu() and min(m, n) > 1 and k > 0 and m * n * k * batch >= FEWEST


def _matmul(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool, dtype: Any = None) -> Any:
    if a.ndim < 2 or b.ndim < 2 or a.dtype not in _SERVED or b.dtype != a.dtype:
        return NotImplemented
    m, k = a.shape[-2:][::-1] if transpose_a else a.shape[-2:]
    n = b.shape[-2 if transpose_b else -1]
    batch_a, batch_b = a.shape[:-2], b.shape[:-2]
    count_a, count_b = prod(batch_a), prod(batch_b)
    if batch_a != batch_b and count_a != 1 and count_b != 1:
        return NotImplemented
    out = (*jnp.broadcast_shapes(batch_a, batch_b), m, n)
    if count_b == 1 and not transpose_a:  # one product of all rows
        m, count_a = m * count_a, 1
    if not _worth(m, n, k, max(count_a, count_b)):
        return NotImplemented
    return _call(a, b, (count_a, count_b, m, n, k, int(transpose_a), int(transpose_b)), out, dtype=dtype)


def _dense(x: Any, weight: Any, bias: Any = None, relu: bool = False) -> Any:
    if weight.ndim != 2 or x.dtype not in _SERVED or weight.dtype != x.dtype or (bias is not None and bias.ndim != 1):
        return NotImplemented
    n, k = weight.shape
    m = prod(x.shape[:-1])
    if not _worth(m, n, k):
        return NotImplemented
    return _call(x, weight, (1, 1, m, n, k, 0, 1), (*x.shape[:-1], n), bias, relu)


def _infer_relu(x: TensorType, weight: TensorType, *bias: TensorType) -> TensorType:
    found = dense_p.infer(x, weight, *bias)
    assert isinstance(found, TensorType)
    return found


#: ``relu(dense(x, weight, bias))``.
dense_relu_p = Primitive(
    "dense_relu", infer=_infer_relu, lower=lambda *arrays: relu_p.lower(dense_p.lower(*arrays)), differentiable=False
)


def _fused(node: Node, uses: Uses) -> Fusion | None:
    user = uses.sole(node.outputs[0])
    x, weight = node.inputs[0].type, node.inputs[1].type
    if user is None or user.op is not relu_p or weight.rank != 2 or x.dtype.np not in _SERVED:
        return None
    if len(node.inputs) > 2 and node.inputs[2].type.rank != 1:
        return None
    if not _worth(x.size // weight.shape[1] if weight.shape[1] else 0, *weight.shape):
        return None
    return Fusion(dense_relu_p, node.inputs, {}, user.outputs, (node, user))


# Weights that stay the same ------------------------------------------------------------------------------------


def _infer_pack(w: TensorType, *, size: int, **_: Any) -> TensorType:
    return TensorType(dt.uint8, (size,))


def _lower_pack(w: Any, *, size: int, shape: Any, bias: bool) -> Any:
    call = jax.ffi.ffi_call("mycelia_matmul_pack", jax.ShapeDtypeStruct((size,), np.uint8))
    return call(w, shape=np.array(shape, np.int64), bias=bias)


def _infer_packed(x: TensorType, w: TensorType, *bias: TensorType, shape: Any, out: Any) -> TensorType:
    return TensorType(x.dtype, out)


def _lower_packed(x: Any, w: Any, *bias: Any, shape: Any, out: Any) -> Any:
    call = jax.ffi.ffi_call("mycelia_matmul", jax.ShapeDtypeStruct(out, x.dtype))
    return call(x, w, *[b.astype(jnp.float32) for b in bias], shape=np.array(shape, np.int64))


#: A weight in the layout that oneDNN wants, and a product with such a weight. They are made only where the library is,
#: and have no other lowering.
matmul_pack_p = Primitive("matmul_pack", infer=_infer_pack, lower=_lower_pack, differentiable=False)
matmul_packed_p = Primitive("matmul_packed", infer=_infer_packed, lower=_lower_packed, differentiable=False)


def _packing(node: Node, m: int, n: int, k: int, transposed: bool) -> Packing | None:
    assert onednn is not None
    x, out, bias = node.inputs[0].type, node.outputs[0].type, len(node.inputs) > 2
    if x.dtype.np not in _SERVED or node.inputs[1].type.dtype is not x.dtype or not _worth(m, n, k):
        return None
    shape = (1, 1, m, n, k, 0, int(transposed), int(node.op is dense_relu_p), 1)
    given = np.array(shape, np.int64)
    size = packed_size(
        onednn.mycelia_matmul_packed_size, given, given.size, bias, x.dtype is dt.bfloat16
    )  # fmt: skip
    if not size:
        return None
    return Packing(
        1, matmul_pack_p, {"size": size, "shape": shape, "bias": bias}, matmul_packed_p,
        {"shape": shape, "out": out.shape},
    )  # fmt: skip


def _dense_packer(node: Node) -> Packing | None:
    """``dense`` and ``dense_relu`` with a weight that stays the same."""
    weight = node.inputs[1].type
    if weight.rank != 2 or (len(node.inputs) > 2 and node.inputs[2].type.rank != 1):
        return None
    n, k = weight.shape
    return _packing(node, node.inputs[0].type.size // k if k else 0, n, k, transposed=True)


def _matmul_packer(node: Node) -> Packing | None:
    """``matmul`` of rows with a matrix that stays the same."""
    a, b = node.inputs[0].type, node.inputs[1].type
    if b.rank != 2 or a.rank < 2 or node.attrs["transpose_a"]:
        return None
    k, n = b.shape[::-1] if node.attrs["transpose_b"] else b.shape
    return _packing(node, a.size // k if k else 0, n, k, node.attrs["transpose_b"])


def _infer_wide(a: TensorType, b: TensorType, **attrs: Any) -> TensorType:
    found = matmul_p.infer(a, b, **attrs)
    assert isinstance(found, TensorType)
    return TensorType(dt.float32, found.shape)


#: A product of bfloat16 matrices in float32: what is summed in float32 is not rounded first.
wide_matmul_p = Primitive(
    "matmul_wide", infer=_infer_wide, differentiable=False,
    lower=lambda *arrays, **attrs: matmul_p.lower(*arrays, **attrs).astype(jnp.float32),
)  # fmt: skip


def _fused_wide(node: Node, uses: Uses) -> Fusion | None:
    """A product that is cast to float32, the gradient of a weight for instance."""
    user = uses.widened(node.outputs[0])
    if user is None or any(v.type.rank != 2 for v in node.inputs):
        return None
    m, n = node.outputs[0].shape
    if not _worth(m, n, node.inputs[0].shape[0 if node.attrs["transpose_a"] else 1]):
        return None
    return Fusion(wide_matmul_p, node.inputs, node.attrs, user.outputs, (node, user))


def install() -> None:
    """Let the operators and the graphs use the kernel."""
    assert onednn is not None
    register(onednn, "mycelia_matmul", "mycelia_matmul_pack")
    for name, packer in (("dense", _dense_packer), ("dense_relu", _dense_packer), ("matmul", _matmul_packer)):
        add_packer(name, packer)
    matmul_p.kernel, dense_p.kernel = _matmul, _dense
    dense_relu_p.kernel = partial(_dense, relu=True)
    wide_matmul_p.kernel = partial(_matmul, dtype=jnp.float32)
    add_rule("dense", _fused)
    add_rule("matmul", _fused_wide)
