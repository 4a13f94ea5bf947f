"""``shard``: tells how the inputs and outputs of a function or Cell, and its parameters, lie on devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia.core import tree
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.core.layout import Layout, device_count
from mycelia.core.strategy import check_strategy, layouts_of
from mycelia.ops.layouts import laid_out
from mycelia.parallel.placing import place
from mycelia.tensor import Tensor


def shard(
    fn: Callable[..., Any], in_strategy: Any, out_strategy: Any = None, parameter_plan: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """``fn`` with inputs and outputs that lie on devices as strategies say; what is between follows from them.

    Args:
        fn: a function or Cell of tensors.
        in_strategy: for each tensor among the inputs a strategy (into how many parts each axis is cut), a
            :class:`Layout`, or None, which leaves it open.
        out_strategy: the same of the outputs; None leaves them open.
        parameter_plan: for names of the Cell's parameters (``"self."`` may stand before them) a strategy or Layout.

    Raises:
        ArgumentTypeError: an argument of another type.
        ArgumentValueError: parts that the devices do not make, or a name that no parameter has.
        ShapeError: (when called) an axis that its devices cannot share evenly; all such axes are named.

    >>> import mycelia as ms
    >>> from mycelia.parallel import shard
    >>> double = shard(lambda x: x * 2, in_strategy=((1, 1),))
    >>> double(ms.ops.ones((2, 2))).sum().item()
    8.0
    """
    if not callable(fn):
        raise ArgumentTypeError("shard", "fn", got=repr(fn), takes="a function or Cell")
    inputs = check_strategy("shard", "in_strategy", in_strategy)
    outputs = None if out_strategy is None else check_strategy("shard", "out_strategy", out_strategy)
    if parameter_plan is not None:
        _place_parameters(fn, parameter_plan)

    def sharded(*args: Any, **kwargs: Any) -> Any:
        result = fn(*_laid_out((args, kwargs), "in_strategy", inputs)[0], **kwargs)
        return result if outputs is None else _laid_out(result, "out_strategy", outputs)

    return sharded


def _laid_out(values: Any, argument: str, strategies: tuple[Any, ...]) -> Any:
    leaves, treedef = tree.flatten(values)
    tensors = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
    if len(strategies) > len(tensors):
        raise ArgumentValueError(
            "shard", argument, got=f"{len(strategies)} strategies", takes=f"one for each of {len(tensors)} tensors"
        )
    layouts = layouts_of("shard", argument, strategies, device_count())
    for i, layout in zip(tensors, layouts, strict=False):
        if layout is not None:
            leaves[i] = laid_out(leaves[i], layout)
    return tree.unflatten(treedef, leaves)


def _place_parameters(fn: Any, plan: Any) -> None:
    if not isinstance(plan, dict) or not hasattr(fn, "parameters_dict"):
        raise ArgumentTypeError(
            "shard", "parameter_plan", got=repr(plan), takes="a dict from names of parameters, and a Cell as fn"
        )
    held = {p.name: p for p in fn.get_parameters()}
    names = list(plan)
    missing = [n for n in names if n.removeprefix("self.") not in held]
    if missing:
        raise ArgumentValueError(
            "shard", "parameter_plan", got=", ".join(missing), takes=f"names of parameters: {', '.join(held)}"
        )
    strategies = check_strategy("shard", "parameter_plan", tuple(plan.values()))
    chosen: list[Layout | None] = layouts_of("shard", "parameter_plan", strategies, device_count())
    for name, layout in zip(names, chosen, strict=True):
        parameter = held[name.removeprefix("self.")]
        if layout is not None:
            layout.check(parameter.shape, "shard", f"parameter '{parameter.name}'")
            place(parameter, layout)
