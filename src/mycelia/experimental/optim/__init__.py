"""Optimizers with ``param_groups``: the names of ``mindspore.experimental.optim``."""

from mycelia.experimental.optim import lr_scheduler as lr_scheduler
from mycelia.nn.optim.grouped import *  # noqa: F403
