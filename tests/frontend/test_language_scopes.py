"""Functions, scopes and classes in a staged program are Python's own."""

from __future__ import annotations

import abc
import functools
import operator
import types
from typing import Any

import pytest
from tests.frontend.battery import Battery, Function
from tests.frontend.staging import check

import mycelia as ms
from mycelia import Tensor, ops

program = Battery()


# -- scopes ----------------------------------------------------------------------------------------------------

_calls = 0


def _count_up(by: int = 1) -> int:
    global _calls
    _calls += by
    return _calls


@program()
def global_statements(x: Tensor) -> Any:
    global _calls
    _calls = 5
    first = _count_up()
    del _calls
    _calls = 1
    return first, _count_up(3), x


@program()
def nonlocal_counters(x: Tensor) -> Any:
    def make(start: int) -> tuple[Function, Function]:
        n = start

        def up(by: int = 1) -> int:
            nonlocal n
            n += by
            return n

        def reset() -> None:
            nonlocal n
            n = start

        return up, reset

    up, reset = make(3)
    seen = [up(), up(5)]
    reset()
    return seen, up(), x * up()


@program()
def decorators(x: Tensor) -> Any:
    def scaled(k: float) -> Any:
        def decorate(fn: Function) -> Function:
            @functools.wraps(fn)
            def inner(*args: Any, **kwargs: Any) -> Any:
                return fn(*args, **kwargs) * k

            return inner

        return decorate

    def registered(fn: Function) -> Function:
        registry[fn.__name__] = fn
        return fn

    registry: dict[str, Function] = {}

    @registered
    @scaled(2.0)
    @scaled(k=3.0)
    def plus(v: Tensor, by: int = 1) -> Tensor:
        """Adds."""
        return v + by

    return plus(x), plus(x, by=2), registry["plus"](x), plus.__name__, plus.__doc__


@program()
def class_decorators(x: Tensor) -> Any:
    def with_double(cls: type) -> type:
        cls.double = lambda self: self.v * 2  # type: ignore[attr-defined]
        return cls

    class Counted:
        def __init__(self, fn: Function) -> None:
            self.fn, self.count = fn, 0

        def __call__(self, *args: Any) -> Any:
            self.count += 1
            return self.fn(*args)

    @with_double
    class Box:
        def __init__(self, v: Any) -> None:
            self.v = v

    @Counted
    def triple(v: Tensor) -> Tensor:
        return v * 3

    return Box(x).double(), triple(triple(x)), triple.count  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=None)
def _fibonacci(n: int) -> int:
    return n if n < 2 else _fibonacci(n - 1) + _fibonacci(n - 2)


@functools.cache
def _table(n: int) -> Tensor:
    return ops.arange(n).astype(ms.float32)


@program()
def cached_functions(x: Tensor) -> Any:
    return x * _fibonacci(30), x + _table(2), _table(3) + _table(3)


@functools.singledispatch
def _describe(value: Any) -> Any:
    return "anything"


@_describe.register
def _(value: int) -> Any:
    return f"int {value}"


@_describe.register(list)
def _(value: Any) -> Any:
    return [_describe(v) for v in value]


@_describe.register(Tensor)
def _(value: Any) -> Any:
    return value * 2


@program()
def single_dispatch(x: Tensor) -> Any:
    return _describe(3), _describe([1, "s", x]), _describe(x), _describe(2.5)


@program()
def partial_and_operator(x: Tensor) -> Any:
    add = functools.partial(operator.add, x)
    power = functools.partial(lambda base, exp, *, scale=1: base**exp * scale, exp=2)
    swapped = functools.partial(power, x, scale=3)
    getter, method = operator.itemgetter(1, 0), operator.methodcaller("sum")
    return add(1), swapped(), power(x, scale=2), getter([x, 5]), method(x), operator.attrgetter("shape")(x)


@program()
def lambdas_on_one_line(x: Tensor) -> Any:
    f, g, h = lambda v: v + 1, lambda v: v * 2, lambda v, k=3: v - k
    compose = lambda *fs: functools.reduce(lambda a, b: lambda v: b(a(v)), fs)
    return f(x), g(x), h(x), compose(f, g, h)(x), (lambda *a, **k: (a, k))(1, x, z=2)


@program()
def closures_over_closures(x: Tensor) -> Any:
    def level1(a: int) -> Any:
        def level2(b: int) -> Any:
            def level3(c: int) -> Any:
                return x * a + b - c

            return level3

        return level2

    return level1(2)(3)(4), [level1(k)(k)(k) for k in range(2)]


