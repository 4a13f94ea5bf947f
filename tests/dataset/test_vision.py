"""Transforms of images: random ones, refusals, files, mixing, old names. Values are in test_recorded."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest
from PIL import Image
from scipy import stats

import mycelia as ms
import mycelia.dataset as ds
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    FileFormatError,
    MyceliaError,
    ShapeError,
    UnsupportedError,
)
from mycelia.dataset import transforms, vision as V
from mycelia.dataset.vision.geometry import affine_matrix

RGB = np.random.RandomState(3).randint(0, 256, (12, 16, 3)).astype(np.uint8)
RAMP = np.arange(12 * 16).reshape(12, 16).astype(np.uint8)


def positions(operation, count=400):
    """Where each random cut of RAMP starts; every cut is a window of it."""
    found = []
    for _ in range(count):
        part = np.asarray(operation(RAMP))
        top, left = divmod(int(part[0, 0]), 16)
        assert (part == RAMP[top : top + part.shape[0], left : left + part.shape[1]]).all()
        found.append((top, left))
    return found


@pytest.mark.parametrize("wrap", [lambda op: op, lambda op: lambda x: op(Image.fromarray(x))], ids=["array", "PIL"])
def test_random_crop_is_uniform(wrap):
    found = positions(wrap(V.RandomCrop((10, 13))), 1200)
    counts = np.zeros((3, 4))
    for top, left in found:
        counts[top, left] += 1
    assert stats.chisquare(counts.reshape(-1)).pvalue > 1e-3


def test_random_crop_with_a_border():
    whole = np.pad(RAMP, 2, constant_values=7)
    crop = V.RandomCrop((12, 16), 2, fill_value=7)
    windows = {whole[y : y + 12, x : x + 16].tobytes() for y in range(5) for x in range(5)}
    assert {crop(RAMP).tobytes() for _ in range(300)} == windows
    larger = V.RandomCrop((14, 16), pad_if_needed=True)(RAMP)
    assert larger.shape == (14, 16)
    with pytest.raises(ShapeError, match=r"height 12 and width 16; it takes at least 13 and 16[\s\S]*pad_if_needed"):
        V.RandomCrop((13, 16))(RAMP)


@pytest.mark.parametrize("kind", [V.RandomHorizontalFlip, V.RandomVerticalFlip])
def test_random_flips(kind):
    flip = kind(0.25)
    flipped = sum(not (flip(RAMP) == RAMP).all() for _ in range(2000))
    assert abs(flipped / 2000 - 0.25) < 0.04
    assert (kind(0.0)(RAMP) == RAMP).all()


def test_random_resized_crop_parts():
    from mycelia.dataset.vision.resizing import random_part

    areas, shapes = [], []
    for _ in range(2000):
        top, left, height, width = random_part(100, 120, (0.2, 0.6), (0.5, 2.0), 10)
        assert 0 <= top <= 100 - height
        assert 0 <= left <= 120 - width
        areas.append(height * width / 12000)
        shapes.append(width / height)
    assert 0.19 < min(areas) < 0.22
    assert 0.57 < max(areas) < 0.61
    assert 0.45 < min(shapes) < 0.56
    assert 1.8 < max(shapes) < 2.2
    # What never fits is the middle: here a square of a strip.
    assert random_part(10, 100, (1.0, 1.0), (1.0, 1.0), 3) == (0, 45, 10, 10)


def test_random_resized_crop_output():
    assert V.RandomResizedCrop((5, 7))(RGB).shape == (5, 7, 3)
    assert V.RandomResizedCrop(5)(Image.fromarray(RGB)).size == (5, 5)
    assert V.RandomResizedCrop(5)(np.stack([RGB, RGB])).shape == (2, 5, 5, 3)
    data = V.encode_png(RGB)
    assert V.RandomCropDecodeResize(6)(data).shape == (6, 6, 3)
    whole = V.RandomCropDecodeResize((12, 16), (1.0, 1.0), (16 / 12, 16 / 12))(data)
    assert (whole == RGB).all()


def test_random_rotation_stays_in_range():
    image = np.zeros((41, 41), np.float32)
    image[20, 21:] = 1
    rotate = V.RandomRotation((20, 60), V.Inter.BILINEAR)
    for _ in range(50):
        turned = rotate(image)
        y, x = np.average(np.mgrid[:41, :41].reshape(2, -1), axis=1, weights=turned.reshape(-1)) - 20
        assert 19 < np.degrees(np.arctan2(-y, x)) < 61


def test_random_erasing():
    image = np.full((3, 30, 40), 9.0)
    erase = V.RandomErasing(1.0, (0.1, 0.2), (0.5, 2.0), (1, 2, 3))
    for _ in range(30):
        made = erase(image)
        gone = made[0] != 9
        ys, xs = np.nonzero(gone)
        assert gone[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1].all()
        assert 0.08 < gone.mean() < 0.22
        assert [set(made[c][gone]) for c in range(3)] == [{1.0}, {2.0}, {3.0}]
    assert (image == 9).all()
    noise = V.RandomErasing(1.0, value="random")(image)
    assert len(np.unique(noise)) > 100
    assert (V.RandomErasing(0.0)(image) == image).all()
    same = image.copy()
    assert V.RandomErasing(1.0, inplace=True)(same) is same


def test_cut_out():
    image = np.full((20, 20, 3), 5, np.uint8)
    sizes = {int((V.CutOut(6)(image) == 0).all(-1).sum()) for _ in range(100)}
    assert max(sizes) == 36
    assert min(sizes) >= 9
    assert (V.CutOut(4, 3, is_hwc=False)(np.full((3, 20, 20), 5)) == 0).any()


def test_color_adjustments_are_drawn():
    gray = np.full((4, 4, 3), 100, np.uint8)
    values = {int(V.RandomColorAdjust(brightness=(0.5, 1.5))(gray)[0, 0, 0]) for _ in range(300)}
    assert 50 <= min(values) < 60
    assert 140 < max(values) <= 150
    assert (V.RandomColorAdjust()(RGB) == RGB).all()
    one = V.RandomColorAdjust(0.2, 0.3, 0.4, 0.1)
    assert one.ranges == {"Brightness": (0.8, 1.2), "Contrast": (0.7, 1.3), "Color": (0.6, 1.4), "Hue": (-0.1, 0.1)}
    assert V.RandomColorAdjust(2).ranges["Brightness"] == (0.0, 3.0)
    assert one(Image.fromarray(RGB)).size == (16, 12)


def test_random_tones():
    levels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    bits = {len(np.unique(V.RandomPosterize((2, 4))(levels))) for _ in range(100)}
    assert bits == {4, 8, 16}
    for _ in range(50):
        made = V.RandomSolarize((50, 90))(levels)
        changed = np.flatnonzero(made.reshape(-1) != levels.reshape(-1))
        assert changed.min() >= 50
        assert (made.reshape(-1)[changed] == 255 - changed).all()
    lit = V.RandomLighting(1.0)
    assert len({lit(RGB).tobytes() for _ in range(5)}) == 5
    assert (V.RandomLighting(0.0)(RGB) == RGB).all()
    halves = [
        V.RandomInvert(0.5),
        V.RandomEqualize(0.5),
        V.RandomAutoContrast(prob=0.5),
        V.RandomAdjustSharpness(2.0, 0.5),
    ]
    for operation in halves:
        changed = sum(not np.array_equal(operation(RGB // 2), RGB // 2) for _ in range(200))
        assert 60 < changed < 140
    gray = sum(np.ptp(np.array(V.RandomGrayscale(0.5)(Image.fromarray(RGB))), -1).max() == 0 for _ in range(200))
    assert 60 < gray < 140


def test_random_perspective():
    move = V.RandomPerspective(0.6, 1.0, V.Inter.BILINEAR)
    assert len({move(RGB).tobytes() for _ in range(10)}) > 5
    assert move(Image.fromarray(RGB)).size == (16, 12)
    assert (V.RandomPerspective(0.5, 0.0)(RGB) == RGB).all()
    assert (V.RandomPerspective(0.0, 1.0, V.Inter.NEAREST)(RGB) == RGB).all()


def test_random_affine():
    still = V.RandomAffine((0, 0))
    assert (still(RGB) == RGB).all()
    assert (np.asarray(still(Image.fromarray(RGB))) == RGB).all()
    moved = V.RandomAffine((0, 0), translate=(0.25, 0.25))(RGB)
    assert (moved[:, 4:] == RGB[:, :-4]).all()
    assert len({V.RandomAffine(30, (0.1, 0.2, 0.1, 0.2), (0.8, 1.2), 10)(RGB).tobytes() for _ in range(10)}) == 10
    assert V.RandomAffine(10, (0.1, 0.1), (0.9, 1.1), (1, 5, 1, 5))(Image.fromarray(RGB)).size == (16, 12)


def test_the_affine_matrix_is_the_inverse_of_its_definition():
    center, degrees, moved, scale, shear = (7.5, 5.5), 25.0, (2.0, -1.0), 1.3, (10.0, 5.0)
    inverse = np.vstack([affine_matrix(center, degrees, moved, scale, shear), [0, 0, 1]])
    a, sx, sy = np.radians([degrees, *shear])
    turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    shear_y, shear_x = np.array([[1, 0], [-np.tan(sy), 1]]), np.array([[1, -np.tan(sx)], [0, 1]])
    forward = np.eye(3)
    forward[:2, :2] = scale * turn @ shear_y @ shear_x
    forward[:2, 2] = np.array(center) + moved - forward[:2, :2] @ center
    np.testing.assert_allclose(inverse @ forward, np.eye(3), atol=1e-12)


def test_warps_agree_with_opencv_inside():
    """Our places are those of OpenCV's own warp, up to how its versions round them."""
    import cv2

    image = np.add.outer(np.arange(40.0), np.arange(50.0)).astype(np.float32)
    matrix = cv2.getRotationMatrix2D((24.5, 19.5), 33, 1.0)
    wanted = cv2.warpAffine(image, matrix, (50, 40), flags=cv2.INTER_LINEAR)
    got = V.Rotate(33, V.Inter.BILINEAR)(image)
    inside = cv2.erode((wanted > 0).astype(np.uint8), np.ones((5, 5))) > 0
    assert np.abs(got - wanted)[inside].max() < 0.1


