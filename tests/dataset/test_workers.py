"""Worker processes: order, death, what is left behind, what can be sent."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.dataset.reading import column, epochs, numbers

import mycelia.dataset as ds
from mycelia.core.errors import ArgumentTypeError, StateError
from mycelia.dataset import worker_main, workers


def children() -> set[int]:
    """Processes that this one has started and that still exist."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (entry / "cmdline").read_bytes()
        except OSError:  # it ended meanwhile
            continue
        if int(parent) == os.getpid() and (state == "Z" or b"worker_main" in command):
            found.add(int(entry.name))
    return found


def readers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("mycelia-dataset")]


def settle(condition) -> bool:
    """Wait, within bounds, until the condition holds."""
    end = time.monotonic() + 20
    while not condition():
        if time.monotonic() > end:
            return False
        threading.Event().wait(0.01)
    return True


class Squares:
    """Random access, uneven in cost."""

    def __init__(self, count=30):
        self.count = count

    def __getitem__(self, index):
        sum(range(int(index) % 3 * 20000))
        return np.full((4, 5), index), index * index, os.getpid()

    def __len__(self):
        return self.count


def pid(x):
    return os.getpid()


def killed(x):
    if x == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def left(x):
    sys.exit(7)


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_source_in_processes_gives_the_same_rows(shuffle):
    def rows(workers):
        data = ds.GeneratorDataset(Squares(), ["a", "b", "pid"], shuffle=shuffle, num_parallel_workers=workers)
        ds.config.set_seed(1)
        found = list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
        return [(a.tolist(), int(b)) for a, b, _ in found], {int(p) for _, _, p in found}

    alone, here = rows(1)
    assert here == {os.getpid()}
    for count in (2, 3):
        shared, there = rows(count)
        assert shared == alone
        assert os.getpid() not in there
        assert 1 <= len(there) <= count
    assert not children()


def test_processes_serve_all_epochs_of_an_iterator():
    data = numbers(40).map(pid, num_parallel_workers=2, python_multiprocessing=True)
    seen = [set(epoch) for epoch in epochs(data, 3)]
    assert len(set.union(*seen)) <= 2
    assert os.getpid() not in set.union(*seen)


def test_a_worker_that_is_killed_is_an_error():
    began = time.monotonic()
    data = numbers(100).map(killed, num_parallel_workers=2, python_multiprocessing=True)
    with pytest.raises(StateError, match=r"map: worker process \d \(pid \d+\) ended .* killed by signal 9 \(SIGKILL\)"):
        column(data)
    assert time.monotonic() - began < 30
    assert not children()


def test_a_worker_that_exits_is_an_error():
    with pytest.raises(StateError, match="ended while it had samples to do: exit code"):
        column(numbers(3).map(left, num_parallel_workers=2, python_multiprocessing=True))


@pytest.mark.parametrize("how", ["deleted", "stopped", "broken off"])
def test_nothing_is_left_of_an_abandoned_iterator(how):
    data = ds.GeneratorDataset(Squares(500), ["a", "b", "p"], num_parallel_workers=2)
    data = data.map(lambda a: a + 1, num_parallel_workers=2, python_multiprocessing=True).batch(2)
    iterator = data.create_dict_iterator(output_numpy=True)
    assert next(iterator)["a"].shape == (2, 4, 5)
    assert len(children()) == 4
    if how == "deleted":
        del iterator
        gc.collect()
    elif how == "stopped":
        iterator.stop()
        with pytest.raises(StateError, match="has been stopped"):
            next(iterator)
    else:
        for _ in iterator:
            break
        iterator.release()
    assert settle(lambda: not children())
    assert settle(lambda: not readers())


def test_nothing_is_left_after_the_last_epoch():
    column(numbers(10).map(pid, num_parallel_workers=2, python_multiprocessing=True))
    assert settle(lambda: not children() and not readers())


def test_a_part_of_each_pass():
    """What `take` leaves behind in each pass of a repetition neither mixes up nor piles up."""
    data = numbers(200).map(lambda x: x * 2, num_parallel_workers=2, python_multiprocessing=True).take(3).repeat(20)
    iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert [int(x) for (x,) in iterator] == [0, 2, 4] * 20


def test_what_cannot_be_sent():
    lock = threading.Lock()
    data = numbers(3).map(lambda x: (lock.locked(), x)[1], num_parallel_workers=2, python_multiprocessing=True)
    with pytest.raises(
        ArgumentTypeError, match=r"cannot be sent to them: TypeError[\s\S]*python_multiprocessing=False"
    ):
        column(data)
    assert not children()


