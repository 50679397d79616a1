"""Pages as scanners and telephones make them: pictures of typeset pages, with what they show."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path

import numpy as np
import pypdfium2
from PIL import Image, ImageFilter
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from tests.support.pdfs.sheet import HEIGHT, LEFT, TOP, WIDTH, Sheet, sheet

UNITS = (
    "Metformin 850 mg/m² lowered HbA1c by ≥ 0.5 % (p < 0.001; n = 1,234).",
    "Warfarin 2.5 mg and 12.5 µg/kg of TNF-α were given at 37.5 °C.",
    "LDL fell by 1.8 ± 0.3 mmol/L, and by ≤ 2.9 mmol/L with β-blockers.",
    "Creatinine was 88 µmol/L (95 % CI 71–105), eGFR 64 mL/min/1.73 m².",
    "The dose was 0.05 mg/kg, not 0.5 mg/kg, and γ-globulin 400 mg/kg.",
    "The odds ratio was 0.72 (0.61–0.85), and κ = 0.83 at −20 °C.",
)
_DOSES = (0.05, 0.5, 2.5, 12.5, 37.5, 81, 105, 417, 850, 1234)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
#: what a reader of print cannot tell apart
_ALIKE = str.maketrans({"μ": "µ", "—": "–", "-": "–", "−": "–", "’": "'", "“": '"', "”": '"'})


@dataclass(frozen=True, kw_only=True, slots=True)
class Scan:
    """A PDF with scanned pages."""

    content: bytes
    #: what its pages show, in reading order
    text: str
    #: pages that are scanned
    scanned: tuple[int, ...] = (1,)
    #: what the others show, at the beginning
    typed: str = ""

    @property
    def scanned_text(self) -> str:
        """Return what the scanned pages show."""
        return self.text.removeprefix(self.typed)


@dataclass(frozen=True, kw_only=True, slots=True)
class Right:
    """What of a text is read right."""

    #: numbers of words, of the right ones, and of those that are read as unknown
    words: int
    right: int
    unknown: int
    numbers: int
    right_numbers: int
    #: numbers that are read and that the page does not have there
    false: tuple[str, ...]


def compare(text: str, read: str) -> Right:
    """Compare a text with what was read of it, word for word in order."""
    wanted, got = _words(text), _words(read)
    same = SequenceMatcher(None, wanted, got, autojunk=False).get_matching_blocks()
    at = [i for block in same for i in range(block.a, block.a + block.size)]
    of = {i for block in same for i in range(block.b, block.b + block.size)}
    return Right(
        words=len(wanted),
        right=len(at),
        unknown=sum("�" in one for one in got),
        numbers=sum(bool(_NUMBER.search(one)) for one in wanted),
        right_numbers=sum(bool(_NUMBER.search(wanted[i])) for i in at),
        false=tuple(one for i, one in enumerate(got) if i not in of and _NUMBER.search(one) and "�" not in one),
    )  # fmt: skip


def _words(text: str) -> list[str]:
    # "95 %" and "95%", "± 0.3" and "±0.3" look alike
    return (
        re.sub(r"\s+(?=%)|(?<=[±≥≤<=])\s+|\s*\|\s*", " ", text.translate(_ALIKE))
        .replace(" %", "%")
        .split()
    )


def scan(content: bytes, *, dpi: int = 200) -> Image.Image:
    """Return the first page of a PDF as a scanner sees it: not quite white, not quite black, a little soft."""
    with pypdfium2.PdfDocument(content) as document:
        seen = document[0].render(scale=dpi / 72, grayscale=True).to_pil().convert("L")
    seen = seen.filter(ImageFilter.GaussianBlur(dpi / 400))
    return noisy(seen.point(lambda value: 25 + value * 220 // 255), 6)


def noisy(seen: Image.Image, much: float) -> Image.Image:
    """Return a picture with noise of a standard deviation, of 255."""
    pixels = np.asarray(seen, dtype=float)
    pixels = pixels + np.random.default_rng(7).normal(0, much, pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def pictured(
    pages: Sequence[Image.Image | None],
    *,
    size: tuple[float, float] = (WIDTH, HEIGHT),
    texts: Sequence[str] = (),
) -> bytes:
    """Return a PDF whose pages are pictures, or lines of text."""
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=size, invariant=1)
    for seen in pages:
        if seen is None:
            canvas.setFont("Times-Roman", 10)
            for i, line in enumerate(texts):
                canvas.drawString(LEFT, TOP - 14 * i, line)
        else:
            packed = io.BytesIO()
            seen.save(packed, "JPEG", quality=80)
            packed.seek(0)
            canvas.drawImage(ImageReader(packed), 0, 0, *size)
        canvas.showPage()
    canvas.save()
    return stream.getvalue()


def _said(one: Sheet) -> str:
    return " ".join(text for text, _, _ in one.found)


def typeset(columns: int = 1) -> tuple[Sheet, bytes]:
    """Return a page of paragraphs, and its PDF."""
    one = sheet()
    if columns == 1:
        one.column(6, LEFT, TOP, 470)
    else:
        for x in (LEFT, LEFT + 245):
            one.column(5, x, TOP, 225)
    return one, one.done(None).content


def _clean() -> Scan:
    one, page = typeset()
    return Scan(content=pictured([scan(page)]), text=_said(one))


def changed(change: Callable[[Image.Image], Image.Image], *, dpi: int = 200) -> Scan:
    """Return a scan of a page whose picture is changed."""
    one, page = typeset()
    seen = change(scan(page, dpi=dpi))
    size = (HEIGHT, WIDTH) if seen.width > seen.height else (WIDTH, HEIGHT)
    return Scan(content=pictured([seen], size=size), text=_said(one))


def _columns() -> Scan:
    one, page = typeset(columns=2)
    return Scan(content=pictured([scan(page)]), text=_said(one))


def _stamped() -> Scan:
    one = sheet()
    one.column(6, LEFT, TOP, 470)
    one.canvas.setFillGray(0.55)
    one.canvas.translate(330, 120)
    one.canvas.rotate(20)
    one.canvas.setFont("Helvetica-Bold", 30)
    one.canvas.drawString(0, 0, "RECEIVED")
    return Scan(content=pictured([scan(one.done(None).content)]), text=_said(one))


def photograph(seen: Image.Image) -> Image.Image:
    """Return a page as a telephone sees it: from below and aside, one half in the shade."""
    w, h = seen.size
    # where the corners of the new picture are on the page
    corners = [
        (-0.05 * w, -0.03 * h),
        (-0.01 * w, 1.02 * h),
        (1.01 * w, 1.04 * h),
        (1.04 * w, -0.02 * h),
    ]
    new = [(0, 0), (0, h), (w, h), (w, 0)]
    rows = [
        row
        for (x, y), (u, v) in zip(new, corners, strict=True)
        for row in ([x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y])
    ]
    places = [place for corner in corners for place in corner]
    data = np.linalg.solve(np.array(rows, dtype=float), np.array(places)).tolist()
    flat = seen.transform(
        (w, h), Image.Transform.PERSPECTIVE, data, Image.Resampling.BICUBIC, fillcolor=90
    )
    light = np.linspace(1.0, 0.45, w)[None, :] * np.linspace(1.0, 0.8, h)[:, None]
    pixels = (np.asarray(flat, dtype=float) * light).astype(np.uint8)
    return noisy(Image.fromarray(pixels), 5)


def _units() -> Scan:
    one = sheet()
    one.font = _font()
    one.size = 11
    y = TOP
    for line in UNITS * 2:
        y = one.draw([line], LEFT, y) - 6
    return Scan(content=pictured([scan(one.done(None).content)]), text=" ".join(UNITS * 2))


def _font() -> str:
    """Return a font with Greek letters and signs."""
    import matplotlib as mpl

    name = "DejaVuSerif"
    if name not in pdfmetrics.getRegisteredFontNames():
        path = Path(mpl.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf"
        pdfmetrics.registerFont(TTFont(name, str(path)))
    return name


def _table() -> Scan:
    one = sheet()
    one.size = 9
    y = one.set(4, LEFT, TOP, 470)
    rows = [("Drug", "Dose (mg)", "Patients", "Deaths", "Hazard ratio")]
    for i, dose in enumerate(_DOSES):
        rows.append(
            (
                f"Drug {chr(65 + i)}",
                f"{dose:g}",
                f"{137 * (i + 2)}",
                f"{3 * i + 1}",
                f"0.{61 + 3 * i} (0.{51 + i}–0.{82 + i})",
            )
        )
    for row in rows:
        for x, cell in zip((0, 90, 180, 260, 330), row, strict=True):
            one.draw([cell], LEFT + x, y)
        y -= 14
    text = f"{_said(one)} {' '.join(cell for row in rows for cell in row)}"
    return Scan(content=pictured([scan(one.done(None).content)]), text=text)


def _mixed() -> Scan:
    one, page = typeset()
    lines = ["Salt was given to 12 adults in a trial", "of 7 weeks, and all of them were well."]
    content = pictured([None, scan(page)], texts=lines)
    typed = " ".join(lines)
    return Scan(content=content, text=f"{typed} {_said(one)}", scanned=(2,), typed=typed)


def _empty() -> Scan:
    return Scan(
        content=pictured([noisy(Image.new("L", (1654, 2339), 240), 6)]), text="", scanned=()
    )


def _faint(seen: Image.Image) -> Image.Image:
    return noisy(seen.point(lambda value: 175 + value * 65 // 255), 8)


def _skewed(seen: Image.Image) -> Image.Image:
    return seen.rotate(2, Image.Resampling.BICUBIC, fillcolor=245)


SCANS: dict[str, Callable[[], Scan]] = {
    "clean": _clean,
    "skewed by 2°": partial(changed, _skewed),
    "150 dpi": partial(changed, lambda seen: seen, dpi=150),
    "two columns": _columns,
    "stamp": _stamped,
    "photograph": partial(changed, photograph),
    "Greek and units": _units,
    "table": _table,
    "mixed": _mixed,
    "turned by 90°": partial(changed, lambda seen: seen.transpose(Image.Transpose.ROTATE_90)),
    "faint": partial(changed, _faint),
    "empty": _empty,
}
