"""Builds the compiled kernels with the package, where there is a C++ compiler.

Without one, or if the build fails, the package is installed all the same and runs on XLA's own kernels.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeKernels(BuildHookInterface):
    """Compile ``src/mycelia/native`` into ``kernels.so``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build before the wheel is put together; ``version`` is ``editable`` or ``standard``."""
        if self.target_name != "wheel" or not sys.platform.startswith("linux"):
            return
        source = Path(self.root, "src", "mycelia", "native")
        with tempfile.TemporaryDirectory() as folder:
            built = _build(source, Path(folder))
            if built is None:
                return
            final = source / "kernels.so"
            temporary = final.with_name(f"kernels.so.{os.getpid()}")
            shutil.copyfile(built, temporary)
            os.replace(temporary, final)
        if version != "editable":
            build_data["force_include"][str(final)] = "mycelia/native/kernels.so"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


def _build(source: Path, folder: Path) -> Path | None:
    try:
        import jaxlib

        include = Path(jaxlib.__file__).parent / "include"
        for command in (
            ["cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja", f"-DXLA_FFI_INCLUDE={include}"],
            ["cmake", "--build", str(folder)],
        ):
            subprocess.run(command, check=True, capture_output=True, text=True)
    except (ImportError, OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or error
        print(f"mycelia: the compiled kernels were not built, XLA's are used instead: {reason}", file=sys.stderr)
        return None
    return folder / "kernels.so"
