"""Callbacks that watch a metric: stop early, or lower the learning rate on a plateau."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError
from mycelia.tensor import Tensor
from mycelia.train.callback.base import Callback, RunContext
from mycelia.train.callback.monitors import loss_of

_RISING = ("acc", "accuracy", "precision", "recall", "f1", "auc", "dice", "fbeta", "top")


class _Watching(Callback):
    """The value watched, and what counts as better."""

    def __init__(self, where: str, monitor: str, mode: str, min_delta: float, patience: int) -> None:
        if not isinstance(monitor, str):
            raise ArgumentTypeError(where, "monitor", got=type(monitor).__name__, takes="a string")
        if mode not in ("auto", "min", "max"):
            raise ArgumentValueError(where, "mode", got=repr(mode), takes='"auto", "min" or "max"')
        if isinstance(patience, bool) or not isinstance(patience, int) or patience < 0:
            raise ArgumentValueError(where, "patience", got=repr(patience), takes="an int of at least 0")
        if isinstance(min_delta, bool) or not isinstance(min_delta, (int, float)):
            raise ArgumentTypeError(where, "min_delta", got=repr(min_delta), takes="a number")
        rising = mode == "max" or (mode == "auto" and any(word in monitor.lower() for word in _RISING))
        self.monitor, self.patience, self.min_delta = monitor, patience, abs(min_delta)
        self._where, self._rising = where, rising
        self.wait = 0
        self.best = -np.inf if rising else np.inf

    def improves(self, value: float, best: float) -> bool:
        """Whether ``value`` is better than ``best`` by more than ``min_delta``."""
        return value - self.min_delta > best if self._rising else value + self.min_delta < best

    def watched(self, run_context: RunContext) -> float | None:
        """The value now; None when the epoch was not evaluated."""
        run = run_context.original_args()
        if self.monitor == "loss":
            return float(loss_of(run.net_outputs))
        results = run.get("eval_results") or {}
        if self.monitor in results:
            return float(results[self.monitor])
        if results or run.get("valid_dataset") is None:
            raise ArgumentValueError(
                self._where, "monitor", got=repr(self.monitor), takes="one of " + ", ".join(repr(k) for k in ("loss", *results)),
                hint="metrics are known in Model.fit, which evaluates; Model.train knows the loss only",
            )  # fmt: skip
        return None


class EarlyStopping(_Watching):
    """Stops training when a value has stopped getting better.

    Args:
        monitor: ``"loss"``, ``"eval_loss"``, or a metric's name.
        min_delta: a smaller change is none.
        patience: epochs without improvement before stopping.
        verbose: print when stopping.
        mode: ``"min"``, ``"max"`` or ``"auto"`` (by the name).
        baseline: the value must be better than this to count as improved.
        restore_best_weights: put the parameters of the best epoch back when stopping.
    """

    def __init__(
        self, monitor: str = "eval_loss", min_delta: float = 0, patience: int = 0, verbose: bool = False,
        mode: str = "auto", baseline: float | None = None, restore_best_weights: bool = False,
    ) -> None:  # fmt: skip
        super().__init__("EarlyStopping", monitor, mode, min_delta, patience)
        self.verbose, self.baseline, self.restore_best_weights = verbose, baseline, restore_best_weights
        self.stopped_epoch = 0
        self._best_weights: dict[str, Any] | None = None

    def on_train_begin(self, run_context: RunContext) -> None:
        self.wait, self.stopped_epoch, self._best_weights = 0, 0, None
        self.best = -np.inf if self._rising else np.inf

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        value = self.watched(run_context)
        if value is None:
            return
        network = run.train_network
        if self.restore_best_weights and self._best_weights is None:
            self._best_weights = {n: p.asnumpy() for n, p in network.parameters_and_names()}
        self.wait += 1
        if self.improves(value, self.best):
            self.best = value
            if self.restore_best_weights:
                self._best_weights = {n: p.asnumpy() for n, p in network.parameters_and_names()}
            if self.baseline is None or self.improves(value, self.baseline):
                self.wait = 0
        if self.wait > 0 and self.wait >= self.patience:
            self.stopped_epoch = run.cur_epoch_num
            run_context.request_stop()
            if self._best_weights is not None:
                for name, param in network.parameters_and_names():
                    param.set_data(Tensor(self._best_weights[name]))

    def on_train_end(self, run_context: RunContext) -> None:
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping", flush=True)


class ReduceLROnPlateau(_Watching):
    """Multiplies the learning rate by ``factor`` when a value has stopped getting better.

    Args:
        monitor: ``"loss"``, ``"eval_loss"``, or a metric's name.
        factor: between 0 and 1.
        patience: epochs without improvement before lowering.
        verbose: print when lowering.
        mode: ``"min"``, ``"max"`` or ``"auto"`` (by the name).
        min_delta: a smaller change is none.
        cooldown: epochs to wait after lowering.
        min_lr: never below this.
    """

    def __init__(
        self, monitor: str = "eval_loss", factor: float = 0.1, patience: int = 10, verbose: bool = False,
        mode: str = "auto", min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__("ReduceLROnPlateau", monitor, mode, min_delta, patience)
        if not 0 <= factor < 1:
            raise ArgumentValueError("ReduceLROnPlateau", "factor", got=repr(factor), takes="a number from 0 to below 1")
        self.factor, self.verbose, self.cooldown, self.min_lr = factor, verbose, cooldown, min_lr
        self.cooldown_counter = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        self.wait, self.cooldown_counter = 0, 0
        self.best = -np.inf if self._rising else np.inf

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        value = self.watched(run_context)
        if value is None:
            return
        rate = run.optimizer.learning_rate
        if not isinstance(rate, Tensor):
            raise StateError("ReduceLROnPlateau", message="the optimizer's learning rate follows a schedule of its own")
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self.improves(value, self.best):
            self.best, self.wait = value, 0
        elif self.cooldown_counter == 0:
            self.wait += 1
            if self.wait >= self.patience and float(rate) > self.min_lr:
                lower = max(float(rate) * self.factor, self.min_lr)
                rate.set_data(Tensor(np.float32(lower)))  # type: ignore[attr-defined]
                self.cooldown_counter, self.wait = self.cooldown, 0
                if self.verbose:
                    print(f"Epoch {run.cur_epoch_num:05d}: ReduceLROnPlateau reducing learning rate to {lower}.", flush=True)
