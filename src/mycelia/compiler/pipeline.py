"""The passes, in the order in which they run.

First what is dead goes, so that nothing else looks at it, and calls are inlined. Then rules look at one
node at a time: known branches and loops, algebra, constants. Merging equal nodes comes after them, when
expressions are in their simplest form, and what all of them left unused goes at the end. A round that changed
something may have made room for more (a folded constant decides a branch), so the list runs again, at most
``MAX_ROUNDS`` times. Passes for the device run once when that is done, and if one of them changed something, what is
simple and superfluous now goes (``CLEARING``).

``MYCELIA_VERIFY=1`` verifies the graph after every pass. ``MYCELIA_DUMP=dir`` writes the graph given and the
graph after every pass that changed it, as text with the user's lines and as a picture, into files that are
numbered in order: ``0001-main-00-staged.txt``, ``0001-main-02-inline.txt``, ...
"""

from __future__ import annotations

import gc
import itertools
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from mycelia.autodiff.transform import set_condense
from mycelia.compiler.passes import (
    algebraic,
    attention,
    channels_last,
    common_subexpressions,
    constant_folding,
    control_flow,
    dead_code,
    half_precision,
    inline,
    library,
    roll,
)
from mycelia.compiler.report import CompileReport, PassReport, graph_cost
from mycelia.ir.draw import draw
from mycelia.ir.graph import Graph
from mycelia.ir.printer import graph_text
from mycelia.ir.rewriter import count_nodes
from mycelia.ir.verifier import verify

Pass = Callable[[Graph], tuple[Graph, int]]

#: The passes that do not depend on the device, with the names that reports and dumps use.
PASSES: tuple[tuple[str, Pass], ...] = (
    ("dead_code", dead_code.run),
    ("inline", inline.run),
    ("roll", roll.run),
    ("control_flow", control_flow.run),
    ("algebraic", algebraic.run),
    ("constant_folding", constant_folding.run),
    ("common_subexpressions", common_subexpressions.run),
    ("dead_code", dead_code.run),
)

#: The passes that are for a device; they may round otherwise than the graph given.
DEVICE_PASSES: tuple[tuple[str, Pass], ...] = (
    ("attention", attention.run),
    ("channels_last", channels_last.run),
    ("half_precision", half_precision.run),
    ("library", library.run),
)

#: What runs after a pass for the device that changed something.
CLEARING: tuple[tuple[str, Pass], ...] = (
    ("algebraic", algebraic.run),
    ("common_subexpressions", common_subexpressions.run),
    ("dead_code", dead_code.run),
)

#: How often the list runs at most.
MAX_ROUNDS = 4

#: Constants of more bytes than this are left out of dumped text.
_DUMPED_CONSTANT = 4096

_serial = itertools.count(1)


def optimize(graph: Graph, report: CompileReport | None = None, for_device: bool = True) -> Graph:
    """Run the passes over a graph that is about to be executed.

    Args:
        graph: a finished graph; it is not changed.
        report: gets a line for each pass that ran, and the estimated cost of the result.
        for_device: whether the passes for the device run too.

    Returns:
        A graph of the same parameters and outputs that computes the same values, to the last bit but for the
        payload of NaNs and numbers that the processor flushes to zero; passes for the device may round otherwise.
        The same graph if no pass changed it.

    Raises:
        GraphError: with ``MYCELIA_VERIFY=1``, a pass made a malformed graph.
        OSError: ``MYCELIA_DUMP`` names a directory that cannot be written.

    >>> from mycelia.ir.parser import parse_graph
    >>> graph = parse_graph('''graph main(%0: float32[2]) {
    ...   %1 = neg(%0) : float32[2]
    ...   %2 = neg(%1) : float32[2]
    ...   return %2
    ... }''')
    >>> optimize(graph)
    <graph main: 1 params, 0 nodes>
    """
    checking = os.environ.get("MYCELIA_VERIFY", "0") not in ("", "0")
    dump = _Dump(os.environ["MYCELIA_DUMP"], graph.name) if os.environ.get("MYCELIA_DUMP") else None
    collecting = gc.isenabled()
    gc.disable()  # graphs are cyclic and long-lived: looking through them again and again doubles the time
    try:
        return _optimized(graph, _Watch(report, checking, dump), DEVICE_PASSES if for_device else ())
    finally:
        if collecting:
            gc.enable()


def _optimized(graph: Graph, watch: _Watch, device_passes: tuple[tuple[str, Pass], ...]) -> Graph:
    watch.start(graph)
    for round_ in range(1, MAX_ROUNDS + 1):
        before = graph
        graph = watch.run(PASSES, graph, round_)
        if graph is before:
            break
    before = graph
    graph = watch.run(device_passes, graph, round_ + 1)
    if graph is not before:
        graph = watch.run(CLEARING, graph, round_ + 1)
    if watch.report is not None:
        watch.report.cost = graph_cost(graph)
    return graph


@dataclass(frozen=True)
class _Watch:
    """What is told about passes while they run: to a report, the verifier and the files that are dumped."""

    report: CompileReport | None
    checking: bool
    dump: _Dump | None

    def start(self, graph: Graph) -> None:
        if self.dump is not None:
            self.dump.write("staged", graph)
        if self.checking:
            verify(graph)

    def run(self, passes: tuple[tuple[str, Pass], ...], graph: Graph, round_: int) -> Graph:
        """Run passes in order."""
        for name, run in passes:
            nodes = count_nodes(graph) if self.report is not None else 0
            start = time.perf_counter()
            graph, changes = run(graph)
            seconds = time.perf_counter() - start
            if self.report is not None:
                self.report.passes.append(PassReport(name, round_, nodes, count_nodes(graph), changes, seconds))
            if self.dump is not None:
                self.dump.write(name, graph if changes else None)
            if self.checking and changes:
                verify(graph)
        return graph


class _Dump:
    """Writes the stages of one graph."""

    def __init__(self, directory: str, name: str) -> None:
        self.directory = directory
        os.makedirs(directory, exist_ok=True)
        plain = re.sub(r"[^\w.]+", "_", name)[:60] or "graph"
        self.prefix = f"{next(_serial):04d}-{plain}"
        self.stage = 0

    def write(self, name: str, graph: Graph | None) -> None:
        """Write one stage; None, a stage that changed nothing, only takes a number."""
        if graph is not None:
            file = os.path.join(self.directory, f"{self.prefix}-{self.stage:02d}-{name}")
            _write(f"{file}.txt", graph_text(graph, sources=True, elide=_DUMPED_CONSTANT) + "\n")
            _write(f"{file}.svg", draw(graph))
        self.stage += 1


def _write(path: str, text: str) -> None:
    """Write a file that is either the old one or the whole new one."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _condense(graph: Graph) -> Graph:
    graph, found = attention.run(dead_code.run(graph)[0])
    return roll.run(dead_code.run(graph)[0] if found else graph)[0]


set_condense(_condense)
