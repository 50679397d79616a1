"""Write PDFs as LaTeX and Word do, through the part of ReportLab's canvas that the typesetter uses."""

from __future__ import annotations

import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, ClassVar

import reportlab
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import _fontdata, pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

_FONTS = Path(reportlab.__file__).parent / "fonts"
for _name in ("Vera", "VeraBd"):
    pdfmetrics.registerFont(TTFont(_name, str(_FONTS / f"{_name}.ttf")))


class File:
    """Numbered objects of a PDF; the first two are its catalog and its pages."""

    def __init__(self) -> None:
        self._objects: list[bytes] = [b"", b""]
        self._pages: list[int] = []
        #: further entries of the catalog
        self.catalog = ""

    def add(self, content: str | bytes) -> int:
        """Add an object, and return its number."""
        self._objects.append(content.encode("latin-1") if isinstance(content, str) else content)
        return len(self._objects)

    def stream(self, content: bytes, entries: str = "") -> int:
        """Add a stream, compressed, and return its number."""
        packed = zlib.compress(content)
        head = f"<< /Length {len(packed)} /Filter /FlateDecode {entries}>>\nstream\n"
        return self.add(head.encode("latin-1") + packed + b"\nendstream")

    def page(self, content: bytes, resources: str, *, size: tuple[float, float] = A4) -> None:
        """Add a page."""
        shown = self.stream(content)
        self._pages.append(
            self.add(
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {size[0]:.2f} {size[1]:.2f}] /Contents {shown} 0 R "
                f"/Resources << {resources} >> >>"
            )
        )

    def content(self, title: str = "") -> bytes:
        """Return the file."""
        kids = " ".join(f"{number} 0 R" for number in self._pages)
        self._objects[0] = f"<< /Type /Catalog /Pages 2 0 R {self.catalog}>>".encode()
        self._objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(self._pages)} >>".encode()
        info = self.add(f"<< /Title ({title}) >>")
        out, places = b"%PDF-1.7\n", []
        for number, one in enumerate(self._objects, start=1):
            places.append(len(out))
            out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
        table = "".join(f"{place:010} 00000 n \n" for place in places)
        size = len(places) + 1
        trailer = f"<< /Size {size} /Root 1 0 R /Info {info} 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
        return out + f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n{trailer}".encode()


def to_unicode(codes: dict[int, str], *, digits: int) -> bytes:
    """Return the map from codes of a font, of so many hexadecimal digits, to characters."""
    rows = "\n".join(
        f"<{code:0{digits}x}> <{text.encode('utf-16-be').hex()}>" for code, text in codes.items()
    )
    return (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapType 2 def\n"
        f"1 begincodespacerange <{'0' * digits}> <{'f' * digits}> endcodespacerange\n"
        f"{len(codes)} beginbfchar\n{rows}\nendbfchar endcmap end end"
    ).encode()


class Text:
    """A text object: pieces that follow each other, each with what is set for it."""

    def __init__(self, x: float, y: float, font: str, size: float) -> None:
        self.x, self.y = x, y
        self.font, self.size = font, size
        self.space = 0.0
        self.pieces: list[tuple[str, str, float, float]] = []

    def setWordSpace(self, space: float) -> None:  # noqa: N802 - as ReportLab names it
        self.space = space

    def textOut(self, text: str) -> None:  # noqa: N802
        self.pieces.append((text, self.font, self.size, self.space))


