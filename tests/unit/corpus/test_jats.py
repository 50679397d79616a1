from __future__ import annotations

import gzip
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posology.corpus import jats
from posology.corpus.files import KINDS, kind_of
from posology.corpus.items import Item, Notice, NoticeKind, Parts, Record
from posology.errors import BadFile, BadRecord
from posology.types import Passage
from tests.literature import archive, article_set, words
from tests.literature import jats as article

_XLINK = 'xlink:href="{}" ext-link-type="{}"'


def items(folder: Path, xml: str | bytes, name: str = "a.nxml") -> list[Item]:
    path = folder / name
    path.write_bytes(xml if isinstance(xml, bytes) else xml.encode())
    return list(jats.read(path))


def passages(folder: Path, xml: str | bytes) -> list[Passage]:
    return [item.passage for item in items(folder, xml) if isinstance(item, Record)]


def texts(folder: Path, body: str) -> list[tuple[str | None, str]]:
    found = passages(folder, article(f"<body>{body}</body>", meta=""))
    return [(passage.section, passage.text) for passage in found]


def text(folder: Path, paragraph: str) -> str:
    ((_, found),) = texts(folder, f"<p>{paragraph}</p>")
    return found


def first(folder: Path, xml: str) -> Passage:
    return passages(folder, xml)[0]


def related(kind: str, target: str, by: str = "doi") -> str:
    return f'<related-article related-article-type="{kind}" {_XLINK.format(target, by)}/>'


def test_an_article_becomes_its_abstract_and_its_sections(tmp_path: Path) -> None:
    path = tmp_path / "a.nxml"
    abstract, methods, parts = items(
        tmp_path,
        article(
            ids={"pmc": "PMC70", "pmid": "71", "doi": "https://doi.org/10.1000/ABC"},
            meta='<pub-date pub-type="epub"><day>5</day><month>7</month><year>2012</year></pub-date>'
            "<abstract><p>Salt was compared with none.</p></abstract>",
        ),
    )
    common = {
        "title": "A trial of salt",
        "pmid": "71",
        "pmcid": "PMC70",
        "doi": "10.1000/abc",
        "journal": "Notes on Salt",
        "year": 2012,
        "published": "2012-07-05",
        "publication_types": ("Journal Article",),
        "languages": ("eng",),
        "source": "pmc",
        "parent": "pmcid:PMC70",
    }
    assert abstract == Record(
        passage=Passage(
            id="pmcid:PMC70#1",
            text="Salt was compared with none.",
            section="Abstract",
            same_work=("pmid:71",),
            **common,  # type: ignore[arg-type]  # of several kinds
        ),
        path=path,
        line=1,
        row=0,
    )
    assert methods == Record(
        passage=Passage(
            id="pmcid:PMC70#2",
            text="Half of them were given salt.",
            section="Methods",
            **common,  # type: ignore[arg-type]  # of several kinds
        ),
        path=path,
        line=2,
        row=1,
    )
    assert parts == Parts(id="pmcid:PMC70", count=2, path=path, line=3)


@pytest.mark.parametrize(
    ("ids", "name"),
    [
        ({"pmc": "70", "pmid": "71"}, "pmcid:PMC70"),
        ({"pmcid": "PMC70.2"}, "pmcid:PMC70"),
        ({"pmid": "71", "doi": "10.1000/a"}, "pmid:71"),
        ({"doi": "doi:10.1000/A"}, "doi:10.1000/a"),
        ({"pmc": "x", "pmid": "y", "doi": "none"}, None),
        ({"publisher-id": "12"}, None),
    ],
)
def test_which_identifier_names_an_article(
    tmp_path: Path, ids: dict[str, str], name: str | None
) -> None:
    found = first(tmp_path, article(ids=ids))
    assert found.parent == (name or f"file:{tmp_path.name}/a.nxml")


