"""The base of optimizers: parameter groups, learning rates, weight decay.

Calling an optimizer with gradients updates its parameters. The update of the optimizers of this package, of
all parameters, is one compiled graph in both modes; ``construct`` is plain operators over the lists they keep.
A user's own optimizer runs as the mode says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError
from mycelia.nn.cell import Cell, ParameterTuple
from mycelia.nn.layers.container import CellList
from mycelia.nn.optim.groups import check_number, parameter_list, read_groups
from mycelia.nn.optim.rates import FixedRate, RateTable, ScaledDecay
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import set_value
from mycelia.tensor.tensor import check_bool

_TARGETS = ("CPU", "GPU", "Ascend")


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

    Attributes:
        parameters: the parameters, in the order in which gradients are given.
        learning_rate: a Parameter or schedule; if groups have rates of their own, one for each parameter.
        weight_decay: a Tensor (times ``loss_scale``) or Cell; with groups, one for each parameter.
        global_step: the steps done so far, int32 of shape (1,).

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: no parameters, or a negative rate or decay.
        MissingKeyError: a group has an unknown key or no parameters.
        StateError: a parameter is given twice.

    >>> import mycelia as ms
    >>> class Plain(ms.nn.Optimizer):
    ...     def construct(self, gradients):
    ...         lr = self.get_lr()
    ...         for p, g in zip(self.parameters, self.decay_weight(gradients)):
    ...             ms.ops.assign(p, p - lr * g)
    ...         return True
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> Plain(0.5, [w], weight_decay=1.0)((ms.Tensor([1.0, 1.0]),))
    True
    >>> print(w.asnumpy())
    [0.  0.5]
    """

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: float = 1.0) -> None:
        super().__init__(auto_prefix=False)
        self._jit_requested = str(type(self).construct.__module__).startswith("mycelia.")
        where = self._where = type(self).__name__
        given = parameter_list(where, "parameters", parameters)
        self.loss_scale = check_number(where, "loss_scale", loss_scale, positive=True)
        self.global_step = Parameter(Tensor(np.zeros(1, np.int32)), "global_step", requires_grad=False)
        self.dynamic_lr = self.dynamic_weight_decay = False
        self.is_group = isinstance(given[0], dict)
        self.is_group_lr = self.is_group_params_ordered = False
        self.grad_centralization = False
        self._unique = True
        if self.is_group:
            self._take_groups(given, learning_rate, weight_decay)
        else:
            self._take_parameters(given, learning_rate, weight_decay)
        self._parameters = self.parameters
        self.exec_weight_decay = any(d is not None for d in self._decays)
        self.param_length = len(self.parameters)
        self.reciprocal_scale = Tensor(1.0 / self.loss_scale, dt.float32)
        self.need_scale = self.loss_scale != 1.0
        self.global_step_increase_tensor = Tensor(np.ones(1, np.int32))
        self.use_parallel = False
        self.optim_filter = (True,) * self.param_length

    # what is updated, how fast --------------------------------------------------------------------------

    def _take_parameters(self, given: list[Parameter], learning_rate: Any, weight_decay: Any) -> None:
        self.learning_rate = self._rate(learning_rate, "learning_rate")
        self.parameters = ParameterTuple(given)
        self._rates: list[Any] = [self.learning_rate] * len(given)
        decay = self._decay(weight_decay)
        self.decay_flags = tuple(["beta" not in p.name and "gamma" not in p.name for p in given])
        self._decays: list[Any] = [decay if flag else None for flag in self.decay_flags]
        self._centralized = [False] * len(given)
        self.dynamic_decay_flags: Any = isinstance(decay, Cell)
        self.weight_decay: Any = decay if isinstance(decay, Cell) else Tensor(decay or 0.0, dt.float32)

    def _take_groups(self, groups: list[dict[str, Any]], learning_rate: Any, weight_decay: Any) -> None:
        default_rate = self._rate(learning_rate, "learning_rate")
        default_decay = self._decay(weight_decay)
        rows: list[tuple[Parameter, Any, Any, bool]] = []
        found, order = read_groups(self._where, groups)
        for number, group in found:
            rate, decay = default_rate, default_decay
            if "lr" in group:
                self.is_group_lr = True
                rate = self._rate(group["lr"], f"learning_rate_group_{number}")
            if "weight_decay" in group:
                decay = self._decay(group["weight_decay"])
            centralized = group.get("grad_centralization", False)
            check_bool(self._where, "grad_centralization", centralized)
            rows += [(p, rate, decay, centralized) for p in group["params"]]
        if order is not None:
            self.is_group_params_ordered = True
            by_id = {id(row[0]): row for row in rows}
            rows = [by_id[id(p)] for p in order]
        self._check_lengths([row[1] for row in rows])
        self._rates = [row[1] for row in rows]
        if not self.is_group_lr:
            self.learning_rate = default_rate
        elif self.dynamic_lr:
            fixed = {id(r): FixedRate(r) for r in self._rates if not isinstance(r, Cell)}
            self._rates = [fixed.get(id(r), r) for r in self._rates]
            self.learning_rate = CellList(self._rates, auto_prefix=False)
        else:
            self.learning_rate = ParameterTuple(self._rates)
        self.parameters = ParameterTuple([row[0] for row in rows])
        self._decays = [row[2] for row in rows]
        self._centralized = [row[3] for row in rows]
        self.grad_centralization_flags = tuple(self._centralized)
        self.decay_flags = tuple([d is not None for d in self._decays])
        self.dynamic_decay_flags = tuple([isinstance(d, Cell) for d in self._decays])
        self.weight_decay = tuple([d if isinstance(d, Cell) else Tensor(d or 0.0, dt.float32) for d in self._decays])

    def _check_lengths(self, rates: list[Any]) -> None:
        lengths = sorted({r.learning_rate.shape[0] for r in rates if isinstance(r, RateTable)})
        if len(lengths) > 1:
            raise ArgumentValueError(
                self._where, "lr", got=f"sequences of {lengths[0]} and {lengths[1]} rates",
                takes="sequences of one length",
            )  # fmt: skip

    def _rate(self, value: Any, name: str) -> Any:
        """A rate as a Parameter or as a schedule."""
        if isinstance(value, bool) or value is None or isinstance(value, str):
            pass
        elif isinstance(value, Cell):
            self.dynamic_lr = True
            return value
        elif isinstance(value, (int, float)):
            rate = Tensor(check_number(self._where, "learning_rate", value), dt.float32)
            return Parameter(rate, name, requires_grad=False)
        elif isinstance(value, Tensor) and value.ndim == 0:
            return Parameter(Tensor(value.asnumpy(), dt.float32), name, requires_grad=False)
        elif isinstance(value, Tensor) and value.ndim > 1:
            raise ArgumentValueError(
                self._where, "learning_rate", got=f"a Tensor of {value.ndim} axes", takes="at most one axis"
            )
        elif isinstance(value, Iterable) and not isinstance(value, dict):
            self.dynamic_lr = True
            values = value.asnumpy() if isinstance(value, Tensor) else list(value)
            return RateTable(np.asarray(values, np.float32), name)
        raise ArgumentTypeError(
            self._where, "learning_rate", got=type(value).__name__,
            takes="a number, Tensor, sequence or LearningRateSchedule",
        )  # fmt: skip

    def _decay(self, value: Any) -> Any:
        """A weight decay times the loss scale, or a Cell that gives it; None for no decay."""
        if isinstance(value, Cell):
            self.dynamic_weight_decay = True
            return ScaledDecay(value, self.loss_scale)
        return check_number(self._where, "weight_decay", value) * self.loss_scale or None

    def state(self, prefix: str, init: Any = "zeros") -> ParameterTuple:
        """One parameter of optimizer state for each parameter, named ``PREFIX.NAME``; put it into an attribute."""
        fill = {"zeros": 0.0, "ones": 1.0}.get(init, init) if isinstance(init, str) else init
        made = []
        for p in self.parameters:
            made.append(
                Parameter(Tensor(np.full(p.shape, fill, p.dtype.np)), f"{prefix}.{p.name}", requires_grad=False)
            )
        return ParameterTuple(made)

    # the rates of the step ------------------------------------------------------------------------------

    def get_lr(self) -> Any:
        """The learning rate of the current step, or a tuple with one per parameter if groups have their own."""
        return tuple(self.rates()) if self.is_group_lr else self._current(self.learning_rate)

    def _current(self, rate: Any) -> Any:
        return rate(self.global_step).reshape(()) if isinstance(rate, Cell) else rate

    def rates(self) -> list[Tensor]:
        """The learning rate of each parameter at the current step, zero-dimensional."""
        known: dict[int, Tensor] = {}
        for rate in self._rates:
            if id(rate) not in known:
                known[id(rate)] = self._current(rate)
        return [known[id(rate)] for rate in self._rates]

    def decays(self) -> list[Any]:
        """The weight decay of each parameter at the current step: a number, a Tensor or None."""
        known: dict[int, Any] = {}
        for d in self._decays:
            if isinstance(d, Cell) and id(d) not in known:
                known[id(d)] = d(self.global_step).reshape(())
        return [known[id(d)] if isinstance(d, Cell) else d for d in self._decays]

    def get_weight_decay(self) -> Any:
        """The weight decay of the current step times the loss scale; with groups, a tuple with one per parameter."""
        if self.is_group:
            rows = zip(self.weight_decay, self.decays(), strict=True)
            return tuple([now if isinstance(given, Cell) else given for given, now in rows])
        return self.weight_decay(self.global_step) if self.dynamic_decay_flags else self.weight_decay

    def get_lr_parameter(self, param: Any) -> Any:
        """The learning-rate Parameter (or schedule) of one parameter, or a list of them for a sequence.

        Raises:
            ArgumentTypeError: ``param`` is neither a Parameter nor a list.
            ArgumentValueError: it is not one of this optimizer's.
        """
        if not isinstance(param, (Parameter, list, tuple)):
            raise ArgumentTypeError(
                "get_lr_parameter", "param", got=type(param).__name__, takes="a Parameter or a list of them"
            )

        def find(p: Parameter) -> Any:
            for own, rate in zip(self.parameters, self._rates, strict=True):
                if own is p:
                    return rate.learning_rate if isinstance(rate, (RateTable, FixedRate)) else rate
            raise ArgumentValueError(
                "get_lr_parameter",
                "param",
                got=f"'{getattr(p, 'name', p)}'",
                takes=f"a parameter of this {self._where}",
            )

        return find(param) if isinstance(param, Parameter) else [find(p) for p in param]

    # gradients ------------------------------------------------------------------------------------------

    def decay_weight(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Add weight decay to gradients: ``g + decay * p``, the decay scaled as the gradients are."""
        out = []
        for g, p, d in zip(gradients, self.parameters, self.decays(), strict=True):
            out.append(g if d is None else g + (p * d).astype(g.dtype))
        return tuple(out)

    def gradients_centralization(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Subtract their mean over all axes but the first from gradients of groups that ask for it.

        Gradient centralization: Yong et al., 2020.
        """
        out = []
        for g, wanted in zip(gradients, self._centralized, strict=True):
            out.append(g - g.mean(tuple(range(1, g.ndim)), True) if wanted and g.ndim > 1 else g)
        return tuple(out)

    def scale_grad(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Divide gradients by the loss scale."""
        return tuple([g * (1.0 / self.loss_scale) for g in gradients]) if self.need_scale else tuple(gradients)

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
                self._where, "gradients", got=f"{len(gradients)} gradients",
                takes=f"one for each of the {len(self.parameters)} parameters",
                hint="take gradients with weights=optimizer.parameters",
            )  # fmt: skip
        for g, p in zip(gradients, self.parameters, strict=True):
            if not isinstance(g, Tensor):
                raise ArgumentTypeError(
                    self._where, "gradients", got=f"{type(g).__name__} for '{p.name}'", takes="Tensors"
                )
            if g.shape != p.shape:
                raise ArgumentValueError(
                    self._where, "gradients", got=f"shape {g.shape} for '{p.name}'",
                    takes=f"the parameter's shape {p.shape}",
                )  # fmt: skip

    # reading and writing ----------------------------------------------------------------------------------

    def next_step(self) -> None:
        """Count the step; called once per update, after the rates of the step were read."""
        set_value(self.global_step, self.global_step + 1)

    @staticmethod
    def wide(*tensors: Tensor) -> list[Tensor]:
        """The tensors, those of a half type as float32: updates are computed in single precision at least."""
        return [t if t.dtype.itemsize >= 4 else t.astype(dt.float32) for t in tensors]

    @staticmethod
    def put(param: Parameter, value: Tensor) -> None:
        """Store a parameter's or a state's new value, in its own dtype."""
        set_value(param, value if value.dtype is param.dtype else value.astype(param.dtype))

    @staticmethod
    def assignadd(param: Parameter, value: Any) -> Tensor:
        """Add to a parameter in place; kept for optimizers written against the older API."""
        return ops.assign_add(param, value)

    @staticmethod
    def map_(fn: Callable[..., Any], *rows: Any) -> tuple[Any, ...]:
        """``fn`` of the elements of equally long tuples, one after another."""
        return tuple([fn(*row) for row in zip(*rows, strict=True)])

    map_reverse = map_

    @staticmethod
    def hyper_map(fn: Callable[..., Any], *rows: Any) -> Any:
        """``fn`` of the elements of equal nests of tuples."""
        if any(isinstance(row, (tuple, list)) for row in rows):
            return tuple([Optimizer.hyper_map(fn, *row) for row in zip(*rows, strict=True)])
        return fn(*rows)

    hyper_map_reverse = hyper_map

    def construct(self, gradients: Any) -> Any:
        """Update the parameters; subclasses define it."""
        raise StateError(self._where, message="the optimizer defines no 'construct'")

    @property
    def unique(self) -> bool:
        """Kept for compatibility: gradients of embeddings are dense."""
        return self._unique

    @unique.setter
    def unique(self, value: bool) -> None:
        check_bool(self._where, "unique", value)
        self.__dict__["_unique"] = value

    @property
    def target(self) -> str:
        """The device the update runs on."""
        from mycelia.core.context import get_context

        return str(get_context("device_target"))

    @target.setter
    def target(self, value: str) -> None:
        if value not in _TARGETS:
            raise ArgumentValueError(self._where, "target", got=repr(value), takes=", ".join(map(repr, _TARGETS)))
        if value != self.target and value != "CPU":
            raise ArgumentValueError(
                self._where, "target", got=repr(value), takes=f"{self.target!r}, the device in use",
                hint="see mycelia.set_device",
            )  # fmt: skip
