"""What a program is, how it is run, and when its results are right.

A program is compiled by ``make`` and called with each of its argument tuples, NumPy arrays as tensors. Results are
right if containers, numbers of fields, keys, shapes and the kind of number (bool, integer, float) are those of the
expected ones, and values agree within 1e-4. ``printed`` lists the words that the calls must print, in order: the
output is searched for exactly these words, so it does not matter how a framework prints a tensor.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.oracles.graph_programs.given import Tensor, ms

#: How often the first call is repeated once everything is compiled.
REPETITIONS = 5


@dataclass(frozen=True)
class Raises:
    """Instead of a result: the name of the exception's class, and words of its message."""

    kind: str
    words: str


@dataclass(frozen=True)
class Program:
    """A function to compile, argument tuples, and what each call must give."""

    name: str
    make: Callable[[], Callable[..., Any]]
    calls: tuple[tuple[tuple[Any, ...], Any], ...]
    printed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Edit:
    """Something that changes between calls: ``run`` makes the calls and the edits and gives all results."""

    name: str
    run: Callable[[], list[Any]]
    expected: list[Any]


@dataclass
class Outcome:
    """How one program fared: ``result`` is "ok", "wrong" or "error".

    ``seconds`` and ``processor`` are the time that passed and the time that all threads computed, in seconds, in the
    first call and in the second.
    """

    result: str
    message: str = ""
    lines: int = 0
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def program(name: str, fn: Any, *calls: tuple[tuple[Any, ...], Any], printed: tuple[str, ...] = ()) -> Program:
    """A program that is a function to be given to ``jit``."""
    return Program(name, lambda: ms.jit(fn), calls, printed)


def cell(name: str, make: Callable[[], Any], *calls: tuple[tuple[Any, ...], Any]) -> Program:
    """A program that is a Cell, called in Graph mode."""
    return Program(name, make, calls)


def cases(reference: Callable[..., Any], *arguments: tuple[Any, ...]) -> list[tuple[tuple[Any, ...], Any]]:
    """Calls with these arguments that must give what ``reference`` computes from the same arrays."""
    return [(a, reference(*a)) for a in arguments]


def floats(*values: Any) -> np.ndarray:
    """A float32 array of these numbers, or rows."""
    return np.array(values, np.float32)


def scalar(value: float) -> np.ndarray:
    """A float32 array of no dimensions."""
    return np.array(value, np.float32)


def integer(value: int) -> np.ndarray:
    """An int32 array of no dimensions."""
    return np.array(value, np.int32)


def as_tensors(x: Any) -> Any:
    """The same nest with tensors for arrays."""
    if isinstance(x, np.ndarray):
        return Tensor(x)
    if isinstance(x, tuple | list):
        return type(x)(as_tensors(v) for v in x)
    return {k: as_tensors(v) for k, v in x.items()} if isinstance(x, dict) else x


def as_arrays(x: Any) -> Any:
    """The same nest with arrays for tensors; waits until they are computed."""
    if isinstance(x, Tensor):
        return x.asnumpy()
    if isinstance(x, tuple):
        values = [as_arrays(v) for v in x]
        return type(x)(*values) if hasattr(x, "_fields") else tuple(values)
    if isinstance(x, list):
        return [as_arrays(v) for v in x]
    return {k: as_arrays(v) for k, v in x.items()} if isinstance(x, dict) else x


def difference(got: Any, expected: Any, where: str = "result") -> str:
    """What is wrong with a result; empty if nothing is."""
    if isinstance(expected, np.ndarray | np.generic):
        if not isinstance(got, np.ndarray | np.generic):
            return f"{where} is a {type(got).__name__}, not a tensor"
        got, expected = np.asarray(got), np.asarray(expected)
        if got.shape != expected.shape:
            return f"{where} has shape {got.shape}, not {expected.shape}"
        if got.dtype.kind != expected.dtype.kind:
            return f"{where} is {got.dtype}, not {expected.dtype}"
        if not np.allclose(got, expected, rtol=1e-4, atol=1e-4, equal_nan=True):
            return f"{where} is {got.tolist()}, not {expected.tolist()}"
        return ""
    if isinstance(expected, tuple | list | dict):
        kind = tuple if isinstance(expected, tuple) else type(expected)
        if not isinstance(got, kind) or getattr(got, "_fields", None) != getattr(expected, "_fields", None):
            return f"{where} is a {type(got).__name__}, not a {type(expected).__name__}"
        if len(got) != len(expected):
            return f"{where} has {len(got)} items, not {len(expected)}"
        keys = expected.keys() if isinstance(expected, dict) else range(len(expected))
        if isinstance(expected, dict) and list(got) != list(expected):
            return f"{where} has keys {list(got)}, not {list(expected)}"
        return next((d for k in keys if (d := difference(got[k], expected[k], f"{where}[{k!r}]"))), "")
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        number = isinstance(got, int | float | np.ndarray | np.generic) and np.shape(got) == ()
        same = number and abs(got - expected) < 1e-4
    else:
        same = type(got) is type(expected) and got == expected
    return "" if same else f"{where} is {got!r}, not {expected!r}"


