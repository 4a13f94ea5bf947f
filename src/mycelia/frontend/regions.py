"""Regions: the stretch of a run that is staged as a branch or a loop body, and what must be undone after it.

While a branch is staged its statements really run, in the user's own frame. What they change outside is
recorded in the innermost region: tensors written in place by the builder, everything else of Python's -
attributes, list and dict contents, ``nonlocal`` and ``global`` variables - in the region's log, with the
value from before. Closing the region takes the new values down and puts the former ones back; whoever staged
the branches then merges the new values and writes them for good.

Objects that were made inside the region need no undoing. They are recognized when they are made, by their
reference count: nobody else can know them yet.

Regions of a thread form a stack. A frame (one call of a converted function) remembers how deep the stack was
when it was entered: at that depth ``return`` really returns; deeper, it depends on a tensor.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CellType, FrameType
from typing import Any

import numpy as np

from mycelia.core.errors import GraphError, is_users
from mycelia.frontend.implicit import see, sets_by_itself
from mycelia.frontend.reads import attr, wrote
from mycelia.frontend.undefined import Undefined
from mycelia.ir.builder import Builder
from mycelia.ir.graph import Value
from mycelia.tensor import Tensor
from mycelia.tensor.mode import STAGE, is_staging, state

CONTAINERS = (list, dict, set, deque, bytearray, np.ndarray)


class Place:
    """Something outside the graph that holds a value: read and write it."""

    __slots__ = ("label", "owner")

    def __init__(self, owner: Any, label: str) -> None:
        self.owner = owner
        self.label = label

    def read(self) -> Any:
        raise NotImplementedError

    def write(self, value: Any) -> None:
        raise NotImplementedError


class AttributePlace(Place):
    """An attribute of an object; a ``bare`` one is set as ``object.__setattr__`` does."""

    __slots__ = ("bare", "name")

    def __init__(self, owner: Any, name: str, bare: bool = False) -> None:
        super().__init__(owner, f"attribute '{name}' of a {type(owner).__name__}")
        self.name, self.bare = name, bare

    def read(self) -> Any:
        try:
            return object.__getattribute__(self.owner, self.name) if self.bare else getattr(self.owner, self.name)
        except AttributeError:
            return Undefined(self.name)

    def write(self, value: Any) -> None:
        if isinstance(value, Undefined):
            if type(self.read()) is not Undefined:
                (object.__delattr__ if self.bare else delattr)(self.owner, self.name)
        else:
            (object.__setattr__ if self.bare else setattr)(self.owner, self.name, value)


class CellPlace(Place):
    """A variable of an enclosing function."""

    __slots__ = ()

    def read(self) -> Any:
        try:
            return self.owner.cell_contents
        except ValueError:
            return Undefined(self.label)

    def write(self, value: Any) -> None:
        if isinstance(value, Undefined):
            del self.owner.cell_contents
        else:
            self.owner.cell_contents = value


class GlobalPlace(Place):
    """A variable of a module."""

    __slots__ = ("name",)

    def __init__(self, owner: dict[str, Any], name: str) -> None:
        super().__init__(owner, f"global variable '{name}'")
        self.name = name

    def read(self) -> Any:
        return self.owner[self.name] if self.name in self.owner else Undefined(self.name)

    def write(self, value: Any) -> None:
        if isinstance(value, Undefined):
            self.owner.pop(self.name, None)
        else:
            self.owner[self.name] = value


class ContentPlace(Place):
    """What a list, dict, set, deque, bytearray or NumPy array contains."""

    __slots__ = ()

    def __init__(self, owner: Any) -> None:
        super().__init__(owner, f"a {type(owner).__name__} from outside")

    def read(self) -> Any:
        owner = self.owner
        if isinstance(owner, dict):
            return dict(owner)
        if isinstance(owner, set):
            return frozenset(owner)
        if isinstance(owner, np.ndarray):
            return owner.copy()
        return bytes(owner) if isinstance(owner, bytearray) else list(owner)

    def write(self, value: Any) -> None:
        owner = self.owner
        if isinstance(owner, (list, bytearray)):
            owner[:] = value
            return
        if isinstance(owner, np.ndarray):
            owner[...] = value
            return
        owner.clear()
        if isinstance(owner, deque):
            owner.extend(value)
        else:
            owner.update(value)


class Closed:
    """What a region left behind: new contents of logged places, and values of tensors written in place."""

    __slots__ = ("builder", "fresh", "log", "written")

    def __init__(
        self, builder: Builder, log: dict[Any, tuple[Place, Any, Any]], written: dict[int, tuple[Tensor, Value]],
        fresh: dict[int, Any],
    ) -> None:  # fmt: skip
        self.builder = builder
        self.log = log
        self.written = written
        self.fresh = fresh

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Everything outside as the region left it, inside the block."""
        places = [(place, place.read(), now.obj) for place, _, now in self.log.values()]
        tensors = [(tensor, tensor._value, value) for tensor, value in self.written.values()]
        for place, _, now in places:
            place.write(now)
        for tensor, _, value in tensors:
            tensor._value = value
        try:
            yield
        finally:
            for place, before, _ in reversed(places):
                place.write(before)
            for tensor, held, _ in tensors:
                tensor._value = held


