"""Layers beside torch's: what MindSpore cannot compute on a CPU, masks, lengths, gradients of tables."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
RNG = np.random.default_rng(5)


def data(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def close(ours, theirs, tolerance=2e-5):
    theirs = theirs.detach().numpy() if isinstance(theirs, torch.Tensor) else np.asarray(theirs)
    np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=tolerance, atol=tolerance)


def share(ours, theirs):
    """Give the parameters of a torch module to a layer, in order."""
    for p, q in zip(ours.get_parameters(), theirs.parameters(), strict=True):
        p.set_data(Tensor(q.detach().numpy()))


@pytest.mark.parametrize(("n", "shape"), [(1, (2, 3, 5)), (2, (2, 3, 4, 5)), (3, (2, 3, 2, 4, 5))])
def test_instance_norm(n, shape):
    x = data(*shape)
    ours = getattr(nn, f"InstanceNorm{n}d")(3)
    theirs = getattr(torch.nn, f"InstanceNorm{n}d")(3, affine=True)
    gamma, beta = data(3), data(3)
    ours.gamma.set_data(Tensor(gamma))
    ours.beta.set_data(Tensor(beta))
    theirs.weight.data, theirs.bias.data = torch.tensor(gamma), torch.tensor(beta)
    close(ours(Tensor(x)), theirs(torch.tensor(x)))
    assert not ours.moving_mean.asnumpy().any()
    close(ours.set_train()(Tensor(x)), theirs(torch.tensor(x)))
    axes = tuple(range(2, n + 2))
    np.testing.assert_allclose(ours.moving_mean.asnumpy(), 0.9 * x.mean((0, *axes)), rtol=1e-4, atol=1e-6)
    variance = x.var(axes, ddof=1).mean(0)
    np.testing.assert_allclose(ours.moving_variance.asnumpy(), 0.1 + 0.9 * variance, rtol=1e-4)


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize(("n", "shape"), [(1, (4, 3)), (2, (2, 3, 4, 5)), (3, (2, 3, 2, 4, 5))])
def test_batch_norm(n, shape, train):
    x = data(*shape)
    ours = getattr(nn, f"BatchNorm{n}d")(3, momentum=0.7).set_train(train)
    theirs = getattr(torch.nn, f"BatchNorm{n}d")(3, momentum=0.3).train(train)
    inner = ours.bn2d if n == 3 else ours
    for _ in range(2):
        close(ours(Tensor(x)), theirs(torch.tensor(x)))
    close(inner.moving_mean, theirs.running_mean)
    close(inner.moving_variance, theirs.running_var)


def test_layer_norms():
    x = data(2, 3, 4)
    close(nn.LayerNormExt((3, 4))(Tensor(x)), torch.nn.LayerNorm((3, 4))(torch.tensor(x)))
    close(nn.LayerNormExt(4, 1e-3, False)(Tensor(x)), torch.nn.LayerNorm(4, 1e-3, False)(torch.tensor(x)))
    assert [p.name for p in nn.LayerNormExt(4, bias=False).get_parameters()] == ["weight"]


@pytest.mark.parametrize("options", [(3, 2, 1, 1), (2, 3, 0, 2), (3, 2, 1, 0)])
def test_transposed_convolution_with_output_padding(options):
    k, s, p, extra = options
    x = data(2, 4, 5, 6)
    ours = nn.Conv2dTranspose(4, 3, k, s, "pad", p, extra, has_bias=True)
    theirs = torch.nn.ConvTranspose2d(4, 3, k, s, p, extra)
    share(ours, theirs)
    close(ours(Tensor(x)), theirs(torch.tensor(x)))


def test_channels_last():
    x = data(2, 4, 6, 5)
    for pad_mode in ("same", "valid"):
        first = nn.Conv2d(4, 6, (3, 2), 2, pad_mode, group=2, has_bias=True)
        last = nn.Conv2d(4, 6, (3, 2), 2, pad_mode, group=2, has_bias=True, data_format="NHWC")
        last.weight.set_data(first.weight.transpose(0, 2, 3, 1))
        last.bias.set_data(first.bias)
        close(last(Tensor(x.transpose(0, 2, 3, 1))), first(Tensor(x)).asnumpy().transpose(0, 2, 3, 1))
    for make in (nn.MaxPool2d, nn.AvgPool2d):
        y = make(2, 2)(Tensor(x)).asnumpy()
        close(make(2, 2, data_format="NHWC")(Tensor(x.transpose(0, 2, 3, 1))), y.transpose(0, 2, 3, 1))
    y = nn.BatchNorm2d(4).set_train()(Tensor(x)).asnumpy()
    close(nn.BatchNorm2d(4, data_format="NHWC").set_train()(Tensor(x.transpose(0, 2, 3, 1))), y.transpose(0, 2, 3, 1))


def test_moving_layers():
    x = data(2, 4, 6, 6)
    close(nn.Roll([1, -2], [0, 3])(Tensor(x)), np.roll(x, (1, -2), (0, 3)))
    close(nn.Softmax2d()(Tensor(x)), torch.nn.Softmax2d()(torch.tensor(x)))
    close(nn.LogSoftmaxExt()(Tensor(x)), torch.log_softmax(torch.tensor(x), 1))
    patches = torch.nn.Unfold((2, 3), (1, 2), 0, (2, 1))(torch.tensor(x)).reshape(2, 4, 6, 3, 2)
    close(nn.Unfold([1, 2, 3, 1], [1, 2, 1, 1], [1, 1, 2, 1])(Tensor(x)), patches.transpose(1, 2).reshape(2, 24, 3, 2))
    m = data(2, 3, 4)
    close(nn.MatrixDiag()(Tensor(m)), torch.diag_embed(torch.tensor(m)))
    close(nn.MatrixDiagPart()(Tensor(m)), np.diagonal(m, axis1=1, axis2=2))
    d = data(2, 3)
    expected = m.copy()
    expected[:, range(3), range(3)] = d
    close(nn.MatrixSetDiag()(Tensor(m), Tensor(d)), expected)


def test_fractional_pooling():
    x, u = data(2, 3, 7, 6), RNG.random((2, 3, 2), np.float32)
    for inputs, samples in ((x, u), (x[0], u[:1])):
        net = nn.FractionalMaxPool2d((2, 3), (3, 2), return_indices=True, _random_samples=Tensor(samples))
        theirs = torch.nn.FractionalMaxPool2d(
            (2, 3), (3, 2), return_indices=True, _random_samples=torch.tensor(samples)
        )
        for a, b in zip(net(Tensor(inputs)), theirs(torch.tensor(inputs)), strict=True):
            close(a, b)
    x, u = data(2, 2, 5, 6, 7), RNG.random((2, 2, 3), np.float32)
    theirs = torch.nn.FractionalMaxPool3d(2, output_ratio=0.5, _random_samples=torch.tensor(u))
    close(nn.FractionalMaxPool3d(2, output_ratio=0.5, _random_samples=Tensor(u))(Tensor(x)), theirs(torch.tensor(x)))
    drawn = nn.FractionalMaxPool2d(2, 4)
    first, second = (drawn(Tensor(data(1, 8, 9, 9))).asnumpy() for _ in range(2))
    assert first.shape == (1, 8, 4, 4)
    assert (first != second).any()
    with pytest.raises(ValueError, match="at least 10 for 9 windows of 2"):
        nn.FractionalMaxPool2d(2, 9)(Tensor(data(1, 1, 7, 6)))


def test_norms_within_and_beyond_a_limit():
    x = data(3, 4)
    norms = np.linalg.norm(x, axis=0)
    limit = np.float32(np.median(norms))
    expected = np.where(norms > limit, x * limit / norms, x)
    close(nn.ClipByNorm(0)(Tensor(x), Tensor(limit)), expected)
    close(nn.ClipByNorm()(Tensor(x), Tensor(1.0)), x / np.linalg.norm(x))


def test_matrices():
    a = data(2, 4, 4)
    a = a @ a.transpose(0, 2, 1) + np.eye(4, dtype=np.float32)
    close(nn.MatInverse()(Tensor(a)), np.linalg.inv(a), 1e-4)
    close(nn.MatDet()(Tensor(a)), np.linalg.det(a), 1e-4)
    dense, values = data(4, 3), data(3)
    places = np.array([[0, 1], [1, 2], [1, 0]])
    sparse = np.zeros((3, 4), np.float32)
    sparse[places[:, 0], places[:, 1]] = values
    close(nn.SparseTensorDenseMatmul()(Tensor(places), Tensor(values), (3, 4), Tensor(dense)), sparse @ dense)
    other = data(5, 3)
    net = nn.SparseTensorDenseMatmul(True, True)
    close(net(Tensor(places), Tensor(values), (3, 4), Tensor(other)), sparse.T @ other.T)


# losses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(reduction):
    a, b, c, sign = data(4, 3), data(4, 3), data(4, 3), np.sign(data(4, 3))
    t = [torch.tensor(v) for v in (a, b, c, sign)]
    m = [Tensor(v) for v in (a, b, c, sign)]
    for options in ({}, {"p": 1, "swap": True, "margin": 0.5}):
        theirs = torch.nn.TripletMarginLoss(reduction=reduction, **options)
        close(nn.TripletMarginLoss(reduction=reduction, **options)(*m[:3]), theirs(*t[:3]))
    given = nn.TripletMarginLoss(reduction=reduction)(*m[:3], 0.25)
    close(given, torch.nn.TripletMarginLoss(0.25, reduction=reduction)(*t[:3]))
    close(nn.SoftMarginLoss(reduction)(m[0], m[3]), torch.nn.SoftMarginLoss(reduction=reduction)(t[0], t[3]))
    places, weight = np.array([0, 2, 1, 1]), np.abs(data(3))
    theirs = torch.nn.MultiMarginLoss(2, 0.5, torch.tensor(weight), reduction=reduction)
    ours = nn.MultiMarginLoss(2, 0.5, reduction, Tensor(weight))(m[0], Tensor(places))
    close(ours, theirs(t[0], torch.tensor(places)))
    classes = np.array([[0, 2, -1], [1, -1, 0], [-1, 0, 0], [2, 1, 0]])
    theirs = torch.nn.MultiLabelMarginLoss(reduction=reduction)(t[0], torch.tensor(classes))
    close(nn.MultilabelMarginLoss(reduction)(m[0], Tensor(classes)), theirs)


def test_class_numbers_without_sparse():
    x, y = data(4, 3), np.array([0, 2, 1, 1])
    expected = torch.nn.functional.cross_entropy(torch.tensor(x), torch.tensor(y), reduction="none")
    loss = nn.SoftmaxCrossEntropyWithLogits()
    close(loss(Tensor(x), Tensor(y, ms.int32)), expected)
    close(loss(Tensor(x), Tensor(np.eye(3)[y], ms.int32)), expected)


def test_a_class_outside_has_no_loss():
    x = data(3, 4)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True)(Tensor(x), Tensor([1, -1, 4])).asnumpy()
    assert loss[1:].tolist() == [0, 0]
    assert loss[0] > 0


def sampled(weights, biases, labels, logits, drawn, counts, remove):
    """Sampled softmax by its definition, one row at a time."""
    losses = []
    for row, true in zip(logits, labels, strict=True):
        positive = [weights[k] @ row + biases[k] - np.log(counts[0]) for k in true]
        negative = [weights[k] @ row + biases[k] - np.log(counts[1]) for k in drawn if not (remove and k in true)]
        scores = np.array(positive + negative)
        losses.append(-(scores[: len(true)] - np.log(np.exp(scores).sum())).mean())
    return np.array(losses)


@pytest.mark.parametrize("remove", [True, False])
@pytest.mark.parametrize("true", [1, 2])
def test_sampled_softmax(remove, true):
    weights, biases, logits = data(7, 5), data(7), data(3, 5)
    labels = np.array([[1, 3], [2, 0], [6, 2]])[:, :true]
    given = [Tensor(v) for v in (weights, biases, labels, logits)]
    everything = nn.SampledSoftmaxLoss(7, 7, true, remove_accidental_hits=remove)(*given)
    close(everything, sampled(weights, biases, labels, logits, range(7), (1, 1), remove))
    values = (Tensor([0, 3, 5]), Tensor(np.full((3, true), 0.5, np.float32)), Tensor([0.25, 0.25, 0.25]))
    ours = nn.SampledSoftmaxLoss(3, 7, true, values, remove)(*given)
    close(ours, sampled(weights, biases, labels, logits, [0, 3, 5], (0.5, 0.25), remove))
    drawn = nn.SampledSoftmaxLoss(3, 7, true, remove_accidental_hits=False)(*given)
    assert (drawn.asnumpy() < everything.asnumpy() + 5).all()
    assert drawn.shape == (3,)


# images --------------------------------------------------------------------------------------------------


def test_ssim_and_psnr_by_their_formulas():
    from scipy.signal import correlate2d

    a, b = RNG.random((2, 3, 12, 14), np.float32), RNG.random((2, 3, 12, 14), np.float32)
    b = (0.7 * a + 0.3 * b).astype(np.float32)
    offsets = np.arange(5) - 2.0
    line = np.exp(-(offsets**2) / (2 * 1.5**2))
    window = np.outer(line, line) / np.outer(line, line).sum()

    def blur(x):
        return np.stack([[correlate2d(c, window, "valid") for c in image] for image in x])

    mx, my = blur(a), blur(b)
    vx, vy, cov = blur(a * a) - mx**2, blur(b * b) - my**2, blur(a * b) - mx * my
    c1, c2 = 0.01**2, 0.03**2
    index = (2 * mx * my + c1) * (2 * cov + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2))
    close(nn.SSIM(filter_size=5)(Tensor(a), Tensor(b)), index.mean((1, 2, 3)), 1e-4)
    error = ((a - b) ** 2).mean((1, 2, 3))
    close(nn.PSNR()(Tensor(a), Tensor(b)), -10 * np.log10(error), 1e-4)
    close(nn.PSNR(255)(Tensor(a * 255), Tensor(b * 255)), -10 * np.log10(error), 1e-4)
    one = nn.MSSSIM(power_factors=(1.0,), filter_size=5)(Tensor(a), Tensor(b))
    close(one, np.maximum(index.mean((2, 3)), 0).mean(1), 1e-4)
    assert nn.MSSSIM(power_factors=(0.5, 0.5), filter_size=3)(Tensor(a), Tensor(a)).asnumpy() == pytest.approx([1, 1])


# tables --------------------------------------------------------------------------------------------------


def test_tables_and_their_gradients():
    ids = np.array([[0, 2, 2], [1, 4, 2]])
    wave = Tensor(np.arange(18.0, dtype=np.float32).reshape(2, 3, 3))
    for options in ({}, {"padding_idx": 2}, {"padding_idx": -1, "scale_grad_by_freq": True}):
        ours, theirs = nn.EmbeddingExt(5, 3, **options), torch.nn.Embedding(5, 3, **options)
        if "padding_idx" in options:
            assert not ours.weight.asnumpy()[options["padding_idx"]].any()
        share(ours, theirs)
        y = theirs(torch.tensor(ids))
        (y * torch.arange(18.0).reshape(2, 3, 3)).sum().backward()
        value, grad = ms.value_and_grad(lambda t, m=ours: (m(t) * wave).sum(), None, ours.weight)(Tensor(ids))
        close(grad, theirs.weight.grad)
        assert value.item() == pytest.approx((y.detach().numpy().ravel() @ np.arange(18)), rel=1e-5)
    ours, theirs = nn.EmbeddingExt(5, 3, max_norm=0.5), torch.nn.Embedding(5, 3, max_norm=0.5)
    share(ours, theirs)
    close(ours(Tensor(ids)), theirs(torch.tensor(ids)))
    close(ours.weight, theirs.weight)


def test_lookup_with_a_largest_norm():
    net = nn.EmbeddingLookup(5, 3, Tensor(data(5, 3)), max_norm=0.5)
    table = net.embedding_table.asnumpy()
    rows = table[[0, 4]]
    expected = rows * np.minimum(1, 0.5 / np.linalg.norm(rows, axis=1, keepdims=True))
    close(net(Tensor([0, 4, 9])), np.concatenate([expected, np.zeros((1, 3))]))


@pytest.mark.parametrize("operator", ["SUM", "MEAN", "MAX"])
def test_fields_of_a_sample(operator):
    net = nn.MultiFieldEmbeddingLookup(6, 2, 3, Tensor(data(6, 2)), operator=operator)
    rows, values, fields = np.array([[0, 1, 5], [2, 2, 4]]), data(2, 3), np.array([[0, 0, 1], [2, 0, 2]])
    table = net.embedding_table.asnumpy()
    expected = np.zeros((2, 3, 2), np.float32)
    for i in range(2):
        for field in range(3):
            found = [table[r] * v for r, v, k in zip(rows[i], values[i], fields[i], strict=True) if k == field]
            if found:
                expected[i, field] = {"SUM": np.sum, "MEAN": np.mean, "MAX": np.max}[operator](found, axis=0)
    close(net(Tensor(rows), Tensor(values), Tensor(fields)), expected)


# recurrent -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("lengths", [None, [5, 2, 3]])
def test_recurrent_networks_and_their_gradients(kind, lengths):
    x = data(5, 3, 4)
    ours = getattr(nn, kind)(4, 6, 2, bidirectional=True)
    theirs = getattr(torch.nn, kind)(4, 6, 2, bidirectional=True)
    for path, p in ours.parameters_and_names():
        p.set_data(Tensor(getattr(theirs, path).detach().numpy()))
    inputs = torch.tensor(x, requires_grad=True)
    if lengths is None:
        y, last = theirs(inputs)
    else:
        packed = torch.nn.utils.rnn.pack_padded_sequence(inputs, torch.tensor(lengths), enforce_sorted=False)
        y, last = theirs(packed)
        y = torch.nn.utils.rnn.pad_packed_sequence(y)[0]
    wave, states = data(*y.shape), last if kind == "LSTM" else (last,)
    total = (y * torch.tensor(wave)).sum() + sum((s * s).sum() for s in states)
    total.backward()

    def run(t):
        out, end = ours(t, None, None if lengths is None else Tensor(lengths))
        ends = end if kind == "LSTM" else (end,)
        return (out * Tensor(wave)).sum() + sum((s * s).sum() for s in ends), out

    weights = tuple(ours.trainable_params())
    (value, out), (dx, grads) = ms.value_and_grad(run, 0, weights, has_aux=True)(Tensor(x))
    close(out, y)
    assert value.item() == pytest.approx(total.item(), rel=1e-4)
    close(dx, inputs.grad, 1e-4)
    for p, g in zip(weights, grads, strict=True):
        close(g, getattr(theirs, p.name).grad, 1e-4)


def test_recurrent_cells():
    x, h, c = data(2, 3), data(2, 5), data(2, 5)
    for name in ("RNNCell", "GRUCell"):
        ours, theirs = getattr(nn, name)(3, 5), getattr(torch.nn, name)(3, 5)
        share(ours, theirs)
        close(ours(Tensor(x), Tensor(h)), theirs(torch.tensor(x), torch.tensor(h)))
    ours, theirs = nn.LSTMCell(3, 5), torch.nn.LSTMCell(3, 5)
    share(ours, theirs)
    made = ours(Tensor(x), (Tensor(h), Tensor(c)))
    for a, b in zip(made, theirs(torch.tensor(x), (torch.tensor(h), torch.tensor(c))), strict=True):
        close(a, b)
    ours, theirs = nn.LSTM(3, 5), torch.nn.LSTM(3, 5)
    share(ours, theirs)
    seq, h, c = data(4, 2, 3), data(1, 2, 5), data(1, 2, 5)
    y, _ = ours(Tensor(seq), (Tensor(h), Tensor(c)))
    close(y, theirs(torch.tensor(seq), (torch.tensor(h), torch.tensor(c)))[0])


def test_recurrent_networks_in_half_precision():
    net = nn.GRU(4, 6, dtype=ms.float16)
    y, h = net(Tensor(data(5, 3, 4), ms.float16))
    assert y.dtype is h.dtype is ms.float16
    y, h = net(Tensor(data(5, 3, 4)))
    assert y.dtype is h.dtype is ms.float32


# attention -----------------------------------------------------------------------------------------------


def attention_pair(**options):
    ours = nn.MultiheadAttention(8, 2, **options)
    renamed = {("bias" if k == "has_bias" else k): v for k, v in options.items()}
    theirs = torch.nn.MultiheadAttention(8, 2, **renamed)
    known = dict(theirs.named_parameters())
    for path, p in ours.parameters_and_names():
        p.set_data(Tensor(known[path].detach().numpy()))
    return ours, theirs


@pytest.mark.parametrize(
    ("options", "masks"),
    [
        *[({}, masks) for masks in ("none", "padding", "future", "both", "numbers", "heads")],
        ({"batch_first": True}, "both"),
        ({"has_bias": False}, "none"),
        ({"kdim": 8, "vdim": 8, "add_bias_kv": True}, "both"),
        ({"add_zero_attn": True}, "heads"),
    ],
    ids=str,
)
def test_attention(options, masks):
    ours, theirs = attention_pair(**options)
    q, k, v = data(4, 3, 8), data(5, 3, 8), data(5, 3, 8)
    if options.get("batch_first"):
        q, k, v = (t.swapaxes(0, 1) for t in (q, k, v))
    padding = np.zeros((3, 5), bool)
    padding[1, 3:] = padding[2, 4:] = True
    future = np.triu(np.ones((4, 5), bool), 2)
    chosen = {
        "none": {}, "padding": {"key_padding_mask": padding}, "future": {"attn_mask": future},
        "both": {"key_padding_mask": padding, "attn_mask": future}, "numbers": {"attn_mask": data(4, 5)},
        "heads": {"attn_mask": np.repeat(future[None], 6, 0)},
    }[masks]  # fmt: skip
    for average in (True, False):
        y, w = ours(*map(Tensor, (q, k, v)), **{n: Tensor(m) for n, m in chosen.items()}, average_attn_weights=average)
        given = {n: torch.tensor(m) for n, m in chosen.items()}
        wanted, weights = theirs(*map(torch.tensor, (q, k, v)), **given, average_attn_weights=average)
        close(y, wanted)
        close(w, weights)
    (alone,) = ours(*map(Tensor, (q, k, v)), **{n: Tensor(m) for n, m in chosen.items()}, need_weights=False)
    close(alone, wanted)


def test_self_attention_takes_one_product():
    ours, theirs = attention_pair()
    x = data(4, 3, 8)
    t = Tensor(x)
    close(ours(t, t, t)[0], theirs(*[torch.tensor(x)] * 3)[0])


TORCH_NAMES = {"dense": "linear", "gamma": "weight", "beta": "bias"}


def torch_name(path):
    parts = path.split(".")
    return ".".join("linear" + p[5:] if p.startswith("dense") else TORCH_NAMES.get(p, p) for p in parts)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_transformer(norm_first, activation):
    options = dict(dim_feedforward=16, dropout=0.0, activation=activation, norm_first=norm_first)
    ours = nn.Transformer(8, 2, 2, 2, **options)
    layer = torch.nn.TransformerEncoderLayer(8, 2, **options)
    encoder = torch.nn.TransformerEncoder(layer, 2, torch.nn.LayerNorm(8), enable_nested_tensor=False)
    theirs = torch.nn.Transformer(8, 2, 2, 2, custom_encoder=encoder, **options)
    known = dict(theirs.named_parameters())
    for path, p in ours.parameters_and_names():
        p.set_data(Tensor(known[torch_name(path)].detach().numpy()))
    src, tgt = data(5, 3, 8), data(4, 3, 8)
    future = np.triu(np.ones((4, 4), bool), 1)
    padding = np.zeros((3, 5), bool)
    padding[1, 3:] = True
    y = ours(Tensor(src), Tensor(tgt), tgt_mask=Tensor(future), src_key_padding_mask=Tensor(padding))
    wanted = theirs(
        torch.tensor(src), torch.tensor(tgt), tgt_mask=torch.tensor(future), src_key_padding_mask=torch.tensor(padding)
    )
    close(y, wanted, 1e-4)


def test_encoder_copies_do_not_share():
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)
    first, second = (layer.dense1.weight for layer in net.layers)
    assert first is not second
    np.testing.assert_array_equal(first.asnumpy(), second.asnumpy())
    bounds = [
        np.abs(p.asnumpy()).max()
        for p in nn.Transformer(8, 2, 1, 1, 16).get_parameters()
        if p.name.endswith("dense1.weight")
    ]
    assert max(bounds) <= np.sqrt(6 / 24)
    assert min(bounds) > 0.45


# dropout -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout(p):
    x = ops.ones((200, 100))
    y = nn.Dropout(p=p).set_train()(x).asnumpy()
    dropped = (y == 0).mean()
    assert abs(dropped - p) < 5 * np.sqrt(p * (1 - p) / y.size)
    np.testing.assert_allclose(y[y != 0], 1 / (1 - p), rtol=1e-5)
    assert (nn.Dropout(1 - p).set_train()(x).asnumpy() == 0).mean() == pytest.approx(p, abs=0.02)


@pytest.mark.parametrize(("n", "shape"), [(1, (40, 50, 3)), (2, (40, 50, 3, 2)), (3, (40, 50, 3, 2, 2))])
def test_dropout_of_channels(n, shape):
    y = getattr(nn, f"Dropout{n}d")(0.3).set_train()(ops.ones(shape)).asnumpy().reshape(2000, -1)
    assert (y.min(1) == y.max(1)).all()
    assert abs((y[:, 0] == 0).mean() - 0.3) < 5 * np.sqrt(0.21 / 2000)
    np.testing.assert_allclose(y[y != 0], 1 / 0.7, rtol=1e-5)


def test_dropout_in_place():
    x = ops.ones((64,))
    assert nn.DropoutExt(0.5, inplace=True).set_train()(x) is x
    assert set(x.asnumpy().tolist()) == {0.0, 2.0}
    y = nn.Dropout2dExt(1.0).set_train()(ops.ones((1, 2, 3, 3)))
    assert not y.asnumpy().any()


def test_rrelu():
    y = nn.RReLU(0.2, 0.4)(ops.full((4000,), -1.0)).asnumpy()
    assert -0.4 <= y.min() < -0.39
    assert -0.21 < y.max() <= -0.2
    assert abs(y.mean() + 0.3) < 5 * 0.2 / np.sqrt(12 * 4000)
    assert nn.RReLU()(Tensor([2.0])).item() == 2
