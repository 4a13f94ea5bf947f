"""The base of optimizers: parameter groups, learning rates, weight decay.

Calling an optimizer with gradients updates its parameters. The whole update, of all parameters, is one
compiled graph in both modes: a subclass writes ``construct`` as plain operators over the lists it keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, MissingKeyError
from mycelia.nn.cell import Cell, ParameterTuple
from mycelia.nn.learning_rate_schedule import LearningRateSchedule
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import set_value

_GROUP_KEYS = ("params", "lr", "weight_decay", "grad_centralization", "order_params")


class TableSchedule(LearningRateSchedule):
    """The i-th step takes the i-th value of a list; steps past the end take the last."""

    def __init__(self, values: Tensor, name: str = "learning_rate") -> None:
        super().__init__()
        if values.size == 0:
            raise ArgumentValueError("Optimizer", "learning_rate", got="an empty sequence", takes="one value per step")
        self.learning_rate = Parameter(values, name, requires_grad=False)

    def construct(self, global_step: Tensor) -> Tensor:
        last = self.learning_rate.shape[0] - 1
        index = global_step.reshape(()).clip(0, last)
        return self.learning_rate[index]


class Optimizer(Cell):
    """Base class of optimizers.

    Args:
        learning_rate: a number, a zero-dimensional Tensor, a sequence or 1-d Tensor with one value per
            step, or a ``LearningRateSchedule`` called with the step.
        parameters: Parameters, or groups: dicts with ``params`` and optionally ``lr``, ``weight_decay``,
            ``grad_centralization``; one dict may hold ``order_params`` alone.
        weight_decay: a non-negative number, or a Cell called with the step. Ungrouped parameters whose
            names contain ``beta`` or ``gamma`` are not decayed.
        loss_scale: gradients are divided by it.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: no parameters, a negative rate or decay, a parameter given twice.
    """

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: float = 1.0) -> None:
        super().__init__(auto_prefix=False)
        self._jit_requested = True
        where = self._where = type(self).__name__
        groups = _groups(where, parameters)
        self.loss_scale = check_number(where, "loss_scale", loss_scale, positive=True)
        self.global_step = Parameter(Tensor(np.zeros(1, np.int32)), "global_step", requires_grad=False)
        self.dynamic_lr = False
        self.is_group = isinstance(groups[0], dict)
        self.is_group_lr = False
        self.dynamic_weight_decay = False
        if not self.is_group:
            self.learning_rate = self._rate(learning_rate, "learning_rate")
            self.parameters = ParameterTuple(groups)
            self._rates: list[Any] = [self.learning_rate] * len(groups)
            decay = self._decay(weight_decay)
            self._decays = [
                None if decay is None or "beta" in p.name or "gamma" in p.name else decay for p in self.parameters
            ]  # fmt: skip
            self._centralized = [False] * len(groups)
            self.weight_decay = decay if isinstance(decay, Cell) else Tensor(decay or 0.0, dt.float32)
        else:
            self._take_groups(groups, learning_rate, weight_decay)
        self.exec_weight_decay = any(d is not None for d in self._decays)
        self.param_length = len(self.parameters)

    def _take_groups(self, groups: list[dict[str, Any]], learning_rate: Any, weight_decay: Any) -> None:
        where = self._where
        default_rate = self._rate(learning_rate, "learning_rate")
        self.learning_rate = default_rate
        rows: list[tuple[Parameter, Any, Any, bool]] = []
        order: list[Parameter] | None = None
        seen: set[int] = set()
        for number, group in enumerate(groups):
            if "order_params" in group:
                if len(group) > 1:
                    raise ArgumentValueError(where, "order_params", got=f"a group with {sorted(group)}", takes="a group of its own")
                order = list(group["order_params"])
                continue
            rate = default_rate
            if "lr" in group:
                rate = self._rate(group["lr"], f"learning_rate_group_{number}")
                self.is_group_lr = True
                self.__setattr__(f"learning_rate_group_{number}", rate)
            decay = self._decay(group.get("weight_decay", weight_decay))
            centralized = group.get("grad_centralization", False)
            if not isinstance(centralized, bool):
                raise ArgumentTypeError(where, "grad_centralization", got=repr(centralized), takes="True or False")
            for p in group["params"]:
                if id(p) in seen:
                    raise ArgumentValueError(where, "parameters", got=f"'{p.name}' in two groups", takes="each parameter once")
                seen.add(id(p))
                rows.append((p, rate, decay, centralized))
        if order is not None:
            by_id = {id(r[0]): r for r in rows}
            if len(order) != len(rows) or any(id(p) not in by_id for p in order):
                raise ArgumentValueError(
                    where, "order_params", got=f"{len(order)} parameters", takes=f"the {len(rows)} parameters of the groups"
                )
            rows = [by_id[id(p)] for p in order]
        self.parameters = ParameterTuple([r[0] for r in rows])
        self._rates = [r[1] for r in rows]
        self._decays = [r[2] for r in rows]
        self._centralized = [r[3] for r in rows]

    def _rate(self, value: Any, name: str) -> Any:
        where = self._where
        if isinstance(value, LearningRateSchedule):
            self.dynamic_lr = True
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            check_number(where, "learning_rate", value)
            return Parameter(Tensor(float(value), dt.float32), name, requires_grad=False)
        if isinstance(value, Tensor) and value.ndim == 0:
            return Parameter(Tensor(value.asnumpy(), dt.float32), name, requires_grad=False)
        if isinstance(value, Tensor) and value.ndim > 1:
            raise ArgumentValueError(where, "learning_rate", got=f"a Tensor of {value.ndim} axes", takes="at most one axis")
        if isinstance(value, (Tensor, np.ndarray)) or (isinstance(value, Iterable) and not isinstance(value, (str, dict))):
            self.dynamic_lr = True
            rates = np.asarray(value.asnumpy() if isinstance(value, Tensor) else list(value), np.float32)
            return TableSchedule(Tensor(rates), name)
        raise ArgumentTypeError(
            where, "learning_rate", got=type(value).__name__, takes="a number, Tensor, sequence or LearningRateSchedule"
        )

    def _decay(self, value: Any) -> Any:
        if isinstance(value, Cell):
            self.dynamic_weight_decay = True
            return value
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise ArgumentTypeError(self._where, "weight_decay", got=type(value).__name__, takes="a number or a Cell")
        return check_number(self._where, "weight_decay", value) or None

    def state(self, prefix: str, init: Any = "zeros", dtype: Any = None) -> ParameterTuple:
        """One parameter of optimizer state for each parameter, named ``PREFIX.NAME``; put it into an attribute."""
        made = []
        for p in self.parameters:
            fill = {"zeros": 0.0, "ones": 1.0}.get(init, init) if isinstance(init, str) else init
            data = Tensor(np.full(p.shape, fill, (dtype or p.dtype).np))
            made.append(Parameter(data, f"{prefix}.{p.name}", requires_grad=False))
        return ParameterTuple(made)

    def get_lr(self) -> Any:
        """The learning rate of the current step: a zero-dimensional Tensor, or a tuple with one per parameter."""
        if not self.is_group_lr:
            return self._current(self.learning_rate)
        return tuple(self._rate_list())

    def _current(self, rate: Any) -> Tensor:
        return rate(self.global_step).reshape(()) if isinstance(rate, Cell) else rate

    def _rate_list(self) -> list[Tensor]:
        """The learning rate of each parameter at the current step."""
        known: dict[int, Tensor] = {}
        for rate in self._rates:
            if id(rate) not in known:
                known[id(rate)] = self._current(rate)
        return [known[id(rate)] for rate in self._rates]

    def _decay_list(self) -> list[Any]:
        """The weight decay of each parameter at the current step: a number, a Tensor or None."""
        known: dict[int, Any] = {}
        for d in self._decays:
            if isinstance(d, Cell) and id(d) not in known:
                known[id(d)] = d(self.global_step).reshape(())
        return [known[id(d)] if isinstance(d, Cell) else d for d in self._decays]

    def get_weight_decay(self) -> Any:
        """The weight decay of the current step; a tuple with one per parameter if they are grouped."""
        if self.is_group:
            return tuple(0.0 if d is None else d for d in self._decay_list())
        return self.weight_decay(self.global_step) if isinstance(self.weight_decay, Cell) else self.weight_decay

    def get_lr_parameter(self, param: Any) -> Any:
        """The learning-rate Parameter (or schedule) of one parameter, or a list of them for a sequence."""

        def find(p: Parameter) -> Any:
            for own, rate in zip(self.parameters, self._rates, strict=True):
                if own is p:
                    return rate.learning_rate if isinstance(rate, TableSchedule) else rate
            raise ArgumentValueError(self._where, "param", got=f"'{p.name}'", takes="a parameter of this optimizer")

        return find(param) if isinstance(param, Parameter) else [find(p) for p in param]

    def decay_weight(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Add weight decay to gradients: ``g + decay * p`` (decay scaled as the gradients are)."""
        out = []
        for g, p, d in zip(gradients, self.parameters, self._decay_list(), strict=True):
            out.append(g if d is None else g + (p * (d * self.loss_scale)).astype(g.dtype))
        return tuple(out)

    def gradients_centralization(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Subtract from each gradient of a convolution (and other weights) its mean over all axes but the first."""
        return tuple(
            g - g.mean(tuple(range(1, g.ndim)), True) if c and g.ndim > 1 else g
            for g, c in zip(gradients, self._centralized, strict=True)
        )

    def scale_grad(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Divide gradients by the loss scale."""
        return tuple(gradients) if self.loss_scale == 1.0 else tuple(g * (1.0 / self.loss_scale) for g in gradients)

    def flatten_gradients(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The gradients as they are; kept for optimizers written against the older API."""
        return tuple(gradients)

    def prepared(self, gradients: Any) -> tuple[Tensor, ...]:
        """Check gradients against the parameters, then decay, centralize and unscale them.

        Raises:
            ArgumentValueError: their number or a shape differs.
        """
        self.check_gradients(gradients)
        return self.scale_grad(self.gradients_centralization(self.decay_weight(gradients)))

    def check_gradients(self, gradients: Any) -> None:
        """Refuse gradients that do not belong to the parameters."""
        if not isinstance(gradients, (tuple, list)):
            raise ArgumentTypeError(self._where, "gradients", got=type(gradients).__name__, takes="a tuple of Tensors")
        if len(gradients) != len(self.parameters):
            raise ArgumentValueError(
                self._where, "gradients", got=f"{len(gradients)} gradients", takes=f"one for each of the {len(self.parameters)} parameters",
                hint="take gradients with weights=optimizer.parameters",
            )  # fmt: skip
        for g, p in zip(gradients, self.parameters, strict=True):
            if not isinstance(g, Tensor):
                raise ArgumentTypeError(self._where, "gradients", got=f"{type(g).__name__} for '{p.name}'", takes="Tensors")
            if g.shape != p.shape:
                raise ArgumentValueError(
                    self._where, "gradients", got=f"shape {g.shape} for '{p.name}'", takes=f"the parameter's shape {p.shape}"
                )

    def next_step(self) -> None:
        """Count the step; called once per update, before the rates of the step are read if ``get_lr`` ran first."""
        set_value(self.global_step, self.global_step + 1)

    @staticmethod
    def put(param: Parameter, value: Tensor) -> None:
        """Store a parameter's or a state's new value, in its own dtype."""
        set_value(param, value if value.dtype is param.dtype else value.astype(param.dtype))

    def construct(self, gradients: Any) -> Any:
        """Update the parameters; subclasses define it."""
        raise ArgumentTypeError(self._where, "construct", got="none", takes="a subclass that defines it")

    @property
    def unique(self) -> bool:
        """Kept for compatibility: gradients of embeddings are dense."""
        return True

    @property
    def target(self) -> str:
        """The device the update runs on."""
        from mycelia.core.context import get_context

        return str(get_context("device_target"))


def check_number(
    where: str, argument: str, value: Any, *, positive: bool = False, below: float | None = None
) -> float:
    """A float that is not negative (or positive, or below a limit), refused by name otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="a number")
    number = float(value)
    if not number >= 0 or (positive and number == 0) or (below is not None and number >= below):
        limits = ("greater than 0" if positive else "at least 0") + (f" and below {below}" if below is not None else "")
        raise ArgumentValueError(where, argument, got=repr(value), takes=f"a number {limits}")
    return number


def _groups(where: str, parameters: Any) -> list[Any]:
    if parameters is None or isinstance(parameters, (str, Tensor)) or not isinstance(parameters, Iterable):
        raise ArgumentTypeError(where, "params", got=type(parameters).__name__, takes="Parameters or a list of groups")
    found = list(parameters)
    if not found:
        raise ArgumentValueError(
            where, "params", got="an empty list", takes="at least one Parameter",
            hint="does the network have parameters with requires_grad=True?",
        )  # fmt: skip
    kinds = {dict if isinstance(x, dict) else Parameter if isinstance(x, Parameter) else type(x) for x in found}
    if kinds not in ({dict}, {Parameter}):
        names = ", ".join(sorted(k.__name__ for k in kinds))
        raise ArgumentTypeError(where, "params", got=f"elements of type {names}", takes="only Parameters or only dicts")
    if dict in kinds:
        for group in found:
            wrong = [k for k in group if k not in _GROUP_KEYS]
            if wrong:
                raise MissingKeyError(where, "params", got=f"a group with the key {wrong[0]!r}", takes=", ".join(_GROUP_KEYS))
            if "order_params" not in group and "params" not in group:
                raise MissingKeyError(where, "params", got=f"a group with {sorted(group)}", takes="the key 'params'")
            if "params" in group:
                group["params"] = _groups(where, group["params"])
    else:
        names = [p.name for p in found]
        twice = sorted({n for n in names if names.count(n) > 1}) if len(set(names)) != len(names) else []
        if twice:
            raise ArgumentValueError(where, "params", got=f"two parameters named '{twice[0]}'", takes="distinct names")
    return found
