"""The names of ``mindspore.nn.loss.loss``; the losses are in :mod:`mycelia.nn.loss`."""

from mycelia.nn.loss import *  # noqa: F403
from mycelia.nn.loss import __all__ as _losses

__all__ = [*_losses]  # noqa: PLE0604
