"""Losses: Cells that compare what a network gives with what it should give."""

from mycelia.nn.loss.base import LossBase
from mycelia.nn.loss.classification import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    FocalLoss,
    HingeEmbeddingLoss,
    KLDivLoss,
    MultilabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    NLLLoss,
    SoftMarginLoss,
    SoftmaxCrossEntropyWithLogits,
)
from mycelia.nn.loss.comparison import (
    CosineEmbeddingLoss,
    DiceLoss,
    MarginRankingLoss,
    MultiClassDiceLoss,
    SampledSoftmaxLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from mycelia.nn.loss.regression import (
    GaussianNLLLoss,
    HuberLoss,
    L1Loss,
    L1LossExt,
    MAELoss,
    MSELoss,
    PoissonNLLLoss,
    RMSELoss,
    SmoothL1Loss,
)
from mycelia.nn.loss.sequence import CTCLoss

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "DiceLoss", "FocalLoss",
    "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "L1LossExt", "LossBase", "MAELoss",
    "MSELoss", "MarginRankingLoss", "MultiClassDiceLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
    "MultilabelMarginLoss", "NLLLoss", "PoissonNLLLoss", "RMSELoss", "SampledSoftmaxLoss", "SmoothL1Loss",
    "SoftMarginLoss", "SoftmaxCrossEntropyWithLogits", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip
