"""Equal nodes become one; what may not be merged is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from mycelia.compiler.passes.common_subexpressions import run
from mycelia.core import dtypes as dt
from mycelia.ir.graph import Graph
from mycelia.ir.parser import parse_graph
from mycelia.ir.primitive import PRIMITIVES, Primitive
from mycelia.ir.types import TensorType


def test_equal_expressions_become_one(becomes):
    becomes(
        run,
        """graph g(%x: float32[2], %y: float32[2]) {
          %a = add(%x, %y) : float32[2]  # a.py:1, in f
          %b = neg(%a) : float32[2]
          %c = add(%x, %y) : float32[2]  # a.py:2, in f
          %d = neg(%c) : float32[2]
          %e = mul(%b, %d) : float32[2]
          return %e
        }""",
        """graph g(%x: float32[2], %y: float32[2]) {
          %a = add(%x, %y) : float32[2]  # a.py:1, in f
          %b = neg(%a) : float32[2]
          %e = mul(%b, %b) : float32[2]
          return %e
        }""",
        2,
    )


def test_equal_constants_become_one(becomes):
    becomes(
        run,
        """graph g() {
          %a = constant(value=array(float32[2], [1.0, nan])) : float32[2]
          %b = constant(value=array(float32[2], [1.0, nan])) : float32[2]
          %c = add(%a, %b) : float32[2]
          return %c
        }""",
        "graph g() { %a = constant(value=array(float32[2], [1.0, nan])) : float32[2]"
        " %c = add(%a, %a) : float32[2] return %c }",
        1,
    )


@pytest.mark.parametrize(
    "text",
    [
        "graph g(%x: float32[], %y: float32[]) { %a = sub(%x, %y) : float32[]"
        " %b = sub(%y, %x) : float32[] return %a, %b }",
        "graph g(%x: int8[2]) { %a = cast(%x, dtype=int16) : int16[2]"
        " %b = cast(%x, dtype=int32) : int32[2] return %a, %b }",
        """graph g() { %a = constant(value=array(float32[], [0.0])) : float32[]
                       %b = constant(value=array(float32[], [-0.0])) : float32[] return %a, %b }""",
        """graph g() { %a = constant(value=array(int8[], [1])) : int8[]
                       %b = constant(value=array(int16[], [1])) : int16[] return %a, %b }""",
        """graph g(%x: int8[]) { %a = barrier(%x) : int8[] %b = barrier(%x) : int8[]
                                 %c = neg(%a) : int8[] %d = neg(%b) : int8[] return %c, %d }""",
        """graph g(%x: int8[]) { %a = neg(%x) : int8[]
             %b = call(%x) { graph = graph f(%x: int8[]) { %a = neg(%x) : int8[]
               return %a } } : int8[] return %a, %b }""",
    ],
)
def test_what_differs_stays(stays, text):
    stays(run, text)


def test_effects_stay_in_number_and_order(stays, noted):
    stays(run, "graph g(%x: int8[]) { %a = noted(%x) : int8[] %b = noted(%x) : int8[] return %a, %b }")
    held = "graph = graph f(%x: int8[]) { %a = noted(%x) : int8[] return %a }"
    stays(
        run,
        f"graph g(%x: int8[]) {{ %a = call(%x) {{ {held} }} : int8[] %b = call(%x) {{ {held} }} : int8[]"
        f" return %a, %b }}",
    )


def test_sub_graphs_are_compared_by_structure(becomes):
    def text(second, result):
        return f"""graph g(%p: bool[], %x: int8[]) {{
          %a = cond(%p, %x) {{
            true_graph = graph t(%x: int8[]) {{ %z = neg(%x) : int8[] return %z }}
            false_graph = graph f(%x: int8[]) {{ return %x }}
          }} : int8[]
          {second}
          return %a, {result}
        }}"""

    again = """%b = cond(%p, %x) {
        true_graph = graph other(%y: int8[]) { %w = neg(%y) : int8[]  # a.py:1, in f
          return %w }
        false_graph = graph name(%y: int8[]) { return %y }
      } : int8[]"""
    becomes(run, text(again, "%b"), text("", "%a"), 1)


def test_graphs_that_differ_within_stay(stays):
    held = "graph = graph f(%x: int8[]) {{ %a = {}(%x, %x) : int8[] return %a }}"
    stays(
        run,
        f"graph g(%x: int8[]) {{ %a = call(%x) {{ {held.format('add')} }} : int8[]"
        f" %b = call(%x) {{ {held.format('mul')} }} : int8[] return %a, %b }}",
    )


def test_merging_goes_on_inside_sub_graphs(becomes):
    def text(body):
        return (
            f"graph g(%x: int8[]) {{ %a = call(%x) {{ graph = graph f(%x: int8[]) {{ {body} }} }} : int8[] return %a }}"
        )

    becomes(
        run,
        text("%a = neg(%x) : int8[] %b = neg(%x) : int8[] %c = add(%a, %b) : int8[] return %c"),
        text("%a = neg(%x) : int8[] %c = add(%a, %a) : int8[] return %c"),
        1,
    )


def test_attributes_equal_in_python_but_not_in_meaning_stay_apart():
    scaled = Primitive("scaled", infer=lambda x, *, by: x, lower=lambda x, *, by: x * by)
    try:
        for first, second in ((0.0, -0.0), (1, True), (1, 1.0), ((0.0,), (-0.0,))):
            graph = Graph("g")
            x = graph.add_param(TensorType(dt.float32, ()))
            graph.outputs = [graph.add_node(scaled, (x,), {"by": by}).outputs[0] for by in (first, second)]
            assert run(graph) == (graph, 0)
        graph.nodes[1].attrs = {"by": (0.0,)}
        assert run(graph)[1] == 1
    finally:
        del PRIMITIVES["scaled"]


@given(st.integers(0, 2**32))
@settings(max_examples=200)
def test_random_graphs_compute_the_same(preserves, seed):
    preserves(run, seed)


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_no_two_nodes_are_equal_afterwards(graphs, seed):
    new, _ = run(graphs.random_graph(seed))
    assert run(new) == (new, 0)


def test_large_nested_graphs_are_hashed_once():
    """A chain of graphs that each hold the one before twice: 2**40 nodes if they were spelled out."""
    inner = parse_graph("graph f(%x: int8[]) { %a = neg(%x) : int8[] return %a }")
    for _ in range(40):
        outer = Graph("f")
        x = outer.add_param(TensorType(dt.int8, ()))
        first = outer.add_node(PRIMITIVES["call"], (x,), {"graph": inner}).outputs[0]
        outer.outputs = [outer.add_node(PRIMITIVES["call"], (first,), {"graph": inner}).outputs[0]]
        inner = outer
    assert run(inner) == (inner, 0)
