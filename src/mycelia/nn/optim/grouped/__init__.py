"""Optimizers in torch's manner, with options in ``param_groups``."""

from mycelia.nn.optim.grouped.adam import Adam, Adamax, AdamW, NAdam, RAdam
from mycelia.nn.optim.grouped.gradient import ASGD, SGD, Adadelta, Adagrad, RMSprop, Rprop
from mycelia.nn.optim.grouped.optimizer import Optimizer

__all__ = [
    "ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop",
]  # fmt: skip
