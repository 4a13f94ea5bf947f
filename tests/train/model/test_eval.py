"""Model.eval, Model.fit and Model.predict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn
from mycelia.train import Callback, Metric, Model

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
X = np.arange(14, dtype=np.float32).reshape(7, 2) / 10
Y = (X @ np.array([[1.0], [-2.0]], np.float32)) + 0.5


def rows(batch: int = 3) -> list[Any]:
    return [(X[i : i + batch], Y[i : i + batch]) for i in range(0, len(X), batch)]


def network() -> nn.Cell:
    return nn.Dense(2, 1, weight_init="zeros", bias_init="zeros")


def model(**options: Any) -> Model:
    net = network()
    return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), **{"metrics": {"loss", "mse"}, **options})


@MODES
def test_eval_gives_the_metrics(mode: int) -> None:
    ms.set_context(mode=mode)
    found = model().eval(rows())
    assert list(sorted(found)) == ["loss", "mse"]
    assert found["loss"] == pytest.approx(np.mean([(y**2).mean() for _, y in rows()]), rel=1e-6)
    assert found["mse"] == pytest.approx((Y**2).sum() / len(Y), rel=1e-6)
    again = model(metrics={"a": ms.train.MSE()})
    assert again.eval(rows()) == again.eval(rows())


class Log(Callback):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("on_"):
            return super().__getattribute__(name)

        def note(run_context: Any) -> None:
            run = run_context.original_args()
            self.seen.append((name, run.mode, run.cur_step_num, run.get("batch_num")))

        return note


def test_hooks_of_eval() -> None:
    log = Log()
    model().eval(rows()[:2], callbacks=log)
    assert log.seen == [
        ("on_eval_begin", "eval", 0, 2), ("on_eval_epoch_begin", "eval", 0, 2), ("on_eval_step_begin", "eval", 1, 2),
        ("on_eval_step_end", "eval", 1, 2), ("on_eval_step_begin", "eval", 2, 2), ("on_eval_step_end", "eval", 2, 2),
        ("on_eval_epoch_end", "eval", 2, 2), ("on_eval_end", "eval", 2, 2),
    ]  # fmt: skip


def test_hooks_of_fit_and_that_the_state_of_the_training_comes_back() -> None:
    log = Log()
    model().fit(2, rows()[:2], rows(), callbacks=log, valid_frequency=2)
    names = [name for name, *_ in log.seen]
    assert names.count("on_eval_begin") == 1
    assert names.index("on_eval_begin") > names.index("on_train_epoch_end")
    assert log.seen[-2:] == [("on_train_epoch_end", "train", 4, 2), ("on_train_end", "train", 4, 2)]
    assert [s for s in log.seen if s[0] == "on_eval_step_end"][-1] == ("on_eval_step_end", "eval", 3, 3)


class Results(Callback):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_train_epoch_end(self, run_context: Any) -> None:
        run = run_context.original_args()
        self.seen.append((run.cur_epoch_num, run.get("metrics"), run.get("eval_results"), run.net_outputs.shape))


@pytest.mark.parametrize(("frequency", "epochs"), [(1, [1, 2, 3]), (2, [2]), ([1, 3], [1, 3]), ([], [])])
def test_fit_evaluates_as_often_as_told(frequency: Any, epochs: list[int]) -> None:
    results = Results()
    model(metrics=["mse"]).fit(3, rows(), rows(7), frequency, callbacks=results)
    assert [e for e, metrics, *_ in results.seen if metrics is not None] == epochs
    for epoch, metrics, found, shape in results.seen:
        assert shape == ()
        if epoch in epochs:
            assert set(metrics) == {"mse"}
            assert set(found) == {"mse", "eval_loss"}
            assert found["eval_loss"] == pytest.approx(metrics["mse"], rel=1e-5)


def test_eval_loss_is_the_mean_over_batches() -> None:
    results = Results()
    net = network()
    m = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.0), metrics=["mse"])
    m.fit(1, rows(), rows(), callbacks=results)
    assert results.seen[0][2]["eval_loss"] == pytest.approx(np.mean([(y**2).mean() for _, y in rows()]), rel=1e-6)


def test_fit_without_valid_data_trains() -> None:
    m = model(metrics=None)
    m.fit(2, rows())
    assert float(m.predict_network.bias.asnumpy()[0]) != 0


@MODES
def test_fit_trains_in_training_mode_and_evaluates_without(mode: int) -> None:
    ms.set_context(mode=mode)
    net = nn.SequentialCell(nn.Dense(2, 4), nn.Dropout(p=0.5), nn.Dense(4, 1))
    m = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.0), metrics=["loss"])
    results = Results()
    m.fit(2, rows(7), rows(7), callbacks=results)
    assert results.seen[0][1] == results.seen[1][1]  # no dropout
    assert net.training


class EvalNet(nn.Cell):
    """Gives (label, prediction, loss)."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.net = net

    def construct(self, x: Any, y: Any, extra: Any) -> Any:
        out = self.net(x) + extra
        return y, out, ((out - y) ** 2).mean()


