"""Class forms of linear algebra and of distances between points."""

from __future__ import annotations

from typing import Any

from mycelia.ops.contraction import cross
from mycelia.ops.decompositions import eig, eigvals, geqrf, lstsq, lu_solve, lu_unpack, orgqr, ormqr, qr, svd
from mycelia.ops.distance import cdist, pdist
from mycelia.ops.elementary import conj
from mycelia.ops.legacy.form import form
from mycelia.ops.linalg import (
    cholesky,
    cholesky_inverse,
    cholesky_solve,
    det,
    inverse,
    matrix_exp,
    matrix_power,
    matrix_solve,
    slogdet,
    trace,
    triangular_solve,
)
from mycelia.ops.matrix_norms import matrix_norm
from mycelia.ops.operands import as_tensor
from mycelia.ops.shape import swapaxes
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant

__all__ = [
    "Cdist", "Cholesky", "CholeskyInverse", "CholeskySolve", "Cross", "Eig", "Geqrf", "LogMatrixDeterminant",
    "Lstsq", "LuSolve", "LuUnpack", "MatrixDeterminant", "MatrixExp", "MatrixInverse", "MatrixPower", "MatrixSolve",
    "MatrixTriangularSolve", "NuclearNorm", "Orgqr", "Ormqr", "Pdist", "Qr", "Svd", "Trace",
]  # fmt: skip

_NO_DIM = -65530


def _adjoint(x: Tensor) -> Tensor:
    turned = swapaxes(x, -1, -2)
    return conj(turned) if x.dtype.is_complex else turned


def _inverted(x: Any, adjoint: bool) -> Tensor:
    made = inverse(x)
    return _adjoint(made) if adjoint else made


def _triangular(matrix: Any, rhs: Any, lower: bool, adjoint: bool) -> Tensor:
    a = as_tensor(matrix, "MatrixTriangularSolve", "matrix")
    return triangular_solve(rhs, _adjoint(a) if adjoint else a, upper=bool(lower) is bool(adjoint))[0]


def _eigen(x: Any, compute_v: bool) -> tuple[Tensor, Tensor]:
    """Eigenvalues, and eigenvectors or an empty tensor."""
    if compute_v:
        return eig(x)
    values = eigvals(x)
    return values, constant(values.dtype.np.type(0).reshape((1,))[:0])


def _singular(input: Any, full_matrices: bool, compute_uv: bool) -> Any:
    """Singular values, and both orthogonal matrices or two empty tensors."""
    made = svd(input, bool(full_matrices), bool(compute_uv))
    if compute_uv:
        return made
    nothing = constant(made.dtype.np.type(0).reshape((1,))[:0])
    return made, nothing, nothing


def _nuclear(x: Any, dim: Any, keepdim: bool) -> Tensor:
    """The sum of the singular values of the matrices along two axes."""
    t = as_tensor(x, "NuclearNorm", "x")
    return matrix_norm(t, "nuc", (0, 1) if dim is None and t.ndim == 2 else dim or (-2, -1), bool(keepdim))


Cdist = form("Cdist(p=2.0)(x1, x2)", cdist)
Cholesky = form("Cholesky(upper=False)(input_x)", cholesky)
CholeskyInverse = form("CholeskyInverse(upper=False)(input_x)", cholesky_inverse)
CholeskySolve = form("CholeskySolve(upper=False)(x1, x2)", cholesky_solve)
Cross = form(
    "Cross(dim=-65530)(input, other)", lambda input, other, dim: cross(input, other, None if dim == _NO_DIM else dim)
)
Eig = form("Eig(compute_v=False)(x)", _eigen)
Geqrf = form("Geqrf()(input)", geqrf)
LogMatrixDeterminant = form("LogMatrixDeterminant()(input)", slogdet)
Lstsq = form("Lstsq(fast=True, l2_regularizer=0.0)(x, a)", lambda x, a, fast, l2_regularizer: lstsq(x, a))
LuSolve = form("LuSolve()(x, lu_data, lu_pivots)", lu_solve)
LuUnpack = form("LuUnpack(unpack_data=True, unpack_pivots=True)(LU_data, LU_pivots)", lu_unpack)
MatrixDeterminant = form("MatrixDeterminant()(input)", det)
MatrixExp = form("MatrixExp()(input)", matrix_exp)
MatrixInverse = form("MatrixInverse(adjoint=False)(x)", _inverted)
MatrixPower = form("MatrixPower(n)(x)", matrix_power)
MatrixSolve = form("MatrixSolve(adjoint=False)(matrix, rhs)", matrix_solve)
MatrixTriangularSolve = form("MatrixTriangularSolve(lower=True, adjoint=False)(matrix, rhs)", _triangular)
NuclearNorm = form("NuclearNorm(dim=None, keepdim=False)(x)", _nuclear)
Orgqr = form("Orgqr()(x, tau)", orgqr)
Ormqr = form("Ormqr(left=True, transpose=False)(x, tau, other)", ormqr)
Pdist = form("Pdist(p=2.0)(x)", pdist)
Qr = form("Qr(full_matrices=False)(x)", lambda x, full_matrices: qr(x, "complete" if full_matrices else "reduced"))
Svd = form("Svd(full_matrices=False, compute_uv=True)(input)", _singular)
Trace = form("Trace()(input)", trace)
