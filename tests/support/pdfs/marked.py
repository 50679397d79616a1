"""PDFs with matter that is none of their text: numbers of lines, watermarks, stamps, notices, heads; and lists like it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from reportlab.pdfbase.pdfmetrics import stringWidth

from tests.support.pdfs.sheet import HEIGHT, LEFT, TITLE, TOP, WIDTH, Sample, Sheet, sheet

ONE = ((LEFT, 460.0),)
TWO = ((LEFT, 215.0), (LEFT + 250, 215.0))


@dataclass(slots=True)
class _Numbers:
    """Numbers the lines of a sheet."""

    on: Sheet
    #: left edges and widths of the columns whose lines are numbered
    columns: Sequence[tuple[float, float]]
    #: "left", "right" or "both" sides of a column
    side: str = "left"
    #: between number and text, points
    gap: float = 14.0
    every: int = 1
    size: float = 8.0
    gray: float = 0.0
    count: int = 0

    def __call__(self, x: float, y: float, width: float) -> None:
        column = next(((at, wide) for at, wide in self.columns if at == x), None)
        if column is None:
            return
        self.count += 1
        if self.count % self.every:
            return
        text, canvas = str(self.count), self.on.canvas
        canvas.saveState()
        canvas.setFont(self.on.font, self.size)
        canvas.setFillGray(self.gray)
        if self.side in ("left", "both"):
            wide = stringWidth(text, self.on.font, self.size)
            canvas.drawString(x - self.gap - wide, y, text)
        if self.side in ("right", "both"):
            canvas.drawString(x + column[1] + self.gap, y, text)
        canvas.restoreState()


def _numbered(
    writer: str,
    *,
    pages: int = 2,
    columns: Sequence[tuple[float, float]] = ONE,
    numbered: Sequence[tuple[float, float]] | None = None,
    anew: bool = False,
    start: int = 0,
    side: str = "left",
    gap: float = 14.0,
    every: int = 1,
    size: float = 8.0,
    gray: float = 0.0,
) -> Sample:
    one = sheet(writer=writer)
    y = one.large([TITLE])
    numbers = _Numbers(one, columns if numbered is None else numbered)
    numbers.side, numbers.gap, numbers.every = side, gap, every
    numbers.size, numbers.gray, numbers.count = size, gray, start
    one.beside = numbers
    for page in range(pages):
        for x, width in columns:
            one.column(5, x, y, width)
        y = TOP
        if page < pages - 1:
            one.turn()
            numbers.count = start if anew else numbers.count
    return one.done()


def _short(writer: str) -> Sample:
    """The last page has two lines, of which one is numbered."""
    one = sheet(writer=writer)
    one.beside = _Numbers(one, ONE, every=5)
    one.column(6, LEFT, one.large([TITLE]), 460)
    one.turn()
    one.set(2, LEFT, TOP, 460)
    return one.done()


def _mark(
    one: Sheet, text: str, angle: float, size: float, *, gray: float = 0.8, at: tuple[float, float]
) -> None:
    one.canvas.saveState()
    one.canvas.setFillGray(gray)
    one.canvas.translate(*at)
    one.canvas.rotate(angle)
    one.canvas.setFont("Helvetica", size)
    wide = stringWidth(text, "Helvetica", size)
    one.canvas.drawString(-wide / 2, -0.35 * size, text)
    one.canvas.restoreState()


MIDDLE = (WIDTH / 2, HEIGHT / 2 + 150)


def _stamped(
    writer: str,
    angle: float,
    size: float,
    *,
    text: str = "DRAFT",
    pages: int = 1,
    behind: bool = True,
    at: tuple[float, float] = MIDDLE,
    columns: Sequence[tuple[float, float]] = ((LEFT, 470.0),),
) -> Sample:
    one = sheet(writer=writer)
    y = one.large([TITLE])
    for page in range(pages):
        if behind:
            _mark(one, text, angle, size, at=at)
        if pages > 2:
            one.absent.append(text)
        for x, width in columns:
            one.column(6, x, y, width)
        if not behind:
            _mark(one, text, angle, size, at=at)
        y = TOP
        if page < pages - 1:
            one.turn()
    return one.done()


def _spaced(writer: str) -> Sample:
    """The letters of a level watermark, far from each other."""
    one = sheet(writer=writer)
    y = one.large([TITLE])
    for i, letter in enumerate("COPY"):
        _mark(one, letter, 0, 80, at=(130 + 110 * i, HEIGHT / 2 + 150))
    one.column(7, LEFT, y, 470)
    return one.done()


def _over_the_end(writer: str, *, angle: float) -> Sample:
    """A sentence goes on over a page's end, past a watermark."""
    one = sheet(writer=writer)
    y = one.large([TITLE])
    made = one.sentences(12)
    lines = one.lines(" ".join(made), 400)
    _mark(one, "CONFIDENTIAL", angle, 60, at=MIDDLE)
    one.draw(lines[:7], LEFT, y, width=400)
    shown = len(" ".join(lines[:7]))
    read = 0
    for text in made:
        end = read + len(text)
        one.know([text], 2 if read >= shown else 1, 1 if end <= shown else 2)
        read = end + 1
    one.turn()
    _mark(one, "CONFIDENTIAL", angle, 60, at=MIDDLE)
    one.draw(lines[7:], LEFT, TOP, width=400)
    return one.done()


