"""The flow analysis: what is bound, read later, and certainly bound."""

from __future__ import annotations

import ast
from typing import Any

from mycelia.frontend.flow import Flow


def _flow(source: str) -> tuple[Flow, list[ast.stmt]]:
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    return Flow(node), node.body


def _names(flow: Flow, bits: int) -> set[str]:
    return {n for n in flow.locals if bits & flow.bit(n)}


def _state(source: str, index: int) -> Any:
    flow, body = _flow(source)
    state = flow.state(flow.span([body[index]]))
    return set(state.read), set(state.captured), set(state.dead)


def test_a_temporary_is_dead_and_a_result_is_read() -> None:
    source = """
def f(x, c):
    if c:
        t = x + 1
        y = t * 2
    else:
        y = x
    return y
"""
    assert _state(source, 0) == ({"y"}, set(), {"t"})


def test_what_a_closure_mentions_may_be_read_any_time() -> None:
    source = """
def f(x, c):
    g = lambda: t
    if c:
        t = x
        u = [t for _ in x]
    return g()
"""
    assert _state(source, 1) == (set(), {"t"}, {"u"})


def test_a_loop_carries_what_its_next_round_reads() -> None:
    source = """
def f(x, c):
    s = 0
    while c(s):
        t = x + s
        s = t
        u = t
    return x
"""
    flow, body = _flow(source)
    loop = body[1]
    start = flow.ranges[id(loop)][0]
    state = flow.state((start, flow.bodies[id(loop)]), flow.live_in[start])
    assert (state.read, state.captured, state.dead) == (["s"], [], ["t", "u"])


def test_jumps_lead_where_they_go() -> None:
    source = """
def f(x, c):
    for i in x:
        if c:
            y = 1
            break
        elif i:
            y = 2
            continue
        else:
            y = 3
            return y
    else:
        y = 4
    return y
"""
    flow, body = _flow(source)
    loop, last = body
    assert flow.is_sure("y", flow.ranges[id(last)][0])  # break and else both bind it
    assert not flow.is_sure("i", flow.ranges[id(last)][0])
    assert isinstance(loop, ast.For)
    branch = loop.body[0]
    assert isinstance(branch, ast.If)
    inner = flow.state((flow.bodies[id(branch)], flow.ranges[id(branch)][1]))
    assert inner.read == ["y"]


def test_exceptions_come_before_a_statement_binds() -> None:
    source = """
def f(x):
    try:
        y = x()
        z = y()
    except KeyError as error:
        w = error
    finally:
        v = 1
    return v
"""
    flow, body = _flow(source)
    block, last = body
    assert isinstance(block, ast.Try)
    handler = flow.ranges[id(block.handlers[0].body[0])][0]
    assert not flow.is_sure("y", handler)
    assert flow.is_sure("error", handler)
    assert flow.is_sure("v", flow.ranges[id(last)][0])
    assert not flow.is_sure("z", flow.ranges[id(last)][0])


def test_deleted_names_are_not_bound() -> None:
    flow, body = _flow("def f(x):\n    y = x\n    del y\n    return x\n")
    assert flow.is_sure("y", flow.ranges[id(body[1])][0])
    assert not flow.is_sure("y", flow.ranges[id(body[2])][0])


def test_names_of_other_scopes_are_shared() -> None:
    source = """
def f(x):
    global G
    n = 0
    def g():
        nonlocal n
        n = 1
    class C:
        n = 2
    G = [q for q in x if (w := q)]
    match x:
        case {"k": m, **rest} | [m, *rest]:
            pass
    import os.path as path, sys
    return n
"""
    flow, _ = _flow(source)
    assert flow.shared == {"G", "n"}
    assert flow.globals == {"G"}
    assert flow.locals == {"x", "n", "g", "C", "w", "m", "rest", "path", "sys"}
    assert _names(flow, flow.live_in[0]) <= {"x", "n"}
