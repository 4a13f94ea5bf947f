"""Where a recording listens: functions put in the place of others for as long as it lasts.

Nothing asks "is there a profiler?" on the way of a call, so a program that is not recorded runs as if there were none.
While one records,

- the compiled operators that ``tensor.dispatch`` keeps are wrapped, those that are there and those that come;
- ``Executable.__call__`` and what stages and optimizes graphs are replaced on their classes;
- what the tape records is noted with the user's line, and its backward rules run under the name of what they
  differentiate;
- JAX says how long it traced, lowered and compiled.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import jax.monitoring

from mycelia.autodiff import repeated, tape
from mycelia.compiler.executable import Executable
from mycelia.core import ranges
from mycelia.frontend.entry import Entry
from mycelia.frontend.jit import Jit
from mycelia.ir.primitive import PRIMITIVES, Primitive
from mycelia.profiler.recording import Launch, Line, Recording, line_at, stack_at
from mycelia.tensor import Tensor, dispatch

_COMPILING = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "XLA",
}

_now = time.perf_counter_ns

#: The recording that JAX's listener tells; None while there is none.
_recording: Recording | None = None
_listening = False


class _Watched:
    """A compiled operator that notes each of its calls."""

    __slots__ = ("fn", "op", "recording")

    def __init__(self, fn: Callable[..., Any], op: Primitive, recording: Recording) -> None:
        self.fn, self.op, self.recording = fn, op, recording

    def __call__(self, *arrays: Any) -> Any:
        recording = self.recording
        if recording.memory is not None:
            recording.memory.add(arrays)
        start = _now()
        out = self.fn(*arrays)
        end = _now()
        origin = recording.origin
        frame = sys._getframe(1)
        line = origin.line if origin.operator is not None else line_at(frame)
        recording.launches.append(
            Launch(
                self.op.name, start, end, recording.thread(), self.fn, tuple([_type(a) for a in arrays]), line,
                origin.operator, None, None, stack_at(frame) if recording.with_stack else None,
            )
        )  # fmt: skip
        outs = out if self.op.multi else (out,)
        if outs:
            recording.hold(outs[0])
        if recording.memory is not None:
            recording.memory.add(outs)
        return out


def _type(array: Any) -> Any:
    return getattr(array, "aval", None) or (array.shape, array.dtype)


class _Graphs(threading.local):
    """The staged graph that is being run in a thread, or the steps whose backward pass is."""

    current: Any = None
    tape: Any = None


class Hooks:
    """Everything a recording listens to.

    Args:
        recording: who is told.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._replaced: list[tuple[Any, str, Any]] = []
        self._graphs = _Graphs()

    def install(self) -> None:
        """Begin to listen."""
        global _recording, _listening
        self._wrap_operators()
        self._replace(dispatch, "_compile", self._compile)
        self._replace(dispatch, "_record", self._record)
        self._replace(tape, "pull_back", self._pull_back)
        self._replace(repeated._Compiled, "run", self._run_backward)
        self._replace(Executable, "__call__", self._call_executable)
        self._replace(Executable, "__init__", self._timed("passes of", lambda self, graph, *_: graph.name))
        self._replace(Entry, "run", self._run_entry)
        self._replace(Jit, "_stage", self._timed("staging of", lambda self, *_: self.name))
        ranges.set_listener(self.recording.range)
        _recording = self.recording
        if not _listening:  # listeners of JAX stay
            _listening = True
            jax.monitoring.register_event_duration_secs_listener(_on_duration)

    def remove(self) -> None:
        """Put everything back."""
        global _recording
        _recording = None
        ranges.set_listener(None)
        for owner, name, former in reversed(self._replaced):
            setattr(owner, name, former)
        self._replaced.clear()
        for op in list(PRIMITIVES.values()):
            for key, fn in list(op.eager.items()):
                if type(fn) is _Watched:
                    op.eager[key] = fn.fn

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        former = getattr(owner, name)
        setattr(owner, name, make(former))
        self._replaced.append((owner, name, former))

    def _wrap_operators(self) -> None:
        for op in list(PRIMITIVES.values()):
            for key, fn in list(op.eager.items()):
                op.eager[key] = _Watched(fn, op, self.recording)

    def _compile(self, former: Any) -> Any:
        recording = self.recording

        def compile_(op: Primitive, key: Any, *rest: Any) -> Any:
            made = op.eager[key] = _Watched(former(op, key, *rest), op, recording)
            return made

        return compile_

    def _record(self, former: Any) -> Any:
        recording = self.recording

        def record(op: Primitive, *rest: Any) -> Any:
            made = former(op, *rest)
            outputs = made if isinstance(made, tuple) else (made,)
            node = next((t._node for t in outputs if t._node is not None), None)
            if node is not None:
                origin = recording.origin
                name, line = origin.operator, origin.line
                if name is None:
                    name, line = op.name, line_at(sys._getframe(1))
                recording.forward_lines[node.order] = (name, line)
            return made

        return record

    def _pull_back(self, former: Any) -> Any:
        recording = self.recording

        def pull_back(op: Primitive, attrs: Any, inputs: Any, outs: Any, *rest: Any) -> Any:
            origin = recording.origin
            before = origin.operator, origin.line
            node = next((t._node for t in outs if isinstance(t, Tensor) and t._node is not None), None)
            known: tuple[str, Line | None] | None
            known = None if node is None else recording.forward_lines.get(node.order)
            origin.operator, origin.line = known or (op.name, line_at(sys._getframe(1)))
            try:
                return former(op, attrs, inputs, outs, *rest)
            finally:
                origin.operator, origin.line = before

        return pull_back

    def _run_entry(self, former: Any) -> Any:
        graphs = self._graphs

        def run(entry: Entry, *rest: Any) -> Any:
            before, graphs.current = graphs.current, entry.graph
            try:
                return former(entry, *rest)
            finally:
                graphs.current = before

        return run

    def _run_backward(self, former: Any) -> Any:
        graphs, recording = self._graphs, self.recording

        def run(compiled: Any, nodes: Any, *rest: Any) -> Any:
            steps = tuple([recording.forward_lines.get(node.order) for node in nodes])
            graphs.tape = recording.tapes.setdefault(steps, steps)
            try:
                return former(compiled, nodes, *rest)
            finally:
                graphs.tape = None

        return run

    def _call_executable(self, former: Any) -> Any:
        recording, graphs = self.recording, self._graphs

        def call(executable: Executable, arrays: Any) -> Any:
            memory = recording.memory
            given = []
            if memory is not None:
                memory.add(arrays)
                given = [arrays[i] for i, _ in executable.donated]
            start = _now()
            out = former(executable, arrays)
            end = _now()
            frame = sys._getframe(1)
            recording.launches.append(
                Launch(
                    executable.source.name, start, end, recording.thread(), executable, (), line_at(frame), None,
                    graphs.current, graphs.tape, stack_at(frame) if recording.with_stack else None,
                )
            )  # fmt: skip
            # what replaces a donated input will be donated itself, and a second owner would cost a copy
            state = {k for _, k in executable.donated}
            free = next((a for k, a in enumerate(out) if k not in state), None)
            if free is not None:
                recording.hold(free)
            if memory is not None:
                memory.graph(executable, given, out)
            return out

        return call

    def _timed(self, doing: str, name_of: Callable[..., str]) -> Callable[[Any], Any]:
        recording = self.recording

        def make(former: Any) -> Any:
            def timed(*args: Any, **kwargs: Any) -> Any:
                start = _now()
                try:
                    return former(*args, **kwargs)
                finally:
                    recording.span("compile", f"{doing} {name_of(*args)}", start, _now())

            return timed

        return make


def _on_duration(event: str, duration_secs: float, **details: Any) -> None:
    recording, phase = _recording, _COMPILING.get(event)
    if recording is not None and phase is not None:
        end = _now()
        name = details.get("fun_name")
        recording.span("compile", phase if name is None else f"{phase}: {name}", end - int(duration_secs * 1e9), end)
