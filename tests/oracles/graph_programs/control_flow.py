"""Fifteen programs whose control flow depends on the values of tensors; each is called so that every way is taken.

The results are computed by NumPy or by plain Python on its numbers.
"""

from __future__ import annotations

import numpy as np
from tests.oracles.graph_programs.given import ops
from tests.oracles.graph_programs.program import Raises, cases, floats, integer, program, scalar

X = floats(1.0, -2.0, 3.0)
M = floats([1.0, 2.0], [4.0, -5.0], [0.5, 9.0])


def f(value):
    return np.float32(value)


def if_elif_else(x):
    if x.sum() > 5:
        return x * 2
    elif x.sum() > 0:
        return x + 10
    else:
        return -x


def if_elif_else_numpy(x):
    return x * 2 if x.sum() > 5 else x + 10 if x.sum() > 0 else -x


def while_loop(a):
    root = a
    rounds = 0
    while ops.abs(root * root - a) > 1e-4 * a:
        root = (root + a / root) / 2
        rounds = rounds + 1
    return root


def for_range(x, n):
    total = x
    for i in range(n):
        total = total * 0.5 + i
    return total


def for_range_numpy(x, n):
    for i in range(int(n)):
        x = x * f(0.5) + f(i)
    return x


def for_rows(rows):
    state = rows[0] * 0
    for row in rows:
        state = ops.maximum(state * 0.5, row)
    return state


def for_rows_numpy(rows):
    state = rows[0] * 0
    for row in rows:
        state = np.maximum(state * f(0.5), row)
    return state


def break_and_continue(x, limit):
    k = 0
    total = x * 0
    while k < 20:
        k = k + 1
        if k % 3 == 0:
            continue
        total = total + x * k
        if total.sum() > limit:
            break
    return total


def break_and_continue_numpy(x, limit):
    total = x * 0
    for k in range(1, 21):
        if k % 3:
            total = total + x * f(k)
            if total.sum() > limit:
                break
    return total


def early_return(x, n):
    i = 0
    while i < n:
        x = x + 1
        if x.max() > 5:
            return x * i
        i = i + 1
    return -x


def early_return_numpy(x, n):
    for i in range(int(n)):
        x = x + 1
        if x.max() > 5:
            return x * f(i)
    return -x


def nested(x, n):
    y = x
    if n > 1:
        while n > 0:
            for k in range(3):
                if y.sum() > 4 * k:
                    y = y - k
                else:
                    y = y + 1
            n = n - 1
    return y


def nested_numpy(x, n):
    if n > 1:
        for _ in range(int(n)):
            for k in range(3):
                x = x - f(k) if x.sum() > 4 * k else x + f(1)
    return x


def conditional_expression(x, y):
    big = x if x > y else y
    return big * 2 if big > 0 else (x * y if x * y > 1 else y - x)


def conditional_expression_numpy(x, y):
    big = max(x, y)
    return np.array(big * 2 if big > 0 else (x * y if x * y > 1 else y - x))


def boolean_operators(x):
    if (0 < x <= 5 and not x == 3) or x < -10:  # noqa: SIM201
        return x + 1
    return x * 0


def boolean_operators_numpy(x):
    return np.array(x + 1 if (0 < x <= 5 and x != 3) or x < -10 else x * 0, np.float32)


def assert_and_raise(x):
    assert x.max() < 100, "too large"
    if x.min() < 0:
        raise ValueError("must not be negative")
    return x + 1


def subscript_assignment(x, n):
    out = ops.zeros((4, 3), x.dtype)
    i = 0
    while i < n:
        out[i] = x * i
        out[i, 0] = out[i, 0] + 1
        i = i + 1
    return out


def subscript_assignment_numpy(x, n):
    out = np.zeros((4, 3), np.float32)
    for i in range(int(n)):
        out[i] = x * f(i)
        out[i, 0] += 1
    return out


def list_growth(x):
    states = [x]
    for k in range(3):
        if states[-1].sum() > 2:
            step = states[-1] - k
        else:
            step = states[-1] * 2
        states.append(step)
    return ops.stack(states)


