"""Statements about the standing of an article: retraction, concern, correction, reinstatement."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """A statement of one source about the standing of a passage's article."""

    kind: FlagKind
    #: :data:`OWN`, :data:`NOTICE`, or the name under which a file was taken in, e.g. ``retraction-watch``
    source: str
    #: id of the record that gives it, or of the published notice, e.g. ``pmid:20137807``; ``None``: unknown
    by: str | None = None
    #: date of the statement, ISO 8601; ``None``: unknown
    date: str | None = None
