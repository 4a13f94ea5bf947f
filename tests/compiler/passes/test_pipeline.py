"""The list of passes as a whole: what it makes of graphs, how it is checked, and what it writes."""

from __future__ import annotations

import gc
import re
import time
from xml.etree import ElementTree

import jax
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from mycelia.compiler import pipeline
from mycelia.compiler.pipeline import CLEARING, DEVICE_PASSES, MAX_ROUNDS, PASSES, optimize
from mycelia.compiler.report import CompileReport
from mycelia.core import dtypes as dt
from mycelia.core.errors import GraphError
from mycelia.ir.evaluate import evaluate
from mycelia.ir.graph import Graph, Value
from mycelia.ir.parser import parse_graph
from mycelia.ir.primitive import PRIMITIVES
from mycelia.ir.printer import graph_text
from mycelia.ir.rewriter import count_nodes
from mycelia.ir.types import TensorType
from mycelia.ir.verifier import verify

#: A constant that is folded decides a branch, which is inlined, which makes a sum equal to another.
CASCADE = """graph main(%x: float32[2], %y: float32[2]) {
  %one = constant(value=array(int32[], [1])) : int32[]
  %two = constant(value=array(int32[], [2])) : int32[]
  %p = less(%one, %two) : bool[]
  %a = cond(%p, %x, %y) {
    true_graph = graph t(%x: float32[2], %y: float32[2]) { %a = neg(%y) : float32[2]
      %b = sub(%x, %a) : float32[2] return %b }
    false_graph = graph f(%x: float32[2], %y: float32[2]) { return %x }
  } : float32[2]
  %b = add(%x, %y) : float32[2]
  %c = mul(%a, %b) : float32[2]
  return %c
}"""
SIMPLE = "graph main(%x: int8[]) { %a = neg(%x) : int8[] %b = neg(%a) : int8[] return %b }"


def test_passes_make_room_for_each_other(becomes):
    def run(graph):
        return optimize(graph), 1

    becomes(
        run,
        CASCADE,
        """graph main(%x: float32[2], %y: float32[2]) {
          %b = add(%x, %y) : float32[2] %c = mul(%b, %b) : float32[2] return %c }""",
        1,
    )


def test_a_graph_with_nothing_to_do_is_given_back():
    graph = parse_graph("graph g(%x: int8[], %unused: int8[]) { %a = neg(%x) : int8[] return %a }")
    report = CompileReport()
    assert optimize(graph, report) is graph
    assert [p.round for p in report.passes] == [1] * len(PASSES) + [2] * len(DEVICE_PASSES)


@given(st.integers(0, 2**32))
@settings(max_examples=150)
def test_random_graphs_compute_the_same(preserves, seed):
    def run(graph):
        new = optimize(graph)
        return new, int(new is not graph)

    preserves(run, seed)


@pytest.mark.parametrize("seed", [3, 11, 12])
def test_random_graphs_compute_the_same_on_the_engine(graphs, seed):
    """The same with the lowerings, compiled."""
    graph = graphs.random_graph(seed, size=15)
    new = optimize(graph)
    args = graphs.inputs_of(graph, seed)
    before, after = [jax.jit(lambda *xs, g=g: evaluate(g, xs))(*args) for g in (graph, new)]
    for b, a in zip(before, after, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(*[np.asarray(x).astype(np.float64) for x in (a, b)], rtol=1e-5, atol=1e-5)


def test_report_has_a_line_for_each_pass_and_the_cost():
    report = CompileReport()
    graph = parse_graph(CASCADE)
    new = optimize(graph, report)
    assert [p.name for p in report.passes[: len(PASSES)]] == [name for name, _ in PASSES]
    assert report.passes[0].nodes_before == count_nodes(graph)
    assert report.passes[-1].nodes_after == count_nodes(new) == 2
    assert {p.name for p in report.passes if p.changes} >= {"control_flow", "algebraic", "constant_folding"}
    assert report.cost.flops == 4
    for before, after in zip(report.passes, report.passes[1:], strict=False):
        assert before.nodes_after == after.nodes_before
        assert (after.changes > 0) or after.nodes_after == after.nodes_before


def test_rounds_end():
    """Rules that never come to an end are stopped."""

    def forever(graph):
        return parse_graph(graph_text(graph)), 1

    report = CompileReport()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "PASSES", (("forever", forever),))
        optimize(parse_graph(SIMPLE), report)
    assert [p.name for p in report.passes] == ["forever"] * MAX_ROUNDS + [name for name, _ in DEVICE_PASSES]


def turned(graph):
    """A pass that makes a graph in which there is something to clear."""
    new = parse_graph(graph_text(graph))
    for _ in range(2):
        new.outputs = [new.add_node(PRIMITIVES["neg"], (new.outputs[0],), {}).outputs[0]]
    return new, 1


