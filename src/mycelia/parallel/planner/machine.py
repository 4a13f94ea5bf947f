"""What a machine can do: rates of computing, links by level, memory; measured, or written down by hand.

Communication follows the α-β model (R. W. Hockney, 1994): a message of ``b`` bytes takes ``α + b β`` seconds. A
collective over ``n`` ranks takes the shortest of the textbook algorithms, which all send the least bytes per rank that
can be (R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective communication operations in MPICH", 2005;
J. Bruck et al., 1997):

==================  =======================  ============================================
collective          bytes sent per rank      messages one after the other
==================  =======================  ============================================
``all_reduce``      ``2 b (n - 1) / n``      ``2 (n - 1)`` (ring), ``2 log2 n`` (halving)
``all_gather``      ``b (n - 1) / n``        ``n - 1`` (ring), ``log2 n`` (Bruck)
``reduce_scatter``  ``b (n - 1) / n``        ``n - 1`` (ring), ``log2 n`` (halving)
``all_to_all``      ``b (n - 1) / n``        ``n - 1`` (pairs), ``log2 n`` for ``b/2`` each
``permute``         ``b``                    1
==================  =======================  ============================================

``b`` is the size of the whole that a rank has before (all but gathering) or after (gathering). Reducing and gathering
over several levels is done level by level where that is faster: what crosses an outer, slower one is only the part of
each device of the inner one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import ceil, log2, prod
from pathlib import Path
from typing import Any

import numpy as np

from mycelia.core import cluster
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError

#: What a collective sends per rank, as a multiple of its bytes times ``(n - 1) / n``.
_SENT = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}


@dataclass(frozen=True)
class Level:
    """One level of a machine's topology.

    Attributes:
        name: such as ``"socket"``, ``"node"``, ``"network"``.
        size: how many of the level below it joins.
        alpha: seconds that a message takes however short it is.
        beta: seconds for each byte that a device sends.
    """

    name: str
    size: int
    alpha: float
    beta: float


@dataclass(frozen=True)
class Machine:
    """Devices and what joins them.

    Attributes:
        name: what it is called in reports.
        levels: the topology, from the inside out; the sizes' product is the number of devices.
        flops: floating-point operations per second of one device in large products, by dtype; ``"default"`` for others.
        bandwidth: bytes per second that a device reads and writes its memory with.
        memory: bytes that a device may use.
        overhead: seconds that an operator takes however little it has to do.

    >>> machine = Machine("pair", (Level("link", 2, 1e-5, 1e-9),), {"default": 1e11}, 1e10, 2**34)
    >>> round(machine.seconds("all_reduce", 2, 1e6, (2,), 0), 6)
    0.00102
    """

    name: str
    levels: tuple[Level, ...]
    flops: dict[str, float] = field(hash=False)
    bandwidth: float
    memory: float
    overhead: float = 0.0

    def __post_init__(self) -> None:
        if not self.flops:
            raise ArgumentValueError("Machine", "flops", got="no rate", takes='a rate for "default" or some dtypes')
        for argument, values in (
            ("flops", self.flops.values()), ("bandwidth", (self.bandwidth,)), ("memory", (self.memory,)),
            ("levels", [level.size for level in self.levels]),
        ):  # fmt: skip
            for value in values:
                if not value > 0:
                    raise ArgumentValueError("Machine", argument, got=str(value), takes="numbers above 0")
        if self.overhead < 0:
            raise ArgumentValueError("Machine", "overhead", got=str(self.overhead), takes="0 or more")
        for level in self.levels:
            if level.alpha < 0 or level.beta < 0:
                raise ArgumentValueError("Machine", "levels", got=str(level), takes="alpha and beta of 0 or more")

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return prod([level.size for level in self.levels])

    def rate(self, dtype: str) -> float:
        """Floating-point operations per second in products of a dtype."""
        found = self.flops.get(dtype) or self.flops.get("default")
        return found if found is not None else min(self.flops.values())

    @property
    def outermost(self) -> tuple[float, float]:
        """α and β of the outermost level."""
        return (self.levels[-1].alpha, self.levels[-1].beta) if self.levels else (0.0, 0.0)

    def link(self, sizes: Sequence[int], axis: int) -> tuple[float, float]:
        """α and β of the slowest link that a mesh axis crosses."""
        span = prod(sizes[axis:])
        reach = 1
        for level in self.levels:
            reach *= level.size
            if reach >= span:
                return level.alpha, level.beta
        return self.outermost

    def seconds(self, kind: str, n: int, nbytes: float, sizes: Sequence[int], axis: int, times: int = 1) -> float:
        """How long a collective over an axis takes; ``times`` if it is done in that many equal pieces."""
        alpha, beta = self.link(sizes, axis)
        flat = collective_seconds(kind, n, nbytes / times, alpha, beta)
        crossed = self._crossed(sizes, axis) if kind in ("all_reduce", "all_gather", "reduce_scatter") else []
        if len(crossed) > 1 and prod([count for count, _, _ in crossed]) == n:
            flat = min(flat, _by_level(kind, nbytes / times, crossed))
        return flat * times

    def _crossed(self, sizes: Sequence[int], axis: int) -> list[tuple[int, float, float]]:
        """The levels that an axis crosses, from the inside out: how many it joins at each, α and β."""
        stride, n = prod(sizes[axis + 1 :]), sizes[axis]
        found = []
        reach, joined = 1, 1
        for level in self.levels:
            reach *= level.size
            within = min(n, max(1, reach // stride))
            if within % joined:
                return []
            if within > joined:
                found.append((within // joined, level.alpha, level.beta))
            joined = within
        return found

    def resized(self, devices: int) -> Machine:
        """The same machine with another number of devices: the outermost level is made larger or smaller.

        Raises:
            ArgumentValueError: the inner levels do not make that number.
        """
        if devices == self.devices:
            return self
        if not self.levels:
            raise ArgumentValueError("resized", "devices", got=str(devices), takes="1, as there are no links")
        kept: list[Level] = []
        left = devices
        for i, level in enumerate(self.levels):
            last = i == len(self.levels) - 1
            size = left if last or left < level.size else level.size
            if left % size:
                raise ArgumentValueError(
                    "resized", "devices", got=str(devices), takes=f"a multiple of {devices // left * level.size}"
                )
            kept.append(Level(level.name, size, level.alpha, level.beta))
            left //= size
            if left == 1:
                break
        return replace(self, levels=tuple(kept))

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "name": self.name, "levels": [asdict(level) for level in self.levels], "flops": dict(self.flops),
            "bandwidth": self.bandwidth, "memory": self.memory, "overhead": self.overhead,
        }  # fmt: skip

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Machine:
        """From plain data.

        Raises:
            ArgumentValueError: something is missing, or not a number above 0.
        """
        try:
            levels = tuple([Level(**level) for level in data["levels"]])
            return Machine(
                data["name"], levels, dict(data["flops"]), data["bandwidth"], data["memory"], data.get("overhead", 0.0)
            )
        except (KeyError, TypeError) as error:
            raise ArgumentValueError(
                "Machine.from_dict", "data", got=f"a description without {error}",
                takes="name, levels (name, size, alpha, beta), flops, bandwidth, memory",
            ) from None  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file; it is either the old one or the whole new one."""
        write_text(path, json.dumps(self.to_dict(), indent=1) + "\n")

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Machine:
        """Read what :meth:`save` wrote."""
        return Machine.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))

    @staticmethod
    def measure(memory: float | None = None) -> Machine:
        """Time products, memory and all-reduces on the ranks that work together; every one of them has to call it.

        Args:
            memory: bytes that a device may use; by default an equal part of what is free.

        Returns:
            The same machine on every rank: one level of all of them.
        """
        return _measured(memory)


