"""Products of matrices and vectors: ``matmul``, ``dense`` and what is made of them.

``matmul`` follows NumPy: the last two axes are matrices, the axes before them broadcast, and a vector
stands for a row on the left and a column on the right. float16 and bfloat16 products are summed in
float32. Contractions written as a formula are in :mod:`mycelia.ops.contraction`.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import attach_in_place
from mycelia.ops.declare import Bad, Sample, check_dtypes, conj, sum_to
from mycelia.ops.operands import as_tensor, same_dtype
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, apply_pair

_A = np.array([[1.5, -2.0, 0.5], [0.25, 3.0, -1.0]])
_B = np.array([[0.5, 1.0], [-1.5, 2.0], [0.75, -0.25]])
_V = np.array([1.0, -0.5, 2.0])
_BATCH = np.linspace(-1.0, 1.0, 24).reshape(2, 1, 3, 4)
_FLAGS = {"transpose_a": False, "transpose_b": False}


def accumulator(dtype: Any) -> Any:
    """The NumPy dtype in which sums of products of ``dtype`` are formed; None for its own."""
    return np.dtype(np.float32) if dtype in (dt.float16.np, dt.bfloat16.np) else None


def _infer_matmul(a: TensorType, b: TensorType, *, transpose_a: bool, transpose_b: bool) -> TensorType:
    check_dtypes("matmul", (a, b), dt.NUMBERS, ("input", "other"))
    for t, name in ((a, "input"), (b, "other")):
        if not t.shape:
            raise ShapeError(
                "matmul", name, got="a zero-dimensional tensor", takes="at least one axis; use * for numbers"
            )
    inner_a = a.shape[-2] if transpose_a and a.rank > 1 else a.shape[-1]
    inner_b = b.shape[-1] if transpose_b or b.rank == 1 else b.shape[-2]
    if inner_a != inner_b:
        flags = f", transposed: {transpose_a} and {transpose_b}" if transpose_a or transpose_b else ""
        raise ShapeError(
            "matmul", "other", got=f"shape {b.shape}, whose inner dimension is {inner_b}",
            takes=f"an inner dimension of {inner_a}, as 'input' of shape {a.shape} has{flags}",
            hint="the last axis of the first matrix meets the last but one of the second",
        )  # fmt: skip
    rows = () if a.rank == 1 else (a.shape[-1 if transpose_a else -2],)
    columns = () if b.rank == 1 else (b.shape[-2 if transpose_b else -1],)
    batch_a, batch_b = a.shape[:-2], b.shape[:-2]
    if batch_a == batch_b or not batch_b:
        batch = batch_a
    elif not batch_a:
        batch = batch_b
    else:
        try:
            batch = np.broadcast_shapes(batch_a, batch_b)
        except ValueError:
            raise ShapeError(
                "matmul", "other", got=f"shape {b.shape} with leading axes {batch_b}",
                takes=f"leading axes that broadcast with {batch_a} of 'input' {a.shape}",
            ) from None  # fmt: skip
    return TensorType(a.dtype, (*batch, *rows, *columns))


def _lower_matmul(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    if transpose_a and a.ndim > 1:
        a = jnp.swapaxes(a, -1, -2)
    if transpose_b and b.ndim > 1:
        b = jnp.swapaxes(b, -1, -2)
    dtype, wide = a.dtype, accumulator(a.dtype)
    if dtype.itemsize < 4 and dtype.kind in "iu":  # the low bits are the same, and XLA is a hundred times faster
        wide = np.dtype(np.int32)
    elif wide is not None and 2 <= a.ndim < b.ndim:  # XLA's CPU compiler refuses some of these in half precision
        a, b = a.astype(wide), b.astype(wide)
    return jnp.matmul(a, b, preferred_element_type=wide).astype(dtype)


def _vjp_matmul(ct: Tensor, a: Tensor, b: Tensor, out: Tensor, *, transpose_a: bool, transpose_b: bool) -> list[Any]:
    shape_a, shape_b = a.shape, b.shape
    ta, tb = transpose_a and len(shape_a) > 1, transpose_b and len(shape_b) > 1
    if len(shape_a) == 1 or len(shape_b) == 1:
        batch = shape_b[:-2] if len(shape_a) == 1 else shape_a[:-2]
        rows = 1 if len(shape_a) == 1 else shape_a[-1 if ta else -2]
        columns = 1 if len(shape_b) == 1 else shape_b[-2 if tb else -1]
        ct = reshape(ct, (*batch, rows, columns))
        a = reshape(a, (1, *shape_a)) if len(shape_a) == 1 else a
        b = reshape(b, (*shape_b, 1)) if len(shape_b) == 1 else b

    def grad_a() -> Tensor:
        made = matrix_product(conj(b), ct, tb, True) if ta else matrix_product(ct, conj(b), False, not tb)
        return reshape(sum_to(made, a.shape), shape_a)

    def grad_b() -> Tensor:
        left, right = conj(a), ct
        if len(shape_b) == 1 and not ta:  # a row times a matrix needs no transposed copy of it
            made = matrix_product(reshape(ct, (*ct.shape[:-2], 1, ct.shape[-2])), left)
            return reshape(sum_to(made, (1, *shape_b)), shape_b)
        if b.ndim == 2 and a.ndim > 2 and not ta and a.size:
            left, right = reshape(left, (-1, a.shape[-1])), reshape(ct, (-1, ct.shape[-1]))
        made = matrix_product(right, left, True, ta) if tb else matrix_product(left, right, not ta, False)
        return reshape(sum_to(made, b.shape), shape_b)

    return [grad_a, grad_b]


def _matmul_samples() -> list[Any]:
    return [
        Sample((_A, _B), _FLAGS), Sample((_V, _B), _FLAGS), Sample((_A, _V), _FLAGS), Sample((_V, _V), _FLAGS),
        Sample((_B, _A), {"transpose_a": True, "transpose_b": True}),
        Sample((_A, _A), {"transpose_a": False, "transpose_b": True}),
        Sample((_A, _A), {"transpose_a": True, "transpose_b": False}),
        Sample((_BATCH, _BATCH.reshape(2, 4, 3)), _FLAGS), Sample((_BATCH[0], _BATCH[0, 0].T), _FLAGS),
        Sample((_BATCH, _BATCH.reshape(2, 4, 3)), {"transpose_a": True, "transpose_b": True}),
        Sample((_BATCH[0, 0, 0], _BATCH.reshape(2, 4, 3)), _FLAGS), Sample((_BATCH, _BATCH[0, 0, 0]), _FLAGS),
        Sample((np.zeros((2, 0)), np.zeros((0, 3))), _FLAGS), Sample((np.zeros((0, 2, 3)), _B), _FLAGS),
        Bad((_A, _A), _FLAGS, ShapeError, "inner dimension of 3"),
        Bad((_A, np.array(2.0)), _FLAGS, ShapeError, "zero-dimensional"),
        Bad((_BATCH.reshape(2, 3, 4), np.zeros((3, 4, 2))), _FLAGS, ShapeError, "leading axes"),
    ]  # fmt: skip


matmul_p = Primitive(
    "matmul", infer=_infer_matmul, lower=_lower_matmul, vjp=_vjp_matmul, shard="...ik,...kj->...ij",
    samples=_matmul_samples,
)  # fmt: skip


_AS_THEY_ARE = {"transpose_a": False, "transpose_b": False}
_AS_THEY_ARE_KEY = tuple(_AS_THEY_ARE.items())


def matrix_product(a: Tensor, b: Tensor, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """``a @ b`` of tensors of one dtype with optional transposes; what rules are written with."""
    return apply(matmul_p, a, b, transpose_a=transpose_a, transpose_b=transpose_b)  # type: ignore[no-any-return]


@operator(methods=("matmul", "__matmul__"))
def matmul(input: Any, other: Any) -> Tensor:
    """Matrix product, as ``numpy.matmul``; also ``input @ other``.

    Args:
        input: a tensor of shape (..., n, k), or (k,) for a row.
        other: a tensor of shape (..., k, m), or (k,) for a column. The leading axes broadcast.

    Returns:
        A tensor of shape (..., n, m) without the axes that stood for a row or a column.

    Raises:
        ShapeError: the inner dimensions differ, or the leading axes do not broadcast.

    >>> import mycelia as ms
    >>> print(ms.ops.matmul(ms.Tensor([[1.0, 2.0]]), ms.Tensor([[3.0], [4.0]])))
    [[11.]]
    """
    if isinstance(input, Tensor) and isinstance(other, Tensor) and input._value.dtype == other._value.dtype:
        return apply_pair(matmul_p, _AS_THEY_ARE, _AS_THEY_ARE_KEY, input, other)  # type: ignore[no-any-return]
    a, b = same_dtype("matmul", input, other)
    return matrix_product(a, b)


attach("__rmatmul__", lambda self, other: matmul(other, self))


def _of_rank(x: Any, rank: int, where: str, argument: str) -> Tensor:
    made = as_tensor(x, where, argument)
    if made.ndim != rank:
        raise ShapeError(where, argument, got=f"shape {made.shape}", takes=f"a tensor of {rank} axes")
    return made


@operator(methods=True)
def bmm(input: Any, mat2: Any) -> Tensor:
    """Product of two batches of matrices.

    Args:
        input: a tensor of shape (b, n, k).
        mat2: a tensor of shape (b, k, m).

    Raises:
        ShapeError: an input has fewer than three axes, or the shapes do not fit.

    >>> import mycelia as ms
    >>> ms.ops.bmm(ms.ops.ones((5, 2, 3)), ms.ops.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    return batch_matmul(input, mat2)


def batch_matmul(x: Any, y: Any, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """``bmm`` with transposes of the last two axes; any number (at least one) of batch axes.

    >>> import mycelia as ms
    >>> batch_matmul(ms.ops.ones((5, 3, 2)), ms.ops.ones((5, 3, 4)), transpose_a=True).shape
    (5, 2, 4)
    """
    a, b = same_dtype("bmm", x, y, names=("input", "mat2"))
    for t, name in ((a, "input"), (b, "mat2")):
        if t.ndim < 3:
            raise ShapeError("bmm", name, got=f"shape {t.shape}", takes="a batch of matrices, three axes or more")
    return matrix_product(a, b, transpose_a, transpose_b)


@operator(methods=True)
def mm(input: Any, mat2: Any) -> Tensor:
    """Product of two matrices of shapes (n, k) and (k, m).

    Raises:
        ShapeError: an input is not a matrix, or the inner dimensions differ.

    >>> import mycelia as ms
    >>> ms.ops.mm(ms.ops.ones((2, 3)), ms.ops.ones((3, 4))).shape
    (2, 4)
    """
    a, b = same_dtype("mm", _of_rank(input, 2, "mm", "input"), _of_rank(mat2, 2, "mm", "mat2"), names=("input", "mat2"))
    return matrix_product(a, b)


@operator(methods=True)
def mv(mat: Any, vec: Any) -> Tensor:
    """Product of a matrix (n, k) and a vector (k,).

    >>> import mycelia as ms
    >>> print(ms.ops.mv(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([1, 1])))
    [3 7]
    """
    a, b = same_dtype("mv", _of_rank(mat, 2, "mv", "mat"), _of_rank(vec, 1, "mv", "vec"), names=("mat", "vec"))
    return matrix_product(a, b)


@operator(methods=True)
def dot(input: Any, other: Any) -> Tensor:
    """Sum of products over the last axis of ``input`` and the last but one of ``other``, as ``numpy.dot``.

    Args:
        input: a tensor of shape (..., k).
        other: a tensor of shape (..., k, m) or (k,); the leading axes of the two do not broadcast but
            follow each other in the result.

    >>> import mycelia as ms
    >>> ms.ops.dot(ms.ops.ones((2, 3)), ms.ops.ones((1, 3, 2))).shape
    (2, 1, 2)
    """
    a, b = same_dtype("dot", input, other)
    if a.ndim <= 2 and b.ndim <= 2:
        return matrix_product(a, b)
    from mycelia.ops.contraction import contract

    for t, name in ((a, "input"), (b, "other")):
        if not t.shape:
            raise ShapeError("dot", name, got="a zero-dimensional tensor", takes="at least one axis")
    return contract(a, b, (a.ndim - 1,), (max(b.ndim - 2, 0),), "dot")


@operator()
def vdot(input: Any, other: Any) -> Tensor:
    """Sum of products of two vectors of equal length, the first one conjugated.

    >>> import mycelia as ms
    >>> print(ms.ops.vdot(ms.Tensor([1, 2]), ms.Tensor([3, 4])))
    11
    """
    a, b = same_dtype("vdot", _of_rank(input, 1, "vdot", "input"), _of_rank(other, 1, "vdot", "other"))
    return matrix_product(conj(a), b)


@operator(methods=True)
def inner(input: Any, other: Any) -> Tensor:
    """Sum of products over the last axes of both; with a number, the product.

    >>> import mycelia as ms
    >>> ms.ops.inner(ms.ops.ones((2, 3)), ms.ops.ones((4, 3))).shape
    (2, 4)
    """
    a, b = same_dtype("inner", input, other)
    if not a.ndim or not b.ndim:
        return a * b
    from mycelia.ops.contraction import contract

    return contract(a, b, (a.ndim - 1,), (b.ndim - 1,), "inner")


@operator(methods=("outer", "ger"), aliases=("ger",))
def outer(input: Any, vec2: Any) -> Tensor:
    """Products of all pairs of two vectors, of shape (n, m).

    Args:
        input: a vector (n,).
        vec2: a vector (m,).

    >>> import mycelia as ms
    >>> print(ms.ops.outer(ms.Tensor([1, 2]), ms.Tensor([3, 4])))
    [[3 4]
     [6 8]]
    """
    a, b = same_dtype(
        "outer", _of_rank(input, 1, "outer", "input"), _of_rank(vec2, 1, "outer", "vec2"), names=("input", "vec2")
    )
    return reshape(a, (a.size, 1)) * reshape(b, (1, b.size))


def _infer_dense(x: TensorType, weight: TensorType, bias: TensorType | None = None) -> TensorType:
    types = (x, weight) if bias is None else (x, weight, bias)
    check_dtypes("dense", types, dt.NUMBERS, ("input", "weight", "bias"))
    if weight.rank not in (1, 2):
        raise ShapeError("dense", "weight", got=f"shape {weight.shape}", takes="shape (out, in), or (in,)")
    if not x.shape or x.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            "dense", "input", got=f"shape {x.shape}",
            takes=f"{weight.shape[-1]} features on the last axis, as the weight of shape {weight.shape} asks",
        )  # fmt: skip
    out = weight.shape[:-1]
    if bias is not None and bias.shape not in (out, ()):
        raise ShapeError("dense", "bias", got=f"shape {bias.shape}", takes=f"shape {out}, one value per output feature")
    return TensorType(x.dtype, x.shape[:-1] + out)


def _lower_dense(x: Any, weight: Any, bias: Any = None) -> Any:
    acc = accumulator(x.dtype)
    axes = (((x.ndim - 1,), (weight.ndim - 1,)), ((), ()))
    y = lax.dot_general(x, weight, axes, preferred_element_type=acc)
    if bias is not None:
        y = y + bias.astype(y.dtype)
    return y.astype(x.dtype)


def _vjp_dense(ct: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor) -> list[Any]:
    features, outputs = weight.shape[-1], 1 if weight.ndim == 1 else weight.shape[0]

    def flat() -> Tensor:
        return ct if ct.ndim == 2 and weight.ndim == 2 else reshape(ct, (ct.size // outputs if outputs else 0, outputs))

    def grad_x() -> Tensor:
        return reshape(matrix_product(flat(), conj(reshape(weight, (outputs, features)))), x.shape)

    def grad_weight() -> Tensor:
        flat_x = x if x.ndim == 2 else reshape(x, (x.size // features if features else 0, features))
        return reshape(matrix_product(flat(), conj(flat_x), True), weight.shape)

    if bias is None:
        return [grad_x, grad_weight]
    return [grad_x, grad_weight, lambda: sum_to(ct, bias.shape)]


dense_p = Primitive(
    "dense", infer=_infer_dense, lower=_lower_dense, vjp=_vjp_dense,
    shard=lambda *types: "...i,oi->...o" if len(types) == 2 else "...i,oi,o->...o",
    samples=lambda: [
        Sample((_A, _B.T, _V[:2])), Sample((_A, _B.T)), Sample((_BATCH, np.ones((2, 4)), np.array([0.5, -1.0]))),
        Sample((_V, _A, _V[:2])), Sample((_A, _V, np.array(0.5))), Sample((np.zeros((0, 3)), _A, _V[:2])),
        Bad((_A, _B), {}, ShapeError, "2 features"), Bad((_A, _A, _V), {}, ShapeError, "one value per output"),
        Bad((_A, np.array(1.0)), {}, ShapeError, "(out, in)"),
    ],
)  # fmt: skip


@operator()
def dense(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """A fully connected layer: ``input @ weight.T + bias``.

    Args:
        input: a tensor of shape (..., in).
        weight: a tensor of shape (out, in), or (in,) for one output without an axis of its own.
        bias: a tensor of shape (out,), or None.

    Returns:
        A tensor of shape (..., out).

    Raises:
        ShapeError: the number of features differs.

    >>> import mycelia as ms
    >>> print(ms.ops.dense(ms.Tensor([[1.0, 2.0]]), ms.Tensor([[3.0, 4.0]]), ms.Tensor([0.5])))
    [[11.5]]
    """
    if isinstance(input, Tensor) and isinstance(weight, Tensor):
        dtype = input._value.dtype
        if weight._value.dtype == dtype:
            if bias is None:
                return apply(dense_p, input, weight)  # type: ignore[no-any-return]
            if isinstance(bias, Tensor) and bias._value.dtype == dtype:
                return apply(dense_p, input, weight, bias)  # type: ignore[no-any-return]
    given = (input, weight) if bias is None else (input, weight, bias)
    return apply(dense_p, *same_dtype("dense", *given, names=("input", "weight", "bias")))  # type: ignore[no-any-return]


def _scaled(where: str, input: Any, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """``beta * input + alpha * product``; the factors are Python numbers of the product's kind."""
    x, y = same_dtype(where, input, product, names=("input", "product"))
    for name, value in (("beta", beta), ("alpha", alpha)):
        if not isinstance(value, (int, float, complex)):
            raise ArgumentTypeError(where, name, got=type(value).__name__, takes="a number")
        if isinstance(value, float) and not x.dtype.is_inexact:
            raise DTypeError(where, name, got=f"{value} for tensors of dtype {x.dtype}", takes="an int")
    if alpha != 1:
        y = y * alpha
    if beta == 0:
        return _broadcast(y, x)
    return (x if beta == 1 else x * beta) + y


def _broadcast(y: Tensor, x: Tensor) -> Tensor:
    from mycelia.ops.operands import broadcast_shapes
    from mycelia.ops.shape import broadcast_to

    return broadcast_to(y, broadcast_shapes("addmm", [y.shape, x.shape], ("product", "input")))


@operator(methods=True)
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)`` for matrices (n, k) and (k, m).

    Args:
        input: a tensor that broadcasts to (n, m); not read if ``beta`` is 0.
        mat1: a matrix (n, k).
        mat2: a matrix (k, m).
        beta: a number.
        alpha: a number; both must be ints for integer tensors.

    >>> import mycelia as ms
    >>> print(ms.ops.addmm(ms.Tensor([1.0]), ms.ops.ones((1, 2)), ms.ops.ones((2, 2)), beta=2))
    [[4. 4.]]
    """
    return _scaled("addmm", input, mm(mat1, mat2), beta, alpha)


@operator(methods=True)
def baddbmm(input: Any, batch1: Any, batch2: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)`` for batches (b, n, k) and (b, k, m).

    >>> import mycelia as ms
    >>> ms.ops.baddbmm(ms.ops.ones((5, 2, 4)), ms.ops.ones((5, 2, 3)), ms.ops.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    return _scaled("baddbmm", input, bmm(batch1, batch2), beta, alpha)


@operator(methods=True)
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * sum_i(batch1[i] @ batch2[i])`` for batches (b, n, k) and (b, k, m).

    >>> import mycelia as ms
    >>> ms.ops.addbmm(ms.ops.ones((2, 4)), ms.ops.ones((5, 2, 3)), ms.ops.ones((5, 3, 4))).shape
    (2, 4)
    """
    a, b = same_dtype(
        "addbmm", _of_rank(batch1, 3, "addbmm", "batch1"), _of_rank(batch2, 3, "addbmm", "batch2"),
        names=("batch1", "batch2"),
    )  # fmt: skip
    if a.shape[0] != b.shape[0]:
        raise ShapeError("addbmm", "batch2", got=f"shape {b.shape}", takes=f"{a.shape[0]} matrices, as batch1 has")
    from mycelia.ops.contraction import contract

    return _scaled("addbmm", input, contract(a, b, (0, 2), (0, 1), "addbmm"), beta, alpha)


@operator(methods=True)
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat @ vec)`` for a matrix (n, k) and a vector (k,).

    >>> import mycelia as ms
    >>> print(ms.ops.addmv(ms.Tensor([1, 1]), ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([1, 1])))
    [4 8]
    """
    return _scaled("addmv", input, mv(mat, vec), beta, alpha)


@operator()
def addr(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * x + alpha * outer(vec1, vec2)`` for vectors (n,) and (m,).

    >>> import mycelia as ms
    >>> print(ms.ops.addr(ms.Tensor([[1, 1], [1, 1]]), ms.Tensor([1, 2]), ms.Tensor([3, 4])))
    [[4 5]
     [7 9]]
    """
    return _scaled("addr", x, outer(vec1, vec2), beta, alpha)


attach_in_place("addmm_", addmm)
attach("addr", lambda self, vec1, vec2, beta=1, alpha=1: addr(self, vec1, vec2, beta=beta, alpha=alpha))
