"""Samplers: what the recorded cases do not say: distributions, epochs, children, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tests.dataset.reading import column, epochs, numbers

import mycelia.dataset as ds
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError


def test_random_sampler_is_uniform():
    data = numbers(4, sampler=ds.RandomSampler())
    places = np.array(epochs(data, 600))
    for place in range(4):
        assert stats.chisquare(np.bincount(places[:, place], minlength=4)).pvalue > 1e-3


def test_replacement_draws_from_all_rows():
    drawn = column(numbers(5, sampler=ds.RandomSampler(True, 3000)))
    assert len(drawn) == 3000
    assert stats.chisquare(np.bincount(drawn, minlength=5)).pvalue > 1e-3


def test_weights():
    weights = np.array([1.0, 3.0, 0.0, 6.0])
    drawn = np.bincount(column(numbers(4, sampler=ds.WeightedRandomSampler(weights, 4000))), minlength=4)
    assert drawn[2] == 0
    assert stats.chisquare(drawn[[0, 1, 3]], 4000 * weights[[0, 1, 3]] / 10).pvalue > 1e-3


def test_weights_without_replacement_take_the_first_by_weight():
    data = numbers(3, sampler=ds.WeightedRandomSampler([1.0, 2.0, 7.0], 1, replacement=False))
    first = np.bincount([epoch[0] for epoch in epochs(data, 2000)], minlength=3)
    assert stats.chisquare(first, 2000 * np.array([0.1, 0.2, 0.7])).pvalue > 1e-3


def test_more_draws_than_positive_weights():
    with pytest.raises(ArgumentValueError, match=r"'num_samples' got 3; it takes at most 2"):
        column(numbers(4, sampler=ds.WeightedRandomSampler([1, 0, 1], 3, replacement=False)))


@pytest.mark.parametrize("weights", [[1, -1], [0, 0], []])
def test_weights_that_are_none(weights):
    with pytest.raises(ArgumentValueError, match="'weights'"):
        ds.WeightedRandomSampler(weights)


def test_distributed_epochs_cover_all_rows_each_time():
    shards = [epochs(numbers(10, sampler=ds.DistributedSampler(2, i)), 3) for i in range(2)]
    for epoch in range(3):
        assert sorted(shards[0][epoch] + shards[1][epoch]) == list(range(10))
    assert shards[0][0] != shards[0][1]


def test_set_offset():
    sampler = ds.DistributedSampler(3, 0, shuffle=False)
    sampler.set_offset(1)
    assert column(numbers(7, sampler=sampler)) == [2, 5]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ds.DistributedSampler(0, 0), "'num_shards' got 0; it takes an int of at least 1"),
        (lambda: ds.DistributedSampler(3, 3), "'shard_id' got 3; it takes an int from 0 to 2"),
        (lambda: ds.DistributedSampler(3, 0, offset=-2), "'offset' got -2"),
        (lambda: ds.SequentialSampler(-1), "'start_index' got -1"),
        (lambda: ds.RandomSampler(num_samples=-1), "'num_samples' got -1"),
        (lambda: ds.PKSampler(0), "'num_val' got 0"),
    ],
)
def test_values_out_of_range(make, message):
    with pytest.raises(ArgumentValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ds.RandomSampler("yes"), "'replacement' got 'yes'; it takes True or False"),
        (lambda: ds.RandomSampler(shuffle=True), "'shuffle' got True; it takes a Shuffle"),
        (lambda: ds.SequentialSampler(1.5), "'start_index' got 1.5 .float."),
        (lambda: ds.SubsetSampler(["a"]), "'indices' got 'a' among them"),
        (lambda: ds.SubsetSampler("ab"), "'indices' got 'ab'"),
        (lambda: ds.PKSampler(1, class_column=3), "'class_column' got 3"),
    ],
)
def test_wrong_types(make, message):
    with pytest.raises(ArgumentTypeError, match=message):
        make()


def test_children():
    top = ds.SequentialSampler(1)
    top.add_child(ds.DistributedSampler(2, 1, shuffle=False))
    assert column(numbers(8, sampler=top)) == [3, 5, 7]
    assert top.get_child().num_shards == 2
    assert top.is_sharded()
    assert not top.is_shuffled()
    with pytest.raises(ArgumentValueError, match="has a child already"):
        top.add_child([1])


def test_num_samples_of_sampler_and_child():
    top = ds.SubsetSampler([0, 1, 2], num_samples=2)
    top.add_child(ds.SequentialSampler(num_samples=5))
    assert top.get_num_samples() == 2
    assert column(numbers(8, sampler=top)) == [0, 1]


def test_a_sampler_of_the_users_is_asked_each_epoch():
    class Turning(ds.Sampler):
        def __init__(self):
            super().__init__()
            self.turn = 0

        def __iter__(self):
            self.turn += 1
            return iter([self.turn % self.dataset_size, 0])

    assert epochs(numbers(3, sampler=Turning()), 3) == [[1, 0], [2, 0], [0, 0]]


def test_an_iterator_of_indices_is_kept():
    assert epochs(numbers(5, sampler=iter([3, 1])), 2) == [[3, 1], [3, 1]]


def test_a_sampler_without_iter():
    with pytest.raises(UnsupportedError, match="overrides __iter__"):
        column(numbers(3, sampler=ds.Sampler()))


def test_an_index_beyond_the_rows():
    with pytest.raises(ArgumentValueError, match="got 7 among them; it takes row numbers from 0 to 2"):
        column(numbers(3, sampler=[7]))


def test_add_and_use_sampler():
    data = numbers(6, sampler=[5, 4, 3])
    data.add_sampler(ds.SubsetSampler([2, 0]))
    assert column(data) == [3, 5]
    data.use_sampler(None)
    assert column(data) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ArgumentTypeError, match="'sampler' got 3"):
        data.use_sampler(3)


def test_what_excludes_a_sampler():
    with pytest.raises(ArgumentValueError, match="a sampler together with num_samples, shuffle"):
        numbers(3, sampler=[1], num_samples=2, shuffle=True)


@pytest.mark.parametrize(("given", "missing"), [({"num_shards": 2}, "shard_id"), ({"shard_id": 0}, "num_shards")])
def test_half_a_sharding(given, missing):
    with pytest.raises(ArgumentValueError, match=f"'{missing}' got None"):
        numbers(3, **given)
