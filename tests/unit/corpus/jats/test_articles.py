"""What a record says of an article: its names, dates, kind and fate."""

from __future__ import annotations

from pathlib import Path

import pytest

from posology.corpus.items import Notice, NoticeKind, Parts, Record
from posology.errors import BadRecord
from posology.types import Passage
from tests.support.literature import article_set
from tests.support.literature import jats as article
from tests.unit.corpus.jats.reading import first, items, passages, related


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
