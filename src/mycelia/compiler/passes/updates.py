"""Updates of state by short elementwise programs, all of them in one call.

An optimizer does the same dozen operations to hundreds of parameters. XLA compiles and runs several kernels for each;
where there is a kernel that runs one small program over many groups of arrays (``native``), this pass collects them.

A node belongs to an update if it is elementwise in float32 and all that use its result belong to it too, or it is an
output that replaces an input. Nothing else waits for such nodes, so they can run last. Connected nodes make a group: a
parameter with its moments. Groups of the same program and the same scalars become one ``elementwise_many``; an
output takes the memory of the input that it replaces. An input that is a part of a stacked value is read where it
stands.

The pass runs last, on a graph about to be compiled, since it has to know which inputs are given away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mycelia.compiler.passes import dead_code
from mycelia.core import dtypes as dt
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.primitive import Primitive
from mycelia.ir.rewriter import copy_node, known_array
from mycelia.ir.types import TensorType

#: Operators of the programs, with their numbers in the kernel; those from ``sqrt`` on have one operand.
OPERATIONS = {
    "add": 0, "sub": 1, "mul": 2, "div": 3, "maximum": 4, "minimum": 5, "sqrt": 6, "neg": 7, "square": 8, "abs": 9,
}  # fmt: skip

#: Groups of one call: XLA's time to compile grows with the square of the results of an operator.
MOST_GROUPS = 24

#: Registers of the kernel.
MOST_REGISTERS = 32


def _infer(*types: TensorType, shapes: tuple[tuple[int, ...], ...], **_: Any) -> tuple[TensorType, ...]:
    return tuple(TensorType(dt.float32, s) for s in shapes)


def _no_kernel(*arrays: Any, **attrs: Any) -> Any:
    raise NotImplementedError("elementwise_many is made only where its kernel is")


#: One program over many groups of arrays; the attributes are those of the kernel and the shapes of the results.
elementwise_many_p = Primitive("elementwise_many", infer=_infer, lower=_no_kernel, multi=True, differentiable=False)


def _nowhere() -> bool:
    return False


#: Whether there is a kernel for the device in use; the pass does nothing otherwise.
_usable: Callable[[], bool] = _nowhere


def set_kernel(lower: Callable[..., Any], usable: Callable[[], bool]) -> None:
    """Say how ``elementwise_many`` is lowered, and when it can be."""
    global _usable
    elementwise_many_p.lower = lower
    _usable = usable


@dataclass
class _Group:
    """Connected nodes: one tensor shape, a program in registers."""

    nodes: list[Node] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    scalars: list[Value] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    program: list[tuple[int, int, int, int]] = field(default_factory=list)
    results: tuple[int, ...] = ()
    registers: int = 0

    @property
    def key(self) -> tuple[Any, ...]:
        return (tuple(self.program), tuple(self.constants), tuple(self.scalars), self.results, len(self.inputs))


def run(graph: Graph, replaced: Sequence[tuple[int, int]]) -> tuple[Graph, int]:
    """Collect the updates of a graph.

    Args:
        graph: the graph.
        replaced: pairs of a parameter that is given away and the output that replaces it, by index.

    Returns:
        The graph and how many nodes went into calls; the same graph if there are none or there is no kernel.
    """
    if not replaced or not _usable():
        return graph, 0
    new_state = {graph.outputs[k] for _, k in replaced}
    groups = [g for g in _groups(graph) if any(v in new_state for v in g.outputs)]
    groups = [g for g in groups if _compile(g)]
    if not groups:
        return graph, 0
    taken = {id(n) for g in groups for n in g.nodes}
    made = Graph(graph.name)
    env: dict[Value, Value] = {p: made.add_param(p.type) for p in graph.params}
    for node in graph.nodes:
        if id(node) not in taken:
            copied = copy_node(made, node, tuple([env[v] for v in node.inputs]))
            env.update(zip(node.outputs, copied.outputs, strict=True))
    alike: dict[tuple[Any, ...], list[_Group]] = {}
    for group in groups:
        alike.setdefault(group.key, []).append(group)
    former = {graph.outputs[k]: graph.params[i] for i, k in replaced}
    for together in alike.values():
        for first in range(0, len(together), MOST_GROUPS):
            _emit(made, env, together[first : first + MOST_GROUPS], former)
    made.outputs = [env[v] for v in graph.outputs]
    return dead_code.run(made)[0], len(taken)


def _fits(node: Node) -> bool:
    if node.op.name not in OPERATIONS or node.attrs:
        return False
    type_ = node.outputs[0].type
    if type_.dtype is not dt.float32 or not type_.shape or not type_.size:
        return False
    return all(v.type == type_ or v.type == TensorType(dt.float32, ()) for v in node.inputs) and any(
        v.type == type_ for v in node.inputs
    )


def _groups(graph: Graph) -> list[_Group]:
    """Connected nodes that only updates use, in the order of the graph."""
    users: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for v in node.inputs:
            users.setdefault(v, []).append(node)
    returned = set(graph.outputs)
    last: dict[int, Node] = {}
    for node in reversed(graph.nodes):
        if _fits(node):
            (out,) = node.outputs
            uses = users.get(out, [])
            if (uses or out in returned) and all(id(u) in last and u.outputs[0].type == out.type for u in uses):
                last[id(node)] = node
    parent = {k: k for k in last}

    def root(k: int) -> int:
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    for k, node in last.items():
        for v in node.inputs:
            if v.node is not None and id(v.node) in last:
                parent[root(id(v.node))] = root(k)
    groups: dict[int, _Group] = {}
    for node in graph.nodes:
        if id(node) in last:
            group = groups.setdefault(root(id(node)), _Group())
            group.nodes.append(node)
            if node.outputs[0] in returned:
                group.outputs.append(node.outputs[0])
    return list(groups.values())


def _compile(group: _Group) -> bool:
    """Write the program of a group; False if it needs more registers than there are."""
    inside = {v for n in group.nodes for v in n.outputs}
    for node in group.nodes:
        for v in node.inputs:
            if v in inside:
                continue
            if v.shape and v not in group.inputs:
                group.inputs.append(v)
            elif not v.shape and known_array(v) is None and v not in group.scalars:
                group.scalars.append(v)
    last_use = {v: i for i, n in enumerate(group.nodes) for v in n.inputs}
    last_use.update(dict.fromkeys(group.outputs, len(group.nodes)))
    register: dict[Value, int] = {v: i for i, v in enumerate(group.inputs)}
    free: list[int] = []
    count = len(group.inputs)
    for i, node in enumerate(group.nodes):
        operands = [register[v] if v in register else -1 - _scalar(group, v) for v in node.inputs]
        for v in dict.fromkeys(node.inputs):  # a register that ends here may take the result
            if v in inside and last_use[v] == i:
                free.append(register[v])
        target = free.pop() if free else count
        count = max(count, target + 1)
        register[node.outputs[0]] = target
        operands = operands if len(operands) == 2 else [operands[0], operands[0]]
        group.program.append((OPERATIONS[node.op.name], target, operands[0], operands[1]))
    group.results = tuple(register[v] for v in group.outputs)
    group.registers = count
    return count <= MOST_REGISTERS


def _scalar(group: _Group, value: Value) -> int:
    array = known_array(value)
    if array is None:
        return group.scalars.index(value)
    number = float(array)
    if number not in group.constants:
        group.constants.append(number)
    return len(group.scalars) + group.constants.index(number)


def _emit(graph: Graph, env: Mapping[Value, Value], groups: list[_Group], former: Mapping[Value, Value]) -> None:
    first = groups[0]
    args: dict[Value, int] = {}
    layout: list[int] = []
    aliases: list[tuple[int, int]] = []
    results: list[Value] = []
    for group in groups:
        layout.append(group.outputs[0].type.size)
        for v in group.inputs:
            source, offset = _where(env[v])
            layout += [args.setdefault(source, len(args)), offset]
        for v in group.outputs:
            state = former.get(v)
            if state is not None and state in group.inputs:
                aliases.append((len(first.scalars) + args[env[state]], len(results)))
            layout.append(len(results))
            results.append(v)
    node = graph.add_node(
        elementwise_many_p, (*[env[v] for v in first.scalars], *args),
        {
            "program": tuple(x for instruction in first.program for x in instruction),
            "constants": tuple(first.constants),
            "signature": (len(first.inputs), len(first.outputs), first.registers, len(first.scalars)),
            "results": first.results, "layout": tuple(layout), "aliases": tuple(aliases),
            "shapes": tuple(v.shape for v in results),
        },
        first.nodes[0].location,
    )  # fmt: skip
    env.update(zip(results, node.outputs, strict=True))  # type: ignore[attr-defined]


def _where(value: Value) -> tuple[Value, int]:
    """The value that an input is read from, and the element at which it begins there."""
    node = value.node
    if node is not None and node.op.name == "reshape":
        source, offset = _where(node.inputs[0])
        if source is not node.inputs[0]:
            return source, offset
    if node is not None and node.op.name == "unstack" and node.attrs["axis"] == 0:
        return node.inputs[0], value.index * value.type.size
    return value, 0
