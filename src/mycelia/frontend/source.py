"""From a code object back to the syntax tree it was compiled from.

The whole file is parsed once and its functions are indexed by name and first line. ``inspect.getsource``
cuts lines out of a file and cannot tell two lambdas on one line apart; here a lambda is found by the source
positions that every instruction carries (PEP 657). Before a tree is trusted it is compared with the code:
same arguments, same lines, and no name that the text does not have, so that a file edited after it was
imported is noticed instead of being staged by mistake.

Sources come from :mod:`linecache`, where notebooks, the interactive prompt, doctests and zip imports put
theirs, too.
"""

from __future__ import annotations

import ast
import linecache
from collections import OrderedDict
from dataclasses import dataclass
from types import CodeType
from typing import Any

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_KEPT_FILES = 64


@dataclass(frozen=True, slots=True)
class Located:
    """A function's tree, as it stands in its file, and the class whose body it is inside of, if any."""

    node: FunctionNode
    class_name: str | None


class _File:
    """The functions of one parsed file."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.functions: dict[tuple[str, int], list[Located]] = {}
        self._index(ast.parse(text), None)

    def _index(self, node: ast.AST, class_name: str | None) -> None:
        stack: list[tuple[ast.AST, str | None]] = [(node, class_name)]
        while stack:
            top, owner = stack.pop()
            if isinstance(top, ast.Lambda):
                self.functions.setdefault(("<lambda>", top.lineno), []).append(Located(top, owner))
            elif isinstance(top, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([top.lineno, *(d.lineno for d in top.decorator_list)])
                self.functions.setdefault((top.name, first), []).append(Located(top, owner))
            elif isinstance(top, ast.ClassDef):
                owner = top.name
            stack.extend((child, owner) for child in ast.iter_child_nodes(top))


_files: OrderedDict[str, _File] = OrderedDict()


def _parsed(filename: str, module_globals: dict[str, Any]) -> _File | None:
    text = "".join(linecache.getlines(filename, module_globals))
    if not text:
        return None
    known = _files.get(filename)
    if known is None or known.text != text:
        try:
            known = _File(text)
        except (SyntaxError, ValueError, RecursionError):
            return None
        _files[filename] = known
        if len(_files) > _KEPT_FILES:
            _files.popitem(last=False)
    _files.move_to_end(filename)
    return known


def locate(code: CodeType, module_globals: dict[str, Any]) -> Located | None:
    """The syntax tree ``code`` was compiled from, or None if its source is gone or no longer the same."""
    found = _locate(code, module_globals)
    if found is None:
        linecache.checkcache(code.co_filename)
        found = _locate(code, module_globals)
    return found


def _locate(code: CodeType, module_globals: dict[str, Any]) -> Located | None:
    file = _parsed(code.co_filename, module_globals)
    if file is None:
        return None
    candidates = file.functions.get((code.co_name, code.co_firstlineno), [])
    fitting = [c for c in candidates if _fits(code, c)]
    if len(fitting) > 1:
        fitting = _by_position(code, fitting)
    return fitting[0] if len(fitting) == 1 else None


def _by_position(code: CodeType, candidates: list[Located]) -> list[Located]:
    """Those whose body spans all instructions, and of these the smallest."""
    spans = [
        ((line, col), (end_line, end_col))
        for line, end_line, col, end_col in code.co_positions()
        if line and end_line and end_col and col is not None
    ]
    if not spans:
        return []
    first, last = min(s[0] for s in spans), max(s[1] for s in spans)
    holding = []
    for c in candidates:
        if isinstance(c.node, ast.Lambda):
            body: ast.AST = c.node.body
            start, end = _start(body), _end(body)
            # The first instruction of a lambda stands at the lambda itself or at column 0 of its line.
            inside = [s for s in spans if s[0] >= start and s[1] <= end]
            outside = [s for s in spans if s not in inside and s[0] != s[1]]
            if inside and all(s[0] == _start(c.node) for s in outside):
                holding.append(c)
        elif _start(c.node) <= last and first <= _end(c.node):
            holding.append(c)
    holding.sort(key=lambda c: (_end(c.node), tuple(-x for x in _start(c.node))))
    return holding[:1]


def _start(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _end(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


def argument_names(args: ast.arguments) -> list[str]:
    """The parameter names in the order of ``co_varnames``."""
    names = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return names + [a.arg for a in (args.vararg, args.kwarg) if a is not None]


def mangle(name: str, class_name: str | None) -> str:
    """The name Python uses for ``__private`` names inside a class."""
    if class_name is None or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    stripped = class_name.lstrip("_")
    return f"_{stripped}{name}" if stripped else name


def _fits(code: CodeType, located: Located) -> bool:
    node, owner = located.node, located.class_name
    names = [mangle(n, owner) for n in argument_names(node.args)]
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    if tuple(names) != code.co_varnames[:count]:
        return False
    first, last = code.co_firstlineno, node.end_lineno or node.lineno
    if any(line is not None and not first <= line <= last for _, _, line in code.co_lines()):
        return False
    if any(n.startswith("@") for n in code.co_names):  # asserts rewritten by a test runner use names of its own
        return True
    written = {mangle(n, owner) for n in _identifiers(node)}
    used = (*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars)
    return all(n in written for n in used if n.isidentifier() and n != "__class__")


def _identifiers(node: ast.AST) -> set[str]:
    """Every name the text of a function mentions in any role."""
    found: set[str] = set()
    for part in ast.walk(node):
        for _, value in ast.iter_fields(part):
            if isinstance(value, str):
                found.add(value)
                found.update(value.split("."))
            elif isinstance(value, list):
                found.update(v for v in value if isinstance(v, str))
    return found


def copied(tree: FunctionNode) -> FunctionNode:
    """A copy of a tree, however deep."""
    root = _shallow(tree)
    stack: list[tuple[ast.AST, ast.AST]] = [(tree, root)]
    while stack:
        old, new = stack.pop()
        for name, value in ast.iter_fields(old):
            if isinstance(value, ast.AST):
                made: object = _shallow(value)
                stack.append((value, made))  # type: ignore[arg-type]
            elif isinstance(value, list):
                made = [_shallow(v) if isinstance(v, ast.AST) else v for v in value]
                stack.extend((v, m) for v, m in zip(value, made, strict=True) if isinstance(v, ast.AST))
            else:
                made = value
            setattr(new, name, made)
    assert isinstance(root, type(tree))
    return root


def _shallow(node: ast.AST) -> ast.AST:
    new: ast.AST = type(node).__new__(type(node))
    for name in node._attributes:
        if hasattr(node, name):
            setattr(new, name, getattr(node, name))
    return new
