"""What comes back from a file computes what was exported, bit for bit."""

from __future__ import annotations

import ast
import collections
import dataclasses
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.core import dtypes, tree
from mycelia.core.errors import UnsupportedError
from mycelia.ir.control import call_p
from mycelia.tensor.dispatch import apply

EXAMPLES = Path(__file__).parents[2] / "examples"
NETWORKS = ["control_flow", "gan", "gpt", "lstm", "resnet", "vae"]


def again(tmp_path, net, *inputs, **options):
    """Export, and a GraphCell of the file."""
    file = tmp_path / "net.mindir"
    ms.export(net, *inputs, file_name=str(file), file_format="MINDIR", **options)
    return nn.GraphCell(ms.load(str(file)))


def f32(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def assert_same(found, expected):
    one, treedef = tree.flatten(found)
    other, expected_def = tree.flatten(expected)
    assert repr(treedef) == repr(expected_def)
    for x, y in zip(one, other, strict=True):
        if isinstance(y, Tensor):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            assert x.asnumpy().tobytes() == y.asnumpy().tobytes()
        else:
            assert type(x) is type(y)
            assert x == y


def example(name):
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "training"),
    [(name, False) for name in NETWORKS]
    + [(n, True) if n in ("resnet", "vae") else pytest.param(n, True, marks=pytest.mark.slow) for n in NETWORKS],
)
def test_examples(tmp_path, name, training):
    net, inputs = example(name).build()
    net.set_train(training)
    cell = again(tmp_path, net, *inputs)
    assert cell.exported_in_training is training
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(7)
    expected = net(*inputs)
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        ms.set_seed(7)
        assert_same(cell(*inputs), expected)


def test_first_network(tmp_path):
    source = (EXAMPLES / "first_network.py").read_text()
    body = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    scope = {"nn": nn}
    exec(compile(ast.Module(body, []), str(EXAMPLES / "first_network.py"), "exec"), scope)
    net, x = scope["Net"](), f32(2, 1, 28, 28)
    assert_same(again(tmp_path, net, x)(x), net(x))


def test_every_example_is_covered():
    assert sorted(p.stem for p in EXAMPLES.glob("*.py")) == sorted([*NETWORKS, "first_network"])


class Decides(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, 2)
        self.norm = nn.BatchNorm1d(2)
        self.drop = nn.Dropout(p=0.5)

    def construct(self, x, k):
        y = self.drop(self.norm(self.dense(x)))
        if y.sum() > 0:
            y = y * k
        i = 0
        while ops.abs(y).sum() < 50 and i < 9:
            y = y + y
            i += 1
        return {"y": y, "rounds": (i, [x.sum()])}


SCRIPT = """
import sys
import numpy as np
import mycelia as ms
folder = sys.argv[1]
x = ms.Tensor(np.load(folder + "/x.npy"))
net = ms.nn.GraphCell(ms.load(folder + "/net.mindir"))
for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
    ms.set_context(mode=mode)
    ms.set_seed(3)
    out = net(x)
    name = "graph" if mode == ms.GRAPH_MODE else "pynative"
    i, (s,) = out["rounds"]
    np.savez(f"{folder}/{name}.npz", y=out["y"].asnumpy(), i=i.asnumpy(), s=s.asnumpy())
assert [p.name for p in net.trainable_params()] == ["dense.weight", "dense.bias", "norm.gamma", "norm.beta"]
"""


def test_a_process_without_the_source(tmp_path):
    net, x = Decides().set_train(), f32(4, 3)
    ms.export(net, x, 2, file_name=str(tmp_path / "net"), file_format="MINDIR")
    np.save(tmp_path / "x.npy", x.asnumpy())
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=240, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ms.set_context(mode=ms.GRAPH_MODE)
    for name in ("pynative", "graph"):  # the statistics moved once with each call
        ms.set_seed(3)
        expected = net(x, 2)
        found = np.load(tmp_path / f"{name}.npz")
        assert found["y"].tobytes() == expected["y"].asnumpy().tobytes()
        assert int(found["i"]) == int(expected["rounds"][0])
        assert found["s"].tobytes() == expected["rounds"][1][0].asnumpy().tobytes()


