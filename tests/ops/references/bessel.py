"""References of Bessel functions, from SciPy."""

from __future__ import annotations

from scipy import special

REFERENCES = {f"bessel_{name}": getattr(special, name) for name in ("j0", "j1", "y0", "y1", "k0", "k0e", "k1", "k1e")}
