from __future__ import annotations

from pathlib import Path

import pytest

from posology.corpus.documents import encoding, html
from posology.corpus.items import Item, Parts, Record, Remark
from posology.errors import BadFile
from posology.types import UNREADABLE
from tests.support.growth import MOST, growth
from tests.support.literature import HTML


def items(folder: Path, content: bytes | str) -> list[Item]:
    path = folder / "a_page.html"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(html.read(path))


def shown(folder: Path, content: bytes | str) -> list[tuple[str | None, str]]:
    return [
        (item.passage.section, item.passage.text)
        for item in items(folder, content)
        if isinstance(item, Record)
    ]


def test_a_page_of_a_publisher(tmp_path: Path) -> None:
    first, second, last = items(tmp_path, HTML)
    assert isinstance(first, Record)
    passage = first.passage
    assert (passage.title, passage.pmid, passage.doi) == ("Salt for some", "601", "10.1000/h1")
    assert (passage.published, passage.section) == ("2012-07-05", "Methods")
    assert passage.text == "Half were given 5 µg of salt at 10^9/L."
    assert isinstance(second, Record)
    assert second.passage.section == "Methods > Doses"
    assert second.passage.text == "One dose a day.\n\nTwo doses."
    assert isinstance(last, Parts)


PROSE = "This form has a sentence of more than ten words in it, outside."
DRAWN = "<span class=MathJax><nobr><span>x</span><span>2</span></nobr></span>"
SQUARE = "<math><msup><mi>x</mi><mn>2</mn></msup></math>"


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        # blocks
        ("<p>One<p>Two", ["One", "Two"]),
        ("One<br>Two", ["One\nTwo"]),
        ("One<br><br>Two", ["One", "Two"]),
        ("<h2>One<br>head</h2><p>Two", ["Two"]),
        ("<pre>One\ntwo\n\nThree</pre>", ["One\ntwo", "Three"]),
        ("<div>One <b>and <i>a</i></b> half<div>Two</div>Three</div>", ["One and a half", "Two", "Three"]),
        ("<p>a<sub>1</sub>, 10<sup>-3</sup> and CO<sub>2</sub></p>", ["a1, 10^-3 and CO2"]),
        ("<p>x<sup>unclosed<p>y", ["xunclosed", "y"]),
        ("<p>aged 54<sup><a href='#r3'>3</a></sup>, 20%<a href='#r3'><sup>3–5</sup></a>", ["aged 54[3], 20%[3–5]"]),
        ("<p>salt<sup><a href='#r3'>3</a>,<a href='#r4'>4</a></sup> at 10<sup>9</sup>/L", ["salt[3,4] at 10^9/L"]),
        ("<p>salt<sup>[<a href='#r3'>3</a>]</sup> and sand<sup><a href='#a'>a</a></sup>", ["salt[3] and sanda"]),
        ("<nav>no</nav><form>no<p>no</form><script>no</script><p>yes", ["yes"]),
        ("<table><tr><td>0.05<td>12</table>", []),
        ("<table><tr><td>This cell has a sentence of more than ten words in it.</table>",
         ["This cell has a sentence of more than ten words in it."]),
        ("<p>&lt;5 &micro;g &amp; more</p>", ["<5 µg & more"]),
        ("<h2>References</h2><p>no<h2>Notes</h2><p>yes", ["yes"]),
        # deleted and hidden text
        ("<p>It <del>raised</del><s>raised</s><strike>raised</strike><ins>lowered</ins> it.", ["It lowered it."]),
        ("<p>It <b style='text-decoration: line-through red'>raised</b>lowered it.", ["It lowered it."]),
        ("<p>One<p hidden>Two<p style='color:red; DISPLAY : none'>Three<p style='visibility:hidden'>Four", ["One"]),
        ("<p>Risk of <i aria-hidden=true>x</i><i class=sr-only>falls</i>.", ["Risk of falls."]),
        ("<main aria-hidden=true><h1>A</h1><p>One</main><dialog><p>Two</dialog><div popover>Three</div>", ["One"]),
        ("<template><p>One</template><noscript>Two</noscript><datalist>Three</datalist><p>Four", ["Four"]),
        # forms and what stands aside
        (f"<form><label>Name</label><input><select><option>a</select><p>{PROSE}<p>Short.</form>", [PROSE, "Short."]),
        ("<form><p>Search the site<input type=search></form><p>One", ["One"]),
        ("<aside><p>Salt is fine.<p><a href=x>Another paper on salt</a></aside>", ["Salt is fine."]),
        ("<p>Given <button>placebo</button> twice.<p><button>Share</button>", ["Given placebo twice."]),
        # tables of pages, and tables within
        (f"<table><tr><td>Menu<td><p>Short.<p>{PROSE}<table><tr><td>0.05</table></table>", ["Short.", PROSE]),
        # formulas
        ("<p>at 5<math><mn>3</mn></math>, <math><mfrac><mi>a</mi><mi>b</mi></mfrac></math>", ["at 5 3, a/b"]),
        (f"<p>as <mml:math>{SQUARE[6:-7].replace('<m', '<mml:m').replace('</m', '</mml:m')}</mml:math>", ["as x^2"]),
        (f"<p>as <span class=katex><span>{SQUARE}</span><span aria-hidden=true>x2</span></span>", ["as x^2"]),
        (f"<p>as <span class=MathJax_Preview>x2</span>{DRAWN}<script type='math/tex'>x^2</script>", ["as x^2"]),
        (f"<p>as <span class=MathJax data-mathml='{SQUARE}'>x2</span><script type='math/tex'>x</script>", ["as x^2"]),
        ("<p>as <span class=MathJax data-mathml='<math><mi>x</mi><!--y--><?z z?><mo>=</mo><mn>2</mn></math>'>", ["as x = 2"]),
        (f"<p>as <span class=mwe-math-element><i style='display:none'>{SQUARE}</i><img alt=x></span>", ["as x^2"]),
        ("<p>as <span class=mwe-math-element><img alt='x^2' aria-hidden=true></span>", ["as x^2"]),
        # raised, lowered, and in fonts of signs
        ("<p>10<span style='vertical-align: super'>9</span>, 10<i class=superscript>6</i>", ["10^9, 10^6"]),
        ("<p>CO<sub>2 </sub>levels, x<sup> and</sup>", ["CO2 levels, x and"]),
        ("<p>5 <font face=Symbol>m<font face=Arial>g</font></font>, <i style='font: 9pt Symbol'>&#179;</i> 6",
         ["5 μg, ≥ 6"]),
        # signs that are pictures with a text, and pictures that are none
        ("<p>aged <img alt=≥> 65, 5<img alt=times>6", ["aged ≥ 65, 5 times 6"]),
        ("<p>One<img alt=''><img width=1 height=1><p><img src=fig.png><p><img alt='Figure 1: flow'>", ["One"]),
        # characters
        ("<p>pla<wbr>ce&shy;bo 5&nbsp;&le;&#8805; &#150; &nonesuch;", ["placebo 5\xa0≤≥ – &nonesuch;"]),
        ("<p><ruby>字<rp>(</rp><rt>ji</rt><rp>)</rp></ruby>", ["字"]),
        ("<p>" + "<div>" * 300 + "deep" + "</div>" * 300 + "after", ["deep", "after"]),
    ],
)  # fmt: skip
def test_what_a_page_shows(tmp_path: Path, body: str, texts: list[str]) -> None:
    found = shown(tmp_path, f"<meta charset=utf-8><body>{body}")
    assert [part for _, text in found for part in text.split("\n\n")] == texts


