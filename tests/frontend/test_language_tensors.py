"""Control flow that depends on tensors, in every form of the language: staged once, right for every input."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from tests.frontend.battery import COUNTS, NUMBERS, Battery, Function, total
from tests.frontend.staging import check

import mycelia as ms
from mycelia import Tensor, ops

program = Battery()

Step = namedtuple("Step", ["value", "index"])

_ROWS = tuple((Tensor(np.array(v, np.float32)),) for v in (
    [[1, 2], [3, 4], [5, -6]], [[-1, 0], [0, 0], [9, 9]], [[0, 0], [0, 0], [0, 0]],
))  # fmt: skip


@dataclasses.dataclass
class Box:
    value: Any
    count: Any = 0


# -- if --------------------------------------------------------------------------------------------------------


@program(grad=True)
def if_without_else(x: Tensor) -> Tensor:
    if x.sum() > 0:
        x = x * 2
    return x


@program(grad=True)
def elif_chain(x: Tensor) -> Tensor:
    s = x.sum()
    if s > 10:
        y = x * s
    elif s > 0:
        y = x + s
    elif s == 0:
        y = x * 5
    else:
        y = -x * s
    return y


@program(grad=True)
def returns_in_each_branch(x: Tensor) -> Any:
    if x.sum() > 10:
        return x * x
    elif x[0] < 0:
        return x - 1
    else:
        return x * 3


@program(grad=True)
def branches_that_assign_different_variables(x: Tensor) -> Any:
    a = b = x
    if x.sum() > 0:
        a = a + 1
        k = 1
    else:
        b = b * 2
        k = 2
    return a, b, k


@program(grad=True)
def nested_ifs_with_early_returns(x: Tensor) -> Any:
    if x[0] > 0:
        if x[1] > 2:
            if x.sum() > 10:
                return x * 5
            x = x + 1
        else:
            return x * x
    elif x.sum() < -1:
        x = x * 2
    return x * x[0]


@program(grad=True)
def results_of_many_kinds(x: Tensor) -> Any:
    if x.sum() > 0:
        out = {"a": x, "b": [1, (x * 2, None)], "s": Step(x, 0), "d": Box(x + 1)}
    else:
        out = {"a": -x, "b": [2, (x * 3, None)], "s": Step(x * 2, 5), "d": Box(x - 1, 3)}
    return out


@program(grad=True)
def strings_and_functions_chosen_alike(x: Tensor) -> Any:
    mode, act = "plain", ops.relu
    if x.sum() > 0:
        mode, act, y = "plain", ops.relu, x
    else:
        y = -x
    return mode, act(y)


@program(grad=True)
def branch_without_effect(x: Tensor) -> Any:
    if x.sum() > 0:
        pass
    else:
        ...
    if not (x.sum() > 0):
        pass
    return x


@program(grad=True)
def del_in_branches(x: Tensor) -> Any:
    t = x + 1
    if x.sum() > 0:
        u = t * 2
        y = u
        del u
    else:
        y = t
    del t
    return y


# -- conditions ------------------------------------------------------------------------------------------------


@program(grad=True)
def conditional_expressions_nested(x: Tensor) -> Any:
    a = x * 2 if x[0] > 0 else (x if x[1] > 0 else -x)
    return a, [v if v > 0 else -v for v in x], {"k": 1 if x.sum() > 3 else 2}, (x if x[0] > x[1] else x * 0).sum()


@program(grad=True)
def boolean_operators(x: Tensor) -> Any:
    a, b = x[0] > 0, x[1] > 2
    return a and b, a or b, not a, not (a and not b), (a or b) and not (a and b), a & b, a | ~b, a ^ b


@program(grad=True)
def comparisons_chained(x: Tensor) -> Any:
    return 0 < x[0] < x[1], -2 <= x[0] <= x[1] != 0, x[0] == x[1] == 0, 1 < 2 < x[0], x[0] < 5 > 3


@program(grad=True)
def conditions_ask_only_for_truth(x: Tensor) -> Any:
    s, n, k = x.sum(), 0, 0
    while k < 1 and (s and (s := (s if (s := s) < 0 else s)) < 0):
        k = k + 1
        if s < -100:
            break
    if s and x[0] or n:
        n = n + 1
    if not (s and n):
        n = n + 2
    if s and x[0] if n > 1 else x[1] or s:
        n = n + 4
    n = n + (8 if s and x[1] and 3 else 16)
    assert (s and x[0]) or n, "never"
    return n, k


@program(grad=True)
def membership(x: Tensor) -> Any:
    a, b = x[0], x[1]
    return (
        a in [b, 1.0],
        a in (20.0, b),
        a not in [-1.0, 0.0],
        (2 if b in [x.sum(), 2.0] else 3),
        a in {"k": 1}.values(),
    )


@program(grad=True)
def walrus_in_conditions(x: Tensor) -> Any:
    if (s := x.sum()) > 10 or (s := s * 2) > 5:
        y = s
    else:
        y = -s
    z = (t := x * 2) if (m := x[0]) > 0 else (t := x * 3)
    return y, s, z, t, m


@program(grad=True)
def walrus_inside_comprehensions(x: Tensor) -> Any:
    first = [(w := v * 2) if v > 0 else (w := v - 1) for v in x]
    second = [v > 0 and (u := v + 1) > 2 for v in x]
    return first, w, second


@program(grad=True)
def match_with_tensor_guards(x: Tensor) -> Any:
    match (x, "abs"):
        case (y, "neg"):
            out = -y
        case (y, "abs") if y.sum() > 0:
            out = y * 2
        case (y, _) if y[0] < 0:
            out = y * 3
        case _:
            out = x * 5
    return out


@program(grad=True)
def match_with_guards_that_return(x: Tensor) -> Any:
    match x.ndim:
        case 2:
            return x
        case 1 if x.sum() > 10:
            return x * 2
        case n if x.sum() > 0 and n > 0:
            x = x + n
        case 1:
            x = x - 1
            if x[0] < -1:
                return -x
    return x * 7


@program(grad=True)
def match_on_tensor_values(x: Tensor) -> Any:
    s = x.sum()
    match s:
        case 3.0:
            k = 1
        case -3.0 | 0.0:
            k = 2
        case _:
            k = 3
    return k, x


# -- while -----------------------------------------------------------------------------------------------------


@program(*NUMBERS, grad=True)
def while_with_else(s: Tensor) -> Any:
    n = 0
    while s > 1:
        s = s / 2
        n += 1
        if n > 2:
            break
    else:
        s = s - 100
    return s, n


@program(*NUMBERS, grad=True)
def while_with_everything(s: Tensor) -> Any:
    seen, k = 0, 0
    while True:
        k += 1
        if k > 8:
            break
        if s > 10:
            s = s - 3
            continue
        if k == 5:
            return s, seen, -1
        seen = seen + k
        s = s + 1
    return s, seen, k


@program(*NUMBERS, grad=True)
def nested_whiles(s: Tensor) -> Any:
    total, i = s * 0, 0
    while i < s:
        j = 0
        while j < i:
            if total > 40:
                break
            total = total + j
            j = j + 1
        else:
            total = total + 0.5
        i = i + 1
    return total, i


@program(*NUMBERS, grad=True)
def newton(s: Tensor) -> Any:
    r, rounds = ops.ones_like(s), 0
    while abs(r * r - s) > 1e-3 and rounds < 20:
        r = 0.5 * (r + s / r)
        rounds += 1
    return r, rounds


@program(*NUMBERS, grad=True)
def while_over_containers(s: Tensor) -> Any:
    state = {"v": s, "pair": (s * 0, [0, 1])}
    box, step = Box(s), Step(s, 0)
    while state["v"] < 10:
        a, (b, c) = state["pair"]
        state = {"v": state["v"] + 4, "pair": (a + 1, [c, b + c])}
        box = Box(box.value * 2, box.count + 1)
        step = step._replace(value=step.value - 1, index=step.index + 1)
    return state, box, step


@program(*NUMBERS, grad=True)
def while_on_attributes_and_items(s: Tensor) -> Any:
    box, d, items = Box(s), {"n": 0}, [s, 0]
    while box.value < 6:
        box.value += 2
        box.count = box.count + 1
        d["n"] += 2
        items[0] = items[0] * 2
        items[1] += 1
    return box, d, items


@program(*NUMBERS, grad=True)
def counting_down_in_python_and_tensor(s: Tensor) -> Any:
    n = 4
    while n > 0 and s < 12:
        n -= 1
        s = s + n
    return s, n


# -- for -------------------------------------------------------------------------------------------------------


@program(*COUNTS)
def for_over_a_tensor_range(n: Tensor) -> Any:
    total = 0
    for i in range(n):
        total += i * i
    return total


@program(*COUNTS)
def for_with_start_and_step(n: Tensor) -> Any:
    a, b = 0, 1.0
    for i in range(1, n + 3, 2):
        a = a * 10 + i
    for i in range(n, -1, -1):
        b = b + i
    return a, b


@program(*COUNTS)
def for_with_break_continue_else(n: Tensor) -> Any:
    total = 0
    for i in range(n):
        if i == 1:
            continue
        if i > 4:
            break
        total = total + i
    else:
        total = -total - 1
    return total, i if n > 0 else -5


@program(*COUNTS)
def jumps_in_the_else_of_an_inner_loop(n: Tensor) -> Any:
    out = 0
    for i in range(n):
        for j in range(i):
            if j == 3:
                break
        else:
            out += 1
            continue
        out += 100
        break
    else:
        out = -out
    return out


@program(*COUNTS)
def for_with_early_returns(n: Tensor) -> Any:
    for i in range(n):
        for j in range(n):
            if i * j > 5:
                return i, j
            if j > i:
                break
    return -1, -1


@program(*_ROWS, grad=True)
def for_over_rows(x: Tensor) -> Any:
    total = x[0] * 0
    for row in x:
        if row.sum() > 2:
            total = total + row * row
        elif row[0] < 0:
            continue
        else:
            total = total - 1
    return total


@program(*_ROWS, grad=True)
def enumerate_and_zip(x: Tensor) -> Any:
    total = x[0] * 0
    for i, (row, other) in enumerate(zip(x, x * 2)):
        if row[0] > other[1]:
            total = total + i * row
        else:
            total = total + other * row
    for k, row in enumerate(x, start=1):
        total = total * k
    return total


@program(*_ROWS, grad=True)
def search_with_for_else(x: Tensor) -> Any:
    for i, row in enumerate(x):
        if row.sum() > 6:
            found = i
            break
    else:
        found = -1
    return found


@program(*_ROWS, grad=True)
def first_row_that_fits(x: Tensor) -> Any:
    for row in x:
        if row.max() > 3:
            return row * 2
    return x.sum() * x[0]


@program(*_ROWS, grad=True)
def reversed_and_sliced_rows(x: Tensor) -> Any:
    out = []
    for row in reversed(x[1:]):
        out.append(row if row.sum() > 0 else row * 0)
    first, *others = x
    (a, b), *_ = x
    return out, first, others, a, b, [*x[0]], list(x[:, 0])


@program(grad=True)
def loops_that_grow_lists(x: Tensor) -> Any:
    out = []
    for i in range(3):
        if x.sum() > i:
            x = x + 1
        out.append(x * i)
    for v in x:
        out.extend([v, v if v > 0 else -v])
    return out, ops.stack(out[:3]), len(out)


@program(*COUNTS)
def loops_over_lists_of_tensors(n: Tensor) -> Any:
    parts = [n + k for k in range(4)]
    best, where = parts[0], 0
    for k, part in enumerate(parts):
        if part % 3 > best % 3:
            best, where = part, k
    return best, where, {k: v for k, v in enumerate(parts) if k % 2}


@program(*COUNTS)
def bounded_growth_with_a_buffer(n: Tensor) -> Any:
    buffer = ops.zeros((8,), n.dtype)
    size = 0
    for i in range(n):
        if i % 2 == 0:
            buffer[size] = i * 10
            size += 1
    return buffer, size


# -- assignment to places --------------------------------------------------------------------------------------


@program(grad=True)
def augmented_assignment(x: Tensor) -> Any:
    y = x * 1
    alias = y
    if x.sum() > 0:
        y += 1
        y *= 2
    else:
        y -= 3
        y /= 2
    z = x * 1
    z **= 2
    z //= 2
    z %= 3
    return y, z, alias


@program(grad=True)
def subscript_assignment(x: Tensor) -> Any:
    y = ops.zeros((3, 2), x.dtype)
    y[0] = x
    if x.sum() > 0:
        y[1, 0] = 5.0
        y[2] += x
    else:
        y[1:] = -1
        y[..., 1] *= 2
    y[y > 4] = 4
    return y


@program(*COUNTS)
def subscript_assignment_in_loops(n: Tensor) -> Any:
    table = ops.zeros((8,), n.dtype)
    table[0] = 1
    table[1] = 1
    for i in range(2, n + 2):
        table[i] = table[i - 1] + table[i - 2]
    while table[0] < n:
        table[0] += 2
    return table, table[n]


@program(grad=True)
def attributes_of_objects(x: Tensor) -> Any:
    box, other = Box(x), Box(x * 2)
    if x.sum() > 0:
        box.value, box.count = other.value + 1, 1
    elif x[0] < 0:
        other.count += 2
        setattr(box, "value", x * 9)
    else:
        del box.count
        box.count = 7
    return box, other


@program(grad=True)
def containers_changed_in_branches(x: Tensor) -> Any:
    items, d, s = [x, x], {"a": x}, {1, 2}
    if x.sum() > 0:
        items[0] = x + 1
        items.append(x * 7)
        d["b"] = 1
        d.update(a=d.pop("a") * 2)
        s.add(3)
    else:
        items.insert(1, x * 5)
        d["b"] = 2
        d["a"] = d.pop("a") * 3
        s |= {3}
    return items, d["a"], d["b"], sorted(s)


@program(grad=True)
def nonlocal_in_branches(x: Tensor) -> Any:
    count, last = 0, x

    def note(v: Tensor) -> None:
        nonlocal count, last
        count += 1
        last = v

    if x.sum() > 0:
        note(x * 2)
        if x.sum() > 10:
            note(x * 3)
    else:
        note(-x)
    return count, last


@pytest.mark.parametrize(("fn", "cases"), program.rows)
def test_tensors(fn: Function, cases: tuple[Any, ...]) -> None:
    check(fn, *cases)


@pytest.mark.parametrize(("fn", "cases"), program.differentiable)
def test_gradients(fn: Function, cases: tuple[Any, ...]) -> None:
    gradient = ms.grad(lambda x: total(fn(x)))
    check(lambda x: gradient(x), *cases)
