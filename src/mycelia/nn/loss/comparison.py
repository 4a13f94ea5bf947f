"""Losses that compare vectors: angles, rankings, triplets; and overlaps of regions."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core.errors import ArgumentValueError, DTypeError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg
from mycelia.nn.layers.activation import activation_of
from mycelia.nn.loss.base import LossBase
from mycelia.tensor import Tensor


class CosineEmbeddingLoss(LossBase):
    """``1 - cos(x1, x2)`` where the label is 1, ``max(0, cos(x1, x2) - margin)`` where it is -1.

    Args:
        margin: a number from -1 to 1.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        logits_x1: a tensor of shape (batch, features, ...).
        logits_x2: a tensor of that shape.
        labels: ones and minus ones of shape (batch, ...).

    >>> import mycelia as ms
    >>> x = ms.Tensor([[1.0, 0.0]])
    >>> f"{ms.nn.CosineEmbeddingLoss()(x, x, ms.Tensor([-1])).item():.4f}"
    '1.0000'
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        if not -1 <= arg.number("CosineEmbeddingLoss", "margin", margin) <= 1:
            raise ArgumentValueError("CosineEmbeddingLoss", "margin", got=str(margin), takes="a number from -1 to 1")
        self.margin = margin

    def construct(self, logits_x1: Any, logits_x2: Any, labels: Any) -> Any:
        a, b = self._same_shape(logits_x1, logits_x2, ("logits_x1", "logits_x2"))
        return ops.cosine_embedding_loss(a, b, labels, self.margin, self.reduction)


class MarginRankingLoss(LossBase):
    """``max(0, -target * (input1 - input2) + margin)``.

    Args:
        margin: a number.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    >>> import mycelia as ms
    >>> print(ms.nn.MarginRankingLoss()(ms.Tensor([1.0]), ms.Tensor([3.0]), ms.Tensor([1.0])))
    2.0
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = arg.number("MarginRankingLoss", "margin", margin)

    def construct(self, input1: Any, input2: Any, target: Any) -> Any:
        return ops.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class TripletMarginLoss(LossBase):
    """``max(0, d(x, positive) - d(x, negative) + margin)``, d a p-norm distance.

    Args:
        p: which p-norm.
        swap: take the distance of ``positive`` and ``negative`` where it is smaller.
        eps: added to differences.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        margin: a number.

    Inputs:
        x: a tensor of shape (batch, features).
        positive: a tensor of that shape.
        negative: a tensor of that shape.
        margin: in place of the one given before.

    >>> import mycelia as ms
    >>> zero, one = ms.ops.zeros((1, 1)), ms.ops.ones((1, 1))
    >>> print(ms.nn.TripletMarginLoss(eps=0.0)(zero, one, one))
    1.0
    """

    def __init__(
        self, p: int = 2, swap: bool = False, eps: float = 1e-6, reduction: str = "mean", margin: float = 1.0
    ) -> None:
        super().__init__(reduction)
        self.p = arg.positive("TripletMarginLoss", "p", p)
        arg.flag("TripletMarginLoss", "swap", swap)
        self.swap = swap
        self.eps = arg.number("TripletMarginLoss", "eps", eps)
        self.margin = margin if isinstance(margin, Tensor) else arg.number("TripletMarginLoss", "margin", margin)

    def construct(self, x: Any, positive: Any, negative: Any, margin: Any = None) -> Any:
        chosen = self.margin if margin is None else margin
        return ops.triplet_margin_loss(x, positive, negative, chosen, self.p, self.eps, self.swap, self.reduction)


class TripletMarginWithDistanceLoss(LossBase):
    """:class:`TripletMarginLoss` with a distance of one's own.

    Args:
        distance_function: of two tensors of shape (batch, features), their distances; Euclidean by default.
        swap: take the distance of ``positive`` and ``negative`` where it is smaller.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        margin: a number.

    >>> import mycelia as ms
    >>> loss = ms.nn.TripletMarginWithDistanceLoss(lambda a, b: ms.ops.abs(a - b).sum(1))
    >>> zero, one = ms.ops.zeros((1, 1)), ms.ops.ones((1, 1))
    >>> print(loss(zero, one, one))
    1.0
    """

    def __init__(
        self, distance_function: Any = None, swap: bool = False, reduction: str = "mean", margin: float = 1.0
    ) -> None:
        super().__init__(reduction)
        where = "TripletMarginWithDistanceLoss"
        if distance_function is not None:
            arg.function(where, "distance_function", distance_function, "a function of two tensors, or None")
        self.distance_function = distance_function
        arg.flag(where, "swap", swap)
        self.swap = swap
        if arg.number(where, "margin", margin) <= 0:
            raise ArgumentValueError(where, "margin", got=str(margin), takes="a positive number")
        self.margin = margin

    def _distance(self, a: Any, b: Any) -> Any:
        if self.distance_function is not None:
            return self.distance_function(a, b)
        return ops.sqrt(ops.sum(ops.square(a - b + 1e-6), -1))

    def construct(self, x: Any, positive: Any, negative: Any) -> Any:
        a, p = self._same_shape(x, positive, ("x", "positive"))
        a, n = self._same_shape(a, negative, ("x", "negative"))
        far = self._distance(a, n)
        if self.swap:
            far = ops.minimum(far, self._distance(p, n))
        return self._reduced(ops.relu(self._distance(a, p) - far + self.margin))


class DiceLoss(LossBase):
    """``1 - 2 * sum(logits * label) / (sum(logits ** 2) + sum(label ** 2) + smooth)``.

    Args:
        smooth: added to the denominator, a positive number.

    Inputs:
        logits: a tensor.
        label: a tensor of the same shape.

    >>> import mycelia as ms
    >>> x = ms.Tensor([[1.0, 0.0]])
    >>> print(ms.nn.DiceLoss()(x, 1 - x))
    1.0
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        if arg.number("DiceLoss", "smooth", smooth) <= 0:
            raise ArgumentValueError("DiceLoss", "smooth", got=str(smooth), takes="a positive number")
        self.smooth = smooth

    def construct(self, logits: Any, label: Any) -> Any:
        x, y = self._same_shape(logits, label, ("logits", "label"))
        y = ops.cast(y, arg.floating_input("DiceLoss", "logits", x).dtype)
        both = ops.sum(x * y)
        return 1 - 2 * both / (ops.sum(ops.square(x)) + ops.sum(ops.square(y)) + self.smooth)


