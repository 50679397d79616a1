from __future__ import annotations

from pathlib import Path

import pytest

from posology.corpus.items import Record
from posology.errors import BadRecord
from tests.support.pubmed_xml import article, document, publication_types
from tests.unit.corpus.pubmed.files import items_of, passage_of, shown

MESH = (
    '<MeshHeading><DescriptorName UI="D001241" MajorTopicYN="N">Aspirin</DescriptorName>'
    '<QualifierName UI="Q000009" MajorTopicYN="Y">adverse effects</QualifierName></MeshHeading>'
    '<MeshHeading><DescriptorName UI="D006801">Humans</DescriptorName></MeshHeading>'
    '<MeshHeading><DescriptorName UI="D001241">Aspirin</DescriptorName>'
    '<QualifierName UI="Q000627">therapeutic use</QualifierName></MeshHeading>'
)


def bank(name: str, *numbers: str) -> str:
    listed = "".join(f"<AccessionNumber>{number}</AccessionNumber>" for number in numbers)
    inside = f"<AccessionNumberList>{listed}</AccessionNumberList>" if numbers else ""
    return f"<DataBank><DataBankName>{name}</DataBankName>{inside}</DataBank>"


def test_every_field_is_read(tmp_path: Path) -> None:
    record = article(
        "10051933",
        title="Aspirin after a stroke.",
        sections=(
            '<AbstractText Label="BACKGROUND" NlmCategory="BACKGROUND">Strokes recur.</AbstractText>'
            '<AbstractText Label="METHODS" NlmCategory="METHODS">We\n   asked.</AbstractText>'
            "<CopyrightInformation>© 2012 Nobody.</CopyrightInformation>"
        ),
        pub_date="<Year>2012</Year><Month>Jul</Month><Day>05</Day>",
        medline_ta="N Engl J Med",
        locations='<ELocationID EIdType="doi" ValidYN="Y">10.1056/NEJMoa1200303</ELocationID>',
        languages=("eng", "fre"),
        banks=bank("ClinicalTrials.gov", "NCT00000620"),
        grants="<Grant><GrantID>R01 1</GrantID><Agency>NIH</Agency></Grant>",
        types=publication_types("Journal Article", "Randomized Controlled Trial"),
        mesh=MESH,
        supplements='<SupplMeshName Type="Disease" UI="C1">Moyamoya disease 1</SupplMeshName>',
        ids='<ArticleId IdType="pmc">PMC3395386</ArticleId>',
    )
    (item,) = items_of(tmp_path, document(record))
    assert isinstance(item, Record)
    assert (item.line, item.row) == (1, 0)
    passage = item.passage
    assert passage.id == "pmid:10051933"
    assert passage.pmid == "10051933"
    assert passage.title == "Aspirin after a stroke."
    assert passage.text == "BACKGROUND: Strokes recur.\nMETHODS: We asked."
    assert passage.journal == "N Engl J Med"
    assert passage.year == 2012
    assert passage.published == "2012-07-05"
    assert passage.publication_types == ("Journal Article", "Randomized Controlled Trial")
    assert passage.mesh == ("Aspirin", "Humans", "Moyamoya disease 1")
    assert passage.languages == ("eng", "fre")
    assert passage.doi == "10.1056/nejmoa1200303"
    assert passage.pmcid == "PMC3395386"
    assert passage.trials == ("NCT00000620",)
    assert passage.source == "pubmed"
    assert not passage.retracted
    assert not passage.concern
    assert passage.same_work == ()
    assert passage.parent is None
    assert passage.section is None


def test_what_a_record_does_not_say_is_not_made_up(tmp_path: Path) -> None:
    record = article(
        pub_date="<MedlineDate>no date</MedlineDate>", journal="", medline_ta="", title=""
    )
    passage = passage_of(tmp_path, record)
    assert passage.title == ""
    assert passage.journal is None
    assert passage.year is None
    assert passage.published is None
    assert passage.doi is None
    assert passage.pmcid is None
    assert passage.mesh == ()
    assert passage.trials == ()


