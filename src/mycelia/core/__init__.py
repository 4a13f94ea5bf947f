"""The bottom layer: dtypes and promotion, trees, errors, context, random state."""

from mycelia.core import engine as engine
from mycelia.core.heap import keep_large_blocks

#: Whether large blocks of memory stay in the process between uses.
memory_is_kept = keep_large_blocks()
