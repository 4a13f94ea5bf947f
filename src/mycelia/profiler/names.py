"""From a part of a compiled program back to the operators and lines it came from.

While a graph is lowered, each of its nodes opens a scope ``OPERATOR.PLACE`` (``ir.evaluate``), and XLA keeps the path
of scopes in the metadata of every instruction it makes of it: ``jit(step)/scan.5/while/body/matmul.3/dot_general``.
The optimized program, as text, says which instructions a fusion holds. The places are looked up in the graph that was
lowered, whose nodes know the user's lines. A path is only believed where the operator's name agrees, since a program
that comes from the cache on disk has the paths of the graph it was first made from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from mycelia.autodiff.repeated import STEP
from mycelia.ir.graph import Graph, Node
from mycelia.profiler.recording import Line, Tape

#: The instructions that run others: their own time is that of waiting for them.
CONTROL = frozenset({"while", "conditional", "call", "async-start", "async-done"})

_INSTRUCTION = re.compile(r"^\s*(ROOT )?%?([\w.\-]+) = (.*)$")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{\s*$")
_OPCODE = re.compile(r"[\s})\]]([a-z][a-z0-9\-]*)\(")
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_CALLED = re.compile(r"(?:calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_REFERENCE = re.compile(r"%([\w.\-]+)")
_SCOPE = re.compile(r"(?:^|\()([A-Za-z_]\w*)\.(\d+)\)*$")
_BRANCH = re.compile(r"branch_(\d+)_fun")

#: What is added to the name of an operator that belongs to a derivative.
BACKWARD = " (backward)"

#: How many operators the name of a fusion spells out.
_NAMED = 3
_FAR = 6


class Operator(NamedTuple):
    """An operator at a line of the user's."""

    name: str
    line: Line | None


class Label(NamedTuple):
    """What a kernel is shown as.

    Attributes:
        name: the operator that gives the result, with others that were fused into it.
        line: its line.
        operators: all operators in it.
        node: what tells this operator of the program from others of its name and line.
        control: whether it only runs others.
    """

    name: str
    line: Line | None
    operators: tuple[Operator, ...]
    node: object
    control: bool = False


@dataclass(slots=True)
class _Instruction:
    name: str
    opcode: str
    path: str | None
    operands: list[str]
    called: list[str]
    users: list[str] = field(default_factory=list)


class ProgramText:
    """The instructions of an optimized program, read from its text."""

    def __init__(self, text: str) -> None:
        self.instructions: dict[str, _Instruction] = {}
        self.computations: dict[str, list[_Instruction]] = {}
        current: list[_Instruction] | None = None
        for line in text.splitlines():
            head = _COMPUTATION.match(line)
            if head is not None:
                current = self.computations[head.group(1)] = []
                continue
            made = _INSTRUCTION.match(line)
            if made is None or current is None:
                continue
            instruction = _instruction(made.group(2), made.group(3))
            self.instructions[instruction.name] = instruction
            current.append(instruction)
        for instruction in self.instructions.values():
            for operand in instruction.operands:
                if operand in self.instructions:
                    self.instructions[operand].users.append(instruction.name)

    def inside(self, name: str) -> list[_Instruction]:
        """The instructions of the computations that an instruction calls, and that those call."""
        found: list[_Instruction] = []
        pending, seen = list(self.instructions[name].called), set()
        while pending:
            computation = pending.pop()
            if computation not in seen:
                seen.add(computation)
                for instruction in self.computations.get(computation, ()):
                    found.append(instruction)
                    pending += instruction.called
        return found

    def near(self, name: str) -> Iterator[str]:
        """The paths of instructions that use the result or give an operand, and of those beside them, nearest first."""
        ring, seen = [name], {name}
        for _ in range(_FAR):
            ring = [n for i in ring for n in (*self.instructions[i].users, *self.instructions[i].operands)]
            ring = [n for n in dict.fromkeys(ring) if n in self.instructions and n not in seen]
            seen.update(ring)
            for found in ring:
                path = self.instructions[found].path
                if path is not None:
                    yield path