def test_in_a_set_an_article_without_an_identifier_is_reported(tmp_path: Path) -> None:
    one, bad, *_ = [
        item
        for item in items(tmp_path, article_set(article(body=""), article(ids={}), article()))
        if not isinstance(item, Parts)
    ]
    assert isinstance(one, Record)
    assert isinstance(bad, BadRecord)
    assert bad.reason == "has neither a PMC identifier nor a PMID nor a DOI"


def _date(kind: str, said: str) -> str:
    return f"<pub-date {kind}>{said}</pub-date>"


_PRINT = _date('pub-type="ppub"', "<month>12</month><year>2011</year>")
_EPUB = _date('pub-type="epub"', "<day>05</day><month>07</month><year>2012</year>")
_COLLECTION = _date('pub-type="collection"', "<year>2013</year>")
_PMC = _date('pub-type="pmc-release"', "<year>2014</year>")


@pytest.mark.parametrize(
    ("dates", "said"),
    [
        (_PMC + _COLLECTION + _EPUB + _PRINT, "2011-12"),
        (_PMC + _COLLECTION + _EPUB, "2012-07-05"),
        (_PMC + _COLLECTION, "2013"),
        (_PMC, None),
        (
            _date(
                'date-type="pub" publication-format="electronic" iso-8601-date="2019-03-04"',
                "<day>4</day><month>3</month><year>2019</year>",
            ),
            "2019-03-04",
        ),
        (
            _date('date-type="pub" publication-format="print"', "<year>2020</year>")
            + _date('date-type="pub" publication-format="electronic"', "<year>2019</year>"),
            "2020",
        ),
        (_date('date-type="pub" iso-8601-date="2019-03"', ""), "2019-03"),
        (_date('date-type="corrected"', "<year>2019</year>"), None),
        (_date('pub-type="ppub"', "<month>Feb</month><year>2001</year>"), "2001-02"),
        (_date('pub-type="ppub"', "<season>Spring</season><year>2001</year>"), "2001"),
        (_date('pub-type="ppub"', "<month>Jan-Feb</month><year>2001</year>"), "2001-01"),
        (_date('pub-type="ppub"', "<month>13</month><day>3</day><year>2001</year>"), "2001"),
        (_date('pub-type="ppub"', "<month>2</month><day>30</day><year>2001</year>"), "2001-02"),
        (_date('pub-type="ppub"', "<year>0021</year>") + _EPUB, "2012-07-05"),
        (_date('pub-type="ppub"', "<year>20012</year>"), None),
        (_date('pub-type="ppub"', "<string-date>Winter 1999</string-date>"), "1999"),
        ("", None),
    ],
)
def test_the_date_of_publication(tmp_path: Path, dates: str, said: str | None) -> None:
    found = first(tmp_path, article(meta=dates))
    assert found.published == said
    assert found.year == (None if said is None else int(said[:4]))


@pytest.mark.parametrize(
    ("journal", "name"),
    [
        ("<journal-title>Old <italic>Notes</italic></journal-title>", "Old Notes"),
        ('<journal-id journal-id-type="nlm-ta">Notes Salt</journal-id>', "Notes Salt"),
        # as PubMed's records have it, whatever the title is
        (
            (
                '<journal-id journal-id-type="iso-abbrev">Notes Salt.</journal-id>'
                '<journal-id journal-id-type="nlm-ta">Notes Salt</journal-id>'
                "<journal-title-group><journal-title>Notes on Salt</journal-title></journal-title-group>"
            ),
            "Notes Salt",
        ),
        ('<journal-id journal-id-type="issn">1234</journal-id>', None),
        ("", None),
    ],
)
def test_the_journal(tmp_path: Path, journal: str, name: str | None) -> None:
    assert first(tmp_path, article(journal=journal)).journal == name


def test_kinds_of_articles_are_said_in_medlines_words(tmp_path: Path) -> None:
    subjects = (
        "<article-categories><subj-group><subject>Randomized controlled trial</subject><subj-group>"
        "<subject>Salt</subject></subj-group></subj-group></article-categories>"
    )
    assert first(tmp_path, article(meta=subjects)).publication_types == (
        "Journal Article",
        "Randomized Controlled Trial",
    )
    review = first(tmp_path, article(kind="review-article"))
    assert review.publication_types == ("Journal Article", "Review")
    assert first(tmp_path, article(kind="unheard-of")).publication_types == ()


