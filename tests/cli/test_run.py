"""`mycelia run`: a program runs as it would under the interpreter, with the alias in place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mycelia.cli import run

SOURCE = Path(run.__file__).resolve().parents[2]


def command(arguments, folder, interpreter=(), **variables):
    """Run the interpreter in `folder`, where this checkout's package is importable."""
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, *interpreter, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def mycelia_run(arguments, folder, **variables):
    return command(["-m", "mycelia.cli", "run", *arguments], folder, **variables)


REPORT = """\
import json, sys
main = sys.modules["__main__"]
facts = {
    "argv": sys.argv, "name": __name__, "file": __file__, "path": sys.path[0], "package": __package__,
    "spec": __spec__.name if __spec__ else None, "same": main.__dict__ is globals(),
    "builtins": type(__builtins__).__name__,
}
print(json.dumps(facts))
"""


def test_a_script_sees_what_the_interpreter_gives_it(tmp_path):
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "show.py").write_text(REPORT)
    (tmp_path / "link.py").symlink_to(folder / "show.py")
    arguments = ["link.py", "--help", "-m", "--", "x"]
    ours = mycelia_run(arguments, tmp_path)
    theirs = command(arguments, tmp_path)
    assert ours.returncode == 0, ours.stderr
    assert json.loads(ours.stdout) == json.loads(theirs.stdout)


def test_a_module_sees_what_the_interpreter_gives_it(tmp_path):
    package = tmp_path / "tool"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("from . import part\n" + REPORT)
    (package / "part.py").write_text(REPORT.replace("print", "len"))
    for arguments in (["-m", "tool", "-v"], ["-m", "tool.part", "1"]):
        ours = mycelia_run(arguments, tmp_path)
        assert ours.returncode == 0, ours.stderr
        assert ours.stdout == command(arguments, tmp_path).stdout


def test_mindspore_is_mycelia_in_the_script_and_in_its_processes(tmp_path):
    (tmp_path / "job.py").write_text(
        "import multiprocessing, subprocess, sys\n"
        "import mindspore as ms, mindspore.core.errors as errors\n"
        "from mindspore.core import errors as again\n"
        "def child(_):\n"
        "    import mindspore\n"
        "    return mindspore.__name__\n"
        "if __name__ == '__main__':\n"
        "    import mycelia\n"
        "    assert ms is mycelia and errors is again is mycelia.core.errors\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(child, [0]))\n"
        "    code = 'import mindspore; print(mindspore.__name__)'\n"
        "    print(subprocess.check_output([sys.executable, '-c', code], text=True))\n"
    )
    done = mycelia_run(["job.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["['mycelia']", "mycelia"]


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("raise SystemExit(7)", 7, ""),
        ("raise SystemExit('no data')", 1, "no data"),
        ("print('done')", 0, ""),
        ("import os; os._exit(9)", 9, ""),
    ],
)
def test_the_exit_code_is_the_programs(tmp_path, program, code, said):
    (tmp_path / "end.py").write_text(program)
    done = mycelia_run(["end.py"], tmp_path)
    assert done.returncode == code
    assert done.stderr.strip() == said


def test_an_error_shows_only_the_programs_frames(tmp_path):
    (tmp_path / "fails.py").write_text("def inner():\n    1 / 0\ninner()\n")
    ours = mycelia_run(["fails.py"], tmp_path)
    assert ours.returncode == 1
    assert ours.stderr == command(["fails.py"], tmp_path).stderr
    full = mycelia_run(["fails.py"], tmp_path, MYCELIA_FULL_TRACEBACK="1")
    assert "cli" in full.stderr
    assert full.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_an_error_of_ours_is_shown_without_the_packages_frames(tmp_path):
    (tmp_path / "fails.py").write_text(
        "from mindspore.core.context import set_context\ntry:\n    set_context(mode=7)\n"
        "except ValueError as error:\n    raise KeyError('outer') from error\n"
    )
    done = mycelia_run(["fails.py"], tmp_path)
    assert done.returncode == 1
    assert "fails.py" in done.stderr
    assert "KeyError: 'outer'" in done.stderr
    assert "argument 'mode' got 7" in done.stderr
    assert f"mycelia{os.sep}core{os.sep}context.py" not in done.stderr


def test_a_syntax_error_shows_the_line(tmp_path):
    (tmp_path / "bad.py").write_text("def f(:\n    pass\n")
    done = mycelia_run(["bad.py"], tmp_path)
    assert done.returncode == 1
    assert done.stderr == command(["bad.py"], tmp_path).stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["absent.py"], "can't open 'absent.py': No such file or directory"),
        (["-m", "absent"], "No module named absent"),
        (["-m", "json"], "No module named json.__main__"),
        ([], "which script or module?"),
    ],
)
def test_what_is_not_there_is_named(tmp_path, arguments, said):
    done = mycelia_run(arguments, tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_module_that_cannot_be_imported_says_what_it_misses(tmp_path):
    package = tmp_path / "tool"
    package.mkdir()
    (package / "__init__.py").write_text("import absent_library\n")
    (package / "part.py").touch()
    done = mycelia_run(["-m", "tool.part"], tmp_path)
    assert done.returncode == 1
    assert "No module named 'absent_library'" in done.stderr
