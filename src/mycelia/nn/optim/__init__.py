"""Optimizers."""

from mycelia.nn.optim.adafactor import AdaFactor
from mycelia.nn.optim.adam import Adam, AdaMax, AdamOffload, AdamWeightDecay, LazyAdam
from mycelia.nn.optim.adaptive import Adadelta, Adagrad, RMSProp
from mycelia.nn.optim.asgd import ASGD
from mycelia.nn.optim.layerwise import LARS, Lamb
from mycelia.nn.optim.momentum import SGD, Momentum
from mycelia.nn.optim.optimizer import Optimizer
from mycelia.nn.optim.proximal import FTRL, ProximalAdagrad
from mycelia.nn.optim.rprop import Rprop

__all__ = [
    "ASGD", "FTRL", "LARS", "SGD", "AdaFactor", "AdaMax", "Adadelta", "Adagrad", "Adam", "AdamOffload",
    "AdamWeightDecay", "Lamb", "LazyAdam", "Momentum", "Optimizer", "ProximalAdagrad", "RMSProp", "Rprop",
]  # fmt: skip
