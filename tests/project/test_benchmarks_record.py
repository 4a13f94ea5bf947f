"""Runs of the benchmarks that are stopped, resumed or summed up, and contenders that take too long."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from benchmarks import peak, run
from benchmarks.peers import BASE, Contender, not_done
from benchmarks.record import RecordError, document, read, write_json
from benchmarks.rounds import Machine, Options, Result, measure, summarize
from benchmarks.summary import summary, text
from benchmarks.table import table

#: A worker that answers at once; "second" and "first" never end that step, "steps" no step after the second.
FAKE = """#!{python} -S
import json, signal, sys
slow, steps = "{slow}", 0
print(json.dumps({{"ready": "fake"}}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    found = {{"parameters": 5, "version": "1", "value": 2.0, "flops": 1000, "ms": [1.0] * asked.get("count", 0)}}
    found |= {{"imported": 100, "peak": 350, "since": 300, "rates": {{"fake": 10.0}}}}
    if asked["do"] == "step":
        steps += 1
        if steps == {{"first": 1, "second": 2, "steps": 3}}.get(slow):
            signal.pause()
    print(json.dumps(found), flush=True)
"""


def fake(folder: Path, slow: str = "") -> str:
    file = folder / f"fake-{slow}"
    file.write_text(FAKE.format(python=sys.executable, slow=slow))
    file.chmod(0o755)
    return str(file)


def quiet(line: str) -> None:
    pass


@pytest.mark.parametrize(
    ("slow", "options", "said"),
    [
        ("first", Options(rounds=2, answer_limit=2.0), "the first step had not ended 2 s after the start"),
        ("second", Options(rounds=2, step_limit=1.0), "a step took more than 1 s"),
        ("steps", Options(rounds=2, step_limit=1.0), "no answer within 1 s"),
    ],
)
def test_a_contender_that_takes_too_long_is_ended_and_the_others_go_on(tmp_path, slow, options, said):
    asked = [
        Contender("jax", "jit", fake(tmp_path, slow)), Contender("mycelia", "graph", fake(tmp_path)),
    ]  # fmt: skip
    ended, base = measure("mlp", "infer", "f32", asked, options, quiet)
    assert ended.error == said
    assert ended.slower_than_ms == (1000.0 if slow == "second" else None)
    assert f"not measured: mlp infer f32, jax jit: {said}" in table([ended, base])
    assert (base.error, base.ratio, base.steps) == (None, 1.0, 100)
    assert (base.memory, base.imported, base.growth, base.step_memory) == (350, 100, 250, 300)


def test_what_a_framework_cannot_do_is_left_out(tmp_path):
    asked = [Contender("onnxruntime", "session", fake(tmp_path)), Contender("mycelia", "graph", fake(tmp_path))]
    assert [r.contender for r in measure("mlp", "train", "f32", asked, Options(rounds=1), quiet)] == [BASE]
    assert not_done("mindspore", "train", "bf16") == "MindSpore's CPU operators take no bfloat16"
    assert not_done("torch", "train", "bf16") is None


def found(
    contender: str, ms: float, network: str = "mlp", job: str = "train", precision: str = "f32", first_s: float = 1.0,
    error: str | None = None, memory: int = 100,
) -> Result:  # fmt: skip
    turns: list[list[float] | None] = [] if error else [[ms, 2 * ms, ms], None, [ms]]
    r = Result(
        network, job, precision, contender, error, parameters=5, value=1.0, first_s=first_s, turns=turns,
        memory=memory, growth=memory - 40, step_memory=memory,
    )  # fmt: skip
    summarize([r])
    return r


def line_of(results: list[Result], title: str, basis: str):
    (line,) = [line for line in summary(results) if (line.title, line.basis) == (title, basis)]
    return line


def test_the_summary_compares_with_the_best_peer_of_each_network():
    results = [
        found(BASE, 2.0), found("torch eager", 8.0), found("torch compile", 4.0), found("jax jit", 6.0),
        found(BASE, 10.0, "gpt"), found("torch eager", 20.0, "gpt"), found("jax jit", 5.0, "gpt"),
        found("mindspore graph", 0.0, "gpt", error="a step took more than 20 s"),
    ]  # fmt: skip
    line = line_of(results, "train f32: graph against the best of torch, jax, mindspore", "median times")
    assert line.each == {"mlp": 2.0, "gpt": 0.5}
    assert line.against == {"mlp": "torch compile", "gpt": "jax jit"}
    assert line.geomean == pytest.approx(1.0)
    assert line.worst == "gpt"
    assert line.left_out == {"gpt train f32, mindspore graph": "a step took more than 20 s"}
    shown = text(summary(results))
    assert "left out: gpt train f32, mindspore graph: a step took more than 20 s" in shown
    assert not any(line.title.startswith("infer") for line in summary(results))


def test_the_summary_of_least_times_memory_and_first_steps():
    results = [
        found(BASE, 2.0, first_s=0.5, memory=80), found("torch eager", 8.0, memory=160),
        found("torch compile", 4.0, memory=100), found("jax jit", 6.0, first_s=2.0),
    ]  # fmt: skip
    results[0].least_ms = 1.0
    title = "train f32: graph against the best of torch, jax, mindspore"
    assert line_of(results, title, "least times").each == {"mlp": 4.0}
    memory = "train f32: graph against torch, its smaller mode"
    assert line_of(results, memory, "most memory of the process").each == {"mlp": 1.25}
    assert line_of(results, memory, "its growth since the import").each == {"mlp": 1.5}
    assert line_of(results, "train f32: graph against jax", "seconds to the first result").each == {"mlp": 4.0}


def test_a_peer_that_was_too_slow_gives_a_lower_bound():
    slow = found("mindspore pynative", 0.0, error="a step took more than 20 s")
    slow.slower_than_ms = 20e3
    results = [found("mycelia pynative", 10.0), slow]
    line = line_of(results, "train f32: pynative against MindSpore PyNative", "median times")
    assert (line.each, line.above, line.geomean) == ({"mlp": 2000.0}, ["mlp"], None)
    assert ">2000.00" in text([line])


def test_shares_of_the_peak_are_those_of_two_networks():
    results = [found(BASE, 1.0, network) for network in ("mlp", "r18", "gpt")]
    summarize(results[1:2])
    for r in results:
        r.gflops = 30.0
    machine = Machine({"f32": {"oneDNN": 40.0}}, {})
    machine.include({"f32": {"oneDNN": 20.0, "jax": 60.0}})
    machine.compare(results)
    line = line_of(results, "train f32: graph", "share of the peak")
    assert line.each == {"r18": 0.5, "gpt": 0.5}
    assert line.geomean is None


def test_onednn_multiplies_matrices():
    products = dict(peak.onednn_products("f32", 64))
    if not products:
        assert not (Path(sys.prefix) / peak.ONEDNN).exists()
        return
    a, b = np.random.default_rng(0).standard_normal((2, 64, 64), np.float32)
    np.testing.assert_allclose(products["oneDNN"](), a @ b, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(dict(peak.onednn_products("bf16", 64))["oneDNN"](), a @ b, rtol=0.1, atol=0.5)


def test_a_record_comes_back(tmp_path):
    options = Options(small=True)
    results = [found(BASE, 2.0), found("jax jit", 0.0, error="it broke")]
    machine = Machine({"f32": {"jax": 3.0}}, {})
    write_json(tmp_path / "out.json", document(machine, options, 0.1, results))
    earlier = read(tmp_path / "out.json", options)
    assert earlier.results == results
    assert earlier.rates == machine.rates
    assert earlier.of("mlp", "train", "f32") == results
    assert earlier.of("mlp", "infer", "f32") == []
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["summary"] == [asdict(line) for line in summary(results)]


def test_a_record_that_does_not_fit_is_refused(tmp_path, capsys):
    file = tmp_path / "out.json"
    write_json(file, document(Machine({}, {}), Options(threads=1), 0.1, []))
    with pytest.raises(RecordError, match=r"out\.json was measured with threads 1, this run has 2"):
        read(file, Options())
    file.write_text("[]")
    with pytest.raises(RecordError, match=r"out\.json is not a record of this program"):
        read(file, Options())
    with pytest.raises(SystemExit):
        run.arguments(["--resume", str(tmp_path / "nowhere.json")])
    assert "nowhere.json: No such file or directory" in capsys.readouterr().err


def test_a_run_goes_on_where_it_was_stopped(tmp_path, monkeypatch, capsys):
    file, measured = tmp_path / "out.json", []

    def look(*_):
        return Machine({"f32": {"fake": 1.0}}, {})

    def one(network, job, precision, asked, options, say):
        if len(measured) == 3:
            raise KeyboardInterrupt
        measured.append((network, job))
        return [found(c.label, 1.0, network, job) for c in asked]

    monkeypatch.setattr(run, "look_around", look)
    monkeypatch.setattr(run, "measure", one)
    given = ["--small", "--networks", "mlp,lenet", "--peers", "jax"]
    with pytest.raises(KeyboardInterrupt):
        run.main([*given, "--json", str(file)])
    assert measured == [("mlp", "train"), ("mlp", "infer"), ("lenet", "train")]
    measured.clear()
    assert run.main([*given, "--resume", str(file)]) == 0
    assert measured == [("lenet", "infer")]
    said = capsys.readouterr()
    assert "lenet train f32: measured earlier" in said.err
    assert "infer f32: graph against the best of torch, jax, mindspore, onnxruntime" in said.out
    kept = json.loads(file.read_text())["results"]
    assert [(r["network"], r["job"]) for r in kept[::3]] == [
        ("mlp", "train"), ("mlp", "infer"), ("lenet", "train"), ("lenet", "infer"),
    ]  # fmt: skip


def test_other_contenders_are_measured_anew(tmp_path, monkeypatch):
    file, measured = tmp_path / "out.json", []

    def one(network, job, precision, asked, options, say):
        measured.append([c.label for c in asked])
        return [found(c.label, 1.0, network, job) for c in asked]

    monkeypatch.setattr(run, "look_around", lambda *_: Machine({"f32": {"fake": 1.0}}, {}))
    monkeypatch.setattr(run, "measure", one)
    given = ["--small", "--networks", "mlp", "--modes", "infer", "--ours", "graph"]
    run.main([*given, "--peers", "jax", "--json", str(file)])
    run.main([*given, "--peers", "jax,torch:eager", "--resume", str(file)])
    assert measured == [[BASE, "jax jit"], [BASE, "jax jit", "torch eager"]]
    assert len(json.loads(file.read_text())["results"]) == 3
