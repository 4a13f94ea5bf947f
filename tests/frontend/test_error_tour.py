"""The programs of tests/frontend/error_tour/: each ends with an error that says where, what and what to do instead.

docs/graph-errors.md shows them; it is compared with what the programs print now.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    AttributeMissingError,
    DTypeError,
    GraphError,
    GraphTypeError,
    OutOfRangeError,
    ShapeError,
    StateError,
    UnboundInGraphError,
    UnsupportedError,
)

ROOT = Path(__file__).resolve().parents[2]

#: For each program: the class of the error, the text that is underlined, and words of the message.
EXPECTED: dict[str, tuple[type[Exception], str, tuple[str, ...]]] = {
    "append_in_branch": (GraphTypeError, "x.mean() > 0", ("'history'", "list of length 1", "list of length 0")),
    "argument_count": (
        TypeError,
        "Net()(ms.Tensor([1.0]), 2.0, 3.0)",
        ("3 positional arguments but 4", "construct(x, scale)"),
    ),
    "argument_keyword": (TypeError, "Net()(ms.Tensor([1.0]), scaling=2.0)", ("'scaling'", "construct(x, scale=1.0)")),
    "asnumpy_of_tensor": (GraphError, "x.asnumpy()", ("float32[3]", "Tensor float32[3]", "x is ")),
    "assert_fails": (AssertionError, "x.min() >= 0", ("negative input: [ 4. -9.]",)),
    "assert_without_message": (AssertionError, "(y >= 1).all()", ("y is [2.  0.5]",)),
    "assign_shape": (
        ShapeError,
        "ops.assign(self.mean, x)",
        ("argument 'value'", "shape (3,)", "shape (2,)", "Parameter float32[2]"),
    ),
    "attribute_in_branch": (GraphTypeError, "x.mean() > 0", ("attribute 'last'", "set only if the condition is true")),
    "attribute_type_in_branch": (GraphTypeError, "x.mean() > 0", ("'best'", "Tensor float32[2]", "None")),
    "axis_argument": (GraphError, "x.sum(axis)", ("argument 'dim'", "Tensor int64[]", "Tensor float32[2,2]", "x is ")),
    "boolean_index": (GraphError, "x[x > 0]", ("Tensor bool[2]", "x is a Tensor float32[2]")),
    "branch_container": (GraphTypeError, "x.sum() > 0", ("'pair'", "tuple of length 2", "list of length 2")),
    "branch_dict_keys": (GraphTypeError, "x.mean() > 0", ("'out'", "dict with the keys", "dict with the key")),
    "branch_dtype": (GraphTypeError, "x.sum() > 0", ("'y'", "Tensor float32[2]", "Tensor int32[2]")),
    "branch_none": (GraphTypeError, "x.sum() > 0", ("'cache'", "Tensor float32[2]", "None")),
    "branch_shape": (GraphTypeError, "x.max() > 1", ("'y'", "Tensor float32[4]", "Tensor float32[2]")),
    "branch_string": (GraphTypeError, '"sum" if x.mean() > 0 else "max"', ("the str 'sum'", "the str 'max'")),
    "broadcast": (
        ShapeError,
        "(x * 2) + bias",
        ("argument 'other'", "shape (4,)", "Tensor float32[2,3]", "Tensor float32[4]"),
    ),
    "call_of_tensor": (TypeError, "x(factor)", ("'Tensor'", "Tensor float32[1]", "the float 2.0", "x is ")),
    "captured_list": (GraphTypeError, "x.mean() > 0", ("'self.seen'", "list of length 1", "list of length 0")),
    "caught_raise": (GraphError, 'raise ValueError("too large")', ("cannot be caught inside the graph",)),
    "compare_containers": (GraphError, "[x, y] == [y, x]", ("bool[2]", "Tensor float32[2]", "x is ", "y is ")),
    "comprehension_filter": (GraphError, "v > 1", ("Tensor float32[]", "v is ")),
    "concat_shapes": (
        ShapeError,
        "ops.concat([a, b], axis=0)",
        ("argument 'tensors[1]'", "shape (2, 4)", "tensors[0]", "Tensor float32[2,3]"),
    ),
    "context_manager": (TypeError, "with x:", ("'Tensor'", "Tensor float32[1]", "x is ")),
    "coroutine": (ArgumentTypeError, "ms.jit", ("'function'", "the coroutine function 'fetch'")),
    "dense_shape": (ShapeError, "self.dense(x)", ("argument 'x'", "shape (2, 4)", "Tensor float32[2,4]", "x is ")),
    "dict_changed_in_branch": (GraphTypeError, "x.mean() > 0", ("'seen'", "dict with the key", "dict of length 0")),
    "dict_key": (KeyError, "TABLE[kind]", ("dict with the keys", "Tensor int64[]", "TABLE is ", "kind is ")),
    "embedding_dtype": (
        DTypeError,
        "self.table(ids)",
        ("argument 'ids'", "dtype Float32", "Tensor float32[2]", "ids is "),
    ),
    "float_of_tensor": (GraphError, "math.sqrt((x * x).sum())", ("float32[]", "Tensor float32[2]", "x is ")),
    "format_spec": (GraphError, 'f"mean: {x.mean():.3f}"', ("float32[]",)),
    "generator": (ArgumentTypeError, "ms.jit", ("'function'", "the generator function 'halves'")),
    "global_in_branch": (GraphTypeError, "x.mean() > 0", ("'state'", "the str 'busy'", "the str 'idle'")),
    "grad_of_integer": (
        ArgumentTypeError,
        "ms.grad(lambda v: (v * v).sum())(x)",
        ("argument 'v'", "dtype Int64", "Tensor int64[2]", "x is "),
    ),
    "grad_of_text": (
        ArgumentTypeError,
        "ms.grad(describe)(ms.Tensor([1.0, 2.0]))",
        ("'fn'", "returned tuple", "returns a Tensor"),
    ),
    "grad_position": (
        OutOfRangeError,
        "ms.grad(loss, grad_position=2)(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0]))",
        ("'grad_position'", "got 2", "2 positional arguments"),
    ),
    "identity_of_tensors": (AssertionError, "y is True", ("Tensor bool[]", "y is ")),
    "index_out_of_range": (OutOfRangeError, "x[3]", ("argument 'index'", "Tensor float32[2]", "x is ")),
    "inplace_shape": (
        ShapeError,
        "x += y",
        ("argument 'other'", "shape (3,)", "Tensor float32[2]", "Tensor float32[3]"),
    ),
    "int_of_tensor": (GraphError, "int(length)", ("int64[]", "Tensor int64[]", "length is ")),
    "item_of_tensor": (GraphError, "x.max().item()", ("float32[]", "Tensor float32[3]", "x is ")),
    "jit_keyword": (ArgumentTypeError, 'ms.jit(jit_levle="O1")', ("'jit_levle'", "did you mean 'jit_level'?")),
    "jit_no_function": (
        ArgumentTypeError,
        "ms.jit(ms.Tensor([1.0]))",
        ("'function'", "Tensor", "a function, method or Cell"),
    ),
    "jit_option": (ArgumentValueError, 'ms.jit(jit_level="O9")', ("'jit_level'", "'O9'", "'O1'")),
    "leaked_tensor": (GraphError, "kept[0] + 1", ("float32[2]", "y = x * 2")),
    "leaked_value": (GraphError, "net.hidden.asnumpy()", ("float32[2]", "self.hidden = x * 2")),
    "list_for_tensor": (AttributeError, "x.abs", ("'list'", "list of length 2", "x is ")),
    "list_index": (GraphError, "choices[i]", ("int64[]", "list of length 2", "Tensor int64[]", "choices is ")),
    "list_times_number": (TypeError, "x * 0.5", ("list of length 2", "x is ")),
    "loop_dtype": (GraphTypeError, "x.sum() > 1", ("'x'", "Tensor float32[2]", "Tensor float16[2]")),
    "loop_list_grows": (GraphTypeError, "range(n)", ("'rows'", "list of length 0", "list of length 1")),
    "loop_shape": (GraphTypeError, "range(n)", ("'x'", "Tensor float32[2]", "Tensor float32[4]")),
    "masked_select_shape": (GraphError, "ops.masked_select(x, x > 0)", ("Tensor float32[2]", "x is ")),
    "matmul_nested": (
        ShapeError,
        "ops.matmul(x, self.weight)",
        ("argument 'other'", "shape (8, 3)", "'input'", "shape (2, 4)"),
    ),
    "missing_construct": (StateError, "Net()(ms.Tensor([1.0]))", ("'construct'", "'forward'")),
    "missing_key": (KeyError, 'batch["labels"]', ("'labels'", "the keys 'image', 'label'", "did you mean 'label'?")),
    "missing_source": (GraphError, "flip(x)", ("bool[]", "the source of 'flip' is not available")),
    "misspelled_attribute": (AttributeMissingError, "self.dens", ("'dens'", "did you mean 'dense'?")),
    "misspelled_method": (AttributeMissingError, "x.flaten", ("'flaten'", "did you mean 'flatten'?")),
    "nonlocal_in_branch": (GraphTypeError, "v > 0", ("'found'", "Tensor float32[]", "None")),
    "nonzero_shape": (GraphError, "ops.nonzero(x)", ("Tensor float32[2]", "x is ")),
    "numpy_call": (GraphError, "np.log(x / (1 - x))", ("float32[2]", "Tensor float32[2]", "x is ")),
    "optional_argument": (TypeError, "x * mask", ("None", "Tensor float32[2]", "x is ", "mask is ")),
    "parameter_in_construct": (
        GraphError,
        'ms.Parameter(ops.ones((2,), ms.float32), name="weight")',
        ("'weight'", "float32[2]"),
    ),
    "raise_in_loop": (
        RuntimeError,
        'raise RuntimeError(f"no convergence after {rounds} rounds: x = {x}")',
        ("after 4 rounds", "x = 62.5"),
    ),
    "raise_under_condition": (ValueError, 'raise ValueError("loss", loss, "is above", limit)', ("7.5", "5.0")),
    "range_in_list": (
        GraphError,
        "[x * i for i in range(n)]",
        ("Tensor float32[2]", "Tensor int64[]", "x is ", "n is "),
    ),
    "range_of_float": (
        ArgumentTypeError,
        "range(x.max())",
        ("argument 'bound'", "Tensor float32[]", "Tensor float32[2]", "x is "),
    ),
    "recursion": (RecursionError, "factorial(n - 1)", ("'factorial'", "Tensor int64[]", "n is ")),
    "reshape_argument": (
        GraphError,
        "x.reshape((n, -1))",
        ("argument 'shape'", "Tensor int64[]", "Tensor float32[4]", "x is "),
    ),
    "return_missing": (GraphTypeError, "range(3)", ("None", "Tensor float32[]")),
    "return_object": (GraphTypeError, "x.mean() > 0", ("the function 'relu'", "the function 'tanh'")),
    "return_shapes": (GraphTypeError, "x.max() > 10", ("Tensor float32[]", "Tensor float32[2]")),
    "set_of_tensors": (GraphError, "y in {1, 2, 3}", ("Tensor int64[]", "y is ")),
    "setitem_shape": (ShapeError, "x[0]", ("argument 'value'", "shape (3,)", "Tensor float32[2,2]", "x is ")),
    "shape_argument": (GraphError, "ops.zeros((n, 2), ms.float32)", ("argument 'size'", "Tensor int64[]", "n is ")),
    "slice_bound": (GraphError, "x[:length]", ("Tensor float32[3]", "Tensor int64[]", "x is ", "length is ")),
    "stack_in_loop": (GraphTypeError, "range(n)", ("'acc'", "the int 0", "Tensor float32[2]")),
    "string_of_tensor": (
        KeyError,
        "SCALES[str(level)]",
        ("Tensor int64[]", "dict with the keys", "SCALES is ", "level is "),
    ),
    "tensor_hook": (UnsupportedError, "y.register_hook(print)", ("float32[2]", "Tensor float32[2]", "y is ")),
    "text_result": (GraphError, "describe(ms.Tensor([1.0, 2.0]))", ("Tensor float32[]",)),
    "third_party_call": (GraphError, "expit(x)", ("float32[2]", "Tensor float32[2]", "x is ")),
    "too_many_indices": (OutOfRangeError, "x[0, 0]", ("argument 'index'", "shape (2,)", "Tensor float32[2]", "x is ")),
    "truth_of_vector": (ArgumentValueError, "x > 0", ("argument 'self'", "shape (2,)", "Tensor float32[2]", "x is ")),
    "undefined_after_loop": (UnboundInGraphError, "y", ("'y' has no value",)),
    "undefined_in_branch": (UnboundInGraphError, "bonus", ("'bonus'", "only if the condition at line 6 is true")),
    "undefined_name": (NameError, "bias", ("'bias'", "Tensor float32[2]", "x is ")),
    "unique_shape": (GraphError, "ops.unique(labels)", ("Tensor int64[3]", "labels is ")),
    "unpacking": (ValueError, "x0, y0, width", ("Tensor float32[4]", "box is ")),
    "unpacking_scalar": (ArgumentTypeError, "value, extra", ("argument 'self'", "Tensor float32[]", "loss is ")),
    "while_changes_kind": (GraphTypeError, "x.sum() < 10", ("'best'", "None", "Tensor float32[2]")),
    "yield_in_loop": (GraphError, "yield x * i", ("Tensor float32[1]", "Tensor int64[]", "x is ", "i is ")),
    "deleted_in_branch": (UnboundInGraphError, "y", ("'y'", "only if the condition at line 7 is false")),
    "kept_for_the_next_call": (
        GraphError,
        "x + self.previous",
        ("self.previous is a Tensor float32[1]", "in a Parameter"),
    ),
    "set_inputs_mismatch": (
        ShapeError,
        "net(ops.ones((2, 4)))",
        ("argument 'x'", "float32[2, 4]", "float32[None, 3]", "set_inputs"),
    ),
    "wrong_nested_arguments": (TypeError, "self.dense(x, True)", ("3 were given", "Dense.construct(x)")),
}
#: Errors of operators that run at once: their tracebacks leave through no door of the front-end.
EAGER = {"leaked_tensor", "leaked_value"}


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_error_tour", ROOT / "scripts" / "make_error_tour.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


tour = _script()


#: Since 3.12 a comprehension is no function of its own, and other variables are in sight of its errors.
COMPREHENSIONS = ("comprehension_filter", "range_in_list")


@cache
def outcome(name: str) -> Any:
    return tour.run(tour.PROGRAMS / f"{name}.py")


def underlined(message: str) -> str:
    """What stands above the carets of a message."""
    lines = message.splitlines()
    found = [i for i, line in enumerate(lines) if line.strip() and set(line.strip()) == {"^"}]
    assert len(found) == 1, message
    carets = lines[found[0]]
    start = len(carets) - len(carets.lstrip())
    return lines[found[0] - 1][start : len(carets)]


def test_every_program_is_expected():
    assert {p.path.stem for p in tour.programs()} == set(EXPECTED)
    assert len(EXPECTED) >= 40


@pytest.mark.parametrize("name", EXPECTED)
def test_the_message(name):
    kind, under, words = EXPECTED[name]
    found = outcome(name)
    assert type(found.error) is kind
    assert len(found.printed.splitlines()) <= 25, found.printed
    if sys.version_info[:2] == (3, 11):
        assert underlined(found.message) == under
    else:  # some instructions have wider or narrower positions in other versions
        assert underlined(found.message) in under or under in underlined(found.message)
    assert f"\n  at {name}.py:" in found.message
    inlined = sys.version_info >= (3, 12) and name in COMPREHENSIONS
    for word in words:
        assert word in found.message or inlined, found.message
    source = tour.program(tour.PROGRAMS / f"{name}.py").code
    line = int(found.message.partition(f"\n  at {name}.py:")[2].partition(",")[0])
    assert under in source.splitlines()[line - 1]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_traceback_is_the_users(name):
    printed = outcome(name).printed
    files = [line.split('"')[1] for line in printed.splitlines() if line.startswith('  File "')]
    ours = [f for f in files if "mycelia" in Path(f).parts and "site-packages" not in f]
    assert f"{name}.py" in files
    assert not any("jax" in Path(f).parts for f in files), printed
    assert not ours or name in EAGER, printed
    assert "The above exception" not in printed
    assert "During handling" not in printed


def test_the_page_shows_what_is_printed():
    page = tour.PAGE.read_text(encoding="utf-8")
    assert [p.title for p in tour.programs()] == [line[3:] for line in page.splitlines() if line.startswith("## ")]
    if sys.version_info[:2] == (3, 11):  # Python's own messages and columns differ from version to version
        now = tour.page(lambda path: outcome(path.stem))
        assert page == now, "run python scripts/make_error_tour.py"


def test_the_whole_traceback_on_request(monkeypatch):
    monkeypatch.setenv("MYCELIA_TRACEBACK", "full")
    printed = tour.run(tour.PROGRAMS / "branch_dtype.py").printed
    assert "jit.py" in printed
    assert "branches.py" in printed
