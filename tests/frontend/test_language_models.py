"""Models as people write them, with Python and tensors deciding side by side: both modes agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.core import tree


@pytest.fixture(autouse=True)
def _mode() -> Iterator[None]:
    before = ms.get_context("mode")
    yield
    ms.set_context(mode=before)


def _tensor(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def _same_in_both_modes(make: Any, *calls: tuple[Any, ...]) -> None:
    """Two equal objects, one run in each mode, give the same results for the same calls, one after the other."""
    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        ms.set_seed(0)
        model = make()
        results.append([model(*args) for args in calls])
    got, expected = results[1], results[0]
    for a, b in zip(got, expected, strict=True):
        _close(a, b)


def _close(a: Any, b: Any) -> None:
    leaves, treedef = tree.flatten(a)
    wanted, wanted_def = tree.flatten(b)
    assert treedef == wanted_def
    for x, y in zip(leaves, wanted, strict=True):
        x, y = (np.asarray(v.asnumpy() if isinstance(v, Tensor) else v) for v in (x, y))
        assert x.shape == y.shape
        np.testing.assert_allclose(x.astype(np.float64), y.astype(np.float64), rtol=2e-5, atol=2e-5)


# -- beam search -----------------------------------------------------------------------------------------------


@dataclass
class Beams:
    tokens: Tensor
    scores: Tensor
    finished: Tensor


class BeamSearch(nn.Cell):
    """Beam search over a table of transitions, until all beams have ended or the length is reached."""

    def __init__(self, vocab: int = 5, width: int = 3, length: int = 6, end: int = 1) -> None:
        super().__init__()
        self.vocab, self.width, self.length, self.end = vocab, width, length, end
        self.table = Parameter(_tensor(vocab, vocab, seed=3), name="table")
        self.log_softmax = nn.LogSoftmax(axis=-1)

    def step(self, beams: Beams, position: Any) -> Beams:
        last = beams.tokens[:, position - 1]
        scores = self.log_softmax(self.table[last])
        stay = ops.where(ops.arange(self.vocab) == self.end, 0.0, -1e9)
        scores = ops.where(beams.finished.expand_dims(1), stay, scores) + beams.scores.expand_dims(1)
        best, index = ops.topk(scores.reshape(-1), self.width)
        source, token = index // self.vocab, (index % self.vocab).astype(ms.int32)
        tokens = beams.tokens[source]
        tokens[:, position] = token
        return Beams(tokens, best, ops.logical_or(beams.finished[source], token == self.end))

    def construct(self, start: Tensor) -> Any:
        tokens = ops.zeros((self.width, self.length), ms.int32)
        tokens[:, 0] = start
        scores = ops.full((self.width,), -1e9, dtype=ms.float32)
        scores[0] = 0.0
        beams = Beams(tokens, scores, ops.zeros((self.width,), ms.bool_))
        position = 1
        while position < self.length and not beams.finished.all():
            beams = self.step(beams, position)
            position += 1
        else:
            position = position * 1
        return beams, position


def test_beam_search() -> None:
    _same_in_both_modes(BeamSearch, (Tensor(0, ms.int32),), (Tensor(2, ms.int32),), (Tensor(4, ms.int32),))


# -- CRF decoding ----------------------------------------------------------------------------------------------


class CRF(nn.Cell):
    """Viterbi decoding: forward scores with back pointers, then the path, walked backwards."""

    def __init__(self, tags: int = 4) -> None:
        super().__init__()
        self.transitions = Parameter(_tensor(tags, tags, seed=1), name="transitions")

    def construct(self, emissions: Tensor, mask: Tensor) -> Any:
        length = emissions.shape[0]
        score, history = emissions[0], []
        for i in range(1, length):
            total = score.expand_dims(1) + self.transitions + emissions[i].expand_dims(0)
            if mask[i]:
                score = total.max(axis=0)
                history.append(total.argmax(axis=0))
            else:
                history.append(ops.arange(emissions.shape[1]))
        best = score.argmax()
        path = [best]
        for pointers in reversed(history):
            path.insert(0, pointers[path[0]])
        return score.max(), ops.stack(path)


def test_crf_decoding() -> None:
    e = _tensor(5, 4, seed=7)
    _same_in_both_modes(CRF, (e, Tensor([True] * 5)), (e * 2, Tensor([True, True, False, True, False])))


# -- RNN over time with masks ----------------------------------------------------------------------------------


class MaskedRNN(nn.Cell):
    """A GRU cell over time; rows that have ended keep their state, and the loop ends with the longest row."""

    def __init__(self, size: int = 3, hidden: int = 4, bidirectional: bool = False) -> None:
        super().__init__()
        self.cells = nn.CellList([nn.GRUCell(size, hidden) for _ in range(1 + bidirectional)])
        for i, p in enumerate(self.get_parameters()):
            p.set_data(_tensor(*p.shape, seed=i) * 0.3)

    def run(self, cell: nn.Cell, x: Tensor, lengths: Tensor, *, reverse: bool) -> Any:
        h = ops.zeros((x.shape[1], 4), x.dtype)
        outputs = []
        steps = range(x.shape[0])
        for t in reversed(steps) if reverse else steps:
            new = cell(x[t], h)
            h = ops.where((lengths > t).expand_dims(1), new, h)
            outputs.append(h)
        return ops.stack(outputs[::-1] if reverse else outputs), h

    def construct(self, x: Tensor, lengths: Tensor) -> Any:
        results = [self.run(c, x, lengths, reverse=bool(i)) for i, c in enumerate(self.cells)]
        outputs, states = zip(*results)
        total, t = states[0] * 0, 0
        while t < lengths.max():
            total = total + outputs[0][t]
            t = t + 1
        return ops.cat(outputs, axis=-1), states, total / t


@pytest.mark.slow
@pytest.mark.parametrize("both", [False, True])
def test_masked_rnn(both: bool) -> None:
    x = _tensor(4, 2, 3, seed=5)
    _same_in_both_modes(lambda: MaskedRNN(bidirectional=both), (x, Tensor([4, 2])), (x, Tensor([1, 3])))


# -- box decoding ----------------------------------------------------------------------------------------------


class YoloDecode(nn.Cell):
    """Boxes from the raw output of a YOLO head, and greedy suppression with a fixed number of rounds."""

    anchors = ((10.0, 13.0), (33.0, 23.0))

    def __init__(self, classes: int = 3, keep: int = 4, threshold: float = 0.3) -> None:
        super().__init__()
        self.classes, self.keep, self.threshold = classes, keep, threshold
        self.anchor = Tensor(np.array(self.anchors, np.float32))

    @staticmethod
    def iou(box: Tensor, boxes: Tensor) -> Tensor:
        low = ops.maximum(box[:2], boxes[:, :2])
        high = ops.minimum(box[2:], boxes[:, 2:])
        overlap = (high - low).clip(0.0, None).prod(axis=1)
        area = lambda b: (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])
        return overlap / (area(box) + area(boxes) - overlap + 1e-6)

    def construct(self, raw: Tensor, size: tuple[int, int]) -> Any:
        h, w, _ = raw.shape
        raw = raw.reshape(h * w, len(self.anchors), 5 + self.classes)
        gy, gx = ops.meshgrid(ops.arange(h), ops.arange(w), indexing="ij")
        grid = ops.stack((gx, gy), -1).reshape(h * w, 1, 2).astype(raw.dtype)
        centre = (ops.sigmoid(raw[..., :2]) + grid) * Tensor([size[0] / w, size[1] / h], ms.float32)
        extent = ops.exp(raw[..., 2:4]) * self.anchor
        boxes = ops.cat((centre - extent / 2, centre + extent / 2), -1).reshape(-1, 4)
        score = (ops.sigmoid(raw[..., 4:5]) * ops.softmax(raw[..., 5:], -1)).max(axis=-1).reshape(-1)
        kept = ops.zeros((self.keep, 5), raw.dtype)
        count = 0
        for i in range(self.keep):
            best = score.argmax()
            if score[best] < self.threshold:
                break
            kept[i, :4] = boxes[best]
            kept[i, 4] = score[best]
            score = ops.where(self.iou(boxes[best], boxes) > 0.5, 0.0, score)
            count += 1
        return kept, count


@pytest.mark.slow
def test_yolo_decoding() -> None:
    raw = _tensor(2, 2, 16, seed=2)
    _same_in_both_modes(YoloDecode, (raw, (64, 64)), (raw - 4, (64, 64)), (raw + 2, (64, 64)))


# -- GAN step --------------------------------------------------------------------------------------------------


class GanStep(nn.Cell):
    """One step of each player with its own optimizer; the generator trains only when the discriminator is ahead."""

    def __init__(self) -> None:
        super().__init__()
        self.generator, self.critic = nn.Dense(2, 3), nn.Dense(3, 1)
        for i, p in enumerate(self.get_parameters()):
            p.set_data(_tensor(*p.shape, seed=i) * 0.5)
        self.loss = nn.BCEWithLogitsLoss()
        self.opt_g = nn.Adam(self.generator.trainable_params(), learning_rate=0.05)
        self.opt_d = nn.SGD(self.critic.trainable_params(), learning_rate=0.1)
        self.grad_g = ms.value_and_grad(self.g_loss, None, self.opt_g.parameters)
        self.grad_d = ms.value_and_grad(self.d_loss, None, self.opt_d.parameters, has_aux=True)

    def d_loss(self, real: Tensor, z: Tensor) -> Any:
        fake = ops.stop_gradient(self.generator(z))
        scores = [self.critic(v) for v in (real, fake)]
        ones, zeros = ops.ones_like(scores[0]), ops.zeros_like(scores[1])
        return self.loss(scores[0], ones) + self.loss(scores[1], zeros), scores[0].mean()

    def g_loss(self, z: Tensor) -> Tensor:
        score = self.critic(self.generator(z))
        return self.loss(score, ops.ones_like(score))

    def construct(self, real: Tensor, z: Tensor) -> Any:
        (d, confidence), grads = self.grad_d(real, z)
        self.opt_d(grads)
        if confidence > 0:
            g, grads = self.grad_g(z)
            self.opt_g(grads)
        else:
            g = self.g_loss(z)
        return d, g


def test_gan_step() -> None:
    real, z = _tensor(4, 3, seed=8), _tensor(4, 2, seed=9)
    _same_in_both_modes(GanStep, (real, z), (-real, z), (real * 2, z), (real, -z))


# -- learning rates --------------------------------------------------------------------------------------------


class WarmupPolynomial(nn.learning_rate_schedule.LearningRateSchedule):
    """Warm-up, a constant stretch, then polynomial decay, chosen by the step, a tensor."""

    def __init__(self, peak: float, warmup: int, hold: int, total: int) -> None:
        super().__init__()
        self.peak, self.warmup, self.hold, self.total = peak, warmup, hold, total

    def construct(self, step: Tensor) -> Tensor:
        step = step.astype(ms.float32)
        if step < self.warmup:
            lr = self.peak * (step + 1) / self.warmup
        elif step < self.warmup + self.hold:
            lr = self.peak * ops.ones_like(step)
        else:
            left = (self.total - step) / (self.total - self.warmup - self.hold)
            lr = self.peak * (left**2 if left > 0 else left * 0)
        return lr


class ScheduledStep(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Dense(3, 1)
        for i, p in enumerate(self.net.get_parameters()):
            p.set_data(_tensor(*p.shape, seed=i))
        self.opt = nn.Momentum(self.net.trainable_params(), WarmupPolynomial(0.1, 2, 1, 6), momentum=0.9)
        self.backward = ms.value_and_grad(lambda x, y: ((self.net(x) - y) ** 2).mean(), None, self.opt.parameters)

    def construct(self, x: Tensor, y: Tensor) -> Any:
        loss, grads = self.backward(x, y)
        norm = ops.sqrt(sum((g * g).sum() for g in grads))
        if norm > 1:
            grads = tuple(g / norm for g in grads)
        self.opt(grads)
        return loss, self.net.weight.value()


@pytest.mark.slow
def test_learning_rate_branches() -> None:
    x, y = _tensor(4, 3, seed=1), _tensor(4, 1, seed=2)
    _same_in_both_modes(ScheduledStep, *[(x * k, y) for k in (1, 2, 0.1, 1, 1, 1, 1)])


# -- teacher forcing -------------------------------------------------------------------------------------------


class Decoder(nn.Cell):
    """A recurrent decoder that is fed the target or its own guess; which, a tensor says for each step."""

    def __init__(self, vocab: int = 6, hidden: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.rnn, self.out = nn.GRUCell(hidden, hidden), nn.Dense(hidden, vocab)
        for i, p in enumerate(self.get_parameters()):
            p.set_data(_tensor(*p.shape, seed=i))

    def construct(self, target: Tensor, forced: Tensor, h: Tensor | None = None) -> Any:
        batch, length = target.shape
        if h is None:
            h = ops.zeros((batch, 4), ms.float32)
        token, logits = target[:, 0], []
        for t in range(1, length):
            h = self.rnn(self.embedding(token), h)
            step = self.out(h)
            logits.append(step)
            token = target[:, t] if forced[t] else step.argmax(axis=-1).astype(target.dtype)
        return ops.stack(logits, 1), h, token


def test_teacher_forcing() -> None:
    target = Tensor([[1, 2, 3], [4, 5, 0]], ms.int32)
    flags = [[True] * 3, [False] * 3, [True, False, True]]
    _same_in_both_modes(Decoder, *[(target, Tensor(f)) for f in flags])


# -- mixture of experts ----------------------------------------------------------------------------------------


class Routed(NamedTuple):
    output: Tensor
    load: Tensor
    loss: Tensor


class MixtureOfExperts(nn.Cell):
    """Top-k routing with a capacity; tokens beyond an expert's capacity pass by."""

    def __init__(self, size: int = 4, experts: int = 3, k: int = 2, capacity: int = 3) -> None:
        super().__init__()
        self.k, self.capacity = k, capacity
        self.gate = nn.Dense(size, experts, has_bias=False)
        self.experts = nn.CellList([nn.SequentialCell(nn.Dense(size, size), nn.ReLU()) for _ in range(experts)])
        for i, p in enumerate(self.get_parameters()):
            p.set_data(_tensor(*p.shape, seed=i))

    def construct(self, x: Tensor) -> Routed:
        probs = ops.softmax(self.gate(x), axis=-1)
        weight, chosen = ops.topk(probs, self.k)
        weight = weight / weight.sum(axis=-1, keepdims=True)
        out, load = ops.zeros_like(x), []
        for e, expert in enumerate(self.experts):
            hits = chosen == e
            mine = hits.any(axis=-1)
            kept = ops.logical_and(mine, ops.cumsum(mine.astype(ms.int32), 0) <= self.capacity)
            share = ops.where(hits, weight, 0.0).sum(axis=-1) * kept
            if kept.any():
                out += expert(x) * share.expand_dims(-1)
            load.append(kept.sum().astype(ms.float32))
        loads = ops.stack(load)
        return Routed(out, loads, (loads * probs.mean(axis=0)).sum() if self.training else loads.sum() * 0)


