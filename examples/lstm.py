"""An LSTM (Hochreiter and Schmidhuber, 1997) that reads digits row by row and stops once it is sure.

    python examples/lstm.py --mode graph --steps 250

Trained on all rows, with a loop of fixed length; used with a ``while`` whose length the data decide.
"""

import argparse

import numpy as np

import mycelia as ms
from mycelia import nn, ops
from mycelia.dataset import MnistDataset
from mycelia.demo import digits


class RowReader(nn.Cell):
    """(N, 28, 28) images to (N, 10) scores and the count of rows that were read; scores after each row in training.

    Args:
        hidden: size of the state.
        sure: in inference, reading stops when every image of the batch has a class at least as likely as this.
    """

    def __init__(self, hidden=48, sure=0.95):
        super().__init__()
        self.hidden, self.sure = hidden, sure
        self.cell = nn.LSTMCell(28, hidden)
        self.head = nn.Dense(hidden, 10)

    def read_all(self, x):
        """The scores after each row, (N, 28, 10)."""
        h = c = ops.zeros((x.shape[0], self.hidden))
        states = []
        for row in range(28):
            h, c = self.cell(x[:, row], (h, c))
            states.append(h)
        return self.head(ops.stack(states, 1)), ops.full((), 28, dtype=ms.int64)

    def read_until_sure(self, x):
        h = c = ops.zeros((x.shape[0], self.hidden))
        scores, row, least = ops.zeros((x.shape[0], 10)), ops.full((), 0, dtype=ms.int64), ops.zeros(())
        while row < 28 and least < self.sure:
            h, c = self.cell(ops.gather(x, row, 1), (h, c))
            scores = self.head(h)
            least = ops.amax(ops.softmax(scores, -1), -1).min()
            row += 1
        return scores, row

    def construct(self, x):
        return self.read_all(x) if self.training else self.read_until_sure(x)


def images(usage, rows):
    """``rows`` digits: (N, 28, 28) float32 from 0 to 1, and (N,) int32."""
    data = MnistDataset(str(digits.folder()), usage=usage, shuffle=False, num_samples=rows).batch(rows)
    batch = next(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    return batch["image"][..., 0].astype(np.float32) / 255, batch["label"].astype(np.int32)


def build():
    """An untrained network and inputs for it."""
    return RowReader(hidden=16, sure=0.2), (ms.Tensor(images("test", 2)[0]),)


def main(argv=None):
    """Train; gives the accuracy of early stopping on test digits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=("pynative", "graph"), default="graph")
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--tests", type=int, default=200)
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(1)

    net = RowReader()
    optimizer = nn.Adam(net.trainable_params(), 5e-3)
    loss_of = nn.CrossEntropyLoss()

    def loss_after_rows(x, y):  # what the later half of the rows says
        scores = net(x)[0][:, 14:]
        return loss_of(scores.reshape(-1, 10), ops.repeat_interleave(y, 14))

    step = ms.value_and_grad(loss_after_rows, None, optimizer.parameters)
    x, y = images("train", 3000)
    random = np.random.default_rng(0)
    net.set_train()
    for number in range(args.steps):
        rows = random.integers(0, len(x), args.batch)
        loss, gradients = step(ms.Tensor(x[rows]), ms.Tensor(y[rows]))
        optimizer(gradients)
        if number % 25 == 0 or number == args.steps - 1:
            print(f"step {number}: loss {float(loss):.3f}")

    net.set_train(False)
    x, y = images("test", args.tests)
    right, read = 0, []
    for image, label in zip(x, y, strict=True):
        scores, rows = net(ms.Tensor(image[None]))
        right += int(scores.argmax()) == int(label)
        read.append(int(rows))
    print(f"accuracy {right / len(y):.2%}, {np.mean(read):.1f} of 28 rows read on average (from {min(read)})")
    return right / len(y)


if __name__ == "__main__":
    main()
