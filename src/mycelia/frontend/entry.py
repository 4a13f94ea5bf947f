"""One staged graph of a function, with what is needed to call it."""

from __future__ import annotations

import sys
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.compiler.executable import Executable, executable
from mycelia.compiler.prepared import Prepared
from mycelia.compiler.run import run_graph
from mycelia.core import tree
from mycelia.frontend.effects import can_raise, raise_pending
from mycelia.frontend.guards import Guards
from mycelia.frontend.noted import same_value
from mycelia.ir.graph import Graph
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import set_value
from mycelia.tensor.mode import RECORD, state
from mycelia.tensor.tensor import wrap

#: Stands for a number that may be any.
ANY = object()


class Entry:
    """A staged graph.

    Args:
        graph: explicit arguments, then captured tensors, to results, then values written.
        captured: the tensors that became inputs.
        written: the tensors that are overwritten.
        written_args: the positions of arguments that are.
        out_tree: the structure of the results.
        out_leaves: the results; a tensor stands where one is computed.
        guards: what the graph depends on.
        numbers: the numeric arguments it was staged for, or ``ANY``.
        stage_seconds: how long staging took.
        n_args: the number of tensor arguments.
    """

    def __init__(
        self, graph: Graph, captured: list[Tensor], written: list[Tensor], written_args: list[int],
        out_tree: tree.TreeDef, out_leaves: list[Any], guards: Guards, numbers: tuple[Any, ...], stage_seconds: float,
        n_args: int,
    ) -> None:  # fmt: skip
        self.graph, self.captured, self.written, self.written_args = graph, captured, written, written_args
        self.out_tree, self.out_leaves, self.guards, self.numbers = out_tree, out_leaves, guards, numbers
        self.stage_seconds, self.used, self.n_args = stage_seconds, 0, n_args
        self.fed = bool(guards.session.inputs)
        self.n_out = sum(isinstance(x, Tensor) for x in out_leaves)
        self.single = out_tree is tree.LEAF and self.n_out == 1
        outputs = {id(t): self.n_out + k for k, t in enumerate(written)}
        self.raises = can_raise(graph)  # then nothing is given away: after an error everything is as before
        pairs = [(n_args + i, outputs[id(t)]) for i, t in enumerate(captured) if id(t) in outputs and not self.raises]
        self.donated, self.pairs = tuple(i for i, _ in pairs), tuple(pairs)
        self._executable: Executable | None = None
        #: Places of parameters that a run leaves as they are, where a run changes nothing at all.
        changes = bool(written or written_args)
        self._steady = () if changes else tuple(
            [n_args + i for i, t in enumerate(captured) if isinstance(t, Parameter)]
        )  # fmt: skip
        self._prepared: Prepared | None = None

    @property
    def executable(self) -> Executable:
        """The graph compiled; made when it is first asked for."""
        if self._executable is None:
            self._executable = executable(self.graph, self.pairs)
        return self._executable

    @property
    def compile_seconds(self) -> float:
        """How long compiling took, in seconds; 0 before the first run."""
        return 0.0 if self._executable is None else self._executable.compile_seconds or 0.0

    def takes(self, numbers: tuple[Any, ...]) -> bool:
        """Whether the graph is good for these numeric arguments."""
        return all(h is ANY or h is v or same_value(h, v) for h, v in zip(self.numbers, numbers, strict=True))

    def rebind(self, replaced: dict[int, Tensor]) -> None:
        """Read from other tensors, by the id of the former ones."""
        self.captured = [replaced.get(id(t), t) for t in self.captured]
        self.written = [replaced.get(id(t), t) for t in self.written]

    def run(self, args: list[Tensor], numbers: tuple[Any, ...]) -> Any:
        """Run on argument tensors; writes are stored back."""
        if self.fed:
            self.guards.session.feed(self.guards.numbers(numbers))
        if state.phase == RECORD and any(x._node is not None for x in (*args, *self.captured)):
            results = run_graph(self.graph, [*args, *self.captured])
            if self.raises:
                raise_pending()
            for t, new in zip(self.written, results[self.n_out :], strict=False):
                set_value(t, new)
            for i, new in zip(self.written_args, results[self.n_out + len(self.written) :], strict=True):
                set_value(args[i], new)
            return self._packed(results)
        arrays = self._arguments(args)
        for t in self.captured:
            arrays.append(t._value)
        for i in self.donated:
            if sys.getrefcount(arrays[i]) > _UNSHARED:
                arrays[i] = jnp.copy(arrays[i])
        values = self._compute(arrays)
        if self.raises:
            raise_pending()
        n = self.n_out
        for t in self.written:
            t._value = values[n]
            n += 1
        for i in self.written_args:
            args[i]._value = values[n]
            n += 1
        if self.single:
            return wrap(values[0])
        return self._packed([wrap(v) for v in values[: self.n_out]])

    def _arguments(self, args: list[Tensor]) -> list[Any]:
        return [x._value for x in args]

    def _compute(self, arrays: list[Any]) -> list[Any]:
        if not self._steady:
            return (self._executable or self.executable)(arrays)
        if self._prepared is None:
            self._prepared = Prepared(self.executable, self._steady)
        return self._prepared(arrays)

    def _packed(self, results: list[Tensor]) -> Any:
        it = iter(results)
        leaves = [next(it) if isinstance(x, Tensor) else x for x in self.out_leaves]
        return tree.unflatten(self.out_tree, leaves)


class PaddedEntry(Entry):
    """A staged graph that runs as one for padded inputs, which other lengths share.

    Args:
        entry: the graph for the true lengths; it is run as it is while a gradient is being recorded.
        shapes: the padded shapes of the tensor arguments.
        outputs: for each result its true shape, if it is to be cut.
        lengths: the true lengths, the last inputs of the padded graph.
        padded: the padded graph, compiled.
    """

    def __init__(
        self, entry: Entry, shapes: list[tuple[int, ...]], outputs: list[tuple[int, ...] | None], lengths: list[int],
        padded: Executable,
    ) -> None:  # fmt: skip
        self.__dict__.update(entry.__dict__)
        self.shapes, self.outputs, self.padded = shapes, outputs, padded
        self.lengths = [jnp.asarray(np.int64(n)) for n in lengths]

    @property
    def compile_seconds(self) -> float:
        """How long compiling the padded graph took, in seconds; 0 before the first run."""
        return self.padded.compile_seconds or 0.0

    def _arguments(self, args: list[Tensor]) -> list[Any]:
        return [_padded(x._value, shape) for x, shape in zip(args, self.shapes, strict=True)]

    def _compute(self, arrays: list[Any]) -> list[Any]:
        values = self.padded([*arrays, *self.lengths])
        return [
            v if shape is None else jnp.asarray(np.asarray(v)[tuple([slice(n) for n in shape])].copy())
            for v, shape in zip(values, self.outputs, strict=True)
        ]  # fmt: skip


def _padded(array: Any, shape: tuple[int, ...]) -> Any:
    if array.shape == shape:
        return array
    made = np.zeros(shape, array.dtype)
    made[tuple([slice(n) for n in array.shape])] = np.asarray(array)
    return made


def _unshared_count() -> int:
    """``sys.getrefcount`` of an array in ``Entry.run`` that only its tensor and the list hold."""
    holder = wrap(object())
    arrays = [holder._value]
    return sys.getrefcount(arrays[0])


_UNSHARED = _unshared_count()
