"""The transforms under the module name of MindSpore 1.x for those written in Python."""

from mycelia.dataset.transforms import Compose, OneHot, RandomApply, RandomChoice, RandomOrder

OneHotOp = OneHot

__all__ = ["Compose", "OneHotOp", "RandomApply", "RandomChoice", "RandomOrder"]
