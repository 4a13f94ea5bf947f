"""Mycelia: one network class, debugged line by line, compiled, spread over devices and shipped.

The names here are MindSpore's; ``import mycelia as ms`` and use it the same way.
"""

# isort: off
# in the order of the layers; the first one holds the settings of the engine
from mycelia import core as core
from mycelia.core.context import (
    GRAPH_MODE,
    PYNATIVE_MODE,
    get_context,
    reset_context,
    set_context,
    set_device,
)
from mycelia.core.dtypes import (
    DType as Type,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype_to_nptype,
    dtype_to_pytype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    pytype_to_dtype,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from mycelia.core.parallel_context import (
    get_auto_parallel_context,
    reset_auto_parallel_context,
    set_auto_parallel_context,
)
from mycelia.core.random import get_seed, set_seed
from mycelia import tensor
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.symbol import Symbol
from mycelia import ops
from mycelia.autodiff import (
    GradOperation,
    derivative,
    get_grad,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jet,
    jvp,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)
from mycelia import native as native
from mycelia.frontend import (
    JitConfig,
    RecompileWarning,
    compile_report,
    explain_recompiles,
    jit,
    jit_class,
    lazy_inline,
    mutable,
)
from mycelia import parallel
from mycelia.parallel import Layout, shard
from mycelia import nn
from mycelia.nn import ParameterTuple
from mycelia import dataset
from mycelia import train
from mycelia.train import (
    load_checkpoint,
    load_checkpoint_async,
    load_param_into_net,
    save_checkpoint,
)
from mycelia.train.amp import build_train_network
from mycelia.train.callback import (
    Callback,
    CheckpointConfig,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    ModelCheckpoint,
    ReduceLROnPlateau,
    RunContext,
    TimeMonitor,
)
from mycelia.train.metrics import Accuracy
from mycelia.train.model import Model
from mycelia.export import export, load, load_mindir, save_mindir
from mycelia import profiler
from mycelia.profiler import Profiler
from mycelia import amp, common, context, mint
from mycelia.ops import composite, function as function, functional, operations
# isort: on

half, single, double = float16, float32, float64
cfloat, cdouble = complex64, complex128
byte, ubyte, short, ushort, intc, uintc = int8, uint8, int16, uint16, int32, uint32
long, intp, uintp = int64, int64, uint64
ms_function = jit
# differentiation stands below the operators, and is named among them too
for _transform in (
    GradOperation, derivative, get_grad, grad, hessian, jacfwd, jacrev, jet, jvp, linearize, value_and_grad, vjp, vmap,
):  # fmt: skip
    setattr(ops, _transform.__name__, _transform)
    ops.__all__.append(_transform.__name__)
del _transform, derivative, jet, linearize  # the functions are names of ops only
ops.P, ops.F, ops.C = operations, functional, composite  # type: ignore[attr-defined]
train.export, train.load = export, load  # type: ignore[attr-defined]

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "Accuracy",
    "Callback",
    "CheckpointConfig",
    "EarlyStopping",
    "GradOperation",
    "History",
    "JitConfig",
    "LambdaCallback",
    "Layout",
    "LearningRateScheduler",
    "LossMonitor",
    "Model",
    "ModelCheckpoint",
    "Parameter",
    "ParameterTuple",
    "Profiler",
    "RecompileWarning",
    "ReduceLROnPlateau",
    "RunContext",
    "Symbol",
    "Tensor",
    "TimeMonitor",
    "Type",
    "amp",
    "bfloat16",
    "bool_",
    "build_train_network",
    "byte",
    "cdouble",
    "cfloat",
    "common",
    "compile_report",
    "complex64",
    "complex128",
    "context",
    "dataset",
    "double",
    "dtype_to_nptype",
    "dtype_to_pytype",
    "explain_recompiles",
    "export",
    "float16",
    "float32",
    "float64",
    "get_auto_parallel_context",
    "get_context",
    "get_grad",
    "get_seed",
    "grad",
    "half",
    "hessian",
    "int8",
    "int16",
    "int32",
    "int64",
    "intc",
    "intp",
    "jacfwd",
    "jacrev",
    "jit",
    "jit_class",
    "jvp",
    "lazy_inline",
    "load",
    "load_checkpoint",
    "load_checkpoint_async",
    "load_mindir",
    "load_param_into_net",
    "long",
    "mint",
    "ms_function",
    "mutable",
    "nn",
    "ops",
    "parallel",
    "profiler",
    "pytype_to_dtype",
    "reset_auto_parallel_context",
    "reset_context",
    "save_checkpoint",
    "save_mindir",
    "set_auto_parallel_context",
    "set_context",
    "set_device",
    "set_seed",
    "shard",
    "short",
    "single",
    "string",
    "tensor",
    "train",
    "ubyte",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uintc",
    "uintp",
    "ushort",
    "value_and_grad",
    "vjp",
    "vmap",
]
