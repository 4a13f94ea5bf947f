"""Reverse-mode differentiation of a recorded run.

Each tracked tensor points at the :class:`~mycelia.tensor.tape.TapeNode` that made it. ``backward`` walks
the nodes reachable from the outputs that lead to the wanted leaves, latest first, and applies each
operator's rule. Rules are operators themselves, so under an outer gradient the walk is recorded again. A walk that is
met again and again becomes one compiled program (:mod:`mycelia.autodiff.repeated`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mycelia.autodiff.repeated import repeated
from mycelia.autodiff.rules import pull_back
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import tracked
from mycelia.tensor.mode import PLAIN, state
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
            stack.extend([parent for _, parent, _ in node.links if parent is not None])
    useful: set[TapeNode] = set()
    ordered = []
    for node in sorted(seen, key=lambda n: n.order):
        if node in leaves or any([parent in useful for _, parent, _ in node.links]):
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
    if state.phase == PLAIN:
        grads = repeated.gradients(_walk, nodes, leaves, pairs)
        if grads is not None:
            return grads
    found = _walk(nodes, leaf_set, pairs, _recorded)
    return [found.get(node) for node in leaves]


def _recorded(node: TapeNode) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    """A step's inputs and outputs as they were recorded."""
    return node.inputs, [tracked(v, node, i) for i, v in enumerate(node.values)]


def _walk(
    nodes: list[TapeNode],
    leaves: set[TapeNode],
    pairs: Sequence[tuple[Tensor, Tensor]],
    operands: Callable[[TapeNode], tuple[Sequence[Tensor], Sequence[Tensor]]],
) -> dict[TapeNode, Tensor | None]:
    """Apply the rules of ``nodes``, latest first.

    Args:
        nodes: the steps from the leaves to the outputs, in order.
        leaves: where the walk ends.
        pairs: outputs with their cotangents.
        operands: the inputs and the outputs of a step, which its rule is given.

    Returns:
        The gradients that arrived at leaves.
    """
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
        for hook in node.hooks or ():
            if slots[0] is not None:
                replaced = hook(slots[0])
                slots[0] = slots[0] if replaced is None else replaced
        if node in leaves:
            found[node] = slots[0]
        elif node.op is None and node.pullback is None:
            _, parent, slot = node.links[0]
            gather(parent, slot, slots[0])
        else:
            needs = [parent in useful for _, parent, _ in node.links]
            if node.pullback is not None:
                grads = node.pullback(slots)
            else:
                assert node.op is not None
                inputs, outs = operands(node)
                grads = pull_back(node.op, node.attrs, inputs, outs, slots, needs)
            for (_, parent, slot), grad, needed in zip(node.links, grads, needs, strict=True):
                if needed:
                    gather(parent, slot, grad)
    return found
