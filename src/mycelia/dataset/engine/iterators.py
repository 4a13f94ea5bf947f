"""The iterators under the name of MindSpore's inner module."""

from mycelia.dataset import DictIterator, TupleIterator

__all__ = ["DictIterator", "TupleIterator"]
