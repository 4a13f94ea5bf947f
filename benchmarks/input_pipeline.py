"""Reading, decoding, augmenting and batching data sets, beside torch and MindSpore.

    python benchmarks/input_pipeline.py --mnist FOLDER
    python benchmarks/input_pipeline.py --images --workers 1,2 --json out.json
    python benchmarks/input_pipeline.py --wait --mnist FOLDER

``--mnist FOLDER`` has the four idx files. ``--images`` makes a folder of JPEG files, 100 classes, about 256 pixels
square, and removes it at the end; ``--folder`` keeps it for the next run. Each contender has a process of its own,
which is stopped while it is not its turn. A turn is one whole pass over the data, from making the iterator to the last
batch, as tensors of that framework; the first turn is not counted. All contenders give the same batches in shape and
dtype, and as many of each label, which is checked; crops and orders are random. On a machine that is shared, the
processor time each sample takes says more than samples per second. ``--wait`` tells how long the steps of
``Model.train`` wait for their data.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
MNIST_MEAN, MNIST_STD = 0.1307, 0.3081
PR_SET_PDEATHSIG = 1  # linux/prctl.h
IMAGE_BATCH, MNIST_BATCH = 32, 64

# The data --------------------------------------------------------------------------------------------------


def make_images(folder: Path, count: int, classes: int = 100) -> None:
    """Write ``count`` JPEG files of about 256 x 256 pixels into folders of classes: clouds, edges and some grain."""
    import io

    from PIL import Image

    draw = np.random.default_rng(1)
    scenes = [_scene(draw) for _ in range(64)]
    for number in range(count):
        scene = scenes[int(draw.integers(len(scenes)))]
        height, width = draw.integers(224, 289, 2)
        top, left = draw.integers(0, 320 - height), draw.integers(0, 320 - width)
        part = scene[top : top + height, left : left + width].astype(np.int16)
        part = np.clip(part + draw.integers(-40, 41, (1, 1, 3)), 0, 255).astype(np.uint8)
        place = folder / f"class_{number % classes:03d}"
        place.mkdir(parents=True, exist_ok=True)
        stream = io.BytesIO()
        Image.fromarray(part).save(stream, "JPEG", quality=90)
        (place / f"{number:05d}.jpg").write_bytes(stream.getvalue())


def _scene(draw: np.random.Generator) -> np.ndarray:
    from PIL import Image

    total = np.zeros((320, 320, 3))
    for cells, weight in ((3, 90), (8, 50), (24, 25), (80, 12)):
        noise = (draw.random((cells, cells, 3)) * 255).astype(np.uint8)
        total += (np.array(Image.fromarray(noise).resize((320, 320), Image.Resampling.BICUBIC)) / 255 - 0.5) * weight
    for _ in range(6):  # things with edges
        top, left, size = *draw.integers(0, 260, 2), int(draw.integers(20, 120))
        total[top : top + size, left : left + size] += draw.integers(-60, 61, 3)
    total += draw.normal(0, 4, total.shape)
    return np.clip(total + 128, 0, 255).astype(np.uint8)


def unpack_mnist(source: Path, folder: Path) -> None:
    """Copy the four files, uncompressed, as MindSpore takes them."""
    import gzip

    folder.mkdir(exist_ok=True)
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        packed = source / f"{name}-ubyte.gz"
        data = gzip.decompress(packed.read_bytes()) if packed.exists() else (source / f"{name}-ubyte").read_bytes()
        (folder / f"{name}-ubyte").write_bytes(data)


# The pipelines ---------------------------------------------------------------------------------------------


def mindspore_pipeline(ds: Any, types: Any, job: str, folder: str, workers: int) -> Callable[[], Iterator[Any]]:
    """The pipeline in MindSpore's API: Mycelia's or MindSpore's, by the modules given."""
    vision, transforms = ds.vision, ds.transforms
    if job == "mnist":
        data = ds.MnistDataset(folder, "train", num_parallel_workers=workers, shuffle=True)
        chain = [
            vision.Rescale(1 / 255, 0.0), vision.Normalize([MNIST_MEAN], [MNIST_STD]), vision.HWC2CHW(),
        ]  # fmt: skip
        data = data.map(chain, "image", num_parallel_workers=workers)
        data = data.map(transforms.TypeCast(types.int32), "label", num_parallel_workers=workers)
        data = data.batch(MNIST_BATCH)
    else:
        data = ds.ImageFolderDataset(folder, num_parallel_workers=workers, shuffle=True)
        chain = [
            vision.RandomCropDecodeResize(224), vision.RandomHorizontalFlip(0.5), vision.Normalize(MEAN, STD),
            vision.HWC2CHW(),
        ]  # fmt: skip
        data = data.map(chain, "image", num_parallel_workers=workers).batch(IMAGE_BATCH)
    return lambda: data.create_tuple_iterator(num_epochs=1)


