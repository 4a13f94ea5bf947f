"""Sums of products over named axes: ``einsum``, ``tensor_dot`` and their kin.

``einsum`` reads the notation of ``numpy.einsum`` (A. Einstein's summation convention; ``...`` for leading
axes, repeated names for diagonals, an implicit output in alphabetical order) and brings it to one explicit
form without ``...``, which the primitive takes. The order of the pairwise products is found by
``opt_einsum`` (D. G. A. Smith and J. Gray, JOSS 2018) inside ``jax.numpy.einsum``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes, conj, sum_to
from mycelia.ops.linear import accumulator, matmul
from mycelia.ops.operands import as_axis, as_int, broadcast_shapes, same_dtype
from mycelia.ops.registry import operator
from mycelia.ops.shape import broadcast_to, reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant

_A = np.array([[1.5, -2.0, 0.5], [0.25, 3.0, -1.0]])
_S = np.array([[1.0, 2.0, -1.0], [0.5, -0.25, 3.0], [2.0, 1.0, 0.75]])


def _split(equation: str) -> tuple[list[str], str]:
    inputs, output = equation.split("->")
    return inputs.split(","), output


def _infer_einsum(*types: TensorType, equation: str) -> TensorType:
    check_dtypes("einsum", types, dt.NUMBERS, [f"operands[{i}]" for i in range(len(types))])
    terms, output = _split(equation)
    sizes: dict[str, int] = {}
    for i, (term, t) in enumerate(zip(terms, types, strict=True)):
        if len(term) != t.rank:
            raise ShapeError(
                "einsum", f"operands[{i}]", got=f"shape {t.shape}", takes=f"{len(term)} axes, as '{term}' names them"
            )
        for name, size in zip(term, t.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise ShapeError(
                    "einsum", f"operands[{i}]", got=f"shape {t.shape} for '{term}'",
                    takes=f"length {sizes[name]} for axis '{name}', as an operand before it has",
                )  # fmt: skip
    return TensorType(types[0].dtype, tuple([sizes[n] for n in output]))


def _lower_einsum(*arrays: Any, equation: str) -> Any:
    dtype = arrays[0].dtype
    return jnp.einsum(equation, *arrays, preferred_element_type=accumulator(dtype)).astype(dtype)


def _vjp_einsum(ct: Tensor, *inputs: Tensor, out: Tensor, equation: str) -> list[Any]:
    terms, output = _split(equation)
    return [_einsum_cotangent(ct, inputs, terms, output, i) for i in range(len(inputs))]


def _einsum_cotangent(ct: Tensor, inputs: Sequence[Tensor], terms: list[str], output: str, i: int) -> Any:
    def make() -> Tensor:
        term, x = terms[i], inputs[i]
        others = [j for j in range(len(inputs)) if j != i]
        reachable = set(output).union(*[terms[j] for j in others])
        unique = "".join(dict.fromkeys(term))
        present = "".join([n for n in unique if n in reachable])
        made = _einsum(
            ",".join([output, *[terms[j] for j in others]]) + "->" + present, ct, *[conj(inputs[j]) for j in others]
        )
        sizes = dict(zip(term, x.shape, strict=True))
        if present != unique:  # summed away without a partner: every element had a factor of one
            made = reshape(made, tuple([sizes[n] if n in reachable else 1 for n in unique]))
            made = broadcast_to(made, tuple([sizes[n] for n in unique]))
        return made if unique == term else _on_diagonals(made, unique, term, sizes, x)

    return make


def _on_diagonals(values: Tensor, unique: str, term: str, sizes: dict[str, int], x: Tensor) -> Tensor:
    """Put a gradient by names back where the names repeat: on the diagonal, zero elsewhere."""
    free = [c for c in ascii_letters if c not in term]
    seen: set[str] = set()
    target, masks, operands = "", [], []
    for name in term:
        if name not in seen:
            seen.add(name)
            target += name
            continue
        other = free.pop()
        masks.append(name + other)
        operands.append(constant(np.eye(sizes[name], dtype=x.dtype.np)))
        target += other
    return _einsum(",".join([unique, *masks]) + "->" + target, values, *operands)


def _einsum_samples() -> list[Any]:
    cases = [
        ("ab,bc->ac", (_A, _S)), ("ab,ab->", (_A, _A)), ("ab->ba", (_A,)), ("ab->b", (_A,)), ("aa->", (_S,)),
        ("aa->a", (_S,)), ("aab->b", (np.arange(8.0).reshape(2, 2, 2),)), ("ab,bc,cd->ad", (_A, _S, _S)),
        ("a,b->ab", (_A[0], _A[1])), ("abc,acd->abd", (np.ones((2, 1, 3)), np.arange(12.0).reshape(2, 3, 2))),
        (",a->a", (np.array(2.0), _A[0])), ("ab,cd->ad", (_A, _S)), ("aa,ab->b", (_S, _S)),
        ("ab,bc->ac", (np.zeros((2, 0)), np.zeros((0, 3)))),
    ]  # fmt: skip
    return [
        *[Sample(arrays, {"equation": equation}) for equation, arrays in cases],
        Bad((_A, _A), {"equation": "ab,bc->ac"}, ShapeError, "length 3 for axis 'b'"),
        Bad((_A,), {"equation": "abc->a"}, ShapeError, "3 axes"),
    ]


einsum_p = Primitive(
    "einsum", infer=_infer_einsum, lower=_lower_einsum, vjp=_vjp_einsum, onnx="Einsum", samples=_einsum_samples,
    shard=lambda *types, equation: equation,
)  # fmt: skip


def _einsum(equation: str, *operands: Tensor) -> Tensor:
    return apply(einsum_p, *operands, equation=equation)  # type: ignore[no-any-return]


def contract(a: Tensor, b: Tensor, axes_a: tuple[int, ...], axes_b: tuple[int, ...], where: str) -> Tensor:
    """Sum of products over paired axes; the free axes of ``a``, then those of ``b`` are left."""
    for i, j in zip(axes_a, axes_b, strict=True):
        if a.shape[i] != b.shape[j]:
            raise ShapeError(
                where, "other", got=f"shape {b.shape} with length {b.shape[j]} on axis {j}",
                takes=f"length {a.shape[i]}, as axis {i} of the first operand of shape {a.shape} has",
            )  # fmt: skip
    if a.ndim + b.ndim > len(ascii_letters):
        raise ShapeError(
            where, "other", got=f"{a.ndim} and {b.ndim} axes", takes=f"at most {len(ascii_letters)} in all"
        )
    names_a = list(ascii_letters[: a.ndim])
    names_b = list(ascii_letters[a.ndim : a.ndim + b.ndim])
    for i, j in zip(axes_a, axes_b, strict=True):
        names_b[j] = names_a[i]
    free = [n for i, n in enumerate(names_a) if i not in axes_a] + [n for j, n in enumerate(names_b) if j not in axes_b]
    return _einsum(f"{''.join(names_a)},{''.join(names_b)}->{''.join(free)}", a, b)


@operator()
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum of products over named axes (Einstein's summation convention).

    Args:
        equation: the names of the axes of each operand, separated by commas, and after ``->`` those of the
            result. Without ``->`` the result has the names that occur once, in alphabetical order. ``...``
            stands for any number of leading axes that broadcast, and are summed if the result has none; a
            name that repeats within an operand takes its diagonal. Spaces are ignored.
        operands: one tensor for each term. The sublist form ``einsum(op1, [0, 1], op2, [1, 2], [0, 2])``
            is understood as well.

    Returns:
        A tensor with the axes of the result.

    Raises:
        ArgumentValueError: the equation is malformed, or does not fit the number of operands.
        ShapeError: an operand has another number of axes, or one name two lengths.

    >>> import mycelia as ms
    >>> x, y = ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), ms.Tensor([1.0, 10.0])
    >>> print(ms.ops.einsum("ij,j->i", x, y))
    [21. 43.]
    >>> print(ms.ops.einsum("ii", x))
    5.0
    """
    if not isinstance(equation, str):
        equation, operands = _from_sublists(equation, operands)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise ArgumentValueError("einsum", "operands", got="none", takes="at least one tensor")
    tensors = same_dtype("einsum", *operands, names=[f"operands[{i}]" for i in range(len(operands))])
    terms, output = _explicit(equation, [t.shape for t in tensors])
    tensors = tuple([_fit(t, term, i) for i, (t, term) in enumerate(zip(tensors, terms, strict=True))])
    tensors, terms = _without_ones(tensors, terms)
    return _einsum(",".join(terms) + "->" + output, *tensors)


