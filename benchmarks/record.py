"""What a run found, as a file of JSON: written after every measurement, read to go on with a run that was stopped."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import BF16
from benchmarks.rounds import Machine, Options, Result
from benchmarks.summary import summary
from benchmarks.workloads import workload


class RecordError(Exception):
    """A file that a run cannot go on with."""


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
        "bf16": BF16,
        "workloads": {n: workload(n, options.small).about for n in dict.fromkeys(r.network for r in results)},
        "summary": [asdict(line) for line in summary(results)],
        "results": [asdict(r) for r in results],
    }  # fmt: skip


def write_json(file: Path, content: dict[str, Any]) -> None:
    """Write beside the file and rename."""
    part = file.with_name(f"{file.name}.part")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(file)


@dataclass
class Earlier:
    """What a stopped run had found: its results and its rates of matrix products, as in :class:`Machine`."""

    results: list[Result]
    rates: dict[str, dict[str, float]]

    def of(self, network: str, job: str, precision: str) -> list[Result]:
        """The results of one measurement."""
        return [r for r in self.results if (r.network, r.job, r.precision) == (network, job, precision)]


def read(file: Path, options: Options) -> Earlier:
    """The record of a run on this processor with these threads and sizes of networks.

    Raises:
        RecordError: the file is none, or holds something else.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        earlier = Earlier([Result(**r) for r in found["results"]], found["peak_gflops"])
        was = {"processor": found["processor"]} | {key: found["options"][key] for key in ("threads", "small")}
    except OSError as error:
        raise RecordError(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"{file} is not a record of this program ({type(error).__name__}: {error})") from None
    now = {"processor": processor(), "threads": options.threads, "small": options.small}
    for key, value in was.items():
        if value != now[key]:
            raise RecordError(f"{file} was measured with {key} {value}, this run has {now[key]}")
    return earlier
