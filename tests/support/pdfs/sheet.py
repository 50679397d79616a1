"""Typesets PDFs with known sentences."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from tests.support.pdfs.writers import LatexWriter, WordWriter

#: words that the typesetter may divide, and where
DIVIDED = {
    "hypertension": 5, "cardiovascular": 6, "randomisation": 6, "international": 5, "pharmacology": 6,
    "significantly": 6, "concentration": 6, "anticoagulant": 4, "administration": 8, "haemorrhage": 5,
}  # fmt: skip
#: compounds that keep their hyphen where a line ends at it
COMPOUNDS = ("placebo-controlled", "drug-eluting", "low-dose")
WIDTH, HEIGHT = A4
LEFT, TOP, FOOT = 60.0, 780.0, 70.0
TITLE = "Low doses of aspirin after minor stroke: a randomised trial"
_SUBJECTS = (
    "aspirin", "warfarin", "the new anticoagulant", "early administration", "a low-dose regimen",
    "the drug-eluting stent", "treatment of hypertension", "a placebo-controlled comparison",
)  # fmt: skip
_VERBS = ("lowered", "raised", "significantly reduced", "did not change", "doubled", "halved")
_OBJECTS = (
    "the rate of haemorrhage", "cardiovascular mortality", "the plasma concentration of glucose",
    "the need for admission", "the risk of a second stroke", "time until randomisation",
)  # fmt: skip
_ENDS = (
    "within {n} days", "among {n} adults of the international cohort", "in group {n}",
    "after {n} doses of 81 mg", "at visit {n} (p = 0.0{d})",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A PDF and what a reader should find in it."""

    content: bytes
    #: ``None``: the file's name
    title: str | None
    #: sentences in reading order, each with its first and last page; with U+FFFD where a glyph has no Unicode
    sentences: tuple[tuple[str, int, int], ...]
    #: bad records, by page
    bad: tuple[int, ...] = ()
    #: what no passage has
    absent: tuple[str, ...] = ()


