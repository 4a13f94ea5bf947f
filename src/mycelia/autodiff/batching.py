"""``vmap`` of graphs: what depends on a mapped argument goes into one node, the rest stays outside.

Batchedness flows through the graph, through the graphs that control flow holds as well (loops by a
fixpoint). ``stage_vmap`` copies a graph into the builder at hand: nodes that depend on no mapped argument are
copied as they are and run once; the others go into the graph of a single ``vmap`` node, which takes what it
needs from outside as unmapped operands. So a parameter or a random state that advances in the same way for all
rows is written once, unmapped, and random operators draw the same numbers for every row. What prints or
checks runs after the ``vmap`` node, in order: a line prints the whole batch, a check must hold for all rows.

The node is differentiated by transforming the graph it holds. Reverse, the cotangent of an unmapped argument
is the sum over the rows (:mod:`mycelia.autodiff.row_sums`); forward, the tangent of an argument is mapped
where the argument is.
"""

from __future__ import annotations

from collections.abc import Sequence

from mycelia.autodiff.forward import FORWARD_RULES, Tangents, mask_of, parted, pushed
from mycelia.autodiff.row_sums import mapped_and_summed
from mycelia.autodiff.rules import zeros_like
from mycelia.autodiff.transform import CONTROL_RULES, Pullback, restage, split
from mycelia.core.errors import UnsupportedError
from mycelia.ir.builder import Builder
from mycelia.ir.control import vmap_p
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.rewriter import graph_has_effects
from mycelia.ops.reduction import all as all_
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, value_in_graph
from mycelia.tensor.mode import current_builder, staging
from mycelia.tensor.tensor import wrap

Flags = tuple[bool, ...]


def batched_outputs(graph: Graph, flags: Flags) -> Flags:
    """Which outputs of ``graph`` depend on the parameters in ``flags``.

    Raises:
        UnsupportedError: a node with effects depends on them.
    """
    batched = batched_values(graph, flags)
    return tuple([v in batched for v in graph.outputs])


def batched_values(graph: Graph, flags: Flags) -> set[Value]:
    """The values of ``graph`` that depend on the parameters in ``flags``; see :func:`batched_outputs`."""
    key = ("batched", flags)
    if key not in graph.derived:
        batched: set[Value] = {p for p, f in zip(graph.params, flags, strict=True) if f}
        for node in graph.nodes:
            inputs = tuple([v in batched for v in node.inputs])
            if node.op.effects and any(inputs):
                raise _effect(node)
            batched.update(v for v, f in zip(node.outputs, batched_results(node, inputs), strict=True) if f)
        graph.derived[key] = batched
    found: set[Value] = graph.derived[key]
    return found


def _effect(node: Node) -> UnsupportedError:
    return UnsupportedError(
        "vmap", message=f"'{node.op.name}' inside control flow depends on a mapped argument, so its rows "
        "would run in no order",
        hint="print or check outside the branch or loop, or return the value and do it outside vmap",
        location=node.location,
    )  # fmt: skip


def batched_results(node: Node, flags: Flags) -> Flags:
    """Which results of a node depend on the inputs in ``flags``."""
    name, attrs = node.op.name, node.attrs
    if not any(flags):
        return (False,) * len(node.outputs)
    if name in ("call", "custom_vjp_call", "vmap"):
        return batched_outputs(attrs["graph"], flags)
    if name == "cond":
        graphs = (attrs["true_graph"], attrs["false_graph"])
        if flags[0]:
            _refuse_effects(graphs, node)
            return (True,) * len(node.outputs)
        first, second = [batched_outputs(g, flags[1:]) for g in graphs]
        return tuple([a or b for a, b in zip(first, second, strict=True)])
    if name == "while_loop":
        n_const = attrs["n_const"]
        body, test = attrs["body_graph"], attrs["cond_graph"]
        flags = _fixpoint(body, flags, n_const, len(flags) - n_const)
        if batched_outputs(test, flags)[0]:
            _refuse_effects((body, test), node)
            return (True,) * len(node.outputs)
        return flags[n_const:]
    if name == "scan":
        n_const, n_carry = attrs["n_const"], attrs["n_carry"]
        body = attrs["body_graph"]
        flags = _fixpoint(body, flags, n_const, n_carry)
        return (*flags[n_const : n_const + n_carry], *batched_outputs(body, flags)[n_carry:])
    return (True,) * len(node.outputs)


def _fixpoint(body: Graph, flags: Flags, n_const: int, n_carry: int) -> Flags:
    """The flags of a loop body's inputs once what it carries has gone round."""
    while True:
        outs = batched_outputs(body, flags)[:n_carry]
        span = flags[n_const : n_const + n_carry]
        grown = tuple([a or b for a, b in zip(span, outs, strict=True)])
        if grown == span:
            return flags
        flags = (*flags[:n_const], *grown, *flags[n_const + n_carry :])


def _refuse_effects(graphs: Sequence[Graph], node: Node) -> None:
    for graph in graphs:
        if graph_has_effects(graph):
            raise _effect(next((n for n in graph.nodes if n.op.effects), node))


