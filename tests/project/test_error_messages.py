"""The mistakes people make most: one screen, the argument, the user's line, and nothing changed."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.core.errors import MyceliaError

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])


def message(error: pytest.ExceptionInfo[MyceliaError], marker: str, *words: str) -> str:
    """The text, checked to fit a screen, point at the marked line and hold the words."""
    text = str(error.value)
    assert len(text.splitlines()) <= 20
    assert max(map(len, text.splitlines())) < 400
    assert marker in text, text
    for word in words:
        assert word in text, text
    return text


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.dense = nn.Dense(4, 2)
        self.count = ms.Parameter(ms.Tensor(0), name="count", requires_grad=False)

    def construct(self, ids):
        ops.assign(self.count, self.count + 1)
        return self.dense(self.embedding(ids))  # in construct


@MODES
def test_shape_mismatch_in_matmul(mode):
    ms.set_context(mode=mode)

    class Product(nn.Cell):
        def construct(self, a, b):
            return ops.matmul(a, b)  # the product

    with pytest.raises(ValueError, match="matmul") as error:
        Product()(ops.ones((2, 3)), ops.ones((4, 5)))
    message(error, "# the product", "(2, 3)", "(4, 5)", "3", "4")


@MODES
def test_wrong_dtype_to_embedding(mode):
    ms.set_context(mode=mode)
    net = Net()
    with pytest.raises(TypeError, match="Embedding") as error:
        net(ms.Tensor([1.0, 2.0]))
    message(error, "# in construct", "Float32", "int")
    if mode == ms.GRAPH_MODE:
        assert int(net.count) == 0


def test_missing_parameter_when_loading(tmp_path):
    source, target = Net(), Net()
    file = str(tmp_path / "net.ckpt")
    ms.save_checkpoint(source, file)
    loaded = ms.load_checkpoint(file)
    del loaded["dense.weight"]
    loaded["embedding.embedding_table"] = ms.Parameter(np.zeros((3, 3), np.float32), name="embedding.embedding_table")
    before = {p.name: p.asnumpy() for p in target.get_parameters()}
    with pytest.raises(MyceliaError) as error:
        ms.load_param_into_net(target, loaded)  # the load
    message(error, "# the load", "dense.weight", "embedding.embedding_table", "(3, 3)", "(10, 4)")
    for p in target.get_parameters():
        np.testing.assert_array_equal(p.asnumpy(), before[p.name])


@pytest.mark.parametrize("damage", ["truncated", "corrupt"])
def test_damaged_checkpoint(tmp_path, damage):
    net = Net()
    file = tmp_path / "net.ckpt"
    ms.save_checkpoint(net, str(file))
    data = bytearray(file.read_bytes())
    if damage == "truncated":
        data = data[: len(data) // 2]
    else:
        data[3:9] = b"\xff" * 6
    broken = tmp_path / "broken.ckpt"
    broken.write_bytes(data)
    before = {p.name: p.asnumpy() for p in net.get_parameters()}
    with pytest.raises(MyceliaError) as error:
        ms.load_checkpoint(str(broken), net)  # the load
    message(error, "# the load", "broken.ckpt")
    for p in net.get_parameters():
        np.testing.assert_array_equal(p.asnumpy(), before[p.name])


def test_branches_that_differ_in_type():
    state = ms.Parameter(ms.Tensor(1.0), name="state", requires_grad=False)

    @ms.jit
    def f(x):
        ops.assign(state, state + 1.0)
        if x.sum() > 0:  # the branch
            y = x.astype(ms.float16)
        else:
            y = x
        return y

    with pytest.raises(TypeError) as error:
        f(ms.Tensor([1.0, 2.0]))
    message(error, "# the branch", "'y'", "float16", "float32")
    assert float(state) == 1.0
    assert not state.is_symbolic
