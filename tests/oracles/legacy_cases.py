"""Calls of class forms, as data: what ``legacy_classes.py`` records from MindSpore and the tests repeat.

A case is ``(class, constructor arguments, inputs)``. An argument that is a dict with one key stands for a tensor
(``{"f": values}`` float32, ``"h"`` float16, ``"i"`` int32, ``"l"`` int64, ``"b"`` bool, ``"c"`` complex64), for a
Parameter (``{"p": values}`` float32) or for a dtype (``{"dtype": name}``); constructor arguments that are a dict with
the key ``"kwargs"`` at the end are keywords. Everything else is given as it is.
"""

from __future__ import annotations

from typing import Any

X: Any = {"f": [[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]]}
Y: Any = {"f": [[0.5, -1.0, 2.0], [3.0, 0.25, -2.0]]}
UNIT: Any = {"f": [[0.5, -0.25, 0.75], [0.1, 0.9, -0.6]]}
POSITIVE: Any = {"f": [[0.5, 1.25, 0.75], [2.0, 0.9, 3.5]]}
ROW: Any = {"f": [1.0, 2.0, 3.0]}
INTS: Any = {"i": [[7, -7, 3], [2, 0, 5]]}
BOOLS: Any = {"b": [[True, False, True], [True, True, True]]}
IMAGE: Any = {
    "f": [[[[float((3 * i + 5 * j + i * j * k) % 11) for j in range(5)] for i in range(4)] for k in range(2)]]
}
KERNEL: Any = {"f": [[[[0.5 * (o - c) + 0.25 * i - 0.5 * j for j in range(3)] for i in range(3)] for c in range(2)]
                     for o in range(3)]}  # fmt: skip
VOLUME: Any = {"f": [[[[[float((i + 2 * j + 3 * k) % 7) for k in range(4)] for j in range(4)] for i in range(4)]]]}
BOXES: Any = {"f": [[0.0, 0.0, 10.0, 10.0], [5.0, 5.0, 15.0, 20.0]]}
SQUARE: Any = {"f": [[4.0, 1.0], [1.0, 3.0]]}


def one(value: float) -> Any:
    """A zero-dimensional float32 tensor."""
    return {"f": value}


