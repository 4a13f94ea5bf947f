"""Run a graph with each operator's lowering.

On concrete arrays this is the interpreter, the executable definition of what a graph means; called
under ``jax.jit`` the same loop is the lowering to XLA. ``lowerings`` replaces single operators' rules
(kernels of a device).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mycelia.ir.graph import Graph, Value


def evaluate(graph: Graph, args: Sequence[Any], lowerings: Mapping[str, Callable[..., Any]] | None = None) -> list[Any]:
    """The outputs of ``graph`` for arrays ``args``, one for each parameter.

    Raises:
        ValueError: the number of arguments is not the number of parameters.
    """
    if len(args) != len(graph.params):
        raise ValueError(f"graph {graph.name} takes {len(graph.params)} arguments, got {len(args)}")
    env: dict[Value, Any] = dict(zip(graph.params, args, strict=True))
    rules = lowerings or {}
    for node in graph.nodes:
        lower = rules.get(node.op.name, node.op.lower)
        out = lower(*[env[v] for v in node.inputs], **node.attrs)
        if node.op.multi:
            for value, array in zip(node.outputs, out, strict=True):
                env[value] = array
        else:
            env[node.outputs[0]] = out
    return [env[v] for v in graph.outputs]
