"""Model: training, evaluation and prediction around a network, without a written loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mycelia.core import tree
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError
from mycelia.nn.cell import Cell
from mycelia.nn.wrap import TrainOneStepCell, WithEvalCell, WithLossCell
from mycelia.tensor import Tensor
from mycelia.train.amp import build_train_network
from mycelia.train.callback.base import RunContext, RunState, as_callbacks
from mycelia.train.metrics import Loss, get_metrics


class Model:
    """A network with its loss, optimizer and metrics.

    Args:
        network: the network.
        loss_fn: called with the network's output and the label; without it the network returns the loss.
        optimizer: updates the network's parameters; needed to train.
        metrics: names, a dict of name to :class:`Metric`, or a set or list of names, for ``eval``.
        eval_network: what ``eval`` runs; by default the network with ``loss_fn``.
        eval_indexes: positions of loss, prediction and label in ``eval_network``'s output.
        amp_level: ``"O0"`` (float32) to ``"O3"``, or ``"auto"`` (see ``amp``).
        boost_level: ``"O0"``; kept for compatibility.

    Raises:
        ArgumentTypeError: an argument of the wrong type.

    >>> import numpy as np, mycelia as ms
    >>> data = ms.dataset.NumpySlicesDataset((np.ones((8, 2), "float32"), np.zeros((8, 1), "float32"))).batch(4)
    >>> net = ms.nn.Dense(2, 1)
    >>> model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.1), metrics={"loss"})
    >>> model.train(20, data)
    >>> model.eval(data)["loss"] < 1e-3
    True
    """

    def __init__(
        self, network: Cell, loss_fn: Any = None, optimizer: Any = None, metrics: Any = None, eval_network: Any = None,
        eval_indexes: list[int] | None = None, amp_level: str = "O0", boost_level: str = "O0", **kwargs: Any,
    ) -> None:  # fmt: skip
        if not isinstance(network, Cell):
            raise ArgumentTypeError("Model", "network", got=type(network).__name__, takes="a Cell")
        for name, value in (("loss_fn", loss_fn), ("optimizer", optimizer), ("eval_network", eval_network)):
            if value is not None and not callable(value):
                raise ArgumentTypeError("Model", name, got=type(value).__name__, takes="a Cell or None")
        if amp_level not in ("O0", "O1", "O2", "O3", "auto"):
            raise ArgumentValueError("Model", "amp_level", got=repr(amp_level), takes='"O0" to "O3" or "auto"')
        if boost_level not in ("O0", "O1", "O2"):
            raise ArgumentValueError("Model", "boost_level", got=repr(boost_level), takes='"O0", "O1" or "O2"')
        self._amp_options = {k: kwargs.pop(k) for k in ("keep_batchnorm_fp32", "loss_scale_manager") if k in kwargs}
        kwargs.pop("boost_config_dict", None)
        if kwargs:
            raise ArgumentValueError("Model", next(iter(kwargs)), message=f"there is no argument '{next(iter(kwargs))}'")
        self._network, self._loss_fn, self._optimizer = network, loss_fn, optimizer
        self._amp_level = amp_level
        self._metric_fns = get_metrics(metrics) if metrics is not None else {}
        self._eval_indexes = eval_indexes
        self._given_eval_network = eval_network
        self._train_network: Cell | None = None
        self._eval_network: Cell | None = None
        self._check_indexes()

    def _check_indexes(self) -> None:
        indexes = self._eval_indexes
        if self._given_eval_network is not None and self._metric_fns and indexes is None:
            raise ArgumentValueError("Model", "eval_indexes", got="None", takes="a list when eval_network and metrics are given")
        if indexes is not None and (not isinstance(indexes, list) or len(indexes) not in (2, 3)):
            raise ArgumentValueError("Model", "eval_indexes", got=repr(indexes), takes="a list of 2 or 3 ints")

    # networks --------------------------------------------------------------------------------------------

    @property
    def train_network(self) -> Cell:
        """The Cell that does one training step, built at the first use."""
        if self._train_network is None:
            if self._optimizer is None:
                network = self._network if self._loss_fn is None else WithLossCell(self._network, self._loss_fn)
                self._train_network = network  # a network that updates itself
            elif self._amp_level != "O0" or self._amp_options:
                self._train_network = build_train_network(
                    self._network, self._optimizer, self._loss_fn, level=self._amp_level, **self._amp_options
                )
            else:
                network = self._network if self._loss_fn is None else WithLossCell(self._network, self._loss_fn)
                self._train_network = TrainOneStepCell(network, self._optimizer)
        return self._train_network

    @property
    def eval_network(self) -> Cell:
        """The Cell that evaluates one batch."""
        if self._eval_network is None:
            if self._given_eval_network is not None:
                self._eval_network = self._given_eval_network
            elif self._loss_fn is None:
                raise StateError(
                    "Model.eval", message="there is no 'loss_fn' and no 'eval_network'",
                    hint="give Model a loss_fn, or an eval_network with eval_indexes",
                )  # fmt: skip
            else:
                mixed = self._amp_level in ("O2", "O3", "auto")
                self._eval_network = WithEvalCell(self._network, self._loss_fn, add_cast_fp32=mixed)
                self._eval_indexes = [0, 1, 2]
        return self._eval_network

    @property
    def predict_network(self) -> Cell:
        """The network that predicts."""
        return self._network

    # training --------------------------------------------------------------------------------------------

    def train(
        self, epoch: int | None = None, train_dataset: Any = None, callbacks: Any = None,
        dataset_sink_mode: bool = False, sink_size: int = -1, initial_epoch: int = 0, *, epochs: int | None = None,
    ) -> None:  # fmt: skip
        """Train for some epochs.

        Args:
            epoch: number of passes over the data (``epochs`` is the same).
            train_dataset: a dataset, or any iterable of tuples of arrays or Tensors.
            callbacks: a Callback or a list of them.
            dataset_sink_mode: report to callbacks once per ``sink_size`` steps rather than per step.
            sink_size: steps of a sink; -1 for a whole epoch.
            initial_epoch: number of the epoch to start from, when resuming.

        Raises:
            ArgumentTypeError: an argument of the wrong type.
            ArgumentValueError: the data set is empty, or a row does not fit the network.
        """
        count = self._epochs("Model.train", epoch, epochs, initial_epoch)
        self._fit("Model.train", count, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch, None, 1)

    def fit(
        self, epoch: int | None = None, train_dataset: Any = None, valid_dataset: Any = None, valid_frequency: Any = 1,
        callbacks: Any = None, dataset_sink_mode: bool = False, valid_dataset_sink_mode: bool = False,
        sink_size: int = -1, initial_epoch: int = 0, *, epochs: int | None = None,
    ) -> None:  # fmt: skip
        """Train, evaluating on ``valid_dataset`` between epochs.

        Args:
            epoch: number of passes over the training data (``epochs`` is the same).
            train_dataset: see :meth:`train`.
            valid_dataset: data for ``eval``; needs ``metrics``.
            valid_frequency: evaluate every so many epochs, or after the epochs in a list.
            callbacks: a Callback or a list of them; they see ``eval_results``.
            dataset_sink_mode: see :meth:`train`.
            valid_dataset_sink_mode: the same for the evaluation.
            sink_size: see :meth:`train`.
            initial_epoch: see :meth:`train`.
        """
        count = self._epochs("Model.fit", epoch, epochs, initial_epoch)
        if valid_dataset is not None and not self._metric_fns:
            raise ArgumentValueError("Model.fit", "metrics", got="none", takes="metrics given to Model, to evaluate with")
        if not isinstance(valid_frequency, (int, list)) or (isinstance(valid_frequency, int) and valid_frequency < 1):
            raise ArgumentValueError("Model.fit", "valid_frequency", got=repr(valid_frequency), takes="an int above 0 or a list")
        self._fit(
            "Model.fit", count, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch, valid_dataset,
            valid_frequency,
        )  # fmt: skip

    @staticmethod
    def _epochs(where: str, epoch: Any, epochs: Any, initial_epoch: Any) -> int:
        count = epoch if epochs is None else epochs
        if epoch is not None and epochs is not None:
            raise ArgumentValueError(where, "epochs", got="a value beside 'epoch'", takes="one of the two")
        if isinstance(count, bool) or not isinstance(count, int):
            raise ArgumentTypeError(where, "epoch", got=f"{count!r}", takes="an int")
        if count < 1:
            raise ArgumentValueError(where, "epoch", got=str(count), takes="at least 1")
        if isinstance(initial_epoch, bool) or not isinstance(initial_epoch, int) or not 0 <= initial_epoch < count:
            raise ArgumentValueError(where, "initial_epoch", got=repr(initial_epoch), takes=f"an int from 0 to {count - 1}")
        return count

    def _fit(
        self, where: str, epochs: int, dataset: Any, callbacks: Any, sink: bool, sink_size: int, initial_epoch: int,
        valid_dataset: Any, valid_frequency: Any,
    ) -> None:  # fmt: skip
        _check_dataset(where, "train_dataset", dataset)
        if not isinstance(sink, bool):
            raise ArgumentTypeError(where, "dataset_sink_mode", got=repr(sink), takes="True or False")
        if isinstance(sink_size, bool) or not isinstance(sink_size, int) or sink_size == 0 or sink_size < -1:
            raise ArgumentValueError(where, "sink_size", got=repr(sink_size), takes="-1 or an int above 0")
        listeners = as_callbacks(where, callbacks)
        step = self.train_network
        step.set_train(True)
        size = _size(dataset)
        state = RunState(
            train_network=step, network=self._network, loss_fn=self._loss_fn, optimizer=self._optimizer,
            train_dataset=dataset, valid_dataset=valid_dataset, epoch_num=epochs, batch_num=size, mode="train",
            list_callback=listeners, parallel_mode="stand_alone", device_number=1, dataset_sink_mode=sink,
            metrics=self._metric_fns, cur_step_num=(size or 0) * initial_epoch, cur_epoch_num=initial_epoch + 1,
            last_save_ckpt_step=None, latest_ckpt_file="", net_outputs=None, eval_results={}, mode_fit=valid_dataset is not None,
        )  # fmt: skip
        context = RunContext(state)
        per_report = 1 if not sink else sink_size if sink_size > 0 else size or 1
        with listeners:
            listeners.call("on_train_begin", context)
            for epoch in range(initial_epoch, epochs):
                state.cur_epoch_num = epoch + 1
                listeners.call("on_train_epoch_begin", context)
                self._epoch(where, step, dataset, state, context, listeners, per_report)
                if valid_dataset is not None and _due(epoch + 1, valid_frequency):
                    self._evaluate_between(valid_dataset, state, listeners, step)
                listeners.call("on_train_epoch_end", context)
                if context.get_stop_requested():
                    break
            listeners.call("on_train_end", context)

    def _epoch(
        self, where: str, step: Cell, dataset: Any, state: RunState, context: RunContext, listeners: Any, per_report: int
    ) -> None:
        done = 0
        reported = 0
        for row in _rows(dataset):
            if done == reported:
                listeners.call("on_train_step_begin", context)
            state.train_dataset_element = row
            state.net_outputs = step(*row)
            done += 1
            state.cur_step_num += 1
            if done - reported == per_report:
                reported = done
                listeners.call("on_train_step_end", context)
                if context.get_stop_requested():
                    break
        if done != reported:
            listeners.call("on_train_step_end", context)
        if done == 0:
            raise ArgumentValueError(
                where, "train_dataset", got="a data set without rows", takes="at least one batch",
                hint="does drop_remainder drop the only batch?",
            )  # fmt: skip
        if state.batch_num is None:
            state.batch_num = done

    def _evaluate_between(self, valid_dataset: Any, state: RunState, listeners: Any, step: Cell) -> None:
        results = self.eval(valid_dataset, callbacks=[c for c in listeners.callbacks if type(c).__name__ == "TimeMonitor"])
        state.eval_results = {("eval_loss" if k == "loss" else k): v for k, v in results.items()}
        state.metrics = results
        step.set_train(True)

    # evaluation and prediction ---------------------------------------------------------------------------

    def eval(self, valid_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False) -> dict[str, Any]:
        """The metrics over a data set.

        Args:
            valid_dataset: a dataset, or any iterable of tuples of arrays or Tensors.
            callbacks: a Callback or a list of them.
            dataset_sink_mode: kept for compatibility.

        Returns:
            Metric values by name.

        Raises:
            ArgumentValueError: the Model has no metrics, or the data set no rows.
        """
        _check_dataset("Model.eval", "valid_dataset", valid_dataset)
        if not self._metric_fns:
            raise ArgumentValueError("Model.eval", "metrics", got="none", takes="metrics given to Model")
        listeners = as_callbacks("Model.eval", callbacks)
        network = self.eval_network
        network.set_train(False)
        for metric in self._metric_fns.values():
            metric.clear()
        state = RunState(
            eval_network=network, network=self._network, valid_dataset=valid_dataset, batch_num=_size(valid_dataset),
            mode="eval", list_callback=listeners, parallel_mode="stand_alone", device_number=1, cur_step_num=0,
            cur_epoch_num=1, epoch_num=1, dataset_sink_mode=dataset_sink_mode, metrics={}, net_outputs=None,
        )  # fmt: skip
        context = RunContext(state)
        rows = 0
        with listeners:
            listeners.call("on_eval_begin", context)
            listeners.call("on_eval_epoch_begin", context)
            for row in _rows(valid_dataset):
                rows += 1
                state.cur_step_num += 1
                listeners.call("on_eval_step_begin", context)
                outputs = network(*row)
                state.net_outputs = outputs
                self._update_metrics(outputs)
                listeners.call("on_eval_step_end", context)
                if context.get_stop_requested():
                    break
            if rows == 0:
                raise ArgumentValueError("Model.eval", "valid_dataset", got="a data set without rows", takes="at least one batch")
            listeners.call("on_eval_epoch_end", context)
            results = {name: metric.eval() for name, metric in self._metric_fns.items()}
            state.metrics = results
            state.eval_results = results
            listeners.call("on_eval_end", context)
        return results

    def _update_metrics(self, outputs: Any) -> None:
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        indexes = self._eval_indexes
        for metric in self._metric_fns.values():
            chosen = getattr(metric, "indexes", None)
            if chosen:
                metric.update(*[outputs[i] for i in chosen])
            elif indexes is None:
                metric.update(*outputs)
            elif isinstance(metric, Loss):
                metric.update(outputs[indexes[0]])
            else:
                metric.update(outputs[indexes[-2]], outputs[indexes[-1]])

    def predict(self, *predict_data: Any, backend: Any = None, config: Any = None) -> Any:
        """The network's output for inputs, in inference mode.

        Args:
            predict_data: Tensors or arrays, one for each input of the network.
            backend: None; other back-ends belong to the edge runtime.
            config: options of the back-end.

        >>> import mycelia as ms
        >>> ms.Model(ms.nn.Dense(3, 2)).predict(ms.ops.ones((4, 3))).shape
        (4, 2)
        """
        self._network.set_train(False)
        return self._network(*tree.map_leaves(_as_tensor, predict_data))

    def build(
        self, train_dataset: Any = None, valid_dataset: Any = None, sink_size: int = -1, epoch: int = 1,
        sink_mode: bool = True,
    ) -> None:  # fmt: skip
        """Make the networks of training and evaluation; compilation happens at their first batch."""
        if train_dataset is not None:
            self.train_network.set_train(True)
        if valid_dataset is not None:
            self.eval_network.set_train(False)


def _as_tensor(x: Any) -> Any:
    return x if isinstance(x, (Tensor, str, bool, int, float, type(None))) else Tensor(x)


def _check_dataset(where: str, argument: str, dataset: Any) -> None:
    if dataset is None or isinstance(dataset, (str, bytes, Tensor)) or not (
        hasattr(dataset, "create_tuple_iterator") or isinstance(dataset, Iterable)
    ):
        raise ArgumentTypeError(where, argument, got=type(dataset).__name__, takes="a dataset")


def _size(dataset: Any) -> int | None:
    size = getattr(dataset, "get_dataset_size", None)
    if size is not None:
        return int(size())
    return len(dataset) if hasattr(dataset, "__len__") else None


def _rows(dataset: Any) -> Iterator[tuple[Any, ...]]:
    maker = getattr(dataset, "create_tuple_iterator", None)
    rows = maker(num_epochs=1) if maker is not None else iter(dataset)
    for row in rows:
        items = tuple(row) if isinstance(row, (tuple, list)) else tuple(row.values()) if isinstance(row, dict) else (row,)
        yield tuple(_as_tensor(x) for x in items)


def _due(epoch: int, frequency: int | list[int]) -> bool:
    return epoch in frequency if isinstance(frequency, list) else epoch % frequency == 0

