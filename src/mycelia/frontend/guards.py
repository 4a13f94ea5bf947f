"""What a staged program read from the outside, to be compared before its graph is used again.

Staging bakes in Python values. Everything read from outside the program is noted where it is read: attributes
(the rewritten code asks :mod:`mycelia.frontend.reads`), globals, closure cells, defaults and code of the functions
that were converted, and the whole content of lists, dicts, sets, dataclasses and arrays found there. A note is a
:class:`Slot` (a name in a mapping) or a :class:`Content` (a container with the items it had).

Checking compares identities: one pass over the slots and containers, nothing is copied. What belongs to a Cell
is compared only after some Cell has been changed (``tensor.epoch``). When an identity differs, the values are
compared; an equal value is taken for the old one, and so is another tensor of the same type: the graph's input
is then read from the new tensor. Only objects that were there before the staging are noted; what the program
makes and changes itself is no business of the guards.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from mycelia.core import context
from mycelia.core.errors import SourceLocation
from mycelia.frontend.implicit import original
from mycelia.frontend.noted import (
    ABSENT,
    ATOMS,
    INTERNAL,
    SETS,
    AttributeSlot,
    CellContent,
    CellSlot,
    Change,
    Content,
    Slot,
    cell_value,
    equal_nests,
    global_names,
    is_cell,
    is_engine,
    same_array,
    same_value,
    static_attribute,
)
from mycelia.ir.graph import Value
from mycelia.tensor.scalar import Scalar, ScalarSession
from mycelia.tensor.tensor import Parameter, Tensor, epoch

_CONTEXT = ("mode", "device_target", "device_id", "deterministic", "jit_syntax_level")


class Guards:
    """The outside reads of one staged graph.

    Args:
        varying: keys of slots whose numbers are to be inputs (:mod:`mycelia.tensor.scalar`), with their owners.
    """

    def __init__(self, varying: dict[Any, Any] | None = None) -> None:
        self.varying = {} if varying is None else varying
        self.session = ScalarSession()
        self.scalars: dict[Any, Scalar] = {}
        self.root_slots: list[Any] = []
        self.changes_state = False  # the program changed something that it had read, or wrote an attribute
        self._outside: dict[int, Any] = {}
        self._paths: dict[int, str] = {}
        self._slots: dict[Any, Slot] = {}
        self._always: list[Slot] = []
        self._of_cells: list[Slot] = []
        self._others: list[Slot] = []
        self._contents: list[Content] = []
        self._content_of: dict[int, Content] = {}
        self._cell_contents: list[CellContent] = []
        self._functions: dict[int, tuple[FunctionType, CodeType, Any, Any]] = {}
        self._arrays: list[list[Any]] = []
        self._values: dict[int, tuple[Tensor, Any]] = {}
        self._parameters: dict[int, tuple[Parameter, bool]] = {}
        self._observed: dict[int, tuple[Any, Callable[[Any], Any], Any]] = {}
        self._types: list[tuple[Tensor, Any, tuple[int, ...]]] = []
        self._patched: list[Callable[[], None]] = []
        self._homes: dict[tuple[int, str], tuple[int, str]] = {}
        self._free: set[tuple[int, str]] = set()
        self._numbers: list[Slot] = []
        self._number_slots: dict[Any, Slot] = {}
        self.pinned: dict[Any, SourceLocation | None] = {}
        self._now_held: list[tuple[Slot, Any]] = []
        self._moved: list[tuple[Content, Any]] = []
        self._writes = False
        self._epoch = -1
        self._replaced: dict[int, Tensor] = {}
        for name in _CONTEXT:
            self._note(context._options, name, context._options.get(name), f"context option '{name}'", "context")

    # -- noting --------------------------------------------------------------------------------------------

    def _note(
        self, mapping: Any, name: str, held: Any, path: str, kind: str, owner: Any = None,
        into: list[Slot] | None = None, cls: type[Slot] = Slot,
    ) -> None:  # fmt: skip
        owner = mapping if owner is None else owner
        key = (id(owner), name, cls)
        if key in self._slots or (isinstance(held, Tensor) and type(held._value) is Value):
            return
        slot = self._slots[key] = cls(mapping, name, held, path, kind, owner)
        (into if into is not None else self._others if mapping is None else self._always).append(slot)

    def _vary(self, key: Any, value: Any) -> Any:
        """The scalar that stands for the number of a slot, if it is one that varies."""
        if type(value) not in (int, float) or key not in self.varying:
            return value
        found = self.scalars.get(key)
        if found is None:
            found = self.scalars[key] = self.session.root(value)
            self.root_slots.append(key)
        return found

    def enter(self, value: Any, path: str) -> None:
        """A value that was there before the staging has been read: its content is noted, and reads from it will be."""
        if type(value) in ATOMS or type(value) is Scalar or id(value) in self._outside:
            return
        if isinstance(value, enum.Enum):
            return
        if isinstance(value, Tensor):
            if type(value._value) is Value:
                return
            if isinstance(value, Parameter):
                self._parameters[id(value)] = (value, value.requires_grad)
        self._outside[id(value)] = value
        self._paths[id(value)] = path
        if isinstance(value, tuple):
            names = getattr(value, "_fields", None)
            for i, v in enumerate(value):
                self.enter(v, f"{path}.{names[i]}" if names else f"{path}[{i}]")
        elif isinstance(value, (Tensor, ModuleType, type, *SETS)):
            if isinstance(value, set):
                self._content(value, path)
        elif isinstance(value, (list, deque)):
            self._content(value, path)
            for i, v in enumerate(value):
                self.enter(v, f"{path}[{i}]")
        elif isinstance(value, dict):
            self._content(value, path)
            for k, v in value.items():
                self.enter(v, f"{path}[{k!r}]")
        elif isinstance(value, np.ndarray):
            if value.flags.writeable or value.base is not None:
                self._arrays.append([value, value.copy(), path])
        elif isinstance(value, FunctionType):
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
                self.enter(cell_value(cell), name)
            if "__wrapped__" in value.__dict__:
                self.enter(value.__dict__["__wrapped__"], path)
        elif isinstance(value, MethodType):
            self.enter(value.__func__, path)
            self.enter(value.__self__, path.rpartition(".")[0] or path)
        elif isinstance(value, functools.partial):
            self.enter(value.func, f"{path}.func")
            self.enter(value.args, f"{path}.args")
            self.enter(value.keywords, f"{path}.keywords")
        elif is_cell(value):
            if is_engine(type(value).__module__):
                self.take_whole(value, path)
        elif dataclasses.is_dataclass(value) or isinstance(value, types.SimpleNamespace):
            self.take_whole(value, path)
        elif "__wrapped__" in getattr(value, "__dict__", ()):
            self.enter(value.__wrapped__, path)
        elif is_engine(type(value).__module__) and hasattr(value, "fn"):
            self.enter(value.fn, path)

    def _content(self, value: Any, path: str) -> None:
        content = Content(value, path)
        self._contents.append(content)
        self._content_of[id(value)] = content

    def take_whole(self, obj: Any, path: str) -> None:
        """Note everything an object holds: code that tells nothing of its reads works on it."""
        self._outside[id(obj)] = obj
        self._paths.setdefault(id(obj), path)
        if id(obj) in self._content_of:
            return
        if is_cell(obj):
            content: Content = CellContent(obj, path)
            self._cell_contents.append(content)  # type: ignore[arg-type]
        else:
            content = Content(obj, path)
            self._contents.append(content)
        self._content_of[id(obj)] = content
        for name, value in zip(content.keys, content.items, strict=True):
            if name not in INTERNAL:
                self.enter(value, f"{path}.{name}")

    def enter_cell(self, cell: Any) -> None:
        """A Cell is called while staging."""
        self.enter(cell, self._paths.get(id(cell), "self"))
        bases = type(cell).__mro__
        base = next(i for i, k in enumerate(bases) if k.__name__ == "Cell" and k.__module__ == "mycelia.nn.cell")
        if any(is_engine(k.__module__) for k in bases[:base]):
            self.take_whole(cell, self._paths[id(cell)])
        for name in ("construct", "bprop"):
            self._note_class(type(cell), name, self._paths[id(cell)], cell.__dict__, self._of_cells)
        self._note(cell.__dict__, "_special", cell.__dict__.get("_special"), "hooks", "Cell", cell, self._of_cells)
        special = cell.__dict__.get("_special")
        if special is not None:
            self.watch_object(special, type(special).observed)

    def read(self, obj: Any, name: str, value: Any) -> Any:
        """Attribute ``name`` of ``obj`` has been read as ``value``; gives what to go on with."""
        if type(value) is Scalar:
            return value
        if id(obj) not in self._outside:
            if isinstance(obj, ModuleType):
                if is_engine(obj.__name__) or getattr(obj, "__file__", None) is None:
                    return value
                self._paths.setdefault(id(obj), obj.__name__)
            elif isinstance(obj, type):
                if is_engine(obj.__module__) or "<locals>" in obj.__qualname__:
                    return value
                self._paths.setdefault(id(obj), obj.__qualname__)
            else:
                return value
        key = (id(obj), name)
        if (id(obj), name, Slot) not in self._slots and (id(obj), name, AttributeSlot) not in self._slots:
            self._read_first(obj, name, value)
        return self._vary(self._homes.get(key, key), value)

    def read_whole(self, obj: Any) -> None:
        """Any attribute of ``obj``, and of what it holds, may be read."""
        stack, seen = [obj], set[int]()
        while stack:
            top = stack.pop()
            if id(top) not in self._outside or id(top) in seen:
                continue
            seen.add(id(top))
            if isinstance(top, (tuple, list)):
                stack.extend(top)
            elif isinstance(top, dict):
                stack.extend(top.values())
            elif isinstance(top, (Tensor, FunctionType, ModuleType)):
                continue
            elif type(getattr(top, "__dict__", None)) is dict:
                self.take_whole(top, self._paths.get(id(top), type(top).__name__))
                stack.extend(top.__dict__.values())

    def missed(self, obj: Any, name: str) -> None:
        """``obj`` was asked for an attribute that it lacks."""
        own = getattr(obj, "__dict__", None)
        if id(obj) in self._outside and type(own) is dict:
            path = self._paths.get(id(obj), type(obj).__name__)
            self._note_class(type(obj), name, path, own, self._of_cells if is_cell(obj) else None)

    def _read_first(self, obj: Any, name: str, value: Any) -> None:
        path = f"{self._paths.get(id(obj), type(obj).__name__)}.{name}"
        if isinstance(obj, ModuleType):
            if is_engine(obj.__name__):
                return
            self._note(obj.__dict__, name, value, path, "global")
            self._homes[(id(obj), name)] = id(obj.__dict__), name
            self.enter(value, path)
            return
        if isinstance(obj, type):
            found = self._note_class(obj, name, path.rpartition(".")[0])
            if found is not None:
                self._homes[(id(obj), name)] = found
            self.enter(value, path)
            return
        own = getattr(obj, "__dict__", None)
        into = self._of_cells if is_cell(obj) else None
        if type(own) is dict and name in own and not isinstance(getattr(type(obj), name, None), property):
            self._note(own, name, value, path, "attribute", obj, into)
            self.enter(value, path)
            return
        static, home = static_attribute(type(obj), name)
        if static is ABSENT:
            if isinstance(value, (*ATOMS, Tensor)):  # __getattr__ made it
                self._note(None, name, value, path, "attribute", obj, cls=AttributeSlot)
            if own is not None:
                self.take_whole(obj, self._paths.get(id(obj), type(obj).__name__))
            return
        if home is not None and is_engine(home.__module__):
            if is_cell(obj):
                for where, cell in obj.cells_and_names(self._paths.get(id(obj), "")):
                    self.take_whole(cell, where)
            return
        if isinstance(static, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            self._note(None, name, value, path, "attribute", obj, cls=AttributeSlot)
            self.enter(value, path)
            return
        found = self._note_class(type(obj), name, path.rpartition(".")[0], own, into)
        if found is not None:
            self._homes[(id(obj), name)] = found
        getter = getattr(static, "fget", None) or getattr(static, "func", None)
        if getter is not None or not hasattr(static, "__get__"):
            if getter is not None:
                self.enter(getter, path)
            self.enter(value, path)
        else:
            self.enter(getattr(static, "__func__", static), path)

    def _note_class(
        self, cls: type, name: str, path: str, own: dict[str, Any] | None = None, into: list[Slot] | None = None
    ) -> tuple[int, str] | None:
        if own is not None and name not in own:
            self._note(own, name, ABSENT, f"{path}.{name}", "attribute", into=into)
        for k in cls.__mro__:
            if is_engine(k.__module__):
                break
            held = k.__dict__.get(name, ABSENT)
            self._note(k.__dict__, name, held, f"{k.__qualname__}.{name}", "class attribute", k)
            if held is not ABSENT:
                self.enter(getattr(held, "__func__", held), f"{k.__qualname__}.{name}")
                return id(k), name
        return None

    def watch_function(self, fn: FunctionType) -> None:
        """Note the globals a function names, and if it was there before the staging its cells, defaults and code."""
        scope = fn.__globals__
        for name in global_names(fn.__code__):
            value = scope.get(name, ABSENT)
            if type(value) is Scalar:
                continue
            self._note(scope, name, value, f"'{name}'", "global")
            if value is not ABSENT:
                self.enter(value, name)
                varied = self._vary((id(scope), name), value)
                if varied is not value:
                    scope[name] = varied
                    self._patched.append(functools.partial(scope.__setitem__, name, value))
        if ("<locals>" in fn.__qualname__ and id(fn) not in self._outside) or id(fn) in self._functions:
            return
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
            value = cell_value(cell)
            if type(value) is Scalar or (
                isinstance(value, ModuleType) and value.__name__ == "mycelia.frontend.runtime"
            ):
                continue
            self._note(None, name, value, f"'{name}'", "closed-over variable", cell, cls=CellSlot)
            self.enter(value, name)
            varied = self._vary((id(cell), name), value)
            if varied is not value:
                cell.cell_contents = varied
                self._patched.append(functools.partial(setattr, cell, "cell_contents", value))
        self._functions[id(fn)] = (fn, fn.__code__, fn.__defaults__, fn.__kwdefaults__)
        self.enter(fn.__defaults__, f"defaults of {fn.__name__}")
        self.enter(fn.__kwdefaults__, f"defaults of {fn.__name__}")

    def watch_object(self, obj: Any, state: Callable[[Any], Any]) -> None:
        """Note ``state(obj)``, a comparable description; compared again when some Cell has changed."""
        if id(obj) not in self._observed:
            self._observed[id(obj)] = (obj, state, state(obj))

    def watch_value(self, tensor: Tensor) -> None:
        """Note that the data of a tensor from outside were read as a Python value."""
        self._values.setdefault(id(tensor), (tensor, tensor._value))

    def argument(self, index: int, value: Any) -> Any:
        """The number of an argument, or the scalar that stands for it."""
        return self._vary(("argument", index), value)

    def wrote(self, owner: Any) -> None:
        """The program sets an attribute, item or variable of ``owner``."""
        if id(owner) in self._outside or isinstance(owner, (CellType, type, ModuleType)):
            self._writes = True

    def unpatch(self) -> None:
        """Put the numbers back for which scalars were put into globals and cells."""
        for undo in reversed(self._patched):
            undo()
        self._patched.clear()
        self.session.open = False

    def seal(self, captured: Iterable[Tensor] = ()) -> None:
        """The staging is over."""
        for t in captured:
            self._types.append((t, t._value.dtype, t._value.shape))
            if isinstance(t, Parameter):
                self._parameters.setdefault(id(t), (t, t.requires_grad))
        self.changes_state = self._writes or any(True for _ in self.changes())
        self._replaced = {}
        self.pinned = {key: self.session.pinned[i] for i, key in enumerate(self.root_slots) if i in self.session.pinned}
        self._free = {key for key in self.root_slots if key not in self.pinned}
        self._numbers = [s for s in self._slots.values() if s.key in self._free]
        self._number_slots = {s.key: s for s in self._slots.values() if s.key in self.scalars}
        for slots in (self._always, self._others, self._of_cells):
            slots[:] = [s for s in slots if s.key not in self._free]
        self._epoch = epoch() if not self.changes_state else -1

    def numbers(self, arguments: tuple[Any, ...]) -> list[Any]:
        """The numbers that the scalars stand for in a call with these numeric arguments."""
        return [
            arguments[key[1]] if key[0] == "argument" else self._number_slots[key].now() for key in self.root_slots
        ]  # fmt: skip

    # -- checking ------------------------------------------------------------------------------------------

    def hold(self) -> bool:
        """Whether the graph serves; :meth:`take_replaced` has the tensors that took the place of others."""
        for slot in self._always:
            if slot.mapping.get(slot.name, ABSENT) is not slot.held:
                return self._compare()
        for slot in self._others:
            if slot.now() is not slot.held:
                return self._compare()
        for slot in self._numbers:
            if type(slot.now()) is not type(slot.held):
                return False
        for content in self._contents:
            if not content.unchanged():
                return self._compare()
        for fn, code, defaults, keywords in self._functions.values():
            if fn.__code__ is not code or fn.__defaults__ is not defaults or fn.__kwdefaults__ is not keywords:
                return self._compare()
        for array, copy, _ in self._arrays:
            if not same_array(array, copy):
                return self._compare()
        for tensor, value in self._values.values():
            if tensor._value is not value:
                return self._compare()
        if epoch() != self._epoch:
            now = epoch()
            for slot in self._of_cells:
                if slot.mapping.get(slot.name, ABSENT) is not slot.held:
                    return self._compare()
            for whole in self._cell_contents:
                if not whole.unchanged():
                    return self._compare()
            if any(self._special_changes()):
                return False
            self._epoch = now
        return True

    def _compare(self) -> bool:
        if any(True for _ in self.changes()):
            return False
        self._settle()
        return True

    @property
    def replaced(self) -> bool:
        """Whether other tensors have taken the place of those that were read."""
        return bool(self._replaced)

    def is_free(self, key: Any) -> bool:
        """Whether the number of a slot is an input, whatever its value."""
        return key in self._free

    def path_of(self, key: Any) -> str:
        """What the user calls a slot."""
        return self._number_slots[key].path

    def take_replaced(self) -> dict[int, Tensor]:
        """After :meth:`hold`: by the id of a tensor that was read, the one that is there now."""
        taken, self._replaced = self._replaced, {}
        return taken

    def types_hold(self) -> bool:
        """Whether the captured tensors have the types they had."""
        return all(t._value.shape == shape and t._value.dtype == dtype for t, dtype, shape in self._types)

    def changes(self) -> Iterable[Change]:
        """What differs, one :class:`Change` each."""
        self._replaced = {}
        self._moved = []
        self._now_held = now_held = []
        for slot in chain(self._always, self._others, self._of_cells, self._numbers):
            now = slot.now()
            if now is not slot.held:
                if slot.key in self._free and type(now) is type(slot.held):
                    continue
                found = self._differs(slot.held, now, slot.path, slot.kind, slot.location)
                if found is not None:
                    yield dataclasses.replace(found, slot=slot) if found.before is slot.held else found
                else:
                    now_held.append((slot, now))
        for content in chain(self._contents, self._cell_contents):
            if not content.unchanged():
                yield from self._content_changes(content, content.obj)
        for fn, code, defaults, keywords in self._functions.values():
            if fn.__code__ is not code:
                yield Change(f"code of {fn.__qualname__}", "function", ABSENT, ABSENT)
            for before, after in ((defaults, fn.__defaults__), (keywords, fn.__kwdefaults__)):
                if before is not after:
                    found = self._differs(before, after, f"defaults of {fn.__qualname__}", "function", None)
                    if found is not None:
                        yield found
        for array, copy, path in self._arrays:
            if not same_array(array, copy):
                yield Change(path, "array", copy, array)
        for key, (tensor, value) in list(self._values.items()):
            if tensor._value is not value:
                if not same_array(np.asarray(tensor._value), np.asarray(value)):
                    yield Change(self._paths.get(key, "a tensor"), "value used in Python", value, tensor._value)
                else:
                    self._values[key] = (tensor, tensor._value)
        yield from self._special_changes()
        if self._replaced:
            yield from self._alias_changes()

    def _special_changes(self) -> Iterable[Change]:
        for p, required in self._parameters.values():
            if p._requires_grad is not required:
                yield Change(f"{p.name}.requires_grad", "attribute", required, p._requires_grad)
        for obj, state, held in self._observed.values():
            now = state(obj)
            if now is not held and not equal_nests(now, held):
                yield Change(f"the settings of a {type(obj).__name__}", "attribute", held, now)
        for t, dtype, shape in self._types:
            value = self._replaced.get(id(t), t)._value
            if value.shape != shape or value.dtype != dtype:
                before = f"{dtype}{list(shape)}"
                yield Change(self._name_of(t), "tensor", before, f"{value.dtype}{list(value.shape)}")

    def _name_of(self, tensor: Tensor) -> str:
        found = self._paths.get(id(tensor))
        return found or (f"parameter '{tensor.name}'" if isinstance(tensor, Parameter) else "a tensor")

    def _content_changes(self, content: Content, obj: Any) -> Iterable[Change]:
        """How ``obj`` differs from what a container held."""
        was = content.obj
        content.obj = obj
        try:
            keys, items = content.read()
        finally:
            content.obj = was
        path, at = content.path, content.location
        if isinstance(items, frozenset):
            if items != content.items:
                yield Change(path, "set", set(content.items), set(items), at)
            return
        if content.keys is not None:
            skipped = INTERNAL if isinstance(content, CellContent) else frozenset[str]()
            before = {k: v for k, v in zip(content.keys, content.items, strict=True) if k not in skipped}
            after = {k: v for k, v in zip(keys, items, strict=True) if k not in skipped}
            if skipped:
                after = {k: v for k, v in after.items() if not k.startswith("_jit_") or k in before}
            pattern = "{}[{!r}]" if isinstance(obj, dict) else "{}.{}"
            for k in {**before, **after}:
                a, b = before.get(k, ABSENT), after.get(k, ABSENT)
                if a is not b and (id(obj), k, Slot) not in self._slots:
                    found = self._differs(a, b, pattern.format(path, k), "item", at)
                    if found is not None:
                        yield found
            if list(before) != list(after) and not skipped and before.keys() == after.keys():
                yield Change(path, "order of the keys", list(before), list(after), at)
            return
        if len(items) != len(content.items):
            yield Change(path, "list", list(content.items), list(items), at)
            return
        for i, (a, b) in enumerate(zip(content.items, items, strict=True)):
            if a is not b:
                found = self._differs(a, b, f"{path}[{i}]", "item", at)
                if found is not None:
                    yield found

    def _differs(self, a: Any, b: Any, path: str, kind: str, at: SourceLocation | None) -> Change | None:
        """How ``b`` differs from ``a``, which the program read; None if a graph staged with ``a`` serves."""
        if same_value(a, b):
            return None
        differs = Change(path, kind, a, b, at)
        if type(a) is not type(b):
            return differs
        if isinstance(a, Tensor):
            if isinstance(a, Parameter) or a._value.shape != b._value.shape or a._value.dtype != b._value.dtype:
                return differs
            if id(a) in self._values or type(b._value) is Value:
                return differs
            self._replaced[id(a)] = b
            return None
        if isinstance(a, np.ndarray):
            copy = next((c for x, c, _ in self._arrays if x is a), a)
            return None if same_array(copy, b) and not b.flags.writeable else differs
        if isinstance(a, tuple):
            if len(a) != len(b):
                return differs
            parts = (self._differs(x, y, f"{path}[{i}]", "item", at) for i, (x, y) in enumerate(zip(a, b, strict=True)))
            return next((p for p in parts if p is not None and p.before is not p.after), None)
        if isinstance(a, frozenset):
            return None if a == b else differs
        if isinstance(a, (FunctionType, property)):
            parts_a, parts_b = [(x.fget, x.fset, x.fdel) if isinstance(x, property) else (x,) for x in (a, b)]
            return None if list(map(original, parts_a)) == list(map(original, parts_b)) else differs
        if isinstance(a, MethodType):
            return None if a.__func__ is b.__func__ and a.__self__ is b.__self__ else differs
        content = self._content_of.get(id(a))
        if content is not None and not isinstance(content, CellContent) and not isinstance(a, type(self)):
            found = next(iter(self._content_changes(content, b)), None)
            if found is not None:
                return found
            self._moved.append((content, b))
            return None
        return differs

    def _alias_changes(self) -> Iterable[Change]:
        """Tensors that were one must still be one, and others others."""
        now: dict[int, int] = {}
        for a, b in self._pairs():
            held = now.setdefault(id(a), id(b))
            if held != id(b):
                yield Change(self._name_of(a), "tensor", "one tensor in two places", "two tensors")
                return
        if len(set(now.values())) != len(now):
            yield Change("tensors", "tensor", "different tensors", "one tensor in two places")

    def _pairs(self) -> Iterable[tuple[Tensor, Tensor]]:
        stack: list[tuple[Any, Any]] = [(s.held, s.now()) for s in chain(self._always, self._others, self._of_cells)]
        for c in chain(self._contents, self._cell_contents):
            if not isinstance(c.obj, set):
                stack.extend(zip(c.items, c.read()[1], strict=False))
        while stack:
            a, b = stack.pop()
            if isinstance(a, tuple) and isinstance(b, tuple):
                stack.extend(zip(a, b, strict=False))
            elif isinstance(a, Tensor) and not isinstance(a, Parameter) and isinstance(b, Tensor):
                yield a, b

    def _settle(self) -> None:
        """Take what is there now, found to be as good, for what was read."""
        for slot, now in self._now_held:
            slot.held = now
            self._outside.setdefault(id(now), now)
        for content, obj in self._moved:
            content.obj = obj
            self._content_of[id(obj)] = content
        self._moved.clear()
        for c in chain(self._contents, self._cell_contents):
            if not c.unchanged():
                c.keys, c.items = c.read()
        for i, (fn, code, _, _) in list(self._functions.items()):
            self._functions[i] = (fn, code, fn.__defaults__, fn.__kwdefaults__)
        self._types = [(self._replaced.get(id(t), t), d, s) for t, d, s in self._types]
        for t in self._replaced.values():
            self._outside.setdefault(id(t), t)
        self._epoch = epoch()
