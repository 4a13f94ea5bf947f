"""``map``: columns, errors, error modes, blocks, debugging."""

from __future__ import annotations

import functools
import threading

import numpy as np
import pytest
from tests.dataset.reading import column, numbers

import mycelia as ms
import mycelia.dataset as ds
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError, UnsupportedError
from mycelia.dataset import transforms, vision

XY = {"x": [1, 2, 3], "y": [10, 20, 30]}


def pairs():
    return ds.NumpySlicesDataset(XY, shuffle=False)


def third(x):
    if x == 3:
        raise KeyError("boo")
    return x


@pytest.mark.parametrize(
    "keywords",
    [{}, {"num_parallel_workers": 2}, {"num_parallel_workers": 2, "python_multiprocessing": True}],
    ids=["inline", "threads", "processes"],
)
def test_a_failure_names_operation_column_and_sample(keywords):
    data = pairs().map([transforms.TypeCast("int32"), third], "x", **keywords)
    iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert [int(next(iterator)[0]) for _ in range(2)] == [1, 2]
    with pytest.raises(ds.TransformError) as info:
        next(iterator)
    error = info.value
    assert str(error).startswith("map: operation 'third' (2 of 2) failed on column 'x' of sample 2: KeyError: 'boo'")
    assert (error.operation, error.columns, error.sample) == ("third", ("x",), 2)
    assert isinstance(error.__cause__, KeyError)
    assert "test_mapping.py" in str(error)
    assert '.map([transforms.TypeCast("int32"), third], "x", **keywords)' in str(error)
    if "python_multiprocessing" in keywords:
        assert "in a worker process:" in str(error)
        assert 'raise KeyError("boo")' in str(error)
    else:
        assert error.__cause__.__traceback__ is not None


def test_a_failure_of_a_built_in_transform_in_a_block():
    data = ds.NumpySlicesDataset({"image": np.zeros((4, 5, 6, 2), np.uint8)}, shuffle=False)
    data = data.map([vision.Rescale(1.0, 0.0), vision.Normalize([1, 2, 3], [1, 1, 1])]).batch(2)
    with pytest.raises(ds.TransformError, match=r"'Normalize' \(2 of 2\) failed on column 'image' of sample 0") as info:
        column(data)
    assert isinstance(info.value.__cause__, ShapeError)
    assert "2 channel(s) in the shape (5, 6, 2); it takes 3 channels" in str(info.value)


def test_a_failure_in_the_middle_of_a_block():
    data = numbers(10).map(transforms.OneHot(7)).batch(5)
    iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert next(iterator)[0].shape == (5, 7)
    with pytest.raises(
        ds.TransformError, match=r"'OneHot' failed on column 'a' of sample 7: OutOfRangeError: .* class 7"
    ):
        next(iterator)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: None, "got None; is a return statement missing"),
        (lambda x: {"x": x}, "got a dict; return a tuple"),
        (lambda x: [[1], [1, 2]], "got a list that is not rectangular"),
        (lambda x: object(), "of Python objects"),
        (lambda x: (x, x), r"gave 2 value\(s\) for 1 output column"),
        (
            lambda x, y: x,
            "missing 1 required positional argument(.*\n)+.*hint: without input_columns, operations are given",
        ),
    ],
)
def test_results_that_are_no_columns(function, message):
    with pytest.raises(ds.TransformError, match=message):
        column(pairs().map(function))