@pytest.mark.parametrize(
    ("sections", "text"),
    [
        ("<AbstractText>One.</AbstractText>", "One."),
        ("<AbstractText>One.</AbstractText><AbstractText>Two.</AbstractText>", "One.\nTwo."),
        ('<AbstractText Label="AIM">One.</AbstractText>', "AIM: One."),
        ('<AbstractText Label="AIM: ">One.</AbstractText>', "AIM: One."),
        (
            '<AbstractText Label="Methods and Results">Two.</AbstractText>',
            "Methods and Results: Two.",
        ),
        ('<AbstractText Label="UNLABELLED">One.</AbstractText>', "One."),
        ('<AbstractText Label="UNLABELED" NlmCategory="UNASSIGNED">One.</AbstractText>', "One."),
        ('<AbstractText NlmCategory="METHODS">One.</AbstractText>', "One."),
        (
            (
                '<AbstractText Label="AIM">One.</AbstractText><AbstractText Label="METHODS"> </AbstractText>'
                '<AbstractText Label="RESULTS">Two.</AbstractText>'
            ),
            "AIM: One.\nRESULTS: Two.",
        ),
    ],
)
def test_sections_of_an_abstract_are_lines(tmp_path: Path, sections: str, text: str) -> None:
    assert passage_of(tmp_path, article(sections=sections)).text == text


def other(text: str, *, language: str = "eng", kind: str = "Publisher") -> str:
    return (
        f'<OtherAbstract Type="{kind}" Language="{language}"><AbstractText>{text}</AbstractText>'
        "</OtherAbstract>"
    )


@pytest.mark.parametrize(
    ("others", "text"),
    [
        (other("Mots.", language="fre") + other("Words."), "Words."),
        (other("For you.", kind="plain-language-summary") + other("Words.", kind="PIP"), "Words."),
        (other("For you.", kind="plain-language-summary"), "For you."),
    ],
)
def test_another_abstract_in_english_stands_in(tmp_path: Path, others: str, text: str) -> None:
    assert passage_of(tmp_path, article(abstract=None, others=others)).text == text


def test_another_abstract_is_left_out_where_there_is_one(tmp_path: Path) -> None:
    assert passage_of(tmp_path, article(others=other("Other words."))).text == "Some words."


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (article("7", abstract=None), "has no abstract"),
        (article("7", abstract=" \n "), "has no abstract"),
        (
            article("7", abstract=None, others=other("Palabras.", language="spa")),
            "has no abstract in English, one in spa",
        ),
    ],
)
def test_a_record_without_an_abstract_is_named(tmp_path: Path, record: str, reason: str) -> None:
    first, bad, last = items_of(tmp_path, document(article("6"), record, article("8")))
    assert [shown(first), shown(last)] == ["1 pmid:6", "3 pmid:8"]
    assert isinstance(bad, BadRecord)
    assert str(bad) == f"{tmp_path / 'set.xml'}:2 (pmid:7): {reason}"


@pytest.mark.parametrize(
    ("title", "vernacular", "expected"),
    [
        ("[Aspirin in stroke].", "", "Aspirin in stroke."),
        ("[Aspirin in stroke.]", "", "Aspirin in stroke."),
        ("[Does aspirin help?].", "Aspirina?", "Does aspirin help?"),
        ("[Aspirin] and [heparin].", "", "[Aspirin] and [heparin]."),
        ("[<sup>18</sup>F]FDG in sarcoma.", "", "[18F]FDG in sarcoma."),
        ("[Imaging with [<sup>18</sup>F]FDG].", "", "Imaging with [18F]FDG."),
        ("[Not Available].", "Aspirin bei Schlaganfall.", "Aspirin bei Schlaganfall."),
        ("[Not Available].", "", ""),
        ("", "Aspirin bei Schlaganfall.", "Aspirin bei Schlaganfall."),
        ("[In Process Citation]", "", ""),
        ("  A\n title  with  &amp; &lt;signs&gt; ", "", "A title with & <signs>"),
    ],
)
def test_titles(tmp_path: Path, title: str, vernacular: str, expected: str) -> None:
    assert passage_of(tmp_path, article(title=title, vernacular=vernacular)).title == expected


