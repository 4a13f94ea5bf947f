"""``batch`` and its kin: what the recorded cases do not say."""

from __future__ import annotations

import numpy as np
import pytest
from tests.dataset.reading import column, epochs, numbers

import mycelia.dataset as ds
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError


def ragged(*shapes):
    return ds.GeneratorDataset([np.ones(shape) for shape in shapes], ["a"], shuffle=False)


def test_shapes_that_differ():
    with pytest.raises(ShapeError) as info:
        column(ragged(2, 2, 2, (2, 3)).batch(2))
    text = str(info.value)
    assert "rows of column 'a' differ in shape: row 2 has (2,), row 3 has (2, 3)" in text
    assert "hint: pad them with .padded_batch(...)" in text
    assert "test_batching.py" in text


def test_dtypes_that_differ():
    data = ds.GeneratorDataset([1, 2.5], ["a"], shuffle=False).batch(2)
    with pytest.raises(DTypeError, match=r"row 0 has int64, row 1 has float64[\s\S]*TypeCast"):
        column(data)


@pytest.mark.parametrize("size", [0, -1, True, 2.0, "2", None])
def test_sizes(size):
    for method in ("batch", "padded_batch"):
        with pytest.raises((ArgumentValueError, ArgumentTypeError), match=f"{method}: argument 'batch_size' got"):
            getattr(numbers(3), method)(size)


def test_a_size_function():
    seen = []

    def size(info):
        seen.append((info.get_epoch_num(), info.get_batch_num()))
        return info.get_batch_num() + 1

    assert epochs(numbers(5).batch(size), 2) == [[[0], [1, 2], [3, 4]]] * 2
    assert seen == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert epochs(numbers(5).batch(size, drop_remainder=True), 1) == [[[0], [1, 2]]]
    assert numbers(5).batch(size).get_batch_size() == 1


@pytest.mark.parametrize("answer", [0, 1.5, None, True])
def test_a_size_function_that_is_wrong(answer):
    with pytest.raises((ArgumentValueError, ArgumentTypeError), match=r"a function that gave .* for batch 0"):
        column(numbers(3).batch(lambda info: answer))


def test_per_batch_map_gets_lists_and_the_epoch():
    seen = []

    def look(a, info):
        seen.append((type(a), len(a), a[0].shape, info.get_epoch_num(), info.get_batch_num()))
        return a

    epochs(numbers(3).batch(2, per_batch_map=look), 2)
    assert seen == [(list, 2, (), e, b) if b == 0 else (list, 1, (), e, b) for e in (0, 1) for b in (0, 1)]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, i: (a, a), r"gave 2 columns where 1 are named"),
        (lambda a, i: None, "got None"),
        (lambda a, i: 1 // 0, "ZeroDivisionError"),
    ],
)
def test_per_batch_map_that_fails(function, message):
    with pytest.raises(ds.TransformError, match=rf"batch: per_batch_map failed on column 'a' of sample 1: .*{message}"):
        column(numbers(4).batch(2, per_batch_map=lambda a, i: function(a, i) if i.get_batch_num() else a))


def test_per_batch_map_rows_that_differ():
    with pytest.raises(ShapeError, match=r"row 0 has \(1,\), row 1 has \(2,\)"):
        column(numbers(2).batch(2, per_batch_map=lambda a, i: [np.zeros(1), np.zeros(2)]))
    with pytest.raises(ShapeError, match="gave no rows"):
        column(
            numbers(2).batch(2, per_batch_map=lambda a, i: [[]])
            if False
            else numbers(2).batch(2, per_batch_map=nothing)
        )


def nothing(a, info):
    return ([],)


