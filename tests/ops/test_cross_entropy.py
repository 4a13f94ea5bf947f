"""Cross entropy as users call it: both kinds of target, weights, smoothing, ignored places, messages."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentValueError, DTypeError, OutOfRangeError, ShapeError
from mycelia.ops.cross_entropy import (
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)

RNG = np.random.default_rng(6)
X, Y = RNG.standard_normal((4, 3)), np.array([0, 2, 1, 2])
W, P = np.array([0.5, 2.0, 1.0]), RNG.dirichlet(np.ones(3), 4)
IMAGE, PLACES = RNG.standard_normal((2, 3, 4, 5)), RNG.integers(0, 3, (2, 4, 5))


@pytest.mark.torch
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weight", [None, W])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize(("x", "y"), [(X, Y), (IMAGE, PLACES), (X[0], np.array(1)), (X, P)])
def test_against_torch(x, y, weight, smoothing, reduction):
    torch = pytest.importorskip("torch")
    wanted_weight = None if weight is None else torch.from_numpy(weight)
    t = torch.from_numpy(x).requires_grad_()
    options = {"reduction": reduction, "label_smoothing": smoothing}
    if y.dtype.kind == "i":
        options["ignore_index"] = 1
    want = torch.nn.functional.cross_entropy(t, torch.from_numpy(y), wanted_weight, **options)
    scaled = want.sum() * 3
    scaled.backward()
    given = None if weight is None else Tensor(weight)

    def loss(x):
        return ops.cross_entropy(x, Tensor(y), given, **options)

    np.testing.assert_allclose(loss(Tensor(x)).asnumpy(), want.detach().numpy(), rtol=1e-9, atol=1e-12)
    slope = ms.grad(lambda x: loss(x).sum() * 3)(Tensor(x))
    np.testing.assert_allclose(slope.asnumpy(), t.grad.numpy(), rtol=1e-8, atol=1e-12)


@pytest.mark.torch
def test_nll_loss_against_torch():
    torch = pytest.importorskip("torch")
    for reduction in ("none", "mean", "sum"):
        got = ops.nll_loss(Tensor(IMAGE), Tensor(PLACES), Tensor(W), 1, reduction)
        want = torch.nn.functional.nll_loss(*map(torch.from_numpy, (IMAGE, PLACES, W)), None, 1, None, reduction)
        np.testing.assert_allclose(got.asnumpy(), want.numpy(), rtol=1e-12)


def test_labels_of_every_integer_dtype():
    want = ops.cross_entropy(Tensor(X), Tensor(Y)).item()
    for dtype in (ms.int32, ms.int8, ms.uint8):
        assert ops.cross_entropy(Tensor(X), Tensor(Y, dtype)).item() == pytest.approx(want)
    assert ops.cross_entropy(X, Y).item() == pytest.approx(want)
    assert ops.cross_entropy(Tensor(X, ms.float16), Tensor(Y)).dtype is ms.float16


def test_nothing_counts():
    assert np.isnan(ops.cross_entropy(Tensor(X), Tensor([-100] * 4)).item())
    assert ops.cross_entropy(Tensor(X), Tensor([-100] * 4), reduction="sum").item() == 0


@pytest.mark.parametrize("label", [-1, 3, -3, 1000])
def test_a_label_that_is_no_class_is_refused(label):
    labels = Tensor([0, label, 1, 2])
    takes = f"'target' got the label {label}; it takes classes from 0 to 2, or -100 for what is ignored"
    for loss in (ops.cross_entropy, ops.nll_loss, ms.nn.CrossEntropyLoss(), ms.nn.NLLLoss()):
        with pytest.raises(OutOfRangeError, match=takes):
            loss(Tensor(X), labels)
    with pytest.raises(OutOfRangeError, match="'labels' got the label"):
        sparse_softmax_cross_entropy_with_logits(Tensor(X), labels)
    kept = ops.cross_entropy(Tensor(X), labels, ignore_index=label, reduction="sum").item()
    others = ops.cross_entropy(Tensor(X[[0, 2, 3]]), Tensor([0, 1, 2]), reduction="sum").item()
    assert kept == pytest.approx(others)
    with pytest.raises(OutOfRangeError, match="as there are no classes"):
        ops.cross_entropy(ops.zeros((1, 0)), Tensor([label]))


@pytest.mark.parametrize("label", [-1, 3])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weight", [None, Tensor(W)])
def test_such_a_label_in_a_graph_gives_nan_in_the_loss_and_its_gradient(label, smoothing, weight):
    def losses(x, y):
        return ops.cross_entropy(x, y, weight, reduction="none", label_smoothing=smoothing)

    x, y = Tensor(X), Tensor([0, label, 1, 2])
    assert np.isnan(ms.jit(losses)(x, y).asnumpy()).tolist() == [False, True, False, False]
    slopes = ms.jit(ms.grad(lambda x, y: losses(x, y).sum()))(x, y).asnumpy()
    assert np.isnan(slopes).tolist() == [[False] * 3, [True] * 3, [False] * 3, [False] * 3]
    mean = ms.jit(lambda x, y: ops.cross_entropy(x, y, weight, label_smoothing=smoothing))
    assert np.isnan(mean(x, y).item())
    assert np.isnan(ms.jit(ms.grad(lambda x: ops.nll_loss(x, y, reduction="sum")))(x).asnumpy()[1]).all()


def test_rows_outside_count_for_nothing_in_softmax_cross_entropy_with_logits():
    loss = ms.nn.SoftmaxCrossEntropyWithLogits(sparse=True)(Tensor(X), Tensor([0, -1, 3, 2])).asnumpy()
    assert (loss[1:3] == 0).all()
    assert (loss[[0, 3]] > 0).all()


def test_extreme_logits_keep_a_finite_loss():
    x = Tensor([[1000.0, 0.0], [0.0, -1000.0]])
    assert ops.cross_entropy(x, Tensor([1, 1]), reduction="none").tolist() == [1000.0, 1000.0]
    slope = ms.grad(lambda x: ops.cross_entropy(x, Tensor([1, 1]), reduction="sum"))(x)
    assert slope.tolist() == [[1.0, -1.0], [1.0, -1.0]]


def test_forms_of_the_operator_classes():
    loss, gradient = softmax_cross_entropy_with_logits(Tensor(X), Tensor(P))
    softmax = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    np.testing.assert_allclose(gradient.asnumpy(), softmax - P, rtol=1e-12)
    np.testing.assert_allclose(loss.asnumpy(), -(P * np.log(softmax)).sum(1), rtol=1e-12)
    mean = sparse_softmax_cross_entropy_with_logits(Tensor(X), Tensor(Y))
    assert mean.item() == pytest.approx(-np.log(softmax[np.arange(4), Y]).mean())
    slope = sparse_softmax_cross_entropy_with_logits(Tensor(X), Tensor(Y), True)
    np.testing.assert_allclose(slope.asnumpy(), (softmax - np.eye(3)[Y]) / 4, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ops.cross_entropy(Tensor(X), Tensor(Y[:2])), ShapeError, r"'target' got shape \(2,\).*\(4,\)"),
        (lambda: ops.cross_entropy(Tensor(X), Tensor(P[:2])), ShapeError, "class indices of an integer dtype"),
        (lambda: ops.cross_entropy(Tensor(X), Tensor(Y), Tensor(W[:2])), ShapeError, "a value a class"),
        (lambda: ops.cross_entropy(Tensor(X), Tensor(Y), reduction="avg"), ArgumentValueError, "'none', 'mean'"),
        (lambda: ops.cross_entropy(Tensor(X), Tensor(Y), label_smoothing=2.0), ArgumentValueError, "0 to 1"),
        (lambda: ops.nll_loss(Tensor(X), Tensor(P)), DTypeError, "'target' got dtype Float64"),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "test_cross_entropy.py" in str(caught.value)
