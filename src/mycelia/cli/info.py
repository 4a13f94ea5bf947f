"""``mycelia info``: what is installed here and what it will run on."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from mycelia.cli import version


def _distribution(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _devices() -> dict[str, Any]:
    """The devices XLA sees; an unusable setting of the platform is reported, not raised."""
    import jax

    try:
        devices = jax.devices()
    except RuntimeError as error:
        return {"devices": [], "device_error": str(error)}
    return {
        "devices": [{"id": d.id, "platform": d.platform, "kind": d.device_kind} for d in devices],
        "device_error": None,
    }


def native_kernels(package: str = "mycelia.native") -> list[str]:
    """File names of the compiled kernel modules in ``package``; empty when there are none."""
    spec = importlib.util.find_spec(package)
    folders = (spec.submodule_search_locations or []) if spec is not None else []
    return sorted(
        file.name
        for folder in folders
        for file in Path(folder).iterdir()
        if file.name.endswith(tuple(EXTENSION_SUFFIXES))
    )


def collect() -> dict[str, Any]:
    """Everything ``mycelia info`` shows, as plain data."""
    import jax

    import mycelia.core.engine  # noqa: F401  sets the cache folder

    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "mycelia": version(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "jax": _distribution("jax"),
        "jaxlib": _distribution("jaxlib"),
        "numpy": _distribution("numpy"),
        **_devices(),
        "threads": {
            "cpus": os.cpu_count(),
            "usable": len(affinity(0)) if affinity is not None else os.cpu_count(),
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
        },
        "cache_folder": jax.config.jax_compilation_cache_dir,  # type: ignore[attr-defined]
        "native_kernels": native_kernels(),
    }


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    devices = ", ".join(f"{d['platform']}:{d['id']} ({d['kind']})" for d in facts["devices"])
    threads = facts["threads"]
    rows = [(name, str(facts[name] or "missing")) for name in ("mycelia", "python", "system", "jax", "jaxlib", "numpy")]
    return [
        *rows,
        ("devices", devices or f"none: {facts['device_error']}"),
        (
            "threads",
            f"{threads['usable']} of {threads['cpus']}, OMP_NUM_THREADS={threads['OMP_NUM_THREADS'] or 'unset'}",
        ),
        ("cache folder", facts["cache_folder"] or "none: compiled programs are not kept"),
        ("kernels", ", ".join(facts["native_kernels"]) or "XLA kernels only"),
    ]


def main(arguments: Sequence[str]) -> int:
    """Print the facts as a table, or as JSON with ``--json``; returns 0, or 1 without a usable device."""
    parser = argparse.ArgumentParser(
        prog="mycelia info", description="Versions, devices, threads, cache folder and native kernels."
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(list(arguments))
    facts = collect()
    if options.json:
        print(json.dumps(facts, indent=2))
    else:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(show_header=False)
        table.add_column(style="bold")
        table.add_column(overflow="fold")
        for name, value in _rows(facts):
            table.add_row(name, Text(value))
        Console().print(table)
    return 0 if facts["devices"] else 1
