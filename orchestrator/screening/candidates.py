"""Records to screen: those of files of search results, each work once, and counts of all that was identified."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from posology.corpus.files import read
from posology.corpus.folders import check, expand
from posology.corpus.items import Notice, NoticeKind, Parts, Record
from posology.errors import BadFile, BadRecord
from posology.types import Passage
from posology.types.tables import Document


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidates:
    """Records to screen, and how many were identified where."""

    #: in the order of the files, each work once
    documents: tuple[Document, ...]
    #: file name and number of its records, duplicates included, in order
    sources: tuple[tuple[str, int], ...]
    #: id of the document that stands for each id, its own included
    same: dict[str, str]
    #: files and records that cannot be read, with the reason
    bad: tuple[str, ...]
    #: ids of documents that are retracted
    retracted: frozenset[str]

    @property
    def duplicates(self) -> int:
        """Return the number of records that repeat another one."""
        return sum(count for _, count in self.sources) - len(self.documents)


def read_candidates(paths: Iterable[Path]) -> Candidates:
    """Read the records of files and folders. Blocking.

    Two records are one if they have the same id, PMID or DOI; the first is kept. Titles are not compared.

    Raises:
        BadFile: a path is missing, or nothing of it can be read.
        InputError: this holds for several paths.
        ReaderUnavailable: the package that reads a file is not installed.
    """
    given = list(paths)
    check(given)
    works: dict[str, list[Passage]] = {}
    same: dict[str, str] = {}
    sources: Counter[str] = Counter()
    #: whether a record whose parts are being read is the first of its work
    begun: dict[str, bool] = {}
    bad: list[str] = []
    retracted: set[str] = set()
    for file in expand(given):
        for item in (file,) if isinstance(file, BadFile) else read(file):
            match item:
                case Record(passage=passage):
                    article = passage.parent or passage.id
                    if article not in begun:
                        names = tuple(_names(passage, article))
                        first = next((same[i] for i in names if i in same), None)
                        sources[item.path.name] += 1
                        begun[article] = first is None
                        for name in names:
                            same.setdefault(name, first or article)
                    if begun[article]:
                        works.setdefault(article, []).append(passage)
                    if passage.parent is None:
                        del begun[article]
                    if passage.retracted:
                        retracted.add(article)
                case Parts():
                    begun.pop(item.id, None)
                case Notice(kind=NoticeKind.RETRACTION):
                    retracted.add(item.target)
                case BadFile() | BadRecord():
                    bad.append(str(item))
    return Candidates(
        documents=tuple(Document.of(parts) for parts in works.values()),
        sources=tuple(sources.items()),
        same=same,
        bad=tuple(bad),
        retracted=frozenset(same.get(one, one) for one in retracted) & works.keys(),
    )


def _names(passage: Passage, article: str) -> Iterator[str]:
    """Yield the ids by which other files may name a record."""
    yield article
    if passage.pmid:
        yield f"pmid:{passage.pmid}"
    if passage.doi:
        yield f"doi:{passage.doi}"
