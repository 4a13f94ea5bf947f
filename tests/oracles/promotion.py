"""Record which dtype MindSpore's ``+`` gives for each pair of dtypes, and for Python scalars.

    python tests/oracles/promotion.py      # in an environment with mindspore and numpy<2

Writes ``promotion.json`` beside this file: ``pairs`` maps ``"a b"`` to a dtype name or null where MindSpore
refuses, ``scalars`` maps ``"dtype kind"``. Operators run synchronously, because otherwise a refused pair
leaves its error to the next one.
"""

import json
import pathlib

NAMES = [
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
    "float32", "float64", "complex64", "complex128",
]  # fmt: skip
SCALARS = {"bool": True, "int": 2, "float": 2.5}


def dtype_of(ms, a, b):
    left = ms.Tensor([1], getattr(ms, a))
    right = SCALARS[b] if b in SCALARS else ms.Tensor([1], getattr(ms, b))
    try:
        return str((left + right).dtype).lower()
    except (TypeError, RuntimeError, ValueError):
        return None


def main():
    import mindspore as ms

    ms.set_context(pynative_synchronize=True)
    out = {
        "pairs": {f"{a} {b}": dtype_of(ms, a, b) for i, a in enumerate(NAMES) for b in NAMES[i:]},
        "scalars": {f"{a} {s}": dtype_of(ms, a, s) for a in NAMES for s in SCALARS},
    }
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(out, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
