"""A coroutine function is compiled.

A graph has no event loop.
"""

import mycelia as ms


@ms.jit
async def fetch(x):
    return x * 2


fetch(ms.Tensor([1.0]))
