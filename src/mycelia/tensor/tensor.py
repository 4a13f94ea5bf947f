"""Tensor and Parameter: a value, concrete or symbolic, with a dtype and a shape.

``_value`` is a ``jax.Array`` or, while a graph is being built, the :class:`~mycelia.ir.graph.Value` that
stands for it. Operators and most methods are attached by ``ops``, generated from their declarations.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes, layout
from mycelia.core.dtypes import DType
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    AttributeMissingError,
    GraphError,
    ShapeError,
    StateError,
    UnsupportedError,
)
from mycelia.ir.graph import Value
from mycelia.ir.types import TensorType
from mycelia.tensor.mode import current_builder, is_staging, running
from mycelia.tensor.symbol import Symbol, Unfilled
from mycelia.tensor.tape import TapeNode
from mycelia.tensor.valueless import instead, left_behind

_BY_NP = dtypes._BY_NP


class Tensor:
    """An n-dimensional array of one dtype.

    Args:
        input_data: a number, a nested list or tuple of numbers, a NumPy array, or a Tensor.
        dtype: element type; by default Python ints become int64, floats float32, bools bool, and NumPy
            arrays keep theirs.
        shape: shape of a tensor that ``init`` fills, when ``input_data`` is None. Without ``init`` the tensor has a
            type and no data, for ``Cell.set_inputs``; lengths may be None or a ``Symbol`` then.
        init: an initializer (see ``mycelia.common.initializer``).

    Raises:
        ArgumentTypeError: the data are not numbers.
        ArgumentValueError: a ragged nest, or ``shape``/``init`` without each other.

    >>> import mycelia as ms
    >>> x = ms.Tensor([[1, 2], [3, 4]], ms.float32)
    >>> x.shape, x.dtype
    ((2, 2), mycelia.float32)
    >>> print(x)
    [[1. 2.]
     [3. 4.]]
    """

    __slots__ = ("__dict__", "__weakref__", "_node", "_slot", "_value")

    _value: Any
    _node: TapeNode | None
    _slot: int
    __array_priority__: ClassVar[int] = 1000
    __hash__ = object.__hash__

    if TYPE_CHECKING:
        # what ops attaches on import: operators and methods
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __lshift__(self, other: Any) -> Tensor: ...
        def __rshift__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]

    def __init__(
        self,
        input_data: Any = None,
        dtype: Any = None,
        shape: Any = None,
        init: Any = None,
        const_arg: bool = False,
        device: str | None = None,
    ) -> None:
        self._node, self._slot = None, 0
        target = None if dtype is None else dtypes.as_dtype(dtype, "Tensor", "dtype")
        if input_data is None:
            if init is None and shape is not None and target is not None:
                self._value = Unfilled(target, (shape,) if isinstance(shape, (int, Symbol)) else tuple(shape))
            else:
                self._value = _initialized(target, shape, init)
            return
        if isinstance(input_data, Tensor):
            if target is None or input_data.dtype is target:
                self._value, self._node, self._slot = input_data._value_now(), input_data._node, input_data._slot
                return
            cast = input_data.astype(target)
            self._value, self._node, self._slot = cast._value, cast._node, cast._slot
            return
        array = to_numpy(input_data, target, "Tensor", "input_data")
        if is_staging():
            self._value = current_builder().constant(array)
        else:
            self._value = jnp.array(array)  # a copy: device_put would share the caller's memory

    def __getattr__(self, name: str) -> Any:
        """An attribute that is not there: an error that names one written almost so."""
        if name.startswith("_"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)
        near = difflib.get_close_matches(name, [n for n in dir(type(self)) if not n.startswith("_")], 1)
        raise AttributeMissingError(
            "Tensor", message=f"there is no attribute '{name}'", hint=f"did you mean '{near[0]}'?" if near else None
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        shape: tuple[int, ...] = self._value.shape
        return shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return _BY_NP[self._value.dtype]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._value.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self._value.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes to step along each axis of the row-major layout."""
        steps, step = [], self.itemsize
        for length in reversed(self.shape):
            steps.append(step)
            step *= length
        return tuple(reversed(steps))

    @property
    def has_init(self) -> bool:
        """Whether an initializer has yet to fill the tensor; tensors are filled when made."""
        return False

    def init_data(self, slice_index: Any = None, shape: Any = None, opt_shard_group: Any = None) -> Tensor:
        """The tensor itself; initializers run when it is made."""
        return self

    @property
    def is_symbolic(self) -> bool:
        """Whether this is a value of a graph being built rather than data."""
        return type(self._value) is Value

    def _concrete(self, what: str) -> Any:
        """The data, or a located error saying why ``what`` cannot be done inside a graph."""
        value = self._value
        if type(value) is Unfilled:
            raise StateError(what, message="the tensor has a shape and a dtype but no data")
        if type(value) is not Value:
            if is_staging() and (guards := current_builder().notes.get("guards")) is not None:
                guards.watch_value(self)
            return value if not layout.in_use() else layout.whole(value)
        if is_staging():
            known = current_builder().known(value)
            if known is not None:
                return known
            raise GraphError(
                "graph",
                message=f"{what} needs the value of a tensor ({value.type}) that is only known when the graph runs",
                hint=instead(what),
            )
        raise left_behind(what, value)

    def _snapshot(self) -> Tensor:
        """A Tensor of the value as it is now; inside a graph, of the input that stands for it."""
        made = _new(Tensor)
        made._value, made._node, made._slot = self._value_now(), self._node, self._slot
        return made

    def _value_now(self) -> Any:
        value = self._value
        if is_staging() and type(value) is not Value:
            return current_builder().capture(self, TensorType(_BY_NP[value.dtype], value.shape))
        return value

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """A NumPy array with a copy of the data.

        >>> import mycelia as ms
        >>> ms.Tensor([1, 2]).asnumpy()
        array([1, 2])
        """
        return np.array(self._concrete("asnumpy()"))

    numpy = asnumpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = np.asarray(self._concrete("conversion to a NumPy array"))
        if copy is False and dtype is not None and np.dtype(dtype) != array.dtype:
            raise ArgumentValueError("Tensor", "copy", got="False with another dtype", takes="True or None")
        return np.array(array, dtype=dtype) if copy is not False else array

    @staticmethod
    def from_numpy(array: Any) -> Tensor:
        """A tensor of a NumPy array."""
        if not isinstance(array, np.ndarray):
            raise ArgumentTypeError("Tensor.from_numpy", "array", got=type(array).__name__, takes="a NumPy array")
        return Tensor(array)

    def item(self, *index: int) -> Any:
        """The only element (or the one at ``index``) as a Python number."""
        array = np.asarray(self._concrete("item()"))
        if not index and array.size != 1:
            raise ArgumentValueError("Tensor.item", "self", got=f"{array.size} elements", takes="exactly one element")
        return array.item(*index) if index else array.reshape(()).item()

    def tolist(self) -> Any:
        """The data as nested Python lists."""
        return np.asarray(self._concrete("tolist()")).tolist()

    def __bool__(self) -> bool:
        return bool(self._single("the truth value of a tensor"))

    def __int__(self) -> int:
        return int(self._single("int()"))

    def __float__(self) -> float:
        return float(self._single("float()"))

    def __complex__(self) -> complex:
        return complex(self._single("complex()"))

    def __index__(self) -> int:
        value = self._single("use as an index")
        if value.dtype.kind not in "iub":
            raise ArgumentTypeError("Tensor", "self", got=f"dtype {self.dtype}", takes="an integer to be an index")
        return int(value)

    def _single(self, what: str) -> Any:
        array = np.asarray(self._concrete(what))
        if array.size != 1:
            raise ArgumentValueError(
                "Tensor", "self", got=f"shape {array.shape} for {what}", takes="exactly one element",
                hint="use x.any() or x.all() for the truth of many elements",
            )  # fmt: skip
        return array.reshape(())

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentTypeError("len", "self", got="a zero-dimensional tensor", takes="at least one axis")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise ArgumentTypeError("iter", "self", got="a zero-dimensional tensor", takes="at least one axis")
        for i in range(self.shape[0]):
            yield self[i]

    def __repr__(self) -> str:
        if self.is_symbolic:
            if is_staging():
                return self._mention(full=True)
            return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, symbolic)"
        if type(self._value) is Unfilled:
            return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, no data)"
        array = np.asarray(self._value)
        text = np.array2string(_printable(array), separator=", ", formatter=_formatter(array), prefix="value= ")
        return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, value= {text})"

    def __str__(self) -> str:
        if self.is_symbolic:
            return self._mention() if is_staging() else repr(self)
        return repr(self) if type(self._value) is Unfilled else str(_printable(np.asarray(self._value)))

    def _mention(self, full: bool = False) -> str:
        """A text that stands for the value in a line to be printed, or in the message of an error, by the graph.

        The builder notes what it stands for, and :mod:`mycelia.frontend.effects` puts the value in its place;
        ``full`` asks for its ``repr``.
        """
        builder = current_builder()
        known = builder.known(self._value)
        if known is not None:
            return repr(wrap(known)) if full else str(_printable(known))
        mentioned = builder.notes.setdefault("mentioned", {})
        text = f"<Tensor {self._value.type} #{len(mentioned) + 1}{'r' if full else ''}>"
        mentioned[text] = self._snapshot()
        return text

    def __format__(self, spec: str) -> str:
        if spec and self.is_symbolic:
            self._concrete(f"the format '{spec}'")
        return format(self.item(), spec) if spec and self.size == 1 else format(str(self), spec)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ArgumentTypeError(
            "pickle", "obj", got=type(self).__name__, takes="objects that are not tensors",
            hint="unpickling runs code and ties a file to one version; use save_checkpoint, safetensors or asnumpy()",
        )  # fmt: skip

    def __copy__(self) -> Tensor:
        return self._snapshot()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        made = self._snapshot()
        memo[id(self)] = made
        return made

    def register_hook(self, hook_fn: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Call ``hook_fn(gradient)`` when the gradient of this tensor is known; what it returns replaces it."""
        if self.is_symbolic:
            raise UnsupportedError(
                "Tensor.register_hook", message=f"a tensor of a graph ({self._value.type}) takes no hook",
                hint="give a function a bprop (a Cell with 'bprop'), or run it in PYNATIVE_MODE",
            )  # fmt: skip
        if self._node is None:
            raise StateError(
                "Tensor.register_hook", message="the tensor takes no part in a gradient being taken",
                hint="register it inside the function given to ms.grad or ms.value_and_grad",
            )  # fmt: skip
        node = self._node
        if node.hooks is None:
            node.hooks = []
        node.hooks.append(hook_fn)
        return HookHandle(node.hooks, hook_fn)


class HookHandle:
    """Removes a hook again."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)
            bump_epoch()


_new = object.__new__


def wrap(value: Any) -> Tensor:
    """A Tensor of a ``jax.Array`` or a graph value, as it is."""
    tensor = _new(Tensor)
    tensor._value, tensor._node, tensor._slot = value, None, 0
    return tensor


def linked(value: Any, node: TapeNode | None, slot: int) -> Tensor:
    """A Tensor of a ``jax.Array`` that is output ``slot`` of a recorded step."""
    tensor = _new(Tensor)
    tensor._value, tensor._node, tensor._slot = value, node, slot
    return tensor


def to_numpy(data: Any, target: DType | None, where: str, argument: str) -> np.ndarray[Any, Any]:
    """A NumPy array of user data with the framework's default dtypes, or a located error."""
    if isinstance(data, jax.Array):
        array: np.ndarray[Any, Any] = np.asarray(data)
    elif isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
    elif isinstance(data, (bool, int, float, complex)):
        default = dtypes._PYTHON.get(type(data), dtypes.float32)
        array = _of_number(data, target or default, where, argument)
    elif isinstance(data, (list, tuple, range)):
        array = _of_nest(data, where, argument)
        if target is None and array.dtype == np.float64 and not _has_float64(data):
            array = array.astype(np.float32)
    elif isinstance(data, str):
        raise ArgumentTypeError(where, argument, got="a string", takes="numbers")
    elif hasattr(data, "__array__"):
        array = np.asarray(data)
    else:
        raise ArgumentTypeError(
            where, argument, got=type(data).__name__, takes="a number, list, tuple, NumPy array or Tensor"
        )
    if array.dtype.kind in "OUSMmV" and array.dtype not in _BY_NP:
        raise ArgumentTypeError(where, argument, got=f"elements of type {array.dtype}", takes="numbers")
    if target is not None and array.dtype != target.np:
        array = array.astype(target.np)
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array


def _of_number(data: Any, target: DType, where: str, argument: str) -> np.ndarray[Any, Any]:
    try:
        return (
            np.array(data).astype(target.np) if target.kind != "i" and target.kind != "u" else np.array(data, target.np)
        )
    except OverflowError:
        raise ArgumentValueError(where, argument, got=str(data), takes=f"a value that fits {target}") from None


def _of_nest(data: Any, where: str, argument: str) -> np.ndarray[Any, Any]:
    plain = _without_tensors(data)
    try:
        return np.array(plain) if len(plain) else np.array(plain, np.float32)
    except ValueError:
        raise ArgumentValueError(
            where, argument, got="a ragged nest of lists", takes="lists of equal length at each depth"
        ) from None


def _without_tensors(data: Any) -> Any:
    if isinstance(data, Tensor):
        return np.asarray(data._concrete("making a tensor of a list of tensors"))
    if isinstance(data, (list, tuple)):
        return [_without_tensors(x) for x in data]
    return data


def _has_float64(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_has_float64(x) for x in data)
    return isinstance(data, (np.ndarray, np.generic)) and data.dtype in (np.float64, np.complex128)


def _initialized(dtype: DType | None, shape: Any, init: Any) -> Any:
    if shape is None or init is None:
        raise ArgumentValueError(
            "Tensor", "input_data", got="None", takes="data, or else both 'shape' and 'init'",
        )  # fmt: skip
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    array = np.zeros(dims, (dtype or dtypes.float32).np)
    init(array)
    return jax.device_put(array)


def _printable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(np.float32) if array.dtype.kind == "V" or array.dtype == dtypes.bfloat16.np else array


def _formatter(array: np.ndarray[Any, Any]) -> Any:
    kind = _BY_NP[array.dtype].kind
    if kind == "f":
        return {"float_kind": lambda v: f"{v: .8e}"}
    return {"bool": lambda v: " True" if v else "False"} if kind == "b" else None


class Parameter(Tensor):
    """A tensor that a Cell owns and an optimizer changes.

    Args:
        default_input: initial data: a Tensor, NumPy array, number or list.
        name: the name under which it is saved; a Cell names unnamed ones after the attribute.
        requires_grad: whether it is trained.
        layerwise_parallel: kept for the parallel layer.
        parallel_optimizer: kept for the parallel layer.

    >>> import mycelia as ms
    >>> p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> p
    Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=True)
    """

    __slots__ = ()

    def __init__(
        self,
        default_input: Any,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
        storage_format: str = "",
        device: str | None = None,
    ) -> None:
        if name is not None and not isinstance(name, str):
            raise ArgumentTypeError("Parameter", "name", got=type(name).__name__, takes="a string or None")
        check_bool("Parameter", "requires_grad", requires_grad)
        with running():
            if isinstance(default_input, Tensor):
                if default_input.is_symbolic:
                    raise GraphError(
                        "Parameter",
                        message=f"{f'{name!r}' if name else 'a Parameter'} is created inside a graph, from a tensor "
                        f"({default_input._value.type}): every call would make a new one",
                        hint="create it once, in __init__: self.weight = ms.Parameter(...)",
                    )
                self._value = default_input._value
                self._node, self._slot = None, 0
            else:
                super().__init__(default_input)
        self.param_name = name if name is not None else "Parameter"
        self.has_name = name is not None
        self._requires_grad = requires_grad
        self.layerwise_parallel = layerwise_parallel
        self.parallel_optimizer = parallel_optimizer
        self.is_init = True
        self.sliced = False

    @property
    def name(self) -> str:
        """The name under which the parameter is saved."""
        return self.param_name

    @name.setter
    def name(self, value: str) -> None:
        if not isinstance(value, str):
            raise ArgumentTypeError("Parameter", "name", got=type(value).__name__, takes="a string")
        self.param_name = value
        self.has_name = True

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are taken and the optimizer changes it."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        check_bool("Parameter", "requires_grad", value)
        self._requires_grad = value
        bump_epoch()

    @property
    def data(self) -> Tensor:
        """The value as a plain Tensor."""
        return self._snapshot()

    def value(self) -> Tensor:
        """The value as a plain Tensor."""
        return self._snapshot()

    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:
        """Replace the value.

        Args:
            data: a Tensor, NumPy array or number of the same shape; its dtype is converted.
            slice_shape: allow another shape.

        Raises:
            ShapeError: the shapes differ.
        """
        new = data if isinstance(data, Tensor) else Tensor(data)
        if new.shape != self.shape and not slice_shape:
            raise ShapeError(
                f"Parameter '{self.name}'.set_data", "data", got=f"shape {new.shape}", takes=f"shape {self.shape}"
            )
        if new.dtype is not self.dtype:
            new = new.astype(self.dtype)
        from mycelia.tensor.dispatch import set_value

        set_value(self, new)
        return self

    def clone(self, init: Any = "same") -> Parameter:
        """A new Parameter of the same shape: ``"same"`` data, ``"zeros"``, ``"ones"``, or a number."""
        with running():
            if init == "same":
                source = Tensor(np.array(self._value))
            elif init in ("zeros", "ones") or isinstance(init, (int, float)):
                fill = {"zeros": 0, "ones": 1}.get(init, init) if isinstance(init, str) else init
                source = Tensor(np.full(self.shape, fill, self.dtype.np))
            elif isinstance(init, str):
                raise ArgumentValueError("Parameter.clone", "init", got=repr(init), takes='"same", "zeros" or "ones"')
            else:
                source = Tensor(shape=self.shape, dtype=self.dtype, init=init)
            made = Parameter(source, self.param_name, self.requires_grad, self.layerwise_parallel)
        made.has_name = self.has_name
        return made

    def __repr__(self) -> str:
        return (
            f"Parameter (name={self.name}, shape={self.shape}, dtype={self.dtype}, requires_grad={self.requires_grad})"
        )

    __str__ = __repr__
    __hash__ = object.__hash__

    def __copy__(self) -> Parameter:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        made = self.clone()
        memo[id(self)] = made
        return made


def check_bool(where: str, argument: str, value: Any) -> None:
    """Refuse anything but True and False."""
    if not isinstance(value, bool):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="True or False")


_epoch = 0


def bump_epoch() -> None:
    """Note that something a compiled function may have read has changed (an attribute, a flag)."""
    global _epoch
    _epoch += 1


def epoch() -> int:
    """A number that grows whenever a Cell's attribute or a parameter's flag changes."""
    return _epoch
