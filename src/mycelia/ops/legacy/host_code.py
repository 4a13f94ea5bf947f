"""NumPy code of the user's as an operator: ``Custom`` and ``PyFunc``.

The types of the results are told beforehand, so that a graph can hold the call (``jax.pure_callback``); the
gradient is a function of the user's, written with operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError, UnsupportedError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.creation import zeros_like
from mycelia.ops.declare import Sample
from mycelia.ops.elementary import cos
from mycelia.ops.legacy.form import form
from mycelia.ops.legacy.primitive import Primitive as Operator
from mycelia.ops.operands import as_tensor
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, stageable

__all__ = ["Custom", "PyFunc"]


class _Host:
    """What a call of host code is compiled with: the function, what comes back, and its gradient."""

    def __init__(self, fn: Callable[..., Any], types: tuple[TensorType, ...], bprop: Any, name: str) -> None:
        self.fn, self.types, self.bprop, self.name = fn, types, bprop, name

    def __eq__(self, other: object) -> bool:
        mine = (self.fn, self.types, self.bprop)
        return isinstance(other, _Host) and mine == (other.fn, other.types, other.bprop)

    def __hash__(self) -> int:
        return hash((self.fn, self.types))

    def run(self, *arrays: Any) -> tuple[Any, ...]:
        """Call the function with NumPy arrays and check what it gives."""
        made = self.fn(*map(np.asarray, arrays))
        made = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        if len(made) != len(self.types):
            raise ArgumentValueError(self.name, "func", got=f"{len(made)} results", takes=f"{len(self.types)} of them")
        found = []
        for array, type_ in zip(made, self.types, strict=True):
            value = np.asarray(array, type_.dtype.np)
            if value.shape != type_.shape:
                raise ShapeError(
                    self.name, "func", got=f"a result of shape {value.shape}", takes=f"shape {type_.shape}"
                )
            found.append(value)
        return tuple(found)


def _lower_host(*arrays: Any, host: _Host) -> Any:
    shapes = tuple([jax.ShapeDtypeStruct(t.shape, t.dtype.np) for t in host.types])
    return jax.pure_callback(host.run, shapes, *arrays, vmap_method="sequential")


def _vjp_host(cts: Any, *inputs: Tensor, out: Any, host: _Host) -> list[Any]:
    if host.bprop is None:
        raise UnsupportedError(host.name, message="host code has no gradient", hint="give a 'bprop' function")
    douts = [zeros_like(o) if ct is None else ct for ct, o in zip(cts, out, strict=True)]
    single = len(douts) == 1
    found = stageable(host.bprop)(*inputs, out[0] if single else tuple(out), douts[0] if single else tuple(douts))
    made = list(found) if isinstance(found, (tuple, list)) else [found]
    if len(made) != len(inputs):
        raise ArgumentValueError(host.name, "bprop", got=f"{len(made)} gradients", takes=f"{len(inputs)}, one an input")
    return made


_EXAMPLE = _Host(np.sin, (TensorType(dt.float64, (2,)),), lambda x, out, dout: (cos(x) * dout,), "Custom")

#: NumPy code of the user's; the types of its results are known beforehand.
host_call_p = Primitive(
    "host_call", infer=lambda *types, host: host.types, lower=_lower_host, vjp=_vjp_host, multi=True,
    samples=lambda: [Sample((np.array([1.5, -2.0]),), {"host": _EXAMPLE}, dtypes=False)],
)  # fmt: skip


def _types(where_: str, shapes: Any, dtypes: Any, inputs: tuple[Tensor, ...]) -> tuple[TensorType, ...]:
    """The types of the results, of shapes and dtypes or of functions that find them."""
    if callable(shapes):
        shapes = shapes(*[t.shape for t in inputs])
    if callable(dtypes):
        dtypes = dtypes(*[t.dtype for t in inputs])
    many = isinstance(dtypes, (tuple, list))
    rows = list(shapes) if many else [shapes]
    kinds = list(dtypes) if many else [dtypes]
    if len(rows) != len(kinds):
        raise ArgumentValueError(where_, "out_dtype", got=f"{len(kinds)} dtypes", takes=f"{len(rows)}, one a shape")
    return tuple(
        [
            TensorType(dt.as_dtype(k, where_, "out_dtype"), tuple(int(d) for d in r))
            for r, k in zip(rows, kinds, strict=True)
        ]
    )


class Custom(Operator):
    """A function of NumPy arrays as an operator.

    Args:
        func: the function; it gets NumPy arrays and returns one or a tuple of them.
        out_shape: the shape of the result, a tuple of shapes, or a function of the shapes of the inputs.
        out_dtype: the dtype of the result, a tuple of them, or a function of the dtypes of the inputs.
        func_type: ``"pyfunc"``.
        bprop: ``bprop(*inputs, out, dout)`` gives a tuple of the gradients of the inputs.
        reg_info: accepted; needed by none of the kinds that are here.

    Raises:
        UnsupportedError: another ``func_type``.

    >>> import numpy as np
    >>> import mycelia as ms
    >>> op = ms.ops.Custom(np.square, lambda s: s, lambda t: t, "pyfunc", lambda x, out, dout: (2 * x * dout,))
    >>> print(op(ms.Tensor([3.0])), ms.grad(op)(ms.Tensor([3.0])))
    [9.] [6.]
    """

    def __init__(
        self, func: Any, out_shape: Any = None, out_dtype: Any = None, func_type: str = "pyfunc", bprop: Any = None,
        reg_info: Any = None,
    ) -> None:  # fmt: skip
        super().__init__("Custom")
        if func_type != "pyfunc":
            raise UnsupportedError(
                "Custom", "func_type", got=repr(func_type), takes='"pyfunc"',
                hint="write the computation with operators, which XLA compiles for every device",
            )  # fmt: skip
        if not callable(func):
            raise ArgumentTypeError("Custom", "func", got=type(func).__name__, takes="a function of NumPy arrays")
        if out_shape is None or out_dtype is None:
            raise ArgumentTypeError("Custom", "out_shape", got="None", takes="shape and dtype, which a graph must know")
        given = {"func": func, "out_shape": out_shape, "out_dtype": out_dtype, "func_type": func_type, "bprop": bprop}
        self.__dict__.update(given)
        self.attrs.update(func_type=func_type)

    def __call__(self, *args: Any) -> Any:
        inputs = tuple([as_tensor(a, "Custom", f"input {i}") for i, a in enumerate(args)])
        own = self.__dict__
        types = _types("Custom", own["out_shape"], own["out_dtype"], inputs)
        made = apply(host_call_p, *inputs, host=_Host(own["func"], types, own["bprop"], "Custom"))
        return made if isinstance(own["out_dtype"], (tuple, list)) or len(made) > 1 else made[0]


def _host_function(
    input_x: Any, fn: Any, in_types: Any, in_shapes: Any, out_types: Any, out_shapes: Any, stateful: bool
) -> tuple[Tensor, ...]:
    inputs = tuple([as_tensor(x, "PyFunc", f"input {i}") for i, x in enumerate(input_x)])
    types = _types("PyFunc", tuple(out_shapes), tuple(out_types), inputs)
    return apply(host_call_p, *inputs, host=_Host(fn, types, None, "PyFunc"))  # type: ignore[no-any-return]


def _check_function(fn: Any, **given: Any) -> None:
    if not callable(fn):
        raise ArgumentTypeError("PyFunc", "fn", got=type(fn).__name__, takes="a function of NumPy arrays")


PyFunc = form(
    "PyFunc(fn, in_types, in_shapes, out_types, out_shapes, stateful=True)(input_x)",
    _host_function,
    _check_function,
)
