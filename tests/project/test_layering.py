"""The order of layers holds, and the check that says so can fail."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "mycelia"
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
LAYERS = [name for row in CONFIGURATION["contracts"][0]["layers"] for name in re.findall(r"\w+", row)]
BESIDE = {"alias", "cli", "demo"}


def lint_imports(source, cache):
    """Run the contracts of pyproject.toml over the package in `source`."""
    code = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-logo", "--cache-dir", str(cache), str(ROOT / "pyproject.toml")],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_layers_hold(tmp_path):
    done = lint_imports(ROOT / "src", tmp_path / "cache")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("importer", "imported"),
    [("core", "ir"), ("ops", "native"), ("ops", "nn"), ("nn", "train"), ("lite", "serving"), ("armour", "insight")],
)
def test_an_import_against_the_order_is_found(tmp_path, importer, imported):
    (tmp_path / "mycelia").mkdir()
    (tmp_path / "mycelia" / "__init__.py").touch()
    for name in LAYERS:
        (tmp_path / "mycelia" / name).mkdir()
        (tmp_path / "mycelia" / name / "__init__.py").touch()
    assert lint_imports(tmp_path, tmp_path / "cache").returncode == 0
    (tmp_path / "mycelia" / importer / "__init__.py").write_text(f"import mycelia.{imported}\n")
    done = lint_imports(tmp_path, tmp_path / "cache")
    assert done.returncode == 1
    assert f"mycelia.{importer} -> mycelia.{imported}" in done.stdout


def faces():
    """Public modules that are neither a layer nor one of the few things beside the layers."""
    for top in sorted(PACKAGE.iterdir()):
        name = top.stem
        if name in LAYERS or name in BESIDE or name.startswith("__pycache__"):
            continue
        if top.suffix == ".py":
            yield top
        elif top.is_dir():
            yield from sorted(top.rglob("*.py"))


def test_there_are_faces():
    assert PACKAGE / "__init__.py" in list(faces())


@pytest.mark.parametrize("face", list(faces()), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_faces_only_name_things_on(face):
    """No class and no function of their own, but for a module's `__getattr__` and `__dir__`."""
    defined = [
        node.name
        for node in ast.walk(ast.parse(face.read_text(encoding="utf-8")))
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    assert set(defined) <= {"__getattr__", "__dir__"}
