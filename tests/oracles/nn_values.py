"""Outputs of the layers and losses of the real MindSpore for fixed inputs and parameters, recorded for the tests.

    python nn_values.py        # with MindSpore 2.10, an environment of its own

The table is ``nn_cases.txt``, one case a line: ``layer | input; input | flags``. ``{r}`` stands for each of the
three reductions; flags are ``train``, ``both`` (training and not) and ``random`` (draws numbers, not recorded).
``CASES`` is also the table of ``tests/nn/test_layers_both_modes.py``. ``nn_values.json`` holds, for each case
that MindSpore can compute on a CPU, its outputs and, in training, what its untrained parameters hold after
the call; the others are listed under ``"unsupported"``.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass(frozen=True)
class Case:
    """A layer, what it is called with, and how.

    Inputs are written ``"f 2 3"`` (floats of shape (2, 3)), ``"p 2 3"`` (floats between 0 and 1), ``"i5 2 3"``
    (ints below 5), ``"b 2 3"`` (bools), ``"one4 2"`` (one-hot floats of 4 classes), ``"s 2"`` (1 and -1 as floats),
    ``"= 2.5"`` (a number as a tensor), ``"int [2, 4]"`` and ``"float [2, 4]"`` (these numbers), or ``"-"`` (None).
    """

    layer: str
    inputs: tuple[str, ...]
    train: bool = False
    random: bool = False

    @property
    def name(self):
        return f"{self.layer}({', '.join(self.inputs)}){' train' if self.train else ''}"


def array(text, index):
    """The NumPy array an input stands for; None for ``"-"``."""
    kind, _, rest = text.partition(" ")
    if kind == "-":
        return None
    if kind == "=":
        return np.float32(rest)
    if kind in ("int", "float"):
        return np.array(json.loads(rest), np.int32 if kind == "int" else np.float32)
    shape = tuple(int(n) for n in rest.split())
    count = np.arange(int(np.prod(shape)))
    wave = np.cos(count * 0.51 + index * 0.7) * 1.5
    if kind == "f":
        return wave.reshape(shape).astype(np.float32)
    if kind == "p":
        return (0.5 + 0.3 * wave).reshape(shape).astype(np.float32)
    if kind == "b":
        return (wave > 0.9).reshape(shape)
    if kind == "s":
        return np.where(wave > 0, 1, -1).reshape(shape).astype(np.float32)
    numbers = (count * 7 + 3 + index) % int(kind.lstrip("ione"))
    if kind.startswith("one"):
        return np.eye(int(kind[3:]), dtype=np.float32)[numbers].reshape(*shape, -1)
    return numbers.reshape(shape).astype(np.int32)


def values_of(path, index, shape):
    """What a parameter is set to."""
    wave = np.sin(np.arange(int(np.prod(shape))) * 0.37 + index).reshape(shape).astype(np.float32) * np.float32(0.5)
    return np.abs(wave) + np.float32(0.5) if "variance" in path else wave


def cases():
    """The rows of ``nn_cases.txt``."""
    with open(os.path.join(HERE, "nn_cases.txt"), encoding="utf-8") as file:
        rows = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    found = []
    for row in rows:
        layer, inputs, *rest = (part.strip() for part in row.split("|"))
        flags = rest[0].split() if rest else []
        for reduction in ("mean", "sum", "none") if "{r}" in layer else ("",):
            for train in (False, True) if "both" in flags else ("train" in flags,):
                text = layer.replace("{r}", reduction)
                names = tuple(part.strip() for part in inputs.split(";") if part.strip())
                found.append(Case(text, names, train, "random" in flags))
    return tuple(found)


CASES = cases()


def flat(result):
    """The tensors of a result, nested tuples flattened."""
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in flat(part)]
    return [result]


def prepare(cell, train, tensor):
    """Set all parameters to fixed values."""
    for i, (path, p) in enumerate(cell.parameters_and_names()):
        p.set_data(tensor(values_of(path, i, p.shape)))
    cell.set_train(train)
    return cell


def main():
    from collections import OrderedDict

    import mindspore
    from mindspore import Tensor, nn

    scope = {**vars(nn), "nn": nn, "Tensor": Tensor, "OrderedDict": OrderedDict}
    rows, unsupported = {}, []
    for case in CASES:
        if case.random:
            continue
        try:
            cell = prepare(eval(case.layer, dict(scope)), case.train, Tensor)
            inputs = [None if a is None else Tensor(a) for a in (array(t, i) for i, t in enumerate(case.inputs))]
            outputs = [t.asnumpy() for t in flat(cell(*inputs))]
        except (RuntimeError, TypeError, ValueError) as error:
            unsupported.append(case.name)
            print(f"{case.name}: {str(error).strip()[:160]!r}")
            continue
        kept = [p.asnumpy() for p in cell.untrainable_params()] if case.train else []
        rows[case.name] = [[list(a.shape), [float(f"{v:.7g}") for v in a.ravel().tolist()]] for a in outputs + kept]
    file = os.path.splitext(os.path.abspath(__file__))[0] + ".json"
    with open(file, "w", encoding="utf-8") as out:
        json.dump(
            {"version": mindspore.__version__, "unsupported": unsupported, "cases": rows}, out, separators=(",", ":")
        )
        out.write("\n")


if __name__ == "__main__":
    main()
