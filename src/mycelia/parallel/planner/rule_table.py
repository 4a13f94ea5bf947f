"""Dimension names of operators whose names depend on their attributes or types.

Reshaping keeps track of dimensions that stay, and of the first of those that are joined or split: cutting it into
``n`` even parts cuts the joined dimension into ``n`` parts, too, and the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from mycelia.ir.graph import Node
from mycelia.parallel.planner.rules import TABLE, Inner, Names, Rule, whole

__all__ = ["TABLE"]


def _rule(*names: str) -> Callable[[Callable[[Node], Rule]], Callable[[Node], Rule]]:
    def enter(made: Callable[[Node], Rule]) -> Callable[[Node], Rule]:
        TABLE.update(dict.fromkeys(names, made))
        return made

    return enter


def _dims(rank: int, letter: str = "d") -> Names:
    return tuple([f"{letter}{i}" for i in range(rank)])


def _right(rank: int, names: Sequence[str | None]) -> Names:
    """The last ``rank`` of the names."""
    return tuple(names[len(names) - rank :]) if rank <= len(names) else (None,) * (rank - len(names)) + tuple(names)


def _ranks(node: Node) -> list[int]:
    return [v.type.rank for v in node.inputs]


# products --------------------------------------------------------------------------------------------------------


@_rule("matmul", "matmul_wide")
def _matmul(node: Node) -> Rule:
    a, b = _ranks(node)[:2]
    lead = max(a, b, 2) - 2
    batch: Names = tuple([f"b{i}" for i in range(lead)])
    left = ("k", "i") if node.attrs["transpose_a"] and a > 1 else ("i", "k")
    right = ("j", "k") if node.attrs["transpose_b"] and b > 1 else ("k", "j")
    first: Names = ("k",) if a == 1 else (*_right(a - 2, batch), *left)
    second: Names = ("k",) if b == 1 else (*_right(b - 2, batch), *right)
    out: Names = (*batch, *(("i",) if a > 1 else ()), *(("j",) if b > 1 else ()))
    return Rule((first, second), (_right(node.outputs[0].type.rank, out),))


def _spatial(names: Sequence[str], rank: int, last: bool) -> Names:
    """Rows, nothing for places in an image, and the channels, which stand second or last."""
    places = (None,) * (rank - 2)
    return (names[0], *places, names[1]) if last else (names[0], names[1], *places)


def _plain_convolution(node: Node) -> bool:
    return node.attrs["groups"] == 1


@_rule("conv")
def _conv(node: Node) -> Rule:
    last = node.attrs["channels_last"]
    rank = node.inputs[0].type.rank
    plain = _plain_convolution(node)
    c, o = ("c", "o") if plain else ("_", "_")
    weight: Names = ("o", "c", *(None,) * (node.inputs[1].type.rank - 2))
    terms = [_spatial(("n", c), rank, last), weight, *[("o",)] * (len(node.inputs) - 2)]
    return _only(Rule(tuple(terms), (_spatial(("n", o), rank, last),)), None if plain else {"n"})


@_rule("conv_input_grad")
def _conv_input_grad(node: Node) -> Rule:
    last, rank = node.attrs["channels_last"], node.inputs[0].type.rank
    weight: Names = ("o", "c", *(None,) * (node.inputs[1].type.rank - 2))
    made = Rule((_spatial(("n", "o"), rank, last), weight), (_spatial(("n", "c"), rank, last),))
    return _only(made, None if _plain_convolution(node) else {"n"})


@_rule("conv_weight_grad")
def _conv_weight_grad(node: Node) -> Rule:
    last, rank = node.attrs["channels_last"], node.inputs[0].type.rank
    weight: Names = ("o", "c", *(None,) * (node.outputs[0].type.rank - 2))
    made = Rule((_spatial(("n", "o"), rank, last), _spatial(("n", "c"), rank, last)), (weight,))
    return _only(made, None if _plain_convolution(node) else {"n"})


def _only(rule: Rule, kept: set[str] | None) -> Rule:
    """The rule with these names alone."""
    if kept is None:
        return rule

    def cut(term: Names) -> Names:
        return tuple([name if name in kept else None for name in term])

    return Rule(
        tuple([cut(t) for t in rule.inputs]), tuple([cut(t) for t in rule.outputs]), rule.inner, rule.idle, rule.scatter
    )


@_rule("attention", "attention_grad")
def _attention(node: Node) -> Rule:
    layout = node.attrs["layout"]
    gradient = node.op.name == "attention_grad"
    whole_names: Names = ("b", "h", None, None) if layout == "heads" else ("b", None, "h", None)
    logs: Names = ("b", "h", None)
    lead = (3 + node.attrs["statistic"]) if gradient else 0
    operand: Names = ("b", None, None, "h", None) if layout == "packed" else whole_names
    count = 1 if layout == "packed" else 3
    terms: list[Names] = [whole_names, whole_names, logs, logs][:lead]
    terms += [operand] * count
    for value in node.inputs[lead + count :]:
        terms.append(_right(value.type.rank, ("b", "h", None, None)))
    outs = (operand,) * count if gradient else (whole_names, logs)
    return Rule(tuple(terms), outs)


@_rule("lstm_layer", "lstm_layer_grad")
def _lstm(node: Node) -> Rule:
    by_rank: dict[int, Names] = {3: ("n", None, None) if node.attrs["batch_first"] else (None, "n", None), 1: (None,)}
    state: Names = ("n", None)

    def term(rank: int, is_state: bool) -> Names:
        return state if rank == 2 and is_state else by_rank.get(rank, (None,) * rank)

    gradient = node.op.name == "lstm_layer_grad"
    given = [term(v.type.rank, i in (1, 2) or i >= 8) for i, v in enumerate(node.inputs)]
    first = int(node.attrs.get("wants_x", False)) if gradient else 1
    outs = [term(v.type.rank, i in (first, first + 1)) for i, v in enumerate(node.outputs)]
    return Rule(tuple(given), tuple(outs))


# normalization and losses ----------------------------------------------------------------------------------------


@_rule("batch_norm", "batch_norm_grad")
def _batch_norm(node: Node) -> Rule:
    axis = node.attrs["axis"]

    def term(rank: int) -> Names:
        return ("c",) if rank == 1 else tuple(["c" if i == axis else "n" if i == 0 else None for i in range(rank)])

    terms = [term(v.type.rank) for v in node.inputs], [term(v.type.rank) for v in node.outputs]
    return Rule(tuple(terms[0]), tuple(terms[1]), scatter=False)


@_rule("running_statistics")
def _running(node: Node) -> Rule:
    terms = [_dims(v.type.rank) for v in node.inputs], [_dims(v.type.rank) for v in node.outputs]
    return Rule(tuple(terms[0]), tuple(terms[1]))


@_rule("layer_norm", "layer_norm_grad", "rms_norm", "rms_norm_grad")
def _row_norm(node: Node) -> Rule:
    gradient = node.op.name.endswith("_grad")
    rank = node.inputs[1 if gradient else 0].type.rank
    begin = node.attrs["begin"] if "begin" in node.attrs else rank - node.inputs[-1].type.rank
    rows: Names = (*_dims(begin, "r"), *(None,) * (rank - begin))

    def term(r: int) -> Names:
        return rows if r == rank and begin else (None,) * r

    return Rule(tuple([term(v.type.rank) for v in node.inputs]), tuple([term(v.type.rank) for v in node.outputs]))


@_rule("softmax", "softmax_grad", "log_softmax", "log_softmax_grad", "cumsum", "flip")
def _along_axes(node: Node) -> Rule:
    fixed = node.attrs.get("axes", node.attrs.get("axis"))
    axes = (fixed,) if isinstance(fixed, int) else tuple(fixed or ())

    def term(rank: int) -> Names:
        return tuple([None if i in axes else f"d{i}" for i in range(rank)])

    return Rule(tuple([term(v.type.rank) for v in node.inputs]), tuple([term(v.type.rank) for v in node.outputs]))


@_rule("cross_entropy", "cross_entropy_grad")
def _cross_entropy(node: Node) -> Rule:
    gradient = node.op.name == "cross_entropy_grad"
    given = node.inputs[1:] if gradient else node.inputs
    rank = given[0].type.rank
    axis = 0 if rank == 1 else 1
    rows = [f"r{i}" for i in range(rank - 1)]
    x: Names = (*rows[:axis], "c", *rows[axis:])
    terms: list[Names] = [x, tuple(rows), *[("c",)] * (len(given) - 2)]
    plain = node.attrs["reduction"] == "none"
    loss: Names = tuple(rows) if plain else (None,) * node.outputs[0].type.rank
    count = prod([n for i, n in enumerate(given[0].type.shape) if i != axis])
    inner = {} if node.attrs.get("log_probs") else {"c": Inner(8.0 * count, tuple(rows))}
    if len(node.inputs) > len(terms) + int(gradient) or any(
        v.type.rank != len(t) for v, t in zip(given, terms, strict=True)
    ):
        return whole(node)
    if gradient:
        ct: Names = tuple(rows) if plain else (None,) * node.inputs[0].type.rank
        return Rule((ct, *terms), (x,), inner)
    return Rule(tuple(terms), (loss,), {**inner, "c": Inner(8.0 * count, tuple(rows))})


# reductions ------------------------------------------------------------------------------------------------------


@_rule("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_all", "reduce_any",
       "count_nonzero")  # fmt: skip
def _reduce(node: Node) -> Rule:
    rank = node.inputs[0].type.rank
    axes = node.attrs["axes"]
    axes = tuple(range(rank)) if axes is None else tuple(axes)
    names = _dims(rank)
    if node.outputs[0].type.rank == rank:
        out: Names = tuple([None if i in axes else n for i, n in enumerate(names)])
    else:
        out = tuple([n for i, n in enumerate(names) if i not in axes])
    return Rule((names,), (out,))


# looking up ------------------------------------------------------------------------------------------------------


@_rule("gather")
def _gather(node: Node) -> Rule:
    axis, shared = node.attrs["axis"], node.attrs["batch_dims"]
    names = list(_dims(node.inputs[0].type.rank))
    index = [*names[:shared], *_dims(node.inputs[1].type.rank - shared, "i")]
    out = (*names[:axis], *index[shared:], *names[axis + 1 :])
    return Rule((tuple(names), tuple(index)), (out,), idle=frozenset([str(names[axis])]))


@_rule("add_at")
def _add_at(node: Node) -> Rule:
    axis, shared = node.attrs["axis"], node.attrs["batch_dims"]
    out = list(_dims(node.outputs[0].type.rank))
    index = [*out[:shared], *_dims(node.inputs[1].type.rank - shared, "i")]
    given = (*out[:axis], *index[shared:], *out[axis + 1 :])
    return Rule((given, tuple(index)), (tuple(out),), idle=frozenset([str(out[axis])]))


@_rule("embedding")
def _embedding(node: Node) -> Rule:
    ids = _dims(node.inputs[0].type.rank, "i")
    return Rule((ids, ("v", "d")), ((*ids, "d"),), idle=frozenset(["v"]))


# shapes ----------------------------------------------------------------------------------------------------------


@_rule("reshape")
def _reshape(node: Node) -> Rule:
    before, after = node.inputs[0].type.shape, node.outputs[0].type.shape
    first: list[str | None] = [None] * len(before)
    second: list[str | None] = [None] * len(after)
    if 0 in before or 0 in after:
        return whole(node)
    for number, (left, right) in enumerate(_groups(before, after)):
        if left and right:
            first[left[0]] = second[right[0]] = f"g{number}"
    return Rule((tuple(first),), (tuple(second),))


def _groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Dimensions (longer than 1) of both shapes in the shortest runs that hold the same number of elements."""
    a = [i for i, n in enumerate(before) if n != 1]
    b = [i for i, n in enumerate(after) if n != 1]
    found = []
    while a and b:
        left, right = [a.pop(0)], [b.pop(0)]
        x, y = before[left[0]], after[right[0]]
        while x != y:
            if x < y:
                left.append(a.pop(0))
                x *= before[left[-1]]
            else:
                right.append(b.pop(0))
                y *= after[right[-1]]
        found.append((left, right))
    return found


