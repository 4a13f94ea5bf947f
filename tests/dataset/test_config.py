"""Settings."""

from __future__ import annotations

import json

import pytest

import mycelia.dataset as ds
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, FileFormatError, UnsupportedError

config = ds.config


@pytest.fixture(autouse=True)
def _as_before():
    state = config._state
    before = {**vars(state), "hints": dict(state.hints)}
    yield
    vars(state).update(before)
    config._debug_hooks.clear()


NUMBERS = {
    "num_parallel_workers": 1, "prefetch_size": 1, "multiprocessing_timeout_interval": 1, "autotune_interval": 0,
    "monitor_sampling_interval": 0, "callback_timeout": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    setter, getter = getattr(config, f"set_{name}"), getattr(config, f"get_{name}")
    setter(7)
    assert getter() == 7
    for wrong, kind in ((NUMBERS[name] - 1, ArgumentValueError), (1.5, ArgumentTypeError), (True, ArgumentTypeError)):
        with pytest.raises(kind, match=f"set_{name}: argument .* got {wrong}"):
            setter(wrong)
    assert getter() == 7


SWITCHES = [
    "auto_num_workers", "numa_enable", "enable_shared_mem", "enable_autotune", "enable_watchdog", "fast_recovery",
    "dynamic_shape",
]  # fmt: skip


@pytest.mark.parametrize("name", SWITCHES)
def test_switches(name):
    setter, getter = getattr(config, f"set_{name}"), getattr(config, f"get_{name}")
    for value in (True, False):
        setter(value)
        assert getter() is value
    with pytest.raises(ArgumentTypeError, match="it takes True or False"):
        setter(1)


def test_seed():
    config.set_seed(0)
    assert config.get_seed() == 0
    for wrong, kind in ((-1, ArgumentValueError), (2**32, ArgumentValueError), ("1", ArgumentTypeError)):
        with pytest.raises(kind, match="set_seed: argument 'seed' got"):
            config.set_seed(wrong)
    config._state.seed = None
    assert config.get_seed() == 5489
    assert not config.seed_is_set()


def test_default_workers():
    config._state.workers = None
    assert 1 <= config.get_num_parallel_workers() <= 8


def test_debug_mode():
    assert config.get_debug_mode() is False
    config.set_debug_mode(True, [print])
    assert config.get_debug_mode() is True
    assert config.debug_hooks() == [print]
    with pytest.raises(ArgumentTypeError, match="'debug_hook_list' got 3"):
        config.set_debug_mode(True, [3])
    with pytest.raises(ArgumentTypeError, match="'debug_mode_flag' got 1"):
        config.set_debug_mode(1)


def test_start_method():
    config.set_multiprocessing_start_method("spawn")
    assert config.get_multiprocessing_start_method() == "spawn"
    with pytest.raises(UnsupportedError, match="a fork of a process that runs XLA's threads may hang"):
        config.set_multiprocessing_start_method("fork")
    with pytest.raises(ArgumentValueError, match="'start_method' got 'thread'"):
        config.set_multiprocessing_start_method("thread")


def test_error_samples_mode():
    config.set_error_samples_mode(ds.ErrorSamplesMode.SKIP)
    assert config.get_error_samples_mode() is ds.ErrorSamplesMode.SKIP
    with pytest.raises(ArgumentTypeError, match="an ErrorSamplesMode"):
        config.set_error_samples_mode(2)


def test_load(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"seed": 9, "numParallelWorkers": 3, "prefetchSize": 4, "logFilePath": "/tmp"}))
    config.load(path)
    assert (config.get_seed(), config.get_num_parallel_workers(), config.get_prefetch_size()) == (9, 3, 4)
    path.write_text(json.dumps({"seed": 1, "prefetchSize": 0}))
    with pytest.raises(ArgumentValueError, match="'prefetchSize' got 0"):
        config.load(path)
    assert config.get_seed() == 9
    path.write_text("{")
    with pytest.raises(FileFormatError, match="is not JSON"):
        config.load(path)
    path.write_text("[1]")
    with pytest.raises(FileFormatError, match="holds a list"):
        config.load(path)
    with pytest.raises(ArgumentValueError, match=r"'file' got .*gone"):
        config.load(tmp_path / "gone")
    with pytest.raises(ArgumentTypeError, match="'file' got 3"):
        config.load(3)


def test_names():
    assert all(callable(getattr(config, name)) for name in config.__all__)
    setters = {name[4:] for name in config.__all__ if name.startswith("set_")}
    assert setters == {name[4:] for name in config.__all__ if name.startswith("get_")}
