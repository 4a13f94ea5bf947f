"""Trainings that are ended and go on: the parameters in the end are those of the training that nothing happened to."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("recoverable.py")


def train(folder: Path, steps: int, every: int, plan: list[Any], *arguments: str, seconds: float = 120) -> str:
    """Train with two ranks to the end; what the launcher said."""
    folder.mkdir()
    words = [sys.executable, "-m", "mycelia.parallel.launcher.command", "--worker_num", "2", "--master_port", "0",
             "--max_restarts", str(len(plan)), "--tail_worker_log", "9", "--grace", "1", *arguments,
             str(SCRIPT), str(folder), str(steps), str(every), json.dumps(plan)]  # fmt: skip
    run = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False)
    logs = "\n".join((folder / f"worker_{rank}.log").read_text()[-3000:] for rank in range(2))
    assert run.returncode == 0, f"{run.stderr}\n{logs}"
    return run.stderr


def test_a_killed_training_ends_with_the_same_parameters(tmp_path: Path) -> None:
    train(tmp_path / "whole", 10, 4, [])
    said = train(tmp_path / "killed", 10, 4, [[1, 6, int(signal.SIGKILL)]])
    assert "rank 1 on" in said
    assert "was ended by SIGKILL" in said
    assert "begins at 4" in (tmp_path / "killed" / "worker_0.log").read_text()
    assert (tmp_path / "killed" / "end.ckpt").read_bytes() == (tmp_path / "whole" / "end.ckpt").read_bytes()


@pytest.mark.slow
def test_twenty_failures_and_twenty_recoveries(tmp_path: Path) -> None:
    """A rank is killed, stopped, fails, or is killed while it writes a checkpoint; steps are drawn."""
    draw = random.Random(11)
    kinds = [int(signal.SIGKILL), int(signal.SIGKILL), "save", "raise", int(signal.SIGSTOP)]
    plan = [[draw.randrange(2), draw.randrange(1, 7), kinds[n % len(kinds)]] for n in range(20)]
    steps = 4 * len(plan)  # each start gets some steps further, or is ended before its first checkpoint
    train(tmp_path / "whole", steps, 2, [])
    said = train(tmp_path / "killed", steps, 2, plan, "--heartbeat", "3", seconds=900)
    for number, (rank, _, what) in enumerate(plan, 1):
        assert f"starts all ranks again ({number} of at most 20 times)" in said
        how = {"raise": "ended with exit code 1", int(signal.SIGSTOP): "stands still"}.get(what, "was ended by SIGKILL")
        part = said.split("starts all ranks again")[number - 1]
        assert f"rank {rank} on" in part, part
        assert how in part, part
    assert (tmp_path / "killed" / "end.ckpt").read_bytes() == (tmp_path / "whole" / "end.ckpt").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("package", ["openmpi", "mpich"])
def test_mpirun(package: str, tmp_path: Path) -> None:
    """Skipped where there is no ``mpirun`` of that kind: the packages of both names on PyPI have one."""
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        pytest.skip("there is no mpirun")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=False).stdout
    if ("Open MPI" in version) != (package == "openmpi"):
        pytest.skip(f"mpirun is not {package}'s")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport numpy as np\nimport mycelia as ms\nfrom mycelia import communication as comm, ops\n"
        "comm.init()\nx = ops.AllReduce()(ms.Tensor(np.full(2, 2.0 + comm.get_rank(), np.float32)))\n"
        "open(f'{sys.argv[1]}/said_{comm.get_rank()}', 'w').write(f'{x.asnumpy().tolist()} {comm.get_local_rank()}')\n"
        "if len(sys.argv) > 2:\n    if comm.get_rank() == 1:\n        raise ValueError('no good')\n"
        "    ops.AllReduce()(x)\n"
    )
    more = ["--oversubscribe", "--allow-run-as-root"] if package == "openmpi" else []
    words = [mpirun, "-n", "2", *more, sys.executable, str(script), str(tmp_path)]
    run = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    said = [(tmp_path / f"said_{rank}").read_text() for rank in range(2)]
    assert [text.rsplit(" ", 1)[0] for text in said] == ["[5.0, 5.0]"] * 2
    assert sorted(text.rsplit(" ", 1)[1] for text in said) == ["0", "1"]
    failed = subprocess.run([*words, "fail"], capture_output=True, text=True, timeout=60, check=False)
    assert failed.returncode != 0
    assert "no good" in failed.stdout + failed.stderr
