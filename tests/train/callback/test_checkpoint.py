"""ModelCheckpoint: names, what is kept, and that a resumed training is the uninterrupted one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, train
from mycelia.train import CheckpointConfig, Model, ModelCheckpoint, load_checkpoint, load_param_into_net

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
X = np.arange(16, dtype=np.float32).reshape(8, 2) / 10
Y = X @ np.array([[1.0], [-2.0]], np.float32)
ROWS = [(X[i : i + 2], Y[i : i + 2]) for i in range(0, 8, 2)]


def network() -> nn.Cell:
    net = nn.SequentialCell(nn.Dense(2, 3), nn.BatchNorm1d(3), nn.Dense(3, 1))
    random = np.random.RandomState(3)
    for p in net.trainable_params():
        p.set_data(random.uniform(-1, 1, p.shape).astype(np.float32))
    return net


def model(optimizer: Any = None, **options: Any) -> Model:
    net = network()
    make = optimizer or (lambda p: nn.Adam(p, [0.1, 0.05, 0.2, 0.1, 0.02, 0.3, 0.1, 0.04, 0.1, 0.2, 0.1, 0.1]))
    return Model(net, nn.MSELoss(), make(net.trainable_params()), **options)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"save_checkpoint_steps": 4}, ["net-1_4.ckpt", "net-2_4.ckpt", "net-3_4.ckpt"]),
        ({"save_checkpoint_steps": 5}, ["net-2_1.ckpt", "net-3_2.ckpt", "net-3_4.ckpt"]),
        ({"save_checkpoint_steps": 2, "keep_checkpoint_max": 2}, ["net-3_2.ckpt", "net-3_4.ckpt"]),
        ({"save_checkpoint_steps": 2}, [f"net-{n}.ckpt" for n in ("1_4", "2_2", "2_4", "3_2", "3_4")]),
        ({"save_checkpoint_steps": 6, "format": "safetensors"}, ["net-2_2.safetensors", "net-3_4.safetensors"]),
        ({"save_checkpoint_steps": 2, "keep_checkpoint_max": 0}, ["net-3_4.ckpt"]),
        ({"save_checkpoint_steps": 4, "async_save": True, "keep_checkpoint_max": 2}, ["net-2_4.ckpt", "net-3_4.ckpt"]),
    ],
)  # fmt: skip
def test_names_and_what_is_kept(config: dict[str, Any], expected: list[str], tmp_path: Path) -> None:
    callback = ModelCheckpoint("net", str(tmp_path / "new"), CheckpointConfig(**config))
    seen: list[str] = []
    look = train.LambdaCallback(on_train_end=lambda c: seen.append(c.original_args().latest_ckpt_file))
    model().train(3, ROWS, callbacks=[callback, look])
    assert names(tmp_path / "new") == expected
    assert callback.latest_ckpt_file_name == seen[0] == str(tmp_path / "new" / expected[-1])


def test_files_of_an_earlier_run_are_left_alone(tmp_path: Path) -> None:
    for _ in range(3):
        model().train(1, ROWS, callbacks=ModelCheckpoint("net", str(tmp_path), CheckpointConfig(4)))
    (tmp_path / "net-old-1_1.ckpt").touch()
    model().train(1, ROWS, callbacks=ModelCheckpoint("net", str(tmp_path), CheckpointConfig(4)))
    assert names(tmp_path) == [
        "net-1_4.ckpt", "net-old-1_1.ckpt", "net_1-1_4.ckpt", "net_2-1_4.ckpt", "net_3-1_4.ckpt",
    ]  # fmt: skip


def test_one_callback_for_two_trainings(tmp_path: Path) -> None:
    callback, m = ModelCheckpoint("net", str(tmp_path), CheckpointConfig(4, keep_checkpoint_max=2)), model()
    m.train(2, ROWS, callbacks=callback)
    m.train(3, ROWS, callbacks=callback, initial_epoch=2)
    assert names(tmp_path) == ["net-2_4.ckpt", "net-3_4.ckpt"]


def test_functions_give_name_and_folder(tmp_path: Path) -> None:
    callback = ModelCheckpoint(
        lambda run: f"at{run.cur_step_num}",
        lambda run: str(tmp_path / f"epoch{run.cur_epoch_num}"),
        CheckpointConfig(4),
    )
    model().train(2, ROWS, callbacks=callback)
    assert names(tmp_path) == ["epoch1", "epoch2"]
    assert names(tmp_path / "epoch2") == ["at8.ckpt"]
    with pytest.raises(ValueError, match="'prefix' got 'a/b' from the function"):
        model().train(1, ROWS, callbacks=ModelCheckpoint(lambda run: "a/b", str(tmp_path)))


def test_saving_by_the_clock(tmp_path: Path, monkeypatch: Any) -> None:
    clock = [0.0]
    monkeypatch.setattr("mycelia.train.callback.checkpoint.time.monotonic", lambda: clock[0])
    tick = train.LambdaCallback(on_train_step_begin=lambda c: clock.__setitem__(0, clock[0] + 10.0))
    config = CheckpointConfig(save_checkpoint_steps=None, save_checkpoint_seconds=25)
    model().train(2, ROWS, callbacks=[tick, ModelCheckpoint("net", str(tmp_path), config)])
    assert names(tmp_path) == ["net-1_3.ckpt", "net-2_2.ckpt", "net-2_4.ckpt"]


def test_keeping_one_per_minutes(tmp_path: Path, monkeypatch: Any) -> None:
    clock = [0.0]
    monkeypatch.setattr("mycelia.train.callback.checkpoint.time.monotonic", lambda: clock[0])
    tick = train.LambdaCallback(on_train_step_begin=lambda c: clock.__setitem__(0, clock[0] + 30.0))
    config = CheckpointConfig(1, keep_checkpoint_max=None, keep_checkpoint_per_n_minutes=1)
    model().train(2, ROWS, callbacks=[tick, ModelCheckpoint("net", str(tmp_path), config)])
    assert names(tmp_path) == ["net-1_1.ckpt", "net-1_3.ckpt", "net-2_1.ckpt", "net-2_3.ckpt", "net-2_4.ckpt"]


def test_what_is_saved(tmp_path: Path) -> None:
    config = CheckpointConfig(8, append_info=["epoch_num", "step_num", {"note": "hello", "rate": 0.5, "step_num": 100}])
    m = model()
    m.train(2, ROWS, callbacks=ModelCheckpoint("net", str(tmp_path), config))
    found = load_checkpoint(str(tmp_path / "net-2_4.ckpt"))
    state = {p.name: p for p in m.train_network.get_parameters()}
    assert set(found) == {*state, "epoch_num", "step_num", "note", "rate"}
    for name, p in state.items():
        np.testing.assert_array_equal(found[name].asnumpy(), p.asnumpy())
    assert (int(found["epoch_num"]), int(found["step_num"]), found["note"], float(found["rate"])) == (
        2,
        108,
        "hello",
        0.5,
    )


def test_saved_network_alone(tmp_path: Path) -> None:
    m = model()
    config = CheckpointConfig(4, saved_network=m.predict_network)
    m.train(1, ROWS, callbacks=ModelCheckpoint("net", str(tmp_path), config))
    found = load_checkpoint(str(tmp_path / "net-1_4.ckpt"))
    assert list(found) == [p.name for p in m.predict_network.get_parameters()]


class Raising(train.Callback):
    def on_train_step_begin(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == 6:
            raise KeyboardInterrupt


def test_an_exception_is_a_reason_to_save(tmp_path: Path) -> None:
    for save in (False, True):
        config = CheckpointConfig(100, exception_save=save)
        with pytest.raises(KeyboardInterrupt):
            model().train(3, ROWS, callbacks=[ModelCheckpoint("net", str(tmp_path), config), Raising()])
    assert names(tmp_path) == ["net-2_2_breakpoint.ckpt"]
    model().train(1, ROWS, callbacks=ModelCheckpoint("net", str(tmp_path), CheckpointConfig(4)))
    assert names(tmp_path) == ["net-1_4.ckpt", "net-2_2_breakpoint.ckpt"]


def losses(m: Model, epochs: int, *callbacks: Any, initial_epoch: int = 0) -> list[bytes]:
    seen: list[bytes] = []
    look = train.LambdaCallback(
        on_train_step_end=lambda c: seen.append(c.original_args().net_outputs.asnumpy().tobytes())
    )
    m.train(epochs, ROWS, callbacks=[*callbacks, look], initial_epoch=initial_epoch)
    return seen


@MODES
@pytest.mark.parametrize(
    "optimizer",
    [
        None, lambda p: nn.SGD(p, 0.1, 0.9, dampening=0.3), lambda p: nn.Rprop(p, 0.01),
        lambda p: nn.RMSProp(p, 0.01, centered=True),
    ],
    ids=["adam_dynamic", "sgd_dampening", "rprop", "rmsprop"],
)  # fmt: skip
def test_a_resumed_training_has_the_losses_of_the_uninterrupted_one(optimizer: Any, mode: int, tmp_path: Path) -> None:
    ms.set_context(mode=mode)
    whole = losses(model(optimizer), 3)
    losses(model(optimizer), 1, ModelCheckpoint("net", str(tmp_path), CheckpointConfig(4)))
    resumed = model(optimizer)
    found = load_checkpoint(str(tmp_path / "net-1_4.ckpt"))
    assert load_param_into_net(resumed.train_network, found) == ([], [])
    assert losses(resumed, 3, initial_epoch=1) == whole[4:]
    assert len(set(whole)) == 12


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: CheckpointConfig(-1), ValueError, "'save_checkpoint_steps' got -1"),
        (lambda: CheckpointConfig(1.5), TypeError, "'save_checkpoint_steps' got 1.5"),
        (lambda: CheckpointConfig(0, 0, 0, 0), ValueError, "cannot all be None or 0"),
        (lambda: CheckpointConfig(saved_network=3), TypeError, "'saved_network' got int"),
        (lambda: CheckpointConfig(async_save="later"), ValueError, "'async_save' got 'later'"),
        (lambda: CheckpointConfig(append_info="epoch_num"), TypeError, "'append_info' got str; it takes a list"),
        (lambda: CheckpointConfig(append_info=["epoch"]), ValueError, "'append_info' got 'epoch'"),
        (lambda: CheckpointConfig(append_info=[3]), TypeError, "an element of type int"),
        (lambda: CheckpointConfig(append_info=[{}, {}]), TypeError, "got 2 dicts"),
        (lambda: CheckpointConfig(append_info=[{"a": None}]), TypeError, "'a': NoneType"),
        (lambda: CheckpointConfig(enc_key="key"), TypeError, "'enc_key' got str"),
        (lambda: CheckpointConfig(format="npz"), ValueError, "'format' got 'npz'"),
        (lambda: CheckpointConfig(format="safetensors", exception_save=True), ValueError, "'exception_save'"),
        (lambda: CheckpointConfig(crc_check=1), TypeError, "'crc_check' got 1"),
        (lambda: ModelCheckpoint("a/b"), ValueError, "ModelCheckpoint: argument 'prefix' got 'a/b'"),
        (lambda: ModelCheckpoint("a", 3), TypeError, "'directory' got int"),
        (lambda: ModelCheckpoint("a", config=3), TypeError, "'config' got int; it takes a CheckpointConfig"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(make: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_the_policy_as_a_dict() -> None:
    assert CheckpointConfig(10, 5, 3).get_checkpoint_policy() == {
        "save_checkpoint_steps": 10, "save_checkpoint_seconds": None, "keep_checkpoint_max": 3,
        "keep_checkpoint_per_n_minutes": None, "saved_network": None,
    }  # fmt: skip
