"""What the metrics of the real MindSpore give for the cases below, recorded for the tests.

    python mindspore_values.py        # with MindSpore 2.10, an environment of its own

``mindspore_values.json`` maps the name of each case to the value, as nested lists. A case is the class, its
arguments, and the inputs of one or more updates; where MindSpore is known to be wrong, it is not among them.
"""

from __future__ import annotations

import json
import os

import numpy as np

R = np.random.RandomState(5)
SCORES = R.uniform(0, 1, (6, 4)).round(3)
LABELS = R.randint(0, 4, 6)
MORE_SCORES, MORE_LABELS = R.uniform(0, 1, (5, 4)).round(3), R.randint(0, 4, 5)
IMAGES, IMAGE_LABELS = R.uniform(0, 1, (2, 3, 4)).round(3), R.randint(0, 3, (2, 4))
ONE_HOT = np.eye(4)[LABELS]
BITS, BIT_LABELS = R.randint(0, 2, (5, 3)), R.randint(0, 2, (5, 3))
BIT_IMAGES, BIT_IMAGE_LABELS = R.randint(0, 2, (3, 2, 4)), R.randint(0, 2, (3, 2, 4))
VALUES, TARGETS = R.uniform(-1, 1, (4, 3)).round(3), R.uniform(-1, 1, (4, 3)).round(3)
SQUARE, SQUARE_LABELS = R.uniform(0, 1, (4, 4)).round(3), np.array([0, 1, 2, 3])
BINARY, BINARY_LABELS = R.uniform(0, 1, 8).round(3), np.array([0, 1, 1, 0, 1, 0, 0, 1])
PROBABILITIES = SCORES / SCORES.sum(1, keepdims=True)
ROWS = R.uniform(-1, 1, (4, 5)).round(3)
MASK, OTHER_MASK = np.zeros((8, 9), int), np.zeros((8, 9), int)
MASK[1:5, 2:7], OTHER_MASK[2:7, 3:9] = 1, 1
VOLUME, OTHER_VOLUME = np.zeros((5, 6, 6), int), np.zeros((5, 6, 6), int)
VOLUME[1:4, 1:5, 0:4], OTHER_VOLUME[0:4, 2:6, 1:6] = 2, 2
SENTENCES = [["the", "cat", "sat", "on", "the", "mat"], ["a", "dog", "ran", "far", "away", "today"]]
REFERENCES = [
    [["the", "cat", "sat", "on", "a", "mat"], ["on", "the", "mat", "the", "cat", "sat"]],
    [["a", "dog", "ran", "far", "away"], ["today", "a", "dog", "ran", "far", "away", "from", "home"]],
]  # fmt: skip

