"""Random graphs, and an interpreter that runs them with NumPy alone.

The graphs mix dtypes, special numbers, all control flow, shared sub-graphs and dead code. ``run`` evaluates a
graph with IEEE arithmetic of NumPy and Python loops, so it owes nothing to the lowerings; what operators with
effects were given is collected in order.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import mycelia  # noqa: F401, declares the operators
from mycelia.core import dtypes as dt
from mycelia.ir.builder import constant_p
from mycelia.ir.evaluate import evaluate
from mycelia.ir.graph import ArrayConstant, Graph, Value
from mycelia.ir.primitive import IO, PRIMITIVES, Primitive
from mycelia.ir.types import TensorType

SHAPES = ((), (3,), (2, 3), (3, 2), (1, 3), (2, 1, 3))
DTYPES = (dt.float32, dt.float32, dt.float64, dt.float16, dt.int32, dt.int8, dt.uint8, dt.int64, dt.bool_)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.5, -3.0, float("nan"), float("inf"), float("-inf"), 100.0)
COUNTER = TensorType(dt.int32, ())

PURE = (
    "add", "sub", "mul", "div", "neg", "cast", "reshape", "transpose", "broadcast_to", "reduce_sum",
     "constant", "barrier"
)  # fmt: skip
CONTROL = ("cond", "while_loop", "scan", "call", "custom_vjp_call")


def declare_effect() -> Primitive:
    """An operator with an effect: gives its operand back and is noted by ``run``. Take it out of PRIMITIVES again."""
    return Primitive("noted", infer=lambda x: x, lower=lambda x: x, effects=(IO,))


def array(r: random.Random, type_: TensorType) -> np.ndarray[Any, Any]:
    """Elements that are special about every second time, and now and then all the same."""
    one = r.choice((*SPECIAL[:4], *SPECIAL))
    elements = (
        [one] * type_.size
        if r.random() < 0.4
        else [r.choice(SPECIAL) if r.random() < 0.5 else r.uniform(-4, 4) for _ in range(type_.size)]
    )
    if not type_.dtype.is_inexact:
        whole = r.choice((0, 1, 1, 2, 5, 100))
        elements = [r.choice((0, 1, 2, 5, 100)) if r.random() < 0.5 else whole for _ in elements]
    return np.array(elements).astype(type_.dtype.np).reshape(type_.shape)


def inputs_of(graph: Graph, seed: int) -> list[np.ndarray[Any, Any]]:
    """Arguments for a graph."""
    r = random.Random(seed)
    return [array(r, t) for t in graph.input_types]


class Maker:
    """Makes one random graph; ``effects`` lets operators with effects in."""

    def __init__(self, seed: int, effects: bool = False) -> None:
        self.r = random.Random(seed)
        self.effects = effects
        self.shared: list[Graph] = []

    def graph(
        self,
        types: list[TensorType],
        size: int,
        outputs: list[TensorType] | None = None,
        depth: int = 0,
        name: str = "main",
    ) -> Graph:
        g = Graph(name)
        values = [g.add_param(t) for t in types]
        for _ in range(size):
            self.node(g, values, depth)
        if outputs is None:
            g.outputs = [self.r.choice(values) for _ in range(self.r.randint(1, 3 if depth else 16))] if values else []
        else:
            g.outputs = [self.typed(g, values, t) for t in outputs]
        return g

    def add(self, g: Graph, name: str, inputs: list[Value], **attrs: Any) -> tuple[Value, ...]:
        return g.add_node(PRIMITIVES[name], tuple(inputs), attrs).outputs

    def typed(self, g: Graph, values: list[Value], type_: TensorType) -> Value:
        """A value of a type: one there is, or a new constant."""
        fitting = [v for v in values if v.type == type_]
        if fitting and self.r.random() < 0.9:
            return self.r.choice(fitting)
        return self.add(g, "constant", [], value=ArrayConstant(array(self.r, type_)))[0]

    def type(self) -> TensorType:
        return TensorType(self.r.choice(DTYPES), self.r.choice(SHAPES))

    def node(self, g: Graph, values: list[Value], depth: int) -> None:
        r = self.r
        choice = r.random()
        if self.effects and values and choice > 0.93:
            values += self.add(g, "noted", [r.choice(values)])
        elif depth < 2 and choice < 0.15:
            values += self.control(g, values, r.choice(CONTROL), depth)
        else:
            name = r.choice(PURE)
            if not values or name == "constant":
                values += self.add(g, "constant", [], value=ArrayConstant(array(r, self.type())))
            else:
                values += self.pure(g, values, name)

    def pure(self, g: Graph, values: list[Value], name: str) -> tuple[Value, ...]:
        r = self.r
        x = r.choice(values)
        kind, shape = x.type.dtype.kind, x.type.shape
        if name in ("add", "mul") or (name == "sub" and kind != "b") or (name == "div" and kind == "f"):
            scalar = () if name != "div" else shape  # XLA divides by one number as it multiplies by its reciprocal
            near = [v for v in values if v.type.dtype is x.type.dtype and v.type.shape in (shape, scalar)]
            other = self.typed(g, values, TensorType(x.type.dtype, scalar)) if r.random() < 0.3 else r.choice(near)
            pair = [x, other] if r.random() < 0.5 else [other, x]
            return self.add(g, name, pair)
        if name == "neg" and kind != "b":
            return self.add(g, name, [x])
        if name == "cast":
            targets = [d for d in DTYPES if not (kind == "f" and d.is_integer)]
            return self.add(g, name, [x], dtype=r.choice(targets))
        if name == "transpose":
            return self.add(g, name, [x], perm=tuple(r.sample(range(len(shape)), len(shape))))
        if name == "reshape":
            fitting = [s for s in (*SHAPES, (1, 1), (3, 1), (x.type.size,)) if np.prod(s) == x.type.size]
            return self.add(g, name, [x], shape=r.choice(fitting))
        if name == "broadcast_to":
            return self.add(g, name, [x], shape=r.choice((shape, (2, *shape))) if len(shape) < 4 else shape)
        if name == "reduce_sum" and kind in "iu" and shape:  # in which order floats are summed is not laid down
            return self.add(g, name, [x], axes=(r.randrange(len(shape)),), keepdims=r.random() < 0.5)
        if name == "barrier":
            return self.add(g, name, [x, r.choice(values)])
        return ()

    def control(self, g: Graph, values: list[Value], name: str, depth: int) -> tuple[Value, ...]:
        r = self.r
        operands = [r.choice(values) for _ in range(r.randint(0, 3))] if values else []
        types = [v.type for v in operands]
        size = r.randint(0, 5)
        if name == "cond":
            outputs = [
                self.type() if not types or r.random() < 0.3 else r.choice(types) for _ in range(r.randint(0, 3))
            ]
            branches = [self.graph(types, size, outputs, depth + 1, n) for n in ("true", "false")]
            pred = self.typed(g, values, TensorType(dt.bool_, ()))
            return self.add(g, name, [pred, *operands], true_graph=branches[0], false_graph=branches[1])
        if name in ("call", "custom_vjp_call"):
            fitting = [s for s in self.shared if list(s.input_types) == types]
            called = (
                r.choice(fitting)
                if fitting and r.random() < 0.7
                else self.graph(types, size, None, depth + 1, "called")
            )
            self.shared.append(called)
            if name == "call":
                return self.add(g, name, operands, graph=called)
            back = [*types, *called.output_types, *called.output_types]
            return self.add(g, name, operands, graph=called, backward=self.graph(back, 2, types, 2, "backward"))
        n_const = r.randint(0, len(operands))
        carried = types[n_const:]
        if name == "while_loop":
            all_types = [*types, COUNTER]
            condition = self.graph(all_types, size, [], 2, "condition")
            condition.outputs = [self.add(condition, "cast", [condition.params[-1]], dtype=dt.bool_)[0]]
            body = self.graph(all_types, size, carried, depth + 1, "body")
            one = self.add(body, "constant", [], value=ArrayConstant(np.array(1, np.int32)))[0]
            body.outputs.append(self.add(body, "sub", [body.params[-1], one])[0])
            start = self.add(g, "constant", [], value=ArrayConstant(np.array(r.randint(0, 3), np.int32)))[0]
            return self.add(g, name, [*operands, start], n_const=n_const, cond_graph=condition, body_graph=body)
        length = r.randint(0, 3)
        rows = [TensorType(r.choice(DTYPES), (length, 3)) for _ in range(r.randint(0, 2))]
        sequences = [self.typed(g, values, t) for t in rows]
        inner = [*types, *[TensorType(t.dtype, (3,)) for t in rows]]
        made = [*carried, *[self.type() for _ in range(r.randint(0, 2))]]
        body = self.graph(inner, size, made, depth + 1, "body")
        return self.add(
            g, name, [*operands, *sequences], body_graph=body, n_const=n_const, n_carry=len(carried), length=length,
            reverse=r.random() < 0.5,
        )  # fmt: skip


def random_graph(seed: int, size: int = 25, effects: bool = False) -> Graph:
    """A random graph of about ``size`` nodes at the top."""
    maker = Maker(seed, effects)
    return maker.graph(
        [maker.type() for _ in range(3)] + [TensorType(dt.bool_, ()), TensorType(dt.float32, (2, 3))], size
    )


def run(graph: Graph, args: list[Any]) -> tuple[list[Any], list[Any]]:
    """Outputs, and operands of the operators with effects in the order in which they ran."""
    noted: list[Any] = []
    return _interpret(graph, args, noted), noted


def _interpret(graph: Graph, args: Any, noted: list[Any]) -> list[Any]:
    def note(x: Any) -> Any:
        noted.append(x)
        return x

    def call(*xs: Any, graph: Graph, **_: Any) -> Any:
        return _interpret(graph, xs, noted)

    def cond(pred: Any, *xs: Any, true_graph: Graph, false_graph: Graph) -> Any:
        return _interpret(true_graph if pred else false_graph, xs, noted)

    def loop(*xs: Any, cond_graph: Graph, body_graph: Graph, n_const: int) -> Any:
        state = list(xs)
        while _interpret(cond_graph, state, noted)[0]:
            state[n_const:] = _interpret(body_graph, state, noted)
        return state[n_const:]

    def scan(*xs: Any, body_graph: Graph, n_const: int, n_carry: int, length: int, reverse: bool) -> Any:
        fixed, state, rows = list(xs[:n_const]), list(xs[n_const : n_const + n_carry]), xs[n_const + n_carry :]
        stacks = [np.zeros((length, *t.shape), t.dtype.np) for t in body_graph.output_types[n_carry:]]
        for i in reversed(range(length)) if reverse else range(length):
            out = _interpret(body_graph, [*fixed, *state, *[row[i] for row in rows]], noted)
            state = out[:n_carry]
            for stack, row in zip(stacks, out[n_carry:], strict=True):
                stack[i] = row
        return [*state, *stacks]

    rules = {
        **NUMPY, "noted": note, "call": call, "custom_vjp_call": call, "cond": cond, "while_loop": loop, "scan": scan
    }  # fmt: skip
    with np.errstate(all="ignore"):
        return evaluate(graph, list(args), rules)


def _arithmetic(fn: Any, on_bools: Any = None) -> Any:
    def compute(*xs: Any) -> Any:
        return np.asarray((on_bools if xs[0].dtype == bool and on_bools else fn)(*xs), dtype=xs[0].dtype)

    return compute


NUMPY: dict[str, Any] = {
    "add": _arithmetic(np.add, np.logical_or), "sub": _arithmetic(np.subtract),
    "mul": _arithmetic(np.multiply, np.logical_and), "div": _arithmetic(np.divide), "neg": _arithmetic(np.negative),
    "cast": lambda x, dtype: np.asarray(x != 0) if dtype.kind == "b" else np.asarray(x).astype(dtype.np),
    "reshape": lambda x, shape: np.ascontiguousarray(x).reshape(shape),
    "transpose": lambda x, perm: np.transpose(x, perm).copy(),
    "broadcast_to": lambda x, shape: np.broadcast_to(x, shape).copy(),
    "reduce_sum": lambda x, axes, keepdims: np.asarray(np.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype)),
    "constant": lambda value: value.array,
    "barrier": lambda *xs: xs,
}  # fmt: skip


def same(a: Any, b: Any) -> bool:
    """The same dtype, shape and bits; NaNs are equal whatever their payload."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "biu":
        return bool((a == b).all())
    nan = np.isnan(a)
    return bool((nan == np.isnan(b)).all() and a[~nan].tobytes() == b[~nan].tobytes())


def check_same(before: Graph, after: Graph, seed: int) -> None:
    """The graphs have one signature, outputs of the same bits, and the same effects in the same order."""
    assert (before.input_types, before.output_types) == (after.input_types, after.output_types)
    args = inputs_of(before, seed)
    (wanted, wanted_notes), (got, got_notes) = run(before, args), run(after, args)
    for k, (w, g) in enumerate(zip(wanted, got, strict=True)):
        assert same(w, g), f"output {k}: {w!r} became {g!r}"
    assert len(wanted_notes) == len(got_notes)
    assert all(same(w, g) for w, g in zip(wanted_notes, got_notes, strict=True))


__all__ = [
    "NUMPY", "array", "check_same", "constant_p", "declare_effect", "inputs_of", "random_graph", "run", "same"
]  # fmt: skip
