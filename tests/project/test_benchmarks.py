"""The networks that are measured are the same in every framework, and the program that measures them runs."""

from __future__ import annotations

import json
import math
import os
import select
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from benchmarks import chart, jax_networks
from benchmarks.networks import NETWORKS, made
from benchmarks.peers import Peer, PeerError, contenders
from benchmarks.program import Program
from benchmarks.rounds import Result, summarize
from benchmarks.run import arguments, main
from benchmarks.table import table
from benchmarks.workloads import FULL, SMALL, initial

QUICK = ["mlp", "lenet"]
NOT_QUICK = [pytest.param(name, marks=pytest.mark.slow) for name in FULL if name not in QUICK]


def values(program: Program, steps: int = 2) -> list[float]:
    found = []
    for _ in range(steps):
        program.step()
        found.append(program.value())
    return found


def ours(name: str, job: str) -> Program:
    from benchmarks import mindspore_programs

    assert mindspore_programs.OURS
    return mindspore_programs.program(SMALL[name], "graph", job, "f32", 2)


@pytest.mark.parametrize("name", ["r18", "gpt", "bert", "lstm", "resnet50"])
def test_jax_lists_the_parameters_of_our_networks(name):
    work = SMALL[name]
    listed = jax_networks.NETWORKS[name](**work.options).shapes
    network = made(work).network
    assert listed == {key: tuple(p.shape) for key, p in network.parameters_and_names()}


def test_the_full_networks_have_the_published_numbers_of_parameters():
    def count(name):
        shapes = jax_networks.NETWORKS[name](**FULL[name].options).shapes
        return sum(math.prod(shape) for key, shape in shapes.items() if ".moving_" not in key)

    assert count("lenet") == 61_706
    assert count("resnet50") == 25_557_032
    layer = 4 * 768 * 769 + 2 * 2 * 768 + 768 * 3072 + 3072 + 3072 * 768 + 768
    assert count("bert") == (30522 + 128 + 2) * 768 + 4 * layer + 768 * 769 + 2 * 768 + 769 * 30522


@pytest.mark.parametrize("job", ["train", "infer"])
@pytest.mark.parametrize("name", [*QUICK, *NOT_QUICK])
def test_jax_computes_the_same(name, job):
    from benchmarks import jax_programs

    mine, theirs = ours(name, job), jax_programs.program(SMALL[name], "jit", job, "f32", 2)
    assert mine.parameters == theirs.parameters
    np.testing.assert_allclose(values(mine), values(theirs), rtol=1e-4)


@pytest.mark.parametrize("name", [*QUICK, *NOT_QUICK])
def test_onnxruntime_computes_the_same(name):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from benchmarks import onnxruntime_programs

    mine, theirs = ours(name, "infer"), onnxruntime_programs.program(SMALL[name], "session", "infer", "f32", 2)
    assert mine.parameters == theirs.parameters
    np.testing.assert_allclose(values(mine), values(theirs), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("mlp", ["--precision", "f32,bf16", "--peers", "torch:eager,jax,onnxruntime"], id="everything"),
        *(
            pytest.param(name, ["--precision", "bf16", "--ours", "graph", "--peers", "torch:eager,jax"], id=name)
            for name in FULL
            if name != "mlp"
        ),
    ],
)
def test_the_program_runs_on_every_network(name, options, tmp_path):
    """Both jobs with the peers that are installed here; one thread, which other programs on the machine slow least."""
    file = tmp_path / "out.json"
    main(["--small", "--networks", name, "--rounds", "1", "--threads", "1", "--json", str(file), *options])
    found = json.loads(file.read_text())
    assert {r["job"] for r in found["results"]} == {"train", "infer"}
    assert [f"{r['contender']}: {r['error']}" for r in found["results"] if r["error"]] == []
    assert [r["contender"] for r in found["results"] if r["agrees"] is not True] == []
    assert "jax jit" in {r["contender"] for r in found["results"]}
    assert any(line["each"] for line in found["summary"])


@pytest.mark.torch
@pytest.mark.parametrize("job", ["train", "infer"])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_torch_computes_the_same(name, job):
    pytest.importorskip("torch")
    from benchmarks import torch_programs

    mine, theirs = ours(name, job), torch_programs.program(SMALL[name], "eager", job, "f32", 2)
    assert mine.parameters == theirs.parameters
    np.testing.assert_allclose(values(mine), values(theirs), rtol=1e-4)


def test_operations_are_counted():
    program = ours("mlp", "infer")
    program.step()
    products = 2 * 8 * (784 * 512 + 512 * 512 + 512 * 10)
    assert products <= program.flops() <= 1.01 * products


def test_weights_depend_on_name_and_shape_alone():
    a, b = initial("head.weight", (3, 4)), initial("head.weight", (3, 4))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, initial("tail.weight", (3, 4)))
    assert initial("x.moving_variance", (2,)).tolist() == [1, 1]


def result(contender: str, turns: list[list[float] | None], value: float = 1.0, network: str = "mlp") -> Result:
    return Result(network, "train", "f32", contender, value=value, parameters=5, turns=turns, flops=2_000_000)


