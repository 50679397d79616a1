"""Statements about the standing of an article: retraction, concern, correction, reinstatement."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from posology.described import published

#: source of a flag that the article's own record gives
OWN = "record"
#: source of a flag that another record of the literature gives, e.g. PubMed's notice of retraction
NOTICE = "notice"


class FlagKind(StrEnum):
    """Kind of a flag."""

    RETRACTION = "retraction"
    CONCERN = "concern"
    CORRECTION = "correction"
    #: undoes the earlier retractions of the same source, and of no other
    REINSTATEMENT = "reinstatement"


@published("FlagOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """A statement of one source about the standing of an article. Sources may disagree."""

    kind: FlagKind
    """Kind: retraction, concern (an expression of it), correction or reinstatement (undoes the source's own earlier
    retraction)."""
    source: str
    """Source: `record` (the article's own record), `notice` (another record of the literature) or the name of a file of
    notices, e.g. `retraction-watch`."""
    by: str | None
    """Id of the record, or of the published notice; null: unknown."""
    date: str | None
    """Date of the statement, ISO 8601; null: unknown."""

    @property
    def origin(self) -> str:
        """Return source and date in words, e.g. ``retraction-watch 2020-05-01``."""
        match self.source:
            case "record":
                said = "own record"
            case "notice":
                said = f"notice {self.by}" if self.by else "notice"
            case named:
                said = named
        return f"{said} {self.date}" if self.date else said