def test_headings_of_mesh_count_and_the_authors_words_do_not(tmp_path: Path) -> None:
    said = (
        '<kwd-group kwd-group-type="author"><kwd>salty</kwd></kwd-group>'
        '<kwd-group kwd-group-type="MeSH"><kwd>Sodium Chloride</kwd><kwd>Humans</kwd></kwd-group>'
    )
    assert first(tmp_path, article(meta=said)).mesh == ("Sodium Chloride", "Humans")


@pytest.mark.parametrize(
    ("attributes", "codes"),
    [
        ('xml:lang="de"', ("ger",)),
        ('xml:lang="EN-us"', ("eng",)),
        ('xml:lang="fre"', ("fre",)),
        ('xml:lang="xx"', ()),
        ("", ()),
    ],
)
def test_languages_have_medlines_codes(
    tmp_path: Path, attributes: str, codes: tuple[str, ...]
) -> None:
    assert first(tmp_path, article(attributes=attributes)).languages == codes


def test_trials_are_those_that_the_article_registers(tmp_path: Path) -> None:
    said = (
        "<abstract><sec><title>Background</title><p>NCT00000001 had shown it.</p></sec><sec>"
        "<title>Trial registration</title><p>NCT00000002, ISRCTN12345678.</p></sec></abstract>"
        '<related-object source-type="clinical-trials-registry" document-id="NCT00000003"/>'
    )
    found = first(tmp_path, article(meta=said)).trials
    assert found == ("NCT00000002", "ISRCTN12345678", "NCT00000003")


def test_a_subtitle_follows_its_title(tmp_path: Path) -> None:
    xml = article(
        title='Salt<xref ref-type="fn">*</xref> <sub>x</sub>\n and\twater<fn><p>1</p></fn>'
    )
    xml = xml.replace("</article-title>", "</article-title><subtitle>a trial</subtitle>")
    assert first(tmp_path, xml).title == "Salt x and water: a trial"


@pytest.mark.parametrize(
    ("title", "kind", "meta", "retracted", "concern"),
    [
        ("Salt", "research-article", related("retraction-forward", "10.1000/r"), True, False),
        ("Salt", "research-article", related("expression-of-concern", "10.1000/r"), False, True),
        ("Salt", "research-article", related("correction-forward", "10.1000/r"), False, False),
        ("RETRACTED: Salt", "research-article", "", True, False),
        ("[Retracted article] Salt", "research-article", "", True, False),
        ("Retraction: Salt", "retraction", related("retracted-article", "10.1/x"), False, False),
        ("Retracted potential in frogs", "research-article", "", False, False),
        ("Salt", "retracted-article", "", True, False),
    ],
)
def test_what_is_said_of_the_article_itself(
    tmp_path: Path, title: str, kind: str, meta: str, retracted: bool, concern: bool
) -> None:
    found = passages(tmp_path, article(title=title, kind=kind, meta=meta))
    assert {(p.retracted, p.concern) for p in found} == {(retracted, concern)}