def _fit(tensor: Tensor, term: str, i: int) -> Tensor:
    if len(term) != tensor.ndim:
        raise ShapeError(
            "einsum", f"operands[{i}]", got=f"shape {tensor.shape}", takes=f"{len(term)} axes, as its term names them"
        )
    return tensor


def _without_ones(tensors: Sequence[Tensor], terms: Sequence[str]) -> tuple[tuple[Tensor, ...], list[str]]:
    """Drop axes of length 1 whose name has another length elsewhere: they broadcast."""
    sizes: dict[str, int] = {}
    for t, term in zip(tensors, terms, strict=True):
        for name, size in zip(term, t.shape, strict=True):
            if sizes.get(name, 1) == 1:
                sizes[name] = size
    made, names = [], []
    for t, term in zip(tensors, terms, strict=True):
        keep = [k for k, (n, s) in enumerate(zip(term, t.shape, strict=True)) if s != 1 or sizes[n] == 1]
        made.append(t if len(keep) == len(term) else reshape(t, tuple([t.shape[k] for k in keep])))
        names.append("".join([term[k] for k in keep]))
    return tuple(made), names


def _explicit(equation: str, shapes: Sequence[tuple[int, ...]]) -> tuple[list[str], str]:
    """The terms and the output of an equation with ``...`` replaced by names and the output written out."""
    text = equation.replace(" ", "")

    def refuse(why: str, takes: str) -> ArgumentValueError:
        return ArgumentValueError("einsum", "equation", got=f"{equation!r}, {why}", takes=takes)

    left, arrow, output = text.partition("->")
    if "->" in output or (not arrow and (">" in text or "-" in text)):
        raise refuse("with a stray arrow", "one '->' at most")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise refuse(f"with {len(terms)} terms", f"a term for each of the {len(shapes)} operands")
    for part in [*terms, output]:
        rest = part.replace("...", "", 1)
        bad = next((c for c in rest if c not in ascii_letters), None)
        if bad is not None:
            raise refuse(f"with {bad!r} in it", "letters, one '...' a term, ',' and '->'")
    used = set(text)
    spare = [c for c in ascii_letters if c not in used]
    widest = 0
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        if "..." in term:
            extra = len(shape) - (len(term) - 3)
            if extra < 0:
                raise ShapeError(
                    "einsum", f"operands[{i}]", got=f"shape {shape}", takes=f"at least {len(term) - 3} axes"
                )
            widest = max(widest, extra)
    if widest > len(spare):
        raise refuse("with too many axes", f"at most {len(ascii_letters)} axes in all")
    leading = "".join(spare[:widest])
    full = []
    for term, shape in zip(terms, shapes, strict=True):
        extra = len(shape) - (len(term) - 3)
        full.append(term.replace("...", leading[widest - extra :] if extra else "") if "..." in term else term)
    if not arrow:
        counts = Counter("".join(full))
        once = sorted(n for n, k in counts.items() if k == 1 and n not in leading)
        return full, leading + "".join(once)
    known = set("".join(full))
    names = output.replace("...", leading)
    unknown = next((n for n in names if n not in known), None)
    if unknown is not None:
        raise refuse(f"with {unknown!r} in the result only", "names that an operand has")
    if len(set(names)) != len(names):
        raise refuse("with a name twice in the result", "each name once in the result")
    return full, names


