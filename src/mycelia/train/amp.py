"""Mixed precision: which Cells compute in half precision, and scaling of the loss.

Levels: ``O0`` changes nothing. ``O1`` runs the white list (convolutions, dense and recurrent layers, matrix
products, ReLU and PReLU) in the half type and gives float32 back. ``O2`` runs everything in the half type
but the black list (batch and layer normalisation). ``O3`` runs everything so. ``auto`` runs layers that are
products in the half type and leaves their results so, and runs normalisation, softmax and losses in float32;
other layers compute in what they are given. O2 and O3 give float32 from the network as a whole.
Parameters stay float32 and are converted as they are read, so gradients and updates are float32.

Loss scaling follows Micikevicius et al. (2018): the scale halves when a gradient overflows, and the step is
skipped; it doubles after a window of steps without overflow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from mycelia import nn, ops
from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError
from mycelia.frontend.jit import jit
from mycelia.nn.cell import Cell
from mycelia.nn.optim.groups import check_number
from mycelia.nn.wrap.loss_scale import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    TrainOneStepWithLossScaleCell,
    all_finite,
    multiplied,
)
from mycelia.nn.wrap.train_step import TrainOneStepCell, WithLossCell, in_float32
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import set_value

__all__ = [
    "DynamicLossScaleManager", "DynamicLossScaler", "FixedLossScaleManager", "LossScaleManager", "LossScaler",
    "StaticLossScaler", "all_finite", "auto_mixed_precision", "build_train_network", "custom_mixed_precision",
    "get_black_list", "get_white_list",
]  # fmt: skip

LEVELS = ("O0", "O1", "O2", "O3", "auto")
_PRODUCTS = [
    "Conv1d", "Conv2d", "Conv3d", "Conv1dTranspose", "Conv2dTranspose", "Conv3dTranspose", "Dense", "Linear",
    "BiDense", "LSTMCell", "RNNCell", "GRUCell", "LSTM", "GRU", "RNN", "MatMul", "MultiheadAttention", "PReLU",
]  # fmt: skip
_WHITE = [*_PRODUCTS, "ReLU"]
_BLACK = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LayerNorm"]
_AUTO_BLACK = [
    *_BLACK, "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "RMSNorm", "Norm", "Softmax",
    "LogSoftmax", "Softmin", "Softmax2d", "Softplus", "LogSigmoid", "ReduceLogSumExp", "LossBase", "MSELoss", "NLLLoss",
    "CrossEntropyLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "CTCLoss", "HuberLoss", "GaussianNLLLoss",
]  # fmt: skip


def _classes(names: list[str]) -> list[type[Cell]]:
    return [getattr(nn, n) for n in names if hasattr(nn, n)]


def get_white_list() -> list[type[Cell]]:
    """The Cell classes that level O1 runs in half precision; a copy.

    >>> import mycelia as ms
    >>> ms.nn.Conv2d in ms.amp.get_white_list()
    True
    """
    return _classes(_WHITE)


def get_black_list() -> list[type[Cell]]:
    """The Cell classes that level O2 keeps in float32; a copy.

    >>> import mycelia as ms
    >>> ms.nn.LayerNorm in ms.amp.get_black_list()
    True
    """
    return _classes(_BLACK)


def _half(where: str, dtype: Any) -> DType:
    found = dt.as_dtype(dtype, where, "dtype")
    if found not in (dt.float16, dt.bfloat16):
        raise ArgumentValueError(where, "dtype", got=str(found), takes="float16 or bfloat16")
    return found


def auto_mixed_precision(network: Cell, amp_level: str = "O0", dtype: Any = dt.float16) -> Cell:
    """Make a network compute in mixed precision; the network is changed in place and returned.

    Args:
        network: the network. Cells whose precision was set by ``to_float`` keep it.
        amp_level: ``"O0"``, ``"O1"``, ``"O2"``, ``"O3"`` or ``"auto"``.
        dtype: float16 or bfloat16.

    Raises:
        ArgumentTypeError: ``network`` is not a Cell.
        ArgumentValueError: an unknown level or dtype.

    >>> import mycelia as ms
    >>> net = ms.amp.auto_mixed_precision(ms.nn.SequentialCell(ms.nn.Dense(4, 2)), "O1", ms.bfloat16)
    >>> net(ms.ops.ones((1, 4))).dtype
    mycelia.float32
    """
    where = "auto_mixed_precision"
    if not isinstance(network, Cell):
        raise ArgumentTypeError(where, "network", got=type(network).__name__, takes="a Cell")
    half = _half(where, dtype)
    if amp_level not in LEVELS:
        raise ArgumentValueError(where, "amp_level", got=repr(amp_level), takes=", ".join(map(repr, LEVELS)))
    if amp_level == "O1":
        _convert_white(network, _classes(_WHITE), half, dt.float32)
    elif amp_level == "auto":
        kept = _set_by_user(network)
        _convert_white(network, _classes(_PRODUCTS), half, None)
        for cell in _cells_of(network, _classes(_AUTO_BLACK), kept):
            cell.to_float(dt.float32)
    elif amp_level in ("O2", "O3"):
        _convert_but_black(network, _classes(_BLACK) if amp_level == "O2" else [], half)
    return network


def custom_mixed_precision(
    network: Cell, *, white_list: Sequence[type[Cell]] | None = None, black_list: Sequence[type[Cell]] | None = None,
    dtype: Any = dt.float16,
) -> Cell:  # fmt: skip
    """Mixed precision by a list of Cell classes; the network is changed in place and returned.

    Args:
        network: the network. Cells whose precision was set by ``to_float`` keep it.
        white_list: run these in ``dtype``, giving float32, and everything else as it is.
        black_list: run everything in ``dtype`` but these, which run in float32; the network gives float32.
        dtype: float16 or bfloat16.

    Raises:
        ArgumentTypeError: ``network`` is not a Cell, or a list holds something else than Cell classes.
        ArgumentValueError: none or both lists are given.

    >>> import mycelia as ms
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(4, 2), ms.nn.ReLU())
    >>> net = ms.amp.custom_mixed_precision(net, white_list=[ms.nn.Dense])
    >>> net[0].compute_dtype, net[1].compute_dtype
    (mycelia.float16, None)
    """
    where = "custom_mixed_precision"
    if not isinstance(network, Cell):
        raise ArgumentTypeError(where, "network", got=type(network).__name__, takes="a Cell")
    if (white_list is None) == (black_list is None):
        raise ArgumentValueError(where, "white_list", message="give either 'white_list' or 'black_list'")
    half = _half(where, dtype)
    name, given = ("black_list", black_list) if white_list is None else ("white_list", white_list)
    if not isinstance(given, (list, tuple)):
        raise ArgumentTypeError(where, name, got=type(given).__name__, takes="a list of Cell classes")
    for element in given:
        if not (isinstance(element, type) and issubclass(element, Cell)):
            raise ArgumentTypeError(where, name, got=f"the element {element!r}", takes="Cell classes")
    if white_list is not None:
        _convert_white(network, list(white_list), half, dt.float32)
    else:
        _convert_but_black(network, list(given), half)
    return network


def _set_by_user(network: Cell) -> set[int]:
    """Cells whose precision was set before, by ``to_float`` and not by a level."""
    own = network.__dict__.get("_amp_cells", frozenset())
    return {id(c) for _, c in network.cells_and_names() if c.compute_dtype is not None and id(c) not in own}


def _cells_of(network: Cell, classes: list[type[Cell]], but: set[int]) -> list[Cell]:
    return [c for _, c in network.cells_and_names() if isinstance(c, tuple(classes)) and id(c) not in but]


def _convert_white(network: Cell, classes: list[type[Cell]], half: DType, result: DType | None) -> None:
    kept = _set_by_user(network)
    for cell in _cells_of(network, classes, kept):
        cell.to_float(half)
        cell._specialize().result_dtype = result
    _note(network, kept)


def _convert_but_black(network: Cell, classes: list[type[Cell]], half: DType) -> None:
    kept = _set_by_user(network)
    for _, cell in network.cells_and_names():
        if id(cell) not in kept:
            cell._specialize().dtype = half
    for cell in _cells_of(network, classes, kept):
        cell.to_float(dt.float32)
        cell._specialize().result_dtype = half
    network._specialize().result_dtype = dt.float32
    _note(network, kept)


def _note(network: Cell, kept: set[int]) -> None:
    cells = [c for _, c in network.cells_and_names()]
    network.__dict__["_amp_cells"] = frozenset(
        id(c) for c in cells if c.compute_dtype is not None and id(c) not in kept
    )


class LossScaler(ABC):
    """Base of loss scalers for training loops of one's own."""

    @abstractmethod
    def scale(self, inputs: Any) -> Any:
        """Every tensor of a nest times the scale."""

    @abstractmethod
    def unscale(self, inputs: Any) -> Any:
        """Every tensor of a nest divided by the scale."""

    @abstractmethod
    def adjust(self, grads_finite: Any) -> Any:
        """Learn from a step whether its gradients were finite; returns whether the scale may have changed."""


