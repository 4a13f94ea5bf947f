"""Attention as users call it: masks, bands, layouts, grouped heads, dropout, messages."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError, UnsupportedError
from mycelia.ops.attention import scaled_dot_product_attention as attend

RNG = np.random.default_rng(10)
Q, K, V = (RNG.standard_normal((2, 4, n, 8)) for n in (5, 6, 6))


def close(got, want, rtol=1e-9):
    np.testing.assert_allclose(got.asnumpy(), want, rtol=rtol, atol=1e-10)


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"scale": 0.3},
        {"attn_mask": np.tri(5, 6, 1, bool)},
        {"attn_mask": RNG.standard_normal((4, 5, 6))},
    ],
)
def test_against_torch(options):
    torch = pytest.importorskip("torch")
    given = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    tensors = [torch.from_numpy(x).requires_grad_() for x in (Q, K, V)]
    want = torch.nn.functional.scaled_dot_product_attention(*tensors, **given)
    want.sin().sum().backward()
    ours = {k: Tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    close(attend(*map(Tensor, (Q, K, V)), **ours), want.detach().numpy())
    slopes = ms.grad(lambda q, k, v: attend(q, k, v, **ours).sin().sum(), (0, 1, 2))(*map(Tensor, (Q, K, V)))
    for got, x in zip(slopes, tensors, strict=True):
        close(got, x.grad.numpy(), 1e-7)


def test_any_number_of_leading_axes():
    whole = attend(Tensor(Q), Tensor(K), Tensor(V)).asnumpy()
    close(attend(Tensor(Q[0]), Tensor(K[0]), Tensor(V[0])), whole[0])
    close(attend(Tensor(Q[0, 0]), Tensor(K[0, 0]), Tensor(V[0, 0])), whole[0, 0])
    close(attend(*(Tensor(x[None]) for x in (Q, K, V))), whole[None])


def test_grouped_heads():
    few = (K[:, :2], V[:, :2])
    spread = [np.repeat(x, 2, 1) for x in few]
    want = attend(Tensor(Q), *map(Tensor, spread)).asnumpy()
    close(attend(Tensor(Q), *map(Tensor, few), enable_gqa=True), want)
    with pytest.raises(ShapeError, match="enable_gqa"):
        attend(Tensor(Q), *map(Tensor, few))


def test_a_row_that_may_see_nothing_is_zero():
    mask = np.ones((5, 6), bool)
    mask[2] = False
    y = attend(Tensor(Q), Tensor(K), Tensor(V), Tensor(mask))
    assert (y.asnumpy()[:, :, 2] == 0).all()
    slope = ms.grad(lambda v: attend(Tensor(Q), Tensor(K), v, Tensor(mask)).sum())(Tensor(V))
    assert np.isfinite(slope.asnumpy()).all()


def test_dropout_keeps_the_mean():
    ms.set_seed(0)
    x = ops.ones((1, 1, 400, 8))
    y = attend(x, x, x, dropout_p=0.5).asnumpy()
    assert len(np.unique(y)) > 1
    assert abs(y.mean() - 1) < 0.05
    np.testing.assert_allclose(attend(x, x, x).asnumpy(), 1, rtol=1e-5)


@pytest.mark.parametrize("layout", ["BSH", "SBH", "BNSD", "BSND"])
def test_layouts_of_flash_attention(layout):
    def laid(x):
        moved = {"BSH": (0, 2, 1, 3), "SBH": (2, 0, 1, 3), "BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3)}[layout]
        y = x.transpose(moved)
        return y.reshape(*y.shape[:2], -1) if layout.endswith("H") else y

    mask = np.triu(np.ones((5, 6)), 2)
    got = ops.flash_attention_score(
        *(Tensor(laid(x)) for x in (Q, K, V)),
        4,
        attn_mask=Tensor(mask, ms.uint8),
        scalar_value=0.3,
        input_layout=layout,
    )
    close(got, laid(attend(Tensor(Q), Tensor(K), Tensor(V), Tensor(mask == 0), scale=0.3).asnumpy()))
    grouped = ops.flash_attention_score(*(Tensor(laid(x)) for x in (Q, K[:, :2], V[:, :2])), 4, input_layout=layout)
    want = attend(Tensor(Q), Tensor(K[:, :2]), Tensor(V[:, :2]), scale=1.0, enable_gqa=True)
    close(grouped, laid(want.asnumpy()))


@pytest.mark.parametrize(
    ("options", "band"),
    [
        ({"sparse_mode": 2}, np.tri(5, 6)), ({"sparse_mode": 3}, np.tri(5, 6, 1)),
        ({"pre_tokens": 1, "next_tokens": 0}, np.tri(5, 6) - np.tri(5, 6, -2)),
        ({"sparse_mode": 4, "pre_tokens": 1, "next_tokens": 0}, np.tri(5, 6, 1) - np.tri(5, 6, -1)),
    ],
)  # fmt: skip
def test_bands_of_flash_attention(options, band):
    got = ops.flash_attention_score(*map(Tensor, (Q, K, V)), 4, input_layout="BNSD", **options)
    close(got, attend(*map(Tensor, (Q, K, V)), Tensor(band > 0), scale=1.0).asnumpy())


def test_a_given_drop_mask():
    kept = RNG.random((2, 4, 5, 6)) > 0.4
    got = ops.flash_attention_score(
        *map(Tensor, (Q, K, V)),
        4,
        real_shift=Tensor(Q[:, :, :, :6]),
        drop_mask=Tensor(kept),
        keep_prob=0.6,
        input_layout="BNSD",
    )
    scores = np.exp(Q @ K.swapaxes(2, 3) + Q[:, :, :, :6])
    close(got, (scores / scores.sum(-1, keepdims=True) * kept / 0.6) @ V)


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16])
def test_half_precision(dtype):
    tensors = [Tensor(x).astype(dtype) for x in (Q, K, V)]
    got = attend(*tensors)
    assert got.dtype is dtype
    exact = attend(*(t.astype(ms.float64) for t in tensors)).asnumpy()
    np.testing.assert_allclose(got.astype(ms.float64).asnumpy(), exact, atol=3e-2)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda q, k, v: attend(q, k[..., :3], v), ShapeError, "8 features"),
        (lambda q, k, v: attend(q, k, v[:, :, :3]), ShapeError, "length of 'key'"),
        (lambda q, k, v: attend(q, k, v, Tensor([True, False])), ShapeError, "broadcasts to"),
        (lambda q, k, v: attend(q, k, v, scale="x"), ArgumentTypeError, "'scale' got str"),
        (lambda q, k, v: ops.flash_attention_score(q, k, v, 4), ShapeError, "3 axes in layout BSH"),
        (lambda q, k, v: ops.flash_attention_score(q, k, v, 4, input_layout="TND"), UnsupportedError, "TND"),
        (lambda q, k, v: ops.flash_attention_score(q, k, v, 4, input_layout="X"), ArgumentValueError, "BNSD"),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call(*map(Tensor, (Q, K, V)))
    assert "test_attention.py" in str(caught.value)
