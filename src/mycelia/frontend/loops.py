"""Loops: Python loops as long as Python decides; a ``while_loop`` node from where a tensor does.

The body of a staged loop runs in the user's frame, once per *pass*, inside a region. A pass starts with the
variables set to parameters of the body graph and ends with their new values. The first pass assumes that
Python numbers stay as they are; what changed becomes a tensor, types are joined, newly found tensors written
in place and containers changed are added, and another pass is made, until nothing is new (a fixed point of
types: numbers only ever widen, so a few passes do).

A ``while`` is carried in rotated form: its test is evaluated once before the loop and again at the end of
each round, exactly when Python evaluates it. ``for`` over a range of unknown length counts rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mycelia.core import dtypes as dt, tree
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, GraphError, GraphTypeError
from mycelia.frontend.branches import (
    line_up,
    place_label,
    range_holds,
    tensor_label,
    truth,
    variable_label,
)
from mycelia.frontend.implicit import see
from mycelia.frontend.jumps import JUMP
from mycelia.frontend.merge import (
    Frozen,
    Mismatch,
    Path,
    Snap,
    check_structure,
    describe,
    is_number,
    join_type,
    materialize,
    rebuilt,
    same,
    zeros_in,
)
from mycelia.frontend.regions import ContentPlace, Place, Region, advance, depth
from mycelia.frontend.undefined import Maybe, Undefined
from mycelia.ir.builder import Builder
from mycelia.ir.control import while_p
from mycelia.ir.graph import Value
from mycelia.ir.types import TensorType
from mycelia.ops.comparison import eq, lt
from mycelia.ops.logical import logical_and, logical_not
from mycelia.ops.operands import cast
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import set_value, value_in_graph
from mycelia.tensor.mode import current_builder, is_staging, staging
from mycelia.tensor.tensor import wrap

_MAX_PASSES = 12
_BOOL, _COUNT = TensorType(dt.bool_, ()), TensorType(dt.int64, ())

_WHEN = ("before the loop", "after one round")


class SymbolicRange:
    """A ``range`` whose start, stop or step only the graph knows."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step

    def __iter__(self) -> Iterator[Any]:
        raise GraphError(
            "range", message="the length of this range is only known when the graph runs",
            hint="use it directly in a for statement: for i in range(n)",
        )  # fmt: skip

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __reversed__(self) -> SymbolicRange:
        last = self.start + (self.length() - 1) * self.step
        return SymbolicRange(last, self.start - self.step, -self.step)

    def holds(self, item: Any) -> Any:
        """Whether a number is one of the range."""
        return range_holds(item, self.start, self.stop, self.step)

    def length(self) -> Tensor:
        """The number of rounds (negative means none): -((start - stop) // step)."""
        rounds: Tensor = -((self.start - self.stop) // self.step)
        return rounds

    def item(self, count: Tensor) -> Tensor:
        """The number of round ``count``."""
        value: Any = wrap(count._value)
        if type(self.step) is not int or self.step != 1:
            value = value * self.step
        if type(self.start) is not int or self.start != 0:
            value = value + self.start
        number: Tensor = value
        return number


class Enumerated:
    """``enumerate`` of a range whose length only the graph knows."""

    def __init__(self, over: SymbolicRange, start: Any = 0) -> None:
        self.over, self.start = over, start

    __iter__ = SymbolicRange.__iter__

    def length(self) -> Tensor:
        """The number of rounds."""
        return self.over.length()

    def item(self, count: Tensor) -> tuple[Tensor, Tensor]:
        """The pair of round ``count``."""
        return wrap(count._value) + self.start, self.over.item(count)


def make_enumerate(iterable: Any, start: Any = 0) -> Any:
    """``enumerate(...)``, also of a range of unknown length."""
    if isinstance(iterable, SymbolicRange):
        return Enumerated(iterable, start)
    return enumerate(advance(see(iterable)), start)


def make_range(*args: Any) -> Any:
    """``range(...)``, also of zero-dimensional integer tensors."""
    if not any(isinstance(a, Tensor) for a in args) or not is_staging():
        return range(*args)
    values = [_bound(a) for a in args]
    if not 1 <= len(values) <= 3 or not any(isinstance(v, Tensor) for v in values):
        return range(*values)
    start, stop, step = (0, values[0], 1) if len(values) == 1 else (*values, 1)[:3]
    if type(step) is int and step == 0:
        raise ArgumentValueError("range", "step", got="0", takes="a number other than zero")
    return SymbolicRange(start, stop, step)


def _bound(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    if value.size != 1 or not value.dtype.is_integer:
        raise ArgumentTypeError("range", "bound", got=f"a Tensor {Snap(value).type}", takes="one integer",
            hint="convert it, e.g. x.astype(ms.int64)")  # fmt: skip
    known = current_builder().known(value_in_graph(value))
    if known is not None:
        return int(known.reshape(()))
    return cast(reshape(value, ()) if value.shape else value, dt.int64)


class _Leaf:
    """One leaf of a variable: a Python value that stays, or a carried tensor."""

    __slots__ = ("before", "is_number", "param", "type")

    def __init__(self, before: Any) -> None:
        self.before = before
        self.type: TensorType | None = before.type if isinstance(before, Snap) else None
        self.is_number = is_number(before)
        self.param: Tensor | None = None

    def update(self, after: Any) -> bool:
        """Join with the value after a pass; whether the type is new.

        Raises:
            Mismatch: the two have no common type.
        """
        if self.type is None:
            new = join_type(self.before, after)
            if new is None:
                return False
        else:
            assert self.param is not None
            new = join_type(Snap(self.param), after, numbers=(self.is_number, False))
            if new == self.type:
                return False
            if not self.is_number:
                raise Mismatch(
                    f"a Tensor {self.type}", describe(after), f"convert it, e.g. .astype(ms.{self.type.dtype.name})"
                )
        self.is_number = self.is_number and not (isinstance(after, Snap) and new == after.type)
        self.type = new
        return True


class _Slot:
    """One thing that a loop changes: a variable, or a place outside."""

    __slots__ = ("before", "label", "leaves", "name", "opened", "place", "reset", "shape", "treedef", "weak")

    def __init__(self, name: str, label: str, before: Any, place: Place | None = None) -> None:
        self.name, self.label, self.place = name, label, place
        self.before = Frozen(before)
        self.shape = self.before
        self.opened: set[Path] = {()} if isinstance(place, ContentPlace) else set()
        self.leaves: list[_Leaf] | None = None
        self.treedef = tree.LEAF
        if not self.before.is_undefined:
            self._open(set())
        self.reset = False
        self.weak = False

    def _open(self, places: set[Path]) -> list[_Leaf]:
        """Carry the items of containers in these places, too; the others stay the same objects."""
        self.opened |= places
        leaves, self.treedef = self.shape.outline(self.opened)
        self.leaves = [_Leaf(x) for x in leaves]
        if self.before.is_undefined:
            for leaf in self.leaves:
                leaf.before = None if leaf.type is not None else leaf.before
        return self.leaves

    def start(self, builder: Builder) -> Any:
        """The value at the start of a pass."""
        if self.leaves is None:
            return self.before.obj
        for leaf in self.leaves:
            leaf.param = None if leaf.type is None else wrap(builder.param(leaf.type))
        if self.reset:
            return 0
        return self._rebuilt([leaf.before if leaf.param is None else leaf.param for leaf in self.leaves])

    def _rebuilt(self, leaves: list[Any]) -> Any:
        if all(leaf.type is None for leaf in self.leaves or ()):
            return self.shape.obj if self.before.marker is None else self._marked(self.shape.obj)
        value = rebuilt(self.treedef, [x.tensor if isinstance(x, Snap) else x for x in leaves])
        return value if self.before.marker is None else self._marked(value)

    def _marked(self, value: Any) -> Any:
        if isinstance(value, Undefined):
            return value
        hint = f"give '{self.name}' a value before the loop"
        return Maybe(self.name, value, f"'{self.name}' has no value if the loop ends before binding it", hint)

    def update(self, after: Frozen, fresh: dict[int, Any]) -> bool:
        """Join with the value after a pass, in which the objects ``fresh`` were made; whether anything is new."""
        if after.is_undefined:
            if self.leaves is None:
                return False
            raise Mismatch(describe(self.before), "without a value", "do not delete it in the loop")
        if self.leaves is None:  # bound in the loop for the first time
            self.shape = after
            return any(leaf.type is not None for leaf in self._open(after.made_paths(fresh)))
        if after.obj is self.shape.obj and all(leaf.type is None for leaf in self.leaves):
            return False
        moved = self.shape.other_paths(after) - self.opened
        if moved:
            self._open(moved)
            return True
        leaves, treedef = after.outline(self.opened)
        if treedef != self.treedef:
            check_structure(self.shape, after)
        return any([leaf.update(x) for leaf, x in zip(self.leaves, leaves, strict=True)])

    def first(self, outer: Builder) -> list[Value]:
        """The carried leaves before the loop."""
        return [
            zeros_in(outer, leaf.type) if leaf.before is None else materialize(outer, leaf.before, leaf.type)
            for leaf in self.leaves or ()
            if leaf.type is not None
        ]

    def last(self, builder: Builder, after: Frozen) -> list[Value]:
        """The carried leaves at the end of the pass."""
        found = []
        for leaf, value in zip(self.leaves or (), after.outline(self.opened)[0] if self.leaves else (), strict=True):
            if leaf.type is not None:
                found.append(materialize(builder, value, leaf.type))
        return found

    def result(self, outs: Iterator[Tensor]) -> Any:
        """The value after the loop."""
        if self.leaves is None:
            return self.before.obj
        return self._rebuilt([leaf.before if leaf.type is None else next(outs) for leaf in self.leaves])


class Loop:
    """One ``while`` or ``for`` statement.

    Rewritten code drives it::

        w = loop(line, names)
        while w.test(condition, locals()):
            if w.staged: x, y = w.state
            ...body...
        else:
            if w.staged: x, y = w.state
            ...else...

    and, for a ``for``, with ``for i in w.over(iterable, locals())`` and ``w.end(locals())`` after the body.
    ``targets`` are the variables the ``for`` itself binds: they are not set back at the start of a pass.
    """

    def __init__(
        self, line: int, names: tuple[str, ...], weak: tuple[str, ...], kept: tuple[str, ...], targets: tuple[str, ...]
    ) -> None:
        self.line = line
        self.staged = False
        self.state: tuple[Any, ...] = ()
        self._names, self._weak, self._targets = (*names, *weak), frozenset(weak), frozenset(targets)
        self._kept = kept
        self._depth = depth()
        self._range: SymbolicRange | Enumerated | None = None
        self._where = "while"
        self._open = False
        self._values: dict[str, Any] = {}
        self._keys: dict[int, Any] = {}

    @property
    def native(self) -> bool:
        """Whether ``break`` and ``continue`` of this loop really jump."""
        return not self.staged and depth() == self._depth

    # -- while -------------------------------------------------------------------------------------

    def test(self, condition: Any, env: dict[str, Any]) -> bool:
        """Whether another round, or another pass, is to be run."""
        known = truth(condition)
        if self.staged:
            return self._end(env, known)
        if type(known) is bool:
            return known
        self._start(env, [value_in_graph(known)], [_BOOL])
        return True

    # -- for ---------------------------------------------------------------------------------------

    def over(self, iterable: Any, env: dict[str, Any]) -> Any:
        """What the ``for`` statement goes over: the iterable itself, or the passes of a symbolic range."""
        if not isinstance(iterable, (SymbolicRange, Enumerated)):
            return advance(see(iterable))
        self._where, self._range = "for", iterable
        self._length = value_in_graph(iterable.length())
        zero, yes = current_builder().constant(np.array(0)), current_builder().constant(np.array(True))
        self._start(env, [zero, yes], [_COUNT, _BOOL])
        return self

    def __iter__(self) -> Loop:
        return self

    def __next__(self) -> Any:
        if not self._open:
            raise StopIteration
        assert self._range is not None
        return self._range.item(self._control[0])

    def end(self, env: dict[str, Any]) -> None:
        """The body of a ``for`` has come to its end."""
        jump = env.get(JUMP, 0)
        going: Any = logical_not(cast(jump, dt.bool_)) if isinstance(jump, Tensor) else not jump
        self._end(env, going)

    # -- passes ------------------------------------------------------------------------------------

    def _start(self, env: dict[str, Any], first: list[Value], types: list[TensorType]) -> None:
        self.staged = True
        self._outer = current_builder()
        self._control_first, self._control_types = first, types
        self._slots: list[_Slot] = []
        for name in self._names:
            slot = _Slot(name, variable_label(name), env[name] if name in env else Undefined(name))
            slot.reset, slot.weak = name == JUMP, name in self._weak
            self._slots.append(slot)
        self._before = {n: env[n] if n in env else Undefined(n) for n in self._kept}
        self._written: dict[int, Tensor] = {}
        self._passes = 0
        self._begin()

    def _begin(self) -> None:
        self._passes += 1
        region = self._region = Region(f"{self._where}_body").open()
        builder = region.builder
        self._control = [wrap(builder.param(t)) for t in self._control_types]
        for slot in self._slots:
            value = slot.start(builder)
            if slot.place is None:
                self._values[slot.name] = value
            else:
                region.note(self._keys[id(slot)], lambda place=slot.place: place)  # type: ignore[misc]
                slot.place.write(value)
        for tensor in self._written.values():
            builder.record_write(tensor, tensor._value)
            tensor._value = builder.param(Snap(tensor).type)
        state = self._values | self._before
        self.state = tuple([state[n] for n in (*self._names, *self._kept) if n not in self._targets])
        self._open = True

    def _end(self, env: dict[str, Any], going: bool | Tensor) -> bool:
        if not self._open:
            return False
        self._open = False
        region, builder = self._region, self._region.builder
        after = {n: Frozen(env[n] if n in env else Undefined(n)) for n in self._names}
        next_control = self._next_control(builder, going)
        closed = region.close(Frozen)
        news = []
        for slot in self._slots:
            value = after[slot.name] if slot.place is None else closed.log[self._keys[id(slot)]][2]
            news.append(self._update(slot, value, closed.fresh))
        known = set(self._keys.values())
        for key, (place, before, now) in closed.log.items():
            if key not in known and not _unchanged(before, now):
                slot = _Slot(place.label, place_label(place, env), before, place)
                self._keys[id(slot)] = key
                self._slots.append(slot)
                news.append(True)
        for i, (tensor, value) in closed.written.items():
            if i not in self._written:
                self._written[i] = tensor
                news.append(True)
            if value.type != Snap(tensor).type:
                mismatch = Mismatch(describe(tensor), f"a Tensor {value.type}", "write a tensor of the same type")
                raise mismatch.error(self._where, tensor_label(tensor, env), _WHEN)
        if any(news):
            if self._passes >= _MAX_PASSES:
                raise self._restless(news)
            self._begin()
            return True
        carried = list(next_control)
        for slot in self._slots:
            value = after[slot.name] if slot.place is None else closed.log[self._keys[id(slot)]][2]
            carried += slot.last(builder, value)
        carried += [closed.written[i][1] for i in self._written]
        self._finish(builder, carried)
        return False

    def _next_control(self, builder: Builder, going: bool | Tensor) -> list[Value]:
        flag = builder.constant(np.array(going)) if type(going) is bool else value_in_graph(going)
        if self._range is None:
            return [flag]
        return [value_in_graph(self._control[0] + 1), flag]

    def _update(self, slot: _Slot, after: Frozen, fresh: dict[int, Any]) -> bool:
        try:
            return slot.update(after, fresh)
        except Mismatch as mismatch:
            error = mismatch.error(self._where, slot.label, _WHEN)
            if not slot.weak:
                raise error from None
            slot.leaves, slot.before = None, Frozen(Undefined(slot.name, str(error), mismatch.hint))
            slot.weak = False
            return True

    def _restless(self, news: list[bool]) -> GraphTypeError:
        names = ", ".join(s.label for s, new in zip(self._slots, news, strict=False) if new)
        return GraphTypeError(
            self._where, message=f"the type of {names} keeps changing from one round to the next",
            hint="give it the type it ends with before the loop",
        )  # fmt: skip

    def _finish(self, body: Builder, carried: list[Value]) -> None:
        outer = self._outer
        first = list(self._control_first)
        for slot in self._slots:
            first += slot.first(outer)
        first += [value_in_graph(t) for t in self._written.values()]
        body.finish(carried)
        condition = Builder(f"{self._where}_condition", parent=outer)
        params = [wrap(condition.param(v.type)) for v in first]
        with staging(condition):
            if self._range is None:
                more = params[0]
            else:
                more = lt(params[0], wrap(condition.lift(self._length)))
                going = body.known(carried[1])
                if going is None or not going:
                    more = logical_and(more, params[1])
            condition.finish([value_in_graph(more)])
        consts = line_up((condition, body), explicit_last=True)
        attrs = {"cond_graph": condition.graph, "body_graph": body.graph, "n_const": len(consts)}
        node = outer.add(while_p, (*consts, *first), attrs)
        outs = iter([wrap(v) for v in node.outputs[len(self._control_types) :]])
        results = {}
        for slot in self._slots:
            value = slot.result(outs)
            if slot.place is None:
                target = slot.name in self._targets and type(value) is Maybe
                results[slot.name] = value.value if target else value
            else:
                slot.place.write(value)
        for tensor in self._written.values():
            set_value(tensor, next(outs))
        self.state = (*[results[n] for n in self._names], *self._before.values())


def _unchanged(before: Any, now: Frozen) -> bool:
    old = Frozen(before)
    if old.is_undefined or now.is_undefined:
        return old.obj is now.obj
    return _is_as_before(old, now)


def _is_as_before(old: Frozen, now: Frozen) -> bool:
    if old.obj is now.obj:
        return True
    if old.parts is None or now.parts is None or old.treedef.spec != now.treedef.spec:
        a, b = (x.leaves[0] if x.parts is None else x.obj for x in (old, now))
        return a.tensor is b.tensor if isinstance(a, Snap) and isinstance(b, Snap) else same(a, b)
    return len(old.parts) == len(now.parts) and all(map(_is_as_before, old.parts, now.parts))


def loop(
    line: int, names: tuple[str, ...] = (), weak: tuple[str, ...] = (), kept: tuple[str, ...] = (),
    targets: tuple[str, ...] = (),
) -> Loop:  # fmt: skip
    """A ``while`` or ``for`` at ``line``; ``names``, ``weak`` and ``kept`` are as for ``branch``."""
    return Loop(line, names, weak, kept, targets)


def clear(jump: Any, kind: int, last: bool = False) -> Any:
    """A jump code after the statement that ``kind`` leaves (``break``) or goes on with (``continue``).

    ``last`` says that no other kind can be left.
    """
    if not isinstance(jump, Tensor):
        return 0 if jump == kind else jump
    if last:
        return 0
    return cast(logical_not(eq(jump, kind)), jump.dtype) * jump
