"""Adafactor: Adam's second moment kept as sums of rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia import ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.nn.cell import ParameterTuple
from mycelia.nn.optim.groups import check_number
from mycelia.nn.optim.optimizer import Optimizer
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.tensor import check_bool


def _rms(x: Tensor) -> Any:
    return ops.sqrt((x * x).mean())


class AdaFactor(Optimizer):
    """Adafactor (Shazeer and Stern, 2018).

    The second moment of a parameter with two axes or more is the product of the running means of its rows and
    of its columns. The update is clipped to a root mean square of ``clip_threshold`` and scaled by the rate.

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        learning_rate: number, sequence or schedule; None with ``relative_step``.
        eps: added to the square of gradients, and the least scale of a parameter.
        clip_threshold: limit of the root mean square of an update.
        decay_rate: the second moment's rate is ``1 - t ** -decay_rate``; between 0 and 1.
        beta1: rate of the running mean of updates; None or 0 for none.
        weight_decay: decoupled decay, from 0 to below 1.
        scale_parameter: multiply the rate by the parameter's root mean square.
        relative_step: take ``min(0.01, 1 / sqrt(t))`` as the rate.
        warmup_init: take ``1e-6 t`` in place of 0.01 there.
        compression: keep the second moment of vectors in float16.
        loss_scale: kept for compatibility: the update does not change with the scale of the gradients.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: an argument out of range, or options that exclude each other.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([[1.0, 1.0], [2.0, 2.0]]), name="w")
    >>> optimizer = ms.nn.AdaFactor([w], 0.1, beta1=None, scale_parameter=False, relative_step=False)
    >>> _ = optimizer((ms.Tensor([[1.0, 1.0], [2.0, 2.0]]),))
    >>> print(w.asnumpy().round(3))
    [[0.9 0.9]
     [1.9 1.9]]
    """

    def __init__(
        self, params: Any, learning_rate: Any = None, eps: tuple[float, float] = (1e-30, 0.001),
        clip_threshold: float = 1.0, decay_rate: float = 0.8, beta1: float | None = 0.9, weight_decay: float = 0.0,
        scale_parameter: bool = True, relative_step: bool = True, warmup_init: bool = False, compression: bool = False,
        loss_scale: float = 1.0,
    ) -> None:  # fmt: skip
        where = "AdaFactor"
        flags = {
            "scale_parameter": scale_parameter, "relative_step": relative_step, "warmup_init": warmup_init,
            "compression": compression,
        }  # fmt: skip
        for name, flag in flags.items():
            check_bool(where, name, flag)
        if (learning_rate is None) != relative_step:
            raise ArgumentValueError(
                where, "learning_rate", got=f"{learning_rate!r} with relative_step={relative_step}",
                takes="None with relative_step, a rate without",
            )  # fmt: skip
        if warmup_init and not relative_step:
            raise ArgumentValueError(where, "warmup_init", got="True", takes="False without relative_step")
        super().__init__(0.0 if learning_rate is None else learning_rate, params, weight_decay, loss_scale)
        if not isinstance(eps, (list, tuple)):
            raise ArgumentTypeError(where, "eps", got=type(eps).__name__, takes="two numbers")
        if len(eps) != 2:
            raise ArgumentValueError(where, "eps", got=f"{len(eps)} numbers", takes="two")
        self.eps = (check_number(where, "eps[0]", eps[0]), check_number(where, "eps[1]", eps[1]))
        self.clip_threshold = check_number(where, "clip_threshold", clip_threshold)
        self.decay_rate = check_number(where, "decay_rate", decay_rate, positive=True, below=1.0)
        self.decay = check_number(where, "weight_decay", weight_decay, below=1.0)
        self.beta1 = 0.0 if beta1 is None else check_number(where, "beta1", beta1)
        self.use_first_moment = self.beta1 > 0
        self.scale_parameter = scale_parameter and not self.dynamic_lr
        self.relative_step, self.warmup_init, self.compression = relative_step, warmup_init, compression
        if self.use_first_moment:
            self.exp_avg = self.state("exp_avg")
        else:  # MindSpore's checkpoints have this name
            unused = Parameter(Tensor(0.0), "Parameter$1", requires_grad=False)
            self.exp_avg = ParameterTuple([unused] * self.param_length)
        self._make_second_moments()
        self.step = Parameter(Tensor(np.zeros(1, np.float32)), "afactor_step", requires_grad=False)

    def _make_second_moments(self) -> None:
        rows: list[Parameter] = []
        columns: list[Parameter] = []
        whole: list[Parameter] = []
        for p in self.parameters:
            factored, kind = p.ndim > 1, p.dtype.np
            shapes = (p.shape[:-1], p.shape[:-2] + p.shape[-1:], (1,)) if factored else ((1,), (1,), p.shape)
            kinds = (kind, kind, np.float16 if self.compression and not factored else kind)
            names = [f"exp_avg_sq_{part}{p.name}" for part in ("row_", "col_", "")]
            for made, name, shape, dtype in zip((rows, columns, whole), names, shapes, kinds, strict=True):
                made.append(Parameter(Tensor(np.zeros(shape, dtype)), name, requires_grad=False))
        self.exp_avg_sq_row, self.exp_avg_sq_col = ParameterTuple(rows), ParameterTuple(columns)
        self.exp_avg_sq = ParameterTuple(whole)

    def construct(self, gradients: Any) -> Any:
        self.check_gradients(gradients)
        rates = self.rates()
        self.next_step()
        t = self.step + 1.0
        self.put(self.step, t)
        t = t.reshape(())
        if self.relative_step:
            lowest = t * 1e-6 if self.warmup_init else 0.01
            rates = [ops.minimum(1.0 / ops.sqrt(t), lowest)] * self.param_length
        beta2 = 1.0 - ops.pow(t, -self.decay_rate)
        for i, (p, g, lr) in enumerate(zip(self.parameters, gradients, rates, strict=True)):
            wide_p, wide_g = self.wide(p, g)
            if self.scale_parameter:
                lr = lr * ops.maximum(_rms(wide_p), self.eps[1])
            update = self._normalized(i, wide_g, beta2)
            update = update / ops.maximum(_rms(update) / self.clip_threshold, 1.0) * lr
            if self.use_first_moment:
                (mean,) = self.wide(self.exp_avg[i])
                update = mean * self.beta1 + update * (1.0 - self.beta1)
                self.put(self.exp_avg[i], update)
            if self.decay:
                wide_p = wide_p - wide_p * (lr * self.decay)
            self.put(p, wide_p - update)
        return True

    def _normalized(self, i: int, g: Tensor, beta2: Tensor) -> Any:
        """The gradient over the root of its second moment."""
        square = g * g + self.eps[0]
        if g.ndim < 2:
            (mean,) = self.wide(self.exp_avg_sq[i])
            mean = mean * beta2 + square * (1.0 - beta2)
            self.put(self.exp_avg_sq[i], mean)
            return g / ops.sqrt(mean)
        row, column = self.wide(self.exp_avg_sq_row[i], self.exp_avg_sq_col[i])
        row = row * beta2 + square.mean(-1) * (1.0 - beta2)
        column = column * beta2 + square.mean(-2) * (1.0 - beta2)
        self.put(self.exp_avg_sq_row[i], row)
        self.put(self.exp_avg_sq_col[i], column)
        across = 1.0 / ops.sqrt(row / row.mean(-1, True))
        return g * across.expand_dims(-1) * (1.0 / ops.sqrt(column)).expand_dims(-2)
