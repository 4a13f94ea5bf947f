"""What is recorded: calls, kernels, ranges, threads; and that nothing is while no profiler runs."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.autodiff import repeated, tape
from mycelia.compiler.executable import Executable
from mycelia.core import ranges
from mycelia.frontend.entry import Entry
from mycelia.frontend.jit import Jit
from mycelia.ir.primitive import PRIMITIVES
from mycelia.profiler import Profiler, mstx, profile, schedule
from mycelia.profiler.steps import ProfilerAction
from mycelia.tensor import dispatch

HERE = __file__


def here(text):
    """The numbers of the lines of this file that end with a comment."""
    with open(HERE, encoding="utf-8") as file:
        return {i for i, line in enumerate(file, 1) if line.rstrip().endswith(f"# {text}")}


def lines_of(prof, operator):
    return {r.line.line for r in prof.key_averages() if r.key.split("+")[0] == operator and r.line.file == HERE}


def count_of(prof, operator):
    return sum(r.count for r in prof.key_averages() if r.key.split("+")[0] == operator)


def places():
    """Everything a recording replaces."""
    found = [
        dispatch._compile, dispatch._record, tape.pull_back, repeated._Compiled.run, Executable.__call__,
        Executable.__init__, Entry.run, Jit._stage, ranges._listener,
    ]  # fmt: skip
    return found + [fn for op in PRIMITIVES.values() for fn in op.eager.values()]


def test_nothing_is_left_in_place():
    x = ms.Tensor([1.0, 2.0])
    ops.exp(x)
    before = places()
    with profile():
        assert places() != before
        ops.exp(x)
    assert places() == before
    with profile():
        ops.exp(x).log().sinh().cosh()
    assert not any("profiler" in getattr(type(p), "__module__", "") for p in places())


def test_a_context_that_nobody_watches_is_one_for_all():
    assert ranges.record("a") is ranges.record("b")
    with profile() as prof:
        assert ranges.record("a") is not ranges.record("a")
        with ranges.record("a"):
            pass
    assert [s.name for s in prof._last.spans("range")] == ["a"]
    assert ranges.record("a") is ranges.record("b")


def test_no_kernel_is_lost_in_compiled_functions_inside_others():
    @ms.jit
    def inner(x):
        return ops.matmul(x, x)  # inner

    @ms.jit
    def outer(x, n):
        y = inner(x)
        if y.sum() > 0:
            y = ops.matmul(y, x) * 2  # taken
        else:
            y = ops.matmul(y, x.T) - 1  # not taken
        i = 0
        while i < n:
            y = ops.tanh(ops.matmul(y, x))  # loop
            i = i + 1
        return ops.matmul(inner(y), x)  # outer

    x, n = ms.Tensor(np.eye(32, dtype=np.float32)), ms.Tensor(3)
    outer(x, n).asnumpy()
    with profile() as prof:
        for _ in range(5):
            outer(x, n)
    counts = {r.line.line: r.count for r in prof.key_averages() if r.key.split("+")[0] == "matmul"}
    (inner_line,), (taken,), (loop,), (last,) = here("inner"), here("taken"), here("loop"), here("outer")
    assert counts == {inner_line: 10, taken: 5, loop: 15, last: 5}
    assert lines_of(prof, "matmul").isdisjoint(here("not taken"))
    assert [k for k in prof._last.kernels.kernels if k.launch is None] == []


def test_a_loop_that_is_rolled_counts_its_rounds():
    @ms.jit
    def rounds(x):
        for _ in range(100):
            x = ops.tanh(ops.matmul(x, x))  # round
        return x

    x = ms.Tensor(np.eye(8, dtype=np.float32))
    rounds(x)
    with profile() as prof:
        rounds(x)
    assert [r.count for r in prof.key_averages() if r.key.startswith("matmul")] == [100]
    assert lines_of(prof, "matmul") == here("round")


def test_graphs_that_compute_the_same_keep_their_own_lines():
    first = ms.jit(lambda x: ops.sinh(x) + 3)  # one
    second = ms.jit(lambda x: ops.sinh(x) + 3)  # two
    x = ms.Tensor(np.ones(7, np.float32))
    first(x), second(x)
    with profile() as prof:
        first(x)
        second(x), second(x)
    counts = {r.line.line: r.count for r in prof.key_averages()}
    assert counts == {**dict.fromkeys(here("one"), 1), **dict.fromkeys(here("two"), 2)}


def test_operators_of_one_name_and_many_shapes_are_told_apart():
    rng = np.random.default_rng(0)
    arrays = [ms.Tensor(rng.standard_normal((n, n)).astype(np.float32)) for n in (8, 16, 200)]
    for a in arrays:
        ops.matmul(a, a)
    with profile(record_shapes=True) as prof:
        for _ in range(3):
            for a in arrays:
                b = ops.matmul(a, a)
                ops.matmul(b, b)
    assert count_of(prof, "matmul") == 18
    for kernel in prof._last.kernels.kernels:
        assert kernel.launch is not None
        assert kernel.start >= kernel.launch.start


@pytest.mark.parametrize("repeats", [1, 6], ids=["rule by rule", "compiled"])
def test_gradients_under_the_lines_of_what_is_differentiated(repeats):
    def loss(w, x):
        h = ops.tanh(ops.matmul(x, w))  # hidden layer
        return ops.matmul(h, w).sum()  # output layer

    gradient = ms.value_and_grad(loss, 0)
    w, x = ms.Tensor(np.eye(16, dtype=np.float32)), ms.Tensor(np.ones((4, 16), np.float32))
    for _ in range(repeats - 1):
        gradient(w, x)
    with profile() as prof:
        gradient(w, x)
    backward = [r for r in prof.key_averages() if r.key.endswith(" (backward)") and r.key.startswith("matmul")]
    assert {r.line.line for r in backward} == here("hidden layer") | here("output layer")
    assert sum(r.count for r in backward) == 3  # x needs no gradient


def test_what_is_written_in_place_is_still_given_away():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.total = ms.Parameter(ms.Tensor(np.zeros(1000, np.float32)), requires_grad=False)

        def construct(self, x):
            self.total += x
            return self.total.sum()

    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = Net(), ms.Tensor(np.ones(1000, np.float32))
    net(x)
    with profile(profile_memory=True) as prof:
        for _ in range(3):
            held = net.total._value
            place = held.unsafe_buffer_pointer()
            del held
            assert float(net(x).asnumpy()) > 0
            assert net.total._value.unsafe_buffer_pointer() == place
    assert net.total.asnumpy()[0] == 4
    assert prof.peak_memory >= 8000


def test_memory_goes_up_and_down():
    with profile(profile_memory=True) as prof:
        big = ops.ones((1000, 1000), ms.float32)
        bigger = big + 1
        bigger.asnumpy()
        del big, bigger
        ops.ones((10,), ms.float32).asnumpy()
    sizes = [s.bytes for s in prof._last.recording.memory.samples]
    changes = [
        round(c, -4) for c in np.diff(sizes).tolist() if abs(c) > 1_000_000
    ]  # arrays of other tests may be dropped meanwhile
    assert changes == [4_000_000, 4_000_000, -4_000_000, -4_000_000]
    assert prof.peak_memory == max(sizes)


def test_threads_have_tracks_of_their_own(tmp_path):
    x = ms.Tensor(np.eye(16, dtype=np.float32))
    ops.matmul(x, x)

    together = threading.Barrier(3)  # the system gives the number of a thread that has ended to the next one

    def work():
        for _ in range(20):
            ops.matmul(x, x).asnumpy()
        together.wait(60)

    with profile() as prof:
        workers = [threading.Thread(target=work, name=f"worker {i}") for i in range(3)]
        for t in workers:
            t.start()
        for t in workers:
            t.join()
    assert count_of(prof, "matmul") == 60
    prof.export_chrome_trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    tracks = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {f"Python: worker {i}" for i in range(3)} <= tracks
    calls = [e for e in events if e.get("cat") == "operator"]
    assert len(calls) == 60
    assert len({e["tid"] for e in calls}) == 3


def test_marks_and_ranges_of_the_users(tmp_path):
    assert mstx.range_start("nobody listens") == 0
    with profile(with_stack=True) as prof:
        outer, other = mstx.range_start("outer"), mstx.range_start("overlapping", domain="d")
        mstx.mark("here")
        ops.exp(ms.Tensor([1.0]))
        mstx.range_end(outer)
        mstx.range_start("never ended")
        mstx.range_end(other)
        mstx.range_end(12345)
    prof.add_metadata("who", "me")
    prof.add_metadata_json("numbers", "[1, 2]")
    prof.export_chrome_trace(tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_text())
    assert trace["metadata"] == {"who": "me", "numbers": [1, 2]}
    found = {e["name"]: e for e in trace["traceEvents"] if e["ph"] == "X"}
    assert found["outer"]["ts"] <= found["here"]["ts"] <= found["outer"]["ts"] + found["outer"]["dur"]
    assert found["here"]["dur"] == 0
    assert "never ended" in found
    assert found["outer"]["tid"] != found["overlapping"]["tid"]
    (exp,) = [e for e in trace["traceEvents"] if e.get("cat") == "operator"]
    assert exp["name"] == "exp"
    assert any(HERE in line for line in exp["args"]["stack"])


def test_a_schedule_says_what_each_step_is():
    plan = schedule(wait=1, warmup=2, active=2, repeat=2, skip_first=3)
    said = "".join(
        {"NONE": "-", "WARM_UP": "w", "RECORD": "r", "RECORD_AND_SAVE": "s"}[plan(i).name] for i in range(15)
    )
    assert said == "----wwrs-wwrs--"
    assert plan.to_dict() == {"wait": 1, "warmup": 2, "active": 2, "repeat": 2, "skip_first": 3}
    assert eval(repr(plan)).to_dict() == plan.to_dict()
    endless = schedule(wait=0, active=1)
    assert {endless(i) for i in range(9)} == {ProfilerAction.RECORD_AND_SAVE}


def test_a_recording_that_a_schedule_never_lets_begin():
    told = []
    with profile(schedule=schedule(wait=5, active=1), on_trace_ready=told.append) as prof:
        for _ in range(3):
            ops.exp(ms.Tensor([1.0]))
            prof.step()
    assert told == []


def test_stopping_amid_the_active_steps_keeps_what_there_is():
    told = []
    with profile(schedule=schedule(wait=1, active=5), on_trace_ready=told.append) as prof:
        for _ in range(3):
            ops.exp(ms.Tensor([1.0]))
            prof.step()
    assert told == [prof]
    assert [s.name for s in prof.steps] == ["ProfilerStep#1", "ProfilerStep#2"]
    assert count_of(prof, "exp") == 2


def test_the_older_profiler_writes_and_tells(tmp_path):
    prof = Profiler(output_path=tmp_path / "made", profile_memory=True)
    a = ops.ones((4, 4), ms.float32)
    for _ in range(3):
        a = ops.matmul(a, a)
    prof.analyse()
    (folder,) = (tmp_path / "made").iterdir()
    assert (folder / "trace_view.json").is_file()
    assert json.loads((folder / "profiler_info.json").read_text())["peak_memory_bytes"] > 0
    found = prof.op_analyse(["MatMul", "Conv2D"])  # names of operators' classes
    assert found["MatMul"]["count"] == 3
    assert found["MatMul"]["mean_us"] == pytest.approx(found["MatMul"]["total_us"] / 3)
    assert found["MatMul"]["lines"][0].startswith(HERE)
    assert found["Conv2D"] == {"count": 0, "total_us": 0.0, "mean_us": 0.0, "lines": []}
    ms.profiler.profiler.analyse(tmp_path / "made")


def test_the_second_name():
    code = (
        "from mycelia import alias; alias.install(); import mindspore as ms\n"
        "from mindspore.profiler import ProfilerLevel, profile, schedule, mstx\n"
        "from mindspore.profiler.profiler import analyse\n"
        "assert ms.profiler.profile is profile and ms.Profiler is ms.profiler.Profiler\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_running_a_program_recorded(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import sys, mindspore as ms\n"
        "x = ms.ops.ones((8, 8), ms.float32)\n"
        "y = ms.ops.matmul(x, x)\n"
        "print(sys.argv[1], float(y.sum().asnumpy()))\n"
        "sys.exit(3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mycelia.profiler", "-o", str(tmp_path / "out"), "--memory", str(script), "--flag"],
        capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert done.stdout == "--flag 512.0\n"
    assert any("matmul" in row and "program.py:3" in row for row in done.stderr.splitlines()), done.stderr
    (folder,) = (tmp_path / "out").iterdir()
    assert (folder / "trace_view.json").is_file()


@pytest.mark.parametrize("sink", [False, True])
def test_a_model_tells_of_its_steps_and_of_waiting_for_data(sink):
    inputs = [(np.full((4, 2), i, np.float32), np.ones((4, 1), np.float32)) for i in range(6)]
    data = ms.dataset.GeneratorDataset(inputs, ["x", "y"], shuffle=False)
    net = nn.Dense(2, 1)
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    with profile() as prof:
        model.train(1, data, dataset_sink_mode=sink)
    assert [s.name for s in prof.steps] == ["step"] * 6
    waits = [s for s in prof._last.spans("range") if s.name == "data_wait"]
    assert len(waits) == 7  # the last one finds no more
    assert [s.data_wait for s in prof.steps] == [w.end - w.start for w in waits[:-1]]
    assert "waiting for data: " in prof.summary()


def test_programs_of_one_name_from_disk_keep_their_calls():
    before = jax.config.jax_persistent_cache_min_compile_time_secs
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    rng = np.random.default_rng(0)
    small, large = (ms.Tensor(rng.standard_normal((n, n)).astype(np.float32)) for n in (48, 700))

    def work():
        for _ in range(8):
            ops.sin(large)  # long
            ops.sin(small)  # short

    try:
        work()
        for op in PRIMITIVES.values():
            op.eager.clear()
        jax.clear_caches()
        gc.collect()
        ops.sin(small)  # the numbers of the programs are now others
        work()
        with profile() as prof:
            work()
    finally:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", before)
    times = {r.line.line: r.mean_us for r in prof.key_averages() if r.key == "sin"}
    (long,), (short,) = here("long"), here("short")
    assert times[long] > 5 * times[short]
    for kernel in prof._last.kernels.kernels:
        assert kernel.start > kernel.launch.start - 50_000


def test_programs_from_the_cache_on_disk_keep_names_and_calls():
    before = jax.config.jax_persistent_cache_min_compile_time_secs
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    x = ms.Tensor(np.eye(24, dtype=np.float32))

    def recorded():
        step = ms.jit(lambda x: ops.softmax(ops.matmul(x, x) - 0.5))  # from disk
        step(x)
        (entry,) = step.entries[next(iter(step.entries))]
        with profile() as prof:
            for _ in range(3):
                step(x)
                ops.matmul(x, x)  # at once
        return entry.executable.phases.from_disk, prof

    try:
        assert not recorded()[0]
        gc.collect()
        for op in PRIMITIVES.values():
            op.eager.clear()
        jax.clear_caches()
        from_disk, prof = recorded()
    finally:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", before)
    assert from_disk
    assert [k for k in prof._last.kernels.kernels if k.launch is None] == []
    assert {r.line.line: r.count for r in prof.key_averages() if r.key.startswith("matmul")} == dict.fromkeys(
        here("from disk") | here("at once"), 3
    )