class MultiClassDiceLoss(LossBase):
    """The mean of :class:`DiceLoss` over the classes.

    Args:
        weights: weight of each class, a tensor of shape (classes, dim), or None.
        ignore_indiex: a class that counts for nothing, or None.
        activation: applied to the logits first: a name, a Cell or None.

    Inputs:
        logits: a tensor of shape (batch, classes, ...).
        label: a tensor of the same shape.

    >>> import mycelia as ms
    >>> x = ms.Tensor([[1.0, 0.0]])
    >>> f"{ms.nn.MultiClassDiceLoss(activation=None)(1 - x, x).item():.4f}"
    '1.0000'
    """

    def __init__(self, weights: Any = None, ignore_indiex: int | None = None, activation: Any = "softmax") -> None:
        super().__init__()
        where = "MultiClassDiceLoss"
        self.binarydiceloss = DiceLoss()
        if weights is not None and (not isinstance(weights, Tensor) or weights.ndim != 2):
            got = f"shape {weights.shape}" if isinstance(weights, Tensor) else type(weights).__name__
            raise ShapeError(where, "weights", got=got, takes="a Tensor of shape (classes, dim)")
        self.weights = weights
        if ignore_indiex is not None:
            arg.positive(where, "ignore_indiex", ignore_indiex, 0)
        self.ignore_indiex = ignore_indiex
        self.activation: Cell | Any = activation_of(where, activation)

    def construct(self, logits: Any, label: Any) -> Any:
        x, y = self._same_shape(logits, label, ("logits", "label"))
        if x.ndim < 2:
            raise ShapeError(
                "MultiClassDiceLoss", "logits", got=f"shape {x.shape}", takes="shape (batch, classes, ...)"
            )
        classes = x.shape[1]
        if self.weights is not None and self.weights.shape[0] != classes:
            raise ShapeError(
                "MultiClassDiceLoss", "weights", got=f"shape {self.weights.shape}", takes=f"{classes} rows, one a class"
            )
        probabilities: Any = x if self.activation is None else self.activation(x)
        targets: Any = y
        total: Any = 0
        for i in range(classes):
            if i == self.ignore_indiex:
                continue
            loss = self.binarydiceloss(probabilities[:, i], targets[:, i])
            total = total + (loss if self.weights is None else loss * self.weights[i])
        return total / classes


