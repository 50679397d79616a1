"""Update files of PubMed as tests write them: records, deletions and notices of a made-up literature."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.pubmed_xml import article, comment, document, publication_types


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
    content = document(*map(_article, citations), deleted=tuple(map(str, deleted)))
    path.write_bytes(gzip.compress(content, mtime=0))
    if md5:
        told = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        path.with_name(path.name + ".md5").write_text(f"MD5({path.name})= {told}\n")
    return path


def _article(one: Citation) -> str:
    types = ["Journal Article", *["Retracted Publication"] * one.retracted]
    said = [
        *(comment("RetractionOf", str(pmid)) for pmid in one.retracts),
        *(comment("ExpressionOfConcernFor", str(pmid)) for pmid in one.concerns),
    ]
    return article(
        str(one.pmid),
        title=f"Of record {one.pmid}",
        abstract=one.text,
        types=publication_types(*types),
        comments="".join(said),
    )
