"""The measured networks as functions of a dictionary of arrays, in plain jax.

Names of parameters are those of :mod:`benchmarks.networks`; the layouts are jax's own: images are NHWC, kernels of
convolutions HWIO, and weights of dense layers ``(in, out)``. A network is a class with a ``shapes`` dictionary in the
order and layout of :mod:`benchmarks.networks` and a ``forward`` function of a :class:`Scope`, which reads parameters,
collects new running statistics, and casts the operands of products to the computing type.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Shapes = dict[str, tuple[int, ...]]

LAYER_NORM_EPSILON = 1e-7
BATCH_NORM_EPSILON, MOMENTUM = 1e-5, 0.9


class Scope:
    """One call of a network: its arrays, whether it trains, its computing type, and the statistics it gathers."""

    def __init__(self, values: dict[str, Any], training: bool, dtype: Any) -> None:
        self.values, self.training, self.dtype = values, training, dtype
        self.statistics: dict[str, Any] = {}

    def dense(self, name: str, x: Any) -> Any:
        y = x.astype(self.dtype) @ self.values[f"{name}.weight"].astype(self.dtype)
        bias = self.values.get(f"{name}.bias")
        return y if bias is None else y + bias.astype(self.dtype)

    def conv(self, name: str, x: Any, stride: int = 1, padding: int = 0) -> Any:
        kernel = self.values[f"{name}.weight"].astype(self.dtype)
        y = lax.conv_general_dilated(
            x.astype(self.dtype), kernel, (stride, stride), [(padding, padding)] * 2,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )  # fmt: skip
        bias = self.values.get(f"{name}.bias")
        return y if bias is None else y + bias.astype(self.dtype)

    def batch_norm(self, name: str, x: Any) -> Any:
        given, x = x.dtype, x.astype(jnp.float32)
        mean, variance = self.values[f"{name}.moving_mean"], self.values[f"{name}.moving_variance"]
        if self.training:
            count = x.size // x.shape[-1]
            kept = (mean, variance)
            mean = x.mean((0, 1, 2))
            variance = jnp.square(x).mean((0, 1, 2)) - jnp.square(mean)
            found = (mean, variance * (count / (count - 1)))
            for last, old, new in zip(("moving_mean", "moving_variance"), kept, found, strict=True):
                self.statistics[f"{name}.{last}"] = MOMENTUM * old + (1 - MOMENTUM) * new
        scale = self.values[f"{name}.gamma"] * lax.rsqrt(variance + BATCH_NORM_EPSILON)
        return (x * scale + (self.values[f"{name}.beta"] - mean * scale)).astype(given)

    def layer_norm(self, name: str, x: Any) -> Any:
        x = x.astype(jnp.float32)
        mean = x.mean(-1, keepdims=True)
        variance = jnp.square(x - mean).mean(-1, keepdims=True)
        y = (x - mean) * lax.rsqrt(variance + LAYER_NORM_EPSILON)
        return y * self.values[f"{name}.gamma"] + self.values[f"{name}.beta"]

    def embedding(self, name: str, ids: Any) -> Any:
        return self.values[f"{name}.embedding_table"][ids]


def max_pool(x: Any, window: int, stride: int, padding: int = 0) -> Any:
    """The largest of each window of NHWC images."""
    sides = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, window, window, 1), (1, stride, stride, 1), sides)


def _dense_shapes(name: str, n: int, m: int, bias: bool = True) -> Shapes:
    return {f"{name}.weight": (m, n), **({f"{name}.bias": (m,)} if bias else {})}


def _conv_shapes(name: str, n: int, m: int, kernel: int, bias: bool = False) -> Shapes:
    return {f"{name}.weight": (m, n, kernel, kernel), **({f"{name}.bias": (m,)} if bias else {})}


def _norm_shapes(name: str, width: int, statistics: bool = False) -> Shapes:
    kinds = ("moving_mean", "moving_variance", "gamma", "beta") if statistics else ("gamma", "beta")
    return {f"{name}.{kind}": (width,) for kind in kinds}


class MLP:
    """784-512-512-10 with ReLU."""

    def __init__(self) -> None:
        self.shapes = {
            **_dense_shapes("layers.0", 784, 512), **_dense_shapes("layers.2", 512, 512),
            **_dense_shapes("layers.4", 512, 10),
        }  # fmt: skip

    def forward(self, p: Scope, x: Any) -> Any:
        return p.dense("layers.4", jax.nn.relu(p.dense("layers.2", jax.nn.relu(p.dense("layers.0", x)))))


class LeNet:
    """LeNet-5 with ReLU and max pooling; its flat features are ordered channel by channel."""

    def __init__(self) -> None:
        self.shapes = {
            **_conv_shapes("conv1", 1, 6, 5, True), **_conv_shapes("conv2", 6, 16, 5, True),
            **_dense_shapes("fc1", 400, 120), **_dense_shapes("fc2", 120, 84), **_dense_shapes("fc3", 84, 10),
        }  # fmt: skip

    def forward(self, p: Scope, x: Any) -> Any:
        x = max_pool(jax.nn.relu(p.conv("conv1", x, padding=2)), 2, 2)
        x = max_pool(jax.nn.relu(p.conv("conv2", x)), 2, 2)
        x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)
        return p.dense("fc3", jax.nn.relu(p.dense("fc2", jax.nn.relu(p.dense("fc1", x)))))


class ResNet:
    """ResNet for small images."""

    def __init__(self, widths: tuple[int, ...] = (64, 128, 256, 512), blocks: int = 2) -> None:
        self.shapes = {**_conv_shapes("stem", 3, widths[0], 3), **_norm_shapes("bn", widths[0], True)}
        self.blocks: list[tuple[str, int, bool]] = []
        channels = widths[0]
        for i, width in enumerate(widths):
            for j in range(blocks):
                name, stride = f"blocks.{len(self.blocks)}", 2 if i > 0 and j == 0 else 1
                shortcut = stride != 1 or channels != width
                self.blocks.append((name, stride, shortcut))
                for k, inputs in enumerate((channels, width), 1):
                    self.shapes |= _conv_shapes(f"{name}.conv{k}", inputs, width, 3)
                    self.shapes |= _norm_shapes(f"{name}.bn{k}", width, True)
                if shortcut:
                    self.shapes |= _conv_shapes(f"{name}.shortcut.0", channels, width, 1)
                    self.shapes |= _norm_shapes(f"{name}.shortcut.1", width, True)
                channels = width
        self.shapes |= _dense_shapes("head", channels, 10)

    def forward(self, p: Scope, x: Any) -> Any:
        x = jax.nn.relu(p.batch_norm("bn", p.conv("stem", x, padding=1)))
        for name, stride, shortcut in self.blocks:
            y = jax.nn.relu(p.batch_norm(f"{name}.bn1", p.conv(f"{name}.conv1", x, stride, 1)))
            y = p.batch_norm(f"{name}.bn2", p.conv(f"{name}.conv2", y, padding=1))
            if shortcut:
                x = p.batch_norm(f"{name}.shortcut.1", p.conv(f"{name}.shortcut.0", x, stride))
            x = jax.nn.relu(x + y)
        return p.dense("head", x.mean((1, 2)))


class ResNet50:
    """ResNet of bottlenecks with a 7x7 stem."""

    def __init__(self, width: int = 64, blocks: tuple[int, ...] = (3, 4, 6, 3), classes: int = 1000) -> None:
        self.shapes = {**_conv_shapes("stem", 3, width, 7), **_norm_shapes("bn", width, True)}
        self.blocks: list[tuple[str, int, bool]] = []
        channels = width
        for i, count in enumerate(blocks):
            inner, outer = width * 2**i, 4 * width * 2**i
            for j in range(count):
                name, stride = f"blocks.{len(self.blocks)}", 2 if i > 0 and j == 0 else 1
                shortcut = stride != 1 or channels != outer
                self.blocks.append((name, stride, shortcut))
                for k, (n, m, kernel) in enumerate(((channels, inner, 1), (inner, inner, 3), (inner, outer, 1)), 1):
                    self.shapes |= _conv_shapes(f"{name}.conv{k}", n, m, kernel)
                    self.shapes |= _norm_shapes(f"{name}.bn{k}", m, True)
                if shortcut:
                    self.shapes |= _conv_shapes(f"{name}.shortcut.0", channels, outer, 1)
                    self.shapes |= _norm_shapes(f"{name}.shortcut.1", outer, True)
                channels = outer
        self.shapes |= _dense_shapes("head", channels, classes)

    def forward(self, p: Scope, x: Any) -> Any:
        x = max_pool(jax.nn.relu(p.batch_norm("bn", p.conv("stem", x, 2, 3))), 3, 2, 1)
        for name, stride, shortcut in self.blocks:
            y = jax.nn.relu(p.batch_norm(f"{name}.bn1", p.conv(f"{name}.conv1", x)))
            y = jax.nn.relu(p.batch_norm(f"{name}.bn2", p.conv(f"{name}.conv2", y, stride, 1)))
            y = p.batch_norm(f"{name}.bn3", p.conv(f"{name}.conv3", y))
            if shortcut:
                x = p.batch_norm(f"{name}.shortcut.1", p.conv(f"{name}.shortcut.0", x, stride))
            x = jax.nn.relu(x + y)
        return p.dense("head", x.mean((1, 2)))


class GPT:
    """A decoder-only transformer with learned positions, pre-norm."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, context: int) -> None:
        self.layers, self.heads = layers, heads
        self.shapes: Shapes = {
            "token.embedding_table": (vocabulary, width),
            "position.embedding_table": (context, width),
        }
        for i in range(layers):
            name = f"layers.{i}"
            self.shapes |= _norm_shapes(f"{name}.norm1", width) | _norm_shapes(f"{name}.norm2", width)
            self.shapes |= _dense_shapes(f"{name}.qkv", width, 3 * width) | _dense_shapes(f"{name}.out", width, width)
            self.shapes |= _dense_shapes(f"{name}.up", width, 4 * width)
            self.shapes |= _dense_shapes(f"{name}.down", 4 * width, width)
        self.shapes |= _norm_shapes("norm", width) | _dense_shapes("head", width, vocabulary, False)

    def forward(self, p: Scope, ids: Any) -> Any:
        x = p.embedding("token", ids) + p.embedding("position", jnp.arange(ids.shape[1]))
        b, t, d = x.shape
        for i in range(self.layers):
            name = f"layers.{i}"
            qkv = p.dense(f"{name}.qkv", p.layer_norm(f"{name}.norm1", x)).reshape(b, t, 3, self.heads, -1)
            y = jax.nn.dot_product_attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], is_causal=True)
            x = x + p.dense(f"{name}.out", y.reshape(b, t, d))
            y = jax.nn.gelu(p.dense(f"{name}.up", p.layer_norm(f"{name}.norm2", x)), approximate=False)
            x = x + p.dense(f"{name}.down", y)
        return p.dense("head", p.layer_norm("norm", x))


