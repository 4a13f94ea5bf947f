"""The graph as the planner sees it: units that choose one layout each, and the values that pass between them.

A unit is an input of the graph, an operator, or a chain of elementwise operators of one shape: XLA makes one loop of
such a chain, so that only what enters and leaves it is read and written, and dividing it in two ways would not pay.
A value between two elementwise operators that nobody else sees is *fused*: it takes neither time nor memory.

Units are ordered as they will run: in the order of the graph, but elementwise ones as soon as they can, as XLA's
scheduler does to let go of what they read (gradients, by the optimizer's updates).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.types import TensorType
from mycelia.parallel.planner.rules import Rule, is_elementwise, rule_for
from mycelia.parallel.planner.task import DATA, STATE, Task, node_key

#: Operators whose result is the operand's memory.
_VIEWS = frozenset(("reshape", "identity", "stop_gradient"))
#: Operators whose result XLA makes where it is used.
_MADE_WHERE_USED = frozenset(("broadcast_to", "constant", "full", "arange", "eye"))
FORWARD, BACKWARD, UPDATE = 0, 1, 2


@dataclass
class Held:
    """A value of the graph.

    Attributes:
        type: dtype and global shape.
        name: of an input, or of the node that makes it.
        carrying: whether it belongs to the rows of the data, so that micro-batches divide it.
        batch: the dimension of those rows, if it is known.
        stored: whether it takes memory of its own.
        static: whether it is state, which is there all the time.
        producer: unit and slot.
        consumers: units and slots.
        born, last: times (places among the units) of its making and its last use.
        renews: the input whose memory it takes over, if it is the new value of one.
    """

    type: TensorType
    name: str
    carrying: bool = False
    batch: int | None = None
    stored: bool = True
    static: bool = False
    producer: tuple[int, int] = (-1, -1)
    consumers: list[tuple[int, int]] = field(default_factory=list)
    born: int = 0
    last: int = 0
    renews: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all parts together."""
        return self.type.nbytes


@dataclass
class Unit:
    """What chooses a layout.

    Attributes:
        name: label of its first node, or the input's name.
        nodes: places of its nodes in the graph; empty for an input.
        slots: the values that enter, then those that leave.
        entering: how many enter.
        rule: names of the slots' dimensions.
        key: equal for units that have the same choices.
        phase: ``FORWARD``, ``BACKWARD`` (which the loss does not need) or ``UPDATE``.
        carrying: whether it works on rows of data.
    """

    name: str
    nodes: tuple[int, ...]
    slots: tuple[int, ...]
    entering: int
    rule: Rule
    key: Hashable
    phase: int = FORWARD
    carrying: bool = False


@dataclass
class Network:
    """Units in the order in which they run, and values.

    Attributes:
        task: what it was made of.
        units: inputs first.
        values: all values that units exchange.
        of_value: place of a graph's value among them.
        inputs: how many units are inputs.
        mixing: names of forward units by which a row's result depends on other rows, such as batch normalization:
            micro-batches would change what is computed.
    """

    task: Task
    units: list[Unit]
    values: list[Held]
    of_value: dict[Value, int]
    inputs: int
    mixing: list[str] = field(default_factory=list)

    @property
    def mixes_rows(self) -> bool:
        """Whether a row's result depends on other rows."""
        return bool(self.mixing)


def network_of(task: Task, cluster: bool = True) -> Network:
    """The units of a task; without ``cluster`` every operator is one."""
    graph = task.graph
    rules = [rule_for(node) for node in graph.nodes]
    uses = _uses(graph)
    outputs = set(graph.outputs)
    elementwise = [is_elementwise(node.op) for node in graph.nodes]
    place = {node: i for i, node in enumerate(graph.nodes)}

    def fused(value: Value) -> bool:
        node = value.node
        if node is None or value in outputs or not elementwise[place[node]]:
            return False
        readers = uses.get(value, [])
        return bool(readers) and all(
            elementwise[i] and graph.nodes[i].outputs[0].type.shape == value.type.shape for i in readers
        )

    joined = list(range(len(graph.nodes)))
    inside = {v for node in graph.nodes for v in node.outputs if fused(v)}
    if cluster:
        for value in inside:
            assert value.node is not None
            for reader in uses[value]:
                _join(joined, place[value.node], reader)
    groups = _ordered(graph, joined, elementwise, place)
    values, of_value = _values(task, rules, inside)
    return _assembled(task, groups, rules, values, of_value, uses)


def _uses(graph: Graph) -> dict[Value, list[int]]:
    found: dict[Value, list[int]] = {}
    for i, node in enumerate(graph.nodes):
        for value in dict.fromkeys(node.inputs):
            found.setdefault(value, []).append(i)
    return found


