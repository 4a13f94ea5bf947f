"""The element types of tensors.

A :class:`DType` is an interned value: ``ms.float32`` is one object, compares by identity, hashes, and
knows its NumPy type, size and kind. ``bfloat16`` and the 8-bit floats come from ``ml_dtypes``.
"""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

from mycelia.core.errors import ArgumentTypeError


class DType:
    """An element type: ``name`` (``"float32"``), ``title`` (``"Float32"``), NumPy dtype, kind, item size.

    ``kind`` is one of ``b`` (bool), ``i`` (signed), ``u`` (unsigned), ``f`` (floating), ``c`` (complex);
    the non-numeric placeholders have kind ``O``. ``itemsize`` is in bytes.
    """

    __slots__ = ("is_complex", "is_floating", "is_integer", "itemsize", "kind", "name", "np", "title")

    def __init__(self, name: str, title: str, np_type: Any, kind: str) -> None:
        self.name = name
        self.title = title
        self.np: np.dtype[Any] = np.dtype(np_type)
        self.kind = kind
        self.itemsize: int = self.np.itemsize
        self.is_floating = kind == "f"
        self.is_complex = kind == "c"
        self.is_integer = kind in "iu"

    @property
    def is_signed(self) -> bool:
        return self.kind in "ifc"

    @property
    def is_inexact(self) -> bool:
        """Floating or complex: the types that have gradients."""
        return self.is_floating or self.is_complex

    def __repr__(self) -> str:
        return f"mycelia.{self.name}"

    def __str__(self) -> str:
        return self.title

    def __reduce__(self) -> tuple[Any, ...]:
        return (dtype_named, (self.name,))

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> DType:
        return self


bool_: Final = DType("bool", "Bool", np.bool_, "b")
int8: Final = DType("int8", "Int8", np.int8, "i")
int16: Final = DType("int16", "Int16", np.int16, "i")
int32: Final = DType("int32", "Int32", np.int32, "i")
int64: Final = DType("int64", "Int64", np.int64, "i")
uint8: Final = DType("uint8", "UInt8", np.uint8, "u")
uint16: Final = DType("uint16", "UInt16", np.uint16, "u")
uint32: Final = DType("uint32", "UInt32", np.uint32, "u")
uint64: Final = DType("uint64", "UInt64", np.uint64, "u")
float16: Final = DType("float16", "Float16", np.float16, "f")
bfloat16: Final = DType("bfloat16", "BFloat16", ml_dtypes.bfloat16, "f")
float32: Final = DType("float32", "Float32", np.float32, "f")
float64: Final = DType("float64", "Float64", np.float64, "f")
float8_e4m3fn: Final = DType("float8_e4m3fn", "Float8E4M3FN", ml_dtypes.float8_e4m3fn, "f")
float8_e5m2: Final = DType("float8_e5m2", "Float8E5M2", ml_dtypes.float8_e5m2, "f")
complex64: Final = DType("complex64", "Complex64", np.complex64, "c")
complex128: Final = DType("complex128", "Complex128", np.complex128, "c")
string: Final = DType("string", "String", np.str_, "O")

SIGNED: Final = (int8, int16, int32, int64)
UNSIGNED: Final = (uint8, uint16, uint32, uint64)
INTEGERS: Final = SIGNED + UNSIGNED
FLOATS: Final = (float16, bfloat16, float32, float64)
COMPLEX: Final = (complex64, complex128)
NUMBERS: Final = INTEGERS + FLOATS + COMPLEX
REALS: Final = INTEGERS + FLOATS
ALL: Final = (bool_, *NUMBERS)

_BY_NAME: dict[str, DType] = {d.name: d for d in (*ALL, float8_e4m3fn, float8_e5m2, string)}
_BY_NP: dict[Any, DType] = {d.np: d for d in (*ALL, float8_e4m3fn, float8_e5m2)}
_ALIASES: dict[str, DType] = {
    **{d.title.lower(): d for d in _BY_NAME.values()},
    "bool_": bool_, "half": float16, "float": float32, "single": float32, "double": float64, "int": int64,
    "long": int64, "short": int16, "byte": int8, "ubyte": uint8, "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip
_PYTHON: dict[type, DType] = {bool: bool_, int: int64, float: float32, complex: complex128, str: string}


def dtype_named(name: str) -> DType:
    """The dtype called ``name`` (``"float32"``, ``"Float32"`` or an alias like ``"half"``)."""
    found = _BY_NAME.get(name) or _ALIASES.get(name) or _ALIASES.get(name.lower())
    if found is None:
        raise ArgumentTypeError("dtype", "name", got=repr(name), takes=f"one of {', '.join(sorted(_BY_NAME))}")
    return found


def from_numpy(np_type: Any) -> DType:
    """The dtype of a NumPy dtype or scalar type.

    >>> import numpy as np
    >>> from mycelia.core import dtypes
    >>> dtypes.from_numpy(np.float16)
    mycelia.float16
    """
    found = _BY_NP.get(np_type)
    if found is not None:
        return found
    dtype = np.dtype(np_type)
    found = _BY_NP.get(dtype) or _BY_NP.get(dtype.newbyteorder("="))
    if found is None:
        if dtype.kind in "US":
            return string
        raise ArgumentTypeError(
            "dtype", "numpy_type", got=f"NumPy dtype {dtype}", takes="bool, integer, floating or complex elements",
            hint="tensors hold numbers; convert objects, dates and strings before making a tensor",
        )  # fmt: skip
    return found


def as_dtype(value: Any, where: str = "dtype", argument: str = "dtype") -> DType:
    """Make a DType of a DType, a name, a NumPy dtype or a Python type (``float`` is float32, ``int`` int64)."""
    if type(value) is DType:
        return value
    if isinstance(value, str):
        return dtype_named(value)
    if isinstance(value, type) and value in _PYTHON:
        return _PYTHON[value]
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return from_numpy(value)
    raise ArgumentTypeError(where, argument, got=repr(value), takes="a dtype such as mycelia.float32")


def dtype_to_nptype(type_: DType) -> Any:
    """The NumPy scalar type of a dtype (``numpy.float32`` of ``float32``)."""
    return as_dtype(type_).np.type


def dtype_to_pytype(type_: DType) -> type:
    """The Python type that holds one element: bool, int, float, complex or str."""
    kind = as_dtype(type_).kind
    return {"b": bool, "i": int, "u": int, "f": float, "c": complex, "O": str}[kind]


def pytype_to_dtype(obj: type) -> DType:
    """The dtype of a Python or NumPy scalar type."""
    return as_dtype(obj, "pytype_to_dtype", "obj")
