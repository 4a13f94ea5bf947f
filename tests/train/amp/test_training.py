"""Loss scalers and managers, build_train_network, and Model with amp_level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import amp, nn
from mycelia.train import Callback, LambdaCallback, Model

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
X = np.random.RandomState(0).uniform(-1, 1, (8, 4)).astype(np.float32)
Y = X[:, :1] - 2 * X[:, 1:2]
ROWS = [(X[i : i + 4], Y[i : i + 4]) for i in (0, 4)]


def network() -> nn.Cell:
    net = nn.SequentialCell(nn.Dense(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dense(8, 1))
    random = np.random.RandomState(2)
    for p in net.trainable_params():
        p.set_data(random.uniform(-0.5, 0.5, p.shape).astype(np.float32) + (1 if "gamma" in p.name else 0))
    return net


def model(level: str = "O0", **options: Any) -> Model:
    net = network()
    return Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.05, 0.9), amp_level=level, **options)


def losses(m: Model, epochs: int = 6, data: Any = ROWS, *callbacks: Callback) -> list[float]:
    seen: list[float] = []

    def look(c: Any) -> None:
        out = c.original_args().net_outputs
        seen.append(float((out[0] if isinstance(out, tuple) else out).asnumpy()))

    m.train(epochs, data, callbacks=[*callbacks, LambdaCallback(on_train_step_end=look)])
    return seen


# Model -------------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("level", ["O1", "O2", "O3", "auto"])
def test_levels_train_alike(level: str, mode: int) -> None:
    ms.set_context(mode=mode)
    plain = losses(model())
    mixed = losses(model(level, loss_scale_manager=amp.DynamicLossScaleManager(2**8) if level == "O2" else None))
    np.testing.assert_allclose(mixed, plain, rtol=0.05, atol=0.02)
    assert mixed != plain
    assert mixed[-1] < mixed[0] / 2


@MODES
def test_o2_scales_the_loss(mode: int) -> None:
    ms.set_context(mode=mode)
    m = model("O2")
    assert isinstance(m.train_network, nn.TrainOneStepWithLossScaleCell)
    assert float(m.train_network.scale_sense.asnumpy()) == 2.0**24
    assert not isinstance(model("O2", loss_scale_manager=None).train_network, nn.TrainOneStepWithLossScaleCell)
    assert not isinstance(model("O3").train_network, nn.TrainOneStepWithLossScaleCell)


@MODES
def test_an_overflowing_step_of_a_model_changes_nothing_but_the_scale(mode: int) -> None:
    ms.set_context(mode=mode)
    manager = amp.DynamicLossScaleManager(2**10, 2, 3)
    m = model(loss_scale_manager=manager)
    state: dict[int, dict[str, bytes]] = {}
    ours = ("scale_sense", "current_iterator_step", "last_overflow_iterator_step")

    class Look(Callback):
        def on_train_step_begin(self, run_context: Any) -> None:
            state[run_context.original_args().cur_step_num] = {
                p.name: p.asnumpy().tobytes() for p in m.train_network.get_parameters() if p.name not in ours
            }

    data = [
        ROWS[0],
        (np.full_like(X[:4], np.nan), Y[:4]),
        (X[:4], np.full_like(Y[:4], np.nan)),
        ROWS[1],
        ROWS[0],
        ROWS[1],
        ROWS[0],
    ]
    losses(m, 1, data, Look())
    assert state[2] == state[3] == state[4]
    assert state[1] != state[2]
    assert state[4] != state[5]
    assert float(m.train_network.scale_sense.asnumpy()) == 2.0**9
    assert manager.get_loss_scale() == 2.0**9


@MODES
def test_a_fixed_scale_without_dropping_needs_the_optimizer_to_divide(mode: int) -> None:
    ms.set_context(mode=mode)
    net = network()
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9, loss_scale=1024.0)
    m = Model(
        net, nn.MSELoss(), optimizer, loss_scale_manager=amp.FixedLossScaleManager(1024.0, drop_overflow_update=False)
    )
    np.testing.assert_allclose(losses(m), losses(model()), rtol=1e-5)


@MODES
def test_a_fixed_scale_that_drops(mode: int) -> None:
    ms.set_context(mode=mode)
    m = model(loss_scale_manager=amp.FixedLossScaleManager(256.0))
    np.testing.assert_allclose(losses(m), losses(model()), rtol=1e-5)
    assert float(m.train_network.scale_sense.asnumpy()) == 256.0


def test_a_manager_of_ones_own_is_told_of_every_step() -> None:
    told: list[bool] = []

    class Mine(amp.LossScaleManager):
        def get_loss_scale(self) -> float:
            return 8.0

        def get_drop_overflow_update(self) -> bool:
            return True

        def update_loss_scale(self, overflow: bool) -> None:
            told.append(overflow)

        def get_update_cell(self) -> Any:
            return nn.DynamicLossScaleUpdateCell(8.0, 2, 100)

    losses(model(loss_scale_manager=Mine()), 1, [ROWS[0], (X[:4], np.full_like(Y[:4], np.inf))])
    assert told == [False, True]


def test_in_graph_mode_a_mixed_step_is_one_executable() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    m = model("O2")
    losses(m)
    calls = m.train_network.__dict__["_compiled_calls"]
    assert sum(len(b) for jit in calls.values() for b in jit.entries.values()) == 1


# build_train_network -----------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize(
    ("level", "options", "dtypes", "scaled"),
    [
        ("O0", {}, (None, None), False),
        ("O0", {"cast_model_type": ms.float16}, (ms.float16, ms.float16), False),
        ("O2", {}, (ms.float16, ms.float32), True),
        ("O2", {"keep_batchnorm_fp32": False}, (ms.float16, ms.float16), True),
        ("O2", {"cast_model_type": ms.float32}, (None, None), True),
        ("O2", {"cast_model_type": ms.bfloat16, "loss_scale_manager": None}, (ms.bfloat16, ms.float32), False),
        ("O3", {}, (ms.float16, ms.float16), False),
        ("O3", {"keep_batchnorm_fp32": True}, (ms.float16, ms.float32), False),
        ("O3", {"loss_scale_manager": amp.FixedLossScaleManager()}, (ms.float16, ms.float16), True),
    ],
)  # fmt: skip
def test_build_train_network(level: str, options: Any, dtypes: Any, scaled: bool, mode: int) -> None:
    ms.set_context(mode=mode)
    net = network()
    step = amp.build_train_network(net, nn.SGD(net.trainable_params(), 0.1), nn.MSELoss(), level, **options)
    assert (net[0].compute_dtype, net[1].compute_dtype) == dtypes
    assert isinstance(step, nn.TrainOneStepWithLossScaleCell) == scaled
    assert step.training
    out = step(ms.Tensor(X), ms.Tensor(Y))
    assert (out[0] if scaled else out).dtype is ms.float32


def test_build_train_network_without_a_loss() -> None:
    class WithLoss(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def construct(self, x: Any, y: Any) -> Any:
            return ((self.net(x) - y) ** 2).mean()

    net = WithLoss()
    step = amp.build_train_network(net, nn.SGD(net.trainable_params(), 0.1), level="O2")
    assert np.isfinite(step(ms.Tensor(X), ms.Tensor(Y))[0].asnumpy())


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda n, o: amp.build_train_network(3, o), TypeError, "'network' got int"),
        (lambda n, o: amp.build_train_network(n, o, level=2), TypeError, "'level' got int"),
        (lambda n, o: amp.build_train_network(n, o, level="O9"), ValueError, "'level' got 'O9'"),
        (lambda n, o: amp.build_train_network(n, o, boost_level="x"), ValueError, "'boost_level' got 'x'"),
        (lambda n, o: amp.build_train_network(n, o, scale=1), ValueError, "'scale' got a value; it takes one of"),
        (lambda n, o: amp.build_train_network(n, o, cast_model_type=ms.int32), ValueError, "got Int32; it takes"),
        (lambda n, o: amp.build_train_network(n, o, keep_batchnorm_fp32=1), TypeError, "'keep_batchnorm_fp32' got 1"),
        (lambda n, o: amp.build_train_network(n, o, loss_scale_manager=1), TypeError, "'loss_scale_manager' got int"),
        (lambda n, o: amp.build_train_network(n, 3), TypeError, "'optimizer' got int"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(call: Any, kind: type[Exception], message: str) -> None:
    net = network()
    with pytest.raises(kind, match=message):
        call(net, nn.SGD(net.trainable_params(), 0.1))


# scalers -----------------------------------------------------------------------------------------------------


@MODES
def test_a_training_loop_with_a_scaler(mode: int) -> None:
    ms.set_context(mode=mode)
    net = amp.auto_mixed_precision(network(), "O2")
    net.set_train()
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    scaler, loss_fn = amp.DynamicLossScaler(2.0**24, 2, 2), nn.MSELoss()

    def forward(x: Any, y: Any) -> Any:
        loss = loss_fn(net(x), y)
        return scaler.scale(loss), loss

    gradients_of = ms.value_and_grad(forward, None, net.trainable_params(), has_aux=True)
    scales, seen = [], []
    for _ in range(25):
        (_, loss), gradients = gradients_of(ms.Tensor(X), ms.Tensor(Y))
        gradients = scaler.unscale(gradients)
        finite = amp.all_finite(gradients)
        if finite:
            optimizer(gradients)
        scaler.adjust(finite)
        scales.append(float(scaler.scale_value.asnumpy()))
        seen.append(float(loss.asnumpy()))
    assert scales[0] == 2.0**23
    assert 1 < scales[-1] < 2.0**20
    assert seen[-1] < seen[0] / 2


@MODES
@pytest.mark.parametrize(("first", "factor", "window"), [(8.0, 2, 2), (3.0, 4, 3), (2.0**127, 2, 1)])
def test_the_course_of_a_dynamic_scaler(first: float, factor: int, window: int, mode: int) -> None:
    ms.set_context(mode=mode)
    scaler = amp.DynamicLossScaler(first, factor, window)
    scale, good = first, 0
    for finite in [True, True, True, False, True, False, False, True, True, True, True, False]:
        assert scaler.adjust(ms.Tensor(finite)) is True
        if not finite:
            scale, good = max(scale / factor, 1.0), 0
        else:
            good += 1
            if good == window:
                good = 0
                scale = scale * factor if scale * factor < 3.4e38 else scale
        assert float(scaler.scale_value.asnumpy()) == scale
    assert [p.name for p in (scaler.scale_value, scaler.counter)] == ["scale_value", "counter"]


@MODES
def test_scale_and_unscale_nests(mode: int) -> None:
    ms.set_context(mode=mode)
    scaler = amp.StaticLossScaler(4)
    nest = (ms.Tensor([1.0]), [ms.Tensor([2.0], ms.float16), 3])
    scaled = scaler.scale(nest)
    assert scaled[1][0].dtype is ms.float16
    assert scaled[1][1] == 3
    np.testing.assert_array_equal(scaled[1][0].asnumpy(), [8.0])
    np.testing.assert_array_equal(scaler.unscale(scaled)[0].asnumpy(), [1.0])
    assert scaler.adjust(ms.Tensor(True)) is False


def test_scalers_and_managers_refuse() -> None:
    for call, kind, message in (
        (lambda: amp.StaticLossScaler(0.5), ValueError, "'scale_value' got 0.5; it takes a number of at least 1"),
        (lambda: amp.StaticLossScaler("1"), TypeError, "'scale_value' got '1'"),
        (lambda: amp.DynamicLossScaler(4, 0, 1), ValueError, "'scale_factor' got 0"),
        (lambda: amp.DynamicLossScaler(4, 2, 0), ValueError, "'scale_window' got 0"),
        (lambda: amp.FixedLossScaleManager(0.5), ValueError, "'loss_scale' got 0.5"),
        (lambda: amp.DynamicLossScaleManager(0.5), ValueError, "'init_loss_scale' got 0.5"),
        (lambda: amp.DynamicLossScaleManager(4, 2, 0), ValueError, "'scale_window' got 0"),
        (lambda: amp.LossScaleManager().get_loss_scale(), RuntimeError, "defines no 'get_loss_scale'"),
        (amp.LossScaler, TypeError, "abstract"),
    ):
        with pytest.raises(kind, match=message):
            call()


def test_managers_by_hand() -> None:
    manager = amp.DynamicLossScaleManager(16, 2, 2)
    seen = []
    for overflow in (False, False, True, False, False, True, True, True, True, True):
        manager.update_loss_scale(overflow)
        seen.append(manager.get_loss_scale())
    assert seen == [16, 32, 16, 16, 32, 16, 8, 4, 2, 1]
    assert manager.get_drop_overflow_update() is True
    assert manager.get_update_cell().get_loss_scale() == 1.0
    fixed = amp.FixedLossScaleManager(64.0)
    fixed.update_loss_scale(True)
    assert fixed.get_loss_scale() == 64.0
    assert fixed.get_update_cell().get_loss_scale() == 64.0
