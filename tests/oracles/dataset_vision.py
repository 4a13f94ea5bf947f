"""Record what MindSpore's image transforms give: ``python dataset_vision.py`` in an environment that has it.

The cases are data, so that the test runs the same ones. Values go to ``dataset_vision.npz`` beside this
file: ``bytes`` of all arrays one after another, and ``heads``, one line per case: ``numpy``, ``PIL`` or ``refused``,
dtype and shape. :func:`recorded` reads it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_suffix(".npz")
INTER = ["NEAREST", "BILINEAR", "BICUBIC", "AREA"]
BORDERS = ["CONSTANT", "EDGE", "REFLECT", "SYMMETRIC"]


def images() -> dict[str, np.ndarray]:
    """The inputs."""
    r = np.random.RandomState(7)
    smooth = np.add.outer(np.arange(14) * 11, np.arange(17) * 5)[..., None] + np.array([0, 20, 40])
    rgb = np.clip(smooth % 256 + r.randint(-9, 10, (14, 17, 3)), 0, 255).astype(np.uint8)
    return {
        "rgb": rgb,
        "gray1": rgb[:, :, :1].copy(),
        "gray": rgb[:, :, 0].copy(),
        "rgba": np.concatenate([rgb, rgb[:, :, :1]], 2),
        "float": (rgb / 255.0).astype(np.float32),
        "batch": np.stack([rgb, rgb[::-1]]),
        "chw": np.ascontiguousarray(rgb.transpose(2, 0, 1)).astype(np.float32),
        "tall": np.ascontiguousarray(rgb.transpose(1, 0, 2)[:, 2:11]),
        "flat4": (np.arange(4, dtype=np.float64).reshape(1, 2, 2) + 0.5),
    }


def cases() -> list[tuple[str, str, dict[str, Any], str]]:
    """(class, keywords as text-able data, input); inputs that start with ``pil-`` are given as PIL images."""
    found: list[tuple[str, dict[str, Any], str]] = []

    def add(name: str, where: str, **keywords: Any) -> None:
        found.extend((name, keywords, key) for key in where.split())

    numpy_images = "rgb gray1 gray float"
    pil_images = "pil-rgb pil-gray"
    add("Rescale", "rgb gray float batch", rescale=1 / 255, shift=-0.25)
    add("Normalize", "rgb float batch pil-rgb", mean=[121.0, 115.5, 100.25], std=[70.5, 68.0, 71.0])
    add("Normalize", "gray1 gray rgb", mean=[100.0], std=[50.0])
    add("Normalize", "chw", mean=[121.0, 115.5, 100.25], std=[70.5, 68.0, 71.0], is_hwc=False)
    add("NormalizePad", "rgb float", mean=[121.0, 115.5, 100.25], std=[70.5, 68.0, 71.0])
    add("NormalizePad", "rgb", mean=[121.0, 115.5, 100.25], std=[70.5, 68.0, 71.0], dtype="float16")
    add("HWC2CHW", numpy_images + " pil-rgb pil-gray")
    add("ToTensor", numpy_images + " rgba pil-rgb pil-gray")
    add("ToPIL", "rgb gray1 gray rgba")
    add("ToNumpy", "rgb pil-rgb")
    add("HorizontalFlip", numpy_images + " batch pil-rgb")
    add("VerticalFlip", numpy_images + " batch pil-rgb")
    add("RandomHorizontalFlip", numpy_images + " batch " + pil_images, prob=1.0)
    add("RandomVerticalFlip", numpy_images + " batch " + pil_images, prob=1.0)
    for size in (5, (6, 9), (20, 20), (20, 8), (15, 30)):
        add("CenterCrop", "rgb gray batch " + pil_images, size=size)
    add("Crop", "rgb gray float pil-rgb", coordinates=(2, 3), size=(5, 4))
    for border in BORDERS:
        add("Pad", numpy_images + " " + pil_images, padding=(1, 2, 3, 4), fill_value=7, padding_mode=("Border", border))
    add("Pad", "rgb pil-rgb", padding=(2, 1), fill_value=(9, 8, 7))
    add("Pad", "rgb", padding=3)
    add("PadToSize", "rgb gray", size=(20, 19), fill_value=3)
    add("PadToSize", "rgb", size=18, offset=(1, 0))
    for inter in INTER:
        for size in (7, (9, 25), (30, 11)):
            add("Resize", numpy_images + " batch tall", size=size, interpolation=("Inter", inter))
            if inter != "AREA":
                add("Resize", pil_images + " pil-tall", size=size, interpolation=("Inter", inter))
    add("Resize", "pil-rgb pil-gray", size=(5, 8), interpolation=("Inter", "ANTIALIAS"))
    add("Resize", "rgb", size=(9, 25), interpolation=("Inter", "PILCUBIC"))
    add("ResizedCrop", "rgb gray", top=1, left=2, height=8, width=9, size=(5, 12), interpolation=("Inter", "BILINEAR"))
    add("ResizedCrop", "rgb", top=0, left=0, height=14, width=17, size=6, interpolation=("Inter", "NEAREST"))
    for angle in (90, 180, -90, 30, 45.5, 400):
        for expand in (False, True):
            add("Rotate", "rgb gray", degrees=angle, expand=expand)
    add("Rotate", "rgb float", degrees=33, resample=("Inter", "BILINEAR"), fill_value=5)
    add("Rotate", "rgb", degrees=33, resample=("Inter", "BICUBIC"), center=(2, 3))
    add("RandomRotation", "rgb gray pil-rgb", degrees=(30, 30))
    add("RandomRotation", "pil-rgb", degrees=(50, 50), expand=True, resample=("Inter", "BILINEAR"))
    add("Affine", "rgb gray", degrees=15, translate=[0.2, 0.1], scale=1.1, shear=[1.0, 1.0])
    add("Affine", "rgb", degrees=-40, translate=[0.0, 0.0], scale=0.7, shear=[0.0, 8.0], resample=("Inter", "BILINEAR"))
    add("Affine", "rgb", degrees=0, translate=[-0.2, 0.3], scale=1.0, shear=0.0, fill_value=9)
    corners = [[0, 0], [16, 0], [16, 13], [0, 13]]
    moved = [[2, 1], [15, 0], [13, 12], [1, 11]]
    add("Perspective", "rgb gray pil-rgb", start_points=corners, end_points=moved)
    add("Perspective", "rgb", start_points=corners, end_points=moved, interpolation=("Inter", "NEAREST"))
    modes = (
        "BGR2BGRA BGRA2BGR BGR2RGBA RGBA2BGR BGR2RGB BGRA2RGBA BGR2GRAY RGB2GRAY GRAY2BGR GRAY2BGRA BGRA2GRAY RGBA2GRAY"
    )
    for mode in modes.split():
        source = {"BGR": "rgb", "RGB": "rgb", "GRA": "gray1", "BGRA": "rgba", "RGBA": "rgba"}
        first = mode.split("2")[0]
        add(
            "ConvertColor",
            source[first if first in source else first[:3]],
            convert_mode=("ConvertMode", "COLOR_" + mode),
        )
    add("ConvertColor", "float", convert_mode=("ConvertMode", "COLOR_RGB2GRAY"))
    add("Grayscale", pil_images, num_output_channels=1)
    add("Grayscale", pil_images, num_output_channels=3)
    add("RandomGrayscale", "pil-rgb", prob=1.0)
    for factor in (0.0, 0.4, 1.0, 1.7):
        for name in ("Brightness", "Contrast", "Saturation"):
            add(f"Adjust{name}", "rgb pil-rgb", **{f"{name.lower()}_factor": factor})
        add("AdjustSharpness", "rgb gray pil-rgb", sharpness_factor=factor)
    add("AdjustBrightness", "float", brightness_factor=0.4)
    add("AdjustContrast", "float", contrast_factor=0.4)
    add("AdjustSaturation", "float", saturation_factor=0.4)
    for factor in (-0.3, 0.0, 0.2):
        add("AdjustHue", "rgb pil-rgb", hue_factor=factor)
    add("AdjustGamma", "rgb pil-rgb float", gamma=0.6)
    add("AdjustGamma", "rgb pil-rgb", gamma=2.0, gain=0.8)
    add("RandomColorAdjust", "rgb pil-rgb", brightness=(1.3, 1.3))
    add("RandomColorAdjust", "rgb pil-rgb", contrast=(0.6, 0.6))
    add("RandomColorAdjust", "rgb pil-rgb", saturation=(1.5, 1.5))
    add("RandomColor", "rgb pil-rgb", degrees=(0.5, 0.5))
    add("RandomSharpness", "rgb pil-rgb", degrees=(1.5, 1.5))
    add("RandomAdjustSharpness", "rgb", degree=1.5, prob=1.0)
    add("Invert", "rgb float pil-rgb")
    add("RandomInvert", "rgb", prob=1.0)
    add("Equalize", "rgb gray1 gray pil-rgb")
    add("RandomEqualize", "rgb", prob=1.0)
    add("AutoContrast", "rgb gray1 gray pil-rgb")
    add("AutoContrast", "rgb pil-rgb", cutoff=10.0, ignore=[0, 255])
    add("RandomAutoContrast", "rgb", prob=1.0)
    add("Solarize", "rgb gray pil-rgb", threshold=100)
    add("Solarize", "rgb", threshold=(50, 150))
    add("RandomSolarize", "rgb", threshold=(60, 60))
    add("Posterize", "rgb gray pil-rgb", bits=3)
    add("RandomPosterize", "rgb", bits=(2, 2))
    add("GaussianBlur", "rgb gray float", kernel_size=3)
    add("GaussianBlur", "rgb", kernel_size=(5, 3), sigma=(1.5, 0.7))
    add("RgbToHsv", "rgb float batch", is_hwc=True)
    add("RgbToHsv", "chw", is_hwc=False)
    add("HsvToRgb", "float", is_hwc=True)
    add("Erase", "rgb", top=1, left=2, height=4, width=5, value=(1, 2, 3))
    add("Erase", "float", top=1, left=2, height=4, width=5, value=0.5)
    matrix = (np.arange(16).reshape(4, 4) % 5 - 1.0).tolist()
    add(
        "LinearTransformation",
        "flat4",
        transformation_matrix=("array", matrix),
        mean_vector=("array", [0.5, 1.0, 1.5, 2.0]),
    )
    for index in range(5):
        add(f"FiveCrop[{index}]", "pil-rgb", size=(6, 7))
    for index in range(10):
        add(f"TenCrop[{index}]", "pil-rgb", size=(6, 7), use_vertical_flip=index % 2 == 1)
    for index in range(6):
        add(f"SlicePatches[{index}]", "rgb gray", num_height=2, num_width=3, fill_value=4)
        add(f"SlicePatches[{index}]", "rgb", num_height=3, num_width=2, slice_mode=("SliceMode", "DROP"))
    return [(f"{i:03d}", *case) for i, case in enumerate(found)]


def build(vision: Any, name: str, keywords: dict[str, Any]) -> Any:
    """The transform of a case; ``NAME[i]`` is the one whose i-th result counts."""
    name, _, index = name.partition("[")

    def value(item: Any) -> Any:
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
            return np.array(item[1]) if item[0] == "array" else getattr(getattr(vision, item[0]), item[1])
        return item

    transform = getattr(vision, name)(**{key: value(item) for key, item in keywords.items()})
    return (lambda image: transform(image)[int(index[:-1])]) if index else transform


def given(key: str, made: dict[str, np.ndarray]) -> Any:
    """The input of a case."""
    from PIL import Image

    return Image.fromarray(made[key[4:]]) if key.startswith("pil-") else made[key].copy()


def record() -> None:
    """Run every case and write the file."""
    import random

    import mindspore
    import mindspore.dataset.vision as vision

    mindspore.set_seed(1)
    random.seed(1)
    made, values, heads = images(), [], []
    for number, name, keywords, key in cases():
        try:
            result = build(vision, name, keywords)(given(key, made))
        except (RuntimeError, TypeError, ValueError, AttributeError) as error:
            print(f"{number} {name} {keywords} {key}: refused: {str(error)[:200]}", file=sys.stderr)
            heads.append("refused")
            continue
        array = np.ascontiguousarray(result)
        kind = "numpy" if isinstance(result, np.ndarray) else "PIL"
        heads.append(f"{kind} {array.dtype.name} {'x'.join(map(str, array.shape))}")
        values.append(array.reshape(-1).view(np.uint8))
    np.savez_compressed(FILE, heads=np.array(heads), bytes=np.concatenate(values))


def recorded() -> list[tuple[str, np.ndarray | None]]:
    """Of each case its kind, and the array unless it is ``refused``."""
    with np.load(FILE) as stored:
        heads, data = stored["heads"].tolist(), stored["bytes"]
    found: list[tuple[str, np.ndarray | None]] = []
    place = 0
    for head in heads:
        if head == "refused":
            found.append((head, None))
            continue
        kind, dtype, shape = head.split(" ")
        lengths = tuple(map(int, shape.split("x")))
        size = int(np.prod(lengths)) * np.dtype(dtype).itemsize
        found.append((kind, data[place : place + size].view(dtype).reshape(lengths)))
        place += size
    return found


if __name__ == "__main__":
    record()
