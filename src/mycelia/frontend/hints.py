"""Names by which programs steer MindSpore's compiler; here they are checked, and change nothing in the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError

C = TypeVar("C", bound=type)

_ALLOWED = {
    "jit_level": ("", "O0", "O1", "O2"),
    "exc_mode": ("auto", "sink", "no_sink"),
    "jit_syntax_level": ("", "STRICT", "LAX"),
    "debug_level": ("RELEASE", "DEBUG"),
    "infer_boost": ("on", "off"),
}


class JitConfig:
    """Options of compilation, for ``Cell.set_jit_config``; kept, and without influence on results.

    Args:
        jit_level: ``""``, ``"O0"`` or ``"O1"``.
        exc_mode: ``"auto"``, ``"sink"`` or ``"no_sink"``.
        jit_syntax_level: ``""``, ``"STRICT"`` or ``"LAX"``; all of Python can be compiled either way.
        debug_level: ``"RELEASE"`` or ``"DEBUG"``.
        infer_boost: ``"on"`` or ``"off"``.
        kwargs: further options, kept.

    Raises:
        ArgumentValueError: an option has an unknown value.

    >>> import mycelia as ms
    >>> ms.JitConfig(jit_level="O1").jit_config_dict["jit_level"]
    'O1'
    """

    def __init__(
        self, jit_level: str = "", exc_mode: str = "auto", jit_syntax_level: str = "", debug_level: str = "RELEASE",
        infer_boost: str = "off", **kwargs: Any,
    ) -> None:  # fmt: skip
        given = {
            "jit_level": jit_level, "exc_mode": exc_mode, "jit_syntax_level": jit_syntax_level,
            "debug_level": debug_level, "infer_boost": infer_boost,
        }  # fmt: skip
        for name, value in given.items():
            if value not in _ALLOWED[name]:
                raise ArgumentValueError(
                    "JitConfig", name, got=repr(value), takes=", ".join(map(repr, _ALLOWED[name]))
                )  # fmt: skip
        self.jit_config_dict: dict[str, Any] = {**kwargs, **given}


def jit_class(cls: C) -> C:
    """Mark a class whose objects compiled code uses; every class can be used, so it is returned as it is.

    Raises:
        ArgumentTypeError: ``cls`` is not a class, or a Cell.

    >>> import mycelia as ms
    >>> @ms.jit_class
    ... class Scale:
    ...     k = 3
    >>> print(ms.jit(lambda x: x * Scale().k)(ms.Tensor(2.0)))
    6.0
    """
    if not isinstance(cls, type):
        raise ArgumentTypeError("jit_class", "cls", got=type(cls).__name__, takes="a class")
    if hasattr(cls, "construct"):
        raise ArgumentTypeError("jit_class", "cls", got=f"the Cell {cls.__name__}", takes="a class that is no Cell")
    return cls


def lazy_inline(fn: Callable[..., Any] | None = None, attrs: Any = None, policy: str | None = None) -> Any:
    """Mark the ``__init__`` of a Cell that is compiled once for all its uses; equal blocks are found anyway.

    Args:
        fn: the ``__init__``; without it, a decorator is returned.
        attrs: names of arguments that blocks may differ in; kept for compatibility.
        policy: None or ``"front"``.

    Raises:
        ArgumentTypeError: ``fn`` is not a function.
        ArgumentValueError: an unknown policy.

    >>> import mycelia as ms
    >>> class Block(ms.nn.Cell):
    ...     @ms.lazy_inline
    ...     def __init__(self):
    ...         super().__init__()
    ...
    ...     def construct(self, x):
    ...         return x + 1
    >>> print(Block()(ms.Tensor(1)))
    2
    """
    if policy not in (None, "front"):
        raise ArgumentValueError("lazy_inline", "policy", got=repr(policy), takes="None or 'front'")
    if fn is None:
        return lambda function: lazy_inline(function, attrs, policy)
    if not callable(fn):
        raise ArgumentTypeError("lazy_inline", "fn", got=type(fn).__name__, takes="a function")
    return fn
