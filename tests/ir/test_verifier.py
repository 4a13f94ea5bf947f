"""Every kind of malformed graph is refused with the graph, the node and the fault."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import mycelia  # noqa: F401, declares the operators
from mycelia.core import dtypes as dt
from mycelia.core.errors import GraphError, SourceLocation
from mycelia.ir.builder import constant_p
from mycelia.ir.graph import ArrayConstant, Graph, Node, Value
from mycelia.ir.parser import parse_graph
from mycelia.ir.primitive import PRIMITIVES, Primitive
from mycelia.ir.types import TensorType
from mycelia.ir.verifier import verify

F = TensorType(dt.float32, (2,))


def two_nodes():
    """A good graph: x, y -> -(x + y)."""
    graph = Graph("g")
    x, y = graph.add_param(F), graph.add_param(F)
    made = graph.add_node(PRIMITIVES["add"], (x, y), {}).outputs[0]
    graph.outputs = [graph.add_node(PRIMITIVES["neg"], (made,), {}, SourceLocation("train.py", 3, "loss")).outputs[0]]
    return graph


def with_loop():
    return parse_graph(
        """graph g(%0: float32[2], %1: int32[]) {
          %2, %3 = while_loop(%0, %1, n_const=0) {
            cond_graph = graph c(%0: float32[2], %1: int32[]) { %2 = cast(%1, dtype=bool) : bool[] return %2 }
            body_graph = graph b(%0: float32[2], %1: int32[]) { return %0, %1 }
          } : float32[2], int32[]
          return %2
        }"""
    )


@given(st.integers(0, 2**32))
def test_random_graphs_are_well_formed(graphs, seed):
    verify(graphs.random_graph(seed, size=10))


def test_good_graphs_pass():
    verify(two_nodes())
    verify(with_loop())
    verify(Graph("empty"))


def refused(graph, message):
    with pytest.raises(GraphError, match=message) as caught:
        verify(graph)
    assert "graph '" in str(caught.value)
    return caught.value


def test_use_before_definition():
    graph = two_nodes()
    graph.nodes.reverse()
    error = refused(graph, r"graph 'g', node 0 \(neg\): input 0: a value is used before its node \(add\) makes it")
    assert "train.py:3" in str(error)


def test_node_that_is_not_in_the_graph():
    graph = two_nodes()
    del graph.nodes[0]
    refused(graph, r"node 0 \(neg\): input 0: .* whose node \(add\) is not in the graph")


def test_free_variable():
    graph, other = two_nodes(), Graph("other")
    graph.nodes[0].inputs = (graph.params[0], other.add_param(F))
    refused(graph, r"node 0 \(add\): input 1: a value of graph 'other' is used")


def test_unlisted_parameter():
    graph = two_nodes()
    del graph.params[1]
    refused(graph, "not among the graph's parameters")


def test_parameter_faults():
    graph = two_nodes()
    graph.params.append(graph.params[0])
    refused(graph, "parameter 2: it is listed twice")
    graph.params[2] = Value(F, Graph("other"))
    refused(graph, "parameter 2: it belongs to graph 'other'")
    graph.params[2] = graph.nodes[0].outputs[0]
    refused(graph, r"parameter 2: it is the output of a node \(add\)")


def test_output_ownership():
    graph = two_nodes()
    node = graph.nodes[0]
    good = node.outputs[0]
    node.outputs = (Value(F, Graph("other"), node, 0),)
    refused(graph, "output 0 belongs to graph 'other'")
    node.outputs = (Value(F, graph, None, 0),)
    refused(graph, "output 0 does not say")
    node.outputs = (Value(F, graph, node, 1),)
    refused(graph, "output 0 does not say")
    node.outputs = (good,)
    graph.nodes.insert(1, node)
    refused(graph, r"node 1 \(add\): output 0 is made twice")


def test_graph_outputs():
    graph = two_nodes()
    graph.outputs.append(Value(F, graph))
    refused(graph, "output 1: a value is used that is not among")
    graph.outputs[1] = Value(F, Graph("other"))
    refused(graph, "output 1: a value of graph 'other'")


def test_wrong_type():
    graph = two_nodes()
    graph.nodes[0].outputs[0].type = TensorType(dt.float32, (3,))
    refused(graph, r"node 0 \(add\): output 0 has type float32\[3\] and its operator infers float32\[2\]")


def test_wrong_number_of_outputs():
    graph = two_nodes()
    node = graph.nodes[1]
    node.outputs = (*node.outputs, Value(F, graph, node, 1))
    refused(graph, "it has 2 outputs and its operator infers 1")


def test_operands_that_the_operator_refuses():
    graph = two_nodes()
    graph.params[1].type = TensorType(dt.float32, (3,))
    refused(graph, r"node 0 \(add\): its operator refuses the operands or attributes: add: argument 'other'")


def test_attributes_that_the_operator_refuses():
    graph = parse_graph("graph g(%0: float32[2]) { %1 = reshape(%0, shape=(1,2)) : float32[1,2] return %1 }")
    graph.nodes[0].attrs = {"shape": (3,)}
    refused(graph, "refuses the operands or attributes")


def test_unhashable_attribute():
    graph = Graph("g")
    graph.outputs = [graph.add_node(constant_p, (), {"value": ArrayConstant(np.zeros(2))}).outputs[0]]
    graph.nodes[0].attrs = {"value": [1, 2]}
    refused(graph, "attribute 'value' of type list is not hashable")


def test_undeclared_operator():
    graph = two_nodes()
    stranger = Primitive("stranger", infer=lambda x: x, lower=lambda x: x)
    del PRIMITIVES["stranger"]
    graph.nodes[1].op = stranger
    refused(graph, "not the declared primitive")


def test_operator_that_is_not_what_it_says():
    Primitive("liar", infer=lambda x: (x, x), lower=lambda x: (x, x))
    try:
        graph = Graph("g")
        x = graph.add_param(F)
        node = Node(PRIMITIVES["liar"], (x,), {}, None)
        node.outputs = (Value(F, graph, node, 0), Value(F, graph, node, 1))
        graph.nodes.append(node)
        refused(graph, "promises one output and infers")
    finally:
        del PRIMITIVES["liar"]


def test_faults_inside_sub_graphs_name_the_sub_graph():
    graph = with_loop()
    body = graph.nodes[0].attrs["body_graph"]
    body.outputs[0] = Value(F, Graph("other"))
    refused(graph, "graph 'b', output 0")


def test_sub_graphs_line_up_with_the_node():
    graph = with_loop()
    body = graph.nodes[0].attrs["body_graph"]
    body.outputs.reverse()
    refused(graph, r"graph 'g', node 0 \(while_loop\): .*the body turns")
    body.outputs.reverse()
    body.add_param(F)
    refused(graph, r"node 0 \(while_loop\): .*the body takes")
    del body.params[2]
    graph.nodes[0].attrs["cond_graph"].outputs = [graph.nodes[0].attrs["cond_graph"].params[0]]
    refused(graph, r"'condition' got \(float32\[2\]\)")


def test_graph_that_holds_itself():
    graph = parse_graph(
        "graph g(%0: int32[]) { %1 = call(%0) { graph = graph f(%0: int32[]) { return %0 } } : int32[] return %1 }"
    )
    graph.nodes[0].attrs["graph"] = graph
    refused(graph, "graph 'g' holds itself")
