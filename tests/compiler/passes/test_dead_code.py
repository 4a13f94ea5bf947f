"""What no output depends on goes, inside sub-graphs and across their borders too."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from mycelia.compiler.passes.dead_code import run
from mycelia.ir.parser import parse_graph
from mycelia.ir.rewriter import count_nodes


def test_unused_nodes_go(becomes):
    becomes(
        run,
        """graph g(%x: float32[2], %y: float32[2]) {
          %a = neg(%x) : float32[2]  # a.py:1, in f
          %b = neg(%a) : float32[2]
          %c = neg(%a) : float32[2]
          %d, %e = barrier(%c, %y) : float32[2], float32[2]
          return %a
        }""",
        "graph g(%x: float32[2], %y: float32[2]) { %a = neg(%x) : float32[2]  # a.py:1, in f\n return %a }",
        3,
    )


@pytest.mark.parametrize(
    "text",
    [
        "graph g(%x: float32[2], %unused: int8[]) { %a = neg(%x) : float32[2] return %a, %a }",
        "graph g(%x: float32[2]) { return }",
        "graph g(%x: float32[2]) { %a, %b = barrier(%x, %x) : float32[2], float32[2] return %b }",
        """graph g(%p: bool[], %x: float32[2]) {
          %a = cond(%p, %x) { true_graph = graph t(%x: float32[2]) { return %x }
                              false_graph = graph f(%x: float32[2]) { %z = neg(%x) : float32[2]
                                return %z } } : float32[2]
          return %a
        }""",
    ],
)
def test_live_graphs_stay(stays, text):
    stays(run, text)


def test_effects_stay_with_what_they_need(becomes, noted):
    becomes(
        run,
        "graph g(%x: int8[]) { %a = neg(%x) : int8[] %b = noted(%a) : int8[] %c = neg(%b) : int8[] return }",
        "graph g(%x: int8[]) { %a = neg(%x) : int8[] %b = noted(%a) : int8[] return }",
        1,
    )


def test_effects_inside_sub_graphs_stay(becomes, noted):
    becomes(
        run,
        """graph g(%p: bool[], %x: int8[], %y: int8[]) {
          %a, %b = cond(%p, %x, %y) {
            true_graph = graph t(%x: int8[], %y: int8[]) { %z = noted(%x) : int8[] %w = neg(%y) : int8[] return %z, %w }
            false_graph = graph f(%x: int8[], %y: int8[]) { return %x, %y }
          } : int8[], int8[]
          return
        }""",
        """graph g(%p: bool[], %x: int8[], %y: int8[]) {
          cond(%p, %x) {
            true_graph = graph t(%x: int8[]) { %z = noted(%x) : int8[] return }
            false_graph = graph f(%x: int8[]) { return }
          } : ()
          return
        }""",
        7,  # an operand and two results, in both branches, and a negation
    )


def test_unused_result_and_operand_of_cond_go(becomes):
    becomes(
        run,
        """graph g(%p: bool[], %x: int8[], %y: float32[]) {
          %n = neg(%y) : float32[]
          %a, %b = cond(%p, %n, %x) {
            true_graph = graph t(%y: float32[], %x: int8[]) { %z = neg(%y) : float32[] return %z, %x }
            false_graph = graph f(%y: float32[], %x: int8[]) { %z = neg(%x) : int8[] return %y, %z }
          } : float32[], int8[]
          return %b
        }""",
        """graph g(%p: bool[], %x: int8[], %y: float32[]) {
          %b = cond(%p, %x) {
            true_graph = graph t(%x: int8[]) { return %x }
            false_graph = graph f(%x: int8[]) { %z = neg(%x) : int8[] return %z }
          } : int8[]
          return %b
        }""",
        6,
    )


def test_operand_that_one_branch_needs_stays_for_both(stays):
    stays(
        run,
        """graph g(%p: bool[], %x: int8[], %y: int8[]) {
          %a = cond(%p, %x, %y) { true_graph = graph t(%x: int8[], %y: int8[]) { return %x }
                                  false_graph = graph f(%x: int8[], %y: int8[]) { return %y } } : int8[]
          return %a
        }""",
    )


def test_carried_value_that_only_feeds_itself_goes(becomes):
    becomes(
        run,
        """graph g(%i: int32[], %x: float32[], %y: float32[]) {
          %a, %b = while_loop(%x, %i, %y, n_const=1) {
            cond_graph = graph c(%x: float32[], %i: int32[], %y: float32[]) {
              %z = cast(%i, dtype=bool) : bool[] return %z }
            body_graph = graph b(%x: float32[], %i: int32[], %y: float32[]) {
              %one = constant(value=array(int32[], [1])) : int32[]
              %j = sub(%i, %one) : int32[]
              %w = mul(%y, %x) : float32[]
              return %j, %w
            }
          } : int32[], float32[]
          return %a
        }""",
        """graph g(%i: int32[], %x: float32[], %y: float32[]) {
          %a = while_loop(%i, n_const=0) {
            cond_graph = graph c(%i: int32[]) { %z = cast(%i, dtype=bool) : bool[] return %z }
            body_graph = graph b(%i: int32[]) {
              %one = constant(value=array(int32[], [1])) : int32[]
              %j = sub(%i, %one) : int32[]
              return %j
            }
          } : int32[]
          return %a
        }""",
        6,
    )


def test_carried_value_that_feeds_a_live_one_stays(stays):
    stays(
        run,
        """graph g(%i: int32[], %x: float32[], %y: float32[]) {
          %a, %b, %c = while_loop(%i, %x, %y, n_const=0) {
            cond_graph = graph c(%i: int32[], %x: float32[], %y: float32[]) {
              %z = cast(%i, dtype=bool) : bool[] return %z }
            body_graph = graph b(%i: int32[], %x: float32[], %y: float32[]) {
              %one = constant(value=array(int32[], [1])) : int32[]
              %j = sub(%i, %one) : int32[]
              %w = mul(%y, %y) : float32[]
              return %j, %y, %w
            }
          } : int32[], float32[], float32[]
          return %b
        }""",
    )


def test_unused_parts_of_scan_go(becomes):
    becomes(
        run,
        """graph g(%k: float32[], %x: float32[], %y: float32[], %s: float32[3,2], %t: int8[3]) {
          %a, %b, %c, %d = scan(%k, %x, %y, %s, %t, n_const=1, n_carry=2, length=3, reverse=True) {
            body_graph = graph b(%k: float32[], %x: float32[], %y: float32[], %s: float32[2], %t: int8[]) {
              %u = add(%x, %k) : float32[]
              %v = neg(%y) : float32[]
              %w = neg(%t) : int8[]
              return %u, %v, %s, %w
            }
          } : float32[], float32[], float32[3,2], int8[3]
          return %b, %d
        }""",
        """graph g(%k: float32[], %x: float32[], %y: float32[], %s: float32[3,2], %t: int8[3]) {
          %b, %d = scan(%y, %t, n_const=0, n_carry=1, length=3, reverse=True) {
            body_graph = graph b(%y: float32[], %t: int8[]) {
              %v = neg(%y) : float32[]
              %w = neg(%t) : int8[]
              return %v, %w
            }
          } : float32[], int8[3]
          return %b, %d
        }""",
        6,
    )


def test_shared_graph_keeps_what_any_holder_needs(becomes):
    becomes(
        run,
        """graph g(%x: int8[], %y: float32[]) {
          %a, %b, %c = call(%x, %y) {
            graph = graph f &1(%x: int8[], %y: float32[]) {
              %u = neg(%x) : int8[] %v = neg(%y) : float32[] %w = add(%v, %v) : float32[] return %u, %v, %w
            }
          } : int8[], float32[], float32[]
          %d, %e, %f = call(%a, %y) { graph = &1 } : int8[], float32[], float32[]
          return %d, %b
        }""",
        """graph g(%x: int8[], %y: float32[]) {
          %a, %b = call(%x, %y) {
            graph = graph f &1(%x: int8[], %y: float32[]) {
              %u = neg(%x) : int8[] %v = neg(%y) : float32[] return %u, %v
            }
          } : int8[], float32[]
          %d, %e = call(%a, %y) { graph = &1 } : int8[], float32[]
          return %d, %b
        }""",
        2,
    )


def test_graphs_of_custom_vjp_keep_their_signature(becomes):
    before = """graph g(%x: int8[]) {
      %a, %b = custom_vjp_call(%x) {
        graph = graph f(%x: int8[]) { %u = neg(%x) : int8[] %v = neg(%u) : int8[] return %u, %x }
        backward = graph r(%x: int8[], %a: int8[], %b: int8[], %c: int8[], %d: int8[]) {
          %z = neg(%d) : int8[] return %c }
      } : int8[], int8[]
      return %b
    }"""
    becomes(run, before, before.replace("%v = neg(%u) : int8[]", "").replace("%z = neg(%d) : int8[]", ""), 2)


def test_marks_each_slot_once_however_deep_the_loops():
    """Loops in loops, each carrying a chain of values of which only the last is needed."""
    text = "return %0, %0, %1, %2"
    for _ in range(6):
        body = f"graph b(%0: int8[], %1: int8[], %2: int8[], %3: int8[]) {{ {text} }}"
        cond = (
            "graph c(%0: int8[], %1: int8[], %2: int8[], %3: int8[]) { %c = cast(%0, dtype=bool) : bool[] return %c }"
        )
        text = (
            f"%4, %5, %6, %7 = while_loop(%0, %1, %2, %3, n_const=0) {{ cond_graph = {cond} body_graph = {body} }}"
            " : int8[], int8[], int8[], int8[] return %4, %5, %6, %7"
        )
    graph = parse_graph(
        f"graph g(%0: int8[], %1: int8[], %2: int8[], %3: int8[]) {{ {text.rpartition('return')[0]} return %7 }}"
    )
    new, changes = run(graph)
    assert (new, changes) == (graph, 0), "a needed value needs the one before it in the chain"
    assert count_nodes(graph) == 12


@given(st.integers(0, 2**32))
@settings(max_examples=200)
def test_random_graphs_compute_the_same(preserves, seed):
    preserves(run, seed)


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_nothing_is_left_for_a_second_run(graphs, seed):
    new, _ = run(graphs.random_graph(seed))
    assert run(new) == (new, 0)
