"""ModelCheckpoint: saves the network while it trains."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.nn.cell import Cell
from mycelia.train.callback.base import Callback, RunContext, RunState
from mycelia.train.checkpoint import save_checkpoint


class CheckpointConfig:
    """When :class:`ModelCheckpoint` saves, and what it keeps.

    Args:
        save_checkpoint_steps: save every so many steps; goes before the seconds.
        save_checkpoint_seconds: save every so many seconds.
        keep_checkpoint_max: keep so many files at most; 0 keeps all.
        keep_checkpoint_per_n_minutes: keep one file per so many minutes, if ``keep_checkpoint_max`` is 0.
        integrated_save: kept for the parallel layer.
        async_save: write in the background.
        saved_network: what to save; by default the network with the optimizer's state.
        append_info: extra values to save: ``"epoch_num"``, ``"step_num"``, or a dict.
        enc_key: encrypt with this key (bytes).
        enc_mode: ``"AES-GCM"`` or ``"AES-CBC"``.
        exception_save: save when the training ends with an exception.
        crc_check: write a checksum.
        format: ``"ckpt"`` or ``"safetensors"``.

    Raises:
        ArgumentValueError: nothing says when to save, or a value is out of range.
    """

    def __init__(
        self, save_checkpoint_steps: int | None = 1, save_checkpoint_seconds: int | None = 0,
        keep_checkpoint_max: int | None = 5, keep_checkpoint_per_n_minutes: int | None = 0, integrated_save: bool = True,
        async_save: bool = False, saved_network: Cell | None = None, append_info: list[Any] | None = None,
        enc_key: bytes | None = None, enc_mode: str = "AES-GCM", exception_save: bool = False, crc_check: bool = False,
        remove_redundancy: bool = False, format: str = "ckpt", **kwargs: Any,
    ) -> None:  # fmt: skip
        counts = {
            "save_checkpoint_steps": save_checkpoint_steps, "save_checkpoint_seconds": save_checkpoint_seconds,
            "keep_checkpoint_max": keep_checkpoint_max, "keep_checkpoint_per_n_minutes": keep_checkpoint_per_n_minutes,
        }  # fmt: skip
        for name, value in counts.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ArgumentValueError("CheckpointConfig", name, got=repr(value), takes="None or an int of at least 0")
        if not any(counts.values()):
            raise ArgumentValueError("CheckpointConfig", message=f"{', '.join(counts)} cannot all be None or 0")
        if saved_network is not None and not isinstance(saved_network, Cell):
            raise ArgumentTypeError("CheckpointConfig", "saved_network", got=type(saved_network).__name__, takes="a Cell")
        if format not in ("ckpt", "safetensors"):
            raise ArgumentValueError("CheckpointConfig", "format", got=repr(format), takes='"ckpt" or "safetensors"')
        self.save_checkpoint_steps = save_checkpoint_steps or 0
        self.save_checkpoint_seconds = 0 if save_checkpoint_steps else save_checkpoint_seconds or 0
        self.keep_checkpoint_max = keep_checkpoint_max or 0
        self.keep_checkpoint_per_n_minutes = 0 if keep_checkpoint_max else keep_checkpoint_per_n_minutes or 0
        self.integrated_save, self.async_save, self.saved_network = integrated_save, async_save, saved_network
        self.enc_key, self.enc_mode, self.crc_check, self.format = enc_key, enc_mode, crc_check, format
        self.exception_save = exception_save
        self.append_dict: dict[str, Any] = {}
        for item in append_info or []:
            if isinstance(item, dict):
                self.append_dict.update(item)
            elif item in ("epoch_num", "step_num"):
                self.append_dict[item] = None
            else:
                raise ArgumentTypeError("CheckpointConfig", "append_info", got=repr(item), takes='"epoch_num", "step_num" or a dict')


class ModelCheckpoint(Callback):
    """Saves ``PREFIX-EPOCH_STEP.ckpt`` files into a folder while training.

    Args:
        prefix: start of the file names, or a function of the run state that gives it.
        directory: the folder, made if missing; by default the current one.
        config: when to save (see :class:`CheckpointConfig`).
    """

    def __init__(
        self, prefix: str | Callable[[RunState], str] = "CKP", directory: Any = None, config: CheckpointConfig | None = None
    ) -> None:
        if not callable(prefix) and (not isinstance(prefix, str) or "/" in prefix):
            raise ArgumentValueError("ModelCheckpoint", "prefix", got=repr(prefix), takes="a string without '/'")
        if config is not None and not isinstance(config, CheckpointConfig):
            raise ArgumentTypeError("ModelCheckpoint", "config", got=type(config).__name__, takes="a CheckpointConfig")
        self._prefix, self._directory = prefix, directory
        self._config = config or CheckpointConfig()
        self._last_step = 0
        self._last_time = time.monotonic()
        self._saved: list[tuple[Path, float]] = []
        self.latest_ckpt_file_name = ""
        self._run: RunState | None = None
        self._run_prefix = ""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None and self._config.exception_save and self._run is not None:
            self._save(self._run)

    def begin(self, run_context: RunContext) -> None:
        run = self._run = run_context.original_args()
        self._last_step, self._last_time = run.cur_step_num, time.monotonic()
        self._saved = []

    def step_end(self, run_context: RunContext) -> None:
        run = self._run = run_context.original_args()
        config = self._config
        if config.save_checkpoint_steps:
            due = run.cur_step_num >= self._last_step + config.save_checkpoint_steps
        else:
            due = bool(config.save_checkpoint_seconds) and time.monotonic() - self._last_time > config.save_checkpoint_seconds
        if due:
            self._save(run)

    def end(self, run_context: RunContext) -> None:
        run = run_context.original_args()
        if run.cur_step_num > self._last_step or not self._saved:
            self._save(run)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Nothing is saved while evaluating."""

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Nothing is saved while evaluating."""

    def on_eval_end(self, run_context: RunContext) -> None:
        """Nothing is saved while evaluating."""

    def _save(self, run: RunState) -> None:
        config = self._config
        prefix = self._prefix(run) if callable(self._prefix) else self._prefix
        folder = self._directory(run) if callable(self._directory) else self._directory
        path = Path(folder or ".")
        path.mkdir(parents=True, exist_ok=True)
        step = run.cur_step_num if not run.batch_num else (run.cur_step_num - 1) % run.batch_num + 1
        if not self._saved:
            self._run_prefix = _unused(path, prefix)
        elif callable(self._prefix):
            self._run_prefix = prefix
        name = f"{self._run_prefix}-{run.cur_epoch_num}_{step}.{config.format}"
        file = path / name
        extra = dict(config.append_dict)
        if "epoch_num" in extra:
            extra["epoch_num"] = run.cur_epoch_num
        if "step_num" in extra:
            extra["step_num"] = run.cur_step_num
        save_checkpoint(
            config.saved_network or run.train_network, str(file), config.integrated_save, config.async_save, extra or None,
            config.enc_key, config.enc_mode, crc_check=config.crc_check, format=config.format,
        )  # fmt: skip
        self._last_step, self._last_time = run.cur_step_num, time.monotonic()
        self.latest_ckpt_file_name = run["latest_ckpt_file"] = str(file)
        self._saved = [(f, t) for f, t in self._saved if f != file] + [(file, time.monotonic())]
        self._trim()

    def _trim(self) -> None:
        config = self._config
        if config.keep_checkpoint_max:
            while len(self._saved) > config.keep_checkpoint_max:
                self._remove(0)
        elif config.keep_checkpoint_per_n_minutes and len(self._saved) > 2:
            if self._saved[-2][1] - self._saved[-3][1] < config.keep_checkpoint_per_n_minutes * 60:
                self._remove(len(self._saved) - 2)

    def _remove(self, index: int) -> None:
        file, _ = self._saved.pop(index)
        if file.exists():
            os.chmod(file, 0o600)
            file.unlink()


def _unused(folder: Path, prefix: str) -> str:
    """``prefix``, or ``prefix_N`` if files of an earlier run with that prefix are there."""
    pattern = re.compile(rf"{re.escape(prefix)}(?:_(\d+))?-\d+_\d+\.(?:ckpt|safetensors)$")
    numbers = [int(m.group(1) or 0) for f in folder.iterdir() if (m := pattern.fullmatch(f.name))]
    return prefix if not numbers else f"{prefix}_{max(numbers) + 1}"
