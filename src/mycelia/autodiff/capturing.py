"""A function staged into a graph of its own, inside the graph being built.

What it takes from around it (symbolic tensors of the outer graph, captured tensors) becomes an operand of the
new graph; what it writes becomes an output. Nothing stays changed by the capture itself: whoever transforms
the graph stores the written values with :meth:`Captured.store`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mycelia.autodiff.transform import condensed
from mycelia.core import tree
from mycelia.core.errors import shown_traceback
from mycelia.ir.builder import Builder, restoring
from mycelia.ir.graph import Graph
from mycelia.ir.types import TensorType
from mycelia.tensor import Parameter, Tensor, dispatch
from mycelia.tensor.dispatch import set_value, value_in_graph
from mycelia.tensor.mode import current_builder, is_staging, staging
from mycelia.tensor.tensor import wrap


@dataclass
class Captured:
    """A captured function.

    Attributes:
        graph: takes the replaced leaves and weights, then ``operands``; gives the tensors among ``leaves``, then
            the last values of ``written``.
        operands: tensors of the outer graph.
        leaves: the leaves of what the function returned; those that are tensors stand for the first outputs.
        treedef: the structure of what it returned.
        written: tensors from outside that the function changed.
    """

    graph: Graph
    operands: list[Tensor]
    leaves: list[Any]
    treedef: tree.TreeDef
    written: list[Tensor]

    @property
    def n_out(self) -> int:
        """Number of output tensors, without those written."""
        return len(self.graph.outputs) - len(self.written)

    def store(self, outputs: Sequence[Tensor]) -> None:
        """Give the written tensors their values, which stand at the end of the graph's outputs."""
        for t, new in zip(self.written, outputs[self.n_out :], strict=True):
            set_value(t, new)

    def packed(self, outputs: Sequence[Any]) -> Any:
        """What the function returned, with ``outputs`` in place of its tensors."""
        it = iter(outputs)
        return tree.unflatten(self.treedef, [next(it) if isinstance(x, Tensor) else x for x in self.leaves])


class StagedTransform:
    """A function transformed in a graph: called from outside any graph it is compiled, inside one it is staged.

    Subclasses have ``evaluate``, which stages them for the arguments of the call, and ``compile_key``, which
    tells compiled transforms of one function apart.
    """

    fn: Any
    evaluate: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if not is_staging():
                return dispatch.call_compiled(self, args, kwargs)
            return self.evaluate(*args, **kwargs)
        except Exception as error:  # it goes on to the user, without the frames of this package
            error.__traceback__ = shown_traceback(error)
            raise


def capture(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    types: Sequence[TensorType | None],
    weights: Sequence[tuple[Parameter, TensorType]] = (),
) -> Captured:
    """Stage ``fn(*args, **kwargs)`` into a graph.

    Args:
        fn: a function, Cell, or anything that can be called.
        args: positional arguments, nests of tensors and other things.
        kwargs: keyword arguments.
        types: for each leaf of ``args`` the type of the parameter that takes its place, or None to leave it.
        weights: Parameters that the function reads elsewhere and that become parameters of the graph.
    """
    inner = Builder(getattr(fn, "__name__", type(fn).__name__), parent=current_builder())
    leaves, treedef = tree.flatten(args)
    replaced = [x if t is None else wrap(inner.param(t)) for x, t in zip(leaves, types, strict=True)]
    changed = tree.unflatten(treedef, replaced)
    before = [(w, w._value) for w, _ in weights]
    fresh = [inner.param(t) for _, t in weights]
    with restoring(inner, _put_back):
        try:
            for (w, _), value in zip(before, fresh, strict=True):
                w._value = value
            with staging(inner):
                out = dispatch.stageable(fn)(*changed, **kwargs)
                out_leaves, out_tree = tree.flatten(out)
                results = [value_in_graph(x) for x in out_leaves if isinstance(x, Tensor)]
                written = [t for t, _ in inner.written.values()]
                written += [
                    w for (w, _), value in zip(before, fresh, strict=True)
                    if w._value is not value and id(w) not in inner.written
                ]  # fmt: skip
                graph = inner.finish([*results, *[value_in_graph(t) for t in written]])
        finally:
            for w, value in before:
                w._value = value
                inner.written.pop(id(w), None)
    kept = [wrap(None) if isinstance(x, Tensor) else x for x in out_leaves]
    return Captured(condensed(graph), [wrap(o) for o, _ in inner.lifted], kept, out_tree, written)


def _put_back(tensor: Tensor, value: Any) -> None:
    tensor._value = value
