"""Backward passes that repeat and are compiled: the same gradients as the rules one by one, or the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.autodiff import repeated as module
from mycelia.autodiff.repeated import COMPILED_AT, repeated
from mycelia.ops.rectifiers import relu_p
from mycelia.tensor.mode import running

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    monkeypatch.setattr(module, "COLD", 0)  # which operators have been compiled depends on the tests before
    before = repeated.enabled
    repeated.clear()
    yield
    repeated.enabled = before
    repeated.clear()


def tensor(*shape: int) -> ms.Tensor:
    return ms.Tensor(RNG.standard_normal(shape).astype(np.float32))


def programs() -> int:
    """How many structures have a program."""
    return sum(type(known) is module._Compiled for known in repeated._known.values())


def power(x: Any, n: int) -> Any:
    """``x`` to the power ``n + 1``, in ``n`` steps."""
    made = x
    for _ in range(n):
        made = made * x
    return made


def same_as_rules(step: Callable[[], Any], times: int = COMPILED_AT + 2, compiled: int = 1) -> None:
    """``step`` gives the same, time after time, with the rules alone; ``compiled`` programs were made."""
    repeated.enabled = False
    wanted = [arrays(step()) for _ in range(times)]
    repeated.enabled = True
    found = [arrays(step()) for _ in range(times)]
    for one, other in zip(found, wanted, strict=True):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    assert programs() == compiled


def arrays(nest: Any) -> list[Any]:
    if isinstance(nest, (tuple, list)):
        return [a for x in nest for a in arrays(x)]
    return [nest.asnumpy()] if isinstance(nest, ms.Tensor) else [nest]


def test_a_training_step_is_compiled_when_it_is_met_for_the_third_time() -> None:
    net = nn.SequentialCell(nn.Dense(5, 8), nn.LayerNorm((8,)), nn.ReLU(), nn.Dense(8, 3))
    loss_fn = nn.CrossEntropyLoss()
    x, y = tensor(4, 5), ms.Tensor(np.array([0, 2, 1, 1], np.int32))
    gradient = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, net.trainable_params())
    seen = []
    for _ in range(COMPILED_AT + 1):
        gradient(x, y)
        seen.append(programs())
    assert seen == [0] * (COMPILED_AT - 1) + [1, 1]
    same_as_rules(lambda: gradient(x, y))


def test_new_values_are_used_at_every_call() -> None:
    w = ms.Parameter(tensor(3, 4), name="w")
    gradient = ms.grad(lambda x: ops.exp(ops.relu(ops.matmul(x, w)) * x.sum()).mean(), 0, w)
    for k in range(COMPILED_AT + 3):
        x = RNG.standard_normal((2, 3)).astype(np.float32) * 0.3
        of_x, of_w = gradient(ms.Tensor(x))
        by_jax = jax.grad(lambda x, w: jnp.exp(jax.nn.relu(x @ w) * x.sum()).mean(), (0, 1))
        want_x, want_w = by_jax(jnp.asarray(x), jnp.asarray(w.asnumpy()))
        np.testing.assert_allclose(of_x.asnumpy(), want_x, rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(of_w.asnumpy(), want_w, rtol=2e-5, atol=1e-6)
        w.set_data(w + 0.1 * k)
    assert programs() == 1


def test_attributes_types_and_wiring_tell_structures_apart() -> None:
    x, y = tensor(3, 3), tensor(3, 3)

    def of(fn: Callable[[Any, Any], Any]) -> Callable[[], Any]:
        return lambda: ms.grad(fn, (0, 1))(x, y)

    functions = [
        lambda a, b: (ops.exp(a).sum(0) * ops.tanh(b)).sum(),
        lambda a, b: (ops.exp(a).sum(1) * ops.tanh(b)).sum(),
        lambda a, b: (ops.exp(b).sum(1) * ops.tanh(a)).sum(),
        lambda a, b: (ops.exp(a).sum(1) * ops.tanh(a)).sum() + b.sum(),
    ]
    for i, fn in enumerate(functions):
        same_as_rules(of(fn), compiled=i + 1)
    x = tensor(2, 3)
    y = tensor(2, 3)
    same_as_rules(of(lambda a, b: (ops.exp(a) * ops.tanh(b)).sum()), compiled=len(functions) + 1)


def test_an_input_from_outside_of_another_shape_is_another_structure() -> None:
    def gradient(x: ms.Tensor, c: ms.Tensor) -> Any:
        return ms.grad(lambda x: (ops.exp(x) * c * ops.tanh(x)).sum())(x)

    x, row, full = tensor(2, 3), tensor(3), tensor(2, 3)
    same_as_rules(lambda: [gradient(x, row), gradient(x, full)], compiled=2)


def test_a_structure_that_changes_is_looked_at_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    described = module._structure
    monkeypatch.setattr(module, "_structure", lambda *args: looked.append(1) or described(*args))
    x = tensor(4)
    for k in range(60):
        ms.grad(lambda x: power(x, k + 4).sum())(x)  # noqa: B023
    assert programs() == 0
    assert len(looked) < 16
    for _ in range(module._RAREST + COMPILED_AT):  # and found again when it settles
        ms.grad(lambda x: power(x, 4).sum())(x)
    assert programs() == 1


def test_few_steps_are_left_alone() -> None:
    x = tensor(3)
    same_as_rules(lambda: ms.grad(lambda x: ops.exp(x).sum())(x), compiled=0)


def test_only_so_many_structures_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REMEMBERED", 3)
    monkeypatch.setattr(module, "_PATIENCE", 100)
    x = tensor(4)
    for k in range(4, 14):
        ms.grad(lambda x: power(x, k).sum())(x)  # noqa: B023
        assert len(repeated._known) <= 3


def test_hooks_are_called_each_time() -> None:
    x = tensor(3)
    called: list[Any] = []

    def step() -> Any:
        def fn(x: ms.Tensor) -> ms.Tensor:
            y = ops.exp(x)
            y.register_hook(lambda g: called.append(1) or g * 2.0)
            return (y * ops.tanh(y)).sum()

        return ms.grad(fn)(x)

    same_as_rules(step, times=4, compiled=0)
    assert len(called) == 8


def test_a_bprop_of_its_own_is_called_each_time() -> None:
    called: list[Any] = []

    class Own(nn.Cell):
        def construct(self, x: Any) -> Any:
            return ops.exp(x)

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            called.append(1)
            return (dout * 3.0,)

    own, x = Own(), tensor(3)
    same_as_rules(lambda: ms.grad(lambda x: (own(ops.tanh(x)) * x * x).sum())(x), times=4, compiled=0)
    assert len(called) == 8


def test_a_compiled_function_inside_stays_one_step() -> None:
    inner = ms.jit(lambda x: ops.exp(x) * 2.0)
    x = tensor(3)
    same_as_rules(lambda: ms.grad(lambda x: (inner(ops.tanh(x)) * x * x).sum())(x), compiled=0)


def test_second_derivatives() -> None:
    x = tensor(3)
    first = ms.grad(lambda x: (ops.exp(x) * ops.tanh(x) * x).sum())
    same_as_rules(lambda: ms.grad(lambda x: (first(x) * first(x)).sum())(x))
    second = ms.grad(lambda x: first(x).sum())(x)
    by_jax = jax.grad(lambda x: jax.grad(lambda x: (jnp.exp(x) * jnp.tanh(x) * x).sum())(x).sum())
    np.testing.assert_allclose(second.asnumpy(), by_jax(jnp.asarray(x.asnumpy())), rtol=1e-4, atol=1e-5)


def test_weights_that_are_not_used_get_zeros() -> None:
    used, unused = ms.Parameter(tensor(3), name="used"), ms.Parameter(tensor(2, 2), name="unused")
    gradient = ms.value_and_grad(lambda x: (ops.exp(x * used) * x).sum(), 0, (unused, used))
    x = tensor(3)
    same_as_rules(lambda: gradient(x))
    assert not gradient(x)[1][1][0].asnumpy().any()


def test_integers_and_stopped_gradients() -> None:
    x, places = tensor(4, 3), ms.Tensor(np.array([2, 0, 2], np.int32))

    def fn(x: ms.Tensor) -> tuple[ms.Tensor, ms.Tensor]:
        taken = ops.exp(x)[places]
        return (ops.stop_gradient(taken) * taken * ops.sort(taken, axis=0)[0]).sum(), ops.argmax(taken, 1)

    same_as_rules(lambda: ms.value_and_grad(fn)(x))


def test_random_masks_are_those_of_the_forward_pass() -> None:
    drop = nn.Dropout(p=0.5).set_train()
    x = tensor(20, 30)

    def step() -> Any:
        def fn(x: ms.Tensor) -> tuple[ms.Tensor, ms.Tensor]:
            y = drop(ops.exp(x))
            return (y * ops.tanh(y)).sum(), y

        grad, (y,) = ms.grad(fn, has_aux=True)(x)
        assert (grad.asnumpy()[y.asnumpy() == 0] == 0).all()
        assert (grad.asnumpy()[y.asnumpy() != 0] != 0).all()
        return float((y.asnumpy() == 0).mean())

    fractions = [step() for _ in range(COMPILED_AT + 3)]
    assert programs() == 1
    assert len(set(fractions)) > 1


def test_several_outputs_and_a_given_cotangent() -> None:
    x, sens = tensor(4, 3), tensor(4, 3)
    same_as_rules(lambda: ms.grad(lambda x: (ops.exp(x) * x, ops.tanh(x) * 2.0, x))(x))
    gradient = ops.GradOperation(sens_param=True)(lambda x: ops.exp(x) * ops.tanh(x))
    same_as_rules(lambda: gradient(x, sens), compiled=2)


def test_writes_in_place() -> None:
    x = tensor(3)

    def fn(x: ms.Tensor) -> ms.Tensor:
        y = ops.exp(x)
        z = y * 2.0
        y.mul_(x)
        y[0] = z[1]
        return (y * z * x).sum()

    same_as_rules(lambda: ms.grad(fn)(x))


def test_a_value_given_behind_the_back_of_the_tape() -> None:
    x, other = tensor(3), tensor(3)

    def fn(x: ms.Tensor) -> ms.Tensor:
        y = ops.exp(x)
        z = ops.tanh(y)
        with running():
            y.copy_(other)  # later steps see the new value, the gradient still flows to exp
        return (y * z * y).sum()

    same_as_rules(lambda: ms.grad(fn)(x))


def test_the_same_tensor_twice_and_a_weight_used_twice() -> None:
    w = ms.Parameter(tensor(3, 3), name="w")
    x = tensor(2, 3)
    same_as_rules(lambda: ms.grad(lambda x: (x @ w @ w * (x @ w)).sum(), (0,), w)(x))


def test_a_rule_that_asks_for_a_value_is_run_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def rule(ct: ms.Tensor, x: ms.Tensor, out: ms.Tensor) -> list[Any]:
        asked.append(x.asnumpy())
        return [ct * 5.0]

    monkeypatch.setattr(relu_p, "vjp", rule)
    x = tensor(3)
    same_as_rules(lambda: ms.grad(lambda x: (ops.relu(x) * ops.exp(x) * x).sum())(x), times=4, compiled=0)
    assert len(asked) == 8


def test_a_recorded_array_that_is_gone_is_told_of_as_by_the_rules() -> None:
    x = tensor(3)

    def pull() -> Any:
        given = ms.Tensor(x.asnumpy())
        _, vjp_fn = ms.vjp(lambda x: ops.exp(x) * ops.tanh(x) * x, given)
        return given, vjp_fn

    for _ in range(COMPILED_AT):
        pull()[1](x)
    assert programs() == 1
    given, vjp_fn = pull()
    given._value.delete()
    with pytest.raises(ms.core.errors.StateError, match="was given to a compiled function that reused its memory"):
        vjp_fn(x)


def test_half_precision_keeps_its_dtype() -> None:
    x = tensor(4, 4).astype(ms.bfloat16)
    gradient = ms.grad(lambda x: (ops.exp(x.astype(ms.float32)) * ops.tanh(x).astype(ms.float32)).sum())
    found = [gradient(x) for _ in range(COMPILED_AT + 1)]
    assert programs() == 1
    assert {g.dtype for g in found} == {ms.bfloat16}
    np.testing.assert_array_equal(found[0].astype(ms.float32).asnumpy(), found[-1].astype(ms.float32).asnumpy())


def test_a_tape_of_operators_that_had_to_be_compiled_is_compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COLD", 4)
    x = tensor(11, 13, 17)  # a shape of this test alone
    gradient = ms.grad(lambda x: (ops.exp(x) * ops.tanh(x) * x).sum())
    first = gradient(x)
    assert programs() == 1
    repeated.enabled = False
    np.testing.assert_allclose(first.asnumpy(), gradient(x).asnumpy(), rtol=2e-5, atol=1e-6)
    repeated.enabled = True
    repeated.clear()
    gradient(x)  # nothing had to be compiled this time
    assert programs() == 0


def test_a_program_and_the_rules_of_a_network_agree_in_training() -> None:
    def losses(compiled: bool) -> list[float]:
        ms.set_seed(3)
        repeated.enabled = compiled
        net = nn.SequentialCell(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dense(4 * 36, 5))
        net.set_train()
        optimizer = nn.Adam(net.trainable_params(), 0.01)
        loss_fn = nn.CrossEntropyLoss()
        rng = np.random.default_rng(5)
        x = ms.Tensor(rng.standard_normal((8, 2, 6, 6)).astype(np.float32))
        y = ms.Tensor(rng.integers(0, 5, 8).astype(np.int32))
        gradient = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
        found = []
        for _ in range(12):
            loss, grads = gradient(x, y)
            optimizer(grads)
            found.append(float(loss))
        return found

    one_by_one, as_program = losses(False), losses(True)
    assert programs() == 1
    np.testing.assert_allclose(as_program, one_by_one, rtol=1e-4)
    assert as_program[-1] < as_program[0]
