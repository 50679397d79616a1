"""Articles of the stub, and their records in the forms of PubMed, PubMed Central and Europe PMC.

All texts are written for the stub. The forms follow NLM's DTD (pubmed_250101), JATS 1.3 and the description of Europe PMC's
core results.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    #: day on which the services added it
    added: str = "2024-06-01"
    journal: str = "Journal of the Stub"
    #: ``None``: not in PubMed Central
    pmcid: str | None = None
    #: paragraphs of the full text; empty: it is not open
    body: tuple[str, ...] = ()
    #: PMID of the notice of its retraction; ``None``: none
    retracted_by: str | None = None
    #: PMID of its erratum; ``None``: none
    corrected_by: str | None = None
    #: PMIDs of articles that it cites
    cites: tuple[str, ...] = ()
    #: address of a free copy that Unpaywall knows; ``None``: none
    copy_at: str | None = None
    #: whether PubMed Central sends its full text, as Europe PMC does
    in_pmc: bool = True

    def matches(self, words: list[str]) -> bool:
        """Return whether the title and abstract hold all words."""
        text = f"{self.title} {self.abstract or ''}".lower()
        return all(word in text for word in words)


def pubmed_set(articles: list[Article]) -> str:
    """Return a ``PubmedArticleSet``."""
    return f"{_HEAD}<PubmedArticleSet>\n{''.join(map(_pubmed, articles))}</PubmedArticleSet>\n"


def _pubmed(article: Article) -> str:
    abstract = (
        f"<Abstract><AbstractText>{escape(article.abstract)}</AbstractText></Abstract>"
        if article.abstract is not None
        else ""
    )
    kinds = ["Journal Article", *(["Retracted Publication"] if article.retracted_by else [])]
    relations = "".join(
        f'<CommentsCorrections RefType="{kind}"><RefSource>J Stub. 2025</RefSource>'
        f'<PMID Version="1">{pmid}</PMID></CommentsCorrections>'
        for kind, pmid in (
            ("RetractionIn", article.retracted_by),
            ("ErratumIn", article.corrected_by),
        )
        if pmid
    )
    ids = f'<ArticleId IdType="pubmed">{article.pmid}</ArticleId>'
    ids += f'<ArticleId IdType="doi">10.9999/stub.{article.pmid}</ArticleId>'
    if article.pmcid:
        ids += f'<ArticleId IdType="pmc">{article.pmcid}</ArticleId>'
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">{article.pmid}</PMID>'
        '<Article PubModel="Print"><Journal><JournalIssue CitedMedium="Internet">'
        f"<PubDate><Year>{article.year}</Year></PubDate></JournalIssue><Title>{escape(article.journal)}</Title></Journal>"
        f"<ArticleTitle>{escape(article.title)}</ArticleTitle>{abstract}<Language>eng</Language><PublicationTypeList>"
        + "".join(f'<PublicationType UI="D016428">{kind}</PublicationType>' for kind in kinds)
        + "</PublicationTypeList></Article>"
        + (f"<CommentsCorrectionsList>{relations}</CommentsCorrectionsList>" if relations else "")
        + f"</MedlineCitation><PubmedData><ArticleIdList>{ids}</ArticleIdList></PubmedData></PubmedArticle>\n"
    )


def pmc_set(articles: list[Article]) -> str:
    """Return a ``pmc-articleset``; an article that is not open comes without its body."""
    shown = (one if one.in_pmc else replace(one, body=()) for one in articles)
    return f"<pmc-articleset>{''.join(map(jats, shown))}</pmc-articleset>"


def jats(article: Article) -> str:
    """Return an article in JATS."""
    paragraphs = "".join(f"<p>{escape(text)}</p>" for text in article.body)
    body = f"<body><sec><title>Results</title>{paragraphs}</sec></body>" if article.body else ""
    closed = (
        "" if article.body else "<!--The publisher of this article does not allow downloading.-->"
    )
    return (
        '<article article-type="research-article"><front><journal-meta><journal-title-group>'
        f"<journal-title>{escape(article.journal)}</journal-title></journal-title-group></journal-meta><article-meta>"
        f'<article-id pub-id-type="pmid">{article.pmid}</article-id>'
        f'<article-id pub-id-type="pmcid">{article.pmcid}</article-id>'
        f"<title-group><article-title>{escape(article.title)}</article-title></title-group>"
        f"<pub-date><year>{article.year}</year></pub-date>"
        f"<abstract><p>{escape(article.abstract or '')}</p></abstract></article-meta></front>{closed}{body}</article>"
    )


def core_result(article: Article) -> dict[str, Any]:
    """Return a result of Europe PMC, of the type ``core``."""
    result: dict[str, Any] = {
        "id": article.pmid,
        "source": "MED",
        "pmid": article.pmid,
        "doi": f"10.9999/stub.{article.pmid}",
        "title": article.title,
        "authorString": "Stub A.",
        "authorList": {"author": [{"fullName": "Stub A", "firstName": "Ada", "lastName": "Stub"}]},
        "journalInfo": {"yearOfPublication": article.year, "journal": {"title": article.journal}},
        "pubYear": str(article.year),
        "language": "eng",
        "pubTypeList": {
            "pubType": [
                "Journal Article",
                *(["Retracted Publication"] if article.retracted_by else []),
            ]
        },
        "isOpenAccess": "Y" if article.body else "N",
        "firstPublicationDate": f"{article.year}-01-15",
    }
    if article.abstract is not None:
        result["abstractText"] = f"<h4>Results</h4>{escape(article.abstract)}"
    if article.pmcid:
        result["pmcid"] = article.pmcid
    if article.retracted_by:
        result["commentCorrectionList"] = {
            "commentCorrection": [
                {"id": article.retracted_by, "source": "MED", "type": "Retraction in"}
            ]
        }
    return result


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
        cites=("90000001", "90000002"),
        copy_at="https://repository.example/stub/90000004.pdf",
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
