"""The planner: from the graph of a training step, a number of devices and a machine to a strategy.

``stage_task`` stages a step; ``plan`` searches; the :class:`Plan` that comes out says a layout for every input and
operator, stages and schedule, what all of it costs, and why other plans lost. Nothing is executed here.
"""

from __future__ import annotations

from mycelia.parallel.planner.layouts import MeshShape
from mycelia.parallel.planner.machine import Level, Machine
from mycelia.parallel.planner.outer import MODES, plan
from mycelia.parallel.planner.plan import NothingFitsError, Plan, Simulated
from mycelia.parallel.planner.task import Task, shaped, stage_task, task_of_graph, task_of_program

__all__ = [
    "MODES", "Level", "Machine", "MeshShape", "NothingFitsError", "Plan", "Simulated", "Task", "plan", "shaped",
    "stage_task", "task_of_graph", "task_of_program",
]  # fmt: skip
