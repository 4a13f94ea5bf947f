"""CIFAR and image folders."""

from __future__ import annotations

import numpy as np
import pytest
from tests.dataset.reading import column

import mycelia.dataset as ds
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, FileFormatError, UnsupportedError
from mycelia.dataset import vision


def cifar10(folder, rows=3):
    r = np.random.RandomState(0)
    made = {}
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        data = r.randint(0, 256, (rows, 3073)).astype(np.uint8)
        data[:, 0] %= 10
        (folder / f"{name}.bin").write_bytes(data.tobytes())
        made[name] = data
    return made


def test_cifar10(tmp_path):
    made = cifar10(tmp_path)
    data = ds.Cifar10Dataset(tmp_path, "test", shuffle=False)
    assert data.output_shapes() == [[32, 32, 3], []]
    assert [str(t) for t in data.output_types()] == ["uint8", "uint32"]
    first = next(data.create_dict_iterator(output_numpy=True))
    # The planes are red, green, blue, each row by row.
    planes = made["test_batch"][0, 1:].reshape(3, 32, 32)
    assert (first["image"] == np.stack(list(planes), -1)).all()
    assert int(first["label"]) == made["test_batch"][0, 0]
    labels = column(ds.Cifar10Dataset(tmp_path, shuffle=False), "label")
    assert labels == [int(x) for name in made for x in made[name][:, 0]]
    assert ds.Cifar10Dataset(tmp_path, "train").get_dataset_size() == 15
    assert data.num_classes() == 10


def test_cifar100(tmp_path):
    rows = np.random.RandomState(0).randint(0, 20, (4, 3074)).astype(np.uint8)
    (tmp_path / "train.bin").write_bytes(rows.tobytes())
    (tmp_path / "test.bin").write_bytes(rows[:2].tobytes())
    data = ds.Cifar100Dataset(tmp_path, "train", shuffle=False)
    assert data.get_col_names() == ["image", "coarse_label", "fine_label"]
    assert column(data, "coarse_label") == rows[:, 0].tolist()
    assert column(data, "fine_label") == rows[:, 1].tolist()
    assert column(ds.Cifar100Dataset(tmp_path, shuffle=False), "fine_label") == [*rows[:2, 1], *rows[:, 1]]
    assert data.num_classes() == 100
    by_class = ds.Cifar100Dataset(tmp_path, "train", sampler=ds.PKSampler(2, class_column="coarse_label"))
    assert sorted(column(by_class, "coarse_label")) == sorted(2 * list(np.unique(rows[:, 0])))


def test_cifar_files_that_are_wrong(tmp_path):
    cifar10(tmp_path)
    (tmp_path / "test_batch.bin").write_bytes(b"x" * 3072)
    with pytest.raises(FileFormatError, match=r"test_batch.bin' has 3072 bytes, no whole number of rows of 3073"):
        column(ds.Cifar10Dataset(tmp_path, "test"))
    (tmp_path / "data_batch_4.bin").unlink()
    with pytest.raises(ArgumentValueError, match=r"which has no data_batch_4\.bin"):
        ds.Cifar10Dataset(tmp_path, "train")


@pytest.fixture
def folder(tmp_path):
    r = np.random.RandomState(0)
    for name in ("cat", "ant", "bee"):
        (tmp_path / name).mkdir()
        for i in range(2):
            vision.write_png(str(tmp_path / name / f"{i}.png"), r.randint(0, 256, (5 + i, 4, 3)).astype(np.uint8))
    (tmp_path / "cat" / "readme.txt").write_text("no image")
    (tmp_path / "cat" / "more").mkdir()
    vision.write_jpeg(str(tmp_path / "ant" / "2.JPG"), r.randint(0, 256, (8, 8)).astype(np.uint8))
    return tmp_path


def test_folders(folder):
    data = ds.ImageFolderDataset(folder, shuffle=False)
    assert data.get_col_names() == ["image", "label"]
    assert data.get_dataset_size() == 7
    assert data.num_classes() == 3
    assert data.get_class_indexing() == {"ant": 0, "bee": 1, "cat": 2}
    rows = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [int(r["label"]) for r in rows] == [0, 0, 0, 1, 1, 2, 2]
    assert rows[0]["label"].dtype == np.int32
    assert rows[0]["image"].tobytes() == (folder / "ant" / "0.png").read_bytes()
    assert rows[2]["image"].tobytes() == (folder / "ant" / "2.JPG").read_bytes()


@pytest.mark.parametrize("workers", [None, 3])
def test_decoding(folder, workers):
    data = ds.ImageFolderDataset(folder, shuffle=False, decode=True, num_parallel_workers=workers)
    images = [x for x, _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert [i.shape for i in images[:3]] == [(5, 4, 3), (6, 4, 3), (8, 8, 3)]
    assert (images[0] == vision.read_image(str(folder / "ant" / "0.png"))).all()
    mapped = ds.ImageFolderDataset(folder, shuffle=False).map(vision.Decode(), "image")
    for (a, _), b in zip(mapped.create_tuple_iterator(num_epochs=1, output_numpy=True), images, strict=True):
        assert (a == b).all()


def test_chosen_classes_and_endings(folder):
    assert column(ds.ImageFolderDataset(folder, shuffle=False, class_indexing={"cat": 7, "bee": 3}), "label") == [
        3,
        3,
        7,
        7,
    ]
    assert ds.ImageFolderDataset(folder, extensions=[".jpg"]).get_dataset_size() == 1
    assert column(ds.ImageFolderDataset(folder, sampler=ds.PKSampler(1)), "label") == [0, 1, 2]
    assert sorted(column(ds.ImageFolderDataset(folder, num_shards=2, shard_id=0), "label")) != []
    parts = ds.ImageFolderDataset(folder, shuffle=False).split([3, 4], randomize=False)
    assert [column(p, "label") for p in parts] == [[0, 0, 0], [1, 1, 2, 2]]


@pytest.mark.parametrize(
    ("keywords", "kind", "message"),
    [
        ({"extensions": [".gif"]}, ArgumentValueError, r"have no files ending in \.gif"),
        (
            {"class_indexing": {"dog": 1}},
            ArgumentValueError,
            "'class_indexing' got 'dog'; it takes one of ant, bee, cat",
        ),
        ({"class_indexing": ["cat"]}, ArgumentTypeError, "a dict from name to label"),
        ({"class_indexing": {"cat": -1}}, ArgumentValueError, "'class_indexing' got -1"),
        ({"decode": 1}, ArgumentTypeError, "'decode' got 1"),
        ({"decrypt": len}, UnsupportedError, "'decrypt' is not supported"),
        ({"cache": object()}, UnsupportedError, "'cache' is not supported"),
    ],
)
def test_folder_refusals(folder, keywords, kind, message):
    with pytest.raises(kind, match=message):
        ds.ImageFolderDataset(folder, **keywords)


def test_a_directory_without_folders(folder):
    with pytest.raises(ArgumentValueError, match="which has no folders; it takes a folder for each class"):
        ds.ImageFolderDataset(folder / "ant")


def test_a_file_that_is_no_image(folder):
    (folder / "bee" / "0.png").write_bytes(b"not an image")
    with pytest.raises(
        ds.TransformError, match=r"reading '.*bee.0\.png' failed on sample 3: FileFormatError: .*12 bytes are no image"
    ):
        column(ds.ImageFolderDataset(folder, shuffle=False, decode=True))
    data = ds.ImageFolderDataset(folder, shuffle=False).map(vision.Decode(), "image")
    with pytest.raises(ds.TransformError, match="operation 'Decode' failed on column 'image' of sample 3"):
        column(data)
