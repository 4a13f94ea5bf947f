"""Conditions: a Python truth value takes its path; a tensor stages both and joins them in a ``cond`` node.

The two branches of an ``if`` run one after the other in the user's frame, each inside a region
(:mod:`mycelia.frontend.regions`). After the first the variables are set back; after the second
:class:`Join` merges what the branches left: variables, tensors written in place, attributes, contents of
containers. What both did the same stays what it is; what differs becomes an output of the node. A variable
that holds one tensor on one path and another on the other holds a new tensor after them: written in place, it
changes neither. A branch that raises an error leaves nothing: the other one's values are taken.

``and``, ``or`` and chained comparisons of plain tests stay operators: their right side is computed without a
branch if it has no effects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, ValuesView
from operator import le, lt
from typing import Any

from mycelia.core import dtypes as dt, tree
from mycelia.core.errors import ArgumentValueError, GraphError, GraphTypeError
from mycelia.frontend.effects import escaped
from mycelia.frontend.implicit import method_of, see
from mycelia.frontend.jumps import CODES, JUMP, RESULT
from mycelia.frontend.merge import (
    Frozen,
    Mismatch,
    Snap,
    check_structure,
    describe,
    join_type,
    materialize,
    zeros_in,
)
from mycelia.frontend.regions import (
    Closed,
    ContentPlace,
    Place,
    Region,
    advance,
    depth,
    labelled,
    tensors_written,
    unwind,
)
from mycelia.frontend.undefined import Maybe, Undefined
from mycelia.ir.builder import inline
from mycelia.ir.control import cond_p
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.types import TensorType
from mycelia.ops.logical import logical_and, logical_not, logical_or
from mycelia.ops.operands import cast
from mycelia.ops.shape import reshape
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import set_value, stageable, value_in_graph
from mycelia.tensor.mode import current_builder, is_staging
from mycelia.tensor.tensor import wrap

Plan = Callable[[Sequence[Tensor]], Any]
Thunk = Callable[[], Any]

_IF = ("if the condition is true", "if it is false")
_PATHS = ("on one path", "on another")


def truth(value: Any) -> bool | Tensor:
    """The truth of a value: a Python bool, or a zero-dimensional bool tensor that only the graph knows.

    Raises:
        ArgumentValueError: a tensor has more than one element, or none.
    """
    if not isinstance(value, Tensor):
        return bool(see(value))
    if not value.is_symbolic and not is_staging():
        return bool(value)
    if value.size != 1:
        raise ArgumentValueError(
            "Tensor", "self", got=f"shape {value.shape} for the truth value of a tensor", takes="exactly one element",
            hint="use x.any() or x.all() for the truth of many elements",
        )  # fmt: skip
    known = current_builder().known(value_in_graph(value)) if is_staging() else None
    if known is not None:
        return bool(known.reshape(()))
    flat = reshape(value, ()) if value.shape else value
    return cast(flat, dt.bool_)


def not_(value: Any) -> Any:
    """``not value``."""
    known = truth(value)
    return not known if type(known) is bool else logical_not(known)


def has_effects(graph: Graph) -> bool:
    """Whether a graph does something besides computing its outputs."""
    return any(n.op.effects or any(has_effects(g) for _, g in n.subgraphs) for n in graph.nodes)


def line_up(parts: Sequence[Any], explicit_last: bool = False) -> list[Value]:
    """Give several finished builders the same lifted parameters; returns the outer values for them.

    The parameters of each graph become the shared ones, then (or before them) those made with ``param``.
    """
    outers: list[Value] = []
    taken: list[dict[int, Value]] = []
    places: dict[Value, list[int]] = {}
    for builder in parts:
        mine: dict[int, Value] = {}
        for outer, inner in builder.lifted:
            slot = next((k for k in places.get(outer, ()) if k not in mine), None)
            if slot is None:
                slot = len(outers)
                outers.append(outer)
                places.setdefault(outer, []).append(slot)
            mine[slot] = inner
        taken.append(mine)
    for builder, mine in zip(parts, taken, strict=True):
        graph = builder.graph
        shared = [mine[k] if k in mine else Value(outer.type, graph) for k, outer in enumerate(outers)]
        graph.params = [*shared, *builder.explicit] if explicit_last else [*builder.explicit, *shared]
    return outers


class Join:
    """The outputs of two branches under construction."""

    def __init__(
        self, where: str, then: Closed, other: Closed, bottoms: tuple[bool, bool] = (False, False),
        when: tuple[str, str] = _IF,
    ) -> None:  # fmt: skip
        self.where, self.when = where, when
        self.sides = (then, other)
        self.bottoms = bottoms
        self.pairs: list[tuple[Value, Value]] = []

    def plan(self, a: Frozen, b: Frozen, name: str, line: int, opened: bool = False) -> Plan:
        """How to make one value of two; ``name`` and ``line`` are for the marker of a conditional variable.

        ``opened`` says that the values are copies of what a container holds.

        Raises:
            Mismatch: it cannot be done.
        """
        if all(self.bottoms):
            return _keep(a.obj)
        if any(self.bottoms):
            return self._one_sided(b, 1, opened) if self.bottoms[0] else self._one_sided(a, 0, opened)
        if a.obj is b.obj or (a.is_undefined and b.is_undefined):
            return _keep(a.obj)
        if a.is_undefined or b.is_undefined:
            side = 0 if b.is_undefined else 1
            message = f"'{name}' is defined only if the condition at line {line} is {'false' if side else 'true'}"
            if self.when is not _IF:
                message = f"'{name}' is defined on some of the paths to line {line} only"
            inner = self._one_sided((a, b)[side], side, opened)
            return lambda outs: Maybe(name, inner(outs), message)
        check_structure(a, b)
        inner = self._nest(a, b)
        for marker in (a.marker, b.marker):
            if type(marker) is Maybe:
                over = marker.over
                return lambda outs: over(_bare(inner(outs)))
        return inner

    def _nest(self, a: Frozen, b: Frozen) -> Plan:
        if a.parts is None or b.parts is None:
            return self._leaf(a.leaves[0], b.leaves[0])
        if a.content is b.content:  # what is in it is joined in its own place
            return _keep(a.content)
        plans = [self._nest(x, y) for x, y in zip(a.parts, b.parts, strict=True)]
        return lambda outs: a.again([plan(outs) for plan in plans])

    def _leaf(self, a: Any, b: Any) -> Plan:
        if isinstance(a, Snap) and isinstance(b, Snap) and (a.tensor is b.tensor or a.value is b.value):
            return _keep(a.tensor)
        type_ = join_type(a, b)
        if type_ is None:
            return _keep(a)
        first, second = (materialize(c.builder, x, type_) for c, x in zip(self.sides, (a, b), strict=True))
        return self._pair(first, second)

    def _pair(self, first: Value, second: Value) -> Plan:
        index = len(self.pairs)
        self.pairs.append((first, second))
        return lambda outs: outs[index]

    def _one_sided(self, value: Frozen, side: int, opened: bool = False) -> Plan:
        """A value that only one branch has; the other gives zeros of the type."""
        closed = self.sides[side]
        if not any(isinstance(x, Snap) and x.made_in(closed.builder) for x in value.leaves):
            return _keep(value.obj)
        if value.has_identity and not opened and id(value.content) not in closed.fresh:
            return _keep(value.obj)
        if value.parts is None:
            inner = self._filled(value.leaves[0], side)
            if type(value.marker) is not Maybe:
                return inner
            over = value.marker.over
            return lambda outs: over(inner(outs))
        plans = [self._one_sided(p, side) for p in value.parts]
        return lambda outs: value.again([plan(outs) for plan in plans])

    def _filled(self, leaf: Any, side: int) -> Plan:
        if not isinstance(leaf, Snap):
            return _keep(leaf)
        if not leaf.made_in(self.sides[side].builder):
            return _keep(leaf.tensor)
        zeros = zeros_in(self.sides[1 - side].builder, leaf.type)
        return self._pair(leaf.value, zeros) if side == 0 else self._pair(zeros, leaf.value)

    def plan_written(self, env: dict[str, Any]) -> list[tuple[Tensor, Plan]]:
        """The tensors that a branch wrote in place."""
        plans = []
        for i, tensor in tensors_written(self.sides).items():
            snaps = [Snap(tensor, c.written[i][1] if i in c.written else None) for c in self.sides]
            if snaps[0].type != snaps[1].type:
                mismatch = Mismatch(describe(snaps[0]), describe(snaps[1]), "write a tensor of the same type")
                raise mismatch.error(self.where, tensor_label(tensor, env), self.when)
            first, second = (s.inside(c.builder) for s, c in zip(snaps, self.sides, strict=True))
            plans.append((tensor, self._pair(first, second)))
        return plans

    def plan_log(self, env: dict[str, Any]) -> list[tuple[Place, Plan]]:
        """The attributes, containers and outer variables that a branch changed."""
        plans = []
        for key in dict.fromkeys([*self.sides[0].log, *self.sides[1].log]):
            entries = [c.log.get(key) for c in self.sides]
            place, before, _ = next(e for e in entries if e is not None)
            a, b = (_left(before, c) if e is None else e[2] for e, c in zip(entries, self.sides, strict=True))
            if a.obj is before and b.obj is before:
                continue
            label = place_label(place, env)
            if a.is_undefined != b.is_undefined and not any(self.bottoms):
                raise GraphTypeError(
                    self.where, message=f"{label} is set only {self.when[a.is_undefined]}",
                    hint="set it before the condition",
                )  # fmt: skip
            try:
                plans.append((place, self.plan(a, b, place.label, 0, isinstance(place, ContentPlace))))
            except Mismatch as mismatch:
                raise mismatch.error(self.where, label, self.when) from None
        return plans

    def finish(self, predicate: Tensor) -> list[Tensor]:
        """Add the node; gives its outputs."""
        then, other = (c.builder for c in self.sides)
        then.finish([a for a, _ in self.pairs])
        other.finish([b for _, b in self.pairs])
        if not self.pairs and not has_effects(then.graph) and not has_effects(other.graph):
            return []
        operands = line_up((then, other))
        attrs = {"true_graph": then.graph, "false_graph": other.graph}
        node = current_builder().add(cond_p, (value_in_graph(predicate), *operands), attrs)
        return [wrap(v) for v in node.outputs]


def _keep(value: Any) -> Plan:
    return lambda outs: value


def _bare(value: Any) -> Any:
    while type(value) is Maybe:
        value = value.value
    return value


def _left(before: Any, closed: Closed) -> Frozen:
    """What a branch left of a value that it did not set: containers in it may have been changed."""
    if tree.level(before) is None or not (closed.log or closed.written):
        return Frozen(before)
    with closed.replayed():
        return Frozen(before)


def tensor_label(tensor: Tensor, env: dict[str, Any]) -> str:
    """How a message calls a tensor that was written in place."""
    if isinstance(tensor, Parameter):
        return f"parameter '{tensor.name}'"
    name = labelled(env, tensor)
    return f"'{name}'" if name else "a tensor written in place"


def place_label(place: Place, env: dict[str, Any]) -> str:
    """How a message calls a place, by a variable's name where one holds the container."""
    if isinstance(place, ContentPlace):
        name = labelled(env, place.owner)
        return f"the {type(place.owner).__name__} '{name}'" if name else place.label
    return place.label


