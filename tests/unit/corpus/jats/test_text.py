"""The words of an article: its abstract, sections, captions and markup."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posology.corpus.items import Parts, Record, Remark
from tests.support.literature import jats as article
from tests.support.literature import words
from tests.unit.corpus.jats.reading import items, passages, text, texts


def test_sections_of_an_abstract_have_a_line_each(tmp_path: Path) -> None:
    said = (
        "<abstract><title>Summary</title><sec><title>Aim</title><p>To see.</p></sec>"
        "<sec><title>Results:</title><p>One.</p><p>Two.</p></sec></abstract>"
        '<abstract abstract-type="graphical"><p>A picture.</p></abstract>'
        '<abstract abstract-type="plain-language-summary"><p>Salt is fine.</p></abstract>'
        '<trans-abstract xml:lang="de"><p>Salz.</p></trans-abstract>'
    )
    found = passages(tmp_path, article(meta=said, body=""))
    assert [(p.section, p.text) for p in found] == [
        ("Abstract", "Aim: To see.\nResults: One.\nTwo."),
        ("Plain language summary", "Salt is fine."),
    ]


def test_an_abstract_in_another_language_stands_in_for_none_only(tmp_path: Path) -> None:
    spanish = '<abstract xml:lang="es"><p>La sal ayuda.</p></abstract>'
    english = '<abstract xml:lang="en-GB"><p>Salt helps.</p></abstract>'
    both = passages(tmp_path, article("<body/>", meta=spanish + english))
    assert [passage.text for passage in both] == ["Salt helps."]
    alone = passages(tmp_path, article("<body/>", meta=spanish))
    assert [passage.text for passage in alone] == ["La sal ayuda."]


def test_an_abstract_is_whole_up_to_its_own_bound(tmp_path: Path) -> None:
    def sizes(count: int) -> list[int]:
        said = f"<abstract><p>{words(count)}</p></abstract>"
        return [len(p.text.split()) for p in passages(tmp_path, article(meta=said, body=""))]

    assert sizes(400) == [400]
    assert len(sizes(410)) == 3


def test_headings_make_a_path(tmp_path: Path) -> None:
    body = (
        "<p>Before all.</p><sec><title>Methods</title><p>First.</p><sec><label>2.1</label>"
        "<title>Random<italic>isation</italic></title><p>Second.</p></sec><sec><p>Third.</p></sec></sec>"
    )
    assert texts(tmp_path, body) == [
        (None, "Before all."),
        ("Methods", "First."),
        ("Methods > Randomisation", "Second."),
        ("Methods", "Third."),
    ]


def test_long_sections_are_cut_at_paragraphs(tmp_path: Path) -> None:
    paragraphs = [words(90, 100 * i) for i in range(3)]
    body = "".join(f"<p>{one}</p>" for one in paragraphs)
    assert texts(tmp_path, body) == [(None, one) for one in paragraphs]


def test_captions_stand_where_their_figures_and_tables_do(tmp_path: Path) -> None:
    table = (
        "<table-wrap><label>Table 1.</label><caption><title>Who they were.</title></caption>"
        "<table><tr><td>12</td></tr></table><table-wrap-foot><p>Note.</p></table-wrap-foot></table-wrap>"
    )
    figure = "<fig><label>Figure 1</label><caption><title>Flow.</title><p>All of them.</p></caption></fig>"
    body = f"<sec><title>Results</title><p>As shown{figure} here.</p>{table}<fig><label>2</label></fig></sec>"
    ((section, found),) = texts(tmp_path, body)
    assert section == "Results"
    assert found.split("\n\n") == [
        "As shown here.",
        "Figure 1. Flow. All of them.",
        "Table 1. Who they were.",
        "Table 1, row 1: column 1: 12.",
        "Table 1, note: Note.",
    ]


def test_what_stands_behind_the_text(tmp_path: Path) -> None:
    back = (
        "<back><ack><p>Thanks.</p></ack><app-group><app><title>Appendix A</title><p>More.</p></app></app-group>"
        "<ref-list><ref><mixed-citation>Someone.</mixed-citation></ref></ref-list></back><floats-group><fig>"
        "<label>Fig 1</label><caption><p>Flow.</p></caption></fig></floats-group><sub-article><front-stub/>"
        "<body><p>A reviewer.</p></body></sub-article>"
    )
    found = passages(tmp_path, article("<body><p>Text.</p></body>", back=back, meta=""))
    assert [(p.section, p.text) for p in found] == [
        (None, "Text."),
        ("Appendix A", "More."),
        ("Figures and tables", "Fig 1. Flow."),
    ]


def test_boxes_lists_and_quotations(tmp_path: Path) -> None:
    body = (
        "<boxed-text><caption><title>Key points</title></caption><p>Take salt.</p></boxed-text>"
        "<sec><title>How</title><p>In steps:<list><list-item><p>one</p></list-item><list-item><label>b)</label>"
        "<p>two</p></list-item></list>done.</p><disp-quote><p>I was well.</p></disp-quote></sec>"
    )
    assert texts(tmp_path, body) == [
        ("Key points", "Take salt."),
        ("How", "In steps:\n• one\nb) two\ndone.\n\nI was well."),
    ]


_SQUARE = "<mml:msup><mml:mi>x</mml:mi><mml:mn>2</mml:mn></mml:msup>"
_TEX = r"<tex-math>\documentclass{m}\usepackage{a}\begin{document}$$y^2$$\end{document}</tex-math>"


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("a <bold><italic>b</italic></bold>\n  c", "a b c"),
        ("10<sup>-3</sup> of CO<sub>2</sub>", "10^-3 of CO2"),
        ("5 m<sup>2</sup>, 1<sup>st</sup>", "5 m2, 1st"),
        ('well [<xref ref-type="bibr" rid="r1">1</xref>–3].', "well [1–3]."),
        ('45<sup><xref ref-type="bibr">7</xref></sup> of them', "45[7] of them"),
        ('of all.<sup>[<xref ref-type="bibr">7</xref>]</sup>', "of all.[7]"),
        ("one<break/>two", "one two"),
        ("a<!-- hidden --> b<?pi x?>", "a b"),
        ("a&#8201;b&#160;c", "a\u2009b\xa0c"),
        ("so<fn><p>note</p></fn>, then", "so, then"),
        (
            f"<inline-formula><mml:math>{_SQUARE}</mml:math></inline-formula> holds",
            "x^2 holds",
        ),
        (
            f"<inline-formula><alternatives>{_TEX}<inline-graphic/></alternatives></inline-formula> holds",
            "y^2 holds",
        ),
        ("at <inline-formula>10<sup>9</sup></inline-formula>/L", "at 10^9/L"),
        ("CO<sub>2 </sub>levels", "CO2 levels"),
        ("mean <overline>x</overline> of it", "mean x of it"),
        ("an <abbrev>RCT<def><p>trial</p></def></abbrev> was", "an RCT (trial) was"),
        ("the <ruby><rb>字</rb><rt>ji</rt></ruby> sign", "the 字 sign"),
        ("as <array><tbody><tr><td>a</td><td>b</td></tr></tbody></array>", "as\na b"),
        (
            "in <inline-supplementary-material>Table S1</inline-supplementary-material>",
            "in Table S1",
        ),
        (
            "see <alternatives><inline-graphic/><textual-form>≥</textual-form></alternatives> 5",
            "see ≥ 5",
        ),
        ("aged <inline-graphic><alt-text>≥</alt-text></inline-graphic> 65", "aged ≥ 65"),
        ("of <chem-struct>CH<sub>4</sub></chem-struct>", "of CH4"),
        ("did <publishers-own>not</publishers-own> help", "did not help"),
        ("5&#150;6, it&#146;s", "5–6, it’s"),
        ("<graphic/>one", "\ufffdone"),
        ('see <ext-link xlink:href="http://a.example">here</ext-link>', "see here"),
        ("was<disp-formula><italic>n</italic></disp-formula>where", "was n where"),
        ("was<fig><caption><p/></caption></fig>higher", "was higher"),
    ],
)
def test_markup_becomes_what_a_reader_sees(tmp_path: Path, markup: str, shown: str) -> None:
    assert text(tmp_path, markup) == shown


_CITED = '<xref ref-type="bibr">'
_MATH = '<mml:math xmlns:mml="http://www.w3.org/1998/Math/MathML">{}</mml:math>'


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        (f"in 45{_CITED}<sup>7</sup></xref> of", "in 45[7] of"),
        (f"in 45{_CITED}7</xref> of", "in 45[7] of"),
        (f"ended.<sup>{_CITED}7</xref>,{_CITED}8</xref></sup>", "ended.[7,8]"),
        ('5<xref ref-type="fn"><sup>1</sup></xref> mg', "5[1] mg"),
        ('5<xref ref-type="table-fn"><sup>a</sup></xref> mg', "5^a mg"),
        ("10<sup>9</sup>5 and 10 <sup>9</sup>/L", "10^9 5 and 10 ^9/L"),
        (f"5<inline-formula>{_MATH.format('<mml:mn>3</mml:mn>')}</inline-formula>7", "5 3 7"),
    ],
)
def test_numbers_are_never_read_into_others(tmp_path: Path, markup: str, shown: str) -> None:
    assert text(tmp_path, markup) == shown


@pytest.mark.parametrize(
    ("inside", "shown"),
    [
        (f"<italic>p</italic> &lt; {_MATH.format('<mml:mn>0.05</mml:mn>')}", "p < 0.05"),
        (f"{_MATH.format('<mml:mi>x</mml:mi>')} and {_MATH.format('<mml:mi>y</mml:mi>')}", "x and y"),
        (f"{_MATH.format('<mml:mi>x</mml:mi>')}<tex-math>x</tex-math><inline-graphic/>", "x"),
        ("<alternatives><inline-graphic/><textual-form>x<sup>2</sup></textual-form></alternatives>", "x2"),
        ("<label>(1)</label><italic>y</italic> = 2", "y = 2"),
        ("<mml:mfrac linethickness='0pt'><mml:mi>n</mml:mi><mml:mi>k</mml:mi></mml:mfrac>", "n; k"),
    ],
)  # fmt: skip
def test_formulas_of_several_parts_and_forms(tmp_path: Path, inside: str, shown: str) -> None:
    made = _MATH.format(inside) if inside.startswith("<mml:mf") else inside
    assert text(tmp_path, f"as <inline-formula>{made}</inline-formula> is") == f"as {shown} is"


def test_what_is_raised_in_a_table_is_a_mark_where_a_note_begins_with_it(tmp_path: Path) -> None:
    rows = "".join(
        f"<tr><td>CD14<sup>{kind}</sup></td><td>{count}<sup>a</sup></td></tr>"
        for kind, count in (("high", 12), ("low", 40))
    )
    table = (
        f"<table><thead><tr><th>Cells</th><th>Lived</th></tr></thead><tbody>{rows}</tbody></table>"
    )
    notes = (
        "<p><sup>a</sup>Adjusted. <sup>b</sup>Not CD14<sup>high</sup> or CD14<sup>low</sup>.</p>"
    )
    shown = text(
        tmp_path,
        f"<table-wrap><label>Table 1</label>{table}<table-wrap-foot>{notes}</table-wrap-foot></table-wrap>",
    )
    assert shown.split("\n\n") == [
        "Table 1, row Cells / CD14high: Lived: 12.",
        "Table 1, row Cells / CD14low: Lived: 40.",
        "Table 1, note: a Adjusted. b Not CD14high or CD14low.",
    ]
    notes = "<p><sup>a</sup>Mean<sup>b</sup>Median with <sup>18</sup>F-FDG.</p>"
    rows = "<tr><td>A<sup>b</sup></td><td>12</td></tr>"
    table = (
        f"<table><thead><tr><th>Arm</th><th>Lived</th></tr></thead><tbody>{rows}</tbody></table>"
    )
    shown = text(
        tmp_path,
        f"<table-wrap><label>Table 2</label>{table}<table-wrap-foot>{notes}</table-wrap-foot></table-wrap>",
    )
    assert shown.split("\n\n")[0] == "Table 2, row Arm / A: Lived: 12."
    assert "18F-FDG" in shown


@pytest.mark.parametrize(
    ("inner", "kind"),
    [
        ("<inline-formula><inline-graphic/></inline-formula>", "formula that is a picture"),
        ("<inline-formula><alternatives><graphic/></alternatives></inline-formula>", "formula that is a picture"),
        (_MATH.format(""), "formula that is a picture"),
        ("<chem-struct><inline-graphic/></chem-struct>", "formula that is a picture"),
        ("<inline-graphic/>", "picture in a line of text"),
        ("<graphic><alt-text>A long description.</alt-text></graphic>", "picture in a line of text"),
        ("<private-char><glyph-data>0110</glyph-data></private-char>", "character that is a picture"),
        ("<strike>always</strike>", "text that is struck through"),
        ("<styled-content style='text-decoration: line-through'>x</styled-content>", "text that is struck through"),
        ("<sign code='ge'/>", "element that JATS does not have"),
        ("\ue123", "character U+E123"),
        ("\ufffd", "character that the file itself has lost"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_marked_and_said(tmp_path: Path, inner: str, kind: str) -> None:
    found = items(tmp_path, article(f"<body><p>Aged {inner} 65. So.</p></body>", meta=""))
    (record,) = [one for one in found if isinstance(one, Record)]
    assert record.passage.text == "Aged \ufffd 65. So."
    assert isinstance(found[-1], Remark)
    assert found[-1].record == "pmcid:PMC70"
    assert kind in found[-1].reason
    assert "after “Aged”" in found[-1].reason


def test_pictures_that_are_figures_are_left_out(tmp_path: Path) -> None:
    found = items(tmp_path, article("<body><p><graphic/></p><p>So.</p></body>", meta=""))
    assert [type(one) for one in found] == [Record, Parts]


def test_a_formula_between_paragraphs_is_told_once(tmp_path: Path) -> None:
    both = (
        f"<alternatives>{_MATH.format('<mml:mi>a</mml:mi>')}<tex-math>$a$</tex-math></alternatives>"
    )
    found = texts(tmp_path, f"<p>So.</p><disp-formula><label>(1)</label>{both}</disp-formula>")
    assert found == [(None, "So.\n\na")]


def test_a_section_in_a_statement_is_told_once(tmp_path: Path) -> None:
    inside = "<sec><title>Claim</title><p>Salt helps.</p></sec>"
    assert texts(tmp_path, f"<statement>{inside}</statement>") == [(None, "Claim\nSalt helps.")]


_WORDS = st.text(st.sampled_from("abcXY. \n!([é—\U0001f48a"), max_size=60)


def _sections(depth: int) -> st.SearchStrategy[str]:
    paragraph = st.builds("<p>{}</p>".format, _WORDS)
    marked = st.builds("<p>{}<bold>{}<sub>{}</sub></bold>{}</p>".format, *[_WORDS] * 4)
    box = st.builds("<boxed-text><p>{}</p></boxed-text>".format, _WORDS)
    within = st.builds("<p>{}<disp-quote><p>{}</p></disp-quote></p>".format, _WORDS, _WORDS)
    kinds = [paragraph, marked, box, within]
    if depth:
        deeper = _sections(depth - 1)
        kinds.append(st.builds("<sec><title>T</title>{}</sec>".format, deeper))
    return st.lists(st.one_of(kinds), max_size=4).map("".join)


@given(body=_sections(3))
@settings(deadline=None)
def test_every_character_of_a_body_is_in_exactly_one_passage(body: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = passages(Path(folder), article(f"<body>{body}</body>", meta=""))
    whole = re.sub(r"<title>T</title>|<[^>]*>", " ", body)
    assert sorted("".join("".join(p.text for p in found).split())) == sorted("".join(whole.split()))
    assert [p.id for p in found] == [f"pmcid:PMC70#{i}" for i in range(1, len(found) + 1)]
