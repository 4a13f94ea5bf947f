"""Running a compiled graph on tensors, differentiably.

While a gradient is being recorded the graph runs as two: a forward executable that also gives residuals,
and a backward one that takes them. Under a further gradient the backward graph that starts from the
arguments is used, so that the second derivative sees everything.

The backward pass of operators that ran one by one is compiled here too, when it repeats
(:mod:`mycelia.autodiff.repeated`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mycelia.autodiff import repeated
from mycelia.autodiff.control import recomputing
from mycelia.autodiff.rules import zeros
from mycelia.autodiff.transform import Split, condensed, residual_args, split
from mycelia.compiler.executable import executable
from mycelia.compiler.pipeline import optimize
from mycelia.ir.control import call_p
from mycelia.ir.graph import Graph
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, tracked
from mycelia.tensor.mode import RECORD, STAGE, state
from mycelia.tensor.tape import TapeNode
from mycelia.tensor.tensor import wrap


def run_graph(graph: Graph, args: Sequence[Tensor]) -> list[Tensor]:
    """The outputs of ``graph`` for concrete tensors; recorded if a gradient is being taken, staged inside a graph."""
    if state.phase == STAGE:
        return list(apply(call_p, *args, graph=graph))
    if state.phase == RECORD and any(x._node is not None for x in args):
        return _recorded(graph, args)
    return [wrap(v) for v in executable(graph)([x._value for x in args])]


def _recorded(graph: Graph, args: Sequence[Tensor]) -> list[Tensor]:
    part = split(condensed(graph), tuple(x._node is not None and x.dtype.is_inexact for x in args))
    values = executable(part.forward)([x._value for x in args])
    n_out = len(graph.outputs)
    inputs = tuple(x._snapshot() for x in args)

    def pullback(cts: list[Tensor | None]) -> list[Tensor | None]:
        given = [zeros(graph.outputs[i].type) if cts[i] is None else cts[i] for i in part.ct_outputs]
        result: list[Tensor | None] = [None] * len(inputs)
        for i, ct in zip(part.ct_params, _run_backward(part, n_out, given, inputs, values), strict=True):  # type: ignore[arg-type]
            result[i] = ct
        return result

    node = TapeNode(None, inputs, {}, tuple(values[:n_out]), pullback)
    return [tracked(v, node, i) for i, v in enumerate(values[:n_out])]


def _run_backward(
    part: Split, n_out: int, given: list[Tensor], inputs: tuple[Tensor, ...], values: list[object]
) -> list[Tensor]:
    if state.phase == RECORD:
        return run_graph(recomputing(part, n_out, given, list(inputs)), [*given, *inputs])
    return run_graph(part.backward, [*given, *residual_args(part, inputs, [wrap(v) for v in values], n_out)])


def _compiled_backward(graph: Graph) -> tuple[list[int], repeated.Program]:
    """The program of a backward graph without the parameters that nothing reads, and the places of the others.

    The graph is simplified first: some of what the rules were given is only asked for its shape.
    """
    small = optimize(graph, for_device=False)
    read = {v for node in small.nodes for v in node.inputs} | set(small.outputs)
    places = [i for i, p in enumerate(small.params) if p in read]
    small.params = [small.params[i] for i in places]
    return places, executable(small)


repeated.set_compiler(_compiled_backward)
