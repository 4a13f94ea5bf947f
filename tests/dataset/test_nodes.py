"""Shuffle, repeat, take, skip, zip, concat, filter, project, rename, split: what the recorded cases do not say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from tests.dataset.reading import column, epochs, numbers

import mycelia.dataset as ds
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    MyceliaError,
    ShapeError,
    StateError,
)
from mycelia.dataset import seeds, transforms
from mycelia.dataset.nodes import buffered_shuffle


@given(st.integers(0, 40), st.integers(2, 50), st.integers(0, 5))
def test_shuffle_gives_every_row_once(count, size, seed):
    given_rows = list(buffered_shuffle(range(count), size, np.random.default_rng(seed)))
    assert sorted(given_rows) == list(range(count))
    # A row cannot come before the buffer has reached it.
    assert all(place >= row - size + 1 for place, row in enumerate(given_rows))


def test_a_full_buffer_shuffles_uniformly():
    places = np.array(epochs(numbers(4).shuffle(4), 600))
    for place in range(4):
        assert stats.chisquare(np.bincount(places[:, place], minlength=4)).pvalue > 1e-3


STEPS = {
    "shuffle": lambda d, n: d.shuffle(max(n, 2)),
    "take": lambda d, n: d.take(max(n, 1)),
    "skip": lambda d, n: d.skip(n),
    "repeat": lambda d, n: d.repeat(n % 3 + 1),
    "cast": lambda d, n: d.map(transforms.TypeCast("int16"), d.get_col_names()[0]),
    "project": lambda d, n: d.project(d.get_col_names()),
}


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 7)), max_size=5), st.integers(1, 9))
def test_blocks_and_rows_give_the_same(steps, rows):
    """A pipeline over arrays goes by blocks; the same over a source that has none goes row by row."""
    arrays = ds.NumpySlicesDataset({"a": np.arange(rows), "b": np.arange(rows) * 2.0}, shuffle=False)
    source = [(i, i * 2.0) for i in range(rows)]
    single = ds.GeneratorDataset(source, ["a", "b"], shuffle=False)
    for name, number in steps:
        arrays, single = STEPS[name](arrays, number), STEPS[name](single, number)
    found = []
    for data in (arrays.batch(3), single.batch(3)):
        it = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
        found.append([[[x.tolist() for x in row] for row in it] for _ in range(2)])
    assert found[0] == found[1]
    assert arrays.batch(3).get_dataset_size() == len(found[0][0]) == single.batch(3).get_dataset_size()


def test_zip_of_blocks_and_rows():
    a, b = numbers(5), ds.GeneratorDataset([10, 11, 12], ["b"], shuffle=False)
    rows = ds.zip((a, b, numbers(4).rename("a", "c"))).create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert [[int(x) for x in row] for row in rows] == [[0, 10, 0], [1, 11, 1], [2, 12, 2]]


def test_endless_repeat():
    data = numbers(3).shuffle(3).repeat()
    assert data.take(10).get_dataset_size() == 10
    values = column(data.take(10))
    assert [sorted(values[i : i + 3]) for i in (0, 3, 6)] == [[0, 1, 2]] * 3
    assert ds.zip((data, numbers(7).rename("a", "b"))).get_dataset_size() == 3
    generated = ds.GeneratorDataset(lambda: iter(range(4)), ["a"])
    assert generated.repeat().get_dataset_size() == 4
    assert generated.repeat().take(9).get_dataset_size() == 9
    assert generated.repeat().batch(3).get_dataset_size() == 2


def test_repeat_of_nothing_ends():
    assert column(numbers(3).filter(lambda x: x > 9).repeat()) == []


def test_concat_disagreements():
    other = ds.NumpySlicesDataset({"a": [1.5]}, shuffle=False)
    with pytest.raises(DTypeError, match=r"dataset 1 with shape \(\) float64 in column 'a'; it takes int64"):
        column(numbers(2) + other)
    with pytest.raises(ShapeError, match="it takes 0 axes as in the first one"):
        column(numbers(2) + ds.NumpySlicesDataset({"a": [[1]]}, shuffle=False))
    with pytest.raises(ArgumentValueError, match=r"one with the columns \['b'\]; it takes the columns \['a'\]"):
        numbers(2) + numbers(2).rename("a", "b")
    with pytest.raises(ArgumentTypeError, match="'datasets' got 3"):
        numbers(2) + 3
    words = ds.NumpySlicesDataset({"a": ["x", "longer"]}, shuffle=False)
    assert column(words + words) == ["x", "longer", "x", "longer"]


def test_zip_refusals():
    with pytest.raises(ArgumentValueError, match=r"column 'a' twice[\s\S]*rename"):
        ds.zip((numbers(2), numbers(2)))
    with pytest.raises(ArgumentTypeError, match="'datasets' got 5"):
        numbers(2).zip(5)


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        (lambda x: None, "BadValue: got None; is a return statement missing"),
        (lambda x: np.array([True, False]), "BadValue: got an array of 2 truth values"),
        (lambda x: 1 // 0, "ZeroDivisionError"),
    ],
)
def test_predicates_that_fail(predicate, message):
    with pytest.raises(ds.TransformError, match=f"the predicate failed on column 'a' of sample 0: {message}") as info:
        column(numbers(3).filter(predicate))
    assert "test_nodes.py" in str(info.value)
    assert isinstance(info.value, RuntimeError)


def test_filter_takes_tensors_and_numpy_bools():
    assert column(numbers(4).filter(lambda x: np.bool_(x > 1))) == [2, 3]
    assert column(numbers(4).filter(lambda x: x > 1)) == [2, 3]
    with pytest.raises(ArgumentTypeError, match="'predicate' got 3"):
        numbers(3).filter(3)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda d: d.project(["q"]), lambda d: d.rename("q", "w"), lambda d: d.map(lambda x: x, "q"),
        lambda d: d.filter(lambda x: True, "q"), lambda d: d.batch(2, per_batch_map=lambda x, i: x, input_columns="q"),
        lambda d: d.padded_batch(2, pad_info={"q": (None, 0)}), lambda d: d.create_tuple_iterator("q"),
        lambda d: d.bucket_batch_by_length("q", [3], [1, 1]),
    ],
)  # fmt: skip
def test_unknown_columns_are_refused_where_they_are_written(wrong):
    with pytest.raises(ArgumentValueError, match="got 'q'; it takes a column of the dataset: 'a'"):
        wrong(numbers(3))


def test_rename_to_a_taken_name():
    data = ds.NumpySlicesDataset({"x": [1], "y": [2]})
    with pytest.raises(ArgumentValueError, match="'output_columns' got 'y'; it takes names other than"):
        data.rename("x", "y")
    with pytest.raises(ArgumentValueError, match="'output_columns' got 'y'"):
        data.map(lambda x: x, "x", "y")


@pytest.mark.parametrize("count", [0, -2, 1.5, True, "3"])
def test_counts(count):
    kind = ArgumentValueError if type(count) is int else ArgumentTypeError
    for method in ("take", "repeat"):
        with pytest.raises(kind, match="'count'"):
            getattr(numbers(3), method)(count)


@pytest.mark.parametrize("randomize", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(
    "prepare",
    [
        lambda d: d,
        lambda d: d.map(lambda a: a),
        lambda d: d.batch(1).map(lambda a: a[0]),
        lambda d: d.filter(lambda a: True),
    ],
    ids=["source", "mapped", "batched", "filtered"],
)
def test_split_parts_have_nothing_in_common(randomize, shuffle, prepare):
    parts = prepare(numbers(20, shuffle=shuffle)).split([0.7, 0.3], randomize)
    train, test = (epochs(part, 3) for part in parts)
    assert [len(epoch) for epoch in train + test] == [14] * 3 + [6] * 3
    seen = {x for epoch in train for x in epoch}, {x for epoch in test for x in epoch}
    assert len(seen[0]) == 14
    assert len(seen[1]) == 6
    assert seen[0] | seen[1] == set(range(20))
    if not randomize and (not shuffle or not isinstance(parts[0], ds.TakeDataset)):
        assert seen[1] == set(range(14, 20))


def test_transforms_before_a_split_stay_random():
    data = numbers(6).shuffle(6).map(lambda a: a + seeds.sample_random().random())
    part = data.filter(lambda a: True).split([3, 3])[0]
    first, second = epochs(part, 2)
    assert [int(x) for x in first] == [int(x) for x in second]
    assert first != second


def test_split_of_a_sampled_source():
    parts = numbers(10, sampler=[9, 7, 5, 3]).split([1, 3], randomize=False)
    assert [column(p) for p in parts] == [[9], [7, 5, 3]]
    assert [p.get_dataset_size() for p in parts] == [1, 3]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([6, 3], "together 9; it takes 10 in all"), ([0.5, 0.3], "add up to 0.8"), ([0, 10], "positive ints"),
        ([0.01, 0.99], r"gives \[0, 10\] of 10 rows"), ([], "a list of row counts"),
        ([5, 0.5], "either ints or floats|from 0 to 1"),
    ],
)  # fmt: skip
def test_sizes_that_do_not_split(sizes, message):
    with pytest.raises(MyceliaError, match=message):
        numbers(10).split(sizes)


def test_apply_and_flat_map_refusals():
    with pytest.raises(ArgumentTypeError, match="'apply_func' got a function that gives 3"):
        numbers(3).apply(lambda d: 3)
    with pytest.raises(ArgumentTypeError, match="'func' got a function that gives"):
        column(numbers(3).flat_map(lambda a: 3))


def test_flat_map_columns_and_random_rows():
    data = numbers(3).flat_map(lambda a: ds.NumpySlicesDataset({"b": np.arange(8) + 8 * int(a)}))
    assert data.get_col_names() == ["b"]
    values = column(data)
    assert sorted(values) == list(range(24))
    blocks = [[v % 8 for v in values[i : i + 8]] for i in (0, 8, 16)]
    assert len({tuple(b) for b in blocks}) == 3


def test_questions_about_a_dataset_without_rows():
    nothing = numbers(3).filter(lambda x: x > 9)
    assert nothing.get_dataset_size() == 0
    with pytest.raises(StateError, match="has no rows"):
        nothing.output_shapes()


def test_estimated_shapes():
    data = ds.GeneratorDataset([np.zeros((2, n)) for n in (3, 4)], ["a"], shuffle=False)
    assert data.output_shapes() == [[2, 3]]
    assert data.output_shapes(estimate=True) == [[2, None]]


def test_size_of_an_expression_counts_once():
    calls = []

    def rows():
        calls.append(1)
        yield from range(3)

    data = ds.GeneratorDataset(rows, ["a"]).batch(2)
    assert [data.get_dataset_size() for _ in range(3)] == [2, 2, 2]
    assert len(calls) == 1


def test_nodes_have_mindspore_names():
    data = numbers(4)
    assert isinstance(data.batch(2), ds.BatchDataset)
    assert isinstance(data.repeat(2), ds.RepeatDataset)
    assert isinstance(data + data, ds.ConcatDataset)
    from mycelia.dataset.engine.datasets import Dataset, RepeatDataset

    assert Dataset is ds.Dataset
    assert RepeatDataset is ds.RepeatDataset
