"""What an operator is: one :class:`Primitive` with every rule that any part of the system asks for.

``infer(*types, **attrs)`` gives the output type or types, or a located error. ``lower(*arrays, **attrs)``
computes it with ``jax.lax``. ``vjp(ct, *inputs, out, **attrs)`` is written with operators and gives one
cotangent for each input: a Tensor, None where there is none, or a callable without arguments that makes
it, called only if that input needs one. For an operator of several outputs ``ct`` and ``out`` are tuples,
and a cotangent that is zero is None.

Attributes are hashable Python values in canonical form (axes non-negative, tuples not lists): they are
part of the key under which an operator is compiled. Rules see only what is canonical; the public
functions of ``ops`` accept what users write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mycelia.ir.types import Types

#: Effects an operator may have besides its value; nodes with effects are never removed or merged.
IO = "io"
#: Other ranks take part; whoever runs it has to compile for all of them (:class:`mycelia.core.cluster.Together`).
COLLECTIVE = "collective"
#: Ranks' programs differ in it, so that its order among other collectives has to be kept (:func:`evaluate`).
OWN_PART = "own part"


class Primitive:
    """An operator and its rules.

    Args:
        name: unique, in snake case.
        infer: output type(s) of input types and attributes.
        lower: the computation in ``jax.lax``.
        vjp: the vector-Jacobian product written with operators; None for operators that have none.
        differentiable: False for operators whose output does not depend on the inputs differentiably.
        multi: whether there are several outputs (then infer, lower and the vjp's ``ct``/``out`` are tuples).
        derived_vjp: the vjp comes from ``jax.vjp`` of the lowering (rare operators only).
        effects: effects besides the value, such as ``IO``.
        shard: the dimension names of inputs and outputs (``"...ik,...kj->...ij"``), read by the planner.
        onnx: the ONNX operator name, or a function that writes the nodes.
        samples: sample inputs that drive the generated tests.

    Attributes:
        kernel: a faster way to compute it on the device in use, set by whoever has one (``native``). It takes what
            ``lower`` takes, and gives ``NotImplemented`` for types or attributes that it does not serve. ``lower``
            is what it has to agree with.
    """

    __slots__ = (
        "derived_vjp", "differentiable", "eager", "effects", "infer", "kernel", "lower", "multi", "name", "onnx",
        "samples", "shard", "vjp",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        *,
        infer: Callable[..., Types],
        lower: Callable[..., Any],
        vjp: Callable[..., Sequence[Any]] | None = None,
        differentiable: bool = True,
        multi: bool = False,
        derived_vjp: bool = False,
        effects: Iterable[str] = (),
        shard: str | Callable[..., Any] | None = None,
        onnx: str | Callable[..., Any] | None = None,
        samples: Callable[[], Iterable[Any]] | Sequence[Any] = (),
    ) -> None:
        self.name = name
        self.infer = infer
        self.lower = lower
        self.kernel: Callable[..., Any] | None = None
        self.vjp = vjp
        self.differentiable = differentiable
        self.multi = multi
        self.derived_vjp = derived_vjp
        self.effects = frozenset(effects)
        self.shard = shard
        self.onnx = onnx
        self.samples = samples
        self.eager: dict[tuple[Any, ...], Callable[..., Any]] = {}
        if name in PRIMITIVES:
            raise ValueError(f"primitive '{name}' is declared twice")
        PRIMITIVES[name] = self

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (primitive_named, (self.name,))


#: All primitives by name.
PRIMITIVES: dict[str, Primitive] = {}


def primitive_named(name: str) -> Primitive:
    """The primitive called ``name``; KeyError if there is none."""
    return PRIMITIVES[name]
