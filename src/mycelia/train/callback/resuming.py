"""Callbacks for trainings that are interrupted: a backup per epoch, and a clean end when a signal asks for it."""

from __future__ import annotations

import importlib
import json
import os
import signal
import threading
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError
from mycelia.tensor.tensor import check_bool
from mycelia.train.callback.base import Callback, RunContext, RunState
from mycelia.train.callback.monitors import check_count
from mycelia.train.checkpoint import load_checkpoint, save_checkpoint


class BackupAndRestore(Callback):
    """Saves the training network to ``backup.ckpt`` at the end of epochs, and restores it when a training begins.

    Args:
        backup_dir: the folder, made if missing.
        save_freq: ``"epoch"``, or save every so many epochs.
        delete_checkpoint: remove the backup when the training has come to its end.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: ``save_freq`` is not above 0.

    >>> import tempfile, mycelia as ms
    >>> callback = ms.train.BackupAndRestore(tempfile.mkdtemp(), save_freq=2)
    """

    def __init__(self, backup_dir: str, save_freq: str | int = "epoch", delete_checkpoint: bool = True) -> None:
        where = "BackupAndRestore"
        if not isinstance(backup_dir, (str, os.PathLike)):
            raise ArgumentTypeError(where, "backup_dir", got=type(backup_dir).__name__, takes="a path")
        self.save_freq = 1 if save_freq == "epoch" else check_count(where, "save_freq", save_freq, 1)
        check_bool(where, "delete_checkpoint", delete_checkpoint)
        self.delete_checkpoint = delete_checkpoint
        folder = Path(backup_dir)
        folder.mkdir(parents=True, exist_ok=True)
        self.backup_file = str(folder / "backup.ckpt")

    def on_train_begin(self, run_context: RunContext) -> None:
        if os.path.exists(self.backup_file):
            load_checkpoint(self.backup_file, net=run_context.original_args().train_network)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        if run.cur_epoch_num % self.save_freq == 0:
            save_checkpoint(run.train_network, self.backup_file)

    def on_train_end(self, run_context: RunContext) -> None:
        if self.delete_checkpoint:
            Path(self.backup_file).unlink(missing_ok=True)


class OnRequestExit(Callback):
    """Ends a training or evaluation after the step at which a signal or a file asks for it, and saves the network.

    The checkpoint is ``DIRECTORY/rank_0/NAME_train.ckpt`` (or ``NAME_eval.ckpt``). Beside the network it holds
    ``epoch_num``, ``step_num``, ``batch_num`` and, if the loss is scaled, ``loss_scale``. A training that
    begins and finds it there loads it first. The handler of the signal is put back afterwards.

    Args:
        save_ckpt: save a checkpoint, and load it at the beginning.
        save_mindir: export the network as MindIR.
        file_name: NAME.
        directory: DIRECTORY.
        config_file: a JSON file; ``{"GracefulExit": 1}`` in it asks for the end.
        sig: the signal that asks for the end; not SIGKILL.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: ``sig`` is SIGKILL.
        StateError: when the run begins, it is not in the main thread, where alone signals can be handled.

    >>> import tempfile, mycelia as ms
    >>> callback = ms.train.OnRequestExit(save_mindir=False, directory=tempfile.mkdtemp())
    """

    key = "GracefulExit"

    def __init__(
        self, save_ckpt: bool = True, save_mindir: bool = True, file_name: str = "Net", directory: str = "./",
        config_file: str | None = None, sig: int = signal.SIGTERM,
    ) -> None:  # fmt: skip
        where = "OnRequestExit"
        check_bool(where, "save_ckpt", save_ckpt)
        check_bool(where, "save_mindir", save_mindir)
        for name, value in (("file_name", file_name), ("directory", directory), ("config_file", config_file)):
            if not isinstance(value, (str, os.PathLike)) and not (name == "config_file" and value is None):
                raise ArgumentTypeError(where, name, got=type(value).__name__, takes="a string")
        if isinstance(sig, bool) or not isinstance(sig, int):
            raise ArgumentTypeError(where, "sig", got=type(sig).__name__, takes="a signal")
        if sig == getattr(signal, "SIGKILL", None):
            raise ArgumentValueError(where, "sig", got="SIGKILL", takes="a signal that can be handled")
        self.save_ckpt, self.save_mindir, self.sig = save_ckpt, save_mindir, sig
        self.config_file = config_file
        folder = Path(directory) / "rank_0"
        if save_ckpt or save_mindir:
            folder.mkdir(parents=True, exist_ok=True)
        self.train_name, self.eval_name = str(folder / f"{file_name}_train"), str(folder / f"{file_name}_eval")
        self.exit = False
        self._handler_before: Any = None
        self._handling = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handling:
            signal.signal(self.sig, self._handler_before)
            self._handling = False

    def _begin(self) -> None:
        self.exit = False
        if threading.current_thread() is not threading.main_thread():
            raise StateError("OnRequestExit", message="signals can be handled in the main thread only; train there")
        if not self._handling:
            self._handler_before = signal.signal(self.sig, self._asked)
            self._handling = True

    def _asked(self, signum: int, frame: FrameType | None) -> None:
        self.exit = True

    def _is_asked(self) -> bool:
        if not self.exit and self.config_file is not None and os.path.exists(self.config_file):
            text = Path(self.config_file).read_text(encoding="utf-8")
            try:
                found = json.loads(text)
            except json.JSONDecodeError:  # being written just now
                found = None
            self.exit = isinstance(found, dict) and found.get(self.key) == 1
        return self.exit

    def on_train_begin(self, run_context: RunContext) -> None:
        self._begin()
        if self.save_ckpt and os.path.isfile(f"{self.train_name}.ckpt"):
            load_checkpoint(f"{self.train_name}.ckpt", net=run_context.original_args().train_network)

    def on_train_step_end(self, run_context: RunContext) -> None:
        if self._is_asked():
            run_context.request_stop()

    def on_train_end(self, run_context: RunContext) -> None:
        if self.exit:
            run = run_context.original_args()
            self._save(run, run.train_network, self.train_name, run.train_dataset_element, _progress(run))

    def on_eval_begin(self, run_context: RunContext) -> None:
        if run_context.original_args().get("train_network") is not None:
            return  # between epochs of a training
        self._begin()
        for name in (self.eval_name, self.train_name):
            if self.save_ckpt and os.path.isfile(f"{name}.ckpt"):
                load_checkpoint(f"{name}.ckpt", net=run_context.original_args().eval_network)
                break

    def on_eval_step_end(self, run_context: RunContext) -> None:
        if self._is_asked():
            run_context.request_stop()

    def on_eval_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        if self.exit and run.get("train_network") is None:
            self._save(run, run.eval_network, self.eval_name, run.eval_dataset_element, None)

    def _save(self, run: RunState, network: Any, name: str, row: Any, extra: dict[str, Any] | None) -> None:
        if self.save_ckpt:
            save_checkpoint(network, f"{name}.ckpt", append_dict=extra)
        if self.save_mindir:
            # by name: exporting is a layer above training
            importlib.import_module("mycelia.export").export(network, *row, file_name=name, file_format="MINDIR")


def _progress(run: RunState) -> dict[str, Any]:
    """How far a training has come."""
    found: dict[str, Any] = {"epoch_num": run.cur_epoch_num, "step_num": run.cur_step_num}
    if run.get("batch_num") is not None:
        found["batch_num"] = run.batch_num
    manager = run.get("loss_scale_mananger")
    if manager is not None:
        found["loss_scale"] = manager.get_loss_scale()
    return found
