"""Optimizers in torch's manner: everything that steers the update is in ``param_groups`` and may be changed there.

The rate of a group is a Parameter, so that changing it needs no new graph; changing another option makes one. The
update of all parameters is one compiled graph in both modes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, MissingKeyError, StateError
from mycelia.nn.cell import Cell, ParameterTuple
from mycelia.nn.optim.groups import check_number, parameter_list
from mycelia.nn.optim.optimizer import Optimizer as _NamedOptimizer
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import set_value
from mycelia.tensor.tensor import bump_epoch, check_bool


class Group(dict[str, Any]):
    """Options of some parameters. A number set as ``lr`` is written into the rate's Parameter."""

    def __setitem__(self, key: str, value: Any) -> None:
        rate = self.get("lr")
        if key == "lr" and isinstance(rate, Parameter):
            number = value.asnumpy() if isinstance(value, Tensor) else check_number("param_groups", "lr", value)
            rate.set_data(Tensor(number, dt.float32))
            return
        super().__setitem__(key, value)
        bump_epoch()


class Row(NamedTuple):
    """One parameter's share of an update, in single precision at least."""

    place: int
    param: Parameter
    value: Tensor
    gradient: Tensor
    rate: Tensor
    group: Group


class Optimizer(Cell):
    """Base class.

    Args:
        params: Parameters, or dicts with ``params`` and options of their own.
        defaults: options of groups that do not give them; ``lr`` and ``weight_decay`` are checked here.

    Attributes:
        param_groups: dicts of ``params`` and all options; ``lr`` is a Parameter.
        parameters: all parameters, in the order in which gradients are given.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: no parameters, or a rate or decay out of range.
        MissingKeyError: a group without ``params``, or without an option that has no default.
        StateError: a parameter is in two groups.

    >>> import mycelia as ms
    >>> from mycelia.experimental import optim
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> optimizer = optim.SGD([w], lr=0.5)
    >>> _ = optimizer((ms.Tensor([1.0, 1.0]),))
    >>> optimizer.param_groups[0]["lr"] = 0.25
    >>> _ = optimizer((ms.Tensor([1.0, 1.0]),))
    >>> print(w.asnumpy())
    [0.25 1.25]
    """

    #: Tensors of state for each parameter: attribute, start of their names, first value.
    states: tuple[tuple[str, str, Any], ...] = ()
    #: The counter of steps: attribute, shape and dtype; None for none.
    counter: tuple[str, tuple[int, ...], Any] | None = ("step_t", (), np.int32)

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        self._jit_requested = str(type(self).construct.__module__).startswith("mycelia.")
        self._where = type(self).__name__
        given = parameter_list(self._where, "params", params)
        self.defaults = dict(defaults)
        self.param_groups: list[Group] = []
        self.group_start_id = [0]
        self.lrs: list[Parameter] = []
        self.parameters = ParameterTuple(())
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)
        if self.counter is not None:
            name, shape, dtype = self.counter
            setattr(self, name, Parameter(Tensor(np.zeros(shape, dtype)), name, requires_grad=False))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own; see the class for what is refused."""
        where = self._where
        if not isinstance(param_group, dict):
            raise ArgumentTypeError(where, "param_group", got=type(param_group).__name__, takes="a dict")
        if "params" not in param_group:
            raise MissingKeyError(where, "param_group", got=f"the keys {sorted(param_group)}", takes="the key 'params'")
        if isinstance(param_group["params"], set):
            raise ArgumentTypeError(where, "params", got="a set", takes="an ordered collection")
        params = param_group["params"]
        params = [params] if isinstance(params, Parameter) else parameter_list(where, "params", params)
        if isinstance(params[0], dict):
            raise ArgumentTypeError(where, "params", got="elements of type dict", takes="Parameters")
        known = {id(p) for p in self.parameters}
        for p in params:
            if id(p) in known:
                raise StateError(where, "params", got=f"'{p.name}' in two groups", takes="each parameter once")
        group = Group({**self.defaults, **param_group, "params": params})
        if "lr" not in group:
            raise MissingKeyError(where, "param_group", got="no 'lr'", takes="a rate, as there is no default")
        if group.get("weight_decay", 0.0) != 0.0 or isinstance(group.get("weight_decay"), bool):
            check_number(where, "weight_decay", group["weight_decay"])
        self.check_options(group)
        rate = self._rate(group["lr"], f"learning_rate_group_{len(self.param_groups)}")
        dict.__setitem__(group, "lr", rate)
        setattr(self, rate.name, rate)
        self.lrs.append(rate)
        self.param_groups.append(group)
        self.group_start_id.append(self.group_start_id[-1] + len(params))
        self.parameters = ParameterTuple([*self.parameters, *params])
        for attribute, prefix, first in self.states:
            made = [self._state(p, prefix, first) for p in params]
            setattr(self, attribute, ParameterTuple([*self.__dict__.get(attribute, ()), *made]))

    def check_options(self, group: Group) -> None:
        """Refuse options out of range; subclasses say which."""

    @staticmethod
    def _state(param: Parameter, prefix: str, first: Any) -> Parameter:
        scalar = prefix.endswith("_")
        shape, dtype = ((), np.dtype(np.float32)) if scalar else (param.shape, param.dtype.np)
        name = f"{prefix}{'' if scalar else '.'}{param.name}"
        return Parameter(Tensor(np.full(shape, first, dtype)), name, requires_grad=False)

    def _rate(self, value: Any, name: str) -> Parameter:
        if isinstance(value, Tensor):
            if value.ndim:
                raise ArgumentValueError(self._where, "lr", got=f"a Tensor of shape {value.shape}", takes="one number")
            value = float(value.asnumpy())
        return Parameter(Tensor(check_number(self._where, "lr", value), dt.float32), name, requires_grad=False)

    def rows(self, gradients: Any, *, decayed: bool = True) -> list[Row]:
        """Each parameter with its gradient, which is negated for ``maximize`` and, if ``decayed``, decayed."""
        _NamedOptimizer.check_gradients(self, gradients)  # type: ignore[arg-type]
        made = []
        for number, group in enumerate(self.param_groups):
            for i in range(self.group_start_id[number], self.group_start_id[number + 1]):
                param = self.parameters[i]
                p, g = self.wide(param, gradients[i])
                g = -g if group.get("maximize") else g
                if decayed and group.get("weight_decay"):
                    g = g + p * float(group["weight_decay"])
                made.append(Row(i, param, p, g, self.lrs[number], group))
        return made

    def count(self) -> Tensor:
        """Count the step; gives its number, from 1, as float32."""
        assert self.counter is not None
        counter = getattr(self, self.counter[0])
        set_value(counter, counter + 1)
        return ops.cast(counter.reshape(()), dt.float32)

    wide = staticmethod(_NamedOptimizer.wide)
    put = staticmethod(_NamedOptimizer.put)

    def construct(self, gradients: Any) -> Any:
        """Update the parameters; subclasses define it."""
        raise StateError(self._where, message="the optimizer defines no 'construct'")

    def __repr__(self) -> str:
        lines = []
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            for key in sorted(k for k in group if k != "params"):
                value = group[key].asnumpy()[()] if isinstance(group[key], Tensor) else group[key]
                lines.append(f"    {key}: {value!s}")
        return f"{type(self).__name__} (\n" + "\n".join(lines) + "\n)"


def number(where: str, name: str, value: Any, check: Callable[[float], bool], takes: str) -> None:
    """Refuse a value that is no number, or for which ``check`` does not hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(where, name, got=f"{value!r} ({type(value).__name__})", takes="a number")
    if not check(value):
        raise ArgumentValueError(where, name, got=repr(value), takes=takes)


def not_negative(group: Group, where: str, *names: str) -> None:
    """Refuse options below 0."""
    for name in names:
        number(where, name, group[name], lambda v: v >= 0, "a number of at least 0")


def pair(group: Group, where: str, name: str) -> Sequence[float]:
    """An option of two numbers."""
    value = group[name]
    if not isinstance(value, (tuple, list)):
        raise ArgumentTypeError(where, name, got=type(value).__name__, takes="two numbers")
    if len(value) != 2:
        raise ArgumentValueError(where, name, got=f"{len(value)} numbers", takes="two")
    return value


def betas(group: Group, where: str) -> None:
    """Refuse decay rates outside [0, 1), and a negative eps."""
    for i, beta in enumerate(pair(group, where, "betas")):
        number(where, f"betas[{i}]", beta, lambda v: 0 <= v < 1, "a number from 0 to below 1")
    not_negative(group, where, "eps")


def flags(group: Group, where: str, *names: str) -> None:
    """Refuse options that are not True or False."""
    for name in names:
        check_bool(where, name, group[name])
