"""Pictures are well-formed SVG in which nothing overlaps and everything can be read."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings, strategies as st

import mycelia  # noqa: F401, declares the operators
from mycelia.core import dtypes as dt
from mycelia.core.errors import SourceLocation
from mycelia.ir.draw import MAX_NODES, draw
from mycelia.ir.graph import Graph
from mycelia.ir.parser import parse_graph
from mycelia.ir.primitive import PRIMITIVES
from mycelia.ir.types import TensorType

SVG = "{http://www.w3.org/2000/svg}"
EXAMPLE = """graph main(%0: float32[2,3], %1: bool[]) {
  %2 = constant(value=array(float32[3], [1.0, 2.5, -0.0])) : float32[3]
  %3 = add(%0, %2) : float32[2,3]
  %4 = cond(%1, %3) {
    true_graph = graph true(%0: float32[2,3]) { return %0 }
    false_graph = graph false(%0: float32[2,3]) { %1 = neg(%0) : float32[2,3] return %1 }
  } : float32[2,3]
  return %4
}"""


def rectangles(root):
    """Left, top, right and bottom of every box but the background."""
    found = [[float(r.get(k)) for k in ("x", "y", "width", "height")] for r in root.iter(f"{SVG}rect") if r.get("x")]
    return [(x, y, x + w, y + h) for x, y, w, h in found]


def texts(root):
    return [t.text for t in root.iter(f"{SVG}text")]


def test_everything_is_named():
    root = ElementTree.fromstring(draw(parse_graph(EXAMPLE)))
    shown = texts(root)
    for word in (
        "graph main",
        "input 0",
        "bool[]",
        "constant",
        "add",
        "cond",
        "true_graph",
        "false_graph",
        "neg",
        "output 0",
    ):
        assert word in shown
    assert len(list(root.iter(f"{SVG}path"))) == 8  # an edge for each operand and output, inside and outside


def test_tips_have_attributes_and_the_line():
    graph = Graph("g")
    x = graph.add_param(TensorType(dt.float32, (2, 3)))
    graph.outputs = [
        graph.add_node(PRIMITIVES["transpose"], (x,), {"perm": (1, 0)}, SourceLocation("a<b>.py", 7, "f")).outputs[0]
    ]
    root = ElementTree.fromstring(draw(graph))
    tips = [t.text for t in root.iter(f"{SVG}title")]
    assert any("perm = (1, 0)" in t and "a<b>.py:7, in f" in t for t in tips)


@given(st.integers(0, 2**32))
@settings(max_examples=40)
def test_boxes_overlap_only_as_the_inner_lies_in_the_outer(graphs, seed):
    root = ElementTree.fromstring(draw(graphs.random_graph(seed, size=12)))
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = rectangles(root)
    assert all(0 <= a < c <= width and 0 <= b < d <= height for a, b, c, d in boxes)
    for i, (a, b, c, d) in enumerate(boxes):
        for e, f, g, h in boxes[i + 1 :]:
            apart = c <= e or g <= a or d <= f or h <= b
            inside = (a <= e and b <= f and g <= c and h <= d) or (e <= a and f <= b and c <= g and d <= h)
            assert apart or inside


def test_large_graphs_are_cut():
    graph = Graph("g")
    value = graph.add_param(TensorType(dt.float32, ()))
    for _ in range(MAX_NODES + 50):
        value = graph.add_node(PRIMITIVES["neg"], (value,), {}).outputs[0]
    graph.outputs = [value]
    shown = texts(ElementTree.fromstring(draw(graph)))
    assert shown.count("neg") == MAX_NODES
    assert "and 50 more nodes" in shown


@pytest.mark.parametrize("name", ["<&>", "a\x00b\x1b", "größe", "\ud800"])
def test_any_name_gives_well_formed_xml(name):
    ElementTree.fromstring(draw(Graph(name)).encode())


def test_a_shared_graph_is_drawn_once():
    graph = parse_graph(
        """graph g(%0: int32[]) {
          %1 = call(%0) { graph = graph f &1(%0: int32[]) { %1 = neg(%0) : int32[] return %1 } } : int32[]
          %2 = call(%1) { graph = &1 } : int32[]
          return %2
        }"""
    )
    shown = texts(ElementTree.fromstring(draw(graph)))
    assert shown.count("neg") == 1
    assert "graph (drawn before)" in shown
