"""Staging a function into a graph and running the graph, beside a plain eager run of the same function.

``Staged`` stages on symbolic tensors in place of the tensor arguments. Graphs are run by the interpreter with
control flow done by Python, so that no XLA program is compiled for every small test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mycelia.core import tree
from mycelia.frontend.convert import convert
from mycelia.ir.builder import Builder, restoring
from mycelia.ir.evaluate import evaluate
from mycelia.ir.graph import ArrayConstant, Graph
from mycelia.ir.primitive import PRIMITIVES, Primitive
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import _compile, type_of, value_in_graph
from mycelia.tensor.mode import staging
from mycelia.tensor.tensor import wrap


def _put_back(tensor: Tensor, value: Any) -> None:
    tensor._value = value


def _cond(pred: Any, *operands: Any, true_graph: Graph, false_graph: Graph) -> Any:
    return run(true_graph if bool(pred) else false_graph, operands)


def _while(*arrays: Any, cond_graph: Graph, body_graph: Graph, n_const: int) -> Any:
    consts, carried = arrays[:n_const], list(arrays[n_const:])
    while bool(run(cond_graph, [*consts, *carried])[0]):
        carried = run(body_graph, [*consts, *carried])
    return carried


def _call(*arrays: Any, graph: Graph, recompute: bool = False) -> Any:
    return run(graph, arrays)


def _constant(*, value: ArrayConstant) -> Any:
    return value.array


class _Rules(dict[str, Callable[..., Any]]):
    """What runs each operator: control flow as given, others compiled one by one, as eager calls are."""

    def get(self, name: str, default: Any = None) -> Callable[..., Any]:
        found = dict.get(self, name)
        if found is None:
            found = self[name] = partial(_eager, PRIMITIVES[name])
        return found


def _eager(op: Primitive, *arrays: Any, **attrs: Any) -> Any:
    key = tuple(attrs.items())
    fn = op.eager.get(key)
    return (_compile(op, key, attrs) if fn is None else fn)(*arrays)


_RULES = _Rules(cond=_cond, while_loop=_while, call=_call, constant=_constant)


def run(graph: Graph, arrays: Sequence[Any]) -> list[Any]:
    """The outputs of a graph, control flow decided by Python."""
    return evaluate(graph, arrays, _RULES)


class Staged:
    """A function staged for the types of some arguments."""

    def __init__(self, fn: Callable[..., Any], *args: Any) -> None:
        builder = Builder(getattr(fn, "__name__", "fn").strip("<>"))
        leaves, treedef = tree.flatten(args)
        symbolic = [wrap(builder.param(type_of(x))) if isinstance(x, Tensor) else x for x in leaves]
        inner = [x for x in symbolic if isinstance(x, Tensor)]
        with restoring(builder, _put_back), staging(builder):
            out = convert(fn)(*tree.unflatten(treedef, symbolic))
            self.leaves, self.treedef = tree.flatten(out)
            self.written = [t for t, _ in builder.written.values() if not any(t is i for i in inner)]
            outputs = [x for x in self.leaves if isinstance(x, Tensor)] + inner + self.written
            self.graph = builder.finish([value_in_graph(x) for x in outputs])
        self.captured = [t for t, _ in builder.captured]

    def __call__(self, *args: Any) -> Any:
        """Run the graph; tensors it writes, arguments among them, are written."""
        tensors = [x for x in tree.leaves(args) if isinstance(x, Tensor)]
        results = [wrap(a) for a in run(self.graph, [t._value for t in (*tensors, *self.captured)])]
        n = sum(isinstance(x, Tensor) for x in self.leaves)
        for tensor, new in zip([*tensors, *self.written], results[n:], strict=True):
            tensor._value = new._value
        outs = iter(results[:n])
        return tree.unflatten(self.treedef, [next(outs) if isinstance(x, Tensor) else x for x in self.leaves])

    def count(self, op: str) -> int:
        """How many nodes of a kind the graph has, those of sub-graphs included."""
        return _count(self.graph, op)


def _count(graph: Graph, op: str) -> int:
    return sum((n.op.name == op) + sum(_count(g, op) for _, g in n.subgraphs) for n in graph.nodes)


def copied(args: Any) -> Any:
    """Arguments with tensors of their own."""
    return tree.map_leaves(lambda x: Tensor(x.asnumpy()) if type(x) is Tensor else x, args)


def assert_same(got: Any, expected: Any) -> None:
    """Equal nests; a Python number may have become a tensor."""
    got_leaves, got_tree = tree.flatten(got)
    leaves, treedef = tree.flatten(expected)
    assert got_tree == treedef, f"{got!r} is not like {expected!r}"
    for a, b in zip(got_leaves, leaves, strict=True):
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            x, y = (t.asnumpy() if isinstance(t, Tensor) else np.asarray(t) for t in (a, b))
            assert x.shape == y.shape
            if isinstance(b, Tensor):
                assert x.dtype == y.dtype, f"{x.dtype} is not {y.dtype}"
            np.testing.assert_allclose(x.astype(np.float64), y.astype(np.float64), rtol=1e-6)
        else:
            assert type(a) is type(b)
            assert a == b or (a != a and b != b)


def check(fn: Callable[..., Any], *cases: tuple[Any, ...]) -> Staged:
    """Stage ``fn`` for the first case, run the graph on all, and compare with eager runs; gives the staging."""
    staged = Staged(fn, *copied(cases[0]))
    for case in cases:
        ours, eager = copied(case), copied(case)
        assert_same((staged(*ours), ours), (fn(*eager), eager))
    return staged