def variable_label(name: str) -> str:
    """How a message calls a variable."""
    if name.startswith("_ms_"):
        return "the returned value" if name == RESULT else "the value"
    return f"'{name}'"


class Branch:
    """One ``if`` on a tensor, between its test and its end.

    Rewritten code drives it::

        b = branch(test, line, names, weak, kept)
        if b.staged: b.begin(locals())
        if b.then:
            ...body...
            if b.staged: x, y = b.switch(locals())
        if b.other:
            ...else...
            if b.staged: x, y = b.join(locals())
    """

    __slots__ = (
        "_before", "_closed", "_env", "_failed", "_kept", "_line", "_names", "_predicate", "_region", "_weak",
        "_when", "_where",
    )  # fmt: skip

    staged = then = other = True

    def __init__(
        self, where: str, predicate: Tensor, line: int, names: tuple[str, ...], weak: tuple[str, ...] = (),
        kept: tuple[str, ...] = (), when: tuple[str, str] = _IF,
    ) -> None:  # fmt: skip
        self._when = when
        self._where, self._predicate, self._line = where, predicate, line
        self._names, self._weak, self._kept = (*names, *weak), frozenset(weak), kept

    def begin(self, env: dict[str, Any]) -> int:
        """Start the first branch; ``env`` holds the variables. Gives 0, the value of an undone jump."""
        self._env, self._failed = env, False
        self._before = {n: env[n] if n in env else Undefined(n) for n in (*self._names, *self._kept)}
        self._region = Region(f"{self._where}_true").open()
        return 0

    def switch(self, env: dict[str, Any]) -> tuple[Any, ...]:
        """End the first branch, start the second; gives the variables as they were before."""
        self._closed = self._close(env)
        self._failed = False
        self._region = Region(f"{self._where}_false").open()
        return tuple(self._before.values())

    def join(self, env: dict[str, Any]) -> tuple[Any, ...]:
        """End the second branch; gives the joined variables."""
        then, ours, raised = self._closed
        other, theirs, raised_too = self._close(env)
        join = Join(self._where, then, other, (raised, raised_too), self._when)
        plans = []
        for name, a, b in zip(self._names, ours, theirs, strict=True):
            try:
                plans.append(join.plan(a, b, name, self._line))
            except Mismatch as mismatch:
                error = mismatch.error(self._where, variable_label(name), self._when)
                if name not in self._weak:
                    raise error from None
                plans.append(_keep(Undefined(name, str(error), mismatch.hint)))
        written, logged = join.plan_written(self._env), join.plan_log(self._env)
        outs = join.finish(self._predicate)
        _write_back(written, logged, outs)
        return (*[plan(outs) for plan in plans], *[self._before[n] for n in self._kept])

    def only(self, env: dict[str, Any]) -> tuple[Any, ...]:
        """End an ``if`` that has no second branch; gives the joined variables."""
        self.switch(env)
        return self.join(self._before)

    def failed(self, error: BaseException, caught: bool) -> bool:
        """Whether an error that came out of a branch was raised by the user's program there, and is taken up."""
        self._failed = escaped(error, self._region, caught)
        return self._failed

    def _close(self, env: dict[str, Any]) -> tuple[Closed, list[Frozen], bool]:
        values = [Frozen(env[n] if n in env else Undefined(n)) for n in self._names]
        raised = self._failed or (type(env.get(JUMP)) is int and env[JUMP] == CODES["raise"])
        return self._region.close(Frozen), values, raised


