"""Files that look like NLM's PubMed files: sizes and parts of records as there, words drawn by chance."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

from posology.corpus.checksums import md5

_HEAD = (
    '<?xml version="1.0" encoding="utf-8"?>\n'
    '<!DOCTYPE PubmedArticleSet SYSTEM "http://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">\n'
    "<PubmedArticleSet>\n"
)
_SYLLABLES = (
    "car",
    "di",
    "o",
    "ne",
    "phro",
    "pa",
    "thy",
    "ly",
    "so",
    "me",
    "ta",
    "bo",
    "lic",
    "in",
    "ul",
)
_LABELS = ("BACKGROUND", "METHODS", "RESULTS", "CONCLUSIONS")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def write(path: Path, records: int, *, seed: int = 7, deleted: int = 100) -> str:
    """Write a gzipped file of PubMed's form with its ``.md5``.

    Args:
        path: ends in ``.xml.gz``.
        records: how many; those of NLM's hold 30,000, of some 6 kB.
        seed: of what is drawn.
        deleted: PMIDs at the end that were deleted.

    Returns:
        The file's MD5.
    """
    draw = random.Random(seed)
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=4) as out:
        out.write(_HEAD)
        for number in range(1, records + 1):
            out.write(_record(draw, number))
        gone = "".join(f'<PMID Version="1">{records + n}</PMID>\n' for n in range(1, deleted + 1))
        out.write(f"<DeleteCitation>\n{gone}</DeleteCitation>\n</PubmedArticleSet>\n")
    found = md5(path)
    path.with_name(path.name + ".md5").write_text(f"MD5({path.name})= {found}\n")
    return found


def _record(draw: random.Random, number: int) -> str:
    return "".join(
        (
            '<PubmedArticle>\n<MedlineCitation Status="MEDLINE" IndexingMethod="Automated" Owner="NLM">\n',
            f'<PMID Version="1">{number}</PMID>\n<DateRevised><Year>2025</Year><Month>01</Month>',
            '<Day>02</Day></DateRevised>\n<Article PubModel="Print-Electronic">\n<Journal>',
            '<ISSN IssnType="Electronic">1234-5678</ISSN><JournalIssue CitedMedium="Internet">',
            f"<Volume>{number % 90}</Volume><PubDate><Year>{1970 + number % 55}</Year>",
            f"<Month>{_MONTHS[number % 12]}</Month></PubDate></JournalIssue>",
            "<Title>The journal of drawn words</Title><ISOAbbreviation>J Drawn Words</ISOAbbreviation>",
            f"</Journal>\n<ArticleTitle>{_words(draw, 14)} <i>in vitro</i>.</ArticleTitle>\n",
            "<Pagination><MedlinePgn>1-9</MedlinePgn></Pagination>",
            f'<ELocationID EIdType="doi" ValidYN="Y">10.1000/{number}</ELocationID>\n',
            "".join(_abstract(draw, number)),
            '<AuthorList CompleteYN="Y">',
            "".join(_authors(draw, draw.randint(2, 9))),
            "</AuthorList><Language>eng</Language><PublicationTypeList>",
            '<PublicationType UI="D016428">Journal Article</PublicationType></PublicationTypeList>',
            "</Article>\n<MedlineJournalInfo><Country>England</Country><MedlineTA>J Drawn Words",
            "</MedlineTA></MedlineJournalInfo>\n<MeshHeadingList>",
            "".join(_mesh(draw)),
            "</MeshHeadingList></MedlineCitation>\n<PubmedData><PublicationStatus>ppublish",
            f'</PublicationStatus><ArticleIdList><ArticleId IdType="pubmed">{number}</ArticleId>',
            "</ArticleIdList><ReferenceList>",
            "".join(_references(draw, draw.randint(0, 25))),
            "</ReferenceList></PubmedData>\n</PubmedArticle>\n",
        )
    )


def _words(draw: random.Random, count: int) -> str:
    return " ".join("".join(draw.choices(_SYLLABLES, k=draw.randint(1, 4))) for _ in range(count))


def _abstract(draw: random.Random, number: int) -> Iterator[str]:
    if number % 7 == 0:
        return
    yield "<Abstract>"
    for label in _LABELS if number % 2 else ("",):
        named = f' Label="{label}" NlmCategory="{label}"' if label else ""
        text = ". ".join(_words(draw, 18).capitalize() for _ in range(3 if label else 9))
        yield f"<AbstractText{named}>{text}, P &lt; 10<sup>-3</sup>.</AbstractText>\n"
    yield "</Abstract>\n"


def _authors(draw: random.Random, count: int) -> Iterator[str]:
    for _ in range(count):
        yield (
            f'<Author ValidYN="Y"><LastName>{_words(draw, 1)}</LastName><ForeName>{_words(draw, 1)}'
            f"</ForeName><Initials>A</Initials><AffiliationInfo><Affiliation>{_words(draw, 12)}"
            "</Affiliation></AffiliationInfo></Author>\n"
        )


def _mesh(draw: random.Random) -> Iterator[str]:
    for _ in range(draw.randint(4, 14)):
        yield (
            f'<MeshHeading><DescriptorName UI="D1" MajorTopicYN="N">{_words(draw, 2)}</DescriptorName>'
            '<QualifierName UI="Q1" MajorTopicYN="N">therapy</QualifierName></MeshHeading>\n'
        )


def _references(draw: random.Random, count: int) -> Iterator[str]:
    for _ in range(count):
        cited = draw.randint(1, 30_000_000)
        yield (
            f"<Reference><Citation>{_words(draw, 5)}. 2001;1:1-9.</Citation><ArticleIdList>"
            f'<ArticleId IdType="pubmed">{cited}</ArticleId></ArticleIdList></Reference>\n'
        )
