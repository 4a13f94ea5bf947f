"""HyperMap, Map, MultitypeFuncGraph, clipping, Python values, and the faces that name them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.oracles import legacy_cases

import mycelia as ms
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError
from mycelia.ops import auto_generate, composite as C, function, functional as F, legacy, operations as P

X = ms.Tensor([1.0, -2.0])


def _doubler():
    double = C.MultitypeFuncGraph("double")

    @double.register("Tensor")
    def _tensor(x):
        if x.sum() > 0:
            return x * 2
        return x * 3

    @double.register("Number")
    def _number(x):
        return x * 2

    @double.register("Function", "Tensor")
    def _called(fn, x):
        return fn(x)

    return double


def test_a_function_is_chosen_by_types():
    double = _doubler()
    np.testing.assert_array_equal(double(X).asnumpy(), [3, -6])
    assert (double(3), double(1.5), double(True)) == (6, 3.0, 2)
    np.testing.assert_array_equal(double(lambda x: x + 1, X).asnumpy(), [2, -1])
    np.testing.assert_array_equal(double(ms.Parameter(X, name="p")).asnumpy(), [3, -6])
    np.testing.assert_array_equal(ms.jit(lambda x: double(x + 4))(X).asnumpy(), [10, 4])
    assert repr(double) == "MultitypeFuncGraph('double', 3 functions)"


@pytest.mark.parametrize(
    ("names", "value"),
    [
        (["Bool"], True), (["Int"], 1), (["Float"], 1.0), (["String"], "a"), (["Tuple"], (1,)), (["List"], [1]),
        (["Dictionary"], {}), (["None"], None), (["Tensor"], X), ([ms.Tensor], X), ([int], 2), (["number"], 2j),
    ],
)  # fmt: skip
def test_type_names(names, value):
    graph = C.MultitypeFuncGraph("g")
    graph.register("Ellipsis")(lambda x: "wrong")
    graph.register(*names)(lambda x: "right")
    assert graph(value) == "right"


def test_a_bool_is_no_int_but_a_number():
    graph = C.MultitypeFuncGraph("g")
    graph.register("Int")(lambda x: "int")
    graph.register("Number")(lambda x: "number")
    assert (graph(True), graph(1)) == ("number", "int")


def test_nothing_registered_for_the_types():
    double = _doubler()
    with pytest.raises(ArgumentTypeError, match=r"double: no function is registered for arguments \(str\)") as caught:
        double("x")
    assert "(Function, Tensor)" in str(caught.value)
    with pytest.raises(ArgumentValueError, match="argument 'type_names' got 'Colour'"):
        double.register("Colour")


def test_hyper_map_keeps_the_shape_of_nests():
    add = C.HyperMap(ms.ops.add)
    a, (b, c) = add((X, [X, (X,)]), (X, [X, (X,)]))
    for made in (a, b, c[0]):
        np.testing.assert_array_equal(made.asnumpy(), [2, -4])
    np.testing.assert_array_equal(add(X, X).asnumpy(), [2, -4])
    assert C.HyperMap()(lambda x, y: x - y, ((1, 2), 3), ((4, 6), 8)) == ((-3, -4), -5)
    np.testing.assert_array_equal(C.hyper_add((X,), (X,))[0].asnumpy(), [2, -4])


def test_hyper_map_over_gradients_in_a_graph():
    scale = C.MultitypeFuncGraph("scale")

    @scale.register("Number", "Tensor")
    def _scaled(factor, grad):
        return grad * factor

    hyper_map = C.HyperMap()

    @ms.jit
    def scaled(*grads):
        return hyper_map(F.partial(scale, 0.5), grads)

    first, second = scaled(X, X * 2)
    np.testing.assert_array_equal(first.asnumpy(), [0.5, -1])
    np.testing.assert_array_equal(second.asnumpy(), [1, -2])


def test_order_of_maps():
    seen = []
    assert C.Map(lambda x: seen.append(x) or -x, reverse=True)((1, 2, 3)) == (-1, -2, -3)
    assert seen == [3, 2, 1]
    assert C.Map()(sum, ((1, 2), (3, 4))) == (3, 7)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: C.HyperMap()((1, 2)), ArgumentTypeError, "HyperMap: argument 'argument 0' got tuple"),
        (C.HyperMap(), ArgumentTypeError, "got nothing"),
        (lambda: C.HyperMap(3), ArgumentTypeError, "argument 'ops' got int"),
        (lambda: C.HyperMap(abs, 1), ArgumentTypeError, "argument 'reverse' got 1"),
        (lambda: C.HyperMap(max)((1, 2), (3,)), ArgumentValueError, "got a sequence of 1; it takes 2 members"),
        (
            lambda: C.HyperMap(max)((1, (2, 3)), (3, 4)),
            ArgumentTypeError,
            "got int; it takes a sequence like the first",
        ),
        (lambda: C.Map(abs)(3), ArgumentTypeError, "Map: argument 'argument 1' got int"),
    ],
)
def test_maps_refuse(make, error, match):
    with pytest.raises(error, match=match):
        make()


# clipping


def test_clip_by_global_norm():
    a, b = ms.Tensor([[2.0, 3.0], [1.0, 2.0]]), ms.Tensor([[1.0, 4.0], [3.0, 1.0]], ms.float16)
    norm = np.sqrt((a.asnumpy() ** 2).sum() + (b.asnumpy().astype(np.float32) ** 2).sum())
    for clip in (ms.ops.clip_by_global_norm, ms.jit(lambda x: ms.ops.clip_by_global_norm(x, 1.0))):
        made = clip((a, b))
        assert made[1].dtype is ms.float16
        np.testing.assert_allclose(made[0].asnumpy(), a.asnumpy() / norm, rtol=1e-5)
        np.testing.assert_allclose(made[1].asnumpy(), b.asnumpy() / norm, rtol=2e-3)
    np.testing.assert_array_equal(ms.ops.clip_by_global_norm([a], 100.0)[0].asnumpy(), a.asnumpy())


def test_clip_by_norm_is_torchs():
    x = ms.Tensor([[0.8748, 0.1425, 0.0076], [4.6376, 0.2914, 2.1120]])
    for order in (2.0, 1.0, float("inf")):
        ends = np.linalg.norm(x.asnumpy().reshape(-1), order)
        np.testing.assert_allclose(ms.ops.clip_by_norm(x, 1.0, order).asnumpy(), x.asnumpy() / ends, rtol=1e-5)
    assert type(ms.ops.clip_by_norm([x, x], 1.0)) is list
    np.testing.assert_array_equal(ms.ops.clip_by_norm(x, 100).asnumpy(), x.asnumpy())
    with pytest.raises(StateError, match="nan, which is not finite"):
        ms.ops.clip_by_norm(ms.Tensor([np.nan]), 1.0, error_if_nonfinite=True)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: ms.ops.clip_by_global_norm(X), ArgumentTypeError, "argument 'x' got Tensor"),
        (lambda: ms.ops.clip_by_global_norm(()), ArgumentTypeError, "that is not empty"),
        (lambda: ms.ops.clip_by_global_norm((X,), 0), ArgumentValueError, "argument 'clip_norm' got 0"),
        (lambda: ms.ops.clip_by_global_norm((X,), 1.0, X), ArgumentValueError, "argument 'use_norm'"),
    ],
)
def test_clipping_refuses(make, error, match):
    with pytest.raises(error, match=match):
        make()


# Python values


def test_python_values():
    assert (F.scalar_add(1, 2), F.scalar_floordiv(7, 2), F.scalar_usub(3), F.scalar_gt(2, 1)) == (3, 3, -3, True)
    assert F.make_tuple(1, 2) == (1, 2)
    assert F.make_dict(("a",), (1,)) == {"a": 1}
    assert (F.tuple_getitem((1, 2), 1), F.tuple_setitem((1, 2), 0, 5), F.tuple_len((1, 2, 3))) == (2, (5, 2), 3)
    assert (F.tuple_div((6, 8), (3, 2)), F.tuple_reversed((1, 2)), F.shape_mul((2, 3))) == ((2, 4), (2, 1), 6)
    assert list(F.make_range(0, 4, 2)) == [0, 2]
    assert (F.bool_and(True, False), F.bool_or(True, False), F.in_dict("a", {"a": 1})) == (False, True, True)
    assert F.dtype(X) is ms.float32
    assert F.hastype(X, ms.float32)
    assert F.isconstant(X)
    assert F.scalar_cast(2.9, ms.int32) == 2
    with pytest.raises(ArgumentValueError, match="a divisor for each number"):
        F.tuple_div((5,), (2,))


def test_mixed_precision_cast_walks_nests():
    made = F.mixed_precision_cast(ms.float16, {"a": X, "b": [ms.Tensor([1]), 2.0]})
    assert (made["a"].dtype, made["b"][0].dtype, made["b"][1]) == (ms.float16, ms.int64, 2.0)
    with pytest.raises(ArgumentTypeError, match="dst_dtype"):
        F.mixed_precision_cast(ms.int32, X)


def test_add_flags():
    @C.add_flags(deferred=True)
    def fn(x):
        return x

    assert C.add_flags(fn, more=1).flags == {"deferred": True, "more": 1}


def test_a_tensor_is_not_constant_inside_a_graph():
    @ms.jit
    def known(x):
        return x * (1 if F.isconstant(x) else 2)

    np.testing.assert_array_equal(known(X).asnumpy(), [2, -4])


# faces


def test_faces_name_the_same_things():
    assert P.ReLU is legacy.ReLU is ms.ops.ReLU
    assert F.relu is ms.ops.relu
    assert function.relu is ms.ops.relu
    assert C.HyperMap is ms.ops.HyperMap
    assert auto_generate.SubExt is ms.ops.SubExt
    assert C.normal is ms.ops.normal
    from mycelia.ops.operations import nn_ops

    assert nn_ops.Softmax is ms.ops.Softmax
    for face in (P, F, C, function, auto_generate):
        with pytest.raises(AttributeError, match="no attribute 'colour'"):
            _ = face.colour
        with pytest.raises(AttributeError):
            _ = face.__path_of_nothing__


def test_names_that_are_added_to_ops_are_seen_by_its_faces(monkeypatch):
    monkeypatch.setattr(ms.ops, "added_later", 7, raising=False)
    assert (F.added_later, C.added_later, P.added_later) == (7, 7, 7)


def test_the_record_is_there():
    record = json.loads((Path(legacy_cases.__file__).parent / "legacy_classes.json").read_text())
    assert len(record["cases"]) == len(legacy_cases.CASES)
    assert len(record["steps"]) == len(legacy_cases.STEPS)
