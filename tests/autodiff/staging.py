"""Building graphs by hand for tests of differentiation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.core import dtypes
from mycelia.ir.builder import Builder
from mycelia.ir.evaluate import evaluate
from mycelia.ir.graph import Graph
from mycelia.ir.types import TensorType
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import value_in_graph
from mycelia.tensor.mode import staging
from mycelia.tensor.tensor import wrap


def staged(fn: Callable[..., Any], *types: TensorType) -> Graph:
    """The graph of ``fn`` on parameters of the given types."""
    builder = Builder(getattr(fn, "__name__", "graph").strip("<>"))
    params = [wrap(builder.param(t)) for t in types]
    with staging(builder):
        out = fn(*params)
        outs = out if isinstance(out, (tuple, list)) else (out,)
        return builder.finish([value_in_graph(o) for o in outs])


def types_of(*arrays: Any) -> list[TensorType]:
    """The graph types of NumPy arrays."""
    return [TensorType(dtypes.from_numpy(np.asarray(a).dtype), np.asarray(a).shape) for a in arrays]


def run_staged(fn: Callable[..., Any], *arrays: Any) -> list[np.ndarray[Any, Any]]:
    """Stage ``fn`` for the arrays, and evaluate the graph on them."""
    graph = staged(fn, *types_of(*arrays))
    return [np.asarray(o) for o in evaluate(graph, [Tensor(np.asarray(a))._value for a in arrays])]
