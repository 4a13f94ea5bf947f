"""Optimizers, learning rates and the numbers they are tried on: the same for the real MindSpore and for ours.

``CASES`` maps a name to a function of an ``nn`` module and of parameters by name that makes an optimizer;
``RATES`` maps a name to a function of an ``nn`` module that makes a schedule, or a list of rates.
"""

from __future__ import annotations

import numpy as np

STEPS = 6
SHAPES = {
    "fc.weight": (3, 4), "fc.bias": (3,), "norm.gamma": (4,), "norm.beta": (4,), "conv.weight": (2, 16, 1, 1),
}  # fmt: skip


def start(dtype=np.float32):
    """The first values of the parameters."""
    random = np.random.RandomState(7)
    return {name: random.uniform(-1, 1, shape).astype(dtype) for name, shape in SHAPES.items()}


def gradients(dtype=np.float32):
    """The gradients of each step, in the order of the parameters; some are zero, and signs change."""
    random = np.random.RandomState(11)
    steps = []
    for _ in range(STEPS):
        made = [random.uniform(-1, 1, shape) * (random.uniform(0, 1, shape) > 0.15) for shape in SHAPES.values()]
        steps.append([g.astype(dtype) for g in made])
    return steps


def _all(p):
    return list(p.values())


def _groups(p, **first):
    names = ("fc.weight", "norm.gamma")
    return [
        {"params": [p[n] for n in names], **first},
        {"params": [q for n, q in p.items() if n not in names]},
    ]  # fmt: skip


def _ordered(p, **first):
    return [*_groups(p, **first), {"order_params": _all(p)}]


def _decay_cell(nn):
    class Decay(nn.Cell):
        def construct(self, global_step):
            return 0.02 / (1.0 + global_step)

    return Decay()


