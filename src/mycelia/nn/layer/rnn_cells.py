"""The names of ``mindspore.nn.layer.rnn_cells``."""

from mycelia.nn.layers import GRUCell, LSTMCell, RNNCell

__all__ = [
    "GRUCell", "LSTMCell", "RNNCell",
]  # fmt: skip
