"""The digits that come with the demo, and the script that draws them."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from mycelia.demo.digits import folder

ROOT = Path(__file__).resolve().parents[2]
FILES = {"train": 6000, "t10k": 1000}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_digits", ROOT / "scripts" / "make_digits.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def idx(path, dimensions):
    """An idx file read apart from the script that wrote it."""
    data = gzip.decompress(path.read_bytes())
    assert int.from_bytes(data[:4], "big") == 0x800 + dimensions
    shape = np.frombuffer(data, ">u4", dimensions, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


@pytest.mark.parametrize(("split", "count"), FILES.items())
def test_counts_and_balance(split, count):
    images = idx(folder() / f"{split}-images-idx3-ubyte.gz", 3)
    labels = idx(folder() / f"{split}-labels-idx1-ubyte.gz", 1)
    assert images.shape == (count, 28, 28)
    assert np.bincount(labels).tolist() == [count // 10] * 10
    assert len(np.unique(images.reshape(count, -1), axis=0)) == count
    # Shuffled: sorted labels would change ten times, shuffled ones nine times in ten.
    assert abs(np.mean(labels[1:] != labels[:-1]) - 0.9) < 0.02


def test_labels_belong_to_their_images():
    """The nearest mean image tells most digits, as it does on the whole of MNIST (82 %)."""
    train = idx(folder() / "train-images-idx3-ubyte.gz", 3).reshape(6000, -1) / 255
    labels = idx(folder() / "train-labels-idx1-ubyte.gz", 1)
    means = np.stack([train[labels == digit].mean(0) for digit in range(10)])
    test = idx(folder() / "t10k-images-idx3-ubyte.gz", 3).reshape(1000, -1) / 255
    nearest = ((test[:, None] - means) ** 2).sum(-1).argmin(-1)
    assert np.mean(nearest == idx(folder() / "t10k-labels-idx1-ubyte.gz", 1)) > 0.78


def test_digests_are_those_of_the_provenance():
    results = (folder() / "PROVENANCE.md").read_text().split("## SHA-256 of the results")[1]
    recorded = {name: pair for name, *pair in re.findall(r"\| (\S+\.gz) \| `(\w{64})` \| `(\w{64})` \|", results)}
    assert sorted(recorded) == sorted(file.name for file in folder().glob("*.gz"))
    for name, (zipped, contents) in recorded.items():
        data = (folder() / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == zipped, name
        assert hashlib.sha256(gzip.decompress(data)).hexdigest() == contents, name


def write_source(script, path, seed=0, label_count=400):
    generator = np.random.default_rng(seed)
    for split in FILES:
        labels = np.arange(400) % 10
        images = generator.integers(0, 256, (400, 28, 28))
        images[:, 0, 0] = labels
        (path / f"{split}-images-idx3-ubyte.gz").write_bytes(gzip.compress(script.idx_bytes(images)))
        (path / f"{split}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(script.idx_bytes(labels[:label_count])))


def test_the_script_draws_pairs_evenly_and_repeatably(script, tmp_path):
    write_source(script, tmp_path)
    for out in ("a", "b"):
        script.make(tmp_path, tmp_path / out, {"train": 30, "t10k": 5})
    for split, count in (("train", 300), ("t10k", 50)):
        images = idx(tmp_path / "a" / f"{split}-images-idx3-ubyte.gz", 3)
        labels = idx(tmp_path / "a" / f"{split}-labels-idx1-ubyte.gz", 1)
        assert images.shape == (count, 28, 28)
        assert np.bincount(labels).tolist() == [count // 10] * 10
        np.testing.assert_array_equal(images[:, 0, 0], labels)
    names = sorted(file.name for file in (tmp_path / "a").iterdir())
    assert len(names) == 5
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)


def test_the_script_refuses_what_is_not_mnist(script, tmp_path, capsys):
    write_source(script, tmp_path, label_count=399)
    assert script.main([str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert "do not belong together" in capsys.readouterr().err
    write_source(script, tmp_path)
    assert script.main([str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert "there are 40 images of 0; 600 are to be drawn" in capsys.readouterr().err
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(b"text"))
    assert script.main([str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert "is not an idx file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
