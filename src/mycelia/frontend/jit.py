"""``jit``: a function or Cell compiled the first time it meets new types, and run compiled after that.

A call is looked up by the structure, dtypes and shapes of its tensors and by the values of its Python
arguments; what the program read elsewhere is guarded (:mod:`mycelia.frontend.guards`). A miss stages the
function: it runs once on symbolic tensors, its operators building a graph. Tensors and parameters it uses
without being given them become inputs read anew at each call; those it writes become outputs stored back,
and give their memory to them.

If a call missed a graph only by the values of numbers, the numbers become inputs too, if the program allows it
(:mod:`mycelia.tensor.scalar`). A function keeps a bounded number of graphs; the least recently used one goes.
"""

from __future__ import annotations

import datetime
import functools
import time
from collections.abc import Callable
from types import MethodType
from typing import Any
from weakref import WeakSet

from mycelia.compiler.executable import Executable, TypesChanged, executable
from mycelia.compiler.pipeline import optimize
from mycelia.core import tree
from mycelia.core.errors import MyceliaError, shown_traceback
from mycelia.frontend import placement
from mycelia.frontend.convert import convert
from mycelia.frontend.entry import ANY, Entry, PaddedEntry
from mycelia.frontend.explain import leave
from mycelia.frontend.guards import Guards
from mycelia.frontend.keys import MutableFloat, MutableInt, call_key, described
from mycelia.frontend.noted import Change, same_value
from mycelia.frontend.padding import NotPadded, pad_graph
from mycelia.frontend.recompiles import (
    NOTICE_AFTER,
    Compilation,
    Reason,
    argument_reasons,
    change_reason,
    notify,
)
from mycelia.frontend.refusals import check_function, check_options, check_results
from mycelia.frontend.shapes import Axis, SeenShapes, declared_axes
from mycelia.ir.builder import Builder, restoring
from mycelia.tensor import Parameter, Tensor, dispatch
from mycelia.tensor.dispatch import type_of, value_in_graph
from mycelia.tensor.mode import STAGE, staging, state
from mycelia.tensor.scalar import plain
from mycelia.tensor.tensor import wrap

#: How many graphs a function keeps, if ``jit`` is not told otherwise.
CACHE_LIMIT = 64


