"""EarlyStopping and ReduceLROnPlateau, on courses of a metric that are made up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, train
from mycelia.train import Metric, Model

X, Y = np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)
ROWS = [(X, Y)]


class Course(Metric):
    """Gives one value after another."""

    def __init__(self, values: list[float]) -> None:
        super().__init__()
        self.values = iter(values)

    def clear(self) -> None:
        pass

    def update(self, *inputs: Any) -> None:
        pass

    def eval(self) -> float:
        return next(self.values)


def run(callback: Any, values: list[float], name: str = "acc", rate: Any = 1.0) -> tuple[Model, list[int]]:
    """The Model after a fit, and the epochs that were begun."""
    net = nn.Dense(2, 1, weight_init="zeros", bias_init="zeros")
    m = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), rate), metrics={name: Course(values)})
    epochs: list[int] = []
    count = train.LambdaCallback(on_train_epoch_begin=lambda c: epochs.append(c.original_args().cur_epoch_num))
    m.fit(len(values), ROWS, ROWS, callbacks=[callback, count])
    return m, epochs


@pytest.mark.parametrize(
    ("options", "values", "last"),
    [
        ({"patience": 1}, [0.1, 0.2, 0.2, 0.3], 3),
        ({"patience": 2}, [0.1, 0.2, 0.2, 0.15, 0.3], 4),
        ({"patience": 0}, [0.1, 0.2, 0.15, 0.3], 3),
        ({"patience": 1, "min_delta": 0.2}, [0.1, 0.25, 0.9], 2),
        ({"patience": 1, "min_delta": -0.2}, [0.1, 0.25, 0.9], 2),
        ({"patience": 1, "mode": "min"}, [0.3, 0.2, 0.25, 0.1], 3),
        ({"patience": 2, "baseline": 0.5}, [0.1, 0.2, 0.9], 2),
        ({"patience": 2}, [0.1, 0.2, 0.3], None),
    ],
)  # fmt: skip
def test_early_stopping(options: dict[str, Any], values: list[float], last: int | None) -> None:
    callback = train.EarlyStopping("acc", **options)
    _, epochs = run(callback, values)
    assert epochs[-1] == (last or len(values))
    assert callback.stopped_epoch == (last or 0)


@pytest.mark.parametrize("monitor", ["eval_loss", "loss", "mse", "mae", "perplexity", "hausdorff_distance"])
def test_losses_and_distances_are_better_when_smaller(monitor: str) -> None:
    assert not train.EarlyStopping(monitor)._rising
    assert train.EarlyStopping("anything_else")._rising
    assert train.EarlyStopping(monitor, mode="max")._rising


def test_the_best_weights_come_back(capsys: Any) -> None:
    weights: list[Any] = []
    callback = train.EarlyStopping("acc", patience=2, restore_best_weights=True, verbose=True)

    class Look(train.Callback):
        def on_train_epoch_end(self, run_context: Any) -> None:
            weights.append([p.asnumpy() for p in run_context.original_args().train_network.get_parameters()])

    net = nn.Dense(2, 1)
    m = Model(
        net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.01, 0.9), metrics={"acc": Course([0.1, 0.5, 0.3, 0.4])}
    )
    m.fit(4, ROWS, ROWS, callbacks=[Look(), callback])
    for p, best, last in zip(m.train_network.get_parameters(), weights[1], weights[3], strict=True):
        np.testing.assert_array_equal(p.asnumpy(), best)
        assert (
            p.name == "learning_rate"
            or p.name == "momentum"
            or p.name.startswith("stat")
            or not np.array_equal(best, last)
        )
    assert capsys.readouterr().out.splitlines() == [
        "Restoring model weights from the end of the best epoch.", "Epoch 00004: early stopping",
    ]  # fmt: skip


def test_the_loss_can_be_watched_without_evaluation() -> None:
    net = nn.Dense(2, 1, weight_init="zeros", bias_init="zeros")
    m = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.0))
    callback = train.EarlyStopping("loss", patience=2)
    m.train(9, ROWS, callbacks=callback)
    assert callback.stopped_epoch == 3


def test_epochs_without_evaluation_are_passed_over() -> None:
    net = nn.Dense(2, 1)
    m = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.0), metrics={"acc": Course([0.5, 0.4, 0.3])})
    callback = train.EarlyStopping("acc", patience=1)
    m.fit(9, ROWS, ROWS, valid_frequency=2, callbacks=callback)
    assert callback.stopped_epoch == 4


def test_a_value_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"EarlyStopping: argument 'monitor' got 'auc'; it takes one of 'loss', 'acc', 'eval_loss'"
    ):
        run(train.EarlyStopping("auc"), [0.1])
    net = nn.Dense(2, 1)
    m = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.0))
    with pytest.raises(
        ValueError, match=r"got 'eval_loss'; it takes one of 'loss'(.|\n)*Model.train knows the loss only"
    ):
        m.train(1, ROWS, callbacks=train.EarlyStopping())
    with pytest.raises(ValueError, match="'acc' with 2 values; it takes one value"):
        run(train.EarlyStopping("acc"), [np.array([0.1, 0.2])])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("options", "values", "rate"),
    [
        ({"patience": 1, "factor": 0.5}, [0.1, 0.2, 0.2, 0.1], 0.25),
        ({"patience": 2, "factor": 0.5}, [0.1, 0.1, 0.1, 0.1], 0.5),
        ({"patience": 1, "factor": 0.5, "cooldown": 2}, [0.1, 0.1, 0.1, 0.1, 0.1], 0.25),
        ({"patience": 1, "factor": 0.1, "min_lr": 0.5}, [0.1, 0.1, 0.1], 0.5),
        ({"patience": 1, "factor": 0.5, "min_delta": 0.5}, [0.1, 0.2, 0.3], 0.25),
        ({"patience": 1, "factor": 0.5, "mode": "min"}, [0.3, 0.2, 0.1], 1.0),
    ],
)  # fmt: skip
def test_reduce_lr_on_plateau(options: dict[str, Any], values: list[float], rate: float) -> None:
    m, _ = run(train.ReduceLROnPlateau("acc", **options), values)
    assert float(m.train_network.optimizer.learning_rate.asnumpy()) == pytest.approx(rate)


def test_reduce_lr_on_plateau_says_so(capsys: Any) -> None:
    run(train.ReduceLROnPlateau("acc", factor=0.5, patience=1, verbose=True), [0.1, 0.1])
    assert capsys.readouterr().out == "Epoch 00002: ReduceLROnPlateau reducing learning rate to 0.5.\n"


def test_reduce_lr_on_plateau_needs_one_rate() -> None:
    with pytest.raises(RuntimeError, match="ReduceLROnPlateau: the optimizer's learning rate follows a schedule"):
        run(train.ReduceLROnPlateau("acc"), [0.1], rate=[0.1, 0.2])


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: train.EarlyStopping(3), TypeError, "'monitor' got int"),
        (lambda: train.EarlyStopping(mode="up"), ValueError, "'mode' got 'up'; it takes 'auto', 'min' or 'max'"),
        (lambda: train.EarlyStopping(patience=-1), ValueError, "'patience' got -1"),
        (lambda: train.EarlyStopping(min_delta="1"), TypeError, "'min_delta' got '1'"),
        (lambda: train.EarlyStopping(verbose=1), TypeError, "'verbose' got 1"),
        (lambda: train.EarlyStopping(baseline="1"), TypeError, "'baseline' got '1'"),
        (lambda: train.ReduceLROnPlateau(factor=1.0), ValueError, "'factor' got 1.0; it takes a number between"),
        (lambda: train.ReduceLROnPlateau(cooldown=-1), ValueError, "'cooldown' got -1"),
        (lambda: train.ReduceLROnPlateau(min_lr="0"), TypeError, "'min_lr' got '0'"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(make: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_graph_mode_goes_on_with_the_lowered_rate() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    m, _ = run(train.ReduceLROnPlateau("acc", factor=0.5, patience=1), [0.1, 0.1, 0.1], rate=0.01)
    calls = m.train_network.__dict__["_compiled_calls"]
    assert sum(len(b) for jit in calls.values() for b in jit.entries.values()) == 1
