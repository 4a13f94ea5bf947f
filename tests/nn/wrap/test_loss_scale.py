"""Steps with a scaled loss: the scale's course, and that an overflowing step changes nothing else, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.nn.wrap.loss_scale import all_finite

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
X = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.0]], np.float32)
Y = np.array([[1.0], [0.0], [2.0]], np.float32)


class Net(nn.Cell):
    """With running statistics, and a gradient that overflows for large inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(2, 3)
        self.norm = nn.BatchNorm1d(3)
        self.out = nn.Dense(3, 1)

    def construct(self, x: Any, y: Any) -> Any:
        return ((self.out(self.norm(self.dense(x))) - y) ** 2).mean()


def entries(cell: Any) -> list[Any]:
    calls = cell.__dict__.get("_compiled_calls") or {}
    return [e for jit in calls.values() for bucket in jit.entries.values() for e in bucket]


def state(step: nn.Cell, but: tuple[str, ...] = ()) -> dict[str, bytes]:
    return {p.name: p.asnumpy().tobytes() for p in step.get_parameters() if p.name not in but}


SCALE = ("scale_sense", "current_iterator_step", "last_overflow_iterator_step")


@MODES
@pytest.mark.parametrize(
    "make", [lambda p: nn.Adam(p, 0.1, weight_decay=0.1), lambda p: nn.Momentum(p, [0.1, 0.2, 0.3], 0.9)]
)
def test_an_overflowing_step_changes_nothing_but_the_scale(make: Any, mode: int) -> None:
    ms.set_context(mode=mode)
    net = Net()
    net.set_train()
    optimizer = make(net.trainable_params())
    step = nn.TrainOneStepWithLossScaleCell(net, optimizer, nn.DynamicLossScaleUpdateCell(1024, 2, 1000))
    step.set_train()
    loss, overflow, scale = step(ms.Tensor(X), ms.Tensor(Y))
    assert not overflow.asnumpy()
    assert float(scale) == 1024.0
    before = state(step, SCALE)
    assert len(before) > 15
    for wrong in (np.inf, np.nan):
        loss, overflow, scale = step(ms.Tensor(X), ms.Tensor(np.full_like(Y, wrong)))
        assert overflow.asnumpy()
        assert not np.isfinite(loss.asnumpy())
        assert state(step, SCALE) == before
    assert float(scale) == 512.0
    assert float(step.scale_sense.asnumpy()) == 256.0
    _, overflow, _ = step(ms.Tensor(X), ms.Tensor(Y))
    after = state(step, SCALE)
    assert not overflow.asnumpy()
    assert {n for n in before if before[n] != after[n]} >= {"dense.weight", "norm.moving_mean", "global_step"}
    if mode == ms.GRAPH_MODE:
        assert len(entries(step)) == 1
    else:
        assert len(entries(step.update_unless)) == 1


@MODES
def test_a_step_without_overflow_is_that_without_a_scale(mode: int) -> None:
    ms.set_context(mode=mode)
    plain, scaled = Net(), Net()
    for p, q in zip(plain.get_parameters(), scaled.get_parameters(), strict=True):
        q.set_data(p)
    one = nn.TrainOneStepCell(plain, nn.Momentum(plain.trainable_params(), 0.1, 0.9))
    two = nn.TrainOneStepWithLossScaleCell(
        scaled, nn.Momentum(scaled.trainable_params(), 0.1, 0.9), ms.Tensor([1024.0])
    )
    one.set_train()
    two.set_train()
    for _ in range(3):
        one(ms.Tensor(X), ms.Tensor(Y))
        two(ms.Tensor(X), ms.Tensor(Y))
    for p, q in zip(plain.get_parameters(), scaled.get_parameters(), strict=True):
        np.testing.assert_allclose(p.asnumpy(), q.asnumpy(), rtol=1e-5, atol=1e-6)


def mindspore_rule(overflows: list[bool], scale: float, factor: int, window: int) -> list[float]:
    """The course MindSpore documents, in plain Python."""
    seen, good = [], 0
    for overflow in overflows:
        good = 0 if overflow else good + 1
        if overflow:
            scale = max(scale / factor, 1.0)
        elif good == window:
            scale, good = scale * factor, 0
        seen.append(scale)
    return seen


