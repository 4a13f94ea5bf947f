"""The image transforms under the name of MindSpore's inner module."""

from mycelia.dataset.vision import *  # noqa: F403
