"""Constructors and ``construct`` take what MindSpore's take: names, order and defaults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.oracles.nn_signatures import describe

from mycelia import nn

RECORDED = json.loads((Path(__file__).parents[1] / "oracles" / "nn_signatures.json").read_text(encoding="utf-8"))[
    "layers"
]
# Layers that second-order optimizers of one vendor's chips bring, and Cells of sparse tensors.
NOT_HERE = {"Conv2dThor", "DenseThor", "EmbeddingThor", "EmbeddingLookupThor", "SparseToDense"}
# Ours say what theirs hide behind *args and **kwargs.
HIDDEN = {"RNN", "GRU", "LSTM", "CellList", "CellDict"}
# A default that differs: None asks for the value given to the constructor.
OTHER_DEFAULT = {("TripletMarginLoss", "construct", "margin")}


def test_nothing_is_missing():
    assert {name for name in RECORDED if not hasattr(nn, name)} == NOT_HERE


# A base class whose subclasses say what they take.
HIDDEN |= {"LossBase"}


@pytest.mark.parametrize("name", sorted(set(RECORDED) - NOT_HERE - HIDDEN))
@pytest.mark.parametrize("part", ["init", "construct"])
def test_signature(name, part):
    ours, theirs = describe(getattr(nn, name))[part], RECORDED[name][part]
    assert [row[:2] for row in ours] == [row[:2] for row in theirs]
    for (argument, _, mine), (_, _, wanted) in zip(ours, theirs, strict=True):
        if (name, part, argument) not in OTHER_DEFAULT:
            assert (mine and mine.replace("mycelia.", "")) == wanted, argument