@contextlib.contextmanager
def captured_output() -> Iterator[list[str]]:
    """What Python and native code print meanwhile, as the one item of the list, when the block has ended."""
    text: list[str] = []
    with tempfile.TemporaryFile("w+") as file:
        sys.stdout.flush()
        before, stream = os.dup(1), sys.stdout
        os.dup2(file.fileno(), 1)
        sys.stdout = open(os.dup(1), "w", buffering=1)  # noqa: SIM115
        try:
            yield text
            if hasattr(ms, "runtime"):  # MindSpore prints in its own time
                ms.runtime.synchronize()
        finally:
            sys.stdout.close()
            sys.stdout = stream
            os.dup2(before, 1)
            os.close(before)
        file.seek(0)
        text.append(file.read())


class Clock:
    """Seconds and processor seconds since it was made."""

    def __init__(self) -> None:
        self.wall, self.busy = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        """Both."""
        return time.perf_counter() - self.wall, time.process_time() - self.busy


def _check_call(fn: Callable[..., Any], arguments: tuple[Any, ...], expected: Any) -> tuple[str, tuple[float, float]]:
    tensors = as_tensors(arguments)
    clock = Clock()
    try:
        result = as_arrays(fn(*tensors))
        took = clock.read()
    except Exception as error:
        kinds = [c.__name__ for c in type(error).__mro__]
        if isinstance(expected, Raises) and expected.kind in kinds and expected.words in str(error):
            return "", clock.read()
        raise
    if isinstance(expected, Raises):
        return f"result is {result!r}, not an error of the class {expected.kind}", took
    return difference(result, expected), took


def run_program(one: Program) -> Outcome:
    """Compile and call a program; timed are its first call and, after all others, the quickest repetition of it."""
    times: list[tuple[float, float]] = []
    problems: list[str] = []
    try:
        with captured_output() as output:
            fn = one.make()
            for arguments, expected in one.calls:
                problem, took = _check_call(fn, arguments, expected)
                problems.append(problem)
                times.append(took)
        if one.printed:
            words = re.findall("|".join(sorted(set(one.printed), key=len, reverse=True)), output[0])
            if tuple(words) != one.printed:
                problems.append(f"printed {' '.join(words)}, not {' '.join(one.printed)}")
        problem = next((p for p in problems if p), "")
        if problem:
            return Outcome("wrong", problem)
        with captured_output():
            times[1:] = [min(_check_call(fn, *one.calls[0])[1] for _ in range(REPETITIONS))]
    except Exception as error:
        return failure(error)
    return Outcome("ok", seconds=[t[0] for t in times], processor=[t[1] for t in times])


def run_edit(one: Edit) -> Outcome:
    """Run the calls and edits; the seconds are those of all of it."""
    clock = Clock()
    try:
        got = as_arrays(one.run())
    except Exception as error:
        return failure(error)
    seconds, processor = clock.read()
    problem = difference(got, as_arrays(one.expected))
    return Outcome("wrong", problem) if problem else Outcome("ok", seconds=[seconds], processor=[processor])


def failure(error: Exception) -> Outcome:
    """The outcome of a program that raised."""
    lines = str(error).rstrip().splitlines() or [""]
    first = next((line.strip() for line in lines if line.strip()), "")
    first = re.sub(r"0x[0-9a-f]+", "0x...", first)[:200]
    return Outcome("error", f"{type(error).__name__}: {first}", len(lines))


def warm_up() -> None:
    """Compile something small, so that what a framework does once is not counted for the first program."""
    ms.set_context(mode=ms.GRAPH_MODE)

    def small(x):
        return x + 1

    ms.jit(small)(Tensor(floats(1, 2))).asnumpy()
