"""``mutable``: arguments of a compiled function that are inputs of its graph from the first compilation on."""

from __future__ import annotations

from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.frontend.keys import MutableFloat, MutableInt
from mycelia.tensor import Tensor


def mutable(input_data: Any, dynamic_len: bool = False) -> Any:
    """Mark an argument as a variable of the graph rather than a constant in it.

    Tensors in tuples, lists and dicts are always variables. An int or float becomes one: a call with another
    value does not compile again as long as the program only computes with it (see :func:`mycelia.jit`).

    Args:
        input_data: a Tensor, number, tuple, list or dict, or a nest of them.
        dynamic_len: announce that calls will be made with sequences of other lengths; the elements of the tuple or
            list must have one type and shape. Each length is still compiled for itself.

    Returns:
        An equal object to pass as an argument.

    Raises:
        ArgumentTypeError: ``input_data`` or an element is something else; with ``dynamic_len``, it is no tuple or list.
        ArgumentValueError: with ``dynamic_len``, the elements differ in type or shape.

    >>> import mycelia as ms
    >>> f = ms.jit(lambda x, pair: x * pair[0] + pair[1])
    >>> for k in (1, 2, 3):
    ...     y = f(ms.Tensor([1.0]), ms.mutable((k, 0.5 * k)))
    >>> print(y, len(ms.explain_recompiles(f)))
    [4.5] 1
    """
    if not isinstance(dynamic_len, bool):
        raise ArgumentTypeError("mutable", "dynamic_len", got=type(dynamic_len).__name__, takes="True or False")
    if dynamic_len:
        if not isinstance(input_data, (tuple, list)):
            raise ArgumentTypeError(
                "mutable", "input_data", got=type(input_data).__name__, takes="a tuple or list with dynamic_len=True"
            )
        kinds = {(type(x), *((x.dtype, x.shape) if isinstance(x, Tensor) else ())) for x in input_data}
        if len(kinds) > 1:
            raise ArgumentValueError(
                "mutable", "input_data", got=f"elements of {len(kinds)} types or shapes",
                takes="elements of one type and shape with dynamic_len=True",
            )  # fmt: skip
    return _marked(input_data, ())


def _marked(value: Any, around: tuple[int, ...]) -> Any:
    if isinstance(value, (Tensor, bool)):
        return value
    if isinstance(value, int):
        return MutableInt(value)
    if isinstance(value, float):
        return MutableFloat(value)
    if isinstance(value, (tuple, list, dict)):
        if id(value) in around:
            raise ArgumentTypeError(
                "mutable", "input_data", got="a container that contains itself", takes="a finite nest"
            )
        inside = (*around, id(value))
        if isinstance(value, dict):
            return type(value)((k, _marked(v, inside)) for k, v in value.items())
        items = [_marked(v, inside) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    raise ArgumentTypeError(
        "mutable", "input_data", got=f"{value!r} ({type(value).__name__})"[:80],
        takes="a Tensor, bool, int, float, tuple, list, dict, or a nest of them",
    )  # fmt: skip
