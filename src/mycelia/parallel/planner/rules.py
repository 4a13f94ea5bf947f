"""What may be divided in an operator: names for the dimensions of its inputs and outputs.

A mesh axis put on a name divides every dimension of that name, and the work. A name that an output lacks is summed
over (a contracted dimension): that output is then a part of a sum on each device, which all-reduce or reduce-scatter
completes. An input that lacks the name is whole along the axis.

Primitives say their names in ``shard`` (``"...ik,...kj->...ij"``; ``...`` stands for leading dimensions that are
aligned from the right and broadcast). For those whose names depend on attributes, :mod:`.rule_table` has a function.
What has neither keeps its inputs and outputs whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mycelia.ir.graph import Node
from mycelia.ir.primitive import Primitive

#: A name for each dimension; None for one that is never divided.
Names = tuple[str | None, ...]

_TERM = re.compile(r"^(\.\.\.)?([A-Za-z]*)$")


@dataclass(frozen=True)
class Inner:
    """What is reduced inside an operator if a name is divided, so that its outputs are complete.

    Attributes:
        nbytes: of what is all-reduced.
        names: the names that divide it.
    """

    nbytes: float
    names: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """The names of an operator's dimensions.

    Attributes:
        inputs, outputs: names for each.
        inner: by name, what is reduced inside.
        idle: names that divide what is held but not the work (each device looks at everything).
        scatter: whether partial sums may be completed by reduce-scatter.
    """

    inputs: tuple[Names, ...]
    outputs: tuple[Names, ...]
    inner: Mapping[str, Inner] = field(default_factory=dict)
    idle: frozenset[str] = frozenset()
    scatter: bool = True

    def names(self) -> list[str]:
        """All names, those of outputs first."""
        found: dict[str, None] = {}
        for term in (*self.outputs, *self.inputs):
            found.update(dict.fromkeys(name for name in term if name is not None))
        return list(found)

    def partial(self, name: str) -> list[int]:
        """The outputs that are parts of a sum if the name is divided."""
        if name in self.inner:
            return []
        return [i for i, term in enumerate(self.outputs) if name not in term]


#: Functions by the primitive's name; filled by :mod:`.rule_table`.
TABLE: dict[str, Callable[[Node], Rule]] = {}


def rule_for(node: Node) -> Rule:
    """The rule of a node, checked against its types."""
    from mycelia.parallel.planner import rule_table

    assert rule_table.TABLE is TABLE
    made = TABLE.get(node.op.name)
    rule = made(node) if made is not None else _declared(node)
    return _without_ones(node, rule)


def is_elementwise(op: Primitive) -> bool:
    """Whether each element of the one output is made of the elements of the inputs at the same place."""
    shard = op.shard
    return isinstance(shard, str) and not shard.startswith("->") and set(re.split(r",|->", shard)) == {"..."}


def whole(node: Node) -> Rule:
    """Nothing is divided."""
    return Rule(
        tuple([(None,) * v.type.rank for v in node.inputs]), tuple([(None,) * v.type.rank for v in node.outputs])
    )


def _declared(node: Node) -> Rule:
    shard = node.op.shard
    if shard is None:
        return whole(node)
    text = shard if isinstance(shard, str) else shard(*[v.type for v in node.inputs], **node.attrs)
    ranks = [v.type.rank for v in node.inputs], [v.type.rank for v in node.outputs]
    left, _, right = text.replace(" ", "").partition("->")
    terms = left.split(",") if left else []
    if "->" not in text:  # any number of inputs, all alike
        terms, right = [left] * len(ranks[0]), left
    results = right.split(",") if right else []
    if len(terms) != len(ranks[0]) or len(results) != len(ranks[1]):
        return whole(node)
    named = [_named(term, rank) for term, rank in zip([*terms, *results], [*ranks[0], *ranks[1]], strict=True)]
    if any(n is None for n in named):
        return whole(node)
    found = tuple([n for n in named if n is not None])
    return Rule(found[: len(terms)], found[len(terms) :])


def _named(term: str, rank: int) -> Names | None:
    """Names of the dimensions of a term; None if it does not have that many."""
    match = _TERM.match(term)
    if match is None:
        return None
    letters = match.group(2)
    free = rank - len(letters)
    if free < 0 or (free and not match.group(1)):
        return None
    return (*(f"_{free - 1 - i}" for i in range(free)), *letters)


def _without_ones(node: Node, rule: Rule) -> Rule:
    """The rule without names on dimensions of length 1 (they are broadcast)."""
    values = [*node.inputs, *node.outputs]
    terms = [
        tuple([None if size == 1 else name for size, name in zip(v.type.shape, term, strict=True)])
        for v, term in zip(values, (*rule.inputs, *rule.outputs), strict=True)
    ]
    count = len(node.inputs)
    return Rule(tuple(terms[:count]), tuple(terms[count:]), rule.inner, rule.idle, rule.scatter)
