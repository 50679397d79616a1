"""What Word shows of a document is what is read; what cannot be read is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from posology.corpus.documents import word
from posology.corpus.items import Record, Remark
from posology.types import UNREADABLE
from tests.support.growth import MOST, growth
from tests.support.literature import docx
from tests.support.wordml import (
    alternatives,
    field,
    font,
    mark,
    maths,
    of,
    paragraph,
    part,
    run,
    style,
    text_box,
)

NOT = run("not")
STYLES = part(
    "w:styles",
    style("Greek", f"<w:rPr>{font('Symbol')}</w:rPr>")
    + style("GreekText", f"<w:rPr>{font('Symbol')}</w:rPr>", "paragraph")
    + style("Raised", '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>')
    + style("Hidden", "<w:rPr><w:vanish/></w:rPr>")
    + style("heading 1", kind="paragraph")
    + style("Mine", kind="paragraph", based_on="heading1")
    + style("Contents", '<w:pPr><w:outlineLvl w:val="9"/></w:pPr>', "paragraph", "heading1"),
)
THEME = part(
    "a:theme",
    '<a:themeElements><a:fontScheme><a:minorFont><a:latin typeface="Symbol"/></a:minorFont></a:fontScheme>'
    "</a:themeElements>",
)
FONTS = part("w:fonts", '<w:font w:name="Pi"><w:charset w:val="02"/></w:font>')
MORE = {
    "word/styles.xml": STYLES,
    "word/theme/theme1.xml": THEME,
    "word/fontTable.xml": FONTS,
}


def read(
    folder: Path, body: str, more: Mapping[str, bytes] = MORE
) -> tuple[list[tuple[str | None, str]], list[str]]:
    """The passages with their sections, and what could not be read."""
    path = folder / "a.docx"
    path.write_bytes(docx(more=more, body=body))
    items = list(word.read(path))
    passages = [one.passage for one in items if isinstance(one, Record)]
    bad = [one.reason for one in items if isinstance(one, Remark)]
    return [(one.section, one.text) for one in passages], bad


def text(folder: Path, *inner: str) -> str:
    """The text of one paragraph, or of a body, of which all can be read."""
    found, bad = read(folder, inner[0] if inner[0].startswith("<w:p>") else paragraph(*inner))
    assert not bad
    return "\n\n".join(one for _, one in found)


SUM = f"<m:f>{of('a+b', 'num')}{of('c', 'den')}</m:f>"
POWER = f"<m:sSup>{of('10', 'e')}{of('9', 'sup')}</m:sSup>"
NARY = f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr>{of("i=1", "sub")}{of("n", "sup")}{of("x", "e")}</m:nary>'
ROOTS = (
    f'<m:rad><m:radPr><m:degHide m:val="1"/></m:radPr><m:deg/>{of("n", "e")}</m:rad>'
    f"<m:rad>{of('3', 'deg')}{of('x+1', 'e')}</m:rad>"
)
MATRIX = f"<m:m><m:mr>{of('1', 'e')}{of('2', 'e')}</m:mr><m:mr>{of('3', 'e')}</m:mr></m:m>"
CHOOSE = f'<m:f><m:fPr><m:type m:val="noBar"/></m:fPr>{of("n", "num")}{of("k", "den")}</m:f>'


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        ("p&lt;0.05", "p<0.05"),
        (SUM, "(a+b)/c"),
        (POWER, "10^9"),
        (f"<m:sSubSup>{of('x', 'e')}{of('i', 'sub')}{of('2', 'sup')}</m:sSubSup>", "x_i^2"),
        (f"<m:sPre>{of('99', 'sup')}{of('Tc', 'e')}</m:sPre>", "^99Tc"),
        (f"<m:limLow>{of('max', 'e')}{of('x', 'lim')}</m:limLow>", "max_x"),
        (ROOTS, "√(n)(x+1)^(1/3)"),
        (NARY, "∑_(i=1)^n x"),
        (f"<m:d>{of(MATRIX, 'e')}</m:d>", "([1, 2; 3])"),
        (f"<m:d>{of(CHOOSE, 'e')}</m:d>", "(n; k)"),
        ('<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val=""/></m:dPr><m:e/></m:d>', "["),
        (f"<m:eqArr>{of('x=1', 'e')}{of('y=2', 'e')}</m:eqArr>", "x=1; y=2"),
        (f"<m:func>{of('log', 'fName')}{of('x', 'e')}</m:func>", "log x"),
        (f"<m:acc>{of('y', 'e')}</m:acc>", "ŷ"),
        (f'<m:bar><m:barPr><m:pos m:val="top"/></m:barPr>{of("x", "e")}</m:bar>', "x\u0305"),
        (f'<m:bar><m:barPr><m:pos m:val="left"/></m:barPr>{of("x", "e")}</m:bar>', "x\u0332"),
        (f'<m:phant><m:phantPr><m:show m:val="0"/></m:phantPr>{of("x", "e")}</m:phant>{of("y")}', "y"),
        (f"<w:del>{of('=')}</w:del><w:ins>{of('&lt;')}</w:ins>", "<"),
        (f"<m:r><w:rPr>{font('Symbol')}</w:rPr><m:t>b</m:t></m:r>", "β"),
    ],
)  # fmt: skip
def test_formulas_are_read_in_line(tmp_path: Path, formula: str, shown: str) -> None:
    assert text(tmp_path, "as ", maths(formula), " is.") == f"as {shown} is."


def test_formulas_beside_numbers_and_between_paragraphs(tmp_path: Path) -> None:
    assert text(tmp_path, "at 10", maths(POWER), "/L") == "at 10 10^9/L"
    displayed = f"<m:oMathPara>{maths('y=2')}</m:oMathPara>"
    assert text(tmp_path, "So:", displayed, "where it is.") == "So:\ny=2\nwhere it is."
    assert text(tmp_path, paragraph("So.") + displayed) == "So.\n\ny=2"


@pytest.mark.parametrize(
    "inner",
    [
        f'<w:fldSimple w:instr=" REF x "><w:hyperlink>{NOT}</w:hyperlink></w:fldSimple>',
        field(" REF x ", NOT),
        mark("begin") + run(" REF x ") + mark("separate") + NOT + mark("end"),
        mark("begin") + field(" PAGE ", run("7")) + mark("separate") + NOT + mark("end"),
        NOT + field(' XE "nausea" '),
        mark("begin") + NOT,
        mark("end") + NOT + mark("separate"),
        NOT + f"<w:del>{mark('begin')}</w:del>",
        f"<w:del>{run('always')}</w:del>{NOT}",
        f"<w:moveFrom>{run('always')}</w:moveFrom><w:moveTo>{NOT}</w:moveTo>",
        *(f"<w:{tag}>{NOT}</w:{tag}>" for tag in ("bdo", "dir", "ins", "smartTag", "customXml", "hyperlink")),
        f"<w:sdt><w:sdtPr/><w:sdtContent>{NOT}</w:sdtContent></w:sdt>",
        f"<w:r><w:ruby><w:rt>{run('ever')}</w:rt><w:rubyBase>{NOT}</w:rubyBase></w:ruby></w:r>",
        alternatives(NOT, run("ever")),
        alternatives(run("ever"), NOT, requires="x"),
        run("ever", "<w:vanish/>") + NOT,
        run("ever", '<w:rStyle w:val="Hidden"/>') + NOT,
        run("not", '<w:rStyle w:val="Hidden"/><w:vanish w:val="0"/>'),
        run("ever", "<w:strike/>") + run("always", "<w:dstrike/>") + NOT,
        run("not", '<w:strike w:val="false"/><w:webHidden/><w:caps/>'),
        maths("not"),
    ],
)  # fmt: skip
def test_a_word_is_read_however_it_is_wrapped(tmp_path: Path, inner: str) -> None:
    assert text(tmp_path, "Salt did ", inner, " help.") == "Salt did not help."


@pytest.mark.parametrize(
    ("inner", "shown"),
    [
        (run("m£³", font("Symbol")), "μ≤≥"),
        (run("\uf0b3", font("Symbol MT")), "≥"),
        (run("≥β", font("Symbol")), "≥β"),
        (run("m", '<w:rStyle w:val="Greek"/>'), "μ"),
        (run("m", '<w:rFonts w:asciiTheme="minorHAnsi" w:hAnsiTheme="minorHAnsi"/>'), "μ"),
        (run("m", f"<w:rPrChange><w:rPr>{font('Symbol')}</w:rPr></w:rPrChange>"), "m"),
        (run("üû", font("Wingdings")), "✓🗶"),
        ('<w:r><w:sym w:font="Arial" w:char="2265"/></w:r>', "≥"),
        ('<w:r><w:sym w:font="Symbol" w:char="F0B3"/></w:r>', "≥"),
        ('<w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>', "🗹"),
        ('<w:r><w16se:symEx w16se:font="Segoe UI Emoji" w16se:char="2265"/></w:r>', "≥"),
        (field(' SYMBOL 179 \\f "Symbol" ', run("?")), "≥"),
        ('<w:fldSimple w:instr=" SYMBOL 0x2265 \\u "/>', "≥"),
        (field(' SYMBOL 0179 \\f "Symbol" ', run("?")), "≥"),
    ],
)
def test_signs_are_those_of_their_font(tmp_path: Path, inner: str, shown: str) -> None:
    assert text(tmp_path, "age ", inner, " 65") == f"age {shown} 65"


def test_the_font_of_a_paragraphs_style(tmp_path: Path) -> None:
    made = paragraph("abg", properties='<w:pStyle w:val="GreekText"/>')
    assert text(tmp_path, made) == "αβγ"


@pytest.mark.parametrize(
    ("inner", "shown"),
    [
        (run("9", '<w:position w:val="8"/>'), "10^9"),
        (run("9", '<w:position w:val="-8"/>'), "10_9"),
        (run("9", '<w:position w:val="0"/>'), "109"),
        (run("9", '<w:rStyle w:val="Raised"/>'), "10^9"),
        (run("9", '<w:rStyle w:val="Raised"/><w:vertAlign w:val="baseline"/>'), "109"),
        (run("-", '<w:position w:val="8"/>') + run("6", '<w:position w:val="8"/><w:b/>'), "10^-6"),
    ],
)
def test_raised_and_lowered_numbers_are_apart(tmp_path: Path, inner: str, shown: str) -> None:
    assert text(tmp_path, "at 10", inner, "/L") == f"at {shown}/L"


@pytest.mark.parametrize(
    ("inner", "shown"),
    [
        ("<w:r><w:br/></w:r>", "did\nnot"),
        ('<w:r><w:br w:type="page"/></w:r>', "did not"),
        ("<w:r><w:cr/></w:r>", "did\nnot"),
        ("<w:r><w:ptab/></w:r>", "did not"),
        ("<w:r><w:noBreakHyphen/></w:r>", "did\u2011not"),
        ("<w:r><w:softHyphen/></w:r>", "didnot"),
        (field(" FORMCHECKBOX ", None, "<w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData>"), "did☒not"),
        (field(" FORMCHECKBOX "), "did☐not"),
        (field(" FORMDROPDOWN ", None, '<w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="a"/>'
               '<w:listEntry w:val="b"/></w:ddList></w:ffData>'), "didbnot"),
        (field(" MACROBUTTON Go  here "), "didherenot"),
    ],
)  # fmt: skip
def test_characters_that_are_elements(tmp_path: Path, inner: str, shown: str) -> None:
    assert text(tmp_path, "It did", inner, "not") == f"It {shown}"


INLINE = "<w:drawing><wp:inline><a:graphic/></wp:inline></w:drawing>"
OLE = '<w:object><v:shape/><o:OLEObject ProgID="Equation.DSMT4"/></w:object>'


@pytest.mark.parametrize(
    ("inner", "kind"),
    [
        (f"<w:r>{INLINE}</w:r>", "picture in a line of text"),
        ("<w:r><w:pict><v:shape/></w:pict></w:r>", "picture in a line of text"),
        (f"<w:r>{OLE}</w:r>", "equation that is an embedded object"),
        (field(" REF x "), "field REF without a result"),
        ('<w:fldSimple w:instr=" EQ \\f(1,2) "/>', "field EQ without a result"),
        (run("\uf0b3"), "character F0B3 of the font that is not named"),
        (run("q", font("Pi")), "character of the font Pi"),
        ('<w:r><w:sym w:font="MT Extra" w:char="F06D"/></w:r>', "character of the font MT Extra"),
        ('<w:r><w:sym w:font="Symbol" w:char="zz"/></w:r>', "symbol without a character"),
        ("<w:foo/>", "element w:foo"),
        (f"<x:wrap>{NOT}</x:wrap>", "element wrap"),
        ("<w:r><w:pgNum/></w:r>", "element w:pgNum"),
        (maths(f"<m:foo>{of('a')}</m:foo>"), "element foo"),
        ("<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent/></w:sdt>", "not filled in"),
        (run("\ue123"), "character E123"),
    ],
)
def test_what_cannot_be_read_is_marked_and_said(tmp_path: Path, inner: str, kind: str) -> None:
    ((_, shown),), (reason,) = read(tmp_path, paragraph("Risk was ", inner, " less. So it was."))
    assert shown == f"Risk was {UNREADABLE} less. So it was."
    assert reason.startswith(f"1 place could not be read, {UNREADABLE} in the text: ")
    assert kind in reason
    assert reason.endswith("(after “Risk was”)")


def test_pictures_by_themselves_and_beside_the_text_are_figures(tmp_path: Path) -> None:
    figure = paragraph(f"<w:r>{INLINE}</w:r>") + paragraph("Figure 1.")
    assert text(tmp_path, figure) == "Figure 1."
    for beside in (
        "<w:drawing><wp:anchor><a:graphic/></wp:anchor></w:drawing>",
        '<w:pict><v:shape style="position: absolute"/></w:pict>',
        '<w:pict><v:rect o:hr="t"/></w:pict>',
    ):
        assert text(tmp_path, "age", f"<w:r>{beside}</w:r>", " 65") == "age 65"


@pytest.mark.parametrize(
    "inner",
    [
        alternatives(f"<w:drawing>{text_box('Boxed.')}</w:drawing>", f"<w:pict>{text_box('Boxed.')}</w:pict>"),
        f"<w:drawing><wps:txbx>{text_box('Boxed.')}</wps:txbx></w:drawing>",
        f"<w:pict><v:shape><v:textbox>{text_box('Boxed.')}</v:textbox></v:shape></w:pict>",
    ],
)  # fmt: skip
def test_text_boxes_come_once_behind_their_paragraph(tmp_path: Path, inner: str) -> None:
    assert text(tmp_path, "Before", f"<w:r>{inner}</w:r>", " after.") == "Before after.\n\nBoxed."


def test_a_field_may_go_on_over_paragraphs(tmp_path: Path) -> None:
    begun = paragraph(
        mark("begin"), "<w:r><w:instrText> TOC </w:instrText></w:r>", mark("separate"), "One."
    )
    assert text(tmp_path, begun + paragraph("Two.", mark("end"), "Three.")) == "One.\n\nTwo.Three."


def test_a_deleted_end_of_a_paragraph_joins_it_to_the_next(tmp_path: Path) -> None:
    deleted = "<w:rPr><w:del/></w:rPr>"
    made = paragraph("Salt did ", properties=deleted) + paragraph("not help.")
    assert text(tmp_path, made) == "Salt did not help."
    # nor is the last one lost
    assert text(tmp_path, paragraph("Salt did not.", properties=deleted)) == "Salt did not."


PROSE = "This cell has a sentence of more than ten words in it."


@pytest.mark.parametrize(
    ("row", "cell"),
    [
        ("<w:trPr><w:del/></w:trPr>", ""),
        ("<w:trPr><w:hidden/></w:trPr>", ""),
        ("", "<w:tcPr><w:cellDel/></w:tcPr>"),
        ("", "<w:tcPr><w:vMerge/></w:tcPr>"),
    ],
)
def test_rows_and_cells_that_are_not_shown(tmp_path: Path, row: str, cell: str) -> None:
    def table(row: str, cell: str) -> str:
        made = f"<w:tbl><w:tr>{row}<w:tc>{cell}{paragraph(PROSE)}</w:tc></w:tr></w:tbl>"
        return paragraph("Rest.") + made

    assert text(tmp_path, table("", "")) == f"Rest.\n\n{PROSE}"
    assert text(tmp_path, table(row, cell)) == "Rest."


def test_notes_are_a_section_behind_the_text(tmp_path: Path) -> None:
    notes = part(
        "w:footnotes",
        f'<w:footnote w:id="2">{paragraph("Not in ", maths("p&lt;1"))}</w:footnote>',
    )
    made = (
        paragraph("Salt helped.", '<w:r><w:footnoteReference w:id="2"/></w:r>', " So.")
        + paragraph("References", properties='<w:pStyle w:val="heading1"/>')
        + paragraph("Someone.")
    )
    found, bad = read(tmp_path, made, {**MORE, "word/footnotes.xml": notes})
    assert found == [(None, "Salt helped.[1] So."), ("Notes", "[1] Not in p<1")]
    assert not bad


@pytest.mark.parametrize(("name", "section"), [("Mine", "Part"), ("Contents", None)])
def test_headings_by_the_style_that_theirs_is_based_on(
    tmp_path: Path, name: str, section: str | None
) -> None:
    made = paragraph("Part", properties=f'<w:pStyle w:val="{name}"/>') + paragraph("Text.")
    assert read(tmp_path, made)[0][-1][0] == section


def test_documents_in_the_strict_form(tmp_path: Path) -> None:
    def strict(content: bytes) -> bytes:
        usual, names = b"http://schemas.openxmlformats.org/", b"http://purl.oclc.org/ooxml/"
        made = content.replace(usual + b"wordprocessingml/2006/", names + b"wordprocessingml/")
        return made.replace(usual + b"officeDocument/2006/", names + b"officeDocument/")

    body = part("w:document", f"<w:body>{paragraph('Salt did ', maths('not'), '.')}</w:body>")
    found, bad = read(tmp_path, "", {"word/document.xml": strict(body)})
    assert (found, bad) == ([(None, "Salt did not.")], [])


@pytest.mark.parametrize(
    "inner",
    [
        lambda n: run("ab ", "<w:b/>") * n,
        lambda n: (run("ab ", '<w:vertAlign w:val="superscript"/>') + run("cd ")) * n,
        lambda n: mark("begin") * n + run("x") * n + mark("end") * n,
        lambda n: '<w:r><w:footnoteReference w:id="2"/></w:r>' * n,
        lambda n: f"<w:r>{INLINE}</w:r>" * n,
    ],
)  # fmt: skip
def test_many_runs_take_time_in_proportion(tmp_path: Path, inner: Callable[[int], str]) -> None:
    def work(count: int) -> None:
        read(tmp_path, paragraph(inner(count), "The end."))

    assert growth(work, 300) < MOST
