"""The launcher on one machine: its command line, what ranks are told, and what happens when one fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mycelia.core import cluster, introduction
from mycelia.core.errors import MyceliaError
from mycelia.parallel.launcher import command, environment, failure, options

Launch = Callable[..., tuple[int, str, str]]


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Launch:
    """Run a script of a few lines in ranks; the exit code, what the ranks and what the launcher said."""
    monkeypatch.chdir(tmp_path)

    def run(body: str, *arguments: str, script: tuple[str, ...] = ("script.py",)) -> tuple[int, str, str]:
        Path("script.py").write_text("import os, signal, sys, time\nRANK = int(os.environ['RANK_ID'])\n" + body)
        code = command.main(["--master_port", "0", "--grace", "1", *arguments, *script])
        out, err = capfd.readouterr()
        return code, out, err

    return run


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_until(holds: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.02)


# the command line


def parse(*arguments: str, program: str = "mycelia-run") -> options.Options:
    return options.parse(program, [*arguments, "train.py"])


def test_options_of_msrun() -> None:
    given = options.parse("msrun", [
        "--worker_num=16", "--local_worker_num=8", "--master_addr=10.0.0.5", "--master_port=9000", "--node_rank=1",
        "--log_dir=logs", "--join=True", "--cluster_time_out=30", "--bind_core=True", "--tail_worker_log=0,3",
        "--worker_log_name=w_{hostname}", "train.py", "--epochs", "3", "--join",
    ])  # fmt: skip
    assert (given.worker_num, given.local_worker_num, given.node_rank, given.single) == (16, 8, 1, False)
    assert (given.master_addr, given.master_port, given.join, given.cluster_time_out) == ("10.0.0.5", 9000, True, 30)
    assert given.tail_worker_log == {0, 3}
    assert given.script == "train.py"
    assert given.arguments == ("--epochs", "3", "--join")
    assert given.log_name(5) == f"w_{os.uname().nodename}_5.log"


def test_defaults() -> None:
    given = parse(program="msrun")
    assert (given.worker_num, given.local_worker_num, given.master_port, given.node_rank) == (8, 8, 8118, -1)
    assert not given.join
    assert parse().join
    assert parse("--worker_num", "2").local_worker_num == 2
    assert parse("--worker_num", "16").local_worker_num == 8


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--worker_num", "0"], "--worker_num 0: takes a number from 1 on"),
        (["--worker_num", "2", "--local_worker_num", "3"], "--local_worker_num 3: takes 1 to --worker_num, which is 2"),
        (["--worker_num", "4", "--local_worker_num", "2", "--master_port", "0"], "takes a port that all machines know"),
        (["--master_port", "70000"], "--master_port 70000"),
        (["--tail_worker_log", "a"], "--tail_worker_log a: takes numbers of ranks"),
        (["--join", "maybe"], "--join"),
        (["--bind_core", '{"gpu0": ["0"]}'], "'gpu0' is not \"device\""),
        (["--bind_core", '{"device0": ["x"]}'], "is not a list of cores"),
        (["--bind_numa", '{"bind_config": {}}'], "for Ascend chips"),
        (["--sim_level", "1"], "plan.simulate"),
        (["--heartbeat", "1"], "3 seconds or more"),
        (["--no_such"], "--no_such"),
    ],
)
def test_bad_options(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        parse(*arguments)
    assert raised.value.code == 2
    assert said in capsys.readouterr().err


def test_options_without_a_meaning_are_named() -> None:
    given = parse("--rank_table_file", "t.json", "--node_rank", "2", "--bind_core", '{"scheduler": ["0"]}')
    assert len(given.notices) == 3
    for notice, word in zip(given.notices, ("--node_rank 2", "--rank_table_file", '"scheduler"'), strict=True):
        assert word in notice


def test_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environment, "usable_cores", lambda: [0, 1, 2, 3, 8, 9, 10])
    each = parse("--worker_num", "3", "--bind_core", "True")
    assert [environment.cores_of(each, n, 3) for n in range(3)] == [[0, 1], [2, 3], [8, 9]]
    assert environment.cores_of(each, 8, 9) == [1]
    own = parse("--bind_core", '{"device0": ["0-1", "9"], "device1": ["77"]}')
    assert environment.cores_of(own, 0, 8) == [0, 1, 9]
    assert environment.cores_of(own, 1, 8) is None
    assert environment.cores_of(own, 2, 8) is None
    assert environment.cores_of(parse(), 0, 8) is None
    for node, text in enumerate(("0-3", "8-10,12", "")):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(text + "\n")
    nodes = environment.numa_nodes(tmp_path)
    assert nodes == {0: [0, 1, 2, 3], 1: [8, 9, 10, 12]}
    monkeypatch.setattr(environment, "numa_nodes", lambda: nodes)
    turn = parse("--bind_numa", "True")
    assert [environment.cores_of(turn, n, 8) for n in range(3)] == [[0, 1, 2, 3], [8, 9, 10], [0, 1, 2, 3]]
    assert environment.cores_of(parse("--bind_numa", '{"device5": ["1"]}'), 5, 8) == [8, 9, 10]


def test_threads_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "usable_cores", lambda: list(range(12)))
    part = environment.Assignment(4, 4, 8, 1, "10.0.0.5", 8119, 2)
    told = environment.variables(parse("--worker_num", "8", "--local_worker_num", "4"), part, 3, 7, {"A": "b"})
    assert told["OMP_NUM_THREADS"] == told["NPROC"] == "3"
    assert told["A"] == "b"
    assert (told["RANK_ID"], told["MS_NODE_ID"], told["RANK_SIZE"], told["DEVICE_ID"]) == ("7", "7", "8", "3")
    assert told["MS_RESTART_COUNT"] == "2"
    assert told["MS_LOCAL_WORKER_NUM"] == "4"
    place = cluster.from_environment(told)
    assert place == cluster.Place(7, 8, 3, 4, "10.0.0.5:8119", "msrun")
    kept = environment.variables(parse(), part, 0, 7, {"OMP_NUM_THREADS": "5"})
    assert kept["OMP_NUM_THREADS"] == "5"


# other launchers


def test_slurm() -> None:
    env = {
        "SLURM_JOB_ID": "71234", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "c[09-11,20],d1",
        "SLURM_STEP_NUM_TASKS": "7", "SLURM_NTASKS": "7", "SLURM_PROCID": "6", "SLURM_LOCALID": "0",
        "SLURM_NODEID": "3", "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
    }  # fmt: skip
    place = cluster.from_environment(env)
    assert place == cluster.Place(6, 7, 0, 1, f"c09:{61440 + 71234 % 4096}", "srun")
    assert cluster.from_environment({**env, "SLURM_NODEID": "1"}).local_size == 2  # type: ignore[union-attr]
    batch = {k: v for k, v in env.items() if "STEP" not in k} | {"ENVIRONMENT": "BATCH", "SLURM_PROCID": "0"}
    assert cluster.from_environment(batch) is None
    told = cluster.from_environment({**env, "MS_SCHED_HOST": "10.0.0.1", "MS_SCHED_PORT": "8118"})
    assert told is not None
    assert told.address == "10.0.0.1:8118"
    with pytest.raises(MyceliaError, match="SLURM_PROCID"):
        cluster.from_environment({**env, "SLURM_PROCID": "7"})


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("a1", "a1"), ("a1,b2", "a1"), ("n[001-003]", "n001"), ("n[7,9],m", "n7"), ("r[2-3]n[04-8]-ib,x", "r2n04-ib")],
)
def test_first_node_of_slurm(nodes: str, first: str) -> None:
    assert introduction.first_node(nodes) == first


def test_mpirun_variables() -> None:
    env = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
           "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "prterun-login-7-991@1"}  # fmt: skip
    place = cluster.from_environment(env)
    assert place is not None
    assert place.address is not None
    host, port = place.address.split(":")
    assert host == "login-7"
    assert 61440 <= int(port) <= 65535
    assert cluster.from_environment({**env, "OMPI_COMM_WORLD_RANK": "0"}).address == place.address  # type: ignore[union-attr]
    here = cluster.from_environment({**env, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"})
    assert here is not None
    assert here.address == f"127.0.0.1:{port}"
    pmi = {"PMI_SIZE": "4", "PMI_RANK": "1", "MPI_LOCALNRANKS": "2", "MPI_LOCALRANKID": "1"}
    assert cluster.from_environment(pmi) == cluster.Place(1, 4, 1, 2, None, "mpirun")


def test_own_address() -> None:
    assert introduction.own_address("127.0.0.1:80") is None
    assert introduction.own_address("no.such.host.invalid:80") is None


# failures, as text


def test_how_a_process_ended() -> None:
    assert failure.describe(3) == ("ended with exit code 3", 3)
    assert failure.describe(-signal.SIGSEGV) == ("was ended by SIGSEGV", 139)


def test_the_last_error_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "w.log"
    log.write_text("a\n" * 50 + "Traceback (most recent call last):\n  old\nKeyError: 1\nb\n" * 2)
    assert failure.last_lines(log) == ["Traceback (most recent call last):", "  old", "KeyError: 1", "b"]
    log.write_text("\n".join(map(str, range(99))))
    assert failure.last_lines(log) == [str(n) for n in range(87, 99)]
    log.write_text("Traceback (most recent call last):\n" + "x\n" * 60 + "E")
    assert (found := failure.last_lines(log))[0].startswith("Traceback")
    assert found[-1] == "E"
    assert len(found) == 40
    assert failure.last_lines(tmp_path / "none") == []


# launches


def test_success(launch: Launch) -> None:
    code, out, err = launch(
        """
        print("rank", RANK, sys.argv[1:], os.environ["MS_RESTART_COUNT"], sorted(os.sched_getaffinity(0)))
        """.strip(),
        "--worker_num", "2", "--log_dir", "logs", "--bind_core", "True", script=("script.py", "--lr", "0.1"),
    )  # fmt: skip
    assert code == 0, err
    cores = environment.usable_cores()
    for rank in range(2):
        text = Path(f"logs/worker_{rank}.log").read_text()
        own = environment.cores_of(parse("--bind_core", "True"), rank, 2)
        assert text == f"rank {rank} ['--lr', '0.1'] 0 {own}\n"
        assert f"[{rank}] {text}" in out
    assert "ranks 0 to 1 of 2" in err
    assert "all ranks have ended well" in err
    assert environment.usable_cores() == cores


def test_the_first_failure_is_named_and_nothing_is_left(launch: Launch) -> None:
    code, _, err = launch(
        textwrap.dedent("""
        import subprocess
        child = subprocess.Popen(["sleep", "300"])  # a rank's own process
        open(f"pids_{RANK}", "w").write(f"{os.getpid()} {child.pid}")
        if RANK == 1:
            time.sleep(0.3)
            raise RuntimeError("the disk is full")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # does not want to end
        time.sleep(300)
        """),
        "--worker_num", "3", "--tail_worker_log", "0",
    )  # fmt: skip
    assert code == 1
    assert f"rank 1 on {os.uname().nodename} (node 0) ended with exit code 1" in err
    assert "RuntimeError: the disk is full" in err
    assert "worker_1.log" in err
    for rank in range(3):
        assert not [p for p in Path(f"pids_{rank}").read_text().split() if alive(int(p))]


def test_the_signal_that_ended_a_rank_is_named(launch: Launch) -> None:
    code, _, err = launch(
        "if RANK == 0:\n    os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(300)", "--worker_num", "2"
    )
    assert code == 137
    assert "rank 0 on" in err
    assert "was ended by SIGKILL" in err


def test_what_another_failure_brings_about_is_not_named_first(launch: Launch) -> None:
    code, _, err = launch(
        """
