"""Puts tensors on devices before a graph runs, in the modes in which a tensor is one for all ranks.

Inputs: each rank reads its part of a batch (``dataset_strategy="data_parallel"``), all of it (``"full_batch"``), or
what a strategy for each input says. Parameters: one that a graph uses in a layout is kept in it, and so are the states
of an optimizer that belong to it, which are of its shape and called after it (``moment1.NAME``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from mycelia.core import parallel_context, tree
from mycelia.core.errors import ShapeError
from mycelia.core.layout import Layout, device_count, is_spread, joined, spread
from mycelia.core.strategy import check_strategy, layouts_of
from mycelia.frontend import placement
from mycelia.frontend.entry import Entry
from mycelia.ir.graph import Graph, Value
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.tensor import wrap


class _Placer:
    def inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        leaves, treedef = tree.flatten((args, kwargs))
        tensors = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and not isinstance(x, Parameter)]
        given = parallel_context.get_auto_parallel_context("dataset_strategy")
        layouts: Sequence[Layout | None] = ()
        if isinstance(given, tuple):
            strategies = check_strategy("set_auto_parallel_context", "dataset_strategy", given)
            layouts = layouts_of("set_auto_parallel_context", "dataset_strategy", strategies, device_count())
        for number, i in enumerate(tensors):
            value = leaves[i]._value
            if is_spread(value):
                continue
            layout = layouts[number] if number < len(layouts) else None
            leaves[i] = wrap(self._input(value, given, layout, number))
        placed: tuple[tuple[Any, ...], dict[str, Any]] = tree.unflatten(treedef, leaves)
        return placed

    def _input(self, value: Any, given: Any, layout: Layout | None, number: int) -> Any:
        count = device_count()
        everywhere = Layout((count,), ("all",)).with_cuts(())
        if given == "full_batch" or not value.shape or (isinstance(given, tuple) and layout is None):
            return spread(value, everywhere)
        if layout is None:
            layout = everywhere.with_cuts([("all",)])
        if jax.process_count() == 1:
            found = layout.problems(value.shape, f"input {number}")
            if found:
                raise ShapeError("dataset_strategy", f"input {number}", message="; ".join(found))
        return joined(value, layout)

    def captured(self, entry: Entry) -> None:
        if parallel_context.get_auto_parallel_context("parallel_mode") == "auto_parallel" and device_count() > 1:
            from mycelia.parallel.planned import plan_entry  # with it comes SciPy's optimizer, 20 MB

            layouts = plan_entry(entry)
            for tensor in entry.captured:
                if isinstance(tensor, Parameter) and tensor.name in layouts:
                    place(tensor, layouts[tensor.name])
            return
        graph = entry.executable.graph
        wanted = used_layouts(graph)
        pairs = zip(entry.captured, graph.params[entry.n_args :], strict=True)
        params = {t.name: (t, wanted.get(v)) for t, v in pairs if isinstance(t, Parameter)}
        for name, (parameter, layout) in params.items():
            owner = params.get(name.partition(".")[2])
            if owner is not None and owner[0].shape == parameter.shape:
                layout = _of_state(parameter, owner[1])
            elif layout is None and _level() == "level3" and any(name in n and n != name for n in params):
                layout = _of_state(parameter, None)
            if layout is not None:
                place(parameter, layout)


def _level() -> str:
    """How far the parallel optimizer goes: ``"level1"`` to ``"level3"``; empty if it is not enabled."""
    if not parallel_context.get_auto_parallel_context("enable_parallel_optimizer"):
        return ""
    config = parallel_context.get_auto_parallel_context("parallel_optimizer_config")
    return str(config.get("optimizer_level", "level1"))


def _of_state(state: Tensor, layout: Layout | None) -> Layout | None:
    """How an optimizer's state lies: as its parameter, and with the parallel optimizer on devices that it repeats on.

    The first axis that the devices share evenly is cut; a tensor below the threshold (KiB) stays whole.
    """
    if not _level():
        return layout
    config = parallel_context.get_auto_parallel_context("parallel_optimizer_config")
    if state.size * state.itemsize < 1024 * config.get("parallel_optimizer_threshold", 64):
        return layout
    whole = Layout((device_count(),), ("all",)).with_cuts(())
    base = whole if layout is None else layout
    cuts = [*(base.cuts or ()), *[()] * (state.ndim - len(base.cuts or ()))]
    used = {name for cut in cuts for name in cut}
    for name, parts in zip(base.alias_name, base.device_matrix, strict=True):
        if name in used or parts == 1:
            continue
        for axis, cut in enumerate(cuts):
            if state.shape[axis] % (base.parts(axis) * parts) == 0:
                cuts[axis] = (*cut, name)
                break
    return base.with_cuts(cuts)


def place(tensor: Tensor, layout: Layout) -> None:
    """Let a tensor lie in a layout."""
    value = tensor._value
    if not is_spread(value) or value.sharding != layout.sharding():
        tensor._value = spread(value, layout)


#: Operators through which a parameter is still seen as itself.
_SEEN_THROUGH = ("cast", "stop_gradient")


def used_layouts(graph: Graph) -> dict[Value, Layout]:
    """The layout in which each input of a graph is used first."""
    same: dict[Value, Value] = {p: p for p in graph.params}
    found: dict[Value, Layout] = {}
    for node in graph.nodes:
        source = same.get(node.inputs[0]) if node.inputs else None
        if source is None:
            continue
        if node.op.name == "laid_out":
            found.setdefault(source, node.attrs["layout"])
        elif node.op.name in _SEEN_THROUGH:
            same[node.outputs[0]] = source
    return found


def _changed() -> None:
    placement.activate(parallel_context.spreads())


placement.set_placer(_Placer())
parallel_context.on_change(_changed)