class Jit:
    """A compiled callable; made by :func:`jit`.

    Args:
        fn: the function.
        owner: the object it is a method of.
        cache_limit: how many graphs to keep.
        dynamic: whether changing shapes were announced.

    Attributes:
        fn: the original function.
        entries: the staged graphs by call key, the most recently used of each key first.
        compilations: a record of each compilation, in order.
    """

    def __init__(
        self, fn: Callable[..., Any], owner: Any = None, cache_limit: int = CACHE_LIMIT, dynamic: bool = False
    ) -> None:
        self.fn = fn
        self.owner = owner
        self.cache_limit, self.dynamic = cache_limit, dynamic
        self.entries: dict[Any, list[Entry]] = {}
        self.compilations: list[Compilation] = []
        self._varying: dict[Any, Any] = {}  # keys of numbers that are inputs, with their owners
        self._pinned: dict[Any, Any] = {}  # keys of numbers that cannot be, with the reason
        self._pinned_names: dict[str, Any] = {}
        self._seen = SeenShapes() if dynamic else None
        self._padded: WeakSet[Executable] = WeakSet()
        self._clock = 0
        self._noticed = False
        functools.update_wrapper(self, fn, updated=())

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        if instance is None:
            return self
        bound = instance.__dict__.get(f"_jit_{id(self)}")
        if bound is None:
            bound = Jit(self.fn.__get__(instance, cls), instance, self.cache_limit, self.dynamic)
            object.__setattr__(instance, f"_jit_{id(self)}", bound)
        return bound

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if state.phase == STAGE:
                return convert(self.fn)(*args, **kwargs)
            if placement.active:
                args, kwargs = placement.placed_inputs(args, kwargs)
            key: Any
            if not kwargs and all(type(a) is Tensor for a in args):
                tensors, numbers = list(args), ()
                key = tuple([(a._value.dtype, a._value.shape) for a in args])
            else:
                tensors, key, numbers = call_key(args, kwargs)
            if placement.active:
                key = ("placed", key)
            entry = self._find(key, numbers)
            if entry is None:
                entry = self._stage(args, kwargs, key, numbers)
            try:
                return entry.run(tensors, numbers)
            except TypesChanged:  # a captured tensor has another shape
                entry = self._find(key, numbers, types=True) or self._stage(args, kwargs, key, numbers)
                return entry.run(tensors, numbers)
        except Exception as error:
            leave(error)
            raise

    @property
    def name(self) -> str:
        """What reports call the function."""
        inner = getattr(self.fn, "fn", self.fn)
        return str(getattr(inner, "__qualname__", type(inner).__name__))

    @property
    def misses(self) -> list[str]:
        """Why each compilation happened, in order."""
        return ["; ".join(r.text for r in c.reasons) or "first call" for c in self.compilations]

    @property
    def kept(self) -> int:
        """How many graphs are kept now."""
        return sum(map(len, self.entries.values()))

    @property
    def compile_seconds(self) -> float:
        """Seconds spent staging and compiling so far."""
        return sum(c.seconds for c in self.compilations)

    # -- looking up ----------------------------------------------------------------------------------------

    def _find(self, key: Any, numbers: tuple[Any, ...], types: bool = False) -> Entry | None:
        """A graph that serves; with ``types``, only one whose captured tensors have the types they had."""
        known = self.entries.get(key)
        if known is None:
            return None
        self._clock += 1
        for i, entry in enumerate(known):
            guards = entry.guards
            if (not numbers or entry.takes(numbers)) and guards.hold() and (not types or guards.types_hold()):
                if guards.replaced:
                    entry.rebind(guards.take_replaced())
                if i:
                    known.insert(0, known.pop(i))
                entry.used = self._clock
                return entry
        return None

    # -- staging -------------------------------------------------------------------------------------------

    def _stage(self, args: tuple[Any, ...], kwargs: dict[str, Any], key: Any, numbers: tuple[Any, ...]) -> Entry:
        arguments = described(self.fn, args, kwargs)
        declared = declared_axes(self.fn, args, kwargs)
        reasons = self._reasons(key, numbers, arguments)
        start = time.perf_counter()
        builder = Builder(getattr(self.fn, "__name__", type(self.fn).__name__))
        guards = builder.notes["guards"] = Guards(self._varying)
        guards.enter(self.fn, "self")
        inner: list[Tensor] = []
        counted = iter(range(len(numbers)))
        paths = {d[1]: path for path, (kind, d) in arguments.items() if kind == "object"}

        def symbolic(x: Any) -> Any:
            if isinstance(x, Parameter):
                guards.enter(x, x.name)
            elif isinstance(x, Tensor):
                inner.append(wrap(builder.param(type_of(x))))
                return inner[-1]
            elif type(x) in (int, float):
                return guards.argument(next(counted), x)
            elif type(x) in (MutableInt, MutableFloat):
                i = next(counted)
                if ("argument", i) not in self._pinned:
                    self._varying.setdefault(("argument", i), None)
                return guards.argument(i, int(x) if type(x) is MutableInt else float(x))
            elif hasattr(x, "__dict__") and not isinstance(x, type):
                guards.enter(x, paths.get(id(x), type(x).__name__))
            return x

        args_leaves, treedef = tree.flatten((args, kwargs))
        sym_args, sym_kwargs = tree.unflatten(treedef, [symbolic(x) for x in args_leaves])
        try:
            with restoring(builder, _put_back), staging(builder):
                out = convert(self.fn)(*sym_args, **sym_kwargs)
                leaves, out_tree = tree.flatten(out)
                leaves = [plain(x) for x in leaves]
                check_results(builder.graph.name, leaves, out_tree)
                values = [value_in_graph(x) for x in leaves if isinstance(x, Tensor)]
                inner_ids = {id(t) for t in inner}
                written = [t for t, _ in builder.written.values() if id(t) not in inner_ids]
                written_args = [i for i, t in enumerate(inner) if t._value is not builder.explicit[i]]
                values += [value_in_graph(t) for t in written]
                values += [value_in_graph(inner[i]) for i in written_args]
                graph = builder.finish(values)
        finally:
            guards.unpatch()
        captured = [t for t, _ in builder.captured]
        guards.seal(captured)
        kept = [x if not isinstance(x, Tensor) else wrap(None) for x in leaves]
        held = tuple([ANY if guards.is_free(("argument", i)) else v for i, v in enumerate(numbers)])
        entry = Entry(
            graph, captured, written, written_args, out_tree, kept, guards, held, time.perf_counter() - start,
            len(inner),
        )  # fmt: skip
        self._learn_pinned(guards, arguments)
        if placement.active:
            placement.place_captured(entry)
        entry, note = self._with_padding(entry, [a for a in args_leaves if _is_input(a)], declared)
        if not isinstance(entry, PaddedEntry) or entry.padded not in self._padded:
            self._record(entry, reasons, arguments, note)
        if isinstance(entry, PaddedEntry):
            self._padded.add(entry.padded)
        self._keep(key, entry)
        return entry

    def _with_padding(self, entry: Entry, tensors: list[Tensor], axes: list[Axis]) -> tuple[Entry, str]:
        """The graph as one for padded inputs, if axes vary and it can be; and a note about it for the report."""
        if self._seen is not None:
            known = {(a.tensor, a.axis) for a in axes}
            axes = axes + [a for a in self._seen.axes(tensors) if (a.tensor, a.axis) not in known]
        axes = [a for a in axes if a.length]
        if not axes:
            return entry, ""
        if entry.written_args:
            return entry, "  (exact shape: an argument is written to)"
        padded: dict[int, int] = {}
        for a in axes:
            padded[a.length] = max(a.padded, padded.get(a.length, 0))
        dims = {
            i: tuple([n if any((a.tensor, a.axis) == (i, j) for a in axes) else None for j, n in enumerate(t.shape)])
            for i, t in enumerate(tensors)
        }
        try:
            graph, outs, lengths = pad_graph(optimize(entry.graph, for_device=False), dims, padded)
        except NotPadded as why:
            return entry, f"  (exact shape: {why})"
        if any(d is not None for own in outs[entry.n_out :] for d in own):
            return entry, "  (exact shape: a tensor that is written has a varying axis)"
        made = executable(graph, entry.pairs)
        shapes = [tuple([padded[d] if d is not None else n for n, d in zip(t.shape, dims[i], strict=True)])
                  for i, t in enumerate(tensors)]  # fmt: skip
        cut = [
            v.shape if any(d is not None for d in own) else None
            for v, own in zip(entry.graph.outputs, outs, strict=True)
        ]
        text = ", ".join(f"{n} to {padded[n]}" for n in lengths)
        return PaddedEntry(entry, shapes, cut, lengths, made), f"  (padded: {text})"

    def _reasons(self, key: Any, numbers: tuple[Any, ...], arguments: dict[str, tuple[str, Any]]) -> list[Reason]:
        """Why no graph serves; numbers that alone differ from a known graph are made inputs from now on."""
        if not self.compilations:
            return []
        known = self.entries.get(key)
        if not known:
            reasons = argument_reasons(self.compilations[-1].arguments, arguments, self._pinned_names)
            return reasons or [Reason("the arguments differ in kind, or the graph for them was dropped")]
        nearest: tuple[Entry, list[Change], list[int]] | None = None
        for entry in known:
            changes = list(entry.guards.changes())
            differ = [
                i for i, (h, v) in enumerate(zip(entry.numbers, numbers, strict=True))
                if h is not ANY and not same_value(h, v)
            ]  # fmt: skip
            if nearest is None or len(changes) + len(differ) < len(nearest[1]) + len(nearest[2]):
                nearest = entry, changes, differ
        assert nearest is not None
        entry, changes, differ = nearest
        was = next((c.arguments for c in self.compilations if c.entry is entry), {})
        reasons = argument_reasons(was, arguments, self._pinned_names) if differ else []
        reasons += [change_reason(c, self._pinned_names) for c in changes]
        numeric = all(
            c.slot is not None and type(c.before) is type(c.after) and type(c.after) in (int, float) for c in changes
        )
        if numeric and not entry.guards.changes_state:
            for c in changes:
                if c.slot is not None and c.slot.key not in self._pinned:
                    self._varying[c.slot.key] = c.slot.owner
            for i in differ:
                if ("argument", i) not in self._pinned:
                    self._varying[("argument", i)] = None
        return reasons or [Reason("the types of captured tensors have changed")]

    def _learn_pinned(self, guards: Guards, arguments: dict[str, tuple[str, Any]]) -> None:
        names = [path for path, (kind, _) in arguments.items() if kind == "number"]
        for k, location in guards.pinned.items():
            self._pinned[k] = location
            self._varying.pop(k, None)
            if k[0] == "argument":
                if k[1] < len(names):
                    self._pinned_names[names[k[1]]] = location
            else:
                self._pinned_names[guards.path_of(k)] = location

    def _record(self, entry: Entry, reasons: list[Reason], arguments: dict[str, tuple[str, Any]], note: str) -> None:
        made = Compilation(len(self.compilations) + 1, datetime.datetime.now(), reasons, arguments, entry, note)
        self.compilations.append(made)
        ours = str(getattr(self.fn, "__module__", "")).partition(".")[0] == "mycelia"  # not the user's to change
        if made.number > NOTICE_AFTER and not self._noticed and not ours:
            self._noticed = True
            notify(self.name, made)

    def _keep(self, key: Any, entry: Entry) -> None:
        self._clock += 1
        entry.used = self._clock
        self.entries.setdefault(key, []).insert(0, entry)
        if self.kept > self.cache_limit:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        key, bucket = min(self.entries.items(), key=lambda item: min(e.used for e in item[1]))
        gone = min(bucket, key=lambda e: e.used)
        bucket.remove(gone)
        if not bucket:
            del self.entries[key]
        for c in self.compilations:
            if c.entry is gone:
                _ = c.seconds  # keeps the time
                c.entry = None


