"""Losses of classes: cross entropies and margins."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.nn.layers import arguments as arg
from mycelia.nn.loss.base import LossBase
from mycelia.ops.cross_entropy import cross_entropy, soft_cross_entropy_p
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply


class SoftmaxCrossEntropyWithLogits(LossBase):
    """Cross entropy of the softmax of logits.

    Args:
        sparse: labels are class numbers; False: probabilities of all classes (integer labels without a class
            axis are then class numbers as well).
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Inputs:
        logits: a tensor of shape (batch, classes).
        labels: integers of shape (batch,), or a tensor of the shape of ``logits``. A class number outside of the
            classes has no loss.

    Outputs:
        The losses, of shape (batch,), or a number.

    Raises:
        ShapeError: the labels have another shape.
        DTypeError: class numbers that are not integers.

    >>> import mycelia as ms
    >>> loss = ms.nn.SoftmaxCrossEntropyWithLogits(sparse=True)
    >>> print(loss(ms.Tensor([[0.0, 0.0]]), ms.Tensor([1])))
    [0.6931472]
    """

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__(reduction)
        arg.flag("SoftmaxCrossEntropyWithLogits", "sparse", sparse)
        self.sparse = sparse

    def construct(self, logits: Any, labels: Any) -> Any:
        where = "SoftmaxCrossEntropyWithLogits"
        x = arg.axes_of_input(where, "logits", logits, (2,), "(batch, classes)")
        x, y = arg.floating_input(where, "logits", x), self._tensor("labels", labels)
        if self.sparse and not y.dtype.is_integer:
            raise DTypeError(where, "labels", got=f"dtype {y.dtype}", takes="integers with sparse=True")
        if self.sparse or (y.dtype.is_integer and y.ndim == 1):
            if y.shape != x.shape[:1]:
                raise ShapeError(where, "labels", got=f"shape {y.shape}", takes=f"({x.shape[0]},), one class a row")
            y = ops.cast(y, dt.int64) if y.dtype.kind == "u" else y  # -1 marks what is outside
            inside = (y >= 0) & (y < x.shape[1])
            loss = cross_entropy(x, ops.where(inside, y, -1), None, -1, "none")
        else:
            if y.shape != x.shape:
                raise ShapeError(where, "labels", got=f"shape {y.shape}", takes=f"the shape of 'logits', {x.shape}")
            loss = apply(soft_cross_entropy_p, x, ops.cast(y, x.dtype), axis=1)
        return self._reduced(loss)


def _class_weight(where: str, weight: Any) -> Tensor | None:
    if weight is not None and not isinstance(weight, Tensor):
        raise ArgumentTypeError(where, "weight", got=type(weight).__name__, takes="a Tensor or None")
    return weight


class CrossEntropyLoss(LossBase):
    """Cross entropy of the softmax of logits, of any number of places.

    Args:
        weight: weight of each class, of shape (classes,), or None.
        ignore_index: places with this class number count for nothing.
        reduction: ``"mean"`` (weighted by the class weights), ``"sum"`` or ``"none"``.
        label_smoothing: this much of the target is spread evenly over all classes, from 0 to 1.

    Inputs:
        logits: a tensor of shape (batch, classes, ...), or (classes,).
        labels: class numbers of shape (batch, ...), or probabilities of the shape of ``logits``.

    Raises:
        ShapeError: the labels fit neither form.

    >>> import mycelia as ms
    >>> print(ms.nn.CrossEntropyLoss()(ms.Tensor([[0.0, 0.0]]), ms.Tensor([1])))
    0.6931472
    """

    def __init__(
        self,
        weight: Any = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.weight = _class_weight("CrossEntropyLoss", weight)
        self.ignore_index = arg.positive("CrossEntropyLoss", "ignore_index", ignore_index, -(2**62))
        self.label_smoothing = arg.fraction("CrossEntropyLoss", "label_smoothing", label_smoothing)

    def construct(self, logits: Any, labels: Any) -> Any:
        x, y = self._tensor("logits", logits), self._tensor("labels", labels)
        return cross_entropy(x, y, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class NLLLoss(LossBase):
    """Minus the log-probability of the class.

    Args:
        weight: weight of each class, of shape (classes,), or None.
        ignore_index: places with this class number count for nothing.
        reduction: ``"mean"`` (weighted by the class weights), ``"sum"`` or ``"none"``.

    Inputs:
        logits: log-probabilities of shape (batch, classes, ...).
        labels: class numbers of shape (batch, ...).

    >>> import mycelia as ms
    >>> print(ms.nn.NLLLoss()(ms.Tensor([[-1.0, -2.0]]), ms.Tensor([1])))
    2.0
    """

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = _class_weight("NLLLoss", weight)
        self.ignore_index = arg.positive("NLLLoss", "ignore_index", ignore_index, -(2**62))

    def construct(self, logits: Any, labels: Any) -> Any:
        x, y = self._tensor("logits", logits), self._tensor("labels", labels)
        return ops.nll_loss(x, y, self.weight, self.ignore_index, self.reduction)


class BCELoss(LossBase):
    """Binary cross entropy of probabilities.

    Args:
        weight: weight of each element, a tensor that broadcasts, or None.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        logits: probabilities, from 0 to 1.
        labels: targets of the same shape.

    >>> import mycelia as ms
    >>> print(ms.nn.BCELoss()(ms.Tensor([0.5]), ms.Tensor([1.0])))
    0.6931472
    """

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = _class_weight("BCELoss", weight)

    def construct(self, logits: Any, labels: Any) -> Any:
        x, y = self._same_shape(logits, labels)
        return ops.binary_cross_entropy(x, y, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    """Binary cross entropy of the sigmoid of logits.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        weight: weight of each element, a tensor that broadcasts, or None.
        pos_weight: weight of positive targets, likewise.

    Inputs:
        input: logits.
        target: targets that broadcast with them.

    >>> import mycelia as ms
    >>> print(ms.nn.BCEWithLogitsLoss()(ms.Tensor([0.0]), ms.Tensor([1.0])))
    0.6931472
    """

    def __init__(self, reduction: str = "mean", weight: Any = None, pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self.weight = _class_weight("BCEWithLogitsLoss", weight)
        if pos_weight is not None and not isinstance(pos_weight, Tensor):
            raise ArgumentTypeError(
                "BCEWithLogitsLoss", "pos_weight", got=type(pos_weight).__name__, takes="a Tensor or None"
            )
        self.pos_weight = pos_weight

    def construct(self, input: Any, target: Any) -> Any:
        x, y = self._pair(input, target, ("input", "target"))
        return ops.binary_cross_entropy_with_logits(x, y, self.weight, self.pos_weight, self.reduction)


class KLDivLoss(LossBase):
    """Kullback-Leibler divergence: ``labels * (log(labels) - logits)``.

    Args:
        reduction: ``"mean"``, ``"batchmean"`` (the sum divided by the batch), ``"sum"`` or ``"none"``.

    Inputs:
        logits: log-probabilities.
        labels: probabilities of the same shape.

    >>> import mycelia as ms
    >>> print(ms.nn.KLDivLoss("sum")(ms.Tensor([-1.0, -1.0]), ms.Tensor([1.0, 0.0])))
    1.0
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self._set_reduction(reduction, ("none", "mean", "batchmean", "sum"))

    def construct(self, logits: Any, labels: Any) -> Any:
        x, y = self._same_shape(logits, labels)
        return ops.kl_div(x, y, self.reduction)


