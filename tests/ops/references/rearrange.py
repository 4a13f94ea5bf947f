"""References of flip and roll."""

from __future__ import annotations

import numpy as np

REFERENCES = {
    "flip": lambda x, *, axes: np.flip(x, axes),
    "roll": lambda x, *, shifts, axes: np.roll(x, shifts, axes),
}