@pytest.mark.parametrize(
    ("kind", "link", "target", "what"),
    [
        (
            "retraction",
            related("retracted-article", "10.1000/OLD"),
            "doi:10.1000/old",
            "retraction",
        ),
        ("retraction", related("retracted-article", "9", "pmid"), "pmid:9", "retraction"),
        ("retraction", related("retracted-article", "PMC9", "pmc"), "pmcid:PMC9", "retraction"),
        ("retraction", related("retraction", "10.1000/a", ""), "doi:10.1000/a", "retraction"),
        ("letter", related("object-of-concern", "10.1000/a"), "doi:10.1000/a", "concern"),
        (
            "expression-of-concern",
            related("expression-of-concern", "9", "pmid"),
            "pmid:9",
            "concern",
        ),
        ("correction", related("partial-retraction", "10.1000/a"), "doi:10.1000/a", "concern"),
    ],
)
def test_a_notice_names_the_article_that_it_is_of(
    tmp_path: Path, kind: str, link: str, target: str, what: str
) -> None:
    path = tmp_path / "a.nxml"
    notice, record, *_ = items(tmp_path, article(kind=kind, meta=link))
    assert notice == Notice(
        target=target, kind=NoticeKind(what), by="pmcid:PMC70#1", path=path, line=1
    )
    assert isinstance(record, Record)
    assert (record.passage.id, record.line) == (notice.by, notice.line)
    assert not record.passage.retracted
    assert not record.passage.concern


def test_a_retracted_article_warns_of_its_copies(tmp_path: Path) -> None:
    said = {"pmc": "PMC70", "pmid": "71", "doi": "10.1000/a"}
    found = items(tmp_path, article(kind="retracted-article", ids=said, meta=""))
    notices = [item for item in found if isinstance(item, Notice)]
    assert [(one.target, one.by, one.line) for one in notices] == [
        ("pmid:71", "pmcid:PMC70#1", 1),
        ("doi:10.1000/a", "pmcid:PMC70#1", 1),
    ]
    assert {one.kind for one in notices} == {NoticeKind.RETRACTION}


def test_a_notice_without_a_text_still_warns(tmp_path: Path) -> None:
    link = related("retracted-article", "10.1000/a")
    notice, bad = items(tmp_path, article(body="", kind="retraction", meta=link))
    assert isinstance(notice, Notice)
    assert isinstance(bad, BadRecord)
    assert (bad.record, bad.line) == ("pmcid:PMC70", 1)
    assert bad.reason == "has neither an abstract nor a text"


def test_the_abstract_is_the_same_work_as_pubmeds_record_and_the_preprint(tmp_path: Path) -> None:
    link = related("preprint", "10.1101/a") + "<abstract><p>Salt.</p></abstract>"
    abstract, methods = passages(tmp_path, article(meta=link))
    assert abstract.same_work == ("pmid:71", "doi:10.1101/a")
    assert methods.same_work == ()


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
        ("<inline-formula><inline-graphic/></inline-formula> holds", "[formula] holds"),
        ('see <ext-link xlink:href="http://a.example">here</ext-link>', "see here"),
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
        ("p <inline-graphic/> 0.05", "p [image] 0.05"),
    ],
)
def test_numbers_are_never_read_into_others(tmp_path: Path, markup: str, shown: str) -> None:
    assert text(tmp_path, markup) == shown


def test_a_formula_between_paragraphs_is_told_once(tmp_path: Path) -> None:
    both = (
        f"<alternatives>{_MATH.format('<mml:mi>a</mml:mi>')}<tex-math>$a$</tex-math></alternatives>"
    )
    found = texts(tmp_path, f"<p>So.</p><disp-formula><label>(1)</label>{both}</disp-formula>")
    assert found == [(None, "So.\n\na")]


def test_a_section_in_a_statement_is_told_once(tmp_path: Path) -> None:
    inside = "<sec><title>Claim</title><p>Salt helps.</p></sec>"
    assert texts(tmp_path, f"<statement>{inside}</statement>") == [(None, "Claim\nSalt helps.")]


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "markup",
    [
        "<sup/>" * 50_000,
        f"<tex-math>{chr(92)}begin{{document}}{chr(92) + 'begin{document}' * 50_000}</tex-math>",
    ],
)
def test_hostile_markup_takes_time_in_proportion(tmp_path: Path, markup: str) -> None:
    assert text(tmp_path, f"so {markup} it was").startswith("so ")


@pytest.mark.timeout(30)
def test_an_identifier_that_never_ends_takes_time_in_proportion(tmp_path: Path) -> None:
    torn = "<article><article-id " + 'pmid"' * 100_000
    found = items(tmp_path, article_set(torn, article()))
    assert isinstance(found[0], BadRecord | BadFile)


