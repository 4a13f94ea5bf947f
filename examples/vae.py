"""A variational autoencoder (Kingma and Welling, 2013) of handwritten digits.

Run it with ``python examples/vae.py --mode graph --steps 800``.
"""

import argparse

import numpy as np

import mycelia as ms
from mycelia import nn, ops
from mycelia.dataset import MnistDataset
from mycelia.demo import digits


class VAE(nn.Cell):
    """(N, 784) pixels from 0 to 1 to their reconstruction in logits, and the mean and log variance of the code."""

    def __init__(self, code=8, hidden=128):
        super().__init__()
        self.code = code
        self.encoder = nn.SequentialCell(nn.Dense(784, hidden), nn.ReLU())
        self.mean = nn.Dense(hidden, code)
        self.log_variance = nn.Dense(hidden, code)
        self.decoder = nn.SequentialCell(nn.Dense(code, hidden), nn.ReLU(), nn.Dense(hidden, 784))

    def construct(self, x):
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        code = mean + ops.exp(log_variance / 2) * ops.randn_like(mean) if self.training else mean
        return {"logits": self.decoder(code), "code": (mean, log_variance)}


class Loss(nn.Cell):
    """The negative evidence lower bound of a batch, in nats per image."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, x):
        out = self.net(x)
        mean, log_variance = out["code"]
        misfit = ops.binary_cross_entropy_with_logits(
            out["logits"], x, ops.ones_like(x), ops.ones_like(x), reduction="sum"
        )
        divergence = -0.5 * (1 + log_variance - mean**2 - ops.exp(log_variance)).sum()
        return (misfit + divergence) / x.shape[0]


def images(rows):
    """``rows`` digits as (N, 784) float32 from 0 to 1."""
    data = MnistDataset(str(digits.folder()), usage="train", shuffle=False, num_samples=rows).batch(rows)
    batch = next(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    return batch["image"].reshape(rows, 784).astype(np.float32) / 255


def picture(pixels):
    """A 28 x 28 image as text, two rows a line."""
    rows = np.asarray(pixels).reshape(14, 2, 28).mean(1)
    return "\n".join(["".join([" .:*#"[min(4, int(v * 5))] for v in row]) for row in rows])


def build():
    """An untrained network and inputs for it."""
    return VAE(), (ms.Tensor(images(4)),)


def main(argv=None):
    """Train; gives the last loss."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=("pynative", "graph"), default="graph")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(1)

    net = VAE()
    train = nn.TrainOneStepCell(Loss(net), nn.Adam(net.trainable_params(), 2e-3)).set_train()
    x, random, loss = images(6000), np.random.default_rng(0), None
    for number in range(args.steps):
        loss = train(ms.Tensor(x[random.integers(0, len(x), args.batch)]))
        if number % 100 == 0 or number == args.steps - 1:
            print(f"step {number}: loss {float(loss):.1f}")
    net.set_train(False)
    made = ops.sigmoid(net(ms.Tensor(x[:1]))["logits"])
    print(picture(x[0]), "\n--- and what its code of", net.code, "numbers remembers:\n" + picture(made.asnumpy()))
    return float(loss)


if __name__ == "__main__":
    main()
