"""The `mycelia` command: its table of commands, `info` and `demo`."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
import types
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from pathlib import Path

import jax
import numpy as np
import pytest

from mycelia import cli
from mycelia.cli import info


def test_no_command_shows_every_command_and_fails(capsys):
    assert cli.main([]) == 2
    shown = capsys.readouterr().out
    assert all(name in shown for name in cli.COMMANDS)


def test_help_succeeds(capsys):
    assert cli.main(["--help"]) == 0
    assert "usage: mycelia" in capsys.readouterr().out


def test_unknown_command_is_named(capsys):
    assert cli.main(["trian"]) == 2
    assert "there is no command 'trian'" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_every_command_has_help(name, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([name, "--help"])
    assert end.value.code == 0
    assert f"mycelia {name}" in capsys.readouterr().out


def test_info_json_says_what_the_libraries_say(capsys):
    assert cli.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["jax"] == jax.__version__
    assert facts["numpy"] == np.__version__
    assert facts["python"] == platform.python_version()
    assert [d["id"] for d in facts["devices"]] == [d.id for d in jax.devices()]
    assert facts["threads"]["cpus"] == os.cpu_count()


@pytest.mark.parametrize("variable", ["kept", ""])
def test_info_follows_the_cache_variable(variable, tmp_path):
    folder = str(tmp_path / variable) if variable else ""
    facts = subprocess.check_output(
        [sys.executable, "-m", "mycelia.cli", "info", "--json"],
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2]), "MYCELIA_CACHE_DIR": folder},
    )
    cache = json.loads(facts)["cache_folder"]
    assert cache is None if not folder else Path(cache).is_relative_to(folder)


def test_info_table_has_a_row_for_everything(capsys):
    assert cli.main(["info"]) == 0
    shown = capsys.readouterr().out
    assert jax.__version__ in shown
    assert all(word in shown for word in ("mycelia", "devices", "threads", "cache folder", "kernels"))


def test_info_reports_an_unusable_platform(monkeypatch, capsys):
    def refuse() -> list[object]:
        raise RuntimeError("Unable to initialize backend 'tpu' [device]")

    monkeypatch.setattr(jax, "devices", refuse)
    assert cli.main(["info"]) == 1
    assert "Unable to initialize backend 'tpu' [device]" in " ".join(capsys.readouterr().out.split())


def test_native_kernels_are_the_compiled_modules(monkeypatch, tmp_path):
    (tmp_path / "__init__.py").touch()
    (tmp_path / ("kernels" + EXTENSION_SUFFIXES[0])).touch()
    spec = ModuleSpec("mycelia.native", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert info.native_kernels() == ["kernels" + EXTENSION_SUFFIXES[0]]


def test_without_compiled_modules_xla_is_named(monkeypatch, capsys):
    monkeypatch.setattr(info, "native_kernels", list)
    cli.main(["info"])
    assert "XLA kernels only" in capsys.readouterr().out


@pytest.fixture
def demo_calls(monkeypatch):
    """A stand-in for the demo itself that records how it is called."""
    calls = []

    def run(**options):
        calls.append(options)
        return 3

    module = types.ModuleType("mycelia.demo.mnist")
    module.run = run
    monkeypatch.setitem(sys.modules, "mycelia.demo.mnist", module)
    return calls


def test_demo_passes_its_arguments_on(demo_calls, tmp_path):
    assert cli.main(["demo", "--data", str(tmp_path), "--epochs", "4", "--mode", "graph"]) == 3
    assert demo_calls == [{"data": tmp_path, "epochs": 4, "mode": "graph"}]


def test_demo_uses_the_digits_that_come_along(demo_calls):
    cli.main(["demo"])
    assert demo_calls[0]["mode"] == "both"
    assert (Path(demo_calls[0]["data"]) / "train-images-idx3-ubyte.gz").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--data", "no/such/folder"], "'no/such/folder' is not a folder"),
        (["--epochs", "0"], "'0' is not a positive number"),
        (["--epochs", "two"], "'two' is not a positive number"),
        (["--mode", "fast"], "invalid choice: 'fast'"),
    ],
)
def test_demo_refuses_bad_arguments(arguments, said, demo_calls, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["demo", *arguments])
    assert end.value.code == 2
    assert said in capsys.readouterr().err
    assert demo_calls == []
