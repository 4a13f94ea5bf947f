"""bfloat16 between products: which operators are given it, which are not, and what that does to the numbers."""

from __future__ import annotations

import numpy as np

import mycelia as ms
from mycelia import amp, nn, ops
from mycelia.compiler import executable
from mycelia.compiler.passes import half_precision
from mycelia.core import dtypes as dt
from mycelia.ir.parser import parse_graph


def after(text):
    """The operators of a graph behind the pass, and how many were changed."""
    graph, changes = half_precision.run(parse_graph(text))
    return [(n.op.name, str(n.outputs[0].type.dtype)) for n in graph.nodes], changes


def test_a_chain_between_two_casts():
    found, changes = after(
        """graph main(%x: bfloat16[4,3], %y: bfloat16[4,3]) {
          %0 = cast(%x, dtype=float32) : float32[4,3]
          %1 = cast(%y, dtype=float32) : float32[4,3]
          %2 = add(%0, %1) : float32[4,3]
          %3 = relu(%2) : float32[4,3]
          %4 = cast(%3, dtype=bfloat16) : bfloat16[4,3]
          return %4
        }"""
    )
    assert found == [("add", "BFloat16"), ("relu", "BFloat16")]
    assert changes == 2


def test_a_sum_with_a_float32_operand_stays():
    found, changes = after(
        """graph main(%x: bfloat16[4,3], %y: float32[4,3]) {
          %0 = cast(%x, dtype=float32) : float32[4,3]
          %1 = add(%0, %y) : float32[4,3]
          %2 = relu(%1) : float32[4,3]
          %3 = cast(%2, dtype=bfloat16) : bfloat16[4,3]
          return %3
        }"""
    )
    assert changes == 0
    assert [name for name, _ in found] == ["cast", "add", "relu", "cast"]


def test_what_goes_elsewhere_is_cast_back():
    found, _ = after(
        """graph main(%x: bfloat16[4,3]) {
          %0 = cast(%x, dtype=float32) : float32[4,3]
          %1 = relu(%0) : float32[4,3]
          %2 = cast(%1, dtype=bfloat16) : bfloat16[4,3]
          %3 = sin(%1) : float32[4,3]
          return %2, %3
        }"""
    )
    assert found == [("relu", "BFloat16"), ("cast", "Float32"), ("sin", "Float32")]


def test_nothing_happens_without_a_cast_to_half():
    graph = parse_graph("graph main(%x: float32[4]) {\n  %0 = relu(%x) : float32[4]\n  return %0\n}")
    assert half_precision.run(graph) == (graph, 0)


def test_statistics_and_parameters_stay_float32():
    text = """graph main(%x: bfloat16[8,3], %s: float32[3], %b: float32[3]) {
      %0 = cast(%x, dtype=float32) : float32[8,3]
      %1, %2, %3 = batch_norm(%0, %s, %b, axis=1, epsilon=1e-05) : float32[8,3], float32[3], float32[3]
      %4 = cast(%1, dtype=bfloat16) : bfloat16[8,3]
      return %4, %2, %3
    }"""
    graph, changes = half_precision.run(parse_graph(text))
    (node,) = graph.nodes
    assert changes == 1
    assert [str(v.type.dtype) for v in node.outputs] == ["BFloat16", "Float32", "Float32"]
    assert [str(v.type.dtype) for v in node.inputs] == ["BFloat16", "Float32", "Float32"]


def test_inside_a_branch():
    graph = parse_graph("""graph main(%p: bool[], %x: bfloat16[4]) {
      %0 = cond(%p, %x) {
        true_graph = graph a(%x: bfloat16[4]) {
          %0 = cast(%x, dtype=float32) : float32[4]
          %1 = relu(%0) : float32[4]
          %2 = cast(%1, dtype=bfloat16) : bfloat16[4]
          return %2
        }
        false_graph = graph b(%x: bfloat16[4]) { return %x }
      } : bfloat16[4]
      return %0
    }""")
    new, changes = half_precision.run(graph)
    assert changes == 1
    assert [n.op.name for n in new.nodes[0].attrs["true_graph"].nodes] == ["relu"]


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)
        self.head = nn.Dense(8, 4)

    def construct(self, x):
        y = ops.relu(self.bn1(self.conv1(x)))
        y = ops.relu(self.bn2(self.conv2(y)) + y)
        return self.head(y.mean((2, 3)))


def losses(precision, mode):
    """Losses of 15 steps on the same batch, and what ran them."""
    ms.set_seed(0)
    network = Network()
    if precision == "bf16":
        network = amp.auto_mixed_precision(network, "auto", ms.bfloat16)
    network.set_train()
    optimizer = nn.Momentum(network.trainable_params(), 0.2, 0.9)
    rng = np.random.default_rng(0)
    x, y = ms.Tensor(rng.standard_normal((16, 3, 8, 8)), ms.float32), ms.Tensor(rng.integers(0, 4, 16), ms.int32)
    loss_fn = nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: loss_fn(network(x).astype(ms.float32), y), None, optimizer.parameters)

    def step(x, y):
        loss, grads = gradient(x, y)
        optimizer(grads)
        return loss

    run = ms.jit(step) if mode == "graph" else step
    return np.array([float(run(x, y)) for _ in range(15)]), run


def test_mixed_precision_trains_as_well():
    """Compiled mixed precision follows float32 as closely as the same run operator by operator."""
    exact, _ = losses("f32", "graph")
    before = set(executable._by_structure.values())
    graph, kept = losses("bf16", "graph")
    eager, _ = losses("bf16", "pynative")
    assert exact[-1] < 0.5 * exact[0]
    assert np.abs(graph - exact).max() < 0.05 * exact[0]
    assert np.abs(eager - exact).max() < 0.05 * exact[0]
    nodes = [n for e in set(executable._by_structure.values()) - before for n in e.graph.nodes]
    normalized = [n.outputs[0].type.dtype for n in nodes if n.op.name.startswith("batch_norm")]
    assert normalized.count(dt.bfloat16) == 4  # both layers, there and back
    assert kept is not None  # its graph lives as long as it
