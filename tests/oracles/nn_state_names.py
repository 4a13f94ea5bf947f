"""Parameters and texts of the layers of the real MindSpore, recorded for the tests.

    python nn_state_names.py        # with MindSpore 2.10, an environment of its own

``nn_state_names.json`` holds, for each expression below, the class, the text (``repr``; None where it shows
addresses or arrays) and one row ``[path, name, shape, dtype, requires_grad]`` for each parameter in the order
of ``parameters_and_names``.
"""

from __future__ import annotations

import json
import os

EXPRESSIONS = (
    # fully connected
    "Dense(3, 4)",
    "Dense(3, 4, has_bias=False)",
    "Dense(3, 4, activation='relu')",
    "Linear(3, 4)",
    "Linear(3, 4, bias=False)",
    "BiDense(2, 3, 4)",
    "Dense(3, 4, activation=nn.LeakyReLU(0.1))",
    # convolutions
    "Conv1d(3, 4, 2)",
    "Conv1d(3, 4, 2, has_bias=True)",
    "Conv2d(3, 4, 2)",
    "Conv2d(4, 8, (3, 2), group=2)",
    "Conv2d(3, 4, 3, pad_mode='pad', padding=1, has_bias=True)",
    "Conv3d(3, 4, 2)",
    "Conv3d(3, 4, (2, 3, 4), has_bias=True)",
    "Conv1dTranspose(3, 4, 2)",
    "Conv1dTranspose(3, 4, 2, has_bias=True)",
    "Conv2dTranspose(3, 4, 2)",
    "Conv2dTranspose(4, 6, (3, 2), group=2, has_bias=True)",
    "Conv3dTranspose(3, 4, 2)",
    "Conv3dTranspose(3, 4, 2, has_bias=True)",
    "Conv2dBnAct(3, 4, 2, has_bn=True, activation='relu')",
    "Conv2dBnAct(3, 4, 2, has_bias=True, activation='relu')",
    "DenseBnAct(3, 4, has_bn=True, activation='relu')",
    "DenseBnAct(3, 4)",
    # normalization
    "BatchNorm1d(4)",
    "BatchNorm2d(4)",
    "BatchNorm2d(4, affine=False)",
    "BatchNorm2d(4, use_batch_statistics=False)",
    "BatchNorm3d(4)",
    "SyncBatchNorm(4)",
    "LayerNorm((3, 4), begin_norm_axis=1, begin_params_axis=1)",
    "LayerNorm([4])",
    "GroupNorm(2, 4)",
    "GroupNorm(2, 4, affine=False)",
    "InstanceNorm1d(4)",
    "InstanceNorm2d(4)",
    "InstanceNorm2d(4, affine=False)",
    "InstanceNorm3d(4)",
    # embedding and dropout
    "Embedding(5, 3)",
    "Embedding(5, 3, True)",
    "Embedding(5, 3, padding_idx=1)",
    "EmbeddingLookup(5, 3)",
    "Dropout(p=0.3)",
    "Dropout(0.8)",
    "Dropout()",
    "Dropout1d(0.3)",
    "Dropout2d(0.3)",
    "Dropout3d(0.3)",
    # shape and padding
    "Flatten()",
    "Flatten(start_dim=2)",
    "Unflatten(1, (2, 3))",
    "Identity()",
    "Pad(((1, 1), (2, 2)))",
    "ConstantPad1d(1, 0.5)",
    "ConstantPad2d((1, 1, 0, 1), 1.5)",
    "ConstantPad3d(1, 2.0)",
    "ReflectionPad1d(2)",
    "ReflectionPad2d((1, 2, 1, 2))",
    "ReflectionPad3d(1)",
    "ReplicationPad1d((1, 2))",
    "ReplicationPad2d(2)",
    "ReplicationPad3d(1)",
    "ZeroPad2d((1, 1, 1, 1))",
    "PixelShuffle(2)",
    "PixelUnshuffle(2)",
    "ChannelShuffle(2)",
    "Upsample(scale_factor=2.0, mode='bilinear')",
    "Roll(1, 0)",
    "Unfold([1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1])",
    "Tril()",
    "Triu()",
    "OneHot(depth=4)",
    # pooling
    "MaxPool1d(2, 2)",
    "MaxPool2d(2, 2)",
    "MaxPool2d(2, 2, pad_mode='same')",
    "MaxPool3d(2, 2)",
    "AvgPool1d(2, 2)",
    "AvgPool2d(2, 2)",
    "AvgPool3d(2, 2)",
    "AdaptiveAvgPool1d(2)",
    "AdaptiveAvgPool2d(2)",
    "AdaptiveAvgPool3d((1, 2, 3))",
    "AdaptiveMaxPool1d(2)",
    "AdaptiveMaxPool2d((None, 2))",
    "AdaptiveMaxPool3d(2)",
    "LPPool1d(2.0, 3)",
    "LPPool2d(2.0, 3)",
    "MaxUnpool1d(2)",
    "MaxUnpool2d(2, 2)",
    "MaxUnpool3d(2)",
    "FractionalMaxPool2d(2, output_size=2)",
    # activations
    "ReLU()",
    "ReLU6()",
    "LeakyReLU()",
    "RReLU()",
    "ELU()",
    "CELU()",
    "SeLU()",
    "SiLU()",
    "GELU()",
    "FastGelu()",
    "Sigmoid()",
    "Tanh()",
    "Tanhshrink()",
    "LogSigmoid()",
    "Softmax()",
    "Softmax(1)",
    "LogSoftmax()",
    "Softmin()",
    "Softmax2d()",
    "Softsign()",
    "SoftShrink()",
    "HShrink()",
    "HSigmoid()",
    "HSwish()",
    "Hardtanh()",
    "Mish()",
    "PReLU()",
    "PReLU(3, 0.1)",
    "Threshold(1, 2)",
    "GLU()",
    "LRN()",
    # containers
    "SequentialCell()",
    "SequentialCell(nn.Dense(2, 3), nn.ReLU(), nn.Dense(3, 1))",
    "SequentialCell([nn.Dense(2, 3), nn.ReLU()])",
    "SequentialCell(OrderedDict([('fc', nn.Dense(2, 3)), ('act', nn.ReLU())]))",
    "CellList([nn.Dense(2, 3), nn.Conv2d(1, 1, 1)])",
    "CellDict({'a': nn.Dense(2, 3), 'b': nn.ReLU()})",
    "SequentialCell(nn.SequentialCell(nn.Dense(2, 3), nn.BatchNorm1d(3)), nn.CellList([nn.Dense(3, 1)]))",
    # recurrent
    "RNNCell(3, 4)",
    "LSTMCell(3, 4)",
    "GRUCell(3, 4)",
    "GRUCell(3, 4, has_bias=False)",
    "RNN(3, 4)",
    "GRU(3, 4)",
    "LSTM(3, 4)",
    "LSTM(3, 4, 2, bidirectional=True)",
    "GRU(3, 4, 2, has_bias=False)",
    "RNN(3, 4, bidirectional=True)",
    # attention
    "MultiheadAttention(8, 2)",
    "MultiheadAttention(8, 2, kdim=4, vdim=6)",
    "MultiheadAttention(8, 2, has_bias=False)",
    "MultiheadAttention(8, 2, add_bias_kv=True)",
    "TransformerEncoderLayer(8, 2, 16)",
    "TransformerDecoderLayer(8, 2, 16)",
    "TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)",
    "TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2, nn.LayerNorm((8,)))",
    "Transformer(8, 2, 1, 1, 16)",
    # others
    "Norm()",
    "ClipByNorm()",
    "L1Regularizer(0.5)",
    "Moments()",
    "MatMul()",
    "Range(1, 5)",
    "ReduceLogSumExp(1)",
    "SSIM()",
    "MSSSIM()",
    "PSNR()",
    "ImageGradients()",
    "CentralCrop(0.5)",
    "TimeDistributed(nn.Dense(2, 3), 1)",
    # losses
    "L1Loss()",
    "MSELoss()",
    "RMSELoss()",
    "MAELoss()",
    "SmoothL1Loss()",
    "HuberLoss()",
    "SoftmaxCrossEntropyWithLogits()",
    "CrossEntropyLoss()",
    "NLLLoss()",
    "BCELoss()",
    "BCEWithLogitsLoss()",
    "KLDivLoss()",
    "CosineEmbeddingLoss()",
    "MarginRankingLoss()",
    "TripletMarginLoss()",
    "HingeEmbeddingLoss()",
    "CTCLoss()",
    "DiceLoss()",
    "FocalLoss()",
    "MultiClassDiceLoss()",
    "GaussianNLLLoss()",
    "PoissonNLLLoss()",
    "SoftMarginLoss()",
    "MultiMarginLoss()",
    "MultiLabelSoftMarginLoss()",
    "MultilabelMarginLoss()",
    "SampledSoftmaxLoss(4, 7)",
    "BCELoss(weight=Tensor([1.0, 2.0]))",
)


def describe(cell):
    """What is recorded of one layer; the tests ask the same of ours."""
    text = repr(cell)
    return {
        "class": type(cell).__name__,
        "text": None if " object at 0x" in text or "[[[[" in text else text,
        "parameters": [
            [path, p.name, list(p.shape), str(p.dtype), bool(p.requires_grad)]
            for path, p in cell.parameters_and_names()
        ],
    }


def main():
    from collections import OrderedDict

    import mindspore
    from mindspore import Tensor, nn

    scope = {**vars(nn), "nn": nn, "Tensor": Tensor, "OrderedDict": OrderedDict}
    rows = {}
    for text in EXPRESSIONS:
        rows[text] = describe(eval(text, dict(scope)))
    file = os.path.splitext(os.path.abspath(__file__))[0] + ".json"
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"version": mindspore.__version__, "layers": rows}, out, indent=0)
        out.write("\n")


if __name__ == "__main__":
    main()
