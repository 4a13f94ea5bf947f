"""The global seed: the names of ``mindspore.common.seed``."""

from mycelia.core.random import get_seed, set_seed

__all__ = [
    "get_seed", "set_seed",
]  # fmt: skip
