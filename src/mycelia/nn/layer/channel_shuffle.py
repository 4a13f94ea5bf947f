"""The names of ``mindspore.nn.layer.channel_shuffle``."""

from mycelia.nn.layers import ChannelShuffle

__all__ = [
    "ChannelShuffle",
]  # fmt: skip
