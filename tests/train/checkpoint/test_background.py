from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

from mycelia.core.errors import DTypeError, StateError
from mycelia.tensor import Parameter, Tensor
from mycelia.train.checkpoint import async_ckpt_thread_status, background, load_checkpoint, save_checkpoint


def parameter(values, name="w"):
    return Parameter(np.array(values, np.float32), name=name)


@pytest.mark.parametrize("async_save", [True, "thread", "process"])
@pytest.mark.parametrize("format", ["ckpt", "safetensors"])
def test_the_file_is_there_for_the_next_load(async_save, format, tmp_path):
    path = str(tmp_path / f"a.{format}")
    save_checkpoint({"w": parameter([1, 2]), "s": "x"}, path, async_save=async_save, format=format)
    loaded = load_checkpoint(path, format=format)
    assert loaded["w"].asnumpy().tolist() == [1, 2]
    assert loaded["s"] == "x"
    assert not async_ckpt_thread_status()


def test_the_copies_are_taken_before_the_call_returns(tmp_path, monkeypatch):
    gate = threading.Event()
    write = background._run

    def held(path, save):
        gate.wait(60)
        write(path, save)

    monkeypatch.setattr(background, "_run", held)
    p, array = parameter([1, 2]), np.zeros(2, np.float32)
    save_checkpoint({"w": p, "n": array}, str(tmp_path / "a.ckpt"), async_save=True)
    assert async_ckpt_thread_status()
    assert not (tmp_path / "a.ckpt").exists()
    p.set_data(Tensor(np.array([8, 9], np.float32)))
    array[:] = 7
    gate.set()
    loaded = load_checkpoint(str(tmp_path / "a.ckpt"))
    assert [loaded[n].asnumpy().tolist() for n in ("w", "n")] == [[1, 2], [0, 0]]


def test_saves_keep_their_order(tmp_path):
    path = str(tmp_path / "a.ckpt")
    for number in range(5):
        save_checkpoint([parameter([number])], path, async_save=True)
    save_checkpoint([parameter([9])], path)
    assert load_checkpoint(path)["w"].asnumpy().tolist() == [9]


def test_a_failure_is_logged_and_raised_once(tmp_path, caplog, monkeypatch):
    def broken(*args, **kwargs):
        raise OSError("No space left on device")

    path = str(tmp_path / "a.ckpt")
    with monkeypatch.context() as patch:
        patch.setattr("mycelia.train.checkpoint.ckpt_format.write_ckpt", broken)
        save_checkpoint([parameter([1])], path, async_save=True)
        with pytest.raises(StateError, match=r"asynchronous save of .*a.ckpt failed: OSError: No space left") as caught:
            save_checkpoint([parameter([2])], str(tmp_path / "b.ckpt"))
    assert isinstance(caught.value.__cause__, OSError)
    assert "a.ckpt failed: OSError: No space left on device" in caplog.text
    assert list(tmp_path.iterdir()) == []
    save_checkpoint([parameter([2])], path, async_save=True)
    assert load_checkpoint(path)["w"].asnumpy().tolist() == [2]


def test_what_cannot_be_saved_is_refused_in_the_call_itself(tmp_path):
    with pytest.raises(DTypeError, match="'x' has dtype complex128"):
        save_checkpoint({"x": np.zeros(1, complex)}, str(tmp_path / "a"), async_save=True, format="safetensors")
    background.wait()
    assert list(tmp_path.iterdir()) == []


def run(program, folder):
    command = [sys.executable, "-c", program, str(folder)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


START = """
import sys, threading
import numpy as np
from mycelia.train.checkpoint import background, save_checkpoint, ckpt_format
folder = sys.argv[1]
gate, run = threading.Event(), background._run
background._run = lambda path, save: (gate.wait(60), run(path, save))
"""
END = """
save_checkpoint({"w": np.arange(3)}, folder + "/a.ckpt", async_save=True)
threading.Thread(target=lambda: (threading.main_thread().join(), gate.set())).start()  # open once the program ended
"""


def test_the_interpreter_waits_at_its_exit(tmp_path):
    done = run(START + END, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert load_checkpoint(str(tmp_path / "a.ckpt"))["w"].asnumpy().tolist() == [0, 1, 2]


def test_a_failure_is_seen_at_the_exit(tmp_path):
    broken = "\ndef fail(*a, **k): raise OSError('No space left on device')\nckpt_format.write_ckpt = fail\n"
    done = run(START + broken + END, tmp_path)
    assert "StateError" in done.stderr
    assert "No space left on device" in done.stderr
    assert "a.ckpt" in done.stderr