@pytest.mark.parametrize(
    ("journal", "medline_ta", "expected"),
    [
        ("<Title>The Lancet</Title>", "Lancet", "Lancet"),
        ("<Title>The Lancet</Title><ISOAbbreviation>Lanc.</ISOAbbreviation>", "", "Lanc."),
        ("<Title>The Lancet</Title>", "", "The Lancet"),
    ],
)
def test_journals(tmp_path: Path, journal: str, medline_ta: str, expected: str) -> None:
    record = article(journal=journal, medline_ta=medline_ta)
    assert passage_of(tmp_path, record).journal == expected


def location(text: str, *, kind: str = "doi", valid: str = "Y") -> str:
    return f'<ELocationID EIdType="{kind}" ValidYN="{valid}">{text}</ELocationID>'


def identifier(kind: str, text: str) -> str:
    return f'<ArticleId IdType="{kind}">{text}</ArticleId>'


@pytest.mark.parametrize(
    ("locations", "ids", "doi"),
    [
        (location("10.1000/ABC"), "", "10.1000/abc"),
        (location("S1-2", kind="pii") + location("10.1000/x"), "", "10.1000/x"),
        (location("10.1000/wrong", valid="N"), identifier("doi", "10.1000/right"), "10.1000/right"),
        ("", identifier("doi", " https://doi.org/10.1000/X(1)&lt;2&gt; "), "10.1000/x(1)<2>"),
        ("", identifier("doi", "doi: 10.1000/x"), "10.1000/x"),
        (location("not a doi"), identifier("doi", "10.1000/x"), "10.1000/x"),
        (location("10.1000/with space"), "", None),
        ("", identifier("pii", "10.1000/x"), None),
    ],
)
def test_dois(tmp_path: Path, locations: str, ids: str, doi: str | None) -> None:
    assert passage_of(tmp_path, article(locations=locations, ids=ids)).doi == doi


def test_identifiers_of_references_are_not_the_records_own(tmp_path: Path) -> None:
    ids = identifier("doi", "10.1000/theirs") + identifier("pmc", "PMC1")
    references = (
        f"<ReferenceList><Reference><Citation>X</Citation><ArticleIdList>{ids}</ArticleIdList>"
        "</Reference></ReferenceList>"
    )
    passage = passage_of(tmp_path, article(references=references))
    assert passage.doi is None
    assert passage.pmcid is None


@pytest.mark.parametrize(
    ("ids", "others", "pmcid"),
    [
        (identifier("pmc", "PMC3395386"), "", "PMC3395386"),
        (identifier("pmc", "pmc3395386"), "", "PMC3395386"),
        (identifier("pmcid", "pmc-id: PMC3395386;embargo-date: 2013/01/05;"), "", "PMC3395386"),
        ("", '<OtherID Source="NLM">PMC3395386 [Available on 01/05/13]</OtherID>', "PMC3395386"),
        ("", '<OtherID Source="NASA">00029203</OtherID>', None),
    ],
)
def test_pmc_ids(tmp_path: Path, ids: str, others: str, pmcid: str | None) -> None:
    assert passage_of(tmp_path, article(ids=ids, others=others)).pmcid == pmcid


