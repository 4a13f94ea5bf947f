"""The gradient of a loop whose number of rounds is only known when it runs.

Reverse mode needs the carried values at the start of every round, the last round first. They are not kept
for all rounds, since their number has no bound, but for some of them; the others are computed again from
the nearest kept one (A. Griewank, A. Walther, "Algorithm 799: revolve", ACM TOMS 26, 2000). The number of
rounds is not known in advance either, so checkpoints are thinned out as the loop goes.

*Forward*, the loop also counts its rounds and keeps ``C`` checkpoints, of the rounds that are multiples of
a stride. The stride starts at 1; when all places are taken it doubles, so that every second checkpoint is
given up. Nothing is moved then: checkpoint ``q * 2**e`` stands at row ``q`` with its bits rotated by ``e``,
which leaves those that survive where they are and gives new ones the rows that became free.

*Backward*, one loop goes from the last round to the first. It holds a position: the carried values at some
round ``i``, not after the round ``t`` whose turn it is. Each of its rounds runs the body once. If ``i`` is
``t`` the body's backward graph is applied and the position goes to the nearest value kept for round
``t - 1``; else the position moves on by one round, and halfway between the last kept value and ``t`` it is
pushed on a small stack. So ``n <= C`` rounds cost each round once more, and more rounds about
``log2(n / C) / 2`` times more; with the stack full it takes longer, and is as exact. For ``n <= C`` there is
a plain loop beside it that reads one checkpoint a round; a further derivative is taken of the general one.

Kept are only the carried values that the body's gradient needs, computed or not; what the body leaves as
it is counts as a constant. Both loops are ``while_loop`` nodes of ordinary operators, so derivatives of any
order follow by the same rule. Printing and raising happen in the forward loop only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from mycelia.autodiff.rules import accumulated, zeros, zeros_like
from mycelia.autodiff.transform import DIFFERENTIATED_AS, Pullback, Split, split, stage_inline, without_effects
from mycelia.core import dtypes as dt
from mycelia.core.errors import SourceLocation
from mycelia.ir.builder import Builder
from mycelia.ir.control import call_p, cond_p, while_p
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.rewriter import copy_node, select_signature
from mycelia.ir.types import TensorType
from mycelia.ops.bitwise import bitwise_and_p, bitwise_or_p, population_count_p, shift_left_p, shift_right_p
from mycelia.ops.operands import cast
from mycelia.ops.outputs import one
from mycelia.ops.selection import where_p
from mycelia.ops.slicing import dynamic_slice_p, dynamic_update_p
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, scalar, type_of, value_in_graph
from mycelia.tensor.mode import current_builder, staging
from mycelia.tensor.tensor import wrap

#: Checkpoints take this many bytes in all ...
BUDGET = 16 * 2**20
#: ... but there are never fewer or more of them than this. Powers of two.
FEWEST, MOST = 8, 1024
#: Places of the stack, enough for ``C * 2**STACK`` rounds at the cost said above.
STACK = 12

_COUNT = TensorType(dt.int64, ())
_ROW = {"axes": (0,), "sizes": (1,), "steps": (1,), "drop": (0,)}


def checkpoints(row_bytes: int) -> int:
    """How many checkpoints of ``row_bytes`` bytes a loop keeps: a power of two.

    >>> checkpoints(256), checkpoints(64 * 1024), checkpoints(10**9)
    (1024, 256, 8)
    """
    fitting = BUDGET // max(row_bytes, 1)
    return max(FEWEST, min(MOST, 1 << max(fitting.bit_length() - 1, 0)))


@dataclass(frozen=True)
class _Again:
    """One round computed once more: from constants and kept carried values to what the backward graph takes.

    ``graph`` gives the next kept values and then the residuals ``extras`` of the split; ``params`` are the
    arguments of the body it takes.
    """

    graph: Graph
    params: tuple[int, ...]
    kept: tuple[int, ...]
    extras: tuple[int, ...]


def while_rule(node: Node, inputs: list[Tensor], needs: list[bool]) -> tuple[list[Tensor], list[bool], Pullback]:
    """The rule of ``while_loop`` nodes for :data:`~mycelia.autodiff.transform.CONTROL_RULES`."""
    condition, body, n_const, order, passed = _narrowed(node)
    inputs = [inputs[i] for i in order]
    active = [needs[i] for i in order]
    n_carry = len(inputs) - n_const
    while True:  # a carried value is active if its first value is or the body makes it so
        part = split(body, tuple(active))
        grown = [
            active[n_const + i] or (i in part.ct_outputs and body.outputs[i].type.dtype.is_inexact)
            for i in range(n_carry)
        ]
        if grown == active[n_const:]:
            break
        active[n_const:] = grown
    live = [a and p.type.dtype.is_inexact for a, p in zip(active[n_const:], body.params[n_const:], strict=True)]
    part = split(body, tuple(active), tuple(live))
    kept = _again(part, n_const, n_carry).kept
    count = checkpoints(sum(_bytes(body.params[n_const + i].type) for i in kept))
    outer = current_builder()
    before, outer.location = outer.location, node.location
    try:
        last, rounds, buffers = _forward(condition, body, n_const, kept, count, inputs, node)
    finally:
        outer.location = before

    outs, out_live = [], []
    moving = iter(zip(last, live, strict=True))
    for k in range(len(node.outputs)):
        source = passed.get(k)
        out, is_live = next(moving) if source is None else (inputs[source], active[source])
        outs.append(out)
        out_live.append(is_live)

    marks = _Marks(rounds, dict(zip(kept, buffers, strict=True)), count)

    def pullback(cts: Sequence[Tensor | None]) -> list[Tensor | None]:
        of_moving = [ct for k, ct in enumerate(cts) if k not in passed]
        found: list[Tensor | None] = [None] * len(inputs)
        given = {i: ct for i, ct in enumerate(of_moving) if ct is not None and live[i]}
        if given:
            for i, made in _backward(body, tuple(active), live, n_const, marks, inputs, given, node):
                found[i] = made
        for k, source in passed.items():
            ct, other = cts[k], found[source]
            if ct is not None:
                found[source] = ct if other is None else other + ct
        result: list[Tensor | None] = [None] * len(inputs)
        for place, total in zip(order, found, strict=True):
            result[place] = total
        return result

    return outs, out_live, pullback


def _narrowed(node: Node) -> tuple[Graph, Graph, int, list[int], dict[int, int]]:
    """Condition and body with the carried values that never change as constants.

    Also the number of constants, the order of the operands, and for each output that is such a value the
    position of the operand it equals.
    """
    condition, body, n_const = node.attrs["cond_graph"], node.attrs["body_graph"], node.attrs["n_const"]
    still = [i for i in range(len(body.outputs)) if body.outputs[i] is body.params[n_const + i]]
    order = list(range(len(node.inputs)))
    if not still:
        return condition, body, n_const, order, {}
    moving = [i for i in range(len(body.outputs)) if i not in still]
    order = [*range(n_const), *[n_const + i for i in still], *[n_const + i for i in moving]]
    key = ("narrowed", n_const, tuple(still))
    if key not in body.derived:
        body.derived[key] = select_signature(body, order, moving)
    if key not in condition.derived:
        condition.derived[key] = select_signature(condition, order, [0])
    passed = {i: n_const + k for k, i in enumerate(still)}
    return condition.derived[key], body.derived[key], n_const + len(still), order, passed


def _again(part: Split, n_const: int, n_carry: int) -> _Again:
    """What has to be computed again for the backward graph; kept with the forward graph of the split."""
    key = ("again", n_const, part.residuals)
    if key not in part.forward.derived:
        graph = without_effects(part.forward)
        extras = tuple([k for kind, k in part.residuals if kind == "extra"])
        held = {i - n_const for kind, i in part.residuals if kind == "param" and i >= n_const}
        while True:  # a kept value needs what its next value is computed from
            outputs = [*sorted(held), *[n_carry + k for k in extras]]
            nodes, reached = _reached(graph, outputs)
            grown = held | {i - n_const for i in reached if i >= n_const}
            if grown == held:
                break
            held = grown
        kept = tuple(sorted(held))
        params = tuple([*[i for i in reached if i < n_const], *[n_const + i for i in kept]])
        part.forward.derived[key] = _Again(_cut(graph, nodes, params, outputs), params, kept, extras)
    found: _Again = part.forward.derived[key]
    return found


def _reached(graph: Graph, outputs: Sequence[int]) -> tuple[list[Node], list[int]]:
    """The nodes and the parameters that some outputs are computed from."""
    wanted: set[Value] = {graph.outputs[k] for k in outputs}
    nodes = []
    for node in reversed(graph.nodes):
        if any(v in wanted for v in node.outputs):
            nodes.append(node)
            wanted.update(node.inputs)
    return nodes[::-1], [i for i, p in enumerate(graph.params) if p in wanted]


def _cut(graph: Graph, nodes: list[Node], params: Sequence[int], outputs: Sequence[int]) -> Graph:
    new = Graph(graph.name)
    env: dict[Value, Value] = {graph.params[i]: new.add_param(graph.params[i].type) for i in params}
    for node in nodes:
        made = copy_node(new, node, tuple([env[v] for v in node.inputs]))
        env.update(zip(node.outputs, made.outputs, strict=True))
    new.outputs = [env[graph.outputs[k]] for k in outputs]
    return new


# the forward loop


@dataclass(frozen=True)
class _Marks:
    """What the forward loop leaves for the backward one: its number of rounds, and ``count`` checkpoints."""

    rounds: Tensor
    buffers: dict[int, Tensor]
    count: int


def _forward(
    condition: Graph, body: Graph, n_const: int, kept: tuple[int, ...], count: int, inputs: list[Tensor], node: Node
) -> tuple[list[Tensor], Tensor, list[Tensor]]:
    """The loop itself: its results, the number of rounds it made, and the checkpoints of each kept value."""
    n_carry = len(inputs) - n_const
    # one row more than checkpoints, where rounds between them write
    buffers = [zeros(_stacked(body.params[n_const + i].type, count + 1)) for i in kept]
    first = [*inputs, scalar(0, dt.int64), *buffers]
    types = [type_of(t) for t in first]
    builder = Builder(condition.name)
    params = [wrap(builder.param(t)) for t in types]
    with staging(builder):
        condition_graph = builder.finish([value_in_graph(t) for t in stage_inline(condition, params[: len(inputs)])])
    builder = Builder(f"{body.name}_forward")
    builder.location = node.location
    params = [wrap(builder.param(t)) for t in types]
    with staging(builder):
        outs = stage_inline(body, params[: len(inputs)])
        rounds, held = params[len(inputs)], params[len(inputs) + 1 :]
        made = [*outs, rounds + 1]
        if kept:
            shift, turn = _stride(rounds, count)
            between = _and(rounds, _left(scalar(1, dt.int64), shift) - 1) != 0
            row = _choose(between, scalar(count, dt.int64), _row(rounds, shift, turn, count))
            made += [_put(b, params[n_const + i], row) for b, i in zip(held, kept, strict=True)]
        body_graph = builder.finish([value_in_graph(t) for t in made])
    found = list(apply(while_p, *first, cond_graph=condition_graph, body_graph=body_graph, n_const=n_const))
    return found[:n_carry], found[n_carry], found[n_carry + 1 :]


def _stride(round_: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The stride at a round, as a power of two, and by how many bits numbers of checkpoints are rotated."""
    bits = count.bit_length() - 1
    filled = _right(round_, scalar(bits, dt.int64))
    for width in (1, 2, 4, 8, 16, 32):  # all bits below the highest one
        filled = _or(filled, _right(filled, scalar(width, dt.int64)))
    shift = cast(one(population_count_p, filled), dt.int64)
    return shift, shift % bits if bits > 1 else shift * 0


