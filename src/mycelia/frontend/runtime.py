"""The names that rewritten code uses.

A converted function has this module in its closure, as ``_ms_rt``. Each name decides at staging time: on Python
values it does what Python does, on tensors of a graph it stages.
"""

from __future__ import annotations

from builtins import Exception as Error, globals, locals  # called in the user's frame
from operator import eq, ge, gt, is_, is_not, le, lt, ne
from typing import Any

import numpy as np

from mycelia.core.errors import GraphError
from mycelia.frontend.branches import (
    all_of,
    and_,
    any_of,
    branch,
    chain,
    contains,
    contains_not,
    guard,
    if_expr,
    not_,
    or_,
    truth,
)
from mycelia.frontend.calls import call, holds
from mycelia.frontend.effects import OUTSIDE, UNCATCHABLE, raise_unless, raised
from mycelia.frontend.implicit import see
from mycelia.frontend.loops import clear, loop
from mycelia.frontend.reads import attr, whole
from mycelia.frontend.regions import (
    Frame,
    advance,
    born,
    depth,
    new,
    own_cell,
    touch,
    touch_attribute,
    touch_cell,
    touch_global,
    touch_items,
    touch_read,
)
from mycelia.frontend.undefined import Undefined, sure, use
from mycelia.tensor.dispatch import constant

__all__ = [
    "Error", "Frame", "Undefined", "advance", "all_of", "and_", "any_of", "attr", "born", "branch", "call", "chain",
    "clear", "contains", "contains_not", "depth", "eq", "ge", "globals", "going", "gt", "guard", "holds", "if_expr",
    "is_", "is_not", "jumped", "keep", "le", "locals", "loop", "lt", "ne", "new", "not_", "or_", "own_cell", "raised",
    "see", "stage_raise", "sure", "touch", "touch_attribute", "touch_cell", "touch_global", "touch_items",
    "touch_read", "truth", "use", "visible", "whole",
]  # fmt: skip


def jumped(jump: Any, kind: int) -> bool:
    """Whether every path so far has jumped by ``kind``."""
    return type(jump) is int and jump == kind


def going(jump: Any) -> Any:
    """Whether no path has jumped yet: a bool, or a tensor."""
    return jump == 0 if type(jump) is int else not_(jump)


def keep(condition: Any) -> bool:
    """The truth of an ``if`` of a comprehension, which decides how many elements there are."""
    known = truth(condition)
    if type(known) is not bool:
        raise GraphError(
            "comprehension", message="which elements are kept depends on a tensor, and so would their number",
            hint="keep all elements and mask them, e.g. with ops.where",
        )  # fmt: skip
    return known


def stage_raise(error: Any, cause: Any = None, caught_here: bool = False) -> None:
    """``raise error from cause`` on a path that depends on a tensor: it happens when the graph runs."""
    if caught_here:
        raise GraphError("raise", message=UNCATCHABLE, hint=OUTSIDE)
    made = error() if isinstance(error, type) else error
    if not isinstance(made, BaseException):
        raise TypeError("exceptions must derive from BaseException")
    if cause is not None:
        made.__cause__ = cause() if isinstance(cause, type) else cause
    raise_unless(constant(np.asarray(False)), made)


def visible(names: dict[str, Any]) -> dict[str, Any]:
    """What ``locals()`` of the function as the user wrote it would give."""
    return {n: v for n, v in names.items() if not n.startswith("_ms_") and type(v) is not Undefined}