def torch_pipeline(job: str, folder: str, workers: int) -> tuple[Callable[[], Iterator[Any]], str]:
    """The pipeline of ``torch.utils.data``, with torchvision's transforms where it is installed."""
    import torch
    from torch.utils import data

    try:
        from torchvision import transforms as tv
    except (ImportError, RuntimeError):
        tv = None
    options: dict[str, Any] = {"shuffle": True, "num_workers": workers, "persistent_workers": workers > 0}
    if job == "mnist":
        source: Any = _TorchMnist(folder, tv)
        loader = data.DataLoader(source, MNIST_BATCH, **options)
    else:
        source = _TorchFolder(folder, tv)
        loader = data.DataLoader(source, IMAGE_BATCH, **options)
    return lambda: iter(loader), f"torch {torch.__version__}" + (", torchvision" if tv else ", PIL")


class _TorchMnist:
    """Digits as torchvision's MNIST gives them: a PIL image for each, then ToTensor and Normalize."""

    def __init__(self, folder: str, tv: Any) -> None:
        self.images = _idx(folder, "train-images-idx3-ubyte", 16).reshape(-1, 28, 28)
        self.labels = _idx(folder, "train-labels-idx1-ubyte", 8).astype(np.int64)
        self.transform = tv.Compose([tv.ToTensor(), tv.Normalize((MNIST_MEAN,), (MNIST_STD,))]) if tv else _digit

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        from PIL import Image

        return self.transform(Image.fromarray(self.images[number])), int(self.labels[number])


def _idx(folder: str, name: str, head: int) -> np.ndarray:
    return np.frombuffer(Path(folder, name).read_bytes(), np.uint8, offset=head)


def _digit(image: Any) -> Any:
    import torch

    return (torch.from_numpy(np.array(image)).float().div_(255).sub_(MNIST_MEAN).div_(MNIST_STD))[None]


class _TorchFolder:
    """As torchvision's ImageFolder: paths and labels, opened by PIL."""

    def __init__(self, folder: str, tv: Any) -> None:
        classes = sorted(p.name for p in Path(folder).iterdir())
        self.items = [(str(p), i) for i, c in enumerate(classes) for p in sorted(Path(folder, c).iterdir())]
        mean, std = [m / 255 for m in MEAN], [s / 255 for s in STD]
        self.transform = _crop
        if tv:
            self.transform = tv.Compose(
                [tv.RandomResizedCrop(224), tv.RandomHorizontalFlip(), tv.ToTensor(), tv.Normalize(mean, std)]
            )

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        from PIL import Image

        path, label = self.items[number]
        with open(path, "rb") as stream:
            return self.transform(Image.open(stream).convert("RGB")), label


def _crop(image: Any) -> Any:
    import math
    import random

    import torch
    from PIL import Image

    width, height = image.size
    while True:
        area = width * height * random.uniform(0.08, 1.0)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if w <= width and h <= height:
            break
    left, top = random.randint(0, width - w), random.randint(0, height - h)
    image = image.resize((224, 224), Image.Resampling.BILINEAR, (left, top, left + w, top + h))
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    made = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float()
    return made.sub_(torch.tensor(MEAN)[:, None, None]).div_(torch.tensor(STD)[:, None, None])


