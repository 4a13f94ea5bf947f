"""Profiling that a file asks for while training runs, and that the environment asks for."""

from __future__ import annotations

import csv
import json
import logging
import os
import subprocess
import sys

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.profiler import DynamicProfilerMonitor, EnvProfiler, dynamic, profile


class Asked:
    """A folder whose file says what is wanted, and a clock that passes ten seconds at each look."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.out = folder / "config", folder / "out"
        self.folder.mkdir()
        self.now = 0.0
        self.jump = 10.0
        monkeypatch.setattr(dynamic.time, "monotonic", self.clock)

    def clock(self):
        self.now += self.jump
        return self.now

    def write(self, **options):
        (self.folder / dynamic.CONFIG).write_text(json.dumps(options))

    def monitor(self):
        return DynamicProfilerMonitor(str(self.folder), str(self.out))

    def found(self):
        return sorted(p.name for p in self.out.iterdir()) if self.out.exists() else []

    def steps(self, name):
        (file,) = (self.out / name).glob("*/step_trace_time.csv")
        with open(file, encoding="utf-8") as rows:
            return [row["Step"] for row in csv.DictReader(rows)]


@pytest.fixture
def asked(tmp_path, monkeypatch):
    return Asked(tmp_path, monkeypatch)


def train(monitor, epochs=1, also=()):
    """Six steps an epoch of a small network; the losses."""
    net = nn.Dense(3, 2)
    rows = [(np.ones(3, np.float32) * i, np.int32(i % 2)) for i in range(12)]
    data = ms.dataset.GeneratorDataset(rows, ["data", "label"], shuffle=False).batch(2)
    losses = []

    class Note(ms.train.Callback):
        def on_train_step_end(self, run_context):
            losses.append(float(run_context.original_args().net_outputs.asnumpy()))

    loss = nn.CrossEntropyLoss()
    model = ms.train.Model(net, loss, nn.SGD(net.trainable_params(), 0.01))
    model.train(epochs, data, callbacks=[monitor, Note(), *also])
    return losses


def test_steps_of_a_training_are_recorded(asked):
    asked.write(start_step=3, stop_step=5, analyse=True)
    assert len(train(asked.monitor(), 2)) == 12
    assert asked.found() == ["rank0_start3_stop5"]
    assert len(asked.steps("rank0_start3_stop5")) >= 3
    (trace,) = asked.out.glob("*/*/trace_view.json")
    names = {event.get("name", "") for event in json.loads(trace.read_text())["traceEvents"]}
    assert {"ProfilerStep#0", "ProfilerStep#2"} <= names
    assert "ProfilerStep#3" not in names


def test_a_file_that_changes_while_training_runs(asked):
    asked.write(start_step=1, stop_step=2)

    class Change(ms.train.Callback):
        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == 5:
                asked.write(start_step=8, stop_step=8, analyse=True, prof_path=str(asked.out / "second"))

    train(asked.monitor(), 2, [Change()])
    assert asked.found() == ["rank0_start1_stop2", "second"]
    assert asked.steps("second/rank0_start8_stop8")
    (first,) = (asked.out / "rank0_start1_stop2").iterdir()
    assert [p.name for p in first.iterdir()] == ["trace_view.json"]


def test_a_training_that_ends_or_fails_before_the_last_step_is_written(asked):
    asked.write(start_step=4, stop_step=100)
    train(asked.monitor())

    class Fail(ms.train.Callback):
        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == 5:
                raise KeyError("stop here")

    asked.write(start_step=2, stop_step=90)
    with pytest.raises(KeyError, match="stop here"):
        train(asked.monitor(), 1, [Fail()])
    assert asked.found() == ["rank0_start2_stop90", "rank0_start4_stop100"]
    with profile():  # nobody records any more
        ops.exp(ms.Tensor([1.0]))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "Expecting property name"), ("[1]", "a JSON object"),
        ('{"start_step": "two", "stop_step": 3}', "'start_step' is 'two'; it takes a whole number"),
        ('{"start_step": true, "stop_step": 3}', "'start_step' is True"),
        ('{"start_step": 0, "stop_step": 3}', "'start_step' is 0; it takes a step from 1 on"),
        ('{"start_step": 4, "stop_step": 3}', "'stop_step' is 3; it takes a step from 4 on"),
        ('{"start_step": 2}', "'stop_step' is -1"),
        ('{"start_step": 2, "stop_step": 3, "with_stack": 1}', "'with_stack' is 1; it takes true or false"),
        ('{"start_step": 2, "stop_step": 3, "activities": ["TPU"]}', "'activities' is 'TPU'; it takes one of"),
        ('{"start_step": 2, "stop_step": 3, "activities": []}', "at least one activity"),
        ('{"start_step": 2, "stop_step": 3, "profiler_level": 7}', "'profiler_level' is 7"),
        ('{"start_step": 2, "stop_step": 3, "export_type": "text"}', "'export_type' is 'text'; it takes a list"),
        ('{"start_step": 2, "stop_step": 3, "analyse_mode": 5}', "'analyse_mode' is 5; it takes -1, 0 or 1"),
        ('{"start_step": 2, "stop_step": 3, "prof_path": 5}', "'prof_path' is 5"),
        ('{"start_step": 2, "stop_step": 3, "mstx_domain_include": [1]}', "a list of names"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_told_of_and_training_goes_on(asked, caplog, text, says):
    (asked.folder / dynamic.CONFIG).write_text(text)
    with caplog.at_level(logging.WARNING, "mycelia"):
        assert len(train(asked.monitor())) == 6
    (line,) = [r.getMessage() for r in caplog.records if "is not followed" in r.getMessage()]
    assert says in line
    assert dynamic.CONFIG in line
    assert asked.found() == []


def test_what_cannot_be_recorded_is_told_of_and_training_goes_on(asked, caplog):
    asked.write(start_step=2, stop_step=3)
    asked.out.write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING, "mycelia"):
        assert len(train(asked.monitor())) == 6
    assert any("step 2 is not recorded" in r.getMessage() for r in caplog.records)
    asked.out.unlink()
    caplog.clear()
    with profile(), caplog.at_level(logging.WARNING, "mycelia"):
        assert len(train(asked.monitor())) == 6
    assert any("another profiler is running" in r.getMessage() for r in caplog.records)


def test_unknown_options_and_steps_that_have_passed(asked, caplog):
    monitor = asked.monitor()
    for _ in range(4):
        monitor.step()
    with caplog.at_level(logging.WARNING, "mycelia"):
        asked.write(start_step=1, stop_step=3, record_shape=True)
        monitor.step()
    assert "unknown options are ignored: record_shape" in caplog.text
    assert "steps 1 to 3 have passed, this is step 6" in caplog.text
    asked.write(start_step=2, stop_step=7, analyse=True)  # what is left of them
    for _ in range(4):
        monitor.step()
    assert asked.found() == ["rank0_start2_stop7"]
    assert len(asked.steps("rank0_start2_stop7")) == 1


def test_older_numbers_of_options(asked):
    asked.write(
        start_step=2, stop_step=2, activities=1, profiler_level=-1, aic_metrics=7, export_type=2, host_sys=["cpu"]
    )
    monitor = asked.monitor()
    monitor.step()
    made, config = monitor._profile, monitor._wish.options["experimental_config"]
    monitor.step()
    assert [a.name for a in made.activities] == ["CPU"]
    assert (config.profiler_level.name, config.aic_metrics.name) == ("LevelNone", "MemoryAccess")
    assert [e.name for e in config.export_type] == ["Text", "Db"]
    assert [h.name for h in config.host_sys] == ["CPU"]


def test_the_file_is_looked_at_no_more_often_than_asked_for(asked):
    monitor = asked.monitor()
    monitor.step()
    asked.jump = 0.5
    asked.write(start_step=30, stop_step=30)
    known = []
    for _ in range(5):
        monitor.step()
        known.append(monitor._wish is not None)
    assert known == [False, False, False, True, True]


def test_the_file_is_made_where_there_is_none_and_asks_for_nothing(asked):
    train(asked.monitor())
    assert json.loads((asked.folder / dynamic.CONFIG).read_text())["start_step"] == -1
    assert [p.name for p in asked.folder.iterdir()] == [dynamic.CONFIG]
    assert asked.found() == []


def test_wrong_arguments(tmp_path):
    with pytest.raises(ArgumentTypeError, match="'cfg_path' got None; it takes the path of a folder"):
        DynamicProfilerMonitor()
    with pytest.raises(ArgumentTypeError, match="'output_path' got 3"):
        DynamicProfilerMonitor(str(tmp_path), 3)
    with pytest.raises(ArgumentTypeError, match=r"'poll_interval' got 1\.5"):
        DynamicProfilerMonitor(str(tmp_path), poll_interval=1.5)
    with pytest.raises(ArgumentValueError, match="'poll_interval' got 0"):
        DynamicProfilerMonitor(str(tmp_path), poll_interval=0)
    assert not (tmp_path / dynamic.CONFIG).exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentValueError, match=r"'cfg_path' got .* cannot be made"):
        DynamicProfilerMonitor(str(tmp_path / "file"))


def run(options):
    program = "import mycelia as ms; x = ms.ops.exp(ms.Tensor([1.0])); print(ms.profiler.EnvProfiler.profiler is None)"
    return subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "MS_PROFILER_OPTIONS": options}, check=True,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_the_environment_asks_for_a_profile_of_the_program(tmp_path):
    said = run(json.dumps({"start": True, "output_path": str(tmp_path), "activities": ["CPU"]}))
    assert said.stdout == "False\n"
    (file,) = tmp_path.glob("*/op_statistic.csv")
    assert any(line.startswith("exp,") for line in file.read_text().splitlines())


def test_a_wrong_environment_is_told_of(monkeypatch, caplog):
    for options, says in (("{", "Expecting"), ("3", "a JSON object"), ('{"start": "yes"}', "'start' is 'yes'"),
                          ('{"start": true, "output_path": 3}', "'dir_name' got 3")):  # fmt: skip
        monkeypatch.setenv("MS_PROFILER_OPTIONS", options)
        caplog.clear()
        with caplog.at_level(logging.ERROR, "mycelia"):
            EnvProfiler.init_profiler()
        assert says in caplog.text
        assert "nothing is recorded" in caplog.text
        assert EnvProfiler.profiler is None
    monkeypatch.setenv("MS_PROFILER_OPTIONS", '{"start": false}')
    caplog.clear()
    EnvProfiler.init_profiler()
    EnvProfiler().analyse()
    assert EnvProfiler.profiler is None
    assert not caplog.records
