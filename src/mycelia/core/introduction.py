"""Where ranks can meet, worked out from what ``mpirun`` and Slurm tell each of them.

Neither names an address, so all ranks derive the same one: the machine of rank 0, and a port made of the job's number
(above the ports that Linux gives out by itself, 61440 to 65535, so that it is likely to be free).
"""

from __future__ import annotations

import os
import re
import socket
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FIRST_PORT, _PORTS = 61440, 4096


def slurm_address(env: Mapping[str, str]) -> str | None:
    """``HOST:PORT`` of a Slurm job step: its first node and a port of the job's number; None without them.

    >>> slurm_address({"SLURM_STEP_NODELIST": "gpu[07-09,12],big1", "SLURM_JOB_ID": "4099"})
    'gpu07:61443'
    """
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST") or env.get("SLURM_NODELIST")
    job = env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID")
    if not nodes or not job or not job.isdecimal():
        return None
    step = env.get("SLURM_STEP_ID", "0")
    number = int(job) + 131 * (int(step) if step.isdecimal() else 0)
    return f"{first_node(nodes)}:{_FIRST_PORT + number % _PORTS}"


def first_node(nodes: str) -> str:
    """The first machine of a Slurm list of machines.

    >>> first_node("rack[2-3]node[001,004-008],other")
    'rack2node001'
    """
    first = re.split(r",(?![^\[]*\])", nodes, maxsplit=1)[0]
    return re.sub(r"\[([^\],-]+)[^\]]*\]", r"\1", first)


def slurm_local_size(env: Mapping[str, str]) -> int | None:
    """How many ranks of a Slurm job step run on this machine; None if nothing tells.

    >>> slurm_local_size({"SLURM_STEP_TASKS_PER_NODE": "4(x2),1", "SLURM_NODEID": "2"})
    1
    """
    text, node = env.get("SLURM_STEP_TASKS_PER_NODE") or env.get("SLURM_TASKS_PER_NODE"), env.get("SLURM_NODEID")
    if not text or not node or not node.isdecimal():
        return None
    counts: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if not found:
            return None
        counts += [int(found[1])] * int(found[2] or 1)
    return counts[int(node)] if int(node) < len(counts) else None


def in_batch_script(env: Mapping[str, str]) -> bool:
    """Whether this is the script that ``sbatch`` runs once, before ``srun`` starts ranks."""
    return env.get("ENVIRONMENT") == "BATCH" and not env.get("SLURM_STEP_ID")


def mpi_address(env: Mapping[str, str], one_machine: bool) -> str | None:
    """``HOST:PORT`` of ranks that ``mpirun`` started; None where the machine of rank 0 is not known.

    Open MPI names the job (version 5: ``PMIX_NAMESPACE``, which holds the machine of ``mpirun``; version 4: the address
    of ``mpirun``). MPICH tells nothing of that kind, but on one machine all ranks have its proxy as an ancestor.
    """
    job = env.get("PMIX_NAMESPACE") or env.get("OMPI_MCA_ess_base_jobid") or env.get("OMPI_MCA_orte_hnp_uri")
    if job is None and one_machine:
        job = str(_proxy())
    if job is None:
        return None
    port = _FIRST_PORT + zlib.crc32(job.encode()) % _PORTS
    if one_machine:
        return f"127.0.0.1:{port}"
    found = re.match(r"prterun-(.+)-\d+@", env.get("PMIX_NAMESPACE", ""))
    found = found or re.search(r"tcp://([^,:]+)", env.get("OMPI_MCA_orte_hnp_uri", ""))
    return f"{found[1]}:{port}" if found else None


def _proxy() -> int:
    """The process of MPICH that started the ranks of this machine, or else the one that started this process."""
    process = os.getpid()
    while process > 1:
        try:
            text = Path(f"/proc/{process}/stat").read_text(errors="replace")
        except OSError:
            break
        name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
        if name.startswith("hydra_pmi"):
            return process
        process = int(rest[1])
    return os.getppid()


def own_address(other: str) -> str | None:
    """The address of this machine on the way to ``HOST:PORT``; None if that is this machine, or cannot be found out."""
    host, port = other.rsplit(":", 1)
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as s:
            s.connect(address)  # of a datagram socket: asks for the route, sends nothing
            own = str(s.getsockname()[0])
    except OSError:
        return None
    return None if own.startswith("127.") or own == "::1" else own


def let_gloo_use(address: str | None) -> None:
    """Have Gloo listen at an address of this machine instead of what its host name stands for.

    Many systems write their own name down as 127.0.1.1, which no other machine can reach. JAX has no setting for it,
    but the function of jaxlib that it calls has an argument.
    """
    if address is None:
        return
    from jaxlib import _jax

    make = _jax.make_gloo_tcp_collectives

    def make_at(*args: Any, **named: Any) -> Any:
        return make(*args, **{"hostname": address, **named})

    _jax.make_gloo_tcp_collectives = make_at
