"""The same seed gives the same samples, whoever makes them; epochs differ."""

from __future__ import annotations

import numpy as np
import pytest
from tests.dataset.reading import column, epochs, numbers

import mycelia as ms
import mycelia.dataset as ds
from mycelia.dataset import seeds, transforms, vision


class Images:
    """Random access to small images."""

    def __getitem__(self, index):
        return np.full((8, 9, 3), index, np.uint8) + np.arange(9, dtype=np.uint8)[:, None], index

    def __len__(self):
        return 12


def augmented(**keywords):
    operations = [
        vision.RandomCrop(6, 1), vision.RandomHorizontalFlip(), vision.RandomColorAdjust(0.5, 0.5, 0.5, 0.2),
        transforms.RandomChoice([vision.RandomRotation(40), vision.RandomVerticalFlip(0.7)]),
    ]  # fmt: skip
    data = ds.GeneratorDataset(Images(), ["image", "label"])
    return data.map(operations, "image", **keywords)


def test_set_seed_starts_sequences_anew():
    data = numbers(20, shuffle=True)
    ms.set_seed(5)
    first = column(data)
    assert column(data) != first
    ms.set_seed(5)
    assert column(data) == first
    ds.config.set_seed(5)
    assert column(data) == first
    ms.set_seed(6)
    assert column(data) != first


def test_a_seed_set_for_all_is_the_seed_of_data_sets():
    ms.set_seed(77)
    assert ds.config.get_seed() == 77
    ds.config.set_seed(78)
    assert ds.config.get_seed() == 78


def test_equal_pipelines_give_equal_samples():
    assert column(numbers(20, shuffle=True)) == column(numbers(20, shuffle=True))


def test_epochs_of_one_iterator_are_those_of_several_iterators():
    one = epochs(numbers(10, shuffle=True), 3)
    data = numbers(10, shuffle=True)
    assert one == [column(data) for _ in range(3)]
    assert len({tuple(epoch) for epoch in one}) == 3
    assert all(sorted(epoch) == list(range(10)) for epoch in one)


def test_repeat_shuffles_each_pass():
    values = column(numbers(10).shuffle(10).repeat(3))
    passes = [values[i : i + 10] for i in (0, 10, 20)]
    assert len({tuple(p) for p in passes}) == 3
    assert all(sorted(p) == list(range(10)) for p in passes)


def test_looking_does_not_advance_the_epochs():
    first = column(numbers(10, shuffle=True))
    data = numbers(10, shuffle=True)
    data.output_shapes(), data.output_types(), data.get_dataset_size()
    assert column(data) == first


def test_what_comes_later_does_not_change_the_order():
    assert column(numbers(10, shuffle=True).map(lambda x: x).batch(1).repeat(1)) == [
        [x] for x in column(numbers(10, shuffle=True))
    ]


@pytest.mark.parametrize(
    "keywords",
    [
        {"num_parallel_workers": 2},
        {"num_parallel_workers": 5},
        {"num_parallel_workers": 2, "python_multiprocessing": True},
        {"num_parallel_workers": 3, "python_multiprocessing": True},
    ],
    ids=str,
)
def test_random_transforms_do_not_depend_on_workers(keywords):
    alone = epochs(augmented(num_parallel_workers=1), 2)
    assert alone[0] != alone[1]
    assert epochs(augmented(**keywords), 2) == alone


def test_debug_mode_gives_the_same():
    alone = column(augmented())
    ds.config.set_debug_mode(True)
    try:
        assert column(augmented()) == alone
    finally:
        ds.config.set_debug_mode(False)


def noisy(x):
    return x + np.random.rand()


def test_numpy_in_worker_processes_is_repeatable():
    def once(workers):
        data = numbers(9).map(transforms.TypeCast("float64"))
        return column(data.map(noisy, num_parallel_workers=workers, python_multiprocessing=True))

    first = once(2)
    ms.set_seed(1234)
    assert once(2) == first
    assert once(3) == first
    assert len({round(x % 1, 12) for x in first}) == 9


def test_a_function_marked_not_random_is_not_seeded():
    state = np.random.get_state()[1].tolist()
    assert column(numbers(3).map(transforms.not_random(lambda x: x + 1))) == [1, 2, 3]
    assert np.random.get_state()[1].tolist() == state


def test_zipped_shuffles_are_independent():
    a, b = ds.NumpySlicesDataset({"a": range(50)}), ds.NumpySlicesDataset({"b": range(50)})
    pairs = [row for row in ds.zip((a, b)).create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert any(int(x) != int(y) for x, y in pairs)


def test_transforms_by_themselves_follow_the_seed():
    flip = vision.RandomHorizontalFlip()
    image = np.arange(6).reshape(2, 3)
    ms.set_seed(3)
    first = [flip(image).tolist() for _ in range(20)]
    assert len({str(x) for x in first}) == 2
    ms.set_seed(3)
    assert [flip(image).tolist() for _ in range(20)] == first


def test_shards_agree_without_a_seed(monkeypatch):
    """Processes that have set no seed have entropies of their own, and still share the rows out."""
    from mycelia.dataset.config import _state

    monkeypatch.setattr(_state, "seed", None)
    found = []
    for shard in range(3):
        monkeypatch.setattr(_state, "entropy", shard)
        found += column(numbers(9, num_shards=3, shard_id=shard, shuffle=True))
    assert sorted(found) == list(range(9))
    assert found != list(range(9))
    orders = []
    for entropy in (1, 2):
        monkeypatch.setattr(_state, "entropy", entropy)
        orders.append(column(numbers(30, shuffle=True)))
    assert orders[0] != orders[1]


def test_streams_are_distinct():
    keys = {seeds.Stream.derive(1, a, b).key for a in range(20) for b in range(20)}
    assert len(keys) == 400
    assert seeds.Stream.derive(2, 0, 0).key not in keys
    draws = set()
    for sample in range(200):
        with seeds.of_sample(seeds.Stream(7), sample):
            draws.add(seeds.sample_random().random())
    assert len(draws) == 200


def test_a_sample_inside_a_sample():
    with seeds.of_sample(seeds.Stream(1), 0):
        first = seeds.sample_random().random()
        with seeds.of_sample(seeds.Stream(2), 0):
            seeds.sample_random().random()
        second = seeds.sample_random().random()
    with seeds.of_sample(seeds.Stream(1), 0):
        assert seeds.sample_random().random() == first
    assert first != second