def test_headings_of_the_first_level_below_a_title_are_sections(tmp_path: Path) -> None:
    """As pandoc writes them; else the list of references would be evidence."""
    page = (
        "<h1 class=title>Salt for some</h1><h1>Methods</h1><p>Half had salt.<h2>Doses</h2><p>One a day."
        "<h1>References</h1><p>1. Smith J. Salt prevents falls. 2001."
    )
    given = f"<meta name=citation_title content='Salt for some'>{page}"
    found = [("Methods", "Half had salt."), ("Methods > Doses", "One a day.")]
    assert shown(tmp_path, given) == shown(tmp_path, f"<title>Salt for some</title>{page}") == found
    assert [text for _, text in shown(tmp_path, page)] == ["Half had salt.", "One a day."]
    assert shown(tmp_path, "<h1>Salt</h1><p>Half had salt.") == [(None, "Half had salt.")]


def test_headings_in_buttons_and_in_tables_of_pages(tmp_path: Path) -> None:
    body = f"<table><tr><td><h2><button>Methods</button></h2><p>{PROSE}</table>"
    assert shown(tmp_path, body) == [("Methods", PROSE)]


@pytest.mark.parametrize(
    ("inner", "kind"),
    [
        ("<img src=ge.gif>", "picture in a line"),
        ("<img alt='Inline Graphic'>", "picture in a line"),
        ("<img alt=eq1.gif>", "picture in a line"),
        ("<mjx-container><mjx-c class=mjx-c31></mjx-c></mjx-container>", "formula that is only drawn"),
        ("<math><mspace></mspace></math>", "formula that is only drawn"),
        ("<input value=5>", "form control"),
        ("\ue123", "character U+E123"),
        ("\x01", "character U+0001"),
        ("\0", "lost"),
        ("\ufffd", "lost"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_marked_and_said(tmp_path: Path, inner: str, kind: str) -> None:
    page = (
        f"<meta charset=utf-8><body><p>Those of all the adults were {inner} of 65 years. So it was."
    )
    record, _, bad = items(tmp_path, page)
    assert isinstance(record, Record)
    assert record.passage.text.startswith(f"Those of all the adults were {UNREADABLE} of 65 years.")
    assert isinstance(bad, Remark)
    assert bad.reason.startswith("1 place could not be read")
    assert kind in bad.reason


def test_what_is_left_out_is_not_said(tmp_path: Path) -> None:
    assert len(items(tmp_path, "<p>One<nav>\ue123</nav><h2>References</h2><p>\ue123")) == 2


def test_a_page_that_is_nested_too_deeply_ends_there(tmp_path: Path) -> None:
    found = items(tmp_path, "<p>One.<p>Salt did not" + "<b>" * 3_000 + " help.")
    assert [type(one) for one in found] == [Record, BadFile]
    assert isinstance(found[0], Record)
    assert found[0].passage.text == "One."


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("<title>Salt | Journal</title>", "Salt | Journal"),
        ("<title>x</title></head><body><h1>Salt</h1>", "Salt"),
        ("<meta property='og:title' content='RETRACTED: Salt'>", "RETRACTED: Salt"),
        ("", "a page"),
    ],
)
def test_titles(tmp_path: Path, head: str, title: str) -> None:
    record = items(tmp_path, f"<html><head>{head}<p>Text.")[0]
    assert isinstance(record, Record)
    assert record.passage.title == title
    assert record.passage.retracted == title.startswith("RETRACTED")


CONTENT_TYPE = "<meta http-equiv=Content-Type content='text/html; charset={}'>"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<p>5 µg".encode(), "5 µg"),
        ('<meta charset="windows-1252"><p>5 µg'.encode("cp1252"), "5 µg"),
        ('<meta charset="iso-8859-1"><p>5 – 6'.encode("cp1252"), "5 – 6"),
        (CONTENT_TYPE.format("ISO-8859-15").encode() + "<p>5 €".encode("iso-8859-15"), "5 €"),
        ("<p>5 µg".encode("utf-16"), "5 µg"),
        ("\ufeff<p>5 µg".encode(), "5 µg"),
        ("\ufeff<meta charset=koi8-r><p>5 µg".encode(), "5 µg"),
        (b"<?xml version='1.0' encoding='utf-8'?><html><p>5</p></html>", "5"),
        ("<?xml version='1.0' encoding='koi8-r'?><html><p>соль</p></html>".encode("koi8-r"), "соль"),
        ("<?xml version='1.0'?><p>5 µg".encode("utf-16-le"), "5 µg"),
        # labels, as browsers understand them
        ("<meta charset=utf-16><p>5 µg".encode(), "5 µg"),
        ("<meta charset=x-user-defined><p>5 µg".encode("cp1252"), "5 µg"),
        ("<meta charset=gb2312><p>盐 5 €镕".encode("gb18030"), "盐 5 €镕"),
        ("<meta charset=Shift_JIS><p>塩 ①".encode("cp932"), "塩 ①"),
        ("<meta charset=ks_c_5601-1987><p>소금 똠".encode("cp949"), "소금 똠"),
        ("<meta charset=klingon><p>5 µg".encode(), "5 µg"),
        # what names no encoding of the page
        ("<!-- charset=koi8-r --><p>5 µg".encode(), "5 µg"),
        ("<!-- <meta charset=koi8-r> --><p>5 µg".encode(), "5 µg"),
        ("<script charset=gbk></script><p>5 µg".encode(), "5 µg"),
        ("<p data-x='charset=gbk'>5 µg".encode(), "5 µg"),
        ("<p><a title='<meta charset=gbk>'>5 µg</a>".encode(), "5 µg"),
        ("<meta name=x content='text/html; charset=gbk'><p>5 µg".encode(), "5 µg"),
        ("<math><mi>x</mi><annotation encoding='application/x-tex'>x</annotation></math><p>5 µg".encode(), "5 µg"),
        # UTF-8 that was served by another name
        ("<meta charset=iso-8859-1><p>5 µg".encode(), "5 µg"),
    ],
)  # fmt: skip
def test_encodings(tmp_path: Path, content: bytes, text: str) -> None:
    assert shown(tmp_path, content)[0][1].split("\n\n")[-1] == text


