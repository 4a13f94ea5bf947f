"""Optimizers: the names of ``mindspore.mint.optim``."""

from mycelia.nn.optim.grouped import SGD, Adam, AdamW

FusedAdamW = AdamW  # an update is one fused graph anyway

__all__ = ["SGD", "Adam", "AdamW", "FusedAdamW"]
