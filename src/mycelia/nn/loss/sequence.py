"""Connectionist temporal classification: A. Graves et al., ICML 2006."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.nn.layers import arguments as arg
from mycelia.nn.loss.base import LossBase


class CTCLoss(LossBase):
    """Minus the log-probability that a sequence of outputs reads as the target, blanks and repeats dropped.

    Args:
        blank: the class of the blank.
        reduction: ``"mean"`` (of the losses divided by the target lengths), ``"sum"`` or ``"none"``.
        zero_infinity: targets that cannot be reached count for nothing.

    Inputs:
        log_probs: log-probabilities of shape (length, batch, classes), or (length, classes).
        targets: integers of shape (batch, longest), or all targets one after another.
        input_lengths: lengths of the sequences, of shape (batch,).
        target_lengths: lengths of the targets, of shape (batch,).

    >>> import mycelia as ms
    >>> log_probs = ms.ops.log(ms.ops.full((1, 1, 2), 0.5))
    >>> print(ms.nn.CTCLoss()(log_probs, ms.Tensor([[1]]), ms.Tensor([1]), ms.Tensor([1])))
    0.6931472
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction)
        self.blank = arg.positive("CTCLoss", "blank", blank, 0)
        arg.flag("CTCLoss", "zero_infinity", zero_infinity)
        self.zero_infinity = zero_infinity

    def construct(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
        return ops.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )[0]
