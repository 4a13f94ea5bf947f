"""Class forms of the optimizer steps: each reads parameters and a gradient and overwrites the parameters.

A step is a formula from old values to new ones. It is computed in the dtype of the widest operand, at least
float32, everything is checked before anything is written, and each parameter keeps its dtype. The sparse forms
take the gradient of some rows: rows given twice are added, and what a row is not given for stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ShapeError
from mycelia.core.promotion import result_type
from mycelia.ops.elementary import exp, sqrt
from mycelia.ops.extremum import maximum, minimum
from mycelia.ops.indexing import as_index, check_range
from mycelia.ops.legacy.form import ClassForm, declared, form
from mycelia.ops.operands import as_tensor, cast
from mycelia.ops.power import pow as pow_
from mycelia.ops.rounding import abs as abs_, sign
from mycelia.ops.selection import where
from mycelia.ops.shape import broadcast_to, filled, reshape
from mycelia.ops.tensor_updates import scatter_nd, tensor_scatter_update
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import set_value

__all__ = [
    "SGD", "Adam", "AdamNoUpdateParam", "AdamWeightDecay", "ApplyAdaMax", "ApplyAdadelta", "ApplyAdagrad",
    "ApplyAdagradDA", "ApplyAdagradV2", "ApplyAdamWithAmsgrad", "ApplyAdamWithAmsgradV2", "ApplyAddSign",
    "ApplyCenteredRMSProp", "ApplyFtrl", "ApplyGradientDescent", "ApplyKerasMomentum", "ApplyMomentum",
    "ApplyPowerSign", "ApplyProximalAdagrad", "ApplyProximalGradientDescent", "ApplyRMSProp", "FusedSparseAdam",
    "FusedSparseFtrl", "FusedSparseLazyAdam", "FusedSparseProximalAdagrad", "LARSUpdate", "SparseApplyAdadelta",
    "SparseApplyAdagrad", "SparseApplyAdagradV2", "SparseApplyFtrl", "SparseApplyFtrlV2",
    "SparseApplyProximalAdagrad", "SparseApplyRMSProp",
]  # fmt: skip

Step = Callable[..., Any]


def _number(value: Any, name: str, where_: str, dtype: dt.DType) -> Any:
    """A coefficient: a Python number, or a tensor of one element without axes."""
    if isinstance(value, (int, float)):
        return value
    t = as_tensor(value, where_, name)
    if t.size != 1:
        raise ShapeError(where_, name, got=f"shape {t.shape}", takes="one number")
    return cast(reshape(t, ()), dtype)


def _written(where_: str, names: tuple[str, ...], targets: tuple[Any, ...], gradient: Any) -> tuple[Any, ...]:
    """The parameters and the gradient in the dtype that the step is computed in; refused if they do not fit."""
    for name, target in zip(names, targets, strict=True):
        if not isinstance(target, Tensor):
            raise ArgumentTypeError(where_, name, got=type(target).__name__, takes="a Parameter, which is overwritten")
        if target.shape != targets[0].shape:
            raise ShapeError(
                where_, name, got=f"shape {target.shape}", takes=f"the shape of the first, {targets[0].shape}"
            )
    g = as_tensor(gradient, where_, "gradient")
    dtype = result_type([t.dtype for t in targets] + [g.dtype], where_)
    wide = dtype if dtype in (dt.float64, *dt.COMPLEX) else dt.float32
    return ([cast(t, wide) for t in targets], cast(g, wide), wide)


def _write(targets: tuple[Any, ...], new: tuple[Any, ...]) -> Any:
    made = [broadcast_to(cast(n, t.dtype), t.shape) for t, n in zip(targets, new, strict=True)]
    for target, value in zip(targets, made, strict=True):
        set_value(target, value)
    return targets


def _step_form(
    declaration: str, step: Step, names: tuple[str, ...], gradient: str, *, rows: str = "", first_only: bool = False
) -> type[ClassForm]:
    """The class of a step, whose inputs are some parameters, coefficients and the gradient in the order declared.

    Args:
        declaration: see :func:`form`.
        step: gets the parameters' values, the gradient, and by name the coefficients and what the constructor
            was given; returns the new values.
        names: the inputs that are overwritten.
        gradient: the input that is the gradient.
        rows: "" for a gradient of all; for one of the rows at the input ``indices``, "lazy" leaves the other
            rows as they are and "all" takes their gradient to be 0.
        first_only: the class returns the first parameter instead of a tuple.
    """
    name = declaration.partition("(")[0]

    def compute(*values: Any) -> Any:
        taken, call = declared(made)
        named = dict(zip(call.names + taken.names, values, strict=True))
        named.pop("use_locking", None)
        targets = tuple([named.pop(n) for n in names])
        old, g, wide = _written(name, names, targets, named.pop(gradient))
        touched = None
        if rows:
            g, touched = _spread(g, named.pop("indices"), old[0].shape, name, gradient)
        elif g.shape != old[0].shape:
            raise ShapeError(name, gradient, got=f"shape {g.shape}", takes=f"that of '{names[0]}', {old[0].shape}")
        coefficients = {n: _number(v, n, name, wide) if n in call.names else v for n, v in named.items()}
        new = step(*old, g, **coefficients)
        new = new if isinstance(new, tuple) else (new,)
        if rows == "lazy":
            new = tuple([where(touched, n, o) for n, o in zip(new, old, strict=True)])
        written = _write(targets, new)
        return written[0] if first_only else written

    made = form(declaration, compute)
    return made


def _spread(g: Any, indices: Any, shape: tuple[int, ...], where_: str, gradient: str) -> tuple[Tensor, Tensor]:
    """The gradient of some rows as one of all, and which rows they are."""
    places = as_index(indices, where_, "indices")
    if places.ndim != 1 or g.shape != (places.shape[0], *shape[1:]):
        raise ShapeError(
            where_, gradient, got=f"shape {g.shape} for indices of shape {places.shape}",
            takes=f"a row like those of the parameter, of shape {shape}, for each index",
        )  # fmt: skip
    check_range(places, shape[0], where_, "indices")
    at = reshape(places, (-1, 1))
    touched = tensor_scatter_update(filled(False, dt.bool_, shape[:1]), at, filled(True, dt.bool_, places.shape))
    return scatter_nd(at, g, shape), reshape(touched, (-1, *(1,) * (len(shape) - 1)))


def _polar(x: Any) -> tuple[Any, Any]:
    """Sign and absolute value."""
    return sign(x), abs_(x)


# Adam and its kin


def _adam(
    var: Any, m: Any, v: Any, g: Any, *, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
    epsilon: Any, use_nesterov: bool = False,
) -> Any:  # fmt: skip
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    rate = lr * _root(1 - beta2_power) / (1 - beta1_power)
    ahead = beta1 * m + (1 - beta1) * g if use_nesterov else m
    return var - rate * ahead / (sqrt(v) + epsilon), m, v


def _root(x: Any) -> Any:
    return sqrt(x) if isinstance(x, Tensor) else float(np.sqrt(x))


def _amsgrad(
    var: Any, m: Any, v: Any, vhat: Any, g: Any, *, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any,
    beta2: Any, epsilon: Any,
) -> Any:  # fmt: skip
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    vhat = maximum(vhat, v)
    rate = lr * _root(1 - beta2_power) / (1 - beta1_power)
    return var - rate * m / (sqrt(vhat) + epsilon), m, v, vhat


def _adam_decay(var: Any, m: Any, v: Any, g: Any, *, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any) -> Any:
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    return var - lr * (m / (sqrt(v) + epsilon) + decay * var), m, v


def _adamax(
    var: Any, m: Any, v: Any, g: Any, *, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any
) -> Any:
    m, v = beta1 * m + (1 - beta1) * g, maximum(beta2 * v, abs_(g))
    return var - lr / (1 - beta1_power) * m / (v + epsilon), m, v


def _adam_change(
    m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, gradient: Any,
    use_locking: bool, use_nesterov: bool,
) -> Tensor:  # fmt: skip
    """Adam's step as what is to be added to the parameter; only the moments are written."""
    where_ = "AdamNoUpdateParam"
    old, g, wide = _written(where_, ("m", "v"), (m, v), gradient)
    names = ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon")
    given = zip(names, (beta1_power, beta2_power, lr, beta1, beta2, epsilon), strict=True)
    coefficients = {n: _number(value, n, where_, wide) for n, value in given}
    change, new_m, new_v = _adam(0.0, old[0], old[1], g, use_nesterov=use_nesterov, **coefficients)
    _write((m, v), (new_m, new_v))
    return cast(change, as_tensor(gradient, where_).dtype)


