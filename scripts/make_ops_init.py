"""Write ``src/mycelia/ops/__init__.py``: every operator imported by name.

    python scripts/make_ops_init.py [--check]

Each module of ``mycelia.ops`` registers its operators in ``mycelia.ops.registry.OPERATORS`` when it is imported,
and each module of ``mycelia.ops.legacy`` lists its names in ``__all__``. From these the file is written: an import
per module, an assignment per alias, and ``__all__``. An operator has its name before a legacy one. Modules that have
a ``__getattr__`` are faces: they name on what this file has, and are left out. Run it after adding, renaming or
removing an operator; ``--check`` writes nothing and fails if the file would change.

The modules are imported one by one below packages made for the purpose, so that a file which names an operator that
is no more does not stand in its own way.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent / "src"
OPS = "mycelia.ops"
TARGET = SOURCE / "mycelia" / "ops" / "__init__.py"
WIDTH = 120

HEAD = '''\
"""Operators: the public functions, and on import the Tensor methods made of them.

Written by ``scripts/make_ops_init.py`` from the operators' declarations; run it rather than change this file.
"""

# fmt: off
# isort: off
'''


def modules(package: str) -> list[str]:
    """Dotted names of the modules directly in a package, without faces, all of them imported."""
    folder = SOURCE.joinpath(*package.split("."))
    names = []
    for stem in sorted(m.name for m in pkgutil.iter_modules([str(folder)]) if not m.ispkg):
        if not re.search(r"^def __getattr__\(", (folder / f"{stem}.py").read_text(encoding="utf-8"), re.MULTILINE):
            names.append(f"{package}.{stem}")
            importlib.import_module(names[-1])
    return names


def order(name: str) -> tuple[int, list[tuple[int, int, str]]]:
    """The key by which names are sorted: constants, classes, the rest; numbers by value."""
    kind = 0 if len(name) > 1 and name.isupper() else 1 if name[0].isupper() else 2
    return kind, [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.findall(r"\d+|\D", name)]


def listed(first: str, names: Iterable[str], last: str = "") -> str:
    """``first`` and the names: an import on one line if it fits, else as many lines as needed."""
    line = first + ", ".join(names)
    if not last and len(line) <= WIDTH:
        return line + "\n"
    words = line.removeprefix(first).replace(" as ", "\0as\0") + ","  # not to be parted
    body = textwrap.fill(
        words, WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return f"{first}{'' if last else '('}\n{body}\n{last or ')'}\n".replace("\0", " ")


def contents() -> str:
    """The text of the file for the operators as they are declared."""
    families = modules(OPS)
    stems = {m.name for m in pkgutil.iter_modules([str(TARGET.parent)])}
    operators: dict[str, Any] = {
        name: fn
        for name, fn in importlib.import_module(f"{OPS}.registry").OPERATORS.items()
        if fn.__module__ in families
    }

    imports: dict[str, list[str]] = defaultdict(list)
    aliases: dict[str, str] = {}
    for name, fn in operators.items():
        own, home = fn.__name__, fn.__module__
        if getattr(importlib.import_module(home), own, None) is not fn:
            raise SystemExit(f"{home} declares the operator '{own}' and has something else under that name")
        if name != own:
            aliases[name] = own
        elif name in stems and home != f"{OPS}.{name}":  # importing the module of that name would take it away
            imports[home].append(f"{name} as _{name}")
            aliases[name] = f"_{name}"
        else:
            imports[home].append(name)

    legacy: set[str] = set()
    for module in modules(f"{OPS}.legacy"):
        own_names = set(getattr(importlib.import_module(module), "__all__", ())) - operators.keys() - legacy
        if own_names & stems:
            raise SystemExit(f"{module} has names that modules of {OPS} have: {sorted(own_names & stems)}")
        imports[module].extend(own_names)
        legacy |= own_names

    text = HEAD
    for module in families:  # some only attach methods, or declare what is called by other names
        stem = module.rpartition(".")[2]
        if module not in imports:
            text += f"from {OPS} import {stem} as {f'_{stem}_module  # noqa: F401' if stem in operators else stem}\n"
    for module in sorted(name for name in imports if imports[name]):
        text += listed(f"from {module} import ", sorted(imports[module], key=order))
    text += "\n" + "".join(f"{name} = {aliases[name]}\n" for name in sorted(aliases, key=order))
    return text + "\n" + listed("__all__ = [", [f'"{name}"' for name in sorted({*operators, *legacy}, key=order)], "]")


def alone() -> None:
    """Stand-ins for the two packages, whose modules can then be imported without what their files import."""
    sys.path.insert(0, str(SOURCE))
    for name in ("mycelia", OPS):
        package = ModuleType(name)
        package.__path__ = [str(SOURCE.joinpath(*name.split(".")))]
        sys.modules[name] = package


def main(arguments: list[str]) -> int:
    """Write the file, or say whether it is as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file would change")
    check = parser.parse_args(arguments).check
    if "mycelia" not in sys.modules:
        alone()
    text = contents()
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    if check:
        file, script = TARGET.relative_to(SOURCE.parent), Path(__file__).name
        print(f"{file} is not what its script writes: run python scripts/{script}")
        return 1
    beside = TARGET.with_suffix(".py.new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, TARGET)
    print(f"wrote {TARGET.relative_to(SOURCE.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
