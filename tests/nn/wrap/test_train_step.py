"""Training and evaluation steps against gradients by hand, in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
X = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.0]], np.float32)
Y = np.array([[1.0], [0.0], [2.0]], np.float32)
W, B = np.array([[0.5, -0.25]], np.float32), np.array([0.125], np.float32)


def network() -> nn.Cell:
    net = nn.Dense(2, 1)
    net.weight.set_data(W)
    net.bias.set_data(B)
    return net


def by_hand(w: Any = W, b: Any = B) -> tuple[float, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The mean squared error and its gradients."""
    error = X @ w.T + b - Y
    return float((error**2).mean()), 2 * error.T @ X / len(X), 2 * error.mean(0)


def entries(cell: Any) -> list[Any]:
    calls = cell.__dict__.get("_compiled_calls") or {}
    return [e for jit in calls.values() for bucket in jit.entries.values() for e in bucket]


def step_of(net: nn.Cell, **options: Any) -> nn.TrainOneStepCell:
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    return nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer, **options)


@MODES
def test_a_step_follows_the_gradient(mode: int) -> None:
    ms.set_context(mode=mode)
    net = network()
    step = step_of(net)
    loss, dw, db = by_hand()
    np.testing.assert_allclose(step(ms.Tensor(X), ms.Tensor(Y)).asnumpy(), loss, rtol=1e-6)
    np.testing.assert_allclose(net.weight.asnumpy(), W - 0.1 * dw, rtol=1e-5)
    np.testing.assert_allclose(net.bias.asnumpy(), B - 0.1 * db, rtol=1e-5)


def test_in_graph_mode_a_step_is_one_executable_with_parameters_donated() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = network()
    step = step_of(net)
    for _ in range(3):
        step(ms.Tensor(X), ms.Tensor(Y))
    (entry,) = entries(step)
    assert not entries(net)
    assert not entries(step.optimizer)
    donated = {id(entry.captured[i - 2]) for i in entry.donated}
    assert {id(net.weight), id(net.bias), id(step.optimizer.global_step)} <= donated
    step(ms.Tensor(X[:2]), ms.Tensor(Y[:2]))
    assert len(entries(step)) == 2


@MODES
@pytest.mark.parametrize("sens", [1.0, 8.0])
def test_sens_scales_the_gradients_alone(mode: int, sens: float) -> None:
    ms.set_context(mode=mode)
    net = network()
    loss, gradients = step_of(net, sens=sens, return_grad=True)(ms.Tensor(X), ms.Tensor(Y))
    expected, dw, db = by_hand()
    np.testing.assert_allclose(loss.asnumpy(), expected, rtol=1e-6)
    assert list(gradients) == ["weight", "bias"]
    np.testing.assert_allclose(gradients["weight"].asnumpy(), sens * dw, rtol=1e-5)
    np.testing.assert_allclose(gradients["bias"].asnumpy(), sens * db, rtol=1e-5)


class UsersStep(nn.TrainOneStepCell):
    """As MindSpore's users write it: gradients, clipped, then the update."""

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        sens = ops.full(loss.shape, self.sens, dtype=loss.dtype)
        grads = self.grad(self.network, self.weights)(*inputs, sens)
        grads = self.grad_reducer(grads)
        grads = tuple([g.clip(-0.3, 0.3) for g in grads])
        loss = ops.depend(loss, self.optimizer(grads))
        return loss


