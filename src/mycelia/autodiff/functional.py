"""``vjp``, ``jvp`` and ``linearize``: products of vectors with the Jacobian, without the Jacobian.

``vjp`` runs the function under the tape and keeps what was recorded (inside a graph: stages it, and keeps
what the rules need); the function it returns can be called any number of times. ``jvp`` stages the function
and pushes tangents through its graph (:mod:`mycelia.autodiff.forward`); called from outside a graph, it runs
compiled, and the compiled graph is kept with the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycelia.autodiff.capturing import Captured, StagedTransform, capture
from mycelia.autodiff.forward import Tangents, pushforward
from mycelia.autodiff.rules import zeros_like
from mycelia.autodiff.tape import backward, leaf
from mycelia.autodiff.transform import linearize as linearize_graph
from mycelia.core import tree
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    ShapeError,
    StateError,
    shown_traceback,
)
from mycelia.ir.types import TensorType
from mycelia.tensor import Parameter, Tensor, dispatch
from mycelia.tensor.dispatch import type_of
from mycelia.tensor.mode import is_staging, recording
from mycelia.tensor.tensor import wrap

Pull = Callable[[Sequence[Tensor | None]], list[Tensor | None]]


def check_function(where: str, fn: Any) -> None:
    """Refuse what cannot be called."""
    if not callable(fn):
        raise ArgumentTypeError(where, "fn", got=type(fn).__name__, takes="a function or a Cell")


def divided(where: str, out: Any, has_aux: bool) -> tuple[Any, Any]:
    """The differentiated output and the further ones: one as it is, several in a tuple."""
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) < 2:
        raise ArgumentValueError(
            where, "has_aux", got=f"a function that returned {type(out).__name__}",
            takes="a function that returns (output, aux, ...)",
        )  # fmt: skip
    return out[0], out[1] if len(out) == 2 else tuple(out[1:])


def inexact_leaves(nest: Any) -> list[bool]:
    """Which leaves of a nest are floating or complex tensors."""
    return [isinstance(x, Tensor) and x.dtype.is_inexact for x in tree.leaves(nest)]


def leaf_types(nest: Any) -> list[TensorType | None]:
    """The types of the floating and complex tensors among the leaves, None for the others."""
    return [type_of(x) if isinstance(x, Tensor) and x.dtype.is_inexact else None for x in tree.leaves(nest)]


def tensors_of(where: str, output: Any) -> list[Tensor]:
    """The output tensors; at least one."""
    found = [x for x in tree.leaves(output) if isinstance(x, Tensor)]
    if not found:
        raise ArgumentTypeError(
            where, "fn", got=f"a function that returned {type(output).__name__}",
            takes="a function that returns a Tensor or a nest of them",
        )  # fmt: skip
    return found


# reverse


class Cotangents:
    """The function that :func:`vjp` returns: from cotangents of the outputs to gradients of the inputs."""

    def __init__(
        self,
        pull: Pull,
        types: list[TensorType],
        inputs: tuple[Any, ...],
        weights: Any,
        parameters: list[Parameter],
    ) -> None:
        self._pull, self._types, self._inputs = pull, types, inputs
        self._weights, self._parameters = weights, parameters
        self.__name__ = "vjp_fn"

    def __call__(self, *cotangents: Any) -> Any:
        given = [x for x in tree.leaves(cotangents) if isinstance(x, Tensor)]
        _check_vectors("vjp", "cotangents", given, self._types, "the outputs")
        cts = [g if t.dtype.is_inexact else None for g, t in zip(given, self._types, strict=True)]
        grads = iter(self._pull(cts))
        leaves, treedef = tree.flatten(self._inputs)
        of_leaves: list[Any] = []
        for x, is_moving in zip(leaves, inexact_leaves(self._inputs), strict=True):
            found = next(grads) if is_moving else None
            of_leaves.append((zeros_like(x) if found is None else found) if isinstance(x, Tensor) else None)
        of_inputs = tree.unflatten(treedef, of_leaves)
        if self._weights is None:
            return of_inputs
        pairs = [zeros_like(w) if g is None else g for w, g in zip(self._parameters, grads, strict=True)]
        return of_inputs, (pairs[0] if isinstance(self._weights, Parameter) else tuple(pairs))


def _check_vectors(where: str, argument: str, given: list[Tensor], types: list[TensorType], what: str) -> None:
    """Refuse vectors that are not of the types of what they belong to; integers take anything of their shape."""
    if len(given) != len(types):
        raise ArgumentValueError(where, argument, got=f"{len(given)} tensors", takes=f"{len(types)}, like {what}")
    for i, (g, t) in enumerate(zip(given, types, strict=True)):
        if g.shape != t.shape:
            raise ShapeError(where, argument, got=f"shape {g.shape} at {i}", takes=f"the shapes of {what}, {t.shape}")
        if t.dtype.is_inexact and g.dtype is not t.dtype:
            raise DTypeError(
                where, argument, got=f"dtype {g.dtype} at {i}", takes=f"the dtypes of {what}, {t.dtype}",
                hint=f"convert it with .astype(ms.{t.dtype.name})",
            )  # fmt: skip


def vjp(fn: Callable[..., Any], *inputs: Any, weights: Any = None, has_aux: bool = False) -> tuple[Any, ...]:
    """The outputs of ``fn`` and the function from their cotangents to gradients of the inputs.

    Args:
        fn: a function or Cell that returns a Tensor or a nest of them.
        inputs: its positional arguments, tensors or nests.
        weights: Parameters to differentiate against as well: a sequence or one Parameter.
        has_aux: ``fn`` returns ``(output, aux, ...)``; only ``output`` is differentiated.

    Returns:
        ``(output, vjp_fn)``, with ``has_aux`` ``(output, vjp_fn, aux)``. ``vjp_fn`` takes tensors of the types of
        the outputs and returns a tuple with a gradient for each input, with ``weights`` the pair of that and
        the gradients of the weights. It may be called more than once. Inputs that are not floating or complex
        get zeros.

    Raises:
        ArgumentTypeError: ``fn`` cannot be called or returns no tensor; ``weights`` are not Parameters.
        ShapeError, DTypeError: (by ``vjp_fn``) a cotangent is not of the type of its output.

    >>> import mycelia as ms
    >>> out, vjp_fn = ms.vjp(lambda x, y: x * x * y, ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0]))
    >>> print(out)
    [ 3. 16.]
    >>> of_x, of_y = vjp_fn(ms.Tensor([1.0, 1.0]))
    >>> print(of_x, of_y)
    [ 6. 16.] [1. 4.]
    """
    check_function("vjp", fn)
    parameters = [weights] if isinstance(weights, Parameter) else list(weights or ())
    for w in parameters:
        if not isinstance(w, Parameter):
            raise ArgumentTypeError("vjp", "weights", got=f"an element of type {type(w).__name__}", takes="Parameters")
    try:
        output, aux, types, pull = (_staged if is_staging() else _taped)(fn, inputs, parameters, has_aux)
    except Exception as error:
        error.__traceback__ = shown_traceback(error)
        raise
    vjp_fn = Cotangents(pull, types, inputs, weights, parameters)
    return (output, vjp_fn, aux) if has_aux else (output, vjp_fn)


def _taped(
    fn: Any, inputs: tuple[Any, ...], parameters: list[Parameter], has_aux: bool
) -> tuple[Any, Any, list[TensorType], Pull]:
    compiled = dispatch.should_compile()
    with recording() as depth:
        nodes = []

        def alias(x: Any) -> Any:
            if not isinstance(x, Tensor) or not x.dtype.is_inexact:
                return x
            node = leaf(x)
            nodes.append(node)
            made = wrap(x._value)
            made._node = node
            return made

        changed = tree.map_leaves(alias, inputs)
        before = [(w, w._node, w._slot) for w in parameters]
        try:
            for w in parameters:
                node = leaf(w)
                nodes.append(node)
                w._node, w._slot = node, 0
            out = dispatch.call_compiled(fn, changed, {}) if compiled else fn(*changed)
        finally:
            for w, node_before, slot in before:
                w._node, w._slot = node_before, slot
    output, aux = divided("vjp", out, has_aux)
    sources = [x._snapshot() for x in tensors_of("vjp", output)]

    def pull(cts: Sequence[Tensor | None]) -> list[Tensor | None]:
        return backward(sources, cts, nodes)

    if depth == 1:
        output, aux = tree.map_leaves(_detached, (output, aux))
    return output, aux, [type_of(s) for s in sources], pull


def _detached(x: Any) -> Any:
    if isinstance(x, Tensor) and x._node is not None and not isinstance(x, Parameter):
        return wrap(x._value)
    return x


def _staged(
    fn: Any, inputs: tuple[Any, ...], parameters: list[Parameter], has_aux: bool
) -> tuple[Any, Any, list[TensorType], Pull]:
    found, wanted = captured_inputs(fn, inputs, {}, parameters)
    active = [True] * len(wanted) + [False] * len(found.operands)
    made, _, pullback = linearize_graph(found.graph, [*wanted, *found.operands], active)
    found.store(made)
    output, aux = divided("vjp", found.packed(made), has_aux)
    sources = tensors_of("vjp", output)
    idle: Tangents = [None] * (len(made) - len(sources))

    def pull(cts: Sequence[Tensor | None]) -> list[Tensor | None]:
        return pullback([*cts, *idle])[: len(wanted)]

    return output, aux, [type_of(s) for s in sources], pull


def captured_inputs(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], parameters: Sequence[Parameter] = ()
) -> tuple[Captured, list[Tensor]]:
    """A function captured with its floating and complex arguments as parameters, and those arguments."""
    types = leaf_types(args)
    found = capture(fn, args, kwargs, types, [(w, type_of(w)) for w in parameters])
    return found, [x for x, t in zip(tree.leaves(args), types, strict=True) if t is not None] + list(parameters)


# forward


class Forward(StagedTransform):
    """A function together with its tangent; called with inputs and tangents, it gives both results.

    Attributes:
        fn: the function or Cell.
        has_aux: only the first output is differentiated.
    """

    def __init__(self, fn: Any, has_aux: bool) -> None:
        self.fn, self.has_aux = fn, has_aux
        self.__name__ = f"jvp_of_{getattr(fn, '__name__', type(fn).__name__)}"

    @property
    def compile_key(self) -> tuple[Any, ...]:
        """What tells compiled products of one function apart."""
        return ("jvp", self.has_aux)

    def evaluate(self, inputs: tuple[Any, ...], tangents: list[Tensor]) -> tuple[Any, ...]:
        """Stage the function and its tangent into the graph being built."""
        found, given = captured_inputs(self.fn, inputs, {})
        idle: Tangents = [None] * len(found.operands)
        made, moved = pushforward(found.graph, [*given, *found.operands], [*tangents, *idle])
        found.store(made)
        output, aux = divided("jvp", found.packed(made), self.has_aux)
        tensors_of("jvp", output)
        filled = found.packed([zeros_like(x) if t is None else t for x, t in zip(made, moved, strict=True)])
        tangent, _ = divided("jvp", filled, self.has_aux)
        return (output, tangent, aux) if self.has_aux else (output, tangent)


def _arguments(where: str, inputs: Any, v: Any) -> tuple[tuple[Any, ...], list[Tensor]]:
    """The positional arguments, and the tangents of the floating and complex tensors among them."""
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    given = tuple(v) if isinstance(v, (tuple, list)) else (v,)
    tensors = [x for x in tree.leaves(args) if isinstance(x, Tensor)]
    if not tensors:
        raise ArgumentTypeError(
            where, "inputs", got=type(inputs).__name__, takes="a Tensor, or a tuple or list of them"
        )
    vectors = tree.leaves(given)
    for x in vectors:
        if not isinstance(x, Tensor):
            raise ArgumentTypeError(where, "v", got=type(x).__name__, takes="a Tensor, or a tuple or list of them")
    _check_vectors(where, "v", vectors, [type_of(x) for x in tensors], "the inputs")
    return args, [t for x, t in zip(tensors, vectors, strict=True) if x.dtype.is_inexact]


def jvp(fn: Callable[..., Any], inputs: Any, v: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The outputs of ``fn`` and their change along ``v``: the Jacobian times ``v``.

    Args:
        fn: a function or Cell that returns a Tensor or a nest of them.
        inputs: its argument, or a tuple or list of its positional arguments.
        v: the direction: tensors of the types of the inputs, in the same arrangement.
        has_aux: ``fn`` returns ``(output, aux, ...)``; only ``output`` is differentiated.

    Returns:
        ``(output, tangent)``, with ``has_aux`` ``(output, tangent, aux)``. The tangent of an integer or bool
        output is zero.

    Raises:
        ArgumentTypeError: ``fn`` cannot be called or returns no tensor; inputs or ``v`` are not tensors.
        ShapeError, DTypeError: ``v`` is not of the types of the inputs.
        UnsupportedError: an operator on the way has no derivative.

    >>> import mycelia as ms
    >>> x, v = ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 0.0])
    >>> out, tangent = ms.jvp(lambda x: x * x * x, x, v)
    >>> print(out, tangent)
    [1. 8.] [3. 0.]
    """
    check_function("jvp", fn)
    made: tuple[Any, ...] = Forward(fn, has_aux)(*_arguments("jvp", inputs, v))
    return made


