"""What a whole run says: geometric means and worst cases over the networks.

Every number is how many times better Mycelia is (faster, sooner, smaller), so that 1 is a tie; only shares of the
peak are shares. A comparison of times is made twice: from the median over rounds of the ratio of median times, and from
least times, which other programs on the machine disturb less. "The best of" several peers is the fastest one of each
network, in whatever mode. A contender that was not measured is left out and named; one that was stopped because
its steps took too long gives a lower bound where it is the only peer of a comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from benchmarks.peers import MODES
from benchmarks.rounds import Result, ratio_of
from benchmarks.table import aligned, number


@dataclass
class Line:
    """One comparison.

    Attributes:
        title: what is compared.
        basis: what the numbers are.
        each: the number of each network.
        against: the peer that a network's number stands for, if there are several.
        above: networks whose number is only a lower bound.
        geomean: of the numbers that are no bounds; None for shares, and if there is none.
        worst: the network of the lowest number.
        left_out: what was not measured, and why, by network, job, type and contender.
        share: whether the numbers are shares.
    """

    title: str
    basis: str
    each: dict[str, float] = field(default_factory=dict)
    against: dict[str, str] = field(default_factory=dict)
    above: list[str] = field(default_factory=list)
    geomean: float | None = None
    worst: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    share: bool = False

    def finish(self) -> Line:
        """Compute mean and worst case."""
        exact = [value for network, value in self.each.items() if network not in self.above]
        if exact and not self.share:
            self.geomean = math.exp(sum(map(math.log, exact)) / len(exact))
        self.worst = min(self.each, key=self.each.__getitem__, default=None)
        return self


def _medians(mine: Result, theirs: Result) -> float | None:
    return ratio_of(theirs, mine)


def _of(get: Callable[[Result], float | None]) -> Callable[[Result, Result], float | None]:
    """The ratio of a number that every result has for itself."""

    def ratio(mine: Result, theirs: Result) -> float | None:
        a, b = get(mine), get(theirs)
        return b / a if a and b and a > 0 and b > 0 else None

    return ratio


_least = _of(lambda r: r.least_ms)
TIMES = {"median times": _medians, "least times": _least}
FIRST = {"seconds to the first result": _of(lambda r: r.first_s)}
MEMORY = {
    "most memory of the process": _of(lambda r: r.memory),
    "its growth since the import": _of(lambda r: r.growth),
    "most memory while steps are timed": _of(lambda r: r.step_memory),
}


def _compared(
    results: list[Result],
    job: str,
    precision: str,
    mine: str,
    peers: Iterable[str],
    title: str,
    bases: dict[str, Callable[[Result, Result], float | None]],
) -> list[Line]:
    """Mycelia in one mode against the best of some peers, each a framework or a ``framework mode``."""
    named = tuple(peers)
    chosen = [r for r in results if (r.job, r.precision) == (job, precision)]

    def meant(r: Result) -> bool:
        return r.contender in named or r.contender.partition(" ")[0] in named

    ours = {r.network: r for r in chosen if r.contender == mine}
    lines = []
    for basis, ratio in bases.items():
        line, several = Line(f"{job} {precision}: {mine.partition(' ')[2]} against {title}", basis), False
        for network, own in ours.items():
            theirs = [r for r in chosen if r.network == network and meant(r)]
            if not theirs:
                continue
            for r in (own, *theirs):
                if r.error is not None:
                    line.left_out[f"{network} {job} {precision}, {r.contender}"] = r.error
            if own.error is not None:
                continue
            found = [(value, r.contender) for r in theirs if r.error is None and (value := ratio(own, r)) is not None]
            slow = [r.slower_than_ms for r in theirs if r.slower_than_ms is not None]
            if found:
                line.each[network], line.against[network] = min(found)
                several = several or len(found) > 1
            elif slow and bases is TIMES and own.median_ms and own.least_ms:
                line.each[network] = min(slow) / (own.least_ms if ratio is _least else own.median_ms)
                line.above.append(network)
        if not several:
            line.against.clear()
        if line.each or line.left_out:
            lines.append(line.finish())
    return lines


def _shares(results: list[Result], precision: str, networks: tuple[str, ...]) -> list[Line]:
    line = Line(f"train {precision}: graph", "share of the peak", share=True)
    for r in results:
        if (r.job, r.precision, r.contender) == ("train", precision, "mycelia graph") and r.network in networks:
            if r.error is not None:
                line.left_out[f"{r.network} train {precision}, {r.contender}"] = r.error
            elif r.of_peak is not None:
                line.each[r.network] = r.of_peak
    return [line.finish()] if line.each or line.left_out else []


def summary(results: list[Result]) -> list[Line]:
    """All comparisons that the results allow."""
    graph, pynative, lines = "mycelia graph", "mycelia pynative", []
    best = {
        ("train", "f32"): ("torch", "jax", "mindspore"), ("train", "bf16"): ("torch",),
        ("infer", "f32"): ("torch", "jax", "mindspore", "onnxruntime"), ("infer", "bf16"): ("torch",),
    }  # fmt: skip
    for (job, precision), peers in best.items():
        title = f"the best of {', '.join(peers)}"
        lines += _compared(results, job, precision, graph, peers, title, TIMES)
    for precision in ("f32", "bf16"):
        lines += _shares(results, precision, ("r18", "gpt"))
    for job, precision in best:
        lines += _compared(results, job, precision, pynative, ["torch eager"], "torch eager", TIMES)
    for job in ("train", "infer"):
        peer = "mindspore pynative"
        lines += _compared(results, job, "f32", pynative, [peer], "MindSpore PyNative", TIMES)
    for job, precision in best:
        lines += _compared(results, job, precision, graph, [pynative], "Mycelia PyNative", TIMES)
    for precision in ("f32", "bf16"):
        title = "torch, its smaller mode"
        lines += _compared(results, "train", precision, graph, ["torch"], title, MEMORY)
    for job, precision in best:
        lines += _compared(results, job, precision, graph, ["jax"], "jax", FIRST)
    return lines


def _short(contender: str) -> str:
    """A contender without its mode if it has only one."""
    framework = contender.partition(" ")[0]
    return framework if len(MODES.get(framework, ())) == 1 else contender


def text(lines: list[Line]) -> str:
    """The lines as a table: one column for each network, then mean and worst case."""
    networks = list(dict.fromkeys(network for line in lines for network in line.each))
    rows = [["", *networks, "geomean", "worst"]]
    below: dict[str, str] = {}
    for i, line in enumerate(lines):
        form = ".0%" if line.share else ".2f"
        if i == 0 or lines[i - 1].title != line.title:
            rows.append([line.title, *[""] * (len(networks) + 2)])
        cells = [(">" if n in line.above else "") + number(line.each.get(n), form) for n in networks]
        rows.append([f"  {line.basis}", *cells, number(line.geomean, ".2f"), line.worst or "-"])
        if line.against:
            rows.append(["  against", *(_short(line.against.get(n, "-")) for n in networks), "", ""])
        below |= line.left_out
    notes = [f"left out: {what}: {why}" for what, why in below.items()]
    return "\n".join([*(row.rstrip() for row in aligned(rows, 1)), *notes])
