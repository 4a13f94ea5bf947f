"""``jit``: a function or Cell compiled the first time it meets new types, and run compiled after that.

A call is looked up by the structure, dtypes and shapes of its tensors and by the values of its Python
arguments; what the program read elsewhere is guarded (:mod:`mycelia.frontend.guards`). A miss stages the
function: it runs once on symbolic tensors, its operators building a graph. Tensors and parameters it uses
without being given them become inputs read anew at each call; those it writes become outputs stored back,
and give their memory to them.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from types import MethodType
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.compiler.executable import executable
from mycelia.compiler.run import run_graph
from mycelia.core import tree
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.frontend.convert import convert
from mycelia.frontend.guards import Guards, frozen
from mycelia.ir.builder import Builder, restoring
from mycelia.ir.graph import Graph
from mycelia.tensor import Parameter, Tensor, dispatch
from mycelia.tensor.dispatch import set_value, type_of, value_in_graph
from mycelia.tensor.mode import RECORD, STAGE, staging, state
from mycelia.tensor.tensor import wrap

_MAX_PER_KEY = 8


class Entry:
    """One staged graph of a function with what is needed to call it."""

    def __init__(
        self,
        graph: Graph,
        captured: list[Tensor],
        written: list[Tensor],
        written_args: list[int],
        out_tree: tree.TreeDef,
        out_leaves: list[Any],
        guards: Guards,
        stage_seconds: float,
        n_args: int,
    ) -> None:
        self.graph, self.captured, self.written, self.written_args = graph, captured, written, written_args
        self.out_tree, self.out_leaves, self.guards = out_tree, out_leaves, guards
        self.stage_seconds = stage_seconds
        self.n_out = sum(isinstance(x, Tensor) for x in out_leaves)
        self.single = out_tree is tree.LEAF and self.n_out == 1
        ids = {id(t) for t in written}
        self.donated = tuple(n_args + i for i, t in enumerate(captured) if id(t) in ids)
        self.executable = executable(graph, self.donated)

    def run(self, args: list[Tensor]) -> Any:
        """Run on argument tensors; writes are stored back."""
        if state.phase == RECORD and any(x._node is not None for x in (*args, *self.captured)):
            results = run_graph(self.graph, [*args, *self.captured])
            for t, new in zip(self.written, results[self.n_out :], strict=False):
                set_value(t, new)
            for i, new in zip(self.written_args, results[self.n_out + len(self.written) :], strict=True):
                set_value(args[i], new)
            return self._packed(results)
        arrays = [x._value for x in args]
        for t in self.captured:
            arrays.append(t._value)
        for i in self.donated:
            if sys.getrefcount(arrays[i]) > _UNSHARED:
                arrays[i] = jnp.copy(arrays[i])
        values = self.executable(arrays)
        n = self.n_out
        for t in self.written:
            t._value = values[n]
            n += 1
        for i in self.written_args:
            args[i]._value = values[n]
            n += 1
        if self.single:
            return wrap(values[0])
        return self._packed([wrap(v) for v in values[: self.n_out]])

    def _packed(self, results: list[Tensor]) -> Any:
        it = iter(results)
        leaves = [next(it) if isinstance(x, Tensor) else x for x in self.out_leaves]
        return tree.unflatten(self.out_tree, leaves)


def _unshared_count() -> int:
    """``sys.getrefcount`` of an array in ``Entry.run`` that only its tensor and the list hold."""
    holder = Tensor(0)
    arrays = [holder._value]
    return sys.getrefcount(arrays[0])


_UNSHARED = _unshared_count()


class Jit:
    """A compiled callable; made by :func:`jit`.

    Attributes:
        fn: the original function.
        entries: the staged graphs by call key.
        misses: why each staging happened, in order.
    """

    def __init__(self, fn: Callable[..., Any], owner: Any = None) -> None:
        self.fn = fn
        self.owner = owner
        self.entries: dict[Any, list[Entry]] = {}
        self.misses: list[str] = []
        self._keep: list[Any] = []
        functools.update_wrapper(self, fn, updated=())

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        if instance is None:
            return self
        bound = instance.__dict__.get(f"_jit_{id(self)}")
        if bound is None:
            bound = Jit(self.fn.__get__(instance, cls), owner=instance)
            object.__setattr__(instance, f"_jit_{id(self)}", bound)
        return bound

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if state.phase == STAGE:
            return convert(self.fn)(*args, **kwargs)
        key: Any
        if not kwargs and all(type(a) is Tensor for a in args):
            tensors = list(args)
            key = tuple([(a._value.dtype, a._value.shape) for a in args])
        else:
            tensors, key = self._key(args, kwargs)
        entry = self._find(key)
        if entry is None:
            entry = self._stage(args, kwargs, key)
        return entry.run(tensors)

    def _find(self, key: Any) -> Entry | None:
        known = self.entries.get(key)
        if known is None:
            self.misses.append("first call" if not self.entries else f"new argument types or values: {_describe(key)}")
            return None
        reason = ""
        for entry in reversed(known):
            broken = entry.guards.broken()
            if broken is None:
                return entry
            reason = broken
        self.misses.append(f"changed since the last call: {reason}")
        return None

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Tensor], Any]:
        leaves, treedef = tree.flatten((args, kwargs))
        tensors: list[Tensor] = []
        parts: list[Any] = [treedef]
        for x in leaves:
            if isinstance(x, Parameter):
                parts.append(("parameter", id(x), x.dtype, x.shape, x.requires_grad))
                self._keep.append(x) if not any(x is k for k in self._keep) else None
            elif isinstance(x, Tensor):
                tensors.append(x)
                parts.append((x._value.dtype, x._value.shape))
            elif isinstance(x, np.ndarray):
                parts.append(("array", x.shape, str(x.dtype), x.tobytes()))
            elif (held := frozen(x)) is not None:
                parts.append(held if not isinstance(x, float) or x == x else (float, "nan"))
            else:
                parts.append((type(x), id(x)))
                if not any(x is k for k in self._keep):
                    self._keep.append(x)
        return tensors, tuple(parts)

    def _stage(self, args: tuple[Any, ...], kwargs: dict[str, Any], key: Any) -> Entry:
        start = time.perf_counter()
        builder = Builder(getattr(self.fn, "__name__", type(self.fn).__name__))
        guards = builder.notes["guards"] = Guards()
        inner: list[Tensor] = []

        def symbolic(x: Any) -> Any:
            if isinstance(x, Tensor) and not isinstance(x, Parameter):
                inner.append(wrap(builder.param(type_of(x))))
                return inner[-1]
            return x

        sym_args, sym_kwargs = tree.map_leaves(symbolic, (args, kwargs))
        with restoring(builder, _put_back), staging(builder):
            out = convert(self.fn)(*sym_args, **sym_kwargs)
            leaves, out_tree = tree.flatten(out)
            values = [value_in_graph(x) for x in leaves if isinstance(x, Tensor)]
            inner_ids = {id(t) for t in inner}
            written = [t for t, _ in builder.written.values() if id(t) not in inner_ids]
            written_args = [i for i, t in enumerate(inner) if t._value is not builder.explicit[i]]
            values += [value_in_graph(t) for t in written]
            values += [value_in_graph(inner[i]) for i in written_args]
            graph = builder.finish(values)
        guards.seal()
        kept = [x if not isinstance(x, Tensor) else wrap(None) for x in leaves]
        entry = Entry(
            graph, [t for t, _ in builder.captured], written, written_args, out_tree, kept, guards,
            time.perf_counter() - start, len(inner),
        )  # fmt: skip
        bucket = self.entries.setdefault(key, [])
        bucket.append(entry)
        del bucket[:-_MAX_PER_KEY]
        return entry

    @property
    def compile_seconds(self) -> float:
        """Seconds spent staging and compiling so far."""
        return sum(
            e.stage_seconds + (e.executable.compile_seconds or 0.0) for bucket in self.entries.values() for e in bucket
        )


def _put_back(tensor: Tensor, value: Any) -> None:
    tensor._value = value


def _describe(key: Any) -> str:
    return ", ".join(
        f"{p[0]}{list(p[1])}" if isinstance(p, tuple) and len(p) == 2 and isinstance(p[1], tuple) else str(p)
        for p in key
    )


def jit(
    function: Callable[..., Any] | None = None,
    *,
    capture_mode: str = "ast",
    jit_level: str = "O1",
    dynamic: int = 0,
    fullgraph: bool = False,
    backend: str = "",
    **options: Any,
) -> Any:
    """Compile a function, method or Cell.

    Args:
        function: what to compile; without it, a decorator is returned.
        capture_mode: ``"ast"``, ``"bytecode"`` or ``"trace"``; there is one way of capturing, so they all
            mean the same here.
        jit_level: ``"O0"`` or ``"O1"``.
        dynamic: 0, or 1 to announce changing shapes.
        fullgraph: kept for compatibility: the whole function is always one graph.
        backend: ``""`` or ``"ms_backend"``.

    Returns:
        A callable of the same arguments. Tensors are inputs; Python values are constants and part of the
        key under which a compiled graph is kept.

    Raises:
        ArgumentTypeError: ``function`` is not callable.
        ArgumentValueError: an option has an unknown value.

    >>> import mycelia as ms
    >>> @ms.jit
    ... def f(x):
    ...     return x * 2 if x.sum() > 0 else -x
    >>> print(f(ms.Tensor([1.0, 2.0])), f(ms.Tensor([-1.0, -2.0])))
    [2. 4.] [1. 2.]
    """
    for name, value, allowed in (
        ("capture_mode", capture_mode, ("ast", "bytecode", "trace", "auto")),
        ("jit_level", jit_level, ("", "O0", "O1", "O2")),
        ("dynamic", dynamic, (0, 1)),
        ("backend", backend, ("", "ms_backend", "GE")),
    ):
        if value not in allowed:
            raise ArgumentValueError("jit", name, got=repr(value), takes=", ".join(map(repr, allowed)))
    if function is None:
        return functools.partial(
            jit, capture_mode=capture_mode, jit_level=jit_level, dynamic=dynamic, fullgraph=fullgraph,
            backend=backend, **options,
        )  # fmt: skip
    if isinstance(function, Jit):
        return function
    if hasattr(function, "construct"):  # a Cell stays a Cell, compiled whenever it is called
        function.__dict__["_jit_requested"] = True
        return function
    if not callable(function):
        raise ArgumentTypeError("jit", "function", got=type(function).__name__, takes="a function, method or Cell")
    return Jit(function)


def _call_compiled(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run any callable compiled, keeping its executables with the object it belongs to."""
    owner, key = _place(fn)
    calls = owner.__dict__.get("_compiled_calls")
    if calls is None:
        calls = owner.__dict__["_compiled_calls"] = {}
    held = calls.get(key)
    if held is None:
        held = calls[key] = Jit(fn)
    return held(*args, **kwargs)


def _place(fn: Any) -> tuple[Any, Any]:
    """The object whose ``__dict__`` keeps a callable's executables, and the key there."""
    described = getattr(fn, "compile_key", None)
    if described is not None:
        owner, key = _place(fn.fn)
        return owner, (key, described)
    if isinstance(fn, MethodType):
        return (fn.__self__, fn.__func__) if hasattr(fn.__self__, "__dict__") else (fn.__func__, fn.__self__)
    return fn, None


dispatch.set_compiler(_call_compiled)
dispatch.set_converter(convert)
