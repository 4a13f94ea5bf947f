"""SGD, averaged SGD, Rprop, RMSprop, Adagrad and Adadelta, with options in ``param_groups``."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core.errors import ArgumentValueError
from mycelia.nn.optim.grouped.optimizer import Group, Optimizer, flags, not_negative, number, pair
from mycelia.tensor.tensor import check_bool


class SGD(Optimizer):
    """Stochastic gradient descent with momentum: ``v = momentum * v + (1 - dampening) * g; p = p - lr * v``.

    The first step takes ``v = g``. With ``nesterov``: ``p = p - lr * (g + momentum * v)``.

    Args:
        params: Parameters or groups.
        lr: at least 0.
        momentum: at least 0.
        dampening: at least 0; 0 with ``nesterov``.
        weight_decay: decay added to the gradients.
        nesterov: look ahead; needs momentum.
        maximize: go up instead of down.

    >>> import mycelia as ms
    >>> from mycelia.experimental import optim
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = optim.SGD([w], lr=0.5)((ms.Tensor([1.0, -1.0]),))
    >>> print(w.asnumpy())
    [0.5 2.5]
    """

    states = (("accum", "accum", 0.0), ("stat", "stat", 1.0))
    counter = None

    def __init__(
        self, params: Any, lr: Any, momentum: float = 0, dampening: float = 0, weight_decay: float = 0.0,
        nesterov: bool = False, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, {**options, "nesterov": nesterov, "maximize": maximize})

    def check_options(self, group: Group) -> None:
        not_negative(group, self._where, "momentum", "dampening")
        flags(group, self._where, "nesterov", "maximize")
        if group["nesterov"] and (group["momentum"] == 0 or group["dampening"] != 0):
            raise ArgumentValueError(
                self._where, "nesterov",
                got=f"True with momentum={group['momentum']} and dampening={group['dampening']}",
                takes="a momentum above 0 and no dampening",
            )  # fmt: skip

    def construct(self, gradients: Any) -> Any:
        for i, param, p, g, lr, group in self.rows(gradients):
            momentum = float(group["momentum"])
            if momentum:
                (v,) = self.wide(self.accum[i])
                v = ops.where(self.stat[i] > 0, g, v * momentum + g * (1.0 - group["dampening"]))
                self.put(self.accum[i], v)
                self.put(self.stat[i], ops.zeros_like(self.stat[i]))
                g = g + v * momentum if group["nesterov"] else v
            self.put(param, p - g * lr)
        return True


class ASGD(Optimizer):
    """Averaged SGD (Polyak and Juditsky, 1992): ``p = p (1 - lambd eta) - eta g``; ``ax`` is the mean of ``p``.

    Args:
        params: Parameters or groups.
        lr: at least 0.
        lambd: decay term.
        alpha: power of the decay of ``eta``.
        t0: step at which averaging starts.
        weight_decay: decay added to the gradients.
        maximize: go up instead of down.

    >>> import mycelia as ms
    >>> from mycelia.experimental import optim
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = optim.ASGD([w], lr=0.5, lambd=0.0)((ms.Tensor([1.0, -1.0]),))
    >>> print(w.asnumpy())
    [0.5 2.5]
    """

    states = (("mu", "mu_", 1.0), ("eta", "eta_", 0.0), ("ax", "ax", 0.0))

    def __init__(
        self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0.0, maximize: bool = False,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        super().__init__(params, {**options, "maximize": maximize})

    def check_options(self, group: Group) -> None:
        for name in ("lambd", "alpha", "t0"):
            number(self._where, name, group[name], lambda v: True, "a number")
        flags(group, self._where, "maximize")

    def construct(self, gradients: Any) -> Any:
        rows = self.rows(gradients)
        t = self.count()
        for i, param, p, g, lr, group in rows:
            lambd, mu = float(group["lambd"]), self.mu[i]
            (average,) = self.wide(self.ax[i])
            eta = ops.where(t == 1.0, lr, self.eta[i])
            p = p * (1.0 - eta * lambd) - eta * g
            self.put(param, p)
            self.put(self.ax[i], ops.where(mu != 1.0, average + (p - average) * mu, p))
            self.put(self.eta[i], lr / ops.pow(1.0 + lr * t * lambd, float(group["alpha"])))
            self.put(mu, 1.0 / ops.maximum(t - float(group["t0"]), 1.0))
        return True


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993): steps by the signs of gradients alone.

    Args:
        params: Parameters or groups.
        lr: first step size, at least 0.
        etas: factors of the step size where the sign changes (below 1) and where it stays (above 1).
        step_sizes: the smallest and the largest step size.
        maximize: go up instead of down.

    >>> import mycelia as ms
    >>> from mycelia.experimental import optim
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = optim.Rprop([w], lr=0.5)((ms.Tensor([0.1, -3.0]),))
    >>> print(w.asnumpy())
    [0.5 2.5]
    """

    states = (("prev", "prev", 0.0), ("step_size", "step_size", 0.0))

    def __init__(
        self, params: Any, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize})

    def check_options(self, group: Group) -> None:
        minus, plus = pair(group, self._where, "etas")
        number(self._where, "etas[0]", minus, lambda v: 0 < v < 1, "a number between 0 and 1")
        number(self._where, "etas[1]", plus, lambda v: v > 1, "a number above 1")
        pair(group, self._where, "step_sizes")
        flags(group, self._where, "maximize")

    def construct(self, gradients: Any) -> Any:
        rows = self.rows(gradients)
        t = self.count()
        for i, param, p, g, lr, group in rows:
            (minus, plus), (least, most) = group["etas"], group["step_sizes"]
            before, size = self.wide(self.prev[i], self.step_size[i])
            turn = g * before
            size = ops.where(t == 1.0, lr, size) * ops.where(turn > 0, plus, ops.where(turn < 0, minus, 1.0))
            size = size.clip(least, most)
            g = ops.where(turn < 0, 0.0, g)
            self.put(self.step_size[i], size)
            self.put(self.prev[i], g)
            self.put(param, p - ops.sign(g) * size)
        return True


