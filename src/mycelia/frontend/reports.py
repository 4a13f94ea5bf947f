"""``compile_report``: what the compiler did with a function."""

from __future__ import annotations

from typing import Any

from mycelia.compiler.report import CompileReport
from mycelia.core.errors import ArgumentTypeError, StateError
from mycelia.frontend.recompiles import compiled_calls


def compile_report(fn: Any) -> list[CompileReport]:
    """Print what the compiler did with a function, and give it as data.

    For each graph kept for ``fn``: what each pass changed and how long it took, operators before and after, floating-
    point operations and bytes read and written by one run, peak memory beside that of all values together, and
    the seconds of each phase of compiling (staging, passes, tracing, lowering, XLA).

    Args:
        fn: a Cell, a function or method that was called compiled, or what ``jit`` returned.

    Returns:
        One report for each graph, in the order in which they were compiled; ``str`` gives the printed text.

    Raises:
        ArgumentTypeError: ``fn`` is not callable.
        StateError: nothing has been compiled for it yet.

    >>> import mycelia as ms
    >>> f = ms.jit(lambda x: ms.ops.matmul(x, x) + 0 * 1)
    >>> _ = f(ms.ops.ones((4, 4)))
    >>> reports = ms.compile_report(f)  # doctest: +ELLIPSIS
    graph ...
    >>> reports[0].cost.by_operator["matmul"].flops
    128
    """
    if not callable(fn):
        raise ArgumentTypeError("compile_report", "fn", got=type(fn).__name__, takes="a function, method or Cell")
    entries = [c.entry for call in compiled_calls(fn) for c in call.compilations if c.entry is not None]
    if not entries:
        raise StateError(
            "compile_report", message="nothing has been compiled for this function yet",
            hint="call it first, under ms.jit or in GRAPH_MODE",
        )  # fmt: skip
    reports = []
    for entry in entries:
        report = entry.executable.report()
        report.phases.stage = entry.stage_seconds
        reports.append(report)
    print("\n\n".join(map(str, reports)))
    return reports
