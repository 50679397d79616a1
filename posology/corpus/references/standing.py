"""Standing of articles by titles and notes, in exports that have no field for it.

An article that was retracted and the notice of it begin much alike: ``RETRACTED: Salt for thirst`` must not be used,
``Retraction: Salt for thirst`` is about another record, and ``Retraction of the quadriceps`` is neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from posology.corpus.items import NoticeKind
from posology.corpus.pubmed.relations import RETRACTED_TYPE

#: publication types of notices, which are about other records
NOTICE_TYPES = {
    NoticeKind.RETRACTION: "Retraction of Publication",
    NoticeKind.CONCERN: "Expression of Concern",
}

_SORT = r"(?:article|chapter|guideline|manuscript|paper|preprint|protocol|publication|review|study)"
#: ends the words in front of a title
_STOP = r"\s*(?:[:\]|–—]|[).-](?=\s|\Z))"
_BY = r"(?:as (?:a )?duplicate|(?:by|at the request of) (?:the )?(?:authors?|editors?|journal|publisher))"
_ARTICLE = (
    re.compile(rf"\W{{0,10}}(?:retracted|withdrawn)(?: {_SORT})?(?: {_BY})?{_STOP}", re.IGNORECASE),
    # in small letters they begin titles of their own: "Retired: a survey of nurses"
    re.compile(rf"\W{{0,10}}(?:RETIRED|REMOVED|TEMPORARY REMOVAL){_STOP}"),
    re.compile(rf"\W{{0,10}}[\[(]\s?retired(?: {_SORT})?{_STOP}", re.IGNORECASE),
    # without a stop only in capitals, before words that are not
    re.compile(r"\W{0,10}(?:RETRACTED|WITHDRAWN)(?: [A-Z]+)?\s(?=.*[a-z])"),
)
#: behind a title: Web of Science writes "(Retracted article. See vol. 5, pg. 1, 2020)"
_ARTICLE_END = (
    re.compile(
        rf"[\[(]\s?(?:retracted|retired|withdrawn)(?: {_SORT})?(?:(?:[.,:;]| see) [^\[\]()]{{0,80}})?[\])]\W{{0,5}}\Z",
        re.IGNORECASE,
    ),
    re.compile(r"[a-z)\]?!.]\W{0,3}[\s.:;,|–—-](?:RETRACTED|WITHDRAWN)(?: ARTICLE)?\W{0,5}\Z"),
)
_OF = rf"(?:\s*[:\"'“‘«\[]|\s+(?:the |an? |this )?{_SORT}\b|\s[^:.]{{1,80}}\bet al\b)"
_NOTICE = {
    NoticeKind.RETRACTION: (
        re.compile(
            r"\W{0,10}(?:(?:statement|notice|notification|letter|note) of (?:retraction|withdrawal)"
            r"|(?:retraction|withdrawal|removal) (?:note|notice|notification|statement|letter)|retraction and replacement)\b",
            re.IGNORECASE,
        ),
        re.compile(
            rf"\W{{0,10}}(?:{_SORT} )?(?:retraction(?:{_STOP}|\W{{0,3}}\Z)|withdrawal\s?:)", re.IGNORECASE
        ),
        re.compile(rf"\W{{0,10}}(?:retraction|withdrawal) (?:of|for|to){_OF}", re.IGNORECASE),
        re.compile(r"[\[(]\s?retraction (?:of|to|in|for) [^\[\]()]{1,80}[\])]\W{0,5}\Z", re.IGNORECASE),
    ),
    NoticeKind.CONCERN: (
        re.compile(
            r"\W{0,10}(?:(?:editorial |publisher['’]?s? |editor['’]?s? )?(?:expression|statement|notice|note) of "
            r"(?:editorial )?concern|partial(?:ly)? retract(?:ion|ed))\b(?! (?:about|among|by|in|over|regarding|with)\b)",
            re.IGNORECASE,
        ),
        re.compile(r"[\[(]\s?expression of concern\b[^\[\]()]{0,80}[\])]\W{0,5}\Z", re.IGNORECASE),
    ),
}  # fmt: skip
#: lines of a note, as EndNote and Ovid write PubMed's comments
_NOTED = {
    NoticeKind.RETRACTION: re.compile(
        r"^\W{0,3}(?:retraction in|retracted in|retracted and republished in)\b",
        re.IGNORECASE | re.MULTILINE,
    ),
    NoticeKind.CONCERN: re.compile(
        r"^\W{0,3}expression of concern in\b", re.IGNORECASE | re.MULTILINE
    ),
}
_DOI = r"(?:doi:?\s*)?(?:https?://(?:dx\.)?doi\.org/)?(10\.[0-9]{4,9}/[^\s\"<>\]]+)"
#: how PubMed and PMC word a notice without text of its own
_RETRACTS = re.compile(rf"\bthis retracts the (?:following )?article:?\s*\[?{_DOI}", re.IGNORECASE)
#: of a notice's title: Embase and Scopus put the article behind it
_NAMED = re.compile(rf"\bdoi:?\s*{_DOI}", re.IGNORECASE)

#: how Scopus, Embase and Web of Science call a document, in small letters, in MEDLINE's words
TYPES: dict[str, str] = {
    **dict.fromkeys(
        ("retracted", "retracted article", "retracted paper", "withdrawn", "withdrawn article", "withdrawn publication",
         "tombstone"),
        RETRACTED_TYPE,
    ),
    **dict.fromkeys(
        ("retraction", "retraction note", "retraction notice", "item withdrawal"),
        NOTICE_TYPES[NoticeKind.RETRACTION],
    ),
}  # fmt: skip
#: the same of an article that is of concern
OF_CONCERN = "publication with expression of concern"


def says_retracted(title: str) -> bool:
    """Return whether a title is that of a retracted or withdrawn article: ``RETRACTED: …``, ``… [Withdrawn]``."""
    return any(form.match(title) for form in _ARTICLE) or any(
        form.search(title) for form in _ARTICLE_END
    )


def notice_of(title: str) -> NoticeKind | None:
    """Return what a title gives notice of, about another article; ``None``: it is no notice's."""
    if says_retracted(title):
        return None
    for kind, (*begins, end) in _NOTICE.items():
        if any(form.match(title) for form in begins) or end.search(title):
            return kind
    return None


def noted(notes: Iterable[str], kind: NoticeKind) -> bool:
    """Return whether a line of an article's notes says where it was retracted, or concern was expressed."""
    return any(_NOTED[kind].search(note) for note in notes)


def named(title: str, text: str) -> Iterator[tuple[str, NoticeKind]]:
    """Yield the DOIs of the articles that a notice is about, as far as it names them, and what it says of them."""
    for found in _RETRACTS.finditer(text):
        yield bare_doi(found[1]), NoticeKind.RETRACTION
    kind = notice_of(title)
    if kind is not None:
        for found in _NAMED.finditer(title):
            yield bare_doi(found[1]), kind


def bare_doi(doi: str) -> str:
    """Return a DOI in small letters, without what closes a sentence or a bracket around it."""
    bare = doi.rstrip(".,;:")
    return (bare if "(" in bare else bare.rstrip(")")).lower()
