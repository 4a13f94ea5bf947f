"""A staged program that stands on its own: a graph, and what is needed to call it without its source.

``stage_program`` runs a function or Cell once on symbolic tensors, as ``jit`` does, and keeps the graph
together with the description of what goes in and comes out: the nest, names and types of the inputs, the
state that the graph reads (parameters, other tensors, streams of random numbers), which of it the graph
writes, and the nest of the outputs. ``export`` writes a program to a file, and ``nn.GraphCell`` runs one.

The parameters of the graph are the input tensors in the order of the nest, then the state in its order. The
outputs are the output tensors, then the new values of the state that is written, then those of the inputs
that are written.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mycelia.core import tree
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    ShapeError,
    StateError,
    UnsupportedError,
)
from mycelia.frontend.convert import convert
from mycelia.frontend.effects import raise_p
from mycelia.frontend.guards import Guards
from mycelia.ir.builder import Builder, restoring
from mycelia.ir.graph import Graph
from mycelia.ir.types import TensorType
from mycelia.ops.random import _seeded, default_generator, stream_of
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import type_of, value_in_graph
from mycelia.tensor.mode import is_staging, staging
from mycelia.tensor.tensor import wrap

PARAMETER, BUFFER, RANDOM = "parameter", "buffer", "random"


@dataclass
class StateSpec:
    """One tensor that a program reads or writes besides its inputs.

    Attributes:
        kind: ``"parameter"``, ``"buffer"`` (any other tensor), or ``"random"`` (a stream of random numbers of
            the process, which ``set_seed`` sets; it has no value of its own).
        name: unique among the parameters and buffers of the program.
        type: dtype and shape.
        value: the tensor; None for ``"random"``.
        requires_grad: of a parameter.
        stream: 0 for the default random stream, else the seed that names one.
    """

    kind: str
    name: str
    type: TensorType
    value: Tensor | None = None
    requires_grad: bool = False
    stream: int = 0


@dataclass
class Program:
    """A graph that can be called without its source.

    Attributes:
        name: of the function or Cell.
        graph: see the module's description for the order of parameters and outputs.
        input_names: one for each positional argument.
        in_tree: the nest of the arguments, a tuple.
        inputs: for each leaf its TensorType, or ``Fixed`` for a Python value that was staged in.
        out_tree: the nest of the result.
        outputs: for each leaf None for a tensor, or ``Fixed``.
        state: what the graph reads and writes besides.
        state_writes: indices into ``state`` of what is written.
        input_writes: indices among the input tensors of those that are written in place.
        training: whether it was staged in training mode; a graph has one mode.
        producer_name, producer_version, user_info: who made it, and notes of the user's (str to str).
        raises: whether running the graph may leave an error (see :mod:`mycelia.frontend.effects`).
    """

    name: str
    graph: Graph
    input_names: list[str]
    in_tree: tree.TreeDef
    inputs: list[TensorType | Fixed]
    out_tree: tree.TreeDef
    outputs: list[Fixed | None]
    state: list[StateSpec] = field(default_factory=list)
    state_writes: list[int] = field(default_factory=list)
    input_writes: list[int] = field(default_factory=list)
    training: bool = False
    producer_name: str = "mycelia"
    producer_version: str = ""
    user_info: dict[str, str] = field(default_factory=dict)
    raises: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.raises = _can_raise(self.graph)

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        return self

    def __repr__(self) -> str:
        mode = "training" if self.training else "inference"
        return f"<program {self.signature()} in {mode} mode, {len(self.graph.nodes)} nodes>"

    def signature(self) -> str:
        """The name and the inputs in words: ``Net(x: float32[4,3])``."""
        leaves = zip(self.leaf_names(), self.inputs, strict=True)
        return f"{self.name}({', '.join([f'{n}: {t}' for n, t in leaves if not isinstance(t, Fixed)])})"

    def leaf_names(self) -> list[str]:
        """A name for each leaf of the inputs: ``x``, ``state[0]``, ``batch['mask']``."""
        found: list[str] = []
        for name, child in zip(self.input_names, self.in_tree.children, strict=True):
            found += leaf_paths(name, child)
        return found

    def output_names(self) -> list[str]:
        """A name for each leaf of the outputs: ``output``, ``output[0]``, ``output['logits']``."""
        return leaf_paths("output", self.out_tree)

    def bind(self, args: Sequence[Any], where: str) -> list[Tensor]:
        """The input tensors, in order, of the arguments of a call.

        Python values that were staged in may be left out, if all are; given ones must be equal.

        Raises:
            ArgumentTypeError: the count of arguments, a nest or the type of an argument is another.
            ShapeError, DTypeError: a tensor has another shape or dtype.
            ArgumentValueError: a Python value is another than the one staged in.
        """
        children, names = self.in_tree.children, self.input_names
        holds = self._holding_tensors()
        if len(args) == len(children):
            chosen = list(range(len(children)))
        elif len(args) == len(holds):
            chosen = holds
        else:
            taken = f"{len(holds)} ({', '.join([names[i] for i in holds])})" if holds else "none"
            raise ArgumentTypeError(
                where, message=f"got {len(args)} inputs; it takes {taken}",
                hint=f"it was exported as {self.signature()}",
            )  # fmt: skip
        starts = [0]
        for child in children:
            starts.append(starts[-1] + child.num_leaves)
        tensors: list[Tensor] = []
        for i, arg in zip(chosen, args, strict=True):
            leaves = _gather(children[i], arg, names[i], where)
            for (path, value), wanted in zip(leaves, self.inputs[starts[i] : starts[i + 1]], strict=True):
                if isinstance(wanted, Fixed):
                    _check_fixed(value, wanted, path, where)
                else:
                    tensors.append(_checked(value, wanted, path, where))
        return tensors

    def _holding_tensors(self) -> list[int]:
        """The positions of the arguments that hold a tensor or nothing at all."""
        found, start = [], 0
        for i, child in enumerate(self.in_tree.children):
            leaves = self.inputs[start : start + child.num_leaves]
            if not leaves or any(not isinstance(x, Fixed) for x in leaves):
                found.append(i)
            start += child.num_leaves
        return found

    def result(self, tensors: Sequence[Tensor]) -> Any:
        """The output nest of the output tensors."""
        it = iter(tensors)
        return tree.unflatten(self.out_tree, [next(it) if leaf is None else leaf.value for leaf in self.outputs])

    @property
    def n_outputs(self) -> int:
        """How many of the graph's outputs belong to the result."""
        return sum(leaf is None for leaf in self.outputs)


