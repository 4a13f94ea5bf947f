"""set_context, set_device, set_seed: what they take and what they refuse."""

from __future__ import annotations

import jax
import pytest

import mycelia as ms
from mycelia.core import context
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError


def test_default_mode():
    assert ms.get_context("mode") == ms.PYNATIVE_MODE
    assert not context.is_graph_mode()


def test_mode_switch():
    ms.set_context(mode=ms.GRAPH_MODE)
    assert context.is_graph_mode()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert not context.is_graph_mode()


@pytest.mark.parametrize("mode", [2, -1, "graph", None, True])
def test_unknown_mode(mode):
    with pytest.raises(ArgumentValueError, match=r"'mode' got .*GRAPH_MODE \(0\) or PYNATIVE_MODE \(1\)"):
        ms.set_context(mode=mode)


def test_nothing_is_set_if_one_option_is_wrong():
    with pytest.raises(ArgumentValueError, match="did you mean 'device_target'"):
        ms.set_context(mode=ms.GRAPH_MODE, device_targt="CPU")
    assert ms.get_context("mode") == ms.PYNATIVE_MODE


def test_unknown_option_is_refused_when_read():
    with pytest.raises(ArgumentValueError, match="no option 'mod'"):
        ms.get_context("mod")


def test_devices():
    ms.set_device("CPU")
    assert ms.get_context("device_target") == "CPU"
    with pytest.raises(UnsupportedError, match="PJRT plugin"):
        ms.set_device("Ascend")
    with pytest.raises(ArgumentValueError, match='"CPU", "GPU" or "Ascend"'):
        ms.set_device("TPU2")
    with pytest.raises(ArgumentTypeError, match="takes a string"):
        ms.set_device(0)
    with pytest.raises(ArgumentValueError, match="device_id"):
        ms.set_device("CPU", len(jax.devices("cpu")))


@pytest.mark.skipif(any(d.platform == "gpu" for d in jax.devices()), reason="there is a GPU")
def test_absent_gpu_says_what_is_missing():
    with pytest.raises(UnsupportedError, match=r"mycelia\[cuda\]"):
        ms.set_device("GPU")


def test_seed():
    ms.set_seed(3)
    assert ms.get_seed() == 3
    for bad in (-1, 2**32):
        with pytest.raises(ArgumentValueError, match="0 to 2"):
            ms.set_seed(bad)
    for bad in (1.5, "1", True):
        with pytest.raises(ArgumentTypeError, match="an int"):
            ms.set_seed(bad)
    assert ms.get_seed() == 3


def test_cache_folder(monkeypatch):
    monkeypatch.setenv("MYCELIA_CACHE_DIR", "chosen")
    assert context.cache_folder() == "chosen"
    monkeypatch.delenv("MYCELIA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "base")
    assert context.cache_folder().replace("\\", "/") == "base/mycelia"
