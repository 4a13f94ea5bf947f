"""Write the section "Sixty programs in Graph mode" of ``docs/differences.md`` from the recorded outcomes.

python -m tests.oracles.graph_programs.table
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parents[2] / "docs" / "differences.md"
TITLE = "## Sixty programs in Graph mode\n"
KINDS = {"syntax": "Python's syntax", "control flow": "Control flow on tensors", "gradients": "Gradients"}
WIDTH = 90

Outcomes = dict[str, dict[str, Any]]


def recorded(framework: str) -> Outcomes:
    """The outcomes of the programs on a framework, by ``kind/name``."""
    return dict(json.loads((HERE / f"{framework}.json").read_text(encoding="utf-8")))


def verdict(outcome: dict[str, Any]) -> str:
    """One cell: right, or what was wrong."""
    if outcome["result"] == "ok":
        return "right"
    message = outcome["message"].replace("|", "\\|").replace("<", "&lt;").replace("_", "\\_").replace("*", "\\*")
    if len(message) > WIDTH:
        message = message[:WIDTH].rstrip() + "..."
    if outcome["result"] == "wrong":
        return f"**wrong**: {message}"
    lines = f" ({outcome['lines']} lines)" if outcome["lines"] > 1 else ""
    return f"refused: {message}{lines}"


def time_of(outcome: dict[str, Any]) -> str:
    """Processor seconds of the first call with two digits, or nothing."""
    return f"{outcome['processor'][0]:.2g}" if outcome["processor"] else ""


def of_kind(outcomes: Outcomes, *kinds: str) -> Outcomes:
    """The outcomes of the programs of some kinds."""
    return {name: o for name, o in outcomes.items() if name.partition("/")[0] in kinds}


def count(outcomes: Outcomes, result: str) -> int:
    """How many have this result."""
    return sum(o["result"] == result for o in outcomes.values())


def summary(theirs: Outcomes, ours: Outcomes) -> str:
    """The sentences before the tables, about the sixty."""
    theirs, ours = of_kind(theirs, *KINDS), of_kind(ours, *KINDS)
    both = [n for n in ours if ours[n]["result"] == theirs[n]["result"] == "ok"]
    ratio = statistics.geometric_mean(theirs[n]["processor"][0] / ours[n]["processor"][0] for n in both)
    again = statistics.geometric_mean(theirs[n]["seconds"][1] / ours[n]["seconds"][1] for n in both)
    refused = [o["lines"] for o in theirs.values() if o["result"] == "error"]
    parts = [
        f"{k} {count(of_kind(theirs, k), 'ok')} and {count(of_kind(ours, k), 'ok')} of {len(of_kind(ours, k))}"
        for k in KINDS
    ]
    return (
        f"MindSpore computes {count(theirs, 'ok')} of the sixty right, {count(theirs, 'wrong')} wrong without a word, "
        f"and refuses {count(theirs, 'error')}, with messages of {statistics.median(refused):.0f} lines in the median; "
        f"Mycelia computes {count(ours, 'ok')} right ({'; '.join(parts)}). Of the {len(both)} that both compute, "
        f"the first call, which compiles, costs MindSpore {ratio:.1f} times the processor seconds of Mycelia, and the "
        f"same call again takes it {again:.0f} times as long (geometric means)."
    )


def section() -> str:
    """The whole section."""
    theirs, ours = recorded("mindspore"), recorded("mycelia")
    lines = [
        TITLE,
        "The programs are in `tests/oracles/graph_programs/`, the same source for both; a program counts as right if "
        "every call of it gives what NumPy or a hand calculation says. `record.py` there runs each in a process of "
        "its own on MindSpore 2.10 and on Mycelia, on a CPU; `table.py` writes this section. The numbers are processor "
        "seconds of the first call, which compiles.\n",
        summary(theirs, ours) + "\n",
    ]
    for kind, title in KINDS.items():
        lines += [f"### {title}\n", "| program | MindSpore 2.10 | Mycelia | s | s, Mycelia |", "|---|---|---|---|---|"]
        for name in of_kind(ours, kind):
            cells = (verdict(theirs[name]), verdict(ours[name]), time_of(theirs[name]), time_of(ours[name]))
            lines.append(f"| {name.partition('/')[2]} | {' | '.join(cells)} |")
        lines.append("")
    data = [of_kind(outcomes, "data") for outcomes in (theirs, ours)]
    lines += [
        "### What depends on data\n",
        f"Beside the sixty, {len(data[1])} programs in which a shape, a length, a type or a Python value depends on "
        "the values of tensors. A compiled program of fixed shapes cannot hold these. MindSpore finds shapes at run "
        f"time or goes back to Python, and computes {count(data[0], 'ok')} right and {count(data[0], 'wrong')} wrong; "
        "Mycelia "
        f"computes {count(data[1], 'ok')} and refuses {count(data[1], 'error')}, with the line and what to write "
        "instead (or run them in PyNative mode, where all of them work).\n",
        "| program | MindSpore 2.10 | Mycelia |",
        "|---|---|---|",
    ]
    lines += [f"| {name.partition('/')[2]} | {verdict(data[0][name])} | {verdict(data[1][name])} |" for name in data[1]]
    lines.append("")
    lines += [
        "Seen beside these: in MindSpore the condition of a comprehension is false if it is a number, so that "
        "`[x * k for k in (2.0, 0.5) if k]` is empty; Python's truth decides here.\n",
        "### Edits that the next call must see\n",
        "| what changes between two calls | MindSpore 2.10 | Mycelia |",
    ]
    lines.append("|---|---|---|")
    for name in of_kind(ours, "edits"):
        cells = [
            "seen" if o["result"] == "ok" else "not seen" if o["result"] == "wrong" else verdict(o)
            for o in (theirs[name], ours[name])
        ]
        if name.endswith("learning rates"):
            cells = [f"{c}; {time_of(o)} s for all" for c, o in zip(cells, (theirs[name], ours[name]), strict=True)]
        lines.append(f"| {name.partition('/')[2]} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def with_section(text: str) -> str:
    """The document with the section replaced, or added at its end."""
    if TITLE not in text:
        return text.rstrip("\n") + "\n\n" + section()
    before, _, rest = text.partition(TITLE)
    _, mark, after = rest.partition("\n## ")
    return before + section() + mark + after


def main() -> None:
    """Rewrite the section in place."""
    text = with_section(DOCUMENT.read_text(encoding="utf-8"))
    beside = DOCUMENT.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(DOCUMENT)


if __name__ == "__main__":
    main()
