"""The documents of a table: literature files, read as ingest reads them, each article as one document."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import PlainSerializer

from posology.corpus.files import read
from posology.corpus.folders import check, expand
from posology.corpus.items import Notice, NoticeKind, Record, Remark, canonical, targets_of
from posology.errors import BadFile, BadRecord
from posology.types import Passage
from posology.types.tables import Document


@dataclass(frozen=True, kw_only=True, slots=True)
class Papers:
    """Documents that were read from files."""

    #: in the order of the files, each once
    documents: tuple[Document, ...]
    #: files and records that cannot be read, with the reason
    bad: tuple[str, ...]
    #: ids of documents that a notice in the files retracts; as JSON, in an order that is the same in every process
    retracted: Annotated[frozenset[str], PlainSerializer(sorted, return_type=list[str])]
    #: what is to be known of records and files that were read
    remarks: tuple[str, ...] = ()


def read_papers(paths: Iterable[Path], *, without: Iterable[Path] = ()) -> Papers:
    """Read the documents of files and folders. Blocking.

    Args:
        paths: files and folders.
        without: files that are none of the literature: a table that is kept beside its papers.

    Raises:
        BadFile: a path is missing, or nothing of it can be read.
        InputError: this holds for several paths.
        ReaderUnavailable: the package that reads a file is not installed.
    """
    given = list(paths)
    check(given)
    articles: dict[str, dict[str, Passage]] = {}
    bad: list[str] = []
    remarks: list[str] = []
    retracted: set[str] = set()
    own = {path.resolve() for path in without}
    for file in expand(given):
        if isinstance(file, Path) and file.resolve() in own:
            continue
        for item in (file,) if isinstance(file, BadFile) else read(file):
            match item:
                case Record(passage=passage):
                    parts = articles.setdefault(passage.parent or passage.id, {})
                    # an article that two files have is read once
                    parts.setdefault(passage.id, passage)
                case Notice(kind=NoticeKind.RETRACTION):
                    retracted.add(canonical(item.target))
                case Remark():
                    remarks.append(str(item))
                case BadFile() | BadRecord():
                    bad.append(str(item))
    documents = tuple(Document.of(tuple(parts.values())) for parts in articles.values())
    return Papers(
        documents=documents,
        bad=tuple(bad),
        retracted=frozenset(
            one.id
            for one in documents
            if any(p.retracted or not retracted.isdisjoint(targets_of(p)) for p in one.passages)
        ),
        remarks=tuple(remarks),
    )