def _write_back(written: list[tuple[Tensor, Plan]], logged: list[tuple[Place, Plan]], outs: list[Tensor]) -> None:
    for tensor, plan in written:
        set_value(tensor, plan(outs))
    for place, plan in logged:
        place.write(plan(outs))


class Decided:
    """An ``if`` whose condition is a Python truth value."""

    __slots__ = ("other", "then")

    staged = False

    def __init__(self, then: bool) -> None:
        self.then, self.other = then, not then

    def failed(self, error: BaseException, caught: bool) -> bool:
        """Errors go on as they are."""
        return False


TAKEN, SKIPPED = Decided(True), Decided(False)


def branch(
    test: Any, line: int, names: tuple[str, ...] = (), weak: tuple[str, ...] = (), kept: tuple[str, ...] = ()
) -> Branch | Decided:
    """An ``if`` whose test is ``test``.

    ``names`` are the variables that its branches change and that are read later, ``weak`` those that only
    nested functions may still read, ``kept`` those that nothing reads: they are set back.
    """
    known = truth(test)
    if type(known) is bool:
        return TAKEN if known else SKIPPED
    return Branch("if", known, line, names, weak, kept)


def guard(
    jump: Any, line: int, names: tuple[str, ...] = (), weak: tuple[str, ...] = (), kept: tuple[str, ...] = ()
) -> Branch | Decided:
    """What follows a statement that may have jumped: it runs if ``jump`` is 0."""
    if type(jump) is int:
        return SKIPPED if jump else TAKEN
    return Branch("if", logical_not(jump), line, names, weak, kept, _PATHS)


