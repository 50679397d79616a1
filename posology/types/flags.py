"""Statements about the standing of an article, or of the trial that a registry's record is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

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
    #: the trial ended early, by its registry's record
    TERMINATION = "termination"
    #: the trial was stopped before its first participant
    WITHDRAWAL = "withdrawal"
    #: the trial is stopped, and may go on
    SUSPENSION = "suspension"


#: kinds as they are shown beside a source
WORDS: Mapping[FlagKind, str] = MappingProxyType(
    {
        FlagKind.RETRACTION: "RETRACTED",
        FlagKind.CONCERN: "EXPRESSION OF CONCERN",
        FlagKind.CORRECTION: "CORRECTED",
        FlagKind.REINSTATEMENT: "REINSTATED",
        FlagKind.TERMINATION: "TRIAL TERMINATED",
        FlagKind.WITHDRAWAL: "TRIAL WITHDRAWN",
        FlagKind.SUSPENSION: "TRIAL SUSPENDED",
    }
)

#: publication types of registry records whose trial was stopped, with what they say of it
STOPPED: Mapping[str, FlagKind] = MappingProxyType(
    {
        "Terminated Trial": FlagKind.TERMINATION,
        "Withdrawn Trial": FlagKind.WITHDRAWAL,
        "Suspended Trial": FlagKind.SUSPENSION,
    }
)


@published("FlagOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """A statement of one source about the standing of an article. Sources may disagree."""

    kind: FlagKind
    """Kind: retraction, concern (an expression of it), correction or reinstatement (undoes the source's own earlier
    retraction); of a registry's record termination, withdrawal or suspension of its trial."""
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
