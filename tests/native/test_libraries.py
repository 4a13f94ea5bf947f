"""The compiled libraries: built together, loaded from where their package is, and left out on demand."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mycelia import native
from mycelia.native import libraries


@pytest.mark.skipif(not native.available, reason="the compiled kernels are not built here")
def test_where_oneDNN_loads_its_kernels_are_built():
    """A build that has a compiler finds oneDNN's headers as well, so that nobody runs without by mistake."""
    assert (libraries._dnnl is None) == (libraries.onednn is None)


def told(**environment):
    made = subprocess.run(
        [sys.executable, "-m", "mycelia.native"], env=os.environ | environment, capture_output=True, text=True,
        check=True, timeout=120,
    )  # fmt: skip
    return made.stdout


def test_kernels_are_left_out_on_demand():
    assert told(MYCELIA_NATIVE="0").startswith("compiled kernels: not built")


@pytest.mark.skipif(not native.onednn_available, reason="the kernels made of oneDNN are not built here")
def test_what_is_there_is_told():
    assert told(MYCELIA_NATIVE="1") == "compiled kernels: built, with oneDNN\n"


@pytest.mark.skipif(not native.onednn_available, reason="the kernels made of oneDNN are not built here")
def test_a_library_of_older_sources_is_told():
    assert libraries.onednn is not None
    with pytest.raises(libraries.OutdatedError, match="mycelia_of_tomorrow"):
        libraries.register(libraries.onednn, "mycelia_of_tomorrow")
