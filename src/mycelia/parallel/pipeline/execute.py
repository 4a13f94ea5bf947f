"""What a rank of a pipeline does: it runs its instructions.

Inputs are cut along their first axis into micro-batches. Forward keeps what backward needs, backward adds gradients of
weights to sums, and what was kept goes. At the end the sums are added over all ranks that hold a copy of a parameter
(stages that share it, replicas of a stage), and the optimizer updates what the rank holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.compiler.executable import Executable, executable
from mycelia.core.errors import StateError
from mycelia.frontend.effects import raise_pending
from mycelia.frontend.program import RANDOM, random_stream
from mycelia.ir.graph import Graph, Value
from mycelia.ir.rewriter import graph_has_effects
from mycelia.ir.types import TensorType
from mycelia.parallel.pipeline.gradients import Backward, Programs, Slot
from mycelia.parallel.pipeline.schedules import (
    BACKWARD,
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    FORWARD,
    RECEIVE_ACTIVATION,
    RECEIVE_GRADIENT,
    SEND_ACTIVATION,
    Instruction,
    Schedule,
)
from mycelia.parallel.pipeline.stages import Staged
from mycelia.parallel.pipeline.transport import Message, Transport
from mycelia.tensor import Tensor

#: A stage and a micro-batch.
At = tuple[int, int]


@dataclass(frozen=True)
class Network:
    """A network cut into stages, with their programs, and what happens to them.

    Attributes:
        staged: the network.
        programs: of all stages.
        schedule: what ranks compute.
    """

    staged: Staged
    programs: list[Programs]
    schedule: Schedule

    def links(self) -> list[tuple[int, int]]:
        """Stages that give others something."""
        return [(source, p.part.stage) for p in self.programs for source in p.part.received]

    def gradient_links(self) -> list[tuple[int, int]]:
        """Those of them that a gradient comes back on."""
        return [link for link in self.links() if self.returned(*link)]

    def sent(self, source: int, stage: int) -> list[Value]:
        """What one stage gives another."""
        return self.programs[stage].part.received[source]

    def returned(self, source: int, stage: int) -> list[Value]:
        """Of what one stage gives another, that which a cotangent comes back for."""
        incoming = self.programs[stage].part.incoming
        mine = self.sent(source, stage)
        back = [incoming[k] for k in self.programs[stage].returns]
        return [v for v in back if v in mine]


class Rank:
    """One rank of a pipeline.

    Args:
        network: what is run.
        rank: its place in the pipeline.
        transport: what it sends with.
        mine: gives this rank's copy of a tensor of the network's state.
        seed: the cotangent of the loss of a micro-batch.
        replica: which of the copies of the pipeline it belongs to.
        device: what arrays are kept on; None leaves it open. What comes from other processes is tied to a device, and
            programs are compiled apart for arrays that are and are not, so then all are.
    """

    def __init__(
        self, network: Network, rank: int, transport: Transport, mine: Callable[[Tensor], Tensor], seed: float,
        replica: int = 0, device: Any = None,
    ) -> None:  # fmt: skip
        self.network, self.rank, self.transport, self.mine = network, rank, transport, mine
        self.stages = network.schedule.stages_of(rank)
        self.seed, self.replica = seed, replica
        self.device = device
        #: What it has computed, in order.
        self.log: list[Instruction] = []
        self.losses: list[Any] = []
        self.sums: dict[int, list[Any]] = {}
        self._own = {s: network.programs[s] for s in self.stages}
        links, back = network.links(), network.gradient_links()
        self._after = {s: [b for a, b in links if a == s] for s in self.stages}
        self._back_from = {s: [b for a, b in back if a == s] for s in self.stages}
        self._back_to = {s: [a for a, b in back if b == s] for s in self.stages}
        self._micro: list[dict[int, Any]] = []
        self._streams: dict[tuple[int, int], Any] = {}
        self._received: dict[Message, Future[list[Any]] | list[Any]] = {}
        self._args: dict[At, list[Any]] = {}
        self._extras: dict[At, list[Any]] = {}
        self._outbox: dict[Message, list[Any]] = {}
        self._passed: dict[At, list[Any]] = {}
        self._cotangents: dict[At, dict[Value, Any]] = {}
        self._kept = {s: [_kept_slots(p, b) for b in p.backward] for s, p in self._own.items()}
        self._zeros: dict[TensorType, Any] = {}
        self._raises = {s: graph_has_effects(p.forward) for s, p in self._own.items()}
        self._seed: Any = None
        self._wait = jax.default_backend() == "cpu"

    # a step -----------------------------------------------------------------------------------------------------

    def begin(self, inputs: Sequence[Any]) -> None:
        """Start a step with the network's inputs, for all micro-batches."""
        count = self.network.schedule.micro_batches
        used = sorted({i for p in self._own.values() for i in p.part.data})
        cut = {i: _cut(self.placed(inputs[i]), count) for i in used}
        self._micro = [{i: parts[m] for i, parts in cut.items()} for m in range(count)]
        self.log, self.losses = [], []
        self.sums = {s: [self._zero(t, True) for t in p.sum_types()] for s, p in self._own.items()}
        self._start_streams()

    def run(self, step: Instruction) -> None:
        """One instruction up to the sums of gradients."""
        if step.kind == FORWARD:
            self._forward(step.stage, step.micro)
        elif step.kind in (BACKWARD, BACKWARD_INPUT):
            self._backward(step.stage, step.micro, 0)
        elif step.kind == BACKWARD_WEIGHT:
            self._backward(step.stage, step.micro, 1)
        elif step.kind in (RECEIVE_ACTIVATION, RECEIVE_GRADIENT):
            self._receive(step)
            return
        else:
            self._send(step)
            return
        self.log.append(step)

    def gradients(self) -> dict[int, Any]:
        """The sums of gradients by the place of their parameter in the network's state."""
        found: dict[int, Any] = {}
        for s, p in self._own.items():
            for i, total in zip(p.weights, self.sums[s], strict=True):
                found[i] = total if i not in found else found[i] + total
        self.sums = {}
        return found

    def end(self) -> None:
        """Check that nothing is left over."""
        self.transport.drain()
        kept = (self._received, self._args, self._extras, self._outbox, self._passed, self._cotangents)
        left = sum([len(held) for held in kept])
        if left:
            raise StateError("pipeline", message=f"rank {self.rank} has {left} tensors left of a step")
        self._micro = []

    def placed(self, array: Any) -> Any:
        """The array, tied to the device."""
        return array if self.device is None or array.committed else jax.device_put(array, self.device)

    def warm_up(self) -> None:
        """Compile what a step runs, by running it on zeros; programs with effects are left out."""
        for s, p in self._own.items():
            if not self._raises[s]:
                executable(p.forward)(self._zeros_for(p.forward))
            for backward in p.backward:
                if backward.graph.outputs:
                    self._program(backward)(self._zeros_for(backward.graph))

    # random numbers ---------------------------------------------------------------------------------------------

    def _start_streams(self) -> None:
        """A stream for each stage and replica, from the state of the one that they stand for, which goes on by one."""
        program = self.network.staged.program
        for index, spec in enumerate(program.state):
            if spec.kind != RANDOM:
                continue
            tensor = self.mine(random_stream(spec.stream))
            words = [int(w) for w in np.asarray(tensor._value)]
            for s, p in self._own.items():
                if index in p.part.state:
                    mixed = np.random.SeedSequence([*words, s, self.replica]).generate_state(1)
                    self._streams[s, index] = self.placed(jnp.asarray(np.array([mixed[0], 0], np.uint32)))
            tensor._value = jnp.asarray(np.array([words[0], (words[1] + 1) % 2**32], np.uint32))

    # computing --------------------------------------------------------------------------------------------------

    def _forward(self, stage: int, micro: int) -> None:
        p = self._own[stage]
        part = p.part
        state = [self._state(stage, i) for i in part.state]
        inputs = self._micro[micro]
        args = [*self._incoming(part.received, stage, micro), *[inputs[i] for i in part.data], *state]
        outs = executable(p.forward)(args)
        if self._wait:
            jax.block_until_ready(outs)
        if self._raises[stage]:
            raise_pending()
        at = (stage, micro)
        n = len(part.given) + part.has_loss + len(part.written)
        given = dict(zip(part.given, outs, strict=False))
        if part.has_loss:
            self.losses.append(outs[len(part.given)])
        for i, new in zip(part.written, outs[n - len(part.written) : n], strict=True):
            self._set_state(stage, i, new)
        needed = {slot for slots in self._kept[stage] for slot in slots}
        self._args[at] = [a if ("param", k) in needed else None for k, a in enumerate(args)]
        self._extras[at] = outs[n:]
        for to in self._after[stage]:
            self._give(("activation", stage, to, micro), [given[v] for v in self.network.sent(stage, to)])

    def _backward(self, stage: int, micro: int, which: int) -> None:
        p = self._own[stage]
        at = (stage, micro)
        backward = p.backward[which]
        if which == 0:
            self._gather(p, at)
        args = [self._taken(slot, at) for slot in backward.takes]
        if any(slot[0] == "sum" for slot in backward.takes):
            self.sums[stage] = list(self.sums[stage])
            for slot in backward.takes:
                if slot[0] == "sum":
                    self.sums[stage][slot[1]] = None
        outs = self._program(backward)(args) if backward.graph.outputs else []
        del args
        if self._wait:
            jax.block_until_ready(outs)
        back: dict[int, Any] = {}
        passed: list[Any] = []
        for (kind, k), out in zip(backward.gives, outs, strict=True):
            if kind == "sum":
                self.sums[stage][k] = out
            elif kind == "passed":
                passed.append(out)
            else:
                back[k] = out
        if which + 1 < len(p.backward):
            self._passed[at] = passed
            self._let_go(p, at)
        else:
            for kept in (self._args, self._extras, self._passed, self._cotangents):
                kept.pop(at, None)
        if which == 0:
            cotangents = {p.part.incoming[k]: v for k, v in back.items()}
            for to in self._back_to[stage]:
                arrays = [cotangents[v] for v in self.network.returned(to, stage)]
                self._give(("gradient", stage, to, micro), arrays)

    def _let_go(self, p: Programs, at: At) -> None:
        """Between the two parts of backward: keep only what the second takes."""
        needed = set(p.backward[1].takes)
        self._args[at] = [a if ("param", k) in needed else None for k, a in enumerate(self._args[at])]
        self._extras[at] = [a if ("extra", k) in needed else None for k, a in enumerate(self._extras[at])]

    def _taken(self, slot: Slot, at: At) -> Any:
        kind, k = slot
        if kind == "param":
            return self._args[at][k]
        if kind == "extra":
            return self._extras[at][k]
        if kind == "passed":
            return self._passed[at][k]
        if kind == "sum":
            return self.sums[at[0]][k]
        part = self._own[at[0]].part
        if k < len(part.given):
            v = part.given[k]
            found = self._cotangents.get(at, {}).get(v)
            return self._zero(v.type) if found is None else found
        return self._seed_of(part.graph.outputs[k].type)

    def _gather(self, p: Programs, at: At) -> None:
        """The cotangents of what a stage has given, from all that it was given to."""
        stage, micro = at
        found: dict[Value, Any] = {}
        for to in self._back_from[stage]:
            arrays = _arrived(self._received.pop(("gradient", to, stage, micro)))
            for v, array in zip(self.network.returned(stage, to), arrays, strict=True):
                found[v] = array if v not in found else _added(found[v], array)
        if found:
            self._cotangents[at] = found

    def _program(self, backward: Backward) -> Executable:
        return executable(backward.graph, backward.donated)

    # giving and getting -----------------------------------------------------------------------------------------

    def _incoming(self, sources: Iterable[int], stage: int, micro: int) -> list[Any]:
        return [a for s in sources for a in _arrived(self._received.pop(("activation", s, stage, micro)))]

    def _give(self, message: Message, arrays: list[Any]) -> None:
        """Give arrays to a stage: at once if it is this rank's, else when the instruction to send them comes."""
        place = self._received if message[2] in self._own else self._outbox
        place[message] = arrays

    def _send(self, step: Instruction) -> None:
        kind = "activation" if step.kind == SEND_ACTIVATION else "gradient"
        message = (kind, step.stage, step.peer, step.micro)
        self.transport.send(message, self.network.schedule.rank_of(step.peer), self._outbox.pop(message))

    def _receive(self, step: Instruction) -> None:
        if step.kind == RECEIVE_ACTIVATION:
            kind, values = "activation", self.network.sent(step.peer, step.stage)
        else:
            kind, values = "gradient", self.network.returned(step.stage, step.peer)
        message = (kind, step.peer, step.stage, step.micro)
        source = self.network.schedule.rank_of(step.peer)
        self._received[message] = self.transport.receive(message, source, [v.type for v in values])

    # state ------------------------------------------------------------------------------------------------------

    def _state(self, stage: int, index: int) -> Any:
        spec = self.network.staged.program.state[index]
        if spec.value is None:
            return self._streams[stage, index]
        return self.mine(spec.value)._value

    def _set_state(self, stage: int, index: int, new: Any) -> None:
        spec = self.network.staged.program.state[index]
        if spec.value is None:
            self._streams[stage, index] = new
        else:
            self.mine(spec.value)._value = new

    def _zero(self, type_: TensorType, fresh: bool = False) -> Any:
        if fresh:
            return jnp.zeros(type_.shape, type_.dtype.np, device=self.device)
        if type_ not in self._zeros:
            self._zeros[type_] = self._zero(type_, True)
        return self._zeros[type_]

    def _seed_of(self, type_: TensorType) -> Any:
        """The cotangent of the loss."""
        if self._seed is None:
            self._seed = jnp.full(type_.shape, self.seed, type_.dtype.np, device=self.device)
        return self._seed

    def _zeros_for(self, graph: Graph) -> list[Any]:
        return [self._zero(t, True) for t in graph.input_types]


def _kept_slots(p: Programs, backward: Backward) -> set[Slot]:
    return {slot for slot in backward.takes if slot[0] in ("param", "extra")}


def _arrived(given: Future[list[Any]] | list[Any]) -> list[Any]:
    return given.result() if isinstance(given, Future) else given


@jax.jit
def _added(a: Any, b: Any) -> Any:
    return a + b


def _cut(array: Any, count: int) -> list[Any]:
    """An input in parts along its first axis; a number is the same for all."""
    return [array] * count if not array.shape else list(_split(array, count))


def _split_fn(array: Any, count: int) -> tuple[Any, ...]:
    return tuple(jnp.split(array, count))


_split = jax.jit(_split_fn, static_argnums=1)
