"""One step of each recurrent network, and the loop that repeats it as one ``scan`` node.

A step is given what the input contributes to the gates and the state, and returns the new state. The input
products of all steps are formed at once, outside of the loop. Sequences shorter than the longest keep their
state after their end and give zeros there. Layers over full sequences are not loops here but one operator each,
:mod:`mycelia.ops.recurrence` and :mod:`mycelia.ops.simple_recurrence`.

J. Elman, "Finding structure in time", 1990; S. Hochreiter and J. Schmidhuber, "Long short-term memory", 1997;
K. Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014 (GRU).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycelia import ops
from mycelia.ir.builder import Builder
from mycelia.ir.control import scan_p
from mycelia.ir.types import TensorType
from mycelia.ops.recurrence import lstm_layer_p
from mycelia.ops.simple_recurrence import recurrent_layer_p
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, type_of, value_in_graph
from mycelia.tensor.mode import staging
from mycelia.tensor.tensor import wrap

#: Gates of each kind: rows of its weights divided by the size of the state.
GATES = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}

State = tuple[Tensor, ...]


def projected(x: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    """What an input (or state) contributes to the gates."""
    return ops.dense(x, weight, bias)


def next_state(kind: str, from_input: Any, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """The state after one step.

    Args:
        kind: ``"tanh"``, ``"relu"``, ``"gru"`` or ``"lstm"``.
        from_input: contribution of the input, of shape (batch, gates * size).
        state: the hidden state of shape (batch, size); of an LSTM, that and the cell state.
        weight: weight of the hidden state, of shape (gates * size, size).
        bias: its bias, or None.
    """
    hidden = state[0]
    from_state = projected(hidden, weight, bias)
    if kind == "gru":
        reset_x, update_x, new_x = ops.chunk(from_input, 3, -1)
        reset_h, update_h, new_h = ops.chunk(from_state, 3, -1)
        update = ops.sigmoid(update_x + update_h)
        new = ops.tanh(new_x + ops.sigmoid(reset_x + reset_h) * new_h)
        return (new + update * (hidden - new),)
    gates = from_input + from_state
    if kind == "lstm":
        enter, forget, new, leave = ops.chunk(gates, 4, -1)
        cell = ops.sigmoid(forget) * state[1] + ops.sigmoid(enter) * ops.tanh(new)
        return ops.sigmoid(leave) * ops.tanh(cell), cell
    return ((ops.tanh if kind == "tanh" else ops.relu)(gates),)


def scan(
    step: Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]], tuple[Sequence[Tensor], Sequence[Tensor]]],
    constants: Sequence[Tensor],
    carried: Sequence[Tensor],
    rows: Sequence[Tensor],
    reverse: bool = False,
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Repeat a step along the first axis of ``rows``, as one node.

    Args:
        step: of constants, carried values and one row of each of ``rows``, the next carried values and
            outputs. It may use nothing else that is a tensor.
        constants: what every step is given.
        carried: the values before the first step.
        rows: tensors of one length.
        reverse: from the last row to the first.

    Returns:
        The carried values after the last step, and the outputs of all steps along a new first axis.
    """
    builder = Builder("step")
    first = [wrap(builder.param(type_of(t))) for t in (*constants, *carried)]
    each = [wrap(builder.param(TensorType(t.dtype, t.shape[1:]))) for t in rows]
    n_const, n_carry = len(constants), len(carried)
    with staging(builder):
        after, outputs = step(first[:n_const], first[n_const:], each)
        body = builder.finish([value_in_graph(t) for t in (*after, *outputs)])
    results = apply(
        scan_p, *constants, *carried, *rows, body_graph=body, n_const=n_const, n_carry=n_carry,
        length=rows[0].shape[0], reverse=reverse,
    )  # fmt: skip
    return results[:n_carry], results[n_carry:]


def one_direction(
    kind: str,
    x: Tensor,
    state: State,
    weights: Sequence[Tensor],
    inside: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, State]:
    """One layer in one direction.

    Args:
        kind: see :func:`next_state`.
        x: a tensor of shape (length, batch, features).
        state: the state before the first step.
        weights: of the input and of the state, and their biases if there are any.
        inside: bools of shape (length, batch, 1), False after the end of a sequence; None if all are full.
        reverse: from the end of the sequences to their beginning.

    Returns:
        The hidden states of all steps, of shape (length, batch, size), and the last state.
    """
    bias_x, bias_h = (weights[2], weights[3]) if len(weights) == 4 else (None, None)
    if bias_h is not None and kind != "gru":  # one addition for both
        bias_x, bias_h = bias_x + bias_h, None
    from_input = projected(x, weights[0], bias_x)

    def step(constants: Sequence[Tensor], carried: Sequence[Tensor], row: Sequence[Tensor]) -> Any:
        bias = constants[1] if len(constants) == 2 else None
        after = next_state(kind, row[0], tuple(carried), constants[0], bias)
        if len(row) == 1:
            return after, after[:1]
        kept = tuple(ops.where(row[1], new, old) for new, old in zip(after, carried, strict=True))
        return kept, (ops.where(row[1], after[0], 0.0),)

    constants = [weights[1]] if bias_h is None else [weights[1], bias_h]
    last, outputs = scan(step, constants, state, [from_input] if inside is None else [from_input, inside], reverse)
    return outputs[0], last


def whole_direction(
    kind: str, x: Tensor, state: State, weights: Sequence[Tensor], batch_first: bool, reverse: bool
) -> tuple[Tensor, State]:
    """One layer in one direction over full sequences, as one operator.

    Args:
        kind: see :func:`next_state`.
        x: a tensor of shape (length, batch, features), or (batch, length, features).
        state: see :func:`one_direction`.
        weights: see :func:`one_direction`.
        batch_first: whether the batch is the first axis of ``x`` and of the outputs.
        reverse: from the end of the sequences to their beginning.

    Returns:
        The hidden states of all steps, and the last state.
    """
    w_ih, w_hh, *biases = [ops.cast(w, x.dtype) for w in weights]
    if biases and kind != "gru":  # one addition for both
        biases = [biases[0] + biases[1]]
    attrs: dict[str, Any] = {"batch_first": batch_first, "reverse": reverse}
    if kind == "lstm":
        y, hidden, cell, *_ = apply(lstm_layer_p, x, *state, w_ih, w_hh, *biases, keep=True, **attrs)
        return y, (hidden, cell)
    y, hidden, *_ = apply(
        recurrent_layer_p, x, *state, w_ih, w_hh, *biases, kind=kind, keep=kind == "gru", **attrs
    )  # fmt: skip
    return y, (hidden,)
