"""BackupAndRestore and OnRequestExit."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, train
from mycelia.train import BackupAndRestore, Callback, Model, OnRequestExit, load_checkpoint
from mycelia.train.callback.monitors import loss_of

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
X = np.arange(16, dtype=np.float32).reshape(8, 2) / 10
Y = X @ np.array([[1.0], [-2.0]], np.float32)
ROWS = [(X[i : i + 2], Y[i : i + 2]) for i in range(0, 8, 2)]


def model(**options: Any) -> Model:
    net = nn.Dense(2, 1, weight_init="zeros", bias_init="zeros")
    return Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9), metrics={"loss"}, **options)


class At(Callback):
    """Does something at a step of training or evaluation."""

    def __init__(self, step: int, action: Any) -> None:
        self.step, self.action = step, action

    def on_train_step_begin(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == self.step:
            self.action()

    on_eval_step_begin = on_train_step_begin


def fail() -> None:
    raise KeyboardInterrupt


def losses(m: Model, epochs: int, *callbacks: Any, initial_epoch: int = 0) -> list[float]:
    seen: list[float] = []
    look = train.LambdaCallback(on_train_step_end=lambda c: seen.append(loss_of(c.original_args().net_outputs)))
    m.train(epochs, ROWS, callbacks=[*callbacks, look], initial_epoch=initial_epoch)
    return seen


@MODES
def test_backup_and_restore_goes_on_where_the_last_epoch_ended(mode: int, tmp_path: Path) -> None:
    ms.set_context(mode=mode)
    whole = losses(model(), 3)
    folder = tmp_path / "backup"
    with pytest.raises(KeyboardInterrupt):
        losses(model(), 3, BackupAndRestore(str(folder)), At(6, fail))
    assert os.listdir(folder) == ["backup.ckpt"]
    assert losses(model(), 3, BackupAndRestore(str(folder)), initial_epoch=1) == whole[4:]
    assert os.listdir(folder) == []


def test_backups_every_so_many_epochs_can_be_kept(tmp_path: Path) -> None:
    m = model()
    m.train(3, ROWS, callbacks=BackupAndRestore(str(tmp_path), save_freq=2, delete_checkpoint=False))
    step = int(load_checkpoint(str(tmp_path / "backup.ckpt"))["global_step"].asnumpy()[0])
    assert step == 8
    model().train(1, ROWS, callbacks=BackupAndRestore(str(tmp_path / "other"), save_freq=2))


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda p: BackupAndRestore(3), TypeError, "'backup_dir' got int"),
        (lambda p: BackupAndRestore(p, 0), ValueError, "'save_freq' got 0"),
        (lambda p: BackupAndRestore(p, "step"), TypeError, "'save_freq' got 'step'"),
        (lambda p: BackupAndRestore(p, delete_checkpoint=1), TypeError, "'delete_checkpoint' got 1"),
        (lambda p: OnRequestExit(save_ckpt=1, directory=p), TypeError, "'save_ckpt' got 1"),
        (lambda p: OnRequestExit(file_name=1, directory=p), TypeError, "'file_name' got int"),
        (lambda p: OnRequestExit(directory=p, sig="TERM"), TypeError, "'sig' got str"),
        (lambda p: OnRequestExit(directory=p, sig=signal.SIGKILL), ValueError, "'sig' got SIGKILL"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(make: Any, kind: type[Exception], message: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=message):
        make(str(tmp_path))


@MODES
def test_a_signal_ends_the_training_after_the_step_and_it_resumes(mode: int, tmp_path: Path) -> None:
    ms.set_context(mode=mode)
    whole = losses(model(), 2)
    before = signal.getsignal(signal.SIGUSR1)
    options = {"save_mindir": False, "directory": str(tmp_path), "sig": signal.SIGUSR1}
    first = losses(model(), 2, OnRequestExit(**options), At(4, lambda: signal.raise_signal(signal.SIGUSR1)))
    assert signal.getsignal(signal.SIGUSR1) == before
    assert first == whole[:4]
    found = load_checkpoint(str(tmp_path / "rank_0" / "Net_train.ckpt"))
    assert {k: int(found[k]) for k in ("epoch_num", "step_num", "batch_num", "global_step")} == {
        "epoch_num": 1, "step_num": 4, "batch_num": 4, "global_step": 4,
    }  # fmt: skip
    assert losses(model(), 2, OnRequestExit(**options), initial_epoch=1) == whole[4:]


def test_a_file_asks_for_the_end(tmp_path: Path) -> None:
    config = tmp_path / "exit.json"
    callback = OnRequestExit(save_mindir=False, file_name="a", directory=str(tmp_path), config_file=str(config))
    asked = [
        At(1, lambda: config.write_text("{", encoding="utf-8")),
        At(2, lambda: config.write_text(json.dumps({"GracefulExit": 0}), encoding="utf-8")),
        At(3, lambda: config.write_text(json.dumps({"GracefulExit": 1}), encoding="utf-8")),
    ]
    manager = train.FixedLossScaleManager(8.0)
    assert len(losses(model(loss_scale_manager=manager), 2, callback, *asked)) == 3
    assert float(load_checkpoint(str(tmp_path / "rank_0" / "a_train.ckpt"))["loss_scale"]) == 8.0


def test_a_training_that_nothing_interrupts_saves_nothing(tmp_path: Path) -> None:
    losses(model(), 1, OnRequestExit(save_mindir=False, directory=str(tmp_path)))
    assert os.listdir(tmp_path / "rank_0") == []


def test_a_signal_ends_the_evaluation(tmp_path: Path) -> None:
    callback = OnRequestExit(save_mindir=False, directory=str(tmp_path), sig=signal.SIGUSR1)
    m, steps = model(), []
    count = train.LambdaCallback(on_eval_step_end=lambda c: steps.append(1))
    m.eval(ROWS, callbacks=[callback, At(2, lambda: signal.raise_signal(signal.SIGUSR1)), count])
    assert len(steps) == 2
    assert os.listdir(tmp_path / "rank_0") == ["Net_eval.ckpt"]
    m.predict_network.weight.set_data(np.ones((1, 2), np.float32))
    m.eval(ROWS, callbacks=callback)
    np.testing.assert_array_equal(m.predict_network.weight.asnumpy(), np.zeros((1, 2)))


def test_the_network_is_exported(tmp_path: Path, monkeypatch: Any) -> None:
    calls: list[Any] = []
    exporter = types.ModuleType("mycelia.export")
    exporter.export = lambda net, *inputs, **options: calls.append((net, [x.shape for x in inputs], options))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mycelia.export", exporter)
    m = model()
    callback = OnRequestExit(save_ckpt=False, directory=str(tmp_path), sig=signal.SIGUSR1)
    losses(m, 1, callback, At(2, lambda: signal.raise_signal(signal.SIGUSR1)))
    name = str(tmp_path / "rank_0" / "Net_train")
    assert calls == [(m.train_network, [(2, 2), (2, 1)], {"file_name": name, "file_format": "MINDIR"})]


def test_signals_need_the_main_thread(tmp_path: Path) -> None:
    caught: list[BaseException] = []

    def work() -> None:
        try:
            losses(model(), 1, OnRequestExit(save_mindir=False, directory=str(tmp_path)))
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])