CASES = {
    "sgd": lambda nn, p: nn.SGD(_all(p), 0.1),
    "sgd_momentum": lambda nn, p: nn.SGD(_all(p), 0.1, momentum=0.9),
    "sgd_dampening": lambda nn, p: nn.SGD(_all(p), 0.1, momentum=0.9, dampening=0.3),
    "sgd_nesterov": lambda nn, p: nn.SGD(_all(p), 0.1, momentum=0.9, nesterov=True),
    "sgd_decay_scale": lambda nn, p: nn.SGD(_all(p), 0.1, momentum=0.5, weight_decay=0.02, loss_scale=8.0),
    "sgd_groups": lambda nn, p: nn.SGD(_groups(p, lr=0.3, weight_decay=0.05), 0.1, momentum=0.9),
    "sgd_dynamic": lambda nn, p: nn.SGD(_all(p), [0.1, 0.2, 0.05, 0.3, 0.01, 0.4], momentum=0.9),
    "momentum": lambda nn, p: nn.Momentum(_all(p), 0.1, 0.9),
    "momentum_nesterov": lambda nn, p: nn.Momentum(_all(p), 0.1, 0.9, use_nesterov=True),
    "momentum_decay_scale": lambda nn, p: nn.Momentum(_all(p), 0.1, 0.9, weight_decay=0.02, loss_scale=16.0),
    "momentum_groups": lambda nn, p: nn.Momentum(_groups(p, lr=0.3, weight_decay=0.05), 0.1, 0.9, weight_decay=0.01),
    "momentum_ordered": lambda nn, p: nn.Momentum(_ordered(p, lr=0.3, weight_decay=0.05), 0.1, 0.9),
    "momentum_centralized": lambda nn, p: nn.Momentum(
        [{"params": [p["conv.weight"]], "grad_centralization": True}, {"params": [p["fc.weight"]]}], 0.1, 0.9
    ),
    "momentum_group_sequence": lambda nn, p: nn.Momentum(_groups(p, lr=[0.1, 0.2, 0.05, 0.3, 0.01, 0.4]), 0.25, 0.9),
    "momentum_schedule": lambda nn, p: nn.Momentum(_all(p), nn.ExponentialDecayLR(0.3, 0.7, 2), 0.9),
    "momentum_group_schedule": lambda nn, p: nn.Momentum(
        _groups(p, lr=nn.CosineDecayLR(0.01, 0.2, 4), weight_decay=0.1), nn.PolynomialDecayLR(0.3, 0.01, 4, 0.5), 0.9
    ),
    "momentum_dynamic_decay": lambda nn, p: nn.Momentum(
        _all(p), 0.1, 0.9, weight_decay=_decay_cell(nn), loss_scale=4.0
    ),
    "momentum_group_dynamic_decay": lambda nn, p: nn.Momentum(
        _groups(p, weight_decay=_decay_cell(nn)), 0.1, 0.9, weight_decay=0.01
    ),
    "adam": lambda nn, p: nn.Adam(_all(p), 0.05),
    "adam_betas": lambda nn, p: nn.Adam(_all(p), 0.05, beta1=0.7, beta2=0.95, eps=1e-3),
    "adam_nesterov": lambda nn, p: nn.Adam(_all(p), 0.05, use_nesterov=True),
    "adam_amsgrad": lambda nn, p: nn.Adam(_all(p), 0.05, use_amsgrad=True, beta2=0.6),
    "adam_decay_scale": lambda nn, p: nn.Adam(_all(p), 0.05, weight_decay=0.02, loss_scale=8.0),
    "adam_groups": lambda nn, p: nn.Adam(_groups(p, lr=0.01, weight_decay=0.05), 0.05),
    "adam_schedule": lambda nn, p: nn.Adam(_all(p), nn.InverseDecayLR(0.3, 0.7, 2)),
    "adam_lazy": lambda nn, p: nn.Adam(_all(p), 0.05, use_lazy=True),
    "adam_offload": lambda nn, p: nn.Adam(_all(p), 0.05, use_offload=True, weight_decay=0.01),
    "adamoffload": lambda nn, p: nn.AdamOffload(_all(p), 0.05, weight_decay=0.01),
    "lazyadam": lambda nn, p: nn.LazyAdam(_all(p), 0.05, weight_decay=0.01, use_nesterov=True),
    "adamweightdecay": lambda nn, p: nn.AdamWeightDecay(_all(p), 0.05, weight_decay=0.1),
    "adamweightdecay_groups": lambda nn, p: nn.AdamWeightDecay(
        _groups(p, lr=0.01, weight_decay=0.05), nn.NaturalExpDecayLR(0.1, 0.9, 2, True)
    ),
    "adamweightdecay_dynamic": lambda nn, p: nn.AdamWeightDecay(_all(p), 0.05, weight_decay=_decay_cell(nn)),
    "adamax": lambda nn, p: nn.AdaMax(_all(p), 0.05),
    "adamax_options": lambda nn, p: nn.AdaMax(
        _groups(p, lr=0.01), 0.05, 0.8, 0.9, 1e-4, weight_decay=0.02, loss_scale=4.0
    ),
    "lamb": lambda nn, p: nn.Lamb(_all(p), 0.05),
    "lamb_decay": lambda nn, p: nn.Lamb(_all(p), 0.05, 0.8, 0.9, 1e-4, weight_decay=0.1),
    "lamb_groups": lambda nn, p: nn.Lamb(_groups(p, lr=0.01, weight_decay=0.05), [0.05, 0.1, 0.2, 0.1, 0.3, 0.2]),
    "lars": lambda nn, p: nn.LARS(nn.Momentum(_all(p), 0.1, 0.9, weight_decay=0.02, loss_scale=4.0)),
    "lars_clip": lambda nn, p: nn.LARS(nn.Momentum(_all(p), 0.1, 0.9, weight_decay=0.02), 1e-4, 0.5, use_clip=True),
    "lars_groups": lambda nn, p: nn.LARS(
        nn.SGD(_groups(p, lr=0.3, weight_decay=0.05), 0.1), coefficient=0.1, use_clip=True
    ),
    "adagrad": lambda nn, p: nn.Adagrad(_all(p), learning_rate=0.1),
    "adagrad_options": lambda nn, p: nn.Adagrad(_groups(p, lr=0.3), 0.5, 0.1, loss_scale=4.0, weight_decay=0.02),
    "adagrad_no_slots": lambda nn, p: nn.Adagrad(_all(p), 0.5, 0.1, update_slots=False),
    "adadelta": lambda nn, p: nn.Adadelta(_all(p)),
    "adadelta_options": lambda nn, p: nn.Adadelta(
        _groups(p, lr=0.3), 1.5, 0.7, 1e-3, loss_scale=4.0, weight_decay=0.02
    ),
    "rmsprop": lambda nn, p: nn.RMSProp(_all(p)),
    "rmsprop_momentum": lambda nn, p: nn.RMSProp(_all(p), 0.05, 0.8, 0.5, 1e-3, weight_decay=0.02, loss_scale=4.0),
    "rmsprop_centered": lambda nn, p: nn.RMSProp(_all(p), 0.05, 0.8, 0.5, 1e-3, centered=True),
    "rmsprop_groups": lambda nn, p: nn.RMSProp(_groups(p, lr=nn.WarmUpLR(0.3, 3), weight_decay=0.02), 0.1),
    "ftrl": lambda nn, p: nn.FTRL(_all(p), learning_rate=0.1),
    "ftrl_options": lambda nn, p: nn.FTRL(_all(p), 0.5, 0.1, -0.4, l1=0.05, l2=0.02, loss_scale=4.0, weight_decay=0.02),
    "proximaladagrad": lambda nn, p: nn.ProximalAdagrad(_all(p), learning_rate=0.1),
    "proximaladagrad_options": lambda nn, p: nn.ProximalAdagrad(
        _groups(p, lr=0.3), 0.5, 0.1, l1=0.05, l2=0.02, loss_scale=4.0, weight_decay=0.02
    ),
    "asgd": lambda nn, p: nn.ASGD(_all(p), 0.1),
    "asgd_options": lambda nn, p: nn.ASGD(_groups(p, lr=0.3), 0.1, lambd=0.01, alpha=0.5, t0=2.0, weight_decay=0.02),
    "rprop": lambda nn, p: nn.Rprop(_all(p)),
    "rprop_options": lambda nn, p: nn.Rprop(_groups(p, lr=0.3), 0.1, (0.4, 1.3), (0.05, 0.2), weight_decay=0.02),
    "adafactor": lambda nn, p: nn.AdaFactor(_all(p)),
    "adafactor_options": lambda nn, p: nn.AdaFactor(
        _all(p), 0.1, (1e-20, 1e-2), 0.5, 0.7, 0.8, 0.02, scale_parameter=False, relative_step=False
    ),
    "adafactor_plain": lambda nn, p: nn.AdaFactor(_all(p), beta1=None, warmup_init=True, weight_decay=0.1),
    "adafactor_schedule": lambda nn, p: nn.AdaFactor(
        _all(p), nn.ExponentialDecayLR(0.1, 0.9, 2), relative_step=False, scale_parameter=False
    ),
}

