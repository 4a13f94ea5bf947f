"""``match`` statements that may ask for a tensor's value, said with ``if``.

Structure - classes, lengths, keys - is Python's to match and stays a ``match``. A guard, or a number to be equal
to, may depend on a tensor; so a statement with such cases becomes a chain of conditions before anything else is
rewritten::

    match s:                      found = False
        case (0, y) if y > 1:     match s:
            A                         case (v, y): found = True
        case _:                   if found and v == 0 and y > 1: A
            B                     else: B
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from mycelia.frontend.rewrite_expressions import name, store, surely_python

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def lower_matches(body: list[ast.stmt]) -> None:
    """Replace the ``match`` statements of a function's own body that may depend on tensors, in place."""
    if any(isinstance(n, ast.Match) for s in body for n in ast.walk(s)):
        body[:] = _Lowering().block(body)


class _Lowering:
    def __init__(self) -> None:
        self._count = 0

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [made for s in body for made in self._statement(s)]

    def _statement(self, s: ast.stmt) -> list[ast.stmt]:
        if isinstance(s, _SCOPES):
            return [s]
        for field in ("body", "orelse", "finalbody"):
            if inner := getattr(s, field, None):
                setattr(s, field, self.block(inner))
        for part in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
            part.body = self.block(part.body)
        if not isinstance(s, ast.Match) or not any(_depends(c) for c in s.cases):
            return [s]
        subject = self._fresh("s")
        first = ast.Assign([store(subject)], s.subject)
        made = [first, *self._chain(subject, s.cases)]
        ast.copy_location(first, s)
        return [ast.fix_missing_locations(m) for m in made]

    def _fresh(self, kind: str) -> str:
        self._count += 1
        return f"_ms_{kind}m{self._count}"

    def _chain(self, subject: str, cases: Sequence[ast.match_case]) -> list[ast.stmt]:
        if not cases:
            return []
        case, rest = cases[0], cases[1:]
        tests: list[ast.expr] = []
        pattern = self._lifted(case.pattern, tests)
        before: list[ast.stmt] = []
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
            if pattern.name is not None:
                before = [ast.Assign([store(pattern.name)], name(subject))]
        else:
            found = self._fresh("f")
            yes = ast.match_case(pattern, None, [ast.Assign([store(found)], ast.Constant(True))])
            before = [
                ast.Assign([store(found)], ast.Constant(False)),
                ast.Match(name(subject), [yes]),
            ]
            tests.insert(0, name(found))
        if case.guard is not None:
            tests.append(case.guard)
        for s in before:
            _place(s, case.pattern)
        if not tests:
            return [*before, *case.body]
        for t in tests:
            _place(t, case.pattern)
        test = tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(ast.And(), tests), case.pattern)
        made = ast.copy_location(ast.If(test, case.body, self._chain(subject, rest)), case.pattern)
        return [*before, made]

    def _lifted(self, pattern: ast.pattern, tests: list[ast.expr]) -> ast.pattern:
        """The pattern without what may depend on a tensor, which is added to ``tests``."""
        values = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
        if _asks_for_value(pattern):
            held = self._fresh("v")
            equal: list[ast.expr] = [
                ast.Compare(name(held), [ast.Eq()], [v.value]) for v in values if isinstance(v, ast.MatchValue)
            ]
            tests.append(equal[0] if len(equal) == 1 else ast.BoolOp(ast.Or(), equal))
            return ast.MatchAs(None, held)
        if isinstance(pattern, (ast.MatchSequence, ast.MatchMapping, ast.MatchClass)):
            pattern.patterns = [self._lifted(p, tests) for p in pattern.patterns]
        if isinstance(pattern, ast.MatchClass):
            pattern.kwd_patterns = [self._lifted(p, tests) for p in pattern.kwd_patterns]
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
            pattern.pattern = self._lifted(pattern.pattern, tests)
        return pattern


def _asks_for_value(pattern: ast.pattern) -> bool:
    values = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    return all(isinstance(v, ast.MatchValue) for v in values) and not all(
        isinstance(v.value, ast.Constant) and isinstance(v.value.value, (str, bytes))  # type: ignore[attr-defined]
        for v in values
    )


def _depends(case: ast.match_case) -> bool:
    if case.guard is not None and not surely_python(case.guard):
        return True
    return any(isinstance(p, ast.pattern) and _asks_for_value(p) for p in ast.walk(case.pattern))


def _place(top: ast.AST, where: ast.AST) -> None:
    """Give the nodes made here the position of the pattern they come from."""
    for node in ast.walk(top):
        if "lineno" in node._attributes and not hasattr(node, "lineno"):
            ast.copy_location(node, where)
