"""`jit` of something that cannot be called.

It takes a function, a method or a Cell.
"""

import mycelia as ms

ms.jit(ms.Tensor([1.0]))
