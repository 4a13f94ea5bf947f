"""``mint``: every recorded argument name is taken, and the values are torch's, whose conventions it follows."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from tests.oracles import legacy_cases

import mycelia as ms
from mycelia import mint
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError

RECORD = json.loads((Path(legacy_cases.__file__).parent / "legacy_classes.json").read_text())["mint"]
F = mint.nn.functional
A = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)
RNG = np.random.default_rng(7)
IMAGE = RNG.normal(size=(2, 3, 6, 7)).astype(np.float32)


def resolve(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"mycelia.{module}"), name, None)


def taken(fn):
    """Names of arguments a function takes, those of :func:`mycelia.ops.keywords.renaming` included."""
    names, free = set(), False
    for p in inspect.signature(fn).parameters.values():
        names.add(p.name)
        free = free or p.kind is p.VAR_KEYWORD
    while hasattr(fn, "__wrapped__"):
        names |= set(inspect.getclosurevars(fn).nonlocals.get("further", {}))
        fn = fn.__wrapped__
    return names, free


#: Recorded names that are helpers MindSpore's modules happen to hold.
HELPERS = {
    "mint.cdist_", "mint.equal_ext_op", "mint.squeeze_impl", "mint.special.round_op", "mint.constexpr", "mint.item",
    "mint.jit_forbidden_register", "mint.jit_view_unsupported", "mint.flatten_ext", "mint.softmax_ext",
    "mint.nn.functional.adaptive_avg_pool3d_ext", "mint.nn.functional.broadcast_to", "mint.nn.functional.clamp",
    "mint.nn.functional.elu_ext", "mint.nn.functional.hardtanh_op", "mint.nn.functional.inplace_elu",
    "mint.nn.functional.inplace_silu", "mint.nn.functional.norm_ext", "mint.nn.functional.silu_func",
    "mint.nn.functional.threshold_op",
}  # fmt: skip


@pytest.mark.parametrize("path", sorted(set(RECORD) - HELPERS))
def test_arguments_have_mindspores_names(path):
    fn = resolve(path)
    assert fn is not None, "missing"
    names, free = taken(fn)
    if not free and not {"mint.arcsin", "mint.isnan"} & {path}:
        assert set(RECORD[path]) <= names


def test_nothing_recorded_is_missing():
    missing = {path for path in RECORD if resolve(path) is None} - HELPERS
    assert missing == set()


def check(made, wanted, tolerance=1e-5):
    """Tensors (or tuples of them) against torch's: values and dtypes."""
    if isinstance(made, tuple):
        assert len(made) == len(wanted)
        for m, w in zip(made, wanted, strict=True):
            check(m, w, tolerance)
        return
    array = wanted.numpy()
    assert made.shape == array.shape
    assert made.dtype.np == array.dtype
    np.testing.assert_allclose(made.asnumpy(), array, rtol=tolerance, atol=tolerance)


