"""``AutoParallel``: a Cell whose work is spread over devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mycelia.core import parallel_context
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.core.layout import device_count
from mycelia.nn.cell import Cell

#: Modes of AutoParallel: what they are called in the context.
_MODES = {
    "semi_auto": ("semi_auto_parallel", None),
    "sharding_propagation": ("auto_parallel", "sharding_propagation"),
    "recursive_programming": ("auto_parallel", "recursive_programming"),
    "auto": ("auto_parallel", "auto"),
}


class AutoParallel(Cell):
    """A network whose tensors are spread over all ranks: one script, N devices.

    Args:
        network: what to run; a forward network, or a training step.
        parallel_mode: ``"semi_auto"``: operators and cells lie as their ``shard`` says, the rest follows from that.

    Settings are those of the methods, whatever :func:`set_auto_parallel_context` says.

    Raises:
        ArgumentTypeError: ``network`` is no Cell.
        ArgumentValueError: an unknown mode.

    >>> import mycelia as ms
    >>> from mycelia import nn
    >>> from mycelia.parallel.auto_parallel import AutoParallel
    >>> net = AutoParallel(nn.Dense(4, 2), parallel_mode="semi_auto")
    >>> net.dataset_strategy("full_batch")
    >>> net(ms.ops.ones((8, 4))).shape
    (8, 2)
    """

    def __init__(self, network: Cell, parallel_mode: str = "semi_auto") -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell):
            raise ArgumentTypeError("AutoParallel", "network", got=type(network).__name__, takes="a Cell")
        if parallel_mode not in _MODES:
            known = " or ".join(f'"{m}"' for m in _MODES)
            raise ArgumentValueError("AutoParallel", "parallel_mode", got=repr(parallel_mode), takes=known)
        self.network = network
        mode, search = _MODES[parallel_mode]
        self._settings: dict[str, Any] = {"parallel_mode": mode}
        if search is not None:
            self._settings["search_mode"] = search

    def dataset_strategy(self, config: Any) -> None:
        """How inputs are spread: ``"data_parallel"``, ``"full_batch"``, or a strategy or Layout for each input."""
        self._set(dataset_strategy=config)

    def hsdp(self, shard_size: int = -1, threshold: int = 64, optimizer_level: str = "level1") -> None:
        """Spread optimizers' states over devices that hold the same parameters.

        Args:
            shard_size: over how many devices; -1: all of them.
            threshold: tensors smaller than this (KiB) stay whole.
            optimizer_level: ``"level1"``: states; ``"level2"``: gradients, too, which follows from where states lie;
                ``"level3"``: parameters, too, which are gathered where they are used.

        Raises:
            ArgumentValueError: another level, a negative threshold, or a size that is not the number of devices.
        """
        levels = ("level1", "level2", "level3")
        if optimizer_level not in levels:
            takes = " or ".join(f'"{n}"' for n in levels)
            raise ArgumentValueError("AutoParallel.hsdp", "optimizer_level", got=repr(optimizer_level), takes=takes)
        if not isinstance(threshold, int) or threshold < 0:
            raise ArgumentValueError("AutoParallel.hsdp", "threshold", got=repr(threshold), takes="KiB from 0 on")
        if shard_size not in (-1, device_count()):
            takes = f"-1 or the number of devices, {device_count()}"
            raise ArgumentValueError("AutoParallel.hsdp", "shard_size", got=repr(shard_size), takes=takes)
        config = {"parallel_optimizer_threshold": threshold, "optimizer_level": optimizer_level}
        self._set(enable_parallel_optimizer=True, parallel_optimizer_config=config)

    def enable_gradients_mean(self) -> None:
        """Average gradients over ranks; what a loss that is a mean over the whole batch does anyway."""
        self._set(gradients_mean=True)

    def _set(self, **options: Any) -> None:
        with parallel_context.options(options):  # refuses what cannot be set
            self._settings.update(options)

    @contextmanager
    def _in_force(self) -> Iterator[None]:
        with parallel_context.options(self._settings):
            yield

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        return self.network(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._in_force():
            return super().__call__(*args, **kwargs)
