"""Whether a graph is well formed.

A graph is well formed if each node uses only values made before it in the same graph (SSA: every value is
made once, and there are no free variables); if every value knows the graph, node and index it belongs to;
if every type is the one its operator infers now; if attributes are hashable and operators declared; and if
all this holds of the graphs that nodes hold. That parameters and outputs of those line up with the node is
part of the type rules of the nodes (:mod:`mycelia.ir.control`), so inferring again checks it.
"""

from __future__ import annotations

from typing import Any

from mycelia.core.errors import GraphError
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.primitive import PRIMITIVES
from mycelia.ir.types import TensorType


def verify(graph: Graph) -> None:
    """Refuse a malformed graph.

    Args:
        graph: a finished graph; the graphs its nodes hold are verified too.

    Raises:
        GraphError: naming the graph, the node by its index, and the fault.

    >>> from mycelia.core import dtypes
    >>> graph = Graph("identity")
    >>> graph.outputs = [graph.add_param(TensorType(dtypes.float32, (2,)))]
    >>> verify(graph)
    """
    _verify(graph, {}, [])


def _verify(graph: Graph, verified: dict[Graph, None], around: list[Graph]) -> None:
    if graph in verified:
        return
    if graph in around:
        raise GraphError("verify", message=f"graph '{graph.name}' holds itself")
    around.append(graph)
    defined: set[Value] = set()
    for i, param in enumerate(graph.params):
        fault = _param_fault(graph, param, defined)
        if fault:
            raise GraphError("verify", message=f"graph '{graph.name}', parameter {i}: {fault}")
        defined.add(param)
    for index, node in enumerate(graph.nodes):
        fault = _node_fault(graph, node, defined)
        if fault:
            raise _error(graph, index, node, fault)
        for _, held in node.subgraphs:
            _verify(held, verified, around)
        fault = _type_fault(node)
        if fault:
            raise _error(graph, index, node, fault)
        defined.update(node.outputs)
    for i, value in enumerate(graph.outputs):
        if value not in defined:
            raise GraphError("verify", message=f"graph '{graph.name}', output {i}: {_origin_fault(graph, value)}")
    around.pop()
    verified[graph] = None


def _error(graph: Graph, index: int, node: Node, fault: str) -> GraphError:
    return GraphError(
        "verify", message=f"graph '{graph.name}', node {index} ({node.op.name}): {fault}", location=node.location
    )


def _param_fault(graph: Graph, param: Value, defined: set[Value]) -> str | None:
    if param in defined:
        return "it is listed twice"
    if param.graph is not graph:
        return f"it belongs to graph '{param.graph.name}'"
    if param.node is not None:
        return f"it is the output of a node ({param.node.op.name})"
    return None


def _node_fault(graph: Graph, node: Node, defined: set[Value]) -> str | None:
    """What is wrong with a node's operator, operands and outputs, types aside."""
    if PRIMITIVES.get(node.op.name) is not node.op:
        return "its operator is not the declared primitive of that name"
    for i, value in enumerate(node.inputs):
        if value not in defined:
            return f"input {i}: {_origin_fault(graph, value)}"
    for i, value in enumerate(node.outputs):
        if value.graph is not graph:
            return f"output {i} belongs to graph '{value.graph.name}'"
        if value.node is not node or value.index != i:
            return f"output {i} does not say that it is output {i} of this node"
        if value in defined or value in node.outputs[:i]:
            return f"output {i} is made twice"
    for name, attribute in node.attrs.items():
        try:
            hash(attribute)
        except TypeError:
            if type(attribute) is not slice:  # hashable from Python 3.12 on
                return f"attribute '{name}' of type {type(attribute).__name__} is not hashable"
    return None


def _origin_fault(graph: Graph, value: Value) -> str:
    if value.graph is not graph:
        return f"a value of graph '{value.graph.name}' is used (a free variable)"
    if value.node is None:
        return "a value is used that is not among the graph's parameters"
    if any(value.node is node for node in graph.nodes):
        return f"a value is used before its node ({value.node.op.name}) makes it"
    return f"a value is used whose node ({value.node.op.name}) is not in the graph"


def _type_fault(node: Node) -> str | None:
    """What is wrong with the output types, compared with what the operator infers now."""
    try:
        inferred: Any = node.op.infer(*[v.type for v in node.inputs], **node.attrs)
    except GraphError as error:
        return _first_line(error)
    except Exception as error:
        return f"its operator refuses the operands or attributes: {_first_line(error)}"
    several = type(inferred) is not TensorType
    if several is not node.op.multi:
        return f"its operator promises {'several outputs' if node.op.multi else 'one output'} and infers {inferred}"
    types = tuple(inferred) if several else (inferred,)
    if len(types) != len(node.outputs):
        return f"it has {len(node.outputs)} outputs and its operator infers {len(types)}"
    for i, (value, wanted) in enumerate(zip(node.outputs, types, strict=True)):
        if value.type != wanted:
            return f"output {i} has type {value.type} and its operator infers {wanted}"
    return None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
