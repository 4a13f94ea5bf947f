"""What the transforms of functions of the real MindSpore return: nesting, shapes and numbers.

    python transforms.py        # with MindSpore 2.10, an environment of its own

The calls are in ``transform_cases.py``; ``transforms.json`` holds what each returned.
"""

from __future__ import annotations

import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    import mindspore
    from transform_cases import cases, described

    found = {}
    for name, call in cases(mindspore).items():
        found[name] = described(call())
    with open(os.path.join(HERE, "transforms.json"), "w", encoding="utf-8") as file:
        rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
        file.write("{\n" + rows + "\n}\n")


if __name__ == "__main__":
    main()
