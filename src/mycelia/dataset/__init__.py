"""Data sets: sources, samplers, pipelines of transforms, iterators.

>>> import mycelia.dataset as ds
>>> data = ds.NumpySlicesDataset({"x": [1.0, 2.0, 3.0]}, shuffle=False).batch(2)
>>> [x.shape for x, in data]
[(2,), (1,)]
"""

from mycelia.dataset import config as config, samplers as samplers, transforms as transforms, vision as vision
from mycelia.dataset.batching import (
    BatchDataset as BatchDataset,
    BatchInfo as BatchInfo,
    BucketBatchByLengthDataset as BucketBatchByLengthDataset,
    PaddedBatchDataset as PaddedBatchDataset,
)
from mycelia.dataset.cifar import Cifar10Dataset as Cifar10Dataset, Cifar100Dataset as Cifar100Dataset
from mycelia.dataset.config import ErrorSamplesMode as ErrorSamplesMode
from mycelia.dataset.failures import TransformError as TransformError
from mycelia.dataset.image_folder import ImageFolderDataset as ImageFolderDataset
from mycelia.dataset.iterators import DictIterator as DictIterator, TupleIterator as TupleIterator
from mycelia.dataset.mapping import MapDataset as MapDataset
from mycelia.dataset.mnist import (
    FashionMnistDataset as FashionMnistDataset,
    KMnistDataset as KMnistDataset,
    MnistDataset as MnistDataset,
)
from mycelia.dataset.nodes import (
    ConcatDataset as ConcatDataset,
    FilterDataset as FilterDataset,
    ProjectDataset as ProjectDataset,
    RenameDataset as RenameDataset,
    RepeatDataset as RepeatDataset,
    ShuffleDataset as ShuffleDataset,
    SkipDataset as SkipDataset,
    TakeDataset as TakeDataset,
    ZipDataset as ZipDataset,
    zip as zip,
)
from mycelia.dataset.pipeline import Dataset as Dataset
from mycelia.dataset.samplers import (
    BuiltinSampler as BuiltinSampler,
    DistributedSampler as DistributedSampler,
    IterSampler as IterSampler,
    PKSampler as PKSampler,
    RandomSampler as RandomSampler,
    Sampler as Sampler,
    SequentialSampler as SequentialSampler,
    Shuffle as Shuffle,
    SubsetRandomSampler as SubsetRandomSampler,
    SubsetSampler as SubsetSampler,
    WeightedRandomSampler as WeightedRandomSampler,
)
from mycelia.dataset.sources import (
    GeneratorDataset as GeneratorDataset,
    MappableDataset as MappableDataset,
    NumpySlicesDataset as NumpySlicesDataset,
)