_MOMENTS = ("var", "m", "v")
_ADAM = "(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient"
_FLAGS = "(use_locking=False, use_nesterov=False)"
Adam = _step_form(f"Adam{_FLAGS}{_ADAM})", _adam, _MOMENTS, "gradient")
AdamNoUpdateParam = form(
    "AdamNoUpdateParam(use_locking=False, use_nesterov=False)"
    "(m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient)",
    _adam_change,
)
AdamWeightDecay = _step_form(
    "AdamWeightDecay(use_locking=False)(var, m, v, lr, beta1, beta2, epsilon, decay, gradient)",
    _adam_decay,
    _MOMENTS,
    "gradient",
)
ApplyAdaMax = _step_form(
    "ApplyAdaMax()(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad)", _adamax, _MOMENTS, "grad"
)
ApplyAdamWithAmsgrad = _step_form(
    "ApplyAdamWithAmsgrad(beta1=0.9, beta2=0.999, epsilon=1e-08, use_locking=False)"
    "(var, m, v, vhat, beta1_power, beta2_power, lr, grad)",
    _amsgrad,
    ("var", "m", "v", "vhat"),
    "grad",
)
ApplyAdamWithAmsgradV2 = _step_form(
    "ApplyAdamWithAmsgradV2(use_locking=False)"
    "(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)",
    _amsgrad,
    ("var", "m", "v", "vhat"),
    "grad",
)
FusedSparseAdam = _step_form(f"FusedSparseAdam{_FLAGS}{_ADAM}, indices)", _adam, _MOMENTS, "gradient", rows="all")
FusedSparseLazyAdam = _step_form(
    f"FusedSparseLazyAdam{_FLAGS}{_ADAM}, indices)", _adam, _MOMENTS, "gradient", rows="lazy"
)