@_rule("transpose")
def _transpose(node: Node) -> Rule:
    names = _dims(node.inputs[0].type.rank)
    return Rule((names,), (tuple([names[i] for i in node.attrs["perm"]]),))


@_rule("broadcast_to")
def _broadcast(node: Node) -> Rule:
    names = _dims(node.outputs[0].type.rank)
    return Rule((_right(node.inputs[0].type.rank, names),), (names,))


@_rule("constant", "full", "arange", "eye")
def _made(node: Node) -> Rule:
    return Rule(tuple([(None,) * r for r in _ranks(node)]), tuple([_dims(v.type.rank) for v in node.outputs]))


@_rule("slice", "pad_constant", "pad_border", "roll", "concat", "split")
def _same_lengths(node: Node) -> Rule:
    """Dimensions that all operands have at the same length are left alone by the operator."""
    rank = node.inputs[0].type.rank
    values = [v for v in (*node.inputs, *node.outputs) if v.type.rank == rank]
    shapes = {v.type.shape for v in values}
    touched = node.attrs.get("axis", node.attrs.get("axes", ()))
    fixed = {touched} if isinstance(touched, int) else set(touched)
    names: Names = tuple([
        f"d{i}" if i not in fixed and len({s[i] for s in shapes}) == 1 else None for i in range(rank)
    ])  # fmt: skip
    if node.op.name == "roll" and not fixed:
        return whole(node)

    def term(r: int) -> Names:
        return names if r == rank else (None,) * r

    return Rule(tuple([term(v.type.rank) for v in node.inputs]), tuple([term(v.type.rank) for v in node.outputs]))


@_rule("stack", "unstack")
def _stack(node: Node) -> Rule:
    axis, joined = node.attrs["axis"], node.op.name == "stack"
    parts = node.inputs if joined else node.outputs
    names = _dims(parts[0].type.rank)
    long: Names = (*names[:axis], None, *names[axis:])
    several = (names,) * len(parts)
    return Rule(several, (long,)) if joined else Rule((long,), several)


# pooling ---------------------------------------------------------------------------------------------------------


@_rule("max_pool", "max_pool_grad", "avg_pool", "avg_pool_grad", "max_pool_with_index")
def _pool(node: Node) -> Rule:
    last = bool(node.attrs.get("channels_last"))
    terms = [_spatial(("n", "c"), v.type.rank, last) for v in (*node.inputs, *node.outputs)]
    return Rule(tuple(terms[: len(node.inputs)]), tuple(terms[len(node.inputs) :]))
