"""Complex numbers: parts, making, kinds of dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, DTypeError

Z = np.array([1 + 2j, -3 - 0.5j])


def test_parts():
    z = Tensor(Z)
    np.testing.assert_array_equal(z.real().asnumpy(), Z.real)
    np.testing.assert_array_equal(ops.imag(z).asnumpy(), Z.imag)
    np.testing.assert_array_equal(z.conj().asnumpy(), Z.conj())
    np.testing.assert_allclose(z.angle().asnumpy(), np.angle(Z))
    np.testing.assert_array_equal(ops.view_as_real(z).asnumpy(), np.stack([Z.real, Z.imag], -1))
    assert ops.real(Tensor(Z.astype(np.complex64))).dtype is ms.float32


def test_parts_of_real_numbers():
    x = Tensor([-1.0, 2.0, np.nan])
    assert ops.real(x) is x
    assert ops.conj(x) is x
    assert ops.imag(x).tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(ops.angle(x).asnumpy(), np.array([np.pi, 0.0, np.nan], np.float32))
    with pytest.raises(DTypeError, match="view_as_real: argument 'input' got dtype Float32"):
        ops.view_as_real(x)


def test_making():
    np.testing.assert_array_equal(ops.complex(Tensor([1.0]), 2).asnumpy(), [1 + 2j])
    assert ops.complex(Tensor([1.0], ms.float64), 2).dtype is ms.complex128
    np.testing.assert_allclose(ops.polar(Tensor([2.0]), Tensor([np.pi / 2], ms.float64)).asnumpy(), [2j], atol=1e-12)
    with pytest.raises(DTypeError, match="complex: argument 'real' got dtype Float16"):
        ops.complex(Tensor([1.0], ms.float16), Tensor([1.0], ms.float16))


def test_kinds():
    assert ops.is_complex(Tensor([1j]))
    assert not Tensor([1]).is_complex()
    assert Tensor([1.0], ms.bfloat16).is_floating_point()
    assert not Tensor([1], ms.uint8).is_signed()
    assert Tensor([1], ms.int8).is_signed()
    with pytest.raises(ArgumentTypeError, match="is_complex: argument 'input' got int"):
        ops.is_complex(1)
