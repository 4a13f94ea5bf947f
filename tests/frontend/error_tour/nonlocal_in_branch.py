"""A variable of the enclosing function changes its type in one branch.

What both branches leave behind must agree in type.
"""

import mycelia as ms


@ms.jit
def count(x):
    found = None

    def visit(v):
        nonlocal found
        if v > 0:
            found = v

    visit(x.sum())
    return found


count(ms.Tensor([1.0, 2.0]))
