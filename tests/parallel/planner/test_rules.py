"""Rules against the operators themselves: what is computed on parts, put together, is what is computed on the whole."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks.networks import make

from mycelia.ir.graph import Node
from mycelia.ir.primitive import PRIMITIVES
from mycelia.parallel.planner.rules import is_elementwise, rule_for
from mycelia.parallel.planner.task import stage_task

#: How the parts of a sum come together where it is not a sum.
_JOINED = {"reduce_mean": lambda parts: sum(parts) / len(parts), "reduce_max": lambda parts: np.maximum(*parts)}
#: What needs values of a certain kind, which random ones are not; checked by name below.
_SPECIAL = {"lstm_layer_grad", "max_pool_grad", "attention_grad", "cross_entropy", "cross_entropy_grad"}


def _nodes() -> list[Node]:
    """One node of each operator and rule in the training steps of the networks that are measured."""
    found: dict[Any, Node] = {}
    for name in ("mlp", "lenet", "r18", "gpt", "bert", "lstm", "resnet50"):
        work = make(name, small=True)
        for node in stage_task(work.step(), work.x, work.y).graph.nodes:
            rule = rule_for(node)
            found.setdefault((node.op.name, rule.inputs, rule.outputs), node)
    return list(found.values())


NODES = _nodes()


def _array(rng: np.random.Generator, node: Node, k: int) -> np.ndarray:
    value = node.inputs[k]
    if value.type.dtype.name.startswith("int"):
        length = node.attrs.get("length", node.inputs[0].type.shape[node.attrs.get("axis", 0)])
        return rng.integers(0, length, value.type.shape).astype(value.type.dtype.np)
    return (rng.standard_normal(value.type.shape) ** 2 + 0.1).astype(value.type.dtype.np)


def _local_attrs(node: Node, rule: Any, name: str, inputs: list[np.ndarray]) -> dict[str, Any]:
    attrs = dict(node.attrs)
    outs = [
        tuple([n // 2 if given == name else n for n, given in zip(v.type.shape, term, strict=True)])
        for v, term in zip(node.outputs, rule.outputs, strict=True)
    ]
    for key in ("shape", "input_shape", "weight_shape"):
        if key in attrs:
            attrs[key] = outs[0]
    if "stops" in attrs:
        attrs["stops"] = tuple(
            [n if given != name else n // 2 for n, given in zip(attrs["stops"], rule.inputs[0], strict=True)]
        )
    return attrs


def _run(node: Node, arrays: list[np.ndarray], attrs: dict[str, Any]) -> list[np.ndarray]:
    out = node.op.lower(*[jnp.asarray(a) for a in arrays], **attrs)
    return [np.asarray(o) for o in (out if node.op.multi else (out,))]


@pytest.mark.parametrize("node", NODES, ids=lambda n: n.op.name)
def test_parts_put_together_are_the_whole(node: Node) -> None:
    rule = rule_for(node)
    rng = np.random.default_rng(0)
    if node.op.name in _SPECIAL or not node.inputs or is_elementwise(node.op):
        assert rule.names() or not node.inputs or max(v.type.size for v in node.outputs) == 1
        return
    arrays = [_array(rng, node, k) for k in range(len(node.inputs))]
    whole = _run(node, arrays, node.attrs)
    checked = 0
    for name in rule.names():
        sizes = {
            v.type.shape[term.index(name)]
            for v, term in zip((*node.inputs, *node.outputs), (*rule.inputs, *rule.outputs), strict=True)
            if name in term
        }
        if (
            name in rule.inner
            or name in rule.idle
            or not rule.scatter
            or any(n % 2 for n in sizes)
            or not _enters(rule, name)
        ):
            continue
        halves = []
        for h in range(2):
            local = [
                np.split(a, 2, term.index(name))[h] if name in term else a
                for a, term in zip(arrays, rule.inputs, strict=True)
            ]
            if node.op.name in ("dense", "conv") and rule.partial(name) and len(local) > 2 and h:
                local[2] = np.zeros_like(local[2])  # a bias is added once
            halves.append(_run(node, local, _local_attrs(node, rule, name, local)))
        for k, term in enumerate(rule.outputs):
            pair = [half[k] for half in halves]
            if name in term:
                joined = np.concatenate(pair, term.index(name))
            else:
                joined = _JOINED.get(node.op.name, sum)(pair)
            np.testing.assert_allclose(joined, whole[k], rtol=2e-4, atol=2e-4, err_msg=f"{node.op.name} by {name}")
            checked += 1
    assert checked or not any(name not in rule.idle for name in rule.names()) or not rule.scatter or _odd(node, rule)


def _enters(rule: Any, name: str) -> bool:
    return any(name in term for term in rule.inputs)


def _odd(node: Node, rule: Any) -> bool:
    """Whether no dimension that has a name can be halved."""
    named = [
        n
        for v, term in zip((*node.inputs, *node.outputs), (*rule.inputs, *rule.outputs), strict=True)
        for n, name in zip(v.type.shape, term, strict=True)
        if name is not None
    ]
    return any(n % 2 for n in named) or bool(rule.inner)


def test_every_operator_of_the_measured_networks_has_names() -> None:
    lacking = sorted({
        node.op.name
        for node in NODES
        if not rule_for(node).names() and any(v.type.size > 1 for v in node.outputs)
    })  # fmt: skip
    assert lacking == []


def test_classes_are_divided_with_a_small_sum_inside() -> None:
    for node in NODES:
        if node.op.name == "cross_entropy":
            rule = rule_for(node)
            assert rule.inputs[0] == ("r0", "c")
            assert rule.partial("c") == []
            assert rule.inner["c"].nbytes == 8 * node.inputs[0].type.shape[0]
            assert rule.partial("r0") == [0]


def test_table_names_only_operators_that_exist() -> None:
    import mycelia  # noqa: F401  (declares all operators)
    from mycelia.parallel.planner.rule_table import TABLE

    assert sorted(set(TABLE) - set(PRIMITIVES)) == []
