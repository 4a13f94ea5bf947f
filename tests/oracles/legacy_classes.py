"""Record MindSpore's class forms: constructor signatures, and what the calls of ``legacy_cases.py`` give.

    python tests/oracles/legacy_classes.py      # in an environment with mindspore and numpy<2

Writes ``legacy_classes.json`` beside this file: ``signatures`` maps a class to its constructor's parameters as
``[name, default]`` (``"required"``, or the default's ``repr``), ``mint`` a function of ``mindspore.mint`` to the names
of its arguments, ``cases`` and ``steps`` hold for each case the outputs and the Parameters afterwards as
``[dtype, shape, values]``, or the first line of an error where this build of MindSpore refuses (kernels that the CPU
does not have).
"""

from __future__ import annotations

import inspect
import json
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from legacy_cases import CASES, STEPS, build, constructor


def plain(value, ms):
    """A result as JSON: tensors with dtype, shape and values."""
    if isinstance(value, ms.Tensor):
        array = value.asnumpy()
        if array.dtype.kind == "c":
            flat = [[float(v.real), float(v.imag)] for v in array.reshape(-1)]
        elif array.dtype.kind == "f":
            flat = [float(f"{v:.7g}") for v in array.reshape(-1)]
        else:
            flat = array.reshape(-1).tolist()
        return [str(value.dtype), list(array.shape), flat]
    if isinstance(value, (tuple, list)):
        return {"sequence": [plain(v, ms) for v in value]}
    return value if isinstance(value, (int, float, bool, str, type(None))) else {"repr": str(value)}


def class_named(name, ms):
    """A class form, wherever MindSpore exports it."""
    from mindspore.ops import auto_generate

    return next(getattr(m, name) for m in (ms.ops, ms.ops.operations, auto_generate) if hasattr(m, name))


def run(case, ms, np):
    """Outputs and Parameters of one case, or the error."""
    name, arguments, inputs = case
    held = []

    def parameter(value, dtype):
        held.append(ms.Parameter(ms.Tensor(np.array(value, dtype)), name=f"p{len(held)}"))
        return held[-1]

    def dtype(text):
        return getattr(ms, text)

    try:
        args, kwargs = constructor(arguments, dtype)
        given = [build(a, lambda v, d: ms.Tensor(np.array(v, d)), parameter, dtype) for a in inputs]
        out = plain(class_named(name, ms)(*args, **kwargs)(*given), ms)
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip().strip("-")]
        return {"error": " ".join(lines)[:120]}
    return {"out": out, "parameters": [plain(p.value(), ms) for p in held]}


def signature(cls):
    """The constructor's parameters."""
    return [
        [p.name, "required" if p.default is p.empty else repr(p.default)]
        for p in list(inspect.signature(cls.__init__).parameters.values())[1:]
    ]


def changed(case, record):
    """Without outputs that are not computed: most steps of optimizers return memory as it was."""
    return record if case[0] == "AdamNoUpdateParam" else {k: v for k, v in record.items() if k != "out"}


def mint_arguments(ms):
    """Names of the arguments of every function of ``mint`` that says them."""
    found = {}
    for path in ("mint", "mint.nn.functional", "mint.linalg", "mint.special"):
        module = ms
        for part in path.split("."):
            module = getattr(module, part)
        for name in sorted(dir(module)):
            fn = getattr(module, name)
            if name[0] == "_" or not callable(fn) or inspect.isclass(fn) or not getattr(fn, "__module__", ""):
                continue
            try:
                parameters = inspect.signature(fn).parameters.values()
            except (TypeError, ValueError):
                continue
            if all(p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
                found[f"{path}.{name}"] = [p.name for p in parameters]
    return found


def main():
    """Record everything."""
    import mindspore as ms
    import numpy as np
    from mindspore.ops import auto_generate

    warnings.simplefilter("ignore")
    ms.set_context(pynative_synchronize=True)
    names = {n for m in (ms.ops, ms.ops.operations, auto_generate) for n in dir(m) if n[0].isupper()}
    found = {}
    for name in sorted(names):
        cls = class_named(name, ms)
        if inspect.isclass(cls) and issubclass(cls, ms.ops.Primitive) and not name.endswith("Grad"):
            found[name] = signature(cls)
    out = {
        "signatures": found,
        "mint": mint_arguments(ms),
        "cases": [run(case, ms, np) for case in CASES],
        "steps": [changed(case, run(case, ms, np)) for case in STEPS],
    }
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(out, separators=(",", ":"), sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
