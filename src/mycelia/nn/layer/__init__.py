"""The layers under the module paths of ``mindspore.nn.layer``; they are in :mod:`mycelia.nn.layers`."""

from mycelia.nn.layer import (
    activation,
    basic,
    channel_shuffle,
    combined,
    container,
    conv,
    dense,
    embedding,
    image,
    math,
    normalization,
    padding,
    pooling,
    rnn_cells,
    rnns,
    timedistributed,
    transformer,
)
from mycelia.nn.layers import *  # noqa: F403
from mycelia.nn.layers import __all__ as _layers

__all__ = [
    "activation",
    "basic",
    "channel_shuffle",
    "combined",
    "container",
    "conv",
    "dense",
    "embedding",
    "image",
    "math",
    "normalization",
    "padding",
    "pooling",
    "rnn_cells",
    "rnns",
    "timedistributed",
    "transformer",
]
__all__ += [*_layers]  # noqa: PLE0604