# -- data ---------------------------------------------------------------------------------------------------


EVERY_DTYPE = [*dtypes.ALL, dtypes.float8_e4m3fn, dtypes.float8_e5m2]


class Holder(nn.Cell):
    def __init__(self, array):
        super().__init__()
        self.p = Parameter(Tensor(array), name="p", requires_grad=False)
        self.t = Tensor(array)
        self.array = array

    def construct(self):
        return ops.identity(self.p), ops.identity(self.t), Tensor(self.array)


@pytest.mark.parametrize("dtype", EVERY_DTYPE, ids=lambda d: d.name)
def test_every_dtype(tmp_path, dtype):
    words = np.random.default_rng(0).integers(0, 256, 7 * 3 * dtype.itemsize, np.uint8)  # NaN with payloads among them
    array = (words % 2).astype(np.bool_)[:21].reshape(7, 3) if dtype.kind == "b" else words.view(dtype.np).reshape(7, 3)
    cell = again(tmp_path, Holder(array))
    assert cell.p.asnumpy().tobytes() == array.tobytes()
    assert cell.named_buffers["t"].asnumpy().tobytes() == array.tobytes()
    for found in cell():
        assert (found.dtype, found.shape) == (dtype, (7, 3))
        assert found.asnumpy().tobytes() == array.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1, 1), (65,)])
def test_every_shape(tmp_path, shape):
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for found in again(tmp_path, Holder(array))():
        assert found.shape == shape
        assert found.asnumpy().tobytes() == array.tobytes()


def test_attributes_of_every_kind(tmp_path):
    def net(x):
        y = ops.clamp(x, -float("inf"), 1.5)
        y = ops.pad(y, (1, 2), value=float("nan"))
        y = ops.nan_to_num(y, nan=-0.0)
        z = ops.full((2,), 1 + 2j)
        return y[..., ::2], y.astype(ms.bfloat16), z, ops.one_hot(ops.argmax(x, 1), 3)

    x = f32(2, 3)
    ms.set_context(mode=ms.GRAPH_MODE)
    assert_same(again(tmp_path, net, x)(x), ms.jit(net)(x))


# -- nests --------------------------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Result:
    score: Tensor
    note: str


def test_nests_of_outputs(tmp_path):
    def net(x):
        return {
            "tuple": (x, [x + 1, ()]), "ordered": collections.OrderedDict(b=x, a=None), 3: Pair(x * 2, right=[x]),
            "scalars": (np.float32(0.1), np.int8(-3), np.bool_(True)),
            "values": (1, True, 2.5, float("inf"), "text", 1j, ms.float16, ...),
            "array": np.array([1, 2], np.int16), ("key", 1): Result(x, "fine"),
        }  # fmt: skip

    x = f32(2)
    found, expected = again(tmp_path, net, x)(x), net(x)
    assert list(found) == list(expected)
    assert type(found["ordered"]) is collections.OrderedDict
    pair = found.pop(3)
    assert type(pair).__name__ == "Pair"
    assert pair._fields == ("left", "right")
    assert_same(tuple(pair), tuple(expected.pop(3)))
    result = found.pop(("key", 1))
    assert (type(result).__name__, result.note) == ("Result", "fine")
    assert np.array_equal(found.pop("array"), expected.pop("array"))
    del expected[("key", 1)]
    assert_same(found, expected)