# A contender in its process -----------------------------------------------------------------------------------


def serve(framework: str, job: str, folder: str, workers: int) -> None:
    """Answer each line of the standard input by a pass; ``framework`` is mycelia, mindspore or torch."""
    if sys.platform == "linux":  # end with the parent, however that ends
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        if framework == "torch":
            begin, version = torch_pipeline(job, folder, workers)
        elif framework == "mindspore":
            import mindspore
            import mindspore.dataset as ds

            begin, version = mindspore_pipeline(ds, mindspore, job, folder, workers), mindspore.__version__
        else:
            import mycelia
            import mycelia.dataset as ours

            begin, version = mindspore_pipeline(ours, mycelia, job, folder, workers), metadata.version("mycelia")
    except (ImportError, RuntimeError) as error:
        answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"[:200]}) + "\n")
        return
    answers.write(json.dumps({"version": version}) + "\n")
    for line in sys.stdin:
        answers.write(json.dumps(_pass(begin, check=line.strip() == "check")) + "\n")


def _pass(begin: Callable[[], Iterator[Any]], check: bool) -> dict[str, Any]:
    """One pass; to check it, what was in the batches is added up."""
    count = batches = labels = 0
    total = squares = 0.0
    first: Any = None
    start = time.perf_counter()
    for images, label in begin():
        count += images.shape[0]
        batches += 1
        if check:
            array = np.asarray(images.numpy() if hasattr(images, "numpy") else images.asnumpy())
            first = first or [list(array.shape[1:]), str(array.dtype)]
            total, squares = total + float(array.mean()), squares + float(np.square(array).mean())
            labels += int(np.asarray(label.numpy() if hasattr(label, "numpy") else label.asnumpy()).sum())
    seconds = time.perf_counter() - start
    found: dict[str, Any] = {"samples": count, "seconds": seconds}
    if check:
        found |= {"batches": batches, "labels": labels, "form": first}
        found |= {"mean": total / batches, "square": squares / batches}
    return found


