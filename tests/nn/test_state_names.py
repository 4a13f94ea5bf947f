"""Parameter names, shapes, order and texts of layers are those recorded from MindSpore; checkpoints rely on it."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path

import pytest
from tests.oracles.nn_state_names import EXPRESSIONS, describe

from mycelia import Tensor, nn

RECORDED = json.loads((Path(__file__).parents[1] / "oracles" / "nn_state_names.json").read_text(encoding="utf-8"))
SCOPE = {**vars(nn), "nn": nn, "Tensor": Tensor, "OrderedDict": OrderedDict}
# Texts that differ on purpose: theirs show internal Cells, say 1 - p for p, or nothing where we say the options.
OTHER_TEXT = ("RNN(", "GRU(", "LSTM(", "Dropout1d", "Dropout2d", "Dropout3d", "MSSSIM", "FocalLoss")


def made(text):
    return eval(text, dict(SCOPE))


def test_every_expression_is_recorded():
    assert set(EXPRESSIONS) == set(RECORDED["layers"])


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_parameters(text):
    ours, theirs = describe(made(text)), RECORDED["layers"][text]
    assert ours["class"] == theirs["class"]
    assert ours["parameters"] == theirs["parameters"]


@pytest.mark.parametrize(
    "text", [t for t in EXPRESSIONS if RECORDED["layers"][t]["text"] is not None and not t.startswith(OTHER_TEXT)]
)
def test_text(text):
    theirs = RECORDED["layers"][text]["text"].replace("gammaParameter", "gamma=Parameter")  # a slip of theirs
    assert repr(made(text)) == theirs
