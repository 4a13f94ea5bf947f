"""Mixed precision: which Cells compute in half precision, and scaling of the loss.

Levels: ``O0`` changes nothing. ``O1`` runs the white list (convolutions, dense and recurrent layers, matrix
products, ReLU and PReLU) in the half type and gives float32 back. ``O2`` runs everything in the half type
but the black list (batch and layer normalisation). ``O3`` runs everything so. ``auto`` is O1 with the
results left in the half type. Parameters stay float32 and are converted as they are read, so gradients and
updates are float32.

Loss scaling follows Micikevicius et al. (2018): the scale halves when a gradient overflows, and the step is
skipped; it doubles after a window of steps without overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia import nn, ops
from mycelia.core import dtypes as dt, tree
from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.nn.cell import Cell
from mycelia.nn.optim.optimizer import check_number
from mycelia.nn.wrap import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    TrainOneStepCell,
    TrainOneStepWithLossScaleCell,
    WithLossCell,
)
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import set_value

_WHITE = [
    "Conv1d", "Conv2d", "Conv3d", "Conv1dTranspose", "Conv2dTranspose", "Conv3dTranspose", "Dense", "LSTMCell",
    "RNNCell", "GRUCell", "LSTM", "GRU", "RNN", "MatMul", "BatchMatMul", "PReLU", "ReLU",
]  # fmt: skip
_BLACK = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LayerNorm"]


def _classes(names: list[str]) -> list[type[Cell]]:
    return [getattr(nn, n) for n in names if hasattr(nn, n)]


def get_white_list() -> list[type[Cell]]:
    """The Cell classes that level O1 runs in half precision; a copy."""
    return _classes(_WHITE)


def get_black_list() -> list[type[Cell]]:
    """The Cell classes that level O2 keeps in float32; a copy."""
    return _classes(_BLACK)


def _half(where: str, dtype: Any) -> DType:
    found = dt.as_dtype(dtype, where, "dtype")
    if found not in (dt.float16, dt.bfloat16):
        raise ArgumentValueError(where, "dtype", got=str(found), takes="float16 or bfloat16")
    return found


def auto_mixed_precision(network: Cell, amp_level: str = "O0", dtype: Any = dt.float16) -> Cell:
    """Make a network compute in mixed precision; the network is changed in place and returned.

    Args:
        network: the network.
        amp_level: ``"O0"``, ``"O1"``, ``"O2"``, ``"O3"`` or ``"auto"``.
        dtype: float16 or bfloat16.

    Raises:
        ArgumentTypeError: ``network`` is not a Cell.
        ArgumentValueError: an unknown level or dtype.

    >>> import mycelia as ms
    >>> net = ms.amp.auto_mixed_precision(ms.nn.Dense(4, 2), "O3", ms.bfloat16)
    >>> net(ms.ops.ones((1, 4))).dtype
    mycelia.bfloat16
    """
    where = "auto_mixed_precision"
    if not isinstance(network, Cell):
        raise ArgumentTypeError(where, "network", got=type(network).__name__, takes="a Cell")
    half = _half(where, dtype)
    if amp_level == "O0":
        return network
    if amp_level in ("O1", "auto"):
        return custom_mixed_precision(network, white_list=get_white_list(), dtype=half, keep=amp_level == "auto")
    if amp_level == "O2":
        return custom_mixed_precision(network, black_list=get_black_list(), dtype=half)
    if amp_level == "O3":
        network.to_float(half)
        return network
    raise ArgumentValueError(where, "amp_level", got=repr(amp_level), takes='"O0", "O1", "O2", "O3" or "auto"')


def custom_mixed_precision(
    network: Cell,
    *,
    white_list: Sequence[type[Cell]] | None = None,
    black_list: Sequence[type[Cell]] | None = None,
    dtype: Any = dt.float16,
    keep: bool = False,
) -> Cell:
    """Mixed precision by a list of Cell classes; the network is changed in place and returned.

    Args:
        network: the network.
        white_list: run these in ``dtype`` and everything else as it is.
        black_list: run everything in ``dtype`` but these, which run in float32.
        dtype: float16 or bfloat16.
        keep: leave results of the white list in ``dtype``.

    Raises:
        ArgumentValueError: none or both lists are given.
    """
    where = "custom_mixed_precision"
    if (white_list is None) == (black_list is None):
        raise ArgumentValueError(where, "white_list", message="give either 'white_list' or 'black_list'")
    half = _half(where, dtype)
    if white_list is not None:
        for _, cell in network.cells_and_names():
            if isinstance(cell, tuple(white_list)):
                cell.to_float(half)
                if not keep:
                    cell._specialize().result_dtype = dt.float32
        return network
    assert black_list is not None
    network.to_float(half)
    for _, cell in network.cells_and_names():
        if isinstance(cell, tuple(black_list)):
            cell.to_float(dt.float32)
            cell._specialize().result_dtype = half
    return network


def all_finite(inputs: Any) -> Tensor:
    """Whether every element of every tensor of a nest is finite: a zero-dimensional bool Tensor.

    >>> import mycelia as ms
    >>> print(ms.amp.all_finite((ms.Tensor([1.0]), ms.Tensor([float("inf")]))))
    False
    """
    tensors = [x for x in tree.leaves(inputs) if isinstance(x, Tensor) and x.dtype.is_inexact]
    result = None
    for t in tensors:
        finite = ops.isfinite(t).all()
        result = finite if result is None else ops.logical_and(result, finite)
    return Tensor(True) if result is None else result


class LossScaler:
    """Base of loss scalers: ``scale(loss)``, ``unscale(gradients)``, ``adjust(grads_finite)``."""

    def scale(self, inputs: Any) -> Any:
        """Multiply every tensor by the scale."""
        return tree.map_leaves(lambda x: x * self.scale_value.astype(x.dtype) if isinstance(x, Tensor) else x, inputs)

    def unscale(self, inputs: Any) -> Any:
        """Divide every tensor by the scale."""
        return tree.map_leaves(
            lambda x: x * (1.0 / self.scale_value).astype(x.dtype) if isinstance(x, Tensor) else x, inputs
        )

    def adjust(self, grads_finite: Any) -> Any:
        """Learn from a step whether its gradients were finite."""
        return True

    scale_value: Tensor


class StaticLossScaler(LossScaler):
    """A constant scale.

    Args:
        scale_value: at least 1.
    """

    def __init__(self, scale_value: float) -> None:
        self.scale_value = Tensor(check_number("StaticLossScaler", "scale_value", scale_value, positive=True), dt.float32)


class DynamicLossScaler(LossScaler):
    """A scale that follows the gradients.

    Args:
        scale_value: the first scale, at least 1.
        scale_factor: divide by it on overflow, multiply after a window without; an int above 0.
        scale_window: steps without overflow before growing.

    >>> import mycelia as ms
    >>> scaler = ms.amp.DynamicLossScaler(scale_value=2**10, scale_factor=2, scale_window=1)
    >>> scaler.adjust(ms.Tensor(False))
    True
    >>> print(scaler.scale_value)
    512.0
    """

    def __init__(self, scale_value: float, scale_factor: int, scale_window: int) -> None:
        where = "DynamicLossScaler"
        value = check_number(where, "scale_value", scale_value, positive=True)
        if value < 1:
            raise ArgumentValueError(where, "scale_value", got=repr(scale_value), takes="at least 1")
        for name, n in (("scale_factor", scale_factor), ("scale_window", scale_window)):
            if isinstance(n, bool) or not isinstance(n, int) or n < 1:
                raise ArgumentValueError(where, name, got=repr(n), takes="an int above 0")
        self.scale_value = Parameter(Tensor(value, dt.float32), "scale_value", requires_grad=False)
        self.scale_factor, self.scale_window = scale_factor, scale_window
        self.counter = Parameter(Tensor(0, dt.int32), "counter", requires_grad=False)

    def adjust(self, grads_finite: Any) -> Any:
        finite = grads_finite if isinstance(grads_finite, Tensor) else Tensor(bool(grads_finite))
        grown = ops.logical_and(finite, self.counter == self.scale_window - 1)
        lower = ops.maximum(self.scale_value / float(self.scale_factor), 1.0)
        higher = self.scale_value * float(self.scale_factor)
        higher = ops.where(ops.isfinite(higher), higher, self.scale_value)
        new = ops.where(finite, ops.where(grown, higher, self.scale_value), lower)
        count = ops.where(ops.logical_and(finite, ops.logical_not(grown)), self.counter + 1, ops.zeros_like(self.counter))
        set_value(self.scale_value, new)
        set_value(self.counter, count.astype(dt.int32))
        return True


class LossScaleManager:
    """Base of the loss-scale settings given to ``Model``."""

    def get_loss_scale(self) -> float:
        """The scale now."""
        return 1.0

    def update_loss_scale(self, overflow: bool) -> None:
        """Learn whether a step overflowed."""

    def get_update_cell(self) -> Any:
        """The Cell that adjusts the scale inside the training step, or None."""
        return None


class FixedLossScaleManager(LossScaleManager):
    """A constant scale.

    Args:
        loss_scale: the scale.
        drop_overflow_update: skip steps whose gradients overflow.
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        self._loss_scale = check_number("FixedLossScaleManager", "loss_scale", loss_scale, positive=True)
        self._drop_overflow_update = drop_overflow_update

    def get_loss_scale(self) -> float:
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Whether overflowing steps are skipped."""
        return self._drop_overflow_update

    def get_update_cell(self) -> Any:
        return FixedLossScaleUpdateCell(self._loss_scale) if self._drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A scale that follows the gradients.

    Args:
        init_loss_scale: the first scale.
        scale_factor: divide by it on overflow, multiply after a window without.
        scale_window: steps without overflow before growing.
    """

    def __init__(self, init_loss_scale: float = 2**24, scale_factor: int = 2, scale_window: int = 2000) -> None:
        value = check_number("DynamicLossScaleManager", "init_loss_scale", init_loss_scale, positive=True)
        if value < 1:
            raise ArgumentValueError("DynamicLossScaleManager", "init_loss_scale", got=repr(init_loss_scale), takes="at least 1")
        self.loss_scale, self.scale_factor, self.scale_window = value, scale_factor, scale_window
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