def cpu_seconds(group: int) -> float:
    """Processor time that the living processes of a group have used, by Linux's /proc; 0 elsewhere."""
    ticks = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[2]) == group:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Contender:
    """A process that makes passes when asked."""

    def __init__(self, framework: str, job: str, folder: str, workers: int, python: str) -> None:
        self.label = f"{framework} {workers}"
        self.seconds: list[float] = []
        self.cpu: list[float] = []
        self.samples = 0
        inherited = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        environment = os.environ | {"GLOG_v": "3", "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(inherited)}
        self.process = subprocess.Popen(
            [python, __file__, "--serve", framework, job, folder, str(workers)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            about = self._answer()
        except BaseException:
            self.close()
            raise
        self.version = about["version"]

    def turn(self, check: bool = False) -> dict[str, Any]:
        """One pass; between turns the process is stopped.

        Raises:
            RuntimeError: the process failed or gave nothing for five minutes.
        """
        assert self.process.stdin is not None
        before = cpu_seconds(self.process.pid)
        os.killpg(self.process.pid, signal.SIGCONT)
        self.process.stdin.write("check\n" if check else "time\n")
        self.process.stdin.flush()
        found = self._answer()
        os.killpg(self.process.pid, signal.SIGSTOP)
        found["cpu"] = cpu_seconds(self.process.pid) - before
        return found

    def _answer(self) -> dict[str, Any]:
        stream = self.process.stdout
        assert stream is not None
        ready, _, _ = select.select([stream], [], [], 300.0)
        line = stream.readline() if ready else ""
        if not line:
            raise RuntimeError("the process gave nothing" if not ready else "the process has ended")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise RuntimeError(found["error"])
        return found

    def close(self) -> None:
        """End the process and whatever it started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            self.process.wait()


def measure(
    job: str, folder: str, asked: list[tuple[str, int]], rounds: int, pythons: dict[str, str]
) -> list[dict[str, Any]]:
    """Passes of all contenders in turns, each round beginning with another one."""
    runners: list[Contender] = []
    results: list[dict[str, Any]] = []
    try:
        for framework, workers in asked:
            try:
                runner = Contender(framework, job, folder, workers, pythons.get(framework, sys.executable))
                found = runner.turn(check=True)
            except RuntimeError as error:
                print(f"not measured: {framework} {workers}: {error}", file=sys.stderr)
                continue
            runners.append(runner)
            results.append({"job": job, "contender": runner.label, "version": runner.version, **found})
        for number in range(rounds):
            shift = number % max(len(runners), 1)
            for runner in runners[shift:] + runners[:shift]:
                found = runner.turn()
                runner.seconds.append(found["seconds"])
                runner.cpu.append(found["cpu"])
                runner.samples = found["samples"]
    finally:
        for runner in runners:
            runner.close()
    for result, runner in zip(results, runners, strict=True):
        result["passes"] = runner.seconds
        result["rate"] = runner.samples / statistics.median(runner.seconds)
        result["best"] = runner.samples / min(runner.seconds)
        result["cpu_us"] = statistics.median(runner.cpu) / runner.samples * 1e6
    for result in results:
        result["agrees"] = _agree(result, results[0])
        workers = int(result["contender"].split()[1]) or 1
        base = next((r for r in results if r["contender"] == f"mycelia {workers}"), None)
        if base is not None:
            ratios = [a / b for a, b in zip(result["passes"], base["passes"], strict=True)]
            result["times_mycelia"] = statistics.median(ratios)
    return results


def _agree(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two pipelines gave as many samples, labels and pixels of about the same size."""
    same = all(one[key] == other[key] for key in ("samples", "batches", "labels", "form"))
    return same and abs(one["mean"] - other["mean"]) < 0.05 and abs(one["square"] / other["square"] - 1) < 0.1


# Waiting in a training ----------------------------------------------------------------------------------------


def wait(job: str, folder: str, workers: int, epochs: int) -> dict[str, Any]:
    """Train with ``Model.train``: the milliseconds between the end of a step and the begin of the next one."""
    import mycelia as ms
    import mycelia.dataset as ds

    ms.set_seed(1)
    ms.set_context(mode=ms.GRAPH_MODE)
    begin = mindspore_pipeline(ds, ms, job, folder, workers)
    data = begin.__closure__[0].cell_contents  # type: ignore[index] # the dataset the iterator is made of
    layers = [ms.nn.Conv2d(1, 6, 5), ms.nn.ReLU(), ms.nn.MaxPool2d(2, 2), ms.nn.Flatten(), ms.nn.Dense(6 * 14 * 14, 10)]
    if job == "images":
        layers = [
            ms.nn.Conv2d(3, 32, 7, 2), ms.nn.ReLU(), ms.nn.MaxPool2d(2, 2), ms.nn.Conv2d(32, 64, 3), ms.nn.ReLU(),
            ms.nn.MaxPool2d(2, 2), ms.nn.Conv2d(64, 64, 3), ms.nn.ReLU(), ms.nn.MaxPool2d(2, 2), ms.nn.Flatten(),
            ms.nn.Dense(64 * 14 * 14, 100),
        ]  # fmt: skip
    network = ms.nn.SequentialCell(*layers)
    optimizer = ms.nn.Momentum(network.trainable_params(), 0.001, 0.9)
    loss = ms.nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    watch = _watch(ms)
    start = time.perf_counter()
    ms.Model(network, loss, optimizer).train(epochs, data, callbacks=[watch])
    waits, steps, firsts = watch.waits, watch.steps, watch.firsts
    return {
        "job": job, "workers": workers, "steps": len(steps), "seconds": time.perf_counter() - start,
        "step_ms": statistics.median(steps), "wait_ms": statistics.median(waits),
        "wait_p99_ms": sorted(waits)[int(0.99 * len(waits))], "wait_mean_ms": statistics.fmean(waits),
        "epoch_begin_ms": statistics.median(firsts),
        "share": sum(waits) / (sum(waits) + sum(steps)),
    }  # fmt: skip


def _watch(ms: Any) -> Any:
    class Watch(ms.train.Callback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.waits: list[float] = []
            self.steps: list[float] = []
            self.firsts: list[float] = []
            self.before, self.began, self.first = 0.0, 0.0, True

        def on_train_epoch_begin(self, context: Any) -> None:
            self.before, self.first = time.perf_counter(), True

        def on_train_step_begin(self, context: Any) -> None:
            self.began = time.perf_counter()
            waited = (self.began - self.before) * 1e3
            (self.firsts if self.first else self.waits).append(waited)

        def on_train_step_end(self, context: Any) -> None:
            np.asarray(context.original_args().net_outputs)  # the step is over when its loss is there
            self.before = time.perf_counter()
            if not (self.first and not self.steps):  # not the step that compiles
                self.steps.append((self.before - self.began) * 1e3)
            self.first = False

    return Watch()


# The command --------------------------------------------------------------------------------------------------


def table(results: list[dict[str, Any]]) -> str:
    """The rates as text."""
    lines = ["job     contender      samples/s     best   CPU us each   x time of mycelia   agrees"]
    for r in results:
        ratio = f"{r['times_mycelia']:.2f}" if "times_mycelia" in r else "-"
        agrees = "yes" if r["agrees"] else "NO"
        lines.append(
            f"{r['job']:7} {r['contender']:13} {r['rate']:10,.0f} {r['best']:8,.0f} "
            f"{r['cpu_us']:13.1f} {ratio:>19}   {agrees}"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure input pipelines beside torch and MindSpore.")
    parser.add_argument("--mnist", metavar="FOLDER", help="measure MNIST, in the idx files of this folder")
    parser.add_argument("--images", action="store_true", help="measure a folder of JPEG files")
    parser.add_argument("--count", type=int, default=10_000, help="how many JPEG files")
    parser.add_argument("--folder", help="where the JPEG files are kept; made if it is not there")
    parser.add_argument("--workers", default="1,2", help="numbers of workers; 0 is measured for torch besides")
    parser.add_argument("--peers", default="mindspore,torch", help="who is measured beside Mycelia")
    parser.add_argument("--python-mindspore", default=sys.executable, help="the Python that has MindSpore")
    parser.add_argument("--python-torch", default=sys.executable, help="the Python that has torch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--wait", action="store_true", help="tell how long training steps wait for data instead")
    parser.add_argument("--epochs", type=int, default=2, help="epochs of --wait")
    parser.add_argument("--json", help="keep all results in this file")
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], options.serve[1], options.serve[2], int(options.serve[3]))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that contenders are ended
    if not options.mnist and not options.images:
        parser.error("give --mnist FOLDER, --images or both")
    counts = [int(n) for n in options.workers.split(",")]
    pythons = {"mindspore": options.python_mindspore, "torch": options.python_torch}
    peers = [p for p in options.peers.split(",") if p]
    asked = [(f, n) for n in counts for f in ("mycelia", *peers)] + [("torch", 0)] * ("torch" in peers)
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="pipeline-") as made:
        digits, images = Path(made, "mnist"), Path(options.folder or Path(made, "images"))
        if options.mnist:
            unpack_mnist(Path(options.mnist), digits)
        if options.images and not any(images.glob("class_*")):
            make_images(images, options.count)
        for job, folder in [("mnist", digits)] * bool(options.mnist) + [("images", images)] * options.images:
            if options.wait:
                results += [wait(job, str(folder), n, options.epochs) for n in counts]
            else:
                results += measure(job, str(folder), asked, options.rounds, pythons)
    print("\n".join(json.dumps(r) for r in results) if options.wait else table(results))
    if options.json:
        beside = Path(f"{options.json}.writing")
        beside.write_text(json.dumps(results, indent=1) + "\n")
        os.replace(beside, options.json)
    return 0 if all(r.get("agrees", True) for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
