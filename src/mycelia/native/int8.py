"""Products of matrices of 8-bit integers by oneDNN, summed in 32 bits and exact.

Where both operands are such matrices the product gives their type, and where both were widened to int32 first, as
quantized networks do, a graph multiplies the narrow ones. oneDNN takes int8 on the right: unsigned bytes there are
``b' + 128`` with ``b'`` of int8, and the product is ``a @ b' + 128 * (the sums of a's rows)``, modulo 2^32 as int32 is.
"""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.compiler.passes.library import Fusion, Uses, add_rule
from mycelia.core import dtypes as dt
from mycelia.ir.graph import Node, Value
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.native import libraries
from mycelia.native.libraries import on_cpu, onednn, register
from mycelia.ops.linear import matmul_p

_BYTES = (jnp.int8, jnp.uint8)

#: Smaller products are left to XLA.
FEWEST = 1 << 18


def _shape(
    a: tuple[int, ...], b: tuple[int, ...], transpose_a: bool, transpose_b: bool
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """What the kernel is told of a product, and the shape of its result; None if it does not serve it."""
    if not on_cpu() or len(a) < 2 or len(b) < 2:
        return None
    m, k = a[-2:][::-1] if transpose_a else a[-2:]
    n = b[-2 if transpose_b else -1]
    batch_a, batch_b = a[:-2], b[:-2]
    count_a, count_b = prod(batch_a), prod(batch_b)
    if batch_a != batch_b and count_a != 1 and count_b != 1:
        return None
    out = (*jnp.broadcast_shapes(batch_a, batch_b), m, n)
    if count_b == 1 and not transpose_a:  # one product of all rows
        m, count_a = m * count_a, 1
    if min(m, n) < 2 or not k or m * n * k * max(count_a, count_b) < FEWEST:
        return None
    return (count_a, count_b, m, n, k, int(transpose_a), int(transpose_b)), out


def _product(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    """The product of bytes in int32, or NotImplemented."""
    if a.dtype not in _BYTES or b.dtype not in _BYTES:
        return NotImplemented
    served = _shape(a.shape, b.shape, transpose_a, transpose_b)
    if served is None:
        return NotImplemented
    shape, out = served
    shifted = b.dtype == jnp.uint8
    if shifted:
        b = lax.bitcast_convert_type(b ^ np.uint8(128), jnp.int8)
    call = jax.ffi.ffi_call("mycelia_int8_matmul", jax.ShapeDtypeStruct(out, np.int32))
    made = call(a, b, shape=np.array(shape, np.int64))
    if not shifted:
        return made
    sums = a.sum(-2 if transpose_a else -1, dtype=np.int32)
    return made + 128 * sums[..., None]


def _matmul(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    """Products of one 8-bit type, in that type: the low bits are those of int8, whatever the sign."""
    if a.dtype not in _BYTES or b.dtype != a.dtype:
        return NotImplemented
    narrow = a.dtype
    if narrow == jnp.uint8:
        a, b = (lax.bitcast_convert_type(x, jnp.int8) for x in (a, b))
    made = _product(a, b, transpose_a, transpose_b)
    return made if made is NotImplemented else made.astype(narrow)


def _infer_widened(a: TensorType, b: TensorType, **attrs: Any) -> TensorType:
    found = matmul_p.infer(a, TensorType(a.dtype, b.shape), **attrs)
    assert isinstance(found, TensorType)
    return TensorType(dt.int32, found.shape)


def _lower_widened(a: Any, b: Any, **attrs: Any) -> Any:
    return matmul_p.lower(a.astype(np.int32), b.astype(np.int32), **attrs)


#: ``matmul(a.astype(int32), b.astype(int32))`` of 8-bit matrices.
widened_matmul_p = Primitive("matmul_int8", infer=_infer_widened, lower=_lower_widened, differentiable=False)


def _kernel_widened(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    return _product(a, b, transpose_a, transpose_b)


def _narrow(value: Value) -> Value | None:
    """The 8-bit value that a value was cast from."""
    node = value.node
    if node is None or node.op.name != "cast" or node.inputs[0].type.dtype not in (dt.int8, dt.uint8):
        return None
    return node.inputs[0]


def _fused(node: Node, uses: Uses) -> Fusion | None:
    """A product in int32 of what was widened from bytes; casts that nobody else uses are not computed."""
    if node.outputs[0].type.dtype is not dt.int32:
        return None
    a, b = (_narrow(v) for v in node.inputs)
    if a is None or b is None or _shape(a.type.shape, b.type.shape, **node.attrs) is None:
        return None
    return Fusion(widened_matmul_p, (a, b), node.attrs, node.outputs, (node,))


def install() -> None:
    """Let products use the kernel, on processors where it is exact."""
    assert onednn is not None
    register(onednn, "mycelia_int8_matmul")
    if not libraries.EXACT_INT8:
        return
    others = matmul_p.kernel

    def matmul(a: Any, b: Any, **attrs: Any) -> Any:
        made = _matmul(a, b, **attrs)
        return others(a, b, **attrs) if made is NotImplemented and others is not None else made

    matmul_p.kernel = matmul
    widened_matmul_p.kernel = _kernel_widened
    add_rule("matmul", _fused)
