"""One line of a corpus file, checked: the edge where a stranger's JSON becomes a passage."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from posology.types import Passage

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

#: code points of an id
MAX_ID = 512

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_DIGITS = re.compile(r"[0-9]{1,12}")
_YEAR = re.compile(r"[0-9]{4}")


class RecordError(ValueError):
    """Why a line is no record."""


def _identifier(value: str) -> str:
    if not value or value != value.strip():
        raise ValueError("must neither be empty nor begin or end with white space")
    if _CONTROL.search(value):
        raise ValueError("must not hold control characters")
    return value


def _words(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not hold a NUL character")
    return value


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return _words(value)


def _pmid(value: object) -> object:
    if value is None or value == "":
        return None
    digits = str(value).strip() if isinstance(value, int | str) else ""
    if isinstance(value, bool) or not _DIGITS.fullmatch(digits):
        raise ValueError("must be a PubMed identifier: digits, as a number or a string")
    return digits


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


_Words = Annotated[str, AfterValidator(_words)]
_List = Annotated[tuple[_Words, ...], BeforeValidator(_none_is_empty), Field(strict=False)]


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    id: Annotated[str, Field(max_length=MAX_ID), AfterValidator(_identifier)]
    text: Annotated[str, AfterValidator(_text)]
    title: Annotated[_Words, BeforeValidator(_none_is_blank)] = ""
    pmid: Annotated[str | None, BeforeValidator(_pmid)] = None
    journal: _Words | None = None
    year: Annotated[int | None, BeforeValidator(_year)] = None
    publication_types: _List = Field(
        default=(), validation_alias=AliasChoices("publication_types", "publication types")
    )
    mesh: _List = ()
    retracted: Annotated[bool, BeforeValidator(_none_is_false)] = False
    source: _Words | None = None


def parse(line: bytes) -> Passage:
    """The passage that a line of JSON describes.

    Raises:
        RecordError: with the first thing that is wrong, and in which field.
    """
    try:
        fields = _Line.model_validate_json(line)
    except ValidationError as error:
        raise RecordError(_reason(error.errors(include_url=False)[0])) from None
    return Passage(
        id=fields.id,
        text=fields.text,
        title=fields.title,
        pmid=fields.pmid,
        journal=fields.journal,
        year=fields.year,
        publication_types=fields.publication_types,
        mesh=fields.mesh,
        retracted=fields.retracted,
        source=fields.source,
    )


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
