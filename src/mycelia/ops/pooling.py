"""Maximum and average over windows that slide over the spatial axes.

The gradient of max pooling goes to the first largest element of each window (the first NaN if there is one).
``max_pool_grad`` puts it there and ``max_pool_pick`` reads it back; the two are each other's transposes, so
derivatives of any order stay within them. Both walk over the offsets inside a window, each a strided slice of
the image. Average pooling and its gradient are each other's transposes likewise. ``channels_last`` says that
images have their channels on the last axis.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.convolution import Ints, Pairs, spatial
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.linear import accumulator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

#: Up to this many offsets in a window are unrolled; more run in a loop.
_UNROLLED = 36
#: Up to this many, a window is folded slice by slice, which XLA fuses into one loop of vectors.
_SMALL = 9


def _whole(values: Any, x_rank: int, channels_last: bool, fill: Any) -> tuple[Any, ...]:
    """Values of the spatial axes as values of all axes, ``fill`` for batch and channels."""
    return (fill, *values, fill) if channels_last else (fill, fill, *values)


def pool_shape(
    where: str, x: Ints, kernel: Ints, strides: Ints, padding: Pairs, dilation: Ints, channels_last: bool
) -> Ints:
    """The shape of a pooled image, or a located error."""
    n = len(kernel)
    if len(x) != n + 2:
        raise ShapeError(where, "input", got=f"shape {x}", takes=f"{n + 2} axes: batch, channels and {n} spatial ones")
    for values, argument in ((strides, "stride"), (padding, "padding"), (dilation, "dilation")):
        if len(values) != n:
            raise ArgumentValueError(where, argument, got=str(values), takes=f"{n} values, one for each spatial axis")
    made = []
    for size, k, s, (lo, hi), d in zip(spatial(x, channels_last), kernel, strides, padding, dilation, strict=True):
        reach = (k - 1) * d + 1
        if max(lo, hi) >= reach and max(lo, hi) > 0:
            raise ArgumentValueError(
                where, "padding", got=str(padding), takes=f"less than the window, {reach} wide (kernel {kernel})"
            )
        if reach > size + lo + hi:
            raise ShapeError(
                where, "kernel_size", got=f"{kernel} with dilation {dilation}, {reach} wide on an axis",
                takes=f"a window within the padded input, {size + lo + hi} wide (shape {x}, padding {padding})",
            )  # fmt: skip
        made.append((size + lo + hi - reach) // s + 1)
    return (x[0], *made, x[-1]) if channels_last else (x[0], x[1], *made)


def _infer_max(
    x: TensorType, *, kernel: Ints, strides: Ints, padding: Pairs, dilation: Ints, channels_last: bool
) -> TensorType:
    where = f"max_pool{len(kernel)}d"
    check_dtypes(where, (x,), dt.REALS)
    return TensorType(x.dtype, pool_shape(where, x.shape, kernel, strides, padding, dilation, channels_last))


def _lowest(dtype: Any) -> Any:
    if np.issubdtype(dtype, np.integer):
        return np.array(np.iinfo(dtype).min, dtype)
    return np.array(-np.inf, np.float32).astype(dtype)


def _lower_max(x: Any, *, kernel: Ints, strides: Ints, padding: Pairs, dilation: Ints, channels_last: bool) -> Any:
    def whole(values: Any, fill: Any) -> tuple[Any, ...]:
        return _whole(values, x.ndim, channels_last, fill)

    out = pool_shape("max_pool", x.shape, kernel, strides, padding, dilation, channels_last)
    if not x.size:
        return jnp.zeros(out, x.dtype)
    if int(np.prod(kernel)) <= _SMALL:
        windows = _Windows(x.shape, out, kernel, strides, padding, dilation, channels_last)
        padded = windows.padded(x, _lowest(x.dtype))
        return reduce(lax.max, [windows.read(padded, offset) for offset in windows.offsets()])
    return lax.reduce_window(
        x, _lowest(x.dtype), lax.max, whole(kernel, 1), whole(strides, 1), whole(padding, (0, 0)),
        window_dilation=whole(dilation, 1),
    )  # fmt: skip


class _Windows:
    """The offsets of a window over a padded image: for each, a slice of it, and the places it comes from."""

    def __init__(
        self, shape: Ints, out: Ints, kernel: Ints, strides: Ints, padding: Pairs, dilation: Ints, channels_last: bool
    ) -> None:
        self.rank, self.kernel, self.dilation, self.last = len(shape), kernel, dilation, channels_last
        self.out, self.sizes = out, spatial(shape, channels_last)
        self.steps = _whole(strides, self.rank, channels_last, 1)
        self.pads = _whole(padding, self.rank, channels_last, (0, 0))
        self.span = tuple([(o - 1) * s + 1 for o, s in zip(out, self.steps, strict=True)])
        self.full = tuple([d + lo + hi for d, (lo, hi) in zip(shape, self.pads, strict=True)])
        self.shape = shape
        self.count = int(np.prod(kernel))

    def padded(self, x: Any, fill: Any) -> Any:
        return lax.pad(x, jnp.asarray(fill, x.dtype), [(lo, hi, 0) for lo, hi in self.pads])

    def unpadded(self, x: Any) -> Any:
        return lax.slice(
            x, [lo for lo, _ in self.pads], [lo + d for (lo, _), d in zip(self.pads, self.shape, strict=True)]
        )

    def _start(self, offset: Any) -> tuple[Any, ...]:
        return _whole([o * d for o, d in zip(offset, self.dilation, strict=True)], self.rank, self.last, 0)

    def read(self, x: Any, offset: Any) -> Any:
        """The element at ``offset`` of every window of the padded image."""
        begin = self._start(offset)
        if isinstance(offset[0], int):
            return lax.slice(x, begin, [b + s for b, s in zip(begin, self.span, strict=True)], self.steps)
        at = tuple([jnp.asarray(b, jnp.int32) for b in begin])
        return lax.slice(lax.dynamic_slice(x, at, self.span), (0,) * self.rank, self.span, self.steps)

    def add(self, x: Any, values: Any, offset: Any) -> Any:
        """Add ``values`` at an ``offset`` that a loop computes of every window."""
        spread = lax.pad(values, jnp.zeros((), values.dtype), [(0, 0, s - 1) for s in self.steps])
        at = tuple([jnp.asarray(s, jnp.int32) for s in self._start(offset)])
        return lax.dynamic_update_slice(x, lax.dynamic_slice(x, at, self.span) + spread, at)

    def assembled(self, parts: dict[Ints, Any]) -> Any:
        """The padded image whose windows hold ``parts`` at their offsets, summed where they overlap.

        Places with one remainder by the strides form an image of their own (a phase), as large as the result,
        in which an offset is a plain shift; the phases are interleaved at the end.
        """
        zero = jnp.zeros((), next(iter(parts.values())).dtype)
        shifts, phases = {}, {}
        for offset in parts:
            pairs = [divmod(b, s) for b, s in zip(self._start(offset), self.steps, strict=True)]
            shifts[offset], phases[offset] = [q for q, _ in pairs], tuple([r for _, r in pairs])
        most = [max(s[axis] for s in shifts.values()) for axis in range(self.rank)]
        length = tuple([o + m for o, m in zip(self.out, most, strict=True)])
        sums: dict[Ints, Any] = {}
        for offset, values in parts.items():
            edges = [(q, m - q, 0) for q, m in zip(shifts[offset], most, strict=True)]
            shifted = lax.pad(values, zero, edges)
            phase = phases[offset]
            sums[phase] = sums[phase] + shifted if phase in sums else shifted
        everywhere = np.ndindex(*self.steps)
        stacked = jnp.stack([sums.get(tuple(map(int, r)), jnp.zeros(length, zero.dtype)) for r in everywhere], -1)
        split = stacked.reshape(*length, *self.steps)
        order = [a for axis in range(self.rank) for a in (axis, self.rank + axis)]
        image = split.transpose(order).reshape([n * s for n, s in zip(length, self.steps, strict=True)])
        return lax.pad(image, zero, [(0, f - n, 0) for f, n in zip(self.full, image.shape, strict=True)])

    def places(self, offset: Any) -> tuple[Any, Any]:
        """Of the element at ``offset`` of every window: whether it lies in the image, and its flat position."""
        inside: Any = True
        position: Any = 0
        axes = range(1, self.rank - 1) if self.last else range(2, self.rank)
        for axis, size, o, d in zip(axes, self.sizes, offset, self.dilation, strict=True):
            steps = np.arange(self.out[axis]) * self.steps[axis] - self.pads[axis][0]
            at = (steps + o * d).reshape([-1 if i == axis else 1 for i in range(self.rank)])
            inside = inside & (at >= 0) & (at < size)
            position = position * size + at
        return inside, position

    def offsets(self) -> list[Ints]:
        """All offsets in row-major order."""
        return [tuple(map(int, o)) for o in np.ndindex(*self.kernel)]

    def fold(self, step: Callable[[Any, Any, Any], Any], carry: Any) -> Any:
        """``step(carry, number, offset)`` over all offsets from the last to the first."""
        if self.count <= _UNROLLED:
            for number, offset in reversed(list(enumerate(self.offsets()))):
                carry = step(carry, number, offset)
            return carry

        def body(i: Any, held: Any) -> Any:
            number = self.count - 1 - i
            rest, offset = number, []
            for k in reversed(self.kernel):
                offset.append(rest % k)
                rest = rest // k
            return step(held, number, offset[::-1])

        return lax.fori_loop(0, self.count, body, carry)


def _match(windows: _Windows, padded: Any, y: Any, offset: Any) -> Any:
    """Where the element at ``offset`` of its window equals the maximum."""
    here = windows.read(padded, offset)
    return ((here == y) | (here != here)) & windows.places(offset)[0]


def _first_match(windows: _Windows, x: Any, y: Any) -> Any:
    """The number of the first offset that equals the maximum of its window."""
    padded = windows.padded(x, _lowest(x.dtype))
    start = jnp.full(y.shape, windows.count, jnp.int32)
    return windows.fold(lambda held, k, o: jnp.where(_match(windows, padded, y, o), k, held), start)


def _infer_max_grad(ct: TensorType, x: TensorType, y: TensorType, **attrs: Any) -> TensorType:
    check_dtypes("max_pool_grad", (ct,), dt.FLOATS, ("ct",))
    check_dtypes("max_pool_grad", (x, y), dt.REALS, ("input", "out"))
    return TensorType(ct.dtype, x.shape)


def _lower_max_grad(ct: Any, x: Any, y: Any, **attrs: Any) -> Any:
    if not ct.size:
        return jnp.zeros(x.shape, ct.dtype)
    windows = _Windows(x.shape, y.shape, **attrs)
    wide = accumulator(ct.dtype) or ct.dtype
    # the barrier keeps the search from being done again for every offset
    first = lax.optimization_barrier(_first_match(windows, x, y))
    if windows.count <= _UNROLLED:
        parts = {o: jnp.where(first == k, ct, 0).astype(wide) for k, o in enumerate(windows.offsets())}
        return windows.unpadded(windows.assembled(parts)).astype(ct.dtype)

    def step(total: Any, number: Any, offset: Any) -> Any:
        return windows.add(total, jnp.where(first == number, ct, 0).astype(wide), offset)

    return windows.unpadded(windows.fold(step, jnp.zeros(windows.full, wide))).astype(ct.dtype)


def _infer_max_pick(c: TensorType, x: TensorType, y: TensorType, **attrs: Any) -> TensorType:
    check_dtypes("max_pool_pick", (c,), dt.FLOATS, ("c",))
    check_dtypes("max_pool_pick", (x, y), dt.REALS, ("input", "out"))
    return TensorType(c.dtype, y.shape)


def _lower_max_pick(c: Any, x: Any, y: Any, **attrs: Any) -> Any:
    if not y.size:
        return jnp.zeros(y.shape, c.dtype)
    windows = _Windows(x.shape, y.shape, **attrs)
    padded, values = windows.padded(x, _lowest(x.dtype)), windows.padded(c, 0)

    def step(picked: Any, number: Any, offset: Any) -> Any:
        return jnp.where(_match(windows, padded, y, offset), windows.read(values, offset), picked)

    return windows.fold(step, jnp.zeros(y.shape, c.dtype))


def _infer_max_index(x: TensorType, **attrs: Any) -> tuple[TensorType, ...]:
    y = _infer_max(x, **attrs)
    return y, TensorType(dt.int64, y.shape)


def _lower_max_index(x: Any, **attrs: Any) -> tuple[Any, ...]:
    y = _lower_max(x, **attrs)
    if not y.size:
        return y, jnp.zeros(y.shape, jnp.int64)
    windows = _Windows(x.shape, y.shape, **attrs)
    padded = windows.padded(x, _lowest(x.dtype))

    def step(index: Any, number: Any, offset: Any) -> Any:
        return jnp.where(_match(windows, padded, y, offset), windows.places(offset)[1], index)

    return y, windows.fold(step, jnp.zeros(y.shape, jnp.int64))


def _attrs(
    kernel: Ints, strides: Ints, padding: Pairs | None = None, dilation: Ints | None = None, channels_last: bool = False
) -> dict[str, Any]:
    n = len(kernel)
    return {
        "kernel": kernel, "strides": strides, "padding": padding or ((0, 0),) * n, "dilation": dilation or (1,) * n,
        "channels_last": channels_last,
    }  # fmt: skip


def _image(*shape: int) -> np.ndarray[Any, Any]:
    """Distinct values in no particular order."""
    count = int(np.prod(shape))
    return (np.argsort(np.sin(np.arange(count) * 1.7)) / 4.0 - 2.0).reshape(shape)


#: Images and attributes of the samples.
_CASES: list[tuple[np.ndarray[Any, Any], dict[str, Any]]] = [
    (_image(2, 2, 5, 6), _attrs((2, 3), (2, 2))), (_image(1, 2, 6, 6), _attrs((3, 3), (2, 2), ((1, 1), (1, 1)))),
    (_image(1, 2, 7, 6), _attrs((2, 2), (1, 2), ((0, 1), (1, 1)), (2, 1))), (_image(2, 3, 7), _attrs((3,), (1,))),
    (_image(1, 1, 4, 4, 4), _attrs((2, 2, 2), (2, 1, 2), ((0, 0), (1, 0), (0, 0)))),
    (_image(1, 5, 5, 2), _attrs((2, 2), (2, 2), ((0, 1), (0, 1)), channels_last=True)),
    (_image(1, 2, 8, 8), _attrs((7, 7), (1, 1), ((3, 3), (3, 3)))), (np.zeros((0, 2, 4, 4)), _attrs((2, 2), (2, 2))),
]  # fmt: skip


def _max_samples() -> list[Any]:
    ties = np.array([[[1.0, 1.0, 0.0, np.nan, 2.0, np.nan]], [[-np.inf, -np.inf, np.inf, 1.0, 0.0, 0.0]]])
    return [
        *[Sample((x,), a) for x, a in _CASES], Sample((ties,), _attrs((2,), (2,)), grad=False),
        Sample((np.arange(16).reshape(1, 1, 4, 4),), _attrs((2, 2), (2, 2), ((1, 1), (1, 1))), grad=False),
        Bad((_image(1, 1, 3, 3),), _attrs((4, 4), (1, 1)), ShapeError, "within the padded input"),
        Bad((_image(1, 3, 3),), _attrs((2, 2), (1, 1)), ShapeError, "4 axes"),
        Bad(
            (_image(1, 1, 3, 3),), _attrs((2, 2), (1, 1), ((2, 2), (0, 0))), ArgumentValueError, "less than the window"
        ),
    ]  # fmt: skip


max_pool_p = Primitive(
    "max_pool", infer=_infer_max, lower=_lower_max, samples=_max_samples,
    vjp=lambda ct, x, out, **attrs: [apply(max_pool_grad_p, ct, x, out, **attrs)],
)  # fmt: skip

#: The maxima, and where they are: flat positions within the spatial axes.
max_pool_with_index_p = Primitive(
    "max_pool_with_index", infer=_infer_max_index, lower=_lower_max_index, multi=True, samples=_max_samples,
    vjp=lambda cts, x, out, **attrs: [
        None if cts[0] is None else apply(max_pool_grad_p, cts[0], x, out[0], **attrs)
    ],
)  # fmt: skip


def _linear_samples(ct_first: bool) -> list[Any]:
    """Samples with integer images: the maximum moves when the image does, so only the first input is smooth."""
    made: list[Any] = []
    for image, attrs in _CASES:
        x = (image * 4).astype(np.int64)
        y = np.asarray(_lower_max(jnp.asarray(x), **attrs))
        first = np.cos(np.arange(float(y.size))).reshape(y.shape) if ct_first else np.cos(image)
        made.append(Sample((first, x, y), attrs))
    return made


def _vjp_max_grad(c: Tensor, ct: Tensor, x: Tensor, y: Tensor, out: Tensor, **attrs: Any) -> list[Any]:
    return [apply(max_pool_pick_p, c, x, y, **attrs), None, None]


def _vjp_max_pick(ct: Tensor, c: Tensor, x: Tensor, y: Tensor, out: Tensor, **attrs: Any) -> list[Any]:
    return [apply(max_pool_grad_p, ct, x, y, **attrs), None, None]


#: ``ct`` at the first largest element of each window of ``x``, whose maxima are ``y``.
max_pool_grad_p: Primitive = Primitive(
    "max_pool_grad", infer=_infer_max_grad, lower=_lower_max_grad, vjp=_vjp_max_grad,
    samples=lambda: _linear_samples(True),
)  # fmt: skip

#: The element of ``c`` where each window of ``x`` has its first largest element.
max_pool_pick_p: Primitive = Primitive(
    "max_pool_pick", infer=_infer_max_pick, lower=_lower_max_pick, vjp=_vjp_max_pick,
    samples=lambda: _linear_samples(False),
)  # fmt: skip


# Average ------------------------------------------------------------------------------------------------


def _infer_avg(
    x: TensorType, *, kernel: Ints, strides: Ints, padding: Pairs, channels_last: bool, **_: Any
) -> TensorType:
    where = f"avg_pool{len(kernel)}d"
    check_dtypes(where, (x,), dt.FLOATS)
    ones = (1,) * len(kernel)
    return TensorType(x.dtype, pool_shape(where, x.shape, kernel, strides, padding, ones, channels_last))


def _counts(
    shape: Ints, kernel: Ints, strides: Ints, padding: Pairs, excess: Ints, include_pad: bool, divisor: int,
    channels_last: bool,
) -> Any:  # fmt: skip
    """What each window's sum is divided by, as an array that broadcasts against the result."""
    if divisor:
        return np.array(float(divisor))
    rank, total = len(shape), np.array(1.0)
    first = 1 if channels_last else 2
    for i, (size, k, s, (lo, hi), e) in enumerate(
        zip(spatial(shape, channels_last), kernel, strides, padding, excess, strict=True)
    ):
        start = np.arange((size + lo + hi - k) // s + 1) * s - lo
        if include_pad:
            count = np.minimum(start + k, size + hi - e) - start
        else:
            count = np.minimum(start + k, size) - np.maximum(start, 0)
        total = total * np.maximum(count, 1).reshape([-1 if j == first + i else 1 for j in range(rank)])
    return total


def _window_sum(kernel: Ints, strides: Ints, padding: Pairs, channels_last: bool) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        def whole(values: Any, fill: Any) -> tuple[Any, ...]:
            return _whole(values, x.ndim, channels_last, fill)

        zero = np.zeros((), x.dtype)
        return lax.reduce_window(x, zero, lax.add, whole(kernel, 1), whole(strides, 1), whole(padding, (0, 0)))

    return run


def _lower_avg(
    x: Any, *, kernel: Ints, strides: Ints, padding: Pairs, excess: Ints, include_pad: bool, divisor: int,
    channels_last: bool,
) -> Any:  # fmt: skip
    wide = x.astype(accumulator(x.dtype) or x.dtype)
    counts = _counts(x.shape, kernel, strides, padding, excess, include_pad, divisor, channels_last)
    if x.size and int(np.prod(kernel)) <= _SMALL:
        ones = (1,) * len(kernel)
        out = pool_shape("avg_pool", x.shape, kernel, strides, padding, ones, channels_last)
        windows = _Windows(x.shape, out, kernel, strides, padding, ones, channels_last)
        padded = windows.padded(wide, 0)
        total = reduce(lax.add, [windows.read(padded, offset) for offset in windows.offsets()])
    else:
        total = _window_sum(kernel, strides, padding, channels_last)(wide)
    return (total / counts.astype(wide.dtype)).astype(x.dtype)


def _infer_avg_grad(ct: TensorType, *, input_shape: Ints, **attrs: Any) -> TensorType:
    made = _infer_avg(TensorType(ct.dtype, input_shape), **attrs)
    if made.shape != ct.shape:
        raise ShapeError("avg_pool_grad", "ct", got=f"shape {ct.shape}", takes=f"shape {made.shape}")
    return TensorType(ct.dtype, input_shape)


def _lower_avg_grad(
    ct: Any, *, input_shape: Ints, kernel: Ints, strides: Ints, padding: Pairs, excess: Ints, include_pad: bool,
    divisor: int, channels_last: bool,
) -> Any:  # fmt: skip
    wide = ct.astype(accumulator(ct.dtype) or ct.dtype)
    counts = _counts(input_shape, kernel, strides, padding, excess, include_pad, divisor, channels_last)
    share = wide / counts.astype(wide.dtype)
    if ct.size and int(np.prod(kernel)) <= _UNROLLED:
        ones = (1,) * len(kernel)
        windows = _Windows(input_shape, ct.shape, kernel, strides, padding, ones, channels_last)
        return windows.unpadded(windows.assembled(dict.fromkeys(windows.offsets(), share))).astype(ct.dtype)
    image = jax.ShapeDtypeStruct(input_shape, wide.dtype)
    spread = jax.linear_transpose(_window_sum(kernel, strides, padding, channels_last), image)
    return spread(share)[0].astype(ct.dtype)


def _avg_attrs(attrs: dict[str, Any], **further: Any) -> dict[str, Any]:
    kept = {k: v for k, v in attrs.items() if k != "dilation"}
    return {**kept, "excess": (0,) * len(attrs["kernel"]), "include_pad": True, "divisor": 0, **further}


def _avg_cases() -> list[tuple[Any, dict[str, Any]]]:
    cases = [(x, _avg_attrs(a)) for x, a in _CASES if set(a["dilation"]) == {1}]
    return [
        *cases, (_CASES[1][0], _avg_attrs(_CASES[1][1], include_pad=False)),
        (_CASES[1][0], _avg_attrs(_CASES[1][1], divisor=5)),
        (_image(1, 2, 7, 7), _avg_attrs(_attrs((3, 2), (3, 2), ((0, 2), (0, 1))), excess=(2, 1))),
    ]  # fmt: skip


avg_pool_p = Primitive(
    "avg_pool", infer=_infer_avg, lower=_lower_avg,
    vjp=lambda ct, x, out, **attrs: [apply(avg_pool_grad_p, ct, input_shape=x.shape, **attrs)],
    samples=lambda: [
        *[Sample((x,), a) for x, a in _avg_cases()],
        Bad((_image(1, 1, 3, 3),), _avg_attrs(_attrs((4, 4), (1, 1))), ShapeError, "within the padded input"),
    ],
)  # fmt: skip


def _avg_grad_samples() -> list[Any]:
    made = []
    for x, attrs in _avg_cases():
        shape = _infer_avg(TensorType(dt.float64, x.shape), **attrs).shape
        made.append(Sample((_image(*shape),), {"input_shape": x.shape, **attrs}))
    return made


#: ``ct`` spread evenly over the windows of an average pooling: its transpose.
avg_pool_grad_p: Primitive = Primitive(
    "avg_pool_grad", infer=_infer_avg_grad, lower=_lower_avg_grad, samples=_avg_grad_samples,
    vjp=lambda c, ct, out, *, input_shape, **attrs: [apply(avg_pool_p, c, **attrs)],
)  # fmt: skip
