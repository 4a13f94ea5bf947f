"""The names of ``mindspore.nn.layer.rnns``."""

from mycelia.nn.layers import GRU, LSTM, RNN

__all__ = [
    "GRU", "LSTM", "RNN",
]  # fmt: skip