# momentum


def _momentum(
    variable: Any, accumulation: Any, g: Any, *, learning_rate: Any, momentum: Any, use_nesterov: bool = False,
    gradient_scale: float = 1.0,
) -> Any:  # fmt: skip
    g = g * gradient_scale
    accumulation = accumulation * momentum + g
    ahead = g + accumulation * momentum if use_nesterov else accumulation
    return variable - learning_rate * ahead, accumulation


def _keras_momentum(var: Any, accum: Any, g: Any, *, lr: Any, momentum: Any, use_nesterov: bool) -> Any:
    accum = accum * momentum - g * lr
    return var + (accum * momentum - g * lr if use_nesterov else accum), accum


def _sgd(
    parameters: Any, accum: Any, stat: Any, g: Any, *, learning_rate: Any, momentum: Any, dampening: float,
    weight_decay: float, nesterov: bool,
) -> Any:  # fmt: skip
    """Where ``stat`` is above 0, that is in the first step, the velocity is the gradient itself."""
    g = g + weight_decay * parameters
    accum = where(stat > 0, g, accum * momentum + (1 - dampening) * g)
    return parameters - learning_rate * (g + momentum * accum if nesterov else accum), accum, stat * 0


_PAIR = ("variable", "accumulation")
ApplyMomentum = _step_form(
    "ApplyMomentum(use_nesterov=False, use_locking=False, gradient_scale=1.0)"
    "(variable, accumulation, learning_rate, gradient, momentum)",
    _momentum,
    _PAIR,
    "gradient",
    first_only=True,
)
ApplyKerasMomentum = _step_form(
    "ApplyKerasMomentum(use_locking=False, use_nesterov=False)(var, accum, lr, grad, momentum)",
    _keras_momentum,
    ("var", "accum"),
    "grad",
)
SGD = _step_form(
    "SGD(dampening=0.0, weight_decay=0.0, nesterov=False)(parameters, gradient, learning_rate, accum, momentum, stat)",
    _sgd,
    ("parameters", "accum", "stat"),
    "gradient",
    first_only=True,
)

