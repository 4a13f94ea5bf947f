"""Pipelines: a network cut into stages that ranks compute, micro-batch after micro-batch, by a schedule."""

from mycelia.parallel.pipeline.schedules import Instruction, Schedule, schedule
from mycelia.parallel.pipeline.simulate import Durations, Timeline, simulate
from mycelia.parallel.pipeline.train_step import PipelineStep, train_step

__all__ = ["Durations", "Instruction", "PipelineStep", "Schedule", "Timeline", "schedule", "simulate", "train_step"]
