"""Metrics against their definitions: those MindSpore gets wrong, and brute force in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, train

R = np.random.RandomState(9)


# what MindSpore gets wrong -----------------------------------------------------------------------------------


def brute_force_roc(scores: Any, positive: Any) -> tuple[list[float], list[float], list[float]]:
    thresholds = [scores.max() + 1, *sorted(set(scores.tolist()), reverse=True)]
    rates = [((scores >= t) & ~positive).sum() / (~positive).sum() for t in thresholds]
    return rates, [((scores >= t) & positive).sum() / positive.sum() for t in thresholds], thresholds


def test_roc_of_several_classes() -> None:
    scores, labels = R.uniform(0, 1, (20, 3)).round(1), R.randint(0, 3, 20)
    fpr, tpr, thresholds = train.ROC(class_num=3)(scores, labels)
    for c in range(3):
        for found, wanted in zip(
            (fpr[c], tpr[c], thresholds[c]), brute_force_roc(scores[:, c], labels == c), strict=True
        ):
            np.testing.assert_allclose(found, wanted)


def test_roc_of_several_batches_is_that_of_all_of_them() -> None:
    scores, labels = R.uniform(0, 1, 30), R.randint(0, 2, 30)
    metric = train.ROC()
    for i in range(0, 30, 10):
        metric.update(scores[i : i + 10], labels[i : i + 10])
    for found, wanted in zip(metric.eval(), brute_force_roc(scores, labels == 1), strict=True):
        np.testing.assert_allclose(found, wanted)


def test_the_dice_coefficient_of_equal_batches_is_one() -> None:
    mask = R.randint(0, 2, (7, 4))
    metric = train.Dice()
    metric.update(mask, mask)
    metric.update(mask[:3], mask[:3])
    assert metric.eval() == pytest.approx(1.0, abs=1e-5)


def test_root_mean_square_distance_has_the_root_in_one_direction_too() -> None:
    a, b = np.zeros((1, 9), int), np.zeros((1, 9), int)
    a[0, 0], b[0, 4] = 1, 1
    assert train.RootMeanSquareDistance()(a, b, 1) == 4.0
    assert train.RootMeanSquareDistance(symmetric=True)(a, b, 1) == 4.0


def test_perplexity_of_sequences() -> None:
    probabilities = R.dirichlet(np.ones(5), (3, 4))
    labels = R.randint(0, 5, (3, 4))
    chosen = np.take_along_axis(probabilities, labels[..., None], -1)
    assert train.Perplexity()(probabilities, labels) == pytest.approx(np.exp(-np.log(chosen).mean()))


def test_reductions_do_not_change_what_was_seen() -> None:
    metric = train.CosineSimilarity(reduction="sum")
    metric.update(R.uniform(size=(3, 4)))
    np.testing.assert_array_equal(metric.eval(), metric.eval())


def test_a_thin_object_is_all_surface() -> None:
    a, b = np.zeros((7, 7), int), np.zeros((7, 7), int)
    a[3, 0:7], b[3, 0], b[3, 6] = 1, 1, 1
    assert train.HausdorffDistance()(a, b, 1) == 3.0


# brute force -------------------------------------------------------------------------------------------------


def surface(mask: Any) -> Any:
    """Voxels with a neighbour, along some axis, that is not of the mask."""
    padded = np.pad(mask, 1)
    inner = np.ones(mask.shape, bool)
    for axis in range(mask.ndim):
        for shift in (-1, 1):
            inner &= np.roll(padded, shift, axis)[tuple([slice(1, -1)] * mask.ndim)]
    return np.argwhere(mask & ~inner)


@pytest.mark.parametrize(("metric", "order"), [("euclidean", 2), ("chessboard", np.inf), ("taxicab", 1)])
@pytest.mark.parametrize("shape", [(8, 9), (5, 6, 4)])
def test_surface_distances(metric: str, order: float, shape: tuple[int, ...]) -> None:
    a, b = R.uniform(size=shape) > 0.5, R.uniform(size=shape) > 0.6
    one, two = surface(a), surface(b)
    each = np.linalg.norm(one[:, None] - two[None], order, -1)
    there, back = each.min(1), each.min(0)
    inputs = (a, b, 1)
    assert train.HausdorffDistance(metric)(*inputs) == pytest.approx(max(there.max(), back.max()))
    assert train.HausdorffDistance(metric, directed=True)(*inputs) == pytest.approx(there.max())
    assert train.HausdorffDistance(metric, 60.0, True)(*inputs) == pytest.approx(np.percentile(there, 60))
    assert train.MeanSurfaceDistance(False, metric)(*inputs) == pytest.approx(there.mean())
    assert train.MeanSurfaceDistance(True, metric)(*inputs) == pytest.approx((there.mean() + back.mean()) / 2)
    assert train.RootMeanSquareDistance(False, metric)(*inputs) == pytest.approx(np.sqrt((there**2).mean()))
    assert train.RootMeanSquareDistance(True, metric)(*inputs) == pytest.approx(
        np.sqrt(((there**2).mean() + (back**2).mean()) / 2)
    )


def test_the_distance_to_nothing_is_infinite() -> None:
    mask = np.zeros((4, 4), int)
    other = mask.copy()
    other[1, 1] = 1
    for cls in (train.HausdorffDistance, train.MeanSurfaceDistance, train.RootMeanSquareDistance):
        assert cls()(mask, other, 1) == np.inf
        assert cls()(other, mask, 1) == np.inf


@pytest.mark.parametrize("reverse", [1, -1])
def test_auc_is_the_trapezoidal_rule(reverse: int) -> None:
    x, y = np.sort(R.uniform(size=9))[::reverse], R.uniform(size=9)
    wanted = abs(sum((x[i + 1] - x[i]) * (y[i] + y[i + 1]) / 2 for i in range(8)))
    assert train.auc(x, y) == pytest.approx(wanted)
    assert train.auc(x[:, None], y[:, None]) == pytest.approx(wanted)
    order = R.permutation(9)
    assert train.auc(x[order], y[order], reorder=True) == pytest.approx(wanted)


def test_occlusion_sensitivity_by_hand() -> None:
    net = nn.SequentialCell(nn.Flatten(), nn.Dense(12, 3))
    image = R.uniform(size=(1, 1, 3, 4)).astype(np.float32)
    score = lambda x: net(ms.Tensor(x)).asnumpy()[0, 2]  # noqa: E731
    wanted = np.zeros((1, 3, 4))
    for c, i, j in np.ndindex(1, 3, 4):
        hidden = image.copy()
        hidden[:, max(0, c - 1) : c + 1, max(0, i - 1) : i + 1, max(0, j - 1) : j + 1] = 0.25
        wanted[c, i, j] = score(image) - score(hidden)
    found = train.OcclusionSensitivity(pad_val=0.25, margin=1, n_batch=5)(net, ms.Tensor(image), ms.Tensor([2]))
    np.testing.assert_allclose(found, wanted[0], atol=1e-6)
    boxed = train.OcclusionSensitivity(0.25, [1, 1, 1], b_box=[-1, -1, 1, 2, 0, -1])(net, image, 2)
    np.testing.assert_allclose(boxed, wanted[0, 1:3], atol=1e-6)


def test_ties_of_scores_go_to_the_first_classes() -> None:
    assert train.TopKCategoricalAccuracy(2)(np.zeros((3, 4)), np.array([0, 1, 2])) == pytest.approx(2 / 3)


def test_a_rate_of_nothing_is_nan() -> None:
    zeros = np.zeros((2, 2, 3), int)
    assert np.isnan(train.ConfusionMatrixMetric(metric_name="tpr")(zeros, zeros)).all()
    assert train.ConfusionMatrixMetric(metric_name="tnr", calculation_method=True)(zeros, zeros) == 1.0


# names, indexes, errors --------------------------------------------------------------------------------------


def test_names_and_metrics_by_name() -> None:
    assert train.names() == [
        "F1", "acc", "accuracy", "auc", "bleu_score", "confusion_matrix", "confusion_matrix_metric",
        "cosine_similarity", "dice", "hausdorff_distance", "loss", "mae", "mean_surface_distance", "mse",
        "occlusion_sensitivity", "perplexity", "precision", "recall", "roc", "root_mean_square_distance",
        "top_1_accuracy", "top_5_accuracy", "topk",
    ]  # fmt: skip
    assert isinstance(train.get_metric_fn("acc"), train.Accuracy)
    assert train.get_metric_fn("topk", 3).k == 3
    assert train.get_metric_fn("auc", np.array([0.0, 1.0]), np.array([1.0, 1.0])) == 1.0
    with pytest.raises(KeyError, match="get_metric_fn: argument 'name' got 'nonsense'"):
        train.get_metric_fn("nonsense")


def test_set_indexes_chooses_the_inputs() -> None:
    scores, labels = np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1])
    metric = train.Accuracy().set_indexes([2, 0])
    assert metric.indexes == [2, 0]
    assert metric(labels, "ignored", scores) == 0.5
    with pytest.raises(ValueError, match=r"set_indexes: argument 'indexes' got \[2, 0\]; it takes positions of the 2"):
        metric(labels, scores)
    with pytest.raises(ValueError, match="takes a list of ints"):
        metric.set_indexes((1, 2))


S, L = np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 0])


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: train.Accuracy().eval(), RuntimeError, "Accuracy.eval: no samples were seen"),
        (lambda: train.Loss().eval(), RuntimeError, "no samples were seen"),
        (lambda: train.ROC().eval(), RuntimeError, "no samples were seen"),
        (lambda: train.HausdorffDistance().eval(), RuntimeError, "no samples were seen"),
        (lambda: train.BleuScore().eval(), RuntimeError, "no samples were seen"),
        (lambda: train.ConfusionMatrix(2).eval(), RuntimeError, "no samples were seen"),
        (lambda: train.Accuracy("other"), TypeError, "'eval_type' got 'other'"),
        (lambda: train.Accuracy()(S), ValueError, "got 1 inputs; it takes 2: predictions, labels"),
        (lambda: train.Accuracy()(S, "labels"), TypeError, "got str; it takes a Tensor, list or NumPy array"),
        (lambda: train.Accuracy()(S, np.array([1, 0, 1])), ValueError, r"'labels' got shape \(3,\)"),
        (lambda: train.Accuracy()(S, np.array([1, 2])), ValueError, "got the class 2; it takes classes from 0 to 1"),
        (lambda: train.Accuracy("multilabel")(S, S), ValueError, "'predictions' got other values; it takes 0 and 1"),
        (lambda: train.Recall()(S, np.array([-1, 0])), ValueError, "the class -1"),
        (lambda: two(train.Precision(), S, L), ValueError, "'predictions' got 3 classes; it takes 2, as in"),
        (lambda: train.Fbeta(0), ValueError, "'beta' got 0"),
        (lambda: train.Fbeta("1"), TypeError, "'beta' got '1'"),
        (lambda: evaluated(train.F1(), average=1), TypeError, "'average' got 1"),
        (lambda: train.TopKCategoricalAccuracy(0), ValueError, "'k' got 0"),
        (lambda: train.TopKCategoricalAccuracy(1.0), TypeError, "'k' got 1.0"),
        (lambda: train.TopKCategoricalAccuracy(1)(S, np.array([1])), ValueError, "got 1 labels"),
        (lambda: train.MAE()(S, L), ValueError, r"'labels' got shape \(2,\); it takes as many elements"),
        (lambda: train.Loss()(S), ValueError, r"'loss' got shape \(2, 2\)"),
        (lambda: train.ConfusionMatrix(0), ValueError, "'num_classes' got 0"),
        (lambda: train.ConfusionMatrix(2, "rows"), ValueError, "'normalize' got 'rows'"),
        (lambda: train.ConfusionMatrix(2, threshold=1), TypeError, "'threshold' got 1"),
        (lambda: train.ConfusionMatrix(2)(np.array([0, 3]), L), ValueError, "'predictions' got the class 3"),
        (lambda: train.ConfusionMatrixMetric(metric_name="luck"), NotImplementedError, "'metric_name' got 'luck'"),
        (lambda: train.ConfusionMatrixMetric(decrease="all"), ValueError, "'decrease' got 'all'"),
        (lambda: train.ConfusionMatrixMetric()(S, S), ValueError, "'predictions' got other values"),
        (lambda: train.ROC(class_num=1.5), TypeError, "'class_num' got 1.5"),
        (lambda: train.ROC()(S, L), ValueError, r"'predictions' got shape \(2, 2\); it takes None classes"),
        (lambda: train.ROC(class_num=3)(L, L), ValueError, "it takes an axis of 3 classes"),
        (lambda: train.ROC()(np.array([0.1, 0.2]), np.array([1, 1])), ValueError, "got no negative samples"),
        (lambda: train.auc([0, 1], [0, 1]), TypeError, "auc: argument 'x' got list"),
        (lambda: train.auc(np.zeros(3), np.zeros(2)), ValueError, "'y' got 2 values"),
        (lambda: train.auc(np.zeros(1), np.zeros(1)), ValueError, "at least two points"),
        (lambda: train.auc(np.array([0, 2, 1]), np.zeros(3)), ValueError, "values that rise and fall"),
        (lambda: train.Perplexity("x"), TypeError, "'ignore_label' got 'x'"),
        (lambda: train.Perplexity()(S, np.array([1])), ValueError, "one label for each row"),
        (lambda: train.Perplexity()(S, np.array([1, 5])), ValueError, "the class 5"),
        (lambda: train.BleuScore(5), ValueError, "'n_gram' got 5"),
        (lambda: train.BleuScore()([["a"]], []), ValueError, "'references' got 0 lists"),
        (lambda: train.Dice(0), ValueError, "'smooth' got 0"),
        (lambda: train.Dice()(S, L), ValueError, r"'labels' got shape \(2,\)"),
        (lambda: train.CosineSimilarity("l2"), ValueError, "'similarity' got 'l2'"),
        (lambda: train.CosineSimilarity()(L), ValueError, "it takes two axes"),
        (lambda: train.HausdorffDistance("l2"), ValueError, "'distance_metric' got 'l2'"),
        (lambda: train.HausdorffDistance(percentile=101.0), ValueError, "'percentile' got 101.0"),
        (lambda: train.MeanSurfaceDistance(symmetric=1), TypeError, "'symmetric' got 1"),
        (lambda: train.MeanSurfaceDistance()(L, L, "1"), ValueError, "'label index' got '1'"),
        (lambda: train.MeanSurfaceDistance()(L, L, 5), ValueError, "'label index' got 5; it takes a value of"),
        (lambda: train.RootMeanSquareDistance()(L, L[:1], 1), ValueError, r"'labels' got shape \(1,\)"),
        (lambda: train.OcclusionSensitivity(margin=1.5), TypeError, "'margin' got 1.5"),
        (lambda: train.OcclusionSensitivity()(S, S, L), TypeError, "'model' got ndarray"),
        (lambda: train.OcclusionSensitivity()(nn.ReLU(), S, L), RuntimeError, r"got shape \(2, 2\) with 2 labels"),
        (lambda: train.OcclusionSensitivity(b_box=[0, 9])(nn.ReLU(), S[:1], 0), ValueError, "inside an image of shape"),
    ],
)  # fmt: skip
def test_wrong_uses_are_refused(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def two(metric: Any, scores: Any, labels: Any) -> None:
    metric.update(scores, labels)
    metric.update(np.zeros((2, 3)), labels)


def evaluated(metric: Any, **options: Any) -> Any:
    metric.update(S, L)
    return metric.eval(**options)


def test_metric_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        train.Metric()
