"""The front-end: from Python functions to compiled graphs."""

from mycelia.frontend.hints import JitConfig, jit_class, lazy_inline
from mycelia.frontend.jit import Jit, jit
from mycelia.frontend.mutable import mutable
from mycelia.frontend.recompiles import RecompileWarning, explain_recompiles
from mycelia.frontend.reports import compile_report

__all__ = [
    "Jit", "JitConfig", "RecompileWarning", "compile_report", "explain_recompiles", "jit", "jit_class", "lazy_inline",
    "mutable",
]  # fmt: skip
