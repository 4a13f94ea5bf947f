"""Seconds until sixty small programs have run once, compiled, beside what MindSpore 2.10 was recorded to need.

Each program of ``tests/oracles/graph_programs`` runs in a process of its own, without stored compilations, after
a small function has been compiled: the first call stages, compiles and runs; the second only runs. Beside the seconds
stand the processor seconds of the first call, which hardly change when the machine is shared.

    python benchmarks/compile_rival.py                             # beside the recorded times
    python benchmarks/compile_rival.py --mindspore PYTHON          # beside MindSpore, run now, alternating
    python benchmarks/compile_rival.py --only gradients --rounds 3
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.oracles.graph_programs import table
from tests.oracles.graph_programs.record import quickest, run

Outcome = dict[str, Any]


def measure(name: str, theirs: Outcome, mindspore: str, rounds: int) -> tuple[Outcome, Outcome]:
    """The outcomes of MindSpore (recorded, unless its Python is given) and of Mycelia."""
    seen: list[Outcome] = []
    rival: list[Outcome] = []
    for _ in range(rounds):
        if mindspore:
            rival.append(run(mindspore, "mindspore", name))
        seen.append(run(sys.executable, "mycelia", name))
    return (quickest(rival) if rival else theirs), quickest(seen)


def ratio(pairs: list[tuple[Outcome, Outcome]], what: str, call: int) -> float:
    """Geometric mean of MindSpore's seconds, or processor seconds, over Mycelia's."""
    return statistics.geometric_mean(t[what][call] / o[what][call] for t, o in pairs)


def cell(outcome: Outcome) -> str:
    """The numbers of one framework."""
    if outcome["result"] != "ok":
        return str(outcome["result"])
    numbers = [outcome["seconds"][0], outcome["processor"][0], *outcome["seconds"][1:]]
    return "".join(f"{s:10.4f}" for s in numbers).ljust(30)


def compiles_of_rates() -> int:
    """How often twenty calls with different Python floats compile."""
    from tests.oracles.graph_programs import edits

    import mycelia as ms

    edits.learning_rates()
    return len(ms.explain_recompiles(edits.descend))


def main() -> None:
    """Print one line for each program and the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mindspore", default="", help="the Python of an environment with MindSpore 2.10")
    parser.add_argument("--rounds", type=int, default=1, help="processes per program; the least seconds count")
    parser.add_argument("--only", default="", help="words that the program's name must contain")
    options = parser.parse_args()
    recorded = {n: o for n, o in table.recorded("mindspore").items() if options.only in n}
    print(f"{'':48} {'MindSpore':>30}   {'Mycelia':>30}")
    columns = f"{'first s':>10}{'processor':>10}{'again s':>10}"
    print(f"{'program':48} {columns}   {columns}")
    both: list[tuple[Outcome, Outcome]] = []
    for name, known in recorded.items():
        theirs, ours = measure(name, known, options.mindspore, options.rounds)
        print(f"{name:48} {cell(theirs):>30}   {cell(ours):>30}", flush=True)
        if theirs["result"] == ours["result"] == "ok" and not name.startswith("edits/"):
            both.append((theirs, ours))
    if both:
        print(f"\n{len(both)} programs that both compute, MindSpore over Mycelia (geometric means):")
        for title, what, call in (
            ("first call, seconds", "seconds", 0),
            ("first call, processor seconds", "processor", 0),
            ("second call, seconds", "seconds", 1),
        ):
            print(f"  {title}: {ratio(both, what, call):.2f}")
    print(f"twenty learning rates: {compiles_of_rates()} compilations")


if __name__ == "__main__":
    main()
