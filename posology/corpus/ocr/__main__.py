"""Reads pages by OCR: ``python -P __main__.py FILE MEMORY SECONDS``, see :mod:`posology.corpus.ocr`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(path: str, memory: int, seconds: int) -> None:
    """Answer numbers of pages.

    Args:
        path: of the file.
        memory: maximum bytes of this process.
        seconds: maximum processor time of a page.
    """
    import pypdfium2

    from posology.corpus.ocr.models import Models

    limit(memory, seconds)
    models = Models()
    document = pypdfium2.PdfDocument(path)
    for line in sys.stdin:
        limit(memory, seconds)
        _print(answer(document, int(line), models))


def answer(document: Any, number: int, models: Any) -> dict[str, Any]:
    """Return what is read of a page; its picture is gone before that of the next page is made.

    Args:
        document: of PDFium.
        number: of the page, counted from 1.
        models: see :class:`posology.corpus.ocr.models.Models`.
    """
    import pypdfium2

    from posology.corpus.ocr.page import picture, reply

    try:
        page = document[number - 1]
        shown = picture(page)
        page.close()
        return reply(shown, models)
    except (pypdfium2.PdfiumError, MemoryError) as error:
        return {"wrong": f"OCR cannot read it: {error}"}


def limit(memory: int, seconds: int) -> None:
    """Bound the memory of this process, and the processor time that it takes from now on."""
    try:
        import resource
    except ImportError:
        return  # on Windows, there is none
    used = resource.getrusage(resource.RUSAGE_SELF)
    time = int(used.ru_utime + used.ru_stime) + 1 + seconds
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, time),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(
            kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
        )


def _print(value: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    # of this Posology, however it was found
    sys.path.insert(0, str(Path(__file__).parents[3]))
    main(sys.argv[1], *map(int, sys.argv[2:]))
