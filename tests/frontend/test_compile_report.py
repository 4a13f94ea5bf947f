"""``ms.compile_report`` and the dumps: what they say of a real function."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.core.errors import ArgumentTypeError, StateError


@ms.jit
def loss(x: Tensor, w: Tensor) -> Tensor:
    y = ops.matmul(x, w) * 1
    return (y * y).sum() + 0 * ops.matmul(x, w).sum()


def test_a_report_of_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    loss(Tensor(np.ones((8, 16), np.float32)), Tensor(np.ones((16, 4), np.float32)))
    (report,) = ms.compile_report(loss)
    assert capsys.readouterr().out == f"{report}\n"
    assert report.operators["matmul"] == (2, 1)
    assert report.cost is not None
    assert report.cost.by_operator["matmul"].flops == 2 * 8 * 16 * 4
    assert report.phases is not None
    assert min(report.phases.stage, report.phases.passes, report.phases.trace, report.phases.compile) > 0
    assert report.peak_bytes is not None
    assert report.value_bytes is not None
    inputs = 4 * (8 * 16 + 16 * 4)
    assert inputs <= report.peak_bytes <= report.value_bytes + inputs
    assert "common_subexpressions" in str(report)
    assert "compiled in" in str(report)


def test_one_report_for_each_graph_of_a_cell(capsys: pytest.CaptureFixture[str]) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.Dense(3, 2)
    for n in (1, 2):
        net(Tensor(np.ones((n, 3), np.float32)))
    reports = ms.compile_report(net)
    assert len(reports) == 2
    assert capsys.readouterr().out.count("one run:") == 2


def test_memory_is_reused() -> None:
    @ms.jit
    def chain(x: Tensor) -> Tensor:
        for _ in range(12):
            x = ops.matmul(x, x)
        return x

    chain(Tensor(np.eye(64, dtype=np.float32)))
    (report,) = ms.compile_report(chain)
    assert report.peak_bytes is not None
    assert report.value_bytes is not None
    assert report.peak_bytes < report.value_bytes / 2


def test_mistakes() -> None:
    with pytest.raises(ArgumentTypeError, match="argument 'fn' got int; it takes a function, method or Cell"):
        ms.compile_report(3)
    with pytest.raises(StateError, match="nothing has been compiled for this function yet"):
        ms.compile_report(ms.jit(lambda x: x))


def test_dumps_show_the_lines_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MYCELIA_DUMP", str(tmp_path))

    @ms.jit
    def f(x: Tensor) -> Tensor:
        y = ops.exp(x)
        return y * 2 + y

    f(Tensor([1.0, 2.0]))
    (staged,) = tmp_path.glob("*-f-00-staged.txt")
    lines = [line.strip() for line in staged.read_text().splitlines()]
    assert lines.index("# | y = ops.exp(x)") < lines.index("# | return y * 2 + y")
    assert list(tmp_path.glob("*-f-00-staged.svg"))