def _instruction(name: str, rest: str) -> _Instruction:
    opcode = _OPCODE.search(" " + rest)
    path = _OP_NAME.search(rest)
    called = _CALLED.findall(rest)
    for several in _BRANCHES.findall(rest):
        called += [c.strip().lstrip("%") for c in several.split(",")]
    body = rest.partition(", metadata=")[0]
    operands = [r for r in _REFERENCE.findall(body) if r not in called]
    return _Instruction(name, "" if opcode is None else opcode.group(1), path and path.group(1), operands, called)


class ProgramNames:
    """The labels of one program's parts.

    Args:
        text: the optimized program as text.
        graph: the graph that was lowered; without it operators have names, but no lines.
        tape: the steps that a compiled backward pass differentiates.
    """

    def __init__(self, text: str, graph: Graph | None, tape: Tape | None = None) -> None:
        self.text, self.graph, self.tape = ProgramText(text), graph, tape
        self._labels: dict[str, Label] = {}

    def label(self, kernel: str) -> Label:
        """The label of a part."""
        found = self._labels.get(kernel)
        if found is None:
            found = self._labels[kernel] = self._label(kernel)
        return found

    def _label(self, kernel: str) -> Label:
        instruction = self.text.instructions.get(kernel)
        if instruction is None:
            return Label(kernel, None, (), kernel)
        control = instruction.opcode in CONTROL
        inner = [] if control else self.text.inside(kernel)
        counts: Counter[tuple[Operator, object]] = Counter()
        for part in inner:
            found = self.operator(part.path)
            if found is not None:
                counts[found] += 1
        own = self.operator(instruction.path) or (counts.most_common(1)[0][0] if counts else None)
        if own is None:
            near = [found for path in self.text.near(kernel) if (found := self.operator(path)) is not None]
            of = next((found for found in near if found[0].line is not None), near[0] if near else None)
            name = instruction.opcode or kernel
            if of is None:
                shown = instruction.path.rpartition("/")[2] if instruction.path else name
                return Label(shown or name, None, (), kernel, control)
            return Label(f"{name} for {of[0].name}", of[0].line, (of[0],), kernel, control)
        operators = tuple(dict.fromkeys([own[0], *(o for (o, _), _ in counts.most_common())]))
        names = list(dict.fromkeys(o.name for o in operators))
        shown = "+".join(names[:_NAMED]) + ("+..." if len(names) > _NAMED else "")
        if self.tape is not None:
            shown += BACKWARD
        return Label(shown, own[0].line, operators, own[1], control)

    def operator(self, path: str | None) -> tuple[Operator, object] | None:
        """The innermost operator of a path of scopes, and what it is told from others by."""
        if not path:
            return None
        graphs = [] if self.graph is None else [self.graph]
        found: Node | None = None
        named: str | None = None
        branch: int | None = None
        for part in path.split("/"):
            hint = _BRANCH.search(part)
            if hint is not None:
                branch = int(hint.group(1))
            scope = _SCOPE.search(part)
            if scope is None:
                continue
            operator, place = scope.group(1), int(scope.group(2))
            named = operator
            fitting = [g for g in graphs if place < len(g.nodes) and g.nodes[place].op.name == operator]
            if not fitting:
                found, graphs = None, []
                continue
            # a conditional's branches are lowered as (false, true) and kept as (true, false)
            chosen = fitting[0] if branch is None or len(fitting) == 1 else fitting[1 - min(branch, 1)]
            found, branch = chosen.nodes[place], None
            graphs = [sub for _, sub in found.subgraphs]
        if named is None:
            return None
        if found is None:
            return Operator(named, None), path
        at = found.location
        if at is not None and at.file == STEP:
            step = self.tape[at.line] if self.tape is not None and at.line < len(self.tape) else None
            return Operator(named, None if step is None else step[1]), found
        return Operator(named, None if at is None else Line(at.file, at.line, at.function)), found
