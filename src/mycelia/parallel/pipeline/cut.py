"""A network cut into a graph for each stage.

A stage's graph takes what earlier stages give it, the inputs of the network that it uses, and the state that it uses
(parameters, running statistics, random streams). It gives what later stages use, the loss if it is the last, and the
new values of state that it writes. What a stage gives to one that does not follow it goes there directly.

A parameter that several stages use is *tied*: each holds a copy, and their gradients are added before the update.

A random stream would be a chain through all stages; instead each stage goes on with a stream of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mycelia.core.errors import UnsupportedError
from mycelia.frontend.program import RANDOM
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.rewriter import copy_node
from mycelia.parallel.pipeline.stages import EVERYWHERE, Staged


@dataclass
class Part:
    """The graph of one stage.

    Attributes:
        stage: its number.
        graph: parameters are ``received`` in order, then ``data``, then ``state``; outputs are ``given``, then the
            loss if ``has_loss``, then ``written``.
        received: for each earlier stage that it gets something from, which values of the whole graph.
        data: which of the network's inputs.
        state: which of the program's state.
        given: values of the whole graph that later stages use.
        has_loss: whether it computes the loss.
        written: which of the program's state it writes.
    """

    stage: int
    graph: Graph
    received: dict[int, list[Value]] = field(default_factory=dict)
    data: list[int] = field(default_factory=list)
    state: list[int] = field(default_factory=list)
    given: list[Value] = field(default_factory=list)
    has_loss: bool = False
    written: list[int] = field(default_factory=list)

    @property
    def incoming(self) -> list[Value]:
        """What it gets, in the order of its graph's parameters."""
        return [v for values in self.received.values() for v in values]


def cut(staged: Staged) -> list[Part]:
    """The graphs of a network's stages.

    Raises:
        UnsupportedError: state that a stage writes and another uses.
    """
    cutter = _Cutter(staged)
    parts = [cutter.part(s) for s in range(staged.stages)]
    given: dict[int, list[Value]] = {p.stage: [] for p in parts}
    for part in parts:
        for source, values in part.received.items():
            given[source] += [v for v in values if v not in given[source]]
    for part in parts:
        cutter.close(part, given[part.stage])
    _check_written(staged, parts)
    return parts


class _Cutter:
    def __init__(self, staged: Staged) -> None:
        self.staged = staged
        program = staged.program
        self.nodes = [n for n in program.graph.nodes if n in staged.stage_of]
        count = len(program.graph.params) - len(program.state)
        self.data = {v: i for i, v in enumerate(program.graph.params[:count])}
        self.state = {v: i for i, v in enumerate(program.graph.params[count:])}
        self.stream_of = {v: i for i, values in staged.streams.items() for v in values}
        self.env: dict[int, dict[Value, Value]] = {}
        self.streams: dict[int, dict[int, Value]] = {}

    def part(self, stage: int) -> Part:
        """A stage's nodes, with what they use as parameters; what it gives is not known yet."""
        mine = self._mine(stage)
        part = Part(stage, Graph(f"stage_{stage}"))
        wanted = self._wanted(stage, mine)
        from_stages: list[Value] = []
        for v in wanted:
            if v in self.data:
                part.data.append(self.data[v])
            elif v in self.state or v in self.stream_of:
                index = self.state.get(v, self.stream_of.get(v, -1))
                if index not in part.state:
                    part.state.append(index)
            else:
                from_stages.append(v)
        part.data.sort()
        part.state.sort()
        sources = sorted({self._stage(v) for v in from_stages})
        part.received = {s: [v for v in from_stages if self._stage(v) == s] for s in sources}
        env = self.env[stage] = {}
        params = self.staged.program.graph.params
        env.update((v, part.graph.add_param(v.type)) for v in part.incoming)
        env.update((params[i], part.graph.add_param(params[i].type)) for i in part.data)
        first = len(self.data)
        env.update((params[first + i], part.graph.add_param(params[first + i].type)) for i in part.state)
        streams = self.streams[stage] = {
            i: env[params[first + i]] for i in part.state if self.staged.program.state[i].kind == RANDOM
        }
        for node in mine:
            inputs = tuple([streams[self.stream_of[v]] if v in self.stream_of else env[v] for v in node.inputs])
            made = copy_node(part.graph, node, inputs)
            for old, new in zip(node.outputs, made.outputs, strict=True):
                env[old] = new
                if old in self.stream_of:
                    streams[self.stream_of[old]] = new
        return part

    def _stage(self, v: Value) -> int:
        assert v.node is not None
        return self.staged.stage_of[v.node]

    def _mine(self, stage: int) -> list[Node]:
        """The nodes of a stage, and those of no stage that they use."""
        wanted: set[Node] = set()
        mine: list[Node] = []
        for node in reversed(self.nodes):
            own = self.staged.stage_of[node]
            if own == stage or (own == EVERYWHERE and node in wanted):
                mine.append(node)
                wanted.update(v.node for v in node.inputs if v.node is not None)
        mine.reverse()
        return mine

    def _wanted(self, stage: int, mine: Sequence[Node]) -> list[Value]:
        """What nodes use and do not make, in the order in which it is met."""
        made = {v for node in mine for v in node.outputs}
        found: dict[Value, None] = {}
        for node in mine:
            for v in node.inputs:
                if v not in made or v in self.stream_of:
                    found.setdefault(v)
        return [v for v in found if v.node is None or v in self.stream_of or self._stage(v) != stage]

    def close(self, part: Part, given: list[Value]) -> None:
        """Tell a stage's graph what it gives."""
        program = self.staged.program
        env = self.env[part.stage]
        part.given = given
        loss = program.graph.outputs[0]
        part.has_loss = part.stage == self.staged.stages - 1
        outputs = [env[v] for v in given]
        if part.has_loss:
            outputs.append(env[loss])
        for k, index in enumerate(program.state_writes):
            value = program.graph.outputs[1 + k]
            stream = self.streams[part.stage].get(index)
            if stream is not None:
                if stream.node is not None:
                    part.written.append(index)
                    outputs.append(stream)
            elif value.node is not None and value in env and self._stage(value) in (part.stage, EVERYWHERE):
                if self._stage(value) == EVERYWHERE and part.stage:
                    continue
                part.written.append(index)
                outputs.append(env[value])
        part.graph.outputs = outputs


def _check_written(staged: Staged, parts: Sequence[Part]) -> None:
    for part in parts:
        for index in part.written:
            spec = staged.program.state[index]
            others = [p.stage for p in parts if p is not part and index in p.state]
            if spec.kind != RANDOM and others:
                raise UnsupportedError(
                    "pipeline", "pipeline_stage", message=f"stage {part.stage} writes '{spec.name}', which stage "
                    f"{others[0]} uses as well", hint="put what writes and what uses it into one stage",
                )  # fmt: skip