# -- expressions -----------------------------------------------------------------------------------------


Ran = tuple[Closed, Any, Frozen, bool]


def _run(name: str, thunk: Thunk) -> Ran:
    """Run a thunk in a region of its own: what it left, its value, and whether it raised an error."""
    before = depth()
    region = Region(name).open()
    try:
        value = thunk()
        frozen = Frozen(value)
        return region.close(Frozen), value, frozen, False
    except BaseException as error:
        if escaped(error, region):
            return region.close(Frozen), None, Frozen(Undefined("value")), True
        unwind(before)
        raise


def _joined(where: str, predicate: Tensor, then: Ran, other: Ran) -> Any:
    join = Join(where, then[0], other[0], (then[3], other[3]))
    try:
        plan = join.plan(then[2], other[2], where, 0)
    except Mismatch as mismatch:
        raise mismatch.error(where, "the value", _IF) from None
    written, logged = join.plan_written({}), join.plan_log({})
    outs = join.finish(predicate)
    _write_back(written, logged, outs)
    return plan(outs)


def choose(where: str, predicate: Tensor, first: Thunk, second: Thunk) -> Any:
    """The value of ``first()`` where the predicate is true, else of ``second()``; both are staged."""
    return _joined(where, predicate, _run(f"{where}_true", first), _run(f"{where}_false", second))


