"""Numbers as inputs, the report of compilations, the notice, and the bound on graphs kept."""

from __future__ import annotations

import math
import types
import warnings

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, GraphError

X = ms.Tensor([1.0, -2.0, 3.5, 0.1])
RATES = [0.1 * (i + 1) / 3 for i in range(20)]


class Plain:
    def __init__(self, **values):
        self.__dict__.update(values)


def constant(fn, *args):
    """What a new compilation, which has every number as a constant, gives."""
    return ms.jit(fn)(*args).asnumpy()


# -- numbers become inputs --------------------------------------------------------------------------------

RATE = 0.1
settings = types.ModuleType("settings")
settings.__file__ = "settings.py"


def places():
    obj, nested, rate = Plain(rate=0.0), Plain(cfg=Plain(rate=0.0)), 0.0

    def set_cell(v):
        nonlocal rate
        rate = v

    class Net(nn.Cell):
        def construct(self, x):
            return x - self.rate * x

    net = Net()
    return {
        "attribute": (lambda x: x - obj.rate * x, lambda v: setattr(obj, "rate", v)),
        "nested": (lambda x: x - nested.cfg.rate * x, lambda v: setattr(nested.cfg, "rate", v)),
        "cell": (lambda x: x - rate * x, set_cell),
        "global": (lambda x: x - RATE * x, lambda v: globals().update(RATE=v)),
        "module": (lambda x: x - settings.rate * x, lambda v: setattr(settings, "rate", v)),
        "class": (lambda x: x - Plain.rate * x, lambda v: setattr(Plain, "rate", v)),
        "inherited": (lambda x: x - Plain().rate * x + obj.shared * 0, lambda v: setattr(Plain, "shared", v)),
        "cell attribute": (lambda x: net(x), lambda v: setattr(net, "rate", v)),
    }


@pytest.mark.parametrize("place", ["attribute", "nested", "cell", "global", "module", "class", "cell attribute"])
def test_twenty_rates_compile_twice(place, monkeypatch):
    monkeypatch.setitem(globals(), "RATE", RATE)
    monkeypatch.setattr(Plain, "rate", 0.0, raising=False)
    fn, put = places()[place]
    f = ms.jit(fn)
    for rate in RATES:
        put(rate)
        np.testing.assert_array_equal(f(X).asnumpy(), constant(fn, X))
    assert len(f.compilations) == 2


@pytest.mark.parametrize("by", ["position", "keyword", "item"])
def test_twenty_rates_as_an_argument_compile_twice(by):
    def fn(x, rate):
        rate = rate["rate"] if isinstance(rate, dict) else rate
        return x - rate * x

    f = ms.jit(fn)
    for rate in RATES:
        got = f(X, rate) if by == "position" else f(X, rate=rate) if by == "keyword" else f(X, {"rate": rate})
        np.testing.assert_array_equal(got.asnumpy(), constant(fn, X, rate))
    assert len(f.compilations) == 2


CASES = {
    "add": lambda x, a, b: x + a,
    "reflected": lambda x, a, b: a - x / b,
    "division": lambda x, a, b: x / a + b / (x + 10),
    "compare": lambda x, a, b: ops.where(x > a, x, -x) + (a < x).astype(ms.float32),
    "arithmetic of numbers": lambda x, a, b: x * ((a + b) * 2 - b / 3 + (-a) % 7 + abs(b - a) // 2),
    "parts of a tensor": lambda x, a, b: _written(x, a),
    "kept in variables": lambda x, a, b: sum([x * v for v in (a, b, a * b)]),
    "whole numbers": lambda x, a, b: x.astype(ms.int32) * 3 + x.astype(ms.int64) + a,
    "functions": lambda x, a, b: ops.add(ops.mul(x, a), b) + ops.maximum(x, a),
    "in a branch": lambda x, a, b: x * a if x.sum() > b else x - b,
    "in a loop": lambda x, a, b: _looped(x, a, b),
    "half": lambda x, a, b: x.astype(ms.float16) * a + b,
}


def _written(x, a):
    y = x * 1
    y[0] = a
    return ops.lerp(y, ops.masked_fill(x, x > 0, a), a / 10)


def _looped(x, a, b):
    while x.sum() < 100 + b:
        x = x * 2 + a
    return x


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", [float, int])
def test_a_number_as_input_gives_what_it_gives_as_constant(name, kind):
    fn = CASES[name]
    f = ms.jit(fn)
    pairs = [(2, 3), (5, 4), (1, 9), (7, 2)]
    if kind is float:
        pairs = [(a / 10 + 0.03, b / 7) for a, b in pairs]
    for a, b in pairs:
        got, want = f(X, a, b), ms.jit(fn)(X, a, b)
        assert got.dtype is want.dtype
        if name == "kept in variables":  # XLA adds up factors that are constants before it multiplies
            np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=2e-7)
        else:
            np.testing.assert_array_equal(got.asnumpy(), want.asnumpy())
    assert len(f.compilations) == 2


