"""Roll: a run of equal blocks becomes a ``scan`` over one of them.

A Python loop, a stack of equal layers or an optimizer's update of many like parameters leaves the same nodes in
the graph again and again. Rolled, the block is differentiated, optimized and compiled once, so that time to
compile does not grow with the number of rounds.

Every node gets a *signature* (operator, attributes, types). A run of ``rounds`` blocks of ``period`` nodes shows
as signatures that equal those ``period`` nodes on; the periods tried are the distances at which signatures come
back. Where a block begins is free: the cut that the fewest bytes cross is taken. Then each operand of the block
must be one of these, seen over all rounds:

==========  =============================================  =================
operand     where it comes from                            in the scan
==========  =============================================  =================
inner       the same node of the same round                body
carried     the same node of the round before; for the     carried value
            first round, from before the run
constant    one value from before the run                  constant
row         another value from before the run each round   sequence, stacked
==========  =============================================  =================

Nodes of the block that see constants only are computed once, before the loop. Slices of what was there before the
run, such as ``x[t]``, may differ in their attributes from round to round; they are taken before the loop, and
slices that advance evenly become one. What is used after the run is a carried value (of the last round) or a
sequence (of any other).

Stacking the rows copies them at each run: a run that stacks more than ``MOST_BYTES`` stays as it is, and one that
stacks much is rolled only if it is long. A run that carries nothing from round to round but takes rows, such as an
update of many parameters, stays too: XLA compiles equal kernels once, and would have to take the results apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mycelia.ir.builder import constant_p
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.primitive import primitive_named
from mycelia.ir.rewriter import Emitter, attributes_key, copy_node, has_effects
from mycelia.ir.types import TensorType

#: The fewest rounds that are rolled: shorter runs are worth more to XLA spread out.
LEAST_ROUNDS = 16

#: The fewest if many bytes are stacked: copying them has to be paid for by more rounds compiled at once.
LEAST_STACKED = 24

#: Rows of at most this many bytes together are few.
FEW_BYTES = 1 << 20

#: The fewest nodes that a roll takes out of the graph.
LEAST_SAVED = 96

#: The most bytes of rows that a roll copies together, for all its sequences.
MOST_BYTES = 1 << 28

#: Operators whose attributes may differ from round to round if their operands are there before the run.
_TAKEN_BEFORE = frozenset(["slice", "reshape", "transpose"])

#: Periods tried at each place, by how many nodes they promise to save.
_TRIED = 6

#: A value in the run: round, node of the block, output.
_Place = tuple[int, int, int]


def run(graph: Graph) -> tuple[Graph, int]:
    """Roll the runs of equal blocks in a graph and in the bodies that result; the number of scans made."""
    made = 0
    while True:
        new = _rolled_once(graph)
        if new is None:
            return graph, made
        graph = new
        made += 1


def _rolled_once(graph: Graph) -> Graph | None:
    nodes = [n for n in graph.nodes if n.op is not constant_p]
    if len(nodes) < LEAST_SAVED:
        return None
    signatures, early = _signatures(graph, nodes)
    for start, stop, period in _candidates(signatures):
        first = start + _best_cut(graph, nodes, start, stop, period)
        rounds = (stop - first) // period
        for skipped, dropped in ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0)):
            left = rounds - skipped - dropped
            if left >= LEAST_ROUNDS and (left - 1) * period >= LEAST_SAVED:
                block = _Block(graph, nodes, first + skipped * period, period, left, early)
                if block.fits():
                    return block.rolled()
    return None


def _signatures(graph: Graph, nodes: list[Node]) -> tuple[list[int], set[Value]]:
    """A number for each node, equal for nodes that may be one node of a block; and what is there before any run."""
    numbers: dict[Hashable, int] = {}
    early: set[Value] = set(graph.params)
    early.update(v for n in graph.nodes if n.op is constant_p for v in n.outputs)
    found = []
    for i, node in enumerate(nodes):
        key: Hashable
        types = tuple([v.type for v in node.inputs])
        outputs = tuple([v.type for v in node.outputs])
        if has_effects(node):
            key = ("effect", i)
        elif node.op.name in _TAKEN_BEFORE and all(v in early for v in node.inputs):
            early.update(node.outputs)
            key = (node.op, types, outputs)
        else:
            key = (node.op, types, outputs, attributes_key(node.attrs))
        found.append(numbers.setdefault(key, len(numbers)))
    return found, early


def _candidates(signatures: list[int]) -> list[tuple[int, int, int]]:
    """Runs ``(start, stop, period)`` that save enough, those that save the most first."""
    recent: dict[int, list[int]] = {}
    distances: Counter[int] = Counter()
    for i, s in enumerate(signatures):
        places = recent.setdefault(s, [])
        for place in places:
            distances[i - place] += 1
        places.append(i)
        del places[:-8]
    found = []
    likely = sorted(distances, key=lambda d: (-distances[d] * d, d))[: 4 * _TRIED]
    for period in {*likely, *(d for d, _ in distances.most_common(2 * _TRIED))}:
        for start, stop in _runs(signatures, period):
            saved = stop - start - period
            if saved >= LEAST_SAVED and (stop - start) // period >= LEAST_ROUNDS:
                found.append((saved, -period, start, stop))
    # among periods that save about the same the shortest is the block itself, the others multiples of it
    most = max((s for s, *_ in found), default=0)
    found.sort(key=lambda f: (f[0] < 0.8 * most, -f[1] if f[0] >= 0.8 * most else -f[0], -f[0]))
    return [(start, stop, -negative) for _, negative, start, stop in found[:_TRIED]]


def _runs(signatures: list[int], period: int) -> list[tuple[int, int]]:
    """The longest stretches in which every signature comes back ``period`` nodes on."""
    found = []
    begin = None
    for i in range(len(signatures) - period + 1):
        if i + period < len(signatures) and signatures[i] == signatures[i + period]:
            begin = i if begin is None else begin
        elif begin is not None:
            found.append((begin, i + period))
            begin = None
    return found


def _best_cut(graph: Graph, nodes: list[Node], start: int, stop: int, period: int) -> int:
    """How many nodes after ``start`` the blocks begin: where the fewest bytes cross, in the middle of the run."""
    base = start + (stop - start) // period // 2 * period
    if base + 2 * period > stop:
        base = max(start, stop - 2 * period)
    produced = {v: i for i, n in enumerate(nodes[base : base + period]) for v in n.outputs}
    last = {}
    for i, node in enumerate(nodes[base : base + 2 * period]):
        for v in node.inputs:
            if v in produced:
                last[v] = i
    change = [0] * (2 * period + 1)
    for v, i in last.items():
        change[produced[v] + 1] += _bytes(v.type) + 1
        change[i + 1] -= _bytes(v.type) + 1
    crossing = []
    level = 0
    for c in change:
        level += c
        crossing.append(level)
    # values of the first half that are used in the second cross its cuts too: count a cut in both halves
    costs = [crossing[i + period] + crossing[i] if i else crossing[period] for i in range(period)]
    return min(range(period), key=lambda i: (costs[i], i))


def _bytes(type_: TensorType) -> int:
    return type_.size * type_.dtype.np.itemsize


@dataclass
class _Block:
    """One run of equal blocks; ``fits`` sorts the operands, ``rolled`` makes the new graph."""

    graph: Graph
    nodes: list[Node]
    first: int
    period: int
    rounds: int
    early: set[Value]
    places: dict[Value, _Place] = field(default_factory=dict)
    before: set[int] = field(default_factory=set)  # nodes of the block taken before the loop, in each round
    once: set[int] = field(default_factory=set)  # nodes that see constants only
    #: operand -> what it is: ("inner", value), ("carry", place, first), ("const", value), ("row", values)
    kinds: dict[tuple[int, int], tuple[Any, ...]] = field(default_factory=dict)

    def at(self, round_: int, q: int) -> Node:
        """Node ``q`` of a round."""
        return self.nodes[self.first + round_ * self.period + q]

    def fits(self) -> bool:
        """Whether every operand is of a kind that a scan has."""
        for j in range(self.rounds):
            for q in range(self.period):
                for o, v in enumerate(self.at(j, q).outputs):
                    self.places[v] = (j, q, o)
        if not self._take_before():
            return False
        row_bytes: dict[tuple[Value, ...], int] = {}
        for q in range(self.period):
            if q in self.before:
                continue
            node = self.at(0, q)
            kinds = [self._kind(q, slot) for slot in range(len(node.inputs))]
            if any(k is None for k in kinds):
                return False
            if all(k is not None and k[0] == "const" for k in kinds):
                self.once.add(q)
            for slot, kind in enumerate(kinds):
                assert kind is not None
                self.kinds[q, slot] = kind
                if kind[0] == "row":
                    row_bytes[kind[1]] = _bytes(kind[1][0].type) * self.rounds
        if any(kind[0] == "carry" and kind[1][0] in self.once for kind in self.kinds.values()):
            return False
        carried = any(kind[0] == "carry" for kind in self.kinds.values())
        if row_bytes and not carried:
            return False
        copied = sum(row_bytes.values())
        worth = copied <= FEW_BYTES or (copied <= MOST_BYTES and self.rounds >= LEAST_STACKED)
        return worth and copied <= MOST_BYTES and len(self.once) + len(self.before) < self.period

    def _take_before(self) -> bool:
        """Find the nodes whose attributes differ; with what they take from, they go before the loop."""
        stack = []
        for q in range(self.period):
            node = self.at(0, q)
            if node.op.name in _TAKEN_BEFORE:
                key = attributes_key(node.attrs)
                if any(attributes_key(self.at(j, q).attrs) != key for j in range(1, self.rounds)):
                    stack.append(q)
        while stack:
            q = stack.pop()
            if q in self.before:
                continue
            for j in range(self.rounds):
                for v in self.at(j, q).inputs:
                    if v not in self.early:
                        return False
                    if v in self.places:
                        stack.append(self.places[v][1])
            self.before.add(q)
        for v, (_, q, _) in list(self.places.items()):
            if q in self.before:
                del self.places[v]
        return True

    def _kind(self, q: int, slot: int) -> tuple[Any, ...] | None:
        values = tuple([self.at(j, q).inputs[slot] for j in range(self.rounds)])
        found = [self.places.get(v) for v in values]
        first, second = found[0], found[1]
        if first is not None:
            q0, o = first[1:]
            if all(place == (j, q0, o) for j, place in enumerate(found)):
                return ("const" if q0 in self.once else "inner", values[0])
            return None
        if second is not None:
            q0, o = second[1:]
            if q0 not in self.once and all(place == (j, q0, o) for j, place in enumerate(found[1:])):
                return ("carry", (q0, o), values[0])
            return None
        if any(place is not None for place in found):
            return None
        if all(v is values[0] for v in values):
            return ("const", values[0])
        return ("row", values)

    # -- the new graph -----------------------------------------------------------------------------

    def rolled(self) -> Graph:
        """The graph with the run in one scan."""
        new = Graph(self.graph.name)
        emitter = Emitter(new)
        env: dict[Value, Value] = {p: new.add_param(p.type) for p in self.graph.params}
        stop = self.first + self.rounds * self.period
        in_run = {id(n) for n in self.nodes[self.first : stop]}
        after = {id(n) for n in self.nodes[stop:]}
        for node in self.graph.nodes:
            if id(node) not in in_run and id(node) not in after:
                _copy(new, node, env)
        for j in range(self.rounds):
            for q in sorted(self.before):
                _copy(new, self.at(j, q), env)
        for q in sorted(self.once):
            _copy(new, self.at(0, q), env)
            for j in range(1, self.rounds):
                for mine, kept in zip(self.at(j, q).outputs, self.at(0, q).outputs, strict=True):
                    env[mine] = env[kept]
        self._scan(emitter, env)
        for node in self.nodes[stop:]:
            _copy(new, node, env)
        new.outputs = [env[v] for v in self.graph.outputs]
        return new

    def _scan(self, emitter: Emitter, env: dict[Value, Value]) -> None:
        emitter.location = self.at(0, 0).location
        consts: dict[Value, None] = {}
        carries: dict[tuple[tuple[int, int], Value | None], None] = {}
        rows: dict[tuple[Value, ...], None] = {}
        for (q, _), kind in self.kinds.items():
            if q in self.once:
                continue
            if kind[0] == "const":
                consts.setdefault(kind[1])
            elif kind[0] == "carry":
                carries.setdefault((kind[1], kind[2]))
            elif kind[0] == "row":
                rows.setdefault(kind[1])
        last, collected = self._used_after({place for place, _ in carries})
        for place in last:
            carries.setdefault((place, None))
        body = self._body(consts, carries, rows, collected)
        inputs = [env[v] for v in consts]
        inputs += [env[init] if init is not None else _filled(emitter, self._at_place(0, p)) for p, init in carries]
        inputs += [_stacked(emitter, [env[v] for v in values]) for values in rows]
        outs = emitter.add(
            primitive_named("scan"), inputs,
            {"body_graph": body, "n_const": len(consts), "n_carry": len(carries), "length": self.rounds,
             "reverse": False},
        )  # fmt: skip
        for (place, _), out in zip(carries, outs, strict=False):
            env[self._at_place(self.rounds - 1, place)] = out
        for place, out in zip(collected, outs[len(carries) :], strict=True):
            for j, value in enumerate(emitter.add(primitive_named("unstack"), [out], {"axis": 0})):
                env.setdefault(self._at_place(j, place), value)

    def _at_place(self, round_: int, place: tuple[int, int]) -> Value:
        return self.at(round_, place[0]).outputs[place[1]]

    def _used_after(self, carried: set[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Values used after the run: places of which only the last round's is, and places of which others are."""
        used: dict[Value, None] = {}
        for node in self.nodes[self.first + self.rounds * self.period :]:
            used.update(dict.fromkeys(v for v in node.inputs if v in self.places))
        used.update(dict.fromkeys(v for v in self.graph.outputs if v in self.places))
        last: dict[tuple[int, int], None] = {}
        collected: dict[tuple[int, int], None] = {}
        for v in used:
            j, q, o = self.places[v]
            if q in self.once:
                continue
            if j < self.rounds - 1:
                collected.setdefault((q, o))
            elif (q, o) not in carried:
                last.setdefault((q, o))
        return [p for p in last if p not in collected], list(collected)

    def _body(
        self,
        consts: dict[Value, None],
        carries: dict[tuple[tuple[int, int], Value | None], None],
        rows: dict[tuple[Value, ...], None],
        collected: list[tuple[int, int]],
    ) -> Graph:
        body = Graph(f"{self.graph.name}_round")
        of_const = {v: body.add_param(v.type) for v in consts}
        of_carry = {key: body.add_param(self._at_place(0, key[0]).type) for key in carries}
        of_row = {values: body.add_param(values[0].type) for values in rows}
        env: dict[Value, Value] = {}
        for q in range(self.period):
            if q in self.before or q in self.once:
                continue
            node = self.at(0, q)
            inputs = []
            for slot in range(len(node.inputs)):
                kind = self.kinds[q, slot]
                if kind[0] == "inner":
                    inputs.append(env[kind[1]])
                elif kind[0] == "const":
                    inputs.append(of_const[kind[1]])
                elif kind[0] == "carry":
                    inputs.append(of_carry[kind[1], kind[2]])
                else:
                    inputs.append(of_row[kind[1]])
            made = copy_node(body, node, tuple(inputs))
            env.update(zip(node.outputs, made.outputs, strict=True))
        body.outputs = [env[self._at_place(0, place)] for place in (*(p for p, _ in carries), *collected)]
        return run(body)[0]


