"""A program as a tree of JSON values, and back: what a ``.mindir`` file says besides numbers.

Graphs stand in one list, each after those it holds, and refer to each other by number, so a graph that is
held in several places is written once and stays one. Within a graph, values are numbered: parameters first,
then the outputs of the nodes in order. A node is ``[operator, inputs, attributes, output types, location]``;
types, locations and arrays are numbers of rows in tables of their own. An attribute is a JSON value
if it is None, a bool, an int, a finite float or a string, and otherwise an object of one member that names
its kind: ``{"tuple": [...]}``, ``{"dtype": "float32"}``, ``{"array": 3}``, ``{"graph": 1}``,
``{"failure": ...}``.

Reading trusts nothing: names stand for declared operators and dtypes only, numbers are compared with the
tables they point into, and each node is typed anew and compared with the types in the file.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import functools
import keyword
import math
import os
from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

from mycelia.autodiff.rules import _vjp_primitive
from mycelia.core import dtypes, tree
from mycelia.core.dtypes import DType
from mycelia.core.errors import FileFormatError, SourceLocation, UnsupportedError
from mycelia.frontend.effects import Failure
from mycelia.frontend.program import BUFFER, PARAMETER, RANDOM, Fixed, Program, StateSpec
from mycelia.ir.graph import ArrayConstant, Graph, Node, Value
from mycelia.ir.primitive import PRIMITIVES, Primitive
from mycelia.ir.types import TensorType
from mycelia.tensor import Tensor
from mycelia.tensor.tensor import wrap

_MAX_RANK: Final = 64
_MAX_DEPTH: Final = 100
_MAX_ELEMENTS: Final = 1 << 62
_DERIVED: Final = "_vjp"
#: Equal constants of up to so many bytes are written once; larger ones are not compared.
_COMPARED_BYTES: Final = 1 << 16

Array = np.ndarray[Any, Any]


class ProgramWriter:
    """Turns one program into JSON values; ``arrays`` are the arrays that these refer to by number."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.arrays: list[Array] = []
        self._array_numbers: dict[ArrayConstant | int, int] = {}
        self._types: dict[TensorType, int] = {}
        self._locations: dict[tuple[str, int, str], int] = {}
        self._graphs: dict[Graph, int] = {}
        self._rows: list[Any] = []
        self._node: Node | None = None

    def program(self, program: Program) -> dict[str, Any]:
        """The whole program.

        Raises:
            UnsupportedError: something in it is Python code or an object that a file cannot hold.
        """
        main = self.graph(program.graph)
        state = [self._state(spec) for spec in program.state]
        inputs = [
            {"fixed": self.value(x.value, "an input")} if isinstance(x, Fixed) else {"type": self._type(x)}
            for x in program.inputs
        ]
        outputs = [None if x is None else {"fixed": self.value(x.value, "an output")} for x in program.outputs]
        locations = [list(key) for key in self._locations]
        return {
            "producer_name": program.producer_name, "producer_version": program.producer_version,
            "user_info": dict(program.user_info), "name": program.name, "training": program.training,
            "input_names": list(program.input_names), "in_tree": self._tree(program.in_tree, "an input"),
            "inputs": inputs, "out_tree": self._tree(program.out_tree, "an output"), "outputs": outputs,
            "output_names": program.output_names(), "state": state, "state_writes": list(program.state_writes),
            "input_writes": list(program.input_writes), "graph": main, "graphs": self._rows,
            "types": [[t.dtype.name, list(t.shape)] for t in self._types], "locations": locations,
        }  # fmt: skip

    def graph(self, graph: Graph) -> int:
        """The number of a graph; it and those it holds are written if they are not yet."""
        stack = [graph]
        while stack:  # depth first without recursion: branches may be nested as deep as ``elif`` chains are long
            top = stack[-1]
            if top in self._graphs:
                stack.pop()
                continue
            missing = [g for node in top.nodes for g in _held(tuple(node.attrs.values())) if g not in self._graphs]
            if missing:
                stack.extend(reversed(missing))
                continue
            self._rows.append(self._graph(top))
            self._graphs[top] = len(self._graphs)
            stack.pop()
        return self._graphs[graph]

    def _graph(self, graph: Graph) -> dict[str, Any]:
        numbers: dict[Value, int] = {p: i for i, p in enumerate(graph.params)}
        nodes = []
        for node in graph.nodes:
            self._node = node
            if PRIMITIVES.get(node.op.name) is not node.op:
                self._refuse(f"the operator '{node.op.name}', which is not declared")
            for value in node.outputs:
                numbers[value] = len(numbers)
            nodes.append([
                node.op.name, [numbers[v] for v in node.inputs],
                {name: self.value(v, f"the attribute '{name}' of {node.op.name}") for name, v in node.attrs.items()},
                [self._type(v.type) for v in node.outputs], self._location(node.location),
            ])  # fmt: skip
        self._node = None
        return {
            "name": graph.name, "params": [self._type(p.type) for p in graph.params], "nodes": nodes,
            "outputs": [numbers[v] for v in graph.outputs],
        }  # fmt: skip

    def value(self, value: Any, what: str) -> Any:
        """A Python value: an attribute of a node, or a leaf of the inputs or outputs."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is complex:
            return {"complex": [self.value(value.real, what), self.value(value.imag, what)]}
        if kind is tuple:
            return {"tuple": [self.value(v, what) for v in value]}
        if kind is DType:
            return {"dtype": value.name}
        if kind is TensorType:
            return {"type": self._type(value)}
        if kind is slice:
            return {"slice": [self.value(v, what) for v in (value.start, value.stop, value.step)]}
        if value is Ellipsis:
            return {"ellipsis": True}
        if kind is Primitive:
            return {"operator": value.name}
        if kind is Graph:
            return {"graph": self._graphs[value]}
        if kind is ArrayConstant:
            return {"array": self._constant(value)}
        if isinstance(value, np.generic) and value.dtype in dtypes._BY_NP:
            return {"scalar": self._constant(ArrayConstant(np.asarray(value)))}
        if isinstance(value, np.ndarray) and value.dtype in dtypes._BY_NP:
            return {"ndarray": self._constant(ArrayConstant(value))}
        if kind is Failure:
            return {"failure": self._failure(value)}
        return self._refuse(f"{what}: {'Python code' if callable(value) else f'an object of type {kind.__name__}'}")

    def _failure(self, failure: Failure) -> dict[str, Any]:
        error = failure.error
        if getattr(builtins, type(error).__name__, None) is not type(error):
            self._refuse(
                f"an error of the class {type(error).__name__}, which would have to be defined where it is loaded",
                hint="raise one of Python's own exceptions instead",
            )
        return {
            "error": type(error).__name__, "args": [self.value(a, "an argument of an error") for a in error.args],
            "location": self._location(failure.location), "shown": list(failure.shown),
        }  # fmt: skip

    def _constant(self, held: ArrayConstant) -> int:
        key = held if held.array.nbytes <= _COMPARED_BYTES else id(held.array)  # kept in `arrays`
        if key not in self._array_numbers:
            if held.array.dtype not in dtypes._BY_NP:
                self._refuse(f"an array of {held.array.dtype}")
            self._array_numbers[key] = self._array(held.array)
        return self._array_numbers[key]

    def _array(self, array: Array) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1

    def _state(self, spec: StateSpec) -> dict[str, Any]:
        if spec.kind == RANDOM:
            return {"kind": RANDOM, "type": self._type(spec.type), "stream": spec.stream}
        assert spec.value is not None
        row = {"kind": spec.kind, "name": spec.name, "array": self._array(np.asarray(spec.value._value))}
        return {**row, "requires_grad": spec.requires_grad} if spec.kind == PARAMETER else row

    def _type(self, type_: TensorType) -> int:
        return self._types.setdefault(type_, len(self._types))

    def _location(self, location: SourceLocation | None) -> int | None:
        if location is None:
            return None
        file = location.file if location.file.startswith("<") else f"<{os.path.basename(location.file)}>"
        return self._locations.setdefault((file, location.line, location.function), len(self._locations))

    def _tree(self, treedef: tree.TreeDef, what: str) -> Any:
        if treedef is tree.LEAF:
            return "*"
        kind, parts = treedef.kind, [self._tree(c, what) for c in treedef.children]
        if kind is tuple or kind is list:
            return {kind.__name__: parts}
        if kind is dict or kind is collections.OrderedDict:
            return {kind.__name__: parts, "keys": [self.value(k, "a key of a dict") for k in treedef.spec]}
        if issubclass(kind, dict):
            self._refuse(f"{what}: a {kind.__name__}", hint="use a dict")
        shape = "namedtuple" if issubclass(kind, tuple) else "dataclass"
        return {shape: parts, "name": kind.__name__, "keys": list(treedef.spec)}

    def _refuse(self, what: str, hint: str | None = None) -> NoReturn:
        node = self._node
        raise UnsupportedError(
            self._where, message=f"a file cannot hold {what}",
            hint=hint or "leave it out of the network that is exported",
            location=node.location if node is not None else None,
        )  # fmt: skip


def _held(value: Any) -> list[Graph]:
    if type(value) is Graph:
        return [value]
    if type(value) is tuple:
        return [g for v in value for g in _held(v)]
    return []


class ProgramReader:
    """Makes a program of JSON values and a function that gives the array of a number.

    Args:
        data: what :class:`ProgramWriter` made.
        arrays: dtype and shape of each array.
        read: the array of a number.
        refuse: raises the error of a damaged file, given the words.
    """

    def __init__(
        self, data: Any, arrays: list[TensorType], read: Callable[[int], Array], refuse: Callable[[str], NoReturn]
    ) -> None:
        self._data, self._arrays, self._read, self._refuse = data, arrays, read, refuse
        self._types: list[TensorType] = []
        self._locations: list[SourceLocation] = []
        self._graphs: list[Graph] = []
        self._constants: dict[int, ArrayConstant] = {}

    def program(self) -> Program:
        """The whole program."""
        data = self._data
        if not isinstance(data, dict):
            self._refuse("the description is not an object")
        self._types = [self._type_row(row) for row in self._list(data, "types")]
        self._locations = [self._location_row(row) for row in self._list(data, "locations")]
        for row in self._list(data, "graphs"):
            self._graphs.append(self._graph(row))
        graph = self._graphs[self._number(data.get("graph"), len(self._graphs), "a graph")]
        names = [self._text(x) for x in self._list(data, "input_names")]
        in_tree, out_tree = self._tree(data.get("in_tree"), 0), self._tree(data.get("out_tree"), 0)
        inputs = [self._leaf(row) for row in self._list(data, "inputs")]
        outputs = [None if row is None else self._fixed(row) for row in self._list(data, "outputs")]
        state = [self._state(row) for row in self._list(data, "state")]
        tensors = [x for x in inputs if not isinstance(x, Fixed)]
        state_writes = [self._number(i, len(state), "a state") for i in self._list(data, "state_writes")]
        input_writes = [self._number(i, len(tensors), "an input") for i in self._list(data, "input_writes")]
        info = data.get("user_info")
        if not isinstance(info, dict) or not all(isinstance(v, str) for v in info.values()):
            self._refuse("the notes are not texts")
        if in_tree.kind is not tuple or len(in_tree.children) != len(names) or in_tree.num_leaves != len(inputs):
            self._refuse("the inputs do not fit their nest")
        if out_tree.num_leaves != len(outputs):
            self._refuse("the outputs do not fit their nest")
        written = [state[i].type for i in state_writes] + [tensors[i] for i in input_writes]
        n_out = sum(x is None for x in outputs)
        if graph.input_types != (*tensors, *[s.type for s in state]) or graph.output_types[n_out:] != tuple(written):
            self._refuse("the graph does not have the inputs and outputs that are described")
        taken = [s.name for s in state if s.kind != RANDOM]
        if len(set(taken)) != len(taken):
            self._refuse("two parameters have one name")
        return Program(
            name=self._text(data.get("name")), graph=graph, input_names=names, in_tree=in_tree, inputs=inputs,
            out_tree=out_tree, outputs=outputs, state=state, state_writes=state_writes, input_writes=input_writes,
            training=self._bool(data.get("training")), producer_name=self._text(data.get("producer_name")),
            producer_version=self._text(data.get("producer_version")), user_info=info,
        )  # fmt: skip

    # the parts

    def _graph(self, row: Any) -> Graph:
        if not isinstance(row, dict):
            self._refuse("a graph is not an object")
        graph = Graph(self._text(row.get("name")))
        values = [graph.add_param(self._type(i)) for i in self._list(row, "params")]
        for node in self._list(row, "nodes"):
            values += self._node(graph, node, values)
        graph.outputs = [values[self._number(i, len(values), "a value")] for i in self._list(row, "outputs")]
        return graph

    def _node(self, graph: Graph, row: Any, values: list[Value]) -> tuple[Value, ...]:
        if not isinstance(row, list) or len(row) != 5 or not isinstance(row[1], list) or not isinstance(row[2], dict):
            self._refuse("a node is not made of its five parts")
        op = self._operator(row[0])
        inputs = tuple([values[self._number(i, len(values), "a value")] for i in row[1]])
        attrs = {name: self.value(v) for name, v in row[2].items()}
        location = None if row[4] is None else self._locations[self._number(row[4], len(self._locations), "a line")]
        try:
            node = graph.add_node(op, inputs, attrs, location)
        except Exception as error:  # whatever a type rule makes of operands it does not know
            self._refuse(f"{op.name} does not take its operands: {str(error).partition(chr(10))[0]}")
        made = [v.type for v in node.outputs]
        if made != [self._type(i) for i in row[3]]:
            self._refuse(f"{op.name} gives {', '.join(map(str, made)) or 'nothing'}, which the file does not expect")
        return node.outputs

    def _operator(self, name: Any) -> Primitive:
        name = self._text(name)
        found = PRIMITIVES.get(name)
        if found is None and name.endswith(_DERIVED):
            base = self._operator(name[: -len(_DERIVED)])
            if base.derived_vjp:
                found = _vjp_primitive(base)
        if found is None:
            raise FileFormatError(
                "load", message=f"the operator '{name}' is not known",
                hint=f"the file was written by {self._data.get('producer_name')} "
                f"{self._data.get('producer_version')}; load it with that version or a later one",
            )  # fmt: skip
        return found

    def value(self, row: Any, depth: int = 0) -> Any:
        """The Python value of an attribute or leaf."""
        if row is None or type(row) in (bool, int, float, str):
            return row
        if depth > _MAX_DEPTH:
            self._refuse("values are nested too deeply")
        if not isinstance(row, dict) or len(row) != 1:
            self._refuse("a value is of no known kind")
        ((kind, held),) = row.items()
        reader = _KINDS.get(kind)
        if reader is None:
            self._refuse(f"a value is of the unknown kind '{kind}'")
        return reader(self, held, depth + 1)

    def _values(self, rows: Any, depth: int, count: int | None = None) -> list[Any]:
        if not isinstance(rows, list) or (count is not None and len(rows) != count):
            self._refuse("a value does not have the parts of its kind")
        return [self.value(v, depth) for v in rows]

    def _float(self, held: Any, depth: int) -> float:
        if held not in ("inf", "-inf", "nan"):
            self._refuse("a float is neither infinite nor NaN")
        return float(held)

    def _complex(self, held: Any, depth: int) -> complex:
        real, imag = self._values(held, depth, 2)
        if type(real) is not float or type(imag) is not float:
            self._refuse("a part of a complex number is not a float")
        return complex(real, imag)

    def _dtype(self, held: Any, depth: int = 0) -> DType:
        found = dtypes._BY_NAME.get(self._text(held))
        if found is None:
            self._refuse(f"'{held}' is no dtype")
        return found

    def _held_graph(self, held: Any, depth: int) -> Graph:
        return self._graphs[self._number(held, len(self._graphs), "a graph")]

    def _constant(self, held: Any, depth: int) -> ArrayConstant:
        number = self._number(held, len(self._arrays), "an array")
        if number not in self._constants:
            self._constants[number] = ArrayConstant(self._read(number))
        return self._constants[number]

    def _failure(self, held: Any, depth: int) -> Failure:
        if not isinstance(held, dict):
            self._refuse("an error is not an object")
        kind = getattr(builtins, self._text(held.get("error")), None)
        if not isinstance(kind, type) or not issubclass(kind, Exception):
            self._refuse(f"'{held.get('error')}' is no exception")
        at = held.get("location")
        location = None if at is None else self._locations[self._number(at, len(self._locations), "a line")]
        failure = Failure(kind(*self._values(held.get("args"), depth)), location)
        failure.shown = tuple([self._text(name) for name in self._list(held, "shown")])
        return failure

    def _state(self, row: Any) -> StateSpec:
        kind = row.get("kind") if isinstance(row, dict) else None
        if kind == RANDOM:
            stream = self._number(row.get("stream"), 1 << 62, "a stream")
            type_ = self._type(row.get("type"))
            if type_ != TensorType(dtypes.uint32, (2,)):
                self._refuse(f"a random stream is a {type_}")
            return StateSpec(RANDOM, "random", type_, stream=stream)
        if kind not in (PARAMETER, BUFFER):
            self._refuse("a state is neither a parameter nor a buffer nor random")
        number = self._number(row.get("array"), len(self._arrays), "an array")
        requires_grad = self._bool(row.get("requires_grad")) if kind == PARAMETER else False
        return StateSpec(kind, self._text(row.get("name")), self._arrays[number], self._tensor(number), requires_grad)

    def _tensor(self, number: int) -> Tensor:
        import jax

        return wrap(jax.device_put(self._read(number)))  # shares the memory of the array, which nobody else holds

    def _leaf(self, row: Any) -> TensorType | Fixed:
        if isinstance(row, dict) and "type" in row:
            return self._type(row["type"])
        return self._fixed(row)

    def _fixed(self, row: Any) -> Fixed:
        if not isinstance(row, dict) or "fixed" not in row:
            self._refuse("an input or output is neither a tensor nor a value")
        return Fixed(self.value(row["fixed"]))

    def _tree(self, row: Any, depth: int) -> tree.TreeDef:
        if row == "*":
            return tree.LEAF
        if not isinstance(row, dict) or depth > _MAX_DEPTH:
            self._refuse("a nest is of no known kind")
        kind = next((k for k in _TREES if k in row), None)
        if kind is None:
            self._refuse("a nest is of no known kind")
        parts = tuple([self._tree(r, depth + 1) for r in self._list(row, kind)])
        if kind in ("tuple", "list"):
            return tree.TreeDef(_TREES[kind], None, parts)
        keys = tuple([self.value(k) for k in self._list(row, "keys")])
        if len(keys) != len(parts) or len(set(keys)) != len(keys):
            self._refuse("a nest does not have one name for each part")
        if kind in ("dict", "OrderedDict"):
            return tree.TreeDef(_TREES[kind], keys, parts)
        name = self._text(row.get("name"))
        for k in (name, *keys):
            if not isinstance(k, str) or not k.isidentifier() or keyword.iskeyword(k) or k.startswith("__"):
                self._refuse(f"{k!r:.40} is no name of a field")
        return tree.TreeDef(_made_class(kind, name, keys), keys, parts)

    def _type_row(self, row: Any) -> TensorType:
        if not isinstance(row, list) or len(row) != 2 or not isinstance(row[1], list) or len(row[1]) > _MAX_RANK:
            self._refuse("a type is not a dtype and a shape")
        return TensorType(self._dtype(row[0]), tuple([self._number(n, _MAX_ELEMENTS, "a length") for n in row[1]]))

    def _location_row(self, row: Any) -> SourceLocation:
        if not isinstance(row, list) or len(row) != 3 or type(row[1]) is not int:
            self._refuse("a line is not a file, a number and a function")
        return SourceLocation(self._text(row[0]), row[1], self._text(row[2]))

    def _type(self, number: Any) -> TensorType:
        return self._types[self._number(number, len(self._types), "a type")]

    def _number(self, value: Any, below: int, what: str) -> int:
        if type(value) is not int or not 0 <= value < below:
            self._refuse(f"{value!r:.40} does not name {what}")
        return value

    def _text(self, value: Any) -> str:
        if not isinstance(value, str):
            self._refuse(f"{value!r:.40} is not a text")
        return value

    def _bool(self, value: Any) -> bool:
        if not isinstance(value, bool):
            self._refuse(f"{value!r:.40} is neither true nor false")
        return value

    def _list(self, row: dict[str, Any], name: str) -> list[Any]:
        found = row.get(name)
        if not isinstance(found, list):
            self._refuse(f"'{name}' is not a list")
        return found


_KINDS: Final[dict[str, Callable[[ProgramReader, Any, int], Any]]] = {
    "float": ProgramReader._float,
    "complex": ProgramReader._complex,
    "tuple": lambda r, held, depth: tuple(r._values(held, depth)),
    "dtype": ProgramReader._dtype,
    "type": lambda r, held, depth: r._type(held),
    "slice": lambda r, held, depth: slice(*r._values(held, depth, 3)),
    "ellipsis": lambda r, held, depth: ...,
    "operator": lambda r, held, depth: r._operator(held),
    "graph": ProgramReader._held_graph,
    "array": ProgramReader._constant,
    "scalar": lambda r, held, depth: r._constant(held, depth).array[()],
    "ndarray": lambda r, held, depth: r._constant(held, depth).array.copy(),
    "failure": ProgramReader._failure,
}
_TREES: Final[dict[str, Any]] = {
    "tuple": tuple, "list": list, "dict": dict, "OrderedDict": collections.OrderedDict, "namedtuple": None,
    "dataclass": None,
}  # fmt: skip


@functools.cache
def _made_class(kind: str, name: str, fields: tuple[str, ...]) -> type:
    """A class for a named tuple or dataclass whose own class is not there; one for each name and fields."""
    if kind == "namedtuple":
        return collections.namedtuple(name, fields)
    return dataclasses.make_dataclass(name, fields)
