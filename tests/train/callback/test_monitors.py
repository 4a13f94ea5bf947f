"""LossMonitor, TimeMonitor, History, LambdaCallback, LearningRateScheduler."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, train
from mycelia.train import Callback, Model

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
X, Y = np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)
ROWS = [(X, Y)] * 3


def model(rate: Any = 0.125, **options: Any) -> Model:
    net = nn.Dense(2, 1, weight_init="zeros", bias_init="zeros")
    return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), rate), **options)


def losses(steps: int) -> list[float]:
    """A loss of 1 whose error shrinks to a quarter per step."""
    return [float(0.0625**i) for i in range(steps)]


@MODES
def test_loss_monitor_prints_the_line_of_mindspore(mode: int, capsys: Any) -> None:
    ms.set_context(mode=mode)
    model().train(2, ROWS, callbacks=train.LossMonitor())
    lines = capsys.readouterr().out.splitlines()
    where = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert lines == [f"epoch: {e} step: {s}, loss is {v}" for (e, s), v in zip(where, losses(6), strict=True)]


@pytest.mark.parametrize(
    ("every", "where"), [(2, ["1 step: 2", "2 step: 1", "2 step: 3"]), (5, ["2 step: 2"]), (0, [])]
)
def test_loss_monitor_prints_every_so_many_steps(every: int, where: list[str], capsys: Any) -> None:
    monitor = train.LossMonitor(every)
    for _ in range(2):  # the second run counts anew
        model().train(2, ROWS, callbacks=monitor)
        lines = capsys.readouterr().out.splitlines()
        assert [line.split(",")[0] for line in lines] == [f"epoch: {w}" for w in where]


def test_loss_monitor_in_sink_mode_and_with_several_outputs(capsys: Any) -> None:
    model().train(2, ROWS, callbacks=train.LossMonitor(), dataset_sink_mode=True)
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == [
        "epoch: 1 step: 3",
        "epoch: 2 step: 3",
    ]

    class Two(nn.Cell):
        def construct(self, x: Any, y: Any) -> Any:
            return x * 2, y

    Model(Two()).train(1, ROWS[:1], callbacks=train.LossMonitor())
    assert capsys.readouterr().out == "epoch: 1 step: 1, loss is 2.0\n"


@MODES
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_loss_that_is_no_number_ends_the_training(wrong: float, mode: int) -> None:
    ms.set_context(mode=mode)
    data = [*ROWS, (X, np.full_like(Y, wrong))]
    with pytest.raises(
        ValueError, match=r"LossMonitor: in epoch 1, step 4, the loss is (nan|inf); the training cannot go on"
    ):
        model().train(1, data, callbacks=train.LossMonitor(0))


def test_loss_monitor_prints_results_of_fit(capsys: Any) -> None:
    model(metrics={"mse"}).fit(1, ROWS[:1], ROWS, callbacks=train.LossMonitor(0))
    assert capsys.readouterr().out == "Eval result: epoch 1, metrics: {'mse': 0.0625}\n"


LINE = r"(Train|Eval) epoch time: +\d+\.\d{3} ms, per step time: +\d+\.\d{3} ms"


def test_time_monitor_prints_the_line_of_mindspore(capsys: Any) -> None:
    model(metrics={"mse"}).fit(2, ROWS, ROWS[:2], callbacks=train.TimeMonitor())
    lines = capsys.readouterr().out.splitlines()
    assert all(re.fullmatch(LINE, line) for line in lines)
    assert [line.split()[0] for line in lines] == ["Eval", "Train", "Eval", "Train"]


def test_time_monitor_divides_by_the_steps(capsys: Any, monkeypatch: Any) -> None:
    clock = iter([0.0, 5.273013])
    monkeypatch.setattr("mycelia.train.callback.monitors.time.perf_counter", lambda: next(clock))
    monitor = train.TimeMonitor()
    context = train.RunContext(train.callback._InternalCallbackParam(batch_num=1875, mode="train"))
    monitor.epoch_begin(context)
    monitor.epoch_end(context)
    assert capsys.readouterr().out == "Train epoch time: 5273.013 ms, per step time: 2.812 ms\n"


def test_time_monitor_with_data_time_and_without_a_known_size(capsys: Any) -> None:
    model().train(1, ROWS, callbacks=train.TimeMonitor(data_time=True))
    assert re.fullmatch(LINE + r" \(data time: +\d+\.\d{3} ms\)\n", capsys.readouterr().out)
    model().train(1, (row for row in ROWS), callbacks=train.TimeMonitor(data_size=3))
    assert re.fullmatch(LINE + "\n", capsys.readouterr().out)


def test_history_keeps_losses_and_metrics() -> None:
    history = train.History()
    model(metrics={"mse", "mae"}).fit(2, ROWS[:1], ROWS, callbacks=history)
    assert history.epoch == {"epoch": [1, 2]}
    assert history.history == {"net_output": losses(2), "mse": losses(3)[1:], "mae": [0.25, 0.0625]}
    model().train(3, ROWS, callbacks=history, initial_epoch=1)
    assert history.epoch == {"epoch": [2, 3]}
    assert len(history.history["net_output"]) == 4


def test_lambda_callback_calls_each_function_at_its_hook() -> None:
    seen: list[str] = []
    hooks = [f"on_{kind}_{when}" for kind in ("train", "eval") for when in (
        "begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")]  # fmt: skip
    callback = train.LambdaCallback(**{h: (lambda c, h=h: seen.append(h)) for h in hooks})
    model(metrics={"mse"}).fit(1, ROWS[:1], ROWS[:1], callbacks=callback)
    assert seen == [*hooks[:4], *hooks[6:], *hooks[4:6]]
    train.LambdaCallback().on_train_begin(train.RunContext({}))
    with pytest.raises(TypeError, match="LambdaCallback: argument 'on_train_end' got int"):
        train.LambdaCallback(on_train_end=3)
    with pytest.raises(TypeError, match="on_train_start"):
        train.LambdaCallback(on_train_start=print)


@MODES
def test_learning_rate_scheduler_sets_the_rate(mode: int) -> None:
    ms.set_context(mode=mode)
    m = model(0.5)
    told: list[tuple[float, int]] = []

    def next_rate(rate: float, step: int) -> float:
        told.append((rate, step))
        return rate / 2

    m.train(1, ROWS, callbacks=train.LearningRateScheduler(next_rate))
    assert told == [(0.5, 1), (0.25, 2), (0.125, 3)]
    assert float(m.train_network.optimizer.learning_rate.asnumpy()) == 0.0625


def test_learning_rate_scheduler_refuses() -> None:
    with pytest.raises(TypeError, match="'learning_rate_function' got int; it takes a function"):
        train.LearningRateScheduler(3)
    with pytest.raises(TypeError, match="a function that returned str"):
        model().train(1, ROWS, callbacks=train.LearningRateScheduler(lambda rate, step: "0.1"))
    with pytest.raises(RuntimeError, match="LearningRateScheduler: the optimizer's learning rate follows a schedule"):
        model([0.1, 0.2]).train(1, ROWS, callbacks=train.LearningRateScheduler(lambda rate, step: rate))


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: train.LossMonitor(-1), ValueError, "'per_print_times' got -1; it takes an int of at least 0"),
        (lambda: train.LossMonitor(1.5), TypeError, "'per_print_times' got 1.5"),
        (lambda: train.TimeMonitor(0), ValueError, "'data_size' got 0"),
        (lambda: train.TimeMonitor(data_time=1), TypeError, "'data_time' got 1"),
        (lambda: train.RunContext(3), TypeError, "'original_args' got int"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(make: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_older_hooks_mean_training_and_evaluation() -> None:
    class Old(Callback):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def begin(self, run_context: Any) -> None:
            self.seen.append(f"begin {run_context.original_args().mode}")

        def step_end(self, run_context: Any) -> None:
            self.seen.append(f"step_end {run_context.original_args().mode}")

    old, m = Old(), model(metrics={"mse"})
    m.train(1, ROWS[:1], callbacks=old)
    m.eval(ROWS[:1], callbacks=old)
    assert old.seen == ["begin train", "step_end train", "begin eval", "step_end eval"]