class SoftMarginLoss(LossBase):
    """``log(1 + exp(-labels * logits))`` for labels of 1 and -1.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    >>> import mycelia as ms
    >>> print(ms.nn.SoftMarginLoss()(ms.Tensor([0.0]), ms.Tensor([1.0])))
    0.6931472
    """

    def construct(self, logits: Any, labels: Any) -> Any:
        x, y = self._same_shape(logits, labels)
        return ops.soft_margin_loss(x, y, self.reduction)


class MultiMarginLoss(LossBase):
    """``max(0, margin - x[target] + x[i]) ** p``, the mean over all classes i but the target.

    Args:
        p: 1 or 2.
        margin: a number.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        weight: weight of each class, of shape (classes,), or None.

    Inputs:
        x: a tensor of shape (batch, classes).
        target: class numbers of shape (batch,).
        weight: in place of the one given before.

    >>> import mycelia as ms
    >>> print(ms.nn.MultiMarginLoss()(ms.Tensor([[0.5, 0.0]]), ms.Tensor([0])))
    0.25
    """

    def __init__(self, p: int = 1, margin: float = 1.0, reduction: str = "mean", weight: Any = None) -> None:
        super().__init__(reduction)
        if arg.positive("MultiMarginLoss", "p", p) not in (1, 2):
            raise ArgumentValueError("MultiMarginLoss", "p", got=str(p), takes="1 or 2")
        self.p, self.margin = p, arg.number("MultiMarginLoss", "margin", margin)
        self.weight = _class_weight("MultiMarginLoss", weight)

    def construct(self, x: Any, target: Any, weight: Any = None) -> Any:
        chosen = self.weight if weight is None else weight
        return ops.multi_margin_loss(x, target, self.p, self.margin, chosen, self.reduction)


