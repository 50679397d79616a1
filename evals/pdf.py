"""Reads PDFs with known text: titles, sentences and pages that are right, and pages per second, before and now.

Usage: ``python -m evals.pdf``. "Before" is pypdf, as :mod:`evals.pdf_before` read with it. Of pdfminer.six and
pdfplumber, where they are installed, the plain text is taken: its titles and pages are not compared.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from evals import pdf_before
from evals.pdf_samples import NAMES, sample
from evals.pdf_sheet import Sample
from posology.corpus import pdf
from posology.corpus.drafts import file_title
from posology.corpus.items import Item, Record
from posology.errors import BadFile
from posology.text.sentences import split
from posology.types import Passage

#: repetitions of the reading whose speed is measured
TIMES = 5
#: the file by which speed is measured, and its pages
DENSE, DENSE_PAGES = "30 pages", 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """What a reader found in one file."""

    #: whether the title of every passage is exactly right
    title: bool
    #: share of the sentences that are sentences of passages, in the order of the file
    sentences: float
    #: share of the sentences found whose pages are right
    pages: float
    #: sentences that stand in the passages more than once
    twice: int
    #: reason why nothing is read; ``None``: something is
    refused: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """A sentence of a passage, with its first and last page."""

    text: str
    pages: tuple[int, int] | None


def score(made: Sample, read: Callable[[Path], Iterator[Item]], path: Path) -> Score:
    """Return what a reader finds in a file, which is written to ``path``."""
    path.write_bytes(made.content)
    items = list(read(path))
    passages = [item.passage for item in items if isinstance(item, Record)]
    title = made.title or file_title(path, *pdf.SUFFIXES)
    found = [one for passage in passages for one in _sentences(passage)]
    text = "\n".join(" ".join(passage.text.split()) for passage in passages)
    order = _in_order([text for text, _, _ in made.sentences], [one.text for one in found])
    right = sum(found[j].pages == made.sentences[i][1:] for i, j in order)
    return Score(
        title=bool(passages) and all(passage.title == title for passage in passages),
        sentences=len(order) / len(made.sentences) if made.sentences else 1.0,
        pages=right / len(order) if order else 0.0,
        twice=sum(text.count(one) > 1 for one, _, _ in made.sentences),
        refused=next((item.reason for item in items if isinstance(item, BadFile)), None),
    )


def _sentences(passage: Passage) -> Iterator[_Found]:
    for one in split(passage.text):
        pages = None
        if passage.pages is not None:
            pages = passage.pages.span(one.start, one.end)
        elif passage.section is not None and passage.section.startswith("page "):
            number = int(passage.section.removeprefix("page "))
            pages = (number, number)
        yield _Found(text=" ".join(one.of(passage.text).split()), pages=pages)


def _in_order(wanted: Sequence[str], found: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest run of wanted sentences that were found in order, as places in both."""
    places = {text: i for i, text in reversed(list(enumerate(found)))}
    # the end of the best run of each length, and what was before each
    ends: list[int] = []
    runs: list[int] = []
    before: dict[int, int | None] = {}
    for i, text in enumerate(wanted):
        if (j := places.get(text)) is None:
            continue
        length = bisect_left(ends, j)
        before[i] = runs[length - 1] if length else None
        ends[length : length + 1] = [j]
        runs[length : length + 1] = [i]
    order: list[tuple[int, int]] = []
    last = runs[-1] if runs else None
    while last is not None:
        order.append((last, places[wanted[last]]))
        last = before[last]
    return order[::-1]


def _of_text(pages: Iterable[str]) -> Iterator[_Found]:
    for number, page in enumerate(pages, start=1):
        for one in split(page):
            yield _Found(text=" ".join(one.of(page).split()), pages=(number, number))


def _pdfminer(path: Path) -> Iterator[str]:
    from pdfminer.high_level import extract_pages

    for page in extract_pages(path):
        yield "\n\n".join(box.get_text() for box in page if hasattr(box, "get_text"))


def _pdfplumber(path: Path) -> Iterator[str]:
    import pdfplumber

    with pdfplumber.open(path) as document:
        for page in document.pages:
            yield page.extract_text()


def _pypdfium2(path: Path) -> Iterator[str]:
    import pypdfium2

    document = pypdfium2.PdfDocument(path)
    for page in document:
        yield page.get_textpage().get_text_range().replace("\ufffe", "-")


#: plain texts of libraries, by the name to import
PEERS: dict[str, Callable[[Path], Iterator[str]]] = {
    "pypdfium2": _pypdfium2,
    "pdfminer": _pdfminer,
    "pdfplumber": _pdfplumber,
}


def _peer(made: Sample, texts: Callable[[Path], Iterator[str]], path: Path) -> str:
    path.write_bytes(made.content)
    try:
        found = [one.text for one in _of_text(texts(path))]
    except Exception as error:  # noqa: BLE001 - each library has its own errors
        return type(error).__name__
    if not made.sentences:
        return "–"
    wanted = [text for text, _, _ in made.sentences]
    return f"{100 * len(_in_order(wanted, found)) / len(wanted):.0f}"


def _shown(one: Score) -> str:
    if one.refused is not None:
        return f"{one.refused} | | "
    return f"{'yes' if one.title else 'no'} | {100 * one.sentences:.0f} | {100 * one.pages:.0f}"


def _speed(run: Callable[[], object]) -> float:
    """Return pages per second of processor time, the median of several readings of the longest file."""
    taken = []
    for _ in range(TIMES):
        start = _processor()
        run()
        taken.append(_processor() - start)
    return DENSE_PAGES / statistics.median(taken)


def _processor() -> float:
    """Return seconds of processor time of this process and of those that ended."""
    taken = os.times()
    return taken.user + taken.system + taken.children_user + taken.children_system


def main() -> None:
    """Print a row per file, and the speeds."""
    peers = {name: texts for name, texts in PEERS.items() if importlib.util.find_spec(name)}
    out = sys.stdout.write
    out(
        f"| file | title | sentences, % | pages, % | before: title | sentences | pages | {' | '.join(peers)} |\n"
    )
    out(f"| --- |{' --- |' * (6 + len(peers))}\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a_file.pdf"
        for name in NAMES:
            made = sample(name)
            now, before = score(made, pdf.read, path), score(made, pdf_before.read, path)
            others = " | ".join(_peer(made, texts, path) for texts in peers.values())
            out(f"| {name} | {_shown(now)} | {_shown(before)} | {others} |\n")
        path.write_bytes(sample(DENSE).content)
        speeds = {
            "now": _speed(lambda: list(pdf.read(path))),
            "before": _speed(lambda: list(pdf_before.read(path))),
        }
        for name, texts in peers.items():
            speeds[name] = _speed(partial(lambda read: list(read(path)), texts))
        for name, speed in speeds.items():
            out(f"{name}: {speed:.0f} pages per second of processor time\n")


if __name__ == "__main__":
    main()
