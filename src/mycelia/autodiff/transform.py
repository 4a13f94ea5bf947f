"""Reverse-mode differentiation of graphs: graph in, graphs out.

``linearize`` copies a graph into the builder at hand and keeps, for each node on a path from an active
input, what its rule needs; the pullback it returns runs the rules in reverse order, adding their
operators to whatever builder is active then. ``split`` turns a graph into a forward graph that also gives
residuals, and a backward graph that takes them: the pullback is staged into a nested builder, and what it
lifts from the forward builder are the residuals. Control flow has rules of its own (``autodiff.control``),
built on ``split``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mycelia.autodiff.rules import pull_back
from mycelia.ir.builder import Builder
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.rewriter import Emitter, graph_has_effects, rewrite
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import value_in_graph
from mycelia.tensor.mode import current_builder, staging
from mycelia.tensor.tensor import wrap

Pullback = Callable[[Sequence[Tensor | None]], list[Tensor | None]]
#: A rule of a control-flow operator: node, inputs, which are active -> outputs, which are active, pullback.
ControlRule = Callable[[Node, list[Tensor], list[bool]], tuple[list[Tensor], list[bool], Pullback]]

CONTROL_RULES: dict[str, ControlRule] = {}

#: Key in ``derived`` of a called graph: another graph, equal but shorter, that derivatives are taken of.
DIFFERENTIATED_AS = "differentiated as"


def _as_it_is(graph: Graph) -> Graph:
    return graph


#: Set by the compiler: makes a graph smaller before it is differentiated, without changing what it computes.
_condense: Callable[[Graph], Graph] = _as_it_is


def set_condense(condense: Callable[[Graph], Graph]) -> None:
    """Install what makes a graph smaller before it is differentiated (the compiler does, on import)."""
    global _condense
    _condense = condense


def condensed(graph: Graph) -> Graph:
    """A graph that computes the same with fewer nodes; kept with the graph."""
    if "condensed" not in graph.derived:
        graph.derived["condensed"] = _condense(graph)
    found: Graph = graph.derived["condensed"]
    return found


@dataclass
class _Step:
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    needs: list[bool]
    pullback: Pullback
    node: Node


def linearize(
    graph: Graph, args: Sequence[Tensor], active: Sequence[bool]
) -> tuple[list[Tensor], list[bool], Pullback]:
    """Stage ``graph`` on ``args`` and give its outputs, which of them depend on active arguments, and the pullback.

    The pullback goes from output cotangents to argument cotangents (None for zero).
    """
    env: dict[Value, Tensor] = dict(zip(graph.params, args, strict=True))
    live: set[Value] = {p for p, a in zip(graph.params, active, strict=True) if a and p.type.dtype.is_inexact}
    steps: list[_Step] = []
    for node in graph.nodes:
        inputs = [env[v] for v in node.inputs]
        needs = [v in live for v in node.inputs]
        if not any(needs) or not node.op.differentiable:
            outs = restage(node, inputs)
        elif node.op.name in CONTROL_RULES:
            outs, out_live, back = CONTROL_RULES[node.op.name](node, inputs, needs)
            live.update(v for v, a in zip(node.outputs, out_live, strict=True) if a)
            steps.append(_Step(node.inputs, node.outputs, needs, back, node))
        else:
            outs = restage(node, inputs)
            live.update(v for v in node.outputs if v.type.dtype.is_inexact)
            steps.append(_Step(node.inputs, node.outputs, needs, _rule(node, inputs, outs, needs), node))
        env.update(zip(node.outputs, outs, strict=True))

    def pullback(cts: Sequence[Tensor | None]) -> list[Tensor | None]:
        gathered: dict[Value, Tensor] = {}

        def gather(value: Value, ct: Tensor | None) -> None:
            if ct is not None and value in live:
                gathered[value] = gathered[value] + ct if value in gathered else ct

        for value, ct in zip(graph.outputs, cts, strict=True):
            gather(value, ct)
        for step in reversed(steps):
            slots = [gathered.pop(v, None) for v in step.outputs]
            if all(s is None for s in slots):
                continue
            builder = current_builder()
            before, builder.location = builder.location, step.node.location
            try:
                grads = step.pullback(slots)
                for value, grad, needed in zip(step.inputs, grads, step.needs, strict=True):
                    if needed:
                        gather(value, grad)
            finally:
                builder.location = before
        return [gathered.get(p) for p in graph.params]

    return [env[v] for v in graph.outputs], [v in live for v in graph.outputs], pullback


def _rule(node: Node, inputs: list[Tensor], outs: list[Tensor], needs: list[bool]) -> Pullback:
    return lambda cts: pull_back(node.op, node.attrs, inputs, outs, cts, needs)


def restage(node: Node, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Add the same operator on other inputs to the builder at hand, with its location."""
    made = current_builder().add(node.op, tuple([value_in_graph(x) for x in inputs]), node.attrs, node.location)
    return [wrap(v) for v in made.outputs]


