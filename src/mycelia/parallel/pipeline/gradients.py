"""The programs of one stage: forward, and backward whole or in two parts.

Forward gives a stage's outputs and what backward needs of its inside. Backward takes the cotangents of what the stage
gives, and gives those of what it got; gradients of weights are added to sums that it takes and gives back.

In two parts, the first computes the cotangents of what the stage got, by the nodes that those need and no others; the
second computes the gradients of weights from what is left (arXiv 2401.10241). The first stage has nobody to send to,
so all of its work is in the second part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mycelia.autodiff.rules import accumulated
from mycelia.autodiff.transform import condensed, restage, split, stage_inline
from mycelia.ir.builder import Builder
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.types import TensorType
from mycelia.parallel.pipeline.cut import Part
from mycelia.parallel.pipeline.stages import Staged
from mycelia.tensor.dispatch import value_in_graph
from mycelia.tensor.mode import staging
from mycelia.tensor.tensor import wrap

#: What a program of backward takes or gives: a kind and a place among those of its kind.
Slot = tuple[str, int]


@dataclass(frozen=True)
class Backward:
    """A program of the backward pass.

    Attributes:
        graph: what is computed.
        takes: for each parameter where it comes from: ``("cotangent", k)`` of what the stage gives (the loss is the
            last), ``("param", k)`` a parameter of the forward graph, ``("extra", k)`` what forward gives besides,
            ``("passed", k)`` what the first part passes on, ``("sum", k)`` the sum of the gradients of a weight.
        gives: for each output: ``("received", k)`` the cotangent of what it got, ``("passed", k)``, ``("sum", k)``.
    """

    graph: Graph
    takes: tuple[Slot, ...]
    gives: tuple[Slot, ...]

    @property
    def donated(self) -> tuple[tuple[int, int], ...]:
        """Sums that take the place of the former ones."""
        places = {slot: k for k, slot in enumerate(self.gives) if slot[0] == "sum"}
        return tuple([(i, places[slot]) for i, slot in enumerate(self.takes) if slot in places])


@dataclass(frozen=True)
class Programs:
    """The programs of a stage.

    Attributes:
        part: the stage.
        forward: gives what the part's graph gives, then what ``Backward`` calls ``extra``.
        backward: one program, or the two parts.
        weights: of which of the program's state there are gradients.
        returns: of which received values (by place) a cotangent goes back.
        lively: of which given values a cotangent is wanted.
    """

    part: Part
    forward: Graph
    backward: tuple[Backward, ...]
    weights: tuple[int, ...]
    returns: tuple[int, ...]
    lively: tuple[int, ...]

    def sum_types(self) -> list[TensorType]:
        """The types of the sums of gradients."""
        count = len(self.part.graph.params) - len(self.part.state)
        return [self.part.graph.params[count + self.part.state.index(i)].type for i in self.weights]


def programs(staged: Staged, parts: Sequence[Part], trained: Sequence[int], in_two_parts: bool) -> list[Programs]:
    """The programs of all stages.

    Args:
        staged: the network.
        parts: its stages.
        trained: which of the program's state gradients are taken of.
        in_two_parts: backward of inputs and of weights apart.
    """
    live: set[Value] = set()
    made: list[Programs] = []
    for part in parts:
        found = _programs(part, live, set(trained), in_two_parts)
        live.update(part.given[k] for k in found.lively if k < len(part.given))
        made.append(found)
    return made


def _programs(part: Part, live: set[Value], trained: set[int], in_two_parts: bool) -> Programs:
    incoming = part.incoming
    active = [v in live for v in incoming]
    active += [False] * len(part.data) + [i in trained for i in part.state]
    mask = [True] * (len(part.given) + part.has_loss) + [False] * len(part.written)
    graph = part.graph if in_two_parts else condensed(part.graph)  # a loop of equal layers would join both parts
    parted = split(graph, tuple(active), tuple(mask))
    first_state = len(incoming) + len(part.data)
    takes: list[Slot] = [("cotangent", k) for k in parted.ct_outputs]
    takes += list(parted.residuals)
    returns = tuple([i for i in parted.ct_params if i < len(incoming)])
    weights = tuple([part.state[i - first_state] for i in parted.ct_params if i >= first_state])
    gives: list[Slot] = [("received", i) if i < len(incoming) else ("sum", 0) for i in parted.ct_params]
    count = 0
    for k, slot in enumerate(gives):
        if slot[0] == "sum":
            gives[k] = ("sum", count)
            count += 1
    if not in_two_parts:
        backward: tuple[Backward, ...] = (_summing(parted.backward, takes, gives),)
    else:
        backward = _in_two_parts(parted.backward, takes, gives)
    return Programs(part, parted.forward, backward, weights, returns, tuple(parted.ct_outputs))


def _summing(graph: Graph, takes: Sequence[Slot], gives: Sequence[Slot]) -> Backward:
    """Add the gradients of weights to sums that become parameters."""
    builder = Builder(f"{graph.name}_summing")
    given = [wrap(builder.param(t)) for t in graph.input_types]
    sums = [wrap(builder.param(v.type)) for v, slot in zip(graph.outputs, gives, strict=True) if slot[0] == "sum"]
    slots = [slot for slot in gives if slot[0] == "sum"]
    with staging(builder):
        outs = stage_inline(graph, given)
        totals = dict(zip(slots, sums, strict=True))
        results = [
            accumulated(totals[slot], out) if slot[0] == "sum" else out for out, slot in zip(outs, gives, strict=True)
        ]
        made = builder.finish([value_in_graph(r) for r in results])
    return Backward(made, (*takes, *slots), tuple(gives))


def _in_two_parts(graph: Graph, takes: Sequence[Slot], gives: Sequence[Slot]) -> tuple[Backward, Backward]:
    """Divide a backward graph into what the cotangents of inputs need, and the rest."""
    slots = dict(zip(graph.params, takes, strict=True))
    back = [(v, s) for v, s in zip(graph.outputs, gives, strict=True) if s[0] == "received"]
    ahead = [(v, s) for v, s in zip(graph.outputs, gives, strict=True) if s[0] == "sum"]
    first = _needed(graph, [v for v, _ in back], set())
    second = _needed(graph, [v for v, _ in ahead], first)
    made_first = {v for node in first for v in node.outputs}
    passed: dict[Value, None] = {}
    for v in [*[v for n in graph.nodes if n in second for v in n.inputs], *[v for v, _ in ahead]]:
        if v in made_first:
            passed.setdefault(v)
    handed = [(v, ("passed", k)) for k, v in enumerate(passed)]
    inputs = _extracted(graph, first, slots, [*back, *handed], "inputs")
    weights = _extracted(graph, second, {**slots, **dict(handed)}, ahead, "weights")
    return inputs, _summing(weights.graph, weights.takes, weights.gives)


def _needed(graph: Graph, outputs: Sequence[Value], without: set[Node]) -> set[Node]:
    """The nodes that outputs need, up to nodes of another set."""
    wanted = {v.node for v in outputs if v.node is not None} - without
    found: set[Node] = set()
    for node in reversed(graph.nodes):
        if node in wanted:
            found.add(node)
            wanted.update(v.node for v in node.inputs if v.node is not None and v.node not in without)
    return found


def _extracted(
    graph: Graph, nodes: set[Node], slots: dict[Value, Slot], outputs: Sequence[tuple[Value, Slot]], name: str
) -> Backward:
    """Some nodes as a program of their own; what they take is what they use of ``slots``."""
    builder = Builder(f"{graph.name}_{name}")
    used = {v for n in nodes for v in n.inputs} | {v for v, _ in outputs}
    params = [v for v in slots if v in used]
    env = {v: wrap(builder.param(v.type)) for v in params}
    with staging(builder):
        for node in graph.nodes:
            if node in nodes:
                env.update(zip(node.outputs, restage(node, [env[v] for v in node.inputs]), strict=True))
        made = builder.finish([value_in_graph(env[v]) for v, _ in outputs])
    return Backward(made, tuple([slots[v] for v in params]), tuple([s for _, s in outputs]))
