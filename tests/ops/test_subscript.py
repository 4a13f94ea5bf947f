"""Subscripts against NumPy: random indices read and written, gradients, what graphs allow, and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra import numpy as npst
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Parameter, Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, GraphError, OutOfRangeError, ShapeError
from mycelia.ir.primitive import PRIMITIVES

SHAPE = (3, 4, 2)


def data(shape=SHAPE):
    return np.arange(1.0, np.prod(shape) + 1).reshape(shape)


def same(got, want):
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.asnumpy(), want)


basic = npst.basic_indices(SHAPE, min_dims=0, max_dims=6, allow_newaxis=True, allow_ellipsis=True)


@st.composite
def mixed(draw):
    """An index for SHAPE with ints, slices, None, Ellipsis, integer arrays and masks."""
    axis, items, dots = 0, [], False
    while axis < len(SHAPE):
        kind = draw(
            st.sampled_from(["int", "slice", "slice", "none", "array", "array", "mask", "mask2", "dots", "end"])
        )
        length = SHAPE[axis]
        if kind == "int":
            items.append(draw(st.integers(-length, length - 1)))
            axis += 1
        elif kind == "slice":
            items.append(draw(st.slices(length)))
            axis += 1
        elif kind == "none":
            items.append(None)
        elif kind == "array":
            shape = draw(st.sampled_from([(2,), (1,), (2, 1), (2, 2)]))
            items.append(draw(npst.arrays(np.int64, shape, elements=st.integers(-length, length - 1))))
            axis += 1
        elif kind == "mask":
            items.append(draw(npst.arrays(np.bool_, (length,))))
            axis += 1
        elif kind == "mask2" and axis + 2 <= len(SHAPE):
            items.append(draw(npst.arrays(np.bool_, SHAPE[axis : axis + 2])))
            axis += 2
        elif kind == "dots" and not dots:
            dots = True
            items.append(Ellipsis)
            if draw(st.booleans()):
                axis += 1
        elif kind == "end":
            break
    return tuple(items)


def as_ours(index):
    """The same index with Tensors for some of its arrays."""
    if not isinstance(index, tuple):
        return index
    return tuple([Tensor(i) if isinstance(i, np.ndarray) and i.dtype != bool and i.size % 2 == 0 else i for i in index])


@given(basic)
@settings(max_examples=40)
def test_basic_read(index):
    same(Tensor(data())[index], data()[index])


@given(mixed())
@settings(max_examples=60)
def test_mixed_read(index):
    try:
        want = data()[index]
    except IndexError:
        with pytest.raises((OutOfRangeError, ShapeError)):
            Tensor(data())[as_ours(index)]
        return
    same(Tensor(data())[as_ours(index)], want)


def value_for(draw, target):
    """A value that broadcasts to a target shape: some axes dropped in front, some of length 1."""
    cut = draw(st.integers(0, len(target)))
    shape = tuple([d if draw(st.booleans()) else 1 for d in target[cut:]])
    return -np.arange(1.0, np.prod(shape, dtype=int) + 1).reshape(shape)


@given(st.data(), basic)
@settings(max_examples=40)
def test_basic_write(source, index):
    want = data()
    value = value_for(source.draw, want[index].shape)
    want[index] = value
    x = Tensor(data())
    x[index] = Tensor(value)
    same(x, want)


@given(st.data(), mixed())
@settings(max_examples=60)
def test_mixed_write(source, index):
    want = data()
    try:
        target = want[index].shape
    except IndexError:
        assume(False)
    places = np.arange(want.size).reshape(SHAPE)[index]
    assume(len(np.unique(places)) == places.size)  # which of two values for one place stays is not defined
    value = value_for(source.draw, target)
    want[index] = value
    x = Tensor(data())
    x[as_ours(index)] = Tensor(value)
    same(x, want)


@given(mixed())
@settings(max_examples=12)
def test_the_gradient_of_a_read_counts_the_places(index):
    try:
        places = np.arange(24).reshape(SHAPE)[index]
    except IndexError:
        assume(False)
    weights = np.linspace(1.0, 2.0, places.size).reshape(places.shape)
    want = np.zeros(24)
    np.add.at(want, places.ravel(), weights.ravel())
    got = ms.grad(lambda x: (x[as_ours(index)] * Tensor(weights)).sum())(Tensor(data()))
    np.testing.assert_allclose(got.asnumpy(), want.reshape(SHAPE))


@given(st.data(), mixed())
@settings(max_examples=12)
def test_the_gradient_of_a_write(source, index):
    try:
        places = np.arange(24).reshape(SHAPE)[index]
    except IndexError:
        assume(False)
    assume(len(np.unique(places)) == places.size)
    value = value_for(source.draw, places.shape)
    weights = np.linspace(1.0, 2.0, 24).reshape(SHAPE)

    def f(x, v):
        y = x * 1.0
        y[as_ours(index)] = v
        return (y * Tensor(weights)).sum()

    of_x, of_v = ms.grad(f, (0, 1))(Tensor(data()), Tensor(value))
    left = weights.copy()
    left[index] = 0.0
    np.testing.assert_allclose(of_x.asnumpy(), left)
    spread = np.broadcast_to(np.arange(value.size).reshape(value.shape), places.shape).ravel()
    want = np.zeros(value.size)
    np.add.at(want, spread, weights.ravel()[places.ravel()])
    np.testing.assert_allclose(of_v.asnumpy(), want.reshape(value.shape))


@pytest.mark.parametrize(
    "index",
    [
        0, -1, slice(None, None, -1), (slice(None), 0), ..., None, (), True, False, (slice(0, 0),), [1, 0, 1], [],
        [True, False, True], ([0, 2], [1, 1]), (0, slice(None), [1, 0]), (slice(None), [1, 0], None, 0), np.int32(2),
        np.array(1), (np.array([[0], [2]]), np.array([1, 3])), range(2), (slice(-100, 100, 3), slice(5, 0, -2)),
    ],
)  # fmt: skip
def test_forms(index):
    want = data()[list(index) if isinstance(index, range) else index]
    same(Tensor(data())[index], want)
    x, y = Tensor(data()), data()
    x[index] = 7
    y[list(index) if isinstance(index, range) else index] = 7
    same(x, y)


def test_tensors_as_indices():
    x = Tensor(data())
    same(x[Tensor(1)], data()[1])
    same(x[Tensor([2, 0])], data()[[2, 0]])
    same(x[Tensor([True, False, True])], data()[[0, 2]])
    same(x[x > 20], data()[data() > 20])
    same(x[Tensor(0) : Tensor(2)], data()[0:2])
    same(x[[Tensor(0), Tensor(2)]], data()[[0, 2]])


def test_an_empty_tensor():
    x = Tensor(np.zeros((0, 3)))
    assert x[:, 1].shape == (0,)
    assert x[x > 0].shape == (0,)
    with pytest.raises(OutOfRangeError, match="the axis is empty"):
        x[0]


def test_iteration_ends():
    assert [row.shape for row in Tensor(data())] == [(4, 2)] * 3


def test_a_loop_over_ints_compiles_once():
    x = Tensor(np.zeros((61, 7)))
    x[0]
    x[3:5]
    before = len(PRIMITIVES["dynamic_slice"].eager), len(PRIMITIVES["dynamic_update"].eager)
    for i in range(60):
        x[i]
        x[-i]
        x[i : i + 2]
    assert (len(PRIMITIVES["dynamic_slice"].eager), len(PRIMITIVES["dynamic_update"].eager)) == before
    x[0] = 1.0
    before = len(PRIMITIVES["dynamic_update"].eager)
    for i in range(60):
        x[i] = float(i)
    assert len(PRIMITIVES["dynamic_update"].eager) == before
    np.testing.assert_array_equal(x.asnumpy()[:, 0], [*range(60), 0])


def test_the_value_takes_the_dtype_of_the_tensor():
    x = Tensor([1, 2, 3])
    x[0] = 9.7
    x[1:] = Tensor([-1.5, 2.5])
    assert x.dtype is ms.int64
    assert x.asnumpy().tolist() == [9, -1, 2]
    b = Tensor([True, False])
    b[1] = 3
    assert b.asnumpy().tolist() == [True, True]
    h = Tensor([1.0, 2.0], ms.bfloat16)
    h[0] = 0.5
    assert h.dtype is ms.bfloat16


def test_assignment_adds():
    x = Tensor(data())
    x[1, 2] += 10.0
    x[x > 30] *= 2.0
    want = data()
    want[1, 2] += 10
    want[want > 30] *= 2
    same(x, want)


def test_a_copy_does_not_follow():
    x = Tensor(data())
    y = x[0]
    x[0] = 0.0
    same(y, data()[0])


def test_a_parameter_is_changed():
    p = Parameter(Tensor([1.0, 2.0, 3.0]), name="p")
    p[1:] = 0.0
    assert p.asnumpy().tolist() == [1.0, 0.0, 0.0]
    assert isinstance(p, Parameter)


def test_masks_with_rows():
    x, want = Tensor(data()), data()
    mask = np.array([True, False, True])
    x[mask] = Tensor(data((4, 2)))
    want[mask] = data((4, 2))
    same(x, want)
    x[mask] = Tensor(-data((2, 4, 2)))
    want[mask] = -data((2, 4, 2))
    same(x, want)
    x[mask] = Tensor(5 * data((1, 4, 2)))
    want[mask] = 5 * data((1, 4, 2))
    same(x, want)


# in graphs


def test_known_indices_in_a_graph():
    indices = [0, (slice(None), -1), (slice(None, None, -2), None, 0), ([2, 0], [1, 1]), (..., slice(1, 1))]
    for index in indices:
        (got,) = run_staged(lambda x, i=index: x[i], data())
        np.testing.assert_array_equal(got, data()[index])


def test_known_assignments_in_a_graph():
    def f(x, v):
        y = x + 0.0
        y[1] = v
        y[:, 0] = 5.0
        y[[0, 2], [1, 3]] = -1.0
        y[::2, 1:3] = v[1:3]
        return y

    want = data()
    want[1] = data((4, 2))
    want[:, 0] = 5.0
    want[[0, 2], [1, 3]] = -1.0
    want[::2, 1:3] = data((4, 2))[1:3]
    (got,) = run_staged(f, data(), data((4, 2)))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("i", [0, 2, -1, 1])
def test_a_computed_int_in_a_graph(i):
    (got,) = run_staged(lambda x, k: x[:, k], data(), np.array(i))
    np.testing.assert_array_equal(got, data()[:, i])


@pytest.mark.parametrize(("i", "nearest"), [(7, 2), (-9, 0)])
def test_a_computed_int_outside_is_clamped(i, nearest):
    (got,) = run_staged(lambda x, k: x[k], data(), np.array(i))
    np.testing.assert_array_equal(got, data()[nearest])


def test_computed_bounds_in_a_graph():
    rows = data((12, 2))
    k = np.array(2)
    (got,) = run_staged(lambda x, i: x[i : i + 3], rows, k)
    np.testing.assert_array_equal(got, rows[2:5])
    (got,) = run_staged(lambda x, i: x[i * 4 : (i + 1) * 4], rows, k)
    np.testing.assert_array_equal(got, rows[8:12])
    (got,) = run_staged(lambda x, i: x[i - 1 : 3 + i - 2], rows, k)
    np.testing.assert_array_equal(got, rows[1:3])


def test_computed_places_assigned_in_a_graph():
    def f(x, i):
        y = x + 0.0
        y[i] = -1.0
        y[i + 1 : i + 3, 0] = -2.0
        y[i, i] = 9.0
        return y

    want = data()[..., 0].copy()
    want[0] = -1.0
    want[1:3, 0] = -2.0
    want[0, 0] = 9.0
    (got,) = run_staged(f, data()[..., 0], np.array(0))
    np.testing.assert_array_equal(got, want)


def test_a_mask_assigned_in_a_graph():
    def f(x, v):
        y = x + 0.0
        y[y > 20] = 0.0
        y[x < 3] = v
        return y

    want = data()
    want[want > 20] = 0.0
    want[data() < 3] = [50.0, 60.0]
    (got,) = run_staged(f, data(), np.array([50.0, 60.0]))
    np.testing.assert_array_equal(got, want)


def test_integer_tensors_in_a_graph():
    (got,) = run_staged(lambda x, i: x[i, :, i], data(), np.array([0, 1]))
    np.testing.assert_array_equal(got, data()[[0, 1], :, [0, 1]])


def test_the_gradient_of_a_computed_read_in_a_graph():
    def f(x, i):
        return (x[i] * x[i : i + 2].sum(0)).sum()

    (got,) = run_staged(ms.grad(f), data(), np.array(1))
    want = np.zeros(SHAPE)
    want[1] += data()[1] + data()[2] + data()[1]
    want[2] += data()[1]
    np.testing.assert_allclose(got, want)


def test_a_shape_that_depends_on_values_is_refused_in_a_graph():
    with pytest.raises(GraphError, match="depends on"):
        run_staged(lambda x: x[x > 3], data())
    with pytest.raises(GraphError, match="constant length"):
        run_staged(lambda x, i: x[: i + 0], data(), np.array(1))
    with pytest.raises(GraphError, match="constant length"):
        run_staged(lambda x, i, j: x[i:j], data(), np.array(1), np.array(2))


# errors


@pytest.mark.parametrize(
    ("index", "error", "match"),
    [
        (3, OutOfRangeError, "got 3 for axis 0 of length 3; it takes an index from -3 to 2"),
        ((0, -5), OutOfRangeError, "-5 for axis 1 of length 4"),
        ((0, 0, 0, 0), OutOfRangeError, "an index for 4 axes"),
        ((..., 0, ...), OutOfRangeError, "2 Ellipses"),
        ([0, 3], OutOfRangeError, "the index 3"),
        (np.ones((2,), bool), ShapeError, r"mask of shape \(3,\)"),
        (1.5, ArgumentTypeError, "float"),
        ("a", ArgumentTypeError, "str"),
        (np.array([0.5]), ArgumentTypeError, "Float64"),
        (slice(0, 2, 0), ArgumentValueError, "step 0"),
        (slice(0.5, 2), ArgumentTypeError, "float"),
        (([0, 1], [0, 1, 2]), ShapeError, "broadcasts"),
    ],
)
def test_refused_indices(index, error, match):
    with pytest.raises(error, match=match):
        Tensor(data())[index]
    x = Tensor(data())
    with pytest.raises(error, match=match):
        x[index] = 0.0
    same(x, data())


def test_refused_values():
    x = Tensor(data())
    with pytest.raises(
        ShapeError, match=r"argument 'value' got shape \(3,\); it takes a shape that broadcasts to \(4, 2\)"
    ):
        x[0] = Tensor([1.0, 2.0, 3.0])
    with pytest.raises(ShapeError, match=r"\(2, 2\)"):
        x[[0, 1], [0, 1]] = np.zeros((3, 1))
    with pytest.raises(ArgumentTypeError, match="complex"):
        x[0] = 1j
    with pytest.raises(ArgumentTypeError, match="str"):
        x[0] = "a"
    with pytest.raises(ShapeError):
        x[x > 20] = Tensor([1.0, 2.0])
    same(x, data())
    with pytest.raises(IndexError):
        x[9]


def test_strided_slice():
    x = Tensor(data())
    same(ops.strided_slice(x, (0, 0, 0), (2, 3, 2), (1, 2, 1)), data()[0:2, 0:3:2])
    same(ops.strided_slice(x, (2, 3), (0, 0), (-1, -2)), data()[2:0:-1, 3:0:-2])
    same(ops.strided_slice(x, (1, 1), (2, 2), (1, 1), begin_mask=1, end_mask=2), data()[:2, 1:])
    same(ops.strided_slice(x, (0, 0), (1, 1), (1, 1), ellipsis_mask=1), data()[..., 0:1])
    same(ops.strided_slice(x, (0, 1), (1, 2), (1, 1), new_axis_mask=1), data()[None, 1:2])
    same(ops.strided_slice(x, (1, 0, 1), (2, 9, 2), (1, 1, 1), shrink_axis_mask=5), data()[1, 0:9, 1])
    same(ops.strided_slice(x, Tensor([1]), Tensor([9])), data()[1:9])
    with pytest.raises(ArgumentValueError, match="begin"):
        ops.strided_slice(x, (0, 0), (1,), (1, 1))


@pytest.mark.torch
def test_gradients_against_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    x, v = rng.normal(size=SHAPE), rng.normal(size=(2, 4))
    rows, columns = np.array([2, 0]), np.array([[1], [0]])

    def f(x, v, total):
        y = x * 1.0
        y[rows, :, 1] = v
        y[0, 1:3] = y[1, :2] * 1.0 * total(y[columns, 0] * 1.0)
        return total(y * y)

    tx, tv = torch.tensor(x, requires_grad=True), torch.tensor(v, requires_grad=True)
    f(tx, tv, torch.sum).backward()
    gx, gv = ms.grad(lambda a, b: f(a, b, lambda z: z.sum()), (0, 1))(Tensor(x), Tensor(v))
    np.testing.assert_allclose(gx.asnumpy(), tx.grad.numpy(), rtol=1e-10)
    np.testing.assert_allclose(gv.asnumpy(), tv.grad.numpy(), rtol=1e-10)


def test_itemset():
    x = Tensor(data())
    want = data()
    want[0, 1, 1] = 99.0
    same(x.itemset((0, 1, 1), 99), want)
    same(x.itemset(3, 99), want)
    same(x, data())
    assert Tensor(1.0).itemset(2.0).item() == 2.0
    with pytest.raises(OutOfRangeError):
        x.itemset(24, 1.0)
    with pytest.raises(ArgumentTypeError, match="an index and a value"):
        x.itemset()
