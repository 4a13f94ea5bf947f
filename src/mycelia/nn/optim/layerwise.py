"""Optimizers that give each layer a rate of its own, by the sizes of its weights and of their update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError
from mycelia.nn.optim.adam import check_betas
from mycelia.nn.optim.groups import check_number
from mycelia.nn.optim.optimizer import Optimizer
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.tensor import check_bool


def _norm(x: Tensor) -> Any:
    return ops.sqrt((x * x).sum())


class Lamb(Optimizer):
    """LAMB (You et al., 2020): Adam's update scaled per layer by ``|p| / |update|``.

    With ``m`` and ``v`` as in Adam, without their bias, ``update = m / (sqrt(v) + eps) + weight_decay * p`` and
    ``p = p - lr * |p| / |update| * update``; the ratio is 1 where one of the norms is 0.

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        learning_rate: number, Tensor, sequence or schedule.
        beta1: between 0 and 1, exclusive.
        beta2: between 0 and 1, exclusive.
        eps: added to the denominator, above 0.
        weight_decay: decoupled decay.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([3.0, 4.0]), name="w")
    >>> _ = ms.nn.Lamb([w], learning_rate=0.1)((ms.Tensor([1.0, 1.0]),))
    >>> print(w.asnumpy().round(3))
    [2.646 3.646]
    """

    def __init__(
        self, params: Any, learning_rate: Any, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay)
        self.beta1, self.beta2, self.eps = check_betas("Lamb", beta1, beta2, eps)
        self.moments1 = self.state("lamb_m")
        self.moments2 = self.state("lamb_v")

    def construct(self, gradients: Any) -> Any:
        self.check_gradients(gradients)
        gradients = self.gradients_centralization(gradients)
        decays, rates = self.decays(), self.rates()
        self.next_step()
        t = self.global_step.reshape(()).astype(dt.float32)
        unbias1, unbias2 = 1.0 / (1.0 - ops.pow(self.beta1, t)), 1.0 / (1.0 - ops.pow(self.beta2, t))
        rows = zip(self.parameters, self.moments1, self.moments2, gradients, decays, rates, strict=True)
        for param, moment1, moment2, g, decay, lr in rows:
            p, m, v, g = self.wide(param, moment1, moment2, g)
            m = m * self.beta1 + g * (1.0 - self.beta1)
            v = v * self.beta2 + g * g * (1.0 - self.beta2)
            self.put(moment1, m)
            self.put(moment2, v)
            update = m * unbias1 / (ops.sqrt(v * unbias2) + self.eps)
            if decay is not None:
                update = update + p * decay
            p_norm, update_norm = _norm(p), _norm(update)
            ratio = ops.where(ops.logical_and(p_norm > 0, update_norm > 0), p_norm / update_norm, 1.0)
            self.put(param, p - update * (ratio * lr))
        return True


class LARS(Optimizer):
    """Layer-wise adaptive rate scaling (You et al., 2017) around another optimizer.

    The gradient of a scaled parameter becomes ``r * (g + weight_decay * p)`` with
    ``r = coefficient * |p| / (|g| + weight_decay * |p| + epsilon)``; the wrapped optimizer takes it with its own rate
    and without weight decay. Parameters that ``lars_filter`` leaves out keep their gradient and are not decayed.

    Args:
        optimizer: the optimizer that updates.
        epsilon: added to the denominator.
        coefficient: trust coefficient.
        use_clip: take ``min(r / lr, 1)`` for ``r``, so that no rate exceeds the global one.
        lars_filter: which parameters are scaled; by default all but LayerNorm's and biases.

    Raises:
        ArgumentTypeError: ``optimizer`` is none, or another argument has the wrong type.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([3.0, 4.0]), name="w")
    >>> optimizer = ms.nn.LARS(ms.nn.SGD([w], learning_rate=1.0), coefficient=0.1)
    >>> _ = optimizer((ms.Tensor([0.3, 0.4]),))
    >>> print(w.asnumpy().round(3))
    [2.7 3.6]
    """

    def __init__(
        self, optimizer: Optimizer, epsilon: float = 1e-5, coefficient: float = 1e-3, use_clip: bool = False,
        lars_filter: Callable[[Parameter], bool] = lambda p: "LayerNorm" not in p.name and "bias" not in p.name,
    ) -> None:  # fmt: skip
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError("LARS", "optimizer", got=type(optimizer).__name__, takes="an Optimizer")
        epsilon = check_number("LARS", "epsilon", epsilon)
        coefficient = check_number("LARS", "coefficient", coefficient)
        check_bool("LARS", "use_clip", use_clip)
        super().__init__(0.0, [Parameter(Tensor(0.0), "fake_param", requires_grad=False)])
        self.epsilon, self.coefficient, self.use_clip = epsilon, coefficient, use_clip
        self.opt = optimizer
        self.global_step = optimizer.global_step
        self.learning_rate = Parameter(Tensor(0.0, dt.float32), "fake_lr", requires_grad=False)
        self.parameters = self._parameters = optimizer.parameters
        self.param_length = optimizer.param_length
        self.loss_scale, self.need_scale = optimizer.loss_scale, optimizer.need_scale
        self.reciprocal_scale, self.is_group = optimizer.reciprocal_scale, optimizer.is_group
        self.lars_flag = tuple([bool(lars_filter(p)) for p in self.parameters])
        # the decay and the loss scale move here
        self._decays, self.decay_flags = optimizer._decays, optimizer.decay_flags
        optimizer._decays = [None] * optimizer.param_length
        optimizer.exec_weight_decay = optimizer.need_scale = False

    def construct(self, gradients: Any) -> Any:
        self.check_gradients(gradients)
        gradients = self.scale_grad(gradients)
        rates = self.opt.rates() if self.use_clip else [None] * self.param_length
        out = []
        for p, g, d, lr, scaled in zip(self.parameters, gradients, self.decays(), rates, self.lars_flag, strict=True):
            out.append(self._scaled(p, g, d, lr) if scaled else g)
        return self.opt(tuple(out))

    def _scaled(self, param: Parameter, gradient: Tensor, decay: Any, lr: Any) -> Tensor:
        p, g = self.wide(param, gradient)
        p_norm, g_norm = _norm(p), _norm(g)
        size = g_norm
        if decay is not None:
            decay = decay * (1.0 / self.loss_scale)
            size, g = g_norm + p_norm * decay, g + p * decay
        ratio = p_norm * self.coefficient / (size + self.epsilon)
        ratio = ops.where(ops.logical_and(p_norm > 0, g_norm > 0), ratio, 1.0)
        return g * (ops.minimum(ratio / lr, 1.0) if self.use_clip else ratio)
