"""Callbacks that report: loss, time, history, and functions of one's own; and one that sets the learning rate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.tensor import check_bool
from mycelia.train.callback.base import Callback, RunContext, RunState


def loss_of(outputs: Any) -> Any:
    """The loss of a step's outputs: the first of several, the mean of many elements, as a float if it is numbers."""
    if isinstance(outputs, (tuple, list)) and outputs:
        outputs = outputs[0]
    if isinstance(outputs, (Tensor, np.ndarray)):
        return float(np.mean(outputs.asnumpy() if isinstance(outputs, Tensor) else outputs))
    return outputs


def step_in_epoch(run: RunState) -> int:
    """The number of the step in its epoch, from 1."""
    per_epoch = run.get("batch_num")
    step: int = run.cur_step_num
    return step if not per_epoch else (step - 1) % per_epoch + 1


def check_count(where: str, argument: str, value: Any, least: int = 0) -> int:
    """An int that is large enough, or an error by name."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="an int")
    if value < least:
        raise ArgumentValueError(where, argument, got=str(value), takes=f"an int of at least {least}")
    return value


class LossMonitor(Callback):
    """Prints ``epoch: E step: S, loss is L``, and ends the training if the loss is NaN or infinite.

    Args:
        per_print_times: print every so many steps; 0 prints nothing.

    Raises:
        ArgumentTypeError: ``per_print_times`` is not an int.
        ArgumentValueError: it is negative; or while training, the loss is NaN or infinite.

    >>> import numpy as np, mycelia as ms
    >>> net = ms.nn.Dense(2, 1, weight_init="zeros", bias_init="zeros")
    >>> model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.25))
    >>> model.train(2, [(np.ones((4, 2), "float32"), np.ones((4, 1), "float32"))], callbacks=ms.LossMonitor())
    epoch: 1 step: 1, loss is 1.0
    epoch: 2 step: 1, loss is 0.25
    """

    def __init__(self, per_print_times: int = 1) -> None:
        self._per_print_times = check_count("LossMonitor", "per_print_times", per_print_times)
        self._last_print_time = 0

    def begin(self, run_context: RunContext) -> None:
        self._last_print_time = run_context.original_args().cur_step_num

    def step_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        epoch, step = run.get("cur_epoch_num", 1), step_in_epoch(run)
        due = self._per_print_times and run.cur_step_num - self._last_print_time >= self._per_print_times
        loss = loss_of(run.net_outputs)
        if isinstance(loss, float) and not math.isfinite(loss):
            raise ArgumentValueError(
                "LossMonitor", message=f"in epoch {epoch}, step {step}, the loss is {loss}; the training cannot go on",
                hint="lower the learning rate, clip the gradients, or look for a division by zero",
            )  # fmt: skip
        if due:
            self._last_print_time = run.cur_step_num
            print(f"epoch: {epoch} step: {step}, loss is {loss}", flush=True)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        if run.get("metrics"):
            print(f"Eval result: epoch {run.cur_epoch_num}, metrics: {run.metrics}", flush=True)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Evaluation is not reported."""

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Evaluation is not reported."""


class TimeMonitor(Callback):
    """Prints the time of each epoch and the mean of its steps, in milliseconds.

    ``Train epoch time: 5273.013 ms, per step time: 2.813 ms``

    Args:
        data_size: steps per epoch, where the data set does not tell.
        data_time: print the mean time spent on waiting for data too (not in sink mode).

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: ``data_size`` is not above 0.
    """

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        self.data_size = None if data_size is None else check_count("TimeMonitor", "data_size", data_size, 1)
        check_bool("TimeMonitor", "data_time", data_time)
        self.data_time = data_time
        self._start = self._waiting_since = self._waited = 0.0

    def epoch_begin(self, run_context: RunContext) -> None:
        self._start = self._waiting_since = time.perf_counter()
        self._waited = 0.0

    def on_train_step_begin(self, run_context: RunContext) -> None:
        self._waited += time.perf_counter() - self._waiting_since

    def on_train_step_end(self, run_context: RunContext) -> None:
        self._waiting_since = time.perf_counter()

    def epoch_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        elapsed = (time.perf_counter() - self._start) * 1e3
        steps = run.get("batch_num") or self.data_size
        if not steps:
            raise ArgumentValueError(
                "TimeMonitor", "data_size", got="None", takes="the steps of an epoch, which the data set does not tell"
            )
        title = str(run.get("mode", "")).title()
        text = f"{title} epoch time: {elapsed:5.3f} ms, per step time: {elapsed / steps:5.3f} ms"
        if self.data_time and not run.get("dataset_sink_mode"):
            text += f" (data time: {self._waited * 1e3 / steps:5.3f} ms)"
        print(text, flush=True)


class History(Callback):
    """Keeps the last loss and the metrics of each epoch.

    Attributes:
        history: name (``net_output`` for the loss) to a list with one value per epoch.
        epoch: ``{"epoch": [1, 2, ...]}`` for the last run.

    >>> import numpy as np, mycelia as ms
    >>> net = ms.nn.Dense(2, 1, weight_init="zeros", bias_init="zeros")
    >>> model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.25))
    >>> history = ms.train.History()
    >>> model.train(2, [(np.ones((4, 2), "float32"), np.ones((4, 1), "float32"))], callbacks=history)
    >>> history.epoch, history.history
    ({'epoch': [1, 2]}, {'net_output': [1.0, 0.25]})
    """

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] | None = None

    def begin(self, run_context: RunContext) -> None:
        self.epoch = {"epoch": []}

    def epoch_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        if self.epoch is None:
            self.epoch = {"epoch": []}
        self.epoch["epoch"].append(run.get("cur_epoch_num", 1))
        for name, value in {"net_output": loss_of(run.net_outputs), **(run.get("metrics") or {})}.items():
            self.history.setdefault(name, []).append(value)


_Hook = Callable[[RunContext], Any] | None


class LambdaCallback(Callback):
    """Calls functions of one's own, each with the run context, at the hooks they are named for.

    Args:
        on_train_epoch_begin: called before each epoch of training; the others alike.

    Raises:
        ArgumentTypeError: a hook is not callable.

    >>> import mycelia as ms
    >>> callback = ms.train.LambdaCallback(on_train_end=lambda run_context: print("done"))
    >>> callback.on_train_end(ms.train.RunContext({}))
    done
    """

    def __init__(
        self, on_train_epoch_begin: _Hook = None, on_train_epoch_end: _Hook = None, on_train_step_begin: _Hook = None,
        on_train_step_end: _Hook = None, on_train_begin: _Hook = None, on_train_end: _Hook = None,
        on_eval_epoch_begin: _Hook = None, on_eval_epoch_end: _Hook = None, on_eval_step_begin: _Hook = None,
        on_eval_step_end: _Hook = None, on_eval_begin: _Hook = None, on_eval_end: _Hook = None,
    ) -> None:  # fmt: skip
        hooks = {
            "on_train_epoch_begin": on_train_epoch_begin, "on_train_epoch_end": on_train_epoch_end,
            "on_train_step_begin": on_train_step_begin, "on_train_step_end": on_train_step_end,
            "on_train_begin": on_train_begin, "on_train_end": on_train_end, "on_eval_epoch_begin": on_eval_epoch_begin,
            "on_eval_epoch_end": on_eval_epoch_end, "on_eval_step_begin": on_eval_step_begin,
            "on_eval_step_end": on_eval_step_end, "on_eval_begin": on_eval_begin, "on_eval_end": on_eval_end,
        }  # fmt: skip
        for name, fn in hooks.items():
            if fn is None:
                continue
            if not callable(fn):
                raise ArgumentTypeError("LambdaCallback", name, got=type(fn).__name__, takes="a function or None")
            setattr(self, name, fn)


def rate_of(where: str, run: RunState) -> Parameter:
    """The learning rate of the run's optimizer.

    Raises:
        StateError: it follows a schedule of its own, or groups have their own.
    """
    rate = run.optimizer.learning_rate
    if not isinstance(rate, Parameter):
        raise StateError(
            where, message="the optimizer's learning rate follows a schedule, or its groups have rates of their own",
            hint="give the optimizer one number as the learning rate",
        )  # fmt: skip
    return rate


class LearningRateScheduler(Callback):
    """Sets the optimizer's learning rate after each step.

    Args:
        learning_rate_function: from the rate now (a float) and the number of the step to the next rate.

    Raises:
        ArgumentTypeError: it is not callable; or while training, it gives no number.
        StateError: while training, the optimizer has no one rate to set.

    >>> import mycelia as ms
    >>> callback = ms.train.LearningRateScheduler(lambda rate, step: rate * 0.1 if step == 1000 else rate)
    """

    def __init__(self, learning_rate_function: Callable[[float, int], float]) -> None:
        if not callable(learning_rate_function):
            raise ArgumentTypeError(
                "LearningRateScheduler", "learning_rate_function", got=type(learning_rate_function).__name__,
                takes="a function",
            )  # fmt: skip
        self.learning_rate_function = learning_rate_function

    def on_train_step_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        rate = rate_of("LearningRateScheduler", run)
        new = self.learning_rate_function(float(rate.asnumpy()), run.cur_step_num)
        if isinstance(new, bool) or not isinstance(new, (int, float, np.floating)):
            raise ArgumentTypeError(
                "LearningRateScheduler", "learning_rate_function", got=f"a function that returned {type(new).__name__}",
                takes="a function that returns a number",
            )  # fmt: skip
        rate.set_data(Tensor(np.float32(new)))
