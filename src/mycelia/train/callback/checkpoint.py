"""ModelCheckpoint: saves the network while it trains."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.nn.cell import Cell
from mycelia.tensor import Tensor
from mycelia.tensor.tensor import check_bool
from mycelia.train.callback.base import Callback, RunContext, RunState
from mycelia.train.callback.monitors import step_in_epoch
from mycelia.train.checkpoint import background, save_checkpoint

_COUNTS = ("save_checkpoint_steps", "save_checkpoint_seconds", "keep_checkpoint_max", "keep_checkpoint_per_n_minutes")
_NUMBERS = ("epoch_num", "step_num")


class CheckpointConfig:
    """When :class:`ModelCheckpoint` saves, and what it keeps.

    Args:
        save_checkpoint_steps: save every so many steps; goes before the seconds.
        save_checkpoint_seconds: save every so many seconds.
        keep_checkpoint_max: keep so many files at most; goes before the minutes.
        keep_checkpoint_per_n_minutes: keep one file per so many minutes. If neither is given, one file is kept.
        integrated_save: a parameter that is spread over devices is saved as a whole.
        async_save: write in the background: True, ``"thread"`` or ``"process"``.
        saved_network: what to save; by default the network with the optimizer's state.
        append_info: further entries: ``"epoch_num"``, ``"step_num"``, and one dict of numbers, strings or tensors.
        enc_key: encrypt with this key (bytes).
        enc_mode: ``"AES-GCM"``, ``"AES-CBC"`` or ``"SM4-CBC"``.
        exception_save: save ``PREFIX-EPOCH_STEP_breakpoint.ckpt`` when the training ends with an exception.
        crc_check: write a checksum.
        remove_redundancy: kept for the parallel layer.
        format: ``"ckpt"`` or ``"safetensors"``.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: nothing says when to save or what to keep, or a value is out of range.

    >>> import mycelia as ms
    >>> config = ms.CheckpointConfig(save_checkpoint_steps=100, keep_checkpoint_max=3, append_info=["epoch_num"])
    >>> config.save_checkpoint_steps, config.keep_checkpoint_max
    (100, 3)
    """

    def __init__(
        self, save_checkpoint_steps: int | None = 1, save_checkpoint_seconds: int | None = 0,
        keep_checkpoint_max: int | None = 5, keep_checkpoint_per_n_minutes: int | None = 0,
        integrated_save: bool = True, async_save: bool | str = False, saved_network: Cell | None = None,
        append_info: list[Any] | None = None, enc_key: bytes | None = None, enc_mode: str = "AES-GCM",
        exception_save: bool = False, crc_check: bool = False, remove_redundancy: bool = False, format: str = "ckpt",
        **kwargs: Any,
    ) -> None:  # fmt: skip
        where = "CheckpointConfig"
        values = (save_checkpoint_steps, save_checkpoint_seconds, keep_checkpoint_max, keep_checkpoint_per_n_minutes)
        for name, value in zip(_COUNTS, values, strict=True):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise ArgumentTypeError(where, name, got=f"{value!r} ({type(value).__name__})", takes="None or an int")
            if value is not None and value < 0:
                raise ArgumentValueError(where, name, got=str(value), takes="None or an int of at least 0")
        if not any(values):
            raise ArgumentValueError(where, message=f"{', '.join(_COUNTS)} cannot all be None or 0")
        if saved_network is not None and not isinstance(saved_network, Cell):
            raise ArgumentTypeError(where, "saved_network", got=type(saved_network).__name__, takes="a Cell")
        if async_save not in (True, False, "thread", "process"):
            raise ArgumentValueError(where, "async_save", got=repr(async_save), takes="a bool, 'thread' or 'process'")
        flags = {
            "integrated_save": integrated_save, "exception_save": exception_save, "crc_check": crc_check,
            "remove_redundancy": remove_redundancy,
        }  # fmt: skip
        for name, flag in flags.items():
            check_bool(where, name, flag)
        if enc_key is not None and not isinstance(enc_key, bytes):
            raise ArgumentTypeError(where, "enc_key", got=type(enc_key).__name__, takes="bytes or None")
        if format not in ("ckpt", "safetensors"):
            raise ArgumentValueError(where, "format", got=repr(format), takes="'ckpt' or 'safetensors'")
        if format == "safetensors" and (enc_key is not None or exception_save):
            name = "enc_key" if enc_key is not None else "exception_save"
            raise ArgumentValueError(where, name, got="a value with format='safetensors'", takes="format='ckpt'")
        self.save_checkpoint_steps = save_checkpoint_steps
        self.save_checkpoint_seconds = None if save_checkpoint_steps else save_checkpoint_seconds
        self.keep_checkpoint_max = keep_checkpoint_max or (0 if keep_checkpoint_per_n_minutes else 1)
        self.keep_checkpoint_per_n_minutes = None if keep_checkpoint_max else keep_checkpoint_per_n_minutes
        self.integrated_save, self.async_save, self.saved_network = integrated_save, async_save, saved_network
        self.enc_key, self.enc_mode, self.crc_check, self.format = enc_key, enc_mode, crc_check, format
        self.exception_save, self.remove_redundancy = exception_save, remove_redundancy
        self.append_dict = _appended(where, append_info)

    def get_checkpoint_policy(self) -> dict[str, Any]:
        """When to save and what to keep, as a dict."""
        return {name: getattr(self, name) for name in (*_COUNTS, "saved_network")}


def _appended(where: str, append_info: Any) -> dict[str, Any] | None:
    if not append_info:
        return None
    if not isinstance(append_info, list):
        raise ArgumentTypeError(where, "append_info", got=type(append_info).__name__, takes="a list")
    found: dict[str, Any] = {name: 0 for name in _NUMBERS if name in append_info}
    dicts = [item for item in append_info if isinstance(item, dict)]
    for item in append_info:
        if isinstance(item, dict):
            continue
        if not isinstance(item, str):
            raise ArgumentTypeError(
                where, "append_info", got=f"an element of type {type(item).__name__}", takes="strings and a dict"
            )
        if item not in _NUMBERS:
            raise ArgumentValueError(where, "append_info", got=repr(item), takes="'epoch_num', 'step_num' or a dict")
    if len(dicts) > 1:
        raise ArgumentTypeError(where, "append_info", got=f"{len(dicts)} dicts", takes="one dict at most")
    for key, value in (dicts[0] if dicts else {}).items():
        if not isinstance(key, str) or not isinstance(value, (int, float, str, Tensor)):
            raise ArgumentTypeError(
                where,
                "append_info",
                got=f"{key!r}: {type(value).__name__}",
                takes="numbers, strings and tensors by name",
            )
        found[key] = value
    return found


class ModelCheckpoint(Callback):
    """Saves ``PREFIX-EPOCH_STEP.ckpt`` files into a folder while training.

    STEP is the number of the step in its epoch. If files of an earlier run with that prefix are there, the prefix
    becomes ``PREFIX_1`` and so on.

    Args:
        prefix: start of the file names; or a function of the run state that gives the name without its ending.
        directory: the folder, made if missing, or a function of the run state that gives it; by default the
            current one.
        config: when to save (see :class:`CheckpointConfig`).

    Raises:
        ArgumentTypeError: ``config`` is of the wrong type.
        ArgumentValueError: ``prefix`` is no string or function, or contains ``/``.

    >>> import os, tempfile, numpy as np, mycelia as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.25))
    >>> folder = tempfile.mkdtemp()
    >>> rows = [(np.ones((4, 2), "float32"), np.ones((4, 1), "float32"))] * 3
    >>> model.train(2, rows, callbacks=ms.ModelCheckpoint("net", folder, ms.CheckpointConfig(3)))
    >>> sorted(os.listdir(folder))
    ['net-1_3.ckpt', 'net-2_3.ckpt']
    """

    def __init__(
        self,
        prefix: str | Callable[[RunState], str] = "CKP",
        directory: Any = None,
        config: CheckpointConfig | None = None,
    ) -> None:
        if not callable(prefix) and (not isinstance(prefix, str) or "/" in prefix):
            raise ArgumentValueError(
                "ModelCheckpoint", "prefix", got=repr(prefix), takes="a function, or a string without '/'"
            )
        if config is not None and not isinstance(config, CheckpointConfig):
            raise ArgumentTypeError("ModelCheckpoint", "config", got=type(config).__name__, takes="a CheckpointConfig")
        if directory is not None and not callable(directory) and not isinstance(directory, (str, os.PathLike)):
            raise ArgumentTypeError(
                "ModelCheckpoint", "directory", got=type(directory).__name__, takes="a path or function"
            )
        self._config = config or CheckpointConfig()
        self._prefix, self._directory = prefix, directory
        if not callable(directory) and not callable(prefix):
            folder = Path(directory or ".")
            folder.mkdir(parents=True, exist_ok=True)
            self._prefix = _unused(folder, prefix)
        self._last_triggered_step = 0
        self._last_time = time.monotonic()
        self._saved: list[tuple[Path, float]] = []
        self._latest_ckpt_file_name = ""
        self._run: RunState | None = None

    @property
    def latest_ckpt_file_name(self) -> str:
        """The file saved last; empty before the first."""
        return self._latest_ckpt_file_name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run, self._run = self._run, None
        if error is not None and self._config.exception_save and run is not None:
            prefix = "breakpoint" if callable(self._prefix) else self._prefix
            name = f"{prefix}-{run.get('cur_epoch_num', 0)}_{step_in_epoch(run)}_breakpoint"
            self._write(run, self._folder(run) / f"{name}.{self._config.format}")

    def begin(self, run_context: RunContext) -> None:
        run = self._run = run_context.original_args()
        self._last_triggered_step, self._last_time = run.get("cur_step_num", 0), time.monotonic()

    def step_end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        config = self._config
        if config.save_checkpoint_steps:
            due = run.cur_step_num >= self._last_triggered_step + config.save_checkpoint_steps
        else:
            seconds = config.save_checkpoint_seconds
            due = bool(seconds) and time.monotonic() - self._last_time > (seconds or 0)
        if due:
            self._save(run)

    def end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        if run.cur_step_num != self._last_triggered_step:
            self._save(run)
        if self._config.async_save:
            background.wait()

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Nothing is saved while evaluating."""

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Nothing is saved while evaluating."""

    def on_eval_end(self, run_context: RunContext) -> None:
        """Nothing is saved while evaluating."""

    def _folder(self, run: RunState) -> Path:
        folder = Path((self._directory(run) if callable(self._directory) else self._directory) or ".")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _save(self, run: RunState) -> None:
        config = self._config
        if callable(self._prefix):
            name = self._prefix(run)
            if not isinstance(name, str) or "/" in name:
                raise ArgumentValueError(
                    "ModelCheckpoint", "prefix", got=f"{name!r} from the function", takes="a string without '/'"
                )
        else:
            name = f"{self._prefix}-{run.cur_epoch_num}_{step_in_epoch(run)}"
        file = self._folder(run) / f"{name}.{config.format}"
        self._write(run, file)
        now = time.monotonic()
        self._last_triggered_step, self._last_time = run.cur_step_num, now
        self._latest_ckpt_file_name = run["latest_ckpt_file"] = str(file)
        self._saved = [(f, t) for f, t in self._saved if f != file] + [(file, now)]
        self._trim()

    def _write(self, run: RunState, file: Path) -> None:
        config = self._config
        extra = None
        if config.append_dict is not None:
            now = {"epoch_num": run.get("cur_epoch_num", 0), "step_num": run.cur_step_num}
            extra = {k: v + now[k] if k in now else v for k, v in config.append_dict.items()}
        save_checkpoint(
            config.saved_network if config.saved_network is not None else run.train_network, str(file),
            config.integrated_save, config.async_save, extra, config.enc_key, config.enc_mode,
            crc_check=config.crc_check, format=config.format,
        )  # fmt: skip

    def _trim(self) -> None:
        """Remove files beyond the number to keep, or those too close in time to the one before them."""
        config, saved = self._config, self._saved
        if config.keep_checkpoint_max:
            while len(saved) > config.keep_checkpoint_max:
                self._remove(0)
        elif len(saved) > 2 and saved[-2][1] - saved[-3][1] < (config.keep_checkpoint_per_n_minutes or 0) * 60:
            self._remove(len(saved) - 2)

    def _remove(self, index: int) -> None:
        if self._config.async_save:
            background.wait()
        self._saved.pop(index)[0].unlink(missing_ok=True)


def _unused(folder: Path, prefix: str) -> str:
    """``prefix``, or ``prefix_N`` if files of an earlier run with that prefix are there."""
    pattern = re.compile(rf"{re.escape(prefix)}(?:_(\d+))?-\d+_\d+\.(?:ckpt|safetensors)")
    numbers = [int(m.group(1) or 0) for f in folder.iterdir() if (m := pattern.fullmatch(f.name))]
    return prefix if not numbers else f"{prefix}_{max(numbers) + 1}"
