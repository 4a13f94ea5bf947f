"""Metrics of language models and translations: perplexity and BLEU."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.tensor.tensor import check_bool
from mycelia.train.metrics.metric import Metric, rearrange_inputs


class Perplexity(Metric):
    """``exp`` of the mean negative log-likelihood of the labels.

    Args:
        ignore_label: labels of this value do not count.

    Raises:
        ArgumentTypeError: ``ignore_label`` is not an int.

    >>> import numpy as np, mycelia as ms
    >>> round(ms.train.Perplexity()(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), np.array([0, 1, 1])), 4)
    4.3679
    """

    def __init__(self, ignore_label: int | None = None) -> None:
        super().__init__()
        if ignore_label is not None and (isinstance(ignore_label, bool) or not isinstance(ignore_label, int)):
            raise ArgumentTypeError("Perplexity", "ignore_label", got=repr(ignore_label), takes="an int or None")
        self.ignore_label = ignore_label
        self.clear()

    def clear(self) -> None:
        self._sum_metric, self._num_inst = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take probabilities of shape (..., C) and labels of shape (...)."""
        y_pred, y = self._arrays(inputs, "predictions", "labels")
        if not y_pred.ndim or y.size * y_pred.shape[-1] != y_pred.size:
            raise self._refuse(
                "labels", f"shape {y.shape}", f"one label for each row of predictions of shape {y_pred.shape}"
            )
        labels = y.reshape(-1).astype(np.int64)
        counted = np.ones(labels.shape, bool) if self.ignore_label is None else labels != self.ignore_label
        labels, rows = labels[counted], y_pred.reshape(-1, y_pred.shape[-1])[counted]
        if labels.size and not 0 <= labels.min() <= labels.max() < rows.shape[1]:
            wrong = labels.min() if labels.min() < 0 else labels.max()
            raise self._refuse("labels", f"the class {int(wrong)}", f"classes from 0 to {rows.shape[1] - 1}")
        chosen = np.take_along_axis(rows, labels[:, None], 1)
        self._sum_metric -= float(np.log(np.maximum(chosen, 1e-10)).sum())
        self._num_inst += labels.size

    def eval(self) -> float:
        self._check_seen(self._num_inst)
        return math.exp(self._sum_metric / self._num_inst)


class BleuScore(Metric):
    """BLEU of a corpus (Papineni et al., 2002).

    Args:
        n_gram: longest n-grams counted, from 1 to 4.
        smooth: add one to matches and totals (Lin and Och, 2004).

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: ``n_gram`` out of range.

    >>> import mycelia as ms
    >>> candidate = [["i", "have", "a", "pen", "on", "my", "desk"]]
    >>> references = [[["i", "have", "a", "pen", "in", "my", "desk"], ["there", "is", "a", "pen", "on", "the", "desk"]]]
    >>> round(float(ms.train.BleuScore()(candidate, references)), 4)
    0.5946
    """

    def __init__(self, n_gram: int = 4, smooth: bool = False) -> None:
        super().__init__()
        if isinstance(n_gram, bool) or not isinstance(n_gram, int):
            raise ArgumentTypeError("BleuScore", "n_gram", got=repr(n_gram), takes="an int")
        if not 1 <= n_gram <= 4:
            raise ArgumentValueError("BleuScore", "n_gram", got=str(n_gram), takes="an int from 1 to 4")
        check_bool("BleuScore", "smooth", smooth)
        self.n_gram, self.smooth = n_gram, smooth
        self.clear()

    def clear(self) -> None:
        self._matches, self._totals = np.zeros(self.n_gram), np.zeros(self.n_gram)
        self._candidate_length = self._reference_length = 0
        self._is_update = False

    def _ngrams(self, tokens: Sequence[Any]) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(tokens[j : j + i]) for i in range(1, self.n_gram + 1) for j in range(len(tokens) - i + 1))

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take candidates, each a list of tokens, and for each a list of references."""
        self._check_number(inputs, "candidates", "references")
        candidates, references = inputs
        if len(candidates) != len(references):
            raise self._refuse(
                "references", f"{len(references)} lists", f"one for each of the {len(candidates)} candidates"
            )
        for candidate, ones in zip(candidates, references, strict=True):
            self._candidate_length += len(candidate)
            self._reference_length += min((len(one) for one in ones), key=lambda n: abs(len(candidate) - n))
            allowed: Counter[tuple[Any, ...]] = Counter()
            for one in ones:
                allowed |= self._ngrams(one)
            found = self._ngrams(candidate)
            for counts, into in ((found & allowed, self._matches), (found, self._totals)):
                for ngram, count in counts.items():
                    into[len(ngram) - 1] += count
        self._is_update = True

    def eval(self) -> Any:
        self._check_seen(self._is_update)
        if not self._matches.all():
            return np.array(0.0)
        extra = 1.0 if self.smooth else 0.0
        precisions = (self._matches + extra) / (self._totals + extra)
        brevity = 1.0
        if self._candidate_length <= self._reference_length:
            brevity = math.exp(1 - self._reference_length / self._candidate_length)
        return np.array(brevity * np.exp(np.log(precisions).mean()))
