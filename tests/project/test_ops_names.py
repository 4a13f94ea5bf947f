"""The file that names the operators is what its script writes, and a name is the operator, not the module."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from mycelia import autodiff, ops
from mycelia.ops.registry import OPERATORS

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = [m.name for m in pkgutil.iter_modules(ops.__path__)]
SHARED = sorted(set(FAMILIES) & set(OPERATORS))


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_ops_init", ROOT / "scripts" / "make_ops_init.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_is_what_the_script_writes(script):
    assert script.main(["--check"]) == 0, "an operator was added, renamed or removed: run scripts/make_ops_init.py"


@pytest.mark.parametrize("name", ["relu", "absolute", "shape"])
def test_a_difference_is_found(script, monkeypatch, capsys, name):
    monkeypatch.delitem(OPERATORS, name)
    assert script.main(["--check"]) == 1
    assert "run python scripts/make_ops_init.py" in capsys.readouterr().out


def test_every_operator_has_its_name():
    assert [name for name, fn in OPERATORS.items() if getattr(ops, name) is not fn] == []
    assert set(OPERATORS) <= set(ops.__all__)


def test_every_class_form_has_its_name():
    legacy = importlib.import_module("mycelia.ops.legacy")
    assert [n for n in legacy.__all__ if n not in OPERATORS and getattr(ops, n) is not getattr(legacy, n)] == []


def test_all_is_sorted_and_true(script):
    written = [name for name in ops.__all__ if name not in autodiff.__all__]
    assert written == sorted(set(written), key=script.order)
    assert [name for name in ops.__all__ if isinstance(getattr(ops, name), ModuleType)] == []


def test_order_of_names(script):
    given = ["relu6", "conv10d", "conv2d", "ReLU", "LRN", "ACos", "abs_", "abs"]
    assert sorted(given, key=script.order) == ["LRN", "ACos", "ReLU", "abs", "abs_", "conv2d", "conv10d", "relu6"]


def test_modules_that_are_imported_later_take_no_name():
    assert {"shape", "softmax", "scatter"} <= set(SHARED)
    for family in FAMILIES:
        importlib.import_module(f"mycelia.ops.{family}")
    assert [name for name in SHARED if getattr(ops, name) is not OPERATORS[name]] == []


def test_modules_that_are_imported_first_take_no_name():
    code = (
        f"import {', '.join(f'mycelia.ops.{name}' for name in SHARED)}\n"
        "from mycelia import ops\n"
        "from mycelia.ops.registry import OPERATORS\n"
        f"print([name for name in {SHARED} if getattr(ops, name) is not OPERATORS[name]])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_a_file_that_names_what_is_no_more_is_written_anew(tmp_path):
    package, source = tmp_path / "src" / "mycelia", ROOT / "src" / "mycelia"
    (package / "ops").mkdir(parents=True)
    (tmp_path / "scripts").mkdir()
    for file in source.iterdir():
        if file.name != "ops":
            (package / file.name).symlink_to(file)
    for file in (source / "ops").iterdir():
        if file.name != "__init__.py":
            (package / "ops" / file.name).symlink_to(file)
    stale = package / "ops" / "__init__.py"
    stale.write_text("from mycelia.ops.activation import no_such_operator\n")
    script = tmp_path / "scripts" / "make_ops_init.py"
    script.write_bytes((ROOT / "scripts" / script.name).read_bytes())
    subprocess.run([sys.executable, str(script)], check=True, capture_output=True, timeout=120)
    assert stale.read_bytes() == (source / "ops" / "__init__.py").read_bytes()
    assert sorted(f.name for f in stale.parent.glob("__init__*")) == ["__init__.py"]
