from __future__ import annotations

from pathlib import Path
from typing import Any

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


def other(text: str, *, language: str = "eng", kind: str = "Publisher") -> str:
    return (
        f'<OtherAbstract Type="{kind}" Language="{language}"><AbstractText>{text}</AbstractText>'
        "</OtherAbstract>"
    )


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


def location(text: str, *, kind: str = "doi", valid: str = "Y") -> str:
    return f'<ELocationID EIdType="{kind}" ValidYN="{valid}">{text}</ELocationID>'


def identifier(kind: str, text: str) -> str:
    return f'<ArticleId IdType="{kind}">{text}</ArticleId>'


def test_identifiers_of_references_are_not_the_records_own(tmp_path: Path) -> None:
    ids = identifier("doi", "10.1000/theirs") + identifier("pmc", "PMC1")
    references = (
        f"<ReferenceList><Reference><Citation>X</Citation><ArticleIdList>{ids}</ArticleIdList>"
        "</Reference></ReferenceList>"
    )
    passage = passage_of(tmp_path, article(references=references))
    assert passage.doi is None
    assert passage.pmcid is None


def sections(*given: tuple[str, str]) -> str:
    """Sections of an abstract: attributes and text."""
    return "".join(f"<AbstractText {said}>{text}</AbstractText>" for said, text in given)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"sections": sections(("", "One."))}, "One."),
        ({"sections": sections(("", "One."), ("", "Two."))}, "One.\nTwo."),
        ({"sections": sections(('Label="AIM: "', "One."))}, "AIM: One."),
        ({"sections": sections(('Label="UNLABELLED"', "One."))}, "One."),
        ({"sections": sections(('Label="UNLABELED" NlmCategory="UNASSIGNED"', "One."))}, "One."),
        ({"sections": sections(('NlmCategory="METHODS"', "One."))}, "One."),
        (
            {"sections": sections(('Label="AIM"', "1."), ('Label="METHODS"', " "), ('Label="Found"', "2."))},
            "AIM: 1.\nFound: 2.",
        ),
        # another abstract in English stands in, and is left out where there is one
        ({"abstract": None, "others": other("Mots.", language="fre") + other("Words.")}, "Words."),
        (
            {"abstract": None, "others": other("For you.", kind="plain-language-summary") + other("Words.", kind="PIP")},
            "Words.",
        ),
        ({"abstract": None, "others": other("For you.", kind="plain-language-summary")}, "For you."),
        ({"others": other("Other words.")}, "Some words."),
    ],
)  # fmt: skip
def test_abstracts(tmp_path: Path, said: dict[str, Any], text: str) -> None:
    assert passage_of(tmp_path, article(**said)).text == text


LANCET = "<Title>The Lancet</Title>"


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ({"title": "[Aspirin in stroke]."}, "title", "Aspirin in stroke."),
        ({"title": "[Aspirin in stroke.]"}, "title", "Aspirin in stroke."),
        ({"title": "[Does aspirin help?].", "vernacular": "Aspirina?"}, "title", "Does aspirin help?"),
        ({"title": "[Aspirin] and [heparin]."}, "title", "[Aspirin] and [heparin]."),
        ({"title": "[<sup>18</sup>F]FDG in sarcoma."}, "title", "[18F]FDG in sarcoma."),
        ({"title": "[Imaging with [<sup>18</sup>F]FDG]."}, "title", "Imaging with [18F]FDG."),
        ({"title": "[Not Available].", "vernacular": "Bei Schlaganfall."}, "title", "Bei Schlaganfall."),
        ({"title": "[Not Available]."}, "title", ""),
        ({"title": "", "vernacular": "Bei Schlaganfall."}, "title", "Bei Schlaganfall."),
        ({"title": "[In Process Citation]"}, "title", ""),
        ({"title": "  A\n title  with  &amp; &lt;signs&gt; "}, "title", "A title with & <signs>"),
        ({"journal": LANCET, "medline_ta": "Lancet"}, "journal", "Lancet"),
        ({"journal": f"{LANCET}<ISOAbbreviation>Lanc.</ISOAbbreviation>", "medline_ta": ""}, "journal", "Lanc."),
        ({"journal": LANCET, "medline_ta": ""}, "journal", "The Lancet"),
        ({"locations": location("10.1000/ABC")}, "doi", "10.1000/abc"),
        ({"locations": location("S1-2", kind="pii") + location("10.1000/x")}, "doi", "10.1000/x"),
        (
            {"locations": location("10.1000/wrong", valid="N"), "ids": identifier("doi", "10.1000/right")},
            "doi",
            "10.1000/right",
        ),
        ({"ids": identifier("doi", " https://doi.org/10.1000/X(1)&lt;2&gt; ")}, "doi", "10.1000/x(1)<2>"),
        ({"ids": identifier("doi", "doi: 10.1000/x")}, "doi", "10.1000/x"),
        ({"locations": location("not a doi"), "ids": identifier("doi", "10.1000/x")}, "doi", "10.1000/x"),
        ({"locations": location("10.1000/with space")}, "doi", None),
        ({"ids": identifier("pii", "10.1000/x")}, "doi", None),
        ({"ids": identifier("pmc", "pmc3395386")}, "pmcid", "PMC3395386"),
        ({"ids": identifier("pmcid", "pmc-id: PMC3395386;embargo-date: 2013/01/05;")}, "pmcid", "PMC3395386"),
        (
            {"others": '<OtherID Source="NLM">PMC3395386 [Available on 01/05/13]</OtherID>'},
            "pmcid",
            "PMC3395386",
        ),
        ({"others": '<OtherID Source="NASA">00029203</OtherID>'}, "pmcid", None),
        (
            {"banks": bank("ClinicalTrials.gov", "nct 00000620", "NCT00000621")},
            "trials",
            ("NCT00000620", "NCT00000621"),
        ),
        ({"banks": bank("ISRCTN", "ISRCTN 12345678")}, "trials", ("ISRCTN12345678",)),
        ({"banks": bank("EudraCT", "2004-000446-20")}, "trials", ("2004-000446-20",)),
        (
            {"banks": bank("UMIN CTR", "UMIN000001234") + bank("ANZCTR", "ACTRN1260")},
            "trials",
            ("UMIN000001234", "ACTRN1260"),
        ),
        ({"banks": bank("GENBANK", "U12345") + bank("PDB", "1ABC")}, "trials", ()),
        ({"banks": bank("ClinicalTrials.gov")}, "trials", ()),
        ({"banks": bank("ClinicalTrials.gov", "NCT00000620") * 2}, "trials", ("NCT00000620",)),
        ({"languages": ("ENG", "english", "ger", "eng", "")}, "languages", ("eng", "ger")),
    ],
)  # fmt: skip
def test_fields_of_articles(
    tmp_path: Path, said: dict[str, Any], field: str, value: object
) -> None:
    assert getattr(passage_of(tmp_path, article(**said)), field) == value


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
