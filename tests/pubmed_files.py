"""Update files of PubMed as tests write them: records, deletions and notices of a made-up literature."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Citation:
    """A record of an update file."""

    pmid: int
    text: str
    #: PMIDs of those that it retracts
    retracts: tuple[int, ...] = ()
    #: PMIDs of those about which it voices concern
    concerns: tuple[int, ...] = ()
    #: whether it says of itself that it is retracted
    retracted: bool = False


def name(number: int, year: int = 26) -> str:
    """As NLM names the file of this number."""
    return f"pubmed{year}n{number:04}.xml.gz"


def write(
    folder: Path,
    number: int,
    citations: Iterable[Citation] = (),
    deleted: Sequence[int] = (),
    *,
    year: int = 26,
    md5: bool = True,
) -> Path:
    """Write a file, and its checksum beside it."""
    folder.mkdir(exist_ok=True)
    path = folder / name(number, year)
    body = "".join(map(_article, citations))
    if deleted:
        pmids = "".join(f"<PMID Version='1'>{pmid}</PMID>" for pmid in deleted)
        body += f"<DeleteCitation>{pmids}</DeleteCitation>"
    head = "<?xml version='1.0' encoding='utf-8'?>\n"
    content = f"{head}<PubmedArticleSet>{body}</PubmedArticleSet>".encode()
    path.write_bytes(gzip.compress(content, mtime=0))
    if md5:
        told = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        path.with_name(path.name + ".md5").write_text(f"MD5({path.name})= {told}\n")
    return path


def _article(one: Citation) -> str:
    types = "<PublicationType UI='D016428'>Journal Article</PublicationType>"
    if one.retracted:
        types += "<PublicationType UI='D016441'>Retracted Publication</PublicationType>"
    comments = "".join(
        f"<CommentsCorrections RefType='{kind}'><RefSource>J Tests. 2020</RefSource>"
        f"<PMID Version='1'>{pmid}</PMID></CommentsCorrections>"
        for kind, pmids in (
            ("RetractionOf", one.retracts),
            ("ExpressionOfConcernFor", one.concerns),
        )
        for pmid in pmids
    )
    corrections = (
        f"<CommentsCorrectionsList>{comments}</CommentsCorrectionsList>" if comments else ""
    )
    return (
        "<PubmedArticle><MedlineCitation Status='MEDLINE' Owner='NLM'>"
        f"<PMID Version='1'>{one.pmid}</PMID>"
        "<Article PubModel='Print'><Journal><JournalIssue CitedMedium='Print'><PubDate><Year>2020</Year>"
        "</PubDate></JournalIssue><Title>Journal of tests</Title></Journal>"
        f"<ArticleTitle>Of record {one.pmid}</ArticleTitle>"
        f"<Abstract><AbstractText>{one.text}</AbstractText></Abstract><Language>eng</Language>"
        f"<PublicationTypeList>{types}</PublicationTypeList></Article>"
        "<MedlineJournalInfo><MedlineTA>J Tests</MedlineTA></MedlineJournalInfo>"
        f"{corrections}</MedlineCitation>"
        f"<PubmedData><ArticleIdList><ArticleId IdType='pubmed'>{one.pmid}</ArticleId></ArticleIdList></PubmedData>"
        "</PubmedArticle>"
    )
