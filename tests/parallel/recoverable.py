"""A training that can be ended at any moment: run by ``mycelia-run`` in tests, it goes on from its last checkpoint.

Usage: ``recoverable.py FOLDER STEPS EVERY [PLAN]``. It writes ``FOLDER/last.ckpt`` every ``EVERY`` steps and
``FOLDER/end.ckpt`` in the end. ``PLAN`` is JSON: for each start a rank, a number of steps after which something happens
to it, and what: a signal's number, "raise", or "save" (it is killed while it writes a checkpoint).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

import mycelia as ms
from mycelia import communication as comm, nn, ops

FOLDER, STEPS, EVERY = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
PLAN = json.loads(sys.argv[4]) if len(sys.argv) > 4 else []
START = int(os.environ["MS_RESTART_COUNT"])

comm.init()
RANK, SIZE = comm.get_rank(), comm.get_group_size()
who, after, what = PLAN[START] if START < len(PLAN) else (-1, 0, 0)

ms.set_seed(7)
net = nn.SequentialCell(nn.Dense(6, 16), nn.ReLU(), nn.Dense(16, 3))
opt = nn.Adam(net.trainable_params(), 0.01)
loss = nn.CrossEntropyLoss()
reduce = ops.AllReduce()
step_of = ms.value_and_grad(lambda x, y: loss(net(x), y), None, net.trainable_params())
state = {p.name: p for p in [*net.get_parameters(), *opt.get_parameters()]}

begin = 0
if (FOLDER / "last.ckpt").exists():
    saved = ms.load_checkpoint(str(FOLDER / "last.ckpt"))
    begin = int(saved.pop("step").asnumpy())
    for name, parameter in state.items():
        parameter.set_data(ms.Tensor(saved[name].asnumpy()))
print("begins at", begin, flush=True)


def save(step: int, name: str) -> None:
    entries = [{"name": key, "data": value} for key, value in state.items()]
    ms.save_checkpoint([*entries, {"name": "step", "data": ms.Tensor(step, ms.int64)}], str(FOLDER / name))


def kill_soon(delay: float) -> None:
    time.sleep(delay)
    os.kill(os.getpid(), signal.SIGKILL)


for step in range(begin, STEPS):
    draw = np.random.default_rng(1000 * step + RANK)
    x, y = draw.standard_normal((8, 6)).astype(np.float32), draw.integers(0, 3, 8).astype(np.int32)
    value, grads = step_of(ms.Tensor(x), ms.Tensor(y))
    opt(tuple(reduce(g) / SIZE for g in grads))
    if RANK == who and step - begin == after:
        if what == "raise":
            raise ValueError(f"bad luck in step {step}")
        if what == "save":
            threading.Thread(target=kill_soon, args=(0.0002 * after,), daemon=True).start()
            while True:
                save(-1, "last.ckpt.tried")
        os.kill(os.getpid(), what)
    if RANK == 0 and (step + 1) % EVERY == 0:
        save(step + 1, "last.ckpt")
    print("step", step, float(value.asnumpy()), flush=True)
if RANK == 0:
    save(STEPS, "end.ckpt")
