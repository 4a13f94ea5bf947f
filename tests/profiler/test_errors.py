"""What users can do wrong, and what they are told."""

from __future__ import annotations

import os

import jax
import pytest

import mycelia as ms
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError, UnsupportedError
from mycelia.profiler import Profiler, ProfilerActivity, _ExperimentalConfig, mstx, profile, schedule
from mycelia.profiler.files import tensorboard_trace_handler
from mycelia.profiler.profiler import analyse
from mycelia.tensor import dispatch


@pytest.fixture
def stopped():
    return profile(start_profile=False)


def test_stopping_before_the_start(stopped):
    with pytest.raises(StateError, match=r"profile\.stop: this profiler is not running[\s\S]*call start\(\) first"):
        stopped.stop()


def test_a_step_before_the_start(stopped):
    with pytest.raises(StateError, match=r"profile\.step: this profiler is not running[\s\S]*inside the with"):
        stopped.step()


@pytest.mark.parametrize("what", ["summary", "key_averages"])
def test_asking_before_anything_is_recorded(stopped, what):
    with pytest.raises(StateError, match=r"profile: nothing has been recorded yet[\s\S]*ask after stop\(\)"):
        getattr(stopped, what)()


def test_starting_twice():
    with profile() as prof, pytest.raises(StateError, match=r"profile\.start: this profiler is running already"):
        prof.start()


def test_two_at_once(stopped):
    with profile() as first:
        with pytest.raises(StateError, match=r"profile\.start: another profiler is running[\s\S]*stop it first"):
            stopped.start()
        ms.ops.exp(ms.Tensor([1.0]))
    assert [r.count for r in first.key_averages() if r.key == "exp"] == [1]  # goes on as if nothing had been


def test_a_profile_of_jaxs_own_at_the_same_time(stopped, tmp_path):
    former = dispatch._compile
    with jax.profiler.trace(str(tmp_path)), pytest.raises(StateError, match=r"jax\.profiler is recording already"):
        stopped.start()
    assert dispatch._compile is former
    with stopped:  # and it can be started after that
        pass


@pytest.mark.parametrize(
    ("numbers", "error", "message"),
    [
        ({"wait": -1, "active": 1}, ArgumentValueError, "'wait' got -1; it takes an int from 0 on"),
        ({"wait": 0, "active": 0}, ArgumentValueError, "'active' got 0; it takes an int from 1 on"),
        ({"wait": 0, "active": 1, "warmup": 1.5}, ArgumentTypeError, "'warmup' got 1.5; it takes an int"),
        ({"wait": 0, "active": 1, "repeat": True}, ArgumentTypeError, "'repeat' got True; it takes an int"),
        ({"wait": 0, "active": 1, "skip_first": "2"}, ArgumentTypeError, "'skip_first' got '2'; it takes an int"),
    ],
)
def test_bad_numbers_of_a_schedule(numbers, error, message):
    with pytest.raises(error, match=message):
        schedule(**numbers)


def test_a_negative_step_of_a_schedule():
    with pytest.raises(ArgumentValueError, match="'step' got -1"):
        schedule(wait=0, active=1)(-1)


def test_a_schedule_that_gives_something_else():
    prof = profile(start_profile=False, schedule=lambda step: "RECORD")
    with pytest.raises(ArgumentTypeError, match=r"'schedule' got a callable that gave 'RECORD' for step 0"):
        prof.start()
    with profile():  # nothing is left running
        pass


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"activities": []}, ArgumentValueError, "'activities' got none; it takes at least one"),
        ({"activities": ["CPU"]}, ArgumentTypeError, "'activities' got 'CPU'; it takes one of ProfilerActivity.NPU"),
        ({"activities": 3}, ArgumentTypeError, "'activities' got 3; it takes a list of ProfilerActivity"),
        ({"with_stack": 1}, ArgumentTypeError, "'with_stack' got 1; it takes True or False"),
        ({"schedule": 3}, ArgumentTypeError, "'schedule' got 3; it takes a callable or None"),
        ({"on_trace_ready": "x"}, ArgumentTypeError, "'on_trace_ready' got 'x'; it takes a callable or None"),
        ({"experimental_config": {}}, ArgumentTypeError, "'experimental_config' got {}; it takes an _Exp"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        profile(**options)


def test_bad_options_of_the_experimental_config():
    with pytest.raises(ArgumentTypeError, match=r"'profiler_level' got 1; it takes one of ProfilerLevel\.LevelNone"):
        _ExperimentalConfig(profiler_level=1)


def test_every_activity_is_taken():
    assert profile(activities=list(ProfilerActivity), start_profile=False).activities == tuple(ProfilerActivity)


@pytest.mark.parametrize("make", [tensorboard_trace_handler, lambda folder: Profiler(output_path=folder)])
def test_a_folder_that_cannot_be_made(tmp_path, make):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentValueError, match=r"got '.*file.data', which cannot be made"):
        make(tmp_path / "file" / "data")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ArgumentValueError, match="which cannot be written"):
        tensorboard_trace_handler(tmp_path)


