"""Every primitive, driven by the samples of its declaration.

Values against NumPy or SciPy (``references/``; torch where nothing else computes it), the staged graph
against the eager call, first and second derivatives against central differences, the tape against the
graph transformation, every dtype it claims, and every input it must refuse.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.autodiff.staging import run_staged
from tests.ops import references

import mycelia as ms
from mycelia.autodiff import grad
from mycelia.core import dtypes as dt
from mycelia.core.errors import MyceliaError
from mycelia.ir.primitive import COLLECTIVE, PRIMITIVES, Primitive
from mycelia.ops.declare import Bad, Sample
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

#: Primitives that hold graphs, belong to the graph itself or only have effects; they have tests of their own,
#: as have those in which ranks meet (``tests/parallel``).
STRUCTURAL = {
    "constant", "cond", "while_loop", "scan", "call", "custom_vjp_call", "barrier", "vmap", "print_line",
    "raise_unless", "part", "elementwise_many", "batch_norm_act", "batch_norm_act_grad", "conv_act",
    "conv_weight_grad_wide", "dense_relu", "matmul_wide", "conv_pack", "conv_packed", "matmul_pack", "matmul_packed",
    "matmul_int8", "conv_pool", "conv_pool_grad", "laid_out",
}  # fmt: skip


def _tables() -> tuple[dict[str, Callable[..., Any]], dict[str, Callable[..., Any]]]:
    plain: dict[str, Callable[..., Any]] = {}
    torch: dict[str, Callable[..., Any]] = {}
    for module in pkgutil.iter_modules(references.__path__):
        found = importlib.import_module(f"tests.ops.references.{module.name}")
        plain.update(getattr(found, "REFERENCES", {}))
        torch.update(getattr(found, "TORCH_REFERENCES", {}))
    return plain, torch


REFERENCES, TORCH_REFERENCES = _tables()
OPERATORS = {
    name: op
    for name, op in PRIMITIVES.items()
    if name not in STRUCTURAL and COLLECTIVE not in op.effects and not name.endswith(("_vjp", "_jvp"))
}


def samples_of(op: Primitive) -> list[Any]:
    return list(op.samples() if callable(op.samples) else op.samples)


def cases(
    kind: type, keep: Callable[[Primitive, Any], bool] = lambda op, s: True, most: int = 100, quick: int = 100
) -> Iterator[Any]:
    """Samples of every primitive, ``most`` of each; those after the first ``quick`` are marked slow."""
    for name, op in sorted(OPERATORS.items()):
        found = [s for s in samples_of(op) if isinstance(s, kind) and keep(op, s)]
        for i, sample in enumerate(found[:most]):
            marks = () if i < quick else (pytest.mark.slow,)
            yield pytest.param(name, sample, id=f"{name}-{i}", marks=marks)


def arrays(sample: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(x) for x in sample.inputs]


def run(op: Primitive, inputs: list[np.ndarray[Any, Any]], attrs: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    out = apply(op, *[Tensor(x) for x in inputs], **attrs)
    return [o.asnumpy() for o in (out if op.multi else (out,))]


def expected(
    table: dict[str, Callable[..., Any]], op: Primitive, inputs: list[Any], attrs: dict[str, Any]
) -> list[Any]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = table[op.name](*inputs, **attrs)
    return [np.asarray(o) for o in (out if op.multi else (out,))]


def agree(got: list[Any], want: list[Any], rtol: float, atol: float) -> None:
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape, f"shape {g.shape}, the reference has {w.shape}"
        if g.dtype.kind in "biu" and w.dtype.kind in "biu":
            np.testing.assert_array_equal(g, w)
        else:
            wide = np.complex128 if "c" in (g.dtype.kind, w.dtype.kind) else np.float64
            np.testing.assert_allclose(g.astype(wide), w.astype(wide), rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_every_rule_is_there(name):
    op = OPERATORS[name]
    assert any(isinstance(s, Sample) for s in samples_of(op)), "no samples"
    has_reference = name in REFERENCES or name in TORCH_REFERENCES
    assert has_reference, "no reference"
    assert op.vjp is not None or op.derived_vjp or not op.differentiable, "no derivative rule"
    if op.vjp is not None or op.derived_vjp:
        real = [s for s in samples_of(op) if isinstance(s, Sample) and s.grad]
        assert real or not op.differentiable, "no sample checks the derivative"


def test_no_reference_is_left_over():
    unknown = (set(REFERENCES) | set(TORCH_REFERENCES)) - set(PRIMITIVES)
    assert not unknown


@pytest.mark.parametrize(("name", "sample"), list(cases(Sample, lambda op, s: op.name in REFERENCES)))
def test_value(name, sample):
    op, inputs = OPERATORS[name], arrays(sample)
    agree(run(op, inputs, sample.attrs), expected(REFERENCES, op, inputs, sample.attrs), 1e-9, 1e-11)


@pytest.mark.torch
@pytest.mark.parametrize(("name", "sample"), list(cases(Sample, lambda op, s: op.name in TORCH_REFERENCES)))
def test_value_against_torch(name, sample):
    op, inputs = OPERATORS[name], arrays(sample)
    agree(run(op, inputs, sample.attrs), expected(TORCH_REFERENCES, op, inputs, sample.attrs), 1e-8, 1e-10)


@pytest.mark.parametrize(("name", "sample"), list(cases(Sample, most=3, quick=1)))
def test_staged_equals_eager(name, sample):
    op, inputs = OPERATORS[name], arrays(sample)
    staged = run_staged(lambda *xs: apply(op, *xs, **sample.attrs), *inputs)
    agree(staged, run(op, inputs, sample.attrs), 1e-12, 1e-14)


TOLERANCE = {dt.float16: (4e-3, 4e-3), dt.bfloat16: (3e-2, 3e-2), dt.float32: (2e-5, 2e-6), dt.complex64: (2e-5, 2e-6)}


def _converted(inputs: list[Any], dtype: dt.DType) -> list[Any] | None:
    """The floating inputs as ``dtype``, or None if a value does not fit it."""
    made = []
    for x in inputs:
        if x.dtype.kind != "f":
            made.append(x)
            continue
        if dtype.kind in "iu" and (
            not np.isfinite(x).all() or (dtype.kind == "u" and (x < 0).any()) or (np.abs(x) > 100).any()
        ):
            return None
        made.append(x.astype(dtype.np))
    return made


@pytest.mark.parametrize(
    ("name", "sample"),
    list(cases(Sample, lambda op, s: s.dtypes and any(np.asarray(x).dtype.kind == "f" for x in s.inputs), most=1)),
)
def test_every_dtype_it_claims(name, sample):
    op, inputs = OPERATORS[name], arrays(sample)
    claimed = 0
    for dtype in (dt.float32, dt.float16, dt.bfloat16, dt.int32, dt.uint8, dt.bool_, dt.complex64):
        converted = _converted(inputs, dtype)
        if converted is None:
            continue
        try:
            got = run(op, converted, sample.attrs)
        except MyceliaError:
            continue  # a dtype it does not claim
        claimed += 1
        if name in REFERENCES and dtype.kind in "fiu":
            wide = [x.astype(np.float64) if x.dtype == dtype.np and dtype.kind == "f" else x for x in converted]
            rtol, atol = TOLERANCE.get(dtype, (1e-6, 1e-6))
            want = expected(REFERENCES, op, wide, sample.attrs)
            if all(w.dtype.kind in "fc" or g.dtype.kind in "biu" for g, w in zip(got, want, strict=True)):
                scale = max(
                    [
                        1.0,
                        *[float(np.nanmax(np.abs(w[np.isfinite(w)]), initial=0)) for w in want if w.dtype.kind == "f"],
                    ]
                )
                agree(got, want, rtol, atol * scale)
    assert claimed, "no dtype besides float64 works"


def _differentiable(op: Primitive, sample: Any) -> bool:
    return bool(
        sample.grad and (op.vjp is not None or op.derived_vjp) and op.differentiable
        and any(np.asarray(x).dtype.kind == "f" and np.asarray(x).size for x in sample.inputs)
    )  # fmt: skip


def _objective(op: Primitive, inputs: list[Any], attrs: dict[str, Any]) -> tuple[Callable[..., Tensor], list[int]]:
    """A scalar function of the floating inputs that weighs every output element, and their positions."""
    where = [i for i, x in enumerate(inputs) if x.dtype.kind == "f"]
    rng = np.random.default_rng(7)
    sizes = [o for o in run(op, inputs, attrs)]
    weights = [rng.uniform(0.5, 1.5, o.shape) if o.dtype.kind in "fc" else None for o in sizes]

    def f(*floats: Tensor) -> Tensor:
        full: list[Any] = [Tensor(x) for x in inputs]
        for i, x in zip(where, floats, strict=True):
            full[i] = x
        out = apply(op, *full, **attrs)
        total = Tensor(np.float64(0.0))
        for o, w in zip(out if op.multi else (out,), weights, strict=True):
            if w is not None:
                total = (
                    total + (ms.ops.real(o) if o.dtype.is_complex else o).astype(ms.float64).__mul__(Tensor(w)).sum()
                )
        return total

    return f, where


def _slope(f: Callable[..., float], point: list[Any], direction: list[Any], h: float = 1e-6) -> float:
    ahead = f(*[x + h * d for x, d in zip(point, direction, strict=True)])
    back = f(*[x - h * d for x, d in zip(point, direction, strict=True)])
    return (ahead - back) / (2 * h)


@pytest.mark.parametrize(("name", "sample"), list(cases(Sample, _differentiable, most=3, quick=1)))
def test_first_derivative(name, sample):
    op, inputs = OPERATORS[name], arrays(sample)
    f, where = _objective(op, inputs, sample.attrs)
    point = [inputs[i].astype(np.float64) for i in where]
    gradient = run_staged(grad(f, tuple(range(len(point)))), *point)
    rng = np.random.default_rng(11)
    direction = [rng.uniform(-1, 1, x.shape) for x in point]
    slope = _slope(lambda *xs: float(f(*[Tensor(x) for x in xs])), point, direction)
    ours = sum(float((g * d).sum()) for g, d in zip(gradient, direction, strict=True))
    np.testing.assert_allclose(ours, slope, rtol=2e-5, atol=2e-7 * (1 + abs(slope)))


@pytest.mark.parametrize(("name", "sample"), list(cases(Sample, _differentiable, most=1, quick=0)))
def test_second_derivative(name, sample):
    op, inputs = OPERATORS[name], arrays(sample)
    f, where = _objective(op, inputs, sample.attrs)
    point = [inputs[i].astype(np.float64) for i in where]
    rng = np.random.default_rng(13)
    weights = [rng.uniform(0.5, 1.5, x.shape) for x in point]
    positions = tuple(range(len(point)))

    def weighed(*xs: Tensor) -> Tensor:
        total = Tensor(np.float64(0.0))
        for g, w in zip(grad(f, positions)(*xs), weights, strict=True):
            total = total + (g * Tensor(w)).sum()
        return total

    second = run_staged(grad(weighed, positions), *point)
    direction = [rng.uniform(-1, 1, x.shape) for x in point]

    def value(*xs: Any) -> float:
        found = run_staged(grad(f, positions), *xs)
        return sum(float((g * w).sum()) for g, w in zip(found, weights, strict=True))

    slope = _slope(value, point, direction)
    ours = sum(float((g * d).sum()) for g, d in zip(second, direction, strict=True))
    np.testing.assert_allclose(ours, slope, rtol=1e-4, atol=1e-6 * (1 + abs(slope)))


@pytest.mark.parametrize(("name", "sample"), list(cases(Sample, _differentiable, most=1)))
def test_tape_equals_transformation(name, sample):
    op, inputs = OPERATORS[name], arrays(sample)
    f, where = _objective(op, inputs, sample.attrs)
    point = [inputs[i].astype(np.float64) for i in where]
    positions = tuple(range(len(point)))
    taped = [g.asnumpy() for g in grad(f, positions)(*[Tensor(x) for x in point])]
    agree(taped, run_staged(grad(f, positions), *point), 1e-10, 1e-12)


@pytest.mark.parametrize(("name", "bad"), list(cases(Bad)))
def test_bad_input_is_refused(name, bad):
    op = OPERATORS[name]
    with pytest.raises(bad.error, match=bad.match):
        run(op, arrays(bad), bad.attrs)
    with pytest.raises(bad.error, match=bad.match):
        run_staged(lambda *xs: apply(op, *xs, **bad.attrs), *arrays(bad))