pipe = int(os.environ["MYCELIA_PULSE_FD"])
if RANK == 0:  # an error of the network, and before it an end that is told later
    os.write(pipe, b"C01")
    time.sleep(300)
time.sleep(0.2)
print("ZeroDivisionError: x")
os.write(pipe, b"E07")
time.sleep(300)
""",
        "--worker_num", "2",
    )  # fmt: skip
    assert code == 7
    assert "rank 1 on" in err
    assert "exit code 7" in err


def test_a_silent_or_stopped_rank_is_lost(launch: Launch) -> None:
    body = """
pipe = int(os.environ["MYCELIA_PULSE_FD"])
start = time.monotonic()
while True:
    os.write(pipe, b".")
    time.sleep(0.2)
    if RANK == 1 and os.environ["MS_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGSTOP)
    if RANK == 0 and os.environ["MS_RESTART_COUNT"] == "1":
        while time.monotonic() - start < 5:  # at work and silent: that is allowed
            sum(range(1000))
        time.sleep(300)
"""
    begin = time.monotonic()
    code, _, err = launch(body, "--worker_num", "2", "--heartbeat", "3", "--max_restarts", "1")
    assert code == 1
    assert "rank 1 on" in err
    assert "stands still: a signal stopped it" in err
    assert "rank 0 on" in err
    assert "stands still: not heard for 3 s" in err
    assert time.monotonic() - begin < 20


def test_restarts(launch: Launch) -> None:
    body = """
print("start", os.environ["MS_RESTART_COUNT"], os.environ["MS_SCHED_PORT"])
if os.environ["MS_RESTART_COUNT"] != "2":
    sys.exit(RANK * 5)
"""
    code, _, err = launch(body, "--worker_num", "2", "--max_restarts", "3")
    assert code == 0, err
    text = Path("worker_0.log").read_text()
    assert [line.split()[1] for line in text.splitlines() if line.startswith("start")] == ["0", "1", "2"]
    ports = {line.split()[2] for line in text.splitlines() if line.startswith("start")}
    assert len(ports) == 3
    assert err.count("rank 1 on") == 2
    assert "starts all ranks again (2 of at most 3 times)" in err
    code, _, err = launch("sys.exit(5)", "--worker_num", "1", "--max_restarts", "1")
    assert code == 5
    assert "gives up after 1 restarts" in err


def test_module_and_log_name(launch: Launch) -> None:
    code, _, err = launch(
        "print('as', __name__)", "--worker_num", "1", "--worker_log_name", "w", "-m", script=("script",)
    )
    assert code == 0, err
    assert Path("w_0.log").read_text() == "as __main__\n"


def test_a_port_that_is_taken(launch: Launch) -> None:
    import socket

    with socket.socket() as s:
        s.bind(("", 0))
        s.listen()
        taken = s.getsockname()[1]
        code, out, err = launch("print(os.environ['MS_SCHED_PORT'])", "--worker_num", "1", "--master_port", str(taken))
        assert code == 0
        assert f"--master_port {taken} is taken" in err
        assert str(taken) not in out
        two = ["--worker_num", "2", "--local_worker_num", "1", "--node_rank", "0", "--master_port", str(taken)]
        code, _, err = launch("", *two)
        assert code == 1
        assert f"--master_port {taken} of this machine is taken" in err
    code, out, _ = launch("print(os.environ['MS_SCHED_PORT'])", "--worker_num", "1", "--master_port", str(taken))
    assert code == 0
    assert str(taken) in out


def start(folder: Path, body: str, *arguments: str) -> subprocess.Popen[bytes]:
    (folder / "script.py").write_text("import os, signal, sys, time\nRANK = int(os.environ['RANK_ID'])\n" + body)
    words = [sys.executable, "-m", "mycelia.parallel.launcher.command", "--master_port", "0", *arguments, "script.py"]
    with (folder / "err").open("wb") as err:
        return subprocess.Popen(words, cwd=folder, stderr=err)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_rank_outlives_the_launcher(how: signal.Signals, tmp_path: Path) -> None:
    body = "import subprocess\nc = subprocess.Popen(['sleep', '300'])\n"
    body += (
        "open(f'pid_{RANK}.tmp', 'w').write(f'{os.getpid()} {c.pid}')\nos.rename(f'pid_{RANK}.tmp', f'pid_{RANK}')\n"
    )
    launcher = start(tmp_path, body + "time.sleep(300)", "--worker_num", "2")
    try:
        wait_until(lambda: all((tmp_path / f"pid_{rank}").exists() for rank in range(2)), 60)
        processes = [int(p) for rank in range(2) for p in (tmp_path / f"pid_{rank}").read_text().split()]
        assert all(map(alive, processes))
    finally:
        launcher.send_signal(how)
        code = launcher.wait(20)
    wait_until(lambda: not any(map(alive, processes)))
    if how == signal.SIGTERM:
        assert code == 143
        assert "was asked to end" in (tmp_path / "err").read_text()


def test_without_join_the_launcher_goes_on_in_the_background(tmp_path: Path) -> None:
    body = "while not os.path.exists('go'):\n    time.sleep(0.02)\nprint('done', RANK)"
    launcher = start(tmp_path, body, "--worker_num", "2", "--join", "False", "--log_dir", "logs")
    try:
        assert launcher.wait(60) == 0  # while the ranks still wait
    finally:
        (tmp_path / "go").touch()
    log = tmp_path / "logs" / "launcher.log"
    wait_until(lambda: log.exists() and "all ranks have ended well" in log.read_text())
    assert (tmp_path / "logs" / "worker_1.log").read_text() == "done 1\n"
