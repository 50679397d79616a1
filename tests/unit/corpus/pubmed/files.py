"""Files of PubMed's XML, built piece by piece in the order that the DTD asks for, and checked against it."""

from __future__ import annotations

import gzip
import importlib.util
from functools import cache
from pathlib import Path

from lxml import etree

from posology.corpus.items import Deletion, Item, Notice, Record
from posology.corpus.pubmed import read
from posology.errors import BadFile, BadRecord
from posology.types import Passage

DOCTYPE = (
    '<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" '
    '"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">'
)
MATHML = 'xmlns:mml="http://www.w3.org/1998/Math/MathML"'


def article(
    pmid: str = "1",
    *,
    version: str = "1",
    title: str = "A title.",
    abstract: str | None = "Some words.",
    sections: str = "",
    pub_date: str = "<Year>2020</Year>",
    journal: str = "<Title>The journal of tests</Title><ISOAbbreviation>J. Tests</ISOAbbreviation>",
    medline_ta: str = "J Tests",
    locations: str = "",
    languages: tuple[str, ...] = ("eng",),
    banks: str = "",
    grants: str = "",
    types: str = '<PublicationType UI="D016428">Journal Article</PublicationType>',
    vernacular: str = "",
    article_dates: str = "",
    comments: str = "",
    mesh: str = "",
    supplements: str = "",
    others: str = "",
    history: str = "",
    ids: str = "",
    references: str = "",
) -> str:
    """A ``PubmedArticle``; ``abstract`` is the markup of one section, ``sections`` are whole ones."""
    if abstract is not None and not sections:
        sections = f"<AbstractText>{abstract}</AbstractText>"
    own = f'<ArticleId IdType="pubmed">{pmid}</ArticleId>'
    return "".join(
        (
            '<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM">',
            f'<PMID Version="{version}">{pmid}</PMID>',
            '<Article PubModel="Print"><Journal><JournalIssue CitedMedium="Print">',
            f"<PubDate>{pub_date}</PubDate></JournalIssue>{journal}</Journal>",
            f"<ArticleTitle>{title}</ArticleTitle>",
            f"<Pagination><MedlinePgn>1-2</MedlinePgn></Pagination>{locations}",
            f"<Abstract>{sections}</Abstract>" if sections else "",
            "".join(f"<Language>{code}</Language>" for code in languages),
            f"<DataBankList>{banks}</DataBankList>" if banks else "",
            f"<GrantList>{grants}</GrantList>" if grants else "",
            f"<PublicationTypeList>{types}</PublicationTypeList>",
            f"<VernacularTitle>{vernacular}</VernacularTitle>" if vernacular else "",
            f"{article_dates}</Article>",
            f"<MedlineJournalInfo><MedlineTA>{medline_ta}</MedlineTA></MedlineJournalInfo>",
            f"<SupplMeshList>{supplements}</SupplMeshList>" if supplements else "",
            f"<CommentsCorrectionsList>{comments}</CommentsCorrectionsList>" if comments else "",
            f"<MeshHeadingList>{mesh}</MeshHeadingList>" if mesh else "",
            f"{others}</MedlineCitation><PubmedData>",
            f"<History>{history}</History>" if history else "",
            f"<PublicationStatus>ppublish</PublicationStatus><ArticleIdList>{own}{ids}",
            f"</ArticleIdList>{references}</PubmedData></PubmedArticle>",
        )
    )


def comment(kind: str, pmid: str | None, source: str = "J Tests. 2021;1:1") -> str:
    """An entry of ``CommentsCorrectionsList``."""
    of = "" if pmid is None else f'<PMID Version="1">{pmid}</PMID>'
    return (
        f'<CommentsCorrections RefType="{kind}"><RefSource>{source}</RefSource>{of}'
        "</CommentsCorrections>"
    )


def publication_types(*names: str) -> str:
    """``PublicationType`` elements."""
    return "".join(f'<PublicationType UI="D000000">{name}</PublicationType>' for name in names)


def document(*records: str, deleted: tuple[str, ...] = (), root: str = "PubmedArticleSet") -> bytes:
    """A whole file."""
    gone = "".join(f'<PMID Version="1">{pmid}</PMID>\n' for pmid in deleted)
    deletions = f"<DeleteCitation>\n{gone}</DeleteCitation>\n" if deleted else ""
    inside = "\n".join((*records, deletions))
    doctype = DOCTYPE.replace("PubmedArticleSet", root, 1)
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n{doctype}\n<{root}>\n{inside}</{root}>\n'.encode()
    )


@cache
def _dtd() -> etree.DTD:
    # Biopython ships NLM's DTDs
    found = importlib.util.find_spec("Bio")
    assert found is not None
    assert found.origin is not None
    return etree.DTD(str(Path(found.origin).parent / "Entrez" / "DTDs" / "pubmed_250101.dtd"))


def assert_valid(content: bytes) -> None:
    """That a file is what NLM's DTD of 2025 allows."""
    dtd = _dtd()
    if not dtd.validate(etree.fromstring(content)):
        raise AssertionError(str(dtd.error_log))


def write(path: Path, content: bytes) -> Path:
    """Write a file, gzipped if its name says so."""
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def items_of(tmp_path: Path, content: bytes, *, valid: bool = True) -> list[Item]:
    """What is read of a file."""
    if valid:
        assert_valid(content)
    return list(read(write(tmp_path / "set.xml", content)))


def passage_of(tmp_path: Path, record: str, *, valid: bool = True) -> Passage:
    """The passage of a file of one record, whatever it warns of."""
    *notices, item = items_of(tmp_path, document(record), valid=valid)
    assert all(isinstance(notice, Notice) for notice in notices), notices
    assert isinstance(item, Record), item
    return item.passage


def shown(item: Item) -> str:
    """An item, in short."""
    match item:
        case Record():
            return f"{item.line} {item.passage.id}"
        case Deletion():
            return f"{item.line} -{item.id}"
        case Notice():
            return f"{item.line} {item.kind} {item.target} by {item.by}"
        case BadRecord() | BadFile():
            return f"{item.line} bad: {item.reason}"
    raise AssertionError(f"no reader of PubMed's files yields {item}")