# squares of gradients


def _rmsprop(
    var: Any, mean_square: Any, moment: Any, g: Any, *, learning_rate: Any, decay: Any, momentum: Any, epsilon: Any
) -> Any:
    mean_square = decay * mean_square + (1 - decay) * g * g
    moment = momentum * moment + learning_rate * g / sqrt(mean_square + epsilon)
    return var - moment, mean_square, moment


def _centered_rmsprop(
    var: Any, mean_gradient: Any, mean_square: Any, moment: Any, g: Any, *, learning_rate: Any, decay: Any,
    momentum: Any, epsilon: Any,
) -> Any:  # fmt: skip
    mean_gradient = decay * mean_gradient + (1 - decay) * g
    mean_square = decay * mean_square + (1 - decay) * g * g
    spread = mean_square - mean_gradient * mean_gradient + epsilon
    moment = momentum * moment + learning_rate * g / sqrt(spread)
    return var - moment, mean_gradient, mean_square, moment


def _adagrad(var: Any, accum: Any, g: Any, *, lr: Any, epsilon: float = 0.0, update_slots: bool = True) -> Any:
    accum = accum + g * g if update_slots else accum
    return var - lr * g / (sqrt(accum) + epsilon), accum


def _adadelta(var: Any, accum: Any, accum_update: Any, g: Any, *, lr: Any, rho: Any, epsilon: Any) -> Any:
    accum = rho * accum + (1 - rho) * g * g
    update = sqrt(accum_update + epsilon) * g / sqrt(accum + epsilon)
    return var - lr * update, accum, rho * accum_update + (1 - rho) * update * update


def _adagrad_da(var: Any, total: Any, squares: Any, g: Any, *, lr: Any, l1: Any, l2: Any, global_step: Any) -> Any:
    """Dual averaging (Duchi, Hazan and Singer, 2011)."""
    total, squares = total + g, squares + g * g
    side, size = _polar(total)
    shrunk = side * maximum(size - l1 * global_step, 0)
    return 0 - lr * shrunk / (l2 * global_step * lr + sqrt(squares)), total, squares


