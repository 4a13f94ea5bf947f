"""What all optimizers share: groups, rates, decays, errors, being one graph, users' own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops
from mycelia.nn import optim
from mycelia.nn.learning_rate_schedule import ExponentialDecayLR

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])


def param(name: str = "w", value: Any = (1.0, 2.0)) -> ms.Parameter:
    return ms.Parameter(ms.Tensor(np.array(value, np.float32)), name=name)


def entries(cell: Any) -> list[Any]:
    calls = cell.__dict__.get("_compiled_calls") or {}
    return [e for jit in calls.values() for bucket in jit.entries.values() for e in bucket]


G = (ms.Tensor([1.0, 1.0]),)


# learning rates ---------------------------------------------------------------------------------------------


@MODES
def test_a_new_rate_counts_at_once_without_a_new_graph(mode: int) -> None:
    ms.set_context(mode=mode)
    w = param()
    optimizer = optim.SGD([w], 1.0)
    optimizer(G)
    ops.assign(optimizer.learning_rate, 0.5)
    optimizer(G)
    optimizer.learning_rate.set_data(0.25)
    optimizer(G)
    np.testing.assert_allclose(w.asnumpy(), [-0.75, 0.25])
    assert len(entries(optimizer)) == 1


@MODES
def test_rates_past_the_end_of_a_sequence_are_its_last(mode: int) -> None:
    ms.set_context(mode=mode)
    w = param(value=(0.0, 0.0))
    optimizer = optim.SGD([w], [1.0, 0.5])
    seen = []
    for _ in range(4):
        optimizer(G)
        seen.append(float(w.asnumpy()[0]))
    np.testing.assert_allclose(seen, [-1.0, -1.5, -2.0, -2.5])


@MODES
def test_a_fixed_rate_among_schedules_can_be_changed(mode: int) -> None:
    ms.set_context(mode=mode)
    a, b = param("a"), param("b")
    optimizer = optim.SGD([{"params": [a], "lr": [0.5, 0.25]}, {"params": [b]}], 1.0)
    optimizer(G * 2)
    ops.assign(optimizer.get_lr_parameter(b), 0.5)
    optimizer(G * 2)
    np.testing.assert_allclose([a.asnumpy(), b.asnumpy()], [[0.25, 1.25], [-0.5, 0.5]])


def test_get_lr_of_one_rate_of_groups_and_of_schedules() -> None:
    a, b = param("a"), param("b")
    assert float(optim.SGD([a], 0.1).get_lr()) == pytest.approx(0.1)
    assert float(optim.SGD([a], ms.Tensor(0.1)).get_lr()) == pytest.approx(0.1)
    assert float(optim.SGD([a], np.array([0.1, 0.2])).get_lr()) == pytest.approx(0.1)
    scheduled = optim.SGD([a], ExponentialDecayLR(0.1, 0.5, 1))
    scheduled(G)
    assert float(scheduled.get_lr()) == pytest.approx(0.05)
    groups = optim.SGD([{"params": [a], "lr": 0.3}, {"params": [b]}], 0.1)
    assert [float(x) for x in groups.get_lr()] == pytest.approx([0.3, 0.1])
    assert groups.is_group
    assert groups.is_group_lr
    assert not groups.dynamic_lr
    assert [p.name for p in groups.learning_rate] == ["learning_rate_group_0", "learning_rate"]


def test_get_lr_parameter() -> None:
    a, b = param("a"), param("b")
    schedule = ExponentialDecayLR(0.1, 0.5, 1)
    optimizer = optim.Momentum([{"params": [a], "lr": 0.3}, {"params": [b], "lr": schedule}], 0.1, 0.9)
    assert float(optimizer.get_lr_parameter(a)) == pytest.approx(0.3)
    assert optimizer.get_lr_parameter([b, a])[0] is schedule
    with pytest.raises(
        ValueError, match="get_lr_parameter: argument 'param' got 'c'; it takes a parameter of this Momentum"
    ):
        optimizer.get_lr_parameter(param("c"))
    with pytest.raises(TypeError, match="got str; it takes a Parameter or a list"):
        optimizer.get_lr_parameter("a")


# weight decay -----------------------------------------------------------------------------------------------


def test_ungrouped_beta_and_gamma_are_not_decayed() -> None:
    ps = [param("w"), param("bn.gamma"), param("bn.beta")]
    optimizer = optim.SGD(ps, 1.0, weight_decay=0.5)
    optimizer((ms.Tensor([0.0, 0.0]),) * 3)
    np.testing.assert_allclose([p.asnumpy() for p in ps], [[0.5, 1.0], [1.0, 2.0], [1.0, 2.0]])
    assert optimizer.decay_flags == (True, False, False)


def test_grouped_beta_is_decayed_if_its_group_says_so() -> None:
    a, b = param("a"), param("b.beta")
    optimizer = optim.SGD([{"params": [a]}, {"params": [b], "weight_decay": 0.5}], 1.0)
    optimizer((ms.Tensor([0.0, 0.0]),) * 2)
    np.testing.assert_allclose([a.asnumpy(), b.asnumpy()], [[1.0, 2.0], [0.5, 1.0]])


def test_get_weight_decay_is_scaled_like_the_gradients() -> None:
    a, b = param("a"), param("b")
    assert float(optim.SGD([a], 0.1, weight_decay=0.25, loss_scale=4.0).get_weight_decay()) == 1.0
    groups = optim.SGD([{"params": [a], "weight_decay": 0.5}, {"params": [b]}], 0.1, weight_decay=0.25)
    assert [float(d) for d in groups.get_weight_decay()] == [0.5, 0.25]
    dynamic = optim.SGD([a], 0.1, weight_decay=ExponentialDecayLR(0.5, 0.5, 1), loss_scale=2.0)
    dynamic(G)
    assert float(dynamic.get_weight_decay()) == 0.5


# groups -----------------------------------------------------------------------------------------------------


def test_the_dicts_of_groups_are_not_changed() -> None:
    a, b = param("a"), param("b")
    groups = [{"params": (x for x in [a, b])}]
    before = dict(groups[0])
    optimizer = optim.SGD(groups, 0.1)
    assert groups[0] == before
    assert [p.name for p in optimizer.parameters] == ["a", "b"]


def test_order_params_gives_the_order_of_gradients() -> None:
    a, b = param("a"), param("b")
    optimizer = optim.SGD([{"params": [b], "lr": 1.0}, {"params": [a], "lr": 0.5}, {"order_params": [a, b]}], 0.1)
    assert [p.name for p in optimizer.parameters] == ["a", "b"]
    optimizer((ms.Tensor([1.0, 1.0]), ms.Tensor([2.0, 2.0])))
    np.testing.assert_allclose([a.asnumpy(), b.asnumpy()], [[0.5, 1.5], [-1.0, 0.0]])


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda a, b: None, ValueError, "'parameters' got None"),
        (lambda a, b: [], ValueError, "'parameters' got an empty list; it takes at least one Parameter"),
        (lambda a, b: 3, TypeError, "'parameters' got int"),
        (lambda a, b: a, TypeError, "'parameters' got Parameter; it takes a list of Parameters"),
        (lambda a, b: [a, {"params": [b]}], TypeError, "elements of type Parameter, dict"),
        (lambda a, b: [a, a], RuntimeError, "two parameters named 'a'"),
        (lambda a, b: [{"params": [a]}, {"params": [b, a]}], RuntimeError, "two parameters named 'a'"),
        (lambda a, b: [{"params": [a], "rate": 1}], KeyError, "a group with the key 'rate'"),
        (lambda a, b: [{"lr": 0.1}], KeyError, "it takes the key 'params'"),
        (lambda a, b: [{"params": []}], ValueError, "'params' got an empty list"),
        (lambda a, b: [{"params": ["a"]}], TypeError, "'params' got elements of type str"),
        (lambda a, b: [{"order_params": [a]}], ValueError, "no group with 'params'"),
        (lambda a, b: [{"params": [a]}, {"order_params": [a], "lr": 1.0}], ValueError, "a group of its own"),
        (lambda a, b: [{"params": [a, b]}, {"order_params": [a]}], ValueError, "got 1 parameters; it takes the 2"),
        (lambda a, b: [{"params": [a]}, {"order_params": [b]}], ValueError, "'order_params'"),
        (lambda a, b: [{"params": [a], "grad_centralization": 1}], TypeError, "'grad_centralization' got 1"),
        (lambda a, b: [{"params": [a], "lr": [0.1]}, {"params": [b], "lr": [0.1, 0.2]}], ValueError, "1 and 2 rates"),
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused(make: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        optim.SGD(make(param("a"), param("b")), 0.1)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"learning_rate": -0.1}, ValueError, "'learning_rate' got -0.1; it takes a number at least 0"),
        ({"learning_rate": float("nan")}, ValueError, "'learning_rate' got nan"),
        ({"learning_rate": "0.1"}, TypeError, "'learning_rate' got str"),
        ({"learning_rate": True}, TypeError, "'learning_rate' got bool"),
        ({"learning_rate": []}, ValueError, "a sequence of shape \\(0,\\); it takes one value per step"),
        ({"learning_rate": [0.1, -1.0]}, ValueError, "got the rate -1.0"),
        ({"learning_rate": ms.Tensor([[0.1]])}, ValueError, "a Tensor of 2 axes; it takes at most one axis"),
        ({"weight_decay": -1.0}, ValueError, "'weight_decay' got -1.0"),
        ({"weight_decay": "1"}, TypeError, "'weight_decay' got '1'"),
        ({"loss_scale": 0.0}, ValueError, "'loss_scale' got 0.0; it takes a number greater than 0"),
        ({"momentum": -0.5}, ValueError, "'momentum' got -0.5"),
        ({"dampening": -0.5}, ValueError, "'dampening' got -0.5"),
        ({"nesterov": True}, ValueError, "'nesterov' got True with momentum=0.0"),
        ({"nesterov": 1}, TypeError, "'nesterov' got 1"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=r"SGD: |Optimizer: ") as caught:
        optim.SGD([param()], **options)
    assert caught.match(message)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda p: optim.Adam(p, beta1=1.0), ValueError, "Adam: argument 'beta1' got 1.0"),
        (lambda p: optim.Adam(p, eps=0.0), ValueError, "'eps' got 0.0"),
        (lambda p: optim.Adam(p, use_amsgrad=True, use_lazy=True), ValueError, "at most one of"),
        (lambda p: optim.Adam(p, use_fast=True), KeyError, "argument 'use_fast' got True; it takes no such argument"),
        (lambda p: optim.Momentum(p, 0.1, -1.0), ValueError, "'momentum' got -1.0"),
        (lambda p: optim.RMSProp(p, epsilon=0.0), ValueError, "'epsilon' got 0.0"),
        (lambda p: optim.Adadelta(p, rho=1.5), ValueError, "'rho' got 1.5; it takes a number from 0 to 1"),
        (lambda p: optim.Adagrad(p, accum=-1.0), ValueError, "'accum' got -1.0"),
        (lambda p: optim.FTRL(p, lr_power=0.5), ValueError, "'lr_power' got 0.5"),
        (lambda p: optim.FTRL(p, learning_rate=[0.1, 0.2]), ValueError, "FTRL: argument 'learning_rate'"),
        (lambda p: optim.ProximalAdagrad(p, l1=-1.0), ValueError, "'l1' got -1.0"),
        (lambda p: optim.ASGD(p, lambd="x"), TypeError, "'lambd' got 'x'"),
        (lambda p: optim.Rprop(p, etas=[0.5, 1.2]), TypeError, "'etas' got list"),
        (lambda p: optim.Rprop(p, etas=(0.5, 1.0)), ValueError, "a second number above 1"),
        (lambda p: optim.Rprop(p, step_sizes=(2.0, 1.0)), ValueError, "the smallest before the largest"),
        (lambda p: optim.AdaFactor(p, 0.1), ValueError, "'learning_rate' got 0.1 with relative_step=True"),
        (lambda p: optim.AdaFactor(p, relative_step=False), ValueError, "a rate without"),
        (lambda p: optim.AdaFactor(p, decay_rate=1.0), ValueError, "'decay_rate' got 1.0"),
        (optim.LARS, TypeError, "LARS: argument 'optimizer' got list; it takes an Optimizer"),
    ],
)  # fmt: skip
def test_wrong_options_of_each_are_refused(make: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make([param()])


# gradients --------------------------------------------------------------------------------------------------


@MODES
def test_wrong_gradients_are_refused_and_change_nothing(mode: int) -> None:
    ms.set_context(mode=mode)
    w = param()
    optimizer = optim.Momentum([w], 0.1, 0.9)
    for gradients, kind, message in (
        ((), ValueError, "'gradients' got 0 gradients; it takes one for each of the 1 parameters"),
        ((ms.Tensor([1.0]),), ValueError, r"got shape \(1,\) for 'w'; it takes the parameter's shape \(2,\)"),
        ((1.0,), TypeError, "got float for 'w'; it takes Tensors"),
        (ms.Tensor([1.0, 2.0]), TypeError, "got Tensor; it takes a tuple"),
    ):
        with pytest.raises(kind, match=message):
            optimizer(gradients)
    np.testing.assert_array_equal(w.asnumpy(), [1.0, 2.0])
    assert int(optimizer.global_step.asnumpy()[0]) == 0


# one graph --------------------------------------------------------------------------------------------------


@MODES
def test_an_update_is_one_executable_that_writes_its_parameters_in_place(mode: int) -> None:
    ms.set_context(mode=mode)
    ps = [param(f"p{i}") for i in range(5)]
    optimizer = optim.Adam(ps, 0.1)
    for _ in range(3):
        optimizer((ms.Tensor([1.0, -1.0]),) * 5)
    (entry,) = entries(optimizer)
    written = {id(t) for t in entry.written}
    assert written == {id(p) for p in optimizer.get_parameters() if p.name != "learning_rate"}
    assert {id(entry.captured[i - 5]) for i in entry.donated} == written
    np.testing.assert_allclose(ps[4].asnumpy(), [0.7, 2.3], rtol=1e-5)


@MODES
def test_a_held_value_survives_the_update(mode: int) -> None:
    ms.set_context(mode=mode)
    w = param()
    held = w.value()
    optim.SGD([w], 0.5)(G)
    np.testing.assert_array_equal(held.asnumpy(), [1.0, 2.0])
    np.testing.assert_array_equal(w.asnumpy(), [0.5, 1.5])


# users' own -------------------------------------------------------------------------------------------------


class Clipped(optim.Momentum):
    """A user's: clips the gradients before the update of its base."""

    def construct(self, gradients: Any) -> Any:
        return super().construct(tuple([g.clip(-0.5, 0.5) for g in gradients]))


