"""The parameters given to an optimizer: a list of them, or groups with options of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, MissingKeyError, StateError
from mycelia.tensor import Parameter, Tensor

_KEYS = ("params", "lr", "weight_decay", "grad_centralization", "order_params")


def check_number(where: str, argument: str, value: Any, *, positive: bool = False, below: float | None = None) -> float:
    """A float that is not negative (or positive, or below a limit), refused by name otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="a number")
    number = float(value)
    if not number >= 0 or (positive and number == 0) or (below is not None and number >= below):
        limits = ("greater than 0" if positive else "at least 0") + (f" and below {below}" if below is not None else "")
        raise ArgumentValueError(where, argument, got=repr(value), takes=f"a number {limits}")
    return number


def parameter_list(where: str, argument: str, parameters: Any) -> list[Any]:
    """Parameters, or groups, as a list of one kind.

    Raises:
        ArgumentTypeError: something else is among them.
        ArgumentValueError: there are none.
        StateError: two parameters have one name.
    """
    if parameters is None:
        raise ArgumentValueError(where, argument, got="None", takes="Parameters or a list of groups")
    if isinstance(parameters, (str, dict, Tensor)) or not isinstance(parameters, Iterable):
        raise ArgumentTypeError(
            where, argument, got=type(parameters).__name__, takes="a list of Parameters or of groups"
        )
    found = list(parameters)
    if not found:
        raise ArgumentValueError(
            where, argument, got="an empty list", takes="at least one Parameter",
            hint="does the network have parameters with requires_grad=True?",
        )  # fmt: skip
    kinds = {dict if isinstance(x, dict) else Parameter if isinstance(x, Parameter) else type(x) for x in found}
    if kinds not in ({dict}, {Parameter}):
        names = ", ".join(sorted(k.__name__ for k in kinds))
        raise ArgumentTypeError(where, argument, got=f"elements of type {names}", takes="only Parameters or only dicts")
    if kinds == {Parameter}:
        _check_distinct(where, argument, found)
    return found


def _check_distinct(where: str, argument: str, parameters: list[Parameter]) -> None:
    seen: set[str] = set()
    for p in parameters:
        if p.name in seen:
            raise StateError(where, argument, got=f"two parameters named '{p.name}'", takes="distinct names")
        seen.add(p.name)


def read_groups(
    where: str, groups: list[dict[str, Any]]
) -> tuple[list[tuple[int, dict[str, Any]]], list[Parameter] | None]:
    """Groups with their numbers and the order asked for, if any; all is checked, nothing is changed.

    Raises:
        ArgumentTypeError: a group's ``params`` are no Parameters.
        ArgumentValueError: ``order_params`` beside other keys, or of other parameters than the groups'.
        MissingKeyError: an unknown key, or no ``params``.
        StateError: a parameter is in two groups.
    """
    found: list[tuple[int, dict[str, Any]]] = []
    order: list[Parameter] | None = None
    for number, group in enumerate(groups):
        wrong = [k for k in group if k not in _KEYS]
        if wrong:
            raise MissingKeyError(
                where, "parameters", got=f"a group with the key {wrong[0]!r}", takes=", ".join(map(repr, _KEYS))
            )
        if "order_params" in group:
            if len(group) > 1:
                raise ArgumentValueError(
                    where, "order_params", got=f"a group with {sorted(group)}", takes="a group of its own"
                )
            order = parameter_list(where, "order_params", group["order_params"])
        elif "params" not in group:
            raise MissingKeyError(where, "parameters", got=f"a group with {sorted(group)}", takes="the key 'params'")
        else:
            params = parameter_list(where, "params", group["params"])
            if isinstance(params[0], dict):
                raise ArgumentTypeError(where, "params", got="elements of type dict", takes="Parameters")
            found.append((number, {**group, "params": params}))
    everything = [p for _, group in found for p in group["params"]]
    if not everything:
        raise ArgumentValueError(where, "parameters", got="no group with 'params'", takes="at least one")
    _check_distinct(where, "parameters", everything)
    if order is not None:
        known = {id(p) for p in everything}
        if len(order) != len(everything) or any(id(p) not in known for p in order):
            raise ArgumentValueError(
                where,
                "order_params",
                got=f"{len(order)} parameters",
                takes=f"the {len(everything)} parameters of the groups",
            )
    return found, order
