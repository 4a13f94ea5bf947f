"""Class forms that do something besides computing: hooks, host code, dumps, summaries, printing."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError, UnsupportedError
from mycelia.ops import operations as P
from mycelia.ops.legacy.effects import recorders

X = ms.Tensor([1.0, -2.0])


def both(fn):
    """The function as it is, and compiled."""
    return [fn, ms.jit(fn)]


def test_a_hook_changes_the_gradient():
    seen = []

    def halve(grads):
        seen.append(grads)
        return grads[0] / 2

    op = P.HookBackward(halve)
    for fn in both(lambda x: -ms.grad(lambda v: (op(v) ** 2).sum())(-x)):
        np.testing.assert_allclose(fn(X).asnumpy(), [1, -2])
    assert isinstance(seen[0], tuple)
    np.testing.assert_array_equal(op(X).asnumpy(), X.asnumpy())


def test_a_hook_that_returns_nothing_only_looks():
    op = P.HookBackward(lambda grads: None)
    np.testing.assert_allclose(ms.grad(lambda v: (op(v) ** 2).sum())(X).asnumpy(), [2, -4])


def test_a_function_put_into_the_gradient():
    clip = P.InsertGradientOf(lambda dx: ms.ops.clip(dx, -1, 1))
    for fn in both(lambda x: ms.grad(lambda v: (clip(v) ** 3).sum())(-x)):
        np.testing.assert_allclose(fn(X).asnumpy(), [1, 1])


def test_a_hook_must_keep_the_shape():
    op = P.HookBackward(lambda grads: grads[0].sum())
    with pytest.raises(ArgumentTypeError, match="hook: argument 'return value' got shape"):
        ms.grad(lambda v: (op(v) ** 2).sum())(X)


def test_second_derivatives_pass_a_hook():
    op = P.InsertGradientOf(lambda dx: dx * 2)

    def first(x):
        return ms.grad(lambda v: (op(v) ** 3).sum())(x).sum()

    # the hook doubles the inner gradient 3 v**2, and what flows back through that: 2 * 6 v
    np.testing.assert_allclose(ms.grad(first)(X).asnumpy(), 2 * 12 * X.asnumpy())


def test_numpy_code_as_an_operator():
    def bprop(x, out, dout):
        return (2 * x * dout,)

    op = P.Custom(np.square, lambda s: s, lambda t: t, "pyfunc", bprop)
    for fn in both(lambda x: op(x) + 1):
        np.testing.assert_array_equal(fn(X).asnumpy(), [2, 5])
    for fn in both(lambda x: ms.grad(lambda v: (3 * op(v)).sum())(2 * x)):
        np.testing.assert_allclose(fn(X).asnumpy(), [12, -24])


def test_numpy_code_with_several_results():
    op = P.Custom(lambda x, y: (x + y, x * y), ((2,), (2,)), (ms.float32, ms.float64))
    first, second = op(X, X)
    assert (first.dtype, second.dtype) == (ms.float32, ms.float64)
    np.testing.assert_array_equal(second.asnumpy(), [1, 4])
    pair = P.PyFunc(np.divmod, [ms.float32] * 2, [(2,)] * 2, [ms.float32] * 2, [(2,)] * 2)((X, ms.Tensor([2.0, 3.0])))
    np.testing.assert_array_equal(pair[1].asnumpy(), [1, 1])


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: P.Custom(np.square, (2,), ms.float32, "aot"), UnsupportedError, "argument 'func_type' got 'aot'"),
        (lambda: P.Custom(3, (2,), ms.float32), ArgumentTypeError, "argument 'func' got int"),
        (lambda: P.Custom(np.square), ArgumentTypeError, "argument 'out_shape' got None"),
        (lambda: P.Custom(np.square, ((2,), (2,)), (ms.float32,))(X), ArgumentValueError, "argument 'out_dtype'"),
        (lambda: P.PyFunc(1, [], [], [], []), ArgumentTypeError, "PyFunc: argument 'fn' got int"),
        (lambda: P.TensorDump("sideways"), ArgumentValueError, "argument 'input_output'"),
        (lambda: P.TensorDump()(3, X), ArgumentTypeError, "TensorDump: argument 'file' got 3"),
        (lambda: P.ScalarSummary()("x", X), ShapeError, "ScalarSummary: argument 'value' got shape"),
        (lambda: P.ImageSummary()("x", X), ShapeError, "ImageSummary: argument 'value' got shape"),
        (lambda: P.TensorSummary()("", X), ArgumentTypeError, "TensorSummary: argument 'name' got ''"),
        (
            lambda: ms.grad(lambda v: P.Custom(np.square, (2,), ms.float32)(v).sum())(X),
            UnsupportedError,
            "host code has no gradient",
        ),
    ],
)
def test_refusals(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_dumps_are_files_in_order(tmp_path):
    dump = P.TensorDump()
    dump(str(tmp_path / "x"), X)
    ms.jit(lambda x: (dump(str(tmp_path / "y.npy"), x * 2), x)[1])(X)
    first, second = sorted(tmp_path.iterdir(), key=lambda f: int(f.name.partition("_")[0]))
    assert first.name.endswith("float32_x.npy")
    assert second.name.endswith("float32_y.npy")
    np.testing.assert_array_equal(np.load(first), [1, -2])
    np.testing.assert_array_equal(np.load(second), [2, -4])


def test_summaries_reach_who_records_them():
    seen = []
    recorders.append(lambda kind, name, array: seen.append((kind, name, np.asarray(array).tolist())))
    try:
        P.ScalarSummary()("loss", ms.Tensor(0.5))
        ms.jit(lambda x: (P.HistogramSummary()("w", x), x * 2)[1])(X).asnumpy()
    finally:
        recorders.clear()
    assert seen == [("scalar", "loss", 0.5), ("histogram", "w", [1.0, -2.0])]
    P.ScalarSummary()("loss", ms.Tensor(0.5))
    assert len(seen) == 2


def test_print_and_order(capsys):
    P.Print()("x is", X)
    assert capsys.readouterr().out.startswith("x is\nTensor(shape=[2]")
    assert P.Depend()(X, P.Print()("first")) is X
    assert P.UpdateState()(X, 1) is X
    assert P.Partial()(max, 3)(1, 2) == 3
