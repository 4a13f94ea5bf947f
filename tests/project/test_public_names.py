"""The names that programs use most are there, and the script that counts names finds what is missing."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import mycelia

HERE = Path(__file__).parent
SCRIPT = HERE.parents[1] / "scripts" / "coverage.py"


def names():
    """Module -> names of ``public_names.txt``: a line with a module, then indented lines with its names."""
    found: dict[str, list[str]] = {}
    module = ""
    for line in (HERE / "public_names.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            found[module] += line.split()
        elif line and not line.startswith("#"):
            module = line
            found[module] = []
    return found


NAMES = names()


def test_the_list_is_not_empty():
    assert sum(map(len, NAMES.values())) > 300


@pytest.mark.parametrize("module", sorted(NAMES))
def test_names_resolve(module):
    owner = importlib.import_module(module)
    missing = [
        name
        for name in NAMES[module]
        if not hasattr(owner, name) and importlib.util.find_spec(f"{module}.{name}") is None
    ]
    assert missing == []


@pytest.fixture
def counted(tmp_path):
    """What the script prints for two small tables."""
    public, usage = tmp_path / "public.tsv", tmp_path / "usage.tsv"
    public.write_text("# names\nmodule\tsymbol\nmindspore.ops\tReLU\nmindspore.ops\tNothing\nmindspore.nowhere\tX\n")
    usage.write_text("weight\tmodule\tsymbol\tfiles\n3\tmindspore.ops\tReLU\t9\n1\tmindspore.ops\tNothing\t2\n")

    def run(*more):
        return subprocess.run(
            [sys.executable, str(SCRIPT), str(public), str(usage), *more],
            capture_output=True, text=True, check=True, timeout=120,
            env={"PYTHONPATH": str(Path(mycelia.__file__).parents[1]), "PATH": ""},
        ).stdout  # fmt: skip

    return run


def test_the_script_counts_and_weighs(counted):
    told = counted()
    assert "weighted coverage: 3.0000 of 4.0000 = 75.00%" in told
    lines = [line.split() for line in told.splitlines() if line.startswith("mindspore")]
    assert lines == [["mindspore.nowhere", "0", "1", "0.0%"], ["mindspore.ops", "1", "2", "50.0%"]]
    assert told.splitlines()[-1].split() == ["1.0000", "mindspore.ops.Nothing"]


def test_the_script_lists_what_one_module_lacks(counted):
    assert counted("--module", "mindspore.ops").split() == ["Nothing"]