def test_entities_of_the_dtd_are_characters_and_others_are_shown(tmp_path: Path) -> None:
    xml = '<!DOCTYPE article SYSTEM "JATS.dtd">' + article(
        "<body><p>5 &micro;g &alpha;-salt &nonesuch; &amp;</p></body>", meta=""
    )
    assert passages(tmp_path, xml)[0].text == "5 µg α-salt &nonesuch; &"


def test_entities_are_never_expanded_or_fetched(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("TOP SECRET")
    bomb = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "ha" * 100}">' for i in range(9))
    for body in ("&l8;", "&file;"):
        xml = f'<!DOCTYPE article [{bomb}<!ENTITY file SYSTEM "{secret.as_uri()}">]>' + article(
            f"<body><p>Before {body} after.</p></body>", meta=""
        )
        for item in items(tmp_path, xml):
            assert "haha" not in str(item)
            assert "TOP SECRET" not in str(item)


def test_namespaces_do_not_hide_anything(tmp_path: Path) -> None:
    xml = article().replace("<article ", '<article xmlns="https://jats.nlm.nih.gov/ns/a" ')
    oai = f'<OAI-PMH xmlns="http://o.example"><record><metadata>{xml}</metadata></record></OAI-PMH>'
    path = tmp_path / "a.xml"
    path.write_text(oai)
    kind = kind_of(path)
    assert kind is not None
    assert kind.name == "jats"
    assert passages(tmp_path, oai) == passages(tmp_path, article())


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9])
def test_articles_before_a_break_are_kept(tmp_path: Path, cut: float) -> None:
    articles = [article(ids={"pmc": str(i)}) for i in range(1, 201)]
    content = article_set(*articles)
    broken = content[: int(len(content) * cut)]
    for name, packed in (("a.nxml", broken), ("a.nxml.gz", gzip.compress(content)[:-4])):
        *found, last = items(tmp_path, packed, name)
        assert isinstance(last, BadFile)
        whole = sum(isinstance(item, Parts) for item in found)
        assert whole == (broken.count(b"</article>") if name == "a.nxml" else 200)


@pytest.mark.parametrize("size", [10, 3_000])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("</p>", "</q>"),
        ("</article>", ""),
        ("</body>", "<"),
        ("<article ", "<article lang=en "),
        ("salt", "s<lt; &#0;"),
        ("</p>", "</p></sec></sec></body></article></pmc-articleset>"),
    ],
)
def test_a_broken_article_of_a_set_costs_that_one(
    tmp_path: Path, old: str, new: str, size: int
) -> None:
    """Whether they stand in one piece of the file that is read, or in many."""
    long = f"<body><p>Half of them were given salt.</p><p>{words(size)}</p></body>"
    made = [article(long, ids={"pmc": str(i), "doi": "10.1000/x"}) for i in range(1, 21)]
    made[4] = made[4].replace(old, new, 1)
    made[12] = made[12].replace(old, new, 1)
    found = items(tmp_path, article_set(*made))
    whole = [item.id for item in found if isinstance(item, Parts)]
    assert whole == [f"pmcid:PMC{i}" for i in range(1, 21) if i not in (5, 13)]
    bad = [item for item in found if isinstance(item, BadRecord)]
    assert [item.record for item in bad] == ["pmcid:PMC5", "pmcid:PMC13"]
    torn = "is not closed before the next begins" if not new else "no valid XML: "
    assert all(item.reason.startswith(torn) for item in bad)
    assert not any(isinstance(item, BadFile) for item in found)


def test_named_characters_are_read_behind_a_broken_article_too(tmp_path: Path) -> None:
    one = article("<body><p>&alpha;</q></body>", ids={"pmc": "1"}, meta="")
    two = article("<body><p>5 &micro;g</p></body>", ids={"pmc": "2"}, meta="")
    head = b'<!DOCTYPE pmc-articleset SYSTEM "a.dtd">'
    bad, record, _ = items(tmp_path, head + article_set(one, two).split(b"?>")[1])
    assert isinstance(bad, BadRecord)
    assert isinstance(record, Record)
    assert record.passage.text == "5 µg"


