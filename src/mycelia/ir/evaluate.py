"""Run a graph with each operator's lowering.

On concrete arrays this is the interpreter, the executable definition of what a graph means; called
under ``jax.jit`` the same loop is the lowering to XLA. Where an operator has a kernel for the device, that is used,
but not inside ``vmap``, nor where tensors are spread over devices: what
maps rows or cuts tensors knows nothing of kernels. What a node becomes carries its operator's name
and its place in the graph, from which a profile tells the user's line.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp

from mycelia.core import cluster, layout
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.primitive import COLLECTIVE, OWN_PART, Primitive
from mycelia.ir.rewriter import all_graphs, has_collectives


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
    if op.kernel is not None and not _state.plain and not layout.in_use():
        made = op.kernel(*arrays, **attrs)
        if made is not NotImplemented:
            return made
    return op.lower(*arrays, **attrs)


def after(x: Any, earlier: Any) -> Any:
    """``x``, in a program in which ranks communicate, computed after ``earlier`` has come; None: at any time.

    XLA orders what does not depend on each other as it likes, differently in different programs, and it takes barriers
    out before it does. Ranks whose programs differ would then meet in different orders: messages would be mixed up, or
    wait for each other. So ``x`` is made to depend on ``earlier``, for a rank that there is none of.
    """
    if earlier is None:
        return x
    never = (jax.lax.axis_index(cluster.AXIS) == 1 << 30) & (earlier.ravel()[0] == 0)
    return jnp.where(never, jnp.ones_like(x), x)  # no zeros: they may be what x is


def _meets(node: Node) -> bool:
    if COLLECTIVE in node.op.effects:
        return True
    return any(has_collectives(held) for _, held in node.subgraphs)


def evaluate(graph: Graph, args: Sequence[Any], rules: Mapping[str, Callable[..., Any]] | None = None) -> list[Any]:
    """The outputs of ``graph`` for arrays ``args``, one for each parameter.

    ``rules`` gives other ways to compute operators, by their names.

    Raises:
        ValueError: the number of arguments is not the number of parameters.
    """
    if len(args) != len(graph.params):
        raise ValueError(f"graph {graph.name} takes {len(graph.params)} arguments, got {len(args)}")
    env: dict[Value, Any] = dict(zip(graph.params, args, strict=True))
    ordered = cluster.place().size > 1 and any(OWN_PART in n.op.effects for g in all_graphs(graph) for n in g.nodes)
    last = None
    for place, node in enumerate(graph.nodes):
        arrays = [env[v] for v in node.inputs]
        meets = ordered and _meets(node)
        if meets and arrays:
            arrays[0] = after(arrays[0], last)
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
        if meets:
            last = next((env[v] for v in node.outputs if env[v].size), last)
    return [env[v] for v in graph.outputs]
