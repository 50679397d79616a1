"""Prints the words of a PDF: ``python -P __main__.py FILE MEMORY SECONDS CHARACTERS``, see :mod:`posology.corpus.pdfium`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(path: str, memory: int, seconds: int, most: int) -> None:
    """Print the words of a file.

    Args:
        path: of the file.
        memory: maximum bytes of this process.
        seconds: maximum processor time of this process.
        most: maximum number of characters of a page.
    """
    from posology.corpus.pdfium.page import replies

    _limit(memory, seconds)
    for reply in replies(path, most):
        _print(reply)


def _limit(memory: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:
        return  # on Windows, there is none
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (bound, hard))


def _print(value: dict[str, Any]) -> None:
    # a part of a pair of surrogates is escaped
    # bytes: the environment may name any encoding of text
    sys.stdout.buffer.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    # of this Posology, however it was found
    sys.path.insert(0, str(Path(__file__).parents[3]))
    try:
        main(sys.argv[1], *map(int, sys.argv[2:]))
    except MemoryError:
        _print({"unreadable": "needs more memory than allowed"})