UNARY = [
    "Abs", "Asinh", "Atan", "Ceil", "Cos", "Cosh", "Erf", "Erfc", "Exp", "Expm1", "Floor", "GeLU", "FastGeLU",
    "HSigmoid", "HSwish", "HShrink", "IsFinite", "IsInf", "IsNan", "Mish", "Neg", "OnesLike", "ReLU", "ReLU6", "Rint",
    "Round", "SeLU", "SiLU", "Sigmoid", "Sign", "Sin", "Sinc", "Sinh", "SoftShrink", "Softplus", "Softsign", "Square",
    "Tan", "Tanh", "Trunc", "ZerosLike", "Elu", "CeLU", "Identity", "StopGradient", "L2Loss", "Flatten", "DType",
    "Shape", "Size", "Rank", "TensorShape", "Unstack", "NonZero",
]  # fmt: skip
BOUNDED = ["ACos", "Asin", "Atanh", "Erfinv", "BesselI0", "BesselI1", "BesselJ0"]
ABOVE = ["Digamma", "Inv", "Lgamma", "Log", "Log1p", "Reciprocal", "Rsqrt", "Sqrt", "BesselK0", "BesselY1"]
BINARY = [
    "Add", "Atan2", "Div", "DivNoNan", "Equal", "FloorDiv", "FloorMod", "Fmax", "Fmin", "Greater", "GreaterEqual",
    "Less", "LessEqual", "Maximum", "Minimum", "Mod", "Mul", "MulNoNan", "NotEqual", "RealDiv", "SquaredDifference",
    "Sub", "TruncateDiv", "TruncateMod", "Xdivy", "NextAfter", "Heaviside", "Hypot",
]  # fmt: skip
WHOLE = ["Add", "FloorDiv", "RealDiv", "Mul", "Maximum", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Mod"]

CASES: list[tuple[str, list[Any], list[Any]]] = [
    *[(name, [], [X]) for name in UNARY],
    *[(name, [], [UNIT]) for name in BOUNDED],
    *[(name, [], [POSITIVE]) for name in ABOVE],
    *[(name, [], [X, Y]) for name in BINARY],
    *[(name, [], [INTS, {"i": [[2, 2, -2], [3, 4, 5]]}]) for name in WHOLE],
    ("LogicalAnd", [], [BOOLS, {"b": [True, True, False]}]),
    ("LogicalOr", [], [BOOLS, {"b": [True, True, False]}]),
    ("LogicalNot", [], [BOOLS]),
    ("LogicalXor", [], [BOOLS, {"b": [True, True, False]}]),
    ("Pow", [], [POSITIVE, Y]),
    ("Xlogy", [], [X, POSITIVE]),
    ("Lerp", [], [X, Y, one(0.25)]),
    ("Addcmul", [], [X, Y, Y, one(2.0)]),
    ("Addcdiv", [], [X, Y, Y, one(2.0)]),
    ("AddN", [], [(X, Y, X)]),
    ("PReLU", [], [IMAGE, {"f": [0.25, -0.5]}]),
    ("Elu", [1.0], [X]),
    ("CeLU", [2.0], [X]),
    ("HShrink", [1.5], [X]),
    ("SoftShrink", [1.5], [X]),
    ("Select", [], [BOOLS, X, Y]),
    ("ApproximateEqual", [1.6], [X, Y]),
    ("IsClose", [0.0, 3.0], [X, Y]),
    ("Round", [], [UNIT, 1]),
    ("NanToNum", [1.0, 2.0, 3.0], [X]),
    ("Complex", [], [X, Y]),
    ("Logit", [0.2], [POSITIVE]),
    ("LeftShift", [], [{"i": [1, 2]}, {"i": [3, 1]}]),
    ("EqualCount", [], [{"i": [1, 2, 3]}, {"i": [1, 2, 4]}]),
    ("Igamma", [], [POSITIVE, POSITIVE]),
    ("Polygamma", [], [{"i": 1}, POSITIVE]),
    ("Zeta", [], [{"f": [2.0, 3.0]}, {"f": [1.5, 0.5]}]),
    ("PopulationCount", [], [{"i": [0, 7, 255]}]),
    # shapes
    ("Reshape", [], [X, (3, 2)]),
    ("Transpose", [], [X, (1, 0)]),
    ("ExpandDims", [], [X, 1]),
    ("Squeeze", [], [{"f": [[[1.0], [2.0]]]}]),
    ("Squeeze", [0], [{"f": [[[1.0], [2.0]]]}]),
    ("Cast", [], [X, {"dtype": "float16"}]),
    ("Cast", [], [X, {"dtype": "int32"}]),
    ("Cast", [], [1.5, {"dtype": "int32"}]),
    ("Concat", [1], [(X, Y)]),
    ("Concat", [], [(X, Y)]),
    ("Stack", [], [[X, Y]]),
    ("Stack", [-1], [[X, Y]]),
    ("Unstack", [1], [X]),
    ("Split", [1, 3], [X]),
    ("Split", [0, 2], [X]),
    ("Tile", [], [X, (2, 1)]),
    ("BroadcastTo", [(2, 2, 3)], [X]),
    ("Slice", [], [X, (0, 1), (2, 2)]),
    ("StridedSlice", [], [X, (0, 0), (2, 3), (1, 2)]),
    ("StridedSlice", [{"kwargs": {"shrink_axis_mask": 1}}], [X, (0, 0), (1, 3), (1, 2)]),
    ("StridedSlice", [1, 2], [X, (1, 1), (2, 2), (1, 1)]),
    ("ReverseV2", [[1]], [X]),
    ("Roll", [1, 1], [X]),
    ("Pad", [((1, 0), (0, 2))], [X]),
    ("MirrorPad", ["SYMMETRIC"], [X, {"l": [[1, 1], [2, 1]]}]),
    ("MirrorPad", ["REFLECT"], [X, {"l": [[1, 1], [2, 1]]}]),
    ("PadV3", [], [X, {"l": [1, 0, 0, 2]}, one(7.0)]),
    ("PadV3", ["constant", False], [X, {"l": [1, 0, 1, 0]}, one(7.0)]),
    ("Tril", [], [X]),
    ("Triu", [1], [X]),
    ("Diag", [], [ROW]),
    ("DiagPart", [], [SQUARE]),
    ("Eye", [], [2, 3, {"dtype": "int32"}]),
    ("Fill", [], [{"dtype": "float32"}, (2, 2), 1]),
    ("FillV2", [], [(2, 2), one(3.0)]),
    ("Zeros", [], [(2, 3), {"dtype": "int32"}]),
    ("Ones", [], [(2,), {"dtype": "float16"}]),
    ("Range", [], [0, 10, 4]),
    ("LinSpace", [], [one(1.0), one(10.0), 4]),
    ("Meshgrid", [], [(ROW, {"f": [3.0, 4.0]})]),
    ("Meshgrid", ["ij"], [(ROW, {"f": [3.0, 4.0]})]),
    ("TupleToArray", [], [(1, 2, 3)]),
    ("TupleToArray", [], [(1.0, 2.5)]),
    ("ScalarToTensor", [], [1, {"dtype": "int32"}]),
    ("ScalarToTensor", [], [2]),
    ("InvertPermutation", [], [(3, 0, 1, 2)]),
    ("UnravelIndex", [], [{"l": [2, 5]}, {"l": [3, 3]}]),
    ("Padding", [4], [{"f": [[1.0], [2.0]]}]),
    ("Im2Col", [2], [IMAGE]),
    ("DepthToSpace", [2], [{"f": [[[[float(4 * c + j)] for j in range(2)] for c in range(4)]]}]),
    ("SpaceToDepth", [2], [{"f": [[[[0.0, 1.0], [2.0, 3.0]]]]}]),
    ("BatchToSpace", [2, [[0, 0], [0, 0]]], [{"f": [[[[1.0]]], [[[2.0]]], [[[3.0]]], [[[4.0]]]]}]),
    ("SpaceToBatch", [2, [[0, 0], [0, 0]]], [{"f": [[[[1.0, 2.0], [3.0, 4.0]]]]}]),
    ("MatrixBandPart", [], [SQUARE, 0, 1]),
    ("HammingWindow", [], [{"l": [5]}]),
    ("ChannelShuffle", [2], [{"f": [[[[float(c)]] for c in range(4)]]}]),
    # indices
    ("Gather", [], [X, {"i": [2, 0]}, 1]),
    ("Gather", [1], [X, {"i": [[0, 1], [2, 0]]}, 1]),
    ("GatherD", [], [X, 1, {"i": [[0, 0, 2], [1, 0, 1]]}]),
    ("GatherNd", [], [X, {"i": [[0, 1], [1, 2]]}]),
    ("OneHot", [], [{"i": [0, 2, 5]}, 3, one(1.0), one(0.0)]),
    ("OneHot", [0], [{"i": [0, 2]}, 3, {"h": 1.0}, {"h": 0.0}]),
    ("ScatterNd", [], [{"i": [[0], [2]]}, {"f": [[1.0, 2.0], [3.0, 4.0]]}, (3, 2)]),
    ("TensorScatterUpdate", [], [X, {"i": [[0, 0], [1, 2]]}, {"f": [9.0, 8.0]}]),
    ("TensorScatterAdd", [], [X, {"i": [[0, 0], [0, 0]]}, {"f": [9.0, 8.0]}]),
    ("TensorScatterMax", [], [X, {"i": [[0, 0], [1, 2]]}, {"f": [9.0, 2.0]}]),
    ("UnsortedSegmentSum", [], [X, {"i": [1, 1]}, 3]),
    ("SegmentSum", [], [X, {"i": [0, 0]}]),
    ("ScatterAdd", [], [{"p": [1.0, 2.0, 3.0]}, {"i": [0, 0]}, {"f": [10.0, 20.0]}]),
    ("ScatterUpdate", [], [{"p": [1.0, 2.0, 3.0]}, {"i": [0, 2]}, {"f": [10.0, 20.0]}]),
    ("ScatterNdUpdate", [], [{"p": [1.0, 2.0, 3.0]}, {"i": [[0], [2]]}, {"f": [10.0, 20.0]}]),
    ("ReverseSequence", [1], [X, {"l": [2, 3]}]),
    ("MaskedFill", [], [X, BOOLS, one(0.0)]),
    ("MaskedSelect", [], [X, BOOLS]),
    ("IndexAdd", [1], [{"p": [[1.0, 2.0, 3.0]]}, {"i": [0, 2]}, {"f": [[10.0, 20.0]]}]),
    ("EmbeddingLookup", [], [X, {"i": [[0, 1], [5, 1]]}, 0]),
    ("InplaceAdd", [0], [X, {"f": [[1.0, 1.0, 1.0]]}]),
    # reductions
    ("ReduceSum", [], [X]),
    ("ReduceSum", [True], [X, 1]),
    ("ReduceSum", [], [INTS, 0]),
    ("ReduceMean", [], [X, (0, 1)]),
    ("ReduceMean", [], [INTS, 0]),
    ("ReduceMean", [{"kwargs": {"keep_dims": True}}], [X, -1]),
    ("ReduceMax", [], [X, 0]),
    ("ReduceMin", [], [X, 1]),
    ("ReduceProd", [], [X, 0]),
    ("ReduceAll", [], [BOOLS, 1]),
    ("ReduceAny", [True], [BOOLS, 1]),
    ("ReduceStd", [1], [X]),
    ("LpNorm", [1], [X]),
    ("LpNorm", [[0, 1], 1, True], [X]),
    ("L2Normalize", [1], [X]),
    ("CumSum", [True, False], [X, 1]),
    ("CumSum", [False, True], [X, 1]),
    ("CumProd", [True, True], [X, 1]),
    ("Cummax", [1], [X]),
    ("Argmax", [1], [X]),
    ("Argmax", [0, {"dtype": "int64"}], [X]),
    ("Argmin", [0], [X]),
    ("ArgMaxWithValue", [1], [X]),
    ("ArgMinWithValue", [1, True], [X]),
    ("TopK", [], [X, 2]),
    ("Sort", [], [X]),
    ("Sort", [0, True], [X]),
    ("Unique", [], [{"i": [1, 2, 5, 2, 1]}]),
    ("Median", [False, 1], [X]),
    ("SquareSumAll", [], [X, Y]),
    ("InTopK", [2], [X, {"i": [0, 1]}]),
    ("NthElement", [], [X, 1]),
    ("Renorm", [1, 0, 5.0], [X]),
    ("LowerBound", [], [{"f": [[1.0, 2.0, 3.0]]}, {"f": [[2.0, 4.0]]}]),
    ("UpperBound", [], [{"f": [[1.0, 2.0, 3.0]]}, {"f": [[2.0, 4.0]]}]),
    ("Bucketize", [[0.0, 2.0]], [X]),
    ("ListDiff", [], [{"i": [1, 2, 3, 4]}, {"i": [1, 3]}]),
    ("Bincount", [], [{"i": [0, 1, 1, 7]}, {"i": 3}, {"i": [1, 1, 2, 5]}]),
    ("Histogram", [4, 0.0, 4.0], [{"f": [0.0, 1.0, 1.0, 3.5]}]),
    ("CumulativeLogsumexp", [True, False], [ROW, {"i": 0}]),
    # products and linear algebra
    ("MatMul", [], [X, {"f": [[1.0, 0.0], [2.0, 1.0], [0.0, -1.0]]}]),
    ("MatMul", [False, True], [X, Y]),
    ("MatMul", [True, False], [X, Y]),
    ("BatchMatMul", [False, True], [{"f": [[[1.0, 2.0], [3.0, 4.0]]]}, {"f": [[[1.0, 0.0], [2.0, 1.0]]]}]),
    ("Ger", [], [ROW, {"f": [1.0, -1.0]}]),
    ("BiasAdd", [], [X, ROW]),
    ("BiasAdd", [], [IMAGE, {"f": [1.0, -1.0]}]),
    ("MatrixInverse", [], [SQUARE]),
    ("MatrixSolve", [], [SQUARE, {"f": [[1.0], [2.0]]}]),
    ("Cholesky", [], [SQUARE]),
    ("MatrixDeterminant", [], [SQUARE]),
    ("Trace", [], [SQUARE]),
    ("Cdist", [], [X, Y]),
    ("Cross", [], [ROW, {"f": [4.0, 5.0, 6.0]}]),
    ("Dense", [], [X, Y, {"f": [1.0, 2.0]}]),
    # networks
    ("Conv2D", [3, 3], [IMAGE, KERNEL]),
    ("Conv2D", [3, 3, {"kwargs": {"pad_mode": "same", "stride": 2}}], [IMAGE, KERNEL]),
    ("Conv2D", [3, 3, {"kwargs": {"pad_mode": "pad", "pad": (1, 0, 2, 1)}}], [IMAGE, KERNEL]),
    (
        "Conv2DTranspose",
        [2, 3, {"kwargs": {"pad_mode": "pad", "pad": 1, "stride": 2}}],
        [{"f": [[[[1.0, 2.0]], [[0.5, -1.0]], [[3.0, 0.0]]]]}, KERNEL, (1, 2, 1, 3)],
    ),
    ("MaxPool", [2, 2], [IMAGE]),
    ("MaxPool", [3, 2, "same"], [IMAGE]),
    ("AvgPool", [2, 1], [IMAGE]),
    ("AvgPool", [3, 2, "same"], [IMAGE]),
    ("MaxPool3D", [2, 2], [VOLUME]),
    ("AvgPool3D", [2, 2], [VOLUME]),
    ("MaxPoolWithArgmaxV2", [2, 2], [IMAGE]),
    ("AdaptiveAvgPool2D", [(2, 2)], [IMAGE]),
    ("Softmax", [], [X]),
    ("Softmax", [0], [X]),
    ("LogSoftmax", [], [X]),
    ("LRN", [], [IMAGE]),
    ("LayerNorm", [1, 1, 1e-5], [X, {"f": [1.0, 2.0, 1.0]}, {"f": [0.0, 1.0, 0.0]}]),
    ("BatchNorm", [], [IMAGE, {"f": [1.0, 2.0]}, {"f": [0.0, 1.0]}, {"f": [2.0, 3.0]}, {"f": [4.0, 9.0]}]),
    ("BatchNorm", [True], [IMAGE, {"p": [1.0, 2.0]}, {"p": [0.0, 1.0]}, {"p": [2.0, 3.0]}, {"p": [4.0, 9.0]}]),
    ("ResizeNearestNeighbor", [(5, 3)], [IMAGE]),
    ("ResizeNearestNeighbor", [(3, 7), True], [IMAGE]),
    ("ResizeBilinearV2", [], [IMAGE, (5, 3)]),
    ("ResizeBilinearV2", [True], [IMAGE, (7, 2)]),
    ("ResizeBilinearV2", [False, True], [IMAGE, (7, 2)]),
    ("ResizeNearestNeighborV2", [False, True], [IMAGE, (7, 2)]),
    ("ResizeLinear1D", ["half_pixel"], [{"f": [[[1.0, 4.0, 2.0]]]}, (5,)]),
    ("GridSampler2D", [], [IMAGE, {"f": [[[[0.1, -0.5], [0.9, 1.2]]]]}]),
    ("Dropout", [1.0], [X]),
    # losses
    ("KLDivLoss", ["sum"], [POSITIVE, POSITIVE]),
    ("KLDivLoss", [], [X, POSITIVE]),
    ("KLDivLoss", ["batchmean"], [X, POSITIVE]),
    ("SmoothL1Loss", [], [X, Y]),
    ("SmoothL1Loss", [2.0, "mean"], [X, Y]),
    ("SoftmaxCrossEntropyWithLogits", [], [X, {"f": [[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]]}]),
    ("SparseSoftmaxCrossEntropyWithLogits", [], [X, {"i": [2, 0]}]),
    ("SparseSoftmaxCrossEntropyWithLogits", [True], [X, {"i": [2, 0]}]),
    ("SigmoidCrossEntropyWithLogits", [], [X, Y]),
    ("NLLLoss", [], [X, {"i": [2, 0]}, {"f": [1.0, 2.0, 0.5]}]),
    ("NLLLoss", ["none"], [X, {"i": [2, 0]}, {"f": [1.0, 2.0, 0.5]}]),
    ("BinaryCrossEntropy", [], [{"f": [0.2, 0.7]}, {"f": [0.0, 1.0]}, {"f": [1.0, 2.0]}]),
    ("BCEWithLogitsLoss", [], [X, Y, Y, Y]),
    ("SoftMarginLoss", [], [X, {"f": [[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]]}]),
    ("MultiMarginLoss", [], [X, {"l": [2, 0]}]),
    ("MultilabelMarginLoss", [], [X, {"i": [[1, -1, 0], [2, 0, -1]]}]),
    # boxes
    ("IOU", [], [BOXES, {"f": [[0.0, 0.0, 10.0, 10.0], [2.0, 2.0, 8.0, 8.0], [50.0, 50.0, 60.0, 60.0]]}]),
    ("IOU", ["iof"], [BOXES, {"f": [[0.0, 0.0, 10.0, 10.0], [2.0, 2.0, 8.0, 8.0]]}]),
    (
        "BoundingBoxEncode",
        [(0.1, 0.0, 0.0, 0.2), (0.5, 1.0, 0.2, 1.0)],
        [BOXES, {"f": [[1.0, 1.0, 9.0, 9.0], [4.0, 5.0, 10.0, 20.0]]}],
    ),
    (
        "BoundingBoxDecode",
        [(30, 40), (0.1, 0.0, 0.0, 0.2), (0.5, 1.0, 0.2, 1.0)],
        [BOXES, {"f": [[0.1, 0.2, 0.3, 0.1], [0.0, 0.0, 50.0, -9.0]]}],
    ),
    ("CheckValid", [], [BOXES, {"f": [20.0, 15.0, 1.0]}]),
    ("CheckValid", [], [BOXES, {"f": [20.0, 15.0, 2.0]}]),
    (
        "NMSWithMask",
        [0.5],
        [
            {
                "f": [
                    [0.0, 0.0, 10.0, 10.0, 0.5],
                    [1.0, 1.0, 10.0, 10.0, 0.9],
                    [0.0, 0.0, 9.0, 9.0, 0.7],
                    [20.0, 20.0, 30.0, 30.0, 0.8],
                ]
            }
        ],
    ),
    ("ROIAlign", [2, 2, 0.5, 2, 1], [IMAGE, {"f": [[0.0, 0.2, 0.3, 3.0, 5.0], [0.0, -2.0, -1.0, 9.0, 4.0]]}]),
    ("ROIAlign", [2, 3, 1.0, 1, 0], [IMAGE, {"f": [[0.0, 1.0, 2.0, 1.2, 2.4], [0.0, -2.0, -2.0, 8.0, 8.0]]}]),
    # parameters
    ("Assign", [], [{"p": [1.0, 2.0]}, {"f": [3.0, 4.0]}]),
    ("AssignAdd", [], [{"p": [1.0, 2.0]}, {"f": [3.0, 4.0]}]),
    ("AssignSub", [], [{"p": [1.0, 2.0]}, {"f": [3.0, 4.0]}]),
    ("Depend", [], [X, Y]),
]

_W: Any = {"p": [1.0, -2.0, 3.0]}
_M: Any = {"p": [0.1, 0.2, 0.3]}
_V: Any = {"p": [0.4, 0.5, 0.6]}
_G: Any = {"f": [0.5, -1.0, 0.25]}
_ROWS: Any = [
    {"p": [[1.0, -2.0], [3.0, 0.5], [0.1, 0.2]]},
    {"p": [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]},
    {"p": [[0.4, 0.5], [0.6, 0.7], [0.8, 0.9]]},
]
_GROWS: Any = [{"f": [[0.5, -1.0], [0.25, 0.125]]}, {"i": [0, 2]}]
_ADAM: Any = [one(0.9), one(0.99), one(0.1), one(0.9), one(0.999), one(1e-8)]

#: Steps of optimizers: what counts is what the Parameters hold afterwards.
STEPS: list[tuple[str, list[Any], list[Any]]] = [
    ("Adam", [], [_W, _M, _V, *_ADAM, _G]),
    ("Adam", [False, True], [_W, _M, _V, *_ADAM, _G]),
    ("AdamWeightDecay", [], [_W, _M, _V, 0.1, 0.9, 0.999, 1e-8, 0.01, _G]),
    ("AdamNoUpdateParam", [], [_M, _V, *_ADAM, _G]),
    ("ApplyMomentum", [], [_W, _M, one(0.1), _G, one(0.9)]),
    ("SGD", [0.1, 0.01], [_W, _G, one(0.1), _M, one(0.9), {"p": [1.0, 1.0, 1.0]}]),
    ("SGD", [0.1, 0.01], [_W, _G, one(0.1), _M, one(0.9), {"p": [0.0, 0.0, 0.0]}]),
    ("SGD", [0.0, 0.0, True], [_W, _G, one(0.1), _M, one(0.9), {"p": [0.0, 0.0, 0.0]}]),
    ("ApplyRMSProp", [], [_W, _V, _M, one(0.1), _G, 0.9, 0.8, 1e-3]),
    ("ApplyCenteredRMSProp", [], [_W, _M, {"p": [0.5, 0.6, 0.7]}, _V, _G, one(0.1), 0.9, 0.8, 1e-3]),
    ("ApplyAdagrad", [], [_W, _V, one(0.1), _G]),
    ("ApplyAdagradV2", [1e-3], [_W, _V, one(0.1), _G]),
    ("ApplyAdadelta", [], [_W, _V, _M, one(0.1), one(0.9), one(1e-3), _G]),
    ("ApplyAdaMax", [], [_W, _M, _V, one(0.9), one(0.1), one(0.9), one(0.99), one(1e-3), _G]),
    ("ApplyGradientDescent", [], [_W, one(0.1), _G]),
    ("ApplyProximalGradientDescent", [], [_W, one(0.1), one(0.2), one(0.3), _G]),
    ("ApplyProximalAdagrad", [], [_W, _V, one(0.1), one(0.2), one(0.3), _G]),
    ("ApplyAddSign", [], [_W, _M, one(0.1), one(1.0), one(0.9), one(0.8), _G]),
    ("ApplyPowerSign", [], [_W, _M, one(0.1), one(2.7), one(0.9), one(0.8), _G]),
    ("ApplyAdamWithAmsgrad", [], [_W, _M, _V, {"p": [0.3, 0.6, 0.1]}, one(0.9), one(0.99), one(0.1), _G]),
    ("ApplyAdagradDA", [], [_W, _M, _V, _G, one(0.1), one(0.2), one(0.3), {"i": 2}]),
    ("FusedSparseAdam", [], [*_ROWS, *_ADAM, *_GROWS]),
    ("FusedSparseLazyAdam", [], [*_ROWS, *_ADAM, *_GROWS]),
    ("SparseApplyAdagradV2", [0.1, 1e-3], [_ROWS[0], _ROWS[2], *_GROWS]),
    ("SparseApplyFtrl", [0.1, 0.2, 0.3, -0.5], [_ROWS[0], _ROWS[2], _ROWS[1], *_GROWS]),
    ("FusedSparseFtrl", [0.1, 0.2, 0.3, -0.5], [_ROWS[0], _ROWS[2], _ROWS[1], *_GROWS]),
    ("FusedSparseProximalAdagrad", [], [_ROWS[0], _ROWS[2], 0.1, 0.2, 0.3, *_GROWS]),
]


def build(argument: Any, tensor: Any, parameter: Any, dtype: Any) -> Any:
    """An argument of a case as a framework has it.

    Args:
        argument: see above.
        tensor: from nested lists and a dtype name.
        parameter: likewise.
        dtype: from a name.
    """
    names = {"f": "float32", "h": "float16", "i": "int32", "l": "int64", "b": "bool", "c": "complex64"}
    if isinstance(argument, dict):
        ((kind, value),) = argument.items()
        if kind == "dtype":
            return dtype(value)
        return parameter(value, "float32") if kind == "p" else tensor(value, names[kind])
    if isinstance(argument, (tuple, list)):
        return type(argument)(build(a, tensor, parameter, dtype) for a in argument)
    return argument


def constructor(arguments: list[Any], dtype: Any) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments of a constructor."""
    if arguments and isinstance(arguments[-1], dict) and "kwargs" in arguments[-1]:
        return [build(a, None, None, dtype) for a in arguments[:-1]], arguments[-1]["kwargs"]
    return [build(a, None, None, dtype) for a in arguments], {}