def test_nests_of_inputs(tmp_path):
    def net(pair, options, *rest):
        return pair[0] + pair.right * options["k"] + rest[0][0] - rest[1]

    x = f32(2)
    cell = again(tmp_path, net, Pair(x, x + 1), {"k": x, "n": 3}, [x * 2], x * 3)
    expected = net(Pair(x, x + 1), {"k": x, "n": 3}, [x * 2], x * 3)
    assert_same(cell(Pair(x, x + 1), {"n": 3, "k": x}, [x * 2], x * 3), expected)
    assert_same(cell((x, x + 1), {"k": x, "n": 3}, (x * 2,), x * 3), expected)
    assert cell._program.leaf_names() == [
        "pair.left", "pair.right", "options['k']", "options['n']", "rest[0][0]", "rest[1]",
    ]  # fmt: skip


def test_python_values_are_part_of_the_graph(tmp_path):
    def net(x, k, flag, name=None):
        return x * k if flag and name is None else x

    x = f32(2)
    cell = again(tmp_path, net, x, 3, True, None)
    assert_same(cell(x), x * 3)
    assert_same(cell(x, 3, True, None), x * 3)


def test_an_input_written_in_place(tmp_path):
    def net(x):
        x[0] = 5.0
        return x.sum()

    cell = again(tmp_path, net, Tensor([1.0, 2.0]))
    x = Tensor([1.0, 2.0])
    assert float(cell(x)) == 7
    assert x.asnumpy().tolist() == [5, 2]


# -- what a graph holds ----------------------------------------------------------------------------------------


def test_shared_graphs_stay_shared(tmp_path):
    from mycelia.ir.graph import Graph
    from mycelia.ir.types import TensorType
    from mycelia.ops.arithmetic import add_p

    type_ = TensorType(dtypes.float32, ())
    inner = Graph("leaf")
    x = inner.add_param(type_)
    inner.outputs = list(inner.add_node(add_p, (x, x), {}).outputs)
    for depth in range(60):  # each calls the one below twice
        outer = Graph(f"level{depth}")
        value = outer.add_param(type_)
        for _ in range(2):
            value = outer.add_node(call_p, (value,), {"graph": inner}).outputs[0]
        outer.outputs = [value]
        inner = outer

    def net(x):
        return apply(call_p, x, graph=inner)[0]

    file = tmp_path / "net.mindir"
    ms.export(net, Tensor(1.0), file_name=str(file), file_format="MINDIR")
    assert file.stat().st_size < 20_000
    graph = ms.load(str(file)).graph
    for _ in range(61):
        held = {g for node in graph.nodes for _, g in node.subgraphs}
        assert len(held) == 1
        (graph,) = held
    assert not any(True for node in graph.nodes for _ in node.subgraphs)


def test_lines_are_printed_and_errors_raised(tmp_path, capsys):
    def net(x):
        if x.sum() < 0:
            raise ValueError("negative", 3)
        print("sum", x.sum())
        return x * 2

    cell = again(tmp_path, net, Tensor([1.0, 2.0]))
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        capsys.readouterr()
        assert cell(Tensor([1.0, 2.0])).asnumpy().tolist() == [2, 4]
        assert capsys.readouterr().out.startswith("sum 3")
        with pytest.raises(ValueError, match="negative") as caught:
            cell(Tensor([-1.0, -2.0]))
        assert caught.value.args[:2] == ("negative", 3)


def test_errors_show_the_values_of_tensors(tmp_path):
    def net(x, limit):
        if x.sum() < 0:
            raise ValueError(f"{x} is below")
        assert x.sum() < limit
        return x

    cell = again(tmp_path, net, Tensor([1.0, 2.0]), Tensor(9.0))
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        assert_same(cell(Tensor([1.0, 2.0]), Tensor(9.0)), Tensor([1.0, 2.0]))
        with pytest.raises(ValueError, match=r"\[-1. -2.\] is below"):
            cell(Tensor([-1.0, -2.0]), Tensor(9.0))
        with pytest.raises(AssertionError) as caught:
            cell(Tensor([5.0, 5.0]), Tensor(9.0))
        assert "<test_round_trip.py>" in "".join(caught.value.__notes__)


class Own(Exception):
    pass


