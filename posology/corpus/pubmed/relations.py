"""Relations of a record to other records, and to itself: retractions, concern, other records of the same work.

DTD pubmed_250101, element CommentsCorrections; https://www.nlm.nih.gov/bsd/policy/errata.html.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from posology.corpus.items import NoticeKind
from posology.corpus.pubmed.words import plain

if TYPE_CHECKING:
    from lxml.etree import _Element

#: publication type of a retracted article; that of its notice is another, and a notice is not retracted
RETRACTED_TYPE = "Retracted Publication"
RETRACTED_UI = "D016441"

#: relations by which the other record retracts this one
_RETRACTED = frozenset({"RetractionIn", "RetractedandRepublishedIn"})
#: notices that the record gives of the other
_WARNS = {
    "RetractionOf": NoticeKind.RETRACTION,
    "RetractedandRepublishedFrom": NoticeKind.RETRACTION,
    "ExpressionOfConcernFor": NoticeKind.CONCERN,
}
#: both are of one work. A preprint and its article are each other's UpdateIn and UpdateOf, and so are a
#: Cochrane review and its next version
_SAME_WORK = frozenset(
    {
        "UpdateIn",
        "UpdateOf",
        "RepublishedIn",
        "RepublishedFrom",
        "CorrectedandRepublishedIn",
        "CorrectedandRepublishedFrom",
        "RetractedandRepublishedIn",
        "RetractedandRepublishedFrom",
        "ReprintIn",
        "ReprintOf",
    }
)
_PMID = re.compile(r"[1-9][0-9]{0,11}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Warned:
    """A notice that a record gives of another, or of itself."""

    kind: NoticeKind
    #: id of the record that is warned of
    target: str
    #: id of the record that gives the notice
    by: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Relations:
    """Relations in a record's list of comments and corrections."""

    #: it was retracted
    retracted: bool
    #: an expression of concern was published about it
    concern: bool
    #: notices that it gives of others
    of_others: tuple[Warned, ...]
    #: notices that others give of it, as it states itself
    of_itself: tuple[Warned, ...]
    #: ids of other records of the same work, each once
    same_work: tuple[str, ...]


def pmid_of(element: _Element | None) -> str | None:
    """Return the number in a ``PMID``; ``None``: there is none, or it is no number."""
    text = plain(None if element is None else element.text)
    return text if _PMID.fullmatch(text) else None


def relations(citation: _Element, own: str, types: Collection[str]) -> Relations:
    """Return the relations in ``CommentsCorrectionsList`` and the publication types.

    Args:
        citation: a ``MedlineCitation``.
        own: the record's id.
        types: its publication types, names or identifiers.
    """
    found = citation.iterfind("CommentsCorrectionsList/CommentsCorrections")
    return related(
        ((one.get("RefType", ""), pmid_of(one.find("PMID"))) for one in found), own, types
    )


def related(
    stated: Iterable[tuple[str, str | None]], own: str, types: Collection[str]
) -> Relations:
    """Return the relations that a record states.

    Args:
        stated: the kind of each, as ``RefType`` names it, and the other record's PMID; ``None``: it has none.
        own: the record's id.
        types: its publication types, names or identifiers.
    """
    retracted = RETRACTED_TYPE in types or RETRACTED_UI in types
    concern = False
    of_others: dict[Warned, None] = {}
    same: dict[str, None] = {}
    for kind, number in stated:
        other = own if number is None else f"pmid:{number}"
        if kind in _RETRACTED:
            retracted = True
        elif kind == "ExpressionOfConcernIn":
            concern = True
        elif kind in _WARNS and other != own:
            of_others[Warned(kind=_WARNS[kind], target=other, by=own)] = None
        if kind in _SAME_WORK and other != own:
            same[other] = None
    of_itself = (
        (NoticeKind.RETRACTION, retracted),
        (NoticeKind.CONCERN, concern),
    )
    return Relations(
        retracted=retracted,
        concern=concern,
        of_others=tuple(of_others),
        of_itself=tuple(
            Warned(kind=kind, target=own, by=own) for kind, holds in of_itself if holds
        ),
        same_work=tuple(same),
    )