def stage_vmap(
    graph: Graph, args: Sequence[Tensor], mapped: Sequence[bool], size: int
) -> tuple[list[Tensor], list[bool]]:
    """Stage ``graph`` on every row of the mapped arguments.

    Args:
        graph: takes one row of each mapped argument, and the others whole.
        args: a tensor for each parameter.
        mapped: which have their rows along axis 0.
        size: the number of rows.

    Returns:
        The outputs, and which of them are mapped: those have their rows along axis 0, the others are the same
        for all rows and come without that axis.

    Raises:
        UnsupportedError: what prints or checks depends on a mapped argument inside a branch or loop.
    """
    inner = Builder(graph.name, parent=current_builder())
    outside: dict[Value, Tensor] = {}
    rows: dict[Value, Tensor] = {}
    batched: set[Value] = set()
    deferred: list[Node] = []
    for param, arg, is_mapped in zip(graph.params, args, mapped, strict=True):
        if is_mapped:
            rows[param] = wrap(inner.param(param.type))
            batched.add(param)
        else:
            outside[param] = arg
    for node in graph.nodes:
        inside = any(v in rows for v in node.inputs)
        if node.op.effects and not node.outputs and (inside or deferred):
            deferred.append(node)
        elif not inside:
            outside.update(zip(node.outputs, restage(node, [outside[v] for v in node.inputs]), strict=True))
        else:
            flags = tuple([v in batched for v in node.inputs])
            batched.update(v for v, f in zip(node.outputs, batched_results(node, flags), strict=True) if f)
            with staging(inner):
                made = restage(node, [rows[v] if v in rows else outside[v] for v in node.inputs])
            rows.update(zip(node.outputs, made, strict=True))
    needed = list(dict.fromkeys(v for v in [*graph.outputs, *[v for n in deferred for v in n.inputs]] if v in rows))
    if needed:
        with staging(inner):
            body = inner.finish([value_in_graph(rows[v]) for v in needed])
        operands = [a for a, m in zip(args, mapped, strict=True) if m]
        lifted = [wrap(o) for o, _ in inner.lifted]
        flags = (*[True] * len(operands), *[False] * len(lifted))
        for value, result in zip(
            needed, apply(vmap_p, *operands, *lifted, graph=body, mapped=flags, size=size), strict=True
        ):
            outside[value] = result if value in batched else _only_row(result, size)
    for node in deferred:
        _after(node, [outside[v] for v in node.inputs], [v in batched for v in node.inputs])
    return [outside[v] for v in graph.outputs], [v in batched for v in graph.outputs]


def _only_row(x: Tensor, size: int) -> Tensor:
    """The value that all rows share."""
    if size == 0:
        raise UnsupportedError("vmap", message="a value that all rows share was asked of a mapped axis of length 0")
    return x[0]


def _after(node: Node, inputs: list[Tensor], batched: list[bool]) -> None:
    """Stage a node with effects on whole batches."""
    if node.op.name == "raise_unless" and batched[0]:
        inputs = [all_(inputs[0])]
    restage(node, inputs)


def _vmap_reverse(node: Node, inputs: list[Tensor], needs: list[bool]) -> tuple[list[Tensor], list[bool], Pullback]:
    graph, mapped, size = node.attrs["graph"], node.attrs["mapped"], node.attrs["size"]
    part = split(graph, tuple(needs))
    n_out = len(graph.outputs)
    results = list(apply(vmap_p, *inputs, graph=part.forward, mapped=mapped, size=size))
    live = [i in part.ct_outputs for i in range(n_out)]

    def pullback(cts: Sequence[Tensor | None]) -> list[Tensor | None]:
        given = [zeros_like(results[i]) if (ct := cts[i]) is None else ct for i in part.ct_outputs]
        kept = [inputs[i] if kind == "param" else results[n_out + i] for kind, i in part.residuals]
        flags = (*[True] * len(given), *[mapped[i] if kind == "param" else True for kind, i in part.residuals])
        summed = [not mapped[i] for i in part.ct_params]
        batched = batched_values(part.backward, flags)
        found = mapped_and_summed(part.backward, [*given, *kept], flags, size, summed, batched)
        result: list[Tensor | None] = [None] * len(inputs)
        for i, ct in zip(part.ct_params, found, strict=True):
            result[i] = ct
        return result

    return results[:n_out], live, pullback


def _vmap_forward(node: Node, inputs: list[Tensor], tangents: Tangents) -> tuple[list[Tensor], Tangents]:
    mask = mask_of(tangents)
    made = pushed(node.attrs["graph"], mask)
    given = [t for t in tangents if t is not None]
    flags = node.attrs["mapped"]
    both = (*flags, *[f for f, m in zip(flags, mask, strict=True) if m])
    results = apply(vmap_p, *inputs, *given, graph=made.graph, mapped=both, size=node.attrs["size"])
    return parted(results, made.out_mask)


CONTROL_RULES["vmap"] = _vmap_reverse
FORWARD_RULES["vmap"] = _vmap_forward