def _headed(writer: str, heads: Sequence[str], *, pages: int, size: float = 8.0) -> Sample:
    """Heads in lines above the text, of odd and even pages in turn where there is a ``|``; # is the page's number."""
    one = sheet(writer=writer)
    y = one.large([TITLE], TOP - 30)
    for page in range(1, pages + 1):
        one.canvas.setFont(one.font, size)
        for i, head in enumerate(heads):
            shown = head.split("|")[page % 2] if "|" in head else head
            shown = shown.replace("#", str(page))
            one.canvas.drawString(LEFT, 815 - 10 * i, shown)
            one.absent.append(shown)
        one.column(6, LEFT, y, 470)
        y = TOP - 20
        if page < pages:
            one.turn()
    return one.done()


#: lists and tables of numbers that rise
def _references(*, wrapped: bool) -> Sample:
    one = sheet()
    y = one.set(4, LEFT, one.large([TITLE]), 470)
    y = one.heading("References", LEFT, y)
    for number in range(1, 13):
        (text,) = one.sentences(1)
        authors = f"Smith {chr(64 + number)}, Jones K."
        entry = f"{authors} {text}" if wrapped else f"Jones {text}"
        one.canvas.setFont(one.font, one.size)
        one.canvas.drawString(LEFT, y, str(number))
        lines = one.lines(entry, 260 if wrapped else 460)
        y = one.draw(lines, LEFT + 18, y) - 2
        one.know([f"{number} {authors}", text] if wrapped else [f"{number} {entry}"])
    return one.done()


def _values(name: str, values: Sequence[int], *, left: float) -> Sample:
    """A table whose first column rises."""
    one = sheet()
    y = one.set(3, LEFT, one.large([TITLE]), 470)
    rows = [
        (name, "Salt drops", "Plain drops"),
        *((str(v), f"{v + 3} of 40", f"{v + 5} of 41") for v in values),
    ]
    y -= 6
    for row in rows:
        one.canvas.setFont(one.font, one.size)
        for x, cell in zip((left, left + 120, left + 240), row, strict=True):
            one.canvas.drawString(x, y, cell)
        one.know([" | ".join(row)])
        y -= 13
    one.set(3, LEFT, y - 10, 470)
    return one.done()


def _steps() -> Sample:
    """Numbered lines in the middle of a page, in small letters, a step each."""
    one = sheet()
    y = one.set(5, LEFT, one.large([TITLE]), 470)
    for number in range(1, 7):
        text = f"take {number + 2} drops of salt with a glass of water in the morning."
        one.canvas.setFont(one.font, one.size)
        one.canvas.drawString(LEFT, y, str(number))
        one.canvas.drawString(LEFT + 14, y, text)
        one.know([f"{number} {text}"])
        y -= 12
    one.set(5, LEFT, y - 12, 470)
    return one.done()


Maker = Callable[[], Sample]