def raises_own(x):
    if x.sum() < 0:
        raise Own
    return x


def hooked(x):
    return ops.HookBackward(lambda grad: grad)(x)


@pytest.mark.parametrize(
    ("net", "words"), [(raises_own, "class Own"), (hooked, "Python code"), (lambda x: (x, object()), "type object")]
)
def test_what_a_file_cannot_hold(tmp_path, net, words):
    with pytest.raises(UnsupportedError, match=words):
        ms.export(net, f32(2), file_name=str(tmp_path / "net"), file_format="MINDIR")
    assert list(tmp_path.iterdir()) == []


class Clipped(nn.Cell):
    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        return (ops.clamp(2 * x * dout, -1, 1),)


def test_own_gradients_go_along(tmp_path):
    x = Tensor([0.1, 5.0])
    cell = again(tmp_path, Clipped(), x)
    assert np.allclose(ms.grad(cell)(x).asnumpy(), [0.2, 1.0])


def test_recomputation_goes_along(tmp_path):
    net, x = nn.SequentialCell(nn.Dense(3, 3), nn.ReLU()), f32(2, 3)
    net.recompute()
    cell = again(tmp_path, net, x)
    assert any(node.attrs.get("recompute") for node in cell._program.graph.nodes)
    assert_same(cell(x), net(x))


def test_a_gradient_can_be_exported(tmp_path):
    x = Tensor(np.diag([2.0, 3.0]).astype(np.float32) + 1)

    def slope(x):
        return ms.grad(lambda x: ops.qr(x)[1].sum() + ops.slogdet(x)[1])(x)

    ms.set_context(mode=ms.GRAPH_MODE)
    assert_same(again(tmp_path, slope, x)(x), ms.jit(slope)(x))


def test_functions_methods_and_compiled_functions(tmp_path):
    scale = Parameter(Tensor([2.0, 3.0]), name="scale")

    def plain(x):
        return x * scale

    class Owner:
        def method(self, x):
            return x + 1

    x = f32(2)
    cell = again(tmp_path, ms.jit(plain), x)
    assert_same(cell(x), plain(x))
    assert [p.name for p in cell.trainable_params()] == ["scale"]
    assert_same(again(tmp_path, Owner().method, x)(x), x + 1)
    assert_same(again(tmp_path, ops.relu, x)(x), ops.relu(x))


def test_processing_around_a_network(tmp_path):
    net = nn.SequentialCell(nn.Flatten(), nn.Dense(4, 3))

    def whole(pixels):
        x = (pixels.astype(ms.float32) / 255 - 0.5).transpose(0, 2, 1)
        scores = ops.softmax(net(x), -1)
        return {"label": ops.argmax(scores, 1), "certainty": ops.amax(scores, 1)}

    pixels = Tensor(np.arange(8, dtype=np.uint8).reshape(2, 2, 2) * 30)
    ms.set_context(mode=ms.GRAPH_MODE)
    cell = again(tmp_path, whole, pixels)
    assert_same(cell(pixels), ms.jit(whole)(pixels))
    assert [p.name for p in cell.get_parameters()] == [p.name for p in net.get_parameters()]


def test_a_training_step_can_be_exported(tmp_path):
    """Network, loss and optimizer as one graph that trains itself, its moments among the state."""
    net = nn.SequentialCell(nn.Dense(3, 4), nn.BatchNorm1d(4), nn.Dropout(p=0.2), nn.Dense(4, 1))
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 0.01)).set_train()
    x, y = f32(8, 3), f32(8, 1)
    ms.set_context(mode=ms.GRAPH_MODE)
    cell = again(tmp_path, step, x, y)
    ms.set_seed(1)
    expected = [float(step(x, y)) for _ in range(4)]
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        ms.set_seed(1)
        assert [float(nn.GraphCell(cell._program)(x, y))] == expected[:1]
    ms.set_seed(1)
    assert [float(cell(x, y)) for _ in range(4)] == expected
    found = cell.parameters_dict()
    assert {p.name for p in step.get_parameters()} >= set(found)
    for p in net.get_parameters():
        assert p.asnumpy().tobytes() == found[p.name].asnumpy().tobytes(), p.name


