"""How the older modules of operators (``functional``, ``composite``, ...) find what they do not name themselves."""

from __future__ import annotations

import sys
from typing import Any


def name_of_ops(module: str, name: str) -> Any:
    """The public name of :mod:`mycelia.ops` that a module below it is asked for.

    Layers above add names to :mod:`mycelia.ops` (``grad``, ``vmap``), so it is asked at the time.

    Raises:
        AttributeError: there is none.

    >>> from mycelia.ops.legacy.faces import name_of_ops
    >>> name_of_ops("mycelia.ops.functional", "relu").__name__
    'relu'
    """
    if not name.startswith("_"):
        found = sys.modules["mycelia.ops"].__dict__.get(name, name_of_ops)
        if found is not name_of_ops:
            return found
    raise AttributeError(f"module '{module}' has no attribute '{name}'")
