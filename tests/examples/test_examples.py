"""The programs of ``examples/`` run as a user runs them."""

from __future__ import annotations

import gzip
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from mycelia.demo import digits

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
ROWS = 1280


@pytest.fixture
def folder(tmp_path):
    """``MNIST_Data/train`` with the first rows of the bundled digits."""
    train = tmp_path / "MNIST_Data" / "train"
    train.mkdir(parents=True)
    for name, row in (("train-images-idx3-ubyte", 784), ("train-labels-idx1-ubyte", 1)):
        data = gzip.decompress((Path(digits.folder()) / f"{name}.gz").read_bytes())
        head = 16 if row > 1 else 8
        cut = data[:4] + struct.pack(">I", ROWS) + data[8 : head + ROWS * row]
        (train / name).write_bytes(cut)
    return tmp_path


@pytest.mark.parametrize("mode", ["pynative", "graph"])
def test_first_network(folder, mode):
    done = subprocess.run(
        [sys.executable, "-m", "mycelia.cli", "run", str(EXAMPLES / "first_network.py"), str(folder), mode],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    losses = [float(x) for x in re.findall(r"loss is ([\d.e+-]+)", done.stdout)]
    assert losses, done.stdout
    assert losses[-1] < 1.0
