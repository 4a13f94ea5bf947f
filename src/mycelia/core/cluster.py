"""The processes that work together: which one this is, the groups they form, and programs in which they meet.

Each process (a *rank*) holds one device and runs the user's script on arrays of its own. A program in which ranks
communicate is compiled for the devices of all of them, with every input and output declared "replicated": each device
then works on the array that its process put there, whatever the others hold, and only collective operations (over the
axis :data:`AXIS`) see other ranks' values. Ranks may run different programs, as long as those of a group call the same
collectives in the same order.

The engine is JAX's multi-controller runtime: ``jax.distributed`` introduces the processes to each other; Gloo or MPI
moves the data between CPUs, NCCL between GPUs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from mycelia.core import introduction, pulse
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError, UnsupportedError

#: The name of the axis that collective operations work along: all ranks, in order.
AXIS: Final = "ranks"
#: Names that stand for all ranks, whatever moves the data.
WORLD: Final = ("world", "hccl_world_group", "nccl_world_group", "mccl_world_group")
#: What moves data between ranks, by the names users know; None: by the device.
_BACKENDS: Final = ("gloo", "mpi", "nccl", "mccl", "hccl")


@dataclass(frozen=True)
class Place:
    """Where a process stands among those that a launcher started.

    Attributes:
        rank: its number.
        size: how many there are.
        local_rank: its number on its machine.
        local_size: how many there are on its machine.
        address: ``HOST:PORT`` where rank 0 introduces the processes to each other; None if nothing tells.
        launcher: what started them.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    address: str | None
    launcher: str


class _Cluster:
    """The state of this process."""

    def __init__(self) -> None:
        self.place = Place(0, 1, 0, 1, None, "none")
        self.backend = ""
        self.groups: dict[str, tuple[int, ...]] = {}
        self.mesh: Mesh | None = None


_cluster = _Cluster()


def from_environment(env: Mapping[str, str] = os.environ) -> Place | None:
    """The place that a launcher's environment variables tell; None where they tell of one process alone.

    Understood, in this order: ``msrun`` and MindSpore's own names (``MS_WORKER_NUM``, ``MS_NODE_ID``, ``RANK_ID``,
    ``RANK_SIZE``, ``MS_SCHED_HOST``, ``MS_SCHED_PORT``), Open MPI, PMI (MPICH), and Slurm.

    Raises:
        ArgumentValueError: a variable that is no whole number, or a rank outside the group.
    """
    for launcher, size, rank, local_rank, local_size in _LAUNCHERS:
        if not env.get(size) or not _first(env, rank):
            continue
        count, number = _whole(env, size), _whole(env, _first(env, rank) or "")
        if count < 2 or (launcher == "srun" and introduction.in_batch_script(env)):
            continue
        if not 0 <= number < count:
            raise ArgumentValueError("init", _first(env, rank) or "", got=str(number), takes=f"0 to {count - 1}")
        local = _first(env, local_rank)
        held = _first(env, local_size)
        on_machine = introduction.slurm_local_size(env) if launcher == "srun" else None
        on_machine = on_machine or (_whole(env, held) if held else count)
        address = _address(env, launcher, on_machine == count)
        return Place(number, count, _whole(env, local) if local else number, on_machine, address, launcher)
    return None


#: Launchers: name, variable of the size, variables of the rank, of the rank on the machine, of the size there.
_LAUNCHERS: Final = (
    ("msrun", "MS_WORKER_NUM", ("MS_NODE_ID", "RANK_ID"), ("MS_LOCAL_RANK", "DEVICE_ID"), ("MS_LOCAL_WORKER_NUM",)),
    ("msrun", "RANK_SIZE", ("RANK_ID",), ("DEVICE_ID",), ("LOCAL_RANK_SIZE",)),
    ("mpirun", "OMPI_COMM_WORLD_SIZE", ("OMPI_COMM_WORLD_RANK",), ("OMPI_COMM_WORLD_LOCAL_RANK",),
     ("OMPI_COMM_WORLD_LOCAL_SIZE",)),
    ("mpirun", "PMI_SIZE", ("PMI_RANK",), ("MPI_LOCALRANKID",), ("MPI_LOCALNRANKS",)),
    ("srun", "SLURM_STEP_NUM_TASKS", ("SLURM_PROCID",), ("SLURM_LOCALID",), ("SLURM_NTASKS_PER_NODE",)),
    ("srun", "SLURM_NTASKS", ("SLURM_PROCID",), ("SLURM_LOCALID",), ("SLURM_NTASKS_PER_NODE",)),
)  # fmt: skip