class _Scaler(LossScaler):
    scale_value: Parameter

    def _start(self, scale_value: Any) -> None:
        where = type(self).__name__
        value = check_number(where, "scale_value", scale_value)
        if value < 1:
            raise ArgumentValueError(where, "scale_value", got=repr(scale_value), takes="a number of at least 1")
        self.scale_value = Parameter(Tensor(value, dt.float32), "scale_value", requires_grad=False)

    def scale(self, inputs: Any) -> Any:
        return multiplied(inputs, self.scale_value)

    def unscale(self, inputs: Any) -> Any:
        return multiplied(inputs, 1.0 / self.scale_value)


class StaticLossScaler(_Scaler):
    """A constant scale.

    Args:
        scale_value: at least 1.

    >>> import mycelia as ms
    >>> scaler = ms.amp.StaticLossScaler(8.0)
    >>> print(scaler.scale(ms.Tensor(0.5)), scaler.unscale((ms.Tensor([16.0]),))[0])
    4.0 [2.]
    """

    def __init__(self, scale_value: float) -> None:
        self._start(scale_value)

    def adjust(self, grads_finite: Any) -> bool:
        return False


class DynamicLossScaler(_Scaler):
    """A scale that follows the gradients.

    Args:
        scale_value: the first scale, at least 1.
        scale_factor: divide by it on overflow, multiply after a window without; an int above 0.
        scale_window: steps without overflow before growing, above 0.

    >>> import mycelia as ms
    >>> scaler = ms.amp.DynamicLossScaler(scale_value=2**10, scale_factor=2, scale_window=1)
    >>> scaler.adjust(ms.Tensor(False))
    True
    >>> print(scaler.scale_value.asnumpy())
    512.0
    """

    def __init__(self, scale_value: float, scale_factor: int, scale_window: int) -> None:
        self._start(scale_value)
        for name, n in (("scale_factor", scale_factor), ("scale_window", scale_window)):
            if isinstance(n, bool) or not isinstance(n, int) or n < 1:
                raise ArgumentValueError("DynamicLossScaler", name, got=repr(n), takes="an int above 0")
        self.scale_factor, self.scale_window = scale_factor, scale_window
        self.counter = Parameter(Tensor(0, dt.int32), "counter", requires_grad=False)

    def adjust(self, grads_finite: Any) -> bool:
        finite = grads_finite if isinstance(grads_finite, Tensor) else Tensor(bool(grads_finite))
        _adjust(self.scale_value, self.counter, finite, self.scale_factor, self.scale_window)
        return True


