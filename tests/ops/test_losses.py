"""Losses as users call them, against torch; reductions, special values, messages."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError

RNG = np.random.default_rng(7)
A, B, C = (RNG.standard_normal((4, 3)) for _ in range(3))
P, Q, V = RNG.uniform(0.05, 0.95, (4, 3)), RNG.uniform(0, 1, (4, 3)), RNG.uniform(0.1, 2, (4, 3))
S, ROWS = np.sign(RNG.standard_normal((4, 3))), np.sign(RNG.standard_normal(4))
W, LABELS = np.array([0.5, 2.0, 1.0]), np.array([0, 2, 1, 2])
LISTS, BITS = np.array([[0, 2, -1], [1, -1, 0], [2, 1, 0], [-1, 0, 1]]), (P > 0.5).astype(np.float64)

CASES = [
    ("binary_cross_entropy", (P, Q), {"weight": V}),
    ("binary_cross_entropy_with_logits", (A * 20, Q), {}),
    ("binary_cross_entropy_with_logits", (A, Q), {"weight": V, "pos_weight": W}),
    ("mse_loss", (A, B), {}), ("l1_loss", (A, B), {}), ("smooth_l1_loss", (A, B), {"beta": 0.5}),
    ("smooth_l1_loss", (A, B), {"beta": 0.0}), ("huber_loss", (A, B), {"delta": 0.7}), ("kl_div", (A, P), {}),
    ("kl_div", (A, np.log(P)), {"log_target": True}), ("soft_margin_loss", (A, S), {}),
    ("hinge_embedding_loss", (A, S), {"margin": 0.7}), ("margin_ranking_loss", (A, B, S), {"margin": 0.3}),
    ("cosine_embedding_loss", (A, B, ROWS), {"margin": 0.1}), ("triplet_margin_loss", (A, B, C), {}),
    ("triplet_margin_loss", (A, B, C), {"p": 1, "swap": True, "margin": 2.0}), ("gaussian_nll_loss", (A, B, V), {}),
    ("gaussian_nll_loss", (A, B, V), {"full": True}), ("multi_margin_loss", (A, LABELS), {"p": 2, "weight": W}),
    ("multilabel_margin_loss", (A, LISTS), {}), ("multilabel_soft_margin_loss", (A, BITS), {"weight": W}),
]  # fmt: skip


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(("name", "arrays", "options"), CASES)
def test_against_torch(name, arrays, options, reduction):
    torch = pytest.importorskip("torch")

    def torched(value):
        return torch.from_numpy(value) if isinstance(value, np.ndarray) else value

    x = torched(arrays[0]).clone().requires_grad_()
    rest = [torched(a) for a in arrays[1:]]
    given = {k: torched(v) for k, v in options.items()}
    want = getattr(torch.nn.functional, name)(x, *rest, **given, reduction=reduction)
    want.sum().backward()
    ours = {k: Tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}

    def loss(x):
        return getattr(ops, name)(x, *map(Tensor, arrays[1:]), **ours, reduction=reduction)

    np.testing.assert_allclose(loss(Tensor(arrays[0])).asnumpy(), want.detach().numpy(), rtol=1e-6, atol=1e-8)
    slope = ms.grad(lambda x: loss(x).sum())(Tensor(arrays[0]))
    np.testing.assert_allclose(slope.asnumpy(), x.grad.numpy(), rtol=1e-6, atol=1e-8)


def test_default_reductions():
    a, b = Tensor(A), Tensor(B)
    assert ops.smooth_l1_loss(a, b).shape == (4, 3)
    for name in ("mse_loss", "l1_loss", "huber_loss", "kl_div"):
        assert getattr(ops, name)(a, b).shape == ()
    assert ops.kl_div(a, Tensor(P), "batchmean").item() == pytest.approx(ops.kl_div(a, Tensor(P), "sum").item() / 4)


def test_probabilities_of_zero_and_one():
    # values of MindSpore 2.10, which takes logarithms of at least 1e-12
    x, t = Tensor([0.0, 1.0, 0.0, 1.0]), Tensor([1.0, 0.0, 0.0, 1.0])
    loss = ops.binary_cross_entropy(x, t, reduction="none").asnumpy()
    np.testing.assert_allclose(loss, [27.631021, 27.631021, 0, 0], rtol=1e-6)
    slope = ms.grad(lambda x: ops.binary_cross_entropy(x, t, reduction="sum"))(Tensor([0.0, 1.0, 0.0, 1.0], ms.float16))
    assert np.isfinite(slope.asnumpy()[2:]).all()


def test_targets_of_zero_have_no_divergence():
    x = Tensor([[-1.0, -np.inf]])
    assert ops.kl_div(x, Tensor([[1.0, 0.0]]), "sum").item() == 1.0
    slope = ms.grad(lambda t: ops.kl_div(Tensor([[-1.0, -2.0]]), t, "sum"))(Tensor([[0.0, 1.0]]))
    assert slope.tolist() == [[0.0, 3.0]]


def test_integers_and_broadcasting():
    assert ops.mse_loss(Tensor([1, 2]), Tensor([1, 4])).item() == 2.0
    assert ops.l1_loss(Tensor(A), 0.0, "none").shape == (4, 3)
    assert ops.mse_loss(ops.zeros((0,)), ops.zeros((0,)), "sum").item() == 0


@pytest.mark.torch
def test_ctc_against_torch():
    torch = pytest.importorskip("torch")
    logs = torch.log_softmax(torch.from_numpy(RNG.standard_normal((12, 3, 5))), -1).requires_grad_()
    labels, frames, lengths = np.array([[1, 2, 2, 3], [4, 4, 0, 0], [1, 0, 0, 0]]), [12, 9, 2], [4, 2, 1]
    for reduction in ("none", "mean", "sum"):
        want = torch.nn.functional.ctc_loss(
            logs, torch.from_numpy(labels), torch.tensor(frames), torch.tensor(lengths), reduction=reduction
        )
        x = Tensor(logs.detach().numpy())
        got, _ = ops.ctc_loss(x, Tensor(labels), Tensor(frames), Tensor(lengths), reduction=reduction)
        np.testing.assert_allclose(got.asnumpy(), want.detach().numpy(), rtol=1e-9)


def test_ctc_of_an_impossible_sequence():
    logs = ops.log_softmax(Tensor(RNG.standard_normal((2, 1, 3))))
    args = logs, Tensor([[1, 1]]), Tensor([2]), Tensor([2])
    assert ops.ctc_loss(*args, reduction="sum")[0].item() == np.inf
    assert ops.ctc_loss(*args, reduction="sum", zero_infinity=True)[0].item() == 0
    slope = ms.grad(lambda x: ops.ctc_loss(x, *args[1:], reduction="sum", zero_infinity=True)[0])(logs)
    assert not slope.asnumpy().any()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ops.mse_loss(Tensor(A), Tensor(A[:2])), ShapeError, "'target' got shape"),
        (lambda: ops.l1_loss(Tensor(A), Tensor(B), "avg"), ArgumentValueError, "'none', 'mean', 'sum'"),
        (lambda: ops.huber_loss(Tensor(A), Tensor(B), delta=0.0), ArgumentValueError, "positive"),
        (lambda: ops.smooth_l1_loss(Tensor(A), Tensor(B), -1.0), ArgumentValueError, "at least 0"),
        (lambda: ops.hinge_embedding_loss(Tensor(A), Tensor(S), "x"), ArgumentTypeError, "'margin' got str"),
        (lambda: ops.cosine_embedding_loss(Tensor(A), Tensor(B), Tensor(ROWS), 2.0), ArgumentValueError, "-1 to 1"),
        (lambda: ops.cosine_embedding_loss(Tensor(A), Tensor(B), Tensor(S)), ShapeError, "one value for each row"),
        (lambda: ops.multi_margin_loss(Tensor(A), Tensor(LABELS), 3), ArgumentValueError, "1 or 2"),
        (lambda: ops.multi_margin_loss(Tensor(A), Tensor(A)), DTypeError, "integer"),
        (lambda: ops.multilabel_soft_margin_loss(Tensor(A), Tensor(A[:2])), ShapeError, "'target'"),
        (lambda: ops.gaussian_nll_loss(Tensor(A), Tensor(B), Tensor(V), eps=0), ArgumentValueError, "positive"),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "test_losses.py" in str(caught.value)
