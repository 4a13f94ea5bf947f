"""References of logic and of the classes of floating-point numbers."""

from __future__ import annotations

import numpy as np

REFERENCES = {
    name: getattr(np, name)
    for name in (
        "logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite", "isposinf", "isneginf",
        "signbit",
    )
}  # fmt: skip
