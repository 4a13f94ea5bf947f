"""``mycelia demo``: train a small network on handwritten digits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def _folder(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"'{text}' is not a folder")
    return path


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return int(text)


def main(arguments: Sequence[str]) -> int:
    """Parse the arguments and run :func:`mycelia.demo.mnist.run`; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="mycelia demo", description="Train a small network on handwritten digits and test it."
    )
    parser.add_argument(
        "--data",
        type=_folder,
        metavar="DIR",
        help="folder with the MNIST files; a subset that is included when omitted",
    )
    parser.add_argument(
        "--epochs", type=_positive, metavar="N", help="passes over the data (default: 6, or 2 with --data)"
    )
    parser.add_argument(
        "--mode", choices=("both", "pynative", "graph"), default="both", help="how the network runs (default: both)"
    )
    options = parser.parse_args(list(arguments))

    from mycelia.demo.digits import folder
    from mycelia.demo.mnist import run

    epochs = options.epochs or (6 if options.data is None else 2)
    return int(run(data=options.data or folder(), epochs=epochs, mode=options.mode) or 0)
