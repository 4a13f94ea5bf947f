"""Callbacks that watch a value: stop early, or lower the learning rate on a plateau."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.tensor import Tensor
from mycelia.tensor.tensor import check_bool
from mycelia.train.callback.base import Callback, RunContext
from mycelia.train.callback.monitors import check_count, loss_of, rate_of

#: Values that are better when smaller; all others are better when larger.
_FALLING = {
    "hausdorff_distance", "mae", "mse", "loss", "perplexity", "mean_surface_distance", "root_mean_square_distance",
    "eval_loss",
}  # fmt: skip


class _Watching(Callback):
    """The value watched, and what counts as better."""

    def __init__(self, where: str, monitor: str, mode: str, min_delta: float, patience: int) -> None:
        if not isinstance(monitor, str):
            raise ArgumentTypeError(where, "monitor", got=type(monitor).__name__, takes="a string")
        if mode not in ("auto", "min", "max"):
            raise ArgumentValueError(where, "mode", got=repr(mode), takes="'auto', 'min' or 'max'")
        check_number(where, "min_delta", min_delta)
        self.monitor, self.mode, self.min_delta = monitor, mode, abs(min_delta)
        self.patience = check_count(where, "patience", patience)
        self._where, self._rising = where, mode == "max" or (mode == "auto" and monitor not in _FALLING)
        self.restart()

    def restart(self) -> None:
        """Forget what was seen."""
        self.wait = 0
        self.best = -np.inf if self._rising else np.inf

    def on_train_begin(self, run_context: RunContext) -> None:
        self.restart()

    def improves(self, value: float, best: float) -> bool:
        """Whether ``value`` is better than ``best`` by more than ``min_delta``."""
        return value > best + self.min_delta if self._rising else value < best - self.min_delta

    def watched(self, run_context: RunContext) -> float | None:
        """The value now; None when the epoch was not evaluated.

        Raises:
            ArgumentValueError: there is no such value.
        """
        run = run_context.original_args()
        if self.monitor == "loss":
            return float(loss_of(run.net_outputs))
        results = run.get("eval_results")
        if results is None and run.get("valid_dataset") is not None:
            return None
        if self.monitor not in (results or {}):
            known = ", ".join(repr(k) for k in ("loss", *(results or ())))
            raise ArgumentValueError(
                self._where, "monitor", got=repr(self.monitor), takes=f"one of {known}",
                hint="Model.fit evaluates and knows the metrics; Model.train knows the loss only",
            )  # fmt: skip
        value = np.asarray((results or {})[self.monitor])
        if value.size != 1:
            raise ArgumentValueError(
                self._where, "monitor", got=f"{self.monitor!r} with {value.size} values", takes="one value"
            )
        return float(value.reshape(()))


def check_number(where: str, argument: str, value: Any) -> None:
    """Refuse what is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="a number")


class EarlyStopping(_Watching):
    """Stops training when a value has stopped getting better.

    Args:
        monitor: ``"loss"`` (of the last step of an epoch), ``"eval_loss"``, or a metric's name.
        min_delta: a smaller change is none.
        patience: epochs without improvement after which training stops; at least one passes.
        verbose: print when stopping.
        mode: ``"min"``, ``"max"`` or ``"auto"`` (losses, errors and distances fall, everything else rises).
        baseline: only values better than this count as improvement.
        restore_best_weights: put the parameters of the best epoch back when stopping.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: an argument out of range; or while training, there is no value of that name.

    >>> import mycelia as ms
    >>> callback = ms.train.EarlyStopping(monitor="acc", patience=3, restore_best_weights=True)
    """

    def __init__(
        self, monitor: str = "eval_loss", min_delta: float = 0, patience: int = 0, verbose: bool = False,
        mode: str = "auto", baseline: float | None = None, restore_best_weights: bool = False,
    ) -> None:  # fmt: skip
        super().__init__("EarlyStopping", monitor, mode, min_delta, patience)
        check_bool("EarlyStopping", "verbose", verbose)
        check_bool("EarlyStopping", "restore_best_weights", restore_best_weights)
        if baseline is not None:
            check_number("EarlyStopping", "baseline", baseline)
        self.verbose, self.baseline, self.restore_best_weights = verbose, baseline, restore_best_weights

    def restart(self) -> None:
        super().restart()
        self.stopped_epoch = 0
        self._best_weights: list[tuple[Any, np.ndarray[Any, Any]]] | None = None

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        value = self.watched(run_context)
        if value is None:
            return
        self.wait += 1
        better = self.improves(value, self.best)
        if better:
            self.best = value
            if self.baseline is None or self.improves(value, self.baseline):
                self.wait = 0
        if self.restore_best_weights and (better or self._best_weights is None):
            self._best_weights = [(p, p.asnumpy()) for p in run.train_network.get_parameters()]
        if self.wait and self.wait >= self.patience:
            self.stopped_epoch = run.cur_epoch_num
            run_context.request_stop()
            if self._best_weights is not None:
                if self.verbose:
                    print("Restoring model weights from the end of the best epoch.", flush=True)
                for param, data in self._best_weights:
                    param.set_data(Tensor(data))

    def on_train_end(self, run_context: RunContext) -> None:
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping", flush=True)


class ReduceLROnPlateau(_Watching):
    """Multiplies the learning rate by ``factor`` when a value has stopped getting better.

    Args:
        monitor: ``"loss"`` (of the last step of an epoch), ``"eval_loss"``, or a metric's name.
        factor: between 0 and 1, exclusive.
        patience: epochs without improvement before lowering.
        verbose: print when lowering.
        mode: ``"min"``, ``"max"`` or ``"auto"`` (losses, errors and distances fall, everything else rises).
        min_delta: a smaller change is none.
        cooldown: epochs to wait after lowering.
        min_lr: never below this.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: an argument out of range; or while training, there is no value of that name.
        StateError: while training, the optimizer has no one rate to set.

    >>> import mycelia as ms
    >>> callback = ms.train.ReduceLROnPlateau(monitor="eval_loss", factor=0.5, patience=2)
    """

    def __init__(
        self, monitor: str = "eval_loss", factor: float = 0.1, patience: int = 10, verbose: bool = False,
        mode: str = "auto", min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0.0,
    ) -> None:  # fmt: skip
        where = "ReduceLROnPlateau"
        super().__init__(where, monitor, mode, min_delta, patience)
        check_number(where, "factor", factor)
        if not 0 < factor < 1:
            raise ArgumentValueError(where, "factor", got=repr(factor), takes="a number between 0 and 1")
        check_bool(where, "verbose", verbose)
        check_number(where, "min_lr", min_lr)
        self.factor, self.verbose, self.min_lr = factor, verbose, min_lr
        self.cooldown = check_count(where, "cooldown", cooldown)

    def restart(self) -> None:
        super().restart()
        self.cooldown_counter = 0

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        rate = rate_of(self._where, run)
        value = self.watched(run_context)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self.improves(value, self.best):
            self.best, self.wait = value, 0
        elif self.cooldown_counter == 0:
            self.wait += 1
            now = float(rate.asnumpy())
            if self.wait >= self.patience and now > self.min_lr:
                lower = max(now * self.factor, self.min_lr)
                rate.set_data(Tensor(np.float32(lower)))
                self.cooldown_counter, self.wait = self.cooldown, 0
                if self.verbose:
                    print(
                        f"Epoch {run.cur_epoch_num:05d}: ReduceLROnPlateau reducing learning rate to {lower}.",
                        flush=True,
                    )
