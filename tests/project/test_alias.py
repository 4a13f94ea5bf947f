"""A second name for a package: one set of modules, imported lazily, and ordinary errors."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from mycelia import alias
from mycelia.core.errors import StateError

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    "__init__.py": "import realpkg.early\nfrom realpkg.shadow import shadow\n",
    "early.py": "",
    "shadow.py": "def shadow():\n    return 'function'\n",
    "broken.py": "import no_such_library_at_all\n",
    "late/__init__.py": "loads = []\n",
    "late/deep.py": "from realpkg import late\nlate.loads.append(__name__)\nclass Thing:\n    pass\n",
    "late/__main__.py": "print(__name__, __package__)\n",
}


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A package `realpkg` on disk, known as `secondpkg` too."""
    for name, text in MODULES.items():
        file = tmp_path / "realpkg" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    alias.install("secondpkg", "realpkg")
    yield tmp_path
    alias.uninstall("secondpkg")
    for name in [name for name in sys.modules if name.partition(".")[0] in ("realpkg", "secondpkg")]:
        del sys.modules[name]


@pytest.mark.usefixtures("packages")
class TestOneModuleTwoNames:
    def test_submodules_are_the_same_objects_and_run_once(self):
        import realpkg.late.deep
        import secondpkg.late.deep
        from secondpkg import late
        from secondpkg.late import deep

        assert secondpkg is realpkg
        assert late is secondpkg.late is realpkg.late
        assert deep is realpkg.late.deep is secondpkg.late.deep
        assert late.loads == ["realpkg.late.deep"]

    def test_either_order(self):
        import realpkg.late.deep as first
        import secondpkg.late.deep as second

        assert first is second

    def test_nothing_is_imported_before_it_is_asked_for(self):
        import secondpkg

        assert "realpkg.late" not in sys.modules
        assert not hasattr(secondpkg, "late")

    def test_names_and_specs_stay_those_of_the_real_module(self):
        import secondpkg.late.deep as deep

        assert deep.__name__ == deep.__spec__.name == "realpkg.late.deep"
        assert deep.__package__ == "realpkg.late"

    def test_pickles_speak_of_the_real_module_and_the_second_name_loads_too(self):
        from secondpkg.late.deep import Thing

        data = pickle.dumps(Thing)
        assert b"realpkg" in data
        assert pickle.loads(data) is Thing
        assert pickle.loads(pickle.dumps(Thing, 0).replace(b"realpkg", b"secondpkg")) is Thing

    def test_reload(self):
        import secondpkg.late.deep as deep

        assert importlib.reload(deep) is deep
        assert sys.modules["secondpkg.late.deep"] is sys.modules["realpkg.late.deep"] is deep
        assert deep.late.loads == ["realpkg.late.deep"] * 2

    def test_a_name_that_shadows_a_loaded_module_stays(self):
        import secondpkg.shadow

        assert secondpkg.shadow() == "function"

    def test_a_missing_module_is_named_by_the_name_it_was_asked_by(self):
        with pytest.raises(ModuleNotFoundError, match=r"^No module named 'secondpkg\.absent'$") as caught:
            importlib.import_module("secondpkg.absent")
        assert caught.value.name == "secondpkg.absent"
        with pytest.raises(ModuleNotFoundError, match=r"'secondpkg\.early' is not a package"):
            importlib.import_module("secondpkg.early.absent")
        assert importlib.util.find_spec("secondpkg.absent") is None

    def test_what_a_module_itself_misses_is_named(self):
        with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_library_at_all'"):
            importlib.import_module("secondpkg.broken")
        assert "secondpkg.broken" not in sys.modules

    def test_find_spec_before_import(self):
        spec = importlib.util.find_spec("secondpkg.late")
        assert spec.name == "secondpkg.late"
        assert spec.origin.endswith(os.path.join("late", "__init__.py"))
        assert "realpkg.late" not in sys.modules
        assert spec.loader.is_package("secondpkg.late")
        assert spec.loader.get_source("secondpkg.late") == MODULES["late/__init__.py"]

    def test_other_names_with_the_same_beginning_are_left_alone(self):
        assert importlib.util.find_spec("secondpkg_tools") is None
        with pytest.raises(ModuleNotFoundError, match="secondpkg_tools"):
            importlib.import_module("secondpkg_tools")

    def test_installing_twice_changes_nothing(self):
        before = list(sys.meta_path)
        alias.install("secondpkg", "realpkg")
        assert sys.meta_path == before

    def test_a_second_meaning_is_refused(self):
        with pytest.raises(StateError, match="'secondpkg' already stands for 'realpkg'"):
            alias.install("secondpkg", "json")