@MODES
@pytest.mark.parametrize(("first", "factor", "window"), [(8.0, 2, 2), (3.0, 4, 3), (16.0, 2, 1)])
def test_the_course_of_a_dynamic_scale(first: float, factor: int, window: int, mode: int) -> None:
    ms.set_context(mode=mode)
    overflows = [False, False, False, True, False, True, True, True, False, False, False, False, True, False]
    cell = nn.DynamicLossScaleUpdateCell(first, factor, window)
    scale = ms.Parameter(ms.Tensor(first, ms.float32), name="scale")
    seen = []
    for overflow in overflows:
        assert bool(cell(scale, ms.Tensor(overflow))) is overflow
        seen.append(float(scale.asnumpy()))
    assert seen == mindspore_rule(overflows, first, factor, window)
    assert [p.name for p in cell.get_parameters()] == ["current_iterator_step", "last_overflow_iterator_step"]


def test_a_scale_does_not_grow_to_infinity() -> None:
    cell = nn.DynamicLossScaleUpdateCell(2.0**127, 2, 1)
    scale = ms.Parameter(ms.Tensor(2.0**127, ms.float32), name="scale")
    cell(scale, ms.Tensor(False))
    assert float(scale.asnumpy()) == 2.0**127


@MODES
def test_a_fixed_scale(mode: int) -> None:
    ms.set_context(mode=mode)
    net = Net()
    step = nn.TrainOneStepWithLossScaleCell(net, nn.SGD(net.trainable_params(), 0.1), nn.FixedLossScaleUpdateCell(64.0))
    before = state(step)
    _, overflow, scale = step(ms.Tensor(X), ms.Tensor(np.full_like(Y, np.inf)))
    assert overflow.asnumpy()
    assert float(scale) == 64.0
    assert state(step) == before
    step.set_sense_scale(ms.Tensor(32.0))
    assert float(step(ms.Tensor(X), ms.Tensor(Y))[2]) == 32.0
    with pytest.raises(TypeError, match="set_sense_scale: argument 'sens' got float"):
        step.set_sense_scale(32.0)


class UsersStep(nn.TrainOneStepWithLossScaleCell):
    """As MindSpore's users write it, with its older helpers."""

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        scaling_sens = self.scale_sense
        status, scaling_sens = self.start_overflow_check(loss, scaling_sens)
        scaling_sens_filled = ops.ones_like(loss) * scaling_sens.astype(loss.dtype)
        grads = self.grad(self.network, self.weights)(*inputs, scaling_sens_filled)
        grads = tuple([g * (1.0 / scaling_sens) for g in grads])
        cond = self.get_overflow_status(status, grads)
        overflow = self.process_loss_scale(cond)
        if not overflow:
            loss = ops.depend(loss, self.optimizer(grads))
        return loss, cond


@MODES
def test_a_users_own_step(mode: int) -> None:
    ms.set_context(mode=mode)
    net = Net()
    step = UsersStep(net, nn.SGD(net.trainable_params(), 0.1), nn.DynamicLossScaleUpdateCell(16, 2, 100))
    before = state(step, SCALE)
    assert bool(step(ms.Tensor(X), ms.Tensor(np.full_like(Y, np.nan)))[1]) is True
    assert state(step, SCALE) == before
    assert float(step.scale_sense.asnumpy()) == 8.0
    assert bool(step(ms.Tensor(X), ms.Tensor(Y))[1]) is False
    assert state(step, SCALE)["out.bias"] != before["out.bias"]


@MODES
def test_all_finite_of_nests(mode: int) -> None:
    ms.set_context(mode=mode)
    good, bad = ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, np.nan])
    assert bool(all_finite((good, [good, {"a": good}], ms.Tensor([1, 2]))))
    assert not bool(all_finite((good, [good, {"a": bad}])))
    assert bool(all_finite(()))
    assert bool(all_finite(ms.Tensor(np.zeros((0, 3), np.float32))))


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda n, o: nn.TrainOneStepWithLossScaleCell(n, o, 3.0), TypeError, "'scale_sense' got float"),
        (lambda n, o: nn.TrainOneStepWithLossScaleCell(n, o, ms.Tensor([1.0, 2.0])), ValueError, r"got shape \(2,\)"),
        (lambda n, o: nn.FixedLossScaleUpdateCell(0.0), ValueError, "'loss_scale_value' got 0.0"),
        (lambda n, o: nn.DynamicLossScaleUpdateCell(4, 0, 1), ValueError, "'scale_factor' got 0"),
        (lambda n, o: nn.DynamicLossScaleUpdateCell(4, 2, 1.5), ValueError, "'scale_window' got 1.5"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(make: Any, kind: type[Exception], message: str) -> None:
    net = Net()
    with pytest.raises(kind, match=message):
        make(net, nn.SGD(net.trainable_params()))
