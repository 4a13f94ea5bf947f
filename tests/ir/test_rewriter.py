"""Copying graphs with a callback, and the questions asked of graphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import mycelia  # noqa: F401, declares the operators
from mycelia.core import dtypes as dt
from mycelia.core.errors import GraphError, SourceLocation
from mycelia.ir.graph import Graph
from mycelia.ir.parser import parse_graph
from mycelia.ir.primitive import PRIMITIVES
from mycelia.ir.printer import graph_text
from mycelia.ir.rewriter import (
    Emitter,
    all_graphs,
    attributes_key,
    bind_params,
    copy_node,
    count_nodes,
    graph_has_effects,
    graph_uses,
    known_array,
    rewrite,
    select_signature,
    structure,
    use_counts,
)
from mycelia.ir.types import TensorType
from mycelia.ir.verifier import verify

NESTED = """\
graph main(%0: float32[2], %1: bool[]) {
  %2 = neg(%0) : float32[2]  # a.py:1, in f
  %3 = call(%2) {
    graph = graph inner &1(%0: float32[2]) {
      %1 = neg(%0) : float32[2]  # a.py:2, in g
      return %1
    }
  } : float32[2]
  %4 = call(%3) {
    graph = &1
  } : float32[2]
  %5 = cond(%1, %4) {
    true_graph = graph yes(%0: float32[2]) {
      return %0
    }
    false_graph = graph no(%0: float32[2]) {
      %1 = add(%0, %0) : float32[2]
      return %1
    }
  } : float32[2]
  return %5
}"""


def doubled(node, inputs, attrs, emitter):
    """Replace -x by x + x."""
    return emitter.add(PRIMITIVES["add"], (inputs[0], inputs[0])) if node.op.name == "neg" else None


def test_keeping_everything_gives_the_same_graph():
    graph = parse_graph(NESTED)
    assert rewrite(graph, lambda *_: None) == (graph, 0)
    assert rewrite(graph, lambda node, inputs, attrs, emitter: emitter.keep()) == (graph, 0)


def test_emitting_in_a_graph_and_below_it():
    graph = parse_graph(NESTED)
    new, changes = rewrite(graph, doubled)
    verify(new)
    assert changes == 2  # the shared graph counts once
    assert graph_text(graph) == NESTED, "the old graph is untouched"
    assert graph_text(new) == NESTED.replace("neg(%0)", "add(%0, %0)")
    assert new.nodes[1].attrs["graph"] is new.nodes[2].attrs["graph"]
    assert new.nodes[3].attrs["true_graph"] is graph.nodes[3].attrs["true_graph"], "unchanged graphs are shared"
    assert new.nodes[0].location == SourceLocation("a.py", 1, "f")


def test_not_going_into_sub_graphs():
    graph = parse_graph(NESTED)
    new, changes = rewrite(graph, doubled, recurse=False)
    assert changes == 1
    assert new.nodes[1].attrs["graph"] is graph.nodes[1].attrs["graph"]


def test_only_some_operators_are_asked_about():
    asked = set()

    def visit(node, inputs, attrs, emitter):
        asked.add(node.op.name)
        return doubled(node, inputs, attrs, emitter)

    new, changes = rewrite(parse_graph(NESTED), visit, only={"neg"})
    assert asked == {"neg"}
    assert changes == 2
    verify(new)


def test_inputs_are_rewritten_before_a_node_is_seen():
    graph = parse_graph(
        "graph g(%0: float32[2]) { %1 = neg(%0) : float32[2] %2 = neg(%1) : float32[2]"
        " %3 = neg(%2) : float32[2] return %3 }"
    )

    def undo(node, inputs, attrs, emitter):
        made = inputs[0].node
        return made.inputs if made is not None and made.op is node.op else None

    new, changes = rewrite(graph, undo)
    assert changes == 1  # the third meets the parameter, no longer a negation
    assert new.outputs[0].node.inputs == (new.params[0],)


def test_replacing_by_a_value_of_another_type_or_graph_is_refused():
    graph = parse_graph("graph g(%0: float32[2], %1: int32[]) { %2 = neg(%0) : float32[2] return %2 }")
    with pytest.raises(
        GraphError, match=r"graph 'g', node 0 \(neg\): a rule replaced \(float32\[2\]\) by \(int32\[\]\)"
    ):
        rewrite(graph, lambda node, inputs, attrs, emitter: [emitter.graph.params[1]])
    stranger = Graph("other").add_param(TensorType(dt.float32, (2,)))
    with pytest.raises(GraphError, match="values of another graph"):
        rewrite(graph, lambda *_: [stranger])
    with pytest.raises(GraphError, match="a rule replaced"):
        rewrite(graph, lambda *_: [])


def test_emitter_makes_constants_and_inlines():
    graph = parse_graph(NESTED)

    def visit(node, inputs, attrs, emitter):
        if node.op.name == "call":
            return emitter.inline(attrs["graph"], inputs)
        if node.op.name == "neg":
            return [emitter.constant(np.array([1, 2], np.float32))]
        return None

    new, _ = rewrite(graph, visit)
    verify(new)
    assert "call" not in graph_text(new)
    assert new.nodes[0].location == SourceLocation("a.py", 1, "f")
    assert known_array(new.nodes[1].outputs[0]).tolist() == [1, 2]
    assert known_array(new.params[0]) is None


def test_inlined_nodes_keep_their_own_lines():
    graph = parse_graph(NESTED)
    new, _ = rewrite(graph, lambda node, i, attrs, emitter: emitter.inline(attrs["graph"], i), only=("call",))
    assert [n.location.line for n in new.nodes[:3]] == [1, 2, 2]


def test_table_belongs_to_one_graph():
    seen = []

    def visit(node, inputs, attrs, emitter):
        emitter.table.setdefault("count", 0)
        emitter.table["count"] += 1
        seen.append((emitter.graph.name, emitter.table["count"]))

    rewrite(parse_graph(NESTED), visit)
    assert ("no", 1) in seen
    assert ("inner", 1) in seen
    assert ("main", 4) in seen


def test_copy_node_infers_when_operands_have_other_types():
    graph = parse_graph("graph g(%0: float32[2]) { %1 = neg(%0) : float32[2] return %1 }")
    new = Graph("new")
    made = copy_node(new, graph.nodes[0], (new.add_param(TensorType(dt.int8, (5,))),))
    assert made.outputs[0].type == TensorType(dt.int8, (5,))
    verify(new)


@given(st.integers(0, 2**32))
def test_copying_changes_nothing(graphs, seed):
    """Every node is emitted anew: another graph, the same text and the same values."""
    graph = graphs.random_graph(seed, size=12)
    new, changes = rewrite(graph, lambda node, inputs, attrs, emitter: emitter.add(node.op, inputs, attrs))
    verify(new)
    assert changes == count_nodes(graph)
    assert graph_text(new) == graph_text(graph, locations=False)
    graphs.check_same(graph, new, seed)


def test_use_counts():
    graph = parse_graph(
        "graph g(%0: int32[], %1: int32[]) { %2 = add(%0, %0) : int32[] %3 = neg(%2) : int32[] return %2, %2 }"
    )
    assert list(use_counts(graph).values()) == [2, 0, 3, 0]


def test_graphs_below_a_graph():
    graph = parse_graph(NESTED)
    assert sorted(g.name for g in all_graphs(graph)) == ["inner", "main", "no", "yes"]
    assert {g.name: n for g, n in graph_uses(graph).items()} == {"inner": 2, "yes": 1, "no": 1}
    assert count_nodes(graph) == 6


def test_effects_are_found_below(graphs):
    graphs.declare_effect()
    try:
        held = "graph f(%0: int32[]) { %1 = OP(%0) : int32[] return %1 }"
        text = f"graph g(%0: int32[]) {{ %1 = call(%0) {{ graph = {held} }} : int32[] return %1 }}"
        assert graph_has_effects(parse_graph(text.replace("OP", "noted")))
        assert not graph_has_effects(parse_graph(text.replace("OP", "neg")))
        custom = (
            "graph g(%0: int32[]) { %1 = custom_vjp_call(%0) { graph = graph f(%0: int32[]) { return %0 }"
            " backward = graph b(%0: int32[], %1: int32[], %2: int32[]) { %3 = noted(%2) : int32[] return %3 } }"
            " : int32[] return %1 }"
        )
        assert not graph_has_effects(parse_graph(custom)), "the backward graph does not run"
    finally:
        del PRIMITIVES["noted"]


def test_select_signature():
    graph = parse_graph(
        "graph g(%0: int32[], %1: int8[], %2: int32[]) { %3 = add(%0, %2) : int32[] return %3, %1, %2 }"
    )
    new = select_signature(graph, [2, 0], [2, 0])
    verify(new)
    assert graph_text(new) == "graph g(%0: int32[], %1: int32[]) {\n  %2 = add(%1, %0) : int32[]\n  return %0, %2\n}"
    with pytest.raises(GraphError, match="that is used was left out"):
        select_signature(graph, [0, 1], [0])


def test_bind_params():
    graph = parse_graph("graph g(%0: int32[], %1: int8[]) { %2 = neg(%0) : int32[] return %2, %1 }")
    new = bind_params(graph, {1: np.array(5, np.int8)})
    verify(new)
    assert new.input_types == (TensorType(dt.int32, ()),)
    assert known_array(new.outputs[1]) == 5
    with pytest.raises(GraphError, match=r"argument 'constants\[1\]' got an array int32\[\]"):
        bind_params(graph, {1: np.array(5, np.int32)})
    with pytest.raises(GraphError, match=r"constants\[2\]"):
        bind_params(graph, {2: np.array(5, np.int32)})


def test_structure_ignores_names_and_lines():
    graph = parse_graph(NESTED)
    other = parse_graph(NESTED.replace("inner", "outer").replace("a.py", "b.py").replace("main", "m"))
    assert structure(graph) == structure(other)
    assert hash(structure(graph)) == hash(structure(other))
    for old, new in (("neg(%0)", "add(%0, %0)"), ("float32", "float64"), ("return %5", "return %4")):
        assert structure(graph) != structure(parse_graph(NESTED.replace(old, new)))


def test_attributes_are_told_apart_exactly():
    values = [0, 0.0, -0.0, False, None, "0", (0,), (0.0,), (False,), 0j, -0j, complex(-0.0, 0), float("nan"), dt.int8,
              TensorType(dt.int8, ()), (dt.int8, ()), slice(0), slice(0.0), ...]  # fmt: skip
    keys = [attributes_key({"a": v}) for v in values]
    assert len(set(keys)) == len(values)
    assert attributes_key({"a": 1, "b": 2}) == attributes_key({"b": 2, "a": 1})
    assert attributes_key({"a": float("nan")}) == attributes_key({"a": float("nan")})
    thing: list[int] = []
    assert attributes_key({"a": thing}) == attributes_key({"a": thing}) != attributes_key({"a": []})


def test_emitter_remembers_the_line_at_hand():
    emitter = Emitter(Graph("g"))
    emitter.location = SourceLocation("a.py", 5, "f")
    assert emitter.constant(np.array(1)).node.location.line == 5
