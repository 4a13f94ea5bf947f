"""References of complex numbers and their parts."""

from __future__ import annotations

import numpy as np

REFERENCES = {
    "real": np.real,
    "imag": np.imag,
    "complex": lambda re, im: re + 1j * im,
}
