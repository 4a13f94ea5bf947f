"""Tensors made from nothing: eager and staged alike, arguments, methods."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autodiff.staging import run_staged, staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.printer import graph_text

CALLS = {
    "zeros": lambda: ops.zeros((2, 3)), "ones": lambda: ops.ones(3, ms.int32),
    "full": lambda: ops.full((2,), 7.5),
    "nan": lambda: ops.full((2,), float("nan")), "minus_zero": lambda: ops.full((2,), -0.0),
    "bool": lambda: ops.full((2,), True),
    "big": lambda: ops.full((1,), 2**40, dtype=ms.int64), "complex": lambda: ops.full((2,), 1 + 2j),
    "eye": lambda: ops.eye(2, 3),
    "arange": lambda: ops.arange(5), "down": lambda: ops.arange(5, 0, -2), "fractions": lambda: ops.arange(0, 1, 0.3),
    "half": lambda: ops.arange(3, dtype=ms.float16), "linspace": lambda: ops.linspace(0, 1, 7),
    "logspace": lambda: ops.logspace(0, 3, 4), "tril": lambda: ops.tril_indices(3, 3),
    "one": lambda: ops.linspace(2, 5, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_staged_is_what_eager_is(name):
    eager = CALLS[name]().asnumpy()
    (made,) = run_staged(CALLS[name])
    assert made.dtype == eager.dtype
    np.testing.assert_array_equal(made, eager)
    np.testing.assert_array_equal(np.signbit(made.real), np.signbit(eager.real))


def test_a_graph_does_not_store_the_elements():
    text = graph_text(staged(lambda: ops.zeros((1000, 1000)) + ops.arange(1000)))
    assert "full" in text
    assert "arange" in text
    assert len(text) < 1000


@pytest.mark.parametrize("dtype", [ms.bool_, ms.int8, ms.uint64, ms.float16, ms.bfloat16, ms.float64, ms.complex64])
def test_dtypes(dtype):
    for made in (
        ops.zeros(2, dtype),
        ops.ones((2,), dtype=dtype),
        ops.full((2,), 1, dtype=dtype),
        ops.eye(2, dtype=dtype),
    ):
        assert made.dtype is dtype
    assert ops.ones_like(Tensor([5], dtype)).dtype is dtype


def test_shapes():
    assert ops.zeros(3).shape == (3,)
    assert ops.zeros(()).shape == ()
    assert ops.ones(size=2).shape == ops.ones(shape=(2,)).shape == (2,)
    assert ops.ones(Tensor([2, 3])).shape == (2, 3)
    assert ops.zeros([2, np.int64(0)]).shape == (2, 0)
    with pytest.raises(ArgumentValueError, match=r"zeros: argument 'size' got \(2, -1\)"):
        ops.zeros((2, -1))
    with pytest.raises(ArgumentTypeError, match=r"'shape' got 1.5"):
        ops.ones((1.5,))
    with pytest.raises(DTypeError, match="numeric dtype"):
        ops.zeros(2, ms.string)


def test_full():
    assert ops.full((2,), 7).dtype is ms.int64
    assert ops.full((2,), 7.0).dtype is ms.float32
    assert ops.full((2,), Tensor(3.0, ms.float64)).dtype is ms.float64
    assert ops.full_like(Tensor([1, 2]), 7.5).tolist() == [7, 7]
    assert ops.full_like(Tensor([1, 2]), 7.5, dtype=ms.float32).tolist() == [7.5, 7.5]
    assert ops.fill(ms.int32, (2,), 7).dtype is ms.int32
    assert ops.fills(Tensor([1.0]), 7).tolist() == [7.0]
    with pytest.raises(ArgumentValueError, match="argument 'fill_value' got 300; it takes a value that fits Int8"):
        ops.full((1,), 300, dtype=ms.int8)
    with pytest.raises(ShapeError, match="argument 'fill_value'"):
        ops.full((2,), Tensor([1, 2]))
    assert ms.grad(lambda v: ops.full((3,), v).sum())(Tensor(2.0)).item() == 3.0


def test_like_and_empty():
    assert ops.zeros_like(1).tolist() == 0
    assert ops.ones_like(Tensor([[1, 2]]), dtype=ms.float32).tolist() == [[1.0, 1.0]]
    assert ops.empty(2, 3, dtype=ms.int32).shape == ops.empty((2, 3)).shape == (2, 3)
    assert ops.empty_like(Tensor([1.5])).dtype is ms.float32


def test_methods():
    x = Tensor([1, 2])
    assert x.new_zeros((2, 2)).dtype is ms.int64
    assert x.new_ones(2, dtype=ms.float32).tolist() == [1.0, 1.0]
    assert x.new_full((1,), 3).tolist() == [3]
    assert x.new_empty(2).dtype is ms.int64
    assert x.fill(4).tolist() == [4, 4]
    y = x
    assert x.fill_(5) is x
    assert y.tolist() == [5, 5]
    assert x.zero_().tolist() == [0, 0]


@pytest.mark.parametrize("args", [(5,), (1, 5), (1, 6, 2), (5, 0, -2), (0, 1, 0.25), (0.5, 3.0), (3, 3), (0,)])
def test_arange_against_numpy(args):
    made = ops.arange(*args)
    want = np.arange(*args)
    assert made.dtype is (ms.int64 if want.dtype.kind == "i" else ms.float32)
    np.testing.assert_array_equal(made.asnumpy(), want.astype(made.dtype.np))


def test_arange():
    assert ops.arange(Tensor(4)).tolist() == [0, 1, 2, 3]
    assert ops.arange(Tensor(1.0, ms.float64), 3).dtype is ms.float64
    assert ops.range(0, 6, 2).tolist() == [0, 2, 4]
    with pytest.raises(ArgumentValueError, match="arange: argument 'step' got 0"):
        ops.arange(1, 5, 0)
    with pytest.raises(ArgumentValueError, match="argument 'step' got 1; it takes a step that leads from 5 to 0"):
        ops.arange(5, 0)
    with pytest.raises(ArgumentTypeError, match="argument 'end' got 'x'"):
        ops.arange(0, "x")
    with pytest.raises(ArgumentValueError, match="argument 'end' got inf; it takes a finite number"):
        ops.arange(0, float("inf"))
    with pytest.raises(ArgumentValueError, match="'maxlen' got 2; it takes at least 3"):
        ops.range(0, 3, 1, maxlen=2)


def test_linspace_of_tensors_has_gradients_and_exact_ends():
    made = ops.linspace(Tensor(0.1), Tensor(0.7), 4)
    assert made.asnumpy()[[0, -1]].tolist() == np.array([0.1, 0.7], np.float32).tolist()
    start, end = ms.grad(lambda a, b: ops.linspace(a, b, 5).sum(), (0, 1))(Tensor(0.0), Tensor(1.0))
    assert (start.item(), end.item()) == (2.5, 2.5)
    assert ops.linspace_ext(0, 1, 5, dtype=ms.float64).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    with pytest.raises(ArgumentValueError, match="'steps' got -1"):
        ops.linspace(0, 1, -1)
    np.testing.assert_allclose(ops.logspace(Tensor(0.0), 2, 3, base=2).asnumpy(), [1.0, 2.0, 4.0])


def test_meshgrid():
    x, y = np.array([1, 2, 3]), np.array([4, 5])
    for indexing in ("xy", "ij"):
        for g, w in zip(
            ops.meshgrid(Tensor(x), Tensor(y), indexing=indexing), np.meshgrid(x, y, indexing=indexing), strict=True
        ):
            np.testing.assert_array_equal(g.asnumpy(), w)
    assert ops.meshgrid_ext([Tensor(x), Tensor(y)])[0].shape == (3, 2)
    assert [t.shape for t in ops.meshgrid(Tensor(x), Tensor(y), Tensor(7))] == [(2, 3, 1)] * 3
    with pytest.raises(ArgumentValueError, match="'indexing' got 'yx'"):
        ops.meshgrid(Tensor(x), indexing="yx")
    with pytest.raises(ShapeError, match=r"'inputs\[0\]' got shape \(1, 3\)"):
        ops.meshgrid(Tensor([[1, 2, 3]]))


def test_indices_of_triangles():
    np.testing.assert_array_equal(ops.tril_indices(3, 4, -1).asnumpy(), np.stack(np.tril_indices(3, -1, 4)))
    np.testing.assert_array_equal(
        ops.triu_indices(3, 4, 1, dtype=ms.int32).asnumpy(), np.stack(np.triu_indices(3, 1, 4))
    )
    assert ops.tril_indices(0, 3).shape == (2, 0)


def test_from_data():
    assert ops.tensor([1, 2], ms.float16).dtype is ms.float16
    assert ops.from_numpy(np.arange(3)).tolist() == [0, 1, 2]
    assert ops.scalar_to_tensor(3).dtype is ms.float32
    assert ops.scalar_to_tensor(3, ms.int32).dtype is ms.int32
    with pytest.raises(ArgumentTypeError, match="scalar_to_tensor: argument 'input_x' got str"):
        ops.scalar_to_tensor("3")
    assert ops.eps(Tensor([1.0], ms.float16)).item() == 2.0**-10
    with pytest.raises(DTypeError, match="floating"):
        ops.eps(Tensor([1]))
    assert ops.vander(Tensor([1.0, 2.0]), 3).tolist() == [[1.0, 1.0, 1.0], [4.0, 2.0, 1.0]]


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize(
    ("name", "numpy_form"),
    [
        ("bartlett", np.bartlett),
        ("blackman", np.blackman),
        ("hamming", np.hamming),
        ("hann", np.hanning),
        ("kaiser", lambda n: np.kaiser(n, 12.0)),
    ],
)
def test_windows(name, numpy_form, periodic):
    want = numpy_form(8)[:-1] if periodic else numpy_form(7)
    made = getattr(ops, f"{name}_window")(7, periodic, dtype=ms.float64)
    np.testing.assert_allclose(made.asnumpy(), want, atol=1e-12)
    assert getattr(ops, f"{name}_window")(1).tolist() == [1.0]


@pytest.mark.torch
def test_windows_against_torch():
    torch = pytest.importorskip("torch")
    for name in ("bartlett", "blackman", "hamming", "hann", "kaiser"):
        for periodic in (True, False):
            want = getattr(torch, f"{name}_window")(6, periodic).numpy()
            np.testing.assert_allclose(getattr(ops, f"{name}_window")(6, periodic).asnumpy(), want, atol=1e-6)
