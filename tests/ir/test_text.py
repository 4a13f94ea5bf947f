"""Graphs as text: what is written is read back, and what is wrong is refused by line and column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import mycelia  # noqa: F401, declares the operators
from mycelia.core import dtypes as dt
from mycelia.core.errors import FileFormatError, SourceLocation
from mycelia.ir.builder import constant_p
from mycelia.ir.graph import ArrayConstant, Graph
from mycelia.ir.parser import MAX_DEPTH, parse_graph
from mycelia.ir.primitive import PRIMITIVES, Primitive
from mycelia.ir.printer import SMALL, graph_text
from mycelia.ir.types import TensorType
from mycelia.ir.verifier import verify

EXAMPLE = """\
graph main(%0: float32[2,3], %1: bool[]) {
  %2 = constant(value=array(float32[3], [1.0, 2.5, -0.0])) : float32[3]
  %3 = add(%0, %2) : float32[2,3]  # /home/me/a b.py:7, in loss.<locals>.inner
  %4, %5 = cond(%1, %3) {
    true_graph = graph true(%0: float32[2,3]) {
      return %0, %0
    }
    false_graph = graph "<lambda>"(%0: float32[2,3]) {
      %1 = neg(%0) : float32[2,3]  # train.py:9, in loss
      return %1, %0
    }
  } : float32[2,3], float32[2,3]  # train.py:8, in loss
  return %4
}"""


@pytest.fixture
def holder():
    """An operator that takes any attributes."""
    yield Primitive("holder", infer=lambda *types, **attrs: TensorType(dt.float32, ()), lower=lambda *xs, **attrs: xs)
    del PRIMITIVES["holder"]


@pytest.fixture
def silent():
    """An operator without results."""
    yield Primitive("silent", infer=lambda *types: (), lower=lambda *xs: (), multi=True)
    del PRIMITIVES["silent"]


def with_attribute(holder, value):
    graph = Graph("g")
    graph.outputs = [graph.add_node(holder, (), {"a": value}).outputs[0]]
    return graph


def test_example_is_read_and_written_alike():
    graph = parse_graph(EXAMPLE)
    verify(graph)
    assert graph_text(graph) == EXAMPLE
    assert graph.nodes[1].location == SourceLocation("/home/me/a b.py", 7, "loss.<locals>.inner")
    assert graph.nodes[2].attrs["false_graph"].name == "<lambda>"


def test_locations_may_be_left_out():
    text = graph_text(parse_graph(EXAMPLE), locations=False)
    assert "#" not in text
    assert parse_graph(text).nodes[1].location is None


def test_a_location_that_is_no_line_is_left_out():
    graph = Graph("g")
    x = graph.add_param(TensorType(dt.float32, ()))
    graph.outputs = [graph.add_node(PRIMITIVES["neg"], (x,), {}, SourceLocation("a\nb.py", 1, "f")).outputs[0]]
    assert "#" not in graph_text(graph)


@given(st.integers(0, 2**32))
def test_random_graphs_round_trip(graphs, seed):
    graph = graphs.random_graph(seed, size=12)
    text = graph_text(graph)
    again = parse_graph(text)
    verify(again)
    assert graph_text(again) == text
    graphs.check_same(graph, again, seed)


ATTRIBUTES = [
    0, -7, 10**30, True, False, None, 0.1, -0.0, 1e300, 5e-324, float("inf"), float("-inf"), "",
     'say "hi"\n\\ % # é \x00',
    "\ud800", complex(1.5, -0.0), complex(float("nan"), float("inf")), (), (1,), (1, (2.5, ("x", None)),
    ()), dt.float32, dt.bool_,
    dt.bfloat16, TensorType(dt.float16, (2, 0)), TensorType(dt.int64, ()), slice(None), slice(1, None, -2), ...,
    (slice(0, 3), None, Ellipsis),
]  # fmt: skip


@pytest.mark.parametrize("value", ATTRIBUTES, ids=repr)
def test_attributes_round_trip(holder, value):
    text = graph_text(with_attribute(holder, value))
    again = parse_graph(text).nodes[0].attrs["a"]
    assert type(again) is type(value)
    assert repr(again) == repr(value)  # tells -0.0 from 0.0, and knows NaN
    assert graph_text(with_attribute(holder, again)) == text


@given(st.floats() | st.integers() | st.text() | st.complex_numbers())
def test_any_number_or_string_round_trips(value):
    name = "holder"
    primitive = PRIMITIVES.get(name) or Primitive(
        name, infer=lambda **attrs: TensorType(dt.float32, ()), lower=lambda **a: 0
    )
    try:
        again = parse_graph(graph_text(with_attribute(primitive, value))).nodes[0].attrs["a"]
        assert repr(again) == repr(value)
    finally:
        del PRIMITIVES[name]


def test_primitive_and_graphs_in_tuples_round_trip(holder):
    inner = parse_graph("graph inner(%0: int32[]) { return %0 }")
    graph = with_attribute(holder, (inner, PRIMITIVES["neg"], inner))
    text = graph_text(graph)
    again = parse_graph(text).nodes[0].attrs["a"]
    assert graph_text(parse_graph(text)) == text
    assert again[0] is again[2]
    assert again[0].name == "inner"
    assert again[1] is PRIMITIVES["neg"]


CONSTANTS = [
    np.array(True), np.array([[1, -128]], np.int8), np.array([2**64 - 1, 0], np.uint64), np.array(-(2**63), np.int64),
    np.array([0.1, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38], np.float32), np.array([0.1, 5e-324], np.float64),
    np.array([0.1, 65504, 6e-8, -0.0], np.float16), np.array([0.1, 3e38, -0.0, 9e-41]).astype(dt.bfloat16.np),
    np.array([448, 0.1, np.nan]).astype(dt.float8_e4m3fn.np), np.array([np.inf, 0.1]).astype(dt.float8_e5m2.np),
    np.array([1 + 2j, complex(-0.0, np.nan)], np.complex64), np.array(0.1 - 1e-300j), np.zeros((0, 3), np.float32),
    np.zeros((2, 0), np.complex128), np.arange(float(SMALL)), np.arange(SMALL + 1.0), np.arange(100) % 3 == 0,
    np.array([1.5, 2.5], ">f4"), np.array([1, 2], ">i8"), np.arange(40, dtype=">i2"),
]  # fmt: skip


@pytest.mark.parametrize("array", CONSTANTS, ids=lambda a: f"{a.dtype}-{a.shape}")
def test_constants_keep_every_bit(array):
    graph = Graph("g")
    graph.outputs = [graph.add_node(constant_p, (), {"value": ArrayConstant(array)}).outputs[0]]
    text = graph_text(graph)
    again = parse_graph(text).nodes[0].attrs["value"].array
    native = array.astype(array.dtype.newbyteorder("="))
    assert (again.dtype, again.shape) == (native.dtype, native.shape)
    assert again.tobytes() == native.tobytes()
    assert ("base64" in text) is (array.size > SMALL)


def test_nan_with_a_payload_keeps_it():
    array = np.array([0x7FC00001, 0xFFC00000], np.uint32).view(np.float32)
    graph = Graph("g")
    graph.outputs = [graph.add_node(constant_p, (), {"value": ArrayConstant(array)}).outputs[0]]
    text = graph_text(graph)
    assert "base64" in text
    assert parse_graph(text).nodes[0].attrs["value"].array.tobytes() == array.tobytes()


def test_shared_graphs_stay_shared():
    text = """\
