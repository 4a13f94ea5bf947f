"""Class forms of the losses."""

from __future__ import annotations

from typing import Any

from mycelia.core.dtypes import int32
from mycelia.core.errors import ArgumentValueError
from mycelia.ops.cross_entropy import (
    nll_loss,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from mycelia.ops.ctc import ctc_loss
from mycelia.ops.cumulative import cumsum
from mycelia.ops.indexing import gather
from mycelia.ops.legacy.form import form
from mycelia.ops.lookup import one_hot
from mycelia.ops.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    kl_div,
    smooth_l1_loss,
    soft_margin_loss,
)
from mycelia.ops.margin_losses import multi_margin_loss, multilabel_margin_loss, triplet_margin_loss
from mycelia.ops.operands import as_tensor, cast
from mycelia.ops.reduction import sum as sum_
from mycelia.ops.selection import where
from mycelia.tensor import Tensor

__all__ = [
    "BCEWithLogitsLoss", "BinaryCrossEntropy", "CTCLossV2", "KLDivLoss", "MultiMarginLoss", "MultilabelMarginLoss",
    "NLLLoss", "SigmoidCrossEntropyWithLogits", "SmoothL1Loss", "SoftMarginLoss", "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits", "TripletMarginLoss",
]  # fmt: skip


def _check_reduction(name: str, *further: str) -> Any:
    choices = ("none", "mean", "sum", *further)

    def check(*, reduction: str, **given: Any) -> None:
        if reduction not in choices:
            raise ArgumentValueError(name, "reduction", got=repr(reduction), takes=", ".join(f'"{c}"' for c in choices))

    return check


def _likelihood(logits: Any, labels: Any, weight: Any, reduction: str, ignore_index: int) -> tuple[Tensor, Tensor]:
    """The loss, and the sum of the weights of the targets that count."""
    loss = nll_loss(logits, labels, weight, ignore_index, reduction)
    targets: Any = as_tensor(labels, "NLLLoss", "labels")
    w = as_tensor(weight, "NLLLoss", "weight")
    counted = (targets != ignore_index) & (targets >= 0) & (targets < w.shape[0])
    return loss, sum_(where(counted, gather(w, where(counted, targets, 0), 0), 0))


def _sigmoid_entropy(logits: Any, label: Any) -> Tensor:
    return binary_cross_entropy_with_logits(logits, label, reduction="none")


def _logits_entropy(input: Any, target: Any, weight: Any, pos_weight: Any, reduction: str) -> Tensor:
    return binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def _smooth(prediction: Any, target: Any, beta: float, reduction: str) -> Tensor:
    return smooth_l1_loss(prediction, target, beta, reduction)


def _triplet(
    x: Any, positive: Any, negative: Any, margin: Any, p: int, swap: bool, eps: float, reduction: str
) -> Tensor:
    edge = margin.item() if isinstance(margin, Tensor) else margin
    return triplet_margin_loss(x, positive, negative, edge, p, eps, bool(swap), reduction)


def _multi_margin(x: Any, target: Any, weight: Any, p: int, margin: float, reduction: str) -> Tensor:
    return multi_margin_loss(x, target, p, margin, weight, reduction)


CTCLossV2 = form(
    "CTCLossV2(blank=0, reduction='none', zero_infinity=False)(log_probs, targets, input_lengths, target_lengths)",
    ctc_loss,
    _check_reduction("CTCLossV2"),
)


def _multilabel(x: Any, target: Any, reduction: str) -> tuple[Tensor, Tensor]:
    """The loss, and for each class whether it is a right one."""
    scores, labels = as_tensor(x, "MultilabelMarginLoss", "x"), as_tensor(target, "MultilabelMarginLoss", "target")
    loss = multilabel_margin_loss(scores, labels, reduction)
    ended = cumsum(cast(labels < 0, int32), -1) > 0
    hot = one_hot(where(ended, -1, labels), scores.shape[-1], 1, 0)
    return loss, cast(sum_(hot, -2) > 0, int32)


BCEWithLogitsLoss = form(
    "BCEWithLogitsLoss(reduction='mean')(input, target, weight=None, posWeight=None)",
    _logits_entropy,
    _check_reduction("BCEWithLogitsLoss"),
)
BinaryCrossEntropy = form(
    "BinaryCrossEntropy(reduction='mean')(input, target, weight=None)",
    binary_cross_entropy,
    _check_reduction("BinaryCrossEntropy"),
)
KLDivLoss = form("KLDivLoss(reduction='mean')(logits, labels)", kl_div, _check_reduction("KLDivLoss", "batchmean"))
MultiMarginLoss = form(
    "MultiMarginLoss(p=1, margin=1.0, reduction='mean')(x, target, weight=None)",
    _multi_margin,
    _check_reduction("MultiMarginLoss"),
)
MultilabelMarginLoss = form(
    "MultilabelMarginLoss(reduction='mean')(x, target)", _multilabel, _check_reduction("MultilabelMarginLoss")
)
NLLLoss = form(
    "NLLLoss(reduction='mean', ignore_index=-100)(logits, labels, weight)", _likelihood, _check_reduction("NLLLoss")
)
SigmoidCrossEntropyWithLogits = form("SigmoidCrossEntropyWithLogits()(logits, label)", _sigmoid_entropy)
SmoothL1Loss = form(
    "SmoothL1Loss(beta=1.0, reduction='none')(prediction, target)", _smooth, _check_reduction("SmoothL1Loss")
)
SoftMarginLoss = form(
    "SoftMarginLoss(reduction='mean')(input, target)", soft_margin_loss, _check_reduction("SoftMarginLoss")
)
SoftmaxCrossEntropyWithLogits = form(
    "SoftmaxCrossEntropyWithLogits()(logits, labels)", softmax_cross_entropy_with_logits
)
SparseSoftmaxCrossEntropyWithLogits = form(
    "SparseSoftmaxCrossEntropyWithLogits(is_grad=False)(logits, labels)", sparse_softmax_cross_entropy_with_logits
)
TripletMarginLoss = form(
    "TripletMarginLoss(p=2, swap=False, eps=1e-06, reduction='mean')(x, positive, negative, margin)",
    _triplet,
    _check_reduction("TripletMarginLoss"),
)
