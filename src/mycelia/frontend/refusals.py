"""What ``jit`` refuses before and after it stages: unknown options, functions that are never done, other results.

A coroutine or generator function gives its values piece by piece to whoever drives it, which a graph cannot.
"""

from __future__ import annotations

import difflib
import inspect
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from types import AsyncGeneratorType, CellType, CoroutineType, FunctionType, GeneratorType
from typing import Any

from mycelia.core import tree
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, GraphError
from mycelia.frontend.effects import mentions
from mycelia.tensor import Tensor

#: Options of ``jit`` for other compilers, and of its older forms; they change nothing here.
_WITHOUT_EFFECT = (
    "disable_format_transform", "exec_order", "ge_options", "infer_boost", "auto_offload", "mode", "input_signature",
    "hash_args", "jit_config", "compile_once", "optim_level", "compile_args",
)  # fmt: skip
_OWN = ("capture_mode", "jit_level", "dynamic", "fullgraph", "backend", "cache_limit")


_VALUES: dict[str, tuple[Any, ...]] = {
    "capture_mode": ("ast", "bytecode", "trace", "auto"), "jit_level": ("", "O0", "O1", "O2"), "dynamic": (0, 1),
    "backend": ("", "ms_backend", "GE"),
}  # fmt: skip


def check_options(options: dict[str, Any], **given: Any) -> None:
    """Refuse keywords that ``jit`` does not have, and values that the ones it has do not take.

    Raises:
        ArgumentTypeError: there is no such keyword; the hint is one that is written almost so.
        ArgumentValueError: a value is none of those that an option takes.
    """
    limit = given.pop("cache_limit", 1)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ArgumentValueError("jit", "cache_limit", got=repr(limit), takes="an int above 0")
    for name, value in given.items():
        if value not in _VALUES[name]:
            raise ArgumentValueError("jit", name, got=repr(value), takes=", ".join(map(repr, _VALUES[name])))
    for name, value in options.items():
        if name not in _WITHOUT_EFFECT:
            near = difflib.get_close_matches(name, [*_OWN, *_WITHOUT_EFFECT], 1)
            raise ArgumentTypeError(
                "jit", name, got=f"{value!r}, but there is no such option", takes=", ".join(_OWN),
                hint=f"did you mean '{near[0]}'?" if near else None,
            )  # fmt: skip


def check_function(function: Any) -> None:
    """Refuse what cannot be compiled as a whole.

    Raises:
        ArgumentTypeError: it is not callable, or a coroutine or generator function.
    """
    takes = "a function, method or Cell"
    if hasattr(function, "construct"):
        return
    if not callable(function):
        raise ArgumentTypeError("jit", "function", got=type(function).__name__, takes=takes)
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    if inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner):
        raise ArgumentTypeError(
            "jit", "function", got=f"the coroutine function '{inner.__name__}'", takes=takes,
            hint="compile the function that computes, and await outside of it",
        )  # fmt: skip
    if inspect.isgeneratorfunction(inner):
        raise ArgumentTypeError(
            "jit", "function", got=f"the generator function '{inner.__name__}'", takes=takes,
            hint="return a list or a stacked tensor of the values, or compile the function that computes one of them",
        )  # fmt: skip


def _hidden(leaf: Any) -> str | None:
    """What of an object is a tensor of the graph, in words; None if nothing is."""
    if isinstance(leaf, (Tensor, str)) or hasattr(leaf, "construct"):
        return None
    if isinstance(leaf, (set, frozenset, deque)):
        return "an element" if any(_is_symbolic(v) for v in leaf) else None
    if isinstance(leaf, FunctionType):
        cells = zip(leaf.__code__.co_freevars, leaf.__closure__ or (), strict=True)
        return next((f"a variable '{n}'" for n, c in cells if _is_symbolic(_content(c))), None)
    return next((f"an attribute '{n}'" for n, v in getattr(leaf, "__dict__", {}).items() if _is_symbolic(v)), None)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _is_symbolic(value: Any) -> bool:
    return type(value) is Tensor and value.is_symbolic


def _keys(treedef: tree.TreeDef) -> Iterator[str]:
    if treedef.kind is dict:
        yield from (k for k in treedef.spec if isinstance(k, str))
    for child in treedef.children:
        yield from _keys(child)


def check_results(where: str, leaves: Sequence[Any], treedef: tree.TreeDef = tree.LEAF) -> None:
    """Refuse results of a staged function that say nothing after it.

    Raises:
        GraphError: a generator or coroutine, a text that was to hold a tensor's value, or an object that holds a
            tensor of the graph where it is not looked for.
    """
    for leaf in leaves:
        if (held := _hidden(leaf)) is not None:
            raise GraphError(
                where, message=f"the returned {type(leaf).__name__} has {held} a Tensor of the graph, without a "
                "value outside", hint="return tensors, or tuples, lists, dicts and dataclasses of them",
            )  # fmt: skip
        if isinstance(leaf, (GeneratorType, CoroutineType, AsyncGeneratorType)):
            kind = "generator" if isinstance(leaf, GeneratorType) else "coroutine"
            if isinstance(leaf, CoroutineType):
                leaf.close()
            raise GraphError(
                where, message=f"it returns the {kind} '{leaf.__name__}', which would go on after the graph has run",
                hint="return a list or a stacked tensor of the values",
            )  # fmt: skip
    for text in (*(x for x in leaves if isinstance(x, str)), *_keys(treedef)):
        if mentions(text):
            raise GraphError(
                where, message=f"it returns the text {text!r}, but the value of a tensor in it is only known when the "
                "graph runs", hint="return the tensor, and make the text of the result",
            )  # fmt: skip
