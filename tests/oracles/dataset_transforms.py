"""Record what MindSpore's transforms of arrays give, and the parameters of its public dataset classes.

``python dataset_transforms.py`` in an environment that has MindSpore writes ``dataset_transforms.json``: for
each expression below ``[dtype, values]`` of each result (or ``"refused"``), and for each class and function
of ``PARAMETERS`` the names and defaults of its parameters.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_suffix(".json")

CASES = r"""
T.TypeCast(f32)(np.array([1.7, -2.2, 300.0]))
T.TypeCast(np.float16)(np.array([1.7, -2.2, 300.0]))
T.TypeCast(i32)(np.array([1.7, -2.2, 300.0]))
T.TypeCast(i32)([1.5, 2])
T.TypeCast(i32)(2.7)
T.TypeCast(i32)(np.array(["1", "2"]))
T.OneHot(4)(np.array(2))
T.OneHot(4)(np.array([2, 0]))
T.OneHot(4)(np.array([[1], [2]]))
T.OneHot(4)(np.array([2], np.uint8))
T.OneHot(4)(np.array([[1, 2]]))
T.OneHot(4)(np.array(5))
T.OneHot(4, 0.1)(np.array(2))
T.OneHot(4, 0.1)(np.array([2, 1]))
T.OneHot(0)
T.OneHot(3, 1.5)
T.PadEnd([5], 9)(np.array([1, 2, 3], np.int32))
T.PadEnd([2], 9)(np.array([1, 2, 3], np.int32))
T.PadEnd([2, 5])(np.ones((1, 3)))
T.PadEnd([2, 5])(np.ones(3))
T.PadEnd([4], "x")(np.array(["a", "b"]))
T.PadEnd([4], 1)(np.array(["a", "b"]))
T.PadEnd([4], 1.5)(np.array([1, 2, 3], np.int32))
T.Concatenate(0, np.array([7, 8]), np.array([9]))(np.array([1, 2, 3]))
T.Concatenate(-1)(np.array([1, 2]), np.array([3]))
T.Concatenate(0, np.array([7, 8], np.float32))(np.array([1, 2, 3]))
T.Duplicate()(np.array([1, 2, 3], np.int32))
T.Fill(7)(np.array([1, 2, 3], np.int32))
T.Fill(7.9)(np.array([1, 2, 3], np.int32))
T.Fill("x")(np.array(["a", "bcd"]))
T.Fill("x")(np.array([1, 2]))
T.Mask(T.Relational.EQ, 2)(np.array([1, 2, 3]))
T.Mask(T.Relational.NE, 2)(np.array([1, 2, 3]))
T.Mask(T.Relational.GT, 2)(np.array([1, 2, 3]))
T.Mask(T.Relational.GE, 2)(np.array([1, 2, 3]))
T.Mask(T.Relational.LT, 2)(np.array([1, 2, 3]))
T.Mask(T.Relational.LE, 2)(np.array([1, 2, 3]))
T.Mask(T.Relational.GT, 2, i16)(np.array([1, 2, 3]))
T.Mask(T.Relational.GT, 1.5)(np.array([1, 2, 3]))
T.Mask(T.Relational.EQ, "a")(np.array(["a", "b"]))
T.Slice(1)(m)
T.Slice([0, 2])(m)
T.Slice(slice(1, 3))(m)
T.Slice(...)(m)
T.Slice(None)(m)
T.Slice([0, 1], [1, 3])(m)
T.Slice(..., 1)(m)
T.Slice(slice(0, 2), ...)(m)
T.Slice([-1])(m)
T.Slice(5)(m)
T.Slice(1, 1)(m)
T.Slice(True)(m)
T.Slice(slice(0, 2))(np.array(["a", "b", "c"]))
T.Slice([0, 2])(np.array([1, 2, 3]))
T.Unique()(np.array([[3, 1], [1, 2]]))
T.Compose([T.TypeCast(i32), lambda x: x + 1])(np.array([1.5]))
T.Compose([lambda x, y: (x + y, x), lambda p, q: p * q])(np.array(1), np.array(2))
T.Compose([])
T.Compose([1])
T.Compose(lambda x: x)
T.RandomApply([T.Fill(0)], 1.0)(np.array([1, 2]))
T.RandomApply([T.Fill(0)], 0.0)(np.array([1, 2]))
T.RandomApply([T.Fill(0)], 1.5)
T.RandomChoice([T.Fill(0)])(np.array([1, 2]))
T.RandomChoice([])
T.RandomOrder([T.Fill(0), T.TypeCast(i32)])(np.array([1, 2]))
V.Rescale("a", 0)
V.Normalize([1, 2], [1])
V.Normalize([1], [0])
V.Normalize([-1], [1])
V.Normalize([256], [1])
V.Normalize(1, 1)
V.Resize(0)
V.Resize((1, 2, 3))
V.Resize(3, 5)
V.CenterCrop(-1)
V.RandomHorizontalFlip(2)
V.Pad(-1)
V.Pad((1, 2, 3))
V.RandomCrop(30)(np.zeros((20, 20, 3), np.uint8))
V.RandomResizedCrop(3, scale=(1, 0.5))
V.RandomRotation(-3)
V.RandomRotation((5, 2))
V.Decode()(np.zeros((3, 3, 3), np.uint8))
V.Decode()(np.zeros(30, np.uint8))
V.get_image_size(np.zeros((4, 5, 3), np.uint8)), V.get_image_num_channels(np.zeros((4, 5, 3), np.uint8))
""".strip().splitlines()

PARAMETERS = {
    "": "GeneratorDataset NumpySlicesDataset MnistDataset FashionMnistDataset KMnistDataset ImageFolderDataset "
    "Cifar10Dataset Cifar100Dataset SequentialSampler RandomSampler SubsetSampler SubsetRandomSampler "
    "WeightedRandomSampler DistributedSampler PKSampler Sampler IterSampler zip",
    "transforms": "Compose Concatenate Duplicate Fill Mask OneHot PadEnd RandomApply RandomChoice RandomOrder Slice "
    "TypeCast Unique",
    "vision": "AdjustBrightness AdjustContrast AdjustGamma AdjustHue AdjustSaturation AdjustSharpness Affine "
    "AutoContrast CenterCrop ConvertColor Crop CutMixBatch CutOut Decode Equalize Erase FiveCrop GaussianBlur "
    "Grayscale HWC2CHW HorizontalFlip HsvToRgb Invert LinearTransformation MixUp MixUpBatch Normalize "
    "NormalizePad Pad PadToSize Perspective Posterize RandomAdjustSharpness RandomAffine RandomAutoContrast "
    "RandomColor RandomColorAdjust RandomCrop RandomCropDecodeResize RandomEqualize RandomErasing "
    "RandomGrayscale RandomHorizontalFlip RandomInvert RandomLighting RandomPerspective RandomPosterize "
    "RandomResize RandomResizedCrop RandomRotation RandomSelectSubpolicy RandomSharpness RandomSolarize "
    "RandomVerticalFlip Rescale Resize ResizedCrop RgbToHsv Rotate SlicePatches Solarize TenCrop ToNumpy "
    "ToPIL ToTensor ToType UniformAugment VerticalFlip encode_jpeg encode_png get_image_num_channels "
    "get_image_size read_file read_image write_file write_jpeg write_png",
    "Dataset": "apply bucket_batch_by_length concat create_dict_iterator create_tuple_iterator filter flat_map "
    "get_batch_size get_class_indexing get_col_names get_dataset_size get_repeat_count num_classes output_shapes "
    "output_types padded_batch project rename repeat reset shuffle skip split take zip",
    "vision.enums": "AutoAugmentPolicy Border ConvertMode ImageBatchFormat ImageReadMode Inter SliceMode",
}


def scope(transforms: Any, vision: Any, f32: Any, i32: Any, i16: Any) -> dict[str, Any]:
    """The names that the cases use."""
    return {
        "T": transforms,
        "V": vision,
        "np": np,
        "f32": f32,
        "i32": i32,
        "i16": i16,
        "m": np.arange(12).reshape(3, 4),
    }


def as_json(value: Any) -> Any:
    """``[dtype, values]`` of an array; a list of them of a tuple."""
    if isinstance(value, tuple):
        return [as_json(v) for v in value]
    if not isinstance(value, (np.ndarray, np.generic)):
        return value if isinstance(value, (int, list)) else "a transform"
    array = np.asarray(value)
    return [array.dtype.kind if array.dtype.kind in "US" else array.dtype.name, array.tolist()]


def parameters(dataset: Any) -> dict[str, Any]:
    """Names and defaults of parameters, and members of enumerations."""
    found: dict[str, Any] = {}
    for place, names in PARAMETERS.items():
        home = dataset
        for part in place.split("."):
            home = home if part in ("", "enums") else getattr(home, part)
        for name in names.split():
            thing = getattr(home, name)
            key = f"{place}.{name}" if place else name
            if place == "vision.enums":
                found[key] = {member: value.value for member, value in thing.__members__.items()}
                continue
            signature = inspect.signature(thing.__init__ if isinstance(thing, type) else thing)
            found[key] = [
                [p.name, "" if p.default is p.empty else _default(p.default)]
                for p in signature.parameters.values()
                if p.name != "self" and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
            ]
    return found


def _default(value: Any) -> str:
    text = getattr(value, "name", None)
    if isinstance(text, str) and not isinstance(value, (int, float, np.dtype)):
        return text
    if hasattr(value, "name") and hasattr(value, "value"):
        return str(value.name)
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(f"{v:g}" for v in value) + ")"
    return repr(value).rpartition(".")[2].lower() if not isinstance(value, (int, float, str)) else repr(value)


def record() -> None:
    """Evaluate every case and write the file."""
    import mindspore
    import mindspore.dataset as dataset
    import mindspore.dataset.transforms as transforms
    import mindspore.dataset.vision as vision

    names = scope(transforms, vision, mindspore.float32, mindspore.int32, mindspore.int16)
    lines = []
    for case in CASES:
        try:
            value = as_json(eval(case, names))
        except (RuntimeError, TypeError, ValueError) as error:
            print(case, "->", str(error).splitlines()[0][:150], flush=True)
            value = "refused"
        lines.append(f"    {json.dumps(case)}: {json.dumps(value)}")
    signatures = [f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in parameters(dataset).items()]
    text = (
        '{\n  "cases": {\n' + ",\n".join(lines) + '\n  },\n  "parameters": {\n' + ",\n".join(signatures) + "\n  }\n}\n"
    )
    FILE.write_text(text)


if __name__ == "__main__":
    record()
