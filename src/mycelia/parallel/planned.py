"""Graphs that are spread as the planner says (``parallel_mode="auto_parallel"``).

When a graph has been staged, the planner looks at it with all its inputs; each value that its plan lays out becomes the
input of a ``laid_out`` operator, and parameters and states of optimizers are put where the plan has them. The machine
is measured once, by all ranks together, so that each of them finds the same plan.
"""

from __future__ import annotations

import dataclasses
import functools

from mycelia.core import parallel_context
from mycelia.core.layout import Layout, device_count
from mycelia.frontend.entry import Entry
from mycelia.ir.graph import Graph, Value
from mycelia.ir.rewriter import copy_node
from mycelia.ops.layouts import laid_out_p
from mycelia.parallel.planner import Level, Machine, MeshShape, Plan, plan
from mycelia.parallel.planner.layouts import Spec
from mycelia.parallel.planner.task import DATA, STATE, Task, simplified
from mycelia.tensor import Parameter

#: Between devices of one process, which share their memory: seconds, and seconds a byte.
_WITHIN = 2e-5, 1e-10
_plans: list[Plan] = []


@functools.cache
def machine() -> Machine:
    """The ranks that work together, measured; of one process, its devices."""
    measured = Machine.measure()
    if measured.devices == device_count():
        return measured
    level = Level("devices", device_count(), *_WITHIN)
    return dataclasses.replace(measured, levels=(level,))


def last_plan() -> Plan | None:
    """The plan of the graph that was planned last."""
    return _plans[-1] if _plans else None


def plan_entry(entry: Entry) -> dict[str, Layout]:
    """Spread a staged graph by a plan; how the tensors that it takes besides its arguments lie, by name."""
    graph = simplified(entry.graph)
    names = [f"argument {i}" for i in range(entry.n_args)]
    for i, tensor in enumerate(entry.captured):
        name = tensor.name if isinstance(tensor, Parameter) else f"tensor {i}"
        names.append(name if name not in names else f"{name} ({i})")
    kinds = [DATA if i < entry.n_args and p.type.rank else STATE for i, p in enumerate(graph.params)]
    trained = frozenset(
        [t.name for t in entry.captured if isinstance(t, Parameter) and t.requires_grad and "." not in t.name]
        + [t.name for t in entry.captured if isinstance(t, Parameter) and t.requires_grad]
    )
    rows = next((p.type.shape[0] for p, k in zip(graph.params, kinds, strict=True) if k == DATA), 0)
    task = Task(graph, names, kinds, list(entry.pairs), trained, rows)
    mode = str(parallel_context.get_auto_parallel_context("search_mode"))
    found = plan(task, machine(), mode="auto" if mode == "dynamic_programming" else mode, stages=1, micro_batches=1)
    _plans[:] = [found]
    entry.graph = spread_graph(graph, found)
    return {name: layout_of(found.mesh, spec) for name, spec in found.inputs.items()}


def layout_of(mesh: MeshShape, spec: Spec) -> Layout:
    """A layout of a plan's mesh."""
    cuts = [() if s is None else (s,) if isinstance(s, str) else s for s in spec]
    return Layout(mesh.sizes, mesh.names).with_cuts(cuts) if mesh.names else Layout((1,), ("one",)).with_cuts(cuts)


def spread_graph(graph: Graph, found: Plan) -> Graph:
    """The graph with its values laid out."""
    made = Graph(graph.name)
    env: dict[Value, Value] = {p: made.add_param(p.type) for p in graph.params}
    for number, node in enumerate(graph.nodes):
        copied = copy_node(made, node, tuple([env[v] for v in node.inputs]))
        for place, (old, new) in enumerate(zip(node.outputs, copied.outputs, strict=True)):
            spec = found.constraints.get((number, place))
            if spec is not None and new.type.rank and not node.op.effects:
                layout = layout_of(found.mesh, spec)
                new = made.add_node(laid_out_p, (new,), {"layout": layout}, node.location).outputs[0]
            env[old] = new
    made.outputs = [env[v] for v in graph.outputs]
    return made