@MODES
def test_a_users_own_step(mode: int) -> None:
    ms.set_context(mode=mode)
    net = network()
    step = UsersStep(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    loss, dw, db = by_hand()
    assert abs(db).max() > 0.3
    np.testing.assert_allclose(step(ms.Tensor(X), ms.Tensor(Y)).asnumpy(), loss, rtol=1e-6)
    np.testing.assert_allclose(net.weight.asnumpy(), W - 0.1 * dw.clip(-0.3, 0.3), rtol=1e-5)
    np.testing.assert_allclose(net.bias.asnumpy(), B - 0.1 * db.clip(-0.3, 0.3), rtol=1e-5)


def test_parameters_keep_their_names_and_order() -> None:
    step = step_of(nn.SequentialCell(nn.Dense(2, 3), nn.Dense(3, 1)))
    names = [p.name for p in step.get_parameters()]
    assert names == [
        "0.weight", "0.bias", "1.weight", "1.bias", "global_step", "learning_rate", "momentum",
        "accum.0.weight", "accum.0.bias", "accum.1.weight", "accum.1.bias",
        "stat.0.weight", "stat.0.bias", "stat.1.weight", "stat.1.bias",
    ]  # fmt: skip


@MODES
def test_with_eval_cell(mode: int) -> None:
    ms.set_context(mode=mode)
    loss, out, label = nn.WithEvalCell(network(), nn.MSELoss())(ms.Tensor(X), ms.Tensor(Y))
    np.testing.assert_allclose(loss.asnumpy(), by_hand()[0], rtol=1e-6)
    np.testing.assert_allclose(out.asnumpy(), X @ W.T + B, rtol=1e-6)
    np.testing.assert_array_equal(label.asnumpy(), Y)


@MODES
def test_with_eval_cell_computes_the_loss_in_float32(mode: int) -> None:
    ms.set_context(mode=mode)
    half = network().to_float(ms.float16)
    loss, out, label = nn.WithEvalCell(half, nn.MSELoss(), True)(ms.Tensor(X), ms.Tensor(Y, ms.float16))
    assert (loss.dtype, out.dtype, label.dtype) == (ms.float32, ms.float32, ms.float32)
    integers = nn.WithEvalCell(half, lambda out, label: out.sum() + label.sum(), True)(ms.Tensor(X), ms.Tensor([1, 2]))
    assert integers[2].dtype is ms.int64


@MODES
def test_with_grad_cell(mode: int) -> None:
    ms.set_context(mode=mode)
    _, dw, db = by_hand()
    for sens, factor in ((None, 1.0), (ms.Tensor(4.0), 4.0)):
        grads = nn.WithGradCell(network(), nn.MSELoss(), sens)(ms.Tensor(X), ms.Tensor(Y))
        np.testing.assert_allclose(grads[0].asnumpy(), factor * dw, rtol=1e-5)
        np.testing.assert_allclose(grads[1].asnumpy(), factor * db, rtol=1e-5)


@MODES
def test_forward_value_and_grad(mode: int) -> None:
    ms.set_context(mode=mode)
    net = network()
    with_loss = nn.WithLossCell(net, nn.MSELoss())
    expected, dw, _ = by_hand()
    x, y = ms.Tensor(X), ms.Tensor(Y)
    dx = 2 * (X @ W.T + B - Y) @ W / len(X)
    loss, grads = nn.ForwardValueAndGrad(with_loss, net.trainable_params(), get_by_list=True)(x, y)
    np.testing.assert_allclose(loss.asnumpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(grads[0].asnumpy(), dw, rtol=1e-5)
    _, first = nn.ForwardValueAndGrad(with_loss)(x, y)
    np.testing.assert_allclose(first.asnumpy(), dx, rtol=1e-5)
    _, every = nn.ForwardValueAndGrad(with_loss, get_all=True, sens_param=True)(x, y, ms.Tensor(3.0))
    np.testing.assert_allclose(every[0].asnumpy(), 3 * dx, rtol=1e-5)
    _, (inputs, weights) = nn.ForwardValueAndGrad(with_loss, net.trainable_params(), True, True)(x, y)
    assert len(inputs) == 2
    assert len(weights) == 2


@MODES
def test_parameter_update(mode: int) -> None:
    ms.set_context(mode=mode)
    w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    update = nn.ParameterUpdate(w)
    assert update(ms.Tensor([3.0, 4.0])).shape == (2,)
    np.testing.assert_array_equal(w.asnumpy(), [3.0, 4.0])
    with pytest.raises(ValueError, match=r"'x' got shape \(3,\); it takes the shape of 'w', \(2,\)"):
        update(ms.Tensor([1.0, 2.0, 3.0]))


@MODES
@pytest.mark.parametrize("kind", ["GradAccumulationCell", "MicroBatchInterleaved"])
def test_micro_batches_add_up(kind: str, mode: int) -> None:
    ms.set_context(mode=mode)
    cell = getattr(nn, kind)(nn.WithLossCell(network(), nn.MSELoss()), 3)
    parts = [float(((X[i] @ W.T + B - Y[i]) ** 2).mean()) for i in range(3)]
    np.testing.assert_allclose(cell(ms.Tensor(X), ms.Tensor(Y)).asnumpy(), sum(parts), rtol=1e-6)
    with pytest.raises(
        ValueError, match=rf"{kind}: argument 'input 0' got shape \(2, 2\); it takes a first axis divisible by 3"
    ):
        cell(ms.Tensor(X[:2]), ms.Tensor(Y[:2]))


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda n, o: nn.TrainOneStepCell(lambda x: x, o), TypeError, "'network' got function; it takes a Cell"),
        (lambda n, o: nn.TrainOneStepCell(n, None), TypeError, "'optimizer' got NoneType; it takes an Optimizer"),
        (lambda n, o: nn.TrainOneStepCell(n, o, 0.0), ValueError, "'sens' got 0.0; it takes a number greater than 0"),
        (lambda n, o: nn.WithLossCell(n, 3), TypeError, "WithLossCell: argument 'loss_fn' got int"),
        (lambda n, o: nn.WithEvalCell(3, n), TypeError, "WithEvalCell: argument 'network' got int"),
        (lambda n, o: nn.WithEvalCell(n, n, 1), TypeError, "'add_cast_fp32' got 1"),
        (lambda n, o: nn.ForwardValueAndGrad(3), TypeError, "'network' got int"),
        (lambda n, o: nn.ForwardValueAndGrad(n, get_by_list=True), TypeError, "'weights' got NoneType"),
        (lambda n, o: nn.ForwardValueAndGrad(n, get_all=1), TypeError, "'get_all' got 1"),
        (lambda n, o: nn.ParameterUpdate(3), TypeError, "'param' got int; it takes a Parameter"),
        (lambda n, o: nn.GradAccumulationCell(n, 0), ValueError, "'micro_size' got 0"),
        (lambda n, o: nn.MicroBatchInterleaved(n, 1.5), TypeError, "'interleave_num' got 1.5"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(make: Any, kind: type[Exception], message: str) -> None:
    net = network()
    with pytest.raises(kind, match=message):
        make(net, nn.SGD(net.trainable_params()))
