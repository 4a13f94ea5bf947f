"""How much of a list of public names exists here, by module and weighted by how often names are used.

    python scripts/coverage.py public_symbols.tsv usage_rank.tsv [--missing 40]

The first file has lines ``module<TAB>symbol``, the second ``weight<TAB>module<TAB>symbol<TAB>...``; lines that begin
with ``#`` and the headings are skipped. A name exists if it is an attribute of the module of the same path in this
package, or a module below it. The weighted coverage is the sum of the weights of the names that exist over the sum
of all weights.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from collections import defaultdict
from functools import cache
from pathlib import Path
from types import ModuleType

PACKAGE = "mycelia"
ALIAS = "mindspore"


@cache
def module_of(name: str) -> ModuleType | None:
    """The module of this package that stands for ``mindspore.x.y``; None if there is none."""
    if name != ALIAS and not name.startswith(ALIAS + "."):
        return None
    try:
        return importlib.import_module(PACKAGE + name[len(ALIAS) :])
    except ModuleNotFoundError:
        return None


@cache
def exists(module: str, symbol: str) -> bool:
    """Whether ``module.symbol`` resolves."""
    owner = module_of(module)
    if owner is None:
        return False
    return hasattr(owner, symbol) or module_of(f"{module}.{symbol}") is not None


def rows(path: Path, columns: int) -> list[list[str]]:
    """The first columns of a table, without comments and headings."""
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return [line[:columns] for line in lines[1:] if len(line) >= columns]


def by_module(public: list[list[str]]) -> dict[str, tuple[int, int, list[str]]]:
    """For each module: how many names exist, how many there are, and which are missing."""
    names: dict[str, list[str]] = defaultdict(list)
    for module, symbol in public:
        names[module].append(symbol)
    found = {}
    for module, symbols in names.items():
        missing = [s for s in symbols if not exists(module, s)]
        found[module] = (len(symbols) - len(missing), len(symbols), missing)
    return found


def weighted(used: list[list[str]]) -> tuple[float, float, list[tuple[float, str]]]:
    """The weight of the names that exist, that of all names, and the missing names, heaviest first."""
    present = total = 0.0
    missing = []
    for weight, module, symbol in used:
        total += float(weight)
        if exists(module, symbol):
            present += float(weight)
        else:
            missing.append((float(weight), f"{module}.{symbol}"))
    return present, total, sorted(missing, reverse=True)


def main(arguments: list[str]) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("public", type=Path, help="module and symbol of each public name")
    parser.add_argument("usage", type=Path, help="weight, module and symbol of each name that is used")
    parser.add_argument("--missing", type=int, default=40, metavar="N", help="how many missing names to print")
    parser.add_argument("--module", help="print every missing name of one module")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")

    table = by_module(rows(given.public, 2))
    if given.module:
        print(*table[given.module][2], sep="\n")
        return 0
    present = sum(row[0] for row in table.values())
    total = sum(row[1] for row in table.values())
    width = max(map(len, table))
    print(f"{'module':{width}}  names    of")
    for module, (have, of, _) in sorted(table.items()):
        print(f"{module:{width}}  {have:5d} {of:5d}  {have / of:6.1%}")
    print(f"{'all':{width}}  {present:5d} {total:5d}  {present / total:6.1%}")

    weight, all_weight, missing = weighted(rows(given.usage, 3))
    print(f"\nweighted coverage: {weight:.4f} of {all_weight:.4f} = {weight / all_weight:.2%}")
    print(f"\nheaviest of {len(missing)} missing names:")
    for value, name in missing[: given.missing]:
        print(f"{value:7.4f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
