"""Compiled CPU kernels, built when the package is installed where there is a C++ compiler.

The shared libraries stand beside this file: ``kernels.so`` needs nothing else, ``onednn_kernels.so`` needs oneDNN.
Their functions are called from XLA programs through XLA's foreign function interface. Without them everything works
on XLA's own kernels. ``MYCELIA_NATIVE=0`` leaves them out, to compare.
"""

from __future__ import annotations

import os
import warnings

from mycelia.native import (
    attention,
    batch_norm,
    convolution,
    elementwise,
    embedding,
    int8,
    libraries,
    max_pool,
    products,
    recurrent,
    rows,
)

_wanted = os.environ.get("MYCELIA_NATIVE", "1") != "0"

#: Whether the kernels are there, and whether those made of oneDNN are.
available = _wanted and libraries.kernels is not None
onednn_available = _wanted and libraries.onednn is not None

#: The families of kernels made of oneDNN; each has ``install()``.
FAMILIES = (convolution, batch_norm, max_pool, products, attention, embedding, rows, recurrent, int8)

if available:
    elementwise.install()
if onednn_available:
    for _family in FAMILIES:
        try:
            _family.install()
        except libraries.OutdatedError as error:
            warnings.warn(f"compiled kernels are missing ({error}): install the package again", stacklevel=2)
