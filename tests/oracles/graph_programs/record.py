"""Run every program on the real MindSpore and on Mycelia and record how they fared.

    python -m tests.oracles.graph_programs.record MINDSPORE_PYTHON [NAME...] [--rounds 3]

from the top folder, with Mycelia's Python; MINDSPORE_PYTHON is that of an environment with MindSpore 2.10. Each
program runs in processes of its own, ended after two minutes, in an empty folder, on one framework after the other
so that both see the same load of the machine. With names, only these programs are run again. The outcomes go to
``mindspore.json`` and ``mycelia.json`` beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.oracles.graph_programs.program import Outcome
from tests.oracles.graph_programs.run_one import PROGRAMS

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[2]
LIMIT = 120


def run(python: str, framework: str, name: str) -> dict[str, Any]:
    """The outcome of one program in a process of its own."""
    env = {
        **os.environ,
        "GRAPH_PROGRAMS_FRAMEWORK": framework,
        "PYTHONPATH": f"{TOP}{os.pathsep}{TOP / 'src'}",
        "MYCELIA_CACHE_DIR": "",  # nothing compiled earlier is reused
        "GLOG_v": "3",
    }
    command = [python, "-m", "tests.oracles.graph_programs.run_one", name]
    options: dict[str, Any] = {"env": env, "capture_output": True, "text": True, "timeout": LIMIT}
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(command, check=False, cwd=folder, **options)
        except subprocess.TimeoutExpired:
            return asdict(Outcome("error", f"no end within {LIMIT} s"))
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"result"')]
    if lines:
        return dict(json.loads(lines[-1]))
    if done.returncode > 0:
        raise RuntimeError(f"{framework} {name}: {done.stderr[-2000:]}")
    return asdict(Outcome("error", f"the process ended by signal {-done.returncode}"))


def quickest(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """The outcome of a program with the least of the seconds of several runs; one failure is a failure."""
    failed = next((o for o in outcomes if o["result"] != "ok"), None)
    least = {
        what: [round(min(s), 5) for s in zip(*(o[what] for o in outcomes), strict=True)]
        for what in ("seconds", "processor")
    }
    return failed or {**outcomes[0], **least}


def write(path: Path, outcomes: dict[str, Any]) -> None:
    """Store outcomes, beside the old file first."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(outcomes, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.replace(path)


def main() -> None:
    """Record both frameworks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("mindspore")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=3, help="processes per program; the least seconds are kept")
    options = parser.parse_intermixed_args()
    pythons = {"mindspore": options.mindspore, "mycelia": sys.executable}
    files = {framework: HERE / f"{framework}.json" for framework in pythons}
    known: dict[str, dict[str, Any]] = {
        framework: json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        for framework, file in files.items()
    }
    for name in options.names or PROGRAMS:
        seen: dict[str, list[dict[str, Any]]] = {framework: [] for framework in pythons}
        for _ in range(options.rounds):
            for framework, python in pythons.items():
                if not seen[framework] or seen[framework][-1]["result"] == "ok":
                    seen[framework].append(run(python, framework, name))
        for framework in pythons:
            known[framework][name] = quickest(seen[framework])
        for framework, file in files.items():
            write(file, {n: known[framework][n] for n in PROGRAMS if n in known[framework]})
        both = [
            f"{o['result']} {o['seconds']} {o['processor']} {o['message'][:60]}"
            for o in (known[f][name] for f in pythons)
        ]
        print(f"{name}: {' | '.join(both)}", flush=True)


if __name__ == "__main__":
    main()
