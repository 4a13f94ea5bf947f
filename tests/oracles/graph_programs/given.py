"""The framework that the programs run on: Mycelia, or what the variable GRAPH_PROGRAMS_FRAMEWORK names."""

from __future__ import annotations

import importlib
import os

FRAMEWORK = os.environ.get("GRAPH_PROGRAMS_FRAMEWORK", "mycelia")

ms = importlib.import_module(FRAMEWORK)
nn = importlib.import_module(f"{FRAMEWORK}.nn")
ops = importlib.import_module(f"{FRAMEWORK}.ops")
Tensor = ms.Tensor
Parameter = ms.Parameter