CASES = {
    "all": (lambda m, x: m.all(x > 0, dim=1, keepdim=True)),
    "any": (lambda m, x: m.any(x > 3, 0)),
    "amax": (lambda m, x: m.amax(x, (0, 1), True)),
    "amin": (lambda m, x: m.amin(x, dim=1)),
    "argmax": (lambda m, x: m.argmax(x, dim=1)),
    "argmin": (lambda m, x: m.argmin(x, 0, keepdim=True)),
    "argsort": (lambda m, x: m.argsort(x, dim=1, descending=True)),
    "count": (lambda m, x: m.count_nonzero(x - 3, dim=0)),
    "sort": (lambda m, x: tuple(m.sort(x, dim=1, descending=True))),
    "topk": (lambda m, x: tuple(m.topk(x, 2, dim=1))),
    "max": (lambda m, x: m.max(x)),
    "max dim": (lambda m, x: tuple(m.max(x, 1))),
    "max two": (lambda m, x: m.max(x, x * x)),
    "min dim": (lambda m, x: tuple(m.min(x, dim=0, keepdim=True))),
    "median": (lambda m, x: m.median(x)),
    "median dim": (lambda m, x: tuple(m.median(x, 1))),
    "mean": (lambda m, x: m.mean(x, dim=1, keepdim=True)),
    "sum": (lambda m, x: m.sum(x, dim=(0, 1))),
    "prod": (lambda m, x: m.prod(x, 1)),
    "nansum": (lambda m, x: m.nansum(x / 0, 1)),
    "std": (lambda m, x: m.std(x, dim=1)),
    "std 0": (lambda m, x: m.std(x, 1, correction=0)),
    "var": (lambda m, x: m.var(x)),
    "var_mean": (lambda m, x: tuple(m.var_mean(x, dim=0, correction=0))),
    "std_mean": (lambda m, x: tuple(m.std_mean(x, 1))),
    "logsumexp": (lambda m, x: m.logsumexp(x, 1)),
    "norm": (lambda m, x: m.norm(x, dim=1)),
    "cumsum": (lambda m, x: m.cumsum(x, dim=1)),
    "cummax": (lambda m, x: tuple(m.cummax(x, dim=1))),
    "diff": (lambda m, x: m.diff(x, dim=1)),
    "flatten": (lambda m, x: m.flatten(x)),
    "cat": (lambda m, x: m.cat((x, x), dim=1)),
    "stack": (lambda m, x: m.stack([x, x], dim=1)),
    "chunk": (lambda m, x: tuple(m.chunk(x, 2, dim=1))),
    "split": (lambda m, x: tuple(m.split(x, 2, dim=1))),
    "narrow": (lambda m, x: m.narrow(x, 1, 1, 2)),
    "transpose": (lambda m, x: m.transpose(x, 0, 1)),
    "permute": (lambda m, x: m.permute(x, (1, 0))),
    "select": (lambda m, x: m.select(x, 1, 2)),
    "unbind": (lambda m, x: tuple(m.unbind(x, 1))),
    "repeat": (lambda m, x: m.repeat_interleave(x, 2, dim=1)),
    "roll": (lambda m, x: m.roll(x, 1, 1)),
    "eq": (lambda m, x: m.eq(x, 3)),
    "equal": (lambda m, x: m.eq(x, x) if m.equal(x, x) else x),
    "clone": (lambda m, x: m.clone(x)),
    "mv": (lambda m, x: m.mv(x, x[0])),
    "softmax": (lambda m, x: m.softmax(x, 0)),
    "remainder": (lambda m, x: m.remainder(x, 2)),
    "div": (lambda m, x: m.div(x, 2, rounding_mode="floor")),
    "add": (lambda m, x: m.add(x, x, alpha=2)),
    "sub": (lambda m, x: m.sub(x, x, alpha=3)),
    "where": (lambda m, x: m.where(x > 0, x, 0)),
    "tril": (lambda m, x: m.tril(x, 1)),
    "addcmul": (lambda m, x: m.addcmul(x, x, x, value=2)),
    "vector_norm": (lambda m, x: m.linalg.vector_norm(x, 1, dim=0)),
    "matrix_norm": (lambda m, x: m.linalg.matrix_norm(x)),
    "inv": (lambda m, x: m.linalg.inv(x[:, :2])),
    "round": (lambda m, x: m.special.round(x)),
    "log_softmax": (lambda m, x: m.special.log_softmax(x, 1)),
    "full": (lambda m, x: m.full((2, 2), 1.5)),
    "linspace": (lambda m, x: m.linspace(0, 1, 5)),
    "arange": (lambda m, x: m.arange(1, 7, 2)),
    "ones_like": (lambda m, x: m.ones_like(x)),
    "zeros": (lambda m, x: m.zeros((2, 3))),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_functions_are_torchs(name):
    torch = pytest.importorskip("torch")
    check(CASES[name](mint, ms.Tensor(A)), CASES[name](torch, torch.from_numpy(A)))


def _pairs(*arrays):
    """The same arrays as tensors of both."""
    import torch

    return [ms.Tensor(a) for a in arrays], [torch.from_numpy(np.asarray(a)) for a in arrays]


@pytest.mark.torch
def test_functions_of_indices_are_torchs():
    torch = pytest.importorskip("torch")
    index = np.array([[0, 2], [1, 1]])
    (x, i, v), (tx, ti, tv) = _pairs(A, index, np.array([[10.0, 20.0], [30.0, 40.0]], np.float32))
    check(mint.gather(x, 1, i), torch.gather(tx, 1, ti))
    check(mint.scatter(x, 1, i[:1], v[:1]), torch.scatter(tx, 1, ti[:1], tv[:1]))
    check(mint.scatter_add(x, dim=1, index=i, src=v), torch.scatter_add(tx, 1, ti, tv))
    check(mint.index_select(x, dim=1, index=i[0]), torch.index_select(tx, 1, ti[0]))
    check(mint.index_add(x, 1, i[0], v, alpha=2), torch.index_add(tx, 1, ti[0], tv, alpha=2))
    check(F.one_hot(i), torch.nn.functional.one_hot(ti))
    check(F.one_hot(i, 5), torch.nn.functional.one_hot(ti, 5))
    check(mint.addr_(ms.Tensor(A), x[:, 0], x[0], beta=2, alpha=3), torch.addr(tx, tx[:, 0], tx[0], beta=2, alpha=3))


@pytest.mark.torch
@pytest.mark.parametrize("padding", [1, (2, 0), "valid", "same"])
def test_convolutions_are_torchs(padding):
    torch = pytest.importorskip("torch")
    weight, bias = RNG.normal(size=(4, 3, 3, 3)).astype(np.float32), np.arange(4, dtype=np.float32)
    (x, w, b), (tx, tw, tb) = _pairs(IMAGE, weight, bias)
    check(F.conv2d(x, w, b, padding=padding), torch.nn.functional.conv2d(tx, tw, tb, padding=padding), 1e-4)
    one = padding if not isinstance(padding, tuple) else 2
    made = F.conv1d(x[:, :, 0], w[:, :, 0], b, padding=one, dilation=2)
    check(made, torch.nn.functional.conv1d(tx[:, :, 0], tw[:, :, 0], tb, padding=one, dilation=2), 1e-4)


@pytest.mark.torch
def test_layers_of_functions_are_torchs():
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    (x,), (tx,) = _pairs(IMAGE)
    check(F.avg_pool2d(x, 2), functional.avg_pool2d(tx, 2))
    check(
        F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), functional.avg_pool2d(tx, 3, 2, 1, count_include_pad=False)
    )
    check(F.avg_pool1d(x[0], 2), functional.avg_pool1d(tx[0], 2))
    check(F.max_pool2d(x, 2, ceil_mode=True), functional.max_pool2d(tx, 2, ceil_mode=True))
    made = F.max_pool2d(x, 3, 2, 1, 1, False, True)
    check(made, functional.max_pool2d(tx, 3, 2, 1, 1, False, True))
    for rank in (1, 2, 3, 4):
        part = (0,) * (4 - rank)
        with pytest.warns(UserWarning, match="Implicit dimension choice"):
            wanted = functional.softmax(tx[part], dim=None)
        check(F.softmax(x[part]), wanted)
    check(F.pad(x, (1, 2), value=3.0), functional.pad(tx, (1, 2), value=3.0))
    (p, t, w), (tp, tt, tw) = _pairs(*[np.array(v, np.float32) for v in ([0.2, 0.7], [0.0, 1.0], [1.0, 2.0])])
    check(F.binary_cross_entropy(p, t, w), functional.binary_cross_entropy(tp, tt, tw))
    made = F.binary_cross_entropy_with_logits(p, t, w, "sum", w)
    check(made, functional.binary_cross_entropy_with_logits(tp, tt, tw, reduction="sum", pos_weight=tw))
    check(F.kl_div(p, t, reduction="sum"), functional.kl_div(tp, tt, reduction="sum"))
    check(F.smooth_l1_loss(p, t, beta=0.5), functional.smooth_l1_loss(tp, tt, beta=0.5))
    check(F.nll_loss(ms.Tensor(A), ms.Tensor([2, 0])), functional.nll_loss(torch.from_numpy(A), torch.tensor([2, 0])))
    (c, k, b), (tc, tk, tb) = _pairs(IMAGE[0], RNG.normal(size=(3, 7, 2)).astype(np.float32), np.ones(2, np.float32))
    check(mint.conv_tbc(c, k, b, 1), torch.conv_tbc(tc, tk, tb, 1), 1e-4)