@pytest.mark.slow
def test_mixture_of_experts() -> None:
    _same_in_both_modes(MixtureOfExperts, (_tensor(5, 4, seed=4),), (_tensor(5, 4, seed=6) * 3,))


# -- attention cache -------------------------------------------------------------------------------------------


class CachedAttention(nn.Cell):
    """Attention of one new token over a cache written in place; the cache starts anew when it is full."""

    def __init__(self, size: int = 4, length: int = 3) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Dense(size, size) for _ in range(3))
        for i, p in enumerate(self.get_parameters()):
            p.set_data(_tensor(*p.shape, seed=i))
        self.keys = Parameter(ops.zeros((length, size)), name="keys", requires_grad=False)
        self.values = Parameter(ops.zeros((length, size)), name="values", requires_grad=False)
        self.used = Parameter(Tensor(0, ms.int32), name="used", requires_grad=False)
        self.length = length

    def construct(self, x: Tensor) -> Any:
        if self.used >= self.length:
            self.keys[:] = 0.0
            self.values[:] = 0.0
            self.used.set_data(self.used * 0)
        self.keys[self.used] = self.k(x)
        self.values[self.used] = self.v(x)
        self.used += 1
        scores = self.keys.value() @ self.q(x) / 2
        scores = ops.where(ops.arange(self.length) < self.used, scores, -1e9)
        return ops.softmax(scores, -1) @ self.values, self.used.value() * 1


def test_attention_cache() -> None:
    _same_in_both_modes(CachedAttention, *[(_tensor(4, seed=s),) for s in range(5)])


# -- early exit ------------------------------------------------------------------------------------------------


class EarlyExit(nn.Cell):
    """A stack of blocks, each with a head; the first that is sure enough answers."""

    def __init__(self, blocks: int = 3, sure: float = 0.8) -> None:
        super().__init__()
        self.blocks = nn.CellList([nn.Dense(4, 4, activation="tanh") for _ in range(blocks)])
        self.heads = nn.CellList([nn.Dense(4, 3) for _ in range(blocks)])
        for i, p in enumerate(self.get_parameters()):
            p.set_data(_tensor(*p.shape, seed=i) * 1.5)
        self.sure = sure

    def construct(self, x: Tensor) -> Any:
        for depth, (block, head) in enumerate(zip(self.blocks, self.heads)):
            x = block(x)
            answer = ops.softmax(head(x), axis=-1)
            if answer.max() > self.sure:
                return answer, depth
        return answer, -1


def test_early_exit() -> None:
    _same_in_both_modes(EarlyExit, *[(_tensor(4, seed=s) * k,) for s, k in ((0, 1.0), (1, 0.1), (2, 3.0), (3, 0.01))])
