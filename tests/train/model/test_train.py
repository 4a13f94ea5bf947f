"""Model.train: epochs, steps, callbacks, sink mode, rows of all kinds, and one executable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds, nn
from mycelia.train import Callback, Model

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
X = np.arange(14, dtype=np.float32).reshape(7, 2) / 10
Y = (X @ np.array([[1.0], [-2.0]], np.float32)) + 0.5


def rows(batch: int = 2) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    return [(X[i : i + batch], Y[i : i + batch]) for i in range(0, len(X), batch)]


def network() -> nn.Cell:
    return nn.Dense(2, 1, weight_init="zeros", bias_init="zeros")


def model(net: nn.Cell | None = None, rate: float = 0.1, **options: Any) -> Model:
    net = net or network()
    return Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), rate, 0.5), **options)


def by_hand(epochs: int, data: Any) -> list[float]:
    """The losses of the training in NumPy."""
    w, b, vw, vb, losses = np.zeros((1, 2)), np.zeros(1), 0.0, 0.0, []
    for _ in range(epochs):
        for x, y in data:
            error = x @ w.T + b - y
            losses.append(float((error**2).mean()))
            vw, vb = 0.5 * vw + 2 * error.T @ x / len(x), 0.5 * vb + 2 * error.mean(0)
            w, b = w - 0.1 * vw, b - 0.1 * vb
    return losses


def entries(cell: Any) -> list[Any]:
    calls = cell.__dict__.get("_compiled_calls") or {}
    return [e for jit in calls.values() for bucket in jit.entries.values() for e in bucket]


class Log(Callback):
    """Writes down every hook with epoch and step."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any, int]] = []
        self.losses: list[float] = []

    def _note(self, hook: str, run_context: Any) -> None:
        run = run_context.original_args()
        self.seen.append((hook, run.get("cur_epoch_num"), run.cur_step_num))
        if hook == "train_step_end":
            self.losses.append(float(run.net_outputs.asnumpy()))

    def on_train_begin(self, c: Any) -> None:
        self._note("train_begin", c)

    def on_train_epoch_begin(self, c: Any) -> None:
        self._note("train_epoch_begin", c)

    def on_train_step_begin(self, c: Any) -> None:
        self._note("train_step_begin", c)

    def on_train_step_end(self, c: Any) -> None:
        self._note("train_step_end", c)

    def on_train_epoch_end(self, c: Any) -> None:
        self._note("train_epoch_end", c)

    def on_train_end(self, c: Any) -> None:
        self._note("train_end", c)


@MODES
def test_losses_and_hooks(mode: int) -> None:
    ms.set_context(mode=mode)
    log = Log()
    model().train(2, rows(3), callbacks=log)
    np.testing.assert_allclose(log.losses, by_hand(2, rows(3)), rtol=1e-5)
    one = [("train_step_begin", 1, 1), ("train_step_end", 1, 1), ("train_step_begin", 1, 2), ("train_step_end", 1, 2)]
    assert log.seen[:6] == [("train_begin", None, 0), ("train_epoch_begin", 1, 0), *one]
    assert log.seen[8:10] == [("train_epoch_end", 1, 3), ("train_epoch_begin", 2, 3)]
    assert log.seen[-2:] == [("train_epoch_end", 2, 6), ("train_end", 2, 6)]


def test_graph_mode_compiles_once_for_equal_batches_with_parameters_donated() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = network()
    m = model(net)
    m.train(3, rows(2)[:3])
    (entry,) = entries(m.train_network)
    assert not entries(net)
    assert not entries(m.train_network.optimizer)
    donated = {id(entry.captured[i - 2]) for i in entry.donated}
    assert {id(p) for p in net.trainable_params()} <= donated
    m.train(1, rows(2))  # the last batch is ragged
    assert len(entries(m.train_network)) == 2


def as_dataset(batch: int) -> Any:
    return ds.NumpySlicesDataset((X, Y), column_names=["data", "label"], shuffle=False).batch(batch)


