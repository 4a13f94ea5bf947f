"""Train and serve the same networks with Mycelia and its peers, side by side.

    python -m benchmarks.run
    python -m benchmarks.run --networks mlp,gpt --peers torch,jax --rounds 5 --json out.json --chart out.svg
    python -m benchmarks.run --peers mindspore:graph --python-mindspore ENVIRONMENT/bin/python
    python -m benchmarks.run --resume out.json

Each contender runs in a process of its own, in the environment that is given for it; a peer that is not installed
there is reported and left out. All start from the same weights and inputs, and their first losses are compared. A
time is that of one step, from call to finished result; "x graph" is it over the time of Mycelia's Graph mode in the
same round, "x least" the same of the least times, which other programs on the machine disturb less, "of peak" the rate
beside the fastest large matrix product that any library computed in this run. MiB is the most memory that the whole
process held, growth that without what it held after importing the framework. What all networks say together comes last.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import chart, peak
from benchmarks.peers import MODES, PEERS, contenders, not_done
from benchmarks.program import JOBS, PRECISIONS
from benchmarks.record import Earlier, RecordError, document, processor, read, write_json
from benchmarks.rounds import Options, Result, look_around, measure
from benchmarks.summary import summary, text
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
        "--peers", default=",".join(PEERS), help="frameworks, or framework:mode; an empty word for none"
    )
    parser.add_argument(
        "--ours", type=_names(MODES["mycelia"]), default=list(MODES["mycelia"]), help="Mycelia's modes beside graph"
    )
    for framework in PEERS:
        parser.add_argument(f"--python-{framework}", metavar="PYTHON", default="", help=f"the Python with {framework}")
    parser.add_argument("--modes", type=_names(JOBS), default=list(JOBS), help="train, infer or both")
    parser.add_argument("--precision", type=_names(PRECISIONS), default=["f32"], help="f32, bf16 or both")
    parser.add_argument("--rounds", type=_at_least_one, default=10, help="turns of each contender")
    parser.add_argument("--threads", type=_at_least_one, default=2, help="threads for each contender")
    parser.add_argument("--budget", type=_at_least_one, default=60, help="seconds of timed steps for each contender")
    parser.add_argument(
        "--limit", type=_at_least_one, default=300, help="seconds until the end of a first step, else it is given up"
    )
    parser.add_argument(
        "--step-limit", type=_at_least_one, default=20, help="seconds that a later step may take, else it is given up"
    )
    parser.add_argument("--small", action="store_true", help="tiny versions of the networks, to try the program out")
    parser.add_argument("--json", type=_folder_exists, help="write everything, after each measurement")
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="FILE",
        help="go on with a run from its JSON, and write there",
    )
    parser.add_argument("--chart", type=_svg, help="draw the times; also a .png beside if matplotlib is installed")
    options = parser.parse_args(given)
    try:
        options.contenders = contenders(
            ["mycelia:graph", *(f"mycelia:{m}" for m in options.ours if m != "graph")], {}
        ) + contenders(
            [p.strip() for p in options.peers.split(",") if p.strip()],
            {f: getattr(options, f"python_{f}") for f in PEERS},
        )
    except ValueError as error:
        parser.error(str(error))
    options.run = Options(
        options.threads, options.rounds, options.small, float(options.limit), float(options.budget),
        float(options.step_limit),
    )  # fmt: skip
    options.earlier = Earlier([], {})
    if options.resume is not None:
        try:
            options.earlier = read(options.resume, options.run)
        except RecordError as error:
            parser.error(str(error))
        options.json = options.json or options.resume
    return options


def main(given: list[str] | None = None) -> int:
    """Measure and print; 1 if Mycelia could not be measured or a contender's values differ from Mycelia's."""
    asked = arguments(given)
    options, earlier = asked.run, asked.earlier

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    say("looking for the frameworks and timing matrix products")
    products = (256, 0.0) if asked.small else (peak.SIDE, 1.0)
    machine = look_around(asked.contenders, asked.precision, options, *products)
    machine.include(earlier.rates)
    load = os.getloadavg()[0]
    busy = " before the start; medians mean little, compare least times" if load > 0.5 else ""
    print(f"{processor()}, {options.threads} threads, load average {load:.1f}{busy}")
    print(peaks(machine), flush=True)
    present = [c for c in asked.contenders if c.framework not in machine.missing]
    reasons = {not_done(c.framework, job, p): None for c in present for job in asked.modes for p in asked.precision}
    for reason in reasons:
        if reason is not None:
            print(f"not measured: {reason}", flush=True)
    plan = [(name, job, precision) for name in asked.networks for precision in asked.precision for job in asked.modes]
    results: list[Result] = [r for r in earlier.results if (r.network, r.job, r.precision) not in plan]
    for number, (name, job, precision) in enumerate(plan):
        found = earlier.of(name, job, precision)
        wanted = {c.label for c in present if not not_done(c.framework, job, precision)}
        if wanted <= {r.contender for r in found}:
            say(f"{name} {job} {precision}: measured earlier")
        else:
            found = measure(name, job, precision, present, options, say)
        results += found
        machine.compare(results)
        if asked.json:
            waiting = [r for measured in plan[number + 1 :] for r in earlier.of(*measured)]
            write_json(asked.json, document(machine, options, load, results + waiting))
        if name not in (later[0] for later in plan[number + 1 :]):
            about = workload(name, options.small).about
            print(f"\n{name}: {about}\n{table([r for r in results if r.network == name])}", flush=True)
    if not asked.small:
        say("timing matrix products again")
        again = look_around(present, asked.precision, options, *products)
        machine.include(again.rates)
        machine.compare(results)
        if asked.json:
            write_json(asked.json, document(machine, options, load, results))
        print(f"\n{peaks(machine)}")
    print(f"\nHow many times better Mycelia is, over all networks (1 is a tie)\n{text(summary(results))}", flush=True)
    if asked.chart:
        print("\n" + ", ".join(str(file) for file in chart.write(results, asked.chart)))
    ours = [r for r in results if r.contender.startswith("mycelia")]
    return int(not ours or any(r.error for r in ours) or any(r.agrees is False for r in results))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that workers and their folders go, too
    sys.exit(main())
