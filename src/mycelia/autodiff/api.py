"""``grad`` and ``value_and_grad``: gradients of functions and Cells, in both modes.

Eager, the function runs under the tape. Inside a graph it is staged into a graph of its own, which is
differentiated by transformation. Called in GRAPH_MODE from outside, the whole (forward, backward and
whatever surrounds it) is compiled as one graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from mycelia.autodiff.rules import ones_like, zeros_like
from mycelia.autodiff.tape import backward, leaf
from mycelia.autodiff.transform import condensed, linearize
from mycelia.core import tree
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, OutOfRangeError, shown_traceback
from mycelia.ir.builder import Builder, restoring
from mycelia.tensor import Parameter, Tensor, dispatch
from mycelia.tensor.dispatch import set_value, type_of, value_in_graph
from mycelia.tensor.mode import current_builder, is_staging, recording, running, staging
from mycelia.tensor.tensor import wrap


class Differentiated:
    """A function together with what its gradient is taken for; calling it gives values and gradients.

    Attributes:
        fn: the function or Cell.
        positions: argument positions, an int, a tuple of ints, or None.
        weights: parameters, a tuple, one Parameter, or None.
        has_aux: only the first output is differentiated, the others are returned as they are.
        with_value: return the outputs beside the gradients.
        sens: the last argument is the cotangent of the output.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        positions: int | tuple[int, ...] | None,
        weights: Any,
        *,
        has_aux: bool = False,
        with_value: bool = False,
        sens: bool = False,
        return_ids: bool = False,
        all_inputs: bool = False,
    ) -> None:
        self.fn, self.positions, self.weights = fn, positions, weights
        self.has_aux, self.with_value, self.sens = has_aux, with_value, sens
        self.return_ids, self.all_inputs = return_ids, all_inputs
        self.__name__ = f"{'value_and_grad' if with_value else 'grad'}_of_{getattr(fn, '__name__', type(fn).__name__)}"

    @property
    def compile_key(self) -> tuple[Any, ...]:
        """What tells compiled gradients of one function apart."""
        weights = tuple(id(w) for w in _weights(self.weights))
        shape = type(self.weights) if self.weights is None or isinstance(self.weights, Parameter) else tuple
        flags = (self.has_aux, self.with_value, self.sens, self.return_ids, self.all_inputs)
        return (self.positions, shape, weights, flags)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if dispatch.should_compile():
                return dispatch.call_compiled(self, args, kwargs)
            return self.evaluate(args, kwargs)
        except Exception as error:
            error.__traceback__ = shown_traceback(error)
            raise

    def evaluate(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run now: under the tape, or into the graph being built."""
        sens = None
        if self.sens:
            args, sens = args[:-1], args[-1]
        chosen = self._chosen(args)
        inputs = self._differentiated_leaves(args, chosen)
        weights = _weights(self.weights)
        run = _staged if is_staging() else _taped
        outputs, grads = run(self, args, kwargs, inputs, weights, sens)
        return self._arranged(outputs, grads, args, chosen, inputs, weights)

    def _chosen(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        if self.all_inputs:
            return tuple(i for i, a in enumerate(args) if _has_tensor(a))
        if self.positions is None:
            return ()
        chosen = self.positions if isinstance(self.positions, tuple) else (self.positions,)
        for p in chosen:
            if not -len(args) <= p < len(args):
                raise OutOfRangeError(
                    "grad", "grad_position", got=str(p), takes=f"a position of the {len(args)} positional arguments"
                )
        return tuple(p % len(args) for p in chosen)

    def _differentiated_leaves(self, args: tuple[Any, ...], chosen: tuple[int, ...]) -> dict[int, list[Tensor]]:
        found: dict[int, list[Tensor]] = {}
        for p in chosen:
            tensors = [x for x in tree.leaves(args[p]) if isinstance(x, Tensor)]
            if not tensors:
                raise ArgumentTypeError(
                    "grad", _named(self.fn, p), got=type(args[p]).__name__, takes="a Tensor to differentiate against",
                    hint="wrap the number in ms.Tensor, or leave its position out of grad_position",
                )  # fmt: skip
            for t in tensors:
                if not t.dtype.is_inexact:
                    raise ArgumentTypeError(
                        "grad", _named(self.fn, p),
                        got=f"a tensor of dtype {t.dtype}", takes="a floating or complex dtype",
                        hint="integers and bools have no gradient; use x.astype(ms.float32)",
                    )  # fmt: skip
            found[p] = tensors
        return found

    def _arranged(
        self,
        outputs: Any,
        grads: list[Tensor],
        args: tuple[Any, ...],
        chosen: tuple[int, ...],
        inputs: dict[int, list[Tensor]],
        weights: list[Parameter],
    ) -> Any:
        it = iter(grads)
        by_position = {p: [next(it) for _ in inputs[p]] for p in inputs}
        of_weights = [next(it) for _ in weights]
        of_inputs = []
        for p in chosen:
            leaves, treedef = tree.flatten(args[p])
            made = iter(by_position[p])
            of_inputs.append(tree.unflatten(treedef, [next(made) if isinstance(x, Tensor) else None for x in leaves]))
        if self.return_ids:
            of_inputs = [(p, g) for p, g in zip(chosen, of_inputs, strict=True)]
            pairs: list[Any] = [(w.name, g) for w, g in zip(weights, of_weights, strict=True)]
        else:
            pairs = list(of_weights)
        inputs_part: Any = tuple(of_inputs) if isinstance(self.positions, tuple) or self.all_inputs else (
            of_inputs[0] if of_inputs else None
        )  # fmt: skip
        weights_part: Any = pairs[0] if isinstance(self.weights, Parameter) else tuple(pairs)
        if self.weights is None:
            result = inputs_part
        elif self.positions is None and not self.all_inputs:
            result = weights_part
        else:
            result = (inputs_part, weights_part)
        if self.with_value:
            return outputs, result
        if self.has_aux:
            return result, tuple(outputs[1:])
        return result


def _named(fn: Any, position: int) -> str:
    """The name of a positional argument of a function or Cell, as messages say it."""
    try:
        names = list(inspect.signature(getattr(fn, "construct", fn)).parameters)
    except (TypeError, ValueError):
        names = []
    return names[position] if position < len(names) else str(position)


def _has_tensor(arg: Any) -> bool:
    return any(isinstance(x, Tensor) and x.dtype.is_inexact for x in tree.leaves(arg))


def _weights(weights: Any) -> list[Parameter]:
    if weights is None:
        return []
    if isinstance(weights, Parameter):
        return [weights]
    found = list(weights)
    for w in found:
        if not isinstance(w, Parameter):
            raise ArgumentTypeError("grad", "weights", got=f"an element of type {type(w).__name__}", takes="Parameters")
    return found


def _differentiable_outputs(spec: Differentiated, outputs: Any) -> list[Tensor]:
    """The output tensors that gradients flow from, checked."""
    if spec.has_aux:
        if not isinstance(outputs, tuple) or not outputs:
            raise ArgumentValueError(
                "grad", "has_aux", got=f"a function that returned {type(outputs).__name__}",
                takes="a function that returns (output, aux, ...)",
            )  # fmt: skip
        outputs = outputs[0]
    found = [x for x in tree.leaves(outputs) if isinstance(x, Tensor)]
    if not found:
        raise ArgumentTypeError(
            "grad",
            "fn",
            got=f"a function that returned {type(outputs).__name__}",
            takes="a function that returns a Tensor",
        )
    return found


def _cotangents(spec: Differentiated, outputs: list[Tensor], sens: Any) -> list[Tensor | None]:
    if sens is None:
        return [ones_like(o) if o.dtype.is_inexact else None for o in outputs]
    given = [x if isinstance(x, Tensor) else Tensor(x) for x in tree.leaves(sens)]
    if len(given) != len(outputs) or any(g.shape != o.shape for g, o in zip(given, outputs, strict=True)):
        raise ArgumentValueError(
            "grad",
            "sens",
            got=f"shapes {[g.shape for g in given]}",
            takes=f"the output shapes {[o.shape for o in outputs]}",
        )
    return [g.astype(o.dtype) if o.dtype.is_inexact else None for g, o in zip(given, outputs, strict=True)]


def _with_leaves(args: tuple[Any, ...], inputs: dict[int, list[Tensor]], made: Callable[[Tensor], Tensor]) -> Any:
    changed = list(args)
    for p in inputs:
        changed[p] = tree.map_leaves(lambda x: made(x) if isinstance(x, Tensor) else x, args[p])
    return changed


def _taped(
    spec: Differentiated,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    inputs: dict[int, list[Tensor]],
    weights: list[Parameter],
    sens: Any,
) -> tuple[Any, list[Tensor]]:
    with recording() as depth:
        leaves = []

        def alias(x: Tensor) -> Tensor:
            node = leaf(x)
            leaves.append(node)
            t = wrap(x._value)
            t._node = node
            return t

        changed = _with_leaves(args, inputs, alias)
        before = [(w, w._node, w._slot) for w in weights]
        try:
            for w in weights:
                node = leaf(w)
                leaves.append(node)
                w._node, w._slot = node, 0
            outputs = spec.fn(*changed, **kwargs)
            sources = _differentiable_outputs(spec, outputs)
        finally:
            for w, node_before, slot in before:
                w._node, w._slot = node_before, slot
        nested = depth > 1
        if nested:
            grads = backward(sources, _cotangents(spec, sources, sens), leaves)
        else:
            with running():
                grads = backward(sources, _cotangents(spec, sources, sens), leaves)
        wanted = [t for p in inputs for t in inputs[p]] + list(weights)
        filled = [zeros_like(t) if g is None else g for g, t in zip(grads, wanted, strict=True)]
        if not nested:
            outputs = tree.map_leaves(_detached, outputs)
            filled = [_detached(g) for g in filled]
    return outputs, filled


def _detached(x: Any) -> Any:
    if isinstance(x, Tensor) and x._node is not None and not isinstance(x, Parameter):
        return wrap(x._value)
    return x


def _staged(
    spec: Differentiated,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    inputs: dict[int, list[Tensor]],
    weights: list[Parameter],
    sens: Any,
) -> tuple[Any, list[Tensor]]:
    outer = current_builder()
    inner = Builder(getattr(spec.fn, "__name__", type(spec.fn).__name__), parent=outer)
    wanted: list[Tensor] = [t for p in inputs for t in inputs[p]] + list(weights)

    def alias(x: Tensor) -> Tensor:
        return wrap(inner.param(type_of(x)))

    changed = _with_leaves(args, inputs, alias)
    fresh = [p for p in inner.explicit]
    substitutes = [(w, w._value) for w in weights]
    with restoring(inner, _put_back):
        try:
            for w in weights:
                value = inner.param(type_of(w))
                fresh.append(value)
                w._value = value
            with staging(inner):
                outputs = dispatch.stageable(spec.fn)(*changed, **kwargs)
                leaves, treedef = tree.flatten(outputs)
                sources = _differentiable_outputs(spec, outputs)
                tensors = [x for x in leaves if isinstance(x, Tensor)]
                results = [value_in_graph(t) for t in tensors]
                source_values = [value_in_graph(t) for t in sources]
                written = [t for t, _ in inner.written.values()]
                written += [w for (w, _), v in zip(substitutes, fresh[len(fresh) - len(weights) :], strict=True)
                            if w._value is not v and id(w) not in inner.written]  # fmt: skip
                last = [value_in_graph(t) for t in written]
                graph = inner.finish([*source_values, *results, *last])
        finally:
            for w, value in substitutes:
                w._value = value
                inner.written.pop(id(w), None)
    operands = [*wanted, *[wrap(outer_value) for outer_value, _ in inner.lifted]]
    active = [True] * len(wanted) + [False] * len(inner.lifted)
    made, _, pullback = linearize(condensed(graph), operands, active)
    n_src, n_res = len(source_values), len(results)
    heads = made[:n_src]
    cts: list[Tensor | None] = [*_cotangents(spec, heads, sens), *[None] * (n_res + len(written))]
    grads = pullback(cts)
    for t, new in zip(written, made[n_src + n_res :], strict=True):
        set_value(t, new)
    replaced = iter(made[n_src : n_src + n_res])
    outputs = tree.unflatten(treedef, [next(replaced) if isinstance(x, Tensor) else x for x in leaves])
    return outputs, [zeros_like(t) if g is None else g for g, t in zip(grads[: len(wanted)], wanted, strict=True)]


def _put_back(tensor: Tensor, value: Any) -> None:
    tensor._value = value


def _positions(where: str, grad_position: Any) -> int | tuple[int, ...] | None:
    if grad_position is None:
        return None
    items = grad_position if isinstance(grad_position, (tuple, list)) else (grad_position,)
    for p in items:
        if not isinstance(p, int) or isinstance(p, bool):
            raise ArgumentTypeError(
                where, "grad_position", got=repr(grad_position), takes="an int, a tuple of ints or None"
            )
    return tuple(items) if isinstance(grad_position, (tuple, list)) else grad_position


def _check(where: str, fn: Any, positions: Any, weights: Any) -> None:
    if not callable(fn):
        raise ArgumentTypeError(where, "fn", got=type(fn).__name__, takes="a function or a Cell")
    if positions is None and weights is None:
        raise ArgumentValueError(
            where, "grad_position", got="None with weights=None", takes="a position, or else weights to differentiate"
        )
    _weights(weights)


def grad(
    fn: Callable[..., Any],
    grad_position: int | Sequence[int] | None = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[..., Any]:
    """The function that computes gradients of ``fn``.

    Args:
        fn: a function or Cell that returns a Tensor, or a nest of them (their sum is differentiated: the
            cotangent of every element is one).
        grad_position: the positional argument(s) to differentiate against: an int gives one gradient, a
            tuple a tuple of them, None none.
        weights: Parameters to differentiate against: a sequence gives a tuple, one Parameter one gradient.
        has_aux: ``fn`` returns ``(output, aux, ...)``; only ``output`` is differentiated and
            ``(gradients, (aux, ...))`` returned.
        return_ids: pair each gradient with its position or parameter name.

    Returns:
        A function of the same arguments. With both positions and weights it returns
        ``(input gradients, weight gradients)``.

    Raises:
        ArgumentValueError: neither positions nor weights are given.
        ArgumentTypeError: a chosen argument is not a floating or complex Tensor.

    >>> import mycelia as ms
    >>> print(ms.grad(lambda x: x * x * x)(ms.Tensor(2.0)))
    12.0
    >>> print(ms.grad(ms.grad(lambda x: x * x * x))(ms.Tensor(2.0)))
    12.0
    """
    positions = _positions("grad", grad_position)
    _check("grad", fn, positions, weights)
    return Differentiated(fn, positions, weights, has_aux=has_aux, return_ids=return_ids)


def value_and_grad(
    fn: Callable[..., Any],
    grad_position: int | Sequence[int] | None = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[..., Any]:
    """The function that computes the outputs of ``fn`` and its gradients; see :func:`grad`.

    Returns:
        A function that returns ``(outputs, gradients)``.

    >>> import mycelia as ms
    >>> value, gradient = ms.value_and_grad(lambda x: x * x)(ms.Tensor(3.0))
    >>> print(value, gradient)
    9.0 6.0
    """
    positions = _positions("value_and_grad", grad_position)
    _check("value_and_grad", fn, positions, weights)
    return Differentiated(fn, positions, weights, has_aux=has_aux, with_value=True, return_ids=return_ids)


class GradOperation:
    """The older form of :func:`grad`: ``GradOperation(get_all, get_by_list, sens_param)(fn, weights)(*inputs)``.

    Args:
        get_all: gradients of all inputs rather than of the first.
        get_by_list: gradients of the given parameters.
        sens_param: the last input is the cotangent of the output (else ones).

    >>> import mycelia as ms
    >>> print(ms.ops.GradOperation()(lambda x: x * x)(ms.Tensor(3.0)))
    6.0
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        """The gradient function of ``fn``; with ``get_by_list`` for ``weights`` (a Cell's own by default)."""
        if self.get_by_list and weights is None:
            weights = tuple(fn.trainable_params())  # type: ignore[attr-defined]
        positions = None if self.get_by_list and not self.get_all else 0
        return Differentiated(
            fn, positions, weights if self.get_by_list else None, sens=self.sens_param, all_inputs=self.get_all
        )
