"""Read the text that :mod:`mycelia.ir.printer` writes.

::

    graph     = "graph" word [label] "(" [value ":" type {"," value ":" type}] ")"
                "{" {node} "return" [value {"," value}] "}"
    node      = [value {"," value} "="] word "(" [operand {"," operand}] ")"
                ["{" {word "=" attribute} "}"] ":" (type {"," type} | "(" ")")  [location]
    operand   = value | word "=" attribute
    attribute = int | float | "True" | "False" | "None" | "..." | string | dtype | type | "@" word
              | "(" [attribute {"," attribute} [","]] ")" | "complex" "(" float "," float ")"
              | "slice" "(" attribute "," attribute "," attribute ")"
              | "array" "(" type "," ("[" [element {"," element}] "]" | "base64" string) ")"
              | graph | label
    type      = dtype "[" [int {"," int}] "]"
    value     = "%" name      label = "&" int      word = name | string
    location  = "#" file ":" line ", in" function, on the line of the types

Other comments and all white space are skipped. A recursive-descent parser over regular-expression tokens:
nothing in the text is ever executed, names stand for nothing but declared operators and dtypes, and sizes
are compared before memory is taken. Nodes are added through :meth:`Graph.add_node`, so each is typed anew
and its types are compared with those in the text.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, NamedTuple, NoReturn

import numpy as np

from mycelia.core import dtypes
from mycelia.core.dtypes import DType
from mycelia.core.errors import FileFormatError, SourceLocation
from mycelia.ir.graph import ArrayConstant, Graph, Value
from mycelia.ir.primitive import PRIMITIVES, Primitive
from mycelia.ir.printer import little_endian
from mycelia.ir.types import TensorType

#: How deep graphs and tuples may be nested.
MAX_DEPTH = 100

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<comment>\#[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<value>%\w+)
      | (?P<label>&\d+)
      | (?P<number>-?(?:inf\b|nan\b|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?))
      | (?P<name>[^\W\d]\w*)
      | (?P<dots>\.\.\.)
      | (?P<mark>[(){}\[\],:=@])""",
    re.VERBOSE,
)
_LOCATION = re.compile(r"# (?P<file>.+):(?P<line>\d{1,9}), in (?P<function>.*)")
_INT = re.compile(r"-?\d{1,4000}")
_DTYPES: dict[str, DType] = {d.name: d for d in dtypes._BY_NAME.values()}


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def parse_graph(text: str) -> Graph:
    """The graph that a text describes.

    Args:
        text: what :func:`~mycelia.ir.printer.graph_text` wrote, or something like it by hand.

    Raises:
        FileFormatError: with the line and column, what was expected and what stands there.

    >>> graph = parse_graph("graph identity(%x: float32[2]) { return %x }")
    >>> graph
    <graph identity: 1 params, 0 nodes>
    """
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = []
        self.comments: dict[int, str] = {}  # by the number of the token before
        self.next = 0
        self.depth = 0
        self.labels: dict[str, Graph | None] = {}
        self.tokenize()

    def tokenize(self) -> None:
        at, end, text = 0, len(self.text), self.text
        match_at = _TOKEN.match
        while at < end:
            found = match_at(text, at)
            if found is None:
                self.refuse(at, "a token", repr(text[at]))
            kind = found.lastgroup
            if kind == "comment":
                line_start = text.rfind("\n", 0, at) + 1
                if self.tokens and self.tokens[-1].at >= line_start:
                    self.comments[len(self.tokens) - 1] = found.group()
            elif kind != "space":
                self.tokens.append(_Token(str(kind), found.group(), at))
            at = found.end()
        self.tokens.append(_Token("end", "", end))

    # What every rule is made of.

    def refuse(self, at: int, expected: str, got: str) -> NoReturn:
        line = self.text.count("\n", 0, at) + 1
        start = self.text.rfind("\n", 0, at) + 1
        stop = self.text.find("\n", at)
        shown = self.text[start : stop if stop >= 0 else len(self.text)]
        excerpt = f"\n    {shown}\n    {' ' * (at - start)}^" if len(shown) <= 160 else ""
        raise FileFormatError(
            "parse_graph", message=f"line {line}, column {at - start + 1}: expected {expected}, got {got}{excerpt}"
        )

    def expected(self, what: str, token: _Token | None = None) -> NoReturn:
        token = token or self.tokens[self.next]
        text = token.text if len(token.text) <= 40 else token.text[:37] + "..."
        self.refuse(token.at, what, "the end of the text" if token.kind == "end" else f"'{text}'")

    def peek(self, text: str) -> bool:
        token = self.tokens[self.next]
        return token.text == text and token.kind != "string"

    def accept(self, text: str) -> bool:
        if self.peek(text):
            self.next += 1
            return True
        return False

    def require(self, text: str) -> None:
        if not self.accept(text):
            self.expected(f"'{text}'")

    def take(self, kind: str, what: str) -> _Token:
        token = self.tokens[self.next]
        if token.kind != kind:
            self.expected(what)
        self.next += 1
        return token

    def word(self, what: str) -> str:
        if self.tokens[self.next].kind == "string":
            return self.string(what)
        return self.take("name", what).text

    def string(self, what: str) -> str:
        token = self.take("string", what)
        try:
            return str(json.loads(token.text))
        except json.JSONDecodeError:
            self.expected(f"{what} with the escapes of JSON", token)

    def integer(self, what: str) -> int:
        token = self.take("number", what)
        if _INT.fullmatch(token.text) is None:
            self.expected(what, token)
        return int(token.text)

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.expected(f"at most {MAX_DEPTH} nested graphs and tuples")

    # The rules.

    def whole(self) -> Graph:
        graph = self.graph()
        if self.tokens[self.next].kind != "end":
            self.expected("the end of the text")
        return graph

    def graph(self) -> Graph:
        self.enter()
        self.require("graph")
        graph = Graph(self.word("a graph name"))
        label = self.tokens[self.next]
        if label.kind == "label":
            self.next += 1
            if label.text in self.labels:
                self.expected("a label that is not taken", label)
            self.labels[label.text] = None
        values: dict[str, Value] = {}
        self.require("(")
        if not self.accept(")"):
            while True:
                name = self.take("value", "a parameter such as %0")
                if name.text in values:
                    self.expected("a parameter name that is not taken", name)
                self.require(":")
                values[name.text] = graph.add_param(self.type())
                if not self.accept(","):
                    break
            self.require(")")
        self.require("{")
        while not self.accept("return"):
            self.node(graph, values)
        if self.tokens[self.next].kind == "value":
            graph.outputs.append(self.operand(values))
            while self.accept(","):
                graph.outputs.append(self.operand(values))
        self.require("}")
        if label.kind == "label":
            self.labels[label.text] = graph
        self.depth -= 1
        return graph

    def operand(self, values: dict[str, Value]) -> Value:
        name = self.take("value", "a value such as %0")
        if name.text not in values:
            self.expected("a value made before", name)
        return values[name.text]

    def node(self, graph: Graph, values: dict[str, Value]) -> None:
        start = self.tokens[self.next]
        results: list[_Token] = []
        if start.kind == "value":
            results.append(self.take("value", "a result"))
            while self.accept(","):
                results.append(self.take("value", "a result such as %0"))
            self.require("=")
        elif start.kind not in ("name", "string"):
            self.expected("a node, or 'return'")
        at = self.tokens[self.next]
        op = self.primitive()
        self.require("(")
        inputs: list[Value] = []
        attrs: dict[str, Any] = {}
        if not self.accept(")"):
            while True:
                if self.tokens[self.next].kind == "value":
                    inputs.append(self.operand(values))
                else:
                    self.named_attribute(attrs)
                if not self.accept(","):
                    break
            self.require(")")
        if self.accept("{"):
            while not self.accept("}"):
                self.named_attribute(attrs)
        self.require(":")
        types_at = self.tokens[self.next]
        types = self.types()
        location = self.location()
        try:
            node = graph.add_node(op, tuple(inputs), attrs, location)
        except Exception as error:  # whatever a type rule makes of operands it does not know
            self.refuse(
                at.at, f"operands and attributes that {op.name} takes", f"an error: {str(error).partition(chr(10))[0]}"
            )
        made = [v.type for v in node.outputs]
        if made != types:
            self.expected(f"the types that {op.name} infers, {', '.join(map(str, made)) or '()'}", types_at)
        if len(results) != len(made):
            self.expected(f"{len(made)} results", start)
        for token, value in zip(results, node.outputs, strict=True):
            if token.text in values:
                self.expected("a result name that is not taken", token)
            values[token.text] = value

    def primitive(self) -> Primitive:
        token = self.tokens[self.next]
        found = PRIMITIVES.get(self.word("an operator"))
        if found is None:
            self.expected("the name of a declared operator", token)
        return found

    def named_attribute(self, attrs: dict[str, Any]) -> None:
        token = self.tokens[self.next]
        name = self.word("an operand or attribute")
        if name in attrs:
            self.expected("an attribute that is not given yet", token)
        self.require("=")
        attrs[name] = self.attribute()

    def types(self) -> list[TensorType]:
        if self.accept("("):
            self.require(")")
            return []
        found = [self.type()]
        while self.accept(","):
            found.append(self.type())
        return found

    def type(self) -> TensorType:
        token = self.take("name", "a type such as float32[2,3]")
        if token.text not in _DTYPES:
            self.expected("a dtype", token)
        return self.shaped(_DTYPES[token.text])

    def shaped(self, dtype: DType) -> TensorType:
        self.require("[")
        dims: list[int] = []
        if not self.accept("]"):
            while True:
                token = self.tokens[self.next]
                dims.append(self.integer("a length"))
                if not 0 <= dims[-1] < 2**63:
                    self.expected("a length from 0 to 2**63 - 1", token)
                if not self.accept(","):
                    break
            self.require("]")
        return TensorType(dtype, tuple(dims))

    def location(self) -> SourceLocation | None:
        found = _LOCATION.fullmatch(self.comments.get(self.next - 1, ""))
        return SourceLocation(found["file"], int(found["line"]), found["function"]) if found else None

    def attribute(self) -> Any:
        token = self.tokens[self.next]
        if token.kind == "number":
            self.next += 1
            if _INT.fullmatch(token.text):
                return int(token.text)
            return self.real(token)
        if token.kind == "string":
            return self.string("a string")
        if token.kind == "label":
            self.next += 1
            graph = self.labels.get(token.text)
            if graph is None:
                self.expected("the label of a graph that ended before", token)
            return graph
        if token.kind == "dots":
            self.next += 1
            return Ellipsis
        if token.kind == "name":
            return self.named(token)
        if self.accept("("):
            return self.tuple()
        if self.accept("@"):
            return self.primitive()
        self.expected("an attribute")

    def named(self, token: _Token) -> Any:
        if token.text == "graph":
            return self.graph()
        self.next += 1
        if token.text in ("True", "False", "None"):
            return {"True": True, "False": False, "None": None}[token.text]
        if token.text in _DTYPES:
            dtype = _DTYPES[token.text]
            return self.shaped(dtype) if self.peek("[") else dtype
        if token.text == "complex":
            return self.complex()
        if token.text == "slice":
            self.require("(")
            bounds = []
            for i in range(3):
                if i:
                    self.require(",")
                bounds.append(self.attribute())
            self.require(")")
            return slice(*bounds)
        if token.text == "array":
            return self.array()
        if token.text == "opaque":
            self.expected("an attribute that can be written as text", token)
        self.expected("an attribute", token)

    def tuple(self) -> tuple[Any, ...]:
        self.enter()
        items: list[Any] = []
        while not self.accept(")"):
            if items:
                self.require(",")
                if self.accept(")"):
                    break
            items.append(self.attribute())
        self.depth -= 1
        return tuple(items)

    def real(self, token: _Token) -> float:
        if len(token.text) > 4000:
            self.expected("a number of at most 4000 digits", token)
        return float(token.text)

    def complex(self) -> complex:
        self.require("(")
        real = self.real(self.take("number", "the real part"))
        self.require(",")
        imag = self.real(self.take("number", "the imaginary part"))
        self.require(")")
        return complex(real, imag)

    def array(self) -> ArrayConstant:
        self.require("(")
        start = self.tokens[self.next]
        type_ = self.type()
        if type_.dtype.kind == "O":
            self.expected("a dtype of numbers", start)
        self.require(",")
        token = self.tokens[self.next]
        array = self.encoded(type_) if self.accept("base64") else self.listed(type_)
        self.require(")")
        if array.size != type_.size:
            self.expected(f"{type_.size} elements of {type_}", token)
        return ArrayConstant(array.reshape(type_.shape))

    def encoded(self, type_: TensorType) -> np.ndarray[Any, Any]:
        token = self.tokens[self.next]
        try:
            data = base64.b64decode(self.string("base64 in quotes"), validate=True)
        except (binascii.Error, ValueError):
            self.expected("base64", token)
        if len(data) != type_.nbytes:
            self.expected(f"the {type_.nbytes} bytes of {type_}", token)
        return little_endian(np.frombuffer(data, type_.dtype.np))

    def listed(self, type_: TensorType) -> np.ndarray[Any, Any]:
        if self.peek("elided"):
            self.expected("elements, which were left out when this text was written,")
        self.require("[")
        elements: list[Any] = []
        kind = type_.dtype.kind
        while not self.accept("]"):
            if elements:
                self.require(",")
            elements.append(self.element(kind))
        token = self.tokens[self.next - 1]
        try:
            with np.errstate(over="ignore"):
                wide = {"f": np.float64, "c": np.complex128}.get(kind)
                if wide is None:
                    return np.array(elements, type_.dtype.np)
                return np.array(elements, wide).astype(type_.dtype.np)
        except OverflowError:
            self.expected(f"elements that fit {type_.dtype.name} before", token)

    def element(self, kind: str) -> Any:
        token = self.tokens[self.next]
        if kind == "b":
            if token.text in ("True", "False"):
                self.next += 1
                return token.text == "True"
            self.expected("True or False")
        if kind == "c":
            self.require("complex")
            return self.complex()
        if kind == "f":
            return self.real(self.take("number", "a number"))
        return self.integer("an integer")
