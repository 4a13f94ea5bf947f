"""What the tests of passes share: text before and after, random graphs, and a verifier after every pass."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from mycelia.ir.graph import Graph
from mycelia.ir.parser import parse_graph
from mycelia.ir.primitive import PRIMITIVES
from mycelia.ir.printer import graph_text
from mycelia.ir.verifier import verify

Run = Callable[[Graph], tuple[Graph, int]]


@pytest.fixture(scope="session")
def graphs() -> ModuleType:
    """``random_graphs`` beside the tests of the graph: random graphs and a NumPy interpreter of them."""
    name = "random_graphs"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / "ir" / "random_graphs.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(autouse=True)
def _verifying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCELIA_VERIFY", "1")
    monkeypatch.delenv("MYCELIA_DUMP", raising=False)


@pytest.fixture
def noted(graphs: ModuleType) -> Iterator[None]:
    """``noted``, an operator with an effect, is declared during the test."""
    graphs.declare_effect()
    yield
    del PRIMITIVES["noted"]


@pytest.fixture(scope="session")
def becomes(graphs: ModuleType) -> Callable[[Run, str, str, int], None]:
    """Check that a pass turns one text into another, with a number of changes, and that both compute the same."""

    def check(run: Run, before: str, after: str, changes: int) -> None:
        graph = parse_graph(before)
        text = graph_text(graph)
        new, count = run(graph)
        verify(new)
        assert graph_text(new) == graph_text(parse_graph(after))
        assert count == changes
        assert graph_text(graph) == text, "the graph given is untouched"
        for seed in range(5):
            graphs.check_same(graph, new, seed)

    return check


@pytest.fixture(scope="session")
def stays() -> Callable[[Run, str], None]:
    """Check that a pass leaves a graph alone and gives back the very same one."""

    def check(run: Run, text: str) -> None:
        graph = parse_graph(text)
        assert run(graph) == (graph, 0)

    return check


@pytest.fixture(scope="session")
def preserves(graphs: ModuleType) -> Callable[[Run, int], None]:
    """Check that a pass keeps what a random graph computes, bit by bit, and the order of effects."""

    def check(run: Run, seed: int) -> None:
        graphs.declare_effect()
        try:
            graph = graphs.random_graph(seed, size=20, effects=seed % 2 == 1)
            new, count = run(graph)
            verify(new)
        finally:
            del PRIMITIVES["noted"]
        assert (count == 0) == (new is graph)
        graphs.check_same(graph, new, seed)

    return check