def _from_sublists(first: Any, rest: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    given = (first, *rest)
    if len(given) < 2 or not all(isinstance(s, (list, tuple)) for s in given[1::2]):
        raise ArgumentTypeError(
            "einsum", "equation", got=type(first).__name__, takes="a string, or operands with sublists"
        )

    def term(sublist: Any) -> str:
        made = ""
        for entry in sublist:
            if entry is Ellipsis:
                made += "..."
            else:
                index = as_int(entry, "einsum", "sublist")
                if not 0 <= index < len(ascii_letters):
                    raise ArgumentValueError(
                        "einsum", "sublist", got=str(index), takes=f"names from 0 to {len(ascii_letters) - 1}"
                    )
                made += (ascii_letters[26:] + ascii_letters[:26])[index]
        return made

    pairs, output = (given[:-1], given[-1]) if len(given) % 2 else (given, None)
    equation = ",".join([term(s) for s in pairs[1::2]])
    return equation if output is None else f"{equation}->{term(output)}", tuple(pairs[::2])


@operator(aliases=("tensordot",))
def tensor_dot(x1: Any, x2: Any, axes: Any = 2) -> Tensor:
    """Sum of products over pairs of axes, as ``numpy.tensordot``.

    Args:
        x1: a tensor.
        x2: a tensor.
        axes: an int n for the last n axes of ``x1`` with the first n of ``x2``; or a pair of axes, or of
            equally long sequences of axes.

    Returns:
        A tensor with the free axes of ``x1``, then those of ``x2``.

    Raises:
        ShapeError: paired axes have different lengths.
        ArgumentValueError: ``axes`` is no such pair.

    >>> import mycelia as ms
    >>> ms.ops.tensor_dot(ms.ops.ones((2, 3, 4)), ms.ops.ones((4, 3, 5)), ((1, 2), (1, 0))).shape
    (2, 5)
    """
    a, b = same_dtype("tensor_dot", x1, x2, names=("x1", "x2"))
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ArgumentValueError("tensor_dot", "axes", got=str(axes), takes="an int or a pair")
        pair = [tuple(p) if isinstance(p, (tuple, list)) else (p,) for p in axes]
        axes_a = tuple([as_axis(p, a.ndim, "tensor_dot", "axes") for p in pair[0]])
        axes_b = tuple([as_axis(p, b.ndim, "tensor_dot", "axes") for p in pair[1]])
        if len(axes_a) != len(axes_b) or len(set(axes_a)) != len(axes_a) or len(set(axes_b)) != len(axes_b):
            raise ArgumentValueError(
                "tensor_dot", "axes", got=str(axes), takes="as many axes of x1 as of x2, each once"
            )
    else:
        count = as_int(axes, "tensor_dot", "axes")
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise ArgumentValueError("tensor_dot", "axes", got=str(count), takes=f"0 to {min(a.ndim, b.ndim)} axes")
        axes_a, axes_b = tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    return contract(a, b, axes_a, axes_b, "tensor_dot")


@operator()
def batch_dot(x1: Any, x2: Any, axes: Any = None) -> Tensor:
    """Sum of products over one axis of each, sample by sample: axis 0 is the batch of both.

    Args:
        x1: a tensor of two axes or more.
        x2: a tensor of two axes or more with the same first length.
        axes: the axis of both, or a pair of axes; by default the last of ``x1`` and the last but one of
            ``x2`` (the last if it has two axes).

    Raises:
        ShapeError: the batch or the summed lengths differ.

    >>> import mycelia as ms
    >>> ms.ops.batch_dot(ms.ops.ones((2, 2, 3)), ms.ops.ones((2, 3, 2)), (-1, -2)).shape
    (2, 2, 2)
    """
    a, b = same_dtype("batch_dot", x1, x2, names=("x1", "x2"))
    for t, name in ((a, "x1"), (b, "x2")):
        if t.ndim < 2:
            raise ShapeError("batch_dot", name, got=f"shape {t.shape}", takes="two axes or more")
    given = (
        (a.ndim - 1, max(b.ndim - 2, 1)) if axes is None else axes if isinstance(axes, (tuple, list)) else (axes, axes)
    )
    if len(given) != 2:
        raise ArgumentValueError("batch_dot", "axes", got=str(axes), takes="an int or a pair of ints")
    i, j = as_axis(given[0], a.ndim, "batch_dot", "axes"), as_axis(given[1], b.ndim, "batch_dot", "axes")
    if not i or not j:
        raise ArgumentValueError("batch_dot", "axes", got=str(axes), takes="axes after the batch axis 0")
    if a.shape[0] != b.shape[0] or a.shape[i] != b.shape[j]:
        raise ShapeError(
            "batch_dot", "x2", got=f"shape {b.shape}",
            takes=f"batch {a.shape[0]} and length {a.shape[i]} on axis {j}, as 'x1' of shape {a.shape} has",
        )  # fmt: skip
    names_a, names_b = list(ascii_letters[: a.ndim]), list(ascii_letters[a.ndim : a.ndim + b.ndim])
    names_b[0], names_b[j] = names_a[0], names_a[i]
    output = [n for k, n in enumerate(names_a) if k != i] + [n for k, n in enumerate(names_b) if k not in (0, j)]
    made = _einsum(f"{''.join(names_a)},{''.join(names_b)}->{''.join(output)}", a, b)
    return reshape(made, (made.size, 1)) if made.ndim == 1 else made


@operator()
def vecdot(x: Any, y: Any, *, axis: Any = -1) -> Tensor:
    """Sum of products over one axis of two tensors that broadcast, the first conjugated.

    >>> import mycelia as ms
    >>> print(ms.ops.vecdot(ms.Tensor([[1, 3], [5, 7]]), ms.Tensor([[4, 5], [6, 7]])))
    [19 79]
    """
    a, b = same_dtype("vecdot", x, y, names=("x", "y"))
    shape = broadcast_shapes("vecdot", [a.shape, b.shape], ("x", "y"))
    where = as_axis(axis, len(shape), "vecdot")
    names = ascii_letters[: len(shape)]
    output = names[:where] + names[where + 1 :]
    return _einsum(f"{names},{names}->{output}", broadcast_to(conj(a), shape), broadcast_to(b, shape))


@operator()
def kron(input: Any, other: Any) -> Tensor:
    """Kronecker product: every element of ``input`` times the whole of ``other``, as ``numpy.kron``.

    Args:
        input: a tensor of any shape.
        other: a tensor of any shape; the one with fewer axes gets leading axes of length 1.

    >>> import mycelia as ms
    >>> print(ms.ops.kron(ms.Tensor([[1, 2]]), ms.Tensor([[1], [1]])))
    [[1 2]
     [1 2]]
    """
    a, b = same_dtype("kron", input, other)
    rank = max(a.ndim, b.ndim)
    shape_a, shape_b = (1,) * (rank - a.ndim) + a.shape, (1,) * (rank - b.ndim) + b.shape
    left = reshape(a, tuple([d for s in shape_a for d in (s, 1)]))
    right = reshape(b, tuple([d for s in shape_b for d in (1, s)]))
    product = left * right
    return reshape(product, tuple([s * t for s, t in zip(shape_a, shape_b, strict=True)]))


def _infer_cross(a: TensorType, b: TensorType, *, axis: int) -> TensorType:
    check_dtypes("cross", (a, b), dt.NUMBERS, ("input", "other"))
    shape = broadcast_shapes("cross", [a.shape, b.shape], ("input", "other"))
    if axis >= len(shape) or shape[axis] != 3:
        raise ShapeError(
            "cross", "input", got=f"shape {a.shape} with 'other' {b.shape}", takes=f"length 3 on axis {axis}"
        )
    return TensorType(a.dtype, shape)


def _lower_cross(a: Any, b: Any, *, axis: int) -> Any:
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b = jnp.broadcast_to(a, shape), jnp.broadcast_to(b, shape)

    def rolled(x: Any, shift: int) -> Any:
        return jnp.take(x, np.roll(np.arange(3), shift), axis=axis)

    return rolled(a, -1) * rolled(b, -2) - rolled(a, -2) * rolled(b, -1)


def _vjp_cross(ct: Tensor, a: Tensor, b: Tensor, out: Tensor, *, axis: int) -> list[Any]:
    return [
        lambda: sum_to(apply(cross_p, conj(b), ct, axis=axis), a.shape),
        lambda: sum_to(apply(cross_p, ct, conj(a), axis=axis), b.shape),
    ]


cross_p = Primitive(
    "cross", infer=_infer_cross, lower=_lower_cross, vjp=_vjp_cross,
    samples=lambda: [
        Sample((_A, _A[::-1] + 0.5), {"axis": 1}), Sample((_S, _S[:1] - 1.0), {"axis": 1}),
        Sample((_S, _S.T + 0.25), {"axis": 0}), Sample((np.zeros((0, 3)), _A[:1]), {"axis": 1}),
        Bad((_A, _A), {"axis": 0}, ShapeError, "length 3 on axis 0"),
    ],
)  # fmt: skip


@operator(methods=True)
def cross(input: Any, other: Any, dim: Any = None) -> Tensor:
    """Vector product along an axis of length 3.

    Args:
        input: a tensor.
        other: a tensor that broadcasts with it.
        dim: the axis; by default the first one of length 3.

    Raises:
        ShapeError: no axis, or not this one, has length 3.

    >>> import mycelia as ms
    >>> print(ms.ops.cross(ms.Tensor([1, 0, 0]), ms.Tensor([0, 1, 0])))
    [0 0 1]
    """
    a, b = same_dtype("cross", input, other)
    shape = broadcast_shapes("cross", [a.shape, b.shape], ("input", "other"))
    if dim is None or dim == -65530:  # MindSpore's number for "not given"
        axis = shape.index(3) if 3 in shape else -1
        if axis < 0:
            raise ShapeError(
                "cross", "input", got=f"shape {a.shape} with 'other' {b.shape}", takes="an axis of length 3"
            )
    else:
        axis = as_axis(dim, len(shape), "cross", "dim")
    return apply(cross_p, a, b, axis=axis)  # type: ignore[no-any-return]


@operator(aliases=("chain_matmul",))
def multi_dot(*arrays: Any) -> Tensor:
    """Product of several matrices in the order that costs least (dynamic programming over the shapes).

    Args:
        arrays: matrices, or one list of them; the first may be a row vector and the last a column vector.

    Raises:
        ShapeError: neighbours do not fit.

    >>> import mycelia as ms
    >>> ms.ops.multi_dot([ms.ops.ones((2, 30)), ms.ops.ones((30, 4)), ms.ops.ones((4, 5))]).shape
    (2, 5)
    """
    given = arrays[0] if len(arrays) == 1 and isinstance(arrays[0], (list, tuple)) else arrays
    if not given:
        raise ArgumentValueError("multi_dot", "arrays", got="none", takes="at least one matrix")
    tensors = same_dtype("multi_dot", *given, names=[f"arrays[{i}]" for i in range(len(given))])
    for i, t in enumerate(tensors):
        if t.ndim != 2 and not (t.ndim == 1 and i in (0, len(tensors) - 1)):
            raise ShapeError(
                "multi_dot", f"arrays[{i}]", got=f"shape {t.shape}", takes="a matrix (vectors at the ends only)"
            )
    n = len(tensors)
    dims = [1 if tensors[0].ndim == 1 else tensors[0].shape[0]]
    dims += [1 if t.ndim == 1 and i else t.shape[-1] for i, t in enumerate(tensors)]
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + dims[i] * dims[k + 1] * dims[j + 1], k) for k in range(i, j)
            )

    def product(i: int, j: int) -> Tensor:
        return tensors[i] if i == j else matmul(product(i, split[i][j]), product(split[i][j] + 1, j))

    return product(0, n - 1)


