"""Rows are made while steps run: the same rows, errors where they belong, and nothing left behind."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import mycelia as ms
import mycelia.dataset as ds
from mycelia.dataset import vision as V


@pytest.fixture(autouse=True)
def seeded():
    ms.set_seed(3)


def model():
    net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(12, 1))
    return ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.001))


def images(count=20):
    draw = np.random.default_rng(5)
    return {
        "x": draw.integers(0, 256, (count, 2, 2, 3)).astype(np.uint8), "y": np.arange(count, dtype=np.float32)[:, None]
    }  # fmt: skip


def pipeline(count=20, workers=None):
    data = ds.NumpySlicesDataset(images(count), shuffle=True)
    chain = [V.RandomHorizontalFlip(0.5), V.Rescale(1 / 255, 0.0), V.HWC2CHW()]
    return data.map(chain, "x", num_parallel_workers=workers).batch(2)


class Rows(ms.train.Callback):
    """Keeps the rows, and calls a function with the number of each step."""

    def __init__(self, act=lambda step: None):
        super().__init__()
        self.act, self.rows = act, []

    def on_train_step_end(self, run_context):
        state = run_context.original_args()
        self.rows.append([column.asnumpy() for column in state.train_dataset_element])
        self.act(state.cur_step_num)


def threads():
    return [t.name for t in threading.enumerate() if t.name.startswith("mycelia-dataset")]


@pytest.mark.parametrize("workers", [None, 1, 2])
def test_rows_are_those_of_an_iterator(workers):
    ds.config.set_seed(7)
    seen = Rows()
    model().train(3, pipeline(workers=workers), callbacks=[seen])
    ds.config.set_seed(7)
    data = pipeline()
    wanted = [row for _ in range(3) for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert len(seen.rows) == len(wanted) == 30
    for row, expected in zip(seen.rows, wanted, strict=True):
        for a, b in zip(row, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_thread_makes_rows_that_cost_little():
    running = []
    model().train(1, ds.NumpySlicesDataset(images(40), shuffle=False).map(V.Rescale(0.1, 0.0), "x").batch(2),
                  callbacks=[Rows(lambda step: running.append(threads()))])  # fmt: skip
    assert running[0] == ["mycelia-dataset-ahead"]
    assert threads() == []


def test_few_rows_are_made_ahead():
    made, ahead = [], []

    def count(x):
        made.append(1)
        return x.astype(np.float32)

    data = ds.NumpySlicesDataset(images(400), shuffle=False).map(count, "x").batch(2)
    model().train(1, data, callbacks=[Rows(lambda step: ahead.append(len(made) - 2 * step))])
    assert max(ahead) <= 2 * (ds.config.get_prefetch_size() + 2)
    assert len(made) == 400


def test_an_error_comes_at_its_step():
    def work(x, y):
        if y[0] == 13:
            raise ValueError("sample thirteen")
        return x.astype(np.float32), y

    seen = Rows()
    data = ds.NumpySlicesDataset(images(), shuffle=False)
    data = data.map(work, ["x", "y"]).batch(2)  # the line of the error
    with pytest.raises(ds.TransformError, match="sample thirteen") as caught:
        model().train(1, data, callbacks=[seen])
    assert len(seen.rows) == 6
    assert 'data.map(work, ["x", "y"])' in str(caught.value)
    assert "test_prefetch.py" in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)
    assert threads() == []


class Stop(Exception):
    pass


@pytest.mark.parametrize("kind", [Stop, KeyboardInterrupt])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_leaves_no_thread(kind, workers):
    def leave(step):
        if step == 2:
            raise kind

    with pytest.raises(kind):
        model().train(5, pipeline(400, workers), callbacks=[Rows(leave)])
    assert threads() == []


def test_an_early_stop_leaves_no_thread():
    class Enough(ms.train.Callback):
        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == 3:
                run_context.request_stop()

    seen = Rows()
    model().train(5, pipeline(400, 2), callbacks=[seen, Enough()])
    assert len(seen.rows) == 3
    assert threads() == []


def pid(x):
    return x.astype(np.float32), np.full(1, os.getpid(), np.float32)


def test_an_interrupt_leaves_no_process():
    pids = set()

    class Interrupt(ms.train.Callback):
        def on_train_step_end(self, run_context):
            state = run_context.original_args()
            pids.update(int(n) for n in state.train_dataset_element[1].asnumpy().ravel())
            if state.cur_step_num == 3:
                raise KeyboardInterrupt

    data = ds.NumpySlicesDataset({"x": images(400)["x"]}, shuffle=False)
    data = data.map(pid, "x", ["x", "y"], num_parallel_workers=2, python_multiprocessing=True).batch(2)
    with pytest.raises(KeyboardInterrupt):
        model().train(5, data, callbacks=[Interrupt()])
    assert pids
    assert os.getpid() not in pids
    for number in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
    assert threads() == []


def test_the_callers_arrays_are_read_in_the_callers_thread():
    def rows():
        for number in range(4):
            names.append(threading.current_thread().name)
            yield np.full((2, 12), number, np.float32), np.zeros((2, 1), np.float32)

    names = []
    model().train(1, rows())
    assert set(names) == {threading.current_thread().name}
