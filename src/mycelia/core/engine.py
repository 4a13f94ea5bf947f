"""Settings of the XLA engine that everything else relies on; applied once, on import.

64-bit types are part of the API, so JAX's x64 mode is on. Executables are kept on disk (see
``core.context.cache_folder``) so that a second process starts warm.
"""

from __future__ import annotations

import os
from typing import Any

import jax

from mycelia.core.context import cache_folder

jax.config.update("jax_enable_x64", True)
# A program runs in the thread that calls it: handing it over costs as much as a small operator, and kernels keep their
# threads. Loading data goes on meanwhile in threads of its own.
jax.config.update("jax_cpu_enable_async_dispatch", False)


def keep_executables(folder: str) -> None:
    """Keep compiled executables in ``folder``; an unwritable folder leaves the cache off."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return
    if os.access(folder, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", folder)
        # also what compiles fast: reading it again takes less, and a PyNative step is a hundred small programs
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


_config: Any = jax.config  # its settings are attributes that its class does not declare
if _config.jax_compilation_cache_dir is None and os.environ.get("MYCELIA_CACHE_DIR") != "":
    keep_executables(os.path.join(cache_folder(), "xla"))
