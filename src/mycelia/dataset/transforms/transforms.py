"""The transforms under the name of MindSpore's inner module."""

from mycelia.dataset.transforms import *  # noqa: F403
