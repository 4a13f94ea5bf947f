"""What layers refuse: the error names the layer, the argument, what it got, what it takes, and the user's line."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops


def f(*shape):
    return ops.ones(shape)


MADE = [
    (lambda: nn.Dense(3.0, 2), TypeError, "Dense", "'in_channels'", "3.0", "an int"),
    (lambda: nn.Dense(0, 2), ValueError, "Dense", "'in_channels'", "0", "at least 1"),
    (lambda: nn.Dense(3, 2, has_bias=1), TypeError, "Dense", "'has_bias'", "1", "True or False"),
    (lambda: nn.Dense(3, 2, f(3, 2)), ValueError, "Dense", "'weight_init'", "(3, 2)", "(2, 3)"),
    (lambda: nn.Dense(3, 2, bias_init=f(3)), ValueError, "Dense", "'bias_init'", "(3,)", "(2,)"),
    (lambda: nn.Dense(3, 2, np.ones((2, 3))), TypeError, "Dense", "'weight_init'", "array", "a Tensor"),
    (lambda: nn.Dense(3, 2, "nromal"), ValueError, "initializer", "'init'", "'nromal'", "did you mean 'normal'"),
    (lambda: nn.Dense(3, 2, activation="rleu"), KeyError, "Dense", "'name'", "'rleu'", "did you mean 'relu'"),
    (lambda: nn.Dense(3, 2, activation=3), TypeError, "Dense", "'activation'", "3", "a Cell"),
    (lambda: nn.Dense(3, 2, activation=nn.ReLU), TypeError, "Dense", "'activation'", "ReLU", "make one: ReLU()"),
    (lambda: nn.Dense(3, 2, dtype=ms.int32), TypeError, "Dense", "'dtype'", "Int32", "floating"),
    (lambda: nn.Conv2d(4, 4, (3, 2, 1)), TypeError, "Conv2d", "'kernel_size'", "(3, 2, 1)", "2 ints"),
    (lambda: nn.Conv2d(4, 4, 0), ValueError, "Conv2d", "'kernel_size'", "0", "at least 1"),
    (lambda: nn.Conv2d(4, 4, 2.0), TypeError, "Conv2d", "'kernel_size'", "2.0", "an int or 2 ints"),
    (lambda: nn.Conv2d(4, 4, 2, pad_mode="foo"), ValueError, "Conv2d", "'pad_mode'", "'foo'", "'same', 'valid', 'pad'"),
    (
        lambda: nn.Conv2d(4, 4, 2, padding=1),
        ValueError, "Conv2d", "'padding'", "1 with pad_mode='same'", "pad_mode='pad'",
    ),
    (
        lambda: nn.Conv2d(4, 4, 2, pad_mode="pad", padding=(1, 1)),
        ValueError, "Conv2d", "'padding'", "(1, 1)", "4 of them",
    ),
    (lambda: nn.Conv2d(4, 4, 2, pad_mode="pad", padding=-1), ValueError, "Conv2d", "'padding'", "-1", "at least 0"),
    (lambda: nn.Conv2d(4, 6, 2, group=4), ValueError, "Conv2d", "'out_channels'", "6 with group=4", "a multiple"),
    (lambda: nn.Conv2d(4, 6, 2, group=3), ValueError, "Conv2d", "'in_channels'", "4 with group=3", "a multiple"),
    (lambda: nn.Conv2d(4, 6, 2, data_format="NCDHW"), ValueError, "Conv2d", "'data_format'", "'NCDHW'", "'NHWC'"),
    (
        lambda: nn.Conv3d(4, 6, 2, data_format="NDHWC"),
        NotImplementedError, "Conv3d", "'data_format'", "'NDHWC'", "'NCDHW'",
    ),
    (lambda: nn.Conv1d(4, 3, (3,)), TypeError, "Conv1d", "'kernel_size'", "(3,)", "an int"),
    (
        lambda: nn.Conv2dTranspose(4, 3, 3, 2, output_padding=1),
        ValueError, "Conv2dTranspose", "'output_padding'", "1", "0",
    ),
    (
        lambda: nn.Conv2dTranspose(4, 3, 3, 2, "pad", output_padding=2),
        ValueError, "Conv2dTranspose", "'output_padding'", "2", "less than stride",
    ),
    (lambda: nn.BatchNorm2d(0), ValueError, "BatchNorm2d", "'num_features'", "0", "at least 1"),
    (lambda: nn.BatchNorm2d(3, momentum=1.5), ValueError, "BatchNorm2d", "'momentum'", "1.5", "from 0 to 1"),
    (
        lambda: nn.BatchNorm1d(3, use_batch_statistics=1),
        TypeError, "BatchNorm1d", "'use_batch_statistics'", "1", "None",
    ),
    (lambda: nn.BatchNorm2d(3, gamma_init=f(4)), ValueError, "BatchNorm2d", "'gamma_init'", "(4,)", "(3,)"),
    (lambda: nn.SyncBatchNorm(3, process_groups=3), TypeError, "SyncBatchNorm", "'process_groups'", "int", "a list"),
    (lambda: nn.LayerNorm(2), TypeError, "LayerNorm", "'normalized_shape'", "2", "a tuple or list"),
    (lambda: nn.LayerNorm(()), ValueError, "LayerNorm", "'normalized_shape'", "()", "at least one"),
    (lambda: nn.GroupNorm(2, 3), ValueError, "GroupNorm", "'num_channels'", "3 with num_groups=2", "a multiple"),
    (lambda: nn.Embedding(5, 3, padding_idx=7), ValueError, "Embedding", "'padding_idx'", "7", "0 to 4"),
    (
        lambda: nn.Embedding(5, 3, embedding_table=f(4, 3)),
        ValueError, "Embedding", "'embedding_table'", "(4, 3)", "(5, 3)",
    ),
    (lambda: nn.EmbeddingLookup(5, 3, target="X"), ValueError, "EmbeddingLookup", "'target'", "'X'", "'DEVICE'"),
    (lambda: nn.EmbeddingLookup(5, 3, sparse=False), ValueError, "EmbeddingLookup", "'sparse'", "False", "True"),
    (lambda: nn.Dropout(p=1.0), ValueError, "Dropout", "'p'", "1.0", "below 1"),
    (lambda: nn.Dropout(keep_prob=0), ValueError, "Dropout", "'keep_prob'", "0", "above 0"),
    (lambda: nn.Dropout(p="a"), TypeError, "Dropout", "'p'", "'a'", "a number"),
    (lambda: nn.Dropout2d(1.5), ValueError, "Dropout2d", "'p'", "1.5", "from 0 to 1"),
    (lambda: nn.Unflatten(1, 3), TypeError, "Unflatten", "'unflattened_size'", "int", "a tuple"),
    (lambda: nn.Roll([1, 2], [0]), ValueError, "Roll", "'axis'", "[0]", "2"),
    (lambda: nn.Unfold([1, 2, 2, 2], [1] * 4, [1] * 4), ValueError, "Unfold", "'ksizes'", "[1, 2, 2, 2]", "[1, rows"),
    (lambda: nn.Pad([[0, 0]]), TypeError, "Pad", "'paddings'", "list", "a tuple"),
    (lambda: nn.Pad(((0, 0),), "x"), ValueError, "Pad", "'mode'", "'x'", "'REFLECT'"),
    (lambda: nn.Pad(((-1, 0),)), ValueError, "Pad", "'paddings'", "-1", "at least 0"),
    (lambda: nn.ReflectionPad2d(-1), ValueError, "ReflectionPad2d", "'padding'", "-1", "at least 0"),
    (lambda: nn.ConstantPad2d((1, 0, 1), 9), ValueError, "ConstantPad2d", "'padding'", "(1, 0, 1)", "4 ints"),
    (lambda: nn.ConstantPad1d(1, "a"), TypeError, "ConstantPad1d", "'value'", "'a'", "a number"),
    (lambda: nn.MaxPool2d(0), ValueError, "MaxPool2d", "'kernel_size'", "0", "at least 1"),
    (
        lambda: nn.MaxPool2d(2, ceil_mode=True),
        ValueError, "MaxPool2d", "'ceil_mode'", "pad_mode='valid'", "pad_mode='pad'",
    ),
    (lambda: nn.MaxPool2d(2, padding=1), ValueError, "MaxPool2d", "'padding'", "pad_mode='valid'", "pad_mode='pad'"),
    (lambda: nn.MaxPool2d(2, 2, "pad", 2), ValueError, "MaxPool2d", "'padding'", "2", "half of the kernel"),
    (lambda: nn.AvgPool2d(2, divisor_override=0), ValueError, "AvgPool2d", "'divisor_override'", "0", "at least 1"),
    (
        lambda: nn.AdaptiveAvgPool2d((1, 2, 3)),
        ValueError, "AdaptiveAvgPool2d", "'output_size'", "(1, 2, 3)", "2 of them",
    ),
    (lambda: nn.LPPool1d(0, 2), ValueError, "LPPool1d", "'norm_type'", "0", "other than 0"),
    (lambda: nn.FractionalMaxPool2d(2), ValueError, "FractionalMaxPool2d", "'output_size'", "None", "output_ratio"),
    (lambda: nn.PReLU(3, [0.1, 0.2]), ValueError, "PReLU", "'w'", "(2,)", "(3,)"),
    (lambda: nn.PReLU(1, "a"), TypeError, "PReLU", "'w'", "'a'", "a list or a Tensor"),
    (lambda: nn.LeakyReLU("a"), TypeError, "LeakyReLU", "'alpha'", "'a'", "a number"),
    (lambda: nn.CELU(0.0), ValueError, "CELU", "'alpha'", "0.0", "other than 0"),
    (lambda: nn.RReLU(0.5, 0.2), ValueError, "RReLU", "'upper'", "0.2", "at least 0.5"),
    (lambda: nn.Hardtanh(1.0, -1.0), ValueError, "Hardtanh", "'max_val'", "-1.0", "at least 1.0"),
    (lambda: nn.get_activation("x"), KeyError, "get_activation", "'name'", "'x'", "relu"),
    (lambda: nn.L1Regularizer(-1), ValueError, "L1Regularizer", "'scale'", "-1", "positive"),
    (lambda: nn.RNN(3, 5, dropout=1.5), ValueError, "RNN", "'dropout'", "1.5", "below 1"),
    (lambda: nn.RNN(3, 5, nonlinearity="x"), ValueError, "RNN", "'nonlinearity'", "'x'", "'tanh', 'relu'"),
    (lambda: nn.GRU(3, 5, num_layers=0), ValueError, "GRU", "'num_layers'", "0", "at least 1"),
    (
        lambda: nn.MultiheadAttention(8, 3),
        ValueError, "MultiheadAttention", "'embed_dim'", "8 with num_heads=3", "a multiple",
    ),
    (
        lambda: nn.TransformerEncoderLayer(8, 2, activation="tanh"),
        ValueError, "TransformerEncoderLayer", "'activation'", "'tanh'", "'relu', 'gelu'",
    ),
    (
        lambda: nn.TransformerEncoder(3, 2),
        TypeError, "TransformerEncoder", "'encoder_layer'", "int", "TransformerEncoderLayer",
    ),
    (lambda: nn.SSIM(max_val=0), ValueError, "SSIM", "'max_val'", "0", "positive"),
    (lambda: nn.CentralCrop(1.5), ValueError, "CentralCrop", "'central_fraction'", "1.5", "from 0 to 1"),
    (lambda: nn.MSELoss("x"), ValueError, "MSELoss", "'reduction'", "'x'", "'mean', 'sum', 'none'"),
    (lambda: nn.L1Loss(None), ValueError, "L1Loss", "'reduction'", "None", "'mean'"),
    (lambda: nn.KLDivLoss("x"), ValueError, "KLDivLoss", "'reduction'", "'x'", "'batchmean'"),
    (lambda: nn.CrossEntropyLoss(weight=[1.0]), TypeError, "CrossEntropyLoss", "'weight'", "list", "a Tensor or None"),
    (
        lambda: nn.CrossEntropyLoss(label_smoothing=2),
        ValueError, "CrossEntropyLoss", "'label_smoothing'", "2", "from 0 to 1",
    ),
    (lambda: nn.HuberLoss("mean", 0.0), ValueError, "HuberLoss", "'delta'", "0.0", "positive"),
    (lambda: nn.CosineEmbeddingLoss(2.0), ValueError, "CosineEmbeddingLoss", "'margin'", "2.0", "-1 to 1"),
    (lambda: nn.MultiMarginLoss(3), ValueError, "MultiMarginLoss", "'p'", "3", "1 or 2"),
    (lambda: nn.FocalLoss(f(1, 1)), ValueError, "FocalLoss", "'weight'", "(1, 1)", "one axis"),
    (lambda: nn.SampledSoftmaxLoss(9, 7), ValueError, "SampledSoftmaxLoss", "'num_sampled'", "9", "at most"),
]  # fmt: skip


@pytest.mark.parametrize("row", MADE, ids=lambda row: " ".join(row[2:5]))
def test_making(row):
    make, kind, *words = row
    with pytest.raises(kind) as caught:
        make()
    for word in [*words, "test_layer_errors.py"]:
        assert word in str(caught.value)


CALLED = [
    (nn.Dense(3, 2), (f(2, 4),), ValueError, "Dense", "'x'", "(2, 4)", "3 features"),
    (nn.Dense(3, 2), (f(),), ValueError, "Dense", "'x'", "()", "3 features"),
    (nn.BiDense(3, 4, 2), (f(2, 3), f(2, 3)), ValueError, "BiDense", "'input2'", "(2, 3)", "4 features"),
    (nn.Conv2d(3, 4, 3), (f(1, 4, 5, 5),), ValueError, "Conv2d", "'x'", "(1, 4, 5, 5)", "3 channels on axis 1"),
    (nn.Conv2d(3, 4, 3), (f(3, 5, 5),), ValueError, "Conv2d", "'x'", "(3, 5, 5)", "4 axes"),
    (nn.Conv2d(3, 4, 3, data_format="NHWC"), (f(1, 3, 5, 5),), ValueError, "Conv2d", "'x'", "(1, 3, 5, 5)", "axis -1"),
    (nn.Conv2d(3, 4, 9, pad_mode="valid"), (f(1, 3, 5, 5),), ValueError, "conv2d", "'weight'", "(9, 9)", "within"),
    (nn.Conv1d(3, 4, 3), (f(1, 3, 5, 5),), ValueError, "Conv1d", "'x'", "(1, 3, 5, 5)", "3 axes"),
    (
        nn.Conv3dTranspose(3, 4, 3), (f(1, 4, 5, 5, 5),),
        ValueError, "Conv3dTranspose", "'x'", "(1, 4, 5, 5, 5)", "3 channels",
    ),
    (nn.BatchNorm2d(3), (f(2, 4, 2, 2),), ValueError, "BatchNorm2d", "'x'", "(2, 4, 2, 2)", "3 channels"),
    (nn.BatchNorm2d(3), (f(2, 3, 2),), ValueError, "BatchNorm2d", "'x'", "(2, 3, 2)", "4 axes"),
    (nn.BatchNorm1d(3), (f(2, 3, 2, 2),), ValueError, "BatchNorm1d", "'x'", "(2, 3, 2, 2)", "2 or 3 axes"),
    (nn.BatchNorm3d(3), (f(2, 3, 2, 2),), ValueError, "BatchNorm3d", "'x'", "(2, 3, 2, 2)", "5 axes"),
    (nn.LayerNorm((3,), 1, 1), (f(2, 3, 4),), ValueError, "LayerNorm", "'input_x'", "(2, 3, 4)", "(3,)"),
    (nn.LayerNorm((3,), begin_norm_axis=5), (f(2, 3),), IndexError, "LayerNorm", "'begin_norm_axis'", "5", "-2 to 1"),
    (nn.LayerNorm((3,)), (Tensor([1, 2, 3]),), TypeError, "LayerNorm", "'input_x'", "Int64", "floating"),
    (nn.GroupNorm(1, 3), (f(2, 4, 2, 2),), ValueError, "GroupNorm", "'x'", "(2, 4, 2, 2)", "3 channels"),
    (nn.InstanceNorm2d(3), (f(2, 4, 2, 2),), ValueError, "InstanceNorm2d", "'x'", "(2, 4, 2, 2)", "3 channels"),
    (nn.Embedding(5, 3), (Tensor([0.5]),), TypeError, "Embedding", "'ids'", "Float32", "integers"),
    (nn.Dropout2d(0.5), (f(2, 3),), ValueError, "Dropout2d", "'x'", "(2, 3)", "3 or 4 axes"),
    (nn.Flatten(), (f(2),), ValueError, "Flatten", "'start_dim'", "1 for 1 axes", "-1 to 0"),
    (nn.Flatten(2, 1), (f(2, 3, 4),), ValueError, "Flatten", "'end_dim'", "1", "from 2 on"),
    (nn.Unflatten(1, (2, 4)), (f(2, 6),), ValueError, "Unflatten", "'unflattened_size'", "(2, 4)", "multiply to 6"),
    (nn.Pad(((1, 1),)), (f(2, 3),), ValueError, "Pad", "'paddings'", "1 pairs", "2 axes"),
    (nn.ReflectionPad1d(4), (f(1, 1, 4),), ValueError, "(4, 4)", "at most 3"),
    (nn.ReflectionPad1d(1), (f(4),), ValueError, "ReflectionPad1d", "'x'", "(4,)", "2 to 3 axes"),
    (nn.MaxPool2d(7), (f(1, 1, 5, 6),), ValueError, "MaxPool2d", "'x'", "(1, 1, 5, 6)", "(7, 7)"),
    (nn.AvgPool2d(2), (f(2, 2),), ValueError, "AvgPool2d", "'x'", "(2, 2)", "3 or 4 axes"),
    (nn.Softmax2d(), (f(2, 2),), ValueError, "Softmax2d", "'x'", "(2, 2)", "3 or 4 axes"),
    (nn.RNN(3, 5), (f(2, 3),), ValueError, "RNN", "'x'", "(2, 3)", "3 axes"),
    (nn.RNN(3, 5), (f(4, 2, 2),), ValueError, "RNN", "'x'", "(4, 2, 2)", "3 features"),
    (nn.GRU(3, 5), (f(4, 2, 3), f(1, 2, 4)), ValueError, "GRU", "'hx'", "(1, 2, 4)", "(1, 2, 5)"),
    (nn.LSTM(3, 5), (f(4, 2, 3), f(1, 2, 5)), TypeError, "LSTM", "'hx'", "Tensor", "a tuple"),
    (nn.RNN(3, 5), (f(4, 2, 3), None, Tensor([1, 2, 3])), ValueError, "RNN", "'seq_length'", "(3,)", "(2,)"),
    (nn.RNN(3, 5), (f(4, 2, 3), None, Tensor([1.0, 2.0])), TypeError, "RNN", "'seq_length'", "Float32", "integers"),
    (nn.GRUCell(3, 5), (f(2, 3), f(2, 4)), ValueError, "GRUCell", "'hx'", "(2, 4)", "(2, 5)"),
    (nn.LSTMCell(3, 5), (f(2, 3), f(2, 5)), TypeError, "LSTMCell", "'hx'", "Tensor", "a tuple"),
    (nn.RNNCell(3, 5), (f(4, 2, 3), f(2, 5)), ValueError, "RNNCell", "'x'", "(4, 2, 3)", "2 axes"),
    (
        nn.MultiheadAttention(8, 2), (f(3, 2, 6), f(3, 2, 8), f(3, 2, 8)),
        ValueError, "MultiheadAttention", "'query'", "(3, 2, 6)", "8 features",
    ),
    (
        nn.MultiheadAttention(8, 2), (f(3, 2, 8), f(5, 3, 8), f(5, 3, 8)),
        ValueError, "MultiheadAttention", "'key'", "(5, 3, 8)", "a batch of 2",
    ),
    (
        nn.MultiheadAttention(8, 2), (f(3, 2, 8), f(5, 2, 8), f(4, 2, 8)),
        ValueError, "MultiheadAttention", "'value'", "(4, 2, 8)", "(5, 2, 8)",
    ),
    (
        nn.MultiheadAttention(8, 2), (f(3, 2, 8), f(5, 2, 8), f(5, 2, 8), None, True, f(4, 5)),
        ValueError, "MultiheadAttention", "'attn_mask'", "(4, 5)", "(3, 5)",
    ),
    (
        nn.MultiheadAttention(8, 2), (f(3, 2, 8), f(5, 2, 8), f(5, 2, 8), Tensor([[1] * 5] * 2)),
        TypeError, "MultiheadAttention", "'key_padding_mask'", "Int64", "bools or floats",
    ),
    (
        nn.Transformer(8, 2, 1, 1, 16), (f(5, 2, 6), f(3, 2, 8)),
        ValueError, "Transformer", "'src'", "(5, 2, 6)", "8 features",
    ),
    (
        nn.SSIM(filter_size=3), (f(1, 1, 4, 4), f(1, 1, 4, 5)),
        ValueError, "SSIM", "'img2'", "(1, 1, 4, 5)", "(1, 1, 4, 4)",
    ),
    (nn.MSELoss(), (f(2, 3), f(2)), ValueError, "MSELoss", "'labels'", "(2,)", "(2, 3)"),
    (nn.MSELoss(), (f(2, 3), None), TypeError, "MSELoss", "'labels'", "None", "a Tensor"),
    (nn.BCELoss(), (f(2, 3), f(3)), ValueError, "BCELoss", "'labels'", "(3,)", "(2, 3)"),
    (
        nn.SoftmaxCrossEntropyWithLogits(True), (f(2, 3), f(2)),
        TypeError, "SoftmaxCrossEntropyWithLogits", "'labels'", "Float32", "integers",
    ),
    (
        nn.SoftmaxCrossEntropyWithLogits(True), (f(2, 3), Tensor([0, 1, 2])),
        ValueError, "SoftmaxCrossEntropyWithLogits", "'labels'", "(3,)", "(2,)",
    ),
    (
        nn.SoftmaxCrossEntropyWithLogits(), (f(2, 3), f(2, 4)),
        ValueError, "SoftmaxCrossEntropyWithLogits", "'labels'", "(2, 4)", "(2, 3)",
    ),
    (
        nn.SoftmaxCrossEntropyWithLogits(), (f(2, 3, 4), f(2, 3, 4)),
        ValueError, "SoftmaxCrossEntropyWithLogits", "'logits'", "(2, 3, 4)", "2 axes",
    ),
    (nn.CrossEntropyLoss(), (f(2, 3), Tensor([1])), ValueError, "'target'", "(1,)", "(2,)"),
    (nn.FocalLoss(), (f(2, 3), Tensor([[0, 1], [1, 2]])), ValueError, "FocalLoss", "'labels'", "(2, 2)", "(2, 1)"),
    (nn.DiceLoss(), (f(2, 3), f(2, 4)), ValueError, "DiceLoss", "'label'", "(2, 4)", "(2, 3)"),
]  # fmt: skip


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])
@pytest.mark.parametrize("row", CALLED, ids=lambda row: " ".join(row[3:6]))
def test_calling(row, mode):
    layer, inputs, kind, *words = row
    ms.set_context(mode=mode)
    with pytest.raises(kind) as caught:
        layer(*inputs)
    for word in [*words, "test_layer_errors.py"]:
        assert word in str(caught.value)


def test_a_row_outside_of_a_table():
    with pytest.raises(IndexError) as caught:
        nn.Embedding(5, 3)(Tensor([1, 5]))
    for word in ["the index 5", "-5 to 4", "test_layer_errors.py"]:
        assert word in str(caught.value)