NUMBERS: dict[str, Maker] = {
    "left, ReportLab": partial(_numbered, "ReportLab"),
    "left, LaTeX": partial(_numbered, "LaTeX", gap=20),
    "left, Word": partial(_numbered, "Word"),
    "close to the text, ReportLab": partial(_numbered, "ReportLab", gap=3, size=10),
    "close to the text, Word": partial(_numbered, "Word", gap=4, size=9),
    "right, LaTeX": partial(_numbered, "LaTeX", side="right"),
    "right, close, Word": partial(_numbered, "Word", side="right", gap=4),
    "both sides, ReportLab": partial(_numbered, "ReportLab", side="both"),
    "every fifth, ReportLab": partial(_numbered, "ReportLab", every=5),
    "every fifth, close, LaTeX": partial(_numbered, "LaTeX", every=5, gap=4),
    "every second, Word": partial(_numbered, "Word", every=2),
    "anew on each page, Word": partial(_numbered, "Word", pages=3, anew=True),
    "from page to page, LaTeX": partial(_numbered, "LaTeX", pages=4),
    "from 985, ReportLab": partial(_numbered, "ReportLab", start=984),
    "gray and small, Word": partial(_numbered, "Word", size=5, gray=0.6),
    "two columns, LaTeX": partial(_numbered, "LaTeX", columns=TWO, gap=5),
    "two columns, every fifth between, ReportLab": partial(
        _numbered, "ReportLab", columns=TWO, numbered=TWO[1:], every=5, gap=10
    ),
    "a last page of two lines, ReportLab": partial(_short, "ReportLab"),
}  # fmt: skip
LISTS: dict[str, Maker] = {
    "references": partial(_references, wrapped=True),
    "references of a line each": partial(_references, wrapped=False),
    "visits at the edge": partial(_values, "Visit", range(1, 11), left=LEFT),
    "visits outside the edge": partial(_values, "Visit", range(1, 11), left=LEFT - 25),
    "doses": partial(_values, "Dose", range(10, 110, 10), left=LEFT),
    "ages": partial(_values, "Age", range(60, 70), left=LEFT + 20),
    "steps": _steps,
}
MARKS: dict[str, Maker] = {
    **{
        f"{angle}°, {size} points, {writer}": partial(_stamped, writer, angle, size)
        for angle, size, writer in (
            (3, 90, "Word"), (8, 60, "ReportLab"), (15, 120, "LaTeX"), (30, 60, "ReportLab"), (30, 90, "Word"),
            (45, 90, "LaTeX"), (45, 140, "Word"), (45, 30, "ReportLab"), (55, 100, "Word"), (75, 60, "LaTeX"), (315, 90, "ReportLab"),
            (0, 90, "ReportLab"), (0, 24, "LaTeX"), (0, 60, "Word"),
        )
    },
    "45°, over the text, two columns": partial(
        _stamped, "LaTeX", 45, 80, behind=False, columns=TWO, text="NOT PEER REVIEWED"
    ),
    "45°, three pages": partial(_stamped, "Word", 45, 110, pages=3),
    "level, three pages": partial(_stamped, "ReportLab", 0, 70, pages=3, text="CONFIDENTIAL"),
    "level, of letters": partial(_spaced, "ReportLab"),
    "margin, 90°": partial(
        _stamped, "LaTeX", 90, 24, text="ACCEPTED MANUSCRIPT", at=(28.0, 500.0)
    ),
    "notice in the margin, 270°": partial(
        _stamped, "Word", 270, 7, pages=3, at=(575.0, 450.0),
        text="Downloaded from https://example.org/ by guest on 12 May 2020",
    ),
    "45°, over a page's end": partial(_over_the_end, "ReportLab", angle=45),
    "level, over a page's end": partial(_over_the_end, "LaTeX", angle=0),
}  # fmt: skip
HEADS: dict[str, Maker] = {
    "page of pages, Word": partial(_headed, "Word", ["Salt drops at home   Page # of 4"], pages=4),
    "in turn, LaTeX": partial(_headed, "LaTeX", ["# Byron et al.|Notes on Salt 2020; 5: #"], pages=6),
    "four lines, ReportLab": partial(
        _headed, "ReportLab", pages=3, size=7,
        heads=[
            "medical preprint doi: 10.1000/20.5; this version posted May 12, 2020. The copyright holder has placed this",
            "preprint (which was not certified by peer review) in a repository. It is made available",
            "under a license of some kind to display the preprint", "forever",
        ],
    ),
    "in turn, an article of four pages, Word": partial(_headed, "Word", ["Byron et al.|Notes on Salt 2020"], pages=5),
    "in the type of the text, Word": partial(
        _headed, "Word", ["Salt drops at home, version of May"], pages=4, size=10
    ),
}  # fmt: skip
