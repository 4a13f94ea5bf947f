"""The kernel behind ``compiler.passes.updates``: one elementwise program over many groups of arrays."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from mycelia.compiler.passes import updates
from mycelia.native.libraries import kernels, on_cpu, register


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


def install() -> None:
    """Let the pass use the kernel."""
    assert kernels is not None
    register(kernels, "mycelia_elementwise_many")
    updates.set_kernel(_elementwise_many, on_cpu)