def _copy(graph: Graph, node: Node, env: dict[Value, Value]) -> None:
    made = copy_node(graph, node, tuple([env[v] for v in node.inputs]))
    env.update(zip(node.outputs, made.outputs, strict=True))


def _filled(emitter: Emitter, like: Value) -> Value:
    """Zeros: the first value of what is carried only to be returned."""
    return emitter.add(primitive_named("full"), [], {"shape": like.type.shape, "value": 0, "dtype": like.type.dtype})[0]


def _stacked(emitter: Emitter, values: Sequence[Value]) -> Value:
    """The values along a new first axis; what was taken apart before is not put together again."""
    node = values[0].node
    if node is not None and node.op.name == "unstack" and node.attrs["axis"] == 0 and tuple(values) == node.outputs:
        return node.inputs[0]
    even = _even_slices(values)
    if even is None:
        return emitter.add(primitive_named("stack"), values, {"axis": 0})[0]
    source, axis, attrs = even
    value = emitter.add(primitive_named("slice"), [source], attrs)[0]
    if axis:
        perm = (axis, *(i for i in range(len(value.shape)) if i != axis))
        value = emitter.add(primitive_named("transpose"), [value], {"perm": perm})[0]
    return emitter.add(primitive_named("reshape"), [value], {"shape": (len(values), *values[0].shape)})[0]


