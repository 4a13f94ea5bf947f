"""References of number theory."""

from __future__ import annotations

import numpy as np

REFERENCES = {"gcd": np.gcd, "lcm": np.lcm}