def list_growth_numpy(x):
    states = [x]
    for k in range(3):
        states.append(states[-1] - f(k) if states[-1].sum() > 2 else states[-1] * f(2))
    return np.stack(states)


def dict_state(x, n):
    state = {"value": x, "rounds": n * 0}
    while state["rounds"] < n:
        if state["value"].sum() > 3:
            state["value"] = state["value"] - 1
        else:
            state["value"] = state["value"] * 3
        state["rounds"] = state["rounds"] + 1
    return state


def dict_state_numpy(x, n):
    for _ in range(int(n)):
        x = x - f(1) if x.sum() > 3 else x * f(3)
    return {"value": x, "rounds": n}


def different_variables(x):
    a = x
    b = x * 2
    if x.sum() > 0:
        a = a + 1
        shift = a * 2
    else:
        b = b - 1
        shift = b
        scale = 3.0
        b = b * scale
    return a, b, shift


def different_variables_numpy(x):
    return (x + 1, x * 2, (x + 1) * 2) if x.sum() > 0 else (x, (x * 2 - 1) * 3, x * 2 - 1)


def print_order(x, n):
    print("begin", x)
    i = 0
    while i < n:
        if x.sum() > 3:
            print("large", x.sum())
            x = x - 1
        else:
            print("small")
            x = x + 2
        i = i + 1
    print("end", i)
    return x


def print_order_numpy(x, n):
    for _ in range(int(n)):
        x = x - f(1) if x.sum() > 3 else x + f(2)
    return x


# X.sum() is 2: small (8), large (5), large (2), small (8)
PRINTED = ("begin", "small", "large", "large", "end", "begin", "small", "large", "large", "small", "end")

PROGRAMS = [
    program("if, elif, else that return", if_elif_else, *cases(if_elif_else_numpy, (X,), (X * 3,), (-X,))),
    program("while", while_loop, *cases(lambda a: np.sqrt(a), (scalar(2.0),), (scalar(81.0),), (scalar(1.0),))),
    program("for over range(tensor)", for_range, *cases(for_range_numpy, (X, integer(3)), (X, integer(7)))),
    program("for over the rows of a tensor", for_rows, *cases(for_rows_numpy, (M,))),
    program("break and continue", break_and_continue,
            *cases(break_and_continue_numpy, (X, scalar(10)), (X, scalar(1e9)), (X, scalar(-1)))),
    program("return inside a loop", early_return,
            *cases(early_return_numpy, (X, integer(2)), (X, integer(10)), (X, integer(0)))),
    program("for in while in if", nested, *cases(nested_numpy, (X, integer(3)), (X, integer(1)), (-X, integer(2)))),
    program("conditional expressions", conditional_expression,
            *cases(conditional_expression_numpy, (scalar(1), scalar(4)), (scalar(-2), scalar(-3)),
                   (scalar(-0.5), scalar(-0.25)))),
    program("and, or, not, chained comparisons", boolean_operators,
            *cases(boolean_operators_numpy, *[(scalar(v),) for v in (2, 3, 5, 6, 0, -11)])),
    program("assert and raise in one function", assert_and_raise, ((np.abs(X),), np.abs(X) + 1),
            ((X,), Raises("ValueError", "must not be negative")), ((X * 100,), Raises("AssertionError", "too large"))),
    program("subscript assignment in a loop", subscript_assignment,
            *cases(subscript_assignment_numpy, (X, integer(3)), (X, integer(4)), (X, integer(0)))),
    program("a list that grows in a counted loop", list_growth, *cases(list_growth_numpy, (X,), (-X,), (X * 4,))),
    program("a dict as the state of a loop", dict_state,
            *cases(dict_state_numpy, (X, integer(4)), (-X, integer(2)), (X, integer(0)))),
    program("different variables in branches", different_variables, *cases(different_variables_numpy, (X,), (-X,))),
    program("order of printing", print_order, *cases(print_order_numpy, (X, integer(3)), (X, integer(4))),
            printed=PRINTED),
]  # fmt: skip
