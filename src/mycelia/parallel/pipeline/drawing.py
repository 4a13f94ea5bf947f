"""A simulated step as text and as a picture (SVG)."""

from __future__ import annotations

from html import escape

from mycelia.parallel.pipeline.schedules import BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, FORWARD
from mycelia.parallel.pipeline.simulate import Event, Timeline

_LETTERS = {FORWARD: "F", BACKWARD: "B", BACKWARD_INPUT: "B", BACKWARD_WEIGHT: "W"}
#: Colours of the first and the second stage of a rank, and so on.
_COLOURS = {
    FORWARD: ("#4c8bd0", "#1d4f8c"), BACKWARD: ("#e0914a", "#a3581a"), BACKWARD_INPUT: ("#e0914a", "#a3581a"),
    BACKWARD_WEIGHT: ("#5aab61", "#2c6e33"),
}  # fmt: skip


def text(timeline: Timeline, columns: int = 160) -> str:
    """A line for each rank: what it computes in each unit of time.

    ``F3`` is micro-batch 3 forward, ``B3`` backward, ``W3`` the gradient of weights, ``b3`` and so on in a rank's
    second stage; dots are time in which it waits. Times are rounded to columns; without room for the numbers, letters.

    >>> from mycelia.parallel.pipeline.schedules import schedule
    >>> from mycelia.parallel.pipeline.simulate import Durations, simulate
    >>> print(text(simulate(schedule("gpipe", 2, 2), Durations(1, 0.5, 0.5))))
    rank 0 | F0 F1 .. .. B0 B1
    rank 1 | .. F0 F1 B0 B1 ..
    """
    shortest = min([e.end - e.begin for e in _computed(timeline) if e.end > e.begin], default=1.0)
    cells = max(1, round(timeline.makespan / shortest))
    width = 1 + len(str(timeline.schedule.micro_batches - 1))
    if cells * (width + 1) > columns:
        width = 1
        cells = min(cells, columns)
    rows = [["." * width] * cells for _ in range(timeline.schedule.ranks)]
    for event in _computed(timeline):
        begin, end = (round(t / timeline.makespan * cells) for t in (event.begin, event.end))
        for k in range(begin, max(end, begin + 1)):
            if k < cells:
                rows[event.rank][k] = _label(timeline, event)[:width].ljust(width)
    joint = " " if width > 1 else ""
    digits = len(str(timeline.schedule.ranks - 1))
    return "\n".join([f"rank {r:>{digits}} | {joint.join(row)}" for r, row in enumerate(rows)])


def svg(timeline: Timeline, width: int = 1200, height: int = 28) -> str:
    """A picture with a row for each rank: blue is forward, orange backward, green gradients of weights.

    Args:
        timeline: what is drawn.
        width: pixels for the whole time.
        height: pixels for a rank.
    """
    schedule = timeline.schedule
    scale = width / timeline.makespan if timeline.makespan else 0.0
    left, total = 60, height * schedule.ranks + 24
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + left + 10}" height="{total}" '
        'font-family="sans-serif" font-size="11">',
        f'<text x="4" y="14">{escape(schedule.name)}: bubble {timeline.bubble_ratio:.1%}</text>',
    ]
    for rank in range(schedule.ranks):
        y = 20 + rank * height
        lines.append(f'<text x="4" y="{y + height / 2 + 4:g}">rank {rank}</text>')
        lines.append(f'<rect x="{left}" y="{y}" width="{width}" height="{height - 3}" fill="#eeeeee"/>')
    for event in _computed(timeline):
        step = event.instruction
        colour = _COLOURS[step.kind][_chunk(timeline, event) % 2]
        x, y = left + event.begin * scale, 20 + event.rank * height
        wide = (event.end - event.begin) * scale
        lines.append(
            f'<rect x="{x:.2f}" y="{y}" width="{wide:.2f}" height="{height - 3}" fill="{colour}" stroke="white">'
            f"<title>{escape(str(step))}: {event.begin:g} to {event.end:g}</title></rect>"
        )
        if wide >= 9:
            lines.append(f'<text x="{x + 2:.2f}" y="{y + height / 2 + 3:g}" fill="white">{step.micro}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _computed(timeline: Timeline) -> list[Event]:
    return [e for e in timeline.events if e.to < 0]


def _chunk(timeline: Timeline, event: Event) -> int:
    return timeline.schedule.stages_of(event.rank).index(event.instruction.stage)


def _label(timeline: Timeline, event: Event) -> str:
    letter = _LETTERS[event.instruction.kind]
    return f"{letter.lower() if _chunk(timeline, event) % 2 else letter}{event.instruction.micro}"