def _first(env: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((name for name in names if env.get(name)), None)


def _whole(env: Mapping[str, str], name: str) -> int:
    try:
        return int(env[name])
    except ValueError:
        raise ArgumentValueError("init", name, got=repr(env[name]), takes="a whole number") from None


def _address(env: Mapping[str, str], launcher: str, one_machine: bool) -> str | None:
    for host, port in (("MS_SCHED_HOST", "MS_SCHED_PORT"), ("MASTER_ADDR", "MASTER_PORT")):
        if env.get(host) and env.get(port):
            return f"[{env[host]}]:{env[port]}" if ":" in env[host] else f"{env[host]}:{env[port]}"
    if launcher == "srun":
        return introduction.slurm_address(env)
    return introduction.mpi_address(env, one_machine) if launcher == "mpirun" else None


def connect(place: Place, backend: str | None = None, seconds: float = 600) -> None:
    """Meet the other ranks; every one of them has to call it. Nothing happens if they have met.

    Args:
        place: where this process stands.
        backend: ``"gloo"``, ``"mpi"`` or ``"nccl"`` (``"mccl"`` is MindSpore's name of what moves data between CPUs).
        seconds: how long to wait for the others.

    Raises:
        UnsupportedError: ``"hccl"``, which needs an Ascend chip.
        StateError: tensors have been made already, or the others did not come in time.
    """
    if is_connected():
        return
    moved_by = check_backend(backend)
    pulse.start()
    if place.size > 1:
        if place.address is None:
            raise StateError(
                "init", message=f"rank {place.rank} of {place.size} does not know where to meet the others",
                hint="set MS_SCHED_HOST and MS_SCHED_PORT to a port of rank 0's machine, or start with mycelia-run",
            )  # fmt: skip
        _meet(place, moved_by, seconds)
    _cluster.place, _cluster.backend = place, moved_by
    _cluster.groups = {}
    if place.size > 1:
        pulse.leave_when_failing()
        _cluster.mesh = Mesh(np.array(jax.devices()), (AXIS,))
        wait_for_all()


def check_backend(backend: str | None) -> str:
    """The backend, ``"gloo"`` where none is named."""
    if backend is None:
        return "gloo"
    if not isinstance(backend, str):
        raise ArgumentTypeError("init", "backend_name", got=type(backend).__name__, takes="a str or None")
    if backend not in _BACKENDS:
        raise ArgumentValueError("init", "backend_name", got=repr(backend), takes='"gloo", "mpi", "nccl" or "mccl"')
    if backend == "hccl":
        raise UnsupportedError(
            "init", "backend_name", got='"hccl"', takes='"gloo", "mpi", "nccl" or "mccl" here',
            hint="HCCL moves data between Ascend chips, which need a PJRT plugin for XLA, and none is public",
        )  # fmt: skip
    return "gloo" if backend == "mccl" else backend


#: How long ranks that have ended wait for those that still work on, in seconds.
_FAREWELL: Final = 7 * 24 * 3600


def _meet(place: Place, backend: str, seconds: float) -> None:
    if backend in ("gloo", "mpi"):
        jax.config.update("jax_cpu_collectives_implementation", backend)
    assert place.address is not None
    jax.config.update("jax_enable_preemption_service", False)  # it would keep SIGTERM from ending a rank
    if backend == "gloo":
        introduction.let_gloo_use(introduction.own_address(place.address))
    try:
        jax.distributed.initialize(
            place.address, place.size, place.rank, local_device_ids=None if backend != "nccl" else [place.local_rank],
            initialization_timeout=max(1, round(seconds)), shutdown_timeout_seconds=_FAREWELL,
        )  # fmt: skip
    except RuntimeError as error:
        if "must be called before" in str(error):
            raise StateError(
                "init", message="tensors were made before the ranks had met",
                hint="call init() right after importing, before any tensor or network is made",
            ) from None  # fmt: skip
        raise StateError(
            "init", message=f"rank {place.rank} of {place.size} did not meet the others at {place.address} within "
            f"{seconds:g} s: {str(error).splitlines()[0]}",
            hint="are all of them running, and can they reach that address?",
        ) from None  # fmt: skip


def wait_for_all() -> None:
    """Return when all ranks have called it. The first time they make the connections that they send through."""
    if _cluster.place.size > 1:
        Together(_one_of_each)(jax.numpy.ones(())).block_until_ready()


def _one_of_each(x: Any) -> Any:
    return jax.lax.psum(x, AXIS)


def disconnect() -> None:
    """Leave the other ranks."""
    if is_connected() and _cluster.place.size > 1:
        jax.distributed.shutdown()
    _cluster.__init__()  # type: ignore[misc]


def is_connected() -> bool:
    """Whether :func:`connect` was called."""
    return bool(_cluster.backend)


def place() -> Place:
    """Where this process stands; rank 0 of 1 before it has met others."""
    return _cluster.place


def backend() -> str:
    """What moves data between ranks; empty before they have met."""
    return _cluster.backend


def add_group(name: str, ranks: Sequence[int]) -> None:
    """Call some ranks by a name."""
    _cluster.groups[name] = tuple(ranks)


def remove_group(name: str) -> None:
    """Forget a group."""
    del _cluster.groups[name]


def group_names() -> list[str]:
    """The names of the groups that were made."""
    return list(_cluster.groups)


def ranks_of(group: str) -> tuple[int, ...] | None:
    """The ranks of a group in its order; None if there is no group of that name."""
    if group in WORLD:
        return tuple(range(_cluster.place.size))
    return _cluster.groups.get(group)


def partition(ranks: tuple[int, ...]) -> list[list[int]] | None:
    """All ranks in groups of one size, ``ranks`` among them as they are; None if the others do not make groups.

    What stands in the other groups matters to nobody, except that ranks whose groups have a regular pattern get the
    same partition and so the same program.
    """
    others = [r for r in range(_cluster.place.size) if r not in ranks]
    n = len(ranks)
    if len(others) % n:
        return None
    return sorted([list(ranks), *[others[i : i + n] for i in range(0, len(others), n)]])


class Together:
    """A function of arrays, compiled as a program in which ranks communicate; arrays in and out are local.

    Args:
        run: gives an array, or a list or tuple of them.
        donated: places of inputs whose memory the outputs may take.
    """

    def __init__(self, run: Callable[..., Any], donated: Sequence[int] = ()) -> None:
        mesh = _cluster.mesh
        assert mesh is not None, "there are no other ranks"
        self._sharding = NamedSharding(mesh, PartitionSpec())
        mapped = jax.shard_map(run, mesh=mesh, in_specs=PartitionSpec(), out_specs=PartitionSpec(), check_vma=False)
        mapped.__name__ = run.__name__
        self._fn = jax.jit(mapped, donate_argnums=tuple(donated), keep_unused=True)

    def __call__(self, *arrays: Any) -> Any:
        """Run on arrays of this process; the ranks of each group in it have to run it, too."""
        join = jax.make_array_from_single_device_arrays
        out = self._fn(*[join(a.shape, self._sharding, [a]) for a in arrays])
        if isinstance(out, (list, tuple)):
            return [o.addressable_data(0) for o in out]
        return out.addressable_data(0)

    def lower(self, *arrays: Any) -> Any:
        """The ``jax.stages.Lowered`` for arrays or their types."""
        return self._fn.lower(*[jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=self._sharding) for a in arrays])
