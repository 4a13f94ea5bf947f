"""What the optimizers and learning rates of the real MindSpore do, recorded for the tests.

    python optim_trajectories.py        # with MindSpore 2.10, an environment of its own

``optim_trajectories.npz`` holds, for each case of ``optim_cases.py`` (``half/`` before it: with float16
parameters and gradients),

    CASE/steps   a row after each step with the values of all parameters, one after another
    CASE/state   names of all parameters of the optimizer, in the order of ``get_parameters``
    CASE/last    the values of those after the last step, one after another

for each schedule ``rates/NAME``, the rates of steps 0, 1, ..., and in ``refused`` what MindSpore's CPU
kernels cannot run.
"""

from __future__ import annotations

import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import optim_cases as cases


def trajectory(nn, tensor, parameter, case, dtype):
    """Arrays by key of one case."""
    parameters = {name: parameter(tensor(value), name=name) for name, value in cases.start(dtype).items()}
    optimizer = cases.CASES[case](nn, parameters)
    order = {id(p): i for i, p in enumerate(parameters.values())}
    steps = []
    for row in cases.gradients(dtype):
        optimizer(tuple([tensor(row[order[id(p)]]) for p in optimizer.parameters]))
        steps.append(_joined(parameters.values()))
    everything = list(optimizer.get_parameters())
    return {
        "steps": np.stack(steps), "state": np.array([p.name for p in everything]), "last": _joined(everything),
    }  # fmt: skip


def _joined(parameters):
    return np.concatenate([p.asnumpy().astype(np.float32).reshape(-1) for p in parameters])


def rates(nn, tensor, name):
    """The rates of the first steps."""
    made = cases.RATES[name](nn)
    if isinstance(made, list):
        return np.array(made)
    return np.array([float(made(tensor(np.array(i, np.int32))).asnumpy()) for i in range(cases.LAST_STEP)])


def main():
    import mindspore
    from mindspore import Parameter, Tensor, nn

    mindspore.set_device("CPU")
    recorded, refused = {}, []
    todo = [("", case, np.float32) for case in cases.CASES] + [("half/", case, np.float16) for case in cases.HALF]
    for prefix, case, dtype in todo:
        try:
            made = trajectory(nn, Tensor, Parameter, case, dtype)
        except (RuntimeError, TypeError, ValueError) as error:
            refused.append(prefix + case)
            print("refused", prefix + case, str(error)[:300].replace("\n", " "))
            continue
        recorded.update({f"{prefix}{case}/{key}": value for key, value in made.items()})
    for name in cases.RATES:
        recorded[f"rates/{name}"] = rates(nn, Tensor, name)
    recorded["refused"] = np.array(refused)
    recorded["version"] = np.array(mindspore.__version__)
    np.savez_compressed(os.path.splitext(os.path.abspath(__file__))[0] + ".npz", **recorded)


if __name__ == "__main__":
    main()
