"""Operators: the public functions, and on import the Tensor methods made of them."""

import importlib as _importlib
import pkgutil as _pkgutil

for _module in _pkgutil.iter_modules(__path__):
    if not _module.ispkg and _module.name not in ("legacy", "operations", "functional", "composite", "function"):
        _importlib.import_module(f"mycelia.ops.{_module.name}")
from mycelia.ops.registry import OPERATORS as _OPERATORS

globals().update(_OPERATORS)
