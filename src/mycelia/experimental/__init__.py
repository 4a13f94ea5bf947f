"""The names of ``mindspore.experimental``."""

from mycelia.experimental import optim as optim
