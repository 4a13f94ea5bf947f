"""Model: training, evaluation and prediction around a network, without a written loop."""

from __future__ import annotations

from typing import Any

from mycelia.core import tree
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, MyceliaError, StateError
from mycelia.core.ranges import DATA_WAIT, STEP, record, waited
from mycelia.nn.cell import Cell
from mycelia.nn.wrap.loss_scale import TrainOneStepWithLossScaleCell
from mycelia.nn.wrap.train_step import WithEvalCell, WithLossCell
from mycelia.tensor import Tensor
from mycelia.tensor.tensor import check_bool
from mycelia.train.amp import LEVELS, build_train_network
from mycelia.train.callback.base import Callback, CallbackList, RunContext, RunState, as_callbacks
from mycelia.train.callback.monitors import LambdaCallback, TimeMonitor
from mycelia.train.metrics import Loss, get_metrics
from mycelia.train.rows import Row, Rows, check_dataset, size_of

_OLD_HOOKS = ("begin", "end", "epoch_begin", "epoch_end", "step_begin", "step_end")


class Model:
    """A network with its loss, optimizer and metrics.

    Args:
        network: the network.
        loss_fn: called with the network's output and the label; without it the network returns the loss.
        optimizer: updates the network's parameters; without it the network trains itself when called.
        metrics: a dict of name to :class:`Metric`, or a set or list of names, for ``eval``.
        eval_network: what ``eval`` runs; by default the network with ``loss_fn``.
        eval_indexes: positions of loss, prediction and label in ``eval_network``'s output; without it metrics
            are given the whole output.
        amp_level: ``"O0"`` (float32) to ``"O3"``, or ``"auto"`` (see ``amp``).
        boost_level: kept for compatibility.
        loss_scale_manager: how the loss is scaled; None for not at all.
        keep_batchnorm_fp32: whether normalisation stays float32, in place of what the level says.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: an unknown level or keyword, or arguments that do not go together.

    >>> import numpy as np, mycelia as ms
    >>> data = [(np.ones((4, 2), "float32"), np.zeros((4, 1), "float32"))] * 2
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
        if amp_level not in LEVELS:
            raise ArgumentValueError("Model", "amp_level", got=repr(amp_level), takes=", ".join(map(repr, LEVELS)))
        known = ("loss_scale_manager", "keep_batchnorm_fp32", "boost_config_dict", "acc_level")
        wrong = [k for k in kwargs if k not in known]
        if wrong:
            raise ArgumentValueError("Model", wrong[0], got="a value", takes="one of " + ", ".join(map(repr, known)))
        if optimizer is None and (amp_level != "O0" or kwargs.get("loss_scale_manager") is not None):
            raise ArgumentValueError(
                "Model", "optimizer", got="None", takes="an optimizer with amp_level or loss_scale_manager"
            )
        self._network, self._loss_fn, self._optimizer = network, loss_fn, optimizer
        self._amp_level, self._boost_level = amp_level, boost_level
        self._loss_scale_manager = kwargs.get("loss_scale_manager")
        self._metric_fns = get_metrics(metrics)
        self._train_network = self._build_train_network(kwargs)
        self._eval_network, self._eval_indexes = self._build_eval_network(eval_network, eval_indexes)

    def _build_train_network(self, kwargs: dict[str, Any]) -> Cell:
        if self._optimizer is None:
            return self._network if self._loss_fn is None else WithLossCell(self._network, self._loss_fn)
        options = {k: kwargs[k] for k in ("loss_scale_manager", "keep_batchnorm_fp32") if k in kwargs}
        return build_train_network(
            self._network, self._optimizer, self._loss_fn, self._amp_level, self._boost_level, **options
        )

    def _build_eval_network(self, given: Any, indexes: Any) -> tuple[Any, list[int] | None]:
        if not self._metric_fns:
            return given, indexes
        if given is not None:
            if indexes is not None and (not isinstance(indexes, list) or len(indexes) != 3):
                raise ArgumentValueError(
                    "Model", "eval_indexes", got=repr(indexes), takes="None or a list of three ints"
                )
            return given, indexes
        if self._loss_fn is None:
            raise ArgumentValueError(
                "Model", "metrics", got="metrics without loss_fn and eval_network",
                takes="one of the two to evaluate with",
                hint="give Model a loss_fn, or an eval_network that returns what the metrics take",
            )  # fmt: skip
        mixed = self._amp_level in ("O2", "O3", "auto")
        return WithEvalCell(self._network, self._loss_fn, add_cast_fp32=mixed), [0, 1, 2]

    @property
    def train_network(self) -> Cell:
        """The Cell that does one training step."""
        return self._train_network

    @property
    def eval_network(self) -> Any:
        """The Cell that evaluates one batch; None without metrics."""
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
        """Train up to an epoch.

        Args:
            epoch: number of the last epoch; an epoch is a pass over the data, or ``sink_size`` steps.
            train_dataset: a dataset, or any iterable of tuples or dicts of arrays or Tensors. Columns may be
                tuples of arrays. With a ``loss_fn`` there are two: data and label.
            callbacks: a Callback or a list of them.
            dataset_sink_mode: tell callbacks once per epoch of its steps rather than of each.
            sink_size: in sink mode, the steps of an epoch; -1 for a pass over the data.
            initial_epoch: epochs done before, when resuming.
            epochs: another name for ``epoch``.

        Raises:
            ArgumentTypeError: an argument of the wrong type.
            ArgumentValueError: an argument out of range, an empty data set, or rows that do not fit the
                network in number.
        """
        count = _one_of("Model.train", epoch, epochs)
        self._fit("Model.train", count, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch)

    def fit(
        self, epoch: int | None = None, train_dataset: Any = None, valid_dataset: Any = None,
        valid_frequency: int | list[int] = 1, callbacks: Any = None, dataset_sink_mode: bool = False,
        valid_dataset_sink_mode: bool = False, sink_size: int = -1, initial_epoch: int = 0, *,
        epochs: int | None = None,
    ) -> None:  # fmt: skip
        """Train, evaluating on ``valid_dataset`` between epochs.

        Args:
            epoch: see :meth:`train`.
            train_dataset: see :meth:`train`.
            valid_dataset: data for ``eval``; needs ``metrics``.
            valid_frequency: evaluate every so many epochs, or after the epochs in a list.
            callbacks: a Callback or a list of them; at the end of an epoch they see ``metrics``, and
                ``eval_results``, which has ``eval_loss`` besides.
            dataset_sink_mode: see :meth:`train`.
            valid_dataset_sink_mode: kept for compatibility.
            sink_size: see :meth:`train`.
            initial_epoch: see :meth:`train`.
            epochs: another name for ``epoch``.

        Raises:
            ArgumentTypeError: an argument of the wrong type.
            ArgumentValueError: an argument out of range, no metrics to evaluate, or a callback of one's own with
                the hooks ``begin``, ``epoch_end``, ... that do not tell training from evaluation.
        """
        where = "Model.fit"
        check_bool(where, "valid_dataset_sink_mode", valid_dataset_sink_mode)
        if isinstance(valid_frequency, bool) or not isinstance(valid_frequency, (int, list)):
            raise ArgumentTypeError(
                where, "valid_frequency", got=repr(valid_frequency), takes="an int or a list of epochs"
            )
        if isinstance(valid_frequency, int) and valid_frequency < 1:
            raise ArgumentValueError(where, "valid_frequency", got=str(valid_frequency), takes="an int above 0")
        if valid_dataset is not None:
            if not self._metric_fns:
                raise ArgumentValueError(
                    where, "valid_dataset", got="data without metrics", takes="metrics given to Model"
                )
            check_dataset(where, "valid_dataset", valid_dataset)
        for callback in as_callbacks(where, callbacks):
            _refuse_old_hooks(where, callback)
        self._fit(
            where, _one_of(where, epoch, epochs), train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch,
            valid_dataset, valid_frequency,
        )  # fmt: skip

    def _fit(
        self, where: str, epochs: int, dataset: Any, callbacks: Any, sink: bool, sink_size: int, initial_epoch: int,
        valid_dataset: Any = None, valid_frequency: Any = 1,
    ) -> None:  # fmt: skip
        _check_counts(where, epochs, sink, sink_size, initial_epoch)
        check_dataset(where, "train_dataset", dataset)
        listeners = as_callbacks(where, callbacks)
        size = size_of(dataset)
        limit = sink_size if sink and sink_size > 0 else None  # steps of an epoch that is no pass over the data
        step = self._train_network
        state = RunState(
            train_network=step, network=self._network, loss_fn=self._loss_fn, optimizer=self._optimizer,
            train_dataset=dataset, train_dataset_element=None, valid_dataset=valid_dataset,
            epoch_num=epochs - initial_epoch, batch_num=limit or size, cur_step_num=0, mode="train",
            list_callback=listeners.callbacks, parallel_mode="stand_alone", device_number=1, dataset_sink_mode=sink,
            sink_size=limit or size, last_save_ckpt_step=None, latest_ckpt_file=None,
            loss_scale_mananger=self._loss_scale_manager,
        )  # fmt: skip
        context = RunContext(state)
        with Rows(where, "train_dataset", dataset, None if limit else epochs - initial_epoch) as rows, listeners:
            step.set_train(True)
            listeners.call("on_train_begin", context)
            stream = rows.endless() if limit else None
            for epoch in range(initial_epoch, epochs):
                state.cur_epoch_num = epoch + 1
                listeners.call("on_train_epoch_begin", context)
                taken = _first(stream, limit) if stream is not None and limit else rows.one_pass()
                if sink:
                    self._sunk_epoch(rows, taken, context, listeners)
                else:
                    self._epoch(rows, taken, context, listeners)
                self._follow_scale()
                if valid_dataset is not None and _due(epoch + 1, valid_frequency):
                    self._evaluate_between(valid_dataset, context, listeners)
                listeners.call("on_train_epoch_end", context)
                for key in ("metrics", "eval_results"):
                    state.pop(key, None)
                if context.get_stop_requested():
                    break
            listeners.call("on_train_end", context)

    def _epoch(self, rows: Rows, taken: Any, context: RunContext, listeners: CallbackList) -> None:
        state, done = context.original_args(), 0
        for row in waited(DATA_WAIT, taken):
            done += 1
            state.cur_step_num += 1
            state.train_dataset_element = row
            listeners.call("on_train_step_begin", context)
            with record(STEP):
                state.net_outputs = self._step(rows, row)
            listeners.call("on_train_step_end", context)
            if context.get_stop_requested():
                return
        state.batch_num = done  # the size is known now, if it was not

    def _sunk_epoch(self, rows: Rows, taken: Any, context: RunContext, listeners: CallbackList) -> None:
        """An epoch of which callbacks are told as of one step."""
        state, done = context.original_args(), 0
        for row in waited(DATA_WAIT, taken):
            if not done:
                state.train_dataset_element = row
                listeners.call("on_train_step_begin", context)
            done += 1
            state.cur_step_num += 1
            with record(STEP):
                state.net_outputs = self._step(rows, row)
        state.batch_num = done
        listeners.call("on_train_step_end", context)

    def _step(self, rows: Rows, row: Row) -> Any:
        rows.check_count(row, self._network, self._loss_fn)
        step = self._train_network
        if not self._network.training:  # a callback may have evaluated or predicted
            step.set_train(True)
        try:
            outputs = step(*row)
        except MyceliaError as error:
            rows.explain(error, row)
            raise
        manager = self._loss_scale_manager
        if manager is not None and not hasattr(manager, "follow") and manager.get_drop_overflow_update():
            manager.update_loss_scale(bool(outputs[1].asnumpy()))
        return outputs

    def _follow_scale(self) -> None:
        follow = getattr(self._loss_scale_manager, "follow", None)
        if follow is not None and isinstance(self._train_network, TrainOneStepWithLossScaleCell):
            follow(self._train_network)

    def _evaluate_between(self, valid_dataset: Any, context: RunContext, listeners: CallbackList) -> None:
        """Evaluate during the training; callbacks of one's own are told of it, LambdaCallback and TimeMonitor too."""
        state = context.original_args()
        training = {k: state.get(k) for k in ("cur_step_num", "batch_num", "dataset_sink_mode", "net_outputs")}
        told = [
            c
            for c in listeners
            if isinstance(c, (LambdaCallback, TimeMonitor)) or not type(c).__module__.startswith("mycelia.")
        ]
        state.update(eval_network=self._eval_network, batch_num=size_of(valid_dataset), mode="eval", cur_step_num=0)
        self._evaluate("Model.fit", valid_dataset, RunContext(state), CallbackList(told), with_loss=True)
        state.update(training, mode="train")
        self._train_network.set_train(True)

    # evaluation ------------------------------------------------------------------------------------------

    def eval(self, valid_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False) -> dict[str, Any]:
        """The metrics over a data set.

        Args:
            valid_dataset: a dataset, or any iterable of tuples or dicts of arrays or Tensors.
            callbacks: a Callback or a list of them.
            dataset_sink_mode: kept for compatibility.

        Returns:
            Metric values by name.

        Raises:
            ArgumentTypeError: an argument of the wrong type.
            ArgumentValueError: the Model has no metrics, or the data set no rows.
        """
        where = "Model.eval"
        check_bool(where, "dataset_sink_mode", dataset_sink_mode)
        if not self._metric_fns:
            raise ArgumentValueError(where, "metrics", got="none", takes="metrics given to Model")
        check_dataset(where, "valid_dataset", valid_dataset)
        listeners = as_callbacks(where, callbacks)
        state = RunState(
            eval_network=self._eval_network, network=self._network, valid_dataset=valid_dataset, mode="eval",
            batch_num=size_of(valid_dataset), list_callback=listeners.callbacks, cur_step_num=0,
            dataset_sink_mode=dataset_sink_mode, parallel_mode="stand_alone", device_number=1,
        )  # fmt: skip
        with listeners:
            return self._evaluate(where, valid_dataset, RunContext(state), listeners)

    def _evaluate(
        self, where: str, dataset: Any, context: RunContext, listeners: CallbackList, with_loss: bool = False
    ) -> dict[str, Any]:
        state, network = context.original_args(), self._eval_network
        mean_loss = Loss()
        for metric in self._metric_fns.values():
            metric.clear()
        network.set_train(False)
        listeners.call("on_eval_begin", context)
        listeners.call("on_eval_epoch_begin", context)
        with Rows(where, "valid_dataset", dataset) as rows:
            for row in rows.one_pass():
                state.cur_step_num += 1
                state.eval_dataset_element = row
                listeners.call("on_eval_step_begin", context)
                state.net_outputs = outputs = self._evaluated(rows, row)
                listeners.call("on_eval_step_end", context)
                self._update_metrics(where, outputs)
                if with_loss and self._eval_indexes is not None:
                    mean_loss.update(outputs[self._eval_indexes[0]])
                if context.get_stop_requested():
                    break
        listeners.call("on_eval_epoch_end", context)
        state.metrics = {name: metric.eval() for name, metric in self._metric_fns.items()}
        if with_loss:
            state.eval_results = dict(state.metrics)
            if self._eval_indexes is not None:
                state.eval_results["eval_loss"] = mean_loss.eval()
        listeners.call("on_eval_end", context)
        return dict(state.metrics)

    def _evaluated(self, rows: Rows, row: Row) -> Any:
        own = isinstance(self._eval_network, WithEvalCell)
        rows.check_count(row, self._network if own else self._eval_network, self._loss_fn if own else None)
        try:
            return self._eval_network(*row)
        except MyceliaError as error:
            rows.explain(error, row)
            raise

    def _update_metrics(self, where: str, outputs: Any) -> None:
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        if not isinstance(outputs, (tuple, list)):
            raise ArgumentValueError(
                where, "eval_network", got=f"an output of type {type(outputs).__name__}", takes="Tensors"
            )
        indexes = self._eval_indexes
        if indexes is not None and max(indexes) >= len(outputs):
            raise ArgumentValueError(
                where,
                "eval_indexes",
                got=str(indexes),
                takes=f"positions of the {len(outputs)} outputs of eval_network",
            )
        for metric in self._metric_fns.values():
            if indexes is None:
                metric.update(*outputs)
            elif isinstance(metric, Loss):
                metric.update(outputs[indexes[0]])
            else:
                metric.update(outputs[indexes[1]], outputs[indexes[2]])

    # prediction ------------------------------------------------------------------------------------------

    def predict(self, *predict_data: Any, backend: str | None = None, config: Any = None) -> Any:
        """The network's output for inputs, in inference mode.

        Args:
            predict_data: Tensors, arrays, numbers, strings or None, or nests of them, one for each input.
            backend: None or ``"lite"``; the network runs here in both cases.
            config: options of the back-end; not needed.

        Raises:
            ArgumentTypeError: an input of another type.
            ArgumentValueError: an empty Tensor, or an unknown back-end.

        >>> import mycelia as ms
        >>> ms.Model(ms.nn.Dense(3, 2)).predict(ms.ops.ones((4, 3))).shape
        (4, 2)
        """
        where = "Model.predict"
        if backend not in (None, "lite"):
            raise ArgumentValueError(where, "backend", got=repr(backend), takes="None or 'lite'")
        inputs = [_input(where, i, x) for i, x in enumerate(predict_data)]
        self._network.set_train(False)
        return self._network(*inputs)

    # ahead of time ---------------------------------------------------------------------------------------

    def build(
        self, train_dataset: Any = None, valid_dataset: Any = None, sink_size: int = -1, epoch: int = 1,
        sink_mode: bool = True,
    ) -> None:  # fmt: skip
        """Check data sets ahead of time; networks are compiled at their first batch.

        Args:
            train_dataset: what will be trained on.
            valid_dataset: what will be evaluated on; needs ``metrics``.
            sink_size: as in :meth:`train`.
            epoch: as in :meth:`train`.
            sink_mode: as in :meth:`train`.

        Raises:
            ArgumentValueError: both data sets are None, one is empty, or there are no metrics.
        """
        where = "Model.build"
        _check_counts(where, epoch, sink_mode, sink_size, 0)
        if train_dataset is None and valid_dataset is None:
            raise ArgumentValueError(where, "train_dataset", got="None, as valid_dataset", takes="one of the two")
        if train_dataset is not None:
            check_dataset(where, "train_dataset", train_dataset)
        if valid_dataset is not None:
            if not self._metric_fns:
                raise ArgumentValueError(where, "metrics", got="none", takes="metrics given to Model")
            check_dataset(where, "valid_dataset", valid_dataset)

    def infer_train_layout(self, train_dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1) -> Any:
        """Layouts of the parameters in a parallel training.

        Raises:
            StateError: the training is not parallel.
        """
        raise _not_parallel("Model.infer_train_layout")

    def infer_predict_layout(self, *predict_data: Any, skip_backend_compile: bool = False) -> Any:
        """Layouts of the parameters in a parallel prediction.

        Raises:
            StateError: the prediction is not parallel.
        """
        raise _not_parallel("Model.infer_predict_layout")