def test_slices_of_batches_of_images():
    batch = np.stack([RGB, RGB[::-1]])
    for operation in (V.Resize((4, 5)), V.CenterCrop(6), V.RandomCrop(6), V.Rotate(20), V.HorizontalFlip()):
        made = operation(batch)
        assert made.shape[0] == 2
        if not operation.random:
            assert (made[1] == operation(batch[1])).all()


def test_tensors_are_taken_and_arrays_come_out():
    made = V.HWC2CHW()(ms.Tensor(RGB))
    assert isinstance(made, np.ndarray)
    assert made.shape == (3, 12, 16)


def test_normalize_pad_adds_zeros():
    made = V.NormalizePad([1, 2, 3], [4, 5, 6])(RGB)
    assert (made[..., :3] == V.Normalize([1, 2, 3], [4, 5, 6])(RGB)).all()
    assert (made[..., 3] == 0).all()
    made = V.NormalizePad([1, 2, 3], [4, 5, 6], "float16", is_hwc=False)(RGB.transpose(2, 0, 1))
    assert made.shape == (4, 12, 16)
    assert made.dtype == np.float16


def test_color_spaces_there_and_back():
    values = RGB / 255.0
    np.testing.assert_allclose(V.HsvToRgb(True)(V.RgbToHsv(True)(values)), values, atol=1e-12)
    chw = values.transpose(2, 0, 1)
    np.testing.assert_allclose(V.HsvToRgb()(V.RgbToHsv()(chw)), chw, atol=1e-12)
    import colorsys

    assert V.RgbToHsv(True)(values)[3, 4].tolist() == pytest.approx(colorsys.rgb_to_hsv(*values[3, 4]))


