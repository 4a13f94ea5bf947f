"""Class forms of operators: the names of ``mindspore.ops.operations._inner_ops``."""

from mycelia.ops.legacy import *  # noqa: F403
