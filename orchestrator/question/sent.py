"""Base of the forms that callers send, types of their fields, and the error of the first invalid field."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Self, get_args

from pydantic import AfterValidator, BaseModel, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from posology.errors import InvalidQuery
from posology.index.search.filters import MAX_NAME, MAX_NAMES, MAX_YEAR, MIN_YEAR
from posology.published.base import Described
from posology.types import Filters
from posology.types.money import COLLECTION

#: maximum length of a model's name, characters; the name becomes a label of metrics
MAX_MODEL = 200
#: maximum characters of a quote that is looked for in the whole index
MAX_SOUGHT = 2_000
#: maximum length of a comment on an answer, characters
MAX_COMMENT = 2_000
#: maximum number of an index version
MAX_VERSION = 2**53
#: characters of an unknown field's name that an error repeats
_LONGEST_NAME = 100


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise PydanticCustomError("text", "the text contains a NUL character")
    return value


def _unicode(value: str) -> str:
    # JSON may contain lone surrogates, which UTF-8 cannot encode
    try:
        value.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError("text", "the text is not valid Unicode") from None
    return value


def _named(value: str) -> str:
    if not (name := value.strip()):
        raise PydanticCustomError("text", "the name is empty")
    return name


#: text of a query: :func:`~posology.query.make_query` names its other faults
Prose = Annotated[str, AfterValidator(_no_nul)]
Text = Annotated[str, AfterValidator(_no_nul), AfterValidator(_unicode)]
Model = Annotated[str, Field(max_length=MAX_MODEL), AfterValidator(_no_nul)]
Year = Annotated[int, Field(ge=MIN_YEAR, le=MAX_YEAR)]
Name = Annotated[Text, Field(min_length=1, max_length=MAX_NAME), AfterValidator(_named)]
Names = Annotated[tuple[Name, ...], Field(max_length=MAX_NAMES)]
#: name of a collection; left out of records where it is not given, so that a request of an older version is the same request
CollectionName = Annotated[
    str | None, Field(pattern=COLLECTION, exclude_if=lambda name: name is None)
]


def invalid_field(found: Sequence[Mapping[str, Any]], model: type[BaseModel]) -> InvalidQuery:
    """Return the error of the first invalid field; unknown fields come first, since one may be a misspelt other.

    Args:
        found: pydantic's list of errors.
        model: form that was expected.
    """
    unknown = next((one for one in found if one["type"] == "extra_forbidden"), None)
    if unknown is None:
        first = found[0]
        field = ".".join(map(str, first["loc"])) or "request"
        return InvalidQuery(f"{field}: {first['msg']}", field=field)
    *path, name = map(str, unknown["loc"])
    return unknown_field(name, _fields_at(model, path), within=".".join(path))


def unknown_field(name: str, known: Collection[str], *, within: str = "") -> InvalidQuery:
    """Return the error of a field that does not exist, with the names that are most like it.

    Args:
        name: the given name.
        known: existing names.
        within: field that contains it; empty: the request itself.
    """
    name = name[:_LONGEST_NAME]
    near = get_close_matches(name.lower(), known, n=2)
    if near:
        advice = f"did you mean {' or '.join(map(repr, near))}?"
    else:
        advice = f"choose from {', '.join(sorted(known))}" if known else "none is accepted"
    field = f"{within}.{name}" if within else name
    return InvalidQuery(f"unknown field {field!r}: {advice}", field=field)


def _fields_at(model: type[BaseModel], path: Sequence[str]) -> Collection[str]:
    # places within a list are no names
    for name in (one for one in path if not one.isdigit()):
        annotation = model.model_fields[name].annotation
        (model,) = (
            one
            for one in (annotation, *get_args(annotation))
            if isinstance(one, type) and issubclass(one, BaseModel)
        )
    return model.model_fields


class Sent(Described):
    """Base of what callers send."""

    @classmethod
    def parse(cls, data: Any) -> Self:
        """Read a JSON object.

        Raises:
            InvalidQuery: naming the first invalid field.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise invalid_field(error.errors(include_url=False, include_input=False), cls) from None


class FiltersRequest(Sent):
    """Filters of the passages; a passage must pass all that are given."""

    since: Year | None = None
    """First year of publication. Default: any."""
    until: Year | None = None
    """Last year of publication, inclusive. Default: any."""
    publication_types: Names = ()
    """MEDLINE publication types, one of which must match, e.g. Randomized Controlled Trial. Default: all."""
    journals: Names = ()
    """Journals, one of which must match. Default: all."""
    mesh: Names = ()
    """MeSH headings, one of which must match, with any qualifier. Default: all."""
    languages: Names = ()
    """Three-letter MEDLINE language codes, one of which must match, e.g. eng. Default: all."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.since is not None and self.until is not None and self.since > self.until:
            raise PydanticCustomError(
                "years",
                "since must be ≤ until (got {since} > {until})",
                {"since": self.since, "until": self.until},
            )
        return self

    def to_filters(self) -> Filters:
        """Return the filters for the index."""
        return Filters(**{name: getattr(self, name) for name in type(self).model_fields})


class QuoteRequest(Sent):
    """A quote to find in the index."""

    quote: Annotated[Text, Field(max_length=MAX_SOUGHT)]
    """The quote, a sentence or a few, at most 2000 characters."""
    index_version: int | None = Field(default=None, ge=1, le=MAX_VERSION)
    """Number of the index version to read, e.g. 17 for index@17. Default: the newest."""
    collection: CollectionName = None
    """Name of the collection to read. Default: none, the default index."""


class FeedbackRequest(Sent):
    """A user's judgement of an answer."""

    score: float = Field(ge=0, le=1, allow_inf_nan=False)
    """Quality of the answer, 0 (worst) to 1 (best)."""
    comment: Annotated[Text, Field(max_length=MAX_COMMENT)] | None = None
    """Comment on the answer, at most 2000 characters. Default: none."""
