"""Jumps that may depend on a tensor: which statements have them, and how they are said.

A ``return``, ``break`` or ``continue`` under a condition on a tensor cannot be made while staging; it is
noted in the variable ``_ms_j`` of the function instead, a returned value in ``_ms_r``. An error raised on
such a path is noted, too: nothing of that path is used.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from mycelia.frontend.rewrite_expressions import surely_python

#: The variables of a rewritten function: the jump code, the returned value, the frame.
JUMP, RESULT, FRAME = "_ms_j", "_ms_r", "_ms_f"
#: The jump codes; 0 is none.
CODES = {"break": 1, "continue": 2, "return": 3, "raise": 4}
TO_LOOP = frozenset({"break", "continue"})
#: The jumps after which a path goes on elsewhere; after ``raise`` it does not go on.
FLAGGED = frozenset({"break", "continue", "return"})


def stageable(test: ast.expr) -> bool:
    """Whether a condition may turn out to be a tensor."""
    return not surely_python(test)


def always_jumps(body: Sequence[ast.stmt]) -> bool:
    """Whether the end of a statement list cannot be reached."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
        return True
    if isinstance(last, ast.If):
        return always_jumps(last.body) and always_jumps(last.orelse)
    return False


def _kinds_of(s: ast.stmt, inside: bool) -> frozenset[str]:
    if isinstance(s, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
        return frozenset({type(s).__name__.lower()}) if inside else frozenset()
    if isinstance(s, ast.If):
        inside = inside or stageable(s.test)
        return flagged(s.body, inside) | flagged(s.orelse, inside)
    if isinstance(s, (ast.While, ast.For)):
        inner = flagged(s.body, True)
        return (inner - TO_LOOP) | flagged(s.orelse, inside or bool(inner))
    if isinstance(s, (ast.With, ast.AsyncWith)):
        return flagged(s.body, inside)
    if isinstance(s, ast.AsyncFor):
        return flagged(s.body, inside) - TO_LOOP
    if isinstance(s, (ast.Try, ast.TryStar)):
        kinds = flagged(s.body, inside)
        kinds |= flagged(s.orelse, inside or bool(kinds & FLAGGED))
        for handler in s.handlers:
            kinds |= flagged(handler.body, inside)
        return kinds | flagged(s.finalbody, inside)
    if isinstance(s, ast.Match):
        return frozenset().union(*(flagged(c.body, inside) for c in s.cases))
    return frozenset()


def flags_of(s: ast.stmt, inside: bool) -> frozenset[str]:
    """The jumps out of one statement that may have to be made by setting the jump code.

    ``inside`` says whether a region may be open around it. The answer is kept with the node.
    """
    kept: dict[bool, frozenset[str]] | None = getattr(s, "_ms_flags", None)
    if kept is None:
        kept = s._ms_flags = {}  # type: ignore[attr-defined]
    if inside not in kept:
        kept[inside] = _kinds_of(s, inside)
    return kept[inside]


def flagged(body: Sequence[ast.stmt], inside: bool) -> frozenset[str]:
    """As :func:`flags_of`, for a statement list."""
    kinds: frozenset[str] = frozenset()
    for s in body:
        inside = inside or bool(kinds & FLAGGED)
        kinds |= flags_of(s, inside)
    return kinds
