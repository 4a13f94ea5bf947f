"""Signatures of the layers and losses of the real MindSpore, recorded for the tests.

    python nn_signatures.py        # with MindSpore 2.10, an environment of its own

``nn_signatures.json`` holds, for each public class and function of ``mindspore.nn.layer`` and
``mindspore.nn.loss``, the parameters of its constructor (or of itself) and of ``construct``: rows
``[name, kind, default]`` with the default's ``repr``, None where there is none.
"""

from __future__ import annotations

import inspect
import json
import os


def parameters(function):
    """The parameters of a function but ``self``."""
    rows = []
    for name, p in inspect.signature(function).parameters.items():
        if name != "self":
            default = None if p.default is p.empty else repr(p.default).replace("mindspore.", "")
            rows.append([name, p.kind.name, default])
    return rows


def describe(thing):
    """Both signatures of a class, or the one of a function."""
    if not inspect.isclass(thing):
        return {"init": parameters(thing), "construct": []}
    return {"init": parameters(thing.__init__), "construct": parameters(thing.construct)}


def main():
    import mindspore
    from mindspore import nn

    found = {}
    for name in sorted(vars(nn)):
        thing = getattr(nn, name)
        module = getattr(thing, "__module__", "") or ""
        if module.startswith(
            ("mindspore.nn.layer", "mindspore.nn.loss", "mindspore.nn.sparse")
        ) and not name.startswith("_"):
            found[name] = describe(thing)
    file = os.path.splitext(os.path.abspath(__file__))[0] + ".json"
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"version": mindspore.__version__, "layers": found}, out, indent=0)
        out.write("\n")


if __name__ == "__main__":
    main()
