"""A tensor is unpacked into too few names.

Its first axis says how many there are.
"""

import mycelia as ms


@ms.jit
def area(box):
    x0, y0, width = box
    return width * (y0 - x0)


area(ms.Tensor([1.0, 2.0, 3.0, 4.0]))
