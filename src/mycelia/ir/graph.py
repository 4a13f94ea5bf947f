"""The typed functional graph: SSA values, nodes in order, no free variables.

A graph is built once (:mod:`mycelia.ir.builder`) and then only rewritten into new graphs. What a
sub-graph uses is an explicit operand: sub-graphs are attributes of ``cond``, ``while_loop``, ``scan``
and ``call`` nodes, and their parameters line up with the node's inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mycelia.core.errors import SourceLocation
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType


class Value:
    """One typed result: a parameter of its ``graph`` (``node`` is None) or output ``index`` of a node."""

    __slots__ = ("graph", "index", "node", "type")

    def __init__(self, type_: TensorType, graph: Graph, node: Node | None = None, index: int = 0) -> None:
        self.type = type_
        self.graph = graph
        self.node = node
        self.index = index

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> Any:
        """The NumPy dtype, as a ``jax.Array`` has it, so that a symbolic Tensor reads like a real one."""
        return self.type.dtype.np

    def __repr__(self) -> str:
        origin = "param" if self.node is None else self.node.op.name
        return f"<value {self.type} of {origin}>"


class Node:
    """One application of a primitive."""

    __slots__ = ("attrs", "inputs", "location", "op", "outputs")

    def __init__(
        self, op: Primitive, inputs: tuple[Value, ...], attrs: dict[str, Any], location: SourceLocation | None
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.location = location
        self.outputs: tuple[Value, ...] = ()

    @property
    def subgraphs(self) -> Iterator[tuple[str, Graph]]:
        """The attributes that are graphs, with their names."""
        for name, value in self.attrs.items():
            if isinstance(value, Graph):
                yield name, value

    def __repr__(self) -> str:
        return f"<node {self.op.name}({', '.join(str(v.type) for v in self.inputs)})>"


class Graph:
    """Parameters in, nodes in order of execution, outputs.

    Hashes by identity, so that a graph can be the attribute of a node and the key of a cache;
    ``derived`` keeps what was computed from it (differentiated graphs, executables).
    """

    __slots__ = ("derived", "name", "nodes", "outputs", "params")

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.params: list[Value] = []
        self.nodes: list[Node] = []
        self.outputs: list[Value] = []
        self.derived: dict[Any, Any] = {}

    def add_param(self, type_: TensorType) -> Value:
        value = Value(type_, self)
        self.params.append(value)
        return value

    def add_node(
        self,
        op: Primitive,
        inputs: tuple[Value, ...],
        attrs: dict[str, Any],
        location: SourceLocation | None = None,
    ) -> Node:
        """Append a node; its output types are inferred here, so a graph is typed from birth."""
        types = op.infer(*[v.type for v in inputs], **attrs)
        node = Node(op, inputs, attrs, location)
        if type(types) is TensorType:
            node.outputs = (Value(types, self, node, 0),)
        else:
            node.outputs = tuple([Value(t, self, node, i) for i, t in enumerate(types)])  # type: ignore[arg-type]
        self.nodes.append(node)
        return node

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        return tuple(v.type for v in self.params)

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        return tuple(v.type for v in self.outputs)

    def __repr__(self) -> str:
        return f"<graph {self.name}: {len(self.params)} params, {len(self.nodes)} nodes>"


class ArrayConstant:
    """A NumPy array as a node attribute: compared by type and bytes, hashed once."""

    __slots__ = ("_hash", "array")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        frozen = np.array(array, order="C")
        frozen.flags.writeable = False
        self.array = frozen
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.array.shape, self.array.dtype.str, self.array.tobytes()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ArrayConstant)
            and self.array.shape == other.array.shape
            and self.array.dtype == other.array.dtype
            and self.array.tobytes() == other.array.tobytes()
        )

    def __repr__(self) -> str:
        return f"ArrayConstant({self.array.dtype}{list(self.array.shape)})"
