"""Networks whose operators say how they lie: the same numbers as on one device, and parts where they were asked for."""

from __future__ import annotations

import pytest
from tests.parallel.ranks import run_ranks

NETWORK = """
from mycelia.parallel import Layout, shard
from mycelia.parallel.auto_parallel import AutoParallel

if SIZE > 1:
    comm.init()

class Net(nn.Cell):
    def __init__(self, sharded):
        super().__init__()
        rng = np.random.default_rng(0)
        self.w1 = ms.Parameter(ms.Tensor(rng.standard_normal((16, 32)) * 0.2, ms.float32), name="w1")
        self.w2 = ms.Parameter(ms.Tensor(rng.standard_normal((32, 4)) * 0.2, ms.float32), name="w2")
        self.first, self.second, self.relu = ops.MatMul(), ops.MatMul(), ops.ReLU()
        if sharded:
            self.first.shard(((2, 1), (1, 2)))
            self.second.shard(((2, 2), (2, 1)))
            self.relu.shard(((4, 1),))

    def construct(self, x):
        return self.second(self.relu(self.first(x, self.w1)), self.w2)

def losses(strategy=None):
    rng = np.random.default_rng(0)
    net = Net(strategy is not None)
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer).set_train()
    if strategy is not None:
        step = AutoParallel(step)
        step.dataset_strategy(strategy)
    found = []
    for _ in range(10):
        x, y = rng.standard_normal((8, 16)).astype(np.float32), rng.integers(0, 4, 8).astype(np.int32)
        if strategy == "data_parallel" and SIZE > 1:
            x, y = x[2 * RANK : 2 * RANK + 2], y[2 * RANK : 2 * RANK + 2]
        found.append(float(step(ms.Tensor(x), ms.Tensor(y))))
    return found, net, optimizer
"""

STEPS = """
ms.set_context(mode=ms.GRAPH_MODE)
plain, net, _ = losses()
for strategy in ("data_parallel", "full_batch"):
    spread, other, optimizer = losses(strategy)
    np.testing.assert_allclose(spread, plain, rtol=0, atol=1e-6)
    for mine, his in zip(other.trainable_params(), net.trainable_params(), strict=True):
        np.testing.assert_allclose(mine.asnumpy(), his.asnumpy(), rtol=0, atol=1e-5)
    # each device holds half of a weight, and of the states of its optimizer
    for states in (other.trainable_params(), optimizer.moment1, optimizer.moment2):
        assert [s._value.addressable_data(0).shape for s in states] == [(16, 16), (16, 4)], states
"""


@pytest.mark.parametrize("size", [1, 4], ids=["virtual devices", "processes"])
def test_a_training_step_of_operators_with_strategies(size, tmp_path):
    run_ranks(size, NETWORK + STEPS, tmp_path, devices=4 if size == 1 else 1)


def test_functions_and_cells_that_are_sharded(tmp_path):
    run_ranks(
        1,
        """
        from mycelia.parallel import Layout, shard

        layout = Layout((2, 2), ("dp", "mp"))
        x = ms.Tensor(np.arange(32).reshape(8, 4), ms.float32)
        net = nn.Dense(4, 6)
        wanted = net(x).asnumpy()
        for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
            ms.set_context(mode=mode)
            run = shard(net, (layout("dp", "mp"),), (layout("dp", "None"),), {"self.weight": (2, 2)})
            assert net.weight._value.addressable_data(0).shape == (3, 2)
            np.testing.assert_allclose(run(x).asnumpy(), wanted, rtol=1e-5, atol=1e-6)
            compiled = ms.jit(net.shard(((4, 1),)))
            np.testing.assert_allclose(compiled(x).asnumpy(), wanted, rtol=1e-5, atol=1e-6)
            gradient = ms.grad(lambda x: run(x).sum())(x)
            np.testing.assert_allclose(gradient.asnumpy()[0], net.weight.asnumpy().sum(0), rtol=1e-5)
        made = shard(lambda a: a + 1, (layout("dp", "mp"),))(x)
        assert made._value.addressable_data(0).shape == (4, 2)

        def refused(call, *words):
            try:
                call()
            except ms.core.errors.MyceliaError as error:
                assert all(w in str(error) for w in words), error
                assert "script.py" in str(error)
            else:
                raise AssertionError("nothing was refused")

        refused(lambda: shard(net, ((3, 1),))(x), "in_strategy[0] = (3, 1) makes 3 parts", "4 devices")
        refused(lambda: shard(net, ((2, 1), (1, 1)))(x), "2 strategies", "1 tensors")
        refused(lambda: shard(net, ((0, 1),)), "numbers of parts from 1")
        refused(lambda: shard(net, 3), "in_strategy", "a tuple")
        refused(lambda: shard(net, ((1, 1),), None, {"bias2": (1,)}), "bias2", "names of parameters: weight, bias")
        refused(lambda: shard(net, ((1, 1),), None, {"weight": (4, 1)}), "axis 0 of parameter 'weight'", "6 elements")
        refused(lambda: shard(lambda a: a, (layout("dp", "mp"),))(x[:3, :3]), "axis 0", "axis 1", "3 elements")
        refused(lambda: Layout((4, 4), ("a", "b"))("a").sharding(), "16 devices", "there are 4")
        """,
        tmp_path, devices=4,
    )  # fmt: skip


