"""vmap against loops over rows: axes, nests, control flow, writes, effects, and what it refuses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.autodiff.staging import run_staged, staged, types_of

import mycelia as ms
from mycelia import nn, ops
from mycelia.autodiff.batching import stage_vmap
from mycelia.compiler.passes import dead_code
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    GraphTypeError,
    OutOfRangeError,
    ShapeError,
    UnsupportedError,
)
from mycelia.ir.control import vmap_p
from mycelia.ir.evaluate import evaluate
from mycelia.ir.verifier import verify
from mycelia.tensor.dispatch import apply

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])

X = np.arange(12.0).reshape(3, 4) / 7 - 0.5
Y = np.linspace(-1.0, 2.0, 12).reshape(4, 3)
Z = np.array([0.5, -1.0, 2.0, 0.25])


def looped(fn, *rows):
    """``fn`` on each row in turn, stacked."""
    return np.stack([fn(*[ms.Tensor(r) for r in row]).asnumpy() for row in zip(*rows, strict=True)])


def mixed(a, b):
    return ops.tanh(a) * b + (a * b).sum()


@MODES
def test_rows_against_a_loop(mode):
    ms.set_context(mode=mode)
    want = looped(mixed, X, Y.T)
    x, y = ms.Tensor(X), ms.Tensor(Y)
    np.testing.assert_allclose(ms.vmap(mixed, (0, 1))(x, y).asnumpy(), want, rtol=1e-12)
    np.testing.assert_allclose(ms.vmap(mixed, (-2, -1), -1)(x, y).asnumpy(), want.T, rtol=1e-12)
    shared = ms.vmap(mixed, [0, None], 1)(x, ms.Tensor(Z))
    np.testing.assert_allclose(shared.asnumpy(), looped(mixed, X, [Z] * 3).T, rtol=1e-12)


def test_middle_axes():
    a = np.arange(24.0).reshape(2, 3, 4)
    got = ms.vmap(lambda r: r * 2 + r.sum(), 1, 2)(ms.Tensor(a))
    want = np.stack([a[:, i] * 2 + a[:, i].sum() for i in range(3)], 2)
    np.testing.assert_allclose(got.asnumpy(), want)


def test_nests_of_arguments_and_results():
    def fn(pair, table, factor):
        first, second = pair
        return {"sum": first + second, "rest": [table["z"] * factor, factor]}

    got = ms.vmap(fn, ((0, None), 0, None), 0)((ms.Tensor(X), ms.Tensor(Z)), {"z": ms.Tensor(X)}, 2.0)
    np.testing.assert_allclose(got["sum"].asnumpy(), X + Z)
    np.testing.assert_allclose(got["rest"][0].asnumpy(), X * 2)
    np.testing.assert_allclose(got["rest"][1].asnumpy(), [2.0, 2.0, 2.0])


def test_keyword_arguments_are_shared():
    got = ms.vmap(lambda a, *, scale: a * scale)(ms.Tensor(X), scale=ms.Tensor(Z))
    np.testing.assert_allclose(got.asnumpy(), X * Z)


def test_an_unmapped_output_is_given_once_or_repeated():
    z = ms.Tensor(Z)
    fn = lambda a: (a + z, z * 2, 5)  # noqa: E731
    once = ms.vmap(fn, 0, (0, None, None))(ms.Tensor(X))
    assert once[1].shape == (4,)
    assert once[2] == 5
    repeated = ms.vmap(fn, 0, 0)(ms.Tensor(X))
    np.testing.assert_allclose(repeated[1].asnumpy(), [Z * 2] * 3)
    assert repeated[2].shape == (3,)


def branching(r):
    if r.sum() > 0:
        return r * r
    return -r


def looping(r):
    total, rounds = r.sum() + 1.5, 0
    while total < 20 and rounds < 50:
        total = total * 2 + r[0]
        rounds = rounds + 1
    return total * r, rounds


def stopping(r):
    found = ms.Tensor(0.0, ms.float64)
    for i in range(4):
        if r[i] > 0.3:
            break
        found = found + r[i] * i
    return found


@MODES
@pytest.mark.parametrize("fn", [branching, stopping])
def test_mapped_predicates(mode, fn):
    ms.set_context(mode=mode)
    np.testing.assert_allclose(ms.vmap(fn)(ms.Tensor(X)).asnumpy(), looped(fn, X), rtol=1e-12)


def test_a_loop_that_takes_another_number_of_rounds_in_every_row():
    got, rounds = ms.vmap(looping)(ms.Tensor(X))
    np.testing.assert_allclose(got.asnumpy(), looped(lambda r: looping(r)[0], X), rtol=1e-12)
    wanted = [int(looping(ms.Tensor(r))[1]) for r in X]
    assert rounds.asnumpy().tolist() == wanted
    assert len(set(wanted)) > 1


@MODES
def test_vmap_of_vmap(mode):
    ms.set_context(mode=mode)
    outer = ms.vmap(ms.vmap(mixed, (None, 1)), (0, None), 1)
    got = outer(ms.Tensor(X), ms.Tensor(Y)).asnumpy()
    want = np.stack([np.stack([mixed(ms.Tensor(x), ms.Tensor(y)).asnumpy() for y in Y.T]) for x in X], 1)
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_of_compiled_functions_cells_and_methods():
    layer = nn.Dense(4, 2, dtype=ms.float64)
    want = looped(layer, X)
    for fn in (layer, layer.construct, ms.jit(lambda r: layer(r)), lambda r: layer(r)):
        np.testing.assert_allclose(ms.vmap(fn)(ms.Tensor(X)).asnumpy(), want, rtol=1e-12)


@MODES
def test_gradients_through_vmap(mode):
    ms.set_context(mode=mode)
    x, z = ms.Tensor(X), ms.Tensor(Z)

    def total(x, z):
        return (ms.vmap(lambda r: ops.sin(branching(r) * z).sum())(x) ** 2).sum()

    def loop(x, z):
        found = 0
        for i in range(3):
            found = found + ops.sin(branching(x[i]) * z).sum() ** 2
        return found

    got, want = ms.grad(total, (0, 1))(x, z), ms.grad(loop, (0, 1))(x, z)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.asnumpy(), w.asnumpy(), rtol=1e-11)


def test_gradients_of_parameters_through_vmap():
    layer = nn.Dense(4, 2, dtype=ms.float64)
    weights = layer.trainable_params()
    _, got = ms.value_and_grad(lambda x: (ms.vmap(layer)(x) ** 2).sum(), None, weights)(ms.Tensor(X))
    _, want = ms.value_and_grad(lambda x: (layer(x) ** 2).sum(), None, weights)(ms.Tensor(X))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.asnumpy(), w.asnumpy(), rtol=1e-11)


@MODES
def test_an_ensemble_of_cells(mode):
    ms.set_context(mode=mode)
    cells = nn.CellList([nn.Dense(4, 2, dtype=ms.float64) for _ in range(3)])
    weights = cells.trainable_params()
    x = ms.Tensor(X)
    each = np.stack([cell(x[i]).asnumpy() for i, cell in enumerate(cells)])
    np.testing.assert_allclose(ms.vmap(cells)(x).asnumpy(), each, rtol=1e-12)
    every = np.stack([cell(x).asnumpy() for cell in cells])
    np.testing.assert_allclose(ms.vmap(cells, None)(x).asnumpy(), every, rtol=1e-12)
    got = ms.grad(lambda x: (ms.vmap(cells)(x) ** 2).sum(), None, weights)(x)
    want = ms.grad(lambda x: sum((cell(x[i]) ** 2).sum() for i, cell in enumerate(cells)), None, weights)(x)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.asnumpy(), w.asnumpy(), rtol=1e-11)


class Counter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.calls = ms.Parameter(ms.Tensor(0.0, ms.float64), name="calls", requires_grad=False)
        self.last = ms.Parameter(ms.Tensor(0.0, ms.float64), name="last", requires_grad=False)

    def construct(self, r, keep=False):
        self.calls = self.calls + 1
        if keep:
            self.last = r.sum()
        return r * self.calls


@MODES
def test_a_parameter_is_written_once_for_all_rows(mode):
    ms.set_context(mode=mode)
    cell = Counter()
    mapped = ms.vmap(cell)
    for calls in (1.0, 2.0):
        np.testing.assert_allclose(mapped(ms.Tensor(X)).asnumpy(), X * calls)
        assert float(cell.calls) == calls


def test_a_parameter_written_in_a_loop_beside_mapped_values():
    cell = Counter()

    def fn(r):
        i = ms.Tensor(0)
        while i < 3:
            r = cell(r)
            i = i + 1
        return r

    np.testing.assert_allclose(ms.vmap(fn)(ms.Tensor(X)).asnumpy(), X * 6)
    assert float(cell.calls) == 3.0


def test_a_parameter_written_from_a_row_is_refused():
    cell = Counter()
    with pytest.raises(UnsupportedError, match=r"parameter 'last'.*mapped(.|\n)*self\.last = r\.sum\(\)"):
        ms.vmap(lambda r: cell(r, True))(ms.Tensor(X))
    assert float(cell.last) == 0.0
    assert float(cell.calls) == 0.0


def test_ensembles_keep_their_own_statistics():
    cells = nn.CellList([Counter(), Counter(), Counter()])
    ms.vmap(lambda r: r)(ms.Tensor(X))
    ms.vmap(cells)(ms.Tensor(X))
    assert [float(c.calls) for c in cells] == [1.0, 1.0, 1.0]


def test_random_operators_draw_the_same_for_every_row():
    ms.set_seed(5)
    got = ms.vmap(lambda r: r * 0 + ops.rand(4, dtype=ms.float64))(ms.Tensor(X)).asnumpy()
    after = ops.rand(4, dtype=ms.float64).asnumpy()
    ms.set_seed(5)
    want, then = ops.rand(4, dtype=ms.float64).asnumpy(), ops.rand(4, dtype=ms.float64).asnumpy()
    np.testing.assert_array_equal(got, [want] * 3)
    np.testing.assert_array_equal(after, then)


def test_print_shows_the_whole_batch(capfd):
    def fn(a):
        print("before")
        print("row", a * 2)
        return a

    ms.vmap(fn)(ms.Tensor([1.0, 2.0])).asnumpy()
    import jax

    jax.effects_barrier()
    assert capfd.readouterr().out == "before\nrow [2. 4.]\n"


def test_an_assertion_must_hold_for_every_row():
    def fn(a):
        assert a > 0, "not positive"
        return a

    assert ms.vmap(fn)(ms.Tensor([1.0, 2.0])).asnumpy().tolist() == [1.0, 2.0]
    with pytest.raises(AssertionError, match="not positive"):
        ms.vmap(fn)(ms.Tensor([1.0, -2.0]))


def test_printing_in_a_mapped_branch_is_refused():
    def fn(a):
        if a > 0:
            print("positive")
        return a

    with pytest.raises(UnsupportedError, match=r"print_line(.|\n)*print\(\"positive\"\)"):
        ms.vmap(fn)(ms.Tensor([1.0, -2.0]))


def test_the_second_call_stages_nothing():
    staged_by_now = itertools.count()

    def fn(a):
        next(staged_by_now)
        return a * 2

    mapped = ms.vmap(fn)
    for _ in range(3):
        mapped(ms.Tensor(X))
    ms.vmap(fn)(ms.Tensor(X))
    ms.vmap(fn, 1)(ms.Tensor(X))
    assert next(staged_by_now) == 2


def test_an_axis_of_length_zero():
    got = ms.vmap(lambda r: ops.tanh(r) * r.sum())(ms.Tensor(np.zeros((0, 4))))
    assert got.shape == (0, 4)


def add(a, b):
    return a + b


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x, z: ms.vmap(add)(x, z), ShapeError, "3 along axis 0 of argument 0, 4 along axis 0 of argument 1"),
        (lambda x, z: ms.vmap(add, (0,))(x, z), ArgumentValueError, "1 entries.*2 positional"),
        (lambda x, z: ms.vmap(add, (0, None, 0))(x, z), ArgumentValueError, "3 entries.*2 positional"),
        (lambda x, z: ms.vmap(add, (2, None))(x, z), OutOfRangeError, r"axis 2 for argument 0 of shape \(3, 4\)"),
        (lambda x, z: ms.vmap(add, (None, -2))(x, z), OutOfRangeError, r"axis -2 for argument 1 of shape \(4,\)"),
        (lambda x, z: ms.vmap(add, None)(x, z), ArgumentValueError, "no axis to map over"),
        (lambda x, z: ms.vmap(add, (None, None))(x, z), ArgumentValueError, "no axis to map over"),
        (lambda x, z: ms.vmap(add)(x, 2.0), ArgumentTypeError, r"argument 1.*float(.|\n)*None in in_axes"),
        (lambda x, z: ms.vmap(add, ((0, 0), None))(x, z), ArgumentValueError, "argument 0.*2 elements"),
        (lambda x, z: ms.vmap(add, 0.5), ArgumentTypeError, r"in_axes.*0\.5"),
        (lambda x, z: ms.vmap(add, 0, True), ArgumentTypeError, "out_axes.*True"),
        (lambda x, z: ms.vmap(3), ArgumentTypeError, "fn.*int"),
        (lambda x, z: ms.vmap(add, (0, None), None)(x, z), ArgumentValueError, "None for output 0"),
        (lambda x, z: ms.vmap(add, (0, None), 2)(x, z), OutOfRangeError, r"axis 2 for output 0.*\(4,\)"),
        (lambda x, z: ms.vmap(add, (0, None), (0, 0))(x, z), ArgumentValueError, "out_axes.*2 entries.*1 output"),
        (lambda x, z: ms.vmap(nn.CellList([nn.Dense(4, 2)] * 2))(x), ShapeError, "2 Cells in the list"),
        (
            lambda x, z: ms.vmap(nn.CellList([nn.Dense(4, 2), nn.Dense(4, 3), nn.Dense(4, 2)]))(x),
            ArgumentValueError, "element 1 has other parameters",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(call, error, said):
    with pytest.raises(error, match=said):
        call(ms.Tensor(X), ms.Tensor(Z))


def test_only_what_depends_on_a_mapped_argument_is_mapped():
    inner = staged(lambda a, b: (a * ops.exp(b), ops.exp(b)), *types_of(X[0], Z))

    def fn(a, b):
        outs, batched = stage_vmap(inner, [a, b], [True, False], 3)
        assert batched == [True, False]
        return tuple(outs)

    graph = staged(fn, *types_of(X, Z))
    (node,) = [n for n in graph.nodes if n.op is vmap_p]
    assert [n.op.name for n in node.attrs["graph"].nodes] == ["mul"]
    got = run_staged(fn, X, Z)
    np.testing.assert_allclose(got[0], X * np.exp(Z))


def test_the_node_checks_its_inputs():
    inner = staged(lambda a: a * 2, *types_of(Z))
    with pytest.raises(GraphTypeError, match="first axis of length 2"):
        staged(lambda a: apply(vmap_p, a, graph=inner, mapped=(True,), size=2), *types_of(X))
    with pytest.raises(GraphTypeError, match="mapped graph takes"):
        staged(lambda a: apply(vmap_p, a, graph=inner, mapped=(True,), size=3), *types_of(X[:, :2]))
    with pytest.raises(GraphTypeError, match="2 flags"):
        staged(lambda a: apply(vmap_p, a, graph=inner, mapped=(True, False), size=3), *types_of(X))


def test_what_is_not_used_of_a_mapped_graph_is_dropped():
    inner = staged(lambda a, b, c: (a * 2, b + c, ops.exp(c)), *types_of(Z, Z, Z))

    def fn(a, b, c):
        return apply(vmap_p, a, b, c, graph=inner, mapped=(False, True, False), size=3)[::2]

    graph, _ = dead_code.run(staged(fn, *types_of(Z, X, Z)))
    verify(graph)
    (node,) = graph.nodes
    assert node.attrs["mapped"] == (False, False)
    assert [n.op.name for n in node.attrs["graph"].nodes] == ["constant", "mul", "exp"]
    doubled, exped = run_staged(fn, Z, X, Z)
    for found in (evaluate(graph, [Z, X, Z]), [doubled, exped]):
        np.testing.assert_allclose(found[0], [Z * 2] * 3)
        np.testing.assert_allclose(found[1], [np.exp(Z)] * 3)


@MODES
def test_inside_and_around_other_things(mode):
    ms.set_context(mode=mode)
    cell, x = Counter(), ms.Tensor(X)

    def twice(x):
        return ms.vmap(ms.vmap(cell))(x)

    def chosen(x):
        if x.sum() > 0:
            x = ms.vmap(cell)(x)
        return x

    np.testing.assert_allclose(twice(x).asnumpy(), X)
    assert float(cell.calls) == 1.0
    np.testing.assert_allclose(ms.jit(chosen)(x).asnumpy(), X * 2)
    np.testing.assert_allclose(ms.jit(chosen)(-x).asnumpy(), -X)
    assert float(cell.calls) == 2.0
    squares = ms.vmap(lambda r: r * r)
    np.testing.assert_allclose(ms.jit(squares)(x).asnumpy(), X * X)
    np.testing.assert_allclose(ms.jit(ms.grad(squares))(x).asnumpy(), 2 * X)
    out, vjp_fn = ms.vjp(squares, x)
    np.testing.assert_allclose(vjp_fn(out)[0].asnumpy(), 2 * X**3, rtol=1e-12)


def test_a_parameter_as_an_argument():
    w = ms.Parameter(ms.Tensor(Z), name="w")
    dot = ms.vmap(lambda a, b: (a * b).sum(), (None, 0))
    (got,) = ms.grad(lambda x: dot(w, x).sum(), None, [w])(ms.Tensor(X))
    np.testing.assert_allclose(got.asnumpy(), X.sum(0), rtol=1e-12)


@pytest.mark.slow
def test_networks_row_by_row():
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Dense(32, 3))
    images = ms.Tensor(np.random.default_rng(0).normal(size=(4, 1, 4, 4)).astype(np.float32))
    rows = ms.vmap(lambda r: net(r.expand_dims(0))[0])(images)
    np.testing.assert_allclose(rows.asnumpy(), net(images).asnumpy(), rtol=1e-5, atol=1e-6)
    ahead, back = ms.jacfwd(net)(images[:1]), ms.jacrev(net)(images[:1])
    np.testing.assert_allclose(ahead.asnumpy(), back.asnumpy(), rtol=1e-5, atol=1e-6)
    lstm = nn.LSTM(4, 3, batch_first=True)
    sequences = images.reshape((4, 4, 4))
    rows = ms.vmap(lambda s: lstm(s.expand_dims(0))[0][0])(sequences)
    np.testing.assert_allclose(rows.asnumpy(), lstm(sequences)[0].asnumpy(), rtol=1e-5, atol=1e-6)
    weights = net.trainable_params()
    each = ms.vmap(ms.grad(lambda r: (net(r.expand_dims(0)) ** 2).sum(), None, weights))(images)
    whole = ms.grad(lambda x: (net(x) ** 2).sum(), None, weights)(images)
    for e, w in zip(each, whole, strict=True):
        assert e.shape == (4, *w.shape)
        np.testing.assert_allclose(e.asnumpy().sum(0), w.asnumpy(), rtol=1e-4, atol=1e-5)