def test_a_set_whose_last_article_is_broken_ends_there(tmp_path: Path) -> None:
    one, two = (article(ids={"pmc": str(i)}) for i in (1, 2))
    *found, last = items(tmp_path, article_set(one, two.replace("</p>", "</q>")))
    assert [item.id for item in found if isinstance(item, Parts)] == ["pmcid:PMC1"]
    assert isinstance(last, BadFile)
    assert last.reason.startswith("no valid XML: Opening and ending tag mismatch")


def test_an_article_beyond_the_bound_ends_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posology.corpus.jats.stream.LONGEST", 200_000)
    long = article(f"<body><p>{words(60_000)}</p></body>")
    *found, last = items(tmp_path, article_set(article(), long))
    assert len(found) == 3
    assert isinstance(last, BadFile)
    assert last.reason == "an article of more than 200,000 bytes"


def test_what_an_unclosed_piece_swallows_is_read_all_the_same(tmp_path: Path) -> None:
    made = [article(ids={"pmc": str(i)}) for i in range(1, 5)]
    made[1] = made[1].replace("<body>", "<body><![CDATA[")
    found = items(tmp_path, article_set(*made))
    bad = [item.record for item in found if isinstance(item, BadRecord)]
    whole = [item.id for item in found if isinstance(item, Parts)]
    assert (bad, whole) == (["pmcid:PMC2"], ["pmcid:PMC1", "pmcid:PMC3", "pmcid:PMC4"])


def test_broken_articles_without_end_end_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posology.corpus.jats.stream.TWICE", 100_000)
    *found, last = items(tmp_path, article_set(*["<article><![CDATA["] * 2_000))
    assert {item.reason for item in found if isinstance(item, BadRecord)} == {
        "no valid XML: CData section not finished"
    }
    assert isinstance(last, BadFile)
    assert last.reason == "more than 100,000 bytes of broken articles"


def test_xml_of_another_kind_is_a_bad_file(tmp_path: Path) -> None:
    (bad,) = items(tmp_path, "<html/>")
    assert isinstance(bad, BadFile)
    assert bad.reason == "holds no <article>"


def test_an_archive_is_read_member_by_member(tmp_path: Path) -> None:
    path = tmp_path / "oa.tar.gz"
    path.write_bytes(
        archive(
            {
                "x/PMC1.xml": article(ids={"pmc": "1"}).encode(),
                "x/broken\n.xml": b"<article><front>",
                "x/fig.jpg": b"\xff\xd8",
                "x/PMC2.nxml": article(ids={"pmc": "2"}).encode(),
            }
        )
    )
    found = list(jats.read_archive(path))
    assert [item.id for item in found if isinstance(item, Parts)] == ["pmcid:PMC1", "pmcid:PMC2"]
    (bad,) = [item for item in found if isinstance(item, BadRecord)]
    assert bad.record == "x/broken\ufffd.xml"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["oa.tar.gz"]


def test_an_archive_without_articles_is_a_bad_file(tmp_path: Path) -> None:
    path = tmp_path / "oa.tar"
    path.write_bytes(archive({"a.jpg": b"x"}, "w"))
    (bad,) = jats.read_archive(path)
    assert isinstance(bad, BadFile)
    assert bad.reason == "the archive holds no file of .xml or .nxml"


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


def test_every_suffix_leads_to_its_reader(tmp_path: Path) -> None:
    for name in ("A.NXML", "a.xml", "a.nxml.gz", "a.xml.gz"):
        path = tmp_path / name
        path.write_bytes(article().encode())
        kind = kind_of(path)
        assert kind is not None
        assert kind.name == "jats"
    names = [kind.name for kind in KINDS]
    assert len(set(names)) == len(names)
