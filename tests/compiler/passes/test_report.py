"""Costs by hand, and the text of a report."""

from __future__ import annotations

import pytest

from mycelia.compiler.phases import Phases
from mycelia.compiler.report import CompileReport, GraphCost, OpCost, PassReport, graph_cost
from mycelia.ir.parser import parse_graph

CONV = "strides=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=2, channels_last=False"


def one(params, call, type_):
    names = ", ".join(f"%{i}: {t}" for i, t in enumerate(params))
    cost = graph_cost(parse_graph(f"graph g({names}) {{ %r = {call} : {type_} return %r }}"))
    (found,) = cost.by_operator.values()
    return found


@pytest.mark.parametrize(
    ("params", "call", "type_", "flops", "moved"),
    [
        (["float32[2,3]", "float32[3]"], "add(%0, %1)", "float32[2,3]", 6, 4 * (6 + 3 + 6)),
        (["float64[4,5]"], "reduce_sum(%0, axes=(0,), keepdims=False)", "float64[5]", 20, 8 * 25),
        (["int8[4,5]"], "transpose(%0, perm=(1,0))", "int8[5,4]", 0, 40),
        (["int8[4]"], "cast(%0, dtype=float32)", "float32[4]", 0, 4 + 16),
        ([], "constant(value=array(int8[2], [1, 2]))", "int8[2]", 0, 2),
        (["float32[7,2,3]", "float32[3,5]"], "matmul(%0, %1, transpose_a=False, transpose_b=False)", "float32[7,2,5]",
         2 * 70 * 3, 4 * (42 + 15 + 70)),
        (["float32[3,2]", "float32[5,3]"], "matmul(%0, %1, transpose_a=True, transpose_b=True)",
         "float32[2,5]", 2 * 10 * 3, 4 * 31),
        (["float32[3]", "float32[3,5]"], "matmul(%0, %1, transpose_a=True, transpose_b=False)", "float32[5]",
         2 * 5 * 3, 4 * 23),
        (["float32[4,3]", "float32[5,3]"], "dense(%0, %1)", "float32[4,5]", 2 * 20 * 3, 4 * (12 + 15 + 20)),
        (["float32[4,3]", "float32[5,3]", "float32[5]"], "dense(%0, %1, %2)", "float32[4,5]", 2 * 20 * 3 + 20, 4 * 52),
        (["float32[2,3]", "float32[3,4]"], 'einsum(%0, %1, equation="ij,jk->ik")', "float32[2,4]", 2 * 24,
         4 * (6 + 12 + 8)),
        # an image of 8 by 8, a kernel of 3 by 3, two groups of 2 channels to 3
        (["float32[1,4,8,8]", "float32[6,2,3,3]"], f"conv(%0, %1, {CONV})", "float32[1,6,6,6]", 2 * 216 * 18,
         4 * (256 + 108 + 216)),
        (["float32[1,6,6,6]", "float32[6,2,3,3]"], f"conv_input_grad(%0, %1, input_shape=(1, 4, 8, 8), {CONV})",
         "float32[1,4,8,8]", 2 * 216 * 18, 4 * (256 + 108 + 216)),
        (["float32[1,6,6,6]", "float32[1,4,8,8]"], f"conv_weight_grad(%0, %1, weight_shape=(6, 2, 3, 3), {CONV})",
         "float32[6,2,3,3]", 2 * 216 * 18, 4 * (256 + 108 + 216)),
    ],
)  # fmt: skip
def test_operators(params, call, type_, flops, moved):
    assert one(params, call, type_) == OpCost(1, flops, moved)


