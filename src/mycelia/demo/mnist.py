"""``mycelia demo``: LeNet on handwritten digits, trained in both modes from one seed.

The network is defined once. It is trained in PYNATIVE_MODE, then, with one line changed, in GRAPH_MODE;
the two runs must give the same losses. The trained network is tested, saved, read back and asked for a
prediction.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import mycelia as ms
from mycelia import nn, ops
from mycelia.dataset import MnistDataset, vision
from mycelia.train import Accuracy, Callback, Model

SEED = 1
BATCH = 32
MEAN, DEVIATION = 0.1307, 0.3081  # of MNIST's pixels, scaled to [0, 1]


class LeNet(nn.Cell):
    """LeNet-5 (LeCun et al., 1998) with ReLU and max pooling; (N, 1, 28, 28) images to (N, 10) scores."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="pad", padding=2, has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(400, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 10)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.flatten(self.pool(ops.relu(self.conv2(x))))
        return self.fc3(ops.relu(self.fc2(ops.relu(self.fc1(x)))))


@dataclass
class Outcome:
    """What training in one mode gave: losses per step, seconds per step, the trained network."""

    title: str
    model: Model
    network: nn.Cell
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    accuracy: float = 0.0

    @property
    def step_seconds(self) -> float:
        """Median time of a step after the first, which compiles."""
        return float(np.median(self.seconds[1:] or self.seconds))

    @property
    def compile_seconds(self) -> float:
        """What the first step took longer than a usual one."""
        return max(self.seconds[0] - self.step_seconds, 0.0)


class _Watch(Callback):
    """Records each step's loss and time, and moves the progress bar."""

    def __init__(self, outcome: Outcome, progress: Progress, task: Any) -> None:
        super().__init__()
        self.outcome, self.progress, self.task = outcome, progress, task
        self.start = 0.0

    def on_train_step_begin(self, run_context: Any) -> None:
        self.start = time.perf_counter()

    def on_train_step_end(self, run_context: Any) -> None:
        loss = float(run_context.original_args().net_outputs)
        self.outcome.seconds.append(time.perf_counter() - self.start)
        self.outcome.losses.append(loss)
        self.progress.update(self.task, advance=1, loss=f"{loss:.4f}")


def images(folder: Path, usage: str, *, shuffle: bool) -> Any:
    """Batches of (N, 1, 28, 28) float32 images of mean 0 and deviation 1, and (N,) int32 labels."""
    data: Any = MnistDataset(str(folder), usage=usage, shuffle=shuffle)
    data = data.map([vision.Rescale(1 / 255 / DEVIATION, -MEAN / DEVIATION), vision.HWC2CHW()], input_columns="image")
    data = data.map(lambda label: label.astype(np.int32), input_columns="label")
    return data.batch(BATCH, drop_remainder=usage == "train")


def train(title: str, folder: Path, epochs: int, progress: Progress) -> Outcome:
    """Train a new LeNet from the fixed seed in the mode that is set."""
    ms.set_seed(SEED)
    network = LeNet()
    data = images(folder, "train", shuffle=True)
    steps = data.get_dataset_size() * epochs
    optimizer = nn.Adam(network.trainable_params(), nn.CosineDecayLR(1e-5, 3e-3, steps))
    model = Model(network, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy": Accuracy()})
    outcome = Outcome(title, model, network)
    task = progress.add_task(title, total=steps, loss="")
    model.train(epochs, data, callbacks=[_Watch(outcome, progress, task)])
    outcome.accuracy = model.eval(images(folder, "test", shuffle=False))["accuracy"]
    return outcome


def _modes(mode: str) -> Iterator[tuple[str, int]]:
    if mode in ("both", "pynative"):
        yield "PyNative", ms.PYNATIVE_MODE
    if mode in ("both", "graph"):
        yield "Graph", ms.GRAPH_MODE


def run(data: Path, epochs: int = 6, mode: str = "both") -> int:
    """Train, compare, test, save, reload and predict, reporting on the terminal.

    Args:
        data: folder with the MNIST files (``train-images-idx3-ubyte`` and its kin, plain or ``.gz``).
        epochs: passes over the training images.
        mode: ``"both"``, ``"pynative"`` or ``"graph"``.

    Returns:
        0, or 1 if the two modes disagree or the reloaded network predicts otherwise.
    """
    console = Console()
    console.print("LeNet on handwritten digits; the mode is the only line that changes.")
    outcomes: list[Outcome] = []
    columns = (
        TextColumn("{task.description:>9}"), BarColumn(), MofNCompleteColumn(), TextColumn("loss {task.fields[loss]}"),
        TimeElapsedColumn(),
    )  # fmt: skip
    before = ms.get_context("mode")
    try:
        with Progress(*columns, console=console) as progress:
            for title, value in _modes(mode):
                ms.set_context(mode=value)
                outcomes.append(train(title, data, epochs, progress))
        same = _compare(console, outcomes, epochs)
        restored = _save_and_reload(console, outcomes[-1], data)
    finally:
        ms.set_context(mode=before)
    _report(console, outcomes)
    return 0 if same and restored else 1


def _compare(console: Console, outcomes: list[Outcome], epochs: int) -> bool:
    """Compare the losses of the modes; rounding differs, and training makes a difference grow."""
    if len(outcomes) < 2:
        return True
    first, second = (np.array(o.losses) for o in outcomes)
    difference = np.abs(first - second) / np.maximum(np.abs(first), 1e-8)
    early = float(difference[:20].max())
    means = [np.array([part.mean() for part in np.array_split(losses, epochs)]) for losses in (first, second)]
    late = float((np.abs(means[0] - means[1]) / np.maximum(means[0], 1e-8)).max())
    console.print(
        f"losses of the two modes: max relative difference {early:.1e} over the first {min(20, len(first))} steps, "
        f"{late:.1e} between the means of an epoch"
    )
    return early < 1e-3


def _save_and_reload(console: Console, outcome: Outcome, data: Path) -> bool:
    batch = next(images(data, "test", shuffle=False).create_dict_iterator(num_epochs=1))
    expected = outcome.model.predict(batch["image"]).asnumpy()
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "lenet.ckpt")
        ms.save_checkpoint(outcome.network, file)
        size = Path(file).stat().st_size
        fresh = LeNet()
        ms.load_param_into_net(fresh, ms.load_checkpoint(file))
    scores = Model(fresh).predict(batch["image"]).asnumpy()
    equal = bool(np.array_equal(scores, expected))
    digits, labels = scores[:10].argmax(1).tolist(), batch["label"].asnumpy()[:10].tolist()
    console.print(
        f"checkpoint: {size / 1024:.0f} KiB saved and read back, predictions {'equal' if equal else 'DIFFERENT'}; "
        f"the first ten are {' '.join(map(str, digits))}, the labels {' '.join(map(str, labels))}"
    )
    return equal


def _report(console: Console, outcomes: list[Outcome]) -> None:
    table = Table()
    for name in ("mode", "step time", "compile time", "test accuracy"):
        table.add_column(name, justify="left" if name == "mode" else "right")
    for o in outcomes:
        table.add_row(o.title, f"{o.step_seconds * 1e3:.2f} ms", f"{o.compile_seconds:.2f} s", f"{o.accuracy:.2%}")
    console.print(table)
