"""How a command ends: its exit status, and the end of the process.

Errors of Posology have statuses of their own, see ``orchestrator.cli.app``.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

SOME_BAD, DEFECT, UNWRITTEN, INTERRUPTED = 1, 70, 74, 130


@dataclass(kw_only=True, slots=True)
class Ending:
    """How this process ends."""

    #: whether it ends with the command; else it waits for the threads of libraries, and takes modules apart
    at_once: bool = True


def ended(command: Callable[[Ending], object]) -> None:
    """Run a command, and end the process as it says.

    Taking down the interpreter with its libraries takes 0.1 to 0.5 s, in which the answer stands there and the prompt
    does not. The operating system does it faster.

    Args:
        command: raises ``SystemExit``; it sets how the process ends.
    """
    ending = Ending()
    try:
        command(ending)
        status: object = None
    except SystemExit as end:
        status = end.code
    # a profiler or debugger reports at the interpreter's own end
    if not ending.at_once or sys.getprofile() or sys.gettrace():
        sys.exit(status)  # type: ignore[arg-type]  # what a SystemExit had
    if status is not None and not isinstance(status, int):
        say(str(status))
        status = 1
    leave(status or 0)


def leave(status: int) -> NoReturn:
    """End the process now. What is registered for its end is done, and what was printed is written.

    Threads that still run are cut off. If standard output cannot be written, the status is 74, unless its reader
    has left.
    """
    # temporary folders, log handlers, coverage; multiprocessing ends its children the same way
    atexit._run_exitfuncs()  # noqa: SLF001 - the only way to run them without the rest
    # None: it was closed before the start
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            pass
        except (OSError, ValueError) as error:
            status = status or UNWRITTEN
            say(f"cannot write to standard output: {error}")
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.flush()
    os._exit(status)


def say(message: str) -> None:
    """Write one line to standard error, if there is one."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.write(f"posology: {message}\n")
