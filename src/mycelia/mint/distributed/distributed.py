"""The module that code written for MindSpore imports; see :mod:`mycelia.mint.distributed`."""

from mycelia.mint.distributed import *  # noqa: F403
