"""Constant folding: compute now what depends on constants only.

A node is folded if all its operands are constants, it has no effects and holds no graphs (a loop may run
long, and known branches are the matter of :mod:`~mycelia.compiler.passes.control_flow`), its operands and
results are small, and it is not a ``barrier``. The simplest operators are computed by NumPy where it is bound
to give the same bits (IEEE 754 arithmetic away from the numbers that are flushed to zero, moved elements,
exact conversions). All others run through the eager dispatch on the CPU, one operator at a time, so that the
result is by definition what the eager operator gives; as each new combination of operator, attributes and
types costs a compilation, at most ``MAX_DISTINCT`` of them are tried in one run. Operators without operands are
folded only by NumPy: JAX would compile every step of their lowering by itself. An operator that fails is left in the
graph, to fail when and if it is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from mycelia.compiler.passes.conversions import holds
from mycelia.core import dtypes
from mycelia.core.dtypes import DType
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.rewriter import Emitter, attributes_key, known_array, rewrite
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply
from mycelia.tensor.mode import running

#: Most bytes of all results of a node that is folded.
MAX_RESULT_BYTES = 4096
#: Results of more bytes than this are folded only if they are no larger than the operands: XLA fills and counts
#: better than it loads.
EXPANDED_BYTES = 64
#: Most bytes of all operands of a node that is folded.
MAX_OPERAND_BYTES = 65536
#: Most combinations of operator, attributes and operand types that are compiled in one run.
MAX_DISTINCT = 32

_BINARY: dict[str, Callable[..., Any]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
}  # fmt: skip
_LOGIC: dict[str, Callable[..., Any]] = {
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
}  # fmt: skip


def run(graph: Graph) -> tuple[Graph, int]:
    """Replace nodes that depend on small constants only by their values."""
    tried: set[Any] = set()

    def visit(node: Node, inputs: tuple[Value, ...], attrs: dict[str, Any], emitter: Emitter) -> Sequence[Value] | None:
        arrays = _operands(node, inputs)
        if arrays is None:
            return None
        simple = _by_numpy(node.op.name, arrays, attrs)
        if simple is not None:
            return [emitter.constant(simple)]
        if not arrays:
            return None
        kind = (node.op, tuple([v.type for v in inputs]), attributes_key(attrs))
        if kind not in tried:
            if len(tried) >= MAX_DISTINCT:
                return None
            tried.add(kind)
        results = _computed(node, arrays)
        return None if results is None else [emitter.constant(a) for a in results]

    return rewrite(graph, visit)


def _operands(node: Node, inputs: tuple[Value, ...]) -> list[np.ndarray[Any, Any]] | None:
    """The operand arrays of a node that may be folded, else None."""
    arrays = []
    for value in inputs:
        array = known_array(value)
        if array is None:
            return None
        arrays.append(array)
    if node.op.name in ("constant", "barrier") or node.op.effects or not node.outputs:
        return None
    made, read = sum([v.type.nbytes for v in node.outputs]), sum([v.type.nbytes for v in inputs])
    if made > MAX_RESULT_BYTES or made > max(read, EXPANDED_BYTES) or read > MAX_OPERAND_BYTES:
        return None
    return None if any(True for _ in node.subgraphs) else arrays


def _by_numpy(name: str, arrays: list[np.ndarray[Any, Any]], attrs: dict[str, Any]) -> np.ndarray[Any, Any] | None:
    """The result of an operator for which NumPy's is the same to the last bit, else None."""
    if name in ("full", "eye"):
        return _generated(name, attrs)
    if name == "reshape":
        return arrays[0].reshape(attrs["shape"])
    if name == "transpose":
        return arrays[0].transpose(attrs["perm"])
    if name == "broadcast_to":
        return np.broadcast_to(arrays[0], attrs["shape"])
    if name == "where":
        return np.asarray(np.where(*arrays))
    if name in _LOGIC and all([a.dtype == bool for a in arrays]):
        return np.asarray(_LOGIC[name](*arrays))
    if not arrays or not all([_is_ordinary(a) for a in arrays]):
        return None
    if name == "cast":
        return _cast(arrays[0], attrs["dtype"])
    kind = arrays[0].dtype.kind
    with np.errstate(all="ignore"):
        if name == "neg" and kind != "b":
            return np.asarray(-arrays[0])
        if name in _COMPARISONS:
            return np.asarray(_COMPARISONS[name](*arrays))
        if name in _BINARY and kind != "b":
            made = np.asarray(_BINARY[name](*arrays))
            return made if _is_ordinary(made) else None
    return None


def _generated(name: str, attrs: dict[str, Any]) -> np.ndarray[Any, Any] | None:
    """What an operator without operands makes."""
    target = attrs["dtype"].np
    if name == "eye":
        return np.eye(attrs["n"], attrs["m"], dtype=target)
    with np.errstate(all="ignore"):
        made = np.full(attrs["shape"], attrs["value"], dtype=target)
    return made if _is_ordinary(made) else None


def _is_ordinary(array: np.ndarray[Any, Any]) -> bool:
    """Whether the elements are bools, integers, or float32 or float64 that are zero, normal or not finite."""
    if array.dtype.kind in "biu":
        return True
    if array.dtype not in (np.float32, np.float64):
        return False
    size = np.abs(array)
    return not bool(((size > 0) & (size < np.finfo(array.dtype).tiny)).any())


def _cast(array: np.ndarray[Any, Any], target: DType) -> np.ndarray[Any, Any] | None:
    source = dtypes.from_numpy(array.dtype)
    if target.kind == "b":
        return np.asarray(array != 0)
    if target.is_complex or not (holds(target, source) or (source.is_integer and target.is_integer)):
        return None
    return array.astype(target.np)


def _computed(node: Node, arrays: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]] | None:
    """The results of a node, or None if running it fails or gives other types than promised."""
    try:
        with jax.ensure_compile_time_eval(), jax.default_device(jax.devices("cpu")[0]), running():
            out = apply(node.op, *[Tensor(a) for a in arrays], **node.attrs)
            results = [t.asnumpy() for t in (out if node.op.multi else (out,))]
    except Exception:  # an operator may fail in any way; it will fail again, with its own message, when run
        return None
    wanted = [(v.dtype, v.shape) for v in node.outputs]
    return results if [(a.dtype, a.shape) for a in results] == wanted else None