@MODES
@pytest.mark.parametrize(
    "make",
    [
        lambda: as_dataset(3),
        lambda: rows(3),
        lambda: [{"data": x, "label": y} for x, y in rows(3)],
        lambda: [[ms.Tensor(x), ms.Tensor(y)] for x, y in rows(3)],
        lambda: [(x.tolist(), y.tolist()) for x, y in rows(3)],
    ],
    ids=["dataset", "tuples", "dicts", "lists_of_tensors", "python_lists"],
)  # fmt: skip
def test_rows_of_all_kinds(make: Any, mode: int) -> None:
    ms.set_context(mode=mode)
    log = Log()
    model().train(2, make(), callbacks=[log])
    np.testing.assert_allclose(log.losses, by_hand(2, rows(3)), rtol=1e-5)


class TwoInputs(nn.Cell):
    """A loss of three columns, the first of them a pair."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = network()

    def construct(self, pair: Any, scale: Any, label: Any) -> Any:
        a, b = pair
        return ((self.dense(a + b) * scale - label) ** 2).mean()


@MODES
def test_a_network_with_its_own_loss_takes_any_columns(mode: int) -> None:
    ms.set_context(mode=mode)
    net = TwoInputs()
    m = Model(net, optimizer=nn.SGD(net.trainable_params(), 0.1))
    log = Log()
    m.train(1, [((X[:2], X[2:4]), np.float32(0.5), Y[:2])] * 2, callbacks=log)
    assert log.losses[0] == pytest.approx(float((Y[:2] ** 2).mean()))
    assert log.losses[1] < log.losses[0]


@MODES
def test_a_pair_of_labels_is_one_column(mode: int) -> None:
    ms.set_context(mode=mode)
    net = network()
    m = Model(net, lambda out, label: ((out - label[0] - label[1]) ** 2).mean(), nn.SGD(net.trainable_params(), 0.1))
    log = Log()
    m.train(1, [(X[:2], (Y[:2], Y[:2]))], callbacks=log)
    assert log.losses == [pytest.approx(float(4 * (Y[:2] ** 2).mean()))]


@MODES
def test_a_network_that_trains_itself(mode: int) -> None:
    ms.set_context(mode=mode)
    net = network()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.5))
    log = Log()
    Model(step).train(1, rows(3), callbacks=log)
    np.testing.assert_allclose(log.losses, by_hand(1, rows(3)), rtol=1e-5)


# epochs and steps -------------------------------------------------------------------------------------------


def test_initial_epoch() -> None:
    log = Log()
    model().train(3, rows(3), callbacks=log, initial_epoch=1)
    assert [epoch for hook, epoch, _ in log.seen if hook == "train_epoch_begin"] == [2, 3]
    assert log.seen[-1] == ("train_end", 3, 6)


@MODES
def test_sink_mode_tells_of_an_epoch_as_of_one_step(mode: int) -> None:
    ms.set_context(mode=mode)
    log = Log()
    model().train(2, rows(3), callbacks=log, dataset_sink_mode=True)
    assert [s for s in log.seen if "step" in s[0]] == [
        ("train_step_begin", 1, 0), ("train_step_end", 1, 3), ("train_step_begin", 2, 3), ("train_step_end", 2, 6),
    ]  # fmt: skip
    np.testing.assert_allclose(log.losses, by_hand(2, rows(3))[2::3], rtol=1e-5)


@pytest.mark.parametrize("make", [lambda: rows(3), lambda: as_dataset(3)], ids=["rows", "dataset"])
def test_sink_size_makes_epochs_of_so_many_steps_that_go_on_in_the_data(make: Any) -> None:
    log = Log()
    model().train(4, make(), callbacks=log, dataset_sink_mode=True, sink_size=2)
    assert [s[1:] for s in log.seen if s[0] == "train_epoch_end"] == [(1, 2), (2, 4), (3, 6), (4, 8)]
    expected = by_hand(3, rows(3))[:8]
    np.testing.assert_allclose(log.losses, expected[1::2], rtol=1e-5)


class StopAt(Callback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_step_end(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == self.step:
            run_context.request_stop()


def test_a_callback_ends_the_training() -> None:
    log = Log()
    model().train(5, rows(3), callbacks=[log, StopAt(4)])
    assert len(log.losses) == 4
    assert log.seen[-2:] == [("train_epoch_end", 2, 4), ("train_end", 2, 4)]


def test_an_early_stop_closes_the_iterator() -> None:
    data = ds.GeneratorDataset(lambda: zip(X, Y, strict=True), ["data", "label"], shuffle=False).batch(2)
    model().train(5, data, callbacks=StopAt(1))
    model().train(1, data)


class Predicting(Callback):
    """Uses the network for something else between the steps."""

    def __init__(self, m: Model) -> None:
        self.model = m

    def on_train_step_end(self, run_context: Any) -> None:
        self.model.predict(ms.Tensor(X))


def test_prediction_between_steps_leaves_training_mode_on() -> None:
    seen = []

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dense = network()

        def construct(self, x: Any) -> Any:
            seen.append(self.training)
            return self.dense(x)

    m = model(Net())
    m.train(1, rows(3)[:2], callbacks=Predicting(m))
    assert seen == [True, False, True, False]


def test_what_a_callback_is_told() -> None:
    data, found = rows(3), {}

    class Look(Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            found.update(run_context.original_args())

    m = model()
    callbacks = [Look()]
    m.train(2, data, callbacks=callbacks)
    assert found["train_network"] is m.train_network
    assert found["network"] is m.predict_network
    assert found["optimizer"] is m.train_network.optimizer
    assert found["train_dataset"] is data
    assert found["list_callback"] == callbacks
    assert [c.shape for c in found["train_dataset_element"]] == [(1, 2), (1, 1)]
    expected = {
        "epoch_num": 2, "batch_num": 3, "cur_epoch_num": 2, "cur_step_num": 6, "mode": "train",
        "dataset_sink_mode": False, "parallel_mode": "stand_alone", "device_number": 1,
    }  # fmt: skip
    assert {k: found[k] for k in expected} == expected
    assert "metrics" not in found
    assert "eval_results" not in found


def test_missing_state_is_an_attribute_error_that_lists_what_is_there() -> None:
    class Look(Callback):
        def on_train_begin(self, run_context: Any) -> None:
            assert not hasattr(run_context.original_args(), "net_output")
            run_context.original_args().net_output

    with pytest.raises(AttributeError, match=r"there is no 'net_output' in this run\n(.|\n)*cur_step_num"):
        model().train(1, rows(), callbacks=Look())


class Entered(Callback):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def __enter__(self) -> Callback:
        self.seen.append("enter")
        return self

    def __exit__(self, *error: Any) -> None:
        self.seen.append(f"exit {error[0].__name__ if error[0] else None}")

    def on_train_step_end(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == 2:
            raise KeyError("stop")


def test_callbacks_are_left_when_one_of_them_raises() -> None:
    entered = Entered()
    with pytest.raises(KeyError):
        model().train(1, rows(), callbacks=entered)
    assert entered.seen == ["enter", "exit KeyError"]


# errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"epoch": 0}, ValueError, "'epoch' got 0; it takes an int above 0"),
        ({"epoch": 1.5}, TypeError, r"'epoch' got 1.5 \(float\)"),
        ({"epoch": True}, TypeError, "'epoch' got True"),
        ({"epoch": 2, "initial_epoch": 2}, ValueError, "'initial_epoch' got 2; it takes an int from 0 to 1"),
        ({"sink_size": 0}, ValueError, "'sink_size' got 0; it takes -1 or an int above 0"),
        ({"dataset_sink_mode": 1}, TypeError, "'dataset_sink_mode' got 1"),
        ({"callbacks": "loss"}, TypeError, "'callbacks' got str"),
        ({"callbacks": [3]}, TypeError, "'callbacks' got int; it takes Callback objects"),
        ({"train_dataset": []}, ValueError, "'train_dataset' got a data set without rows; it takes at least one batch"),
        ({"train_dataset": None}, TypeError, "'train_dataset' got NoneType"),
        ({"train_dataset": X}, TypeError, "'train_dataset' got ndarray; it takes a dataset, or an iterable of rows"),
        ({"train_dataset": [(X, Y, Y)]}, ValueError, "got rows of 3 columns; it takes 2 columns, data and label"),
        ({"train_dataset": [{"a": X}]}, ValueError, r"got rows of 1 columns \(a\); it takes 2 columns"),
        ({"train_dataset": [(X, np.array(["a"]))]}, TypeError, "elements of dtype <U1 in column 1; it takes numbers"),
        ({"train_dataset": [(X, "a")]}, TypeError, "in column 1; it takes numbers"),
        ({"train_dataset": [{"data": X, "label": object()}]}, TypeError, r"in column 1 \('label'\); it takes numbers"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    given = {"epoch": 1, "train_dataset": rows(), **options}
    with pytest.raises(kind, match="Model.train: (.|\n)*" + message):
        model().train(**given)


def test_an_empty_dataset_is_refused() -> None:
    data = ds.NumpySlicesDataset((X, Y), ["data", "label"], shuffle=False).batch(10, drop_remainder=True)
    with pytest.raises(
        ValueError, match=r"a data set without rows(.|\n)*hint: does drop_remainder drop the only batch"
    ):
        model().train(1, data)


def test_a_generator_that_runs_out_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got no rows in pass 2(.|\n)*a generator gives its rows once"):
        model().train(2, (row for row in rows()))


def test_columns_that_do_not_fit_construct_are_refused() -> None:
    net = TwoInputs()
    m = Model(net, optimizer=nn.SGD(net.trainable_params(), 0.1))
    with pytest.raises(
        ValueError, match=r"rows of 2 columns; it takes the inputs of TwoInputs.construct: pair, scale, label"
    ):
        m.train(1, rows())


@MODES
@pytest.mark.parametrize(
    ("wrong", "note"),
    [
        (
            (X[:2, :1], Y[:2]),
            r"at row 2 of 'train_dataset': column 0 \('data'\) is float32\[2, 1\], in the first row it was "
            r"float32\[2, 2\]; column 1 \('label'\) is float32\[2, 1\]",
        ),
        ((X[:2], np.zeros((5, 3), np.float32)), r"float32\[5, 3\], in the first row it was float32\[2, 1\]"),
    ],
)  # fmt: skip
def test_a_row_of_another_shape_is_an_error_that_names_the_column(wrong: Any, note: str, mode: int) -> None:
    ms.set_context(mode=mode)
    net = network()
    m = model(net)
    data = [{"data": X[:2], "label": Y[:2]}, {"data": wrong[0], "label": wrong[1]}]
    with pytest.raises(ValueError, match=note) as caught:
        m.train(1, data)
    assert "test_train.py" in str(caught.value)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda n, o: Model(3), TypeError, "Model: argument 'network' got int; it takes a Cell"),
        (lambda n, o: Model(n, 3, o), TypeError, "'loss_fn' got int"),
        (lambda n, o: Model(n, n, 3), TypeError, "'optimizer' got int"),
        (lambda n, o: Model(n, n, o, eval_network=3), TypeError, "'eval_network' got int"),
        (lambda n, o: Model(n, n, o, amp_level="O4"), ValueError, "'amp_level' got 'O4'; it takes 'O0', 'O1'"),
        (lambda n, o: Model(n, n, o, boost_level="O4"), ValueError, "'boost_level' got 'O4'"),
        (lambda n, o: Model(n, n, amp_level="O2"), ValueError, "'optimizer' got None; it takes an optimizer, as"),
        (lambda n, o: Model(n, n, o, lr=1), ValueError, "'lr' got a value; it takes one of 'loss_scale"),
        (lambda n, o: Model(n, n, o, loss_scale_manager=3), TypeError, "'loss_scale_manager' got int"),
        (lambda n, o: Model(n, n, o, metrics=["acc"], eval_network=n, eval_indexes=[0]), ValueError, "'eval_indexes'"),
        (lambda n, o: Model(n, None, o, metrics=["acc"]), ValueError, "'metrics' got metrics without loss_fn"),
        (lambda n, o: Model(n, n, o, metrics=["nonsense"]), ValueError, "nonsense"),
        (lambda n, o: Model(n, n, o, metrics=3), TypeError, "'metrics' got int"),
    ],
)  # fmt: skip
def test_wrong_models_are_refused(make: Any, kind: type[Exception], message: str) -> None:
    net = network()
    with pytest.raises(kind, match=message):
        make(net, nn.SGD(net.trainable_params()))


def test_build_checks_and_layouts_are_refused() -> None:
    m = model()
    m.build(rows())
    with pytest.raises(ValueError, match=r"Model.build: argument 'train_dataset' got None"):
        m.build()
    with pytest.raises(ValueError, match=r"Model.build: argument 'metrics' got none"):
        m.build(valid_dataset=rows())
    with pytest.raises(RuntimeError, match="semi_auto_parallel"):
        m.infer_train_layout(rows())
    with pytest.raises(RuntimeError, match="semi_auto_parallel"):
        m.infer_predict_layout(ms.Tensor(X))
