"""Articles of the stub, and their records in the forms of PubMed, PubMed Central and Europe PMC.

All texts are written for the stub. The forms follow NLM's DTD (pubmed_250101), JATS 1.3 and the description of Europe PMC's
core results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

_HEAD = (
    '<?xml version="1.0" ?>\n<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" '
    '"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">\n'
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Article:
    """An article."""

    pmid: str
    title: str
    #: ``None``: it has none
    abstract: str | None
    year: int = 2024
    journal: str = "Journal of the Stub"
    #: ``None``: not in PubMed Central
    pmcid: str | None = None
    #: paragraphs of the full text; empty: it is not open
    body: tuple[str, ...] = ()
    #: PMID of the notice of its retraction; ``None``: none
    retracted_by: str | None = None
    #: PMID of its erratum; ``None``: none
    corrected_by: str | None = None

    def matches(self, words: list[str]) -> bool:
        """Return whether the title and abstract hold all words."""
        text = f"{self.title} {self.abstract or ''}".lower()
        return all(word in text for word in words)


def pubmed_set(articles: list[Article]) -> str:
    """Return a ``PubmedArticleSet``."""
    return f"{_HEAD}<PubmedArticleSet>\n{''.join(map(_pubmed, articles))}</PubmedArticleSet>\n"


def _pubmed(one: Article) -> str:
    abstract = (
        f"<Abstract><AbstractText>{escape(one.abstract)}</AbstractText></Abstract>"
        if one.abstract is not None
        else ""
    )
    kinds = ["Journal Article", *(["Retracted Publication"] if one.retracted_by else [])]
    relations = "".join(
        f'<CommentsCorrections RefType="{kind}"><RefSource>J Stub. 2025</RefSource>'
        f'<PMID Version="1">{pmid}</PMID></CommentsCorrections>'
        for kind, pmid in (("RetractionIn", one.retracted_by), ("ErratumIn", one.corrected_by))
        if pmid
    )
    ids = f'<ArticleId IdType="pubmed">{one.pmid}</ArticleId>'
    if one.pmcid:
        ids += f'<ArticleId IdType="pmc">{one.pmcid}</ArticleId>'
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">{one.pmid}</PMID>'
        '<Article PubModel="Print"><Journal><JournalIssue CitedMedium="Internet">'
        f"<PubDate><Year>{one.year}</Year></PubDate></JournalIssue><Title>{escape(one.journal)}</Title></Journal>"
        f"<ArticleTitle>{escape(one.title)}</ArticleTitle>{abstract}<Language>eng</Language><PublicationTypeList>"
        + "".join(f'<PublicationType UI="D016428">{kind}</PublicationType>' for kind in kinds)
        + "</PublicationTypeList></Article>"
        + (f"<CommentsCorrectionsList>{relations}</CommentsCorrectionsList>" if relations else "")
        + f"</MedlineCitation><PubmedData><ArticleIdList>{ids}</ArticleIdList></PubmedData></PubmedArticle>\n"
    )


def pmc_set(articles: list[Article]) -> str:
    """Return a ``pmc-articleset``; an article that is not open comes without its body."""
    return f"<pmc-articleset>{''.join(map(jats, articles))}</pmc-articleset>"


def jats(one: Article) -> str:
    """Return an article in JATS."""
    paragraphs = "".join(f"<p>{escape(text)}</p>" for text in one.body)
    body = f"<body><sec><title>Results</title>{paragraphs}</sec></body>" if one.body else ""
    closed = "" if one.body else "<!--The publisher of this article does not allow downloading.-->"
    return (
        '<article article-type="research-article"><front><journal-meta><journal-title-group>'
        f"<journal-title>{escape(one.journal)}</journal-title></journal-title-group></journal-meta><article-meta>"
        f'<article-id pub-id-type="pmid">{one.pmid}</article-id>'
        f'<article-id pub-id-type="pmcid">{one.pmcid}</article-id>'
        f"<title-group><article-title>{escape(one.title)}</article-title></title-group>"
        f"<pub-date><year>{one.year}</year></pub-date>"
        f"<abstract><p>{escape(one.abstract or '')}</p></abstract></article-meta></front>{closed}{body}</article>"
    )


def core_result(one: Article) -> dict[str, Any]:
    """Return a result of Europe PMC, of the type ``core``."""
    found: dict[str, Any] = {
        "id": one.pmid,
        "source": "MED",
        "pmid": one.pmid,
        "doi": f"10.9999/stub.{one.pmid}",
        "title": one.title,
        "authorString": "Stub A.",
        "authorList": {"author": [{"fullName": "Stub A", "firstName": "Ada", "lastName": "Stub"}]},
        "journalInfo": {"yearOfPublication": one.year, "journal": {"title": one.journal}},
        "pubYear": str(one.year),
        "language": "eng",
        "pubTypeList": {
            "pubType": ["Journal Article", *(["Retracted Publication"] if one.retracted_by else [])]
        },
        "isOpenAccess": "Y" if one.body else "N",
        "firstPublicationDate": f"{one.year}-01-15",
    }
    if one.abstract is not None:
        found["abstractText"] = f"<h4>Results</h4>{escape(one.abstract)}"
    if one.pmcid:
        found["pmcid"] = one.pmcid
    if one.retracted_by:
        found["commentCorrectionList"] = {
            "commentCorrection": [
                {"id": one.retracted_by, "source": "MED", "type": "Retraction in"}
            ]
        }
    return found


#: a small literature on one subject, with a retraction, an erratum, full texts and an article without an abstract
ARTICLES: tuple[Article, ...] = (
    Article(
        pmid="90000001",
        title="Aspirin after stroke: a randomised trial",
        abstract="Aspirin lowered the rate of recurrent stroke from 12% to 8% in 2,400 adults. Bleeding was rare.",
        pmcid="PMC9000001",
        body=(
            "At three years, recurrent stroke had occurred in 96 of 1,200 adults given aspirin 75 mg daily.",
        ),
    ),
    Article(
        pmid="90000002",
        title="Aspirin and stroke in older adults",
        abstract="In adults over 80 years, aspirin did not lower the rate of stroke, and major bleeding was more "
        "frequent.",
        pmcid="PMC9000002",
    ),
    Article(
        pmid="90000003",
        title="High-dose aspirin abolishes stroke",
        abstract="High-dose aspirin prevented every stroke in 40 adults.",
        retracted_by="90000009",
    ),
    Article(
        pmid="90000004",
        title="Clopidogrel or aspirin after minor stroke",
        abstract="Clopidogrel with aspirin lowered the rate of new stroke within 90 days more than aspirin alone.",
        corrected_by="90000008",
    ),
    Article(pmid="90000005", title="Aspirin for stroke: a comment", abstract=None),
    Article(
        pmid="90000006",
        title="Metformin in polycystic ovary syndrome",
        abstract="Metformin restored ovulation in 46% of 300 women with polycystic ovary syndrome.",
    ),
)


def many(count: int) -> tuple[Article, ...]:
    """Return articles on one drug, for fetches of several pages."""
    return tuple(
        Article(
            pmid=str(91_000_000 + n),
            title=f"Stubazole, study {n}",
            abstract=f"In study {n}, stubazole lowered blood pressure by {n % 17 + 1} mmHg in adults.",
        )
        for n in range(count)
    )
