"""Learning-rate schedules: the names of ``mindspore.experimental.optim.lr_scheduler``."""

from mycelia.nn.optim.grouped.lr_scheduler import *  # noqa: F403
