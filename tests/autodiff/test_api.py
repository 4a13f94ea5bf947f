"""grad, value_and_grad and GradOperation in both modes: what they return and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, MyceliaError, OutOfRangeError, UnsupportedError

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])

X = np.array([1.0, 2.0, -3.0])
Y = np.array([0.5, -1.5, 2.0])


def tensors():
    return ms.Tensor(X), ms.Tensor(Y)


def product(x, y):
    return (x * x * y).sum()


@MODES
def test_one_position_gives_one_gradient(mode):
    ms.set_context(mode=mode)
    x, y = tensors()
    np.testing.assert_allclose(ms.grad(product)(x, y).asnumpy(), 2 * X * Y)
    np.testing.assert_allclose(ms.grad(product, 1)(x, y).asnumpy(), X**2)
    np.testing.assert_allclose(ms.grad(product, -1)(x, y).asnumpy(), X**2)


@MODES
def test_a_tuple_of_positions_gives_a_tuple(mode):
    ms.set_context(mode=mode)
    found = ms.grad(product, (0, 1))(*tensors())
    assert isinstance(found, tuple)
    np.testing.assert_allclose(found[0].asnumpy(), 2 * X * Y)
    np.testing.assert_allclose(found[1].asnumpy(), X**2)
    (only,) = ms.grad(product, (1,))(*tensors())
    np.testing.assert_allclose(only.asnumpy(), X**2)


@MODES
def test_value_and_grad(mode):
    ms.set_context(mode=mode)
    value, gradient = ms.value_and_grad(product)(*tensors())
    np.testing.assert_allclose(value.asnumpy(), (X * X * Y).sum())
    np.testing.assert_allclose(gradient.asnumpy(), 2 * X * Y)


@MODES
def test_weights_and_positions(mode):
    ms.set_context(mode=mode)
    w = ms.Parameter(ms.Tensor(Y), name="w")
    v = ms.Parameter(ms.Tensor(X), name="v")

    def f(x):
        return (x * w * v).sum()

    x = ms.Tensor(X)
    inputs, weights = ms.grad(f, 0, [w, v])(x)
    np.testing.assert_allclose(inputs.asnumpy(), X * Y)
    np.testing.assert_allclose(weights[0].asnumpy(), X * X)
    np.testing.assert_allclose(weights[1].asnumpy(), X * Y)
    alone = ms.grad(f, None, [w])(x)
    assert isinstance(alone, tuple)
    np.testing.assert_allclose(alone[0].asnumpy(), X * X)
    np.testing.assert_allclose(ms.grad(f, None, w)(x).asnumpy(), X * X)
    value, (gw,) = ms.value_and_grad(f, None, [w])(x)
    np.testing.assert_allclose(gw.asnumpy(), X * X)
    assert value.shape == ()


@MODES
def test_a_weight_that_is_not_used_has_a_zero_gradient(mode):
    ms.set_context(mode=mode)
    w = ms.Parameter(ms.Tensor(Y), name="w")
    (found,) = ms.grad(lambda x: x.sum(), None, [w])(ms.Tensor(X))
    np.testing.assert_array_equal(found.asnumpy(), np.zeros(3))


@MODES
def test_has_aux(mode):
    ms.set_context(mode=mode)

    def f(x):
        return (x * x).sum(), x * 3, x.sum()

    gradient, aux = ms.grad(f, has_aux=True)(ms.Tensor(X))
    np.testing.assert_allclose(gradient.asnumpy(), 2 * X)
    np.testing.assert_allclose(aux[0].asnumpy(), 3 * X)
    (value, first, second), gradient = ms.value_and_grad(f, has_aux=True)(ms.Tensor(X))
    np.testing.assert_allclose(value.asnumpy(), (X * X).sum())
    np.testing.assert_allclose(first.asnumpy(), 3 * X)
    np.testing.assert_allclose(second.asnumpy(), X.sum())
    np.testing.assert_allclose(gradient.asnumpy(), 2 * X)


@MODES
def test_several_outputs_are_summed(mode):
    ms.set_context(mode=mode)
    found = ms.grad(lambda x: (x * x, x * 3))(ms.Tensor(X))
    np.testing.assert_allclose(found.asnumpy(), 2 * X + 3)


@MODES
def test_containers_as_arguments(mode):
    ms.set_context(mode=mode)
    found = ms.grad(lambda d: (d["a"] * d["b"][0]).sum())({"a": ms.Tensor(X), "b": [ms.Tensor(Y)]})
    np.testing.assert_allclose(found["a"].asnumpy(), Y)
    np.testing.assert_allclose(found["b"][0].asnumpy(), X)


@MODES
def test_return_ids(mode):
    ms.set_context(mode=mode)
    w = ms.Parameter(ms.Tensor(Y), name="w")
    inputs, weights = ms.grad(lambda x: (x * w).sum(), (0,), [w], return_ids=True)(ms.Tensor(X))
    assert inputs[0][0] == 0
    assert weights[0][0] == "w"
    np.testing.assert_allclose(weights[0][1].asnumpy(), X)


@MODES
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_higher_orders(mode, order):
    ms.set_context(mode=mode)
    fn = lambda x: x**5 * 0.1 + ops.sin(x)  # noqa: E731
    for _ in range(order):
        fn = ms.grad(fn)
    coefficient = np.prod(np.arange(5, 5 - order, -1)) * 0.1
    trig = [np.sin, np.cos, lambda t: -np.sin(t), lambda t: -np.cos(t)][order % 4]
    want = coefficient * 1.3 ** (5 - order) + trig(1.3)
    np.testing.assert_allclose(fn(ms.Tensor(np.float64(1.3))).asnumpy(), want, rtol=1e-10)


@MODES
def test_nested_gradients_do_not_mix(mode):
    """d/dx [x * d/dy (x + y)] is 1, not 2."""
    ms.set_context(mode=mode)
    found = ms.grad(lambda x: x * ms.grad(lambda y: x + y)(x))(ms.Tensor(3.0))
    assert float(found) == 1.0


@MODES
def test_gradient_of_a_gradient_with_respect_to_a_weight(mode):
    ms.set_context(mode=mode)
    w = ms.Parameter(ms.Tensor(Y), name="w")

    def penalty(x):
        return (ms.grad(lambda x: (x * x * w * w).sum())(x) ** 2).sum()

    (found,) = ms.grad(penalty, None, [w])(ms.Tensor(X))
    np.testing.assert_allclose(found.asnumpy(), 16 * X**2 * Y**3, rtol=1e-12)


@MODES
def test_stop_gradient(mode):
    ms.set_context(mode=mode)
    found = ms.grad(lambda x: (x * ops.stop_gradient(x * x)).sum())(ms.Tensor(X))
    np.testing.assert_allclose(found.asnumpy(), X * X)


@MODES
def test_parameters_written_inside_keep_their_last_value(mode):
    ms.set_context(mode=mode)
    count = ms.Parameter(ms.Tensor(0.0), name="count", requires_grad=False)

    def f(x):
        ops.assign(count, count + 1.0)
        return (x * count).sum()

    gradient = ms.grad(f)
    assert [float(gradient(ms.Tensor(2.0))) for _ in range(3)] == [1.0, 2.0, 3.0]
    assert float(count) == 3.0


@MODES
def test_in_place_change_of_a_local_tensor(mode):
    ms.set_context(mode=mode)

    def f(x):
        y = x * 2
        z = y * y
        y[0] = 0.0
        return (y * x).sum() + z.sum()

    want = 4 * X + 8 * X
    want[0] = 8 * X[0]
    np.testing.assert_allclose(ms.grad(f)(ms.Tensor(X)).asnumpy(), want)


class Cubed(nn.Cell):
    """A Cell whose gradient is deliberately not that of its computation."""

    def construct(self, x, y):
        return x * x * x * y

    def bprop(self, x, y, out, dout):
        return dout * 10.0, dout * out


@MODES
def test_custom_bprop(mode):
    ms.set_context(mode=mode)
    net = Cubed()
    gx, gy = ms.grad(lambda x, y: net(x, y).sum(), (0, 1))(*tensors())
    np.testing.assert_allclose(gx.asnumpy(), np.full(3, 10.0))
    np.testing.assert_allclose(gy.asnumpy(), X**3 * Y)
    np.testing.assert_allclose(net(*tensors()).asnumpy(), X**3 * Y)


@MODES
def test_custom_bprop_at_second_order_differentiates_the_bprop(mode):
    ms.set_context(mode=mode)
    net = Cubed()
    second = ms.grad(lambda y: ms.grad(lambda x, y: net(x, y).sum(), 1)(ms.Tensor(X), y).sum())(ms.Tensor(Y))
    np.testing.assert_allclose(second.asnumpy(), X**3 * Y, rtol=1e-12)


@MODES
def test_a_bprop_with_the_wrong_number_of_gradients(mode):
    class Wrong(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return (dout,)

    ms.set_context(mode=mode)
    net = Wrong()
    with pytest.raises(ArgumentValueError, match=r"Wrong.bprop.*got 1 gradients.*2 inputs"):
        ms.grad(lambda x, y: net(x, y).sum())(*tensors())


@MODES
def test_jit_inside_grad_and_grad_inside_jit(mode):
    ms.set_context(mode=mode)
    compiled = ms.jit(product)
    np.testing.assert_allclose(ms.grad(compiled)(*tensors()).asnumpy(), 2 * X * Y)
    np.testing.assert_allclose(ms.jit(ms.grad(product))(*tensors()).asnumpy(), 2 * X * Y)
    second = ms.grad(lambda x, y: ms.grad(compiled)(x, y).sum())(*tensors())
    np.testing.assert_allclose(second.asnumpy(), 2 * Y)


@MODES
def test_grad_operation(mode):
    ms.set_context(mode=mode)
    w = ms.Parameter(ms.Tensor(Y), name="w")

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = w

        def construct(self, x):
            return x * x * self.w

    net, x = Net(), ms.Tensor(X)
    np.testing.assert_allclose(ms.ops.GradOperation()(net)(x).asnumpy(), 2 * X * Y)
    (all_inputs,) = ms.ops.GradOperation(get_all=True)(net)(x)
    np.testing.assert_allclose(all_inputs.asnumpy(), 2 * X * Y)
    (weights,) = ms.ops.GradOperation(get_by_list=True)(net, ms.ParameterTuple([w]))(x)
    np.testing.assert_allclose(weights.asnumpy(), X * X)
    sens = ms.Tensor(np.array([1.0, 0.0, 2.0]))
    found = ms.ops.GradOperation(sens_param=True)(net)(x, sens)
    np.testing.assert_allclose(found.asnumpy(), 2 * X * Y * np.array([1.0, 0.0, 2.0]))


def test_the_same_gradient_made_anew_each_step_compiles_once():
    ms.set_context(mode=ms.GRAPH_MODE)

    def f(x):
        return (x * x).sum()

    for _ in range(4):
        ms.grad(f)(ms.Tensor(X))
    (jit,) = f.__dict__["_compiled_calls"].values()
    assert jit.misses == ["first call"]


@MODES
def test_bad_calls(mode):
    ms.set_context(mode=mode)
    x, y = tensors()
    with pytest.raises(ArgumentValueError, match="'grad_position' got None"):
        ms.grad(product, None)
    with pytest.raises(ArgumentTypeError, match="a function or a Cell"):
        ms.grad(3)
    with pytest.raises(ArgumentTypeError, match="an int, a tuple of ints or None"):
        ms.value_and_grad(product, 0.5)
    with pytest.raises(OutOfRangeError, match="position of the 2 positional"):
        ms.grad(product, 2)(x, y)
    with pytest.raises(ArgumentTypeError, match=r"dtype Int64.*floating or complex"):
        ms.grad(product)(ms.Tensor([1, 2, 3]), y)
    with pytest.raises(ArgumentTypeError, match="a Tensor to differentiate"):
        ms.grad(product)(2.0, y)
    with pytest.raises(ArgumentTypeError, match="Parameters"):
        ms.grad(product, None, [x])
    with pytest.raises(ArgumentValueError, match="has_aux"):
        ms.grad(product, has_aux=True)(x, y)
    with pytest.raises(ArgumentTypeError, match="returns a Tensor"):
        ms.grad(lambda x: 3)(x)


def test_hooks_on_tensors_see_and_replace_gradients():
    seen = []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: seen.append(g.asnumpy()) or g * 10)
        return (y * y).sum()

    found = ms.grad(f)(ms.Tensor(X))
    np.testing.assert_allclose(seen[0], 4 * X)
    np.testing.assert_allclose(found.asnumpy(), 80 * X)


def test_nothing_is_recorded_after_a_gradient():
    w = ms.Parameter(ms.Tensor(Y), name="w")
    value, (gradient,) = ms.value_and_grad(lambda x: (x * w).sum(), None, [w])(ms.Tensor(X))
    assert value._node is None
    assert gradient._node is None
    assert w._node is None


def test_a_failure_inside_leaves_the_weights_as_they_were():
    w = ms.Parameter(ms.Tensor(Y), name="w")
    with pytest.raises(MyceliaError):
        ms.grad(lambda x: x * w + ms.Tensor([1.0, 2.0]), None, [w])(ms.Tensor(X))
    assert w._node is None
    np.testing.assert_array_equal(w.asnumpy(), Y)


def test_an_operator_without_a_gradient_says_so():
    from mycelia.ir.primitive import PRIMITIVES, Primitive
    from mycelia.tensor.dispatch import apply

    op = Primitive("test_without_gradient", infer=lambda x: x, lower=lambda x: x)
    try:
        with pytest.raises(UnsupportedError, match="test_without_gradient: the operator has no gradient"):
            ms.grad(lambda x: apply(op, x).sum())(ms.Tensor(X))
    finally:
        del PRIMITIVES["test_without_gradient"]
