"""Connectionist temporal classification: the likelihood of a label sequence under frame-wise probabilities.

A. Graves et al., "Connectionist temporal classification" (ICML 2006). The forward recursion runs over the frames
in the logarithm, on labels with a blank before, between and after them; the gradient is that of the recursion.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float
from mycelia.ops.cross_entropy import as_reduction, reduced
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.linear import accumulator
from mycelia.ops.operands import as_int, as_tensor, cast
from mycelia.ops.registry import operator
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant


def _infer(logs: TensorType, labels: TensorType, frames: TensorType, lengths: TensorType, *, blank: int) -> TensorType:
    check_dtypes("ctc_loss", (logs,), dt.FLOATS, ("log_probs",))
    if logs.rank != 3 or not logs.shape[2]:
        raise ShapeError("ctc_loss", "log_probs", got=f"shape {logs.shape}", takes="shape (frames, batch, classes)")
    batch = logs.shape[1]
    if labels.rank != 2 or labels.shape[0] != batch:
        raise ShapeError("ctc_loss", "targets", got=f"shape {labels.shape}", takes=f"shape ({batch}, labels)")
    for t, name in ((labels, "targets"), (frames, "input_lengths"), (lengths, "target_lengths")):
        if not t.dtype.is_integer:
            raise DTypeError("ctc_loss", name, got=f"dtype {t.dtype}", takes="integers")
        if name != "targets" and t.shape != (batch,):
            raise ShapeError(
                "ctc_loss", name, got=f"shape {t.shape}", takes=f"shape ({batch},), a length for each sequence"
            )
    if not 0 <= blank < logs.shape[2]:
        raise ArgumentValueError("ctc_loss", "blank", got=str(blank), takes=f"a class from 0 to {logs.shape[2] - 1}")
    return TensorType(logs.dtype, (batch,))


def _infer_alpha(logs: TensorType, labels: TensorType, *lengths: TensorType, blank: int) -> TensorType:
    made = _infer(logs, labels, *lengths, blank=blank)
    return TensorType(logs.dtype, (*made.shape, logs.shape[0], 2 * labels.shape[1] + 1))


#: The logarithm of what is impossible: finite, so that differences of such have a derivative.
_NEVER = -1e30


def _add(*logs: Any) -> Any:
    """The logarithm of a sum of exponentials, safe where all are impossible."""
    stacked = jnp.stack(logs)
    largest = jax.lax.stop_gradient(jnp.maximum(stacked.max(0), _NEVER))
    return jnp.log(jnp.exp(stacked - largest).sum(0)) + largest


def _forward(logs: Any, labels: Any, frames: Any, lengths: Any, blank: int) -> tuple[Any, Any]:
    """Minus the log-likelihoods, and the logarithms of the forward variables after each frame."""
    wide = jnp.maximum(logs.astype(accumulator(logs.dtype) or logs.dtype), _NEVER)
    steps, batch, _ = wide.shape
    count = labels.shape[1]
    labels, frames, lengths = (a.astype(jnp.int64) for a in (labels, frames, lengths))
    states = jnp.full((batch, 2 * count + 1), blank, jnp.int64).at[:, 1::2].set(labels)
    # a blank may be left out between two different labels
    skips = jnp.zeros(states.shape, bool)
    if count > 1:
        skips = skips.at[:, 3::2].set(labels[:, 1:] != labels[:, :-1])
    never = jnp.full((batch, 1), _NEVER, wide.dtype)
    start = jnp.concatenate([jnp.zeros((batch, 1), wide.dtype), jnp.full((batch, 2 * count), _NEVER, wide.dtype)], 1)

    def step(alpha: Any, given: Any) -> tuple[Any, Any]:
        t, frame = given
        emitted = jnp.take_along_axis(frame, states, axis=1, mode="fill", fill_value=np.nan)
        once = jnp.concatenate([never, alpha[:, :-1]], 1)
        twice = jnp.where(skips, jnp.concatenate([never, never, alpha[:, :-2]], 1)[:, : alpha.shape[1]], _NEVER)
        first = jnp.where(jnp.arange(alpha.shape[1]) == 1, start[:, :1], _NEVER)
        before = jnp.where(t == 0, _add(start, first), _add(alpha, once, twice))
        after = jnp.maximum(before + emitted, _NEVER)
        made = jnp.where((t < frames)[:, None], after, alpha)
        return made, made

    alpha, table = jax.lax.scan(step, start, (jnp.arange(steps), wide))
    last = jnp.take_along_axis(alpha, (2 * lengths)[:, None], 1, mode="fill", fill_value=np.nan)[:, 0]
    label = jnp.take_along_axis(alpha, jnp.maximum(2 * lengths - 1, 0)[:, None], 1, mode="fill", fill_value=np.nan)[
        :, 0
    ]
    total = jnp.where(lengths > 0, _add(last, label), last)
    return jnp.where(total <= _NEVER / 2, np.inf, -total), table.swapaxes(0, 1)


def _lower(logs: Any, labels: Any, frames: Any, lengths: Any, *, blank: int) -> Any:
    return _forward(logs, labels, frames, lengths, blank)[0].astype(logs.dtype)


def _lower_alpha(logs: Any, labels: Any, frames: Any, lengths: Any, *, blank: int) -> Any:
    table = _forward(logs, labels, frames, lengths, blank)[1]
    there = jnp.arange(table.shape[2]) <= 2 * lengths[:, None, None]
    there = there & (jnp.arange(table.shape[1])[:, None] < frames[:, None, None])
    return jnp.where(there & (table > _NEVER / 2), table, -np.inf).astype(logs.dtype)


def _logs(*shape: int) -> np.ndarray[Any, Any]:
    x = np.sin(np.arange(float(np.prod(shape))) * 1.7).reshape(shape)
    made: np.ndarray[Any, Any] = x - np.log(np.exp(x).sum(-1, keepdims=True))
    return made


_LABELS = np.array([[1, 2, 2], [3, 0, 0]])


#: Minus the log-likelihood of each sequence.
ctc_loss_p = Primitive(
    "ctc_loss", infer=_infer, lower=_lower, derived_vjp=True,
    samples=lambda: [
        Sample((_logs(6, 2, 4), _LABELS, np.array([6, 5]), np.array([3, 1])), {"blank": 0}),
        Sample((_logs(3, 2, 3), np.array([[1, 1], [0, 1]]), np.array([3, 3]), np.array([2, 2])), {"blank": 2}),
        Sample((_logs(4, 2, 4), _LABELS, np.array([4, 2]), np.array([3, 0])), {"blank": 0}),
        Sample((_logs(2, 2, 4), _LABELS, np.array([2, 2]), np.array([3, 1])), {"blank": 0}, grad=False),
        Bad((_logs(6, 2, 4), _LABELS, np.array([6]), np.array([3, 1])), {"blank": 0}, ShapeError, "a length for each"),
        Bad((_logs(6, 2, 4), _LABELS, np.array([6, 6]), np.array([3, 1])), {"blank": 4}, ArgumentValueError, "0 to 3"),
    ],
)  # fmt: skip


#: The logarithms of the forward variables: the likelihood of reaching each state after each frame.
ctc_alpha_p = Primitive(
    "ctc_alpha", infer=_infer_alpha, lower=_lower_alpha, differentiable=False,
    samples=lambda: [
        Sample((_logs(4, 2, 4), _LABELS, np.array([4, 2]), np.array([3, 1])), {"blank": 0}, grad=False),
        Sample(
            (_logs(3, 2, 3), np.array([[1, 1], [0, 1]]), np.array([3, 3]), np.array([2, 0])), {"blank": 2}, grad=False
        ),
    ],
)  # fmt: skip


@operator()
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Minus the log-likelihood of label sequences, summed over all their alignments with the frames.

    Args:
        log_probs: logarithms of probabilities, of shape (frames, batch, classes), or (frames, classes).
        targets: labels of shape (batch, labels), or (labels,); not the blank.
        input_lengths: number of frames of each sequence, of shape (batch,), or an int.
        target_lengths: number of labels of each sequence, of shape (batch,), or an int.
        blank: the class that means no label.
        reduction: ``"none"``; ``"mean"``: each divided by its number of labels, then the mean; ``"sum"``.
        zero_infinity: count impossible sequences (too few frames) as 0 instead of infinity.

    Returns:
        The loss, and the logarithms of the forward variables, of shape (batch, frames, 2 * labels + 1): the
        likelihood of reaching each state (blank, label, blank, ...) after each frame.

    Raises:
        ShapeError: the shapes do not fit.
        ArgumentValueError: ``blank`` is no class.

    >>> import mycelia as ms
    >>> logs = ms.ops.log(ms.Tensor([[[0.5, 0.5]], [[0.5, 0.5]]]))
    >>> loss, _ = ms.ops.ctc_loss(logs, ms.Tensor([[1]]), ms.Tensor([2]), ms.Tensor([1]), reduction="sum")
    >>> print(f"{loss.item():.4f}")
    0.2877
    """
    from mycelia.ops.extremum import maximum
    from mycelia.ops.selection import where

    fold = as_reduction(reduction, "ctc_loss")
    logs = as_float(log_probs, "ctc_loss", "log_probs")
    single = logs.ndim == 2
    x = reshape(logs, (logs.shape[0], 1, logs.shape[1])) if single else logs
    labels = as_tensor(targets, "ctc_loss", "targets")
    labels = reshape(labels, (1, labels.size)) if labels.ndim == 1 and x.ndim == 3 and x.shape[1] == 1 else labels
    frames, lengths = (
        reshape(t, (t.size,))
        for t in (
            as_tensor(input_lengths, "ctc_loss", "input_lengths"),
            as_tensor(target_lengths, "ctc_loss", "target_lengths"),
        )
    )
    void = as_int(blank, "ctc_loss", "blank")
    loss: Any = apply(ctc_loss_p, x, labels, frames, lengths, blank=void)
    alpha: Tensor = apply(ctc_alpha_p, x, labels, frames, lengths, blank=void)
    if zero_infinity:
        loss = where(loss == float("inf"), 0.0, loss)
    if fold == "mean":
        loss = loss / maximum(cast(lengths, loss.dtype), 1.0)
    elif single and fold == "none":
        loss = reshape(loss, ())
    return reduced(loss, fold), alpha