@operator()
def bidense(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """A bilinear layer: ``out[..., o] = input1 @ weight[o] @ input2 + bias[o]``.

    Args:
        input1: a tensor of shape (..., in1).
        input2: a tensor of shape (..., in2) with the same leading axes.
        weight: a tensor of shape (out, in1, in2).
        bias: a tensor of shape (out,), or None.

    Raises:
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> ms.ops.bidense(ms.ops.ones((5, 2)), ms.ops.ones((5, 3)), ms.ops.ones((4, 2, 3))).shape
    (5, 4)
    """
    names = ("input1", "input2", "weight", "bias")
    x1, x2, w, *rest = same_dtype("bidense", *[v for v in (input1, input2, weight, bias) if v is not None], names=names)
    if w.ndim != 3:
        raise ShapeError("bidense", "weight", got=f"shape {w.shape}", takes="shape (out, in1, in2)")
    for x, name, axis in ((x1, "input1", 1), (x2, "input2", 2)):
        if not x.shape or x.shape[-1] != w.shape[axis]:
            raise ShapeError(
                "bidense", name, got=f"shape {x.shape}", takes=f"{w.shape[axis]} features, as weight {w.shape} asks"
            )
    if x1.shape[:-1] != x2.shape[:-1]:
        raise ShapeError(
            "bidense", "input2", got=f"shape {x2.shape}", takes=f"the leading axes {x1.shape[:-1]} of input1"
        )
    made = einsum("...i,oij,...j->...o", x1, w, x2)
    if not rest:
        return made
    if rest[0].shape != w.shape[:1]:
        raise ShapeError("bidense", "bias", got=f"shape {rest[0].shape}", takes=f"shape {w.shape[:1]}")
    return made + rest[0]