class Writer(ABC):
    """The part of ReportLab's canvas that the typesetter uses."""

    #: the fonts of a program by ReportLab's names
    fonts: ClassVar[dict[str, str]]

    def __init__(self, stream: IO[bytes], pagesize: tuple[float, float] = A4) -> None:
        self.file = File()
        self._out = stream
        self._size = pagesize
        self._title = ""
        self._font, self._points = "Times-Roman", 10.0
        self._pages: list[bytes] = []
        self._saved: list[tuple[str, float]] = []
        self._shown: list[str] = []
        self._used: set[str] = set()

    @abstractmethod
    def _text(self, text: Text) -> Iterable[str]:
        """Return the operators that show a text."""

    @abstractmethod
    def _resource(self, font: str) -> int:
        """Add a font with the characters that were shown, and return its object's number."""

    def setTitle(self, title: str) -> None:  # noqa: N802
        self._title = title

    def setFont(self, font: str, size: float) -> None:  # noqa: N802
        self._font, self._points = font, size

    def setFillGray(self, gray: float) -> None:  # noqa: N802
        self._shown.append(f"{gray:g} g")

    def saveState(self) -> None:  # noqa: N802
        self._saved.append((self._font, self._points))
        self._shown.append("q")

    def restoreState(self) -> None:  # noqa: N802
        self._font, self._points = self._saved.pop()
        self._shown.append("Q")

    def translate(self, x: float, y: float) -> None:
        self._shown.append(f"1 0 0 1 {x:.3f} {y:.3f} cm")

    def rotate(self, angle: float) -> None:
        a, b = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        self._shown.append(f"{a:.6f} {b:.6f} {-b:.6f} {a:.6f} 0 0 cm")

    def drawString(self, x: float, y: float, text: str) -> None:  # noqa: N802
        one = self.beginText(x, y)
        one.textOut(text)
        self.drawText(one)

    def beginText(self, x: float, y: float) -> Text:  # noqa: N802
        return Text(x, y, self._font, self._points)

    def drawText(self, text: Text) -> None:  # noqa: N802
        self._used.update(self.fonts[piece[1]] for piece in text.pieces)
        self._shown += self._text(text)

    def showPage(self) -> None:  # noqa: N802
        self._pages.append("\n".join(self._shown).encode("latin-1"))
        self._shown = []

    def save(self) -> None:
        if self._shown:
            self.showPage()
        numbers = {font: self._resource(font) for font in sorted(self._used)}
        named = " ".join(f"/{font} {number} 0 R" for font, number in numbers.items())
        for page in self._pages:
            self.file.page(page, f"/Font << {named} >>", size=self._size)
        self._out.write(self.file.content(self._title))


#: names of glyphs that Windows' encoding lacks
_GLYPHS = {"ﬁ": "fi", "ﬂ": "fl", "−": "minus"}
_KERNS = (0, 18, -27, 0, 83, 0)


class LatexWriter(Writer):
    """As pdfTeX writes: a line is one array with kerning, without spaces; ligatures; glyphs are known by their names."""

    fonts: ClassVar = {
        "Times-Roman": "F8",
        "Times-Bold": "F7",
        "Helvetica": "F6",
    }

    def __init__(self, stream: IO[bytes], pagesize: tuple[float, float] = A4) -> None:
        super().__init__(stream, pagesize)
        #: codes in the order of their use, as subsets of fonts have them
        self._codes: dict[str, dict[str, int]] = {}

    def _text(self, text: Text) -> Iterable[str]:
        yield f"BT 1 0 0 1 {text.x:.3f} {text.y:.3f} Tm"
        for shown, font, size, space in text.pieces:
            yield f"/{self.fonts[font]} {size:g} Tf"
            gap = -1000 * (space + pdfmetrics.stringWidth(" ", font, size)) / size
            codes = self._codes.setdefault(font, {})
            array = []
            for char in shown.replace("fi", "ﬁ").replace("fl", "ﬂ"):
                if char == " ":
                    array.append(f"{gap:.1f}")
                    continue
                code = codes.setdefault(char, 0x21 + len(codes))
                kern = _KERNS[code % len(_KERNS)]
                # what a kern takes, the next gives back, so that lines are as long as they are measured
                array.append(f"<{code:02x}>{kern} {-kern}" if kern else f"<{code:02x}>")
            yield f"[{' '.join(array)}] TJ"
        yield "ET"

    def _resource(self, font: str) -> int:
        name = next(name for name, short in self.fonts.items() if short == font)
        codes = self._codes[name]
        names = " ".join(f"/{_glyph(char)}" for char in codes)
        widths = " ".join(str(pdfmetrics.getTypeFace(name).glyphWidths[_glyph(c)]) for c in codes)
        return self.file.add(
            f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /FirstChar 33 /LastChar {32 + len(codes)} "
            f"/Widths [{widths}] /Encoding << /Type /Encoding /Differences [33 {names}] >> >>"
        )


