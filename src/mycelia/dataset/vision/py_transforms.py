"""The image transforms under the module name of MindSpore 1.x for those written in Python.

There, ``Decode`` gives a PIL image and ``Normalize`` takes (C, H, W), what ``ToTensor`` gives.
"""

from __future__ import annotations

from typing import Any

from mycelia.dataset import vision as _vision
from mycelia.dataset.vision import *  # noqa: F403


class Decode(_vision.Decode):  # type: ignore[no-redef]
    """Decode the bytes of an image file to a PIL image in RGB; see :class:`mycelia.dataset.vision.Decode`."""

    def __init__(self) -> None:
        super().__init__(to_pil=True)


class Normalize(_vision.Normalize):  # type: ignore[no-redef]
    """Normalize (C, H, W); see :class:`mycelia.dataset.vision.Normalize`."""

    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__(mean, std, is_hwc=False)


class NormalizePad(_vision.NormalizePad):  # type: ignore[no-redef]
    """Normalize (C, H, W) and add a channel; see :class:`mycelia.dataset.vision.NormalizePad`."""

    def __init__(self, mean: Any, std: Any, dtype: str = "float32") -> None:
        super().__init__(mean, std, dtype, is_hwc=False)
