"""Write docs/graph-errors.md: what each program of tests/frontend/error_tour/ prints when it fails.

Run as ``python scripts/make_error_tour.py``. A program is a file with a docstring (a title and a sentence) that
ends with an error; it runs in this process, and its traceback is formatted as the interpreter would print it.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mycelia as ms

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "frontend" / "error_tour"
PAGE = ROOT / "docs" / "graph-errors.md"

_HEAD = """\
# Errors of Graph mode

What the mistakes people make print. Each program below is a file of `tests/frontend/error_tour/`; the message is
exactly what the interpreter prints below the traceback, which itself shows only lines of the program.
`MYCELIA_TRACEBACK=full` in the environment adds the frames of the package.

This page is written by `scripts/make_error_tour.py`, under Python 3.11.
"""


@dataclass(frozen=True)
class Program:
    """One program of the tour: its title, the sentence below it, and the code without the docstring."""

    path: Path
    title: str
    sentence: str
    code: str


@dataclass(frozen=True)
class Outcome:
    """How a program ended: the error, what is printed below the traceback, and all that is printed."""

    error: BaseException
    message: str
    printed: str


def program(path: Path) -> Program:
    """Read one program."""
    text = path.read_text(encoding="utf-8")
    module = ast.parse(text)
    title, _, sentence = (ast.get_docstring(module) or "").partition("\n\n")
    code = "\n".join(text.splitlines()[module.body[0].end_lineno :])
    return Program(path, title.rstrip("."), sentence.replace("\n", " "), code.strip())


def programs() -> list[Program]:
    """All programs, by name."""
    return [program(p) for p in sorted(PROGRAMS.glob("*.py")) if p.name != "__init__.py"]


def run(path: Path) -> Outcome:
    """Run a program, without its docstring as it is shown, up to its error.

    Raises:
        RuntimeError: it ends without one.
    """
    text = program(path).code + "\n"
    linecache.cache[path.name] = len(text), None, text.splitlines(keepends=True), path.name  # lines are those shown
    mode = ms.get_context("mode")
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, path.name, "exec"), {"__name__": "__main__", "__file__": path.name})
    except Exception as error:
        entry = error.__traceback__
        error.__traceback__ = entry.tb_next if entry is not None else None
        printed = "".join(traceback.format_exception(error))
        message = "".join(traceback.format_exception_only(error))
        return Outcome(error, message.rstrip("\n"), printed.rstrip("\n"))
    finally:
        ms.set_context(mode=mode)
    raise RuntimeError(f"{path.name} ends without an error")


def page(outcome: Callable[[Path], Outcome] = run) -> str:
    """The text of the page; ``outcome`` runs a program."""
    parts = [_HEAD]
    for p in programs():
        message = outcome(p.path).message
        parts.append(f"\n## {p.title}\n\n{p.sentence}\n\n```python\n{p.code}\n```\n\n```text\n{message}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
