"""Which stage of a pipeline computes which node of a network.

A network is staged once for one micro-batch. While a Cell that says its ``pipeline_stage`` runs, what is staged belongs
to that stage. The rest follows: a node that uses what stages have computed belongs to the last of them; one that uses
parameters only, to the first stage that uses it; and one that uses nothing but inputs and constants is computed by
every stage that uses it, since all ranks have the inputs.

If no Cell says where it belongs, the network is cut by the work of its operators (:func:`balanced`): any network whose
nodes stand in an order can be cut, not only a stack of equal layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from mycelia.compiler.report import graph_cost, node_cost
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, MissingKeyError
from mycelia.frontend.program import RANDOM, Program, stage_program
from mycelia.ir.builder import constant_p
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.rewriter import has_effects
from mycelia.parallel.pipeline.schedules import stage_at
from mycelia.tensor.mode import current_builder

#: The stage of a node that every stage which uses it computes.
EVERYWHERE: Final = -1
#: Floating-point operations that take as long as moving a byte, where a network is cut by work.
_PER_BYTE: Final = 4.0
#: At how many places a network may be cut at most; those where the least crosses.
_PLACES: Final = 400


class Trail:
    """The stages of the Cells that are being staged, and the nodes that they made.

    Args:
        places: stage and segment of Cells by id; None for what a Cell leaves to those around it.
    """

    def __init__(self, places: Mapping[int, tuple[int | None, int | None]]) -> None:
        self._places = places
        self._around: list[tuple[int | None, int | None]] = [(None, None)]
        #: Stage and segment of nodes of the outermost graph, by their places.
        self.nodes: dict[int, tuple[int, int | None]] = {}

    @contextmanager
    def inside(self, cell: Any) -> Iterator[None]:
        """While a Cell is staged."""
        own = self._places.get(id(cell))
        if own is None:
            yield
            return
        stage, segment = self._around[-1]
        now = (own[0] if own[0] is not None else stage, own[1] if own[1] is not None else segment)
        builder = current_builder()
        nodes = builder.root.graph.nodes
        begin = len(nodes)
        self._around.append(now)
        try:
            yield
        finally:
            self._around.pop()
        if now[0] is None:
            return
        end = len(nodes) if builder is builder.root else begin + 1  # else one node will hold what was staged
        for place in range(begin, end):
            self.nodes.setdefault(place, (now[0], now[1]))


@dataclass
class Staged:
    """A network for one micro-batch, and where its nodes are computed.

    Attributes:
        program: the network; its first output is the loss.
        stages: how many there are.
        stage_of: the stage of each node that something needs, or ``EVERYWHERE``.
        streams: for each random stream that the program reads (by its place in the state), the values of its state.
    """

    program: Program
    stages: int
    stage_of: dict[Node, int]
    streams: dict[int, set[Value]]


def staged(
    fn: Any, args: Sequence[Any], cells: Any, name: str, ranks: int, chunks: int,
    config: Mapping[str, int] | None = None, segments: Mapping[str, int] | None = None,
) -> Staged:  # fmt: skip
    """Stage a network that gives a loss, and tell where its nodes are computed.

    Args:
        fn: what is staged.
        args: those of a micro-batch.
        cells: the Cell whose Cells say their stages.
        name: of the schedule.
        ranks: of the pipeline.
        chunks: how many stages a rank holds.
        config: stages by the paths of Cells, before what Cells say.
        segments: segments by the paths of Cells.

    Raises:
        MissingKeyError: a path that leads to no Cell.
        ArgumentValueError: stages that are too few or many, or that would have to send backward.
    """
    places = _places(cells, config or {}, segments or {})
    trail = Trail(places)
    program = stage_program(fn, args, "pipeline", {"trail": trail})
    _check_loss(program)
    used = _used(program.graph)
    streams = _streams(program)
    stages = ranks * chunks
    told = {
        node: _stage(found, name, ranks, chunks, places)
        for place, node in enumerate(program.graph.nodes)
        if node in used and node.op is not constant_p and (found := trail.nodes.get(place)) is not None
    }
    anchored = _free(program, used)
    if not told and stages > 1:
        told = balanced(program.graph, [n for n in program.graph.nodes if n in used and n not in anchored], stages)
    stage_of = _completed(program, used, anchored, told, streams)
    made = Staged(program, stages, stage_of, streams)
    _check(made)
    return made


def _places(
    cells: Any, config: Mapping[str, int], segments: Mapping[str, int]
) -> dict[int, tuple[int | None, int | None]]:
    found: dict[int, tuple[int | None, int | None]] = {}
    if not hasattr(cells, "cells_and_names"):
        if config or segments:
            raise ArgumentTypeError("pipeline", "stage_config", got=type(cells).__name__, takes="None for a function")
        return found
    paths = dict(cells.cells_and_names())
    for argument, given in (("stage_config", config), ("segment_config", segments)):
        for path, value in given.items():
            if path not in paths:
                known = ", ".join([p for p in paths if p]) or "none"
                raise MissingKeyError("pipeline", argument, got=f"'{path}'", takes=f"the path of a Cell: {known}")
            if isinstance(value, bool) or not isinstance(value, int):
                raise ArgumentTypeError("pipeline", argument, got=f"{value!r} for '{path}'", takes="an int")
    for path, cell in paths.items():
        stage = config.get(path, cell.pipeline_stage)
        segment = segments.get(path, cell.pipeline_segment)
        if stage is not None or segment is not None:
            found[id(cell)] = (stage, segment)
    return found


def _stage(
    told: tuple[int, int | None], name: str, ranks: int, chunks: int,
    places: Mapping[int, tuple[int | None, int | None]],
) -> int:  # fmt: skip
    """The stage along the network of what a Cell says: a rank and a segment, or the stage itself."""
    stage, segment = told
    in_segments = any(s is not None for _, s in places.values())
    most = ranks if in_segments else ranks * chunks
    if not 0 <= stage < most:
        raise ArgumentValueError("pipeline", "pipeline_stage", got=str(stage), takes=f"0 to {most - 1}")
    if not in_segments:
        return stage
    if not 0 <= (segment or 0) < chunks:
        raise ArgumentValueError("pipeline", "pipeline_segment", got=str(segment), takes=f"0 to {chunks - 1}")
    return stage_at(name, ranks, stage, segment or 0)


def _check_loss(program: Program) -> None:
    if program.n_outputs != 1 or len(program.outputs) != 1 or program.input_writes:
        raise ArgumentTypeError(
            "pipeline", "net", got=f"{program.n_outputs} tensors from '{program.name}'", takes="one that gives a loss"
        )
    loss = program.graph.outputs[0]
    if not loss.type.dtype.is_floating:
        raise ArgumentTypeError("pipeline", "net", got=f"a loss of type {loss.type}", takes="a floating dtype")


def _used(graph: Graph) -> set[Node]:
    """The nodes that an output or an effect needs."""
    used: set[Node] = set()
    wanted = {v.node for v in graph.outputs if v.node is not None}
    for node in reversed(graph.nodes):
        if node in wanted or has_effects(node):
            used.add(node)
            wanted.update(v.node for v in node.inputs if v.node is not None)
    return used


def _streams(program: Program) -> dict[int, set[Value]]:
    """The values that the states of random streams take, one after another."""
    count = len(program.graph.params) - len(program.state)
    found = {
        i: {program.graph.params[count + i]} for i, spec in enumerate(program.state) if spec.kind == RANDOM
    }  # fmt: skip
    for node in program.graph.nodes:
        for values in found.values():
            if values.isdisjoint(node.inputs):
                continue
            type_ = next(v for v in node.inputs if v in values).type
            after = node.outputs[1:] if node.op.name == "random_advance" else node.outputs
            values.update(v for v in after if v.type == type_)
    return found


def _free(program: Program, used: set[Node]) -> set[Node]:
    """Nodes that use inputs and constants only."""
    count = len(program.graph.params) - len(program.state)
    held = set(program.graph.params[count:])
    free: set[Node] = set()
    for node in program.graph.nodes:
        if node not in used or has_effects(node):
            continue
        if all(v not in held and (v.node is None or v.node in free) for v in node.inputs):
            free.add(node)
    return free


def _completed(
    program: Program, used: set[Node], free: set[Node], told: Mapping[Node, int], streams: Mapping[int, set[Value]]
) -> dict[Node, int]:
    """The stage of every node that is used."""
    chained = {v for values in streams.values() for v in values}
    found: dict[Node, int] = {}
    for node in program.graph.nodes:
        if node not in used:
            continue
        if node in told:
            found[node] = told[node]
            continue
        before = [found[v.node] for v in node.inputs if v.node in found and v not in chained]
        if before and max(before) != EVERYWHERE:
            found[node] = max(before)
        elif node in free:
            found[node] = EVERYWHERE
    readers: dict[Node, list[int]] = {}
    for node in reversed(program.graph.nodes):  # what uses parameters only: the first stage that uses it
        if node not in used:
            continue
        if node not in found:
            found[node] = min(readers.get(node, [0]))
        if found[node] != EVERYWHERE:
            for v in node.inputs:
                if v.node is not None and v not in chained:
                    readers.setdefault(v.node, []).append(found[node])
    return found


def _check(made: Staged) -> None:
    for node, stage in made.stage_of.items():
        for v in node.inputs:
            if v.node is None or any(v in values for values in made.streams.values()):
                continue
            before = made.stage_of[v.node]
            if stage != EVERYWHERE and before > stage:
                raise ArgumentValueError(
                    "pipeline", "pipeline_stage",
                    message=f"stage {stage} uses what stage {before} computes ({v.node.op.name}"
                    f"{'' if v.node.location is None else f', {v.node.location}'}): it would have to be sent back",
                    hint="stages go up from the inputs to the loss",
                )  # fmt: skip
    there = set(made.stage_of.values())
    missing = [s for s in range(made.stages) if s not in there]
    loss = made.program.graph.outputs[0].node
    last = EVERYWHERE if loss is None else made.stage_of[loss]
    if missing or last != made.stages - 1:
        raise ArgumentValueError(
            "pipeline", "pipeline_stage",
            got=f"nothing for stage {', '.join(map(str, missing))}" if missing else f"the loss in stage {last}",
            takes=f"Cells for each stage from 0 to {made.stages - 1}, the loss in the last",
            hint="without any pipeline_stage the network is cut by the work of its operators",
        )  # fmt: skip


# cutting by work -------------------------------------------------------------------------------------------------


def balanced(graph: Graph, nodes: Sequence[Node], stages: int) -> dict[Node, int]:
    """Nodes cut into stages, so that the longest is as short as it can be, and few bytes cross.

    Work is floating-point operations and bytes moved. Among places where few bytes cross, dynamic programming finds
    those with the least work in the longest stage, then the least bytes.

    Raises:
        ArgumentValueError: fewer nodes than stages.
    """
    if len(nodes) < stages:
        raise ArgumentValueError(
            "pipeline", "stages", got=str(stages), takes=f"at most {len(nodes)}, one operator each"
        )
    work = np.cumsum([0.0, *[_work(n) for n in nodes]])
    crossing = _crossing(graph, nodes)
    inner = np.arange(1, len(nodes))
    kept = np.sort(inner[np.argsort(crossing[inner], kind="stable")[: max(_PLACES, stages - 1)]])
    places = np.concatenate([[0], kept, [len(nodes)]])
    weights = work[places]
    # best[k]: of cuts up to place k, the longest stage and the bytes that cross, as one number
    scale = 1e-3 * weights[-1] / (1.0 + float(crossing.sum()))
    best = weights.copy()
    sent = np.zeros(len(places))
    choices: list[np.ndarray[Any, Any]] = []
    for s in range(1, stages):
        longest = np.maximum(best[None, :], weights[:, None] - weights[None, :])
        crossed = sent + crossing[places]
        price = longest + scale * crossed[None, :]
        price[np.arange(len(places))[:, None] <= np.arange(len(places))[None, :]] = np.inf
        price[:, :s] = np.inf
        choice = price.argmin(1)
        rows = np.arange(len(places))
        best, sent = longest[rows, choice], crossed[choice]
        best[~np.isfinite(price[rows, choice])] = np.inf
        choices.append(choice)
    cuts, k = [], len(places) - 1
    for choice in reversed(choices):
        k = int(choice[k])
        cuts.append(int(places[k]))
    cuts.reverse()
    return {node: int(np.searchsorted(cuts, i, side="right")) for i, node in enumerate(nodes)}


def _work(node: Node) -> float:
    held = [graph_cost(g) for _, g in node.subgraphs]
    if held:
        times = int(node.attrs.get("length", node.attrs.get("size", 1)))
        return float(sum(c.flops + _PER_BYTE * c.bytes for c in held) * times)
    cost = node_cost(node)
    return float(cost.flops + _PER_BYTE * cost.bytes)


def _crossing(graph: Graph, nodes: Sequence[Node]) -> np.ndarray[Any, Any]:
    """For each place among nodes the bytes that those before it give those after."""
    place = {n: i for i, n in enumerate(nodes)}
    change = np.zeros(len(nodes) + 2)
    last: dict[Value, int] = {}
    for i, node in enumerate(nodes):
        for v in node.inputs:
            if v.node in place:
                last[v] = i
    for v, i in last.items():
        assert v.node is not None
        change[place[v.node] + 1] += v.type.nbytes
        change[i + 1] -= v.type.nbytes
    return np.cumsum(change)[: len(nodes) + 1]
