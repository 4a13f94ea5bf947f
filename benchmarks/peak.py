"""How fast this machine multiplies matrices: the highest rate that any installed library reaches.

Square products of side 2,048, ``2 * side**3`` operations each. oneDNN is called directly where its library is
installed beside Python (``dnnl_sgemm`` and its bfloat16 sister). torch's float32 product may not be oneDNN's, so that
torch is also asked for a 1x1 convolution, which is the same product.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SIDE = 2048


def _pair(side: int) -> Any:
    return np.random.default_rng(0).standard_normal((2, side, side), np.float32)


def numpy_products(precision: str, side: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    a, b = _pair(side)
    if precision == "f32":
        yield "numpy", lambda: a @ b


ONEDNN = "lib/libdnnl.so.3"
_CHARACTER, _SIZE, _FLOAT, _ADDRESS = ctypes.c_char, ctypes.c_int64, ctypes.c_float, ctypes.c_void_p


def onednn_products(precision: str, side: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """oneDNN's products with a float32 result; none where the library or the function is not there."""
    file = Path(sys.prefix) / ONEDNN
    name = "dnnl_gemm_bf16bf16f32" if precision == "bf16" else "dnnl_sgemm"
    gemm = getattr(ctypes.CDLL(str(file)), name, None) if file.exists() else None
    if gemm is None:
        return
    import ml_dtypes

    gemm.argtypes = [
        _CHARACTER, _CHARACTER, _SIZE, _SIZE, _SIZE, _FLOAT, _ADDRESS, _SIZE, _ADDRESS, _SIZE, _FLOAT, _ADDRESS, _SIZE,
    ]  # fmt: skip
    a, b = _pair(side).astype(ml_dtypes.bfloat16 if precision == "bf16" else np.float32)
    result = np.empty((side, side), np.float32)

    def product() -> Any:
        status = gemm(
            b"N", b"N", side, side, side, 1.0, a.ctypes.data, side, b.ctypes.data, side, 0.0, result.ctypes.data, side
        )
        if status:
            raise RuntimeError(f"{name} gave status {status}")
        return result

    yield "oneDNN", product


def mindspore_products(precision: str, side: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    import mindspore as ms

    dtype = ms.bfloat16 if precision == "bf16" else ms.float32
    a, b = (ms.Tensor(x).astype(dtype) for x in _pair(side))
    product = ms.jit(ms.ops.matmul)
    yield "mycelia", lambda: np.asarray(product(a, b))


def torch_products(precision: str, side: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    import torch
    from torch.nn import functional as F

    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    a, b = (torch.from_numpy(x).to(dtype) for x in _pair(side))
    yield "torch", lambda: a @ b
    high = side // 32
    image = a.reshape(1, side, 32, high).contiguous(memory_format=torch.channels_last)
    kernel = b.reshape(side, side, 1, 1).contiguous(memory_format=torch.channels_last)
    yield "oneDNN through torch", lambda: F.conv2d(image, kernel)


def jax_products(precision: str, side: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    import jax
    import jax.numpy as jnp

    dtype = jnp.bfloat16 if precision == "bf16" else jnp.float32
    a, b = (jnp.asarray(x).astype(dtype) for x in _pair(side))
    product = jax.jit(jnp.matmul)
    yield "jax", lambda: product(a, b).block_until_ready()


def _with_mycelia(precision: str, side: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield from mindspore_products(precision, side)
    yield from numpy_products(precision, side)
    yield from onednn_products(precision, side)


PRODUCTS = {"mycelia": _with_mycelia, "torch": torch_products, "jax": jax_products}


def rates(framework: str, precision: str, threads: int, side: int = SIDE, seconds: float = 1.0) -> dict[str, float]:
    """GFLOP/s of a product by library, the best of a second after one to warm up; empty where none is known."""
    if framework not in PRODUCTS:
        return {}
    if framework == "torch":
        import torch

        torch.set_num_threads(threads)
    found = {}
    for label, product in PRODUCTS[framework](precision, side):
        product()
        best, until = float("inf"), time.perf_counter() + seconds
        while best == float("inf") or time.perf_counter() < until:
            start = time.perf_counter()
            product()
            best = min(best, time.perf_counter() - start)
        found[label] = 2 * side**3 / best / 1e9
    return found