SMALL = np.zeros((4, 5, 3), np.uint8)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: V.Rescale("a", 0), ArgumentTypeError, "'rescale' got 'a' .str.; it takes a number"),
        (lambda: V.Rescale(float("nan"), 0), ArgumentValueError, "'rescale' got nan"),
        (lambda: V.Rescale(1, 0)(np.array(["a"])), DTypeError, "it takes numbers"),
        (lambda: V.Normalize([1], [0]), ArgumentValueError, "'std' got 0.0; it takes numbers above 0"),
        (lambda: V.Normalize([1, 2], [1]), ArgumentValueError, "'std' got 1 numbers; it takes as many as mean has, 2"),
        (lambda: V.Normalize(1, 1), ArgumentTypeError, "'mean' got int"),
        (lambda: V.Normalize([1, 2], [1, 1])(SMALL), ShapeError, r"it takes 2 channels[\s\S]*is_hwc"),
        (lambda: V.Normalize([1], [1])(np.zeros(3)), ShapeError, "at least two axes"),
        (lambda: V.HWC2CHW()(np.zeros((1, 2, 3, 4))), ShapeError, r"it takes \(H, W\) or \(H, W, C\)"),
        (lambda: V.HWC2CHW()(np.zeros(9, np.uint8)), ShapeError, r"hint: Decode\(\)"),
        (lambda: V.HWC2CHW()(3), ArgumentTypeError, "'img' got a int; it takes an array or a PIL image"),
        (lambda: V.HWC2CHW()(SMALL, SMALL), ArgumentTypeError, "2 columns; it takes one image"),
        (lambda: V.ToPIL()(SMALL.astype(float)), DTypeError, r"float64; it takes uint8[\s\S]*TypeCast"),
        (lambda: V.ToPIL()(np.zeros((2, 2, 5), np.uint8)), ShapeError, "up to four channels"),
        (lambda: V.Resize(0), ArgumentValueError, "'size' got 0"),
        (lambda: V.Resize((1, 2, 3)), ArgumentTypeError, r"an int or a pair \(height, width\)"),
        (lambda: V.Resize(3, 5), ArgumentTypeError, "'interpolation' got 5; it takes an Inter"),
        (lambda: V.Resize(3)(SMALL.astype(np.int64)), DTypeError, "int64; it takes uint8 or float32"),
        (lambda: V.Resize(3, V.Inter.ANTIALIAS)(SMALL), UnsupportedError, r"is for PIL images[\s\S]*ToPIL"),
        (lambda: V.Resize(3, V.Inter.AREA)(Image.fromarray(SMALL)), UnsupportedError, r"is for arrays[\s\S]*ToNumpy"),
        (lambda: V.Resize(3)(np.zeros((0, 4), np.uint8)), ShapeError, "an image that is not empty"),
        (lambda: V.Crop((0, 0), 5)(SMALL), ShapeError, "height 4 and width 5; it takes at least 5 and 5"),
        (lambda: V.Crop(1, 5), ArgumentTypeError, "'coordinates' got 1"),
        (lambda: V.Pad((1, 2, 3)), ArgumentValueError, "3 ints; it takes an int or 2 or 4"),
        (lambda: V.Pad(-1), ArgumentValueError, "'padding' got -1"),
        (lambda: V.Pad(1, 300), ArgumentValueError, "'fill_value' got 300; it takes an int from 0 to 255"),
        (lambda: V.Pad(1, (1, 2)), ArgumentValueError, "2 values; it takes one value or three"),
        (lambda: V.Pad(1, 0, "edge"), ArgumentTypeError, "'padding_mode' got 'edge'; it takes a Border"),
        (lambda: V.PadToSize(3)(SMALL), ShapeError, "height 4 and width 5; it takes at most 3 and 3"),
        (lambda: V.RandomHorizontalFlip(2), ArgumentValueError, "'prob' got 2; it takes a number from 0 to 1"),
        (lambda: V.RandomHorizontalFlip(True), ArgumentTypeError, "'prob' got True"),
        (lambda: V.RandomResizedCrop(3, (1, 0.5)), ArgumentValueError, "with min <= max"),
        (lambda: V.RandomRotation(-3), ArgumentValueError, "'degrees' got -3"),
        (lambda: V.RandomRotation((1, 2, 3)), ArgumentValueError, "3 numbers; it takes a pair"),
        (lambda: V.Rotate(1, center=3), ArgumentTypeError, "'center' got 3"),
        (lambda: V.Affine(0, [2, 0], 1, 0), ArgumentValueError, "'translate' got 2.0; it takes a number from -1 to 1"),
        (lambda: V.Affine(0, [0, 0], 0, 0), ArgumentValueError, "'scale' got 0"),
        (lambda: V.RandomAffine(0, (1, 2)), ArgumentValueError, "2 or 4 numbers from -1 to 1"),
        (lambda: V.Perspective([[0, 0]], [[0, 0]]), ArgumentTypeError, "four points"),
        (lambda: V.Grayscale(2), ArgumentValueError, "'num_output_channels' got 2; it takes one of 1, 3"),
        (lambda: V.Grayscale()(SMALL), UnsupportedError, r"hint: put ToPIL\(\) before"),
        (lambda: V.FiveCrop(3)(SMALL), UnsupportedError, r"hint: put ToPIL\(\) before"),
        (lambda: V.FiveCrop(9)(Image.fromarray(SMALL)), ShapeError, "at least 9 and 9"),
        (lambda: V.ConvertColor(3), ArgumentTypeError, "a ConvertMode"),
        (lambda: V.ConvertColor(V.ConvertMode.COLOR_GRAY2BGR)(SMALL), ShapeError, r"1 channel\(s\) for COLOR_GRAY2BGR"),
        (lambda: V.AdjustBrightness(-1), ArgumentValueError, "'brightness_factor' got -1"),
        (lambda: V.AdjustHue(0.7), ArgumentValueError, "'hue_factor' got 0.7; it takes a number from -0.5 to 0.5"),
        (lambda: V.AdjustContrast(1)(SMALL[..., :2]), ShapeError, r"it takes \(H, W, 3\)"),
        (lambda: V.AdjustGamma(1)(SMALL.astype(np.int32)), DTypeError, "int32; it takes uint8"),
        (lambda: V.GaussianBlur(4), ArgumentValueError, "'kernel_size' got 4; it takes odd ints"),
        (lambda: V.Posterize(9), ArgumentValueError, "'bits' got 9; it takes an int from 0 to 8"),
        (lambda: V.Equalize()(SMALL.astype(np.float32)), DTypeError, "float32; it takes uint8"),
        (lambda: V.AutoContrast(60), ArgumentValueError, "'cutoff' got 60"),
        (lambda: V.Solarize((200, 100)), ArgumentValueError, "with min <= max"),
        (lambda: V.RandomErasing(value="x"), ArgumentValueError, '"random"'),
        (lambda: V.RandomErasing()(RAMP), ShapeError, r"it takes \(C, H, W\)"),
        (lambda: V.CutOut(2)(RAMP), ShapeError, "three axes"),
        (lambda: V.Erase(0, 0, 9, 1)(SMALL), ShapeError, "at least 9 and 1"),
        (lambda: V.SlicePatches(9, 1)(SMALL), ShapeError, "at least 9 and 1"),
        (lambda: V.RgbToHsv()(SMALL), ShapeError, "three channels on axis -3"),
        (lambda: V.LinearTransformation(np.eye(3), np.zeros(2)), ShapeError, r"'mean_vector' got shape \(2,\)"),
        (lambda: V.LinearTransformation(np.eye(3), np.zeros(3))(SMALL), ShapeError, "60 entries; it takes 3 entries"),
        (lambda: V.RandomColorAdjust(hue=0.7), ArgumentValueError, "'hue' got 0.7"),
        (lambda: V.UniformAugment([V.Invert()], 2), ArgumentValueError, "'num_ops' got 2; it takes an int from 1 to 1"),
        (lambda: V.RandomSelectSubpolicy([[V.Invert()]]), ArgumentTypeError, r"lists of \(transform, probability\)"),
        (lambda: V.RandomSelectSubpolicy([[(V.Invert(), 2)]]), ArgumentValueError, "'policy' got 2"),
        (lambda: V.MixUpBatch(0), ArgumentValueError, "'alpha' got 0; it takes a number above 0"),
        (lambda: V.MixUpBatch()(SMALL, SMALL), ShapeError, r"'images' got shape[\s\S]*after \.batch"),
        (lambda: V.MixUpBatch()(SMALL[None], np.zeros(1)), ShapeError, r"one-hot labels \(1, classes\)"),
        (lambda: V.CutMixBatch("NHWC"), ArgumentTypeError, "an ImageBatchFormat"),
        (lambda: V.MixUp(3, 1.0)(np.zeros((2, 4, 4, 3)), np.zeros(2)), ShapeError, "2 images and 2 labels; it takes 3"),
    ],
)  # fmt: skip
def test_refusals(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_opencv_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(UnsupportedError, match=r"on arrays this takes OpenCV[\s\S]*opencv-python-headless"):
        V.Resize(3)(SMALL)
    assert V.Resize(3)(Image.fromarray(SMALL)).size == (3, 3)


# Files.


def test_png_and_jpeg(tmp_path):
    assert (V.Decode()(V.encode_png(RGB)) == RGB).all()
    assert V.Decode(to_pil=True)(V.encode_png(RGB)).size == (16, 12)
    smooth = np.add.outer(np.arange(40) * 3, np.arange(30) * 2)[..., None].repeat(3, -1).astype(np.uint8)
    assert np.abs(V.Decode()(V.encode_jpeg(smooth, 95)).astype(int) - smooth).max() < 12
    assert len(V.encode_jpeg(RGB, 10)) < len(V.encode_jpeg(RGB, 95))
    V.write_png(str(tmp_path / "a.png"), RAMP)
    assert V.read_image(str(tmp_path / "a.png")).shape == (12, 16, 1)
    assert V.read_image(str(tmp_path / "a.png"), V.ImageReadMode.COLOR).shape == (12, 16, 3)
    V.write_jpeg(str(tmp_path / "a.jpg"), RGB)
    assert V.read_image(str(tmp_path / "a.jpg"), V.ImageReadMode.GRAYSCALE).shape == (12, 16, 1)
    Image.fromarray(np.dstack([RGB, RAMP])).save(tmp_path / "b.png")
    assert V.read_image(str(tmp_path / "b.png")).shape == (12, 16, 4)
    Image.fromarray(RGB).quantize(8).save(tmp_path / "c.png")
    assert V.read_image(str(tmp_path / "c.png")).shape == (12, 16, 3)
    data = np.arange(5, dtype=np.uint8)
    V.write_file(str(tmp_path / "raw"), data)
    assert (V.read_file(str(tmp_path / "raw")) == data).all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jpg", "a.png", "b.png", "c.png", "raw"]


def test_bytes_in_a_row():
    """A source may give the bytes of a file as such."""
    data = ds.GeneratorDataset([(V.encode_png(RGB).tobytes(),)], ["image"]).map(V.Decode(), "image")
    (image,) = next(data.create_tuple_iterator(output_numpy=True))
    assert (image == RGB).all()


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda d: V.Decode()(RGB), ShapeError, r"it takes one axis[\s\S]*decoded already"),
        (lambda d: V.Decode()(np.zeros(30, np.uint8)), FileFormatError, "30 bytes are no image"),
        (lambda d: V.Decode()(V.encode_jpeg(RGB)[:-200]), FileFormatError, "or not all of one"),
        (lambda d: V.Decode()(np.zeros(30)), ArgumentTypeError, "an array of float64; it takes uint8"),
        (lambda d: V.Decode(1), ArgumentTypeError, "'to_pil' got 1"),
        (lambda d: V.read_file(str(d / "no")), ArgumentValueError, "the path of an existing file"),
        (lambda d: V.read_file(3), ArgumentTypeError, "'filename' got 3"),
        (lambda d: V.read_image(str(d / "no"), 1), ArgumentTypeError, "an ImageReadMode"),
        (
            lambda d: V.write_file(str(d / "no" / "x"), np.zeros(3, np.uint8)),
            ArgumentValueError,
            "an existing directory",
        ),
        (lambda d: V.write_file(str(d / "x"), np.zeros(3)), ArgumentTypeError, "an array of float64"),
        (lambda d: V.write_file(str(d / "x"), RGB), ShapeError, "one axis"),
        (lambda d: V.encode_jpeg(RGB, 0), ArgumentValueError, "'quality' got 0; it takes an int from 1 to 100"),
        (lambda d: V.encode_png(RGB, 10), ArgumentValueError, "'compression_level' got 10"),
        (lambda d: V.encode_png(RGB.astype(float)), ArgumentTypeError, "an array of float64"),
        (lambda d: V.encode_png(np.zeros((2, 2, 2), np.uint8)), ShapeError, r"\(H, W\), \(H, W, 1\) or \(H, W, 3\)"),
        (lambda d: V.get_image_size(np.zeros(3)), ShapeError, "at least two axes"),
        (lambda d: V.get_image_num_channels("x"), ArgumentTypeError, "an array or a PIL image"),
    ],
)
def test_file_refusals(tmp_path, make, kind, message):
    with pytest.raises(kind, match=message):
        make(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"before")

    def fail(*args):
        raise OSError("disk")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk"):
        V.write_file(str(path), np.zeros(3, np.uint8))
    assert path.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


