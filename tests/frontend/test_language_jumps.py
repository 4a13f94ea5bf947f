"""Two nested loops with every combination of kinds, jumps, ``else`` and ``try``: all of them, written out and run."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import pytest
from tests.frontend.staging import check

from mycelia import Tensor

_OUTER = ("for i in range(n):", "while i < n:\n        i = i + 1", "for i in range(3):")
_INNER = ("for j in range(i):", "for j in range(3):", "while j < i:\n            j = j + 1", "for j in n + steps:")
_JUMPS = ("pass", "break", "continue", "return t, i")
_ELSE = (
    "", "t = t + 1", "break", "continue", "return t, -i", "if t % 3 == 0:\n                return t, 55",
    "if t % 2 == 0:\n                break\n            t = t + 7",
    "if t % 2 == 0:\n                continue\n            t = t + 9",
)  # fmt: skip
_ENDS = ("", "else:\n        t = -t", "else:\n        return t, 77")
_PLAIN = """
            if j == 2 or t > 20:
                {jump}
            t = t + j + 1"""
_TRY = """
            try:
                if j == 2 or t > 20:
                    {jump}
                t = t + 1
            finally:
                t = t + j"""
_PROGRAM = """def f(n):
    t, i, j, steps = 0, 0, 0, Tensor([0, 1, 2])
    {outer}
        {inner}{body}
        {orelse}
        t = t + 100
        if t > 450:
            break
        j = 0
    {end}
    return t, i
"""
_COUNTS = [(Tensor(v),) for v in (0, 1, 2, 4, 6)]
_ALL = list(itertools.product(_OUTER, _INNER, _JUMPS, _ELSE, _ENDS, (_PLAIN, _TRY)))


def _agrees(number: int) -> None:
    outer, inner, jump, orelse, end, body = _ALL[number]
    source = _PROGRAM.format(
        outer=outer, inner=inner, body=body.format(jump=jump), end=end,
        orelse=f"else:\n            {orelse}" if orelse else "",
    )  # fmt: skip
    name = f"<jumps {number}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"Tensor": Tensor}
    exec(compile(source, name, "exec"), scope)
    try:
        check(scope["f"], *_COUNTS)
    except BaseException as error:
        error.add_note(source)
        raise
    linecache.cache.pop(name)


def test_nested_loops() -> None:
    for number in range(5, len(_ALL), 67):
        _agrees(number)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_all_nested_loops(part: int) -> None:
    for number in range(part, len(_ALL), 4):
        _agrees(number)
