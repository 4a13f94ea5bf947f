"""The results as a bar chart: SVG written by hand, and PNG of the same shapes where matplotlib is installed.

One group of bars for each network, job and type. A bar's length is its time relative to Mycelia's Graph mode; bars of
more than ``FARTHEST`` times are cut and end in an arrow. Beside each bar stand its milliseconds and the ratio.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path

from benchmarks.rounds import Result

FARTHEST = 4.0
WIDTH, LEFT, UNIT = 900.0, 170.0, 130.0  # UNIT: the length of a bar of ratio 1
BAR, GAP, TITLE, MARGIN = 16.0, 4.0, 26.0, 16.0
COLORS = {"mycelia": "#1b7f5c", "torch": "#d9642c", "jax": "#5b5fc7", "mindspore": "#8a8f98", "onnxruntime": "#b08d1f"}
FONT = 12.0


@dataclass(frozen=True)
class Bar:
    """A filled rectangle; ``y`` is its upper edge."""

    x: float
    y: float
    width: float
    height: float
    color: str


@dataclass(frozen=True)
class Text:
    """Words around a base line; ``anchor`` is ``start`` or ``end``."""

    x: float
    y: float
    words: str
    anchor: str = "start"
    bold: bool = False


def shapes(results: list[Result]) -> tuple[list[Bar | Text], float]:
    """What is drawn, and the height of the picture."""
    drawn: list[Bar | Text] = [
        Text(MARGIN, MARGIN + FONT, "Time of a step relative to Mycelia's Graph mode (shorter is faster)", bold=True)
    ]
    y = MARGIN + FONT + 8
    shown = [r for r in results if r.median_ms is not None]
    for (network, job, precision), group in groupby(shown, lambda r: (r.network, r.job, r.precision)):
        y += TITLE
        drawn.append(Text(MARGIN, y - 7, f"{network}, {job}, {precision}", bold=True))
        for r in group:
            assert r.median_ms is not None
            label = f"{r.median_ms:,.2f} ms" + ("" if r.ratio is None else f"  ({r.ratio:.2f}x)")
            length = min(r.ratio or 0.0, FARTHEST) * UNIT
            if (r.ratio or 0.0) > FARTHEST:
                label = f"→ {label}"
            drawn.append(Text(LEFT - 8, y + BAR - 4, r.contender, "end"))
            drawn.append(Bar(LEFT, y, length, BAR, COLORS[r.contender.partition(" ")[0]]))
            drawn.append(Text(LEFT + length + 6, y + BAR - 4, label))
            y += BAR + GAP
    return drawn, y + MARGIN


def svg(results: list[Result]) -> str:
    """The chart as an SVG document."""
    drawn, height = shapes(results)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}" height="{height:g}" '
        f'viewBox="0 0 {WIDTH:g} {height:g}" font-family="sans-serif" font-size="{FONT:g}">',
        f'<rect width="{WIDTH:g}" height="{height:g}" fill="white"/>',
    ]
    for s in drawn:
        if isinstance(s, Bar):
            lines.append(
                f'<rect x="{s.x:g}" y="{s.y:g}" width="{s.width:.1f}" height="{s.height:g}" fill="{s.color}"/>'
            )
        else:
            weight = ' font-weight="bold"' if s.bold else ""
            lines.append(f'<text x="{s.x:.1f}" y="{s.y:g}" text-anchor="{s.anchor}"{weight}>{escape(s.words)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def png(results: list[Result], file: Path) -> None:
    """The chart as a PNG file, by matplotlib."""
    from matplotlib.figure import Figure

    drawn, height = shapes(results)
    figure = Figure((WIDTH / 100, height / 100), dpi=150)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
    axes.set_axis_off()
    for s in drawn:
        if isinstance(s, Bar):
            axes.barh(s.y, s.width, s.height, s.x, color=s.color, align="edge")
        else:
            weight = "bold" if s.bold else "normal"
            side = "right" if s.anchor == "end" else "left"
            axes.text(s.x, s.y, s.words, ha=side, va="baseline", weight=weight, size=FONT * 0.72)
    figure.savefig(file, format="png")


def _replace(file: Path, write_to: Callable[[Path], object]) -> None:
    """Write beside the file and rename."""
    part = file.with_name(f"{file.name}.part")
    write_to(part)
    os.replace(part, file)


def write(results: list[Result], file: Path) -> list[Path]:
    """Write the chart; beside ``NAME.svg`` also ``NAME.png`` if matplotlib is installed. The files written."""
    made = [file]
    _replace(file, lambda part: part.write_text(svg(results), encoding="utf-8"))
    if importlib.util.find_spec("matplotlib"):
        made.append(file.with_suffix(".png"))
        _replace(made[-1], lambda part: png(results, part))
    return made
