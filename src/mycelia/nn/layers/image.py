"""Images: gradients, crops and measures of likeness.

Z. Wang et al., "Image quality assessment: from error visibility to structural similarity", 2004 (SSIM);
Z. Wang et al., "Multiscale structural similarity for image quality assessment", 2003 (MS-SSIM).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg
from mycelia.nn.layers.container import CellList
from mycelia.nn.layers.conv import Conv2d
from mycelia.nn.layers.plain import PlainCell
from mycelia.nn.layers.pooling import AvgPool2d
from mycelia.tensor import Tensor

_LAYOUT = "(batch, channels, height, width)"


class ImageGradients(PlainCell):
    """Differences of neighbouring pixels, zero at the far border.

    Inputs:
        images: a tensor of shape (batch, channels, height, width).

    Outputs:
        A pair: differences along the height and along the width, of the input's shape.

    >>> import mycelia as ms
    >>> dy, dx = ms.nn.ImageGradients()(ms.Tensor([[[[1, 2], [3, 4]]]]))
    >>> print(dy.flatten(), dx.flatten())
    [2 2 0 0] [1 0 1 0]
    """

    def construct(self, images: Any) -> Any:
        t: Any = arg.axes_of_input("ImageGradients", "images", images, (4,), _LAYOUT)
        dy = ops.pad(t[:, :, 1:] - t[:, :, :-1], (0, 0, 0, 1))
        dx = ops.pad(t[:, :, :, 1:] - t[:, :, :, :-1], (0, 1))
        return dy, dx


class CentralCrop(Cell):
    """The middle of images.

    Args:
        central_fraction: the fraction of height and width that is kept, above 0 up to 1.

    Inputs:
        image: a tensor of shape (batch, channels, height, width), or without the batch.

    >>> import mycelia as ms
    >>> ms.nn.CentralCrop(0.5)(ms.ops.ones((3, 4, 8))).shape
    (3, 2, 4)
    """

    def __init__(self, central_fraction: float) -> None:
        super().__init__()
        if arg.fraction("CentralCrop", "central_fraction", central_fraction) == 0:
            raise ArgumentValueError("CentralCrop", "central_fraction", got="0", takes="a number above 0, up to 1")
        self.central_fraction = central_fraction

    def construct(self, image: Any) -> Any:
        t: Any = arg.axes_of_input("CentralCrop", "image", image, (3, 4), "(batch,) channels, height, width")
        height, width = t.shape[-2:]
        top, left = (int((n - n * self.central_fraction) / 2) for n in (height, width))
        return t[..., top : height - top, left : width - left]


def _kernel(size: int, sigma: float) -> np.ndarray[Any, Any]:
    """A Gaussian window of sum 1, as a kernel of shape (1, 1, size, size)."""
    offsets = np.arange(size) - (size - 1) / 2
    line = np.exp(-(offsets**2) / (2 * sigma**2))
    window = np.outer(line, line)
    return (window / window.sum()).astype(np.float32)[None, None]


def _window_conv(size: int, sigma: float) -> Conv2d:
    conv = Conv2d(1, 1, size, pad_mode="valid", weight_init=Tensor(_kernel(size, sigma)))
    conv.weight.requires_grad = False
    return conv


def _pair(where: str, img1: Any, img2: Any) -> tuple[Tensor, Tensor]:
    a = arg.axes_of_input(where, "img1", img1, (4,), _LAYOUT)
    b = arg.axes_of_input(where, "img2", img2, (4,), _LAYOUT)
    if a.shape != b.shape:
        raise ShapeError(where, "img2", got=f"shape {b.shape}", takes=f"the shape of 'img1', {a.shape}")
    if a.dtype is not b.dtype:
        raise DTypeError(where, "img2", got=f"dtype {b.dtype}", takes=f"the dtype of 'img1', {a.dtype}")
    return a, b


class _Similarity(Cell):
    """What SSIM and MS-SSIM share."""

    def _options(self, max_val: float, filter_size: int, filter_sigma: float, k1: float, k2: float) -> None:
        where = type(self).__name__
        for name, value in (("max_val", max_val), ("filter_sigma", filter_sigma)):
            if arg.number(where, name, value) <= 0:
                raise ArgumentValueError(where, name, got=str(value), takes="a positive number")
        self.max_val, self.filter_sigma = max_val, filter_sigma
        self.filter_size = arg.positive(where, "filter_size", filter_size)
        self.k1, self.k2 = arg.number(where, "k1", k1), arg.number(where, "k2", k2)

    def _parts(self, a: Tensor, b: Tensor, conv: Conv2d) -> tuple[Any, Any]:
        """Means over each image of luminance times contrast-structure, and of the latter alone."""
        n, c, height, width = a.shape
        if min(height, width) < self.filter_size:
            raise ShapeError(
                type(self).__name__,
                "img1",
                got=f"shape {a.shape}",
                takes=f"images of at least {self.filter_size} pixels a side",
            )
        x, y = (ops.reshape(ops.cast(t, dt.float32), (n * c, 1, height, width)) for t in (a, b))
        both = conv(ops.concat((x, y, x * x + y * y, x * y), 0))
        mean_x, mean_y, squares, product = ops.chunk(both, 4, 0)
        c1, c2 = (self.k1 * self.max_val) ** 2, (self.k2 * self.max_val) ** 2
        means, sums = mean_x * mean_y, mean_x * mean_x + mean_y * mean_y
        structure = (2 * (product - means) + c2) / (squares - sums + c2)
        luminance = (2 * means + c1) / (sums + c1)
        full, alone = (ops.reshape(ops.mean(t, (1, 2, 3)), (n, c)) for t in (luminance * structure, structure))
        return ops.cast(full, a.dtype), ops.cast(alone, a.dtype)


class SSIM(_Similarity):
    """Structural similarity of images, 1 for equal ones.

    Args:
        max_val: range of the pixels.
        filter_size: width of the Gaussian window.
        filter_sigma: its standard deviation.
        k1: constant of the luminance term.
        k2: constant of the contrast term.

    Inputs:
        img1: a tensor of shape (batch, channels, height, width).
        img2: a tensor of that shape and dtype.

    Outputs:
        A tensor of shape (batch,).

    Raises:
        ShapeError: the shapes differ, or images are smaller than the window.

    >>> import mycelia as ms
    >>> x = ms.ops.ones((1, 3, 16, 16))
    >>> print(ms.nn.SSIM()(x, x).round(decimals=4))
    [1.]
    """

    def __init__(
        self,
        max_val: float = 1.0,
        filter_size: int = 11,
        filter_sigma: float = 1.5,
        k1: float = 0.01,
        k2: float = 0.03,
    ) -> None:
        super().__init__()
        self._options(max_val, filter_size, filter_sigma, k1, k2)
        self.conv = _window_conv(filter_size, filter_sigma)

    def construct(self, img1: Any, img2: Any) -> Any:
        a, b = _pair("SSIM", img1, img2)
        return ops.mean(self._parts(a, b, self.conv)[0], -1)


class MSSSIM(_Similarity):
    """Structural similarity of images over several scales, 1 for equal ones.

    Args:
        max_val: range of the pixels.
        power_factors: weight of each scale, from the finest on.
        filter_size: width of the Gaussian window.
        filter_sigma: its standard deviation.
        k1: constant of the luminance term.
        k2: constant of the contrast term.

    Inputs:
        img1: a tensor of shape (batch, channels, height, width), halved with each scale.
        img2: a tensor of that shape and dtype.

    Outputs:
        A tensor of shape (batch,).

    >>> import mycelia as ms
    >>> x = ms.ops.ones((1, 1, 32, 32))
    >>> print(ms.nn.MSSSIM(power_factors=(0.5, 0.5))(x, x).round(decimals=4))
    [1.]
    """

    def __init__(
        self,
        max_val: float = 1.0,
        power_factors: Any = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
        filter_size: int = 11,
        filter_sigma: float = 1.5,
        k1: float = 0.01,
        k2: float = 0.03,
    ) -> None:
        super().__init__()
        self._options(max_val, filter_size, filter_sigma, k1, k2)
        if not isinstance(power_factors, (tuple, list)) or not power_factors:
            raise ArgumentTypeError(
                "MSSSIM", "power_factors", got=repr(power_factors), takes="a tuple or list of numbers"
            )
        self.power_factors = tuple(arg.number("MSSSIM", "power_factors", f) for f in power_factors)
        self.multi_convs_list = CellList([_window_conv(filter_size, filter_sigma) for _ in power_factors])
        self.avg_pool = AvgPool2d(2, 2)

    def construct(self, img1: Any, img2: Any) -> Any:
        a, b = _pair("MSSSIM", img1, img2)
        result: Any = None
        last = len(self.power_factors) - 1
        for i, factor in enumerate(self.power_factors):
            full, alone = self._parts(a, b, self.multi_convs_list[i])
            term = ops.pow(ops.relu(full if i == last else alone), factor)
            result = term if result is None else result * term
            if i != last:
                a, b = self.avg_pool(a), self.avg_pool(b)
        return ops.mean(result, -1)


class PSNR(Cell):
    """Peak signal-to-noise ratio of two images in decibels.

    Args:
        max_val: range of the pixels.

    Inputs:
        img1: a tensor of shape (batch, channels, height, width).
        img2: a tensor of that shape and dtype.

    Outputs:
        A tensor of shape (batch,); infinite for equal images.

    >>> import mycelia as ms
    >>> f"{ms.nn.PSNR()(ms.ops.full((1, 1, 2, 2), 0.1), ms.ops.zeros((1, 1, 2, 2))).item():.2f}"
    '20.00'
    """

    def __init__(self, max_val: float = 1.0) -> None:
        super().__init__()
        if arg.number("PSNR", "max_val", max_val) <= 0:
            raise ArgumentValueError("PSNR", "max_val", got=str(max_val), takes="a positive number")
        self.max_val = max_val

    def construct(self, img1: Any, img2: Any) -> Any:
        a, b = _pair("PSNR", img1, img2)
        scale = 1 / self.max_val
        wide = [ops.cast(t, dt.float32) * scale for t in (a, b)]
        error = ops.mean(ops.square(wide[0] - wide[1]), (1, 2, 3))
        return -10 * ops.log10(error)
