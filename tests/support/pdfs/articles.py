"""PDFs with known text, as journals, offices and scanners make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reportlab.lib.pagesizes import A4, landscape

from tests.support.pdfs.sheet import FOOT, HEIGHT, LEFT, TITLE, TOP, WIDTH, Sample, Sheet, sheet


def _one_column() -> Sample:
    one = sheet()
    one.column(6, LEFT, one.heading("Methods", LEFT, one.large([TITLE])), 470)
    return one.done()


def _two_columns(named: str = TITLE, lines: Sequence[str] = (TITLE,)) -> Sheet:
    one = sheet(named)
    y = one.large(lines)
    one.column(7, LEFT, y, 225)
    one.column(7, LEFT + 245, y, 225)
    return one


def _across() -> Sample:
    """Two columns whose lines a word processor writes by rows; baselines differ by 3 points."""
    one = sheet()
    y = one.large([TITLE])
    left, right = one.sentences(30), one.sentences(30)
    one.know([*left, *right])
    columns = [one.lines(" ".join(some), 225) for some in (left, right)]
    for i in range(max(map(len, columns))):
        for x, off, some in ((LEFT, 0, columns[0]), (LEFT + 245, 3, columns[1])):
            one.draw(some[i : i + 1], x, y - 12 * i - off)
    return one.done()


def _ligatures() -> Sample:
    one = sheet()
    y = one.large([TITLE])
    one.font = "Vera"
    texts = [
        "The first five patients had a significant influx of fluid.",
        "A flat profile of 5 µg/m² was confirmed in fifty files.",
        "Findings in the field reflect the definition of benefit.",
    ]
    one.know(texts)
    shown = " ".join(texts).replace("fi", "ﬁ").replace("fl", "ﬂ")
    one.draw(one.lines(shown, 400), LEFT, y)
    return one.done()


def _hyphens() -> Sample:
    one = sheet()
    y = one.large([TITLE])
    for _ in range(11):
        y = one.set(3, LEFT, y, 215, divide=True)
    return one.done()


def _running(pages: int, *, columns: bool) -> Sample:
    one = sheet()
    y = one.large([TITLE])
    width = 225 if columns else 470
    for number in range(pages):
        one.canvas.setFont("Helvetica", 8)
        head = "Byron et al." if number % 2 else "Journal of Trials 2019; 12: 40–71"
        one.canvas.drawString(LEFT, 810, head)
        if columns or number % 2:
            one.absent.append(head)
        one.canvas.drawString(280, 40, f"{number + 1} of {pages}" if columns else str(number + 1))
        for x in (LEFT, LEFT + 245) if columns else (LEFT,):
            one.column(7, x, y, width)
        y = TOP
        if number < pages - 1:
            one.turn()
    return one.done()


ROWS = (
    ("Outcome", "Aspirin", "Placebo", "Risk ratio"),
    ("Second stroke", "12 (4.1%)", "31 (10.2%)", "0.40"),
    ("Major haemorrhage", "7 (2.4%)", "3 (1.0%)", "2.33"),
    ("Death from any cause", "9 (3.1%)", "11 (3.6%)", "0.85"),
)


def _table(*, columns: bool) -> Sample:
    one = sheet()
    y = one.large([TITLE])
    if not columns:
        y = one.column(2, LEFT, y, 470)
    caption = ["Table 1.", "Outcomes after 90 days in both groups of the international trial."]
    one.know(caption)
    one.canvas.setFont("Times-Roman", 9)
    one.canvas.drawString(LEFT, y, " ".join(caption))
    y -= 16
    for row in ROWS:
        for x, cell in zip((LEFT, 210, 310, 430), row, strict=True):
            one.canvas.drawString(x, y, cell)
        y -= 13
        if columns:
            # words of other columns are beside it: it stays text
            one.know([" | ".join(row)])
        elif row is not ROWS[0]:
            values = zip(ROWS[0][1:], row[1:], strict=True)
            said = "; ".join(f"{heading}: {value}" for heading, value in values)
            one.know([f"Table 1, row {ROWS[0][0]} / {row[0]}: {said}."])
    y -= 14
    for x in (LEFT, LEFT + 245) if columns else (LEFT,):
        one.column(5, x, y, 225 if columns else 470)
    return one.done()


def _rotated() -> Sample:
    one = sheet()
    one.canvas.setPageRotation(90)
    one.canvas.translate(WIDTH, 0)
    one.canvas.rotate(90)
    one.column(5, LEFT, one.large([TITLE], 520), 700)
    return one.done()


def _landscape() -> Sample:
    """A wide page, and a page whose text stands upright on its side."""
    one = sheet(pagesize=landscape(A4))
    y = one.large([TITLE], 530)
    for x in (50, 300, 550):
        one.column(4, x, y, 225)
    one.turn()
    one.canvas.setPageSize(A4)
    one.canvas.translate(WIDTH, 0)
    one.canvas.rotate(90)
    one.column(5, LEFT, 520, 700)
    return one.done()


def _bullets() -> Sample:
    one = sheet()
    y = one.set(4, LEFT, one.large([TITLE]), 470)
    for mark in ("•", "•", "•", "1.", "2.", "3."):
        (text,) = one.sentences(1)
        text += " " + (more := one.sentences(1)[0])
        first = text.removesuffix(f" {more}")
        one.know([f"{mark} {first}", more])
        one.canvas.setFont(one.font, one.size)
        one.canvas.drawString(LEFT + 10, y, mark)
        y = one.draw(one.lines(text, 300), LEFT + 26, y)
    one.set(4, LEFT, y - 6, 470)
    return one.done()


#: drawn with ^ before what is raised and _ before what is lowered, and read
RAISED = (
    ("Platelets fell below 10^{9}/L in 3 of 41 patients.", "Platelets fell below 10^9/L in 3 of 41 patients."),
    ("The dose was 75 mg/m^{2} of body surface.", "The dose was 75 mg/m2 of body surface."),
    ("Oxygen (O_{2}) was given to all of them.", "Oxygen (O2) was given to all of them."),
    ("A count of 4.5 × 10^{−3} was the least.", "A count of 4.5 × 10^−3 was the least."),
)  # fmt: skip


def _raised() -> Sample:
    one = sheet()
    y = one.set(3, LEFT, one.large([TITLE]), 470)
    up = False
    for drawn, read in RAISED:
        text = one.canvas.beginText(LEFT, y)
        for i, part in enumerate(drawn.replace("}", "{").split("{")):
            small = i % 2 == 1
            text.setFont(one.font, 6.5 if small else 10)
            text.setRise((4 if up else -2) if small else 0)
            text.textOut(part.rstrip("^_") if not small else part)
            up = part.endswith("^")
        one.canvas.drawText(text)
        one.know([read])
        y -= 12
    one.set(3, LEFT, y - 6, 470)
    return one.done()


def _abstract() -> Sample:
    one = sheet()
    y = one.large([TITLE])
    one.canvas.rect(LEFT + 20, y - 100, 430, 115)
    one.font = "Times-Bold"
    y = one.set(6, LEFT + 30, y, 400)
    one.font = "Times-Roman"
    for x in (LEFT, LEFT + 245):
        one.column(5, x, y - 50, 225)
    return one.done()


def _caption() -> Sample:
    one = sheet()
    y = one.large([TITLE])
    made = one.sentences(8)
    one.know(made)
    lines = one.lines(" ".join(made), 225)
    after = one.draw(lines[:8], LEFT, y, width=225)
    one.canvas.rect(LEFT, after - 110, 225, 100, fill=1)
    one.size = 8
    caption = one.sentences(2)
    one.know(caption)
    below = one.draw(one.lines(" ".join(caption), 225), LEFT, after - 125)
    one.size = 10
    one.draw(lines[8:], LEFT, below - 12, width=225)
    one.column(5, LEFT + 245, y, 225)
    return one.done()


def _footnotes() -> Sample:
    """A paragraph that goes on over a page's end, with a footnote below its beginning."""
    one = sheet()
    y = one.column(6, LEFT, one.large([TITLE]), 470)
    made = one.sentences(9)
    lines = one.lines(" ".join(made), 470)
    one.draw(lines[:4], LEFT, y, width=470)
    one.draw(["—"], LEFT, FOOT + 14)
    one.size = 8
    (note,) = one.sentences(1)
    one.draw([f"* {note}"], LEFT, FOOT)
    one.size = 10
    read = 0
    shown = len(" ".join(lines[:4]))
    for text in made:
        pages = (1, 1) if read + len(text) <= shown else (2, 2) if read >= shown else (1, 2)
        one.know([text], *pages)
        read += len(text) + 1
    one.know([f"* {note}"], 1, 1)
    one.turn()
    y = one.draw(lines[4:], LEFT, TOP, width=470)
    one.column(3, LEFT, y - 6, 470)
    return one.done()


