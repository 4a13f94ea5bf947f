"""Random programs: nested control flow over tensors and Python values, as source text.

Every variable keeps its kind: ``a b`` are float vectors, ``s t`` float scalars, ``i j`` integer scalars, all
tensors, ``p q`` Python integers. Arithmetic is exact (small whole numbers, reduced by ``%``), so that a
comparison cannot depend on rounding. Loops end by a counter that nothing else changes. ``c`` is a vector that
is written in place and never bound anew; no other variable is the same tensor.
"""

from __future__ import annotations

import gc
import linecache
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, strategies as st

#: Programs are long: what hypothesis would complain of.
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)


@pytest.fixture(autouse=True)
def rare_collections() -> Iterator[None]:
    """Graphs are cyclic and many: collecting them as they come takes longer than all the rest."""
    gc.disable()
    yield
    gc.enable()


_VARIABLES = {"vector": ("a", "b"), "scalar": ("s", "t"), "integer": ("i", "j"), "python": ("p", "q")}
_KINDS = tuple(_VARIABLES)


class _Writer:
    """Makes up one program: ``number(low, high)`` gives a number from a range, both ends included."""

    def __init__(self, number: Callable[[int, int], int], size: int) -> None:
        self.number, self.left = number, size
        self.counters = 0
        self.lines: list[str] = []

    def pick(self, *options: Any) -> Any:
        return options[self.number(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.number(1, 100) <= percent

    # -- expressions -------------------------------------------------------------------------------

    def value(self, kind: str, depth: int = 0) -> str:
        if depth >= 2 or self.chance(35):
            variable = self.pick(*_VARIABLES[kind], *(["(c % 7.0)"] if kind == "vector" else []))
            return variable if depth else f"{variable} + 0"
        if self.chance(12):
            return f"({self.value(kind, depth + 1)} if {self.test()} else {self.value(kind, depth + 1)})"
        if self.chance(10):
            return f"help_{kind}({self.value(kind, depth + 1)}, {self.pick('s', 't', 'i', 'p')})"
        if self.chance(8) and kind != "vector":
            function = self.pick("max", "min")
            return f"{function}({self.value(kind, depth + 1)}, {self.value(kind, depth + 1)})"
        left, right = self.value(kind, depth + 1), self.value(kind, depth + 1)
        modulus = {"vector": "7.0", "scalar": "9.0", "integer": "5", "python": "5"}[kind]
        if kind == "vector" and self.chance(40):
            right = self.value("scalar", depth + 1)
        if kind == "scalar" and self.chance(40):
            left = f"{self.value('vector', depth + 1)}.sum()"
        return f"(({left} {self.pick('+', '-', '*')} {right} + {self.number(0, 3)}) % {modulus})"

    def test(self, depth: int = 0) -> str:
        if depth < 2 and self.chance(25):
            word = self.pick("and", "or")
            return f"({self.test(depth + 1)} {word} {self.test(depth + 1)})"
        if depth < 2 and self.chance(12):
            return f"not {self.test(depth + 1)}"
        if self.chance(6):
            bound = self.pick("s", "i", "p")
            kind = {"s": "scalar", "i": "integer", "p": "python"}[bound]
            return f"({bound} := {self.value(kind, 1)}) {self.pick('<', '>')} {self.number(0, 3)}"
        kind = self.pick("scalar", "scalar", "integer", "python", "vector")
        op = self.pick("<", ">", "<=", ">=", "==", "!=")
        if kind == "vector":
            return f"({self.pick('a', 'b')} > {self.number(0, 4)}).{self.pick('any', 'all')}()"
        variable = self.pick(*_VARIABLES[kind])
        if self.chance(15):
            return f"{self.number(0, 2)} < {variable} <= {self.number(2, 6)}"
        if self.chance(10):
            return variable
        other = self.pick(*_VARIABLES[kind]) if self.chance(40) else str(self.number(0, 4))
        return f"{variable} {op} {other}"

    # -- statements --------------------------------------------------------------------------------

    def line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def result(self) -> str:
        return "(" + ", ".join(self.pick(*_VARIABLES[k]) for k in _KINDS) + ", c + 0)"

    def block(self, indent: int, in_loop: bool) -> None:
        for _ in range(self.number(1, 3)):
            self.statement(indent, in_loop)

    def statement(self, indent: int, in_loop: bool) -> None:
        self.left -= 1
        roll = self.number(1, 100)
        if self.left <= 0 or indent > 5 or roll <= 30:
            self.simple(indent)
        elif roll <= 62:
            self.condition(indent, in_loop)
        elif roll <= 74:
            self.for_loop(indent)
        elif roll <= 84:
            self.while_loop(indent)
        elif roll <= 89:
            self.guarded(indent, in_loop)
        elif in_loop and roll <= 95:
            self.line(indent, f"if {self.test()}:")
            self.line(indent + 1, self.pick("break", "continue"))
        else:
            self.line(indent, f"if {self.test()}:")
            self.line(indent + 1, f"return {self.result()}")

    def simple(self, indent: int) -> None:
        kind = self.pick(*_KINDS)
        name = self.pick(*_VARIABLES[kind])
        if kind == "vector" and self.chance(35):
            self.line(indent, f"c[{self.pick(0, 1)}] {self.pick('=', '+=', '=')} {self.value('scalar', 1)}")
        elif self.chance(20):
            self.line(indent, f"{name} {self.pick('+=', '-=')} {self.value(kind, 2)}")
        elif self.chance(8):
            other = _KINDS[self.number(0, 3)]
            second = self.pick(*_VARIABLES[other])
            self.line(indent, f"{name}, {second} = {self.value(kind)}, {self.value(other)}")
        elif self.chance(8):
            place = self.pick(f"box[{kind!r}]", f"obj.{kind}", f"cells[{_KINDS.index(kind)}]")
            self.line(indent, f"{place} = {self.value(kind)}")
        elif self.chance(8):
            place = self.pick(f"box[{kind!r}]", f"obj.{kind}", f"cells[{_KINDS.index(kind)}]")
            self.line(indent, f"{name} = {place} + 0")
        elif self.chance(6):
            self.line(indent, f"bump({self.pick('s', 't')}, {self.pick('p', 'q', '1')})")
        elif self.chance(6):
            self.line(indent, "t, q = (t + total) % 9.0, (q + calls) % 5")
        elif self.chance(4):
            self.search(indent)
        else:
            self.line(indent, f"{name} = {self.value(kind)}")

    def search(self, indent: int) -> None:
        """A loop that binds a variable before it breaks, or else in its ``else``."""
        self.line(indent, f"for n in {self.pick('range(3)', 'range(i % 3)', '(s, t)')}:")
        self.line(indent + 1, f"if {self.test(1)} and n < {self.number(0, 3)}:")
        self.line(indent + 2, f"found = {self.value('scalar', 1)}")
        self.line(indent + 2, "break")
        self.line(indent, "else:")
        self.line(indent + 1, f"found = {self.value('scalar', 1)}")
        self.line(indent, "s = (s + found) % 9.0")

    def condition(self, indent: int, in_loop: bool) -> None:
        self.line(indent, f"if {self.test()}:")
        self.block(indent + 1, in_loop)
        self.jump(indent + 1, in_loop, 18)
        if self.chance(25):
            self.line(indent, f"elif {self.test()}:")
            self.block(indent + 1, in_loop)
            self.jump(indent + 1, in_loop, 15)
        if self.chance(50):
            self.line(indent, "else:")
            self.block(indent + 1, in_loop)
            self.jump(indent + 1, in_loop, 15)

    def jump(self, indent: int, in_loop: bool, percent: int) -> None:
        if self.chance(percent):
            kinds = ["return"] + (["break", "continue"] * 2 if in_loop else [])
            kind = self.pick(*kinds)
            self.line(indent, f"return {self.result()}" if kind == "return" else kind)

    def for_loop(self, indent: int) -> None:
        variable = self.pick("k", "m")
        source = self.pick(
            f"range({self.number(0, 3)})", f"range({self.pick('i', 'j')} % 4)", f"range({self.pick('p', 'q')} % 3)",
            f"range({self.pick('i', 'j')} % 3, 4)", f"range(3, {self.pick('i', 'p')} % 3, -1)", "a", "[p, q]",
        )  # fmt: skip
        self.line(indent, f"for {variable} in {source}:")
        if source == "a":
            self.line(indent + 1, f"s = (s + {variable}) % 9.0")
        elif source.startswith("range"):
            self.line(indent + 1, f"{self.pick('i', 'j', 'i')} = (i + {variable}) % 5")
        self.block(indent + 1, True)
        self.otherwise(indent)

    def while_loop(self, indent: int) -> None:
        self.counters += 1
        counter = f"w{self.counters}"
        self.line(indent, f"{counter} = 0")
        bound = self.pick(str(self.number(1, 4)), "4", "i % 4", "p % 4")
        extra = f" and {self.test(1)}" if self.chance(60) else ""
        if self.chance(20):
            self.line(indent, "while True:")
            self.line(indent + 1, f"if {counter} >= 3:")
            self.line(indent + 2, "break")
        else:
            self.line(indent, f"while {counter} < {bound}{extra}:")
        self.line(indent + 1, f"{counter} += 1")
        self.block(indent + 1, True)
        self.otherwise(indent)

    def otherwise(self, indent: int) -> None:
        if self.chance(25):
            self.line(indent, "else:")
            self.block(indent + 1, False)

    def guarded(self, indent: int, in_loop: bool) -> None:
        if self.chance(50):
            self.line(indent, "with nullcontext():")
            self.block(indent + 1, in_loop)
            return
        self.line(indent, "try:")
        self.block(indent + 1, in_loop)
        if self.chance(50):
            self.line(indent, "except KeyError:")
            self.line(indent + 1, "pass")
            self.line(indent, "else:")
            self.block(indent + 1, in_loop)
        self.line(indent, "finally:")
        self.simple(indent + 1)


_HELPERS = """\
from contextlib import nullcontext

class Holder:
    def __init__(self, vector, scalar, integer, python):
        self.vector, self.scalar, self.integer, self.python = vector, scalar, integer, python

def help_vector(v, c):
    if c > 2:
        return v
    return (v + c) % 7.0

def help_scalar(v, c):
    for _ in range(2):
        if v > c:
            v = (v - c) % 9.0
            continue
        v = (v + 1) % 9.0
        if v == 3:
            break
    else:
        return v
    return (v + 2) % 9.0

def help_integer(v, c):
    count = 0
    while v > c and count < 3:
        v = v - 1
        count += 1
    return (v + count) % 5

def help_python(v, c):
    def inner(u):
        nonlocal total
        total = total + 1
        return u if u else 1
    total = 0
    result = (inner(v) + (inner(v) if c else 2)) % 5
    return (result + total) % 5

"""


_CLOSURE = (
    "def bump(by, count):",
    "    nonlocal total, calls",
    "    if by > 3:",
    "        total = (total + by) % 9.0",
    "    calls = (calls + count) % 5",
)


@st.composite
def programs(draw: Any, size: int = 22) -> str:
    """The source of a function ``f(a, s, i, p)``, drawn by hypothesis."""
    return _program(_Writer(lambda low, high: draw(st.integers(low, high)), size))


def program_of(seed: int, size: int) -> str:
    """The source of a function ``f(a, s, i, p)`` made up from a seed, at a fraction of the cost of drawing it."""
    return _program(_Writer(random.Random(seed).randint, size))


def _program(writer: _Writer) -> str:
    writer.line(0, "def f(a, s, i, p):")
    writer.line(1, "b, c, t, j, q = a * 2, a * 3, s + 1, i + 1, p + 1")
    writer.line(1, "box = {'vector': a + 1, 'scalar': s + 2, 'integer': i + 2, 'python': p + 2}")
    writer.line(1, "cells = [a + 2, s + 3, i + 3, p + 3]")
    writer.line(1, "obj, total, calls = Holder(a + 3, s + 4, i + 4, p + 4), s * 0, 0")
    for line in _CLOSURE:
        writer.line(1, line)
    for _ in range(writer.number(2, 5)):
        writer.statement(1, False)
    writer.line(1, f"return {writer.result()}")
    return "\n".join(writer.lines) + "\n"


_numbers = iter(range(10**9))


def _executed(name: str, source: str, scope: dict[str, Any]) -> dict[str, Any]:
    """Run source that :mod:`linecache` knows, as that of a notebook cell."""
    filename = f"<{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec", dont_inherit=True), scope)
    return scope


_shared = _executed("helpers of programs", _HELPERS, {"__name__": "random_program"})


def function_of(source: str) -> Any:
    """Compile a program; :func:`forget` it when it is not used any more."""
    return _executed(f"program {next(_numbers)}", source, dict(_shared))["f"]


def forget(f: Any) -> None:
    """Drop the source of a program."""
    linecache.cache.pop(f.__code__.co_filename)