class ByHand(optim.Optimizer):
    """A user's, written as MindSpore's documentation shows."""

    def __init__(self, params: Any, learning_rate: Any, momentum: float = 0.9) -> None:
        super().__init__(learning_rate, params, 0.5)
        self.moments = self.parameters.clone(prefix="moments", init="zeros")
        self.momentum = momentum

    def construct(self, gradients: Any) -> Any:
        lr = self.get_lr()
        gradients = self.flatten_gradients(gradients)
        gradients = self.decay_weight(gradients)
        gradients = self.gradients_centralization(gradients)
        gradients = self.scale_grad(gradients)
        self.assignadd(self.global_step, self.global_step_increase_tensor)

        def one(p: Any, m: Any, g: Any) -> bool:
            ops.assign(m, m * self.momentum + g)
            ops.assign(p, p - lr * m)
            return True

        return self.hyper_map(one, self.parameters, self.moments, gradients)


@MODES
def test_users_optimizers(mode: int) -> None:
    ms.set_context(mode=mode)
    w = param()
    Clipped([w], 1.0, 0.0)((ms.Tensor([3.0, -3.0]),))
    np.testing.assert_allclose(w.asnumpy(), [0.5, 2.5])
    w = param()
    by_hand = ByHand([w], 1.0)
    assert by_hand(G) == (True,)
    np.testing.assert_allclose(w.asnumpy(), [-0.5, 0.0])
    by_hand(G)
    np.testing.assert_allclose(w.asnumpy(), [-2.6, -2.8], rtol=1e-6)
    assert int(by_hand.global_step.asnumpy()[0]) == 2
    assert [p.name for p in by_hand.get_parameters()] == ["global_step", "learning_rate", "w", "moments.w"]


def test_a_users_optimizer_runs_line_by_line_in_pynative() -> None:
    seen: list[float] = []

    class Looks(optim.Optimizer):
        def construct(self, gradients: Any) -> bool:
            seen.append(float(gradients[0].asnumpy()[0]))
            return True

    optimizer = Looks(0.1, [param()])
    optimizer(G)
    optimizer((ms.Tensor([5.0, 1.0]),))
    assert seen == [1.0, 5.0]


def test_target_and_unique() -> None:
    optimizer = optim.LazyAdam([param()])
    assert optimizer.target == "CPU"
    assert optimizer.unique is True
    optimizer.unique = False
    assert optimizer.unique is False
    optimizer.target = "CPU"
    with pytest.raises(ValueError, match="'target' got 'TPU'"):
        optimizer.target = "TPU"
    with pytest.raises(ValueError, match="'target' got 'Ascend'; it takes 'CPU', the device in use"):
        optimizer.target = "Ascend"
