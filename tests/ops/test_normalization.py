"""Layer, group, instance, RMS and batch normalization as users call them, and normalization by neighbours."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.ops.batch_normalization import batch_norm_training
from mycelia.ops.local_normalization import l2_normalize

RNG = np.random.default_rng(4)
X, W, B = RNG.standard_normal((3, 4, 5)), RNG.standard_normal(5), RNG.standard_normal(5)
GAMMA, BETA, MEAN = RNG.standard_normal(4), RNG.standard_normal(4), RNG.standard_normal(4)
VAR = RNG.uniform(0.5, 2.0, 4)


def close(got, want, rtol=1e-10):
    np.testing.assert_allclose(got.asnumpy(), want, rtol=rtol, atol=1e-10)


def normal(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def test_forms_of_layer_norm():
    close(ops.layer_norm(Tensor(X), 5), normal(X, -1))
    close(ops.layer_norm(Tensor(X), (5,), Tensor(W), Tensor(B), 1e-3), normal(X, -1, 1e-3) * W + B)
    close(ops.layer_norm(Tensor(X), (5,), None, Tensor(B)), normal(X, -1) + B)
    close(ops.layer_norm(Tensor(X), (5,), Tensor(W)), normal(X, -1) * W)
    close(ops.layer_norm(Tensor(X), [4, 5]), normal(X, (1, 2)))
    assert ops.layer_norm(Tensor([[1, 3]]), 2, eps=0).tolist() == [[-1.0, 1.0]]


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_layer_norm_against_torch(dtype):
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)
    x, w = torch.from_numpy(X * 100 + 300).to(kind), torch.from_numpy(W).to(kind)
    want = torch.nn.functional.layer_norm(x.double(), (5,), w.double()).numpy()
    got = ops.layer_norm(
        *(Tensor(t.float().numpy()).astype(getattr(ms, dtype)) for t in (x,)),
        (5,),
        Tensor(w.float().numpy()).astype(getattr(ms, dtype)),
    )
    step = {"float32": 1e-4, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    assert got.dtype is getattr(ms, dtype)
    np.testing.assert_allclose(got.astype(ms.float64).asnumpy(), want, rtol=step, atol=step)


def test_half_inputs_take_float32_parameters():
    y = ops.layer_norm(Tensor(X, ms.float16), (5,), Tensor(W, ms.float32), Tensor(B, ms.float32))
    assert y.dtype is ms.float16
    np.testing.assert_allclose(y.asnumpy(), normal(X, -1) * W + B, rtol=5e-3, atol=5e-3)
    with pytest.raises(DTypeError, match="'weight' got dtype Float64"):
        ops.layer_norm(Tensor(X, ms.float32), (5,), Tensor(W))


def test_group_and_instance_norm():
    split = normal(X.reshape(3, 2, 2, 5), (2, 3)).reshape(X.shape)
    close(ops.group_norm(Tensor(X), 2), split)
    scaled = split * GAMMA[:, None] + BETA[:, None]
    close(ops.group_norm(Tensor(X), 2, Tensor(GAMMA), Tensor(BETA)), scaled)
    close(ops.instance_norm(Tensor(X), Tensor(GAMMA)), normal(X, 2) * GAMMA[:, None])


def test_rms_norm():
    rstd = 1 / np.sqrt((X**2).mean(-1, keepdims=True) + 1e-6)
    y, r = ops.rms_norm(Tensor(X), Tensor(W))
    close(y, X * rstd * W)
    close(r, rstd)
    y, _, total = ops.add_rms_norm(Tensor(X), Tensor(X), Tensor(W))
    close(total, 2 * X)
    close(y, ops.rms_norm(Tensor(2 * X), Tensor(W))[0].asnumpy())
    y, mean, _, total = ops.add_layer_norm(Tensor(X), Tensor(X), Tensor(W), Tensor(B), additional_out=True)
    close(y, normal(2 * X, -1) * W + B)
    close(mean, 2 * X.mean(-1, keepdims=True))


def test_batch_norm_of_given_statistics():
    want = (X - MEAN[:, None]) / np.sqrt(VAR[:, None] + 1e-5)
    mean, var = Tensor(MEAN), Tensor(VAR)
    close(ops.batch_norm(Tensor(X), mean, var), want)
    close(ops.batch_norm(Tensor(X), mean, var, Tensor(GAMMA)), want * GAMMA[:, None])
    scaled = ops.batch_norm(Tensor(X), mean, var, Tensor(GAMMA), Tensor(BETA))
    close(scaled, want * GAMMA[:, None] + BETA[:, None])
    close(mean, MEAN)


def test_training_overwrites_the_running_statistics():
    mean, var = ms.Parameter(Tensor(MEAN), name="m"), ms.Parameter(Tensor(VAR), name="v")
    y = ops.batch_norm(Tensor(X), mean, var, Tensor(GAMMA), Tensor(BETA), training=True, momentum=0.3)
    close(y, normal(X, (0, 2)) * GAMMA[:, None] + BETA[:, None])
    close(mean.value(), 0.7 * MEAN + 0.3 * X.mean((0, 2)))
    close(var.value(), 0.7 * VAR + 0.3 * X.var((0, 2), ddof=1))
    close(ops.batch_norm(Tensor(X), None, None, training=True), normal(X, (0, 2)))


def test_training_writes_inside_a_graph():
    scale, shift = Tensor(GAMMA), Tensor(BETA)
    found = []
    for wrap in (lambda f: f, ms.jit):
        mean, var = Tensor(MEAN), Tensor(VAR)

        @wrap
        def step(x, mean=mean, var=var):
            return batch_norm_training(x, (scale, shift), mean, var, 0.1, 1e-5)

        made = [step(Tensor(X)), step(Tensor(X + 1)), mean, var]
        found.append([t.asnumpy() for t in made])
    for eager, graph in zip(*found, strict=True):
        np.testing.assert_allclose(graph, eager, rtol=1e-12)


def test_gradients_reach_second_order():
    def f(x):
        return (ops.batch_norm(x, None, None, Tensor(GAMMA), training=True) ** 3).sum()

    gradient, h = ms.grad(f), 1e-5
    direction = RNG.standard_normal(X.shape)
    twice = ms.grad(lambda x: (gradient(x) * Tensor(W)).sum())(Tensor(X)).asnumpy()
    ahead, back = (float((gradient(Tensor(X + s * h * direction)).asnumpy() * W).sum()) for s in (1, -1))
    np.testing.assert_allclose((twice * direction).sum(), (ahead - back) / (2 * h), rtol=1e-5)


def test_by_neighbours():
    x = X + 2
    close(l2_normalize(Tensor(x), 1), x / np.sqrt((x**2).sum(1, keepdims=True)))
    close(ops.normalize(Tensor(x), 1, (1, 2)), x / np.abs(x).sum((1, 2), keepdims=True))
    assert ops.normalize(Tensor([[0.0, 0.0]])).tolist() == [[0.0, 0.0]]
    # a value of MindSpore 2.10
    y = ops.lrn(Tensor(np.arange(24.0, dtype=np.float32).reshape(1, 6, 2, 2)), 2, 1.0, 0.5, 0.75)
    np.testing.assert_allclose(y.asnumpy()[0, 0, 0], [0.0, 0.0498543], rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: ops.layer_norm(x, (4,)), ShapeError, "last lengths of 'input'"),
        (lambda x: ops.layer_norm(x, (5,), Tensor(GAMMA)), ShapeError, r"'weight' got shape \(4,\)"),
        (lambda x: ops.layer_norm(x, (5,), eps=-1.0), ArgumentValueError, "not negative"),
        (lambda x: ops.group_norm(x, 3), ArgumentValueError, "divisor of the 4 channels"),
        (lambda x: ops.instance_norm(x[0]), ShapeError, "spatial"),
        (lambda x: ops.rms_norm(x, Tensor(GAMMA)), ShapeError, "last lengths"),
        (lambda x: ops.batch_norm(x, Tensor(W), Tensor(W)), ShapeError, "running_mean"),
        (lambda x: ops.batch_norm(x, None, None), ArgumentTypeError, "unless training"),
        (lambda x: ops.batch_norm(x, MEAN, VAR, training=True), ArgumentTypeError, "which training overwrites"),
        (lambda x: ops.batch_norm(x[:1, :, 0], None, None, training=True), ShapeError, "more than one value"),
        (lambda x: ops.batch_norm(x, Tensor(MEAN), Tensor(VAR), momentum=2.0), ArgumentValueError, "0 to 1"),
        (ops.lrn, ShapeError, "height, width"),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call(Tensor(X))
    assert "test_normalization.py" in str(caught.value)