def _not_parallel(where: str) -> StateError:
    return StateError(where, message="there are layouts in the modes semi_auto_parallel and auto_parallel only")


def _check_counts(where: str, epoch: Any, sink: Any, sink_size: Any, initial_epoch: Any) -> None:
    check_bool(where, "dataset_sink_mode", sink)
    for name, value in (("epoch", epoch), ("sink_size", sink_size), ("initial_epoch", initial_epoch)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArgumentTypeError(where, name, got=f"{value!r} ({type(value).__name__})", takes="an int")
    if epoch < 1:
        raise ArgumentValueError(where, "epoch", got=str(epoch), takes="an int above 0")
    if sink_size < -1 or sink_size == 0:
        raise ArgumentValueError(where, "sink_size", got=str(sink_size), takes="-1 or an int above 0")
    if not 0 <= initial_epoch < epoch:
        raise ArgumentValueError(where, "initial_epoch", got=str(initial_epoch), takes=f"an int from 0 to {epoch - 1}")


def _is_ours(callback: Callback) -> bool:
    return type(callback).__module__.startswith("mycelia.")


def _refuse_old_hooks(where: str, callback: Callback) -> None:
    if _is_ours(callback):
        return
    old = [name for name in _OLD_HOOKS if name in type(callback).__dict__]
    if old:
        raise ArgumentValueError(
            where, "callbacks", got=f"{type(callback).__name__} with the hook '{old[0]}'",
            takes=f"callbacks that tell training from evaluation: 'on_train_{old[0]}', 'on_eval_{old[0]}'",
        )  # fmt: skip


def _first(stream: Any, count: int) -> Any:
    for _ in range(count):
        yield next(stream)


def _due(epoch: int, frequency: int | list[int]) -> bool:
    return epoch in frequency if isinstance(frequency, list) else epoch % frequency == 0


def _input(where: str, index: int, value: Any) -> Any:
    def one(x: Any) -> Any:
        if x is None or isinstance(x, (str, int, float)):
            return x
        t = x if isinstance(x, Tensor) else None
        if t is None and hasattr(x, "__array__"):
            t = Tensor(x)
        if t is None:
            raise ArgumentTypeError(
                where, f"input {index}", got=type(x).__name__, takes="Tensors, arrays, numbers, strings or None"
            )
        if not t.size:
            raise ArgumentValueError(
                where, f"input {index}", got=f"an empty Tensor of shape {t.shape}", takes="elements"
            )
        return t

    return tree.map_leaves(one, value)


def _one_of(where: str, epoch: Any, epochs: Any) -> Any:
    """The number of epochs, given under either name."""
    if epoch is not None and epochs is not None:
        raise ArgumentValueError(where, "epochs", got=f"{epochs!r} beside 'epoch' {epoch!r}", takes="one of the two")
    return epochs if epoch is None else epoch
