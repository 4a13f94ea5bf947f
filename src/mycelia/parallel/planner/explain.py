"""A plan in words and tables."""

from __future__ import annotations

from collections.abc import Sequence

from mycelia.parallel.planner.plan import Plan


def explained(plan: Plan, most: int) -> str:
    """What a plan costs, where, and why others lost.

    Args:
        plan: what is explained.
        most: how many rows a table has at most.
    """
    lines = [
        f"plan for {plan.devices} devices ({plan.machine.name}): {plan.describe()}",
        f"found by {plan.mode} in {plan.search_seconds:.1f} s",
        f"step: {time_text(plan.seconds)} (computing {time_text(plan.compute_seconds / plan.stages)}, "
        f"collectives {time_text(plan.comm_seconds / plan.stages)} per device)",
    ]
    if plan.bound > 0 and plan.stages == 1:
        lines.append(f"no plan of this mesh is faster than {time_text(plan.bound)}")
    limit = "no limit" if plan.limit is None else f"limit {bytes_text(plan.limit)}"
    lines.append(f"memory: {bytes_text(plan.peak)} on the fullest device ({limit})")
    if plan.stages > 1:
        rows = [
            [f"{s}", f"{s * plan.mesh.devices}-{(s + 1) * plan.mesh.devices - 1}", time_text(p.forward),
             time_text(p.backward), time_text(p.once), bytes_text(p.peak), f"{p.in_flight}", bytes_text(p.cut_bytes)]
            for s, p in enumerate(plan.parts)
        ]  # fmt: skip
        lines += ["", *table(["stage", "ranks", "forward", "backward", "once", "memory", "held", "sends"], rows)]
    heavy = sorted(plan.rows, key=lambda r: -(r.compute + r.comm))[:most]
    rows = [
        [r.name, " ".join([f"{a}={t}" for a, t in r.choice.items()]), time_text(r.compute), time_text(r.comm),
         bytes_text(r.nbytes)]
        for r in heavy
    ]  # fmt: skip
    lines += ["", "operators that take the longest (a device's part)"]
    lines += table(["operator", "divided along", "computing", "collectives", "result"], rows)
    totals: dict[tuple[str, str], list[float]] = {}
    for c in plan.collectives:
        entry = totals.setdefault((c.kind, c.axis), [0, 0.0, 0.0])
        entry[0] += plan.micro_batches if c.each else 1
        entry[1] += c.nbytes
        entry[2] += c.seconds
    if totals:
        rows = [
            [kind, axis, f"{entry[0]:.0f}", bytes_text(entry[1]), time_text(entry[2])]
            for (kind, axis), entry in sorted(totals.items(), key=lambda item: -item[1][2])
        ]
        lines += ["", "collectives in a step"]
        lines += table(["collective", "axis", "times", "bytes", "time"], rows)
        sent = ", ".join([f"{kind} {bytes_text(nbytes)}" for kind, nbytes in plan.bytes_sent().items()])
        lines.append(f"bytes a device sends: {sent}")
    if plan.runners_up:
        rows = [
            [r.what, time_text(r.seconds) if r.seconds < float("inf") else "-", bytes_text(r.peak), r.why]
            for r in plan.runners_up[:most]
        ]
        lines += ["", "plans that lost"]
        lines += table(["plan", "step", "memory", "why"], rows)
    lines += [f"note: {note}" for note in plan.notes]
    return "\n".join(lines)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns; the first and the last are aligned to the left."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    made = []
    for row in [head, *rows]:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(w) for cell, w in zip(row[1:-1], widths[1:-1], strict=True)]
        made.append("  ".join([*cells, row[-1]]).rstrip())
    return made


def time_text(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.1f} µs"


def bytes_text(nbytes: float) -> str:
    """Bytes in the unit that suits them."""
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if nbytes >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes:.0f} B"
