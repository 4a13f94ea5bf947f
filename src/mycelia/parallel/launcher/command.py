"""The commands ``mycelia-run`` and ``msrun``."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mycelia.parallel.launcher.display import Display
from mycelia.parallel.launcher.guest import Guest
from mycelia.parallel.launcher.host import Host, is_own
from mycelia.parallel.launcher.options import Options, parse
from mycelia.parallel.launcher.supervisor import Supervisor

#: Where a launcher in the background writes, in the folder of the logs.
BACKGROUND_LOG = "launcher.log"


def main(argv: Sequence[str] | None = None) -> int:
    """``mycelia-run``.

    Args:
        argv: the arguments after the program's name; those of the process when omitted.

    Returns:
        0 if all ranks ended well; else the code of the first that failed (128 and the signal if one ended it), or 1 if
        a machine was lost or did not come.
    """
    return _main("mycelia-run", argv)


def msrun(argv: Sequence[str] | None = None) -> int:
    """``msrun``: the same, but it does not wait for the ranks unless ``--join=True`` is given."""
    return _main("msrun", argv)


def _main(program: str, argv: Sequence[str] | None) -> int:
    options = parse(program, sys.argv[1:] if argv is None else argv)
    for notice in options.notices:
        print(f"{program}: {notice}", file=sys.stderr, flush=True)
    if not options.join:
        return _in_background(program, options)
    return _supervise(program, options)


def _supervise(program: str, options: Options) -> int:
    display = Display(program, options.tail_worker_log)
    try:
        return _supervisor(options, display).run()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        display.say(f"--master_port {options.master_port} of this machine is taken, by another job or program; "
                    "give all machines another one")  # fmt: skip
        return 1
    finally:
        display.close()


def _supervisor(options: Options, display: Display) -> Supervisor:
    if options.single or options.node_rank == 0:
        return Host(options, display)
    if options.node_rank < 0 and is_own(options.master_addr):
        try:
            return Host(options, display)
        except OSError as error:  # two launchers on one machine: the second comes to the first
            if error.errno != errno.EADDRINUSE:
                raise
    return Guest(options, display)


def _in_background(program: str, options: Options) -> int:
    folder = Path(options.log_dir or ".")
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / BACKGROUND_LOG
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        print(f"{program}: goes on in the background as process {child}; what it says is in {log}, what the ranks "
              "print in the files beside it", file=sys.stderr, flush=True)  # fmt: skip
        return 0
    code = 1
    try:
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        null = os.open(os.devnull, os.O_RDONLY)
        for file, place in ((null, 0), (out, 1), (out, 2)):
            os.dup2(file, place)
        os.close(out)
        os.close(null)
        options = Options(**{**vars(options), "tail_worker_log": frozenset()})
        code = _supervise(program, options)
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