def _even_slices(values: Sequence[Value]) -> tuple[Value, int, dict[str, Any]] | None:
    """Source, axis and attributes of the one slice that covers slices of extent 1 that advance evenly."""
    nodes = [v.node for v in values]
    first = nodes[0]
    if first is None or first.op.name != "slice":
        return None
    source = first.inputs[0]
    starts = []
    for node in nodes:
        if node is None or node.op is not first.op or node.inputs[0] is not source:
            return None
        starts.append(node.attrs["starts"])
    axes = [d for d in range(len(starts[0])) if starts[0][d] != starts[1][d]]
    if len(axes) != 1 or first.outputs[0].shape[axes[0]] != 1:
        return None
    axis = axes[0]
    step = starts[1][axis] - starts[0][axis]
    for k, node in enumerate(nodes):
        assert node is not None
        wanted = tuple(s + k * step if d == axis else s for d, s in enumerate(starts[0]))
        if node.attrs["starts"] != wanted or _elsewhere(node, axis) != _elsewhere(first, axis) or step <= 0:
            return None
    stops, steps = list(first.attrs["stops"]), list(first.attrs["steps"])
    stops[axis] = starts[-1][axis] + 1
    steps[axis] = step
    return source, axis, {"starts": starts[0], "stops": tuple(stops), "steps": tuple(steps)}


def _elsewhere(node: Node, axis: int) -> list[tuple[int, int]]:
    """Stops and steps of a slice along the other axes."""
    bounds = zip(node.attrs["stops"], node.attrs["steps"], strict=True)
    return [pair for d, pair in enumerate(bounds) if d != axis]