class Region:
    """One open region. ``log`` maps keys to places and what they held before."""

    __slots__ = ("_before", "builder", "filling", "fresh", "log")

    def __init__(self, name: str) -> None:
        assert state.builder is not None
        self.builder = Builder(name, parent=state.builder)
        self.log: dict[Any, tuple[Place, Any]] = {}
        self.fresh: dict[int, Any] = {}
        self.filling: dict[int, Any] = {}  # dicts that make items when they are read
        self._before = state.phase, state.builder

    def open(self) -> Region:
        state.phase, state.builder = STAGE, self.builder
        stack().append(self)
        return self

    def note(self, key: Any, make: Callable[[], Place]) -> None:
        if key not in self.log:
            place = make()
            self.log[key] = (place, place.read())

    def has_filled_in(self, value: Any) -> bool:
        """Whether a ``defaultdict`` made an object when it was read in this region."""
        for key, owner in self.filling.items():
            if any(v is value for v in owner.values()):
                before = self.log[key][1] if key in self.log else owner
                if not any(v is value for v in before.values()):
                    self.fresh[id(value)] = value
                    return True
        return False

    def close(self, freeze: Callable[[Any], Any]) -> Closed:
        """Take down what changed (``freeze`` keeps tensors as they are now), undo it, and leave the region."""
        regions = stack()
        while regions[-1] is not self:
            regions[-1].abandon()
        log = {key: (place, before, freeze(place.read())) for key, (place, before) in self.log.items()}
        builder = self.builder
        written = {i: (t, builder.lift(t._value)) for i, (t, _) in builder.written.items()}
        self.abandon()
        if regions:
            regions[-1].fresh.update(self.fresh)
        return Closed(builder, log, written, self.fresh)

    def abandon(self) -> None:
        """Undo what changed and leave the region, the innermost one."""
        stack().pop()
        for place, before in reversed(self.log.values()):
            place.write(before)
        for tensor, value in self.builder.written.values():
            tensor._value = value
        state.phase, state.builder = self._before


class _Local(threading.local):
    def __init__(self) -> None:
        self.regions: list[Region] = []


_local = _Local()


def stack() -> list[Region]:
    """The open regions of this thread, the innermost last."""
    return _local.regions


def depth() -> int:
    """How many regions are open."""
    return len(_local.regions)


def unwind(to: int) -> None:
    """Leave regions until ``to`` are open: after an exception."""
    regions = _local.regions
    while len(regions) > to:
        regions[-1].abandon()


# -- what a change outside goes through ------------------------------------------------------------------


def _record(owner: Any, key: Any, make: Callable[[], Place]) -> None:
    for region in reversed(_local.regions):
        if id(owner) in region.fresh or region.has_filled_in(owner):
            return
        region.note(key, make)


def touch(owner: Any) -> Any:
    """The object itself; if it is a container, its content is about to change."""
    if _local.regions and isinstance(owner, CONTAINERS):
        _record(owner, id(owner), lambda: ContentPlace(owner))
    return see(owner)


def touch_read(owner: Any) -> Any:
    """The object itself; an item is about to be read, which adds it to a ``defaultdict``."""
    if isinstance(owner, dict) and hasattr(owner, "__missing__") and _local.regions:
        touch(owner)
        _local.regions[-1].filling[id(owner)] = owner
    return see(owner)


def touch_items(owner: Any) -> Any:
    """The object itself; one of its items is about to be changed in place (``owner[i] += v``)."""
    if isinstance(owner, CONTAINERS) and not isinstance(owner, np.ndarray):
        for item in owner.values() if isinstance(owner, dict) else owner:
            touch(item)
    return touch(owner)


def touch_attribute(owner: Any, name: str, in_place: bool = False) -> Any:
    """The object itself; its attribute is about to be set (or changed in place, too)."""
    if is_staging() and not isinstance(owner, Undefined):
        wrote(owner)
        see(owner)
        if not sets_by_itself(owner, name):
            record_attribute(owner, name)
        if in_place:
            touch(attr(owner, name) if hasattr(owner, name) else None)
    return owner


def record_attribute(owner: Any, name: str, bare: bool = False) -> None:
    """An attribute that is data is about to be set."""
    if _local.regions:
        _record(owner, (id(owner), name), lambda: AttributePlace(owner, name, bare))