@pytest.mark.parametrize(
    ("banks", "trials"),
    [
        (bank("ClinicalTrials.gov", "nct 00000620", "NCT00000621"), ("NCT00000620", "NCT00000621")),
        (bank("ISRCTN", "ISRCTN 12345678"), ("ISRCTN12345678",)),
        (bank("EudraCT", "2004-000446-20"), ("2004-000446-20",)),
        (
            bank("UMIN CTR", "UMIN000001234") + bank("ANZCTR", "ACTRN1260"),
            ("UMIN000001234", "ACTRN1260"),
        ),
        (bank("GENBANK", "U12345") + bank("PDB", "1ABC"), ()),
        (bank("ClinicalTrials.gov"), ()),
        (bank("ClinicalTrials.gov", "NCT00000620") * 2, ("NCT00000620",)),
    ],
)
def test_trials(tmp_path: Path, banks: str, trials: tuple[str, ...]) -> None:
    assert passage_of(tmp_path, article(banks=banks)).trials == trials


def test_languages_are_codes_of_three_letters(tmp_path: Path) -> None:
    record = article(languages=("ENG", "english", "ger", "eng", ""))
    assert passage_of(tmp_path, record).languages == ("eng", "ger")


BOOK = (
    '<PubmedBookArticle><BookDocument><PMID Version="1">{pmid}</PMID><ArticleIdList>'
    '<ArticleId IdType="bookaccession">NBK1247</ArticleId><ArticleId IdType="doi">10.1000/B1</ArticleId>'
    "</ArticleIdList><Book><Publisher><PublisherName>Test Press</PublisherName></Publisher>"
    '<BookTitle book="b">Book<sup>®</sup> of Tests</BookTitle><PubDate><Year>1993</Year></PubDate>'
    "</Book>{title}<Language>eng</Language>"
    '<PublicationType UI="D016454">Review</PublicationType>{abstract}{contributed}</BookDocument>'
    "<PubmedBookData><PublicationStatus>ppublish</PublicationStatus><ArticleIdList>"
    '<ArticleId IdType="pubmed">{pmid}</ArticleId></ArticleIdList></PubmedBookData></PubmedBookArticle>'
)


def book(
    pmid: str = "20301425",
    *,
    title: str = "<ArticleTitle>A <i>BRCA1</i> chapter</ArticleTitle>",
    abstract: str = '<Abstract><AbstractText Label="SUMMARY">Words.</AbstractText></Abstract>',
    contributed: str = "",
) -> str:
    return BOOK.format(pmid=pmid, title=title, abstract=abstract, contributed=contributed)


def test_a_chapter_of_a_book(tmp_path: Path) -> None:
    day = "<Year>1998</Year><Month>9</Month><Day>4</Day>"
    contributed = f"<ContributionDate>{day}</ContributionDate>"
    passage = passage_of(tmp_path, book(contributed=contributed))
    assert passage.id == "pmid:20301425"
    assert passage.title == "A BRCA1 chapter"
    assert passage.text == "SUMMARY: Words."
    assert passage.journal == "Book® of Tests"
    assert passage.publication_types == ("Review",)
    assert passage.languages == ("eng",)
    assert passage.doi == "10.1000/b1"
    assert passage.published == "1998-09-04"


def test_a_book_without_chapters_or_abstract(tmp_path: Path) -> None:
    whole = book("1", title="")
    empty = book("2", abstract="")
    first, bad = items_of(tmp_path, document(whole, empty))
    assert isinstance(first, Record)
    assert first.passage.title == "Book® of Tests"
    assert first.passage.published == "1993"
    assert shown(bad) == "2 bad: has no abstract"


def test_numbers_that_are_none(tmp_path: Path) -> None:
    missing = article("9").replace('<PMID Version="1">9</PMID>', "")
    content = document(article("X12"), missing, article("0"), article(" 12 "))
    items = items_of(tmp_path, content, valid=False)
    assert [shown(item) for item in items] == [
        "1 bad: its PMID is no number: 'X12'",
        "2 bad: has no PMID",
        "3 bad: its PMID is no number: '0'",
        "4 pmid:12",
    ]
    assert all(item.record is None for item in items if isinstance(item, BadRecord))