@dataclass(slots=True)
class Sheet:
    """Typesets a document, and remembers its sentences with their pages."""

    #: ReportLab's, or one of :mod:`~tests.support.pdfs.writers` that has a part of it
    canvas: Any
    stream: io.BytesIO
    font: str = "Times-Roman"
    size: float = 10.0
    page: int = 1
    found: list[tuple[str, int, int]] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    #: called with the place of each line of text
    beside: Callable[[float, float, float], None] | None = None
    _random: random.Random = field(default_factory=lambda: random.Random(7))
    _number: int = 100

    def sentences(self, count: int) -> list[str]:
        """Return new sentences; none is like another."""
        made = []
        for _ in range(count):
            self._number += 1
            pick = self._random.choice
            end = pick(_ENDS).format(n=self._number, d=self._random.randint(1, 9))
            text = f"{pick(_SUBJECTS)} {pick(_VERBS)} {pick(_OBJECTS)} {end}."
            made.append(text[0].upper() + text[1:])
        return made

    def lines(self, text: str, width: float, *, divide: bool = False) -> list[str]:
        """Return the lines of a paragraph."""
        found: list[str] = []
        line = ""
        for whole in text.split():
            word = whole
            for part, rest in _parts(word) if divide else []:
                if (
                    rest
                    and self._fits(f"{line} {part}".strip(), width)
                    and not self._fits(f"{line} {word}".strip(), width)
                ):
                    found.append(f"{line} {part}".strip())
                    line, word = "", rest
                    break
            if self._fits(f"{line} {word}".strip(), width):
                line = f"{line} {word}".strip()
            else:
                found.append(line)
                line = word
        return [*found, line]

    def _fits(self, text: str, width: float) -> bool:
        return self._width(text) <= width

    def _width(self, text: str) -> float:
        return float(stringWidth(text, self.font, self.size))

    def draw(self, lines: Sequence[str], x: float, y: float, *, width: float = 0) -> float:
        """Draw lines, justified to ``width`` if given, and return where the next begins."""
        self.canvas.setFont(self.font, self.size)
        for i, line in enumerate(lines):
            text = self.canvas.beginText(x, y)
            room = width - self._width(line)
            justified = width and i < len(lines) - 1 and " " in line
            text.setWordSpace(room / line.count(" ") if justified else 0)
            text.textOut(line)
            self.canvas.drawText(text)
            if self.beside is not None:
                self.beside(x, y, width or self._width(line))
            y -= 1.2 * self.size
        return y

    def set(self, count: int, x: float, y: float, width: float, *, divide: bool = False) -> float:
        """Typeset one paragraph of new sentences on this page, justified."""
        made = self.sentences(count)
        self.know(made)
        return self.draw(self.lines(" ".join(made), width, divide=divide), x, y, width=width) - 6

    def column(self, paragraphs: int, x: float, y: float, width: float) -> float:
        """Typeset several paragraphs of four sentences."""
        for _ in range(paragraphs):
            y = self.set(4, x, y, width)
        return y

    def know(self, sentences: Iterable[str], first: int = 0, last: int = 0) -> None:
        """Remember sentences of this page, or of given pages."""
        self.found += ((one, first or self.page, last or first or self.page) for one in sentences)

    def large(self, lines: Sequence[str], y: float = TOP, size: float = 17) -> float:
        """Draw a title and authors."""
        self.canvas.setFont("Times-Bold", size)
        for line in lines:
            self.canvas.drawString(LEFT, y, line)
            y -= 1.2 * size
        self.canvas.setFont("Times-Roman", 9)
        self.canvas.drawString(LEFT, y - 4, "Ada Byron, Florence Night, Ignaz Semmel")
        return y - 30

    def heading(self, text: str, x: float, y: float) -> float:
        """Draw a heading."""
        self.canvas.setFont("Times-Bold", 11)
        self.canvas.drawString(x, y, text)
        return y - 16

    def turn(self) -> None:
        """Begin a new page."""
        self.canvas.showPage()
        self.page += 1

    def done(self, title: str | None = TITLE) -> Sample:
        """Return the document."""
        self.canvas.save()
        return Sample(
            content=self.stream.getvalue(), title=title, sentences=tuple(self.found), bad=tuple(self.bad),
            absent=tuple(self.absent),
        )  # fmt: skip


def _parts(word: str) -> list[tuple[str, str]]:
    """Return the beginnings and ends of a word, where it may be divided."""
    bare = word.strip("().,").casefold()
    if bare in COMPOUNDS:
        cut = word.index("-") + 1
        return [(word[:cut], word[cut:])]
    cut = DIVIDED.get(bare, 0)
    return [(word[:cut] + "-", word[cut:])] if cut else []


#: programs that write PDFs, and their fonts of text
WRITERS: dict[str, tuple[type[LatexWriter] | type[WordWriter], str]] = {
    "LaTeX": (LatexWriter, "Times-Roman"),
    "Word": (WordWriter, "Vera"),
}


def sheet(
    named: str = TITLE,
    *,
    pagesize: tuple[float, float] = A4,
    encrypt: str = "",
    writer: str = "ReportLab",
) -> Sheet:
    """Return an empty document.

    Args:
        named: the title in its data.
        pagesize: points.
        encrypt: its password.
        writer: a program of :data:`WRITERS`, or ReportLab.
    """
    stream = io.BytesIO()
    if writer in WRITERS:
        kind, font = WRITERS[writer]
        other = kind(stream, pagesize)
        other.setTitle(named)
        return Sheet(other, stream, font)
    lock = StandardEncryption(encrypt, strength=128) if encrypt else None
    canvas = Canvas(stream, pagesize=pagesize, invariant=1, encrypt=lock)
    canvas.setTitle(named)
    return Sheet(canvas, stream)