def linearize(fn: Callable[..., Any], inputs: Any) -> tuple[Any, Callable[..., Any]]:
    """The outputs of ``fn`` and the linear function from a direction to their change along it.

    Args:
        fn: a function or Cell that returns a Tensor or a nest of them.
        inputs: its argument, or a tuple or list of its positional arguments.

    Returns:
        ``(output, jvp_fn)``; ``jvp_fn`` takes what :func:`jvp` takes as ``v`` and is compiled at its first call.

    Raises:
        ArgumentTypeError: ``fn`` cannot be called, or the inputs are not tensors.

    >>> import mycelia as ms
    >>> out, jvp_fn = ms.ops.linearize(lambda x: x * x, ms.Tensor([1.0, 2.0]))
    >>> print(out, jvp_fn(ms.Tensor([1.0, 1.0])), jvp_fn(ms.Tensor([0.0, 1.0])))
    [1. 4.] [2. 4.] [0. 4.]
    """
    check_function("linearize", fn)
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if not any(isinstance(x, Tensor) for x in tree.leaves(args)):
        raise ArgumentTypeError(
            "linearize", "inputs", got=type(inputs).__name__, takes="a Tensor, or a tuple or list of them"
        )
    out = dispatch.stageable(fn)(*args) if is_staging() else fn(*args)

    def jvp_fn(v: Any) -> Any:
        return Forward(fn, False)(*_arguments("linearize", args, v))[1]

    return out, jvp_fn


