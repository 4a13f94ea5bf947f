"""A small GPT (Radford et al., 2018) that learns a text letter by letter and goes on writing it.

Run it with ``python examples/gpt.py --mode graph --steps 300``.
"""

import argparse

import numpy as np

import mycelia as ms
from mycelia import nn, ops

TEXT = """
A thread grows out into the dark, and where it meets a thread it joins.
What one has found the others taste: a root, a leaf, a grain of rain.
No thread commands, no thread is last; the net is where the forest thinks.
And when the old wood falls at night, the net lets go, and grows again.
"""
LETTERS = sorted(set(TEXT))
CODES = {letter: code for code, letter in enumerate(LETTERS)}


class Block(nn.Cell):
    """Causal self-attention and a two-layer network, each behind a layer norm and beside a way past it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm((width,))
        self.qkv = nn.Dense(width, 3 * width)
        self.out = nn.Dense(width, width)
        self.norm2 = nn.LayerNorm((width,))
        self.up = nn.Dense(width, 4 * width)
        self.down = nn.Dense(4 * width, width)

    def attend(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).transpose(2, 0, 3, 1, 4)
        scores = ops.matmul(qkv[0], qkv[1].swapaxes(-1, -2)) / (width // self.heads) ** 0.5
        future = ops.triu(ops.ones((length, length), ms.bool_), 1)
        weights = ops.softmax(ops.masked_fill(scores, future, -1e9), -1)
        return self.out(ops.matmul(weights, qkv[2]).transpose(0, 2, 1, 3).reshape(batch, length, width))

    def construct(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(ops.gelu(self.up(self.norm2(x))))


class GPT(nn.Cell):
    """(N, T) int32 codes to (N, T, letters) scores for the letter after each."""

    def __init__(self, letters, length=32, width=48, heads=4, layers=2):
        super().__init__()
        self.length = length
        self.letter = nn.Embedding(letters, width, embedding_table="normal")
        self.place = nn.Embedding(length, width, embedding_table="normal")
        self.blocks = nn.SequentialCell([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm((width,))
        self.head = nn.Dense(width, letters)

    def construct(self, codes):
        places = ops.arange(codes.shape[1]).astype(ms.int32)
        return self.head(self.norm(self.blocks(self.letter(codes) + self.place(places))))


def write(net, start, count):
    """``start`` and ``count`` more letters, each the likeliest after the last ``net.length``."""
    codes = [CODES[letter] for letter in start]
    for _ in range(count):
        window = codes[-net.length :]
        padded = np.array([window + [0] * (net.length - len(window))], np.int32)  # one shape, one graph
        codes.append(int(net(ms.Tensor(padded))[0, len(window) - 1].argmax()))
    return "".join([LETTERS[code] for code in codes])


def build():
    """An untrained network and inputs for it."""
    return GPT(len(LETTERS)), (ms.Tensor(np.arange(64, dtype=np.int32).reshape(2, 32) % len(LETTERS)),)


def main(argv=None):
    """Train; gives the last loss."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=("pynative", "graph"), default="graph")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(1)

    net = GPT(len(LETTERS))
    optimizer = nn.AdamWeightDecay(net.trainable_params(), 3e-3, weight_decay=0.01)
    loss_of = nn.CrossEntropyLoss()
    step = ms.value_and_grad(
        lambda codes, after: loss_of(net(codes).reshape(-1, len(LETTERS)), after.reshape(-1)), None,
        optimizer.parameters,
    )  # fmt: skip
    codes = np.array([CODES[letter] for letter in TEXT], np.int32)
    random, net, loss = np.random.default_rng(0), net.set_train(), None
    for number in range(args.steps):
        starts = random.integers(0, len(codes) - net.length - 1, args.batch)
        rows = np.stack([codes[s : s + net.length + 1] for s in starts])
        loss, gradients = step(ms.Tensor(rows[:, :-1]), ms.Tensor(rows[:, 1:]))
        optimizer(gradients)
        if number % 50 == 0 or number == args.steps - 1:
            print(f"step {number}: loss {float(loss):.3f}")
    print(write(net.set_train(False), "A thread", 64 if args.steps >= 50 else 8))
    return float(loss)


if __name__ == "__main__":
    main()
