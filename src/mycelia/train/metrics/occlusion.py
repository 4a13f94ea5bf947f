"""How much hiding a part of an image changes a classifier's score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError
from mycelia.nn.cell import Cell
from mycelia.tensor import Tensor
from mycelia.train.metrics.metric import Array, Metric, rearrange_inputs


class OcclusionSensitivity(Metric):
    """The fall of a class's score when a box around each element of the image is hidden (Zeiler and Fergus, 2014).

    Args:
        pad_val: the value that hides.
        margin: the box reaches from ``margin`` before an element to ``margin`` after it, that one excluded; one
            number, or one for each axis of the image.
        n_batch: images evaluated at once.
        b_box: the elements that are tried: ``[min, max, min, max, ...]`` for each axis of the image, negative
            bounds meaning its ends; by default all.

    Raises:
        ArgumentTypeError: an argument of the wrong type.

    >>> import numpy as np, mycelia as ms
    >>> class Net(ms.nn.Cell):
    ...     def construct(self, x):
    ...         return x.reshape((x.shape[0], -1))
    >>> metric = ms.train.OcclusionSensitivity(margin=1)
    >>> metric(Net(), np.array([[0.5, 1.0, 2.0]]), np.array([1]))
    array([0., 1., 1.])
    """

    def __init__(
        self, pad_val: float = 0.0, margin: int | list[int] = 2, n_batch: int = 128, b_box: list[int] | None = None
    ) -> None:
        super().__init__()
        where = "OcclusionSensitivity"
        if isinstance(pad_val, bool) or not isinstance(pad_val, float):
            raise ArgumentTypeError(where, "pad_val", got=repr(pad_val), takes="a float")
        margins = margin if isinstance(margin, list) else [margin]
        if not all(isinstance(m, int) and not isinstance(m, bool) for m in margins):
            raise ArgumentTypeError(where, "margin", got=repr(margin), takes="an int or a list of ints")
        if isinstance(n_batch, bool) or not isinstance(n_batch, int):
            raise ArgumentTypeError(where, "n_batch", got=repr(n_batch), takes="an int")
        if n_batch < 1:
            raise ArgumentValueError(where, "n_batch", got=str(n_batch), takes="an int above 0")
        if b_box is not None and not isinstance(b_box, list):
            raise ArgumentTypeError(where, "b_box", got=type(b_box).__name__, takes="a list or None")
        self.pad_val, self.margin, self.n_batch, self.b_box = pad_val, margin, n_batch, b_box
        self.clear()

    def clear(self) -> None:
        self._result: Array | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take a model, one image of shape (1, ...) and the label; only the last update counts."""
        self._check_number(inputs, "model", "image", "label")
        model = inputs[0]
        if not isinstance(model, Cell):
            raise ArgumentTypeError(
                "OcclusionSensitivity.update", "model", got=type(model).__name__, takes="a Cell that classifies"
            )
        image = self._convert_data(inputs[1])
        label = np.asarray(inputs[2]) if isinstance(inputs[2], int) else self._convert_data(inputs[2])
        if not image.ndim or image.shape[0] != 1 or label.size != 1:
            raise StateError(
                "OcclusionSensitivity.update", "image", got=f"shape {image.shape} with {label.size} labels",
                takes="one image of shape (1, ...) and one label",
            )  # fmt: skip
        shape = image.shape[1:]
        margins = self.margin if isinstance(self.margin, list) else [self.margin] * len(shape)
        if len(margins) != len(shape):
            raise self._refuse("image", f"{len(shape)} axes", f"{len(margins)}, as many as margins")
        first, last = self._box(shape)
        column = int(label.reshape(()))
        scores: list[Array] = []
        hidden: list[Array] = []
        for index in np.ndindex(*[b - a + 1 for a, b in zip(first, last, strict=True)]):
            place = [i + a for i, a in zip(index, first, strict=True)]
            box = tuple([slice(max(0, i - m), min(n, i + m)) for i, m, n in zip(place, margins, shape, strict=True)])
            copy = image.copy()
            copy[(slice(None), *box)] = self.pad_val
            hidden.append(copy)
            if len(hidden) == self.n_batch:
                scores.append(_scores(model, hidden, column))
                hidden = []
        if hidden:
            scores.append(_scores(model, hidden, column))
        sizes = [b - a + 1 for a, b in zip(first, last, strict=True)]
        self._result = _scores(model, [image], column)[0] - np.concatenate(scores).reshape(sizes)

    def _box(self, shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
        """The first and last elements that are tried."""
        if self.b_box is None:
            return [0] * len(shape), [n - 1 for n in shape]
        if len(self.b_box) != 2 * len(shape):
            raise self._refuse(
                "b_box", f"{len(self.b_box)} bounds", f"two for each of the {len(shape)} axes of the image"
            )
        first = [max(0, a) for a in self.b_box[::2]]
        last = [n - 1 if b < 0 else b for b, n in zip(self.b_box[1::2], shape, strict=True)]
        if any(b >= n for b, n in zip(last, shape, strict=True)) or any(
            a > b for a, b in zip(first, last, strict=True)
        ):
            raise self._refuse("b_box", str(self.b_box), f"bounds that rise, inside an image of shape {shape}")
        return first, last

    def eval(self) -> Array:
        """The baseline minus the score for each element tried."""
        self._check_seen(self._result is not None)
        return np.squeeze(np.asarray(self._result))


def _scores(model: Cell, images: Sequence[Array], column: int) -> Array:
    return np.asarray(model(Tensor(np.concatenate(images))).asnumpy()[:, column])
