"""What takes the place of several operators: nothing is made too late, nothing that is still used goes."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia.compiler.passes import library
from mycelia.compiler.passes.library import Fusion
from mycelia.ir.evaluate import evaluate
from mycelia.ir.parser import parse_graph
from mycelia.ir.primitive import Primitive, primitive_named

PAIR = Primitive(
    "pair_of_tests", infer=lambda x, y: (x, x), lower=lambda x, y: (-(x + y), x + y), multi=True, differentiable=False
)


@pytest.fixture
def rules(monkeypatch):
    """No rules but those that a test adds."""
    monkeypatch.setattr(library, "RULES", {})


def negated_sum(node, uses):
    """``neg(add(x, y))``, looked at from the sum."""
    user = uses.sole(node.outputs[0])
    if user is None or user.op.name != "neg":
        return None
    return Fusion(PAIR, node.inputs, {}, (user.outputs[0], None), (node, user))


def kept_sum(node, uses):
    """The same where the sum is used by others too."""
    user = next((u for u in uses.of(node.outputs[0]) if u.op.name == "neg"), None)
    if user is None:
        return None
    return Fusion(PAIR, node.inputs, {}, (user.outputs[0], node.outputs[0]), (node, user))


def applied(text, name, rule):
    library.add_rule(name, rule)
    graph = parse_graph(text)
    new, changes = library.run(graph)
    x = [np.float32(3 + i) for i in range(len(graph.params))]
    assert [float(v) for v in evaluate(new, x)] == [float(v) for v in evaluate(graph, x)]
    return [n.op.name for n in new.nodes], changes


TWO = "graph g(%x: float32[], %y: float32[])"


def test_nothing_happens_without_rules(rules):
    graph = parse_graph(f"{TWO} {{ %a = add(%x, %y) : float32[] return %a }}")
    assert library.run(graph) == (graph, 0)


def test_a_pattern_becomes_one_node(rules):
    text = f"{TWO} {{ %a = add(%x, %y) : float32[] %b = neg(%a) : float32[] %c = sin(%b) : float32[] return %c }}"
    assert applied(text, "add", negated_sum) == (["pair_of_tests", "sin"], 2)


def test_a_value_that_others_use_stays(rules):
    text = f"{TWO} {{ %a = add(%x, %y) : float32[] %b = neg(%a) : float32[] %c = mul(%a, %b) : float32[] return %c }}"
    assert applied(text, "add", negated_sum) == (["add", "neg", "mul"], 0)
    assert applied(text, "add", kept_sum) == (["pair_of_tests", "mul"], 2)


def test_an_output_of_the_graph_stays(rules):
    text = f"{TWO} {{ %a = add(%x, %y) : float32[] %b = neg(%a) : float32[] return %a, %b }}"
    assert applied(text, "add", negated_sum)[1] == 0


def test_what_would_lose_a_value_is_refused(rules):
    def careless(node, uses):
        (user,) = [u for u in uses.of(node.outputs[0]) if u.op.name == "neg"]
        return Fusion(PAIR, node.inputs, {}, (user.outputs[0], None), (node, user))

    text = f"{TWO} {{ %a = add(%x, %y) : float32[] %b = neg(%a) : float32[] %c = mul(%a, %b) : float32[] return %c }}"
    assert applied(text, "add", careless) == (["add", "neg", "mul"], 0)


def test_an_operand_that_comes_later_is_waited_for(rules):
    """``x + sin(y)`` of a product that was looked at before the sine is there."""

    def early(node, uses):
        (total,) = uses.of(node.outputs[0])
        other = total.inputs[1]
        return Fusion(PAIR, (node.outputs[0], other), {}, (None, total.outputs[0]), (total,))

    text = f"{TWO} {{ %a = mul(%x, %x) : float32[] %b = sin(%y) : float32[] %c = add(%a, %b) : float32[] return %c }}"
    assert applied(text, "mul", early) == (["mul", "sin", "add"], 0)


def test_a_value_is_not_used_before_it_is_made(rules):
    """A result that moves back behind one of its users."""

    def late(node, uses):
        total = node.inputs[0].node
        return Fusion(PAIR, total.inputs, {}, (node.outputs[0], total.outputs[0]), (total, node))

    text = f"""{TWO} {{ %a = add(%x, %y) : float32[] %c = sin(%a) : float32[] %b = neg(%a) : float32[]
        %d = mul(%b, %c) : float32[] return %d }}"""
    assert applied(text, "neg", late) == (["add", "sin", "neg", "mul"], 0)


def test_patterns_do_not_share_nodes(rules):
    """The first that fits has a node; the second one leaves it."""
    library.add_rule("add", kept_sum)
    text = f"{TWO} {{ %a = add(%x, %y) : float32[] %b = neg(%a) : float32[] return %b }}"
    assert applied(text, "add", negated_sum) == (["pair_of_tests"], 2)


def test_inside_branches_but_not_inside_vmap(rules):
    body = "(%x: float32[2]) { %a = add(%x, %x) : float32[2] %b = neg(%a) : float32[2] return %b }"

    def doubled(node, uses):
        user = uses.sole(node.outputs[0])
        return Fusion(PAIR, node.inputs, {}, (user.outputs[0], None), (node, user))

    library.add_rule("add", doubled)
    text = f"graph g(%x: float32[2]) {{ %r = call(%x) {{ graph = graph f{body} }} : float32[2] return %r }}"
    graph, changes = library.run(parse_graph(text))
    assert changes == 2
    assert [n.op.name for n in graph.nodes[0].attrs["graph"].nodes] == ["pair_of_tests"]
    assert primitive_named("pair_of_tests") is PAIR
