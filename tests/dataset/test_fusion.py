"""Fused steps give the same bits, and draw the same numbers, as the transforms one by one."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
import mycelia.dataset as ds
from mycelia.dataset import seeds, transforms as T, vision as V
from mycelia.dataset.fusion import Step, fused
from mycelia.dataset.mapping import MapTask

MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]

CHAINS = {
    "usual": [V.RandomHorizontalFlip(0.5), V.Normalize(MEAN, STD), V.HWC2CHW()],
    "both mirrors": [V.RandomVerticalFlip(0.5), V.RandomHorizontalFlip(0.5), V.Normalize(MEAN, STD)],
    "always": [V.HorizontalFlip(), V.VerticalFlip(), V.ToTensor()],
    "channels first": [V.HWC2CHW(), V.Normalize(MEAN, STD, is_hwc=False)],
    "scaled": [V.Rescale(1 / 255, -0.5), V.HWC2CHW(), T.TypeCast(ms.float64)],
    "tensor": [V.ToTensor(), V.Normalize([0.5], [0.25], is_hwc=False)],
    "bytes": [V.RandomHorizontalFlip(0.5), V.HWC2CHW()],
    "cast": [T.TypeCast(ms.int32)],
    "half": [V.Rescale(0.1, 0.0), T.TypeCast(ms.float16)],
}


def one_by_one(operations, image, key, sample):
    with seeds.of_sample(seeds.Stream(key), sample):
        value = image
        for operation in operations:
            value = operation(value)
    return value


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("channels", [1, 3])
def test_same_bits(name, channels):
    operations = CHAINS[name]
    if channels == 1:
        operations = [V.Normalize([33.3], [77.7], o.is_hwc) if isinstance(o, V.Normalize) else o for o in operations]
    task = MapTask(operations, ["image"], 1)
    draw = np.random.default_rng(3)
    for sample in range(8):
        image = draw.integers(0, 256, (5, 7, channels)).astype(np.uint8)
        wanted = one_by_one(operations, image, 11, sample)
        (made,) = task.run(11, sample, (image,), False)
        assert made.dtype == wanted.dtype
        assert made.shape == wanted.shape
        assert made.tobytes() == wanted.tobytes()


def test_what_is_fused():
    steps = fused([V.Decode(), V.RandomHorizontalFlip(), V.Normalize(MEAN, STD), V.HWC2CHW(), len, T.TypeCast(ms.int8)])
    assert [type(s) is Step for s in steps] == [False, True, False, True]
    assert steps[1].length == 3
    assert fused([V.RandomHorizontalFlip()])[0].__class__ is V.RandomHorizontalFlip


def test_of_ones_own_is_left_alone():
    class Brighter(V.Rescale):
        def _array(self, array):
            return super()._array(array) + array.mean()

    own = Brighter(2.0, 0.0)
    assert fused([own]) == [own]


@pytest.mark.parametrize(
    "image",
    [np.ones((4, 5, 3), np.float32), np.ones((4, 5), np.uint8), np.ones((8, 5, 3), np.uint8)[::2]],
    ids=["floats", "gray", "strided"],
)
def test_other_images_go_one_by_one(image):
    operations = [V.RandomHorizontalFlip(0.5), V.Normalize([10.0], [2.0])]
    for sample in range(4):
        (made,) = MapTask(operations, ["image"], 1).run(5, sample, (image,), False)
        np.testing.assert_array_equal(made, one_by_one(operations, image, 5, sample))


def test_errors_name_the_transform():
    data = ds.NumpySlicesDataset({"image": np.zeros((3, 4, 4, 2), np.uint8)}, shuffle=False)
    data = data.map([V.HorizontalFlip(), V.Normalize(MEAN, STD), V.HWC2CHW()], "image")
    with pytest.raises(ds.TransformError, match=r"'Normalize' \(2 of 3\).*sample 0.*2 channel"):
        next(data.create_tuple_iterator())


@pytest.mark.parametrize("channels", [1, 3])
def test_blocks_give_the_same(channels):
    images = np.random.default_rng(4).integers(0, 256, (10, 6, 5, channels)).astype(np.uint8)
    operations = [V.Rescale(1 / 255, 0.0), V.Normalize([0.13], [0.31]), V.HWC2CHW()]
    data = ds.NumpySlicesDataset({"image": images}, shuffle=False).map(operations, "image").batch(4)
    made = np.concatenate([image for (image,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)])
    wanted = np.stack([one_by_one(operations, image, 0, 0) for image in images])
    assert made.tobytes() == wanted.tobytes()
    assert made.dtype == wanted.dtype
