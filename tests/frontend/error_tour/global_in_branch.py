"""A global variable changes its type in one branch.

What both branches leave behind must agree in type.
"""

import mycelia as ms

state = "idle"


@ms.jit
def watch(x):
    global state
    if x.mean() > 0:
        state = "busy"
    return x * 2


watch(ms.Tensor([1.0, 2.0]))