_MOVING = ("var", "mean_square", "moment")
ApplyRMSProp = _step_form(
    "ApplyRMSProp(use_locking=False)(var, mean_square, moment, learning_rate, grad, decay, momentum, epsilon)",
    _rmsprop,
    _MOVING,
    "grad",
)
ApplyCenteredRMSProp = _step_form(
    "ApplyCenteredRMSProp(use_locking=False)"
    "(var, mean_gradient, mean_square, moment, grad, learning_rate, decay, momentum, epsilon)",
    _centered_rmsprop,
    ("var", "mean_gradient", "mean_square", "moment"),
    "grad",
)
_ACCUM = ("var", "accum")
ApplyAdagrad = _step_form("ApplyAdagrad(update_slots=True)(var, accum, lr, grad)", _adagrad, _ACCUM, "grad")
ApplyAdagradV2 = _step_form(
    "ApplyAdagradV2(epsilon, update_slots=True)(var, accum, lr, grad)", _adagrad, _ACCUM, "grad"
)
ApplyAdadelta = _step_form(
    "ApplyAdadelta()(var, accum, accum_update, lr, rho, epsilon, grad)",
    _adadelta,
    ("var", "accum", "accum_update"),
    "grad",
)
ApplyAdagradDA = _step_form(
    "ApplyAdagradDA(use_locking=False)"
    "(var, gradient_accumulator, gradient_squared_accumulator, grad, lr, l1, l2, global_step)",
    _adagrad_da,
    ("var", "gradient_accumulator", "gradient_squared_accumulator"),
    "grad",
)
SparseApplyAdagrad = _step_form(
    "SparseApplyAdagrad(lr, update_slots=True, use_locking=False)(var, accum, grad, indices)",
    _adagrad,
    _ACCUM,
    "grad",
    rows="lazy",
)
SparseApplyAdagradV2 = _step_form(
    "SparseApplyAdagradV2(lr, epsilon, use_locking=False, update_slots=True)(var, accum, grad, indices)",
    _adagrad,
    _ACCUM,
    "grad",
    rows="lazy",
)
SparseApplyAdadelta = _step_form(
    "SparseApplyAdadelta(epsilon, use_locking=False)(var, accum, accum_update, lr, rho, grad, indices)",
    _adadelta,
    ("var", "accum", "accum_update"),
    "grad",
    rows="lazy",
)
SparseApplyRMSProp = _step_form(
    "SparseApplyRMSProp(rho, momentum, epsilon, use_locking=False)(var, ms, mom, lr, grad, indices)",
    lambda var, ms, mom, g, *, lr, rho, momentum, epsilon: _rmsprop(
        var, ms, mom, g, learning_rate=lr, decay=rho, momentum=momentum, epsilon=epsilon
    ),
    ("var", "ms", "mom"),
    "grad",
    rows="lazy",
)

# proximal steps


def _ftrl(
    var: Any, accum: Any, linear: Any, g: Any, *, lr: Any, l1: Any, l2: Any, lr_power: Any, l2_shrinkage: Any = 0.0
) -> Any:
    """Follow the regularized leader (McMahan et al., "Ad click prediction: a view from the trenches", 2013)."""
    shrunk = g + 2 * l2_shrinkage * var
    total = accum + g * g
    power = pow_(total, -lr_power)
    linear = linear + shrunk - (power - pow_(accum, -lr_power)) / lr * var
    quadratic = power / lr + 2 * l2
    side, size = _polar(linear)
    new = (l1 * side - linear) / quadratic
    return where(size > l1, new, 0), total, linear


def _proximal(point: Any, rate: Any, l1: Any, l2: Any) -> Any:
    side, size = _polar(point)
    return side / (1 + rate * l2) * maximum(size - rate * l1, 0)


def _proximal_descent(var: Any, delta: Any, *, alpha: Any, l1: Any, l2: Any) -> Any:
    return _proximal(var - alpha * delta, alpha, l1, l2)


def _proximal_adagrad(var: Any, accum: Any, g: Any, *, lr: Any, l1: Any, l2: Any) -> Any:
    accum = accum + g * g
    rate = lr / sqrt(accum)
    return _proximal(var - rate * g, rate, l1, l2), accum


