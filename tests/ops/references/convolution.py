"""References of convolution and its gradients, from torch; the kernel layout is the same."""

from __future__ import annotations

import numpy as np


def _torch(x, w, *, strides, padding, dilation, groups, channels_last):
    import torch
    import torch.nn.functional as F

    if channels_last:
        x = x.movedim(-1, 1)
    flat = [p for pair in reversed(padding) for p in pair]
    conv = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(strides)]
    y = conv(F.pad(x, flat), w, None, strides, 0, dilation, groups)
    return torch.movedim(y, 1, -1) if channels_last else y


def _conv(x, w, bias=None, **attrs):
    import torch

    y = _torch(torch.from_numpy(x), torch.from_numpy(w), **attrs).numpy()
    if bias is None:
        return y
    return y + (bias if attrs["channels_last"] else bias.reshape((-1,) + (1,) * (x.ndim - 2)))


def _gradients(x, w, ct, attrs):
    import torch

    x, w = torch.from_numpy(x).requires_grad_(), torch.from_numpy(w).requires_grad_()
    return [g.numpy() for g in torch.autograd.grad(_torch(x, w, **attrs), (x, w), torch.from_numpy(ct))]


def _conv_input_grad(ct, w, *, input_shape, **attrs):
    return _gradients(np.zeros(input_shape), w, ct, attrs)[0]


def _conv_weight_grad(ct, x, *, weight_shape, **attrs):
    return _gradients(x, np.zeros(weight_shape), ct, attrs)[1]


TORCH_REFERENCES = {"conv": _conv, "conv_input_grad": _conv_input_grad, "conv_weight_grad": _conv_weight_grad}
