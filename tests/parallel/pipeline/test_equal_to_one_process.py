"""Trained as a pipeline, a network has the losses and the parameters of one process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.parallel.pipeline.networks import MICRO_BATCHES, NETWORKS, STEPS, batch, made, plain
from tests.parallel.ranks import run_ranks

from mycelia import nn
from mycelia.parallel.pipeline import train_step
from mycelia.parallel.pipeline.schedules import NAMES

HERE = Path(__file__).parent
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def expected() -> dict[str, tuple[list[float], list[np.ndarray], nn.Cell]]:
    return {kind: plain(kind) for kind in NETWORKS}


@pytest.mark.parametrize("scheduler", NAMES)
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("kind", sorted(NETWORKS))
def test_ranks_played_by_one_process(expected, kind: str, ranks: int, scheduler: str) -> None:
    chunks = 1 if scheduler in ("gpipe", "1f1b") else 2
    net, optimizer = made(kind, ranks * chunks)
    step = train_step(net, nn.CrossEntropyLoss(), optimizer, ranks, MICRO_BATCHES, scheduler)
    losses = [float(step(*batch(kind, k))) for k in range(STEPS)]
    before, parameters, _ = expected[kind]
    np.testing.assert_allclose(losses, before, rtol=0, atol=TOLERANCE)
    for p, wanted in zip(net.get_parameters(), parameters, strict=True):
        np.testing.assert_allclose(p.asnumpy(), wanted, rtol=0, atol=TOLERANCE, err_msg=p.name)
    assert step.timeline is not None
    assert step.executed == {r: step.timeline.computed(r) for r in range(ranks)}


RUN = """
import sys
sys.path.insert(0, {here!r})
from networks import MICRO_BATCHES, STEPS, batch, made
from mycelia.parallel.pipeline import train_step
comm.init()
expected = np.load("expected.npz")

def same(value, key):
    np.testing.assert_allclose(value, expected[key], rtol=0, atol={tolerance}, err_msg=f"{{scheduler}} {{key}}")

for kind, scheduler in {cases!r}:
    chunks = 1 if scheduler in ("gpipe", "1f1b") else 2
    net, optimizer = made(kind, SIZE * chunks)
    step = train_step(net, nn.CrossEntropyLoss(), optimizer, SIZE, MICRO_BATCHES, scheduler)
    same([float(step(*batch(kind, k))) for k in range(STEPS)], f"{{kind}} losses")
    assert step.executed == {{RANK: step.timeline.computed(RANK)}}
    step.collect()
    for cell in (net, optimizer):
        for k, p in enumerate(cell.get_parameters()):
            same(p.asnumpy(), f"{{kind}} {{type(cell).__name__}} {{k}}")
    print("equal:", kind, scheduler)
"""


def check(expected, size: int, cases: list[tuple[str, str]], folder: Path) -> None:
    arrays = {}
    for kind in {kind for kind, _ in cases}:
        losses, parameters, optimizer = expected[kind]
        arrays[f"{kind} losses"] = np.array(losses)
        net = NETWORKS[kind][0].__name__
        arrays.update((f"{kind} {net} {k}", p) for k, p in enumerate(parameters))
        states = enumerate(optimizer.get_parameters())
        arrays.update((f"{kind} {type(optimizer).__name__} {k}", p.asnumpy()) for k, p in states)
    np.savez(folder / "expected.npz", **arrays)
    texts = run_ranks(size, RUN.format(here=str(HERE), cases=cases, tolerance=TOLERANCE), folder)
    for text in texts:
        for kind, scheduler in cases:
            assert f"equal: {kind} {scheduler}" in text


def test_two_processes(expected, tmp_path: Path) -> None:
    check(expected, 2, [("tied", "zero_bubble_v"), ("irregular", "interleaved"), ("stack", "gpipe")], tmp_path)


def test_four_processes(expected, tmp_path: Path) -> None:
    check(expected, 4, [("irregular", "1f1b"), ("tied", "1f1b")], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4])
def test_all_networks_and_schedules(expected, tmp_path: Path, size: int) -> None:
    check(expected, size, [(kind, scheduler) for kind in NETWORKS for scheduler in NAMES], tmp_path)
