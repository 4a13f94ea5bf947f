"""Builds the compiled kernels with the package, where there is a C++ compiler.

Without one, or if the build fails, the package is installed all the same and runs on XLA's own kernels.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
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
            for library in built:
                temporary = source / f"{library.name}.{os.getpid()}"
                shutil.copyfile(library, temporary)
                os.replace(temporary, source / library.name)
        if built and version != "editable":
            for library in built:
                build_data["force_include"][str(source / library.name)] = f"mycelia/native/{library.name}"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


def _onednn() -> list[str]:
    """The settings that say where oneDNN is: its packages are installed for the build where there are any."""
    found = {}
    for package, name, setting in (
        ("onednn-devel-cpu-gomp", "/include/oneapi/dnnl/dnnl.hpp", "DNNL_INCLUDE"),
        ("onednn-cpu-gomp", "/libdnnl.so.3", "DNNL_LIBRARY"),
    ):
        try:
            files = metadata.files(package) or []
        except metadata.PackageNotFoundError:
            return []
        for file in files:
            if str(file).endswith(name):
                found[setting] = Path(str(file.locate())).resolve()
    if len(found) < 2:
        return []
    return [f"-DDNNL_INCLUDE={found['DNNL_INCLUDE'].parents[2]}", f"-DDNNL_LIBRARY={found['DNNL_LIBRARY']}"]


def _build(source: Path, folder: Path) -> list[Path]:
    """Build into a folder; the libraries made, none if that failed."""
    try:
        import jaxlib

        include = Path(jaxlib.__file__).parent / "include"
        for command in (
            [
                "cmake",
                "-S",
                str(source),
                "-B",
                str(folder),
                "-G",
                "Ninja",
                f"-DXLA_FFI_INCLUDE={include}",
                *_onednn(),
            ],
            ["cmake", "--build", str(folder)],
        ):
            subprocess.run(command, check=True, capture_output=True, text=True)
    except (ImportError, OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or error
        print(f"mycelia: the compiled kernels were not built, XLA's are used instead: {reason}", file=sys.stderr)
        return []
    return sorted(folder.glob("*.so"))