#: name: (class, arguments of the class, arguments of eval, inputs of each update)
CASES = {
    "accuracy": ("Accuracy", {}, {}, [(SCORES, LABELS), (MORE_SCORES, MORE_LABELS)]),
    "accuracy_one_hot": ("Accuracy", {}, {}, [(SCORES, ONE_HOT)]),
    "accuracy_images": ("Accuracy", {}, {}, [(IMAGES, IMAGE_LABELS)]),
    "accuracy_multilabel": ("Accuracy", {"eval_type": "multilabel"}, {}, [(BITS, BIT_LABELS)]),
    "accuracy_multilabel_images": ("Accuracy", {"eval_type": "multilabel"}, {}, [(BIT_IMAGES, BIT_IMAGE_LABELS)]),
    "precision": ("Precision", {}, {}, [(SCORES, LABELS), (MORE_SCORES, MORE_LABELS)]),
    "precision_average": ("Precision", {}, {"average": True}, [(SCORES, ONE_HOT)]),
    "precision_images": ("Precision", {}, {}, [(IMAGES, IMAGE_LABELS)]),
    "precision_multilabel": ("Precision", {"eval_type": "multilabel"}, {}, [(BITS, BIT_LABELS), (BIT_LABELS, BITS)]),
    "precision_multilabel_average": (
        "Precision", {"eval_type": "multilabel"}, {"average": True}, [(BITS, BIT_LABELS), (BIT_LABELS, BITS)]
    ),
    "recall": ("Recall", {}, {}, [(SCORES, LABELS), (MORE_SCORES, MORE_LABELS)]),
    "recall_average": ("Recall", {}, {"average": True}, [(SCORES, LABELS)]),
    "recall_multilabel": ("Recall", {"eval_type": "multilabel"}, {}, [(BIT_IMAGES, BIT_IMAGE_LABELS)]),
    "f1": ("F1", {}, {}, [(SCORES, LABELS), (MORE_SCORES, MORE_LABELS)]),
    "fbeta": ("Fbeta", {"beta": 2}, {"average": True}, [(SCORES, ONE_HOT)]),
    "top1": ("Top1CategoricalAccuracy", {}, {}, [(SCORES, LABELS)]),
    "top3": ("TopKCategoricalAccuracy", {"k": 3}, {}, [(SCORES, ONE_HOT), (MORE_SCORES, MORE_LABELS)]),
    "mae": ("MAE", {}, {}, [(VALUES, TARGETS), (TARGETS, VALUES)]),
    "mse": ("MSE", {}, {}, [(VALUES, TARGETS)]),
    "mse_column": ("MSE", {}, {}, [(VALUES[:, :1], TARGETS[:, 0])]),
    "loss": ("Loss", {}, {}, [(np.array(0.5),), (np.array([0.25, 1.0]),)]),
    "matrix": ("ConfusionMatrix", {"num_classes": 4}, {}, [(SCORES, LABELS), (MORE_SCORES, MORE_LABELS)]),
    "matrix_target": ("ConfusionMatrix", {"num_classes": 4, "normalize": "target"}, {}, [(SCORES, LABELS)]),
    "matrix_prediction": ("ConfusionMatrix", {"num_classes": 4, "normalize": "prediction"}, {}, [(SCORES, LABELS)]),
    "matrix_all": ("ConfusionMatrix", {"num_classes": 4, "normalize": "all"}, {}, [(LABELS, LABELS[::-1])]),
    "matrix_threshold": ("ConfusionMatrix", {"num_classes": 2, "threshold": 0.3}, {}, [(BINARY, BINARY_LABELS)]),
    "roc": ("ROC", {"pos_label": 1}, {}, [(BINARY, BINARY_LABELS)]),
    "roc_zero": ("ROC", {"pos_label": 0}, {}, [(BINARY.round(1), BINARY_LABELS)]),
    "roc_classes": ("ROC", {"class_num": 4}, {}, [(SQUARE, SQUARE_LABELS)]),
    "perplexity": ("Perplexity", {}, {}, [(PROBABILITIES, LABELS), (SCORES, LABELS)]),
    "perplexity_ignore": ("Perplexity", {"ignore_label": int(LABELS[0])}, {}, [(PROBABILITIES, LABELS)]),
    "bleu": ("BleuScore", {}, {}, [(SENTENCES, REFERENCES)]),
    "bleu_smooth": ("BleuScore", {"n_gram": 2, "smooth": True}, {}, [(SENTENCES[:1], REFERENCES[:1])]),
    "bleu_none": ("BleuScore", {}, {}, [([["x", "y"]], [[["the", "cat"]]])]),
    "dice": ("Dice", {"smooth": 1e-3}, {}, [(VALUES[:1], TARGETS[:1]), (VALUES[1:2], TARGETS[1:2])]),
    "cosine": ("CosineSimilarity", {}, {}, [(ROWS,)]),
    "cosine_mean": ("CosineSimilarity", {"reduction": "mean", "zero_diagonal": False}, {}, [(ROWS,)]),
    "dot_sum": ("CosineSimilarity", {"similarity": "dot", "reduction": "sum"}, {}, [(ROWS,)]),
    **{
        f"rate_{name}{'_apart' if apart else ''}": (
            "ConfusionMatrixMetric",
            {"metric_name": name, "calculation_method": apart, "skip_channel": name != "npv"},
            {}, [(BIT_IMAGES, BIT_IMAGE_LABELS)],
        )
        for apart in (False, True)
        for name in ("tpr", "specificity", "precision", "npv", "miss rate", "fpr", "false_discovery_rate", "for",
                     "prevalence threshold", "ts", "accuracy", "balanced_accuracy", "f1 score", "mcc", "fm",
                     "informedness", "markedness")
    },
    "rate_sum": (
        "ConfusionMatrixMetric", {"metric_name": "tpr", "calculation_method": True, "decrease": "sum"}, {},
        [(BIT_IMAGES, BIT_IMAGE_LABELS), (BIT_IMAGE_LABELS, BIT_IMAGES)],
    ),
    **{
        f"{name}_{metric}": (cls, {"distance_metric": metric, **options}, {}, [(MASK, OTHER_MASK, 1)])
        for metric in ("euclidean", "chessboard", "taxicab")
        for name, cls, options in (
            ("hausdorff", "HausdorffDistance", {}),
            ("hausdorff_directed", "HausdorffDistance", {"directed": True, "percentile": 75.0, "crop": False}),
            ("mean_surface", "MeanSurfaceDistance", {}),
            ("mean_surface_symmetric", "MeanSurfaceDistance", {"symmetric": True}),
            ("rms_symmetric", "RootMeanSquareDistance", {"symmetric": True}),
        )
    },
    "hausdorff_volume": ("HausdorffDistance", {}, {}, [(VOLUME, OTHER_VOLUME, 2)]),
    "mean_surface_volume": ("MeanSurfaceDistance", {}, {}, [(VOLUME, OTHER_VOLUME, 2)]),
}  # fmt: skip


def value_of(metric, eval_options, updates):
    """The value after the updates, as nested lists."""
    metric.clear()
    for inputs in updates:
        metric.update(*inputs)
    return plain(metric.eval(**eval_options))


def plain(value):
    """Arrays as nested lists, numbers as floats."""
    if isinstance(value, (tuple, list)):
        return [plain(x) for x in value]
    return np.asarray(value, float).tolist()


def main():
    import mindspore
    from mindspore import train

    found = {}
    for name, (cls, options, eval_options, updates) in CASES.items():
        found[name] = value_of(getattr(train, cls)(**options), eval_options, updates)
    file = os.path.splitext(os.path.abspath(__file__))[0] + ".json"
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"version": mindspore.__version__, "values": found}, out, indent=0)
        out.write("\n")


if __name__ == "__main__":
    main()
