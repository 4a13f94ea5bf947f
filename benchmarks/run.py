"""Train and serve the same networks with Mycelia and its peers, side by side.

    python -m benchmarks.run
    python -m benchmarks.run --networks mlp,gpt --peers torch,jax --rounds 5 --json out.json --chart out.svg
    python -m benchmarks.run --peers mindspore:graph --python-mindspore ENVIRONMENT/bin/python

Each contender runs in a process of its own, in the environment that is given for it; a peer that is not installed
there is reported and left out. All start from the same weights and inputs, and their first losses are compared. A
time is that of one step, from call to finished result; "x graph" is it over the time of Mycelia's Graph mode in the
same round, "x least" the same of the least times, which other programs on the machine disturb less, "of peak" the rate
beside the fastest large matrix product that any library computed in this run. MiB is the most memory that the whole
process held.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import chart, peak
from benchmarks.peers import MODES, contenders
from benchmarks.program import JOBS, PRECISIONS
from benchmarks.rounds import Machine, Options, Result, look_around, measure
from benchmarks.table import peaks, table
from benchmarks.workloads import FULL, workload


def _names(allowed: tuple[str, ...]) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        found = [name.strip() for name in text.split(",") if name.strip()]
        for name in found:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"unknown name {name!r}; known are {', '.join(allowed)}")
        if not found:
            raise argparse.ArgumentTypeError(f"no name; known are {', '.join(allowed)}")
        return found

    return read


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _folder_exists(text: str) -> Path:
    if not Path(text).absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"the folder of {text!r} does not exist")
    return Path(text)


def _svg(text: str) -> Path:
    if not text.endswith(".svg"):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .svg")
    return _folder_exists(text)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(
        "benchmarks.run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    networks = tuple(FULL)
    parser.add_argument("--networks", type=_names(networks), default=list(networks), help=f"of {','.join(networks)}")
    parser.add_argument(
        "--peers", default="torch,jax,mindspore", help="frameworks, or framework:mode; an empty word for none"
    )
    parser.add_argument(
        "--ours", type=_names(MODES["mycelia"]), default=list(MODES["mycelia"]), help="Mycelia's modes beside graph"
    )
    for framework in ("torch", "jax", "mindspore"):
        parser.add_argument(f"--python-{framework}", metavar="PYTHON", default="", help=f"the Python with {framework}")
    parser.add_argument("--modes", type=_names(JOBS), default=list(JOBS), help="train, infer or both")
    parser.add_argument("--precision", type=_names(PRECISIONS), default=["f32"], help="f32, bf16 or both")
    parser.add_argument("--rounds", type=_at_least_one, default=10, help="turns of each contender")
    parser.add_argument("--threads", type=_at_least_one, default=2, help="threads for each contender")
    parser.add_argument("--budget", type=_at_least_one, default=60, help="seconds of timed steps for each contender")
    parser.add_argument("--limit", type=_at_least_one, default=600, help="seconds that a contender may take to answer")
    parser.add_argument("--small", action="store_true", help="tiny versions of the networks, to try the program out")
    parser.add_argument("--json", type=_folder_exists, help="write everything that was measured")
    parser.add_argument("--chart", type=_svg, help="draw the times; also a .png beside if matplotlib is installed")
    options = parser.parse_args(given)
    try:
        options.contenders = contenders(
            ["mycelia:graph", *(f"mycelia:{m}" for m in options.ours if m != "graph")], {}
        ) + contenders(
            [p.strip() for p in options.peers.split(",") if p.strip()],
            {f: getattr(options, f"python_{f}") for f in ("torch", "jax", "mindspore")},
        )
    except ValueError as error:
        parser.error(str(error))
    return options


def processor() -> str:
    """The name of the processor."""
    about = Path("/proc/cpuinfo")
    if about.exists():
        for line in about.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def document(machine: Machine, options: Options, load: float, results: list[Result]) -> dict[str, Any]:
    """Everything that was measured, as data."""
    return {
        "processor": processor(), "processors": os.cpu_count(), "python": platform.python_version(),
        "load_average": load,
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY"),
        "options": asdict(options), "peak_gflops": machine.rates, "missing": machine.missing,
        "workloads": {n: workload(n, options.small).about for n in dict.fromkeys(r.network for r in results)},
        "results": [asdict(r) for r in results],
    }  # fmt: skip


def write_json(file: Path, content: dict[str, Any]) -> None:
    """Write beside the file and rename."""
    part = file.with_name(f"{file.name}.part")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(file)


def main(given: list[str] | None = None) -> int:
    """Measure and print; 1 if Mycelia could not be measured or a contender's values differ from Mycelia's."""
    asked = arguments(given)
    options = Options(asked.threads, asked.rounds, asked.small, float(asked.limit), float(asked.budget))

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    say("looking for the frameworks and timing matrix products")
    machine = look_around(
        asked.contenders, asked.precision, options, *((256, 0.0) if asked.small else (peak.SIDE, 1.0))
    )
    load = os.getloadavg()[0]
    busy = " before the start; medians mean little, compare least times" if load > 0.5 else ""
    print(f"{processor()}, {options.threads} threads, load average {load:.1f}{busy}")
    print(peaks(machine), flush=True)
    present = [c for c in asked.contenders if c.framework not in machine.missing]
    results: list[Result] = []
    for name in asked.networks:
        for precision in asked.precision:
            for job in asked.modes:
                found = measure(name, job, precision, present, options, say)
                highest = machine.peak(precision)
                for result in found:
                    if result.gflops is not None and highest:
                        result.of_peak = result.gflops / highest
                results += found
                if asked.json:
                    write_json(asked.json, document(machine, options, load, results))
        about = workload(name, options.small).about
        print(f"\n{name}: {about}\n{table([r for r in results if r.network == name])}", flush=True)
    if asked.chart:
        print("\n" + ", ".join(str(file) for file in chart.write(results, asked.chart)))
    ours = [r for r in results if r.contender.startswith("mycelia")]
    return int(not ours or any(r.error for r in ours) or any(r.agrees is False for r in results))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that workers and their folders go, too
    sys.exit(main())