def _infer_path(logits: TensorType, frames: TensorType, *, merge: bool) -> tuple[TensorType, ...]:
    check_dtypes("ctc_greedy_decoder", (logits,), dt.FLOATS, ("inputs",))
    if logits.rank != 3 or not logits.shape[2]:
        raise ShapeError("ctc_greedy_decoder", "inputs", got=f"shape {logits.shape}", takes="(frames, batch, classes)")
    batch = logits.shape[1]
    if not frames.dtype.is_integer or frames.shape != (batch,):
        raise ShapeError(
            "ctc_greedy_decoder", "sequence_length", got=str(frames), takes=f"integers of shape ({batch},)"
        )
    return TensorType(dt.int64, (batch, logits.shape[0])), TensorType(logits.dtype, (batch, 1))


def _lower_path(logits: Any, frames: Any, *, merge: bool) -> tuple[Any, ...]:
    steps, _, classes = logits.shape
    counted = jnp.arange(steps)[:, None] < frames[None, :]
    best = jnp.argmax(logits, -1)
    kept = counted & (best != classes - 1)
    if merge and steps:
        kept = kept & jnp.concatenate([jnp.ones((1, best.shape[1]), bool), best[1:] != best[:-1]])
    score = -jnp.where(counted, logits.max(-1), 0).sum(0)
    return jnp.where(kept, best, -1).T.astype(jnp.int64), score[:, None].astype(logits.dtype)


