"""Prints what the schedules of a pipeline take, simulated, and whether ranks compute in the simulated order.

    python benchmarks/pipeline.py [--ranks 4] [--micro-batches 8] [--svg FOLDER]

A stage's forward, the gradient of its inputs and that of its weights take 1 each, sending takes nothing. The order is
compared with that of a small network that is trained with these schedules, all ranks played by this process.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mycelia as ms
from mycelia import nn
from mycelia.parallel.pipeline import simulate, train_step
from mycelia.parallel.pipeline.drawing import svg, text
from mycelia.parallel.pipeline.schedules import NAMES, schedule


def _executed_as_simulated(name: str, ranks: int, micro_batches: int) -> bool:
    """Whether each rank of a trained network computes what the simulation says, in its order."""
    chunks = schedule(name, ranks, micro_batches).chunks
    net = nn.SequentialCell([nn.Dense(8, 8) for _ in range(ranks * chunks)])
    for k, cell in enumerate(net.cells()):
        cell.pipeline_stage = k
    step = train_step(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), ranks, micro_batches, name)
    step(ms.ops.ones((micro_batches, 8)), ms.ops.zeros((micro_batches, 8)))
    timeline = simulate(schedule(name, ranks, micro_batches))
    return all(step.executed[r] == timeline.computed(r) for r in range(ranks))


def main() -> None:
    parser = argparse.ArgumentParser(description="Schedules of a pipeline, simulated.")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--micro-batches", type=int, default=8)
    parser.add_argument("--svg", type=Path, help="a folder for pictures")
    options = parser.parse_args()
    ranks, micro_batches = options.ranks, options.micro_batches
    print(f"{ranks} ranks, {micro_batches} micro-batches; F = B = W = 1, no communication\n")
    print("| schedule | stages a rank | time | bubble | most micro-batches held | executed as simulated |")
    print("|---|---|---|---|---|---|")
    timelines = {name: simulate(schedule(name, ranks, micro_batches)) for name in NAMES}
    for name, made in timelines.items():
        same = "yes" if _executed_as_simulated(name, ranks, micro_batches) else "NO"
        held = f"{max(made.peak_activations):g}"
        print(f"| {name} | {made.schedule.chunks} | {made.makespan:g} | {made.bubble_ratio:.1%} | {held} | {same} |")
    for name, made in timelines.items():
        print(f"\n{name}\n{text(made)}")
        if options.svg:
            options.svg.mkdir(parents=True, exist_ok=True)
            (options.svg / f"{name}.svg").write_text(svg(made))


if __name__ == "__main__":
    main()
