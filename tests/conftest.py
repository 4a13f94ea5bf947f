"""What holds for every test: fixed seeds before it, the default mode and options after it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings

SEED = 1234

# The same examples in every run; how long one takes depends on the machine and says nothing.
settings.register_profile("mycelia", derandomize=True, deadline=None, database=None)
settings.load_profile("mycelia")


TESTS_PER_CLEARING = 300
_count = 0


@pytest.fixture(autouse=True)
def _bounded_memory() -> Iterator[None]:
    """Forget compiled operators now and then: thousands of tests compile tens of thousands of them."""
    global _count
    yield
    _count += 1
    if _count % TESTS_PER_CLEARING == 0:
        import gc

        import jax

        from mycelia.ir.primitive import PRIMITIVES

        for primitive in PRIMITIVES.values():
            primitive.eager.clear()
        jax.clear_caches()
        gc.collect()


@pytest.fixture(autouse=True)
def _fixed_state() -> Iterator[None]:
    from mycelia.core.context import reset_context
    from mycelia.core.random import set_seed

    random.seed(SEED)
    np.random.seed(SEED)
    set_seed(SEED)
    yield
    reset_context()