class SampledSoftmaxLoss(LossBase):
    """Cross entropy over the true classes and a few random others.

    S. Jean et al., "On using very large target vocabulary for neural machine translation", ACL 2015.

    Args:
        num_sampled: how many classes are drawn.
        num_classes: how many there are.
        num_true: true classes of each row.
        sampled_values: drawn classes, expected counts of the true and of the drawn classes; drawn anew, each
            class once, by default.
        remove_accidental_hits: leave out drawn classes that are true ones of a row.
        seed: a seed of the drawing; 0 for the global one.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Inputs:
        weights: weights of all classes, of shape (classes, dim).
        biases: their biases, of shape (classes,).
        labels: true classes, integers of shape (batch, num_true).
        logits: what the weights are multiplied with, of shape (batch, dim).

    Raises:
        ArgumentValueError: more classes are drawn than there are.

    >>> import mycelia as ms
    >>> loss = ms.nn.SampledSoftmaxLoss(2, 2)
    >>> zeros = ms.ops.zeros((2, 3))
    >>> print(loss(zeros, ms.ops.zeros(2), ms.Tensor([[0]]), zeros[:1]))
    [0.6931472]
    """

    def __init__(
        self,
        num_sampled: int,
        num_classes: int,
        num_true: int = 1,
        sampled_values: Any = None,
        remove_accidental_hits: bool = True,
        seed: int = 0,
        reduction: str = "none",
    ) -> None:
        super().__init__(reduction)
        where = "SampledSoftmaxLoss"
        self.num_classes = arg.positive(where, "num_classes", num_classes)
        for name, value in (("num_sampled", num_sampled), ("num_true", num_true)):
            if arg.positive(where, name, value) > num_classes:
                raise ArgumentValueError(where, name, got=str(value), takes=f"at most num_classes, {num_classes}")
        self.num_sampled, self.num_true = num_sampled, num_true
        if sampled_values is not None:
            if not isinstance(sampled_values, (tuple, list)):
                raise arg.type_error(where, "sampled_values", sampled_values, "a tuple of three tensors")
            if len(sampled_values) != 3:
                raise ArgumentValueError(
                    where, "sampled_values", got=f"{len(sampled_values)} values", takes="three tensors"
                )
        self.sampled_values = sampled_values
        arg.flag(where, "remove_accidental_hits", remove_accidental_hits)
        self.remove_accidental_hits = remove_accidental_hits
        self.seed = arg.positive(where, "seed", seed, 0)

    def _drawn(self) -> tuple[Any, Any, Any]:
        if self.sampled_values is not None:
            drawn, true_count, drawn_count = self.sampled_values
            return drawn, true_count, drawn_count
        order = ops.argsort(ops.rand(self.num_classes, seed=self.seed or None))
        expected = self.num_sampled / self.num_classes
        return ops.narrow(order, 0, 0, self.num_sampled), expected, expected

    def construct(self, weights: Any, biases: Any, labels: Any, logits: Any) -> Any:
        where = "SampledSoftmaxLoss"
        true = arg.axes_of_input(where, "labels", self._tensor("labels", labels), (2,), "(batch, num_true)")
        arg.channels_of(where, "labels", true, 1, self.num_true, "classes")
        if not true.dtype.is_integer:
            raise DTypeError(where, "labels", got=f"dtype {true.dtype}", takes="integers")
        x = arg.axes_of_input(where, "logits", self._tensor("logits", logits), (2,), "(batch, dim)")
        w = arg.axes_of_input(where, "weights", self._tensor("weights", weights), (2,), "(classes, dim)")
        arg.channels_of(where, "weights", w, 0, self.num_classes, "classes")
        drawn, true_count, drawn_count = self._drawn()
        of_true = ops.sum(ops.expand_dims(x, 1) * ops.gather(w, true, 0), 2) + ops.gather(biases, true, 0)
        of_drawn = ops.dense(x, ops.gather(w, drawn, 0), ops.gather(biases, drawn, 0))
        of_true = of_true - _log(true_count, of_true)
        of_drawn = of_drawn - _log(drawn_count, of_drawn)
        if self.remove_accidental_hits:
            hit = ops.any(ops.expand_dims(true, 2) == ops.cast(ops.reshape(drawn, (1, 1, -1)), true.dtype), 1)
            of_drawn = ops.where(
                hit, ops.full_like(of_drawn, -3.0e38 if of_drawn.dtype.itemsize > 2 else -6.0e4), of_drawn
            )
        all_logits = ops.concat((of_true, of_drawn), 1)
        log_p = ops.log_softmax(all_logits, 1)
        return self._reduced(-ops.mean(ops.narrow(log_p, 1, 0, self.num_true), 1))


def _log(count: Any, like: Any) -> Any:
    return ops.log(ops.cast(count, like.dtype)) if isinstance(count, Tensor) else ops.log(ops.full_like(like, count))