def test_names_of_operations():
    class Callable:
        def __call__(self, x):
            raise ValueError("no")

    def failing(x, y=1):
        raise ValueError("no")

    for operation, name in (
        (Callable(), "Callable"),
        (functools.partial(failing, y=2), "failing"),
        (lambda x: 1 // 0, "<lambda>"),
    ):
        with pytest.raises(ds.TransformError, match=f"operation '{name}' failed"):
            column(numbers(1).map(operation))


@pytest.mark.parametrize("mode", ["REPLACE", "SKIP"])
@pytest.mark.parametrize("keywords", [{}, {"num_parallel_workers": 2}], ids=["inline", "threads"])
def test_error_modes(mode, keywords):
    def picky(x):
        if x in (0, 2, 3):
            raise ValueError("bad sample")
        return x

    ds.config.set_error_samples_mode(ds.ErrorSamplesMode[mode])
    try:
        found = column(numbers(6).map(picky, **keywords))
    finally:
        ds.config.set_error_samples_mode(ds.ErrorSamplesMode.RETURN)
    assert found == ([1, 1, 1, 1, 4, 5] if mode == "REPLACE" else [1, 4, 5])


def test_values_may_be_tensors_images_and_numbers():
    from PIL import Image

    data = numbers(2).map(
        lambda x: (ms.Tensor([1, 2]), Image.new("RGB", (3, 2)), 2.5, "t"), output_columns=list("abcd")
    )
    row = next(data.create_tuple_iterator(output_numpy=True))
    assert [(x.shape, str(x.dtype)) for x in row] == [
        ((2,), "int64"), ((2, 3, 3), "uint8"), ((), "float64"), ((), "<U1")
    ]  # fmt: skip


def test_operations_pass_on_what_they_like():
    data = numbers(2).map([lambda x: ("left", {"key": int(x)}), lambda side, d: d["key"] + len(side)])
    assert column(data) == [4, 5]


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda d: d.map([]), ArgumentValueError, "'operations' got an empty list"),
        (lambda d: d.map([3]), ArgumentTypeError, "'operations' got 3; it takes functions and transforms"),
        (lambda d: d.map(vision.HWC2CHW), ArgumentTypeError, r"got the class HWC2CHW[\s\S]*make one: HWC2CHW"),
        (lambda d: d.map(third, num_parallel_workers=0), ArgumentValueError, "'num_parallel_workers' got 0"),
        (lambda d: d.map(third, num_parallel_workers=1.5), ArgumentTypeError, "'num_parallel_workers' got 1.5"),
        (lambda d: d.map(third, python_multiprocessing=1), ArgumentTypeError, "'python_multiprocessing' got 1"),
        (lambda d: d.map(third, cache=object()), UnsupportedError, "'cache' is not supported"),
        (lambda d: d.map(third, callbacks=[1]), UnsupportedError, "'callbacks' is not supported"),
        (lambda d: d.map(third, ["x", "x"]), ArgumentValueError, "more than once"),
        (lambda d: d.map(third, 3), ArgumentTypeError, "'input_columns' got 3"),
        (lambda d: d.map(third, [""]), ArgumentValueError, "an empty string"),
    ],
)
def test_refusals(wrong, kind, message):
    with pytest.raises(kind, match=message):
        wrong(pairs())


BATCHED = {
    "Rescale": vision.Rescale(0.1, -0.5),
    "Normalize": vision.Normalize([1, 2, 3], [4, 5, 6]),
    "Normalize1": vision.Normalize([1], [4]),
    "HWC2CHW": vision.HWC2CHW(),
    "ToTensor": vision.ToTensor(),
    "ToTensor16": vision.ToTensor(np.float16),
    "HorizontalFlip": vision.HorizontalFlip(),
    "VerticalFlip": vision.VerticalFlip(),
    "TypeCast": transforms.TypeCast("float16"),
    "ToType": vision.ToType(np.int16),
    "Fill": transforms.Fill(3),
    "Mask": transforms.Mask(transforms.Relational.GT, 100),
    "Compose": transforms.Compose([vision.Rescale(0.1, 1), vision.HWC2CHW(), transforms.TypeCast("float64")]),
}


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("shape", [(6, 5, 3), (6, 5, 1), (6, 5)], ids=str)
def test_a_batched_transform_is_the_single_one(name, shape):
    """Whatever says that it works on blocks gives, bit for bit, what it gives sample by sample."""
    operation = BATCHED[name]
    if name == "Normalize" and shape != (6, 5, 3):
        shape = (2, 4, 3)
    images = np.random.RandomState(0).randint(0, 256, (7, *shape)).astype(np.uint8)
    assert operation.batches
    whole = operation.on_batch(images)
    single = np.stack([operation(image) for image in images])
    assert whole.dtype == single.dtype
    assert whole.shape == single.shape
    assert whole.tobytes() == single.tobytes()
    data = ds.NumpySlicesDataset({"image": images}, shuffle=False).map(operation)
    rows = np.concatenate([x for (x,) in data.batch(4).create_tuple_iterator(num_epochs=1, output_numpy=True)])
    assert rows.tobytes() == single.tobytes()
    assert np.stack(column(data)).astype(single.dtype).tobytes() == single.tobytes()


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 2)], ids=str)
def test_one_hot_on_blocks(shape):
    labels = np.random.RandomState(1).randint(0, 5, (6, *shape))
    for operation in (transforms.OneHot(5), transforms.OneHot(5, 0.2)):
        whole, single = operation.on_batch(labels), np.stack([operation(label) for label in labels])
        assert whole.dtype == single.dtype
        assert whole.tolist() == single.tolist()