def test_a_byte_that_is_none_of_the_encoding_costs_its_sentence(tmp_path: Path) -> None:
    record, _, bad = items(tmp_path, b"<meta charset=utf-8><p>5 \xb5g of salt. It helped.")
    assert isinstance(record, Record)
    assert record.passage.text == "5 \ufffdg of salt. It helped."
    assert isinstance(bad, Remark)


@pytest.mark.parametrize(
    "piece", [b"<!--", b"<meta charset", b"<a b='", b"<", b"<meta " + b"a " * 9]
)
def test_a_head_that_never_ends_takes_time_in_proportion(piece: bytes) -> None:
    assert growth(lambda n: list(encoding._labels(piece * n)), 1_000) < MOST


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("<p>5 µg".encode("cp1252"), "0xB5"),
        ("<meta charset=klingon><p>5 µg".encode("cp1252"), "klingon"),
        (b"<meta charset=hz-gb-2312><p>x\xff", "hz-gb-2312"),
        ("<p>salt".encode("utf-16-le"), "UTF-16"),
        (b"<div style='display: none'><p>All of it.</div>", "no text that is shown"),
        (b"", "no text"),
        (b"<html></html>", "no text"),
        (b"\0\0", "no text"),
    ],
)
def test_pages_that_are_not_read(tmp_path: Path, content: bytes, word: str) -> None:
    (bad,) = items(tmp_path, content)
    assert isinstance(bad, BadFile)
    assert word in bad.reason


def test_a_page_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "MAX_BYTES", 100)
    (bad,) = items(tmp_path, HTML)
    assert isinstance(bad, BadFile)
    assert "100 bytes" in bad.reason


@pytest.mark.parametrize("tag", ["div", "sup", "table", "li", "b"])
def test_deep_pages_take_time_in_proportion(tmp_path: Path, tag: str) -> None:
    def work(size: int) -> None:
        items(tmp_path, f"<{tag}>x" * size)

    assert growth(work, 3_000) < MOST


def test_a_formula_that_is_nested_too_deeply_is_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text(
        f"<p>Salt is {'<math>' + '<mrow>' * 600 + '<mi>x</mi>' + '</mrow>' * 600}</math>.", "utf-8"
    )
    items = list(html.read(path))
    assert [item.passage.text for item in items if isinstance(item, Record)] == [
        f"Salt is {UNREADABLE}."
    ]
    assert sum(isinstance(item, Remark) for item in items) == 1
