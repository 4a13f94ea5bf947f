"""What the optimizers with ``param_groups`` and their schedules do in the real MindSpore, recorded for the tests.

    python optim_grouped.py        # with MindSpore 2.10, an environment of its own

``optim_grouped.npz`` holds for each of ``CASES`` a row after each step with the values of all parameters
(``CASE/steps``) and the names of the optimizer's parameters (``CASE/state``), and for each of ``SCHEDULES`` the rates
after each step (``SCHEDULE/rates``). Parameters and gradients are those of ``optim_cases.py``.
"""

from __future__ import annotations

import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import optim_cases as cases


def _groups(p, **first):
    names = ("fc.weight", "norm.gamma")
    return [
        {"params": [p[n] for n in names], **first},
        {"params": [q for n, q in p.items() if n not in names]},
    ]


CASES = {
    "sgd": lambda optim, p: optim.SGD(list(p.values()), 0.1, 0.9, 0.3, weight_decay=0.02),
    "sgd_groups": lambda optim, p: optim.SGD(_groups(p, lr=0.3, weight_decay=0.05), 0.1, 0.9),
    "sgd_maximize": lambda optim, p: optim.SGD(list(p.values()), 0.1, maximize=True),
    "adam": lambda optim, p: optim.Adam(list(p.values()), 0.05, (0.8, 0.9), 1e-8, 0.02),
    "adam_groups": lambda optim, p: optim.Adam(_groups(p, lr=0.01, betas=(0.5, 0.6)), 0.05),
    "adamw": lambda optim, p: optim.AdamW(list(p.values()), 0.05, weight_decay=0.1),
    "adamw_amsgrad": lambda optim, p: optim.AdamW(list(p.values()), 0.05, (0.8, 0.6), amsgrad=True, maximize=True),
    "adamax": lambda optim, p: optim.Adamax(list(p.values()), 0.05, weight_decay=0.02),
    "nadam": lambda optim, p: optim.NAdam(list(p.values()), 0.05, weight_decay=0.02),
    "radam": lambda optim, p: optim.RAdam(list(p.values()), 0.05, (0.8, 0.5), weight_decay=0.02),
    "rmsprop": lambda optim, p: optim.RMSprop(list(p.values()), 0.05, 0.9, momentum=0.5, centered=True),
    "rmsprop_plain": lambda optim, p: optim.RMSprop(list(p.values()), 0.05, weight_decay=0.02),
    "adagrad": lambda optim, p: optim.Adagrad(list(p.values()), 0.1, 0.1, 0.02, 0.3),
    "adadelta": lambda optim, p: optim.Adadelta(list(p.values()), 0.7, 0.8, 1e-3, 0.02),
    "asgd": lambda optim, p: optim.ASGD(list(p.values()), 0.1, 0.01, 0.5, 2.0, 0.02),
    "rprop": lambda optim, p: optim.Rprop(list(p.values()), 0.1, (0.4, 1.3), (0.05, 0.2)),
}

STEPS = 9
SCHEDULES = {
    "step": lambda s, o: s.StepLR(o, 2, 0.5),
    "multistep": lambda s, o: s.MultiStepLR(o, [2, 5, 6], 0.5),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.8),
    "linear": lambda s, o: s.LinearLR(o, 0.25, 0.75, 4),
    "constant": lambda s, o: s.ConstantLR(o, 0.25, 4),
    "polynomial": lambda s, o: s.PolynomialLR(o, 6, 2.0),
    "lambda": lambda s, o: s.LambdaLR(o, lambda step: 0.9**step),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda step: 0.9),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 4, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 2, 0.01),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.05, 0.2, 2, 3, "triangular2"),
    "cyclic_exp": lambda s, o: s.CyclicLR(o, 0.05, 0.2, 3, mode="exp_range", gamma=0.9),
    "sequential": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.5, 3), s.ExponentialLR(o, 0.8)], [4]),
}


def main():
    import mindspore
    from mindspore import Parameter, Tensor
    from mindspore.experimental import optim

    mindspore.set_device("CPU")
    recorded = {}
    for name, make in CASES.items():
        p = {n: Parameter(Tensor(v), name=n) for n, v in cases.start().items()}
        optimizer = make(optim, p)
        order = {id(q): i for i, q in enumerate(p.values())}
        steps = []
        for row in cases.gradients():
            optimizer(tuple([Tensor(row[order[id(q)]]) for q in optimizer.parameters]))
            steps.append(np.concatenate([q.asnumpy().reshape(-1) for q in p.values()]))
        recorded[f"{name}/steps"] = np.stack(steps)
        recorded[f"{name}/state"] = np.array([q.name for q in optimizer.get_parameters()])
    for name, make in SCHEDULES.items():
        a, b = (Parameter(Tensor([1.0]), name=n) for n in "ab")
        optimizer = optim.SGD([{"params": [a], "lr": 0.1}, {"params": [b]}], 0.4)
        schedule = make(optim.lr_scheduler, optimizer)
        rates = []
        for _ in range(STEPS):
            rates.append([float(x.asnumpy()) for x in optimizer.lrs])
            schedule.step()
        recorded[f"{name}/rates"] = np.array(rates)
    np.savez_compressed(os.path.splitext(os.path.abspath(__file__))[0] + ".npz", **recorded)


if __name__ == "__main__":
    main()
