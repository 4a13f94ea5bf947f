"""``GeneratorDataset`` and ``NumpySlicesDataset``: what the recorded cases do not say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.dataset.reading import column, epochs

import mycelia as ms
import mycelia.dataset as ds
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    ShapeError,
    StateError,
    UnsupportedError,
)


class Rows:
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        return self.rows[index]

    def __len__(self):
        return len(self.rows)


@pytest.mark.parametrize("keywords", [{}, {"num_parallel_workers": 2, "python_multiprocessing": False}])
def test_a_source_that_fails(keywords):
    data = ds.GeneratorDataset(Rows([1, 2, None, 4]), ["a"], shuffle=False, **keywords)
    iterator = data.create_tuple_iterator(output_numpy=True)
    assert [int(next(iterator)[0]) for _ in range(2)] == [1, 2]
    with pytest.raises(ds.TransformError, match="GeneratorDataset: the source failed on sample 2: BadValue: got None"):
        next(iterator)


def test_the_number_of_values():
    with pytest.raises(ds.TransformError, match=r"gave 2 value\(s\) for 1 column\(s\) \['a'\]"):
        column(ds.GeneratorDataset([(1, 2)], ["a"]))


def test_column_types_are_checked():
    data = ds.GeneratorDataset([(1, 2.5)], ["a", "b"], [ms.int64, ms.float64])
    assert [str(t) for t in data.output_types()] == ["int64", "float64"]
    with pytest.raises(ds.TransformError, match="'column_types' got int64 in column 'a'; it takes int32") as info:
        column(ds.GeneratorDataset([(1, 2.5)], ["a", "b"], [ms.int32, ms.float64]))
    assert isinstance(info.value.__cause__, DTypeError)
    with pytest.raises(ArgumentValueError, match="1 dtypes; it takes 2, one per column"):
        ds.GeneratorDataset([(1, 2)], ["a", "b"], [ms.int32])


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: ds.GeneratorDataset({"x": 1}, ["x"]), ArgumentTypeError, r"a dict[\s\S]*NumpySlicesDataset"),
        (lambda: ds.GeneratorDataset(3, ["a"]), ArgumentTypeError, "an object with __getitem__ and __len__"),
        (lambda: ds.GeneratorDataset([1]), ArgumentValueError, "'column_names' got None"),
        (lambda: ds.GeneratorDataset([1], ["a"], schema="s.json"), UnsupportedError, "'schema' is not supported"),
        (lambda: ds.GeneratorDataset(iter([1]), ["a"], sampler=[0]), ArgumentValueError, "without random access"),
        (lambda: ds.GeneratorDataset([1], ["a"], batch_sampler=3), ArgumentTypeError, "'batch_sampler' got 3"),
        (lambda: ds.GeneratorDataset([1], ["a"], collate_fn=len), ArgumentValueError, "'collate_fn'"),
        (
            lambda: ds.GeneratorDataset([1], ["a"], batch_sampler=[[0]], shuffle=True),
            ArgumentValueError,
            "with shuffle",
        ),
        (lambda: ds.GeneratorDataset([1], ["a"], num_parallel_workers=0), ArgumentValueError, "'num_parallel_workers'"),
    ],
)
def test_refusals(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_a_sequence_without_length():
    class NoLength:
        def __getitem__(self, index):
            return index

    with pytest.raises(ArgumentTypeError, match="a NoLength without __len__"):
        ds.GeneratorDataset(NoLength(), ["a"])


def test_an_empty_source():
    with pytest.raises(ArgumentValueError, match="a source of length 0"):
        column(ds.GeneratorDataset([], ["a"]))


KEPT = {
    "generator": lambda: (i for i in range(3)), "map": lambda: map(abs, range(3)),
    "zip": lambda: zip(range(3), strict=True),
    "list": lambda: iter([0, 1, 2]), "chain": lambda: itertools.chain([0], [1, 2]),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_iterators_of_pythons_own_are_kept(name):
    data = ds.GeneratorDataset(KEPT[name](), ["a"])
    assert data.get_dataset_size() == 3
    assert epochs(data, 2) == [[0, 1, 2]] * 2
    assert column(data.repeat(2)) == [0, 1, 2] * 2


def test_an_iterator_that_does_not_restart():
    class Once:
        def __init__(self):
            self.rest = [1, 2]

        def __iter__(self):
            return self

        def __next__(self):
            if not self.rest:
                raise StopIteration
            return self.rest.pop(0)

    data = ds.GeneratorDataset(Once(), ["a"])
    assert column(data) == [1, 2]
    with pytest.raises(ds.TransformError, match=r"read to its end[\s\S]*function that returns a new iterator") as info:
        column(data)
    assert isinstance(info.value.__cause__, StateError)


def test_a_class_that_restarts():
    class Counter:
        def __iter__(self):
            self.n = 0
            return self

        def __next__(self):
            self.n += 1
            if self.n > 3:
                raise StopIteration
            return self.n

    data = ds.GeneratorDataset(Counter(), ["a"])
    assert epochs(data, 2) == [[1, 2, 3]] * 2
    assert column(ds.GeneratorDataset(Counter(), ["a"], num_samples=2)) == [1, 2]


def test_functions_that_return_no_iterator():
    with pytest.raises(ds.TransformError, match="is a function that returned 3; it should return an iterator"):
        column(ds.GeneratorDataset(lambda: 3, ["a"]))


def test_a_generator_function_that_fails_at_once():
    with pytest.raises(ds.TransformError, match="failed on sample 0: ZeroDivisionError"):
        column(ds.GeneratorDataset(lambda: [1 // 0], ["a"]))


def test_single_values_and_arrays():
    assert column(ds.GeneratorDataset(np.arange(6).reshape(3, 2), ["a"], shuffle=False)) == [[0, 1], [2, 3], [4, 5]]
    assert column(ds.GeneratorDataset([ms.Tensor([1, 2])], ["a"])) == [[1, 2]]
    assert column(ds.GeneratorDataset("xyz", ["a"], shuffle=False)) == ["x", "y", "z"]


def test_batch_sampler():
    rows = [(i, np.full(2, i)) for i in range(5)]
    data = ds.GeneratorDataset(rows, ["i", "x"], batch_sampler=[[0, 4], [2]])
    assert column(data, "x") == [[[0, 0], [4, 4]], [[2, 2]]]
    assert data.get_dataset_size() == 2
    assert data.is_shuffled() is False
    data = ds.GeneratorDataset(
        rows, ["s"], batch_sampler=iter([[1, 2]]), collate_fn=lambda r: sum(int(i) for i, _ in r)
    )
    assert epochs(data, 2) == [[3], [3]]
    with pytest.raises(ArgumentValueError, match="row number 9; it takes 0 to 4"):
        column(ds.GeneratorDataset(rows, ["i", "x"], batch_sampler=[[9]]))
    ragged = ds.GeneratorDataset([np.zeros(1), np.zeros(2)], ["a"], batch_sampler=[[0, 1]])
    with pytest.raises(ds.TransformError, match="differ in shape") as info:
        column(ragged)
    assert isinstance(info.value.__cause__, ShapeError)


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (3, ArgumentTypeError, "int for column 'column_0'; it takes an array or a list"),
        ("abc", ArgumentTypeError, "str for column 'column_0'"),
        ({"x": [object()]}, ArgumentTypeError, "list for column 'x': .*numbers or strings"),
        ({}, ArgumentValueError, "no columns"),
        ([], ArgumentValueError, "no rows"),
        (np.array(3), ArgumentTypeError, "a number for column 'column_0'"),
        ({"x": [1], "y": [1, 2]}, ArgumentValueError, r"columns of length \{'x': 1, 'y': 2\}"),
    ],
)
def test_slices_refusals(data, kind, message):
    with pytest.raises(kind, match=message):
        ds.NumpySlicesDataset(data)


def test_rows_of_different_length():
    data = ds.NumpySlicesDataset({"x": [[1], [2, 3]], "y": [0, 1]}, shuffle=False)
    assert column(data) == [[1], [2, 3]]
    assert column(data.padded_batch(2, pad_info={})) == [[[1, 0], [2, 3]]]


def test_tensors_as_slices():
    data = ds.NumpySlicesDataset((ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), [0, 1]), ["x", "y"], shuffle=False)
    assert column(data) == [[1.0, 2.0], [3.0, 4.0]]
    assert [str(t) for t in data.output_types()] == ["float32", "int64"]
