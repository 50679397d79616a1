"""Reads scanned pages with known text by OCR: shares of words and numbers that are right.

Usage: ``python -m evals.corpus.scans [--dpi N] [--pages N]``. ``--dpi`` draws the pages at another resolution; ``--pages``
reads one file of as many pages instead, and prints the most memory that its processes used.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pypdfium2
from PIL import Image, ImageFilter

from posology.corpus import pdf
from posology.corpus.items import Record
from posology.corpus.ocr import page as ocr
from posology.corpus.ocr.models import Models
from posology.corpus.pdf import process
from posology.corpus.pdf.layout import lines
from tests.support.pdfs.scans import SCANS, Scan, changed, compare, noisy, pictured, scan, typeset


def _blurred(seen: Image.Image) -> Image.Image:
    return seen.filter(ImageFilter.GaussianBlur(3))


def _small(seen: Image.Image) -> Image.Image:
    return seen.resize((seen.width // 3, seen.height // 3)).resize(seen.size)


#: pages that are beyond what is promised: they show what becomes unknown, and what becomes false
HARD: Mapping[str, Callable[[], Scan]] = {
    "blurred": partial(changed, _blurred),
    "67 dpi": partial(changed, _small),
    "noise": partial(changed, partial(noisy, much=90)),
}


def main() -> None:
    """Print the table, or the memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dpi", type=int, default=ocr.DPI)
    parser.add_argument("--pages", type=int)
    given = parser.parse_args()
    if given.pages:
        _memory(given.pages)
        return
    ocr.DPI = given.dpi
    models = Models()
    print("|page|words|right, %|numbers|right, %|unknown words|false numbers|s|")
    print("|---|---|---|---|---|---|---|---|")
    for name, make in {**SCANS, **HARD}.items():
        _row(name, make(), models)


def _row(name: str, made: Scan, models: Models) -> None:
    begun = time.process_time()
    with pypdfium2.PdfDocument(made.content) as document:
        replies = [
            ocr.reply(ocr.picture(document[page - 1]), models) for page in made.scanned or (1,)
        ]
    taken = time.process_time() - begun
    read = " ".join(
        line.text
        for reply in replies
        for line in lines([process._word(word) for word in reply["words"]], 1)  # noqa: SLF001 - as it is parsed
    )
    right = compare(made.scanned_text, read)
    shares = [
        f"{100 * of / among:.1f}" if among else "–"
        for of, among in ((right.right, right.words), (right.right_numbers, right.numbers))
    ]
    print(f"|{name}|{right.words}|{shares[0]}|{right.numbers}|{shares[1]}|{right.unknown}|{len(right.false)}|{taken:.1f}|")  # fmt: skip


def _memory(count: int) -> None:
    """Read a file of many scanned pages."""
    _, page = typeset()
    seen = scan(page)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scan.pdf"
        path.write_bytes(pictured([seen] * count))
        before = _most(resource.RUSAGE_SELF)
        begun = time.perf_counter()
        read = sum(isinstance(item, Record) for item in pdf.read(path))
        taken = time.perf_counter() - begun
    print(
        f"{count} pages, {read} passages, {taken:.0f} s; this process {before:.0f} MB before and "
        f"{_most(resource.RUSAGE_SELF):.0f} MB after, that of OCR {_most(resource.RUSAGE_CHILDREN):.0f} MB"
    )


def _most(who: int) -> float:
    return float(np.round(resource.getrusage(who).ru_maxrss / 1000))


if __name__ == "__main__":
    main()
