"""The documents say what is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = sorted(f"docs/tutorials/{file.name}" for file in (ROOT / "docs" / "tutorials").glob("*.md"))
READMES = ["README.md", "README.zh-CN.md"]
PAGES = sorted(f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md"))
DOCUMENTS = [*READMES, "compat/README.md", *PAGES, *TUTORIALS]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def rows(document, heading):
    """The cells of the table below a heading."""
    section = re.split(rf"^## {re.escape(heading)}$", text(document), flags=re.M)[1].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def requirement_name(requirement):
    return re.match(r"[\w.-]+(\[[\w,]+\])?", requirement).group()


def test_every_dependency_has_its_line():
    assert [row[0] for row in rows("docs/dependencies.md", "Always installed")] == [
        requirement_name(requirement) for requirement in PROJECT["dependencies"]
    ]


def test_every_extra_has_its_lines():
    documented = {(row[1], row[0]) for row in rows("docs/dependencies.md", "Extras")}
    declared = {
        (extra, requirement_name(requirement))
        for extra, requirements in PROJECT["optional-dependencies"].items()
        for requirement in requirements
        if extra != "all" and not requirement.startswith("mycelia[")
    }
    assert documented == declared


@pytest.mark.parametrize("heading", ["Always installed", "Extras"])
def test_every_line_is_complete(heading):
    table = rows("docs/dependencies.md", heading)
    assert table
    assert all(len(row) == len(table[0]) and all(row) for row in table)


def test_every_package_is_in_the_architecture():
    page = text("docs/architecture.md")
    packages = [path.name for path in (ROOT / "src" / "mycelia").iterdir() if (path / "__init__.py").is_file()]
    assert "core" in packages
    assert [name for name in packages if f"`{name}`" not in page and f"`mycelia.{name}`" not in page] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document):
    links = [link for link in re.findall(r"\]\(([^)#]+)", text(document)) if "://" not in link]
    assert [link for link in links if not ((ROOT / document).parent / link).exists()] == []


@pytest.mark.parametrize("document", READMES)
def test_commands_exist(document):
    targets = re.search(r"^\.PHONY: (.*)$", text("Makefile"), flags=re.M).group(1).split()
    named = set(re.findall(r"make ([a-z]+) ", text(document)))
    assert {"setup", "demo"} <= named <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", text("Makefile"), flags=re.M), target


def blocks(document):
    return re.findall(r"```python\n(.*?)```", text(document), flags=re.S)


def test_both_readmes_show_the_same():
    english, chinese = READMES
    assert blocks(english) == blocks(chinese)
    assert text(english).count("\n## ") == text(chinese).count("\n## ")
    states = [re.search(r"works:begin -->\n(.*)<!-- works:end", text(name), flags=re.S).group(1) for name in READMES]
    assert states[0].count("\n") == states[1].count("\n")


@pytest.mark.parametrize("mode", ["PYNATIVE_MODE", "GRAPH_MODE"])
def test_the_readmes_program_learns(mode):
    import mycelia as ms

    ms.set_context(mode=getattr(ms, mode))
    (program,) = blocks("README.md")
    scope = {}
    exec(compile(program, "README.md", "exec"), scope)
    assert float(scope["value"]) < 0.02
    assert float(scope["value"]) < 0.2 * float((scope["y"] ** 2).mean())


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_the_tutorial_runs(tutorial, monkeypatch, tmp_path, capsys):
    """The blocks are one program; a comment after ``print`` that holds a figure says what is printed."""
    monkeypatch.chdir(tmp_path)
    program = "\n".join(blocks(tutorial))
    file = tmp_path / "tutorial.py"
    file.write_text(program, encoding="utf-8")
    exec(compile(program, str(file), "exec"), {"__name__": "tutorial"})
    printed = capsys.readouterr().out
    for said in re.findall(r"^print\(.*\)\s+# ([\d(\[].*)$", program, flags=re.M):
        assert said in printed, said
