"""A second name for this package: ``import mindspore`` as the very same modules.

:func:`install` puts a finder at the head of ``sys.meta_path``. For ``ALIAS.x.y`` it imports
``mycelia.x.y`` and enters that module object in ``sys.modules`` under the second name, so both names
are one module: one set of classes, one state. The module keeps its own ``__name__`` and ``__spec__``,
so pickles, ``importlib.reload`` and ``repr`` speak of ``mycelia``. Nothing is imported before it is
asked for, and what does not exist is the ordinary ``ModuleNotFoundError`` of the import system.

The mechanism is that of Python's import reference ("the module may replace itself in
``sys.modules``"): the loader lets the import system make an empty module, and swaps the real one in.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

from mycelia.core.errors import StateError

_PACKAGE = __name__.partition(".")[0]


class _Loader(InspectLoader):
    """Loads ``real`` and lets it stand under the name of the spec."""

    def __init__(self, finder: _Finder, real: str) -> None:
        self.finder, self.real = finder, real

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self.real)
        self.finder.adopt(self.real)

    # What `python -m ALIAS.module` asks of a loader.

    def is_package(self, fullname: str) -> bool:
        spec = importlib.util.find_spec(self.real)
        return spec is not None and spec.submodule_search_locations is not None

    def get_code(self, fullname: str) -> CodeType | None:
        spec = importlib.util.find_spec(self.real)
        if spec is None or not isinstance(spec.loader, InspectLoader):
            return None
        return spec.loader.get_code(self.real)

    def get_source(self, fullname: str) -> str | None:
        spec = importlib.util.find_spec(self.real)
        if spec is None or not isinstance(spec.loader, InspectLoader):
            return None
        return spec.loader.get_source(self.real)


class _Finder(MetaPathFinder):
    """Answers for ``alias`` and everything under it with the modules of ``target``."""

    def __init__(self, alias: str, target: str) -> None:
        self.alias, self.target = alias, target

    def real_name(self, fullname: str) -> str | None:
        """``ALIAS.x.y`` -> ``TARGET.x.y``; None for any other name."""
        if fullname == self.alias or fullname.startswith(self.alias + "."):
            return self.target + fullname[len(self.alias) :]
        return None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        real = self.real_name(fullname)
        if real is None:
            return None
        if sys.modules.get(real) is not None:
            module = sys.modules[real]
            origin, package = getattr(module, "__file__", None), hasattr(module, "__path__")
        else:
            spec = importlib.util.find_spec(real)
            if spec is None:
                return None
            origin, package = spec.origin, spec.submodule_search_locations is not None
        return ModuleSpec(fullname, _Loader(self, real), origin=origin, is_package=package)

    def adopt(self, real: str) -> None:
        """Enter what is already loaded under ``real`` under the second name too.

        The import system would otherwise set each module as an attribute of its parent once more when
        it is first asked for by its second name, over whatever the parent has put there since.
        """
        for name, module in list(sys.modules.items()):
            if name.startswith(real + ".") and module is not None:
                sys.modules.setdefault(self.alias + name[len(self.target) :], module)


def _installed(alias: str) -> _Finder | None:
    return next((f for f in sys.meta_path if isinstance(f, _Finder) and f.alias == alias), None)


def install(alias: str = "mindspore", target: str = _PACKAGE) -> None:
    """Make ``import ALIAS`` mean ``import TARGET`` from now on, submodules included.

    Calling it again changes nothing.

    Args:
        alias: the second name, without dots.
        target: the package it stands for.

    Raises:
        StateError: another package of that name has been imported already.

    >>> from mycelia import alias
    >>> alias.install("mindspore")
    >>> import mindspore, mycelia
    >>> mindspore is mycelia
    True
    """
    present = _installed(alias)
    if present is not None and present.target == target:
        return
    if present is not None:
        raise StateError("alias.install", message=f"'{alias}' already stands for '{present.target}'")
    for name, module in list(sys.modules.items()):
        other = name != alias and not name.startswith(alias + ".")
        if other or module is None or module is sys.modules.get(target + name[len(alias) :]):
            continue
        raise StateError(
            "alias.install",
            message=f"'{name}' is already imported, from {getattr(module, '__file__', None) or 'elsewhere'}",
            hint=f"install the alias before the first 'import {alias}', in an environment without the other {alias}",
        )
    sys.meta_path.insert(0, _Finder(alias, target))


def uninstall(alias: str = "mindspore") -> None:
    """Take the second name away again; modules stay loaded under their own names."""
    finder = _installed(alias)
    if finder is None:
        return
    sys.meta_path.remove(finder)
    for name in [name for name in sys.modules if finder.real_name(name) is not None]:
        del sys.modules[name]


def stand_in(name: str, target: str = _PACKAGE) -> None:
    """Called by a module file named ``NAME.py`` with its ``__name__``: import TARGET in its place.

    Raises:
        StateError: another package of that name has been imported already.
    """
    sys.modules.pop(name, None)
    install(name, target)
    importlib.import_module(name)
