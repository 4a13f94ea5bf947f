"""Optimizers."""

from mycelia.nn.optim.adam import Adam, AdaMax, AdamWeightDecay, Lamb
from mycelia.nn.optim.adaptive import Adadelta, Adagrad, RMSProp
from mycelia.nn.optim.momentum import LARS, SGD, Momentum
from mycelia.nn.optim.optimizer import Optimizer

__all__ = [
    "LARS", "SGD", "AdaMax", "Adadelta", "Adagrad", "Adam", "AdamWeightDecay", "Lamb", "Momentum", "Optimizer",
    "RMSProp",
]  # fmt: skip
