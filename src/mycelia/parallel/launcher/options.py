"""The command line of ``mycelia-run`` and ``msrun``: msrun's options by their names, and a few of our own."""

from __future__ import annotations

import argparse
import ast
import json
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_CORES = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")
#: Ranks that a machine starts when nothing is said, as msrun does.
_USUAL = 8


@dataclass(frozen=True)
class Options:
    """What was asked for; the fields are named as the options.

    Attributes:
        notices: what the command line holds that means nothing here.
    """

    worker_num: int
    local_worker_num: int
    master_addr: str
    master_port: int
    node_rank: int
    log_dir: str
    join: bool
    cluster_time_out: float
    bind_core: bool | dict[str, list[str]]
    bind_numa: bool | dict[str, list[str]]
    rank_table_file: str
    worker_log_name: str
    tail_worker_log: frozenset[int] | None
    max_restarts: int
    min_worker_num: int
    heartbeat: float
    grace: float
    module: bool
    script: str
    arguments: tuple[str, ...]
    notices: tuple[str, ...]

    @property
    def single(self) -> bool:
        """Whether all ranks run on this machine."""
        return self.local_worker_num == self.worker_num

    def log_name(self, rank: int) -> str:
        """The name of the file that takes the output of a rank."""
        if not self.worker_log_name:
            return f"worker_{rank}.log"
        name = self.worker_log_name.replace("{hostname}", socket.gethostname())
        return f"{name.replace('{ip}', _own_ip())}_{rank}.log"


def _own_ip() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def _binding(what: str) -> Any:
    """A reader of ``True``, ``False`` or ``{"device0": ["0-3", "8"]}``."""

    def read(text: str) -> bool | dict[str, list[str]]:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            raise argparse.ArgumentTypeError(f"{text!r} is neither True, False nor JSON") from None
        if not isinstance(value, dict):
            raise argparse.ArgumentTypeError(f"{text!r} is not True, False or an object of JSON")
        if {"bind_config", "bind_cpu", "bind_memory"} & set(value):
            raise argparse.ArgumentTypeError(
                f'files of bindings for Ascend chips are not read here; write {{"device0": ["0-3"]}} with {what}'
            )
        for name, parts in value.items():
            if not re.fullmatch(r"device\d+|scheduler", name):
                raise argparse.ArgumentTypeError(f'{name!r} is not "device" with a number of a rank on this machine')
            if not isinstance(parts, list) or not all(isinstance(p, str) and _CORES.fullmatch(p) for p in parts):
                raise argparse.ArgumentTypeError(f'{name}: {parts!r} is not a list of {what} as in ["0-3", "8"]')
        return value

    return read


def numbers(parts: Sequence[str]) -> list[int]:
    """The numbers that texts like ``"0-3,8"`` name, in order.

    >>> numbers(["0-3", "8,10"])
    [0, 1, 2, 3, 8, 10]
    """
    out: list[int] = []
    for part in ",".join(parts).split(","):
        first, _, last = part.partition("-")
        out += range(int(first), int(last or first) + 1)
    return out


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program, allow_abbrev=False,
        description="Start a script as several processes that work together, on this machine or on several.",
        epilog="On several machines run it on each of them, with the address of one of them as --master_addr.",
    )  # fmt: skip
    add = parser.add_argument
    add("--worker_num", type=int, default=_USUAL, help="ranks on all machines together (default: 8)")
    add("--local_worker_num", type=int, default=None, help="ranks on this machine (default: 8, at most worker_num)")
    add("--master_addr", default="127.0.0.1", help="address of the machine of node 0 (default: 127.0.0.1)")
    add("--master_port", type=int, default=8118, help="port of that machine; 0: any, on one machine (default: 8118)")
    add("--node_rank", type=int, default=-1, help="number of this machine; -1: in the order in which they come")
    add("--log_dir", default="", help="folder for worker_N.log, one for each rank (default: the current one)")
    add("--join", type=ast.literal_eval, choices=[True, False], default=program != "msrun",
        help="True: wait for the ranks and end with the code of the first that fails; False: go on in the background "
        "(default: False for msrun, True for mycelia-run)")  # fmt: skip
    add("--cluster_time_out", type=float, default=600, help="seconds for all machines to come; negative: any time")
    add("--bind_core", type=_binding("cores"), default=False,
        help='True: each rank gets cores of its own; or {"device0": ["0-3"], ...} by rank of this machine')  # fmt: skip
    add("--bind_numa", type=_binding("NUMA nodes"), default=False,
        help='True: each rank gets the cores of one NUMA node, in turn; or {"device0": ["0"], ...}')  # fmt: skip
    add("--sim_level", type=int, choices=[0, 1, 2, 3], default=None, help="a dry run, which is refused here")
    add("--sim_rank_id", type=int, default=-1, help="the rank of a dry run")
    add("--rank_table_file", default="", help="put into RANK_TABLE_FILE for the script; not read")
    add("--worker_log_name", default="", help="NAME_N.log instead of worker_N.log; may hold {ip} and {hostname}")
    add("--tail_worker_log", default="-1", help="ranks whose output is shown, as in 0,3 (default: all of this machine)")
    add("--max_restarts", type=int, default=0, help="how often all ranks are started again when one fails (default: 0)")
    add("--min_worker_num", type=int, default=0,
        help="after a machine was lost, go on without it if so many ranks are left (default: wait for it)")  # fmt: skip
    add("--heartbeat", type=float, default=10, help="seconds of silence until a rank or machine is lost (default: 10)")
    add("--grace", type=float, default=5, help="seconds between asking ranks to end and ending them (default: 5)")
    add("-m", "--module", action="store_true", help="the script is the name of a module, as for python -m")
    add("script", metavar="task_script", help="what to run: a Python script, or python or pytest with arguments")
    add("arguments", metavar="task_script_args", nargs=argparse.REMAINDER, help="the script's own arguments")
    return parser


