"""Whole Jacobians, and derivatives of higher order.

``jacrev`` maps the pullback over a basis of cotangents, ``jacfwd`` the pushforward over a basis of tangents
(:mod:`mycelia.autodiff.batching`); what does not depend on the basis is computed once. ``hessian`` is
``jacfwd`` of ``jacrev``. ``jet`` differentiates along a curve, whose parameter is a single number, by pushing
a tangent through the graph of the order before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

from mycelia.autodiff.batching import stage_vmap
from mycelia.autodiff.capturing import Captured, StagedTransform
from mycelia.autodiff.forward import pushforward
from mycelia.autodiff.functional import Forward, captured_inputs, check_function, divided, tensors_of
from mycelia.autodiff.rules import ones_like
from mycelia.autodiff.transform import linearize, stage_inline
from mycelia.core import dtypes as dt, tree
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    OutOfRangeError,
    ShapeError,
)
from mycelia.ir.builder import Builder
from mycelia.ir.rewriter import graph_has_effects
from mycelia.ops.complex_numbers import complex as complex_of
from mycelia.ops.creation import eye
from mycelia.ops.declare import conj
from mycelia.ops.joining import stack
from mycelia.ops.operands import cast
from mycelia.ops.shape import broadcast_to, moveaxis, reshaped
from mycelia.tensor import Tensor, dispatch
from mycelia.tensor.dispatch import scalar, type_of, value_in_graph
from mycelia.tensor.mode import current_builder, staging
from mycelia.tensor.tensor import wrap


class Jacobian(StagedTransform):
    """A function together with the inputs its Jacobian is taken for.

    Attributes:
        fn: the function or Cell.
        positions: an int or a tuple of ints.
        has_aux: only the first output is differentiated.
        forward: whether the columns are computed (``jacfwd``) rather than the rows (``jacrev``).
    """

    def __init__(self, fn: Any, positions: int | tuple[int, ...], has_aux: bool, forward: bool) -> None:
        self.fn, self.positions, self.has_aux, self.forward = fn, positions, has_aux, forward
        self.where = "jacfwd" if forward else "jacrev"
        self.__name__ = f"{self.where}_of_{getattr(fn, '__name__', type(fn).__name__)}"

    @property
    def compile_key(self) -> tuple[Any, ...]:
        """What tells compiled Jacobians of one function apart."""
        return (self.where, self.positions, self.has_aux)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Stage the Jacobian into the graph being built."""
        chosen = self._chosen(args)
        places = _places(self.where, args, chosen)
        found, given = captured_inputs(self.fn, args, kwargs)
        operands = [*given, *found.operands]
        wanted = [k for p in chosen for k in places[p]]
        if self.forward:
            outs, table = _columns(found, operands, wanted, self._differentiated(found))
        else:
            outs, table = _rows(found, operands, wanted, self._differentiated(found))
        found.store(outs)
        output, aux = divided(self.where, found.packed(outs), self.has_aux)
        blocks = iter(table)
        made = tree.map_leaves(
            lambda x: self._arranged(next(blocks), args, chosen) if isinstance(x, Tensor) else x, output
        )
        return (made, aux) if self.has_aux else made

    def _chosen(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        chosen = self.positions if isinstance(self.positions, tuple) else (self.positions,)
        for p in chosen:
            if not -len(args) <= p < len(args):
                raise OutOfRangeError(
                    self.where, "grad_position", got=str(p), takes=f"a position of the {len(args)} positional arguments"
                )
        return tuple([p % len(args) for p in chosen])

    def _differentiated(self, found: Captured) -> list[int]:
        """The indices of the outputs that are differentiated."""
        output, _ = divided(self.where, found.packed(list(range(found.n_out))), self.has_aux)
        kept = found.packed([wrap(v) for v in found.graph.outputs[: found.n_out]])
        tensors_of(self.where, divided(self.where, kept, self.has_aux)[0])
        is_tensor = [isinstance(x, Tensor) for x in tree.leaves(divided(self.where, kept, self.has_aux)[0])]
        return [i for i, ok in zip(tree.leaves(output), is_tensor, strict=True) if ok]

    def _arranged(self, blocks: list[Tensor], args: tuple[Any, ...], chosen: tuple[int, ...]) -> Any:
        """The derivatives of one output: for each position the nest of its argument."""
        given = iter(blocks)
        made = []
        for p in chosen:
            leaves, treedef = tree.flatten(args[p])
            made.append(tree.unflatten(treedef, [next(given) if isinstance(x, Tensor) else None for x in leaves]))
        return made[0] if len(made) == 1 else tuple(made)


def _places(where: str, args: tuple[Any, ...], chosen: tuple[int, ...]) -> dict[int, list[int]]:
    """For each chosen position, where its tensors stand among all floating and complex tensors."""
    places: dict[int, list[int]] = {}
    count = 0
    for p, arg in enumerate(args):
        tensors = [x for x in tree.leaves(arg) if isinstance(x, Tensor)]
        inexact = [x.dtype.is_inexact for x in tensors]
        if p in chosen and (not tensors or not all(inexact)):
            got = type(arg).__name__ if not tensors else f"a tensor of dtype {tensors[inexact.index(False)].dtype}"
            raise ArgumentTypeError(
                where, f"argument {p}", got=got, takes="floating or complex tensors to differentiate against",
                hint="leave its position out of grad_position, or convert it with .astype(ms.float32)",
            )  # fmt: skip
        places[p] = [*range(count, count + sum(inexact))]
        count += sum(inexact)
    return places


def _basis(x: Tensor, before: int = 0, size: int | None = None) -> Tensor:
    """The unit tensors of a type, one after another along axis 0; of ``size`` rows those from ``before`` on."""
    unit = (
        eye(x.size, x.size, x.dtype)
        if size in (None, x.size)
        else eye(size, size, x.dtype)[:, before : before + x.size]
    )
    return reshaped(unit, (unit.shape[0], *x.shape))


def _columns(
    found: Captured, operands: list[Tensor], wanted: list[int], outputs: list[int]
) -> tuple[list[Tensor], list[list[Tensor]]]:
    """The outputs and, for each that is differentiated, its derivatives: a pushforward for each input.

    What has effects must run once: then one pushforward serves all inputs, and gives the outputs as well.
    """
    inputs = list(dict.fromkeys(wanted))
    once = sum([operands[k].size for k in inputs]) > 0 and (len(inputs) == 1 or graph_has_effects(found.graph))
    outs = [] if once else stage_inline(found.graph, operands)
    columns: dict[int, list[Tensor | None]] = {}
    for group in [inputs] if once else [[k] for k in inputs]:
        size = sum([operands[k].size for k in group])
        inner = Builder(found.graph.name, parent=current_builder())
        tangents: list[Tensor | None] = [None] * len(operands)
        bases, before = [], 0
        for k in group:
            tangents[k] = wrap(inner.param(type_of(operands[k])))
            bases.append(_basis(operands[k], before, size))
            before += operands[k].size
        with staging(inner):
            again, moved = pushforward(
                found.graph, operands, tangents, [i in outputs for i in range(len(found.graph.outputs))]
            )
        mapped = _mapped(inner, [*[moved[i] for i in outputs], *(again if once else [])], bases, size)
        if once:
            outs = [x for x, _ in mapped[len(outputs) :] if x is not None]
        before = 0
        for k in group:
            span = slice(before, before + operands[k].size)
            before = span.stop
            columns[k] = [None if x is None else _repeated(x, b, size)[span] for x, b in mapped[: len(outputs)]]
    table = []
    for n, i in enumerate(outputs):
        row = []
        for k in wanted:
            column, shape = columns[k][n], (*outs[i].shape, *operands[k].shape)
            row.append(zeros_of(outs[i], shape) if column is None else reshaped(moveaxis(column, 0, -1), shape))
        table.append(row)
    return outs, table


def _rows(
    found: Captured, operands: list[Tensor], wanted: list[int], outputs: list[int]
) -> tuple[list[Tensor], list[list[Tensor]]]:
    active = [k in wanted for k in range(len(operands))]
    outs, _, pullback = linearize(found.graph, operands, active)

    def pulled(i: int, factor: complex) -> list[Tensor | None]:
        inner = Builder(found.graph.name, parent=current_builder())
        cts: list[Tensor | None] = [None] * len(outs)
        unit = wrap(inner.param(type_of(outs[i])))
        with staging(inner):
            cts[i] = unit if factor == 1 else unit * scalar(factor, outs[i].dtype)
            made = pullback(cts)
        size = outs[i].size
        mapped = _mapped(inner, [made[k] for k in wanted], [_basis(outs[i])], size)
        return [None if x is None else _repeated(x, b, size) for x, b in mapped]

    table = []
    for i in outputs:
        out = outs[i]
        grads = pulled(i, 1) if out.dtype.is_inexact else [None] * len(wanted)
        # a complex row of a real input: its gradient is the real part, that of the cotangent i the imaginary one
        mixed = out.dtype.is_complex and not all([operands[k].dtype.is_complex for k in wanted])
        imaginary = pulled(i, 1j) if mixed else grads
        row = []
        for k, grad, other in zip(wanted, grads, imaginary, strict=True):
            shape = (*out.shape, *operands[k].shape)
            if grad is None or other is None:
                row.append(zeros_of(operands[k], shape))
            elif out.dtype.is_complex and not operands[k].dtype.is_complex:
                row.append(reshaped(complex_of(grad, other), shape))
            else:
                row.append(conj(reshaped(grad, shape)))
        table.append(row)
    return outs, table


def _mapped(
    inner: Builder, values: Sequence[Tensor | None], bases: list[Tensor], size: int
) -> list[tuple[Tensor | None, bool]]:
    """What was staged in ``inner`` on its parameters, mapped over unit tensors; and whether it depends on them."""
    with staging(inner):
        graph = inner.finish([value_in_graph(v) for v in values if v is not None])
    lifted = [wrap(o) for o, _ in inner.lifted]
    outs, batched = stage_vmap(graph, [*bases, *lifted], [True] * len(bases) + [False] * len(lifted), size)
    made = iter(zip(outs, batched, strict=True))
    return [(None, False) if v is None else next(made) for v in values]


def _repeated(x: Tensor, batched: bool, size: int) -> Tensor:
    return x if batched else broadcast_to(x, (size, *x.shape))


def zeros_of(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros of a dtype and another shape."""
    return broadcast_to(scalar(0, x.dtype), shape)


def _positions(where: str, grad_position: Any) -> int | tuple[int, ...]:
    items = grad_position if isinstance(grad_position, (tuple, list)) else (grad_position,)
    for p in items:
        if not isinstance(p, int) or isinstance(p, bool):
            raise ArgumentTypeError(where, "grad_position", got=repr(grad_position), takes="an int or a tuple of ints")
    if not items:
        raise ArgumentValueError(where, "grad_position", got="no position", takes="at least one")
    return tuple(items) if isinstance(grad_position, (tuple, list)) else grad_position


def _checked(where: str, fn: Any, grad_position: Any, has_aux: Any) -> int | tuple[int, ...]:
    check_function(where, fn)
    if not isinstance(has_aux, bool):
        raise ArgumentTypeError(where, "has_aux", got=type(has_aux).__name__, takes="a bool")
    return _positions(where, grad_position)


def jacrev(fn: Callable[..., Any], grad_position: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that computes the Jacobian of ``fn``, row by row (reverse mode).

    It costs a backward pass for each element of the output: the choice when there are fewer outputs than inputs.
    A function of complex inputs must be holomorphic, as its derivative is not one number otherwise.

    Args:
        fn: a function or Cell that returns a Tensor or a nest of them.
        grad_position: the positional argument(s) to differentiate against.
        has_aux: ``fn`` returns ``(output, aux, ...)``; only ``output`` is differentiated.

    Returns:
        A function of the same arguments that returns the derivatives, of shape ``out.shape + in.shape``: for
        several positions a tuple of them, for a nest of outputs a nest of these; with ``has_aux`` the pair of
        that and the further outputs.

    Raises:
        ArgumentTypeError: ``fn`` cannot be called or returns no tensor; a position or ``has_aux`` is of another
            type; an argument to differentiate against is not a floating or complex tensor.
        OutOfRangeError: there is no such argument.

    >>> import mycelia as ms
    >>> print(ms.jacrev(lambda x: x * x)(ms.Tensor([1.0, 2.0])))
    [[2. 0.]
     [0. 4.]]
    """
    return Jacobian(fn, _checked("jacrev", fn, grad_position, has_aux), has_aux, forward=False)


def jacfwd(fn: Callable[..., Any], grad_position: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that computes the Jacobian of ``fn``, column by column (forward mode).

    It costs a forward pass for each element of the inputs: the choice when there are fewer inputs than outputs.
    A function of complex inputs must be holomorphic, as its derivative is not one number otherwise.

    Args:
        fn: a function or Cell that returns a Tensor or a nest of them.
        grad_position: the positional argument(s) to differentiate against.
        has_aux: ``fn`` returns ``(output, aux, ...)``; only ``output`` is differentiated.

    Returns:
        A function of the same arguments that returns what :func:`jacrev` gives.

    Raises:
        ArgumentTypeError: ``fn`` cannot be called or returns no tensor; a position or ``has_aux`` is of another
            type; an argument to differentiate against is not a floating or complex tensor.
        OutOfRangeError: there is no such argument.
        UnsupportedError: an operator on the way has no derivative.

    >>> import mycelia as ms
    >>> print(ms.jacfwd(lambda x: x * x)(ms.Tensor([1.0, 2.0])))
    [[2. 0.]
     [0. 4.]]
    """
    return Jacobian(fn, _checked("jacfwd", fn, grad_position, has_aux), has_aux, forward=True)


def hessian(fn: Callable[..., Any], grad_position: int | Sequence[int] = 0) -> Callable[..., Any]:
    """The function that computes second derivatives of ``fn``: ``jacfwd`` of ``jacrev``.

    Args:
        fn: a function or Cell that returns a Tensor, most often of one element.
        grad_position: the positional argument(s) to differentiate against.

    Returns:
        A function of the same arguments that returns a tensor of shape ``out.shape + in.shape + in.shape``, for
        several positions a tuple of tuples of them.

    Raises:
        ArgumentTypeError, OutOfRangeError: as for :func:`jacrev`.

    >>> import mycelia as ms
    >>> print(ms.hessian(lambda x: (x * x * x).sum())(ms.Tensor([1.0, 2.0])))
    [[ 6.  0.]
     [ 0. 12.]]
    """
    positions = _checked("hessian", fn, grad_position, False)
    return Jacobian(Jacobian(fn, positions, False, forward=False), positions, False, forward=True)


# derivatives along a curve


class Taylor(StagedTransform):
    """A function along a curve through its inputs; called, it gives outputs and derivatives of orders 1 to n.

    Attributes:
        fn: the function or Cell.
        order: the number of derivatives.
    """

    def __init__(self, fn: Any, order: int) -> None:
        self.fn, self.order = fn, order
        self.__name__ = f"jet_of_{getattr(fn, '__name__', type(fn).__name__)}"

    @property
    def compile_key(self) -> tuple[Any, ...]:
        """What tells compiled series of one function apart."""
        return ("jet", self.order)

    def evaluate(self, primals: list[Tensor], series: list[list[Tensor]]) -> tuple[Any, list[Any]]:
        """Stage the outputs and their derivatives into the graph being built."""
        kind = next((p.dtype for p in primals if p.dtype.is_floating), dt.float32)

        def along(t: Tensor) -> Any:
            points = []
            for p, terms in zip(primals, series, strict=True):
                shift = None
                for k in reversed(range(len(terms))):  # Horner's scheme
                    term = terms[k] * scalar(1 / factorial(k + 1), p.dtype)
                    shift = term if shift is None else term + shift * cast(t, p.dtype)
                points.append(p if shift is None else p + shift * cast(t, p.dtype))
            return dispatch.stageable(self.fn)(*points)

        zero, one = scalar(0, kind), scalar(1, kind)
        curve: Any = along
        for _ in range(self.order):
            curve = _with_tangent(curve, one)
        found = curve(zero)
        derivatives = []
        for _ in range(self.order):
            derivatives.append(found[1])
            found = found[0]
        # found[1] at depth k is the derivative of a nest of lower ones; its own last part is of order k
        tops = [_last(d, self.order - 1 - i) for i, d in enumerate(derivatives)]
        return found, tops[::-1]


def _with_tangent(fn: Any, one: Tensor) -> Callable[[Tensor], Any]:
    return lambda t: Forward(fn, False)((t,), [one])


def _last(nest: Any, depth: int) -> Any:
    for _ in range(depth):
        nest = nest[1]
    return nest


def _primals(where: str, primals: Any) -> list[Tensor]:
    """The inputs; integers become float32."""
    given = list(primals) if isinstance(primals, (tuple, list)) else [primals]
    for p in given:
        if not isinstance(p, Tensor):
            raise ArgumentTypeError(where, "primals", got=type(p).__name__, takes="a Tensor or a tuple of them")
    return [p if p.dtype.is_inexact else p.astype(dt.float32) for p in given]


def _listed(nest: Any) -> Any:
    return list(nest) if isinstance(nest, tuple) else nest


def jet(fn: Callable[..., Any], primals: Any, series: Any) -> tuple[Any, Any]:
    """Derivatives of ``fn`` along a curve, of order 1 to n.

    Args:
        fn: a function or Cell that returns a Tensor or a tuple of them.
        primals: its argument, or a tuple of its positional arguments; integers become float32.
        series: for each a tensor of shape ``(n, *shape)``: the derivatives of orders 1 to n of the argument with
            respect to the curve's parameter.

    Returns:
        ``(output, derivatives)``; the derivatives of an output have the shape ``(n, *out.shape)``. Several
        outputs come in lists.

    Raises:
        ArgumentTypeError: ``fn`` cannot be called; primals or series are not tensors.
        ShapeError: a series does not fit its argument, or they differ in length.

    >>> import mycelia as ms
    >>> series = ms.Tensor([1.0, 0.0, 0.0])
    >>> out, derivatives = ms.ops.jet(lambda x: x * x * x, ms.Tensor(2.0), series)
    >>> print(out, derivatives)
    8.0 [12. 12.  6.]
    """
    check_function("jet", fn)
    points = _primals("jet", primals)
    terms = list(series) if isinstance(series, (tuple, list)) else [series]
    if len(terms) != len(points):
        raise ArgumentValueError("jet", "series", got=f"{len(terms)} tensors", takes=f"{len(points)}, like primals")
    for p, s in zip(points, terms, strict=True):
        if not isinstance(s, Tensor):
            raise ArgumentTypeError("jet", "series", got=type(s).__name__, takes="a Tensor or a tuple of them")
        if s.ndim == 0 or s.shape[0] == 0 or s.shape[1:] != p.shape or s.shape[0] != terms[0].shape[0]:
            raise ShapeError(
                "jet", "series", got=f"shape {s.shape}", takes=f"(n, *{p.shape}) with n at least 1, the same for all"
            )
    order = terms[0].shape[0]
    rows = [[s[k].astype(p.dtype) for k in range(order)] for p, s in zip(points, terms, strict=True)]
    out, found = Taylor(fn, order)(points, rows)
    if isinstance(out, (tuple, list)):
        return list(out), [stack([f[i] for f in found]) for i in range(len(out))]
    return out, stack(found)


def derivative(fn: Callable[..., Any], primals: Any, order: int) -> tuple[Any, Any]:
    """The derivative of one order of ``fn`` in all its inputs at once.

    Args:
        fn: a function or Cell that returns a Tensor or a tuple of them.
        primals: its argument, or a tuple of its positional arguments; integers become float32.
        order: the order, at least 1.

    Returns:
        ``(output, derivative)``: the ``order``-th derivative of ``fn(primals + t)`` at t = 0. Several outputs
        come in lists.

    Raises:
        ArgumentTypeError: ``fn`` cannot be called; primals are not tensors; ``order`` is not an int.
        ArgumentValueError: ``order`` is below 1.

    >>> import mycelia as ms
    >>> out, second = ms.ops.derivative(lambda x: x * x * x, ms.Tensor(2.0), 2)
    >>> print(out, second)
    8.0 12.0
    """
    check_function("derivative", fn)
    points = _primals("derivative", primals)
    if not isinstance(order, int) or isinstance(order, bool):
        raise ArgumentTypeError("derivative", "order", got=type(order).__name__, takes="an int")
    if order < 1:
        raise ArgumentValueError("derivative", "order", got=str(order), takes="at least 1")

    out, found = Taylor(fn, order)(points, [[ones_like(p)] for p in points])
    return _listed(out), _listed(found[-1])