#: Those also tried with float16 parameters and gradients.
HALF = ("sgd_momentum", "momentum", "momentum_decay_scale", "adam", "adamweightdecay", "adagrad", "rmsprop", "lamb",
        "ftrl", "adafactor", "rprop", "asgd", "adadelta", "adamax", "proximaladagrad")  # fmt: skip

LAST_STEP = 9

RATES = {
    "ExponentialDecayLR": lambda nn: nn.ExponentialDecayLR(0.1, 0.9, 4),
    "ExponentialDecayLR_stair": lambda nn: nn.ExponentialDecayLR(0.1, 0.9, 4, True),
    "NaturalExpDecayLR": lambda nn: nn.NaturalExpDecayLR(0.1, 0.3, 4),
    "NaturalExpDecayLR_stair": lambda nn: nn.NaturalExpDecayLR(0.1, 0.3, 4, True),
    "InverseDecayLR": lambda nn: nn.InverseDecayLR(0.1, 0.5, 4),
    "InverseDecayLR_stair": lambda nn: nn.InverseDecayLR(0.1, 0.5, 4, True),
    "CosineDecayLR": lambda nn: nn.CosineDecayLR(0.01, 0.1, 6),
    "PolynomialDecayLR": lambda nn: nn.PolynomialDecayLR(0.1, 0.01, 6, 0.5),
    "PolynomialDecayLR_update": lambda nn: nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5, True),
    "WarmUpLR": lambda nn: nn.WarmUpLR(0.1, 5),
    "exponential_decay_lr": lambda nn: nn.exponential_decay_lr(0.1, 0.9, 9, 2, 2),
    "exponential_decay_lr_stair": lambda nn: nn.exponential_decay_lr(0.1, 0.9, 9, 2, 2, True),
    "natural_exp_decay_lr": lambda nn: nn.natural_exp_decay_lr(0.1, 0.9, 9, 2, 2),
    "natural_exp_decay_lr_stair": lambda nn: nn.natural_exp_decay_lr(0.1, 0.9, 9, 2, 2, True),
    "inverse_decay_lr": lambda nn: nn.inverse_decay_lr(0.1, 0.5, 9, 1, 2),
    "inverse_decay_lr_stair": lambda nn: nn.inverse_decay_lr(0.1, 0.5, 9, 1, 2, True),
    "cosine_decay_lr": lambda nn: nn.cosine_decay_lr(0.01, 0.1, 9, 2, 3),
    "polynomial_decay_lr": lambda nn: nn.polynomial_decay_lr(0.1, 0.01, 9, 2, 2, 0.5),
    "polynomial_decay_lr_update": lambda nn: nn.polynomial_decay_lr(0.1, 0.01, 9, 2, 2, 0.5, True),
    "warmup_lr": lambda nn: nn.warmup_lr(0.1, 9, 2, 3),
    "piecewise_constant_lr": lambda nn: nn.piecewise_constant_lr([2, 5, 9], [0.1, 0.05, 0.01]),
}  # fmt: skip
