"""A training of LeNet, recorded in both modes."""

from __future__ import annotations

import gzip
import json
import time

import pytest
from tests.profiler.lenet import FILE, line_of, training

import mycelia as ms
from mycelia.profiler import profile, schedule, tensorboard_trace_handler

MODES = {"pynative": ms.PYNATIVE_MODE, "graph": ms.GRAPH_MODE}
STEPS = 4


class Recorded:
    """One recorded training: the profile, and the seconds its steps took by the clock."""

    def __init__(self, mode, folder):
        ms.set_seed(1)
        ms.set_context(mode=MODES[mode])
        step = training()
        for _ in range(4):
            step()
        with profile(profile_memory=True, record_shapes=True) as self.prof:
            start = time.perf_counter()
            for _ in range(STEPS):
                self.loss = float(step())
                self.prof.step()
            self.seconds = time.perf_counter() - start
        file = folder / "trace.json.gz"
        self.prof.export_chrome_trace(file)
        self.trace = json.loads(gzip.decompress(file.read_bytes()))
        self.events = self.trace["traceEvents"]
        ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.fixture(scope="module", params=list(MODES))
def recorded(request, tmp_path_factory):
    return Recorded(request.param, tmp_path_factory.mktemp("trace"))


def rows(prof, operator):
    """The rows of one operator, which may have been merged with its activation (``conv_act``)."""
    found = []
    for row in prof.key_averages():
        first = row.key.removesuffix(" (backward)").split("+")[0]
        if first == operator or (first.startswith(f"{operator}_") and "grad" not in first):
            found.append(row)
    return found


def test_every_event_is_complete(recorded):
    assert len(recorded.events) > 50
    for event in recorded.events:
        assert {"ph", "ts", "dur", "pid", "tid", "name"} <= set(event), event
        assert event["dur"] >= 0


def test_events_of_a_track_are_nested_or_apart(recorded):
    tracks = {}
    for event in recorded.events:
        if event["ph"] == "X":
            tracks.setdefault(event["tid"], []).append(event)
    assert len(tracks) >= 2  # the host's thread and the kernels
    for events in tracks.values():
        open_ = []
        for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
            start, end = round(event["ts"] * 1e3), round((event["ts"] + event["dur"]) * 1e3)
            while open_ and open_[-1] <= start:
                open_.pop()
            assert not open_ or end <= open_[-1], event
            open_.append(end)


@pytest.mark.parametrize(
    ("operator", "comment"), [("conv", "first"), ("conv", "second"), ("dense", "hidden"), ("dense", "last")]
)
def test_operators_stand_at_their_lines(recorded, operator, comment):
    found = [r for r in rows(recorded.prof, operator) if r.line[:2] == (FILE, line_of(comment))]
    assert sum(r.count for r in found) == STEPS, recorded.prof.summary(row_limit=-1)
    assert sum(r.total_ms for r in found) > 0


@pytest.mark.parametrize("comment", ["first", "second"])
def test_gradients_stand_at_the_line_of_what_they_differentiate(recorded, comment):
    made_by = "conv_weight_grad", "conv_pool_grad"  # alone, or in one kernel with what stands behind the convolution
    every = [r for name in made_by for r in rows(recorded.prof, name)]
    found = [r for r in every if r.line[:2] == (FILE, line_of(comment))]
    assert sum(r.count for r in found) == STEPS, recorded.prof.summary(row_limit=-1)
    names = {e["args"]["line"] for e in recorded.events if e["name"].startswith(made_by)}
    assert f"{FILE}:{line_of(comment)}" in names


def test_the_optimizers_kernels_are_there(recorded):
    launches = [e for e in recorded.events if e.get("cat") == "graph"]
    assert len(launches) >= STEPS


def test_every_kernel_belongs_to_a_call(recorded):
    profile_ = recorded.prof._last
    assert [k.name for k in profile_.kernels.kernels if k.launch is None] == []


def test_the_tables_total_is_the_time_of_the_steps(recorded):
    total = recorded.prof.key_averages().total_ms / 1e3
    threads = len(recorded.prof._last.kernels.threads)
    assert 0.1 * recorded.seconds < total < 1.05 * threads * recorded.seconds
    assert sum(r.share for r in recorded.prof.key_averages()) == pytest.approx(1)


def test_steps_are_as_long_as_by_the_clock(recorded):
    assert [s.name for s in recorded.prof.steps] == [f"ProfilerStep#{i}" for i in range(STEPS)]
    assert sum(s.ms for s in recorded.prof.steps) / 1e3 == pytest.approx(recorded.seconds, rel=0.1, abs=0.005)


def test_the_summary_says_it_all(recorded):
    text = recorded.prof.summary(row_limit=3)
    assert text.splitlines()[0].split()[:4] == ["operator", "line", "calls", "total"]
    assert "more," in text
    assert f"{STEPS} steps: mean" in text
    assert "memory: arrays" in text


def test_memory_holds_the_parameters_and_less_than_everything(recorded):
    parameters = 4 * (6 * 25 + 6 + 16 * 150 + 16 + 400 * 84 + 84 + 840 + 10)
    assert 2 * parameters < recorded.prof.peak_memory < 200e6  # with the moments
    counters = [e for e in recorded.events if e["ph"] == "C"]
    assert counters
    assert all(e["args"]["bytes"] >= 0 for e in counters)


def test_only_the_active_steps_are_recorded(tmp_path):
    step, traces = training(batch=4), []

    def ready(prof):
        traces.append([s.name for s in prof.steps])
        handler(prof)

    handler = tensorboard_trace_handler(tmp_path, worker_name="me")
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    with profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(12):
            step()
            prof.step()
    assert traces == [["ProfilerStep#3", "ProfilerStep#4"], ["ProfilerStep#7", "ProfilerStep#8"]]
    folders = sorted(tmp_path.iterdir())
    assert len(folders) == 2
    for folder in folders:
        assert folder.name.startswith("me_")
        assert sorted(p.name for p in folder.iterdir()) == [
            "op_statistic.csv", "profiler_info.json", "step_trace_time.csv", "trace_view.json",
        ]  # fmt: skip
        events = json.loads((folder / "trace_view.json").read_text())["traceEvents"]
        assert sum(e.get("cat") == "step" for e in events) == 2
        convolutions = [e for e in events if e.get("cat") == "operator" and e["name"] == "conv"]
        assert len(convolutions) == 2 * 2  # two layers, two steps
        table = (folder / "op_statistic.csv").read_text().splitlines()
        assert any(line.startswith(f"conv,{FILE}:{line_of('first')},2,") for line in table)


def test_a_step_that_compiles_says_so():
    step = ms.jit(lambda x: ms.ops.sinh(x) * 3.25 + 1)
    with profile() as prof:
        step(ms.Tensor([1.0, 2.0]))
    names = {s.name for s in prof._last.spans("compile")}
    assert {n.split(" ")[0].split(":")[0] for n in names} >= {"staging", "passes", "trace", "lower", "XLA"}
    assert prof.compile_seconds > 0
    assert "compiling: " in prof.summary()
