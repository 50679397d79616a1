"""Contents of an index for people: articles, years, types, collections, and its size on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from posology.index.store import Index

#: collection of passages that name none
UNNAMED = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """Facts of the newest version."""

    #: articles, each once, however many passages it has
    articles: int
    #: first and last year of publication; ``None``: no passage has one
    first_year: int | None
    last_year: int | None
    #: number of passages by collection, largest first
    sources: Mapping[str, int]
    #: number of passages by year of publication, in order; without those of no year
    years: Mapping[int, int]
    #: number of passages by publication type, largest first; a passage may have several
    types: Mapping[str, int]
    #: size of the index's folder, all versions; ``None``: it is not a folder
    bytes: int | None


def contents_of(index: Index) -> Contents:
    """Read what an index holds. Blocking; four columns are scanned.

    Raises:
        IndexFault: it cannot be read.
    """
    import pyarrow.compute as pc

    whole = 0
    parents: set[str] = set()
    years: Counter[int] = Counter()
    sources, types = Counter[str](), Counter[str]()
    for batch in index.view().scan(("parent", "year", "source", "publication_types")):
        parent = batch.column("parent")
        whole += parent.null_count
        parents.update(pc.unique(parent.drop_null()).to_pylist())
        for one in pc.value_counts(batch.column("year").drop_null()).to_pylist():
            years[one["values"]] += one["counts"]
        for one in pc.value_counts(batch.column("source")).to_pylist():
            sources[one["values"] or UNNAMED] += one["counts"]
        for one in pc.value_counts(pc.list_flatten(batch.column("publication_types"))).to_pylist():
            types[one["values"]] += one["counts"]
    folder = index.place.folder
    return Contents(
        articles=whole + len(parents),
        first_year=min(years, default=None),
        last_year=max(years, default=None),
        sources=dict(sources.most_common()),
        years=dict(sorted(years.items())),
        types=dict(types.most_common()),
        bytes=None if folder is None else _size(folder),
    )


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue  # a writer has removed it meanwhile
    return total