@MODES
def test_an_eval_network_of_ones_own(mode: int) -> None:
    ms.set_context(mode=mode)
    net = network()
    data = [(x, y, np.float32(1.0)) for x, y in rows()]
    m = Model(net, eval_network=EvalNet(net), eval_indexes=[2, 1, 0], metrics={"loss", "mae"})
    found = m.eval(data)
    assert found["loss"] == pytest.approx(np.mean([((1 - y) ** 2).mean() for _, y in rows()]), rel=1e-6)
    assert found["mae"] == pytest.approx(np.abs(1 - Y).sum() / len(Y), rel=1e-6)
    with pytest.raises(ValueError, match=r"'eval_indexes' got \[3, 1, 0\]; it takes positions of the 3 outputs"):
        Model(net, eval_network=EvalNet(net), eval_indexes=[3, 1, 0], metrics={"loss"}).eval(data)


class Everything(Metric):
    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self.shapes: list[Any] = []

    @ms.train.rearrange_inputs
    def update(self, *inputs: Any) -> None:
        self.shapes.append([x.shape for x in inputs])

    def eval(self) -> Any:
        return self.shapes


def test_metrics_without_indexes_are_given_every_output_or_those_they_choose() -> None:
    net = network()
    data = [(X[:2], Y[:2], np.float32(1.0))]
    m = Model(net, eval_network=EvalNet(net), metrics={"all": Everything(), "two": Everything().set_indexes([2, 0])})
    assert m.eval(data) == {"all": [[(2, 1), (2, 1), ()]], "two": [[(), (2, 1)]]}


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda m: model(metrics=None).eval(rows()), ValueError, "Model.eval: argument 'metrics' got none"),
        (lambda m: m.eval([]), ValueError, "Model.eval: argument 'valid_dataset' got a data set without rows"),
        (lambda m: m.eval(iter([])), ValueError, "'valid_dataset' got a data set without rows"),
        (lambda m: m.eval(rows(), dataset_sink_mode=1), TypeError, "'dataset_sink_mode' got 1"),
        (lambda m: m.eval([(X, Y, Y)]), ValueError, "rows of 3 columns; it takes 2 columns"),
        (lambda m: model(metrics=None).fit(1, rows(), rows()), ValueError, "'valid_dataset' got data without metrics"),
        (lambda m: m.fit(1, rows(), rows(), 0), ValueError, "'valid_frequency' got 0"),
        (lambda m: m.fit(1, rows(), rows(), "1"), TypeError, "'valid_frequency' got '1'"),
        (lambda m: m.fit(1, rows(), 3), TypeError, "'valid_dataset' got int"),
        (lambda m: m.fit(1, rows(), rows(), valid_dataset_sink_mode=1), TypeError, "'valid_dataset_sink_mode' got 1"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call(model())


def test_fit_refuses_hooks_that_do_not_tell_training_from_evaluation() -> None:
    class Old(Callback):
        def step_end(self, run_context: Any) -> None:
            raise AssertionError

    with pytest.raises(ValueError, match=r"Old with the hook 'step_end'; it takes callbacks .*'on_train_step_end'"):
        model().fit(1, rows(), rows(), callbacks=Old())


@MODES
def test_a_row_that_does_not_fit_is_explained(mode: int) -> None:
    ms.set_context(mode=mode)
    with pytest.raises(ValueError, match=r"at row 2 of 'valid_dataset': column 0 is float32\[3, 1\]"):
        model().eval([rows()[0], (X[:3, :1], Y[:3])])


# predict ----------------------------------------------------------------------------------------------------


@MODES
def test_predict_is_in_inference_mode(mode: int) -> None:
    ms.set_context(mode=mode)
    net = nn.SequentialCell(nn.Dense(2, 4), nn.Dropout(p=0.9))
    net.set_train()
    m = Model(net)
    out = m.predict(ms.Tensor(X))
    np.testing.assert_array_equal(out.asnumpy(), m.predict(X).asnumpy())
    assert not net.training
    assert net[1].training is False


def test_predict_takes_nests_and_numbers() -> None:
    class Net(nn.Cell):
        def construct(self, pair: Any, scale: float, name: Any = None) -> Any:
            return pair[0] * scale + pair[1]["a"]

    m = Model(Net())
    np.testing.assert_allclose(m.predict((X, {"a": ms.Tensor(X)}), 2.0, None).asnumpy(), 3 * X, rtol=1e-6)
    assert m.predict((X, {"a": X}), 2.0, backend="lite").shape == X.shape


@pytest.mark.parametrize(
    ("inputs", "options", "kind", "message"),
    [
        ((ms.Tensor(np.zeros((0, 2), np.float32)),), {}, ValueError, r"'input 0' got an empty Tensor of shape"),
        ((ms.Tensor(X), object()), {}, TypeError, "'input 1' got object; it takes Tensors, arrays, numbers"),
        ((ms.Tensor(X),), {"backend": "fast"}, ValueError, "'backend' got 'fast'; it takes None or 'lite'"),
    ],
)  # fmt: skip
def test_wrong_predictions_are_refused(inputs: Any, options: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=f"Model.predict: argument {message}"):
        Model(network()).predict(*inputs, **options)
