"""PDFs with glyphs that have no Unicode, and with text that their pages do not show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics

from tests.support.pdfs.sheet import LEFT, TITLE, TOP, Sample, sheet
from tests.support.pdfs.writers import File, embedded, to_unicode

#: adds a font, and returns its number
Font = Callable[[File], int]


def simple(name: str, rest: str = "/Encoding /WinAnsiEncoding") -> Font:
    """A font that is not in the file."""
    return lambda file: file.add(f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} {rest} >>")


def mapped(name: str, codes: dict[int, str]) -> Font:
    """The same with a map to Unicode."""

    def add(file: File) -> int:
        table = file.stream(to_unicode(codes, digits=2))
        return file.add(
            f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /ToUnicode {table} 0 R >>"
        )

    return add


def named(names: Sequence[str], font: str = "ABCDEF+AdvPSSym") -> Font:
    """A font that is not in the file, whose codes from 1 on have these names."""
    widths = " ".join(["600"] * len(names))
    listed = " ".join(f"/{name}" for name in names)
    return simple(
        font,
        f"/FirstChar 1 /LastChar {len(names)} /Widths [{widths}] /Encoding << /Differences [1 {listed}] >>",
    )


def drawn(file: File) -> int:
    """Add a font of drawings, of the codes 0 to 4, without a map to Unicode."""
    box = file.stream(b"600 0 0 0 500 700 d1 0 0 500 700 re f")
    procs = " ".join(f"/a{i} {box} 0 R" for i in range(5))
    return file.add(
        "<< /Type /Font /Subtype /Type3 /FontBBox [0 0 600 700] /FontMatrix [0.001 0 0 0.001 0 0] /FirstChar 0 "
        "/LastChar 4 /Widths [600 600 600 600 600] /Encoding << /Differences [0 /a0 /a1 /a2 /a3 /a4] >> "
        f"/CharProcs << {procs} >> >>"
    )


PLAIN = simple("Helvetica")
_BEFORE = "Salt drops were given to 40 adults at home."
_AFTER = "No harm was seen within 12 weeks."


def page(
    shown: str, *fonts: Font, content: str = "", resources: str = "", file: File | None = None
) -> bytes:
    """A page with a title, a sentence, and what is shown: text of Helvetica with codes of fonts in braces, ``{1:b3}``."""
    file = file or File()
    numbers = [font(file) for font in (PLAIN, *fonts)]
    parts = []
    for part in f"{_BEFORE} {shown} {_AFTER}".replace("}", "{").split("{"):
        number, colon, codes = part.partition(":")
        if colon and number.isdigit():
            parts.append(f"/F{number} 11 Tf <{codes}> Tj")
        else:
            escaped = part.replace("(", r"\(").replace(")", r"\)")
            parts += ["/F0 11 Tf", *(f"({some}) Tj" for some in escaped.split("/")[:1])]
            parts += [f"T* ({some}) Tj" for some in escaped.split("/")[1:]]
    text = " ".join(parts)
    named = " ".join(f"/F{i} {number} 0 R" for i, number in enumerate(numbers))
    file.page(
        f"BT /F0 16 Tf 72 740 Td ({TITLE}) Tj ET BT 13 TL 72 700 Td {text} ET {content}".encode(
            "cp1252"
        ),
        f"/Font << {named} >> {resources}",
    )
    return file.content(TITLE)


def _glyphs(shown: str, *fonts: Font, read: str) -> Sample:
    bad = (1,) if "\ufffd" in read else ()
    sentences = tuple((one, 1, 1) for one in (_BEFORE, read, _AFTER))
    return Sample(content=page(shown, *fonts), title=TITLE, sentences=sentences, bad=bad)


def _codes(text: str) -> str:
    glyphs = pdfmetrics.getFont("Vera").face.charToGlyph
    return "".join(f"{glyphs[ord(char)]:04x}" for char in text)


def _known(text: str) -> Font:
    """A font in the file with a map to Unicode of these characters."""
    return lambda file: embedded(file, "Vera", mapped=text)


_DOSE = "Adults took 5 {1:%s}g of salt (p {1:%s} 0.05), and the change was {1:%s}2 mm."
_READ = "Adults took 5 �g of salt (p � 0.05), and the change was �2 mm."
#: of a glyph whose width is unknown
_APART = _READ.replace("5 �g", "5 � g").replace("�2", "� 2")
_PRIVATE = {0x6D: "\uf06d", 0xA3: "\uf0a3", 0x2D: "\uf02d"}

GLYPHS: dict[str, Callable[[], Sample]] = {
    "Symbol in private use": partial(
        _glyphs, _DOSE % ("6d", "a3", "2d"), mapped("Symbol", _PRIVATE), read=_READ.replace("�", "%s") % ("μ", "≤", "−")
    ),
    "a part of Symbol that is not in the file": partial(
        _glyphs, _DOSE % ("6d", "a3", "2d"), mapped("ABCDEF+SymbolMT", _PRIVATE), read=_APART
    ),
    "spaces of fonts that are not in the file": partial(
        _glyphs, "Adults{1:20}took{2:20}salt{3:20}drops.", *map(simple, ("Courier", "Times-Roman", "Wingdings")),
        read="Adults took salt drops.",
    ),
    "spaces of Symbol": partial(
        _glyphs, "Adults{1:20}took{1:20}5 {1:6d}g.", simple("Symbol", ""), read="Adults took 5 µg.",
    ),
    "Symbol as letters": partial(
        _glyphs, "Adults took 5 {1:6d}g of salt (p {1:a3} 0.05).", mapped("Symbol", {0x6D: "m", 0xA3: "£"}),
        read="Adults took 5 μg of salt (p ≤ 0.05).",
    ),
    "Symbol by its names": partial(
        _glyphs, "Adults took 5 {1:01}g of salt (p {1:02} 0.05).", named(["mu", "lessequal"], "Symbol"),
        read="Adults took 5 µg of salt (p ≤ 0.05).",
    ),
    "private use of another font": partial(
        _glyphs, _DOSE % ("6d", "a3", "2d"), mapped("ABCDEF+AdvP4C4E74", {k: chr(0xE000 + k) for k in _PRIVATE}), read=_READ
    ),
    "drawings": partial(_glyphs, _DOSE % ("01", "02", "03"), drawn, read=_READ),
    "drawings, the code 0": partial(_glyphs, _DOSE % ("00", "04", "02"), drawn, read=_READ),
    "Identity without a map": partial(
        _glyphs, _DOSE % tuple(map(_codes, "µ≤−")), _known(""), read=_READ
    ),
    "Identity, a part is mapped": partial(
        _glyphs, "{1:" + _codes("Adults took 5 µg of salt.") + "}", _known("Adults tok5gfl."), read="Adults took 5 �g of salt."
    ),
    "Identity, spaces are not mapped": partial(
        _glyphs, "{1:" + _codes("Adults took 5 µg of salt.") + "}", _known("Adultsok5µgfla."), read="Adults took 5 µg of salt."
    ),
    "names that say nothing": partial(
        _glyphs, _DOSE % ("01", "02", "03"), named(["C0", "C109", "C15"]), read=_APART
    ),
    "controls": partial(
        _glyphs, _DOSE % ("41", "42", "43"), mapped("Helvetica", {0x41: "\x01", 0x42: "\x02", 0x43: "\x7f"}), read=_READ
    ),
    "U+FFFD in the map": partial(
        _glyphs, _DOSE % ("41", "42", "43"), mapped("Helvetica", dict.fromkeys((0x41, 0x42, 0x43), "\ufffd")), read=_READ
    ),
    "soft hyphens": partial(
        _glyphs, "A low{1:41}dose of salt was a pla{1:41}/cebo.", mapped("Helvetica", {0x41: "\xad"}),
        read="A low-dose of salt was a placebo.",
    ),
    "hyphens at lines' ends": partial(
        _glyphs, "Adults had com-/pounds of salt in each of the weeks of this trial at home, at doses of 5-/10 mg.",
        read="Adults had compounds of salt in each of the weeks of this trial at home, at doses of 5- 10 mg.",
    ),
    "italics of mathematics": partial(
        _glyphs, "The trend was clear ({1:41} = 0.03).", mapped("Helvetica", {0x41: "\U0001d45d"}), read="The trend was clear (𝑝 = 0.03).",
    ),
    "ligatures and minus signs by name": partial(
        _glyphs, "The {1:01}rst of {1:02}ve {1:03}ows was {1:04}2 mm.", named(["fi", "fi", "fl", "minus"], "Times-Roman"),
        read="The first of five flows was −2 mm.",
    ),
}  # fmt: skip

_SECRET = "Salt drops cured all of the 400 adults."


def _hidden(kind: str) -> Sample:
    """Visible text with a hidden sentence in the middle of it."""
    one = sheet()
    canvas = one.canvas
    y = one.set(4, LEFT, one.large([TITLE]), 470)
    canvas.saveState()
    text = canvas.beginText(LEFT, y if kind != "below the page" else -40)
    text.setFont("Times-Roman", {"2 points": 2, "1 point": 1}.get(kind, 10))
    if kind.startswith("mode"):
        text.setTextRenderMode(int(kind[-1]))
    if kind.startswith("white"):
        canvas.setFillGray(0.99 if kind == "white, nearly" else 1)
    if kind == "white on blue":
        canvas.saveState()
        canvas.setFillColorRGB(0, 0, 0.6)
        canvas.rect(LEFT - 5, y - 4, 400, 16, fill=1)
        canvas.restoreState()
        one.know([_SECRET])
    else:
        one.bad.append(1)
        one.absent.append(_SECRET)
    if kind == "transparent":
        canvas.setFillAlpha(0)
    if kind == "clipped":
        path = canvas.beginPath()
        path.rect(0, 0, 50, 50)
        canvas.clipPath(path, stroke=0)
    text.textOut(_SECRET)
    canvas.drawText(text)
    canvas.restoreState()
    one.set(4, LEFT, y - 18, 470)
    return one.done()


def _layer(*, form: bool) -> Sample:
    """A sentence on a layer that is off, where another is on one that is on."""
    file = File()
    on, off = (file.add(f"<< /Type /OCG /Name ({name}) >>") for name in ("English", "Other"))
    file.catalog = f"/OCProperties << /OCGs [{on} 0 R {off} 0 R] /D << /OFF [{off} 0 R] >> >> "
    said = "This was measured at home."
    shown = f"/OC /On BDC BT /F0 11 Tf 72 600 Td ({said}) Tj ET EMC"
    secret = f"BT /F0 11 Tf 72 600 Td ({_SECRET}) Tj ET"
    resources = f"/Properties << /On {on} 0 R /Off {off} 0 R >>"
    if form:
        font = PLAIN(file)
        inner = file.stream(
            secret.encode(),
            f"/Type /XObject /Subtype /Form /BBox [0 0 600 900] /OC {off} 0 R "
            f"/Resources << /Font << /F0 {font} 0 R >> >> ",
        )
        content = f"{shown} /X0 Do"
        resources += f" /XObject << /X0 {inner} 0 R >>"
    else:
        content = f"{shown} /OC /Off BDC {secret} EMC"
    made = page("It was cheap.", content=content, resources=resources, file=file)
    sentences = tuple((one, 1, 1) for one in (_BEFORE, "It was cheap.", _AFTER, said))
    return Sample(content=made, title=TITLE, sentences=sentences, bad=(1,), absent=(_SECRET,))


def _scan(*, notice: bool, picture: bool = True) -> Sample:
    """A scanned page with a text layer, and with a visible notice below."""
    one = sheet()
    if picture:
        from PIL import Image

        one.canvas.drawImage(ImageReader(Image.new("L", (60, 85), 200)), 0, 0, 595, 842)
    for y in (TOP, TOP - 200):
        made = one.sentences(8)
        one.know(made)
        text = one.canvas.beginText(LEFT, y)
        text.setFont(one.font, one.size)
        text.setLeading(12)
        text.setTextRenderMode(3)
        for line in one.lines(" ".join(made), 470):
            text.textLine(line)
        one.canvas.drawText(text)
    if notice:
        one.canvas.setFont("Helvetica", 7)
        one.canvas.drawString(LEFT, 30, "This content was downloaded on 12 May 2020")
    return one.done(None)


HIDDEN: dict[str, Callable[[], Sample]] = {
    **{
        kind: partial(_hidden, kind)
        for kind in (
            "white", "white, nearly", "white on blue", "2 points", "1 point", "mode 3", "mode 7", "transparent", "clipped",
            "below the page",
        )
    },
    "on a layer that is off": partial(_layer, form=False),
    "a form on a layer that is off": partial(_layer, form=True),
    "text layer of a scanned page": partial(_scan, notice=False),
    "the same with a notice": partial(_scan, notice=True),
    "text layer without a picture": partial(_scan, notice=False, picture=False),
}  # fmt: skip
