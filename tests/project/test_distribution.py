"""What the two wheels contain, and that they agree with each other."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def project(folder):
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]


def test_both_distributions_have_one_version():
    main, compat = project("."), project("compat")
    assert main["version"] == compat["version"]
    assert compat["dependencies"] == [f"mycelia=={main['version']}"]
    assert main["requires-python"] == compat["requires-python"]


def wheel_names(folder, out, **environment):
    """Build the wheel of a folder; the names of the files in it."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--wheel-dir", str(out), str(ROOT / folder)],
        check=True,
        timeout=300,
        env={**os.environ, **environment},
    )
    (wheel,) = out.glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(tmp_path):
    names = wheel_names(".", tmp_path)
    source = ROOT / "src"
    files = [
        file.relative_to(source).as_posix()
        for file in (source / "mycelia").rglob("*")
        if file.is_file() and file.parent.name != "__pycache__"
    ]
    assert "mycelia/demo/digits/train-images-idx3-ubyte.gz" in files
    assert "mycelia/py.typed" in files
    assert sorted(name for name in names if ".dist-info/" not in name) == sorted(files)


@pytest.mark.slow
def test_without_a_compiler_the_wheel_is_pure(tmp_path):
    names = wheel_names(".", tmp_path, CXX="/nonexistent/compiler")
    assert "mycelia/native/__init__.py" in names
    assert "mycelia/native/kernels.so" not in names
    assert next(tmp_path.glob("*.whl")).name.endswith("-py3-none-any.whl")


@pytest.mark.slow
def test_the_compat_wheel_is_one_file(tmp_path):
    assert [name for name in wheel_names("compat", tmp_path) if ".dist-info/" not in name] == ["mindspore.py"]
