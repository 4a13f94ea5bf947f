"""``python -m mycelia.native``: whether the compiled kernels are there."""

from mycelia import native

if native.available:
    print("compiled kernels: built, " + ("with oneDNN" if native.onednn_available else "without oneDNN"))
else:
    print("compiled kernels: not built (no C++ compiler, or another system); XLA's own are used")