# Mixing.


def test_mix_up_batch():
    images, labels = np.stack([np.full((2, 2, 1), i * 100.0, np.float32) for i in range(3)]), np.eye(3)
    for _ in range(10):
        mixed, shares = V.MixUpBatch(1.0)(images, labels)
        assert shares.dtype == np.float32
        np.testing.assert_allclose(shares.sum(-1), 1, rtol=1e-6)
        # The image is mixed as its label says.
        np.testing.assert_allclose(mixed[:, 0, 0, 0], shares @ np.array([0, 100, 200.0]), rtol=1e-5, atol=1e-4)
    data = ds.NumpySlicesDataset({"x": (images * 1).astype(np.uint8), "y": [0, 1, 2]}).map(transforms.OneHot(3), "y")
    data = data.batch(3).map(V.MixUpBatch(), ["x", "y"])
    assert [str(t) for t in data.output_types()] == ["uint8", "float32"]


@pytest.mark.parametrize("layout", list(V.ImageBatchFormat))
def test_cut_mix_batch(layout):
    images = np.stack([np.full((8, 8, 3), i, np.float32) for i in range(4)])
    if layout is V.ImageBatchFormat.NCHW:
        images = images.transpose(0, 3, 1, 2)
    for _ in range(10):
        mixed, shares = V.CutMixBatch(layout)(images, np.eye(4))
        plane = mixed[..., 0] if layout is V.ImageBatchFormat.NHWC else mixed[:, 0]
        for i in range(4):
            areas = np.bincount(plane[i].astype(int).reshape(-1), minlength=4) / 64
            np.testing.assert_allclose(shares[i], areas, atol=1e-6)
    still = V.CutMixBatch(layout, prob=0.0)(images, np.eye(4))
    assert (still[0] == images).all()


