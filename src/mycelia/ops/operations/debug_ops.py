"""Class forms of operators: the names of ``mindspore.ops.operations.debug_ops``."""

from mycelia.ops.legacy import *  # noqa: F403
