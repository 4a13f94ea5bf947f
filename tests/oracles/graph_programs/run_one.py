"""Run one program in this process and print its outcome as JSON.

GRAPH_PROGRAMS_FRAMEWORK=mindspore python -m tests.oracles.graph_programs.run_one KIND/NAME
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from tests.oracles.graph_programs import control_flow, data_dependent, edits, gradients, syntax
from tests.oracles.graph_programs.program import Edit, Outcome, Program, run_edit, run_program, warm_up

KINDS: dict[str, list[Program]] = {
    "syntax": syntax.PROGRAMS,
    "control flow": control_flow.PROGRAMS,
    "gradients": gradients.PROGRAMS,
}
PROGRAMS: dict[str, Program | Edit] = {f"{kind}/{p.name}": p for kind, all_of in KINDS.items() for p in all_of}
PROGRAMS.update({f"data/{p.name}": p for p in data_dependent.PROGRAMS})
PROGRAMS.update({f"edits/{e.name}": e for e in edits.EDITS})


def main() -> None:
    """Print the outcome of the program that the command line names."""
    one = PROGRAMS[sys.argv[1]]
    warm_up()
    outcome: Any = run_program(one) if isinstance(one, Program) else run_edit(one)
    assert isinstance(outcome, Outcome)
    print(json.dumps(asdict(outcome)))


if __name__ == "__main__":
    main()