def _root(joined: list[int], i: int) -> int:
    while joined[i] != i:
        joined[i] = joined[joined[i]]
        i = joined[i]
    return i


def _join(joined: list[int], a: int, b: int) -> None:
    a, b = _root(joined, a), _root(joined, b)
    joined[max(a, b)] = min(a, b)


def _ordered(graph: Graph, joined: list[int], elementwise: list[bool], place: dict[Node, int]) -> list[list[int]]:
    """Groups of nodes in the order in which they run; groups in a circle are taken apart."""
    while True:
        groups: dict[int, list[int]] = {}
        for i in range(len(graph.nodes)):
            groups.setdefault(_root(joined, i), []).append(i)
        before: dict[int, set[int]] = {
            root: {
                _root(joined, place[v.node]) for i in members for v in graph.nodes[i].inputs if v.node is not None
            } - {root}
            for root, members in groups.items()
        }  # fmt: skip
        waiting = {root: len(found) for root, found in before.items()}
        after: dict[int, list[int]] = {}
        for root, found in before.items():
            for other in found:
                after.setdefault(other, []).append(root)
        ready = [root for root, count in waiting.items() if not count]
        when: dict[int, tuple[int, int]] = {}
        while ready:
            root = ready.pop()
            latest = max((when[other] for other in before[root]), default=None)
            if elementwise[root] and latest is not None:
                when[root] = (latest[0], latest[1] + 1)
            elif latest is None or root > latest[0]:
                when[root] = (root, 0)
            else:
                when[root] = (latest[0], latest[1] + 1)
            for other in after.get(root, ()):
                waiting[other] -= 1
                if not waiting[other]:
                    ready.append(other)
        if len(when) == len(groups):
            return [groups[root] for root in sorted(groups, key=lambda r: (when[r], r))]
        for root in set(groups) - set(when):
            for i in groups[root]:
                joined[i] = i


def _values(task: Task, rules: Sequence[Rule], inside: set[Value]) -> tuple[list[Held], dict[Value, int]]:
    """All values, and which of them belong to the rows of the data."""
    graph = task.graph
    values: list[Held] = []
    of_value: dict[Value, int] = {}
    for v, name, kind in zip(graph.params, task.names, task.kinds, strict=True):
        rows = kind == DATA and v.type.rank > 0 and v.type.shape[0] in (task.rows, 0)
        of_value[v] = len(values)
        values.append(Held(v.type, name, kind == DATA, 0 if rows else None, static=kind == STATE))
    for node, rule, label in zip(graph.nodes, rules, task.labels, strict=True):
        carried, lost = set(), False
        for v, term in zip(node.inputs, rule.inputs, strict=True):
            held = values[of_value[v]]
            if held.carrying:
                along = term[held.batch] if held.batch is not None else None
                if along is None:
                    lost = True
                else:
                    carried.add(along)
        for k, v in enumerate(node.outputs):
            term = rule.outputs[k]
            batch = next((d for d, name in enumerate(term) if name in carried), None)
            stored = v not in inside and node.op.name not in _VIEWS and node.op.name not in _MADE_WHERE_USED
            of_value[v] = len(values)
            values.append(Held(v.type, label, batch is not None or lost, batch, stored))
    return values, of_value


def _assembled(
    task: Task, groups: list[list[int]], rules: Sequence[Rule], values: list[Held], of_value: dict[Value, int],
    uses: dict[Value, list[int]],
) -> Network:  # fmt: skip
    graph = task.graph
    outputs = set(graph.outputs)
    units: list[Unit] = []
    for i, v in enumerate(graph.params):
        names = tuple([f"d{d}" if n > 1 else None for d, n in enumerate(v.type.shape)])
        held = values[i]
        units.append(
            Unit(held.name, (), (i,), 0, Rule((), (names,)), ("input", v.type, held.carrying, held.batch),
                 FORWARD, held.carrying)
        )  # fmt: skip
    needed = _needed(graph)
    renewed = {graph.outputs[o] for _, o in task.pairs}
    for group in groups:
        set(group)
        members = set(group)
        nodes = [graph.nodes[i] for i in group]
        own = set(nodes)
        entering = list(dict.fromkeys(v for n in nodes for v in n.inputs if v.node not in own))
        leaving = [
            v for n in nodes for v in n.outputs
            if v in outputs or not uses.get(v) or any(i not in members for i in uses[v])
        ]  # fmt: skip
        slots = tuple([of_value[v] for v in (*entering, *leaving)])
        if is_elementwise(nodes[0].op):
            rule = _aligned(nodes[-1].outputs[0], entering, leaving)
        else:
            rule = _matched(rules[group[0]], nodes[0].inputs, entering, nodes[0].outputs, leaving)
        local = {v: k for k, v in enumerate(entering)}
        wiring = []
        for n in nodes:
            wiring.append((node_key(n), tuple([local[v] for v in n.inputs])))
            local.update({v: len(local) + k for k, v in enumerate(n.outputs)})
        marks = tuple([(values[s].carrying, values[s].batch, values[s].stored) for s in slots])
        key = (tuple(wiring), tuple([local[v] for v in leaving]), marks)
        phase = UPDATE if any(v in renewed for v in leaving) else BACKWARD
        if any(i in needed for i in group):
            phase = FORWARD
        carrying = any(values[of_value[v]].carrying for v in (*entering, *leaving))
        units.append(Unit(task.labels[group[0]], tuple(group), slots, len(entering), rule, key, phase, carrying))
    _connect(task, units, values, of_value)
    return Network(task, units, values, of_value, len(graph.params), _mixing(units, values))