@pytest.mark.torch
def test_batch_norm_in_three_steps_is_that_of_the_whole():
    torch = pytest.importorskip("torch")
    scale, shift = np.array([1.0, 2.0, 3.0], np.float32), np.array([0.5, 0.0, -1.0], np.float32)
    norm = torch.nn.BatchNorm2d(3)
    with torch.no_grad():
        norm.weight.copy_(torch.from_numpy(scale))
        norm.bias.copy_(torch.from_numpy(shift))
        wanted = norm(torch.from_numpy(IMAGE))
    parts = [mint.batch_norm_stats(ms.Tensor(part), 1e-5) for part in (IMAGE[:1], IMAGE[1:])]
    means, inverses = (mint.stack([p[i] for p in parts]) for i in (0, 1))
    running = ms.Tensor([0.0, 0.0, 0.0]), ms.Tensor([1.0, 1.0, 1.0])
    counts = ms.Tensor([42.0, 42.0])
    mean, inverse = mint.batch_norm_gather_stats_with_counts(
        ms.Tensor(IMAGE), means, inverses, *running, momentum=0.1, eps=1e-5, counts=counts
    )
    made = mint.batch_norm_elemt(ms.Tensor(IMAGE), ms.Tensor(scale), ms.Tensor(shift), mean, inverse)
    check(made, wanted, 1e-4)
    check(running[0], norm.running_mean, 1e-5)
    check(running[1], norm.running_var, 1e-5)