@pytest.mark.parametrize("size", [1, 2], ids=["virtual devices", "processes"])
def test_states_of_optimizers_are_spread(size, tmp_path):
    run_ranks(
        size,
        """
        from mycelia.parallel.auto_parallel import AutoParallel

        if SIZE > 1:
            comm.init()
        ms.set_context(mode=ms.GRAPH_MODE)

        def losses(level):
            rng = np.random.default_rng(0)
            net = nn.SequentialCell(nn.Dense(16, 32), nn.ReLU(), nn.Dense(32, 4))
            for p in net.trainable_params():
                p.set_data(ms.Tensor(rng.standard_normal(p.shape) * 0.2, ms.float32))
            optimizer = nn.Adam(net.trainable_params(), 1e-2)
            step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer).set_train()
            if level:
                step = AutoParallel(step)
                step.hsdp(threshold=0, optimizer_level=level)
            found = []
            for _ in range(10):
                x, y = rng.standard_normal((8, 16)).astype(np.float32), rng.integers(0, 4, 8).astype(np.int32)
                if level and SIZE > 1:
                    x, y = x[4 * RANK : 4 * RANK + 4], y[4 * RANK : 4 * RANK + 4]
                found.append(float(step(ms.Tensor(x), ms.Tensor(y))))
            return found, net.trainable_params(), optimizer

        plain, params, _ = losses(None)
        for level in ("level1", "level2", "level3"):
            spread, mine, optimizer = losses(level)
            np.testing.assert_allclose(spread, plain, rtol=0, atol=1e-6)
            for p, q in zip(mine, params, strict=True):
                np.testing.assert_allclose(p.asnumpy(), q.asnumpy(), rtol=0, atol=1e-5)
            parts = [(16, 16), (16,), (2, 32), (2,)]
            assert [m._value.addressable_data(0).shape for m in optimizer.moment1] == parts
            held = [p._value.addressable_data(0).shape for p in mine]
            assert held == (parts if level == "level3" else [p.shape for p in params])
        """,
        tmp_path, devices=2 if size == 1 else 1,
    )  # fmt: skip


AUTO = """
from mycelia.parallel import planned
from mycelia.parallel.planner import Level, Machine

# slow at computing, so that even this network is worth spreading
planned.machine = lambda: Machine("slow", (Level("devices", 4, 1e-9, 1e-12),), {"default": 1e6}, 1e9, 2**30)
ms.set_context(mode=ms.GRAPH_MODE)
plain, net, _ = losses()
for mode in ("auto", "recursive_programming", "sharding_propagation"):
    wrapped = AutoParallel
    AutoParallel = lambda step: wrapped(step, parallel_mode=mode)
    spread, other, optimizer = losses("data_parallel")
    AutoParallel = wrapped
    found = planned.last_plan()
    assert found.mode == mode and found.devices == 4, found.mode
    assert found.collectives
    assert any(any(spec) for name, spec in found.inputs.items()), found.explain()
    np.testing.assert_allclose(spread, plain, rtol=0, atol=1e-6)
    for mine, his in zip(other.trainable_params(), net.trainable_params(), strict=True):
        np.testing.assert_allclose(mine.asnumpy(), his.asnumpy(), rtol=0, atol=1e-5)
"""


@pytest.mark.parametrize("size", [1, 4], ids=["virtual devices", "processes"])
def test_a_training_step_as_it_is_planned(size, tmp_path):
    text = NETWORK.replace("net = Net(strategy is not None)", "net = Net(False)")
    run_ranks(size, text + AUTO, tmp_path, devices=4 if size == 1 else 1)
