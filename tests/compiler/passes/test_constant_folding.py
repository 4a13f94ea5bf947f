"""What depends on constants only is computed now, exactly as the operators compute it."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from mycelia.compiler.passes import constant_folding
from mycelia.compiler.passes.constant_folding import run
from mycelia.core import dtypes as dt
from mycelia.core.errors import ShapeError
from mycelia.ir.builder import constant_p
from mycelia.ir.evaluate import evaluate
from mycelia.ir.graph import ArrayConstant, Graph
from mycelia.ir.parser import parse_graph
from mycelia.ir.primitive import PRIMITIVES, Primitive
from mycelia.ir.rewriter import known_array
from mycelia.ir.types import TensorType
from mycelia.ir.verifier import verify

A = "%a = constant(value=array(float32[2], [1.0, -2.5])) : float32[2]"
B = "%b = constant(value=array(float32[], [-0.0])) : float32[]"


def test_a_whole_expression_is_folded(becomes):
    becomes(
        run,
        f"graph g(%x: float32[2]) {{ {A} {B} %c = mul(%a, %b) : float32[2] %d = sub(%c, %a) : float32[2]"
        f" %e = add(%x, %d) : float32[2] return %e }}",
        f"""graph g(%x: float32[2]) {{ {A} {B}
          %c = constant(value=array(float32[2], [-0.0, 0.0])) : float32[2]
          %d = constant(value=array(float32[2], [-1.0, 2.5])) : float32[2]
          %e = add(%x, %d) : float32[2] return %e }}""",
        2,
    )


def test_lines_are_kept():
    graph = parse_graph(f"graph g() {{ {A} %c = neg(%a) : float32[2]  # a.py:3, in f\n return %c }}")
    new, _ = run(graph)
    assert new.outputs[0].node.op is constant_p
    assert new.outputs[0].node.location == graph.nodes[1].location


@pytest.mark.parametrize(
    "text",
    [
        f"graph g() {{ {A} return %a }}",
        f"graph g(%x: float32[2]) {{ {A} %c = add(%x, %a) : float32[2] return %c }}",
        f"graph g() {{ {A} %c, %d = barrier(%a, %a) : float32[2], float32[2] return %c }}",
        f"graph g() {{ {A} %c = call(%a) {{ graph = graph f(%x: float32[2]) {{ %y = neg(%x) : float32[2]"
        f" return %y }} }} : float32[2] return %c }}",
        # a loop may run for ever
        f"""graph g() {{ {A} %c = while_loop(%a, n_const=0) {{
              cond_graph = graph c(%x: float32[2]) {{ %y = constant(value=array(bool[], [True])) : bool[] return %y }}
              body_graph = graph b(%x: float32[2]) {{ return %x }} }} : float32[2] return %c }}""",
        # what XLA makes without reading memory
        f"graph g() {{ {B} %c = broadcast_to(%b, shape=(65,)) : float32[65] return %c }}",
        "graph g() { %c = full(shape=(65,), value=1.0, dtype=float32) : float32[65] return %c }",
        # large results and operands
        f'graph g() {{ {B} %c = broadcast_to(%b, shape=(1025,)) : float32[1025]'
        f' %d = neg(%c) : float32[1025] return %d }}',
    ],
)  # fmt: skip
def test_what_is_not_folded(stays, text):
    stays(run, text)


def test_what_has_no_operands_is_folded(becomes):
    becomes(
        run,
        "graph g() { %c = full(shape=(2,), value=1.5, dtype=float32) : float32[2] return %c }",
        "graph g() { %c = constant(value=array(float32[2], [1.5, 1.5])) : float32[2] return %c }",
        1,
    )


def test_effects_are_not_folded(stays, noted):
    stays(run, f"graph g() {{ {A} %c = noted(%a) : float32[2] return %c }}")


def test_folding_goes_on_inside_sub_graphs(becomes):
    def text(body):
        return f"""graph g(%p: bool[]) {{ %r = cond(%p) {{
          true_graph = graph t() {{ {A} {body} return %c }}
          false_graph = graph f() {{ {A} return %a }} }} : float32[2] return %r }}"""

    becomes(
        run,
        text("%c = neg(%a) : float32[2]"),
        text("%c = constant(value=array(float32[2], [-1.0, 2.5])) : float32[2]"),
        1,
    )


@pytest.mark.parametrize(
    "error", [ValueError("no"), ShapeError("failing", "x", got="1", takes="2"), RuntimeError("no"), OverflowError()]
)
def test_an_operator_that_fails_is_left(error):
    def fail(x):
        raise error

    failing = Primitive("failing", infer=lambda x: x, lower=fail)
    try:
        graph = parse_graph(f"graph g() {{ {A} %c = failing(%a) : float32[2] return %c }}")
        assert run(graph) == (graph, 0)
    finally:
        del PRIMITIVES[failing.name]


def test_an_operator_that_gives_another_type_than_promised_is_left():
    wrong = Primitive("wrong", infer=lambda x: x, lower=lambda x: x.astype("int32"))
    try:
        graph = parse_graph(f"graph g() {{ {A} %c = wrong(%a) : float32[2] return %c }}")
        assert run(graph) == (graph, 0)
    finally:
        del PRIMITIVES[wrong.name]


def test_several_results_and_results_of_other_dtypes():
    pair = Primitive(
        "pair", infer=lambda x: (x, TensorType(dt.bool_, x.shape)), lower=lambda x: (x * 2, x > 0), multi=True
    )
    try:
        graph = parse_graph(f"graph g() {{ {A} %c, %d = pair(%a) : float32[2], bool[2] return %d, %c }}")
        new, changes = run(graph)
        verify(new)
        assert changes == 1
        assert [known_array(v).tolist() for v in new.outputs] == [[True, False], [2.0, -5.0]]
    finally:
        del PRIMITIVES[pair.name]


def test_number_of_compilations_is_bounded(monkeypatch):
    monkeypatch.setattr(constant_folding, "MAX_DISTINCT", 3)
    times = Primitive("times", infer=lambda x, *, by: x, lower=lambda x, *, by: x * by)
    try:
        graph = Graph("g")
        x = graph.add_node(constant_p, (), {"value": ArrayConstant(np.array(2.0, np.float32))}).outputs[0]
        for by in range(5):
            graph.outputs.append(graph.add_node(times, (x,), {"by": by}).outputs[0])
        graph.outputs += [graph.add_node(times, (x,), {"by": 1}).outputs[0] for _ in range(5)]
        new, changes = run(graph)
        assert changes == 3 + 5
        assert sum(n.op is times for n in new.nodes) == 2
    finally:
        del PRIMITIVES[times.name]


NUMBERS = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-30, 3e38, 7.0]
BINARY = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "add", "mul", "sub"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "int64", "bool", "float16", "bfloat16"])
def test_numpy_and_the_engine_give_the_same_bits(graphs, dtype):
    """Everything that NumPy may fold, for all pairs of numbers, against the lowering of the operator."""
    kind = dt.dtype_named(dtype)
    with np.errstate(all="ignore"):
        numbers = NUMBERS if kind.is_floating else [0, 1, 2, 5, 100, 127, 1, 0, 3, 7]
        column = np.array(numbers).astype(kind.np).reshape(-1, 1)
    arrays = [column, column.T, np.arange(10) % 3 == 0]
    graph = Graph("g")
    first, second, mask = [graph.add_param(TensorType(dt.from_numpy(a.dtype), a.shape)) for a in arrays]
    calls = [(name, (first, second), {}) for name in BINARY if kind.kind != "b" or name != "sub"]
    calls += [("where", (mask, first, second), {}), ("reshape", (first,), {"shape": (2, 5)})]
    calls += [("broadcast_to", (second,), {"shape": (3, 10)}), ("transpose", (first,), {"perm": (1, 0)})]
    if kind.kind == "b":
        calls += [(name, (first, second), {}) for name in ("logical_and", "logical_or", "logical_xor")]
        calls.append(("logical_not", (first,), {}))
    else:
        calls.append(("neg", (first,), {}))
    for target in ("bool", "int8", "int32", "int64", "float16", "float32", "float64"):
        calls.append(("cast", (first,), {"dtype": dt.dtype_named(target)}))
    graph.outputs = [graph.add_node(PRIMITIVES[name], inputs, attrs).outputs[0] for name, inputs, attrs in calls]
    by_engine = jax.jit(lambda *xs: evaluate(graph, xs))(*arrays)
    held = dict(zip(graph.params, arrays, strict=True))
    compared = set()
    for (name, inputs, attrs), array in zip(calls, by_engine, strict=True):
        folded = constant_folding._by_numpy(name, [held[v] for v in inputs], attrs)
        if folded is not None:
            compared.add(name)
            assert graphs.same(folded, np.asarray(array)), (name, attrs)
    assert {"where", "reshape", "broadcast_to", "transpose"} <= compared
    assert ({"equal", "less", "cast"} <= compared) is (kind not in (dt.float16, dt.bfloat16))


def test_numbers_that_are_flushed_to_zero_are_left_to_the_engine():
    for name, arrays in (
        ("mul", [np.float32(1e-30), np.float32(1e-10)]), ("add", [np.float32(1e-42), np.float32(0)]),
        ("neg", [np.float32(1e-42)]), ("less", [np.float32(0), np.float32(1e-42)]),
    ):  # fmt: skip
        assert constant_folding._by_numpy(name, [np.asarray(a) for a in arrays], {}) is None


@given(st.integers(0, 2**32))
@settings(max_examples=40)
def test_random_graphs_compute_the_same(preserves, seed):
    preserves(run, seed)