@pytest.mark.usefixtures("packages")
def test_uninstall_takes_the_name_away():
    importlib.import_module("secondpkg.late")
    alias.uninstall("secondpkg")
    assert not [name for name in sys.modules if name.startswith("secondpkg")]
    assert "realpkg.late" in sys.modules
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("secondpkg")


def test_a_package_of_that_name_that_is_already_imported_is_kept(tmp_path, monkeypatch):
    (tmp_path / "thirdpkg.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    there = importlib.import_module("thirdpkg")
    before = list(sys.meta_path)
    with pytest.raises(StateError, match=r"'thirdpkg' is already imported, from .*thirdpkg\.py") as caught:
        alias.install("thirdpkg", "json")
    assert "before the first 'import thirdpkg'" in str(caught.value)
    assert sys.meta_path == before
    assert sys.modules.pop("thirdpkg") is there


def run_with_compat(code, *more, first=()):
    """A fresh interpreter that has this checkout's package and the compat distribution's file."""
    path = [*map(str, first), str(ROOT / "src"), str(ROOT / "compat")]
    return subprocess.run(
        [sys.executable, *more, *(["-c", code] if code else [])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_compat_distribution_is_mycelia():
    done = run_with_compat(
        "import mindspore as ms\n"
        "import mindspore.core.errors as errors\n"
        "from mindspore.core import dtypes\n"
        "import mycelia\n"
        "assert ms is mycelia\n"
        "assert errors is mycelia.core.errors and dtypes is mycelia.core.dtypes\n"
        "try:\n"
        "    import mindspore.absent\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    assert done.stderr == ""
    assert done.stdout == "No module named 'mindspore.absent'\n"


def test_every_module_of_the_package_is_one_module_under_both_names():
    """Half of them are imported by the second name first."""
    source = ROOT / "src"
    names = {
        ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        for file in (source / "mycelia").rglob("*.py")
        if file.name != "__main__.py" and file.parent.name != "stand_in"
    }
    assert "mycelia.core.errors" in names
    done = run_with_compat(
        "import importlib, mindspore\n"
        f"for index, name in enumerate({sorted(names)}):\n"
        "    names = [name, name.replace('mycelia', 'mindspore', 1)]\n"
        "    first, second = map(importlib.import_module, names if index % 2 else reversed(names))\n"
        "    assert first is second, name\n"
        "    assert first.__name__ == name, name\n"
    )
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_module_runs_under_its_second_name(packages):
    (packages / "secondpkg.py").write_text("from mycelia.alias import stand_in\nstand_in(__name__, 'realpkg')\n")
    done = run_with_compat(None, "-m", "secondpkg.late", first=[packages])
    assert (done.stdout, done.stderr) == ("__main__ secondpkg.late\n", "")


def test_the_real_package_wins_over_the_compat_distribution(tmp_path):
    """One file cannot overwrite a folder, and Python prefers the folder even in the same place."""
    site = tmp_path / "site"
    (site / "mindspore").mkdir(parents=True)
    (site / "mindspore" / "__init__.py").write_text("real = True\n")
    (site / "mindspore.py").write_text((ROOT / "compat" / "mindspore.py").read_text())
    done = run_with_compat("import mindspore; print(mindspore.real)", first=[site])
    assert done.stdout == "True\n", done.stderr


def test_the_alias_refuses_when_the_real_package_is_imported(tmp_path):
    (tmp_path / "mindspore").mkdir()
    (tmp_path / "mindspore" / "__init__.py").touch()
    done = run_with_compat("import mindspore, mycelia.alias; mycelia.alias.install()", first=[tmp_path])
    assert done.returncode == 1
    assert "'mindspore' is already imported, from" in done.stderr
