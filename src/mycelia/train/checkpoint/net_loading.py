"""Putting loaded values into the parameters of a network: all that fits, or nothing.

Every parameter of the network is first paired with an entry: the one of its own name, or, without
``strict_load``, one whose name is its own behind a prefix (``net.fc.weight`` for ``fc.weight``). All
pairs are checked, every problem is collected, and only then is anything changed. Values are copied, so
that one dictionary can be loaded into several networks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from mycelia.core import dtypes
from mycelia.core.errors import ArgumentTypeError, MyceliaError, UnsupportedError
from mycelia.tensor import Parameter, Tensor

_logger = logging.getLogger("mycelia")
_WHERE: Final = "load_param_into_net"
_CONVERTIBLE: Final = (frozenset(dtypes.FLOATS), frozenset(dtypes.SIGNED))
_GRADIENT_BUFFERS: Final = "accu_grads"
_LISTED: Final = 20


class ParameterMismatchError(MyceliaError, RuntimeError, ValueError):
    """Loaded values do not fit the parameters of a network. MindSpore raises RuntimeError here."""


class HasParameters(Protocol):
    """A Cell, as far as checkpoints care."""

    def parameters_and_names(self) -> Iterable[tuple[str, Parameter]]:
        """Attribute path and parameter, one pair for each parameter."""
        ...


@dataclass(frozen=True, slots=True)
class _Pair:
    parameter: Parameter
    source: str
    value: Any


def check_net(net: Any, where: str, argument: str) -> None:
    """Refuse anything but a Cell."""
    if isinstance(net, type) or not callable(getattr(net, "parameters_and_names", None)):
        raise ArgumentTypeError(where, argument, got=_described(net), takes="a Cell")


def check_flag(value: Any, where: str, argument: str) -> None:
    """Refuse anything but True and False."""
    if not isinstance(value, bool):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="True or False")


def load_param_into_net(
    net: HasParameters,
    parameter_dict: Mapping[str, Any],
    strict_load: bool = False,
    remove_redundancy: bool = False,
) -> tuple[list[str], list[str]]:
    """Load values into the parameters of a network of the same names.

    Args:
        net: a Cell.
        parameter_dict: what :func:`load_checkpoint` gives: Parameters by name. Strings in it are left alone.
        strict_load: if False, floating values are converted to the floating dtype of their parameter
            (float16, bfloat16, float32, float64) and signed integers to its signed integer dtype, and
            parameters that are not found are looked for behind a common prefix. If True, the dtypes must
            be equal and the names too. Shapes must always be equal; dimensions of 1 at the end of a loaded
            shape are dropped.
        remove_redundancy: the values were saved without copies that other processes hold.

    Returns:
        The names of parameters that are not in ``parameter_dict``, and the names in ``parameter_dict`` that
        were not loaded.

    Raises:
        ParameterMismatchError: shapes or dtypes differ. It lists all of them and all missing names;
            nothing was changed.
        ArgumentTypeError: ``net`` is no Cell, or ``parameter_dict`` no dictionary of Parameters.

    >>> import numpy as np
    >>> from mycelia import Parameter
    >>> class Net:
    ...     weight = Parameter(np.zeros(2, np.float32), name="weight")
    ...     def parameters_and_names(self):
    ...         yield "weight", self.weight
    >>> net = Net()
    >>> load_param_into_net(net, {"weight": Parameter(np.ones(2, np.float32)), "epoch": "3"})
    ([], ['epoch'])
    >>> net.weight.asnumpy()
    array([1., 1.], dtype=float32)
    """
    check_net(net, _WHERE, "net")
    _check_dict(parameter_dict)
    check_flag(strict_load, _WHERE, "strict_load")
    check_flag(remove_redundancy, _WHERE, "remove_redundancy")
    if remove_redundancy:
        _refuse_redundancy()
    pairs: list[_Pair] = []
    missing: list[Parameter] = []
    for _, parameter in net.parameters_and_names():
        if parameter.name not in parameter_dict:
            if not parameter.name.startswith(_GRADIENT_BUFFERS):
                missing.append(parameter)
        elif not isinstance(parameter_dict[parameter.name], str):
            pairs.append(_Pair(parameter, parameter.name, parameter_dict[parameter.name]))
    if not strict_load:
        behind_prefix, missing = _behind_prefixes(missing, parameter_dict)
        pairs += behind_prefix
    problems = [problem for pair in pairs for problem in _problems(pair, strict_load)]
    not_loaded = [parameter.name for parameter in missing]
    if problems:
        raise _mismatch(problems, not_loaded)
    for pair in pairs:
        _apply(pair)
    if not_loaded:
        _logger.warning(
            "%s: %d parameters of the net are not in parameter_dict and keep their values: %s",
            _WHERE, len(not_loaded), ", ".join(not_loaded),
        )  # fmt: skip
    loaded = {pair.source for pair in pairs}
    return not_loaded, [name for name in parameter_dict if name not in loaded]


def _check_dict(parameter_dict: Any) -> None:
    if not isinstance(parameter_dict, dict):
        raise ArgumentTypeError(_WHERE, "parameter_dict", got=_described(parameter_dict), takes="a dict")
    for name, value in parameter_dict.items():
        if not isinstance(name, str) or not isinstance(value, Parameter | str | list):
            raise ArgumentTypeError(
                _WHERE, "parameter_dict", got=f"{_described(value)} under the key {name!r}",
                takes="a Parameter or a string under each name", hint="make one with Parameter(value, name=...)",
            )  # fmt: skip


def _refuse_redundancy() -> None:
    import jax

    if jax.process_count() == 1:
        raise ArgumentTypeError(
            _WHERE, "remove_redundancy", got="True in a single process", takes="True only where several processes train"
        )
    raise UnsupportedError(
        _WHERE, "remove_redundancy", got="True", takes="False", hint="save with remove_redundancy=False"
    )


def _behind_prefixes(
    missing: list[Parameter], parameter_dict: Mapping[str, Any]
) -> tuple[list[_Pair], list[Parameter]]:
    """Pair what is missing with entries named PREFIX + name, one prefix after another; and what is still missing."""
    names = [name for name, value in parameter_dict.items() if not isinstance(value, str)]
    pairs: list[_Pair] = []
    while (prefix := _first_prefix(missing, names)) is not None:
        _logger.warning("%s: entries are taken without the prefix %r of their names", _WHERE, prefix)
        found = [p for p in missing if prefix + p.name in parameter_dict]
        pairs += [_Pair(p, prefix + p.name, parameter_dict[prefix + p.name]) for p in found]
        taken = {id(p) for p in found}
        missing = [p for p in missing if id(p) not in taken]
    return [pair for pair in pairs if not isinstance(pair.value, str)], missing


def _first_prefix(missing: list[Parameter], names: list[str]) -> str | None:
    for parameter in missing:
        for name in names:
            if name.endswith(parameter.name):
                return name.removesuffix(parameter.name)
    return None


def _problems(pair: _Pair, strict_load: bool) -> list[str]:
    parameter, value = pair.parameter, pair.value
    label = f"'{parameter.name}'" + ("" if pair.source == parameter.name else f" (from '{pair.source}')")
    if isinstance(value, list):
        if callable(getattr(parameter, "import_data", None)):
            return []
        return [f"{label}: a map parameter in parameter_dict, a tensor in the net"]
    problems = []
    if not _same_shape(parameter.shape, value.shape):
        problems.append(f"{label}: shape {parameter.shape} in the net, {value.shape} in parameter_dict")
    if value.dtype is not parameter.dtype:
        if strict_load or not any({value.dtype, parameter.dtype} <= group for group in _CONVERTIBLE):
            why = " (strict_load=True)" if strict_load else ""
            problems.append(f"{label}: dtype {parameter.dtype} in the net, {value.dtype} in parameter_dict{why}")
        elif value.dtype.is_integer and not _fits(value.asnumpy(), parameter.dtype.np):
            problems.append(f"{label}: values of dtype {value.dtype} that do not fit {parameter.dtype}, the net's")
    return problems


def _same_shape(ours: tuple[int, ...], loaded: tuple[int, ...]) -> bool:
    return loaded[: len(ours)] == ours and all(dim == 1 for dim in loaded[len(ours) :])


def _fits(values: np.ndarray[Any, Any], target: np.dtype[Any]) -> bool:
    limits = np.iinfo(target)
    return values.size == 0 or bool(values.min() >= limits.min and values.max() <= limits.max)


def _mismatch(problems: list[str], missing: list[str]) -> ParameterMismatchError:
    lines = problems[:_LISTED]
    if len(problems) > _LISTED:
        lines.append(f"... and {len(problems) - _LISTED} more")
    if missing:
        lines.append(f"not in parameter_dict: {', '.join(repr(name) for name in missing)}")
    count = f"{len(problems)} value{'s do' if len(problems) > 1 else ' does'} not fit the net"
    return ParameterMismatchError(
        _WHERE, message=f"{count}, and nothing was loaded:\n    " + "\n    ".join(lines),
        hint="check that the file is of this network; choice_func of load_checkpoint leaves entries out",
    )  # fmt: skip


def _apply(pair: _Pair) -> None:
    parameter, value = pair.parameter, pair.value
    if isinstance(value, list):
        parameter.import_data(value)
        return
    if value.dtype is not parameter.dtype:
        _logger.warning("%s: '%s' is converted from %s to %s", _WHERE, pair.source, value.dtype, parameter.dtype)
    with np.errstate(all="ignore"):
        array = value.asnumpy().astype(parameter.dtype.np, copy=False).reshape(parameter.shape)
    parameter.set_data(Tensor(array))


def _described(value: Any) -> str:
    return f"a value of type {type(value).__name__}"