def test_inplace_overwrites():
    x = ms.Tensor([1.0, 2.0])
    assert F.dropout(x, 1.0, True, True) is x
    np.testing.assert_array_equal(x.asnumpy(), [0, 0])
    with pytest.raises(ArgumentTypeError, match="dropout: argument 'input' got list; it takes a Tensor"):
        F.dropout([1.0], inplace=True)


def test_random_numbers():
    ms.set_seed(1)
    assert mint.rand(2, 3, dtype=ms.float16).dtype is ms.float16
    assert mint.randn((2, 3), device="CPU").shape == (2, 3)
    assert mint.rand_like(ms.Tensor(A)).shape == A.shape
    assert mint.randn_like(ms.Tensor(A), dtype=ms.float64).dtype is ms.float64
    assert set(mint.randint(3, (40,)).tolist()) == {0, 1, 2}
    assert set(mint.randint(2, 4, size=(40,)).tolist()) == {2, 3}
    assert set(mint.randint(low=2, high=4, size=(40,)).tolist()) == {2, 3}
    assert set(mint.randint_like(ms.Tensor(A), 5, 6).reshape(-1).tolist()) == {5}
    assert sorted(mint.randperm(4).tolist()) == [0, 1, 2, 3]
    assert mint.bernoulli(ms.Tensor([0.0, 1.0])).tolist() == [0, 1]
    assert sorted(mint.multinomial(ms.Tensor([1.0, 2.0, 3.0]), 3).tolist()) == [0, 1, 2]
    assert mint.normal(1.0, 0.0, (3,)).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: mint.max(ms.Tensor(A), axis=1), ArgumentTypeError, "max: argument 'axis'"),
        (lambda: mint.randint(3), ArgumentTypeError, "randint: argument 'high' got 1 values"),
        (lambda: mint.randint(3, (2,), colour=1), ArgumentTypeError, "randint: argument 'high'"),
        (
            lambda: F.one_hot(ms.Tensor([3]), 2),
            ArgumentValueError,
            "one_hot: argument 'tensor' got indices from 3 to 3",
        ),
        (lambda: F.one_hot(ms.Tensor([-1])), ArgumentValueError, "indices of at least 0"),
        (
            lambda: F.conv2d(ms.Tensor(IMAGE), ms.Tensor(IMAGE), padding="full"),
            ArgumentValueError,
            "argument 'padding'",
        ),
        (
            lambda: F.conv2d(ms.Tensor(IMAGE), ms.Tensor(IMAGE), padding="same", stride=2),
            ArgumentValueError,
            'got "same"; it takes numbers with stride 2',
        ),
        (lambda: mint.conv_tbc(ms.Tensor(A), ms.Tensor(A), None), ShapeError, "conv_tbc: argument 'input'"),
        (lambda: mint.batch_norm_stats(ms.Tensor([1.0]), 0.1), ShapeError, "batch_norm_stats: argument 'input'"),
        (lambda: mint.batch_norm_elemt(ms.Tensor(A)), ArgumentTypeError, "argument 'mean' got None"),
    ],
)
def test_refusals(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_layers_are_the_extended_ones():
    assert mint.nn.Dropout is ms.nn.DropoutExt
    assert mint.nn.LayerNorm is ms.nn.LayerNormExt
    assert mint.nn.Linear is ms.nn.Linear
    assert mint.nn.ReLU()(ms.Tensor([-1.0])).item() == 0