def _glyph(char: str) -> str:
    if char in _GLYPHS:
        return _GLYPHS[char]
    return str(_fontdata.encodings["WinAnsiEncoding"][char.encode("cp1252")[0]])


class WordWriter(Writer):
    """As Word writes: embedded TrueType in Identity-H with a map to Unicode, each word placed, all of it marked and clipped."""

    fonts: ClassVar = dict.fromkeys(("Times-Roman", "Helvetica", "Vera"), "F1") | {
        "Times-Bold": "F2"
    }
    _files: ClassVar = {"F1": "Vera", "F2": "VeraBd"}

    def _text(self, text: Text) -> Iterable[str]:
        x = text.x
        for shown, font, size, space in text.pieces:
            name = self._files[self.fonts[font]]
            glyphs = pdfmetrics.getFont(name).face.charToGlyph
            for word in _words(shown):
                codes = "".join(f"{glyphs[ord(char)]:04x}" for char in word)
                yield (
                    "q -2000 -2000 4000 4000 re W* n /P << /MCID 0 >> BDC BT "
                    f"/{self.fonts[font]} {size:g} Tf 1 0 0 1 {x:.2f} {text.y:.2f} Tm "
                    f"[<{codes}>] TJ ET EMC Q"
                )
                x += pdfmetrics.stringWidth(word, name, size) + space * word.count(" ")

    def _resource(self, font: str) -> int:
        return embedded(self.file, self._files[font])


def _words(text: str) -> Sequence[str]:
    """Return words, each with the space behind it."""
    parts = text.split(" ")
    return (
        [*(f"{part} " for part in parts[:-1]), *parts[-1:]]
        if parts[-1]
        else [f"{part} " for part in parts[:-1]]
    )


def embedded(file: File, name: str, *, mapped: str | None = None) -> int:
    """Add a font whose codes are its glyphs, and return its number.

    Args:
        file: to which it is added.
        name: of one of ReportLab's fonts.
        mapped: characters with a map to Unicode; ``None``: all.
    """
    face = pdfmetrics.getFont(name).face
    glyphs = {chr(code): glyph for code, glyph in face.charToGlyph.items() if glyph}
    widths = " ".join(f"{glyphs[c]} [{face.charWidths[ord(c)]:.0f}]" for c in glyphs)
    shown = [c for c in glyphs if mapped is None or c in mapped]
    codes = {glyphs[char]: char for char in sorted(shown, reverse=True)}
    program = file.stream((_FONTS / f"{name}.ttf").read_bytes())
    described = file.add(
        f"<< /Type /FontDescriptor /FontName /ABCDEF+{name} /Flags 4 /FontBBox [-183 -236 1287 928] /ItalicAngle 0 "
        f"/Ascent 760 /Descent -240 /CapHeight 729 /StemV 80 /FontFile2 {program} 0 R >>"
    )
    inner = file.add(
        f"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /ABCDEF+{name} /CIDToGIDMap /Identity /DW 600 /W [{widths}] "
        f"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor {described} 0 R >>"
    )
    known = f"/ToUnicode {file.stream(to_unicode(codes, digits=4))} 0 R " if codes else ""
    return file.add(
        f"<< /Type /Font /Subtype /Type0 /BaseFont /ABCDEF+{name} /Encoding /Identity-H "
        f"/DescendantFonts [{inner} 0 R] {known}>>"
    )
