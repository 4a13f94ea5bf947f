"""Algebraic simplification: operators that give back an operand, undo each other, or combine.

A rule is applied only where it is exact for every value, NaN, infinities and both zeros included, and keeps
the dtype. So ``x + 0`` goes for integers, and for floats only if the zero is ``-0.0`` (``-0.0 + 0.0`` is
``0.0``); ``x - 0`` goes if it is ``0.0``; ``x * 0`` goes for integers only. Complex numbers have no rules for
products (``inf * 1`` has a NaN part). The sign and payload of a NaN, and numbers so small that the processor
flushes them to zero in arithmetic, are left as they were in the operand.

As the graph is about to be executed, what matters to differentiation only (``stop_gradient``) goes too. Rules see
operands that are simplified already, and what a rule makes is simplified again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycelia.compiler.passes.conversions import combined
from mycelia.core import dtypes as dt
from mycelia.ir.graph import Graph, Node, Value
from mycelia.ir.primitive import primitive_named
from mycelia.ir.rewriter import Emitter, known_array, rewrite
from mycelia.ir.types import TensorType


@dataclass(frozen=True)
class Use:
    """One application of an operator of one result: what rules look at and what they may make instead."""

    name: str
    inputs: tuple[Value, ...]
    attrs: Mapping[str, Any]
    type: TensorType
    emitter: Emitter

    def made_by(self, name: str, operand: int = 0) -> Node | None:
        """The node that makes an operand, if it is of this operator."""
        node = self.inputs[operand].node
        return node if node is not None and node.op.name == name else None

    def again(self, name: str, *inputs: Value, **attrs: Any) -> Use:
        """Another operator with the same result."""
        return Use(name, inputs, attrs, self.type, self.emitter)

    def spread(self, value: Value) -> Value | Use:
        """A value of the result's dtype, broadcast to its shape."""
        return value if value.type == self.type else self.again("broadcast_to", value, shape=self.type.shape)

    def fill(self, number: Any) -> Value | Use:
        """The result filled with one number."""
        return self.spread(self.emitter.constant(np.asarray(number).astype(self.type.dtype.np)))

    def everywhere(self, operand: int) -> Any:
        """The number that every element of an operand is, as a NumPy scalar; None if they differ or are not known."""
        return uniform(self.inputs[operand], self.emitter.table)


Rule = Callable[[Use], "Value | Use | None"]


def uniform(value: Value, known: dict[Any, Any]) -> Any:
    """The number of a value whose elements are known and all the same bits, else None."""
    passed = [value]
    while (top := passed[-1]) not in known:
        node = top.node
        if node is not None and node.op.name in ("broadcast_to", "reshape", "transpose") and top.type.size:
            passed.append(node.inputs[0])
        elif node is not None and node.op.name == "full" and top.type.size:
            known[top] = np.full(1, node.attrs["value"], top.dtype)[0]
        else:
            known[top] = _uniform_element(known_array(top))
    for v in passed:
        known[v] = known[passed[-1]]
    return known[value]


def _uniform_element(array: np.ndarray[Any, Any] | None) -> Any:
    if array is None or not array.size:
        return None
    raw = array.reshape(-1, 1).view(np.uint8)
    return array.reshape(-1)[0] if (raw == raw[0]).all() else None


def _is(number: Any, wanted: float, negative_zero: bool = False) -> bool:
    """Whether a uniform element is ``wanted``; for a zero, the sign of the zero counts."""
    if number is None or number != wanted:
        return False
    return wanted != 0 or not _signed_zero(number) or bool(np.signbit(np.float64(number))) is negative_zero


def _signed_zero(number: Any) -> bool:
    return dt.from_numpy(number.dtype).is_floating


def _add(use: Use) -> Value | Use | None:
    if not use.type.dtype.is_complex:
        for i in (0, 1):
            if _is(use.everywhere(i), 0, negative_zero=True):
                return use.spread(use.inputs[1 - i])
    for i in (0, 1):
        negated = use.made_by("neg", i)
        if negated is not None:
            return use.again("sub", use.inputs[1 - i], negated.inputs[0])
    return None


def _sub(use: Use) -> Value | Use | None:
    if not use.type.dtype.is_complex:
        if _is(use.everywhere(1), 0):
            return use.spread(use.inputs[0])
        if _is(use.everywhere(0), 0, negative_zero=True):
            return use.again("neg", _value(use.spread(use.inputs[1])))
    if use.inputs[0] is use.inputs[1] and use.type.dtype.is_integer:
        return use.fill(0)
    negated = use.made_by("neg", 1)
    return None if negated is None else use.again("add", use.inputs[0], negated.inputs[0])


def _mul(use: Use) -> Value | Use | None:
    dtype = use.type.dtype
    if not dtype.is_complex:
        for i in (0, 1):
            number = use.everywhere(i)
            if _is(number, 1):
                return use.spread(use.inputs[1 - i])
            if _is(number, 0) and not dtype.is_floating:
                return use.spread(use.inputs[i])
            if _is(number, -1) and dtype.is_signed:
                return use.again("neg", _value(use.spread(use.inputs[1 - i])))
    first, second = use.made_by("neg", 0), use.made_by("neg", 1)
    if first is not None and second is not None:
        return use.again("mul", first.inputs[0], second.inputs[0])
    return None


def _div(use: Use) -> Value | Use | None:
    if use.type.dtype.is_floating and _is(use.everywhere(1), 1):
        return use.spread(use.inputs[0])
    return None


def _floor_div(use: Use) -> Value | Use | None:
    if use.type.dtype.is_integer and _is(use.everywhere(1), 1):
        return use.spread(use.inputs[0])
    return None


