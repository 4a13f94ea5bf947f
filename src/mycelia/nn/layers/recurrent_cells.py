"""Single steps of recurrent networks as Cells."""

from __future__ import annotations

import math
from typing import Any

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.initializer import Uniform
from mycelia.nn.layers import arguments as arg
from mycelia.nn.layers.recurrent_steps import GATES, next_state, projected
from mycelia.tensor import Tensor


class _RecurrentCell(Cell):
    """Weights of one step."""

    kind: str

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool, dtype: Any) -> None:
        super().__init__()
        where = type(self).__name__
        self.input_size = arg.positive(where, "input_size", input_size)
        self.hidden_size = arg.positive(where, "hidden_size", hidden_size)
        arg.flag(where, "has_bias", has_bias)
        self.has_bias = has_bias
        kind, rows = arg.floating_dtype(where, dtype), GATES[self.kind] * hidden_size
        init = Uniform(1 / math.sqrt(hidden_size))
        self.weight_ih = arg.parameter(where, "weight_ih", init, (rows, input_size), kind, "weight_ih")
        self.weight_hh = arg.parameter(where, "weight_hh", init, (rows, hidden_size), kind, "weight_hh")
        self.bias_ih = self.bias_hh = None
        if has_bias:
            self.bias_ih = arg.parameter(where, "bias_ih", init, (rows,), kind, "bias_ih")
            self.bias_hh = arg.parameter(where, "bias_hh", init, (rows,), kind, "bias_hh")

    def _next(self, x: Any, states: tuple[Any, ...]) -> tuple[Any, ...]:
        where = type(self).__name__
        t: Tensor = arg.axes_of_input(where, "x", x, (2,), "(batch, input_size)")
        arg.channels_of(where, "x", t, 1, self.input_size, "features")
        wanted = (t.shape[0], self.hidden_size)
        for state in states:
            if not isinstance(state, Tensor):
                raise ArgumentTypeError(where, "hx", got=type(state).__name__, takes="a Tensor")
            if state.shape != wanted:
                raise ShapeError(where, "hx", got=f"shape {state.shape}", takes=f"shape {wanted}, (batch, hidden_size)")
        return next_state(self.kind, projected(t, self.weight_ih, self.bias_ih), states, self.weight_hh, self.bias_hh)


class RNNCell(_RecurrentCell):
    """``h' = f(W_ih x + b_ih + W_hh h + b_hh)``.

    Args:
        input_size: features of the input.
        hidden_size: features of the state.
        has_bias: whether there are biases.
        nonlinearity: f: ``"tanh"`` or ``"relu"``.
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, input_size).
        hx: the state, of shape (batch, hidden_size).

    Outputs:
        The new state.

    Raises:
        ShapeError: an input has another shape.

    >>> import mycelia as ms
    >>> ms.nn.RNNCell(3, 4)(ms.ops.ones((2, 3)), ms.ops.zeros((2, 4))).shape
    (2, 4)
    """

    kind = "tanh"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        has_bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: Any = dt.float32,
    ) -> None:
        self_kind = arg.choice("RNNCell", "nonlinearity", nonlinearity, ("tanh", "relu"))
        super().__init__(input_size, hidden_size, has_bias, dtype)
        self.nonlinearity = self.kind = self_kind

    def construct(self, x: Any, hx: Any) -> Any:
        return self._next(x, (hx,))[0]


class GRUCell(_RecurrentCell):
    """Gated recurrent unit: a reset gate, an update gate and a new state.

    Args:
        input_size: features of the input.
        hidden_size: features of the state.
        has_bias: whether there are biases.
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, input_size).
        hx: the state, of shape (batch, hidden_size).

    Outputs:
        The new state.

    Raises:
        ShapeError: an input has another shape.

    >>> import mycelia as ms
    >>> ms.nn.GRUCell(3, 4)(ms.ops.ones((2, 3)), ms.ops.zeros((2, 4))).shape
    (2, 4)
    """

    kind = "gru"

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: Any = dt.float32) -> None:
        super().__init__(input_size, hidden_size, has_bias, dtype)

    def construct(self, x: Any, hx: Any) -> Any:
        return self._next(x, (hx,))[0]


class LSTMCell(_RecurrentCell):
    """Long short-term memory: input, forget, cell and output gates, in this order.

    Args:
        input_size: features of the input.
        hidden_size: features of the state.
        has_bias: whether there are biases.
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, input_size).
        hx: hidden state and cell state, a tuple of two tensors of shape (batch, hidden_size).

    Outputs:
        The new hidden state and cell state.

    Raises:
        ArgumentTypeError: ``hx`` is not a pair.
        ShapeError: an input has another shape.

    >>> import mycelia as ms
    >>> zeros = ms.ops.zeros((2, 4))
    >>> h, c = ms.nn.LSTMCell(3, 4)(ms.ops.ones((2, 3)), (zeros, zeros))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    kind = "lstm"

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: Any = dt.float32) -> None:
        super().__init__(input_size, hidden_size, has_bias, dtype)

    def construct(self, x: Any, hx: Any) -> Any:
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            raise ArgumentTypeError("LSTMCell", "hx", got=type(hx).__name__, takes="a tuple (hidden state, cell state)")
        return self._next(x, tuple(hx))