def _row(round_: Tensor, shift: Tensor, turn: Tensor, count: int) -> Tensor:
    """Where the last checkpoint up to a round stands."""
    number = _right(round_, shift)
    bits = count.bit_length() - 1
    return _or(_and(_left(number, turn), scalar(count - 1, dt.int64)), _right(number, bits - turn))


# the backward loop


def _backward(
    body: Graph,
    active: tuple[bool, ...],
    live: list[bool],
    n_const: int,
    marks: _Marks,
    inputs: list[Tensor],
    given: dict[int, Tensor],
    node: Node,
) -> Iterator[tuple[int, Tensor]]:
    """Cotangents of the inputs, with their positions."""
    n_carry = len(inputs) - n_const
    with_ct = set(given)
    while True:  # the carried values that a cotangent comes to
        part = split(body, active, tuple([i in with_ct for i in range(n_carry)]))
        grown = with_ct | {i - n_const for i in part.ct_params if i >= n_const and live[i - n_const]}
        if grown == with_ct:
            break
        with_ct = grown
    carried = sorted(with_ct)
    summed = [i for i in part.ct_params if i < n_const]
    again = _again(part, n_const, n_carry)
    if not set(again.kept) <= set(marks.buffers):
        raise AssertionError("a backward graph with fewer cotangents needs more of its forward graph")
    step = _Step(part, again, n_const, carried, summed, body, marks.count, node.location)
    consts = [inputs[i] for i in step.consts]
    cts = [given[i] if i in given else zeros_like(inputs[n_const + i]) for i in carried]
    sums = [zeros_like(inputs[i]) for i in summed]
    buffers = [marks.buffers[i] for i in again.kept]
    found = step.loop(marks.rounds, buffers, consts, [*cts, *sums])
    yield from zip([*[n_const + i for i in carried], *summed], found, strict=True)


