"""Which variables matter at which statement of a function: its flow graph, liveness, certain assignment.

A function's tree becomes points in program order, one for each simple statement and each header, with the
names it reads, binds and deletes. Two classic data-flow analyses run over them (Aho, Lam, Sethi, Ullman,
"Compilers", 2nd ed., 9.2), as bit sets until nothing changes: *liveness* backwards (may the value still be
read?) and *certain assignment* forwards (is it bound on every way here?). Exceptions are edges from every
point of a ``try`` to its handlers, taken before the point has bound anything.

The points of a statement list are consecutive, so a region of the program is a half-open range of points.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from mycelia.frontend.source import FunctionNode, argument_names

_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

RETURN, BREAK, CONTINUE = "return", "break", "continue"


@dataclass(slots=True)
class Point:
    """One step: names read, bound and deleted, and where it goes on, also by an exception."""

    reads: int = 0
    binds: int = 0
    may_bind: int = 0  # in an operand that may not be evaluated
    kills: int = 0
    next: list[int] = field(default_factory=list)
    raises_to: list[int] = field(default_factory=list)


@dataclass(slots=True)
class State:
    """Variables that a range of the program binds: read after it, read by nested functions at most, not read."""

    read: list[str]
    captured: list[str]
    dead: list[str]

    @property
    def all(self) -> list[str]:
        """The variables in the order in which values are given."""
        return [*self.read, *self.captured, *self.dead]


@dataclass(slots=True)
class _Loop:
    head: int
    breaks: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Finally:
    entries: list[int] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Catch:
    points: list[int] = field(default_factory=list)


class Flow:
    """The analysed body of one function.

    ``captured`` are the names that nested functions, lambdas and classes mention: they may be read at any
    later time. ``shared`` are those bound outside this function or from inside a nested one (``global``,
    ``nonlocal``): their assignments can happen where this function does not see them.
    """

    def __init__(self, node: FunctionNode) -> None:
        self.points: list[Point] = []
        self.ranges: dict[int, tuple[int, int]] = {}
        self.bodies: dict[int, int] = {}
        self.point_of: dict[int, int] = {}
        self.captured: set[str] = set()
        self.shared: set[str] = set()
        self.outer: set[str] = set()
        self.globals: set[str] = set()
        self._bits: dict[str, int] = {}
        self._stack: list[_Loop | _Finally | _Catch] = []
        self._skippable = 0  # how many operands that may not be evaluated stand around what is visited
        self._nodes = list(ast.walk(node))  # kept alive: nodes are known by their identity
        entry = self._point([])
        for name in argument_names(node.args):
            self._bind(entry, name)
        body: list[ast.stmt] = [ast.Expr(node.body)] if isinstance(node, ast.Lambda) else node.body
        ends = self._block(body, [entry])
        self.exit = self._point(ends)
        for point in self._exits:
            self.points[point].next.append(self.exit)
        self.shared |= self.outer
        self.locals = {n for n, bit in self._bits.items() if self._ever & bit} - self.outer
        self._reached = self._reachable()
        self.live_in = self._liveness()
        self.sure_in = self._assignment()

    _exits: list[int]
    _ever: int

    # -- questions ---------------------------------------------------------------------------------

    def bit(self, name: str) -> int:
        """The bit that stands for a name."""
        return self._bits.setdefault(name, 1 << len(self._bits))

    def span(self, statements: Sequence[ast.stmt]) -> tuple[int, int]:
        """The points of a list of neighbouring statements."""
        return self.ranges[id(statements[0])][0], self.ranges[id(statements[-1])][1]

    def bound_in(self, span: tuple[int, int]) -> list[str]:
        """The local names bound or deleted inside a range, in order of first appearance."""
        bits = 0
        for point in self.points[span[0] : span[1]]:
            bits |= point.binds | point.may_bind | point.kills
        return [n for n in self._names(bits) if n in self.locals and n not in self.shared]

    def deleted_in(self, name: str, span: tuple[int, int]) -> bool:
        """Whether a range may leave a name without a value."""
        bit = self.bit(name)
        return any(point.kills & bit for point in self.points[span[0] : span[1]])

    def live_after(self, span: tuple[int, int]) -> int:
        """What may be read wherever the range can be left to."""
        live = 0
        for point in self.points[span[0] : span[1]]:
            for target in (*point.next, *point.raises_to):
                if not span[0] <= target < span[1]:
                    live |= self.live_in[target]
        return live

    def state(self, span: tuple[int, int], also_live: int = 0) -> State:
        """The variables a range of the program binds."""
        bound = self.bound_in(span)
        live = self.live_after(span) | also_live
        read = [n for n in bound if live & self.bit(n)]
        captured = [n for n in bound if not live & self.bit(n) and n in self.captured]
        return State(read, captured, [n for n in bound if n not in read and n not in captured])

    def is_reached(self, statement: ast.stmt) -> bool:
        """Whether the program can come to a statement at all."""
        return self._reached[self.ranges[id(statement)][0]]

    def is_sure(self, name: str, point: int) -> bool:
        """Whether ``name`` is bound on every way to a point."""
        return bool(self.sure_in[point] & self.bit(name))

    def _names(self, bits: int) -> list[str]:
        return [n for n, bit in self._bits.items() if bits & bit]

    # -- building ----------------------------------------------------------------------------------

    def _point(self, before: Iterable[int]) -> int:
        index = len(self.points)
        self.points.append(Point())
        if index == 0:
            self._exits, self._ever = [], 0
        for i in before:
            self.points[i].next.append(index)
        for frame in self._stack:
            if isinstance(frame, _Catch):
                frame.points.append(index)
        return index

    def _block(self, statements: Sequence[ast.stmt], before: list[int]) -> list[int]:
        for statement in statements:
            start = len(self.points)
            before = self._statement(statement, before)
            self.ranges[id(statement)] = (start, len(self.points))
        return before

    def _step(self, before: list[int], *parts: ast.AST | None) -> int:
        index = self._point(before)
        for part in parts:
            if part is not None:
                self._names_of(part, index, frozenset())
        return index

    def _bind(self, index: int, name: str) -> None:
        if self._skippable:
            self.points[index].may_bind |= self.bit(name)
        else:
            self.points[index].binds |= self.bit(name)
        self._ever |= self.bit(name)

    def _statement(self, s: ast.stmt, before: list[int]) -> list[int]:
        method: Callable[[ast.stmt, list[int]], list[int]] | None = getattr(self, "_on_" + type(s).__name__, None)
        if method is not None:
            return method(s, before)
        return [self._step(before, s)]

    def _on_If(self, s: ast.If, before: list[int]) -> list[int]:
        test = self._step(before, s.test)
        self.bodies[id(s)] = len(self.points)
        ends = self._block(s.body, [test])
        return [*ends, *self._block(s.orelse, [test])]

    def _on_While(self, s: ast.While, before: list[int]) -> list[int]:
        head = self._step(before, s.test)
        loop = _Loop(head)
        self._stack.append(loop)
        for end in self._block(s.body, [head]):
            self.points[end].next.append(head)
        self._stack.pop()
        self.bodies[id(s)] = len(self.points)
        endless = isinstance(s.test, ast.Constant) and bool(s.test.value)
        return [*loop.breaks, *self._block(s.orelse, [] if endless else [head])]

    def _on_For(self, s: ast.For | ast.AsyncFor, before: list[int]) -> list[int]:
        source = self._step(before, s.iter)
        head = self._point([source])
        loop = _Loop(head)
        self._stack.append(loop)
        target = self._step([head], s.target)
        for end in self._block(s.body, [target]):
            self.points[end].next.append(head)
        self._stack.pop()
        self.bodies[id(s)] = len(self.points)
        return [*loop.breaks, *self._block(s.orelse, [head])]

    _on_AsyncFor = _on_For  # noqa: N815

    def _on_With(self, s: ast.With | ast.AsyncWith, before: list[int]) -> list[int]:
        for item in s.items:
            before = [self._step(before, item.context_expr, item.optional_vars)]
        catch = _Catch()
        self._stack.append(catch)
        ends = self._block(s.body, before)
        self._stack.pop()
        after = self._point(ends)  # a context manager may swallow an exception
        for p in catch.points:
            self.points[p].raises_to.append(after)
        return [after]

    _on_AsyncWith = _on_With  # noqa: N815

    def _on_Try(self, s: ast.Try, before: list[int]) -> list[int]:
        final = _Finally() if s.finalbody else None
        caught_all = _Catch()
        if final is not None:
            self._stack += [final, caught_all]
        catch = _Catch()
        self._stack.append(catch)
        start = self._point(before)
        ends = self._block(s.body, [start])
        self._stack.pop()
        ends = self._block(s.orelse, ends)
        for handler in s.handlers:
            entry = self._step([], handler.type)
            for p in catch.points:
                self.points[p].raises_to.append(entry)
            if handler.name:
                self._bind(entry, handler.name)
            leaving = self._block(handler.body, [entry])
            if handler.name:
                gone = self._point(leaving)
                self.points[gone].kills |= self.bit(handler.name)
                leaving = [gone]
            ends = [*ends, *leaving]
        if final is None:
            return ends
        del self._stack[-2:]
        entry = self._point([*ends, *final.entries])
        for p in caught_all.points:
            self.points[p].raises_to.append(entry)
        leaving = self._block(s.finalbody, [entry])
        for kind in dict.fromkeys(final.pending):
            for p in leaving:
                self._jump(kind, p)
        self._exits.extend(leaving)  # an exception goes on after the block
        return leaving

    _on_TryStar = _on_Try  # noqa: N815

    def _on_Match(self, s: ast.Match, before: list[int]) -> list[int]:
        missed = [self._step(before, s.subject)]
        ends: list[int] = []
        for case in s.cases:
            pattern = self._step(missed, case.pattern)
            tested = self._step([pattern], case.guard) if case.guard is not None else pattern
            ends += self._block(case.body, [tested])
            missed = [pattern, tested] if tested != pattern else [pattern]
        return [*ends, *missed]

    def _on_Return(self, s: ast.Return, before: list[int]) -> list[int]:
        self._jump(RETURN, self._step(before, s.value))
        return []

    def _on_Raise(self, s: ast.Raise, before: list[int]) -> list[int]:
        self._step(before, s.exc, s.cause)
        return []

    def _on_Break(self, s: ast.Break, before: list[int]) -> list[int]:
        self._jump(BREAK, self._point(before))
        return []

    def _on_Continue(self, s: ast.Continue, before: list[int]) -> list[int]:
        self._jump(CONTINUE, self._point(before))
        return []

    def _jump(self, kind: str, point: int) -> None:
        for frame in reversed(self._stack):
            if isinstance(frame, _Finally):
                frame.entries.append(point)
                frame.pending.append(kind)
                return
            if isinstance(frame, _Loop) and kind != RETURN:
                if kind == BREAK:
                    frame.breaks.append(point)
                else:
                    self.points[point].next.append(frame.head)
                return
        self._exits.append(point)

    def _on_Global(self, s: ast.Global | ast.Nonlocal, before: list[int]) -> list[int]:
        self.outer.update(s.names)
        if isinstance(s, ast.Global):
            self.globals.update(s.names)
        return [self._point(before)]

    _on_Nonlocal = _on_Global  # noqa: N815

    # -- names of one step -------------------------------------------------------------------------

    def _names_of(self, node: ast.AST, index: int, hidden: frozenset[str]) -> None:
        point = self.points[index]
        if isinstance(node, ast.Name):
            self.point_of[id(node)] = index
            if node.id in hidden:
                return
            if isinstance(node.ctx, ast.Load):
                point.reads |= self.bit(node.id)
            elif isinstance(node.ctx, ast.Store):
                self._bind(index, node.id)
            else:
                point.kills |= self.bit(node.id)
                self._ever |= self.bit(node.id)
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name):
                point.reads |= self.bit(node.target.id)
            for child in (node.target, node.value):
                self._names_of(child, index, hidden)
        elif isinstance(node, ast.NamedExpr):
            self._names_of(node.value, index, hidden)
            self.point_of[id(node.target)] = index
            self._bind(index, node.target.id)
        elif isinstance(node, (ast.BoolOp, ast.IfExp, ast.Compare)):
            self._skipping(node, index, hidden)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._names_of(node.value, index, hidden)
            if node.value is not None or not isinstance(node.target, ast.Name):
                self._names_of(node.target, index, hidden)
        elif isinstance(node, _NESTED):
            self._nested(node, index, hidden)
        elif isinstance(node, _COMPREHENSIONS):
            self._comprehension(node, index, hidden)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if alias.name != "*":
                    self._bind(index, alias.asname or alias.name.split(".")[0])
        elif isinstance(node, (ast.MatchAs, ast.MatchStar, ast.MatchMapping)):
            name = node.rest if isinstance(node, ast.MatchMapping) else node.name
            if name is not None:
                self._bind(index, name)
            self._children(node, index, hidden)
        else:
            self._children(node, index, hidden)

    def _skipping(
        self, node: ast.BoolOp | ast.IfExp | ast.Compare, index: int, hidden: frozenset[str]
    ) -> None:  # fmt: skip
        """An expression that may leave operands out: what they bind is not certain."""
        if isinstance(node, ast.BoolOp):
            always, others = node.values[:1], node.values[1:]
        elif isinstance(node, ast.IfExp):
            always, others = [node.test], [node.body, node.orelse]
        else:
            always, others = [node.left, node.comparators[0]], node.comparators[1:]
        for part in always:
            self._names_of(part, index, hidden)
        self._skippable += 1
        for part in others:
            self._names_of(part, index, hidden)
        self._skippable -= 1

    def _children(self, node: ast.AST, index: int, hidden: frozenset[str]) -> None:
        for child in ast.iter_child_nodes(node):
            self._names_of(child, index, hidden)

    def _nested(self, node: ast.AST, index: int, hidden: frozenset[str]) -> None:
        if isinstance(node, ast.Lambda):
            outside: list[ast.AST | None] = [*node.args.defaults, *node.args.kw_defaults]
        else:
            assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            outside = list(node.decorator_list)
            if isinstance(node, ast.ClassDef):
                outside += [*node.bases, *(k.value for k in node.keywords)]
            else:
                outside += [*node.args.defaults, *node.args.kw_defaults]
            self._bind(index, node.name)
        for part in outside:
            if part is not None:
                self._names_of(part, index, hidden)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                self.captured.add(inner.id)
                if isinstance(node, ast.ClassDef) and isinstance(inner.ctx, ast.Load):
                    self.points[index].reads |= self.bit(inner.id)
            elif isinstance(inner, ast.Nonlocal):
                self.captured.update(inner.names)
                self.shared.update(inner.names)

    def _comprehension(self, node: ast.AST, index: int, hidden: frozenset[str]) -> None:
        assert isinstance(node, _COMPREHENSIONS)
        inside = hidden
        for i, generator in enumerate(node.generators):
            self._names_of(generator.iter, index, inside if i else hidden)
            self._skippable += not i  # there may be nothing to go over
            targets = {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}
            inside = inside | targets
            for part in (generator.target, *generator.ifs):
                self._names_of(part, index, inside)
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        for part in parts:
            self._names_of(part, index, inside)
        self._skippable -= 1
        if isinstance(node, ast.GeneratorExp):
            self.captured.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))

    # -- the analyses ------------------------------------------------------------------------------

    def _reachable(self) -> list[bool]:
        reached = [False] * len(self.points)
        stack = [0]
        while stack:
            index = stack.pop()
            if not reached[index]:
                reached[index] = True
                stack += [*self.points[index].next, *self.points[index].raises_to]
        return reached

    def _liveness(self) -> list[int]:
        live = [0] * len(self.points)
        changed = True
        while changed:
            changed = False
            for i in range(len(self.points) - 1, -1, -1):
                p = self.points[i]
                out = 0
                for j in p.next:
                    out |= live[j]
                new = p.reads | (out & ~(p.binds | p.kills))
                for j in p.raises_to:
                    new |= live[j]
                if new != live[i]:
                    live[i] = new
                    changed = True
        return live

    def _assignment(self) -> list[int]:
        everything = (1 << len(self._bits)) - 1
        sure = [everything] * len(self.points)
        sure[0] = 0
        changed = True
        while changed:
            changed = False
            for i, p in enumerate(self.points):
                out = (sure[i] & ~p.kills) | p.binds | p.may_bind  # who reads it knows that it was bound
                for targets, given in ((p.next, out), (p.raises_to, sure[i])):
                    for j in targets:
                        if sure[j] & ~given:
                            sure[j] &= given
                            changed = True
        return sure