def test_mix_up_with_the_batch_before():
    mix = V.MixUp(2, 1.0, is_single=False)
    ones, twos = np.ones((2, 2, 2, 1)), np.full((2, 2, 2, 1), 2.0)
    first, _ = mix(ones, np.array([0.0, 1.0]))
    np.testing.assert_allclose(first, ones)
    second, labels = mix(twos, np.array([3.0, 3.0]))
    assert ((second > 1) & (second < 2)).all()
    assert labels.shape == (2,)
    assert V.MixUp(2, 1.0)(ones, np.array([0.0, 1.0]))[0].shape == ones.shape


def test_policies():
    policy = V.RandomSelectSubpolicy([[(V.HorizontalFlip(), 1.0)], [(V.VerticalFlip(), 0.0)]])
    kinds = {policy(RGB).tobytes() for _ in range(50)}
    assert kinds == {RGB.tobytes(), RGB[:, ::-1].tobytes()}
    augment = V.UniformAugment([V.HorizontalFlip(), V.VerticalFlip(), V.Invert()], 2)
    kinds = {augment(RGB).tobytes() for _ in range(300)}
    assert len(kinds) == 7
    assert not augment.foreign
    assert V.UniformAugment([lambda x: x], 1).foreign


# Names.


def test_every_transform_is_told_about():
    for name in V.__all__:
        thing = getattr(V, name)
        assert thing.__doc__
        assert thing.__module__.startswith("mycelia.dataset.")
    assert len(V.__all__) == len(set(V.__all__)) >= 80


