"""Run a graph with each operator's lowering.

On concrete arrays this is the interpreter, the executable definition of what a graph means; called
under ``jax.jit`` the same loop is the lowering to XLA. Where an operator has a kernel for the device, that is used,
but not inside ``vmap``: what maps rows knows nothing of kernels. What a node becomes carries its operator's name
and its place in the graph, from which a profile tells the user's line.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax

from mycelia.ir.graph import Graph, Value
from mycelia.ir.primitive import Primitive


class _State(threading.local):
    plain = False


_state = _State()


@contextmanager
def without_kernels() -> Iterator[None]:
    """Operators are computed by their ``lower`` alone."""
    before, _state.plain = _state.plain, True
    try:
        yield
    finally:
        _state.plain = before


def computed(op: Primitive, arrays: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """What an operator makes of arrays: by its kernel if it has one that serves them, else by its lowering."""
    if op.kernel is not None and not _state.plain:
        made = op.kernel(*arrays, **attrs)
        if made is not NotImplemented:
            return made
    return op.lower(*arrays, **attrs)


def evaluate(graph: Graph, args: Sequence[Any], rules: Mapping[str, Callable[..., Any]] | None = None) -> list[Any]:
    """The outputs of ``graph`` for arrays ``args``, one for each parameter.

    ``rules`` gives other ways to compute operators, by their names.

    Raises:
        ValueError: the number of arguments is not the number of parameters.
    """
    if len(args) != len(graph.params):
        raise ValueError(f"graph {graph.name} takes {len(graph.params)} arguments, got {len(args)}")
    env: dict[Value, Any] = dict(zip(graph.params, args, strict=True))
    for place, node in enumerate(graph.nodes):
        arrays = [env[v] for v in node.inputs]
        with jax.named_scope(f"{node.op.name}.{place}"):  # a profile reads the operators of a kernel from it
            if rules and node.op.name in rules:
                out = rules[node.op.name](*arrays, **node.attrs)
            else:
                out = computed(node.op, arrays, node.attrs)
        if node.op.multi:
            for value, array in zip(node.outputs, out, strict=True):
                env[value] = array
        else:
            env[node.outputs[0]] = out
    return [env[v] for v in graph.outputs]
