"""Names that scripts import from ``mindspore.common``."""

from mycelia.common import (
    api,
    dtype,
    generator,
    initializer,
    parameter,
    seed,
    tensor,
)
from mycelia.common.api import jit, jit_class, ms_function
from mycelia.common.dtype import *  # noqa: F403
from mycelia.common.dtype import __all__ as _dtypes
from mycelia.common.generator import Generator, default_generator
from mycelia.common.parameter import Parameter, ParameterTuple
from mycelia.common.seed import get_seed, set_seed
from mycelia.common.tensor import Tensor
from mycelia.frontend import JitConfig, lazy_inline, mutable
from mycelia.tensor.symbol import Symbol

mstype = dtype

__all__ = [
    "Generator", "JitConfig", "Parameter", "ParameterTuple", "Symbol", "Tensor", "api", "default_generator", "dtype",
    "generator", "get_seed", "initializer", "jit", "jit_class", "lazy_inline", "ms_function", "mstype", "mutable",
    "parameter", "seed", "set_seed", "tensor",
]  # fmt: skip
__all__ += [*_dtypes]  # noqa: PLE0604
