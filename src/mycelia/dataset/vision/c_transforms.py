"""The image transforms under the module name of MindSpore 1.x for those written in C++."""

from mycelia.dataset.vision import *  # noqa: F403