def test_a_folder_without_permission(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ArgumentValueError, match=r"'dir_name' got '.*', which cannot be written"):
        tensorboard_trace_handler(tmp_path)


def test_a_trace_into_a_folder_that_is_not_there(tmp_path):
    with profile() as prof:
        pass
    with pytest.raises(ArgumentValueError, match=r"'path' got '.*trace\.json', whose folder is not there"):
        prof.export_chrome_trace(tmp_path / "none" / "trace.json")
    with pytest.raises(ArgumentTypeError, match="'path' got 3; it takes the path of a file"):
        prof.export_chrome_trace(3)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"worker_name": "a/b"}, ArgumentValueError, "'worker_name' got 'a/b'; it takes a name without"),
        ({"worker_name": 1}, ArgumentTypeError, "'worker_name' got 1; it takes a str or None"),
        ({"analyse_flag": 1}, ArgumentTypeError, "'analyse_flag' got 1"),
    ],
)
def test_bad_options_of_the_handler(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        tensorboard_trace_handler(tmp_path, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sort_by": "name"}, "'sort_by' got 'name'; it takes 'total', 'calls', 'mean', 'dispatch'"),
        ({"row_limit": -2}, "'row_limit' got -2; it takes an int from -1 on"),
    ],
)
def test_bad_options_of_the_table(options, message):
    with profile() as prof:
        pass
    with pytest.raises(ArgumentValueError, match=message):
        prof.summary(**options)


def test_bad_texts_of_marks():
    with pytest.raises(ArgumentTypeError, match=r"mstx\.mark: argument 'message' got 3; it takes a str"):
        mstx.mark(3)
    with pytest.raises(ArgumentValueError, match=r"mstx\.range_start: argument 'domain' got an empty text"):
        mstx.range_start("x", domain="")
    with pytest.raises(ArgumentTypeError, match=r"mstx\.range_end: argument 'range_id' got 'x'"):
        mstx.range_end("x")


def test_bad_metadata(stopped):
    with pytest.raises(ArgumentTypeError, match="'value' got 3; it takes a str"):
        stopped.add_metadata("k", 3)
    with pytest.raises(ArgumentValueError, match=r"'value' got text that is not JSON"):
        stopped.add_metadata_json("k", "{")


def test_the_older_profiler(tmp_path):
    prof = Profiler(output_path=tmp_path, start_profile=False)
    with pytest.raises(StateError, match=r"Profiler\.stop: this profiler is not running"):
        prof.stop()
    with pytest.raises(StateError, match="nothing has been recorded yet"):
        prof.analyse()
    with pytest.raises(ArgumentValueError, match="'mode' got 'later'"):
        prof.analyse(mode="later")
    with pytest.raises(UnsupportedError, match="analysed when they are recorded"):
        prof.analyse(offline_path="x")
    with pytest.raises(ArgumentTypeError, match=r"'op_name' got \[\]; it takes a name or names"):
        prof.op_analyse([])
    with pytest.raises(ArgumentTypeError, match="argument 'colour' got a value; it takes an option"):
        Profiler(output_path=tmp_path, colour="red")


def test_a_folder_without_a_profile(tmp_path):
    with pytest.raises(ArgumentValueError, match=r"'profiler_path' got '.*', which holds no profile"):
        analyse(tmp_path)


def test_an_error_in_the_program_reaches_the_user_and_leaves_nothing_behind():
    former = dispatch._compile
    with pytest.raises(ms.core.errors.ShapeError), profile():
        ms.ops.matmul(ms.ops.ones((2, 3)), ms.ops.ones((2, 3)))
    assert dispatch._compile is former
    with profile():
        pass
