"""Two networks against each other (Goodfellow et al., 2014): one draws digits, one tells drawn from real.

Run it with ``python examples/gan.py --mode graph --steps 500``.
"""

import argparse

import numpy as np

import mycelia as ms
from mycelia import nn, ops
from mycelia.dataset import MnistDataset
from mycelia.demo import digits


class Generator(nn.Cell):
    """(N, noise) normal numbers to (N, 1, 28, 28) images from -1 to 1."""

    def __init__(self, noise=16, width=16):
        super().__init__()
        self.noise, self.width = noise, width
        self.start = nn.SequentialCell(nn.Dense(noise, 2 * width * 49), nn.BatchNorm1d(2 * width * 49), nn.ReLU())
        self.grow = nn.SequentialCell(
            nn.Conv2dTranspose(2 * width, width, 4, 2, pad_mode="pad", padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2dTranspose(width, 1, 4, 2, pad_mode="pad", padding=1, has_bias=True), nn.Tanh(),
        )  # fmt: skip

    def construct(self, z):
        return self.grow(self.start(z).reshape(-1, 2 * self.width, 7, 7))


class Discriminator(nn.Cell):
    """(N, 1, 28, 28) images to (N,) logits of being real."""

    def __init__(self, width=16):
        super().__init__()
        self.look = nn.SequentialCell(
            nn.Conv2d(1, width, 4, 2, pad_mode="pad", padding=1, has_bias=True), nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, 2, pad_mode="pad", padding=1, has_bias=True), nn.LeakyReLU(0.2),
            nn.Flatten(), nn.Dropout(p=0.3), nn.Dense(2 * width * 49, 1),
        )  # fmt: skip

    def construct(self, x):
        return self.look(x).reshape(-1)


def misfit(logits, target):
    """How far logits are from all being ``target`` (0 or 1)."""
    ones = ops.ones_like(logits)
    return ops.binary_cross_entropy_with_logits(logits, ones * target, ones, ones)


def images(rows):
    """``rows`` digits: (N, 1, 28, 28) float32 from -1 to 1."""
    data = MnistDataset(str(digits.folder()), usage="train", shuffle=False, num_samples=rows).batch(rows)
    batch = next(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    return batch["image"].reshape(rows, 1, 28, 28).astype(np.float32) / 127.5 - 1


def picture(pixels):
    """A 28 x 28 image as text, two rows a line."""
    rows = (np.asarray(pixels).reshape(14, 2, 28).mean(1) + 1) / 2
    return "\n".join(["".join([" .:*#"[min(4, int(v * 5))] for v in row]) for row in rows])


def build():
    """An untrained network and inputs for it."""
    return Generator(), (ms.Tensor(np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)),)


def main(argv=None):
    """Train; gives the last losses of the discriminator and the generator."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=("pynative", "graph"), default="graph")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(1)

    draw, tell = Generator().set_train(), Discriminator().set_train()
    draw_optimizer = nn.Adam(draw.trainable_params(), 1e-3, beta1=0.5)
    tell_optimizer = nn.Adam(tell.trainable_params(), 1e-3, beta1=0.5)
    tell_step = ms.value_and_grad(
        lambda real, z: misfit(tell(real), 0.9) + misfit(tell(draw(z)), 0.0), None, tell_optimizer.parameters
    )
    draw_step = ms.value_and_grad(lambda z: misfit(tell(draw(z)), 1.0), None, draw_optimizer.parameters)
    x, random = images(6000), np.random.default_rng(0)
    told = drawn = None
    for number in range(args.steps):
        z = ops.randn(args.batch, draw.noise)
        told, gradients = tell_step(ms.Tensor(x[random.integers(0, len(x), args.batch)]), z)
        tell_optimizer(gradients)
        drawn, gradients = draw_step(z)
        draw_optimizer(gradients)
        if number % 100 == 0 or number == args.steps - 1:
            print(f"step {number}: discriminator {float(told):.3f}, generator {float(drawn):.3f}")
    draw.set_train(False)
    print(picture(draw(ops.randn(1, draw.noise))[0].asnumpy()))
    return float(told), float(drawn)


if __name__ == "__main__":
    main()