@dataclass(frozen=True)
class Fixed:
    """A leaf that is not a tensor: a Python value that is part of the program."""

    value: Any


def stage_program(fn: Any, args: Sequence[Any], where: str, notes: dict[str, Any] | None = None) -> Program:
    """Stage a Cell, function or compiled function for arguments like these.

    Args:
        fn: what to stage; its state is left as it is.
        args: positional arguments: nests of Tensors and Python values.
        where: the function to name in errors.
        notes: what those who stage find in the builder's notes.

    Raises:
        ArgumentTypeError: ``fn`` is not callable, or an argument is a NumPy array.
        UnsupportedError: an argument has a length that is not known.
        StateError: called while a graph is being staged.

    >>> import mycelia as ms
    >>> stage_program(lambda x, k: x * k, (ms.Tensor([1.0, 2.0]), 3), "export").signature()
    '<lambda>(x: float32[2])'
    """
    if is_staging():
        raise StateError(where, message="it was called inside a compiled function", hint="call it outside")
    if not callable(fn) or isinstance(fn, type):
        raise ArgumentTypeError(where, "net", got=_described(fn), takes="a Cell or a function")
    named = getattr(fn, "__name__", None) or type(fn).__name__
    builder = Builder(named)
    builder.notes.update(notes or {}, guards=Guards())
    inner: list[Tensor] = []
    names = _argument_names(fn, len(args))

    def symbolic(x: Any) -> Any:
        if isinstance(x, Tensor):
            if -1 in x.shape:
                raise UnsupportedError(
                    where, "inputs", got=f"a Tensor whose shape varies, {x.shape}", takes="Tensors of one shape",
                    hint="export a file for each shape, or pad the inputs to one",
                )  # fmt: skip
            inner.append(wrap(builder.param(type_of(x))))
            return inner[-1]
        if isinstance(x, np.ndarray):
            raise ArgumentTypeError(where, "inputs", got="a NumPy array", takes="Tensors and Python values")
        return x

    given, in_tree = tree.flatten(tuple(args))
    kept = [symbolic(x) for x in given]
    inputs: list[TensorType | Fixed] = [type_of(x) if isinstance(x, Tensor) else Fixed(x) for x in kept]
    with restoring(builder, _put_back), staging(builder):
        out = convert(fn)(*tree.unflatten(in_tree, kept))
        leaves, out_tree = tree.flatten(out)
        values = [value_in_graph(x) for x in leaves if isinstance(x, Tensor)]
        inner_ids = {id(t) for t in inner}
        written = [t for t, _ in builder.written.values() if id(t) not in inner_ids]
        input_writes = [i for i, t in enumerate(inner) if t._value is not builder.explicit[i]]
        values += [value_in_graph(t) for t in written]
        values += [value_in_graph(inner[i]) for i in input_writes]
        graph = builder.finish(values)
    captured = {id(t): (t, value) for t, value in builder.captured}
    for t in written:  # a tensor that is written and never read
        if id(t) not in captured:
            captured[id(t)] = (t, graph.add_param(type_of(t)))
    order = _in_order(fn, [t for t, _ in captured.values()])
    graph.params = [*builder.explicit, *[captured[id(t)][1] for t in order]]
    position = {id(t): i for i, t in enumerate(order)}
    return Program(
        name=named, graph=graph, input_names=names, in_tree=in_tree, inputs=inputs, out_tree=out_tree,
        outputs=[None if isinstance(x, Tensor) else Fixed(x) for x in leaves], state=_described_state(fn, order),
        state_writes=[position[id(t)] for t in written], input_writes=input_writes,
        training=bool(getattr(fn, "training", False)),
    )  # fmt: skip


