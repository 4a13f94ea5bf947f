"""The measured networks as ONNX graphs for inference, with the parameter names of :mod:`benchmarks.networks`.

A graph has fixed shapes, one input ``x`` and one output ``logits``, and holds the first weights of the workload. It is
built from the operators that ONNX has for the purpose (``Gemm``, ``LayerNormalization``, ``Gelu``, ``LSTM``); attention
is ONNX Runtime's own ``MultiHeadAttention`` with its fused kernel. See https://onnx.ai/onnx/operators for what each
operator computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.workloads import Array, Workload, initial

OPSET, IR_VERSION = 20, 10
ATTENTION = "com.microsoft"
LAYER_NORM_EPSILON, BATCH_NORM_EPSILON = 1e-7, 1e-5


class Graph:
    """A graph in the making: nodes, arrays by name, and the number of trained values among them."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.arrays: dict[str, Array] = {}
        self.parameters = 0

    def op(self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Add a node; the names of its outputs, or the name if it is one."""
        names = [f"{kind}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value: Array) -> str:
        """An array that is no parameter."""
        name = f"constant_{len(self.arrays)}"
        self.arrays[name] = value
        return name

    def first(self, name: str, *shape: int) -> Array:
        """The first value of a parameter, counted if it is trained."""
        value = initial(name, shape)
        if not name.rpartition(".")[2].startswith("moving_"):
            self.parameters += value.size
        return value

    def weight(self, name: str, *shape: int) -> str:
        self.arrays[name] = self.first(name, *shape)
        return name

    def reshape(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, self.constant(np.array(shape, np.int64)))

    def dense(self, name: str, x: str, n: int, m: int, bias: bool = True) -> str:
        """``x @ weight.T + bias`` over the last of any number of dimensions; the weight is kept as ``(in, out)``."""
        self.arrays[f"{name}.weight"] = np.ascontiguousarray(self.first(f"{name}.weight", m, n).T)
        y = self.op("MatMul", x, f"{name}.weight")
        return self.op("Add", y, self.weight(f"{name}.bias", m)) if bias else y

    def conv(
        self, name: str, x: str, n: int, m: int, kernel: int, stride: int = 1, padding: int = 0, bias: bool = False
    ) -> str:
        inputs = [x, self.weight(f"{name}.weight", m, n, kernel, kernel)]
        if bias:
            inputs.append(self.weight(f"{name}.bias", m))
        return self.op("Conv", *inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[padding] * 4)

    def batch_norm(self, name: str, x: str, width: int) -> str:
        kinds = ("gamma", "beta", "moving_mean", "moving_variance")
        given = [self.weight(f"{name}.{kind}", width) for kind in kinds]
        return self.op("BatchNormalization", x, *given, epsilon=BATCH_NORM_EPSILON)

    def layer_norm(self, name: str, x: str, width: int) -> str:
        given = [self.weight(f"{name}.{kind}", width) for kind in ("gamma", "beta")]
        return self.op("LayerNormalization", x, *given, axis=-1, epsilon=LAYER_NORM_EPSILON)

    def relu(self, x: str) -> str:
        return self.op("Relu", x)

    def gelu(self, x: str) -> str:
        return self.op("Gelu", x)

    def max_pool(self, x: str, window: int, stride: int, padding: int = 0) -> str:
        return self.op("MaxPool", x, kernel_shape=[window] * 2, strides=[stride] * 2, pads=[padding] * 4)

    def embedding(self, name: str, ids: str, count: int, width: int) -> str:
        return self.op("Gather", self.weight(f"{name}.embedding_table", count, width), ids)

    def attention(self, q: str, k: str, v: str, heads: int, causal: bool) -> str:
        """Attention over (N, T, D) with the heads beside each other in D."""
        return self.op("MultiHeadAttention", q, k, v, domain=ATTENTION, num_heads=heads, unidirectional=int(causal))

    def lstm(self, name: str, layer: int, x: str, features: int, hidden: int) -> tuple[str, str]:
        """A layer over (T, N, features): all outputs and the last one. ONNX's order of gates is input, output,
        forget, new; that of the parameters is input, forget, new, output."""

        def gates(kind: str, *shape: int) -> Array:
            parts = np.split(self.first(f"{name}.{kind}_l{layer}", 4 * hidden, *shape), 4)
            return np.concatenate([parts[i] for i in (0, 3, 1, 2)])[None]

        given = [self.constant(gates("weight_ih", features)), self.constant(gates("weight_hh", hidden))]
        given.append(self.constant(np.concatenate([gates("bias_ih"), gates("bias_hh")], 1)))
        every, last, _ = self.op("LSTM", x, *given, outputs=3, hidden_size=hidden)
        return (
            self.op("Squeeze", every, self.constant(np.array([1], np.int64))),
            self.op("Squeeze", last, self.constant(np.array([0], np.int64))),
        )


def mlp(g: Graph, work: Workload) -> str:
    x = g.relu(g.dense("layers.0", "x", 784, 512))
    return g.dense("layers.4", g.relu(g.dense("layers.2", x, 512, 512)), 512, 10)


def lenet(g: Graph, work: Workload) -> str:
    x = g.max_pool(g.relu(g.conv("conv1", "x", 1, 6, 5, padding=2, bias=True)), 2, 2)
    x = g.op("Flatten", g.max_pool(g.relu(g.conv("conv2", x, 6, 16, 5, bias=True)), 2, 2))
    x = g.relu(g.dense("fc1", x, 400, 120))
    return g.dense("fc3", g.relu(g.dense("fc2", x, 120, 84)), 84, 10)


def _head(g: Graph, x: str, channels: int, classes: int) -> str:
    return g.dense("head", g.op("Flatten", g.op("GlobalAveragePool", x)), channels, classes)


def _shortcut(g: Graph, name: str, x: str, channels: int, width: int, stride: int) -> str:
    if stride == 1 and channels == width:
        return x
    x = g.conv(f"{name}.shortcut.0", x, channels, width, 1, stride)
    return g.batch_norm(f"{name}.shortcut.1", x, width)


def resnet(g: Graph, work: Workload) -> str:
    """ResNet of basic blocks for small images."""
    widths, blocks = work.options.get("widths", (64, 128, 256, 512)), work.options.get("blocks", 2)
    x = g.relu(g.batch_norm("bn", g.conv("stem", "x", 3, widths[0], 3, padding=1), widths[0]))
    channels, number = widths[0], 0
    for i, width in enumerate(widths):
        for j in range(blocks):
            name, stride = f"blocks.{number}", 2 if i > 0 and j == 0 else 1
            y = g.batch_norm(f"{name}.bn1", g.conv(f"{name}.conv1", x, channels, width, 3, stride, 1), width)
            y = g.batch_norm(f"{name}.bn2", g.conv(f"{name}.conv2", g.relu(y), width, width, 3, 1, 1), width)
            x = g.relu(g.op("Add", y, _shortcut(g, name, x, channels, width, stride)))
            channels, number = width, number + 1
    return _head(g, x, channels, 10)


def resnet50(g: Graph, work: Workload) -> str:
    """ResNet of bottlenecks with a 7x7 stem."""
    width, blocks, classes = (work.options[key] for key in ("width", "blocks", "classes"))
    x = g.max_pool(g.relu(g.batch_norm("bn", g.conv("stem", "x", 3, width, 7, 2, 3), width)), 3, 2, 1)
    channels, number = width, 0
    for i, count in enumerate(blocks):
        inner, outer = width * 2**i, 4 * width * 2**i
        for j in range(count):
            name, stride = f"blocks.{number}", 2 if i > 0 and j == 0 else 1
            y = g.relu(g.batch_norm(f"{name}.bn1", g.conv(f"{name}.conv1", x, channels, inner, 1), inner))
            y = g.conv(f"{name}.conv2", y, inner, inner, 3, stride, 1)
            y = g.conv(f"{name}.conv3", g.relu(g.batch_norm(f"{name}.bn2", y, inner)), inner, outer, 1)
            y = g.batch_norm(f"{name}.bn3", y, outer)
            x = g.relu(g.op("Add", y, _shortcut(g, name, x, channels, outer, stride)))
            channels, number = outer, number + 1
    return _head(g, x, channels, classes)


def gpt(g: Graph, work: Workload) -> str:
    """A decoder-only transformer with learned positions, pre-norm."""
    vocabulary, width, layers, heads, context = (
        work.options[key] for key in ("vocabulary", "width", "layers", "heads", "context")
    )
    x = g.op("Add", g.embedding("token", "x", vocabulary, width), g.weight("position.embedding_table", context, width))
    for i in range(layers):
        name = f"layers.{i}"
        qkv = g.dense(f"{name}.qkv", g.layer_norm(f"{name}.norm1", x, width), width, 3 * width)
        q, k, v = g.op("Split", qkv, outputs=3, axis=-1, num_outputs=3)
        y = g.attention(q, k, v, heads, causal=True)
        x = g.op("Add", x, g.dense(f"{name}.out", y, width, width))
        y = g.gelu(g.dense(f"{name}.up", g.layer_norm(f"{name}.norm2", x, width), width, 4 * width))
        x = g.op("Add", x, g.dense(f"{name}.down", y, 4 * width, width))
    return g.dense("head", g.layer_norm("norm", x, width), width, vocabulary, bias=False)


def bert(g: Graph, work: Workload) -> str:
    """A masked language model of one segment, its output weights its own, post-norm."""
    vocabulary, width, layers, heads, inner, context = (
        work.options[key] for key in ("vocabulary", "width", "layers", "heads", "inner", "context")
    )
    x = g.op("Add", g.embedding("token", "x", vocabulary, width), g.weight("position.embedding_table", context, width))
    x = g.layer_norm("norm", x, width)
    for i in range(layers):
        name = f"layers.{i}"
        q, k, v = (g.dense(f"{name}.{part}", x, width, width) for part in ("query", "key", "value"))
        y = g.attention(q, k, v, heads, causal=False)
        x = g.layer_norm(f"{name}.norm1", g.op("Add", x, g.dense(f"{name}.out", y, width, width)), width)
        y = g.dense(f"{name}.down", g.gelu(g.dense(f"{name}.up", x, width, inner)), inner, width)
        x = g.layer_norm(f"{name}.norm2", g.op("Add", x, y), width)
    x = g.layer_norm("norm2", g.gelu(g.dense("transform", x, width, width)), width)
    return g.dense("head", x, width, vocabulary)


def recurrent(g: Graph, work: Workload) -> str:
    """An LSTM whose last output is classified; ONNX Runtime takes time first."""
    features, hidden, layers = (work.options[key] for key in ("features", "hidden", "layers"))
    x, last = g.op("Transpose", "x", perm=[1, 0, 2]), ""
    for i in range(layers):
        x, last = g.lstm("lstm", i, x, hidden if i else features, hidden)
    return g.dense("head", last, hidden, 10)


NETWORKS: dict[str, Callable[[Graph, Workload], str]] = {
    "mlp": mlp, "lenet": lenet, "r18": resnet, "gpt": gpt, "bert": bert, "lstm": recurrent, "resnet50": resnet50,
}  # fmt: skip


def model(work: Workload) -> tuple[Any, int]:
    """The model of a workload, and how many trained values it has."""
    graph = Graph()
    graph.nodes.append(helper.make_node("Identity", [NETWORKS[work.name](graph, work)], ["logits"]))
    kind = onnx.TensorProto.INT32 if work.tokens else onnx.TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("x", kind, work.input_shape)]
    outputs = [helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, None)]
    arrays = [numpy_helper.from_array(value, name) for name, value in graph.arrays.items()]
    made = helper.make_model(
        helper.make_graph(graph.nodes, work.name, inputs, outputs, arrays),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ATTENTION, 1)],
        ir_version=IR_VERSION,
    )
    return made, graph.parameters
