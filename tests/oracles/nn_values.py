"""Outputs of the layers and losses of the real MindSpore for fixed inputs and parameters, recorded for the tests.

    python nn_values.py        # with MindSpore 2.10, an environment of its own

``CASES`` is also the table of ``tests/nn/test_layers_both_modes.py``. ``nn_values.json`` holds, for each case
that MindSpore can compute on a CPU, its outputs and, in training, what its untrained parameters hold after
the call; the others are listed under ``"unsupported"``.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Case:
    """A layer, what it is called with, and how.

    Inputs are written ``"f 2 3"`` (floats of shape (2, 3)), ``"p 2 3"`` (floats between 0 and 1), ``"i5 2 3"``
    (ints below 5), ``"b 2 3"`` (bools), ``"one4 2"`` (one-hot floats of 4 classes), ``"s 2"`` (1 and -1 as floats),
    ``"= 2.5"`` (a number as a tensor), ``"int [2, 4]"`` and ``"float [2, 4]"`` (these numbers), or ``"-"`` (None).
    """

    layer: str
    inputs: tuple[str, ...]
    train: bool = False
    random: bool = False  # draws numbers: modes are compared by distribution elsewhere
    gradients: bool = True

    @property
    def name(self):
        return f"{self.layer}({', '.join(self.inputs)}){' train' if self.train else ''}"


def array(text, index):
    """The NumPy array an input stands for; None for ``"-"``."""
    kind, _, rest = text.partition(" ")
    if kind == "-":
        return None
    if kind == "=":
        return np.float32(rest)
    if kind in ("int", "float"):
        return np.array(json.loads(rest), np.int32 if kind == "int" else np.float32)
    shape = tuple(int(n) for n in rest.split())
    count = np.arange(int(np.prod(shape)))
    wave = np.cos(count * 0.51 + index * 0.7) * 1.5
    if kind == "f":
        return wave.reshape(shape).astype(np.float32)
    if kind == "p":
        return (0.5 + 0.3 * wave).reshape(shape).astype(np.float32)
    if kind == "b":
        return (wave > 0.9).reshape(shape)
    if kind == "s":
        return np.where(wave > 0, 1, -1).reshape(shape).astype(np.float32)
    numbers = (count * 7 + 3 + index) % int(kind.lstrip("ione"))
    if kind.startswith("one"):
        return np.eye(int(kind[3:]), dtype=np.float32)[numbers].reshape(*shape, -1)
    return numbers.reshape(shape).astype(np.int32)


def values_of(path, index, shape):
    """What a parameter is set to."""
    wave = np.sin(np.arange(int(np.prod(shape))) * 0.37 + index).reshape(shape).astype(np.float32) * np.float32(0.5)
    return np.abs(wave) + np.float32(0.5) if "variance" in path else wave


def _cases():
    c = Case
    images, rows, lines, volumes = "f 2 4 5 6", "f 3 4", "f 2 4 7", "f 2 4 3 5 4"
    layers = [
        c("Dense(4, 3)", (rows,)), c("Dense(4, 3, has_bias=False)", ("f 2 3 4",)), c("Dense(4, 3)", ("f 4",)),
        c("Dense(4, 3, activation='tanh')", (rows,)), c("Linear(4, 3)", (rows,)), c("BiDense(4, 5, 3)", (rows, "f 3 5")),
        c("Conv2d(4, 6, 3)", (images,)), c("Conv2d(4, 6, 3, 2, has_bias=True)", (images,)),
        c("Conv2d(4, 6, (3, 2), (2, 1), 'valid')", (images,)), c("Conv2d(4, 6, 3, 1, 'pad', (1, 0, 2, 1))", (images,)),
        c("Conv2d(4, 6, 3, pad_mode='pad', padding=1, dilation=2)", (images,)), c("Conv2d(4, 6, 3, group=2)", (images,)),
        c("Conv2d(4, 4, 3, group=4, has_bias=True)", (images,)), c("Conv1d(4, 6, 3)", (lines,)),
        c("Conv1d(4, 6, 3, 2, 'pad', 1, has_bias=True)", (lines,)), c("Conv1d(4, 6, 2, 1, 'valid', dilation=2, group=2)", (lines,)),
        c("Conv3d(4, 2, 2)", (volumes,)), c("Conv3d(4, 2, (2, 3, 2), 1, 'pad', (1, 0, 1, 1, 0, 1), has_bias=True)", (volumes,)),
        *[c(f"Conv2dTranspose(4, 3, {o})", (images,)) for o in (
            "3", "3, 2", "2, 3", "3, 2, 'valid'", "2, 3, 'valid'", "3, 2, 'pad', 1", "3, 2, 'pad', 1, 1",
            "3, 2, 'pad', (1, 0, 2, 1), dilation=2", "3, 2, has_bias=True")],
        c("Conv2dTranspose(4, 4, 3, group=2)", (images,)), c("Conv1dTranspose(4, 3, 3, 2)", (lines,)),
        c("Conv1dTranspose(4, 3, 3, 2, 'pad', 1, has_bias=True)", (lines,)), c("Conv1dTranspose(4, 3, 2, 3, 'valid')", (lines,)),
        c("Conv3dTranspose(4, 2, 3, 2)", (volumes,)), c("Conv3dTranspose(4, 2, 3, 2, 'pad', 1, output_padding=1, has_bias=True)", (volumes,)),
        c("Conv2dBnAct(4, 3, 3, has_bn=True, activation='relu')", (images,), train=True),
        c("DenseBnAct(4, 3, has_bn=True, activation='sigmoid')", (rows,)), c("TimeDistributed(nn.Dense(4, 3), 1)", ("f 2 3 4",)),
        c("TimeDistributed(nn.Dense(4, 3), 1, 0)", ("f 2 3 4",)),
    ]  # fmt: skip
    for train in (False, True):
        layers += [
            c("BatchNorm1d(4)", (rows,), train), c("BatchNorm1d(4)", (lines,), train), c("BatchNorm2d(4)", (images,), train),
            c("BatchNorm2d(4, eps=1e-3, momentum=0.5)", (images,), train), c("BatchNorm3d(4)", (volumes,), train),
            c("BatchNorm2d(4, use_batch_statistics=True)", (images,), train),
            c("BatchNorm2d(4, use_batch_statistics=False)", (images,), train), c("BatchNorm2d(4, affine=False)", (images,), train),
            c("SyncBatchNorm(4)", (images,), train), c("InstanceNorm1d(4)", (lines,), train),
            c("InstanceNorm2d(4)", (images,), train), c("InstanceNorm3d(4)", (volumes,), train),
        ]  # fmt: skip
    layers += [
        c("LayerNorm((4,))", (rows,)), c("LayerNorm((3, 4), 1, 1)", ("f 2 3 4",)), c("LayerNorm([4], epsilon=1e-3)", ("f 2 3 4",)),
        c("LayerNorm((4,), begin_norm_axis=1, begin_params_axis=2)", ("f 2 3 4",)), c("LayerNormExt((3, 4))", ("f 2 3 4",)),
        c("GroupNorm(2, 4)", (images,)), c("GroupNorm(4, 4, affine=False)", (lines,)),
        c("Embedding(5, 3)", ("i5 2 4",)), c("Embedding(5, 3, True)", ("i5 2 4",)), c("Embedding(5, 3, padding_idx=2)", ("i5 2 4",)),
        c("EmbeddingLookup(5, 3)", ("i7 2 4",)), c("EmbeddingLookup(5, 3, max_norm=0.5)", ("i5 2 4",)),
        c("Dropout(p=0.3)", (rows,)), c("Dropout(p=0.3)", (rows,), train=True, random=True),
        c("Dropout1d(0.5)", (lines,), train=True, random=True), c("Dropout2d(0.5)", (images,), train=True, random=True),
        c("Dropout3d(0.5)", (volumes,), train=True, random=True),
        c("Identity()", (rows,)), c("Flatten()", (images,)), c("Flatten(2)", (images,)), c("Flatten(0, -2)", (images,)),
        c("Unflatten(1, (2, 2))", (images,)), c("Unflatten(-1, (3, -1))", (images,)), c("Roll(1, 0)", (rows,)),
        c("Roll([1, -2], [0, 1])", (rows,)), c("Tril()", (images,)), c("Triu()", (rows,)), c("OneHot(depth=4)", ("i5 2 3",)),
        c("OneHot(1, 4, 2.0, -1.0)", ("i4 2 3",)), c("PixelShuffle(2)", (images,)), c("PixelUnshuffle(2)", ("f 2 3 4 6",)),
        c("ChannelShuffle(2)", (images,)), c("Unfold([1, 2, 3, 1], [1, 2, 1, 1], [1, 1, 2, 1])", (images,)),
        c("Unfold([1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], 'same')", (images,)),
        c("Upsample(size=(7, 4))", (images,)), c("Upsample(size=(7, 4), mode='bilinear')", (images,)),
        c("Upsample(size=(7, 4), mode='bilinear', align_corners=True)", (images,)), c("Upsample(size=(9,), mode='linear')", (lines,)),
        c("MatrixDiag()", ("f 2 3",)), c("MatrixDiagPart()", ("f 2 3 4",)), c("MatrixSetDiag()", ("f 2 3 4", "f 2 3")),
        *[c(f"Pad(((0, 0), (0, 0), (1, 2), (2, 1)), '{mode}')", (images,)) for mode in ("CONSTANT", "REFLECT", "SYMMETRIC")],
        c("ConstantPad1d((1, 2), 0.5)", (lines,)), c("ConstantPad1d(1, 0.5)", ("f 4",)), c("ConstantPad2d((1, 0, -1, 1), 9)", (images,)),
        c("ConstantPad3d(1, 9.0)", (volumes,)), c("ZeroPad2d((1, 1, -1, 0))", (images,)), c("ReflectionPad1d(2)", (lines,)),
        c("ReflectionPad1d((0, 3))", (rows,)), c("ReflectionPad2d((1, 2, 0, 3))", (images,)), c("ReflectionPad2d(1)", (rows,)),
        c("ReflectionPad3d(1)", (volumes,)), c("ReplicationPad1d((3, 0))", (lines,)), c("ReplicationPad2d((1, 2, 0, 7))", (images,)),
        c("ReplicationPad3d(1)", (volumes,)),
    ]  # fmt: skip
    layers += [
        c("MaxPool2d(2, 2)", (images,)), c("MaxPool2d(3, 2, 'same')", (images,)), c("MaxPool2d((2, 3), (1, 2))", (images,)),
        c("MaxPool2d(2, 2, 'pad', 1)", (images,)), c("MaxPool2d(2, 2, 'pad', 1, return_indices=True)", (images,)),
        c("MaxPool2d(2, 2, 'pad', ceil_mode=True)", (images,)), c("MaxPool2d(2, dilation=2, pad_mode='pad')", (images,)),
        c("MaxPool2d(2, 2)", ("f 4 5 6",)), c("MaxPool1d(2, 2)", (lines,)), c("MaxPool1d(3, 2, 'same')", (lines,)),
        c("MaxPool1d(3, 2, 'pad', 1, return_indices=True)", (lines,)), c("MaxPool3d(2, 2)", (volumes,)),
        c("MaxPool3d(2, 2, 'same')", (volumes,)), c("MaxPool3d(2, 2, 'pad', 1)", (volumes,)),
        c("AvgPool2d(2, 2)", (images,)), c("AvgPool2d(3, 2, 'same')", (images,)), c("AvgPool2d(2, 2, 'pad', 1)", (images,)),
        c("AvgPool2d(2, 2, 'pad', 1, count_include_pad=False)", (images,)), c("AvgPool2d(2, 2, 'pad', ceil_mode=True)", (images,)),
        c("AvgPool2d(2, 2, ceil_mode=True)", (images,)), c("AvgPool2d(2, 2, 'pad', 1, divisor_override=3)", (images,)),
        c("AvgPool1d(2, 2)", (lines,)), c("AvgPool1d(3, 2, 'same')", (lines,)), c("AvgPool1d(3, 2, 'pad', 1)", (lines,)),
        c("AvgPool3d(2, 2)", (volumes,)), c("AvgPool3d(2, 2, 'same')", (volumes,)),
        c("AvgPool3d(2, 2, 'pad', 1, count_include_pad=False)", (volumes,)),
        c("AdaptiveAvgPool1d(7)", (lines,)), c("AdaptiveAvgPool1d(1)", (lines,)), c("AdaptiveAvgPool2d((2, None))", (images,)),
        c("AdaptiveAvgPool2d(4)", (images,)), c("AdaptiveAvgPool3d((2, 2, 3))", (volumes,)), c("AdaptiveMaxPool1d(1)", (lines,)),
        c("AdaptiveMaxPool2d((3, 4), True)", (images,)), c("AdaptiveMaxPool2d(2)", (images,)), c("AdaptiveMaxPool3d(2, True)", (volumes,)),
        c("LPPool1d(2.0, 3)", (lines,)), c("LPPool2d(2.0, 2, 1)", (images,)), c("LPPool2d(3.0, 2, 2, True)", ("p 2 4 5 6",)),
        c("MaxUnpool1d(2)", ("f 2 2", "int [[1, 2], [0, 3]]")), c("MaxUnpool2d(2)", ("f 1 1 2 2", "int [[[[1, 2], [8, 15]]]]")),
    ]  # fmt: skip
    activations = (
        "ReLU()", "ReLU6()", "LeakyReLU()", "LeakyReLU(0.5)", "ELU()", "CELU()", "CELU(0.5)", "SeLU()", "SiLU()", "Mish()",
        "GELU()", "GELU(False)", "FastGelu()", "Sigmoid()", "LogSigmoid()", "HSigmoid()", "HSwish()", "Tanh()", "Tanhshrink()",
        "Hardtanh()", "Hardtanh(-0.5, 0.7)", "Softsign()", "SoftShrink()", "HShrink(0.3)", "Threshold(0.2, 9.0)", "Softmax()",
        "Softmax(1)", "LogSoftmax()", "LogSoftmax(0)", "Softmin()", "GLU()", "PReLU()", "PReLU(4)", "LogSoftmaxExt()",
    )  # fmt: skip
    layers += [c(text, ("f 3 4",)) for text in activations]
    layers += [
        c("Softmax2d()", (images,)), c("LRN()", (images,)), c("LRN(2, 2.0, 0.5, 0.75)", (images,)), c("PReLU(4)", (images,)),
        c("RReLU()", (rows,), random=True), c("Norm()", (rows,)), c("Norm(1, True)", (rows,)), c("ClipByNorm()", (rows, "= 1.0")),
        c("ClipByNorm(0)", (rows, "= 2.0")), c("L1Regularizer(0.5)", (rows,)), c("Moments(0)", (rows,)),
        c("Moments((0, 1), True)", (rows,)), c("MatMul(False, True)", (rows, "f 5 4")), c("Range(1, 8, 2)", ()),
        c("ReduceLogSumExp(1)", (rows,)), c("LGamma()", (rows,)), c("DiGamma()", ("p 3 4",)), c("IGamma()", ("p 3 4", "p 3 4")),
        c("LBeta()", ("p 3 4", "p 3 4")), c("MatInverse()", ("float [[4, 2], [2, 3]]",)),
        c("ImageGradients()", (images,)), c("CentralCrop(0.5)", (images,)), c("PSNR()", ("p 2 3 4 4", "p 2 3 4 4")),
        c("SSIM(filter_size=3)", ("p 2 3 6 5", "p 2 3 6 5")), c("MSSSIM(power_factors=(0.4, 0.6), filter_size=2)", ("p 2 3 6 6", "p 2 3 6 6")),
        c("SequentialCell(nn.Dense(4, 3), nn.ReLU(), nn.Dense(3, 2))", (rows,)),
        c("SequentialCell(nn.Conv2d(4, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Dense(90, 2))", (images,), train=True),
    ]  # fmt: skip
    sequence, state = "f 4 2 3", "f 1 2 5"
    for kind in ("RNN", "GRU", "LSTM"):
        layers += [
            c(f"{kind}(3, 5)", (sequence,)), c(f"{kind}(3, 5, 2, bidirectional=True)", (sequence,)),
            c(f"{kind}(3, 5, has_bias=False, batch_first=True)", (sequence,)),
            c(f"{kind}(3, 5, bidirectional=True)", (sequence, "-", "int [2, 4]")), c(f"{kind}(3, 5)", (sequence, "-", "int [4, 1]")),
            c(f"{kind}(3, 5, 2, dropout=0.5)", (sequence,), train=True, random=True),
        ]  # fmt: skip
    layers += [
        c("RNN(3, 5, nonlinearity='relu')", (sequence,)), c("RNN(3, 5)", (sequence, state)), c("GRU(3, 5)", (sequence, state)),
        c("RNNCell(3, 5)", ("f 2 3", "f 2 5")), c("RNNCell(3, 5, False, 'relu')", ("f 2 3", "f 2 5")),
        c("GRUCell(3, 5)", ("f 2 3", "f 2 5")), c("GRUCell(3, 5, False)", ("f 2 3", "f 2 5")),
        c("MultiheadAttention(8, 2)", ("f 3 2 8", "f 5 2 8", "f 5 2 8")), c("MultiheadAttention(8, 2)", ("f 3 2 8", "f 5 2 8", "f 5 2 8", "b 2 5")),
        c("MultiheadAttention(8, 2, kdim=4, vdim=6)", ("f 3 2 8", "f 5 2 4", "f 5 2 6")),
        c("MultiheadAttention(8, 2, has_bias=False, add_bias_kv=True, add_zero_attn=True)", ("f 3 2 8", "f 5 2 8", "f 5 2 8")),
        c("MultiheadAttention(8, 2, batch_first=True)", ("f 2 3 8", "f 2 5 8", "f 2 5 8")),
        c("MultiheadAttention(8, 2)", ("f 3 8", "f 5 8", "f 5 8")), c("TransformerEncoderLayer(8, 2, 16)", ("f 3 2 8",)),
        c("TransformerEncoderLayer(8, 2, 16, activation='gelu', norm_first=True, batch_first=True)", ("f 2 3 8",)),
        c("TransformerEncoderLayer(8, 2, 16)", ("f 3 2 8",), train=True, random=True),
        c("TransformerDecoderLayer(8, 2, 16)", ("f 3 2 8", "f 5 2 8")),
        c("TransformerDecoderLayer(8, 2, 16, norm_first=True)", ("f 3 2 8", "f 5 2 8")), c("Transformer(8, 2, 1, 1, 16)", ("f 5 2 8", "f 3 2 8")),
        c("TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2, nn.LayerNorm((8,)))", ("f 3 2 8",)),
    ]  # fmt: skip
    two = ("f 2 3", "f 2 3")
    for r in ("mean", "sum", "none"):
        layers += [
            c(f"{name}(reduction='{r}')", two) for name in ("L1Loss", "MSELoss", "MAELoss", "SmoothL1Loss", "HuberLoss")
        ]  # fmt: skip
        layers += [
            c(f"SoftmaxCrossEntropyWithLogits(True, '{r}')", ("f 4 3", "i3 4")), c(f"SoftmaxCrossEntropyWithLogits(False, '{r}')", ("f 4 3", "one3 4")),
            c(f"CrossEntropyLoss(reduction='{r}')", ("f 4 3", "i3 4")),
            c(f"CrossEntropyLoss(Tensor([1.0, 2.0, 3.0]), 1, '{r}', 0.2)", ("f 4 3", "i3 4")),
            c(f"CrossEntropyLoss(reduction='{r}')", ("f 2 3 4", "i3 2 4")), c(f"CrossEntropyLoss(reduction='{r}')", ("f 4 3", "p 4 3")),
            c(f"NLLLoss(Tensor([1.0, 2.0, 3.0]), reduction='{r}')", ("f 4 3", "i3 4")), c(f"BCELoss(reduction='{r}')", ("p 3 4", "p 3 4")),
            c(f"BCEWithLogitsLoss('{r}')", ("f 3 4", "p 3 4")), c(f"KLDivLoss('{r}')", ("f 3 4", "p 3 4")),
            c(f"CosineEmbeddingLoss(0.2, '{r}')", ("f 3 4", "f 3 4", "s 3")), c(f"MarginRankingLoss(0.2, '{r}')", ("f 3", "f 3", "s 3")),
            c(f"HingeEmbeddingLoss(0.7, '{r}')", ("f 3 4", "s 3 4")), c(f"TripletMarginLoss(reduction='{r}')", ("f 3 4", "f 3 4", "f 3 4")),
            c(f"TripletMarginWithDistanceLoss(None, True, '{r}', 0.5)", ("f 3 4", "f 3 4", "f 3 4")),
            c(f"FocalLoss(None, 2.0, '{r}')", ("f 2 3", "int [[0], [2]]")), c(f"FocalLoss(Tensor([1.0, 2.0, 3.0]), 1.5, '{r}')", ("f 2 3 4", "i3 2 1 4")),
            c(f"FocalLoss(Tensor([1.0, 2.0, 3.0]), reduction='{r}')", ("f 2 3", "one3 2")),
            c(f"SoftMarginLoss('{r}')", ("f 3 4", "s 3 4")), c(f"GaussianNLLLoss(full=True, reduction='{r}')", ("f 3 4", "f 3 4", "p 3 4")),
            c(f"PoissonNLLLoss(reduction='{r}')", ("f 3 4", "p 3 4")), c(f"PoissonNLLLoss(False, True, 1e-6, '{r}')", ("p 3 4", "i5 3 4")),
            c(f"MultiLabelSoftMarginLoss(reduction='{r}')", ("f 3 4", "one4 3")),
            c(f"CTCLoss(0, '{r}')", ("f 5 2 4", "int [[1, 2], [3, 1]]", "int [5, 4]", "int [2, 1]")),
        ]  # fmt: skip
    layers += [
        c("RMSELoss()", two), c("KLDivLoss('batchmean')", ("f 3 4", "p 3 4")), c("DiceLoss()", ("p 3 4", "one4 3")),
        c("MultiClassDiceLoss()", ("f 3 4", "one4 3")), c("MultiClassDiceLoss(ignore_indiex=1, activation='sigmoid')", ("f 3 4", "one4 3")),
        c("BCEWithLogitsLoss('sum', Tensor([1.0, 2.0, 3.0, 4.0]), Tensor([2.0, 1.0, 1.0, 0.5]))", ("f 3 4", "p 3 4")),
        c("BCELoss(Tensor([[1.0, 2.0, 3.0, 4.0]] * 3), 'none')", ("p 3 4", "p 3 4")), c("SmoothL1Loss(0.3)", two), c("HuberLoss('none', 0.3)", two),
    ]  # fmt: skip
    return tuple(layers)


CASES = _cases()


def flat(result):
    """The tensors of a result, nested tuples flattened."""
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in flat(part)]
    return [result]


def prepare(cell, train, tensor):
    """Set all parameters to fixed values."""
    for i, (path, p) in enumerate(cell.parameters_and_names()):
        p.set_data(tensor(values_of(path, i, p.shape)))
    cell.set_train(train)
    return cell


def main():
    from collections import OrderedDict

    import mindspore
    from mindspore import Tensor, nn

    scope = {**vars(nn), "nn": nn, "Tensor": Tensor, "OrderedDict": OrderedDict}
    rows, unsupported = {}, []
    for case in CASES:
        if case.random:
            continue
        try:
            cell = prepare(eval(case.layer, dict(scope)), case.train, Tensor)
            inputs = [None if a is None else Tensor(a) for a in (array(t, i) for i, t in enumerate(case.inputs))]
            outputs = [t.asnumpy() for t in flat(cell(*inputs))]
        except (RuntimeError, TypeError, ValueError) as error:
            unsupported.append(case.name)
            print(f"{case.name}: {str(error).strip()[:160]!r}")
            continue
        kept = [p.asnumpy() for p in cell.untrainable_params()] if case.train else []
        rows[case.name] = [[list(a.shape), [float(f"{v:.7g}") for v in a.ravel().tolist()]] for a in outputs + kept]
    file = os.path.splitext(os.path.abspath(__file__))[0] + ".json"
    with open(file, "w", encoding="utf-8") as out:
        json.dump(
            {"version": mindspore.__version__, "unsupported": unsupported, "cases": rows}, out, separators=(",", ":")
        )
        out.write("\n")


if __name__ == "__main__":
    main()
