"""Records to screen: those of files of search results, each work once, and counts of all that was identified."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from posology.corpus.files import read
from posology.corpus.folders import check, expand
from posology.corpus.items import (
    Notice,
    NoticeKind,
    Parts,
    Record,
    Remark,
    article_of,
    canonical,
)
from posology.errors import BadFile, BadRecord
from posology.types import Passage
from posology.types.tables import Document


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidates:
    """Records to screen, and how many were identified where."""

    #: in the order of the files, each work once
    documents: tuple[Document, ...]
    #: file name and number of its records, duplicates and unreadable ones included, in order
    sources: tuple[tuple[str, int], ...]
    #: id of the document that stands for each id, its own included
    same: dict[str, str]
    #: files and records that cannot be read, with the reason
    bad: tuple[str, ...]
    #: number of records that cannot be read; a file of which nothing can be read is one
    unreadable: int
    #: ids of documents that are retracted
    retracted: frozenset[str]
    #: what is to be known of records and files that were read
    remarks: tuple[str, ...] = ()

    @property
    def duplicates(self) -> int:
        """Return the number of records that repeat another one."""
        return sum(count for _, count in self.sources) - self.unreadable - len(self.documents)


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
    #: records of each file
    counts: Counter[Path] = Counter()
    #: whether a record whose parts are being read is the first of its work
    begun: dict[str, bool] = {}
    bad: list[BadRecord | BadFile] = []
    remarks: list[str] = []
    retracted: set[str] = set()
    for file in expand(given):
        # not all kinds of files say where the parts of an article end
        begun.clear()
        if isinstance(file, Path):
            # in the order of the files, whatever of them can be read
            counts[file] = 0
        for item in (file,) if isinstance(file, BadFile) else read(file):
            match item:
                case Record(passage=passage):
                    article = passage.parent or passage.id
                    if article not in begun:
                        names = tuple(_names(passage, article))
                        counts[item.path] += 1
                        begun[article] = not any(name in same for name in names)
                        for other in _join(names, article, works, same):
                            if other in begun:
                                begun[other] = False
                    if begun[article]:
                        works.setdefault(article, []).append(passage)
                    if passage.parent is None:
                        del begun[article]
                    if passage.retracted:
                        retracted.add(article)
                case Parts():
                    begun.pop(item.id, None)
                case Notice(kind=NoticeKind.RETRACTION):
                    retracted.add(canonical(item.target))
                case Remark():
                    remarks.append(str(item))
                case BadFile() | BadRecord():
                    bad.append(item)
    unreadable = _count_unreadable(bad, same, counts)
    sources: Counter[str] = Counter()
    for path, count in counts.items():
        sources[path.name] += count
    return Candidates(
        documents=tuple(Document.of(parts) for parts in works.values()),
        sources=tuple(sources.items()),
        same=same,
        bad=tuple(map(str, bad)),
        unreadable=unreadable,
        retracted=frozenset(same.get(one, one) for one in retracted) & works.keys(),
        remarks=tuple(remarks),
    )


def _join(
    names: Collection[str], article: str, works: dict[str, list[Passage]], same: dict[str, str]
) -> set[str]:
    """Note by which names a record is known; return the works that it shows to be one with an earlier one, which are removed."""
    known = {same[name] for name in names if name in same}
    # of several, in the order of the files
    first = next((one for one in (works if len(known) > 1 else known) if one in known), article)
    same |= dict.fromkeys(names, first)
    for other in known - {first}:
        same |= {name: first for name, one in same.items() if one == other}
        del works[other]
    return known - {first}


def _count_unreadable(
    bad: Iterable[BadRecord | BadFile], same: Container[str], counts: Counter[Path]
) -> int:
    """Add records that cannot be read to the counts of their files, and return how many no file has in a readable form."""
    unreadable = 0
    lost: set[str] = set()
    for one in bad:
        path = Path(one.path)
        record = one.record if isinstance(one, BadRecord) else None
        article = None if record is None else article_of(record)
        if isinstance(one, BadFile) and counts[path]:
            # the number of records behind the fault is unknown
            continue
        if article is not None:
            if article != record and (article in same or article in lost):
                # a passage of a document, which counts once
                continue
            lost.add(article)
        counts[path] += 1
        unreadable += article is None or article not in same
    return unreadable


def _names(passage: Passage, article: str) -> Iterator[str]:
    """Yield the ids by which other files may name a record."""
    yield article
    if passage.pmid:
        yield f"pmid:{passage.pmid}"
    if passage.doi:
        yield f"doi:{passage.doi}"
