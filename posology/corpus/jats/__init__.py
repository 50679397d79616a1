"""Full texts in JATS (NISO Z39.96), as PubMed Central publishes them: single articles, sets and archives."""

from posology.corpus.jats.reader import (
    ARCHIVES,
    ROOTS,
    SUFFIXES,
    count,
    count_archive,
    read,
    read_archive,
)

__all__ = [
    "ARCHIVES",
    "ROOTS",
    "SUFFIXES",
    "count",
    "count_archive",
    "read",
    "read_archive",
]