def collective_seconds(kind: str, n: int, nbytes: float, alpha: float, beta: float) -> float:
    """How long a collective of ``n`` ranks takes.

    Raises:
        ArgumentValueError: ``kind`` is none of the five.
    """
    if n <= 1 or nbytes <= 0:
        return 0.0
    if kind == "permute":
        return alpha + nbytes * beta
    if kind not in _SENT:
        raise ArgumentValueError("collective_seconds", "kind", got=repr(kind), takes=", ".join([*_SENT, "permute"]))
    rounds = ceil(log2(n))
    sent = bytes_sent(kind, n, nbytes) * beta
    if kind == "all_to_all":
        return min((n - 1) * alpha + sent, rounds * (alpha + nbytes / 2 * beta))
    direct = kind == "all_gather" or n & (n - 1) == 0  # halving needs a power of two
    messages = rounds if direct else n - 1
    return (2 if kind == "all_reduce" else 1) * messages * alpha + sent


def _by_level(kind: str, nbytes: float, levels: Sequence[tuple[int, float, float]]) -> float:
    """Seconds of reducing or gathering level by level, the innermost first."""
    n, alpha, beta = levels[0]
    if len(levels) == 1:
        return collective_seconds(kind, n, nbytes, alpha, beta)
    inside = collective_seconds("reduce_scatter" if kind == "all_reduce" else kind, n, nbytes, alpha, beta)
    if kind == "all_reduce":
        inside += collective_seconds("all_gather", n, nbytes, alpha, beta)
    return inside + _by_level(kind, nbytes / n, levels[1:])


