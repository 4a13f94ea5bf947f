"""Rewriting of a function: conditions, loops and jumps that may depend on a tensor.

The result stays one Python function with the user's own statements in the user's own order; branches and
bodies are not torn out into functions. ``if c: A else: B`` becomes::

    b = _ms_rt.branch(c, line, names)
    if b.staged: b.begin(locals())
    if b.then:
        A
        if b.staged: (names) = b.switch(locals())
    if b.other:
        B
        if b.staged: (names) = b.join(locals())

On a Python condition exactly one side runs, natively. On a tensor both do, one after the other.

``return``, ``break`` and ``continue`` jump natively unless a region is open between them and their target.
Then they set the jump code ``_ms_j`` (0 none, 1 break, 2 continue, 3 return, 4 raise), and what follows the
statement is guarded: ``if jump code is 0``. An ``if`` one side of which always jumps takes what follows it
into its other side, which needs no guard. The code that joins two paths may be a tensor; a ``while`` goes on
while it is 0.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mycelia.frontend.flow import Flow, State
from mycelia.frontend.jumps import (
    CODES,
    FLAGGED,
    FRAME,
    JUMP,
    RESULT,
    TO_LOOP,
    always_jumps,
    flagged,
    flags_of,
    stageable,
)
from mycelia.frontend.patterns import lower_matches
from mycelia.frontend.rewrite_expressions import (
    RUNTIME,
    ExpressionRewriter,
    Truth,
    assign,
    attribute,
    awkward,
    method,
    name,
    runtime,
    store,
    surely_python,
    thunk,
)
from mycelia.frontend.source import mangle

Statements = Sequence[ast.stmt]
Code = list[ast.stmt]

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
#: What may raise an error besides ``raise``.
_MAY_FAIL = (ast.Call, ast.Assert, ast.Subscript, ast.BinOp, ast.AugAssign, ast.Attribute)
_MAX_MOVED = 60
#: How many ``try`` blocks are made inside each other: Python nests no more than twenty blocks.
_MAX_NESTED = 6


def _own_parts(body: Statements) -> list[ast.AST]:
    """Every node of a function's own code, without nested scopes."""
    found: list[ast.AST] = []
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        found.append(node)
        if not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))
    return found


def _is_rest(node: ast.AST) -> bool:
    return isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)


def _has_regions(body: Statements) -> bool:
    for node in _own_parts(body):
        if isinstance(node, (ast.While, ast.For)) or (isinstance(node, ast.If) and stageable(node.test)):
            return True
        if isinstance(node, ast.BoolOp) and awkward(node.values[1:]):
            return True
        if isinstance(node, ast.IfExp) and awkward((node.body, node.orelse)):
            return True
    return False


def _place_children(top: ast.AST) -> None:
    """Give new nodes the position of the node they stand in; nodes that have one are left, and all below them."""
    stack = [top]
    while stack:
        node = stack.pop()
        for child in ast.iter_child_nodes(node):
            if not hasattr(child, "lineno"):
                if "lineno" in child._attributes:
                    ast.copy_location(child, node)
                    child.lineno, child.col_offset = node.lineno, node.col_offset  # type: ignore[attr-defined]
                stack.append(child)


@dataclass(slots=True)
class _Catcher:
    """A ``try`` or handler around the statements being rewritten, with the variable that marks its regions."""

    mark: str


