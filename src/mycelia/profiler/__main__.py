"""``python -m mycelia.profiler [options] SCRIPT [arguments]``: run a program recorded, and print the table at its end.

``import mindspore`` means Mycelia in it, as with ``mycelia run``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from mycelia.cli import run
from mycelia.profiler import profile
from mycelia.profiler.files import check_folder, write_profile


def main(arguments: Sequence[str]) -> int:
    """Run the program named in ``arguments``; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m mycelia.profiler",
        usage="python -m mycelia.profiler [-h] [-o FOLDER] [--rows N] [--memory] (SCRIPT | -m MODULE) [arguments]",
        description="Run a program with the profiler on, and print where its time went.",
    )
    parser.add_argument("-o", "--output", metavar="FOLDER", help="write a trace and tables into a new folder there")
    parser.add_argument("--rows", type=int, default=20, metavar="N", help="lines of the table (20), -1 for all")
    parser.add_argument("--memory", action="store_true", help="count the memory of arrays")
    options, rest = parser.parse_known_args(arguments[: _program_at(arguments)])
    folder = None if options.output is None else check_folder("mycelia.profiler", "--output", options.output)
    prof = profile(profile_memory=options.memory)
    try:
        return run.main([*rest, *arguments[_program_at(arguments) :]])
    finally:
        prof.stop()
        print(prof.summary(row_limit=options.rows), file=sys.stderr)
        if folder is not None:
            print(f"written to {write_profile(prof, folder)}", file=sys.stderr)


def _program_at(arguments: Sequence[str]) -> int:
    """Where the program and its own arguments begin."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] != "-m":
        at += 2 if arguments[at] in ("-o", "--output", "--rows") else 1
    return at


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