# -- state ---------------------------------------------------------------------------------------------------


class Counter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.count = Parameter(Tensor(0), name="count", requires_grad=False)
        self.last = Tensor([0.0, 0.0])
        self.seen = None

    def construct(self, x):
        self.count += 1
        self.last[:] = x
        return self.count * x + self.last


def test_state_that_is_written(tmp_path):
    net, x = Counter(), Tensor([1.0, 2.0])
    cell = again(tmp_path, net, x)
    assert int(net.count) == 0  # exporting runs nothing
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        for _ in range(2):
            assert_same(cell(x), net(x))
    assert int(cell.count) == 4
    assert cell.named_buffers["last"].asnumpy().tolist() == [1, 2]
    other = nn.GraphCell(cell._program)
    assert int(other.count) == 0  # a second one starts from the file
    assert other.named_buffers["last"].asnumpy().tolist() == [0, 0]


def test_statistics_of_batch_normalization_move(tmp_path):
    net, x = nn.BatchNorm1d(3).set_train(), f32(8, 3)
    cell = again(tmp_path, net, x)
    for _ in range(2):
        net(x)
        cell(x)
    again_by_name = cell.parameters_dict()
    assert len(again_by_name) == 4
    for p in net.get_parameters():
        assert np.allclose(p.asnumpy(), again_by_name[p.name].asnumpy(), rtol=1e-6)
        assert p.requires_grad is again_by_name[p.name].requires_grad
    assert not np.array_equal(again_by_name["mean"].asnumpy(), np.zeros(3))


def test_random_numbers_are_those_of_the_process(tmp_path):
    def net(x):
        return x + ops.rand(4), ops.normal((2,), 0.0, 1.0, seed=5)

    x = f32(4)
    ms.set_context(mode=ms.GRAPH_MODE)
    cell = again(tmp_path, net, x)
    ms.set_seed(11)
    expected = [ms.jit(net)(x) for _ in range(2)]
    ms.set_seed(11)
    found = [cell(x) for _ in range(2)]
    assert_same(found, expected)
    assert not np.array_equal(found[0][0].asnumpy(), found[1][0].asnumpy())


def test_a_generator_of_ones_own_is_state(tmp_path):
    generator = ms.ops.random.Generator().manual_seed(3)

    def net():
        return ops.rand(3, generator=generator)

    cell = again(tmp_path, net)
    expected = [net(), net()]
    assert_same([cell(), cell()], expected)


def test_names_are_unique(tmp_path):
    one, two = Parameter(Tensor(1.0), name="w"), Parameter(Tensor(2.0), name="w")
    cell = again(tmp_path, lambda x: x * one + two, Tensor(3.0))
    assert [p.name for p in cell.get_parameters()] == ["w", "w$1"]
    assert float(cell(Tensor(3.0))) == 5


def test_constants_are_written_once(tmp_path):
    small, large = np.arange(4000, dtype=np.float32), np.arange(40000, dtype=np.float32)

    def net(x):
        found = [x * ops.concat([Tensor(small.copy()), Tensor(large), Tensor(large)])[i] for i in range(3)]
        return found, small.copy(), large + 1, large + 2

    file = tmp_path / "net.mindir"
    ms.export(net, Tensor(2.0), file_name=str(file), file_format="MINDIR")
    assert 0 < file.stat().st_size - (16_000 + 8 * 160_000) < 12_000  # the description; small is there once
    found, first, second, third = nn.GraphCell(ms.load(str(file)))(Tensor(2.0))
    assert [float(t) for t in found] == [0, 2, 4]
    assert np.array_equal(first, small)
    assert np.array_equal(second, large + 1)
    assert np.array_equal(third, large + 2)