class _Step:
    """The backward loop of one split."""

    def __init__(
        self,
        part: Split,
        again: _Again,
        n_const: int,
        carried: list[int],
        summed: list[int],
        body: Graph,
        count: int,
        location: SourceLocation | None,
    ) -> None:
        self.part, self.again, self.n_const, self.body, self.count = part, again, n_const, body, count
        self.carried, self.summed = carried, summed
        used = [i for i in again.params if i < n_const]
        used += [i for kind, i in part.residuals if kind == "param" and i < n_const]
        self.consts = sorted(set(used))
        self.location = location

    def loop(self, rounds: Tensor, buffers: list[Tensor], consts: list[Tensor], cts: list[Tensor]) -> list[Tensor]:
        """The cotangents after all rounds."""
        if not buffers:
            return self._without_gaps(rounds, [], consts, cts)
        args = [rounds, *buffers, *consts, *cts]
        n, m = len(buffers), len(consts)
        types = [type_of(t) for t in args]

        def any_rounds(args: list[Tensor]) -> list[Tensor]:
            return self._with_gaps(args[0], args[1 : 1 + n], args[1 + n : 1 + n + m], args[1 + n + m :])

        def few_rounds(args: list[Tensor]) -> list[Tensor]:
            return self._without_gaps(args[0], args[1 : 1 + n], args[1 + n : 1 + n + m], args[1 + n + m :])

        general = self._graph("backward_rounds", types, any_rounds)
        simple = self._graph("backward_few_rounds", types, few_rounds)

        def either(args: list[Tensor]) -> list[Tensor]:
            return list(apply(cond_p, args[0] <= self.count, *args, true_graph=simple, false_graph=general))

        graph = self._graph("backward", types, either)
        graph.derived[DIFFERENTIATED_AS] = general
        return list(apply(call_p, *args, graph=graph))

    def _graph(self, name: str, types: list[TensorType], fn: Callable[[list[Tensor]], list[Tensor]]) -> Graph:
        builder = Builder(f"{self.body.name}_{name}")
        builder.location = self.location
        params = [wrap(builder.param(t)) for t in types]
        with staging(builder):
            return builder.finish([value_in_graph(t) for t in fn(params)])

    def _loop(
        self, fixed: list[Tensor], first: list[Tensor], round_: Callable[[list[Tensor], list[Tensor]], list[Tensor]]
    ) -> list[Tensor]:
        """Run ``round_`` on what is fixed and what is carried, while the first carried number is not negative."""
        n, types = len(fixed), [type_of(t) for t in (*fixed, *first)]
        condition = self._graph("rounds_left", types, lambda args: [args[n] >= 0])
        body = self._graph("round_back", types, lambda args: round_(args[:n], args[n:]))
        return list(apply(while_p, *fixed, *first, cond_graph=condition, body_graph=body, n_const=n))

    def _without_gaps(
        self, rounds: Tensor, buffers: list[Tensor], consts: list[Tensor], cts: list[Tensor]
    ) -> list[Tensor]:
        """The backward loop if all rounds have their checkpoints."""

        def round_(fixed: list[Tensor], carried: list[Tensor]) -> list[Tensor]:
            const_of = dict(zip(self.consts, fixed, strict=False))
            now, cts = carried[0], carried[1:]
            values = [_get(b, now) for b in fixed[len(consts) :]]
            residuals = self._residuals(const_of, self._once(const_of, values), values)
            return [now - 1, *self._applied(cts, residuals)]

        return self._loop([*consts, *buffers], [rounds - 1, *cts], round_)[1:]

    def _with_gaps(
        self, rounds: Tensor, buffers: list[Tensor], consts: list[Tensor], cts: list[Tensor]
    ) -> list[Tensor]:
        """The backward loop for any number of rounds."""
        n = len(consts)

        def round_(fixed: list[Tensor], carried: list[Tensor]) -> list[Tensor]:
            const_of = dict(zip(self.consts, fixed, strict=False))
            held, rest = carried[1 : 1 + len(cts)], carried[1 + len(cts) :]
            return self._round(const_of, fixed[n], fixed[n + 1], fixed[n + 2 :], carried[0], held, rest, len(buffers))

        latest = rounds - 1
        shift, turn = _stride(latest, self.count)
        place, values = self._checkpoint(latest, shift, turn, buffers)
        stack = [zeros(_stacked(t, STACK + 1)) for t in (_COUNT, *[type_of(v) for v in values])]
        first = [latest, *cts, place, *values, scalar(0, dt.int64), *stack]
        return self._loop([*consts, shift, turn, *buffers], first, round_)[1 : 1 + len(cts)]

    def _round(
        self,
        const_of: dict[int, Tensor],
        shift: Tensor,
        turn: Tensor,
        buffers: list[Tensor],
        now: Tensor,
        cts: list[Tensor],
        rest: list[Tensor],
        n_kept: int,
    ) -> list[Tensor]:
        """One round of the backward loop: apply the backward graph, or move the position on."""
        place, values = rest[0], rest[1 : 1 + n_kept]
        depth, places, stack = rest[1 + n_kept], rest[2 + n_kept], rest[3 + n_kept :]
        outs = self._once(const_of, values)
        residuals = self._residuals(const_of, outs, values)
        here = place == now
        found = self._applied_if(here, cts, residuals)
        after, then = place + 1, outs[:n_kept]
        # the last value kept before the position, and whether this round's value is to be kept as well
        on_stack = depth > 0
        top = _get(places, depth - 1)  # of an empty stack: the row never read
        base = _choose(on_stack, top, _left(_right(now, shift), shift))
        halfway = after == base + _right(now - base + 1, scalar(1, dt.int64))
        pushed = (after < now).logical_and(halfway).logical_and(depth < STACK).logical_and(here.logical_not())
        popped = here.logical_and(on_stack).logical_and(top == now)
        slot = _choose(pushed, depth, scalar(STACK, dt.int64))
        places = _put(places, after, slot)
        stack = [_put(s, v, slot) for s, v in zip(stack, then, strict=True)]
        depth = depth + cast(pushed, dt.int64) - cast(popped, dt.int64)
        following = now - cast(here, dt.int64)
        # where a round has been done, go to the nearest value kept for the one before
        on_stack = depth > 0
        mark, marked = self._checkpoint(following, shift, turn, buffers)
        near = _choose(on_stack, _get(places, depth - 1), mark)
        nearest = [_choose(on_stack, _get(s, depth - 1), m) for s, m in zip(stack, marked, strict=True)]
        place = _choose(here, near, after)
        values = [_choose(here, a, b) for a, b in zip(nearest, then, strict=True)]
        return [following, *found, place, *values, depth, places, *stack]

    def _checkpoint(
        self, round_: Tensor, shift: Tensor, turn: Tensor, buffers: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """The last checkpoint up to a round (any for -1): its round and its values."""
        row = _and(_row(round_, shift, turn, self.count), scalar(self.count - 1, dt.int64))
        return _left(_right(round_, shift), shift), [_get(b, row) for b in buffers]

    def _once(self, const_of: dict[int, Tensor], values: list[Tensor]) -> list[Tensor]:
        """Run a round again: the next kept values and the extra residuals."""
        fixed = [const_of[i] for i in self.again.params if i < self.n_const]
        return stage_inline(self.again.graph, [*fixed, *values])

    def _residuals(self, const_of: dict[int, Tensor], outs: list[Tensor], values: list[Tensor]) -> list[Tensor]:
        value_of = dict(zip(self.again.kept, values, strict=True))
        extra_of = dict(zip(self.again.extras, outs[len(values) :], strict=True))
        return [
            extra_of[i] if kind == "extra" else const_of[i] if i < self.n_const else value_of[i - self.n_const]
            for kind, i in self.part.residuals
        ]

    def _applied(self, cts: list[Tensor], residuals: list[Tensor]) -> list[Tensor]:
        """The cotangents before a round, and the sums with its own."""
        part, n = self.part, len(self.carried)
        ct_of = dict(zip(self.carried, cts, strict=False))
        made = stage_inline(part.backward, [*[ct_of[i] for i in part.ct_outputs], *residuals])
        found = dict(zip(part.ct_params, made, strict=True))
        before = [found[self.n_const + i] if self.n_const + i in found else zeros_like(ct_of[i]) for i in self.carried]
        return [*before, *[accumulated(s, found[i]) for s, i in zip(cts[n:], self.summed, strict=True)]]

    def _applied_if(self, here: Tensor, cts: list[Tensor], residuals: list[Tensor]) -> list[Tensor]:
        n, types = len(cts), [type_of(t) for t in (*cts, *residuals)]
        applied = self._graph("applied", types, lambda args: self._applied(args[:n], args[n:]))
        passed = self._graph("passed", types, lambda args: args[:n])
        return list(apply(cond_p, here, *cts, *residuals, true_graph=applied, false_graph=passed))


# small things


def _bytes(type_: TensorType) -> int:
    return prod(type_.shape) * np.dtype(type_.dtype.np).itemsize


def _stacked(type_: TensorType, count: int) -> TensorType:
    return TensorType(type_.dtype, (count, *type_.shape))


def _get(rows: Tensor, row: Tensor) -> Tensor:
    return one(dynamic_slice_p, rows, row, **_ROW)


def _put(rows: Tensor, value: Tensor, row: Tensor) -> Tensor:
    return one(dynamic_update_p, rows, value, row, **_ROW)


def _choose(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return one(where_p, condition, a, b)


def _left(x: Tensor, bits: Tensor) -> Tensor:
    return one(shift_left_p, x, bits)


def _right(x: Tensor, bits: Tensor) -> Tensor:
    return one(shift_right_p, x, bits)


def _and(a: Tensor, b: Tensor) -> Tensor:
    return one(bitwise_and_p, a, b)


def _or(a: Tensor, b: Tensor) -> Tensor:
    return one(bitwise_or_p, a, b)
