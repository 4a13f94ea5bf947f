"""The names of ``mindspore.nn.layer.embedding``."""

from mycelia.nn.layers import Embedding, EmbeddingExt, EmbeddingLookup, MultiFieldEmbeddingLookup

__all__ = [
    "Embedding", "EmbeddingExt", "EmbeddingLookup", "MultiFieldEmbeddingLookup",
]  # fmt: skip
