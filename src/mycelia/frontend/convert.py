"""``convert``: a function of the user's as one that can be staged.

The function's tree is found (:mod:`mycelia.frontend.source`), rewritten
(:mod:`mycelia.frontend.rewrite_statements`) and compiled inside a factory whose parameters are the
function's free variables, so that every name keeps its meaning; then the inner code object is taken out and
given the original globals, the original closure cells, defaults and annotations. File name and line numbers
are the user's, so tracebacks, debuggers and located errors show the user's program.

Code is compiled once per code object. A converted function is kept as long as its original.
"""

from __future__ import annotations
import __future__

import ast
import functools
import sys
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

from mycelia.frontend import calls, implicit, runtime
from mycelia.frontend.calls import is_users
from mycelia.frontend.rewrite_expressions import RUNTIME, THUNK
from mycelia.frontend.rewrite_statements import FunctionRewriter
from mycelia.frontend.source import Located, copied, locate
from mycelia.tensor.mode import state

_FUTURE_FLAGS = functools.reduce(
    lambda flags, feature: flags | getattr(__future__, feature).compiler_flag, __future__.all_feature_names, 0
)
#: The recursion limit while a tree is rewritten: ``elif`` chains are nested as deep as they are long.
_DEEP = 20_000


class _Rewritten:
    """The outcome for one code object: the new code, or why there is none."""

    __slots__ = ("code", "reason")

    def __init__(self, code: CodeType | None, reason: str = "") -> None:
        self.code = code
        self.reason = reason


_by_code: dict[tuple[CodeType, str], _Rewritten] = {}
_made: dict[int, CodeType] = {}
_by_function: WeakKeyDictionary[FunctionType, tuple[CodeType, FunctionType]] = WeakKeyDictionary()


def convert(fn: Any) -> Any:
    """The stageable version of a callable.

    Functions, lambdas, bound methods, partials and callable objects of the user's (and of third-party packages)
    are rewritten, once. Everything else is returned as it is: builtins, classes, the standard library, NumPy, JAX, this
    package, and functions whose source is not to be had.

    Args:
        fn: any object.

    Returns:
        A callable that does what ``fn`` does, and stages control flow that depends on tensors.

    >>> def double_or_nothing(x):
    ...     return x * 2 if x > 0 else None
    >>> convert(double_or_nothing)(4)
    8
    """
    kind = type(fn)
    if kind is FunctionType:
        return _converted(fn) if is_users(fn) else fn
    if kind is MethodType:
        made = convert(fn.__func__)
        return fn if made is fn.__func__ else MethodType(made, fn.__self__)
    if kind is functools.partial:
        return functools.partial(convert(fn.func), *fn.args, **fn.keywords)
    if isinstance(fn, type) or not callable(fn):
        return fn
    method = kind.__call__
    return MethodType(convert(method), fn) if type(method) is FunctionType and is_users(method) else fn


def unconverted_reason(fn: Any) -> str | None:
    """Why a user's function runs as it is, in words; None if it is converted or not a function."""
    fn = getattr(fn, "__func__", fn)
    if type(fn) is not FunctionType:
        return None
    found = _by_code.get((fn.__code__, fn.__code__.co_filename))
    return found.reason or None if found is not None else None


def reason_of_code(code: CodeType) -> str | None:
    """As :func:`unconverted_reason`, for the code of a frame."""
    found = _by_code.get((code, code.co_filename))
    return found.reason or None if found is not None else None


def _converted(fn: FunctionType) -> FunctionType:
    code = fn.__code__
    _watch(fn)
    if id(code) in _made:
        return fn
    known = _by_function.get(fn)
    if known is not None and known[0] is code:
        made = known[1]
    else:
        key = (code, code.co_filename)
        rewritten = _by_code.get(key)
        if rewritten is None:
            rewritten = _by_code[key] = _rewrite(fn)
        if rewritten.code is None or rewritten.code is code:
            return fn
        made = _rebuilt(fn, rewritten.code)
        _by_function[fn] = (code, made)
    made.__defaults__, made.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
    return made


def _watch(fn: FunctionType) -> None:
    """Tell the graph being staged that it depends on the globals and cells of a function."""
    builder = state.builder
    if builder is None or (guards := builder.notes.get("guards")) is None:
        return
    seen = builder.notes.setdefault("watched", {})
    if id(fn) not in seen:
        seen[id(fn)] = fn
        guards.watch_function(fn)