@program()
def recursion(x: Tensor) -> Any:
    def power(v: Tensor, n: int) -> Tensor:
        if n == 0:
            return v * 0 + 1
        half = power(v, n // 2)
        return half * half * v if n % 2 else half * half

    def even(n: int) -> bool:
        return True if n == 0 else odd(n - 1)

    def odd(n: int) -> bool:
        return False if n == 0 else even(n - 1)

    def walk(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {k: walk(v) for k, v in tree.items()}
        if isinstance(tree, (list, tuple)):
            return type(tree)(walk(v) for v in tree)
        return tree * x

    return power(x, 5), even(10), walk({"a": [1, (2, 3)], "b": x})


# -- arguments -------------------------------------------------------------------------------------------------


@program()
def signatures(x: Tensor) -> Any:
    def f(a: Any, b: Any = 2, /, c: Any = 3, *args: Any, d: Any, e: Any = 5, **kwargs: Any) -> Any:
        return a, b, c, args, d, e, kwargs

    extra = {"d": 1, "z": x}
    return f(x, d=4), f(1, 2, 3, 4, 5, d=x, g=7), f(*[1, x], **extra), f(*"ab", *[x], **{"d": 0}, e=9, **{"q": 1})


@program()
def defaults_are_shared(x: Tensor) -> Any:
    def note(v: Any, seen: list[Any] = []) -> list[Any]:
        seen.append(v)
        return list(seen)

    return note(1), note(2), note(x, []), note(3)


@program()
def unpacking(x: Tensor) -> Any:
    a, (b, *c), *d = 1, (2, 3, 4), 5, 6
    *e, f = [x, 7, 8]
    (g), h = {"k": 1, "m": 2}
    first, *_, last = range(10)
    i = j = [1]
    j.append(2)
    [k, l] = "xy"
    return a, b, c, d, e, f, g, h, first, last, i, i is j, k, l, [*c, *d], {*c, 9}, {**{"a": 1}, "b": x}, (*e, *c)


@program()
def swaps_and_chained_assignment(x: Tensor) -> Any:
    a, b = 1, 2
    a, b = b, a
    items = [0, 1, 2]
    i = 0
    i, items[i] = 1, 9
    items[0], items[2] = items[2], items[0]
    p = q = r = x + 1
    return a, b, i, items, p is q is r, r


@program()
def annotated_assignment(x: Tensor) -> Any:
    a: int = 3
    b: list[Tensor] = [x]
    c: Tensor | None
    c = x if a else None
    d: dict[str, Any] = {}
    d["k"]: int = 5
    return a, b, c, d


@program()
def deletion(x: Tensor) -> Any:
    a, b = [1, 2, 3, 4], {"k": x, "m": 2}
    del a[1:3], b["m"]
    c = 5
    del c
    try:
        return c
    except UnboundLocalError:
        c = 6
    holder = types.SimpleNamespace(v=1, w=x)
    del holder.v
    return a, b, c, hasattr(holder, "v"), holder.w


# -- classes ---------------------------------------------------------------------------------------------------


@program()
def classes_defined_inside(x: Tensor) -> Any:
    class Base:
        count = 0
        kinds: dict[str, Any] = {}

        def __init_subclass__(cls, /, kind: str = "none", **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            Base.kinds[kind] = cls.__name__

        def __init__(self, v: Any) -> None:
            self.v = v
            type(self).count += 1

        @classmethod
        def make(cls, v: Any) -> Any:
            return cls(v + 1)

        @staticmethod
        def half(v: Any) -> Any:
            return v * 0.5

        @property
        def double(self) -> Any:
            return self.v * 2

        @double.setter
        def double(self, value: Any) -> None:
            self.v = self.half(value)

        def __repr__(self) -> str:
            return f"{type(self).__name__}()"

    class Child(Base, kind="child"):
        def __init__(this, v: Any) -> None:
            super().__init__(v)
            this.extra = [v]

        @property
        def double(self) -> Any:
            return super().double + 1

    b, c = Base.make(x), Child(x)
    b.double = x * 10
    return b.v, b.double, c.double, c.extra, Base.count, Child.count, Base.kinds, repr(c), isinstance(c, Base)


@program()
def abstract_classes_and_protocols(x: Tensor) -> Any:
    class Shape(abc.ABC):
        def __init__(self, size: Any) -> None:
            self.size = size

        @abc.abstractmethod
        def area(self) -> Any: ...

        def twice(self) -> Any:
            return self.area() * 2

    class Square(Shape):
        def area(self) -> Any:
            return self.size * self.size

    try:
        Shape(1)
    except TypeError:
        refused = True
    return Square(x).twice(), refused, issubclass(Square, Shape)


@program()
def operators_of_ones_own(x: Tensor) -> Any:
    class Vec:
        def __init__(self, *vs: Any) -> None:
            self.vs = list(vs)

        def __add__(self, other: Any) -> Any:
            return Vec(*[a + b for a, b in zip(self.vs, other.vs)])

        def __mul__(self, k: Any) -> Any:
            return Vec(*[v * k for v in self.vs])

        __rmul__ = __mul__

        def __iadd__(self, other: Any) -> Any:
            self.vs = [v + other for v in self.vs]
            return self

        def __neg__(self) -> Any:
            return self * -1

        def __getitem__(self, i: Any) -> Any:
            return self.vs[i]

        def __setitem__(self, i: Any, v: Any) -> None:
            self.vs[i] = v

        def __delitem__(self, i: Any) -> None:
            del self.vs[i]

        def __len__(self) -> int:
            return len(self.vs)

        def __iter__(self) -> Any:
            yield from self.vs

        def __contains__(self, v: Any) -> bool:
            return any(v is w for w in self.vs)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Vec) and len(other) == len(self)

        def __hash__(self) -> int:
            return len(self)

        def __bool__(self) -> bool:
            return len(self) > 0

        def __call__(self, i: int) -> Any:
            return self.vs[i]

    v = 2 * (Vec(x, 1) + Vec(x, 2)) * 3
    v += 1
    v[0] = v[0] * 2
    w = Vec(1, 2, 3)
    del w[0]
    a, b = -v
    found = x in Vec(x), 5 in w
    return list(v), a, b, len(w), found, v == w, hash(w), "yes" if Vec() else "no", v(1), [*w], bool(w)


@program()
def dynamic_attributes(x: Tensor) -> Any:
    class Lazy:
        def __init__(self) -> None:
            self.made: list[str] = []

        def __getattr__(self, name: str) -> Any:
            if name.startswith("w_"):
                self.made.append(name)
                return x * int(name[2:])
            raise AttributeError(name)

        @functools.cached_property
        def table(self) -> Any:
            self.made.append("table")
            return [x, x + 1]

    lazy = Lazy()
    setattr(lazy, "kept", 3)
    out = lazy.w_2 + lazy.w_3, lazy.table[1], lazy.table is lazy.table, getattr(lazy, "none", "default"), lazy.kept
    return out, lazy.made, hasattr(lazy, "w_1"), vars(lazy)["kept"]


@program()
def descriptors_and_slots(x: Tensor) -> Any:
    class Positive:
        def __set_name__(self, owner: type, name: str) -> None:
            self.name = "_" + name

        def __get__(self, obj: Any, cls: Any = None) -> Any:
            return self if obj is None else getattr(obj, self.name)

        def __set__(self, obj: Any, value: Any) -> None:
            if isinstance(value, int) and value < 0:
                raise ValueError("negative")
            setattr(obj, self.name, value)

    class Item:
        __slots__ = ("_n", "_t")
        n, t = Positive(), Positive()

        def __init__(self, n: int, t: Any) -> None:
            self.n, self.t = n, t

    item = Item(2, x)
    try:
        item.n = -1
    except ValueError as error:
        text = str(error)
    item.t = item.t * item.n
    return item.t, item.n, text, isinstance(Item.n, Positive)


@program()
def metaclasses_and_new(x: Tensor) -> Any:
    class Meta(type):
        def __call__(cls, *args: Any) -> Any:
            made = super().__call__(*args)
            made.tag = cls.__name__.lower()
            return made

    class Thing(metaclass=Meta):
        def __init__(self, v: Any) -> None:
            self.v = v

    class Single:
        _only = None

        def __new__(cls, *args: Any) -> Any:
            if cls._only is None:
                cls._only = super().__new__(cls)
            return cls._only

        def __init__(self, v: Any) -> None:
            self.v = v

    return Thing(x).v, Thing(1).tag, Single(x) is Single(x * 2), Single(x * 3).v


@program()
def multiple_inheritance(x: Tensor) -> Any:
    class A:
        def go(self, v: Any) -> Any:
            return [*self.names(), v]

        def names(self) -> list[str]:
            return ["A"]

    class B(A):
        def names(self) -> list[str]:
            return ["B", *super().names()]

    class C(A):
        def names(self) -> list[str]:
            return ["C", *super(C, self).names()]

    class D(B, C):
        def names(self) -> list[str]:
            return ["D", *super().names()]

    return D().go(x), [c.__name__ for c in D.__mro__[:-1]]


@pytest.mark.parametrize(("fn", "cases"), program.rows)
def test_python(fn: Function, cases: tuple[Any, ...]) -> None:
    staged = check(fn, *cases)
    assert staged.count("cond") == staged.count("while_loop") == 0