def _assigned(x, n):
    if x.sum() > 0:
        k = n
    else:
        k = n * 2
    return x * k


def _grown(x, n):
    k = 1
    while x.sum() < 100:
        x, k = x * 2, k * n
    return x * k


ASKED = {
    "a variable of two branches": _assigned,
    "a variable of a loop": _grown,
    "a conditional expression": lambda x, n: x * (n if x.sum() > 0 else 0),
    "a maximum of number and tensor": lambda x, n: max(n, x.sum()) * x + min(n, 2),
    "if": lambda x, n: x * 2 if n > 3 else x,
    "range": lambda x, n: sum([x for _ in range(n)]),
    "shape": lambda x, n: ops.ones((n, 1)) * x.sum(),
    "index": lambda x, n: [x, x * 2, x * 3, x * 4, x * 5, x * 6][n],
    "slice": lambda x, n: x[: n - 1],
    "format": lambda x, n: x * len(f"{n:5d}|{n}"),
    "hash": lambda x, n: x * {1: 1}.get(n, n),
    "int": lambda x, n: x * int(n) + float(n),
    "math": lambda x, n: x * math.sqrt(n),
    "numpy": lambda x, n: x * float(np.float32(n) + np.arange(n).sum()),
    "bool": lambda x, n: x if n and not n == 3 else -x,
    "power": lambda x, n: x**n + 2**n,
    "round": lambda x, n: x * round(n / 2),
    "isinstance": lambda x, n: x * n if isinstance(n, int) and not isinstance(n, (bool, float)) else -x,
    "axis": lambda x, n: x.reshape((1, 1, 1, 1, 1, 4)).sum(n - 1),
    "tensor": lambda x, n: x * ms.Tensor(n, ms.float32),
    "bits": lambda x, n: x * (n << 2 | 1),
    "str": lambda x, n: x * len(str(n) * n),
    "tuple key": lambda x, n: x * {(n, 1): n}[(n, 1)],
}


@pytest.mark.parametrize("name", ASKED)
def test_a_number_that_is_asked_for_is_a_constant(name):
    fn = ASKED[name]
    f = ms.jit(fn)
    for _ in range(2):
        for n in (2, 3, 5):
            np.testing.assert_array_equal(f(X, n).asnumpy(), constant(fn, X, n))
    assert len(f.compilations) <= 3


def test_one_number_asked_for_and_one_not():
    f = ms.jit(lambda x, n, rate: sum([x for _ in range(n)]) * rate)
    for rate in RATES:
        for n in (1, 2):
            np.testing.assert_allclose(f(X, n, rate).asnumpy(), X.asnumpy() * n * np.float32(rate), rtol=1e-6)
    assert len(f.compilations) <= 5


def test_types_of_numbers_are_kept_apart():
    f = ms.jit(lambda x, n: x + n)
    ints = ms.Tensor([1, 2])
    for n in (1, 2, 3):
        assert f(ints, n).dtype is ms.int64
    assert f(ints, 1.0).dtype is ms.float32
    assert f(ints, True).dtype is ms.int64
    assert f(ints, 4).asnumpy().tolist() == [5, 6]
    zero = ms.jit(lambda x, s: x / s)
    with np.errstate(divide="ignore"):
        assert [float(zero(ms.Tensor([1.0]), s)[0]) for s in (1.0, 0.0, -0.0, 2.0)] == [1, math.inf, -math.inf, 0.5]


def test_a_number_among_the_results():
    f = ms.jit(lambda x, n: (x * n, n, n + 1))
    for n in (2, 3, 4):
        out = f(X, n)
        assert out[1:] == (n, n + 1)
        assert type(out[1]) is int
        assert float(out[0][0]) == n


def test_an_error_of_python_arithmetic_is_pythons():
    f = ms.jit(lambda x, n: x * (1 / n))
    f(X, 1)
    f(X, 2)
    with pytest.raises(ZeroDivisionError):
        f(X, 0)
    assert float(f(X, 4)[0]) == 0.25


def test_numbers_under_a_gradient_and_in_a_training_step():
    def loss(w, rate):
        return ((w * rate) ** 2).sum()

    step = ms.jit(lambda w, rate: w - rate * ms.grad(loss)(w, rate))
    for rate in RATES:
        want = X.asnumpy() - np.float32(rate) * (2 * X.asnumpy() * np.float32(rate) ** 2)
        np.testing.assert_allclose(step(X, rate).asnumpy(), want, rtol=1e-5)
    assert len(step.compilations) == 2
    outside = ms.jit(lambda w, rate: (w * rate).sum())
    for rate in (0.1, 0.2, 0.3):
        np.testing.assert_allclose(ms.grad(outside)(X, rate).asnumpy(), np.full(4, rate, np.float32))


def test_a_program_that_keeps_numbers_gets_constants():
    holder = Plain(last=None, rate=0.5)

    @ms.jit
    def f(x):
        holder.last = holder.rate * 2
        return x * holder.last

    for rate in (0.5, 0.25, 2.0):
        holder.rate = rate
        assert float(f(X)[0]) == rate * 2
        assert type(holder.last) is float
        assert holder.last == rate * 2


