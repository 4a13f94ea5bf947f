"""Branches and loops that can be decided or narrowed before they run."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from mycelia.compiler.passes.control_flow import run

BRANCHES = """true_graph = graph t(%x: int8[]) { %a = neg(%x) : int8[] return %a }
              false_graph = graph f(%x: int8[]) { return %x }"""
CONDITION = "cond_graph = graph c(%x: int8[]) { %a = cast(%x, dtype=bool) : bool[] return %a }"


@pytest.mark.parametrize(("known", "after", "result"), [("True", "%a = neg(%x) : int8[]", "%a"), ("False", "", "%x")])
def test_known_branch_is_taken(becomes, known, after, result):
    predicate = f"%p = constant(value=array(bool[], [{known}])) : bool[]"
    becomes(
        run,
        f"graph g(%x: int8[]) {{ {predicate} %a = cond(%p, %x) {{ {BRANCHES} }} : int8[] return %a }}",
        f"graph g(%x: int8[]) {{ {predicate} {after} return {result} }}",
        1,
    )


@pytest.mark.parametrize(
    "text",
    [
        f"graph g(%p: bool[], %x: int8[]) {{ %a = cond(%p, %x) {{ {BRANCHES} }} : int8[] return %a }}",
        f"""graph g(%x: int8[]) {{ %a = while_loop(%x, n_const=0) {{ {CONDITION}
            body_graph = graph b(%x: int8[]) {{ %a = neg(%x) : int8[] return %a }} }} : int8[] return %a }}""",
        """graph g(%x: int8[], %s: int8[2]) { %a, %b = scan(%x, %s, n_const=0, n_carry=1, length=2, reverse=False) {
            body_graph = graph b(%x: int8[], %s: int8[]) { return %s, %x } } : int8[], int8[2] return %a, %b }""",
        """graph g(%x: int8[]) { %a = call(%x) {
            graph = graph f(%x: int8[]) { %a = neg(%x) : int8[] return %a } } : int8[] return %a }""",
        # carried values that change places are not constant
        """graph g(%x: int8[], %y: int8[]) { %a, %b = while_loop(%x, %y, n_const=0) {
            cond_graph = graph c(%x: int8[], %y: int8[]) { %a = cast(%x, dtype=bool) : bool[] return %a }
            body_graph = graph b(%x: int8[], %y: int8[]) { return %y, %x } } : int8[], int8[] return %a, %b }""",
        # the same result of the branches, but nobody uses it
        """graph g(%p: bool[], %x: int8[]) { %a = cond(%p, %x) {
            true_graph = graph t(%x: int8[]) { return %x }
            false_graph = graph f(%x: int8[]) { return %x } } : int8[] return %x }""",
        # different constants
        """graph g(%p: bool[]) { %a = cond(%p) {
            true_graph = graph t() { %a = constant(value=array(float32[], [0.0])) : float32[] return %a }
            false_graph = graph f() { %a = constant(value=array(float32[], [-0.0])) : float32[] return %a }
            } : float32[] return %a }""",
    ],
)
def test_undecided_stays(stays, text):
    stays(run, text)


def test_result_that_both_branches_take_from_one_operand(becomes):
    def text(second):
        return f"""graph g(%p: bool[], %x: int8[], %y: int8[]) {{
          %a, %b = cond(%p, %x, %y) {{
            true_graph = graph t(%x: int8[], %y: int8[]) {{ %a = neg(%x) : int8[] return %a, %y }}
            false_graph = graph f(%x: int8[], %y: int8[]) {{ return %x, %y }}
          }} : int8[], int8[]
          return %a, {second}
        }}"""

    becomes(run, text("%b"), text("%y"), 1)


def test_result_that_both_branches_take_from_operands_that_are_one(becomes):
    def text(result):
        return f"""graph g(%p: bool[], %x: int8[]) {{
          %a = cond(%p, %x, %x) {{
            true_graph = graph t(%x: int8[], %y: int8[]) {{ return %x }}
            false_graph = graph f(%x: int8[], %y: int8[]) {{ return %y }}
          }} : int8[]
          return {result}
        }}"""

    becomes(run, text("%a"), text("%x"), 1)


def test_constant_that_both_branches_make(becomes):
    def text(constant, result):
        return f"""graph g(%p: bool[], %x: int8[]) {{
          {constant[0]}
          %a, %b = cond(%p, %x) {{
            true_graph = graph t(%x: int8[]) {{ %c = constant(value=array(int8[], [5])) : int8[] return %x, %c }}
            false_graph = graph f(%x: int8[]) {{ %c = constant(value=array(int8[], [5])) : int8[]
              %d = neg(%x) : int8[] return %d, %c }}
          }} : int8[], int8[]
          {constant[1]}
          return %a, {result}
        }}"""

    becomes(run, text(("", ""), "%b"), text(("%k = constant(value=array(int8[], [5])) : int8[]", ""), "%k"), 1)


def test_parameter_that_a_call_gives_back(becomes):
    def text(result):
        return f"""graph g(%x: int8[], %y: int8[]) {{
          %a, %b = call(%x, %y) {{ graph = graph f(%x: int8[], %y: int8[]) {{ %a = neg(%x) : int8[]
            return %a, %y }} }} : int8[], int8[]
          return %a, {result}
        }}"""

    becomes(run, text("%b"), text("%y"), 1)


def test_loop_that_never_runs(becomes):
    becomes(
        run,
        """graph g(%k: int8[], %x: int8[]) {
          %a = while_loop(%k, %x, n_const=1) {
            cond_graph = graph c(%k: int8[], %x: int8[]) {
              %a = constant(value=array(bool[], [False])) : bool[] return %a }
            body_graph = graph b(%k: int8[], %x: int8[]) { %a = neg(%x) : int8[] return %a }
          } : int8[]
          return %a
        }""",
        "graph g(%k: int8[], %x: int8[]) { return %x }",
        1,
    )


def test_loop_that_never_runs_but_whose_condition_has_an_effect(stays, noted):
    stays(
        run,
        """graph g(%x: int8[]) {
          %a = while_loop(%x, n_const=0) {
            cond_graph = graph c(%x: int8[]) { %e = noted(%x) : int8[]
              %a = constant(value=array(bool[], [False])) : bool[] return %a }
            body_graph = graph b(%x: int8[]) { %a = neg(%x) : int8[] return %a }
          } : int8[]
          return %a
        }""",
    )


def test_scan_of_no_rows(becomes):
    becomes(
        run,
        """graph g(%k: int8[], %x: int8[], %s: int8[0]) {
          %a = scan(%k, %x, %s, n_const=1, n_carry=1, length=0, reverse=False) {
            body_graph = graph b(%k: int8[], %x: int8[], %s: int8[]) { %a = add(%x, %s) : int8[] return %a }
          } : int8[]
          return %a
        }""",
        "graph g(%k: int8[], %x: int8[], %s: int8[0]) { return %x }",
        1,
    )


def test_unchanging_carried_value_of_while_becomes_a_constant(becomes):
    becomes(
        run,
        """graph g(%k: int8[], %x: int8[], %y: int8[], %z: int8[]) {
          %a, %b, %c = while_loop(%k, %x, %y, %z, n_const=1) {
            cond_graph = graph c(%k: int8[], %x: int8[], %y: int8[], %z: int8[]) {
              %a = cast(%x, dtype=bool) : bool[] return %a }
            body_graph = graph b(%k: int8[], %x: int8[], %y: int8[], %z: int8[]) {
              %a = sub(%x, %x) : int8[] return %a, %y, %x }
          } : int8[], int8[], int8[]
          return %a, %b, %c
        }""",
        """graph g(%k: int8[], %x: int8[], %y: int8[], %z: int8[]) {
          %a, %c = while_loop(%k, %y, %x, %z, n_const=2) {
            cond_graph = graph c(%k: int8[], %y: int8[], %x: int8[], %z: int8[]) {
              %a = cast(%x, dtype=bool) : bool[] return %a }
            body_graph = graph b(%k: int8[], %y: int8[], %x: int8[], %z: int8[]) {
              %a = sub(%x, %x) : int8[] return %a, %x }
          } : int8[], int8[]
          return %a, %y, %c
        }""",
        1,
    )


def test_unchanging_carried_value_of_scan_becomes_a_constant(becomes):
    becomes(
        run,
        """graph g(%k: int8[], %x: int8[], %y: int8[], %s: int8[3]) {
          %a, %b, %c = scan(%k, %x, %y, %s, n_const=1, n_carry=2, length=3, reverse=True) {
            body_graph = graph b(%k: int8[], %x: int8[], %y: int8[], %s: int8[]) {
              %a = add(%y, %s) : int8[] return %x, %a, %x }
          } : int8[], int8[], int8[3]
          return %a, %b, %c
        }""",
        """graph g(%k: int8[], %x: int8[], %y: int8[], %s: int8[3]) {
          %b, %c = scan(%k, %x, %y, %s, n_const=2, n_carry=1, length=3, reverse=True) {
            body_graph = graph b(%k: int8[], %x: int8[], %y: int8[], %s: int8[]) {
              %a = add(%y, %s) : int8[] return %a, %x }
          } : int8[], int8[3]
          return %x, %b, %c
        }""",
        1,
    )


@given(st.integers(0, 2**32))
@settings(max_examples=200)
def test_random_graphs_compute_the_same(preserves, seed):
    preserves(run, seed)