def test_old_module_names():
    from mycelia.dataset.vision.utils import Inter

    from mycelia.dataset.vision import c_transforms, py_transforms, transforms as inner, utils

    assert Inter is utils.Inter is V.Inter
    assert c_transforms.Resize is inner.Resize is V.Resize
    decoded = py_transforms.Decode()(V.encode_png(RGB))
    assert isinstance(decoded, Image.Image)
    chain = transforms.Compose([py_transforms.ToTensor(), py_transforms.Normalize([0.5] * 3, [0.25] * 3)])
    np.testing.assert_allclose(chain(decoded), (RGB.transpose(2, 0, 1) / 255 - 0.5) / 0.25, rtol=1e-5, atol=1e-5)
    assert py_transforms.NormalizePad([0, 0, 0], [1, 1, 1])(chain(decoded)).shape == (4, 12, 16)
    assert list(inspect.signature(py_transforms.Normalize).parameters) == ["mean", "std"]


def test_errors_are_ours():
    for name in V.__all__:
        thing = getattr(V, name)
        if (
            isinstance(thing, type)
            and issubclass(thing, transforms.base.Transform)
            and "prob" in inspect.signature(thing).parameters
        ):
            needed = {"degree": 1.0, "image_batch_format": V.ImageBatchFormat.NHWC}
            wanted = {k: v for k, v in needed.items() if k in inspect.signature(thing).parameters}
            with pytest.raises(MyceliaError, match=r"'prob' got 1.5"):
                thing(**wanted, prob=1.5)