graph main(%0: int32[]) {
  %1 = call(%0) {
    graph = graph f &1(%0: int32[]) {
      %1 = call(%0) {
        graph = graph g &2(%0: int32[]) {
          return %0
        }
      } : int32[]
      return %1
    }
  } : int32[]
  %2 = call(%1) {
    graph = &2
  } : int32[]
  %3 = call(%2) {
    graph = &1
  } : int32[]
  return %3
}"""
    graph = parse_graph(text)
    assert graph_text(graph) == text
    assert graph.nodes[0].attrs["graph"] is graph.nodes[2].attrs["graph"]


def test_node_without_results(silent):
    text = "graph g(%0: int32[]) {\n  silent(%0) : ()\n  return\n}"
    assert graph_text(parse_graph(text)) == text


@pytest.mark.parametrize("name", ["return", "nan", "inf", "a b", "", "1st", 'quo"te', "größe", "graph"])
def test_any_name_of_a_graph(name):
    graph = Graph(name)
    assert parse_graph(graph_text(graph)).name == name


def test_elided_and_opaque_are_for_reading_only(holder):
    graph = Graph("g")
    graph.outputs = [graph.add_node(constant_p, (), {"value": ArrayConstant(np.zeros(99))}).outputs[0]]
    text = graph_text(graph, elide=100)
    assert "elided" in text
    with pytest.raises(FileFormatError, match="left out"):
        parse_graph(text)
    text = graph_text(with_attribute(holder, frozenset({1})))
    assert 'opaque("frozenset")' in text
    with pytest.raises(FileFormatError, match="can be written as text"):
        parse_graph(text)


BAD = [
    ("", "line 1, column 1: expected 'graph', got the end of the text"),
    ("graph g(", "expected a parameter such as %0"),
    ("graph g() {\n  return %0\n}", "line 2, column 10: expected a value made before, got '%0'"),
    ("graph g() {\n  $\n}", r"line 2, column 3: expected a token, got '\$'"),
    ("graph g() { return } graph", "expected the end of the text, got 'graph'"),
    ("graph g(%0: float33[2]) { return }", "line 1, column 13: expected a dtype, got 'float33'"),
    ("graph g(%0: float32[-1]) { return }", "expected a length from 0"),
    ("graph g(%0: float32[1.5]) { return }", "expected a length, got '1.5'"),
    ("graph g(%0: int32[], %0: int32[]) { return }", "parameter name that is not taken"),
    ("graph g(%0: int32[]) { %0 = neg(%0) : int32[] return }", "result name that is not taken"),
    ("graph g(%0: int32[]) { %1 = nothing(%0) : int32[] return }", "name of a declared operator, got 'nothing'"),
    ("graph g(%0: int32[]) { %1 = neg(%0) : int64[] return }", r"types that neg infers, int32\[\]|Int32"),
    ("graph g(%0: int32[]) { %1, %2 = neg(%0) : int32[] return }", "expected 1 results"),
    ("graph g(%0: bool[]) { %1 = neg(%0) : bool[] return }", "operands and attributes that neg takes, got an error"),
    ("graph g(%0: int32[]) { %1 = cast(%0, dtype=int8, dtype=int8) : int8[] return }", "not given yet"),
    ("graph g(%0: int32[]) { %1 = cast(%0, dtype=os) : int8[] return }", "expected an attribute, got 'os'"),
    ("graph g(%0: int32[]) { %1 = call(%0) { graph = &1 } : int32[] return }", "label of a graph that ended before"),
    ("graph g &1(%0: int32[]) { %1 = call(%0) { graph = &1 } : int32[] return }", "label of a graph that ended before"),
    ("graph g() { %0 = constant(value=array(int8[2], [1])) : int8[2] return }", r"expected 2 elements of int8\[2\]"),
    ("graph g() { %0 = constant(value=array(int8[1], [300])) : int8[1] return }", "elements that fit int8"),
    ("graph g() { %0 = constant(value=array(int8[1], [1.5])) : int8[1] return }", "expected an integer"),
    ("graph g() { %0 = constant(value=array(bool[1], [1])) : bool[1] return }", "True or False"),
    ('graph g() { %0 = constant(value=array(int8[2], base64 "AA==")) : int8[2] return }', "the 2 bytes"),
    ('graph g() { %0 = constant(value=array(int8[2], base64 "A")) : int8[2] return }', "expected base64"),
    ('graph g() { %0 = constant(value=array(string[1], ["a"])) : string[1] return }', "a dtype of numbers"),
    (r'graph "\q"() { return }', "escapes of JSON"),
    ('graph "a\nb"() { return }', "expected a token"),
    (f"graph g() {{ %0 = constant(value={'9' * 5000}) : int8[] return }}", "at most 4000 digits"),
    (f"graph g() {{ %0 = constant(value={'(' * 5000}) : int8[] return }}", f"at most {MAX_DEPTH} nested"),
    ("graph g() { %0 = constant(value=array(float32[99999999999,999999999], [1.0])) : int8[] return }", "elements of"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD, ids=range(len(BAD)))
def test_bad_text_is_refused_with_its_place(text, message):
    with pytest.raises(FileFormatError, match=message) as caught:
        parse_graph(text)
    assert "line " in str(caught.value)


@given(st.data())
def test_damaged_text_is_refused_or_read_but_nothing_else(data):
    at = data.draw(st.integers(0, len(EXAMPLE) - 1))
    text = EXAMPLE[:at] + data.draw(st.sampled_from(["", "%", "(", "}", '"', "7", "x", "\n", "#"])) + EXAMPLE[at + 1 :]
    try:
        graph = parse_graph(text)
    except FileFormatError:
        return
    verify(graph)


def test_code_in_text_is_not_run(tmp_path):
    target = tmp_path / "made"
    for attack in (f"open('{target}', 'w')", "__import__('os')", "[x for x in ().__class__]"):
        with pytest.raises(FileFormatError):
            parse_graph(f"graph g() {{ %0 = constant(value={attack}) : int8[] return }}")
    assert not target.exists()
