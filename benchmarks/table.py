"""The results as a table of text."""

from __future__ import annotations

from benchmarks.rounds import Machine, Result

HEAD = (
    "network", "job", "type", "contender", "first s", "median ms", "least ms", "x graph", "x least", "GFLOP/s",
    "of peak", "MiB", "agrees",
)  # fmt: skip


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def row(result: Result) -> list[str]:
    """The cells of one result."""
    agrees = {None: "-", True: "yes", False: "NO"}[result.agrees]
    return [
        result.network, result.job, result.precision, result.contender, _number(result.first_s, ".2f"),
        _number(result.median_ms, ".2f"), _number(result.least_ms, ".2f"), _number(result.ratio, ".2f"),
        _number(result.least_ratio, ".2f"), _number(result.gflops, ".1f"), _number(result.of_peak, ".0%"),
        _number(result.memory / 2**20 if result.memory else None, ",.0f"), agrees,
    ]  # fmt: skip


def table(results: list[Result]) -> str:
    """All measured results, aligned, and below them what was not measured and why."""
    rows = [list(HEAD), *(row(r) for r in results if r.error is None)]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(HEAD))]
    lines = [
        "  ".join(c.ljust(w) if i < 4 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True)))
        for cells in rows
    ]
    for r in results:
        if r.error is not None:
            lines.append(f"not measured: {r.network} {r.job} {r.precision}, {r.contender}: {r.error}")
        elif r.agrees is False:
            lines.append(
                f"differs from Mycelia: {r.network} {r.job} {r.precision}, {r.contender}: "
                f"value {r.value}, {r.parameters:,} parameters"
            )
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