class MultilabelMarginLoss(LossBase):
    """``max(0, 1 - (x[j] - x[i]))`` over all target classes j and others i, divided by the classes.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        x: a tensor of shape (batch, classes), or (classes,).
        target: the target classes of each row, the rest filled with -1, integers of that shape.

    >>> import mycelia as ms
    >>> print(ms.nn.MultilabelMarginLoss()(ms.Tensor([[0.5, 0.0]]), ms.Tensor([[0, -1]])))
    0.25
    """

    def construct(self, x: Any, target: Any) -> Any:
        return ops.multilabel_margin_loss(x, target, self.reduction)


class MultiLabelSoftMarginLoss(LossBase):
    """Binary cross entropy of the sigmoid of logits, the mean over the classes.

    Args:
        weight: weight of each class, or None.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    >>> import mycelia as ms
    >>> print(ms.nn.MultiLabelSoftMarginLoss()(ms.Tensor([[0.0, 0.0]]), ms.Tensor([[1.0, 0.0]])))
    0.6931472
    """

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = _class_weight("MultiLabelSoftMarginLoss", weight)

    def construct(self, x: Any, target: Any) -> Any:
        return ops.multilabel_soft_margin_loss(x, target, self.weight, self.reduction)


class HingeEmbeddingLoss(LossBase):
    """``logits`` where the label is 1, ``max(0, margin - logits)`` where it is -1.

    Args:
        margin: a number.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    >>> import mycelia as ms
    >>> print(ms.nn.HingeEmbeddingLoss()(ms.Tensor([0.5, 0.25]), ms.Tensor([1.0, -1.0])))
    0.625
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = arg.number("HingeEmbeddingLoss", "margin", margin)

    def construct(self, logits: Any, labels: Any) -> Any:
        x, y = self._pair(logits, labels)
        return ops.hinge_embedding_loss(x, y, self.margin, self.reduction)


class FocalLoss(LossBase):
    """``-(1 - p) ** gamma * log(p)``, p the probability of the class.

    T. Lin et al., "Focal loss for dense object detection", ICCV 2017.

    Args:
        weight: weight of each class, of shape (classes,), or None.
        gamma: how much easy places count less.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        logits: a tensor of shape (batch, classes), (batch, classes, L) or (batch, classes, H, W).
        labels: class numbers of shape (batch, 1, ...); or ones and zeros of the shape of ``logits``.

    Outputs:
        With ``"none"`` means over the places, of shape (batch,); or (batch, classes) for labels of ones and zeros.

    Raises:
        ShapeError: the labels fit neither form.

    >>> import mycelia as ms
    >>> print(ms.nn.FocalLoss()(ms.Tensor([[0.0, 0.0]]), ms.Tensor([[1]])))
    0.1732868
    """

    def __init__(self, weight: Any = None, gamma: float = 2.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.gamma = arg.number("FocalLoss", "gamma", gamma)
        self.weight = _class_weight("FocalLoss", weight)
        if weight is not None and weight.ndim != 1:
            raise ShapeError("FocalLoss", "weight", got=f"shape {weight.shape}", takes="one axis, one value a class")

    def construct(self, logits: Any, labels: Any) -> Any:
        layout = "(batch, classes, ...)"
        x = arg.axes_of_input("FocalLoss", "logits", self._tensor("logits", logits), (2, 3, 4), layout)
        y = arg.axes_of_input("FocalLoss", "labels", self._tensor("labels", labels), (2, 3, 4), layout)
        batch, classes = x.shape[:2]
        if y.shape != x.shape and y.shape != (batch, 1, *x.shape[2:]):
            raise ShapeError(
                "FocalLoss", "labels", got=f"shape {y.shape}", takes=f"shape {x.shape}, or {(batch, 1, *x.shape[2:])}"
            )
        places = x.size // max(batch * classes, 1)
        x = ops.reshape(x, (batch, classes, places))
        y = ops.reshape(y, (batch, y.shape[1], places))
        log_p: Any = ops.log_softmax(x, 1)
        weight = None
        if self.weight is not None:
            if self.weight.shape != (classes,):
                raise ShapeError(
                    "FocalLoss", "weight", got=f"shape {self.weight.shape}", takes=f"({classes},), one value a class"
                )
            weight = ops.reshape(ops.cast(self.weight, log_p.dtype), (1, classes, 1))
        if y.shape[1] == 1:
            chosen = ops.cast(y, dt.int64)
            chosen = ops.where(chosen < 0, chosen + classes, chosen)
            log_p = ops.gather_elements(log_p, 1, chosen)
            if weight is not None:
                weight = ops.gather_elements(ops.broadcast_to(weight, x.shape), 1, chosen)
        loss = -log_p * ops.pow(1 - ops.exp(log_p), self.gamma)
        if weight is not None:
            loss = loss * weight
        if y.shape[1] != 1:
            loss = loss * ops.cast(y, loss.dtype)
        loss = ops.mean(loss, 2)
        return self._reduced(ops.squeeze(loss, 1) if y.shape[1] == 1 and classes != 1 else loss)
