"""The inner module of MindSpore's that holds its datasets, iterators and samplers."""

from mycelia.dataset import samplers as samplers
from mycelia.dataset.engine import datasets as datasets, iterators as iterators