@pytest.mark.parametrize(
    ("keywords", "kind", "message"),
    [
        ({"per_batch_map": 3}, ArgumentTypeError, "'per_batch_map' got 3"),
        ({"drop_remainder": 1}, ArgumentTypeError, "'drop_remainder' got 1"),
        ({"input_columns": "a"}, ArgumentValueError, "column names without per_batch_map"),
        ({"output_columns": "b"}, ArgumentValueError, "column names without per_batch_map"),
    ],
)
def test_refusals(keywords, kind, message):
    with pytest.raises(kind, match=message):
        numbers(3).batch(2, **keywords)


def test_padding_of_several_axes_and_text():
    data = ds.GeneratorDataset([(np.ones((1, 2)), ["a"]), (np.ones((2, 1)), ["bc", "d"])], ["x", "t"], shuffle=False)
    row = next(data.padded_batch(2, pad_info={}).create_dict_iterator(output_numpy=True))
    assert row["x"].tolist() == [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]
    assert row["t"].tolist() == [["a", ""], ["bc", "d"]]
    row = next(
        data.padded_batch(2, pad_info={"x": ([None, 3], -1), "t": ([3], "<pad>")}).create_dict_iterator(
            output_numpy=True
        )
    )
    assert row["x"][0].tolist() == [[1, 1, -1], [-1, -1, -1]]
    assert row["t"].tolist() == [["a", "<pad>", "<pad>"], ["bc", "d", "<pad>"]]


@pytest.mark.parametrize(
    ("pad_info", "kind", "message"),
    [
        ([1], ArgumentTypeError, "a dict from column"),
        ({"a": 3}, ArgumentTypeError, "3 for column 'a'"),
        ({"a": (3, 0)}, ArgumentTypeError, "shape 3 for column 'a'"),
        ({"a": ([-2], 0)}, ArgumentValueError, "'pad_info' got -2"),
        ({"a": ([0], 0)}, ArgumentValueError, "a length of 0 for column 'a'"),
        ({"a": ([2, 2], 0)}, ShapeError, r"shape \[2, 2\] for column 'a'; it takes 1 lengths"),
        ({"a": ([2], "x")}, ArgumentTypeError, "value 'x' for column 'a'; it takes a number"),
    ],
)
def test_padding_refusals(pad_info, kind, message):
    with pytest.raises(kind, match=message):
        column(ragged(2, 3).padded_batch(2, pad_info=pad_info))


def test_rows_of_another_rank_cannot_be_padded():
    with pytest.raises(
        ShapeError, match=r"cannot be padded to one shape: row 0 has shape \(2,\) float64, row 1 has shape \(2, 2\)"
    ):
        column(ragged(2, (2, 2)).padded_batch(2, pad_info={}))


def test_buckets():
    data = ragged(1, 5, 2, 6, 3, 1).bucket_batch_by_length(["a"], [3, 6], [2, 1, 1])
    assert [np.array(b).shape for b in column(data)] == [(1, 5), (2, 2), (1, 6), (1, 3), (1, 1)]
    assert data.get_dataset_size() == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], [3, 3], [1, 1, 1]), "increasing ints"), ((["a"], [3], [1]), "2, one more than boundaries"),
        ((["a"], [], [1]), "a list of positive ints"), ((["a"], [3], [1, 0]), "'bucket_batch_sizes' got 0"),
        ((["a"], [3], [1, 1], 5), "'element_length_function' got 5"),
    ],
)  # fmt: skip
def test_bucket_refusals(arguments, message):
    with pytest.raises((ArgumentTypeError, ArgumentValueError), match=message):
        ragged(1, 2).bucket_batch_by_length(*arguments)


def test_bucket_length_functions():
    with pytest.raises(
        ds.TransformError, match="element_length_function failed on column 'a' of sample 0: ZeroDivisionError"
    ):
        column(ragged(1).bucket_batch_by_length(["a"], [3], [1, 1], lambda x: 1 // 0))
    with pytest.raises(ArgumentValueError, match="a row longer than the last boundary"):
        column(ragged(9).bucket_batch_by_length(["a"], [3], [1, 1], pad_to_bucket_boundary=True))
