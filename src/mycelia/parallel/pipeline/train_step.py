"""A training step that runs as a pipeline: cut once for each type of inputs, then run by instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.core import cluster, tree
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError, StateError
from mycelia.frontend.entry import Entry
from mycelia.frontend.program import RANDOM
from mycelia.parallel.pipeline.cut import cut
from mycelia.parallel.pipeline.execute import Network, Rank
from mycelia.parallel.pipeline.gradients import programs
from mycelia.parallel.pipeline.schedules import COMPUTED, Instruction, schedule
from mycelia.parallel.pipeline.simulate import Timeline, simulate
from mycelia.parallel.pipeline.stages import staged
from mycelia.parallel.pipeline.transport import Mailbox, Transport, Wire, copied, summed
from mycelia.parallel.pipeline.update import Update, staged_update
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import type_of
from mycelia.tensor.mode import is_staging
from mycelia.tensor.tensor import epoch, wrap


@dataclass
class _Plan:
    """What is run for one type of inputs."""

    network: Network
    timeline: Timeline
    update: Update
    ranks: list[Rank]
    entries: list[Entry]
    held: list[list[int]]
    places: list[int | None]
    epoch: int


def train_step(
    net: Any, loss: Any = None, optimizer: Any = None, stages: int = 1, micro_batches: int = 1, scheduler: str = "1f1b",
    *, stage_config: Mapping[str, int] | None = None, segment_config: Mapping[str, int] | None = None,
    chunks: int | None = None, reduction: str = "mean", sens: float = 1.0, in_process: bool | None = None,
) -> PipelineStep:  # fmt: skip
    """A training step of which each rank runs a stage (or several).

    Every rank calls it with the same network and, at each step, the same batch; with more ranks than stages, the
    network is there several times, and each copy takes a batch of its own. Rank ``r`` of ``n`` belongs to stage
    ``r // (n // stages)``.

    Args:
        net: a Cell. Where its Cells have a ``pipeline_stage``, they are computed there; else it is cut by work.
        loss: called with the network's output and the last input; None: the network gives the loss.
        optimizer: updates parameters one by one, as all of ``nn``'s do.
        stages: how many ranks stand behind each other. Schedules of two chunks cut the network into twice as many.
        micro_batches: into how many parts each input is cut along its first axis; numbers go to all.
        scheduler: ``"gpipe"``, ``"1f1b"``, ``"interleaved"`` or ``"zero_bubble_v"``.
        stage_config: stages by the paths of Cells, before what Cells say.
        segment_config: segments by the paths of Cells.
        chunks: how many parts of the network a rank holds, for ``"interleaved"``.
        reduction: ``"mean"``: the losses of micro-batches are averaged, as that of the whole batch would be; ``"sum"``:
            added.
        sens: the cotangent of the loss.
        in_process: play all ranks in this process, one after the other; by default if it has met no others.

    Returns:
        A step that is called with inputs and gives the loss at every rank.

    Raises:
        ArgumentTypeError, ArgumentValueError: an argument that cannot be; ranks that do not make ``stages`` stages.

    >>> import mycelia as ms
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(4, 8), ms.nn.ReLU(), ms.nn.Dense(8, 2))
    >>> net[0].pipeline_stage, net[2].pipeline_stage = 0, 1
    >>> sgd = ms.nn.SGD(net.trainable_params(), 0.1)
    >>> step = train_step(net, ms.nn.MSELoss(), sgd, stages=2, micro_batches=4, scheduler="1f1b")
    >>> loss = step(ms.ops.ones((8, 4)), ms.ops.zeros((8, 2)))
    >>> loss.shape, round(step.timeline.bubble_ratio, 2)
    ((), 0.2)
    """
    return PipelineStep(
        net, loss, optimizer, stages, micro_batches, scheduler, stage_config or {}, segment_config or {}, chunks,
        reduction, sens, in_process,
    )  # fmt: skip


class PipelineStep:
    """What :func:`train_step` makes.

    Attributes:
        schedule: what each rank computes.
        timeline: the simulated step; None before the first call.
    """

    def __init__(
        self, net: Any, loss: Any, optimizer: Any, stages: int, micro_batches: int, scheduler: str,
        config: Mapping[str, int], segments: Mapping[str, int], chunks: int | None, reduction: str, sens: float,
        in_process: bool | None,
    ) -> None:  # fmt: skip
        self.schedule = schedule(scheduler, stages, micro_batches, chunks)
        if not callable(net) or (loss is not None and not callable(loss)):
            argument, value = ("net", net) if not callable(net) else ("loss", loss)
            raise ArgumentTypeError("pipeline", argument, got=type(value).__name__, takes="a Cell or function")
        if not hasattr(optimizer, "parameters") or not callable(optimizer):
            raise ArgumentTypeError("pipeline", "optimizer", got=type(optimizer).__name__, takes="an Optimizer")
        if reduction not in ("mean", "sum"):
            raise ArgumentValueError("pipeline", "reduction", got=repr(reduction), takes='"mean" or "sum"')
        self._net, self._optimizer = net, optimizer
        self._fn = net if loss is None else _with_loss(net, loss)
        self._config, self._segments = config, segments
        place = cluster.place()
        self._alone = place.size == 1 if in_process is None else in_process
        if not self._alone and place.size % stages:
            raise ArgumentValueError(
                "pipeline", "stages", got=str(stages), takes=f"a divisor of the number of ranks, {place.size}"
            )
        self._copies = 1 if self._alone else place.size // stages
        self._replica = 0 if self._alone else place.rank % self._copies
        self._mean = reduction == "mean"
        parts = micro_batches if self._mean else 1
        self._seed = float(sens) / (parts * self._copies)
        self._plans: dict[Any, _Plan] = {}
        self._last: _Plan | None = None

    @property
    def timeline(self) -> Timeline | None:
        """The step as it was simulated with times of one, its transfers taking none; None before the first call."""
        return None if self._last is None else self._last.timeline

    @property
    def executed(self) -> dict[int, list[Instruction]]:
        """What the ranks of this process computed in the last step, in order."""
        return {} if self._last is None else {r.rank: list(r.log) for r in self._last.ranks}

    def __call__(self, *inputs: Any) -> Tensor:
        """One step: forward, backward and update; gives the loss.

        Raises:
            ShapeError: an input whose first axis the micro-batches do not divide.
        """
        if is_staging():
            raise StateError("pipeline", message="it was called inside a compiled function", hint="call it outside")
        leaves, treedef = tree.flatten(inputs)
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        plan = self._plan(leaves, treedef, tensors)
        self._last = plan
        for rank in plan.ranks:
            rank.begin([x._value for x in tensors])
        if self._alone:
            self._play(plan)
        else:
            for step in plan.timeline.instructions(plan.ranks[0].rank):
                if step.kind not in ("reduce_gradients", "update"):
                    plan.ranks[0].run(step)
        for rank in plan.ranks:
            rank.end()
        gradients = self._reduced(plan, [rank.gradients() for rank in plan.ranks])
        for k, (entry, held) in enumerate(zip(plan.entries, plan.held, strict=True)):
            entry.run([wrap(self._gradient(plan, gradients[k], i)) for i in held], ())
        return wrap(self._loss(plan))

    def collect(self) -> None:
        """Bring all parameters and all state up to date at every rank; each has kept its own stages' only.

        Every rank has to call it. Before it, parameters of other ranks' stages are as they were at the start.
        """
        plan = self._last
        if plan is None or self._alone:
            return
        everyone = tuple(range(cluster.place().size))
        for tensor, owner in self._owners(plan):
            tensor._value = copied(tensor._value, owner * self._copies, everyone)

    # planning ---------------------------------------------------------------------------------------------------

    def _plan(self, leaves: list[Any], treedef: Any, tensors: list[Tensor]) -> _Plan:
        count = self.schedule.micro_batches
        for i, x in enumerate(tensors):
            if x.shape and x.shape[0] % count:
                raise ShapeError(
                    "pipeline", f"input {i}", got=f"shape {x.shape}",
                    takes=f"a first axis that {count} micro-batches share evenly",
                )  # fmt: skip
        fixed = [None if isinstance(x, Tensor) else x for x in leaves]
        key = (treedef, tuple([type_of(x) for x in tensors]), tuple([(type(x), repr(x)) for x in fixed]))
        plan = self._plans.get(key)
        if plan is None or plan.epoch != epoch():
            plan = self._plans[key] = self._made(leaves, treedef)
        return plan

    def _made(self, leaves: list[Any], treedef: Any) -> _Plan:
        count, plan = self.schedule.micro_batches, self.schedule
        micro = [_shaped(x, count) if isinstance(x, Tensor) else x for x in leaves]
        args = tree.unflatten(treedef, micro)
        whole = staged(self._fn, args, self._net, plan.name, plan.ranks, plan.chunks, self._config, self._segments)
        parts = cut(whole)
        update = staged_update(self._optimizer)
        index = {id(spec.value): i for i, spec in enumerate(whole.program.state) if spec.value is not None}
        places = [index.get(id(p)) for p in update.parameters]
        trained = [i for i in places if i is not None]
        made = programs(whole, parts, trained, plan.in_two_parts)
        network = Network(whole, made, plan)
        timeline = simulate(plan, None, network.links(), network.gradient_links())
        held = self._held(network, places)
        update.check(held)
        mine = range(plan.ranks) if self._alone else [cluster.place().rank // self._copies]
        box = Mailbox()
        ranks, entries = [], []
        for r in mine:
            here: Callable[[Tensor], Tensor] = _Copies() if self._alone and r else _itself
            transport: Transport = box if self._alone else Wire(self._pipeline())
            device = None if self._alone else jax.local_devices()[0]
            ranks.append(Rank(network, r, transport, here, self._seed, self._replica, device))
            entries.append(update.entry(held[r], here))
        made_plan = _Plan(network, timeline, update, ranks, entries, [held[r] for r in mine], places, epoch())
        if not self._alone:
            self._prepare(made_plan)
        return made_plan

    def _held(self, network: Network, places: Sequence[int | None]) -> list[list[int]]:
        """For each rank the parameters that its stages use, by their places in the optimizer; the last, the unused."""
        found: list[list[int]] = [[] for _ in range(self.schedule.ranks)]
        last = self.schedule.rank_of(self.schedule.stages - 1)
        for k, index in enumerate(places):
            users = {self.schedule.rank_of(p.part.stage) for p in network.programs if index in p.part.state}
            for rank in sorted(users) or [last]:
                found[rank].append(k)
        return found

    def _pipeline(self) -> list[int]:
        """The processes of this copy of the pipeline."""
        return [s * self._copies + self._replica for s in range(self.schedule.ranks)]

    def _prepare(self, plan: _Plan) -> None:
        """Compile, then connect all that will communicate, so that nobody waits for a compiler in a step."""
        rank = plan.ranks[0]
        for tensor in self._state(plan):
            if not tensor._value.committed:
                tensor._value = rank.placed(jnp.copy(tensor._value))
        rank.warm_up()
        cluster.wait_for_all()
        for group in self._groups(plan):
            if cluster.place().rank in group:
                summed(jnp.zeros(1), group).block_until_ready()
        seen: set[tuple[int, int]] = set()
        for event in plan.timeline.events:
            pair = (event.rank, event.to)
            if event.to < 0 or pair in seen:
                continue
            seen.add(pair)
            message = ("activation", -1, -1, -1)
            if event.rank == rank.rank:
                rank.transport.send(message, event.to, [jnp.zeros(1, jnp.float32)])
            elif event.to == rank.rank:
                types = [type_of(wrap(jnp.zeros(1, jnp.float32)))]
                rank.transport.receive(message, event.rank, types).result()
        rank.transport.drain()
        cluster.wait_for_all()

    def _state(self, plan: _Plan) -> list[Tensor]:
        """What this rank's stages and its part of the update read."""
        program = plan.network.staged.program
        mine = [plan.network.programs[s].part for s in plan.ranks[0].stages]
        held = [program.state[i].value for part in mine for i in part.state]
        return [*[t for t in held if t is not None], *plan.entries[0].captured]

    # the end of a step ------------------------------------------------------------------------------------------

    def _play(self, plan: _Plan) -> None:
        """All ranks in the order of the simulation."""
        by_rank = {rank.rank: rank for rank in plan.ranks}
        for rank in plan.ranks:
            if isinstance(rank.mine, _Copies):
                rank.mine.refresh()
        for event in plan.timeline.events:
            by_rank[event.rank].run(event.instruction)
            if event.to >= 0:
                sent = event.instruction
                kind = sent.kind.replace("send", "receive")
                by_rank[event.to].run(Instruction(kind, sent.peer, sent.micro, sent.stage))

    def _groups(self, plan: _Plan) -> dict[tuple[int, ...], list[int]]:
        """The processes that add up gradients, with the parameters, by their places in the optimizer."""
        found: dict[tuple[int, ...], list[int]] = {}
        holders = self._held(plan.network, plan.places)
        for k in range(len(plan.places)):
            users = [r for r in range(self.schedule.ranks) if k in holders[r]]
            group = tuple([u * self._copies + c for u in users for c in range(self._copies)])
            if len(group) > 1:
                found.setdefault(group, []).append(k)
        return found

    def _reduced(self, plan: _Plan, gradients: list[dict[int, Any]]) -> list[dict[int, Any]]:
        """Gradients summed over the ranks that hold a parameter, and over copies of the pipeline."""
        if self._alone:
            for group, parameters in self._groups(plan).items():
                for k in parameters:
                    total = None
                    for r in group:
                        g = self._gradient(plan, gradients[r], k)
                        total = g if total is None else total + g
                    for r in group:
                        gradients[r][self._key(plan, k)] = total
            return gradients
        mine = gradients[0]
        for group, parameters in self._groups(plan).items():
            if cluster.place().rank not in group:
                continue
            by_type: dict[Any, list[int]] = {}
            for k in parameters:
                by_type.setdefault(plan.update.parameters[k].dtype.np, []).append(k)
            for places in by_type.values():
                arrays = [self._gradient(plan, mine, k) for k in places]
                total = summed(_flat(arrays), group)
                for k, array in zip(places, _unflat(total, tuple([a.shape for a in arrays])), strict=True):
                    mine[self._key(plan, k)] = array
        return gradients

    @staticmethod
    def _key(plan: _Plan, k: int) -> int:
        """Where the gradient of a parameter is kept: its place in the network's state, or below 0 if it has none."""
        index = plan.places[k]
        return -1 - k if index is None else index

    def _gradient(self, plan: _Plan, gradients: dict[int, Any], k: int) -> Any:
        found = gradients.get(self._key(plan, k))
        if found is not None:
            return found
        parameter = plan.update.parameters[k]
        return jnp.zeros(parameter.shape, parameter.dtype.np, device=plan.ranks[0].device)

    def _loss(self, plan: _Plan) -> Any:
        losses = [x for rank in plan.ranks for x in rank.losses]
        stage = plan.network.programs[-1].part
        type_ = stage.graph.outputs[len(stage.given)].type
        total = _sum(losses) if losses else jnp.zeros(type_.shape, type_.dtype.np, device=plan.ranks[0].device)
        if self._mean:
            total = total / np.asarray(self.schedule.micro_batches * self._copies, total.dtype)
        if not self._alone:
            total = summed(total, tuple(range(cluster.place().size)))
        for rank in plan.ranks:
            if isinstance(rank.mine, _Copies):
                rank.mine.store()
        return total

    def _owners(self, plan: _Plan) -> list[tuple[Tensor, int]]:
        """Tensors that a step writes, each with the rank of the pipeline that has its value."""
        found: list[tuple[Tensor, int]] = []
        seen: set[int] = set()
        held = self._held(plan.network, plan.places)
        for r, places in enumerate(held):
            for index in plan.update.owned(places):
                tensor = plan.update.tensor(index)
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    found.append((tensor, r))
        for p in plan.network.programs:
            for index in p.part.written:
                spec = plan.network.staged.program.state[index]
                if spec.kind != RANDOM and spec.value is not None and id(spec.value) not in seen:
                    seen.add(id(spec.value))
                    found.append((spec.value, self.schedule.rank_of(p.part.stage)))
        return found


