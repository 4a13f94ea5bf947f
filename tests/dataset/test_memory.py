"""Memory of batches: filled by workers, shared with tensors, and never with anybody else."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia.dataset as ds
from mycelia.core.errors import ShapeError
from mycelia.dataset.memory import ALIGNMENT, Blocks, aligned_empty


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 5, 7)])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
def test_aligned_empty(shape, dtype):
    made = [aligned_empty(shape, np.dtype(dtype)) for _ in range(5)]
    for array in made:
        assert array.shape == shape
        assert array.dtype == dtype
        assert array.ctypes.data % ALIGNMENT == 0 or not array.size
        assert array.flags.writeable


def test_blocks_learn_the_form_from_the_first_batch():
    blocks = Blocks(2)
    row = np.ones((20, 20), np.float32)
    assert blocks.place(0) is None
    assert blocks.collect(0, (row, row)) is None
    places = [blocks.place(2), blocks.place(3)]
    places[0][...] = 5
    made = blocks.collect(1, (places[0], row))
    np.testing.assert_array_equal(made[:, 0, 0], [5, 1])
    assert np.shares_memory(made, places[0])


def test_blocks_leave_other_forms_alone():
    blocks = Blocks(2)
    row = np.ones((20, 20), np.float32)
    blocks.collect(0, (row, row))
    blocks.place(2)
    assert blocks.collect(1, (row.astype(np.float64), row.astype(np.float64))) is None
    assert blocks.place(4) is None


def grown(x):
    return np.full((16, 16), x, np.float32)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("drop", [False, True])
def test_batches_of_mapped_rows(workers, drop):
    data = ds.NumpySlicesDataset({"x": np.arange(50), "y": np.arange(50)}, shuffle=False)
    data = data.map(grown, "x", num_parallel_workers=workers).batch(8, drop)
    for _ in range(2):
        rows = list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
        assert [len(x) for x, _ in rows] == [8] * 6 + [2] * (not drop)
        for x, y in rows:
            np.testing.assert_array_equal(x, np.broadcast_to(y[:, None, None], (len(y), 16, 16)))


def test_rows_of_two_shapes_are_refused_in_a_later_batch():
    def row(x):
        return np.zeros((20, 20 if x != 21 else 19), np.float32)

    data = ds.NumpySlicesDataset({"x": np.arange(40)}, shuffle=False).map(row, "x", num_parallel_workers=2).batch(8)
    with pytest.raises(ShapeError, match=r"row 16 has \(20, 20\), row 21 has \(20, 19\)"):
        list(data.create_tuple_iterator(num_epochs=1))


def test_batches_whose_shapes_differ():
    def row(x):
        return np.full((20, 20 + int(x) // 8), x, np.float32)

    data = ds.NumpySlicesDataset({"x": np.arange(40)}, shuffle=False).map(row, "x", num_parallel_workers=2).batch(8)
    rows = [x for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert [x.shape for x in rows] == [(8, 20, 20 + i) for i in range(5)]
    np.testing.assert_array_equal(np.concatenate([x[:, 0, 0] for x in rows]), np.arange(40))


@pytest.mark.parametrize("mode", [ds.config.ErrorSamplesMode.SKIP, ds.config.ErrorSamplesMode.REPLACE])
def test_samples_that_fail(mode):
    def row(x):
        if x % 7 == 3:
            raise ValueError("no")
        return grown(x)

    before = ds.config.get_error_samples_mode()
    ds.config.set_error_samples_mode(mode)
    try:
        data = ds.NumpySlicesDataset({"x": np.arange(40)}, shuffle=False).map(row, "x", num_parallel_workers=2).batch(8)
        made = np.concatenate([x[:, 0, 0] for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)])
    finally:
        ds.config.set_error_samples_mode(before)
    good = [x if x % 7 != 3 else x - 1 for x in range(40) if mode is not ds.config.ErrorSamplesMode.SKIP or x % 7 != 3]
    np.testing.assert_array_equal(made, good)


def test_tensors_of_batches_are_their_own():
    data = ds.NumpySlicesDataset({"x": np.zeros((8, 64, 64), np.float32)}, shuffle=False).map(np.cos, "x").batch(4)
    (array,), (tensor,) = next(data.create_tuple_iterator(output_numpy=True)), next(data.create_tuple_iterator())
    np.testing.assert_array_equal(tensor.asnumpy(), array)
    rows = data.create_tuple_iterator(num_epochs=1)
    first, second = (row[0] for row in rows)
    before = first.asnumpy()
    second[0] = 7.0
    np.testing.assert_array_equal(first.asnumpy(), before)


def test_tensors_of_the_users_arrays_do_not():
    held = np.zeros((64, 64), np.float32)

    def same():
        for _ in range(3):
            yield held

    tensors = [x for (x,) in ds.GeneratorDataset(same, ["x"]).create_tuple_iterator(num_epochs=1)]
    held[...] = 1
    assert all(float(t.sum()) == 0 for t in tensors)
