"""Launchers of several machines: two on one machine, and two in network namespaces with a cable that can be cut."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.parallel.machines import ADDRESSES, NAMES, Machines, possible
from tests.parallel.ranks import free_port

from mycelia.parallel.launcher import command

_BEFORE = "import os, signal, sys, time\nRANK = int(os.environ['RANK_ID'])\nSTART = os.environ['MS_RESTART_COUNT']\n"


class Launchers:
    """Launchers that a test has started, and what they said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = str(free_port())
        self.all: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str, machines: Machines | None = None, address: str = "127.0.0.1") -> None:
        number = len(self.all)
        words = [sys.executable, "-m", "mycelia.parallel.launcher.command", "--master_port", self.port, "--master_addr",
                 address, "--log_dir", f"logs_{number}", "--grace", "1", *arguments, "script.py"]  # fmt: skip
        with (self.folder / f"said_{number}").open("wb") as said:
            run = words if machines is None else machines.command(number, words)
            self.all.append(subprocess.Popen(run, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=said))

    def said(self, number: int) -> str:
        return (self.folder / f"said_{number}").read_text()

    def wait_for(self, number: int, text: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while text not in self.said(number):
            waits = time.monotonic() < end and self.all[number].poll() is None
            assert waits, f"{text!r} not in\n{self.said(number)}"
            time.sleep(0.02)

    def codes(self, seconds: float = 60) -> list[int]:
        end = time.monotonic() + seconds
        return [launcher.wait(max(0.1, end - time.monotonic())) for launcher in self.all]


@pytest.fixture
def launchers(tmp_path: Path) -> Iterator[Launchers]:
    held = Launchers(tmp_path)
    yield held
    for launcher in held.all:
        if launcher.poll() is None:
            launcher.terminate()
    for launcher in held.all:
        launcher.wait(20)


def test_two_launchers_restart_and_name_the_first_failure_on_both(launchers: Launchers) -> None:
    (launchers.folder / "script.py").write_text(
        _BEFORE + "print('place', RANK, *(os.environ[n] for n in ('RANK_SIZE', 'MS_LOCAL_RANK', 'MS_SCHED_PORT')))\n"
        "if RANK == 2:\n    time.sleep(0.2)\n    raise KeyError('no such key ' + START)\ntime.sleep(300)\n"
    )
    launchers.start("--worker_num", "3", "--local_worker_num", "1", "--max_restarts", "1")
    time.sleep(0.5)
    launchers.start("--worker_num", "3", "--local_worker_num", "2", "--max_restarts", "1")
    assert launchers.codes() == [1, 1], launchers.said(0)
    host = next(n for n in range(2) if "has come" in launchers.said(n))  # the one that came first
    sizes = {0: [1, 2], 1: [2, 1]}[host]
    for number in range(2):
        said = launchers.said(number)
        assert re.search(r"rank 2 on \S+ \(node 1\) ended with exit code 1", said), said
        assert "KeyError: 'no such key 0'" in said
        assert "KeyError: 'no such key 1'" in said
    logs = sorted(path.name for path in launchers.folder.glob(f"logs_{host}/worker_*"))
    assert logs == [f"worker_{rank}.log" for rank in range(sizes[0])]
    first = (launchers.folder / f"logs_{1 - host}" / f"worker_{sizes[0]}.log").read_text()
    assert first.startswith(f"place {sizes[0]} 3 0 {int(launchers.port) + 1}")
    assert "start 2" in first


def test_a_launcher_that_is_killed_is_named(launchers: Launchers) -> None:
    (launchers.folder / "script.py").write_text(_BEFORE + "time.sleep(300)\n")
    for node in range(2):
        launchers.start("--worker_num", "2", "--local_worker_num", "1", "--node_rank", str(node))
    for node in range(2):
        launchers.wait_for(node, f"has started rank {node} of 2")
    launchers.all[1].send_signal(signal.SIGKILL)
    assert launchers.codes() == [1, -signal.SIGKILL]
    assert "(node 1) is gone: its launcher has ended; with it rank 1" in launchers.said(0)


def test_it_goes_on_with_fewer_ranks_if_that_is_allowed(launchers: Launchers) -> None:
    (launchers.folder / "script.py").write_text(
        _BEFORE + "print('of', os.environ['RANK_SIZE'])\nif START == '0':\n    time.sleep(300)\n"
    )
    more = ("--max_restarts", "1", "--min_worker_num", "1")
    for node in range(2):
        launchers.start("--worker_num", "2", "--local_worker_num", "1", "--node_rank", str(node), *more)
    for node in range(2):
        launchers.wait_for(node, f"has started rank {node} of 2")
    launchers.all[1].send_signal(signal.SIGKILL)
    assert launchers.codes() == [0, -signal.SIGKILL], launchers.said(0)
    assert "goes on with 1 of 2 ranks" in launchers.said(0)
    assert (launchers.folder / "logs_0" / "worker_0.log").read_text().split("---\n")[1] == "of 1\n"


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = command.main([*arguments, "script.py"])
    return code, capsys.readouterr().err


def test_machines_that_do_not_come_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    port = ("--master_port", str(free_port()), "--cluster_time_out", "0.3")
    code, said = _run(capsys, "--worker_num", "6", "--local_worker_num", "2", "--node_rank", "0", *port)
    assert code == 1
    assert "4 of 6 ranks did not come within 0.3 s: node 1, node 2 missing" in said
    code, said = _run(capsys, "--worker_num", "6", "--local_worker_num", "2", "--node_rank", "1", *port)
    assert code == 1
    assert f"found no launcher of node 0 at 127.0.0.1:{port[1]} within 0.3 s" in said


def test_a_launcher_with_other_numbers_is_refused(launchers: Launchers, capsys: pytest.CaptureFixture[str]) -> None:
    launchers.start("--worker_num", "4", "--local_worker_num", "2", "--node_rank", "0", "--cluster_time_out", "60")
    port = ("--master_port", launchers.port, "--cluster_time_out", "30")
    code, said = _run(capsys, "--worker_num", "6", "--local_worker_num", "2", "--node_rank", "1", *port)
    assert code == 1
    assert "it was started with --worker_num 6, node 0 with 4" in said
    code, said = _run(capsys, "--worker_num", "4", "--local_worker_num", "3", "--node_rank", "1", *port)
    assert code == 1
    assert "it has 3 ranks, and 2 of 4 are there already" in said
    import socket

    with socket.create_connection(("127.0.0.1", int(launchers.port))) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert stranger.recv(100) in (b"", b'{"kind": "beat"}\n')
    assert launchers.all[0].poll() is None
    launchers.all[0].send_signal(signal.SIGINT)
    assert launchers.codes() == [130]


@pytest.fixture
def namespaces() -> None:
    if not possible():
        pytest.skip("network namespaces need root, ip, unshare and mount")


@pytest.mark.slow
@pytest.mark.usefixtures("namespaces")
def test_ranks_of_two_machines_work_together(launchers: Launchers, tmp_path: Path) -> None:
    """Their names stand for 127.0.1.1 on each of them, where the other one cannot reach them."""
    (tmp_path / "script.py").write_text(
        "import numpy as np\nimport mycelia as ms\nfrom mycelia import communication as comm, ops\ncomm.init()\n"
        "x = ops.AllReduce()(ms.Tensor(np.full(3, 2.0 + comm.get_rank(), np.float32)))\n"
        "print('sum', x.asnumpy().tolist(), comm.get_rank(), comm.get_local_rank(), comm.get_local_rank_size())\n"
    )
    with Machines(tmp_path) as machines:
        for _ in range(2):
            node = len(launchers.all)
            launchers.start("--worker_num", "3", "--local_worker_num", str(1 + node), "--node_rank", str(node),
                            machines=machines, address=ADDRESSES[0])  # fmt: skip
        assert launchers.codes(120) == [0, 0], launchers.said(0) + launchers.said(1)
    for rank, (node, local, held) in enumerate([(0, 0, 1), (1, 0, 2), (1, 1, 2)]):
        log = (tmp_path / f"logs_{node}" / f"worker_{rank}.log").read_text()
        assert f"sum [9.0, 9.0, 9.0] {rank} {local} {held}" in log


@pytest.mark.slow
@pytest.mark.usefixtures("namespaces")
def test_a_cut_cable_is_named_and_the_group_starts_again_when_it_is_back(launchers: Launchers, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(_BEFORE + "if START == '0':\n    time.sleep(300)\n")
    with Machines(tmp_path) as machines:
        for node in range(2):
            launchers.start("--worker_num", "2", "--local_worker_num", "1", "--node_rank", str(node), "--max_restarts",
                            "1", machines=machines, address=ADDRESSES[0])  # fmt: skip
        for node in range(2):
            launchers.wait_for(node, f"has started rank {node} of 2")
        machines.cut()
        launchers.wait_for(0, f"{NAMES[1]} (node 1) was not heard for 10 s", 15)
        launchers.wait_for(1, f"node 0 ({ADDRESSES[0]}:{launchers.port}) was not heard for 10 s", 5)
        machines.cut(False)
        assert launchers.codes(60) == [0, 0], launchers.said(0) + launchers.said(1)
    assert "starts all ranks again" in launchers.said(0)
