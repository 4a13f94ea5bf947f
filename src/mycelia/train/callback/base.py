"""Callbacks: what is told of the beginning and end of runs, epochs and steps."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from mycelia.core.errors import ArgumentTypeError, AttributeMissingError


class RunState(dict[str, Any]):
    """What is known of a run, as attributes and as items.

    In training: ``train_network``, ``network``, ``loss_fn``, ``optimizer``, ``train_dataset``,
    ``train_dataset_element`` (the row of this step), ``epoch_num`` (epochs to do), ``batch_num`` (steps of an
    epoch; None while unknown), ``cur_epoch_num`` and ``cur_step_num`` (from 1), ``net_outputs``, ``mode``
    (``"train"``), ``list_callback``, ``dataset_sink_mode``; at the end of an epoch of ``fit`` also ``metrics`` and
    ``eval_results``. In evaluation: ``eval_network``, ``valid_dataset``, ``eval_dataset_element``, ``batch_num``,
    ``cur_step_num``, ``net_outputs``, ``mode`` (``"eval"``), ``metrics`` at the end.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeMissingError(
                "run_context.original_args()", message=f"there is no '{name}' in this run",
                hint="it has: " + ", ".join(sorted(self)),
            ) from None  # fmt: skip

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class RunContext:
    """Given to each callback: the state of the run, and the way to stop it.

    Args:
        original_args: the :class:`RunState`.

    Raises:
        ArgumentTypeError: ``original_args`` is not a dict.

    >>> import mycelia as ms
    >>> context = ms.train.RunContext({"cur_step_num": 3})
    >>> context.request_stop()
    >>> context.get_stop_requested(), context.original_args()
    (True, {'cur_step_num': 3})
    """

    def __init__(self, original_args: RunState) -> None:
        if not isinstance(original_args, dict):
            raise ArgumentTypeError("RunContext", "original_args", got=type(original_args).__name__, takes="a dict")
        self._state = original_args
        self._stop = False

    def original_args(self) -> RunState:
        """The state of the run, as attributes: ``cur_step_num``, ``cur_epoch_num``, ``net_outputs``, ..."""
        return self._state

    def request_stop(self) -> None:
        """Ask for the run to end after this step or epoch."""
        self._stop = True

    def get_stop_requested(self) -> bool:
        """Whether some callback asked to stop."""
        return self._stop


class Callback:
    """Base of callbacks. Override the hooks of interest; each is given a :class:`RunContext`.

    The hooks ``on_train_*`` and ``on_eval_*`` tell training from evaluation; by default they call the older
    ones (``begin``, ``epoch_begin``, ``step_begin``, ``step_end``, ``epoch_end``, ``end``), which mean both.
    A callback is entered as a context manager before the run and left after it, whatever happens.

    >>> import mycelia as ms
    >>> class StopAt(ms.Callback):
    ...     def on_train_step_end(self, run_context):
    ...         if run_context.original_args().cur_step_num >= 100:
    ...             run_context.request_stop()
    """

    def __enter__(self) -> Callback:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def begin(self, run_context: RunContext) -> None:
        """Before the run."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """Before each epoch."""

    def epoch_end(self, run_context: RunContext) -> None:
        """After each epoch."""

    def step_begin(self, run_context: RunContext) -> None:
        """Before each step."""

    def step_end(self, run_context: RunContext) -> None:
        """After each step."""

    def end(self, run_context: RunContext) -> None:
        """After the run."""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Before training."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Before each epoch of training."""
        self.epoch_begin(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """After each epoch of training."""
        self.epoch_end(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Before each step of training."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """After each step of training."""
        self.step_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """After training."""
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Before evaluation."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Before the pass of evaluation."""
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """After the pass of evaluation."""
        self.epoch_end(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """Before each step of evaluation."""
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """After each step of evaluation."""
        self.step_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """After evaluation."""
        self.end(run_context)


class CallbackList:
    """Several callbacks as one; enters them together, leaves them in reverse order."""

    def __init__(self, callbacks: list[Callback]) -> None:
        self.callbacks = callbacks
        self._stack = ExitStack()

    def __enter__(self) -> CallbackList:
        with ExitStack() as stack:
            entered = [stack.enter_context(callback) for callback in self.callbacks]
            self._stack = stack.pop_all()
        self.callbacks[:] = [
            new if isinstance(new, Callback) else old for new, old in zip(entered, self.callbacks, strict=True)
        ]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._stack.__exit__(kind, error, trace)

    def call(self, hook: str, context: RunContext) -> None:
        """Call one hook of each callback in order."""
        for callback in self.callbacks:
            getattr(callback, hook)(context)

    def __iter__(self) -> Any:
        return iter(self.callbacks)

    def __len__(self) -> int:
        return len(self.callbacks)


def as_callbacks(where: str, callbacks: Any) -> CallbackList:
    """A :class:`CallbackList` of None, one callback or several.

    Raises:
        ArgumentTypeError: an element is no Callback.
    """
    if callbacks is None:
        return CallbackList([])
    if isinstance(callbacks, CallbackList):
        return callbacks
    found = list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
    for callback in found:
        if not isinstance(callback, Callback):
            raise ArgumentTypeError(where, "callbacks", got=type(callback).__name__, takes="Callback objects")
    return CallbackList(found)