def _matched(
    rule: Rule, inputs: Sequence[Value], entering: Sequence[Value], outs: Sequence[Value], leaving: Sequence[Value]
) -> Rule:
    """The rule for the values that a unit exchanges: an operand that is given twice must be divided one way."""
    terms = []
    for v in entering:
        found = [term for given, term in zip(inputs, rule.inputs, strict=True) if given is v]
        terms.append(tuple([found[0][d] if len({t[d] for t in found}) == 1 else None for d in range(len(found[0]))]))
    lost = {
        name for v, kept in zip(entering, terms, strict=True)
        for given, term in zip(inputs, rule.inputs, strict=True) if given is v
        for name, left in zip(term, kept, strict=True) if name is not None and left is None
    }  # fmt: skip
    made = [rule.outputs[list(outs).index(v)] for v in leaving]

    def cut(term: Sequence[str | None]) -> tuple[str | None, ...]:
        return tuple([None if name in lost else name for name in term])

    return Rule(tuple([cut(t) for t in terms]), tuple([cut(t) for t in made]), rule.inner, rule.idle, rule.scatter)


def _aligned(like: Value, entering: Sequence[Value], leaving: Sequence[Value]) -> Rule:
    """Names for a chain of elementwise operators of one shape."""
    shape = like.type.shape
    names = [f"d{d}" if n > 1 else None for d, n in enumerate(shape)]

    def term(v: Value) -> tuple[str | None, ...]:
        behind = len(shape) - v.type.rank
        return tuple([None if n == 1 else names[behind + d] for d, n in enumerate(v.type.shape)])

    return Rule(tuple([term(v) for v in entering]), tuple([term(v) for v in leaving]))


def _needed(graph: Graph) -> set[int]:
    """The nodes that the first output is made from: the forward part of a step."""
    place = {node: i for i, node in enumerate(graph.nodes)}
    found: set[int] = set()
    stack = [v.node for v in graph.outputs[:1] if v.node is not None]
    while stack:
        node = stack.pop()
        i = place[node]
        if i not in found:
            found.add(i)
            stack += [v.node for v in node.inputs if v.node is not None]
    return found


def _mixing(units: Sequence[Unit], values: Sequence[Held]) -> list[str]:
    """The forward units that join what came from all rows to rows again, or do so inside."""
    found = []
    summed: set[int] = set()
    for unit in units:
        if unit.phase != FORWARD or not unit.nodes:
            continue
        entering, leaving = unit.slots[: unit.entering], unit.slots[unit.entering :]
        rows = any(values[v].carrying for v in entering)
        over = [v for v in leaving if rows and not values[v].carrying]
        inside = not unit.rule.scatter and bool(over)
        if inside or (rows and any(v in summed for v in entering)):
            found.append(unit.name)
        summed.update(over)
        if any(v in summed for v in entering):
            summed.update(v for v in leaving if not values[v].carrying)
    return found


def _connect(task: Task, units: list[Unit], values: list[Held], of_value: dict[Value, int]) -> None:
    graph = task.graph
    for u, unit in enumerate(units):
        for s, v in enumerate(unit.slots):
            held = values[v]
            if s >= unit.entering:
                held.producer, held.born = (u, s), u
                held.last = max(held.last, u)
            else:
                held.consumers.append((u, s))
                held.last = max(held.last, u)
    for i, o in task.pairs:
        made = values[of_value[graph.outputs[o]]]
        made.consumers.append((i, 0))
        made.renews = i
    end = len(units) - 1
    for value in graph.outputs:
        held = values[of_value[value]]
        if held.renews is None:
            held.last = end
    for held in values:
        if held.static:
            held.last = end
    for node in reversed(graph.nodes):  # a view keeps what it looks at
        if node.op.name in _VIEWS and node.outputs[0] in of_value:
            source = values[of_value[node.inputs[0]]]
            source.last = max(source.last, values[of_value[node.outputs[0]]].last)