def test_control_flow():
    cost = graph_cost(
        parse_graph(
            """graph g(%p: bool[], %x: float32[10], %s: float32[4,10]) {
              %a = cond(%p, %x) {
                true_graph = graph t(%x: float32[10]) { %a = neg(%x) : float32[10] return %a }
                false_graph = graph f(%x: float32[10]) { %a = mul(%x, %x) : float32[10]
                  %b = mul(%a, %a) : float32[10] return %b }
              } : float32[10]
              %b = scan(%a, %s, n_const=0, n_carry=1, length=4, reverse=False) {
                body_graph = graph b(%x: float32[10], %s: float32[10]) { %a = add(%x, %s) : float32[10] return %a }
              } : float32[10]
              %c = while_loop(%b, n_const=0) {
                cond_graph = graph c(%x: float32[10]) { %k = constant(value=array(bool[], [False])) : bool[] return %k }
                body_graph = graph b(%x: float32[10]) { %a = sub(%x, %x) : float32[10] return %a }
              } : float32[10]
              %d = custom_vjp_call(%c) {
                graph = graph f(%x: float32[10]) { %a = neg(%x) : float32[10] return %a }
                backward = graph r(%x: float32[10], %o: float32[10], %c: float32[10]) {
                  %a = div(%c, %x) : float32[10] return %a }
              } : float32[10]
              return %d
            }"""
        )
    )
    assert {name: c.count for name, c in cost.by_operator.items()} == {
        "mul": 2,
        "add": 4,
        "constant": 1,
        "sub": 1,
        "neg": 1,
    }
    assert cost.flops == 20 + 40 + 10 + 10
    assert cost.by_operator["add"] == OpCost(4, 40, 4 * 3 * 40)
    assert cost.bytes == sum(c.bytes for c in cost.by_operator.values())
    assert cost.open_loops == 1


def test_a_graph_held_often_is_costed_once_and_counted_often():
    text = "%1 = neg(%0) : float32[] return %1"
    for level in range(40):
        text = (
            f"%1 = call(%0) {{ graph = graph f &{level + 1}(%0: float32[]) {{ {text} }} }} : float32[]"
            f" %2 = call(%1) {{ graph = &{level + 1} }} : float32[] return %2"
        )
    assert graph_cost(parse_graph(f"graph g(%0: float32[]) {{ {text} }}")).flops == 2**40


def test_rendering():
    report = CompileReport(
        "net",
        [PassReport("inline", 1, 1200, 1100, 3, 0.0042), PassReport("algebraic", 2, 1100, 1000, 0, 1.5)],
        GraphCost({"matmul": OpCost(2, 3_500_000, 2048), "neg": OpCost(1, 10, 80)}, open_loops=1),
        operators={"matmul": (3, 2), "cast": (7, 0), "neg": (1, 1)},
        peak_bytes=3 * 2**20,
        value_bytes=12 * 2**20,
        phases=Phases(0.1, 0.2, 0.3, 0.4, 1.5),
    )
    assert (
        report.render()
        == str(report)
        == (
            "graph net\n"
            "nodes: 1,200 -> 1,000\n"
            "\n"
            "pass    round  before  after  changes    time\n"
            "inline      1   1,200  1,100        3  4.2 ms\n"
            "passes in all: 1.50 s\n"
            "\n"
            "operator  before  after  runs   flops     bytes\n"
            "matmul         3      2     2  3.50 M  2.00 KiB\n"
            "neg            1      1     1      10      80 B\n"
            "cast           7      0     0       0       0 B\n"
            "one run: 3.50 M flops, 2.08 KiB read and written\n"
            "1 loop(s) of unknown length are counted as one round\n"
            "peak memory: 3.00 MiB, 25.0% of all values (12.00 MiB)\n"
            "compiled in 2.50 s: stage 100.0 ms, passes 200.0 ms, trace 300.0 ms, lower 400.0 ms, XLA 1.50 s"
        )
    )


def test_an_empty_report():
    assert CompileReport("net").render() == "graph net"


def test_adding_and_repeating():
    cost = GraphCost({"neg": OpCost(1, 2, 3)}) + GraphCost({"neg": OpCost(1, 1, 1), "add": OpCost(1, 5, 6)}, 2)
    assert cost == GraphCost({"neg": OpCost(2, 3, 4), "add": OpCost(1, 5, 6)}, 2)
    assert cost.times(3).by_operator["neg"] == OpCost(6, 9, 12)
    assert (cost.flops, cost.bytes) == (8, 10)
