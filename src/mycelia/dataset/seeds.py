"""Random decisions that depend on what is decided, not on who decides it.

Every sequence of decisions has a key: a hash of the seed, the epoch, the place of the node in the
pipeline and how often the node has been started in this epoch. Index decisions (shuffles, samplers) come
from NumPy's Philox generator under that key (counter-based: Salmon et al., "Parallel Random Numbers: As
Easy as 1, 2, 3", 2011). A random transform draws from a generator keyed by the sequence and the number of
the sample, so that the result is the same whichever thread or process runs it, and in any order.
"""

from __future__ import annotations

import hashlib
import random
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_SAMPLE_BITS = 64


class Stream:
    """The random decisions of one node in one pass.

    Args:
        key: 128-bit key of the sequence.
    """

    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        self.key = key

    @classmethod
    def derive(cls, seed: int, *place: int) -> Stream:
        """The stream of ``place`` (any ints) under ``seed``."""
        data = struct.pack(f"<{len(place) + 1}q", seed, *place)
        return cls(int.from_bytes(hashlib.blake2b(data, digest_size=16).digest(), "little"))

    def generator(self) -> np.random.Generator:
        """A NumPy generator at the start of the sequence."""
        return np.random.Generator(np.random.Philox(key=self.key))


class _Current(threading.local):
    key: int | None = None
    sample: int = 0
    generator: random.Random | None = None


_current = _Current()


@contextmanager
def of_sample(stream: Stream, sample: int) -> Iterator[None]:
    """Within, :func:`sample_random` is the generator of sample number ``sample`` of ``stream``."""
    before = _current.key, _current.sample, _current.generator
    _current.key, _current.sample, _current.generator = stream.key, sample, None
    try:
        yield
    finally:
        _current.key, _current.sample, _current.generator = before


def sample_random() -> random.Random:
    """The generator that a random transform draws from now.

    In a pipeline that is the generator of the current sample; elsewhere one generator of the process
    that starts anew when the seed is set.
    """
    current = _current
    if current.key is None:
        from mycelia.dataset import config

        return config.eager_random()
    if current.generator is None:
        current.generator = random.Random((current.key << _SAMPLE_BITS) | current.sample)
    return current.generator


def sample_generator() -> np.random.Generator:
    """A NumPy generator for a transform that draws many numbers, seeded from :func:`sample_random`."""
    return np.random.Generator(np.random.Philox(key=sample_random().getrandbits(128)))


def reseed_globals() -> None:
    """Seed Python's and NumPy's global generators for the current sample; for worker processes only."""
    number = sample_random().getrandbits(32)
    random.seed(number)
    np.random.seed(number)