@jit
def _adjust(scale: Parameter, counter: Parameter, finite: Tensor, factor: int, window: int) -> None:
    grown = scale * float(factor)
    grown = ops.where(ops.logical_and(counter == window - 1, ops.isfinite(grown)), grown, scale)
    new = ops.where(finite, grown, ops.maximum(scale / float(factor), 1.0))
    count = ops.where(finite, (counter + 1) % window, 0)
    set_value(scale, new)
    set_value(counter, count.astype(dt.int32))


class LossScaleManager:
    """Base of the loss-scale settings given to ``Model``."""

    def get_loss_scale(self) -> float:
        """The scale now."""
        raise StateError(type(self).__name__, message="the class defines no 'get_loss_scale'")

    def update_loss_scale(self, overflow: bool) -> None:
        """Learn whether a step overflowed."""
        raise StateError(type(self).__name__, message="the class defines no 'update_loss_scale'")

    def get_update_cell(self) -> Any:
        """The Cell that adjusts the scale inside the training step, or None."""
        raise StateError(type(self).__name__, message="the class defines no 'get_update_cell'")


def _first_scale(where: str, argument: str, value: Any) -> float:
    number = check_number(where, argument, value)
    if number < 1:
        raise ArgumentValueError(where, argument, got=repr(value), takes="a number of at least 1")
    return number