# -- the report -------------------------------------------------------------------------------------------


def last(f):
    (reason,) = ms.explain_recompiles(f).compilations[-1].reasons
    return reason


def test_the_report_of_arguments():
    @ms.jit
    def f(x, n, flag=True, kind="a"):
        return x * 2 if flag and [0] * n else x

    f(X, 1)
    assert str(ms.explain_recompiles(f)).splitlines()[1].endswith("first call")
    f(ms.Tensor([1.0]), 1)
    assert last(f).text == "argument 'x': float32[4] -> float32[1]"
    assert "dtype=ms.float32" in last(f).advice
    f(ms.Tensor([1]), 1)
    assert last(f).text == "argument 'x': float32[1] -> int64[1]"
    assert "astype" in last(f).advice
    f(ms.Tensor([1]), 1, flag=False)
    assert last(f).text == "argument 'flag': is new"
    f(ms.Tensor([1]), 1, flag=True)
    assert last(f).text == "argument 'flag': False -> True"
    f(ms.Tensor([1]), 2, flag=True)
    f(ms.Tensor([1]), 3, flag=True)
    assert last(f).text == "argument 'n': 2 -> 3"
    assert last(f).location.text == "return x * 2 if flag and [0] * n else x"
    report = str(ms.explain_recompiles(f))
    assert "compiled 7 times, 7 graphs kept" in report
    assert "test_recompiles.py" in report
    assert all(c.seconds > 0 for c in ms.explain_recompiles(f).compilations)


SIZE = [1, 2]


def test_the_report_of_what_was_read(monkeypatch):
    name, cfg = "a", Plain(deep=Plain(name="a"), table={"k": ["v"]})

    @ms.jit
    def f(x):
        y = x * len(name) * len(cfg.deep.name)
        return y * len(SIZE) * len(cfg.table["k"][0])

    f(X)
    cfg.deep.name = "bc"
    f(X)
    assert last(f).text == "attribute cfg.deep.name: 'a' -> 'bc'"
    assert last(f).location.text == "y = x * len(name) * len(cfg.deep.name)"
    name = "def"
    f(X)
    assert last(f).text == "closed-over variable 'name': 'a' -> 'def'"
    monkeypatch.setattr("test_recompiles.SIZE" if __name__ == "test_recompiles" else f"{__name__}.SIZE", [1, 2, 3])
    f(X)
    assert last(f).text == "list SIZE: [1, 2] -> [1, 2, 3]"
    cfg.table["k"][0] = "w"
    f(X)
    assert last(f).text == "item cfg.table['k'][0]: 'v' -> 'w'"
    assert "Tensor" in last(f).advice


def test_the_report_of_a_cell_and_its_methods():
    ms.set_context(mode=ms.GRAPH_MODE)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.name = "a"

        def construct(self, x):
            return x * len(self.name) if self.training else x

    net = Net()
    assert str(ms.explain_recompiles(net)) == "not compiled yet"
    net(X)
    net.set_train()
    net(X)
    assert last(net).text == "attribute self.training: False -> True"
    net.name = "bc"
    net(X)
    assert last(net).text == "attribute self.name: 'a' -> 'bc'"
    assert len(ms.explain_recompiles(net)) == 3
    with pytest.raises(ArgumentTypeError, match="'fn' got int"):
        ms.explain_recompiles(3)


def test_a_notice_once():
    f = ms.jit(lambda x, name: x * len(name))
    for i in range(9 - 1):
        f(X, f"name {i}")
    with pytest.warns(ms.RecompileWarning, match=r"compiled 9 times, last because of argument 'name'") as caught:
        f(X, "another")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(X, "yet another")


def test_the_least_recently_used_graph_goes():
    f = ms.jit(lambda x, name: x * len(name), cache_limit=3)
    for name in ("a", "b", "c"):
        f(X, name)
    f(X, "a")
    f(X, "d")  # takes the place of b
    assert f.kept == 3
    f(X, "a")
    f(X, "c")
    assert len(f.compilations) == 4
    f(X, "b")
    assert len(f.compilations) == 5
    assert f.kept == 3
    assert f.compile_seconds == sum(c.seconds for c in f.compilations)
    with pytest.raises(ArgumentValueError, match="'cache_limit' got 0"):
        ms.jit(lambda x: x, cache_limit=0)


def test_a_failed_compilation_leaves_globals_alone(monkeypatch):
    monkeypatch.setitem(globals(), "RATE", 0.5)
    bad = Plain(on=False)

    @ms.jit
    def f(x):
        y = x * RATE
        return float(y.sum()) if bad.on else y

    f(X)
    globals()["RATE"] = 0.25
    bad.on = True
    with pytest.raises(GraphError):
        f(X)
    assert RATE == 0.25
    assert type(RATE) is float
