"""The one door: every operator call runs, is recorded, or is staged here.

Eager: each operator is one ``jax.jit`` per set of attributes. Its trace first asks ``infer``, so bad
input is refused in our words, and checks that the lowering gives what ``infer`` promised; later calls
with the same types go straight to the executable. Staged: the operator becomes a node of the builder's
graph, concrete tensors become captured inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.core import cluster, context, dtypes
from mycelia.core.dtypes import DType
from mycelia.core.errors import MyceliaError, StateError
from mycelia.core.promotion import cached
from mycelia.ir.evaluate import computed
from mycelia.ir.graph import Value
from mycelia.ir.primitive import COLLECTIVE, Primitive
from mycelia.ir.types import TensorType
from mycelia.tensor.mode import PLAIN, RECORD, STAGE, current_builder, state
from mycelia.tensor.scalar import Scalar, plain
from mycelia.tensor.symbol import Unfilled
from mycelia.tensor.tape import TapeNode
from mycelia.tensor.tensor import Tensor, wrap
from mycelia.tensor.valueless import left_behind

_BY_NP = dtypes._BY_NP
#: NumPy's names of the dtypes that are differentiated.
_INEXACT = frozenset([np_dtype for np_dtype, dtype in _BY_NP.items() if dtype.is_inexact])

_new = object.__new__


def type_of(tensor: Tensor) -> TensorType:
    """The graph type of a tensor."""
    value = tensor._value
    if type(value) is Value:
        return value.type
    return TensorType(_BY_NP[value.dtype], value.shape)


def value_in_graph(tensor: Tensor) -> Value:
    """The value that stands for ``tensor`` in the graph being built; a concrete tensor is captured."""
    builder = current_builder()
    value = tensor._value
    if type(value) is Value:
        return value if value.graph is builder.graph else builder.lift(value)
    return builder.capture(tensor, TensorType(_BY_NP[value.dtype], value.shape))


def _compile(op: Primitive, key: tuple[Any, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    infer, name = op.infer, op.name

    def run(*arrays: Any) -> Any:
        state.programs += 1
        expected = infer(*[TensorType(_BY_NP[a.dtype], a.shape) for a in arrays], **attrs)
        out = computed(op, arrays, attrs)
        made = out if op.multi else (out,)
        wanted = cast("tuple[TensorType, ...]", expected if op.multi else (expected,))
        for array, type_ in zip(made, wanted, strict=True):
            if array.shape != type_.shape or array.dtype != type_.dtype.np:
                raise AssertionError(f"{name} promised {type_} and made {array.dtype}{list(array.shape)}")
        return out

    run.__name__ = name
    together = COLLECTIVE in op.effects and cluster.place().size > 1
    fn: Callable[..., Any] = cluster.Together(run) if together else jax.jit(run)
    op.eager[key] = fn
    return fn


def apply(op: Primitive, *inputs: Tensor, **attrs: Any) -> Any:
    """Apply a primitive to tensors: the output Tensor, or a tuple of them if it has several.

    Attributes must be hashable and canonical. This is what operators, layers and rules are written with;
    users call the public functions.
    """
    phase = state.phase
    if phase == STAGE:
        return stage(op, inputs, attrs)
    key = tuple(attrs.items()) if attrs else ()
    fn = op.eager.get(key)
    if fn is None:
        fn = _compile(op, key, attrs)
    try:
        if len(inputs) == 2:  # written out: this is most calls, and a call with a list costs more
            first, second = inputs
            out = fn(first._value, second._value)
        elif len(inputs) == 1:
            out = fn(inputs[0]._value)
        else:
            out = fn(*[x._value for x in inputs])
    except MyceliaError:
        raise
    except Exception as error:
        raise _explained(op, inputs, error) from None
    if phase == RECORD and op.differentiable:
        for x in inputs:
            if x._node is not None:
                return _record(op, inputs, attrs, key, out)
    if op.multi:
        return tuple([wrap(o) for o in out])
    tensor = _new(Tensor)
    tensor._value, tensor._node, tensor._slot = out, None, 0
    return tensor


def apply_pair(op: Primitive, attrs: dict[str, Any], key: tuple[Any, ...], first: Tensor, second: Tensor) -> Any:
    """``apply`` to two inputs with attributes that are always the same: ``key`` is ``tuple(attrs.items())``.

    It spares an operator that is called very often, of one output, making them anew.
    """
    fn = op.eager.get(key)
    if fn is None or state.phase != PLAIN:
        return apply(op, first, second, **attrs)
    try:
        out = fn(first._value, second._value)
    except MyceliaError:
        raise
    except Exception as error:
        raise _explained(op, (first, second), error) from None
    tensor = _new(Tensor)
    tensor._value, tensor._node, tensor._slot = out, None, 0
    return tensor


def _record(op: Primitive, inputs: tuple[Tensor, ...], attrs: dict[str, Any], key: tuple[Any, ...], out: Any) -> Any:
    if op.multi:
        node = TapeNode(op, inputs, attrs, tuple(out), None, key)
        return tuple([tracked(v, node, i) for i, v in enumerate(node.values)])
    tensor = _new(Tensor)
    tensor._value, tensor._slot = out, 0
    tensor._node = TapeNode(op, inputs, attrs, (out,), None, key) if out.dtype in _INEXACT else None
    return tensor


def tracked(value: Any, node: TapeNode, slot: int) -> Tensor:
    """A Tensor holding ``value`` that remembers it is output ``slot`` of ``node``; integers do not."""
    tensor = _new(Tensor)
    if value.dtype in _INEXACT:
        tensor._value, tensor._node, tensor._slot = value, node, slot
    else:
        tensor._value, tensor._node, tensor._slot = value, None, 0
    return tensor


def _explained(op: Primitive, inputs: tuple[Tensor, ...], error: Exception) -> Exception:
    for i, x in enumerate(inputs):
        value = x._value
        if type(value) is Value:
            return left_behind(op.name, value)
        if type(value) is Unfilled:
            return StateError(op.name, message=f"input {i} has a shape and a dtype but no data")
        if isinstance(value, jax.Array) and value.is_deleted():
            return StateError(op.name, message=f"input {i} was given to a compiled function that reused its memory")
    return error


def stage(op: Primitive, inputs: tuple[Tensor, ...], attrs: dict[str, Any]) -> Any:
    """Add a node to the graph being built."""
    if attrs:
        attrs = {k: plain(v) for k, v in attrs.items()}
    node = current_builder().add(op, tuple([value_in_graph(x) for x in inputs]), attrs)
    if op.multi:
        return tuple([wrap(v) for v in node.outputs])
    return wrap(node.outputs[0])


def set_value(tensor: Tensor, new: Tensor) -> None:
    """Make ``tensor`` hold what ``new`` holds: the one way a tensor is changed in place.

    While staging, a tensor from outside the current builder is noted as written, so that whoever owns
    the builder returns the last value and restores the former one.
    """
    phase = state.phase
    if phase == STAGE:
        builder = current_builder()
        before = tensor._value
        if type(before) is not Value or before.graph is not builder.graph:
            builder.record_write(tensor, before)
        tensor._value = value_in_graph(new)
        return
    tensor._value = new._value
    if phase == RECORD:
        tensor._node, tensor._slot = new._node, new._slot


@cached
def _scalar_array(value: Any, kind: type, sign: bool, dtype: DType) -> Any:
    return jax.device_put(np.asarray(value).astype(dtype.np))


def scalar(value: Any, dtype: DType) -> Tensor:
    """A zero-dimensional tensor of a Python number; cached when eager, a constant node when staged."""
    if type(value) is Scalar:
        return value._tensor(dtype)
    if state.phase == STAGE:
        return wrap(current_builder().constant(np.asarray(value).astype(dtype.np)))
    sign = str(value)[0] == "-" if value == 0 else False  # -0.0 and 0.0 are equal keys
    return wrap(_scalar_array(value, type(value), sign, dtype))


def constant(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor of a NumPy array: a constant node when staged."""
    if state.phase == STAGE:
        return wrap(current_builder().constant(array))
    return wrap(jnp.array(array))


def _as_it_is(fn: Any) -> Any:
    return fn


#: Set by the front-end: makes a user's function fit to be staged (control flow on tensors).
_converter: Callable[[Any], Any] = _as_it_is


def set_converter(converter: Callable[[Any], Any]) -> None:
    """Install what rewrites a user's function for staging (the front-end does, on import)."""
    global _converter
    _converter = converter


def stageable(fn: Any) -> Any:
    """``fn`` with its control flow on tensors made stageable."""
    return _converter(fn)


#: Set by the front-end: runs ``fn`` compiled. Layers above the front-end call it through ``compiled``.
_compiler: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None = None


def set_compiler(compiler: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
    """Install what runs a callable as a compiled graph (the front-end does, on import)."""
    global _compiler
    _compiler = compiler


def should_compile() -> bool:
    """Whether a callable that is called now, from outside any graph, is to be compiled: GRAPH_MODE."""
    return context.is_graph_mode() and state.phase == PLAIN and _compiler is not None


def call_compiled(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run ``fn(*args, **kwargs)`` as a compiled graph."""
    assert _compiler is not None
    return _compiler(fn, args, kwargs)