class FixedLossScaleManager(LossScaleManager):
    """A constant scale.

    Args:
        loss_scale: the scale, at least 1.
        drop_overflow_update: skip steps whose gradients overflow. Without it the optimizer needs the same
            ``loss_scale``, as nothing else divides the gradients by it.

    >>> import mycelia as ms
    >>> manager = ms.amp.FixedLossScaleManager(1024.0, drop_overflow_update=False)
    >>> manager.get_loss_scale(), manager.get_update_cell()
    (1024.0, None)
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        self._loss_scale = _first_scale("FixedLossScaleManager", "loss_scale", loss_scale)
        self._drop_overflow_update = drop_overflow_update

    def get_loss_scale(self) -> float:
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Whether overflowing steps are skipped."""
        return self._drop_overflow_update

    def update_loss_scale(self, overflow: bool) -> None:
        """Nothing: the scale stays."""

    def get_update_cell(self) -> Any:
        return FixedLossScaleUpdateCell(self._loss_scale) if self._drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A scale that follows the gradients. ``Model`` keeps it up to date while it trains, once per epoch.

    Args:
        init_loss_scale: the first scale, at least 1.
        scale_factor: divide by it on overflow, multiply after a window without; an int above 0.
        scale_window: steps without overflow before growing, above 0.

    >>> import mycelia as ms
    >>> manager = ms.amp.DynamicLossScaleManager(init_loss_scale=2**10)
    >>> manager.update_loss_scale(True)
    >>> manager.get_loss_scale()
    512.0
    """

    def __init__(self, init_loss_scale: float = 2**24, scale_factor: int = 2, scale_window: int = 2000) -> None:
        where = "DynamicLossScaleManager"
        self.loss_scale = _first_scale(where, "init_loss_scale", init_loss_scale)
        for name, n in (("scale_factor", scale_factor), ("scale_window", scale_window)):
            if isinstance(n, bool) or not isinstance(n, int) or n < 1:
                raise ArgumentValueError(where, name, got=repr(n), takes="an int above 0")
        self.scale_factor, self.scale_window = scale_factor, scale_window
        self.cur_iter, self.last_overflow_iter = 1, 0

    def get_loss_scale(self) -> float:
        return self.loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Overflowing steps are always skipped."""
        return True

    def update_loss_scale(self, overflow: bool) -> None:
        if overflow:
            self.loss_scale = max(self.loss_scale / self.scale_factor, 1.0)
            self.last_overflow_iter = self.cur_iter
        elif (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
            self.loss_scale *= self.scale_factor
        self.cur_iter += 1

    def get_update_cell(self) -> Any:
        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)

    def follow(self, step: TrainOneStepWithLossScaleCell) -> None:
        """Take over the scale that a training step has arrived at."""
        self.loss_scale = float(step.scale_sense.asnumpy().reshape(()))


class _LossInFloat32(WithLossCell):
    """The loss of a network in mixed precision, computed in float32."""

    def construct(self, data: Any, label: Any) -> Any:
        return self._loss_fn(in_float32(self._backbone(data)), in_float32(label))


_OPTIONS = ("cast_model_type", "keep_batchnorm_fp32", "loss_scale_manager")


