"""The measured networks written for torch, with the parameter names of :mod:`benchmarks.networks`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class MLP(nn.Module):
    """784-512-512-10 with ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))

    def forward(self, x: Any) -> Any:
        return self.layers(x)


class LeNet(nn.Module):
    """LeNet-5 with ReLU and max pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut: nn.Module | None = None
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Module):
    """ResNet for small images."""

    def __init__(self, widths: tuple[int, ...] = (64, 128, 256, 512), blocks: int = 2) -> None:
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0])
        layers, channels = [], widths[0]
        for i, width in enumerate(widths):
            for j in range(blocks):
                layers.append(BasicBlock(channels, width, 2 if i > 0 and j == 0 else 1))
                channels = width
        self.blocks = nn.Sequential(*layers)
        self.head = nn.Linear(channels, 10)

    def forward(self, x: Any) -> Any:
        return self.head(self.blocks(F.relu(self.bn(self.stem(x)))).mean((2, 3)))


class Bottleneck(nn.Module):
    """1x1, 3x3 (which carries the stride) and 1x1 convolutions beside a shortcut."""

    def __init__(self, channels_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels_in, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.shortcut: nn.Module | None = None
        if stride != 1 or channels_in != 4 * width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x: Any) -> Any:
        y = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        return F.relu(self.bn3(self.conv3(y)) + (x if self.shortcut is None else self.shortcut(x)))


class ResNet50(nn.Module):
    """ResNet of bottlenecks with a 7x7 stem."""

    def __init__(self, width: int = 64, blocks: tuple[int, ...] = (3, 4, 6, 3), classes: int = 1000) -> None:
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        layers, channels = [], width
        for i, count in enumerate(blocks):
            for j in range(count):
                layers.append(Bottleneck(channels, width * 2**i, 2 if i > 0 and j == 0 else 1))
                channels = 4 * width * 2**i
        self.blocks = nn.Sequential(*layers)
        self.head = nn.Linear(channels, classes)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.bn(self.stem(x))), 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


class Layer(nn.Module):
    """A pre-norm transformer layer with causal attention."""

    def __init__(self, width: int, heads: int, epsilon: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=epsilon), nn.LayerNorm(width, eps=epsilon)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """A decoder-only transformer with learned positions."""

    def __init__(
        self, vocabulary: int = 4096, width: int = 384, layers: int = 6, heads: int = 6, context: int = 256,
        epsilon: float = 1e-7,
    ) -> None:  # fmt: skip
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.layers = nn.Sequential(*[Layer(width, heads, epsilon) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width, eps=epsilon), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: Any) -> Any:
        x = self.token(ids) + self.position(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.layers(x)))


class EncoderLayer(nn.Module):
    """A post-norm transformer layer with attention to all positions."""

    def __init__(self, width: int, heads: int, inner: int, epsilon: float) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.out, self.norm1 = nn.Linear(width, width), nn.LayerNorm(width, eps=epsilon)
        self.up, self.down, self.norm2 = nn.Linear(width, inner), nn.Linear(inner, width), nn.LayerNorm(width, epsilon)

    def forward(self, x: Any) -> Any:
        b, t, d = x.shape
        q, k, v = (
            dense(x).view(b, t, self.heads, d // self.heads).transpose(1, 2)
            for dense in (self.query, self.key, self.value)
        )
        y = F.scaled_dot_product_attention(q, k, v)
        x = self.norm1(x + self.out(y.transpose(1, 2).reshape(b, t, d)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class BERT(nn.Module):
    """A masked language model of one segment, its output weights its own."""

    def __init__(
        self, vocabulary: int = 30522, width: int = 768, layers: int = 4, heads: int = 12, inner: int = 3072,
        context: int = 128, epsilon: float = 1e-7,
    ) -> None:  # fmt: skip
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.layers = nn.Sequential(*[EncoderLayer(width, heads, inner, epsilon) for _ in range(layers)])
        self.transform, self.norm2 = nn.Linear(width, width), nn.LayerNorm(width, eps=epsilon)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids: Any) -> Any:
        x = self.layers(self.norm(self.token(ids) + self.position(torch.arange(ids.shape[1]))))
        return self.head(self.norm2(F.gelu(self.transform(x))))


class Recurrent(nn.Module):
    """An LSTM whose last output is classified."""

    def __init__(self, features: int = 128, hidden: int = 256, layers: int = 2) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, 10)

    def forward(self, x: Any) -> Any:
        y, _ = self.lstm(x)
        return self.head(y[:, -1])


NETWORKS: dict[str, type[nn.Module]] = {
    "mlp": MLP, "lenet": LeNet, "r18": ResNet, "gpt": GPT, "bert": BERT, "lstm": Recurrent, "resnet50": ResNet50,
}  # fmt: skip

#: The last part of a parameter's name here, for each module, and in :mod:`benchmarks.networks`.
_RENAMED: dict[type[nn.Module], dict[str, str]] = {
    nn.BatchNorm2d: {
        "weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance",
    },
    nn.LayerNorm: {"weight": "gamma", "bias": "beta"},
    nn.Embedding: {"weight": "embedding_table"},
}  # fmt: skip


def named_values(network: nn.Module) -> dict[str, Any]:
    """Parameters and running statistics under the names that :mod:`benchmarks.networks` gives them."""
    found = {}
    for path, module in network.named_modules():
        renamed = _RENAMED.get(type(module), {})
        own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        for name, value in own:
            if name != "num_batches_tracked":
                found[f"{path}.{renamed.get(name, name)}"] = value
    return found
