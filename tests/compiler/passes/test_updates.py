"""Which nodes are collected into calls of the elementwise kernel, and that training stays what it was."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, native, nn, ops
from mycelia.compiler.passes import updates
from mycelia.ir.parser import parse_graph
from mycelia.ir.verifier import verify

MOMENTUM = """graph g(%lr: float32[], %g1: float32[3], %g2: float32[2,2], %m1: float32[3], %m2: float32[2,2],
                      %p1: float32[3], %p2: float32[2,2]) {{
  %a = mul(%m1, %lr) : float32[3]
  %b = add(%a, %g1) : float32[3]
  %c = sub(%p1, %b) : float32[3]
  %d = mul(%m2, %lr) : float32[2,2]
  %e = add(%d, %g2) : float32[2,2]
  %f = sub(%p2, %e) : float32[2,2]
  {more}
  return %b, %c, %e, %f{out}
}}"""
PAIRS = ((3, 0), (5, 1), (4, 2), (6, 3))


@pytest.fixture
def usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "_usable", lambda: True)


def calls(graph):
    return [n for n in graph.nodes if n.op.name == "elementwise_many"]


def test_groups_of_one_program_are_one_call(usable):
    graph = parse_graph(MOMENTUM.format(more="", out=""))
    new, taken = updates.run(graph, PAIRS)
    verify(new)
    assert taken == 6
    (node,) = new.nodes
    assert node.op.name == "elementwise_many"
    assert len(node.attrs["program"]) == 3 * 4
    assert node.attrs["layout"] == (3, 0, 0, 1, 0, 2, 0, 0, 1, 4, 3, 0, 4, 0, 5, 0, 2, 3)
    assert set(node.attrs["aliases"]) == {(1, 0), (3, 1), (4, 2), (6, 3)}


@pytest.mark.parametrize(
    ("more", "out", "taken"),
    [
        ("%h = exp(%c) : float32[3]", ", %h", 3),  # the new parameter is used by another operator
        ("%h = reduce_sum(%b, axes=(0,), keepdims=False) : float32[]", ", %h", 4),
        ("%h = exp(%g1) : float32[3]", ", %h", 6),
    ],
)
def test_what_others_wait_for_stays(usable, more, out, taken):
    graph = parse_graph(MOMENTUM.format(more=more, out=out))
    new, found = updates.run(graph, PAIRS)
    verify(new)
    assert found == taken


def test_other_dtypes_and_shapes_stay(usable):
    for type_ in ("float64[3]", "float32[]", "float32[0]"):
        graph = parse_graph(f"graph g(%p: {type_}, %g: {type_}) {{ %a = sub(%p, %g) : {type_} return %a }}")
        assert updates.run(graph, ((0, 0),)) == (graph, 0)


def test_nothing_is_collected_without_given_memory_or_kernel(usable, monkeypatch):
    graph = parse_graph(MOMENTUM.format(more="", out=""))
    assert updates.run(graph, ()) == (graph, 0)
    monkeypatch.setattr(updates, "_usable", lambda: False)
    assert updates.run(graph, PAIRS) == (graph, 0)


def test_parts_of_a_stacked_value_are_read_where_they_stand(usable):
    n = updates.MOST_GROUPS + 3
    names = [f"%g{i}" for i in range(n)]
    params = ", ".join(f"%p{i}: float32[2]" for i in range(n))
    subs = "\n".join(f"%q{i} = sub(%p{i}, {g}) : float32[2]" for i, g in enumerate(names))
    graph = parse_graph(
        f"graph g(%s: float32[{n},2], {params}) {{ {', '.join(names)} = unstack(%s, axis=0) : "
        f"{', '.join(['float32[2]'] * n)} {subs} return {', '.join(f'%q{i}' for i in range(n))} }}"
    )
    new, taken = updates.run(graph, tuple((i + 1, i) for i in range(n)))
    verify(new)
    assert taken == n
    assert [n.op.name for n in new.nodes] == ["elementwise_many"] * 2
    assert new.nodes[0].attrs["layout"][:10] == (2, 0, 0, 1, 0, 0, 2, 2, 0, 1)[:10]


@pytest.mark.skipif(not native.available, reason="the compiled kernels are not built here")
@pytest.mark.parametrize(
    "make",
    [
        lambda p: nn.Adam(p, 0.01), lambda p: nn.Adam(p, 0.01, use_nesterov=True, weight_decay=0.1),
        lambda p: nn.Adam(p, 0.01, use_amsgrad=True), lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.1),
        lambda p: nn.Momentum(p, 0.01, 0.9), lambda p: nn.SGD(p, 0.01), lambda p: nn.RMSProp(p, 0.01),
        lambda p: nn.Lamb(p, 0.01), lambda p: nn.Adam([{"params": p[:2], "lr": 0.1}, {"params": p[2:]}], 0.01),
    ],
    ids=["adam", "nesterov", "amsgrad", "adamw", "momentum", "sgd", "rmsprop", "lamb", "groups"],
)  # fmt: skip
def test_training_with_the_kernel_is_training_without(make, monkeypatch):
    def run(with_kernel: bool):
        monkeypatch.setattr(updates, "_usable", lambda: with_kernel)
        ms.set_seed(3)
        net = nn.SequentialCell(nn.Dense(7, 30), nn.BatchNorm1d(30), nn.Tanh(), nn.Dense(30, 5))
        optimizer = make(net.trainable_params())
        gradient = ms.value_and_grad(lambda x: ops.square(net(x)).mean(), None, optimizer.parameters)

        @ms.jit
        def step(x: Tensor) -> Tensor:
            loss, grads = gradient(x)
            optimizer(grads)
            return loss

        x = Tensor(np.linspace(-1, 1, 28).reshape(4, 7).astype(np.float32))
        losses = [step(x).asnumpy() for _ in range(4)]
        return [*losses, *(p.asnumpy() for p in (*net.get_parameters(), *optimizer.get_parameters()))]

    for a, b in zip(run(False), run(True), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
