"""Building a graph while a program runs on symbolic tensors.

A :class:`Builder` owns one graph under construction. Builders nest: a branch, a loop body or a function
being differentiated is built inside the builder around it. A value of an outer graph used inside is
lifted: it becomes a parameter of the inner graph and an explicit operand of the node that will hold it.
A concrete tensor used while staging is captured by the outermost builder as an input, never baked in.

Tensors that are overwritten while staging (parameters, running statistics, random state, subscript
assignment) are recorded, so that the builder's owner can return their last values and put the
concrete ones back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mycelia.core import dtypes
from mycelia.core.errors import GraphError, SourceLocation, user_location
from mycelia.ir.graph import ArrayConstant, Graph, Node, Value
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType


def _infer_constant(*, value: ArrayConstant) -> TensorType:
    return TensorType(dtypes.from_numpy(value.array.dtype), value.array.shape)


def _lower_constant(*, value: ArrayConstant) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(value.array)


#: A value known while staging.
constant_p = Primitive("constant", infer=_infer_constant, lower=_lower_constant, differentiable=False, samples=())


class Builder:
    """A graph under construction.

    ``lifted`` lists the outer values that became parameters, in order, beside the parameters made with
    :meth:`param`; ``captured`` (outermost builder only) the concrete tensors that did; ``written`` the
    tensors overwritten while this builder was active with what they held before.
    """

    def __init__(self, name: str = "main", parent: Builder | None = None) -> None:
        self.graph = Graph(name)
        self.parent = parent
        self.explicit: list[Value] = []
        self.lifted: list[tuple[Value, Value]] = []
        self.captured: list[tuple[Any, Value]] = []
        self.written: dict[int, tuple[Any, Any]] = {}
        self.location: SourceLocation | None = None
        self.notes: dict[str, Any] = {} if parent is None else parent.notes
        self._memo: dict[Any, Value] = {}
        self._constants: dict[ArrayConstant, Value] = {}
        self._known: dict[Value, np.ndarray[Any, Any] | None] = {}

    @property
    def root(self) -> Builder:
        builder = self
        while builder.parent is not None:
            builder = builder.parent
        return builder

    def param(self, type_: TensorType) -> Value:
        """A new parameter, in the order of calls, before all lifted and captured ones at :meth:`finish`."""
        value = Value(type_, self.graph)
        self.explicit.append(value)
        return value

    def add(
        self, op: Primitive, inputs: tuple[Value, ...], attrs: dict[str, Any], location: SourceLocation | None = None
    ) -> Node:
        """Append a node. Inputs of outer graphs are lifted first."""
        graph = self.graph
        local = inputs
        for value in inputs:
            if value.graph is not graph:
                local = tuple([self.lift(v) for v in inputs])
                break
        return graph.add_node(op, local, attrs, location or self.location or user_location())

    def constant(self, array: np.ndarray[Any, Any]) -> Value:
        """A constant; equal small arrays share one node."""
        held = ArrayConstant(array)
        small = array.size <= 16
        if small and held in self._constants:
            return self._constants[held]
        value = self.graph.add_node(constant_p, (), {"value": held}).outputs[0]
        if small:
            self._constants[held] = value
        return value

    def lift(self, value: Value) -> Value:
        """The local value for a value of this graph or of a graph around it."""
        if value.graph is self.graph:
            return value
        found = self._memo.get(value)
        if found is not None:
            return found
        if self.parent is None:
            made = value.node.location if value.node is not None else None
            raise GraphError(
                "graph", message="a tensor that belongs to another compiled function, or to another call of this one, "
                f"was used{'' if made is None else f'; it was made at {made}: {made.text}'}",
                hint="return it, or keep state in a Parameter, instead of in an attribute, global or list",
            )  # fmt: skip
        outer = self.parent.lift(value)
        if outer.node is not None and outer.node.op is constant_p:
            inner = self.constant(outer.node.attrs["value"].array)
        else:
            inner = Value(outer.type, self.graph)
            self.lifted.append((outer, inner))
        self._memo[value] = inner
        return inner

    def capture(self, tensor: Any, type_: TensorType) -> Value:
        """The local value for a concrete tensor: an input of the outermost graph, lifted inwards."""
        key = id(tensor)
        found = self._memo.get(key)
        if found is not None:
            return found
        if self.parent is not None:
            value = self.lift(self.parent.capture(tensor, type_))
        else:
            value = Value(type_, self.graph)
            self.captured.append((tensor, value))
        self._memo[key] = value
        return value

    def record_write(self, tensor: Any, before: Any) -> None:
        """Note that ``tensor``, which held ``before``, is overwritten in this builder."""
        if id(tensor) not in self.written:
            self.written[id(tensor)] = (tensor, before)

    def finish(self, outputs: list[Value]) -> Graph:
        """Close the graph: parameters are the explicit, then the lifted, then the captured ones."""
        graph = self.graph
        graph.outputs = [self.lift(v) for v in outputs]
        graph.params = [*self.explicit, *(v for _, v in self.lifted), *(v for _, v in self.captured)]
        return graph

    def known(self, value: Value) -> np.ndarray[Any, Any] | None:
        """The array of a value that depends on constants only, else None."""
        if value.graph is not self.graph:
            return self.parent.known(value) if self.parent is not None else None
        stack = [value]
        while stack:
            top = stack[-1]
            if top in self._known:
                stack.pop()
                continue
            node = top.node
            if node is None:
                outer = next((o for o, inner in self.lifted if inner is top), None)
                self._known[top] = self.parent.known(outer) if outer is not None and self.parent is not None else None
            elif node.op.effects or any(True for _ in node.subgraphs):
                self._known.update(dict.fromkeys(node.outputs))
            else:
                missing = [v for v in node.inputs if v not in self._known]
                if missing:
                    stack.extend(missing)
                    continue
                arrays = [self._known[v] for v in node.inputs]
                if any(a is None for a in arrays):
                    self._known.update(dict.fromkeys(node.outputs))
                else:
                    out = node.op.lower(*arrays, **node.attrs)
                    for result, array in zip(node.outputs, out if node.op.multi else (out,), strict=True):
                        self._known[result] = np.asarray(array)
            stack.pop()
        return self._known[value]


def inline(graph: Graph, args: list[Value], add: Callable[[Node, tuple[Value, ...]], tuple[Value, ...]]) -> list[Value]:
    """Copy ``graph``'s nodes with ``add`` (which makes a node for given inputs), parameters bound to ``args``."""
    env: dict[Value, Value] = dict(zip(graph.params, args, strict=True))
    for node in graph.nodes:
        outputs = add(node, tuple([env[v] for v in node.inputs]))
        env.update(zip(node.outputs, outputs, strict=True))
    return [env[v] for v in graph.outputs]


@contextmanager
def restoring(builder: Builder, put_back: Callable[[Any, Any], None]) -> Iterator[None]:
    """On leaving, give every tensor written in ``builder`` its former value back."""
    try:
        yield
    finally:
        for tensor, before in builder.written.values():
            put_back(tensor, before)
