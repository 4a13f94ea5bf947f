"""Flattening and rebuilding nested containers."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, strategies as st

from mycelia.core import tree

Pair = namedtuple("Pair", ["first", "second"])


@dataclass
class Box:
    width: Any
    height: Any


NESTS = st.recursive(
    st.integers() | st.none() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Pair, inner, inner)
        | st.builds(Box, inner, inner)
    ),
    max_leaves=12,
)


@given(NESTS)
def test_round_trip(nest):
    leaves, treedef = tree.flatten(nest)
    assert tree.unflatten(treedef, leaves) == nest
    assert len(leaves) == treedef.num_leaves


@given(NESTS)
def test_structure_is_a_key(nest):
    _, first = tree.flatten(nest)
    _, second = tree.flatten(tree.map_leaves(lambda x: 0, nest))
    assert first == second
    assert hash(first) == hash(second)


def test_kinds_are_told_apart():
    kinds = [(1, 2), [1, 2], {"first": 1, "second": 2}, Pair(1, 2), OrderedDict(first=1, second=2)]
    assert len({tree.flatten(k)[1] for k in kinds}) == len(kinds)


def test_ordered_dict_keeps_its_type_and_order():
    nest = OrderedDict(b=1, a=2)
    leaves, treedef = tree.flatten(nest)
    assert leaves == [1, 2]
    assert type(tree.unflatten(treedef, leaves)) is OrderedDict


def test_wrong_number_of_leaves():
    _, treedef = tree.flatten((1, 2))
    with pytest.raises(ValueError, match="takes 2 leaves, got 1"):
        tree.unflatten(treedef, [1])
