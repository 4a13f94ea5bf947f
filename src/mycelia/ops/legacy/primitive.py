"""``Primitive``: what the class forms of operators derive from, and a base for classes of the user's own.

An instance carries attributes given once and is called with tensors many times: ``ops.Softmax(-1)(x)``.
Marks for a device, a stage or a strategy are kept as attributes; they change no value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from mycelia.tensor.dispatch import stageable
from mycelia.tensor.tensor import bump_epoch

__all__ = [
    "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "constexpr", "prim_arg_register", "prim_attr_register",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


class Primitive:
    """An operator as an object.

    Args:
        name: its name.

    A class of the user's derives from it and computes in ``__call__``, or in ``vm_impl``, a function it sets
    or a method, of NumPy arrays or tensors.

    Raises:
        UnsupportedError: (when called) the class computes nothing.

    >>> import mycelia as ms
    >>> class Double(ms.ops.Primitive):
    ...     def __init__(self):
    ...         super().__init__("Double")
    ...     def __call__(self, x):
    ...         return x * 2
    >>> print(Double()(ms.Tensor([1, 2])))
    [2 4]
    """

    name: str
    attrs: dict[str, Any]
    init_attrs: dict[str, Any]

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError("Primitive", "name", got=type(name).__name__, takes="a string")
        self.__dict__.update(name=name, attrs={}, init_attrs={})

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value
        bump_epoch()  # a graph that read the former value is made again

    def __call__(self, *args: Any) -> Any:
        compute = getattr(self, "vm_impl", None)
        if compute is None:
            raise UnsupportedError(
                self.name, message="the primitive has no computation",
                hint="define __call__ with operators, or vm_impl, in its class",
            )  # fmt: skip
        return stageable(compute)(*args)

    def __repr__(self) -> str:
        hidden = ("input_names", "output_names", "in_strategy", "out_strategy")
        told = ", ".join(f"{k}={v}" for k, v in self.attrs.items() if k not in hidden)
        return f"Prim[{self.name}]<{told}>" if told else f"Prim[{self.name}]"

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Set an attribute.

        >>> import mycelia as ms
        >>> ms.ops.ReduceSum().add_prim_attr("keep_dims", True)(ms.Tensor([1, 2])).shape
        (1,)
        """
        self.attrs[name] = value
        setattr(self, name, value)
        return self

    add_attr = add_prim_attr

    def del_prim_attr(self, name: str) -> Primitive:
        """Take an attribute out again."""
        if name not in self.attrs:
            raise ArgumentValueError(self.name, "name", got=repr(name), takes=f"one of {sorted(self.attrs)}")
        del self.attrs[name]
        self.__dict__.pop(name, None)
        bump_epoch()
        return self

    del_attr = del_prim_attr

    def get_attr_dict(self) -> dict[str, Any]:
        """The attributes by name."""
        return dict(self.attrs)

    def init_prim_io_names(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Name the inputs and outputs."""
        for argument, names in (("inputs", inputs), ("outputs", outputs)):
            if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
                raise ArgumentTypeError(self.name, argument, got=repr(names), takes="a list of strings")
        self.attrs.update(input_names=list(inputs), output_names=list(outputs))

    def set_device(self, device_target: str) -> Primitive:
        """Note the device the operator is meant for."""
        return self.add_prim_attr("primitive_target", device_target)

    def set_stage(self, stage: int) -> Primitive:
        """Note the pipeline stage of the operator."""
        return self.add_prim_attr("stage", stage)

    def set_prim_instance_name(self, instance_name: str) -> Primitive:
        """Give this one object a name."""
        self.instance_name = instance_name
        return self

    def shard(self, in_strategy: Any = None, out_strategy: Any = None) -> Primitive:
        """Note how inputs and outputs are split over devices: a tuple with an entry for each of them."""
        for argument, strategy in (("in_strategy", in_strategy), ("out_strategy", out_strategy)):
            if strategy is not None and not isinstance(strategy, tuple):
                raise ArgumentTypeError(self.name, argument, got=type(strategy).__name__, takes="a tuple")
        self.attrs.update(in_strategy=in_strategy, out_strategy=out_strategy)
        bump_epoch()
        return self

    def place(self, role: str, rank_id: int) -> Primitive:
        """Note the process the operator is meant for."""
        self.attrs.update(placement=(role, rank_id))
        return self

    def recompute(self, mode: bool = True) -> Primitive:
        """Note whether the operator is computed again in the backward pass."""
        if not isinstance(mode, bool):
            raise ArgumentTypeError(self.name, "mode", got=repr(mode), takes="True or False")
        return self.add_prim_attr("recompute", mode)

    def check_elim(self, *args: Any) -> tuple[bool, Any]:
        """Whether the result is known without computing: never."""
        return False, None


class PrimitiveWithInfer(Primitive):
    """A base for classes of the user's that also say ``infer_shape`` and ``infer_dtype``; what they compute tells both.

    >>> import mycelia as ms
    >>> class Half(ms.ops.PrimitiveWithInfer):
    ...     @ms.ops.prim_attr_register
    ...     def __init__(self, by=2):
    ...         self.by = by
    ...     def vm_impl(self, x):
    ...         return x / self.by
    >>> print(Half(4)(ms.Tensor([2.0])))
    [0.5]
    """


class PrimitiveWithCheck(Primitive):
    """A base for classes of the user's that also say ``check_shape`` and ``check_dtype``; see :class:`Primitive`."""


def prim_attr_register(fn: F) -> F:
    """Decorate the ``__init__`` of a primitive: its arguments become attributes.

    >>> import mycelia as ms
    >>> class Scale(ms.ops.Primitive):
    ...     @ms.ops.prim_attr_register
    ...     def __init__(self, factor=2):
    ...         pass
    >>> Scale(3).attrs
    {'factor': 3}
    """
    signature = inspect.signature(fn)

    @wraps(fn)
    def construct(self: Primitive, *args: Any, **kwargs: Any) -> None:
        Primitive.__init__(self, type(self).__name__)
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(list(bound.arguments.items())[1:])
        self.__dict__.update(given)
        self.attrs.update(given)
        self.init_attrs.update(given)
        fn(self, *args, **kwargs)

    return construct  # type: ignore[return-value]


def prim_arg_register(fn: F) -> F:
    """Decorate the ``__init__`` of a primitive: its arguments become attributes; see :func:`prim_attr_register`."""
    return prim_attr_register(fn)


def constexpr(
    fn: Any = None, get_instance: bool = True, name: str | None = None, reuse_result: bool = True, check: bool = True
) -> Any:
    """Mark a function as plain Python: inside a graph it runs when the graph is made, as it is written.

    Args:
        fn: the function; without it, a decorator is returned.
        get_instance: accepted and not needed, as are the others.

    >>> import mycelia as ms
    >>> @ms.ops.constexpr
    ... def half(n):
    ...     return n // 2
    >>> half(8)
    4
    """

    def mark(function: Callable[..., Any]) -> Any:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return run

    return mark if fn is None else mark(fn)
