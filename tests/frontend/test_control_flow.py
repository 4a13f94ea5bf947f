"""Statements and expressions whose way depends on a tensor: staged once, right for every input."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from tests.frontend.staging import Staged, check

import mycelia as ms
from mycelia import Tensor, ops

_POSITIVE, _NEGATIVE, _LARGE = Tensor([1.0, 2.0]), Tensor([-1.0, -2.0]), Tensor([20.0, 3.0])
_VECTORS = ((_POSITIVE,), (_NEGATIVE,), (_LARGE,), (Tensor([0.0, 0.0]),))


# -- if ------------------------------------------------------------------------------------------------------


def test_if_else() -> None:
    def f(x: Tensor) -> Any:
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return y, x

    assert check(f, *_VECTORS).count("cond") == 1


def test_elif_chain_with_nested_conditions() -> None:
    def f(x: Tensor) -> Any:
        s = x.sum()
        if s > 10:
            k = 3
        elif s > 0:
            k = 2
            if x[0] > x[1]:
                k = 5
                s = s + 1
        elif s == 0:
            k = 1
        else:
            k, s = 0, -s
        return k * x, s

    check(f, *_VECTORS)


def test_early_returns_make_one_cond_each() -> None:
    def f(x: Tensor) -> Tensor:
        if x.sum() > 10:
            return x
        y = x + 1
        if y.sum() < 0:
            return y * 2
        return y * 3

    staged = check(f, *_VECTORS)
    assert staged.count("cond") == 2
    assert staged.count("broadcast_to") == 0  # no zeros to fill in


def test_return_from_one_of_two_ways() -> None:
    def f(x: Tensor) -> Tensor:
        if x.sum() > 0:
            if x[0] > 10:
                return x
            x = x + 1
        else:
            x = x - 1
            if x[0] < -1:
                return x * 5
        return x * 7

    check(f, *_VECTORS)


def test_other_dtypes_are_compared_with_zero() -> None:
    def f(n: Tensor) -> int:
        return 1 if n else 2

    check(f, (Tensor(3),), (Tensor(0),))
    check(f, (Tensor([[2.5]]),), (Tensor([[0.0]]),))
    check(f, (Tensor([True]),), (Tensor([False]),))
    check(f, (Tensor(np.nan),), (Tensor(-0.0),))


def test_python_conditions_stage_one_way_only() -> None:
    def f(x: Tensor, flag: bool, name: str, none: Any) -> Tensor:
        if flag and name == "go" and none is None:
            x = x + 1
        else:
            raise AssertionError
        if not flag:
            return none
        return x

    assert check(f, (_POSITIVE, True, "go", None)).count("cond") == 0


def test_a_condition_known_while_staging_is_python() -> None:
    def f(x: Tensor) -> Any:
        limit = Tensor(3) * 2
        if limit > 5:
            chosen = "large"
        else:
            chosen = "small"
        for i in range(limit - 3):
            x = x + i
        return x, chosen

    staged = check(f, (_POSITIVE,), (_NEGATIVE,))
    assert staged.count("cond") == staged.count("while_loop") == 0


def test_equal_python_values_stay_python_values() -> None:
    def f(x: Tensor, act: Any) -> Any:
        if x.sum() > 0:
            a, b, c, d, e = 1, "s", None, act, (2, [x, "t"])
            k = 3
        else:
            a, b, c, d, e = 1, "s", None, act, (2, [-x, "t"])
            k = 4
        return a, b, c, d is act, e, k

    check(f, (_POSITIVE, ops.neg), (_NEGATIVE, ops.neg))


def test_numbers_that_differ_become_tensors() -> None:
    def f(x: Tensor) -> Any:
        if x.sum() > 0:
            i, f, b, m, t = 1, 0.5, True, 1, 2
        else:
            i, f, b, m, t = -3, 1, False, 1.5, x.sum()
        return i, f, b, m, t

    types = [t.dtype for t in Staged(f, _POSITIVE)(_POSITIVE)]
    assert types == [ms.int64, ms.float32, ms.bool_, ms.float32, ms.float32]
    for x in (_POSITIVE, _NEGATIVE):
        assert [float(t) for t in Staged(f, _POSITIVE)(x)] == [float(t) for t in f(x)]


def test_containers_join_leaf_by_leaf() -> None:
    def f(x: Tensor) -> Any:
        state = {"a": x, "b": (1, [x + 1, None])}
        if x.sum() > 0:
            state = {"a": x * 2, "b": (1, [x, None])}
        return state

    check(f, *_VECTORS)


def test_a_variable_of_the_other_branch_is_not_seen() -> None:
    def f(x: Tensor) -> Tensor:
        t = x + 1
        if x.sum() > 0:
            t = x * 100
            y = x
        else:
            y = t * 3  # the t from before
        return y

    check(f, *_VECTORS)


def test_temporaries_may_differ_in_type() -> None:
    def f(x: Tensor) -> Tensor:
        if x.sum() > 0:
            t: Any = x.reshape((2, 1))
            y = t.sum()
        else:
            t = "text"
            y = x.sum() * len(t)
        return y

    check(f, *_VECTORS)


# -- expressions -------------------------------------------------------------------------------------------


def test_conditional_expressions() -> None:
    def f(x: Tensor, p: int) -> Any:
        a = x * 2 if x.sum() > 0 else -x
        b = (1 if x[0] > 10 else 2) if x[0] > 0 else 3
        c = "py" if p else x
        return a, b, c, [v + 1 if v > 0 else v for v in x]

    check(f, *[(x, 1) for (x,) in _VECTORS])


def test_and_or_not() -> None:
    def f(x: Tensor, p: Any) -> Any:
        a, b = x.sum() > 0, x[0] > 10
        return a and b, a or b, not a, (a and not b) or p, p and a, p or a, (a and True), (a or False) and b

    staged = check(f, *[(x, p) for (x,) in _VECTORS for p in (True,)])
    assert staged.count("cond") == 0  # tests without effects are operators
    check(f, *[(x, False) for (x,) in _VECTORS])


def test_and_or_give_the_value_not_its_truth() -> None:
    def f(x: Tensor, y: Tensor) -> Any:
        return x and y, x or y, (x or y) and 3.5

    cases = [(Tensor(a), Tensor(b)) for a in (0.0, 2.0) for b in (0.0, 5.0)]
    check(f, *cases)


def test_short_circuit_keeps_effects_away() -> None:
    def f(x: Tensor) -> Any:
        calls = [0]

        def noted(v: Any) -> Any:
            calls[0] += 1
            return v

        a = x[0] > 0 and noted(x[1] > 0) and noted(True)
        b = x[0] > 0 or noted(x[1] < -1)
        return a, b, calls[0]

    check(f, *_VECTORS)


def test_chained_comparisons() -> None:
    def f(x: Tensor) -> Any:
        if 0 < x[0] <= x[1] < 10:
            return 1
        return 2 if not -5 <= x.sum() != -3 else 3

    check(f, *_VECTORS)


def test_membership() -> None:
    def f(x: Tensor) -> Any:
        return x in (1.0, 2.0), x not in [x + 1, 5.0], 3 in (1, 3), x in (x,), 2 not in {2: 1}

    check(f, *[(Tensor(v),) for v in (1.0, 2.0, 5.0, 7.0)])


def test_walrus_under_a_tensor() -> None:
    def f(x: Tensor) -> Any:
        if (s := x.sum()) > 0 and (m := s * 2) > 5:
            return m, s
        if s > 100 or (m := s * 3) < 0:
            return m - 1, s
        while (s := s + 1) < 5:
            m = m + s
        return ((q := s) if s > m else (q := m + 0.5)), q

    check(f, *_VECTORS, (Tensor([1.0, 1.0]),), (Tensor([0.5, 1.0]),))


def test_truth_of_many_elements_is_refused_as_eagerly() -> None:
    def f(x: Tensor) -> Any:
        return 1 if x > 0 else 2

    for run in (lambda: f(_POSITIVE), lambda: Staged(f, _POSITIVE)):
        with pytest.raises(ValueError, match="exactly one element"):
            run()


def test_builtins_know_tensors() -> None:
    def f(x: Tensor, y: Tensor) -> Any:
        return (
            max(x, y), min(x, 2.5, y), max([x, y]), min((x, y), key=lambda v: -v), max(1, 2), min([3]),
            any([x > 1, y > 1]), all((x > 0, True, y < 9)), any([]), all([]), sum([x, y]), abs(x), len([x, y]),
            sorted([3, 1]), isinstance(x, Tensor), list(map(lambda v: v if v > 2 else -v, [x, y])),
            [v for v in filter(lambda v: v is not None, [x, None])], list(zip([x], [y], strict=True)),
            functools.reduce(lambda a, b: a if a > b else b, [x, y, x]), list(enumerate([x])),
            list(itertools.accumulate([x, y], lambda a, b: a if a > b else a + b)),
        )  # fmt: skip

    check(f, *[(Tensor(a), Tensor(b)) for a in (0.0, 3.0, 10.0) for b in (1.0, 3.0)])


# -- loops -------------------------------------------------------------------------------------------------


def test_while() -> None:
    def f(x: Tensor, limit: Tensor) -> Any:
        steps = 0
        while x.sum() < limit:
            x = x * 2 + 1
            steps += 1
        else:  # noqa: PLW0120
            steps = steps + 100
        return x, steps

    cases = [(Tensor([1.0, 2.0]), Tensor(v)) for v in (-1.0, 3.0, 50.0, 1000.0)]
    assert check(f, *cases).count("while_loop") == 1


def test_while_numbers_take_the_types_they_meet() -> None:
    def f(n: Tensor, x: Tensor) -> Any:
        a, b, c, d, kept = 0, 1, False, 0.5, 7
        i = 0
        while i < n:
            a = a + x.sum()
            b = b * 2
            c = not c
            d = d * d
            kept = kept * 1
            i += 1
        return a, b, c, d, i, kept

    staged = Staged(f, Tensor(3), _POSITIVE)
    types = [t.dtype if isinstance(t, Tensor) else type(t) for t in staged(Tensor(3), _POSITIVE)]
    assert types == [ms.float32, ms.int64, ms.bool_, ms.float32, ms.int64, int]
    check(lambda n, x: f(n, x)[1:], *[(Tensor(k), _POSITIVE) for k in (1, 2, 5)])


def test_types_flow_through_swapped_variables() -> None:
    def f(n: Tensor, x: Tensor) -> Any:
        a, b, c = 0, 0, x.sum()
        for _ in range(n):
            a, b, c = b, c, c + 1
        return a * 1.0, b * 1.0, c

    check(f, *[(Tensor(k), _POSITIVE) for k in (0, 1, 2, 5)])


def test_while_that_starts_in_python() -> None:
    def f(x: Tensor) -> Any:
        err, rounds = 1.0, 0
        while err > 0.1 and rounds < 10:
            x = x / 2
            err = (x * x).sum()
            rounds += 1
        return x, rounds

    assert check(f, *_VECTORS).count("while_loop") == 1


def test_while_true_with_break_ends() -> None:
    def f(x: Tensor) -> Any:
        k = 0
        while True:
            if x.sum() > 50:
                break
            x = x * 2 + 1
            k = k + 1
            if k > 20:
                return x, -1
        return x, k

    assert check(f, *_VECTORS).count("while_loop") == 1


def test_while_true_that_only_returns() -> None:
    def f(x: Tensor) -> Any:
        while True:
            if x.sum() > 50:
                return x
            x = x * 2 + 7
            if x[0] > 30:
                return -x

    check(f, *_VECTORS)


def test_statements_that_are_never_reached() -> None:
    def f(x: Tensor) -> Any:
        if x.sum() > 0:
            for i in range(2):
                if x[i] > 1:
                    return x
            return x + 1
        else:
            return -x
        for k in range(3):
            if x[0] > k:
                found = k
                break
        else:
            found = 1
        return x * found

    check(f, *_VECTORS)


@pytest.mark.parametrize("bounds", [(7,), (2, 7), (7, 2), (1, 10, 3), (10, 1, -3), (1, 10, -1), (-4, 5, 4)])
def test_for_over_a_symbolic_range(bounds: tuple[int, ...]) -> None:
    def f(x: Tensor, *b: Any) -> Any:
        last = -100
        for i in range(*b):
            x = x * 2 + i
            last = i
        return x, last

    tensors = tuple(Tensor(v) for v in bounds)
    staged = check(f, (_POSITIVE, *tensors))
    assert staged.count("while_loop") == 1
    for k in range(len(bounds)):
        mixed = tuple(Tensor(v) if i == k else v for i, v in enumerate(bounds))
        check(f, (_POSITIVE, *mixed))


def test_for_range_runs_any_number_of_rounds() -> None:
    def f(n: Tensor) -> Any:
        total, i = 0, -1
        for i in range(n):
            if i == 3:
                continue
            if i > 6:
                break
            total += i
        else:
            total = -total
        return total, i

    check(f, *[(Tensor(k),) for k in (0, 1, 4, 7, 8, 20, -3)])


def test_the_loop_variable_stays() -> None:
    def f(n: Tensor) -> Any:
        for i in range(n):
            pass
        return i

    check(f, (Tensor(3),), (Tensor(1),), (Tensor(10),))


def test_return_from_loops() -> None:
    def f(n: Tensor, x: Tensor) -> Any:
        for i in range(n):
            for j in range(3):
                if x[0] * j > i + 4:
                    return x * i, j
                x = x + 1
            while x.sum() > 30:
                if i == 2:
                    return x, -1
                x = x - 20
        return x, -2

    check(f, *[(Tensor(k), x) for k in (0, 2, 4) for (x,) in _VECTORS])


def test_python_loops_unroll_and_guard() -> None:
    def f(x: Tensor) -> Any:
        seen = 0
        for i, w in enumerate([1.0, 2.0, 4.0]):
            if x[0] * w > 15:
                break
            if x[0] < 0:
                continue
            seen = seen + 1
            x = x * w
        else:
            i = i + 100
        return x, seen, i, w

    staged = check(f, *_VECTORS)
    assert staged.count("while_loop") == 0


def test_a_thousand_python_steps() -> None:
    def f(x: Tensor) -> Tensor:
        for i in range(1000):
            if i % 2:
                continue
            x = x + 1
        return x

    assert float(check(f, (Tensor(0.0),)).leaves is not None)
    assert float(Staged(f, Tensor(0.0))(Tensor(0.0))) == 500


def test_iterating_a_tensor() -> None:
    def f(x: Tensor) -> Any:
        total = x[0] * 0
        for k, row in enumerate(x):
            if row.sum() > 3:
                total = total + row * k
        a, b = x
        return total, a, b, row

    check(f, (Tensor([[1.0, 2.0], [3.0, 4.0]]),), (Tensor([[5.0, 2.0], [-3.0, 4.0]]),))


def test_for_else_proves_that_a_variable_is_bound() -> None:
    def f(x: Tensor) -> Any:
        for i in range(4):
            if x[0] > i * 3:
                y = x * i
                break
        else:
            y = x - 1
        return y

    check(f, *_VECTORS)


def test_loops_in_branches_and_branches_in_loops() -> None:
    def f(x: Tensor, n: Tensor) -> Any:
        if x.sum() > 0:
            for i in range(n):
                if x[i % 2] > 4:
                    x = x - i
                else:
                    k = 0
                    while k < i:
                        x = x + k
                        k += 1
        else:
            while x.sum() < 0:
                x = x + n
        return x

    check(f, *[(x, Tensor(n)) for (x,) in _VECTORS for n in (1, 5)])


def test_try_with_and_finally_around_jumps() -> None:
    def f(x: Tensor) -> Any:
        log = 0
        for _ in range(3):
            try:
                if x.sum() > 10:
                    return x, log
                if x.sum() > 2:
                    continue
                x = x + 1
            except KeyError:
                raise
            else:
                log = log + 10
            finally:
                log = log + 1
        return -x, log

    check(f, *_VECTORS)


def test_an_error_while_staging_a_branch_can_be_caught() -> None:
    def f(x: Tensor) -> Any:
        z = x
        try:
            if x.sum() > 0:
                x[0] = 100.0
                z = x.no_such_method()
        except AttributeError:
            z = x + 7
        return z, x

    staged = Staged(f, _POSITIVE)  # both ways are staged, and one of them cannot be
    x = Tensor([-1.0, -2.0])
    assert [t.tolist() for t in staged(x)] == [[6.0, 5.0], [-1.0, -2.0]]
    assert x.tolist() == [-1.0, -2.0]


# -- functions that are called -----------------------------------------------------------------------------


class _Model:
    def __init__(self) -> None:
        self.scale = 2

    def step(this, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x * this.scale
        return this.other(x)

    def other(self, x: Tensor) -> Tensor:
        return x if x[0] > -1 else -x

    def __call__(self, x: Tensor) -> Tensor:
        return self.step(x) if x[1] > 2 else self.other(x)

    @classmethod
    def build(cls, x: Tensor) -> Any:
        return cls() if x is not None else None


class _Clipped:
    def __init__(self, x: Tensor, *, low: float = 0.0) -> None:
        self.x = x if x.sum() > low else x * 0
        if x[0] > 10:
            self.x = self.x - 1


class _Child(_Model):
    def step(self, x: Tensor) -> Tensor:
        y = super().step(x)
        return y if y.sum() > 5 else super().step(y) - 1


def _factorial(n: int) -> int:
    return 1 if n <= 1 else n * _factorial(n - 1)


def test_everything_called_is_converted() -> None:
    def clip(x: Tensor, *, low: float = 0.0) -> Tensor:
        if x.sum() < low:
            return x * 0
        return x

    def f(x: Tensor) -> Any:
        model, child = _Model(), _Child.build(x)
        half = functools.partial(clip, low=1.0)

        @functools.wraps(clip)
        def wrapped(*args: Any, **kw: Any) -> Any:
            return clip(*args, **kw) if args else None

        absolute = lambda v: v if v.sum() > 0 else -v
        clipped = _Clipped(x, low=2.0)
        assert type(clipped) is _Clipped
        made = clipped.x, model.step(x), model(x), child.step(x)
        return *made, half(x), wrapped(x, low=2), absolute(x), x * _factorial(4)

    check(f, *_VECTORS)


def test_generators_that_branch_between_yields() -> None:
    def f(x: Tensor) -> Any:
        def rows(n: int) -> Any:
            for i in range(n):
                y = x * i if x.sum() > i else x + 0
                if y[0] > 3:
                    y = y - 1
                sent = yield y
                if sent is not None:
                    x[0] = sent
            return "end"

        def outer() -> Any:
            return (yield from rows(2))

        gen = outer()
        first = next(gen)
        second = gen.send(Tensor(9.0)) if x is not None else None
        total = x
        for y in rows(3):
            if y.sum() > 2:
                total = total + y
        return first, second, total, list(rows(1)), sum(v.sum() for v in rows(2))

    check(f, *_VECTORS)


def test_comprehensions_over_tensors() -> None:
    def f(x: Tensor) -> Any:
        return [[v * w if v > w else w for w in x] for v in x], {k: -v if v < 0 else v for k, v in enumerate(x)}

    check(f, *_VECTORS)


def test_cells_called_inside() -> None:
    class Inner(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(Tensor([2.0, 3.0]), name="w")

        def construct(this, x: Tensor) -> Tensor:
            if (x * this.w).sum() > 5:
                return x * this.w
            return -x

    class Outer(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()
            self.depth = 2

        def construct(self, x: Tensor) -> Tensor:
            for _ in range(self.depth):
                x = self.inner(x)
                if x.sum() < -5:
                    break
            return x

    net = Outer()
    check(lambda x: net(x), *_VECTORS)
