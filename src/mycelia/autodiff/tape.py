"""Reverse-mode differentiation of a recorded run.

Each tracked tensor points at the :class:`~mycelia.tensor.tape.TapeNode` that made it. ``backward`` walks
the nodes reachable from the outputs that lead to the wanted leaves, latest first, and applies each
operator's rule. Rules are operators themselves, so under an outer gradient the walk is recorded again.
"""

from __future__ import annotations

from collections.abc import Sequence

from mycelia.autodiff.rules import pull_back
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import tracked
from mycelia.tensor.tape import TapeNode


def leaf(tensor: Tensor) -> TapeNode:
    """A node to differentiate against; for outer gradients it passes on to ``tensor``."""
    return TapeNode(None, (tensor._snapshot(),), {}, (tensor._value,))


def _reaching(roots: list[TapeNode], leaves: set[TapeNode]) -> list[TapeNode]:
    """The nodes between the leaves and the roots, in order of recording."""
    first = min(node.order for node in leaves)
    seen: set[TapeNode] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen or node.order < first:
            continue
        seen.add(node)
        if node not in leaves:
            stack.extend(x._node for x in node.inputs if x._node is not None)
    useful: set[TapeNode] = set()
    ordered = []
    for node in sorted(seen, key=lambda n: n.order):
        if node in leaves or any(x._node in useful for x in node.inputs if x._node is not None):
            useful.add(node)
            ordered.append(node)
    return ordered


def backward(
    outputs: Sequence[Tensor], cts: Sequence[Tensor | None], leaves: Sequence[TapeNode]
) -> list[Tensor | None]:
    """Gradients with respect to ``leaves`` (None where the outputs do not depend on one)."""
    leaf_set = set(leaves)
    pairs = [(o, ct) for o, ct in zip(outputs, cts, strict=True) if o._node is not None and ct is not None]
    if not pairs or not leaf_set:
        return [None] * len(leaves)
    nodes = _reaching([o._node for o, _ in pairs if o._node is not None], leaf_set)
    useful = set(nodes)
    gathered: dict[TapeNode, list[Tensor | None]] = {}

    def gather(node: TapeNode | None, slot: int, ct: Tensor | None) -> None:
        if node is None or ct is None or node not in useful:
            return
        slots = gathered.get(node)
        if slots is None:
            slots = gathered[node] = [None] * len(node.values)
        held = slots[slot]
        slots[slot] = ct if held is None else held + ct

    for output, ct in pairs:
        gather(output._node, output._slot, ct)
    found: dict[TapeNode, Tensor | None] = {}
    for node in reversed(nodes):
        slots = gathered.pop(node, None)
        if slots is None:
            continue
        for hook in node.hooks:
            if slots[0] is not None:
                replaced = hook(slots[0])
                slots[0] = slots[0] if replaced is None else replaced
        if node in leaf_set:
            found[node] = slots[0]
        elif node.op is None and node.pullback is None:
            gather(node.inputs[0]._node, node.inputs[0]._slot, slots[0])
        else:
            needs = [x._node is not None and x._node in useful for x in node.inputs]
            if node.pullback is not None:
                grads = node.pullback(slots)
            else:
                assert node.op is not None
                outs = [tracked(v, node, i) for i, v in enumerate(node.values)]
                grads = pull_back(node.op, node.attrs, node.inputs, outs, slots, needs)
            for x, grad, needed in zip(node.inputs, grads, needs, strict=True):
                if needed:
                    gather(x._node, x._slot, grad)
    return [found.get(node) for node in leaves]