def _is_input(x: Any) -> bool:
    return isinstance(x, Tensor) and not isinstance(x, Parameter)


def _put_back(tensor: Tensor, value: Any) -> None:
    tensor._value = value


def jit(
    function: Callable[..., Any] | None = None,
    *,
    capture_mode: str = "ast",
    jit_level: str = "O1",
    dynamic: int = 0,
    fullgraph: bool = False,
    backend: str = "",
    cache_limit: int = CACHE_LIMIT,
    **options: Any,
) -> Any:
    """Compile a function, method or Cell.

    Args:
        function: what to compile; without it, a decorator is returned.
        capture_mode: ``"ast"``, ``"bytecode"`` or ``"trace"``; there is one way of capturing, so they all
            mean the same here.
        jit_level: ``"O0"`` or ``"O1"``.
        dynamic: 1 to announce changing shapes: an axis of an argument that is met with a second length is padded
            from then on, to powers of two, where that does not change the result (see :mod:`mycelia.frontend.padding`);
            0 compiles every shape.
        fullgraph: kept for compatibility: the whole function is always one graph.
        backend: ``""`` or ``"ms_backend"``.
        cache_limit: how many graphs the function keeps; the least recently used one is dropped for another.

    Returns:
        A callable of the same arguments. Tensors are inputs. Python values are constants and part of the key
        under which a compiled graph is kept; ints and floats become inputs at their second value if the
        program only computes with them. :func:`mycelia.explain_recompiles` tells why it was compiled.

    Raises:
        ArgumentTypeError: ``function`` is not callable, or a coroutine or generator function; an unknown option.
        ArgumentValueError: an option has an unknown value.

    >>> import mycelia as ms
    >>> @ms.jit
    ... def f(x):
    ...     return x * 2 if x.sum() > 0 else -x
    >>> print(f(ms.Tensor([1.0, 2.0])), f(ms.Tensor([-1.0, -2.0])))
    [2. 4.] [1. 2.]
    """
    try:
        check_options(
            options, capture_mode=capture_mode, jit_level=jit_level, dynamic=dynamic, backend=backend,
            cache_limit=cache_limit,
        )  # fmt: skip
        if function is not None:
            check_function(function)
    except MyceliaError as error:
        error.__traceback__ = shown_traceback(error)
        raise
    if function is None:
        return functools.partial(
            jit, capture_mode=capture_mode, jit_level=jit_level, dynamic=dynamic, fullgraph=fullgraph,
            backend=backend, cache_limit=cache_limit, **options,
        )  # fmt: skip
    if isinstance(function, Jit):
        return function
    if hasattr(function, "construct"):  # a Cell stays a Cell, compiled whenever it is called
        function.__dict__["_jit_requested"] = True
        function.__dict__["_jit_options"] = {"cache_limit": cache_limit, "dynamic": bool(dynamic)}
        return function
    return Jit(function, cache_limit=cache_limit, dynamic=bool(dynamic))


def _call_compiled(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run any callable compiled, keeping its executables with the object it belongs to."""
    owner, key = _place(fn)
    calls = owner.__dict__.get("_compiled_calls")
    if calls is None:
        calls = owner.__dict__["_compiled_calls"] = {}
    held = calls.get(key)
    if held is None:
        held = calls[key] = Jit(fn, **owner.__dict__.get("_jit_options", {}))
    return held(*args, **kwargs)


def _place(fn: Any) -> tuple[Any, Any]:
    """The object whose ``__dict__`` keeps a callable's executables, and the key there."""
    described = getattr(fn, "compile_key", None) if hasattr(type(fn), "compile_key") else None
    if described is not None:
        owner, key = _place(fn.fn)
        return owner, (key, described)
    if isinstance(fn, MethodType):
        return (fn.__self__, fn.__func__) if hasattr(fn.__self__, "__dict__") else (fn.__func__, fn.__self__)
    return fn, None


dispatch.set_compiler(_call_compiled)
dispatch.set_converter(convert)
