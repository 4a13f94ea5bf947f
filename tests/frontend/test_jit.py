"""jit: keys, guards, captured and written tensors, donation, errors."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, GraphError


class Scale(nn.Cell):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.sizes = [1, 2]
        self.w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        self.seen = ms.Parameter(ms.Tensor(0.0), name="seen", requires_grad=False)

    def construct(self, x):
        ops.assign(self.seen, self.seen + 1)
        y = x * self.w * self.k * len(self.sizes)
        return y if self.training else -y


def values(fn, *args):
    return fn(*args).asnumpy().tolist()


def test_types_and_python_arguments_are_the_key():
    @ms.jit
    def f(x, n, flag=True):
        return x * n if flag else x

    a, b = ms.Tensor([1.0]), ms.Tensor([1.0, 2.0])
    assert values(f, a, 2) == [2.0]
    assert values(f, ms.Tensor([3.0]), 2) == [6.0]
    assert len(f.misses) == 1
    assert values(f, b, 2) == [2.0, 4.0]
    assert values(f, a, 3) == [3.0]
    assert f(a, 3, flag=False).asnumpy().tolist() == [1.0]
    assert f(ms.Tensor([1]), 3).dtype is ms.int64
    assert len(f.misses) == 5
    assert values(f, a, 2) == [2.0]
    assert len(f.misses) == 5


def test_one_and_true_and_one_point_zero_are_different_arguments():
    @ms.jit
    def f(x, n):
        return x + n

    x = ms.Tensor([1, 2])
    assert f(x, 1).dtype is ms.int64
    assert f(x, 1.0).dtype is ms.float32
    assert f(x, True).dtype is ms.int64


def test_a_changed_attribute_is_seen():
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = Scale(2), ms.Tensor([1.0, 1.0])
    assert values(net, x) == [-4.0, -8.0]
    net.k = 3
    assert values(net, x) == [-6.0, -12.0]
    net.set_train()
    assert values(net, x) == [6.0, 12.0]
    net.sizes.append(5)
    net.k = 3
    assert values(net, x) == [9.0, 18.0]
    assert float(net.seen) == 4.0


def test_a_changed_parameter_is_an_input_not_a_constant():
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = Scale(1), ms.Tensor([1.0, 1.0])
    assert values(net, x) == [-2.0, -4.0]
    net.w.set_data(ms.Tensor([5.0, 5.0]))
    assert values(net, x) == [-10.0, -10.0]
    (jit,) = net.__dict__["_compiled_calls"].values()
    assert jit.misses == ["first call"]


@pytest.mark.parametrize(
    "read",
    [lambda p: p.value(), lambda p: p.data, lambda p: ms.Tensor(p), lambda p: p.astype(ms.float32), lambda p: p.copy()],
    ids=["value", "data", "Tensor", "astype", "copy"],
)
def test_a_parameter_read_inside_is_an_input_not_a_constant(read):
    w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")

    @ms.jit
    def f(x):
        return read(w) + x

    assert values(f, ms.Tensor([0.0, 0.0])) == [1.0, 2.0]
    w.set_data(ms.Tensor([5.0, 6.0]))
    assert values(f, ms.Tensor([0.0, 0.0])) == [5.0, 6.0]
    assert f.misses == ["first call"]


def test_a_captured_tensor_is_an_input_not_a_constant():
    table = ms.Tensor([1.0, 2.0])

    @ms.jit
    def f(x):
        return x + table

    assert values(f, ms.Tensor([0.0, 0.0])) == [1.0, 2.0]
    table[0] = 7.0
    assert values(f, ms.Tensor([0.0, 0.0])) == [7.0, 2.0]
    assert f.misses == ["first call"]


FACTOR = 2


def test_changed_globals_and_closures_are_seen(monkeypatch):
    offset = 1

    @ms.jit
    def f(x):
        return x * FACTOR + offset

    assert values(f, ms.Tensor([1.0])) == [3.0]
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "FACTOR", 5)
        assert values(f, ms.Tensor([1.0])) == [6.0]
    assert values(f, ms.Tensor([1.0])) == [3.0]
    offset = 10
    assert values(f, ms.Tensor([1.0])) == [12.0]


def test_written_tensors_and_arguments():
    count = ms.Parameter(ms.Tensor(0), name="count", requires_grad=False)

    @ms.jit
    def f(x):
        ops.assign(count, count + 1)
        x[0] = 9.0
        return x.sum()

    x = ms.Tensor([1.0, 2.0])
    assert float(f(x)) == 11.0
    assert int(count) == 1
    assert x.asnumpy().tolist() == [9.0, 2.0]


def test_what_shares_a_donated_parameters_value_stays_valid():
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = Scale(1), ms.Tensor([1.0, 1.0])
    net(x)
    before, view = net.seen.value(), np.asarray(net.seen._value)
    holder = ms.Tensor(net.seen)
    net(x)
    assert float(before) == float(holder) == float(view) == 1.0
    assert float(net.seen) == 2.0


def test_results_of_every_shape():
    @ms.jit
    def f(x):
        return {"a": x, "b": (x * 2, [x.sum(), 3, None, "text"])}

    out = f(ms.Tensor([1.0, 2.0]))
    assert out["b"][1][1:] == [3, None, "text"]
    assert float(out["b"][1][0]) == 3.0
    assert out["a"].asnumpy().tolist() == [1.0, 2.0]


def test_a_parameter_can_be_an_argument_and_a_result():
    w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")

    @ms.jit
    def f(p, x):
        ops.assign(p, p + x)
        return p

    assert f(w, ms.Tensor([1.0, 1.0])).asnumpy().tolist() == [2.0, 3.0]
    assert w.asnumpy().tolist() == [2.0, 3.0]


def test_methods_and_cells():
    class Thing:
        def __init__(self):
            self.n = 2

        @ms.jit
        def times(self, x):
            return x * self.n

    thing, other = Thing(), Thing()
    other.n = 5
    assert values(thing.times, ms.Tensor([1.0])) == [2.0]
    assert values(other.times, ms.Tensor([1.0])) == [5.0]
    net = ms.jit(Scale(3))
    assert isinstance(net, Scale)
    assert values(net, ms.Tensor([1.0, 1.0])) == [-6.0, -12.0]
    assert "_compiled_calls" in net.__dict__


def test_random_numbers_differ_from_call_to_call_and_agree_between_modes():
    @ms.jit
    def f(x):
        return x + ops.rand(3)

    x = ms.ops.zeros(3)
    ms.set_seed(5)
    compiled = [f(x).asnumpy() for _ in range(3)]
    ms.set_seed(5)
    eager = [(x + ops.rand(3)).asnumpy() for _ in range(3)]
    np.testing.assert_array_equal(compiled, eager)
    assert not np.array_equal(compiled[0], compiled[1])


def test_a_tensor_kept_from_inside_has_no_value_outside():
    kept = []

    @ms.jit
    def f(x):
        kept.append(x * 2)
        return x

    f(ms.Tensor([1.0]))
    with pytest.raises(GraphError, match="kept from inside a compiled function has no value outside; it was made at"):
        kept[0] + 1
    with pytest.raises(GraphError, match="has no value outside"):
        kept[0].asnumpy()


def test_values_that_are_not_known_yet():
    @ms.jit
    def f(x):
        return float(x.sum()) * x

    with pytest.raises(GraphError, match=r"float\(\) needs the value of a tensor"):
        f(ms.Tensor([1.0]))


def test_constants_are_known():
    @ms.jit
    def f(x):
        n = int(ms.Tensor(2) + 1)
        return x * n

    assert values(f, ms.Tensor([1.0])) == [3.0]


def test_options():
    assert callable(ms.jit(capture_mode="trace", jit_level="O0"))
    with pytest.raises(ArgumentValueError, match="'capture_mode' got 'magic'"):
        ms.jit(lambda x: x, capture_mode="magic")
    with pytest.raises(ArgumentTypeError, match="a function, method or Cell"):
        ms.jit(3)


def test_a_failing_call_changes_nothing():
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Scale(1)
    with pytest.raises(ValueError, match="broadcasts"):
        net(ms.Tensor([1.0, 2.0, 3.0]))
    assert float(net.seen) == 0.0
    assert not net.seen.is_symbolic
    assert values(net, ms.Tensor([1.0, 1.0])) == [-2.0, -4.0]


def test_names_that_steer_the_compiler():
    assert ms.JitConfig(jit_level="O0", foo=1).jit_config_dict["foo"] == 1
    for name in ("jit_level", "exc_mode", "jit_syntax_level", "debug_level", "infer_boost"):
        with pytest.raises(ArgumentValueError, match=f"'{name}' got 'x'"):
            ms.JitConfig(**{name: "x"})
    with pytest.raises(ArgumentTypeError, match="the Cell Scale"):
        ms.jit_class(Scale)
    with pytest.raises(ArgumentTypeError, match="a class"):
        ms.jit_class(3)
    with pytest.raises(ArgumentValueError, match="'policy' got 'back'"):
        ms.lazy_inline(policy="back")
    net = Scale(2)
    net.set_jit_config(ms.JitConfig())
    assert values(net, ms.Tensor([1.0, 1.0])) == [-4.0, -8.0]
