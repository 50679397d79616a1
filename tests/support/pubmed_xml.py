"""PubMed's XML, built piece by piece in the order that the DTD asks for."""

from __future__ import annotations

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