def test_every_transform_that_says_so_has_a_batched_form():
    batched = {
        name
        for module in (transforms, vision)
        for name in module.__all__
        if isinstance(getattr(module, name), type) and getattr(getattr(module, name), "batches", False) is True
    }
    covered = {type(operation).__name__ for operation in BATCHED.values()} | {"OneHot"}
    assert batched <= covered


def test_blocks_are_computed_at_once():
    class Counting(transforms.TypeCast):
        blocks = 0

        def on_batch(self, block):
            Counting.blocks += 1
            return super().on_batch(block)

    data = ds.NumpySlicesDataset({"a": np.arange(100)}).map(Counting("float32")).batch(50)
    assert sum(len(x) for (x,) in data) == 100
    assert Counting.blocks == 2


def test_changing_the_input_in_place_does_not_reach_the_source():
    source = np.arange(4)

    def spoil(x):
        x[...] = 9
        return x

    data = ds.NumpySlicesDataset({"a": source}, shuffle=False)
    assert column(data.map(spoil)) == [9, 9, 9, 9]
    assert source.tolist() == [0, 1, 2, 3]


def test_threads_are_used_when_asked_for():
    seen = set()
    barrier = threading.Barrier(2, timeout=20)

    def meet(x):
        seen.add(threading.current_thread().name)
        barrier.wait()
        return x

    assert column(numbers(4).map(meet, num_parallel_workers=2)) == [0, 1, 2, 3]
    assert len(seen) == 2
    assert all(name.startswith("mycelia-dataset") for name in seen)


def test_heavy_transforms_get_threads_by_themselves():
    seen = set()

    class Slow(vision.HorizontalFlip):
        batches = False
        heavy = True

        def _array(self, array):
            seen.add(threading.current_thread().name)
            return super()._array(array)

    before = ds.config.get_num_parallel_workers()
    ds.config.set_num_parallel_workers(3)
    try:
        data = ds.NumpySlicesDataset({"a": np.zeros((50, 4, 4))}).map(Slow())
        assert len(column(data)) == 50
    finally:
        ds.config.set_num_parallel_workers(before)
    assert seen
    assert all(name.startswith("mycelia-dataset_") for name in seen)


def test_debug_mode_runs_in_the_calling_thread_and_calls_hooks():
    seen, rows = set(), []

    def where(x):
        seen.add(threading.current_thread())
        return x + 1

    ds.config.set_debug_mode(True, [rows.append])
    try:
        data = numbers(3).map(where, num_parallel_workers=2, python_multiprocessing=True)
        assert column(data) == [1, 2, 3]
    finally:
        ds.config.set_debug_mode(False)
    assert seen == {threading.current_thread()}
    assert [int(row[0]) for row in rows] == [1, 2, 3]
    assert column(numbers(3).map(where)) == [1, 2, 3]
    assert len(rows) == 3