def _can_raise(graph: Graph) -> bool:
    """Whether a graph or one that it holds may leave an error; each is looked at once, however often it is held."""
    seen, stack = {graph}, [graph]
    while stack:
        for node in stack.pop().nodes:
            if node.op is raise_p:
                return True
            for _, held in node.subgraphs:
                if held not in seen:
                    seen.add(held)
                    stack.append(held)
    return False


def random_stream(stream: int) -> Tensor:
    """The state of the random stream that a program names."""
    return stream_of(stream or None, None, "random")._state


def _put_back(tensor: Tensor, value: Any) -> None:
    tensor._value = value


def _argument_names(fn: Any, count: int) -> list[str]:
    known = getattr(fn, "exported_input_names", None)
    if known is not None and len(known) == count:
        return list(known)
    names: list[str] = []
    try:
        for parameter in inspect.signature(getattr(fn, "construct", fn)).parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                names += [f"{parameter.name}[{i}]" for i in range(count - len(names))]
            elif parameter.kind is not parameter.KEYWORD_ONLY and parameter.kind is not parameter.VAR_KEYWORD:
                names.append(parameter.name)
    except (TypeError, ValueError):  # a builtin without a signature
        names = []
    names = names[:count]
    return names + [f"input{i}" for i in range(len(names), count)]


def _in_order(fn: Any, captured: list[Tensor]) -> list[Tensor]:
    """Captured tensors: the parameters of a Cell in its order, then the rest as they were met."""
    listed = list(fn.get_parameters()) if hasattr(fn, "get_parameters") else []
    rank = {id(p): i for i, p in enumerate(listed)}
    return sorted(captured, key=lambda t: rank.get(id(t), len(rank)))


def _described_state(fn: Any, tensors: list[Tensor]) -> list[StateSpec]:
    streams = {id(default_generator._state): 0, **{id(g._state): number for number, g in _seeded.items()}}
    paths = _tensor_paths(fn)
    taken: set[str] = set()
    specs: list[StateSpec] = []
    for t in tensors:
        if id(t) in streams:
            specs.append(StateSpec(RANDOM, "random", type_of(t), stream=streams[id(t)]))
            continue
        is_parameter = isinstance(t, Parameter)
        base = t.name if isinstance(t, Parameter) else paths.get(id(t), "buffer")
        name, count = base, 0
        while name in taken:
            count += 1
            name = f"{base}${count}"
        taken.add(name)
        specs.append(
            StateSpec(
                PARAMETER if is_parameter else BUFFER, name, type_of(t), t,
                isinstance(t, Parameter) and t.requires_grad,
            )
        )  # fmt: skip
    return specs


def _tensor_paths(fn: Any) -> dict[int, str]:
    """The attribute path of each plain tensor that a Cell holds."""
    if not hasattr(fn, "cells_and_names"):
        return {}
    found: dict[int, str] = {}
    for path, cell in fn.cells_and_names():
        for name, value in getattr(cell, "named_buffers", cell.__dict__).items():
            if isinstance(value, Tensor) and not isinstance(value, Parameter):
                found.setdefault(id(value), f"{path}.{name}" if path else name)
    return found


