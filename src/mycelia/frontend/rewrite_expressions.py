"""Rewriting of expressions: calls, truth values, and places that are written to.

What Python would evaluate lazily becomes a thunk, ``a and b`` thus ``_ms_rt.and_(a, lambda: b)``, in the user's
own scope and at the user's own position. A thunk is a lambda, and a lambda cannot hold ``yield`` or
``super()``, nor bind a variable of the function with ``:=``; such operands are rewritten in place instead, as
one expression that runs both sides itself (:meth:`ExpressionRewriter.inline`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Protocol

from mycelia.frontend.source import argument_names, mangle

RUNTIME = "_ms_rt"
#: The parameter that marks a lambda as a thunk made here.
THUNK = "_ms_t"

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Is: "is_",
    ast.IsNot: "is_not", ast.In: "contains", ast.NotIn: "contains_not",
}  # fmt: skip
_UNTOUCHED_CALLS = frozenset({"super", "globals", "eval", "exec", "locals", "vars", "dir", "__import__", "breakpoint"})
_ANSWER_BOOL = frozenset({"isinstance", "issubclass", "callable", "hasattr"})
_OF_PYTHON = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Compare, ast.Lambda)
_MAKE_CONTAINERS = (ast.Add, ast.Sub, ast.Mult, ast.BitOr, ast.BitAnd, ast.BitXor)
_LAZY = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Host(Protocol):
    """What the expressions need to know of the function they stand in."""

    class_name: str | None
    uses_frame: bool

    def fresh(self, kind: str) -> str:
        """A new variable of the function."""

    def reading(self, node: ast.Name) -> str | None:
        """``"use"`` or ``"sure"`` if a variable may hold a marker where it is read, else None."""


def name(identifier: str) -> ast.Name:
    """A variable that is read."""
    return ast.Name(identifier, ast.Load())


def store(identifier: str) -> ast.Name:
    """A variable that is bound."""
    return ast.Name(identifier, ast.Store())


def runtime(function: str, *args: ast.expr) -> ast.Call:
    """A call of the runtime."""
    return ast.Call(ast.Attribute(name(RUNTIME), function, ast.Load()), list(args), [])


def method(owner: str, attribute: str, *args: ast.expr) -> ast.Call:
    """A call of a method of a variable."""
    return ast.Call(ast.Attribute(name(owner), attribute, ast.Load()), list(args), [])


def attribute(owner: str, attr: str) -> ast.Attribute:
    """An attribute of a variable."""
    return ast.Attribute(name(owner), attr, ast.Load())


def thunk(body: ast.expr) -> ast.Lambda:
    """``lambda: body``."""
    args = ast.arguments(
        posonlyargs=[], args=[], vararg=ast.arg(THUNK), kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[]
    )
    return ast.copy_location(ast.Lambda(args, body), body)


def surely_python(test: ast.expr) -> bool:
    """Whether the truth of an expression cannot depend on a tensor's value."""
    if isinstance(test, (ast.Constant, ast.JoinedStr)):
        return True
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return surely_python(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(surely_python(v) for v in test.values)
    if isinstance(test, ast.Compare):
        if all(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops):
            return True
        return len(test.ops) == 1 and any(
            isinstance(x, ast.Constant) and isinstance(x.value, str) for x in (test.left, *test.comparators)
        )
    return isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id in _ANSWER_BOOL


def awkward(nodes: Iterable[ast.AST]) -> bool:
    """Whether any of the expressions needs the function's own scope, so that no thunk can hold it.

    It binds a variable, yields or awaits, or looks at the scope, as ``super()`` and ``locals()`` do.
    """
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _UNTOUCHED_CALLS:
            return True
        if not isinstance(node, _LAZY):
            stack.extend(ast.iter_child_nodes(node))
    return False


def walrus_names(nodes: Iterable[ast.AST]) -> list[str]:
    """The variables that expressions bind with ``:=``."""
    return list(dict.fromkeys(n.target.id for top in nodes for n in ast.walk(top) if isinstance(n, ast.NamedExpr)))


class Truth(ast.expr):
    """An expression of which only the truth is asked, on its way through the rewriter."""

    _fields = ("value",)

    def __init__(self, value: ast.expr) -> None:
        super().__init__()
        self.value = value
        ast.copy_location(self, value)


class ExpressionRewriter(ast.NodeTransformer):
    """Rewrites the expressions of one function."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.changed = False
        self._hidden: list[set[str]] = []
        self._scoped = 0  # inside a lambda or the source of a comprehension, where no variable can be bound

    # -- truth -------------------------------------------------------------------------------------

    def test(self, node: ast.expr) -> ast.expr:
        """An expression of which only the truth is asked."""
        if surely_python(node):
            return self.expression(node)
        if isinstance(node, ast.BoolOp):
            if awkward(node.values[1:]):
                return self._bool_in_place(node, as_test=True)
            self.changed = True
            first, *rest = [self.test(v) for v in node.values]
            kind = "all_of" if isinstance(node.op, ast.And) else "any_of"
            return ast.copy_location(runtime(kind, first, *map(thunk, rest)), node)
        if isinstance(node, ast.IfExp):
            node.body, node.orelse = self._asked(node.body), self._asked(node.orelse)
        return self.expression(node)

    @staticmethod
    def _asked(node: ast.expr) -> ast.expr:
        return node if surely_python(node) else Truth(node)

    def expression(self, node: ast.expr) -> ast.expr:
        """An expression whose value is used."""
        made: ast.expr = self.visit(node)
        return made

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        if all(surely_python(v) for v in node.values[:-1]):
            return self._generic(node)
        if awkward(node.values[1:]):
            return self._bool_in_place(node, as_test=False)
        self.changed = True
        first, *rest = [self.expression(v) for v in node.values]
        kind = "and_" if isinstance(node.op, ast.And) else "or_"
        return ast.copy_location(runtime(kind, first, *map(thunk, rest)), node)

    def _bool_in_place(self, node: ast.BoolOp, as_test: bool) -> ast.expr:
        if not self.can_inline:
            return self._generic(node)
        both = isinstance(node.op, ast.And)
        values = [Truth(v) for v in node.values] if as_test else node.values
        result: ast.expr = values[-1]
        for value in reversed(values[:-1]):
            kept = self.host.fresh("a")
            first = ast.NamedExpr(store(kept), value)
            body, other = (result, name(kept)) if both else (name(kept), result)
            result = ast.copy_location(ast.IfExp(first, body, other), node)
        ast.fix_missing_locations(result)
        return self.expression(result)

    def visit_Truth(self, node: Truth) -> ast.expr:
        return ast.copy_location(runtime("truth", self.test(node.value)), node.value)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if not isinstance(node.op, ast.Not):
            self._generic(node)
            node.operand = self.seen(node.operand)
            return node
        if surely_python(node.operand):
            return self._generic(node)
        self.changed = True
        return ast.copy_location(runtime("not_", self.test(node.operand)), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if surely_python(node.test):
            return self._generic(node)
        if awkward((node.body, node.orelse)):
            return self.inline(node) if self.can_inline else self._generic(node)
        self.changed = True
        parts = self.test(node.test), thunk(self.expression(node.body)), thunk(self.expression(node.orelse))
        return ast.copy_location(runtime("if_expr", *parts), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        membership = isinstance(node.ops[0], (ast.In, ast.NotIn))
        if surely_python(node) or (len(node.ops) == 1 and not membership) or awkward(node.comparators[1:]):
            self._generic(node)
            if not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                node.left, *node.comparators = [self.seen(x) for x in (node.left, *node.comparators)]
            return node
        self.changed = True
        operands = [self.seen(self.expression(x)) for x in (node.left, *node.comparators)]
        names = [_COMPARISONS[type(op)] for op in node.ops]
        if len(node.ops) == 1:
            return ast.copy_location(runtime(names[0], *operands), node)
        parts: list[ast.expr] = [operands[0], attribute(RUNTIME, names[0]), operands[1]]
        for op, operand in zip(names[1:], operands[2:], strict=True):
            parts += [attribute(RUNTIME, op), thunk(operand)]
        return ast.copy_location(runtime("chain", *parts), node)

    # -- what Python calls by itself -----------------------------------------------------------------

    def seen(self, node: ast.expr) -> ast.expr:
        """An expression for the value of which Python may call functions of its class."""
        if isinstance(node, _OF_PYTHON):
            return node
        self.changed = True
        return ast.copy_location(runtime("see", node), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self._generic(node)
        node.left, node.right = self.seen(node.left), self.seen(node.right)
        return self._made(node) if isinstance(node.op, _MAKE_CONTAINERS) else node

    def _made(self, node: ast.expr) -> ast.expr:
        """An expression the value of which may be a new container."""
        self.changed = True
        return ast.copy_location(runtime("new", node), node)

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        self._generic(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self.seen(node.value)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        self._generic(node)
        node.value = self.seen(node.value)
        return node

    # -- both sides in place -----------------------------------------------------------------------

    @property
    def can_inline(self) -> bool:
        """Whether temporary variables of the function can be bound here."""
        return self.host.uses_frame and not self._scoped

    def inline(self, node: ast.IfExp) -> ast.expr:
        """A conditional expression that runs its sides in this scope: a tuple of steps, the last the value."""
        self.changed = True
        made, value, joined = (self.host.fresh(k) for k in "bvq")
        bound = [*walrus_names((node.body, node.orelse)), value]
        line = ast.Constant(node.lineno)
        names = ast.Tuple([ast.Constant(mangle(n, self.host.class_name)) for n in bound], ast.Load())

        def staged(step: ast.expr, otherwise: ast.expr | None = None) -> ast.expr:
            return ast.IfExp(attribute(made, "staged"), step, otherwise or ast.Constant(None))

        def bind(call: ast.Call) -> list[ast.expr]:
            items = [ast.Subscript(name(joined), ast.Constant(i), ast.Load()) for i in range(len(bound))]
            assigned = [ast.NamedExpr(store(n), item) for n, item in zip(bound, items, strict=True)]
            return [staged(x) for x in (ast.NamedExpr(store(joined), call), *assigned)]

        here = runtime("locals")
        steps: list[ast.expr] = [
            ast.NamedExpr(store(made), runtime("branch", self.test(node.test), line, names)),
            staged(method(made, "begin", here)),
            ast.IfExp(
                attribute(made, "then"), ast.NamedExpr(store(value), self.expression(node.body)), ast.Constant(None)
            ),
            *bind(method(made, "switch", here)),
            ast.IfExp(
                attribute(made, "other"), ast.NamedExpr(store(value), self.expression(node.orelse)), ast.Constant(None)
            ),
            *bind(method(made, "join", here)),
            name(value),
        ]
        result = ast.Subscript(ast.Tuple(steps, ast.Load()), ast.Constant(-1), ast.Load())
        return ast.copy_location(result, node)

    # -- calls and what they make --------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id in _UNTOUCHED_CALLS:
            node.args = [self.expression(a) for a in node.args]
            for keyword in node.keywords:
                keyword.value = self.expression(keyword.value)
            if node.func.id in ("locals", "vars") and not node.args:
                return ast.copy_location(runtime("visible", node), node)
            if node.func.id == "vars":
                node.args = [runtime("whole", a) for a in node.args]
                ast.fix_missing_locations(node)
            return node
        self.changed = True
        self._generic(node)
        node.func = ast.copy_location(runtime("call", node.func), node.func)
        return ast.copy_location(runtime("new", node), node)

    def _display(self, node: ast.expr) -> ast.expr:
        self._generic(node)
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return node
        self.changed = True
        return ast.copy_location(runtime("new", node), node)

    visit_List = visit_Set = visit_Dict = _display  # noqa: N815

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> ast.expr:
        for generator in node.generators:
            self._scoped += 1  # not a place for :=
            advanced = runtime("advance", self.seen(self.expression(generator.iter)))
            generator.iter = ast.copy_location(advanced, generator.iter)
            self._scoped -= 1
            targets = {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}
            self._hidden.append(targets)
            generator.target = self.expression(generator.target)
            generator.ifs = [self._kept(c) for c in generator.ifs]
        if isinstance(node, ast.DictComp):
            node.key, node.value = self.expression(node.key), self.expression(node.value)
        else:
            node.elt = self.expression(node.elt)
        del self._hidden[len(self._hidden) - len(node.generators) :]
        self.changed = True
        return ast.copy_location(runtime("new", node), node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

    def _kept(self, condition: ast.expr) -> ast.expr:
        if surely_python(condition):
            return self.expression(condition)
        self.changed = True
        return ast.copy_location(runtime("keep", self.test(condition)), condition)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        for args in (node.args.defaults, node.args.kw_defaults):
            for i, default in enumerate(args):
                if default is not None:
                    args[i] = self.expression(default)
        self._hidden.append(set(argument_names(node.args)))
        self._scoped += 1
        node.body = self.expression(node.body)
        self._scoped -= 1
        self._hidden.pop()
        return node

    def visit_Yield(self, node: ast.Yield) -> ast.expr:
        if not self.host.uses_frame:
            return self._generic(node)
        value = self.expression(node.value) if node.value is not None else ast.Constant(None)
        made = ast.copy_location(ast.Yield(method("_ms_f", "suspend", value)), node)
        return ast.copy_location(method("_ms_f", "resume", made), node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.expr:
        if not self.host.uses_frame:
            return self._generic(node)
        source = runtime("see", self.expression(node.value))
        made = ast.copy_location(ast.YieldFrom(method("_ms_f", "suspend", source)), node)
        return ast.copy_location(method("_ms_f", "resume", made), node)

    # -- names and places ----------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node.ctx, ast.Load) or any(node.id in h for h in self._hidden):
            return node
        how = self.host.reading(node)
        return node if how is None else ast.copy_location(runtime(how, node), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self._generic(node)
        if not isinstance(node.ctx, ast.Load):
            self.touch(node)
            return node
        if isinstance(node.value, ast.Name) and node.value.id.startswith("_ms_"):
            return node
        self.changed = True
        attr = ast.Constant(mangle(node.attr, self.host.class_name))
        return ast.copy_location(runtime("attr", self.seen(node.value), attr), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self._generic(node)
        if isinstance(node.ctx, ast.Load):
            self.changed = True
            node.value = ast.copy_location(runtime("touch_read", node.value), node.value)
            if isinstance(node.slice, ast.Slice):
                return self._made(node)
        else:
            self.touch(node)
        return node

    def touch(self, node: ast.Attribute | ast.Subscript, in_place: bool = False) -> None:
        """Have the owner of a written place recorded."""
        self.changed = True
        if isinstance(node, ast.Subscript):
            made = runtime("touch_items" if in_place else "touch", node.value)
        else:
            attr = ast.Constant(mangle(node.attr, self.host.class_name))
            extra = (ast.Constant(True),) if in_place else ()
            made = runtime("touch_attribute", node.value, attr, *extra)
        node.value = ast.copy_location(made, node.value)

    def augmented(self, node: ast.Attribute | ast.Subscript) -> None:
        """The target of an augmented assignment."""
        self._generic(node)
        self.touch(node, in_place=True)

    def _generic(self, node: ast.expr) -> ast.expr:
        made = self.generic_visit(node)
        assert isinstance(made, ast.expr)
        return made


def assign(names: Sequence[str], value: ast.expr) -> ast.stmt:
    """``(names...) = value``, or ``value`` alone."""
    if not names:
        return ast.Expr(value)
    return ast.Assign([ast.Tuple([store(n) for n in names], ast.Store())], value)
