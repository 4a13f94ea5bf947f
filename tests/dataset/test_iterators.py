"""Iterators: epochs, tensors, threads, errors, ends."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest
from tests.dataset.reading import numbers

import mycelia as ms
import mycelia.dataset as ds
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError
from mycelia.dataset.iterators import Ahead


def rows():
    return ds.NumpySlicesDataset({"x": np.arange(6.0).reshape(3, 2), "n": [1, 2, 3]}, shuffle=False)


def test_tensors():
    first = next(rows().create_dict_iterator())
    assert isinstance(first["x"], ms.Tensor)
    assert first["x"].dtype is ms.float64
    assert first["n"].dtype is ms.int64
    assert first["n"].shape == ()
    assert first["x"].asnumpy().tolist() == [0.0, 1.0]
    assert list(first) == ["x", "n"]


def test_iterating_over_a_dataset():
    found = [(x.asnumpy().tolist(), int(n)) for x, n in rows()]
    assert found == [([0.0, 1.0], 1), ([2.0, 3.0], 2), ([4.0, 5.0], 3)]
    assert len(rows()) == 3
    assert len(list(rows())) == 3


def test_text_stays_an_array():
    row = next(ds.NumpySlicesDataset(["a", "bc"], shuffle=False).create_tuple_iterator())
    assert isinstance(row[0], np.ndarray)
    assert row[0] == "a"


def test_epochs_end_and_run_out():
    iterator = rows().create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [len(list(iterator)) for _ in range(2)] == [3, 3]
    with pytest.raises(StateError, match=r"has given its 2 epoch\(s\)[\s\S]*more num_epochs"):
        next(iterator)


def test_a_loop_that_breaks_goes_on_where_it_was():
    iterator = numbers(4).create_tuple_iterator(output_numpy=True)
    assert [int(x) for (x,) in [next(iterator), next(iterator)]] == [0, 1]
    assert [int(x) for (x,) in iterator] == [2, 3]
    assert [int(x) for (x,) in iterator] == [0, 1, 2, 3]


def test_columns():
    iterator = rows().create_tuple_iterator(["n", "x"], num_epochs=1, output_numpy=True)
    assert [x.tolist() for x in next(iterator)] == [1, [0.0, 1.0]]
    assert iterator.get_col_names() == ["x", "n"]
    with pytest.raises(ArgumentValueError, match="'columns' got 'q'"):
        rows().create_tuple_iterator(["q"])


@pytest.mark.parametrize("value", [0, -2, 1.5, None, True])
def test_num_epochs(value):
    kind = ArgumentValueError if type(value) is int else ArgumentTypeError
    with pytest.raises(kind, match="'num_epochs'"):
        rows().create_dict_iterator(num_epochs=value)
    with pytest.raises(ArgumentTypeError, match="'output_numpy' got 1"):
        rows().create_dict_iterator(output_numpy=1)


def generated(log):
    def source():
        try:
            for i in range(1000):
                log.append(i)
                yield np.full(10, i)
        finally:
            log.append(threading.current_thread().name)

    return ds.GeneratorDataset(source, ["a"])


def test_rows_are_prepared_ahead_by_a_bound():
    before = ds.config.get_prefetch_size()
    ds.config.set_prefetch_size(3)
    log: list[object] = []
    ready = threading.Event()

    def source():
        for i in range(100):
            log.append(i)
            if i == 4:
                ready.set()
            yield i

    try:
        iterator = ds.GeneratorDataset(source, ["a"]).create_tuple_iterator(output_numpy=True)
        assert int(next(iterator)[0]) == 0
        assert ready.wait(20)
        assert len(log) <= 5
        assert [int(next(iterator)[0]) for _ in range(5)] == [1, 2, 3, 4, 5]
    finally:
        ds.config.set_prefetch_size(before)
        iterator.stop()


def test_an_abandoned_generator_is_closed():
    log: list[object] = []
    iterator = generated(log).create_tuple_iterator(output_numpy=True)
    next(iterator)
    del iterator
    gc.collect()
    end = time.monotonic() + 20
    while not isinstance(log[-1], str) and time.monotonic() < end:
        threading.Event().wait(0.005)
    assert log[-1] == "mycelia-dataset-ahead"
    assert len(log) < 100


def test_an_error_comes_after_the_rows_before_it_and_ends_the_iterator():
    def source():
        yield 1
        yield 2
        raise ValueError("torn")

    iterator = ds.GeneratorDataset(source, ["a"]).create_tuple_iterator(output_numpy=True)
    assert [int(next(iterator)[0]) for _ in range(2)] == [1, 2]
    with pytest.raises(
        ds.TransformError, match="GeneratorDataset: the source failed on sample 2: ValueError: torn"
    ) as info:
        next(iterator)
    assert isinstance(info.value.__cause__, ValueError)
    with pytest.raises(StateError, match="the iterator has ended with an error"):
        next(iterator)


def test_ahead_alone():
    ahead = Ahead(lambda: iter([(np.arange(3),), (np.arange(2),)]), 1)
    assert [len(row[0]) for row in ahead] == [3, 2]
    with pytest.raises(StopIteration):
        next(ahead)
    ahead.close()


def test_large_rows_are_bounded_by_their_size():
    count = []

    def rows_of_100_mib():
        for i in range(6):
            count.append(i)
            yield (np.broadcast_to(np.zeros(1), (100 * 2**17,)),)

    ahead = Ahead(rows_of_100_mib, 16)
    end = time.monotonic() + 20
    while len(count) < 3 and time.monotonic() < end:
        threading.Event().wait(0.005)
    threading.Event().wait(0.05)
    # Two are ready and the third waits for room.
    assert len(count) == 3
    assert sum(1 for _ in ahead) == 6


def test_light_pipelines_start_no_thread():
    before = set(threading.enumerate())
    iterator = numbers(100).map(ds.transforms.TypeCast("float32")).batch(2).create_tuple_iterator(output_numpy=True)
    next(iterator)
    assert set(threading.enumerate()) <= before


def test_two_iterators_at_a_time():
    data = numbers(5).map(lambda x: x)
    pairs = zip(data.create_tuple_iterator(num_epochs=1), data.create_tuple_iterator(num_epochs=1), strict=True)
    assert [(int(a), int(b)) for (a,), (b,) in pairs] == [(i, i) for i in range(5)]


def test_what_comes_out_is_the_callers_own():
    data = ds.NumpySlicesDataset({"a": np.arange(4)}, shuffle=False).batch(2)
    for (batch,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        batch += 100
    assert [b[0].tolist() for b in data.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [[0, 1], [2, 3]]