def parse(program: str, argv: Sequence[str]) -> Options:
    """Read a command line.

    Raises:
        SystemExit: with code 2, after saying on stderr what makes no sense.
    """
    parser = _parser(program)
    values = vars(parser.parse_args(argv))
    notices: list[str] = []

    def check(name: str, holds: bool, takes: str) -> None:
        if not holds:
            parser.error(f"--{name} {values[name]}: takes {takes}")

    if values["sim_level"] is not None or values["sim_rank_id"] != -1:
        parser.error("--sim_level, --sim_rank_id: a rank cannot be run without the others here; what a plan costs on "
                     "devices that you do not have tells plan.simulate(devices=N) of AutoParallel")  # fmt: skip
    del values["sim_level"], values["sim_rank_id"]
    check("worker_num", values["worker_num"] >= 1, "a number from 1 on")
    if values["local_worker_num"] is None:
        values["local_worker_num"] = min(_USUAL, values["worker_num"])
    total = values["worker_num"]
    check("local_worker_num", 1 <= values["local_worker_num"] <= total, f"1 to --worker_num, which is {total}")
    single = values["local_worker_num"] == total
    check("master_port", 0 <= values["master_port"] <= 65535, "a port, 0 to 65535")
    check("master_port", single or values["master_port"] > 0, "a port that all machines know, as 8118")
    check("node_rank", values["node_rank"] >= -1, "a number from -1 on")
    check("max_restarts", values["max_restarts"] >= 0, "a number from 0 on")
    check("min_worker_num", 0 <= values["min_worker_num"] <= total, f"0 to --worker_num, which is {total}")
    check("heartbeat", values["heartbeat"] >= 3, "3 seconds or more")
    check("grace", values["grace"] >= 0, "a number of seconds from 0 on")
    try:
        tails = {int(n) for n in values["tail_worker_log"].split(",")}
    except ValueError:
        parser.error(f"--tail_worker_log {values['tail_worker_log']}: takes numbers of ranks, as in 0,3, or -1")
    values["tail_worker_log"] = None if tails == {-1} else frozenset(tails)
    if single and values["node_rank"] > 0:
        notices.append(f"--node_rank {values['node_rank']} says nothing: all ranks run on this machine")
        values["node_rank"] = 0
    if values["rank_table_file"]:
        notices.append("--rank_table_file is for Ascend chips; it is put into RANK_TABLE_FILE and not read")
    for name in ("bind_core", "bind_numa"):
        if isinstance(values[name], dict) and "scheduler" in values[name]:
            notices.append(f'--{name}: there is no scheduler process here, so "scheduler" says nothing')
    if values["bind_core"] and values["bind_numa"]:
        notices.append("--bind_numa says nothing beside --bind_core")
    values["arguments"] = tuple(values["arguments"])
    values["master_addr"] = values["master_addr"].strip("[]")
    return Options(**values, notices=tuple(notices))
