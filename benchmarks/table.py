"""The results as a table of text."""

from __future__ import annotations

from benchmarks.peers import BF16
from benchmarks.rounds import Machine, Result

HEAD = (
    "network", "job", "type", "contender", "first s", "median ms", "least ms", "x graph", "x least", "GFLOP/s",
    "of peak", "MiB", "growth", "agrees",
)  # fmt: skip


def number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def row(result: Result) -> list[str]:
    """The cells of one result."""
    agrees = {None: "-", True: "yes", False: "NO"}[result.agrees]
    return [
        result.network, result.job, result.precision, result.contender, number(result.first_s, ".2f"),
        number(result.median_ms, ".2f"), number(result.least_ms, ".2f"), number(result.ratio, ".2f"),
        number(result.least_ratio, ".2f"), number(result.gflops, ".1f"), number(result.of_peak, ".0%"),
        *(number(None if b is None else b / 2**20, ",.0f") for b in (result.memory, result.growth)), agrees,
    ]  # fmt: skip


def aligned(rows: list[list[str]], words: int) -> list[str]:
    """Rows of cells as lines; the first ``words`` columns are flush left, numbers flush right."""
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(c.ljust(w) if i < words else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True)))
        for cells in rows
    ]


def table(results: list[Result]) -> str:
    """All measured results, aligned, and below them what was not measured and why, and what bf16 means."""
    lines = aligned([list(HEAD), *(row(r) for r in results if r.error is None)], 4)
    for r in results:
        if r.error is not None:
            lines.append(f"not measured: {r.network} {r.job} {r.precision}, {r.contender}: {r.error}")
        elif r.agrees is False:
            lines.append(
                f"differs from Mycelia: {r.network} {r.job} {r.precision}, {r.contender}: "
                f"value {r.value}, {r.parameters:,} parameters"
            )
    mixed = [r.contender.partition(" ")[0] for r in results if r.precision == "bf16" and r.error is None]
    lines += [f"bf16, {framework}: {BF16[framework]}" for framework in dict.fromkeys(mixed)]
    return "\n".join(line.rstrip() for line in lines)


def peaks(machine: Machine) -> str:
    """The rates of large matrix products, and the frameworks that are not there."""
    lines = []
    for precision, rates in machine.rates.items():
        ordered = sorted(rates.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{label} {rate:,.0f}" for label, rate in ordered) or "no library"
        lines.append(f"peak of {precision} matrix products, GFLOP/s: {shown}")
    lines += [f"skipped: {framework}: {why}" for framework, why in machine.missing.items()]
    return "\n".join(lines)