class RMSprop(Optimizer):
    """RMSprop (Tieleman and Hinton, 2012): ``s = alpha s + (1 - alpha) g**2``, ``p = p - lr * g / (sqrt(s) + eps)``.

    Args:
        params: Parameters or groups.
        lr: at least 0.
        alpha: rate of ``s``.
        eps: added to the denominator.
        weight_decay: decay added to the gradients.
        momentum: keep a momentum of the scaled gradients.
        centered: subtract from ``s`` the square of the mean gradient (Graves, 2013).
        maximize: go up instead of down.

    >>> import mycelia as ms
    >>> from mycelia.experimental import optim
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = optim.RMSprop([w], lr=0.1, alpha=0.75)((ms.Tensor([1.0, -1.0]),))
    >>> print(w.asnumpy().round(4))
    [0.8 2.2]
    """

    states = (("mean_grad", "mean_grad", 0.0), ("mean_square", "mean_square", 0.0), ("moment", "moment", 0.0))
    counter = None

    def __init__(
        self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0,
        momentum: float = 0.0, centered: bool = False, maximize: bool = False,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(params, {**options, "centered": centered, "maximize": maximize})

    def check_options(self, group: Group) -> None:
        not_negative(group, self._where, "alpha", "eps", "momentum")
        flags(group, self._where, "centered", "maximize")

    def construct(self, gradients: Any) -> Any:
        for i, param, p, g, lr, group in self.rows(gradients):
            alpha, momentum = float(group["alpha"]), float(group["momentum"])
            mean, s, m = self.wide(self.mean_grad[i], self.mean_square[i], self.moment[i])
            s = s * alpha + g * g * (1.0 - alpha)
            self.put(self.mean_square[i], s)
            if group["centered"]:
                mean = mean * alpha + g * (1.0 - alpha)
                self.put(self.mean_grad[i], mean)
                s = s - mean * mean
            step = g / (ops.sqrt(s) + group["eps"])
            if momentum > 0:
                step = m * momentum + step
                self.put(self.moment[i], step)
            self.put(param, p - step * lr)
        return True


class Adagrad(Optimizer):
    """Adagrad (Duchi et al., 2011): ``a = a + g**2``, ``p = p - lr / (1 + t lr_decay) * g / (sqrt(a) + eps)``.

    Args:
        params: Parameters or groups.
        lr: at least 0.
        lr_decay: at least 0.
        weight_decay: decay added to the gradients.
        initial_accumulator_value: first value of ``a``, at least 0.
        eps: added to the denominator.
        maximize: go up instead of down.

    >>> import mycelia as ms
    >>> from mycelia.experimental import optim
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = optim.Adagrad([w], lr=0.1)((ms.Tensor([0.5, -3.0]),))
    >>> print(w.asnumpy().round(4))
    [0.9 2.1]
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0, eps: float = 1e-10, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        number(
            "Adagrad",
            "initial_accumulator_value",
            initial_accumulator_value,
            lambda v: v >= 0,
            "a number of at least 0",
        )
        self.__dict__["states"] = (("accum", "accum", initial_accumulator_value),)
        options = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        super().__init__(
            params, {**options, "initial_accumulator_value": initial_accumulator_value, "maximize": maximize}
        )

    def check_options(self, group: Group) -> None:
        not_negative(group, self._where, "lr_decay", "eps")
        flags(group, self._where, "maximize")

    def construct(self, gradients: Any) -> Any:
        rows = self.rows(gradients)
        t = self.count()
        for i, param, p, g, lr, group in rows:
            (a,) = self.wide(self.accum[i])
            a = a + g * g
            self.put(self.accum[i], a)
            rate = lr / (1.0 + (t - 1.0) * float(group["lr_decay"]))
            self.put(param, p - g * rate / (ops.sqrt(a) + group["eps"]))
        return True


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012): steps scaled by the ratio of the running sizes of updates and gradients.

    Args:
        params: Parameters or groups.
        lr: at least 0.
        rho: rate of the running sizes, from 0 to 1.
        eps: added under the roots.
        weight_decay: decay added to the gradients.
        maximize: go up instead of down.

    >>> import mycelia as ms
    >>> from mycelia.experimental import optim
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = optim.Adadelta([w], eps=1.0)((ms.Tensor([0.5, -3.0]),))
    >>> print(w.asnumpy().round(4))
    [0.5061 4.1764]
    """

    states = (("accum", "accum", 0.0), ("accum_update", "accum_update", 0.0))
    counter = None

    def __init__(
        self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0, *,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        number(self._where, "rho", group["rho"], lambda v: 0 <= v <= 1, "a number from 0 to 1")
        not_negative(group, self._where, "eps")
        check_bool(self._where, "maximize", group["maximize"])

    def construct(self, gradients: Any) -> Any:
        for i, param, p, g, lr, group in self.rows(gradients):
            rho, eps = float(group["rho"]), float(group["eps"])
            a, d = self.wide(self.accum[i], self.accum_update[i])
            a = a * rho + g * g * (1.0 - rho)
            update = ops.sqrt((d + eps) / (a + eps)) * g
            self.put(self.accum[i], a)
            self.put(self.accum_update[i], d * rho + update * update * (1.0 - rho))
            self.put(param, p - update * lr)
        return True
