"""What messages say of a tensor that has no value: in a graph, where it gets one when the graph runs, or after it."""

from __future__ import annotations

from mycelia.core.errors import GraphError
from mycelia.ir.graph import Value

_INSTEAD = {
    "conversion to a NumPy array": "NumPy and other libraries compute with values: use a function of ops or mint, "
    "or call the library outside of the compiled function",
    "asnumpy()": "use a function of ops or mint, or return the tensor and call asnumpy() on the result",
    "tolist()": "iterate over the tensor itself, or return it and call tolist() on the result",
    "the truth value of a tensor": "use ops.where, logical_and and the like, or let a Python value decide",
    "use as an index": "lengths, axes and indices of lists are part of the graph: take them from x.shape, or pass "
    "a Python int; a tensor can be indexed by a tensor",
    "making a tensor of a list of tensors": "use ops.stack",
}


def instead(what: str) -> str:
    """What to write in place of something that needs a value."""
    if what.startswith("the format"):
        return 'leave the format out, as in f"{x}", or print("name:", x)'
    return _INSTEAD.get(
        what, "compute with the tensor itself, pass a Python number, or return the tensor and convert the result"
    )


def left_behind(what: str, value: Value) -> GraphError:
    """The error for a tensor of a graph that is used outside of it."""
    location = value.node.location if value.node is not None else None
    made = f"; it was made at {location}" + (f": {location.text}" if location.text else "") if location else ""
    kept = f"a tensor ({value.type}) that was kept from inside a compiled function"
    return GraphError(
        what, message=f"{kept} has no value outside{made}",
        hint="return it from the function instead of keeping it in an attribute, list or global variable",
    )  # fmt: skip
