"""A small residual network (He et al., 2015) on handwritten digits, trained with Model.

    python examples/resnet.py --mode graph --epochs 3 --export resnet.mindir

The digits come with the package. With ``--export`` the trained network is written as a file, read back and
compared.
"""

import argparse

import numpy as np

import mycelia as ms
from mycelia import nn, ops
from mycelia.dataset import MnistDataset, vision
from mycelia.demo import digits
from mycelia.train import Accuracy, LossMonitor, Model


class Block(nn.Cell):
    """Two 3 x 3 convolutions and a way past them."""

    def __init__(self, channels, out_channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out_channels, 3, stride)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.shortcut = None
        if stride != 1 or channels != out_channels:
            self.shortcut = nn.SequentialCell(
                nn.Conv2d(channels, out_channels, 1, stride), nn.BatchNorm2d(out_channels)
            )

    def construct(self, x):
        y = ops.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return ops.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Cell):
    """(N, 1, 28, 28) images to (N, 10) scores."""

    def __init__(self, width=8, blocks=(1, 1, 1), classes=10):
        super().__init__()
        self.stem = nn.SequentialCell(nn.Conv2d(1, width, 3), nn.BatchNorm2d(width), nn.ReLU())
        stages, channels = [], width
        for stage, count in enumerate(blocks):
            for i in range(count):
                out_channels = width * 2**stage
                stages.append(Block(channels, out_channels, 2 if stage and not i else 1))
                channels = out_channels
        self.stages = nn.SequentialCell(stages)
        self.head = nn.Dense(channels, classes)

    def construct(self, x):
        x = self.stages(self.stem(x))
        return self.head(x.mean((2, 3)))


def images(usage, rows, batch):
    """Batches of ``rows`` digits: (N, 1, 28, 28) float32 and (N,) int32."""
    data = MnistDataset(str(digits.folder()), usage=usage, shuffle=usage == "train", num_samples=rows)
    data = data.map([vision.Rescale(1 / 255, -0.13), vision.HWC2CHW()], input_columns="image")
    data = data.map(lambda label: label.astype(np.int32), input_columns="label")
    return data.batch(batch, drop_remainder=True)


def build():
    """An untrained network and inputs for it."""
    return ResNet(), (ms.Tensor(np.random.default_rng(0).random((4, 1, 28, 28), np.float32)),)


def main(argv=None):
    """Train; gives the accuracy on test digits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=("pynative", "graph"), default="graph")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000, help="training digits, at most 6000")
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--export", help="a file to write the trained network to")
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(1)

    net = ResNet()
    train, test = images("train", args.rows, args.batch), images("test", min(args.rows, 1000), args.batch)
    steps = args.epochs * train.get_dataset_size()
    optimizer = nn.Momentum(net.trainable_params(), nn.CosineDecayLR(1e-3, 0.1, steps), 0.9, weight_decay=1e-4)
    model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy": Accuracy()})
    model.train(args.epochs, train, callbacks=LossMonitor(train.get_dataset_size()))
    accuracy = model.eval(test)["accuracy"]
    print(f"accuracy on {min(args.rows, 1000)} test digits: {accuracy:.2%}")
    if args.export:
        _, inputs = build()
        net.set_train(False)
        ms.export(net, *inputs, file_name=args.export, file_format="MINDIR")
        again = nn.GraphCell(ms.load(args.export))
        print(f"exported to {args.export}; scores differ by {float((again(*inputs) - net(*inputs)).abs().max()):.1e}")
    return accuracy


if __name__ == "__main__":
    main()