def bytes_sent(kind: str, n: int, nbytes: float) -> float:
    """The bytes that each rank sends.

    >>> bytes_sent("all_reduce", 4, 1000.0)
    1500.0
    """
    if n <= 1:
        return 0.0
    return nbytes if kind == "permute" else _SENT[kind] * nbytes * (n - 1) / n


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file beside and put it in place."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError("save", "path", got=type(path).__name__, takes="a str or a path")
    temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


# measuring -------------------------------------------------------------------------------------------------------


def _measured(memory: float | None) -> Machine:
    from mycelia.ops import matmul
    from mycelia.ops.collectives import all_reduce
    from mycelia.tensor import Tensor

    place = cluster.place()
    width, count = 512, 1 << 22
    a = Tensor(np.full((width, width), 0.5, np.float32))
    product = _best(lambda: matmul(a, a))
    long = Tensor(np.zeros(count, np.float32))
    passed = _best(lambda: long + 1.0)
    free = memory if memory is not None else _free_bytes() / max(1, place.local_size)
    found = [2.0 * width**3 / product, 2.0 * 4 * count / passed, float(free), _overhead()]
    levels: tuple[Level, ...] = ()
    if place.size > 1:
        everybody = tuple(range(place.size))
        sizes = [1 << k for k in (8, 14, 18, 20, 22)]
        times = []
        for size in sizes:
            x = Tensor(np.zeros(size // 4, np.float32))
            times.append(_best(lambda x=x: all_reduce(x, "sum", everybody)))  # type: ignore[misc]
        alpha, beta = _fitted(place.size, sizes, times)
        found += [alpha, beta]
        mean = all_reduce(Tensor(np.array(found, np.float64)), "sum", everybody).asnumpy() / place.size
        found = [float(v) for v in mean]
        levels = (Level("ranks", place.size, found[4], found[5]),)
    name = f"{place.size} measured rank{'s' if place.size > 1 else ''}"
    return Machine(name, levels, {"default": found[0]}, found[1], found[2], found[3])


def _overhead(count: int = 64) -> float:
    """Seconds of one small operator among many in a compiled program."""
    import jax
    from jax import lax

    def chain(a: Any) -> Any:
        x = a
        for _ in range(count):
            x = lax.dot(x, a)
        return x

    run, small = jax.jit(chain), jax.numpy.zeros((8, 8), np.float32)
    run(small).block_until_ready()
    taken = []
    for _ in range(9):
        start = time.perf_counter()
        run(small).block_until_ready()
        taken.append(time.perf_counter() - start)
    return min(taken) / count


def _fitted(n: int, sizes: Sequence[int], times: Sequence[float]) -> tuple[float, float]:
    """α and β by least squares of relative errors, neither below 0."""
    from scipy.optimize import nnls  # type: ignore[import-untyped]

    unit = [collective_seconds("all_reduce", n, size, 1.0, 0.0) for size in sizes]
    each = [collective_seconds("all_reduce", n, size, 0.0, 1.0) for size in sizes]
    scale = np.asarray(times)
    solved, _ = nnls(np.stack([unit, each], 1) / scale[:, None], np.ones(len(sizes)))
    return float(solved[0]), float(solved[1])


def _best(run: Callable[[], Any], times: int = 5) -> float:
    run().asnumpy()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()._value.block_until_ready()
        taken.append(time.perf_counter() - start)
    return min(taken)


def _free_bytes() -> float:
    try:
        pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # a system that does not tell
        return float(1 << 32)
    return float(pages * size)