class _Copies:
    """Copies of the network's state for a rank that another process would be."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Tensor, Tensor, Any]] = {}

    def __call__(self, tensor: Tensor) -> Tensor:
        if id(tensor) not in self._made:
            self._made[id(tensor)] = (tensor, wrap(tensor._value), tensor._value)
        return self._made[id(tensor)][1]

    def refresh(self) -> None:
        """Take over what the tensors hold."""
        for key, (tensor, copy, _) in self._made.items():
            copy._value = tensor._value
            self._made[key] = (tensor, copy, tensor._value)

    def store(self) -> None:
        """Put what has changed into the tensors."""
        for tensor, copy, before in self._made.values():
            if copy._value is not before:
                tensor._value = copy._value


def _itself(tensor: Tensor) -> Tensor:
    return tensor


def _with_loss(net: Any, loss: Any) -> Callable[..., Any]:
    def with_loss(*inputs: Any) -> Any:
        return loss(net(*inputs[:-1]), inputs[-1])

    return with_loss


def _shaped(x: Tensor, parts: int) -> Tensor:
    shape = (x.shape[0] // parts, *x.shape[1:]) if x.shape else ()
    return wrap(jax.ShapeDtypeStruct(shape, np.dtype(x.dtype.np)))


@jax.jit
def _sum(arrays: list[Any]) -> Any:
    total = arrays[0]
    for a in arrays[1:]:
        total = total + a
    return total


@jax.jit
def _flat(arrays: list[Any]) -> Any:
    return jnp.concatenate([a.reshape(-1) for a in arrays])


def _unflat_fn(flat: Any, shapes: tuple[tuple[int, ...], ...]) -> list[Any]:
    out, start = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        out.append(flat[start : start + size].reshape(shape))
        start += size
    return out


_unflat = jax.jit(_unflat_fn, static_argnums=1)

__all__ = ["COMPUTED", "PipelineStep", "train_step"]
