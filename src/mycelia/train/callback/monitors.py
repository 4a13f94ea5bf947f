"""Callbacks that report: loss, time, history, and functions of one's own."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError
from mycelia.tensor import Tensor
from mycelia.train.callback.base import Callback, RunContext


def loss_of(outputs: Any) -> Any:
    """The loss of a step's outputs: the first of several, the mean of many elements, as a float if it is one."""
    if isinstance(outputs, (tuple, list)):
        if not outputs:
            return outputs
        outputs = outputs[0]
    if isinstance(outputs, (Tensor, np.ndarray)):
        return float(np.mean(outputs.asnumpy() if isinstance(outputs, Tensor) else outputs))
    return outputs


def _non_negative(where: str, argument: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ArgumentValueError(where, argument, got=repr(value), takes="an int of at least 0")
    return value


class LossMonitor(Callback):
    """Prints the loss, and ends the training if it is NaN or infinite.

    Args:
        per_print_times: print every so many steps; 0 prints nothing.

    Raises:
        ArgumentValueError: while training, the loss is NaN or infinite.
    """

    def __init__(self, per_print_times: int = 1) -> None:
        self._per_print_times = _non_negative("LossMonitor", "per_print_times", per_print_times)
        self._last_print_time = 0

    def begin(self, run_context: RunContext) -> None:
        self._last_print_time = min(self._last_print_time, run_context.original_args().cur_step_num)

    def step_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        loss = loss_of(run.net_outputs)
        per_epoch = run.batch_num
        step = run.cur_step_num if not per_epoch else (run.cur_step_num - 1) % per_epoch + 1
        epoch = run.get("cur_epoch_num", 1)
        if isinstance(loss, float) and not math.isfinite(loss):
            raise ArgumentValueError(
                "LossMonitor", message=f"in epoch {epoch}, step {step}, the loss is {loss}; training cannot go on",
                hint="lower the learning rate, clip the gradients, or look for a division by zero",
            )  # fmt: skip
        if run.cur_step_num < self._last_print_time:
            self._last_print_time = 0
        if self._per_print_times and run.cur_step_num - self._last_print_time >= self._per_print_times:
            self._last_print_time = run.cur_step_num
            print(f"epoch: {epoch} step: {step}, loss is {loss}", flush=True)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Evaluation is not reported."""

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Evaluation is not reported."""

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        results = run_context.original_args().get("eval_results")
        if results:
            print("Eval result: epoch %d, metrics: %s" % (run_context.original_args().cur_epoch_num, results), flush=True)


class TimeMonitor(Callback):
    """Prints the time of each epoch and the mean of its steps, in milliseconds.

    Args:
        data_size: steps per epoch; by default the data set's size.
        data_time: kept for compatibility.
    """

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        if data_size is not None and (isinstance(data_size, bool) or not isinstance(data_size, int) or data_size < 1):
            raise ArgumentValueError("TimeMonitor", "data_size", got=repr(data_size), takes="None or an int above 0")
        self.data_size = data_size
        self._start = 0.0

    def epoch_begin(self, run_context: RunContext) -> None:
        self._start = time.perf_counter()

    def epoch_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        elapsed = (time.perf_counter() - self._start) * 1e3
        steps = self.data_size or run.get("batch_num") or 1
        title = "Eval" if run.get("mode") == "eval" else "Train"
        print(f"{title} epoch time: {elapsed:5.3f} ms, per step time: {elapsed / steps:5.3f} ms", flush=True)


class History(Callback):
    """Keeps the loss and the evaluation results of each epoch in ``history`` (name to list) and ``epoch``."""

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] = {}

    def begin(self, run_context: RunContext) -> None:
        self.epoch = {"epoch": []}

    def epoch_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        self.epoch.setdefault("epoch", []).append(run.get("cur_epoch_num", 1))
        self.history.setdefault("net_output", []).append(loss_of(run.net_outputs))
        for name, value in (run.get("eval_results") or {}).items():
            self.history.setdefault(name, []).append(value)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Evaluation is seen at the end of the epoch."""

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """Evaluation is seen at the end of the epoch."""


class LambdaCallback(Callback):
    """Calls functions of one's own.

    Args:
        on_train_begin: called with the run context, like the hook of the same name; so are the others.
    """

    def __init__(self, **hooks: Callable[[RunContext], Any]) -> None:
        for name, fn in hooks.items():
            if not name.startswith("on_") or not hasattr(Callback, name):
                raise ArgumentValueError("LambdaCallback", name, message=f"there is no hook '{name}'")
            if not callable(fn):
                raise ArgumentTypeError("LambdaCallback", name, got=type(fn).__name__, takes="a function")
            setattr(self, name, fn)


class LearningRateScheduler(Callback):
    """Sets the optimizer's learning rate at each step.

    Args:
        learning_rate_function: from the current rate and the step number to the next rate.
    """

    def __init__(self, learning_rate_function: Callable[[float, int], float]) -> None:
        if not callable(learning_rate_function):
            raise ArgumentTypeError(
                "LearningRateScheduler", "learning_rate_function", got=type(learning_rate_function).__name__, takes="a function"
            )
        self.learning_rate_function = learning_rate_function

    def on_train_step_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        rate = run.optimizer.learning_rate
        if not isinstance(rate, Tensor):
            raise StateError("LearningRateScheduler", message="the optimizer's learning rate follows a schedule of its own")
        new = self.learning_rate_function(float(rate.asnumpy()), run.cur_step_num)
        if not isinstance(new, (int, float)):
            raise ArgumentTypeError(
                "LearningRateScheduler", "learning_rate_function", got=f"a function that returned {type(new).__name__}", takes="a number"
            )
        rate.set_data(Tensor(np.float32(new)))  # type: ignore[attr-defined]