class Awkward(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


def awkward(x):
    raise Awkward(1, 2)


def test_an_exception_that_cannot_travel_arrives_as_text():
    with pytest.raises(ds.TransformError, match="Awkward: 1 and 2") as info:
        column(numbers(3).map(awkward, num_parallel_workers=2, python_multiprocessing=True))
    assert info.value.__cause__ is None
    assert "raise Awkward(1, 2)" in str(info.value)


def engine(x):
    import mycelia.dataset.vision as vision

    assert vision.Rescale is not None
    return "jax" in sys.modules


def engine_asked_for(x):
    import mycelia as ms

    return ms.Tensor(np.asarray(x) + 1)


def test_workers_do_not_load_the_engine_unless_asked():
    assert column(numbers(2).map(engine, num_parallel_workers=2, python_multiprocessing=True)) == [False, False]
    found = column(numbers(2).map(engine_asked_for, num_parallel_workers=2, python_multiprocessing=True))
    assert found == [1, 2]


def double(columns, info):
    return [x * 2 + info.get_batch_num() for x in columns]


@pytest.mark.parametrize("keywords", [{}, {"python_multiprocessing": True}], ids=["threads", "processes"])
def test_per_batch_map_in_workers(keywords):
    data = numbers(7).batch(3, per_batch_map=double, num_parallel_workers=2, **keywords)
    assert column(data) == [[0, 2, 4], [7, 9, 11], [14]]


def test_printing_in_a_worker_does_not_disturb(capfd):
    data = numbers(3).map(lambda x: (print("seen", int(x)), x)[1], num_parallel_workers=2, python_multiprocessing=True)
    assert column(data) == [0, 1, 2]
    assert "seen 2" in capfd.readouterr().err


def test_large_and_strange_arrays_travel():
    arrays = [
        np.arange(300000.0).reshape(3, -1).T,
        np.array(["ü", "abc"]),
        np.array(3),
        np.zeros((0, 2)),
        np.array(b"xy"),
    ]

    def give(x):
        return arrays[int(x)]

    data = numbers(5).map(give, num_parallel_workers=2, python_multiprocessing=True)
    for (got,), wanted in zip(data.create_tuple_iterator(num_epochs=1, output_numpy=True), arrays, strict=True):
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        assert (got == wanted).all()


def execute(script, **environment):
    path = os.pathsep.join(p for p in sys.path if p)
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )  # fmt: skip


def test_a_script_needs_no_guard(tmp_path):
    """Worker processes do not run the main script again, and take its functions by value."""
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import numpy as np
            import mycelia.dataset as ds
            print("started")
            OFFSET = 5
            def work(x): return x + OFFSET
            class Rows:
                def __getitem__(self, i): return i
                def __len__(self): return 6
            data = ds.GeneratorDataset(Rows(), ["a"], shuffle=False, num_parallel_workers=2)
            data = data.map(work, num_parallel_workers=2, python_multiprocessing=True)
            it = data.create_tuple_iterator(output_numpy=True)
            print([int(next(it)[0]) for _ in range(4)])
            """
        )
    )
    done = execute(script, PYTHONWARNINGS="error")
    assert done.stdout == "started\n[5, 6, 7, 8]\n"
    assert done.stderr == ""
    assert done.returncode == 0


def test_workers_end_with_their_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, time
            import mycelia.dataset as ds
            def pid(x): return os.getpid()
            data = ds.NumpySlicesDataset(list(range(1000)))
            data = data.map(pid, num_parallel_workers=2, python_multiprocessing=True)
            it = data.create_tuple_iterator(output_numpy=True)
            print(" ".join({str(int(next(it)[0])) for _ in range(40)}), flush=True)
            os.kill(os.getpid(), 9)
            """
        )
    )
    done = execute(script)
    pids = [int(p) for p in done.stdout.split()]
    assert pids

    def gone(number):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        with open(f"/proc/{number}/stat") as stat:
            return stat.read().split()[2] == "Z"  # ended, and not yet waited for by the system

    assert settle(lambda: all(gone(p) for p in pids))


def test_frames():
    reading, writing = os.pipe()
    message = ("text", [np.arange(5000.0), np.arange(3)], {"k": np.ones((70, 70))[::2]})
    with os.fdopen(writing, "wb") as output, os.fdopen(reading, "rb", buffering=0) as source:
        thread = threading.Thread(target=worker_main.write_frame, args=(output, message))
        thread.start()
        name, arrays, more = worker_main.read_frame(source)
        thread.join()
        output.close()
        with pytest.raises(EOFError):
            worker_main.read_frame(source)
    assert name == "text"
    assert [a.tolist() for a in arrays] == [a.tolist() for a in message[1]]
    assert more["k"].tolist() == message[2]["k"].tolist()
    arrays[0][0] = 7  # it is the receiver's own


class Task:
    """Counts what it is given."""

    def run(self, key, sample, value, isolated):
        if value == "bad":
            raise ValueError("bad")
        return sample, value

    def report(self, error, sample):
        from mycelia.dataset.failures import SampleFailure

        return SampleFailure("task", "task", (), sample, error)


def test_in_order_gives_what_came_before_an_error():
    def values():
        yield from range(10)
        raise KeyError("source")

    pool = workers.ThreadPool(Task(), 2)
    found = []
    with pytest.raises(KeyError):
        found.extend(workers.in_order(pool, 0, values()))
    for result in workers.in_order(pool, 0, ["a", "bad", "c"]):
        found.append(result)
    pool.close()
    assert [f if isinstance(f, tuple) else f.sample for f in found[-3:]] == [(0, "a"), 1, (2, "c")]


def test_in_order_looks_ahead_by_a_bound():
    taken = []

    def values():
        for i in range(10000):
            taken.append(i)
            yield i

    pool = workers.ThreadPool(Task(), 2)
    results = workers.in_order(pool, 0, values())
    assert next(results) == (0, 0)
    assert len(taken) <= 10
    results.close()
    pool.close()


def test_silent_workers_are_reported(caplog):
    started = time.monotonic()
    before = ds.config.get_multiprocessing_timeout_interval()
    ds.config.set_multiprocessing_timeout_interval(1)
    try:
        column(numbers(1).map(slow, num_parallel_workers=2, python_multiprocessing=True))
    finally:
        ds.config.set_multiprocessing_timeout_interval(before)
    assert time.monotonic() - started > 1
    assert "worker processes have given nothing for 1 s" in caplog.text


def slow(x):
    threading.Event().wait(1.6)
    return x
