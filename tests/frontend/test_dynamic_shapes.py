"""Varying lengths: Symbol, set_inputs, jit(dynamic=1), padding that changes nothing, ragged batches, mutable."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.core import tree
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError, StateError

RNG = np.random.default_rng(3)


def data(*shape, dtype=np.float32):
    return ms.Tensor(RNG.standard_normal(shape).astype(dtype))


def exact(fn, *args):
    return ms.jit(fn)(*args)


def compare(got, want, rtol=1e-6):
    for a, b in zip(tree.leaves(got), tree.leaves(want), strict=True):
        assert a.shape == b.shape
        assert a.dtype is b.dtype
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=rtol, atol=rtol)


# -- what is padded ---------------------------------------------------------------------------------------

W, B = data(4, 3), data(3)
TABLE = data(10, 4)
GAMMA, BETA = data(4), data(4)

PADDED = {
    "elementwise": lambda x: ops.exp(x) * 2 - x / 3,
    "log of padding": lambda x: ops.log(ops.abs(x) + 0),
    "product": lambda x: ops.matmul(x, W) + B,
    "dense": lambda x: ops.dense(x, W.T, B),
    "gram": lambda x: ops.matmul(x.T, x),
    "scores": lambda x: ops.softmax(ops.matmul(x, x.T), -1),
    "attention": lambda x: ops.matmul(ops.softmax(ops.matmul(x, x.T) / 2, -1), x),
    "layer norm": lambda x: ops.layer_norm(x, (4,), GAMMA, BETA),
    "softmax": lambda x: ops.log_softmax(x, -1),
    "softmax over it": lambda x: ops.log_softmax(x, 0),
    "sum": lambda x: x.sum(0),
    "sum of all": lambda x: x.sum(),
    "mean": lambda x: (x.mean(0), x.mean(1), x.mean()),
    "max": lambda x: (x.max(0), x.min(0), x.max(1)),
    "int max": lambda x: (x * 10).astype(ms.int32).max(0),
    "places": lambda x: (x.argmax(0), x.argmin(0), x.argmax(1)),
    "any": lambda x: ((x > 1).any(0), (x > -9).all(0)),
    "prod": lambda x: x.prod(0),
    "lookup": lambda x: ops.gather(TABLE, (ops.abs(x[:, 0]) * 3).astype(ms.int32), 0),
    "transpose": lambda x: ops.transpose(x, (1, 0)).sum(0),
    "reshape": lambda x: x.reshape((x.shape[0], 2, 2)).sum(-1).expand_dims(1).squeeze(1),
    "slice": lambda x: x[:, 1:3] * 2,
    "concat": lambda x: ops.concat([x, x * 2], 1),
    "center": lambda x: x - x.mean(0, keep_dims=True),
    "variance by hand": lambda x: ((x - x.mean()) ** 2).mean(),
    "where": lambda x: ops.where(x > 0, x, ops.zeros_like(x)),
    "gradient": lambda x: ms.grad(lambda w: ops.tanh(ops.matmul(x, w)).sum())(W),
}


@pytest.mark.parametrize("name", PADDED)
def test_padding_changes_nothing(name):
    fn = PADDED[name]
    f = ms.jit(fn, dynamic=1)
    for n in (5, 6, 8):  # the first length is compiled as it is, the others are padded to 8
        x = data(n, 4)
        want = exact(fn, x) if name == "elementwise" else fn(x)
        compare(f(x), want, rtol=0 if name == "elementwise" else 2e-6)
    assert len(f.compilations) == 2, ms.explain_recompiles(f)
    assert "(padded: 6 to 8)" in str(ms.explain_recompiles(f))


NOT_PADDED = {
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort(0)[0],
    "flip": lambda x: ops.flip(x, (0,)),
    "flatten": lambda x: x.reshape((-1,)) * 2,
    "random": lambda x: x + ops.rand_like(x) * 0,
    "length as a number": lambda x: x * x.shape[0],
    "a loop": lambda x: _double(x),
    "by the length": lambda x: x * 2 if x.shape[0] > 6 else -x,
    "a constant of that length": lambda x: x + ms.Tensor(np.arange(x.shape[0], dtype=np.float32).reshape(-1, 1)),
}


def _double(x):
    while x.max() < 10:
        x = x * 2
    return x


@pytest.mark.parametrize("name", NOT_PADDED)
def test_what_padding_could_change_is_compiled_for_its_length(name):
    fn = NOT_PADDED[name]
    f = ms.jit(fn, dynamic=1)
    for n in (5, 6, 8):
        x = ops.abs(data(n, 4)) + 0.5
        compare(f(x), fn(x))
    assert len(f.compilations) == 3
    report = str(ms.explain_recompiles(f))
    assert "exact shape" in report or name in ("length as a number", "by the length")


class Encoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding, self.norm, self.dense = nn.Embedding(20, 8), nn.LayerNorm((8,)), nn.Dense(8, 3)

    def construct(self, ids):
        h = self.norm(self.embedding(ids))
        h = h + ops.relu(h)
        return ops.softmax(self.dense(h.mean(1)), -1), self.dense(h)


def test_twenty_lengths_compile_a_few_times():
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Encoder()
    net.set_inputs(ms.Tensor(shape=[None, None], dtype=ms.int32))
    for n in range(1, 21):
        ids = ms.Tensor(RNG.integers(0, 20, (2, n)), ms.int32)
        got = net(ids)
        assert got[1].shape == (2, n, 3)
        if n in (1, 3, 8, 13):  # running at once compiles each operator for each length
            ms.set_context(mode=ms.PYNATIVE_MODE)
            compare(got, net(ids))
            ms.set_context(mode=ms.GRAPH_MODE)
    report = ms.explain_recompiles(net)
    assert len(report) <= 8, report


def test_twenty_batches_compile_at_most_six_times():
    f = ms.jit(lambda x, w: (ops.relu(ops.matmul(x, w)), x.mean()), dynamic=1)
    for n in range(1, 21):
        x = data(n, 4)
        product, mean = f(x, W)
        want = np.maximum(x.asnumpy() @ W.asnumpy(), 0)
        np.testing.assert_allclose(product.asnumpy(), want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(float(mean), x.asnumpy().mean(), rtol=1e-5, atol=1e-7)
    assert len(f.compilations) <= 6, ms.explain_recompiles(f)


def test_a_cell_compiled_with_options():
    net = ms.jit(nn.Dense(4, 2), dynamic=1, cache_limit=2)
    for n in (5, 6, 7, 8):
        assert net(data(n, 4)).shape == (n, 2)
    (function,) = ms.explain_recompiles(net).functions
    assert len(function[1]) == 2
    assert function[2] == 2


def test_a_symbol_says_the_lengths():
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.Dense(4, 2)
    net.set_inputs(ms.Tensor(shape=[ms.Symbol(divisor=10, max=50), 4], dtype=ms.float32))
    for n in (7, 10, 18, 20, 33, 40, 41, 50):
        assert net(data(n, 4)).shape == (n, 2)
    report = ms.explain_recompiles(net)
    assert [c.note.split(" to ")[1].rstrip(")") for c in report.compilations] == ["10", "20", "40", "50"]


def test_batch_norm_is_padded_in_inference_only():
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2))
    net.set_inputs(ms.Tensor(shape=[None, 1, 4, 4], dtype=ms.float32))
    for training, compiled in ((False, 1), (True, 4)):
        net.set_train(training)
        for n in (5, 6, 7):
            x = data(n, 1, 4, 4)
            saved = {p.name: p.asnumpy() for p in net.get_parameters()}
            got = net(x)
            after = {p.name: p.asnumpy() for p in net.get_parameters()}
            for p in net.get_parameters():
                p.set_data(ms.Tensor(saved[p.name]))
            ms.set_context(mode=ms.PYNATIVE_MODE)
            compare(got, net(x), rtol=1e-5)
            ms.set_context(mode=ms.GRAPH_MODE)
            for p in net.get_parameters():
                np.testing.assert_allclose(after[p.name], p.asnumpy(), rtol=1e-5, atol=1e-6)
        assert len(ms.explain_recompiles(net)) == compiled


def test_a_training_step_with_written_parameters():
    w = ms.Parameter(ms.Tensor(np.ones((4, 1), np.float32)), name="w")

    def step(x):
        g = ms.grad(lambda w: (ops.matmul(x, w) ** 2).sum())(w)
        ops.assign(w, w - 0.01 * g)
        return (g**2).sum()

    f = ms.jit(step, dynamic=1)
    other = w.asnumpy()
    for n in (5, 6, 7, 8, 3):
        x = data(n, 4)
        f(x)
        other = other - np.float32(0.01) * 2 * x.asnumpy().T @ (x.asnumpy() @ other)
        np.testing.assert_allclose(w.asnumpy(), other, rtol=1e-4)
    assert len(f.compilations) == 3


def test_a_gradient_taken_from_outside():
    f = ms.jit(lambda x: (x * x).sum(), dynamic=1)
    for n in (3, 5, 6):
        x = data(n, 2)
        np.testing.assert_allclose(ms.grad(f)(x).asnumpy(), 2 * x.asnumpy(), rtol=1e-6)


# -- declarations -----------------------------------------------------------------------------------------


def test_tensors_without_data():
    t = ms.Tensor(shape=[None, 3], dtype=ms.float32)
    assert t.shape == (-1, 3)
    assert t.dtype is ms.float32
    assert repr(t) == "Tensor(shape=[-1, 3], dtype=Float32, no data)"
    with pytest.raises(StateError, match="no data"):
        t.asnumpy()
    with pytest.raises(StateError, match="input 0 has a shape and a dtype but no data"):
        t + 1
    with pytest.raises(ArgumentValueError, match="'shape' got 'a'"):
        ms.Tensor(shape=["a"], dtype=ms.float32)


def test_symbols():
    assert repr(ms.Symbol(max=10, min=2, divisor=4, remainder=1)) == "Symbol(max=10, min=2, divisor=4, remainder=1)"
    assert ms.Symbol(max=1, min=2).to_dict() == {"min": 2}
    assert "id" in ms.Symbol(unique=True).to_dict()
    for bad in ({"divisor": 0}, {"min": 0}, {"remainder": 5, "divisor": 4}):
        with pytest.raises(ArgumentValueError):
            ms.Symbol(**bad)
    for bad in ({"max": "a"}, {"unique": 1}, {"min": True}):
        with pytest.raises(ArgumentTypeError):
            ms.Symbol(**bad)


def test_set_inputs_is_checked():
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.Dense(4, 2)
    spec = ms.Tensor(shape=[None, 4], dtype=ms.float32)
    with pytest.raises(ArgumentValueError, match="by position and by name"):
        net.set_inputs(spec, x=spec)
    with pytest.raises(ArgumentValueError, match="'y' got a value"):
        net.set_inputs(y=spec)
    with pytest.raises(ArgumentValueError, match="3 inputs"):
        net.set_inputs(spec, spec, spec)
    net.set_inputs(x=spec)
    assert net(data(3, 4)).shape == (3, 2)
    with pytest.raises(ShapeError, match=r"got float32\[3\]; it takes float32\[None, 4\], as set_inputs says"):
        net(data(3))


# -- Model ------------------------------------------------------------------------------------------------


def test_a_ragged_last_batch_trains_as_in_eager_mode():
    def train(mode):
        ms.set_context(mode=mode)
        ms.set_seed(1)
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((18, 4)).astype(np.float32), rng.standard_normal((18, 1)).astype(np.float32)
        rows = [(x[i : i + 8], y[i : i + 8]) for i in range(0, 18, 8)]
        net = nn.SequentialCell(nn.Dense(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dense(6, 1))
        losses = []

        class Keep(ms.Callback):
            def on_train_step_end(self, run_context):
                losses.append(float(run_context.original_args().net_outputs))

        model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.05, 0.9), metrics={"loss"})
        model.train(3, rows, callbacks=Keep())
        evaluated = model.eval(rows)["loss"]
        compiled = len(ms.explain_recompiles(model.train_network))
        return losses, evaluated, [p.asnumpy() for p in net.get_parameters()], compiled

    eager, graph = train(ms.PYNATIVE_MODE), train(ms.GRAPH_MODE)
    assert len(graph[0]) == 9
    np.testing.assert_allclose(graph[0], eager[0], rtol=1e-5)
    np.testing.assert_allclose(graph[1], eager[1], rtol=1e-5)
    for a, b in zip(graph[2], eager[2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert graph[3] == 2


# -- mutable ----------------------------------------------------------------------------------------------


def test_mutable_numbers_compile_once():
    f = ms.jit(lambda x, pair, table: x * pair[0] + table["k"][0])
    for k in (1, 2, 3):
        got = f(data(2) * 0 + 1, ms.mutable((k, 5)), ms.mutable({"k": [0.5 * k]}))
        np.testing.assert_allclose(got.asnumpy(), np.full(2, k * 1.5))
    assert len(f.compilations) == 1
    g = ms.jit(lambda x, n: x * len(range(n)))
    assert [float(g(data(1) * 0 + 1, ms.mutable(n))[0]) for n in (1, 2, 3, 2)] == [1, 2, 3, 2]


def test_mutable_values():
    t = data(2)
    assert ms.mutable(t) is t
    assert ms.mutable([1, (2.5, {"a": True})]) == [1, (2.5, {"a": True})]
    assert isinstance(ms.mutable(3), int)
    assert ms.mutable((t, t), True) == (t, t)
    for bad in ("s", None, (1, "s"), object()):
        with pytest.raises(ArgumentTypeError, match="'input_data' got"):
            ms.mutable(bad)
    with pytest.raises(ArgumentTypeError, match="a tuple or list"):
        ms.mutable(5, True)
    with pytest.raises(ArgumentValueError, match="2 types or shapes"):
        ms.mutable((t, data(3)), True)
    with pytest.raises(ArgumentTypeError, match="'dynamic_len'"):
        ms.mutable((1, 2), "x")
    loop = [1]
    loop.append(loop)
    with pytest.raises(ArgumentTypeError, match="contains itself"):
        ms.mutable(loop)
