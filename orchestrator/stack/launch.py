"""Launcher: replaces itself by a program that ends when its parent ends.

Run as a file, before any import of ours: ``python -I -S launch.py PARENT SIGNAL PROGRAM ARGUMENT…``.
A function between fork and exec in the parent would do the same, but may deadlock in a process with threads.
"""

from __future__ import annotations

import os
import signal
import sys

#: from ``<sys/prctl.h>``
_PR_SET_PDEATHSIG = 1
#: exit status of shells for a command that cannot be run
_CANNOT_RUN = 127


def main(arguments: list[str]) -> None:
    """Make this process end with its parent (on Linux), and run the program."""
    parent, orphaned, *command = arguments
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(orphaned), 0, 0, 0)
    # the parent may have ended already
    if os.getppid() != int(parent):
        sys.exit(_CANNOT_RUN)
    # Python ignores these signals, and the program would inherit that
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is needed
    except OSError as error:
        sys.stderr.write(f"cannot run {command[0]}: {error.strerror}\n")
        sys.exit(_CANNOT_RUN)


if __name__ == "__main__":
    main(sys.argv[1:])
