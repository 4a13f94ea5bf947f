"""Mixed-precision levels: what computes in which dtype, and that gradients and updates stay float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import amp, nn, ops

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
HALVES = pytest.mark.parametrize("half", [ms.float16, ms.bfloat16], ids=["float16", "bfloat16"])
X = np.random.RandomState(0).uniform(-1, 1, (4, 6)).astype(np.float32)
Y = np.random.RandomState(1).uniform(-1, 1, (4, 2)).astype(np.float32)


class Spy(nn.Cell):
    """Passes its input on, and remembers the dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["seen"] = []

    def construct(self, x: Any) -> Any:
        self.__dict__["seen"].append(x.dtype)
        return x


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(6, 5)
        self.after_fc = Spy()
        self.norm = nn.LayerNorm((5,))
        self.after_norm = Spy()
        self.act = nn.Sigmoid()
        self.after_act = Spy()
        self.out = nn.Dense(5, 2)

    def construct(self, x: Any) -> Any:
        x = self.after_fc(self.fc(x))
        x = self.after_norm(self.norm(x))
        return self.out(self.after_act(self.act(x)))


def dtypes_of(net: Net, x: Any) -> list[str]:
    """The dtypes after the first dense layer, the normalisation, the activation and the network."""
    out = net(x)
    return [str(spy.__dict__["seen"][-1]) for spy in (net.after_fc, net.after_norm, net.after_act)] + [str(out.dtype)]


F32, F16 = "Float32", "Float16"
EXPECTED = {
    "O0": [F32, F32, F32, F32], "O1": [F32, F32, F32, F32], "O2": [F16, F16, F16, F32], "O3": [F16, F16, F16, F32],
    "auto": [F16, F32, F32, F16],
}  # fmt: skip


@MODES
@HALVES
@pytest.mark.parametrize("level", list(EXPECTED))
def test_dtypes_of_levels(level: str, half: Any, mode: int) -> None:
    ms.set_context(mode=mode)
    net = Net()
    plain = net(ms.Tensor(X)).asnumpy()
    assert amp.auto_mixed_precision(net, level, half) is net
    expected = [d if d == F32 else str(half) for d in EXPECTED[level]]
    assert dtypes_of(net, ms.Tensor(X)) == expected
    mixed = net(ms.Tensor(X)).asnumpy().astype(np.float32)
    np.testing.assert_allclose(mixed, plain, atol=2e-2 if half is ms.bfloat16 else 3e-3)
    assert np.array_equal(mixed, plain) == (level == "O0")
    assert all(p.dtype is ms.float32 for p in net.get_parameters())


@MODES
@pytest.mark.parametrize("level", ["O1", "O2", "O3", "auto"])
def test_gradients_are_float32_and_close(level: str, mode: int) -> None:
    ms.set_context(mode=mode)
    net, other = Net(), Net()
    for p, q in zip(net.get_parameters(), other.get_parameters(), strict=True):
        q.set_data(p)
    amp.auto_mixed_precision(other, level)

    def gradients(cell: Any) -> Any:
        loss = lambda x, y: ((cell(x).astype(ms.float32) - y) ** 2).mean()  # noqa: E731
        return ms.value_and_grad(loss, None, cell.trainable_params())(ms.Tensor(X), ms.Tensor(Y))[1]

    for g, h in zip(gradients(net), gradients(other), strict=True):
        assert h.dtype is ms.float32
        np.testing.assert_allclose(h.asnumpy(), g.asnumpy(), atol=3e-3)


def test_o1_runs_the_white_list_in_half_precision() -> None:
    net = nn.SequentialCell(nn.Dense(6, 5), nn.ReLU(), nn.Sigmoid(), nn.Conv1d(4, 2, 1))
    amp.auto_mixed_precision(net, "O1", ms.bfloat16)
    assert [cell.compute_dtype for cell in net] == [ms.bfloat16, ms.bfloat16, None, ms.bfloat16]


def test_o2_keeps_the_black_list_in_float32() -> None:
    net = nn.SequentialCell(nn.Dense(6, 5), nn.BatchNorm1d(5), nn.SequentialCell(nn.LayerNorm((5,)), nn.GELU()))
    amp.auto_mixed_precision(net, "O2")
    assert [c.compute_dtype for c in net] == [ms.float16, ms.float32, ms.float16]
    assert [c.compute_dtype for c in net[2]] == [ms.float32, ms.float16]
    amp.auto_mixed_precision(net, "O3")  # another level takes over
    assert {c.compute_dtype for _, c in net.cells_and_names()} == {ms.float16}


@pytest.mark.parametrize("level", ["O1", "O2", "O3", "auto"])
def test_cells_set_by_the_user_keep_their_precision(level: str) -> None:
    net = nn.SequentialCell(nn.Dense(6, 5).to_float(ms.float32), nn.Dense(5, 5))
    amp.auto_mixed_precision(net, level)
    assert [c.compute_dtype for c in net] == [ms.float32, ms.float16]


def test_custom_lists() -> None:
    net = amp.custom_mixed_precision(Net(), white_list=[nn.LayerNorm], dtype=ms.bfloat16)
    assert (net.norm.compute_dtype, net.fc.compute_dtype) == (ms.bfloat16, None)
    assert dtypes_of(net, ms.Tensor(X)) == [F32, F32, F32, F32]
    net = amp.custom_mixed_precision(Net(), black_list=[nn.Dense])
    assert (net.norm.compute_dtype, net.fc.compute_dtype) == (ms.float16, ms.float32)
    assert dtypes_of(net, ms.Tensor(X)) == [F16, F16, F16, F32]


def test_lists_are_copies() -> None:
    assert nn.Dense in amp.get_white_list()
    assert nn.BatchNorm2d in amp.get_black_list()
    amp.get_white_list().clear()
    assert nn.Conv2d in amp.get_white_list()


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda n: amp.auto_mixed_precision(3, "O1"), TypeError, "'network' got int; it takes a Cell"),
        (lambda n: amp.auto_mixed_precision(n, "O5"), ValueError, "'amp_level' got 'O5'"),
        (lambda n: amp.auto_mixed_precision(n, "O1", ms.float64), ValueError, "'dtype' got Float64; it takes"),
        (amp.custom_mixed_precision, ValueError, "give either 'white_list' or 'black_list'"),
        (lambda n: amp.custom_mixed_precision(n, white_list=[], black_list=[]), ValueError, "give either"),
        (lambda n: amp.custom_mixed_precision(n, white_list=nn.Dense), TypeError, "'white_list' got type"),
        (lambda n: amp.custom_mixed_precision(n, black_list=[ops.relu]), TypeError, "'black_list' got the element"),
        (lambda n: amp.custom_mixed_precision(3, black_list=[]), TypeError, "'network' got int"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call(Net())
