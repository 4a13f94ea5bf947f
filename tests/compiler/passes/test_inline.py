"""Calls give way to what they call where that pays."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from mycelia.compiler.passes.inline import SMALL, run
from mycelia.ir.parser import parse_graph
from mycelia.ir.printer import graph_text
from mycelia.ir.rewriter import count_nodes


def twice(size):
    """A graph of `size` nodes called in two places."""
    body = "".join(f"%{i + 1} = neg(%{i}) : int8[] " for i in range(size))
    return f"""graph g(%x: int8[]) {{
      %a = call(%x) {{ graph = graph f &1(%0: int8[]) {{ {body} return %{size} }} }} : int8[]
      %b = call(%a) {{ graph = &1 }} : int8[]
      return %b
    }}"""


def test_a_graph_called_once_is_inlined_whatever_its_size(becomes):
    body = "".join(f"%{i + 1} = neg(%{i}) : int8[] " for i in range(50))
    becomes(
        run,
        f"graph g(%0: int8[]) {{ %a, %b = call(%0) {{ graph = graph f(%0: int8[]) {{ {body}"
        f" return %50, %0 }} }} : int8[], int8[]"
        " return %a, %b }",
        f"graph g(%0: int8[]) {{ {body} return %50, %0 }}",
        1,
    )


def test_a_small_graph_is_inlined_everywhere(becomes):
    body = "".join(f"%{i + 1} = neg(%{i}) : int8[] " for i in range(2 * SMALL))
    becomes(run, twice(SMALL), f"graph g(%0: int8[]) {{ {body} return %{2 * SMALL} }}", 2)


def test_a_large_graph_called_twice_stays(stays):
    stays(run, twice(SMALL + 1))


def test_recompute_and_lines(becomes):
    becomes(
        run,
        """graph g(%x: int8[]) {
          %a = call(%x, recompute=True) {
            graph = graph f(%x: int8[]) { %a = neg(%x) : int8[]  # a.py:2, in f
              return %a }
          } : int8[]  # a.py:9, in g
          return %a
        }""",
        "graph g(%x: int8[]) { %a = neg(%x) : int8[]  # a.py:2, in f\n return %a }",
        1,
    )


def test_custom_vjp_is_inlined_or_becomes_a_call():
    backward = "backward = graph r(%x: int8[], %a: int8[], %b: int8[]) { return %b }"
    text = twice(SMALL + 1).replace("call(", "custom_vjp_call(").replace("graph = &1 }", f"graph = &1 {backward} }}")
    text = text.replace("} } : int8[]\n      %b", f"}} {backward} }} : int8[]\n      %b")
    graph = parse_graph(text)
    new, changes = run(graph)
    assert changes == 2
    assert [n.op.name for n in new.nodes] == ["call", "call"]
    assert new.nodes[0].attrs["graph"] is new.nodes[1].attrs["graph"]
    small, changes = run(
        parse_graph(text.replace(f"%{SMALL + 1} = neg(%{SMALL}) : int8[]", "").replace(f"%{SMALL + 1} }}", "%0 }"))
    )
    assert changes == 2
    assert {n.op.name for n in small.nodes} == {"neg"}


def test_calls_in_calls_and_in_loops_are_inlined(becomes):
    becomes(
        run,
        """graph g(%x: int8[]) {
          %a = call(%x) { graph = graph f(%x: int8[]) {
            %a = call(%x) { graph = graph h(%x: int8[]) { %a = neg(%x) : int8[] return %a } } : int8[]
            return %a } } : int8[]
          %b = while_loop(%a, n_const=0) {
            cond_graph = graph c(%x: int8[]) { %a = cast(%x, dtype=bool) : bool[] return %a }
            body_graph = graph b(%x: int8[]) {
              %a = call(%x) { graph = graph h(%x: int8[]) { %a = add(%x, %x) : int8[] return %a } } : int8[]
              return %a }
          } : int8[]
          return %b
        }""",
        """graph g(%x: int8[]) {
          %a = neg(%x) : int8[]
          %b = while_loop(%a, n_const=0) {
            cond_graph = graph c(%x: int8[]) { %a = cast(%x, dtype=bool) : bool[] return %a }
            body_graph = graph b(%x: int8[]) { %a = add(%x, %x) : int8[] return %a }
          } : int8[]
          return %b
        }""",
        3,
    )


def test_growth_is_bounded_by_the_calls():
    """Each graph calls the one before twice: spelled out it would be 2**30 nodes."""
    text = "%1 = neg(%0) : int8[] return %1"
    for level in range(30):
        text = (
            f"%1 = call(%0) {{ graph = graph f &{level + 1}(%0: int8[]) {{ {text} }} }} : int8[]"
            f" %2 = call(%1) {{ graph = &{level + 1} }} : int8[] return %2"
        )
    graph = parse_graph(f"graph g(%0: int8[]) {{ {text} }}")
    new, _ = run(graph)
    assert count_nodes(new) <= count_nodes(graph) * SMALL
    assert "call" in graph_text(new)


def test_nothing_to_inline(stays):
    stays(run, "graph g(%x: int8[]) { %a = neg(%x) : int8[] return %a }")


@given(st.integers(0, 2**32))
@settings(max_examples=200)
def test_random_graphs_compute_the_same(preserves, seed):
    preserves(run, seed)