def stage_inline(graph: Graph, args: Sequence[Tensor]) -> list[Tensor]:
    """Copy all nodes of ``graph`` into the builder at hand with its parameters bound to ``args``."""
    env: dict[Value, Tensor] = dict(zip(graph.params, args, strict=True))
    for node in graph.nodes:
        env.update(zip(node.outputs, restage(node, [env[v] for v in node.inputs]), strict=True))
    return [env[v] for v in graph.outputs]


@dataclass(frozen=True)
class Split:
    """A graph differentiated.

    ``forward`` gives the outputs and then the residuals; ``backward`` takes the cotangents of the outputs
    listed in ``ct_outputs``, then what ``residuals`` lists (``("param", i)`` is argument i of the graph,
    ``("extra", k)`` is residual k of ``forward``), and gives the cotangents of the arguments listed in
    ``ct_params``.
    """

    forward: Graph
    backward: Graph
    ct_outputs: tuple[int, ...]
    residuals: tuple[tuple[str, int], ...]
    ct_params: tuple[int, ...]

    @property
    def extra_types(self) -> tuple[object, ...]:
        """Types of the residuals that ``forward`` returns."""
        n = len(self.forward.outputs) - sum(kind == "extra" for kind, _ in self.residuals)
        return self.forward.output_types[n:]


def split(graph: Graph, active: tuple[bool, ...], ct_mask: tuple[bool, ...] | None = None) -> Split:
    """Differentiate ``graph`` for the ``active`` arguments; kept with the graph, so done once.

    ``ct_mask`` says which outputs get a cotangent (all active ones by default).
    """
    key = ("split", active, ct_mask)
    if key not in graph.derived:
        whole: Split | None = graph.derived.get(("split", active, None))
        if ct_mask is not None and whole is not None and all(ct_mask[i] for i in whole.ct_outputs):
            return whole
        graph.derived[key] = _split(graph, active, ct_mask)
    result: Split = graph.derived[key]
    return result


def _split(graph: Graph, active: tuple[bool, ...], ct_mask: tuple[bool, ...] | None) -> Split:
    ahead = Builder(f"{graph.name}_forward")
    params = [wrap(ahead.param(v.type)) for v in graph.params]
    with staging(ahead):
        outs, out_live, pullback = linearize(graph, params, active)
    wanted = [a and (ct_mask is None or ct_mask[i]) for i, a in enumerate(out_live)]
    ct_outputs = tuple(i for i, w in enumerate(wanted) if w)
    back = Builder(f"{graph.name}_backward", parent=ahead)
    cts: list[Tensor | None] = [
        wrap(back.param(o.type)) if w else None for o, w in zip(graph.outputs, wanted, strict=True)
    ]  # fmt: skip
    with staging(back):
        grads = pullback(cts)
        ct_params = tuple(i for i, (g, a) in enumerate(zip(grads, active, strict=True)) if g is not None and a)
        back_graph = back.finish([value_in_graph(g) for i in ct_params if (g := grads[i]) is not None])
    position = {p._value: i for i, p in enumerate(params)}
    extras: list[Value] = []
    residuals: list[tuple[str, int]] = []
    for outer, _ in back.lifted:
        if outer in position:
            residuals.append(("param", position[outer]))
        else:
            residuals.append(("extra", len(extras)))
            extras.append(outer)
    with staging(ahead):
        ahead_graph = ahead.finish([*[value_in_graph(o) for o in outs], *extras])
    if ahead.captured:
        raise AssertionError("a differentiation rule captured a tensor from outside the graph")
    return Split(ahead_graph, back_graph, ct_outputs, tuple(residuals), ct_params)


def without_effects(graph: Graph) -> Graph:
    """``graph`` for another run of what has run before: it prints and raises nothing; kept with the graph."""
    if not graph_has_effects(graph):
        return graph
    if "without_effects" not in graph.derived:
        graph.derived["without_effects"] = rewrite(graph, _silenced)[0]
    silent: Graph = graph.derived["without_effects"]
    return silent


def _silenced(node: Node, inputs: tuple[Value, ...], attrs: dict[str, Any], emitter: Emitter) -> Sequence[Value] | None:
    return () if node.op.effects and not node.outputs else None


def residual_args(parts: Split, args: Sequence[Tensor], forward_outs: Sequence[Tensor], n_outputs: int) -> list[Tensor]:
    """The arguments of ``backward`` after the cotangents: taken from the arguments and extra outputs."""
    return [args[i] if kind == "param" else forward_outs[n_outputs + i] for kind, i in parts.residuals]