class FunctionRewriter:
    """Rewrites one ``def`` or ``lambda`` and what is nested in it."""

    def __init__(
        self, node: ast.FunctionDef | ast.Lambda, class_name: str | None, parent: FunctionRewriter | None = None
    ) -> None:
        self.node, self.class_name, self.parent = node, class_name, parent
        self.body: list[ast.stmt] = [] if isinstance(node, ast.Lambda) else node.body
        lower_matches(self.body)
        self.uses_frame = _has_regions(self.body)
        if "return" in flagged(self.body, False) and not always_jumps(self.body):
            end = ast.Return(ast.Constant(None))
            last = self.body[-1]
            self.body.append(ast.copy_location(end, getattr(last, "test", None) or getattr(last, "iter", None) or last))
            ast.fix_missing_locations(end)
        self.flow = Flow(node)
        self.marked = self._may_be_unbound()
        self.expressions = ExpressionRewriter(self)
        self._numbers: Iterator[int] = parent._numbers if parent is not None else itertools.count(1)
        self._inside = 0
        self._moved = self._nested = 0
        self._loops: list[str] = []
        self._catchers: list[_Catcher] = []

    @property
    def changed(self) -> bool:
        """Whether anything was rewritten."""
        return self.expressions.changed

    def rewrite(self) -> ast.FunctionDef | ast.Lambda:
        """The rewritten function; its node is changed in place."""
        node = self.node
        if isinstance(node, ast.Lambda):
            self.expressions._scoped = 1
            node.body = self.expressions.expression(node.body)
            return node
        doc = []
        body = self.body
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            doc, body = [body[0]], body[1:]
        returns = "return" in flagged(body, False)
        code = self.block(body)
        if returns:
            code += self._placed([ast.Return(runtime("sure", name(RESULT)))], body[-1])
        if self.uses_frame:
            self.expressions.changed = True
            start = [ast.Assign([store(FRAME)], runtime("Frame")), ast.Assign([store(JUMP)], ast.Constant(0))]
            leave: Code = [ast.Expr(method(FRAME, "leave"))]
            code = [*start, ast.Try(body=code or [ast.Pass()], handlers=[], orelse=[], finalbody=leave)]
            for s in (*code, *leave):
                if not hasattr(s, "lineno"):
                    s.lineno, s.col_offset = node.lineno, node.col_offset
                    s.end_lineno, s.end_col_offset = node.lineno, node.col_offset
        node.body = [*doc, *self._own_objects(), *code] or [ast.Pass()]
        ast.fix_missing_locations(node)
        return node

    def _own_objects(self) -> Code:
        """The variables of this function that nested ones bind belong to this call, and so does ``**kwargs``."""
        shared = sorted(self.flow.shared & self.flow.locals)
        code: Code = [ast.Expr(runtime("own_cell", thunk(ast.copy_location(name(n), self.node)))) for n in shared]
        if self.node.args.kwarg is not None and self.changed:
            code.append(ast.Expr(runtime("born", name(self.node.args.kwarg.arg))))
        for s in code:
            s.lineno, s.col_offset = self.node.lineno, self.node.col_offset
            s.end_lineno, s.end_col_offset = self.node.lineno, self.node.col_offset
        return code

    # -- what the expressions ask (Host) -----------------------------------------------------------

    def fresh(self, kind: str) -> str:
        """A new variable of the function."""
        return f"_ms_{kind}{next(self._numbers)}"

    def reading(self, node: ast.Name) -> str | None:
        """How a variable is read that may hold a marker: ``"sure"`` where it is bound on every way, else ``"use"``."""
        if node.id in self.flow.locals:
            if node.id not in self.marked:
                return None
            point = self.flow.point_of.get(id(node))
            return "sure" if point is not None and self.flow.is_sure(node.id, point) else "use"
        owner = self.parent
        while owner is not None:
            if node.id in owner.flow.locals:
                return "use" if node.id in owner.marked else None
            owner = owner.parent
        return None

    def _may_be_unbound(self) -> set[str]:
        """Variables that some statement may bind on one of its paths only."""
        flow = self.flow
        found: set[str] = set()
        compound = (ast.If, ast.While, ast.For, ast.With, ast.Try, ast.TryStar, ast.Match)
        if not self.uses_frame:
            return set()
        for s in _own_parts(self.body):
            if isinstance(s, compound) and id(s) in flow.ranges:
                span = flow.ranges[id(s)]
                found.update(n for n in flow.bound_in(span) if not flow.is_sure(n, span[0]) or flow.deleted_in(n, span))
        return found

    # -- statement lists -----------------------------------------------------------------------------

    def block(self, body: Statements) -> Code:
        """Rewrite a statement list; what follows a statement that may jump is moved or guarded."""
        code: Code = []
        for i, s in enumerate(body):
            if not self.flow.is_reached(s):  # never run, but its names belong to the function
                never = ast.If(ast.Constant(False), list(body[i:]), [])
                return [*code, *self._placed([never], s)]
            rest = body[i + 1 :]
            kinds = flags_of(s, bool(self._inside))
            if isinstance(s, ast.If) and rest and kinds & FLAGGED and self._moved < _MAX_MOVED:
                moved = self._with_rest(s, rest)
                if moved is not None:
                    self._moved += 1
                    code += moved
                    self._moved -= 1
                    return code
            code += self.statement(s)
            if isinstance(s, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
                continue
            if kinds & (FLAGGED if not self._inside else frozenset(CODES)):
                code += self._leave(kinds, s)
                if rest:
                    code += self._guarded(rest, rest[0])
                return code
            if "raise" in kinds:
                code += self._leave(kinds, s)
        return code

    def _with_rest(self, s: ast.If, rest: Statements) -> Code | None:
        """``if c: ...jump...`` and what follows, as one statement; None if neither side always jumps."""
        jumps = [always_jumps(side) and bool(flagged(side, True) & FLAGGED) for side in (s.body, s.orelse)]
        if jumps[0] and not always_jumps(s.orelse):
            body, orelse = list(s.body), [*s.orelse, *rest]
        elif jumps[1] and not always_jumps(s.body):
            body, orelse = [*s.body, *rest], list(s.orelse)
        else:
            return None
        end = self.flow.ranges[id(rest[-1])][1]
        kinds = flagged(body, True) | flagged(orelse, True)
        return [*self._if(s, body, orelse, end), *self._leave(kinds, s)]

    def _placed(self, code: Code, where: ast.AST) -> Code:
        """Statements made here, at the position of a statement's header."""
        header: Any = getattr(where, "test", None) or getattr(where, "iter", None) or where
        for s in code:
            if not hasattr(s, "lineno"):
                s.lineno, s.col_offset = header.lineno, header.col_offset
                s.end_lineno, s.end_col_offset = header.end_lineno, header.end_col_offset
                _place_children(s)
        return code

    def statement(self, s: ast.stmt) -> Code:
        """Rewrite one statement."""
        handler = getattr(self, "_on_" + type(s).__name__, None)
        code: Code = self._simple(s) if handler is None else handler(s)
        return code

    # -- conditions ------------------------------------------------------------------------------------

    def _on_If(self, s: ast.If) -> Code:
        return self._if(s, s.body, s.orelse, self.flow.ranges[id(s)][1])

    def _if(self, s: ast.If, body: Statements, orelse: Statements, end: int) -> Code:
        if not stageable(s.test):
            test = self.expressions.expression(s.test)
            made = ast.If(test, self.block(body) or [ast.Pass()], self.block(orelse))
            return [ast.copy_location(made, s)]
        kinds = flagged(body, True) | flagged(orelse, True)
        state = self._state((self.flow.bodies[id(s)], end), kinds)
        test = self.expressions.test(s.test)
        b = self.fresh("b")
        self._inside += 1
        first, second = self._taking_up(b, body, s), self._taking_up(b, orelse, s)
        self._inside -= 1
        here = runtime("locals")
        start = runtime("branch", test, ast.Constant(s.lineno), *self._named(state))
        code: Code = [ast.Assign([store(b)], start), self._when_staged(b, ast.Expr(method(b, "begin", here)))]
        if second:
            first.append(self._at(self._when_staged(b, assign(state.all, method(b, "switch", here))), s))
            second.append(self._at(self._when_staged(b, assign(state.all, method(b, "join", here))), s))
            code += [ast.If(attribute(b, "then"), first, []), ast.If(attribute(b, "other"), second, [])]
        else:
            code += [
                ast.If(attribute(b, "then"), first or [ast.Pass()], []),
                self._when_staged(b, assign(state.all, method(b, "only", here))),
            ]
        return self._placed(code, s)

    def _taking_up(self, owner: str, statements: Statements, where: ast.AST) -> Code:
        """The code of a branch; an error that arises in it belongs to it."""
        fails = any(isinstance(n, _MAY_FAIL) for n in _own_parts(statements))
        chained = len(statements) == 1 and isinstance(statements[0], ast.If)  # ``elif``: its own branches do it
        if not fails or chained or self._nested >= _MAX_NESTED:
            return self.block(statements)
        self._nested += 1
        body = self.block(statements)
        self._nested -= 1
        error = self.fresh("x")
        taken = method(owner, "failed", name(error), ast.Constant(bool(self._catchers)))
        handler = ast.ExceptHandler(
            attribute(RUNTIME, "Error"), error, [ast.If(ast.UnaryOp(ast.Not(), taken), [ast.Raise(None, None)], [])]
        )
        return self._placed([ast.Try(body or [ast.Pass()], [handler], [], [])], where)

    def _guarded(self, rest: Statements, where: ast.stmt) -> Code:
        """``rest``, run if no path has jumped."""
        kinds = flagged(rest, True)
        return self._guard(rest, self._state(self.flow.span(rest), kinds), kinds, where)

    def _guard(
        self, rest: Statements, state: State, kinds: frozenset[str], where: ast.AST, before: Code | None = None,
        jump: str = JUMP,
    ) -> Code:  # fmt: skip
        g = self.fresh("b")
        here = runtime("locals")
        self._inside += 1
        body = [*(before or []), *self._taking_up(g, rest, where)]
        self._inside -= 1
        kept = None if kinds else self.fresh("k")
        code: Code = [] if kept is None else [ast.Assign([store(kept)], name(JUMP))]
        made = runtime("guard", name(jump), ast.Constant(where.lineno), *self._named(state))  # type: ignore[attr-defined]
        code += [
            ast.Assign([store(g)], made),
            self._when_staged(g, ast.Assign([store(JUMP)], method(g, "begin", here))),
            ast.If(attribute(g, "then"), body or [ast.Pass()], []),
            self._when_staged(g, assign(state.all, method(g, "only", here))),
        ]
        if kept is not None:
            code.append(self._when_staged(g, ast.Assign([store(JUMP)], name(kept))))
        return [*self._placed(code, where), *self._leave(kinds, where)]

    def _state(self, span: tuple[int, int], kinds: frozenset[str], also_live: int = 0) -> State:
        """The variables that join after a range of the program, with those of its jumps."""
        state = self.flow.state(span, also_live)
        if kinds:
            state.read.append(JUMP)
        if "return" in kinds:
            state.read.append(RESULT)
        return state

    def _named(self, state: State) -> list[ast.expr]:
        return [self._tuple(names) for names in (state.read, state.captured, state.dead)]

    def _tuple(self, names: Sequence[str]) -> ast.expr:
        return ast.Tuple([ast.Constant(mangle(n, self.class_name)) for n in names], ast.Load())

    @staticmethod
    def _when_staged(owner: str, s: ast.stmt) -> ast.stmt:
        return ast.If(attribute(owner, "staged"), [s], [])

    def _at(self, s: ast.stmt, where: ast.AST) -> ast.stmt:
        return self._placed([s], where)[0]

    # -- jumps -----------------------------------------------------------------------------------------

    def _leave(self, kinds: frozenset[str], where: ast.AST) -> Code:
        """After a statement: the jumps that every path has made, where they can be made natively."""
        code: Code = []
        frame = attribute(FRAME, "native")

        def when(kind: str, owner: ast.expr, body: Code) -> None:
            made = runtime("jumped", name(JUMP), ast.Constant(CODES[kind]))
            code.append(ast.If(ast.BoolOp(ast.And(), [made, owner]), body, []))

        if "return" in kinds:
            when("return", frame, [ast.Return(runtime("sure", name(RESULT)))])
        if "raise" in kinds:
            when("raise", frame, [ast.Return(ast.Constant(None))])
        if self._loops and kinds & TO_LOOP:
            native = attribute(self._loops[-1], "native")
            if "break" in kinds:
                when("break", native, [ast.Break()])
            if "continue" in kinds:
                when("continue", native, [ast.Assign([store(JUMP)], ast.Constant(0)), ast.Continue()])
        return self._placed(code, where)

    def _on_Return(self, s: ast.Return) -> Code:
        value = ast.Constant(None) if s.value is None else self.expressions.expression(s.value)
        if not self._inside:
            s.value = value
            return [s]
        code: Code = [
            ast.Assign([store(RESULT)], value),
            ast.If(attribute(FRAME, "native"), [ast.Return(name(RESULT))], []),
            ast.Assign([store(JUMP)], ast.Constant(CODES["return"])),
        ]
        return self._placed(code, s)

    def _on_Break(self, s: ast.Break | ast.Continue) -> Code:
        if not self._loops:
            return [s]
        kind = type(s).__name__.lower()
        code: Code = [
            ast.If(attribute(self._loops[-1], "native"), [s], []),
            ast.Assign([store(JUMP)], ast.Constant(CODES[kind])),
        ]
        return self._placed(code, s)

    _on_Continue = _on_Break  # noqa: N815

    def _on_Raise(self, s: ast.Raise) -> Code:
        s.exc = None if s.exc is None else self.expressions.expression(s.exc)
        s.cause = None if s.cause is None else self.expressions.expression(s.cause)
        if s.exc is None:
            return [s]
        if not self._inside:
            self.expressions.changed = True
            s.exc = ast.copy_location(runtime("raised", s.exc), s.exc)
            return [s]
        native: ast.expr = attribute(FRAME, "native")
        if self._catchers:
            native = ast.Compare(method(FRAME, "mark"), [ast.Eq()], [name(self._catchers[-1].mark)])
        error = self.fresh("e")
        staged = runtime("stage_raise", name(error), s.cause or ast.Constant(None), ast.Constant(bool(self._catchers)))
        real = ast.copy_location(ast.Raise(runtime("raised", name(error)), s.cause), s)
        code: Code = [
            ast.Assign([store(error)], s.exc),
            ast.If(native, [real], []),
            ast.Expr(staged),
            ast.Assign([store(JUMP)], ast.Constant(CODES["raise"])),
        ]
        return self._placed(code, s)

    # -- loops -----------------------------------------------------------------------------------------

    def _on_While(self, s: ast.While) -> Code:
        start, end = self.flow.ranges[id(s)][0], self.flow.bodies[id(s)]
        kinds = flagged(s.body, True)
        state = self._state((start, end), kinds, self.flow.live_in[start])
        w = self.fresh("w")
        body = self._loop_body(w, s.body, kinds)
        restore = self._at(self._when_staged(w, assign(state.all, attribute(w, "state"))), s)
        loop = ast.While(method(w, "test", self._loop_test(s, kinds), runtime("locals")), [restore, *body], [])
        loop.orelse = [
            self._at(self._when_staged(w, assign(state.all, attribute(w, "state"))), s), *self._loop_else(s, kinds)
        ]  # fmt: skip
        made = runtime("loop", ast.Constant(s.lineno), *self._named(state))
        before, after = self._loop_end(s, loop, kinds)
        return self._placed([*before, ast.Assign([store(w)], made), loop, *after], s)

    def _loop_test(self, s: ast.While, kinds: frozenset[str]) -> ast.expr:
        if not kinds - {"continue"}:
            return self.expressions.test(s.test)
        going = runtime("going", name(JUMP))
        if not awkward((s.test,)):
            return runtime("all_of", going, thunk(self.expressions.test(s.test)))
        both = ast.IfExp(going, Truth(s.test), ast.Constant(False))
        return self.expressions.inline(ast.fix_missing_locations(ast.copy_location(both, s.test)))

    def _loop_body(self, w: str, body: Statements, kinds: frozenset[str]) -> Code:
        self._loops.append(w)
        self._inside += 1
        code = self.block(body)
        self._inside -= 1
        self._loops.pop()
        return [*code, *self._round_end(kinds, body[-1])]

    def _round_end(self, kinds: frozenset[str], where: ast.AST) -> Code:
        if "continue" not in kinds:
            return []
        last = ast.Constant(not kinds & {"break", "return"})
        clear = runtime("clear", name(JUMP), ast.Constant(CODES["continue"]), last)
        return self._placed([ast.Assign([store(JUMP)], clear)], where)

    def _loop_else(self, s: ast.While | ast.For, kinds: frozenset[str]) -> Code:
        if not s.orelse:
            return []
        if not kinds - {"continue"}:
            return self.block(s.orelse)
        if not flagged(s.orelse, True) & TO_LOOP:
            return self._guarded(s.orelse, s.orelse[0])
        # jumps of the loop around: those of this one end here
        how = self.fresh("k")
        before: Code = [ast.Assign([store(how)], name(JUMP)), *self._cleared("return" not in kinds)]
        inner = flagged(s.orelse, True)
        state = self._state(self.flow.span(s.orelse), inner)
        return [*self._placed(before, s.orelse[0]), *self._guard(s.orelse, state, inner, s.orelse[0], jump=how)]

    @staticmethod
    def _cleared(last: bool) -> Code:
        clear = runtime("clear", name(JUMP), ast.Constant(CODES["break"]), ast.Constant(last))
        return [ast.Assign([store(JUMP)], clear)]

    def _loop_end(self, s: ast.While | ast.For, loop: ast.While | ast.For, kinds: frozenset[str]) -> tuple[Code, Code]:
        """What stands before and after a loop: the jump code is cleared of a ``break``, once."""
        if not kinds - {"continue"}:
            return [], []
        last = "return" not in kinds | flagged(s.orelse, True)
        if not flagged(s.orelse, True) & TO_LOOP:
            return [], self._cleared(last)
        done = self.fresh("d")
        loop.orelse.insert(0, self._at(ast.Assign([store(done)], ast.Constant(True)), s.orelse[0]))
        after = ast.If(ast.UnaryOp(ast.Not(), name(done)), self._cleared("return" not in kinds), [])
        return [ast.Assign([store(done)], ast.Constant(False))], [after]

    def _on_For(self, s: ast.For) -> Code:
        start, end = self.flow.ranges[id(s)][0] + 1, self.flow.bodies[id(s)]
        live = self.flow.live_in[start]
        kinds = flagged(s.body, True)
        state = self._state((start, end), kinds, live)
        bound = {n.id for n in ast.walk(s.target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        source = self.expressions.expression(s.iter)
        target = self.expressions.expression(s.target)
        w = self.fresh("w")
        if kinds - {"continue"}:
            item = self.fresh("i")
            take = self._placed([ast.Assign([target], name(item))], s.target)
            self._loops.append(w)
            body = self._guard(s.body, self._state((start + 1, end), kinds, live), kinds, s, before=take)
            self._loops.pop()
            body += self._round_end(kinds, s.body[-1])
            target = store(item)
        else:
            body = self._loop_body(w, s.body, kinds)
        kept = [n for n in state.all if n not in bound]
        restore = self._at(self._when_staged(w, assign(kept, attribute(w, "state"))), s)
        finish = self._at(self._when_staged(w, ast.Expr(method(w, "end", runtime("locals")))), s)
        loop = ast.For(target, method(w, "over", source, runtime("locals")), [restore, *body, finish], [])
        loop.orelse = [
            self._at(self._when_staged(w, assign(state.all, attribute(w, "state"))), s), *self._loop_else(s, kinds)
        ]  # fmt: skip
        targets = self._tuple([n for n in state.all if n in bound])
        made = runtime("loop", ast.Constant(s.lineno), *self._named(state), targets)
        before, after = self._loop_end(s, loop, kinds)
        return self._placed([*before, ast.Assign([store(w)], made), loop, *after], s)

    # -- other compound statements ---------------------------------------------------------------------

    def _on_With(self, s: ast.With) -> Code:
        for item in s.items:
            item.context_expr = self.expressions.seen(self.expressions.expression(item.context_expr))
            if item.optional_vars is not None:
                item.optional_vars = self.expressions.expression(item.optional_vars)
        staged = _has_regions(s.body)
        s.body = self.block(s.body)
        if not staged:
            return [s]
        mark = self.fresh("m")  # a context manager may stop an exception that left regions open
        before = ast.Assign([store(mark)], method(FRAME, "mark"))
        return [*self._placed([before], s), s, *self._placed([self._unwind(mark)], s)]

    @staticmethod
    def _unwind(mark: str) -> ast.stmt:
        return ast.Expr(method(FRAME, "unwind", name(mark)))

    def _on_Try(self, s: ast.Try | ast.TryStar) -> Code:
        kinds = flagged(s.body, bool(self._inside))
        if not self.uses_frame:
            s.body, s.orelse, s.finalbody = self.block(s.body), self.block(s.orelse), self.block(s.finalbody)
            for handler in s.handlers:
                self._handler(handler)
            return [s]
        mark = self.fresh("m")
        code = self._placed([ast.Assign([store(mark)], method(FRAME, "mark"))], s)
        catcher = _Catcher(mark)
        if s.handlers:
            self._catchers.append(catcher)
        s.body = self.block(s.body)
        if s.handlers:
            self._catchers.pop()
        s.orelse = self._guarded(s.orelse, s.orelse[0]) if s.orelse and kinds & FLAGGED else self.block(s.orelse)
        self._catchers.append(catcher)
        for handler in s.handlers:
            self._handler(handler)
            handler.body.insert(0, self._at(self._unwind(mark), handler))
        self._catchers.pop()
        if s.finalbody:
            s.finalbody = [*self._placed([self._unwind(mark)], s), *self._final(s.finalbody)]
        return [*code, s]

    def _final(self, body: Statements) -> Code:
        """``finally``: a jump that it runs before is put aside meanwhile."""
        if flagged(body, True):
            return self.block(body)
        kept = self.fresh("k")
        aside: Code = [ast.Assign([store(kept)], name(JUMP)), ast.Assign([store(JUMP)], ast.Constant(0))]
        back: Code = [ast.Assign([store(JUMP)], name(kept))]
        return [*self._placed(aside, body[0]), *self.block(body), *self._placed(back, body[-1])]

    _on_TryStar = _on_Try  # noqa: N815

    def _handler(self, handler: ast.ExceptHandler) -> None:
        if handler.type is not None:
            handler.type = self.expressions.expression(handler.type)
        handler.body = self.block(handler.body) or [ast.Pass()]

    def _on_Match(self, s: ast.Match) -> Code:
        s.subject = self.expressions.seen(self.expressions.expression(s.subject))
        if any(isinstance(n, ast.MatchClass) for case in s.cases for n in ast.walk(case.pattern)):
            s.subject = ast.copy_location(runtime("whole", s.subject), s.subject)
            self.expressions.changed = True
        for case in s.cases:
            if case.guard is not None:
                case.guard = self.expressions.expression(case.guard)
            case.body = self.block(case.body) or [ast.Pass()]
        return [s]

    # -- nested scopes ---------------------------------------------------------------------------------

    def _on_FunctionDef(self, s: ast.FunctionDef) -> Code:
        touched = self._touch_shared(s)
        s.decorator_list = [self.expressions.expression(d) for d in s.decorator_list]
        for args in (s.args.defaults, s.args.kw_defaults):
            for i, default in enumerate(args):
                if default is not None:
                    args[i] = self.expressions.expression(default)
        self._inner(FunctionRewriter(s, self.class_name, self))
        return [*touched, s]

    def _inner(self, rewriter: FunctionRewriter) -> None:
        rewriter.rewrite()
        self.expressions.changed = self.expressions.changed or rewriter.changed

    def _on_AsyncFunctionDef(self, s: ast.AsyncFunctionDef) -> Code:
        return [*self._touch_shared(s), s]

    def _on_ClassDef(self, s: ast.ClassDef) -> Code:
        touched = self._touch_shared(s)
        s.decorator_list = [self.expressions.expression(d) for d in s.decorator_list]
        s.bases = [self.expressions.expression(b) for b in s.bases]
        for keyword in s.keywords:
            keyword.value = self.expressions.expression(keyword.value)
        self._class_body(s)
        return [*touched, s]

    def _class_body(self, s: ast.ClassDef) -> None:
        for inner in s.body:
            if isinstance(inner, ast.FunctionDef):
                self._inner(FunctionRewriter(inner, s.name, self))
            elif isinstance(inner, ast.ClassDef):
                self._class_body(inner)

    # -- simple statements -----------------------------------------------------------------------------

    def _simple(self, s: ast.stmt) -> Code:
        touched = self._touch_shared(s)
        if isinstance(s, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass)):
            return [*touched, s]
        made = self.expressions.generic_visit(s)
        assert isinstance(made, ast.stmt)
        if isinstance(made, ast.Assign) and any(isinstance(t, (ast.Tuple, ast.List)) for t in made.targets):
            made.value = self.expressions.seen(made.value)
            rest = [n.value.id for t in made.targets for n in ast.walk(t) if _is_rest(n)]  # type: ignore[attr-defined]
            return [*touched, made, *self._placed([ast.Expr(runtime("born", name(n))) for n in rest], made)]
        return [*touched, made]

    def _on_AnnAssign(self, s: ast.AnnAssign) -> Code:
        touched = self._touch_shared(s)
        if s.value is not None:
            s.value = self.expressions.expression(s.value)
        target = self.expressions.expression(s.target)
        assert isinstance(target, (ast.Name, ast.Attribute, ast.Subscript))
        s.target = target
        return [*touched, s]

    def _on_AugAssign(self, s: ast.AugAssign) -> Code:
        before = self._touch_shared(s)
        if isinstance(s.target, ast.Name):
            read = ast.copy_location(name(s.target.id), s.target)
            self.flow.point_of[id(read)] = self.flow.ranges[id(s)][0]
            value = self.expressions.visit_Name(read)
            if value is not read:
                before += self._placed([ast.Assign([store(s.target.id)], value)], s)
            before += self._placed([ast.Expr(runtime("touch", name(s.target.id)))], s)
        else:
            self.expressions.augmented(s.target)
        s.value = self.expressions.seen(self.expressions.expression(s.value))
        return [*before, s]

    def _on_Assert(self, s: ast.Assert) -> Code:
        if surely_python(s.test):
            return self._simple(s)
        test = self.expressions.test(s.test)
        message = ast.Constant(None) if s.msg is None else self.expressions.expression(s.msg)
        said = ast.Constant(None) if awkward((message,)) else message
        s.test = ast.copy_location(runtime("holds", test, thunk(ast.copy_location(said, s))), s.test)
        s.msg = None if s.msg is None else message
        self.expressions.changed = True
        return [ast.fix_missing_locations(s)]

    def _touch_shared(self, s: ast.stmt) -> Code:
        """Variables of other scopes that a statement binds, recorded before it does."""
        if id(s) not in self.flow.ranges or not self.flow.shared:
            return []
        start, end = self.flow.ranges[id(s)]
        code: Code = []
        for shared in sorted(self.flow.shared):
            bit = self.flow.bit(shared)
            if not any((p.binds | p.kills) & bit for p in self.flow.points[start:end]):
                continue
            label = ast.Constant(mangle(shared, self.class_name))
            if shared in self.flow.globals:
                call = runtime("touch_global", runtime("globals"), label)
            else:
                call = runtime("touch_cell", label, thunk(ast.copy_location(name(shared), s)))
            code.append(ast.Expr(call))
        return self._placed(code, s)
