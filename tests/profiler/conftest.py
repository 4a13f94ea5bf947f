"""Programs are compiled here, or by these tests before: one from elsewhere may be named by another graph."""

from __future__ import annotations

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache


@pytest.fixture(scope="package", autouse=True)
def _cache_of_ones_own(tmp_path_factory):
    before = jax.config.jax_compilation_cache_dir
    compilation_cache.reset_cache()
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.mktemp("xla")))
    yield
    compilation_cache.reset_cache()
    jax.config.update("jax_compilation_cache_dir", before)
