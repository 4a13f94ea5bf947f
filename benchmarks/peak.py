"""How fast this machine multiplies matrices: the highest rate that any installed library reaches.

Square products of side 2,048, ``2 * side**3`` operations each. torch's float32 product may not be oneDNN's, so that
oneDNN is also asked through a 1x1 convolution, which is the same product.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SIDE = 2048


def _pair(side: int) -> Any:
    return np.random.default_rng(0).standard_normal((2, side, side), np.float32)


def numpy_products(precision: str, side: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    a, b = _pair(side)
    if precision == "f32":
        yield "numpy", lambda: a @ b


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


PRODUCTS = {"mycelia": mindspore_products, "torch": torch_products, "jax": jax_products}


def rates(framework: str, precision: str, threads: int, side: int = SIDE, seconds: float = 1.0) -> dict[str, float]:
    """GFLOP/s of a product by library, the best of a second after one to warm up; empty where none is known."""
    if framework not in PRODUCTS:
        return {}
    if framework == "torch":
        import torch

        torch.set_num_threads(threads)
    found = {}
    asked = [
        *PRODUCTS[framework](precision, side),
        *(numpy_products(precision, side) if framework == "mycelia" else []),
    ]
    for label, product in asked:
        product()
        best, until = float("inf"), time.perf_counter() + seconds
        while best == float("inf") or time.perf_counter() < until:
            start = time.perf_counter()
            product()
            best = min(best, time.perf_counter() - start)
        found[label] = 2 * side**3 / best / 1e9
    return found