def leaf_paths(name: str, treedef: tree.TreeDef) -> list[str]:
    """Names for the leaves of a nest that is called ``name``."""
    kind = treedef.kind
    if treedef is tree.LEAF or not isinstance(kind, type):
        return [name]
    paths: list[str] = []
    for i, child in enumerate(treedef.children):
        key = treedef.spec[i] if treedef.spec is not None else i
        plain = kind in (tuple, list) or issubclass(kind, dict)
        paths += leaf_paths(f"{name}[{key!r}]" if plain else f"{name}.{key}", child)
    return paths


def _gather(treedef: tree.TreeDef, value: Any, path: str, where: str) -> Iterator[tuple[str, Any]]:
    """The leaves of ``value``, which must have the nest of ``treedef``, with their names."""
    kind = treedef.kind
    if not isinstance(kind, type):
        yield path, value
        return
    if issubclass(kind, dict):
        if not isinstance(value, dict) or set(value) != set(treedef.spec):
            got = f"a dict with the keys {list(value)}" if isinstance(value, dict) else _described(value)
            raise ArgumentTypeError(where, path, got=got, takes=f"a dict with the keys {list(treedef.spec)}")
        parts = [(f"{path}[{key!r}]", value[key]) for key in treedef.spec]
    elif treedef.spec is not None and not isinstance(value, (tuple, list)):
        if any(not hasattr(value, name) for name in treedef.spec):
            raise ArgumentTypeError(
                where, path, got=_described(value), takes=f"a {kind.__name__} with {', '.join(treedef.spec)}"
            )
        parts = [(f"{path}.{name}", getattr(value, name)) for name in treedef.spec]
    else:
        count = len(treedef.children)
        if not isinstance(value, (tuple, list)) or len(value) != count:
            raise ArgumentTypeError(where, path, got=_described(value), takes=f"a {kind.__name__} of {count} elements")
        names = treedef.spec or range(count)
        parts = [
            (f"{path}.{name}" if treedef.spec else f"{path}[{name}]", v) for name, v in zip(names, value, strict=True)
        ]
    for child, (name, part) in zip(treedef.children, parts, strict=True):
        yield from _gather(child, part, name, where)


def _described(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)} elements"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    return f"a {type(value).__name__}"


def _checked(value: Any, wanted: TensorType, path: str, where: str) -> Tensor:
    if not isinstance(value, Tensor):
        if not isinstance(value, (bool, int, float, complex, np.ndarray, np.generic)):
            raise ArgumentTypeError(where, path, got=_described(value), takes=f"a Tensor ({wanted})")
        value = Tensor(value)
    hint = "a graph has the types it was exported with; export it again for others"
    if value.dtype is not wanted.dtype:
        raise DTypeError(where, path, got=f"dtype {value.dtype}", takes=f"dtype {wanted.dtype}", hint=hint)
    if value.shape != wanted.shape:
        raise ShapeError(where, path, got=f"shape {value.shape}", takes=f"shape {wanted.shape}", hint=hint)
    return value


def _check_fixed(value: Any, wanted: Fixed, path: str, where: str) -> None:
    same = type(value) is type(wanted.value) and (value == wanted.value or value is wanted.value)
    if not same and not (isinstance(value, float) and value != value and wanted.value != wanted.value):
        raise ArgumentValueError(
            where, path, got=_described(value), takes=f"{wanted.value!r}, which is part of the exported graph",
            hint="leave it out, or export a graph that takes a Tensor",
        )  # fmt: skip


def call_program(program: Program, run: Callable[[Sequence[Tensor]], Sequence[Tensor]], args: Sequence[Any],
                 state: Sequence[Tensor], where: str, store: Callable[[Tensor, Tensor], None]) -> Any:  # fmt: skip
    """Bind arguments, run the graph on them and the state with ``run``, store what is written, nest the result."""
    inputs = program.bind(args, where)
    results = run([*inputs, *state])
    n = program.n_outputs
    for i in program.state_writes:
        store(state[i], results[n])
        n += 1
    for i in program.input_writes:
        store(inputs[i], results[n])
        n += 1
    return program.result(results[: program.n_outputs])