_LINEAR = ("var", "accum", "linear")
ApplyFtrl = _step_form(
    "ApplyFtrl(use_locking=False)(var, accum, linear, grad, lr, l1, l2, lr_power)",
    _ftrl,
    _LINEAR,
    "grad",
    first_only=True,
)
ApplyGradientDescent = _step_form(
    "ApplyGradientDescent()(var, alpha, delta)",
    lambda var, delta, *, alpha: var - alpha * delta,
    ("var",),
    "delta",
    first_only=True,
)
ApplyProximalGradientDescent = _step_form(
    "ApplyProximalGradientDescent()(var, alpha, l1, l2, delta)", _proximal_descent, ("var",), "delta", first_only=True
)
ApplyProximalAdagrad = _step_form(
    "ApplyProximalAdagrad(use_locking=False)(var, accum, lr, l1, l2, grad)", _proximal_adagrad, _ACCUM, "grad"
)
_ROWS = "(lr, l1, l2, lr_power, use_locking=False)(var, accum, linear, grad, indices)"
FusedSparseFtrl = _step_form(f"FusedSparseFtrl{_ROWS}", _ftrl, _LINEAR, "grad", rows="lazy")
SparseApplyFtrl = _step_form(f"SparseApplyFtrl{_ROWS}", _ftrl, _LINEAR, "grad", rows="lazy")
SparseApplyFtrlV2 = _step_form(
    "SparseApplyFtrlV2(lr, l1, l2, l2_shrinkage, lr_power, use_locking=False)(var, accum, linear, grad, indices)",
    _ftrl,
    _LINEAR,
    "grad",
    rows="lazy",
)
_PROXIMAL = "(use_locking=False)(var, accum, lr, l1, l2, grad, indices)"
FusedSparseProximalAdagrad = _step_form(
    f"FusedSparseProximalAdagrad{_PROXIMAL}", _proximal_adagrad, _ACCUM, "grad", rows="lazy"
)
SparseApplyProximalAdagrad = _step_form(
    f"SparseApplyProximalAdagrad{_PROXIMAL}", _proximal_adagrad, _ACCUM, "grad", rows="lazy"
)

# signs, and layers' rates


def _add_sign(var: Any, m: Any, g: Any, *, lr: Any, alpha: Any, sign_decay: Any, beta: Any) -> Any:
    m = beta * m + (1 - beta) * g
    return var - lr * (alpha + sign_decay * sign(g) * sign(m)) * g, m


def _power_sign(var: Any, m: Any, g: Any, *, lr: Any, logbase: Any, sign_decay: Any, beta: Any) -> Any:
    m = beta * m + (1 - beta) * g
    return var - lr * exp(logbase * sign_decay * sign(g) * sign(m)) * g, m


def _lars(
    weight: Any, gradient: Any, norm_weight: Any, norm_gradient: Any, weight_decay: Any, learning_rate: Any,
    epsilon: float, hyperpara: float, use_clip: bool,
) -> Tensor:  # fmt: skip
    """The gradient with decay, scaled by the ratio of the norms, whose squares are given (You et al., 2017)."""
    where_ = "LARSUpdate"
    w, g = as_tensor(weight, where_, "weight"), as_tensor(gradient, where_, "gradient")
    of_weight: Any = sqrt(_number(as_tensor(norm_weight, where_), "norm_weight", where_, w.dtype))
    of_gradient: Any = sqrt(_number(as_tensor(norm_gradient, where_), "norm_gradient", where_, w.dtype))
    decay, rate = (
        _number(v, n, where_, w.dtype) for v, n in ((weight_decay, "weight_decay"), (learning_rate, "learning_rate"))
    )
    ratio = hyperpara * of_weight / (of_gradient + decay * of_weight + epsilon)
    ratio = minimum(ratio / rate, 1) if use_clip else ratio
    made: Tensor = ratio * (g + decay * w)
    return made


ApplyAddSign = _step_form("ApplyAddSign()(var, m, lr, alpha, sign_decay, beta, grad)", _add_sign, ("var", "m"), "grad")
ApplyPowerSign = _step_form(
    "ApplyPowerSign()(var, m, lr, logbase, sign_decay, beta, grad)", _power_sign, ("var", "m"), "grad"
)
LARSUpdate = form(
    "LARSUpdate(epsilon=1e-05, hyperpara=0.001, use_clip=False)"
    "(weight, gradient, norm_weight, norm_gradient, weight_decay, learning_rate)",
    _lars,
)
