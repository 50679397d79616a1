"""The standard streams of a command: no text is lost to their encoding, and a failed write is reported as one."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from typing import Literal, TextIO

from orchestrator.cli.ending import UNWRITTEN, say

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def prepare_streams() -> None:
    r"""Let the streams take and give any text, and open those that were closed before the start.

    What an encoding lacks is written as its escape, such as ``\u2265``. A closed stream's descriptor would be that of the
    next file that is opened; writing to it fails, as before.
    """
    # in this order: each takes the lowest free descriptor, its own
    if sys.stdin is None:
        sys.stdin = _opened(os.O_RDONLY, "r")
    if sys.stdout is None:
        # one that cannot be written
        sys.stdout = _opened(os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _opened(os.O_WRONLY, "w")
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace" if stream is sys.stdin else "backslashreplace")


def write_json(text: str) -> None:
    """Write JSON and a line end to standard output, in ASCII if need be; see :func:`fit_json`."""
    sys.stdout.write(f"{fit_json(text)}\n")
    sys.stdout.flush()


def fit_json(text: str) -> str:
    """Return JSON as standard output takes it without a loss: in ASCII, if its encoding is none of Unicode's."""
    if takes_all():
        return text
    import json

    return _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


def takes_all() -> bool:
    """Return whether the encoding of standard output is one of Unicode's."""
    try:
        return codecs.lookup(sys.stdout.encoding or "utf-8").name.startswith("utf")
    except LookupError:
        return False


def write_surely(write: Callable[[], None], *, elsewhere: str = "") -> None:
    """Write a paid answer to standard output, or to standard error if that fails.

    Args:
        write: writes it to ``sys.stdout``.
        elsewhere: where else it can be had, as a sentence and a space; empty: nowhere.

    Raises:
        SystemExit: it was written to standard error.
        BrokenPipeError: the reader of standard output has left.
    """
    try:
        write()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard()
        say(
            f"cannot write to standard output: {error.strerror or error}. {elsewhere}It follows here."
        )
        with redirect_stdout(sys.stderr):
            write()
        sys.exit(UNWRITTEN)


def has_left(error: BaseException) -> bool:
    """Return whether a command ended because the reader of standard output has left.

    rich and click turn that into an exit of their own.
    """
    return isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError)


def discard() -> None:
    """Throw away what is still to be written to standard output: Python would try once more at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _opened(flags: int, mode: Literal["r", "w"]) -> TextIO:
    return os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8")
