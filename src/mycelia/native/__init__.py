"""Compiled CPU kernels, built when the package is installed where there is a C++ compiler.

The shared library stands beside this file. Its functions are called from XLA programs through XLA's foreign function
interface. Without it everything works on XLA's own kernels.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mycelia.compiler.passes import updates

LIBRARY = Path(__file__).parent / "kernels.so"


def _load() -> bool:
    """Make the kernels known to XLA and to the passes; False if they were not built."""
    if not LIBRARY.exists():
        return False
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError:  # built for another machine
        return False
    jax.ffi.register_ffi_target(
        "mycelia_elementwise_many", jax.ffi.pycapsule(library.mycelia_elementwise_many), platform="cpu"
    )
    updates.set_kernel(_elementwise_many, lambda: jax.default_backend() == "cpu")
    return True


def _elementwise_many(
    *arrays: Any, program: Any, constants: Any, signature: Any, results: Any, layout: Any, aliases: Any, shapes: Any
) -> list[Any]:
    call = jax.ffi.ffi_call(
        "mycelia_elementwise_many", [jax.ShapeDtypeStruct(s, np.float32) for s in shapes],
        input_output_aliases=dict(aliases),
    )  # fmt: skip
    return list(
        call(
            *arrays, program=np.array(program, np.int32), constants=np.array(constants, np.float32),
            signature=np.array(signature, np.int64), results=np.array(results, np.int64),
            layout=np.array(layout, np.int64),
        )
    )  # fmt: skip


#: Whether the kernels are there.
available = _load()
