"""Output formats of answers and passages, and their media types."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Format(StrEnum):
    """Output format of answers and passages."""

    #: with colours and boxes in a terminal, plain in a pipe
    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    #: citations: of the quoted passages of an answer, of the listed passages of a search
    RIS = "ris"
    BIBTEX = "bibtex"
    CSL = "csl"
    #: evidence tables: a row for each quote of an answer, or for each passage of a search
    CSV = "csv"
    TABLE = "table"


#: formats of an HTTP response besides JSON, with their media types; by the type alone, Markdown is no table
MEDIA: Mapping[Format, str] = MappingProxyType(
    {
        Format.MARKDOWN: "text/markdown",
        Format.RIS: "application/x-research-info-systems",
        Format.BIBTEX: "application/x-bibtex",
        Format.CSL: "application/vnd.citationstyles.csl+json",
        Format.CSV: "text/csv",
        Format.TABLE: "text/markdown",
    }
)


def wanted(accept: str) -> Format | None:
    """Return the format that a header ``Accept`` asks for before JSON; ``None``: JSON."""
    for item in accept.split(","):
        media = item.partition(";")[0].strip().lower()
        if media in ("application/json", "*/*"):
            return None
        if found := next((form for form, name in MEDIA.items() if name == media), None):
            return found
    return None
