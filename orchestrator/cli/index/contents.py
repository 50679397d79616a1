"""Contents of an index for people: articles, years, collections, and its size on disk."""

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
    #: size of the index's folder, all versions; ``None``: it is not a folder
    bytes: int | None


def contents_of(index: Index) -> Contents:
    """Read what an index holds. Blocking; three columns are scanned.

    Raises:
        IndexFault: it cannot be read.
    """
    import pyarrow.compute as pc

    whole = 0
    parents: set[str] = set()
    years: list[int] = []
    sources: Counter[str] = Counter()
    for batch in index.view().scan(("parent", "year", "source")):
        parent = batch.column("parent")
        whole += parent.null_count
        parents.update(pc.unique(parent.drop_null()).to_pylist())
        bounds = pc.min_max(batch.column("year")).as_py()
        years += [year for year in bounds.values() if year is not None]
        for one in pc.value_counts(batch.column("source")).to_pylist():
            sources[one["values"] or UNNAMED] += one["counts"]
    folder = index.place.folder
    return Contents(
        articles=whole + len(parents),
        first_year=min(years, default=None),
        last_year=max(years, default=None),
        sources=dict(sources.most_common()),
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
