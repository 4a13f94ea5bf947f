"""Recurrent networks of several layers and directions; each runs as one compiled graph in both modes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, DTypeError, ShapeError
from mycelia.core.promotion import promote
from mycelia.nn.cell import Cell
from mycelia.nn.initializer import Uniform
from mycelia.nn.layers import arguments as arg
from mycelia.nn.layers.dropout import Dropout
from mycelia.nn.layers.recurrent_steps import GATES, one_direction, whole_direction
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import call_compiled, constant


class _Recurrent(Cell):
    """Weights of all layers and directions, and their order."""

    kind: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        has_bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__()
        where = type(self).__name__
        self.input_size = arg.positive(where, "input_size", input_size)
        self.hidden_size = arg.positive(where, "hidden_size", hidden_size)
        self.num_layers = arg.positive(where, "num_layers", num_layers)
        for name, value in (("has_bias", has_bias), ("batch_first", batch_first), ("bidirectional", bidirectional)):
            arg.flag(where, name, value)
        self.has_bias, self.batch_first, self.bidirectional = has_bias, batch_first, bidirectional
        self.dropout = arg.fraction(where, "dropout", dropout, one=False)
        self.dropout_op = Dropout(p=float(dropout))
        self._suffixes = tuple(
            f"_l{layer}{end}" for layer in range(num_layers) for end in (("", "_reverse") if bidirectional else ("",))
        )
        self._create(arg.floating_dtype(where, dtype))

    def _create(self, dtype: dt.DType) -> None:
        rows, size = GATES[self.kind] * self.hidden_size, self.hidden_size
        wide = size * (2 if self.bidirectional else 1)
        shapes: dict[str, Any] = {"weight_ih": None, "weight_hh": (rows, size)}
        if self.has_bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        init = Uniform(1 / math.sqrt(size))
        for kind, shape in shapes.items():
            for suffix in self._suffixes:
                features = self.input_size if suffix.startswith("_l0") else wide
                name = kind + suffix
                setattr(
                    self, name, arg.parameter(type(self).__name__, name, init, shape or (rows, features), dtype, name)
                )

    def _weights(self, suffix: str) -> list[Tensor]:
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: 4 if self.has_bias else 2]
        return [getattr(self, kind + suffix) for kind in kinds]

    def construct(self, x: Any, hx: Any = None, seq_length: Any = None) -> Any:
        where = type(self).__name__
        t: Tensor = arg.axes_of_input(
            where, "x", x, (3,), "(batch, length, features)" if self.batch_first else "(length, batch, features)"
        )
        arg.channels_of(where, "x", t, 2, self.input_size, "features")
        kind = promote(arg.floating_input(where, "x", t).dtype, self.weight_hh_l0.dtype)
        t = ops.cast(t, kind)
        batch = t.shape[0 if self.batch_first else 1]
        wanted = (len(self._suffixes), batch, self.hidden_size)
        states = tuple(self._state(name, state, wanted) for name, state in self._states(hx))
        states = tuple(ops.zeros(wanted, kind) if s is None else ops.cast(s, kind) for s in states)
        lengths = None
        if seq_length is not None:
            lengths = arg.tensor(where, "seq_length", seq_length)
            if not lengths.dtype.is_integer:
                raise DTypeError(where, "seq_length", got=f"dtype {lengths.dtype}", takes="integers")
            if lengths.shape != (batch,):
                raise ShapeError(
                    where, "seq_length", got=f"shape {lengths.shape}", takes=f"({batch},), one length a sequence"
                )
        given = (t, *states) if lengths is None else (t, *states, lengths)
        y, *last = call_compiled(self._run_layers, (self.training, len(states), *given), {})
        return y, (last[0] if len(last) == 1 else tuple(last))

    def _states(self, hx: Any) -> list[tuple[str, Any]]:
        return [("hx", hx)]

    def _state(self, name: str, state: Any, wanted: tuple[int, ...]) -> Tensor | None:
        where = type(self).__name__
        if state is None:
            return None
        if not isinstance(state, Tensor):
            raise ArgumentTypeError(where, name, got=type(state).__name__, takes="a Tensor or None")
        if state.shape != wanted:
            takes = f"shape {wanted}, (layers * directions, batch, hidden_size)"
            raise ShapeError(where, name, got=f"shape {state.shape}", takes=takes)
        return state

    def _run_layers(self, training: bool, n_states: int, x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        states, lengths = rest[:n_states], rest[n_states] if len(rest) > n_states else None
        whole = lengths is None  # an operator, that takes both layouts
        turned = self.batch_first and not whole
        y: Any = ops.transpose(x, (1, 0, 2)) if turned else x
        inside = None
        if lengths is not None:
            steps: Any = constant(np.arange(y.shape[0], dtype=lengths.dtype.np)[:, None, None])
            inside = steps < ops.reshape(lengths, (1, lengths.shape[0], 1))
        ends: list[tuple[Tensor, ...]] = []
        directions = 2 if self.bidirectional else 1
        for layer in range(self.num_layers):
            outputs = []
            for i in range(layer * directions, (layer + 1) * directions):
                start = tuple(s[i] for s in states)
                weights, reverse = self._weights(self._suffixes[i]), i % directions == 1
                if whole:
                    out, last = whole_direction(self.kind, y, start, weights, self.batch_first, reverse)
                else:
                    out, last = one_direction(self.kind, y, start, weights, inside, reverse)
                outputs.append(out)
                ends.append(last)
            y = outputs[0] if directions == 1 else ops.concat(outputs, -1)
            if training and self.dropout and layer + 1 < self.num_layers:
                y = self.dropout_op(y)
        y = ops.transpose(y, (1, 0, 2)) if turned else y
        return (y, *[ops.stack([end[k] for end in ends]) for k in range(n_states)])


class RNN(_Recurrent):
    """Layers of :class:`RNNCell` over sequences.

    Args:
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: number of layers, each on the outputs of the one below.
        has_bias: whether there are biases.
        batch_first: the batch is the first axis of input and output.
        dropout: in training, the probability to drop an output between layers, from 0 to below 1.
        bidirectional: a second network from the end to the beginning; outputs stand side by side.
        dtype: dtype of the parameters.
        nonlinearity: ``"tanh"`` or ``"relu"``.

    Inputs:
        x: a tensor of shape (length, batch, input_size).
        hx: the state before the first step, of shape (layers * directions, batch, hidden_size); zeros if None.
        seq_length: lengths of the sequences, integers of shape (batch,); after its end a sequence keeps its
            state and gives zeros.

    Outputs:
        The outputs of all steps, of shape (length, batch, directions * hidden_size), and the last state.

    Raises:
        ShapeError: an input has another shape.

    >>> import mycelia as ms
    >>> y, h = ms.nn.RNN(3, 4, 2)(ms.ops.ones((5, 2, 3)))
    >>> y.shape, h.shape
    ((5, 2, 4), (2, 2, 4))
    """

    kind = "tanh"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        has_bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: Any = dt.float32,
        *,
        nonlinearity: str = "tanh",
    ) -> None:
        chosen = arg.choice("RNN", "nonlinearity", nonlinearity, ("tanh", "relu"))
        super().__init__(input_size, hidden_size, num_layers, has_bias, batch_first, dropout, bidirectional, dtype)
        self.nonlinearity = self.kind = chosen


class GRU(_Recurrent):
    """Layers of :class:`GRUCell` over sequences; arguments, inputs and outputs as those of :class:`RNN`.

    >>> import mycelia as ms
    >>> y, h = ms.nn.GRU(3, 4, bidirectional=True)(ms.ops.ones((5, 2, 3)))
    >>> y.shape, h.shape
    ((5, 2, 8), (2, 2, 4))
    """

    kind = "gru"


class LSTM(_Recurrent):
    """Layers of :class:`LSTMCell` over sequences; as :class:`RNN`, with a pair of states.

    Inputs:
        hx: hidden and cell states, a tuple of two tensors of shape (layers * directions, batch, hidden_size).

    Outputs:
        The outputs of all steps, and the last hidden and cell states.

    Raises:
        ArgumentTypeError: ``hx`` is not a pair.

    >>> import mycelia as ms
    >>> y, (h, c) = ms.nn.LSTM(3, 4, batch_first=True)(ms.ops.ones((2, 5, 3)))
    >>> y.shape, h.shape, c.shape
    ((2, 5, 4), (1, 2, 4), (1, 2, 4))
    """

    kind = "lstm"

    def _states(self, hx: Any) -> list[tuple[str, Any]]:
        if hx is None:
            return [("hx[0]", None), ("hx[1]", None)]
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            raise ArgumentTypeError("LSTM", "hx", got=type(hx).__name__, takes="a tuple (hidden states, cell states)")
        return [("hx[0]", hx[0]), ("hx[1]", hx[1])]
