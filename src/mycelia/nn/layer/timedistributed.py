"""The names of ``mindspore.nn.layer.timedistributed``."""

from mycelia.nn.layers import TimeDistributed

__all__ = [
    "TimeDistributed",
]  # fmt: skip
