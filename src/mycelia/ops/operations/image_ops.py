"""Class forms of operators: the names of ``mindspore.ops.operations.image_ops``."""

from mycelia.ops.legacy import *  # noqa: F403
