"""Validation of one line of a corpus file: JSON to a passage."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from posology.corpus.items import is_part
from posology.corpus.pubmed.dates import written_date
from posology.corpus.pubmed.relations import RETRACTED_TYPE
from posology.corpus.pubmed.words import visible
from posology.corpus.references.markup import unmarked
from posology.corpus.references.standing import says_retracted
from posology.text.names import joined, kept, people, person
from posology.types import Passage

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


#: maximum number of code points of an id
MAX_ID = 512

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_DIGITS = re.compile(r"0*([1-9][0-9]{0,11})")
_DOI_BEFORE = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:)\s*", re.IGNORECASE)
#: with or without the number of a version
_PMCID = re.compile(r"(?:PMC)?([0-9]{1,12})(?:\.[0-9]{1,3})?", re.IGNORECASE)
_YEAR = re.compile(r"[0-9]{4}")
_PUBMED = re.compile(r"pubmed[0-9]{2}n[0-9]{4}_[0-9]+")
_STATPEARLS = re.compile(r"(article-[0-9]+)_[0-9]+")
_WIKIPEDIA = re.compile(r"wiki[0-9]{8}en[0-9]{3}_[0-9]+")
#: between an article's name and its headings in a title of StatPearls
_STEP = " -- "


class RecordError(ValueError):
    """A line that is not a record, with the reason."""

    def __init__(self, reason: str, *, record: str | None = None) -> None:
        super().__init__(reason)
        #: the line's id; ``None``: missing or unreadable
        self.record = record


def _identifier(value: str) -> str:
    if not value or value != value.strip():
        raise ValueError("must not be empty, or begin or end with white space")
    if _CONTROL.search(value):
        raise ValueError("must not hold control characters")
    return value


def _words(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not hold a NUL character")
    return unicodedata.normalize("NFC", value)


def _text(value: str) -> str:
    shown = unmarked(visible(value))
    if not shown.strip():
        raise ValueError("must not be empty")
    return _words(shown)


def _title(value: object) -> object:
    return unmarked(visible(value)) if isinstance(value, str) else _none_is_blank(value)


def _pmid(value: object) -> object:
    if value is None or value == "":
        return None
    digits = str(value).strip() if isinstance(value, int | str) else ""
    found = _DIGITS.fullmatch(digits)
    if isinstance(value, bool) or found is None:
        raise ValueError("must be a PubMed identifier: digits, as a number or a string")
    return found[1]


# Notices of retraction name passages by their identifiers: one that is written another way would not be reached.
def plain_doi(text: str) -> str | None:
    """Return a DOI in lower case, without the resolver; ``None``: it is empty."""
    text = text.strip()
    begun = _DOI_BEFORE.match(text)
    return text[begun.end() if begun else 0 :].lower() or None


def _doi(value: object) -> object:
    return plain_doi(value) if isinstance(value, str) else value


def plain_pmcid(text: str) -> str | None:
    """Return an identifier of PubMed Central as ``PMC`` and digits; ``None``: it is none."""
    found = _PMCID.fullmatch(text.strip())
    return f"PMC{found[1]}" if found else None


def _pmcid(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    found = plain_pmcid(value)
    if found is None:
        raise ValueError("must be a PubMed Central identifier: PMC and digits")
    return found


def _year(value: object) -> object:
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be a year of four digits")
    if not _YEAR.fullmatch(str(value).strip()):
        raise ValueError("must be a year of four digits")
    return int(value)


def _none_is_empty(value: object) -> object:
    return () if value is None else value


def _none_is_blank(value: object) -> object:
    return "" if value is None else value


def _none_is_false(value: object) -> object:
    return False if value is None else value


def _authors(value: object) -> object:
    """Return names, however a line writes them: one text, a list of texts, or of objects with a name or its parts."""
    if isinstance(value, str):
        return people(value)
    if not isinstance(value, list):
        return ()
    return kept(
        _author(one) if isinstance(one, dict) else person(one, natural=True)
        for one in value
        if isinstance(one, dict | str)
    )


def _author(fields: dict[str, object]) -> str:
    known = {name: text for name, text in fields.items() if isinstance(text, str)}
    family = known.get("family") or known.get("last") or known.get("lastname") or ""
    given = known.get("given") or known.get("first") or known.get("firstname") or ""
    named = known.get("name") or known.get("literal") or ""
    return joined(family, given) if family else person(named, natural=True)


_Words = Annotated[str, AfterValidator(_words)]
_List = Annotated[tuple[_Words, ...], BeforeValidator(_none_is_empty), Field(strict=False)]


class _Named(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    id: Annotated[str, Field(max_length=MAX_ID), AfterValidator(_identifier)]


class _Line(_Named):
    #: MedRAG calls it ``content``; its ``contents`` are title and text in one, taken where there is nothing else
    text: Annotated[str, AfterValidator(_text)] = Field(
        validation_alias=AliasChoices("text", "content", "contents")
    )
    title: Annotated[_Words, BeforeValidator(_title)] = ""
    pmid: Annotated[str | None, BeforeValidator(_pmid)] = Field(
        default=None, validation_alias=AliasChoices("pmid", "PMID")
    )
    journal: _Words | None = None
    year: Annotated[int | None, BeforeValidator(_year)] = None
    publication_types: _List = Field(
        default=(), validation_alias=AliasChoices("publication_types", "publication types")
    )
    mesh: _List = ()
    retracted: Annotated[bool, BeforeValidator(_none_is_false)] = False
    source: _Words | None = None
    concern: Annotated[bool, BeforeValidator(_none_is_false)] = False
    doi: Annotated[_Words | None, BeforeValidator(_doi)] = None
    pmcid: Annotated[_Words | None, BeforeValidator(_pmcid)] = None
    published: _Words | None = None
    languages: _List = ()
    trials: _List = ()
    same_work: _List = ()
    parent: _Words | None = None
    section: _Words | None = None
    authors: Annotated[tuple[_Words, ...], BeforeValidator(_authors), Field(strict=False)] = ()
    #: marks of MedRAG's chunks, which say nothing of their own
    contents: Any = None
    wiki_id: Any = None


#: fields of a line that are a passage's
_FIELDS = tuple(name for name in _Line.model_fields if name not in ("contents", "wiki_id"))


def parse(line: bytes) -> Passage:
    """Return the passage that a line of JSON describes.

    Raises:
        RecordError: with the first thing that is wrong, and in which field.
    """
    try:
        fields = _Line.model_validate_json(line)
    except ValidationError as error:
        reason = _reason(error.errors(include_url=False)[0])
        raise RecordError(reason, record=_id(line)) from None
    if fields.parent is not None and not is_part(fields.id, fields.parent):
        raise RecordError(
            f"parent: only a passage with the id PARENT#1, PARENT#2 and so on is a part of an article (got {fields.id!r} of "
            f"{fields.parent[:100]!r}): name it so, or leave out the parent",
            record=fields.id,
        )
    given = {name: getattr(fields, name) for name in _FIELDS}
    if RETRACTED_TYPE in fields.publication_types or says_retracted(fields.title):
        given["retracted"] = True
    if fields.published and (date := written_date(fields.published)) is not None:
        given["published"] = str(date)
        given["year"] = date.year if fields.year is None else fields.year
    passage = Passage(**given)
    if fields.contents is None:
        return passage
    return of_medrag(passage, wiki_id=fields.wiki_id)


def _id(line: bytes) -> str | None:
    try:
        return _Named.model_validate_json(line).id
    except ValidationError:
        return None


def _reason(error: ErrorDetails) -> str:
    where = ".".join(str(part) for part in error["loc"])
    message = error["msg"].removeprefix("Value error, ")
    match error["type"]:
        case "json_invalid":
            return f"not JSON: {message.removeprefix('Invalid JSON: ').replace('line 1 ', '')}"
        case "model_type" | "model_attributes_type":
            return "not a JSON object"
        case "missing":
            return f"{where}: is missing"
    return f"{where}: {message[:1].lower()}{message[1:]}"


def of_medrag(passage: Passage, *, wiki_id: object = None) -> Passage:
    """Return a chunk of MedRAG with its collection as the source and its article as the parent.

    Fields that are set already stay. The id is kept, so that results can be compared with MedRAG's. A chunk of
    PubMed is a whole abstract: its parent is ``pmid:N``, so that it goes when NLM withdraws that number. A
    chunk of a textbook has no parent. An id of another form changes nothing.

    Args:
        passage: as it was read.
        wiki_id: number of the page that a chunk of Wikipedia is of.
    """
    if _PUBMED.fullmatch(passage.id):
        return _with(passage, "pubmed", passage.pmid and f"pmid:{passage.pmid}")
    if article := _STATPEARLS.fullmatch(passage.id):
        title, _, headings = passage.title.partition(_STEP)
        section = " > ".join(part for part in headings.split(_STEP) if part) or None
        cut = replace(passage, title=title, section=passage.section or section)
        return _with(cut, "statpearls", article[1])
    if _WIKIPEDIA.fullmatch(passage.id):
        page = str(wiki_id) if isinstance(wiki_id, int | str) else ""
        return _with(passage, "wikipedia", f"wikipedia:{page}" if page.isdigit() else None)
    return passage


def _with(passage: Passage, collection: str, parent: str | None) -> Passage:
    return replace(
        passage,
        source=passage.source or f"medrag:{collection}",
        parent=passage.parent or parent or None,
    )