def build_train_network(
    network: Cell, optimizer: Any, loss_fn: Any = None, level: str = "O0", boost_level: str = "O0", **kwargs: Any
) -> Cell:
    """The Cell of one training step in mixed precision, in training mode.

    Args:
        network: the network (changed in place to the level).
        optimizer: updates its parameters.
        loss_fn: called with output and label; at any level but O0 it is computed in float32.
        level: see :func:`auto_mixed_precision`; ``"O2"`` adds a dynamic loss scale if none is given.
        boost_level: kept for compatibility.
        cast_model_type: float16, bfloat16 or float32, in place of what the level says.
        keep_batchnorm_fp32: whether the black list stays float32, in place of what the level says.
        loss_scale_manager: how the loss is scaled; None for not at all.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: an unknown level or keyword.

    >>> import mycelia as ms
    >>> net = ms.nn.Dense(4, 1)
    >>> optimizer = ms.nn.Momentum(net.trainable_params(), 0.1, 0.9)
    >>> step = ms.amp.build_train_network(net, optimizer, ms.nn.MSELoss(), level="O2")
    >>> loss, overflow, scale = step(ms.ops.ones((2, 4)), ms.ops.zeros((2, 1)))
    >>> loss.dtype, float(scale)
    (mycelia.float32, 16777216.0)
    """
    where = "build_train_network"
    if not isinstance(network, Cell):
        raise ArgumentTypeError(where, "network", got=type(network).__name__, takes="a Cell")
    if not isinstance(level, str):
        raise ArgumentTypeError(where, "level", got=type(level).__name__, takes="a string")
    if level not in LEVELS:
        raise ArgumentValueError(where, "level", got=repr(level), takes=", ".join(map(repr, LEVELS)))
    if boost_level not in ("O0", "O1", "O2"):
        raise ArgumentValueError(where, "boost_level", got=repr(boost_level), takes="'O0', 'O1' or 'O2'")
    wrong = [k for k in kwargs if k not in _OPTIONS]
    if wrong:
        raise ArgumentValueError(where, wrong[0], got="a value", takes="one of " + ", ".join(map(repr, _OPTIONS)))
    if "loss_scale_manager" in kwargs:
        manager = kwargs["loss_scale_manager"]
        if manager is not None and not isinstance(manager, LossScaleManager):
            raise ArgumentTypeError(
                where, "loss_scale_manager", got=type(manager).__name__, takes="a LossScaleManager or None"
            )
    else:
        manager = DynamicLossScaleManager() if level == "O2" else None
    changed = _apply_level(where, network, level, kwargs.get("cast_model_type"), kwargs.get("keep_batchnorm_fp32"))
    with_loss: Cell = network
    if loss_fn is not None:
        with_loss = _LossInFloat32(network, loss_fn) if changed else WithLossCell(network, loss_fn)
    return _step(with_loss, optimizer, manager).set_train()


def _apply_level(where: str, network: Cell, level: str, cast: Any, keep: bool | None) -> bool:
    """Change the network to its level; returns whether anything is in half precision."""
    if keep is not None and not isinstance(keep, bool):
        raise ArgumentTypeError(where, "keep_batchnorm_fp32", got=repr(keep), takes="True or False")
    half: DType = dt.float16
    if cast is not None:
        given = dt.as_dtype(cast, where, "cast_model_type")
        if given is dt.float32:
            level = "O0" if level in ("O2", "O3") else level
        else:
            half = _half(where, given)
            level = "O3" if level == "O0" else level
    if level in ("O2", "O3") and keep is not None:
        level = "O2" if keep else "O3"
    auto_mixed_precision(network, level, half)
    return level != "O0"


def _step(with_loss: Cell, optimizer: Any, manager: LossScaleManager | None) -> Cell:
    if manager is None:
        return TrainOneStepCell(with_loss, optimizer)
    update = manager.get_update_cell()
    if update is None:
        return TrainOneStepCell(with_loss, optimizer, manager.get_loss_scale())
    return TrainOneStepWithLossScaleCell(with_loss, optimizer, update)