#: The likeliest class of each frame, -1 where there is no label, and minus the sum of their logits.
ctc_best_path_p = Primitive(
    "ctc_best_path", infer=_infer_path, lower=_lower_path, multi=True, differentiable=False,
    samples=lambda: [
        *[Sample((_logs(5, 2, 3), np.array([5, 3])), {"merge": merge}, grad=False) for merge in (True, False)],
        Sample((np.zeros((0, 2, 3)), np.array([0, 0])), {"merge": True}, grad=False),
        Bad((_logs(5, 2, 3), np.array([5])), {"merge": True}, ShapeError, "integers of shape"),
    ],
)  # fmt: skip


@operator()
def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The labels of the likeliest class of each frame; the last class is the blank.

    The number of labels depends on the values, so this runs eagerly only.

    Args:
        inputs: logits of shape (frames, batch, classes).
        sequence_length: number of frames of each sequence, of shape (batch,).
        merge_repeated: count a class that stays for several frames once.

    Returns:
        Positions (sequence, place) of shape (labels, 2), the labels, the shape (batch, most labels), all in int64,
        and minus the sum of the largest logits of each sequence, of shape (batch, 1).

    >>> import mycelia as ms
    >>> x = ms.Tensor([[[0.6, 0.4, 0.2]], [[0.0, 0.6, 0.0]]])
    >>> positions, labels, shape, _ = ms.ops.ctc_greedy_decoder(x, ms.Tensor([2]))
    >>> print(labels, shape)
    [0 1] [1 2]
    """
    logits = as_float(inputs, "ctc_greedy_decoder", "inputs")
    frames = as_tensor(sequence_length, "ctc_greedy_decoder", "sequence_length")
    path, score = apply(ctc_best_path_p, logits, frames, merge=bool(merge_repeated))
    table = np.asarray(path._concrete("ctc_greedy_decoder, whose result has as many rows as there are labels,"))
    rows, _ = np.nonzero(table >= 0)
    counts = np.bincount(rows, minlength=table.shape[0])
    places = np.concatenate([np.arange(c) for c in counts]) if counts.size else rows
    positions = constant(np.stack([rows, places], -1).astype(np.int64))
    shape = constant(np.array([table.shape[0], counts.max(initial=0)], np.int64))
    return positions, constant(table[table >= 0]), shape, score
