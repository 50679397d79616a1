"""Reads PDFs with known text: titles, sentences and pages that are right, and pages per second.

Usage: ``python -m evals.corpus.pdf [--files]``. With an earlier tree before this one, the same files are read as that one reads
them: ``PYTHONPATH=EARLIER:. python -m evals.corpus.pdf``, where ``EARLIER`` is a folder that holds that tree's ``posology`` alone,
from another folder. A sentence counts where it is one of the passages', whole and in order. A *false* one is a readable
sentence of the passages that is none of the file.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from posology.corpus import pdf
from posology.corpus.drafts import file_title
from posology.corpus.items import Item, Record, Remark
from posology.errors import BadFile
from posology.text.sentences import split
from posology.types import Passage
from tests.support.pdfs.articles import ARTICLES
from tests.support.pdfs.glyphs import GLYPHS, HIDDEN
from tests.support.pdfs.marked import HEADS, LISTS, MARKS, NUMBERS
from tests.support.pdfs.sheet import Sample

#: repetitions of the reading whose speed is measured
TIMES = 5
#: the file by which speed is measured, and its pages
DENSE, DENSE_PAGES = "30 pages", 30
KINDS: Mapping[str, Mapping[str, Callable[[], Sample]]] = {
    "articles": ARTICLES,
    "numbers of lines": NUMBERS,
    "numbers that are none of lines": LISTS,
    "watermarks and stamps": MARKS,
    "glyphs": GLYPHS,
    "hidden text": HIDDEN,
    "running heads": HEADS,
}
_UNKNOWN = "\ufffd"


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """Counts of what the reader finds in one file."""

    #: whether the title of every passage is exactly right
    title: bool
    #: number of sentences to find: without a glyph that has no Unicode
    wanted: int
    #: those that are sentences of passages, in the order of the file
    found: int
    #: those of the found whose pages are right
    pages: int
    #: sentences that stand in the passages more than once
    twice: int
    #: what no passage should have: heads, watermarks of several pages, hidden text
    kept: tuple[str, ...]
    #: sentences of the passages that are none of the file
    false: tuple[str, ...]
    #: pages that remarks name
    bad: tuple[int, ...]
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
    known = {sentence for sentence, _, _ in made.sentences}
    wanted = [one for one in made.sentences if _UNKNOWN not in one[0]]
    order = _in_order([sentence for sentence, _, _ in wanted], [one.text for one in found])
    return Score(
        title=bool(passages) and all(passage.title == title for passage in passages),
        wanted=len(wanted),
        found=len(order),
        pages=sum(found[j].pages == wanted[i][1:] for i, j in order),
        twice=sum(text.count(sentence) > 1 for sentence in known),
        kept=tuple(one for one in made.absent if one in text),
        # a line without an end is a head, or authors
        false=tuple(
            one.text
            for one in found
            if one.text.endswith(".") and one.text not in known and _UNKNOWN not in one.text
        ),
        bad=tuple(
            int(item.record.split()[-1])
            for item in items
            if isinstance(item, Remark) and item.record is not None
        ),
        refused=next((item.reason for item in items if isinstance(item, BadFile)), None),
    )


def _sentences(passage: Passage) -> Iterator[_Found]:
    for one in split(passage.text):
        pages = None if passage.pages is None else passage.pages.span(one.start, one.end)
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
    return time.process_time() + taken.children_user + taken.children_system


def _row(name: str, scores: Sequence[Score]) -> str:
    wanted, found = sum(one.wanted for one in scores), sum(one.found for one in scores)
    share = f"{100 * found / wanted:.1f}" if wanted else scores[0].refused or "–"
    false = sum(len(one.false) for one in scores)
    kept = sum(len(one.kept) for one in scores)
    titles = sum(one.title for one in scores)
    pages = f"{sum(one.pages for one in scores)} of {found}"
    return (
        f"| {name} | {len(scores)} | {titles} | {wanted} | {share} | {false} | {kept} | {pages} |\n"
    )


def main() -> None:
    """Print a row per kind, or per file, and the speed."""
    out = sys.stdout.write
    out(f"Reads with {pdf.__file__}\n")
    out(
        "| kind | files | titles right | sentences | found, % | false | heads and hidden text kept | pages right |\n"
    )
    out(f"| ---{' | ---' * 7} |\n")
    every: list[Score] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a_file.pdf"
        for kind, makers in KINDS.items():
            scores = {name: score(make(), pdf.read, path) for name, make in makers.items()}
            every += scores.values()
            if "--files" in sys.argv:
                for name, one in scores.items():
                    out(_row(f"{kind}: {name}", [one]))
                    out("".join(f"    {text}\n" for text in (*one.false, *one.kept)))
            else:
                out(_row(kind, list(scores.values())))
        out(_row("all", every))
        path.write_bytes(ARTICLES[DENSE]().content)
        out(f"{_speed(lambda: list(pdf.read(path))):.0f} pages per second of processor time\n")


if __name__ == "__main__":
    main()