def _equations() -> Sample:
    one = sheet()
    y = one.set(4, LEFT, one.large([TITLE]), 470)
    one.canvas.setFont("Times-Italic", 10)
    one.canvas.drawString(230, y - 6, "C = D / V exp(−kt)")
    one.canvas.drawString(510, y - 6, "(1)")
    y = one.set(5, LEFT, y - 30, 470)
    one.set(5, LEFT, y, 470)
    return one.done()


def _scanned() -> Sample:
    one = sheet()
    one.canvas.rect(0, 0, WIDTH, HEIGHT, fill=1)
    return one.done(None)


def _encrypted() -> Sample:
    one = sheet(encrypt="secret")
    one.set(4, LEFT, TOP, 470)
    one.found.clear()
    return one.done(None)


_LONG = (
    "Low doses of aspirin after minor stroke and transient",
    "ischaemic attack in adults with hypertension: an",
    "international randomised trial",
)

ARTICLES: dict[str, Callable[[], Sample]] = {
    "one column": _one_column,
    "two columns": lambda: _two_columns().done(),
    "two columns, row by row": _across,
    "ligatures": _ligatures,
    "hyphenated lines": _hyphens,
    "running heads": lambda: _running(4, columns=False),
    "table": lambda: _table(columns=False),
    "table over two columns": lambda: _table(columns=True),
    "title of three lines, no metadata": lambda: _two_columns("", _LONG).done(" ".join(_LONG)),
    "metadata: Microsoft Word - draft.doc": lambda: _two_columns("Microsoft Word - draft.doc").done(),
    "metadata: untitled": lambda: _two_columns("untitled").done(),
    "rotated page": _rotated,
    "bullets": _bullets,
    "superscripts": _raised,
    "abstract over two columns": _abstract,
    "figure caption": _caption,
    "landscape pages": _landscape,
    "footnotes": _footnotes,
    "equations": _equations,
    "scanned": _scanned,
    "encrypted": _encrypted,
    "30 pages": lambda: _running(30, columns=True),
}  # fmt: skip
