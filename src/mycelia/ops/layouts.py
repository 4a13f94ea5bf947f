"""A tensor's layout as an operator: it stays what it is, and lies as it is told (:mod:`mycelia.core.layout`).

The class forms of operators take strategies (``ops.MatMul().shard(((2, 1), (1, 4)))``), which count in the modes in
which tensors are one for all ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jax import lax

from mycelia.core import layout as layouts
from mycelia.core.errors import ArgumentValueError
from mycelia.core.layout import Layout, device_count
from mycelia.core.strategy import axis_names, check_strategy, layouts_of
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply


def _infer(x: TensorType, *, layout: Layout) -> TensorType:
    layout.check(x.shape, "shard", "the tensor")
    return x


def _lower(x: Any, *, layout: Layout) -> Any:
    return lax.with_sharding_constraint(x, layout.sharding())


def _vjp(ct: Any, x: Tensor, out: Tensor, *, layout: Layout) -> Sequence[Any]:
    return (lambda: laid_out(ct, layout),)


laid_out_p = Primitive("laid_out", infer=_infer, lower=_lower, vjp=_vjp, shard="...->...")


def by_strategies(operator: str, attrs: Mapping[str, Any], argument: str, values: Sequence[Any]) -> list[Any]:
    """Inputs or outputs of a class form, lying as its strategies say.

    Args:
        operator: its name.
        attrs: its attributes, strategies included.
        argument: ``"in_strategy"`` or ``"out_strategy"``.
        values: the inputs or outputs.

    Raises:
        ArgumentValueError: more strategies than tensors, or parts that the devices do not make.
        ShapeError: an axis that its devices cannot share evenly.
    """
    strategies = check_strategy(operator, argument, attrs[argument])
    tensors = [i for i, x in enumerate(values) if isinstance(x, Tensor)]
    if len(strategies) > len(tensors):
        raise ArgumentValueError(
            operator, argument, got=f"{len(strategies)} strategies", takes=f"one for each of {len(tensors)} tensors"
        )
    names = axis_names(operator, attrs, [values[i].ndim for i in tensors]) if argument == "in_strategy" else None
    for i, one in zip(tensors, strategies, strict=False):
        if isinstance(one, tuple) and len(one) != values[i].ndim:
            raise ArgumentValueError(
                operator, argument, got=f"{one} for a tensor of shape {values[i].shape}", takes="a number for each axis"
            )
    found = list(values)
    for i, layout in zip(tensors, layouts_of(operator, argument, strategies, device_count(), names), strict=False):
        if layout is not None:
            found[i] = laid_out(values[i], layout)
    return found


def laid_out(x: Tensor, layout: Layout) -> Tensor:
    """``x``, lying as ``layout`` says; its gradient lies so, too.

    Raises:
        ShapeError: the devices cannot share an axis evenly; all such axes are named.
    """
    layouts.use()
    return apply(laid_out_p, x, layout=layout)  # type: ignore[no-any-return]
