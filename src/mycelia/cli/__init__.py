"""The ``mycelia`` command.

Every sub-command is a module of this package with ``main(arguments) -> exit code``; a row in
:data:`COMMANDS` registers it, and only the module of the command that was asked for is imported.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib import metadata

#: name -> (module, one line of help)
COMMANDS: dict[str, tuple[str, str]] = {
    "info": ("mycelia.cli.info", "versions, devices, threads, cache folder, native kernels"),
    "run": ("mycelia.cli.run", "run a script or module with `import mindspore` meaning Mycelia"),
    "demo": ("mycelia.cli.demo", "train a small network on handwritten digits, in both modes"),
}


def version() -> str:
    """The version of the installed distribution."""
    try:
        return metadata.version("mycelia")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(
        ["usage: mycelia [--version] COMMAND [arguments]", "", *lines, "", "mycelia COMMAND --help says more."]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: the arguments after the program's name; those of the process when omitted.

    Returns:
        The exit code: 0, 1 for a failure, 2 for a command line that makes no sense.

    >>> main(["--version"])  # doctest: +ELLIPSIS
    mycelia ...
    0
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_usage())
        return 0 if arguments else 2
    command, rest = arguments[0], arguments[1:]
    if command in ("-V", "--version"):
        print(f"mycelia {version()}")
        return 0
    if command not in COMMANDS:
        print(f"mycelia: there is no command '{command}'\n\n{_usage()}", file=sys.stderr)
        return 2
    code: int = importlib.import_module(COMMANDS[command][0]).main(rest)
    return code
