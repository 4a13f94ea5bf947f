"""A typed graph as text.

One node is one line: results, operator, operands and attributes, types, and the user's line as a comment.
Graphs that a node holds follow indented in braces. The text says everything about a graph but what is
cached with it, and :mod:`mycelia.ir.parser` reads it back::

    graph main(%0: float32[2,3], %1: bool[]) {
      %2 = constant(value=array(float32[3], [1.0, 2.5, -0.0])) : float32[3]
      %3 = add(%0, %2) : float32[2,3]  # train.py:7, in loss
      %4 = cond(%1, %3) {
        true_graph = graph true(%0: float32[2,3]) {
          return %0
        }
        false_graph = graph false(%0: float32[2,3]) {
          %1 = neg(%0) : float32[2,3]  # train.py:9, in loss
          return %1
        }
      } : float32[2,3]  # train.py:8, in loss
      return %4
    }

Values are numbered within their graph. A graph that is held in several places is written where it is first
met, under a label, and named by the label elsewhere (``body = &1``). Arrays of up to ``SMALL`` elements are
lists, others base64 of their little-endian bytes. Floats are the shortest decimal that gives back the same
bits; where none does (a NaN with a payload) an array becomes base64.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from typing import Any

import numpy as np

from mycelia.core import dtypes
from mycelia.core.dtypes import DType
from mycelia.core.errors import SourceLocation
from mycelia.ir.graph import ArrayConstant, Graph, Node, Value
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType

#: Arrays of more elements than this are written as base64.
SMALL = 16
#: Stands for a value that was not made before, in the text of a malformed graph.
UNKNOWN = "%unknown"
_WORD = re.compile(r"[^\W\d]\w*")


def graph_text(graph: Graph, *, locations: bool = True, sources: bool = False, elide: int | None = None) -> str:
    """The text of a graph, without a newline at the end.

    Args:
        graph: a finished graph. A malformed one is written, too, as far as it goes.
        locations: whether to write which line of the user's each node comes from.
        sources: whether to write those lines themselves, above the first node of each.
        elide: leave out the elements of constants of more bytes than this. Such text is for reading only.

    Returns:
        Text that :func:`~mycelia.ir.parser.parse_graph` reads, unless constants were left out or attributes
        are of a kind that has no text (written ``opaque("...")``).

    >>> from mycelia.core import dtypes
    >>> graph = Graph("identity")
    >>> graph.outputs = [graph.add_param(TensorType(dtypes.float32, (2,)))]
    >>> print(graph_text(graph))
    graph identity(%0: float32[2]) {
      return %0
    }
    """
    return _Printer(graph, locations, sources, elide).graph(graph, "")


class _Printer:
    def __init__(self, graph: Graph, locations: bool, sources: bool, elide: int | None) -> None:
        self.locations = locations
        self.sources = sources
        self.elide = elide
        self.labels: dict[Graph, int | None] = _shared(graph)
        self.labelled = 0

    def graph(self, graph: Graph, indent: str) -> str:
        label = ""
        if graph in self.labels:
            if self.labels[graph] is not None:
                return f"&{self.labels[graph]}"
            self.labelled += 1
            self.labels[graph] = self.labelled
            label = f" &{self.labelled}"
        names: dict[Value, str] = {p: f"%{i}" for i, p in enumerate(graph.params)}
        params = ", ".join([f"{names[p]}: {p.type}" for p in graph.params])
        lines = [f"graph {word(graph.name)}{label}({params}) {{"]
        inner = indent + "  "
        shown = None
        for node in graph.nodes:
            if self.sources and node.location is not None and node.location != shown:
                shown = node.location
                if shown.text.isprintable() and shown.text:
                    lines.append(f"{inner}# | {shown.text}")
            lines.append(inner + self.node(node, names, inner))
        outputs = ", ".join([names.get(v, UNKNOWN) for v in graph.outputs])
        lines.append(f"{inner}return {outputs}" if outputs else f"{inner}return")
        return "\n".join(lines) + f"\n{indent}}}"

    def node(self, node: Node, names: dict[Value, str], indent: str) -> str:
        parts = [names.get(v, UNKNOWN) for v in node.inputs]
        block = []
        for name, value in node.attrs.items():
            if _holds_graph(value):
                block.append(f"{indent}  {word(name)} = {self.attribute(value, indent + '  ')}")
            else:
                parts.append(f"{word(name)}={self.attribute(value, indent)}")
        for value in node.outputs:
            names[value] = f"%{len(names)}"
        results = ", ".join([names[v] for v in node.outputs])
        text = f"{results} = " if results else ""
        text += f"{word(node.op.name)}({', '.join(parts)})"
        if block:
            text += " {\n" + "\n".join(block) + f"\n{indent}}}"
        text += " : " + (", ".join([str(v.type) for v in node.outputs]) or "()")
        if self.locations and node.location is not None and is_writable(node.location):
            text += f"  # {node.location}"
        return text

    def attribute(self, value: Any, indent: str) -> str:
        kind = type(value)
        if kind in (bool, int) or value is None:
            return str(value)
        if kind is float:
            return repr(value)
        if kind is str:
            return json.dumps(value)
        if kind is complex:
            return f"complex({value.real!r}, {value.imag!r})"
        if kind is tuple:
            items = [self.attribute(v, indent) for v in value]
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
        if kind is DType:
            return str(value.name)
        if kind is TensorType:
            return str(value)
        if kind is slice:
            return f"slice({', '.join([self.attribute(v, indent) for v in (value.start, value.stop, value.step)])})"
        if value is Ellipsis:
            return "..."
        if kind is Graph:
            return self.graph(value, indent)
        if kind is Primitive:
            return f"@{word(value.name)}"
        if kind is ArrayConstant:
            return array_text(value.array, self.elide)
        return f"opaque({json.dumps(kind.__name__)})"


def _shared(graph: Graph) -> dict[Graph, int | None]:
    """The graphs that are held in more than one place, for their labels."""
    seen: dict[Graph, int] = {graph: 1}
    stack = [graph]
    while stack:
        for node in stack.pop().nodes:
            for held in _graphs_in(tuple(node.attrs.values())):
                seen[held] = seen.get(held, 0) + 1
                if seen[held] == 1:
                    stack.append(held)
    return {g: None for g, n in seen.items() if n > 1}


def _graphs_in(value: Any) -> list[Graph]:
    if type(value) is Graph:
        return [value]
    if type(value) is tuple:
        return [g for v in value for g in _graphs_in(v)]
    return []


def _holds_graph(value: Any) -> bool:
    return type(value) is Graph or (type(value) is tuple and any(_holds_graph(v) for v in value))


def word(name: str) -> str:
    """A name as it is if it is an identifier that stands for nothing else, else quoted."""
    return name if _WORD.fullmatch(name) and name not in ("inf", "nan", "return") else json.dumps(name)


def is_writable(location: SourceLocation) -> bool:
    """Whether a location can be written on one line and read back."""
    return bool(location.file) and str(location).isprintable()


def array_text(array: np.ndarray[Any, Any], elide: int | None = None) -> str:
    """A constant array: its type, and its elements exactly."""
    if array.dtype.kind in "USO":
        return f'opaque("array of {array.dtype}")'
    type_ = TensorType(dtypes.from_numpy(array.dtype), array.shape)
    if elide is not None and array.nbytes > elide:
        return f"array({type_}, elided)"
    if array.size <= SMALL:
        text = _elements(array.ravel(), type_.dtype)
        if text is not None:
            return f"array({type_}, [{text}])"
    return f'array({type_}, base64 "{base64.b64encode(little_endian(array).tobytes()).decode()}")'


def little_endian(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array with the least significant byte of each element first."""
    swapped = array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big")
    return array.byteswap() if swapped else array


def _elements(flat: np.ndarray[Any, Any], dtype: DType) -> str | None:
    """The elements as decimals that give back the same bits; None if some have no such decimal."""
    native = flat.astype(dtype.np)
    if not dtype.is_inexact:
        return ", ".join([str(x) for x in native.tolist()])
    if dtype.is_complex:
        native = native.view(dtypes.float32.np if dtype is dtypes.complex64 else dtypes.float64.np)
    texts = []
    for element in native:
        for text in (str(element), repr(float(element))):
            with np.errstate(over="ignore"):
                back = np.asarray(float(text)).astype(native.dtype)
            if back.tobytes() == element.tobytes():
                texts.append(text)
                break
        else:
            return None
    if dtype.is_complex:
        pairs = zip(texts[::2], texts[1::2], strict=True)
        return ", ".join([f"complex({re_}, {im})" for re_, im in pairs])
    return ", ".join(texts)
