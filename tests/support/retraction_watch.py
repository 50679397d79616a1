"""Files of Retraction Watch's form."""

from __future__ import annotations

import csv
from pathlib import Path

HEADER = (
    "Record ID", "Title", "Subject", "Institution", "Journal", "Publisher", "Country", "Author", "URLS", "ArticleType",
    "RetractionDate", "RetractionDOI", "RetractionPubMedID", "OriginalPaperDate", "OriginalPaperDOI",
    "OriginalPaperPubMedID", "RetractionNature", "Reason", "Paywalled", "Notes",
)  # fmt: skip
_USUAL = {
    "Record ID": "1", "Title": "A trial, of aspirin", "Author": "A Smith;B Jones",
    "RetractionDate": "5/1/2020 0:00", "RetractionDOI": "10.1000/notice", "RetractionPubMedID": "0",
    "OriginalPaperDate": "1/2/2015 0:00", "OriginalPaperDOI": "unavailable", "OriginalPaperPubMedID": "1",
    "RetractionNature": "Retraction", "Reason": "+Error in Data;", "Paywalled": "No",
}  # fmt: skip


def row(**cells: str) -> list[str]:
    """A row, by default of a retraction of PMID 1."""
    return [(_USUAL | cells).get(name, "") for name in HEADER]


def write(path: Path, *rows: list[str]) -> Path:
    """Write a file of these rows."""
    with path.open("w", encoding="utf-8", newline="") as text:
        csv.writer(text).writerows([HEADER, *rows])
    return path
