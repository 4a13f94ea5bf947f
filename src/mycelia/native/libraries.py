"""The compiled libraries beside this file: found, loaded, and their functions made known to XLA."""

from __future__ import annotations

import ctypes
import os
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

FOLDER = Path(__file__).parent


def _load(name: str) -> ctypes.CDLL | None:
    """A library that was built with the package; None if it was not, or for another machine."""
    file = FOLDER / f"{name}.so"
    if not file.exists():
        return None
    try:
        return ctypes.CDLL(str(file))
    except OSError:
        return None


def _load_onednn() -> ctypes.CDLL | None:
    """oneDNN, from where its package put it, so that the kernels that are made of it find it by its name."""
    try:
        files = metadata.files("onednn-cpu-gomp") or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "libdnnl.so.3":
            try:
                return _with_short_waits(str(Path(str(file.locate())).resolve()))
            except OSError:  # no libgomp, or another machine
                return None
    return None


def _with_short_waits(file: str) -> ctypes.CDLL:
    """Load what brings OpenMP with it; its threads spin for 0.2 ms at most when they have nothing to do.

    They share the processors with XLA's threads, but to wake them costs a small step a tenth of its time.
    OpenMP reads the environment once, when it is loaded.
    """
    name = "GOMP_SPINCOUNT"
    if name in os.environ or "OMP_WAIT_POLICY" in os.environ:
        return ctypes.CDLL(file)
    os.environ[name] = "15000"
    try:
        return ctypes.CDLL(file)
    finally:
        del os.environ[name]


class OutdatedError(Exception):
    """A library was built from older sources than the package has."""


def register(library: ctypes.CDLL, *names: str) -> None:
    """Make functions of a library targets of ``jax.ffi.ffi_call`` on the CPU.

    Raises:
        OutdatedError: the library lacks one of them.
    """
    missing = [name for name in names if not hasattr(library, name)]
    if missing:
        raise OutdatedError(", ".join(missing))
    for name in names:
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="cpu")


def packed_size(function: Any, *given: Any) -> int:
    """Bytes of an operand in a library's layout, 0 if it would stay as it is, by a function of the library.

    It takes arrays of int64 by their address, and whole numbers.
    """
    function.restype = ctypes.c_int64
    arrays = [g.ctypes.data_as(ctypes.c_void_p) if isinstance(g, np.ndarray) else ctypes.c_int64(int(g)) for g in given]
    return int(function(*arrays))


#: Kernels of our own, and those made of oneDNN; None where they were not built or do not load.
kernels = _load("kernels")
_dnnl = _load_onednn()
onednn = None if _dnnl is None else _load("onednn_kernels")

#: ``dnnl_cpu_isa_t``: AVX-512, from which on oneDNN computes with bfloat16, if need be in float32.
_AVX512 = 0x27


def _product_types() -> tuple[Any, ...]:
    if _dnnl is None or _dnnl.dnnl_get_effective_cpu_isa() & _AVX512 != _AVX512:
        return (jnp.float32,)
    return (jnp.float32, jnp.bfloat16)


#: The dtypes of products and convolutions that oneDNN computes on this processor.
PRODUCT_TYPES = _product_types()


#: ``dnnl_cpu_isa_t``: AVX-512 and AVX2 with VNNI, whose products of bytes are summed in 32 bits; before them sums of
#: two products are cut off at 16.
_VNNI = (0x67, 0x0F)


def _exact_int8() -> bool:
    isa = 0 if _dnnl is None else _dnnl.dnnl_get_effective_cpu_isa()
    return any(isa & wanted == wanted for wanted in _VNNI)


#: Whether oneDNN's products of 8-bit integers are exact on this processor.
EXACT_INT8 = _exact_int8()


def on_cpu() -> bool:
    """Whether programs are compiled for the CPU."""
    return jax.default_backend() == "cpu"
