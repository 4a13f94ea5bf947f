"""What a rank is told: its variables, and the cores it may use."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mycelia.core import pulse
from mycelia.parallel.launcher.options import Options, numbers

#: How often the ranks were started again, for the script.
RESTARTS = "MS_RESTART_COUNT"


@dataclass(frozen=True)
class Assignment:
    """The part of a machine in one start of the group.

    Attributes:
        first: the number of its first rank.
        local: how many ranks it starts.
        world: how many there are on all machines.
        node: its number.
        address: where rank 0 introduces the ranks to each other.
        port: the port there.
        attempt: how often the group was started before.
    """

    first: int
    local: int
    world: int
    node: int
    address: str
    port: int
    attempt: int


def usable_cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def cores_of(options: Options, local_rank: int, local: int) -> list[int] | None:
    """The cores that a rank is bound to; None if it is not.

    With ``--bind_core True`` neighbours, in equal parts; ranks share cores only if there are too few.
    """
    cores = usable_cores()
    if isinstance(options.bind_core, dict):
        wanted = options.bind_core.get(f"device{local_rank}")
        return _within(numbers(wanted), cores) if wanted else None
    if options.bind_core:
        each = len(cores) // local
        return cores[local_rank * each : (local_rank + 1) * each] if each else [cores[local_rank % len(cores)]]
    if options.bind_numa:
        nodes = numa_nodes()
        if isinstance(options.bind_numa, dict):
            wanted = options.bind_numa.get(f"device{local_rank}")
            return _within([c for n in numbers(wanted) for c in nodes.get(n, [])], cores) if wanted else None
        if nodes:
            return _within(nodes[sorted(nodes)[local_rank % len(nodes)]], cores)
    return None


def _within(wanted: list[int], cores: list[int]) -> list[int] | None:
    return [core for core in wanted if core in cores] or None


def numa_nodes(folder: Path = Path("/sys/devices/system/node")) -> dict[int, list[int]]:
    """The cores of each NUMA node, by the number of the node; empty where the system does not tell."""
    found: dict[int, list[int]] = {}
    for path in folder.glob("node[0-9]*/cpulist"):
        text = path.read_text().strip()
        if text:
            found[int(path.parent.name[4:])] = numbers([text])
    return found


def variables(
    options: Options, part: Assignment, local_rank: int, pipe: int, env: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment of a rank.

    A thread that computes gets a core of its own: the pools of XLA and of OpenMP have as many threads as the rank has
    cores, unless the environment says otherwise.
    """
    bound = cores_of(options, local_rank, part.local)
    threads = str(len(bound) if bound else max(1, len(usable_cores()) // part.local))
    rank = str(part.first + local_rank)
    out = {**dict.fromkeys(("OMP_NUM_THREADS", "PJRT_NPROC", "NPROC"), threads), "PYTHONUNBUFFERED": "1", **env}
    out |= {
        "MS_WORKER_NUM": str(part.world), "RANK_SIZE": str(part.world), "RANK_ID": rank, "MS_NODE_ID": rank,
        "MS_ROLE": "MS_WORKER", "MS_SCHED_HOST": part.address, "MS_SCHED_PORT": str(part.port),
        "MS_TOPO_TIMEOUT": f"{options.cluster_time_out:g}", "MS_LOCAL_RANK": str(local_rank),
        "MS_LOCAL_WORKER_NUM": str(part.local), "LOCAL_RANK_SIZE": str(part.local), "DEVICE_ID": str(local_rank),
        RESTARTS: str(part.attempt), pulse.VARIABLE: str(pipe),
    }  # fmt: skip
    if options.rank_table_file:
        out["RANK_TABLE_FILE"] = options.rank_table_file
    return out


def command(options: Options) -> list[str]:
    """What a rank runs; a script runs in the interpreter of the launcher."""
    if options.module:
        return [sys.executable, "-m", options.script, *options.arguments]
    if options.script in ("python", "python3"):
        return [sys.executable, *options.arguments]
    if options.script == "pytest":
        return [sys.executable, "-m", "pytest", *options.arguments]
    return [sys.executable, options.script, *options.arguments]