def if_expr(test: Any, first: Thunk, second: Thunk) -> Any:
    """``first() if test else second()``."""
    known = truth(test)
    if type(known) is bool:
        return first() if known else second()
    return choose("conditional expression", known, first, second)


def _pure_value(closed: Closed, value: Any) -> Any:
    """The value of a closed region computed in the builder around it, or None if it needs a branch."""
    builder = closed.builder
    if closed.log or closed.written or any(n.op.effects or any(n.subgraphs) for n in builder.graph.nodes):
        return None
    if type(value) is bool:
        return value
    if not isinstance(value, Tensor) or Snap(value).type != TensorType(dt.bool_, ()):
        return None
    outer = current_builder()

    def add(node: Node, inputs: tuple[Value, ...]) -> tuple[Value, ...]:
        return outer.add(node.op, inputs, node.attrs, node.location).outputs

    graph = builder.finish([Snap(value).inside(builder)])
    return wrap(inline(graph, [o for o, _ in builder.lifted], add)[0])


def _connect(both: bool, predicate: Tensor, rest: Thunk, otherwise: Any) -> Any:
    """``predicate and rest()`` (or ``or``) for a tensor predicate; ``otherwise`` is the short-circuit value."""
    where = "and" if both else "or"
    right = closed, value, _, _ = _run(f"{where}_right", rest)
    if otherwise is predicate:
        pure = _pure_value(closed, value)
        if type(pure) is bool:
            return predicate if pure is both else pure
        if pure is not None:
            return (logical_and if both else logical_or)(predicate, pure)
    left = _run(f"{where}_left", lambda: otherwise)
    return _joined(where, predicate, *((right, left) if both else (left, right)))


