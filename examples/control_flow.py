"""A network that decides with ``if`` and ``while`` how it computes, depending on what it sees.

    python examples/control_flow.py --mode graph --steps 200

It learns a function of two pieces. An ``if`` picks the expert for a sample; at inference a ``while`` refines
the answer by Newton steps until it no longer moves.
"""

import argparse

import numpy as np

import mycelia as ms
from mycelia import nn, ops


class Expert(nn.Cell):
    """Two numbers to one."""

    def __init__(self, hidden=16):
        super().__init__()
        self.layers = nn.SequentialCell(nn.Dense(2, hidden), nn.Tanh(), nn.Dense(hidden, 1))

    def construct(self, x):
        return self.layers(x)


class Decider(nn.Cell):
    """A sample (2,) to the cube root of what the expert for it says, and the count of Newton steps."""

    def __init__(self, hidden=16, tolerance=1e-5):
        super().__init__()
        self.near, self.far = Expert(hidden), Expert(hidden)
        self.tolerance = tolerance

    def value(self, x):
        if (x * x).sum() < 1:
            y = self.near(x.expand_dims(0))
        elif x[0] > 0:
            y = self.far(x.expand_dims(0))
        else:
            y = -self.far(-x.expand_dims(0))
        return y.reshape(())

    def construct(self, x):
        value = self.value(x)
        size = ops.abs(value) + 1
        root, change, steps = size, size, ops.full((), 0, dtype=ms.int64)
        while change > self.tolerance * root:
            after = root - (root**3 - size) / (3 * root**2)
            change, root = ops.abs(after - root), after
            steps += 1
            if steps >= 50:
                break
        return ops.sign(value) * root, steps


def target(x):
    """What is to be learned: one function inside the unit circle, another outside."""
    inside = (x**2).sum(-1) < 1
    return np.where(inside, x[:, 0] * x[:, 1], np.sin(x[:, 0]) + np.sin(x[:, 1])).astype(np.float32)


def build():
    """An untrained network and inputs for it."""
    return Decider(), (ms.Tensor(np.array([0.3, -1.4], np.float32)),)


def main(argv=None):
    """Train; gives the mean squared error on samples that were not seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=("pynative", "graph"), default="graph")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(1)

    net = Decider()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)

    def loss_of(xs, ys):
        total = 0
        for i in range(xs.shape[0]):
            total = total + (net.value(xs[i]) - ys[i]) ** 2
        return total / xs.shape[0]

    step = ms.value_and_grad(loss_of, None, optimizer.parameters)
    random = np.random.default_rng(0)
    for number in range(args.steps):
        x = random.uniform(-2, 2, (args.batch, 2)).astype(np.float32)
        loss, gradients = step(ms.Tensor(x), ms.Tensor(target(x)))
        optimizer(gradients)
        if number % 50 == 0 or number == args.steps - 1:
            print(f"step {number}: loss {float(loss):.4f}")

    x = random.uniform(-2, 2, (32, 2)).astype(np.float32)
    found = [net(ms.Tensor(row)) for row in x]
    values = [float(ops.sign(root) * (ops.abs(root) ** 3 - 1)) for root, _ in found]
    error = float(np.mean((np.array(values) - target(x)) ** 2))
    counts = sorted({int(steps) for _, steps in found})
    print(f"mean squared error {error:.4f}; the answers took {counts[0]} to {counts[-1]} Newton steps")
    return error


if __name__ == "__main__":
    main()
