"""An error raised in a loop that a tensor controls.

The first error of the run is the one that is seen.
"""

import mycelia as ms


@ms.jit
def descend(x):
    rounds = 0
    while x > 0.5:
        x = x / 2
        rounds = rounds + 1
        if rounds > 3:
            raise RuntimeError(f"no convergence after {rounds} rounds: x = {x}")
    return x


descend(ms.Tensor(1000.0))
