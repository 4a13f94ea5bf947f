"""The fast way to JPEG files gives Pillow's pixels, and leaves everything else to Pillow."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from mycelia.core.errors import FileFormatError
from mycelia.dataset import vision as V
from mycelia.dataset.vision import jpeg
from mycelia.dataset.vision.files import decoded_array

DRAW = np.random.default_rng(8)


def picture(height, width, mode="RGB"):
    small = DRAW.integers(0, 256, (max(height // 6, 1), max(width // 6, 1), 3)).astype(np.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC).convert(mode)


def encoded(image, **options):
    stream = io.BytesIO()
    image.save(stream, "JPEG", **options)
    return np.frombuffer(stream.getvalue(), np.uint8)


def by_pillow(data):
    return np.array(Image.open(io.BytesIO(data.tobytes())).convert("RGB"))


@pytest.mark.parametrize("size", [(1, 1), (8, 8), (37, 61), (120, 90)])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"optimize": True, "quality": 30}], ids=str)
def test_pixels(size, subsampling, options):
    data = encoded(picture(*size), subsampling=subsampling, **options)
    made = jpeg.pixels_of(data)
    np.testing.assert_array_equal(made, by_pillow(data))
    assert made.flags.c_contiguous


def test_gray():
    data = encoded(picture(20, 31, "L"))
    np.testing.assert_array_equal(jpeg.pixels_of(data), by_pillow(data))


def test_orientation_is_left_alone():
    turned = Image.Exif()
    turned[0x0112] = 6
    data = encoded(picture(20, 31), exif=turned)
    assert jpeg.pixels_of(data).shape == (20, 31, 3)
    np.testing.assert_array_equal(jpeg.pixels_of(data), by_pillow(data))


def test_four_components_are_left_to_pillow():
    data = encoded(picture(20, 31, "CMYK"))
    assert jpeg.pixels_of(data) is None
    np.testing.assert_array_equal(decoded_array(data, "Decode"), by_pillow(data))


def test_other_kinds_are_left_to_pillow():
    data = V.encode_png(np.array(picture(9, 9)))
    assert jpeg.pixels_of(data) is None
    np.testing.assert_array_equal(V.Decode()(data), by_pillow(data))
    assert jpeg.pixels_of(np.zeros(0, np.uint8)) is None


@pytest.mark.parametrize("kept", [10, 100, 500, -2])
def test_a_truncated_file_is_refused(kept):
    data = encoded(picture(64, 64))[:kept].copy()
    assert jpeg.pixels_of(data) is None
    with pytest.raises(FileFormatError, match="no image, or not all of one"):
        V.Decode()(data)


def test_bytes_after_the_image():
    data = np.concatenate([encoded(picture(30, 30)), np.zeros(7, np.uint8)])
    assert jpeg.pixels_of(data) is None
    np.testing.assert_array_equal(V.Decode()(data), by_pillow(data))


def test_a_head_cut_anywhere_is_no_image_until_the_frame():
    data = encoded(picture(16, 16))
    end = np.array([0xFF, 0xD9], np.uint8)
    frame = data.tobytes().index(b"\xff\xc0")
    found = [jpeg.ordinary(np.concatenate([data[:kept], end]).data) for kept in range(frame + 30)]
    assert not any(found[: frame + 8])
    assert all(found[frame + 10 :])


def test_without_opencv(monkeypatch):
    data = encoded(picture(30, 40))
    monkeypatch.setitem(jpeg._found, "decoder", None)
    assert jpeg.pixels_of(data) is None
    np.testing.assert_array_equal(V.Decode()(data), by_pillow(data))