class BERT:
    """A masked language model of one segment, its output weights its own, post-norm."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, inner: int, context: int) -> None:
        self.layers, self.heads = layers, heads
        self.shapes: Shapes = {
            "token.embedding_table": (vocabulary, width),
            "position.embedding_table": (context, width),
        }
        self.shapes |= _norm_shapes("norm", width)
        for i in range(layers):
            name = f"layers.{i}"
            for part in ("query", "key", "value", "out"):
                self.shapes |= _dense_shapes(f"{name}.{part}", width, width)
            self.shapes |= _norm_shapes(f"{name}.norm1", width) | _norm_shapes(f"{name}.norm2", width)
            self.shapes |= _dense_shapes(f"{name}.up", width, inner) | _dense_shapes(f"{name}.down", inner, width)
        self.shapes |= _dense_shapes("transform", width, width) | _norm_shapes("norm2", width)
        self.shapes |= _dense_shapes("head", width, vocabulary)

    def forward(self, p: Scope, ids: Any) -> Any:
        x = p.layer_norm("norm", p.embedding("token", ids) + p.embedding("position", jnp.arange(ids.shape[1])))
        b, t, d = x.shape
        for i in range(self.layers):
            name = f"layers.{i}"
            q, k, v = (p.dense(f"{name}.{part}", x).reshape(b, t, self.heads, -1) for part in ("query", "key", "value"))
            y = jax.nn.dot_product_attention(q, k, v)
            x = p.layer_norm(f"{name}.norm1", x + p.dense(f"{name}.out", y.reshape(b, t, d)))
            y = jax.nn.gelu(p.dense(f"{name}.up", x), approximate=False)
            x = p.layer_norm(f"{name}.norm2", x + p.dense(f"{name}.down", y))
        x = jax.nn.gelu(p.dense("transform", x), approximate=False)
        return p.dense("head", p.layer_norm("norm2", x))


class Recurrent:
    """An LSTM whose last output is classified; the product with the inputs is one for all steps."""

    def __init__(self, features: int, hidden: int, layers: int) -> None:
        self.layers, self.hidden = layers, hidden
        self.shapes: Shapes = {}
        for i in range(layers):
            self.shapes[f"lstm.weight_ih_l{i}"] = (4 * hidden, hidden if i else features)
            self.shapes[f"lstm.weight_hh_l{i}"] = (4 * hidden, hidden)
            self.shapes[f"lstm.bias_ih_l{i}"] = self.shapes[f"lstm.bias_hh_l{i}"] = (4 * hidden,)
        self.shapes |= _dense_shapes("head", hidden, 10)

    def forward(self, p: Scope, x: Any) -> Any:
        x = x.swapaxes(0, 1).astype(p.dtype)
        for i in range(self.layers):
            recurrent = p.values[f"lstm.weight_hh_l{i}"].astype(p.dtype)
            bias = (p.values[f"lstm.bias_ih_l{i}"] + p.values[f"lstm.bias_hh_l{i}"]).astype(p.dtype)
            gates = x @ p.values[f"lstm.weight_ih_l{i}"].astype(p.dtype) + bias

            def step(carry: Any, given: Any, recurrent: Any = recurrent) -> Any:
                h, c = carry
                into, forget, new, out = jnp.split(given + h @ recurrent, 4, -1)
                c = jax.nn.sigmoid(forget) * c + jax.nn.sigmoid(into) * jnp.tanh(new)
                h = jax.nn.sigmoid(out) * jnp.tanh(c)
                return (h, c), h

            zero = jnp.zeros((x.shape[1], self.hidden), p.dtype)
            _, x = lax.scan(step, (zero, zero), gates)
        return p.dense("head", x[-1])


NETWORKS: dict[str, Any] = {
    "mlp": MLP, "lenet": LeNet, "r18": ResNet, "gpt": GPT, "bert": BERT, "lstm": Recurrent, "resnet50": ResNet50,
}  # fmt: skip
