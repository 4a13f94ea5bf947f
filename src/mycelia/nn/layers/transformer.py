"""Encoder and decoder layers of the transformer, and stacks of them.

A. Vaswani et al., "Attention is all you need", 2017; normalization first: R. Xiong et al., "On layer
normalization in the transformer architecture", ICML 2020.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.initializer import initializer
from mycelia.nn.layers import arguments as arg
from mycelia.nn.layers.attention import MultiheadAttention
from mycelia.nn.layers.container import CellList
from mycelia.nn.layers.dense import Dense
from mycelia.nn.layers.dropout import Dropout
from mycelia.nn.layers.normalization import LayerNorm


def _activation(where: str, activation: Any) -> Callable[..., Any]:
    if isinstance(activation, str):
        named: dict[str, Callable[..., Any]] = {"relu": ops.relu, "gelu": ops.gelu}
        return named[arg.choice(where, "activation", activation, tuple(named))]
    return arg.function(where, "activation", activation, "'relu', 'gelu', a Cell or a function")


class _Layer(Cell):
    """What encoder and decoder layers share: self-attention, two dense layers, their norms and dropouts."""

    def _options(self, nhead: int, dropout: float, activation: Any, norm_first: bool) -> None:
        where = type(self).__name__
        arg.flag(where, "norm_first", norm_first)
        self.norm_first = norm_first
        self.nhead = arg.positive(where, "nhead", nhead)
        arg.fraction(where, "dropout", dropout, one=False)
        self.activation = _activation(where, activation)

    def _attended(self, x: Any, mask: Any, padding: Any) -> Any:
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask)[0])

    def _forward(self, x: Any, last: Cell) -> Any:
        return last(self.dense2(self.dropout(self.activation(self.dense1(x)))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and two dense layers, each with dropout, a residual connection and layer normalization.

    Args:
        d_model: features.
        nhead: number of heads.
        dim_feedforward: features between the dense layers.
        dropout: probability to drop, from 0 to below 1.
        activation: ``"relu"`` or ``"gelu"``, or a Cell or function.
        layer_norm_eps: added to variances.
        batch_first: the batch is the first axis.
        norm_first: normalize before attention and dense layers instead of after.
        dtype: dtype of the parameters.

    Inputs:
        src: a tensor of shape (length, batch, d_model).
        src_mask: see :class:`MultiheadAttention`, ``attn_mask``.
        src_key_padding_mask: see there.

    Raises:
        ShapeError: an input has another shape.

    >>> import mycelia as ms
    >>> ms.nn.TransformerEncoderLayer(8, 2, 16)(ms.ops.ones((5, 2, 8))).shape
    (5, 2, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__()
        self._options(nhead, dropout, activation, norm_first)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
        self.dense1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, dtype=dtype)
        self.norm1 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.norm2 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.dropout1 = Dropout(p=dropout)
        self.dropout2 = Dropout(p=dropout)

    def construct(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None) -> Any:
        x = src
        if self.norm_first:
            x = x + self._attended(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self._forward(self.norm2(x), self.dropout2)
        x = self.norm1(x + self._attended(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self._forward(x, self.dropout2))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output and two dense layers; see :class:`TransformerEncoderLayer`.

    Inputs:
        tgt: a tensor of shape (length, batch, d_model).
        memory: the encoder's output, of shape (S, batch, d_model).
        tgt_mask: mask of the self-attention.
        memory_mask: mask of the attention to ``memory``.
        tgt_key_padding_mask: see :class:`MultiheadAttention`, ``key_padding_mask``.
        memory_key_padding_mask: likewise.

    >>> import mycelia as ms
    >>> ms.nn.TransformerDecoderLayer(8, 2, 16)(ms.ops.ones((3, 2, 8)), ms.ops.ones((5, 2, 8))).shape
    (3, 2, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__()
        self._options(nhead, dropout, activation, norm_first)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
        self.dense1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, dtype=dtype)
        self.norm1 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.norm2 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.norm3 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.dropout1 = Dropout(p=dropout)
        self.dropout2 = Dropout(p=dropout)
        self.dropout3 = Dropout(p=dropout)

    def _remembered(self, x: Any, memory: Any, mask: Any, padding: Any) -> Any:
        return self.dropout2(self.multihead_attn(x, memory, memory, padding, False, mask)[0])

    def construct(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
    ) -> Any:
        x = tgt
        if self.norm_first:
            x = x + self._attended(self.norm1(x), tgt_mask, tgt_key_padding_mask)
            x = x + self._remembered(self.norm2(x), memory, memory_mask, memory_key_padding_mask)
            return x + self._forward(self.norm3(x), self.dropout3)
        x = self.norm1(x + self._attended(x, tgt_mask, tgt_key_padding_mask))
        x = self.norm2(x + self._remembered(x, memory, memory_mask, memory_key_padding_mask))
        return self.norm3(x + self._forward(x, self.dropout3))


def _stack(where: str, argument: str, layer: Any, kind: type[Cell], num_layers: int) -> CellList:
    if not isinstance(layer, Cell):
        raise ArgumentTypeError(where, argument, got=type(layer).__name__, takes=f"a {kind.__name__}")
    arg.positive(where, "num_layers", num_layers)
    return CellList([copy.deepcopy(layer) for _ in range(num_layers)])


class TransformerEncoder(Cell):
    """A stack of copies of an encoder layer.

    Args:
        encoder_layer: a :class:`TransformerEncoderLayer`.
        num_layers: number of copies.
        norm: a Cell applied to the output, or None.

    >>> import mycelia as ms
    >>> net = ms.nn.TransformerEncoder(ms.nn.TransformerEncoderLayer(8, 2, 16), 2)
    >>> net(ms.ops.ones((5, 2, 8))).shape
    (5, 2, 8)
    """

    def __init__(self, encoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = _stack("TransformerEncoder", "encoder_layer", encoder_layer, TransformerEncoderLayer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def construct(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None) -> Any:
        x = src
        for layer in self.layers:
            x = layer(x, src_mask, src_key_padding_mask)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Cell):
    """A stack of copies of a decoder layer.

    Args:
        decoder_layer: a :class:`TransformerDecoderLayer`.
        num_layers: number of copies.
        norm: a Cell applied to the output, or None.

    >>> import mycelia as ms
    >>> net = ms.nn.TransformerDecoder(ms.nn.TransformerDecoderLayer(8, 2, 16), 2)
    >>> net(ms.ops.ones((3, 2, 8)), ms.ops.ones((5, 2, 8))).shape
    (3, 2, 8)
    """

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = _stack("TransformerDecoder", "decoder_layer", decoder_layer, TransformerDecoderLayer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def construct(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
    ) -> Any:
        x = tgt
        for layer in self.layers:
            x = layer(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return x if self.norm is None else self.norm(x)


class Transformer(Cell):
    """An encoder and a decoder; matrices start with ``xavier_uniform``.

    Args:
        d_model: features.
        nhead: number of heads.
        num_encoder_layers: layers of the encoder.
        num_decoder_layers: layers of the decoder.
        dim_feedforward: features between the dense layers.
        dropout: probability to drop, from 0 to below 1.
        activation: ``"relu"`` or ``"gelu"``, or a Cell or function.
        custom_encoder: a Cell in place of the encoder.
        custom_decoder: a Cell in place of the decoder.
        layer_norm_eps: added to variances.
        batch_first: the batch is the first axis.
        norm_first: normalize before attention and dense layers instead of after.
        dtype: dtype of the parameters.

    Inputs:
        src: the encoder's input, of shape (S, batch, d_model).
        tgt: the decoder's input, of shape (L, batch, d_model).
        src_mask: and the other masks: see :class:`TransformerDecoderLayer`.

    Outputs:
        A tensor of the shape of ``tgt``.

    Raises:
        ShapeError: batches or features differ.

    >>> import mycelia as ms
    >>> net = ms.nn.Transformer(8, 2, 1, 1, 16)
    >>> net(ms.ops.ones((5, 2, 8)), ms.ops.ones((3, 2, 8))).shape
    (3, 2, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype)
        if custom_encoder is None:
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*options), num_encoder_layers, norm)
        if custom_decoder is None:
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*options), num_decoder_layers, norm)
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for p in self.get_parameters():
            if p.ndim > 1:
                p.set_data(initializer("xavier_uniform", p.shape, p.dtype))

    def construct(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
    ) -> Any:
        s = arg.axes_of_input("Transformer", "src", src, (2, 3), "(length, batch, features)")
        t = arg.axes_of_input("Transformer", "tgt", tgt, (2, 3), "(length, batch, features)")
        for name, x in (("src", s), ("tgt", t)):
            arg.channels_of("Transformer", name, x, -1, self.d_model, "features")
        batch = 0 if self.batch_first else 1
        if s.ndim != t.ndim or (s.ndim == 3 and s.shape[batch] != t.shape[batch]):
            raise ShapeError(
                "Transformer", "tgt", got=f"shape {t.shape}", takes=f"the batch of 'src' of shape {s.shape}"
            )
        memory = self.encoder(s, src_mask, src_key_padding_mask)
        return self.decoder(t, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