def test_passes_for_the_device_run_once_and_are_cleared_after(monkeypatch, tmp_path):
    monkeypatch.setattr(pipeline, "DEVICE_PASSES", (("turned", turned),))
    monkeypatch.setenv("MYCELIA_DUMP", str(tmp_path))
    report = CompileReport()
    graph = parse_graph("graph main(%x: int8[]) { %a = abs(%x) : int8[] return %a }")
    assert graph_text(optimize(graph, report)) == graph_text(graph)
    assert [p.name for p in report.passes[len(PASSES) :]] == ["turned", *[name for name, _ in CLEARING]]
    assert [p.round for p in report.passes[len(PASSES) :]] == [2] * (1 + len(CLEARING))
    dumped = sorted(f.name[5:-4] for f in tmp_path.glob("*.txt"))
    assert dumped == ["main-00-staged", "main-09-turned", "main-10-algebraic", "main-12-dead_code"]
    assert optimize(graph, for_device=False) is graph


def broken(graph):
    """A pass that makes a graph with a free variable."""
    new = parse_graph(graph_text(graph))
    new.outputs = [Value(new.outputs[0].type, Graph("stranger"))]
    return new, 1


def test_verifier_runs_after_every_pass(monkeypatch):
    monkeypatch.setattr(pipeline, "PASSES", (("broken", broken),))
    with pytest.raises(GraphError, match="a value of graph 'stranger'"):
        optimize(parse_graph(SIMPLE))
    bad = parse_graph(SIMPLE)
    bad.nodes.reverse()
    with pytest.raises(GraphError, match="used before"):
        optimize(bad)
    monkeypatch.setattr(pipeline, "MAX_ROUNDS", 1)
    for off in ("", "0"):
        monkeypatch.setenv("MYCELIA_VERIFY", off)
        assert optimize(parse_graph(SIMPLE)).outputs[0].graph.name == "stranger"


def test_dump_writes_text_and_picture_of_every_stage_that_changed(monkeypatch, tmp_path):
    folder = tmp_path / "new" / "folder"
    monkeypatch.setenv("MYCELIA_DUMP", str(folder))
    graph = parse_graph(SIMPLE.replace("main", '"a/b <c>"'))
    new = optimize(graph)
    files = sorted(f.name for f in folder.iterdir())
    assert [re.sub(r"^\d{4}", "N", f) for f in files] == [
        "N-a_b_c_-00-staged.svg", "N-a_b_c_-00-staged.txt", "N-a_b_c_-05-algebraic.svg", "N-a_b_c_-05-algebraic.txt",
        "N-a_b_c_-08-dead_code.svg", "N-a_b_c_-08-dead_code.txt",
    ]  # fmt: skip
    assert (folder / files[1]).read_text() == graph_text(graph) + "\n"
    assert graph_text(parse_graph((folder / files[-1]).read_text())) == graph_text(new)
    for file in files[::2]:
        ElementTree.fromstring((folder / file).read_text())
    optimize(graph)
    later = sorted(f.name for f in folder.iterdir())
    assert len(later) == 2 * len(files)
    assert later[: len(files)] == files, "the next graph has the next number"


def test_dump_has_the_malformed_graph_that_the_verifier_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("MYCELIA_DUMP", str(tmp_path))
    monkeypatch.setattr(pipeline, "PASSES", (("broken", broken),))
    with pytest.raises(GraphError):
        optimize(parse_graph(SIMPLE))
    (text,) = tmp_path.glob("*-01-broken.txt")
    assert "return %unknown" in text.read_text()


def test_dump_replaces_whole_files(monkeypatch, tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    monkeypatch.setattr(pipeline.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        pipeline._write(str(target), "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_dump_into_a_file_is_refused(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MYCELIA_DUMP", str(tmp_path / "file"))
    with pytest.raises(OSError, match="file"):
        optimize(parse_graph(SIMPLE))


def test_garbage_collection_is_left_as_it_was(monkeypatch):
    monkeypatch.setattr(pipeline, "PASSES", (("broken", broken),))
    assert gc.isenabled()
    with pytest.raises(GraphError):
        optimize(parse_graph(SIMPLE))
    assert gc.isenabled()
    gc.disable()
    try:
        with pytest.raises(GraphError):
            optimize(parse_graph(SIMPLE))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_time_grows_no_faster_than_the_graph():
    """Ten times the nodes take less than forty times the time."""

    def seconds(size):
        graph = Graph("g")
        values = [graph.add_param(TensorType(dt.float32, (2, 3))) for _ in range(3)]
        for i in range(size):
            name = ("add", "mul", "sub", "neg")[i % 4]
            operands = (values[-1], values[-1 - i % 3])[: 1 if name == "neg" else 2]
            values.append(graph.add_node(PRIMITIVES[name], operands, {}).outputs[0])
        graph.outputs = values[-3:]
        start = time.process_time()
        verify(optimize(graph))
        return time.process_time() - start

    seconds(200)
    assert seconds(10_000) < 40 * max(seconds(1000), 0.005)