def build_train_network(
    network: Cell,
    optimizer: Any,
    loss_fn: Any = None,
    level: str = "O0",
    boost_level: str = "O0",
    *,
    cast_model_type: Any = dt.float16,
    keep_batchnorm_fp32: bool | None = None,
    loss_scale_manager: LossScaleManager | None = None,
) -> Cell:
    """The Cell of one training step in mixed precision.

    Args:
        network: the network (changed in place to the level).
        optimizer: updates its parameters.
        loss_fn: called with output and label; computed in float32.
        level: see :func:`auto_mixed_precision`; ``"O2"`` adds a dynamic loss scale if none is given.
        boost_level: kept for compatibility.
        cast_model_type: float16 or bfloat16.
        keep_batchnorm_fp32: kept for compatibility: the level decides.
        loss_scale_manager: how the loss is scaled.
    """
    auto_mixed_precision(network, level, cast_model_type)
    with_loss: Cell = network
    if loss_fn is not None:
        with_loss = _LossInFloat32(network, loss_fn) if level in ("O2", "O3", "auto") else WithLossCell(network, loss_fn)
    manager = loss_scale_manager
    if manager is None and level == "O2" and dt.as_dtype(cast_model_type) is dt.float16:
        manager = DynamicLossScaleManager()
    if manager is None:
        return TrainOneStepCell(with_loss, optimizer)
    update = manager.get_update_cell()
    if update is None:
        return TrainOneStepCell(with_loss, optimizer, manager.get_loss_scale())
    return TrainOneStepWithLossScaleCell(with_loss, optimizer, update)


class _LossInFloat32(WithLossCell):
    """The loss of a half-precision network, computed in float32."""

    def construct(self, data: Any, label: Any) -> Any:
        outputs = tree.map_leaves(
            lambda x: x.astype(dt.float32) if isinstance(x, Tensor) and x.dtype.is_floating else x, self._backbone(data)
        )
        return self._loss_fn(outputs, label)