def _operands(both: bool, first: Any, thunks: Sequence[Thunk]) -> Any:
    value: Any = first
    for i, thunk in enumerate(thunks):
        known = truth(value)
        if type(known) is bool:
            if known is not both:
                return value
            value = thunk()
            continue
        plain = isinstance(value, Tensor) and Snap(value).type == TensorType(dt.bool_, ())
        return _connect(both, known, _rest_of(both, thunks[i:]), known if plain else value)
    return value


def _rest_of(both: bool, thunks: Sequence[Thunk]) -> Thunk:
    return lambda: _operands(both, thunks[0](), thunks[1:])


def and_(first: Any, *rest: Thunk) -> Any:
    """The value of ``first and rest[0]() and ...``."""
    return _operands(True, first, rest)


def or_(first: Any, *rest: Thunk) -> Any:
    """The value of ``first or rest[0]() or ...``."""
    return _operands(False, first, rest)


def _tests(thunks: Sequence[Thunk]) -> Iterator[Thunk]:
    for thunk in thunks:
        yield lambda thunk=thunk: truth(thunk())  # type: ignore[misc]


def all_of(first: Any, *rest: Thunk) -> bool | Tensor:
    """The truth of ``first and rest[0]() and ...``: as ``and``, where only the truth of the value is asked."""
    result: bool | Tensor = _operands(True, truth(first), list(_tests(rest)))
    return result


def any_of(first: Any, *rest: Thunk) -> bool | Tensor:
    """The truth of ``first or rest[0]() or ...``."""
    result: bool | Tensor = _operands(False, truth(first), list(_tests(rest)))
    return result


def chain(left: Any, compare: Callable[[Any, Any], Any], right: Any, *rest: Any) -> Any:
    """A chained comparison ``left < right <= ...``; ``rest`` alternates comparisons and thunks of operands."""
    result = compare(left, right)
    if not rest:
        return result
    return and_(result, lambda: chain(right, rest[0], rest[1](), *rest[2:]))


def contains(item: Any, container: Any) -> Any:
    """``item in container``, also where equality is only known when the graph runs."""
    if not is_staging():
        return item in container
    if isinstance(container, Tensor) and (item is not None and not isinstance(item, str)):
        return truth((container == item).any())
    if hasattr(type(container), "holds"):
        return container.holds(item)
    if isinstance(container, range) and isinstance(item, Tensor):
        return range_holds(item, container.start, container.stop, container.step)
    own = method_of(see(container), "__contains__")
    if own is not None:
        return truth(stageable(own)(container, item))
    if not isinstance(container, (list, tuple, deque, ValuesView, Iterator)):
        if isinstance(item, Tensor) and item.is_symbolic and isinstance(container, (set, frozenset, dict)):
            raise GraphError(
                "in", message=f"a {type(container).__name__} looks up the object, not the value of "
                f"a Tensor {Snap(item).type}", hint="use a list or tuple: its items are compared",
            )  # fmt: skip
        return item in container
    held = list(advance(container))
    if not any(isinstance(x, Tensor) or method_of(x, "__eq__") is not None for x in (item, *held)):
        return item in held
    if any(x is item for x in held):
        return True
    return fold(False, [see(item) == see(x) for x in held])


def range_holds(item: Any, start: Any, stop: Any, step: Any) -> Any:
    """``item in range(start, stop, step)``, by arithmetic."""
    up = all_of(step > 0, lambda: chain(start, le, item, lt, lambda: stop))
    down = all_of(step < 0, lambda: chain(stop, lt, item, le, lambda: start))
    return all_of(any_of(up, lambda: down), lambda: (item - start) % step == 0)


def fold(both: bool, values: Iterable[Any]) -> bool | Tensor:
    """The truth of all values together (``both``), or of any of them."""
    found: bool | Tensor = both
    for value in values:
        known = truth(value)
        if type(known) is bool:
            if known is not both:
                return known
        else:
            found = known if type(found) is bool else (logical_and if both else logical_or)(found, known)
    return found


def contains_not(item: Any, container: Any) -> Any:
    """``item not in container``."""
    return not_(contains(item, container))
