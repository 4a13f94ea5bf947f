"""Class forms of operators: what MindSpore's own give, signatures, arguments, both modes, gradients."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from tests.oracles import legacy_cases

import mycelia as ms
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError, UnsupportedError
from mycelia.ops import legacy, operations as P
from mycelia.ops.legacy.form import ClassForm
from mycelia.ops.legacy.primitive import Primitive

RECORD = json.loads((Path(legacy_cases.__file__).parent / "legacy_classes.json").read_text())
FORMS = {n: getattr(legacy, n) for n in legacy.__all__ if inspect.isclass(getattr(legacy, n))}
FORMS = {n: c for n, c in FORMS.items() if issubclass(c, Primitive)}


def plain(value):
    """A result in the form it is recorded in."""
    if isinstance(value, ms.Tensor):
        array = value.asnumpy()
        if array.dtype.kind == "c":
            flat = [[float(v.real), float(v.imag)] for v in array.reshape(-1)]
        else:
            flat = (
                array.astype(np.float64).reshape(-1).tolist() if array.dtype.kind == "f" else array.reshape(-1).tolist()
            )
        return [str(value.dtype), list(array.shape), flat]
    if isinstance(value, (tuple, list)):
        return {"sequence": [plain(v) for v in value]}
    return value if isinstance(value, (int, float, bool, str, type(None))) else {"repr": str(value)}


def assert_same(got, wanted):
    if isinstance(wanted, list):
        assert got[:2] == wanted[:2]
        tolerance = 2e-3 if wanted[0] == "Float16" else 2e-4  # its tanh is 1e-4 off
        np.testing.assert_allclose(got[2], wanted[2], rtol=tolerance, atol=tolerance)
    elif isinstance(wanted, dict) and "sequence" in wanted:
        assert len(got["sequence"]) == len(wanted["sequence"])
        for a, b in zip(got["sequence"], wanted["sequence"], strict=True):
            assert_same(a, b)
    else:
        assert got == wanted


def call(case):
    """What a case gives here, and its Parameters afterwards."""
    name, arguments, inputs = case
    held = []

    def parameter(value, dtype):
        held.append(ms.Parameter(ms.Tensor(np.array(value, dtype)), name=f"p{len(held)}"))
        return held[-1]

    def dtype(text):
        return getattr(dt, text)

    args, kwargs = legacy_cases.constructor(arguments, dtype)
    given = [legacy_cases.build(a, lambda v, d: ms.Tensor(np.array(v, d)), parameter, dtype) for a in inputs]
    return FORMS[name](*args, **kwargs)(*given), held


def recorded(key, cases):
    """The cases that MindSpore computes."""
    rows = enumerate(zip(cases, RECORD[key], strict=True))
    return [pytest.param(case, record, id=f"{case[0]}-{i}") for i, (case, record) in rows if "error" not in record]


@pytest.mark.parametrize(("case", "record"), recorded("cases", legacy_cases.CASES))
def test_values_are_mindspores(case, record):
    made, held = call(case)
    name = case[0]
    if name == "BatchNorm":  # its statistics are zeros there
        assert_same(plain(made[0]), record["out"]["sequence"][0])
    elif name == "CumulativeLogsumexp":  # nothing is the lowest float32 there
        assert_same(plain(made[1:]), ["Float32", [2], record["out"][2][1:]])
        assert made[0].item() == -np.inf
    else:
        assert_same(plain(made), record["out"])
    for parameter, wanted in zip(held, record["parameters"], strict=True):
        assert_same(plain(ms.Tensor(parameter)), wanted)


@pytest.mark.parametrize(("case", "record"), recorded("steps", legacy_cases.STEPS))
def test_steps_of_optimizers_are_mindspores(case, record):
    made, held = call(case)
    wanted = record["parameters"]
    if case[0] == "ApplyAdagradDA":  # a negative accumulator loses its sign there
        got = plain(ms.Tensor(held[0]))[2]
        np.testing.assert_allclose(got[::2], wanted[0][2][::2], rtol=1e-5)
        assert got[1] == pytest.approx(0.1 * 0.4 / (0.3 * 2 * 0.1 + np.sqrt(0.5 + 1)), rel=1e-5)
        held, wanted = held[1:], wanted[1:]
    for parameter, values in zip(held, wanted, strict=True):
        assert_same(plain(ms.Tensor(parameter)), values)
    if "out" in record:
        assert_same(plain(made), record["out"])
    elif case[0] != "ApplyAdagradDA":
        assert (made[0] if isinstance(made, tuple) else made) is held[0]


def _normal(text):
    return text.replace("mindspore.", "").replace("mycelia.", "").replace("[]", "()")


@pytest.mark.parametrize("name", sorted(n for n in FORMS if n in RECORD["signatures"]))
def test_constructors_are_mindspores(name):
    got = [
        [p.name, "required" if p.default is p.empty else _normal(repr(p.default))]
        for p in inspect.signature(FORMS[name]).parameters.values()
    ]
    assert got == [[n, _normal(d)] for n, d in RECORD["signatures"][name]]


def test_nearly_every_class_has_a_recorded_signature():
    assert {n for n in FORMS if n not in RECORD["signatures"]} == set()
    assert len(FORMS) > 400


def test_functions_mindspore_has_no_kernel_for():
    x = ms.Tensor([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]])
    np.testing.assert_array_equal(P.Roll(1, 1)(x).asnumpy(), np.roll(x.asnumpy(), 1, 1))
    np.testing.assert_allclose(P.Round()(x / 3, 1).asnumpy(), np.round(x.asnumpy() / 3, 1), rtol=1e-6)
    np.testing.assert_array_equal(P.Fmin()(x, ms.Tensor([np.nan, 0.0, 9.0])).asnumpy(), [[1, 0, 3], [4, -5, 6]])
    blocks = P.SpaceToBatch(2, [[0, 0], [0, 0]])(ms.ops.arange(16.0).reshape(1, 1, 4, 4))
    np.testing.assert_array_equal(blocks[1].flatten().asnumpy(), [1, 3, 9, 11])
    np.testing.assert_array_equal(P.FloatStatus()(ms.Tensor([1.0, np.inf])).asnumpy(), [1])
    np.testing.assert_array_equal(P.FloatStatus()(ms.Tensor([1.0])).asnumpy(), [0])
    np.testing.assert_array_equal(P.EuclideanNorm()(ms.Tensor([[3.0, 4.0]]), ms.Tensor([1])).asnumpy(), [5])
    counts = P.HistogramFixedWidth(4)(ms.Tensor([-1.0, 0.0, 1.5, 2.0, 5.0]), ms.Tensor([0.0, 4.0]))
    np.testing.assert_array_equal(counts.asnumpy(), [2, 1, 1, 1])


def test_momentum_takes_nesterov_and_scale():
    w, v = ms.Parameter(ms.Tensor([1.0]), name="w"), ms.Parameter(ms.Tensor([0.5]), name="v")
    P.ApplyMomentum(use_nesterov=True, gradient_scale=2.0)(w, v, 0.1, ms.Tensor([3.0]), 0.9)
    assert v.item() == pytest.approx(0.5 * 0.9 + 6)
    assert w.item() == pytest.approx(1 - 0.1 * (6 + 0.9 * 6.45))


def test_ftrl_shrinks_negative_sums_too():
    """The formula of McMahan et al., section 2, whatever the sign of ``linear``."""
    w, n, z = (ms.Parameter(ms.Tensor([v]), name=k) for k, v in {"w": 1.0, "n": 0.1, "z": 0.9}.items())
    P.ApplyFtrl()(w, n, z, ms.Tensor([0.5]), 0.1, 0.2, 0.3, -0.5)
    sigma = (np.sqrt(0.35) - np.sqrt(0.1)) / 0.1
    total = 0.9 + 0.5 - sigma * 1.0
    assert z.item() == pytest.approx(total, rel=1e-5)
    assert w.item() == pytest.approx((0.2 * np.sign(total) - total) / (np.sqrt(0.35) / 0.1 + 0.6), rel=1e-5)


def test_lars_is_the_papers_ratio():
    w, g = np.array([3.0, 4.0], np.float32), np.array([0.6, 0.8], np.float32)
    made = P.LARSUpdate(0.0, 0.5)(ms.Tensor(w), ms.Tensor(g), ms.Tensor(25.0), ms.Tensor(1.0), 0.1, 1.0)
    np.testing.assert_allclose(made.asnumpy(), 0.5 * 5 / (1 + 0.1 * 5) * (g + 0.1 * w), rtol=1e-6)


# arguments


def test_attributes_are_read_and_set():
    op = P.ReduceSum(keep_dims=True)
    assert (op.name, op.keep_dims, op.attrs, op.init_attrs["skip_mode"]) == (
        "ReduceSum", True, {"keep_dims": True, "skip_mode": False}, False,
    )  # fmt: skip
    assert repr(op) == "Prim[ReduceSum]<keep_dims=True, skip_mode=False>"
    assert op(ms.Tensor([[1.0, 2.0]]), 1).shape == (1, 1)
    assert op.add_prim_attr("keep_dims", False) is op
    assert op(ms.Tensor([[1.0, 2.0]]), 1).shape == (1,)
    op.keep_dims = True
    assert op(ms.Tensor([[1.0, 2.0]]), 1).shape == (1, 1)


def test_marks_change_no_value():
    op = P.Add().set_device("CPU").set_stage(1).recompute().shard(((1,), (1,))).set_prim_instance_name("sum")
    op.init_prim_io_names(["x", "y"], ["z"])
    assert op.attrs["in_strategy"] == ((1,), (1,))
    assert op(ms.Tensor([1]), ms.Tensor([2])).item() == 3
    with pytest.raises(ArgumentTypeError, match="Add: argument 'in_strategy' got list; it takes a tuple"):
        op.shard([1])
    with pytest.raises(ArgumentValueError, match="argument 'name' got 'nothing'"):
        op.del_prim_attr("nothing")


def test_keywords_and_defaults_of_calls():
    x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(P.ReduceMax()(x=x, axis=0).asnumpy(), [3, 4])
    assert P.ReduceMax()(x).item() == 4
    assert P.BinaryCrossEntropy("sum")(ms.Tensor([0.5]), ms.Tensor([1.0])).item() == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: P.Softmax("x"), ArgumentTypeError, "Softmax: argument 'axis' got 'x'.*it takes an int"),
        (lambda: P.Softmax(1.5), ArgumentTypeError, "argument 'axis' got 1.5"),
        (lambda: P.Softmax(dim=1), ArgumentTypeError, "there is no argument 'dim'"),
        (lambda: P.Softmax(1, axis=1), ArgumentTypeError, "argument 'axis' got two values"),
        (lambda: P.Softmax(1, 2), ArgumentTypeError, "2 positional arguments were given; it takes at most 1"),
        (lambda: P.ReduceSum(keep_dims="yes"), ArgumentTypeError, "argument 'keep_dims' got 'yes'.*True or False"),
        (lambda: P.Elu("1"), ArgumentTypeError, "argument 'alpha' got '1'.*a number"),
        (lambda: P.KLDivLoss(3), ArgumentTypeError, "argument 'reduction' got 3.*a string"),
        (lambda: P.KLDivLoss("most"), ArgumentValueError, "argument 'reduction' got 'most'.*batchmean"),
        (lambda: P.Argmax(0, "colour"), TypeError, "colour"),
        (P.BroadcastTo, ArgumentTypeError, "argument 'shape' got nothing"),
        (lambda: P.Conv2D(0, 3), ArgumentValueError, "argument 'out_channel' got 0"),
        (lambda: P.Conv2D(1, 3, pad_mode="most"), ArgumentValueError, "argument 'pad_mode' got 'most'"),
        (lambda: P.Conv2D(1, 3, stride=0), ArgumentValueError, "argument 'stride' got 0"),
        (lambda: P.MaxPool(data_format="CHWN"), ArgumentValueError, "argument 'data_format' got 'CHWN'"),
        (lambda: P.Dropout(0.0), ArgumentValueError, "argument 'keep_prob' got 0.0"),
        (lambda: P.BatchNorm(momentum=2.0), ArgumentValueError, "argument 'momentum' got 2.0"),
        (lambda: P.MirrorPad("ROUND"), ArgumentValueError, "argument 'mode' got 'ROUND'"),
        (lambda: P.ROIAlign(0, 1, 1.0), ArgumentValueError, "argument 'pooled_height' got 0"),
        (lambda: P.IOU("area"), ArgumentValueError, "argument 'mode' got 'area'"),
        (lambda: P.ResizeBilinearV2(True, True), ArgumentValueError, "half_pixel_centers"),
        (lambda: P.HookBackward(3), ArgumentTypeError, "argument 'hook_fn' got int"),
    ],
)
def test_constructors_refuse(make, error, match):
    with pytest.raises(error, match=match) as caught:
        make()
    assert "test_legacy_classes.py" in str(caught.value)


X = ms.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (P.ReLU(), ArgumentTypeError, "ReLU: argument 'input' got nothing"),
        (lambda: P.Add()(X, X, X), ArgumentTypeError, r"Add: 3 positional .* at most 2 \(input, other\)"),
        (lambda: P.Split(1, 2)(X), ArgumentValueError, "Split: argument 'output_num' got 2; it takes a divisor of 3"),
        (lambda: P.Unstack(0, 3)(X), ArgumentValueError, "Unstack: argument 'num' got 3"),
        (lambda: P.Pad(((1, 0),))(X), ArgumentValueError, "Pad: argument 'paddings'.*each of 2 axes"),
        (lambda: P.Pad(((-1, 0), (0, 0)))(X), ArgumentValueError, "Pad: argument 'paddings' got"),
        (lambda: P.MatMul()(X, X), ShapeError, "matmul"),
        (lambda: P.MatMul()(X[0], X), ShapeError, "MatMul: argument 'x' got shape"),
        (lambda: P.BiasAdd()(X, X), ShapeError, "BiasAdd: argument 'bias' got shape"),
        (lambda: P.LayerNorm()(X, X[0, :2], X[0]), ShapeError, "LayerNorm: argument 'gamma' got shape"),
        (lambda: P.BatchNorm()(X, *[X[0, :2]] * 4), ShapeError, "BatchNorm: argument 'scale' got shape"),
        (
            lambda: P.Conv2D(2, 3)(P.Ones()((1, 1, 5, 5)), P.Ones()((1, 1, 3, 3))),
            ShapeError,
            "Conv2D: argument 'weight'",
        ),
        (lambda: P.IOU()(X, X), ShapeError, "argument 'anchor_boxes' got shape"),
        (lambda: P.ApplyMomentum()(X[0], X[0], 0.1, X, 0.9), ShapeError, "ApplyMomentum: argument 'gradient'"),
        (lambda: P.ApplyMomentum()(1.0, X, 0.1, X, 0.9), ArgumentTypeError, "argument 'variable' got float"),
        (lambda: P.ApplyMomentum()(X, X, X, X, 0.9), ShapeError, "argument 'learning_rate' got shape"),
        (
            lambda: P.FusedSparseLazyAdam()(X, X, X, *[0.1] * 6, X[:1], ms.Tensor([7])),
            IndexError,
            "FusedSparseLazyAdam",
        ),
        (lambda: P.NPUGetFloatStatus()(X), UnsupportedError, "no register of overflows"),
        (lambda: P.CheckNumerics()(ms.Tensor([np.nan])), RuntimeError, "argument 'x' holds NaN"),
        (lambda: P.InvertPermutation()((0, 0)), ArgumentValueError, "each number from 0 to 1 once"),
        (lambda: P.SegmentSum()(X, ms.Tensor([1, 0])), ArgumentValueError, "a sorted vector"),
    ],
)
def test_calls_refuse(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_a_step_that_is_refused_changes_nothing():
    w, v = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w"), ms.Parameter(ms.Tensor([0.0, 0.0]), name="v")
    with pytest.raises(ShapeError):
        P.ApplyMomentum()(w, v, 0.1, ms.Tensor([1.0]), 0.9)
    np.testing.assert_array_equal(w.asnumpy(), [1, 2])
    np.testing.assert_array_equal(v.asnumpy(), [0, 0])


# graphs and gradients

IN_GRAPH = [
    ("MatMul", [False, True], [X, X]), ("ReduceSum", [True], [X, 1]), ("Concat", [1], [(X, X)]), ("Softmax", [0], [X]),
    ("OneHot", [], [ms.Tensor([0, 2]), 3, ms.Tensor(1.0), ms.Tensor(0.0)]), ("Gather", [], [X, ms.Tensor([1]), 0]),
    ("StridedSlice", [], [X, (0, 0), (2, 3), (1, 2)]), ("LayerNorm", [], [X, X[0], X[0]]), ("TopK", [], [X, 2]),
    ("SoftmaxCrossEntropyWithLogits", [], [X, X]), ("NMSWithMask", [0.5], [ms.Tensor([[0.0, 0.0, 9.0, 9.0, 0.5]])]),
    ("ResizeBilinearV2", [], [P.Ones()((1, 1, 2, 3)), (4, 4)]), ("CumSum", [True], [X, 1]),
    ("Reshape", [], [X, (3, 2)]),
    ("ROIAlign", [2, 2, 1.0], [P.Ones()((1, 1, 4, 4)), ms.Tensor([[0.0, 0.0, 0.0, 3.0, 3.0]])]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "inputs"), IN_GRAPH, ids=[c[0] for c in IN_GRAPH])
def test_graphs_give_the_same(name, arguments, inputs):
    op = FORMS[name](*arguments)
    eager, staged = op(*inputs), ms.jit(lambda *a: op(*a))(*inputs)
    for a, b in zip(*[x if isinstance(x, tuple) else (x,) for x in (eager, staged)], strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)


def test_a_changed_attribute_is_seen_by_compiled_functions():
    op = P.ReduceSum()

    @ms.jit
    def fold(x):
        return op(x, 1)

    assert fold(X).shape == (2,)
    op.add_prim_attr("keep_dims", True)
    assert fold(X).shape == (2, 1)
    op.keep_dims = False
    assert fold(X).shape == (2,)


def test_a_cell_of_class_forms_trains_the_same_in_both_modes():
    class Net(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = ms.Parameter(ms.Tensor([[0.5, -1.0, 0.25]]), name="w")
            self.matmul, self.relu = P.MatMul(transpose_b=True), P.ReLU()
            self.mean = P.ReduceMean(keep_dims=False)

        def construct(self, x):
            return self.mean(self.relu(self.matmul(x, self.w)), (0, 1))

    net = Net()
    found = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        value, grads = ms.value_and_grad(net, None, [net.w])(-X)
        found.append((value.item(), grads[0].asnumpy()))
    assert found[0][0] == pytest.approx(found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1])
    np.testing.assert_allclose(found[0][1], [[-2.5, -3.5, -4.5]])


def test_gradients_go_through():
    grad = ms.grad(lambda x: P.ReduceSum()(P.Square()(x)))(X)
    np.testing.assert_allclose(grad.asnumpy(), 2 * X.asnumpy())
    weights = P.Softmax(axis=(0, 1))(X)
    np.testing.assert_allclose(weights.asnumpy(), np.exp(X.asnumpy()) / np.exp(X.asnumpy()).sum(), rtol=1e-5)


def test_dropout_keeps_its_share_and_tells_the_mask():
    ones = P.Ones()((1000,))
    made, mask = P.Dropout(0.75)(ones)
    np.testing.assert_allclose(made.asnumpy(), mask.asnumpy() / 0.75, rtol=1e-6)
    assert 0.7 < mask.asnumpy().mean() < 0.8
    image, channels = P.Dropout2D(0.5)(P.Ones()((4, 50, 2, 2)))
    assert channels.dtype is ms.bool_
    np.testing.assert_array_equal(image.asnumpy() > 0, channels.asnumpy())
    assert (channels.asnumpy().reshape(4, 50, 4).std(-1) == 0).all()


def test_dropout_in_two_steps():
    x = ms.ops.arange(1.0, 301.0)
    bits = P.DropoutGenMask()(x.shape, ms.Tensor(0.5))
    assert (bits.dtype, bits.shape) == (ms.uint8, (48,))
    made = P.DropoutDoMask()(x, bits, ms.Tensor(0.5)).asnumpy()
    kept = np.unpackbits(bits.asnumpy(), bitorder="little")[:300].astype(bool)
    np.testing.assert_allclose(made, np.where(kept, x.asnumpy() * 2, 0))
    assert 100 < kept.sum() < 200
    np.testing.assert_array_equal(P.DropoutDoMask()(x, P.DropoutGenMask()(x.shape, 1.0), 1.0).asnumpy(), x.asnumpy())


def test_random_classes():
    ms.set_seed(3)
    a = P.UniformReal(seed=1)((2, 3))
    ms.set_seed(3)
    np.testing.assert_array_equal(a.asnumpy(), P.UniformReal(seed=1)((2, 3)).asnumpy())
    assert set(P.UniformInt()((50,), ms.Tensor(1, ms.int32), ms.Tensor(3, ms.int32)).tolist()) == {1, 2}
    assert P.StandardNormal()((4,)).dtype is ms.float32
    assert sorted(P.RandpermV2()(5).tolist()) == [0, 1, 2, 3, 4]
    assert P.Randperm(6)(ms.Tensor([4])).tolist()[4:] == [-1, -1]
    assert np.abs(P.TruncatedNormal()((200,)).asnumpy()).max() <= 2
    places, real = P.RandomChoiceWithMask(3)(ms.Tensor([[True, False], [False, True]]))
    assert (places.shape, int(real.sum()), places.dtype) == ((3, 2), 2, ms.int32)
    assert sorted(map(tuple, places[:2].tolist())) == [(0, 0), (1, 1)]


# classes of the user's


def test_a_class_of_the_users():
    class Affine(P.PrimitiveWithInfer):
        @legacy.prim_attr_register
        def __init__(self, scale=2.0, shift=1.0):
            self.init_prim_io_names(inputs=["x"], outputs=["y"])

        def __call__(self, x):
            return x * self.scale + self.shift

    op = Affine(shift=0.5)
    assert (op.name, op.attrs["scale"], op.init_attrs) == ("Affine", 2.0, {"scale": 2.0, "shift": 0.5})
    np.testing.assert_allclose(op(ms.Tensor([1.0])).asnumpy(), [2.5])
    np.testing.assert_allclose(ms.jit(lambda x: -op(x))(ms.Tensor([1.0])).asnumpy(), [-2.5])
    assert isinstance(P.ReLU(), P.Primitive)
    assert isinstance(op, Primitive)


def test_a_subclass_of_a_class_form():
    class Keeping(P.ReduceSum):
        def __init__(self):
            super().__init__(keep_dims=True)

    assert isinstance(Keeping(), ClassForm)
    assert Keeping()(X, 0).shape == (1, 3)


def test_a_primitive_without_a_computation():
    with pytest.raises(UnsupportedError, match=r"Nothing: the primitive has no computation"):
        P.Primitive("Nothing")(X)


def test_constexpr_runs_as_plain_python():
    @legacy.constexpr
    def half(n):
        return n // 2 if n > 1 else n

    @legacy.constexpr(check=False)
    def twice(n):
        return 2 * n

    assert (half(8), half(1), twice(4)) == (4, 1, 8)
    np.testing.assert_array_equal(ms.jit(lambda x: x * half(x.shape[1]))(X).asnumpy(), X.asnumpy())