def test_a_ratio_compares_turns_of_the_same_round():
    base = result("mycelia graph", [[1.0, 1.0, 9.0], [10.0], [2.0]])
    slow = result("torch eager", [[2.0], [30.0], None], value=1.001)
    summarize([base, slow])
    assert (base.ratio, base.median_ms, base.least_ms, base.steps) == (1.0, 2.0, 1.0, 5)
    assert (slow.ratio, slow.least_ratio, slow.median_ms) == (2.5, 2.0, 16.0)
    assert base.gflops == pytest.approx(1.0)
    assert (base.agrees, slow.agrees) == (True, False)
    assert "differs from Mycelia: mlp train f32, torch eager: value 1.001" in table([base, slow])


def test_the_chart_is_svg_with_a_bar_for_each_result(tmp_path):
    results = [result("mycelia graph", [[1.0]]), result("torch eager", [[3.0]]), result("jax jit", [[90.0]])]
    results.append(Result("mlp", "train", "f32", "mindspore graph", error="not there"))
    summarize(results)
    written = chart.write(results, tmp_path / "out.svg")
    assert written[0] == tmp_path / "out.svg"
    assert all(file.stat().st_size for file in written)
    root = ET.parse(written[0]).getroot()
    space = "{http://www.w3.org/2000/svg}"
    widths = [float(e.get("width")) for e in root.iter(f"{space}rect")][1:]
    assert widths == [chart.UNIT, 3 * chart.UNIT, chart.FARTHEST * chart.UNIT]
    words = [e.text for e in root.iter(f"{space}text")]
    assert "→ 90.00 ms  (90.00x)" in words
    assert "mindspore graph" not in words


def test_png_beside_the_chart(tmp_path):
    pytest.importorskip("matplotlib")
    results = [result("mycelia graph", [[1.0]])]
    summarize(results)
    written = chart.write(results, tmp_path / "out.svg")
    assert written[1].read_bytes().startswith(b"\x89PNG")


def test_contenders_by_name():
    found = contenders(["torch", "jax:jit"], {"jax": "/somewhere/python"})
    assert [c.label for c in found] == ["torch eager", "torch compile", "jax jit"]
    assert found[2].python == "/somewhere/python"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--networks", "mlp,alexnet"], "unknown name 'alexnet'; known are mlp, lenet"),
        (["--peers", "tensorflow"], "unknown contender 'tensorflow'; known are mycelia:graph"),
        (["--rounds", "0"], "'0' is not a whole number of at least 1"),
        (["--chart", "out.pdf"], "'out.pdf' does not end in .svg"),
        (["--json", "missing/folder/out.json"], "the folder of 'missing/folder/out.json' does not exist"),
    ],
)
def test_bad_options_are_refused(given, said, capsys):
    with pytest.raises(SystemExit):
        arguments(given)
    assert said in capsys.readouterr().err


def test_a_python_that_is_not_there():
    with pytest.raises(PeerError, match="cannot start nowhere/python"):
        Peer("jax", "nowhere/python", 1, 10.0)


def test_a_worker_answers_failures_and_ends(tmp_path):
    peer = Peer("jax", sys.executable, 1, 60.0)
    try:
        with pytest.raises(PeerError, match="KeyError: 'alexnet'"):
            peer.ask("setup", workload="alexnet", small=True, mode="jit", job="infer", precision="f32")
        with pytest.raises(PeerError, match="unknown request 'dance'"):
            peer.ask("dance")
        peer.ask("forget_peak")
        assert peer.ask("memory")["peak"] > 2**20
        folder = Path(peer.caches)
        assert folder.is_dir()
    finally:
        peer.close()
    assert not folder.exists()
    assert peer.process.returncode is not None


@pytest.mark.skipif(sys.platform != "linux", reason="the request to be killed with the parent is Linux's")
def test_a_worker_dies_with_its_parent():
    lines = ["from benchmarks.peers import Peer", "import os", "peer = Peer('jax', os.sys.executable, 1, 60.0)"]
    lines += ["peer.ask('memory')", "print(peer.process.pid, peer.caches, flush=True)", "os._exit(1)"]
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], check=False, capture_output=True, text=True, timeout=60,
        cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    pid, caches = ended.stdout.split()
    shutil.rmtree(caches)
    try:
        watched = os.pidfd_open(int(pid))
    except ProcessLookupError:
        return  # it is gone already
    try:
        ended_too, _, _ = select.select([watched], [], [], 30)
    finally:
        os.close(watched)
    assert ended_too


def test_the_program_measures_and_reports_what_is_missing(tmp_path, capsys):
    # A Python that has no packages stands for an environment without the peer.
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    code = main([
        "--small", "--networks", "mlp", "--modes", "infer", "--rounds", "2", "--ours", "graph", "--peers", "jax,torch",
        "--python-torch", str(bare), "--json", str(tmp_path / "out.json"), "--chart", str(tmp_path / "out.svg"),
    ])  # fmt: skip
    out = capsys.readouterr().out
    assert code == 0
    assert "skipped: torch: ModuleNotFoundError" in out
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["peak_gflops"]["f32"]["jax"] > 0
    base, peer = found["results"]
    assert [base["contender"], peer["contender"]] == ["mycelia graph", "jax jit"]
    assert base["ratio"] == 1.0
    assert peer["agrees"] is True
    assert len(base["turns"]) == 2
    assert all(base[k] > 0 for k in ("first_s", "median_ms", "gflops", "of_peak", "memory", "flops"))
    assert (tmp_path / "out.svg").stat().st_size > 500


def test_it_is_a_program():
    said = subprocess.run(
        [sys.executable, "-m", "benchmarks.run", "--help"],
        capture_output=True, text=True, check=True, timeout=60, cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    assert "--python-mindspore" in said.stdout