def get_grad(gradients: Any, identifier: Any) -> Tensor:
    """The gradient of one input or Parameter among those of ``grad`` with ``return_ids=True``.

    Args:
        gradients: what ``grad(..., return_ids=True)(...)`` returned.
        identifier: the position of the input, or the Parameter.

    Raises:
        ArgumentTypeError: ``gradients`` is not a tuple, or ``identifier`` is neither an int nor a Parameter.
        StateError: there is no gradient for it.

    >>> import mycelia as ms
    >>> x, y = ms.Tensor(2.0), ms.Tensor(3.0)
    >>> found = ms.grad(lambda x, y: x * y, (0, 1), return_ids=True)(x, y)
    >>> print(ms.get_grad(found, 1))
    2.0
    """
    if not isinstance(gradients, tuple):
        raise ArgumentTypeError(
            "get_grad", "gradients", got=type(gradients).__name__, takes="the result of grad with return_ids=True"
        )
    if isinstance(identifier, bool) or not isinstance(identifier, (int, Parameter)):
        raise ArgumentTypeError(
            "get_grad", "identifier", got=type(identifier).__name__, takes="a position or a Parameter"
        )
    name: Any = identifier.name if isinstance(identifier, Parameter) else identifier
    found: Tensor | None = _find(gradients, name)
    if found is None:
        what = f"parameter '{name}'" if isinstance(identifier, Parameter) else f"position {name}"
        raise StateError("get_grad", "identifier", got=what, takes="one that the gradients were taken for")
    return found


def _find(gradients: Any, name: Any) -> Any:
    if not isinstance(gradients, tuple):
        return None
    if len(gradients) == 2 and isinstance(gradients[0], (int, str)):
        return gradients[1] if gradients[0] == name and type(gradients[0]) is type(name) else None
    return next((g for part in gradients if (g := _find(part, name)) is not None), None)
