"""A key that a dict of tensors does not have.

Dicts are Python's: the key is looked up while the graph is being built.
"""

import mycelia as ms


@ms.jit
def total(batch):
    return batch["image"].sum() + batch["labels"].sum()


total({"image": ms.Tensor([1.0, 2.0]), "label": ms.Tensor([0, 1])})