def _involution(use: Use) -> Value | Use | None:
    """Applied twice, it gives the operand back."""
    inner = use.made_by(use.name)
    return None if inner is None else inner.inputs[0]


def _conj(use: Use) -> Value | Use | None:
    return _involution(use) if use.type.dtype.is_complex else use.inputs[0]


def _projection(use: Use) -> Value | Use | None:
    """Applied twice, it gives what it gives once."""
    exact = use.attrs in ({}, {"decimals": 0})  # rounding to other decimals is a product and a quotient
    return use.inputs[0] if exact and use.made_by(use.name) is not None and use.inputs[0].type == use.type else None


def _abs(use: Use) -> Value | Use | None:
    negated = use.made_by("neg")
    return _projection(use) if negated is None else use.again("abs", negated.inputs[0])


def _operand(use: Use) -> Value | Use | None:
    return use.inputs[0]


def _unchanged(use: Use) -> Value | Use | None:
    """Cutting or padding that takes nothing away and adds nothing: the elements have nowhere else to go."""
    nothing_between = all(step == 1 for step in use.attrs.get("steps", ()))
    nothing_added = not any(any(numbers) for numbers in use.attrs.get("config", ()))
    return use.inputs[0] if use.inputs[0].type == use.type and nothing_between and nothing_added else None


def _concat(use: Use) -> Value | Use | None:
    return use.inputs[0] if len(use.inputs) == 1 else None


def _same_operands(use: Use) -> Value | Use | None:
    return use.inputs[0] if use.inputs[0] is use.inputs[1] and use.inputs[0].type == use.type else None


def _reshape(use: Use) -> Value | Use | None:
    if use.inputs[0].type == use.type:
        return use.inputs[0]
    inner = use.made_by("reshape")
    return None if inner is None else use.again("reshape", inner.inputs[0], shape=use.type.shape)


def _transpose(use: Use) -> Value | Use | None:
    perm = use.attrs["perm"]
    if perm == tuple(range(len(perm))):
        return use.inputs[0]
    inner = use.made_by("transpose")
    if inner is None:
        return None
    return use.again("transpose", inner.inputs[0], perm=tuple([inner.attrs["perm"][i] for i in perm]))


def _broadcast(use: Use) -> Value | Use | None:
    if use.inputs[0].type == use.type:
        return use.inputs[0]
    inner = use.made_by("broadcast_to")
    if inner is None:
        inner = use.made_by("reshape")
        if inner is not None:  # one that only adds leading axes of length 1, as broadcasting does itself
            extra = use.inputs[0].type.rank - inner.inputs[0].type.rank
            if extra < 0 or use.inputs[0].type.shape != (1,) * extra + inner.inputs[0].type.shape:
                inner = None
    return None if inner is None else use.again("broadcast_to", inner.inputs[0], shape=use.type.shape)


def _cast(use: Use) -> Value | Use | None:
    if use.inputs[0].type == use.type:
        return use.inputs[0]
    inner = use.made_by("cast")
    if inner is None or not combined(inner.inputs[0].type.dtype, inner.outputs[0].type.dtype, use.type.dtype):
        return None
    return use.again("cast", inner.inputs[0], dtype=use.type.dtype)


def _where(use: Use) -> Value | Use | None:
    if use.inputs[1] is use.inputs[2]:
        chosen: int | None = 1
    else:
        number = use.everywhere(0)
        chosen = None if number is None else 1 if number else 2
    return (
        None
        if chosen is None or use.inputs[chosen].type.dtype is not use.type.dtype
        else use.spread(use.inputs[chosen])
    )


#: The rule of each operator that has one.
RULES: dict[str, Rule] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "floor_div": _floor_div, "neg": _involution,
    "logical_not": _involution, "bitwise_not": _involution, "conj": _conj, "abs": _abs, "relu": _projection,
    "floor": _projection, "ceil": _projection, "trunc": _projection, "round": _projection, "sign": _projection,
    "maximum": _same_operands, "minimum": _same_operands, "fmax": _same_operands, "fmin": _same_operands,
    "logical_and": _same_operands, "logical_or": _same_operands, "bitwise_and": _same_operands,
    "bitwise_or": _same_operands, "reshape": _reshape, "transpose": _transpose, "broadcast_to": _broadcast,
    "cast": _cast, "where": _where, "identity": _operand, "stop_gradient": _operand, "slice": _unchanged,
    "pad_constant": _unchanged, "concat": _concat,
}  # fmt: skip


def _reduced(use: Use) -> Value | Use:
    """What is left when no rule applies any more."""
    while True:
        rule = RULES.get(use.name)
        found = None if rule is None else rule(use)
        if found is None:
            return use
        if isinstance(found, Value):
            return found
        use = found


def _value(made: Value | Use) -> Value:
    """The value of what a rule made, simplified further."""
    found = made if isinstance(made, Value) else _reduced(made)
    if isinstance(found, Value):
        return found
    return found.emitter.add(primitive_named(found.name), found.inputs, found.attrs)[0]


def _visit(node: Node, inputs: tuple[Value, ...], attrs: dict[str, Any], emitter: Emitter) -> tuple[Value] | None:
    found = RULES[node.op.name](Use(node.op.name, inputs, attrs, node.outputs[0].type, emitter))
    return None if found is None else (_value(found),)


def run(graph: Graph) -> tuple[Graph, int]:
    """Simplify operator by operator; the number of changes is the number of nodes replaced."""
    return rewrite(graph, _visit, only=RULES)