def _rebuilt(fn: FunctionType, code: CodeType) -> FunctionType:
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    cells[RUNTIME] = CellType(runtime)
    closure = tuple([cells[n] for n in code.co_freevars])
    made = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    made.__qualname__ = fn.__qualname__
    made.__module__ = fn.__module__
    made.__doc__ = fn.__doc__
    made.__annotations__ = fn.__annotations__
    made.__dict__.update(fn.__dict__)
    if hasattr(fn, "__type_params__"):
        made.__type_params__ = fn.__type_params__  # type: ignore[attr-defined]
    return made


def _rewrite(fn: FunctionType) -> _Rewritten:
    code = fn.__code__
    located = locate(code, fn.__globals__)
    if located is None:
        return _Rewritten(None, f"the source of '{fn.__qualname__}' is not available")
    if isinstance(located.node, ast.AsyncFunctionDef):
        return _Rewritten(None, f"'{fn.__qualname__}' is a coroutine")
    node = copied(located.node)
    assert isinstance(node, (ast.FunctionDef, ast.Lambda))
    _strip(node)
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(max(limit, _DEEP))
        rewriter = FunctionRewriter(node, located.class_name)
        node = rewriter.rewrite()
        if not rewriter.changed:
            _made[id(code)] = code
            return _Rewritten(code)
        new = _compile(node, located, code)
    except (SyntaxError, RecursionError) as error:  # nested deeper than the compiler of Python goes
        return _Rewritten(None, f"'{fn.__qualname__}' cannot be compiled again: {error}")
    finally:
        sys.setrecursionlimit(limit)
    missing = set(new.co_freevars) - set(code.co_freevars) - {RUNTIME}
    if missing:
        return _Rewritten(None, f"the source of '{fn.__qualname__}' has changed ({', '.join(sorted(missing))})")
    return _Rewritten(new)


def _strip(node: ast.FunctionDef | ast.Lambda) -> None:
    """Take off what is evaluated when a function is defined: it has been, and is copied over."""
    args = node.args
    args.defaults = []
    args.kw_defaults = [None] * len(args.kwonlyargs)
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if arg is not None:
            arg.annotation = None
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
        node.returns = None
        if hasattr(node, "type_params"):
            node.type_params = []


def _compile(node: ast.FunctionDef | ast.Lambda, located: Located, code: CodeType) -> CodeType:
    inner: ast.stmt = ast.Expr(node) if isinstance(node, ast.Lambda) else node
    if located.class_name is not None:  # for __private names and super()
        inner = ast.ClassDef(name=located.class_name, bases=[], keywords=[], body=[inner], decorator_list=[])
    free = [n for n in (*code.co_freevars, RUNTIME) if not (n == "__class__" and located.class_name is not None)]
    bound = located.class_name or getattr(node, "name", None)
    if bound is not None and bound not in free:  # the name means what it means in the user's module
        body: list[ast.stmt] = [ast.Global([bound]), inner]
    else:
        body = [inner]
    factory = ast.FunctionDef(
        name="_ms_factory",
        args=ast.arguments(
            posonlyargs=[], args=[ast.arg(n) for n in free if n.isidentifier()], vararg=None, kwonlyargs=[],
            kw_defaults=[], kwarg=None, defaults=[],
        ),
        body=body, decorator_list=[], returns=None,
    )  # fmt: skip
    for made in (inner, factory):
        if hasattr(made, "type_params"):
            made.type_params = getattr(made, "type_params", None) or []
        if not hasattr(made, "lineno"):
            ast.copy_location(made, node)
    module = ast.fix_missing_locations(ast.Module([factory], []))
    flags = code.co_flags & _FUTURE_FLAGS
    compiled = compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True)
    found = _only_code(compiled)
    found = _only_code(found)
    if located.class_name is not None:
        found = _only_code(found)
    return _named(found, found.co_qualname, code.co_qualname)


def _only_code(code: CodeType) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType))


def _named(code: CodeType, made: str, original: str) -> CodeType:
    """The code and what is nested in it under the original qualified name; thunks under that of their function."""
    consts = []
    for const in code.co_consts:
        if isinstance(const, CodeType):
            if const.co_varnames[:1] == (THUNK,):
                const = const.replace(co_name=code.co_name, co_qualname=code.co_qualname)
            const = _named(const, made, original)
        consts.append(const)
    qualname = code.co_qualname
    if qualname.startswith(made):
        qualname = original + qualname[len(made) :]
    code = code.replace(co_consts=tuple(consts), co_qualname=qualname)
    _made[id(code)] = code
    return code


calls.set_convert(convert)
implicit.install(convert, is_users)