def touch_cell(name: str, closure: Callable[[], Any]) -> None:
    """The variable ``name`` that ``closure`` closes over is about to be set."""
    if closure.__closure__:
        wrote(closure.__closure__[0])
    if _local.regions and closure.__closure__:
        cell: CellType = closure.__closure__[0]
        _record(cell, id(cell), lambda: CellPlace(cell, f"'{name}'"))


def own_cell(closure: Callable[[], Any]) -> None:
    """The variable that ``closure`` closes over belongs to a call that starts now."""
    if _local.regions and closure.__closure__:
        cell: CellType = closure.__closure__[0]
        _local.regions[-1].fresh[id(cell)] = cell


def touch_global(module: dict[str, Any], name: str) -> None:
    """The module variable ``name`` is about to be set."""
    wrote(module)
    if _local.regions:
        _record(module, (id(module), name), lambda: GlobalPlace(module, name))


def _count(value: Any) -> int:
    return sys.getrefcount(value)


def _calibrate(value: Any) -> int:
    return _count(value)


#: The reference count that :func:`new` sees of an object that only its caller's expression holds.
_UNSHARED = _calibrate([])


def new(value: Any) -> Any:
    """The object itself; if nobody else knows it yet, it was made in the innermost open region."""
    regions = _local.regions
    if not regions or isinstance(value, (Tensor, int, float, str, tuple, type(None))):
        return value
    if _count(value) <= _UNSHARED:
        born(value)
    return value


def born(value: Any) -> None:
    """An object was made in the innermost open region, if any is open."""
    if _local.regions:
        _local.regions[-1].fresh[id(value)] = value


def advance(iterator: Any) -> Any:
    """The object itself; if it is an iterator, it is about to be advanced.

    What an iterator has given cannot be taken back, so it may be advanced on one path of a program only.

    Raises:
        GraphError: another path under a condition on a tensor has advanced it.
    """
    builder = state.builder
    if builder is None or not isinstance(iterator, Iterator) or isinstance(iterator, Tensor):
        return iterator
    regions = _local.regions
    known = builder.notes.setdefault("advanced", {}).get(id(iterator))
    if known is not None and known[1] not in regions:
        raise GraphError(
            "next", message="an iterator is advanced on several paths that depend on a tensor",
            hint="take what is needed from it before the condition, or loop over a list",
        )  # fmt: skip
    if regions and known is None and not any(id(iterator) in r.fresh for r in regions):
        builder.notes["advanced"][id(iterator)] = (iterator, regions[-1])
    return iterator


# -- calls of converted functions ------------------------------------------------------------------------


#: Marks an error that came out of the body of a staged loop: it depends on how often that runs.
LEFT_LOOP = "_ms_left_loop"


class Frame:
    """One call of a converted function: where its own regions begin."""

    __slots__ = ("base", "suspended")

    def __init__(self) -> None:
        self.base = len(_local.regions)
        self.suspended = False

    @property
    def native(self) -> bool:
        """Whether no region was opened by this call: a jump really jumps."""
        return len(_local.regions) == self.base

    def mark(self) -> int:
        """How many regions this call has open."""
        return len(_local.regions) - self.base

    def unwind(self, mark: int = 0) -> None:
        """After an exception: leave the regions opened since ``mark``."""
        if self.suspended:  # thrown into a generator where it had yielded
            self.resume(None)
        else:
            unwind(self.base + mark)

    def leave(self) -> None:
        """The call ends."""
        if not self.suspended and len(_local.regions) > self.base:
            error = sys.exc_info()[1]
            if error is not None:
                error.__dict__[LEFT_LOOP] = True
            unwind(self.base)

    def suspend(self, value: Any) -> Any:
        """A generator is about to yield ``value``."""
        if not self.native:
            raise GraphError(
                "graph", message="'yield' under a condition or in a loop that depends on a tensor",
                hint="yield a tensor on every path, or collect results in a tensor",
            )  # fmt: skip
        self.suspended = True
        return value

    def resume(self, value: Any) -> Any:
        """A generator goes on; ``value`` was sent to it."""
        self.base = len(_local.regions)
        self.suspended = False
        return value


def labelled(env: dict[str, Any], owner: Any) -> str | None:
    """The variable or attribute that holds an object, for error messages."""
    for name, value in env.items():
        if value is owner and not name.startswith("_ms_"):
            return name
    for name, value in env.items():
        for attribute, held in list(getattr(value, "__dict__", {}).items()) if not isinstance(value, type) else ():
            if held is owner and not attribute.startswith("_"):
                return f"{name}.{attribute}"
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else next((n for n, value in frame.f_globals.items() if value is owner), None)


def tensors_written(closed: Iterable[Closed]) -> dict[int, Tensor]:
    """All tensors written in any of several regions."""
    return {i: tensor for c in closed for i, (tensor, _) in c.written.items()}
