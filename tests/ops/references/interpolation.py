"""References of resampling: torch where it has the mode, else a dense matrix for each axis."""

from __future__ import annotations

import numpy as np


def _keys(size, count, step):
    """Cubic convolution with the coefficient -0.5, taps outside left out and the rest rescaled."""
    matrix = np.zeros((count, size))
    for i in range(count):
        at = (i + 0.5) * (step or size / count) - 0.5
        for j in range(size):
            d = abs(at - j)
            if d <= 1:
                matrix[i, j] = 1.5 * d**3 - 2.5 * d**2 + 1
            elif d < 2:
                matrix[i, j] = -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2
    return matrix / matrix.sum(1, keepdims=True)


def _torch(x, *, sizes, mode, align, steps):
    import torch
    import torch.nn.functional as F

    n = len(sizes)
    names = {"linear": ("linear", "bilinear", "trilinear")[n - 1], "cubic": "bicubic"}
    word = names.get(mode, mode)
    corners = align if mode in ("linear", "cubic") else None
    if any(steps):
        factors = tuple(1 / s if s else c / d for s, c, d in zip(steps, sizes, x.shape[-n:], strict=True))
        return F.interpolate(x, scale_factor=factors, mode=word, align_corners=corners)
    return (
        F.interpolate(x, size=sizes, mode=word, align_corners=corners)
        if x.numel()
        else torch.zeros(x.shape[:-n] + sizes)
    )


def _resample(x, **attrs):
    import torch

    if attrs["mode"] != "keys":
        return _torch(torch.from_numpy(x), **attrs).numpy()
    for axis, (count, step) in enumerate(
        zip(attrs["sizes"], attrs["steps"], strict=True), x.ndim - len(attrs["sizes"])
    ):
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ _keys(x.shape[axis], count, step).T, -1, axis)
    return x


def _resample_grad(ct, *, input_shape, **attrs):
    import torch

    if attrs["mode"] == "keys":
        for axis, (count, step) in enumerate(
            zip(attrs["sizes"], attrs["steps"], strict=True), len(input_shape) - len(attrs["sizes"])
        ):
            ct = np.moveaxis(np.moveaxis(ct, axis, -1) @ _keys(input_shape[axis], count, step), -1, axis)
        return ct
    x = torch.zeros(input_shape, dtype=torch.float64, requires_grad=True)
    if not x.numel():
        return np.zeros(input_shape)
    return torch.autograd.grad(_torch(x, **attrs), x, torch.from_numpy(ct))[0].numpy()


TORCH_REFERENCES = {"resample": _resample, "resample_grad": _resample_grad}
