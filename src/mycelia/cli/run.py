"""``mycelia run SCRIPT [args...]`` and ``mycelia run -m MODULE [args...]``.

Runs a program the way the interpreter would (``__main__``, ``sys.argv``, ``sys.path[0]``, exit code),
with ``import mindspore`` meaning Mycelia. The processes it starts see the same: a folder with a
stand-in ``mindspore.py`` is put on their search path.

An error that ends the program is shown without the frames of this runner; where the error is one of
ours, which already names the user's line, also without the frames inside the package.
``MYCELIA_FULL_TRACEBACK=1`` shows every frame.
"""

from __future__ import annotations

import argparse
import builtins
import importlib.util
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import InspectLoader
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

from mycelia.alias import install
from mycelia.core.errors import MyceliaError

_PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep
_STAND_IN = str(Path(__file__).resolve().parent / "stand_in")


def _script(path: str) -> tuple[CodeType, ModuleType]:
    """The compiled script and an empty ``__main__`` for it."""
    path = os.path.abspath(path)
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    main = ModuleType("__main__")
    main.__file__ = path
    main.__loader__ = SourceFileLoader("__main__", path)
    main.__package__ = None
    return code, main


def _module(name: str) -> tuple[CodeType, ModuleType]:
    """The code of a module (of ``NAME.__main__`` for a package) and an empty ``__main__`` for it."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name = f"{name}.__main__"
            spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise
        spec = None
    code = spec.loader.get_code(name) if spec is not None and isinstance(spec.loader, InspectLoader) else None
    if spec is None or code is None:
        raise LookupError(f"No module named {name}")
    main = ModuleType("__main__")
    main.__spec__ = spec
    main.__loader__ = spec.loader
    main.__package__ = spec.parent
    main.__file__ = spec.origin
    return code, main


def _shown(error: BaseException, traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this runner, and for errors of ours without the package's."""
    frames: list[TracebackType] = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    own = [i for i, frame in enumerate(frames) if frame.tb_frame.f_code.co_filename == __file__]
    if own:
        frames = frames[own[-1] + 1 :]
    if isinstance(error, MyceliaError):
        frames = [frame for frame in frames if not frame.tb_frame.f_code.co_filename.startswith(_PACKAGE)]
    shown: TracebackType | None = None
    for frame in reversed(frames):
        shown = TracebackType(shown, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return shown


_Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def _trimming(hook: _Hook) -> _Hook:
    """``sys.excepthook`` that hands ``hook`` the shortened tracebacks of the whole chain."""

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        seen: set[int] = set()
        pending: list[BaseException | None] = [error.__cause__, error.__context__]
        while pending:
            link = pending.pop()
            if link is not None and id(link) not in seen:
                seen.add(id(link))
                link.__traceback__ = _shown(link, link.__traceback__)
                pending += [link.__cause__, link.__context__]
        error.__traceback__ = _shown(error, traceback)
        hook(kind, error, error.__traceback__)

    return show


def _search_path(first: str) -> None:
    """Put ``first`` where the interpreter puts the script's folder, and the stand-in on children's paths."""
    if not sys.flags.safe_path:
        sys.path[0:1] = [first]
    sys.path.insert(0 if sys.flags.safe_path else 1, _STAND_IN)
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = _STAND_IN + (os.pathsep + inherited if inherited else "")


def main(arguments: Sequence[str]) -> int:
    """Run the program named in ``arguments``; its exit code is the process's.

    Returns:
        0 when the program ran to its end, 2 when it could not be found.
    """
    parser = argparse.ArgumentParser(
        prog="mycelia run",
        usage="mycelia run [-h] (SCRIPT | -m MODULE) [arguments of the program]",
        description="Run a program with `import mindspore` meaning Mycelia.",
    )
    parser.add_argument("-m", action="store_true", dest="module", help="run a module, as python -m does")
    count = next((i for i, word in enumerate(arguments) if not word.startswith("-") or word == "-"), len(arguments))
    options = parser.parse_args(list(arguments[:count]))
    if count == len(arguments):
        parser.error("which script or module?")
    target, rest = arguments[count], list(arguments[count + 1 :])

    install("mindspore")
    if not os.environ.get("MYCELIA_FULL_TRACEBACK"):
        sys.excepthook = _trimming(sys.excepthook)
    if options.module:
        _search_path(os.getcwd())
        sys.argv = ["-m", *rest]
        try:
            code, module = _module(target)
        except LookupError as error:
            print(f"mycelia run: {error.args[0]}", file=sys.stderr)
            return 2
    else:
        _search_path(os.path.dirname(os.path.realpath(target)))
        try:
            code, module = _script(target)
        except OSError as error:
            print(f"mycelia run: can't open '{target}': {error.strerror}", file=sys.stderr)
            return 2
    sys.argv = [target if not options.module else str(module.__file__), *rest]
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    exec(code, module.__dict__)
    return 0
