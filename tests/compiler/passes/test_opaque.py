"""Inputs of unknown value: where they go, what they are given, and what they are for."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.compiler.passes import inline, opaque
from mycelia.ir.evaluate import evaluate
from mycelia.ir.parser import parse_graph
from mycelia.ir.printer import graph_text
from mycelia.ir.verifier import verify


def unstack(n: int) -> str:
    results = ", ".join(f"%r{i}" for i in range(n))
    types = ", ".join(["float32[3]"] * n)
    return f"""graph g(%x: float32[3,{n}]) {{ {results} = unstack(%x, axis=1) : {types}
               return %r{n - 1}, %r0 }}"""


CALL = """graph g(%x: float32[3]) {{ %y = call(%x, {flags}) {{
  graph = graph f(%x: float32[3]) {{ %a = sin(%x) : float32[3] %b = cos(%x) : float32[3] return %a, %b }}
}} : float32[3], float32[3] return %y }}"""


def test_a_wide_unstack_takes_places():
    graph = parse_graph(unstack(opaque.LEAST_PARTS))
    new, numbers = opaque.run(graph)
    verify(new)
    assert [n.op.name for n in new.nodes] == ["part"] * opaque.LEAST_PARTS
    assert [(n.dtype, int(n)) for n in numbers] == [(np.uint32, i) for i in range(opaque.LEAST_PARTS)]
    x = np.random.default_rng(0).normal(size=graph.params[0].shape).astype(np.float32)
    for a, b in zip(evaluate(graph, [x]), evaluate(new, [x, *numbers]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_call_apart_is_a_branch_always_taken():
    graph = parse_graph(CALL.format(flags="apart=True").replace("%y = call", "%y, %z = call"))
    assert inline.run(graph) == (graph, 0)
    new, numbers = opaque.run(graph)
    verify(new)
    (node,) = new.nodes
    assert node.op.name == "cond"
    assert node.inputs[0] is new.params[-1]
    assert [(n.dtype, bool(n)) for n in numbers] == [(np.dtype(bool), True)]
    x = np.float32([1, 2, 3])
    np.testing.assert_allclose(evaluate(new, [x, *numbers])[0], np.sin(x), rtol=1e-6)


@pytest.mark.parametrize(
    "text", [unstack(opaque.LEAST_PARTS - 1), CALL.format(flags="recompute=True").replace("%y = call", "%y, %z = call")]
)
def test_others_stay(text):
    graph = parse_graph(text)
    before = graph_text(graph)
    assert opaque.run(graph) == (graph, [])
    assert graph_text(graph) == before


class Block(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Dense(32, 256), nn.Dense(256, 32)

    def construct(self, x: Tensor) -> Tensor:
        return x + self.down(ops.tanh(ops.tanh(self.up(x)) * 2))


def test_recompute_lowers_the_peak_and_keeps_the_gradients(capsys):
    def measured(recompute: bool):
        ms.set_seed(1)
        net = nn.SequentialCell(*[Block() for _ in range(8)])
        if recompute:
            for block in net:
                block.recompute()
        gradient = ms.jit(ms.grad(lambda x: net(x).square().sum(), None, net.trainable_params()))
        grads = gradient(Tensor(np.linspace(-1, 1, 512 * 32).reshape(512, 32).astype(np.float32)))
        (report,) = ms.compile_report(gradient)
        capsys.readouterr()
        return report.peak_bytes, [g.asnumpy() for g in grads]

    plain, expected = measured(False)
    less, found = measured(True)
    assert less < 0.6 * plain
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-3)
