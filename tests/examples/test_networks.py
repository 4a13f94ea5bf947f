"""The networks of ``examples/`` train in both modes, and tell the same story in both."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK = {
    "control_flow": ["--steps", "3", "--batch", "4"],
    "gan": ["--steps", "2", "--batch", "8"],
    "gpt": ["--steps", "3", "--batch", "4"],
    "lstm": ["--steps", "2", "--batch", "8", "--tests", "3"],
    "resnet": ["--epochs", "1", "--rows", "40", "--batch", "20"],
    "vae": ["--steps", "3", "--batch", "8"],
}
LEARNED = {  # what the defaults reach: (least, most) of the figure that main returns
    "control_flow": (0, 0.1),
    "gpt": (0, 0.5),
    "lstm": (0.7, 1),
    "resnet": (0.85, 1),
    "vae": (0, 150),
}


def example(name):
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name", [n if n in ("control_flow", "vae") else pytest.param(n, marks=pytest.mark.slow) for n in QUICK]
)
def test_both_modes_agree(name, capsys):
    module = example(name)
    found = [module.main(["--mode", mode, *QUICK[name]]) for mode in ("pynative", "graph")]
    assert np.all(np.isfinite(found))
    assert np.allclose(found[0], found[1], rtol=1e-3)
    assert len(capsys.readouterr().out.splitlines()) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNED)
def test_defaults_learn(name):
    least, most = LEARNED[name]
    assert least <= example(name).main([]) <= most


def test_export_option(tmp_path, capsys):
    file = tmp_path / "resnet.mindir"
    example("resnet").main([*QUICK["resnet"], "--export", str(file)])
    assert file.is_file()
    assert "scores differ by 0.0e+00" in capsys.readouterr().out


def test_runs_from_the_command_line(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "vae.py"), *QUICK["vae"]], capture_output=True, text=True, timeout=240,
        check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "step 2: loss" in done.stdout
