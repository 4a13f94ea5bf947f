"""MNIST: the idx format, its errors, the columns; the fast path over a whole set."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest
from tests.dataset.reading import column

import mycelia.dataset as ds
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, FileFormatError
from mycelia.dataset import transforms, vision
from mycelia.dataset.mnist import read_idx


def idx(array, magic=None):
    head = struct.pack(f">I{array.ndim}I", magic or 0x0800 + array.ndim, *array.shape)
    return head + array.astype(np.uint8).tobytes()


def written(folder, train=6, test=4, compressed=False, **replaced):
    """The four files, with random images; ``replaced`` gives the bytes of some of them."""
    r = np.random.RandomState(0)
    made = {}
    for part, count in (("train", train), ("t10k", test)):
        images, labels = r.randint(0, 256, (count, 28, 28)), np.arange(count) % 10
        made[part] = images, labels
        for name, data in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
            raw = replaced.get(name.replace("-", "_"), idx(data))
            path = folder / (name + ".gz" if compressed else name)
            path.write_bytes(gzip.compress(raw) if compressed else raw)
    return made


@pytest.mark.parametrize("compressed", [False, True])
def test_rows(tmp_path, compressed):
    made = written(tmp_path, compressed=compressed)
    data = ds.MnistDataset(tmp_path, "train", shuffle=False)
    assert data.get_col_names() == ["image", "label"]
    assert data.output_shapes() == [[28, 28, 1], []]
    assert [str(t) for t in data.output_types()] == ["uint8", "uint32"]
    rows = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert len(rows) == data.get_dataset_size() == 6
    assert (np.stack([r["image"][..., 0] for r in rows]) == made["train"][0]).all()
    assert [int(r["label"]) for r in rows] == made["train"][1].tolist()
    assert data.num_classes() == 10


def test_usage(tmp_path):
    written(tmp_path)
    sizes = {usage: ds.MnistDataset(tmp_path, usage).get_dataset_size() for usage in ("train", "test", "all", None)}
    assert sizes == {"train": 6, "test": 4, "all": 10, None: 10}
    assert column(ds.MnistDataset(tmp_path, shuffle=False), "label") == [0, 1, 2, 3, 0, 1, 2, 3, 4, 5]


def test_only_what_the_usage_needs(tmp_path):
    written(tmp_path)
    (tmp_path / "t10k-images-idx3-ubyte").unlink()
    assert ds.MnistDataset(tmp_path, "train").get_dataset_size() == 6
    with pytest.raises(ArgumentValueError, match=r"no t10k-images-idx3-ubyte \(nor t10k-images-idx3-ubyte\.gz\)"):
        ds.MnistDataset(tmp_path, "test")


def test_a_directory_with_one_part(tmp_path):
    """Without a usage, a directory may hold the training or the test files alone."""
    written(tmp_path)
    for kind in ("images-idx3", "labels-idx1"):
        (tmp_path / f"t10k-{kind}-ubyte").unlink()
    assert ds.MnistDataset(tmp_path).get_dataset_size() == 6
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(ArgumentValueError, match="which has no train-labels-idx1-ubyte"):
        ds.MnistDataset(tmp_path)
    (tmp_path / "train-images-idx3-ubyte").unlink()
    with pytest.raises(ArgumentValueError, match="which has no t10k-images-idx3-ubyte"):
        ds.MnistDataset(tmp_path)


def test_plain_files_come_before_compressed_ones(tmp_path):
    written(tmp_path, train=3, compressed=True)
    written(tmp_path, train=5)
    assert ds.MnistDataset(tmp_path, "train").get_dataset_size() == 5


def test_arguments(tmp_path):
    written(tmp_path)
    with pytest.raises(ArgumentValueError, match=r"'dataset_dir' got .*no.where', a path that does not exist"):
        ds.MnistDataset(tmp_path / "no.where")
    with pytest.raises(ArgumentValueError, match="ubyte', a file; it takes the path of an existing directory"):
        ds.MnistDataset(tmp_path / "train-labels-idx1-ubyte")
    with pytest.raises(ArgumentTypeError, match="'dataset_dir' got 3"):
        ds.MnistDataset(3)
    with pytest.raises(ArgumentValueError, match="'usage' got 'tst'; it takes one of train, test, all"):
        ds.MnistDataset(tmp_path, "tst")
    with pytest.raises(ArgumentTypeError, match="'usage' got 1"):
        ds.MnistDataset(tmp_path, 1)


IMAGES = np.zeros((6, 28, 28))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"train_images_idx3_ubyte": idx(IMAGES)[:-1]}, "is truncated: 4719 bytes, 4720 for the shape .6, 28, 28."),
        ({"train_images_idx3_ubyte": idx(IMAGES) + b"x"}, "is longer than it says: 4721 bytes, 4720"),
        ({"train_images_idx3_ubyte": b"\0\0"}, "is truncated: 2 bytes, its head takes 16"),
        ({"train_images_idx3_ubyte": idx(IMAGES, 0x0801)}, "starts with 0x00000801; .* 3 axes start with 0x00000803"),
        ({"train_labels_idx1_ubyte": idx(np.zeros(6), 0x0D01)}, "starts with 0x00000d01"),
        ({"train_labels_idx1_ubyte": idx(np.zeros(5))}, "has 6 images, .* has 5 labels"),
        ({"train_labels_idx1_ubyte": b""}, "is truncated: 0 bytes"),
    ],
)
def test_files_that_are_wrong(tmp_path, compressed, replaced, message):
    written(tmp_path, compressed=compressed, **replaced)
    data = ds.MnistDataset(tmp_path, "train")
    with pytest.raises(FileFormatError, match=message):
        column(data)
    with pytest.raises(FileFormatError, match=message):
        data.get_dataset_size()


def test_a_truncated_gzip_file(tmp_path):
    written(tmp_path, compressed=True)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FileFormatError, match="is truncated or no gzip file"):
        column(ds.MnistDataset(tmp_path, "train"))
    path.write_bytes(b"no gzip at all")
    with pytest.raises(FileFormatError, match="is truncated or no gzip file"):
        column(ds.MnistDataset(tmp_path, "train"))


def test_read_idx_is_what_was_written(tmp_path):
    array = np.random.RandomState(1).randint(0, 256, (3, 4, 5)).astype(np.uint8)
    path = tmp_path / "x"
    path.write_bytes(idx(array))
    assert (read_idx(str(path), 3) == array).all()


def test_classes(tmp_path):
    written(tmp_path, train=40)
    labels = column(ds.MnistDataset(tmp_path, "train", sampler=ds.PKSampler(3)), "label")
    assert labels == [d for d in range(10) for _ in range(3)]
    picked = column(ds.MnistDataset(tmp_path, "train", sampler=ds.PKSampler(2, 4, shuffle=True)), "label")
    assert sorted(picked) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert picked[::2] == picked[1::2]
    assert len(column(ds.MnistDataset(tmp_path, "train", sampler=ds.PKSampler(9, num_samples=5)), "label")) == 5
    assert ds.MnistDataset(tmp_path, "train", sampler=ds.PKSampler(7)).get_dataset_size() == 70
    with pytest.raises(ArgumentValueError, match="'num_class' got 20; it takes at most 10"):
        column(ds.MnistDataset(tmp_path, "train", sampler=ds.PKSampler(1, 20)))
    with pytest.raises(ArgumentValueError, match="'class_column' got 'kind'"):
        column(ds.MnistDataset(tmp_path, "train", sampler=ds.PKSampler(1, class_column="kind")))
    split = ds.MnistDataset(tmp_path, "train", shuffle=False).split([0.5, 0.5])
    assert [len(column(part)) for part in split] == [20, 20]


def test_relatives(tmp_path):
    written(tmp_path)
    assert ds.FashionMnistDataset(tmp_path, "test").get_dataset_size() == 4
    assert ds.KMnistDataset(tmp_path, "train").get_dataset_size() == 6
    with pytest.raises(ArgumentValueError, match="a directory with the Kuzushiji-MNIST files"):
        ds.KMnistDataset(tmp_path.parent, "train")


def test_the_usual_pipeline(tmp_path):
    made = written(tmp_path, train=10)
    data = ds.MnistDataset(tmp_path, "train", shuffle=False)
    data = data.map([vision.Rescale(1 / 255, 0), vision.Normalize((0.1307,), (0.3081,)), vision.HWC2CHW()], "image")
    data = data.map(transforms.TypeCast("int32"), "label").batch(4)
    batches = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [b["image"].shape for b in batches] == [(4, 1, 28, 28), (4, 1, 28, 28), (2, 1, 28, 28)]
    wanted = (made["train"][0] / 255 - 0.1307) / 0.3081
    np.testing.assert_allclose(np.concatenate([b["image"][:, 0] for b in batches]), wanted, rtol=2e-6, atol=2e-6)
    assert batches[0]["image"].dtype == np.float32
    assert batches[0]["image"].flags.c_contiguous
    assert batches[0]["label"].dtype == np.int32


def test_a_whole_set_takes_seconds(tmp_path):
    """60,000 images go by blocks; row by row they would take a hundred times as many calls."""
    written(tmp_path, train=60000, test=1)
    calls = []

    class Watched(vision.Rescale):
        def on_batch(self, block):
            calls.append(len(block))
            return super().on_batch(block)

    data = ds.MnistDataset(tmp_path, "train").map([Watched(1 / 255, 0), vision.HWC2CHW()], "image").batch(64)
    rows = sum(len(labels) for _, labels in data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert rows == 60000
    assert len(calls) == 938
    assert max(calls) == 64
