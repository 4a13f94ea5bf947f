"""A first network, in the words of MindSpore's own introduction: run it with ``mycelia run``.

    mycelia run examples/first_network.py FOLDER [graph]

FOLDER holds ``MNIST_Data/train`` with the published MNIST files (plain or .gz).
"""

import os
import sys

import mindspore as ms
from mindspore import nn
from mindspore.dataset import MnistDataset, vision
from mindspore.train import LossMonitor, Model

if len(sys.argv) > 1:
    os.chdir(sys.argv[1])
ms.set_context(mode=ms.GRAPH_MODE if "graph" in sys.argv[2:] else ms.PYNATIVE_MODE)
ms.set_seed(1)

train_dataset = MnistDataset("MNIST_Data/train")
train_dataset = train_dataset.map(vision.Rescale(1.0 / 255, 0))
train_dataset = train_dataset.batch(32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.dense1 = nn.Dense(784, 512)
        self.relu = nn.ReLU()
        self.dense2 = nn.Dense(512, 10)

    def construct(self, x):
        x = self.flatten(x)
        x = self.dense1(x)
        x = self.relu(x)
        return self.dense2(x)


net = Net()
loss_fn = nn.SoftmaxCrossEntropyWithLogits()
optimizer = nn.Adam(net.trainable_params())

model = Model(net, loss_fn, optimizer)
model.train(epochs=5, train_dataset=train_dataset, callbacks=LossMonitor(per_print_times=100))
